//! `fs.list`: the entries of one directory.

use crate::exports::ephor::tool::guest::{Answer, Description, Failure};
use crate::path::Path;
use crate::text::{count, visible};
use crate::workspace::{DescriptorType, DirectoryEntry, Found, PathFlags, Workspace, kind};
use serde::Deserialize;

pub(crate) const NAME: &str = "fs.list";

/// Entries shown; more than this tells a model little.
const SHOWN: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
}

pub(crate) fn description() -> Description {
    Description {
        name: NAME.to_owned(),
        description: "Lists one directory of the workspace, one entry a line, sorted by name: `dir/`, \
                      `file (12 bytes)`, `link -> target`. Shows hidden and ignored entries too; does not descend."
            .to_owned(),
        input: r#"{"type":"object","properties":{"path":{"type":"string","minLength":1,"description":"Path of the directory, relative to the workspace; `.` is the workspace itself."}},"required":["path"],"additionalProperties":false}"#.to_owned(),
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
    let entries = directory.entries().map_err(|code| workspace.explain(path.as_wasi(), code))?;
    let total = entries.named.len();
    let mut content = String::new();
    for entry in entries.named.iter().take(SHOWN) {
        content.push_str(&line(&directory, entry));
        content.push('\n');
    }

    let mut omitted = Vec::new();
    if let Some(first) = entries.named.get(SHOWN) {
        omitted.push(format!(
            "{} after these are left out, from `{}` on.",
            count((total - SHOWN) as u64, "entry", "entries"),
            visible(&first.name)
        ));
    }
    if entries.unnamed > 0 {
        omitted.push(format!("{} left out: the name is not UTF-8.", count(entries.unnamed, "entry is", "entries are")));
    }
    let summary = format!("{} in `{}`", count(total as u64 + entries.unnamed, "entry", "entries"), path.shown());
    Ok(Answer { content, summary, omitted })
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
