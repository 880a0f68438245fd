//! One call on its way through the door.

use std::{any::Any, future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use ephor_base::{
    Action, ActionKind, Arguments, Budget, CallId, Decision, Exhausted, Failure, FailureKind, Outcome, Product,
    Receipt, Secret, Seq, Task, ToolAction, ToolName, Verdict,
};
use ephor_chain::{
    IntentRecord,
    record::{Content, Fact, Record, RulingOn, Subject},
};
use ephor_governance::{Case, Evidence, Rights, Ruled};
use futures_util::{FutureExt, future};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Answered, CallState, Caller, Door, Permit, Refusal,
    asked::{Asked, What},
    session::{Moment, Told},
};
use crate::{
    driver::{CallContext, Driver, DriverResult, InnerDoor, Later, NoSecret, Preview, PreviewItem},
    ledger::Reservation,
    seen::{Question, Seen},
};

/// How long a cancelled driver may take to end by itself, so that it can say what it used.
const GRACE: Duration = Duration::from_millis(500);
/// How many preview items may wait between a driver and its watcher.
const PREVIEW_DEPTH: usize = 32;

/// A call being served: who asks, and how to stop it.
pub(crate) struct Serving {
    door: Arc<Door>,
    caller: Caller,
    cancel: CancellationToken,
    states: mpsc::Sender<CallState>,
    /// Of a nested call: the rights of the outer tool, and that budget and slot are the outer call's.
    within: Option<Rights>,
}

/// A permitting verdict and what it rests on.
struct Permitted<'a> {
    verdict: Verdict,
    ruling: Option<Seq>,
    reservation: Option<Reservation<'a>>,
}

/// An answer to a deferred action.
#[derive(Clone, Copy)]
struct Answer {
    ruled: Ruled,
    ruling: Option<Seq>,
}

impl Serving {
    pub(super) const fn new(
        door: Arc<Door>,
        caller: Caller,
        cancel: CancellationToken,
        states: mpsc::Sender<CallState>,
    ) -> Self {
        Self { door, caller, cancel, states, within: None }
    }

    /// From action to outcome.
    pub(super) async fn serve(self, action: Action) -> Result<Answered, Refusal> {
        if self.caller.fence.is_cancelled() || self.is_cancelled(action.kind()) {
            return Err(Refusal::Fenced);
        }
        let fresh = self.door.fresh_call();
        let resolve = |session: &mut _| Asked::resolve(session, self.door.gate(), fresh, &action);
        let asked = self.door.with_session(self.caller.session, resolve).ok_or(Refusal::Fenced)??;
        let permitted = self.decide(&asked).await?;
        self.run(&asked, permitted).await
    }

    fn is_cancelled(&self, kind: ActionKind) -> bool {
        self.door.with_session(self.caller.session, |session| session.is_cancelled(kind)).unwrap_or(true)
    }

