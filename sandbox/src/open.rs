//! Opening what a guest names, so that nothing but regular files and directories inside its workspace is ever opened.
//!
//! An ordinary open of a FIFO waits for the other end, and that of a device may act on it. So what is named is first
//! held by a handle that opens nothing (`O_PATH`), looked at, and then opened through that very handle: however the name
//! is swapped in between, what was looked at is what is opened. The kernel keeps the path beneath the directory
//! (`openat2`, `RESOLVE_BENEATH`).

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, ftruncate, openat, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// How something is to be opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Create the file if it does not exist.
    pub(crate) create: bool,
    /// Fail if it exists. Only with `create`.
    pub(crate) exclusive: bool,
    pub(crate) truncate: bool,
    /// Fail if it is not a directory.
    pub(crate) directory: bool,
    /// Follow a symbolic link in the last part of the path.
    pub(crate) follow: bool,
}

/// What was opened.
#[derive(Debug)]
pub(crate) enum Opened {
    File(File),
    Directory(File),
}

/// Why nothing was opened. Nothing was created or changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The path leads out of the directory.
    Outside,
    /// It names a FIFO, a socket or a device.
    NotRegular,
    /// The system's own words.
    System(Errno),
}

impl From<Errno> for OpenError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::XDEV => Self::Outside,
            error => Self::System(error),
        }
    }
}

/// A rename anywhere on the machine, or a name that comes and goes, makes the kernel ask for another try.
const TRIES: u32 = 16;

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// `O_NONBLOCK` does nothing to a regular file, except that an open does not wait for another process to give up a lease.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NOCTTY).union(OFlags::NONBLOCK);

pub(crate) fn open_beneath(directory: &File, path: &str, manner: Manner) -> Result<Opened, OpenError> {
    for _ in 0..TRIES {
        if manner.create && manner.exclusive {
            match create(directory, path, manner) {
                Err(OpenError::System(Errno::AGAIN)) => continue,
                outcome => return outcome,
            }
        }
        let follow = if manner.follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        let outcome = match openat2(directory, path, OFlags::PATH | OFlags::CLOEXEC | follow, Mode::empty(), BENEATH) {
            Ok(handle) => open_handle(directory, path, &handle, manner),
            Err(Errno::NOENT) if manner.create => match create(directory, path, manner) {
                // Someone else made it first.
                Err(OpenError::System(Errno::EXIST)) => continue,
                outcome => outcome,
            },
            Err(error) => Err(error.into()),
        };
        match outcome {
            Err(OpenError::System(Errno::AGAIN)) => {}
            outcome => return outcome,
        }
    }
    // A dangling link that was to be followed also ends here: what it names is not created.
    Err(OpenError::System(Errno::LOOP))
}

/// Makes a new file. Exclusively, so that it is never one that was there before, whatever that is.
fn create(directory: &File, path: &str, manner: Manner) -> Result<Opened, OpenError> {
    let flags = access(manner) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | ALWAYS;
    let mode = Mode::from_raw_mode(0o666);
    Ok(Opened::File(openat2(directory, path, flags, mode, BENEATH)?.into()))
}

