//! Where the rows are kept: in sled, or in memory where sled cannot be had.
//!
//! Sled does its own input and output. Nothing that was acknowledged depends on it, so it may fail in any way: every way
//! ends as [`Broken`], and the rows are made again from the chain.

use std::{
    collections::{BTreeMap, btree_map},
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// Sled's default of a gigabyte is for a database; these are some indexes of which little is used at a time.
const CACHE_BYTES: u64 = 8 << 20;

/// What is kept cannot be used any more. Nothing is lost: it is made again from the chain.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the projections cannot be used: {0}")]
pub struct Broken(pub(super) String);

/// A row: its key and its bytes.
pub(super) struct Pair {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// What becomes of a key; nothing takes the row away.
pub(super) struct Write {
    pub(super) key: Vec<u8>,
    pub(super) value: Option<Vec<u8>>,
}

/// An ordered map from bytes to bytes.
pub(super) enum Store {
    Disk(Disk),
    Memory(BTreeMap<Vec<u8>, Vec<u8>>),
}

/// Sled, until it broke.
pub(super) struct Disk(Option<sled::Db>);

impl Store {
    /// Opens the map in this folder, or begins one there.
    pub(super) fn open(folder: &Path) -> Result<Self, Broken> {
        // Without a thread that flushes on its own, whatever happens in sled happens in a call of ours.
        let config = sled::Config::new().path(folder).cache_capacity(CACHE_BYTES).flush_every_ms(None);
        let db = guarded("it cannot be opened", || config.open())?;
        Ok(Self::Disk(Disk(Some(db))))
    }

    pub(super) const fn in_memory() -> Self {
        Self::Memory(BTreeMap::new())
    }

    pub(super) const fn is_on_disk(&self) -> bool {
        matches!(self, Self::Disk(_))
    }

    pub(super) fn row(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Broken> {
        match self {
            Self::Disk(disk) => {
                let db = disk.db()?;
                Ok(guarded("a row cannot be read", || db.get(key))?.map(|value| value.to_vec()))
            }
            Self::Memory(rows) => Ok(rows.get(key).cloned()),
        }
    }

    /// The rows of these keys, in order; ends after the first that cannot be read.
    pub(super) fn rows(&self, keys: Range<Vec<u8>>) -> Result<Rows<'_>, Broken> {
        if keys.start >= keys.end {
            return Ok(Rows::Nothing);
        }
        Ok(match self {
            Self::Disk(disk) => {
                let db = disk.db()?;
                Rows::Disk(Box::new(guarded("rows cannot be read", || Ok(db.range(keys)))?))
            }
            Self::Memory(rows) => Rows::Memory(rows.range(keys)),
        })
    }

    /// Writes all of these or none.
    pub(super) fn write(&mut self, writes: Vec<Write>) -> Result<(), Broken> {
        match self {
            Self::Disk(disk) => {
                let mut batch = sled::Batch::default();
                for Write { key, value } in writes {
                    match value {
                        Some(value) => batch.insert(key, value),
                        None => batch.remove(key),
                    }
                }
                let db = disk.db()?;
                guarded("rows cannot be written", || db.apply_batch(batch))
            }
            Self::Memory(rows) => {
                for Write { key, value } in writes {
                    match value {
                        Some(value) => rows.insert(key, value),
                        None => rows.remove(&key),
                    };
                }
                Ok(())
            }
        }
    }

    /// Hands what was written to the system. After a loss of power it may still be gone: then it is made again.
    pub(super) fn flush(&self) -> Result<(), Broken> {
        match self {
            Self::Disk(disk) => {
                let db = disk.db()?;
                guarded("rows cannot be flushed", || db.flush()).map(|_| ())
            }
            Self::Memory(_) => Ok(()),
        }
    }

    /// Lets go of a map that broke, without its own tidying: that would read and write what is broken, and a second panic
    /// inside the first ends the process. A few descriptors and the cache stay behind.
    pub(super) fn abandon(mut self) {
        if let Self::Disk(disk) = &mut self {
            std::mem::forget(disk.0.take());
        }
    }
}

impl Disk {
    fn db(&self) -> Result<&sled::Db, Broken> {
        self.0.as_ref().ok_or_else(|| Broken("it is closed".to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let db = self.0.take();
        // Closing flushes. What does not reach the disk is made again.
        if let Err(Broken(why)) = guarded("it was not closed", || {
            drop(db);
            Ok(())
        }) {
            tracing::warn!(%why, "the projections will be built again");
        }
    }
}

/// Rows in order, from both ends.
pub(super) enum Rows<'a> {
    Disk(Box<sled::Iter>),
    Memory(btree_map::Range<'a, Vec<u8>, Vec<u8>>),
    Nothing,
}

impl Rows<'_> {
    fn step(&mut self, newest: bool) -> Option<Result<Pair, Broken>> {
        let found = match self {
            Self::Disk(iter) => {
                let step = || if newest { iter.next_back() } else { iter.next() }.transpose();
                guarded("rows cannot be read", step)
                    .map(|pair| pair.map(|(key, value)| Pair { key: key.to_vec(), value: value.to_vec() }))
            }
            Self::Memory(range) => {
                let pair = if newest { range.next_back() } else { range.next() };
                Ok(pair.map(|(key, value)| Pair { key: key.clone(), value: value.clone() }))
            }
            Self::Nothing => Ok(None),
        };
        if found.is_err() {
            *self = Self::Nothing;
        }
        found.transpose()
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Pair, Broken>;
    fn next(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}

impl DoubleEndedIterator for Rows<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}

/// Does something in sled. It panics on bytes that it does not expect, where others return an error. Nothing of ours is
/// half-changed by that: the caller that sees [`Broken`] abandons the whole map and makes it again.
fn guarded<T>(doing: &str, work: impl FnOnce() -> sled::Result<T>) -> Result<T, Broken> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Broken(format!("{doing}: {error}"))),
        Err(_) => Err(Broken(format!("{doing}: sled panicked"))),
    }
}
