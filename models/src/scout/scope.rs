//! What a request needs, for a door that asks before anything is done.

use ephor_kernel::SCOPE_TOOL;
use serde_json::json;

use super::{
    conversation::{Call, Conversation},
    intent::Intent,
    pursue::{Step, asked},
};

/// The tools that only look, and those that act, with where.
pub(super) fn step(conversation: &Conversation) -> Step {
    let looks = ["fs.list", "fs.read", "fs.search"].into_iter().map(|tool| json!({ "tool": tool }));
    let writes = asked(conversation).into_iter().filter_map(|intent| match intent {
        Intent::Write { path, .. } => Some(json!({ "tool": "fs.write", "targets": [path] })),
        _ => None,
    });
    let pins: Vec<_> = looks.chain(writes).collect();
    Step::Call(vec![Call { tool: SCOPE_TOOL, arguments: json!({ "pins": pins }).to_string() }])
}
