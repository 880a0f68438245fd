//! What a command does not see of its workspace.

use std::path::{Path, PathBuf};

use crate::locate::shown;

/// The most files and folders that are looked at.
const MOST_ENTRIES: usize = 5_000_000;

/// The files and folders below `workspace` for which `withheld` holds, but for those in `shows` and what lies below these. What is in
/// `shows` and not withheld itself, such as a folder around such a file, shows nothing: the call was not judged by that file. Follows no
/// link.
///
/// # Errors
/// A folder cannot be read, or there are too many entries: a sentence.
pub(super) fn find(workspace: &Path, withheld: fn(&str) -> bool, shows: &[String]) -> Result<Vec<PathBuf>, String> {
    let shows: Vec<&String> = shows.iter().filter(|path| withheld(path)).collect();
    let mut hidden = Vec::new();
    // Each as it is opened, and as it is judged.
    let mut folders = vec![(PathBuf::new(), String::new())];
    let mut entries = 0_usize;
    while let Some((folder, judged)) = folders.pop() {
        let failed = |error: std::io::Error| format!("`{}` cannot be looked at: {error}", shown(&judged));
        let list = match workspace.join(&folder).read_dir() {
            Ok(list) => list,
            // A command could open what its own user has closed: it sees none of it.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied && !judged.is_empty() => {
                hidden.push(folder);
                continue;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        for entry in list {
            let entry = entry.map_err(failed)?;
            entries = entries.saturating_add(1);
            if entries > MOST_ENTRIES {
                return Err(format!("the workspace has more than {MOST_ENTRIES} files and folders"));
            }
            let kind = entry.file_type().map_err(failed)?;
            let name = entry.file_name();
            let path = join(&judged, &name.to_string_lossy());
            let is_shown = shows.iter().any(|shown| is_below(&path, shown));
            if kind.is_symlink() || is_shown {
                continue;
            }
            let leads_to_shown = kind.is_dir() && shows.iter().any(|shown| is_below(shown, &path));
            if withheld(&path) && !leads_to_shown {
                hidden.push(folder.join(name));
            } else if kind.is_dir() {
                folders.push((folder.join(name), path));
            }
        }
    }
    Ok(hidden)
}

/// Whether `path` is `other` or lies below it.
fn is_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
