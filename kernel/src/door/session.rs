//! A session as the door keeps it: its spans with their labels, its answers, its turn.
//!
//! Labels are made here and nowhere else. A session follows from the record, as `history` says; nothing in it is a source
//! of truth.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use ephor_base::{
    Action, ActionKind, Arguments, Budget, CallId, Confidentiality, Digest, EndReason, Envelope, Failure, Integrity,
    Label, Located, Message, MessageId, ModelAnswer, ModelRef, OperatorId, Outcome, Part, PartKind, Product, Prompt,
    PromptMessage, Receipt, Registration, Reply, Seat, Seq, SessionId, Source, Span, SpanId, TicketId, Timestamp,
    ToolAction, ToolName, ToolUse, TurnReport, Verdict, Workspace,
};
use ephor_governance::{Carried, Evidence, Gate, Principal, Rights, Ruled, Scope, SpanTable, TurnState};
use ephor_record::{Appointment, Chosen};
use tokio_util::sync::CancellationToken;

use crate::question::Files;

use super::{
    Landed, Refusal,
    asked::Meant,
    history::{Begun, Read},
    planning::{Aside, Planning, plan_of},
    turn::{Turn, TurnLimits},
};

/// One step of a conversation, in the order it happened. What a restarted agent continues from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The person said something; a turn begins.
    Said(Vec<SpanId>),
    /// The model answered.
    Answered {
        /// The model call.
        call: CallId,
        /// What it answered.
        answer: Arc<ModelAnswer>,
    },
    /// A model request failed.
    ModelFailed {
        /// The model call.
        call: CallId,
        /// How.
        failure: Arc<Failure>,
    },
    /// A tool use came to something: an answer, a failure or a refusal.
    Result {
        /// The model call that chose the tool.
        of: CallId,
        /// Which of its tool uses, from 0.
        index: u32,
        /// What the model is told.
        spans: Vec<SpanId>,
        /// Whether a tool of that name is registered.
        known: bool,
        /// Whether it went well.
        ok: bool,
        /// SHA-256 of what the model is told.
        digest: Digest,
    },
    /// A plan was made for the turn, and the model is shown it.
    Planned(Vec<SpanId>),
    /// The turn ended.
    TurnEnded(EndReason),
}

/// What an agent works with: fixed when its session is opened.
#[derive(Clone, Debug)]
pub struct SessionSpec {
    /// The operator who answers for it.
    pub operator: OperatorId,
    /// The model it asks.
    pub model: ModelRef,
    /// The folder its tools see.
    pub workspace: Workspace,
    /// What its agent is, as the operator's configuration has it.
    pub agent: Appointment,
    /// What it wants to ask of the door. It may, as far as the seats above it may.
    pub rights: Rights,
    /// What every prompt begins with; the operator's words.
    pub instructions: String,
}

pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) seat: Seat,
    pub(crate) spec: SessionSpec,
    pub(crate) evidence: Evidence,
    /// How many of the calls it rests on were refused, and where the last stands that made it alarm.
    pub(crate) bad_calls: u64,
    pub(crate) alarmed: Option<Seq>,
    /// The seat, as the constitution knows it.
    pub(crate) who: Arc<Principal>,
    /// The spans as governance sees them: indexed when they entered, in the order of their numbers.
    pub(crate) table: Arc<SpanTable>,
    /// The plan of the turn, how many were asked for, and what makes calls wait for one plan.
    pub(crate) planning: Planning,
    pub(crate) plans: u64,
    pub(crate) one_plan: Arc<tokio::sync::Mutex<()>>,
    /// What governance knows of the turn.
    pub(crate) conduct: TurnState,
    /// The tools that have run in this session.
    pub(crate) familiar: BTreeSet<ToolName>,
    pub(crate) turn: Option<Turn>,
    /// Once the session is being closed: the messages that will not be answered any more.
    pub(crate) left: Option<Vec<Envelope>>,
    /// Its agent crashed more often than its supervisor bears.
    pub(crate) gave_up: bool,
    pub(crate) standing: Vec<Standing>,
    pub(crate) moments: Vec<Moment>,
    pub(crate) answered: u64,
    /// The calls that were permitted and have no outcome yet.
    pub(crate) calls: BTreeMap<CallId, Begun>,
    /// The calls, by attempt, that were deferred and have no other verdict yet.
    pub(crate) deferred: BTreeMap<(CallId, u32), Deferred>,
    /// The tickets that calls of the turn under way wait on.
    pub(crate) parked: BTreeMap<TicketId, Parked>,
    /// The messages whose turn has not begun, the oldest first.
    pub(crate) waiting: Vec<Envelope>,
    /// What its seat has used in this session.
    pub(crate) used: Budget,
    /// The reply that was permitted last, and what it was given for.
    pub(crate) saying: Option<(String, Vec<Receipt>)>,
    /// How the last turn that ended did.
    pub(crate) last: Option<Reply>,
    /// What came of its tickets.
    pub(crate) rulings: BTreeMap<Seq, (Ruled, Option<Digest>, TicketId)>,
    /// What people answered to its tickets.
    pub(crate) answers_to: BTreeMap<TicketId, Vec<Answered>>,
    /// The messages that wait for an answer, the one of this turn first, and what is pinned for each.
    pub(crate) requests: VecDeque<Request>,
    /// How many events it has taken in.
    pub(crate) taken_in: u64,
    /// The calls that landed last, the oldest first. A view for people: nothing depends on it.
    pub(crate) landed: VecDeque<Landed>,
    /// Why it no longer follows from the record, if it does not.
    pub(crate) lost: Option<String>,
    /// What of people's messages is not their own words.
    pub(crate) asides: BTreeMap<SpanId, Aside>,
    /// The bytes that were kept of what it replaced.
    pub(crate) kept: u64,
    spans: Vec<Span>,
    answers: BTreeMap<CallId, Answer>,
    uses: BTreeMap<(CallId, u32), Use>,
}

/// A message that waits for an answer, and what its operator wants of its turn.
pub(crate) struct Request {
    pub(crate) message: MessageId,
    /// What is pinned for it.
    pub(crate) scope: Option<Scope>,
    /// Whether a person sees the plan before anything acts.
    pub(crate) looks: bool,
    /// What it says, an operator's own plan among it.
    pub(crate) spans: Vec<SpanId>,
}

/// A ruling on tools that holds for the session.
pub(crate) struct Standing {
    pub(crate) tools: Vec<ToolName>,
    pub(crate) ruling: Seq,
    /// The law it was given under, where that is known.
    pub(crate) policy: Option<Digest>,
    /// Who gave it.
    pub(crate) by: Option<OperatorId>,
}

/// What one person answered to a ticket.
pub(crate) struct Answered {
    pub(crate) by: Option<OperatorId>,
    pub(crate) permits: bool,
    pub(crate) note: Option<String>,
    pub(crate) policy: Option<Digest>,
}

impl Standing {
    /// Whether it speaks of a tool, under the law of this digest.
    pub(crate) fn covers(&self, tool: &ToolName, policy: Digest) -> bool {
        self.tools.contains(tool) && self.policy.is_none_or(|own| own == policy)
    }
}

/// A call that was deferred.
#[derive(Clone)]
pub(crate) struct Deferred {
    pub(crate) chosen: Option<Chosen>,
    /// The files that it names.
    pub(crate) files: Vec<Located>,
    pub(crate) verdict: Verdict,
}

/// A ticket, and the attempt that waits on it.
#[derive(Clone)]
pub(crate) struct Parked {
    pub(crate) ticket: TicketId,
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
    pub(crate) chosen: Option<Chosen>,
    /// The files that it names.
    pub(crate) files: Vec<Located>,
    pub(crate) arguments: Digest,
    pub(crate) policy: Digest,
    pub(crate) registration: Option<Digest>,
    pub(crate) expires: Timestamp,
    pub(crate) verdict: Verdict,
    /// How many different people have to permit it.
    pub(crate) quorum: u32,
    /// The last ruling on it, if there is one.
    pub(crate) last: Option<(Ruled, Seq)>,
}

struct Answer {
    answer: Arc<ModelAnswer>,
    span: SpanId,
    shown: Confidentiality,
}

/// The call made for a tool use, kept over restarts of the process.
struct Use {
    call: CallId,
    attempts: u32,
    done: bool,
    /// While an attempt is under way: cancelled when it is over.
    running: Option<CancellationToken>,
}