    /// Asks governance, and if it defers, a person, until there is a permit or a refusal.
    async fn decide(&self, asked: &Asked) -> Result<Permitted<'_>, Refusal> {
        let estimate = self.estimate(asked);
        let mut answer: Option<Answer> = None;
        loop {
            let reservation = self.reserve(estimate);
            let verdict = self.verdict(asked, reservation.as_ref().err().copied(), answer);
            match (verdict.decision, reservation) {
                (Decision::Permit, Ok(reservation)) => {
                    return Ok(Permitted { verdict, ruling: answer.and_then(|answer| answer.ruling), reservation });
                }
                (Decision::Defer, Ok(reservation)) => {
                    release(reservation);
                    answer = Some(self.ask(asked, &verdict).await?);
                }
                (_, Ok(reservation)) => {
                    release(reservation);
                    return Err(self.refuse(asked, verdict, None).await);
                }
                (_, Err(exhausted)) => return Err(self.refuse(asked, verdict, Some(exhausted)).await),
            }
        }
    }

    fn estimate(&self, asked: &Asked) -> Budget {
        let Some(task) = asked.task() else { return Budget::ZERO };
        let own = self.driver(&task).map_or(Budget::ZERO, |driver| driver.estimate(&task));
        let wall_ms = u64::try_from(self.time_limit(&task).as_millis()).unwrap_or(u64::MAX);
        Budget { wall_ms, ..own.plus(&asked.base_budget()) }
    }

    /// Sets the budget aside; a nested call lives on the outer one's.
    fn reserve(&self, amount: Budget) -> Result<Option<Reservation<'_>>, Exhausted> {
        if self.within.is_some() {
            return Ok(None);
        }
        self.door.ledger.reserve(&self.caller.seat, amount).map(Some)
    }

    fn verdict(&self, asked: &Asked, spent: Option<Exhausted>, answer: Option<Answer>) -> Verdict {
        let (rights, evidence) = self.standing();
        let trusted = asked.trusted();
        self.door.gate().decide(&Case {
            ask: asked.ask(&trusted),
            rights: &rights,
            context: asked.context,
            budget: spent.map_or(Ok(()), Err),
            evidence,
            ruled: answer.map(|answer| answer.ruled),
        })
    }

    fn standing(&self) -> (Rights, Evidence) {
        let found =
            self.door.with_session(self.caller.session, |session| (session.spec.rights.clone(), session.evidence));
        let (rights, evidence) = found.unwrap_or_default();
        match &self.within {
            Some(guest) => (rights.intersect(guest), evidence),
            None => (rights, evidence),
        }
    }

    /// What an operator says to a deferred action: by a standing ruling, or now, or not at all.
    async fn ask(&self, asked: &Asked, verdict: &Verdict) -> Result<Answer, Refusal> {
        self.note_verdict(asked, verdict, None).await?;
        let (What::Tool(tool), None) = (&asked.what, &self.within) else {
            return Ok(Answer { ruled: Ruled::Refuse, ruling: None });
        };
        let name = tool.task.name.clone();
        let standing = self.door.with_session(self.caller.session, |session| {
            session.standing.iter().find(|standing| standing.tools.contains(&name)).map(|standing| standing.ruling)
        });
        match standing.flatten() {
            Some(ruling) => Ok(Answer { ruled: Ruled::Permit, ruling: Some(ruling) }),
            None => self.open_ticket(asked, name, verdict).await,
        }
    }

    async fn open_ticket(&self, asked: &Asked, tool: ToolName, verdict: &Verdict) -> Result<Answer, Refusal> {
        let (session, patience) = (self.caller.session, self.door.parts.patience.ticket);
        let expires = self.door.clock().now().plus(patience);
        let (id, answer) = self.door.open_ticket(session, asked.digest, verdict.policy);
        let (target, arguments, policy) = (asked.target.clone(), asked.digest, verdict.policy);
        let fact = Fact::Ticket { id, target, arguments, policy, expires };
        let text = Content::Text(format!("{tool} {}: {}", asked.arguments_text(), verdict.why()));
        let recorded = self.append(self.subject(asked), fact, Some(text)).await;
        if let Err(error) = recorded {
            self.door.tickets.close(id);
            return Err(error);
        }
        if !self.door.watchers().can_answer(session) {
            self.door.tickets.close(id);
            return self.unanswered(asked, id, "nobody-to-ask").await;
        }
        let question = Question {
            ticket: id,
            session,
            call: asked.call,
            tool,
            arguments: asked.arguments_text(),
            digest: asked.digest,
            verdict: verdict.clone(),
            expires,
        };
        let asked_at = self.door.clock().monotonic();
        self.show(Seen::Deferred(Box::new(question))).await;
        let said = tokio::select! {
            said = answer => said.ok(),
            () = tokio::time::sleep(patience) => None,
            () = self.stopped() => None,
        };
        self.door.tickets.close(id);
        let waited = self.door.clock().monotonic().saturating_sub(asked_at);
        self.door.with_session(session, |session| session.turn.as_mut().map(|turn| turn.waited += waited));
        let Some(ruling) = said else { return self.unanswered(asked, id, "expired").await };
        let receipt = self.door.record_ruling(self.subject(asked), &ruling).await.map_err(Refusal::Chain)?;
        let ruled = if ruling.statement.decision == Decision::Permit { Ruled::Permit } else { Ruled::Refuse };
        Ok(Answer { ruled, ruling: Some(receipt.seq) })
    }

    async fn unanswered(&self, asked: &Asked, id: ephor_base::TicketId, how: &str) -> Result<Answer, Refusal> {
        let fact = Fact::Ruling {
            on: RulingOn::Ticket(id),
            decision: Decision::Deny,
            signature: Vec::new(),
            how: how.to_owned(),
        };
        let receipt = self.append(self.subject(asked), fact, None).await?;
        Ok(Answer { ruled: Ruled::Refuse, ruling: Some(receipt.seq) })
    }

    /// Records a refusal and tells the model.
    async fn refuse(&self, asked: &Asked, verdict: Verdict, spent: Option<Exhausted>) -> Refusal {
        let receipt = match self.note_verdict(asked, &verdict, None).await {
            Ok(receipt) => receipt,
            Err(error) => return error,
        };
        let why = asked.fault().unwrap_or_else(|| verdict.why());
        let known = asked.registration().is_some();
        self.door.with_session(self.caller.session, |session| {
            session.receipt(receipt);
            if asked.kind == ActionKind::Tool {
                session.evidence = session.evidence.after(true);
            }
            if let Some((of, index)) = asked.chosen {
                session.tool_ended(of, index, Told::by_the_door(format!("Not done. {why}."), known));
            }
        });
        self.show(Seen::Refused { call: asked.call, target: asked.target.clone(), why }).await;
        match spent {
            Some(exhausted) => Refusal::BudgetSpent { exhausted, receipt },
            None => Refusal::Denied { verdict, receipt },
        }
    }

    /// Records verdict and intent, makes the permit, runs the driver, records the outcome.
    async fn run(&self, asked: &Asked, permitted: Permitted<'_>) -> Result<Answered, Refusal> {
        let Permitted { verdict, ruling, reservation } = permitted;
        let reserved = reservation.as_ref().map_or(Budget::ZERO, Reservation::amount);
        let Some(task) = asked.task() else { return Err(Refusal::Fenced) };
        let (Some(driver), limit) = (self.driver(&task), self.time_limit(&task)) else {
            return Err(Refusal::UnknownReference(format!("a driver for {}", asked.target)));
        };
        let shows = self.may_show(asked).await?;
        let Some(intent) = self.intent(asked, reserved) else {
            release(reservation);
            return Err(Refusal::Fenced);
        };
        let record = self.verdict_record(asked, &verdict, ruling);
        let durable = match self.door.log().intend(record, intent).await {
            Ok(durable) => durable,
            Err(error) => {
                release(reservation);
                return Err(Refusal::Chain(error.to_string()));
            }
        };
        let intent = durable.receipt().seq;
        let Some(permit) = Permit::make(&verdict, durable, task, limit) else { return Err(Refusal::Fenced) };
        self.started(asked, intent).await;
        let begun = self.door.clock().monotonic();
        let (outcome, used) = self.drive(&*driver, permit, asked, limit, reserved, shows).await;
        let took = self.door.clock().monotonic().saturating_sub(begun);
        let used =
            Budget { wall_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX), ..used.plus(&asked.base_budget()) };
        if let Some(reservation) = reservation {
            reservation.settle(used);
        }
        self.ended(asked, intent, outcome, used).await
    }

    /// A model's words are shown while they come only if the person may see them: the reply sink is weighed first.
    async fn may_show(&self, asked: &Asked) -> Result<bool, Refusal> {
        if asked.kind != ActionKind::Model {
            return Ok(true);
        }
        let (rights, evidence) = self.standing();
        let verdict = self.door.gate().decide(&Case {
            ask: ephor_governance::Ask::Reply,
            rights: &rights,
            context: asked.context,
            budget: Ok(()),
            evidence,
            ruled: None,
        });
        let fact = Fact::Verdict {
            action: ActionKind::Reply,
            target: "preview".into(),
            attempt: asked.attempt,
            arguments: asked.digest,
            verdict: verdict.clone(),
            ruling: None,
        };
        self.note(self.subject(asked), fact, None).await?;
        Ok(verdict.decision == Decision::Permit)
    }

    async fn started(&self, asked: &Asked, intent: Seq) {
        self.door.with_session(self.caller.session, |session| {
            session.report(|report| match asked.kind {
                ActionKind::Model => report.requests += 1,
                ActionKind::Tool => report.tool_calls += 1,
                ActionKind::Reply => {}
            });
        });
        // A caller that left need not know.
        let _left: Result<(), _> = self.states.try_send(CallState::Started);
        self.show(Seen::Started {
            call: asked.call,
            action: asked.kind,
            target: asked.target.clone(),
            arguments: asked.arguments_text(),
            intent,
        })
        .await;
    }

    /// Runs the driver to its end, its deadline or its cancellation, whichever is first.
    async fn drive(
        &self,
        driver: &dyn Driver,
        permit: Permit,
        asked: &Asked,
        limit: Duration,
        reserved: Budget,
        shows: bool,
    ) -> (Outcome, Budget) {
        let (preview, items) = Preview::channel(PREVIEW_DEPTH);
        let context = CallContext { preview, cancel: self.cancel.child_token(), inner: Arc::new(self.inner(asked)) };
        let work = AssertUnwindSafe(async move { driver.run(permit, context).into_inner().await }).catch_unwind();
        let watched = async {
            tokio::select! {
                end = self.until_cancelled(work, reserved) => end,
                () = tokio::time::sleep(limit) => (Outcome::Failed(overdue(limit)), reserved),
            }
        };
        let (end, ()) = future::join(watched, self.forward(items, asked.call, shows)).await;
        end
    }

    async fn until_cancelled(
        &self,
        work: impl Future<Output = Result<DriverResult, Box<dyn Any + Send>>>,
        reserved: Budget,
    ) -> (Outcome, Budget) {
        if self.cancel.is_cancelled() || self.caller.fence.is_cancelled() {
            return (Outcome::Cancelled, Budget::ZERO);
        }
        let mut work = Box::pin(work);
        tokio::select! {
            end = &mut work => return outcome_of(end, reserved),
            () = self.stopped() => {}
        }
        // What it used is known only if it ends by itself.
        match tokio::time::timeout(GRACE, work).await {
            Ok(Ok(DriverResult { end: Ok(product), used })) => (Outcome::Done(product), used),
            Ok(Ok(DriverResult { end: Err(_), used })) => (Outcome::Cancelled, used),
            Ok(Err(_)) | Err(_) => (Outcome::Cancelled, reserved),
        }
    }

    /// Shows the driver's work until it has no more to show.
    async fn forward(&self, mut items: mpsc::Receiver<PreviewItem>, call: CallId, shows: bool) {
        let mut streaming = false;
        while let Some(item) = items.recv().await {
            if !streaming {
                streaming = true;
                let _left: Result<(), _> = self.states.try_send(CallState::Streaming);
            }
            let seen = match item {
                PreviewItem::Text(text) => Seen::Text { call, text },
                PreviewItem::ToolUse(_) => continue,
                PreviewItem::Progress(text) => Seen::Progress { call, text },
            };
            if shows {
                self.show(seen).await;
            }
        }
    }

    /// Records the outcome and takes it into the session.
    async fn ended(&self, asked: &Asked, intent: Seq, outcome: Outcome, used: Budget) -> Result<Answered, Refusal> {
        let fact = Fact::Outcome { intent, end: outcome.code().to_owned(), used };
        let record = Record { subject: self.subject(asked), fact, content: Some(Content::Outcome(outcome.clone())) };
        let receipt =
            self.door.log().settle(intent, record).await.map_err(|error| Refusal::Chain(error.to_string()))?;
        self.take_in(asked, &outcome, receipt);
        let turn_ended = if asked.kind == ActionKind::Reply { self.end_turn(asked).await? } else { None };
        if turn_ended.is_none() {
            // Whoever is shown where an outcome stands may rely on it.
            self.door.log().flush().await.map_err(|error| Refusal::Chain(error.to_string()))?;
        }
        self.show(Seen::Ended {
            call: asked.call,
            action: asked.kind,
            target: asked.target.clone(),
            end: outcome.code().to_owned(),
            text: shown_text(&outcome),
            outcome: receipt.seq,
        })
        .await;
        if let Some(turn_ended) = turn_ended {
            self.show(turn_ended).await;
        }
        Ok(Answered { call: asked.call, outcome, receipt })
    }

    /// Records the end of the turn, waits until it is durable, and says where the chain stands.
    async fn end_turn(&self, asked: &Asked) -> Result<Option<Seen>, Refusal> {
        let What::Reply(task) = &asked.what else { return Ok(None) };
        let turn = self.door.with_session(self.caller.session, |session| {
            session.moments.push(Moment::TurnEnded(task.reply.end));
            session.turn.take()
        });
        let Some(turn) = turn.flatten() else { return Ok(None) };
        let subject = Subject { call: None, ..self.subject(asked) };
        let fact = Fact::TurnEnd { message: turn.message, end: task.reply.end, report: task.reply.report };
        self.append(subject, fact, None).await?;
        let head = self.door.log().head();
        Ok(Some(Seen::TurnEnded { size: head.size, root: head.root }))
    }

    fn take_in(&self, asked: &Asked, outcome: &Outcome, receipt: Receipt) {
        self.door.with_session(self.caller.session, |session| {
            session.receipt(receipt);
            match asked.kind {
                ActionKind::Model => {
                    if let Outcome::Done(Product::Model(answer)) = outcome {
                        session.report(|report| {
                            report.input_tokens += answer.usage.input;
                            report.output_tokens += answer.usage.output;
                        });
                    }
                    session.model_ended(asked.call, asked.context, outcome);
                }
                ActionKind::Tool => {
                    let bad = !matches!(outcome, Outcome::Done(Product::Tool(answer)) if !answer.failed);
                    session.evidence = session.evidence.after(bad && *outcome != Outcome::Cancelled);
                    if let (Some((of, index)), Some(told)) = (asked.chosen, told(asked, outcome)) {
                        session.tool_ended(of, index, told);
                    }
                }
                ActionKind::Reply => {}
            }
        });
    }

    /// Resolves when the caller has died or let go, or the person cancelled the turn.
    async fn stopped(&self) {
        self.cancel.cancelled().await;
    }

    fn driver(&self, task: &Task) -> Option<Arc<dyn Driver>> {
        let drivers = &self.door.parts.drivers;
        match task {
            Task::Model(_) => Some(drivers.model.clone()),
            Task::Reply(_) => Some(drivers.reply.clone()),
            Task::Tool(tool) => drivers.tools.get(&tool.name).cloned(),
        }
    }

    fn time_limit(&self, task: &Task) -> Duration {
        let patience = &self.door.parts.patience;
        match task {
            Task::Model(_) => patience.model,
            Task::Reply(_) => patience.reply,
            Task::Tool(tool) => patience.tool.min(tool.limits.deadline()),
        }
    }

    fn inner(&self, asked: &Asked) -> Inner {
        Inner {
            door: self.door.clone(),
            caller: self.caller.clone(),
            cancel: self.cancel.clone(),
            states: self.states.clone(),
            subject: self.subject(asked),
            rights: Rights::of(asked.registration().into_iter().flat_map(|tool| tool.nested.iter().copied())),
        }
    }

    fn subject(&self, asked: &Asked) -> Subject {
        let operator = self.door.with_session(self.caller.session, |session| session.spec.operator);
        Subject {
            session: Some(self.caller.session),
            operator,
            seat: Some(self.caller.seat.clone()),
            pid: Some(self.caller.pid),
            call: Some(asked.call),
        }
    }

    fn intent(&self, asked: &Asked, reserved: Budget) -> Option<IntentRecord> {
        let operator = self.door.with_session(self.caller.session, |session| session.spec.operator)?;
        Some(IntentRecord {
            session: self.caller.session,
            operator,
            seat: self.caller.seat.clone(),
            pid: self.caller.pid,
            call: asked.call,
            action: asked.kind,
            attempt: asked.attempt,
            arguments: asked.digest,
            reserved,
        })
    }

    fn verdict_record(&self, asked: &Asked, verdict: &Verdict, ruling: Option<Seq>) -> Record {
        let fact = Fact::Verdict {
            action: asked.kind,
            target: asked.target.clone(),
            attempt: asked.attempt,
            arguments: asked.digest,
            verdict: verdict.clone(),
            ruling,
        };
        Record { subject: self.subject(asked), fact, content: asked.content.clone() }
    }

    async fn note_verdict(&self, asked: &Asked, verdict: &Verdict, ruling: Option<Seq>) -> Result<Receipt, Refusal> {
        let record = self.verdict_record(asked, verdict, ruling);
        self.door.log().note(record).await.map_err(|error| Refusal::Chain(error.to_string()))
    }

    async fn note(&self, subject: Subject, fact: Fact, content: Option<Content>) -> Result<Receipt, Refusal> {
        let record = Record { subject, fact, content };
        self.door.log().note(record).await.map_err(|error| Refusal::Chain(error.to_string()))
    }

    async fn append(&self, subject: Subject, fact: Fact, content: Option<Content>) -> Result<Receipt, Refusal> {
        let record = Record { subject, fact, content };
        self.door.log().append(record).await.map_err(|error| Refusal::Chain(error.to_string()))
    }

    async fn show(&self, seen: Seen) {
        self.door.watchers().show(self.caller.session, seen).await;
    }
}

