//! Chat Completions, as OpenAI documents it and as compatible servers really speak it.

mod nesting;

use ephor_base::FailureKind;

use self::nesting::Nesting;
use super::{Broken, IN_PLACE, IN_STREAM, Seen, draft::Draft};
use crate::{
    Complaint, Cut, End, Grammar, Recourse, Reported,
    json::{Fields, object},
};

/// What a delta says besides what the model writes.
const NOT_WRITTEN: [&str; 5] = ["role", "content", "refusal", "reasoning_content", "reasoning"];

/// The calls in the making, and what the provider wants back.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    slots: Vec<Slot>,
    /// Pieces have come, so a whole message repeats them.
    in_pieces: bool,
    /// The items of `reasoning_details` (OpenRouter), as they came.
    details: Vec<String>,
    details_bytes: usize,
}

/// What tells one call from the others while it comes.
#[derive(Clone, Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    nesting: Nesting,
}

/// A piece of a call. What is empty says nothing.
#[derive(Debug)]
struct Piece {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Piece {
    fn of(call: &Fields<'_>) -> Self {
        let function = call.object("function").unwrap_or_default();
        Self {
            index: call.count("index"),
            id: call.text_or_raw("id").unwrap_or_default(),
            name: function.text("name").unwrap_or_default(),
            // A string by the book; some servers send the object itself.
            arguments: function.text_or_raw("arguments").unwrap_or_default(),
        }
    }
}

impl Reader {
    pub(super) fn take(&mut self, chunk: &Fields<'_>, draft: &mut Draft) -> Result<Seen, Broken> {
        if is_error(chunk) {
            let otherwise = if draft.has_begun() || self.in_pieces { IN_STREAM } else { IN_PLACE };
            draft.fail(Complaint::of_error(chunk.source(), otherwise));
            return Ok(Seen::Known);
        }
        if let Some(usage) = chunk.object("usage") {
            draft.reported(report(&usage));
        }
        // One answer was asked for.
        if let Some(choice) = chunk.objects("choices").first() {
            self.choice(choice, draft)?;
        }
        let is_one = chunk.is_list("choices")
            || chunk.has("choices") && chunk.raw("choices").is_none()
            || chunk.raw("usage").is_some();
        Ok(if is_one { Seen::Known } else { Seen::Unknown })
    }

    /// The response is over: what the provider wants back belongs to all of it.
    pub(super) fn finish(&mut self, draft: &mut Draft) -> Result<(), Broken> {
        if draft.done && draft.end.is_none() && draft.has_begun() {
            // Several servers say `[DONE]` and no reason.
            draft.end(End::Complete);
        }
        if self.details.is_empty() {
            return Ok(());
        }
        let state = object(|state| {
            state.list("reasoning_details", |list| self.details.iter().for_each(|item| list.raw(item)));
        });
        draft.state(Grammar::Chat, String::from_utf8_lossy(&state))
    }

    fn choice(&mut self, choice: &Fields<'_>, draft: &mut Draft) -> Result<(), Broken> {
        let (delta, message) = (choice.object("delta"), choice.object("message"));
        match (delta.filter(|delta| says_something(delta) || message.is_none()), &message) {
            (Some(delta), _) => {
                self.in_pieces |= says_something(&delta);
                self.delta(&delta, draft)?;
            }
            (None, Some(message)) => self.message(message, draft)?,
            (None, None) => {}
        }
        if let Some(reason) = choice.text("finish_reason").filter(|reason| !reason.is_empty()) {
            draft.end(end(&reason));
        }
        Ok(())
    }

    /// A whole message. Of one that repeats what came in pieces, that counts which did not come.
    fn message(&mut self, message: &Fields<'_>, draft: &mut Draft) -> Result<(), Broken> {
        if !self.in_pieces {
            return self.delta(message, draft);
        }
        if draft.is_silent() {
            draft.text(message.spoken("content"))?;
        }
        if self.slots.is_empty() { self.calls(message, draft) } else { Ok(()) }
    }

    fn delta(&mut self, delta: &Fields<'_>, draft: &mut Draft) -> Result<(), Broken> {
        let thought = ["reasoning_content", "reasoning"].iter().find_map(|key| delta.text(key));
        draft.thinking(thought.unwrap_or_default())?;
        self.keep_details(delta, draft)?;
        draft.wrote(delta.others(&NOT_WRITTEN))?;
        draft.text(delta.spoken("content"))?;
        draft.refusal(delta.text("refusal").unwrap_or_default())?;
        self.calls(delta, draft)
    }

