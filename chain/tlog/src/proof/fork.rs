//! The proof that a log has two histories: two of its checkpoints that no one log can have.
//!
//! The file is text, in the manner of C2SP tlog-proof:
//!
//! ```text
//! ephor/fork-proof@v1
//! prefix <base64 of a root>        only if the sizes differ
//! <base64 of a hash>               zero or more lines, only if the sizes differ
//!
//! <the checkpoint of the smaller size, or of the smaller root if the sizes are equal>
//! <the other checkpoint>
//! ```
//!
//! Both checkpoints are whole signed notes of one origin. If they have the same size, their roots differ, and that is all. If
//! not, the lines are a proof of consistency (RFC 6962, section 2.1.2) from the root `prefix`, at the size of the smaller one,
//! to the larger one. It shows which root the larger log had at that size, and it is not the one that was signed.
//!
//! An honest log cannot be framed. It signs one root for each size, so two of the same size agree. And a proof of consistency
//! leads to the root of its log from the root of its own past alone: another `prefix` that leads there is a collision of
//! SHA-256. Sizes of 0 prove nothing and are refused.

use ephor_base::Digest;

use super::{
    check_consistency,
    file::{NotAProof, read_path, text_of},
};
use crate::{
    checkpoint::{
        Head,
        known::{KnownLog, NoteFault, check_any, hash, read_text, write_hash},
    },
    note::Note,
    signature::Checks,
};

const HEADER: &str = "ephor/fork-proof@v1";

/// Two checkpoints that contradict one another, as they were read; nothing is checked yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForkProof {
    smaller: Note,
    larger: Note,
    past: Option<Past>,
}

/// What the larger log was at the size of the smaller one.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Past {
    prefix: Digest,
    path: Vec<Digest>,
}

/// A log that has two histories.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedFork {
    /// The name of the log.
    pub origin: String,
    /// The head of the smaller size, or of the smaller root.
    pub smaller: Head,
    /// The head that contradicts it.
    pub larger: Head,
    /// The root that the larger log has at the size of the smaller; its own root if the sizes are equal.
    pub prefix: Digest,
}

/// Two checkpoints do not contradict one another, or it is not shown. The log may be honest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ForkFault {
    /// The caller knows no log of this name.
    #[error("no key was given for the log that the proof names")]
    UnknownLog,
    /// A checkpoint is not one that the log signed with all its keys.
    #[error("the checkpoint does not hold: {0}")]
    Checkpoint(#[from] NoteFault),
    /// They are of different logs.
    #[error("the two checkpoints are of different logs")]
    Origins,
    /// A log without entries has no history.
    #[error("a checkpoint of a log without entries contradicts nothing")]
    Empty,
    /// They say the same, or the larger log has the root of the smaller one in its past.
    #[error("the two checkpoints agree")]
    Agree,
    /// The hashes do not lead to the root of the larger log.
    #[error("the past of the larger log is not proven")]
    Past,
}

impl ForkProof {
    /// Two checkpoints of the same size with different roots. Their order does not matter.
    #[must_use]
    pub fn same_size(one: Note, other: Note) -> Self {
        let root = |note: &Note| read_text(&note.text).map(|(_, head, _)| head.root);
        let (smaller, larger) = if root(&one) <= root(&other) { (one, other) } else { (other, one) };
        Self { smaller, larger, past: None }
    }

    /// A smaller and a larger checkpoint, the root `prefix` that the larger log had at the size of the smaller one, and the
    /// proof of consistency from there.
    #[must_use]
    pub const fn of_past(smaller: Note, larger: Note, prefix: Digest, path: Vec<Digest>) -> Self {
        Self { smaller, larger, past: Some(Past { prefix, path }) }
    }

    /// Reads a proof. Only the one form that [`ForkProof::to_bytes`] writes is accepted.
    ///
    /// # Errors
    /// [`NotAProof`] if the bytes are anything else.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotAProof> {
        let text = text_of(bytes)?;
        let mut parts = text.splitn(4, "\n\n");
        let mut part = || parts.next().ok_or(NotAProof("it does not hold two checkpoints"));
        let (top, first, middle, last) = (part()?, part()?, part()?, part()?);
        // Between the empty lines stand the signatures of the first checkpoint, then the text of the second.
        let signed = middle.split_inclusive('\n').take_while(|line| line.starts_with("— ")).map(str::len).sum();
        let (signatures, second) =
            middle.split_at_checked(signed).ok_or(NotAProof("it does not hold two checkpoints"))?;
        let note = |whole: String| Note::parse(whole.as_bytes()).map_err(|_| NotAProof("a checkpoint is no note"));
        let (smaller, larger) = (note(format!("{first}\n\n{signatures}"))?, note(format!("{second}\n\n{last}"))?);
        let mut lines = top.split('\n').skip(1).peekable();
        let past = match lines.next() {
            None => None,
            Some(line) => {
                let prefix = line.strip_prefix("prefix ").and_then(hash).ok_or(NotAProof("no prefix line"))?;
                Some(Past { prefix, path: read_path(lines)? })
            }
        };
        let proof = Self { smaller, larger, past };
        if proof.to_bytes() == bytes { Ok(proof) } else { Err(NotAProof("not in the one form we write")) }
    }

    /// The bytes of the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{HEADER}\n");
        if let Some(Past { prefix, path }) = &self.past {
            text.push_str("prefix ");
            write_hash(prefix, &mut text);
            path.iter().for_each(|next| write_hash(next, &mut text));
        }
        [text.as_bytes(), b"\n", &self.smaller.to_bytes(), &self.larger.to_bytes()].concat()
    }

    /// Checks that one of the known logs signed both checkpoints, and that they contradict one another.
    ///
    /// # Errors
    /// [`ForkFault`] if a checkpoint is not the log's, or if no contradiction is shown.
    pub fn check(&self, logs: &[KnownLog], checks: &dyn Checks) -> Result<CheckedFork, ForkFault> {
        let origin = |note: &Note| note.text.lines().next().unwrap_or_default().to_owned();
        let signed = |note: &Note| -> Result<Head, ForkFault> {
            Ok(check_any(logs.iter(), note, checks).ok_or(ForkFault::UnknownLog)??)
        };
        let (smaller, larger) = (signed(&self.smaller)?, signed(&self.larger)?);
        if origin(&self.smaller) != origin(&self.larger) {
            return Err(ForkFault::Origins);
        }
        let prefix = self.past_root(smaller, larger)?;
        Ok(CheckedFork { origin: origin(&self.smaller), smaller, larger, prefix })
    }

    /// The root the larger log has at the size of the smaller one, if it is not that of the smaller one.
    fn past_root(&self, smaller: Head, larger: Head) -> Result<Digest, ForkFault> {
        if smaller.size == 0 || larger.size == 0 {
            return Err(ForkFault::Empty);
        }
        let prefix = match &self.past {
            None if smaller.size != larger.size => return Err(ForkFault::Past),
            None if smaller.root > larger.root => return Err(ForkFault::Past),
            None => larger.root,
            Some(_) if smaller.size >= larger.size => return Err(ForkFault::Past),
            Some(Past { prefix, path }) => {
                let past = Head { size: smaller.size, root: *prefix };
                check_consistency(past, larger, path).map_err(|_| ForkFault::Past)?;
                *prefix
            }
        };
        if prefix == smaller.root { Err(ForkFault::Agree) } else { Ok(prefix) }
    }
}

/// Whether the file says of itself that it is a fork proof.
pub fn is_one(bytes: &[u8]) -> bool {
    bytes.strip_prefix(HEADER.as_bytes()).is_some_and(|rest| rest.starts_with(b"\n"))
}
