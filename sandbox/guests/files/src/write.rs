//! `fs.write`: one file, replaced as a whole.

use crate::exports::ephor::tool::guest::{Answer, Description, Failure};
use crate::path::{Path, split};
use crate::text::{count, visible};
use crate::workspace::{Descriptor, DescriptorFlags, DescriptorType, ErrorCode, OpenFlags, PathFlags, Workspace, kind};
use serde::Deserialize;

pub(crate) const NAME: &str = "fs.write";

/// Symbolic links followed to the file: a longer chain is a loop.
const MOST_LINKS: usize = 8;

/// Names tried for the new content before it takes its place; a leftover is from a call that was cut short.
const MOST_PARTS: u32 = 64;

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

pub(crate) fn run(workspace: &Workspace, arguments: Arguments) -> Result<Answer, Failure> {
    let path = Path::parse(&arguments.path)?;
    if path.is_workspace() || arguments.path.ends_with('/') {
        return Err(Failure::Refused(format!("`{}` names a directory, not a file", visible(&arguments.path))));
    }
    let root = workspace.descriptor();
    let target = follow(workspace, path.as_str())?;
    let replaced = old_size(workspace, &target)?;
    let (parent, _) = split(&target);
    let parents = Parents::create(root, parent).map_err(|code| workspace.explain(parent, code))?;
    if let Err(code) = replace(root, &target, arguments.content.as_bytes()) {
        parents.remove(root);
        return Err(workspace.explain(&target, code));
    }

    let written = count(arguments.content.len() as u64, "byte", "bytes");
    let shown = path.shown();
    let summary = match replaced {
        None => format!("wrote {written} to the new file `{shown}`"),
        Some(old) => format!("wrote {written} to `{shown}` in place of {}", count(old, "byte", "bytes")),
    };
    Ok(Answer { content: format!("{summary}\n"), summary, omitted: Vec::new() })
}

/// The path of the file itself, when `path` is a symbolic link to it: replacing the link would leave the file behind.
/// Where a link leads is left to the host to resolve and to keep inside.
fn follow(workspace: &Workspace, path: &str) -> Result<String, Failure> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match workspace.descriptor().stat_at(PathFlags::empty(), &path) {
            Ok(stat) if matches!(stat.type_, DescriptorType::SymbolicLink) => {}
            Ok(_) | Err(ErrorCode::NoEntry) => return Ok(path),
            Err(code) => return Err(workspace.explain(&path, code)),
        }
        let target = workspace.descriptor().readlink_at(&path).map_err(|code| workspace.explain(&path, code))?;
        if target.starts_with('/') {
            return Err(workspace.explain(&path, ErrorCode::NotPermitted));
        }
        let (parent, _) = split(&path);
        path = format!("{parent}/{target}");
    }
    Err(workspace.explain(&path, ErrorCode::Loop))
}

/// The size of the file that is there, or nothing.
fn old_size(workspace: &Workspace, path: &str) -> Result<Option<u64>, Failure> {
    match workspace.descriptor().stat_at(PathFlags::empty(), path) {
        Ok(stat) if matches!(stat.type_, DescriptorType::RegularFile) => Ok(Some(stat.size)),
        Ok(stat) => Err(Failure::Refused(format!(
            "`{}` is {}; only regular files are written",
            visible(path),
            kind(stat.type_)
        ))),
        Err(ErrorCode::NoEntry) => Ok(None),
        Err(code) => Err(workspace.explain(path, code)),
    }
}

/// The directories this call made, outermost first.
struct Parents(Vec<String>);

impl Parents {
    fn create(root: &Descriptor, directory: &str) -> Result<Self, ErrorCode> {
        let mut made = Self(Vec::new());
        if root.stat_at(PathFlags::SYMLINK_FOLLOW, directory).is_ok() {
            return Ok(made);
        }
        let mut path = String::new();
        for part in directory.split('/') {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(part);
            match root.create_directory_at(&path) {
                Ok(()) => made.0.push(path.clone()),
                Err(_) if root.stat_at(PathFlags::SYMLINK_FOLLOW, &path).is_ok() => {}
                Err(code) => {
                    made.remove(root);
                    return Err(code);
                }
            }
        }
        Ok(made)
    }

    /// Takes them away again after a failure. One that someone has put something into stays.
    fn remove(&self, root: &Descriptor) {
        for path in self.0.iter().rev() {
            let _ = root.remove_directory_at(path);
        }
    }
}

/// The new content is written beside the file and then takes its name, so that a reader sees the old file or the new.
fn replace(root: &Descriptor, path: &str, content: &[u8]) -> Result<(), ErrorCode> {
    let (parent, _) = split(path);
    let (part, file) = create_part(root, parent)?;
    let written = write_all(&file, content).and_then(|()| root.rename_at(&part, root, path));
    if written.is_err() {
        let _ = root.unlink_file_at(&part);
    }
    written
}

fn create_part(root: &Descriptor, parent: &str) -> Result<(String, Descriptor), ErrorCode> {
    for number in 0..MOST_PARTS {
        let part = format!("{parent}/.ephor-part-{number}");
        let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        match root.open_at(PathFlags::empty(), &part, flags, DescriptorFlags::WRITE) {
            Err(ErrorCode::Exist) => {}
            Err(code) => return Err(code),
            Ok(file) => return Ok((part, file)),
        }
    }
    Err(ErrorCode::Exist)
}

fn write_all(file: &Descriptor, content: &[u8]) -> Result<(), ErrorCode> {
    const PIECE: usize = 1024 * 1024;
    let mut offset = 0;
    for piece in content.chunks(PIECE) {
        let mut rest = piece;
        while !rest.is_empty() {
            let written = file.write(rest, offset)?;
            if written == 0 {
                return Err(ErrorCode::Io);
            }
            offset += written;
            rest = rest.get(written as usize..).unwrap_or_default();
        }
    }
    // The name must not point at content that is not on the disk yet.
    file.sync_data()
}
