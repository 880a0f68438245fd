//! Chunks: text that may be recalled, cut into pieces of a bounded length, each with the label of what it was cut from.
//!
//! What is superseded, forgotten or erased is taken out of the store, and the store is what every answer is made from. So
//! it is in no answer from that moment on; there is no mark that a reader of the store could overlook.

mod cut;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ephor_base::{Confidentiality, Digest, Integrity, Label, Seat, SessionId, Source, Timestamp};
use minicbor::{Decode, Encode};

pub use self::cut::{MOST_BODY, MOST_CHUNK, cut};
use crate::entry::EntryRef;

/// The longest name of a file, in bytes.
pub const MOST_NAME: usize = 1_024;

/// Why a text was not taken in. The store is unchanged then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChunkError {
    /// A text longer than [`MOST_BODY`].
    #[error("a text of {0} bytes, at most {MOST_BODY}")]
    TooLong(usize),
    /// The name of a file that is empty or longer than [`MOST_NAME`].
    #[error("the name of a file with {0} bytes, from 1 to {MOST_NAME}")]
    Name(usize),
    /// There are chunks from that source already.
    #[error("the text from this source is there already")]
    Taken,
    /// The store holds as many chunks as it was made for.
    #[error("the store holds the most it was made for: {0} chunks")]
    Full(usize),
}

