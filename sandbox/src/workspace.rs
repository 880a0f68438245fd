//! The one directory a guest is given.

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// A workspace as guests are given it: open. It stays the same directory when its path is moved or replaced.
#[derive(Clone, Debug)]
pub struct OpenWorkspace {
    directory: Arc<File>,
    path: PathBuf,
}

impl OpenWorkspace {
    /// Opens `path`, which must be absolute and lead through no symbolic link: what was judged as a path is then what is
    /// opened. [`OpenWorkspace::resolve`] makes such a path.
    pub fn open(path: &Path) -> Result<Self, WorkspaceError> {
        if !path.is_absolute() {
            return Err(WorkspaceError::NotCanonical { path: path.to_owned() });
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        match opened {
            Ok(directory) => Ok(Self { directory: Arc::new(File::from(directory)), path: path.to_owned() }),
            Err(rustix::io::Errno::LOOP) => Err(WorkspaceError::NotCanonical { path: path.to_owned() }),
            Err(error) => Err(WorkspaceError::Unusable { path: path.to_owned(), source: error.into() }),
        }
    }

    /// The path in the form [`OpenWorkspace::open`] takes. Follows symbolic links once, here.
    pub fn resolve(path: &Path) -> Result<PathBuf, WorkspaceError> {
        path.canonicalize().map_err(|source| WorkspaceError::Unusable { path: path.to_owned(), source })
    }

    /// Refuses a workspace that contains `other`, lies inside it, or is the same directory: guests with such a workspace
    /// could touch what is kept there. `other` need not exist yet.
    ///
    /// Directories are compared by identity on the way up, so a bind mount of the same directory is seen as well.
    pub fn keep_apart_from(&self, other: &Path) -> Result<(), WorkspaceError> {
        let overlap = || WorkspaceError::Overlap { path: self.path.clone(), other: other.to_owned() };
        let unusable = |source| WorkspaceError::Unusable { path: self.path.clone(), source };
        let own = identity(&self.path).map_err(unusable)?;
        let existing = other.ancestors().find_map(|above| above.canonicalize().ok());
        let Some(existing) = existing else { return Ok(()) };
        if existing.ancestors().any(|above| identity(above).is_ok_and(|found| found == own)) {
            return Err(overlap());
        }
        // Above a path that does not exist yet there is nothing to lie inside of.
        let Ok(other_identity) = identity(other) else { return Ok(()) };
        if self.path.ancestors().any(|above| identity(above).is_ok_and(|found| found == other_identity)) {
            return Err(overlap());
        }
        Ok(())
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A descriptor of its own for one call.
    pub(crate) fn directory(&self) -> std::io::Result<File> {
        self.directory.try_clone()
    }
}

/// Device and inode of a directory.
fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let stat = rustix::fs::stat(path)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(std::io::ErrorKind::NotADirectory.into());
    }
    Ok((stat.st_dev, stat.st_ino))
}

/// A directory that cannot be a workspace. Nothing was changed.
#[derive(Debug, Error)]
pub enum WorkspaceError {
    /// The path is relative or leads through a symbolic link. The caller's fault, unless the link was put there since
    /// the path was resolved.
    #[error("the workspace `{}` is not an absolute path free of symbolic links", .path.display())]
    NotCanonical {
        /// The path as given.
        path: PathBuf,
    },
    /// It cannot be opened as a directory.
    #[error("the workspace `{}` cannot be opened: {source}", .path.display())]
    Unusable {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It contains, or lies inside, a directory that guests must not reach.
    #[error("the workspace `{}` overlaps with `{}`", .path.display(), .other.display())]
    Overlap {
        /// The workspace.
        path: PathBuf,
        /// What it must be kept apart from.
        other: PathBuf,
    },
}
