//! Chunks: text that may be recalled, cut into pieces of a bounded length, each with the label of what it was cut from.
//!
//! What is superseded, forgotten or erased is taken out of the store, and the store is what every answer is made from. So
//! it is in no answer from that moment on; there is no mark that a reader of the store could overlook.
//!
//! A chunk is named by the entry that brought its text. So a store that is made again without what was erased gives the rest
//! the names it had.

mod cut;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ephor_base::{Confidentiality, Digest, Integrity, Label, Seat, Seq, SessionId, Source, Timestamp};
use minicbor::{Decode, Encode};

pub use self::cut::{MOST_BODY, MOST_CHUNK, MOST_PIECES, cut};
use crate::entry::{Entry, EntryRef};

/// The longest name of a file, in bytes.
pub const MOST_NAME: usize = 1_024;

/// The label of what takes the place of a text that memory does not know: it may have been anything.
pub const UNKNOWN: Label = Label::new(Source::Memory, Integrity::Untrusted, Confidentiality::Confidential);

/// Why a text was not taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChunkError {
    /// A text longer than [`MOST_BODY`].
    #[error("a text of {0} bytes, at most {MOST_BODY}")]
    TooLong(usize),
    /// The name of a file that is empty or longer than [`MOST_NAME`].
    #[error("the name of a file with {0} bytes, from 1 to {MOST_NAME}")]
    Name(usize),
    /// The entry brought a text already.
    #[error("entry {0} brought a text already")]
    Taken(Seq),
    /// The store holds as many chunks as it was made for.
    #[error("the store holds the most it was made for: {0} chunks")]
    Full(usize),
}

/// A chunk's name: the entry of the node's own log that brought the text, and which piece of the text it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode)]
pub struct ChunkId {
    /// The entry.
    #[n(0)]
    pub entry: Seq,
    /// The piece, from 0: below [`MOST_PIECES`].
    #[n(1)]
    pub piece: u16,
}

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

/// A text for the store: what it is, and its label. Session and time are those of the entry that brings it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Material {
    /// Where it stands.
    pub source: TextSource,
    /// What kind of text it is.
    pub kind: TextKind,
    /// The seat of the agent that it belongs to, if there is one.
    pub agent: Option<Seat>,
    /// Its label, as the door gave it.
    pub label: Label,
    /// The text.
    pub body: String,
}

/// What can come to an end.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ending {
    /// A text: it is forgotten, or another takes its place.
    Text(TextSource),
    /// A session: it is erased.
    Session(SessionId),
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
    /// Its name.
    #[n(0)]
    pub id: ChunkId,
    /// Where the whole text stands.
    #[n(1)]
    pub source: TextSource,
    /// What kind of text it is.
    #[n(2)]
    pub kind: TextKind,
    /// The session of the text, which it is erased with.
    #[n(3)]
    pub session: SessionId,
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

/// What is known of a text, also when its chunks are gone.
#[derive(Clone, PartialEq, Eq, Debug, Encode)]
struct Text {
    #[n(0)]
    source: TextSource,
    #[n(1)]
    session: SessionId,
    #[n(2)]
    label: Label,
    #[n(3)]
    pieces: u16,
}

/// The chunks that may be recalled.
#[derive(Debug)]
pub struct Chunks {
    most: usize,
    chunks: BTreeMap<ChunkId, Chunk>,
    /// By the entry that brought them.
    texts: BTreeMap<Seq, Text>,
    /// The entries that brought the text of a source. The last counts.
    sources: BTreeMap<TextSource, BTreeSet<Seq>>,
    /// The texts without chunks: only their labels are still of use, to what takes their place.
    gone: BTreeSet<Seq>,
    sessions: BTreeMap<SessionId, BTreeSet<Seq>>,
    agents: BTreeMap<Seat, BTreeSet<ChunkId>>,
}

/// What came of a text.
#[derive(Debug)]
pub struct Added {
    /// The chunks whose place it takes.
    pub gone: Vec<Chunk>,
    /// The names of its own.
    pub new: Result<Vec<ChunkId>, ChunkError>,
}

/// The content of a store. Equal stores have equal bytes.
#[derive(Encode)]
struct Whole<'a> {
    #[n(0)]
    chunks: Vec<&'a Chunk>,
    #[n(1)]
    texts: &'a BTreeMap<Seq, Text>,
}

