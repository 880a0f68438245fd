//! The keys of a witness, and its cosignatures (C2SP tlog-cosignature).
//!
//! As with the log's own keys, a second implementation checks each signature that was made here before it counts.

use std::{fmt, path::Path};

use aws_lc_rs::{
    encoding::AsRawBytes as _,
    signature::{KeyPair as _, ML_DSA_44_SIGNING, PqdsaKeyPair},
};
use ed25519_dalek::Signer as _;
use ephor_base::{
    Random, Secret,
    files::{Files, Open},
};
use ephor_signatures::Signatures;
use ephor_tlog::{
    CosignerKey, SignatureLine,
    checkpoint::cosignature::{ED25519_TYPE, MAX_NAME_BYTES, ML_DSA_44_TYPE, subtree, timed_text},
};
use ephor_verify::folder;
use pqcrypto_mldsa::mldsa44;
use pqcrypto_traits::sign::{DetachedSignature as _, SecretKey as _};
use zeroize::{Zeroize, Zeroizing};

use crate::{durable, keys::KeyError};

const KEYS_MARK: &[u8] = b"ephor witness keys 1\n";
const SEED: usize = 32;

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
        let bytes = folder::read_whole(files, path, most)
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
        if folder::open_existing(files, path, Open::Read).map_err(io)?.is_some() {
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
            let line = SignatureLine { name: key.name().to_owned(), id: key.id(), signature };
            key.check(text, &line, &Signatures).ok().flatten().map(|_| line)
        };
        Some([line(first, &ed25519)?, line(second, ml_dsa.as_bytes())?])
    }
}
