//! The prompt of a session: which spans, in which order.

use ephor_base::{CallId, Prompt, PromptMessage, SpanId};
use ephor_kernel::Moment;

/// Everything said so far, oldest first, after the instructions. An answer whose tool uses did not all come to
/// something, because its turn was cancelled, is left out with what came of them: providers refuse half a round.
pub(crate) fn build(instructions: SpanId, moments: &[Moment]) -> Prompt {
    let mut messages = vec![PromptMessage::System(vec![instructions])];
    for moment in moments {
        match moment {
            Moment::Said(spans) => messages.push(PromptMessage::User(spans.clone())),
            Moment::Answered { call, answer } => {
                // Results stand right behind their answer, whatever happened before they came.
                let uses = 0..u32::try_from(answer.tool_uses.len()).unwrap_or(u32::MAX);
                let results: Option<Vec<_>> = uses.map(|index| result(moments, *call, index)).collect();
                if let Some(results) = results {
                    messages.push(PromptMessage::Answer(*call));
                    messages.extend(results);
                }
            }
            // It was made while a tool was called; what came of that stands before it.
            Moment::Planned(spans) => messages.push(PromptMessage::User(spans.clone())),
            Moment::Result { .. } | Moment::ModelFailed { .. } | Moment::TurnEnded(_) => {}
        }
    }
    Prompt { messages }
}

/// What came of one tool use.
fn result(moments: &[Moment], call: CallId, at: u32) -> Option<PromptMessage> {
    moments.iter().find_map(|moment| match moment {
        Moment::Result { of, index, spans, .. } if (*of, *index) == (call, at) => {
            Some(PromptMessage::Result { of: *of, index: *index, spans: spans.clone() })
        }
        _ => None,
    })
}
