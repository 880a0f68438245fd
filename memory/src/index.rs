//! The index: which chunks have the words of a question, and which are near to it.
//!
//! [`bm25`] counts words, [`embed`] makes vectors of a text, [`vectors`] keeps them and searches all of them, [`hnsw`] is a
//! cache that searches fewer. Everything here follows from the chunks: it can be thrown away and made again.

mod best;
pub mod bm25;
pub mod embed;
pub mod hnsw;
pub mod vectors;

use std::collections::BTreeMap;

pub use self::best::Scored;
use self::{
    best::Best,
    bm25::Bm25,
    embed::HashedNgrams,
    hnsw::{Cache, CacheState, HnswParameters, Pool},
    vectors::{Dimension, Vector, VectorError, Vectors},
};
use crate::chunks::{Chunk, ChunkId};

/// The index over the chunks of one store.
#[derive(Debug)]
pub struct Index {
    words: Bm25,
    embedder: HashedNgrams,
    vectors: Vectors,
    cache: Cache,
}

impl Index {
    /// An empty index for vectors of that many numbers. What `hnsw_rs` does on threads it does in `pool`.
    #[must_use]
    pub fn new(dimension: Dimension, parameters: HnswParameters, pool: Pool) -> Self {
        Self {
            words: Bm25::default(),
            embedder: HashedNgrams::new(dimension),
            vectors: Vectors::new(dimension),
            cache: Cache::new(parameters, pool),
        }
    }

    /// Takes the words of a chunk in. Its vector comes when there is one, by [`set_vector`](Self::set_vector).
    pub fn add(&mut self, chunk: &Chunk) {
        if self.words.add(chunk.id, &chunk.text) {
            self.embedder.add(&chunk.text);
        }
    }

    /// Takes the vector of a chunk in.
    ///
    /// # Errors
    /// [`VectorError::Dimension`] if it has another number of numbers, [`VectorError::Taken`] if the chunk has one.
    pub fn set_vector(&mut self, id: ChunkId, vector: &Vector) -> Result<(), VectorError> {
        self.vectors.add(id, vector)?;
        self.cache.added(id);
        Ok(())
    }

    /// Takes a chunk out. It is in no answer from now on, whatever the cache still holds.
    pub fn remove(&mut self, chunk: &Chunk) {
        if self.words.remove(chunk.id, &chunk.text) {
            self.embedder.remove(&chunk.text);
        }
        if self.vectors.remove(chunk.id) {
            self.cache.removed(chunk.id);
        }
    }

    /// The built-in embedder, with what it has counted.
    #[must_use]
    pub const fn embedder(&self) -> &HashedNgrams {
        &self.embedder
    }

    /// The vectors.
    #[must_use]
    pub const fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// The BM25 score of every chunk that `allows` holds for and that has one of the words.
    #[must_use]
    pub fn scores(&self, question: &str, allows: impl Fn(ChunkId) -> bool) -> BTreeMap<ChunkId, f32> {
        self.words.scores(question, allows)
    }

    /// The `most` chunks nearest to a vector, by cosine, of those that `allows` holds for; the nearest first.
    ///
    /// # Errors
    /// [`VectorError::Dimension`] if the vector has another number of numbers.
    pub fn nearest(
        &self,
        vector: &Vector,
        most: usize,
        allows: impl Fn(ChunkId) -> bool,
    ) -> Result<Vec<Scored>, VectorError> {
        self.vectors.check(vector)?;
        let allows = &allows;
        match self.cache.search(&self.vectors, vector, most, allows) {
            Some(found) => Ok(found),
            None => self.vectors.nearest(vector, most, allows),
        }
    }

    /// Works on the cache, putting in at most so many vectors, each of which takes some milliseconds.
    pub fn advance(&mut self, work: usize) -> CacheState {
        self.cache.advance(&self.vectors, work)
    }
}

/// The best of two lists.
fn merged(most: usize, lists: [Vec<Scored>; 2]) -> Vec<Scored> {
    let mut best = Best::new(most);
    lists.into_iter().flatten().for_each(|scored| best.offer(scored, || true));
    best.into_sorted()
}
