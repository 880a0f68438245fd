//! Files, as they are injected, so that a fault can be put under every operation.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// One open file. Positions are byte offsets from the start; nothing has a cursor.
pub trait File: Send + Sync {
    /// Reads up to `into.len()` bytes at `offset`; 0 at the end.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes up to `bytes.len()` bytes at `offset`; returns how many.
    ///
    /// # Errors
    /// What the system says. Any part of `bytes` may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// The length in bytes.
    ///
    /// # Errors
    /// What the system says.
    fn len(&self) -> io::Result<u64>;
    /// Cuts or extends (with zeros) to `length` bytes.
    ///
    /// # Errors
    /// What the system says.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Reserves disk for the first `length` bytes and extends the file to them with zeros.
    ///
    /// # Errors
    /// `StorageFull` if there is no room: nothing was reserved.
    fn allocate(&self, length: u64) -> io::Result<()>;
    /// Writes zeros over `length` bytes from `offset`, which are reserved and were never written, so that waiting for the
    /// first real write there is as quick as for any other. Does nothing where the file system would put that write
    /// elsewhere, beyond what is reserved.
    ///
    /// # Errors
    /// What the system says.
    fn prime(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Ok(())
    }
    /// Waits until the data is on the disk (`fdatasync`).
    ///
    /// # Errors
    /// What the system says. After an error nothing is known of what is on the disk, and a second try that succeeds proves
    /// nothing.
    fn sync_data(&self) -> io::Result<()>;
    /// Whether the file is empty.
    ///
    /// # Errors
    /// What the system says.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// A folder and everything below it.
pub trait Tree: Send + Sync {
    /// Waits until all of it is on the disk: names, data and lengths. It may wait for more than that. One such wait for a
    /// whole round of files costs less than one for each.
    ///
    /// # Errors
    /// What the system says of anything since this was opened, or last asked. What was written until then may not be on the disk and
    /// reads as if it were: it counts only once it is written anew, into a new file.
    fn sync(&self) -> io::Result<()>;
}

/// How to open a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Open {
    /// It exists; only reading.
    Read,
    /// It exists and holds a secret; only reading. One that another user may read, or could have put there, is refused.
    Secret,
    /// It exists; reading and writing.
    Write,
    /// It must not exist; made with mode 0600.
    Create,
}

/// A file system.
pub trait Files: Send + Sync + 'static {
    /// Opens a regular file. A link at the end of the path is not followed.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>>;
    /// The names in a folder, sorted.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Makes a folder, with mode 0700, and its parents. One that exists is left as it is.
    ///
    /// # Errors
    /// What the system says.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;
    /// Puts `from` in the place of `to`, atomically.
    ///
    /// # Errors
    /// What the system says. Either name may hold, never a mixture.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Waits until the names in a folder are on the disk (`fsync` of the folder).
    ///
    /// # Errors
    /// What the system says.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Watches a folder and everything below it. A system tells of each error once, and only those who were watching: so this
    /// comes before the first write that [`Tree::sync`] is to wait for.
    ///
    /// # Errors
    /// What the system says.
    fn tree(&self, folder: &Path) -> io::Result<Arc<dyn Tree>>;
    /// Removes a folder that is empty.
    ///
    /// # Errors
    /// What the system says; `DirectoryNotEmpty` if something is in it.
    fn remove_folder(&self, folder: &Path) -> io::Result<()>;
}
