//! Restores a home from a backup, under a new origin.
//!
//! The copy is verified before anything is written, and its record then lies in the home under `quarantine`, readable. The
//! chain that begins beside it has new keys, and its first entry names the last head of the copy: the node whose copy it was
//! may have gone on, and two histories under one name would look like a forgery. A note in the home says that it is being
//! restored; it does not open before all is done. Restoring again goes on.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use ephor_base::{Clock, Digest, Random, files::Files};
use ephor_record::ScanError;
use ephor_tlog::{Head, VerifierKeys};
use ephor_verify::folder;

use crate::{
    accept::{self, AcceptError, Accepted},
    backup::{self, Step},
    copy::{Copying, Cut, told},
    durable,
    error::OpenError,
    keys::KeyError,
    log::Config,
    manifest::{self, Manifest},
    open,
    rotation::KeyFile,
    vault::VaultKey,
};

/// Says in a home that it is being restored, and from which copy.
const NOTE: &str = "restoring";
/// What may lie in an empty home: the lock of the process that restores it.
const LOCK: &str = "lock";

/// A home was not restored, or not wholly.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The folder holds no finished backup. Nothing was written.
    #[error("`{0}` holds no finished backup: it has no whole manifest. Back up again, or use another copy")]
    NoBackup(PathBuf),
    /// A file of the copy was changed since, or is gone. Nothing was written.
    #[error(
        "the copy is not whole: `{0}` is missing or is not as it was backed up. Nothing was restored; use another copy"
    )]
    Changed(PathBuf),
    /// The record in the copy is not whole, or cannot be read. Nothing was written.
    #[error("the copy is not whole: {0}. Nothing was restored; use another copy")]
    Scan(ScanError),
    /// The vault key in the copy is not the one that its record names. Nothing was written.
    #[error(
        "`{0}` is not the vault key that the record in the copy names: it was exchanged. Nothing was restored; use another copy"
    )]
    OtherVault(PathBuf),
    /// An earlier version wrote the record in the copy, and it names no vault key. Nothing was written.
    #[error(
        "the record in the copy does not name its vault key `{0}`, as an earlier version wrote it: start a node of this version on \
         the home once, and back it up again"
    )]
    UnnamedVault(PathBuf),
    /// The vault key in the copy cannot be used. Nothing was written.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is something in the home. The caller's fault. Nothing was written.
    #[error("the home `{0}` is not empty: restore into an empty one")]
    NotEmpty(PathBuf),
    /// The home was being restored from another copy. Nothing was written.
    #[error("the home `{0}` was being restored from another copy: go on with that one, or remove the home")]
    OtherCopy(PathBuf),
    /// The system would not do it. The home does not open; restoring again goes on.
    #[error("{doing} failed: {source}; restore again to go on")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The new chain could not be begun. The home does not open; restoring again goes on.
    #[error("{0}; restore again to go on")]
    Begin(AcceptError),
}

/// What comes into a home beside the record of a copy. Nothing else does: no signature covers what else lies in a copy.
pub struct Taken<'a> {
    /// The file of the new signing keys.
    pub signing: KeyFile,
    /// Where the vault key lies, below the copy and below the home. It is taken if the record names it, and locked as the
    /// signing keys are.
    pub vault: &'a Path,
    /// Further files, as paths below the home, that the caller has held against the record.
    pub also: &'a [(PathBuf, Vec<u8>)],
}

/// Restores the backup in `copy` into the empty `home`, and begins a new chain there, with new signing keys. `keys` are the
/// public keys of the log in the copy. The caller holds the lock of the home.
///
/// # Errors
/// [`RestoreError`]. The copy is only read. A home that was begun does not open before restoring again has finished it.
#[expect(clippy::too_many_arguments, reason = "each is a thing of the world that the caller injects")]
pub fn restore(
    copy: &Path,
    home: &Config,
    taken: Taken<'_>,
    keys: &VerifierKeys,
    files: &Arc<dyn Files>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    version: &str,
    mut progress: impl FnMut(Step),
) -> Result<Accepted, RestoreError> {
    let from = Config::in_home(copy);
    let manifest = check(copy, &from, keys, files, &mut progress)?;
    let vault = named_vault(copy, &from, &taken, keys, files)?;
    let restoring = Restoring { from: &from, home, taken: &taken, files, manifest: &manifest };
    restoring.enter()?;
    if !restoring.is_copied()? {
        restoring.copy(&vault, &*random, &mut progress)?;
    }
    let vault = Arc::new(vault);
    let Head { size, .. } = manifest.head;
    let reason = format!("restored from a copy of {size} entries");
    let accepted = accept::follow(home, &taken.signing, keys, reason, vault, files, clock, random, version);
    let accepted = accepted.map_err(RestoreError::Begin)?;
    restoring.leave()?;
    Ok(accepted)
}

/// Whether the home is in the middle of being restored.
///
/// # Errors
/// What the system says.
pub fn is_restoring(home: &Path, files: &dyn Files) -> io::Result<bool> {
    Ok(folder::open_existing(files, &home.join(NOTE), ephor_base::files::Open::Read)?.is_some())
}

/// A home that is being restored does not open.
pub(crate) fn check_restored(config: &Config, files: &dyn Files) -> Result<(), OpenError> {
    let home = durable::parent(&config.folder);
    let restoring = is_restoring(home, files);
    let restoring = restoring.map_err(|source| OpenError::Io { doing: "looking at the home".to_owned(), source })?;
    if restoring { Err(OpenError::Restoring { home: home.to_owned() }) } else { Ok(()) }
}

