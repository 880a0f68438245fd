//! Threads that a process does not give back: until they come back they run only when no other thread wants to.
//!
//! Of two cores a process that spins takes one for as long as it spins, and nothing can end a thread from outside. But Linux can
//! have it wait behind all others (`SCHED_IDLE`, sched(7)): it then has what nobody else needs. To come back from there takes
//! `CAP_SYS_NICE`, or an `RLIMIT_NICE` that admits a nice value of 0; where a node has neither, its threads stay as they are.

use std::{io, sync::OnceLock};

/// The number by which the system knows this thread.
pub(super) fn own_thread() -> libc::pid_t {
    // SAFETY: it takes nothing, always succeeds and changes nothing.
    unsafe { libc::gettid() }
}

/// Whether threads can be put behind others and brought back. It is tried once, on a thread of its own.
pub(super) fn can_yield() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let there_and_back = || last(own_thread()).and_then(|()| as_others(own_thread())).is_ok();
        let can = std::thread::spawn(there_and_back).join().unwrap_or(false);
        if !can {
            tracing::info!(
                "a process that does not yield keeps its share of the cores: to put its thread behind others takes CAP_SYS_NICE \
                 or a limit for nice of 0 (in systemd: LimitNICE=0)"
            );
        }
        can
    })
}

/// Puts a thread behind all others. Threads that it starts are not.
pub(super) fn last(thread: libc::pid_t) -> io::Result<()> {
    schedule(thread, libc::SCHED_IDLE)
}

/// Has a thread run as others do.
pub(super) fn as_others(thread: libc::pid_t) -> io::Result<()> {
    schedule(thread, libc::SCHED_OTHER)
}

fn schedule(thread: libc::pid_t, policy: libc::c_int) -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: `none` is valid for the call, which only reads it; a thread that is gone is refused.
    let result = unsafe { libc::sched_setscheduler(thread, policy | libc::SCHED_RESET_ON_FORK, &raw const none) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
