//! The machine: its clocks and its randomness.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ephor_base::{Clock, Offset, Random, Timestamp};

use crate::timetable;

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

/// The wall clock, for a client.
pub(crate) fn now() -> Timestamp {
    SystemClock::start().now()
}
