//! The time of the record: what orders its entries and ends what is to end on it.
//!
//! It is that of the wall clock as long as the wall clock behaves like one. It never goes back, so it does not stand still either: when
//! the wall clock lies behind, it goes on with the monotonic clock until the other has caught up. And it moves on by no more than
//! ten years at once: a clock that claims more is wrong, and a record that believed it could never be put right.

use std::time::Duration;

use ephor_base::Timestamp;

/// The most by which the time of the record moves on at once: longer than a home rests, shorter than anything a broken clock says.
pub(crate) const MOST_STEP: Duration = Duration::from_secs(10 * 366 * 86_400);

/// 10000-01-01T00:00:00Z: a time is written with four digits for the year.
const END: Timestamp = Timestamp(253_402_300_800_000_000);

/// The time of a record that is being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordClock {
    /// What time it was on the record, and on the monotonic clock.
    time: Timestamp,
    at: Duration,
}

impl RecordClock {
    /// Begins behind `last`, the time of the last entry; or says that the wall clock cannot be right.
    pub(crate) fn begin(last: Option<Timestamp>, (wall, at): (Timestamp, Duration)) -> Option<Self> {
        let right = wall < END && last.is_none_or(|last| wall.since(last) <= MOST_STEP);
        right.then(|| Self { time: last.map_or(wall, |last| last.max(wall)), at })
    }

    /// What time it is.
    pub(crate) fn now(&mut self, (wall, monotonic): (Timestamp, Duration)) -> Timestamp {
        let gone_on = self.time.plus(monotonic.saturating_sub(self.at));
        let right = wall >= gone_on && wall.since(gone_on) <= MOST_STEP && wall < END;
        (self.time, self.at) = (if right { wall } else { gone_on }, monotonic.max(self.at));
        self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Timestamp {
        Timestamp(seconds * 1_000_000)
    }

    #[test]
    fn time_follows_the_wall_clock_and_goes_on_where_that_goes_back_or_leaps() {
        let mut clock = RecordClock::begin(Some(at(50)), (at(100), SECOND)).unwrap();
        assert_eq!(clock.now((at(105), SECOND * 2)), at(105));
        assert_eq!(clock.now((at(40), SECOND * 4)), at(107));
        assert_eq!(clock.now((Timestamp(u64::MAX), SECOND * 5)), at(108));
        assert_eq!(clock.now((at(109), SECOND * 6)), at(109));
        assert_eq!(clock.now((at(109), SECOND * 3)), at(109));
    }

    #[test]
    fn a_record_that_is_ahead_of_the_clock_goes_on_from_its_end() {
        let mut clock = RecordClock::begin(Some(at(1000)), (at(100), SECOND)).unwrap();
        assert_eq!(clock.now((at(101), SECOND * 2)), at(1001));
        assert_eq!(clock.now((at(1500), SECOND * 3)), at(1500));
    }

    #[test]
    fn a_clock_that_no_record_can_believe_is_refused() {
        let year = 366 * 86_400;
        assert!(RecordClock::begin(Some(at(100)), (at(100 + 9 * year), SECOND)).is_some());
        assert!(RecordClock::begin(Some(at(100)), (at(100 + 11 * year), SECOND)).is_none());
        assert!(RecordClock::begin(None, (at(100 + 11 * year), SECOND)).is_some());
        assert!(RecordClock::begin(None, (Timestamp(u64::MAX), SECOND)).is_none());
    }
}
