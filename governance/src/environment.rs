//! Where a node runs, and so how much effect needs no person.

use ephor_base::PerMille;
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// From here on risk or novelty counts in full, with a plan or without: what cannot be undone, and is large.
pub const LARGE: PerMille = PerMille::saturating(800);

/// Where a node runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Environment {
    /// One person's own machine.
    #[n(0)]
    Dev,
    /// Like production, without its data.
    #[n(1)]
    Staging,
    /// Where it counts.
    #[n(2)]
    Production,
}

impl Environment {
    /// All of them, the most lenient first.
    pub const ALL: [Self; 3] = [Self::Dev, Self::Staging, Self::Production];

    /// A component of the effect vector at or over this defers.
    #[must_use]
    pub const fn threshold(self) -> PerMille {
        PerMille::saturating(match self {
            Self::Dev => 900,
            Self::Staging => 600,
            Self::Production => 300,
        })
    }

    /// How much less the risk and the novelty of a call count here that is a step of the plan: it was asked for. Where either is
    /// [`LARGE`] or more, nothing less.
    #[must_use]
    pub const fn relief(self) -> PerMille {
        PerMille::saturating(match self {
            Self::Dev => 0,
            Self::Staging => 200,
            Self::Production => 400,
        })
    }

    /// Its name in configuration and record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Staging => "staging",
            Self::Production => "production",
        }
    }
}
