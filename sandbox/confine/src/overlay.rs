//! What a command has changed: the upper layer of its overlay, read by the host, described, and applied to the workspace.
//!
//! An upper layer is what a stranger has left. It is walked from one open folder, by names, and no link in it is followed; a
//! list of [`Changes`] is bounded in number and bytes; and what is neither a file, a folder nor a link, or would carry rights
//! (setuid, setgid), makes the whole list refused.
//!
//! Beside each change stands what it replaces, as it was when the list was made. [`Changes::apply`] hands that to the caller first,
//! so that it can be kept for undo, and then changes all or nothing. What is no longer as it was then is not touched.
//!
//! What is not carried over: owners, extended attributes, access control lists, times of folders and links, and that two
//! names are one file (hard links). A folder that is renamed is a removal and a creation, as overlayfs itself has it.

mod apply;
mod discard;
mod tree;
mod read;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use ephor_base::Digest;

pub use self::{apply::ApplyError, discard::discard};
use self::tree::Tree;

/// The longest path in a list of changes, from the workspace down, in bytes. It fits into one call of Linux.
pub const LONGEST_PATH: usize = 4_000;

/// How long a list may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Changes.
    pub changes: usize,
    /// Bytes in all files that are created or changed. Holes count.
    pub bytes: u64,
}

impl Bounds {
    /// What one command of a coding agent takes.
    pub const USUAL: Self = Self { changes: 200_000, bytes: 8 << 30 };
}

/// What there is at a path, as far as a list tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A regular file, with its bytes.
    File(u64),
    /// A folder.
    Folder,
    /// A symbolic link, with what it holds. It may lead anywhere.
    Link(PathBuf),
    /// A device, a socket or a pipe: these are only ever removed.
    Special,
}

/// What a change replaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Before {
    /// What it is.
    pub kind: Kind,
    /// Its permissions, with setuid, setgid and sticky (`0o7777`).
    pub mode: u32,
    stamp: Stamp,
}

/// What a change leaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct After {
    /// What it is.
    pub kind: Kind,
    /// Its permissions.
    pub mode: u32,
    /// The digest of a file's bytes.
    pub digest: Option<Digest>,
    /// When the file was changed: seconds and nanoseconds since 1970.
    modified: (i64, u32),
}

/// By which a file is known again. Not by when its inode was changed: a name of it that is taken away changes that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    device: (u32, u32),
    inode: u64,
    bytes: u64,
    modified: (i64, u32),
}

/// One path that is no longer what it was. At least one side is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// From the workspace down; empty for the workspace itself.
    pub path: PathBuf,
    /// What is in the workspace.
    pub before: Option<Before>,
    /// What the command has left.
    pub after: Option<After>,
}

/// What a change does, in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// There was nothing at the path.
    Created,
    /// There is nothing any more.
    Removed,
    /// Only the permissions are others.
    Mode,
    /// Another kind, other bytes, another target; or a file was written with what it held.
    Modified,
}

impl Change {
    /// What it does.
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

/// All that a command has changed, in the order of the paths, a folder before what is in it.
///
/// It holds the workspace and the upper layer open, so that it is applied to the very folders that it was read from.
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
    /// It may not, and with it nothing of the list.
    Protected,
}

/// Takes what a change replaces: its path, what it is, and for a file an open descriptor to read it.
pub type Keep<'a> = dyn FnMut(&Path, &Before, Option<&File>) -> io::Result<()> + 'a;

/// Why there is no list. Nothing was changed.
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
        /// The file with which it became too much.
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
    /// What the system says.
    #[error("`{path}` cannot be read")]
    Io {
        /// Of the workspace or the upper layer.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Changes {
    /// Reads what a command has left in `upper`, over `workspace`. Nothing of the run may be alive. Reads whole files: it is to
    /// be called where that may take its time.
    ///
    /// # Errors
    /// [`ReadError`], at the first thing that cannot be in a list.
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

    /// Makes the workspace what the command has left, or leaves it as it is.
    ///
    /// First `protection` is asked about every path; then `keep` gets what each change replaces or removes; then everything new
    /// is written into a staging folder in the workspace; and only then the workspace is changed, by renames. If one of those
    /// fails, those before are undone. A process that ends in the middle leaves that folder (`.ephor-staging-…`) and what had
    /// been done. Nothing is synced to the disk.
    ///
    /// # Errors
    /// [`ApplyError`]; the workspace is as it was, except with [`ApplyError::Torn`].
    pub fn apply(
        &self,
        protection: &dyn Fn(&Path) -> Protection,
        keep: &mut Keep<'_>,
    ) -> Result<(), ApplyError> {
        apply::apply(self, protection, keep)
    }
}
