//! An answer, read as it comes.

use std::{pin::pin, time::Duration};

use ephor_base::{Failure, ModelAnswer, ModelTask, ToolUse};
use ephor_egress::Error;
use ephor_kernel::PreviewItem;
use ephor_wire::{Answer, Broken, Cut, Decoder, End, Event, Limits, Part};
use futures_util::{Stream, StreamExt, future::OptionFuture};

use super::{Asking, state};
use crate::{
    meter::Meter,
    scrub::{Scrub, Scrubbed},
    sink::Sink,
};

/// Bytes of an answer for each token it may have: more than text has on average in any language, and no more than the door believes
/// of what was set aside (twice of three). A server that passes over the limit would otherwise write until its context is full.
const BYTES_PER_TOKEN: u64 = 5;

/// How long a server may take, once an answer is complete, to say what it has used and that nothing more comes.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Shows an answer while it comes, without the key.
struct Showing<'a, S> {
    sink: &'a mut S,
    clean: Scrubbed<'a>,
    scrub: &'a Scrub,
}

impl<S: Sink> Showing<'_, S> {
    async fn show(&mut self, news: &mut Vec<Event>, meter: &mut Meter) {
        for event in news.drain(..) {
            match event {
                Event::Text(text) => {
                    let text = self.clean.push(&text);
                    self.text(text).await;
                }
                Event::Call { name, .. } => self.sink.show(PreviewItem::ToolUse(self.scrub.clean(&name))).await,
                Event::Reported(reported) => meter.report(reported),
                Event::Thinking(_) | Event::Arguments { .. } => {}
            }
        }
    }

    async fn text(&mut self, text: String) {
        if !text.is_empty() {
            self.sink.show(PreviewItem::Text(text)).await;
        }
    }
}

/// Reads an answer to its end, streamed or not. Once it is complete, nothing that becomes of its connection takes it back. `bytes` are those of
/// the request.
pub(super) async fn read(
    (task, bytes): (&ModelTask, usize),
    asking: &Asking<'_>,
    body: impl Stream<Item = Result<Vec<u8>, Error>> + Send,
    sink: &mut impl Sink,
    meter: &mut Meter,
) -> Result<ModelAnswer, Failure> {
    let mut decoder = Decoder::new(asking.kind.grammar(), limits(task.max_output_tokens, bytes), task.ordinal);
    let mut showing = Showing { sink, clean: asking.scrub.pieces(), scrub: asking.scrub };
    let (mut news, mut broken) = (Vec::new(), None);
    let mut body = pin!(body);
    let mut last_words = pin!(OptionFuture::default());
    let mut hurries = false;
    while !decoder.is_done() {
        let piece = tokio::select! {
            biased;
            piece = body.next() => piece,
            Some(()) = last_words.as_mut() => break,
        };
        match piece {
            None => break,
            Some(Err(_)) if decoder.has_ended() => break,
            Some(Err(error)) => return Err(asking.unconnected(&error)),
            Some(Ok(bytes)) => broken = decoder.push(&bytes, &mut news).err(),
        }
        meter.has_written(decoder.written());
        showing.show(&mut news, meter).await;
        if decoder.has_ended() && !hurries {
            hurries = true;
            last_words.set(Some(tokio::time::sleep(LAST_WORDS)).into());
        }
    }
    let answer = decoder.finish(&mut news);
    showing.show(&mut news, meter).await;
    let rest = showing.clean.finish();
    showing.text(rest).await;
    settled(answer, broken.as_ref(), task, asking, meter)
}

/// How much of a response is taken. What a model writes beyond its limit is cut off.
fn limits(max_output_tokens: u64, request_bytes: usize) -> Limits {
    let most = usize::try_from(max_output_tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
    Limits::of_request(u32::try_from(max_output_tokens).unwrap_or(u32::MAX), request_bytes).with_answer(most)
}

/// The answer as it is recorded.
fn settled(
    Answer { parts, end, .. }: Answer,
    broken: Option<&Broken>,
    task: &ModelTask,
    asking: &Asking<'_>,
    meter: &Meter,
) -> Result<ModelAnswer, Failure> {
    let is_bound =
        matches!(broken, Some(Broken::EventTooLong(_) | Broken::ResponseTooLong(_) | Broken::AnswerTooLong(_)));
    let end = match end {
        // What is longer than the request allows is cut off there, in whatever form it comes.
        End::Failed(_) if is_bound => End::CutOff(Cut::Bound),
        End::CutOff(Cut::Stream) => return Err(asking.cut()),
        End::Failed(complaint) => return Err(asking.complained(&complaint, None)),
        end => end,
    };
    let (text, state) = state::kept(&parts, &task.model, asking.scrub);
    // What was to be called may be cut off too, and its arguments with it.
    let is_whole = end == End::Complete;
    let tool_uses = if is_whole { calls(&parts, task.ordinal, asking.scrub) } else { Vec::new() };
    let end = end.recorded().unwrap_or_default();
    Ok(ModelAnswer { text, tool_uses, end, usage: meter.whole(), state: state.filter(|_| is_whole) })
}

/// The calls, without the key. What had it in its id is told from the others all the same, or it could not be answered.
fn calls(parts: &[Part], turn: u64, scrub: &Scrub) -> Vec<ToolUse> {
    let mut calls: Vec<ToolUse> = Vec::new();
    for call in parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None }) {
        let [mut id, name, arguments] = [&call.id, &call.name, &call.arguments].map(|text| scrub.clean(text));
        if id != call.id && calls.iter().any(|earlier| earlier.id == id) {
            id = format!("call-{turn}-key-{}", calls.len());
        }
        calls.push(ToolUse { id, name, arguments });
    }
    calls
}
