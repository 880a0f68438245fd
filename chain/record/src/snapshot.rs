//! Snapshots: what the entries so far amount to, as entries of their own.
//!
//! Each segment begins with one, so that a log can be opened without its history. A reader that has read the entries before a
//! snapshot knows what it must say, and holds it against that.

use ephor_base::{Budget, Digest, Seq, SessionId, cbor};
use ephor_tlog::VerifierKeys;
use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::{
    fact::{LastNumbers, Subject},
    minimum::Minimum,
    rules::{OpenIntent, Rules},
    standing::StandingPart,
};

/// The bytes of lists one part takes: with everything else, the keys above all, it stays well below the limit of an entry.
const PART_BYTES: usize = 48 << 10;

/// The most bytes that one thing may have that stands: less than a part has, so that whatever stands fits into one.
pub const MAX_ITEM_BYTES: usize = 16 << 10;

/// Whether something of so many bytes may stand.
///
/// # Errors
/// The rule it breaks.
pub(crate) const fn check_item(bytes: usize) -> Result<(), &'static str> {
    if bytes > MAX_ITEM_BYTES {
        Err("what would stand because of it is longer than a snapshot can repeat")
    } else {
        Ok(())
    }
}

/// What the entries before this one amount to, or a part of it. Only the lists are ever divided.
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
    /// The keys in force, in each part.
    #[n(5)]
    pub keys: InForce,
    /// The intents without an outcome, in order of their sequence.
    #[n(6)]
    pub open: Vec<Unsettled>,
    /// The keys that were in force before, oldest first.
    #[n(7)]
    pub earlier: Vec<Retired>,
    /// The sessions that were erased, in the order of their ids, where an earlier version wrote it. A reader that begins here does
    /// not need them: their keys are gone before anything stands behind the erasure, and the vault makes no others.
    #[n(8)]
    pub erased: Vec<SessionId>,
    /// Where the log begins, if the last pruning on the record moved that; in each part.
    #[n(9)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Minimum>,
    /// What else stands; nothing if that is nothing.
    #[n(10)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<StandingPart>,
    /// The vault key, by its name, once a boot has named it; in each part.
    #[n(11)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vault: Option<Digest>,
}

/// The two note verifier keys that sign what comes next.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct InForce {
    /// That of the Ed25519 signer.
    #[n(0)]
    pub ed25519: String,
    /// That of the ML-DSA-65 signer.
    #[n(1)]
    pub ml_dsa_65: String,
}

/// Keys that are never to be used again in this log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Retired {
    /// SHA-256 over the note verifier key of the Ed25519 signer.
    #[n(0)]
    pub ed25519: Digest,
    /// SHA-256 over the note verifier key of the ML-DSA-65 signer.
    #[n(1)]
    pub ml_dsa_65: Digest,
}

impl Retired {
    pub(crate) fn of(keys: &VerifierKeys) -> Self {
        Self { ed25519: Digest::of(keys.ed25519().as_bytes()), ml_dsa_65: Digest::of(keys.ml_dsa_65().as_bytes()) }
    }

    /// Whether these have a key in common.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.ed25519 == other.ed25519 || self.ml_dsa_65 == other.ml_dsa_65
    }
}

/// An intent that has no outcome yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Unsettled {
    /// Where it stands.
    #[n(0)]
    pub intent: Seq,
    /// What it concerns.
    #[n(1)]
    pub subject: Subject,
    /// What was reserved for it.
    #[n(2)]
    pub reserved: Budget,
}

/// The lists of one part.
#[derive(Default)]
struct Lists {
    open: Vec<Unsettled>,
    earlier: Vec<Retired>,
    erased: Vec<SessionId>,
    standing: StandingPart,
    bytes: usize,
}

/// The snapshot of what `rules` know, in as many parts as it needs. None without keys in force: there is nothing to say of
/// a log that has not begun. One of an earlier version lists what was erased.
#[must_use]
pub fn parts(rules: &Rules, with_erased: bool) -> Vec<Snapshot> {
    let Some(keys) = rules.keys.as_deref() else { return Vec::new() };
    let keys = InForce { ed25519: keys.ed25519().to_owned(), ml_dsa_65: keys.ml_dsa_65().to_owned() };
    let lists = lists(rules, with_erased);
    // No memory holds so many that they could not be counted.
    let Ok(of) = u32::try_from(lists.len()) else { return Vec::new() };
    let part = |(part, Lists { open, earlier, erased, standing, .. })| Snapshot {
        part,
        of,
        boots: rules.boots,
        stopped: rules.stopped,
        used: rules.used.last(),
        keys: keys.clone(),
        open,
        earlier,
        erased,
        pruned: rules.pruned,
        standing: Some(standing).filter(|standing| !standing.is_empty()),
        vault: rules.vault,
    };
    (0..).zip(lists).map(part).collect()
}

/// The lists, divided so that each part fits into an entry. There is at least one part.
fn lists(rules: &Rules, with_erased: bool) -> Vec<Lists> {
    let (mut full, mut part) = (Vec::new(), Lists::default());
    for keys in &rules.earlier {
        part.make_room(cbor::to_vec(keys).len(), &mut full);
        part.earlier.push(*keys);
    }
    for session in rules.erased.iter().filter(|_| with_erased) {
        part.make_room(cbor::to_vec(session).len(), &mut full);
        part.erased.push(*session);
    }
    for (intent, OpenIntent { subject, reserved }) in &rules.intents {
        let open = Unsettled { intent: *intent, subject: subject.clone(), reserved: *reserved };
        part.make_room(cbor::to_vec(&open).len(), &mut full);
        part.open.push(open);
    }
    for item in rules.standing.items() {
        part.make_room(item.length(), &mut full);
        part.standing.push(item);
    }
    full.push(part);
    full
}

impl Lists {
    /// Puts this part among the full ones if it does not take so many bytes more.
    fn make_room(&mut self, more: usize, full: &mut Vec<Self>) {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > PART_BYTES {
            full.push(std::mem::replace(self, Self { bytes: more, ..Self::default() }));
        }
    }
}
