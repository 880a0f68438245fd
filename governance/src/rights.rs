//! What a seat is entitled to.

use std::collections::BTreeSet;

use ephor_base::Capability;
use serde::{Deserialize, Serialize};

/// A set of capabilities. It can only be made smaller.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rights(BTreeSet<Capability>);

impl Rights {
    /// Exactly these.
    #[must_use]
    pub fn of(capabilities: impl IntoIterator<Item = Capability>) -> Self {
        Self(capabilities.into_iter().collect())
    }

    /// What both allow.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// Whether `capability` is among them.
    #[must_use]
    pub fn allow(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// The capabilities, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = Capability> {
        self.0.iter().copied()
    }
}
