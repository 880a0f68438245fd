//! Segments: the files of the journal.
//!
//! A segment is named by the sequence of its first entry, in twenty digits. It begins with a header of 128 bytes; frames
//! follow without gaps; zeros may follow those, where disk is reserved. All numbers are big-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `EphorLog` |
//! | 4 | format version |
//! | 4 | zero |
//! | 8 | sequence of the first entry |
//! | 8 | zero |
//! | 32 | SHA-256 of the origin line |
//! | 32 | root over all entries before this segment |
//! | 32 | SHA-256 of the 96 bytes before it |
//!
//! Magic, version and digest stay where they are in every version, so that a changed byte is never taken for a newer
//! version. There is one format; what another one wrote is refused by its number.

use std::path::{Path, PathBuf};

use ephor_base::Digest;
use ephor_tlog::Head;

/// Begins each segment.
pub(crate) const MAGIC: [u8; 8] = *b"EphorLog";
/// The format that is written and read here.
pub const FORMAT_VERSION: u32 = 2;
/// Bytes of the header.
pub(crate) const HEADER: usize = 128;

/// What a segment says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    /// The SHA-256 of the origin line.
    pub(crate) origin: Digest,
    /// The log before it: its size is the sequence of the first entry here.
    pub(crate) before: Head,
}

/// Why a header cannot be used.
pub(crate) enum BadHeader {
    Damaged,
    /// It is of another format.
    Other(u32),
}

impl SegmentHeader {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT_VERSION.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.before.size.to_be_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&self.origin.0);
        bytes.extend_from_slice(&self.before.root.0);
        let digest = Digest::of(&bytes);
        bytes.extend_from_slice(&digest.0);
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BadHeader> {
        let version = Self::version(bytes).ok_or(BadHeader::Damaged)?;
        if version != FORMAT_VERSION {
            return Err(BadHeader::Other(version));
        }
        Self::fields(bytes).filter(|header| header.to_bytes() == bytes).ok_or(BadHeader::Damaged)
    }

    fn version(bytes: &[u8]) -> Option<u32> {
        let (content, digest) = bytes.split_last_chunk::<32>()?;
        let (version, _) = content.strip_prefix(&MAGIC)?.split_first_chunk::<4>()?;
        (Digest::of(content).0 == *digest).then_some(u32::from_be_bytes(*version))
    }

    fn fields(bytes: &[u8]) -> Option<Self> {
        let size = u64::from_be_bytes(bytes.get(16..24)?.try_into().ok()?);
        let origin = Digest(bytes.get(32..64)?.try_into().ok()?);
        let root = Digest(bytes.get(64..96)?.try_into().ok()?);
        Some(Self { origin, before: Head { size, root } })
    }
}

/// The folder of the segments.
pub(crate) fn folder(chain: &Path) -> PathBuf {
    chain.join("journal")
}

/// The name of the segment that begins at `first`.
pub(crate) fn name(first: u64) -> PathBuf {
    PathBuf::from(format!("{first:020}.seg"))
}

/// The first sequence in a name, if it is the name of a segment.
pub(crate) fn first_of(name_found: &Path) -> Option<u64> {
    let first = name_found.to_str()?.strip_suffix(".seg")?.parse().ok()?;
    (name(first) == name_found).then_some(first)
}

/// The name under which the next segment is prepared. A crash can leave it behind; it never counts.
pub(crate) const DRAFT: &str = "next.tmp";
