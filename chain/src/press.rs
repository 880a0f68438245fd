//! The press: makes tiles, bundles and files of contents out of batches, and takes away what they make superfluous.
//!
//! Everything it writes follows from the journal, so writing it again gives the same bytes. It is never waited for on the
//! way; [`Press::settle`] waits for all of it at once.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::files::{Files, Open};

use crate::{
    damage::{Damage, ScanError},
    durable,
    edge::{self, Edge},
    entry::{self, Entry},
    frame,
    published::{Published, content_path, finding},
    segment,
    tail::Handed,
    tile::{self, Kind, Tile, WIDTH},
};

/// The published part as it is being written.
pub(crate) struct Press {
    files: Arc<dyn Files>,
    chain: PathBuf,
    vault: PathBuf,
    /// Over everything that was taken.
    edge: Edge,
    /// The entries of the bundle that is not full yet.
    bundle: Vec<u8>,
    /// How many bytes of their contents are written.
    written: u64,
    /// Contents of it that are not written yet.
    contents: Vec<u8>,
    /// Whether contents were written since the last time they were waited for.
    sealed: bool,
}

impl Press {
    /// Goes on behind the first `size` entries of what is published.
    pub(crate) fn at(published: &Published, vault: &Path, size: u64) -> Result<Self, ScanError> {
        let edge = published.edge(size)?;
        // Of a bundle that is full at this size, nothing is left to do.
        let bundle = match size % WIDTH {
            0 => Vec::new(),
            width => {
                let (mut bytes, _) = published.bundle(size / WIDTH)?;
                bytes.truncate(length_of(&bytes, width));
                check_bundle(&bytes, &edge, size / WIDTH)?;
                bytes
            }
        };
        let written = contents_of(&bundle);
        let (files, chain) = (Arc::clone(published.files()), published.chain().to_owned());
        let (contents, sealed) = (Vec::new(), false);
        Ok(Self { files, chain, vault: vault.to_owned(), edge, bundle, written, contents, sealed })
    }

    /// How many entries it has taken.
    pub(crate) const fn size(&self) -> u64 {
        self.edge.size()
    }

    /// Takes the next batch, and writes what is full.
    pub(crate) fn take(&mut self, batch: &Handed) -> io::Result<()> {
        let (mut entries, mut contents) = (batch.entries.as_slice(), batch.contents.as_slice());
        let malformed = || io::Error::new(io::ErrorKind::InvalidData, "a batch to be published is malformed");
        for leaf in &batch.leaves {
            let (entry, rest) = frame::take_entry(entries).ok_or_else(malformed)?;
            let taken = entries.len().saturating_sub(rest.len());
            let length = entry::sealed_length(entry).ok_or_else(malformed)?;
            let (sealed, left) = contents.split_at_checked(length as usize).ok_or_else(malformed)?;
            self.bundle.extend_from_slice(entries.get(..taken).unwrap_or_default());
            self.contents.extend_from_slice(sealed);
            (entries, contents) = (rest, left);
            let full = self.edge.push(*leaf);
            if !full.is_empty() {
                self.finish_bundle()?;
            }
            for (tile, hashes) in full {
                self.put(tile, &edge::to_bytes(&hashes))?;
            }
        }
        Ok(())
    }

    /// The bundle is full.
    fn finish_bundle(&mut self) -> io::Result<()> {
        let index = (self.size() / WIDTH).saturating_sub(1);
        self.write_contents(index, true)?;
        self.put(Tile::full(Kind::Entries, index), &self.bundle)?;
        self.bundle.clear();
        self.written = 0;
        Ok(())
    }

