//! Threads that a process does not give back: until they come back they run only when no other thread wants to.
//!
//! Of two cores a process that spins takes one for as long as it spins, and nothing can end a thread from outside. But Linux can
//! have it wait behind all others (`SCHED_IDLE`, sched(7)): it then has what no other thread needs. To come back from there takes
//! `CAP_SYS_NICE`, or an `RLIMIT_NICE` that admits a nice value of 0; where a node has neither, its threads stay as they are.

use std::{fs, io, sync::OnceLock, time::Duration};

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

/// What a thread has had of the cores so far, and how long it could have worked and had to wait for one.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Effort {
    pub(super) worked: Duration,
    pub(super) waited: Duration,
}

impl Effort {
    /// Of this thread of ours (`/proc/PID/task/TID/schedstat`); `None` where the system does not say, or it is gone.
    pub(super) fn of(thread: libc::pid_t) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
        let mut fields = text.split_whitespace().map(|field| field.parse().map(Duration::from_nanos));
        Some(Self { worked: fields.next()?.ok()?, waited: fields.next()?.ok()? })
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self { worked: self.worked.saturating_sub(before.worked), waited: self.waited.saturating_sub(before.waited) }
    }
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
