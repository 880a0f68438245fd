//! Vectors of 8-bit numbers, and the search through all of them: exact, and quick enough for a hundred thousand.

use std::collections::{BTreeMap, BTreeSet};

use ephor_base::Digest;
use minicbor::{Decode, Encode};

use super::{
    best::{Best, Scored},
    embed::{EmbedderName, MOST_EMBEDDER_NAME},
};
use crate::chunks::ChunkId;

/// The most numbers a vector has.
pub const MOST_DIMENSION: usize = 4_096;

/// How many chunks of one direction a search tells of.
const MOST_OF_ONE: usize = 4;

/// Why a vector, or an embedder, was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VectorError {
    /// Of another number of numbers than the others, of none, or of more than [`MOST_DIMENSION`].
    #[error("a vector of {found} numbers, expected {expected}")]
    Dimension {
        /// How many it has.
        found: usize,
        /// How many it must have, or may have at most.
        expected: usize,
    },
    /// A number is infinite or none at all.
    #[error("a vector with a number that is not finite")]
    NotFinite,
    /// All numbers are zero, so it has no direction.
    #[error("a vector without a direction")]
    Zero,
    /// The chunk has a vector already.
    #[error("piece {} of entry {} has a vector already", .0.piece, .0.entry)]
    Taken(ChunkId),
    /// A vector by another embedder: the two are not comparable. Or the name of the built-in embedder for another.
    #[error("a vector by `{}`, expected one by `{}`", found.as_str(), expected.as_str())]
    Embedder {
        /// Who made it.
        found: EmbedderName,
        /// Who made the others.
        expected: EmbedderName,
    },
    /// The name of an embedder that is empty or longer than [`MOST_EMBEDDER_NAME`].
    #[error("the name of an embedder with {0} bytes, from 1 to {MOST_EMBEDDER_NAME}")]
    Name(usize),
    /// A floor above 1,000 thousandths.
    #[error("a floor of {0} thousandths, at most 1,000")]
    Floor(u16),
}

/// How many numbers a vector has: 1 to [`MOST_DIMENSION`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dimension(usize);

impl Dimension {
    /// That many.
    ///
    /// # Errors
    /// [`VectorError::Dimension`] for none or more than [`MOST_DIMENSION`].
    pub const fn new(numbers: usize) -> Result<Self, VectorError> {
        if numbers == 0 || numbers > MOST_DIMENSION {
            return Err(VectorError::Dimension { found: numbers, expected: MOST_DIMENSION });
        }
        Ok(Self(numbers))
    }

    /// As a number.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }

    /// Whether a vector is of this dimension.
    ///
    /// # Errors
    /// [`VectorError::Dimension`] if it is not.
    pub fn check(self, vector: &Vector) -> Result<(), VectorError> {
        let (found, expected) = (vector.numbers().len(), self.0);
        if found == expected { Ok(()) } else { Err(VectorError::Dimension { found, expected }) }
    }
}

/// A direction: 1 to [`MOST_DIMENSION`] numbers from −127 to 127, of which the largest is ±127.
#[derive(Clone, PartialEq, Eq, Debug, Encode)]
#[cbor(transparent)]
pub struct Vector(#[cbor(n(0), with = "bytes")] Box<[i8]>);

impl Vector {
    /// The direction of `numbers`, each rounded to one of 255 steps between minus and plus the largest.
    ///
    /// # Errors
    /// [`VectorError::Dimension`], [`VectorError::NotFinite`] or [`VectorError::Zero`].
    pub fn quantised(numbers: &[f32]) -> Result<Self, VectorError> {
        Dimension::new(numbers.len())?;
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(VectorError::NotFinite);
        }
        let largest = numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        if largest == 0.0 {
            return Err(VectorError::Zero);
        }
        // Divided first: a scale of 127 / largest would be infinite for the smallest numbers there are.
        Ok(Self(numbers.iter().map(|number| (number / largest * 127.0).round() as i8).collect()))
    }

    /// The numbers.
    #[must_use]
    pub fn numbers(&self) -> &[i8] {
        &self.0
    }

    /// Its length; at least 127.
    #[must_use]
    pub fn norm(&self) -> f32 {
        (dot(&self.0, &self.0) as f32).sqrt()
    }
}

