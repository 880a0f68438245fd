//! Okapi BM25 (Robertson, Zaragoza 2009, formula 3.15) over Unicode words, with `k1` = 1.2 and `b` = 0.75.
//!
//! The weight of a word is ln(1 + (N − n + ½) / (n + ½)), which is never negative (as in Lucene). N, n and the mean length are those of
//! several indexes together: the ones that a reader may see.

use std::collections::{BTreeMap, BTreeSet};

use unicode_segmentation::UnicodeSegmentation as _;

use super::{Scored, best::Best};
use crate::chunks::ChunkId;

const K1: f32 = 1.2;
const B: f32 = 0.75;

/// The most different words of a question that count, so that a long question takes no longer than a page.
pub const MOST_WORDS: usize = 128;

/// The words of a text (UAX #29), in lower case, in order. Ideographs are words by themselves.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    text.unicode_words().map(str::to_lowercase)
}

/// A place for a chunk in an index. It says nothing outside of it: equal indexes may have their chunks in other places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Place(u32);

impl Place {
    fn nth(at: usize) -> Option<Self> {
        u32::try_from(at).ok().map(Self)
    }

    const fn get(self) -> usize {
        self.0 as usize
    }
}

/// Which words are in which chunks. Equal sets of chunks give equal scores, in whatever order they came and went.
#[derive(Debug, Default)]
pub struct Bm25 {
    /// By word and place: how often it is there.
    postings: BTreeMap<Box<str>, BTreeMap<Place, u32>>,
    /// By place: the chunk, and how many words it has.
    chunks: Vec<Option<(ChunkId, u32)>>,
    free: Vec<Place>,
    places: BTreeMap<ChunkId, Place>,
    total: u64,
}

impl Bm25 {
    /// Takes a chunk in, and says whether it was new.
    pub fn add(&mut self, id: ChunkId, text: &str) -> bool {
        if self.places.contains_key(&id) {
            return false;
        }
        let (counts, length) = counted(text);
        let Some(place) = self.free.pop().or_else(|| Place::nth(self.chunks.len())) else { return false };
        match self.chunks.get_mut(place.get()) {
            Some(chunk) => *chunk = Some((id, length)),
            None => self.chunks.push(Some((id, length))),
        }
        for (word, count) in counts {
            self.postings.entry(word.into()).or_default().insert(place, count);
        }
        self.places.insert(id, place);
        self.total += u64::from(length);
        true
    }

    /// Takes a chunk out, given the text that it was taken in with, and says whether it was there.
    pub fn remove(&mut self, id: ChunkId, text: &str) -> bool {
        let Some(place) = self.places.remove(&id) else { return false };
        let chunk = self.chunks.get_mut(place.get()).and_then(Option::take);
        self.total -= chunk.map_or(0, |(_, length)| u64::from(length));
        self.free.push(place);
        for word in counted(text).0.into_keys() {
            if let Some(list) = self.postings.get_mut(word.as_str()) {
                list.remove(&place);
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
        self.places.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// In how many chunks a word is, as it stands in a text.
    #[must_use]
    pub fn frequency(&self, word: &str) -> usize {
        self.postings.get(word.to_lowercase().as_str()).map_or(0, BTreeMap::len)
    }

    /// Adds the part of a word to the score of every chunk that has it.
    fn score(&self, word: &str, idf: f32, mean: f32, sums: &mut [f32]) {
        for (place, count) in self.postings.get(word).into_iter().flatten() {
            if let (Some(Some((_, length))), Some(sum)) = (self.chunks.get(place.get()), sums.get_mut(place.get())) {
                let (count, length) = (*count as f32, *length as f32);
                *sum += idf * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / mean));
            }
        }
    }
}

/// The scores of a question in some indexes, which count as one.
#[derive(Debug)]
pub struct Scores<'a> {
    /// Each index with the score of each place. A sum of 0 is that of a chunk without any of the words.
    sums: Vec<(&'a Bm25, Vec<f32>)>,
}

impl<'a> Scores<'a> {
    /// The scores for the first [`MOST_WORDS`] words of a question. Takes time for each posting of these words.
    #[must_use]
    pub fn of(question: &str, indexes: impl IntoIterator<Item = &'a Bm25>) -> Self {
        let words: BTreeSet<String> = words(question).take(MOST_WORDS).collect();
        let mut sums: Vec<_> =
            indexes.into_iter().map(|index: &Bm25| (index, vec![0.0_f32; index.chunks.len()])).collect();
        let all = sums.iter().map(|(index, _)| index.len()).sum::<usize>() as f32;
        let mean = sums.iter().map(|(index, _)| index.total).sum::<u64>() as f32 / all;
        for word in words {
            let with = sums.iter().map(|(index, _)| index.frequency(&word)).sum::<usize>() as f32;
            let idf = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            sums.iter_mut().for_each(|(index, sums)| index.score(&word, idf, mean, sums));
        }
        Self { sums }
    }

    /// The `most` chunks with the highest scores of those that `allows` holds for, the highest first.
    #[must_use]
    pub fn best(&self, most: usize, allows: impl Fn(ChunkId) -> bool) -> Vec<Scored> {
        let mut best = Best::new(most);
        for (index, sums) in &self.sums {
            let scored = index.chunks.iter().zip(sums).filter(|(_, sum)| **sum > 0.0);
            for (chunk, sum) in scored {
                best.offer(*sum, || chunk.map(|(id, _)| id).filter(|id| allows(*id)));
            }
        }
        best.into_sorted()
    }

    /// The score of one chunk; 0 for one without any of the words.
    #[must_use]
    pub fn score(&self, id: ChunkId) -> f32 {
        let scored = self.sums.iter().find_map(|(index, sums)| sums.get(index.places.get(&id)?.get()).copied());
        scored.unwrap_or_default()
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
