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

/// The wall clock and the monotonic clock.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock. It may step, also backwards.
    fn now(&self) -> Timestamp;
    /// Time since some fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
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
