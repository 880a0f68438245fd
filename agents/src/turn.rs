//! One turn, as a pure machine over what is on record.

use std::{sync::Arc, time::Duration};

use ephor_base::{
    AnswerEnd, CallId, Digest, EndReason, Failure, FailureKind, ModelAnswer, Prompt, Resource, Retry, SpanId, TurnLimit,
};
use ephor_kernel::{Moment, TurnState};

use crate::prompt;

/// How much one turn may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TurnLimits {
    /// Rounds of tool calls; 25 by default. At the limit the model gets one last round without tools.
    pub rounds: usize,
    /// Time for the whole turn, without waiting for a person; 300 s by default.
    pub time: Duration,
    /// Calls of tools that do not exist before the turn ends; 3 by default.
    pub unknown_tools: usize,
    /// The same call with the same result this often ends the turn; 5 by default.
    pub repeats: usize,
    /// The most tokens a model may answer with; 16,384 by default, room for some hundred findings.
    pub max_output_tokens: u64,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self { rounds: 25, time: Duration::from_secs(300), unknown_tools: 3, repeats: 5, max_output_tokens: 16_384 }
    }
}

/// How often a model request is repeated after a failure that may pass.
const MAX_RETRIES: u32 = 2;
/// The wait before the first repeat; each later one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait that a provider may ask for. No person sits and waits for longer; the failure says how long it is.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Something that stops a turn from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interrupt {
    /// The person, or the caller that stops the process.
    Cancelled,
    /// The time is up.
    TimeUp,
    /// The gate refused a model request.
    Refused,
    /// A budget does not cover a model request.
    BudgetSpent(Resource),
    /// The kernel takes nothing more in this turn.
    LimitHit(TurnLimit),
    /// The conversation is longer than a prompt may be.
    Overlong,
}

/// What to do next, and the state the turn is in while it is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The state.
    pub state: TurnState,
    /// The work.
    pub work: Work,
}

/// One piece of work. When it is done, the machine is asked again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Work {
    /// Ask the model.
    Ask {
        /// With this prompt.
        prompt: Prompt,
        /// Whether it may call tools.
        offer_tools: bool,
        /// The most tokens it may answer with.
        max_output_tokens: u64,
    },
    /// Wait, then ask again.
    Wait(Duration),
    /// Call these tool uses of a model call, in order.
    CallTools {
        /// The model call.
        of: CallId,
        /// Which of its uses.
        uses: Vec<u32>,
    },
    /// End the turn.
    Reply {
        /// The answer that is the reply, if there is one.
        answer: Option<CallId>,
        /// Why it ends.
        end: EndReason,
    },
}

/// The turn machine. It remembers only that it has waited; all else is in the transcript it is shown.
#[derive(Clone, Debug)]
pub struct Turn {
    limits: TurnLimits,
    instructions: SpanId,
    /// Failures already waited for.
    waited_for: u32,
}

/// The moments of the turn under way, looked at.
struct View<'a> {
    moments: &'a [Moment],
}

impl Turn {
    /// A turn under `limits`, whose prompts begin with the span `instructions`.
    #[must_use]
    pub const fn new(limits: TurnLimits, instructions: SpanId) -> Self {
        Self { limits, instructions, waited_for: 0 }
    }

    /// What comes next, given everything on record, and whatever interrupted the last work.
    #[must_use]
    pub fn step(&mut self, transcript: &[Moment], interrupt: Option<Interrupt>) -> Step {
        let view = View::of_turn(transcript);
        if let Some(interrupt) = interrupt {
            return reply(None, end_of(interrupt));
        }
        match view.last() {
            None | Some(Moment::Said(_) | Moment::Planned(_) | Moment::TurnEnded(_)) => {
                self.waited_for = 0;
                self.ask(transcript, &view)
            }
            Some(Moment::ModelFailed { failure, .. }) => self.after_failure(transcript, &view, failure),
            Some(Moment::Answered { call, answer }) if ends_turn(answer) => {
                self.waited_for = 0;
                reply(Some(*call), self.end_of_answer(&view, answer.end))
            }
            Some(Moment::Answered { .. } | Moment::Result { .. }) => self.after_answer(transcript, &view),
        }
    }

    fn ask(&self, transcript: &[Moment], view: &View<'_>) -> Step {
        let max_output_tokens = self.limits.max_output_tokens;
        let prompt = prompt::build(self.instructions, transcript);
        let offer_tools = view.rounds() < self.limits.rounds;
        Step { state: TurnState::SendingRequest, work: Work::Ask { prompt, offer_tools, max_output_tokens } }
    }

