//! The keys that sign the log, and those that check it.
//!
//! Each checkpoint carries two signatures: Ed25519 (RFC 8032) and ML-DSA-65 (FIPS 204, pure mode, empty context). The
//! ML-DSA signer is a C library that is no longer maintained. So every signature made here is checked by another,
//! maintained implementation before it counts, and the same one expands the key from its 32-byte seed.

use std::{io, path::Path, path::PathBuf};

use aws_lc_rs::{
    encoding::AsRawBytes as _,
    signature::{KeyPair as _, ML_DSA_65_SIGNING, PqdsaKeyPair},
};
use ed25519_dalek::Signer as _;
use ephor_base::{Digest, Random, Secret, files::Files};
use ephor_signatures::Signatures;
use ephor_tlog::{Algorithm, Note, PublicKey, SignatureFault, SignatureLine, VerifierKeys, checkpoint::keys};
use ephor_verify::folder;
use pqcrypto_mldsa::mldsa65;
use pqcrypto_traits::sign::{DetachedSignature as _, SecretKey as _};
use zeroize::{Zeroize, Zeroizing};

use crate::{durable, protection::Protection};

/// Two seeds; the name of the log is derived from them.
const SIGNING_MARK: &[u8] = b"ephor signing keys 1\n";
/// Two seeds and the name of the log, which began under other keys.
const NEXT_MARK: &[u8] = b"ephor signing keys 2\n";
const SEED: usize = 32;

/// A key file could not be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The system would not read or write it. The store's fault.
    #[error("the key file `{path}` cannot be used: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such file.
    #[error("there is no key file `{0}`")]
    Missing(PathBuf),
    /// It is not what was written: it was cut, changed, or is another kind of file.
    #[error("the key file `{0}` is damaged; put back a copy of it")]
    Damaged(PathBuf),
    /// It is locked, and no passphrase was given.
    #[error("the key file `{0}` is locked: its passphrase is needed")]
    Locked(PathBuf),
    /// It is locked under another passphrase than the one given.
    #[error("the passphrase does not open the key file `{0}`")]
    WrongPassphrase(PathBuf),
    /// A file is already there, and keys are never overwritten.
    #[error("there already is a key file `{0}`")]
    Exists(PathBuf),
}

/// The two private keys of a log.
pub struct SigningKeys {
    ed25519: ed25519_dalek::SigningKey,
    ml_dsa: Secret<MlDsaKey>,
    seeds: Secret<[u8; 2 * SEED]>,
    verifier: VerifierKeys,
}

/// The expanded ML-DSA key, in the form its library wants. That form has no way to be overwritten in place.
struct MlDsaKey(Box<mldsa65::SecretKey>);

impl Zeroize for MlDsaKey {
    fn zeroize(&mut self) {
        let zeros = [0; 4032];
        if let Ok(blank) = mldsa65::SecretKey::from_bytes(&zeros) {
            *self.0 = blank;
            // Without a reader the compiler may leave the assignment out.
            std::hint::black_box(&self.0);
        }
    }
}

impl std::fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKeys({})", self.verifier.origin())
    }
}

impl SigningKeys {
    /// New keys, for a new log.
    #[must_use]
    pub fn generate(random: &dyn Random) -> Self {
        Self::fresh(None, random)
    }

    /// New keys that can follow these in the same log.
    #[must_use]
    pub fn generate_next(of: &VerifierKeys, random: &dyn Random) -> Self {
        Self::fresh(Some(of.origin()), random)
    }

    fn fresh(origin: Option<&str>, random: &dyn Random) -> Self {
        loop {
            let mut seeds = Zeroizing::new([0; 2 * SEED]);
            random.fill(&mut *seeds);
            // No seed is known to be refused; if one were, another would do.
            if let Some(keys) = Self::from_seeds(&seeds, origin) {
                return keys;
            }
        }
    }

    /// The keys in a file.
    ///
    /// # Errors
    /// [`KeyError`] if there is none or it cannot be read.
    pub fn load(path: &Path, files: &dyn Files) -> Result<Self, KeyError> {
        Self::load_with(path, files, &Protection::none())
    }

    /// The keys in a file that may be locked.
    ///
    /// # Errors
    /// [`KeyError`] if there is none, or it cannot be read or opened.
    pub fn load_with(path: &Path, files: &dyn Files, protection: &Protection) -> Result<Self, KeyError> {
        let bytes = protection.read(path, files)?;
        Self::from_bytes(&bytes).ok_or_else(|| KeyError::Damaged(path.to_owned()))
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if let Some(seeds) = durable::open_envelope(SIGNING_MARK, bytes) {
            return Self::from_seeds(seeds.try_into().ok()?, None);
        }
        let (seeds, origin) = durable::open_envelope(NEXT_MARK, bytes)?.split_first_chunk()?;
        Self::from_seeds(seeds, Some(std::str::from_utf8(origin).ok()?))
    }

