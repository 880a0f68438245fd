//! Messages between processes, and requests that are answered.

use std::sync::Arc;

use ephor_base::Pid;

use super::{Host, row::Row};

/// What lies in a message port.
pub(super) enum Letter<H: Host> {
    Message(H::Message),
    Request(H::Message, Reply<H>),
}

impl<H: Host> Letter<H> {
    pub(super) fn into_message(self) -> H::Message {
        match self {
            Self::Message(message) | Self::Request(message, _) => message,
        }
    }

    /// The message, unless a caller waits for its answer.
    pub(super) fn unasked(self) -> Option<H::Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Request(..) => None,
        }
    }
}

/// The right to answer one request, once. It belongs to the incarnation that was asked: after its end, and once it is
/// fenced, the asker does not hear it.
pub struct Reply<H: Host> {
    pub(super) row: Arc<Row<H>>,
    pub(super) pid: Pid,
    pub(super) number: u64,
}

impl<H: Host> Reply<H> {
    /// Answers; false if the asker does not wait any more, or this incarnation is over.
    pub fn send(self, answer: H::Message) -> bool {
        self.row.asker(self.pid, self.number).is_some_and(|asker| asker.send(answer).is_ok())
    }
}

/// A request has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unanswered {
    /// There is no such process, or it exited before it answered.
    #[error("process {0} is not there")]
    Gone(Pid),
    /// Too many messages wait there already.
    #[error("process {0} has too many messages waiting")]
    Full(Pid),
    /// It took longer than the caller waits. An answer that comes now is not heard.
    #[error("process {0} did not answer in time")]
    Late(Pid),
    /// The process that asks is over itself.
    #[error("the caller is not there any more")]
    Fenced,
}

/// A message was not taken. It is still the caller's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotSent {
    /// There is no such process.
    #[error("there is no process to take it")]
    Gone,
    /// So many messages wait already.
    #[error("the message port is full: {0} messages wait")]
    Full(usize),
    /// The sender is over itself.
    #[error("the sender is not there any more")]
    Fenced,
}