/// A chunk's number within its store. Counts up from 0 and is never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode)]
#[cbor(transparent)]
pub struct ChunkId(#[n(0)] pub u64);

/// The name of a file that an operator gave to memory: 1 to [`MOST_NAME`] bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Encode)]
#[cbor(transparent)]
pub struct FileName(#[n(0)] Box<str>);

impl FileName {
    /// The name.
    ///
    /// # Errors
    /// [`ChunkError::Name`] if it is empty or too long.
    pub fn new(name: &str) -> Result<Self, ChunkError> {
        if name.is_empty() || name.len() > MOST_NAME {
            return Err(ChunkError::Name(name.len()));
        }
        Ok(Self(name.into()))
    }

    /// The name as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'b, C> Decode<'b, C> for FileName {
    fn decode(from: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        Self::new(from.str()?).map_err(|_| minicbor::decode::Error::message("no name of a file"))
    }
}

/// Where a text stands.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Encode, Decode)]
pub enum TextSource {
    /// In an entry of a log.
    #[n(0)]
    Entry(#[n(0)] EntryRef),
    /// In a file with this content.
    #[n(1)]
    File {
        /// Its name.
        #[n(0)]
        name: FileName,
        /// The digest of its content.
        #[n(1)]
        digest: Digest,
    },
}

/// What kind of text it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Encode, Decode)]
#[cbor(index_only)]
pub enum TextKind {
    /// What a person, or a peer, said to an agent.
    #[n(0)]
    Message,
    /// What a model wrote.
    #[n(1)]
    ModelAnswer,
    /// What a call came to.
    #[n(2)]
    Outcome,
    /// What an agent had remembered.
    #[n(3)]
    Memory,
    /// What stands in a file.
    #[n(4)]
    File,
}

/// A text for the store: what it is, and its label.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Material {
    /// Where it stands.
    #[n(0)]
    pub source: TextSource,
    /// What kind of text it is.
    #[n(1)]
    pub kind: TextKind,
    /// The session that it belongs to and is erased with, if there is one.
    #[n(2)]
    pub session: Option<SessionId>,
    /// The seat of the agent that it belongs to, if there is one.
    #[n(3)]
    pub agent: Option<Seat>,
    /// The time that the record gives it.
    #[n(4)]
    pub time: Timestamp,
    /// Its label, as the door gave it.
    #[n(5)]
    pub label: Label,
    /// The text.
    #[n(6)]
    pub body: String,
}

/// The label of what comes from several texts: as little trusted as the least, as confidential as the most.
#[must_use]
pub fn joined(labels: impl IntoIterator<Item = Label>) -> Option<Label> {
    labels.into_iter().reduce(|a, b| Label {
        source: if a.source == b.source { a.source } else { Source::Memory },
        integrity: a.integrity.min(b.integrity),
        confidentiality: a.confidentiality.max(b.confidentiality),
    })
}

/// Whether `after` is trusted no more and seen by no more than `before`.
#[must_use]
pub fn is_no_weaker(after: &Label, before: &Label) -> bool {
    after.integrity <= before.integrity && after.confidentiality >= before.confidentiality
}

/// A piece of a text.
#[derive(Clone, PartialEq, Eq, Debug, Encode)]
pub struct Chunk {
    /// Its number.
    #[n(0)]
    pub id: ChunkId,
    /// Where the whole text stands.
    #[n(1)]
    pub source: TextSource,
    /// What kind of text it is.
    #[n(2)]
    pub kind: TextKind,
    /// The session of the text.
    #[n(3)]
    pub session: Option<SessionId>,
    /// The agent of the text.
    #[n(4)]
    pub agent: Option<Seat>,
    /// The time of the text.
    #[n(5)]
    pub time: Timestamp,
    /// The label of the text, or what it was joined with.
    #[n(6)]
    pub label: Label,
    /// Where the piece begins and ends in the text, in bytes.
    #[n(7)]
    pub range: Range<usize>,
    /// The piece: 1 to [`MOST_CHUNK`] bytes.
    #[n(8)]
    pub text: Box<str>,
}

impl Chunk {
    /// The label that the piece enters a session with: it is recalled, and trusted and seen as what it came from.
    #[must_use]
    pub const fn recalled(&self) -> Label {
        Label::new(Source::Memory, self.label.integrity, self.label.confidentiality)
    }

    /// Whether a reader of that clearance may see it.
    #[must_use]
    pub fn is_visible_to(&self, clearance: Confidentiality) -> bool {
        self.label.confidentiality <= clearance
    }

    /// Whether it may steer a consequential argument.
    #[must_use]
    pub const fn is_trusted(&self) -> bool {
        matches!(self.label.integrity, Integrity::Trusted)
    }
}

/// The chunks that may be recalled.
#[derive(Debug)]
pub struct Chunks {
    most: usize,
    next: u64,
    chunks: BTreeMap<ChunkId, Chunk>,
    sources: BTreeMap<TextSource, BTreeSet<ChunkId>>,
    sessions: BTreeMap<SessionId, BTreeSet<ChunkId>>,
}

/// The content of a store. Equal stores have equal bytes.
#[derive(Encode)]
struct Whole<'a> {
    #[n(0)]
    next: u64,
    #[n(1)]
    chunks: Vec<&'a Chunk>,
}

impl Chunks {
    /// An empty store for at most so many chunks.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { most, next: 0, chunks: BTreeMap::new(), sources: BTreeMap::new(), sessions: BTreeMap::new() }
    }

    /// Cuts a text and takes its chunks in; returns their numbers in the order of the text. A text of nothing but spaces
    /// has none.
    ///
    /// # Errors
    /// [`ChunkError::TooLong`], [`ChunkError::Taken`] or [`ChunkError::Full`].
    pub fn add(&mut self, material: &Material) -> Result<Vec<ChunkId>, ChunkError> {
        let ranges = cut(&material.body)?;
        if self.sources.contains_key(&material.source) {
            return Err(ChunkError::Taken);
        }
        if self.most.saturating_sub(self.chunks.len()) < ranges.len() {
            return Err(ChunkError::Full(self.most));
        }
        Ok(ranges.into_iter().filter_map(|range| self.insert(material, range)).collect())
    }

    /// Puts a text in the place of an older one, whose chunks are gone at once and returned, beside the new numbers.
    ///
    /// The new text is joined with the label of the old: otherwise what was planted would be trusted as soon as an agent
    /// had written it once more in other words. An operator who knows better forgets the old one and adds the new.
    ///
    /// # Errors
    /// As for [`add`](Self::add); the older text stays then.
    pub fn supersede(
        &mut self,
        older: &TextSource,
        material: &Material,
    ) -> Result<(Vec<Chunk>, Vec<ChunkId>), ChunkError> {
        let before = self.of_source(older).map(|chunk| chunk.label);
        let label = joined(before.chain([material.label])).unwrap_or(material.label);
        let material = Material { label, ..material.clone() };
        let ranges = cut(&material.body)?;
        if *older != material.source && self.sources.contains_key(&material.source) {
            return Err(ChunkError::Taken);
        }
        let gone = self.of_source(older).count();
        let left = self.chunks.len().saturating_sub(gone);
        if self.most.saturating_sub(left) < ranges.len() {
            return Err(ChunkError::Full(self.most));
        }
        let gone = self.forget(older);
        let new = ranges.into_iter().filter_map(|range| self.insert(&material, range)).collect();
        Ok((gone, new))
    }

    /// Takes the chunks of a text out and returns them.
    pub fn forget(&mut self, source: &TextSource) -> Vec<Chunk> {
        let ids = self.sources.get(source).cloned().unwrap_or_default();
        self.remove(&ids)
    }

    /// Takes all chunks of an erased session out and returns them.
    pub fn erase(&mut self, session: &SessionId) -> Vec<Chunk> {
        let ids = self.sessions.get(session).cloned().unwrap_or_default();
        self.remove(&ids)
    }

    /// The chunk of that number, if it may be recalled.
    #[must_use]
    pub fn chunk(&self, id: ChunkId) -> Option<&Chunk> {
        self.chunks.get(&id)
    }

    /// The chunks of a text, in its order.
    pub fn of_source(&self, source: &TextSource) -> impl Iterator<Item = &Chunk> {
        self.sources.get(source).into_iter().flatten().filter_map(|id| self.chunks.get(id))
    }

    /// All chunks, by number.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Chunk> {
        self.chunks.values()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The canonical bytes of the store: equal for equal stores.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        ephor_base::cbor::to_vec(&Whole { next: self.next, chunks: self.chunks.values().collect() })
    }

    fn insert(&mut self, material: &Material, range: Range<usize>) -> Option<ChunkId> {
        let text = material.body.get(range.clone())?.into();
        let id = ChunkId(self.next);
        self.next = self.next.checked_add(1)?;
        let Material { source, kind, session, agent, time, label, .. } = material.clone();
        self.sources.entry(source.clone()).or_default().insert(id);
        if let Some(session) = session {
            self.sessions.entry(session).or_default().insert(id);
        }
        self.chunks.insert(id, Chunk { id, source, kind, session, agent, time, label, range, text });
        Some(id)
    }

    fn remove(&mut self, ids: &BTreeSet<ChunkId>) -> Vec<Chunk> {
        let gone: Vec<Chunk> = ids.iter().filter_map(|id| self.chunks.remove(id)).collect();
        for chunk in &gone {
            leave(&mut self.sources, &chunk.source, chunk.id);
            if let Some(session) = &chunk.session {
                leave(&mut self.sessions, session, chunk.id);
            }
        }
        gone
    }
}

/// Takes a chunk off a list, and the list with the last of it.
fn leave<K: Ord>(lists: &mut BTreeMap<K, BTreeSet<ChunkId>>, key: &K, id: ChunkId) {
    if let Some(list) = lists.get_mut(key) {
        list.remove(&id);
        if list.is_empty() {
            lists.remove(key);
        }
    }
}
