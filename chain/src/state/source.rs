//! A chain, as projections are made from it.

use std::{path::Path, path::PathBuf, sync::Arc};

use ephor_base::{Seq, files::Files};

use crate::{
    checkpoint::Head,
    figures,
    read::{ReadError, Stored, read},
};

/// What projections are made from.
pub trait Source {
    /// How far they are to go.
    fn head(&self) -> Head;
    /// The entries from this place on, at least up to the head.
    fn entries(&self, from: Seq) -> Box<dyn Iterator<Item = Result<Stored, ReadError>> + '_>;
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

    /// The chain in `folder` up to its end. Nobody writes it meanwhile. What was published is not read for that.
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

    fn entries(&self, from: Seq) -> Box<dyn Iterator<Item = Result<Stored, ReadError>> + '_> {
        Box::new(read(&self.folder, &self.files).from(from).up_to(self.head.size))
    }
}
