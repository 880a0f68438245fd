//! The body of a request to add a checkpoint.

use ephor_base::Digest;
use ephor_tlog::{
    Head, Note,
    checkpoint::known::{decimal, hash, read_text, write_hash},
    note::MAX_NOTE_BYTES,
};

/// The most lines of a proof of consistency, as tlog-witness has it.
pub(crate) const MAX_LINES: usize = 63;

/// The most bytes of a request: an old size, 63 hashes, and a note.
pub const MAX_REQUEST_BYTES: usize = MAX_NOTE_BYTES + 4096;

/// What is asked of a witness.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The size that the witness is thought to have seen last.
    pub(crate) old: u64,
    /// The proof of consistency from there.
    pub(crate) path: Vec<Digest>,
    pub(crate) note: Note,
    pub(crate) origin: String,
    pub(crate) head: Head,
}

impl Request {
    /// Reads a request in its one form, or says what is wrong.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, &'static str> {
        if body.len() > MAX_REQUEST_BYTES {
            return Err("too many bytes");
        }
        let text = std::str::from_utf8(body).map_err(|_| "not UTF-8")?;
        let (top, note) = text.split_once("\n\n").ok_or("no empty line before the checkpoint")?;
        let mut lines = top.split('\n');
        let old =
            lines.next().and_then(|line| decimal(line.strip_prefix("old ")?)).ok_or("no line with the old size")?;
        let path = lines.take(MAX_LINES + 1).map(hash).collect::<Option<Vec<_>>>().ok_or("a line is no hash")?;
        if path.len() > MAX_LINES {
            return Err("too many lines in the proof");
        }
        let note = Note::parse(note.as_bytes()).map_err(|_| "the checkpoint is no signed note")?;
        let (origin, head, _) = read_text(&note.text).ok_or("the note is no checkpoint")?;
        let origin = origin.to_owned();
        Ok(Self { old, path, note, origin, head })
    }
}

/// The bytes of a request.
pub(crate) fn write(old: u64, path: &[Digest], note: &Note) -> Vec<u8> {
    let mut text = format!("old {old}\n");
    path.iter().for_each(|next| write_hash(next, &mut text));
    text.push('\n');
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(&note.to_bytes());
    bytes
}
