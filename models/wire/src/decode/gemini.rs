//! Gemini: candidates made of parts. Text grows, calls come whole, and a signature may stand on any part.

use ephor_base::FailureKind;

use super::{Broken, IN_PLACE, IN_STREAM, Seen, draft::Draft};
use crate::{
    Complaint, Cut, End, Grammar, Recourse, Reported,
    json::{Fields, object},
};

pub(super) fn take(chunk: &Fields<'_>, draft: &mut Draft) -> Result<Seen, Broken> {
    if chunk.raw("error").is_some() {
        let otherwise = if draft.has_begun() { IN_STREAM } else { IN_PLACE };
        draft.fail(Complaint::of_error(chunk.source(), otherwise));
        return Ok(Seen::Known);
    }
    if let Some(usage) = chunk.object("usageMetadata") {
        draft.reported(report(&usage));
    }
    // One answer was asked for.
    if let Some(candidate) = chunk.objects("candidates").first() {
        for part in candidate.object("content").unwrap_or_default().objects("parts") {
            take_part(&part, draft)?;
        }
        if let Some(reason) = candidate.text("finishReason").filter(|reason| !reason.is_empty()) {
            draft.end(end(&reason));
        }
    }
    let blocked = chunk.object("promptFeedback").and_then(|feedback| feedback.text("blockReason"));
    if blocked.is_some() {
        draft.end(End::Refused);
    }
    let known = ["candidates", "usageMetadata", "promptFeedback"].iter().any(|key| chunk.has(key));
    Ok(if known { Seen::Known } else { Seen::Unknown })
}

fn take_part(part: &Fields<'_>, draft: &mut Draft) -> Result<(), Broken> {
    if let Some(signature) = part.text("thoughtSignature") {
        // It goes back on the part that it came with, which follows.
        let state = object(|state| state.text("thoughtSignature", &signature));
        draft.state(Grammar::Gemini, String::from_utf8_lossy(&state))?;
    }
    if let Some(call) = part.object("functionCall") {
        let at = draft.call(call.text("id").unwrap_or_default(), call.text("name").unwrap_or_default())?;
        return draft.arguments(at, call.raw("args").unwrap_or("{}"));
    }
    let text = part.text("text").unwrap_or_default();
    if part.is_true("thought") { draft.thinking(text) } else { draft.text(text) }
}

/// The usage, in which thinking is not among the tokens of the candidates, nor what a provider's own tools read among those of the prompt.
fn report(usage: &Fields<'_>) -> Reported {
    let reasoning = usage.count("thoughtsTokenCount");
    let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => one.checked_add(other),
        (one, other) => one.or(other),
    };
    Reported {
        input: sum(usage.count("promptTokenCount"), usage.count("toolUsePromptTokenCount")),
        output: sum(usage.count("candidatesTokenCount"), reasoning),
        cached: usage.count("cachedContentTokenCount"),
        cache_written: None,
        reasoning,
    }
}

fn end(reason: &str) -> End {
    match reason {
        "STOP" => End::Complete,
        "MAX_TOKENS" => End::CutOff(Cut::Tokens),
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" | "IMAGE_SAFETY"
        | "MODEL_ARMOR" => End::Refused,
        "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" => End::Failed(Complaint::new(
            FailureKind::InvalidJson,
            Recourse::Backoff,
            "the model called a tool in no readable form",
        )),
        _ => End::CutOff(Cut::Other),
    }
}
