//! The proof that an entry is in a log, as a file (C2SP tlog-proof).

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ephor_base::Digest;

use super::MAX_PROOF_HASHES;
use crate::{
    checkpoint::known::{decimal, hash, write_hash},
    note::{MAX_NOTE_BYTES, Note},
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
pub struct NotAProof(pub &'static str);

impl EntryProof {
    /// The first line.
    pub const HEADER: &str = "c2sp.org/tlog-proof@v1";

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
}

/// The text of a proof file, within the bounds of one.
pub fn text_of(bytes: &[u8]) -> Result<&str, NotAProof> {
    if bytes.len() > MAX_PROOF_BYTES {
        return Err(NotAProof("too many bytes"));
    }
    std::str::from_utf8(bytes).map_err(|_| NotAProof("not UTF-8"))
}

/// The hashes of a proof, one a line.
pub fn read_path<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<Digest>, NotAProof> {
    let path = lines.take(MAX_PROOF_HASHES + 1).map(hash).collect::<Option<Vec<_>>>();
    let path = path.ok_or(NotAProof("a line is no hash"))?;
    if path.len() > MAX_PROOF_HASHES { Err(NotAProof("too many hashes")) } else { Ok(path) }
}
