//! Tiles (C2SP tlog-tiles): which hash lies in which file, and how wide the files are.
//!
//! A tile of level 0 holds the hashes of 256 entries; one of level *l* the roots of 256 full tiles of the level below. The
//! entries themselves lie in bundles of 256. Only the last of each level may be narrower. Everything here is a function of
//! sizes; nothing is read or written.

use std::path::{Path, PathBuf};

pub mod bundle;
pub mod edge;

/// How many hashes, or entries, a full tile has.
pub const WIDTH: u64 = 256;
/// The height of the subtree of one tile.
pub const HEIGHT: u32 = 8;
/// Levels of tiles that a log of fewer than 2⁶⁴ entries can have.
pub const LEVELS: u8 = 8;
/// The folder of tiles and bundles, below that of the chain.
pub const FOLDER: &str = "tile";

/// What a tile holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Hashes of this level, from 0 to 7.
    Hashes(u8),
    /// Entries.
    Entries,
}

/// One tile or bundle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tile {
    /// What it holds.
    pub kind: Kind,
    /// Which of its kind, from 0.
    pub index: u64,
    /// How many it holds: 256, or from 1 to 255 if it is partial.
    pub width: u16,
}

impl Tile {
    /// The full tile.
    #[must_use]
    pub const fn full(kind: Kind, index: u64) -> Self {
        Self { kind, index, width: WIDTH as u16 }
    }

    /// Whether it has 256.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.width as u64 == WIDTH
    }

    /// Its path below the folder of the chain.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let path = self.stem();
        if self.is_full() { path } else { self.partials().join(self.width.to_string()) }
    }

    /// The folder in which the partial tiles of the same index lie.
    #[must_use]
    pub fn partials(&self) -> PathBuf {
        let mut path = self.stem().into_os_string();
        path.push(".p");
        PathBuf::from(path)
    }

    fn stem(&self) -> PathBuf {
        let folder = match self.kind {
            Kind::Hashes(level) => level.to_string(),
            Kind::Entries => "entries".to_owned(),
        };
        [Path::new(FOLDER), Path::new(&folder), &number_path(self.index)].iter().collect()
    }

    /// The tile that lies under this path, if it is one, in the one form that [`Tile::path`] gives.
    #[must_use]
    pub fn parse(path: &Path) -> Option<Self> {
        let mut names = path.to_str()?.strip_prefix("tile/")?.split('/');
        let kind = match names.next()? {
            "entries" => Kind::Entries,
            level => Kind::Hashes(level.parse().ok().filter(|level| *level < LEVELS)?),
        };
        let (mut index, mut width) = (0u64, WIDTH as u16);
        while let Some(name) = names.next() {
            let (digits, partial) = name.strip_suffix(".p").map_or((name, false), |digits| (digits, true));
            let digits: u64 = digits.strip_prefix('x').unwrap_or(digits).parse().ok()?;
            index = index.checked_mul(1000)?.checked_add(digits)?;
            if partial {
                width = names.next()?.parse().ok()?;
            }
        }
        let tile = Self { kind, index, width };
        let has_width = (1..=WIDTH as u16).contains(&width);
        (has_width && tile.path() == path).then_some(tile)
    }

    /// How many a tile of this kind and index has in a log of `size` entries: from 0 to 256.
    #[must_use]
    pub fn width_in(kind: Kind, index: u64, size: u64) -> u16 {
        let start = index.saturating_mul(WIDTH);
        let width = count(kind, size).saturating_sub(start).min(WIDTH);
        u16::try_from(width).unwrap_or(WIDTH as u16)
    }

    /// The tile of this kind and index in a log of `size` entries, if it has one.
    #[must_use]
    pub fn of(kind: Kind, index: u64, size: u64) -> Option<Self> {
        let width = Self::width_in(kind, index, size);
        (width > 0).then_some(Self { kind, index, width })
    }
}

