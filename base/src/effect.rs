//! What an action may do to the world, as five integers.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// A share of a thousand, 0 to 1,000. Integers, so that nothing compares as NaN.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Encode, Decode)]
#[serde(transparent)]
#[cbor(transparent)]
pub struct PerMille(#[n(0)] u16);

impl PerMille {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// All of it.
    pub const MAX: Self = Self(1000);

    /// `value`, or 1,000 if it is larger.
    #[must_use]
    pub const fn saturating(value: u16) -> Self {
        if value > 1000 { Self::MAX } else { Self(value) }
    }

    /// So much less, down to nothing.
    #[must_use]
    pub const fn less(self, relief: Self) -> Self {
        Self(self.0.saturating_sub(relief.0))
    }

    /// The number, 0 to 1,000.
    #[must_use]
    pub const fn value(self) -> u16 {
        self.0
    }
}

impl<'de> Deserialize<'de> for PerMille {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = u16::deserialize(deserializer)?;
        if value > 1000 {
            return Err(serde::de::Error::custom(format!("`{value}` is more than 1000 per mille")));
        }
        Ok(Self(value))
    }
}

/// The effect vector: how much an action could harm, in five dimensions.
///
/// Derived by the gate from the tool's registration and the arguments; never supplied by the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
pub struct EffectVector {
    /// Damage that is hard to undo.
    #[n(0)]
    pub risk: PerMille,
    /// Unequal treatment of people.
    #[n(1)]
    pub fairness: PerMille,
    /// Disclosure of what is not public.
    #[n(2)]
    pub privacy: PerMille,
    /// Distance from what this seat has done before.
    #[n(3)]
    pub novelty: PerMille,
    /// Weakening of a boundary.
    #[n(4)]
    pub security: PerMille,
}

impl EffectVector {
    /// No effect at all.
    pub const NONE: Self = Self::new(0, 0, 0, 0, 0);
    /// What an action without a registration is taken to do.
    pub const MAX: Self = Self::new(1000, 1000, 1000, 1000, 1000);

    /// A vector from per-mille values; larger ones count as 1,000.
    #[must_use]
    pub const fn new(risk: u16, fairness: u16, privacy: u16, novelty: u16, security: u16) -> Self {
        Self {
            risk: PerMille::saturating(risk),
            fairness: PerMille::saturating(fairness),
            privacy: PerMille::saturating(privacy),
            novelty: PerMille::saturating(novelty),
            security: PerMille::saturating(security),
        }
    }

    /// Each dimension with its name, in the fixed order.
    #[must_use]
    pub const fn components(&self) -> [(&'static str, PerMille); 5] {
        [
            ("risk", self.risk),
            ("fairness", self.fairness),
            ("privacy", self.privacy),
            ("novelty", self.novelty),
            ("security", self.security),
        ]
    }

    /// The larger of the two in each dimension.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        Self {
            risk: self.risk.max(other.risk),
            fairness: self.fairness.max(other.fairness),
            privacy: self.privacy.max(other.privacy),
            novelty: self.novelty.max(other.novelty),
            security: self.security.max(other.security),
        }
    }
}
