//! The pruner: takes away what lies below the minimum of a log, once the record and the published minimum say so.
//!
//! Below the minimum go the bundles, the tiles of level 0, the sealed contents, and the kept checkpoints, whose roots could not be
//! computed any more. Tiles of the other levels stay: with them everything that is left can still be proven. Interrupted anywhere,
//! it goes on where it was; what it leaves behind never counts.

use std::{
    io,
    path::{Path, PathBuf},
};

use ephor_base::files::{Files, Open};
use ephor_tlog::{
    checkpoint,
    tile::{self, WIDTH},
};
use ephor_verify::folder;

use crate::durable;

/// The folders of a chain in which something lies by the number of its bundle.
fn folders(chain: &Path, vault: &Path) -> [PathBuf; 3] {
    let tiles = chain.join(tile::FOLDER);
    [tiles.join("entries"), tiles.join("0"), vault.join("content")]
}

/// What lies below a minimum.
pub(crate) struct Below {
    files: Vec<PathBuf>,
    /// The folders they lie in, outermost first.
    folders: Vec<PathBuf>,
}

impl Below {
    /// Looks for what lies below `minimum`. Only folders that can hold it are listed.
    pub(crate) fn find(chain: &Path, vault: &Path, files: &dyn Files, minimum: u64) -> io::Result<Self> {
        let mut below = Self { files: Vec::new(), folders: Vec::new() };
        for folder in folders(chain, vault) {
            below.walk(&folder, files, 0, minimum / WIDTH)?;
        }
        let kept = chain.join(checkpoint::KEPT);
        for name in folder::list(files, &kept)? {
            let size = name.to_str().and_then(|name| checkpoint::kept_size(Path::new(name)));
            if size.is_some_and(|size| size < minimum) {
                below.files.push(kept.join(name));
            }
        }
        Ok(below)
    }

    fn walk(&mut self, folder: &Path, files: &dyn Files, above: u64, end: u64) -> io::Result<()> {
        for name in folder::list(files, folder)? {
            let path = folder.join(&name);
            let Some(name) = name.to_str() else { continue };
            let number = |digits: &str| {
                digits.parse::<u64>().ok().and_then(|digits| above.checked_mul(1000)?.checked_add(digits))
            };
            if let Some(group) = name.strip_prefix('x').and_then(number) {
                // What lies in it has this number or more, a thousand times.
                if group.saturating_mul(1000) < end {
                    self.folders.push(path.clone());
                    self.walk(&path, files, group, end)?;
                }
            } else if let Some(index) = name.strip_suffix(".p").and_then(number) {
                if index < end {
                    self.folders.push(path.clone());
                    self.files.extend(folder::list(files, &path)?.iter().map(|width| path.join(width)));
                }
            } else if number(name).is_some_and(|index| index < end) {
                self.files.push(path);
            }
        }
        Ok(())
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.files.is_empty()
    }

    /// How many bytes the files have.
    pub(crate) fn bytes(&self, files: &dyn Files) -> io::Result<u64> {
        let length = |path: &PathBuf| folder::open_existing(files, path, Open::Read)?.map_or(Ok(0), |file| file.len());
        self.files.iter().try_fold(0u64, |sum, path| Ok(sum.saturating_add(length(path)?)))
    }

    /// Takes it away, with the folders that are empty then.
    pub(crate) fn remove(&self, files: &dyn Files) -> io::Result<()> {
        for path in &self.files {
            durable::remove(files, path)?;
        }
        for folder in self.folders.iter().rev() {
            // One that holds something else as well stays.
            if folder::list(files, folder)?.is_empty() {
                match files.remove_folder(folder) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;

    #[test]
    fn what_lies_below_goes_and_nothing_else_however_deep_it_lies() {
        let home = tempfile::tempdir().unwrap();
        let (chain, vault) = (home.path().join("chain"), home.path().join("vault"));
        let indexes = [0, 5, 999, 1000, 1499, 1500, 1999, 2000, 999_999, 1_000_000, 1_234_067];
        let place = |folder: &PathBuf, index: u64| folder.join(tile::number_path(index));
        let put = |path: &Path| {
            std::fs::create_dir_all(durable::parent(path)).unwrap();
            std::fs::write(path, b"12345").unwrap();
        };
        for folder in folders(&chain, &vault) {
            indexes.iter().for_each(|index| put(&place(&folder, *index)));
        }
        put(&chain.join("tile/1/000"));
        put(&chain.join("tile/0/003.p/17"));
        put(&checkpoint::kept_path(&chain, 1500 * 256 - 1));
        put(&checkpoint::kept_path(&chain, 1500 * 256));
        let below = Below::find(&chain, &vault, &Disk, 1500 * 256).unwrap();
        assert_eq!(below.bytes(&Disk).unwrap(), (3 * 5 + 2) * 5);
        below.remove(&Disk).unwrap();
        for folder in folders(&chain, &vault) {
            for index in indexes {
                assert_eq!(place(&folder, index).exists(), index >= 1500, "{index}");
            }
        }
        assert!(chain.join("tile/1/000").exists() && !chain.join("tile/0/003.p").exists());
        assert!(checkpoint::kept_path(&chain, 1500 * 256).exists());
        assert!(Below::find(&chain, &vault, &Disk, 1500 * 256).unwrap().is_nothing());
    }
}
