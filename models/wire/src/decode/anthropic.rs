//! Anthropic Messages: blocks that begin, grow and stop, and a message around them.

use std::collections::BTreeMap;

use super::{Broken, IN_PLACE, IN_STREAM, Seen, draft::Draft};
use crate::{
    Complaint, Cut, End, Grammar, Reported,
    json::{Fields, object},
};

/// The blocks that have begun and not stopped, by their index.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    blocks: BTreeMap<u64, Block>,
}

#[derive(Clone, Debug)]
enum Block {
    /// A call: its number, the input that it began with, and whether more of it came.
    Call { at: usize, input: String, grew: bool },
    /// Thinking, with the signature that lets it go back.
    Thinking { text: String, signature: String },
}

impl Reader {
    pub(super) fn take(&mut self, event: &Fields<'_>, draft: &mut Draft) -> Result<Seen, Broken> {
        let index = event.count("index").unwrap_or(0);
        match event.text("type").as_deref() {
            Some("message_start") => {
                if let Some(message) = event.object("message") {
                    report(&message, draft);
                }
            }
            Some("content_block_start") => {
                let block = event.object("content_block").unwrap_or_default();
                self.begin(index, &block, draft)?;
            }
            Some("content_block_delta") => {
                self.grow(index, &event.object("delta").unwrap_or_default(), draft)?;
            }
            Some("content_block_stop") => self.stop(index, draft)?,
            Some("message_delta") => {
                report(event, draft);
                stop_reason(&event.object("delta").unwrap_or_default(), draft);
            }
            Some("message_stop") => draft.done = true,
            Some("ping") => {}
            Some("error") => {
                let otherwise = if draft.has_begun() { IN_STREAM } else { IN_PLACE };
                draft.fail(Complaint::of_error(event.source(), otherwise));
            }
            Some("message") => self.whole(event, draft)?,
            _ => return Ok(Seen::Unknown),
        }
        Ok(Seen::Known)
    }

    /// A message that did not come in pieces.
    fn whole(&mut self, message: &Fields<'_>, draft: &mut Draft) -> Result<(), Broken> {
        for block in message.objects("content") {
            self.begin(0, &block, draft)?;
            self.stop(0, draft)?;
        }
        report(message, draft);
        stop_reason(message, draft);
        draft.done = true;
        Ok(())
    }

    fn begin(&mut self, index: u64, block: &Fields<'_>, draft: &mut Draft) -> Result<(), Broken> {
        if self.blocks.len() >= draft.limits.calls {
            return Err(Broken::TooManyCalls(draft.limits.calls));
        }
        let text = |key| block.text(key).unwrap_or_default();
        match block.text("type").as_deref() {
            Some("text") => draft.text(text("text"))?,
            Some("tool_use") => {
                let at = draft.call(text("id"), text("name"))?;
                let input = block.raw("input").unwrap_or("{}").to_owned();
                self.blocks.insert(index, Block::Call { at, input, grew: false });
            }
            Some("thinking") => {
                draft.thinking(text("thinking"))?;
                let begun = Block::Thinking { text: text("thinking"), signature: text("signature") };
                self.blocks.insert(index, begun);
            }
            Some("redacted_thinking") => draft.state(Grammar::Anthropic, block.source())?,
            // What a provider's own tools do is nothing that was asked for; it counts.
            _ => draft.wrote(block.source().len())?,
        }
        Ok(())
    }

    fn grow(&mut self, index: u64, delta: &Fields<'_>, draft: &mut Draft) -> Result<(), Broken> {
        let text = |key| delta.text(key).unwrap_or_default();
        match (delta.text("type").as_deref(), self.blocks.get_mut(&index)) {
            (Some("text_delta"), _) => draft.text(text("text")),
            (Some("input_json_delta"), Some(Block::Call { at, grew, .. })) => {
                let more = text("partial_json");
                *grew |= !more.is_empty();
                draft.arguments(*at, &more)
            }
            (Some("thinking_delta"), Some(Block::Thinking { text: all, .. })) => {
                all.push_str(&text("thinking"));
                draft.thinking(text("thinking"))
            }
            (Some("signature_delta"), Some(Block::Thinking { signature, .. })) => {
                // It comes in one, and the last counts, as in the provider's own SDKs.
                *signature = text("signature");
                draft.wrote(signature.len())
            }
            _ => draft.wrote(delta.source().len()),
        }
    }

    fn stop(&mut self, index: u64, draft: &mut Draft) -> Result<(), Broken> {
        match self.blocks.remove(&index) {
            Some(Block::Call { at, input, grew: false }) => draft.arguments(at, &input),
            Some(Block::Thinking { text, signature }) if !signature.is_empty() => {
                let block = object(|block| {
                    block.text("type", "thinking");
                    block.text("thinking", &text);
                    block.text("signature", &signature);
                });
                draft.state(Grammar::Anthropic, String::from_utf8_lossy(&block))
            }
            _ => Ok(()),
        }
    }
}

/// The usage, in which cached tokens are not among those of the input.
fn report(holder: &Fields<'_>, draft: &mut Draft) {
    let Some(usage) = holder.object("usage") else { return };
    let before = draft.report();
    let cached = usage.count("cache_read_input_tokens").or(before.cached);
    let cache_written = usage.count("cache_creation_input_tokens").or(before.cache_written);
    let input = usage
        .count("input_tokens")
        .and_then(|fresh| fresh.checked_add(cached.unwrap_or(0))?.checked_add(cache_written.unwrap_or(0)));
    let details = usage.object("output_tokens_details");
    let reasoning = details.and_then(|details| details.count("thinking_tokens"));
    draft.reported(Reported { input, output: usage.count("output_tokens"), cached, cache_written, reasoning });
}

fn stop_reason(holder: &Fields<'_>, draft: &mut Draft) {
    let end = match holder.text("stop_reason").as_deref() {
        None | Some("") => return,
        Some("end_turn" | "tool_use" | "stop_sequence") => End::Complete,
        Some("max_tokens" | "model_context_window_exceeded") => End::CutOff(Cut::Tokens),
        Some("refusal") => End::Refused,
        Some(_) => End::CutOff(Cut::Other),
    };
    draft.end(end);
}