/// The door as a running call sees it.
struct Inner {
    door: Arc<Door>,
    caller: Caller,
    cancel: CancellationToken,
    states: mpsc::Sender<CallState>,
    subject: Subject,
    rights: Rights,
}

impl InnerDoor for Inner {
    fn nested(&self, name: ToolName, arguments: Arguments) -> Later<Result<Outcome, Refusal>> {
        let serving = Serving {
            door: self.door.clone(),
            caller: self.caller.clone(),
            cancel: self.cancel.clone(),
            states: self.states.clone(),
            within: Some(self.rights.clone()),
        };
        let action = Action::Tool(ToolAction::Direct { name, arguments });
        Later(Box::pin(async move { serving.serve(action).await.map(|answered| answered.outcome) }))
    }

    fn lease(&self, name: &str) -> Later<Result<Secret<String>, NoSecret>> {
        let (door, subject, name) = (self.door.clone(), self.subject.clone(), name.to_owned());
        Later(Box::pin(async move {
            let secret = door.parts.secrets.secret(&name).ok_or_else(|| NoSecret(name.clone()))?;
            let record = Record { subject, fact: Fact::Lease { secret: name.clone() }, content: None };
            // What is not on the record did not happen: no record, no secret.
            door.log().append(record).await.map_err(|_| NoSecret(name))?;
            Ok(secret)
        }))
    }
}

