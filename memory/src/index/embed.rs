//! Who makes the vectors, by name; and the built-in embedder: hashed n-grams, weighted by idf in the question.
//!
//! Vectors are compared with those of the same embedder and no others: an [`Embedding`] carries the name, and an index takes those of one.
//!
//! The built-in embedder knows no meaning, only spelling: words, pairs of words and the three-letter parts of words are hashed into a
//! fixed number of coordinates (Weinberger and others 2009, "feature hashing"). It forgives endings and slips of the pen, and needs
//! no file. A vector of a chunk follows from its text alone, so it is the same after every rebuild, and erasing one chunk
//! leaves nothing of it in another's. How rare a feature is counts on the side of the question, where it is always up to date.
//!
//! Its vectors find what to look at. How near a text is says its coverage: the share of the question's features, by weight, that the
//! text has. The cosine would fall with the length of a text, and hashing adds noise that is greater than what a long text has left.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use super::{
    bm25::words,
    vectors::{Dimension, Vector, VectorError},
};

/// The name of the built-in embedder.
pub const HASHED_NGRAMS: &str = "hashed-ngrams-idf/1";
/// The longest name of an embedder, in bytes.
pub const MOST_EMBEDDER_NAME: usize = 128;

/// What a feature weighs. A word says more than a pair of words, which is rare, or than three of its letters.
const WORD: f32 = 1.0;
const PAIR: f32 = 0.5;
const LETTERS: f32 = 0.4;
/// How many letters are a part.
const PART: usize = 3;
/// A coverage below this counts as none: common letters alone make up as much between any two texts of a language.
const LEAST_COVERAGE: f32 = 0.25;

/// The counters of how many chunks have a feature: 2¹⁸ of 32 bits are 1 MiB. Features that share one count as one.
const COUNTERS_LOG2: u32 = 18;

/// The name of an embedder: 1 to [`MOST_EMBEDDER_NAME`] bytes. It stands for everything that its vectors depend on: model, version, prefix.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Encode)]
#[cbor(transparent)]
pub struct EmbedderName(#[n(0)] Box<str>);

impl EmbedderName {
    /// The name.
    ///
    /// # Errors
    /// [`VectorError::Name`] if it is empty or too long.
    pub fn new(name: &str) -> Result<Self, VectorError> {
        if name.is_empty() || name.len() > MOST_EMBEDDER_NAME {
            return Err(VectorError::Name(name.len()));
        }
        Ok(Self(name.into()))
    }

    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'b, C> Decode<'b, C> for EmbedderName {
    fn decode(from: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        Self::new(from.str()?).map_err(|_| minicbor::decode::Error::message("no name of an embedder"))
    }
}

/// A vector, and who made it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Embedding {
    /// Who made it.
    pub by: EmbedderName,
    /// The vector.
    pub vector: Vector,
}

/// How near a text is to a question.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Nearness {
    /// The share of the question's features that it has. Vectors are made here.
    Coverage,
    /// The cosine, if it is at least this.
    Cosine(f32),
}

/// Who makes the vectors of an index: its name, how many numbers they have, and from what cosine on two of them are near.
#[derive(Clone, PartialEq, Debug)]
pub struct Embedder {
    name: EmbedderName,
    dimension: Dimension,
    nearness: Nearness,
}

impl Embedder {
    /// The built-in one.
    #[must_use]
    pub fn built_in(dimension: Dimension) -> Self {
        Self { name: EmbedderName(HASHED_NGRAMS.into()), dimension, nearness: Nearness::Coverage }
    }

    /// Another, which the caller asks. `floor` is the cosine, in thousandths, below which two of its vectors say nothing.
    ///
    /// # Errors
    /// [`VectorError::Floor`] above 1,000, [`VectorError::Embedder`] for the name of the built-in one.
    pub fn asked(name: EmbedderName, dimension: Dimension, floor: u16) -> Result<Self, VectorError> {
        if floor > 1_000 {
            return Err(VectorError::Floor(floor));
        }
        if name.as_str() == HASHED_NGRAMS {
            return Err(VectorError::Embedder { found: name.clone(), expected: name });
        }
        Ok(Self { name, dimension, nearness: Nearness::Cosine(f32::from(floor) / 1_000.0) })
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &EmbedderName {
        &self.name
    }

    /// How many numbers its vectors have.
    #[must_use]
    pub const fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// Whether vectors are made here.
    #[must_use]
    pub const fn is_built_in(&self) -> bool {
        matches!(self.nearness, Nearness::Coverage)
    }

    /// The vector of an embedding, if it is by this embedder.
    ///
    /// # Errors
    /// [`VectorError::Embedder`] or [`VectorError::Dimension`].
    pub fn own<'a>(&self, embedding: &'a Embedding) -> Result<&'a Vector, VectorError> {
        if embedding.by != self.name {
            return Err(VectorError::Embedder { found: embedding.by.clone(), expected: self.name.clone() });
        }
        self.dimension.check(&embedding.vector)?;
        Ok(&embedding.vector)
    }

    /// The vector of a piece of text by the built-in embedder; none for a text without a word, and none by another embedder.
    #[must_use]
    pub fn chunk(&self, text: &str) -> Option<Vector> {
        self.is_built_in().then(|| Features::of(text).vector(self.dimension, |_| 1.0)).flatten()
    }

    /// From 0 to 1: how near a text is, given the cosine of its vector.
    pub(crate) fn nearness(&self, cosine: Option<f32>, asked: &Asked, text: &str) -> f32 {
        let (nearness, floor) = match self.nearness {
            Nearness::Coverage => (asked.coverage(text), LEAST_COVERAGE),
            Nearness::Cosine(floor) => (cosine.unwrap_or_default().min(1.0), floor),
        };
        if nearness >= floor { nearness.max(0.0) } else { 0.0 }
    }
}

