//! What a journal is held against: the published checkpoint and the pinned head.
//!
//! # What counts as what
//! - A **broken end** of the last segment is torn if it begins at or beyond both marks, no whole batch follows it, and
//!   the pinned head does not say that the node stopped there. A torn end was never acknowledged; opening cuts it off.
//!   Anything else that is broken is damage.
//! - **Zeros** at the end of a segment are reserved disk. They count as nothing, also after a stop: a crash may come
//!   between a stop and the trimming.
//! - The **published checkpoint** replaces its predecessor atomically, so a damaged one is damage. A missing one is
//!   damage as soon as there is more than the first batch: it is published before the second is written.
//! - The **pinned head** is made before the journal, so it is missing only if it was taken away. A verifier that is
//!   given none checks without it, and then cannot notice a log that was cut back together with its checkpoint.
//! - What lies **before the oldest segment** is published; tiles and checkpoint must agree with the segment on it.
//! - A **missing segment** shows as a gap, at the end as a journal shorter than the marks. A file that the chain does not write
//!   there is a finding too: a segment under another name is a lost segment.
//! - `*.tmp` files of ours are half-made replacements. They never count.

use std::{io, path::Path, sync::Arc};

use ephor_base::files::Files;
use ephor_record::{Damage, Fact, Finding, ScanError};
use ephor_signatures::Signatures;
use ephor_tlog::{Checkpoint, SignatureFault, VerifierKeys};
use ephor_verify::Folder;
use ephor_verify::source;

use crate::{
    head::PinnedHead,
    scan::{Batch, Scan},
};

/// The marks, and how far the journal has met them.
pub(crate) struct Marks {
    published: Option<(Vec<u8>, Checkpoint)>,
    published_met: bool,
    head: Option<PinnedHead>,
    head_met: bool,
    batches: u64,
    /// A batch was seen.
    begun: bool,
    /// The published checkpoint is of the size at which the journal begins, so the first batch says who signed it.
    at_start: bool,
}

impl Marks {
    /// Reads the published checkpoint. The pinned head is what the caller has.
    pub(crate) fn new(chain: &Path, files: &Arc<dyn Files>, head: Option<PinnedHead>) -> Result<Self, ScanError> {
        let published = read_published(chain, files)?;
        let head_met = head.as_ref().is_none_or(|head| head.head.size == 0);
        let published_met = published.is_none();
        Ok(Self { published, published_met, head, head_met, batches: 0, begun: false, at_start: false })
    }

    /// Holds the place where the journal begins against the marks. What lies before it is published.
    pub(crate) fn begin(&mut self, scan: &Scan, keys: &VerifierKeys) -> Result<(), ScanError> {
        let start = scan.start;
        let Some((_, published)) = self.published.as_ref().filter(|_| start.size > 0) else { return Ok(()) };
        self.batches = self.batches.saturating_add(1);
        if published.head.size == start.size {
            if published.head != start {
                return Err(ScanError::found("checkpoint", 0, Some(start.size), Damage::PublishedForeign));
            }
            (self.published_met, self.at_start) = (true, true);
        }
        if let Some(pinned) = self.head.as_ref().filter(|pinned| (1..=start.size).contains(&pinned.head.size)) {
            self.check_head_origin(keys)?;
            if scan.earlier(pinned.head.size)? != pinned.head {
                return Err(ScanError::found("head", 0, Some(pinned.head.size), Damage::HeadForeign));
            }
            self.head_met = true;
        }
        Ok(())
    }

    /// Holds the next batch against the marks.
    pub(crate) fn pass(&mut self, batch: &Batch, keys: &VerifierKeys) -> Result<(), ScanError> {
        self.batches = self.batches.saturating_add(1);
        let head = batch.checkpoint.head;
        if !std::mem::replace(&mut self.begun, true) {
            // With the wrong keys everything is foreign, so that is said first.
            check_origin(batch, keys)?;
            self.check_head_origin(keys)?;
            // A snapshot never stands behind a change of keys, so these signed what lies before it.
            self.check_start(&batch.signers)?;
        }
        if let Some((bytes, published)) = &self.published
            && published.head.size == head.size
        {
            // What is the same, byte for byte, needs no check of its own: the signatures of the journal are checked. Lines of
            // witnesses may stand beside ours.
            let same = || published.head == head && published.check(&batch.signers, &Signatures).is_ok();
            if *bytes != batch.note && !same() {
                return Err(ScanError::found("checkpoint", 0, Some(head.size), Damage::PublishedForeign));
            }
            self.published_met = true;
        }
        if let Some(pinned) = &self.head
            && pinned.head.size == head.size
        {
            if pinned.head.root != head.root {
                return Err(ScanError::found("head", 0, Some(head.size), Damage::HeadForeign));
            }
            self.head_met = true;
        }
        Ok(())
    }

    /// Judges the end of the journal. Returns how many bytes of it are torn.
    pub(crate) fn judge(&self, scan: &Scan, keys: &VerifierKeys) -> Result<u64, ScanError> {
        self.check_head_origin(keys)?;
        if !self.begun {
            self.check_start(keys)?;
        }
        self.judge_published(scan, keys)?;
        self.judge_head(scan)?;
        let Some((broken, bytes)) = scan.broken() else { return Ok(0) };
        let stopped_here = |pinned: &PinnedHead| pinned.stopped && pinned.head.size == scan.tree.size();
        if self.head.as_ref().is_some_and(stopped_here) {
            return Err(Finding { damage: Damage::AfterStop, ..broken.clone() }.into());
        }
        Ok(bytes)
    }

