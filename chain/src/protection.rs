//! How secret keys lie on the disk: as they are, or locked under a passphrase.
//!
//! A locked file is `ephor locked key 1` and a line feed, then, big-endian, the memory in KiB (4 bytes), the passes (4) and
//! the lanes (4) of Argon2id (RFC 9106, version 0x13), its 16-byte salt, a 24-byte nonce, and the XChaCha20-Poly1305 of the
//! file as it would be unlocked; then the SHA-256 of all that. What comes before the nonce is authenticated beside it. The
//! SHA-256 tells a file that was changed by accident from a wrong passphrase; an attacker who changes it on purpose can make
//! the one look like the other, and gains nothing.
//!
//! While the passphrase is being changed, a file holds both forms, old and new, and opens with either; see [`relock`].

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use ephor_base::{
    Random, Secret,
    files::{Files, Open},
};
use ephor_verify::folder;
use zeroize::{Zeroize, Zeroizing};

use crate::{
    durable,
    keys::{KeyError, save_new},
};

const LOCKED_MARK: &[u8] = b"ephor locked key 1\n";
const SLOTS_MARK: &[u8] = b"ephor key in two forms 1\n";
const SALT: usize = 16;
const NONCE: usize = 24;
const KEY: usize = 32;
/// No key file of ours is longer, in any form.
const MOST: usize = 4096;

/// What deriving a key from a passphrase costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cost {
    kib: u32,
    passes: u32,
    lanes: u32,
}

impl Cost {
    /// The second recommended option of RFC 9106, section 4: 64 MiB, three passes, four lanes.
    const RECOMMENDED: Self = Self { kib: 64 << 10, passes: 3, lanes: 4 };
    /// A file that asks for more was not written by us, and must not take the machine down.
    const MOST: Self = Self { kib: 1 << 20, passes: 16, lanes: 16 };

    fn to_bytes(self) -> Vec<u8> {
        [self.kib, self.passes, self.lanes].iter().flat_map(|number| number.to_be_bytes()).collect()
    }

    fn take(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (kib, rest) = bytes.split_first_chunk::<4>()?;
        let (passes, rest) = rest.split_first_chunk::<4>()?;
        let (lanes, rest) = rest.split_first_chunk::<4>()?;
        let [kib, passes, lanes] = [kib, passes, lanes].map(|number| u32::from_be_bytes(*number));
        let most = Self::MOST;
        let bearable = kib <= most.kib && passes <= most.passes && lanes <= most.lanes;
        bearable.then_some((Self { kib, passes, lanes }, rest))
    }
}

/// A key derived from the passphrase.
struct Derived {
    cost: Cost,
    salt: [u8; SALT],
    key: Secret<[u8; KEY]>,
}

/// How the secret keys of a home are protected: not at all, or by a passphrase. Overwritten when dropped.
///
/// Keys derived once are kept, since deriving one takes about a tenth of a second on purpose.
#[derive(Default)]
pub struct Protection {
    passphrase: Option<Secret<Vec<u8>>>,
    derived: Mutex<Vec<Derived>>,
}

impl std::fmt::Debug for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.passphrase.is_some() { "Protection(passphrase)" } else { "Protection(none)" })
    }
}

/// Why one form of a key file does not open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shut {
    Damaged,
    Locked,
    Wrong,
}

impl Protection {
    /// None: a process that can read the file has the key.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// A passphrase. Not empty: that would look like protection.
    #[must_use]
    pub fn passphrase(words: &[u8]) -> Option<Self> {
        (!words.is_empty()).then(|| Self { passphrase: Some(Secret::new(words.to_vec())), ..Self::default() })
    }

