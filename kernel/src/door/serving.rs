//! One call on its way through the door.

mod asking;
mod driving;
mod passing;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use ephor_base::{
    Action, ActionKind, Budget, CallId, Confidentiality, Decision, Digest, EndReason, Exhausted, Failure, FailureKind,
    Kept, Leads, Located, ModelAnswer, OperatorId, Outcome, Product, Reach, Receipt, Resource, Seq, SessionId, Task,
    Verdict,
};
use ephor_chain::{AppendError, Durable, Intent, IntentRecord, Log};
use ephor_governance::{Ask, Decided, Ruled};
use ephor_record::{Chosen, Content, Fact, Grounds, HoldKind, Record, Subject};
use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Answer, Answered, CallState, Caller, Door, Link, Permit, Refusal,
    asked::{Asked, What, digest_of},
    history::{Heard, Reuse},
    inbox::PREVIEW,
    law::Under,
    nested::Inner,
    ongoing::UnderWay,
    permit::{For, Until},
    ruling::Approvers,
    session::Session,
};
use crate::{
    driver::{CallContext, Driver, Found, Preview},
    ledger::Reservation,
    seen::Seen,
};
use driving::{Driven, GRACE};

/// What a watcher is shown in place of what it is not cleared for.
const WITHHELD: &str = "not shown: whoever watches is not cleared for it";
/// How long it may take to follow the paths of a call, and to read what it replaces.
const LOOK_AHEAD: Duration = Duration::from_secs(10);
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
    /// How what is recorded reaches the session; the same for a session that is over.
    link: Link,
    /// The session is not come back to before this call has ended.
    _under_way: UnderWay,
}

