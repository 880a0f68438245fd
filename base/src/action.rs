//! What a process asks of the door.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{Arguments, CallId, EndReason, SpanId, ToolName};

/// A request at the door. It names spans and answers; it never carries a label, a PID or an effect.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Ask the model of the seat.
    Model(ModelAction),
    /// Have it plan which acting calls the request of this turn needs, from what people typed and nothing else.
    Plan,
    /// Run a tool.
    Tool(ToolAction),
    /// Send a reply to the person of the session.
    Reply(ReplyAction),
}

impl Action {
    /// Which kind it is.
    #[must_use]
    pub const fn kind(&self) -> ActionKind {
        match self {
            Self::Model(_) | Self::Plan => ActionKind::Model,
            Self::Tool(_) => ActionKind::Tool,
            Self::Reply(_) => ActionKind::Reply,
        }
    }
}

/// The kinds of action, as they stand in the record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// A model request.
    #[n(0)]
    Model,
    /// A tool call.
    #[n(1)]
    Tool,
    /// A reply.
    #[n(2)]
    Reply,
}

/// A model request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelAction {
    /// What the model is shown.
    pub prompt: Prompt,
    /// Whether it may call the tools the seat is entitled to. The last round of a turn goes without.
    pub offer_tools: bool,
    /// The most tokens it may answer with.
    pub max_output_tokens: u64,
}

/// A prompt, as references into the session: the door turns them into labelled text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Prompt {
    /// In order, oldest first.
    pub messages: Vec<PromptMessage>,
}

/// One message of a prompt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PromptMessage {
    /// Instructions.
    System(Vec<SpanId>),
    /// What the person said.
    User(Vec<SpanId>),
    /// What the model answered in an earlier call.
    Answer(CallId),
    /// What came of the tool use number `index` of the model call `of`.
    Result {
        /// The model call.
        of: CallId,
        /// Which of its tool uses, from 0.
        index: u32,
        /// What the model is told.
        spans: Vec<SpanId>,
    },
}

/// A tool call.
#[derive(Clone, PartialEq, Debug)]
pub enum ToolAction {
    /// The tool use number `index` of the recorded answer of model call `by`, exactly as the model wrote it.
    Chosen {
        /// The model call.
        by: CallId,
        /// Which of its tool uses, from 0.
        index: u32,
    },
    /// A call that no model chose: by a driver, or by an agent's own code.
    Direct {
        /// The tool.
        name: ToolName,
        /// Its arguments; untrusted.
        arguments: Arguments,
    },
}

/// A reply: the text of a recorded answer, and how the turn ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplyAction {
    /// The model call whose text is the reply; none when the turn ends without one.
    pub answer: Option<CallId>,
    /// Why the turn ends.
    pub end: EndReason,
}
