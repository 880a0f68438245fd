//! Backs a home up: a copy of its record at one head, verified, which can be brought up to date later.
//!
//! The copy is laid out as a home is. It does not hold the keys that sign the chain: a restored home signs under keys of its
//! own, so that no holder of a copy can sign a second history from it. What is full and known to be whole in an older backup of the
//! same log is not copied again. The long part of that leaves the older backup as it is; only while journal, checkpoint and
//! head are exchanged, and the result is verified, the folder has no manifest and is no backup.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use ephor_base::{Digest, files::Files};
use ephor_record::ScanError;
use ephor_tlog::{Head, VerifierKeys, checkpoint};
use ephor_verify::history;
use ephor_verify::{Folder, folder};
use serde::Serialize;

use crate::{
    copy::{self, Copying, Cut},
    durable,
    head::PinnedHead,
    log::Config,
    manifest::{self, Manifest},
    marks,
    verify::{Against, verify},
};

/// Says that a backup has been begun, and of which log.
const UNFINISHED: &str = "unfinished";

/// A backup that is finished.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BackedUp {
    /// The name of the log.
    pub origin: String,
    /// The head it holds: everything that was acknowledged before it began.
    pub head: Head,
    /// How many entries of it lie in tiles and bundles; the others in the journal.
    pub published: u64,
    /// How many entries an older backup in the same folder already had; 0 if there was none.
    pub before: u64,
    /// Whether the copy was read again and verified; not where an older backup had everything.
    pub verified: bool,
}

/// What is being done, and how far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Entries copied.
    Copied {
        /// So many.
        entries: u64,
        /// Of so many.
        total: u64,
    },
    /// Entries of the copy verified.
    Verified {
        /// So many.
        entries: u64,
        /// Of so many.
        total: u64,
    },
}

/// A home was not backed up. It is as it was in any case.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The folder lies in the home, or the home in it. The caller's fault. Nothing was written.
    #[error("`{0}` is not apart from the home: name a folder elsewhere, best on another disk")]
    Inside(PathBuf),
    /// The folder holds something that is no backup of this log. The caller's fault. Nothing was written.
    #[error("`{0}` is neither empty nor a backup of this log: name another folder")]
    Foreign(PathBuf),
    /// The folder holds a backup of a later or of another history of this log. Nothing was written. Either the home was set
    /// back, or a holder of its keys signed a second history.
    #[error(
        "`{folder}` holds a backup of {size} entries that are not in the chain of this home: keep it, and name another folder"
    )]
    Diverged {
        /// Which folder.
        folder: PathBuf,
        /// How many entries that backup has.
        size: u64,
    },
    /// The folder holds a backup of entries that the home pruned since, so nothing shows that the home continues it. Nothing was
    /// written.
    #[error(
        "`{folder}` holds a backup of {size} entries, and the chain of this home was pruned up to entry {minimum}: keep it, and \
         name another folder"
    )]
    Outdated {
        /// Which folder.
        folder: PathBuf,
        /// How many entries that backup has.
        size: u64,
        /// Where the log begins.
        minimum: u64,
    },
    /// The home cannot be read, or is not whole; or the system would not write. The folder has no newer backup.
    #[error("the home was not backed up: {0}")]
    Scan(ScanError),
    /// The copy is not whole. The store's fault: its own, or that of the home. The folder holds no backup until it is made again.
    #[error("the copy in `{folder}` is not whole: {error}. Verify the home, then back it up again")]
    Wrong {
        /// Which folder.
        folder: PathBuf,
        /// What is wrong with it.
        error: ScanError,
    },
}