impl<'b, C> Decode<'b, C> for Vector {
    fn decode(from: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        let numbers: Box<[i8]> = from.bytes()?.iter().map(|byte| byte.cast_signed()).collect();
        let is_ours = Dimension::new(numbers.len()).is_ok()
            && numbers.iter().map(|number| number.unsigned_abs()).max() == Some(127);
        is_ours.then_some(Self(numbers)).ok_or_else(|| minicbor::decode::Error::message("no vector"))
    }
}

/// A vector as a string of bytes.
mod bytes {
    use minicbor::{
        Encoder,
        encode::{Error, Write},
    };

    #[expect(clippy::borrowed_box, reason = "the derived code passes the field as it is")]
    pub(super) fn encode<C, W: Write>(
        numbers: &Box<[i8]>,
        to: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), Error<W::Error>> {
        let bytes: Vec<u8> = numbers.iter().map(|number| number.cast_unsigned()).collect();
        to.bytes(&bytes)?.ok()
    }
}

/// The sum of the products. At most 4,096 × 127² = 6.6 × 10⁷, so nothing wraps; a checked sum would not be vectorised.
pub(super) fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).fold(0, |sum, (a, b)| sum.wrapping_add(i32::from(i16::from(*a).wrapping_mul(i16::from(*b)))))
}

/// The number of a direction in its store. Counts up, and says nothing outside of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Direction(pub(super) u64);

/// Vectors by chunk. Equal vectors lie in memory once, one direction after another, with the chunks that have it: so nothing is gained
/// by saying a thing often.
#[derive(Debug)]
pub struct Vectors {
    dimension: Dimension,
    numbers: Vec<i8>,
    rows: Vec<Row>,
    /// The row of each direction.
    places: BTreeMap<Direction, usize>,
    /// By the digest of the numbers.
    directions: BTreeMap<Digest, Direction>,
    chunks: BTreeMap<ChunkId, Direction>,
    next: u64,
}

#[derive(Debug)]
struct Row {
    direction: Direction,
    digest: Digest,
    /// The vector's length.
    norm: f32,
    /// At least one.
    chunks: BTreeSet<ChunkId>,
}

impl Vectors {
    /// None, of that dimension.
    #[must_use]
    pub const fn new(dimension: Dimension) -> Self {
        Self {
            dimension,
            numbers: Vec::new(),
            rows: Vec::new(),
            places: BTreeMap::new(),
            directions: BTreeMap::new(),
            chunks: BTreeMap::new(),
            next: 0,
        }
    }

    /// Takes a vector in. Returns the direction if it is the first chunk that has it.
    ///
    /// # Errors
    /// [`VectorError::Dimension`] or [`VectorError::Taken`].
    pub(super) fn add(&mut self, id: ChunkId, vector: &Vector) -> Result<Option<Direction>, VectorError> {
        self.dimension.check(vector)?;
        if self.chunks.contains_key(&id) {
            return Err(VectorError::Taken(id));
        }
        let bytes: Vec<u8> = vector.numbers().iter().map(|number| number.cast_unsigned()).collect();
        let digest = Digest::of(&bytes);
        if let Some(direction) = self.directions.get(&digest).copied() {
            if let Some(row) = self.places.get(&direction).and_then(|at| self.rows.get_mut(*at)) {
                row.chunks.insert(id);
            }
            self.chunks.insert(id, direction);
            return Ok(None);
        }
        let direction = Direction(self.next);
        self.next = self.next.saturating_add(1);
        self.chunks.insert(id, direction);
        self.directions.insert(digest, direction);
        self.places.insert(direction, self.rows.len());
        self.rows.push(Row { direction, digest, norm: vector.norm(), chunks: BTreeSet::from([id]) });
        self.numbers.extend_from_slice(vector.numbers());
        Ok(Some(direction))
    }

    /// Takes the vector of a chunk out. Returns the direction if it was the last chunk that had it.
    pub(super) fn remove(&mut self, id: ChunkId) -> Option<Direction> {
        let direction = self.chunks.remove(&id)?;
        let at = *self.places.get(&direction)?;
        let row = self.rows.get_mut(at)?;
        row.chunks.remove(&id);
        if !row.chunks.is_empty() {
            return None;
        }
        let gone = self.rows.swap_remove(at);
        self.places.remove(&direction);
        self.directions.remove(&gone.digest);
        if let Some(moved) = self.rows.get(at) {
            self.places.insert(moved.direction, at);
        }
        // The last takes the place.
        let (width, end) = (self.dimension.get(), self.numbers.len());
        self.numbers.copy_within(end - width.., at * width);
        self.numbers.truncate(end - width);
        Some(direction)
    }

