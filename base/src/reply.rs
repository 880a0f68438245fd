//! What a turn ends with.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{FailureKind, Receipt, Resource, SessionId};

/// The end of a turn, as the person gets it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The conversation.
    pub session: SessionId,
    /// The text.
    pub text: String,
    /// Why the turn ended.
    pub end: EndReason,
    /// One for each call of the turn, in the order they ended.
    pub receipts: Vec<Receipt>,
    /// Its figures.
    pub report: TurnReport,
}

/// Why a turn ended: always exactly one of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The model answered.
    #[n(0)]
    Replied,
    /// The person stopped it.
    #[n(1)]
    Cancelled,
    /// A budget of the seat is spent.
    #[n(2)]
    BudgetSpent(#[n(0)] Resource),
    /// A limit of the turn was met.
    #[n(3)]
    LimitHit(#[n(0)] TurnLimit),
    /// A model request failed and could not be repeated.
    #[n(4)]
    Failed(#[n(0)] FailureKind),
    /// The gate refused the model request or the reply itself.
    #[n(5)]
    Refused,
    /// The process crashed more often than its supervisor allows.
    #[n(6)]
    Crashed,
    /// The model answered, and was cut off in the middle.
    #[n(7)]
    CutOff,
    /// The model, or a filter of its provider, refused to go on.
    #[n(8)]
    ModelRefused,
}

impl EndReason {
    /// One or two words for the footer and the record.
    #[must_use]
    pub fn code(&self) -> String {
        match self {
            Self::Replied => "replied".into(),
            Self::Cancelled => "cancelled".into(),
            Self::BudgetSpent(_) => "budget_spent".into(),
            Self::LimitHit(limit) => format!("limit_hit({})", limit.code()),
            Self::Failed(kind) => format!("failed({})", kind.code()),
            Self::Refused => "refused".into(),
            Self::Crashed => "crashed".into(),
            Self::CutOff => "cut_off".into(),
            Self::ModelRefused => "model_refused".into(),
        }
    }
}

/// The limits of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum TurnLimit {
    /// Rounds of tool calls.
    #[n(0)]
    Rounds,
    /// Time for the whole turn.
    #[n(1)]
    Time,
    /// Calls of tools that do not exist.
    #[n(2)]
    UnknownTools,
    /// The same call with the same result.
    #[n(3)]
    Repeats,
    /// Calls of any kind, refused ones among them.
    #[n(4)]
    Calls,
}

impl TurnLimit {
    /// One word for the record.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Rounds => "rounds",
            Self::Time => "time",
            Self::UnknownTools => "unknown_tools",
            Self::Repeats => "repeats",
            Self::Calls => "calls",
        }
    }
}

/// The figures of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct TurnReport {
    /// Model requests sent, repeats among them.
    #[n(0)]
    pub requests: u32,
    /// Model requests that were answered.
    #[n(1)]
    pub cycles: u32,
    /// Tool calls that ran.
    #[n(2)]
    pub tool_calls: u32,
    /// Tokens shown to models.
    #[n(3)]
    pub input_tokens: u64,
    /// Tokens written by models.
    #[n(4)]
    pub output_tokens: u64,
    /// From the message to the end, in milliseconds.
    #[n(5)]
    pub duration_ms: u64,
}
