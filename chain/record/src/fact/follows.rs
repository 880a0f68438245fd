//! What a log follows that was begun because another was given up.

use ephor_base::Digest;
use minicbor::{Decode, Encode};
use serde::Serialize;

/// The head of a log that was given up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Follows {
    /// Its origin line.
    #[n(0)]
    pub origin: String,
    /// How many entries of it could still be trusted.
    #[n(1)]
    pub size: u64,
    /// The RFC 6962 root over those.
    #[n(2)]
    pub root: Digest,
    /// What was wrong with it, in words.
    #[n(3)]
    pub reason: String,
    /// The highest numbers it may have used up, so that none is used again.
    #[n(4)]
    pub used: LastNumbers,
}

/// The highest numbers a log has used up; 0 where it used none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Encode, Decode)]
pub struct LastNumbers {
    /// Of processes.
    #[n(0)]
    pub pid: u64,
    /// Of calls.
    #[n(1)]
    pub call: u64,
    /// Of messages.
    #[n(2)]
    pub message: u64,
    /// Of tickets.
    #[n(3)]
    pub ticket: u64,
}

impl LastNumbers {
    /// The highest numbers after `entries` more: an entry brings at most one of each.
    pub const fn after(self, entries: u64) -> Self {
        Self {
            pid: self.pid.saturating_add(entries),
            call: self.call.saturating_add(entries),
            message: self.message.saturating_add(entries),
            ticket: self.ticket.saturating_add(entries),
        }
    }
}
