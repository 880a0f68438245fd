//! Checks a proof in a page: the formats are `ephor-tlog`'s, the signatures RustCrypto's ed25519-dalek and fips204.
//!
//! The page hands over bytes with [`push`], first those of the proof, then those of the keys, and asks [`holds`].

use std::sync::Mutex;

use ed25519_dalek::{Signature, VerifyingKey};
use ephor_tlog::{Algorithm, Checks, EntryProof, KnownLog, PublicKey, VerifierKeys, proof, tree};
use fips204::{
    ml_dsa_65,
    traits::{SerDes as _, Verifier as _},
};

struct InPage;

impl Checks for InPage {
    fn accepts(&self, key: &PublicKey, message: &[u8], signature: &[u8]) -> bool {
        match key.algorithm() {
            Algorithm::Ed25519 => {
                let key = key.bytes().try_into().ok().and_then(|key| VerifyingKey::from_bytes(key).ok());
                let signature = Signature::from_slice(signature).ok();
                key.zip(signature).is_some_and(|(key, signature)| key.verify_strict(message, &signature).is_ok())
            }
            Algorithm::MlDsa65 => {
                let key = key.bytes().try_into().ok().and_then(|key| ml_dsa_65::PublicKey::try_from_bytes(key).ok());
                let signature = signature.try_into().ok();
                key.zip(signature).is_some_and(|(key, signature)| key.verify(message, &signature, &[]))
            }
            // Of witnesses; a page that wants them brings another parameter set.
            Algorithm::MlDsa44 => false,
        }
    }
}

/// What was pushed and not checked yet.
static PUSHED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Takes the next byte in.
// SAFETY: nothing else in the module has this name.
#[unsafe(no_mangle)]
pub extern "C" fn push(byte: u32) {
    let (Ok(byte), Ok(mut pushed)) = (u8::try_from(byte), PUSHED.lock()) else { return };
    pushed.push(byte);
}

/// Whether the proof, so many bytes of what was pushed, with the entry in it, holds under the two public keys behind it, one a line:
/// 1 or 0. What was pushed is gone then.
// SAFETY: nothing else in the module has this name.
#[unsafe(no_mangle)]
pub extern "C" fn holds(proof_bytes: usize) -> i32 {
    let pushed = PUSHED.lock().map(|mut pushed| std::mem::take(&mut *pushed)).unwrap_or_default();
    i32::from(pushed.split_at_checked(proof_bytes).and_then(|(proof, keys)| check(proof, keys)).is_some())
}

fn check(proof: &[u8], keys: &[u8]) -> Option<()> {
    let keys: VerifierKeys = std::str::from_utf8(keys).ok()?.parse().ok()?;
    let proof = EntryProof::parse(proof).ok()?;
    let head = KnownLog::of(&keys).ok()?.check(&proof.checkpoint, &InPage).ok()?;
    let leaf = tree::leaf_hash(proof.extra.as_deref()?);
    proof::check_inclusion(leaf, proof.index, &proof.path, head).ok()
}
