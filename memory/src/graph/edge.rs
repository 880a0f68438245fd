//! Edges: what kinds there are, and the records that show one.

use ephor_base::Seq;
use minicbor::{Decode, Encode};

use super::GraphError;
use crate::entry::EntryRef;

/// The most records that one edge names. What more records show is shown already.
pub const MOST_EVIDENCE: usize = 8;

/// How the earlier of two entries bears on the later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Encode, Decode)]
#[cbor(index_only)]
pub enum EdgeKind {
    /// The earlier brought the later about.
    #[n(0)]
    Causes,
    /// Without the earlier the later could not be, as a ruling enables a call.
    #[n(1)]
    Enables,
    /// The later comes next, in the same session. Says nothing of causes.
    #[n(2)]
    Follows,
    /// The later says the opposite of the earlier.
    #[n(3)]
    Contradicts,
    /// The earlier supports what the later says.
    #[n(4)]
    EvidenceFor,
    /// The later was started by the earlier, as a turn is by a schedule.
    #[n(5)]
    TriggeredBy,
}

impl EdgeKind {
    /// Every kind, in the order of the variants.
    pub const ALL: [Self; 6] =
        [Self::Causes, Self::Enables, Self::Follows, Self::Contradicts, Self::EvidenceFor, Self::TriggeredBy];

    /// The name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Causes => "causes",
            Self::Enables => "enables",
            Self::Follows => "follows",
            Self::Contradicts => "contradicts",
            Self::EvidenceFor => "evidence for",
            Self::TriggeredBy => "triggered by",
        }
    }

    /// How strongly the edge ties its ends together, for the spectral view and for recall: 1 for a cause, less for
    /// what merely stands near. Fixed, so that figures of different days compare.
    #[must_use]
    pub const fn weight(self) -> f64 {
        match self {
            Self::Causes | Self::TriggeredBy => 1.0,
            Self::Enables | Self::EvidenceFor => 0.75,
            Self::Contradicts => 0.5,
            Self::Follows => 0.25,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of edge kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgeKinds(u8);

impl EdgeKinds {
    /// All kinds.
    pub const ALL: Self = Self::of(&EdgeKind::ALL);
    /// The kinds by which one entry leads to another.
    pub const CAUSAL: Self =
        Self::of(&[EdgeKind::Causes, EdgeKind::Enables, EdgeKind::EvidenceFor, EdgeKind::TriggeredBy]);

    /// The set of these kinds.
    #[must_use]
    pub const fn of(kinds: &[EdgeKind]) -> Self {
        let (mut bits, mut rest) = (0, kinds);
        while let [kind, more @ ..] = rest {
            bits |= kind.bit();
            rest = more;
        }
        Self(bits)
    }

    /// Whether `kind` is in the set.
    #[must_use]
    pub const fn contains(self, kind: EdgeKind) -> bool {
        self.0 & kind.bit() != 0
    }
}

/// The records of this node's log that show an edge: 1 to [`MOST_EVIDENCE`], ascending, each once.
#[derive(Clone, PartialEq, Eq, Debug, Encode)]
#[cbor(transparent)]
pub struct Evidence(#[n(0)] Box<[Seq]>);

impl Evidence {
    /// From the records that show the edge, in any order.
    ///
    /// # Errors
    /// [`GraphError::NoEvidence`] for none, [`GraphError::TooMuchEvidence`] for more than [`MOST_EVIDENCE`].
    pub fn new(records: &[Seq]) -> Result<Self, GraphError> {
        let mut records = records.to_vec();
        records.sort_unstable();
        records.dedup();
        match records.len() {
            0 => Err(GraphError::NoEvidence),
            1..=MOST_EVIDENCE => Ok(Self(records.into())),
            more => Err(GraphError::TooMuchEvidence(more)),
        }
    }

    /// One record.
    #[must_use]
    pub fn one(record: Seq) -> Self {
        Self(Box::new([record]))
    }

    /// The records, ascending.
    #[must_use]
    pub fn records(&self) -> &[Seq] {
        &self.0
    }

    /// The earliest [`MOST_EVIDENCE`] records of both.
    #[must_use]
    pub(super) fn joined(&self, other: &Self) -> Self {
        let mut all: Vec<Seq> = self.0.iter().chain(&other.0).copied().collect();
        all.sort_unstable();
        all.dedup();
        all.truncate(MOST_EVIDENCE);
        Self(all.into())
    }
}

impl<'b, C> Decode<'b, C> for Evidence {
    fn decode(from: &mut minicbor::Decoder<'b>, ctx: &mut C) -> Result<Self, minicbor::decode::Error> {
        let records: Vec<Seq> = Decode::decode(from, ctx)?;
        Self::new(&records).map_err(|_| minicbor::decode::Error::message("no evidence"))
    }
}

/// An edge as it is told: from the earlier entry to the later.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Link {
    /// The earlier entry.
    #[n(0)]
    pub from: EntryRef,
    /// The later entry.
    #[n(1)]
    pub to: EntryRef,
    /// How the one bears on the other.
    #[n(2)]
    pub kind: EdgeKind,
    /// The records that show it.
    #[n(3)]
    pub shown_by: Evidence,
}
