//! The one directory a guest is given.

use crate::locate::{Held, follow};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use std::fs::File;
use std::os::fd::AsFd;
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
            Ok(directory) if is_of_the_kernel(&directory) => Err(WorkspaceError::Kernel { path: path.to_owned() }),
            Ok(directory) => Ok(Self { directory: Arc::new(File::from(directory)), path: path.to_owned() }),
            Err(rustix::io::Errno::LOOP) => Err(WorkspaceError::NotCanonical { path: path.to_owned() }),
            Err(error) => Err(WorkspaceError::Unusable { path: path.to_owned(), source: error.into() }),
        }
    }

    /// The path in the form [`OpenWorkspace::open`] takes. Follows symbolic links once, here. A relative path is refused: it would mean
    /// another folder to its sender than to this process.
    pub fn resolve(path: &Path) -> Result<PathBuf, WorkspaceError> {
        if !path.is_absolute() {
            return Err(WorkspaceError::Relative { path: path.to_owned() });
        }
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

    /// Follows a path that by its spelling stays inside to what it names, for a call that `replaces` that or only reads it. The words of an
    /// error are for a model.
    pub fn follow(&self, path: &str, replaces: bool) -> Result<Held, String> {
        follow(self, path, replaces, &|| true)
    }

    pub(crate) fn root(&self) -> &File {
        &self.directory
    }

    /// A descriptor of its own for one call.
    pub(crate) fn directory(&self) -> std::io::Result<File> {
        self.directory.try_clone()
    }
}

/// The file systems in which the kernel shows itself, and takes orders: what is read or written there is no file. Their numbers, as
/// `statfs(2)` has them.
const KERNELS_OWN: [u64; 14] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xf97c_ff8c, // selinux
    0x27_e0eb,   // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
    0xde5e_81e4, // efivarfs
    0x6165_676c, // pstore
    0x1cd1,      // devpts
    0x4249_4e4d, // binfmt_misc
];

/// Whether what is held is the kernel's own, and no file. The kernel always says of its own file systems what they are; one of somebody
/// else's, as over FUSE, need not answer.
pub(crate) fn is_of_the_kernel(held: impl AsFd) -> bool {
    rustix::fs::fstatfs(held).is_ok_and(|stat| KERNELS_OWN.contains(&u64::try_from(stat.f_type).unwrap_or(0x9fa0)))
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
    /// The path is relative. The caller's fault.
    #[error("the workspace `{}` is not an absolute path", .path.display())]
    Relative {
        /// The path as given.
        path: PathBuf,
    },
    /// It is one of the folders in which the kernel shows itself, such as `/proc`. The caller's fault.
    #[error("the workspace `{}` is a folder of the kernel's own, and holds no files to work on", .path.display())]
    Kernel {
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
