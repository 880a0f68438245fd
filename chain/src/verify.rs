//! The verifier: needs nothing but the files and the public keys.
//!
//! It holds every entry, hash, tile, sealed content and checkpoint, and both signatures of each checkpoint, against the rules,
//! one bundle or batch in memory at a time: first what is published, then the journal. A broken end that was never published is no finding: a crash leaves one, and the next boot reports it. Only
//! with a pinned head (or a checkpoint kept elsewhere) can it notice a log that was cut back together with its published
//! checkpoint.

use std::{io, path::Path, sync::Arc};

use ephor_base::files::Files;
use ephor_record::{Damage, Minimum, ScanError};
use ephor_signatures::Signatures;
use ephor_tlog::{Checkpoint, Head, VerifierKeys};
use ephor_verify::Folder;
use ephor_verify::Sealed;
use ephor_verify::TileSource;
use ephor_verify::source;
use ephor_verify::{
    history::{self, History},
    strays,
};
use serde::Serialize;

use crate::{
    head::PinnedHead,
    marks::{self, Marks},
    scan::{self, Scan},
};

/// What a verifier is given beside the files.
pub struct Against<'a> {
    /// The public keys of the log.
    pub keys: &'a VerifierKeys,
    /// A head known from elsewhere.
    pub head: Option<PinnedHead>,
    /// The folder of the vault, if the published sealed contents are to be checked as well.
    pub vault: Option<&'a Path>,
    /// A checkpoint up to which the log was verified before. What lies before it is not read again, and until the next
    /// snapshot behind it entries are not held against the rules, but for changes of keys. Any keys of the log may have
    /// signed it that the given ones vouch for, or that are vouched for by what the given ones have signed since.
    pub from: Option<&'a Checkpoint>,
}

/// How far a verification is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Entries checked.
    pub entries: u64,
    /// How many entries there are at least.
    pub total: u64,
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
    /// The first entry that was checked; the minimum unless something was known before.
    pub since: u64,
    /// Where the log begins; 0 unless it was pruned.
    pub minimum: u64,
    /// How many entries are published.
    pub published: u64,
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

/// Of a log that is being written, more is published and segments go while it is read. Then the rest is read again.
const TRIES: u32 = 100;

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
    let sealed = against.vault.map(|vault| Sealed { vault, files: &**files });
    let source = Folder::source(folder, files);
    let begin = || History::new(&source, against.keys, sealed);
    let mut history = begin();
    let mut tries = 0;
    loop {
        match attempt(folder, files, &against, &mut history, &mut progress) {
            Ok(Some(report)) => return Ok(report),
            // What was to be read was pruned meanwhile.
            Err(_) if tries < TRIES && moved_on(&*source, &history) => {
                history = begin();
                tries = tries.saturating_add(1);
            }
            Err(error) if !error.is_gone() => return Err(explain(folder, files, against.keys, error)),
            Err(error) if tries >= TRIES => return Err(error),
            _ => tries = tries.saturating_add(1),
        }
    }
}

/// Whether the log begins behind where it did when this verification began.
fn moved_on(source: &dyn TileSource, history: &History<'_>) -> bool {
    source::first(source).is_ok_and(|minimum| minimum > history.minimum)
}

/// The journal, read to its end.
fn whole_journal(folder: &Path, files: &Arc<dyn Files>) -> Result<Scan, ScanError> {
    let mut scan = Scan::open(folder, files)?;
    while scan.next()?.is_some() {}
    Ok(scan)
}

/// Where the journal has the log begin.
pub(crate) fn recorded_minimum(folder: &Path, files: &Arc<dyn Files>) -> Result<Option<Minimum>, ScanError> {
    Ok(whole_journal(folder, files)?.rules.pruned())
}

/// A tile may be missing because the checkpoint that wants it was forged, or the minimum set back. Then that is what is wrong.
fn explain(folder: &Path, files: &Arc<dyn Files>, keys: &VerifierKeys, error: ScanError) -> ScanError {
    let ScanError::Damaged(finding) = &error else { return error };
    let Some(seq) = finding.seq.filter(|_| finding.damage == Damage::Missing) else { return error };
    let Ok(scan) = whole_journal(folder, files) else { return error };
    if let Err(forged) = marks::check_published(folder, files, &scan, keys) {
        return forged;
    }
    if scan.rules.pruned().is_some_and(|recorded| seq.0 < recorded.index) {
        return ScanError::minimum("it was set back: the record says that more was pruned, and that is gone");
    }
    error
}