/// Copies the record of a home into `folder`, and verifies the copy. `extras` are further files of the home, as paths below
/// it; those that are not there are passed over. The signing keys must not be among them. Into `public`, below the folder, go
/// the keys that it was verified with: those in the home may be changed meanwhile, to some that have signed nothing of the copy. A node may write the home
/// meanwhile: see [`crate::Log::publish`] for having as much as possible published before.
///
/// # Errors
/// [`BackupError`]. The home is only read.
pub fn backup(
    home: &Config,
    extras: &[PathBuf],
    public: &Path,
    folder: &Path,
    keys: &VerifierKeys,
    files: &Arc<dyn Files>,
    mut progress: impl FnMut(Step),
) -> Result<BackedUp, BackupError> {
    let from = durable::parent(&home.folder);
    if folder.starts_with(from) || from.starts_with(folder) {
        return Err(BackupError::Inside(folder.to_owned()));
    }
    let older = look(folder, keys, &**files)?;
    let to = Config::in_home(folder);
    let before = older.as_ref().map_or_else(Head::empty, |older| older.head);
    let known = if older.is_some() { known(&to, files).map_err(BackupError::Scan)? } else { 0 };
    let copying = Copying { from: home, to: &to, files, known, tree: OnceLock::new() };
    if let Some(older) = &older
        && copying.is_at(older.head).map_err(BackupError::Scan)?
        && copying.has_the_same_sessions().map_err(BackupError::Scan)?
        && is_up_to_date(older, from, extras, public, keys, &**files).map_err(failed(folder))?
    {
        let (origin, head) = (older.origin.clone(), older.head);
        return Ok(BackedUp { origin, head, published: known, before: head.size, verified: false });
    }
    if older.is_none() {
        make(folder, keys, &**files).map_err(failed(folder))?;
    }
    let cut = copying.begin(before).map_err(|error| match error {
        ScanError::Pruned { minimum, .. } => {
            BackupError::Outdated { folder: folder.to_owned(), size: before.size, minimum }
        }
        error => BackupError::Scan(error),
    })?;
    if !cut.had {
        return Err(BackupError::Diverged { folder: folder.to_owned(), size: before.size });
    }
    let own = (public, keys.to_string());
    let copied = copy(&copying, &cut, extras, &own, &mut progress)?;
    if older.is_some() {
        unfinish(folder, keys, &**files).map_err(failed(folder))?;
    }
    copying.switch(&cut).map_err(BackupError::Scan)?;
    check(&to, keys, files, |entries, total| progress(Step::Verified { entries, total }))
        .map_err(|error| BackupError::Wrong { folder: folder.to_owned(), error })?;
    finish(&copying, &cut, keys, copied).map_err(BackupError::Scan)?;
    let (origin, head, published) = (keys.origin().to_owned(), cut.head, cut.published);
    Ok(BackedUp { origin, head, published, before: before.size, verified: true })
}

/// Whether what the record does not vouch for is in the home as a backup of the same head lists it.
fn is_up_to_date(
    older: &Manifest,
    home: &Path,
    extras: &[PathBuf],
    public: &Path,
    keys: &VerifierKeys,
    files: &dyn Files,
) -> io::Result<bool> {
    let listed = |path: &Path| older.files.iter().find(|(_, name)| name == path).map(|(digest, _)| *digest);
    for extra in extras.iter().filter(|extra| *extra != public) {
        if manifest::digest(&home.join(extra), files)? != listed(extra) {
            return Ok(false);
        }
    }
    Ok(listed(public) == Some(Digest::of(keys.to_string().as_bytes())))
}

/// What the manifest lists: the keys of the sessions, below the vault, and the other files, below the home.
struct Copied {
    sessions: Vec<PathBuf>,
    extras: Vec<PathBuf>,
}

fn copy(
    copying: &Copying<'_>,
    cut: &Cut,
    extras: &[PathBuf],
    (public, keys): &(&Path, String),
    progress: &mut impl FnMut(Step),
) -> Result<Copied, BackupError> {
    let total = cut.head.size;
    let mut copied = || {
        copying.copy_published(cut, |entries| progress(Step::Copied { entries, total }))?;
        let sessions = copying.copy_sessions()?;
        let (from, to) = (durable::parent(&copying.from.folder), durable::parent(&copying.to.folder));
        let extras: Vec<_> = extras.iter().filter(|extra| extra != public).cloned().collect();
        for extra in &extras {
            copying.copy_if_there(&from.join(extra), &to.join(extra))?;
        }
        let path = to.join(public);
        durable::put(&**copying.files, &path, keys.as_bytes()).map_err(copy::told(&path))?;
        copying.sync()?;
        Ok(Copied { sessions, extras: extras.into_iter().chain([public.to_path_buf()]).collect() })
    };
    copied().map_err(BackupError::Scan)
}

