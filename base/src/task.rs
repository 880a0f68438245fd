//! An action as the door has made it ready: every reference resolved, every argument canonical.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{Arguments, Limits, Located, ModelAnswer, Reply, Span, ToolName};

/// What a driver is given to do. It travels only inside a permit.
#[derive(Clone, PartialEq, Debug)]
pub enum Task {
    /// Ask a model.
    Model(ModelTask),
    /// Run a tool.
    Tool(ToolTask),
    /// Send a reply.
    Reply(ReplyTask),
}

/// A model request, ready to send.
#[derive(Clone, PartialEq, Debug)]
pub struct ModelTask {
    /// Which model.
    pub model: ModelRef,
    /// What it is shown, labelled.
    pub messages: Vec<Message>,
    /// The tools it may call.
    pub tools: Vec<ToolSpec>,
    /// The most tokens it may answer with.
    pub max_output_tokens: u64,
    /// How many answers of this kind, failures among them, the session has on record before this one.
    pub ordinal: u64,
    /// What for.
    pub purpose: Purpose,
}

/// What a model is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// To go on with the conversation.
    Converse,
    /// To plan which acting calls of the tools the last message needs. Its answer is a plan as JSON text.
    Plan,
}

/// Which model answers, as `provider/name` or `script:NAME`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ModelRef {
    /// Who serves it: `builtin`, `script`, or a provider by its name.
    pub provider: String,
    /// Its name there.
    pub name: String,
    /// The lines of a script, for the provider `script`; empty for every other.
    pub script: Arc<str>,
}

impl ModelRef {
    /// Whether it can be asked for a plan. A script can where it has a line for that.
    #[must_use]
    pub fn plans(&self) -> bool {
        self.provider != "script" || self.script.contains("\"plan\"")
    }
}

impl std::fmt::Display for ModelRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let separator = if self.provider == "script" { ':' } else { '/' };
        write!(f, "{}{separator}{}", self.provider, self.name)
    }
}

/// A message to a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Instructions.
    System(Vec<Span>),
    /// What the person said. Untrusted spans among them are data, not instructions.
    User(Vec<Span>),
    /// What the model said before.
    Assistant(Arc<ModelAnswer>),
    /// What came of a tool use.
    Tool {
        /// The tool use, as the model named it.
        id: String,
        /// The tool.
        name: String,
        /// Whether the tool failed or was refused.
        failed: bool,
        /// What it said.
        spans: Vec<Span>,
    },
}

/// A tool, as a model is told of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolSpec {
    /// Its name.
    pub name: ToolName,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments, as JSON text.
    pub schema: String,
}

/// A tool call, ready to run.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolTask {
    /// The tool.
    pub name: ToolName,
    /// Its arguments, valid against its schema.
    pub arguments: Arguments,
    /// Where those of its arguments lead that are paths: what was judged, and the only files that it names.
    pub files: Vec<Located>,
    /// The one folder it sees.
    pub workspace: Workspace,
    /// Whether it may write there.
    pub writes: bool,
    /// The caps.
    pub limits: Limits,
}

/// The folder an agent works in, as an absolute path in UTF-8: a record names it whole, and a rule compares it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Workspace(PathBuf);

impl Workspace {
    /// The workspace at `path`, if that is absolute and UTF-8.
    #[must_use]
    pub fn new(path: PathBuf) -> Option<Self> {
        (path.is_absolute() && path.to_str().is_some()).then_some(Self(path))
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// A reply, ready to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplyTask {
    /// The reply, whole.
    pub reply: Reply,
}
