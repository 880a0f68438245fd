//! The answer, put together from its chunks.

use ephor_base::{AnswerEnd, Failure, FailureKind, ModelAnswer, ToolUse};
use ephor_kernel::PreviewItem;

use super::{
    Asking,
    chunk::{CallPiece, Chunk, Delta},
    failure::{Complaint, quoted},
    wire::Rest,
};
use crate::{meter::Meter, scrub::Scrubbed, sink::Sink};

/// The most tool calls of one answer. More than that is a server gone wrong.
const MOST_CALLS: usize = 1024;

/// The status that an error in the middle of a stream stands for, if it names none: the server failed, and may do better.
const IN_STREAM: u16 = 500;

/// The status that an error in place of an answer stands for, if it names none: the server has looked at the request.
const IN_PLACE: u16 = 400;

/// How the server says that the answer ended, the worse the later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Finish {
    Complete,
    CutOff,
    Refused,
    /// It failed in the middle.
    Failed,
}

/// A tool call in the making.
#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    nesting: Nesting,
    announced: bool,
}

/// An answer in the making.
#[derive(Debug)]
pub(crate) struct Assembly<'a> {
    asking: &'a Asking<'a>,
    text: String,
    /// The text, without the key.
    clean: Scrubbed<'a>,
    slots: Vec<Slot>,
    finish: Option<Finish>,
    /// The model refused in words of its own.
    refused: bool,
    /// Pieces have come, so a whole message repeats them.
    in_pieces: bool,
    /// Something came that is no chunk.
    odd: bool,
    done: bool,
}

impl<'a> Assembly<'a> {
    pub(crate) const fn new(asking: &'a Asking<'a>) -> Self {
        Self {
            asking,
            text: String::new(),
            clean: asking.scrub.pieces(),
            slots: Vec::new(),
            finish: None,
            refused: false,
            in_pieces: false,
            odd: false,
            done: false,
        }
    }

