//! The keys that sign the log, and those that check it.
//!
//! Each checkpoint carries two signatures: Ed25519 (RFC 8032) and ML-DSA-65 (FIPS 204, pure mode, empty context). The
//! ML-DSA signer is a C library that is no longer maintained. So every signature made here is checked by another,
//! maintained implementation before it counts, and the same one expands the key from its 32-byte seed.

use std::{io, path::Path, path::PathBuf, str::FromStr, sync::Arc};

use aws_lc_rs::{
    encoding::AsRawBytes as _,
    signature::{ED25519, KeyPair as _, ML_DSA_65, ML_DSA_65_SIGNING, ParsedPublicKey, PqdsaKeyPair},
};
use ed25519_dalek::Signer as _;
use ephor_base::{Digest, Random, Secret, files::Files};
use pqcrypto_mldsa::mldsa65;
use pqcrypto_traits::sign::{DetachedSignature as _, SecretKey as _};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    durable,
    note::{self, Note, SignatureLine},
    protection::Protection,
    signature,
};

/// The type byte of Ed25519 in a note key.
pub(crate) const ED25519_TYPE: u8 = 0x01;
/// C2SP gives ML-DSA no type byte. 0xff means that a long identifier follows, which nobody else will choose.
pub(crate) const OTHER_TYPE: u8 = 0xff;
pub(crate) const ML_DSA_65_IDENTIFIER: &[u8] = b"ML-DSA-65 FIPS-204 pure empty-context";
/// Bytes of an ML-DSA-65 public key.
const ML_DSA_65_PUBLIC: usize = 1952;
/// Bytes of an ML-DSA-65 signature.
const ML_DSA_65_SIGNATURE: usize = 3309;

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
        write!(f, "SigningKeys({})", self.verifier.origin)
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
        &self.verifier.origin
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
        self.ed25519.sign(&vouched(domain, digest)).to_bytes()
    }

    /// The keys of these seeds, under the name of a log; without one, under their own.
    fn from_seeds(seeds: &[u8; 2 * SEED], origin: Option<&str>) -> Option<Self> {
        let (first, second) = seeds.split_at(SEED);
        let ed25519 = ed25519_dalek::SigningKey::from_bytes(first.try_into().ok()?);
        let pair = PqdsaKeyPair::from_seed(&ML_DSA_65_SIGNING, second).ok()?;
        let expanded = pair.private_key().as_raw_bytes().ok()?;
        let ml_dsa = mldsa65::SecretKey::from_bytes(expanded.as_ref()).ok()?;
        let own = origin_of(&ed25519.verifying_key());
        let origin = origin.unwrap_or(&own);
        let verifier = VerifierKeys::new(origin, ed25519.verifying_key(), pair.public_key().as_ref())?;
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
        let keys = &self.verifier;
        let signature = self.ed25519.sign(text.as_bytes()).to_bytes().to_vec();
        keys.check_ed25519(text.as_bytes(), &signature)?;
        Ok(SignatureLine { name: keys.origin.clone(), id: keys.ed25519_id, signature })
    }

    /// The ML-DSA-65 half of [`SigningKeys::sign`].
    pub(crate) fn sign_ml_dsa(&self, text: &str) -> Result<SignatureLine, SignatureFault> {
        let keys = &self.verifier;
        let signature = mldsa65::detached_sign(text.as_bytes(), &self.ml_dsa.expose().0).as_bytes().to_vec();
        keys.check_ml_dsa(text.as_bytes(), &signature)?;
        Ok(SignatureLine { name: keys.origin.clone(), id: keys.ml_dsa_id, signature })
    }
}

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
    ed25519: ed25519_dalek::VerifyingKey,
    ed25519_again: Arc<ParsedPublicKey>,
    ml_dsa: Arc<ParsedPublicKey>,
    ed25519_id: [u8; 4],
    ml_dsa_id: [u8; 4],
    lines: [String; 2],
}

