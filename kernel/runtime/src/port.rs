//! What a row keeps only once it is needed: queues, latches that others wait at, and those who wait for an end.

use std::{collections::VecDeque, task::Waker};

use ephor_base::{ExitReason, Pid};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Host, ask::Letter, orders::Order, watchdog};
use crate::links::Signal;

/// How many messages may wait for one process.
pub const CAPACITY: usize = 64;

/// The ports of a process, but for the latches.
pub(super) struct Port<H: Host> {
    pub(super) messages: VecDeque<Letter<H>>,
    /// Places promised to messages that are on their way.
    pub(super) promised: usize,
    /// Exits and ends it is told of. There is room for one from each link and monitor before it is needed.
    pub(super) exits: VecDeque<Signal>,
    /// Links and monitors that may still say something.
    pub(super) related: usize,
    /// Exit signals that wait from processes it has nothing to do with.
    pub(super) uninvited: usize,
    /// Who waits at the ports, where that is not the process's own task.
    pub(super) reader: Option<Waker>,
    /// Cancelled when the incarnation is fenced.
    pub(super) fence: Option<CancellationToken>,
    /// Cancelled when it is asked to stop.
    pub(super) stopping: Option<CancellationToken>,
    /// The reason it is to exit with at once.
    pub(super) doom: Option<ExitReason>,
    /// Who waits for an answer, by number.
    pub(super) asked: Vec<(u64, oneshot::Sender<H::Message>)>,
    /// Whose answer it waits for itself.
    pub(super) waits_for: Option<Pid>,
    /// Who wants to know what it exits with.
    pub(super) observers: Vec<oneshot::Sender<ExitReason>>,
    /// What a supervisor has been told and asked.
    pub(super) desk: VecDeque<Order<H>>,
}

impl<H: Host> Default for Port<H> {
    fn default() -> Self {
        Self {
            messages: VecDeque::new(),
            promised: 0,
            exits: VecDeque::new(),
            related: 0,
            uninvited: 0,
            reader: None,
            fence: None,
            stopping: None,
            doom: None,
            asked: Vec::new(),
            waits_for: None,
            observers: Vec::new(),
            desk: VecDeque::new(),
        }
    }
}

impl<H: Host> Port<H> {
    /// Whether nothing in it would be missed.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.promised == 0 && self.desk.is_empty()
    }
}

/// Who is to be woken once the row is free again.
#[must_use]
#[derive(Default)]
pub(super) struct Wakes {
    pub(super) task: Option<Waker>,
    pub(super) reader: Option<Waker>,
    pub(super) fence: Option<CancellationToken>,
    pub(super) stopping: Option<CancellationToken>,
}

impl Wakes {
    pub(super) fn fire(self) {
        for token in [self.fence, self.stopping].into_iter().flatten() {
            token.cancel();
        }
        if let Some(reader) = self.reader {
            reader.wake();
        }
        if let Some(task) = self.task {
            watchdog::wake(task);
        }
    }
}
