//! Recall: what memory has to say to a question.
//!
//! The score of a chunk is 0.3 × words + 0.7 × vector, each from 0 to 1:
//!
//! - words: its BM25 score divided by the best BM25 score of all chunks that the reader may see, so that what a reader may
//!   not see does not show in what it is shown;
//! - vector: the cosine, or 0 below the floor of 0.4, where nearness says nothing.
//!
//! Then the entries near the best in the causal graph get a share of the score of the one they are near to, which falls
//! with every edge. A neighbour never stands above what it was found by.
//!
//! What is returned carries the label of what it came from, for ever.

use std::{collections::BTreeMap, ops::RangeInclusive};

use ephor_base::{Confidentiality, Integrity, Label, Seat, SessionId, Timestamp};

use crate::{
    chunks::{Chunk, ChunkError, ChunkId, Chunks, Material, TextKind, TextSource},
    entry::EntryRef,
    graph::{EdgeKinds, Graph, walk::Bounds},
    index::{
        Index, Scored,
        vectors::{Vector, VectorError},
    },
};

/// The most chunks of one answer.
pub const MOST_RECALLED: usize = 50;
/// The longest question, in bytes.
pub const MOST_QUESTION: usize = 16 * 1024;

/// The shares of words and vector.
const WORDS: f32 = 0.3;
const VECTOR: f32 = 0.7;
/// A cosine below this counts as none.
const FLOOR: f32 = 0.4;
/// How many candidates each of the two ways brings.
const CANDIDATES: usize = 100;
/// How many of the best have their neighbours looked at, how far, and how many.
const SEEDS: usize = 5;
const NEAR: Bounds = Bounds { depth: 2, entries: 32, edges: EdgeKinds::ALL };
/// What is left of a score after an edge of weight 1.
const DECAY: f32 = 0.5;

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecallError {
    /// More than [`MOST_RECALLED`] chunks were asked for, or none.
    #[error("{0} chunks asked for, from 1 to {MOST_RECALLED}")]
    Most(usize),
    /// A question longer than [`MOST_QUESTION`].
    #[error("a question of {0} bytes, at most {MOST_QUESTION}")]
    Question(usize),
    /// The vector of the question is not of the index.
    #[error("the vector of the question does not fit the index")]
    Vector(#[from] VectorError),
}

/// What may be in an answer. Every condition must hold.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The highest confidentiality that the reader may see.
    pub clearance: Confidentiality,
    /// The lowest integrity.
    pub integrity: Integrity,
    /// From when to when, both included.
    pub time: Option<RangeInclusive<Timestamp>>,
    /// Of this agent alone.
    pub agent: Option<Seat>,
    /// Of this session alone.
    pub session: Option<SessionId>,
    /// Of these kinds alone, if there are any.
    pub kinds: Vec<TextKind>,
}

impl Filter {
    /// All that a reader of that clearance may see.
    #[must_use]
    pub const fn clearance(clearance: Confidentiality) -> Self {
        let integrity = Integrity::Untrusted;
        Self { clearance, integrity, time: None, agent: None, session: None, kinds: Vec::new() }
    }

    /// Whether a chunk may be in the answer.
    #[must_use]
    pub fn allows(&self, chunk: &Chunk) -> bool {
        chunk.is_visible_to(self.clearance)
            && chunk.label.integrity >= self.integrity
            && self.time.as_ref().is_none_or(|time| time.contains(&chunk.time))
            && self.agent.as_ref().is_none_or(|agent| chunk.agent.as_ref() == Some(agent))
            && self.session.is_none_or(|session| chunk.session == Some(session))
            && (self.kinds.is_empty() || self.kinds.contains(&chunk.kind))
    }
}

/// A question to memory.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The question: 0 to [`MOST_QUESTION`] bytes.
    pub text: &'a str,
    /// Its vector by the embedder of the index; none for the built-in one, which makes it here.
    pub vector: Option<&'a Vector>,
    /// How many chunks at most: 1 to [`MOST_RECALLED`].
    pub most: usize,
    /// What may be in the answer.
    pub filter: Filter,
}

/// A chunk that was recalled, and why.
#[derive(Clone, Debug)]
pub struct Recalled {
    /// The chunk.
    pub chunk: Chunk,
    /// The label that it enters a session with: recalled, trusted and seen as what it came from.
    pub label: Label,
    /// 0 to 1, the best first.
    pub score: f32,
    /// The BM25 score, divided by the best.
    pub words: f32,
    /// The cosine; 0 below the floor.
    pub vector: f32,
    /// The entry that it was found near to, if that is why it has its score.
    pub near: Option<EntryRef>,
}

