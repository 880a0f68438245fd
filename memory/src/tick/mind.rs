//! What the tick has made: the memory, and how far it has come.

use std::collections::BTreeMap;

use ephor_base::{Label, Seq, Timestamp};
use minicbor::Encode;

use super::{
    entry::{Content, LogEntry},
    part::Resolved,
};
use crate::{
    chunks::{ChunkError, ChunkId, Ending, Material},
    entry::Entry,
    graph::GraphError,
    index::vectors::{Vector, VectorError},
    recall::Memory,
};

/// The most endings that are known before the tick has come to them.
pub const MOST_ENDINGS: usize = 1 << 20;

/// Why something of an entry was left out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LeftOut {
    /// The graph did not take it.
    #[error("the graph did not take it")]
    Graph(#[from] GraphError),
    /// The store did not take it.
    #[error("the store did not take it")]
    Chunk(#[from] ChunkError),
    /// The index did not take it.
    #[error("the index did not take it")]
    Vector(#[from] VectorError),
}

/// More than [`MOST_ENDINGS`] are known before the tick has come to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{MOST_ENDINGS} endings wait for the tick already")]
pub struct TooManyEndings;

/// The memory of a node, and where in the log it stands. It follows from the entries of the log, in their order, and what was
/// [resolved](Resolved) of their texts. What is erased leaves it as it would be had it never been there.
#[derive(Debug)]
pub struct Mind {
    memory: Memory,
    /// What has come to an end in entries that the tick has not come to, with the last of these entries. It is gone from the memory, and
    /// what is sensed of it is not taken in.
    endings: BTreeMap<Ending, Seq>,
    cursor: Seq,
    time: Timestamp,
    left_out: u64,
    last_left_out: Option<(Seq, LeftOut)>,
}

/// Everything that a mind is. Equal minds have equal bytes.
#[derive(Encode)]
struct Whole {
    #[n(0)]
    cursor: Seq,
    #[n(1)]
    time: Timestamp,
    #[cbor(n(2), with = "minicbor::bytes")]
    graph: Vec<u8>,
    #[cbor(n(3), with = "minicbor::bytes")]
    chunks: Vec<u8>,
    #[n(4)]
    vectors: Vec<(ChunkId, Option<Vector>)>,
}

impl Mind {
    /// A mind of an empty memory, at the beginning of the log.
    #[must_use]
    pub const fn new(memory: Memory) -> Self {
        Self { memory, endings: BTreeMap::new(), cursor: Seq(0), time: Timestamp(0), left_out: 0, last_left_out: None }
    }

    /// The memory.
    #[must_use]
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The memory, to have the cache of its index built. What follows from the log is changed by the tick alone.
    pub const fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// The first entry of the log that it has not taken in.
    #[must_use]
    pub const fn cursor(&self) -> Seq {
        self.cursor
    }

    /// The time of the last entry that it has taken in.
    #[must_use]
    pub const fn time(&self) -> Timestamp {
        self.time
    }

    /// How often something of an entry was left out since the beginning, and the last time.
    #[must_use]
    pub const fn left_out(&self) -> (u64, Option<&(Seq, LeftOut)>) {
        (self.left_out, self.last_left_out.as_ref())
    }

    /// The canonical bytes of everything it holds.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (chunks, index) = (self.memory.chunks(), self.memory.index());
        ephor_base::cbor::to_vec(&Whole {
            cursor: self.cursor,
            time: self.time,
            graph: self.memory.graph().to_bytes(),
            chunks: chunks.to_bytes(),
            vectors: chunks.iter().map(|chunk| (chunk.id, index.vector(chunk))).collect(),
        })
    }

    /// What comes to an end with entry `at` is gone from now on, though the tick has not come to that entry.
    pub(super) fn end(&mut self, at: Seq, ending: &Ending) -> Result<(), TooManyEndings> {
        if at < self.cursor {
            return Ok(());
        }
        if self.endings.len() >= MOST_ENDINGS && !self.endings.contains_key(ending) {
            return Err(TooManyEndings);
        }
        self.memory.end(ending);
        let last = self.endings.entry(ending.clone()).or_insert(at);
        *last = at.max(*last);
        Ok(())
    }

    /// Whether an entry's text has come to an end already: it is not to be embedded or recalled.
    pub(super) fn is_over(&self, entry: &LogEntry) -> bool {
        entry.text().is_some_and(|(content, text)| {
            self.is_ended(&Ending::Session(content.entry.session), entry.seq)
                || self.is_ended(&Ending::Text(text.source.clone()), entry.seq)
        })
    }

    fn is_ended(&self, ending: &Ending, seq: Seq) -> bool {
        self.endings.get(ending).is_some_and(|at| *at > seq)
    }

    /// Changes the mind by the next entry of the log; returns the label that its text was given.
    pub(super) fn take(
        &mut self,
        entry: &LogEntry,
        vectors: &[Option<Vector>],
        recorded: Option<Label>,
    ) -> Option<Label> {
        (self.time, self.cursor) = (entry.time, entry.seq.next());
        let over = |content: &&Content| self.is_ended(&Ending::Session(content.entry.session), entry.seq);
        let content = entry.sensed().filter(|content| !over(content));
        if let Some(content) = content {
            self.join(content);
        }
        let text = content.and_then(|content| Some((&content.entry, content.text.as_ref()?)));
        // The label of the older text is asked before that is gone, and the new comes after, since both may be of one source. A session
        // is erased with what the entry itself says in it.
        let inherited = text.map(|(_, text)| match &entry.ends {
            Some(Ending::Text(older)) => self.memory.chunks().inherited(older, text.label, recorded),
            _ => text.label,
        });
        if let Some(ending @ Ending::Text(_)) = &entry.ends {
            self.come_to(ending, entry.seq);
        }
        if let (Some((node, text)), Some(label)) = (text, inherited) {
            self.admit(node, &Material { label, ..text.clone() }, vectors);
        }
        if let Some(ending @ Ending::Session(_)) = &entry.ends {
            self.come_to(ending, entry.seq);
        }
        inherited
    }

    fn come_to(&mut self, ending: &Ending, seq: Seq) {
        self.memory.end(ending);
        if self.endings.get(ending) == Some(&seq) {
            self.endings.remove(ending);
        }
    }

    fn join(&mut self, content: &Content) {
        let Content { entry, links, others, .. } = content;
        // What is known through an entry is erased with it.
        let others = others.iter().map(|other| Entry { session: entry.session, ..other.clone() });
        for node in others.chain([entry.clone()]) {
            let added = self.memory.graph_mut().add(node);
            self.note(added.map_err(LeftOut::from));
        }
        for link in links {
            let linked = self.memory.graph_mut().link(link);
            self.note(linked.map_err(LeftOut::from));
        }
    }

    /// Takes a text in with its vectors, unless it has come to an end already: then its label alone.
    fn admit(&mut self, entry: &Entry, material: &Material, vectors: &[Option<Vector>]) {
        let ending = Ending::Text(material.source.clone());
        let new = self.memory.remember(entry, material);
        if self.is_ended(&ending, entry.moment.known()) {
            self.memory.end(&ending);
            return;
        }
        let new = match new {
            Ok(new) => new,
            Err(error) => return self.note(Err(error.into())),
        };
        for (id, vector) in new.iter().zip(vectors) {
            if let Some(vector) = vector {
                let placed = self.memory.place(*id, vector);
                self.note(placed.map_err(LeftOut::from));
            }
        }
    }

    fn note(&mut self, done: Result<(), LeftOut>) {
        if let Err(error) = done {
            self.left_out = self.left_out.saturating_add(1);
            // The cursor stands behind the entry already.
            self.last_left_out = Some((Seq(self.cursor.0.saturating_sub(1)), error));
        }
    }
}

impl Resolved {
    /// What was found out about the text of an entry.
    pub(super) fn of(entry: &LogEntry, label: Label, vectors: Vec<Option<Vector>>) -> Self {
        Self { seq: entry.seq, leaf: entry.leaf, label, vectors }
    }
}
