//! `fs.list`: the entries of one directory.

use crate::ephor::tool::host::emit;
use crate::exports::ephor::tool::guest::{Answer, Description, Failure};
use crate::path::Path;
use crate::text::{count, visible};
use crate::workspace::{DescriptorType, DirectoryEntry, Found, PathFlags, Workspace, key, kind};
use serde::Deserialize;

pub(crate) const NAME: &str = "fs.list";

/// Entries shown; more than this tells a model little.
const SHOWN: usize = 1_000;

/// Bytes that their names take while the directory is read.
const BYTES: usize = 4 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
    after: Option<String>,
}

pub(crate) fn description() -> Description {
    Description {
        name: NAME.to_owned(),
        description: "Lists one directory of the workspace, one entry a line, sorted by name: `dir/`, \
                      `file (12 bytes)`, `link -> target`. Shows hidden and ignored entries too; does not descend. \
                      Shows 1000 entries; when there are more, the answer says with which `after` to go on."
            .to_owned(),
        input: r#"{"type":"object","properties":{"path":{"type":"string","minLength":1,"description":"Path of the directory, relative to the workspace; `.` is the workspace itself."},"after":{"type":"string","minLength":1,"description":"Entry after which to begin, as it was shown."}},"required":["path"],"additionalProperties":false}"#.to_owned(),
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: Arguments) -> Result<Answer, Failure> {
    let path = Path::parse(&arguments.path)?;
    let directory = match workspace.find(path.as_wasi())? {
        Found::Directory(directory) => directory,
        Found::File(_) => {
            return Err(Failure::Refused(format!("`{}` is a file; `fs.read` shows it", path.shown())));
        }
    };
    let after = arguments.after.as_deref().map(str::as_bytes);
    let entries = directory.entries(after, BYTES, SHOWN).map_err(|code| workspace.explain(path.as_wasi(), code))?;
    for entry in &entries.named {
        emit(&format!("{}\n", line(&directory, entry)));
    }

    let mut omitted = Vec::new();
    if let (1.., Some(last)) = (entries.left, entries.named.last()) {
        let last = visible(&String::from_utf8_lossy(&key(last)));
        omitted.push(format!(
            "{} after these are left out: call `fs.list` again with `after` `{last}`.",
            count(entries.left, "entry", "entries"),
        ));
    }
    if entries.unnamed > 0 {
        omitted.push(format!("{} left out: the name is not UTF-8.", count(entries.unnamed, "entry is", "entries are")));
    }
    let summary = format!("{} in `{}`", count(entries.total + entries.unnamed, "entry", "entries"), path.shown());
    Ok(Answer { content: String::new(), summary, omitted })
}

fn line(directory: &Workspace, entry: &DirectoryEntry) -> String {
    let name = visible(&entry.name);
    match entry.type_ {
        DescriptorType::Directory => format!("{name}/"),
        DescriptorType::SymbolicLink => match directory.descriptor().readlink_at(&entry.name) {
            Ok(target) => format!("{name} -> {}", visible(&target)),
            // WASI does not tell a target that is an absolute path.
            Err(_) => format!("{name} -> (outside the workspace)"),
        },
        DescriptorType::RegularFile => match directory.descriptor().stat_at(PathFlags::empty(), &entry.name) {
            Ok(stat) => format!("{name} ({})", count(stat.size, "byte", "bytes")),
            Err(_) => name,
        },
        other => format!("{name} ({})", kind(other)),
    }
}
