//! Reads batches back from the journal, as they were written, for the publisher.
//!
//! It checks nothing but the checksums of the frames: what stands there was written by this process, or checked when the
//! chain was opened.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::{
    Digest,
    files::{File, Files, Open},
};
use ephor_verify::folder;

use crate::{
    frame,
    scan::read_frame,
    segment::{self, SegmentHeader},
};

/// A batch as it goes from the journal to the published part.
pub(crate) struct Handed {
    /// The sequence of its first entry.
    pub(crate) first: u64,
    /// The hashes of its entries.
    pub(crate) leaves: Vec<Digest>,
    /// The entries, as a section of a frame and a bundle have them.
    pub(crate) entries: Vec<u8>,
    /// The sealed contents, one after another.
    pub(crate) contents: Vec<u8>,
}

impl Handed {
    /// Where the next batch begins.
    pub(crate) fn end(&self) -> u64 {
        self.first.saturating_add(self.leaves.len() as u64)
    }

    /// What it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.len().saturating_add(self.contents.len())
    }
}

/// The batches of a journal from some entry on.
pub(crate) struct Tail {
    files: Arc<dyn Files>,
    folder: PathBuf,
    at: u64,
    current: Option<Place>,
}

/// Where in which segment.
#[derive(Clone)]
struct Place {
    file: Arc<dyn File>,
    offset: u64,
}

impl Tail {
    /// Begins at the batch that holds the entry `from`.
    pub(crate) fn open(chain: &Path, files: &Arc<dyn Files>, from: u64) -> io::Result<Self> {
        let folder = segment::folder(chain);
        let names = folder::list(&**files, &folder)?;
        let firsts = names.iter().filter_map(|name| segment::first_of(name));
        let first = firsts.filter(|first| *first <= from).max().ok_or(io::ErrorKind::NotFound)?;
        let mut tail = Self { files: Arc::clone(files), folder, at: from, current: None };
        tail.current = tail.segment(first)?;
        Ok(tail)
    }

    /// The next batch; nothing at the end of what is written.
    pub(crate) fn next(&mut self) -> io::Result<Option<Handed>> {
        loop {
            let Some(Place { file, offset }) = self.current.clone() else { return Ok(None) };
            let Some((header, bytes)) = read_frame(&*file, offset)? else {
                // A segment of this name follows, or this was the end.
                let next = self.segment(self.at)?;
                if offset == segment::HEADER as u64 || next.is_none() {
                    return Ok(None);
                }
                self.current = next;
                continue;
            };
            let next = offset.saturating_add(bytes.len() as u64);
            self.current = Some(Place { file, offset: next });
            let end = header.first.saturating_add(u64::from(header.count));
            if end <= self.at {
                continue;
            }
            let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a batch in the journal is malformed");
            let sections = frame::sections(&header, &bytes).ok_or_else(damaged)?;
            self.at = end;
            let (entries, contents) = (sections.entries.to_vec(), sections.contents.to_vec());
            let leaves = leaves(&entries).ok_or_else(damaged)?;
            return Ok(Some(Handed { first: header.first, leaves, entries, contents }));
        }
    }

    fn segment(&self, first: u64) -> io::Result<Option<Place>> {
        let path = self.folder.join(segment::name(first));
        let Some(file) = folder::open_existing(&*self.files, &path, Open::Read)? else { return Ok(None) };
        let mut bytes = [0; segment::HEADER];
        folder::read_full(&*file, &mut bytes, 0)?;
        SegmentHeader::parse(&bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a segment's header is damaged"))?;
        Ok(Some(Place { file, offset: segment::HEADER as u64 }))
    }
}

/// The hashes of the entries of a section.
fn leaves(mut entries: &[u8]) -> Option<Vec<Digest>> {
    let mut leaves = Vec::new();
    while !entries.is_empty() {
        let (entry, rest) = frame::take_entry(entries)?;
        leaves.push(ephor_tlog::tree::leaf_hash(entry));
        entries = rest;
    }
    Some(leaves)
}
