//! Looks for files in the published folders that do not belong there.
//!
//! What belongs there and counts was verified before. Left are tiles of sizes that are not published yet, which a crash may
//! have torn, and partial tiles of sizes before the published one, which must agree with the ones that replaced them.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::files::Files;
use ephor_record::{Damage, ScanError};
use ephor_tlog::{
    Tile,
    tile::{self, Kind, WIDTH, bundle, count, edge},
    tree,
};

use crate::{
    folder,
    published::{Published, finding},
    source::TileSource,
};

/// Looks at everything below the tiles, where the source can list them, of a log of `size` entries that begins at `minimum`.
pub fn check_tiles(source: &Arc<dyn TileSource>, size: u64, minimum: u64) -> Result<(), ScanError> {
    let published = Published::new(source, size);
    let mut folders = vec![PathBuf::from(tile::FOLDER)];
    while let Some(folder) = folders.pop() {
        let names = source.list(&folder).map_err(ScanError::io(&source.place(&folder)))?;
        for name in names.unwrap_or_default() {
            let name = folder.join(name);
            match Tile::parse(&name) {
                Some(tile) if is_below(tile, minimum) => check_below(&published, tile)?,
                Some(tile) => check_tile(&published, tile)?,
                None if may_be_folder(&name, folder == Path::new(tile::FOLDER)) => folders.push(name),
                // A replacement that a crash left half-made.
                None if name.extension().is_some_and(|end| end == "tmp") => {}
                None => return Err(ScanError::unknown(name)),
            }
        }
    }
    Ok(())
}

/// Looks at everything below the sealed contents.
pub fn check_contents(vault: &Path, files: &dyn Files) -> Result<(), ScanError> {
    let mut folders = vec![PathBuf::from("content")];
    while let Some(folder) = folders.pop() {
        let path = vault.join(&folder);
        for name in folder::list(files, &path).map_err(ScanError::io(&path))? {
            let number = name.to_str().filter(|name| name.len() == 3 && name.parse::<u16>().is_ok());
            let name = folder.join(&name);
            if may_be_folder(&name, false) && number.is_none() {
                folders.push(name);
            } else if number.is_none() && name.extension().is_none_or(|end| end != "tmp") {
                return Err(ScanError::unknown(Path::new("vault").join(name)));
            }
        }
    }
    Ok(())
}

/// Whether a folder of this name can lie there: `entries` or a level, then `xNNN`, then `NNN.p`.
fn may_be_folder(name: &Path, top: bool) -> bool {
    let Some(name) = name.file_name().and_then(|name| name.to_str()) else { return false };
    let digits = |text: &str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    if top {
        return name == "entries" || name.len() == 1 && name.bytes().all(|byte| (b'0'..b'8').contains(&byte));
    }
    name.strip_prefix('x').is_some_and(digits) || name.strip_suffix(".p").is_some_and(digits)
}

/// Whether a tile was to be taken away.
fn is_below(tile: Tile, minimum: u64) -> bool {
    matches!(tile.kind, Kind::Entries | Kind::Hashes(0)) && tile.index < minimum / WIDTH
}

/// A pruning that was interrupted may have left it: then it is what its parent says. Partial ones never count.
fn check_below(published: &Published, tile: Tile) -> Result<(), ScanError> {
    if !tile.is_full() {
        return Ok(());
    }
    let Some(found) = stray(published, tile)? else { return Ok(()) };
    let leaves = match tile.kind {
        Kind::Entries => {
            let entries = bundle::parse(&found, tile.width);
            entries.map(|entries| entries.into_iter().map(tree::leaf_hash).collect::<Vec<_>>())
        }
        Kind::Hashes(_) => edge::from_bytes(&found).filter(|hashes| hashes.len() == usize::from(tile.width)),
    };
    let parents = published.hashes(Kind::Hashes(1), tile.index / WIDTH)?;
    let parent = parents.get(usize::try_from(tile.index % WIDTH).unwrap_or(0)).copied();
    if leaves.map(|leaves| tree::root_of_full(&leaves)) == parent { Ok(()) } else { Err(damaged(tile)) }
}

fn check_tile(published: &Published, tile: Tile) -> Result<(), ScanError> {
    let end = tile.index.saturating_mul(WIDTH).saturating_add(u64::from(tile.width));
    let own = Tile::of(tile.kind, tile.index, published.size());
    if end > count(tile.kind, published.size()) || own == Some(tile) {
        return Ok(());
    }
    let Some(found) = stray(published, tile)? else { return Ok(()) };
    let same = match tile.kind {
        Kind::Entries => {
            let (whole, _) = published.bundle(tile.index)?;
            whole.starts_with(&found) && bundle::parse(&found, tile.width).is_some()
        }
        Kind::Hashes(_) => {
            let hashes = published.hashes(tile.kind, tile.index)?;
            let part = hashes.get(..usize::from(tile.width)).unwrap_or_default();
            edge::to_bytes(part) == found
        }
    };
    if same { Ok(()) } else { Err(damaged(tile)) }
}

/// What lies in a tile's file. Of a log that is being written it may have been taken away meanwhile.
fn stray(published: &Published, tile: Tile) -> Result<Option<Vec<u8>>, ScanError> {
    let (name, source) = (tile.path(), published.source());
    source.read(&name, 1 << 25).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => damaged(tile),
        _ => ScanError::io(&source.place(&name))(error),
    })
}

fn damaged(tile: Tile) -> ScanError {
    finding(tile, if tile.kind == Kind::Entries { Damage::Bundle } else { Damage::Tile }).into()
}
