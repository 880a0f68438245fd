//! The right edge of the tiles of a growing log: what is needed to make every tile, and the root.

use ephor_base::Digest;

use crate::{
    tile::{HEIGHT, Kind, Tile, WIDTH, count},
    tree::{self, Tree},
};

/// For each level, the hashes that do not fill a tile yet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Edge {
    size: u64,
    levels: Vec<Vec<Digest>>,
}

impl Edge {
    /// The edge of the empty log.
    pub const fn new() -> Self {
        Self { size: 0, levels: Vec::new() }
    }

    /// The edge that consists of these partial tiles, from level 0 up. They must be as wide as `size` says.
    pub fn from_levels(size: u64, levels: Vec<Vec<Digest>>) -> Self {
        Self { size, levels }
    }

    /// How many entries the log has.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Appends the hash of an entry. Gives the tiles that are full now, with their hashes.
    pub fn push(&mut self, leaf: Digest) -> Vec<(Tile, Vec<Digest>)> {
        let (mut full, mut node) = (Vec::new(), leaf);
        self.size = self.size.saturating_add(1);
        for level in 0.. {
            if self.levels.len() <= level {
                self.levels.push(Vec::with_capacity(WIDTH as usize));
            }
            let Some(row) = self.levels.get_mut(level) else { break };
            row.push(node);
            if (row.len() as u64) < WIDTH {
                break;
            }
            let hashes = std::mem::replace(row, Vec::with_capacity(WIDTH as usize));
            node = tree::root_of_full(&hashes);
            let kind = Kind::Hashes(u8::try_from(level).unwrap_or(u8::MAX));
            let index = (count(kind, self.size) / WIDTH).saturating_sub(1);
            full.push((Tile::full(kind, index), hashes));
        }
        full
    }

    /// The partial tiles, with their hashes.
    pub fn partials(&self) -> impl Iterator<Item = (Tile, &[Digest])> {
        let rows = (0u8..).zip(&self.levels).filter(|(_, row)| !row.is_empty());
        rows.map(|(level, row)| {
            let kind = Kind::Hashes(level);
            let width = u16::try_from(row.len()).unwrap_or(u16::MAX);
            (Tile { kind, index: count(kind, self.size) / WIDTH, width }, row.as_slice())
        })
    }

    /// The same as a tree.
    pub fn tree(&self) -> Tree {
        let mut peaks = Vec::new();
        for row in self.levels.iter().rev() {
            let mut rest = row.as_slice();
            for bit in (0..HEIGHT).rev() {
                let width = 1usize << bit;
                if row.len() & width == 0 {
                    continue;
                }
                let Some((subtree, after)) = rest.split_at_checked(width) else { break };
                peaks.push(tree::root_of_full(subtree));
                rest = after;
            }
        }
        // The rows have as many full subtrees as the size has bits.
        Tree::from_peaks(self.size, peaks).unwrap_or_default()
    }

    /// The root over all entries.
    pub fn root(&self) -> Digest {
        self.tree().root()
    }
}

/// Hashes as they stand in a tile.
pub fn to_bytes(hashes: &[Digest]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

/// The hashes in the bytes of a tile, if those are whole hashes.
pub fn from_bytes(bytes: &[u8]) -> Option<Vec<Digest>> {
    let hashes = bytes.chunks(32).map(|hash| hash.try_into().ok().map(Digest));
    hashes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{tile, tree::leaf_hash};

    #[test]
    fn root_and_tiles_are_those_of_the_definition_at_every_size() {
        let (mut edge, mut tree) = (Edge::new(), Tree::new());
        let mut full = Vec::new();
        for number in 0..66_000u32 {
            let leaf = leaf_hash(&number.to_be_bytes());
            full.extend(edge.push(leaf));
            tree.push(leaf);
            if !(600..=65_500).contains(&number) {
                assert_eq!(edge.tree(), tree, "after {number}");
            }
        }
        assert_eq!(full.len(), 66_000 / 256 + 1);
        let partial: Vec<_> = edge.partials().map(|(tile, _)| tile).collect();
        let expected: Vec<_> = tile::partials(66_000).filter(|tile| tile.kind != Kind::Entries).collect();
        assert_eq!(partial, expected);
        let (last, hashes) = full.last().unwrap();
        assert_eq!((last.path(), hashes.len()), ("tile/0/256".into(), 256));
        assert!(full.iter().any(|(tile, _)| tile.path() == std::path::Path::new("tile/1/000")));
    }
}