/// Holds a copy against its manifest, its signatures and its head.
fn check(
    copy: &Path,
    from: &Config,
    keys: &VerifierKeys,
    files: &Arc<dyn Files>,
    progress: &mut impl FnMut(Step),
) -> Result<Manifest, RestoreError> {
    let manifest = match Manifest::load(copy, &**files) {
        Ok(Some(manifest)) => manifest,
        Err(error) if error.kind() != io::ErrorKind::InvalidData => return Err(io("reading the copy")(error)),
        _ => return Err(RestoreError::NoBackup(copy.to_owned())),
    };
    for (digest, path) in &manifest.files {
        let found = manifest::digest(&copy.join(path), &**files);
        if found.ok().flatten() != Some(*digest) {
            return Err(RestoreError::Changed(path.clone()));
        }
    }
    let verified = |entries, total| progress(Step::Verified { entries, total });
    let head = backup::check(from, keys, files, verified).map_err(RestoreError::Scan)?;
    if head != manifest.head || keys.origin() != manifest.origin {
        return Err(RestoreError::Changed(PathBuf::from(manifest::NAME)));
    }
    Ok(manifest)
}

/// The vault key of a copy, which its record must name.
fn named_vault(
    copy: &Path,
    from: &Config,
    taken: &Taken<'_>,
    keys: &VerifierKeys,
    files: &Arc<dyn Files>,
) -> Result<VaultKey, RestoreError> {
    let path = copy.join(taken.vault);
    let vault = VaultKey::load_with(&path, &**files, &taken.signing.protection)?;
    let looked = open::look(from, files, keys).map_err(RestoreError::Scan)?;
    match looked.scan.rules.vault() {
        Some(named) if named == vault.name() => Ok(vault),
        Some(_) => Err(RestoreError::OtherVault(path)),
        None => Err(RestoreError::UnnamedVault(path)),
    }
}

struct Restoring<'a> {
    from: &'a Config,
    home: &'a Config,
    taken: &'a Taken<'a>,
    files: &'a Arc<dyn Files>,
    manifest: &'a Manifest,
}

impl Restoring<'_> {
    fn folder(&self) -> &Path {
        durable::parent(&self.home.folder)
    }

    fn note(&self) -> String {
        Digest::of(self.manifest.to_text().as_bytes()).to_string()
    }

    /// Notes that the home is being restored; goes on with one that was.
    fn enter(&self) -> Result<(), RestoreError> {
        let (files, folder) = (&**self.files, self.folder());
        let note = folder::read_file(files, &folder.join(NOTE), 1 << 10).map_err(io("looking at the home"))?;
        match note {
            Some(note) if note == self.note().as_bytes() => return Ok(()),
            Some(_) => return Err(RestoreError::OtherCopy(folder.to_owned())),
            None => {}
        }
        let names = folder::list(files, folder).map_err(io("looking at the home"))?;
        let draft = durable::draft(Path::new(NOTE));
        if !names.iter().all(|name| *name == Path::new(LOCK) || *name == draft) {
            return Err(RestoreError::NotEmpty(folder.to_owned()));
        }
        let noted = || {
            durable::make_folder(files, folder)?;
            durable::replace(files, &folder.join(NOTE), self.note().as_bytes())
        };
        noted().map_err(io("making the home"))
    }

    /// Whether everything was copied before: then the new chain is being made, or there.
    fn is_copied(&self) -> Result<bool, RestoreError> {
        let places = folder::list(&**self.files, &self.folder().join("quarantine"));
        Ok(!places.map_err(io("looking at the home"))?.is_empty())
    }

    fn copy(&self, vault: &VaultKey, random: &dyn Random, progress: &mut impl FnMut(Step)) -> Result<(), RestoreError> {
        let copying = Copying { from: self.from, to: self.home, files: self.files, known: 0, tree: OnceLock::new() };
        let mut copied = || {
            let cut: Cut = copying.begin(Head::empty())?;
            let total = cut.head.size;
            copying.copy_published(&cut, |entries| progress(Step::Copied { entries, total }))?;
            copying.copy_sessions()?;
            for (path, bytes) in self.taken.also {
                let target = self.folder().join(path);
                durable::put(&**self.files, &target, bytes).map_err(told(&target))?;
            }
            copying.sync()?;
            copying.switch(&cut)
        };
        self.save(vault, random)?;
        copied().map_err(|error| match error {
            ScanError::Io { source, .. } => io("copying")(source),
            error => RestoreError::Scan(error),
        })
    }

    /// Saves the vault key that was held against the record.
    fn save(&self, vault: &VaultKey, random: &dyn Random) -> Result<(), RestoreError> {
        let path = self.folder().join(self.taken.vault);
        match vault.save_with(&path, &**self.files, &self.taken.signing.protection, random) {
            // Restoring was interrupted behind this.
            Err(KeyError::Exists(_)) => Ok(()),
            saved => Ok(saved?),
        }
    }

    /// All is done.
    fn leave(&self) -> Result<(), RestoreError> {
        let (files, folder) = (&**self.files, self.folder());
        let left = || {
            durable::remove(files, &folder.join(NOTE))?;
            files.sync_folder(folder)
        };
        left().map_err(io("finishing the home"))
    }
}

fn io(doing: &'static str) -> impl FnOnce(io::Error) -> RestoreError {
    move |source| RestoreError::Io { doing, source }
}
