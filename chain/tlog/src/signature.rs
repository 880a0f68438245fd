//! Public keys by algorithm, and what checks their signatures.

use std::{fmt, sync::Arc};

use serde::Serialize;

/// A signature algorithm of a transparency log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Algorithm {
    /// Ed25519 (RFC 8032).
    Ed25519,
    /// ML-DSA-44 (FIPS 204), in pure mode with an empty context.
    #[serde(rename = "ML-DSA-44")]
    MlDsa44,
    /// ML-DSA-65 (FIPS 204), in pure mode with an empty context.
    #[serde(rename = "ML-DSA-65")]
    MlDsa65,
}

impl Algorithm {
    /// Its name, as FIPS 204 and RFC 8032 write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => "Ed25519",
            Self::MlDsa44 => "ML-DSA-44",
            Self::MlDsa65 => "ML-DSA-65",
        }
    }

    /// Bytes of a public key.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Ed25519 => 32,
            Self::MlDsa44 => 1312,
            Self::MlDsa65 => 1952,
        }
    }

    /// Bytes of a signature.
    #[must_use]
    pub const fn signature_bytes(self) -> usize {
        match self {
            Self::Ed25519 => 64,
            Self::MlDsa44 => 2420,
            Self::MlDsa65 => 3309,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An implementation of signatures.
///
/// For Ed25519 it must keep to the strict rules: no weak key, no second signature for the same message.
pub trait Checks: Send + Sync {
    /// Whether this is one of the key's signatures over the message. False also if the bytes of the key are none of its
    /// algorithm. `signature` has the length of the algorithm.
    fn accepts(&self, key: &PublicKey, message: &[u8], signature: &[u8]) -> bool;
}

/// The bytes of a public key, as many as its algorithm has. Whether they are a key shows when a signature is checked: nothing
/// is ever signed under bytes that are none.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    algorithm: Algorithm,
    bytes: Arc<[u8]>,
}

impl PublicKey {
    /// The key with these bytes, if they are as many as the algorithm has.
    #[must_use]
    pub fn new(algorithm: Algorithm, bytes: &[u8]) -> Option<Self> {
        (bytes.len() == algorithm.key_bytes()).then(|| Self { algorithm, bytes: bytes.into() })
    }

    /// Its algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether this is one of its signatures over the message.
    #[must_use]
    pub fn accepts(&self, message: &[u8], signature: &[u8], checks: &dyn Checks) -> bool {
        signature.len() == self.algorithm.signature_bytes() && checks.accepts(self, message, signature)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.algorithm)
    }
}
