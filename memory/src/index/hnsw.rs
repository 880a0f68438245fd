//! A cache for the nearest vectors: HNSW (Malkov, Yashunin 2016) by `hnsw_rs`, above a hundred thousand different ones.
//!
//! Below, all are searched, so nearly every home has none. It holds each direction once, however many chunks have it: of equal vectors
//! the graph would lose most. It answers nothing by itself. What it has not taken in yet is searched one by one, what has been removed is dropped from
//! what it finds, and where too little is left, all vectors are searched. So an answer never waits for it, and never holds
//! what is gone. It is made again, beside the one in use, when a quarter of it is dead; and given up when there are a fifth fewer
//! vectors than it begins with, so that one more or less does not build it anew.
//!
//! What `hnsw_rs` 0.3 does to its caller, and what is done about it: it ends the process on bad parameters
//! ([`HnswParameters`] refuses them), panics on a distance that is negative or NaN (`Cosine` makes none), may panic in
//! a filtered search (none is made), and spreads the clearing of a graph over rayon's threads when it is dropped, reading
//! the clock (it is dropped within [`Pool`]). Its parallel insertion and its dumps are not used.

use std::{
    collections::BTreeSet,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use hnsw_rs::prelude::{Distance, Hnsw};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::{
    Scored, merged,
    vectors::{Direction, Vector, Vectors, dot},
};
use crate::chunks::ChunkId;

/// Up to so many different vectors all are searched, unless the parameters say fewer: 38 MB of 384 numbers, some 20 ms, exact, and
/// nothing to be built.
pub const EXACT_UP_TO: usize = 100_000;

/// The layers that `hnsw_rs` has at most.
const LAYERS: usize = 16;

/// A parameter that `hnsw_rs` would answer by ending the process, or by finding nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadParameters {
    /// Connections are 4 to 64.
    #[error("{0} connections, from 4 to 64")]
    Connections(usize),
    /// The candidates while building are as many as the connections at least and 1,024 at most.
    #[error("{0} candidates while building, from the connections to 1,024")]
    Construction(usize),
    /// The candidates of a search are 1 to 1,024.
    #[error("{0} candidates of a search, from 1 to 1,024")]
    Search(usize),
    /// The most vectors that are all searched are 1 to [`EXACT_UP_TO`].
    #[error("exact search up to {0} vectors, from 1 to {EXACT_UP_TO}")]
    Exact(usize),
}

/// The parameters of the graph, as the paper has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HnswParameters {
    connections: usize,
    construction: usize,
    search: usize,
    exact: usize,
}

impl HnswParameters {
    /// `M`, `efConstruction` and `ef`.
    ///
    /// # Errors
    /// [`BadParameters`].
    pub const fn new(connections: usize, construction: usize, search: usize) -> Result<Self, BadParameters> {
        if connections < 4 || connections > 64 {
            return Err(BadParameters::Connections(connections));
        }
        if construction < connections || construction > 1_024 {
            return Err(BadParameters::Construction(construction));
        }
        if search == 0 || search > 1_024 {
            return Err(BadParameters::Search(search));
        }
        Ok(Self { connections, construction, search, exact: EXACT_UP_TO })
    }

    /// With a graph above so many different vectors already.
    ///
    /// # Errors
    /// [`BadParameters::Exact`].
    pub const fn exact_up_to(self, exact: usize) -> Result<Self, BadParameters> {
        if exact == 0 || exact > EXACT_UP_TO {
            return Err(BadParameters::Exact(exact));
        }
        Ok(Self { exact, ..self })
    }
}

impl Default for HnswParameters {
    /// 16 connections, 200 candidates while building, 96 in a search.
    fn default() -> Self {
        Self { connections: 16, construction: 200, search: 96, exact: EXACT_UP_TO }
    }
}

/// The one thread on which a graph is cleared. It begins when a pool is made and ends when the last of its owners is dropped.
#[derive(Clone)]
pub struct Pool(Arc<ThreadPool>);

