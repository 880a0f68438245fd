//! The answer, put together from its chunks.

use ephor_base::{Failure, FailureKind, ModelAnswer, StopReason, ToolUse};
use ephor_kernel::PreviewItem;
use serde::Deserialize;
use serde_json::Value;

use super::{failure::Complaint, names::Names};
use crate::{meter::Meter, sink::Sink};

/// The most tool calls of one answer. More than that is a server gone wrong.
const MOST_CALLS: usize = 1024;

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    /// A server that does not stream sends a whole message instead: a stream of one item.
    #[serde(alias = "message", default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    #[serde(default)]
    name: Option<String>,
    /// A string by the book; some servers send the object itself.
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
}

/// A tool call in the making.
#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    announced: bool,
}

/// An answer in the making.
#[derive(Debug)]
pub(crate) struct Assembly<'a> {
    names: &'a Names,
    host: &'a str,
    text: String,
    slots: Vec<Slot>,
    finish: Option<String>,
    done: bool,
}

impl<'a> Assembly<'a> {
    pub(crate) const fn new(names: &'a Names, host: &'a str) -> Self {
        Self { names, host, text: String::new(), slots: Vec::new(), finish: None, done: false }
    }

    /// Whether the server has said that nothing more comes.
    pub(crate) const fn is_done(&self) -> bool {
        self.done
    }

    /// Takes the data of one event.
    pub(crate) async fn push(&mut self, data: &str, sink: &mut impl Sink, meter: &mut Meter) -> Result<(), Failure> {
        let data = data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| self.not_the_protocol(&error.to_string()))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Complaint::of(&error).interruption(self.host));
        }
        if let Some(WireUsage { prompt_tokens: Some(input), completion_tokens }) = chunk.usage {
            meter.report(input, completion_tokens.unwrap_or(0));
        }
        // One answer was asked for, so there is one choice.
        let Some(choice) = chunk.choices.unwrap_or_default().into_iter().next() else { return Ok(()) };
        if let Some(delta) = choice.delta {
            self.delta(delta, sink, meter).await?;
        }
        if let Some(finish) = choice.finish_reason.filter(|finish| !finish.is_empty()) {
            self.finish = Some(finish);
        }
        Ok(())
    }

    async fn delta(&mut self, delta: Delta, sink: &mut impl Sink, meter: &mut Meter) -> Result<(), Failure> {
        for text in [delta.content, delta.refusal].into_iter().flatten().filter(|text| !text.is_empty()) {
            meter.wrote(text.len());
            self.text.push_str(&text);
            sink.show(PreviewItem::Text(text)).await;
        }
        for call in delta.tool_calls.unwrap_or_default() {
            let at = self.slot(&call);
            let names = self.names;
            if at >= MOST_CALLS {
                return Err(self.not_the_protocol("more tool calls than any model makes"));
            }
            let Some(slot) = self.slots.get_mut(at) else { continue };
            let before = slot.name.len() + slot.arguments.len();
            slot.add(call);
            meter.wrote((slot.name.len() + slot.arguments.len()).saturating_sub(before));
            // A name may come in pieces; once there are arguments it is whole.
            if !slot.arguments.is_empty() && !slot.announced {
                slot.announced = true;
                sink.show(PreviewItem::ToolUse(names.tool(&slot.name))).await;
            }
        }
        Ok(())
    }

    /// The place of `call` among the calls, made if it is a new one.
    ///
    /// By the book the index tells calls apart. Some servers send index 0 for every call and tell them apart by id; some
    /// send no index, and some neither.
    fn slot(&mut self, call: &CallDelta) -> usize {
        let id = call.id.as_deref().filter(|id| !id.is_empty());
        let name = call.function.as_ref().and_then(|function| function.name.as_deref()).filter(|name| !name.is_empty());
        let other_id = |slot: &Slot| id.is_some_and(|id| !slot.id.is_empty() && slot.id != id);
        let found = match (call.index, id) {
            (Some(index), _) => {
                let at = self.slots.iter().rposition(|slot| slot.index == Some(index) && !other_id(slot));
                // The index is known under another id, and this one names a tool: a call of its own.
                at.or_else(|| self.slots.iter().rposition(|slot| slot.index == Some(index) && name.is_none()))
            }
            (None, Some(id)) => self.slots.iter().rposition(|slot| slot.id == id),
            (None, None) if name.is_none() => self.slots.len().checked_sub(1),
            (None, None) => None,
        };
        found.unwrap_or_else(|| {
            self.slots.push(Slot { index: call.index, ..Slot::default() });
            self.slots.len() - 1
        })
    }

    /// The whole answer, once the stream is over.
    pub(crate) async fn finish(
        mut self,
        ordinal: u64,
        sink: &mut impl Sink,
        meter: &Meter,
    ) -> Result<ModelAnswer, Failure> {
        if self.finish.is_none() && !self.done {
            return Err(Failure::new(
                FailureKind::Interrupted,
                format!("`{}` ended the stream in the middle of its answer", self.host),
            ));
        }
        for slot in self.slots.iter().filter(|slot| !slot.announced) {
            sink.show(PreviewItem::ToolUse(self.names.tool(&slot.name))).await;
        }
        let names = self.names;
        let mut tool_uses: Vec<ToolUse> = Vec::with_capacity(self.slots.len());
        for (at, slot) in std::mem::take(&mut self.slots).into_iter().enumerate() {
            // An id that is missing or not the only one could not be answered.
            let is_own = !slot.id.is_empty() && tool_uses.iter().all(|earlier| earlier.id != slot.id);
            let id = if is_own { slot.id } else { format!("call-{ordinal}-{at}") };
            tool_uses.push(ToolUse { id, name: names.tool(&slot.name), arguments: slot.arguments });
        }
        let stop = match self.finish.as_deref() {
            Some("length") => StopReason::Length,
            Some("content_filter") => StopReason::Filtered,
            // Whatever the reason is called: "stop", "tool_calls", "function_call", or one of a server's own.
            _ if tool_uses.is_empty() => StopReason::End,
            _ => StopReason::ToolUse,
        };
        Ok(ModelAnswer { text: self.text, tool_uses, stop, usage: meter.whole() })
    }

    /// Ends the answer here, because it is longer than the request allows.
    pub(crate) fn cut(&mut self) {
        self.finish = Some("length".to_owned());
        self.done = true;
    }

    fn not_the_protocol(&self, why: &str) -> Failure {
        Failure::new(
            FailureKind::Rejected,
            format!("`{}` does not answer as Chat Completions does: {why}; check the base URL", self.host),
        )
    }
}

impl Slot {
    fn add(&mut self, call: CallDelta) {
        if let Some(id) = call.id.filter(|_| self.id.is_empty()) {
            self.id = id;
        }
        let Some(function) = call.function else { return };
        // Some servers repeat the name with every piece.
        if let Some(name) = function.name.filter(|name| *name != self.name && self.arguments.is_empty()) {
            self.name.push_str(&name);
        }
        match function.arguments {
            None | Some(Value::Null) => {}
            Some(Value::String(piece)) => self.arguments.push_str(&piece),
            Some(value) => self.arguments.push_str(&value.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
