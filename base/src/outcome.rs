//! What came of a call that ran.

use minicbor::{Decode, Decoder, Encode, decode::Error as Malformed};
use serde::{Deserialize, Serialize};

use crate::budget::sparse;

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
    /// The node died in between: whether the effect happened is not known.
    #[n(3)]
    Indeterminate,
}

impl Outcome {
    /// One word for the record.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Done(Product::Tool(answer)) if answer.failed => "tool_error",
            Self::Done(Product::Model(answer)) => answer.end.code(),
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
    /// How it ended. Of an incomplete one no tool is called, so it names none.
    #[cbor(n(2), decode_with = "AnswerEnd::decode_any")]
    pub end: AnswerEnd,
    /// The tokens it took.
    #[n(3)]
    pub usage: Usage,
    /// What its provider wants back with the next request, as the models' driver wrote it.
    #[n(4)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
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

/// How a model's answer ended. A request has four ends: these three, and a [`Failure`], which leaves no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum AnswerEnd {
    /// The model has said what it wanted to, or wants tools called.
    #[default]
    #[n(0)]
    Complete,
    /// It reached a limit in the middle.
    #[n(2)]
    CutOff,
    /// The model, or a filter of its provider, refused to go on.
    #[n(3)]
    Refused,
}

impl AnswerEnd {
    /// One word for the record.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Complete => "done",
            Self::CutOff => "cut_off",
            Self::Refused => "refused",
        }
    }

    /// Records of earlier versions say 1 of an answer that wants tools called.
    fn decode_any<C>(from: &mut Decoder<'_>, context: &mut C) -> Result<Self, Malformed> {
        if matches!(from.probe().u8(), Ok(1)) {
            from.skip().map(|()| Self::Complete)
        } else {
            Self::decode(from, context)
        }
    }
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
    /// Whether the provider said nothing that can be true, and this is bytes / 3, rounded up.
    #[n(2)]
    pub estimated: bool,
    /// Those of `input` that the provider had in a cache.
    #[cbor(n(3), with = "sparse", has_nil)]
    #[serde(default)]
    pub cached: u64,
    /// Those of `output` that are not shown.
    #[cbor(n(4), with = "sparse", has_nil)]
    #[serde(default)]
    pub reasoning: u64,
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
    #[n(1)]
    message: String,
    /// The HTTP status that a server answered with.
    #[n(2)]
    #[serde(default)]
    pub status: Option<u16>,
    /// For how many seconds a server asks to be left alone.
    #[n(3)]
    #[serde(default)]
    pub retry_after: Option<u32>,
}

impl Failure {
    /// The most bytes of a message. What is longer is cut at its end, since the first words say most.
    pub const LONGEST: usize = 2000;

    /// A failure of `kind`, told in `message`.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > Self::LONGEST {
            message.truncate(message.floor_char_boundary(Self::LONGEST - '…'.len_utf8()));
            message.push('…');
        }
        Self { kind, message, status: None, retry_after: None }
    }

    /// What happened and what to do, for a person.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Whether the same request may do better later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// It fails again.
    Never,
    /// Once more, since a model may write something else.
    Once,
    /// After a while, since what is in its way may pass.
    Later,
}

macro_rules! failure_kinds {
    ($($(#[$doc:meta])* $name:ident = $n:literal, $code:literal, $words:literal, $retry:ident;)*) => {
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

            /// A few words for a person, as a sentence begins.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }

            /// Whether the same request may do better later.
            #[must_use]
            pub const fn retry(self) -> Retry {
                match self { $(Self::$name => Retry::$retry,)* }
            }
        }
    };
}

failure_kinds! {
    /// The provider asks to wait.
    Throttled = 0, "throttled", "Rate limit", Later;
    /// The prompt is longer than the model can take.
    Overflow = 1, "overflow", "Prompt too long", Never;
    /// Nothing came for too long.
    Timeout = 2, "timeout", "Timeout", Later;
    /// The stream broke off, or held nothing.
    Interrupted = 3, "interrupted", "Connection lost", Later;
    /// A model's tool arguments are not JSON.
    InvalidJson = 4, "invalid_json", "Arguments that are no JSON", Once;
    /// The provider does not accept the key, or there is none.
    Unauthorized = 5, "unauthorized", "Key not accepted", Never;
    /// The provider refuses the request, or answers with something that is not the protocol.
    Rejected = 6, "rejected", "Request rejected", Never;
    /// No connection.
    Unreachable = 7, "unreachable", "No connection", Never;
    /// The script has no line for this request.
    ScriptEnded = 8, "script_ended", "End of the script", Never;
    /// The guest used up its fuel.
    Fuel = 9, "fuel", "Out of fuel", Never;
    /// The run took longer than its deadline.
    Deadline = 10, "deadline", "Deadline passed", Never;
    /// The guest asked for more memory than its cap.
    Memory = 11, "memory", "Out of memory", Never;
    /// The guest printed or answered more than its cap.
    Output = 12, "output", "Too much output", Never;
    /// The guest trapped.
    Trap = 13, "trap", "Trap", Never;
    /// The driver panicked: a bug of ours.
    Crashed = 14, "crashed", "Crash of the driver", Never;
    /// The channel is gone: the reply was recorded and not taken.
    Undelivered = 15, "undelivered", "Not delivered", Never;
    /// The workspace is gone, or cannot be opened.
    Workspace = 16, "workspace", "No workspace", Never;
    /// The account at the provider has no credit left.
    Quota = 17, "quota", "Quota spent", Never;
    /// The provider knows the key and forbids the request.
    Forbidden = 18, "forbidden", "Forbidden", Never;
    /// The provider failed.
    ServerError = 19, "server_error", "Server error", Later;
    /// The driver reports to have used more than it could: nothing of what it says is believed.
    Overrun = 20, "overrun", "Use not believed", Never;
}
