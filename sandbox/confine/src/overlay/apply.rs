//! Applies a list of changes to the workspace, all or nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Mode, RenameFlags, fchmod, mkdirat, renameat_with, symlinkat, unlinkat},
    io::Errno,
};

use super::{
    After, Before, Change, Changes, Keep, Kind, Protection,
    read::{OWN, digest},
    tree::{Folder, Found, Tree, date},
};

/// The staging folder in the workspace, for new files before and old files after the exchange. A number follows.
const STAGING: &str = ".ephor-staging-";
/// The most staging folders that processes killed in the middle may have left.
const MOST_STAGING: u32 = 1_000;

/// Why a list was not applied. Unless a variant says otherwise, the workspace is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The caller protects some of the paths.
    #[error("the command has changed {} protected paths, `{}` first", .paths.len(), .paths.first().map(|path| path.display().to_string()).unwrap_or_default())]
    Protected {
        /// All of them, in order.
        paths: Vec<PathBuf>,
    },
    /// The path has changed since the list was made: another process writes to the workspace.
    #[error("`{path}` is not what it was when the command had ended")]
    Stale {
        /// The path.
        path: PathBuf,
    },
    /// The caller could not keep what a change replaces.
    #[error("what `{path}` holds could not be kept for undo")]
    Keep {
        /// The path.
        path: PathBuf,
        /// What the caller said.
        source: io::Error,
    },
    /// A file of the upper layer has changed since the list was made.
    #[error("`{path}` in the upper layer is not what it was when the list was made")]
    Other {
        /// The path.
        path: PathBuf,
    },
    /// The error of the system.
    #[error("`{path}` could not be changed")]
    Io {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A change failed, and so did undoing the ones before it. The workspace is partly changed; the caller has kept its state.
    #[error("the workspace is partly changed: {because}, and `{}` could not be put back", .left.first().map(|path| path.display().to_string()).unwrap_or_default())]
    Torn {
        /// Why the change failed.
        because: Box<ApplyError>,
        /// The paths that could not be put back.
        left: Vec<PathBuf>,
    },
    /// Everything was applied, and the staging folder with what was replaced could not be removed.
    #[error("all changes were applied, but `{path}` could not be removed")]
    Staging {
        /// The folder, from the workspace down.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

pub(super) fn apply(
    changes: &Changes,
    protection: &dyn Fn(&Path) -> Protection,
    keep: &mut Keep<'_>,
) -> Result<(), ApplyError> {
    let list = &*changes.list;
    let paths = list.iter().map(|change| &change.path);
    let paths: Vec<_> = paths.filter(|path| protection(path) == Protection::Protected).cloned().collect();
    if !paths.is_empty() {
        return Err(ApplyError::Protected { paths });
    }
    if list.is_empty() {
        return Ok(());
    }
    list.iter().try_for_each(|change| hand_over(&changes.workspace, change, keep))?;
    let mut transaction = Transaction::begin(&changes.workspace, list)?;
    let done = transaction.stage(&changes.upper, list).and_then(|()| transaction.change(list));
    done.map_err(|because| transaction.put_back(because))?;
    transaction.end(transaction.mode).map_err(|source| ApplyError::Staging { path: (&transaction.name).into(), source })
}

fn failed(path: &Path) -> impl Fn(io::Error) -> ApplyError {
    move |source| ApplyError::Io { path: path.into(), source }
}

fn in_root(source: io::Error) -> ApplyError {
    failed(Path::new(""))(source)
}

/// Gives the caller what the change replaces.
fn hand_over(tree: &Tree, change: &Change, keep: &mut Keep<'_>) -> Result<(), ApplyError> {
    let Some(before) = &change.before else { return Ok(()) };
    let failed = failed(&change.path);
    let (parent, name) = tree.parent(&change.path).map_err(&failed)?;
    let file = match before.kind {
        Kind::File(_) => Some(parent.file(name).map_err(&failed)?),
        Kind::Folder | Kind::Link(_) | Kind::Special => None,
    };
    fresh(&parent, name, change, before)?;
    keep(&change.path, before, file.as_ref()).map_err(|source| ApplyError::Keep { path: change.path.clone(), source })
}

/// Refuses a path whose state is no longer `before`.
fn fresh(parent: &Folder, name: &OsStr, change: &Change, before: &Before) -> Result<Found, ApplyError> {
    let found = parent.look(name).map_err(failed(&change.path))?;
    let same = |found: &Found| {
        let (is, was) = (found.stamp(), before.stamp);
        if before.kind == Kind::Folder {
            found.is_folder() && (is.device, is.inode) == (was.device, was.inode)
        } else {
            is == was && found.mode() == before.mode
        }
    };
    found.filter(same).ok_or_else(|| ApplyError::Stale { path: change.path.clone() })
}

/// A completed step, with what it takes to undo it.
enum Done {
    /// The file at the path was moved to the staging folder, under the number of its change.
    Removed(PathBuf, usize),
    /// A folder with these permissions was removed.
    RemovedFolder(PathBuf, u32),
    /// The file at the path was exchanged with the one in the staging folder.
    Exchanged(PathBuf, usize),
    /// The file in the staging folder was moved to the path.
    Placed(PathBuf, usize),
    /// A folder was created.
    MadeFolder(PathBuf),
    /// The folder had these permissions before.
    Permitted(PathBuf, u32),
}

/// A list while it is applied.
struct Transaction<'a> {
    /// The workspace, which its owner can list and write to until the end.
    tree: &'a Tree,
    staging: Folder,
    name: OsString,
    /// The mode of the workspace at the beginning.
    before: u32,
    /// The mode of the workspace after the list.
    mode: u32,
    done: Vec<Done>,
}

impl<'a> Transaction<'a> {
    fn begin(tree: &'a Tree, list: &[Change]) -> Result<Self, ApplyError> {
        let before = tree.status().map_err(in_root)?.mode();
        if before & OWN != OWN {
            tree.permit(before | OWN).map_err(in_root)?;
        }
        let own = list.first().filter(|change| change.path.as_os_str().is_empty());
        let mode = own.and_then(|change| change.after.as_ref()).map_or(before, |after| after.mode);
        match Self::staging(tree, list) {
            Ok((name, staging)) => Ok(Self { tree, staging, name, before, mode, done: Vec::new() }),
            Err(because) => {
                tree.permit(before).map_err(in_root)?;
                Err(because)
            }
        }
    }

    /// Creates the staging folder.
    fn staging(tree: &Tree, list: &[Change]) -> Result<(OsString, Folder), ApplyError> {
        let root = tree.folder(Path::new("")).map_err(in_root)?;
        for number in 0..MOST_STAGING {
            let name = OsString::from(format!("{STAGING}{number}"));
            // The command may have created that name itself.
            if list.iter().any(|change| change.path.starts_with(&name)) {
                continue;
            }
            match mkdirat(&root, &name, Mode::RWXU) {
                Ok(()) => {
                    let staging = tree.folder(Path::new(&name)).map_err(failed(Path::new(&name)))?;
                    return Ok((name, staging));
                }
                Err(Errno::EXIST) => {}
                Err(why) => return Err(in_root(why.into())),
            }
        }
        Err(in_root(io::ErrorKind::AlreadyExists.into()))
    }

    /// Writes all that is new into the staging folder, under the number of its change.
    fn stage(&self, upper: &Tree, list: &[Change]) -> Result<(), ApplyError> {
        for (number, change) in list.iter().enumerate() {
            let Some(after) = &change.after else { continue };
            let name = new(number);
            match &after.kind {
                Kind::Link(target) => {
                    symlinkat(target, &self.staging, &name).map_err(|why| failed(&change.path)(why.into()))?;
                }
                Kind::File(bytes) => self.copy(upper, change, after, *bytes, &name)?,
                Kind::Folder | Kind::Special => {}
            }
        }
        Ok(())
    }

    fn copy(&self, upper: &Tree, change: &Change, after: &After, bytes: u64, name: &OsStr) -> Result<(), ApplyError> {
        let failed = failed(&change.path);
        let (parent, from) = upper.parent(&change.path).map_err(&failed)?;
        let from = parent.file(from).map_err(&failed)?;
        let mut to = self.staging.create(name).map_err(&failed)?;
        let copied = digest(&from, bytes, &mut |piece| to.write_all(piece)).map_err(&failed)?;
        if Some(copied) != after.digest {
            return Err(ApplyError::Other { path: change.path.clone() });
        }
        let finish = |file: &File| {
            fchmod(file, Mode::from_raw_mode(after.mode))?;
            date(file, after.modified)
        };
        finish(&to).map_err(&failed)
    }

    /// Changes the workspace: removals bottom up, then creations and exchanges top down, then modes of folders. A file that was
    /// moved to the staging folder is compared there, so that one that another process has just written is found and put back.
    fn change(&mut self, list: &[Change]) -> Result<(), ApplyError> {
        self.reach(list)?;
        for (number, change) in list.iter().enumerate().rev() {
            if let Some(before) = change.before.as_ref().filter(|_| goes(change)) {
                self.remove(number, change, before)?;
            }
        }
        for (number, change) in list.iter().enumerate() {
            if let Some(after) = &change.after {
                self.put(number, change, after)?;
            }
        }
        self.permit(list)
    }

    /// Lets the owner write to every folder in which an entry changes.
    fn reach(&mut self, list: &[Change]) -> Result<(), ApplyError> {
        let folders: BTreeSet<&Path> = list.iter().flat_map(|change| change.path.ancestors().skip(1)).collect();
        for path in folders {
            let found = self.tree.look(path).map_err(failed(path))?;
            if let Some(found) = found.filter(|found| found.is_folder() && found.mode() & OWN != OWN) {
                self.set(path, found.mode(), found.mode() | OWN)?;
            }
        }
        Ok(())
    }

    fn set(&mut self, path: &Path, before: u32, after: u32) -> Result<(), ApplyError> {
        permit(self.tree, path, after).map_err(failed(path))?;
        self.done.push(Done::Permitted(path.into(), before));
        Ok(())
    }

    fn remove(&mut self, number: usize, change: &Change, before: &Before) -> Result<(), ApplyError> {
        let failed = failed(&change.path);
        let (parent, name) = self.tree.parent(&change.path).map_err(&failed)?;
        if before.kind == Kind::Folder {
            let found = fresh(&parent, name, change, before)?;
            unlinkat(&parent, name, AtFlags::REMOVEDIR).map_err(|why| failed(why.into()))?;
            self.done.push(Done::RemovedFolder(change.path.clone(), found.mode()));
        } else {
            rename(&parent, name, &self.staging, &old(number), RenameFlags::NOREPLACE).map_err(&failed)?;
            self.done.push(Done::Removed(change.path.clone(), number));
            fresh(&self.staging, &old(number), change, before)?;
        }
        Ok(())
    }

    fn put(&mut self, number: usize, change: &Change, after: &After) -> Result<(), ApplyError> {
        let failed = failed(&change.path);
        let stays = change.before.as_ref().filter(|_| !goes(change));
        let (parent, name) = self.tree.parent(&change.path).map_err(&failed)?;
        match (&after.kind, stays) {
            (Kind::Folder, Some(_)) => {}
            (Kind::Folder, None) => {
                mkdirat(&parent, name, Mode::RWXU).map_err(|why| failed(why.into()))?;
                self.done.push(Done::MadeFolder(change.path.clone()));
            }
            (_, Some(before)) => {
                rename(&self.staging, &new(number), &parent, name, RenameFlags::EXCHANGE).map_err(&failed)?;
                self.done.push(Done::Exchanged(change.path.clone(), number));
                fresh(&self.staging, &new(number), change, before)?;
            }
            (_, None) => {
                rename(&self.staging, &new(number), &parent, name, RenameFlags::NOREPLACE).map_err(&failed)?;
                self.done.push(Done::Placed(change.path.clone(), number));
            }
        }
        Ok(())
    }

    fn permit(&mut self, list: &[Change]) -> Result<(), ApplyError> {
        let reached = self.done.iter().filter_map(|done| match done {
            Done::Permitted(path, before) => Some((path.clone(), *before)),
            _ => None,
        });
        let mut modes: BTreeMap<PathBuf, u32> = reached.collect();
        let folders = list.iter().filter_map(|change| Some((change.path.clone(), change.after.as_ref()?)));
        modes.extend(folders.filter(|(_, after)| after.kind == Kind::Folder).map(|(path, after)| (path, after.mode)));
        modes.remove(Path::new(""));
        for (path, mode) in modes.into_iter().rev() {
            let found = self.tree.look(&path).map_err(failed(&path))?;
            if let Some(found) = found.filter(|found| found.is_folder() && found.mode() != mode) {
                self.set(&path, found.mode(), mode)?;
            }
        }
        Ok(())
    }

    /// Undoes all steps, the last first.
    fn put_back(&mut self, because: ApplyError) -> ApplyError {
        let mut left = Vec::new();
        while let Some(done) = self.done.pop() {
            if self.undo(&done).is_err() {
                left.push(done.path().to_owned());
            }
        }
        if !left.is_empty() {
            // The staging folder holds the only copy, so it stays.
            return ApplyError::Torn { because: Box::new(because), left };
        }
        match self.end(self.before) {
            Ok(()) => because,
            Err(_) => ApplyError::Torn { because: Box::new(because), left: vec![PathBuf::from(&self.name)] },
        }
    }

    fn undo(&self, done: &Done) -> io::Result<()> {
        let (parent, name) = self.tree.parent(done.path())?;
        match done {
            Done::Removed(_, number) => rename(&self.staging, &old(*number), &parent, name, RenameFlags::NOREPLACE),
            Done::Exchanged(_, number) => rename(&self.staging, &new(*number), &parent, name, RenameFlags::EXCHANGE),
            Done::Placed(_, number) => rename(&parent, name, &self.staging, &new(*number), RenameFlags::NOREPLACE),
            Done::MadeFolder(_) => Ok(unlinkat(&parent, name, AtFlags::REMOVEDIR)?),
            Done::RemovedFolder(path, mode) => {
                mkdirat(&parent, name, Mode::RWXU)?;
                permit(self.tree, path, *mode)
            }
            Done::Permitted(path, mode) => permit(self.tree, path, *mode),
        }
    }

    /// Removes the staging folder, and gives the workspace this mode.
    fn end(&self, mode: u32) -> io::Result<()> {
        for name in self.staging.names()? {
            unlinkat(&self.staging, &name, AtFlags::empty())?;
        }
        unlinkat(self.tree.folder(Path::new(""))?, &self.name, AtFlags::REMOVEDIR)?;
        self.tree.permit(mode)
    }
}

impl Done {
    fn path(&self) -> &Path {
        match self {
            Self::Removed(path, _)
            | Self::RemovedFolder(path, _)
            | Self::Exchanged(path, _)
            | Self::Placed(path, _)
            | Self::MadeFolder(path)
            | Self::Permitted(path, _) => path,
        }
    }
}

/// Whether the old entry is removed before the new one is placed, or without a new one.
fn goes(change: &Change) -> bool {
    let folder = |kind: &Kind| *kind == Kind::Folder;
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => folder(&before.kind) != folder(&after.kind),
        (before, _) => before.is_some(),
    }
}

fn new(number: usize) -> OsString {
    format!("new-{number}").into()
}

fn old(number: usize) -> OsString {
    format!("old-{number}").into()
}

fn rename(from: &Folder, name: &OsStr, to: &Folder, other: &OsStr, flags: RenameFlags) -> io::Result<()> {
    Ok(renameat_with(from, name, to, other, flags)?)
}

/// Sets the mode of a folder, through a descriptor of it where its mode lets it be opened.
fn permit(tree: &Tree, path: &Path, mode: u32) -> io::Result<()> {
    match tree.folder(path) {
        Ok(folder) => Ok(fchmod(&folder, Mode::from_raw_mode(mode))?),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let (parent, name) = tree.parent(path)?;
            parent.permit(name, mode)
        }
        Err(error) => Err(error),
    }
}
