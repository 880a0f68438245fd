//! Projections: what is asked of a chain often, kept so that it need not be read from the first entry on.
//!
//! Sessions, tickets, intents without an outcome, seats, days, and lists of entries by session, process, call and kind. All of it follows from the entries alone. It holds only what their public part says, and nothing that was
//! acknowledged depends on it: the folder may be deleted at any time. Of a pruned chain they are those of the entries it
//! still has; which sessions were erased before, only where an earlier version pruned it.
//!
//! # Why its answers are those of the chain
//! - What was **applied** is written in one batch with the rows: the layout, the origin of the log, the compact range of
//!   the entries, and a sum over all rows. Half a batch never counts.
//! - **Opening** reads every row and holds the sum against it. So a row that is lost, an older one, and a changed one are
//!   found, whatever sled makes of a damaged file.
//! - **Each catch-up** ends with the root of the head, over entries that were all applied. A projection of another
//!   history, or of entries that a restored chain does not have, does not get there.
//! - Whatever is wrong, the rows are **built again** from the chain: on the disk, and in memory where that fails too.
//!
//! A map that is damaged can end the process, in ways that cannot be caught. A mark stands in the folder while it is
//! opened; if it is found there, the map is not opened a second time.

mod applied;
mod change;
mod draft;
mod folder;
mod key;
mod postings;
mod row;
mod source;
mod store;
mod view;

use std::path::{Path, PathBuf};

use ephor_base::Seq;
use serde::{Deserialize, Serialize};

pub use change::day_of;
pub use key::List;
pub use row::{
    Became, Day, Dead, EXITS, Moment, SeatLife, Session, Ticket, TicketAnswer, Unsettled, Verdicts, Waiting,
};
pub use source::{Beginning, Reading, Source};
pub use store::Broken;
pub use view::{Order, Page, View};

use self::{applied::Applied, draft::Draft, folder::Folder, store::Store};
use crate::read::{ReadError, Stored};
use ephor_tlog::Head;

/// How many entries go into one batch of rows: enough that most rows are written once, little enough to hold in memory
/// and to begin again with after a crash.
const BATCH: u64 = 4096;

/// The most entries whose rows are held in memory where they cannot be kept on the disk; some hundred megabytes.
const MOST_IN_MEMORY: u64 = 1_000_000;

/// The projections of a chain.
#[derive(Debug)]
pub struct State {
    folder: Folder,
    origin: String,
    kept: Option<Kept>,
    /// What a question found broken: the next catch-up builds again.
    broken: Option<Broken>,
}

/// Rows that can be asked.
struct Kept {
    store: Store,
    applied: Applied,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("applied", &self.applied).finish_non_exhaustive()
    }
}

/// Why projections were built again from the first entry on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// There were none.
    #[error("there were none")]
    Missing,
    /// Another version of Ephor made them.
    #[error("they were of another layout")]
    Layout,
    /// They are of another log.
    #[error("they were of another log")]
    Origin,
    /// They have entries that the chain does not have.
    #[error("they were ahead of the chain")]
    Ahead,
    /// The chain was pruned since they were made.
    #[error("the chain was pruned")]
    Pruned,
    /// They are of another history.
    #[error("their root was not the chain's")]
    Root,
    /// The process ended while it opened them.
    #[error("the process ended the last time while it opened them")]
    Interrupted,
    /// They are damaged, or the system would not read or write them.
    #[error("they were broken: {0}")]
    Broken(String),
    /// The caller wanted it.
    #[error("it was asked for")]
    Asked,
}

impl From<Broken> for Reason {
    fn from(Broken(why): Broken) -> Self {
        Self::Broken(why)
    }
}

/// Projections cannot be had. What was kept stays as it is; the chain is untouched.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The chain cannot be read.
    #[error(transparent)]
    Chain(#[from] ReadError),
    /// The chain gave fewer entries than its head has. The caller's fault, or that of the chain.
    #[error("the chain ended at entry {found}, and its head has {expected}")]
    Short {
        /// How many there should be.
        expected: u64,
        /// How many there were.
        found: u64,
    },
    /// The entries of the chain do not amount to its head. The caller's fault, or that of the chain.
    #[error("the entries of the chain do not amount to its head")]
    Root,
    /// They can be neither kept on the disk nor, for their size, in memory. The store's fault.
    #[error("the projections cannot be kept in `{folder}`: {why}")]
    Unkept {
        /// Where they should be.
        folder: PathBuf,
        /// What is in the way.
        why: Reason,
    },
}

