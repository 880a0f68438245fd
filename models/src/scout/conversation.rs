//! What the messages say: the request, what was piped in, and what was done about it so far.

use ephor_base::{Integrity, Message, ModelTask, Source, Span};
use serde_json::Value;

/// A tool call that scout makes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Call {
    pub(super) tool: &'static str,
    /// JSON with sorted keys.
    pub(super) arguments: String,
}

/// What came of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Done {
    tool: String,
    arguments: Value,
    pub(super) failed: bool,
    pub(super) text: String,
}

/// The part of the messages that scout looks at.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Conversation {
    /// The trusted text of the last user message.
    pub(super) request: String,
    /// The trusted text of the user message before it.
    pub(super) before: Option<String>,
    /// The untrusted text of the last user message, if there is any.
    pub(super) piped: Option<String>,
    done: Vec<Done>,
    tools: Vec<String>,
}

impl Conversation {
    /// Reads the messages of `task`.
    pub(super) fn read(task: &ModelTask) -> Self {
        let mut read = Self {
            request: String::new(),
            before: None,
            piped: None,
            done: Vec::new(),
            tools: task.tools.iter().map(|tool| tool.name.to_string()).collect(),
        };
        let mut asked: Vec<(&str, &str, &str)> = Vec::new();
        for message in &task.messages {
            match message {
                Message::System(_) => {}
                Message::User(spans) => {
                    let before = std::mem::replace(&mut read.request, text(spans, Integrity::Trusted));
                    read.before = Some(before).filter(|before| !before.is_empty());
                    read.piped = Some(text(spans, Integrity::Untrusted)).filter(|piped| !piped.is_empty());
                    read.done.clear();
                    asked.clear();
                }
                Message::Assistant(answer) => {
                    asked.extend(answer.tool_uses.iter().map(|tool| (&*tool.id, &*tool.name, &*tool.arguments)));
                }
                Message::Tool { id, name, failed, spans } => {
                    let arguments = asked.iter().rev().find(|(asked, ..)| asked == id).map_or("", |(.., text)| text);
                    read.done.push(Done {
                        tool: name.clone(),
                        arguments: serde_json::from_str(arguments).unwrap_or_default(),
                        failed: *failed,
                        text: told(spans),
                    });
                }
            }
        }
        read
    }

    /// What came of `call`, if it was made.
    pub(super) fn result(&self, call: &Call) -> Option<&Done> {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        self.done.iter().rev().find(|done| done.tool == call.tool && done.arguments == arguments)
    }

    /// How many calls were made for this request.
    pub(super) const fn calls(&self) -> usize {
        self.done.len()
    }

    /// Whether `tool` may be called now.
    pub(super) fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|offered| offered == tool)
    }
}

/// What the tool itself said; a notice of the kernel beside it is no part of its result, and alone it is why there is none.
fn told(spans: &[Span]) -> String {
    let of_tool = spans.iter().any(|span| span.label.source == Source::Tool);
    let texts: Vec<&str> = spans
        .iter()
        .filter(|span| !of_tool || span.label.source == Source::Tool)
        .map(|span| span.text.as_str())
        .collect();
    texts.join("\n")
}

fn text(spans: &[Span], integrity: Integrity) -> String {
    let texts: Vec<&str> =
        spans.iter().filter(|span| span.label.integrity == integrity).map(|span| span.text.as_str()).collect();
    texts.join("\n")
}
