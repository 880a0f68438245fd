//! One call on its way through the door.

mod asking;
mod passing;

use std::{any::Any, future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use ephor_base::{
    Action, ActionKind, Budget, CallId, Decision, Digest, EndReason, Exhausted, Failure, FailureKind, OperatorId,
    Outcome, Product, Receipt, Seq, SessionId, Task, Verdict,
};
use ephor_chain::{
    AppendError, HoldKind, IntentRecord, Log,
    record::{Chosen, Content, Fact, Grounds, Record, Subject},
};
use ephor_governance::{Ask, Ruled};
use futures_util::{FutureExt, future};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Answer, Answered, CallState, Caller, Door, Link, Permit, Refusal,
    asked::{Asked, What},
    history::{Heard, Reuse},
    inbox::PREVIEW,
    law::Under,
    nested::Inner,
    ruling::Approvers,
    session::Session,
};
use crate::{
    driver::{CallContext, Driver, DriverResult, Preview},
    ledger::Reservation,
    seen::Seen,
};

/// How long a cancelled driver may take to end by itself, so that it can say what it used.
const GRACE: Duration = Duration::from_millis(500);
/// The same, where an operator stopped it: somebody wants quiet within a tenth of a second.
const STOP_GRACE: Duration = Duration::from_millis(50);
/// How many preview items may wait between a driver and its watcher.
const PREVIEW_DEPTH: usize = 32;

/// A call being served: who asks, and how to stop it.
pub(crate) struct Serving {
    door: Arc<Door>,
    caller: Caller,
    cancel: CancellationToken,
    states: mpsc::Sender<CallState>,
    /// Of a nested call: the call of the guest around it.
    within: Option<CallId>,
    /// Who answers for the session. Kept, so that a call that outlives its session still ends on the record.
    operator: Option<OperatorId>,
    /// How what is recorded reaches the session; the same for one that is over.
    link: Link,
}

/// A verdict, what it was given on, and how far the session was then.
struct Weighed {
    verdict: Verdict,
    grounds: Grounds,
    at: Option<u64>,
    under: Under,
    /// The precedent that permits it, if one does.
    precedent: Option<Seq>,
}

/// A permitting verdict and what it rests on.
struct Permitted {
    weighed: Weighed,
    ruling: Option<Seq>,
    reservation: Reservation,
}

impl Serving {
    pub(super) fn new(
        door: Arc<Door>,
        caller: Caller,
        cancel: CancellationToken,
        states: mpsc::Sender<CallState>,
        within: Option<CallId>,
    ) -> Self {
        let operator = door.with_session(caller.session, |session| session.spec.operator);
        let link = door.link(caller.session).unwrap_or_default();
        Self { door, caller, cancel, states, within, operator, link }
    }

    /// From action to outcome.
    pub(super) async fn serve(self, action: Action) -> Result<Answered, Refusal> {
        let asked = self.resolve(&action).await?;
        let _underway = Underway { door: &self.door, session: self.caller.session, chosen: asked.chosen };
        let mut answer = self.parked(&asked).await?;
        loop {
            let permitted = self.decide(&asked, &mut answer).await?;
            if let Some(answered) = self.run(&asked, permitted).await? {
                return Ok(answered);
            }
        }
    }

    /// Resolves the action, once no other call for the same tool use is under way: what an incarnation began may still
    /// be ending when the next one asks for it again.
    async fn resolve(&self, action: &Action) -> Result<Asked, Refusal> {
        let fresh = self.door.fresh_call();
        loop {
            drop(self.let_go(action.kind()).await?);
            if self.caller.fence.is_cancelled() || self.is_cancelled(action.kind()) {
                return Err(Refusal::Fenced);
            }
            let now = self.door.clock().monotonic();
            let (gate, veil) = (self.door.gate(), self.link.veil.as_deref().ok_or(Refusal::Fenced)?);
            let resolve = |session: &mut Session| match session.underway(action) {
                Some(other) => Err(other),
                None => Ok(Asked::resolve(session, veil, &gate, fresh, now, action).map(|mut asked| {
                    if let Some(within) = self.within {
                        asked.context = asked.context.max(session.read_by(within));
                    }
                    asked
                })),
            };
            match self.door.with_session(self.caller.session, resolve).ok_or(Refusal::Fenced)? {
                Ok(asked) => return asked,
                Err(other) => tokio::select! {
                    () = other.cancelled() => {}
                    () = self.stopped() => return Err(Refusal::Fenced),
                },
            }
        }
    }

