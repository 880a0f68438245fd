//! What can be wrong with a chain, and where.

use std::{fmt, io, path::Path, path::PathBuf};

use ephor_base::Seq;
use ephor_tlog::SignatureFault;
use serde::Serialize;

use crate::minimum::Minimum;

/// Something wrong with a chain, and the place. It is a finding, not an error: the chain can be read, and is not whole.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// The file, below the folder of the chain; `head` for the pinned head.
    pub file: PathBuf,
    /// The byte in it where the part that is wrong begins.
    pub offset: u64,
    /// The entry that is wrong, or the first that could not be read.
    pub seq: Option<Seq>,
    /// What is wrong.
    #[serde(serialize_with = "as_text")]
    pub damage: Damage,
}

fn as_text<S: serde::Serializer>(damage: &Damage, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(damage)
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` at byte {}", self.file.display(), self.offset)?;
        if let Some(seq) = self.seq {
            write!(f, " (entry {seq})")?;
        }
        write!(f, ": {}", self.damage)
    }
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Damage {
    /// A file that no version of Ephor writes there.
    #[error("this file does not belong here")]
    UnknownFile,
    /// The first 128 bytes of a segment are not a segment header, or were changed.
    #[error("the header of this segment is damaged")]
    Header,
    /// The segment says that it begins at another entry than its name, or another than comes next.
    #[error(
        "entry {expected} comes next, but this segment begins at entry {found}: a segment is missing or out of place"
    )]
    Gap {
        /// What comes next.
        expected: u64,
        /// What the segment says.
        found: u64,
    },
    /// The segment continues another history.
    #[error("this segment continues another history")]
    Foreign,
    /// The bytes of a batch were changed, or are cut short.
    #[error("this batch was changed or is cut short")]
    Batch,
    /// A whole batch that does not belong here: swapped, repeated, or one before it is gone.
    #[error("entry {expected} comes next, but this batch begins at entry {found}")]
    Order {
        /// What comes next.
        expected: u64,
        /// What the batch says.
        found: u64,
    },
    /// A batch with a right checksum and a wrong layout.
    #[error("this batch is malformed: {0}")]
    Layout(&'static str),
    /// An entry that cannot be read.
    #[error("this entry is malformed: {0}")]
    Entry(String),
    /// An entry that breaks a rule.
    #[error("this entry breaks a rule: {0}")]
    Rule(&'static str),
    /// Sealed content that is not what the entry commits to.
    #[error("the sealed content is not what the entry commits to")]
    Content,
    /// A checkpoint that does not follow from the entries before it.
    #[error("the checkpoint does not follow from the entries")]
    Root,
    /// A wrong signature.
    #[error("the checkpoint does not count: {0}")]
    Signature(SignatureFault),
    /// The log was signed by other keys than those given.
    #[error("this log is under other keys")]
    Keys,
    /// The keys given are named by the log and have signed nothing of it, so they vouch for nothing.
    #[error("no checkpoint is signed by these keys, so nothing shows that the log which names them is theirs")]
    KeysUnused,
    /// What would come next cannot be signed. Found by the process that has to sign.
    #[error("the signing keys are lost, so the log ends here")]
    SigningKeysLost,
    /// The record names another vault key than the one given. Found by the process that has to seal.
    #[error("the vault key is not the one that the record names, so what the sessions said cannot be read any more")]
    VaultKey,
    /// `checkpoint` cannot be read.
    #[error("the published checkpoint is damaged")]
    Published,
    /// `checkpoint` is gone.
    #[error("the published checkpoint is missing")]
    PublishedMissing,
    /// `checkpoint` is not in the journal.
    #[error("the published checkpoint is not one of the journal's")]
    PublishedForeign,
    /// The journal ends before something that was published.
    #[error(
        "the journal ends at entry {found}, but {expected} entries were published: the rest is lost or was cut off"
    )]
    Lost {
        /// How many entries are promised.
        expected: u64,
        /// How many are there.
        found: u64,
    },
    /// The pinned head cannot be read.
    #[error("the pinned head is damaged")]
    Head,
    /// The pinned head is gone.
    #[error("the pinned head is missing")]
    HeadMissing,
    /// The pinned head is of another history.
    #[error("the pinned head is of another history than this journal")]
    HeadForeign,
    /// The journal ends before the pinned head.
    #[error("the journal ends at entry {found}, but the pinned head has {expected} entries: the log was cut back")]
    CutBack {
        /// How many entries the head has.
        expected: u64,
        /// How many are there.
        found: u64,
    },
    /// Bytes after a clean stop.
    #[error("something was written after the clean stop")]
    AfterStop,
    /// A published file is gone.
    #[error("this file is missing")]
    Missing,
    /// A tile that does not hold the hashes of the log.
    #[error("this tile does not hold the hashes of the entries")]
    Tile,
    /// A bundle that does not hold the entries of the log.
    #[error("this bundle was changed or is cut short")]
    Bundle,
    /// A kept checkpoint that is not one of this log.
    #[error("this kept checkpoint is not one of this log")]
    Kept,
    /// A file of contents that holds more or less than the entries commit to.
    #[error("the file does not end where the contents of its entries end")]
    ContentEnd,
    /// The journal does not continue what was published.
    #[error("this snapshot is not of the entries before it")]
    Snapshot,
    /// `minimum` is not what the record says of the last pruning.
    #[error("this is not where the log begins: {0}")]
    Minimum(&'static str),
    /// A pruning on the record that is not what the rules ask for.
    #[error("this pruning is not what the record allows: {0}")]
    Pruning(&'static str),
    /// Keys of the log or of sessions, and no journal.
    #[error("the journal is gone: there are keys of it, or of sessions in it")]
    JournalMissing,
}

/// Why a chain could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The chain is not whole.
    #[error("{0}")]
    Damaged(Finding),
    /// What was asked for lies before the minimum of a pruned log. Says nothing about the chain.
    #[error(
        "entry {entry} was pruned: the log begins at entry {minimum}, and nothing from before that can be read or proven"
    )]
    Pruned {
        /// The entry, or the size of the log, that was asked for.
        entry: u64,
        /// Where the log begins.
        minimum: u64,
    },
    /// The system would not read it. Says nothing about the chain.
    #[error("`{path}` cannot be read: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another version of Ephor wrote it. Nothing was written.
    #[error(transparent)]
    OtherFormat(#[from] OtherFormat),
}

/// A file is in a journal format of another version of Ephor.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{path}` is in journal format {found}, and this version of Ephor has format {known} alone: use the version that wrote it. \
     Nothing was changed"
)]
pub struct OtherFormat {
    /// Which file.
    pub path: PathBuf,
    /// Its format.
    pub found: u32,
    /// The one known here.
    pub known: u32,
}

impl ScanError {
    /// A finding in one of the files beside the segments.
    #[must_use]
    pub fn found(file: &str, offset: u64, seq: Option<u64>, damage: Damage) -> Self {
        Finding { file: PathBuf::from(file), offset, seq: seq.map(Seq), damage }.into()
    }

    /// A file lies there that no version of Ephor writes.
    #[must_use]
    pub fn unknown(file: PathBuf) -> Self {
        Finding { file, offset: 0, seq: None, damage: Damage::UnknownFile }.into()
    }

    /// A finding in the file that says where a pruned log begins.
    #[must_use]
    pub fn minimum(what: &'static str) -> Self {
        Self::found(Minimum::FILE, 0, None, Damage::Minimum(what))
    }

    /// Whether a file that was there a moment ago is gone: of a log that is being written, that is no damage.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// What reading this file said.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

impl From<Finding> for ScanError {
    fn from(finding: Finding) -> Self {
        Self::Damaged(finding)
    }
}