    /// The bytes of a key file as they are unlocked.
    pub(crate) fn read(&self, path: &Path, files: &dyn Files) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let bytes = read_whole(path, files)?;
        self.open(&bytes).map(|(_, plain)| plain).map_err(|shut| shut.explain(path))
    }

    /// The bytes to write for a key file.
    pub(crate) fn seal(&self, plain: &[u8], random: &dyn Random) -> Zeroizing<Vec<u8>> {
        let locked = self.passphrase.as_ref().and_then(|words| self.lock(words, plain, random));
        // A passphrase with recommended costs always derives a key; nothing is ever written unlocked in its stead.
        Zeroizing::new(match (&self.passphrase, locked) {
            (None, _) => plain.to_vec(),
            (Some(_), locked) => locked.unwrap_or_default(),
        })
    }

    /// The form that opens, and what it holds.
    fn open<'a>(&self, bytes: &'a [u8]) -> Result<(&'a [u8], Zeroizing<Vec<u8>>), Shut> {
        let forms = forms(bytes).ok_or(Shut::Damaged)?;
        let mut worst = Shut::Damaged;
        for form in forms {
            match self.open_form(form) {
                Ok(plain) => return Ok((form, plain)),
                Err(shut) => worst = worst.max(shut),
            }
        }
        Err(worst)
    }

    fn open_form(&self, form: &[u8]) -> Result<Zeroizing<Vec<u8>>, Shut> {
        if !form.starts_with(LOCKED_MARK) {
            return Ok(Zeroizing::new(form.to_vec()));
        }
        let body = durable::open_envelope(LOCKED_MARK, form).ok_or(Shut::Damaged)?;
        let (cost, rest) = Cost::take(body).ok_or(Shut::Damaged)?;
        let (salt, rest) = rest.split_first_chunk::<SALT>().ok_or(Shut::Damaged)?;
        let (nonce, text) = rest.split_first_chunk::<NONCE>().ok_or(Shut::Damaged)?;
        let words = self.passphrase.as_ref().ok_or(Shut::Locked)?;
        let bound = bound(cost, salt);
        let plain = self.with_key(words, cost, salt, |cipher| {
            cipher.decrypt(XNonce::from_slice(nonce), Payload { msg: text, aad: &bound }).ok()
        });
        plain.flatten().map(Zeroizing::new).ok_or(Shut::Wrong)
    }

    fn lock(&self, words: &Secret<Vec<u8>>, plain: &[u8], random: &dyn Random) -> Option<Vec<u8>> {
        let known = self.derived().first().map(|known| (known.cost, known.salt));
        let (cost, salt) = known.filter(|(cost, _)| *cost == Cost::RECOMMENDED).unwrap_or_else(|| {
            let mut salt = [0; SALT];
            random.fill(&mut salt);
            (Cost::RECOMMENDED, salt)
        });
        let mut nonce = [0; NONCE];
        random.fill(&mut nonce);
        let bound = bound(cost, &salt);
        let text = self.with_key(words, cost, &salt, |cipher| {
            cipher.encrypt(XNonce::from_slice(&nonce), Payload { msg: plain, aad: &bound }).ok()
        })??;
        let body = [&cost.to_bytes(), salt.as_slice(), &nonce, &text].concat();
        Some(durable::envelope(LOCKED_MARK, &body))
    }

    fn with_key<T>(
        &self,
        words: &Secret<Vec<u8>>,
        cost: Cost,
        salt: &[u8; SALT],
        with: impl FnOnce(&XChaCha20Poly1305) -> T,
    ) -> Option<T> {
        let mut known = self.derived();
        let place = known.iter().position(|known| known.cost == cost && known.salt == *salt);
        let place = match place {
            Some(place) => place,
            None => {
                known.push(Derived { cost, salt: *salt, key: derive(words, cost, salt)? });
                known.len().saturating_sub(1)
            }
        };
        let key = &known.get(place)?.key;
        Some(with(&XChaCha20Poly1305::new(key.expose().into())))
    }

    fn derived(&self) -> std::sync::MutexGuard<'_, Vec<Derived>> {
        self.derived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shut {
    fn explain(self, path: &Path) -> KeyError {
        match self {
            Self::Damaged => KeyError::Damaged(path.to_owned()),
            Self::Locked => KeyError::Locked(path.to_owned()),
            Self::Wrong => KeyError::WrongPassphrase(path.to_owned()),
        }
    }
}

/// How long a credential is, in bytes: the seed of an Ed25519 key (RFC 8032).
pub const SEED: usize = 32;

/// The credential in a file that may be locked.
///
/// # Errors
/// [`KeyError`] if there is none, or it cannot be read or opened.
pub fn load_seed(path: &Path, files: &dyn Files, protection: &Protection) -> Result<Secret<[u8; SEED]>, KeyError> {
    let bytes = protection.read(path, files)?;
    let seed = bytes.as_slice().try_into().map_err(|_| KeyError::Damaged(path.to_owned()))?;
    Ok(Secret::new(seed))
}

