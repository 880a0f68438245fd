//! The body of an agent: carries out what the turn machine says.

use std::{ops::ControlFlow, pin::pin, sync::Arc};

use ephor_base::{Action, CallId, EndReason, ModelAction, Outcome, Product, ReplyAction, ToolAction};
use ephor_kernel::{Body, Call, CallState, Incoming, Life, Process, Refusal, TurnState};
use futures_util::{FutureExt, future::Either, future::select};

use crate::errands::{Called, Calls, Chain, Errands};
use crate::turn::{Interrupt, Turn, TurnLimits, Work};

/// The agent loop. One body serves any number of agents.
#[derive(Clone)]
pub struct AgentLoop {
    limits: TurnLimits,
    errands: Arc<dyn Errands>,
}

impl AgentLoop {
    /// A loop whose turns keep to `limits`, and in which some messages are `errands`.
    #[must_use]
    pub const fn new(limits: TurnLimits, errands: Arc<dyn Errands>) -> Self {
        Self { limits, errands }
    }
}

impl Body for AgentLoop {
    fn run(&self, process: Process) -> Life {
        let (limits, errands) = (self.limits, self.errands.clone());
        Life::new(async move {
            let agent = Agent { process, limits, errands };
            agent.serve().await
        })
    }
}

struct Agent {
    process: Process,
    limits: TurnLimits,
    errands: Arc<dyn Errands>,
}

/// Why work was broken off.
#[derive(Clone, Copy)]
enum Break {
    /// The turn ends, with a reply that says so.
    Turn(Interrupt),
    /// The process stops. The turn stays as it stands on the record, for the process that goes on with it.
    Stop,
}

