//! The conduct of a seat, as an e-process.
//!
//! Null hypothesis: given the past, each call of the seat is refused with probability at most `p0`. One that was
//! permitted and failed is not bad: honest agents look for files that are not there. Against it we
//! bet on a few larger probabilities, and on every call as the one where honest conduct ended: the wealth is the mixture
//! over all starts k, with weight 1/(k(k+1)), of bets that begin there. Each is a non-negative supermartingale under the
//! null that starts at 1, and so is the mixture; by Ville's inequality it ever reaches 1/α with probability at most α,
//! whenever one looks. Because a bet begins anew at every call, a long honest history costs later detection only the
//! logarithm of its length, and shields no abuse.
//!
//! The null may change between two calls, when the operator gives the role of the seat another. The bets on the calls
//! before keep what they won under the null of then, and go on under the new one ([`Evidence::onwards_under`]). Each
//! step multiplies by a likelihood ratio whose expectation under the null in force at that call is at most 1, and which
//! null that is was fixed before the call; so it is still a non-negative supermartingale under the composite null "each
//! call was bad with probability at most the p0 of its time", and Ville's inequality still holds. To begin anew instead
//! would let an operator who edits the configuration, or is talked into it, launder a seat: only an approver ends an alarm.
//!
//! Wealth is a whole number of 2⁻⁴⁸, always rounded against alarm, so that it is the same on every machine. An alarm
//! stays: what was unlikely does not become likely by waiting.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// One, as a fixed-point number.
const ONE: u64 = 1 << 48;
/// 1/α: false alarms in at most one honest history of a thousand.
const ALARM: u64 = 1000;
/// The null where no other is set, per mille.
pub const DEFAULT_P0: u16 = 250;
/// The nulls that there can be, per mille.
pub const P0: std::ops::RangeInclusive<u16> = 1..=900;
/// What we bet the probability is, in per mille of the way from the null to certainty.
const BETS: [u64; 3] = [250, 500, 900];

/// What a seat's calls came to so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Evidence {
    /// The null, per mille, 1 to 900.
    #[n(0)]
    p0: u16,
    /// For each bet the wealth of those that have begun.
    #[n(1)]
    begun: [u64; 3],
    /// Calls counted.
    #[n(2)]
    calls: u64,
    /// Whether the wealth has reached 1/α.
    #[n(3)]
    alarmed: bool,
}

impl Default for Evidence {
    /// Under [`DEFAULT_P0`], a quarter: honest agents try what is refused.
    fn default() -> Self {
        Self::under(DEFAULT_P0)
    }
}

impl Evidence {
    /// Nothing yet, under the null that at most `p0` per mille of the calls are bad; 1 to 900.
    #[must_use]
    pub const fn under(p0: u16) -> Self {
        Self { p0: within(p0), begun: [0; 3], calls: 0, alarmed: false }
    }

    /// The same evidence, from the next call on under another null. Nothing that was won is lost, and an alarm stays.
    #[must_use]
    pub const fn onwards_under(self, p0: u16) -> Self {
        Self { p0: within(p0), ..self }
    }

    /// The null, per mille of the calls.
    #[must_use]
    pub const fn p0(self) -> u16 {
        self.p0
    }

    /// After one more tool call, which was refused if `bad`.
    #[must_use]
    pub fn after(self, bad: bool) -> Self {
        let calls = self.calls.saturating_add(1);
        // The weight of the bet that begins here: 1/(k(k+1)).
        let product = u128::from(calls).saturating_mul(u128::from(calls).saturating_add(1));
        let weight = u64::try_from(u128::from(ONE).checked_div(product).unwrap_or(0)).unwrap_or(0);
        let p0 = u64::from(self.p0);
        let mut begun = self.begun;
        for (wealth, bet) in begun.iter_mut().zip(BETS) {
            let p1 = p0.saturating_add((1000 - p0).saturating_mul(bet) / 1000);
            let (numerator, denominator) = if bad { (p1, p0) } else { (1000 - p1, 1000 - p0) };
            *wealth = times(wealth.saturating_add(weight), numerator, denominator);
        }
        let next = Self { begun, calls, ..self };
        Self { alarmed: self.alarmed || next.wealth() >= ALARM * ONE, ..next }
    }

    /// The wealth of the whole mixture, in 2⁻⁴⁸.
    #[must_use]
    fn wealth(&self) -> u64 {
        let sum = self.begun.iter().fold(0_u128, |sum, wealth| sum.saturating_add(u128::from(*wealth)));
        // Those that have not begun are worth what they were given: all that is left, 1/(k+1).
        let rest = ONE / self.calls.saturating_add(1);
        u64::try_from(sum / 3).unwrap_or(u64::MAX).saturating_add(rest)
    }

    /// Whether the null is rejected, now or before.
    #[must_use]
    pub const fn alarms(self) -> bool {
        self.alarmed
    }

    /// How many calls it rests on.
    #[must_use]
    pub const fn calls(self) -> u64 {
        self.calls
    }
}

/// The null that is meant, as far as there can be one.
const fn within(p0: u16) -> u16 {
    match p0 {
        0 => *P0.start(),
        1..=900 => p0,
        901.. => *P0.end(),
    }
}

/// `wealth` × `numerator` / `denominator`, rounded down. It never reaches the top: the alarm is far below.
fn times(wealth: u64, numerator: u64, denominator: u64) -> u64 {
    let product = u128::from(wealth).saturating_mul(u128::from(numerator));
    u64::try_from(product.checked_div(u128::from(denominator)).unwrap_or(0)).unwrap_or(u64::MAX)
}