/// The most bytes of all that a prompt shows: more than any model takes, and what one message may have.
const PROMPT_BYTES: usize = 16 << 20;
/// The most messages of a prompt.
const PROMPT_MESSAGES: usize = 1 << 16;

/// A prompt with every reference resolved.
pub(crate) struct Shown {
    pub(crate) messages: Vec<Message>,
    pub(crate) spans: Vec<SpanId>,
    pub(crate) confidentiality: Confidentiality,
}

impl Shown {
    pub(crate) const fn nothing() -> Self {
        Self { messages: Vec::new(), spans: Vec::new(), confidentiality: Confidentiality::Public }
    }
}

impl Session {
    pub(crate) fn new(id: SessionId, seat: Seat, spec: SessionSpec, who: Principal) -> Self {
        let mut session = Self {
            id,
            seat,
            evidence: Evidence::under(spec.agent.p0),
            spec,
            bad_calls: 0,
            alarmed: None,
            who: Arc::new(who),
            table: Arc::default(),
            planning: Planning::Unasked,
            plans: 0,
            one_plan: Arc::default(),
            conduct: TurnState::default(),
            familiar: BTreeSet::new(),
            turn: None,
            left: None,
            gave_up: false,
            standing: Vec::new(),
            moments: Vec::new(),
            answered: 0,
            calls: BTreeMap::new(),
            deferred: BTreeMap::new(),
            parked: BTreeMap::new(),
            waiting: Vec::new(),
            used: Budget::ZERO,
            saying: None,
            last: None,
            rulings: BTreeMap::new(),
            answers_to: BTreeMap::new(),
            requests: VecDeque::new(),
            taken_in: 0,
            landed: VecDeque::new(),
            lost: None,
            asides: BTreeMap::new(),
            kept: 0,
            spans: Vec::new(),
            answers: BTreeMap::new(),
            uses: BTreeMap::new(),
        };
        let instructions = session.spec.instructions.clone();
        session.enter(Label::new(Source::Operator, Integrity::Trusted, Confidentiality::Public), instructions);
        session
    }

    /// The span of the instructions.
    pub(crate) const INSTRUCTIONS: SpanId = SpanId(0);

    pub(crate) fn enter(&mut self, label: Label, text: String) -> SpanId {
        Arc::make_mut(&mut self.table).enter(label, &text);
        self.keep(label, text)
    }

    /// A span that governance has taken in.
    fn keep(&mut self, label: Label, text: String) -> SpanId {
        let id = SpanId(self.spans.len() as u64);
        // What a model wrote is what it made of the rest; what others wrote may lead it astray.
        let foreign = !matches!(label.source, Source::Model | Source::Kernel);
        if label.integrity == Integrity::Untrusted && foreign && !text.is_empty() {
            self.conduct.taint();
        }
        self.spans.push(Span { id, label, text });
        id
    }

    /// A turn begins: what tools answered before is no source of it.
    pub(crate) fn begin_sources(&mut self) {
        Arc::make_mut(&mut self.table).begin_turn();
    }

    /// Labels the parts of a message.
    pub(crate) fn enter_parts(&mut self, gate: &Gate, from: Option<SessionId>, parts: &[Part]) -> Vec<SpanId> {
        let label = |kind| match (from, kind) {
            // Whatever the parts say of themselves, no person has typed them here, and what that session was shown is not known here.
            (Some(_), _) => Label::new(Source::Peer, Integrity::Untrusted, Confidentiality::Confidential),
            (None, PartKind::Typed | PartKind::Vouched | PartKind::Plan) => {
                Label::new(Source::User, Integrity::Trusted, Confidentiality::Internal)
            }
            (None, PartKind::Errand) => Label::new(Source::Operator, Integrity::Trusted, Confidentiality::Internal),
            (None, PartKind::Piped | PartKind::Pasted) => {
                Label::new(Source::User, Integrity::Untrusted, Confidentiality::Internal)
            }
        };
        let mut enter = |part: &Part| {
            let span = self.enter(label(part.kind), part.text.clone());
            let aside = match part.kind {
                PartKind::Pasted if from.is_none() => Aside::Pasted,
                PartKind::Errand if from.is_none() => Aside::Errand,
                PartKind::Plan if from.is_none() => Aside::Plan(plan_of(gate, &part.text).ok().map(Arc::new)),
                _ => return span,
            };
            self.asides.insert(span, aside);
            span
        };
        parts.iter().map(&mut enter).collect()
    }

