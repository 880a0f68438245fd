//! How a command says that it failed: in words, or, where `--json` asks for it, as one object that `docs/json.md` describes.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::json;

use crate::{
    client::{InUse, NodeGone},
    home::Locked,
    terminal,
};

/// No node runs on this home.
#[derive(Debug, thiserror::Error)]
#[error("no node runs on `{}`; `ephor up` starts one", .0.display())]
pub(crate) struct NoNode(pub(crate) PathBuf);

/// This home has no record yet.
#[derive(Debug, thiserror::Error)]
#[error("there is no chain yet on `{}`; `ephor run` begins one", .0.display())]
pub(crate) struct NoChain(pub(crate) PathBuf);

/// The node would not do it, and says why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

/// What kind of failure it is. A program may rely on these.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
#[serde(rename_all = "snake_case")]
enum Code {
    /// The command line makes no sense.
    Usage,
    NoNode,
    NoChain,
    /// Another process uses the home.
    InUse,
    /// The node went away before it answered.
    NodeEnded,
    /// The node would not do it.
    Refused,
    /// Anything else.
    Failed,
}

impl Code {
    fn of(error: &anyhow::Error) -> Self {
        if error.is::<NoNode>() {
            Self::NoNode
        } else if error.is::<NoChain>() {
            Self::NoChain
        } else if error.is::<Locked>() || error.is::<InUse>() {
            Self::InUse
        } else if error.is::<NodeGone>() {
            Self::NodeEnded
        } else if error.is::<Refused>() {
            Self::Refused
        } else {
            Self::Failed
        }
    }
}

/// Tells why a command failed.
pub(crate) fn tell(error: &anyhow::Error) {
    if is_json() {
        terminal::tell(&format!("{}\n", json!({ "error": object(error) })));
    } else {
        terminal::tell(&format!("ephor: {error:#}\n"));
    }
}

/// Tells why the command line makes no sense. The words quote what was typed, which may come from anywhere.
pub(crate) fn tell_usage(error: &clap::Error) {
    let words = error.render().to_string();
    if is_json() {
        terminal::tell(&format!("{}\n", json!({ "error": said(Code::Usage, words.trim_end()) })));
    } else {
        terminal::tell(&words);
    }
}

/// An error, for a program.
pub(crate) fn object(error: &anyhow::Error) -> serde_json::Value {
    said(Code::of(error), &format!("{error:#}"))
}

fn said(code: Code, message: &str) -> serde_json::Value {
    json!({ "code": code, "message": message, "hint": hint(message) })
}

/// What to type next: the first command that the message names.
fn hint(message: &str) -> Option<&str> {
    message.split('`').skip(1).step_by(2).find(|quoted| quoted.starts_with("ephor "))
}

/// Whether the command was to print JSON. It is looked for in what was typed, since that may be what could not be parsed.
fn is_json() -> bool {
    std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json")
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn the_hint_is_the_first_command_that_a_message_names() {
        assert_eq!(hint("no node runs on `/h`; `ephor up` starts one, `ephor ps` shows it"), Some("ephor up"));
        assert_eq!(hint("the file `ephor.toml` is not there"), None);
        assert_eq!(hint("ephor up"), None);
    }
}
