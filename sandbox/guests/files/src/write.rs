//! `fs.write`: one file, replaced as a whole. The host does it, since WASI has no words for what has to be kept of a file.

use crate::ephor::tool::host::{Unreplaced, replace};
use crate::exports::ephor::tool::guest::{Answer, Description, Failure};
use crate::path::Path;
use crate::text::{count, visible};
use serde::Deserialize;

pub(crate) const NAME: &str = "fs.write";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
    content: String,
}

pub(crate) fn description() -> Description {
    Description {
        name: NAME.to_owned(),
        description: "Writes a text file of the workspace: creates it, with its parent directories, or replaces all of \
                      its content at once. Says how many bytes it wrote."
            .to_owned(),
        input: r#"{"type":"object","properties":{"path":{"type":"string","minLength":1,"description":"Path of the file, relative to the workspace."},"content":{"type":"string","description":"The whole new content of the file."}},"required":["path","content"],"additionalProperties":false}"#.to_owned(),
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Answer, Failure> {
    let path = Path::parse(&arguments.path)?;
    if path.is_workspace() || arguments.path.ends_with('/') {
        return Err(Failure::Refused(format!("`{}` names a directory, not a file", visible(&arguments.path))));
    }
    let replaced = replace(path.as_str(), arguments.content.as_bytes()).map_err(|error| match error {
        Unreplaced::Refused(why) => Failure::Refused(why),
        Unreplaced::Changed(why) => Failure::Failed(why),
        Unreplaced::Io(why) => Failure::Io(why),
    })?;
    let written = count(arguments.content.len() as u64, "byte", "bytes");
    let shown = path.shown();
    let summary = match replaced.old_size {
        None => format!("wrote {written} to the new file `{shown}`"),
        Some(old) => format!("wrote {written} to `{shown}` in place of {}", count(old, "byte", "bytes")),
    };
    let mut content = format!("{summary}\n");
    for sentence in replaced.lost {
        content.push_str(&sentence);
        content.push('\n');
    }
    Ok(Answer { content, summary, omitted: Vec::new() })
}
