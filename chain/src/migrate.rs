//! Brings a home of an older format to the one that is written here.
//!
//! Everything in the old journal is published; a segment of the new format goes on with a snapshot; the old segments move
//! aside, into `migrated` beside the chain. Only when what is left verifies whole are they taken away. Interrupted anywhere,
//! the home does not open, or opens as it was left; migrating again goes on from there.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::{Clock, Random, files::Files};
use ephor_record::{Finding, ScanError};
use ephor_verify::folder;

use crate::{
    durable,
    error::OpenError,
    head::PinnedHead,
    log::Config,
    marks,
    open::{self, World},
    rotation::Signers,
    scan,
    segment::{self, Format},
    vault::VaultKey,
    verify::{Against, Progress, Report, verify},
};

/// What migrating did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Migrated {
    /// The home is in the format that is written here. Nothing was changed.
    Nothing,
    /// The home was brought to it, and verified.
    Done(Box<Report>),
}

/// A home was not migrated, or not wholly. Migrating again goes on.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The chain is not whole. Nothing was written.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The migrated chain is not whole, so the old segments stay aside.
    #[error("the migrated chain is not whole: {finding}. The old segments lie in `{aside}`")]
    NotWhole {
        /// What is wrong.
        finding: Finding,
        /// Where the old segments lie.
        aside: PathBuf,
    },
    /// The system would not do it. What was recorded is in the journal, or beside it.
    #[error("{doing} failed: {source}; migrate again to go on")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Migrates the home of a chain. The caller holds its lock. `progress` hears how far the verification at the end is.
///
/// # Errors
/// [`MigrateError`] if it is not, or not wholly, in the new format.
pub fn migrate(
    config: &Config,
    keys: impl Into<Signers>,
    vault: Arc<VaultKey>,
    files: &Arc<dyn Files>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    progress: impl FnMut(Progress),
) -> Result<Migrated, MigrateError> {
    let aside = aside(&config.folder);
    let formats = scan::formats(&config.folder, &**files).map_err(OpenError::from)?;
    let old: Vec<_> =
        formats.iter().filter(|(_, format)| *format != Format::WRITTEN).map(|(first, _)| *first).collect();
    let left = folder::list(&**files, &aside).map_err(io("reading what is aside"))?;
    if old.is_empty() && left.is_empty() {
        return Ok(Migrated::Nothing);
    }
    let keys = keys.into();
    let verifier = keys.verifier().clone();
    if !old.is_empty() {
        let new = formats.iter().find(|(_, format)| *format == Format::WRITTEN).map(|(first, _)| *first);
        let published = marks::read_published(&config.folder, files).map_err(OpenError::from)?;
        let published = published.map_or(0, |(_, published)| published.head.size);
        // The first batch of the new segment is published last of all that carrying over does.
        if new.is_none_or(|new| published <= new) {
            open::carry_over(World { config, files, clock, random }, keys, vault)?;
        }
        move_aside(&config.folder, &**files, &aside, &old)?;
    }
    let head = PinnedHead::load(&config.head, &**files).map_err(io("reading the pinned head"))?;
    let against = Against { keys: &verifier, head, vault: Some(&config.vault), from: None };
    let report = match verify(&config.folder, files, against, progress) {
        Ok(report) => report,
        Err(ScanError::Damaged(finding)) => return Err(MigrateError::NotWhole { finding, aside }),
        Err(error) => return Err(OpenError::from(error).into()),
    };
    take_away(&**files, &aside)?;
    Ok(Migrated::Done(Box::new(report)))
}

/// Where the old segments of a chain lie until the new ones are verified.
pub(crate) fn aside(chain: &Path) -> PathBuf {
    durable::parent(chain).join("migrated")
}

/// Moves the old segments aside, oldest first.
fn move_aside(chain: &Path, files: &dyn Files, aside: &Path, old: &[u64]) -> Result<(), MigrateError> {
    let journal = segment::folder(chain);
    let moved = || {
        durable::make_folder(files, aside)?;
        for first in old {
            files.rename(&journal.join(segment::name(*first)), &aside.join(segment::name(*first)))?;
            files.sync_folder(aside)?;
            files.sync_folder(&journal)?;
        }
        Ok(())
    };
    moved().map_err(io("moving the old segments aside"))
}

fn take_away(files: &dyn Files, aside: &Path) -> Result<(), MigrateError> {
    let taken = || {
        for name in folder::list(files, aside)? {
            files.remove(&aside.join(name))?;
        }
        files.sync_folder(aside)?;
        files.remove_folder(aside)?;
        files.sync_folder(durable::parent(aside))
    };
    taken().map_err(io("taking the old segments away"))
}

fn io(doing: &'static str) -> impl FnOnce(io::Error) -> MigrateError {
    move |source| MigrateError::Io { doing, source }
}