    /// The numbers of the next spans.
    pub(crate) fn next_spans(&self, count: usize) -> Vec<SpanId> {
        (self.spans.len() as u64..).take(count).map(SpanId).collect()
    }

    /// All spans, as they were labelled.
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Takes back spans whose message was not recorded. Their numbers stay used.
    pub(crate) fn withdraw(&mut self, ids: &[SpanId]) {
        for span in self.spans.iter_mut().filter(|span| ids.contains(&span.id)) {
            span.text = String::new();
            span.label.integrity = Integrity::Untrusted;
            if let Ok(number) = usize::try_from(span.id.0) {
                Arc::make_mut(&mut self.table).withdraw(number);
            }
        }
    }

    fn span(&self, id: SpanId) -> Result<&Span, Refusal> {
        let at = usize::try_from(id.0).ok();
        at.and_then(|at| self.spans.get(at)).ok_or_else(|| Refusal::UnknownReference(format!("span {id}")))
    }

    fn answer(&self, call: CallId) -> Result<&Answer, Refusal> {
        self.answers.get(&call).ok_or_else(|| Refusal::UnknownReference(format!("the answer of call {call}")))
    }

    /// The tool use number `index` of `call`, and what its model had been shown.
    pub(crate) fn tool_use(&self, call: CallId, index: u32) -> Result<(&ToolUse, Confidentiality), Refusal> {
        let answer = self.answer(call)?;
        let at = usize::try_from(index).ok();
        let found = at.and_then(|at| answer.answer.tool_uses.get(at));
        let found = found.ok_or_else(|| Refusal::UnknownReference(format!("tool use {index} of call {call}")))?;
        Ok((found, answer.shown))
    }

    /// The span of what a model answered.
    pub(crate) fn answer_span(&self, call: CallId) -> Option<&Span> {
        self.answers.get(&call).and_then(|answer| self.span(answer.span).ok())
    }

    /// The lowest integrity of what these spans say.
    pub(crate) fn integrity_of(&self, spans: &[SpanId]) -> Integrity {
        // A model may say nothing and call a tool all the same: its words are there then, in what it calls.
        let says = |span: &&Span| !span.text.is_empty() || span.label.source == Source::Model;
        let said = spans.iter().filter_map(|id| self.span(*id).ok()).filter(says);
        said.map(|span| span.label.integrity).min().unwrap_or(Integrity::Trusted)
    }

    /// Whether what chose a call was shown anything untrusted: the model call that it names, or the guest that it was made within. Of a
    /// call that other code makes, whether anything untrusted is in the session.
    pub(crate) fn is_tainted(&self, chosen: Option<Chosen>, within: Option<CallId>) -> bool {
        match (chosen, within) {
            (Some(Chosen { of, .. }), _) => {
                self.answer_span(of).is_none_or(|span| span.label.integrity == Integrity::Untrusted)
            }
            (None, Some(outer)) => self.read_within(outer) == Integrity::Untrusted,
            (None, None) => self.conduct.is_tainted(),
        }
    }

    /// The text of an answer, and what its model had been shown.
    pub(crate) fn answer_text(&self, call: CallId) -> Result<(String, Confidentiality), Refusal> {
        self.answer(call).map(|answer| (answer.answer.text.clone(), answer.shown))
    }

