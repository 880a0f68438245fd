//! Vectors of 8-bit numbers, and the search through all of them: exact, and quick enough for ten thousand.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use super::best::{Best, Scored};
use crate::chunks::ChunkId;

/// The most numbers a vector has.
pub const MOST_DIMENSION: usize = 4_096;

/// Why a vector was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
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
    #[error("chunk {} has a vector already", .0.0)]
    Taken(ChunkId),
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

    /// The cosine of the angle between two vectors of the same dimension, from −1 to 1 but for rounding.
    #[must_use]
    pub fn cosine(&self, other: &Self) -> f32 {
        dot(&self.0, &other.0) as f32 / (self.norm() * other.norm())
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

/// Vectors by chunk, one after another in memory.
#[derive(Debug)]
pub struct Vectors {
    dimension: Dimension,
    numbers: Vec<i8>,
    /// The chunk of each vector, and the vector's length.
    rows: Vec<(ChunkId, f32)>,
    places: BTreeMap<ChunkId, usize>,
}

impl Vectors {
    /// None, of that dimension.
    #[must_use]
    pub const fn new(dimension: Dimension) -> Self {
        Self { dimension, numbers: Vec::new(), rows: Vec::new(), places: BTreeMap::new() }
    }

    /// Takes a vector in.
    ///
    /// # Errors
    /// [`VectorError::Dimension`] or [`VectorError::Taken`].
    pub fn add(&mut self, id: ChunkId, vector: &Vector) -> Result<(), VectorError> {
        self.check(vector)?;
        if self.places.contains_key(&id) {
            return Err(VectorError::Taken(id));
        }
        self.places.insert(id, self.rows.len());
        self.rows.push((id, vector.norm()));
        self.numbers.extend_from_slice(vector.numbers());
        Ok(())
    }

    /// Takes the vector of a chunk out, and says whether there was one.
    pub fn remove(&mut self, id: ChunkId) -> bool {
        let Some(at) = self.places.remove(&id) else { return false };
        self.rows.swap_remove(at);
        if let Some((moved, _)) = self.rows.get(at) {
            self.places.insert(*moved, at);
        }
        // The last takes the place.
        let (width, end) = (self.dimension.get(), self.numbers.len());
        self.numbers.copy_within(end - width.., at * width);
        self.numbers.truncate(end - width);
        true
    }

    /// Whether the chunk has a vector.
    #[must_use]
    pub fn contains(&self, id: ChunkId) -> bool {
        self.places.contains_key(&id)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The chunks that have a vector, by number.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ChunkId> {
        self.places.keys().copied()
    }

    /// The vector of a chunk.
    #[must_use]
    pub fn vector(&self, id: ChunkId) -> Option<Vector> {
        Some(Vector(self.row(*self.places.get(&id)?)?.into()))
    }

    /// The cosine between a vector and that of a chunk.
    #[must_use]
    pub fn cosine(&self, vector: &Vector, id: ChunkId) -> Option<f32> {
        let at = *self.places.get(&id)?;
        Some(self.score(vector.numbers(), vector.norm(), at, self.row(at)?))
    }

    /// The `most` nearest of all that `allows` holds for, the nearest first.
    ///
    /// # Errors
    /// [`VectorError::Dimension`].
    pub fn nearest(
        &self,
        vector: &Vector,
        most: usize,
        allows: impl Fn(ChunkId) -> bool,
    ) -> Result<Vec<Scored>, VectorError> {
        self.check(vector)?;
        let (numbers, norm) = (vector.numbers(), vector.norm());
        let mut best = Best::new(most);
        let rows = self.rows.iter().zip(self.numbers.chunks_exact(self.dimension.get()));
        for (at, ((id, _), row)) in rows.enumerate() {
            best.offer(Scored { id: *id, score: self.score(numbers, norm, at, row) }, || allows(*id));
        }
        Ok(best.into_sorted())
    }

    /// Whether the vector is of the dimension of the others.
    ///
    /// # Errors
    /// [`VectorError::Dimension`] if it is not.
    pub fn check(&self, vector: &Vector) -> Result<(), VectorError> {
        let (found, expected) = (vector.numbers().len(), self.dimension.get());
        if found == expected { Ok(()) } else { Err(VectorError::Dimension { found, expected }) }
    }

    fn row(&self, at: usize) -> Option<&[i8]> {
        let width = self.dimension.get();
        self.numbers.get(at * width..(at + 1) * width)
    }

    fn score(&self, numbers: &[i8], norm: f32, at: usize, row: &[i8]) -> f32 {
        let other = self.rows.get(at).map_or(norm, |(_, norm)| *norm);
        dot(numbers, row) as f32 / (norm * other)
    }
}