    fn is_cancelled(&self, kind: ActionKind) -> bool {
        self.door.with_session(self.caller.session, |session| session.is_cancelled(kind)).unwrap_or(true)
    }

    /// Asks governance, and if it defers, a person, until there is a permit or a refusal.
    async fn decide(&self, asked: &Asked, answer: &mut Option<Answer>) -> Result<Permitted, Refusal> {
        let estimate = self.estimate(asked);
        loop {
            let reservation = self.reserve(asked.kind, estimate);
            let spent = reservation.as_ref().err().copied();
            let weighed = self.weigh(asked, spent, Some(*answer));
            let ruling = answer.and_then(|answer| answer.ruling);
            if weighed.grounds.suspended {
                // It waits, and is weighed when the seat may act again.
                let _none: Option<()> = reservation.ok().map(release);
                drop(self.let_go(asked.kind).await?);
                continue;
            }
            match (weighed.verdict.decision, reservation) {
                (Decision::Permit, Ok(reservation)) => return Ok(Permitted { weighed, ruling, reservation }),
                (Decision::Defer, Ok(reservation)) => {
                    release(reservation);
                    if self.note_verdict(asked, &weighed, ruling).await?.is_some() {
                        // What was ruled before and does not answer this is not asked again.
                        *answer = Some(self.ask(asked, &weighed.verdict, answer.is_none()).await?);
                    }
                }
                (_, reservation) => {
                    let _none: Option<()> = reservation.ok().map(release);
                    if let Some(refusal) = self.refuse(asked, weighed, ruling).await? {
                        return Err(refusal);
                    }
                }
            }
        }
    }

    fn estimate(&self, asked: &Asked) -> Budget {
        let Some(task) = asked.task() else { return Budget::ZERO };
        let own = self.driver(&task).map_or(Budget::ZERO, |driver| driver.estimate(&task));
        let wall_ms = u64::try_from(self.time_limit(&task).as_millis()).unwrap_or(u64::MAX);
        Budget { wall_ms, ..own.plus(&asked.base_budget()) }
    }

    /// Sets the budget aside. A nested call pays for all but its time, which is the outer call's already. A reply needs
    /// nothing set aside: where a budget is spent, it is what says so.
    fn reserve(&self, kind: ActionKind, amount: Budget) -> Result<Reservation, Exhausted> {
        let amount = match (kind, &self.within) {
            (ActionKind::Reply, _) => Budget::ZERO,
            (_, Some(_)) => Budget { wall_ms: 0, ..amount },
            (_, None) => amount,
        };
        self.door.ledger.reserve(&self.caller.seat, amount)
    }

    /// Asks the gate: of the call, with what people have said to it, or without `answer`, whether its words may be shown. Of a session
    /// that is gone nothing is permitted.
    fn weigh(&self, asked: &Asked, spent: Option<Exhausted>, answer: Option<Option<Answer>>) -> Weighed {
        // The decrees are counted first: one that comes meanwhile has this made again.
        let (law, decrees) = (self.door.law.clone(), self.door.law.decrees());
        let gate = law.gate();
        let ask = if answer.is_some() { asked.ask(gate.registry()) } else { Ask::Reply };
        let answer = answer.flatten();
        let approvers = answer.map(|_| self.door.approvers()).unwrap_or_default();
        let reused = || self.reused(answer, &approvers);
        let tool = asked.tool_call().map(|tool| &tool.task.name);
        let position = self.door.with_session(self.caller.session, |session| {
            let heard = heard(session, asked, answer, (gate.digest(), &approvers), reused());
            session.lost.is_none().then(|| (session.position(tool, self.within), heard))
        });
        let position = position.flatten();
        let grounds = Grounds {
            context: asked.context,
            suspended: self.door.holds.on(&self.caller.seat) == Some(HoldKind::Suspended),
            over: position.is_none(),
            chosen: asked.chosen,
            within: self.within,
            spent,
        };
        let at = position.as_ref().map(|(position, _)| position.at);
        let rests_on = position.as_ref().and_then(|(_, heard)| heard.precedent.clone());
        let decided = position.map(|(position, heard)| position.decide(&gate, ask, &grounds, &heard).verdict);
        let verdict = decided.unwrap_or_else(|| gate.gone());
        let (precedent, until) = rests_on.map(|one| (one.ruling, one.until)).unzip();
        let under = Under { law, digest: gate.digest(), decrees, until };
        Weighed { verdict, grounds, at, under, precedent }
    }

