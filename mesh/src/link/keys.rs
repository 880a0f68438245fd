//! How much one direction's key has done.

use std::time::Duration;

use super::limits::{Limits, MOST_KEY_AGE, MOST_KEY_BYTES};
use crate::seal::MOST_SEALED;

/// The key of one direction, as it is counted on either side.
#[derive(Debug)]
pub(super) struct KeyUse {
    generation: u32,
    bytes: u64,
    since: Duration,
}

impl KeyUse {
    pub(super) const fn new(now: Duration) -> Self {
        Self { generation: 0, bytes: 0, since: now }
    }

    /// Counts a message on the wire.
    pub(super) fn count(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// The generation that has to follow now, if the sender is to change its key.
    pub(super) fn due(&self, now: Duration, limits: &Limits) -> Option<u32> {
        let due = self.bytes >= limits.key_bytes || now >= self.ages(limits);
        due.then(|| self.generation.checked_add(1))?
    }

    /// When the key is too old for its sender.
    pub(super) const fn ages(&self, limits: &Limits) -> Duration {
        self.since.saturating_add(limits.key_age)
    }

    /// The next key begins; whether it is the one with this number.
    pub(super) fn turn(&mut self, now: Duration, generation: u32) -> bool {
        let next = self.generation.checked_add(1) == Some(generation);
        if next {
            *self = Self { generation, bytes: 0, since: now };
        }
        next
    }

    /// Whether the peer uses this key for longer than it may. It sees that the key has done enough after the frame that made it so, and
    /// the frame that changes the key follows: two beyond its limit. Its clock and ours are read at different ends of the line, so time
    /// counts twice.
    pub(super) fn is_stale(&self, now: Duration) -> bool {
        let two = u64::try_from(MOST_SEALED).unwrap_or(u64::MAX).saturating_mul(2);
        let most = MOST_KEY_BYTES.saturating_add(two);
        self.bytes > most || now.saturating_sub(self.since) > MOST_KEY_AGE.saturating_mul(2)
    }
}
