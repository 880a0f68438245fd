//! What waits for one watcher: bounded, so that the code that shows never waits and memory never fills.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::Notify;

use super::Seen;

/// How many items may wait for a watcher.
const DEPTH: usize = 256;
/// How much text they may hold together, in bytes. The last [`KEPT`] stay, however long.
const BYTES: usize = 4 << 20;
/// A reply and the end of its turn are not pushed out by one another.
const KEPT: usize = 2;
/// How long a piece of streamed text becomes while it waits.
const PIECE: usize = 64 << 10;

/// The end where things are shown. Once it is dropped nothing more comes.
#[derive(Debug)]
pub(super) struct Ring(Arc<Shared>);

/// What a watcher reads. Once it is dropped there is no watcher.
#[derive(Debug)]
pub struct Subscription(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    items: VecDeque<Seen>,
    bytes: usize,
    /// How many were pushed out since the watcher was told last.
    missed: u64,
    is_over: bool,
    is_left: bool,
}

pub(super) fn ring() -> (Ring, Subscription) {
    let shared = Arc::new(Shared::default());
    (Ring(shared.clone()), Subscription(shared))
}

impl Ring {
    /// Puts an item behind the others and pushes out what there is no room for; false if no watcher reads.
    pub(super) fn push(&self, seen: Seen) -> bool {
        let mut waiting = self.0.waiting();
        if waiting.is_left {
            return false;
        }
        waiting.push(seen);
        drop(waiting);
        self.0.changed.notify_one();
        true
    }

    pub(super) fn is_read(&self) -> bool {
        !self.0.waiting().is_left
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.0.waiting().is_over = true;
        self.0.changed.notify_one();
    }
}

impl Subscription {
    /// Waits for the next thing to see; `None` once nothing more comes. A wait that is cut short loses nothing.
    pub async fn recv(&mut self) -> Option<Seen> {
        loop {
            let changed = self.0.changed.notified();
            {
                let mut waiting = self.0.waiting();
                if let Some(seen) = waiting.take() {
                    return Some(seen);
                }
                if waiting.is_over {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.is_left = true;
        let left = std::mem::take(&mut waiting.items);
        drop(waiting);
        drop(left);
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        ephor_runtime::lock::enter(&self.waiting)
    }
}

impl Waiting {
    fn push(&mut self, seen: Seen) {
        self.bytes = self.bytes.saturating_add(weight(&seen));
        match (self.items.back_mut(), seen) {
            // A stream that is read late is read in larger pieces.
            (Some(Seen::Text { call, text }), Seen::Text { call: more_of, text: more })
                if *call == more_of && text.len().saturating_add(more.len()) <= PIECE =>
            {
                text.push_str(&more);
            }
            (_, seen) => self.items.push_back(seen),
        }
        while self.items.len() > DEPTH || (self.bytes > BYTES && self.items.len() > KEPT) {
            self.push_out();
        }
    }

    /// Pushes out the oldest item of those that would be missed least.
    fn push_out(&mut self) {
        let older = self.items.len().saturating_sub(KEPT);
        let least = (0..older).filter_map(|at| Some((rank(self.items.get(at)?), at))).min();
        if let Some(out) = least.and_then(|(_, at)| self.items.remove(at)) {
            self.bytes = self.bytes.saturating_sub(weight(&out));
            self.missed = self.missed.saturating_add(1);
        }
    }

    fn take(&mut self) -> Option<Seen> {
        if self.missed > 0 {
            return Some(Seen::Missed { count: std::mem::take(&mut self.missed) });
        }
        let seen = self.items.pop_front()?;
        self.bytes = self.bytes.saturating_sub(weight(&seen));
        Some(seen)
    }
}

/// How much would be missed: passing things least, what a person has to act on most.
const fn rank(seen: &Seen) -> u8 {
    match seen {
        Seen::State { .. } | Seen::Text { .. } | Seen::Progress { .. } => 0,
        Seen::Started { .. } | Seen::Refused { .. } | Seen::Ended { .. } => 1,
        Seen::Restarted { .. } | Seen::Held { .. } | Seen::Missed { .. } => 1,
        Seen::Deferred(_) | Seen::Reply(_) | Seen::Over { .. } | Seen::TurnEnded { .. } => 2,
    }
}

/// The bytes of what may be long.
fn weight(seen: &Seen) -> usize {
    match seen {
        Seen::Text { text, .. } | Seen::Progress { text, .. } | Seen::Ended { text, .. } => text.len(),
        Seen::Started { arguments, .. } => arguments.len(),
        Seen::Refused { why, .. } | Seen::Over { why } => why.len(),
        Seen::Deferred(question) => question.arguments.as_ref().map_or(0, String::len),
        Seen::Reply(reply) => reply.text.len(),
        Seen::Restarted { reason } => reason.len(),
        Seen::State { .. } | Seen::Held { .. } | Seen::Missed { .. } | Seen::TurnEnded { .. } => 0,
    }
}