    /// Whether the server has said that nothing more comes.
    pub(crate) const fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the answer is there. What comes behind it can only be about it, and no failure takes it back.
    pub(crate) const fn has_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Takes the data of one event.
    pub(crate) async fn push(&mut self, data: &str, sink: &mut impl Sink, meter: &mut Meter) -> Result<(), Failure> {
        let data = data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        match self.read(data, IN_STREAM) {
            Ok(chunk) => self.take(chunk, sink, meter).await,
            Err(_) if self.has_finished() => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Takes what was left at the end of the response: perhaps half a chunk.
    pub(crate) async fn rest(&mut self, rest: Rest, sink: &mut impl Sink, meter: &mut Meter) -> Result<(), Failure> {
        match rest {
            Rest::Nothing => Ok(()),
            _ if self.has_finished() => Ok(()),
            Rest::Page => Err(self.rejected("answers with a web page")),
            Rest::Foreign => Err(self.not_the_protocol("it sends neither events nor JSON")),
            Rest::Chunk(data) if data.trim() == "[DONE]" => self.push(&data, sink, meter).await,
            Rest::Chunk(data) | Rest::Whole(data) if is_half(&data) => Ok(()),
            Rest::Chunk(data) => self.push(&data, sink, meter).await,
            Rest::Whole(data) => {
                let chunk = self.read(&data, IN_PLACE)?;
                self.take(chunk, sink, meter).await
            }
        }
    }

    fn read(&mut self, data: &str, otherwise: u16) -> Result<Chunk, Failure> {
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| self.not_the_protocol(&error.to_string()))?;
        if let Some(error) = chunk.error() {
            let complaint = Complaint::of(&error, self.asking.scrub);
            return Err(complaint.interruption(self.asking.plaintiff(), otherwise));
        }
        self.odd |= !chunk.is_one();
        Ok(chunk)
    }

    async fn take(&mut self, chunk: Chunk, sink: &mut impl Sink, meter: &mut Meter) -> Result<(), Failure> {
        if let Some(usage) = chunk.usage() {
            meter.report(usage);
        }
        let Some(choice) = chunk.into_choice() else { return Ok(()) };
        let delta = choice.delta.filter(|delta| delta.says_something() || choice.message.is_none());
        match (delta, choice.message) {
            (Some(delta), _) => {
                self.in_pieces |= delta.says_something();
                self.delta(delta, sink, meter).await?;
            }
            (None, Some(message)) => self.message(message, sink, meter).await?,
            (None, None) => {}
        }
        if let Some(finish) = choice.finish_reason.filter(|finish| !finish.is_empty()) {
            // Of several the worst counts: nothing that comes later makes an answer whole.
            self.finish = self.finish.max(Some(Finish::of(&finish)));
        }
        Ok(())
    }

    /// A whole message. Of one that repeats what came in pieces, that counts which did not come.
    async fn message(&mut self, mut message: Delta, sink: &mut impl Sink, meter: &mut Meter) -> Result<(), Failure> {
        if !self.in_pieces {
            return self.delta(message, sink, meter).await;
        }
        if self.text.is_empty() && self.clean.is_empty() {
            self.say(message.text(), sink, meter).await;
        }
        if self.slots.is_empty() {
            self.calls(message.take_calls(), sink, meter).await?;
        }
        Ok(())
    }

    async fn delta(&mut self, mut delta: Delta, sink: &mut impl Sink, meter: &mut Meter) -> Result<(), Failure> {
        meter.wrote(delta.unseen());
        self.say(delta.text(), sink, meter).await;
        if let Some(refusal) = delta.refusal.take().filter(|text| !text.is_empty()) {
            self.refused = true;
            self.say(refusal, sink, meter).await;
        }
        self.calls(delta.take_calls(), sink, meter).await
    }

    async fn say(&mut self, text: String, sink: &mut impl Sink, meter: &mut Meter) {
        meter.wrote(text.len());
        let text = self.clean.push(&text);
        self.show(text, sink).await;
    }

    async fn show(&mut self, text: String, sink: &mut impl Sink) {
        if !text.is_empty() {
            self.text.push_str(&text);
            sink.show(PreviewItem::Text(text)).await;
        }
    }

    async fn calls(
        &mut self,
        pieces: impl Iterator<Item = CallPiece> + Send,
        sink: &mut impl Sink,
        meter: &mut Meter,
    ) -> Result<(), Failure> {
        for piece in pieces {
            let at = self.slot(&piece);
            if at >= MOST_CALLS {
                return Err(self.not_the_protocol("more tool calls than any model makes"));
            }
            let Some(slot) = self.slots.get_mut(at) else { continue };
            let before = slot.name.len() + slot.arguments.len();
            slot.add(piece);
            meter.wrote((slot.name.len() + slot.arguments.len()).saturating_sub(before));
            // A name may come in pieces; once there are arguments it is whole.
            if !slot.arguments.is_empty() && !slot.announced {
                slot.announced = true;
                let name = slot.name.clone();
                sink.show(PreviewItem::ToolUse(self.tool(&name))).await;
            }
        }
        Ok(())
    }

    /// The place of `piece` among the calls, made if it is a new one.
    ///
    /// By the book the index tells calls apart. Some servers send index 0 for every call and tell them apart by id; some
    /// send no index, and some neither. A call whose arguments are whole takes no more pieces, so what names a tool again
    /// is the next.
    fn slot(&mut self, piece: &CallPiece) -> usize {
        let named = !piece.name.is_empty();
        let is_open = |slot: &Slot| !(named && slot.nesting.is_closed());
        let other_id = |slot: &Slot| !piece.id.is_empty() && !slot.id.is_empty() && slot.id != piece.id;
        let found = match (piece.index, piece.id.is_empty()) {
            (Some(index), _) => {
                let same = |slot: &Slot| slot.index == Some(index);
                let at = self.slots.iter().rposition(|slot| same(slot) && !other_id(slot) && is_open(slot));
                // The index is known under another id, and this one names a tool: a call of its own.
                at.or_else(|| self.slots.iter().rposition(|slot| same(slot) && !named))
            }
            (None, false) => self.slots.iter().rposition(|slot| slot.id == piece.id && is_open(slot)),
            (None, true) if !named => self.slots.len().checked_sub(1),
            (None, true) => None,
        };
        found.unwrap_or_else(|| {
            self.slots.push(Slot { index: piece.index, ..Slot::default() });
            self.slots.len() - 1
        })
    }

    /// The tool of a name on the wire.
    fn tool(&self, wire: &str) -> String {
        self.asking.names.tool(&self.asking.scrub.clean(wire))
    }

    /// The whole answer, once the stream is over.
    pub(crate) async fn finish(
        mut self,
        ordinal: u64,
        sink: &mut impl Sink,
        meter: &Meter,
    ) -> Result<ModelAnswer, Failure> {
        let rest = self.clean.finish();
        self.show(rest, sink).await;
        let end = self.end()?;
        // What was to be called may be cut off too, and its arguments with it.
        let slots = if end == AnswerEnd::Complete { std::mem::take(&mut self.slots) } else { Vec::new() };
        for slot in slots.iter().filter(|slot| !slot.announced) {
            sink.show(PreviewItem::ToolUse(self.tool(&slot.name))).await;
        }
        let mut tool_uses: Vec<ToolUse> = Vec::with_capacity(slots.len());
        for (at, slot) in slots.into_iter().enumerate() {
            let id = self.asking.scrub.clean(&slot.id);
            // An id that is missing or not the only one could not be answered.
            let is_own = !id.is_empty() && tool_uses.iter().all(|earlier| earlier.id != id);
            let id = if is_own { id } else { format!("call-{ordinal}-{at}") };
            let arguments = self.asking.scrub.clean(&slot.arguments);
            tool_uses.push(ToolUse { id, name: self.tool(&slot.name), arguments });
        }
        Ok(ModelAnswer { text: self.text, tool_uses, end, usage: meter.whole() })
    }

    /// How the answer ended, or why it is none.
    fn end(&self) -> Result<AnswerEnd, Failure> {
        let says_something = !self.text.is_empty() || !self.slots.is_empty();
        match self.finish {
            Some(Finish::Complete) if self.refused => Ok(AnswerEnd::Refused),
            Some(Finish::Complete) => Ok(AnswerEnd::Complete),
            Some(Finish::CutOff) => Ok(AnswerEnd::CutOff),
            Some(Finish::Refused) => Ok(AnswerEnd::Refused),
            Some(Finish::Failed) => Err(self.interrupted("failed in the middle of its answer")),
            None if self.done && self.refused => Ok(AnswerEnd::Refused),
            None if self.done && says_something => Ok(AnswerEnd::Complete),
            None if says_something => Err(self.interrupted("ended the stream in the middle of its answer")),
            None if self.odd => Err(self.not_the_protocol("it sends JSON of another kind")),
            None => Err(self.interrupted("ended the stream without an answer")),
        }
    }

    /// Ends the answer here, because it is longer than the request allows.
    pub(crate) const fn cut(&mut self) {
        self.finish = Some(Finish::CutOff);
        self.done = true;
    }

    fn interrupted(&self, what: &str) -> Failure {
        Failure::new(FailureKind::Interrupted, format!("`{}` {what}", self.asking.host))
    }

    fn not_the_protocol(&self, why: &str) -> Failure {
        let why = quoted(why, self.asking.scrub);
        self.rejected(&format!("does not answer as Chat Completions does: {why}"))
    }

    fn rejected(&self, what: &str) -> Failure {
        Failure::new(FailureKind::Rejected, format!("`{}` {what}; check `openai.base_url`", self.asking.host))
    }
}

/// Whether `data` is JSON that breaks off: what a connection leaves that ends early.
fn is_half(data: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(data).is_err_and(|error| error.is_eof())
}

impl Finish {
    fn of(reason: &str) -> Self {
        match reason.to_ascii_lowercase().as_str() {
            "stop" | "tool_calls" | "function_call" | "eos" | "eos_token" | "end_turn" | "stop_sequence"
            | "tool_use" => Self::Complete,
            "content_filter" | "refusal" | "safety" => Self::Refused,
            "error" => Self::Failed,
            // "length", or one of a server's own: what is not known to be whole is not taken for it.
            _ => Self::CutOff,
        }
    }
}

impl Slot {
    fn add(&mut self, piece: CallPiece) {
        if self.id.is_empty() {
            self.id = piece.id;
        }
        // Some servers repeat the name with every piece.
        if piece.name != self.name && self.arguments.is_empty() {
            self.name.push_str(&piece.name);
        }
        self.nesting.take(&piece.arguments);
        self.arguments.push_str(&piece.arguments);
    }
}

/// How deep in an object a text is that comes in pieces; each is looked at once.
#[derive(Debug, Default)]
struct Nesting {
    depth: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Nesting {
    fn take(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => {
                    self.begun = true;
                    self.depth = self.depth.saturating_add(1);
                }
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Whether there was an object, and it is over.
    const fn is_closed(&self) -> bool {
        self.begun && self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests;
