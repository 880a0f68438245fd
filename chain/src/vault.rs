//! The payload vault: private content, sealed under one key a session.
//!
//! A sealed content is a 24-byte nonce, then XChaCha20-Poly1305 of a 16-byte salt and the canonical CBOR of the content.
//! What is authenticated beside it is the session; the signed entry commits to the sealed bytes, so that no content can be
//! moved to another entry. Entries of version 1 authenticate their sequence as well. Each session's key is random and lies
//! in `vault/keys/`, in a file of the session's name, wrapped in the same way by the vault key of the node. To destroy that
//! file is to erase the content of the session for good.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, AeadInPlace as _, Payload},
};
use ephor_base::{
    Digest, Random, Secret, Seq, SessionId, cbor,
    files::{Files, Open},
};
use zeroize::Zeroizing;

use crate::{
    durable,
    entry::{Commitment, Entry},
    keys::{KeyError, save_new},
    protection::Protection,
    record::Content,
    veil::Veil,
};

const VAULT_MARK: &[u8] = b"ephor vault key 1\n";
const SESSION_MARK: &[u8] = b"ephor session key 1\n";
const KEY: usize = 32;
const NONCE: usize = 24;
const SALT: usize = 16;
const TAG: usize = 16;
/// Bytes of the file of a session's key: the mark, the key as it is wrapped, and a SHA-256.
pub(crate) const SESSION_FILE: usize = SESSION_MARK.len() + NONCE + KEY + TAG + 32;

/// Whether these bytes are the whole file of a session's key, and not one that is being overwritten.
pub(crate) fn is_key_file(bytes: &[u8]) -> bool {
    durable::open_envelope(SESSION_MARK, bytes).is_some()
}

/// The key that wraps the keys of all sessions of a node.
pub struct VaultKey(Secret<[u8; KEY]>);

impl VaultKey {
    /// A new key.
    #[must_use]
    pub fn generate(random: &dyn Random) -> Self {
        Self(fresh(random))
    }

    /// The key in a file.
    ///
    /// # Errors
    /// [`KeyError`] if there is none or it cannot be read.
    pub fn load(path: &Path, files: &dyn Files) -> Result<Self, KeyError> {
        Self::load_with(path, files, &Protection::none())
    }

    /// The key in a file that may be locked.
    ///
    /// # Errors
    /// [`KeyError`] if there is none, or it cannot be read or opened.
    pub fn load_with(path: &Path, files: &dyn Files, protection: &Protection) -> Result<Self, KeyError> {
        let bytes = protection.read(path, files)?;
        let key = durable::open_envelope(VAULT_MARK, &bytes).and_then(|body| body.try_into().ok());
        key.map(|key| Self(Secret::new(key))).ok_or_else(|| KeyError::Damaged(path.to_owned()))
    }

    /// Writes the key into a new file with mode 0600. When it returns, the disk has it.
    ///
    /// # Errors
    /// [`KeyError`] if there already is a file or it cannot be written.
    pub fn save(&self, path: &Path, files: &dyn Files) -> Result<(), KeyError> {
        save_new(files, path, &self.to_bytes())
    }

    /// As [`VaultKey::save`], under a protection.
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

    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(durable::envelope(VAULT_MARK, self.0.expose()))
    }
}

impl std::fmt::Debug for VaultKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VaultKey")
    }
}

/// The key of a session could not be had. Nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The system would not read or write its file. The store's fault.
    #[error("the key of session {session} cannot be used: {source}")]
    Io {
        /// Which session.
        session: SessionId,
        /// What the system said.
        source: io::Error,
    },
    /// Its file was changed, or wrapped under another vault key.
    #[error("the key of session {session} is damaged, or belongs to another home")]
    Damaged {
        /// Which session.
        session: SessionId,
    },
}

/// The vault of a node: opens and seals content.
pub struct Vault {
    folder: PathBuf,
    files: Arc<dyn Files>,
    key: Arc<VaultKey>,
    sessions: Mutex<HashMap<SessionId, Option<Arc<SessionKey>>>>,
}

/// The key of one session.
pub(crate) struct SessionKey(Secret<[u8; KEY]>);

/// Content that was sealed, and what its entry says of it.
pub(crate) struct Sealed {
    pub(crate) commitment: Commitment,
    pub(crate) bytes: Vec<u8>,
}

/// Private content beside an entry, as far as it can be seen.
#[derive(Clone, PartialEq, Debug)]
pub enum Private {
    /// The entry has none.
    None,
    /// It has some, and this reader has no vault, or the vault no longer has the session's key.
    Sealed,
    /// It has this.
    Open(Content),
}

