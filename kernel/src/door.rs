//! The one door: the only way from a process to the world.
//!
//! `Action → Verdict → Durable<Intent> → Permit → Outcome → Receipt`, in that order, with no way round. A permit is made
//! in `permit`, from a permitting verdict and an intent that is on the disk; `serving` is the only caller. The door owns a
//! running call: if the caller dies, it cancels the driver, settles the budget and records the outcome.

mod accepting;
mod appointments;
mod asked;
mod flights;
mod history;
mod inbox;
mod law;
mod nested;
mod ongoing;
mod permit;
mod planning;
mod plans;
mod precedents;
mod refusal;
mod retrial;
mod ruling;
mod serving;
mod session;
mod tickets;
mod turn;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use ephor_base::{
    Action, ActionKind, Budget, CallId, Clock, Decision, Digest, Envelope, MessageId, Offset, OperatorId, Outcome,
    Part, Pid, Receipt, Seat, Seq, SessionId, SpanId, TicketId, Timestamp, ToolName,
};
use ephor_chain::{AppendError, Log, Veil};
use ephor_governance::{Gate, Ruled};
use ephor_record::{Because, Content, Fact, Opening, Record, Reused, Role, RulingOn, Subject};
use tokio::sync::{OwnedMutexGuard, mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use accepting::NotAccepted;
pub use appointments::Appointments;
pub(crate) use appointments::within;
pub use flights::{Flight, Landed};
pub use permit::Permit;
pub use planning::check_plan;
pub use plans::{TheirPlan, TurnPlan};
pub use refusal::Refusal;
pub use retrial::{Again, Inputs, Retrial, Retried, Undecidable};
pub use ruling::{BadRuling, SignedRuling, Statement, operator_id};
pub use session::{Moment, SessionSpec};
pub use turn::TurnLimits;

pub(crate) use accepting::{MESSAGE, Sent};
pub(crate) use flights::Flights;
pub(crate) use history::LAPSED;
pub(crate) use retrial::TakenUp;
pub(crate) use session::{Parked, Session};
pub(crate) use tickets::{Answer, Claim, Instant};
pub(crate) use turn::Turn;

use inbox::{Following, Inbox};
use law::{Among, Decreeing, Enacting, Law, Under};
pub(crate) use precedents::Called;
use ruling::Approvers;

use crate::{
    acts::MAX_NOTE,
    driver::{Driver, Secrets},
    holds::Holds,
    kernel::NotStarted,
    ledger::Ledger,
    question::Question,
    seen::Watchers,
    warrant::Warrant,
};
use ephor_runtime::{Watch, timers::Timers};

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
    /// One tool call, with the calls in it and the answers they wait for; 900 s by default. A registration may ask for less.
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
            tool: Duration::from_secs(900),
            reply: Duration::from_secs(10),
            ticket: Duration::from_secs(300),
        }
    }
}

/// What the door is made of.
pub struct DoorParts {
    /// The record.
    pub log: Log,
    /// The tools, and the law that is in force when the node starts.
    pub gate: Gate,
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
    /// How much one turn may ask.
    pub turn: TurnLimits,
    /// What agents there are.
    pub appointments: Appointments,
}

/// The same, in the door's own hands.
struct Parts {
    /// The record.
    log: Log,
    /// What really does things.
    drivers: Drivers,
    /// Where secrets are kept.
    secrets: Arc<dyn Secrets>,
    /// Time.
    clock: Arc<dyn Clock>,
    /// One wheel of timers, on that clock.
    timers: Timers,
    /// Who watches which session.
    watchers: Arc<Watchers>,
    /// How long things may take.
    patience: Patience,
    /// How much one turn may ask.
    turn: TurnLimits,
    /// What agents there are.
    appointments: Appointments,
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
    parts: Parts,
    /// Who sees drivers that do not yield.
    watch: Arc<Watch>,
    law: Arc<Law>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) holds: Arc<Holds>,
    pub(crate) flights: Flights,
    pub(crate) ongoing: Arc<ongoing::Ongoing>,
    /// Held while a seat gets another limit, or is held because its budget is spent.
    pub(crate) limiting: tokio::sync::Mutex<()>,
    /// Called when the group of a session has ended, whatever ended it.
    over: OnceLock<Box<dyn Fn(SessionId) + Send + Sync>>,
    /// Called when a panic has left a session half changed.
    broken: OnceLock<Box<dyn Fn(SessionId) + Send + Sync>>,
    sessions: Mutex<HashMap<SessionId, Arc<Opened>>>,
    pub(crate) tickets: tickets::Tickets,
    pub(crate) precedents: precedents::Precedents,
    /// Counts the messages that were answered, or died.
    pub(crate) settled: watch::Sender<u64>,
    /// The node is stopping: what is unfinished is left for the next boot.
    pub(crate) stopping: AtomicBool,
    next_call: AtomicU64,
    next_message: AtomicU64,
    next_ticket: AtomicU64,
}

