//! `fs.write`: one file, replaced as a whole. The host does it, since WASI has no words for what has to be kept of a file.

use crate::ephor::tool::host::{Unreplaced, replace};
use crate::exports::ephor::tool::guest::{Answer, Description, Failure};
use crate::path::Path;
use crate::text::{count, visible};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;

pub(crate) const NAME: &str = "fs.write";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
    /// Null removes the file; absent is an error.
    #[serde(deserialize_with = "Option::deserialize")]
    content: Option<String>,
    #[serde(default)]
    encoding: Encoding,
    expected: Option<Vec<String>>,
    mode: Option<u32>,
}

#[derive(Default, Deserialize)]
enum Encoding {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "base64")]
    Base64,
}

impl Arguments {
    /// The bytes of the file; none if it is to be removed.
    fn bytes(&self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(content) = &self.content else { return Ok(None) };
        match self.encoding {
            Encoding::Utf8 => Ok(Some(content.clone().into_bytes())),
            Encoding::Base64 => STANDARD
                .decode(content)
                .map(Some)
                .map_err(|error| Failure::InvalidArguments(format!("`content` is not base64: {error}"))),
        }
    }
}

pub(crate) fn description() -> Description {
    Description {
        name: NAME.to_owned(),
        description: "Writes a file of the workspace: creates it, with its parent directories, or replaces all of its \
                      content at once. Says how many bytes it wrote. To change parts of a file, use `fs.edit`."
            .to_owned(),
        input: r#"{"type":"object","properties":{"path":{"type":"string","minLength":1,"description":"Path of the file, relative to the workspace."},"content":{"type":["string","null"],"description":"The whole new content of the file; null removes it."},"encoding":{"enum":["utf-8","base64"]},"expected":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":64,"description":"Write only if the file has one of these SHA-256 digests now; \"\" stands for no file."},"mode":{"type":"integer","minimum":0,"maximum":511}},"required":["path","content"],"additionalProperties":false}"#.to_owned(),
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Answer, Failure> {
    let path = Path::parse(&arguments.path)?;
    if path.is_workspace() || arguments.path.ends_with('/') {
        return Err(Failure::Refused(format!("`{}` names a directory, not a file", visible(&arguments.path))));
    }
    let bytes = arguments.bytes()?;
    let (expected, mode) = (arguments.expected.as_deref(), arguments.mode);
    let replaced = replace(path.as_str(), bytes.as_deref(), expected, mode).map_err(failed)?;
    let shown = path.shown();
    let size = |bytes: u64| count(bytes, "byte", "bytes");
    let summary = match (bytes.map(|bytes| size(bytes.len() as u64)), replaced.old_size.map(size)) {
        (Some(written), None) => format!("wrote {written} to the new file `{shown}`"),
        (Some(written), Some(old)) => format!("wrote {written} to `{shown}` in place of {old}"),
        (None, Some(old)) => format!("removed `{shown}`, which held {old}"),
        (None, None) => format!("there is no `{shown}`, as expected"),
    };
    let mut content = format!("{summary}\n");
    for sentence in replaced.lost {
        content.push_str(&sentence);
        content.push('\n');
    }
    Ok(Answer { content, summary, omitted: Vec::new() })
}

pub(crate) fn failed(error: Unreplaced) -> Failure {
    match error {
        Unreplaced::Refused(why) => Failure::Refused(why),
        Unreplaced::Changed(why) => Failure::Failed(why),
        Unreplaced::Io(why) => Failure::Io(why),
    }
}
