//! What waits for an answer, and what a server said that was no answer. Pure: bytes come in, bytes go out.

mod notice;

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::Arc,
    task::Waker,
};

use ephor_base::arguments::Value;
pub use notice::{Log, Notices, Progress};

use crate::{
    limits::Limits,
    wire::{Malformed, Message, Returned, TooLong, notification, object, parse, reply, unsupported},
};

/// Why a channel is over: the streams of a server, or the body of one response. What waits for an answer on it gets none; whether the
/// server has done what it was asked is not known.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Closed {
    /// The server ended it.
    #[error("the server ended the connection")]
    Ended,
    /// The server ended it within a message.
    #[error("the server ended the connection within a message, after {bytes} bytes of it")]
    MidMessage {
        /// How many bytes of the message had come.
        bytes: usize,
    },
    /// The server sent a message that is too long.
    #[error("the server sent a message of more than {most} bytes")]
    TooLong {
        /// [`Limits::message_bytes`].
        most: usize,
    },
    /// The server sent too much that was no answer.
    #[error("the server sent more than {most} messages between two answers")]
    Flooded {
        /// [`Limits::unsolicited`].
        most: u64,
    },
    /// It cannot be read.
    #[error("the connection cannot be read: {0}")]
    Read(#[source] Arc<io::Error>),
    /// It cannot be written to.
    #[error("the connection cannot be written to: {0}")]
    Write(#[source] Arc<io::Error>),
    /// The last client was dropped.
    #[error("the client was closed")]
    Released,
    /// The future that drove it was dropped.
    #[error("the driver of the connection was stopped")]
    Stopped,
}

impl From<TooLong> for Closed {
    fn from(error: TooLong) -> Self {
        Self::TooLong { most: error.most }
    }
}

/// One channel on which a server speaks, and how much it has said since its last answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Channel {
    /// The one request that it may answer, if it is the body of a response.
    pub(crate) scope: Option<u64>,
    unsolicited: u64,
}

impl Channel {
    pub(crate) const fn of(request: u64) -> Self {
        Self { scope: Some(request), unsolicited: 0 }
    }

    fn count(&mut self, limits: &Limits) -> Result<(), Closed> {
        self.unsolicited = self.unsolicited.saturating_add(1);
        if self.unsolicited > limits.unsolicited { Err(Closed::Flooded { most: limits.unsolicited }) } else { Ok(()) }
    }
}

/// How a request is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Its server is told when it is given up.
    Cancellable,
    /// It is not told: `initialize`, and where closing the response says it.
    Silent,
    /// As cancellable, and its server may end it by `notifications/cancelled`.
    Listening,
}

struct Pending {
    wait: Wait,
    answer: Option<Returned>,
    progress: VecDeque<Progress>,
    reached: Option<f64>,
    missed: u64,
    waker: Option<Waker>,
}

enum Outgoing {
    Request(u64, Vec<u8>),
    Cancellation(Vec<u8>),
    Reply(Vec<u8>),
    Notification(Vec<u8>),
}

/// What a request comes to while it is looked at.
pub(crate) struct Look {
    pub(crate) progress: VecDeque<Progress>,
    pub(crate) end: Option<Result<Returned, Closed>>,
}

/// The state of one server's connection.
pub(crate) struct Exchange {
    limits: Limits,
    next: u64,
    pending: BTreeMap<u64, Pending>,
    outbox: VecDeque<Outgoing>,
    queued_bytes: usize,
    cancellations: usize,
    replies: usize,
    notices: Notices,
    logs: VecDeque<Log>,
    closed: Option<Closed>,
    released: bool,
    woken: Vec<Waker>,
}

