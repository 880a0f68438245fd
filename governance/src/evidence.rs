//! The conduct of a seat, as an e-process.
//!
//! Null hypothesis: given the past, each call of the seat is refused or fails with probability at most 1/4. Against it
//! we bet on 1/2: a bad call multiplies the wealth by 2, a good one by 2/3. Under the null the wealth is a
//! non-negative supermartingale that starts at 1, so by Ville's inequality it ever reaches 1,000 with probability at
//! most 1/1,000, whenever one looks. Wealth is kept as its binary logarithm in thousandths, rounded against alarm.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// log₂ 2.
const BAD: i64 = 1000;
/// log₂ ⅔, rounded down.
const GOOD: i64 = -585;
/// log₂ 1,000, rounded up: false alarms in at most one honest history of a thousand.
const ALARM: i64 = 9966;

/// What a seat's calls came to so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Encode, Decode)]
pub struct Evidence {
    /// Wealth of the bet, as thousandths of log₂.
    #[n(0)]
    wealth: i64,
    /// Calls counted.
    #[n(1)]
    calls: u64,
}

impl Evidence {
    /// After one more tool call, which was refused or failed if `bad`.
    #[must_use]
    pub const fn after(self, bad: bool) -> Self {
        let step = if bad { BAD } else { GOOD };
        Self { wealth: self.wealth.saturating_add(step), calls: self.calls.saturating_add(1) }
    }

    /// Whether the null is rejected.
    #[must_use]
    pub const fn alarms(self) -> bool {
        self.wealth >= ALARM
    }

    /// How many calls it rests on.
    #[must_use]
    pub const fn calls(self) -> u64 {
        self.calls
    }
}

#[cfg(test)]
mod tests {
    use super::Evidence;

    #[test]
    fn ten_refusals_in_a_row_alarm_and_honest_work_does_not() {
        let bad = (0..10).fold(Evidence::default(), |sum, _| sum.after(true));
        assert!(bad.alarms());
        let nine = (0..9).fold(Evidence::default(), |sum, _| sum.after(true));
        assert!(!nine.alarms());
        let honest = (0..10_000).fold(Evidence::default(), |sum, n| sum.after(n % 5 == 0));
        assert!(!honest.alarms());
    }
}
