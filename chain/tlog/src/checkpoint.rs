//! Checkpoints (C2SP tlog-checkpoint): how large the log is and what its root is, as a signed note.

use std::path::PathBuf;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ephor_base::Digest;
use serde::Serialize;

use crate::{note::Note, signature::Checks};

pub mod cosignature;
pub mod keys;
pub mod known;

use keys::{SignatureFault, VerifierKeys};

/// The most bytes a checkpoint of ours has: two signature lines of 92 and 4,420 base64 digits, the text, and some room.
pub const MAX_CHECKPOINT_BYTES: usize = 5120;

/// The end of a log at some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Head {
    /// How many entries it has.
    pub size: u64,
    /// The RFC 6962 root over them.
    pub root: Digest,
}

impl Head {
    /// The head of a log without entries.
    pub fn empty() -> Self {
        Self { size: 0, root: Digest::of(&[]) }
    }

    /// The text of the checkpoint of this head.
    pub fn text(&self, origin: &str) -> String {
        format!("{origin}\n{}\n{}\n", self.size, BASE64.encode(self.root.0))
    }
}

/// A checkpoint as it was read; its signatures are not checked yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// The name of the log.
    pub origin: String,
    /// What it says.
    pub head: Head,
    /// The signed note.
    pub note: Note,
}

/// Bytes that are not a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a checkpoint")]
pub struct NotACheckpoint;

impl Checkpoint {
    /// Reads a checkpoint of ours: three lines, in the one form we write.
    ///
    /// # Errors
    /// [`NotACheckpoint`] if it is anything else.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotACheckpoint> {
        let note = Note::parse(bytes).map_err(|_| NotACheckpoint)?;
        let mut lines = note.text.lines();
        let (origin, size, root) = (lines.next(), lines.next(), lines.next());
        let origin = origin.ok_or(NotACheckpoint)?.to_owned();
        let size = size.and_then(|size| size.parse().ok()).ok_or(NotACheckpoint)?;
        let root = root.and_then(|root| BASE64.decode(root).ok()?.try_into().ok()).map(Digest).ok_or(NotACheckpoint)?;
        let head = Head { size, root };
        // Leading zeros, signs and further lines have no place in the one form.
        if head.text(&origin) == note.text { Ok(Self { origin, head, note }) } else { Err(NotACheckpoint) }
    }

    /// Checks both signatures.
    ///
    /// # Errors
    /// [`SignatureFault`] says what is wrong.
    pub fn check(&self, keys: &VerifierKeys, checks: &dyn Checks) -> Result<(), SignatureFault> {
        if self.origin != keys.origin() {
            return Err(SignatureFault::Lines);
        }
        keys.check(&self.note, checks)
    }
}

/// The published checkpoint of a chain folder.
pub fn path(folder: &std::path::Path) -> PathBuf {
    folder.join("checkpoint")
}

/// The folder of the kept checkpoints, below that of the chain.
pub const KEPT: &str = "checkpoints";

/// The kept checkpoint of a size.
pub fn kept_path(folder: &std::path::Path, size: u64) -> PathBuf {
    folder.join(KEPT).join(format!("{size:020}"))
}

/// The size in a name, if it is the name of a kept checkpoint.
pub fn kept_size(name: &std::path::Path) -> Option<u64> {
    let size = name.to_str()?.parse().ok()?;
    (kept_path(std::path::Path::new(""), size).file_name() == name.file_name()).then_some(size)
}
