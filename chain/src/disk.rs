//! The files of the operating system, and the one function that opens them.

use std::{
    fs,
    io::{self, Read as _},
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::fs::{DirBuilderExt as _, FileExt as _},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::files::{File, Files, Open, Tree};
use rustix::{
    fs::{CWD, FallocateFlags, FileType, Mode, OFlags, Stat, fallocate, fstat, fstatfs},
    io::Errno,
};

/// Whose a file is. That decides what is asked of it before a byte of it is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// Part of a chain, or of a copy of one. Anybody may have written it, since what it holds is verified. Never a link.
    Chain,
    /// Part of a home: of this user or root, and no other user may write it. Never a link.
    Home,
    /// A secret of this user: no other user may read it, or write its folder. Neither is a link.
    Secret,
    /// A file that a person named. It may be a link, and anybody's.
    Named,
}

/// Opens a regular file, and waits for nothing that is none: no FIFO, device, socket or folder. What is made has mode 0600.
///
/// # Errors
/// What the system says; `InvalidInput` if it is no regular file, `PermissionDenied` if it is not as `whose` asks.
pub fn open(path: &Path, whose: Whose, flags: OFlags) -> io::Result<fs::File> {
    // Without NONBLOCK, opening a FIFO would wait for its other end.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = if whose == Whose::Named { flags } else { flags | OFlags::NOFOLLOW };
    let folder = if whose == Whose::Secret { Some(open_folder(path)?) } else { None };
    let (at, name) = match (&folder, path.file_name()) {
        (Some(folder), Some(name)) => (folder.as_fd(), Path::new(name)),
        _ => (CWD, path),
    };
    let file = open_at(at, name, flags)?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    match whose {
        Whose::Chain | Whose::Named => {}
        Whose::Home => check_owner(&stat, Mode::empty())?,
        Whose::Secret => check_owner(&stat, Mode::RWXG | Mode::RWXO)?,
    }
    Ok(file.into())
}

/// The whole of a regular file of at most `most` bytes.
///
/// # Errors
/// As for [`open`]; `InvalidData` if it is longer.
pub fn read(path: &Path, whose: Whose, most: u64) -> io::Result<Vec<u8>> {
    let (file, mut bytes) = (open(path, whose, OFlags::RDONLY)?, Vec::new());
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let why = format!("it is longer than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(bytes)
}

fn open_at(at: BorrowedFd<'_>, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    match rustix::fs::openat(at, name, flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::LOOP) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a link")),
        // A socket, or a FIFO without a reader.
        Err(Errno::NXIO) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
        opened => Ok(opened?),
    }
}

/// The folder of a secret, which only its owner can write. In a folder as `/tmp`, no user takes away another's file.
fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let denied = |why: String| io::Error::new(io::ErrorKind::PermissionDenied, why);
    let show = folder.display();
    let opened = match rustix::fs::open(folder, flags, Mode::empty()) {
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(denied(format!("`{show}` is a link, or no folder"))),
        opened => opened?,
    };
    let stat = fstat(&opened)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    if mode.intersects(Mode::WGRP | Mode::WOTH) && !mode.contains(Mode::SVTX) {
        return Err(denied(format!("other users may write the folder `{show}`: `chmod go-w {show}`")));
    }
    if !is_ours(&stat) {
        return Err(denied(format!("the folder `{show}` belongs to another user")));
    }
    Ok(opened)
}

fn is_ours(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw() || stat.st_uid == 0
}

/// No other user may do what is `kept`, nor write. A group of this user's own is no other user.
fn check_owner(stat: &Stat, kept: Mode) -> io::Result<()> {
    let denied = |why| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if !is_ours(stat) {
        return denied("it belongs to another user");
    }
    let group = if stat.st_gid == rustix::process::getegid().as_raw() { Mode::empty() } else { Mode::WGRP };
    if !Mode::from_raw_mode(stat.st_mode).intersects(kept | group | Mode::WOTH) {
        return Ok(());
    }
    denied(if kept.is_empty() {
        "other users may write it: `chmod go-w` it"
    } else {
        "other users may read or write it: `chmod 600` it"
    })
}

