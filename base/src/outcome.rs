//! What came of a call that ran.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// How a permitted call ended. Every intent gets exactly one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The driver finished.
    #[n(0)]
    Done(#[n(0)] Product),
    /// The driver failed.
    #[n(1)]
    Failed(#[n(0)] Failure),
    /// It was stopped before it finished. Part of its effect may have happened.
    #[n(2)]
    Cancelled,
    /// The node died in between: nobody knows whether the effect happened.
    #[n(3)]
    Indeterminate,
}

impl Outcome {
    /// One word for the record.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Done(Product::Tool(answer)) if answer.failed => "tool_error",
            Self::Done(_) => "done",
            Self::Failed(failure) => failure.kind.code(),
            Self::Cancelled => "cancelled",
            Self::Indeterminate => "indeterminate",
        }
    }
}

/// What a driver made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum Product {
    /// A model's answer.
    #[n(0)]
    Model(#[n(0)] ModelAnswer),
    /// A tool's answer.
    #[n(1)]
    Tool(#[n(0)] ToolAnswer),
    /// A reply was handed to its channel.
    #[n(2)]
    Delivered,
}

/// A model's answer, whole.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Encode, Decode)]
pub struct ModelAnswer {
    /// Its text.
    #[n(0)]
    pub text: String,
    /// The tools it wants called, in order.
    #[n(1)]
    pub tool_uses: Vec<ToolUse>,
    /// Why it stopped.
    #[n(2)]
    pub stop: StopReason,
    /// The tokens it took.
    #[n(3)]
    pub usage: Usage,
}

/// A tool use, exactly as a model wrote it: nothing here is checked yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct ToolUse {
    /// The model's name for this use.
    #[n(0)]
    pub id: String,
    /// The tool's name, which may not exist.
    #[n(1)]
    pub name: String,
    /// JSON, if the model kept to it.
    #[n(2)]
    pub arguments: String,
}

/// Why a model stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said everything.
    #[default]
    #[n(0)]
    End,
    /// It wants tools called.
    #[n(1)]
    ToolUse,
    /// It reached the output limit.
    #[n(2)]
    Length,
    /// The provider's filter stopped it.
    #[n(3)]
    Filtered,
}

/// The tokens of one model call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Encode, Decode)]
pub struct Usage {
    /// Shown to the model.
    #[n(0)]
    pub input: u64,
    /// Written by it.
    #[n(1)]
    pub output: u64,
    /// Whether the provider said nothing, and this is bytes / 3, rounded up.
    #[n(2)]
    pub estimated: bool,
}

/// Tokens by the rule for providers that report none: bytes / 3, rounded up.
#[must_use]
pub const fn tokens_of(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(3)
}

/// A tool's answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct ToolAnswer {
    /// What the model is told.
    #[n(0)]
    pub text: String,
    /// Whether the tool says that it could not do it.
    #[n(1)]
    pub failed: bool,
}

/// Why a driver failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Failure {
    /// What kind of failure, for a program.
    #[n(0)]
    pub kind: FailureKind,
    /// What happened and what to do, for a person.
    #[n(1)]
    pub message: String,
}

impl Failure {
    /// A failure of `kind`, told in `message`.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

macro_rules! failure_kinds {
    ($($(#[$doc:meta])* $name:ident = $n:literal, $code:literal;)*) => {
        /// The kinds of failure of a driver.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, Encode, Decode)]
        #[cbor(index_only)]
        pub enum FailureKind {
            $($(#[$doc])* #[n($n)] #[serde(rename = $code)] $name,)*
        }

        impl FailureKind {
            /// One word for the record.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }
        }
    };
}

failure_kinds! {
    /// The provider asks to wait.
    Throttled = 0, "throttled";
    /// The prompt is longer than the model can take.
    Overflow = 1, "overflow";
    /// Nothing came for too long.
    Timeout = 2, "timeout";
    /// The stream broke off.
    Interrupted = 3, "interrupted";
    /// A model's tool arguments are not JSON.
    InvalidJson = 4, "invalid_json";
    /// The provider does not accept the key, or there is none.
    Unauthorized = 5, "unauthorized";
    /// The provider refuses the request, or answers with something that is not the protocol.
    Rejected = 6, "rejected";
    /// No connection.
    Unreachable = 7, "unreachable";
    /// The script has no line for this request.
    ScriptEnded = 8, "script_ended";
    /// The guest used up its fuel.
    Fuel = 9, "fuel";
    /// The run took longer than its deadline.
    Deadline = 10, "deadline";
    /// The guest asked for more memory than its cap.
    Memory = 11, "memory";
    /// The guest printed or answered more than its cap.
    Output = 12, "output";
    /// The guest trapped.
    Trap = 13, "trap";
    /// The driver panicked: a bug of ours.
    Crashed = 14, "crashed";
    /// The channel is gone: the reply was recorded and nobody took it.
    Undelivered = 15, "undelivered";
    /// The workspace is gone, or cannot be opened.
    Workspace = 16, "workspace";
}
