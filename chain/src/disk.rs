//! The files of the operating system.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, FileExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::files::{File, Files, Open};
use rustix::{
    fs::{FallocateFlags, FileType, Mode, OFlags, fallocate, fstat, fstatfs},
    io::Errno,
};

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
        let flags = match how {
            Open::Read => OFlags::RDONLY,
            Open::Write => OFlags::RDWR,
            Open::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        // Without NONBLOCK, opening a FIFO would wait for its other end.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Arc::new(DiskFile(file.into())))
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

    fn sync_tree(&self, folder: &Path) -> io::Result<()> {
        sync_tree(folder)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir(folder)
    }
}

/// Waits for the whole file system the folder lies in: one wait, however many files were written.
#[cfg(target_os = "linux")]
fn sync_tree(folder: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty())?;
    rustix::fs::syncfs(&folder).map_err(io::Error::from)
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
