//! The payload vault: private content, sealed under one key a session.
//!
//! A sealed content is a 24-byte nonce, then XChaCha20-Poly1305 of a 16-byte salt and the canonical CBOR of the content.
//! What is authenticated beside it is the session; the signed entry commits to the sealed bytes, so that no content can be
//! moved to another entry. Entries of version 1 authenticate their sequence as well. Each session's key is random and lies
//! in `vault/keys/`, in a file of the session's name, wrapped in the same way by the vault key of the node. To destroy that
//! file is to erase the content of the session for good. An empty file in `vault/erased/` stays, so that the session never gets
//! another key.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry as Entered},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, AeadInPlace as _, Payload},
};
use ephor_base::{
    Digest, Random, Secret, Seq, SessionId, cbor,
    files::{Files, Open},
};
use ephor_record::{Commitment, Content, Entry};
use ephor_verify::folder;
use zeroize::Zeroizing;

use crate::{
    durable,
    in_use::InUse,
    keys::{KeyError, save_new},
    protection::Protection,
    veil::Veil,
};

const VAULT_MARK: &[u8] = b"ephor vault key 1\n";
const DERIVED_MARK: &[u8] = b"ephor key derived from a vault key 1\n";
const SESSION_MARK: &[u8] = b"ephor session key 1\n";
const KEY: usize = 32;
const NONCE: usize = 24;
const SALT: usize = 16;
const TAG: usize = 16;
/// Bytes of the file of a session's key: the mark, the key as it is wrapped, and a SHA-256.
pub(crate) const SESSION_FILE: usize = SESSION_MARK.len() + NONCE + KEY + TAG + 32;

