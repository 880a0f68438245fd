//! Where a log is published: files by the names that C2SP tlog-tiles gives them, wherever those lie.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::files::Files;
use ephor_record::{Damage, Minimum, ScanError};
use ephor_tlog::{Checkpoint, checkpoint, note::MAX_NOTE_BYTES};

use crate::folder;

/// The files of a published log, by their names below its folder.
pub trait TileSource: Send + Sync {
    /// The whole of a file; nothing if there is none.
    ///
    /// # Errors
    /// Of kind `InvalidData` if it is longer than `most` bytes; else what the source said.
    fn read(&self, name: &Path, most: u64) -> io::Result<Option<Vec<u8>>>;

    /// The names in a folder, none if there is no such folder; nothing if the source cannot list, as a web server cannot.
    ///
    /// # Errors
    /// What the source said.
    fn list(&self, folder: &Path) -> io::Result<Option<Vec<PathBuf>>>;

    /// How a person finds the file of this name.
    fn place(&self, name: &Path) -> PathBuf;
}

/// A log published in a folder.
pub struct Folder {
    chain: PathBuf,
    files: Arc<dyn Files>,
}

impl Folder {
    /// What lies in the folder of a chain.
    #[must_use]
    pub fn source(chain: &Path, files: &Arc<dyn Files>) -> Arc<dyn TileSource> {
        Arc::new(Self { chain: chain.to_owned(), files: Arc::clone(files) })
    }
}

impl TileSource for Folder {
    fn read(&self, name: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
        folder::read_file(&*self.files, &self.chain.join(name), most)
    }

    fn list(&self, folder: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        folder::list(&*self.files, &self.chain.join(folder)).map(Some)
    }

    fn place(&self, name: &Path) -> PathBuf {
        self.chain.join(name)
    }
}

/// The published checkpoint and its bytes, if there is one. Its signatures are not checked here.
///
/// # Errors
/// [`ScanError`] if it is damaged or cannot be read.
pub fn checkpoint(source: &dyn TileSource) -> Result<Option<(Vec<u8>, Checkpoint)>, ScanError> {
    let name = checkpoint::path(Path::new(""));
    let damaged = || ScanError::found("checkpoint", 0, None, Damage::Published);
    let Some(bytes) = read(source, &name, MAX_NOTE_BYTES, damaged)? else { return Ok(None) };
    let parsed = Checkpoint::parse(&bytes).map_err(|_| damaged())?;
    Ok(Some((bytes, parsed)))
}

/// Where a pruned log says that it begins. Whether the record allows it is not looked at here.
///
/// # Errors
/// [`ScanError`] if the file is there and cannot be read.
pub fn minimum(source: &dyn TileSource) -> Result<Option<Minimum>, ScanError> {
    let damaged = || ScanError::minimum("it cannot be read");
    let bytes = read(source, Path::new(Minimum::FILE), Minimum::MAX_BYTES, damaged)?;
    bytes.map(|bytes| Minimum::parse(&bytes).ok_or_else(damaged)).transpose()
}

/// The first entry that is still there, pruned or not.
///
/// # Errors
/// [`ScanError`] if the file that says so cannot be read.
pub fn first(source: &dyn TileSource) -> Result<u64, ScanError> {
    Ok(minimum(source)?.map_or(0, |minimum| minimum.index))
}

fn read(
    source: &dyn TileSource,
    name: &Path,
    most: usize,
    damaged: impl Fn() -> ScanError,
) -> Result<Option<Vec<u8>>, ScanError> {
    source.read(name, most as u64).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => damaged(),
        _ => ScanError::Io { path: source.place(name), source: error },
    })
}
