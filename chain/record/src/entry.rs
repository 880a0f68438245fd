//! An entry: the public, hashed form of a record in its place.

use ephor_base::{Digest, Seq, Timestamp, cbor};
use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::fact::{Fact, Subject};

/// The version that entries are written in. Both it and version 1 are read; they differ in what the sealed content is bound
/// to, as `docs/chain-format.md` says. Within a log it never goes back.
pub const ENTRY_VERSION: u16 = 2;

/// The most bytes an encoded entry may have, as in C2SP tlog-tiles entry bundles.
pub const MAX_ENTRY_BYTES: usize = u16::MAX as usize;

/// One leaf of the log. Its canonical CBOR is what RFC 6962 hashes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
#[cbor(map)]
pub struct Entry {
    /// [`ENTRY_VERSION`], or an earlier one.
    #[n(0)]
    pub version: u16,
    /// Its place, from 0.
    #[n(1)]
    pub seq: Seq,
    /// The wall clock when it was sequenced; never before the entry ahead of it.
    #[n(2)]
    pub time: Timestamp,
    /// What it concerns.
    #[n(3)]
    pub subject: Subject,
    /// What happened.
    #[n(4)]
    pub fact: Fact,
    /// What commits to the private content.
    #[n(5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Commitment>,
}

/// What the public log says of private content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Commitment {
    /// SHA-256 of a 16-byte random salt and the content. The salt is sealed with the content, so that after erasure
    /// no reader can guess at it.
    #[n(0)]
    pub content: Digest,
    /// SHA-256 of the sealed bytes, so that anyone can see that they are whole.
    #[n(1)]
    pub sealed: Digest,
    /// The length of the sealed bytes.
    #[n(2)]
    pub length: u32,
}

/// An entry would have more than [`MAX_ENTRY_BYTES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the entry has {bytes} bytes, and {MAX_ENTRY_BYTES} are the most")]
pub struct EntryTooLarge {
    /// How many it would have.
    pub bytes: usize,
}

/// An entry with its canonical bytes, of which there are no more than an entry may have. Nothing else gets a place in a batch.
#[derive(Debug)]
pub struct Encoded {
    entry: Entry,
    bytes: Vec<u8>,
    length: u16,
}

impl Encoded {
    /// Encodes an entry.
    ///
    /// # Errors
    /// [`EntryTooLarge`] if it could not be read back.
    pub fn new(entry: Entry) -> Result<Self, EntryTooLarge> {
        let bytes = entry.to_bytes();
        let length = u16::try_from(bytes.len()).map_err(|_| EntryTooLarge { bytes: bytes.len() })?;
        Ok(Self { entry, bytes, length })
    }

    /// The entry.
    #[must_use]
    pub const fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Its canonical bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The hash of its leaf.
    #[must_use]
    pub fn leaf(&self) -> Digest {
        ephor_tlog::tree::leaf_hash(&self.bytes)
    }

    /// As a bundle and a frame have it ahead of the bytes.
    #[must_use]
    pub const fn length(&self) -> u16 {
        self.length
    }
}

/// The length of the sealed content of an entry, 0 if it has none, without reading the rest of it. Nothing if these bytes
/// are no entry.
#[must_use]
pub fn sealed_length(bytes: &[u8]) -> Option<u32> {
    let mut decoder = minicbor::Decoder::new(bytes);
    for _ in 0..decoder.map().ok()?? {
        match decoder.u32().ok()? {
            5 => return Some(decoder.decode::<Commitment>().ok()?.length),
            _ => decoder.skip().ok()?,
        }
    }
    Some(0)
}

impl Entry {
    /// The canonical bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        cbor::to_vec(self)
    }
}
