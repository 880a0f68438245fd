//! Builds tasks for tests.

use std::sync::Arc;

use ephor_base::{
    Confidentiality, Integrity, Label, Message, ModelRef, ModelTask, Purpose, Source, Span, SpanId, ToolSpec,
};

pub(crate) fn task(provider: &str, name: &str, script: &str, ordinal: u64) -> ModelTask {
    ModelTask {
        model: ModelRef { provider: provider.to_owned(), name: name.to_owned(), script: Arc::from(script) },
        messages: Vec::new(),
        tools: Vec::new(),
        max_output_tokens: 4096,
        ordinal,
        purpose: Purpose::Converse,
    }
}

pub(crate) fn span(text: &str, source: Source, integrity: Integrity) -> Span {
    Span { id: SpanId(0), label: Label::new(source, integrity, Confidentiality::Internal), text: text.to_owned() }
}

/// What the person said.
pub(crate) fn said(text: &str) -> Span {
    span(text, Source::User, Integrity::Trusted)
}

/// What was piped in.
pub(crate) fn piped(text: &str) -> Span {
    span(text, Source::User, Integrity::Untrusted)
}

/// What a tool returned for the use `id`.
pub(crate) fn result(id: &str, name: &str, failed: bool, text: &str) -> Message {
    Message::Tool {
        id: id.to_owned(),
        name: name.to_owned(),
        failed,
        spans: vec![span(text, Source::Tool, Integrity::Untrusted)],
    }
}

/// The four file tools.
pub(crate) fn tools() -> Vec<ToolSpec> {
    ["fs.read", "fs.list", "fs.search", "fs.write"]
        .into_iter()
        .filter_map(|name| {
            let schema = r#"{"type":"object"}"#.to_owned();
            Some(ToolSpec { name: name.parse().ok()?, description: String::new(), schema })
        })
        .collect()
}
