//! The quota: how many bytes a chain and its vault may have.
//!
//! They are counted once, when the chain is opened, and from then on as records are taken: in the journal, and again in the
//! form in which they will be published, until the journal is recycled. The room that open intents were promised counts as
//! well, so that what is ended is still recorded within the quota. At the quota only what ends something is taken, and what a node
//! says when it starts.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::files::{Files, Open};
use ephor_record::{Fact, RulingOn, Subject};
use ephor_verify::folder;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::{
    durable,
    error::AppendError,
    figures,
    log::Config,
    publisher::Publisher,
    queue::{OUTCOME_RESERVE, STOP_RESERVE},
    segment,
};

/// From so many hundredths of the quota on, the operator is warned.
const WARNING: u64 = 90;

/// What must be left for anything to begin: what a session, its first message and a call take, and what its outcome is promised.
const BEGINNING: u64 = OUTCOME_RESERVE + (64 << 10);

/// How many bytes a chain and its vault have, and may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Space {
    /// In use, or promised to outcomes.
    pub used: u64,
    /// The most.
    pub quota: u64,
}

impl Space {
    /// Whether so much is used that the operator should be warned.
    #[must_use]
    pub const fn is_short(&self) -> bool {
        self.used as u128 * 100 >= self.quota as u128 * WARNING as u128
    }
}

/// That a quota is nearly used up.
pub(crate) struct Warning {
    home: PathBuf,
    space: Space,
}

impl Warning {
    pub(crate) fn say(&self) {
        let Space { used, quota } = self.space;
        tracing::warn!(
            used,
            quota,
            "the chain and the vault in `{}` have used nine tenths of their quota: see what `ephor chain prune --dry-run` could \
             take away, or raise `quota` under `[chain]` in ephor.toml, or the node stops when it is reached",
            self.home.display()
        );
    }
}

/// What a quota is held against.
pub(crate) struct Quota {
    /// The folder around the chain.
    home: PathBuf,
    most: u64,
    /// When the chain was opened, and what was taken since.
    taken: u64,
    /// What was recycled and pruned before that.
    recycled: u64,
    publisher: Arc<Publisher>,
    warned: bool,
    /// What is to be said once nothing is locked.
    warning: Option<Warning>,
    /// What was refused.
    refused: Option<Space>,
    /// Told when something was refused that was begun, or when nothing more can begin.
    pub(crate) full: Arc<Notify>,
}

impl Quota {
    /// Counts what there is, if there is a quota. `reserved` bytes of it are only reserved.
    pub(crate) fn open(
        config: &Config,
        files: &dyn Files,
        publisher: &Arc<Publisher>,
        reserved: u64,
    ) -> io::Result<Option<Self>> {
        let Some(most) = config.quota else { return Ok(None) };
        let taken = measure(&config.folder, files)?.saturating_add(measure(&config.vault, files)?);
        // What was published at the start is counted by its files.
        let taken = taken.saturating_sub(reserved).saturating_sub(publisher.partial());
        let (recycled, publisher) = (given_back(publisher), Arc::clone(publisher));
        let home = durable::parent(&config.folder).to_owned();
        let (warned, warning, refused, full) = (false, None, None, Arc::default());
        Ok(Some(Self { home, most, taken, recycled, publisher, warned, warning, refused, full }))
    }

    pub(crate) fn space(&self, intents: usize) -> Space {
        let recycled = given_back(&self.publisher).saturating_sub(self.recycled);
        let taken = self.taken.saturating_add(self.publisher.partial());
        let promised = OUTCOME_RESERVE.saturating_mul(intents as u64).saturating_add(STOP_RESERVE);
        Space { used: taken.saturating_sub(recycled).saturating_add(promised), quota: self.most }
    }

    /// Whether `more` bytes may be taken while so many intents are open; warns once when that becomes short. What only `begins`
    /// something, and is too large, can be refused alone.
    pub(crate) fn check(&mut self, more: u64, intents: usize, begins: bool) -> Result<(), AppendError> {
        let space = self.space(intents);
        let space = Space { used: space.used.saturating_add(more), ..space };
        if space.used > space.quota {
            if !begins || self.can_begin(intents).is_err() {
                self.refused = Some(space);
                self.full.notify_one();
            }
            return Err(self.refusal(space));
        }
        if space.is_short() && !self.warned {
            self.warned = true;
            self.warning = Some(Warning { home: self.home.clone(), space });
        }
        Ok(())
    }