    /// Resolves a prompt. It is measured first: what is named twice, or is too much, is not copied.
    pub(crate) fn show(&self, prompt: &Prompt) -> Result<Shown, Refusal> {
        self.measure(prompt)?;
        let (mut shown, mut answers) = (Shown::nothing(), BTreeSet::new());
        for message in &prompt.messages {
            let message = match message {
                PromptMessage::System(spans) => Message::System(self.instructions(spans, &mut shown)?),
                PromptMessage::User(spans) => Message::User(self.take(spans, &mut shown)?),
                PromptMessage::Answer(call) => {
                    answers.insert(*call);
                    self.assistant(*call, &mut shown)?
                }
                PromptMessage::Result { of, index, spans } => {
                    let (tool_use, level) = self.tool_use(*of, *index)?;
                    // Its id and name are the model's words.
                    shown.confidentiality = shown.confidentiality.max(level);
                    if answers.insert(*of) {
                        shown.spans.push(self.answer(*of)?.span);
                    }
                    let (id, name) = (tool_use.id.clone(), tool_use.name.clone());
                    let failed = !self.went_well(*of, *index);
                    Message::Tool { id, name, failed, spans: self.take(spans, &mut shown)? }
                }
            };
            shown.messages.push(message);
        }
        Ok(shown)
    }

    /// Whether a prompt is one: each span, answer and result at most once, and no more messages and bytes than a prompt has.
    fn measure(&self, prompt: &Prompt) -> Result<(), Refusal> {
        let (mut spans, mut uses, mut bytes) = (BTreeSet::new(), BTreeSet::new(), 0_usize);
        let mut take = |named: &[SpanId], bytes: &mut usize| {
            named.iter().try_for_each(|id| {
                let span = self.span(*id)?;
                *bytes = bytes.saturating_add(span.text.len());
                spans.insert(*id).then_some(()).ok_or(Refusal::Overlong("names a span twice"))
            })
        };
        if prompt.messages.len() > PROMPT_MESSAGES {
            return Err(Refusal::Overlong("has more than 65,536 messages"));
        }
        for message in &prompt.messages {
            match message {
                PromptMessage::System(named) | PromptMessage::User(named) => take(named, &mut bytes)?,
                PromptMessage::Answer(call) => {
                    let Answer { answer, span, .. } = self.answer(*call)?;
                    let told =
                        answer.tool_uses.iter().map(|told| told.id.len() + told.name.len() + told.arguments.len());
                    let state = answer.state.as_ref().map_or(0, String::len);
                    bytes = bytes.saturating_add(told.sum()).saturating_add(state);
                    take(&[*span], &mut bytes)?;
                }
                PromptMessage::Result { of, index, spans } => {
                    let (told, _) = self.tool_use(*of, *index)?;
                    bytes = bytes.saturating_add(told.id.len() + told.name.len());
                    if !uses.insert((*of, *index)) {
                        return Err(Refusal::Overlong("has the result of a tool use twice"));
                    }
                    take(spans, &mut bytes)?;
                }
            }
            if bytes > PROMPT_BYTES {
                return Err(Refusal::Overlong("is longer than 16 MiB"));
            }
        }
        Ok(())
    }

    fn assistant(&self, call: CallId, shown: &mut Shown) -> Result<Message, Refusal> {
        let answer = self.answer(call)?;
        self.take(&[answer.span], shown)?;
        Ok(Message::Assistant(answer.answer.clone()))
    }

    /// Only the operator's words instruct a model; whatever else an agent puts there is refused.
    fn instructions(&self, ids: &[SpanId], shown: &mut Shown) -> Result<Vec<Span>, Refusal> {
        let spans = self.take(ids, shown)?;
        match spans.iter().find(|span| span.label.source != Source::Operator) {
            Some(span) => Err(Refusal::UnknownReference(format!("span {} as instructions", span.id))),
            None => Ok(spans),
        }
    }

    fn take(&self, ids: &[SpanId], shown: &mut Shown) -> Result<Vec<Span>, Refusal> {
        let spans: Vec<Span> = ids.iter().map(|id| self.span(*id).cloned()).collect::<Result<_, _>>()?;
        shown.spans.extend(ids);
        let highest = spans.iter().map(|span| span.label.confidentiality).max();
        shown.confidentiality = shown.confidentiality.max(highest.unwrap_or(Confidentiality::Public));
        Ok(spans)
    }

    fn went_well(&self, call: CallId, at: u32) -> bool {
        self.moments
            .iter()
            .any(|moment| matches!(moment, Moment::Result { of, index, ok: true, .. } if *of == call && *index == at))
    }

