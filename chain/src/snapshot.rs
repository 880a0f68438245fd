//! Snapshots: what the entries so far amount to, as entries of their own.
//!
//! Each segment begins with one, so that a log can be opened without its history. Whoever has read the entries before a
//! snapshot knows what it must say, and holds it against that.

use ephor_base::{Budget, Digest, Seq, cbor};
use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::{
    record::{LastNumbers, Subject},
    rules::{OpenIntent, Rules},
};

/// The bytes of open intents one part takes: with everything else it stays well below the limit of an entry.
const PART_BYTES: usize = 48 << 10;

/// What the entries before this one amount to, or a part of it. Only the list of intents is ever divided.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Snapshot {
    /// Which part this is, from 0.
    #[n(0)]
    pub part: u32,
    /// How many parts there are. They stand right behind one another.
    #[n(1)]
    pub of: u32,
    /// How many boots there were.
    #[n(2)]
    pub boots: u64,
    /// Whether the last boot has stopped cleanly.
    #[n(3)]
    pub stopped: bool,
    /// The highest numbers in use.
    #[n(4)]
    pub used: LastNumbers,
    /// SHA-256 over the two note verifier keys in force, each with a line feed, Ed25519 first.
    #[n(5)]
    pub keys: Digest,
    /// The intents without an outcome, in order of their sequence.
    #[n(6)]
    pub open: Vec<Unsettled>,
}

/// An intent that has no outcome yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Unsettled {
    /// Where it stands.
    #[n(0)]
    pub intent: Seq,
    /// Whom it concerns.
    #[n(1)]
    pub subject: Subject,
    /// What was reserved for it.
    #[n(2)]
    pub reserved: Budget,
}

/// The digest by which a snapshot names the keys of a log.
pub(crate) fn keys_digest(ed25519: &str, ml_dsa_65: &str) -> Digest {
    Digest::of(format!("{ed25519}\n{ml_dsa_65}\n").as_bytes())
}

/// The snapshot of what `rules` know, in as many parts as it needs.
pub(crate) fn parts(rules: &Rules) -> Vec<Snapshot> {
    let groups = groups(rules);
    let of = u32::try_from(groups.len()).unwrap_or(u32::MAX);
    let part = |(part, open)| Snapshot {
        part,
        of,
        boots: rules.boots,
        stopped: rules.stopped,
        used: rules.used.last(),
        keys: rules.keys,
        open,
    };
    (0..).zip(groups).map(part).collect()
}

/// The open intents, divided so that each group fits into an entry. There is at least one group.
fn groups(rules: &Rules) -> Vec<Vec<Unsettled>> {
    let (mut groups, mut bytes) = (vec![Vec::new()], 0usize);
    for (intent, OpenIntent { subject, reserved }) in &rules.intents {
        let open = Unsettled { intent: *intent, subject: subject.clone(), reserved: *reserved };
        bytes = bytes.saturating_add(cbor::to_vec(&open).len());
        if bytes > PART_BYTES {
            groups.push(Vec::new());
            bytes = 0;
        }
        if let Some(group) = groups.last_mut() {
            group.push(open);
        }
    }
    groups
}
