//! The message port of a seat. Messages outlive the incarnation that would have read them.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use ephor_base::Envelope;
use tokio::sync::Notify;

/// How many messages may wait.
pub const CAPACITY: usize = 64;

/// A bounded queue with one reader at a time.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    queue: Mutex<Queue>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Envelope>,
    /// Places promised to messages that are on their way to the disk.
    promised: usize,
}

/// A place for one message. Dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct Place<'a>(&'a Mailbox);

impl Mailbox {
    /// Promises a place, or says how many messages wait.
    pub(crate) fn promise(&self) -> Result<Place<'_>, usize> {
        let mut queue = self.queue();
        let waiting = queue.messages.len() + queue.promised;
        if waiting >= CAPACITY {
            return Err(waiting);
        }
        queue.promised += 1;
        Ok(Place(self))
    }

    /// The oldest message; waits for one.
    pub(crate) async fn take(&self) -> Envelope {
        loop {
            let arrived = self.arrived.notified();
            if let Some(envelope) = self.queue().messages.pop_front() {
                return envelope;
            }
            arrived.await;
        }
    }

    /// How many messages wait.
    pub(crate) fn len(&self) -> usize {
        self.queue().messages.len()
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// Puts the message in its place.
    pub(crate) fn put(self, envelope: Envelope) {
        self.0.queue().messages.push_back(envelope);
        self.0.arrived.notify_one();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.promised = queue.promised.saturating_sub(1);
    }
}
