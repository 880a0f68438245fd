//! Okapi BM25 (Robertson, Zaragoza 2009, formula 3.15) over Unicode words, with `k1` = 1.2 and `b` = 0.75.
//!
//! The weight of a word is ln(1 + (N − n + ½) / (n + ½)), which is never negative (as in Lucene).

use std::collections::{BTreeMap, BTreeSet};

use unicode_segmentation::UnicodeSegmentation as _;

use crate::chunks::ChunkId;

const K1: f32 = 1.2;
const B: f32 = 0.75;

/// The most different words of a question that count, so that a long question takes no longer than a page.
pub const MOST_WORDS: usize = 128;

/// The words of a text (UAX #29), in lower case, in order. Ideographs are words by themselves.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    text.unicode_words().map(str::to_lowercase)
}

/// How often a word is in a chunk.
#[derive(Clone, Copy, Debug)]
struct Posting {
    id: ChunkId,
    count: u32,
}

/// Which words are in which chunks. Equal sets of chunks make equal indexes, in whatever order they came and went.
#[derive(Debug, Default)]
pub struct Bm25 {
    /// By word; the postings of a word by chunk.
    postings: BTreeMap<Box<str>, Vec<Posting>>,
    /// How many words each chunk has.
    lengths: BTreeMap<ChunkId, u32>,
    total: u64,
}

impl Bm25 {
    /// Takes a chunk in, and says whether it was new.
    pub fn add(&mut self, id: ChunkId, text: &str) -> bool {
        if self.lengths.contains_key(&id) {
            return false;
        }
        let (counts, length) = counted(text);
        for (word, count) in counts {
            let list = self.postings.entry(word.into()).or_default();
            // Numbers count up, so this is nearly always the end.
            let at = list.partition_point(|posting| posting.id < id);
            list.insert(at, Posting { id, count });
        }
        self.lengths.insert(id, length);
        self.total += u64::from(length);
        true
    }

    /// Takes a chunk out, given the text that it was taken in with, and says whether it was there.
    pub fn remove(&mut self, id: ChunkId, text: &str) -> bool {
        let Some(length) = self.lengths.remove(&id) else { return false };
        self.total -= u64::from(length);
        for word in counted(text).0.keys() {
            if let Some(list) = self.postings.get_mut(word.as_str()) {
                list.retain(|posting| posting.id != id);
                if list.is_empty() {
                    self.postings.remove(word.as_str());
                }
            }
        }
        true
    }

    /// How many chunks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// In how many chunks a word is, as it stands in a text.
    #[must_use]
    pub fn frequency(&self, word: &str) -> usize {
        self.postings.get(word.to_lowercase().as_str()).map_or(0, Vec::len)
    }

    /// The score of every chunk that `allows` holds for and that has one of the first [`MOST_WORDS`] words of the question.
    #[must_use]
    pub fn scores(&self, question: &str, allows: impl Fn(ChunkId) -> bool) -> BTreeMap<ChunkId, f32> {
        let words: BTreeSet<String> = words(question).take(MOST_WORDS).collect();
        let mut parts: Vec<(ChunkId, f32)> = Vec::new();
        for list in words.iter().filter_map(|word| self.postings.get(word.as_str())) {
            let idf = self.idf(list.len());
            parts.extend(list.iter().map(|posting| (posting.id, idf * self.saturation(posting))));
        }
        // Stable, so that the parts of a chunk are added up in the order of the words, and the sum is the same each time.
        parts.sort_by_key(|(id, _)| *id);
        let by_chunk = parts.chunk_by(|a, b| a.0 == b.0);
        by_chunk
            .filter_map(|parts| {
                let (id, _) = parts.first()?;
                allows(*id).then(|| (*id, parts.iter().map(|(_, part)| part).sum()))
            })
            .collect()
    }

    fn idf(&self, chunks: usize) -> f32 {
        let (all, with) = (self.lengths.len() as f32, chunks as f32);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }

    fn saturation(&self, posting: &Posting) -> f32 {
        let mean = self.total as f32 / self.lengths.len() as f32;
        let length = self.lengths.get(&posting.id).copied().unwrap_or_default() as f32;
        let count = posting.count as f32;
        count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / mean))
    }
}

fn counted(text: &str) -> (BTreeMap<String, u32>, u32) {
    let (mut counts, mut length) = (BTreeMap::new(), 0_u32);
    for word in words(text) {
        // A chunk has far fewer than 2³² words.
        *counts.entry(word).or_insert(0_u32) += 1;
        length += 1;
    }
    (counts, length)
}
