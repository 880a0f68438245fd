//! `fs.edit`: changes within a file, all of them or none. What the file becomes is worked out by a crate of its own, with which the host
//! has worked it out too, before the call was judged; the host puts only that in its place.

use crate::ephor::tool::host::replace;
use crate::exports::ephor::tool::guest::{Answer, Description, Failure};
use crate::path::Path;
use crate::text::{count, visible};
use crate::workspace::{ErrorCode, Found, Kind, Workspace, kind_of};
use crate::write::failed;
use ephor_edit::{Diff, Look, MOST_BYTES, Patch, Replacement, Replacements, Text};
use serde::Deserialize;

pub(crate) const NAME: &str = "fs.edit";

/// Lines of the difference that an answer shows, and how wide they are.
const SHOWN: usize = 120;
const COLUMNS: usize = 240;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
    edits: Option<Vec<Edit>>,
    patch: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

/// What is to be done to the file.
enum Change {
    Edits(Replacements),
    Patch(Patch),
}

pub(crate) fn description() -> Description {
    Description {
        name: NAME.to_owned(),
        description: "Changes parts of a text file of the workspace, all of them or none, and shows what has changed. Give either \
                      `edits`, each of which puts `new` in the place of `old`, or `patch`, a unified diff of this one file. `old` has \
                      to stand in the file exactly, spaces and line ends with it, and exactly once: give enough of the lines around it, \
                      or set `all` to replace it wherever it stands. Edits are made in order, each in what the one before left. In a \
                      patch the lines decide and line numbers are hints; `--- /dev/null` makes a file and `+++ /dev/null` removes it. \
                      Where something is not found, the answer says what is there instead."
            .to_owned(),
        input: r#"{"type":"object","properties":{"path":{"type":"string","minLength":1,"description":"Path of the file, relative to the workspace."},"edits":{"type":"array","minItems":1,"maxItems":100,"items":{"type":"object","properties":{"old":{"type":"string","minLength":1,"description":"The text that is to be replaced, as it stands in the file."},"new":{"type":"string","description":"The text that takes its place."},"all":{"type":"boolean","description":"Replace it wherever it stands. Default false."}},"required":["old","new"],"additionalProperties":false}},"patch":{"type":"string","minLength":1,"description":"A unified diff of this file, such as git makes."}},"required":["path"],"additionalProperties":false}"#.to_owned(),
    }
}

impl Arguments {
    fn change(self) -> Result<Change, Failure> {
        let invalid = |why: String| Failure::InvalidArguments(why);
        match (self.edits, self.patch) {
            (Some(edits), None) => {
                let mut replacements = Vec::new();
                for (number, Edit { old, new, all }) in (1..).zip(edits) {
                    let edit = Replacement::new(old, new, all);
                    replacements.push(edit.map_err(|why| invalid(format!("edit {number}: {why}")))?);
                }
                Replacements::new(replacements).map(Change::Edits).map_err(|why| invalid(why.to_string()))
            }
            (None, Some(patch)) => {
                let text = Text::new(&patch).map_err(|why| invalid(format!("the patch is too large: {why}")))?;
                let patch = Patch::parse(text).map_err(|why| invalid(why.to_string()))?;
                match patch.sections().len() {
                    1 => Ok(Change::Patch(patch)),
                    files => Err(invalid(format!(
                        "the patch is for {files} files; call `fs.edit` once for each, with its part of the patch"
                    ))),
                }
            }
            _ => Err(invalid("give either `edits` or `patch`".to_owned())),
        }
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: Arguments) -> Result<Answer, Failure> {
    let path = Path::parse(&arguments.path)?;
    if path.is_workspace() || arguments.path.ends_with('/') {
        return Err(Failure::Refused(format!("`{}` names a directory, not a file", visible(&arguments.path))));
    }
    let change = arguments.change()?;
    let shown = path.shown();
    let old = match read(workspace, &path) {
        Ok(text) => Some(text),
        Err(Failure::NotFound(why)) if matches!(change, Change::Edits(_)) => {
            return Err(Failure::NotFound(format!("{why}; `fs.write` makes a file")));
        }
        Err(Failure::NotFound(_)) => None,
        Err(failure) => return Err(failure),
    };
    let too_large = |why| Failure::Refused(format!("`{shown}`: {why}"));
    let before = old.as_deref().map(Text::new).transpose().map_err(too_large)?;
    let missed = |why: String| Failure::Failed(format!("`{shown}` stays as it is: {why}"));
    let new = match &change {
        Change::Edits(edits) => match before {
            Some(before) => Some(edits.apply(before).map_err(|why| missed(why.to_string()))?),
            None => None,
        },
        Change::Patch(patch) => {
            let [section] = patch.sections() else { return Err(missed("the patch is for several files".to_owned())) };
            if !section.is_of(path.as_str()) {
                return Err(Failure::InvalidArguments(format!("the patch names another file than `{shown}`")));
            }
            section.apply(before).map_err(|why| missed(why.to_string()))?
        }
    };
    let replaced = replace(path.as_str(), new.as_ref().map(String::as_bytes), None, None).map_err(failed)?;
    let after = new.as_deref().map(Text::new).transpose().map_err(too_large)?;
    Ok(answer(&path, &Diff::between(before, after), (old.is_some(), new.is_some()), replaced.lost))
}

/// The whole file as text.
fn read(workspace: &Workspace, path: &Path) -> Result<String, Failure> {
    let shown = path.shown();
    let mut file = match workspace.find(path.as_wasi())? {
        Found::File(file) => file,
        Found::Directory(_) => return Err(Failure::Refused(format!("`{shown}` is a directory"))),
    };
    let io = |code: ErrorCode| workspace.explain(path.as_wasi(), code);
    let mut bytes = Vec::new();
    loop {
        let chunk = file.next_chunk().map_err(io)?;
        if chunk.is_empty() {
            break;
        }
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MOST_BYTES {
            return Err(Failure::Refused(format!("`{shown}` has more than {MOST_BYTES} bytes, too many to edit")));
        }
    }
    let refused = |what: &str| Failure::Refused(format!("`{shown}` is {what}; only text in UTF-8 is edited"));
    match kind_of(&bytes) {
        Kind::Text => String::from_utf8(bytes).map_err(|_| refused("not UTF-8")),
        Kind::Utf16 => Err(refused("UTF-16")),
        Kind::Binary | Kind::Image(_) => Err(refused("binary")),
    }
}

fn answer(path: &Path, diff: &Diff<'_>, (was, is): (bool, bool), lost: Vec<String>) -> Answer {
    let shown = path.shown();
    let look = Look { columns: COLUMNS, lines: SHOWN, context: 2, spell: str::to_owned };
    let mut content: String = diff.shown(&look).lines().into_iter().map(|row| row + "\n").collect();
    for sentence in lost {
        content.push_str(&sentence);
        content.push('\n');
    }
    let lines = |number: usize| count(number as u64, "line", "lines");
    let summary = match (was, is) {
        (false, _) => format!("made `{shown}` with {}", lines(diff.added())),
        (true, false) => format!("removed `{shown}`, which had {}", lines(diff.removed())),
        (true, true) => {
            format!("edited `{shown}`: {} removed, {} added", lines(diff.removed()), lines(diff.added()))
        }
    };
    Answer { content, summary, omitted: Vec::new() }
}