    /// Whether the chunk has a vector.
    #[must_use]
    pub fn contains(&self, id: ChunkId) -> bool {
        self.chunks.contains_key(&id)
    }

    /// How many chunks have one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Whether no chunk has one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// How many different ones there are: so many are looked at by a search.
    #[must_use]
    pub fn different(&self) -> usize {
        self.rows.len()
    }

    /// The chunks that have a vector, by name.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ChunkId> {
        self.chunks.keys().copied()
    }

    /// The vector of a chunk.
    #[must_use]
    pub fn vector(&self, id: ChunkId) -> Option<Vector> {
        self.numbers_of(*self.chunks.get(&id)?)
    }

    /// The cosine between a vector and that of a chunk, from −1 to 1 but for rounding; none for a vector of another dimension.
    #[must_use]
    pub fn cosine(&self, vector: &Vector, id: ChunkId) -> Option<f32> {
        self.cosine_of(vector, *self.chunks.get(&id)?)
    }

    /// Chunks of the `most` nearest directions that have one which `allows` holds for, the nearest first; a few chunks of each.
    ///
    /// # Errors
    /// [`VectorError::Dimension`].
    pub fn nearest(
        &self,
        vector: &Vector,
        most: usize,
        allows: impl Fn(ChunkId) -> bool,
    ) -> Result<Vec<Scored>, VectorError> {
        self.dimension.check(vector)?;
        let (numbers, norm) = (vector.numbers(), vector.norm());
        let mut best = Best::new(most);
        for (row, other) in self.rows.iter().zip(self.numbers.chunks_exact(self.dimension.get())) {
            let score = dot(numbers, other) as f32 / (norm * row.norm);
            best.offer(score, || row.chunks.iter().copied().find(|id| allows(*id)));
        }
        Ok(self.expanded(&best.into_sorted(), allows))
    }

    /// A few chunks of the direction of each of those found.
    pub(super) fn expanded(&self, found: &[Scored], allows: impl Fn(ChunkId) -> bool) -> Vec<Scored> {
        let chunks = |scored: &Scored| {
            let score = scored.score;
            let row = self.chunks.get(&scored.id).and_then(|direction| self.row(*direction));
            let chunks = row.into_iter().flat_map(|row| &row.chunks).copied().filter(|id| allows(*id));
            chunks.take(MOST_OF_ONE).map(|id| Scored { id, score }).collect::<Vec<_>>()
        };
        found.iter().flat_map(chunks).collect()
    }

    /// The directions, by number.
    pub(super) fn directions(&self) -> impl DoubleEndedIterator<Item = Direction> {
        self.places.keys().copied()
    }

    pub(super) fn has(&self, direction: Direction) -> bool {
        self.places.contains_key(&direction)
    }

    /// The first chunk of a direction that `allows` holds for.
    pub(super) fn first(&self, direction: Direction, allows: impl Fn(ChunkId) -> bool) -> Option<ChunkId> {
        self.row(direction)?.chunks.iter().copied().find(|id| allows(*id))
    }

    pub(super) fn numbers_of(&self, direction: Direction) -> Option<Vector> {
        let (at, width) = (*self.places.get(&direction)?, self.dimension.get());
        Some(Vector(self.numbers.get(at * width..(at + 1) * width)?.into()))
    }

    pub(super) fn cosine_of(&self, vector: &Vector, direction: Direction) -> Option<f32> {
        self.dimension.check(vector).ok()?;
        let (at, width) = (*self.places.get(&direction)?, self.dimension.get());
        let numbers = self.numbers.get(at * width..(at + 1) * width)?;
        Some(dot(vector.numbers(), numbers) as f32 / (vector.norm() * self.rows.get(at)?.norm))
    }

    fn row(&self, direction: Direction) -> Option<&Row> {
        self.rows.get(*self.places.get(&direction)?)
    }
}
