//! Putting new content, or nothing, in the place of a file: whole or not at all, and of the very file that was judged.
//!
//! The new content is written to a file without a name (`O_TMPFILE`), readable by its owner alone, synced, and only then given the mode
//! and owner of the one before. It takes the name by an exchange, so that what was displaced can be looked at: if that is not what was
//! judged, the exchange is undone. Where the file system has no files without a name, or no exchange, it is done by names, and the look
//! comes before.

use crate::locate::{Held, NO_LINKS, has_attributes, identity, is_ours, read, shown};
use crate::open::{own_descriptor, plain_file};
use ephor_base::{Digest, FileId};
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fchmod, fchown, flock, fstat, fsync,
    linkat, mkdirat, openat, openat2, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// What the names begin with that files have for a moment. What has one is never replaced: it may be left over from a write that was cut
/// off, or a person's own.
const PART: &str = ".ephor-part";

/// How many such names are tried.
const PARTS: u32 = 64;

/// How often a folder is asked for, and how long apart, while another write is at work in it.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// What was replaced.
#[derive(Debug, Default)]
pub(crate) struct Replaced {
    /// The bytes of the file before; none if there was none.
    pub(crate) old_size: Option<u64>,
    /// What could not be kept, a sentence each.
    pub(crate) lost: Vec<String>,
}

/// Why nothing was put in place. What was there is there.
#[derive(Debug)]
pub(crate) enum Unreplaced {
    /// It may not be.
    Refused(String),
    /// It is not what was judged.
    Changed(String),
    /// The system's own words.
    Io(String),
}

/// Puts `content` where `held` is, a new file with these permission bits; without, takes away what is there.
pub(crate) fn replace(
    root: &File,
    held: &Held,
    content: Option<&[u8]>,
    mode: Option<u32>,
) -> Result<Replaced, Unreplaced> {
    let path = held.place.path.as_str();
    is_free(path)?;
    let made = content.map(Digest::of);
    if held.place.makes.as_ref().is_some_and(|makes| makes.content != made) {
        return Err(Unreplaced::Refused(format!("this is not what `{}` was judged to become", shown(path))));
    }
    if held.place.exists && held.place.content.is_none() {
        return Err(Unreplaced::Refused(format!(
            "`{}` is not a regular file; only regular files are written",
            shown(path)
        )));
    }
    if !held.place.exists && content.is_none() {
        return Err(Unreplaced::Refused(format!("`{}` does not exist, so it cannot be removed", shown(path))));
    }
    let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
    let mut folders = Folders::default();
    let outcome = folders.reach(root, above, held).and_then(|parent| match content {
        Some(content) => Writing { root, parent, held, name, content, mode }.run(),
        None => Writing { root, parent, held, name, content: &[], mode }.remove(),
    });
    if outcome.is_err() {
        folders.remove();
    }
    outcome
}

/// Gives the file at `held` the name of `target`, where nothing is. Says what could not be kept.
pub(crate) fn rename(root: &File, held: &Held, target: &Held) -> Result<Vec<String>, Unreplaced> {
    let (from, to) = (held.place.path.as_str(), target.place.path.as_str());
    for path in [from, to] {
        is_free(path)?;
    }
    if held.place.content.is_none() {
        return Err(Unreplaced::Refused(format!(
            "`{}` is not a regular file; only regular files are moved",
            shown(from)
        )));
    }
    if target.place.exists {
        return Err(Unreplaced::Refused(format!("`{}` exists already, and is not replaced by a move", shown(to))));
    }
    let makes = |held: &Held| held.place.makes.as_ref().map(|makes| makes.content);
    if makes(held).is_some_and(|left| left.is_some()) || makes(target).is_some_and(|made| made != held.place.content) {
        return Err(Unreplaced::Refused(format!("this is not what `{}` was judged to become", shown(to))));
    }
    let parts = |path: &'_ str| {
        path.rsplit_once('/')
            .map_or((".".to_owned(), path.to_owned()), |(above, name)| (above.to_owned(), name.to_owned()))
    };
    let ((above, name), (above_target, new_name)) = (parts(from), parts(to));
    let parent = Folders::default().reach(root, &above, held)?;
    let mut folders = Folders::default();
    let outcome = folders.reach(root, &above_target, target).and_then(|to| {
        let there = Writing { root, parent: to, held: target, name: &new_name, content: &[], mode: None };
        Writing { root, parent, held, name: &name, content: &[], mode: None }.rename(&there)
    });
    if outcome.is_err() {
        folders.remove();
    }
    outcome
}