impl Agent {
    async fn serve(self) -> Result<(), String> {
        if self.process.is_in_turn() && self.answer(None).await?.is_break() {
            return Ok(());
        }
        loop {
            self.process.enter(TurnState::Idle);
            match self.process.receive().await {
                Incoming::Stop => return Ok(()),
                // It is linked to no process and monitors none.
                Incoming::Exit(_) => {}
                Incoming::Message(envelope) => {
                    let calls = self.errands.take(envelope.id).await;
                    if self.answer(calls).await?.is_break() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Goes on with the turn under way until its reply is recorded, or the process stops.
    async fn turn(&self) -> Result<ControlFlow<()>, String> {
        let mut turn = Turn::new(self.limits, self.process.instructions());
        let mut interrupt = None;
        loop {
            let step = turn.step(&self.process.transcript(), interrupt);
            self.process.enter(step.state);
            let broken = match step.work {
                Work::Ask { prompt, offer_tools, max_output_tokens } => {
                    self.ask(Action::Model(ModelAction { prompt, offer_tools, max_output_tokens })).await?
                }
                Work::Wait(time) => self.unless_interrupted(self.process.sleep(time)).await,
                Work::CallTools { of, uses } => self.call_tools(of, &uses).await?,
                Work::Reply { answer, end } => {
                    self.reply(ReplyAction { answer, end }).await?;
                    return Ok(ControlFlow::Continue(()));
                }
            };
            interrupt = match broken {
                Some(Break::Stop) => return Ok(ControlFlow::Break(())),
                Some(Break::Turn(interrupt)) => Some(interrupt),
                None => None,
            };
        }
    }

    /// Answers the message of the turn under way. Whose calls are not known any more, since they were cut off with their process, is not
    /// gone on with: no model is asked what an operator may have wanted.
    async fn answer(&self, calls: Option<Calls>) -> Result<ControlFlow<()>, String> {
        match (self.process.is_errand(), calls) {
            (true, Some(calls)) => self.errand(calls).await,
            (true, None) => {
                self.reply(ReplyAction { answer: None, end: EndReason::Cancelled }).await?;
                Ok(ControlFlow::Continue(()))
            }
            (false, _) => self.turn().await,
        }
    }

    /// Makes the calls of an errand, chain by chain, and ends the turn without a word of a model's.
    async fn errand(&self, calls: Calls) -> Result<ControlFlow<()>, String> {
        let mut end = EndReason::Replied;
        for Chain { first, then } in calls {
            let done = match self.each(first).await? {
                ControlFlow::Continue(true) => self.each(then).await?,
                other => other,
            };
            end = match done {
                ControlFlow::Continue(_) => continue,
                ControlFlow::Break(None) => return Ok(ControlFlow::Break(())),
                ControlFlow::Break(Some(end)) => end,
            };
            break;
        }
        self.reply(ReplyAction { answer: None, end }).await?;
        Ok(ControlFlow::Continue(()))
    }

    /// Makes these calls, each whatever became of the one before: whether all of them were done, or how the turn ends; nothing if the
    /// process stops.
    async fn each(&self, calls: Vec<Called>) -> Result<ControlFlow<Option<EndReason>, bool>, String> {
        let mut all = true;
        for (name, arguments) in calls {
            let (ended, broken) = self.call(Action::Tool(ToolAction::Direct { name, arguments })).await?;
            let end = match (ended, broken) {
                (_, Some(Break::Stop)) => None,
                (Err(Refusal::TurnLimit(limit)), _) => Some(EndReason::LimitHit(limit)),
                (Err(Refusal::BudgetSpent { exhausted, .. }), _) => Some(EndReason::BudgetSpent(exhausted.resource)),
                (Ok(Outcome::Cancelled) | Err(Refusal::Fenced | Refusal::NoTurn), _) | (_, Some(_)) => {
                    Some(EndReason::Cancelled)
                }
                (Ok(outcome), None) => {
                    all &= matches!(outcome, Outcome::Done(Product::Tool(answer)) if !answer.failed);
                    continue;
                }
                (Err(Refusal::Denied { .. } | Refusal::UnknownReference(_)), None) => {
                    all = false;
                    continue;
                }
                (Err(refusal), None) => return Err(refusal.to_string()),
            };
            return Ok(ControlFlow::Break(end));
        }
        Ok(ControlFlow::Continue(all))
    }

    async fn ask(&self, action: Action) -> Result<Option<Break>, String> {
        let (end, broken) = self.call(action).await?;
        Ok(match end {
            Ok(Outcome::Cancelled) | Err(Refusal::Fenced | Refusal::NoTurn) => {
                Some(broken.unwrap_or(Break::Turn(Interrupt::Cancelled)))
            }
            Ok(_) => broken,
            Err(Refusal::Denied { .. }) => Some(Break::Turn(Interrupt::Refused)),
            Err(Refusal::BudgetSpent { exhausted, .. }) => {
                Some(Break::Turn(Interrupt::BudgetSpent(exhausted.resource)))
            }
            Err(Refusal::TurnLimit(limit)) => Some(Break::Turn(Interrupt::LimitHit(limit))),
            Err(Refusal::Overlong(_)) => Some(Break::Turn(Interrupt::Overlong)),
            Err(refusal) => return Err(refusal.to_string()),
        })
    }

    /// Calls the tools one after another. A refusal of one does not keep the next from being called.
    async fn call_tools(&self, by: CallId, uses: &[u32]) -> Result<Option<Break>, String> {
        for index in uses {
            let action = Action::Tool(ToolAction::Chosen { by, index: *index });
            let (end, broken) = self.call(action).await?;
            if let Err(Refusal::TurnLimit(limit)) = end {
                return Ok(Some(broken.unwrap_or(Break::Turn(Interrupt::LimitHit(limit)))));
            }
            let cancelled = matches!(end, Ok(Outcome::Cancelled) | Err(Refusal::Fenced | Refusal::NoTurn));
            if cancelled || broken.is_some() {
                return Ok(Some(broken.unwrap_or(Break::Turn(Interrupt::Cancelled))));
            }
            match end {
                Ok(_) | Err(Refusal::Denied { .. } | Refusal::BudgetSpent { .. } | Refusal::Repeated(_)) => {}
                Err(refusal) => return Err(refusal.to_string()),
            }
        }
        Ok(None)
    }

    async fn reply(&self, action: ReplyAction) -> Result<(), String> {
        let call = self.begin(Action::Reply(action))?;
        // A reply that was refused or not delivered still ended the turn, and the record says so.
        match call.ended().await {
            Ok(_) if self.process.is_in_turn() => Err("the reply was cut off".to_owned()),
            Ok(_) | Err(Refusal::Denied { .. } | Refusal::Fenced | Refusal::NoTurn) => Ok(()),
            Err(refusal) => Err(refusal.to_string()),
        }
    }

    /// Makes a call and waits for its end; an interrupt cancels it, and its end is awaited all the same.
    async fn call(&self, action: Action) -> Result<(Result<Outcome, Refusal>, Option<Break>), String> {
        let call = self.begin(action)?;
        let canceller = call.canceller();
        let ended = pin!(self.follow(call));
        match select(ended, pin!(self.interrupted())).await {
            Either::Left((end, _)) => Ok((end, None)),
            Either::Right((broken, ended)) => {
                canceller.cancel();
                Ok((ended.await, Some(broken)))
            }
        }
    }

    async fn follow(&self, mut call: Call) -> Result<Outcome, Refusal> {
        while let Some(state) = call.next().await {
            match state {
                CallState::Started => {}
                CallState::Streaming => self.process.enter(TurnState::ConsumingResponse),
                CallState::Ended(end) => return end.map(|answered| answered.outcome),
            }
        }
        Err(Refusal::Fenced)
    }

    fn begin(&self, action: Action) -> Result<Call, String> {
        self.process.call(action).ok_or_else(|| "an agent without a session".to_owned())
    }

    async fn unless_interrupted(&self, work: impl Future<Output = ()>) -> Option<Break> {
        match select(pin!(work), pin!(self.interrupted())).await {
            Either::Left(_) => None,
            Either::Right((broken, _)) => Some(broken),
        }
    }

    /// Resolves when work has to end from outside.
    async fn interrupted(&self) -> Break {
        let cancelled = async { self.process.turn_cancelled().await };
        let stopping = async { self.process.stopping().await };
        futures_util::select_biased! {
            () = pin!(cancelled.fuse()) => Break::Turn(Interrupt::Cancelled),
            () = pin!(stopping.fuse()) => Break::Stop,
            () = pin!(self.time_up().fuse()) => Break::Turn(Interrupt::TimeUp),
        }
    }

    async fn time_up(&self) {
        loop {
            let left = self.limits.time.saturating_sub(self.process.turn_time());
            if left.is_zero() {
                return;
            }
            self.process.sleep(left).await;
        }
    }
}
