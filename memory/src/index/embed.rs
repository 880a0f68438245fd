//! The built-in embedder: hashed n-grams, weighted by idf in the question.
//!
//! It knows no meaning, only spelling: words, pairs of words and the three-letter parts of words are hashed into a fixed
//! number of coordinates (Weinberger and others 2009, "feature hashing"). It forgives endings and slips of the pen, and needs
//! no file. A vector of a chunk follows from its text alone, so it is the same after every rebuild, and erasing one chunk
//! leaves nothing of it in another's. How rare a feature is counts on the side of the question, where it is always up to date.

use std::collections::BTreeMap;

use super::{
    bm25::words,
    vectors::{Dimension, Vector},
};

/// The name under which vectors of this embedder are kept: another name, other vectors.
pub const HASHED_NGRAMS: &str = "hashed-ngrams-idf/1";

/// What a feature weighs. A word says more than a pair of words, which is rare, or than three of its letters.
const WORD: f32 = 1.0;
const PAIR: f32 = 0.5;
const LETTERS: f32 = 0.4;
/// How many letters are a part.
const PART: usize = 3;

/// The counters of how many chunks have a feature: 2¹⁸ of 32 bits are 1 MiB. Features that share one count as one.
const COUNTERS_LOG2: u32 = 18;

/// Counts features and makes vectors.
#[derive(Debug)]
pub struct HashedNgrams {
    dimension: Dimension,
    chunks: u32,
    counters: Box<[u32]>,
}

impl HashedNgrams {
    /// An embedder that has counted nothing.
    #[must_use]
    pub fn new(dimension: Dimension) -> Self {
        Self { dimension, chunks: 0, counters: vec![0; 1 << COUNTERS_LOG2].into() }
    }

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

    /// The vector of a chunk; none for a text without a word.
    #[must_use]
    pub fn chunk(&self, text: &str) -> Option<Vector> {
        self.vector(text, |_| 1.0)
    }

    /// The vector of a question; none for one without a word.
    #[must_use]
    pub fn question(&self, text: &str) -> Option<Vector> {
        self.vector(text, |feature| self.idf(feature))
    }

    /// 1 + ln((1 + N) / (1 + n)): at least 1, so that a feature of every chunk still counts.
    fn idf(&self, feature: u64) -> f32 {
        let with = self.counters.get(counter(feature)).copied().unwrap_or_default();
        1.0 + ((1.0 + self.chunks as f32) / (1.0 + with as f32)).ln()
    }

    fn vector(&self, text: &str, weigh: impl Fn(u64) -> f32) -> Option<Vector> {
        let mut numbers = vec![0.0_f32; self.dimension.get()];
        for (feature, (weight, count)) in features(text) {
            let at = usize::try_from(feature % self.dimension.get() as u64).ok()?;
            let sign = if feature >> 63 == 0 { 1.0 } else { -1.0 };
            if let Some(number) = numbers.get_mut(at) {
                *number += sign * weight * (count as f32).sqrt() * weigh(feature);
            }
        }
        Vector::quantised(&numbers).ok()
    }

    fn count(&mut self, text: &str, change: impl Fn(u32) -> u32) {
        for feature in features(text).into_keys() {
            if let Some(counter) = self.counters.get_mut(counter(feature)) {
                *counter = change(*counter);
            }
        }
    }
}

/// The counter of a feature: bits that decide neither its coordinate nor its sign alone.
const fn counter(feature: u64) -> usize {
    ((feature >> 40) & ((1 << COUNTERS_LOG2) - 1)) as usize
}

/// The hash of each feature of a text, with its weight and how often it is there. In order of the hashes, so that sums
/// are the same each time.
fn features(text: &str) -> BTreeMap<u64, (f32, u32)> {
    let mut features = BTreeMap::new();
    let mut put = |tag: u8, parts: &[&str], weight| {
        features.entry(hashed(tag, parts)).or_insert((weight, 0_u32)).1 += 1;
    };
    let mut before: Option<String> = None;
    for word in words(text) {
        put(0, &[&word], WORD);
        if let Some(before) = &before {
            put(1, &[before, &word], PAIR);
        }
        // The ends of a word are marked, so that a beginning is not taken for a middle.
        let marked = format!("^{word}$");
        let ends: Vec<usize> = marked.char_indices().map(|(at, _)| at).chain([marked.len()]).collect();
        for window in ends.windows(PART + 1) {
            if let [start, .., end] = window {
                put(2, &[marked.get(*start..*end).unwrap_or_default()], LETTERS);
            }
        }
        before = Some(word);
    }
    features
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
