//! The init stage: this program, started again with a reserved first argument, on the way to a confined command.
//!
//! Three processes: the **outer** one, which the caller starts and reaps, makes the namespaces and waits; the **first** one of
//! the new process namespace mounts, locks down and reaps; the **command** itself. The outer one listens to the caller. When the
//! caller is gone or says so, or when the command has ended, the first process ends, and the kernel ends with it whatever else
//! is in the namespace. The outer process ends only after that, so a caller who has reaped it knows that nothing is left.

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
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, getegid, geteuid, pidfd_open, pidfd_send_signal, umask, waitpid,
    },
    stdio,
    thread::{UnshareFlags, set_thread_groups},
};

use crate::{
    mechanism::Mechanism,
    plan::{self, FLAG, LONGEST, Plan, Report},
    sys::{self, Forked},
};

/// Whether this program was started as an init stage: then it is to call [`main`] before anything else, above all before it
/// starts a thread, and end with what that gives.
#[must_use]
pub fn is_called() -> bool {
    std::env::args_os().nth(1).as_deref() == Some(OsStr::new(FLAG))
}

/// The init stage. Reads its plan from stdin, which [`run`](crate::run) has made a socket.
#[must_use]
pub fn main() -> ExitCode {
    match outer() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Why nothing is run. It has been reported.
#[derive(Debug)]
pub(crate) struct GivenUp;

/// The way to the caller.
pub(crate) struct Control(File);

impl Control {
    fn tell(&self, report: &Report) {
        // A caller that hears nothing is gone, and then the outer process ends the run.
        let _: io::Result<()> = plan::framed(report).and_then(|bytes| (&self.0).write_all(&bytes));
    }

    /// Tells it, and with it gives a descriptor away.
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
    pub(crate) fn without(&self, plan: &Plan, mechanism: Mechanism, step: &str, why: &io::Error) -> Result<(), GivenUp> {
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

/// What the kernel said, or 0 where it was not the kernel.
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

/// Takes the socket and the plan, and leaves nothing else open but stdout and stderr.
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

/// Lets go of the command's output, so that it ends when the command lets go of it.
fn silence() -> io::Result<()> {
    let nothing = nothing()?;
    stdio::dup2_stdout(&nothing)?;
    stdio::dup2_stderr(&nothing)?;
    Ok(())
}

fn namespaces(control: &Control) -> Result<(), GivenUp> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // Groups beside the own one would lend their files. Only root can leave them, and only before it leaves its namespace.
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
    // A user is itself inside: what it makes is its own outside too, and nothing it meets changes its owner.
    let write = |file: &str, text: String| std::fs::write(Path::new("/proc/self").join(file), text);
    write("setgroups", "deny".into()).map_err(lacks("writing setgroups"))?;
    write("uid_map", format!("{user} {user} 1")).map_err(lacks("writing uid_map"))?;
    write("gid_map", format!("{group} {group} 1")).map_err(lacks("writing gid_map"))
}

/// Ends the first process when the caller says so or is gone, and returns once nothing is left of the namespace.
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

/// Does what the caller says; whether there is more to hear.
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
