//! The press: makes tiles, bundles and files of contents out of batches, and takes away what they make superfluous.
//!
//! Everything it writes follows from the journal, so writing it again gives the same bytes. It is never waited for on the
//! way; [`Press::settle`] waits for all of it at once. After an error a press is thrown away: the next begins at what is published,
//! and puts all that follows into new files. What lies there may have failed to reach the disk, and reads as if it had.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::files::{File, Files, Open, Tree};
use ephor_record::{Damage, ScanError, entry};
use ephor_tlog::{
    Edge, Tile,
    tile::{self, Kind, WIDTH, edge},
};
use ephor_verify::folder;
use ephor_verify::{Published, contents::content_path, published::finding};

use crate::{durable, frame, segment, tail::Handed};

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
    /// How many entries are on the disk in published form, by a round that succeeded.
    published: u64,
    /// The contents of that bundle, in a file that this press has made or renewed.
    growing: Option<Arc<dyn File>>,
    /// Whether the partial tiles that were there were held against what they must be.
    looked: bool,
    /// The folders of chain and vault, watched since before this press wrote anything.
    trees: Option<[Arc<dyn Tree>; 2]>,
}

impl Press {
    /// Goes on behind the first `size` of the `published` entries in the folder of a chain.
    pub(crate) fn at(
        (chain, vault): (&Path, &Path),
        files: &Arc<dyn Files>,
        published: u64,
        size: u64,
    ) -> Result<Self, ScanError> {
        let published = Published::in_folder(chain, files, published);
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
        let (files, chain) = (Arc::clone(files), chain.to_owned());
        let (contents, sealed, growing, trees) = (Vec::new(), false, None, None);
        let (vault, published) = (vault.to_owned(), published.size());
        let looked = false;
        Ok(Self { files, chain, vault, edge, bundle, written, contents, sealed, published, growing, looked, trees })
    }

    /// How many entries it has taken.
    pub(crate) const fn size(&self) -> u64 {
        self.edge.size()
    }

