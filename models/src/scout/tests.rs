//! Scout, over phrasings and whole conversations.

use ephor_base::{Message, ModelTask};
use serde_json::Value;

use super::{pursue::Step, step};
use crate::testing::{said, task, tools};

mod answers;
mod phrasings;

fn asked(text: &str) -> ModelTask {
    let mut task = task("builtin", "scout", "", 0);
    task.tools = tools();
    task.messages = vec![Message::User(vec![said(text)])];
    task
}