    /// Records a refusal and tells the model; nothing, if something was recorded since it was decided.
    async fn refuse(&self, asked: &Asked, weighed: Weighed, ruling: Option<Seq>) -> Result<Option<Refusal>, Refusal> {
        let Some(receipt) = self.note_verdict(asked, &weighed, ruling).await? else { return Ok(None) };
        let Weighed { verdict, grounds, .. } = weighed;
        let why = asked.fault().unwrap_or_else(|| verdict.why());
        self.show(Seen::Refused { call: asked.call, target: asked.target.clone(), why }).await;
        // The person waits for this turn, whatever became of its reply.
        if asked.kind == ActionKind::Reply {
            self.end_turn(asked, EndReason::Refused).await?;
        }
        Ok(Some(match grounds.spent {
            Some(exhausted) => Refusal::BudgetSpent { exhausted, receipt },
            None => Refusal::Denied { verdict, receipt },
        }))
    }

    /// Records verdict and intent, makes the permit, runs the driver, records the outcome. Nothing, if something was
    /// recorded since it was decided.
    async fn run(&self, asked: &Asked, permitted: Permitted) -> Result<Option<Answered>, Refusal> {
        let Permitted { weighed, ruling, reservation } = permitted;
        let reserved = reservation.amount();
        let ready = match self.ready(asked, reserved).await {
            Ok(ready) => self.let_go(asked.kind).await.map(|passage| (ready, passage)),
            Err(refusal) => Err(refusal),
        };
        let ((task, driver, shows, intent), passage) = match ready {
            Ok(ready) => ready,
            Err(refusal) => {
                release(reservation);
                return Err(refusal);
            }
        };
        let limit = self.time_limit(&task);
        // Whoever revokes what it rests on, or dismisses its author, ends it, from here on.
        let _live = weighed.precedent.map(|ruling| self.door.precedents.rest(ruling, self.cancel.clone()));
        let record = self.verdict_record(asked, &weighed, ruling);
        let durable = self.log_under(weighed.at, weighed.under.clone()).intend(record, intent).await;
        // Kept until the intent is on the disk: whoever suspends the seat waits for that.
        drop(passage);
        let durable = match durable {
            Ok(durable) => durable,
            Err(error) => {
                release(reservation);
                if asked.kind == ActionKind::Reply && !matches!(error, AppendError::Overtaken) {
                    // The person waits for this turn, and what ends something is taken when nothing else is.
                    let (call, target, why) = (asked.call, asked.target.clone(), error.to_string());
                    self.show(Seen::Refused { call, target, why }).await;
                    self.end_turn(asked, EndReason::Refused).await?;
                }
                return if_overtaken(error);
            }
        };
        let intent = durable.receipt().seq;
        // Whatever the law said when it was decided: nothing begins under one that is over.
        let Some(permit) = Permit::make(&weighed.verdict, self.door.gate().digest(), durable, task, limit) else {
            release(reservation);
            return self.ended(asked, intent, Outcome::Cancelled, Budget::ZERO).await.map(Some);
        };
        let _flight = self.door.flights.take_off(self.flight(asked, intent));
        self.started(asked, intent).await;
        let begun = self.door.clock().monotonic();
        let inner = Arc::new(self.inner(asked));
        let drive = self.drive(&*driver, permit, inner.clone(), asked, limit, reserved, shows);
        // A driver may panic also while it is dropped.
        let end = AssertUnwindSafe(drive).catch_unwind().await;
        let (outcome, used) = end.unwrap_or_else(|panic| outcome_of(Err(panic), reserved));
        inner.close().await;
        let took = self.door.clock().monotonic().saturating_sub(begun);
        let wall_ms = if self.within.is_some() { 0 } else { u64::try_from(took.as_millis()).unwrap_or(u64::MAX) };
        let used = Budget { wall_ms, ..used.plus(&asked.base_budget()) };
        reservation.settle(used);
        self.ended(asked, intent, outcome, used).await.map(Some)
    }