/// A session that is open. Each has a lock of its own: one that is at work holds up no other, and a panic in one is its own.
struct Opened {
    session: Mutex<Session>,
    link: Link,
    /// What its seat may use; closing the session gives it up.
    warrant: Mutex<Option<Warrant>>,
}

/// How what is recorded reaches a session.
#[derive(Clone, Default)]
pub(crate) struct Link {
    /// Digests what is private for the public part of the record. None for a session that is gone.
    veil: Option<Arc<Veil>>,
    inbox: Arc<Inbox>,
    /// The sender of a message has this, so that messages stand on the record in the order in which they are read.
    sending: Arc<tokio::sync::Mutex<()>>,
}

impl Link {
    /// The log, as the session follows it. With `at` it takes only what still holds.
    pub(crate) fn log(&self, log: &Log, at: Option<u64>) -> Log {
        log.in_order(Arc::new(Following { inbox: self.inbox.clone(), at, under: None, among: None }))
    }

    /// As [`Link::log`], for what was decided under a law: it takes that only while the law is in force.
    fn log_under(&self, log: &Log, at: Option<u64>, under: Under) -> Log {
        log.in_order(Arc::new(Following { inbox: self.inbox.clone(), at, under: Some(under), among: None }))
    }

    /// As [`Link::log`], for what an operator sends who has to be in office: it takes that only while they still are.
    fn log_among(&self, log: &Log, at: Option<u64>, among: Option<Among>) -> Log {
        log.in_order(Arc::new(Following { inbox: self.inbox.clone(), at, under: None, among }))
    }
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

impl Door {
    pub(crate) fn new(parts: DoorParts, first: FirstNumbers, watch: Arc<Watch>) -> Self {
        let DoorParts { log, gate, drivers, secrets, clock, watchers, patience, turn, appointments } = parts;
        let time = clock.clone();
        let timers = Timers::of_machine(move || time.monotonic());
        let parts = Parts { log, drivers, secrets, clock, timers, watchers, patience, turn, appointments };
        let precedents = precedents::Precedents::load(&parts.log);
        let holds = Arc::new(Holds::new(parts.log.standing(|standing| standing.holds().clone())));
        Self {
            parts,
            watch,
            law: Arc::new(Law::new(gate)),
            holds,
            flights: Flights::default(),
            ongoing: Arc::default(),
            limiting: tokio::sync::Mutex::default(),
            over: OnceLock::new(),
            broken: OnceLock::new(),
            ledger: Arc::default(),
            sessions: Mutex::default(),
            tickets: tickets::Tickets::default(),
            precedents,
            settled: watch::Sender::new(0),
            stopping: AtomicBool::new(false),
            next_call: AtomicU64::new(first.call.0),
            next_message: AtomicU64::new(first.message.0),
            next_ticket: AtomicU64::new(first.ticket.0),
        }
    }

    pub(crate) const fn log(&self) -> &Log {
        &self.parts.log
    }

    /// The law in force, over the tools.
    pub(crate) fn gate(&self) -> Arc<Gate> {
        self.law.gate()
    }

    /// Records a decree on who is in office, or that something is no precedent any more.
    pub(crate) async fn decree(&self, record: Record) -> Result<Receipt, AppendError> {
        let receipt = self.log().in_order(Arc::new(Decreeing(self.law.clone()))).append(record).await?;
        // What is not on the record yet is decided again; this is for what runs already.
        self.precedents.count_only(&self.approvers());
        Ok(receipt)
    }

    /// Records that the seat of a session may act again, which may rest.
    pub(crate) async fn lift(&self, record: Record) -> Result<Receipt, AppendError> {
        let link = record.subject.session.and_then(|session| self.link(session)).unwrap_or_default();
        link.log(self.log(), None).append(record).await
    }

    /// What an operator may do now; nothing if they are not in office.
    pub(crate) fn role(&self, operator: OperatorId) -> Option<Role> {
        self.log().standing(|standing| standing.operators().role(operator))
    }

