//! A message on its way in: how it comes to be sent, and what of it is whose.

use ephor_base::{Budget, Exhausted, MessageId, OperatorId, Part, PartKind, Seat, SessionId};
use ephor_governance::pasted::divided;
use ephor_record::{Because, Content, Pin, Pinned};

use super::{Door, planning::plan_of};
use crate::kernel::Kernel;

/// A message was not taken. Nothing was recorded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotAccepted {
    /// The session is not open.
    #[error("session {0} is not open")]
    NoSession(SessionId),
    /// Too many messages wait already.
    #[error("the mailbox is full: {0} messages wait; try again later")]
    Full(usize),
    /// The seat has taken as many messages as its budget allows. An operator can raise it.
    #[error("{0}; `ephor budget {1}` shows it, and raises it")]
    BudgetSpent(Exhausted, Seat),
    /// What it replays or fires was replayed or fired before, or stands no more.
    #[error("it is not to be done again: {0}")]
    Again(&'static str),
    /// The plan that comes with it is none. The caller's fault.
    #[error("the plan is none: {0}; mend it, and send the message with it again")]
    Plan(String),
    /// The log could not take it.
    #[error("the chain cannot be written: {0}")]
    Chain(String),
}

/// How a message comes to be sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    /// The session it came out of, of a replayed message that another session delegated; none, if the operator's client sent it,
    /// whose parts say what the person has typed.
    pub(crate) from: Option<SessionId>,
    /// Why it is sent, if no person did just now.
    pub(crate) because: Option<Because>,
    /// Who has it sent, if not the operator of the session.
    pub(crate) by: Option<OperatorId>,
    /// The tools that what it asks needs, and where they may act, if the operator pinned them.
    pub(crate) scope: Option<Vec<Pin>>,
    /// Whether the plan of its turn is put before a person before anything acts.
    pub(crate) looks: bool,
}

/// What one message uses.
pub(crate) const MESSAGE: Budget = Budget { messages: 1, ..Budget::ZERO };

impl Kernel {
    /// As [`Kernel::send_pinned`], where anything is pinned; the plan of its turn is put before a person before anything acts.
    ///
    /// # Errors
    /// [`NotAccepted`]: nothing was recorded, and the message is still the caller's.
    pub async fn send_looking(
        &self,
        session: SessionId,
        parts: Vec<Part>,
        scope: Option<Vec<Pin>>,
    ) -> Result<MessageId, NotAccepted> {
        self.deliver(session, Sent { scope, looks: true, ..Sent::default() }, parts).await
    }
}

impl Door {
    /// The parts of a message with what is pasted in parts of their own, and a plan among them that is one.
    ///
    /// # Errors
    /// What is wrong with the plan.
    pub(crate) fn divided(&self, parts: Vec<Part>) -> Result<Vec<Part>, String> {
        let mut plans = parts.iter().filter(|part| part.kind == PartKind::Plan);
        if let Some(plan) = plans.next() {
            plan_of(&self.gate(), &plan.text)?;
        }
        if plans.next().is_some() {
            return Err("a message has one plan, and this has two".to_owned());
        }
        Ok(divided(parts))
    }
}

/// What is sealed of a message: its parts, and where tools may act in its turn, if that is pinned.
pub(crate) fn said_in(parts: Vec<Part>, scope: Option<Vec<Pin>>, looks: bool) -> Content {
    let pins: Vec<Pin> = scope.into_iter().flatten().filter(|pin| pin.targets.is_some()).collect();
    if pins.is_empty() && !looks { Content::Parts(parts) } else { Content::Pinned(Pinned { parts, pins, looks }) }
}
