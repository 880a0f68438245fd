//! A pruning on the record: what may be taken away, and what that amounts to.

use ephor_base::{Digest, Timestamp};
use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::snapshot::Snapshot;

/// What lies before `minimum` may be taken away, or a part of saying so. Only the lists of `state` are ever divided; the
/// parts stand right behind one another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Pruning {
    /// The first entry that stays; a multiple of 256, and more than in the pruning before.
    #[n(0)]
    pub minimum: u64,
    /// How many seconds every entry is kept at least: 180 days or more.
    #[n(1)]
    pub keep_seconds: u64,
    /// The time of the youngest entry that was old enough to go.
    #[n(2)]
    pub floor: Timestamp,
    /// The time of the last entry that goes.
    #[n(3)]
    pub newest: Timestamp,
    /// The published size under which this was decided.
    #[n(4)]
    pub size: u64,
    /// The root at that size.
    #[n(5)]
    pub root: Digest,
    /// What the entries that go amount to, as a snapshot in the place of `minimum` would say it.
    #[n(6)]
    pub state: Snapshot,
}

impl Pruning {
    /// What is the same in each part.
    pub(crate) fn terms(&self) -> (u64, u64, Timestamp, Timestamp, u64, Digest, u32) {
        let Self { minimum, keep_seconds, floor, newest, size, root, ref state } = *self;
        (minimum, keep_seconds, floor, newest, size, root, state.of)
    }
}