impl Pool {
    /// A pool whose thread the caller begins: `spawn` is called once, with what the thread runs and its name.
    ///
    /// # Errors
    /// What rayon says if `spawn` fails.
    pub fn new(
        mut spawn: impl FnMut(String, Box<dyn FnOnce() + Send>) -> io::Result<()>,
    ) -> Result<Self, ThreadPoolBuildError> {
        let builder = ThreadPoolBuilder::new()
            .num_threads(1)
            .spawn_handler(move |thread| spawn("ephor-hnsw".to_owned(), Box::new(move || thread.run())));
        Ok(Self(Arc::new(builder.build()?)))
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool")
    }
}

/// What the cache is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheState {
    /// There are so few vectors that all are searched.
    Exact,
    /// It is being built. Searches are answered all the same.
    Building {
        /// How many vectors are still to be put in.
        left: usize,
    },
    /// It holds every vector.
    Ready,
}

impl CacheState {
    /// What two caches are at together.
    pub(super) const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Building { left: a }, Self::Building { left: b }) => Self::Building { left: a + b },
            (Self::Building { left }, _) | (_, Self::Building { left }) => Self::Building { left },
            (Self::Ready, _) | (_, Self::Ready) => Self::Ready,
            (Self::Exact, Self::Exact) => Self::Exact,
        }
    }
}

/// One less the cosine. A row is its numbers and then the four bytes of its length.
#[derive(Clone, Copy)]
struct Cosine;

/// The bytes of the length at the end of a row.
const TAIL: usize = 4;

impl Distance<i8> for Cosine {
    fn eval(&self, a: &[i8], b: &[i8]) -> f32 {
        match (a.split_last_chunk::<TAIL>(), b.split_last_chunk::<TAIL>()) {
            // Rounding can bring a cosine above 1; `max` also makes a number of what is none.
            (Some((a, norm_a)), Some((b, norm_b))) => {
                (1.0 - dot(a, b) as f32 / (length(*norm_a) * length(*norm_b))).max(0.0)
            }
            _ => 1.0,
        }
    }
}

fn length(bytes: [i8; TAIL]) -> f32 {
    f32::from_le_bytes(bytes.map(i8::cast_unsigned))
}

fn row(vector: &Vector) -> Vec<i8> {
    let norm = vector.norm().to_le_bytes().map(u8::cast_signed);
    vector.numbers().iter().copied().chain(norm).collect()
}

/// A graph of `hnsw_rs`, and what was put into it.
struct Layered {
    /// Taken only when it is dropped.
    graph: Option<Hnsw<'static, i8, Cosine>>,
    inserted: BTreeSet<Direction>,
    pool: Pool,
}

impl Layered {
    fn new(parameters: &HnswParameters, expected: usize, pool: Pool) -> Self {
        let HnswParameters { connections, construction, .. } = *parameters;
        let graph = Hnsw::new(connections, expected, LAYERS, construction, Cosine);
        Self { graph: Some(graph), inserted: BTreeSet::new(), pool }
    }

    /// Puts a vector in, unless it is gone or in already.
    fn insert(&mut self, vectors: &Vectors, direction: Direction) {
        if let (Some(graph), Some(vector), Ok(number)) =
            (&self.graph, vectors.numbers_of(direction), usize::try_from(direction.0))
            && self.inserted.insert(direction)
        {
            graph.insert((&row(&vector), number));
        }
    }

    fn search(&self, vector: &Vector, candidates: usize) -> impl Iterator<Item = Direction> {
        let found = self.graph.as_ref().map(|graph| graph.search(&row(vector), candidates, candidates));
        found.into_iter().flatten().filter_map(|neighbour| u64::try_from(neighbour.d_id).ok()).map(Direction)
    }
}

impl Drop for Layered {
    fn drop(&mut self) {
        if let Some(graph) = self.graph.take() {
            // It measures the time that it takes by the wall clock and panics if that is set back meanwhile. By then
            // everything is cleared.
            let _cleared = catch_unwind(AssertUnwindSafe(|| self.pool.0.install(move || drop(graph))));
        }
    }
}

impl fmt::Debug for Layered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layered").field("inserted", &self.inserted.len()).finish_non_exhaustive()
    }
}

