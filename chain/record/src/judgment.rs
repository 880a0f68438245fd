//! What approvers say beyond one ticket: that an answer is to be used again, that it is not any more, and that a seat may act
//! again which its conduct suspended.
//!
//! An answer that is to be used again stands until its time is up, it is revoked, or its session is erased, under whose key the
//! arguments that it speaks of are sealed. A judgment bears the approver's signature for this log, and for the one entry that it
//! ends; so none counts twice or elsewhere.

use std::time::Duration;

use ephor_base::{Decision, Digest, EffectVector, OperatorId, Seat, Seq, SessionId, Timestamp, ToolName, cbor};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::fact::{Fact, RulingOn, Subject};

/// Signed before the judgment, so that the signature can be taken for nothing else.
const DOMAIN: &[u8] = b"ephor judgment v1\n";

/// The longest time for which an answer is used again: 90 days.
pub const LONGEST: Duration = Duration::from_secs(90 * 86_400);

/// For what an answer is used again: what the person who gave it was shown, and no more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
pub struct Always {
    /// For this seat and those below it.
    #[n(0)]
    pub seat: Seat,
    /// For this tool.
    #[n(1)]
    pub tool: ToolName,
    /// While this is its registration.
    #[n(2)]
    pub registration: Digest,
    /// The arguments of the call that may be anything. All others are as they were, and no further ones are there.
    #[n(3)]
    pub free: Vec<String>,
    /// Why the call was deferred: the codes of the reasons. It answers nothing that is asked for another.
    #[n(4)]
    pub reasons: Vec<String>,
    /// Its effects. It answers nothing that has more of any.
    #[n(5)]
    pub effects: EffectVector,
    /// Before this.
    #[n(6)]
    pub until: Timestamp,
}

/// An answer that is to be used again, as it stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Reused {
    /// The entry of the answer.
    #[n(0)]
    pub ruling: Seq,
    /// The session whose key seals the arguments.
    #[n(1)]
    pub session: SessionId,
    /// Who gave it.
    #[n(2)]
    pub operator: OperatorId,
    /// Whether it permits.
    #[n(3)]
    pub decision: Decision,
    /// The law it was given under. It counts under no other.
    #[n(4)]
    pub policy: Digest,
    /// For what.
    #[n(5)]
    pub always: Always,
}

impl Reused {
    /// What an entry at `ruling` says, if it is an answer that is to be used again.
    #[must_use]
    pub fn of(ruling: Seq, subject: &Subject, fact: &Fact) -> Option<Self> {
        let Fact::Ruling { on: RulingOn::Ticket(_), decision, how, policy, always: Some(always), .. } = fact else {
            return None;
        };
        let (session, operator, policy) = (subject.session?, subject.operator?, (*policy)?);
        let always = Always::clone(always);
        (how == "answered").then_some(Self { ruling, session, operator, decision: *decision, policy, always })
    }
}

/// What an approver ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum Judgment {
    /// An answer is used no more.
    #[n(0)]
    Revoke {
        /// The entry of the answer.
        #[n(0)]
        ruling: Seq,
    },
    /// A seat may act again.
    #[n(1)]
    Lift {
        /// Its session.
        #[n(0)]
        session: SessionId,
        /// The entry with which its conduct suspended it.
        #[n(1)]
        since: Seq,
    },
}

impl Judgment {
    /// What is signed, for the log of this origin, with the approver's words.
    #[must_use]
    pub fn signed_bytes(&self, origin: &str, note: &str) -> Vec<u8> {
        [DOMAIN, &cbor::to_vec(&Bound { origin, judgment: *self, note })].concat()
    }

    /// The fact, with the approver's signature.
    #[must_use]
    pub const fn signed(self, note: String, signature: Vec<u8>) -> Fact {
        match self {
            Self::Revoke { ruling } => Fact::Revoked { ruling, note, signature },
            Self::Lift { since, .. } => Fact::Lifted { since, note, signature },
        }
    }

    /// The judgment that an entry records, its words and its signature.
    pub fn of<'a>(subject: &Subject, fact: &'a Fact) -> Option<(Self, &'a str, &'a [u8])> {
        match fact {
            Fact::Revoked { ruling, note, signature } => Some((Self::Revoke { ruling: *ruling }, note, signature)),
            Fact::Lifted { since, note, signature } => {
                Some((Self::Lift { session: subject.session?, since: *since }, note, signature))
            }
            _ => None,
        }
    }
}

#[derive(Encode)]
struct Bound<'a> {
    #[n(0)]
    origin: &'a str,
    #[n(1)]
    judgment: Judgment,
    #[n(2)]
    note: &'a str,
}
