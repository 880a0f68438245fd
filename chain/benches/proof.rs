//! How long a proof takes in a log of ten million entries, out of tiles on the disk. `EPHOR_BENCH_ENTRIES` changes the size.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark stops at the first surprise and prints")]

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use ephor_base::Digest;
use ephor_tlog::{
    Head, Tree,
    proof::{ReadTile, TileSubtrees, check_consistency, check_inclusion, consistency, inclusion, root},
};

const ROUNDS: u64 = 2000;

struct Folder<'a>(&'a Path);

impl ReadTile for Folder<'_> {
    type Error = io::Error;
    fn tile(&mut self, level: u8, index: u64, width: u16) -> io::Result<Vec<u8>> {
        fs::read(path(self.0, level, index, width))
    }
}

fn path(folder: &Path, level: u8, index: u64, width: u16) -> PathBuf {
    let partial = if width < 256 { format!(".p/{width}") } else { String::new() };
    let (high, middle, low) = (index / 1_000_000, index / 1000 % 1000, index % 1000);
    let name = match (high, middle) {
        (0, 0) => format!("{low:03}"),
        (0, _) => format!("x{middle:03}/{low:03}"),
        _ => format!("x{high:03}/x{middle:03}/{low:03}"),
    };
    folder.join(format!("tile/{level}/{name}{partial}"))
}

fn leaf(index: u64) -> Digest {
    Digest::of_parts(&[&[0], &index.to_be_bytes()])
}

/// Writes the tiles of a level, and gives the hashes of the full ones.
fn write_level(folder: &Path, level: u8, hashes: impl Iterator<Item = Digest>) -> Vec<Digest> {
    let (mut above, mut tile, mut index) = (Vec::new(), Vec::new(), 0);
    let mut write = |tile: &mut Vec<Digest>| {
        let path = path(folder, level, index, u16::try_from(tile.len()).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, tile.iter().flat_map(|hash| hash.0).collect::<Vec<u8>>()).unwrap();
        if tile.len() == 256 {
            let mut tree = Tree::new();
            tile.iter().for_each(|hash| tree.push(*hash));
            above.push(tree.root());
        }
        index += 1;
        tile.clear();
    };
    for hash in hashes {
        tile.push(hash);
        if tile.len() == 256 {
            write(&mut tile);
        }
    }
    if !tile.is_empty() {
        write(&mut tile);
    }
    above
}

fn print(what: &str, mut times: Vec<Duration>, tiles: usize) {
    times.sort_unstable();
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default().as_secs_f64() * 1e6;
    let most = times.last().copied().unwrap_or_default().as_secs_f64() * 1e6;
    println!("{what}: p50 {:.0} µs, p99 {:.0} µs, most {most:.0} µs, at most {tiles} tiles", at(50), at(99));
}

fn main() {
    let size: u64 = std::env::var("EPHOR_BENCH_ENTRIES").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000_000);
    let folder = tempfile::tempdir().unwrap();
    let mut hashes = write_level(folder.path(), 0, (0..size).map(leaf));
    for level in 1..8 {
        if hashes.is_empty() {
            break;
        }
        hashes = write_level(folder.path(), level, hashes.into_iter());
    }
    let root = root(&mut TileSubtrees::new(Folder(folder.path()), size), size).unwrap();
    let head = Head { size, root };
    println!("a log of {size} entries; tiles are opened and read anew for each proof");
    let (mut included, mut grown, mut tiles) = (Vec::new(), Vec::new(), (0, 0));
    for round in 0..ROUNDS {
        let index = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) % size;
        let begun = Instant::now();
        let mut source = TileSubtrees::new(Folder(folder.path()), size);
        let path = inclusion(&mut source, index, size).unwrap();
        check_inclusion(leaf(index), index, &path, head).unwrap();
        included.push(begun.elapsed());
        tiles.0 = tiles.0.max(source.tiles_read());
        let old = index + 1;
        let before = ephor_tlog::proof::root(&mut source, old).unwrap();
        let begun = Instant::now();
        let mut source = TileSubtrees::new(Folder(folder.path()), size);
        let path = consistency(&mut source, old, size).unwrap();
        check_consistency(Head { size: old, root: before }, head, &path).unwrap();
        grown.push(begun.elapsed());
        tiles.1 = tiles.1.max(source.tiles_read());
    }
    print("inclusion, made and checked", included, tiles.0);
    print("consistency, made and checked", grown, tiles.1);
}