/// How far a catch-up is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// Entries applied.
    pub applied: u64,
    /// Entries of the chain.
    pub of: u64,
}

/// What a catch-up did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CaughtUp {
    /// The entries that were applied now.
    pub applied: u64,
    /// The entries that are applied.
    pub size: u64,
    /// Why everything was built again, if it was.
    pub rebuilt: Option<Reason>,
}

/// Where projections stand.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The entries that are applied.
    pub applied: u64,
    /// The bytes of their files.
    pub bytes: u64,
    /// Whether they are on the disk. If not, they are in memory and end with the process.
    pub on_disk: bool,
}

/// Why a catch-up did not get to its end.
enum Halt {
    /// The rows are no good: build them again.
    Rows(Reason),
    /// Building them again would not help.
    Chain(StateError),
}

impl<T: Into<Reason>> From<T> for Halt {
    fn from(reason: T) -> Self {
        Self::Rows(reason.into())
    }
}

impl State {
    /// The projections of the log `origin`, kept in `folder`. Nothing is read or written before the first catch-up.
    #[must_use]
    pub fn open(folder: &Path, origin: &str) -> Self {
        Self { folder: Folder::new(folder), origin: origin.to_owned(), kept: None, broken: None }
    }

    /// Applies what the chain has beyond what was applied; builds everything again if that cannot be gone on from.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn catch_up(&mut self, chain: &dyn Source, progress: &mut dyn FnMut(Progress)) -> Result<CaughtUp, StateError> {
        let reason = match self.broken.take() {
            Some(broken) => broken.into(),
            None => match self.go_on(chain, progress) {
                Ok(caught_up) => return Ok(caught_up),
                Err(Halt::Chain(error)) => return Err(error),
                Err(Halt::Rows(reason)) => reason,
            },
        };
        self.build(reason, chain, progress)
    }

    /// Builds everything again from the first entry on.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn rebuild(&mut self, chain: &dyn Source, progress: &mut dyn FnMut(Progress)) -> Result<CaughtUp, StateError> {
        self.build(Reason::Asked, chain, progress)
    }

    /// Catches up and asks something. If the rows prove broken on the way, they are built again and asked once more.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn ask<T>(
        &mut self,
        chain: &dyn Source,
        progress: &mut dyn FnMut(Progress),
        question: impl Fn(&View<'_>) -> Result<T, Broken>,
    ) -> Result<T, StateError> {
        let mut last = Broken("nothing is kept".to_owned());
        for _ in 0..2 {
            self.catch_up(chain, progress)?;
            let Some(kept) = &self.kept else { continue };
            match question(&View::new(&kept.store, kept.applied.since.first, kept.applied.tree.size())) {
                Ok(answer) => return Ok(answer),
                Err(broken) => {
                    last = broken.clone();
                    self.broken = Some(broken);
                }
            }
        }
        Err(StateError::Unkept { folder: self.folder.path().to_owned(), why: last.into() })
    }

    /// Where they stand. Nothing is applied before the first catch-up.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let applied = self.kept.as_ref().map_or(0, |kept| kept.applied.tree.size());
        let on_disk = self.kept.as_ref().is_some_and(|kept| kept.store.is_on_disk());
        Figures { applied, bytes: self.folder.bytes(), on_disk }
    }

    /// Goes on from what is kept.
    fn go_on(&mut self, chain: &dyn Source, progress: &mut dyn FnMut(Progress)) -> Result<CaughtUp, Halt> {
        let head = chain.head();
        let kept = match &mut self.kept {
            Some(kept) => kept,
            none => none.insert(self.folder.open(&self.origin)?),
        };
        let before = kept.applied.tree.size();
        if before > head.size {
            return Err(Reason::Ahead.into());
        }
        if chain.first().map_err(|error| Halt::Chain(error.into()))? != kept.applied.since.first {
            return Err(Reason::Pruned.into());
        }
        kept.apply(head, chain, progress)?;
        Ok(CaughtUp { applied: head.size.saturating_sub(before), size: head.size, rebuilt: None })
    }

    /// Begins anew: on the disk, or else in memory.
    fn build(
        &mut self,
        reason: Reason,
        chain: &dyn Source,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CaughtUp, StateError> {
        match reason {
            Reason::Missing | Reason::Asked | Reason::Pruned => {
                tracing::info!("the projections are built from the chain")
            }
            ref why => tracing::warn!(%why, "the projections are built again from the chain"),
        }
        self.abandon();
        let head = chain.head();
        let first = chain.first()?;
        let built = CaughtUp { applied: head.size.saturating_sub(first), size: head.size, rebuilt: Some(reason) };
        let kept = self.folder.begin(&self.origin);
        match self.fill(kept, head, chain, progress) {
            Ok(()) => return Ok(built),
            Err(Halt::Chain(error)) => return Err(error),
            // They hold nothing but what the chain gave just now.
            Err(Halt::Rows(Reason::Root)) => return Err(StateError::Root),
            Err(Halt::Rows(why)) if head.size > MOST_IN_MEMORY => {
                self.abandon();
                return Err(StateError::Unkept { folder: self.folder.path().to_owned(), why });
            }
            Err(Halt::Rows(why)) => {
                tracing::warn!(%why, "the projections cannot be kept on the disk, and are in memory until the next start");
            }
        }
        self.abandon();
        let kept = Kept { store: Store::in_memory(), applied: Applied::nothing(&self.origin) };
        match self.fill(Ok(kept), head, chain, progress) {
            Ok(()) => Ok(built),
            Err(Halt::Chain(error)) => Err(error),
            Err(Halt::Rows(Reason::Root)) => Err(StateError::Root),
            Err(Halt::Rows(why)) => Err(StateError::Unkept { folder: self.folder.path().to_owned(), why }),
        }
    }

    fn fill(
        &mut self,
        kept: Result<Kept, Reason>,
        head: Head,
        chain: &dyn Source,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Halt> {
        let mut kept = kept?;
        if let Some(beginning) = chain.begin().map_err(|error| Halt::Chain(error.into()))? {
            kept.applied.begin(beginning);
        }
        self.kept.insert(kept).apply(head, chain, progress)
    }

    fn abandon(&mut self) {
        if let Some(kept) = self.kept.take() {
            kept.store.abandon();
        }
    }
}

impl Kept {
    /// Applies the entries up to `head`, and holds the root against it.
    fn apply(&mut self, head: Head, chain: &dyn Source, progress: &mut dyn FnMut(Progress)) -> Result<(), Halt> {
        let before = self.applied.tree.size();
        let mut entries = if before < head.size { Some(chain.entries(Seq(before))) } else { None };
        while let Some(entries) = entries.as_mut().filter(|_| self.applied.tree.size() < head.size) {
            self.apply_batch(head, &mut **entries)?;
            progress(Progress { applied: self.applied.tree.size(), of: head.size });
        }
        if self.applied.head() != head {
            return Err(Reason::Root.into());
        }
        if before < head.size {
            self.store.flush()?;
        }
        Ok(())
    }

    fn apply_batch(
        &mut self,
        head: Head,
        entries: &mut dyn Iterator<Item = Result<Stored, ReadError>>,
    ) -> Result<(), Halt> {
        let begun = self.applied.tree.size();
        let mut draft = Draft::new(&self.store, self.applied.clone());
        for place in begun..head.size.min(begun.saturating_add(BATCH)) {
            let short = || StateError::Short { expected: head.size, found: place };
            let stored = entries.next().ok_or_else(|| Halt::Chain(short()))?;
            let stored = stored.map_err(|error| Halt::Chain(error.into()))?;
            if stored.entry.seq != Seq(place) {
                return Err(Halt::Chain(short()));
            }
            draft.apply(&stored)?;
        }
        let (writes, applied) = draft.finish()?;
        self.store.write(writes)?;
        self.applied = applied;
        Ok(())
    }
}
