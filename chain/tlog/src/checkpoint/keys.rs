//! The two public keys of a log of Ephor.

use std::str::FromStr;

use ephor_base::Digest;

use crate::{
    note::{self, Note},
    signature::{Algorithm, Checks, PublicKey},
};

/// The type byte of Ed25519 in a note key.
pub(super) const ED25519_TYPE: u8 = 0x01;
/// C2SP gives ML-DSA no type byte. 0xff means that a long identifier follows, which no other project will choose.
pub(super) const OTHER_TYPE: u8 = 0xff;
pub(super) const ML_DSA_65_IDENTIFIER: &[u8] = b"ML-DSA-65 FIPS-204 pure empty-context";

/// What is wrong with the signatures of a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SignatureFault {
    /// A line of one of the two keys is missing.
    #[error("it has no signature lines of this log's two keys")]
    Lines,
    /// The Ed25519 signature is wrong.
    #[error("its Ed25519 signature is wrong")]
    Ed25519,
    /// The ML-DSA-65 signature is wrong.
    #[error("its ML-DSA-65 signature is wrong")]
    MlDsa65,
}

/// The two public keys of a log. Printed as two note verifier keys, one a line, Ed25519 first.
#[derive(Clone)]
pub struct VerifierKeys {
    origin: String,
    ed25519: PublicKey,
    ml_dsa: PublicKey,
    ed25519_id: [u8; 4],
    ml_dsa_id: [u8; 4],
    lines: [String; 2],
}

impl VerifierKeys {
    /// The keys with these bytes, under the name of a log. Nothing if it is no such name or they have other lengths.
    #[must_use]
    pub fn new(origin: &str, ed25519: &[u8], ml_dsa: &[u8]) -> Option<Self> {
        let ed25519 = PublicKey::new(Algorithm::Ed25519, ed25519)?;
        let ml_dsa = PublicKey::new(Algorithm::MlDsa65, ml_dsa).filter(|_| is_origin(origin))?;
        let ed25519_key = [&[ED25519_TYPE], ed25519.bytes()].concat();
        let ml_dsa_key = [&[OTHER_TYPE], ML_DSA_65_IDENTIFIER, ml_dsa.bytes()].concat();
        Some(Self {
            origin: origin.to_owned(),
            ed25519_id: note::key_id(origin, &ed25519_key),
            ml_dsa_id: note::key_id(origin, &ml_dsa_key),
            lines: [note::verifier_key(origin, &ed25519_key), note::verifier_key(origin, &ml_dsa_key)],
            ed25519,
            ml_dsa,
        })
    }

    /// The name of the log: `ephor/` and the first 32 hexadecimal digits of the SHA-256 of the Ed25519 key it began under.
    /// Later keys of the log have the same name.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The Ed25519 key as a note verifier key.
    #[must_use]
    pub fn ed25519(&self) -> &str {
        let [line, _] = &self.lines;
        line
    }

    /// The ML-DSA-65 key as a note verifier key.
    #[must_use]
    pub fn ml_dsa_65(&self) -> &str {
        let [_, line] = &self.lines;
        line
    }

    /// Whether a log begins under these keys: its name is derived from them.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.origin == origin_of(&self.ed25519)
    }

    /// The Ed25519 key itself.
    #[must_use]
    pub const fn ed25519_key(&self) -> &PublicKey {
        &self.ed25519
    }

    /// The ML-DSA-65 key itself.
    #[must_use]
    pub const fn ml_dsa_65_key(&self) -> &PublicKey {
        &self.ml_dsa
    }

    /// The first four bytes of the hash of each key, Ed25519 first, as signature lines carry them.
    #[must_use]
    pub const fn ids(&self) -> [[u8; 4]; 2] {
        [self.ed25519_id, self.ml_dsa_id]
    }

    /// Whether the Ed25519 key signed this digest under this domain, as [`vouched`] has it.
    #[must_use]
    pub fn vouches(&self, domain: &str, digest: &Digest, signature: &[u8], checks: &dyn Checks) -> bool {
        self.ed25519.accepts(&vouched(domain, digest), signature, checks)
    }

    /// Checks a note that must carry both signatures of this log. Lines of other keys say nothing, as C2SP signed-note has it;
    /// each line of ours must hold.
    ///
    /// # Errors
    /// [`SignatureFault`] says which is missing or wrong.
    pub fn check(&self, note: &Note, checks: &dyn Checks) -> Result<(), SignatureFault> {
        let text = note.text.as_bytes();
        let of = |id| note.signatures.iter().filter(move |line| line.name == self.origin && line.id == id);
        let all_hold = |id, key: &PublicKey| of(id).all(|line| key.accepts(text, &line.signature, checks));
        if of(self.ed25519_id).next().is_none() || of(self.ml_dsa_id).next().is_none() {
            return Err(SignatureFault::Lines);
        }
        all_hold(self.ed25519_id, &self.ed25519).then_some(()).ok_or(SignatureFault::Ed25519)?;
        all_hold(self.ml_dsa_id, &self.ml_dsa).then_some(()).ok_or(SignatureFault::MlDsa65)
    }
}

impl std::fmt::Display for VerifierKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}\n{}", self.ed25519(), self.ml_dsa_65())
    }
}

impl std::fmt::Debug for VerifierKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VerifierKeys({})", self.origin)
    }
}

impl PartialEq for VerifierKeys {
    fn eq(&self, other: &Self) -> bool {
        self.lines == other.lines
    }
}

/// A text that is not the two verifier keys of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the keys of a log are two lines `name+keyid+base64`, Ed25519 first and ML-DSA-65 second")]
pub struct NotVerifierKeys;

impl FromStr for VerifierKeys {
    type Err = NotVerifierKeys;
    fn from_str(text: &str) -> Result<Self, NotVerifierKeys> {
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let [first, second] = lines.as_slice() else { return Err(NotVerifierKeys) };
        Self::parse(first, second).ok_or(NotVerifierKeys)
    }
}

impl VerifierKeys {
    /// Two lines of one name, in the one form that [`VerifierKeys::ed25519`] and [`VerifierKeys::ml_dsa_65`] have.
    #[must_use]
    pub fn parse(first: &str, second: &str) -> Option<Self> {
        let (origin, ed25519) = note::parse_verifier_key(first)?;
        let (_, ml_dsa) = note::parse_verifier_key(second)?;
        let ed25519 = ed25519.strip_prefix(&[ED25519_TYPE])?;
        let ml_dsa = ml_dsa.strip_prefix(&[OTHER_TYPE])?.strip_prefix(ML_DSA_65_IDENTIFIER)?;
        // A second line under another name does not come back as it is.
        Self::new(origin, ed25519, ml_dsa).filter(|keys| keys.ed25519() == first && keys.ml_dsa_65() == second)
    }
}

/// What an Ed25519 key of a log signs besides checkpoints: a digest under a domain. No checkpoint begins so.
#[must_use]
pub fn vouched(domain: &str, Digest(digest): &Digest) -> Vec<u8> {
    [b"ephor vouch v1\n", domain.as_bytes(), b"\n", digest.as_slice()].concat()
}

fn is_origin(name: &str) -> bool {
    let digits = name.strip_prefix("ephor/").filter(|digits| digits.len() == 32);
    digits.is_some_and(|digits| digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
}

/// The name of a log that begins under this Ed25519 key.
#[must_use]
pub fn origin_of(ed25519: &PublicKey) -> String {
    let digits = Digest::of(ed25519.bytes()).to_string();
    format!("ephor/{}", digits.get(..32).unwrap_or(&digits))
}