impl Exchange {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            next: 1,
            pending: BTreeMap::new(),
            outbox: VecDeque::new(),
            queued_bytes: 0,
            cancellations: 0,
            replies: 0,
            notices: Notices::NONE,
            logs: VecDeque::new(),
            closed: None,
            released: false,
            woken: Vec::new(),
        }
    }

    /// A number for a request that is to be waited for; none where too many wait.
    pub(crate) fn open(&mut self, wait: Wait) -> Option<u64> {
        if self.pending.len().saturating_add(self.cancellations) >= self.limits.pending {
            return None;
        }
        let id = self.next;
        self.next = id.saturating_add(1);
        let (answer, progress, reached, missed, waker) = (None, VecDeque::new(), None, 0, None);
        self.pending.insert(id, Pending { wait, answer, progress, reached, missed, waker });
        Some(id)
    }

    /// Queues a request. Those that wait to be written have no more bytes together than one message may have, or else it is refused.
    /// Where all is over nothing is queued: it ends when it is looked at.
    pub(crate) fn send(&mut self, id: u64, bytes: Vec<u8>) -> bool {
        if self.closed.is_some() {
            return true;
        }
        let has_room =
            self.queued_bytes == 0 || bytes.len() <= self.limits.message_bytes.saturating_sub(self.queued_bytes);
        if has_room {
            self.queued_bytes = self.queued_bytes.saturating_add(bytes.len());
            self.outbox.push_back(Outgoing::Request(id, bytes));
        }
        has_room
    }

    /// Queues a notification of ours.
    pub(crate) fn tell(&mut self, bytes: Vec<u8>) {
        self.outbox.push_back(Outgoing::Notification(bytes));
    }

    /// What is to be written next.
    pub(crate) fn next_out(&mut self) -> Option<Vec<u8>> {
        Some(match self.outbox.pop_front()? {
            Outgoing::Request(_, bytes) => {
                self.queued_bytes = self.queued_bytes.saturating_sub(bytes.len());
                bytes
            }
            Outgoing::Cancellation(bytes) => {
                self.cancellations = self.cancellations.saturating_sub(1);
                bytes
            }
            Outgoing::Reply(bytes) => {
                self.replies = self.replies.saturating_sub(1);
                bytes
            }
            Outgoing::Notification(bytes) => bytes,
        })
    }

    pub(crate) fn has_out(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// The answers that are not yet looked at.
    pub(crate) fn unclaimed(&self) -> usize {
        self.pending.values().filter(|pending| pending.answer.is_some()).count()
    }

    /// What has come for a request. Once it has ended it waits no more.
    pub(crate) fn look(&mut self, id: u64, waker: Option<&Waker>) -> Look {
        let Some(pending) = self.pending.get_mut(&id) else {
            return Look { progress: VecDeque::new(), end: Some(Err(self.closed.clone().unwrap_or(Closed::Stopped))) };
        };
        let progress = std::mem::take(&mut pending.progress);
        let answer = pending.answer.take().map(Ok);
        let end = answer.or_else(|| self.closed.clone().map(Err));
        if end.is_some() {
            self.pending.remove(&id);
        } else if let Some(waker) = waker {
            pending.waker = Some(waker.clone());
        }
        Look { progress, end }
    }

    /// Forgets a request.
    pub(crate) fn retire(&mut self, id: u64) {
        self.pending.remove(&id);
    }

    /// Gives a request up. What is not yet written is not sent; of what was, the server is told.
    pub(crate) fn give_up(&mut self, id: u64) {
        let Some(pending) = self.pending.remove(&id) else { return };
        let unsent = self.outbox.iter().position(|out| matches!(out, Outgoing::Request(other, _) if *other == id));
        if let Some(Outgoing::Request(_, bytes)) = unsent.and_then(|at| self.outbox.remove(at)) {
            self.queued_bytes = self.queued_bytes.saturating_sub(bytes.len());
        } else if pending.wait != Wait::Silent && pending.answer.is_none() && self.closed.is_none() {
            let params = object([("requestId", Value::Integer(id.into()))]);
            self.cancellations = self.cancellations.saturating_add(1);
            self.outbox.push_back(Outgoing::Cancellation(notification("notifications/cancelled", Some(params))));
        }
    }

    /// Ends all that waits.
    pub(crate) fn close(&mut self, why: &Closed) {
        self.closed.get_or_insert_with(|| why.clone());
        self.outbox.clear();
        (self.queued_bytes, self.cancellations, self.replies) = (0, 0, 0);
        self.woken.extend(self.pending.values_mut().filter_map(|pending| pending.waker.take()));
    }

    pub(crate) fn release(&mut self) {
        self.released = true;
    }

    pub(crate) const fn is_released(&self) -> bool {
        self.released
    }

    /// The tasks to wake, once this is no longer locked.
    pub(crate) fn woken(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.woken)
    }

    pub(crate) const fn notices(&self) -> Notices {
        self.notices
    }

    pub(crate) fn take_logs(&mut self) -> Vec<Log> {
        std::mem::take(&mut self.logs).into()
    }

    /// Takes a line, an event or a body of the server. What is no message is counted and given back.
    pub(crate) fn take(&mut self, channel: &mut Channel, bytes: &[u8]) -> Result<Option<Malformed>, Closed> {
        if bytes.trim_ascii().is_empty() {
            return channel.count(&self.limits).map(|()| None);
        }
        match parse(bytes, &self.limits) {
            Ok(messages) => {
                for message in messages {
                    if self.message(*channel, message) {
                        channel.unsolicited = 0;
                    } else {
                        channel.count(&self.limits)?;
                    }
                }
                Ok(None)
            }
            Err(malformed) => {
                self.notices.malformed = self.notices.malformed.saturating_add(1);
                channel.count(&self.limits)?;
                Ok(Some(malformed))
            }
        }
    }

    /// Whether it answers what waits.
    fn message(&mut self, channel: Channel, message: Message) -> bool {
        match message {
            Message::Answer { id, returned } => return self.answer(channel, id, returned),
            Message::Request { id, method } => self.request(id, &method),
            Message::Notification { method, params } => self.notification(channel, &method, params),
        }
        false
    }

    fn answer(&mut self, channel: Channel, id: Option<u64>, returned: Returned) -> bool {
        // A server that could not read a request cannot name it; the body of a response answers one request alone.
        let about_all = !matches!(returned, Returned::Result(_));
        let id = id.or(channel.scope.filter(|_| about_all));
        let may = id.filter(|id| channel.scope.is_none_or(|scope| scope == *id));
        match may.and_then(|id| self.pending.get_mut(&id)).filter(|pending| pending.answer.is_none()) {
            Some(pending) => {
                pending.answer = Some(returned);
                self.woken.extend(pending.waker.take());
                true
            }
            None => {
                let late = may.is_some_and(|id| (1..self.next).contains(&id));
                let count = if late { &mut self.notices.late } else { &mut self.notices.stray };
                *count = count.saturating_add(1);
                false
            }
        }
    }

    fn request(&mut self, id: Value, method: &str) {
        let count = if method == "ping" { &mut self.notices.pings } else { &mut self.notices.refused };
        *count = count.saturating_add(1);
        if self.replies >= self.limits.replies {
            self.notices.unanswered = self.notices.unanswered.saturating_add(1);
            return;
        }
        self.replies = self.replies.saturating_add(1);
        let bytes = if method == "ping" { reply(id) } else { unsupported(id) };
        self.outbox.push_back(Outgoing::Reply(bytes));
    }

    fn notification(&mut self, channel: Channel, method: &str, params: Option<Value>) {
        match method {
            "notifications/progress" => self.progress(channel, params),
            "notifications/message" => self.log(params),
            "notifications/tools/list_changed" => self.notices.changes = self.notices.changes.saturating_add(1),
            "notifications/cancelled" => self.server_ends(channel, params),
            "notifications/subscriptions/acknowledged" => {}
            _ => self.notices.others = self.notices.others.saturating_add(1),
        }
    }

    fn progress(&mut self, channel: Channel, params: Option<Value>) {
        let read = params.and_then(|params| Progress::read(params, &self.limits));
        let own = read.filter(|(token, _)| channel.scope.is_none_or(|scope| scope == *token));
        let fits = own.and_then(|(token, progress)| {
            let pending = self.pending.get_mut(&token)?;
            pending.reached.is_none_or(|reached| progress.done > reached).then_some((pending, progress))
        });
        let Some((pending, mut progress)) = fits else {
            self.notices.others = self.notices.others.saturating_add(1);
            return;
        };
        pending.reached = Some(progress.done);
        if pending.progress.len() >= self.limits.progress {
            pending.progress.pop_front();
            pending.missed = pending.missed.saturating_add(1);
        }
        progress.missed = pending.missed;
        if self.limits.progress > 0 {
            pending.progress.push_back(progress);
        }
        self.woken.extend(pending.waker.take());
    }

    fn log(&mut self, params: Option<Value>) {
        let Some(log) = params.and_then(|params| Log::read(params, &self.limits)) else {
            self.notices.others = self.notices.others.saturating_add(1);
            return;
        };
        if self.logs.len() >= self.limits.logs {
            self.logs.pop_front();
            self.notices.logs_lost = self.notices.logs_lost.saturating_add(1);
        }
        if self.limits.logs > 0 {
            self.logs.push_back(log);
        }
    }

    /// A server may end what listens, and nothing else.
    fn server_ends(&mut self, channel: Channel, params: Option<Value>) {
        let id = match params {
            Some(Value::Object(map)) => map.get("requestId").cloned(),
            _ => None,
        };
        let id = if let Some(Value::Integer(id)) = id { u64::try_from(id).ok() } else { None };
        let listens = id.and_then(|id| self.pending.get(&id)).is_some_and(|pending| pending.wait == Wait::Listening);
        if !(listens && self.answer(channel, id, Returned::Result(object([])))) {
            self.notices.others = self.notices.others.saturating_add(1);
        }
    }
}
