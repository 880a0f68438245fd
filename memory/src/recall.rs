//! Recall: what memory has to say to a question.
//!
//! The score of a chunk is 0.3 × words + 0.7 × nearness, each from 0 to 1:
//!
//! - words: its BM25 score divided by the best BM25 score of the chunks that may be in the answer;
//! - nearness: what the embedder of the index makes of the two, 0 below its floor: the cosine, or, for the built-in one, the share of
//!   the question that the chunk has.
//!
//! Then the entries near the best in the causal graph get a share of the score of the one they are near to, which falls
//! with every edge. A neighbour never stands above what it was found by. Of chunks with the same text the best is in the answer.
//!
//! What a reader may not see, by confidentiality, changes nothing in its answer: it lies in other indexes, and no way through the graph
//! goes by it. What is returned carries the label of what it came from, for ever.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use ephor_base::{Confidentiality, Integrity, Label, Seat, Seq, SessionId, Timestamp};

use crate::{
    chunks::{Added, Chunk, ChunkError, ChunkId, Chunks, Ending, Material, TextKind, TextSource},
    entry::{Entry, EntryRef},
    graph::Graph,
    index::{
        Index, Scored,
        embed::Embedding,
        vectors::{Vector, VectorError},
    },
};

/// The most chunks of one answer.
pub const MOST_RECALLED: usize = 50;
/// The longest question, in bytes.
pub const MOST_QUESTION: usize = 16 * 1024;

/// The shares of words and nearness.
const WORDS: f32 = 0.3;
const NEARNESS: f32 = 0.7;
/// How many candidates each of the two ways brings.
const CANDIDATES: usize = 100;
/// How many of the best have their neighbours looked at, how far, and how many.
const SEEDS: usize = 5;
const NEAR_EDGES: u32 = 2;
const NEAR_ENTRIES: usize = 32;
/// What is left of a score after an edge of weight 1.
const DECAY: f64 = 0.5;
/// Among how many of the last chunks of its agent a text is looked for: a bound on the work, and the same answer after every rebuild,
/// which a graph of neighbours could not promise.
pub const LOOKS_BACK: usize = 1_024;
/// The least cosine, in thousandths, at which one chunk is an echo of another.
const LEAST_ECHO: u16 = 400;
/// What a chunk is touched by when it comes, and by an echo of cosine 1.
pub const IMPULSE: u32 = 1 << 20;
/// An impulse halves in this time of the record: what was touched an hour ago counts half.
const HALF_LIFE_MICROS: u64 = 3_600 * 1_000_000;

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
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
    /// Of texts that an earlier entry than this brought, and so not what a turn itself began with.
    pub before: Option<Seq>,
}

impl Filter {
    /// All that a reader of that clearance may see.
    #[must_use]
    pub const fn clearance(clearance: Confidentiality) -> Self {
        let integrity = Integrity::Untrusted;
        Self { clearance, integrity, time: None, agent: None, session: None, kinds: Vec::new(), before: None }
    }

    /// Whether a chunk may be in the answer.
    #[must_use]
    pub fn allows(&self, chunk: &Chunk) -> bool {
        chunk.is_visible_to(self.clearance)
            && chunk.label.integrity >= self.integrity
            && self.time.as_ref().is_none_or(|time| time.contains(&chunk.time))
            && self.agent.as_ref().is_none_or(|agent| chunk.agent.as_ref() == Some(agent))
            && self.session.is_none_or(|session| chunk.session == session)
            && self.before.is_none_or(|before| chunk.id.entry < before)
            && (self.kinds.is_empty() || self.kinds.contains(&chunk.kind))
    }
}

/// A question to memory.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The question: 0 to [`MOST_QUESTION`] bytes.
    pub text: &'a str,
    /// Its vector by the embedder of the index; none for the built-in one, which makes it here. Without one, words alone count.
    pub embedding: Option<&'a Embedding>,
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
    /// How near the embedder says it is; 0 below its floor.
    pub nearness: f32,
    /// The entry that it was found near to, if that is why it has its score.
    pub near: Option<EntryRef>,
}

/// How new a text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Novelty {
    /// 0 for what was said before, 1,000 for what nothing is near to.
    pub thousandths: u16,
    /// Among how many chunks it was looked for: 0 to [`LOOKS_BACK`].
    pub among: usize,
}

/// A candidate, while the answer is made.
#[derive(Clone, Copy, Default)]
struct Candidate {
    words: f32,
    nearness: f32,
    share: f32,
    near: Option<EntryRef>,
}

