//! The init stage: the caller's own program, executed again with a reserved first argument. It confines itself and starts the
//! command.
//!
//! There are three processes. The **outer** process, which the caller starts and reaps, makes the namespaces, listens to the
//! caller and waits. The **first** process of the new PID namespace mounts, locks down, starts the command and reaps. The third
//! is the **command**. When the command has ended, or the caller says so or is gone, the first process ends, and the kernel kills
//! every other process of the namespace with it. The outer process ends after that: once the caller has reaped it, none is left.

mod first;
mod lockdown;
mod mounts;
mod network;

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, IoSlice, Read, Write},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    process::ExitCode,
};

use rustix::{
    cmsg_space,
    event::{PollFd, PollFlags, poll},
    io::{Errno, fcntl_dupfd_cloexec},
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    process::{Pid, PidfdFlags, Signal, WaitOptions, getegid, geteuid, pidfd_open, pidfd_send_signal, umask, waitpid},
    stdio,
    thread::{UnshareFlags, set_thread_groups},
};

use crate::{
    mechanism::Mechanism,
    plan::{self, FLAG, LONGEST, Plan, Report},
    sys::{self, Forked},
};

/// Whether this process was started as an init stage. If so, `main` of the program calls [`main`] before anything else, above all
/// before it starts a thread, and returns its exit code.
#[must_use]
pub fn is_called() -> bool {
    std::env::args_os().nth(1).as_deref() == Some(OsStr::new(FLAG))
}

/// The init stage. Reads its plan from stdin, which [`run`](crate::run()) has made a socket.
#[must_use]
pub fn main() -> ExitCode {
    match outer() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Nothing is run. The reason has been reported.
#[derive(Debug)]
pub(crate) struct GivenUp;

/// The socket to the caller.
pub(crate) struct Control(File);

impl Control {
    fn tell(&self, report: &Report) {
        // If the caller is gone the outer process ends the run.
        let _: io::Result<()> = plan::framed(report).and_then(|bytes| (&self.0).write_all(&bytes));
    }

    /// Sends a report with a descriptor.
    fn hand_over(&self, report: &Report, descriptor: &impl AsFd) -> io::Result<()> {
        let bytes = plan::framed(report)?;
        let descriptors = [descriptor.as_fd()];
        let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut room);
        beside.push(SendAncillaryMessage::ScmRights(&descriptors));
        let sent = sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL)?;
        if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Gives up for want of a mechanism.
    pub(crate) fn lacks(&self, mechanism: Mechanism, step: &str, why: &io::Error) -> GivenUp {
        self.tell(&Report::Lacks(mechanism, step.into(), errno(why)));
        GivenUp
    }

    /// Goes on without a mechanism if that was accepted.
    pub(crate) fn without(
        &self,
        plan: &Plan,
        mechanism: Mechanism,
        step: &str,
        why: &io::Error,
    ) -> Result<(), GivenUp> {
        if !mechanism.lack().is_some_and(|lack| plan.accepted.contains(&lack)) {
            return Err(self.lacks(mechanism, step, why));
        }
        self.tell(&Report::Without(mechanism, step.into(), errno(why)));
        Ok(())
    }

    /// Gives up for another reason.
    pub(crate) fn failed(&self, step: &str, why: &io::Error) -> GivenUp {
        self.tell(&Report::Failed(step.into(), errno(why)));
        GivenUp
    }
}

/// The error number, or 0 if the error is not the kernel's.
fn errno(why: &io::Error) -> i32 {
    why.raw_os_error().unwrap_or_default()
}

fn outer() -> Result<(), GivenUp> {
    let (control, plan) = begin().map_err(|_| GivenUp)?;
    if let Some(cgroup) = &plan.cgroup {
        std::fs::write(plan::path(cgroup), "0")
            .map_err(|why| control.lacks(Mechanism::Cgroup, "entering the cgroup", &why))?;
    }
    namespaces(&control)?;
    match sys::fork().map_err(|why| control.failed("fork", &why))? {
        Forked::Child => first::run(&control, &plan),
        Forked::Parent(first) => {
            let wait = || {
                silence()?;
                watch(&control, first)
            };
            wait().map_err(|why| control.failed("waiting for the first process", &why))?;
            let (user, system, memory) = sys::used();
            control.tell(&Report::Used(user, system, memory));
            Ok(())
        }
    }
}