impl VerifierKeys {
    /// Keys under the name of a log.
    fn new(origin: &str, ed25519: ed25519_dalek::VerifyingKey, ml_dsa: &[u8]) -> Option<Self> {
        if ml_dsa.len() != ML_DSA_65_PUBLIC || ed25519.is_weak() || !is_origin(origin) {
            return None;
        }
        let origin = origin.to_owned();
        let ed25519_key = [&[ED25519_TYPE], ed25519.as_bytes().as_slice()].concat();
        let ml_dsa_key = [&[OTHER_TYPE], ML_DSA_65_IDENTIFIER, ml_dsa].concat();
        Some(Self {
            ed25519_again: Arc::new(ParsedPublicKey::new(&ED25519, ed25519.as_bytes()).ok()?),
            ml_dsa: Arc::new(ParsedPublicKey::new(&ML_DSA_65, ml_dsa).ok()?),
            ed25519_id: note::key_id(&origin, &ed25519_key),
            ml_dsa_id: note::key_id(&origin, &ml_dsa_key),
            lines: [note::verifier_key(&origin, &ed25519_key), note::verifier_key(&origin, &ml_dsa_key)],
            ed25519,
            origin,
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

    /// Whether [`SigningKeys::vouch`] made this signature.
    #[must_use]
    pub fn vouches(&self, domain: &str, digest: &Digest, signature: &[u8]) -> bool {
        self.check_ed25519(&vouched(domain, digest), signature).is_ok()
    }

    /// Checks a note that must carry both signatures of this log. Lines of other keys say nothing, as C2SP signed-note has it;
    /// each line of ours must hold.
    ///
    /// # Errors
    /// [`SignatureFault`] says which is missing or wrong.
    pub fn check(&self, note: &Note) -> Result<(), SignatureFault> {
        let text = note.text.as_bytes();
        let of = |id| note.signatures.iter().filter(move |line| line.name == self.origin && line.id == id);
        if of(self.ed25519_id).next().is_none() || of(self.ml_dsa_id).next().is_none() {
            return Err(SignatureFault::Lines);
        }
        of(self.ed25519_id).try_for_each(|line| self.check_ed25519(text, &line.signature))?;
        of(self.ml_dsa_id).try_for_each(|line| self.check_ml_dsa(text, &line.signature))
    }

    /// Both implementations must accept: the strict rules of the one leave no second signature for the same text, and a
    /// fault in either is caught by the other.
    fn check_ed25519(&self, text: &[u8], signature: &[u8]) -> Result<(), SignatureFault> {
        let holds = signature::ed25519_holds(&self.ed25519, &self.ed25519_again, text, signature);
        holds.then_some(()).ok_or(SignatureFault::Ed25519)
    }

    fn check_ml_dsa(&self, text: &[u8], signature: &[u8]) -> Result<(), SignatureFault> {
        let holds = signature::ml_dsa_holds(&self.ml_dsa, ML_DSA_65_SIGNATURE, text, signature);
        holds.then_some(()).ok_or(SignatureFault::MlDsa65)
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
    /// Two lines of one name.
    pub(crate) fn parse(first: &str, second: &str) -> Option<Self> {
        let (origin, ed25519) = note::parse_verifier_key(first)?;
        let (_, ml_dsa) = note::parse_verifier_key(second)?;
        let ed25519 = ed25519.strip_prefix(&[ED25519_TYPE])?;
        let ml_dsa = ml_dsa.strip_prefix(&[OTHER_TYPE])?.strip_prefix(ML_DSA_65_IDENTIFIER)?;
        let ed25519 = ed25519_dalek::VerifyingKey::from_bytes(ed25519.try_into().ok()?).ok()?;
        // A second line under another name does not come back as it is.
        Self::new(origin, ed25519, ml_dsa).filter(|keys| keys.ed25519() == first && keys.ml_dsa_65() == second)
    }
}

fn vouched(domain: &str, Digest(digest): &Digest) -> Vec<u8> {
    [b"ephor vouch v1\n", domain.as_bytes(), b"\n", digest.as_slice()].concat()
}

fn is_origin(name: &str) -> bool {
    let digits = name.strip_prefix("ephor/").filter(|digits| digits.len() == 32);
    digits.is_some_and(|digits| digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
}

fn origin_of(key: &ed25519_dalek::VerifyingKey) -> String {
    let digits = Digest::of(key.as_bytes()).to_string();
    format!("ephor/{}", digits.get(..32).unwrap_or(&digits))
}

/// Writes a key into a file that must not exist yet.
pub(crate) fn save_new(files: &dyn Files, path: &Path, bytes: &[u8]) -> Result<(), KeyError> {
    let io = |source| KeyError::Io { path: path.to_owned(), source };
    if durable::open_existing(files, path, ephor_base::files::Open::Read).map_err(io)?.is_some() {
        return Err(KeyError::Exists(path.to_owned()));
    }
    durable::make_folder(files, durable::parent(path)).map_err(io)?;
    durable::replace(files, path, bytes).map_err(io)
}
