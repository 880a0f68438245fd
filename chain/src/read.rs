//! Reading a chain: what is published and the journal, as one.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::{Digest, Receipt, Seq, SessionId, files::Files};
use ephor_record::{Damage, Entry, Finding, ScanError};
use ephor_tlog::tile::WIDTH;
use ephor_verify::{
    Published,
    contents::{Contents, content_path},
};

use crate::minimum;
use crate::{
    scan::{Item, Scan},
    vault::{Opened, Private, Vault, VaultError},
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

/// The entries of a chain, in order, one bundle or batch in memory at a time: those that are published first, then those of
/// the journal. A torn end is the end. A pruned log begins at its minimum, whatever was asked for.
///
/// Structure and hashes are checked on the way; signatures are the business of [`crate::verify()`].
pub struct Entries {
    folder: PathBuf,
    files: Arc<dyn Files>,
    vault: Option<Arc<Vault>>,
    opened: Opened,
    /// The sessions whose contents are opened; all, if none is named.
    of: Option<BTreeSet<SessionId>>,
    source: Source,
    items: std::vec::IntoIter<Item>,
    next: u64,
    end: u64,
}

/// Where the next entries come from.
enum Source {
    /// That has to be looked up.
    Unknown,
    /// From the bundles, up to the entry at which the journal began when that was looked up.
    Published(Published),
    Journal(Box<Scan>),
    Nowhere,
}

/// A log that is being written gives segments back that a reader was about to open. Then what was in them is published.
const TRIES: u32 = 100;

/// The entries of the chain in `folder`, contents sealed.
#[must_use]
pub fn read(folder: &Path, files: &Arc<dyn Files>) -> Entries {
    Entries::open(folder, files)
}

impl Entries {
    /// The entries of the chain in `folder`, contents sealed.
    #[must_use]
    pub fn open(folder: &Path, files: &Arc<dyn Files>) -> Self {
        Self {
            folder: folder.to_owned(),
            files: Arc::clone(files),
            vault: None,
            opened: Opened::default(),
            of: None,
            source: Source::Unknown,
            items: Vec::new().into_iter(),
            next: 0,
            end: u64::MAX,
        }
    }

    /// Opens contents with the keys of this vault.
    #[must_use]
    pub fn unsealing(mut self, vault: Arc<Vault>) -> Self {
        self.vault = Some(vault);
        self
    }

    /// Opens the contents of these sessions alone; all others stay sealed.
    #[must_use]
    pub fn only_of(mut self, sessions: BTreeSet<SessionId>) -> Self {
        self.of = Some(sessions);
        self
    }

    /// Begins at the entry `seq`, without reading what is published before it.
    #[must_use]
    pub const fn from(mut self, seq: Seq) -> Self {
        self.next = seq.0;
        self
    }

    /// Ends before the entry `size`.
    #[must_use]
    pub const fn up_to(mut self, size: u64) -> Self {
        self.end = size;
        self
    }

    /// These entries alone, as far as there are such. What lies between them is passed over, a bundle at a time.
    pub fn at(mut self, places: BTreeSet<Seq>) -> impl Iterator<Item = Result<Stored, ReadError>> {
        let wanted = places.clone();
        let all = places.into_iter().filter_map(move |place| {
            self.next = self.next.max(place.0);
            self.next()
        });
        all.filter(move |stored| stored.as_ref().map_or(true, |stored| wanted.contains(&stored.entry.seq)))
    }

    fn next_item(&mut self) -> Result<Option<Item>, ScanError> {
        let mut tries = 0;
        while self.next < self.end {
            if let Some(item) = self.items.find(|item| item.entry.seq.0 >= self.next) {
                self.next = item.entry.seq.0.saturating_add(1);
                return Ok(Some(item));
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if (error.is_gone() || self.was_pruned()) && tries < TRIES => {
                    self.source = Source::Unknown;
                    tries = tries.saturating_add(1);
                }
                Err(error) => {
                    self.source = Source::Nowhere;
                    return Err(error);
                }
            }
        }
        Ok(None)
    }

    /// Whether what comes next was pruned since that was looked up.
    fn was_pruned(&self) -> bool {
        minimum::index_of(&self.folder, &self.files).is_ok_and(|minimum| minimum > self.next)
    }

    /// Reads the next entries; says whether there can be any.
    fn fill(&mut self) -> Result<bool, ScanError> {
        match &mut self.source {
            Source::Unknown => {
                self.next = self.next.max(minimum::index_of(&self.folder, &self.files)?);
                let scan = Scan::open(&self.folder, &self.files)?;
                let start = scan.start.size;
                self.source = if self.next < start {
                    Source::Published(Published::in_folder(&self.folder, &self.files, start))
                } else {
                    Source::Journal(Box::new(scan))
                };
            }
            Source::Published(published) if self.next >= published.size() => self.source = Source::Unknown,
            Source::Published(published) => {
                let items =
                    bundle_items(published, self.next, self.vault.as_deref().map(|vault| (vault, &*self.files)))?;
                self.items = items.into_iter();
            }
            Source::Journal(scan) => {
                let batch = scan.next()?;
                self.items = batch.map_or_else(Vec::new, |batch| batch.entries).into_iter();
                return Ok(self.items.len() > 0);
            }
            Source::Nowhere => return Ok(false),
        }
        Ok(true)
    }

    fn store(&mut self, Item { entry, leaf, sealed }: Item) -> Result<Stored, ReadError> {
        let receipt = Receipt { seq: entry.seq, leaf };
        let wanted = self.of.as_ref().is_none_or(|of| entry.subject.session.is_some_and(|one| of.contains(&one)));
        let content = match (&self.vault, sealed) {
            _ if entry.content.is_none() => Private::None,
            (Some(vault), Some(sealed)) if wanted => {
                vault.unseal_for(&mut self.opened, &entry, &sealed)?.map_or(Private::Sealed, Private::Open)
            }
            _ => Private::Sealed,
        };
        Ok(Stored { entry, receipt, content })
    }
}

/// The entries of the bundle that holds the entry `seq`, from that on. Their contents are read if there is a vault.
fn bundle_items(published: &Published, seq: u64, vault: Option<(&Vault, &dyn Files)>) -> Result<Vec<Item>, ScanError> {
    let index = seq / WIDTH;
    let mut contents = match vault {
        Some((vault, files)) => {
            let folder = vault.contents();
            let path = content_path(folder, index);
            Some(Contents::open(folder, files, index).map_err(ScanError::io(&path))?)
        }
        None => None,
    };
    let mut items = Vec::new();
    for (entry, leaf) in published.entries(seq)? {
        let passed = entry.seq.0 < seq;
        let sealed = contents.as_mut().map(|contents| take_sealed(contents, index, &entry, passed)).transpose()?;
        if !passed {
            items.push(Item { entry, leaf, sealed: sealed.flatten() });
        }
    }
    Ok(items)
}

/// The sealed content of an entry, if it has one and it is not passed over.
fn take_sealed(contents: &mut Contents, index: u64, entry: &Entry, passed: bool) -> Result<Option<Vec<u8>>, ScanError> {
    let Some(commitment) = entry.content else { return Ok(None) };
    let (offset, length) = (contents.offset(), commitment.length);
    if passed {
        contents.skip(u64::from(length));
        return Ok(None);
    }
    let file = ephor_verify::contents::content_name(index);
    let sealed = contents.take(length as usize).map_err(ScanError::io(&file))?;
    let own = sealed.filter(|sealed| Digest::of(sealed) == commitment.sealed);
    let damaged = || Finding { file, offset, seq: Some(entry.seq), damage: Damage::Content };
    Ok(Some(own.ok_or_else(damaged)?.to_vec()))
}

impl Iterator for Entries {
    type Item = Result<Stored, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.next_item().map_err(ReadError::from).transpose()?;
        Some(item.and_then(|item| self.store(item)))
    }
}
