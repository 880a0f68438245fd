//! A folder that is opened once, and access to the paths below it. Follows no link, and no path leads out of it.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, Dir, Mode, OFlags, ResolveFlags, Statx, StatxFlags, Timespec, Timestamps, chmod, chmodat, futimens,
        openat, openat2, readlinkat, statx,
    },
    io::Errno,
};

use super::{Kind, Stamp};

/// The bits of a mode that give the kind of file.
const FORMAT: u32 = libc::S_IFMT;
/// The bits of a mode that are permissions.
pub(super) const PERMISSIONS: u32 = 0o7777;

/// A whiteout of overlayfs is a character device of this number.
const WHITEOUT: (u32, u32) = (0, 0);
/// Marks a folder as opaque, in an overlay that was mounted with `userxattr`.
const OPAQUE: &str = "user.overlay.opaque";

/// The opened folder.
#[derive(Debug)]
pub(super) struct Tree(OwnedFd);

/// An open folder below a [`Tree`].
pub(super) struct Folder(OwnedFd);

/// The status of a name.
pub(super) struct Found(Statx);

impl Tree {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// The status of the folder itself, whatever its mode.
    pub(super) fn status(&self) -> io::Result<Found> {
        Ok(Found(statx(&self.0, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?))
    }

    /// Sets the mode of the folder itself, whatever its mode. Its descriptor, opened as a path, takes no `fchmod`.
    pub(super) fn permit(&self, mode: u32) -> io::Result<()> {
        let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        Ok(chmod(path, Mode::from_raw_mode(mode & PERMISSIONS))?)
    }

    /// The folder at `path`, which may be empty.
    pub(super) fn folder(&self, path: &Path) -> io::Result<Folder> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(&self.0, path, flags, Mode::empty(), resolve) {
                // A concurrent rename: the kernel cannot tell whether the path left the tree.
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return Ok(Folder(opened?)),
            }
        }
    }

    /// The parent folder of `path`, and its name there. The empty path is `.` in the tree's own folder.
    pub(super) fn parent<'p>(&self, path: &'p Path) -> io::Result<(Folder, &'p OsStr)> {
        let name = path.file_name().unwrap_or(OsStr::new("."));
        Ok((self.folder(path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// The status of `path`, if it exists. Nothing exists below a file or a link.
    pub(super) fn look(&self, path: &Path) -> io::Result<Option<Found>> {
        let nothing = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].map(Errno::raw_os_error);
        match self.parent(path) {
            Ok((folder, name)) => folder.look(name),
            Err(error) if error.raw_os_error().is_some_and(|error| nothing.contains(&error)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Folder {
    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    pub(super) fn look(&self, name: &OsStr) -> io::Result<Option<Found>> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        match statx(&self.0, name, flags, StatxFlags::BASIC_STATS) {
            Ok(found) => Ok(Some(Found(found))),
            Err(Errno::NOENT) => Ok(None),
            Err(why) => Err(why.into()),
        }
    }

    /// Opens a regular file to read it.
    pub(super) fn file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Creates a file that must not exist yet, open for writing.
    pub(super) fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    pub(super) fn link(&self, name: &OsStr) -> io::Result<PathBuf> {
        Ok(PathBuf::from(OsString::from_vec(readlinkat(&self.0, name, Vec::new())?.into_bytes())))
    }

    /// Sets the permissions of a name that is no link.
    pub(super) fn permit(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        Ok(chmodat(&self.0, name, Mode::from_raw_mode(mode & PERMISSIONS), AtFlags::empty())?)
    }

    /// Whether this folder of an upper layer is opaque.
    pub(super) fn is_opaque(&self) -> io::Result<bool> {
        let mut value = [0; 1];
        match rustix::fs::fgetxattr(&self.0, OPAQUE, &mut value) {
            Ok(length) => Ok(length == 1 && value == *b"y"),
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }

    /// The kind of file at `name`.
    pub(super) fn kind(&self, name: &OsStr, found: &Found) -> io::Result<Kind> {
        Ok(match found.format() {
            libc::S_IFREG => Kind::File(found.bytes()),
            libc::S_IFDIR => Kind::Folder,
            libc::S_IFLNK => Kind::Link(self.link(name)?),
            _ => Kind::Special,
        })
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Found {
    fn format(&self) -> u32 {
        u32::from(self.0.stx_mode) & FORMAT
    }

    pub(super) fn is_folder(&self) -> bool {
        self.format() == libc::S_IFDIR
    }

    pub(super) fn is_whiteout(&self) -> bool {
        self.format() == libc::S_IFCHR && (self.0.stx_rdev_major, self.0.stx_rdev_minor) == WHITEOUT
    }

    pub(super) fn mode(&self) -> u32 {
        u32::from(self.0.stx_mode) & PERMISSIONS
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.stx_size
    }

    pub(super) fn modified(&self) -> (i64, u32) {
        (self.0.stx_mtime.tv_sec, self.0.stx_mtime.tv_nsec)
    }

    pub(super) fn stamp(&self) -> Stamp {
        Stamp {
            device: (self.0.stx_dev_major, self.0.stx_dev_minor),
            inode: self.0.stx_ino,
            bytes: self.0.stx_size,
            modified: self.modified(),
        }
    }
}

/// Sets a file's modification time.
pub(super) fn date(file: &File, (seconds, nanoseconds): (i64, u32)) -> io::Result<()> {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
    Ok(futimens(file, &Timestamps { last_access: time, last_modification: time })?)
}