    /// Takes the next batch, and writes what is full.
    pub(crate) fn take(&mut self, batch: &Handed) -> io::Result<()> {
        self.watch()?;
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

    /// Writes what is not full, and waits until everything is on the disk; says how many bytes the partial tiles took.
    pub(crate) fn settle(&mut self) -> io::Result<u64> {
        let [chain, vault] = self.watch()?;
        let index = self.size() / WIDTH;
        self.write_contents(index, false)?;
        let bundle = Tile::of(Kind::Entries, index, self.size()).map(|tile| (tile, self.bundle.clone()));
        let hashes = self.edge.partials().map(|(tile, hashes)| (tile, edge::to_bytes(hashes)));
        let mut bytes: u64 = 0;
        for (tile, whole) in bundle.into_iter().chain(hashes) {
            if !self.looked {
                self.check_partials(tile, &whole)?;
            }
            self.put(tile, &whole)?;
            bytes = bytes.saturating_add(whole.len() as u64);
        }
        self.looked = true;
        chain.sync()?;
        if std::mem::take(&mut self.sealed) {
            vault.sync()?;
        }
        self.published = self.size();
        Ok(bytes)
    }

    /// Takes away the partial tiles of earlier sizes that are not the beginning of this one. Readers then take this one.
    fn check_partials(&self, tile: Tile, whole: &[u8]) -> io::Result<()> {
        let folder = self.chain.join(tile.partials());
        for name in folder::list(&*self.files, &folder)? {
            let width = name.to_str().and_then(|name| name.parse::<u16>().ok()).filter(|width| *width < tile.width);
            let Some(width) = width else { continue };
            let length = match tile.kind {
                Kind::Entries => length_of(whole, u64::from(width)),
                Kind::Hashes(_) => usize::from(width).saturating_mul(32),
            };
            if !durable::holds(&*self.files, &folder.join(&name), whole.get(..length).unwrap_or_default())? {
                durable::remove(&*self.files, &folder.join(&name))?;
            }
        }
        Ok(())
    }

    /// The folders that are waited for; from the first call on they hear of every error.
    fn watch(&mut self) -> io::Result<[Arc<dyn Tree>; 2]> {
        if let Some(trees) = &self.trees {
            return Ok(trees.clone());
        }
        let trees = [self.files.tree(&self.chain)?, self.files.tree(&self.vault)?];
        Ok(self.trees.insert(trees).clone())
    }

    fn put(&self, tile: Tile, bytes: &[u8]) -> io::Result<()> {
        let path = self.chain.join(tile.path());
        if self.is_published() && durable::holds(&*self.files, &path, bytes)? {
            return Ok(());
        }
        durable::put(&*self.files, &path, bytes)
    }

    /// Whether all that was taken is on the disk already, by a round that succeeded. Only then a file that reads as it should
    /// is one.
    const fn is_published(&self) -> bool {
        self.size() <= self.published
    }

    /// Adds the contents that were gathered. Behind the last content of a full bundle nothing may follow.
    fn write_contents(&mut self, index: u64, full: bool) -> io::Result<()> {
        let end = self.written.saturating_add(self.contents.len() as u64);
        if end == 0 {
            return Ok(());
        }
        let path = content_path(&self.vault, index);
        self.sealed = true;
        if !(self.is_published() && self.has_contents(&path, full.then_some(end))?) {
            match self.growing.clone() {
                Some(file) => durable::write_all(&*file, &self.contents, self.written)?,
                None => self.growing = Some(self.renew_contents(&path)?),
            }
        }
        if full {
            self.growing = None;
        }
        self.contents.clear();
        self.written = end;
        Ok(())
    }

    /// Whether the contents that were gathered stand in the file, and it ends where it must.
    fn has_contents(&self, path: &Path, end: Option<u64>) -> io::Result<bool> {
        let Some(file) = folder::open_existing(&*self.files, path, Open::Read)? else { return Ok(false) };
        let mut there = vec![0; self.contents.len()];
        let filled = folder::read_full(&*file, &mut there, self.written)?;
        let length = file.len()?;
        Ok(filled == there.len() && there == self.contents && end.is_none_or(|end| length == end))
    }

    /// A new file with what is published of the contents of this bundle, and those that were gathered.
    fn renew_contents(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let files = &*self.files;
        let Some(old) = folder::open_existing(files, path, Open::Read)? else {
            let file = durable::create(files, path)?;
            durable::write_all(&*file, &self.contents, self.written)?;
            return Ok(file);
        };
        let draft = durable::draft(path);
        durable::remove(files, &draft)?;
        let file = files.open(&draft, Open::Create)?;
        // What is missing of what was published before the journal begins is left to the verifier.
        durable::copy_start(&*old, &*file, old.len()?.min(self.written))?;
        durable::write_all(&*file, &self.contents, self.written)?;
        file.sync_data()?;
        files.rename(&draft, path)?;
        files.sync_folder(durable::parent(path))?;
        Ok(file)
    }

    /// Takes away the partial tiles of those that became full between two published sizes; says how many bytes they had. Others stay for holders of earlier
    /// checkpoints (C2SP tlog-tiles).
    pub(crate) fn clear(&self, before: u64, size: u64) -> io::Result<u64> {
        let mut bytes: u64 = 0;
        for kind in tile::kinds(size) {
            for index in tile::count(kind, before) / WIDTH..tile::count(kind, size) / WIDTH {
                bytes = bytes.saturating_add(self.keep_partials(kind, index, 0)?);
            }
        }
        Ok(bytes)
    }

    /// Takes away the partial tiles between the sizes `from` and `to` that are wider than what is published, or that a full one
    /// replaces. What an error or a crash left of a round may be torn.
    pub(crate) fn tidy(&self, from: u64, to: u64) -> io::Result<()> {
        for kind in tile::kinds(to) {
            for index in tile::count(kind, from) / WIDTH..=tile::count(kind, to) / WIDTH {
                let width = Tile::width_in(kind, index, self.published);
                self.keep_partials(kind, index, if u64::from(width) == WIDTH { 0 } else { width })?;
            }
        }
        Ok(())
    }

    /// Takes away all partial tiles of an index but those of up to so many hashes or entries; says how many bytes they had.
    fn keep_partials(&self, kind: Kind, index: u64, most: u16) -> io::Result<u64> {
        let folder = self.chain.join(Tile::full(kind, index).partials());
        let names = folder::list(&*self.files, &folder)?;
        let mut bytes: u64 = 0;
        let is_kept =
            |name: &Path| name.to_str().and_then(|name| name.parse().ok()).is_some_and(|width: u16| width <= most);
        for name in names.iter().filter(|name| !is_kept(name)) {
            let path = folder.join(name);
            let file = folder::open_existing(&*self.files, &path, Open::Read)?;
            bytes = bytes.saturating_add(file.map_or(Ok(0), |file| file.len())?);
            durable::remove(&*self.files, &path)?;
        }
        if most == 0 && !names.is_empty() {
            // Something that does not belong there may still be in it.
            let _ = self.files.remove_folder(&folder);
        }
        Ok(bytes)
    }

    /// Takes away the segments that lie wholly below `published`, oldest first; says how many bytes they had. The one that
    /// is being written stays.
    pub(crate) fn recycle(&self, published: u64) -> io::Result<u64> {
        let folder = segment::folder(&self.chain);
        let mut firsts: Vec<_> =
            folder::list(&*self.files, &folder)?.iter().filter_map(|name| segment::first_of(name)).collect();
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
        let taken = frame::take_entry(rest).filter(|(entry, _)| ephor_tlog::tree::leaf_hash(entry) == *hash);
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