    /// Everything a permitted call needs before its intent is recorded.
    async fn ready(
        &self,
        asked: &Asked,
        reserved: Budget,
    ) -> Result<(Task, Arc<dyn Driver>, bool, IntentRecord), Refusal> {
        let task = asked.task().ok_or(Refusal::Fenced)?;
        let driver = self.driver(&task);
        let driver = driver.ok_or_else(|| Refusal::UnknownReference(format!("a driver for {}", asked.target)))?;
        let shows = self.may_show(asked).await?;
        let intent = self.intent(asked, reserved).ok_or(Refusal::Fenced)?;
        Ok((task, driver, shows, intent))
    }

    /// A model's words are shown while they come only if the person may see them: the reply sink is weighed first.
    async fn may_show(&self, asked: &Asked) -> Result<bool, Refusal> {
        if asked.kind != ActionKind::Model {
            return Ok(true);
        }
        // What it needs is for the door; nothing of it is a reply.
        if matches!(asked.content, Some(Content::Request(_))) {
            return Ok(false);
        }
        loop {
            let Weighed { verdict, grounds, at, under, .. } = self.weigh(asked, None, None);
            let shows = verdict.decision == Decision::Permit;
            let fact = Fact::Verdict {
                action: ActionKind::Reply,
                target: PREVIEW.into(),
                attempt: asked.attempt,
                arguments: asked.digest,
                verdict,
                ruling: None,
                grounds: Some(grounds),
            };
            let record = Record { subject: self.subject(asked), fact, content: None };
            match self.log_under(at, under).note(record).await {
                Ok(_) => return Ok(shows),
                Err(AppendError::Overtaken) => {}
                Err(error) => return Err(Refusal::Chain(error.to_string())),
            }
        }
    }

