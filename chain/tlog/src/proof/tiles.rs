//! Hashes of subtrees, out of tiles (C2SP tlog-tiles).

use ephor_base::Digest;

use super::Subtrees;
use crate::tree::join;

/// How many hashes a full tile has, as a power of two.
const TILE_HEIGHT: u8 = 8;
const TILE_WIDTH: u64 = 1 << TILE_HEIGHT;

/// Reads tiles, from wherever they lie.
pub trait ReadTile {
    /// Why a tile cannot be had.
    type Error: std::error::Error;

    /// The bytes of tile `index` of tile level `level` (0 to 7): its first `width` hashes (1 to 256), or all 256 of the full
    /// tile, 32 bytes each.
    ///
    /// # Errors
    /// What the source says.
    fn tile(&mut self, level: u8, index: u64, width: u16) -> Result<Vec<u8>, Self::Error>;
}

/// A tile is not as long as it must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("tile `{index}` of level `{level}` has `{bytes}` bytes, not those of `{width}` hashes")]
pub struct BadTile {
    /// The level of tiles.
    pub level: u8,
    /// Which tile of the level.
    pub index: u64,
    /// How many hashes were asked for.
    pub width: u16,
    /// How many bytes came.
    pub bytes: usize,
}

/// A hash cannot be had from the tiles.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TileError<E: std::error::Error> {
    /// The tiles cannot be read.
    #[error(transparent)]
    Read(E),
    /// A tile is damaged.
    #[error(transparent)]
    Bad(#[from] BadTile),
}

/// The subtrees of a log of a given size, out of its tiles. Each tile is read once: a proof needs at most two of each level,
/// one on the way to the entry and one at the right edge, which is six for ten million entries.
#[derive(Debug)]
pub struct TileSubtrees<R> {
    reader: R,
    size: u64,
    read: Vec<(u8, u64, Vec<Digest>)>,
}

impl<R: ReadTile> TileSubtrees<R> {
    /// The subtrees of the log of `size` entries. Partial tiles are asked for as they are at that size.
    #[must_use]
    pub const fn new(reader: R, size: u64) -> Self {
        Self { reader, size, read: Vec::new() }
    }

    /// How many tiles were read so far.
    #[must_use]
    pub const fn tiles_read(&self) -> usize {
        self.read.len()
    }

    fn load(&mut self, level: u8, index: u64) -> Result<&[Digest], TileError<R::Error>> {
        let found = self.read.iter().position(|(l, i, _)| (*l, *i) == (level, index));
        let at = match found {
            Some(at) => at,
            None => {
                let hashes = self.fetch(level, index)?;
                self.read.push((level, index, hashes));
                self.read.len().saturating_sub(1)
            }
        };
        Ok(self.read.get(at).map(|(_, _, hashes)| hashes.as_slice()).unwrap_or_default())
    }

    fn fetch(&mut self, level: u8, index: u64) -> Result<Vec<Digest>, TileError<R::Error>> {
        let there = self.size.checked_shr(u32::from(level) * u32::from(TILE_HEIGHT)).unwrap_or(0);
        let width = there.saturating_sub(index.saturating_mul(TILE_WIDTH)).min(TILE_WIDTH);
        let width = u16::try_from(width).unwrap_or(u16::MAX);
        let bytes = self.reader.tile(level, index, width).map_err(TileError::Read)?;
        let (hashes, rest) = bytes.as_chunks::<32>();
        let fits = rest.is_empty() && (hashes.len() == usize::from(width) || hashes.len() as u64 == TILE_WIDTH);
        if width == 0 || !fits {
            return Err(BadTile { level, index, width, bytes: bytes.len() }.into());
        }
        Ok(hashes.iter().take(usize::from(width)).map(|hash| Digest(*hash)).collect())
    }
}

impl<R: ReadTile> Subtrees for TileSubtrees<R> {
    type Error = TileError<R::Error>;

    fn subtree(&mut self, level: u8, index: u64) -> Result<Digest, Self::Error> {
        let (tile_level, inside) = (level / TILE_HEIGHT, level % TILE_HEIGHT);
        let first = index.checked_shl(u32::from(inside)).unwrap_or(u64::MAX);
        let (tile, offset) = (first / TILE_WIDTH, usize::try_from(first % TILE_WIDTH).unwrap_or(usize::MAX));
        let hashes = self.load(tile_level, tile)?;
        let end = offset.saturating_add(1 << inside);
        match hashes.get(offset..end).and_then(fold) {
            Some(hash) => Ok(hash),
            None => {
                let (width, bytes) = (u16::try_from(end).unwrap_or(u16::MAX), hashes.len().saturating_mul(32));
                Err(BadTile { level: tile_level, index: tile, width, bytes }.into())
            }
        }
    }
}

/// The root over a power of two of hashes.
fn fold(hashes: &[Digest]) -> Option<Digest> {
    match hashes {
        [] => None,
        [hash] => Some(*hash),
        _ => {
            let (left, right) = hashes.split_at(hashes.len() / 2);
            Some(join(&fold(left)?, &fold(right)?))
        }
    }
}
