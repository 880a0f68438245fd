//! Proofs that need nothing but themselves and public keys: that an entry is in a log, or that a log has two histories.
//!
//! An [`EntryProof`] is a C2SP tlog-proof. Our leaf is the whole entry, so its canonical CBOR stands in the `extra` line. That
//! line is opaque to the format; here it is authenticated, because the leaf hash is computed from it. [`check`] reads both
//! kinds of file and needs no node, no folder and no network.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ephor_base::{Digest, Seq, cbor};

use crate::{
    checkpoint::Head,
    cosignature::{Cosignature, CosignatureFault, CosignerKey, cosignatures},
    entry::{Entry, MAX_ENTRY_BYTES},
    fork::{self, CheckedFork, ForkFault, ForkProof},
    known::{KnownLog, NoteFault, check_any, decimal, hash, write_hash},
    note::{MAX_NOTE_BYTES, Note},
    proof::{self, MAX_PROOF_HASHES, ProofError},
};

/// The most bytes a proof file has: an entry in base64, the hashes, and a note; or two notes.
pub const MAX_PROOF_BYTES: usize = 2 * MAX_NOTE_BYTES + 8192;

/// The proof that an entry is in a log, as it was read; nothing in it is checked yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryProof {
    /// What is needed beside the proof: for our logs the canonical bytes of the entry.
    pub extra: Option<Vec<u8>>,
    /// The place of the entry.
    pub index: u64,
    /// The proof of inclusion, from the neighbour of the leaf upwards.
    pub path: Vec<Digest>,
    /// The checkpoint, with all its signatures.
    pub checkpoint: Note,
}

/// Bytes that are not a proof file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a proof: {0}")]
pub struct NotAProof(pub(crate) &'static str);

impl EntryProof {
    /// The first line.
    pub(crate) const HEADER: &str = "c2sp.org/tlog-proof@v1";

    /// Reads a C2SP tlog-proof. Only the one form that [`EntryProof::to_bytes`] writes is accepted.
    ///
    /// # Errors
    /// [`NotAProof`] if it is anything else.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotAProof> {
        let text = text_of(bytes)?;
        let (top, checkpoint) = text.split_once("\n\n").ok_or(NotAProof("no empty line before the checkpoint"))?;
        let mut lines = top.split('\n').peekable();
        if lines.next() != Some(Self::HEADER) {
            return Err(NotAProof("it does not begin with the line of a tlog-proof"));
        }
        let extra = lines.next_if(|line| line.starts_with("extra ")).and_then(|line| line.strip_prefix("extra "));
        let extra = extra.map(|extra| BASE64.decode(extra)).transpose().map_err(|_| NotAProof("a bad extra line"))?;
        let index = lines.next().and_then(|line| decimal(line.strip_prefix("index ")?));
        let index = index.ok_or(NotAProof("no index line"))?;
        let path = read_path(lines)?;
        let checkpoint = Note::parse(checkpoint.as_bytes()).map_err(|_| NotAProof("its checkpoint is no note"))?;
        let proof = Self { extra, index, path, checkpoint };
        if proof.to_bytes() == bytes { Ok(proof) } else { Err(NotAProof("not in the one form we write")) }
    }

    /// The bytes of the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{}\n", Self::HEADER);
        if let Some(extra) = &self.extra {
            text.push_str(&format!("extra {}\n", BASE64.encode(extra)));
        }
        text.push_str(&format!("index {}\n", self.index));
        self.path.iter().for_each(|next| write_hash(next, &mut text));
        text.push('\n');
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.checkpoint.to_bytes());
        bytes
    }

    /// Checks it against the logs that the caller knows; says under which head it holds, and what the entry says. `given` are
    /// the bytes of the entry, if the caller has them from elsewhere.
    pub(crate) fn check(&self, given: Option<&[u8]>, logs: &[KnownLog]) -> Result<(Head, Entry), CheckError> {
        let head = check_any(logs.iter(), &self.checkpoint).ok_or(CheckError::UnknownLog)??;
        let leaf = match (&self.extra, given) {
            (None, None) => return Err(CheckError::NoEntry),
            (Some(inside), Some(given)) if inside != given => return Err(CheckError::OtherEntry),
            (Some(inside), _) => inside,
            (None, Some(given)) => given,
        };
        proof::check_inclusion(Entry::leaf(leaf), self.index, &self.path, head)?;
        let entry: Entry = cbor::from_slice(leaf)?;
        let (says, stands) = (entry.seq, Seq(self.index));
        if says == stands { Ok((head, entry)) } else { Err(CheckError::Place { says, stands }) }
    }
}

/// A proof that holds.
#[derive(Clone, PartialEq, Debug)]
pub enum Checked {
    /// The entry is in the log.
    Entry(Box<CheckedEntry>),
    /// The log has two histories: whoever holds its keys has signed both.
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
    #[error(transparent)]
    Fork(#[from] ForkFault),
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
        return Ok(Checked::Fork(proof.check(logs)?));
    }
    let proof = EntryProof::parse(bytes)?;
    check_any(logs.iter(), &proof.checkpoint).ok_or(CheckError::UnknownLog)??;
    let said = cosignatures(&proof.checkpoint, witnesses)?;
    let (head, entry) = proof.check(entry, logs)?;
    let origin = proof.checkpoint.text.lines().next().unwrap_or_default().to_owned();
    Ok(Checked::Entry(Box::new(CheckedEntry { origin, head, seq: entry.seq, entry, witnesses: said })))
}

/// The text of a proof file, within the bounds of one.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, NotAProof> {
    if bytes.len() > MAX_PROOF_BYTES {
        return Err(NotAProof("too many bytes"));
    }
    std::str::from_utf8(bytes).map_err(|_| NotAProof("not UTF-8"))
}

/// The hashes of a proof, one a line.
pub(crate) fn read_path<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<Digest>, NotAProof> {
    let path = lines.take(MAX_PROOF_HASHES + 1).map(hash).collect::<Option<Vec<_>>>();
    let path = path.ok_or(NotAProof("a line is no hash"))?;
    if path.len() > MAX_PROOF_HASHES { Err(NotAProof("too many hashes")) } else { Ok(path) }
}

// The entry in the file is read whole: it must fit beside the note.
const _: () = assert!(MAX_ENTRY_BYTES * 2 < MAX_NOTE_BYTES);
