//! One chunk of an answer, as servers really write it.
//!
//! A field of another type than expected counts as absent, so that one odd field does not cost an answer. What is no chunk at all is
//! told from that: see [`Chunk::is_one`].

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::meter::Reported;

#[derive(Deserialize)]
pub(super) struct Chunk {
    #[serde(default, deserialize_with = "present")]
    choices: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Map<String, Value>>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The first choice of a chunk; one answer was asked for.
#[derive(Deserialize, Default)]
pub(super) struct Choice {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) delta: Option<Delta>,
    /// The whole message: all there is where a server does not stream, and the sum of it all in the last chunk of some that do.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Option<Delta>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
pub(super) struct Delta {
    #[serde(default)]
    content: Value,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) refusal: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    tool_calls: Option<Vec<Value>>,
    /// Whatever else a server says, such as what the model thinks. It is not shown, and counts.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct WireCall {
    #[serde(default)]
    index: Value,
    #[serde(default)]
    id: Value,
    #[serde(default, deserialize_with = "lenient")]
    function: Option<WireFunction>,
}

#[derive(Deserialize, Default)]
struct WireFunction {
    #[serde(default, deserialize_with = "lenient")]
    name: Option<String>,
    /// A string by the book; some servers send the object itself.
    #[serde(default)]
    arguments: Value,
}

/// A piece of a tool call. What is empty says nothing.
#[derive(Debug, Default)]
pub(super) struct CallPiece {
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    Ok(T::deserialize(Value::deserialize(from)?).ok())
}

/// Tells null from nothing.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// A count, however it is written: `5` or `5.0`. Nothing for what is negative, has a fraction, or is no number.
fn whole(value: Option<&Value>) -> Option<u64> {
    /// From here on not every whole number is a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let value = value?;
    let float = || value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=EXACT).contains(number));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole, not negative and exact")]
    let exact = || float().map(|number| number as u64);
    value.as_u64().or_else(exact)
}

impl Chunk {
    /// Whether it is a chunk, or the whole of an answer: there are choices, or null in their place, or the usage.
    pub(super) fn is_one(&self) -> bool {
        matches!(self.choices, Some(Value::Array(_) | Value::Null)) || self.usage.is_some() || self.is_ping()
    }

    /// Some servers fill pauses with an object that says nothing.
    fn is_ping(&self) -> bool {
        self.choices.is_none() && self.rest.is_empty()
    }

    /// The error that stands in its place.
    pub(super) fn error(&self) -> Option<Value> {
        let is_error = |value: &&Value| !value.is_null() && **value != Value::Bool(false);
        if let Some(error) = self.rest.get("error").filter(is_error) {
            return Some(error.clone());
        }
        let complains = ["message", "detail"].iter().any(|key| self.rest.get(*key).is_some_and(Value::is_string));
        (self.choices.is_none() && complains).then(|| self.rest.clone().into())
    }

    pub(super) fn usage(&self) -> Option<Reported> {
        let usage = self.usage.as_ref()?;
        let detail = |object: &str, name: &str| whole(usage.get(object).and_then(|object| object.get(name)));
        Some(Reported {
            input: whole(usage.get("prompt_tokens")),
            output: whole(usage.get("completion_tokens")),
            cached: detail("prompt_tokens_details", "cached_tokens"),
            reasoning: detail("completion_tokens_details", "reasoning_tokens"),
        })
    }

    pub(super) fn into_choice(self) -> Option<Choice> {
        let Some(Value::Array(choices)) = self.choices else { return None };
        choices.into_iter().next().and_then(|first| Choice::deserialize(first).ok())
    }
}

impl Delta {
    /// Whether it says any part of an answer.
    pub(super) fn says_something(&self) -> bool {
        !self.text().is_empty()
            || self.refusal.as_ref().is_some_and(|text| !text.is_empty())
            || self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty())
    }

    /// The text: a string, or those parts of a list that are text.
    pub(super) fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().filter_map(text_of).collect(),
            _ => String::new(),
        }
    }

    /// The bytes of what is not shown.
    pub(super) fn unseen(&self) -> usize {
        let parts = self.content.as_array().into_iter().flatten().filter(|part| text_of(part).is_none());
        let others = self.rest.iter().filter(|(name, _)| *name != "role").filter_map(|(_, value)| value.as_str());
        parts.map(|part| part.to_string().len()).sum::<usize>() + others.map(str::len).sum::<usize>()
    }

    pub(super) fn take_calls(&mut self) -> impl Iterator<Item = CallPiece> + use<> {
        let calls = self.tool_calls.take().unwrap_or_default();
        calls.into_iter().filter_map(|call| WireCall::deserialize(call).ok()).map(CallPiece::from)
    }
}

fn text_of(part: &Value) -> Option<&str> {
    if let Value::String(text) = part {
        return Some(text);
    }
    let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
    let text = part.get("text").filter(|_| kind.ends_with("text"))?;
    text.as_str().or_else(|| text.get("value")?.as_str())
}

impl From<WireCall> for CallPiece {
    fn from(call: WireCall) -> Self {
        let text = |value: Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text,
            value => value.to_string(),
        };
        let function = call.function.unwrap_or_default();
        Self {
            index: whole(Some(&call.index)),
            id: text(call.id),
            name: function.name.unwrap_or_default(),
            arguments: text(function.arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::whole;

    #[test]
    fn a_count_is_a_whole_number_however_it_is_written() {
        for (value, count) in [
            (json!(5), Some(5)),
            (json!(5.0), Some(5)),
            (json!(0), Some(0)),
            (json!(u64::MAX), Some(u64::MAX)),
            (json!(-1), None),
            (json!(-0.5), None),
            (json!(1.5), None),
            (json!(1e300), None),
            (json!("7"), None),
            (json!(null), None),
            (json!([]), None),
        ] {
            assert_eq!(whole(Some(&value)), count, "{value}");
        }
        assert_eq!(whole(None), None);
    }
}
