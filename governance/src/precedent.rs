//! Precedent: what a person has ruled before, and for what it counts again.

use std::collections::BTreeMap;

use ephor_base::{Arguments, Decision, Seat, Seq, Timestamp, ToolName, arguments::Value};

/// A ruling that is to be reused: for a seat and those below it, a tool, arguments of a pattern, and a time.
#[derive(Clone, PartialEq, Debug)]
pub struct Precedent {
    /// Where the ruling stands on the record; its name.
    pub ruling: Seq,
    /// The seat, or one above it.
    pub seat: Seat,
    /// The tool.
    pub tool: ToolName,
    /// What each argument must be, exactly. An argument that the pattern does not name may be anything only if
    /// `others` says so.
    pub arguments: BTreeMap<String, Value>,
    /// Whether arguments that the pattern does not name may be there.
    pub others: bool,
    /// What was ruled: to permit, or to refuse.
    pub decision: Decision,
    /// It counts before this.
    pub until: Timestamp,
}

impl Precedent {
    /// Whether it speaks of this call at this time.
    #[must_use]
    pub fn covers(&self, seat: &Seat, tool: &ToolName, arguments: &Arguments, now: Timestamp) -> bool {
        let below = seat.as_str().strip_prefix(self.seat.as_str());
        let here = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let given = self.arguments.iter().all(|(name, value)| arguments.value(name) == Some(value));
        let known = self.others || arguments.iter().all(|(name, _)| self.arguments.contains_key(name));
        here && self.tool == *tool && given && known && now < self.until
    }
}

/// The precedents in force.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Precedents(BTreeMap<Seq, Precedent>);

impl Precedents {
    /// Takes one in.
    pub fn add(&mut self, precedent: Precedent) {
        self.0.insert(precedent.ruling, precedent);
    }

    /// It counts no longer. Whether there was one of that name.
    pub fn revoke(&mut self, ruling: Seq) -> bool {
        self.0.remove(&ruling).is_some()
    }

    /// All of them, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Precedent> {
        self.0.values()
    }

    /// The one that decides this call: a refusal before a permission, and of equals the oldest.
    #[must_use]
    pub fn find(&self, seat: &Seat, tool: &ToolName, arguments: &Arguments, now: Timestamp) -> Option<&Precedent> {
        let covering = self.0.values().filter(|precedent| precedent.covers(seat, tool, arguments, now));
        covering.max_by_key(|precedent| (precedent.decision, std::cmp::Reverse(precedent.ruling)))
    }
}
