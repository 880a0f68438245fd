//! What a model is asked, in every grammar alike. Every type is bounded by its constructor.

mod names;
mod part;

use ephor_base::ToolSpec;

use crate::json::is_object;

pub(crate) use names::wire_id;
pub use names::{tool_of, wire_name};
pub use part::{Image, Message, Part, Shown, State, ToolEnd, ToolResult};
pub(crate) use part::{images, joined};

/// A request that is larger than any provider takes, or holds what none can read. Nothing was made of it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadRequest {
    /// There is more of something than there may be.
    #[error("a request has {there} {what}, and may have {most}")]
    TooMuch {
        /// Of what, in the plural.
        what: &'static str,
        /// How much there is.
        there: usize,
        /// How much there may be.
        most: usize,
    },
    /// A text that is to be a JSON object is none.
    #[error("{0} is not a JSON object")]
    NoObject(&'static str),
    /// A name that cannot stand in a request.
    #[error("`{0}` cannot name a {1}")]
    BadName(String, &'static str),
    /// A number outside of its range.
    #[error("{what} is {there}, and may be {least} to {most}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// What it is.
        there: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
}

/// Refuses what is more than `most`.
const fn at_most(there: usize, most: usize, what: &'static str) -> Result<(), BadRequest> {
    if there > most { Err(BadRequest::TooMuch { what, there, most }) } else { Ok(()) }
}

/// The name of a model, as its provider has it: 1 to 256 graphic characters of ASCII without `?`, `#`, `%` and `\`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ModelName(String);

impl ModelName {
    /// The most bytes of a name.
    pub const LONGEST: usize = 256;

    /// A name.
    ///
    /// # Errors
    /// [`BadRequest::BadName`], for a name that no provider has.
    pub fn new(name: impl Into<String>) -> Result<Self, BadRequest> {
        let name = name.into();
        let fits = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '%' | '\\');
        if (1..=Self::LONGEST).contains(&name.len()) && name.chars().all(fits) {
            return Ok(Self(name));
        }
        let shown = name.chars().take(Self::LONGEST).collect();
        Err(BadRequest::BadName(shown, "model"))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A JSON schema that an answer is held to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schema {
    name: String,
    json: String,
}

impl Schema {
    /// The most bytes of a schema.
    pub const LONGEST: usize = 256 * 1024;

    /// The schema `json`, under a name of 1 to 64 of a–z, A–Z, 0–9, `_` and `-`.
    ///
    /// # Errors
    /// [`BadRequest`], if the name does not fit, or `json` is no object or too long.
    pub fn new(name: impl Into<String>, json: impl Into<String>) -> Result<Self, BadRequest> {
        let (name, json) = (name.into(), json.into());
        if !names::fits(&name) {
            return Err(BadRequest::BadName(name.chars().take(names::LONGEST).collect(), "schema"));
        }
        at_most(json.len(), Self::LONGEST, "bytes of a schema")?;
        if is_object(&json) { Ok(Self { name, json }) } else { Err(BadRequest::NoObject("a schema")) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn json(&self) -> &str {
        &self.json
    }
}

/// The form of an answer. A grammar or a server that cannot hold an answer to it passes over it, so the reader checks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Output {
    /// Text as the model likes it.
    #[default]
    Free,
    /// A JSON object.
    JsonObject,
    /// JSON of a schema.
    Json(Schema),
}

/// How the next token is picked; what is not said the provider decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sampling {
    temperature: Option<u16>,
    top_p: Option<u16>,
}

impl Sampling {
    /// With this temperature, in thousandths: 0 to 2,000.
    ///
    /// # Errors
    /// [`BadRequest::OutOfRange`].
    pub fn temperature(self, thousandths: u16) -> Result<Self, BadRequest> {
        in_range("the temperature", thousandths.into(), 0, 2000)?;
        Ok(Self { temperature: Some(thousandths), ..self })
    }

    /// From the likeliest tokens that make up so many thousandths: 1 to 1,000.
    ///
    /// # Errors
    /// [`BadRequest::OutOfRange`].
    pub fn top_p(self, thousandths: u16) -> Result<Self, BadRequest> {
        in_range("top-p", thousandths.into(), 1, 1000)?;
        Ok(Self { top_p: Some(thousandths), ..self })
    }

    pub(crate) const fn parts(self) -> (Option<u16>, Option<u16>) {
        (self.temperature, self.top_p)
    }
}

const fn in_range(what: &'static str, there: u64, least: u64, most: u64) -> Result<(), BadRequest> {
    if there < least || there > most { Err(BadRequest::OutOfRange { what, there, least, most }) } else { Ok(()) }
}

/// How much a model thinks before it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Thinking {
    /// As the provider has it.
    #[default]
    Unsaid,
    /// Not at all, where the model can leave it.
    Off,
    /// So hard; for models that decide themselves how long.
    Effort(Effort),
    /// At most so many tokens; for models that are told. Grammars that know no such number only turn thinking on.
    Budget(u32),
}

/// How hard a model thinks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Effort {
    /// A little.
    Low,
    /// As much as usual.
    Medium,
    /// Much.
    High,
}