/// A candidate, while the answer is made.
#[derive(Clone, Copy, Default)]
struct Candidate {
    words: f32,
    vector: f32,
    share: f32,
    near: Option<EntryRef>,
}

impl Candidate {
    fn own(&self) -> f32 {
        WORDS * self.words + VECTOR * self.vector
    }

    fn score(&self) -> f32 {
        self.own().max(self.share)
    }
}

/// Graph, chunks and index, kept in step.
#[derive(Debug)]
pub struct Memory {
    /// The causal graph.
    graph: Graph,
    chunks: Chunks,
    index: Index,
}

impl Memory {
    /// A memory of these three, which are empty.
    #[must_use]
    pub const fn new(graph: Graph, chunks: Chunks, index: Index) -> Self {
        Self { graph, chunks, index }
    }

    /// The causal graph.
    #[must_use]
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The causal graph, to add to it.
    pub const fn graph_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }

    /// The chunks.
    #[must_use]
    pub const fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// The index.
    #[must_use]
    pub const fn index(&self) -> &Index {
        &self.index
    }

    /// The index, to have its cache built.
    pub const fn index_mut(&mut self) -> &mut Index {
        &mut self.index
    }

    /// Takes a text in. Its words are found at once; its vectors come by [`embed`](Self::embed) or
    /// [`set_vector`](Self::set_vector).
    ///
    /// # Errors
    /// As for [`Chunks::add`].
    pub fn remember(&mut self, material: &Material) -> Result<Vec<ChunkId>, ChunkError> {
        let new = self.chunks.add(material)?;
        self.count(&new);
        Ok(new)
    }

    /// Puts a text in the place of an older one. The label of the new one is joined with that of the old.
    ///
    /// # Errors
    /// As for [`Chunks::supersede`].
    pub fn supersede(&mut self, older: &TextSource, material: &Material) -> Result<Vec<ChunkId>, ChunkError> {
        let (gone, new) = self.chunks.supersede(older, material)?;
        gone.iter().for_each(|chunk| self.index.remove(chunk));
        self.count(&new);
        Ok(new)
    }

    /// Forgets a text; returns the chunks that are gone.
    pub fn forget(&mut self, source: &TextSource) -> Vec<ChunkId> {
        let gone = self.chunks.forget(source);
        gone.iter().for_each(|chunk| self.index.remove(chunk));
        gone.into_iter().map(|chunk| chunk.id).collect()
    }

    /// Removes everything of an erased session: chunks, postings, vectors, entries, edges. Returns the chunks that are gone.
    pub fn erase(&mut self, session: &SessionId) -> Vec<ChunkId> {
        let gone = self.chunks.erase(session);
        gone.iter().for_each(|chunk| self.index.remove(chunk));
        self.graph.erase(session);
        gone.into_iter().map(|chunk| chunk.id).collect()
    }

    /// Makes the vector of a chunk by the built-in embedder. A chunk without a word has none.
    ///
    /// # Errors
    /// As for [`Index::set_vector`].
    pub fn embed(&mut self, id: ChunkId) -> Result<(), VectorError> {
        let vector = self.chunks.chunk(id).and_then(|chunk| self.index.embedder().chunk(&chunk.text));
        vector.map_or(Ok(()), |vector| self.index.set_vector(id, &vector))
    }

    /// Takes the vector of a chunk in. For a chunk that is gone by now it does nothing.
    ///
    /// # Errors
    /// As for [`Index::set_vector`].
    pub fn set_vector(&mut self, id: ChunkId, vector: &Vector) -> Result<(), VectorError> {
        if self.chunks.chunk(id).is_some() { self.index.set_vector(id, vector) } else { Ok(()) }
    }

    /// The chunks that answer a question best, the best first.
    ///
    /// # Errors
    /// [`RecallError`].
    pub fn recall(&self, question: &Question<'_>) -> Result<Vec<Recalled>, RecallError> {
        if question.most == 0 || question.most > MOST_RECALLED {
            return Err(RecallError::Most(question.most));
        }
        if question.text.len() > MOST_QUESTION {
            return Err(RecallError::Question(question.text.len()));
        }
        let mut candidates = self.candidates(question)?;
        self.add_neighbours(&mut candidates, &question.filter);
        let ranked = ranked(&candidates, question.most);
        Ok(ranked.into_iter().filter_map(|scored| self.told(&scored, candidates.get(&scored.id)?)).collect())
    }

    fn count(&mut self, new: &[ChunkId]) {
        for chunk in new.iter().filter_map(|id| self.chunks.chunk(*id)) {
            self.index.add(chunk);
        }
    }

    fn allows(&self, filter: &Filter, id: ChunkId) -> bool {
        self.chunks.chunk(id).is_some_and(|chunk| filter.allows(chunk))
    }

    /// What the words and the vector bring, each with both scores.
    fn candidates(&self, question: &Question<'_>) -> Result<BTreeMap<ChunkId, Candidate>, RecallError> {
        let allows = |id| self.allows(&question.filter, id);
        let words = self.index.scores(question.text, allows);
        let top = words.values().copied().fold(0.0_f32, f32::max);
        let mut best: Vec<Scored> = words.iter().map(|(id, score)| Scored { id: *id, score: *score }).collect();
        best.sort_unstable_by(|a, b| b.cmp(a));
        let made = question.vector.is_none().then(|| self.index.embedder().question(question.text)).flatten();
        let vector = question.vector.or(made.as_ref());
        let near = match vector {
            Some(vector) => self.index.nearest(vector, CANDIDATES, allows)?,
            None => Vec::new(),
        };
        let ids = best.iter().take(CANDIDATES).chain(&near).map(|scored| scored.id);
        Ok(ids
            .map(|id| {
                let words = words.get(&id).map_or(0.0, |score| score / top);
                let cosine = vector.and_then(|vector| self.index.vectors().cosine(vector, id)).unwrap_or(0.0);
                let vector = if cosine >= FLOOR { cosine.min(1.0) } else { 0.0 };
                (id, Candidate { words, vector, ..Candidate::default() })
            })
            .collect())
    }

    /// Gives what is near the best in the graph its share.
    fn add_neighbours(&self, candidates: &mut BTreeMap<ChunkId, Candidate>, filter: &Filter) {
        for seed in ranked(candidates, SEEDS) {
            let Some(TextSource::Entry(start)) = self.chunks.chunk(seed.id).map(|chunk| &chunk.source) else {
                continue;
            };
            for (entry, weight) in self.near(start) {
                let share = seed.score * weight;
                for chunk in self.chunks.of_source(&TextSource::Entry(entry)).filter(|chunk| filter.allows(chunk)) {
                    let candidate = candidates.entry(chunk.id).or_default();
                    if share > candidate.score() {
                        (candidate.share, candidate.near) = (share, Some(*start));
                    }
                }
            }
        }
    }

    /// The entries near one, each with the product of what its edges leave.
    fn near(&self, start: &EntryRef) -> Vec<(EntryRef, f32)> {
        let walks = [(self.graph.why(start, &NEAR), true), (self.graph.effects(start, &NEAR), false)];
        let mut near = Vec::new();
        for (walk, is_back) in walks {
            let mut weights = BTreeMap::from([(*start, 1.0_f32)]);
            for step in walk.map(|walk| walk.steps).unwrap_or_default() {
                let from = if is_back { step.via.to } else { step.via.from };
                let before = weights.get(&from).copied().unwrap_or(0.0);
                let weight = before * DECAY * step.via.kind.weight() as f32;
                weights.insert(step.entry, weight);
                near.push((step.entry, weight));
            }
        }
        near
    }

    fn told(&self, scored: &Scored, candidate: &Candidate) -> Option<Recalled> {
        let chunk = self.chunks.chunk(scored.id)?.clone();
        Some(Recalled {
            label: chunk.recalled(),
            chunk,
            score: scored.score,
            words: candidate.words,
            vector: candidate.vector,
            near: candidate.near,
        })
    }
}

/// The best candidates that have a score at all.
fn ranked(candidates: &BTreeMap<ChunkId, Candidate>, most: usize) -> Vec<Scored> {
    let scored = candidates.iter().map(|(id, candidate)| Scored { id: *id, score: candidate.score() });
    let mut scored: Vec<Scored> = scored.filter(|scored| scored.score > 0.0).collect();
    scored.sort_unstable_by(|a, b| b.cmp(a));
    scored.truncate(most);
    scored
}
