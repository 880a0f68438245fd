//! What the tick reads of the log, and what it keeps of that.

use ephor_base::{Seq, SessionId, Timestamp, cbor};
use minicbor::{Decode, Encode};

use crate::{
    chunks::{ChunkId, Material, TextSource},
    entry::Entry,
    graph::Link,
    index::vectors::Vector,
};

/// Whether the tick itself brought an entry about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(index_only)]
pub enum Author {
    /// Something else did.
    #[n(0)]
    Other,
    /// The tick did: by a commit, or by having a text embedded. It is not sensed, or the tick would follow itself.
    #[n(1)]
    Tick,
}

/// What an entry of the log means to memory.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum Content {
    /// Nothing.
    #[n(0)]
    Nothing,
    /// A node of the graph, how it hangs together with earlier ones, and its text, if it has one to be recalled.
    #[n(1)]
    Moment {
        /// The node.
        #[n(0)]
        entry: Entry,
        /// The edges that the entry shows. Entries of other logs that they name stand in `others`.
        #[n(1)]
        links: Vec<Link>,
        /// Entries of other logs that this one is the first to name.
        #[n(2)]
        others: Vec<Entry>,
        /// The text.
        #[n(3)]
        text: Option<Material>,
    },
    /// A text takes the place of an older one.
    #[n(2)]
    Superseded {
        /// The older.
        #[n(0)]
        older: TextSource,
        /// The newer.
        #[n(1)]
        by: Material,
    },
    /// A text is forgotten.
    #[n(3)]
    Forgotten(#[n(0)] TextSource),
    /// A session is erased.
    #[n(4)]
    Erased(#[n(0)] SessionId),
}

/// An entry of the node's own log, as the shell reads it.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct LogEntry {
    /// Its place.
    #[n(0)]
    pub seq: Seq,
    /// The time of the record.
    #[n(1)]
    pub time: Timestamp,
    /// Who brought it about.
    #[n(2)]
    pub author: Author,
    /// What it means.
    #[n(3)]
    pub content: Content,
}

/// What a new text is near to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Echo {
    /// The chunk that was there.
    #[n(0)]
    pub chunk: ChunkId,
    /// The cosine, in thousandths: 1 to 1,000.
    #[n(1)]
    pub nearness: u16,
}

/// An entry with everything that its change of the mind depends on.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Resolved {
    /// The entry.
    #[n(0)]
    pub entry: LogEntry,
    /// The vectors of the pieces of its text, in order.
    #[n(1)]
    pub vectors: Vec<Option<Vector>>,
    /// The cosine to the nearest of the last chunks, in thousandths; 0 if nothing is near.
    #[n(2)]
    pub nearest: u16,
    /// What it is near enough to for an echo, the nearest first.
    #[n(3)]
    pub echoes: Vec<Echo>,
}

impl Resolved {
    /// How new the text is, in thousandths: 1,000 less the nearness of the nearest before it. None without a vector.
    #[must_use]
    pub fn novelty(&self) -> Option<u16> {
        self.vectors.iter().any(Option::is_some).then(|| 1_000_u16.saturating_sub(self.nearest))
    }
}

/// Entries that are kept together: one or more, without gaps.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(transparent)]
pub struct Batch(#[n(0)] Vec<Resolved>);

/// Bytes that are no batch.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BadBatch {
    /// Not the canonical encoding of one.
    #[error("no batch: {0}")]
    Encoding(#[from] cbor::NotCanonical),
    /// Its entries have gaps, or there is none.
    #[error("a batch that is empty or has gaps")]
    Gap,
}

impl Batch {
    /// The batch of these entries; none of none.
    pub(super) fn of(entries: &[Resolved]) -> Option<Self> {
        (!entries.is_empty()).then(|| Self(entries.to_vec()))
    }

    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[Resolved] {
        &self.0
    }

    /// The canonical bytes. They hold text as it was said: they are to be sealed.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        cbor::to_vec(self)
    }

    /// The batch of these bytes.
    ///
    /// # Errors
    /// [`BadBatch`] if they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBatch> {
        let batch: Self = cbor::from_slice(bytes)?;
        let is_whole = batch
            .0
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a.entry.seq.next() == b.entry.seq && a.entry.seq < b.entry.seq));
        if is_whole && !batch.0.is_empty() { Ok(batch) } else { Err(BadBatch::Gap) }
    }
}
