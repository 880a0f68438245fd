//! Dead letters: messages that could not be delivered, and what an operator does with them.
//!
//! The record alone says what is dead. A replay is the acceptance of a new message that names the old one, in one entry, so
//! that whatever dies at whatever moment, a message is never both dead and delivered, and never delivered twice.

use ephor_base::{
    Envelope, MessageId, ModelRef, OperatorId, Part, Seat, Seq, SessionId, Timestamp, ToolName, Workspace,
};
use ephor_chain::{AppendError, Private};
use ephor_record::{Because, Content, DeadLetter, Fact, Pin, Record, Subject, Undelivered};

use crate::{
    acts::{MAX_NOTE, NotDone},
    door::{Door, NotAccepted, Sent, Session, SessionSpec},
    kernel::Kernel,
};

/// A dead letter was not replayed or dropped. It is one still.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotRaised {
    /// There is no such dead letter: it was answered, replayed or dropped, or never was. The caller's fault.
    #[error("message {0} is no dead letter")]
    NotDead(MessageId),
    /// Nothing says any more what its session worked with.
    #[error(
        "what the session of message {0} worked with cannot be read any more: name a folder and a model, with -C and --model"
    )]
    Whence(MessageId),
    /// What it said cannot be read any more: its session was erased, or its entry is gone.
    #[error("what message {0} said cannot be read any more")]
    Unreadable(MessageId),
    /// The session does not take it.
    #[error(transparent)]
    NotAccepted(#[from] NotAccepted),
    /// The note is too long, or the log could not take it.
    #[error(transparent)]
    NotDone(#[from] NotDone),
}

/// A message that will not be delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub(crate) message: MessageId,
    pub(crate) accepted: Seq,
    pub(crate) session: SessionId,
}

impl From<&Envelope> for Lost {
    fn from(envelope: &Envelope) -> Self {
        Self { message: envelope.id, accepted: envelope.seq, session: envelope.session }
    }
}

impl Door {
    /// Records that messages for `seat` will not be delivered. If the log cannot take that, they are owed an answer still,
    /// and the next boot finds them.
    pub(crate) async fn bury(&self, seat: Option<&Seat>, lost: Vec<Lost>, why: Undelivered) {
        for Lost { message, accepted, session } in lost {
            let subject = Subject { session: Some(session), seat: seat.cloned(), ..Subject::default() };
            let fact = Fact::Dead { message, accepted, why };
            let link = self.link(session).unwrap_or_default();
            if let Err(error) = link.log(self.log(), None).note(Record { subject, fact, content: None }).await {
                tracing::error!(%message, %error, "a message that was not delivered could not be recorded as dead");
            }
        }
        self.settled.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// What the session works with in which a dead letter was said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whence {
    /// The folder its tools see.
    pub workspace: Workspace,
    /// The model it asks.
    pub model: ModelRef,
    /// Its agent, as the configuration names it.
    pub agent: String,
}

impl From<&Session> for Whence {
    fn from(session: &Session) -> Self {
        let SessionSpec { workspace, model, agent, .. } = session.spec.clone();
        Self { workspace, model, agent: agent.agent }
    }
}

/// A dead letter, opened.
struct Letter {
    /// The session it comes out of: replayed, it is trusted for no more than before.
    from: Option<SessionId>,
    /// What was pinned for its turn, if anything was: replayed, it may do no more than before.
    scope: Option<Vec<Pin>>,
    /// Whether its plan was to be seen before anything acts.
    looks: bool,
    parts: Vec<Part>,
}

/// What was pinned with these tools and, in the content, where they may act.
fn pins(tools: Vec<ToolName>, content: &Content) -> Vec<Pin> {
    let targets = if let Content::Pinned(pinned) = content { pinned.pins.as_slice() } else { &[] };
    let anywhere = tools.into_iter().filter(|tool| targets.iter().all(|pin| pin.tool != *tool)).map(Pin::from);
    anywhere.chain(targets.iter().cloned()).collect()
}

impl Kernel {
    /// The dead letters, by message.
    #[must_use]
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.door().log().standing(|standing| standing.dead().copied().collect())
    }

    /// What a dead letter says.
    ///
    /// # Errors
    /// [`NotRaised::NotDead`] and [`NotRaised::Unreadable`].
    pub async fn read_letter(&self, message: MessageId) -> Result<Vec<Part>, NotRaised> {
        self.open_letter(message).await.map(|letter| letter.parts)
    }