/// What the folder holds: nothing or an unfinished backup of this log, or an older one.
fn look(folder: &Path, keys: &VerifierKeys, files: &dyn Files) -> Result<Option<Manifest>, BackupError> {
    let foreign = || BackupError::Foreign(folder.to_owned());
    match Manifest::load(folder, files) {
        Ok(Some(manifest)) if manifest.origin == keys.origin() => return Ok(Some(manifest)),
        Ok(Some(_)) => return Err(foreign()),
        Err(error) if error.kind() != io::ErrorKind::InvalidData => return Err(failed(folder)(error)),
        _ => {}
    }
    let unfinished = folder::read_file(files, &folder.join(UNFINISHED), 1 << 12).map_err(failed(folder))?;
    let draft = durable::draft(Path::new(UNFINISHED));
    match unfinished {
        Some(origin) if origin == keys.origin().as_bytes() => Ok(None),
        Some(_) => Err(foreign()),
        None => {
            let names = folder::list(files, folder).map_err(failed(folder))?;
            if names.iter().all(|name| *name == draft) { Ok(None) } else { Err(foreign()) }
        }
    }
}

/// Up to which size an older backup has tiles and bundles.
fn known(copy: &Config, files: &Arc<dyn Files>) -> Result<u64, ScanError> {
    let published = marks::read_published(&copy.folder, files)?;
    Ok(published.map_or(0, |(_, published)| published.head.size))
}

/// Makes the folder, and notes what it is for.
fn make(folder: &Path, keys: &VerifierKeys, files: &dyn Files) -> io::Result<()> {
    durable::make_folder(files, folder)?;
    durable::replace(files, &folder.join(UNFINISHED), keys.origin().as_bytes())
}

/// From here on the folder holds no backup.
fn unfinish(folder: &Path, keys: &VerifierKeys, files: &dyn Files) -> io::Result<()> {
    make(folder, keys, files)?;
    durable::remove(files, &folder.join(manifest::NAME))?;
    files.sync_folder(folder)
}

/// Verifies a copy, with its own head.
pub(crate) fn check(
    copy: &Config,
    keys: &VerifierKeys,
    files: &Arc<dyn Files>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Head, ScanError> {
    let head = PinnedHead::load(&copy.head, &**files).map_err(ScanError::io(&copy.head))?;
    let against = Against { keys, head, vault: Some(&copy.vault), from: None };
    let report = verify(&copy.folder, files, against, |at| progress(at.entries, at.total))?;
    Ok(report.head)
}

/// Writes the manifest.
fn finish(copying: &Copying<'_>, cut: &Cut, keys: &VerifierKeys, copied: Copied) -> Result<(), ScanError> {
    let (files, folder) = (&**copying.files, durable::parent(&copying.to.folder));
    copying.forget_sessions(&copied.sessions)?;
    let sessions = copied.sessions.into_iter().map(|name| Path::new("vault").join(name));
    // Without one of these the log would look whole.
    let kept = history::kept_sizes(&*Folder::source(&copying.to.folder, copying.files))?;
    let kept = kept.into_iter().map(|size| checkpoint::kept_path(Path::new("chain"), size));
    let paths = sessions.chain(copied.extras).chain(kept).chain([PathBuf::from("head")]);
    let mut listed: Vec<(Digest, PathBuf)> = Vec::new();
    for path in paths {
        let full = folder.join(&path);
        if let Some(digest) = manifest::digest(&full, files).map_err(ScanError::io(&full))? {
            listed.push((digest, path));
        }
    }
    let manifest = Manifest { origin: keys.origin().to_owned(), head: cut.head, files: listed };
    let path = folder.join(manifest::NAME);
    let written = || {
        durable::replace(files, &path, manifest.to_text().as_bytes())?;
        durable::remove(files, &folder.join(UNFINISHED))?;
        files.sync_folder(folder)
    };
    written().map_err(ScanError::io(&path))
}

fn failed(folder: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = folder.to_owned();
    move |source| BackupError::Scan(ScanError::Io { path, source })
}
