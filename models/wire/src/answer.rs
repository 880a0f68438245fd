//! What a model says.

use ephor_base::{AnswerEnd, ToolUse};

use crate::{Complaint, Part};

/// A piece of news while an answer comes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// More text.
    Text(String),
    /// More of what the model lets be seen of its thinking.
    Thinking(String),
    /// A tool is to be called: the `at`-th call of the answer, by our name.
    Call {
        /// Which call of the answer, from 0.
        at: usize,
        /// The tool.
        name: String,
    },
    /// More of the arguments of a call, as they came.
    Arguments {
        /// Which call of the answer.
        at: usize,
        /// A fragment of JSON, if the model kept to it.
        text: String,
    },
    /// What the provider reports so far. Its last word on each number counts.
    Reported(Reported),
}

/// What a provider says that a request took. Nothing of it is believed yet.
///
/// Providers count differently; here `cached` and `cache_written` are parts of `input`, and `reasoning` is a part of `output`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reported {
    /// Tokens shown to the model, cached ones included.
    pub input: Option<u64>,
    /// Tokens written by it, those of its thinking included.
    pub output: Option<u64>,
    /// Those of `input` that came from a cache.
    pub cached: Option<u64>,
    /// Those of `input` that were written into a cache.
    pub cache_written: Option<u64>,
    /// Those of `output` that are thinking.
    pub reasoning: Option<u64>,
}

impl Reported {
    /// What is known once `later` was said too.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        Self {
            input: later.input.or(self.input),
            output: later.output.or(self.output),
            cached: later.cached.or(self.cached),
            cache_written: later.cache_written.or(self.cache_written),
            reasoning: later.reasoning.or(self.reasoning),
        }
    }
}

/// How an answer ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The model has said what it wanted to, or wants tools called.
    Complete,
    /// It stopped in the middle.
    CutOff(Cut),
    /// The model, or a filter of its provider, refused to go on.
    Refused,
    /// The provider failed, or what it sent is not the grammar.
    Failed(Complaint),
}

/// What cut an answer off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// The most tokens of the request, or of the model.
    Tokens,
    /// The stream ended without saying how: the connection broke, and the same request may do better.
    Stream,
    /// A bound of [`crate::Limits`].
    Bound,
    /// A reason that is not known here. What is not known to be whole is not taken for it.
    Other,
}

impl End {
    /// As the record has it; nothing for an answer that failed.
    #[must_use]
    pub const fn recorded(&self) -> Option<AnswerEnd> {
        match self {
            Self::Complete => Some(AnswerEnd::Complete),
            Self::CutOff(_) => Some(AnswerEnd::CutOff),
            Self::Refused => Some(AnswerEnd::Refused),
            Self::Failed(_) => None,
        }
    }

    /// The better ends are the smaller.
    pub(crate) const fn rank(&self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::CutOff(_) => 1,
            Self::Refused => 2,
            Self::Failed(_) => 3,
        }
    }
}

/// A model's answer, whole or as far as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Its parts, in order; they go back as [`crate::Message::Assistant`].
    pub parts: Vec<Part>,
    /// How it ended.
    pub end: End,
    /// What its provider reports.
    pub reported: Reported,
}

impl Answer {
    /// Its text.
    #[must_use]
    pub fn text(&self) -> String {
        let text = |part: &Part| if let Part::Text(text) = part { Some(text.clone()) } else { None };
        self.parts.iter().filter_map(text).collect()
    }

    /// The tools that it wants called, in order. An answer that is not complete calls none: what was to be called may be cut off too.
    #[must_use]
    pub fn calls(&self) -> Vec<&ToolUse> {
        if self.end != End::Complete {
            return Vec::new();
        }
        self.parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None }).collect()
    }
}
