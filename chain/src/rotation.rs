//! Changing the signing keys of a log.
//!
//! The new keys are written beside the old ones first. Then an entry names them, the last of a batch that the old keys
//! sign; the next batch is signed by the new ones and confirms them. Last, the new file takes the place of the old one. A
//! crash anywhere leaves a home that opens: which keys sign is what the record says, and the other file is finished off.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use ephor_base::{
    OperatorId, Random, Receipt, Seq,
    files::{Files, Open},
};
use ephor_record::{Fact, Record, Subject};
use ephor_tlog::VerifierKeys;
use ephor_verify::folder;

use crate::{
    durable,
    error::AppendError,
    keys::{KeyError, SigningKeys},
    log::{self, Log},
    protection::{self, Protection},
    queue::{Queue, Reserve},
};

/// The signing keys of a home: those that sign, and perhaps those that were to follow them when the node died.
#[derive(Debug)]
pub struct Signers {
    current: SigningKeys,
    next: Option<SigningKeys>,
}

impl From<SigningKeys> for Signers {
    fn from(current: SigningKeys) -> Self {
        Self { current, next: None }
    }
}

impl Signers {
    /// The public keys of those that sign, as far as the file says.
    #[must_use]
    pub const fn verifier(&self) -> &VerifierKeys {
        self.current.verifier()
    }

    /// Whether these are among them.
    pub(crate) fn has(&self, keys: &VerifierKeys) -> bool {
        [Some(&self.current), self.next.as_ref()].into_iter().flatten().any(|own| own.verifier() == keys)
    }

    /// The keys that the record says are in force; all that there are where there is no record yet.
    pub(crate) fn in_force(self, keys: Option<&VerifierKeys>) -> Option<SigningKeys> {
        let Some(keys) = keys else { return Some(self.current) };
        [Some(self.current), self.next].into_iter().flatten().find(|signing| signing.verifier() == keys)
    }
}

/// The file of the signing keys, and how it is protected. The keys that are to follow lie beside it, as `NAME.next`.
#[derive(Clone, Debug)]
pub struct KeyFile {
    /// Where it lies.
    pub path: PathBuf,
    /// How it is protected.
    pub protection: Arc<Protection>,
}

impl From<&Path> for KeyFile {
    fn from(path: &Path) -> Self {
        Self { path: path.to_owned(), protection: Arc::default() }
    }
}

impl KeyFile {
    /// Where the keys lie that are to follow.
    #[must_use]
    pub fn next(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".next");
        PathBuf::from(name)
    }

    /// The keys in it.
    ///
    /// # Errors
    /// [`KeyError`] if there are none, or they cannot be read or opened.
    pub fn load(&self, files: &dyn Files) -> Result<SigningKeys, KeyError> {
        SigningKeys::load_with(&self.path, files, &self.protection)
    }

    /// The keys in it, and those that are to follow.
    ///
    /// # Errors
    /// [`KeyError`] if there are none, or they cannot be read or opened.
    pub fn signers(&self, files: &dyn Files) -> Result<Signers, KeyError> {
        let current = self.load(files)?;
        let next = match SigningKeys::load_with(&self.next(), files, &self.protection) {
            Ok(next) => Some(next),
            // Only if the record names them does it matter, and then the log does not open without them.
            Err(KeyError::Missing(_) | KeyError::Damaged(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(Signers { current, next })
    }

    /// Writes the keys that are to follow. When it returns, the disk has them. Only then may [`Log::rotate`] name them.
    ///
    /// # Errors
    /// [`KeyError`] if they cannot be written.
    pub fn prepare(&self, next: &SigningKeys, files: &dyn Files, random: &dyn Random) -> Result<(), KeyError> {
        self.discard_next(files, random)?;
        next.save_with(&self.next(), files, &self.protection, random)
    }

    /// Makes the files say what the record says: keys that were to follow take the place of the others if they are in
    /// force, and are removed if they are not.
    ///
    /// # Errors
    /// [`KeyError`] if the files cannot be read or written.
    pub fn settle(&self, in_force: &VerifierKeys, files: &dyn Files, random: &dyn Random) -> Result<(), KeyError> {
        let Signers { current, next } = self.signers(files)?;
        if current.verifier() == in_force || next.is_none_or(|next| next.verifier() != in_force) {
            return self.discard_next(files, random);
        }
        let settle = || {
            let before = folder::open_existing(files, &self.path, Open::Write)?;
            files.rename(&self.next(), &self.path)?;
            files.sync_folder(durable::parent(&self.path))?;
            // A thief of the old keys could sign another history up to here.
            before.map_or(Ok(()), |before| durable::wipe(&*before, random))
        };
        settle().map_err(|source| KeyError::Io { path: self.path.clone(), source })
    }

    fn discard_next(&self, files: &dyn Files, random: &dyn Random) -> Result<(), KeyError> {
        let path = self.next();
        protection::discard(&path, files, random).map_err(|source| KeyError::Io { path, source })
    }
}

impl Log {
    /// The keys that sign from the next checkpoint on.
    #[must_use]
    pub fn keys(&self) -> Option<VerifierKeys> {
        self.shared().lock().rules.keys().map(|keys| &**keys).cloned()
    }

    /// Has other keys sign the log from the next checkpoint on: records them, and confirms that under them. They were
    /// made by [`SigningKeys::generate_next`] and lie on the disk; [`KeyFile::settle`] comes next. Returns where the record
    /// names them.
    ///
    /// # Errors
    /// [`AppendError`]. If it was refused, nothing has changed; if the log has stopped, the next opening shows which keys
    /// sign.
    pub fn rotate(
        &self,
        keys: SigningKeys,
        operator: OperatorId,
    ) -> impl Future<Output = Result<Seq, AppendError>> + Send + 'static + use<> {
        let shared = Arc::clone(self.shared());
        async move {
            let named = keys.verifier();
            let (ed25519, ml_dsa_65) = (named.ed25519().to_owned(), named.ml_dsa_65().to_owned());
            if shared.lock().rules.keys().is_some_and(|signing| **signing == *named) {
                return Err(AppendError::Misplaced("these keys sign already"));
            }
            let subject = Subject { operator: Some(operator), ..Subject::default() };
            let record = Record { subject, fact: Fact::Keys { ed25519, ml_dsa_65 }, content: None };
            let successor = Mutex::new(Some(Box::new(keys)));
            let also = |queue: &mut Queue| {
                queue.batch.successor = successor.lock().unwrap_or_else(PoisonError::into_inner).take();
                log::wait(queue)
            };
            let (named, waiter) = log::take(&shared, &[&record], Reserve::None, also).await?;
            log::settled(waiter).await?;
            // The same words under the new keys: a verifier that is given those finds a checkpoint that they have signed.
            let (_, waiter) = log::take(&shared, &[&record], Reserve::None, log::wait).await?;
            log::settled(waiter).await?;
            log::first(named).map(|Receipt { seq, .. }| seq)
        }
    }
}

#[cfg(test)]
mod tests;
