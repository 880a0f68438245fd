//! The one door: the only way from a process to the world.
//!
//! `Action → Verdict → Durable<Intent> → Permit → Outcome → Receipt`, in that order, with no way round. A permit is made
//! in `permit`, from a permitting verdict and an intent that is on the disk; `serving` is the only caller. The door owns a
//! running call: if the caller dies, it cancels the driver, settles the budget and records the outcome.

mod asked;
mod nested;
mod permit;
mod refusal;
mod ruling;
mod serving;
mod session;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ephor_base::{
    Action, ActionKind, CallId, Clock, Confidentiality, Decision, Digest, Envelope, MessageId, Outcome, Part, Pid,
    Receipt, Seat, SessionId, TicketId, ToolName,
};
use ephor_chain::{
    Log, Veil,
    record::{Content, Fact, Record, RulingOn, Subject},
};
use ephor_governance::{BadConstitution, Gate};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use permit::Permit;
pub use refusal::Refusal;
pub use ruling::{BadRuling, Operators, SignedRuling, Statement, operator_id};
pub use session::{Moment, SessionSpec};

pub(crate) use session::{Session, Turn};

use crate::{
    driver::{Driver, Secrets},
    ledger::Ledger,
    seen::Watchers,
};

/// The role and the namespace of every seat that holds a session, as the constitution names them.
const ROLE: &str = "agent";
const NAMESPACE: &str = "default";

/// The drivers of a node.
pub struct Drivers {
    /// Asks models.
    pub model: Arc<dyn Driver>,
    /// Delivers replies.
    pub reply: Arc<dyn Driver>,
    /// Runs tools.
    pub tools: BTreeMap<ToolName, Arc<dyn Driver>>,
}

/// How long things may take at the door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// One model request; 300 s by default, as for a whole turn.
    pub model: Duration,
    /// One tool call; 120 s by default. A registration may ask for less.
    pub tool: Duration,
    /// Delivering a reply; 10 s by default.
    pub reply: Duration,
    /// A person's answer; 300 s by default, then it is denied.
    pub ticket: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            model: Duration::from_secs(300),
            tool: Duration::from_secs(120),
            reply: Duration::from_secs(10),
            ticket: Duration::from_secs(300),
        }
    }
}

/// What the door is made of.
pub struct DoorParts {
    /// The record.
    pub log: Log,
    /// The law and the tools.
    pub gate: Gate,
    /// Whose rulings count.
    pub operators: Operators,
    /// What really does things.
    pub drivers: Drivers,
    /// Where secrets are kept.
    pub secrets: Arc<dyn Secrets>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Who watches which session.
    pub watchers: Arc<Watchers>,
    /// How long things may take.
    pub patience: Patience,
}

/// The first numbers this boot may give out; those before were used.
#[derive(Clone, Copy, Debug)]
pub struct FirstNumbers {
    /// Calls.
    pub call: CallId,
    /// Messages.
    pub message: MessageId,
    /// Tickets.
    pub ticket: TicketId,
}

/// The door of a node.
pub struct Door {
    parts: DoorParts,
    pub(crate) ledger: Ledger,
    sessions: Mutex<HashMap<SessionId, Session>>,
    tickets: ruling::Tickets,
    next_call: AtomicU64,
    next_message: AtomicU64,
    next_ticket: AtomicU64,
}

/// Who asks. Made by the kernel from the process itself, never from data.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) pid: Pid,
    pub(crate) seat: Seat,
    pub(crate) session: SessionId,
    /// Cancelled when the incarnation ends.
    pub(crate) fence: CancellationToken,
}

/// How a call stands.
#[derive(Debug)]
pub enum CallState {
    /// It has its permit and runs.
    Started,
    /// The driver shows the first of its work.
    Streaming,
    /// It is over.
    Ended(Result<Answered, Refusal>),
}

/// A call that ran.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The call.
    pub call: CallId,
    /// How it ended.
    pub outcome: Outcome,
    /// Where the outcome stands.
    pub receipt: Receipt,
}

/// A call under way. Dropping it cancels the call; the door still records how it ended.
#[derive(Debug)]
pub struct Call {
    states: mpsc::Receiver<CallState>,
    cancel: DropGuard,
}

