//! Messages of JSON-RPC 2.0, as MCP narrows them.

use ephor_base::arguments::Value;

use super::json::{Fields, Lie, Malformed, object, read, to_bytes};
use crate::{
    limits::Limits,
    untrusted::{Untrusted, beginning},
};

/// The most bytes of an id that a server gives to a request of its own: it is sent back.
const ID_BYTES: usize = 256;

/// A message of a server.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// An answer to a request of ours.
    Answer {
        /// The request; none where the server could not tell, or names one that cannot be ours, which are whole numbers.
        id: Option<u64>,
        /// What it says.
        returned: Returned,
    },
    /// A request of the server.
    Request {
        /// What the server calls it: a string or a whole number.
        id: Value,
        /// What it wants.
        method: String,
    },
    /// A notification.
    Notification {
        /// Of what.
        method: String,
        /// With what.
        params: Option<Value>,
    },
}

/// What an answer says.
#[derive(Clone, PartialEq, Debug)]
pub enum Returned {
    /// A result.
    Result(Value),
    /// The server refuses.
    Refusal(Refusal),
    /// Neither, or both.
    Lie(Lie),
}

/// A server's refusal of a request.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("the server refuses with code {code}: {}", message.legible())]
pub struct Refusal {
    /// JSON-RPC's code, or the server's own.
    pub code: i64,
    /// Its words, cut to [`Limits::text_bytes`].
    pub message: Untrusted<String>,
    /// The protocol revisions that it says it speaks, where it refuses ours.
    pub(crate) supported: Vec<String>,
}

/// Reads the messages of one line, or of one event or body: one, or a batch of some (revision 2025-03-26).
///
/// # Errors
/// [`Malformed`], if any of it is no message, or an empty batch.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Vec<Message>, Malformed> {
    match read(bytes, limits)? {
        Value::List(values) if values.is_empty() => Err(Lie::new("message", "a message").into()),
        Value::List(values) => values.into_iter().map(|value| Ok(message(value, limits)?)).collect(),
        value => Ok(vec![message(value, limits)?]),
    }
}

fn message(value: Value, limits: &Limits) -> Result<Message, Lie> {
    let mut fields = Fields::of(value, "message")?;
    let versioned = match fields.text("jsonrpc") {
        Ok(Some(version)) if version == "2.0" => Ok(()),
        _ => Err(Lie::new("message.jsonrpc", "\"2.0\"")),
    };
    if !fields.has("method") {
        return answer(fields, versioned, limits);
    }
    versioned?;
    let method = fields.required_text("method")?;
    if !fields.has("id") {
        return Ok(Message::Notification { method, params: fields.take("params") });
    }
    match fields.take("id") {
        Some(id @ Value::Integer(_)) => Ok(Message::Request { id, method }),
        Some(Value::Text(id)) if id.len() <= ID_BYTES => Ok(Message::Request { id: Value::Text(id), method }),
        _ => Err(Lie::new("message.id", "a whole number or a short string")),
    }
}

fn answer(mut fields: Fields, versioned: Result<(), Lie>, limits: &Limits) -> Result<Message, Lie> {
    if !["id", "result", "error"].into_iter().any(|name| fields.has(name)) {
        return Err(Lie::new("message", "a request, a notification or an answer"));
    }
    let id = match fields.take("id") {
        Some(Value::Integer(id)) => u64::try_from(id).ok(),
        _ => None,
    };
    let returned = versioned.and_then(|()| returned(&mut fields, limits)).unwrap_or_else(Returned::Lie);
    Ok(Message::Answer { id, returned })
}

fn returned(fields: &mut Fields, limits: &Limits) -> Result<Returned, Lie> {
    match (fields.take("result"), fields.take("error")) {
        (Some(result @ Value::Object(_)), None) => Ok(Returned::Result(result)),
        (Some(_), None) => Err(Lie::new("message.result", "an object")),
        (None, Some(error)) => Ok(Returned::Refusal(refusal(error, limits)?)),
        _ => Err(Lie::new("message", "an answer with either a result or an error")),
    }
}

fn refusal(error: Value, limits: &Limits) -> Result<Refusal, Lie> {
    let mut fields = Fields::of(error, "message.error")?;
    let code = match fields.take("code") {
        Some(Value::Integer(code)) => i64::try_from(code).ok(),
        _ => None,
    };
    let code = code.ok_or_else(|| Lie::new("message.error.code", "a whole number"))?;
    let message = fields.required_text("message")?;
    let supported = match fields.take("data") {
        Some(Value::Object(mut data)) => match data.remove("supported") {
            Some(Value::List(values)) => revisions(values),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    Ok(Refusal { code, message: Untrusted::new(beginning(&message, limits.text_bytes)), supported })
}

/// The first few short strings of a list.
fn revisions(values: Vec<Value>) -> Vec<String> {
    let short =
        |value: Value| if let Value::Text(text) = value { Some(text).filter(|text| text.len() <= 32) } else { None };
    values.into_iter().filter_map(short).take(16).collect()
}

fn number(id: u64) -> Value {
    Value::Integer(id.into())
}

/// A request of ours.
pub(crate) fn request(id: u64, method: &str, params: Value) -> Vec<u8> {
    to_bytes(&object([
        ("jsonrpc", Value::Text("2.0".into())),
        ("id", number(id)),
        ("method", Value::Text(method.into())),
        ("params", params),
    ]))
}

/// A notification of ours.
pub(crate) fn notification(method: &str, params: Option<Value>) -> Vec<u8> {
    let head = object([("jsonrpc", Value::Text("2.0".into())), ("method", Value::Text(method.into()))]);
    let Value::Object(mut map) = head else { return Vec::new() };
    map.extend(params.map(|params| ("params".to_owned(), params)));
    to_bytes(&Value::Object(map))
}

/// An empty result for a request of the server.
pub(crate) fn reply(id: Value) -> Vec<u8> {
    to_bytes(&object([("jsonrpc", Value::Text("2.0".into())), ("id", id), ("result", object([]))]))
}

/// The refusal of a request of the server: this client offers nothing to it.
pub(crate) fn unsupported(id: Value) -> Vec<u8> {
    let message = Value::Text("this client answers no requests but ping".into());
    let error = object([("code", Value::Integer(-32601)), ("message", message)]);
    to_bytes(&object([("jsonrpc", Value::Text("2.0".into())), ("id", id), ("error", error)]))
}
