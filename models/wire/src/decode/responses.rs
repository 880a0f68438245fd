//! OpenAI Responses: items that are added, grow and are done, and a response around them.

use std::collections::BTreeMap;

use super::{Broken, IN_PLACE, IN_STREAM, Seen, draft::Draft};
use crate::{Complaint, Cut, End, Grammar, Reported, json::Fields};

/// The items so far, by their place in the output.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    items: BTreeMap<u64, Item>,
}

/// An item of the output, as far as it came. What came in pieces is repeated when the item is done, and once more with the response.
#[derive(Clone, Debug, Default)]
struct Item {
    /// The number of the call that it is.
    call: Option<usize>,
    /// Text, or arguments of the call, came in pieces.
    grew: bool,
    thought: bool,
    done: bool,
}

impl Reader {
    pub(super) fn take(&mut self, event: &Fields<'_>, draft: &mut Draft) -> Result<Seen, Broken> {
        let Some(kind) = event.text("type") else { return self.untyped(event, draft) };
        let (place, delta) = (event.count("output_index").unwrap_or(0), event.text("delta"));
        match kind.as_str() {
            "response.output_item.added" => self.added(place, &event.object("item").unwrap_or_default(), draft)?,
            "response.output_item.done" => self.item(place, &event.object("item").unwrap_or_default(), draft)?,
            "response.output_text.delta" => {
                self.at(place, draft)?.grew = true;
                draft.text(delta.unwrap_or_default())?;
            }
            "response.refusal.delta" => {
                self.at(place, draft)?.grew = true;
                draft.refusal(delta.unwrap_or_default())?;
            }
            "response.function_call_arguments.delta" => {
                let delta = delta.unwrap_or_default();
                let item = self.at(place, draft)?;
                item.grew |= !delta.is_empty();
                if let Some(at) = item.call {
                    draft.arguments(at, &delta)?;
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.at(place, draft)?.thought = true;
                draft.thinking(delta.unwrap_or_default())?;
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.response(&event.object("response").unwrap_or_default(), draft)?;
            }
            "error" => draft.fail(Complaint::of_error(event.source(), otherwise(draft))),
            // What else comes is about what comes anyway, or about what a provider's own tools do.
            kind if kind.starts_with("response.") || kind == "keepalive" => {}
            _ => return Ok(Seen::Unknown),
        }
        Ok(Seen::Known)
    }

    /// A response that did not come in events, or an error.
    fn untyped(&mut self, object: &Fields<'_>, draft: &mut Draft) -> Result<Seen, Broken> {
        if object.is_list("output") || object.text("object").as_deref() == Some("response") {
            self.response(object, draft)?;
        } else if object.raw("error").is_some() {
            draft.fail(Complaint::of_error(object.source(), otherwise(draft)));
        } else {
            return Ok(Seen::Unknown);
        }
        Ok(Seen::Known)
    }

    fn at(&mut self, place: u64, draft: &Draft) -> Result<&mut Item, Broken> {
        let most = draft.limits.calls;
        if self.items.len() >= most && !self.items.contains_key(&place) {
            return Err(Broken::TooManyCalls(most));
        }
        Ok(self.items.entry(place).or_default())
    }

    fn added(&mut self, place: u64, item: &Fields<'_>, draft: &mut Draft) -> Result<(), Broken> {
        let is_call = item.text("type").as_deref() == Some("function_call");
        let known = self.at(place, draft)?;
        if is_call && known.call.is_none() {
            let id = item.text("call_id").or_else(|| item.text("id")).unwrap_or_default();
            known.call = Some(draft.call(id, item.text("name").unwrap_or_default())?);
        }
        Ok(())
    }

    /// An item that is done: what of it did not come in pieces.
    fn item(&mut self, place: u64, item: &Fields<'_>, draft: &mut Draft) -> Result<(), Broken> {
        self.added(place, item, draft)?;
        let known = self.at(place, draft)?;
        let Item { call, grew, thought, done } = *known;
        known.done = true;
        if done {
            return Ok(());
        }
        match (item.text("type").as_deref(), call) {
            (Some("message"), _) if !grew => {
                for part in item.objects("content") {
                    draft.text(part.text("text").unwrap_or_default())?;
                    draft.refusal(part.text("refusal").unwrap_or_default())?;
                }
            }
            (Some("function_call"), Some(at)) if !grew => {
                draft.arguments(at, &item.text_or_raw("arguments").unwrap_or_default())?;
            }
            (Some("reasoning"), _) => {
                if !thought {
                    for part in item.objects("summary").iter().chain(&item.objects("content")) {
                        draft.thinking(part.text("text").unwrap_or_default())?;
                    }
                }
                // Nothing is stored at the provider, so only what carries its content can go back.
                if item.text("encrypted_content").is_some_and(|content| !content.is_empty()) {
                    draft.state(Grammar::Responses, item.source())?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn response(&mut self, response: &Fields<'_>, draft: &mut Draft) -> Result<(), Broken> {
        for (place, item) in (0..).zip(response.objects("output")) {
            self.item(place, &item, draft)?;
        }
        if let Some(usage) = response.object("usage") {
            draft.reported(report(&usage));
        }
        match response.text("status").as_deref() {
            Some("completed") => draft.end(End::Complete),
            Some("incomplete") => {
                let details = response.object("incomplete_details").unwrap_or_default();
                draft.end(match details.text("reason").as_deref() {
                    Some("max_output_tokens") => End::CutOff(Cut::Tokens),
                    Some("content_filter") => End::Refused,
                    _ => End::CutOff(Cut::Other),
                });
            }
            _ if response.raw("error").is_some() => {
                draft.fail(Complaint::of_error(response.raw("error").unwrap_or_default(), otherwise(draft)));
            }
            _ => draft.end(End::CutOff(Cut::Other)),
        }
        draft.done = true;
        Ok(())
    }
}

const fn otherwise(draft: &Draft) -> u16 {
    if draft.has_begun() { IN_STREAM } else { IN_PLACE }
}

fn report(usage: &Fields<'_>) -> Reported {
    let detail = |object: &str, key: &str| usage.object(object).and_then(|object| object.count(key));
    Reported {
        input: usage.count("input_tokens"),
        output: usage.count("output_tokens"),
        cached: detail("input_tokens_details", "cached_tokens"),
        cache_written: detail("input_tokens_details", "cache_write_tokens"),
        reasoning: detail("output_tokens_details", "reasoning_tokens"),
    }
}
