//! Planning: which acting calls a request needs, as a model says that has read nothing untrusted.
//!
//! When the first acting call of a turn would be put before a person for want of a plan, the door has the model of the session make
//! one. The model is shown what people typed in the session, its own answers that followed from nothing else, and the tools; never
//! a word of anybody else's. Its answer is recorded, counts for the turn it was made in, and dies with it.

use std::sync::Arc;

use ephor_base::{
    AnswerEnd, Confidentiality, Integrity, Label, Message, ModelAnswer, Outcome, Product, Source, Span, SpanId,
    ToolName, ToolSpec,
};
use ephor_governance::{Gate, Plan, Planned, Scope, pasted::in_its_place};
use ephor_record::Pin;

use super::{
    Refusal,
    session::{Moment, Session, Shown},
};

/// The most tokens of a plan.
pub(crate) const PLAN_TOKENS: u64 = 4096;
/// The most bytes that a planner is shown of a session.
const MOST_SHOWN: usize = 256 << 10;

/// The plan of the turn under way.
#[derive(Clone, Debug, Default)]
pub(crate) enum Planning {
    /// None was asked for.
    #[default]
    Unasked,
    /// One was asked for, and what came is none.
    Failed,
    /// This one.
    Made(Arc<Plan>),
}

/// What of a person's message is not their own words.
#[derive(Clone, Debug)]
pub(crate) enum Aside {
    /// It was pasted into them.
    Pasted,
    /// It is the operator's plan for the turn; nothing, if it is none by now.
    Plan(Option<Arc<Plan>>),
    /// It says what an operator has done in the turn: there is no request.
    Errand,
}

/// The plan that a decision goes by.
#[derive(Clone, Debug)]
pub(crate) enum PlanOf {
    /// The agent has no planner.
    NoPlanner,
    /// It has one, and there is no plan.
    Missing,
    /// This one.
    Plan(Arc<Plan>),
}

impl PlanOf {
    pub(crate) fn planned(&self) -> Planned<'_> {
        match self {
            Self::NoPlanner => Planned::NoPlanner,
            Self::Missing => Planned::Missing,
            Self::Plan(plan) => Planned::Plan(plan),
        }
    }
}

impl Session {
    /// Whether its calls are planned: the operator has it so for its agent, and its model can.
    fn has_planner(&self) -> bool {
        self.spec.agent.planned && self.spec.model.plans()
    }

    /// Whether the turn under way is to have a plan and none was asked for yet.
    pub(crate) fn lacks_plan(&self) -> bool {
        let is_typed = || self.newest_words().is_some_and(|said| !self.typed(said).is_empty());
        self.has_planner() && self.turn.is_some() && matches!(self.planning, Planning::Unasked) && is_typed()
    }

    /// The plan that a decision goes by now.
    pub(crate) fn plan(&self) -> PlanOf {
        match &self.planning {
            Planning::Made(plan) => PlanOf::Plan(plan.clone()),
            Planning::Unasked if !self.has_planner() => PlanOf::NoPlanner,
            Planning::Unasked | Planning::Failed => PlanOf::Missing,
        }
    }

    /// Whether the turn under way is no request: an operator does something in it by tool calls of their own.
    pub(crate) fn is_errand(&self) -> bool {
        let is_errand = |span: &SpanId| matches!(self.asides.get(span), Some(Aside::Errand));
        // As the record is read, a turn in which no model is asked has not begun.
        let waits = || self.waiting.first().map(|envelope| envelope.spans.as_slice());
        let said = if self.turn.is_some() { self.newest_words() } else { waits() };
        said.is_some_and(|said| said.iter().any(is_errand))
    }

    /// The plan that an operator gave with a message, for its turn.
    pub(crate) fn given(&self, spans: &[SpanId]) -> Planning {
        let given = spans.iter().find_map(|span| match self.asides.get(span) {
            Some(Aside::Plan(plan)) => Some(plan.clone()),
            _ => None,
        });
        given.map_or(Planning::Unasked, |plan| plan.map_or(Planning::Failed, Planning::Made))
    }

    /// What a planner is shown: everything that was typed so far, the request last, and what a model answered that was shown
    /// nothing untrusted.
    ///
    /// # Errors
    /// [`Refusal::Overlong`]: it is more than any plan could rest on.
    pub(crate) fn request(&self) -> Result<Shown, Refusal> {
        let mut shown = Shown::nothing();
        let mut bytes = 0_usize;
        let mut take = |spans: Vec<Span>, shown: &mut Shown| {
            for span in &spans {
                bytes = bytes.saturating_add(span.text.len());
                shown.spans.push(span.id);
                shown.confidentiality = shown.confidentiality.max(span.label.confidentiality);
            }
            spans
        };
        for moment in &self.moments {
            match moment {
                Moment::Said(spans) => {
                    let typed = take(self.typed(spans), &mut shown);
                    if !typed.is_empty() {
                        shown.messages.push(Message::User(self.without_pasted(spans)));
                    }
                }
                Moment::Answered { call, answer } if !answer.text.is_empty() => {
                    let own =
                        self.answer_span(*call).filter(|span| span.label.integrity == Integrity::Trusted).cloned();
                    if let Some(own) = own {
                        let said = ModelAnswer { text: own.text.clone(), ..ModelAnswer::default() };
                        take(vec![own], &mut shown);
                        shown.messages.push(Message::Assistant(said.into()));
                    }
                }
                _ => {}
            }
        }
        if bytes > MOST_SHOWN {
            return Err(Refusal::Overlong("is longer than 256 KiB"));
        }
        Ok(shown)
    }