    /// Whether one more call of `kind` may be asked for in the turn under way; it counts from here on.
    pub(crate) fn may_ask(&mut self, kind: ActionKind, limits: &TurnLimits, now: Duration) -> Result<(), Refusal> {
        let turn = self.turn.as_mut().ok_or(Refusal::NoTurn)?;
        turn.ask(kind, limits, now).map_err(Refusal::TurnLimit)
    }

    /// Begins the turn that answers `envelope`.
    pub(crate) fn begin_turn(&mut self, envelope: &Envelope, now: Duration) {
        self.waiting.retain(|waiting| waiting.id != envelope.id);
        self.moments.push(Moment::Said(envelope.spans.clone()));
        self.planning = self.given(&envelope.spans);
        self.turn = Some(Turn::of(envelope, now));
    }

    /// The call id and attempt number for a tool use; `fresh` is used if it was never called. A use that has an
    /// outcome is not called again, and one that waits on a ticket goes on waiting.
    pub(crate) fn call_for_use(&mut self, of: CallId, index: u32, fresh: CallId) -> Result<(CallId, u32), Refusal> {
        let chosen = Some(Chosen { of, index });
        let parked = self.parked.values().find(|parked| parked.chosen == chosen).map(|parked| parked.attempt);
        let entry =
            self.uses.entry((of, index)).or_insert(Use { call: fresh, attempts: 0, done: false, running: None });
        if entry.done {
            return Err(Refusal::Repeated(entry.call));
        }
        let attempt = parked.unwrap_or_else(|| entry.attempts.saturating_add(1));
        entry.attempts = entry.attempts.max(attempt);
        entry.running = Some(CancellationToken::new());
        Ok((entry.call, attempt))
    }

    /// What a ticket asks about, as a person is told of it: the tool, its arguments with each path as the file has it, and what there is
    /// to know of the files.
    pub(crate) fn meant(&self, gate: &Gate, parked: &Parked) -> Option<(ToolName, Arguments, Files)> {
        let (meant, _) = Meant::of_use(self, gate, parked.chosen?).ok()?;
        meant.told(&parked.files)
    }

    /// The ticket that an attempt waits on.
    pub(crate) fn parked(&self, call: CallId, attempt: u32) -> Option<&Parked> {
        self.parked.values().find(|parked| (parked.call, parked.attempt) == (call, attempt))
    }

    /// An attempt for a tool use stands on the record.
    pub(crate) fn attempted(&mut self, Chosen { of, index }: Chosen, call: CallId, attempt: u32) {
        let entry = self.uses.entry((of, index)).or_insert(Use { call, attempts: 0, done: false, running: None });
        entry.attempts = entry.attempts.max(attempt);
    }

    /// What resolves when the attempt under way for the same tool use is over; none, if there is none.
    pub(crate) fn underway(&self, action: &Action) -> Option<CancellationToken> {
        let Action::Tool(ToolAction::Chosen { by, index }) = action else { return None };
        self.uses.get(&(*by, *index)).and_then(|entry| entry.running.clone())
    }

    /// The attempt for a tool use is over.
    pub(crate) fn over(&mut self, of: CallId, index: u32) {
        if let Some(running) = self.uses.get_mut(&(of, index)).and_then(|entry| entry.running.take()) {
            running.cancel();
        }
    }

    /// A tool use ran, and what came of it cannot be known.
    pub(crate) fn never_again(&mut self, of: CallId, index: u32) {
        if let Some(entry) = self.uses.get_mut(&(of, index)) {
            entry.done = true;
        }
    }

    /// Takes in how a model call ended. A cancelled one leaves no moment: the next incarnation asks again.
    pub(crate) fn model_ended(
        &mut self,
        call: CallId,
        (integrity, shown): (Integrity, Confidentiality),
        outcome: &Outcome,
    ) {
        self.has_answered(outcome);
        match outcome {
            Outcome::Done(Product::Model(answer)) => {
                // What a model writes is worth as little as the least that it was shown.
                let label = Label::new(Source::Model, integrity, shown);
                let span = self.enter(label, answer.text.clone());
                let answer = Arc::new(answer.clone());
                self.answers.insert(call, Answer { answer: answer.clone(), span, shown });
                self.moments.push(Moment::Answered { call, answer });
                self.report(|report| report.cycles = report.cycles.saturating_add(1));
            }
            Outcome::Failed(failure) => self.model_failed(call, failure),
            Outcome::Done(_) | Outcome::Cancelled | Outcome::Indeterminate => {}
        }
    }

