//! What happened to every message, as an observer outside of all nodes counts it.

use std::collections::BTreeMap;

use ephor_mesh::delivery::{DeadReason, Fate};

/// A promise that was not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Violation {
    /// A message was put on the receiver's record more than once.
    Twice(u64),
    /// A message has no fate though nothing is on its way, or more than one.
    Fates(u64, Vec<Fate>),
    /// A fate that is not what happened.
    Untrue(u64, Fate),
    /// A link broke whose bytes were left alone.
    LinkBroke(String),
    /// A stream waits for credit though its reader is done.
    Stalled,
    /// The memberships differ.
    Disagree,
    /// Two nodes that run have no link.
    Unlinked(usize, usize),
}

#[derive(Debug, Default)]
struct Message {
    fates: Vec<Fate>,
    recorded: usize,
    /// The sender lost its memory of it.
    lost: bool,
}

/// Every message that was ever sent, by a number of its own.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    messages: BTreeMap<u64, Message>,
}

impl Ledger {
    pub(crate) fn sent(&mut self) -> u64 {
        let id = u64::try_from(self.messages.len()).unwrap();
        self.messages.insert(id, Message::default());
        id
    }

    /// The sender could not even queue it.
    pub(crate) fn unsent(&mut self, id: u64) {
        self.messages.remove(&id);
    }

    pub(crate) fn recorded(&mut self, id: u64) {
        self.messages.get_mut(&id).unwrap().recorded += 1;
    }

    pub(crate) fn fated(&mut self, id: u64, fate: Fate) {
        self.messages.get_mut(&id).unwrap().fates.push(fate);
    }

    pub(crate) fn lost(&mut self, id: u64) {
        self.messages.get_mut(&id).unwrap().lost = true;
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for (id, message) in &self.messages {
            if message.recorded > 1 {
                found.push(Violation::Twice(*id));
            }
            match (&*message.fates, message.lost) {
                ([], true) => {}
                ([fate], false) => {
                    let (accepted, never) = match fate {
                        Fate::Accepted => (true, false),
                        Fate::Refused(_) | Fate::Dead(DeadReason::Expired) => (false, true),
                        Fate::Dead(_) => (false, false),
                    };
                    if (accepted && message.recorded == 0) || (never && message.recorded > 0) {
                        found.push(Violation::Untrue(*id, *fate));
                    }
                }
                (fates, _) => found.push(Violation::Fates(*id, fates.to_vec())),
            }
        }
        found
    }

    /// Accepted, refused, expired, unanswered, forgotten.
    pub(crate) fn totals(&self) -> [usize; 5] {
        let mut totals = [0; 5];
        for fate in self.messages.values().flat_map(|message| &message.fates) {
            totals[match fate {
                Fate::Accepted => 0,
                Fate::Refused(_) => 1,
                Fate::Dead(DeadReason::Expired) => 2,
                Fate::Dead(DeadReason::Unanswered) => 3,
                Fate::Dead(DeadReason::PeerForgot) => 4,
            }] += 1;
        }
        totals
    }
}
