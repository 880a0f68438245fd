//! Checks signatures, for the log that signs and for the verifier that has nothing else in common with it.
//!
//! The ML-DSA signer of the log is a C library that is no longer maintained; what checks here is another, maintained
//! implementation.

use aws_lc_rs::signature::{ED25519, ML_DSA_44, ML_DSA_65, ParsedPublicKey};
use ephor_tlog::{Algorithm, Checks, PublicKey};

/// The implementations of this machine: ed25519-dalek and aws-lc-rs for Ed25519, aws-lc-rs for ML-DSA.
#[derive(Clone, Copy, Debug)]
pub struct Signatures;

impl Checks for Signatures {
    fn accepts(&self, key: &PublicKey, message: &[u8], signature: &[u8]) -> bool {
        match key.algorithm() {
            Algorithm::Ed25519 => ed25519_holds(key.bytes(), message, signature),
            Algorithm::MlDsa44 => holds(ParsedPublicKey::new(&ML_DSA_44, key.bytes()).ok(), message, signature),
            Algorithm::MlDsa65 => holds(ParsedPublicKey::new(&ML_DSA_65, key.bytes()).ok(), message, signature),
        }
    }
}

/// Both implementations must accept: the strict rules of the one know no weak key and leave no second signature for the same
/// message, and a fault in either is caught by the other.
fn ed25519_holds(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let strict = key.try_into().ok().and_then(|key| ed25519_dalek::VerifyingKey::from_bytes(key).ok());
    let Some(strict) = strict.filter(|key| !key.is_weak()) else { return false };
    let parsed = ed25519_dalek::Signature::from_slice(signature);
    parsed.is_ok_and(|parsed| strict.verify_strict(message, &parsed).is_ok())
        && holds(ParsedPublicKey::new(&ED25519, key).ok(), message, signature)
}

fn holds(key: Option<ParsedPublicKey>, message: &[u8], signature: &[u8]) -> bool {
    key.is_some_and(|key| key.verify_sig(message, signature).is_ok())
}
