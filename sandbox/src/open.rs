//! Opening what a guest names, so that nothing but regular files and directories inside its workspace is ever opened, and those for
//! reading alone.
//!
//! An ordinary open of a FIFO waits for the other end, and that of a device may act on it. So what is named is first
//! held by a handle that opens nothing (`O_PATH`), looked at, and then opened through that very handle: however the name
//! is swapped in between, what was looked at is what is opened. The kernel keeps the path beneath the directory
//! (`openat2`, `RESOLVE_BENEATH`). No symbolic link is followed: the host does that, before the call is judged (`locate.rs`).

use crate::locate::NO_LINKS;
use crate::workspace::is_of_the_kernel;
use rustix::fs::{FileType, Mode, OFlags, fstat, openat, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// What was opened.
#[derive(Debug)]
pub(crate) enum Opened {
    File(File),
    Directory(File),
}

/// Why nothing was opened.
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

/// `O_NONBLOCK` does nothing to a regular file, except that an open does not wait for another process to give up a lease.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NOCTTY).union(OFlags::NONBLOCK);

/// Opens a regular file or a directory for reading.
pub(crate) fn open_beneath(directory: &File, path: &str) -> Result<Opened, OpenError> {
    for _ in 0..TRIES {
        let held = openat2(directory, path, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), NO_LINKS);
        match held.map_err(OpenError::from).and_then(|handle| open_held(directory, path, &handle)) {
            Err(OpenError::System(Errno::AGAIN)) => {}
            outcome => return outcome,
        }
    }
    Err(OpenError::System(Errno::LOOP))
}

/// Opens for reading what `handle` holds, which stood at `path` when it was taken.
pub(crate) fn open_held(directory: &File, path: &str, handle: &OwnedFd) -> Result<Opened, OpenError> {
    // Mounted below the workspace, it is no part of it.
    if is_of_the_kernel(handle) {
        return Err(OpenError::NotRegular);
    }
    match FileType::from_raw_mode(fstat(handle)?.st_mode) {
        FileType::Directory => {
            let opened = openat(handle, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            Ok(Opened::Directory(opened.into()))
        }
        FileType::RegularFile => Ok(Opened::File(plain_file(directory, path, handle)?)),
        FileType::Symlink => Err(Errno::LOOP.into()),
        _ => Err(OpenError::NotRegular),
    }
}

/// Opens the regular file that `handle` holds, for reading.
pub(crate) fn plain_file(directory: &File, path: &str, handle: &OwnedFd) -> Result<File, Errno> {
    match rustix::fs::open(own_descriptor(handle), OFlags::RDONLY | ALWAYS, Mode::empty()) {
        Ok(opened) => Ok(opened.into()),
        // There is no /proc here. By name, then, without waiting, and only if it is still the same file.
        Err(Errno::NOENT) => {
            let opened = openat2(directory, path, OFlags::RDONLY | ALWAYS, Mode::empty(), NO_LINKS)?;
            let (held, found) = (fstat(handle)?, fstat(&opened)?);
            if (held.st_dev, held.st_ino) == (found.st_dev, found.st_ino) {
                Ok(opened.into())
            } else {
                Err(Errno::AGAIN)
            }
        }
        Err(error) => Err(error),
    }
}

/// The name under which this process can open one of its descriptors again.
pub(crate) fn own_descriptor(handle: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd())
}

/// Whether this kernel can keep a path beneath a directory. Without it no guest is given files.
pub(crate) fn is_supported() -> bool {
    openat2(rustix::fs::CWD, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), NO_LINKS).is_ok()
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
                match open_beneath(&directory, "name") {
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
    fn a_symbolic_link_is_not_followed_wherever_it_leads() {
        let folder = tempfile::tempdir().unwrap();
        let directory = File::open(folder.path()).unwrap();
        std::fs::create_dir(folder.path().join("inside")).unwrap();
        std::fs::write(folder.path().join("inside/file"), "text").unwrap();
        std::os::unix::fs::symlink("inside", folder.path().join("folder")).unwrap();
        std::os::unix::fs::symlink("inside/file", folder.path().join("file")).unwrap();
        for path in ["file", "folder", "folder/file", "folder/../inside/file"] {
            assert_eq!(open_beneath(&directory, path).unwrap_err(), OpenError::System(Errno::LOOP), "{path}");
        }
        assert!(matches!(open_beneath(&directory, "inside/file"), Ok(Opened::File(_))));
    }
}