    fn after_failure(&mut self, transcript: &[Moment], view: &View<'_>, failure: &Failure) -> Step {
        let (failures, most) = (view.failures(), retries_after(failure.kind.retry()));
        let asked = Duration::from_secs(failure.retry_after.map_or(0, u64::from));
        if failures > most || asked > LONGEST_WAIT {
            return reply(None, EndReason::Failed(failure.kind));
        }
        if self.waited_for < failures {
            self.waited_for = failures;
            let wait = FIRST_WAIT.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1))).max(asked);
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let state = TurnState::Retrying { wait_ms, next: failures.saturating_add(1), of: most.saturating_add(1) };
            return Step { state, work: Work::Wait(wait) };
        }
        self.ask(transcript, view)
    }

    fn after_answer(&mut self, transcript: &[Moment], view: &View<'_>) -> Step {
        self.waited_for = 0;
        if view.rounds() > self.limits.rounds {
            // It called tools in the round it was given none.
            return reply(None, EndReason::LimitHit(TurnLimit::Rounds));
        }
        if let Some((of, uses)) = view.open_uses() {
            return Step { state: TurnState::PendingToolUseResults, work: Work::CallTools { of, uses } };
        }
        if view.unknown_tools() >= self.limits.unknown_tools {
            return reply(None, EndReason::LimitHit(TurnLimit::UnknownTools));
        }
        if view.most_repeats() >= self.limits.repeats {
            return reply(None, EndReason::LimitHit(TurnLimit::Repeats));
        }
        self.ask(transcript, view)
    }

    fn end_of_answer(&self, view: &View<'_>, end: AnswerEnd) -> EndReason {
        match end {
            AnswerEnd::CutOff => EndReason::CutOff,
            AnswerEnd::Refused => EndReason::ModelRefused,
            AnswerEnd::Complete if view.rounds() >= self.limits.rounds => EndReason::LimitHit(TurnLimit::Rounds),
            AnswerEnd::Complete => EndReason::Replied,
        }
    }
}

impl<'a> View<'a> {
    fn of_turn(transcript: &'a [Moment]) -> Self {
        let start = transcript.iter().rposition(|moment| matches!(moment, Moment::Said(_))).unwrap_or(0);
        Self { moments: transcript.get(start..).unwrap_or_default() }
    }

    fn last(&self) -> Option<&'a Moment> {
        // A plan is made in the middle of a call, which goes on.
        self.moments.iter().rev().find(|moment| !matches!(moment, Moment::Planned(_)))
    }

    fn answers(&self) -> impl DoubleEndedIterator<Item = (CallId, &'a Arc<ModelAnswer>)> {
        self.moments.iter().filter_map(|moment| match moment {
            Moment::Answered { call, answer } => Some((*call, answer)),
            _ => None,
        })
    }

    /// Answers that called tools.
    fn rounds(&self) -> usize {
        self.answers().filter(|(_, answer)| !answer.tool_uses.is_empty()).count()
    }

    /// Failures of model requests since the last one that was answered.
    fn failures(&self) -> u32 {
        let failed = self.moments.iter().rev().take_while(|moment| matches!(moment, Moment::ModelFailed { .. }));
        u32::try_from(failed.count()).unwrap_or(u32::MAX)
    }

    /// The tool uses of the last answer that came to nothing yet.
    fn open_uses(&self) -> Option<(CallId, Vec<u32>)> {
        let (call, answer) = self.answers().next_back()?;
        let count = u32::try_from(answer.tool_uses.len()).unwrap_or(u32::MAX);
        let open: Vec<u32> = (0..count).filter(|index| self.result(call, *index).is_none()).collect();
        (!open.is_empty()).then_some((call, open))
    }

    fn result(&self, call: CallId, at: u32) -> Option<Digest> {
        self.moments.iter().find_map(|moment| match moment {
            Moment::Result { of, index, digest, .. } if *of == call && *index == at => Some(*digest),
            _ => None,
        })
    }

    fn unknown_tools(&self) -> usize {
        self.moments.iter().filter(|moment| matches!(moment, Moment::Result { known: false, .. })).count()
    }

    /// How often the most repeated call had the same result.
    fn most_repeats(&self) -> usize {
        let done: Vec<(&str, &str, Option<Digest>)> = self
            .answers()
            .flat_map(|(call, answer)| answer.tool_uses.iter().zip(0u32..).map(move |(tool, at)| (call, tool, at)))
            .map(|(call, tool, at)| (tool.name.as_str(), tool.arguments.as_str(), self.result(call, at)))
            .collect();
        done.iter().map(|one| done.iter().filter(|other| *other == one).count()).max().unwrap_or(0)
    }
}

const fn retries_after(retry: Retry) -> u32 {
    match retry {
        Retry::Later => MAX_RETRIES,
        Retry::Once => 1,
        Retry::Never => 0,
    }
}

/// Of an answer that is not complete no tool is called, whatever it names.
fn ends_turn(answer: &ModelAnswer) -> bool {
    answer.tool_uses.is_empty() || answer.end != AnswerEnd::Complete
}

const fn end_of(interrupt: Interrupt) -> EndReason {
    match interrupt {
        Interrupt::Cancelled => EndReason::Cancelled,
        Interrupt::TimeUp => EndReason::LimitHit(TurnLimit::Time),
        Interrupt::Refused => EndReason::Refused,
        Interrupt::BudgetSpent(resource) => EndReason::BudgetSpent(resource),
        Interrupt::LimitHit(limit) => EndReason::LimitHit(limit),
        Interrupt::Overlong => EndReason::Failed(FailureKind::Overflow),
    }
}

const fn reply(answer: Option<CallId>, end: EndReason) -> Step {
    Step { state: TurnState::UserTurnEnded, work: Work::Reply { answer, end } }
}