impl Call {
    /// What cancels the call. `next` goes on until it has ended.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        Canceller(self.cancel.token().clone())
    }

    /// The next state; after `Ended` nothing follows.
    pub async fn next(&mut self) -> Option<CallState> {
        self.states.recv().await
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// [`Refusal`]: nothing ran.
    pub async fn ended(mut self) -> Result<Answered, Refusal> {
        while let Some(state) = self.next().await {
            if let CallState::Ended(result) = state {
                return result;
            }
        }
        Err(Refusal::Fenced)
    }
}

/// Cancels one call.
#[derive(Clone, Debug)]
pub struct Canceller(CancellationToken);

impl Canceller {
    /// Asks the driver to end.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// A message was not taken. Nothing was recorded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotAccepted {
    /// The session is not open.
    #[error("session {0} is not open")]
    NoSession(SessionId),
    /// Too many messages wait already.
    #[error("the mailbox is full: {0} messages wait; try again later")]
    Full(usize),
    /// The process that sends it has no session, or is over.
    #[error("process {0} has no session that a message could come out of")]
    NoOrigin(Pid),
    /// The log could not take it.
    #[error("the chain cannot be written: {0}")]
    Chain(String),
}

/// Who a message comes from. The kernel makes it, out of the handle of whoever sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// The operator's client: the parts say which of them the person has typed.
    Client,
    /// Another session, which holds things as confidential as this.
    Session(SessionId, Confidentiality),
}

impl Door {
    pub(crate) fn new(parts: DoorParts, first: FirstNumbers) -> Self {
        Self {
            parts,
            ledger: Ledger::default(),
            sessions: Mutex::default(),
            tickets: ruling::Tickets::default(),
            next_call: AtomicU64::new(first.call.0),
            next_message: AtomicU64::new(first.message.0),
            next_ticket: AtomicU64::new(first.ticket.0),
        }
    }

    pub(crate) const fn log(&self) -> &Log {
        &self.parts.log
    }

    pub(crate) const fn gate(&self) -> &Gate {
        &self.parts.gate
    }

    pub(crate) const fn operators(&self) -> &Operators {
        &self.parts.operators
    }

    pub(crate) fn watchers(&self) -> &Watchers {
        &self.parts.watchers
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.parts.clock
    }

    /// The system call. The call runs in a task of its own, which outlives the caller.
    pub(crate) fn call(self: &Arc<Self>, caller: Caller, action: Action) -> Call {
        let (sender, states) = mpsc::channel(4);
        let cancel = self.token_for(caller.session, action.kind());
        let serving = serving::Serving::new(self.clone(), caller, cancel.clone(), sender.clone(), None);
        tokio::spawn(async move {
            let result = serving.serve(action).await;
            // A caller that left has no use for the answer; it is on the record.
            let _left: Result<(), _> = sender.send(CallState::Ended(result)).await;
        });
        Call { states, cancel: cancel.drop_guard() }
    }

    /// What cancels a call: the call's own handle, or the turn. A reply is sent also when the turn is cancelled.
    fn token_for(&self, session: SessionId, kind: ActionKind) -> CancellationToken {
        let turn = |session: &mut Session| session.turn.as_ref().map(|turn| turn.cancel.child_token());
        let of_turn = if kind == ActionKind::Reply { None } else { self.with_session(session, turn).flatten() };
        of_turn.unwrap_or_default()
    }

    pub(crate) fn open_session(
        &self,
        id: SessionId,
        veil: Veil,
        seat: Seat,
        spec: SessionSpec,
    ) -> Result<(), BadConstitution> {
        let who = self.gate().principal(seat.as_str(), ROLE, NAMESPACE)?;
        self.sessions().insert(id, Session::new(id, veil, seat, spec, who));
        Ok(())
    }

    pub(crate) fn close_session(&self, id: SessionId) {
        self.sessions().remove(&id);
    }

    /// Looks at a session, or changes it; `None` if it is not open.
    pub(crate) fn with_session<T>(&self, id: SessionId, f: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.sessions().get_mut(&id).map(f)
    }