impl Candidate {
    fn own(&self) -> f32 {
        WORDS * self.words + NEARNESS * self.nearness
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

    /// Takes in the text that an entry of the node's own log brings. Its words are found at once; its vectors come by
    /// [`set_vector`](Self::set_vector).
    ///
    /// # Errors
    /// As for [`Chunks::add`].
    pub fn remember(&mut self, entry: &Entry, material: &Material) -> Result<Vec<ChunkId>, ChunkError> {
        let Added { gone, new } = self.chunks.add(entry, material);
        gone.iter().for_each(|chunk| self.index.remove(chunk));
        for chunk in new.iter().flatten().filter_map(|id| self.chunks.chunk(*id)) {
            self.index.add(chunk);
        }
        new
    }

    /// Puts a text in the place of an older one, which is gone whatever comes of the new. The label of the new one is
    /// [inherited](Chunks::inherited) from the old.
    ///
    /// # Errors
    /// As for [`remember`](Self::remember).
    pub fn supersede(
        &mut self,
        older: &TextSource,
        entry: &Entry,
        material: &Material,
        recorded: Option<Label>,
    ) -> Result<Vec<ChunkId>, ChunkError> {
        let label = self.chunks.inherited(older, material.label, recorded);
        self.end(&Ending::Text(older.clone()));
        self.remember(entry, &Material { label, ..material.clone() })
    }

    /// Removes what comes to an end: the chunks, postings and vectors of a text; of a session the entries and edges as well. Returns the
    /// chunks that are gone.
    pub fn end(&mut self, ending: &Ending) -> Vec<ChunkId> {
        let gone = self.chunks.end(ending);
        gone.iter().for_each(|chunk| self.index.remove(chunk));
        if let Ending::Session(session) = ending {
            self.graph.erase(session);
        }
        gone.into_iter().map(|chunk| chunk.id).collect()
    }

    /// Takes the vector of a chunk in. For a chunk that is gone by now it does nothing.
    ///
    /// # Errors
    /// [`VectorError::Embedder`], or as for [`Index::set_vector`].
    pub fn set_vector(&mut self, id: ChunkId, embedding: &Embedding) -> Result<(), VectorError> {
        let vector = self.index.embedder().own(embedding)?;
        self.place(id, vector)
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
        let mut texts = BTreeSet::new();
        let ranked = ranked(&candidates).into_iter();
        let told = ranked.filter_map(|scored| self.told(&scored, candidates.get(&scored.id)?));
        Ok(told.filter(|recalled| texts.insert(recalled.chunk.text.clone())).take(question.most).collect())
    }

    /// How new a text is to an agent, given the vectors of its pieces by the embedder of the index. A text is as new as its newest piece:
    /// what was said before, added to it, does not make it older. None if no piece has a vector.
    #[must_use]
    pub fn novelty(&self, agent: &Seat, pieces: &[Vector]) -> Option<Novelty> {
        let past: Vec<&Chunk> =
            self.chunks.of_agent(agent).take(LOOKS_BACK).filter_map(|id| self.chunks.chunk(id)).collect();
        let nearest = |vector: &Vector| past.iter().filter_map(|chunk| self.likeness(vector, chunk)).max().unwrap_or(0);
        let least = pieces.iter().map(nearest).min()?;
        Some(Novelty { thousandths: 1_000_u16.saturating_sub(least), among: past.len() })
    }

    /// How strongly a chunk was touched of late: by its own coming, with 2²⁰, and by every later chunk of its session that is near to it.
    /// Each touch halves in an hour. Only the last [`LOOKS_BACK`] chunks of the agent touch.
    #[must_use]
    pub fn impulse(&self, id: ChunkId, now: Timestamp) -> u32 {
        let Some(chunk) = self.chunks.chunk(id) else { return 0 };
        let vector = self.index.vector(chunk);
        let later = chunk.agent.iter().flat_map(|agent| self.chunks.of_agent(agent).take(LOOKS_BACK));
        let later = later.take_while(|other| *other > id).filter_map(|other| self.chunks.chunk(other));
        let echoes = later.filter(|other| other.session == chunk.session).filter_map(|other| {
            let likeness = self.likeness(vector.as_ref()?, other).filter(|likeness| *likeness >= LEAST_ECHO)?;
            Some(faded(IMPULSE / 1_000 * u32::from(likeness), other.time, now))
        });
        echoes.fold(faded(IMPULSE, chunk.time, now), u32::saturating_add)
    }

    /// The cosine in thousandths, 0 to 1,000. Exact, since the cosine of bytes is made of whole numbers, one root and one division.
    fn likeness(&self, vector: &Vector, chunk: &Chunk) -> Option<u16> {
        Some((self.index.cosine(vector, chunk)?.clamp(0.0, 1.0) * 1_000.0) as u16)
    }

    pub(crate) fn place(&mut self, id: ChunkId, vector: &Vector) -> Result<(), VectorError> {
        self.chunks.chunk(id).map_or(Ok(()), |chunk| self.index.set_vector(chunk, vector))
    }

    /// What the words and the vector bring, each with both scores.
    fn candidates(&self, question: &Question<'_>) -> Result<BTreeMap<ChunkId, Candidate>, RecallError> {
        let Question { text, filter, .. } = question;
        let allows = |id| self.chunks.chunk(id).is_some_and(|chunk| filter.allows(chunk));
        let words = self.index.scores(text, filter.clearance);
        let best = words.best(CANDIDATES, allows);
        let top = best.first().map_or(1.0, |scored| scored.score);
        let (embedder, asked) = (self.index.embedder(), self.index.asked(text, filter.clearance));
        let made = embedder.is_built_in().then(|| asked.vector(embedder.dimension())).flatten();
        let given = question.embedding.map(|embedding| embedder.own(embedding)).transpose()?;
        let vector = given.or(made.as_ref());
        let near = match vector {
            Some(vector) => self.index.nearest(vector, CANDIDATES, filter.clearance, allows)?,
            None => Vec::new(),
        };
        let ids = best.iter().chain(&near).map(|scored| scored.id);
        let candidate = |id| {
            let chunk = self.chunks.chunk(id)?;
            let cosine = vector.and_then(|vector| self.index.cosine(vector, chunk));
            let nearness = embedder.nearness(cosine, &asked, &chunk.text);
            Some((id, Candidate { words: words.score(id) / top, nearness, ..Candidate::default() }))
        };
        Ok(ids.collect::<BTreeSet<ChunkId>>().into_iter().filter_map(candidate).collect())
    }

    /// Gives what is near the best in the graph its share. A share comes from what was found, never from another share.
    fn add_neighbours(&self, candidates: &mut BTreeMap<ChunkId, Candidate>, filter: &Filter) {
        let seeds: Vec<Scored> = ranked(candidates).into_iter().take(SEEDS).collect();
        for seed in seeds {
            let Some(TextSource::Entry(start)) = self.chunks.chunk(seed.id).map(|chunk| &chunk.source) else {
                continue;
            };
            let may_pass = |entry: &Entry| entry.confidentiality <= filter.clearance;
            for (entry, weight) in self.graph.near(start, NEAR_EDGES, NEAR_ENTRIES, DECAY, may_pass) {
                let share = seed.score * weight as f32;
                for chunk in self.chunks.of_source(&TextSource::Entry(entry)).filter(|chunk| filter.allows(chunk)) {
                    let candidate = candidates.entry(chunk.id).or_default();
                    if share > candidate.score() {
                        (candidate.share, candidate.near) = (share, Some(*start));
                    }
                }
            }
        }
    }

    fn told(&self, scored: &Scored, candidate: &Candidate) -> Option<Recalled> {
        let chunk = self.chunks.chunk(scored.id)?.clone();
        Some(Recalled {
            label: chunk.recalled(),
            chunk,
            score: scored.score,
            words: candidate.words,
            nearness: candidate.nearness,
            near: candidate.near,
        })
    }
}

/// The candidates that have a score at all, the best first.
fn ranked(candidates: &BTreeMap<ChunkId, Candidate>) -> Vec<Scored> {
    let scored = candidates.iter().map(|(id, candidate)| Scored { id: *id, score: candidate.score() });
    let mut scored: Vec<Scored> = scored.filter(|scored| scored.score > 0.0).collect();
    scored.sort_unstable_by(|a, b| b.cmp(a));
    scored
}

/// What is left of a touch: halved for every half-life, and straight in between. In whole numbers, so that it is the same everywhere.
fn faded(strength: u32, at: Timestamp, now: Timestamp) -> u32 {
    // A clock that goes back takes nothing away.
    let micros = now.0.saturating_sub(at.0);
    let (halves, rest) = (micros / HALF_LIFE_MICROS, micros % HALF_LIFE_MICROS);
    let halved = u32::try_from(halves).ok().and_then(|halves| strength.checked_shr(halves)).unwrap_or(0);
    let lost = u64::from(halved) * rest / HALF_LIFE_MICROS / 2;
    halved - u32::try_from(lost).unwrap_or(halved)
}
