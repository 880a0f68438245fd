//! Following a path to what it names, so that it can be judged as that.
//!
//! The path is followed part by part, each held by a handle that opens nothing (`O_PATH`), and never through a symbolic link that was not
//! looked at: what is found is a path free of links, with the identity of the file at its end. Opened by that handle it is the very file.

use crate::open::plain_file;
use crate::workspace::OpenWorkspace;
use ephor_base::{Digest, FileId, Kept, MOST_KEPT, Place};
use ephor_edit::MOST_BYTES;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, flistxattr, fstat, openat2, readlinkat};
use rustix::io::Errno;
use sha2::Digest as _;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Symbolic links on the way: a longer chain is a circle. As the kernel has it.
const MOST_LINKS: u32 = 40;

/// Parts of a path, those of the links on the way among them.
const MOST_PARTS: usize = 4096;

/// Bytes of one part of a path, as Linux has it.
const LONGEST_PART: usize = 255;

/// Bytes of a path that Linux still finds.
const LONGEST_PATH: usize = 4095;

/// Bytes of a path that are repeated to a model.
const SHOWN: usize = 200;

/// The most bytes of a file that are held in memory when a call replaces it: what can be kept, and what can be edited.
const MOST_HELD: usize = if MOST_KEPT as usize > MOST_BYTES { MOST_KEPT as usize } else { MOST_BYTES };

/// No link is followed, and nothing above the workspace is reached.
pub(crate) const NO_LINKS: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// A place that a call names, held open.
#[derive(Clone, Debug)]
pub struct Held {
    /// The place.
    pub place: Place,
    /// What is there; where nothing is, the innermost folder above it.
    pub(crate) handle: Arc<OwnedFd>,
    /// What it holds, where the call replaces it and it is not too large to be held.
    pub(crate) content: Option<Arc<[u8]>>,
    /// Its permission bits; zero where nothing is.
    pub(crate) mode: u32,
}

impl Held {
    /// What the call replaces there, if that can be kept.
    pub(crate) fn kept(&self) -> Option<Kept> {
        let (path, mode) = (self.place.path.clone(), self.mode);
        match (&self.content, self.place.keeps) {
            (Some(bytes), Some(_)) => Some(Kept { path, held: Some(bytes.to_vec()), mode }),
            _ => (!self.place.exists).then_some(Kept { path, held: None, mode: 0 }),
        }
    }
}

/// What a path of a call leads to.
pub(crate) struct Following<'a> {
    root: &'a File,
    /// As it was written, for people.
    written: &'a str,
    left: VecDeque<String>,
    /// The parts so far: none of them is a link.
    at: Vec<String>,
    handle: OwnedFd,
    links: u32,
}

/// Follows `written`, which by its spelling stays in the workspace. With `replaces`, what is there is read, for its digest and to be kept;
/// `go_on` is asked meanwhile.
pub(crate) fn follow(
    workspace: &OpenWorkspace,
    written: &str,
    replaces: bool,
    go_on: &dyn Fn() -> bool,
) -> Result<Held, String> {
    let root = workspace.root();
    let handle = hold(root, ".").map_err(|error| failed(written, error))?;
    let left = spelt(written.split('/').map(str::to_owned).collect());
    // Those that `..` takes back are looked for by nobody.
    if left.iter().any(|part| part.len() > LONGEST_PART) {
        return Err(failed(written, Errno::NAMETOOLONG));
    }
    let following = Following { root, written, left, at: Vec::new(), handle, links: 0 };
    following.end(replaces, go_on)
}

/// What is at `path` itself, link or not: neither read nor kept. The path has to go through no link.
pub(crate) fn on_the_spot(workspace: &OpenWorkspace, path: &str) -> Result<Held, String> {
    let handle = hold(workspace.root(), path).map_err(|error| failed(path, error))?;
    let node = identity(&fstat(&handle).map_err(|error| failed(path, error))?);
    let path = plain(path);
    let place = Place { path, exists: true, node, names: 1, content: None, keeps: None, makes: None };
    Ok(Held { place, handle: Arc::new(handle), content: None, mode: 0 })
}

/// Without `.`, and with `..` taken back by the text alone, as the tools have it.
fn spelt(parts: VecDeque<String>) -> VecDeque<String> {
    let mut spelt = VecDeque::new();
    for part in parts {
        match part.as_str() {
            "" | "." => {}
            ".." => drop(spelt.pop_back()),
            _ => spelt.push_back(part),
        }
    }
    spelt
}