/// How many hashes, or entries, a log of `size` entries has of this kind.
pub fn count(kind: Kind, size: u64) -> u64 {
    match kind {
        Kind::Entries => size,
        Kind::Hashes(level) => size.checked_shr(HEIGHT.saturating_mul(u32::from(level))).unwrap_or(0),
    }
}

/// All kinds a log of `size` entries has.
pub fn kinds(size: u64) -> impl Iterator<Item = Kind> {
    let levels = (0..LEVELS).map(Kind::Hashes);
    std::iter::once(Kind::Entries).chain(levels).filter(move |kind| count(*kind, size) > 0)
}

/// The partial tiles of a log of `size` entries.
pub fn partials(size: u64) -> impl Iterator<Item = Tile> {
    kinds(size).filter_map(move |kind| {
        let tile = Tile::of(kind, count(kind, size) / WIDTH, size)?;
        (!tile.is_full()).then_some(tile)
    })
}

/// A number in elements of three digits, all but the last with an `x` ahead.
pub fn number_path(number: u64) -> PathBuf {
    let last = format!("{:03}", number % 1000);
    let (mut elements, mut rest) = (vec![last], number / 1000);
    while rest > 0 {
        elements.push(format!("x{:03}", rest % 1000));
        rest /= 1000;
    }
    elements.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_specification() {
        let path = |kind, index, width| Tile { kind, index, width }.path();
        assert_eq!(path(Kind::Hashes(0), 1_234_067, 256), Path::new("tile/0/x001/x234/067"));
        assert_eq!(path(Kind::Hashes(3), 0, 7), Path::new("tile/3/000.p/7"));
        assert_eq!(path(Kind::Entries, 273, 112), Path::new("tile/entries/273.p/112"));
        assert_eq!(path(Kind::Entries, 1000, 256), Path::new("tile/entries/x001/000"));
    }

    #[test]
    fn the_tiles_of_a_size_are_those_of_the_specification() {
        // "a tree of size 70,000 will be represented by 273 full level 0 tiles, one partial level 0 tile of width 112, one
        // full level 1 tile, one partial level 1 tile of width 17, and one partial level 2 tile of width 1"
        let of = |size| partials(size).filter(|tile| tile.kind != Kind::Entries).collect::<Vec<_>>();
        let partial = |level, index, width| Tile { kind: Kind::Hashes(level), index, width };
        assert_eq!(count(Kind::Hashes(0), 70_000) / WIDTH, 273);
        assert_eq!(of(70_000), [partial(0, 273, 112), partial(1, 1, 17), partial(2, 0, 1)]);
        assert_eq!(of(256), [partial(1, 0, 1)]);
        assert_eq!(of(0), []);
        assert_eq!(Tile::width_in(Kind::Hashes(1), 0, 70_000), 256);
        assert_eq!(Tile::of(Kind::Hashes(7), 0, u64::MAX).map(|tile| tile.width), Some(255));
    }

    #[test]
    fn a_path_reads_back_and_no_other_form_is_a_tile() {
        for index in [0, 1, 999, 1000, 1_234_067, u64::MAX] {
            for (kind, width) in [(Kind::Entries, 256), (Kind::Hashes(0), 1), (Kind::Hashes(7), 255)] {
                let tile = Tile { kind, index, width };
                assert_eq!(Tile::parse(&tile.path()), Some(tile));
            }
        }
        let refused = [
            "tile/8/000",
            "tile/00/000",
            "tile/0/0",
            "tile/0/x000",
            "tile/0/x000/001",
            "tile/0/1000",
            "tile/0/000.p",
            "tile/0/000.p/0",
            "tile/0/000.p/256",
            "tile/0/000.p/01",
            "tile/0/000.p/+1",
            "tile/0/+00",
            "tile/0",
            "tile/0/000/x",
            "tile/0/001/000",
            "tile/entries/000.p/1/2",
            "entries/000",
            "tile/0/000.tmp",
            "",
            "tile/0/x018/x446/x744/x073/x709/x551/616",
        ];
        for path in refused {
            assert_eq!(Tile::parse(Path::new(path)), None, "{path}");
        }
    }
}