/// Verifies what is not verified yet. Gives nothing if more was published meanwhile than it knew of.
fn attempt(
    folder: &Path,
    files: &Arc<dyn Files>,
    against: &Against<'_>,
    history: &mut History<'_>,
    progress: &mut impl FnMut(Progress),
) -> Result<Option<Report>, ScanError> {
    let (keys, source) = (against.keys, Folder::source(folder, files));
    let kept = history::kept_sizes(&*source)?;
    let minimum = source::minimum(&*source)?;
    let mut marks = Marks::new(folder, files, against.head.clone())?;
    let total = marks.promised();
    scan::check_format(folder, &**files)?;
    if let Some(published) = marks.checkpoint() {
        history.expect(kept);
        history.start(against.from, minimum, published)?;
        history.run(published, |entries| progress(Progress { entries, total, bytes: 0 }))?;
    } else if let Some(size) = kept.front() {
        return Err(ScanError::found("checkpoint", 0, Some(*size), Damage::PublishedMissing));
    }
    let mut scan = Scan::open(folder, files)?;
    if scan.start.size > history.size() {
        return Ok(None);
    }
    if scan.start.size == history.size() {
        scan.rules = history.rules.clone();
    }
    history.check_changes(scan.start.size)?;
    marks.begin(&scan, keys)?;
    let checkpoints = read_journal(&mut scan, &mut marks, against, history, |scan, size| {
        let entries = scan.tree.size().max(size);
        progress(Progress { entries, total: total.max(entries), bytes: scan.bytes() });
    })?;
    Minimum::check(minimum, scan.rules.pruned())?;
    let torn_bytes = marks.judge(&scan, keys)?;
    if scan.end().is_none() {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "there is no journal");
        return Err(ScanError::Io { path: folder.to_owned(), source });
    }
    strays::check_tiles(&source, history.size(), minimum.map_or(0, |minimum| minimum.index))?;
    if let Some(vault) = against.vault {
        strays::check_contents(vault, &**files)?;
    }
    // What other keys signed counts because the given ones signed a root with the change to those, or over it.
    if !history.vouched && scan.head().size > 0 {
        let named = scan.rules.keys().is_some_and(|named| **named == *keys);
        return Err(scan.end_finding(if named { Damage::KeysUnused } else { Damage::Keys }).into());
    }
    let checkpoints = checkpoints.saturating_add(history.kept);
    Ok(Some(report(&scan, against, history, checkpoints, torn_bytes)))
}

/// Verifies the journal; says how many checkpoints it has.
fn read_journal(
    scan: &mut Scan,
    marks: &mut Marks,
    against: &Against<'_>,
    history: &mut History<'_>,
    mut progress: impl FnMut(&Scan, u64),
) -> Result<u64, ScanError> {
    let mut checkpoints: u64 = 0;
    // The journal may be read more than once.
    let mut prunings = history.prunings.clone();
    // A published one was held against the tiles.
    let mut met = against.from.is_none_or(|from| from.head.size <= history.size());
    while let Some(batch) = scan.next()? {
        marks.pass(&batch, against.keys)?;
        batch.checkpoint.check(&batch.signers, &Signatures).map_err(|fault| batch.finding(Damage::Signature(fault)))?;
        history.vouched |= *batch.signers == *against.keys;
        if let Some(from) = against.from.filter(|from| from.head.size == batch.checkpoint.head.size) {
            if from.head != batch.checkpoint.head {
                return Err(batch.finding(Damage::Foreign).into());
            }
            history::check_known(from, &batch.signers)?;
            met = true;
        }
        for item in batch.entries.iter().filter(|item| item.entry.seq.0 >= history.size()) {
            prunings.pass(&item.entry).map_err(|damage| batch.finding(damage))?;
        }
        checkpoints = checkpoints.saturating_add(1);
        progress(scan, history.size());
    }
    prunings.check(&history.published())?;
    if let Some(from) = against.from.filter(|_| !met && scan.end().is_some()) {
        let (expected, found) = (from.head.size, scan.tree.size());
        let damage = if expected > found { Damage::CutBack { expected, found } } else { Damage::Foreign };
        return Err(scan.end_finding(damage).into());
    }
    Ok(checkpoints)
}

fn report(scan: &Scan, against: &Against<'_>, history: &History<'_>, checkpoints: u64, torn_bytes: u64) -> Report {
    let rules = &scan.rules;
    Report {
        origin: against.keys.origin().to_owned(),
        head: scan.head(),
        since: history.since.min(scan.head().size),
        minimum: history.minimum,
        published: history.size(),
        checkpoints,
        bytes: scan.bytes(),
        boots: rules.boots(),
        stopped: rules.stopped(),
        open_intents: rules.intents().len() as u64,
        torn_bytes,
        against_head: against.head.is_some(),
    }
}