    /// Those of these spans that a person typed.
    fn typed(&self, spans: &[SpanId]) -> Vec<Span> {
        let is_typed = |span: &&Span| {
            span.label.source == Source::User
                && span.label.integrity == Integrity::Trusted
                && !span.text.trim().is_empty()
                && !self.asides.contains_key(&span.id)
        };
        let found = spans.iter().filter_map(|id| self.spans().get(usize::try_from(id.0).ok()?));
        found.filter(is_typed).cloned().collect()
    }

    /// The same in the order of the message, with a word on each pasted text in its place.
    fn without_pasted(&self, spans: &[SpanId]) -> Vec<Span> {
        let found = spans.iter().filter_map(|id| match self.asides.get(id) {
            Some(Aside::Pasted) => {
                let pasted = self.spans().get(usize::try_from(id.0).ok()?)?;
                let label = Label::new(Source::Kernel, Integrity::Trusted, pasted.label.confidentiality);
                Some(Span { id: *id, label, text: in_its_place(&pasted.text) })
            }
            _ => self.typed(std::slice::from_ref(id)).pop(),
        });
        found.collect()
    }

    /// What the message of the turn under way says, as far as is recorded.
    fn newest_words(&self) -> Option<&[SpanId]> {
        let latest = |moment: &&Moment| matches!(moment, Moment::Said(_) | Moment::TurnEnded(_));
        match self.moments.iter().rev().find(latest) {
            Some(Moment::Said(spans)) => Some(spans),
            _ => None,
        }
    }

    /// Whether what the message of this turn says is among these spans.
    fn is_of_this_turn(&self, shown: &[SpanId]) -> bool {
        self.newest_words().is_some_and(|said| said.iter().any(|span| shown.contains(span)))
    }

    /// Takes in what came of a planning that was shown these spans, if it was for the request of this turn.
    pub(crate) fn planned(&mut self, gate: &Gate, shown: &[SpanId], level: Confidentiality, outcome: &Outcome) {
        if matches!(outcome, Outcome::Done(_) | Outcome::Failed(_)) {
            self.plans = self.plans.saturating_add(1);
        }
        match outcome {
            // The next incarnation asks again.
            Outcome::Cancelled | Outcome::Indeterminate => {}
            // The first that is made counts, for its own turn.
            _ if !self.is_of_this_turn(shown) || !matches!(self.planning, Planning::Unasked) => {}
            Outcome::Done(Product::Model(answer)) => match plan_in(gate, answer) {
                Some(plan) => {
                    self.planning = Planning::Made(Arc::new(plan));
                    let text = format!(
                        "The plan of this turn, from what was typed. A call that acts and is not in it is put before a person.\n{}",
                        answer.text
                    );
                    let label = Label::new(Source::Model, Integrity::Trusted, level);
                    let span = self.enter(label, text);
                    self.moments.push(Moment::Planned(vec![span]));
                }
                None => self.planning = Planning::Failed,
            },
            Outcome::Done(_) | Outcome::Failed(_) => self.planning = Planning::Failed,
        }
    }
}

/// The plan that a model answered, if it is one.
fn plan_in(gate: &Gate, answer: &ModelAnswer) -> Option<Plan> {
    plan_of(gate, &answer.text).ok().filter(|_| answer.end == AnswerEnd::Complete)
}

/// A plan over the tools that are registered.
///
/// # Errors
/// What is wrong with it, with the step.
pub(crate) fn plan_of(gate: &Gate, json: &str) -> Result<Plan, String> {
    let known =
        |name: &str| -> Option<ToolName> { gate.registry().find(&name.parse().ok()?).map(|tool| tool.name.clone()) };
    Plan::parse(json, &known).map_err(|bad| bad.to_string())
}

/// Whether `json` is a plan over these tools.
///
/// # Errors
/// What is wrong with it, in words for the model that wrote it.
pub fn check_plan(json: &str, tools: &[ToolSpec]) -> Result<(), String> {
    let known = |name: &str| tools.iter().find(|tool| tool.name.as_str() == name).map(|tool| tool.name.clone());
    Plan::parse(json, &known).map(drop).map_err(|bad| bad.to_string())
}

/// What is pinned by these.
pub(crate) fn scope_of(pins: impl IntoIterator<Item = Pin>) -> Scope {
    let mut scope = Scope::default();
    for Pin { tool, targets } in pins {
        if let Some(targets) = targets {
            scope.targets.entry(tool.clone()).or_default().extend(targets);
        }
        scope.tools.insert(tool);
    }
    scope
}
