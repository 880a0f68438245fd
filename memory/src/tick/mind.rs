//! What the tick has made: the memory, the impulses, and how far it has come.

use std::collections::{BTreeMap, VecDeque};

use ephor_base::{Seq, Timestamp};
use minicbor::Encode;

use super::entry::{Author, Batch, Content, Echo, LogEntry, Resolved};
use crate::{
    chunks::{ChunkError, ChunkId},
    entry::Entry,
    graph::{GraphError, Link},
    index::vectors::{Vector, VectorError},
    recall::Memory,
};

/// Among how many of the last chunks a new text looks for what it is near to. A bound on the work of one entry, and, since
/// all of them are looked at, the same answer after every rebuild, which a graph of neighbours could not promise.
pub const LOOKS_BACK: usize = 1_024;
/// How many of those it keeps.
pub const MOST_ECHOES: usize = 4;
/// The least nearness of an echo, in thousandths.
const LEAST_NEARNESS: u16 = 400;
/// The most impulses. Beyond it the weaker half goes.
pub const MOST_IMPULSES: usize = 4_096;
/// An impulse halves in this time of the record: what was touched an hour ago counts half.
const HALF_LIFE_MICROS: u64 = 3_600 * 1_000_000;
/// What a new chunk begins with, and what an echo of nearness 1 adds.
const IMPULSE: u32 = 1 << 20;

/// Why something of an entry was left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
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

/// How strongly a chunk was touched of late.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode)]
struct Impulse {
    #[n(0)]
    strength: u32,
    #[n(1)]
    at: Timestamp,
}

impl Impulse {
    /// What is left of it: halved for every half-life, and straight in between. In whole numbers, so that it is the same
    /// everywhere.
    fn at(self, now: Timestamp) -> u32 {
        let micros = now.0.saturating_sub(self.at.0);
        let (halves, rest) = (micros / HALF_LIFE_MICROS, micros % HALF_LIFE_MICROS);
        let halved = u32::try_from(halves).ok().and_then(|halves| self.strength.checked_shr(halves)).unwrap_or(0);
        let lost = u64::from(halved) * rest / HALF_LIFE_MICROS / 2;
        halved - u32::try_from(lost).unwrap_or(halved)
    }
}

/// The memory of a node, and where in the log it stands. It changes by resolved entries alone, in
/// the order of the log.
#[derive(Debug)]
pub struct Mind {
    memory: Memory,
    impulses: BTreeMap<ChunkId, Impulse>,
    /// The last chunks, the latest last.
    recent: VecDeque<ChunkId>,
    cursor: Seq,
    time: Timestamp,
    left_out: u64,
    last_left_out: Option<(Seq, LeftOut)>,
}

/// Everything that a mind is. Equal minds have equal bytes.
#[derive(Encode)]
struct Whole<'a> {
    #[n(0)]
    cursor: Seq,
    #[n(1)]
    time: Timestamp,
    #[n(2)]
    left_out: u64,
    #[cbor(n(3), with = "minicbor::bytes")]
    graph: Vec<u8>,
    #[cbor(n(4), with = "minicbor::bytes")]
    chunks: Vec<u8>,
    #[n(5)]
    vectors: Vec<(ChunkId, Option<Vector>)>,
    #[n(6)]
    impulses: &'a BTreeMap<ChunkId, Impulse>,
    #[n(7)]
    recent: Vec<ChunkId>,
}

impl Mind {
    /// A mind of an empty memory, at the beginning of the log.
    #[must_use]
    pub const fn new(memory: Memory) -> Self {
        Self {
            memory,
            impulses: BTreeMap::new(),
            recent: VecDeque::new(),
            cursor: Seq(0),
            time: Timestamp(0),
            left_out: 0,
            last_left_out: None,
        }
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

    /// How often something of an entry was left out since the beginning, and the last time of this run.
    #[must_use]
    pub const fn left_out(&self) -> (u64, Option<(Seq, LeftOut)>) {
        (self.left_out, self.last_left_out)
    }

    /// How strongly a chunk was touched of late: 0 for not at all, 2²⁰ for one that has just come.
    #[must_use]
    pub fn impulse(&self, id: ChunkId, now: Timestamp) -> u32 {
        self.impulses.get(&id).map_or(0, |impulse| impulse.at(now))
    }

    /// Takes a kept batch in. A batch that the mind is past changes nothing.
    ///
    /// # Errors
    /// The cursor if the batch begins behind it.
    pub fn take_in(&mut self, batch: &Batch) -> Result<(), Seq> {
        for resolved in batch.entries() {
            if resolved.entry.seq > self.cursor {
                return Err(self.cursor);
            }
            if resolved.entry.seq == self.cursor {
                self.apply(resolved);
            }
        }
        Ok(())
    }

    /// The canonical bytes of everything it holds.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let vectors = self.memory.index().vectors();
        ephor_base::cbor::to_vec(&Whole {
            cursor: self.cursor,
            time: self.time,
            left_out: self.left_out,
            graph: self.memory.graph().to_bytes(),
            chunks: self.memory.chunks().to_bytes(),
            vectors: vectors.ids().map(|id| (id, vectors.vector(id))).collect(),
            impulses: &self.impulses,
            recent: self.recent.iter().copied().collect(),
        })
    }

