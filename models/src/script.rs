//! `script:FILE`: replays lines, for tests and demonstrations.

use std::time::Duration;

use ephor_base::{Failure, FailureKind, ModelAnswer, ModelTask, Purpose, ToolUse};
use ephor_kernel::PreviewItem;
use serde::Deserialize;

use crate::{meter::Meter, sink::Sink};

/// How far apart the pieces of a slow text are at least: a reader sees it flow, and a long delay costs few wake-ups.
const PIECE: Duration = Duration::from_millis(40);

/// The pieces of a text that comes at once.
const PIECES_AT_ONCE: usize = 4;

/// The lines of a script: one for each model request of a session, and one for each planning, which are counted apart.
#[derive(Clone, Debug)]
pub struct Script(Vec<Line>);

/// A script that cannot be played. Nothing of it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line} of the script: {why}")]
pub struct BadScript {
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Line {
    text: String,
    tool_calls: Vec<Call>,
    /// What a planner answers; such a line answers nothing else.
    plan: Option<serde_json::Value>,
    delay_ms: u64,
    error: Option<Fault>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    /// A string is sent as it is, so that malformed JSON can be played too.
    #[serde(default)]
    arguments: Option<serde_json::Value>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fault {
    Throttled,
    Overflow,
    Timeout,
    Interrupted,
    InvalidJson,
}

impl Script {
    /// Parses JSON lines. Blank lines do not count.
    ///
    /// # Errors
    /// [`BadScript`] names the first line that is not an object of the known keys.
    pub fn parse(text: &str) -> Result<Self, BadScript> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(at, line)| {
                // An array would pass for an object whose keys are left out.
                if !line.trim_start().starts_with('{') {
                    return Err(BadScript { line: at + 1, why: "expected a JSON object".to_owned() });
                }
                serde_json::from_str(line).map_err(|error| BadScript { line: at + 1, why: reason(&error) })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// How many requests it answers.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it plans.
    #[must_use]
    pub fn plans(&self) -> bool {
        self.0.iter().any(|line| line.plan.is_some())
    }

    /// Whether it answers none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The library counts lines within the one it was given, which would mislead.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line 1 column ") {
        Some((what, column)) => format!("{what} at column {column}"),
        None => text,
    }
}

/// Plays the line of `task`'s ordinal.
pub(crate) async fn ask(task: &ModelTask, sink: &mut impl Sink, meter: &mut Meter) -> Result<ModelAnswer, Failure> {
    let script = Script::parse(&task.model.script).map_err(|bad| {
        Failure::new(FailureKind::Rejected, format!("the script `{}` cannot be played: {bad}", task.model.name))
    })?;
    let plans = task.purpose == Purpose::Plan;
    let mut lines = script.0.iter().filter(|line| line.plan.is_some() == plans);
    let line = usize::try_from(task.ordinal).ok().and_then(|at| lines.nth(at)).ok_or_else(|| {
        Failure::new(
            FailureKind::ScriptEnded,
            format!(
                "the script `{}` has {} lines and this is request {} of the session; add a line for it",
                task.model.name,
                script.len(),
                task.ordinal.saturating_add(1)
            ),
        )
    })?;
    meter.sent();
    stream(&line.text, Duration::from_millis(line.delay_ms), sink, meter).await;
    if let Some(fault) = line.error {
        return Err(fault.failure());
    }
    if let Some(plan) = &line.plan {
        // A text is said as it is, so that what is no plan can be played too.
        let text = plan.as_str().map_or_else(|| plan.to_string(), str::to_owned);
        meter.wrote(text.len());
        return Ok(ModelAnswer { text, usage: meter.free(), ..ModelAnswer::default() });
    }
    let mut tool_uses = Vec::with_capacity(line.tool_calls.len());
    for (at, call) in line.tool_calls.iter().enumerate() {
        let tool = call.tool_use(task.ordinal, at);
        meter.wrote(tool.name.len() + tool.arguments.len());
        sink.show(PreviewItem::ToolUse(tool.name.clone())).await;
        tool_uses.push(tool);
    }
    Ok(ModelAnswer { text: line.text.clone(), tool_uses, usage: meter.free(), ..ModelAnswer::default() })
}

/// Shows `text` in pieces, spread over `delay`.
async fn stream(text: &str, delay: Duration, sink: &mut impl Sink, meter: &mut Meter) {
    let count = usize::try_from(delay.as_millis() / PIECE.as_millis()).unwrap_or(usize::MAX).max(PIECES_AT_ONCE);
    let pieces = pieces(text, count);
    let pause = delay / u32::try_from(pieces.len().max(1)).unwrap_or(u32::MAX);
    if pieces.is_empty() {
        tokio::time::sleep(delay).await;
    }
    for piece in pieces {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        meter.wrote(piece.len());
        sink.show(PreviewItem::Text(piece.to_owned())).await;
    }
}

/// At most `count` pieces of about the same length, cut between characters; none is empty.
pub(crate) fn pieces(text: &str, count: usize) -> Vec<&str> {
    let size = text.len().div_ceil(count.max(1)).max(1);
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(size));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

impl Call {
    fn tool_use(&self, ordinal: u64, at: usize) -> ToolUse {
        let arguments = match &self.arguments {
            None => "{}".to_owned(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        ToolUse { id: format!("call-{ordinal}-{at}"), name: self.name.clone(), arguments }
    }
}

impl Fault {
    fn failure(self) -> Failure {
        let (kind, what) = match self {
            Self::Throttled => (FailureKind::Throttled, "the provider asks to wait"),
            Self::Overflow => (FailureKind::Overflow, "the prompt is longer than the model can take"),
            Self::Timeout => (FailureKind::Timeout, "nothing came for too long"),
            Self::Interrupted => (FailureKind::Interrupted, "the stream broke off"),
            Self::InvalidJson => (FailureKind::InvalidJson, "the model's tool arguments are not JSON"),
        };
        Failure::new(kind, format!("{what} (scripted)"))
    }
}

#[cfg(test)]
mod tests;
