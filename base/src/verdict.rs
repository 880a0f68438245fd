//! What governance says of an action.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{Digest, EffectVector};

/// Permit, defer or deny. Ordered by strictness: the strictest of several wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may run.
    #[n(0)]
    Permit,
    /// A person has to say.
    #[n(1)]
    Defer,
    /// It may not run.
    #[n(2)]
    Deny,
}

/// Who gave a reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Branch {
    /// The capability gate: is the caller entitled at all?
    #[n(0)]
    Capability,
    /// The constitution.
    #[n(1)]
    Legislative,
    /// Thresholds, budgets, rulings.
    #[n(2)]
    Executive,
    /// The conduct of the seat.
    #[n(3)]
    Judicial,
}

/// One reason of a verdict.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Reason {
    /// Who gives it.
    #[n(0)]
    pub branch: Branch,
    /// What that branch alone would decide.
    #[n(1)]
    pub decision: Decision,
    /// A fixed name a program can match, such as `write-needs-approval`. Never holds private text.
    #[n(2)]
    pub code: String,
}

/// Permit, defer or deny, with everything that led to it. Plain data: it lets nothing run by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Verdict {
    /// The strictest of the reasons.
    #[n(0)]
    pub decision: Decision,
    /// Every branch's reasons, at least one.
    #[n(1)]
    pub reasons: Vec<Reason>,
    /// The effect vector the gate derived.
    #[n(2)]
    pub effects: EffectVector,
    /// SHA-256 of the constitution and operator policy that decided.
    #[n(3)]
    pub policy: Digest,
}

impl Verdict {
    /// The reasons as decisive as the verdict itself, for a person: codes with spaces for hyphens.
    #[must_use]
    pub fn why(&self) -> String {
        let decisive = self.reasons.iter().filter(|reason| reason.decision == self.decision);
        decisive.map(|reason| reason.code.replace('-', " ")).collect::<Vec<_>>().join("; ")
    }
}