/// A verdict, what it was given on, and how far the session was then.
struct Weighed {
    verdict: Verdict,
    grounds: Grounds,
    at: Option<u64>,
    under: Under,
    /// The precedent that permits it, if one does.
    precedent: Option<Seq>,
    /// Whether it asks for want of a plan.
    plan_helps: bool,
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
        let _under_way = door.ongoing.begin(caller.session);
        Self { door, caller, cancel, states, within, operator, link, _under_way }
    }

    /// From action to outcome, also where the door itself panics: the caller is told.
    pub(super) async fn contained(self, action: Action) -> Result<Answered, Refusal> {
        let served = AssertUnwindSafe(self.serve(action)).catch_unwind().await;
        served.unwrap_or_else(|panic| {
            tracing::error!(why = ephor_runtime::panic_message(&*panic), "the door's task panicked");
            Err(Refusal::Broken)
        })
    }

    /// From action to outcome.
    async fn serve(self, action: Action) -> Result<Answered, Refusal> {
        let mut asked = self.resolve(&action).await?;
        let _underway = Underway { door: &self.door, session: self.caller.session, chosen: asked.chosen };
        self.locate(&mut asked).await?;
        let mut answer = self.parked(&mut asked).await?;
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
            let limits = &self.door.parts.turn;
            let resolve = |session: &mut Session| match session.underway(action) {
                Some(other) => Err(other),
                None => Ok(session.may_ask(action.kind(), limits, now).and_then(|()| {
                    let mut asked = Asked::resolve(session, veil, &gate, fresh, now, action)?;
                    if let Some(within) = self.within {
                        asked.context = asked.context.max(session.read_by(within));
                    }
                    Ok(asked)
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

    /// Follows the paths of a tool call to the files they name, once, before anything is judged: what is judged, shown, recorded and
    /// opened is that file.
    async fn locate(&self, asked: &mut Asked) -> Result<(), Refusal> {
        let Some(sought) = asked.tool_call().and_then(|tool| tool.sought(self.caller.session)) else { return Ok(()) };
        let Some(driver) = self.driver(&asked.what) else { return Ok(()) };
        let found = tokio::select! {
            found = self.door.timers().within(LOOK_AHEAD, driver.locate(sought.clone()).into_inner()) => found,
            () = self.stopped() => return Err(Refusal::Fenced),
        };
        let why = "the disk did not say in time where this path leads";
        self.settle(asked, found.unwrap_or_else(|| nowhere(&sought.paths, why)))
    }

    /// The paths of the call lead there.
    fn settle(&self, asked: &mut Asked, found: Vec<Found>) -> Result<(), Refusal> {
        asked.locate(self.link.veil.as_deref().ok_or(Refusal::Fenced)?, found);
        Ok(())
    }

    fn is_cancelled(&self, kind: ActionKind) -> bool {
        self.door.with_session(self.caller.session, |session| session.is_cancelled(kind)).unwrap_or(true)
    }

    /// Asks governance, and if it defers, a person, until there is a permit or a refusal.
    async fn decide(&self, asked: &Asked, answer: &mut Option<Answer>) -> Result<Permitted, Refusal> {
        let estimate = self.estimate(asked);
        loop {
            let reservation = estimate.and_then(|estimate| self.reserve(asked.kind, estimate));
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
                    if answer.is_none() && asked.kind == ActionKind::Tool && weighed.plan_helps && self.plan().await? {
                        continue;
                    }
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

    /// Has a plan made, if one could spare a person this question and none was asked for in this turn; whether it did. Calls beside one
    /// another wait for the same plan.
    async fn plan(&self) -> Result<bool, Refusal> {
        let lacks = |session: &mut Session| session.lacks_plan().then(|| session.one_plan.clone());
        let lacks = || self.door.with_session(self.caller.session, lacks).flatten();
        let Some(one) = lacks() else { return Ok(false) };
        let _one = tokio::select! {
            one = one.lock_owned() => one,
            () = self.stopped() => return Err(Refusal::Fenced),
        };
        if lacks().is_none() {
            return Ok(true);
        }
        let (states, _nobody_listens) = mpsc::channel(1);
        let (door, caller, cancel) = (self.door.clone(), self.caller.clone(), self.cancel.child_token());
        match planned(Self::new(door, caller, cancel, states, None)).await {
            Ok(_) => Ok(lacks().is_none()),
            Err(refusal @ (Refusal::Fenced | Refusal::NoTurn | Refusal::Chain(_))) => Err(refusal),
            // Without a plan a person is asked.
            Err(_) => Ok(false),
        }
    }

    /// The most that a run may use, as far as sizes and names tell.
    fn estimate(&self, asked: &Asked) -> Result<Budget, Exhausted> {
        let Some(of) = asked.estimate() else { return Ok(Budget::ZERO) };
        let own = self.driver(&asked.what).map_or(Budget::ZERO, |driver| driver.estimate(&of));
        let limit = self.time_limit(&asked.what).as_millis();
        let uncounted = Exhausted { resource: Resource::WallTime, needed: u64::MAX, left: 0 };
        let wall_ms = u64::try_from(limit).map_err(|_| uncounted)?;
        Ok(Budget { wall_ms, ..own.plus(&asked.base_budget())? })
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
        let is_shown = answer.is_none();
        let ask = if is_shown { Ask::Reply } else { asked.ask(gate.registry()) };
        let answer = answer.flatten();
        let approvers = answer.map(|_| self.door.approvers()).unwrap_or_default();
        let reused = || self.reused(answer, &approvers);
        let tool = asked.tool_call().map(|tool| &tool.task.name).filter(|_| !is_shown);
        let position = self.door.with_session(self.caller.session, |session| {
            let heard = heard(session, asked, answer, (gate.digest(), &approvers), reused());
            session.lost.is_none().then(|| (session.position(asked.call, tool, (asked.chosen, self.within)), heard))
        });
        let position = position.flatten();
        let grounds = Grounds {
            context: if is_shown { asked.level(gate.registry()) } else { asked.context },
            suspended: self.door.holds.on(&self.caller.seat) == Some(HoldKind::Suspended),
            over: position.is_none(),
            chosen: asked.chosen,
            within: self.within,
            spent,
        };
        let at = position.as_ref().map(|(position, _)| position.at);
        let rests_on = position.as_ref().and_then(|(_, heard)| heard.precedent.clone());
        let decided = position.map(|(position, heard)| position.decide(&gate, ask, &grounds, &heard));
        let Decided { verdict, plan_helps, .. } = decided.unwrap_or_else(|| Decided::plain(gate.gone()));
        let (precedent, until) = rests_on.map(|one| (one.ruling, one.until)).unzip();
        let under = Under { law, digest: gate.digest(), decrees, until };
        Weighed { verdict, grounds, at, under, precedent, plan_helps }
    }

    /// Records a refusal and tells the model; nothing, if something was recorded since it was decided.
    async fn refuse(&self, asked: &Asked, weighed: Weighed, ruling: Option<Seq>) -> Result<Option<Refusal>, Refusal> {
        let Some(receipt) = self.note_verdict(asked, &weighed, ruling).await? else { return Ok(None) };
        let Weighed { verdict, grounds, .. } = weighed;
        let why = asked.fault().unwrap_or_else(|| verdict.why());
        let decisive = verdict.reasons.iter().filter(|reason| reason.decision == verdict.decision);
        let reasons = decisive.map(|reason| reason.code.clone()).collect();
        self.show(Seen::Refused { call: asked.call, target: asked.target.clone(), why, reasons });
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
        let ((task, driver, shown, intent), passage) = match ready {
            Ok(ready) => ready,
            Err(refusal) => {
                release(reservation);
                return Err(refusal);
            }
        };
        // An operator who revokes what it rests on, or dismisses its author, ends it, from here on.
        let _live = weighed.precedent.map(|ruling| self.door.precedents.rest(ruling, self.cancel.clone()));
        let record = self.verdict_record(asked, &weighed, ruling);
        let durable = self.log_under(weighed.at, weighed.under.clone()).intend(record, intent).await;
        // Kept until the intent is on the disk: a suspension of the seat waits for that.
        drop(passage);
        let durable = match durable {
            Ok(durable) => durable,
            Err(error) => {
                release(reservation);
                if asked.kind == ActionKind::Reply && !matches!(error, AppendError::Overtaken) {
                    // The person waits for this turn, and what ends something is taken when nothing else is.
                    let (call, target, why) = (asked.call, asked.target.clone(), error.to_string());
                    self.show(Seen::Refused { call, target, why, reasons: Vec::new() });
                    self.end_turn(asked, EndReason::Refused).await?;
                }
                return if_overtaken(error);
            }
        };
        let intent = durable.receipt().seq;
        let run = self.carry_out(asked, &weighed.verdict, durable, (task, driver, shown), reservation);
        // From here on it has an outcome, whatever happens to this task.
        let answered = AssertUnwindSafe(run).catch_unwind().await;
        match answered {
            Ok(answered) => answered,
            Err(panic) => {
                let why = format!("the door's task panicked: {}", ephor_runtime::panic_message(&*panic));
                let outcome = Outcome::Failed(Failure::new(FailureKind::Crashed, why));
                self.ended(asked, intent, outcome, (reserved, shown)).await
            }
        }
        .map(Some)
    }

    /// Makes the permit, runs the driver and records the outcome.
    async fn carry_out(
        &self,
        asked: &Asked,
        verdict: &Verdict,
        durable: Durable<Intent>,
        (task, driver, shown): (Task, Arc<dyn Driver>, Option<Confidentiality>),
        reservation: Reservation,
    ) -> Result<Answered, Refusal> {
        let (intent, reserved) = (durable.receipt().seq, reservation.amount());
        let (reach, until) = (self.reach(asked), self.until(asked));
        // Whatever the law said when it was decided: nothing begins under a law that is over.
        let digest = self.link.veil.as_deref().map(|veil| digest_of(veil, &task)).unwrap_or(asked.digest);
        let it = For { caller: &self.caller, task, digest, reach: reach.clone(), until };
        let Some(permit) = Permit::make(verdict, self.door.gate().digest(), durable, it) else {
            release(reservation);
            return self.ended(asked, intent, Outcome::Cancelled, (Budget::ZERO, shown)).await;
        };
        let _flight = self.door.flights.take_off(self.flight(asked, intent));
        self.started(asked, intent, shown);
        let begun = self.door.clock().monotonic();
        let inner = Arc::new(self.inner(asked, reach));
        let (preview, items) = Preview::channel(PREVIEW_DEPTH);
        let context = CallContext { preview, cancel: self.cancel.child_token(), inner: inner.clone() };
        let left = permit.left();
        let start = || Driven::start(&self.door.watch, driver, permit, context);
        let (outcome, used) = self.drive(start, asked, (left, reserved), (items, shown)).await;
        inner.close().await;
        let took = self.door.clock().monotonic().saturating_sub(begun);
        let (outcome, used) = believed(outcome, used, asked, took, &reservation);
        let used = reservation.settle(used);
        self.ended(asked, intent, outcome, (used, shown)).await
    }

    fn is_errand(&self) -> bool {
        self.door.with_session(self.caller.session, |session| session.is_errand()).unwrap_or(false)
    }

    /// Everything a permitted call needs before its intent is recorded.
    async fn ready(
        &self,
        asked: &Asked,
        reserved: Budget,
    ) -> Result<(Task, Arc<dyn Driver>, Option<Confidentiality>, IntentRecord), Refusal> {
        let task = asked.task().ok_or(Refusal::Fenced)?;
        let driver = self.driver(&asked.what);
        let driver = driver.ok_or_else(|| Refusal::UnknownReference(format!("a driver for {}", asked.target)))?;
        let shown = self.may_show(asked).await?;
        let kept = self.kept(asked)?;
        let intent = self.intent(asked, reserved, kept).ok_or(Refusal::Fenced)?;
        Ok((task, driver, shown, intent))
    }

    /// Up to which level what a call is told and makes may be shown to a watcher; nothing, if not at all. A watcher is a sink
    /// as a reply's is, and weighed as that. What a model call of the turn was cleared for need not be weighed again for the tools it
    /// chose.
    async fn may_show(&self, asked: &Asked) -> Result<Option<Confidentiality>, Refusal> {
        let gate = self.door.gate();
        let level = asked.level(gate.registry());
        let cleared = |session: &mut Session| session.turn.as_ref().and_then(|turn| turn.cleared);
        let cleared = self.door.with_session(self.caller.session, cleared).flatten();
        match asked.kind {
            // It is weighed as what it is.
            ActionKind::Reply => return Ok(Some(level)),
            // What it needs is for the door; nothing of it is a reply.
            ActionKind::Model if matches!(asked.content, Some(Content::Request(_))) => return Ok(None),
            ActionKind::Tool if cleared == Some((level, gate.digest())) => return Ok(Some(level)),
            // A watcher follows what a model chose, and not what other code asks for.
            ActionKind::Tool if asked.chosen.is_none() && !self.is_errand() => return Ok(None),
            ActionKind::Tool | ActionKind::Model => {}
        }
        loop {
            let Weighed { verdict, grounds, at, under, .. } = self.weigh(asked, None, None);
            let shown = (verdict.decision == Decision::Permit).then_some(level);
            let clears = shown.map(|level| (level, under.digest));
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
                Ok(_) => {
                    let clear = |session: &mut Session| session.turn.as_mut().map(|turn| turn.cleared = clears);
                    self.door.with_session(self.caller.session, clear);
                    return Ok(shown);
                }
                Err(AppendError::Overtaken) => {}
                Err(error) => return Err(Refusal::Chain(error.to_string())),
            }
        }
    }

    fn started(&self, asked: &Asked, intent: Seq, shown: Option<Confidentiality>) {
        // A caller that left need not know.
        let _left: Result<(), _> = self.states.try_send(CallState::Started);
        self.show(Seen::Started {
            call: asked.call,
            action: asked.kind,
            target: asked.target.clone(),
            arguments: shown.map(|_| asked.arguments_text()).unwrap_or_default(),
            intent,
        });
    }

    /// Records the outcome and takes it into the session.
    async fn ended(
        &self,
        asked: &Asked,
        intent: Seq,
        outcome: Outcome,
        (used, shown): (Budget, Option<Confidentiality>),
    ) -> Result<Answered, Refusal> {
        let shows = asked.kind != ActionKind::Tool || self.is_cleared(asked.call, shown);
        let (outcome, receipt) = self.record_outcome(asked, intent, outcome, used).await?;
        self.door.with_session(self.caller.session, |session| session.has_landed(asked, &outcome, receipt));
        let ended = Seen::Ended {
            call: asked.call,
            action: asked.kind,
            target: asked.target.clone(),
            end: outcome.code().to_owned(),
            text: if shows { shown_text(&outcome) } else { WITHHELD.to_owned() },
            outcome: receipt.seq,
        };
        // A watcher that is shown where an outcome stands may rely on it. A log that has failed tells so at the next call.
        if self.door.log().flush().await.is_ok() {
            self.show(ended);
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
        // What went on after its turn could not be cancelled.
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
        self.show(Seen::TurnEnded { size: head.size, root: head.root });
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

    fn driver(&self, what: &What) -> Option<Arc<dyn Driver>> {
        let drivers = &self.door.parts.drivers;
        match what {
            What::Model(_) => Some(drivers.model.clone()),
            What::Reply(_) => Some(drivers.reply.clone()),
            What::Tool(tool) => drivers.tools.get(&tool.task.name).cloned(),
            What::Senseless { .. } => None,
        }
    }

    fn time_limit(&self, what: &What) -> Duration {
        let patience = &self.door.parts.patience;
        match what {
            What::Model(_) => patience.model,
            What::Reply(_) => patience.reply,
            What::Tool(tool) => patience.tool.min(tool.task.limits.deadline()),
            What::Senseless { .. } => Duration::ZERO,
        }
    }

    /// What the run may lease and reach: what the operator registered of the tool, or configured for models.
    fn reach(&self, asked: &Asked) -> Reach {
        let gate = self.door.gate();
        match &asked.what {
            What::Model(asked) => gate.policy().models.of(&asked.model.provider),
            What::Tool(tool) => {
                gate.registry().find(&tool.task.name).map(|registered| registered.reach.clone()).unwrap_or_default()
            }
            What::Reply(_) | What::Senseless { .. } => Reach::default(),
        }
    }

    /// Until when a run that begins now may go on.
    fn until(&self, asked: &Asked) -> Until {
        let clock = self.door.parts.clock.clone();
        let (now, limits) = (clock.monotonic(), &self.door.parts.turn);
        let left = |session: &mut Session| session.turn.as_ref().map(|turn| turn.left(limits, now));
        let left = self.door.with_session(self.caller.session, left).flatten();
        let limit = self.time_limit(&asked.what);
        // The agent is given a moment to end its turn by itself.
        let of_turn = left.filter(|_| asked.kind != ActionKind::Reply).map(|left| left.saturating_add(GRACE));
        let deadline = now.saturating_add(of_turn.map_or(limit, |left| left.min(limit)));
        Until { deadline, clock, fence: self.caller.fence.clone() }
    }

    fn inner(&self, asked: &Asked, reach: Reach) -> Inner {
        let (cancel, of) = (self.cancel.child_token(), (self.subject(asked), reach));
        Inner::new(self.door.clone(), self.caller.clone(), cancel, self.states.clone(), of)
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

    /// What a call replaces that can be undone. It stands in the intent, so nothing is replaced before it is on the disk.
    fn kept(&self, asked: &Asked) -> Result<Vec<Kept>, Refusal> {
        let kept = self.door.with_session(self.caller.session, |session| session.kept).ok_or(Refusal::Fenced)?;
        let is_reversible = asked.ask(self.door.gate().registry()).is_reversible(kept);
        let Some(tool) = asked.tool_call().filter(|_| is_reversible) else { return Ok(Vec::new()) };
        let why = || Refusal::UnknownReference(format!("what {} replaces, as its driver kept it", asked.target));
        tool.kept().ok_or_else(why)
    }

    fn intent(&self, asked: &Asked, reserved: Budget, kept: Vec<Kept>) -> Option<IntentRecord> {
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
            kept,
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

    fn show(&self, seen: Seen) {
        let _is_watched: bool = self.door.watchers().show(self.caller.session, seen);
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

/// Paths that cannot be judged, and why.
fn nowhere(paths: &[(String, String)], why: &str) -> Vec<Found> {
    let leads = || Leads::Nowhere(why.to_owned());
    paths.iter().map(|(argument, _)| Found::only(Located { argument: argument.clone(), leads: leads() })).collect()
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

/// What is believed of what a driver reports. An estimate may be wrong, so up to twice of what was set aside is; of more
/// than that nothing is, also not the product, and the call is charged with the most that it could have used. How long it
/// took the door knows by itself.
fn believed(
    outcome: Outcome,
    used: Budget,
    asked: &Asked,
    took: Duration,
    reservation: &Reservation,
) -> (Outcome, Budget) {
    let most = reservation.most();
    let wall_ms = u64::try_from(took.as_millis()).map_or(most.wall_ms, |took| took.min(most.wall_ms));
    let own = Budget { wall_ms, ..asked.base_budget() };
    let said = match &outcome {
        Outcome::Done(Product::Model(ModelAnswer { usage, .. })) => usage.input.checked_add(usage.output),
        _ => Some(0),
    };
    let said = Budget { tokens: said.unwrap_or(u64::MAX), ..Budget::ZERO };
    match most.covers(&Budget { wall_ms: 0, ..used }).and(most.covers(&said)) {
        Ok(()) => (outcome, Budget { tokens: used.tokens, micro_usd: used.micro_usd, ..own }),
        Err(Exhausted { resource, .. }) => {
            let why = format!("it reports more {} than a call like this can use, and is not believed", resource.name());
            let used = Budget { tokens: most.tokens, micro_usd: most.micro_usd, ..own };
            (Outcome::Failed(Failure::new(FailureKind::Overrun, why)), used)
        }
    }
}

/// A plan asked for through the door, as everything is.
fn planned(serving: Serving) -> BoxFuture<'static, Result<Answered, Refusal>> {
    serving.contained(Action::Plan).boxed()
}

/// What was overtaken is made again; anything else that the log says is a refusal.
fn if_overtaken<T>(error: AppendError) -> Result<Option<T>, Refusal> {
    if matches!(error, AppendError::Overtaken) { Ok(None) } else { Err(Refusal::Chain(error.to_string())) }
}

fn shown_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(Product::Tool(answer)) => answer.text.clone(),
        Outcome::Failed(failure) => failure.message().to_owned(),
        Outcome::Done(_) | Outcome::Cancelled | Outcome::Indeterminate => String::new(),
    }
}