fn open_handle(directory: &File, path: &str, handle: &OwnedFd, manner: Manner) -> Result<Opened, OpenError> {
    match FileType::from_raw_mode(fstat(handle)?.st_mode) {
        FileType::Directory => {
            if manner.write || manner.create || manner.truncate {
                return Err(Errno::ISDIR.into());
            }
            let opened = openat(handle, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            Ok(Opened::Directory(opened.into()))
        }
        FileType::RegularFile if manner.directory => Err(Errno::NOTDIR.into()),
        FileType::RegularFile => {
            let opened = reopen(directory, path, handle, manner)?;
            if manner.truncate {
                ftruncate(&opened, 0)?;
            }
            Ok(Opened::File(opened))
        }
        FileType::Symlink => Err(Errno::LOOP.into()),
        _ => Err(OpenError::NotRegular),
    }
}

/// Opens the file that `handle` holds.
fn reopen(directory: &File, path: &str, handle: &OwnedFd, manner: Manner) -> Result<File, OpenError> {
    match rustix::fs::open(own_descriptor(handle), access(manner) | ALWAYS, Mode::empty()) {
        Ok(opened) => Ok(opened.into()),
        // There is no /proc here. By name, then, without waiting, and only if it is still the same file.
        Err(Errno::NOENT) => {
            let opened = openat2(directory, path, access(manner) | ALWAYS, Mode::empty(), BENEATH)?;
            let (held, found) = (fstat(handle)?, fstat(&opened)?);
            if (held.st_dev, held.st_ino) == (found.st_dev, found.st_ino) {
                Ok(opened.into())
            } else {
                Err(Errno::AGAIN.into())
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn access(manner: Manner) -> OFlags {
    match (manner.read, manner.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (_, false) => OFlags::RDONLY,
    }
}

/// The name under which this process can open one of its descriptors again.
fn own_descriptor(handle: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd())
}

/// Gives the file at `from` the permission bits of the regular file it is about to replace at `to`, if there is one: WASI
/// has no word for them, and a script that was replaced should stay executable.
pub(crate) fn keep_mode(from: (&File, &str), to: (&File, &str)) -> Result<(), OpenError> {
    let hold = |(directory, path): (&File, &str)| {
        openat2(directory, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty(), BENEATH)
    };
    let (new, old) = match (hold(from), hold(to)) {
        (Ok(new), Ok(old)) => (new, old),
        // Whatever is wrong here, the rename itself will say it.
        _ => return Ok(()),
    };
    let (new_mode, old_mode) = (fstat(&new)?.st_mode, fstat(&old)?.st_mode);
    let is_regular = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile;
    if is_regular(new_mode) && is_regular(old_mode) && new_mode & 0o777 != old_mode & 0o777 {
        rustix::fs::chmod(own_descriptor(&new), Mode::from_raw_mode(old_mode & 0o777))?;
    }
    Ok(())
}

/// Whether this kernel can keep a path beneath a directory. Without it no guest is given files.
pub(crate) fn is_supported() -> bool {
    openat2(rustix::fs::CWD, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), BENEATH).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn fifo(path: &std::path::Path) {
        rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    }

    #[test]
    fn a_name_that_changes_between_file_and_fifo_never_opens_the_fifo() {
        let folder = tempfile::tempdir().unwrap();
        let directory = File::open(folder.path()).unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("name"), "text").unwrap();
        fifo(&path("fifo"));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                while !stop.load(Ordering::Relaxed) {
                    rustix::fs::renameat_with(&directory, "name", &directory, "fifo", exchange).unwrap();
                }
            });
            let mut seen = (0, 0);
            for _ in 0..20_000 {
                match open_beneath(&directory, "name", Manner { read: true, ..Manner::default() }) {
                    Ok(Opened::File(file)) => {
                        assert!(file.metadata().unwrap().is_file());
                        seen.0 += 1;
                    }
                    Err(OpenError::NotRegular) => seen.1 += 1,
                    Err(OpenError::System(Errno::LOOP)) => {}
                    other => panic!("{other:?}"),
                }
            }
            stop.store(true, Ordering::Relaxed);
            assert!(seen.0 > 0 && seen.1 > 0, "the race was not run: {seen:?}");
        });
    }

    #[test]
    fn creating_through_a_dangling_link_creates_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let directory = File::open(folder.path()).unwrap();
        std::os::unix::fs::symlink("elsewhere", folder.path().join("link")).unwrap();
        let manner = Manner { write: true, create: true, follow: true, ..Manner::default() };
        assert_eq!(open_beneath(&directory, "link", manner).unwrap_err(), OpenError::System(Errno::LOOP));
        assert!(!folder.path().join("elsewhere").exists());
    }
}
