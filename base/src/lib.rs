//! The words everyone uses.
//!
//! Every noun of the system that crosses a crate boundary is here, once: ids, labels, spans, prompts, actions,
//! registrations, verdicts, intents, outcomes, receipts, replies, effects, budgets, digests and secrets, the canonical
//! encoding that makes digests mean something, and the traits through which time, randomness and files are injected.
//!
//! This crate never performs I/O, never reads a clock and holds no authority: everything in it is plain data, except
//! [`Secret`], which exists so that a secret is never printed by accident.
//!
//! Where to go next: `governance` turns an [`Action`] into a [`Verdict`], `chain` records it, `kernel` runs it.

pub mod action;
pub mod arguments;
pub mod budget;
pub mod cbor;
pub mod clock;
pub mod digest;
pub mod effect;
pub mod envelope;
pub mod exit;
pub mod files;
pub mod id;
pub mod label;
pub mod legible;
pub mod located;
pub mod outcome;
pub mod random;
pub mod receipt;
pub mod registration;
pub mod reply;
pub mod secret;
pub mod task;
pub mod verdict;

pub use action::{Action, ActionKind, ModelAction, Prompt, PromptMessage, ReplyAction, ToolAction};
pub use arguments::{Arguments, MalformedArguments};
pub use budget::{Budget, Exhausted, Resource};
pub use clock::{Clock, Offset, Timestamp};
pub use digest::Digest;
pub use effect::{EffectVector, PerMille};
pub use envelope::{Envelope, Part, PartKind};
pub use exit::ExitReason;
pub use id::{CallId, MessageId, OperatorId, Pid, Seat, Seq, SessionId, SpanId, TicketId};
pub use label::{Confidentiality, Integrity, Label, Source};
pub use located::{
    BadDifference, Difference, FileId, Form, Kept, Leads, Located, MOST_KEPT, MOST_KEPT_IN_SESSION, Makes, Place,
};
pub use outcome::{AnswerEnd, Failure, FailureKind, ModelAnswer, Outcome, Product, Retry, ToolAnswer, ToolUse, Usage};
pub use random::Random;
pub use receipt::Receipt;
pub use registration::{
    ArgumentRule, Capability, Destinations, Flow, Format, Limits, Match, Paging, Reach, Registration, Repeat, ToolName,
};
pub use reply::{EndReason, Reply, TurnLimit, TurnReport};
pub use secret::Secret;
pub use task::{Message, ModelRef, ModelTask, Purpose, ReplyTask, Task, ToolSpec, ToolTask, Workspace};
pub use verdict::{Branch, Decision, Reason, Verdict};

/// A piece of text with the label the door gave it.
pub use label::Span;
