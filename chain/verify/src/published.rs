//! Reads the published part of a chain: tiles, bundles and contents, as a log of some size has them.

use std::{io, path::Path, sync::Arc};

use ephor_base::{Digest, Seq, cbor, files::Files};
use ephor_record::{Damage, Entry, Finding, ScanError, entry::MAX_ENTRY_BYTES};
use ephor_tlog::{
    Edge, Head, Tile,
    tile::{self, HEIGHT, Kind, LEVELS, WIDTH, bundle, edge},
    tree,
};

use crate::source::{self, Folder, TileSource};

/// The most bytes of a bundle.
const MAX_BUNDLE: u64 = WIDTH * (MAX_ENTRY_BYTES as u64 + 2);

/// The published part of a chain, up to a size.
#[derive(Clone)]
pub struct Published {
    source: Arc<dyn TileSource>,
    size: u64,
}

impl Published {
    /// What a source has of a log of `size` entries.
    #[must_use]
    pub fn new(source: &Arc<dyn TileSource>, size: u64) -> Self {
        Self { source: Arc::clone(source), size }
    }

    /// The same, out of the folder of a chain.
    #[must_use]
    pub fn in_folder(chain: &Path, files: &Arc<dyn Files>, size: u64) -> Self {
        Self { source: Folder::source(chain, files), size }
    }

    /// How many entries it has.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Where it is published.
    #[must_use]
    pub const fn source(&self) -> &Arc<dyn TileSource> {
        &self.source
    }

    /// The hash of a node: the root over the `2^height` entries from `index · 2^height` on.
    ///
    /// # Errors
    /// [`ScanError`] names the tile that is missing or damaged.
    pub fn hash(&self, height: u8, index: u64) -> Result<Digest, ScanError> {
        self.hash_in(height, index, |kind, tile| self.hashes(kind, tile))
    }

    /// The same, out of a tile that the caller reads.
    pub fn hash_in(
        &self,
        height: u8,
        index: u64,
        read: impl FnOnce(Kind, u64) -> Result<Vec<Digest>, ScanError>,
    ) -> Result<Digest, ScanError> {
        let (level, below) = (u32::from(height) / HEIGHT, u32::from(height) % HEIGHT);
        let kind = Kind::Hashes(u8::try_from(level).unwrap_or(LEVELS));
        let first = index.checked_shl(below).unwrap_or(u64::MAX);
        let hashes = read(kind, first / WIDTH)?;
        let start = usize::try_from(first % WIDTH).unwrap_or(usize::MAX);
        let subtree = hashes.get(start..start.saturating_add(1 << below));
        let subtree = subtree.ok_or_else(|| self.missing(Tile::full(kind, first / WIDTH)))?;
        Ok(tree::root_of_full(subtree))
    }

    /// The hashes of a tile, as many as this size has.
    pub fn hashes(&self, kind: Kind, index: u64) -> Result<Vec<Digest>, ScanError> {
        let Some(tile) = Tile::of(kind, index, self.size) else { return Ok(Vec::new()) };
        let (found, bytes) = self.find(tile, WIDTH * 32)?;
        let hashes = edge::from_bytes(&bytes).filter(|hashes| hashes.len() == usize::from(found.width));
        let mut hashes = hashes.ok_or_else(|| finding(found, Damage::Tile))?;
        hashes.truncate(usize::from(tile.width));
        Ok(hashes)
    }

    /// The bytes of a bundle, as many entries as this size has, and how many those are.
    pub fn bundle(&self, index: u64) -> Result<(Vec<u8>, u16), ScanError> {
        let Some(tile) = Tile::of(Kind::Entries, index, self.size) else { return Ok((Vec::new(), 0)) };
        let (found, mut bytes) = self.find(tile, MAX_BUNDLE)?;
        let entries = bundle::parse(&bytes, found.width).ok_or_else(|| finding(found, Damage::Bundle))?;
        let wanted = entries.iter().take(usize::from(tile.width));
        let length = wanted.map(|entry| entry.len().saturating_add(2)).sum();
        bytes.truncate(length);
        Ok((bytes, tile.width))
    }

    /// The entries of the bundle that holds the entry `seq`, each with the hash of its leaf, which is that of its tile.
    ///
    /// # Errors
    /// [`ScanError`] names the bundle or tile that is missing or damaged.
    pub fn entries(&self, seq: u64) -> Result<Vec<(Entry, Digest)>, ScanError> {
        let index = seq / WIDTH;
        let (bytes, width) = self.bundle(index)?;
        let hashes = self.hashes(Kind::Hashes(0), index)?;
        let damaged = |damage| finding(Tile { kind: Kind::Entries, index, width }, damage);
        let (mut entries, mut rest) = (Vec::with_capacity(usize::from(width)), bytes.as_slice());
        for (at, hash) in (index.saturating_mul(WIDTH)..).zip(hashes) {
            let (bytes, after) = bundle::take(rest).ok_or_else(|| damaged(Damage::Bundle))?;
            rest = after;
            let leaf = tree::leaf_hash(bytes);
            let entry: Entry = cbor::from_slice(bytes).map_err(|error| damaged(Damage::Entry(error.to_string())))?;
            if leaf != hash || entry.seq.0 != at {
                return Err(damaged(Damage::Bundle).into());
            }
            entries.push((entry, leaf));
        }
        Ok(entries)
    }

