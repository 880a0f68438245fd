//! Which API a provider has.

use ephor_egress::BaseUrl;
use ephor_wire::{Dialect, Grammar};
use serde::Deserialize;

/// The API that a provider has, as `kind` in the configuration names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum Kind {
    /// OpenAI's Chat Completions, and what compatible servers make of it.
    #[serde(rename = "openai")]
    OpenAi,
    /// OpenAI's Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Anthropic's Messages.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// Gemini's `generateContent`.
    #[serde(rename = "gemini")]
    Gemini,
    /// Ollama's own chat.
    #[serde(rename = "ollama")]
    Ollama,
}

impl Kind {
    /// The base URL of the provider whose API it is.
    #[must_use]
    pub const fn base_url(self) -> &'static str {
        self.grammar().base_url()
    }

    /// Whether `base_url` is that of the provider whose API it is. Its dialect, its prices and the usual place of its key are known.
    #[must_use]
    pub fn is_official(self, base_url: &BaseUrl) -> bool {
        self.base_url().parse().is_ok_and(|official: BaseUrl| official.host() == base_url.host())
    }

    /// The variable that usually holds the key of the provider whose API it is; nothing where none is needed.
    #[must_use]
    pub const fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::OpenAi | Self::OpenAiResponses => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }

    /// The headers that no configuration may set: the key's, and those that say what is sent.
    #[must_use]
    pub fn reserved(self, header: &str) -> bool {
        let framing = ["host", "connection", "content-length", "content-type", "transfer-encoding", "accept"];
        framing.iter().chain([&self.grammar().auth().header]).any(|own| own.eq_ignore_ascii_case(header))
    }

    pub(crate) const fn grammar(self) -> Grammar {
        match self {
            Self::OpenAi => Grammar::Chat,
            Self::OpenAiResponses => Grammar::Responses,
            Self::Anthropic => Grammar::Anthropic,
            Self::Gemini => Grammar::Gemini,
            Self::Ollama => Grammar::Ollama,
        }
    }

    /// What a server is taken to understand before it has refused anything.
    pub(crate) fn dialect(self, base_url: &BaseUrl) -> Dialect {
        match self {
            Self::OpenAi | Self::OpenAiResponses if !self.is_official(base_url) => Dialect::COMPATIBLE,
            _ => Dialect::NATIVE,
        }
    }

    /// What its provider calls it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::OpenAi => "Chat Completions",
            Self::OpenAiResponses => "OpenAI's Responses",
            Self::Anthropic => "Anthropic's Messages",
            Self::Gemini => "Gemini",
            Self::Ollama => "Ollama",
        }
    }
}