    fn keep_details(&mut self, delta: &Fields<'_>, draft: &Draft) -> Result<(), Broken> {
        for item in delta.list("reasoning_details") {
            self.details_bytes += item.len();
            if self.details_bytes > draft.limits.event {
                return Err(Broken::AnswerTooLong(draft.limits.event));
            }
            self.details.push(item.to_owned());
        }
        Ok(())
    }

    fn calls(&mut self, delta: &Fields<'_>, draft: &mut Draft) -> Result<(), Broken> {
        for call in delta.objects("tool_calls") {
            let piece = Piece::of(&call);
            let at = match self.slot(&piece) {
                Some(at) => {
                    draft.name(at, &piece.id, &piece.name)?;
                    at
                }
                None => {
                    self.slots.push(Slot { index: piece.index, ..Slot::default() });
                    draft.call(piece.id.clone(), piece.name)?
                }
            };
            if let Some(slot) = self.slots.get_mut(at) {
                slot.nesting.take(&piece.arguments);
                if slot.id.is_empty() {
                    slot.id = piece.id;
                }
            }
            draft.arguments(at, &piece.arguments)?;
        }
        Ok(())
    }

    /// The call that `piece` belongs to; nothing for a new one.
    ///
    /// By the book the index tells calls apart. Some servers send index 0 for every call and tell them apart by id; some send no index, and
    /// some neither. A call whose arguments are whole takes no more pieces, so what names a tool again is the next.
    fn slot(&self, piece: &Piece) -> Option<usize> {
        let named = !piece.name.is_empty();
        let is_open = |slot: &Slot| !(named && slot.nesting.is_closed());
        let other_id = |slot: &Slot| !piece.id.is_empty() && !slot.id.is_empty() && slot.id != piece.id;
        match (piece.index, piece.id.is_empty()) {
            (Some(index), _) => {
                let same = |slot: &Slot| slot.index == Some(index);
                let at = self.slots.iter().rposition(|slot| same(slot) && !other_id(slot) && is_open(slot));
                // The index is known under another id, and this piece names no tool: it goes on with that one.
                at.or_else(|| self.slots.iter().rposition(|slot| same(slot) && !named))
            }
            (None, false) => self.slots.iter().rposition(|slot| slot.id == piece.id && is_open(slot)),
            (None, true) if !named => self.slots.len().checked_sub(1),
            (None, true) => None,
        }
    }
}

fn says_something(delta: &Fields<'_>) -> bool {
    let spoken = ["content", "refusal"].iter().any(|key| !delta.spoken(key).is_empty());
    spoken || !delta.list("tool_calls").is_empty()
}

/// Whether an error stands in the place of a chunk.
fn is_error(chunk: &Fields<'_>) -> bool {
    if chunk.raw("error").is_some_and(|error| error != "false") {
        return true;
    }
    let complains = ["message", "detail"].iter().any(|key| chunk.text(key).is_some());
    !chunk.has("choices") && complains
}

fn report(usage: &Fields<'_>) -> Reported {
    let detail = |object: &str, key: &str| usage.object(object).and_then(|object| object.count(key));
    Reported {
        input: usage.count("prompt_tokens"),
        output: usage.count("completion_tokens"),
        // DeepSeek has it under a name of its own.
        cached: detail("prompt_tokens_details", "cached_tokens").or_else(|| usage.count("prompt_cache_hit_tokens")),
        cache_written: detail("prompt_tokens_details", "cache_write_tokens"),
        reasoning: detail("completion_tokens_details", "reasoning_tokens"),
    }
}

fn end(reason: &str) -> End {
    match reason.to_ascii_lowercase().as_str() {
        "stop" | "tool_calls" | "function_call" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "tool_use" => {
            End::Complete
        }
        "content_filter" | "refusal" | "safety" => End::Refused,
        "error" => End::Failed(Complaint::new(
            FailureKind::Interrupted,
            Recourse::Backoff,
            "the provider failed in the middle of its answer",
        )),
        "length" | "max_tokens" => End::CutOff(Cut::Tokens),
        _ => End::CutOff(Cut::Other),
    }
}
