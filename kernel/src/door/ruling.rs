//! Rulings: a person's signed answer to a deferred action.

use std::collections::BTreeSet;

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use ephor_base::{CallId, Decision, Digest, OperatorId, SessionId, TicketId, cbor};
use ephor_record::{Always, Operators, Role, RulingOn};
use minicbor::{Decode, Encode};

use crate::{acts::MAX_NOTE, question::Question};

/// Signed before the statement, so that a ruling can be taken for nothing else.
const DOMAIN: &[u8] = b"ephor ruling v3\n";

/// What an operator says, exactly as it is signed. Bound to the session, the call, its arguments, the policy in force, the
/// registration of the tool and the question as it was shown.
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
    /// The call; none, for a ruling on tools.
    #[n(5)]
    pub call: Option<CallId>,
    /// The digest of the tool's registration, its code in it; none, for a ruling on tools.
    #[n(6)]
    pub registration: Option<Digest>,
    /// For what it is to be used again, if it is; on a ticket alone.
    #[n(7)]
    pub always: Option<Always>,
    /// The operator's words. Public for good.
    #[n(8)]
    pub note: Option<String>,
    /// The digest of the question as it was shown; none, for a ruling on tools.
    #[n(9)]
    pub shown: Option<Digest>,
}

impl Statement {
    /// What answers exactly `question`.
    #[must_use]
    pub fn on_ticket(question: &Question, decision: Decision) -> Self {
        Self {
            session: question.session,
            on: RulingOn::Ticket(question.ticket),
            decision,
            arguments: question.digest,
            policy: question.verdict.policy,
            call: Some(question.call),
            registration: Some(question.registration),
            always: None,
            note: None,
            shown: Some(question.text.digest()),
        }
    }

    /// Whether it is bound to exactly this question, whatever else it says.
    pub(crate) fn answers(&self, question: &Question) -> bool {
        let (always, note) = (self.always.clone(), self.note.clone());
        let bound = Self { always, note, ..Self::on_ticket(question, self.decision) };
        *self == bound && self.decision != Decision::Defer
    }

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
    /// The ticket was answered, withdrawn or never was.
    #[error("Ticket {0} is not open. `ephor approvals` shows those that are.")]
    NotOpen(TicketId),
    /// The time of the ticket is up.
    #[error("the time of ticket {0} is up, and it counts as refused")]
    Expired(TicketId),
    /// It speaks of another call, other arguments, another session, policy or registration than the ticket.
    #[error("the ruling is bound to something else than the ticket; look at it again with `ephor approvals`")]
    OtherCall,
    /// It is to be used again for more than that is possible for, and why. The caller's fault.
    #[error("it cannot be used again like that: {0}")]
    TooWide(String),
    /// The note is too long. The caller's fault.
    #[error("a note has at most {MAX_NOTE} bytes")]
    LongNote,
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
    ephor_record::operators::operator_id(key.as_bytes())
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

/// The operators whose answers count: those who are approvers or more. Of a log in which no operator was ever enrolled, everybody.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Approvers(Option<BTreeSet<OperatorId>>);

impl Approvers {
    pub(crate) fn of(operators: &Operators) -> Self {
        let may = |role: Option<Role>| role.is_some_and(|role| role >= Role::Approver);
        let all = operators.iter().filter(|(_, one)| may(one.role)).map(|(id, _)| id).collect();
        Self((!operators.is_empty()).then_some(all))
    }

    /// An operator is in office, in this role, or no more.
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