/// Whether these bytes are the whole file of a session's key, and not one being overwritten.
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

    /// What the record calls this key. It tells nothing of the key itself.
    #[must_use]
    pub fn name(&self) -> Digest {
        Digest(*self.derive("the name on the record").expose())
    }

    /// Another key that only a holder of this one can make, for one purpose (the one-step derivation of NIST SP 800-56C
    /// with SHA-256).
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Secret<[u8; KEY]> {
        Secret::new(Digest::of_parts(&[DERIVED_MARK, self.0.expose(), purpose.as_bytes()]).0)
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

/// The vault of a node: opens and seals content. It has the keys of sessions in memory only while those are in use.
pub struct Vault {
    folder: PathBuf,
    /// Where the contents lie: in the vault, but those of a chain that was moved aside are with that.
    contents: PathBuf,
    files: Arc<dyn Files>,
    key: Arc<VaultKey>,
    in_use: Mutex<BTreeMap<SessionId, Kept>>,
}

/// A session that is in use.
#[derive(Default)]
struct Kept {
    users: usize,
    /// Its key, once it was needed.
    key: Option<Arc<SessionKey>>,
    /// It was erased meanwhile.
    gone: bool,
}

/// Keys that one reader has opened. They go with it.
#[derive(Default)]
pub(crate) struct Opened(BTreeMap<SessionId, Option<Arc<SessionKey>>>);

/// The most keys that a reader has at once.
const MOST_OPENED: usize = 256;

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
        let (folder, contents) = (folder.to_owned(), folder.to_owned());
        Self { folder, contents, files, key, in_use: Mutex::default() }
    }

    /// The vault whose contents lie in `content` below another folder.
    #[must_use]
    pub fn with_contents(self, folder: &Path) -> Self {
        Self { contents: folder.to_owned(), ..self }
    }

    /// The folder around the contents.
    pub(crate) fn contents(&self) -> &Path {
        &self.contents
    }

    /// Opens the sealed content of an entry; nothing if the entry has none, or its session's key is gone.
    ///
    /// # Errors
    /// [`VaultError`] if the key cannot be read or does not open the content, or the content is not the one that the entry
    /// commits to.
    pub fn unseal(&self, entry: &Entry, sealed: &[u8]) -> Result<Option<Content>, VaultError> {
        self.unseal_for(&mut Opened::default(), entry, sealed)
    }

    /// As [`Vault::unseal`], for a reader who has `opened` other keys.
    pub(crate) fn unseal_for(
        &self,
        opened: &mut Opened,
        entry: &Entry,
        sealed: &[u8],
    ) -> Result<Option<Content>, VaultError> {
        let Some((session, commitment)) = entry.subject.session.zip(entry.content) else { return Ok(None) };
        let Opened(keys) = opened;
        if keys.len() >= MOST_OPENED && !keys.contains_key(&session) {
            keys.clear();
        }
        let key = match keys.entry(session) {
            Entered::Occupied(known) => known.into_mut(),
            Entered::Vacant(free) => free.insert(self.find(session)?),
        };
        let Some(key) = key else { return Ok(None) };
        // The session alone would let any content of it pass for this one.
        let own = Digest::of(sealed) == commitment.sealed;
        let content = own.then(|| key.unseal(&bound_to(entry.version, session, entry.seq), sealed)).flatten();
        content.map(Some).ok_or(VaultError::Damaged { session })
    }

    /// Whether no session has a key here.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        Ok(folder::list(&*self.files, &self.keys())?.is_empty() && self.misplaced()?.is_empty())
    }

    /// Makes the folders, if there are none, and moves keys that lie in the vault itself to their place.
    pub(crate) fn make(&self) -> io::Result<()> {
        durable::make_folder(&*self.files, &self.folder)?;
        durable::make_folder(&*self.files, &self.keys())?;
        durable::make_folder(&*self.files, &self.erased())?;
        let misplaced = self.misplaced()?;
        for name in &misplaced {
            self.files.rename(&self.folder.join(name), &self.keys().join(name))?;
        }
        // Also when none was: a name may have been given right before a crash.
        self.files.sync_folder(&self.keys())?;
        self.files.sync_folder(&self.folder)
    }

    /// The keys that lie where the first format had them.
    fn misplaced(&self) -> io::Result<Vec<PathBuf>> {
        let names = folder::list(&*self.files, &self.folder)?;
        let is_key = |name: &PathBuf| name.to_str().is_some_and(|name| name.parse::<SessionId>().is_ok());
        Ok(names.into_iter().filter(is_key).collect())
    }

    fn keys(&self) -> PathBuf {
        self.folder.join("keys")
    }

    fn erased(&self) -> PathBuf {
        self.folder.join("erased")
    }

    /// Whether the session was erased, so that it never gets a key again.
    pub(crate) fn is_erased(&self, session: SessionId) -> Result<bool, VaultError> {
        let path = self.erased().join(session.to_string());
        let found = folder::open_existing(&*self.files, &path, Open::Read);
        Ok(found.map_err(|source| VaultError::Io { session, source })?.is_some())
    }

    /// Destroys what is left of the keys of sessions, and keys of erased sessions that were put back.
    pub(crate) fn destroy_all(&self, sessions: &BTreeSet<SessionId>, random: &dyn Random) -> io::Result<()> {
        let is_there =
            |path: &PathBuf| folder::open_existing(&*self.files, path, Open::Read).map(|file| file.is_some());
        for session in sessions {
            let mut left = !is_there(&self.erased().join(session.to_string()))?;
            for path in self.paths(*session) {
                left |= is_there(&path)?;
            }
            if left {
                self.destroy(*session, random)?;
            }
        }
        let gone: BTreeSet<_> = folder::list(&*self.files, &self.erased())?.into_iter().collect();
        for name in folder::list(&*self.files, &self.keys())?.iter().filter(|name| gone.contains(*name)) {
            if let Some(session) = name.to_str().and_then(|name| name.parse().ok()) {
                self.destroy(session, random)?;
            }
        }
        Ok(())
    }

    /// Destroys the key of a session: overwritten, synced, removed. When it returns, the disk no longer gives it, as far
    /// as the disk overwrites in place. Done again, it does no harm.
    pub(crate) fn destroy(&self, session: SessionId, random: &dyn Random) -> io::Result<()> {
        if let Some(kept) = self.in_use()?.get_mut(&session) {
            // From here on nothing is sealed or opened with it; a sealing under way holds the last copy.
            (kept.key, kept.gone) = (None, true);
        }
        let gone = self.erased().join(session.to_string());
        if folder::open_existing(&*self.files, &gone, Open::Read)?.is_none() {
            durable::create(&*self.files, &gone)?;
            self.files.sync_folder(&self.erased())?;
        }
        let [path, misplaced] = self.paths(session);
        for path in [path.clone(), durable::draft(&path), misplaced.clone(), durable::draft(&misplaced)] {
            if let Some(file) = folder::open_existing(&*self.files, &path, Open::Write)? {
                durable::wipe(&*file, random)?;
                self.files.remove(&path)?;
            }
        }
        // Also when nothing was there: a removal before a crash may not have reached the disk.
        [self.keys(), self.folder.clone()].iter().try_for_each(|folder| self.files.sync_folder(folder))
    }

    /// Begins a use of a session.
    pub(crate) fn begin_use(&self, session: SessionId) -> io::Result<()> {
        let mut in_use = self.in_use()?;
        let kept = in_use.entry(session).or_default();
        kept.users = kept.users.saturating_add(1);
        Ok(())
    }

    /// Ends a use of a session. With the last its key goes.
    pub(crate) fn end_use(&self, session: SessionId) {
        let Ok(mut in_use) = self.in_use() else { return };
        if let Entered::Occupied(mut kept) = in_use.entry(session) {
            kept.get_mut().users = kept.get().users.saturating_sub(1);
            if kept.get().users == 0 {
                kept.remove();
            }
        }
    }

    /// The sessions in use.
    pub(crate) fn used(&self) -> io::Result<BTreeSet<SessionId>> {
        Ok(self.in_use()?.keys().copied().collect())
    }

    /// After a panic under this lock it is not known which keys are gone.
    fn in_use(&self) -> io::Result<MutexGuard<'_, BTreeMap<SessionId, Kept>>> {
        self.in_use.lock().map_err(|_| io::Error::other("a bug: a thread panicked over the keys; start the node again"))
    }

    /// The key of a session that is in use, if it was needed before.
    pub(crate) fn kept(&self, session: SessionId) -> Result<Option<Arc<SessionKey>>, VaultError> {
        let in_use = self.in_use().map_err(|source| VaultError::Io { session, source })?;
        Ok(in_use.get(&session).and_then(|kept| kept.key.clone()))
    }

    /// The key of a session, if it has one on the disk. Reads its file, unless it is in use.
    pub(crate) fn find(&self, session: SessionId) -> Result<Option<Arc<SessionKey>>, VaultError> {
        if let Some(key) = self.kept(session)? {
            return Ok(Some(key));
        }
        let Some(key) = self.read(session)?.map(Arc::new) else { return Ok(None) };
        self.keep(session, &key).map_err(|source| VaultError::Io { session, source })?;
        Ok(Some(key))
    }

    /// Keeps a key while its session is in use.
    fn keep(&self, session: SessionId, key: &Arc<SessionKey>) -> io::Result<()> {
        if let Some(kept) = self.in_use()?.get_mut(&session).filter(|kept| !kept.gone) {
            kept.key = Some(Arc::clone(key));
        }
        Ok(())
    }

    /// Writes the key of a session. When it returns, the disk has it.
    pub(crate) fn store(&self, session: SessionId, key: &Arc<SessionKey>, random: &dyn Random) -> io::Result<()> {
        let wrapped = seal(&self.key.0, &session.0, key.0.expose(), random);
        let [path, _] = self.paths(session);
        durable::replace_wiping(&*self.files, &path, &durable::envelope(SESSION_MARK, &wrapped), random)?;
        self.keep(session, key)
    }

    fn read(&self, session: SessionId) -> Result<Option<SessionKey>, VaultError> {
        // Whatever was put back.
        if self.is_erased(session)? {
            return Ok(None);
        }
        let mut found = None;
        for path in self.paths(session) {
            if found.is_none() {
                let bytes = folder::read_whole(&*self.files, &path, SESSION_FILE);
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

    /// What digests private things of this session, for the caller that uses it.
    pub(crate) fn veil(&self, used: InUse) -> Veil {
        Veil::new(self.0.expose(), Some(used))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;

    struct Fill(u8);

    impl Random for Fill {
        fn fill(&self, into: &mut [u8]) {
            into.fill(self.0);
        }
    }

    #[test]
    fn a_key_is_in_memory_only_while_its_session_is_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let vault = Vault::new(folder.path(), Arc::new(VaultKey::generate(&Fill(1))), Arc::new(Disk));
        vault.make().unwrap();
        let (session, key) = (SessionId([3; 16]), Arc::new(SessionKey::generate(&Fill(2))));
        vault.store(session, &key, &Fill(3)).unwrap();
        assert!(vault.find(session).unwrap().is_some() && vault.kept(session).unwrap().is_none());
        vault.begin_use(session).unwrap();
        vault.begin_use(session).unwrap();
        assert!(vault.find(session).unwrap().is_some() && vault.kept(session).unwrap().is_some());
        vault.end_use(session);
        assert!(vault.kept(session).unwrap().is_some());
        vault.end_use(session);
        assert!(vault.kept(session).unwrap().is_none());
        // An erasure reaches also who uses it.
        vault.begin_use(session).unwrap();
        vault.find(session).unwrap();
        vault.destroy(session, &Fill(4)).unwrap();
        assert!(vault.kept(session).unwrap().is_none() && vault.find(session).unwrap().is_none());
        assert!(vault.is_erased(session).unwrap());
    }

    #[test]
    fn what_a_crash_left_of_a_secret_is_overwritten_before_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(durable::draft(&path), b"half a secret").unwrap();
        let left = Disk.open(&durable::draft(&path), Open::Read).unwrap();
        durable::replace(&Disk, &path, b"another").unwrap();
        let mut bytes = [1; 32];
        assert_eq!(left.read_at(&mut bytes, 0).unwrap(), 13);
        assert_eq!(bytes[..13], [0; 13]);
    }
}
