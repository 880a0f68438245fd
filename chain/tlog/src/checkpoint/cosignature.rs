//! Cosignatures (C2SP tlog-cosignature): what a witness says of a checkpoint, with the time.
//!
//! A witness signs twice: with Ed25519 over `cosignature/v1` and the text (type 0x04), and with ML-DSA-44 over the whole tree
//! as `subtree/v1` (type 0x06).

use std::{fmt, str::FromStr};

use super::{Head, known::read_text};
use crate::{
    note::{self, Note, SignatureLine},
    signature::{Algorithm, Checks, PublicKey},
};

/// The type byte of a witness's Ed25519 key in a note key.
pub const ED25519_TYPE: u8 = 0x04;
/// The type byte of a witness's ML-DSA-44 key in a note key.
pub const ML_DSA_44_TYPE: u8 = 0x06;
const SUBTREE_LABEL: &[u8; 12] = b"subtree/v1\n\0";
/// The most bytes of a witness's name: a subtree cosignature has one byte for its length.
pub const MAX_NAME_BYTES: usize = 255;

/// What a witness said of a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cosignature {
    /// The name of the witness.
    pub witness: String,
    /// Ed25519 or ML-DSA-44.
    pub algorithm: Algorithm,
    /// POSIX seconds at which this was the largest log the witness had seen; 0 if it does not say.
    pub seconds: u64,
}

/// A cosignature of a known witness does not hold. Its sender is at fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the {algorithm} cosignature of `{witness}` is wrong")]
pub struct CosignatureFault {
    /// The name of the witness.
    pub witness: String,
    /// Ed25519 or ML-DSA-44.
    pub algorithm: Algorithm,
}

/// A note verifier key of a witness: Ed25519 (type 0x04) or ML-DSA-44 (type 0x06).
#[derive(Clone, Debug)]
pub struct CosignerKey {
    line: String,
    name: String,
    id: [u8; 4],
    key: PublicKey,
}

/// A text that is not a verifier key of a witness.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a witness's key is one line `name+keyid+base64`, for Ed25519 or ML-DSA-44 cosignatures")]
pub struct NotACosignerKey;

impl FromStr for CosignerKey {
    type Err = NotACosignerKey;
    fn from_str(text: &str) -> Result<Self, NotACosignerKey> {
        let (name, typed) = note::parse_verifier_key(text).ok_or(NotACosignerKey)?;
        Self::new(name, &typed).ok_or(NotACosignerKey)
    }
}

impl fmt::Display for CosignerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl CosignerKey {
    /// The key with these typed bytes under the name of a witness, if they are one.
    #[must_use]
    pub fn new(name: &str, typed: &[u8]) -> Option<Self> {
        let (kind, bytes) = typed.split_first()?;
        let algorithm = match *kind {
            ED25519_TYPE => Algorithm::Ed25519,
            ML_DSA_44_TYPE => Algorithm::MlDsa44,
            _ => return None,
        };
        let key = PublicKey::new(algorithm, bytes)?;
        if !note::is_key_name(name) || name.len() > MAX_NAME_BYTES {
            return None;
        }
        Some(Self { line: note::verifier_key(name, typed), name: name.to_owned(), id: note::key_id(name, typed), key })
    }

    /// The name of the witness.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id of the key, as its signature lines carry it.
    #[must_use]
    pub const fn id(&self) -> [u8; 4] {
        self.id
    }

    /// What this line says of the checkpoint with this text; nothing if another key made it.
    ///
    /// # Errors
    /// [`CosignatureFault`] if the line is that of this key and does not hold.
    pub fn check(
        &self,
        text: &str,
        line: &SignatureLine,
        checks: &dyn Checks,
    ) -> Result<Option<Cosignature>, CosignatureFault> {
        if line.name != self.name || line.id != self.id {
            return Ok(None);
        }
        let algorithm = self.key.algorithm();
        let said = self.accepts(text, &line.signature, checks);
        let said = said.map(|seconds| Cosignature { witness: self.name.clone(), algorithm, seconds });
        said.map(Some).ok_or_else(|| CosignatureFault { witness: self.name.clone(), algorithm })
    }

    /// The time of a cosignature that holds.
    fn accepts(&self, text: &str, timed: &[u8], checks: &dyn Checks) -> Option<u64> {
        let (seconds, signature) = timed.split_first_chunk::<8>()?;
        let seconds = u64::from_be_bytes(*seconds);
        i64::try_from(seconds).ok()?;
        let message = match self.key.algorithm() {
            Algorithm::Ed25519 => timed_text(text, seconds).into_bytes(),
            Algorithm::MlDsa44 | Algorithm::MlDsa65 => subtree(&self.name, text, seconds)?,
        };
        let holds = self.key.accepts(&message, signature, checks);
        holds.then_some(seconds)
    }
}

/// What known witnesses say of the checkpoint in a note. Lines of others are passed over.
///
/// # Errors
/// [`CosignatureFault`] for the first line of a known witness that does not hold.
pub fn cosignatures(
    note: &Note,
    witnesses: &[CosignerKey],
    checks: &dyn Checks,
) -> Result<Vec<Cosignature>, CosignatureFault> {
    let pairs = note.signatures.iter().flat_map(|line| witnesses.iter().map(move |witness| (line, witness)));
    pairs.filter_map(|(line, witness)| witness.check(&note.text, line, checks).transpose()).collect()
}

/// What an Ed25519 cosignature signs.
#[must_use]
pub fn timed_text(text: &str, seconds: u64) -> String {
    format!("cosignature/v1\ntime {seconds}\n{text}")
}

/// What an ML-DSA-44 cosignature signs: a `cosigned_message` of the whole tree. Nothing if the text is no checkpoint.
#[must_use]
pub fn subtree(name: &str, text: &str, seconds: u64) -> Option<Vec<u8>> {
    let (origin, Head { size, root }, _) = read_text(text)?;
    let (name_length, origin_length) = (u8::try_from(name.len()).ok()?, u8::try_from(origin.len()).ok()?);
    let parts: [&[u8]; 9] = [
        SUBTREE_LABEL,
        &[name_length],
        name.as_bytes(),
        &seconds.to_be_bytes(),
        &[origin_length],
        origin.as_bytes(),
        &0u64.to_be_bytes(),
        &size.to_be_bytes(),
        &root.0,
    ];
    Some(parts.concat())
}
