//! Reading a chain from its first entry on.

use std::{path::Path, sync::Arc};

use ephor_base::{Receipt, files::Files};

use crate::{
    damage::ScanError,
    entry::Entry,
    scan::{Item, Scan},
    vault::{Private, Vault, VaultError},
};

/// An entry as it stands in the log, with its content as far as it can be opened.
#[derive(Clone, PartialEq, Debug)]
pub struct Stored {
    /// The public part.
    pub entry: Entry,
    /// Where it stands.
    pub receipt: Receipt,
    /// The private part.
    pub content: Private,
}

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The journal cannot be read any further.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// A content cannot be opened.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// The entries of a chain, in order, one batch in memory at a time. A torn end is the end.
///
/// Structure and hashes are checked on the way; signatures are the business of [`crate::verify()`].
pub struct Entries {
    scan: Option<Result<Scan, ScanError>>,
    batch: std::vec::IntoIter<Item>,
    vault: Option<Arc<Vault>>,
    end: u64,
}

/// The entries of the chain in `folder`, contents sealed.
#[must_use]
pub fn read(folder: &Path, files: &Arc<dyn Files>) -> Entries {
    Entries::open(folder, files)
}

impl Entries {
    /// The entries of the chain in `folder`, contents sealed.
    #[must_use]
    pub fn open(folder: &Path, files: &Arc<dyn Files>) -> Self {
        Self { scan: Some(Scan::open(folder, files)), batch: Vec::new().into_iter(), vault: None, end: u64::MAX }
    }

    /// Opens contents with the keys of this vault.
    #[must_use]
    pub fn unsealing(mut self, vault: Arc<Vault>) -> Self {
        self.vault = Some(vault);
        self
    }

    /// Ends before the entry `size`.
    #[must_use]
    pub const fn up_to(mut self, size: u64) -> Self {
        self.end = size;
        self
    }

    fn next_item(&mut self) -> Result<Option<Item>, ScanError> {
        loop {
            if let Some(item) = self.batch.next() {
                return Ok(Some(item).filter(|item| item.entry.seq.0 < self.end));
            }
            let Some(scan) = self.scan.take() else { return Ok(None) };
            let mut scan = scan?;
            if scan.tree.size() >= self.end {
                return Ok(None);
            }
            let Some(batch) = scan.next()? else { return Ok(None) };
            self.batch = batch.entries.into_iter();
            self.scan = Some(Ok(scan));
        }
    }

    fn store(&self, Item { entry, leaf, sealed }: Item) -> Result<Stored, ReadError> {
        let receipt = Receipt { seq: entry.seq, leaf };
        let content = match (sealed, &self.vault) {
            (None, _) => Private::None,
            (Some(_), None) => Private::Sealed,
            (Some(sealed), Some(vault)) => vault.unseal(&entry, &sealed)?.map_or(Private::Sealed, Private::Open),
        };
        Ok(Stored { entry, receipt, content })
    }
}

impl Iterator for Entries {
    type Item = Result<Stored, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.next_item().map_err(ReadError::from).transpose()?;
        Some(item.and_then(|item| self.store(item)))
    }
}