fn release(reservation: Option<Reservation<'_>>) {
    if let Some(reservation) = reservation {
        reservation.settle(Budget::ZERO);
    }
}

fn outcome_of(end: Result<DriverResult, Box<dyn Any + Send>>, reserved: Budget) -> (Outcome, Budget) {
    match end {
        Ok(DriverResult { end: Ok(product), used }) => (Outcome::Done(product), used),
        Ok(DriverResult { end: Err(failure), used }) => (Outcome::Failed(failure), used),
        Err(panic) => {
            let message = format!("the driver panicked: {}", crate::process::panic_message(&*panic));
            (Outcome::Failed(Failure::new(FailureKind::Crashed, message)), reserved)
        }
    }
}

fn overdue(limit: Duration) -> Failure {
    Failure::new(FailureKind::Deadline, format!("it took longer than its {} s and was stopped", limit.as_secs()))
}

/// What the model is told of a tool call that ended; nothing of a cancelled one, which is called again.
fn told(asked: &Asked, outcome: &Outcome) -> Option<Told> {
    let registration = asked.registration()?;
    match outcome {
        Outcome::Done(Product::Tool(answer)) => {
            Some(Told::by_the_tool(answer.text.clone(), registration, !answer.failed))
        }
        Outcome::Failed(failure) => Some(Told::by_the_door(format!("The tool failed: {}.", failure.message), true)),
        Outcome::Done(_) | Outcome::Cancelled | Outcome::Indeterminate => None,
    }
}

fn shown_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(Product::Tool(answer)) => answer.text.clone(),
        Outcome::Failed(failure) => failure.message.clone(),
        Outcome::Done(_) | Outcome::Cancelled | Outcome::Indeterminate => String::new(),
    }
}
