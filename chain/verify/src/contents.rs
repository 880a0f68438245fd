//! Sealed contents, as they lie beside the bundles in the vault.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::files::{File, Files, Open};
use ephor_tlog::tile;

use crate::folder;

/// Where the sealed contents of the entries of a bundle lie, below the folder of the vault.
pub fn content_path(vault: &Path, index: u64) -> PathBuf {
    vault.join("content").join(tile::number_path(index))
}

/// The name of that file in a finding.
pub fn content_name(index: u64) -> PathBuf {
    content_path(Path::new("vault"), index)
}

/// The sealed contents of one bundle, read one after another.
pub struct Contents {
    file: Option<Arc<dyn File>>,
    offset: u64,
    buffer: Vec<u8>,
    start: usize,
}

impl Contents {
    /// How much is read at once.
    const STRIDE: usize = 256 << 10;

    /// Opens the contents of a bundle. A bundle without contents has no file.
    pub fn open(vault: &Path, files: &dyn Files, index: u64) -> io::Result<Self> {
        let file = folder::open_existing(files, &content_path(vault, index), Open::Read)?;
        Ok(Self { file, offset: 0, buffer: Vec::new(), start: 0 })
    }

    /// The next `length` bytes, if there are as many.
    pub fn take(&mut self, length: usize) -> io::Result<Option<&[u8]>> {
        if self.buffer.len().saturating_sub(self.start) < length {
            self.fill(length)?;
        }
        let end = self.start.saturating_add(length);
        let found = self.buffer.get(self.start..end);
        if found.is_some() {
            self.start = end;
            self.offset = self.offset.saturating_add(length as u64);
        }
        Ok(found)
    }

    /// Passes over the next `length` bytes without reading them.
    pub fn skip(&mut self, length: u64) {
        self.offset = self.offset.saturating_add(length);
        let kept = self.buffer.len().saturating_sub(self.start);
        let skipped = usize::try_from(length).unwrap_or(usize::MAX).min(kept);
        self.start = self.start.saturating_add(skipped);
    }

    /// Where the next content begins.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The length of the file.
    pub fn length(&self) -> io::Result<u64> {
        self.file.as_ref().map_or(Ok(0), |file| file.len())
    }

    fn fill(&mut self, length: usize) -> io::Result<()> {
        self.start = 0;
        let left = usize::try_from(self.length()?.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        self.buffer.resize(length.max(Self::STRIDE).min(left), 0);
        let filled = match &self.file {
            Some(file) => folder::read_full(&**file, &mut self.buffer, self.offset)?,
            None => 0,
        };
        self.buffer.truncate(filled);
        Ok(())
    }
}
