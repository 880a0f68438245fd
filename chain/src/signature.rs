//! Public keys that check signatures over bytes, each with the rules this crate holds them to.

use std::sync::Arc;

use aws_lc_rs::signature::{ED25519, ML_DSA_44, ML_DSA_65, ParsedPublicKey};

/// Bytes of an ML-DSA-44 public key and signature (FIPS 204, table 2).
const ML_DSA_44_BYTES: (usize, usize) = (1312, 2420);
/// Bytes of an ML-DSA-65 public key and signature.
const ML_DSA_65_BYTES: (usize, usize) = (1952, 3309);

/// An Ed25519 public key (RFC 8032). Weak keys, which accept a signature for any text, do not exist as this type.
#[derive(Clone, Debug)]
pub struct Ed25519Public {
    strict: ed25519_dalek::VerifyingKey,
    again: Arc<ParsedPublicKey>,
}

impl Ed25519Public {
    /// The key with these 32 bytes, if they are one and it is not weak.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let strict = ed25519_dalek::VerifyingKey::from_bytes(bytes.try_into().ok()?).ok()?;
        let again = Arc::new(ParsedPublicKey::new(&ED25519, strict.as_bytes()).ok()?);
        (!strict.is_weak()).then_some(Self { strict, again })
    }

    /// Whether this is the key's signature over the message. Two implementations must accept it: the strict rules of the
    /// one leave no second signature for the same text, and a fault in either is caught by the other.
    #[must_use]
    pub fn accepts(&self, message: &[u8], signature: &[u8]) -> bool {
        ed25519_holds(&self.strict, &self.again, message, signature)
    }
}

/// An ML-DSA public key (FIPS 204), for signatures in pure mode with an empty context.
#[derive(Clone, Debug)]
pub struct MlDsaPublic {
    parsed: Arc<ParsedPublicKey>,
    signature: usize,
}

impl MlDsaPublic {
    /// The ML-DSA-44 key with these 1,312 bytes.
    #[must_use]
    pub fn ml_dsa_44(bytes: &[u8]) -> Option<Self> {
        let (public, signature) = ML_DSA_44_BYTES;
        let parsed = (bytes.len() == public).then(|| ParsedPublicKey::new(&ML_DSA_44, bytes).ok()).flatten()?;
        Some(Self { parsed: Arc::new(parsed), signature })
    }

    /// The ML-DSA-65 key with these 1,952 bytes.
    #[must_use]
    pub fn ml_dsa_65(bytes: &[u8]) -> Option<Self> {
        let (public, signature) = ML_DSA_65_BYTES;
        let parsed = (bytes.len() == public).then(|| ParsedPublicKey::new(&ML_DSA_65, bytes).ok()).flatten()?;
        Some(Self { parsed: Arc::new(parsed), signature })
    }

    /// Whether this is one of the key's signatures over the message.
    #[must_use]
    pub fn accepts(&self, message: &[u8], signature: &[u8]) -> bool {
        ml_dsa_holds(&self.parsed, self.signature, message, signature)
    }
}

/// Where every check of an Ed25519 signature ends.
pub(crate) fn ed25519_holds(
    strict: &ed25519_dalek::VerifyingKey,
    again: &ParsedPublicKey,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let parsed = ed25519_dalek::Signature::from_slice(signature);
    parsed.is_ok_and(|parsed| strict.verify_strict(message, &parsed).is_ok())
        && again.verify_sig(message, signature).is_ok()
}

/// Where every check of an ML-DSA signature ends. `length` is that of the algorithm's signatures.
pub(crate) fn ml_dsa_holds(key: &ParsedPublicKey, length: usize, message: &[u8], signature: &[u8]) -> bool {
    signature.len() == length && key.verify_sig(message, signature).is_ok()
}
