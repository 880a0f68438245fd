//! Rulings: a person's signed answer to a deferred action.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use ephor_base::{Decision, Digest, OperatorId, Seq, SessionId, TicketId, cbor};
use ephor_chain::{
    Operators, Role,
    record::{RulingOn, Subject},
};
use ephor_governance::Ruled;
use minicbor::{Decode, Encode};
use tokio::sync::oneshot;

/// Signed before the statement, so that a ruling can be taken for nothing else.
const DOMAIN: &[u8] = b"ephor ruling v1\n";

/// What an operator says, exactly as it is signed. Bound to the session, the arguments and the policy in force.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Statement {
    /// The session.
    #[n(0)]
    pub session: SessionId,
    /// What it answers.
    #[n(1)]
    pub on: RulingOn,
    /// `Permit` or `Deny`.
    #[n(2)]
    pub decision: Decision,
    /// The digest of the arguments; of nothing, for a ruling on tools.
    #[n(3)]
    pub arguments: Digest,
    /// The digest of the constitution and operator policy.
    #[n(4)]
    pub policy: Digest,
}

impl Statement {
    /// Signs it with an operator's key.
    #[must_use]
    pub fn sign(self, key: &SigningKey) -> SignedRuling {
        let signature = key.sign(&self.signed_bytes()).to_bytes().to_vec();
        SignedRuling { statement: self, operator: operator_id(&key.verifying_key()), signature }
    }

    fn signed_bytes(&self) -> Vec<u8> {
        [DOMAIN, &cbor::to_vec(self)].concat()
    }
}

/// A statement with its signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedRuling {
    /// What is said.
    pub statement: Statement,
    /// Who says it.
    pub operator: OperatorId,
    /// Ed25519 over the statement; 64 bytes.
    pub signature: Vec<u8>,
}

/// A ruling that counts for nothing. Nothing changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadRuling {
    /// Not an enrolled operator, or not their signature.
    #[error("the ruling is not signed by an operator of this node")]
    NotAnOperator,
    /// An operator, whose role is less than that of an approver. The role, or `nobody`.
    #[error("an answer takes an approver, and this operator is `{0}`")]
    NotAnApprover(&'static str),
    /// The ticket was answered, expired or never was.
    #[error("ticket {0} is not open")]
    NotOpen(TicketId),
    /// It speaks of other arguments, another session or another policy than the ticket.
    #[error("the ruling is bound to something else than the ticket")]
    OtherCall,
    /// The session is not open.
    #[error("session {0} is not open")]
    NoSession(SessionId),
    /// The log could not take it.
    #[error("the chain cannot be written: {0}")]
    Chain(String),
}

/// The id of the operator who holds `key`.
#[must_use]
pub fn operator_id(key: &VerifyingKey) -> OperatorId {
    ephor_chain::operators::operator_id(key.as_bytes())
}

/// Whether a ruling counts: it is signed by an operator in office whose role is to answer.
pub(crate) fn check(operators: &Operators, ruling: &SignedRuling) -> Result<(), BadRuling> {
    if !operators.verify(ruling.operator, &ruling.statement.signed_bytes(), &ruling.signature) {
        return Err(BadRuling::NotAnOperator);
    }
    match operators.role(ruling.operator) {
        Some(role) if role >= Role::Approver => Ok(()),
        role => Err(BadRuling::NotAnApprover(role.map_or("nobody", Role::name))),
    }
}

/// The operators whose answers count: those who are approvers or more. Of a log in which nobody was ever enrolled, everybody.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Approvers(Option<BTreeSet<OperatorId>>);

impl Approvers {
    pub(crate) fn of(operators: &Operators) -> Self {
        let may = |role: Option<Role>| role.is_some_and(|role| role >= Role::Approver);
        let all = operators.iter().filter(|(_, one)| may(one.role)).map(|(id, _)| id).collect();
        Self((!operators.is_empty()).then_some(all))
    }

    /// Somebody is in office, in this role, or no more.
    pub(crate) fn change(&mut self, operator: OperatorId, role: Option<Role>) {
        let all = self.0.get_or_insert_default();
        if role.is_some_and(|role| role >= Role::Approver) {
            all.insert(operator);
        } else {
            all.remove(&operator);
        }
    }

    pub(crate) fn count(&self, operator: OperatorId) -> bool {
        self.0.as_ref().is_none_or(|all| all.contains(&operator))
    }
}

/// What came of a ticket: an answer, and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) ruled: Ruled,
    pub(crate) ruling: Option<Seq>,
}

/// What a ticket is bound to, and how many different people have to permit it.
#[derive(Clone, Debug)]
pub(crate) struct Asks {
    pub(crate) subject: Subject,
    pub(crate) session: SessionId,
    pub(crate) arguments: Digest,
    pub(crate) policy: Digest,
    pub(crate) needed: u32,
}

/// The tickets that wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<HashMap<TicketId, Open>>);

#[derive(Debug)]
struct Open {
    asks: Asks,
    /// Answers are recorded one after another, and so is that nobody gave one.
    turn: Arc<tokio::sync::Mutex<()>>,
    answer: oneshot::Sender<Answer>,
}

impl Tickets {
    /// Opens a ticket; the receiver gets what comes of it.
    pub(crate) fn open(&self, id: TicketId, asks: Asks) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        self.tickets().insert(id, Open { asks, turn: Arc::default(), answer });
        receiver
    }

    /// What lets one at a time rule on a ticket; nothing for one that is not open.
    pub(crate) fn turn(&self, id: TicketId) -> Option<Arc<tokio::sync::Mutex<()>>> {
        self.tickets().get(&id).map(|open| open.turn.clone())
    }

    /// Closes a ticket that nobody settled.
    pub(crate) fn close(&self, id: TicketId) {
        self.tickets().remove(&id);
    }

    /// Whom a ticket concerns and how many it needs, if the ruling is bound to it. The signature has been checked.
    pub(crate) fn check(&self, id: TicketId, ruling: &SignedRuling) -> Result<(Subject, u32), BadRuling> {
        let tickets = self.tickets();
        let Open { asks, .. } = tickets.get(&id).ok_or(BadRuling::NotOpen(id))?;
        let said = &ruling.statement;
        if (said.session, said.arguments, said.policy) != (asks.session, asks.arguments, asks.policy) {
            return Err(BadRuling::OtherCall);
        }
        Ok((asks.subject.clone(), asks.needed))
    }

    /// Closes a ticket with what came of it.
    pub(crate) fn settle(&self, id: TicketId, answer: Answer) {
        let open = self.tickets().remove(&id);
        // Whoever asked may be gone.
        let _gone = open.map(|open| open.answer.send(answer));
    }

    fn tickets(&self) -> std::sync::MutexGuard<'_, HashMap<TicketId, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
