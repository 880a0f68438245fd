//! The machine: its clocks and its randomness.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::Context;
use ephor_base::{Clock, Offset, Random, Timestamp};

use crate::timetable;

/// From this size on a buffer is given back to the system as soon as it is freed.
const LARGE: libc::c_int = 128 << 10;

/// Has the allocator keep little that nobody uses. By itself glibc raises the size from which on it gives buffers back at once to that
/// of the largest one that was freed, and what a node was sent and let go of stays with it. To be called before any thread is started.
pub(crate) fn keep_little_memory() {
    // SAFETY: it sets a number of the allocator, and no other thread runs yet.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}

/// Gives back to the system what was freed in small pieces, as a compiler leaves it.
pub(crate) fn give_memory_back() {
    // SAFETY: it takes no pointer, and other threads may allocate meanwhile.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The clocks of the machine.
#[derive(Debug)]
pub(crate) struct SystemClock(Instant);

impl SystemClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    fn offset(&self, zone: &str, time: Timestamp) -> Option<Offset> {
        timetable::offset(&timetable::zone(zone).ok()?, time)
    }
}

/// The random source of the machine.
#[derive(Debug)]
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, into: &mut [u8]) {
        #[expect(clippy::expect_used, reason = "without randomness no key may be made, and there is no way to go on")]
        getrandom::fill(into).expect("the system gives no random bytes");
    }
}

/// This program, as it is to be started again: the file at its path, which after an upgrade is another than the one that runs.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe().context("this program cannot find itself")?;
    // Linux says so of a file whose name another has by now.
    let before = path.as_os_str().as_bytes().strip_suffix(b" (deleted)");
    Ok(before.filter(|_| !path.exists()).map_or(path.clone(), |before| PathBuf::from(OsStr::from_bytes(before))))
}

/// The wall clock, for a client.
pub(crate) fn now() -> Timestamp {
    SystemClock::start().now()
}
