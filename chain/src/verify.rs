//! The verifier: needs nothing but the files and the public keys.
//!
//! It holds every entry, hash, checkpoint and both signatures of each checkpoint against the rules, one batch in memory
//! at a time. A broken end that was never published is no finding: a crash leaves one, and the next boot reports it. Only
//! with a pinned head (or a checkpoint kept elsewhere) can it notice a log that was cut back together with its published
//! checkpoint.

use std::{io, path::Path, sync::Arc};

use ephor_base::files::Files;
use serde::Serialize;

use crate::{
    checkpoint::Head,
    damage::{Damage, ScanError},
    head::PinnedHead,
    keys::VerifierKeys,
    marks::Marks,
    scan::Scan,
};

/// What a verifier is given beside the files.
pub struct Against<'a> {
    /// The public keys of the log.
    pub keys: &'a VerifierKeys,
    /// A head known from elsewhere.
    pub head: Option<PinnedHead>,
}

/// How far a verification is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Entries checked.
    pub entries: u64,
    /// Bytes of the journal read.
    pub bytes: u64,
}

/// What was verified.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// The name of the log.
    pub origin: String,
    /// How many entries it has, and their root.
    pub head: Head,
    /// How many checkpoints were checked, each with both signatures.
    pub checkpoints: u64,
    /// The bytes of the journal in use.
    pub bytes: u64,
    /// How many boots it saw.
    pub boots: u64,
    /// Whether the last boot has stopped cleanly.
    pub stopped: bool,
    /// How many intents have no outcome yet.
    pub open_intents: u64,
    /// The bytes of a torn batch at the end; it was never acknowledged.
    pub torn_bytes: u64,
    /// Whether a head known from elsewhere was held against it.
    pub against_head: bool,
}

/// Verifies the chain in `folder`.
///
/// # Errors
/// [`ScanError::Damaged`] names the first thing that is wrong, and where. The other errors say nothing about the chain.
pub fn verify(
    folder: &Path,
    files: &Arc<dyn Files>,
    against: Against<'_>,
    mut progress: impl FnMut(Progress),
) -> Result<Report, ScanError> {
    let Against { keys, head } = against;
    let against_head = head.is_some();
    let mut scan = Scan::open(folder, files)?;
    let mut marks = Marks::new(folder, files, head)?;
    let mut checkpoints: u64 = 0;
    while let Some(batch) = scan.next()? {
        marks.pass(&batch, keys)?;
        batch.checkpoint.check(keys).map_err(|fault| batch.finding(Damage::Signature(fault)))?;
        checkpoints = checkpoints.saturating_add(1);
        progress(Progress { entries: scan.tree.size(), bytes: scan.bytes() });
    }
    let torn_bytes = marks.judge(&scan, keys)?;
    if scan.end().is_none() {
        let source = io::Error::new(io::ErrorKind::NotFound, "there is no journal");
        return Err(ScanError::Io { path: folder.to_owned(), source });
    }
    let (head, rules) = (scan.head(), &scan.rules);
    Ok(Report {
        origin: keys.origin().to_owned(),
        head,
        checkpoints,
        bytes: scan.bytes(),
        boots: rules.boots,
        stopped: rules.stopped,
        open_intents: rules.intents.len() as u64,
        torn_bytes,
        against_head,
    })
}