impl Effort {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// How an answer is to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Delivery {
    /// In pieces.
    #[default]
    Streamed,
    /// In one.
    Whole,
}

/// Whether a provider is asked to keep the beginning of a request for the next one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Cache {
    /// It does as it likes.
    #[default]
    Unsaid,
    /// Tools, instructions and the conversation so far come again. The key, 1 to 64 bytes, is the same for requests with the same
    /// beginning; it is sent where a provider routes by one.
    Conversation(CacheKey),
}

/// Names requests that begin alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheKey(String);

impl CacheKey {
    /// A key of 1 to 64 of a–z, A–Z, 0–9, `_` and `-`.
    ///
    /// # Errors
    /// [`BadRequest::BadName`].
    pub fn new(key: impl Into<String>) -> Result<Self, BadRequest> {
        let key = key.into();
        if names::fits(&key) {
            Ok(Self(key))
        } else {
            Err(BadRequest::BadName(key.chars().take(64).collect(), "cache"))
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    pub(crate) model: ModelName,
    pub(crate) instructions: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) max_output_tokens: u32,
    pub(crate) output: Output,
    pub(crate) sampling: Sampling,
    pub(crate) thinking: Thinking,
    pub(crate) delivery: Delivery,
    pub(crate) cache: Cache,
}

impl Request {
    /// The most messages.
    pub const MESSAGES: usize = 100_000;
    /// The most bytes of everything a model is shown, tools and images included.
    pub const BYTES: usize = 64 * 1024 * 1024;
    /// The most tools.
    pub const TOOLS: usize = 1024;

    /// Asks `model` to go on with `messages`, in at most so many tokens, streamed and without anything else.
    ///
    /// # Errors
    /// [`BadRequest`], if there is more of it than a request may have.
    pub fn new(model: ModelName, messages: Vec<Message>, max_output_tokens: u32) -> Result<Self, BadRequest> {
        at_most(messages.len(), Self::MESSAGES, "messages")?;
        in_range("the most output tokens", max_output_tokens.into(), 1, u32::MAX.into())?;
        let request = Self {
            model,
            instructions: String::new(),
            messages,
            tools: Vec::new(),
            max_output_tokens,
            output: Output::default(),
            sampling: Sampling::default(),
            thinking: Thinking::default(),
            delivery: Delivery::default(),
            cache: Cache::default(),
        };
        request.bounded()
    }

    /// With instructions, which go before the conversation.
    ///
    /// # Errors
    /// [`BadRequest::TooMuch`].
    pub fn instructed(self, instructions: impl Into<String>) -> Result<Self, BadRequest> {
        Self { instructions: instructions.into(), ..self }.bounded()
    }

    /// With tools that the model may call.
    ///
    /// # Errors
    /// [`BadRequest`], if there are too many, or a schema is no object.
    pub fn offering(self, tools: Vec<ToolSpec>) -> Result<Self, BadRequest> {
        at_most(tools.len(), Self::TOOLS, "tools")?;
        if tools.iter().any(|tool| !is_object(&tool.schema)) {
            return Err(BadRequest::NoObject("the schema of a tool"));
        }
        Self { tools, ..self }.bounded()
    }

    /// With an answer of this form.
    #[must_use]
    pub fn answering(self, output: Output) -> Self {
        Self { output, ..self }
    }

    /// Sampled so.
    #[must_use]
    pub fn sampled(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }

    /// Thought about so much.
    #[must_use]
    pub fn thought(self, thinking: Thinking) -> Self {
        Self { thinking, ..self }
    }

    /// Answered in pieces or in one.
    #[must_use]
    pub fn delivered(self, delivery: Delivery) -> Self {
        Self { delivery, ..self }
    }

    /// Cached so.
    #[must_use]
    pub fn cached(self, cache: Cache) -> Self {
        Self { cache, ..self }
    }

    pub(crate) fn streams(&self) -> bool {
        self.delivery == Delivery::Streamed
    }

    fn bounded(self) -> Result<Self, BadRequest> {
        let messages: usize = self.messages.iter().map(Message::bytes).sum();
        let tool = |tool: &ToolSpec| tool.name.as_str().len() + tool.description.len() + tool.schema.len();
        let tools: usize = self.tools.iter().map(tool).sum();
        at_most(messages + tools + self.instructions.len(), Self::BYTES, "bytes")?;
        Ok(self)
    }
}
