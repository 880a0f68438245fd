//! A chain, as projections are made from it.

use std::{path::Path, path::PathBuf, sync::Arc};

use ephor_base::{Seq, SessionId, files::Files};
use ephor_record::ScanError;
use ephor_tlog::{Head, Tree};
use ephor_verify::Published;

use super::row::Moment;
use crate::minimum;
use crate::{
    figures,
    read::{ReadError, Stored, read},
};

/// What projections are made from.
pub trait Source {
    /// How far they are to go.
    fn head(&self) -> Head;
    /// The first entry that there is: 0 unless the chain was pruned.
    ///
    /// # Errors
    /// [`ReadError`] if that cannot be read.
    fn first(&self) -> Result<u64, ReadError> {
        Ok(0)
    }
    /// What is known where the chain begins; nothing unless it was pruned.
    ///
    /// # Errors
    /// [`ReadError`] if that cannot be read.
    fn begin(&self) -> Result<Option<Beginning>, ReadError> {
        Ok(None)
    }
    /// The entries from this place on, at least up to the head.
    fn entries(&self, from: Seq) -> Box<dyn Iterator<Item = Result<Stored, ReadError>> + '_>;
}

/// What is known where a pruned chain begins.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// Over the entries that were pruned.
    pub tree: Tree,
    /// The pruning on the record.
    pub pruning: Moment,
    /// The sessions that were erased before.
    pub erased: Vec<SessionId>,
}

/// The folder of a chain, up to a head.
pub struct Reading {
    folder: PathBuf,
    files: Arc<dyn Files>,
    head: Head,
}

impl Reading {
    /// The chain in `folder` up to `head`, which a running node knows.
    #[must_use]
    pub fn up_to(folder: &Path, files: &Arc<dyn Files>, head: Head) -> Self {
        Self { folder: folder.to_owned(), files: Arc::clone(files), head }
    }

    /// The chain in `folder` up to its end. No process writes it meanwhile. What was published is not read for that.
    ///
    /// # Errors
    /// [`ReadError`] if the journal cannot be read to its end.
    pub fn whole(folder: &Path, files: &Arc<dyn Files>) -> Result<Self, ReadError> {
        Ok(Self::up_to(folder, files, figures::journal(folder, files)?.head))
    }
}

impl Source for Reading {
    fn head(&self) -> Head {
        self.head
    }

    fn first(&self) -> Result<u64, ReadError> {
        Ok(minimum::index_of(&self.folder, &self.files)?)
    }

    fn begin(&self) -> Result<Option<Beginning>, ReadError> {
        let Some(minimum) = minimum::load(&self.folder, &self.files)? else { return Ok(None) };
        // Of the right edge there, a wider tile says the same.
        let published = Published::in_folder(&self.folder, &self.files, minimum.index);
        let mut time = None;
        let entries = read(&self.folder, &self.files).from(minimum.record).up_to(self.head.size);
        let begin = minimum.begin(entries.map(|stored| match stored {
            Ok(stored) => {
                time = time.or(Some(stored.entry.time));
                Ok(stored.entry)
            }
            Err(ReadError::Scan(error)) => Err(error),
            Err(ReadError::Vault(_)) => Err(ScanError::minimum("the record of it cannot be read")),
        }))?;
        let tree = published.edge(minimum.index)?.tree();
        let pruning = Moment { seq: minimum.record, time: time.unwrap_or(begin.before) };
        Ok(Some(Beginning { tree, pruning, erased: begin.rules.erased().iter().copied().collect() }))
    }

    fn entries(&self, from: Seq) -> Box<dyn Iterator<Item = Result<Stored, ReadError>> + '_> {
        Box::new(read(&self.folder, &self.files).from(from).up_to(self.head.size))
    }
}
