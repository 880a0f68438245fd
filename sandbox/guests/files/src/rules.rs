//! The .gitignore files that hold for a directory.

use crate::workspace::{ErrorCode, Workspace};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// A larger .gitignore is not one.
const MAX_BYTES: usize = 1024 * 1024;

/// The rules of a directory and of those above it, outermost first.
#[derive(Default)]
pub(crate) struct Rules(Vec<Level>);

struct Level {
    /// Where the rules stand, as the length of that directory's path with its `/`: patterns are relative to it.
    prefix: usize,
    rules: Option<Gitignore>,
}

impl Rules {
    /// Adds the .gitignore of `directory`, whose path is `path` (empty for the workspace, no `/` at the end).
    /// On an error the level stands without rules; it is there to be popped either way.
    pub(crate) fn push(&mut self, directory: &Workspace, path: &str, listed: bool) -> Result<(), ErrorCode> {
        let prefix = if path.is_empty() { 0 } else { path.len() + 1 };
        let read = if listed { read(directory) } else { Ok(None) };
        let (rules, outcome) = match read {
            Ok(rules) => (rules, Ok(())),
            Err(code) => (None, Err(code)),
        };
        self.0.push(Level { prefix, rules });
        outcome
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    /// Whether `path`, relative to the workspace, is ignored. The innermost file with an opinion decides. A directory
    /// that is ignored is not entered, so nothing below it can be brought back: as in git.
    pub(crate) fn ignore(&self, path: &str, is_directory: bool) -> bool {
        for level in self.0.iter().rev() {
            let Some(rules) = &level.rules else { continue };
            let relative = path.get(level.prefix..).unwrap_or(path);
            match rules.matched(relative, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn read(directory: &Workspace) -> Result<Option<Gitignore>, ErrorCode> {
    let mut file = match directory.entry_file(".gitignore") {
        Ok(file) => file,
        // A link or something that is no file: git does not read it either.
        Err(ErrorCode::NoEntry | ErrorCode::Loop | ErrorCode::Unsupported) => return Ok(None),
        Err(code) => return Err(code),
    };
    let mut bytes = Vec::new();
    loop {
        let chunk = file.next_chunk()?;
        if chunk.is_empty() {
            break;
        }
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_BYTES {
            return Err(ErrorCode::FileTooLarge);
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new("");
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A pattern that cannot be understood matches nothing, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().map(Some).map_err(|_| ErrorCode::Invalid)
}