impl Vault {
    /// The vault in a folder.
    #[must_use]
    pub fn new(folder: &Path, key: Arc<VaultKey>, files: Arc<dyn Files>) -> Self {
        Self { folder: folder.to_owned(), files, key, sessions: Mutex::default() }
    }

    /// The folder of the vault.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the sealed content of an entry; nothing if the entry has none, or its session's key is gone.
    ///
    /// # Errors
    /// [`VaultError`] if the key cannot be read or does not open the content, or the content is not the one that the entry
    /// commits to.
    pub fn unseal(&self, entry: &Entry, sealed: &[u8]) -> Result<Option<Content>, VaultError> {
        let Some((session, commitment)) = entry.subject.session.zip(entry.content) else { return Ok(None) };
        let Some(key) = self.find(session)? else { return Ok(None) };
        // The session alone would let any content of it pass for this one.
        let own = Digest::of(sealed) == commitment.sealed;
        let content = own.then(|| key.unseal(&bound_to(entry.version, session, entry.seq), sealed)).flatten();
        content.map(Some).ok_or(VaultError::Damaged { session })
    }

    /// Whether no session has a key here.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        Ok(durable::list(&*self.files, &self.keys())?.is_empty() && self.misplaced()?.is_empty())
    }

    /// Makes the folders, if there are none, and moves keys that lie in the vault itself to their place.
    pub(crate) fn make(&self) -> io::Result<()> {
        durable::make_folder(&*self.files, &self.folder)?;
        durable::make_folder(&*self.files, &self.keys())?;
        let misplaced = self.misplaced()?;
        for name in &misplaced {
            self.files.rename(&self.folder.join(name), &self.keys().join(name))?;
        }
        if misplaced.is_empty() {
            return Ok(());
        }
        self.files.sync_folder(&self.keys())?;
        self.files.sync_folder(&self.folder)
    }

    /// The keys that lie where the first format had them.
    fn misplaced(&self) -> io::Result<Vec<PathBuf>> {
        let names = durable::list(&*self.files, &self.folder)?;
        let is_key = |name: &PathBuf| name.to_str().is_some_and(|name| name.parse::<SessionId>().is_ok());
        Ok(names.into_iter().filter(is_key).collect())
    }

    fn keys(&self) -> PathBuf {
        self.folder.join("keys")
    }

    /// Destroys what is left of the keys of sessions.
    pub(crate) fn destroy_all(&self, sessions: &BTreeSet<SessionId>, random: &dyn Random) -> io::Result<()> {
        for session in sessions {
            for path in self.paths(*session) {
                if durable::open_existing(&*self.files, &path, Open::Read)?.is_some() {
                    self.destroy(*session, random)?;
                }
            }
        }
        Ok(())
    }

    /// Destroys the key of a session: overwritten, synced, removed. When it returns, the disk no longer gives it, as far
    /// as the disk overwrites in place. Done again, it does no harm.
    pub(crate) fn destroy(&self, session: SessionId, random: &dyn Random) -> io::Result<()> {
        {
            // From here on nothing is sealed or opened with it; a sealing under way holds the last copy.
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.insert(session, None);
        }
        let [path, misplaced] = self.paths(session);
        for path in [path.clone(), durable::draft(&path), misplaced.clone(), durable::draft(&misplaced)] {
            if let Some(file) = durable::open_existing(&*self.files, &path, Open::Write)? {
                durable::wipe(&*file, random)?;
                self.files.remove(&path)?;
            }
        }
        // Also when nothing was there: a removal before a crash may not have reached the disk.
        [self.keys(), self.folder.clone()].iter().try_for_each(|folder| self.files.sync_folder(folder))
    }

    /// The key of a session, if it has one on the disk.
    pub(crate) fn find(&self, session: SessionId) -> Result<Option<Arc<SessionKey>>, VaultError> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sessions.get(&session) {
            return Ok(known.clone());
        }
        let found = self.read(session)?.map(Arc::new);
        sessions.insert(session, found.clone());
        Ok(found)
    }

    /// Writes the key of a session. When it returns, the disk has it.
    pub(crate) fn store(&self, session: SessionId, key: &Arc<SessionKey>, random: &dyn Random) -> io::Result<()> {
        let wrapped = seal(&self.key.0, &session.0, key.0.expose(), random);
        let [path, _] = self.paths(session);
        durable::replace(&*self.files, &path, &durable::envelope(SESSION_MARK, &wrapped))?;
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(session, Some(Arc::clone(key)));
        Ok(())
    }

    fn read(&self, session: SessionId) -> Result<Option<SessionKey>, VaultError> {
        let mut found = None;
        for path in self.paths(session) {
            if found.is_none() {
                let bytes = durable::read_whole(&*self.files, &path, SESSION_FILE);
                found = bytes.map_err(|source| VaultError::Io { session, source })?;
            }
        }
        let Some(bytes) = found else { return Ok(None) };
        let wrapped = durable::open_envelope(SESSION_MARK, &bytes).ok_or(VaultError::Damaged { session })?;
        let key = unseal(&self.key.0, &session.0, wrapped).ok_or(VaultError::Damaged { session })?;
        let key = key.as_slice().try_into().map_err(|_| VaultError::Damaged { session })?;
        Ok(Some(SessionKey(Secret::new(key))))
    }

    /// Where the key of a session lies, and where the first format had it.
    fn paths(&self, session: SessionId) -> [PathBuf; 2] {
        let name = session.to_string();
        [self.keys().join(&name), self.folder.join(name)]
    }
}

