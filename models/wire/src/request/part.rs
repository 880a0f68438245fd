//! What a conversation is made of.

use ephor_base::ToolUse;

use super::{BadRequest, at_most};
use crate::{Grammar, json::is_object};

/// A message of a conversation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// What a person said or showed.
    User(Vec<Shown>),
    /// What the model answered, as [`crate::Answer::parts`] has it.
    Assistant(Vec<Part>),
    /// What came of the tools that it called.
    Results(Vec<ToolResult>),
}

/// What a model is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shown {
    /// Text.
    Text(String),
    /// A picture.
    Image(Image),
}

/// A part of what a model answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// What it says.
    Text(String),
    /// What it lets be seen of its thinking. It is not sent back as such; what a provider wants back is a [`State`].
    Thinking(String),
    /// A tool that it wants called.
    Call(ToolUse),
    /// What its provider wants back at this very place: before the part that it belongs to.
    State(State),
}

/// What a provider wants back with the next request, byte for byte: a thinking block with its signature, encrypted reasoning, a thought
/// signature. It says nothing to another provider, so a request in another grammar leaves it out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    grammar: Grammar,
    json: String,
}

impl State {
    /// The most bytes of one.
    pub const LONGEST: usize = 4 * 1024 * 1024;

    /// What a provider of `grammar` wants back: a JSON object.
    ///
    /// # Errors
    /// [`BadRequest`], if `json` is no object or too long.
    pub fn new(grammar: Grammar, json: impl Into<String>) -> Result<Self, BadRequest> {
        let json = json.into();
        at_most(json.len(), Self::LONGEST, "bytes of a provider's state")?;
        if is_object(&json) { Ok(Self { grammar, json }) } else { Err(BadRequest::NoObject("a provider's state")) }
    }

    /// Whose it is.
    #[must_use]
    pub const fn grammar(&self) -> Grammar {
        self.grammar
    }

    /// The object, as it came.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }
}

/// A picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Image {
    media_type: &'static str,
    bytes: Vec<u8>,
}

impl Image {
    /// The most bytes of a picture.
    pub const LARGEST: usize = 20 * 1024 * 1024;

    /// The types that models take.
    pub const TYPES: [&'static str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

    /// A picture of a media type, which is one of [`Image::TYPES`].
    ///
    /// # Errors
    /// [`BadRequest`], for another type and for a picture that is too large.
    pub fn new(media_type: &str, bytes: Vec<u8>) -> Result<Self, BadRequest> {
        at_most(bytes.len(), Self::LARGEST, "bytes of a picture")?;
        let known = Self::TYPES.into_iter().find(|known| *known == media_type);
        let media_type =
            known.ok_or_else(|| BadRequest::BadName(media_type.chars().take(64).collect(), "type of picture"))?;
        Ok(Self { media_type, bytes })
    }

    /// Its media type.
    #[must_use]
    pub const fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Whether a tool did what it was called for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ToolEnd {
    /// It did.
    #[default]
    Done,
    /// It failed, or was refused.
    Failed,
}

/// What came of a tool call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolResult {
    /// The call, as the model named it.
    pub id: String,
    /// The tool, by our name.
    pub name: String,
    /// How it ended.
    pub end: ToolEnd,
    /// What the model is shown of it.
    pub shown: Vec<Shown>,
}

impl ToolResult {
    /// The text of it, its parts one below the other.
    pub(crate) fn text(&self) -> String {
        joined(&self.shown)
    }

    pub(crate) fn images(&self) -> impl Iterator<Item = &Image> {
        images(&self.shown)
    }
}

/// The texts among `shown`, a blank line between them.
pub(crate) fn joined(shown: &[Shown]) -> String {
    let texts = shown.iter().filter_map(|part| if let Shown::Text(text) = part { Some(text.as_str()) } else { None });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The pictures among `shown`.
pub(crate) fn images(shown: &[Shown]) -> impl Iterator<Item = &Image> {
    shown.iter().filter_map(|part| if let Shown::Image(image) = part { Some(image) } else { None })
}

impl Message {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::User(shown) => shown_bytes(shown),
            Self::Assistant(parts) => parts.iter().map(Part::bytes).sum(),
            Self::Results(results) => {
                results.iter().map(|of| of.id.len() + of.name.len() + shown_bytes(&of.shown)).sum()
            }
        }
    }
}

fn shown_bytes(shown: &[Shown]) -> usize {
    let bytes = |part: &Shown| match part {
        Shown::Text(text) => text.len(),
        Shown::Image(image) => image.bytes.len(),
    };
    shown.iter().map(bytes).sum()
}

impl Part {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thinking(text) => text.len(),
            Self::Call(call) => call.id.len() + call.name.len() + call.arguments.len(),
            Self::State(state) => state.json.len(),
        }
    }
}
