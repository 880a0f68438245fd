//! Cosignatures (C2SP tlog-cosignature): what a witness says of a checkpoint, with the time.
//!
//! A witness signs twice: with Ed25519 over `cosignature/v1` and the text (type 0x04), and with ML-DSA-44 over the whole tree
//! as `subtree/v1` (type 0x06). As with the log's own keys, a second implementation checks each signature that was made here
//! before it counts.

use std::{fmt, path::Path, str::FromStr};

use aws_lc_rs::{
    encoding::AsRawBytes as _,
    signature::{KeyPair as _, ML_DSA_44_SIGNING, PqdsaKeyPair},
};
use ed25519_dalek::Signer as _;
use ephor_base::{
    Random, Secret,
    files::{Files, Open},
};
use pqcrypto_mldsa::mldsa44;
use pqcrypto_traits::sign::{DetachedSignature as _, SecretKey as _};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    checkpoint::Head,
    durable,
    keys::KeyError,
    known::read_text,
    note::{self, Note, SignatureLine},
    signature::{Ed25519Public, MlDsaPublic},
};

const ED25519_TYPE: u8 = 0x04;
const ML_DSA_44_TYPE: u8 = 0x06;
const SUBTREE_LABEL: &[u8; 12] = b"subtree/v1\n\0";
const KEYS_MARK: &[u8] = b"ephor witness keys 1\n";
const SEED: usize = 32;
/// A subtree cosignature has one byte for the length of the name.
const MAX_NAME_BYTES: usize = 255;

/// What a witness said of a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cosignature {
    /// The name of the witness.
    pub witness: String,
    /// `Ed25519` or `ML-DSA-44`.
    pub algorithm: &'static str,
    /// POSIX seconds at which this was the largest log the witness had seen; 0 if it does not say.
    pub seconds: u64,
}

/// A cosignature of a known witness does not hold. Whoever sent it is at fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the {algorithm} cosignature of `{witness}` is wrong")]
pub struct CosignatureFault {
    /// The name of the witness.
    pub witness: String,
    /// `Ed25519` or `ML-DSA-44`.
    pub algorithm: &'static str,
}

/// A note verifier key of a witness: Ed25519 (type 0x04) or ML-DSA-44 (type 0x06).
#[derive(Clone, Debug)]
pub struct CosignerKey {
    line: String,
    name: String,
    id: [u8; 4],
    key: Algorithm,
}

#[derive(Clone, Debug)]
enum Algorithm {
    Ed25519(Ed25519Public),
    MlDsa44(MlDsaPublic),
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
    fn new(name: &str, typed: &[u8]) -> Option<Self> {
        let (kind, bytes) = typed.split_first()?;
        let key = match *kind {
            ED25519_TYPE => Algorithm::Ed25519(Ed25519Public::new(bytes)?),
            ML_DSA_44_TYPE => Algorithm::MlDsa44(MlDsaPublic::ml_dsa_44(bytes)?),
            _ => return None,
        };
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

    const fn algorithm(&self) -> &'static str {
        match self.key {
            Algorithm::Ed25519(_) => "Ed25519",
            Algorithm::MlDsa44(_) => "ML-DSA-44",
        }
    }

    /// What this line says of the checkpoint with this text; nothing if another key made it.
    ///
    /// # Errors
    /// [`CosignatureFault`] if the line is that of this key and does not hold.
    pub fn check(&self, text: &str, line: &SignatureLine) -> Result<Option<Cosignature>, CosignatureFault> {
        if line.name != self.name || line.id != self.id {
            return Ok(None);
        }
        let algorithm = self.algorithm();
        let said = self.accepts(text, &line.signature);
        let said = said.map(|seconds| Cosignature { witness: self.name.clone(), algorithm, seconds });
        said.map(Some).ok_or_else(|| CosignatureFault { witness: self.name.clone(), algorithm })
    }

    /// The time of a cosignature that holds.
    fn accepts(&self, text: &str, timed: &[u8]) -> Option<u64> {
        let (seconds, signature) = timed.split_first_chunk::<8>()?;
        let seconds = u64::from_be_bytes(*seconds);
        i64::try_from(seconds).ok()?;
        let holds = match &self.key {
            Algorithm::Ed25519(key) => key.accepts(timed_text(text, seconds).as_bytes(), signature),
            Algorithm::MlDsa44(key) => key.accepts(&subtree(&self.name, text, seconds)?, signature),
        };
        holds.then_some(seconds)
    }
}

/// What known witnesses say of the checkpoint in a note. Lines of others are passed over.
///
/// # Errors
/// [`CosignatureFault`] for the first line of a known witness that does not hold.
pub fn cosignatures(note: &Note, witnesses: &[CosignerKey]) -> Result<Vec<Cosignature>, CosignatureFault> {
    let pairs = note.signatures.iter().flat_map(|line| witnesses.iter().map(move |witness| (line, witness)));
    pairs.filter_map(|(line, witness)| witness.check(&note.text, line).transpose()).collect()
}

/// What Ed25519 signs.
fn timed_text(text: &str, seconds: u64) -> String {
    format!("cosignature/v1\ntime {seconds}\n{text}")
}

