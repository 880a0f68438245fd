//! An entry: the public, hashed form of a record in its place.

use ephor_base::{Digest, Seq, Timestamp, cbor};
use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::record::{Fact, Subject};

/// The version that entries are written in. Both it and version 1 are read; they differ in what the sealed content is bound
/// to, as [`crate::vault`] says. Within a log it never goes back.
pub const ENTRY_VERSION: u16 = 2;

/// The most bytes an encoded entry may have, as in C2SP tlog-tiles entry bundles.
pub const MAX_ENTRY_BYTES: usize = 65_535;

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
    /// Whom it concerns.
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
    /// nobody can guess at it.
    #[n(0)]
    pub content: Digest,
    /// SHA-256 of the sealed bytes, so that anyone can see that they are whole.
    #[n(1)]
    pub sealed: Digest,
    /// The length of the sealed bytes.
    #[n(2)]
    pub length: u32,
}

/// The length of the sealed content of an entry, 0 if it has none, without reading the rest of it. Nothing if these bytes
/// are no entry.
pub(crate) fn sealed_length(bytes: &[u8]) -> Option<u32> {
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

    /// The RFC 6962 leaf hash: SHA-256 of 0x00 and the bytes.
    #[must_use]
    pub fn leaf(bytes: &[u8]) -> Digest {
        Digest::of_parts(&[&[0], bytes])
    }
}