    /// What is to be said, once.
    pub(crate) fn warning(&mut self) -> Option<Warning> {
        self.warning.take()
    }

    /// Whether there is room for anything to begin, and nothing that was begun has been refused.
    pub(crate) fn can_begin(&self, intents: usize) -> Result<(), AppendError> {
        if let Some(refused) = self.refused {
            return Err(self.refusal(refused));
        }
        let space = self.space(intents);
        let space = Space { used: space.used.saturating_add(BEGINNING), ..space };
        if space.used > space.quota { Err(self.refusal(space)) } else { Ok(()) }
    }

    fn refusal(&self, Space { used, quota }: Space) -> AppendError {
        AppendError::Quota { home: self.home.clone(), used, quota }
    }

    /// These many bytes were taken.
    pub(crate) const fn take(&mut self, bytes: u64) {
        self.taken = self.taken.saturating_add(bytes);
    }
}

/// Whether a record is taken however much there is: it ends something that was taken before, a node says it of itself when it
/// starts, or it must not wait: keys that may be lost, what an operator wants forgotten, and what makes room.
pub(crate) const fn is_always_taken(subject: &Subject, fact: &Fact) -> bool {
    match fact {
        Fact::Outcome { .. }
        | Fact::Ruling { on: RulingOn::Ticket(_), .. }
        | Fact::TurnEnd { .. }
        | Fact::Exit { .. }
        | Fact::Stop { .. }
        | Fact::Snapshot(_)
        | Fact::Erase { .. }
        | Fact::Prune(_)
        | Fact::Signal { .. }
        | Fact::Dead { .. }
        | Fact::Skipped { .. }
        | Fact::Unscheduled { .. }
        | Fact::Buried { .. }
        | Fact::Dismissed { .. }
        | Fact::Revoked { .. }
        | Fact::Keys { .. }
        | Fact::Boot { .. }
        | Fact::Inherited(_)
        | Fact::Withheld { .. }
        | Fact::Origin { .. } => true,
        Fact::Operator { .. }
        | Fact::Policy { .. }
        | Fact::Document { .. }
        | Fact::Tool { .. }
        | Fact::Spawn { .. }
        | Fact::Restarts { .. } => subject.session.is_none(),
        _ => false,
    }
}

/// How many bytes were recycled and pruned.
fn given_back(publisher: &Publisher) -> u64 {
    publisher.recycled().saturating_add(publisher.taken_away())
}

/// Whether a chain that no process has opened has room for anything to begin. Nothing is written, so a node that is started again
/// and again does not fill what is left with its boots. What cannot be read is left to the process that opens the chain.
///
/// # Errors
/// [`AppendError::Quota`] says what is full, and where.
pub fn can_begin(config: &Config, files: &Arc<dyn Files>) -> Result<(), AppendError> {
    let Some(quota) = config.quota else { return Ok(()) };
    let Ok(journal) = figures::journal(&config.folder, files) else { return Ok(()) };
    let used = used(config, &**files, journal.bytes).unwrap_or(0).saturating_add(STOP_RESERVE + BEGINNING);
    let home = durable::parent(&config.folder).to_owned();
    if used > quota { Err(AppendError::Quota { home, used, quota }) } else { Ok(()) }
}

/// What a chain and its vault have on the disk, by a quota's measure: without what the journal has only reserved. `journal` are
/// the bytes that are in use of that.
///
/// # Errors
/// What the system says.
pub fn used(config: &Config, files: &dyn Files, journal: u64) -> io::Result<u64> {
    let segments = measure(&segment::folder(&config.folder), files)?;
    let all = measure(&config.folder, files)?.saturating_add(measure(&config.vault, files)?);
    Ok(all.saturating_sub(segments).saturating_add(journal))
}

/// The bytes of the files in a folder and below it.
fn measure(folder: &Path, files: &dyn Files) -> io::Result<u64> {
    let (mut bytes, mut folders): (u64, _) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for name in folder::list(files, &folder)? {
            let path: PathBuf = folder.join(name);
            match files.open(&path, Open::Read) {
                Ok(file) => bytes = bytes.saturating_add(file.len()?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // What is no file is a folder, and what is neither says so when it is listed.
                Err(_) => folders.push(path),
            }
        }
    }
    Ok(bytes)
}