/// How many chunks have a feature.
#[derive(Debug)]
pub struct Counters {
    chunks: u32,
    counters: Box<[u32]>,
}

impl Default for Counters {
    fn default() -> Self {
        Self { chunks: 0, counters: vec![0; 1 << COUNTERS_LOG2].into() }
    }
}

impl Counters {
    /// Counts the features of a chunk.
    pub fn add(&mut self, text: &str) {
        self.chunks = self.chunks.saturating_add(1);
        self.count(text, |counter| counter.saturating_add(1));
    }

    /// Takes the features of a chunk, which was added, out of the count.
    pub fn remove(&mut self, text: &str) {
        self.chunks = self.chunks.saturating_sub(1);
        self.count(text, |counter| counter.saturating_sub(1));
    }

    fn count(&mut self, text: &str, change: impl Fn(u32) -> u32) {
        for feature in Features::of(text).0.into_keys() {
            if let Some(counter) = self.counters.get_mut(counter(feature)) {
                *counter = change(*counter);
            }
        }
    }
}

/// The features of a question, each with what it weighs and how rare it is.
#[derive(Debug, Default)]
pub struct Asked {
    features: Features,
    weights: BTreeMap<u64, f32>,
    total: f32,
}

impl Asked {
    /// A question to what some counters have counted together.
    #[must_use]
    pub fn of<'a>(question: &str, counters: impl IntoIterator<Item = &'a Counters>) -> Self {
        let counters: Vec<&Counters> = counters.into_iter().collect();
        let features = Features::of(question);
        let all = counters.iter().map(|counters| counters.chunks as f32).sum::<f32>();
        let with =
            |feature| counters.iter().filter_map(|c| c.counters.get(counter(feature))).map(|n| *n as f32).sum::<f32>();
        // At least 1, so that a feature of every chunk still counts.
        let idf = |feature| 1.0 + ((1.0 + all) / (1.0 + with(feature))).ln();
        let weights: BTreeMap<u64, f32> =
            features.0.iter().map(|(feature, (weight, _))| (*feature, weight * idf(*feature))).collect();
        let total = weights.values().sum();
        Self { features, weights, total }
    }

    /// The vector of the question; none for one without a word.
    #[must_use]
    pub fn vector(&self, dimension: Dimension) -> Option<Vector> {
        // The weight stands in both.
        let idf = |feature, weight| self.weights.get(&feature).copied().unwrap_or_default() / weight;
        self.features.vector(dimension, |(feature, weight)| idf(feature, weight))
    }

    /// The share of the question, by weight, that a text has: 0 to 1.
    #[must_use]
    pub fn coverage(&self, text: &str) -> f32 {
        let mut found = BTreeMap::new();
        each_feature(text, |feature, _| {
            if let Some(weight) = self.weights.get(&feature) {
                found.insert(feature, *weight);
            }
        });
        let covered: f32 = found.values().sum();
        if self.total > 0.0 { (covered / self.total).min(1.0) } else { 0.0 }
    }
}

/// The hash of each feature of a text, with its weight and how often it is there. In order of the hashes, so that sums
/// are the same each time.
#[derive(Debug, Default)]
struct Features(BTreeMap<u64, (f32, u32)>);

impl Features {
    fn of(text: &str) -> Self {
        let mut features = BTreeMap::new();
        each_feature(text, |feature, weight| features.entry(feature).or_insert((weight, 0_u32)).1 += 1);
        Self(features)
    }

    fn vector(&self, dimension: Dimension, weigh: impl Fn((u64, f32)) -> f32) -> Option<Vector> {
        let mut numbers = vec![0.0_f32; dimension.get()];
        for (feature, (weight, count)) in &self.0 {
            let at = usize::try_from(feature % dimension.get() as u64).ok()?;
            let sign = if feature >> 63 == 0 { 1.0 } else { -1.0 };
            if let Some(number) = numbers.get_mut(at) {
                *number += sign * weight * (*count as f32).sqrt() * weigh((*feature, *weight));
            }
        }
        Vector::quantised(&numbers).ok()
    }
}

/// The counter of a feature: bits that decide neither its coordinate nor its sign alone.
const fn counter(feature: u64) -> usize {
    ((feature >> 40) & ((1 << COUNTERS_LOG2) - 1)) as usize
}

fn each_feature(text: &str, mut put: impl FnMut(u64, f32)) {
    let mut before: Option<String> = None;
    for word in words(text) {
        put(hashed(0, &[&word]), WORD);
        if let Some(before) = &before {
            put(hashed(1, &[before, &word]), PAIR);
        }
        // The ends of a word are marked, so that a beginning is not taken for a middle.
        let marked = format!("^{word}$");
        let ends: Vec<usize> = marked.char_indices().map(|(at, _)| at).chain([marked.len()]).collect();
        for window in ends.windows(PART + 1) {
            if let [start, .., end] = window {
                put(hashed(2, &[marked.get(*start..*end).unwrap_or_default()]), LETTERS);
            }
        }
        before = Some(word);
    }
}

/// FNV-1a over the parts, mixed at the end (`SplitMix64`), since FNV's high bits are weak for short texts.
fn hashed(tag: u8, parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xFF]));
    let hash = [tag]
        .into_iter()
        .chain(bytes)
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3));
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