/// Takes away the folder at `held`, if nothing is in it.
pub(crate) fn remove_folder(root: &File, held: &Held) -> Result<(), Unreplaced> {
    let path = held.place.path.as_str();
    if !held.place.exists || held.place.content.is_some() || path == "." {
        return Err(Unreplaced::Refused(format!("`{}` is not a folder that can be removed", shown(path))));
    }
    let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
    let parent = Folders::default().reach(root, above, held)?;
    let writing = Writing { root, parent, held, name, content: &[], mode: None };
    let stat = writing.hold(name).and_then(|handle| fstat(&handle)).map_err(|error| failed(path, error))?;
    if identity(&stat) != held.place.node {
        return Err(changed(held));
    }
    unlinkat(&writing.parent, name, AtFlags::REMOVEDIR).map_err(|error| match error {
        Errno::NOTEMPTY | Errno::EXIST => {
            Unreplaced::Refused(format!("`{}` is not empty; only an empty folder is removed", shown(path)))
        }
        error => failed(path, error),
    })?;
    fsync(&writing.parent).map_err(|error| failed(path, error))
}

/// Whether a name is not one of those that writing itself uses.
fn is_free(path: &str) -> Result<(), Unreplaced> {
    if path.rsplit('/').next().is_some_and(|name| name.starts_with(PART)) {
        return Err(Unreplaced::Refused(format!("`{}` is a name that writing itself uses", shown(path))));
    }
    Ok(())
}

/// The folders this call made, outermost first: each with the one it is in.
#[derive(Default)]
struct Folders(Vec<(OwnedFd, String)>);

impl Folders {
    /// Opens the folder at `path`, and makes what is missing of it below the one that was judged.
    fn reach(&mut self, root: &File, path: &str, held: &Held) -> Result<OwnedFd, Unreplaced> {
        let told = |error| failed(&held.place.path, error);
        let open = |at: &OwnedFd, part: &str| {
            openat2(
                at,
                part,
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
                NO_LINKS,
            )
        };
        let is_judged = |at: &OwnedFd| fstat(at).map(|stat| identity(&stat) == held.place.node).map_err(told);
        let mut at =
            openat(root, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(told)?;
        // A new file belongs below the folder that was judged. Others may have made folders in it since.
        let mut is_below = held.place.exists || is_judged(&at)?;
        for part in path.split('/').filter(|part| *part != ".") {
            at = match open(&at, part) {
                Ok(next) => next,
                Err(Errno::NOENT) if is_below => {
                    match mkdirat(&at, part, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(told(error)),
                    }
                    let next = open(&at, part).map_err(told)?;
                    fsync(&at).map_err(told)?;
                    self.0.push((at, part.to_owned()));
                    next
                }
                Err(error) => return Err(told(error)),
            };
            is_below = is_below || is_judged(&at)?;
        }
        if is_below { Ok(at) } else { Err(changed(held)) }
    }

    /// Takes them away again after a failure. One that something was put into stays.
    fn remove(&self) {
        for (at, part) in self.0.iter().rev() {
            let _stays = unlinkat(at, part.as_str(), AtFlags::REMOVEDIR);
        }
    }
}

struct Writing<'a> {
    root: &'a File,
    parent: OwnedFd,
    held: &'a Held,
    name: &'a str,
    content: &'a [u8],
    mode: Option<u32>,
}

/// The file to be replaced, as it was looked at last.
struct Old {
    stat: Stat,
}

