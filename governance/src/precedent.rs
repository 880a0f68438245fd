//! Precedent: what a person has ruled before, and for what it counts again.
//!
//! It answers the question that a ticket would ask now of the same tool, under the same law, and nothing else: it is looked at only
//! where a call is deferred. What permits speaks for the one person who gave it, and for what that person was shown: for arguments
//! that are the same but for those left free, for no other reason to ask, for no more of any effect, and for no argument that is not
//! trusted and was left free. It answers no denial.

use std::collections::{BTreeMap, BTreeSet};

use ephor_base::{
    Arguments, Decision, Digest, EffectVector, OperatorId, Reason, Seat, Seq, Timestamp, ToolName, arguments::Value,
};

/// A ruling that is to be reused: for a seat and those below it, a tool, arguments of a pattern, and a time.
#[derive(Clone, PartialEq, Debug)]
pub struct Precedent {
    /// Where the ruling stands on the record; its name.
    pub ruling: Seq,
    /// Who gave it. Whether that counts still is for others to say.
    pub by: OperatorId,
    /// The seat, or one above it.
    pub seat: Seat,
    /// The tool.
    pub tool: ToolName,
    /// The digest of its registration.
    pub registration: Digest,
    /// The folder that the tool works in. Another has other files by the same names.
    pub workspace: Box<str>,
    /// What each argument must be, exactly.
    pub arguments: BTreeMap<String, Value>,
    /// The arguments that may be anything, or not there. Any other must not be there.
    pub free: BTreeSet<String>,
    /// The codes of the reasons for which it was asked.
    pub reasons: BTreeSet<String>,
    /// The effects that were shown.
    pub effects: EffectVector,
    /// What was ruled: to permit, or to refuse.
    pub decision: Decision,
    /// The law it was given under.
    pub policy: Digest,
    /// It counts before this.
    pub until: Timestamp,
}

impl Precedent {
    /// Whether it stands for this seat at this time.
    #[must_use]
    pub fn is_for(&self, seat: &Seat, now: Timestamp) -> bool {
        let below = seat.as_str().strip_prefix(self.seat.as_str());
        now < self.until && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Whether it speaks of this call in `workspace`, of a tool with a registration of this digest.
    #[must_use]
    pub fn speaks_of(&self, tool: &ToolName, registration: Digest, workspace: &str, arguments: &Arguments) -> bool {
        let given = self.arguments.iter().all(|(name, value)| arguments.value(name) == Some(value));
        let is_meant = |name: &str| self.arguments.contains_key(name) || self.free.contains(name);
        let known = arguments.iter().all(|(name, _)| is_meant(name));
        self.tool == *tool && self.registration == registration && *self.workspace == *workspace && given && known
    }

    /// Whether a call that is deferred for these reasons, with these effects, is no more than was shown.
    #[must_use]
    pub fn was_shown(&self, reasons: &[Reason], effects: &EffectVector) -> bool {
        let asked = reasons.iter().filter(|reason| reason.decision == Decision::Defer);
        let shown = effects.components().into_iter().zip(self.effects.components());
        asked.into_iter().all(|reason| self.reasons.contains(&reason.code))
            && shown.into_iter().all(|((_, now), (_, then))| now <= then)
    }

    /// The one of these that decides: a refusal before a permission, and of equals the oldest.
    pub fn first<'a>(covering: impl Iterator<Item = &'a Self>) -> Option<&'a Self> {
        covering.max_by_key(|one| (one.decision, std::cmp::Reverse(one.ruling)))
    }
}
