//! The prompt of a session: which spans, in which order.

use std::collections::BTreeSet;

use ephor_base::{CallId, Prompt, PromptMessage, SpanId};
use ephor_kernel::Moment;

/// Everything said so far, oldest first, after the instructions. An answer whose tool uses did not all come to
/// something, because its turn was cancelled, is left out with what came of them: providers refuse half a round.
pub(crate) fn build(instructions: SpanId, moments: &[Moment]) -> Prompt {
    let whole = whole_answers(moments);
    let mut messages = vec![PromptMessage::System(vec![instructions])];
    for moment in moments {
        match moment {
            Moment::Said(spans) => messages.push(PromptMessage::User(spans.clone())),
            Moment::Answered { call, .. } if whole.contains(call) => messages.push(PromptMessage::Answer(*call)),
            Moment::Result { of, index, spans, .. } if whole.contains(of) => {
                messages.push(PromptMessage::Result { of: *of, index: *index, spans: spans.clone() });
            }
            Moment::Answered { .. } | Moment::Result { .. } | Moment::ModelFailed { .. } | Moment::TurnEnded(_) => {}
        }
    }
    Prompt { messages }
}

fn whole_answers(moments: &[Moment]) -> BTreeSet<CallId> {
    let results = |call: CallId| {
        moments.iter().filter(move |moment| matches!(moment, Moment::Result { of, .. } if *of == call)).count()
    };
    moments
        .iter()
        .filter_map(|moment| match moment {
            Moment::Answered { call, answer } if answer.tool_uses.len() == results(*call) => Some(*call),
            _ => None,
        })
        .collect()
}