impl Chunks {
    /// An empty store for at most so many chunks, and for the labels of as many texts that are gone.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self {
            most,
            chunks: BTreeMap::new(),
            texts: BTreeMap::new(),
            sources: BTreeMap::new(),
            gone: BTreeSet::new(),
            sessions: BTreeMap::new(),
            agents: BTreeMap::new(),
        }
    }

    /// Cuts the text that an entry of the node's own log brings and takes its chunks in: `new` has their names in the order of the text.
    /// A text of nothing but spaces has none. What was there of the same source is gone then, and returned.
    /// Of a text that is refused the label is kept.
    pub fn add(&mut self, entry: &Entry, material: &Material) -> Added {
        let at = entry.moment.known();
        if self.texts.contains_key(&at) {
            return Added { gone: Vec::new(), new: Err(ChunkError::Taken(at)) };
        }
        let Material { source, label, .. } = material;
        let gone = self.end(&Ending::Text(source.clone()));
        self.texts.insert(at, Text { source: source.clone(), session: entry.session, label: *label, pieces: 0 });
        self.sources.entry(source.clone()).or_default().insert(at);
        self.sessions.entry(entry.session).or_default().insert(at);
        let new = self.take(entry, material);
        if !new.as_ref().is_ok_and(|new| !new.is_empty()) {
            self.bury(at);
        }
        Added { gone, new }
    }

    /// The label of what takes the place of a text: it is joined with that text's, which may be gone by now. Otherwise what was planted
    /// would be trusted as soon as an agent had written it once more in other words. An operator who knows better forgets the old one
    /// and adds the new.
    ///
    /// `recorded` is the label that the new text was given before, if it was: it counts where the older text is not known any more.
    #[must_use]
    pub fn inherited(&self, older: &TextSource, label: Label, recorded: Option<Label>) -> Label {
        let known = self.last(older).and_then(|at| self.texts.get(&at)).map(|text| text.label);
        let before = known.or(recorded).unwrap_or(UNKNOWN);
        joined([before, label]).unwrap_or(UNKNOWN)
    }

    /// Takes out what comes to an end, and returns the chunks of it.
    pub fn end(&mut self, ending: &Ending) -> Vec<Chunk> {
        match ending {
            Ending::Text(source) => self.last(source).map(|at| self.bury(at)).unwrap_or_default(),
            Ending::Session(session) => {
                let texts = self.sessions.get(session).cloned().unwrap_or_default();
                let chunks = texts.iter().flat_map(|at| self.bury(*at)).collect();
                texts.iter().for_each(|at| self.lose(*at));
                chunks
            }
        }
    }

    /// The chunk of that name, if it may be recalled.
    #[must_use]
    pub fn chunk(&self, id: ChunkId) -> Option<&Chunk> {
        self.chunks.get(&id)
    }

    /// The chunks of the last text of a source, in its order.
    pub fn of_source(&self, source: &TextSource) -> impl Iterator<Item = &Chunk> {
        self.last(source).into_iter().flat_map(|at| self.of_entry(at))
    }

    /// The chunks of the text that an entry brought, in its order.
    pub fn of_entry(&self, entry: Seq) -> impl Iterator<Item = &Chunk> {
        self.chunks.range(names(entry)).map(|(_, chunk)| chunk)
    }

    /// The chunks of an agent, the latest first.
    pub fn of_agent(&self, agent: &Seat) -> impl Iterator<Item = ChunkId> {
        self.agents.get(agent).into_iter().flat_map(|ids| ids.iter().rev().copied())
    }

    /// The label of the text that an entry brought.
    #[must_use]
    pub fn label(&self, entry: Seq) -> Option<Label> {
        self.texts.get(&entry).map(|text| text.label)
    }

    /// All chunks, by name.
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
        ephor_base::cbor::to_vec(&Whole { chunks: self.chunks.values().collect(), texts: &self.texts })
    }

    /// The entry that brought the text of a source last.
    fn last(&self, source: &TextSource) -> Option<Seq> {
        self.sources.get(source)?.last().copied()
    }

    /// Cuts a text whose label is kept already.
    fn take(&mut self, entry: &Entry, material: &Material) -> Result<Vec<ChunkId>, ChunkError> {
        let ranges = cut(&material.body)?;
        if self.most.checked_sub(self.chunks.len()).is_none_or(|room| room < ranges.len()) {
            return Err(ChunkError::Full(self.most));
        }
        let at = entry.moment.known();
        let mut new = Vec::with_capacity(ranges.len());
        for (piece, range) in (0_u16..).zip(ranges) {
            let id = ChunkId { entry: at, piece };
            let text = material.body.get(range.clone()).unwrap_or_default().into();
            let Material { source, kind, agent, label, .. } = material;
            let (source, kind, agent, label) = (source.clone(), *kind, agent.clone(), *label);
            let (session, time) = (entry.session, entry.time);
            if let Some(agent) = &agent {
                self.agents.entry(agent.clone()).or_default().insert(id);
            }
            self.chunks.insert(id, Chunk { id, source, kind, session, agent, time, label, range, text });
            new.push(id);
        }
        if let (Some(text), Ok(pieces)) = (self.texts.get_mut(&at), u16::try_from(new.len())) {
            text.pieces = pieces;
        }
        Ok(new)
    }

    /// Takes the chunks of a text out. Its label stays, until there are too many such.
    fn bury(&mut self, at: Seq) -> Vec<Chunk> {
        let ids: Vec<ChunkId> = self.chunks.range(names(at)).map(|(id, _)| *id).collect();
        let chunks: Vec<Chunk> = ids.iter().filter_map(|id| self.chunks.remove(id)).collect();
        for chunk in &chunks {
            if let Some(agent) = &chunk.agent {
                leave(&mut self.agents, agent, &chunk.id);
            }
        }
        if let Some(text) = self.texts.get_mut(&at) {
            text.pieces = 0;
            self.gone.insert(at);
        }
        if self.gone.len() > self.most
            && let Some(oldest) = self.gone.first().copied()
        {
            self.lose(oldest);
        }
        chunks
    }

    /// Removes the last that is known of a text.
    fn lose(&mut self, at: Seq) {
        self.gone.remove(&at);
        if let Some(text) = self.texts.remove(&at) {
            leave(&mut self.sources, &text.source, &at);
            leave(&mut self.sessions, &text.session, &at);
        }
    }
}

/// The names that the chunks of a text can have.
const fn names(entry: Seq) -> std::ops::RangeInclusive<ChunkId> {
    ChunkId { entry, piece: 0 }..=ChunkId { entry, piece: u16::MAX }
}

/// Takes one off a list, and the list with the last of it.
fn leave<K: Ord, V: Ord>(lists: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(list) = lists.get_mut(key) {
        list.remove(value);
        if list.is_empty() {
            lists.remove(key);
        }
    }
}
