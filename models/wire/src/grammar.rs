//! Which grammars there are, and what is constant in each.

use std::fmt;

/// A grammar: how a request is written and how its response is read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Grammar {
    /// Anthropic Messages, version 2023-06-01.
    Anthropic,
    /// OpenAI Chat Completions, and what compatible servers make of it.
    Chat,
    /// OpenAI Responses, with nothing stored at the provider.
    Responses,
    /// Gemini `generateContent`, v1beta.
    Gemini,
    /// Ollama's own `/api/chat`.
    Ollama,
}

/// Where a key belongs: the header, and what stands before the key in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Auth {
    /// The header, in lower case.
    pub header: &'static str,
    /// What stands before the key: `Bearer ` or nothing.
    pub before: &'static str,
}

impl Auth {
    const BEARER: Self = Self { header: "authorization", before: "Bearer " };
}

impl Grammar {
    /// Every grammar.
    pub const ALL: [Self; 5] = [Self::Anthropic, Self::Chat, Self::Responses, Self::Gemini, Self::Ollama];

    /// Its name, as a configuration would write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// The grammar of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|grammar| grammar.name() == name)
    }

    /// The base URL of the provider itself; the paths of [`crate::Encoded`] are relative to it.
    #[must_use]
    pub const fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::Chat | Self::Responses => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// Where a key belongs. An Ollama on this machine needs none.
    #[must_use]
    pub const fn auth(self) -> Auth {
        match self {
            Self::Anthropic => Auth { header: "x-api-key", before: "" },
            Self::Gemini => Auth { header: "x-goog-api-key", before: "" },
            Self::Chat | Self::Responses | Self::Ollama => Auth::BEARER,
        }
    }
}

impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What servers of one grammar differ in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Feature {
    /// Chat: the output limit is called `max_completion_tokens`. OpenAI's newer models refuse `max_tokens`; several compatible servers pass
    /// over `max_completion_tokens`, so that nothing would limit them. To send both is refused.
    MaxCompletionTokens = 1,
    /// Chat: `stream_options` asks for the usage at the end of a stream.
    UsageInStream = 2,
    /// Chat, Responses: an answer can be held to a JSON schema.
    JsonSchema = 4,
    /// Chat, Responses: an answer can be held to be a JSON object.
    JsonObject = 8,
    /// Chat, Responses: `prompt_cache_key` routes requests with the same beginning to the same cache.
    CacheKey = 16,
    /// Chat, Responses: the effort of thinking can be chosen.
    Effort = 32,
    /// Responses: reasoning comes encrypted, to be sent back.
    EncryptedReasoning = 64,
    /// Chat: what the model thought before goes back as `reasoning_content`. DeepSeek's and Moonshot's thinking models want that while
    /// they call tools; others refuse it.
    ReasoningContent = 128,
    /// Temperature and top-p can be chosen. Models that think, and Anthropic's newer ones, refuse both.
    Sampling = 256,
}

/// The features that a server is taken to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dialect(u16);

impl Dialect {
    /// The provider whose grammar it is.
    pub const NATIVE: Self = Self(
        Feature::MaxCompletionTokens as u16
            | Feature::UsageInStream as u16
            | Feature::JsonSchema as u16
            | Feature::JsonObject as u16
            | Feature::CacheKey as u16
            | Feature::Effort as u16
            | Feature::EncryptedReasoning as u16
            | Feature::Sampling as u16,
    );

    /// A compatible server of which nothing is known.
    pub const COMPATIBLE: Self = Self(
        Feature::UsageInStream as u16
            | Feature::JsonSchema as u16
            | Feature::JsonObject as u16
            | Feature::Effort as u16
            | Feature::Sampling as u16,
    );

    /// Whether it has `feature`.
    #[must_use]
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & feature as u16 != 0
    }

    /// The same with `feature`.
    #[must_use]
    pub const fn with(self, feature: Feature) -> Self {
        Self(self.0 | feature as u16)
    }

    /// The same without `feature`.
    #[must_use]
    pub const fn without(self, feature: Feature) -> Self {
        Self(self.0 & !(feature as u16))
    }

    /// The dialect to try next after a refusal that says `message`, if it is about what servers differ in. Each refusal changes one
    /// feature, and none is changed back and forth but the name of the output limit: so a caller tries a bounded number of times.
    #[must_use]
    pub fn after(self, message: &str) -> Option<Self> {
        let names_both = message.contains("max_tokens") && message.contains("max_completion_tokens");
        if self.has(Feature::MaxCompletionTokens) && message.contains("max_completion_tokens") {
            return Some(self.without(Feature::MaxCompletionTokens));
        }
        if !self.has(Feature::MaxCompletionTokens) && names_both {
            return Some(self.with(Feature::MaxCompletionTokens));
        }
        let about = [
            (Feature::UsageInStream, "stream_options"),
            (Feature::JsonSchema, "json_schema"),
            (Feature::JsonSchema, "response_format"),
            (Feature::JsonObject, "response_format"),
            (Feature::CacheKey, "prompt_cache_key"),
            (Feature::EncryptedReasoning, "ncrypted"),
            (Feature::ReasoningContent, "reasoning_content"),
            (Feature::Effort, "reasoning"),
            (Feature::Sampling, "temperature"),
            (Feature::Sampling, "top_p"),
        ];
        let named = about.into_iter().find(|(feature, word)| self.has(*feature) && message.contains(word));
        named.map(|(feature, _)| self.without(feature))
    }
}