    /// Keys under their own name need not say it.
    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let seeds = self.seeds.expose();
        Zeroizing::new(if self.verifier.is_first() {
            durable::envelope(SIGNING_MARK, seeds)
        } else {
            let body = Zeroizing::new([seeds.as_slice(), self.origin().as_bytes()].concat());
            durable::envelope(NEXT_MARK, &body)
        })
    }

    /// Writes the keys into a new file with mode 0600. When it returns, the disk has them.
    ///
    /// # Errors
    /// [`KeyError`] if there already is a file or it cannot be written.
    pub fn save(&self, path: &Path, files: &dyn Files) -> Result<(), KeyError> {
        save_new(files, path, &self.to_bytes())
    }

    /// As [`SigningKeys::save`], under a protection.
    ///
    /// # Errors
    /// [`KeyError`] if there already is a file or it cannot be written.
    pub fn save_with(
        &self,
        path: &Path,
        files: &dyn Files,
        protection: &Protection,
        random: &dyn Random,
    ) -> Result<(), KeyError> {
        save_new(files, path, &protection.seal(&self.to_bytes(), random))
    }

    /// The name of the log these keys sign, as on the first line of each checkpoint.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.verifier.origin()
    }

    /// The public keys.
    #[must_use]
    pub const fn verifier(&self) -> &VerifierKeys {
        &self.verifier
    }

    /// Signs what only this node may say besides checkpoints, such as that a connection is its own: the Ed25519 key alone, under a
    /// domain that no checkpoint begins with.
    #[must_use]
    pub fn vouch(&self, domain: &str, digest: &Digest) -> [u8; 64] {
        self.ed25519.sign(&keys::vouched(domain, digest)).to_bytes()
    }

    /// The keys of these seeds, under the name of a log; without one, under their own.
    fn from_seeds(seeds: &[u8; 2 * SEED], origin: Option<&str>) -> Option<Self> {
        let (first, second) = seeds.split_at(SEED);
        let ed25519 = ed25519_dalek::SigningKey::from_bytes(first.try_into().ok()?);
        let pair = PqdsaKeyPair::from_seed(&ML_DSA_65_SIGNING, second).ok()?;
        let expanded = pair.private_key().as_raw_bytes().ok()?;
        let ml_dsa = mldsa65::SecretKey::from_bytes(expanded.as_ref()).ok()?;
        let public = ed25519.verifying_key();
        let own = keys::origin_of(&PublicKey::new(Algorithm::Ed25519, public.as_bytes())?);
        let origin = origin.unwrap_or(&own);
        let verifier = VerifierKeys::new(origin, public.as_bytes(), pair.public_key().as_ref())?;
        let ml_dsa = Secret::new(MlDsaKey(Box::new(ml_dsa)));
        Some(Self { ed25519, ml_dsa, seeds: Secret::new(*seeds), verifier })
    }

    /// Signs a text with both keys and has both signatures checked by the second implementation.
    ///
    /// # Errors
    /// [`SignatureFault`] if that one does not accept a signature: one of the two libraries is wrong.
    pub(crate) fn sign(&self, text: String) -> Result<Note, SignatureFault> {
        let signatures = vec![self.sign_ed25519(&text)?, self.sign_ml_dsa(&text)?];
        Ok(Note { text, signatures })
    }

    /// The Ed25519 half of [`SigningKeys::sign`].
    pub(crate) fn sign_ed25519(&self, text: &str) -> Result<SignatureLine, SignatureFault> {
        let (keys, [id, _]) = (&self.verifier, self.verifier.ids());
        let signature = self.ed25519.sign(text.as_bytes()).to_bytes().to_vec();
        let holds = keys.ed25519_key().accepts(text.as_bytes(), &signature, &Signatures);
        let line = SignatureLine { name: keys.origin().to_owned(), id, signature };
        holds.then_some(line).ok_or(SignatureFault::Ed25519)
    }

    /// The ML-DSA-65 half of [`SigningKeys::sign`].
    pub(crate) fn sign_ml_dsa(&self, text: &str) -> Result<SignatureLine, SignatureFault> {
        let (keys, [_, id]) = (&self.verifier, self.verifier.ids());
        let signature = mldsa65::detached_sign(text.as_bytes(), &self.ml_dsa.expose().0).as_bytes().to_vec();
        let holds = keys.ml_dsa_65_key().accepts(text.as_bytes(), &signature, &Signatures);
        let line = SignatureLine { name: keys.origin().to_owned(), id, signature };
        holds.then_some(line).ok_or(SignatureFault::MlDsa65)
    }
}

/// Writes a key into a file that must not exist yet.
pub(crate) fn save_new(files: &dyn Files, path: &Path, bytes: &[u8]) -> Result<(), KeyError> {
    let io = |source| KeyError::Io { path: path.to_owned(), source };
    if folder::open_existing(files, path, ephor_base::files::Open::Read).map_err(io)?.is_some() {
        return Err(KeyError::Exists(path.to_owned()));
    }
    durable::make_folder(files, durable::parent(path)).map_err(io)?;
    durable::replace(files, path, bytes).map_err(io)
}
