//! A chain, as projections are made from it.

use std::{path::Path, path::PathBuf, sync::Arc};

use ephor_base::{Seq, files::Files};

use crate::{
    checkpoint::Head,
    read::{ReadError, Stored, read},
    tree::Tree,
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

    /// The chain in `folder` up to its end. Nobody writes it meanwhile.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be read to its end.
    pub fn whole(folder: &Path, files: &Arc<dyn Files>) -> Result<Self, ReadError> {
        let mut tree = Tree::new();
        for stored in read(folder, files) {
            tree.push(stored?.receipt.leaf);
        }
        Ok(Self::up_to(folder, files, Head { size: tree.size(), root: tree.root() }))
    }
}

impl Source for Reading {
    fn head(&self) -> Head {
        self.head
    }

    fn entries(&self, from: Seq) -> Box<dyn Iterator<Item = Result<Stored, ReadError>> + '_> {
        let before = move |stored: &Result<Stored, ReadError>| stored.as_ref().is_ok_and(|s| s.entry.seq < from);
        Box::new(read(&self.folder, &self.files).up_to(self.head.size).skip_while(before))
    }
}