    /// What the session of a dead letter works with, as it is or as the record has it.
    ///
    /// # Errors
    /// [`NotRaised::NotDead`] and [`NotRaised::Whence`].
    pub async fn whence(&self, message: MessageId) -> Result<Whence, NotRaised> {
        let letter = self.dead_letters().into_iter().find(|letter| letter.message == message);
        let session = letter.ok_or(NotRaised::NotDead(message))?.session;
        if let Some(open) = self.door().with_session(session, |session| Whence::from(&*session)) {
            return Ok(open);
        }
        let rests = self.resting(session).await;
        rests.map(|session| Whence::from(&*session)).ok_or(NotRaised::Whence(message))
    }

    /// What a dead letter says, and what came with it.
    async fn open_letter(&self, message: MessageId) -> Result<Letter, NotRaised> {
        let letter = self.dead_letters().into_iter().find(|letter| letter.message == message);
        let letter = letter.ok_or(NotRaised::NotDead(message))?;
        let log = self.door().log().clone();
        let read = tokio::task::spawn_blocking(move || log.entry(letter.accepted)).await;
        match read {
            Ok(Ok(Some(stored))) => match (stored.entry.fact, stored.content) {
                (Fact::Message { from, scope, .. }, Private::Open(content)) => {
                    let parts = content.parts().ok_or(NotRaised::Unreadable(message))?.to_vec();
                    let scope = scope.filter(|_| from.is_none()).map(|tools| pins(tools, &content));
                    let looks = matches!(&content, Content::Pinned(pinned) if pinned.looks);
                    Ok(Letter { from, scope, looks, parts })
                }
                _ => Err(NotRaised::Unreadable(message)),
            },
            _ => Err(NotRaised::Unreadable(message)),
        }
    }

    /// Delivers a dead letter into an open session, as a new message; it is dead no more.
    ///
    /// # Errors
    /// [`NotRaised`]: it is dead still, or another caller was quicker.
    pub async fn replay(
        &self,
        operator: OperatorId,
        message: MessageId,
        into: SessionId,
    ) -> Result<MessageId, NotRaised> {
        let Letter { from, scope, looks, parts } = self.open_letter(message).await?;
        let (because, by) = (Some(Because::Replay(message)), Some(operator));
        let replayed = Sent { from, because, by, scope, looks };
        match self.deliver(into, replayed, parts).await {
            Err(NotAccepted::Again(_)) => Err(NotRaised::NotDead(message)),
            accepted => Ok(accepted?),
        }
    }

    /// Sends a message, with what is pinned for its turn, because a schedule was due at the instant `at`. That instant is used up by it.
    ///
    /// # Errors
    /// [`NotAccepted`]: nothing was recorded. [`NotAccepted::Again`] if the instant was used up before, or the operator the session
    /// is for may not send any more.
    pub async fn fire(
        &self,
        session: SessionId,
        parts: Vec<Part>,
        scope: Option<Vec<Pin>>,
        name: &str,
        at: Timestamp,
    ) -> Result<MessageId, NotAccepted> {
        let because = Some(Because::Fire { name: name.to_owned(), at });
        self.deliver(session, Sent { because, scope, ..Sent::default() }, parts).await
    }

    /// Drops a dead letter, on the record.
    ///
    /// # Errors
    /// [`NotRaised`]: it is dead still.
    pub async fn drop_letter(&self, operator: OperatorId, message: MessageId, note: String) -> Result<Seq, NotRaised> {
        if note.len() > MAX_NOTE {
            return Err(NotDone::LongNote.into());
        }
        let letter = self.dead_letters().into_iter().find(|letter| letter.message == message);
        let session = letter.ok_or(NotRaised::NotDead(message))?.session;
        let subject = Subject { operator: Some(operator), session: Some(session), ..Subject::default() };
        let record = Record { subject, fact: Fact::Buried { message, note }, content: None };
        match self.door().log().append(record).await {
            Ok(receipt) => Ok(receipt.seq),
            Err(AppendError::Misplaced(_)) => Err(NotRaised::NotDead(message)),
            Err(error) => Err(NotDone::Chain(error.to_string()).into()),
        }
    }
}
