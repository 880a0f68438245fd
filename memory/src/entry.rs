//! An entry of the log as memory sees it: a reference, a place in the order, and who and when. No text.

use ephor_base::{Confidentiality, Digest, Seat, Seq, SessionId, Timestamp};
use minicbor::{Decode, Encode};

/// The name of a log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode)]
#[cbor(transparent)]
pub struct Origin(#[n(0)] pub Digest);

/// One entry of one log, across nodes: the log, the place in it, and the digest of the leaf that stands there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode)]
pub struct EntryRef {
    /// The log.
    #[n(0)]
    pub origin: Origin,
    /// The place in that log, from 0.
    #[n(1)]
    pub seq: Seq,
    /// The leaf hash (RFC 6962) of the entry.
    #[n(2)]
    pub leaf: Digest,
}

/// A place in the one order of everything that a node knows of.
///
/// The node's own entries stand at their sequence number. An entry of another log stands right before the own entry that
/// first names it: that is when this node learnt of it. Several such entries stand in the order of their references. So
/// the order is total, and nothing that this node learns later can change it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Encode, Decode)]
pub struct Moment {
    #[n(0)]
    known: Seq,
    #[n(1)]
    place: Place,
}

/// Entries of other logs come before the own entry that names them, so the order of the variants matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Encode, Decode)]
enum Place {
    #[n(0)]
    Foreign(#[n(0)] EntryRef),
    #[n(1)]
    Own,
}

impl Moment {
    /// The moment of the node's own entry `seq`.
    #[must_use]
    pub const fn own(seq: Seq) -> Self {
        Self { known: seq, place: Place::Own }
    }

    /// The moment of another log's `entry`, which the own entry `known` is the first to name.
    #[must_use]
    pub const fn foreign(entry: EntryRef, known: Seq) -> Self {
        Self { known, place: Place::Foreign(entry) }
    }

    /// The own entry from which the node knows of it: itself, or the first that names it.
    #[must_use]
    pub const fn known(&self) -> Seq {
        self.known
    }

    /// Whether this is a moment that `id` can have in the log `own`.
    #[must_use]
    pub fn fits(&self, id: &EntryRef, own: Origin) -> bool {
        match self.place {
            Place::Own => id.origin == own && id.seq == self.known,
            Place::Foreign(entry) => entry == *id && id.origin != own,
        }
    }
}

/// What an entry records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Encode, Decode)]
#[cbor(index_only)]
pub enum EntryKind {
    /// A message was accepted.
    #[n(0)]
    Message,
    /// A model answered.
    #[n(1)]
    ModelAnswer,
    /// A call was made: its intent.
    #[n(2)]
    Call,
    /// A call came to an end.
    #[n(3)]
    Outcome,
    /// A person ruled on a ticket, or an operator acted.
    #[n(4)]
    Ruling,
    /// Something was remembered, superseded or forgotten.
    #[n(5)]
    Memory,
}

impl EntryKind {
    /// Every kind, in the order of the variants.
    pub const ALL: [Self; 6] =
        [Self::Message, Self::ModelAnswer, Self::Call, Self::Outcome, Self::Ruling, Self::Memory];

    /// The name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::ModelAnswer => "model answer",
            Self::Call => "call",
            Self::Outcome => "outcome",
            Self::Ruling => "ruling",
            Self::Memory => "memory",
        }
    }
}

/// What memory keeps of an entry.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Entry {
    /// Its reference.
    #[n(0)]
    pub id: EntryRef,
    /// Its place in the order of this node.
    #[n(1)]
    pub moment: Moment,
    /// What it records.
    #[n(2)]
    pub kind: EntryKind,
    /// The session that it belongs to, and is erased with.
    #[n(3)]
    pub session: SessionId,
    /// The seat of the agent.
    #[n(4)]
    pub agent: Seat,
    /// The time that the record gives it.
    #[n(5)]
    pub time: Timestamp,
    /// Who may know of it: as much as of what it says.
    #[n(6)]
    pub confidentiality: Confidentiality,
}