    /// The right edge of the log when it had `size` entries.
    pub fn edge(&self, size: u64) -> Result<Edge, ScanError> {
        let smaller = Self { size, ..self.clone() };
        let mut levels = Vec::new();
        for kind in (0..LEVELS).map(Kind::Hashes).take_while(|kind| tile::count(*kind, size) > 0) {
            let count = tile::count(kind, size);
            let mut hashes =
                if count.is_multiple_of(WIDTH) { Vec::new() } else { smaller.within(self, kind, count / WIDTH)? };
            hashes.truncate(usize::try_from(count % WIDTH).unwrap_or(0));
            levels.push(hashes);
        }
        Ok(Edge::from_levels(size, levels))
    }

    /// The tile that is to blame when the tiles do not give the root of a log of `size` entries: the lowest one that its
    /// parent does not know, or else the one at the very edge.
    pub fn suspect(&self, size: u64) -> Result<Finding, ScanError> {
        let edge = self.edge(size)?;
        for (tile, hashes) in edge.partials() {
            let (Kind::Hashes(level @ 1..), Some(last)) = (tile.kind, hashes.last()) else { continue };
            let child = tile::count(tile.kind, size).saturating_sub(1);
            let below = self.hashes(Kind::Hashes(level.saturating_sub(1)), child)?;
            if tree::root_of_full(&below) != *last {
                return Ok(finding(tile, Damage::Tile));
            }
        }
        let edge = edge.partials().next().map(|(tile, _)| tile);
        Ok(finding(edge.unwrap_or(Tile::full(Kind::Hashes(0), 0)), Damage::Tile))
    }

    /// The hashes of a tile of an earlier size. The tile of the later one has them as well.
    fn within(&self, later: &Self, kind: Kind, index: u64) -> Result<Vec<Digest>, ScanError> {
        if later.size >= self.size { later.hashes(kind, index) } else { self.hashes(kind, index) }
    }

    /// The head of the log when it had `size` entries, as the tiles have it.
    pub fn head(&self, size: u64) -> Result<Head, ScanError> {
        Ok(Head { size, root: self.edge(size)?.root() })
    }

    /// The tile itself, or a wider one of the same index: partial tiles go once the log has outgrown them.
    fn find(&self, tile: Tile, most: u64) -> Result<(Tile, Vec<u8>), ScanError> {
        if let Some(bytes) = self.read(tile, most)? {
            return Ok((tile, bytes));
        }
        if tile.is_full() {
            return Err(self.missing(tile));
        }
        let folder = tile.partials();
        let names = self.source.list(&folder).map_err(ScanError::io(&self.source.place(&folder)))?.unwrap_or_default();
        let widths = names.iter().filter_map(|name| name.to_str()?.parse::<u16>().ok());
        // The one that replaced it was waited for; a wider one may be in the making.
        let narrowest = widths.filter(|width| *width > tile.width).min();
        for width in [narrowest, u16::try_from(WIDTH).ok()].into_iter().flatten() {
            let wider = Tile { width, ..tile };
            if let Some(bytes) = self.read(wider, most)? {
                return Ok((wider, bytes));
            }
        }
        Err(self.missing(tile))
    }

    fn read(&self, tile: Tile, most: u64) -> Result<Option<Vec<u8>>, ScanError> {
        let name = tile.path();
        match self.source.read(&name, most) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(finding(tile, damage_of(tile)).into()),
            other => other.map_err(ScanError::io(&self.source.place(&name))),
        }
    }

    /// What a tile or bundle that is not there means: below the minimum of a pruned log, nothing bad.
    fn missing(&self, tile: Tile) -> ScanError {
        let finding = finding(tile, Damage::Missing);
        let goes = matches!(tile.kind, Kind::Entries | Kind::Hashes(0));
        let end = tile.index.saturating_add(1).saturating_mul(WIDTH);
        match source::first(&*self.source) {
            Ok(minimum) if goes && end <= minimum => {
                ScanError::Pruned { entry: finding.seq.map_or(0, |seq| seq.0), minimum }
            }
            Ok(_) => finding.into(),
            Err(error) => error,
        }
    }
}

fn damage_of(tile: Tile) -> Damage {
    if tile.kind == Kind::Entries { Damage::Bundle } else { Damage::Tile }
}

/// Something wrong with a tile or bundle.
pub fn finding(tile: Tile, damage: Damage) -> Finding {
    let height = match tile.kind {
        Kind::Entries => HEIGHT,
        Kind::Hashes(level) => HEIGHT.saturating_mul(u32::from(level).saturating_add(1)),
    };
    let first = tile.index.saturating_mul(1u64.checked_shl(height).unwrap_or(0));
    Finding { file: tile.path(), offset: 0, seq: Some(Seq(first)), damage }
}