    async fn started(&self, asked: &Asked, intent: Seq) {
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

    #[expect(clippy::too_many_arguments, reason = "each is one thing about one run, and it has one caller")]
    /// Runs the driver to its end, its deadline or its cancellation, whichever is first.
    async fn drive(
        &self,
        driver: &dyn Driver,
        permit: Permit,
        inner: Arc<Inner>,
        asked: &Asked,
        limit: Duration,
        reserved: Budget,
        shows: bool,
    ) -> (Outcome, Budget) {
        let (preview, items) = Preview::channel(PREVIEW_DEPTH);
        let context = CallContext { preview, cancel: self.cancel.child_token(), inner };
        let work = AssertUnwindSafe(async move { driver.run(permit, context).into_inner().await }).catch_unwind();
        let over = CancellationToken::new();
        let watched = async {
            let _over = over.clone().drop_guard();
            tokio::select! {
                end = self.until_cancelled(asked.kind, work, reserved) => end,
                () = self.door.timers().sleep(limit) => (Outcome::Failed(overdue(limit)), reserved),
            }
        };
        let (end, ()) = future::join(watched, self.forward(items, &over, asked.call, shows)).await;
        end
    }

    async fn until_cancelled(
        &self,
        kind: ActionKind,
        work: impl Future<Output = Result<DriverResult, Box<dyn Any + Send>>>,
        reserved: Budget,
    ) -> (Outcome, Budget) {
        if self.cancel.is_cancelled() || self.caller.fence.is_cancelled() {
            return (Outcome::Cancelled, Budget::ZERO);
        }
        let mut work = Box::pin(work);
        // A driver that was cancelled may end at once, and call that what it likes: it was cancelled.
        tokio::select! {
            biased;
            () = self.stopped() => {}
            () = self.seat_stopped(kind) => self.cancel.cancel(),
            end = &mut work => return outcome_of(end, reserved),
        }
        // What it used is known only if it ends by itself.
        let stopped = self.door.holds.on(&self.caller.seat) == Some(HoldKind::Stopped);
        match self.door.timers().within(if stopped { STOP_GRACE } else { GRACE }, work).await {
            Some(Ok(DriverResult { end: Ok(product), used })) => (Outcome::Done(product), used),
            Some(Ok(DriverResult { end: Err(_), used })) => (Outcome::Cancelled, used),
            Some(Err(_)) | None => (Outcome::Cancelled, reserved),
        }
    }

    /// Records the outcome and takes it into the session.
    async fn ended(&self, asked: &Asked, intent: Seq, outcome: Outcome, used: Budget) -> Result<Answered, Refusal> {
        let (outcome, receipt) = self.record_outcome(asked, intent, outcome, used).await?;
        self.door.flights.landed(&self.caller.seat, asked, &outcome, receipt);
        let ended = Seen::Ended {
            call: asked.call,
            action: asked.kind,
            target: asked.target.clone(),
            end: outcome.code().to_owned(),
            text: shown_text(&outcome),
            outcome: receipt.seq,
        };
        // Whoever is shown where an outcome stands may rely on it. A log that has failed tells so at the next call.
        if self.door.log().flush().await.is_ok() {
            self.show(ended).await;
        }
        // A reply that was cut off with its process is sent by the next incarnation.
        if let What::Reply(task) = &asked.what
            && outcome != Outcome::Cancelled
        {
            self.end_turn(asked, task.reply.end).await?;
        }
        Ok(Answered { call: asked.call, outcome, receipt })
    }

    /// Records the outcome. One that the log does not take whole, as when the disk is full, is recorded as a failure,
    /// for which there is room. If that fails too, the call ran all the same and is never made again.
    async fn record_outcome(
        &self,
        asked: &Asked,
        intent: Seq,
        outcome: Outcome,
        used: Budget,
    ) -> Result<(Outcome, Receipt), Refusal> {
        let settle = |outcome: &Outcome| {
            let fact = Fact::Outcome { intent, end: outcome.code().to_owned(), used };
            let content = Some(Content::Outcome(outcome.clone()));
            self.log(None).settle(intent, Record { subject: self.subject(asked), fact, content })
        };
        let whole = match settle(&outcome).await {
            Ok(receipt) => return Ok((outcome, receipt)),
            Err(error) => error.to_string(),
        };
        let failure = Failure::new(FailureKind::Output, format!("what it gave could not be recorded: {whole}"));
        let outcome = Outcome::Failed(failure);
        match settle(&outcome).await {
            Ok(receipt) => Ok((outcome, receipt)),
            Err(error) => {
                if let Some(Chosen { of, index }) = asked.chosen {
                    self.door.with_session(self.caller.session, |session| session.never_again(of, index));
                }
                Err(Refusal::Unrecorded(error.to_string()))
            }
        }
    }

    /// Records the end of the turn, waits until it is durable, and shows where the chain stands.
    async fn end_turn(&self, asked: &Asked, end: EndReason) -> Result<(), Refusal> {
        let What::Reply(task) = &asked.what else { return Ok(()) };
        let turn = self.door.with_session(self.caller.session, |session| session.turn.take());
        let Some(turn) = turn.flatten() else { return Ok(()) };
        // Nobody could cancel what went on after its turn.
        turn.cancel.cancel();
        self.withdraw_rest().await?;
        let subject = Subject { call: None, ..self.subject(asked) };
        let fact = Fact::TurnEnd { message: turn.message, end, report: task.reply.report };
        self.append(subject, fact, None).await?;
        self.door.settled.send_modify(|count| *count = count.wrapping_add(1));
        if let Some(spent) = turn.spent {
            self.door.spent(&self.caller, self.operator, spent).await;
        }
        let head = self.door.log().head();
        self.show(Seen::TurnEnded { size: head.size, root: head.root }).await;
        Ok(())
    }

    /// Resolves when the caller has died or let go, or the person cancelled the turn.
    async fn stopped(&self) {
        tokio::select! {
            () = self.cancel.cancelled() => {}
            () = self.caller.fence.cancelled() => {}
        }
    }

    /// Resolves when the seat is stopped, turn or no turn. A reply may still end the turn.
    async fn seat_stopped(&self, kind: ActionKind) {
        let mut changes = self.door.holds.changes();
        while kind == ActionKind::Reply || self.door.holds.on(&self.caller.seat) != Some(HoldKind::Stopped) {
            changes.changed().await;
        }
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
        let cancel = self.cancel.child_token();
        Inner::new(self.door.clone(), self.caller.clone(), cancel, self.states.clone(), self.subject(asked))
    }

    fn subject(&self, asked: &Asked) -> Subject {
        Subject {
            session: Some(self.caller.session),
            operator: self.operator,
            seat: Some(self.caller.seat.clone()),
            pid: Some(self.caller.pid),
            call: Some(asked.call),
        }
    }

    fn intent(&self, asked: &Asked, reserved: Budget) -> Option<IntentRecord> {
        Some(IntentRecord {
            session: self.caller.session,
            operator: self.operator?,
            seat: self.caller.seat.clone(),
            pid: self.caller.pid,
            call: asked.call,
            action: asked.kind,
            attempt: asked.attempt,
            arguments: asked.digest,
            reserved,
        })
    }

    fn verdict_record(&self, asked: &Asked, weighed: &Weighed, ruling: Option<Seq>) -> Record {
        let fact = Fact::Verdict {
            action: asked.kind,
            target: asked.target.clone(),
            attempt: asked.attempt,
            arguments: asked.digest,
            verdict: weighed.verdict.clone(),
            ruling,
            grounds: Some(weighed.grounds),
        };
        Record { subject: self.subject(asked), fact, content: asked.content.clone() }
    }

    /// Records a verdict that lets nothing run; says where, unless something was recorded since it was decided.
    async fn note_verdict(
        &self,
        asked: &Asked,
        weighed: &Weighed,
        ruling: Option<Seq>,
    ) -> Result<Option<Receipt>, Refusal> {
        let record = self.verdict_record(asked, weighed, ruling);
        match self.log_under(weighed.at, weighed.under.clone()).note(record).await {
            Ok(receipt) => Ok(Some(receipt)),
            Err(error) => if_overtaken(error),
        }
    }

    async fn append(&self, subject: Subject, fact: Fact, content: Option<Content>) -> Result<Receipt, Refusal> {
        let record = Record { subject, fact, content };
        self.log(None).append(record).await.map_err(|error| Refusal::Chain(error.to_string()))
    }

    /// The log, as the session follows it. With `at` it takes only what still holds.
    fn log(&self, at: Option<u64>) -> Log {
        self.link.log(self.door.log(), at)
    }

    /// As [`Self::log`], for what was decided under a law: it takes that only while the law is in force.
    fn log_under(&self, at: Option<u64>, under: Under) -> Log {
        self.link.log_under(self.door.log(), at, under)
    }

    async fn show(&self, seen: Seen) {
        self.door.watchers().show(self.caller.session, seen).await;
    }
}

/// What people have said to a call, as the record has it.
fn heard(
    session: &Session,
    asked: &Asked,
    answer: Option<Answer>,
    under: (Digest, &Approvers),
    reused: Reuse,
) -> Heard {
    let Some(Answer { ruled, ruling }) = answer else { return Heard::default() };
    match ruling {
        None => Heard { ruled: Some(ruled), ..Heard::default() },
        Some(_) => session
            .ruled(asked.call, asked.attempt, ruling, under, reused)
            .unwrap_or(Heard { ruled: Some(Ruled::Withdrawn), ..Heard::default() }),
    }
}

fn release(reservation: Reservation) {
    reservation.settle(Budget::ZERO);
}

/// Marks the call for a tool use as over, however it ends.
struct Underway<'a> {
    door: &'a Door,
    session: SessionId,
    chosen: Option<Chosen>,
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if let Some(Chosen { of, index }) = self.chosen {
            self.door.with_session(self.session, |session| session.over(of, index));
        }
    }
}

fn outcome_of(end: Result<DriverResult, Box<dyn Any + Send>>, reserved: Budget) -> (Outcome, Budget) {
    match end {
        Ok(DriverResult { end: Ok(product), used }) => (Outcome::Done(product), used),
        Ok(DriverResult { end: Err(failure), used }) => (Outcome::Failed(failure), used),
        Err(panic) => {
            let message = format!("the driver panicked: {}", crate::runtime::panic_message(&*panic));
            (Outcome::Failed(Failure::new(FailureKind::Crashed, message)), reserved)
        }
    }
}

fn overdue(limit: Duration) -> Failure {
    Failure::new(FailureKind::Deadline, format!("it took longer than its {} s and was stopped", limit.as_secs()))
}

/// What was overtaken is made again; anything else that the log says is a refusal.
fn if_overtaken<T>(error: AppendError) -> Result<Option<T>, Refusal> {
    if matches!(error, AppendError::Overtaken) { Ok(None) } else { Err(Refusal::Chain(error.to_string())) }
}

fn shown_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(Product::Tool(answer)) => answer.text.clone(),
        Outcome::Failed(failure) => failure.message.clone(),
        Outcome::Done(_) | Outcome::Cancelled | Outcome::Indeterminate => String::new(),
    }
}