/// Takes the socket and the plan, and closes every other descriptor but stdout and stderr.
fn begin() -> io::Result<(Control, Plan)> {
    sys::close_the_rest()?;
    let mut control = File::from(fcntl_dupfd_cloexec(stdio::stdin(), 3)?);
    stdio::dup2_stdin(nothing()?)?;
    umask(rustix::fs::Mode::from_raw_mode(0o022));
    let mut bytes = Vec::new();
    loop {
        if let Some((plan, _)) = plan::unframed(&bytes)? {
            return Ok((Control(control), plan));
        }
        let mut part = [0; 4_096];
        let length = control.read(&mut part)?;
        bytes.extend_from_slice(part.get(..length).unwrap_or_default());
        if length == 0 || bytes.len() > LONGEST {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn nothing() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}

/// Closes this process's copies of stdout and stderr, so that they end with the command's.
fn silence() -> io::Result<()> {
    let nothing = nothing()?;
    stdio::dup2_stdout(&nothing)?;
    stdio::dup2_stderr(&nothing)?;
    Ok(())
}

fn namespaces(control: &Control) -> Result<(), GivenUp> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // Supplementary groups would give access to their files. Only root can drop them, and only in its own user namespace.
    match set_thread_groups(&[]) {
        Ok(()) | Err(Errno::PERM) => {}
        Err(why) => return Err(control.failed("leaving groups", &why.into())),
    }
    let flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWCGROUP;
    let lacks = |step: &'static str| move |why: io::Error| control.lacks(Mechanism::Namespaces, step, &why);
    sys::unshare(flags).map_err(lacks("unshare"))?;
    // The user keeps its number: files that it makes are its own outside too.
    let write = |file: &str, text: String| std::fs::write(Path::new("/proc/self").join(file), text);
    write("setgroups", "deny".into()).map_err(lacks("writing setgroups"))?;
    write("uid_map", format!("{user} {user} 1")).map_err(lacks("writing uid_map"))?;
    write("gid_map", format!("{group} {group} 1")).map_err(lacks("writing gid_map"))
}

/// Ends the first process when the caller says so or is gone. Returns once no process of the namespace is left.
fn watch(control: &Control, first: Pid) -> io::Result<()> {
    let ended = pidfd_open(first, PidfdFlags::empty())?;
    let mut listening = true;
    loop {
        let (over, heard) = wait_for(&ended, listening.then_some(&control.0))?;
        if over {
            while matches!(waitpid(Some(first), WaitOptions::empty()), Err(Errno::INTR)) {}
            return Ok(());
        }
        if heard {
            listening = hear(control, &ended)?;
        }
    }
}

/// Whether the process has ended, and whether there is something to hear.
fn wait_for(ended: &OwnedFd, caller: Option<&File>) -> io::Result<(bool, bool)> {
    let mut both = vec![PollFd::new(ended, PollFlags::IN)];
    both.extend(caller.map(|caller| PollFd::new(caller, PollFlags::IN)));
    match poll(&mut both, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(why) => return Err(why.into()),
    }
    let mut ready = both.iter().map(|one| !one.revents().is_empty());
    Ok((ready.next().unwrap_or_default(), ready.next().unwrap_or_default()))
}

/// Carries out the caller's word. Returns whether to listen on.
fn hear(control: &Control, first: &OwnedFd) -> io::Result<bool> {
    let mut word = [0];
    let length = (&control.0).read(&mut word).unwrap_or_default();
    let (signal, more) = match word {
        [plan::TERMINATE] if length == 1 => (Signal::TERM, true),
        _ => (Signal::KILL, false),
    };
    match pidfd_send_signal(first, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(more),
        Err(why) => Err(why.into()),
    }
}