/// Writes a credential into a new file with mode 0600, under a protection.
///
/// # Errors
/// [`KeyError`] if there already is a file or it cannot be written.
pub fn save_seed(
    path: &Path,
    seed: &[u8; SEED],
    files: &dyn Files,
    protection: &Protection,
    random: &dyn Random,
) -> Result<(), KeyError> {
    save_new(files, path, &protection.seal(seed, random))
}

/// Whether a key file opens only with a passphrase.
///
/// # Errors
/// [`KeyError`] if there is none or it cannot be read.
pub fn is_locked(path: &Path, files: &dyn Files) -> Result<bool, KeyError> {
    let bytes = read_whole(path, files)?;
    match Protection::none().open(&bytes) {
        Ok(_) => Ok(false),
        Err(Shut::Locked) => Ok(true),
        Err(shut) => Err(shut.explain(path)),
    }
}

/// Puts key files under another protection: sets a passphrase, changes it or takes it away.
///
/// First each file gets both forms, then each keeps the new one alone. So at any moment all of them open under the old
/// protection, or all under the new one. After a crash in between, doing it again from the one that opens finishes it.
/// What a file held before is overwritten, as far as the disk does that in place.
///
/// # Errors
/// [`KeyError`]. If a file does not open under `from`, nothing was changed.
pub fn relock(
    paths: &[PathBuf],
    files: &dyn Files,
    from: &Protection,
    to: &Protection,
    random: &dyn Random,
) -> Result<(), KeyError> {
    let mut forms = Vec::new();
    for path in paths {
        let bytes = read_whole(path, files)?;
        let (old, plain) = from.open(&bytes).map_err(|shut| shut.explain(path))?;
        forms.push((path, Zeroizing::new(old.to_vec()), to.seal(&plain, random)));
    }
    let put = |path: &Path, bytes: &[u8]| {
        let put = durable::replace_wiping(files, path, bytes, random);
        put.map_err(|source| KeyError::Io { path: path.to_owned(), source })
    };
    for (path, old, new) in &forms {
        put(path, &both(old, new))?;
    }
    forms.iter().try_for_each(|(path, _, new)| put(path, new))
}

/// Removes a key file that never counted, and overwrites what it held.
pub(crate) fn discard(path: &Path, files: &dyn Files, random: &dyn Random) -> std::io::Result<()> {
    let Some(file) = folder::open_existing(files, path, Open::Write)? else { return Ok(()) };
    durable::wipe(&*file, random)?;
    files.remove(path)?;
    files.sync_folder(durable::parent(path))
}

fn read_whole(path: &Path, files: &dyn Files) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    match folder::read_as(files, path, Open::Secret, MOST) {
        Ok(Some(bytes)) => Ok(Zeroizing::new(bytes)),
        Ok(None) => Err(KeyError::Missing(path.to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(KeyError::Damaged(path.to_owned())),
        Err(source) => Err(KeyError::Io { path: path.to_owned(), source }),
    }
}

fn both(old: &[u8], new: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut body = Zeroizing::new(Vec::with_capacity(MOST));
    for form in [old, new] {
        // A form is shorter than `MOST`.
        body.extend_from_slice(&u16::try_from(form.len()).unwrap_or_default().to_be_bytes());
        body.extend_from_slice(form);
    }
    Zeroizing::new(durable::envelope(SLOTS_MARK, &body))
}

/// The forms in a key file.
fn forms(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    if !bytes.starts_with(SLOTS_MARK) {
        return Some(vec![bytes]);
    }
    let mut rest = durable::open_envelope(SLOTS_MARK, bytes)?;
    let mut forms = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let (form, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        forms.push(form);
        rest = after;
    }
    rest.is_empty().then_some(forms)
}

fn bound(cost: Cost, salt: &[u8; SALT]) -> Vec<u8> {
    [LOCKED_MARK, &cost.to_bytes(), salt].concat()
}

fn derive(words: &Secret<Vec<u8>>, cost: Cost, salt: &[u8; SALT]) -> Option<Secret<[u8; KEY]>> {
    let params = Params::new(cost.kib, cost.passes, cost.lanes, Some(KEY)).ok()?;
    let mut key = [0; KEY];
    let derived =
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password_into(words.expose(), salt, &mut key);
    let secret = derived.ok().map(|()| Secret::new(key));
    key.zeroize();
    secret
}
