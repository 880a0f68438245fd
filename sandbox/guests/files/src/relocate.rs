//! `fs.move` and `fs.remove`: files under another name, and files and empty folders away. The host does it, as it does every change.

use crate::ephor::tool::host::{remove_folder, rename, replace};
use crate::exports::ephor::tool::guest::{Answer, Description, Failure};
use crate::path::Path;
use crate::text::{count, visible};
use crate::workspace::{Found, Workspace};
use crate::write::failed;
use serde::Deserialize;

pub(crate) const MOVE: &str = "fs.move";
pub(crate) const REMOVE: &str = "fs.remove";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Move {
    from: String,
    to: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remove {
    path: String,
}

pub(crate) fn descriptions() -> [Description; 2] {
    [
        Description {
            name: MOVE.to_owned(),
            description: "Moves a file of the workspace, or gives it another name. `to` is the whole new path, at which nothing is yet; \
                          folders above it are made, and folders that are left empty are removed. Folders are not moved: move their files."
                .to_owned(),
            input: r#"{"type":"object","properties":{"from":{"type":"string","minLength":1,"description":"Path of the file, relative to the workspace."},"to":{"type":"string","minLength":1,"description":"Its new path, relative to the workspace."}},"required":["from","to"],"additionalProperties":false}"#.to_owned(),
        },
        Description {
            name: REMOVE.to_owned(),
            description: "Removes a file of the workspace, or a folder in which nothing is. Folders above a file that are left empty go \
                          with it. Of a folder that holds something, remove the files."
                .to_owned(),
            input: r#"{"type":"object","properties":{"path":{"type":"string","minLength":1,"description":"Path of the file or the empty folder, relative to the workspace."}},"required":["path"],"additionalProperties":false}"#.to_owned(),
        },
    ]
}

pub(crate) fn run_move(arguments: Move) -> Result<Answer, Failure> {
    let (from, to) = (named(&arguments.from)?, named(&arguments.to)?);
    let lost = rename(from.as_str(), to.as_str()).map_err(failed)?;
    Ok(answer(format!("moved `{}` to `{}`", from.shown(), to.shown()), lost))
}

pub(crate) fn run_remove(workspace: &Workspace, arguments: Remove) -> Result<Answer, Failure> {
    let path = Path::parse(&arguments.path)?;
    if path.is_workspace() {
        return Err(Failure::Refused("the workspace itself is not removed".to_owned()));
    }
    match workspace.find(path.as_wasi())? {
        Found::File(_) => {
            let replaced = replace(path.as_str(), None, None, None).map_err(failed)?;
            let held = count(replaced.old_size.unwrap_or_default(), "byte", "bytes");
            Ok(answer(format!("removed `{}`, which held {held}", path.shown()), replaced.lost))
        }
        Found::Directory(_) => {
            remove_folder(path.as_str()).map_err(failed)?;
            Ok(answer(format!("removed the empty folder `{}`", path.shown()), Vec::new()))
        }
    }
}

/// A path that can be one of a file.
fn named(text: &str) -> Result<Path, Failure> {
    let path = Path::parse(text)?;
    if path.is_workspace() || text.ends_with('/') {
        return Err(Failure::Refused(format!("`{}` names a directory, not a file", visible(text))));
    }
    Ok(path)
}

fn answer(summary: String, lost: Vec<String>) -> Answer {
    let content = lost.into_iter().map(|sentence| sentence + "\n").collect();
    Answer { content, summary, omitted: Vec::new() }
}