impl SessionKey {
    /// A new key.
    pub(crate) fn generate(random: &dyn Random) -> Self {
        Self(fresh(random))
    }

    /// What digests private things of this session.
    pub(crate) fn veil(&self) -> Veil {
        Veil::new(self.0.expose())
    }

    /// Seals content of the session, for an entry of the version that is written.
    pub(crate) fn seal(&self, session: SessionId, content: &Content, random: &dyn Random) -> Option<Sealed> {
        let plain = Zeroizing::new(cbor::to_vec(content));
        let mut bytes = Vec::with_capacity(sealed_length(plain.len()));
        // Nonce and salt in one: each time may be a call of the system.
        bytes.resize(NONCE + SALT, 0);
        random.fill(&mut bytes);
        bytes.extend_from_slice(&plain);
        let content = Digest::of(bytes.get(NONCE..)?);
        encrypt(&self.0, &session.0, &mut bytes)?;
        let length = u32::try_from(bytes.len()).ok()?;
        Some(Sealed { commitment: Commitment { content, sealed: Digest::of(&bytes), length }, bytes })
    }

    fn unseal(&self, bound: &[u8], sealed: &[u8]) -> Option<Content> {
        let plain = unseal(&self.0, bound, sealed)?;
        cbor::from_slice(plain.get(SALT..)?).ok()
    }
}

/// The length of the sealed form of content whose canonical form has this length.
pub(crate) const fn sealed_length(content: usize) -> usize {
    content.saturating_add(NONCE + SALT + TAG)
}

/// What is authenticated beside the content of an entry of this version.
fn bound_to(version: u16, session: SessionId, seq: Seq) -> Vec<u8> {
    match version {
        1 => [session.0.as_slice(), &seq.0.to_be_bytes()].concat(),
        _ => session.0.to_vec(),
    }
}

fn fresh(random: &dyn Random) -> Secret<[u8; KEY]> {
    let mut key = Zeroizing::new([0; KEY]);
    random.fill(&mut *key);
    Secret::new(*key)
}

fn seal(key: &Secret<[u8; KEY]>, bound: &[u8], plain: &[u8], random: &dyn Random) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(NONCE.saturating_add(plain.len()).saturating_add(TAG));
    bytes.resize(NONCE, 0);
    random.fill(&mut bytes);
    bytes.extend_from_slice(plain);
    // The cipher refuses only texts longer than 256 GiB.
    encrypt(key, bound, &mut bytes).map_or_else(Vec::new, |()| bytes)
}

/// Encrypts the text that stands behind its nonce, and puts the tag behind both.
fn encrypt(key: &Secret<[u8; KEY]>, bound: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
    let (nonce, text) = bytes.split_first_chunk_mut::<NONCE>()?;
    let cipher = XChaCha20Poly1305::new(key.expose().into());
    let tag = cipher.encrypt_in_place_detached(XNonce::from_slice(nonce), bound, text).ok()?;
    bytes.extend_from_slice(&tag);
    Some(())
}

fn unseal(key: &Secret<[u8; KEY]>, bound: &[u8], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, text) = sealed.split_first_chunk::<NONCE>()?;
    let cipher = XChaCha20Poly1305::new(key.expose().into());
    cipher.decrypt(XNonce::from_slice(nonce), Payload { msg: text, aad: bound }).ok().map(Zeroizing::new)
}
