//! `builtin/scout`: a small deterministic program in a model's place. It is no language model and says so.
//!
//! A request goes through five steps, each in a file of its own: [`token`] cuts it into words, [`clause`] into the
//! things asked, [`understand`] finds what each asks for ([`intent`]), [`pursue`] says which tool calls that still needs
//! or what came of them, and [`report`] writes that down. Nothing is kept between requests: what was called and what it
//! returned stands in the messages, so the same messages give the same answer.
//!
//! Only trusted text is a request. What is piped in, and what tools return, is copied and counted and never obeyed.

mod about;
mod clause;
mod conversation;
mod count;
mod difference;
mod intent;
mod needle;
mod part;
mod place;
mod planning;
mod pursue;
mod question;
mod report;
mod results;
mod spelling;
mod token;
mod understand;
mod verb;
mod write;

use ephor_base::{AnswerEnd, ModelAnswer, ModelTask, Purpose, ToolUse};
use ephor_kernel::PreviewItem;

use self::{conversation::Conversation, pursue::Step};
use crate::{meter::Meter, script::pieces, sink::Sink};

/// Bytes of a piece of the answer, as it is shown: about a line.
const PIECE: usize = 96;

/// Answers `task`. Never fails: what it cannot do, it says.
pub(crate) async fn ask(task: &ModelTask, sink: &mut impl Sink, meter: &mut Meter) -> ModelAnswer {
    meter.sent();
    match step(task) {
        Step::Call(calls) => {
            let mut tool_uses = Vec::with_capacity(calls.len());
            for (at, call) in calls.into_iter().enumerate() {
                let id = format!("call-{}-{at}", task.ordinal);
                meter.wrote(call.tool.len() + call.arguments.len());
                sink.show(PreviewItem::ToolUse(call.tool.to_owned())).await;
                tool_uses.push(ToolUse { id, name: call.tool.to_owned(), arguments: call.arguments });
            }
            ModelAnswer { tool_uses, usage: meter.free(), ..ModelAnswer::default() }
        }
        Step::Say(text) => {
            let (text, is_cut) = report::bounded(text, task.max_output_tokens);
            for piece in pieces(&text, text.len().div_ceil(PIECE)) {
                meter.wrote(piece.len());
                sink.show(PreviewItem::Text(piece.to_owned())).await;
            }
            let end = if is_cut { AnswerEnd::CutOff } else { AnswerEnd::Complete };
            ModelAnswer { text, end, usage: meter.free(), ..ModelAnswer::default() }
        }
    }
}

/// What to do next.
fn step(task: &ModelTask) -> Step {
    let conversation = Conversation::read(task);
    match task.purpose {
        Purpose::Plan => planning::step(&conversation),
        Purpose::Converse => pursue::step(&conversation),
    }
}

#[cfg(test)]
mod tests;
