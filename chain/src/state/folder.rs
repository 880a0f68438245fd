//! The folder of the projections: `map`, which is sled's, and `opening`, a mark.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use super::{
    Kept, Reason,
    applied::{Applied, Sum},
    draft::key_after,
    key,
    store::{Broken, Store},
};

/// Where projections are kept. Only the process that holds the lock of the home writes here.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn map(&self) -> PathBuf {
        self.0.join("map")
    }

    fn mark(&self) -> PathBuf {
        self.0.join("opening")
    }

    /// Opens what is there, and reads every row.
    pub(super) fn open(&self, origin: &str) -> Result<Kept, Reason> {
        if !self.map().is_dir() {
            return Err(Reason::Missing);
        }
        if self.mark().exists() {
            return Err(Reason::Interrupted);
        }
        fs::write(self.mark(), []).map_err(broken("the folder cannot be written"))?;
        let store = Store::open(&self.map())?;
        let kept = match checked(&store, origin) {
            Ok(applied) => Kept { store, applied },
            Err(reason) => {
                store.abandon();
                return Err(reason);
            }
        };
        fs::remove_file(self.mark()).map_err(broken("the folder cannot be written"))?;
        Ok(kept)
    }

    /// Takes away what is there, and begins with nothing.
    pub(super) fn begin(&self, origin: &str) -> Result<Kept, Reason> {
        self.clear().map_err(broken("what was there cannot be removed"))?;
        let make = DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        make.map_err(broken("the folder cannot be made"))?;
        Ok(Kept { store: Store::open(&self.map())?, applied: Applied::nothing(origin) })
    }

    /// Moves the folder aside before it is deleted, so that half of it is never taken for all.
    fn clear(&self) -> io::Result<()> {
        let aside = self.0.with_extension("old");
        remove(&aside)?;
        match fs::rename(&self.0, &aside) {
            Ok(()) => remove(&aside),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        let (mut folders, mut bytes) = (vec![self.0.clone()], 0u64);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                    Ok(metadata) => bytes = bytes.saturating_add(metadata.len()),
                    Err(_) => {}
                }
            }
        }
        bytes
    }
}

/// What was applied, if all rows are as they were written.
fn checked(store: &Store, origin: &str) -> Result<Applied, Reason> {
    // A map without it is one whose first batch never came.
    let bytes = store.row(&key::applied())?.ok_or(Reason::Missing)?;
    let applied = Applied::parse(&bytes, origin)?;
    let behind = key_after(&key::applied());
    if Sum::over(store.rows(behind..vec![u8::MAX])?)? != applied.sum {
        return Err(Reason::Broken("its rows are not those that were written".to_owned()));
    }
    Ok(applied)
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn broken(doing: &'static str) -> impl FnOnce(io::Error) -> Reason {
    move |error| Broken(format!("{doing}: {error}")).into()
}
