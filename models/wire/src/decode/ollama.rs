//! Ollama's `/api/chat`: a message in pieces, and a last object that says so. Calls come whole.

use super::{Broken, IN_PLACE, IN_STREAM, Seen, draft::Draft};
use crate::{Complaint, Cut, End, Reported, json::Fields};

pub(super) fn take(object: &Fields<'_>, draft: &mut Draft) -> Result<Seen, Broken> {
    if object.raw("error").is_some() {
        let otherwise = if draft.has_begun() { IN_STREAM } else { IN_PLACE };
        draft.fail(Complaint::of_error(object.source(), otherwise));
        return Ok(Seen::Known);
    }
    let message = object.object("message");
    if let Some(message) = &message {
        draft.thinking(message.text("thinking").unwrap_or_default())?;
        draft.text(message.text("content").unwrap_or_default())?;
        for call in message.objects("tool_calls") {
            let function = call.object("function").unwrap_or_default();
            let id = call.text("id").unwrap_or_default();
            let at = draft.call(id, function.text("name").unwrap_or_default())?;
            draft.arguments(at, &function.text_or_raw("arguments").unwrap_or_else(|| "{}".to_owned()))?;
        }
    }
    if object.is_true("done") {
        draft.reported(Reported {
            input: object.count("prompt_eval_count"),
            output: object.count("eval_count"),
            ..Reported::default()
        });
        draft.end(end(object.text("done_reason").as_deref()));
        draft.done = true;
    }
    Ok(if message.is_some() || object.has("done") { Seen::Known } else { Seen::Unknown })
}

/// Older servers give no reason.
fn end(reason: Option<&str>) -> End {
    match reason {
        None | Some("" | "stop") => End::Complete,
        Some("length") => End::CutOff(Cut::Tokens),
        Some(_) => End::CutOff(Cut::Other),
    }
}
