//! Reads an upper layer into a list of changes.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use ephor_base::Digest;
use sha2::{Digest as _, Sha256};

use super::{
    After, Before, Bounds, Change, Kind, LONGEST_PATH, ReadError,
    tree::{Folder, Found, Tree},
};

/// Permissions that the owner of a folder needs to list it and to change its entries.
pub(super) const OWN: u32 = 0o700;
/// setuid and setgid.
const LENDS: u32 = 0o6000;

/// Bytes that are read at a time.
pub(super) const PIECE: usize = 128 << 10;

/// How a folder of the upper layer relates to the workspace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    /// Merged: entries of the workspace's folder show through.
    Shows,
    /// Opaque: entries of the workspace's folder are hidden.
    Hidden,
    /// The workspace has no folder there.
    Nothing,
}

pub(super) fn list(lower: &Tree, upper: &Tree, bounds: Bounds) -> Result<Vec<Change>, ReadError> {
    let mut reading = Reading { lower, upper, bounds, bytes: 0, list: Vec::new(), open: Vec::new() };
    reading.root()?;
    while let Some((path, below)) = reading.open.pop() {
        reading.folder(&path, below)?;
    }
    reading.list.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(reading.list)
}

struct Reading<'a> {
    lower: &'a Tree,
    upper: &'a Tree,
    bounds: Bounds,
    /// Bytes that have been read.
    bytes: u64,
    list: Vec<Change>,
    /// Folders of the upper layer that have not been read. Nothing is held open for them.
    open: Vec<(PathBuf, Below)>,
}