    /// Checks the signatures of a published checkpoint of the size at which the journal begins.
    fn check_start(&self, signers: &VerifierKeys) -> Result<(), ScanError> {
        let Some((_, published)) = self.published.as_ref().filter(|_| self.at_start) else { return Ok(()) };
        published.check(signers, &Signatures).map_err(|fault| forged(published, fault))
    }

    fn check_head_origin(&self, keys: &VerifierKeys) -> Result<(), ScanError> {
        let foreign = self.head.as_ref().is_some_and(|head| head.origin != keys.origin());
        if foreign { Err(ScanError::found("head", 0, None, Damage::HeadForeign)) } else { Ok(()) }
    }

    fn judge_published(&self, scan: &Scan, keys: &VerifierKeys) -> Result<(), ScanError> {
        let (found, Some((_, published))) = (scan.tree.size(), &self.published) else {
            let missing = ScanError::found("checkpoint", 0, None, Damage::PublishedMissing);
            return if self.batches > 1 { Err(missing) } else { Ok(()) };
        };
        if self.published_met {
            return Ok(());
        }
        let expected = published.head.size;
        check_by_any(published, scan, keys).map_err(|fault| forged(published, fault))?;
        Err(if expected > found {
            lost(scan, Damage::Lost { expected, found })
        } else {
            ScanError::found("checkpoint", 0, Some(expected), Damage::PublishedForeign)
        })
    }

    fn judge_head(&self, scan: &Scan) -> Result<(), ScanError> {
        let Some(pinned) = self.head.as_ref().filter(|_| !self.head_met) else { return Ok(()) };
        let (expected, found) = (pinned.head.size, scan.tree.size());
        Err(if expected > found {
            lost(scan, Damage::CutBack { expected, found })
        } else {
            ScanError::found("head", 0, Some(expected), Damage::HeadForeign)
        })
    }

    /// The published checkpoint.
    pub(crate) fn checkpoint(&self) -> Option<&Checkpoint> {
        self.published.as_ref().map(|(_, published)| published)
    }

    /// How many entries there are, as far as the marks say.
    pub(crate) fn promised(&self) -> u64 {
        self.published().max(self.head.as_ref().map_or(0, |pinned| pinned.head.size))
    }

    /// How many entries were published; 0 if there is no checkpoint.
    pub(crate) fn published(&self) -> u64 {
        self.published.as_ref().map_or(0, |(_, published)| published.head.size)
    }
}

/// Something that was promised is not there. A broken batch is the better place to name than the end of what comes
/// before it.
fn lost(scan: &Scan, damage: Damage) -> ScanError {
    scan.broken().map_or_else(|| scan.end_finding(damage), |(broken, _)| broken.clone()).into()
}

/// The pinned head of a home, where it must be there as soon as the journal has an entry.
pub(crate) fn load_head(path: &Path, files: &dyn Files) -> Result<Option<PinnedHead>, ScanError> {
    match PinnedHead::load(path, files) {
        Ok(head) => Ok(head),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(ScanError::found("head", 0, None, Damage::Head))
        }
        Err(source) => Err(ScanError::Io { path: path.to_owned(), source }),
    }
}

pub(crate) fn read_published(chain: &Path, files: &Arc<dyn Files>) -> Result<Option<(Vec<u8>, Checkpoint)>, ScanError> {
    source::checkpoint(&*Folder::source(chain, files))
}

/// Checks the signatures of the published checkpoint, if there is one, with the journal read to its end.
pub(crate) fn check_published(
    chain: &Path,
    files: &Arc<dyn Files>,
    scan: &Scan,
    given: &VerifierKeys,
) -> Result<(), ScanError> {
    let Some((_, published)) = read_published(chain, files)? else { return Ok(()) };
    check_by_any(&published, scan, given).map_err(|fault| forged(&published, fault))
}

/// A published checkpoint whose signatures do not hold.
fn forged(published: &Checkpoint, fault: SignatureFault) -> ScanError {
    ScanError::found("checkpoint", 0, Some(published.head.size), Damage::Signature(fault))
}

/// Checks a checkpoint against the keys of its generation, which is not known where the journal does not reach it: then it
/// is the one in force where the journal ends, or the given one.
fn check_by_any(checkpoint: &Checkpoint, scan: &Scan, given: &VerifierKeys) -> Result<(), SignatureFault> {
    let by_any = scan.rules.signers().is_some_and(|keys| checkpoint.check(keys, &Signatures).is_ok());
    let by_any = by_any || scan.rules.keys().is_some_and(|keys| checkpoint.check(keys, &Signatures).is_ok());
    if by_any { Ok(()) } else { checkpoint.check(given, &Signatures) }
}

/// The first entry says under which keys the log was begun, or which keys are in force. All keys of a log have its name.
fn check_origin(batch: &Batch, keys: &VerifierKeys) -> Result<(), ScanError> {
    let first = batch.entries.first().map(|item| &item.entry);
    let begins = matches!(first.map(|entry| &entry.fact), Some(Fact::Origin { .. }));
    let ours =
        if keys.is_first() && begins { *batch.signers == *keys } else { batch.signers.origin() == keys.origin() };
    if ours && batch.checkpoint.origin == keys.origin() {
        return Ok(());
    }
    let (file, seq) = (batch.file.clone(), first.map(|entry| entry.seq));
    Err(Finding { file, offset: batch.offset, seq, damage: Damage::Keys }.into())
}