    /// Labels and records a message; the envelope is what the mailbox gets, once it is durable.
    pub(crate) async fn accept(
        &self,
        session: SessionId,
        from: Origin,
        parts: Vec<Part>,
    ) -> Result<Envelope, NotAccepted> {
        let id = MessageId(self.next_message.fetch_add(1, Ordering::Relaxed));
        let now = self.clock().now();
        let entered = self.with_session(session, |session| {
            session.governed_from(now);
            let spans = session.enter_parts(from, &parts);
            (spans, session.spec.operator, session.seat.clone())
        });
        let (spans, operator, seat) = entered.ok_or(NotAccepted::NoSession(session))?;
        let subject =
            Subject { session: Some(session), operator: Some(operator), seat: Some(seat), ..Subject::default() };
        let from = match from {
            Origin::Client => None,
            Origin::Session(from, _) => Some(from),
        };
        let fact = Fact::Message { id, spans: spans.clone(), from };
        let record = Record { subject, fact, content: Some(Content::Parts(parts)) };
        if let Err(error) = self.log().append(record).await {
            // What is not on the record was not said, and is trusted for nothing.
            self.with_session(session, |session| session.withdraw(&spans));
            return Err(NotAccepted::Chain(error.to_string()));
        }
        Ok(Envelope { id, session, operator, accepted: now, spans })
    }

    /// Begins the turn that answers `envelope`.
    pub(crate) fn begin_turn(&self, envelope: &Envelope) {
        let started = self.clock().monotonic();
        self.with_session(envelope.session, |session| {
            session.moments.push(Moment::Said(envelope.spans.clone()));
            session.conduct.begin();
            session.turn = Some(Turn {
                message: envelope.id,
                started,
                waited: Duration::ZERO,
                waits: 0,
                waits_since: Duration::ZERO,
                report: ephor_base::TurnReport::default(),
                receipts: Vec::new(),
                cancel: CancellationToken::new(),
                over: CancellationToken::new().drop_guard(),
            });
        });
    }

    /// Cancels the turn of a session: calls in flight end, and only the reply may still begin.
    pub(crate) fn cancel_turn(&self, session: SessionId) -> bool {
        let turn = self.with_session(session, |session| session.turn.as_ref().map(|turn| turn.cancel.clone()));
        turn.flatten().is_some_and(|cancel| {
            cancel.cancel();
            true
        })
    }

    /// Takes an operator's ruling: on an open ticket, or on tools for a session.
    pub(crate) async fn rule(&self, ruling: SignedRuling) -> Result<(), BadRuling> {
        self.parts.operators.check(&ruling)?;
        match &ruling.statement.on {
            RulingOn::Ticket(id) => self.tickets.answer(*id, ruling),
            RulingOn::Tools(tools) => self.rule_on_tools(tools.clone(), &ruling).await,
        }
    }

    async fn rule_on_tools(&self, tools: Vec<ToolName>, ruling: &SignedRuling) -> Result<(), BadRuling> {
        let said = &ruling.statement;
        let binds = said.decision == Decision::Permit
            && said.arguments == Digest::of(&[])
            && said.policy == self.gate().digest();
        if !binds {
            return Err(BadRuling::OtherCall);
        }
        let seat = self.with_session(said.session, |session| session.seat.clone());
        let seat = seat.ok_or(BadRuling::NoSession(said.session))?;
        let subject = Subject { session: Some(said.session), seat: Some(seat), ..Subject::default() };
        let receipt = self.record_ruling(subject, ruling).await.map_err(BadRuling::Chain)?;
        let standing = session::Standing { tools, ruling: receipt.seq };
        self.with_session(said.session, |session| session.standing.push(standing));
        Ok(())
    }

    async fn record_ruling(&self, subject: Subject, ruling: &SignedRuling) -> Result<Receipt, String> {
        let fact = Fact::Ruling {
            on: ruling.statement.on.clone(),
            decision: ruling.statement.decision,
            signature: ruling.signature.clone(),
            how: "answered".into(),
        };
        let subject = Subject { operator: Some(ruling.operator), ..subject };
        self.log().append(Record { subject, fact, content: None }).await.map_err(|error| error.to_string())
    }

    fn fresh_call(&self) -> CallId {
        CallId(self.next_call.fetch_add(1, Ordering::Relaxed))
    }

    fn open_ticket(
        &self,
        session: SessionId,
        arguments: Digest,
        policy: Digest,
    ) -> (TicketId, oneshot::Receiver<SignedRuling>) {
        let id = TicketId(self.next_ticket.fetch_add(1, Ordering::Relaxed));
        (id, self.tickets.open(id, session, arguments, policy))
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
