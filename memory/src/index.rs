//! The index: which chunks have the words of a question, and which are near to it.
//!
//! [`bm25`] counts words, [`embed`] makes vectors of a text, [`vectors`] keeps them and searches all of them, [`hnsw`] is a
//! cache that searches fewer. Everything here follows from the chunks: it can be thrown away and made again.
//!
//! There is one such index for each confidentiality, and a reader asks those that it may see. So what it may not see changes nothing in
//! what it is told: no frequency, no mean, no order.

mod best;
pub mod bm25;
pub mod embed;
pub mod hnsw;
pub mod vectors;

use std::collections::BTreeMap;

use ephor_base::Confidentiality;

pub use self::best::Scored;
use self::{
    best::Best,
    bm25::{Bm25, Scores},
    embed::{Asked, Counters, Embedder},
    hnsw::{Cache, CacheState, HnswParameters, Pool},
    vectors::{Vector, VectorError, Vectors},
};
use crate::chunks::{Chunk, ChunkId};

/// The index over the chunks of one store.
#[derive(Debug)]
pub struct Index {
    embedder: Embedder,
    parameters: HnswParameters,
    pool: Pool,
    levels: BTreeMap<Confidentiality, Level>,
}

/// The index over the chunks of one confidentiality.
#[derive(Debug)]
struct Level {
    words: Bm25,
    counters: Counters,
    vectors: Vectors,
    cache: Cache,
}

impl Index {
    /// An empty index for the vectors of one embedder. What `hnsw_rs` does on threads it does in `pool`.
    #[must_use]
    pub const fn new(embedder: Embedder, parameters: HnswParameters, pool: Pool) -> Self {
        Self { embedder, parameters, pool, levels: BTreeMap::new() }
    }

    /// Takes the words of a chunk in. Its vector comes when there is one, by [`set_vector`](Self::set_vector).
    pub fn add(&mut self, chunk: &Chunk) {
        let level = self.level_mut(chunk.label.confidentiality);
        if level.words.add(chunk.id, &chunk.text) {
            level.counters.add(&chunk.text);
        }
    }

    /// Takes the vector of a chunk in. It is by the embedder of this index.
    ///
    /// # Errors
    /// [`VectorError::Dimension`] if it has another number of numbers, [`VectorError::Taken`] if the chunk has one.
    pub fn set_vector(&mut self, chunk: &Chunk, vector: &Vector) -> Result<(), VectorError> {
        let level = self.level_mut(chunk.label.confidentiality);
        if let Some(direction) = level.vectors.add(chunk.id, vector)? {
            level.cache.added(direction);
        }
        Ok(())
    }

    /// Takes a chunk out. It is in no answer from now on, whatever the cache still holds.
    pub fn remove(&mut self, chunk: &Chunk) {
        let level = self.level_mut(chunk.label.confidentiality);
        if level.words.remove(chunk.id, &chunk.text) {
            level.counters.remove(&chunk.text);
        }
        if let Some(direction) = level.vectors.remove(chunk.id) {
            level.cache.removed(direction);
        }
    }

    /// Who makes its vectors.
    #[must_use]
    pub const fn embedder(&self) -> &Embedder {
        &self.embedder
    }

    /// The vectors of one confidentiality, if there are any.
    #[must_use]
    pub fn vectors(&self, confidentiality: Confidentiality) -> Option<&Vectors> {
        self.levels.get(&confidentiality).map(|level| &level.vectors)
    }

    /// The vector of a chunk.
    #[must_use]
    pub fn vector(&self, chunk: &Chunk) -> Option<Vector> {
        self.vectors(chunk.label.confidentiality)?.vector(chunk.id)
    }

    /// The cosine between a vector and that of a chunk, from −1 to 1 but for rounding.
    #[must_use]
    pub fn cosine(&self, vector: &Vector, chunk: &Chunk) -> Option<f32> {
        self.vectors(chunk.label.confidentiality)?.cosine(vector, chunk.id)
    }

    /// The BM25 scores of a question among the chunks that a reader of that clearance may see.
    #[must_use]
    pub fn scores(&self, question: &str, clearance: Confidentiality) -> Scores<'_> {
        Scores::of(question, self.seen(clearance).map(|level| &level.words))
    }

    /// The features of a question, each as rare as it is among the chunks that a reader of that clearance may see.
    #[must_use]
    pub fn asked(&self, question: &str, clearance: Confidentiality) -> Asked {
        Asked::of(question, self.seen(clearance).map(|level| &level.counters))
    }

    /// Chunks of the `most` directions nearest to a vector, by cosine, that have one which a reader of that clearance may see and `allows`
    /// holds for; the nearest first, and a few chunks of each.
    ///
    /// # Errors
    /// [`VectorError::Dimension`] if the vector has another number of numbers.
    pub fn nearest(
        &self,
        vector: &Vector,
        most: usize,
        clearance: Confidentiality,
        allows: impl Fn(ChunkId) -> bool,
    ) -> Result<Vec<Scored>, VectorError> {
        self.embedder.dimension().check(vector)?;
        let allows = &allows;
        let mut all = Vec::new();
        for Level { vectors, cache, .. } in self.seen(clearance) {
            all.extend(match cache.search(vectors, vector, most, allows) {
                Some(found) => found,
                None => vectors.nearest(vector, most, allows)?,
            });
        }
        all.sort_unstable_by(|a, b| b.cmp(a));
        Ok(all)
    }

    /// Works on the caches, putting in at most so many vectors each, each of which takes some milliseconds.
    pub fn advance(&mut self, work: usize) -> CacheState {
        let states = self.levels.values_mut().map(|level| level.cache.advance(&level.vectors, work));
        states.fold(CacheState::Exact, CacheState::and)
    }

    /// What a reader of that clearance may see.
    fn seen(&self, clearance: Confidentiality) -> impl Iterator<Item = &Level> {
        self.levels.range(..=clearance).map(|(_, level)| level)
    }

    fn level_mut(&mut self, confidentiality: Confidentiality) -> &mut Level {
        let Self { embedder, parameters, pool, levels } = self;
        levels.entry(confidentiality).or_insert_with(|| Level {
            words: Bm25::default(),
            counters: Counters::default(),
            vectors: Vectors::new(embedder.dimension()),
            cache: Cache::new(*parameters, pool.clone()),
        })
    }
}

/// The best of two lists.
fn merged(most: usize, lists: [Vec<Scored>; 2]) -> Vec<Scored> {
    let mut best = Best::new(most);
    lists.into_iter().flatten().for_each(|scored| best.offer(scored.score, || Some(scored.id)));
    best.into_sorted()
}