impl Writing<'_> {
    fn run(&self) -> Result<Replaced, Unreplaced> {
        let old = if self.held.place.exists { Some(self.old()?) } else { None };
        let mut replaced =
            Replaced { old_size: old.as_ref().map(|old| old.stat.st_size.unsigned_abs()), lost: Vec::new() };
        let unnamed = self.unnamed()?;
        if let Some(file) = &unnamed {
            self.fill(file, old.as_ref(), &mut replaced.lost)?;
        }
        // From here on names are used, which another write in this folder uses too.
        self.lock()?;
        let part = match (&unnamed, &old) {
            (Some(file), None) => return self.appear(file, &mut replaced.lost).map(|()| replaced),
            (Some(file), Some(_)) => self.named(file)?,
            (None, _) => {
                let (part, file) = self.create()?;
                let filled = self.fill(&file, old.as_ref(), &mut replaced.lost);
                filled.inspect_err(|_| self.unlink(&part))?;
                part
            }
        };
        let taken = match &old {
            Some(old) => self.exchange(&part, old),
            None => renameat_with(&self.parent, part.as_str(), &self.parent, self.name, RenameFlags::NOREPLACE)
                .map_err(|error| self.refused_new(error)),
        };
        taken.inspect_err(|_| self.unlink(&part))?;
        self.sync(&mut replaced.lost);
        Ok(replaced)
    }

    /// Takes the file away: under another name first, so that what goes is what was judged.
    fn remove(&self) -> Result<Replaced, Unreplaced> {
        let old = self.old()?;
        self.lock()?;
        let moved = |from: &str, to: &str| moved((&self.parent, from), (&self.parent, to));
        let (part, ()) = self.part(|part| moved(self.name, part))?;
        if !self.is_still(&part, &old) {
            moved(&part, self.name).map_err(|error| self.failed(error))?;
            return Err(changed(self.held));
        }
        self.unlink(&part);
        let mut replaced = Replaced { old_size: Some(old.stat.st_size.unsigned_abs()), lost: Vec::new() };
        self.sync(&mut replaced.lost);
        self.tidy();
        Ok(replaced)
    }

    /// Gives the file the name that `there` stands for, and looks at it there: if that is not what was judged, it is moved back.
    fn rename(&self, there: &Writing<'_>) -> Result<Vec<String>, Unreplaced> {
        let old = self.old()?;
        self.lock()?;
        let moved = |from: &Writing<'_>, to: &Writing<'_>| moved((&from.parent, from.name), (&to.parent, to.name));
        moved(self, there).map_err(|error| match error {
            Errno::EXIST => changed(there.held),
            Errno::XDEV => Unreplaced::Refused(format!(
                "`{}` lies on another file system than `{}`, and a move does not copy",
                shown(&there.held.place.path),
                shown(&self.held.place.path)
            )),
            Errno::NAMETOOLONG | Errno::NOSPC | Errno::DQUOT => there.failed(error),
            // It may be the folder of either.
            error => failed(&format!("{}` or `{}", self.held.place.path, there.held.place.path), error),
        })?;
        if !there.is_still(there.name, &old) {
            moved(there, self).map_err(|error| self.failed(error))?;
            return Err(changed(self.held));
        }
        let mut lost = Vec::new();
        there.sync(&mut lost);
        self.sync(&mut lost);
        self.tidy();
        Ok(lost)
    }

    /// Takes away the folders above the file that it leaves empty, as git does, but for those that would not be made again as they are.
    fn tidy(&self) {
        let mut path = self.held.place.path.as_str();
        while let Some((folder, _)) = path.rsplit_once('/') {
            let (above, name) = folder.rsplit_once('/').unwrap_or((".", folder));
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let open = |at: &dyn AsFd, path: &str| openat2(at, path, flags, Mode::empty(), NO_LINKS).map(File::from);
            let Ok(above) = open(&self.root, above) else { return };
            let is_common = open(&above, name).is_ok_and(|folder| is_common(&folder));
            if !is_common || unlinkat(&above, name, AtFlags::REMOVEDIR).is_err() {
                return;
            }
            path = folder;
        }
    }

    /// The file that is there: the one that was judged, with the content that was judged, and one that may be written.
    fn old(&self) -> Result<Old, Unreplaced> {
        let told = |error| self.failed(error);
        let handle = self.hold(self.name).map_err(told)?;
        let stat = fstat(&handle).map_err(told)?;
        if identity(&stat) != self.held.place.node {
            return Err(changed(self.held));
        }
        let path = shown(&self.held.place.path);
        if stat.st_mode & 0o222 == 0 {
            let why = format!(
                "`{path}` is write-protected (mode {:o}); nobody may write it until that is changed",
                stat.st_mode & 0o777
            );
            return Err(Unreplaced::Refused(why));
        }
        let writable = rustix::fs::open(
            own_descriptor(&handle),
            OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK,
            Mode::empty(),
        );
        writable.map_err(|error| match error {
            Errno::ACCESS | Errno::PERM | Errno::ROFS => {
                Unreplaced::Refused(format!("`{path}` may not be written: {}", std::io::Error::from(error)))
            }
            error => self.failed(error),
        })?;
        let file = plain_file(self.root, &self.held.place.path, &handle).map_err(told)?;
        let found = read(file, &|| true).map_err(|error| Unreplaced::Io(format!("`{path}`: {error}")))?;
        if found.map(|found| found.digest) != self.held.place.content {
            return Err(changed(self.held));
        }
        // As it is behind the reading: whatever is written to it meanwhile shows.
        Ok(Old {
            stat: fstat(&handle)
                .map_err(told)
                .and_then(|now| if same(&now, &stat) { Ok(now) } else { Err(changed(self.held)) })?,
        })
    }

    /// A file that has no name yet; none where the file system has no such files.
    fn unnamed(&self) -> Result<Option<OwnedFd>, Unreplaced> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match openat(&self.parent, ".", flags, self.mode()) {
            // It gets its name by /proc, which may not be there.
            Ok(file) => Ok(rustix::fs::stat(own_descriptor(&file)).is_ok().then_some(file)),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// As a program of this person makes a file; in the place of one, readable by the owner alone until it has the mode of that.
    fn mode(&self) -> Mode {
        Mode::from_raw_mode(if self.held.place.exists { 0o600 } else { self.mode.unwrap_or(0o666) & 0o777 })
    }

    /// Writes the content, makes it durable, and gives it what the file before had.
    fn fill(&self, file: &OwnedFd, old: Option<&Old>, lost: &mut Vec<String>) -> Result<(), Unreplaced> {
        let told = |error: std::io::Error| Unreplaced::Io(format!("`{}`: {error}", shown(&self.held.place.path)));
        let mut file = File::from(file.try_clone().map_err(told)?);
        file.write_all(self.content).map_err(told)?;
        if let Some(old) = old {
            self.dress(&file, old, lost)?;
        }
        // The name must not point at content that is not on the disk yet.
        file.sync_all().map_err(told)
    }

    /// Owner first: a change of owner takes bits of the mode away.
    fn dress(&self, file: &File, old: &Old, lost: &mut Vec<String>) -> Result<(), Unreplaced> {
        let new = fstat(file).map_err(|error| self.failed(error))?;
        let (uid, gid) = (Uid::from_raw(old.stat.st_uid), Gid::from_raw(old.stat.st_gid));
        let path = shown(&self.held.place.path);
        let mut mode = old.stat.st_mode & 0o777;
        if new.st_gid != old.stat.st_gid && fchown(file, None, Some(gid)).is_err() {
            lost.push(format!("`{path}` belongs to the group {} now and not to {}.", new.st_gid, old.stat.st_gid));
            // What one group might do is not for another.
            mode &= 0o707;
        }
        if new.st_uid != old.stat.st_uid && fchown(file, Some(uid), None).is_err() {
            lost.push(format!("`{path}` belongs to the user {} now and not to {}.", new.st_uid, old.stat.st_uid));
        }
        if old.stat.st_nlink > 1 {
            let others = old.stat.st_nlink.saturating_sub(1);
            lost.push(format!("`{path}` had {others} more names (hard links), which keep what it held before."));
        }
        fchmod(file, Mode::from_raw_mode(mode)).map_err(|error| self.failed(error))
    }

    /// Waits until no other write is at work in this folder.
    fn lock(&self) -> Result<(), Unreplaced> {
        for _ in 0..TRIES {
            match flock(&self.parent, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::AGAIN) => std::thread::sleep(PAUSE),
                // A file system without locks: names are taken exclusively all the same.
                Err(_) => return Ok(()),
            }
        }
        Err(Unreplaced::Io(format!("the folder of `{}` is locked by another program", shown(&self.held.place.path))))
    }

    /// Gives a file without a name the name of a new one.
    fn appear(&self, file: &OwnedFd, lost: &mut Vec<String>) -> Result<(), Unreplaced> {
        self.link(file, self.name).map_err(|error| self.refused_new(error))?;
        self.sync(lost);
        Ok(())
    }

    /// Gives a file without a name one for the moment.
    fn named(&self, file: &OwnedFd) -> Result<String, Unreplaced> {
        self.part(|part| self.link(file, part)).map(|(part, ())| part)
    }

    /// Makes a file under a name for the moment.
    fn create(&self) -> Result<(String, OwnedFd), Unreplaced> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        self.part(|part| openat2(&self.parent, part, flags, self.mode(), NO_LINKS))
    }

    /// Takes a name for the moment, which nothing has.
    fn part<T>(&self, take: impl Fn(&str) -> Result<T, Errno>) -> Result<(String, T), Unreplaced> {
        let own = Digest::of_parts(&[self.held.place.path.as_bytes(), self.content]).short();
        for number in 0..PARTS {
            let part = format!("{PART}-{own}-{number}");
            match take(&part) {
                Ok(taken) => return Ok((part, taken)),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Err(self.failed(Errno::EXIST))
    }

    fn link(&self, file: &OwnedFd, name: &str) -> Result<(), Errno> {
        linkat(rustix::fs::CWD, own_descriptor(file), &self.parent, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// Takes the place of the old file, if it is still that.
    fn exchange(&self, part: &str, old: &Old) -> Result<(), Unreplaced> {
        let (parent, name) = (&self.parent, self.name);
        match renameat_with(parent, part, parent, name, RenameFlags::EXCHANGE) {
            Ok(()) if self.is_still(part, old) => {
                self.unlink(part);
                Ok(())
            }
            Ok(()) => {
                let undone = renameat_with(parent, part, parent, name, RenameFlags::EXCHANGE);
                undone.map_err(|error| self.failed(error))?;
                Err(changed(self.held))
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if self.is_still(name, old) => {
                renameat(parent, part, parent, name).map_err(|error| self.failed(error))
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOENT) => Err(changed(self.held)),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Whether the file of this name is the old one, and was not written since it was looked at.
    fn is_still(&self, name: &str, old: &Old) -> bool {
        let now = self.hold(name).and_then(|handle| fstat(&handle));
        now.is_ok_and(|now| same(&now, &old.stat))
    }

    fn hold(&self, name: &str) -> Result<OwnedFd, Errno> {
        openat2(&self.parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty(), NO_LINKS)
    }

    fn unlink(&self, name: &str) {
        let _gone = unlinkat(&self.parent, name, AtFlags::empty());
    }

    /// What has happened has happened: that a crash may take it back is said, and no failure.
    fn sync(&self, lost: &mut Vec<String>) {
        if let Err(error) = fsync(&self.parent) {
            let (path, error) = (shown(&self.held.place.path), std::io::Error::from(error));
            lost.push(format!("`{path}` is in place, and a crash may take that back: {error}."));
        }
    }

    fn refused_new(&self, error: Errno) -> Unreplaced {
        if error == Errno::EXIST { changed(self.held) } else { self.failed(error) }
    }

    fn failed(&self, error: Errno) -> Unreplaced {
        failed(&self.held.place.path, error)
    }
}

/// Gives a file another name, which nothing has.
fn moved((from, name): (&OwnedFd, &str), (to, new): (&OwnedFd, &str)) -> Result<(), Errno> {
    match renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        // A link is made only where nothing is, too.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            linkat(from, name, to, new, AtFlags::empty())?;
            unlinkat(from, name, AtFlags::empty())
        }
        moved => moved,
    }
}

/// Whether a folder is as this process would make it again: nothing of it is lost with it.
fn is_common(folder: &File) -> bool {
    // Which bits are taken away from new folders; to ask the kernel otherwise would be to change it.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("Umask:")?.trim(), 8).ok());
    let is_usual = |stat: &Stat| is_ours(stat) && umask.is_some_and(|umask| stat.st_mode & 0o777 == 0o777 & !umask);
    fstat(folder).is_ok_and(|stat| is_usual(&stat)) && !has_attributes(folder)
}

/// Whether it is the same file, and nobody wrote to it in between.
fn same(one: &Stat, other: &Stat) -> bool {
    let of = |stat: &Stat| -> (FileId, i64, i64, i64) {
        (identity(stat), stat.st_size, stat.st_mtime, stat.st_mtime_nsec as i64)
    };
    of(one) == of(other) && FileType::from_raw_mode(one.st_mode) == FileType::RegularFile
}

fn changed(held: &Held) -> Unreplaced {
    Unreplaced::Changed(format!(
        "`{}` was changed since this call was judged; nothing was written. Read it again before you write it",
        shown(&held.place.path)
    ))
}

fn failed(path: &str, error: Errno) -> Unreplaced {
    let path = shown(path);
    match error {
        Errno::NOENT | Errno::LOOP | Errno::XDEV | Errno::NOTDIR => Unreplaced::Changed(format!(
            "`{path}` was changed since this call was judged; nothing was written. Look at it again before you write it"
        )),
        Errno::NAMETOOLONG => Unreplaced::Refused(format!("`{path}` is too long for a path")),
        Errno::ACCESS | Errno::PERM => Unreplaced::Io(format!("`{path}`: permission denied")),
        Errno::ROFS => Unreplaced::Io(format!("`{path}`: the file system is read-only")),
        Errno::NOSPC => Unreplaced::Io(format!("`{path}`: no space left on the disk")),
        Errno::DQUOT => Unreplaced::Io(format!("`{path}`: the disk quota is used up")),
        error => Unreplaced::Io(format!("`{path}`: {}", std::io::Error::from(error))),
    }
}