    /// Who may answer now.
    pub(crate) fn approvers(&self) -> Approvers {
        self.log().standing(|standing| Approvers::of(standing.operators()))
    }

    /// Puts a law in force, at the place where the record says so; nothing before that is on the disk.
    pub(crate) async fn enact(&self, gate: Gate, before: Digest, record: Record) -> Result<Receipt, AppendError> {
        let enacting = Enacting { law: self.law.clone(), gate: Arc::new(gate), before };
        self.log().in_order(Arc::new(enacting)).append(record).await
    }

    pub(crate) const fn patience(&self) -> &Patience {
        &self.parts.patience
    }

    /// What agents there are.
    pub(crate) const fn appointments(&self) -> &Appointments {
        &self.parts.appointments
    }

    pub(crate) fn watchers(&self) -> &Watchers {
        &self.parts.watchers
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.parts.clock
    }

    /// What every wait for a time waits on: here, and in every process.
    pub(crate) fn timers(&self) -> &Timers {
        &self.parts.timers
    }

    /// The system call. The call runs in a task of its own, which outlives the caller.
    pub(crate) fn call(self: &Arc<Self>, caller: Caller, action: Action) -> Call {
        let (sender, states) = mpsc::channel(4);
        let cancel = self.token_for(caller.session, action.kind());
        let serving = serving::Serving::new(self.clone(), caller, cancel.clone(), sender.clone(), None);
        ephor_runtime::spawn(async move {
            let result = serving.contained(action).await;
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

    /// Records how a session was opened, and opens it.
    pub(crate) async fn open_session(
        &self,
        id: SessionId,
        veil: Veil,
        seat: Seat,
        warrant: Warrant,
        (spec, budget): (SessionSpec, Budget),
    ) -> Result<(), NotStarted> {
        let who = self.gate().principal(seat.as_str(), &spec.agent.role, &spec.agent.namespace);
        let who = who.map_err(|error| NotStarted::Ungoverned(error.to_string()))?;
        // From here on they are what it may, and the record says so.
        let spec = SessionSpec { rights: warrant.rights().clone(), ..spec };
        let record = opened(id, &seat, &spec, budget);
        self.log().note(record).await.map_err(|error| NotStarted::Chain(error.to_string()))?;
        self.keep(Session::new(id, seat, spec, who), veil, warrant);
        Ok(())
    }

    /// Keeps an open session. From here on it follows what is recorded of it.
    pub(crate) fn keep(&self, session: Session, veil: Veil, warrant: Warrant) {
        let link = Link { veil: Some(Arc::new(veil)), ..Link::default() };
        let (id, warrant) = (session.id, Mutex::new(Some(warrant)));
        self.sessions().insert(id, Arc::new(Opened { session: Mutex::new(session), link, warrant }));
    }

    /// Has `told` called whenever the group of a session has ended; once and for all.
    pub(crate) fn on_over(&self, told: impl Fn(SessionId) + Send + Sync + 'static) {
        let _kept: Result<(), _> = self.over.set(Box::new(told));
    }

    /// The group of a session has ended.
    pub(crate) fn over(&self, session: SessionId) {
        if let Some(told) = self.over.get() {
            told(session);
        }
    }

    pub(crate) fn close_session(&self, id: SessionId) {
        let opened = self.sessions().remove(&id);
        // Another thread may be looking at it just now, and its seat is free all the same.
        drop(opened.and_then(|opened| ephor_runtime::lock::enter(&opened.warrant).take()));
        self.ongoing.changed();
    }

    /// Whether nothing of a session is left that could still be recorded of it.
    pub(crate) fn is_at_rest(&self, id: SessionId) -> bool {
        !self.sessions().contains_key(&id) && self.ongoing.has_none(id)
    }

    /// Looks at a session, or changes it; `None` if it is not open, or a panic has left it half changed.
    pub(crate) fn with_session<T>(&self, id: SessionId, f: impl FnOnce(&mut Session) -> T) -> Option<T> {
        let opened = self.sessions().get(&id).cloned()?;
        let Ok(mut session) = opened.session.lock() else {
            self.broken.get().into_iter().for_each(|told| told(id));
            return None;
        };
        let gate = self.gate();
        // What was recorded comes first.
        while let Some(recorded) = opened.link.inbox.next() {
            session.take_in(&gate, &recorded.event());
        }
        Some(f(&mut session))
    }

    /// Has `told` called whenever a session is found that a panic has left half changed; once and for all.
    pub(crate) fn on_broken(&self, told: impl Fn(SessionId) + Send + Sync + 'static) {
        let _kept: Result<(), _> = self.broken.set(Box::new(told));
    }

    /// How what is recorded reaches the session.
    pub(crate) fn link(&self, id: SessionId) -> Option<Link> {
        self.sessions().get(&id).map(|opened| opened.link.clone())
    }

    /// Waits until no other caller is sending to the session; its messages are recorded and put into its mailbox one after another.
    pub(crate) async fn sending(&self, session: SessionId) -> Result<OwnedMutexGuard<()>, NotAccepted> {
        let link = self.link(session).ok_or(NotAccepted::NoSession(session))?;
        Ok(link.sending.lock_owned().await)
    }

    /// Labels and records a message; the envelope is what the mailbox gets, once it is durable.
    pub(crate) async fn accept(
        &self,
        session: SessionId,
        sent: Sent,
        parts: Vec<Part>,
    ) -> Result<Envelope, NotAccepted> {
        let Sent { from, because, by, scope, looks } = sent;
        let parts = self.divided(parts).map_err(NotAccepted::Plan)?;
        let seat = self.with_session(session, |session| session.seat.clone()).ok_or(NotAccepted::NoSession(session))?;
        let reserved = self.ledger.reserve(&seat, MESSAGE);
        let reserved = reserved.map_err(|spent| NotAccepted::BudgetSpent(spent, seat.clone()))?;
        let id = MessageId(self.next_message.fetch_add(1, Ordering::Relaxed));
        let tools = scope.as_ref().map(|pins| pins.iter().map(|pin| pin.tool.clone()).collect::<Vec<_>>());
        let said = |spans, offset| {
            let (because, scope) = (because.clone(), tools.clone());
            Fact::Message { id, spans, from, because, owed: true, scope, offset }
        };
        let fires = matches!(because, Some(Because::Fire { .. }));
        let content = accepting::said_in(parts, scope, looks);
        let accepted = self.record_message(session, seat, (by, fires), said, content).await;
        reserved.settle(if accepted.is_ok() { MESSAGE } else { Budget::ZERO });
        let (receipt, operator, accepted, spans) = accepted?;
        Ok(Envelope { id, session, operator, accepted, seq: receipt.seq, spans })
    }

    /// Records a message whose parts become the next spans of its session. What fires by itself is sent while the operator it is
    /// sent for may send, and not behind their dismissal on the record.
    async fn record_message(
        &self,
        session: SessionId,
        seat: Seat,
        (by, fires): (Option<OperatorId>, bool),
        said: impl Fn(Vec<SpanId>, Option<Offset>) -> Fact,
        content: Content,
    ) -> Result<(Receipt, OperatorId, Timestamp, Vec<SpanId>), NotAccepted> {
        let link = self.link(session).ok_or(NotAccepted::NoSession(session))?;
        let count = content.parts().map_or(0, <[Part]>::len);
        loop {
            let place = self.with_session(session, |session| {
                let zone = session.spec.agent.zone.clone();
                (session.next_spans(count), session.taken_in, session.spec.operator, zone)
            });
            let (spans, at, operator, zone) = place.ok_or(NotAccepted::NoSession(session))?;
            let (who, seat) = (by.or(Some(operator)), Some(seat.clone()));
            let among = fires.then(|| Among::now(&self.law));
            if fires && who.and_then(|who| self.role(who)) < Some(Role::Operator) {
                return Err(NotAccepted::Again("whoever it is sent for may not send any more"));
            }
            let subject = Subject { session: Some(session), operator: who, seat, ..Subject::default() };
            let accepted = self.clock().now();
            let offset = zone.and_then(|zone| self.clock().offset(&zone, accepted));
            let record = Record { subject, fact: said(spans.clone(), offset), content: Some(content.clone()) };
            match link.log_among(self.log(), Some(at), among).append(record).await {
                Ok(receipt) => return Ok((receipt, operator, accepted, spans)),
                Err(AppendError::Overtaken) => {}
                Err(AppendError::Misplaced(why)) => return Err(NotAccepted::Again(why)),
                Err(error) => {
                    // What is not known to be on the record was not said, and is trusted for nothing.
                    if matches!(error, AppendError::Failed(_)) {
                        self.with_session(session, |session| session.withdraw(&spans));
                    }
                    return Err(NotAccepted::Chain(error.to_string()));
                }
            }
        }
    }

    /// Begins the turn that answers `envelope`.
    pub(crate) fn begin_turn(&self, envelope: &Envelope) {
        let started = self.clock().monotonic();
        self.with_session(envelope.session, |session| session.begin_turn(envelope, started));
    }

    /// Cancels the turn of a session: calls in flight end, and only the reply may still begin.
    pub(crate) fn cancel_turn(&self, session: SessionId) -> bool {
        let turn = self.with_session(session, |session| session.turn.as_ref().map(|turn| turn.cancel.clone()));
        turn.flatten().is_some_and(|cancel| {
            cancel.cancel();
            true
        })
    }

    /// Takes an operator's ruling: on an open ticket, or on tools for a session. It counts once it is on the disk. Says how many
    /// more have to permit it.
    pub(crate) async fn rule(self: &Arc<Self>, ruling: SignedRuling) -> Result<u32, BadRuling> {
        // Who counts, the record says at this moment.
        self.log().standing(|standing| ruling::check(standing.operators(), &ruling))?;
        if ruling.statement.note.as_ref().is_some_and(|note| note.len() > MAX_NOTE) {
            return Err(BadRuling::LongNote);
        }
        match ruling.statement.on {
            RulingOn::Tools(_) => self.rule_on_tools(&ruling).await.map(|()| 0),
            RulingOn::Ticket(id) => {
                // A task of its own: a caller that leaves meanwhile leaves no ticket open that the record has closed.
                let door = self.clone();
                let ruled = tokio::spawn(async move { door.rule_on_ticket(id, &ruling).await });
                ruled.await.unwrap_or_else(|error| Err(BadRuling::Chain(error.to_string())))
            }
        }
    }

    /// Records an answer, and closes the ticket if that settles it.
    async fn rule_on_ticket(&self, id: TicketId, ruling: &SignedRuling) -> Result<u32, BadRuling> {
        let claim = self.tickets.claim(id).await.ok_or(BadRuling::NotOpen(id))?;
        claim.check(&ruling.statement, self.instant())?;
        // What was asked under an older law is not answered under this one.
        if !self.law.is(ruling.statement.policy) {
            return Err(BadRuling::OtherCall);
        }
        let (session, needed) = (claim.question.session, claim.question.quorum);
        let link = self.link(session).ok_or(BadRuling::NotOpen(id))?;
        let same = self.reusable(&claim, &ruling.statement)?;
        let receipt = self.record_ruling(asked_by(&claim.question), ruling, same, &link).await?;
        let (approvers, law) = (self.approvers(), self.gate().digest());
        let tally = self.with_session(session, |session| session.tally(id, law, &approvers)).unwrap_or_default();
        let missing = needed.saturating_sub(tally.permits);
        let ruled = match (tally.is_refused, missing) {
            (true, _) => Ruled::Refuse,
            (false, 0) => Ruled::Permit,
            (false, missing) => return Ok(missing),
        };
        claim.answered(Answer { ruled, ruling: Some(receipt.seq) });
        Ok(0)
    }

    /// What an answer to a ticket is used again for, if it is to be.
    fn reusable(&self, claim: &Claim<'_>, said: &Statement) -> Result<Option<Called>, BadRuling> {
        let Some(always) = &said.always else { return Ok(None) };
        let gate = self.gate();
        let tool = gate.registry().tool(&claim.question.tool).ok_or(BadRuling::OtherCall)?;
        let asked = (&claim.question, &claim.called);
        precedents::pattern(asked, tool, (said.decision, always), self.log().time()).map(Some)
    }

    /// Records that no person answered a ticket, and closes it; nothing, if one did.
    pub(crate) async fn unanswered(&self, id: TicketId, ruled: Ruled) -> Result<Option<Answer>, AppendError> {
        let Some(claim) = self.tickets.claim(id).await else { return Ok(None) };
        let (subject, policy) = (asked_by(&claim.question), claim.question.verdict.policy);
        let seq = self.note_unanswered(id, policy, subject, how(ruled)).await?;
        let answer = Answer { ruled, ruling: Some(seq) };
        claim.answered(answer);
        Ok(Some(answer))
    }

    /// Records that no person answered a ticket that was asked under the law `policy`, and how that came.
    pub(crate) async fn note_unanswered(
        &self,
        id: TicketId,
        policy: Digest,
        subject: Subject,
        how: &str,
    ) -> Result<Seq, AppendError> {
        let (on, decision, signature) = (RulingOn::Ticket(id), Decision::Deny, Vec::new());
        let (policy, note, always) = (Some(policy), None, None);
        let fact = Fact::Ruling { on, decision, signature, how: how.to_owned(), policy, note, always };
        let link = subject.session.and_then(|session| self.link(session)).unwrap_or_default();
        link.log(self.log(), None).append(Record { subject, fact, content: None }).await.map(|receipt| receipt.seq)
    }

    /// Both clocks.
    pub(crate) fn instant(&self) -> Instant {
        Instant { wall: self.clock().now(), monotonic: self.clock().monotonic() }
    }

    async fn rule_on_tools(&self, ruling: &SignedRuling) -> Result<(), BadRuling> {
        let said = &ruling.statement;
        let binds = said.decision == Decision::Permit
            && said.arguments == Digest::of(&[])
            && said.policy == self.gate().digest()
            && said.call.is_none()
            && said.registration.is_none()
            && said.shown.is_none()
            && said.always.is_none();
        if !binds {
            return Err(BadRuling::OtherCall);
        }
        let seat = self.with_session(said.session, |session| session.seat.clone());
        let seat = seat.ok_or(BadRuling::NoSession(said.session))?;
        let subject = Subject { session: Some(said.session), seat: Some(seat), ..Subject::default() };
        let link = self.link(said.session).ok_or(BadRuling::NoSession(said.session))?;
        self.record_ruling(subject, ruling, None, &link).await.map(drop)
    }

    /// Records what a person said; `same` is what it is to be used again for.
    async fn record_ruling(
        &self,
        subject: Subject,
        ruling: &SignedRuling,
        same: Option<Called>,
        link: &Link,
    ) -> Result<Receipt, BadRuling> {
        let said = &ruling.statement;
        let fact = Fact::Ruling {
            on: said.on.clone(),
            decision: said.decision,
            signature: ruling.signature.clone(),
            how: "answered".into(),
            policy: Some(said.policy),
            note: said.note.clone(),
            always: said.always.clone().map(Box::new),
        };
        let subject = Subject { operator: Some(ruling.operator), ..subject };
        let record = Record { subject, fact, content: same.clone().map(Called::content) };
        let recorded = link.log(self.log(), None).append(record.clone()).await;
        let receipt = recorded.map_err(|error| BadRuling::Chain(error.to_string()))?;
        if let (Some(reused), Some(same)) = (Reused::of(receipt.seq, &record.subject, &record.fact), same) {
            self.precedents.add(&reused, same, said.note.clone());
        }
        Ok(receipt)
    }

    fn fresh_call(&self) -> CallId {
        CallId(self.next_call.fetch_add(1, Ordering::Relaxed))
    }

    fn fresh_ticket(&self) -> TicketId {
        TicketId(self.next_ticket.fetch_add(1, Ordering::Relaxed))
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Arc<Opened>>> {
        ephor_runtime::lock::enter(&self.sessions)
    }
}

/// Who asked a question.
fn asked_by(question: &Question) -> Subject {
    let (session, seat, call) = (Some(question.session), Some(question.seat.clone()), Some(question.call));
    Subject { session, seat, call, ..Subject::default() }
}

/// How the record calls what came of a ticket that no person answered.
const fn how(ruled: Ruled) -> &'static str {
    match ruled {
        Ruled::NobodyToAsk => "nobody-to-ask",
        Ruled::Withdrawn => "withdrawn",
        Ruled::Permit | Ruled::Refuse | Ruled::Expired => "expired",
    }
}

/// How a session was opened, for the record.
fn opened(session: SessionId, seat: &Seat, spec: &SessionSpec, budget: Budget) -> Record {
    let SessionSpec { operator, model, workspace, agent, rights, instructions } = spec;
    let fact = appointments::opened(agent, rights);
    let opening = Opening {
        instructions: instructions.clone(),
        provider: model.provider.clone(),
        model: model.name.clone(),
        workspace: workspace.path().to_string_lossy().into_owned(),
        script: Some(model.script.to_string()).filter(|script| !script.is_empty()),
        budget: Some(budget),
    };
    let (operator, seat) = (Some(*operator), Some(seat.clone()));
    let subject = Subject { session: Some(session), operator, seat, ..Subject::default() };
    Record { subject, fact, content: Some(Content::Opening(opening)) }
}
