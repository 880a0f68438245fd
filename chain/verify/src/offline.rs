//! Proofs that need nothing but themselves and public keys: that an entry is in a log, or that a log has two histories.
//!
//! An [`EntryProof`] is a C2SP tlog-proof. Our leaf is the whole entry, so its canonical CBOR stands in the `extra` line. That
//! line is opaque to the format; here it is authenticated, because the leaf hash is computed from it. [`check`] reads both
//! kinds of file and needs no node, no folder and no network.

use ephor_base::{Seq, cbor};
use ephor_record::{Entry, entry::MAX_ENTRY_BYTES};
use ephor_signatures::Signatures;
use ephor_tlog::{
    Cosignature, CosignatureFault, CosignerKey, EntryProof, ForkProof, Head, KnownLog, NoteFault,
    checkpoint::{cosignature::cosignatures, known::check_any},
    note::MAX_NOTE_BYTES,
    proof::{
        self, ProofError,
        file::NotAProof,
        fork::{self, CheckedFork, ForkFault},
    },
};

/// A proof that holds.
#[derive(Clone, PartialEq, Debug)]
pub enum Checked {
    /// The entry is in the log.
    Entry(Box<CheckedEntry>),
    /// The log has two histories: the holder of its keys has signed both.
    Fork(CheckedFork),
}

/// An entry that is in a log.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckedEntry {
    /// The name of the log.
    pub origin: String,
    /// The head it is proven under.
    pub head: Head,
    /// Its place.
    pub seq: Seq,
    /// The entry: time, subject and fact.
    pub entry: Entry,
    /// What known witnesses say of that head. How many are enough is the reader's policy.
    pub witnesses: Vec<Cosignature>,
}

/// A proof does not hold. Nothing of what it says is known to be true. The checks are made in the order of the variants.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The bytes are no proof.
    #[error(transparent)]
    Form(#[from] NotAProof),
    /// The caller knows no log of this name.
    #[error("no key was given for the log that the proof names")]
    UnknownLog,
    /// The checkpoint is not one that the log signed with all its keys.
    #[error("the checkpoint does not hold: {0}")]
    Checkpoint(#[from] NoteFault),
    /// A cosignature of a witness that the caller knows is wrong.
    #[error(transparent)]
    Cosignature(#[from] CosignatureFault),
    /// The entry is neither in the proof nor given beside it.
    #[error("the proof does not hold the entry, and none was given")]
    NoEntry,
    /// Another entry was given than the one in the proof.
    #[error("the proof is for another entry than the one that was given")]
    OtherEntry,
    /// The hashes do not prove that the entry is in its place.
    #[error(transparent)]
    Inclusion(#[from] ProofError),
    /// The log holds these bytes in this place, and they are no entry of a version known here.
    #[error("what is proven is not an entry that this version knows: {0}")]
    Entry(#[from] cbor::NotCanonical),
    /// The log holds this entry in this place, and it says that it stands elsewhere: the log's owner is at fault.
    #[error("the entry says that it is entry `{says}`, and stands as entry `{stands}`")]
    Place {
        /// What the entry says.
        says: Seq,
        /// Where it stands.
        stands: Seq,
    },
    /// The two checkpoints do not contradict one another.
    #[error("{0}")]
    Fork(#[source] ForkFault),
}

impl From<ForkFault> for CheckError {
    fn from(fault: ForkFault) -> Self {
        match fault {
            ForkFault::UnknownLog => Self::UnknownLog,
            ForkFault::Checkpoint(fault) => Self::Checkpoint(fault),
            other => Self::Fork(other),
        }
    }
}

/// Checks a proof file against the logs and witnesses that the caller knows. `entry` are the bytes of the entry, if the caller
/// has them from elsewhere. A log that has changed its keys may be given several times, once with each pair of keys.
///
/// # Errors
/// [`CheckError`] says what does not hold.
pub fn check(
    bytes: &[u8],
    entry: Option<&[u8]>,
    logs: &[KnownLog],
    witnesses: &[CosignerKey],
) -> Result<Checked, CheckError> {
    if fork::is_one(bytes) {
        let proof = ForkProof::parse(bytes)?;
        return Ok(Checked::Fork(proof.check(logs, &Signatures)?));
    }
    let proof = EntryProof::parse(bytes)?;
    check_any(logs.iter(), &proof.checkpoint, &Signatures).ok_or(CheckError::UnknownLog)??;
    let said = cosignatures(&proof.checkpoint, witnesses, &Signatures)?;
    let (head, entry) = check_entry(&proof, entry, logs)?;
    let origin = proof.checkpoint.text.lines().next().unwrap_or_default().to_owned();
    Ok(Checked::Entry(Box::new(CheckedEntry { origin, head, seq: entry.seq, entry, witnesses: said })))
}

/// Checks it against the logs that the caller knows; says under which head it holds, and what the entry says. `given` are
/// the bytes of the entry, if the caller has them from elsewhere.
pub(crate) fn check_entry(
    proof: &EntryProof,
    given: Option<&[u8]>,
    logs: &[KnownLog],
) -> Result<(Head, Entry), CheckError> {
    let head = check_any(logs.iter(), &proof.checkpoint, &Signatures).ok_or(CheckError::UnknownLog)??;
    let leaf = match (&proof.extra, given) {
        (None, None) => return Err(CheckError::NoEntry),
        (Some(inside), Some(given)) if inside != given => return Err(CheckError::OtherEntry),
        (Some(inside), _) => inside,
        (None, Some(given)) => given,
    };
    proof::check_inclusion(ephor_tlog::tree::leaf_hash(leaf), proof.index, &proof.path, head)?;
    let entry: Entry = cbor::from_slice(leaf)?;
    let (says, stands) = (entry.seq, Seq(proof.index));
    if says == stands { Ok((head, entry)) } else { Err(CheckError::Place { says, stands }) }
}

// The entry in the file is read whole: it must fit beside the note.
const _: () = assert!(MAX_ENTRY_BYTES * 2 < MAX_NOTE_BYTES);
