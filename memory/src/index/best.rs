//! The few best of many, in one order: by score, and of equal score by name.

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

/// The greater is the better: it has the higher score, or the earlier name.
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
pub(crate) struct Best {
    most: usize,
    heap: BinaryHeap<Reverse<Scored>>,
}

impl Best {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, heap: BinaryHeap::new() }
    }

    /// Keeps it if it is among the best. What chunk it is is asked only where the score may do; none is not kept.
    pub(crate) fn offer(&mut self, score: f32, id: impl FnOnce() -> Option<ChunkId>) {
        let worst = self.heap.peek().map(|worst| worst.0).filter(|_| self.heap.len() >= self.most);
        if self.most == 0 || worst.is_some_and(|worst| score < worst.score) {
            return;
        }
        let Some(scored) = id().map(|id| Scored { id, score }) else { return };
        if worst.is_some_and(|worst| scored <= worst) {
            return;
        }
        if worst.is_some() {
            self.heap.pop();
        }
        self.heap.push(Reverse(scored));
    }

    /// The best first.
    pub(crate) fn into_sorted(self) -> Vec<Scored> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(scored)| scored).collect()
    }
}