    /// Looks what the pieces of an entry are near to.
    pub(super) fn resolve(&self, entry: LogEntry, vectors: Vec<Option<Vector>>) -> Resolved {
        let index = self.memory.index().vectors();
        let mut nearest: BTreeMap<ChunkId, u16> = BTreeMap::new();
        for vector in vectors.iter().flatten() {
            for chunk in &self.recent {
                let Some(cosine) = index.cosine(vector, *chunk) else { continue };
                // 0 to 1,000, and exact, since the cosine of bytes is made of whole numbers, one root and one division.
                let nearness = (cosine.clamp(0.0, 1.0) * 1_000.0) as u16;
                let before = nearest.entry(*chunk).or_default();
                *before = nearness.max(*before);
            }
        }
        let top = nearest.values().copied().max().unwrap_or_default();
        let mut echoes: Vec<Echo> = nearest
            .into_iter()
            .filter(|(_, nearness)| *nearness >= LEAST_NEARNESS)
            .map(|(chunk, nearness)| Echo { chunk, nearness })
            .collect();
        echoes.sort_by_key(|echo| (u16::MAX - echo.nearness, echo.chunk));
        echoes.truncate(MOST_ECHOES);
        Resolved { entry, vectors, nearest: top, echoes }
    }

    /// Changes the mind by the next entry of the log.
    pub(super) fn apply(&mut self, resolved: &Resolved) {
        let entry = &resolved.entry;
        self.time = entry.time;
        if entry.author == Author::Other {
            self.change(resolved);
        }
        self.cursor = entry.seq.next();
    }

    fn change(&mut self, resolved: &Resolved) {
        match &resolved.entry.content {
            Content::Nothing => {}
            Content::Moment { entry, links, others, text } => {
                self.join(entry, links, others);
                if let Some(material) = text {
                    let new = self.memory.remember(material);
                    self.place(new, resolved);
                }
            }
            Content::Superseded { older, by } => {
                let before: Vec<ChunkId> = self.memory.chunks().of_source(older).map(|chunk| chunk.id).collect();
                let new = self.memory.supersede(older, by);
                if new.is_ok() {
                    self.drop_chunks(&before);
                }
                self.place(new, resolved);
            }
            Content::Forgotten(source) => {
                let gone = self.memory.forget(source);
                self.drop_chunks(&gone);
            }
            Content::Erased(session) => {
                let gone = self.memory.erase(session);
                self.drop_chunks(&gone);
            }
        }
    }

    fn join(&mut self, entry: &Entry, links: &[Link], others: &[Entry]) {
        for node in others.iter().chain([entry]) {
            let added = self.memory.graph_mut().add(node.clone());
            self.note(added.map_err(LeftOut::from));
        }
        for link in links {
            let linked = self.memory.graph_mut().link(link);
            self.note(linked.map_err(LeftOut::from));
        }
    }

    /// Gives new chunks their vectors and impulses.
    fn place(&mut self, new: Result<Vec<ChunkId>, ChunkError>, resolved: &Resolved) {
        let new = match new {
            Ok(new) => new,
            Err(error) => return self.note(Err(error.into())),
        };
        for (id, vector) in new.iter().zip(&resolved.vectors) {
            if let Some(vector) = vector {
                let set = self.memory.set_vector(*id, vector);
                self.note(set.map_err(LeftOut::from));
            }
        }
        for id in new {
            self.strike(id, IMPULSE);
            self.recent.push_back(id);
            if self.recent.len() > LOOKS_BACK {
                self.recent.pop_front();
            }
        }
        for echo in &resolved.echoes {
            self.strike(echo.chunk, IMPULSE / 1_000 * u32::from(echo.nearness));
        }
        self.calm();
    }

    fn strike(&mut self, id: ChunkId, strength: u32) {
        if self.memory.chunks().chunk(id).is_some() {
            let strength = self.impulse(id, self.time).saturating_add(strength);
            self.impulses.insert(id, Impulse { strength, at: self.time });
        }
    }

    /// Drops the weaker half when there are too many impulses.
    fn calm(&mut self) {
        if self.impulses.len() > MOST_IMPULSES {
            let now = self.time;
            let mut strengths: Vec<(u32, ChunkId)> = self.impulses.iter().map(|(id, i)| (i.at(now), *id)).collect();
            strengths.sort_unstable();
            strengths.iter().take(MOST_IMPULSES / 2).for_each(|(_, id)| {
                self.impulses.remove(id);
            });
        }
    }

    fn drop_chunks(&mut self, gone: &[ChunkId]) {
        gone.iter().for_each(|id| {
            self.impulses.remove(id);
        });
        self.recent.retain(|id| !gone.contains(id));
    }

    fn note(&mut self, done: Result<(), LeftOut>) {
        if let Err(error) = done {
            self.left_out = self.left_out.saturating_add(1);
            self.last_left_out = Some((self.cursor, error));
        }
    }
}
