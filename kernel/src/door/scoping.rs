//! What a request needs, as a model says that has read nothing else.
//!
//! An agent may have its model asked so before a turn does anything (`scoped` in its appointment). The model is shown the
//! instructions and what the person of the session has typed, and not a word of anybody else's. It answers with one tool,
//! [`SCOPE_TOOL`], that nobody runs: the door takes the answer in. What it names narrows the turn and vouches for nothing,
//! so a model in the hands of somebody else gains nothing by naming everything. One that names nothing, or answers
//! something else, has a turn in which whatever acts is asked about, and so has one that was never asked.

use ephor_base::{CallId, Integrity, ModelAnswer, Outcome, Product, Prompt, PromptMessage, SpanId, ToolSpec};
use ephor_chain::record::Pin;
use ephor_governance::{Gate, Scope, TurnState};
use serde::Deserialize;
use serde_json::json;

use super::{
    asked::{entitled, offered},
    session::{Moment, Session},
};

/// The one tool that is offered with the question what a request needs. Its argument `pins` is a list of objects: `tool`,
/// and perhaps `targets`, a list of texts.
pub const SCOPE_TOOL: &str = "scope.pin";

/// Some servers take descriptions of 1,024 characters at most, so what the tools do stands in the schema.
const ASKS: &str = "Say what the request needs, before anything is read or done. Call this once, and nothing else, with \
    every tool that the request will need: a call that acts, and was not named, is put before a person. With `targets`, a \
    tool may act on these alone; they are compared letter by letter with what the call says.";

/// The arguments of [`SCOPE_TOOL`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Needs {
    pins: Vec<Pin>,
}

impl Session {
    /// Whether the model is still to be asked what the request of this turn needs: its agent is one that asks and has a tool
    /// that acts, nothing is pinned yet, and there is something that a person of this node has typed.
    pub(crate) fn needs_scope(&self, gate: &Gate) -> bool {
        let said = self.moments.iter().rev().find_map(|moment| match moment {
            Moment::Said(spans) => Some(self.typed(spans)),
            _ => None,
        });
        let is_open = self.spec.agent.scoped && self.turn.is_some() && self.conduct.scope().is_none();
        let acts = || entitled(self, gate).any(|tool| tool.flow.consequential);
        is_open && said.is_some_and(|typed| !typed.is_empty()) && acts()
    }

    /// What has happened in the turn, as a decision sees it. As long as nobody has said what is needed to an agent that asks,
    /// nothing is pinned for it: whoever does not ask gains nothing.
    pub(crate) fn bound(&self) -> TurnState {
        let mut bound = self.conduct.clone();
        if self.spec.agent.scoped && bound.scope().is_none() {
            bound.narrow(Scope::default());
        }
        bound
    }

    /// The question: the instructions, and everything that was typed so far, the request last.
    pub(crate) fn request(&self) -> Prompt {
        let said = self.moments.iter().filter_map(|moment| match moment {
            Moment::Said(spans) => Some(self.typed(spans)).filter(|typed| !typed.is_empty()),
            _ => None,
        });
        let instructions = PromptMessage::System(vec![Self::INSTRUCTIONS]);
        Prompt { messages: std::iter::once(instructions).chain(said.map(PromptMessage::User)).collect() }
    }

    /// Whether what the message of this turn says is among these spans.
    fn is_of_this_turn(&self, shown: &[SpanId]) -> bool {
        let said = self
            .moments
            .iter()
            .rev()
            .find_map(|moment| if let Moment::Said(spans) = moment { Some(spans) } else { None });
        self.turn.is_some() && said.is_some_and(|said| said.iter().any(|span| shown.contains(span)))
    }

    /// Those of these spans that are trusted.
    fn typed(&self, spans: &[SpanId]) -> Vec<SpanId> {
        let is_typed = |id: &&SpanId| {
            let span = usize::try_from(id.0).ok().and_then(|at| self.spans().get(at));
            span.is_some_and(|span| span.label.integrity == Integrity::Trusted && !span.text.trim().is_empty())
        };
        spans.iter().filter(is_typed).copied().collect()
    }

    /// Takes in what the model named that was shown these spans, if it is for the request of this turn. It is no answer:
    /// nobody is shown it again, and no call comes out of it.
    pub(crate) fn named(&mut self, call: CallId, shown: &[SpanId], outcome: &Outcome) {
        self.has_answered(outcome);
        match outcome {
            Outcome::Done(Product::Model(answer)) if self.is_of_this_turn(shown) => {
                self.conduct.narrow(named_in(answer));
                self.moments.push(Moment::Scoped);
            }
            Outcome::Failed(failure) => self.model_failed(call, failure),
            Outcome::Done(_) | Outcome::Cancelled | Outcome::Indeterminate => {}
        }
    }
}

/// The tool that the model answers with.
pub(crate) fn tool(session: &Session, gate: &Gate) -> ToolSpec {
    let offered = offered(session, gate);
    let names: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
    let lines: Vec<String> = offered.iter().map(|tool| format!("- {}: {}", tool.name, tool.description)).collect();
    let targets = json!({ "type": "array", "items": { "type": "string" } });
    let pin = json!({
        "type": "object",
        "properties": {
            "tool": { "type": "string", "enum": names, "description": lines.join("\n") },
            "targets": targets,
        },
        "required": ["tool"],
        "additionalProperties": false,
    });
    let schema = json!({
        "type": "object",
        "properties": { "pins": { "type": "array", "items": pin } },
        "required": ["pins"],
        "additionalProperties": false,
    });
    let name = SCOPE_TOOL.parse().unwrap_or_else(|_| unreachable!("it is a tool name"));
    ToolSpec { name, description: ASKS.to_owned(), schema: schema.to_string() }
}

/// The scope that an answer names, in one use of the tool or in several; an empty one, if it names none or nothing that can
/// be read.
fn named_in(answer: &ModelAnswer) -> Scope {
    let said = answer.tool_uses.iter().filter(|tool| tool.name == SCOPE_TOOL);
    let needs = said.filter_map(|said| serde_json::from_str::<Needs>(&said.arguments).ok());
    scope_of(needs.flat_map(|needs| needs.pins))
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