/// The disk. Files are made with mode 0600 and folders with 0700; links are not followed, and only regular files opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

struct DiskFile(fs::File);

impl File for DiskFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        retry(|| self.0.read_at(into, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        retry(|| self.0.write_at(bytes, offset))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let before = self.len()?;
        // From the start: a copied file may have holes where there were zeros.
        let result = match fallocate(&self.0, FallocateFlags::empty(), 0, length) {
            // Some file systems cannot reserve. Zeros that are written take the same room.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(&self.0, before, length.saturating_sub(before)),
            other => other.map_err(io::Error::from),
        };
        if result.is_err() {
            // A part may have been reserved before the disk was full.
            self.0.set_len(before)?;
        }
        result
    }

    fn prime(&self, offset: u64, length: u64) -> io::Result<()> {
        if writes_in_place(&self.0)? { write_zeros(&self.0, offset, length) } else { Ok(()) }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

impl Files for Disk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let (whose, flags) = match how {
            Open::Read => (Whose::Chain, OFlags::RDONLY),
            Open::Secret => (Whose::Secret, OFlags::RDONLY),
            Open::Write => (Whose::Chain, OFlags::RDWR),
            Open::Create => (Whose::Chain, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL),
        };
        Ok(Arc::new(DiskFile(open(path, whose, flags)?)))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            names.push(PathBuf::from(entry?.file_name()));
        }
        names.sort();
        Ok(names)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder, flags, Mode::empty())?;
        rustix::fs::fsync(&folder).map_err(io::Error::from)
    }

    #[cfg(target_os = "linux")]
    fn tree(&self, folder: &Path) -> io::Result<Arc<dyn Tree>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Arc::new(DiskTree(rustix::fs::open(folder, flags, Mode::empty())?)))
    }

    #[cfg(not(target_os = "linux"))]
    fn tree(&self, folder: &Path) -> io::Result<Arc<dyn Tree>> {
        Ok(Arc::new(DiskTree(folder.to_owned())))
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir(folder)
    }
}

/// Waits for the whole file system the folder lies in: one wait, however many files were written.
#[cfg(target_os = "linux")]
struct DiskTree(OwnedFd);

#[cfg(target_os = "linux")]
impl Tree for DiskTree {
    fn sync(&self) -> io::Result<()> {
        rustix::fs::syncfs(&self.0).map_err(io::Error::from)
    }
}

#[cfg(not(target_os = "linux"))]
struct DiskTree(PathBuf);

#[cfg(not(target_os = "linux"))]
impl Tree for DiskTree {
    fn sync(&self) -> io::Result<()> {
        sync_tree(&self.0)
    }
}

/// Waits for each file and each folder.
#[cfg(not(target_os = "linux"))]
fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else {
            Disk.open(&entry.path(), Open::Write)?.sync_data()?;
        }
    }
    Disk.sync_folder(folder)
}

/// Whether the file system writes data where it lay before. One that copies on write would take new room for each write
/// after the first.
fn writes_in_place(file: &fs::File) -> io::Result<bool> {
    // `f_type` of statfs(2).
    const EXT4: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    let kind = u64::try_from(fstatfs(file)?.f_type);
    Ok(kind.is_ok_and(|kind| [EXT4, XFS].contains(&kind)))
}

fn write_zeros(file: &fs::File, mut offset: u64, mut left: u64) -> io::Result<()> {
    let zeros = [0; 64 << 10];
    while left > 0 {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
        let written = retry(|| file.write_at(zeros.get(..count).unwrap_or(&zeros), offset))? as u64;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        (offset, left) = (offset.saturating_add(written), left.saturating_sub(written));
    }
    Ok(())
}

/// A signal may interrupt a call before it has done anything.
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