    /// Writes what is not full, and waits until everything is on the disk.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        let index = self.size() / WIDTH;
        self.write_contents(index, false)?;
        if let Some(tile) = Tile::of(Kind::Entries, index, self.size()) {
            self.put(tile, &self.bundle)?;
        }
        for (tile, hashes) in self.edge.partials() {
            self.put(tile, &edge::to_bytes(hashes))?;
        }
        self.files.sync_tree(&self.chain)?;
        if std::mem::take(&mut self.sealed) {
            self.files.sync_tree(&self.vault)?;
        }
        Ok(())
    }

    fn put(&self, tile: Tile, bytes: &[u8]) -> io::Result<()> {
        durable::put(&*self.files, &self.chain.join(tile.path()), bytes)
    }

    /// Adds the contents that were gathered. A file that already has them is left alone; behind the last content of a full
    /// bundle nothing may follow.
    fn write_contents(&mut self, index: u64, full: bool) -> io::Result<()> {
        let end = self.written.saturating_add(self.contents.len() as u64);
        if end == 0 {
            return Ok(());
        }
        let path = content_path(&self.vault, index);
        let file = match durable::open_existing(&*self.files, &path, Open::Write)? {
            Some(file) => file,
            None => durable::create(&*self.files, &path)?,
        };
        let mut there = vec![0; self.contents.len()];
        durable::read_full(&*file, &mut there, self.written)?;
        // What is there already may be in memory only.
        self.sealed = true;
        if there != self.contents || file.len()? < end {
            durable::write_all(&*file, &self.contents, self.written)?;
        }
        if full && file.len()? > end {
            file.set_len(end)?;
        }
        self.contents.clear();
        self.written = end;
        Ok(())
    }

    /// Takes away the partial tiles of the size `gone`, unless one of the sizes `kept` has them as well.
    pub(crate) fn clear(&self, gone: u64, kept: [u64; 2]) -> io::Result<()> {
        for tile in tile::partials(gone) {
            let of = |size: &u64| Tile::of(tile.kind, tile.index, *size);
            if kept.iter().any(|size| of(size) == Some(tile)) {
                continue;
            }
            durable::remove(&*self.files, &self.chain.join(tile.path()))?;
            if kept.iter().all(|size| of(size).is_some_and(|tile| tile.is_full())) {
                // Something that a crash left may still be in it.
                let _ = self.files.remove_folder(&self.chain.join(tile.partials()));
            }
        }
        Ok(())
    }

    /// Takes away the partial tiles that a crash may have left between the sizes `from` and `to`, except those of the size
    /// that is published: what was not published may be torn.
    pub(crate) fn tidy(&self, from: u64, to: u64, published: u64) -> io::Result<()> {
        for kind in tile::kinds(to) {
            for index in tile::count(kind, from) / WIDTH..=tile::count(kind, to) / WIDTH {
                let folder = self.chain.join(Tile::full(kind, index).partials());
                let own = Tile::width_in(kind, index, published).to_string();
                for name in durable::list(&*self.files, &folder)? {
                    if name != Path::new(&own) {
                        durable::remove(&*self.files, &folder.join(name))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes away the segments that lie wholly below `published`, oldest first; says how many bytes they had. The one that
    /// is being written stays.
    pub(crate) fn recycle(&self, published: u64) -> io::Result<u64> {
        let folder = segment::folder(&self.chain);
        let mut firsts: Vec<_> =
            durable::list(&*self.files, &folder)?.iter().filter_map(|name| segment::first_of(name)).collect();
        firsts.sort_unstable();
        let mut bytes: u64 = 0;
        for pair in firsts.windows(2) {
            let [first, next] = pair else { break };
            // Only what is published of the next segment shows that its snapshot is on the disk.
            if *next >= published {
                break;
            }
            let path = folder.join(segment::name(*first));
            bytes = bytes.saturating_add(self.files.open(&path, Open::Read)?.len()?);
            self.files.remove(&path)?;
        }
        if bytes > 0 {
            self.files.sync_folder(&folder)?;
        }
        Ok(bytes)
    }
}

/// What goes on with a bundle must not carry on damage in it.
fn check_bundle(bundle: &[u8], edge: &Edge, index: u64) -> Result<(), ScanError> {
    let hashes = edge.partials().find(|(tile, _)| tile.kind == Kind::Hashes(0)).map(|(_, hashes)| hashes);
    let (hashes, mut rest) = (hashes.unwrap_or_default(), bundle);
    for hash in hashes {
        let taken = frame::take_entry(rest).filter(|(entry, _)| Entry::leaf(entry) == *hash);
        let width = u16::try_from(hashes.len()).unwrap_or(u16::MAX);
        let damaged = || finding(Tile { kind: Kind::Entries, index, width }, Damage::Bundle);
        (_, rest) = taken.ok_or_else(damaged)?;
    }
    Ok(())
}

/// The bytes of the first entries of a bundle.
fn length_of(bundle: &[u8], entries: u64) -> usize {
    let mut rest = bundle;
    for _ in 0..entries {
        let Some((_, after)) = frame::take_entry(rest) else { break };
        rest = after;
    }
    bundle.len().saturating_sub(rest.len())
}

/// The bytes of the contents of the entries of a bundle.
pub(crate) fn contents_of(mut bundle: &[u8]) -> u64 {
    let mut sum: u64 = 0;
    while let Some((entry, rest)) = frame::take_entry(bundle) {
        sum = sum.saturating_add(u64::from(entry::sealed_length(entry).unwrap_or(0)));
        bundle = rest;
    }
    sum
}
