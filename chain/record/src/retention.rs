//! Retention: how long entries stay, and how old they are.
//!
//! # Whose time
//! A clock can be wrong, and can be set wrong on purpose, so how old an entry is follows from the record: it is the sum
//! over the gaps between the entries behind it, and a gap counts as [`MOST_GAP`] at most. Entries never go back in time,
//! so a clock that is set back adds nothing. The node that decides on a pruning counts no time behind its own clock either.
//!
//! # What holds
//! - One step of the clock, however large, makes an entry at most a week older. Once the clock is right again, not even that
//!   counts until the time of the step was really reached.
//! - A clock that is set ahead again and again, with entries in between, makes entries old: 26 steps for 180 days. It
//!   stands on the record, and cosignatures of witnesses and backups say when it really was. An attacker who controls both the
//!   clock and the node for that long could as well delete the files.
//! - A log that rests for longer than a week ages slower than the calendar: entries stay longer, never shorter.

use std::{fmt, str::FromStr, time::Duration};

use ephor_base::Timestamp;
use ephor_tlog::tile::WIDTH;

use crate::entry::Entry;

const DAY: u64 = 86_400;

/// What a gap between two entries counts at most: a week of rest is ordinary, and a clock that was set ahead gains little.
pub const MOST_GAP: Duration = Duration::from_secs(7 * DAY);

/// How long every entry stays at least. The least there can be is the default: 180 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Retention(u64);

/// A retention below the floor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{days} days are too few: every entry stays for at least {} days, so that whoever audits this record or resumes from it \
     is never too late", Retention::LEAST.days()
)]
pub struct TooShort {
    /// What was asked for.
    pub days: u64,
}

/// A text that is no retention.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotARetention {
    /// It is no number of days.
    #[error("`{0}` is no number of days, such as `365d`")]
    Unread(String),
    /// It is too short.
    #[error(transparent)]
    TooShort(#[from] TooShort),
}

impl Retention {
    /// The floor.
    pub const LEAST: Self = Self(180 * DAY);

    /// So many days.
    ///
    /// # Errors
    /// [`TooShort`] below the floor.
    pub const fn of_days(days: u64) -> Result<Self, TooShort> {
        let seconds = days.saturating_mul(DAY);
        if seconds < Self::LEAST.0 { Err(TooShort { days }) } else { Ok(Self(seconds)) }
    }

    /// In days.
    #[must_use]
    pub const fn days(self) -> u64 {
        self.0 / DAY
    }

    /// In seconds, as the record has it.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0
    }

    /// In microseconds.
    pub const fn micros(self) -> u64 {
        micros(self.0)
    }
}

/// Seconds as a difference of times.
pub const fn micros(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000_000)
}

impl Default for Retention {
    fn default() -> Self {
        Self::LEAST
    }
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}d", self.days())
    }
}

impl FromStr for Retention {
    type Err = NotARetention;
    fn from_str(text: &str) -> Result<Self, NotARetention> {
        let days = text.strip_suffix('d').unwrap_or(text).trim_end();
        let days = days.parse().map_err(|_| NotARetention::Unread(text.to_owned()))?;
        Ok(Self::of_days(days)?)
    }
}

/// How much time the record has lived through, and had at each place where a pruning could end.
#[derive(Clone, Debug)]
pub struct Ages {
    begin: u64,
    /// The time of the entry before that, if it is known.
    before: Option<Timestamp>,
    /// Times behind this one count as this one.
    now: Timestamp,
    lived: u64,
    last: Option<Timestamp>,
    /// For each further multiple of 256, of the entry before it.
    ends: Vec<Age>,
}

/// An entry: how much had been lived through at it, and its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Age {
    /// How many microseconds had been lived through at its last entry.
    pub lived: u64,
    /// The time of that.
    pub time: Timestamp,
}

impl Ages {
    /// Of the entries from `begin` on. A verifier has no clock: its `now` is the end of time.
    pub const fn new(begin: u64, before: Option<Timestamp>, now: Timestamp) -> Self {
        Self { begin, before, now, lived: 0, last: before, ends: Vec::new() }
    }

    /// Takes the next entry in.
    pub fn pass(&mut self, entry: &Entry) {
        let (time, last) = (entry.time.min(self.now), self.last.unwrap_or(entry.time).min(self.now));
        let most = u64::try_from(MOST_GAP.as_micros()).unwrap_or(u64::MAX);
        self.lived = self.lived.saturating_add(time.0.saturating_sub(last.0).min(most));
        self.last = Some(entry.time);
        if entry.seq.0.saturating_add(1).is_multiple_of(WIDTH) {
            self.ends.push(Age { lived: self.lived, time: entry.time });
        }
    }

    /// How much time has been lived through.
    pub const fn lived(&self) -> u64 {
        self.lived
    }

    /// The time of the last entry.
    pub const fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// The entry before `end`, a multiple of 256, as far as it is known.
    pub fn before(&self, end: u64) -> Option<Age> {
        if end == self.begin {
            return self.before.map(|time| Age { lived: 0, time });
        }
        let place = (end / WIDTH).checked_sub(self.begin / WIDTH)?.checked_sub(1)?;
        self.ends.get(usize::try_from(place).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use ephor_base::Seq;

    use super::*;
    use crate::fact::{Fact, Subject};

    const DAYS: u64 = 86_400_000_000;

    fn lived(times: &[u64], now: u64) -> u64 {
        let mut ages = Ages::new(0, None, Timestamp(now));
        for (seq, time) in (0..).zip(times) {
            let fact = Fact::Stop { number: 1 };
            let (seq, time) = (Seq(seq), Timestamp(*time));
            ages.pass(&Entry { version: 2, seq, time, subject: Subject::default(), fact, content: None });
        }
        ages.lived() / DAYS
    }

    #[test]
    fn a_gap_counts_as_a_week_at_most_and_time_behind_the_clock_as_nothing() {
        assert_eq!(lived(&[0, DAYS, 3 * DAYS], u64::MAX), 3);
        assert_eq!(lived(&[0, 1000 * DAYS], u64::MAX), 7);
        assert_eq!(lived(&[0, 1000 * DAYS, 1001 * DAYS], u64::MAX), 8);
        assert_eq!(lived(&[5 * DAYS, 1000 * DAYS, 1001 * DAYS], 6 * DAYS), 1);
        assert_eq!(lived(&[1000 * DAYS, 1001 * DAYS], 6 * DAYS), 0);
    }

    #[test]
    fn a_retention_below_the_floor_is_none() {
        assert_eq!(Retention::of_days(179), Err(TooShort { days: 179 }));
        assert_eq!("180d".parse(), Ok(Retention::LEAST));
        assert_eq!("365".parse(), Ok(Retention::of_days(365).unwrap()));
        assert!(
            "1y".parse::<Retention>().is_err()
                && "0d".parse::<Retention>().is_err()
                && "".parse::<Retention>().is_err()
        );
    }
}