    /// Takes in that a model call failed.
    pub(crate) fn model_failed(&mut self, call: CallId, failure: &Failure) {
        self.moments.push(Moment::ModelFailed { call, failure: Arc::new(failure.clone()) });
    }

    /// The failures of model requests since the last that was answered, the latest first.
    pub(crate) fn model_failures(&self) -> impl Iterator<Item = &Failure> {
        self.moments.iter().rev().map_while(|moment| match moment {
            Moment::ModelFailed { failure, .. } => Some(&**failure),
            _ => None,
        })
    }

    /// Counts the answers of the model, failures among them.
    pub(crate) fn has_answered(&mut self, outcome: &Outcome) {
        if matches!(outcome, Outcome::Done(_) | Outcome::Failed(_)) {
            self.answered = self.answered.saturating_add(1);
        }
    }

    /// Takes in how a chosen tool call ended, or why it was refused.
    pub(crate) fn tool_ended(&mut self, of: CallId, index: u32, told: Told) {
        self.never_again(of, index);
        let digest = Digest::of(told.text.as_bytes());
        let span = match told.from {
            Some((registration, carried)) => {
                Arc::make_mut(&mut self.table).enter_result(told.label, &told.text, &registration, carried);
                // What a call was chosen by shows in which answer came: a model that reads it is led by that too.
                let tainted = self.is_tainted(Some(Chosen { of, index }), None);
                let integrity = if tainted { Integrity::Untrusted } else { told.label.integrity };
                self.keep(Label { integrity, ..told.label }, told.text)
            }
            None => self.enter(told.label, told.text),
        };
        let spans = vec![span];
        self.moments.push(Moment::Result { of, index, spans, known: told.known, ok: told.ok, digest });
    }

    /// Changes the figures of the turn under way.
    pub(crate) fn report(&mut self, change: impl FnOnce(&mut TurnReport)) {
        if let Some(turn) = &mut self.turn {
            change(&mut turn.report);
        }
    }

    /// Adds a receipt to the turn under way.
    pub(crate) fn receipt(&mut self, receipt: Receipt) {
        if let Some(turn) = &mut self.turn {
            turn.receipts.push(receipt);
        }
    }

    /// Whether a call of `kind` may still begin. After the person cancelled, only the reply may.
    pub(crate) fn is_cancelled(&self, kind: ActionKind) -> bool {
        kind != ActionKind::Reply && self.turn.as_ref().is_some_and(|turn| turn.cancel.is_cancelled())
    }
}

/// What a model is told of a tool use.
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) label: Label,
    pub(crate) known: bool,
    pub(crate) ok: bool,
    /// The tool whose own words it is, and what its call carried in.
    pub(crate) from: Option<(Box<Registration>, Carried)>,
}

impl Told {
    /// A refusal, in the door's own words and no others.
    pub(crate) fn by_the_door(text: String, known: bool) -> Self {
        let label = Label::new(Source::Kernel, Integrity::Trusted, Confidentiality::Internal);
        Self { text, label, known, ok: false, from: None }
    }

    /// A refusal or failure that quotes what a model wrote or a tool read: trusted as little, and seen by as few.
    pub(crate) fn quoting(text: String, known: bool, level: Confidentiality) -> Self {
        let level = level.max(Confidentiality::Internal);
        let label = Label::new(Source::Kernel, Integrity::Untrusted, level);
        Self { text, label, known, ok: false, from: None }
    }

    /// A tool's own answer, labelled by its registration and by what it was told and has read.
    pub(crate) fn by_the_tool(
        text: String,
        registration: &Registration,
        read: Read,
        carried: Carried,
        ok: bool,
    ) -> Self {
        let integrity = registration.integrity.min(read.integrity);
        let level = registration.confidentiality.max(read.confidentiality);
        let label = Label::new(Source::Tool, integrity, level);
        // What a guest has read elsewhere is not its own to vouch for.
        let own = read.integrity == Integrity::Trusted;
        let from = own.then(|| (Box::new(registration.clone()), carried));
        Self { text, label, known: true, ok, from }
    }
}
