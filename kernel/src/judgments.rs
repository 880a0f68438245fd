//! What approvers have ruled for more than one call, and what they end: precedents, and the suspension of a seat for its conduct.
//!
//! A judgment is on the disk, with the approver's signature, before it takes effect.

use ephor_base::{Arguments, OperatorId, Seat, Seq, SessionId, TicketId};
use ephor_chain::AppendError;
use ephor_record::{Judgment, Record, Reused, Role, Subject};
use serde::{Deserialize, Serialize};

use crate::{
    acts::MAX_NOTE,
    kernel::{Kernel, NODE_NAME},
};

/// A judgment was not taken. Nothing was recorded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotJudged {
    /// The record has another opinion, such as that it was revoked before. The caller's fault.
    #[error("{0}")]
    Rule(&'static str),
    /// The seat is not suspended, or was suspended anew since. The caller's fault.
    #[error("the seat of session {0} is not suspended for its conduct since that entry; look at it again")]
    NotSuspended(SessionId),
    /// The note is too long. The caller's fault.
    #[error("a note has at most {MAX_NOTE} bytes")]
    LongNote,
    /// The log could not take it.
    #[error("the chain cannot be written: {0}")]
    Chain(String),
}

impl From<AppendError> for NotJudged {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Misplaced(rule) => Self::Rule(rule),
            error => Self::Chain(error.to_string()),
        }
    }
}

/// A precedent that stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Stands {
    /// As the record has it.
    pub reused: Reused,
    /// The arguments that have to be the same; nothing if they cannot be read any more, and then it covers nothing.
    pub arguments: Option<Arguments>,
    /// What the person said to it.
    pub note: Option<String>,
    /// Why it does not count now, in words; nothing if it does.
    pub idle: Option<&'static str>,
}

/// What one person answered to a ticket that waits for more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// Who.
    pub operator: OperatorId,
    /// Whether they permit it.
    pub permits: bool,
    /// Their words.
    pub note: Option<String>,
}

/// A seat that its conduct suspended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Suspended {
    /// The session.
    pub session: SessionId,
    /// Its seat.
    pub seat: Seat,
    /// The entry with which the evidence rejected that it behaves.
    pub since: Seq,
    /// How many of its tool calls that rests on.
    pub calls: u64,
    /// How many of those were refused.
    pub bad: u64,
}

impl Kernel {
    /// The precedents that stand and whose time is not up, by their entries.
    #[must_use]
    pub fn precedents(&self) -> Vec<Stands> {
        let door = self.door();
        let (now, law) = (door.log().time(), self.policy());
        let standing: Vec<Reused> = door.log().standing(|standing| standing.reused().cloned().collect());
        let stands = |reused: Reused| {
            let known = door.precedents.named(reused.ruling);
            let registered = door.gate().registry().find(&reused.always.tool).map(ephor_base::Registration::digest);
            let whys = [
                (known.is_none(), "what it speaks of cannot be read any more"),
                (reused.policy != law, "it was given under another law"),
                (self.role(reused.operator) < Some(Role::Approver), "who gave it is no approver any more"),
                (registered != Some(reused.always.registration), "the tool is another one by now"),
            ];
            let idle = whys.into_iter().find(|(is, _)| *is).map(|(_, why)| why);
            let (arguments, note) = known.map(|known| (known.same.arguments, known.note)).unzip();
            Stands { reused, arguments, note: note.flatten(), idle }
        };
        standing.into_iter().filter(|one| one.always.until > now).map(stands).collect()
    }

    /// What people have answered so far to a ticket that is open, in the order of the record.
    #[must_use]
    pub fn answers(&self, session: SessionId, ticket: TicketId) -> Vec<Said> {
        self.door().with_session(session, |session| session.answers(ticket)).unwrap_or_default()
    }

    /// Records what an approver ends, with the approver's signature. What runs on a precedent that is revoked is cancelled.
    ///
    /// # Errors
    /// [`NotJudged`]: it stands as it did.
    pub async fn judge(
        &self,
        approver: OperatorId,
        judgment: Judgment,
        note: String,
        signature: Vec<u8>,
    ) -> Result<Seq, NotJudged> {
        if note.len() > MAX_NOTE {
            return Err(NotJudged::LongNote);
        }
        let fact = judgment.signed(note, signature);
        match judgment {
            Judgment::Revoke { ruling } => {
                let subject = Subject { operator: Some(approver), ..Subject::default() };
                // A verdict that rests on it and is not on the record yet is made again.
                let receipt = self.door().decree(Record { subject, fact, content: None }).await?;
                self.door().precedents.revoked(ruling);
                Ok(receipt.seq)
            }
            Judgment::Lift { session, since } => {
                let suspended = self.suspended_in(session).await.filter(|one| one.since == since);
                let seat = suspended.ok_or(NotJudged::NotSuspended(session))?.seat;
                let (operator, session, seat) = (Some(approver), Some(session), Some(seat));
                let subject = Subject { session, operator, seat, ..Subject::default() };
                Ok(self.door().lift(Record { subject, fact, content: None }).await?.seq)
            }
        }
    }

    /// The seats of open sessions that their conduct suspended.
    #[must_use]
    pub fn suspended(&self) -> Vec<Suspended> {
        let open = self.open_sessions();
        open.into_iter().filter_map(|(session, _)| self.door().with_session(session, |one| one.suspended())?).collect()
    }

    /// Whether its conduct has suspended the seat of a session, which may be open or rest on the record.
    pub async fn suspended_in(&self, session: SessionId) -> Option<Suspended> {
        if let Some(open) = self.door().with_session(session, |session| session.suspended()) {
            return open;
        }
        self.resting(session).await?.suspended()
    }

    /// The name of the log, which judgments are bound to.
    #[must_use]
    pub fn origin(&self) -> String {
        self.roster().origin
    }
}

/// The seat that all agents lie below, so that a precedent can be for all of them.
#[must_use]
pub fn all_agents() -> Seat {
    Seat::root(NODE_NAME).child("agents")
}
