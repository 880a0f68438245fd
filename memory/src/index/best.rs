//! The few best of many, in one order: by score, and of equal score by number.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use crate::chunks::ChunkId;

/// A chunk and how well it fits.
#[derive(Clone, Copy, Debug)]
pub struct Scored {
    /// The chunk.
    pub id: ChunkId,
    /// The score: the higher, the better. Never NaN.
    pub score: f32,
}

/// The greater is the better: it has the higher score, or the lower number.
impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.id.cmp(&self.id))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scored {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scored {}

/// At most so many of what it was offered: the best.
pub(super) struct Best {
    most: usize,
    heap: BinaryHeap<Reverse<Scored>>,
}

impl Best {
    pub(super) fn new(most: usize) -> Self {
        Self { most, heap: BinaryHeap::new() }
    }

    /// Keeps it if it is among the best and `allows` holds, which is asked only then.
    pub(super) fn offer(&mut self, scored: Scored, allows: impl FnOnce() -> bool) {
        let is_full = self.heap.len() >= self.most;
        let is_better = self.heap.peek().is_some_and(|worst| scored > worst.0);
        if (is_full && !is_better) || !allows() {
            return;
        }
        if is_full {
            self.heap.pop();
        }
        self.heap.push(Reverse(scored));
    }

    /// The best first.
    pub(super) fn into_sorted(self) -> Vec<Scored> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(scored)| scored).collect()
    }
}
