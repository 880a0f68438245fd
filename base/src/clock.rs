//! Time, as it is injected.

use std::{fmt, time::Duration};

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(transparent)]
#[cbor(transparent)]
pub struct Timestamp(#[n(0)] pub u64);

impl Timestamp {
    /// The time `later` after this one.
    #[must_use]
    pub fn plus(self, later: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(later.as_micros()).unwrap_or(u64::MAX)))
    }

    /// Reads a day, `2026-11-21`, or a time in UTC, `2026-11-21T02:08:19Z`, with or without a fraction of milliseconds.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once('T').unwrap_or((text, "00:00:00Z"));
        let [year, month, day] = numbers(date, '-')?;
        let (clock, fraction) = match time.strip_suffix('Z')?.split_once('.') {
            Some((clock, milli)) if milli.len() == 3 => (clock, digits(milli)?),
            Some(_) => return None,
            None => (time.strip_suffix('Z')?, 0),
        };
        let [hour, minute, second] = numbers(clock, ':')?;
        let fits = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
        if !fits || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let days = days(year, month, day);
        // What comes back as another day, such as the 30th of February, is none.
        let same = civil(days) == (year, month, day);
        same.then(|| Self(((days * 86_400 + hour * 3600 + minute * 60 + second) * 1000 + fraction) * 1000))
    }

    /// The time from `earlier` to this one; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// RFC 3339 in UTC with milliseconds, such as `2026-11-21T02:08:19.004Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1_000_000;
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = civil(days);
        let milli = self.0 % 1_000_000 / 1000;
        let (hour, minute, second) = (second / 3600, second % 3600 / 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

/// Days since 1970-01-01 as year, month, day (H. Hinnant, "chrono-compatible low-level date algorithms").
const fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// A day as days since 1970-01-01: the inverse of [`civil`], from the same source.
const fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).saturating_sub(719_468)
}

/// Three numbers; the first of four digits or two, the others of two.
fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut words = text.split(separator);
    let numbers = [words.next()?, words.next()?, words.next()?];
    let [first, second, third] = numbers.map(digits);
    let lengths = numbers.map(str::len);
    let right = matches!(lengths, [4 | 2, 2, 2]) && words.next().is_none();
    Some([first?, second?, third?]).filter(|_| right)
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// How far the clock of a place is ahead of UTC, in whole minutes: less than a day, ahead or behind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Offset(i16);

/// A day, in minutes: more than any clock is ahead or behind.
const DAY: i16 = 1440;

impl Offset {
    /// So many minutes ahead of UTC, or behind it; none for a day or more.
    #[must_use]
    pub fn of_minutes(minutes: i32) -> Option<Self> {
        i16::try_from(minutes).ok().filter(|minutes| -DAY < *minutes && *minutes < DAY).map(Self)
    }

    /// The minutes ahead of UTC.
    #[must_use]
    pub const fn minutes(self) -> i32 {
        self.0 as i32
    }
}

/// As ISO 8601 has it, such as `+02:00`.
impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, minutes) = (if self.0 < 0 { '-' } else { '+' }, self.0.unsigned_abs());
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl Serialize for Offset {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i16(self.0)
    }
}

/// A number from 1 to 2879: the minutes ahead, and a day.
impl<C> Encode<C> for Offset {
    fn encode<W: minicbor::encode::Write>(
        &self,
        to: &mut minicbor::Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        to.u16(self.0.saturating_add(DAY).unsigned_abs())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Offset {
    fn decode(from: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        let number = i32::from(from.u16()?).checked_sub(DAY.into());
        let offset = number.and_then(Self::of_minutes);
        offset.ok_or_else(|| minicbor::decode::Error::message("no clock is ahead by that much"))
    }
}

/// The wall clock and the monotonic clock.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock. It may step, also backwards.
    fn now(&self) -> Timestamp;
    /// Time since some fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
    /// How far the clocks of `zone`, as the IANA names it, are ahead of UTC at `time`; none where no such zone is known.
    fn offset(&self, zone: &str, time: Timestamp) -> Option<Offset> {
        let (_unknown, _time) = (zone, time);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn a_timestamp_reads_as_rfc_3339() {
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(951_782_400_000_000).to_string(), "2000-02-29T00:00:00.000Z");
        assert_eq!(Timestamp(1_795_226_899_004_000).to_string(), "2026-11-21T02:08:19.004Z");
    }
}

#[cfg(test)]
mod parse {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again() {
        for day in (0..40_000).step_by(13) {
            let time = Timestamp(day * 86_400_000_000 + day % 86_400 * 1_000_000 + 17_000);
            assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
        }
        assert_eq!(Timestamp::parse("1970-01-02"), Some(Timestamp(86_400_000_000)));
        assert_eq!(Timestamp::parse("2026-11-21T02:08:19Z").unwrap().to_string(), "2026-11-21T02:08:19.000Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let wrong =
            ["", "yesterday", "2026-13-01", "2026-02-30", "2026-1-1", "2026-11-21T24:00:00Z", "2026-11-21T02:08:19"];
        for text in wrong.into_iter().chain(["1969-12-31", "+026-11-21", "2026-11-21-02", "2026-11-21T02:08:19.1Z"]) {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
