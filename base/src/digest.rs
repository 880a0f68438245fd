//! SHA-256, the one digest of the system.

use std::fmt;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// 32 bytes of SHA-256 (FIPS 180-4). Printed and parsed as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Digest(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of several pieces after one another. The caller sees to it that no two inputs concatenate alike.
    #[must_use]
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        parts.iter().for_each(|part| hash.update(part));
        Self(hash.finalize().into())
    }

    /// The first eight hexadecimal digits, for people.
    #[must_use]
    pub fn short(&self) -> String {
        self.0.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// A text that is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a digest is 64 hexadecimal digits")]
pub struct BadDigest;

impl std::str::FromStr for Digest {
    type Err = BadDigest;
    fn from_str(text: &str) -> Result<Self, BadDigest> {
        let mut bytes = [0; 32];
        unhex(text, &mut bytes).ok_or(BadDigest)?;
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

pub(crate) fn unhex(text: &str, into: &mut [u8]) -> Option<()> {
    let text = text.as_bytes();
    if text.len() != into.len().checked_mul(2)? {
        return None;
    }
    for (pair, byte) in text.chunks_exact(2).zip(into) {
        let [high, low] = pair else { return None };
        *byte = (nibble(*high)? << 4) | nibble(*low)?;
    }
    Some(())
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}
