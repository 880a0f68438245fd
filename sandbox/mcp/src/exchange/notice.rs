//! What a server says that is no answer.

use ephor_base::arguments::Value;

use crate::{
    limits::Limits,
    untrusted::{Untrusted, beginning},
    wire::{Fields, to_bytes},
};

/// How often a server has said what. All but `changes` and `pings` is against the protocol or of no use here, and was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Notices {
    /// That its tools have changed.
    pub changes: u64,
    /// Pings, which are answered.
    pub pings: u64,
    /// Requests that are refused, such as for a model or a person's words.
    pub refused: u64,
    /// Requests that were left without an answer, since too many waited to be written.
    pub unanswered: u64,
    /// What is no message: no JSON, no UTF-8, no JSON-RPC, too deep, too many values.
    pub malformed: u64,
    /// Answers to requests that have been answered, or were given up.
    pub late: u64,
    /// Answers to what was never asked, or on the channel of another request.
    pub stray: u64,
    /// Log messages that were dropped for newer ones.
    pub logs_lost: u64,
    /// Other notifications, and those that name no request that waits, go backwards or are of another form.
    pub others: u64,
}

impl Notices {
    pub(super) const NONE: Self = Self {
        changes: 0,
        pings: 0,
        refused: 0,
        unanswered: 0,
        malformed: 0,
        late: 0,
        stray: 0,
        logs_lost: 0,
        others: 0,
    };
}

/// How far a call has come, as its server says.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// How much is done, in units of the server; more than it said before.
    pub done: f64,
    /// Of how much.
    pub total: Option<f64>,
    /// In words, cut to [`Limits::text_bytes`].
    pub message: Option<Untrusted<String>>,
    /// How many before it were dropped, in all.
    pub missed: u64,
}

fn number(value: Option<Value>) -> Option<f64> {
    match value? {
        Value::Float(number) => Some(number),
        #[expect(clippy::cast_precision_loss, reason = "a share of progress is shown to a person")]
        Value::Integer(number) => Some(number as f64),
        _ => None,
    }
}

impl Progress {
    /// The request and how far it is.
    pub(super) fn read(params: Value, limits: &Limits) -> Option<(u64, Self)> {
        let mut fields = Fields::of(params, "params").ok()?;
        let token = if let Some(Value::Integer(token)) = fields.take("progressToken") { token } else { return None };
        let done = number(fields.take("progress"))?;
        let total = number(fields.take("total"));
        let message = fields.text("message").ok()?.map(|text| Untrusted::new(beginning(&text, limits.text_bytes)));
        Some((u64::try_from(token).ok()?, Self { done, total, message, missed: 0 }))
    }
}

/// A log message of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Log {
    /// How severe, as the server says.
    pub level: Untrusted<String>,
    /// Its text, or its data as JSON; cut to [`Limits::text_bytes`].
    pub text: Untrusted<String>,
}

impl Log {
    pub(super) fn read(params: Value, limits: &Limits) -> Option<Self> {
        let mut fields = Fields::of(params, "params").ok()?;
        let level = Untrusted::new(beginning(&fields.required_text("level").ok()?, 32));
        let text = match fields.take("data")? {
            Value::Text(text) => beginning(&text, limits.text_bytes),
            data => beginning(&String::from_utf8(to_bytes(&data)).unwrap_or_default(), limits.text_bytes),
        };
        Some(Self { level, text: Untrusted::new(text) })
    }
}