/// A path in its one spelling, as far as its text goes.
pub(crate) fn plain(written: &str) -> String {
    let parts: Vec<String> = spelt(written.split('/').map(str::to_owned).collect()).into();
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

fn hold(root: &File, path: &str) -> Result<OwnedFd, Errno> {
    openat2(root, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty(), NO_LINKS)
}

impl Following<'_> {
    fn end(mut self, replaces: bool, go_on: &dyn Fn() -> bool) -> Result<Held, String> {
        while let Some(part) = self.left.pop_front() {
            if !go_on() {
                return Err(given_up());
            }
            match part.as_str() {
                "" | "." => {}
                ".." => {
                    self.at.pop().ok_or_else(|| self.outside())?;
                    self.handle = hold(self.root, &self.path()).map_err(|error| self.failed(error))?;
                }
                _ => {
                    self.at.push(part);
                    match hold(self.root, &self.path()) {
                        Ok(found) => self.step(found)?,
                        Err(Errno::NOENT) => return self.absent(),
                        Err(Errno::NOTDIR) => {
                            return Err(self.sentence("does not exist: a part of the path is not a directory"));
                        }
                        Err(error) => return Err(self.failed(error)),
                    }
                }
            }
        }
        self.present(replaces, go_on)
    }

    fn step(&mut self, found: OwnedFd) -> Result<(), String> {
        let stat = fstat(&found).map_err(|error| self.failed(error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            self.handle = found;
            return Ok(());
        }
        self.links = self.links.saturating_add(1);
        if self.links > MOST_LINKS {
            return Err(self.sentence("goes through too many symbolic links"));
        }
        let target = readlinkat(&found, "", Vec::new()).map_err(|error| self.failed(error))?;
        let target =
            target.to_str().map_err(|_| self.sentence("goes through a symbolic link to a name that is not UTF-8"))?;
        if target.starts_with('/') {
            return Err(self.outside());
        }
        self.at.pop();
        for part in target.split('/').rev() {
            self.left.push_front(part.to_owned());
        }
        if self.left.len() > MOST_PARTS {
            return Err(self.sentence("goes through too many symbolic links"));
        }
        Ok(())
    }

    /// Nothing is there: what is left of the path is so as it is spelt.
    fn absent(mut self) -> Result<Held, String> {
        let left = std::mem::take(&mut self.left);
        if left.iter().any(|part| part == "..") {
            return Err(self.sentence("does not exist"));
        }
        self.at.extend(left.into_iter().filter(|part| !matches!(part.as_str(), "" | ".")));
        // It could be made part by part, and never be found again.
        if self.path().len() > LONGEST_PATH {
            return Err(self.failed(Errno::NAMETOOLONG));
        }
        let stat = fstat(&self.handle).map_err(|error| self.failed(error))?;
        let (path, node) = (self.path(), identity(&stat));
        let place = Place { path, exists: false, node, names: 0, content: None, keeps: None, makes: None };
        Ok(Held { place, handle: Arc::new(self.handle), content: None, mode: 0 })
    }

    fn present(self, replaces: bool, go_on: &dyn Fn() -> bool) -> Result<Held, String> {
        let stat = fstat(&self.handle).map_err(|error| self.failed(error))?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let read = if is_file && replaces { Some(self.read(go_on)?) } else { None };
        let names = if is_file { stat.st_nlink } else { 1 };
        let digest = read.as_ref().map(|read| read.digest);
        let keeps = read.as_ref().and_then(Content::keeps).filter(|_| is_plain(&stat));
        let (path, node) = (self.path(), identity(&stat));
        let place = Place { path, exists: true, node, names, content: digest, keeps, makes: None };
        let content = read.and_then(|read| read.bytes).map(Arc::from);
        Ok(Held { place, handle: Arc::new(self.handle), content, mode: stat.st_mode & 0o777 })
    }

    fn read(&self, go_on: &dyn Fn() -> bool) -> Result<Content, String> {
        let opened = plain_file(self.root, &self.path(), &self.handle);
        let file = opened.map_err(|error| self.failed(error))?;
        match read(file, go_on) {
            Ok(Some(read)) => Ok(read),
            Ok(None) => Err(given_up()),
            Err(error) => {
                Err(format!("`{}` cannot be read, so nobody could say what is replaced: {error}", shown(self.written)))
            }
        }
    }

    /// From the workspace on.
    fn path(&self) -> String {
        if self.at.is_empty() { ".".to_owned() } else { self.at.join("/") }
    }

    fn outside(&self) -> String {
        self.sentence("leads out of the workspace through a symbolic link")
    }

    fn sentence(&self, says: &str) -> String {
        format!("`{}` {says}", shown(self.written))
    }

    fn failed(&self, error: Errno) -> String {
        failed(self.written, error)
    }
}

/// Whether content and permission bits are all that there is to a file: it has one name, our owner and group, and no other bits.
fn is_plain(stat: &Stat) -> bool {
    stat.st_nlink == 1 && is_ours(stat)
}

/// Whether a file or folder that this process makes has the same owner and group, and no bits beside its permissions.
pub(crate) fn is_ours(stat: &Stat) -> bool {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    (stat.st_uid, stat.st_gid, stat.st_mode & 0o7000) == (user, group, 0)
}

/// What a file holds.
pub(crate) struct Content {
    /// SHA-256 of it.
    pub(crate) digest: Digest,
    /// All of it; none if it is more than is held.
    bytes: Option<Vec<u8>>,
    /// Whether there is more to the file than that.
    has_attributes: bool,
}

impl Content {
    /// Its bytes, if it can be kept.
    fn keeps(&self) -> Option<u64> {
        let bytes = self.bytes.as_ref().filter(|_| !self.has_attributes).map(|bytes| bytes.len() as u64);
        bytes.filter(|bytes| *bytes <= MOST_KEPT)
    }
}

/// Reads the rest of a file; none if it is not to be gone on with.
pub(crate) fn read(mut file: File, go_on: &dyn Fn() -> bool) -> std::io::Result<Option<Content>> {
    let mut hash = sha2::Sha256::new();
    let has_attributes = has_attributes(&file);
    let mut bytes = Some(Vec::new());
    let mut buffer = vec![0; 256 * 1024];
    loop {
        if !go_on() {
            return Ok(None);
        }
        let part = match file.read(&mut buffer)? {
            0 => return Ok(Some(Content { digest: Digest(hash.finalize().into()), bytes, has_attributes })),
            read => buffer.get(..read).unwrap_or_default(),
        };
        hash.update(part);
        bytes = bytes.filter(|bytes| bytes.len() + part.len() <= MOST_HELD);
        bytes.iter_mut().for_each(|bytes| bytes.extend_from_slice(part));
    }
}

pub(crate) fn identity(stat: &Stat) -> FileId {
    FileId { device: stat.st_dev, inode: stat.st_ino }
}

fn given_up() -> String {
    "the disk did not say in time where this path leads".to_owned()
}

fn failed(written: &str, error: Errno) -> String {
    let shown = shown(written);
    match error {
        Errno::XDEV => format!("`{shown}` leads out of the workspace through a symbolic link"),
        Errno::LOOP | Errno::AGAIN => format!("`{shown}` was changed while it was looked at; call again"),
        Errno::NAMETOOLONG => format!("`{shown}` is too long for a path"),
        Errno::ACCESS => format!("`{shown}`: permission denied"),
        error => format!("`{shown}`: {}", std::io::Error::from(error)),
    }
}

/// As much of a path as a sentence bears, without what moves a cursor.
pub(crate) fn shown(path: &str) -> String {
    let cut = path.char_indices().nth(SHOWN).map_or(path.len(), |(at, _)| at);
    let mut shown: String = path.get(..cut).unwrap_or_default().chars().flat_map(spell).collect();
    if cut < path.len() {
        shown.push('…');
    }
    shown
}

fn spell(character: char) -> Vec<char> {
    if character.is_control() { character.escape_default().collect() } else { vec![character] }
}

/// Whether a file has extended attributes, access control lists among them, which nobody would put back. Labels of a security module are
/// the system's own.
pub(crate) fn has_attributes(file: &File) -> bool {
    let mut names = vec![0; 64 << 10];
    match flistxattr(file, &mut names) {
        Ok(length) => {
            let names = names.get(..length).unwrap_or_default().split(|byte| *byte == 0);
            names.filter(|name| !name.is_empty()).any(|name| !name.starts_with(b"security."))
        }
        Err(Errno::NOTSUP) => false,
        Err(_) => true,
    }
}
