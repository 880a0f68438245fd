//! Why something could not be recorded, or a chain not opened.

use std::{io, path::PathBuf, sync::Arc};

use ephor_base::{SessionId, Timestamp};
use ephor_record::{
    Finding, OtherFormat,
    entry::{EntryTooLarge, MAX_ENTRY_BYTES},
};
use ephor_tlog::SignatureFault;

use crate::vault::VaultError;

/// A record was not taken, or is not known to be on the disk.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The record does not fit what was recorded before it. The caller's bug. Nothing was recorded.
    #[error("the record was not taken: {0}")]
    Misplaced(&'static str),
    /// What it was made from has changed since. Nothing was recorded; the caller makes it again.
    #[error("the record was not taken: something else was recorded before it")]
    Overtaken,
    /// It has content and no session under whose key it could be sealed. The caller's bug. Nothing was recorded.
    #[error("the record was not taken: it has private content and no session")]
    NoSession,
    /// It has content of a session that was erased. The caller's fault. Nothing was recorded.
    #[error("the record was not taken: session {session} was erased")]
    Erased {
        /// Which session.
        session: SessionId,
    },
    /// It is too large. The caller's fault. Nothing was recorded.
    #[error("the record was not taken: it has {bytes} bytes, and {most} are the most")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The key of its session cannot be used. The store's fault. Nothing was recorded; other sessions go on.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The disk is full. The store's fault. Nothing was recorded; the log goes on, and intents that were recorded can
    /// still be settled.
    #[error(
        "the record was not taken: the disk is full, free at least {needed} bytes (`ephor chain prune` takes away what is old \
         enough)"
    )]
    Full {
        /// How many bytes were asked of the disk.
        needed: u64,
    },
    /// The chain and its vault have all the bytes that the operator gave them. Nothing was recorded; what was begun before
    /// can still be ended and recorded.
    #[error(
        "nothing new is recorded: the chain and the vault in `{home}` would have {used} bytes, and their quota is {quota}; \
         `ephor chain prune` takes away what is old enough; or raise `quota` under `[chain]` in `{home}/ephor.toml`, or move the \
         home to a larger disk; then start the node again"
    )]
    Quota {
        /// The folder they lie in.
        home: PathBuf,
        /// The bytes in use, promised and asked for.
        used: u64,
        /// The most.
        quota: u64,
    },
    /// The chain cannot be published, and as much as may waits for it. The store's fault. Nothing was recorded; what ends something
    /// still is.
    #[error("the record was not taken: {waiting} bytes wait to be published, and that fails ({why}); see to the disk")]
    Backlog {
        /// How many bytes wait.
        waiting: u64,
        /// Why publishing fails.
        why: String,
    },
    /// The log is being closed. The caller came too late. Nothing was recorded.
    #[error("the record was not taken: the log is closed")]
    Closed,
    /// Everything is on the disk, and could not be published. The store's fault. The log goes on, and the next round tries
    /// again.
    #[error("the chain could not be published: {0}")]
    Unpublished(io::Error),
    /// The log has stopped, for this reason. Whether the record is on the disk shows when the node starts again.
    #[error(transparent)]
    Failed(#[from] Arc<Failure>),
}

impl From<EntryTooLarge> for AppendError {
    fn from(EntryTooLarge { bytes }: EntryTooLarge) -> Self {
        Self::TooLarge { bytes, most: MAX_ENTRY_BYTES }
    }
}

/// Why a log stopped for good. It takes nothing more until the node starts again.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The system would not do it. The store's fault. What was acknowledged before is on the disk.
    #[error("the chain has stopped: {doing} failed ({source}); see to the disk, then start the node again")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A signature made here was refused by the second implementation. A bug in one of the two libraries, or a broken
    /// machine. Nothing with that signature was written.
    #[error("the chain has stopped: a checkpoint it signed does not verify ({0}); do not trust this machine's signer")]
    Signature(SignatureFault),
    /// A bug of ours. What was acknowledged before is on the disk.
    #[error("the chain has stopped: a bug in its writer; start the node again and report it")]
    Bug,
}

/// A chain was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It is not whole. Nothing was written. An operator must look at it, and may accept the loss.
    #[error(
        "the chain is quarantined: {finding}. Nothing was written and no agent runs. Restore a copy of the home, or \
         accept the loss with `ephor chain accept`"
    )]
    Quarantined {
        /// What is wrong.
        finding: Finding,
    },
    /// Another version of Ephor wrote it. Nothing was written.
    #[error(transparent)]
    OtherFormat(#[from] OtherFormat),
    /// The clock of the machine cannot be right: no record rests for so long, and none could be put right that believed it.
    /// Nothing was written.
    #[error(
        "the clock of this machine says `{now}`{}, and the time of a record moves on by ten years at most: set the clock \
         (`timedatectl`, or `date -s`), then start the node again. Nothing was changed",
        .last.map(|last| format!(" and the record ends at `{last}`")).unwrap_or_default()
    )]
    Clock {
        /// What the clock says.
        now: Timestamp,
        /// The time of the last entry.
        last: Option<Timestamp>,
    },
    /// The record names another vault key than the one given. Nothing was written.
    #[error(
        "the vault key `keys/vault` is not the one that the record of this home names. Nothing was written and no agent runs. \
         Put back the home's own; if that is lost, accept the loss with `ephor chain accept`"
    )]
    OtherVault,
    /// It was being restored from a copy, and that was not finished. Nothing was written.
    #[error("the home `{home}` was being restored from a copy, and that was not finished: run `ephor restore` again")]
    Restoring {
        /// Which home.
        home: PathBuf,
    },
    /// The system would not read or write it. The store's fault. What was acknowledged before is on the disk.
    #[error("the chain cannot be opened: {doing} failed ({source})")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// The disk is full. What was acknowledged before is on the disk.
    #[error("the chain cannot be opened: the disk is full, free at least {needed} bytes")]
    Full {
        /// How many bytes were asked of the disk.
        needed: u64,
    },
    /// The first batch could not be written.
    #[error(transparent)]
    Failed(#[from] AppendError),
}