impl Reading<'_> {
    /// The workspace itself, of which only the permissions can change.
    fn root(&mut self) -> Result<(), ReadError> {
        let root = Path::new("");
        let (before, after) = (self.lower.status().map_err(at(root))?, self.upper.status().map_err(at(root))?);
        if before.mode() != after.mode() {
            self.push(Change {
                path: root.into(),
                before: Some(folder_before(&before)),
                after: Some(folder_after(&after)),
            })?;
        }
        if after.mode() & OWN != OWN {
            self.upper.permit(after.mode() | OWN).map_err(at(root))?;
        }
        self.open.push((root.into(), Below::Shows));
        Ok(())
    }

    fn folder(&mut self, path: &Path, below: Below) -> Result<(), ReadError> {
        let io = at(path);
        let upper = self.upper.folder(path).map_err(&io)?;
        let names = upper.names().map_err(&io)?;
        let lower = match below {
            Below::Nothing => None,
            Below::Shows | Below::Hidden => Some(self.lower.folder(path).map_err(&io)?),
        };
        if let Some(lower) = lower.as_ref().filter(|_| below == Below::Hidden) {
            self.hidden(path, lower, &names)?;
        }
        names.iter().try_for_each(|name| self.entry(path, name, &upper, lower.as_ref(), below))
    }

    /// Removes the entries of a hidden folder that the upper layer has not made again.
    fn hidden(&mut self, path: &Path, lower: &Folder, made: &[OsString]) -> Result<(), ReadError> {
        let made: BTreeSet<&OsStr> = made.iter().map(OsString::as_os_str).collect();
        let names = lower.names().map_err(at(path))?;
        names.iter().filter(|name| !made.contains(name.as_os_str())).try_for_each(|name| {
            let path = path.join(name);
            match lower.look(name).map_err(at(&path))? {
                Some(found) => self.remove(&path, lower, name, &found, true),
                None => Ok(()),
            }
        })
    }

    fn entry(
        &mut self,
        folder: &Path,
        name: &OsStr,
        upper: &Folder,
        lower: Option<&Folder>,
        below: Below,
    ) -> Result<(), ReadError> {
        let path = folder.join(name);
        if path.as_os_str().len() > LONGEST_PATH {
            return Err(ReadError::Deep { path: folder.into() });
        }
        let io = at(&path);
        let Some(found) = upper.look(name).map_err(&io)? else { return Ok(()) };
        let old = lower.map(|lower| lower.look(name)).transpose().map_err(&io)?.flatten();
        let old = lower.zip(old);
        if found.is_whiteout() {
            return old.map_or(Ok(()), |(lower, old)| self.remove(&path, lower, name, &old, true));
        }
        if !found.is_folder() {
            return self.put(&path, name, upper, &found, old);
        }
        reach(upper, name, &found).map_err(&io)?;
        let over = match &old {
            Some((_, old)) if old.is_folder() => {
                let hides =
                    below == Below::Hidden || self.upper.folder(&path).and_then(|it| it.is_opaque()).map_err(&io)?;
                if hides { Below::Hidden } else { Below::Shows }
            }
            _ => Below::Nothing,
        };
        let before = match old {
            Some((_, old)) if over != Below::Nothing => {
                (old.mode() != found.mode()).then(|| folder_before(&old)).map(Some)
            }
            Some((lower, old)) => Some(Some(before(lower, name, &old).map_err(&io)?)),
            None => Some(None),
        };
        if let Some(before) = before {
            self.push(Change { path: path.clone(), before, after: Some(folder_after(&found)) })?;
        }
        self.open.push((path.clone(), over));
        Ok(())
    }

    /// A file or a link.
    fn put(
        &mut self,
        path: &Path,
        name: &OsStr,
        upper: &Folder,
        found: &Found,
        old: Option<(&Folder, Found)>,
    ) -> Result<(), ReadError> {
        let io = at(path);
        let kind = upper.kind(name, found).map_err(&io)?;
        let digest = match &kind {
            Kind::Special | Kind::Folder => return Err(ReadError::Special { path: path.into() }),
            Kind::Link(_) => None,
            Kind::File(_) if found.mode() & LENDS != 0 => return Err(ReadError::Privileged { path: path.into() }),
            Kind::File(bytes) => Some(self.digest(path, name, upper, found, *bytes)?),
        };
        let before = match old {
            Some((lower, old)) if old.is_folder() => {
                self.remove(path, lower, name, &old, false)?;
                Some(folder_before(&old))
            }
            Some((lower, old)) => Some(before(lower, name, &old).map_err(&io)?),
            None => None,
        };
        let after = After { kind, mode: found.mode(), digest, modified: found.modified() };
        self.push(Change { path: path.into(), before, after: Some(after) })
    }

    fn digest(
        &mut self,
        path: &Path,
        name: &OsStr,
        upper: &Folder,
        found: &Found,
        bytes: u64,
    ) -> Result<Digest, ReadError> {
        let most = self.bounds.bytes;
        let large = || ReadError::Large { path: path.into(), most };
        self.bytes = self.bytes.checked_add(bytes).filter(|bytes| *bytes <= most).ok_or_else(large)?;
        let read = || {
            // The layer belongs to the caller alone, so its modes may be changed.
            if found.mode() & 0o400 == 0 {
                upper.permit(name, found.mode() | 0o600)?;
            }
            digest(&upper.file(name)?, bytes, &mut |_| Ok(()))
        };
        read().map_err(at(path))
    }

    /// Lists everything below `path` of the workspace as removed, and `path` itself if `itself`.
    fn remove(
        &mut self,
        path: &Path,
        parent: &Folder,
        name: &OsStr,
        found: &Found,
        itself: bool,
    ) -> Result<(), ReadError> {
        if itself {
            let before = before(parent, name, found).map_err(at(path))?;
            self.push(Change { path: path.into(), before: Some(before), after: None })?;
        }
        let mut open: Vec<PathBuf> = found.is_folder().then(|| path.into()).into_iter().collect();
        while let Some(path) = open.pop() {
            let folder = self.lower.folder(&path).map_err(at(&path))?;
            for name in folder.names().map_err(at(&path))? {
                let path = path.join(&name);
                let Some(found) = folder.look(&name).map_err(at(&path))? else { continue };
                let before = before(&folder, &name, &found).map_err(at(&path))?;
                self.push(Change { path: path.clone(), before: Some(before), after: None })?;
                open.extend(found.is_folder().then_some(path));
            }
        }
        Ok(())
    }

    fn push(&mut self, change: Change) -> Result<(), ReadError> {
        if self.list.len() >= self.bounds.changes {
            return Err(ReadError::Many { most: self.bounds.changes });
        }
        self.list.push(change);
        Ok(())
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> ReadError {
    move |source| ReadError::Io { path: path.into(), source }
}

fn before(parent: &Folder, name: &OsStr, found: &Found) -> io::Result<Before> {
    Ok(Before { kind: parent.kind(name, found)?, mode: found.mode(), stamp: found.stamp() })
}

fn folder_before(found: &Found) -> Before {
    Before { kind: Kind::Folder, mode: found.mode(), stamp: found.stamp() }
}

fn folder_after(found: &Found) -> After {
    After { kind: Kind::Folder, mode: found.mode(), digest: None, modified: found.modified() }
}

/// Lets the owner list a folder of the upper layer, whatever mode the command gave it.
fn reach(parent: &Folder, name: &OsStr, found: &Found) -> io::Result<()> {
    if found.mode() & OWN == OWN { Ok(()) } else { parent.permit(name, found.mode() | OWN) }
}

/// The digest of a file of this length. Hands each piece to `piece` on the way.
pub(super) fn digest(file: &File, bytes: u64, piece: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<Digest> {
    let (mut hash, mut read) = (Sha256::new(), 0_u64);
    let mut from = file.take(bytes);
    let mut room = vec![0; PIECE];
    loop {
        let length = match from.read(&mut room) {
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            length => length?,
        };
        let part = room.get(..length).unwrap_or_default();
        hash.update(part);
        piece(part)?;
        read = read.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
    }
    if read == bytes { Ok(Digest(hash.finalize().into())) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