/// What ML-DSA-44 signs: a `cosigned_message` of the whole tree.
fn subtree(name: &str, text: &str, seconds: u64) -> Option<Vec<u8>> {
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

/// The two private keys of a witness.
pub struct CosignerKeys {
    name: String,
    ed25519: ed25519_dalek::SigningKey,
    ml_dsa: Secret<Expanded>,
    seeds: Secret<[u8; 2 * SEED]>,
    verifier: [CosignerKey; 2],
}

/// The expanded ML-DSA key, in the form its library wants. That form has no way to be overwritten in place.
struct Expanded(Box<mldsa44::SecretKey>);

impl Zeroize for Expanded {
    fn zeroize(&mut self) {
        if let Ok(blank) = mldsa44::SecretKey::from_bytes(&[0; 2560]) {
            *self.0 = blank;
            // Without a reader the compiler may leave the assignment out.
            std::hint::black_box(&self.0);
        }
    }
}

impl fmt::Debug for CosignerKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CosignerKeys({})", self.name)
    }
}

impl CosignerKeys {
    /// New keys for the witness of this name: 1 to 255 bytes without spaces and `+`, and best a URL without its scheme.
    /// Nothing if it cannot be the name of a key.
    #[must_use]
    pub fn generate(name: &str, random: &dyn Random) -> Option<Self> {
        let mut seeds = Zeroizing::new([0; 2 * SEED]);
        random.fill(&mut *seeds);
        Self::from_seeds(name, &seeds)
    }

    /// The keys in a file.
    ///
    /// # Errors
    /// [`KeyError`] if there is none or it cannot be read.
    pub fn load(path: &Path, files: &dyn Files) -> Result<Self, KeyError> {
        let most = KEYS_MARK.len().saturating_add(2 * SEED + MAX_NAME_BYTES + 32);
        let bytes = durable::read_whole(files, path, most)
            .map_err(|source| KeyError::Io { path: path.to_owned(), source })?
            .map(Zeroizing::new)
            .ok_or_else(|| KeyError::Missing(path.to_owned()))?;
        let parts = durable::open_envelope(KEYS_MARK, &bytes).and_then(|body| body.split_first_chunk());
        let keys = parts.and_then(|(seeds, name)| Self::from_seeds(std::str::from_utf8(name).ok()?, seeds));
        keys.ok_or_else(|| KeyError::Damaged(path.to_owned()))
    }

    /// Writes the keys into a new file with mode 0600. When it returns, the disk has them.
    ///
    /// # Errors
    /// [`KeyError`] if there already is a file or it cannot be written.
    pub fn save(&self, path: &Path, files: &dyn Files) -> Result<(), KeyError> {
        let io = |source| KeyError::Io { path: path.to_owned(), source };
        if durable::open_existing(files, path, Open::Read).map_err(io)?.is_some() {
            return Err(KeyError::Exists(path.to_owned()));
        }
        let body = Zeroizing::new([self.seeds.expose().as_slice(), self.name.as_bytes()].concat());
        let bytes = Zeroizing::new(durable::envelope(KEYS_MARK, &body));
        durable::make_folder(files, durable::parent(path)).map_err(io)?;
        durable::replace(files, path, &bytes).map_err(io)
    }

    /// The public keys, Ed25519 first.
    #[must_use]
    pub const fn verifier(&self) -> &[CosignerKey; 2] {
        &self.verifier
    }

    fn from_seeds(name: &str, seeds: &[u8; 2 * SEED]) -> Option<Self> {
        let (first, second) = seeds.split_at(SEED);
        let ed25519 = ed25519_dalek::SigningKey::from_bytes(first.try_into().ok()?);
        let pair = PqdsaKeyPair::from_seed(&ML_DSA_44_SIGNING, second).ok()?;
        let expanded = pair.private_key().as_raw_bytes().ok()?;
        let ml_dsa = mldsa44::SecretKey::from_bytes(expanded.as_ref()).ok()?;
        let typed = |kind, key: &[u8]| CosignerKey::new(name, &[&[kind], key].concat());
        let verifier = [
            typed(ED25519_TYPE, ed25519.verifying_key().as_bytes())?,
            typed(ML_DSA_44_TYPE, pair.public_key().as_ref())?,
        ];
        let ml_dsa = Secret::new(Expanded(Box::new(ml_dsa)));
        Some(Self { name: name.to_owned(), ed25519, ml_dsa, seeds: Secret::new(*seeds), verifier })
    }

    /// Cosigns the text of a checkpoint with both keys. Nothing if the text is none, or if a signature made here does not
    /// hold for the second implementation.
    pub(crate) fn cosign(&self, text: &str, seconds: u64) -> Option<[SignatureLine; 2]> {
        let [first, second] = &self.verifier;
        let ed25519 = self.ed25519.sign(timed_text(text, seconds).as_bytes()).to_bytes();
        let message = subtree(&self.name, text, seconds)?;
        let ml_dsa = mldsa44::detached_sign(&message, &self.ml_dsa.expose().0);
        let line = |key: &CosignerKey, signature: &[u8]| {
            let signature = [&seconds.to_be_bytes(), signature].concat();
            let line = SignatureLine { name: key.name.clone(), id: key.id, signature };
            key.check(text, &line).ok().flatten().map(|_| line)
        };
        Some([line(first, &ed25519)?, line(second, ml_dsa.as_bytes())?])
    }
}
