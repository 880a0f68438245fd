//! Writes a request.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{
    Delivery, Dialect, Feature, Grammar, Image, Request, ToolEnd, ToolResult,
    json::{is_object, object},
};

/// What a model is told first of a call that failed, in grammars that have no place for that.
const FAILED: &str = "This call failed or was refused.\n\n";

/// A request as it is sent: `POST`, with the key beside it (see [`Grammar::auth`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// The path below the base URL, without a slash before it. It is percent-encoded already.
    pub path: String,
    /// The query, without its `?`; empty where there is none.
    pub query: &'static str,
    /// The headers, in lower case, but for those of the key.
    pub headers: Vec<(&'static str, &'static str)>,
    /// JSON. Its beginning is the same for requests that begin alike.
    pub body: Vec<u8>,
}

/// Writes `request` in `grammar`, as a server of `dialect` understands it.
#[must_use]
pub fn encode(grammar: Grammar, dialect: Dialect, request: &Request) -> Encoded {
    let (path, query) = match (grammar, request.delivery) {
        (Grammar::Anthropic, _) => ("v1/messages".to_owned(), ""),
        (Grammar::Chat, _) => ("chat/completions".to_owned(), ""),
        (Grammar::Responses, _) => ("responses".to_owned(), ""),
        (Grammar::Ollama, _) => ("api/chat".to_owned(), ""),
        (Grammar::Gemini, Delivery::Streamed) => (gemini::path(&request.model, "streamGenerateContent"), "alt=sse"),
        (Grammar::Gemini, Delivery::Whole) => (gemini::path(&request.model, "generateContent"), ""),
    };
    let body = match grammar {
        Grammar::Anthropic => object(|body| anthropic::write(request, dialect, body)),
        Grammar::Chat => object(|body| chat::write(request, dialect, body)),
        Grammar::Responses => object(|body| responses::write(request, dialect, body)),
        Grammar::Gemini => object(|body| gemini::write(request, dialect, body)),
        Grammar::Ollama => object(|body| ollama::write(request, dialect, body)),
    };
    let mut headers = vec![("content-type", "application/json"), ("accept", accepted(grammar, request.delivery))];
    if grammar == Grammar::Anthropic {
        // The later version, 2026-10-21, takes neither temperature nor top-p and is the same otherwise, as far as it is used here.
        headers.push(("anthropic-version", "2023-06-01"));
    }
    Encoded { path, query, headers, body }
}

const fn accepted(grammar: Grammar, delivery: Delivery) -> &'static str {
    match (delivery, grammar) {
        (Delivery::Whole, _) => "application/json",
        (Delivery::Streamed, Grammar::Ollama) => "application/x-ndjson",
        (Delivery::Streamed, _) => "text/event-stream",
    }
}

/// Temperature and top-p, where a model takes them.
fn sampling(request: &Request, dialect: Dialect) -> (Option<u16>, Option<u16>) {
    if dialect.has(Feature::Sampling) { request.sampling.parts() } else { (None, None) }
}

/// The arguments of an earlier call, as an object. What a model wrote that is none is shown to it as what it was: servers read what they
/// are sent, and refuse a conversation for it.
fn arguments(text: &str) -> Cow<'_, str> {
    if text.trim().is_empty() {
        Cow::Borrowed("{}")
    } else if is_object(text) {
        Cow::Borrowed(text)
    } else {
        let shown = object(|object| object.text("malformed", text));
        Cow::Owned(String::from_utf8_lossy(&shown).into_owned())
    }
}

fn base64(image: &Image) -> String {
    STANDARD.encode(image.bytes())
}

fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type(), base64(image))
}

/// What a model is told of a call, where failure has no place of its own.
fn told(result: &ToolResult) -> String {
    let text = result.text();
    if result.end == ToolEnd::Failed { format!("{FAILED}{text}") } else { text }
}

/// What goes before pictures of a tool, in grammars whose results hold none.
fn pictures_of(result: &ToolResult) -> String {
    format!("Returned by the tool `{}`, call `{}`:", result.name, result.id)
}
