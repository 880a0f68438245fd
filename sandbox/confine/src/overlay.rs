//! What a command has changed: the upper layer of its overlay, read by the host, described, and applied to the workspace.
//!
//! The upper layer is untrusted input. It is walked from one open folder, by name, without following links. The number of
//! [`Changes`] and their bytes are bounded. A device, socket or pipe in it, or a setuid or setgid file, refuses the whole list.
//!
//! Each change also describes what it replaces, as of the time of the list. [`Changes::apply`] hands that to the caller first, to
//! be kept for undo, and then changes all or nothing. A path that another process has changed since refuses all.
//!
//! Not carried over: owners, extended attributes, access control lists, times of folders and links, and hard links, which become
//! files of their own. Renaming a folder of the workspace fails with EXDEV, as overlayfs has it without `redirect_dir`; `mv` then
//! copies and removes.

mod apply;
mod discard;
mod read;
mod tree;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use ephor_base::Digest;

use self::tree::Tree;
pub use self::{apply::ApplyError, discard::discard};

/// The longest path of a change, relative to the workspace, in bytes. It stays below PATH_MAX.
pub const LONGEST_PATH: usize = 4_000;

/// Bounds of a list of changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The most changes.
    pub changes: usize,
    /// The most bytes in all created and modified files together, holes included.
    pub bytes: u64,
}

impl Bounds {
    /// Enough for one command of a coding agent.
    pub const USUAL: Self = Self { changes: 200_000, bytes: 8 << 30 };
}

/// The kind of file at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A regular file, with its length in bytes.
    File(u64),
    /// A folder.
    Folder,
    /// A symbolic link, with its target, which may lie anywhere.
    Link(PathBuf),
    /// A device, a socket or a pipe. A change can only remove these.
    Special,
}

/// The state of a path before a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Before {
    /// The kind of file.
    pub kind: Kind,
    /// Its permissions, with setuid, setgid and sticky (`0o7777`).
    pub mode: u32,
    stamp: Stamp,
}

/// The state of a path after a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct After {
    /// The kind of file.
    pub kind: Kind,
    /// Its permissions.
    pub mode: u32,
    /// The digest of a file's bytes.
    pub digest: Option<Digest>,
    /// When the file was changed: seconds and nanoseconds since 1970.
    modified: (i64, u32),
}

/// Identifies one state of a file. The inode's change time is left out: renaming the file changes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    device: (u32, u32),
    inode: u64,
    bytes: u64,
    modified: (i64, u32),
}

/// One path that differs from the workspace. At least one of the two states is present.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Relative to the workspace; empty for the workspace itself.
    pub path: PathBuf,
    /// The state in the workspace; absent if nothing was there.
    pub before: Option<Before>,
    /// The state that the command left; absent if it removed the path.
    pub after: Option<After>,
}

/// The kind of change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// There was nothing at the path.
    Created,
    /// There is nothing any more.
    Removed,
    /// Only the permissions differ.
    Mode,
    /// The kind, the bytes or the target differ; or a file was rewritten with the bytes it had.
    Modified,
}

impl Change {
    /// The kind of change.
    #[must_use]
    pub fn act(&self) -> Act {
        let (before, after) = match (&self.before, &self.after) {
            (None, _) => return Act::Created,
            (_, None) => return Act::Removed,
            (Some(before), Some(after)) => (before, after),
        };
        let written = matches!(after.kind, Kind::File(_)) && before.stamp.modified != after.modified;
        if before.kind == after.kind && before.mode != after.mode && !written { Act::Mode } else { Act::Modified }
    }
}

/// All changes of one command, sorted by path, a folder before its entries.
///
/// Holds the workspace and the upper layer open, so that it is applied to the same folders that it was read from.
#[derive(Debug)]
pub struct Changes {
    list: Vec<Change>,
    workspace: Tree,
    upper: Tree,
}

/// Whether a path may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// It may.
    Open,
    /// It may not, and the whole list is refused.
    Protected,
}

/// Keeps the state that a change replaces: its path, its description, and for a regular file an open descriptor to read it.
pub type Keep<'a> = dyn FnMut(&Path, &Before, Option<&File>) -> io::Result<()> + 'a;

/// Why no list could be made. The workspace is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// More changes than the bounds allow.
    #[error("the command has changed more than {most} files and folders")]
    Many {
        /// The bound.
        most: usize,
    },
    /// More bytes than the bounds allow.
    #[error("what the command has written, with `{path}`, is longer than {most} bytes")]
    Large {
        /// The file that exceeds the bound.
        path: PathBuf,
        /// The bound.
        most: u64,
    },
    /// A path is longer than [`LONGEST_PATH`].
    #[error("the command has made a path of more than {LONGEST_PATH} bytes, below `{path}`")]
    Deep {
        /// The folder in which it lies.
        path: PathBuf,
    },
    /// A device, socket or pipe.
    #[error("the command has left `{path}`, which is neither a file nor a folder nor a link")]
    Special {
        /// Which.
        path: PathBuf,
    },
    /// A file with setuid or setgid.
    #[error("the command has left `{path}` as a program that runs with rights of its owner or group")]
    Privileged {
        /// Which.
        path: PathBuf,
    },
    /// The error of the system.
    #[error("`{path}` cannot be read")]
    Io {
        /// Of the workspace or the upper layer.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl Changes {
    /// Reads the changes that a command left in `upper`, relative to `workspace`, after [`run`](crate::run()) has returned. Blocks:
    /// it reads every created and modified file to digest it. Once per run: entries of `upper` that denied access to their owner
    /// do not deny it afterwards.
    ///
    /// # Errors
    /// [`ReadError`], at the first entry that cannot be in a list.
    pub fn read(workspace: &Path, upper: &Path, bounds: Bounds) -> Result<Self, ReadError> {
        let open = |path: &Path| Tree::open(path).map_err(|source| ReadError::Io { path: path.into(), source });
        let (workspace, upper) = (open(workspace)?, open(upper)?);
        Ok(Self { list: read::list(&workspace, &upper, bounds)?, workspace, upper })
    }

    /// The changes.
    #[must_use]
    pub fn list(&self) -> &[Change] {
        &self.list
    }

    /// Applies all changes to the workspace, or none. Blocks.
    ///
    /// First `protection` is asked about every path; then `keep` gets what each change replaces or removes; then everything new
    /// is written into a staging folder in the workspace; and only then the workspace is changed, by renames. If one of those
    /// fails, those before are undone. A process that ends in the middle leaves that folder (`.ephor-staging-…`) and what had
    /// been done. Nothing is synced to the disk.
    ///
    /// # Errors
    /// [`ApplyError`]; the workspace is as it was, except with [`ApplyError::Torn`].
    pub fn apply(&self, protection: &dyn Fn(&Path) -> Protection, keep: &mut Keep<'_>) -> Result<(), ApplyError> {
        apply::apply(self, protection, keep)
    }
}