/// The graph in use and the one being built.
#[derive(Debug)]
pub(super) struct Cache {
    parameters: HnswParameters,
    pool: Pool,
    serving: Option<Layered>,
    /// The vectors that `serving` does not hold.
    tail: BTreeSet<Direction>,
    /// How many that `serving` holds are gone.
    dead: usize,
    building: Option<Layered>,
    /// What is still to be put into `building`, the lowest number last.
    left: Vec<Direction>,
}

impl Cache {
    pub(super) const fn new(parameters: HnswParameters, pool: Pool) -> Self {
        Self { parameters, pool, serving: None, tail: BTreeSet::new(), dead: 0, building: None, left: Vec::new() }
    }

    pub(super) fn added(&mut self, id: Direction) {
        if self.serving.is_some() {
            self.tail.insert(id);
        }
    }

    pub(super) fn removed(&mut self, id: Direction) {
        if self.serving.is_some() && !self.tail.remove(&id) {
            self.dead += 1;
        }
    }

    /// Puts at most `work` vectors in.
    pub(super) fn advance(&mut self, vectors: &Vectors, work: usize) -> CacheState {
        let (most, is_in_use) = (self.parameters.exact, self.serving.is_some() || self.building.is_some());
        if vectors.different() <= if is_in_use { most - most / 5 } else { most } {
            self.clear();
            return CacheState::Exact;
        }
        if self.building.is_none() && self.is_due() {
            self.building = Some(Layered::new(&self.parameters, vectors.different(), self.pool.clone()));
            self.left = vectors.directions().rev().collect();
        }
        if let Some(building) = &mut self.building {
            let next = self.left.len().saturating_sub(work);
            self.left.drain(next..).rev().for_each(|id| building.insert(vectors, id));
            if self.left.is_empty() {
                self.take_over(vectors);
            }
        } else if let Some(serving) = &mut self.serving {
            for _ in 0..work {
                let Some(id) = self.tail.pop_first() else { break };
                serving.insert(vectors, id);
            }
        }
        match self.left.len() + self.tail.len() {
            0 => CacheState::Ready,
            left => CacheState::Building { left },
        }
    }

    /// The nearest, if there is a graph, and enough of what it finds is there and allowed.
    pub(super) fn search(
        &self,
        vectors: &Vectors,
        vector: &Vector,
        most: usize,
        allows: &impl Fn(ChunkId) -> bool,
    ) -> Option<Vec<Scored>> {
        let serving = self.serving.as_ref()?;
        let candidates = self.candidates(serving, most)?;
        let scored = |direction| {
            let (id, score) = (vectors.first(direction, allows)?, vectors.cosine_of(vector, direction)?);
            Some(Scored { id, score })
        };
        let found: Vec<Scored> = serving.search(vector, candidates).filter_map(scored).take(most).collect();
        let tail: Vec<Scored> = self.tail.iter().copied().filter_map(scored).collect();
        (found.len() == most).then(|| vectors.expanded(&merged(most, [found, tail]), allows))
    }

    /// How many to ask for: as many more as some of them are dead. None if the graph could not give so many.
    fn candidates(&self, serving: &Layered, most: usize) -> Option<usize> {
        let inserted = serving.inserted.len();
        let alive = inserted.checked_sub(self.dead).filter(|alive| *alive > 0)?;
        let wanted = self.parameters.search.max(most.checked_mul(2)?);
        let candidates = wanted.checked_mul(inserted)? / alive;
        (candidates <= inserted).then_some(candidates)
    }

    fn is_due(&self) -> bool {
        self.serving.as_ref().is_none_or(|serving| self.dead.saturating_mul(4) > serving.inserted.len())
    }

    /// The graph that was built comes into use.
    fn take_over(&mut self, vectors: &Vectors) {
        if let Some(built) = self.building.take() {
            self.tail = vectors.directions().filter(|direction| !built.inserted.contains(direction)).collect();
            self.dead = built.inserted.iter().filter(|direction| !vectors.has(**direction)).count();
            self.serving = Some(built);
        }
    }

    fn clear(&mut self) {
        (self.serving, self.building, self.dead) = (None, None, 0);
        self.tail.clear();
        self.left.clear();
    }
}
