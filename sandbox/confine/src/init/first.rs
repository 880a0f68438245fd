//! The first process of the new PID namespace: mounts, locks itself down, starts the command and reaps.

use std::{
    fs::{self, File},
    io::{self, Read},
    net::{Ipv4Addr, TcpListener},
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::Command,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{
        DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, chdir, set_dumpable_behavior,
        set_parent_process_death_signal, setsid, wait,
    },
};

use super::{Control, GivenUp, lockdown, mounts, network, silence};
use crate::{
    mechanism::Mechanism,
    plan::{self, Plan, Report},
    sys::{self, Forked},
};

/// Runs the command to its end. No process of the namespace but this one is left on success.
pub(super) fn run(control: &Control, plan: &Plan) -> Result<(), GivenUp> {
    let failed = |step: &'static str| move |why: io::Error| control.failed(step, &why);
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|why| control.failed("asking to end with the outer process", &why.into()))?;
    // If the host runs out of memory, the kernel kills the run before the caller.
    fs::write("/proc/self/oom_score_adj", "1000").map_err(failed("offering itself where memory runs out"))?;
    mounts::make(control, plan)?;
    if let Err((step, why)) = network::up() {
        control.without(plan, Mechanism::Loopback, step, &why)?;
    }
    if let Some(port) = plan.port {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed("listening for the caller"))?;
        control.hand_over(&Report::Listening, &listener).map_err(failed("handing over the listener"))?;
    }
    rustix::system::sethostname(b"ephor").map_err(|why| control.failed("naming the host", &why.into()))?;
    // Closes this process to the command, which has the same user.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|why| control.failed("closing this process to others", &why.into()))?;
    let signals = sys::signals().map_err(failed("taking signals"))?;
    lockdown::lock(control, plan)?;
    if plan.arguments.is_empty() {
        control.tell(&Report::Exited(0));
        return Ok(());
    }
    chdir(plan::path(&plan.directory)).map_err(|why| control.failed("going to its folder", &why.into()))?;
    match sys::fork().map_err(failed("fork"))? {
        Forked::Child => Err(start(control, plan)),
        Forked::Parent(command) => {
            silence().map_err(failed("letting go of the output"))?;
            let status = reap(control, &signals, command).map_err(failed("reaping"))?;
            if let Some(status) = status {
                control.tell(&report(status));
            }
            // The kernel would kill them with this process anyway, but without counting what they used.
            sys::signal_all(Signal::KILL);
            while !matches!(wait(WaitOptions::empty()), Err(Errno::CHILD)) {}
            Ok(())
        }
    }
}

/// Becomes the command.
fn start(control: &Control, plan: &Plan) -> GivenUp {
    if let Err(why) = setsid() {
        return control.failed("starting a session", &why.into());
    }
    if let Err(why) = lockdown::limit(&plan.bounds) {
        return control.failed("setting limits", &why);
    }
    let mut words = plan.arguments.iter().map(plan::text);
    let Some(program) = words.next() else {
        return control.failed("finding the program", &io::ErrorKind::NotFound.into());
    };
    let environment = plan.environment.iter().map(|(name, value)| (plan::text(name), plan::text(value)));
    // The library resets the signal mask and SIGPIPE.
    let why = Command::new(program).args(words).env_clear().envs(environment).exec();
    control.tell(&Report::NoProgram(why.raw_os_error().unwrap_or_default()));
    GivenUp
}

/// Reaps until the command has ended, and returns its status; none if the caller is gone first.
fn reap(control: &Control, signals: &OwnedFd, command: Pid) -> io::Result<Option<WaitStatus>> {
    let mut signals = File::from(signals.try_clone()?);
    loop {
        while let Some((pid, status)) = next_ended()? {
            if pid == command {
                return Ok(Some(status));
            }
        }
        // The outer process reads the caller's words; this one only notices that the caller is gone.
        let mut both = [PollFd::new(&signals, PollFlags::IN), PollFd::new(&control.0, PollFlags::empty())];
        match poll(&mut both, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(why) => return Err(why.into()),
        }
        if both.iter().skip(1).any(|caller| caller.revents().contains(PollFlags::HUP)) {
            return Ok(None);
        }
        while let Some(signal) = next_signal(&mut signals) {
            if signal == libc::SIGTERM {
                sys::signal_all(Signal::TERM);
            }
        }
    }
}

fn next_ended() -> io::Result<Option<(Pid, WaitStatus)>> {
    match wait(WaitOptions::NOHANG) {
        Ok(ended) => Ok(ended),
        Err(Errno::INTR | Errno::CHILD) => Ok(None),
        Err(why) => Err(why.into()),
    }
}

/// The number of the next signal, which a `signalfd_siginfo` begins with.
fn next_signal(signals: &mut File) -> Option<i32> {
    let mut record = [0; size_of::<libc::signalfd_siginfo>()];
    signals.read_exact(&mut record).ok()?;
    let number = record.first_chunk::<4>()?;
    i32::try_from(u32::from_ne_bytes(*number)).ok()
}

fn report(status: WaitStatus) -> Report {
    match status.terminating_signal() {
        Some(signal) => Report::Killed(signal),
        None => Report::Exited(status.exit_status().unwrap_or_default()),
    }
}
