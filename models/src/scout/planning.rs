//! What a request needs, in the form of a plan.

use serde_json::json;

use super::{
    conversation::Conversation,
    intent::{Content, Intent},
    pursue::{Step, asked},
};

/// The files it would write. All else only looks.
pub(super) fn step(conversation: &Conversation) -> Step {
    let steps: Vec<_> = asked(conversation)
        .into_iter()
        .filter_map(|intent| match intent {
            Intent::Write { path, content } => {
                let content = match content {
                    Content::Text(text) => json!({ "is": text }),
                    Content::Copy(from) => json!({ "from": "fs.read", "with": { "path": { "is": from } } }),
                    // What it makes of results is for a person to see.
                    Content::Found(_) => json!({ "ask": true }),
                };
                Some(json!({ "tool": "fs.write", "arguments": { "path": { "is": path }, "content": content } }))
            }
            _ => None,
        })
        .collect();
    Step::Say(json!({ "steps": steps }).to_string())
}
