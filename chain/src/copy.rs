//! Copies the record of a home as it was at one head, also while a node goes on writing it.
//!
//! # Why it is consistent
//! First comes the [`Cut`]: the published checkpoint, then the pinned head, then the journal up to the batch of that head,
//! which is read as opening would read it. The head is noted only when its batch is on the disk and before anyone is told,
//! so the cut has everything that was acknowledged before, and nothing that a power cut could still take back. The
//! segments of the cut are copied at once: they are all that a running node takes away. If it does so in between, the cut
//! is made anew. Everything else of a published size stays as it is: full tiles, bundles and contents never change, a
//! partial tile is followed by a wider one that begins with it, and contents only grow at their end.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use ephor_base::{
    SessionId,
    files::{Files, Open, Tree},
};
use ephor_record::{Damage, Minimum, ScanError};
use ephor_tlog::{
    Checkpoint, Head, Tile, checkpoint,
    tile::{self, Kind, WIDTH, edge},
};
use ephor_verify::Folder;
use ephor_verify::folder;
use ephor_verify::{Published, contents::content_path, history};

use crate::{
    durable,
    head::{HeadFile, PinnedHead},
    log::Config,
    marks, minimum, press,
    pruner::Below,
    scan::Scan,
    segment, vault,
};

/// Where segments wait for everything else to be copied.
const INCOMING: &str = "incoming";
/// Of a log that is being written, segments go while they are read. Then the cut is made anew.
const TRIES: u32 = 100;

/// A head, and what of a chain belongs to it.
pub(crate) struct Cut {
    pub(crate) head: Head,
    origin: String,
    /// The published checkpoint; none if nothing is published.
    checkpoint: Option<(Vec<u8>, Checkpoint)>,
    /// How many entries the tiles have.
    pub(crate) published: u64,
    /// Where the log begins, if it was pruned.
    minimum: Option<Minimum>,
    /// The segments, with the bytes of each that belong to it.
    segments: Vec<(u64, u64)>,
    /// Whether the log had this head that was asked for.
    pub(crate) had: bool,
}

/// A copy in the making, between two homes.
pub(crate) struct Copying<'a> {
    pub(crate) from: &'a Config,
    pub(crate) to: &'a Config,
    pub(crate) files: &'a Arc<dyn Files>,
    /// Up to this size, what is full in the copy is known to be whole on the disk.
    pub(crate) known: u64,
    /// The folder around the copy, watched since before anything was written.
    pub(crate) tree: OnceLock<Arc<dyn Tree>>,
}

impl Copying<'_> {
    /// Makes the cut and copies its segments to where they wait. `had` is a head that the log must have had.
    pub(crate) fn begin(&self, had: Head) -> Result<Cut, ScanError> {
        self.watch()?;
        let mut tries = 0;
        loop {
            let begun = self.cut(had).and_then(|cut| match cut {
                Some(cut) => self.stage(&cut).map(|()| Some(cut)),
                None => Ok(None),
            });
            match begun {
                Ok(Some(cut)) => return Ok(cut),
                Err(error) if !error.is_gone() || tries >= TRIES => return Err(error),
                _ => tries = tries.saturating_add(1),
            }
        }
    }

    /// Whether this head is what a cut would have now. Nothing is written for that.
    pub(crate) fn is_at(&self, head: Head) -> Result<bool, ScanError> {
        match self.cut(head) {
            Ok(cut) => Ok(cut.is_some_and(|cut| cut.head == head)),
            Err(error) if error.is_gone() || matches!(error, ScanError::Pruned { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Nothing if more was published meanwhile than it knew of.
    fn cut(&self, had: Head) -> Result<Option<Cut>, ScanError> {
        let (chain, files) = (&self.from.folder, self.files);
        let minimum = minimum::load(chain, files)?;
        let published = marks::read_published(chain, files)?;
        let size = published.as_ref().map_or(0, |(_, published)| published.head.size);
        marks::load_head(&self.from.head, &**files)?;
        let pinned = PinnedHead::load_farthest(&self.from.head, &**files).map_err(ScanError::io(&self.from.head))?;
        let missing = || ScanError::found("head", 0, None, Damage::HeadMissing);
        let pinned = pinned.ok_or_else(missing)?;
        let mut target = pinned.head;
        if let Some((_, published)) = published.as_ref().filter(|(_, published)| published.head.size > target.size) {
            target = published.head;
        }
        let mut scan = Scan::open(chain, files)?;
        if scan.start.size > size {
            return Ok(None);
        }
        let tiles = size;
        let mut has = had.size == 0 || had == scan.start;
        if had.size < scan.start.size && had.size > 0 {
            has = scan.earlier(had.size)? == had;
        }
        let mut segments: Vec<(u64, u64)> = Vec::new();
        while scan.head().size < target.size && scan.next()?.is_some() {
            has = has || scan.head() == had;
            note(&mut segments, &scan);
        }
        // What is published is needed only once.
        while segments.get(1).is_some_and(|(next, _)| *next <= tiles) {
            segments.remove(0);
        }
        if segments.is_empty() {
            segments.push((scan.start.size, segment::HEADER as u64));
        }
        if scan.head() != target {
            let (expected, found) = (target.size, scan.head().size);
            return Err(if found < expected {
                scan.end_finding(Damage::CutBack { expected, found }).into()
            } else {
                ScanError::found("head", 0, Some(expected), Damage::HeadForeign)
            });
        }
        let (origin, checkpoint) = (pinned.origin, published);
        Minimum::check(minimum, scan.rules.pruned())?;
        Ok(Some(Cut { head: target, origin, checkpoint, published: tiles, minimum, segments, had: has }))
    }

    fn incoming(&self) -> PathBuf {
        durable::parent(&self.to.folder).join(INCOMING)
    }

    fn stage(&self, cut: &Cut) -> Result<(), ScanError> {
        let (files, incoming) = (&**self.files, self.incoming());
        let cleared = || {
            durable::make_folder(files, &incoming)?;
            folder::list(files, &incoming)?.iter().try_for_each(|name| files.remove(&incoming.join(name)))
        };
        cleared().map_err(told(&incoming))?;
        for (first, length) in &cut.segments {
            let name = segment::name(*first);
            self.copy(&segment::folder(&self.from.folder).join(&name), &incoming.join(&name), Some(*length))?;
        }
        Ok(())
    }

    /// Copies what is published of the cut. `progress` hears how many entries that was so far.
    pub(crate) fn copy_published(&self, cut: &Cut, mut progress: impl FnMut(u64)) -> Result<(), ScanError> {
        let source = Published::in_folder(&self.from.folder, self.files, cut.published);
        for kind in tile::kinds(cut.published) {
            let mut known = tile::count(kind, self.known.min(cut.published)) / WIDTH;
            if matches!(kind, Kind::Entries | Kind::Hashes(0)) {
                known = known.max(cut.minimum.map_or(0, |minimum| minimum.index) / WIDTH);
            }
            for index in known..tile::count(kind, cut.published).div_ceil(WIDTH) {
                let Some(tile) = Tile::of(kind, index, cut.published) else { continue };
                self.copy_tile(&source, tile)?;
                if kind == Kind::Entries {
                    progress(index.saturating_add(1).saturating_mul(WIDTH).min(cut.published));
                }
            }
        }
        for size in history::kept_sizes(&*Folder::source(&self.from.folder, self.files))? {
            if size <= cut.published && cut.minimum.is_none_or(|minimum| size >= minimum.index) {
                let of = |config: &Config| checkpoint::kept_path(&config.folder, size);
                self.copy(&of(self.from), &of(self.to), None)?;
            }
        }
        Ok(())
    }

    fn copy_tile(&self, source: &Published, tile: Tile) -> Result<(), ScanError> {
        let read = || match tile.kind {
            Kind::Hashes(_) => source.hashes(tile.kind, tile.index).map(|hashes| edge::to_bytes(&hashes)),
            Kind::Entries => source.bundle(tile.index).map(|(bytes, _)| bytes),
        };
        let (mut bytes, mut tries) = (read(), 0);
        // A partial tile may be replaced by a wider one, and that by the next, while it is looked for.
        while !tile.is_full() && tries < TRIES && is_missing(&bytes) {
            (bytes, tries) = (read(), tries.saturating_add(1));
        }
        let bytes = bytes?;
        let path = self.to.folder.join(tile.path());
        durable::put(&**self.files, &path, &bytes).map_err(told(&path))?;
        let contents = if tile.kind == Kind::Entries { press::contents_of(&bytes) } else { 0 };
        if contents == 0 {
            return Ok(());
        }
        let of = |config: &Config| content_path(&config.vault, tile.index);
        self.copy(&of(self.from), &of(self.to), Some(contents))
    }

    /// Copies the keys of the sessions, and then which sessions were erased, so that a home that goes on from the copy gives none
    /// of those a key again; says which files that are, below the vault.
    pub(crate) fn copy_sessions(&self) -> Result<Vec<PathBuf>, ScanError> {
        let mut copied = Vec::new();
        for name in sessions(&self.from.vault, &["", "keys"], &**self.files)? {
            if self.copy_session(&name)? {
                copied.push(name);
            }
        }
        let erased = |vault| sessions(vault, &["erased"], &**self.files).map(BTreeSet::from_iter);
        let (here, there): (BTreeSet<_>, BTreeSet<_>) = (erased(&self.from.vault)?, erased(&self.to.vault)?);
        for name in here.difference(&there) {
            let path = self.to.vault.join(name);
            durable::create(&**self.files, &path).map_err(told(&path))?;
        }
        copied.extend(here);
        Ok(copied)
    }

    /// Whether home and copy have keys of the same sessions, and know of the same ones that they were erased: a key is destroyed a moment
    /// after the record says so.
    pub(crate) fn has_the_same_sessions(&self) -> Result<bool, ScanError> {
        let of =
            |config: &Config| sessions(&config.vault, &["", "keys", "erased"], &**self.files).map(BTreeSet::from_iter);
        let (from, to): (BTreeSet<_>, BTreeSet<_>) = (of(self.from)?, of(self.to)?);
        Ok(from == to)
    }

    /// Copies the key of a session, which may be erased at any time: overwritten first, then removed. Says whether the copy may
    /// have one.
    fn copy_session(&self, name: &Path) -> Result<bool, ScanError> {
        let (from, to) = (self.from.vault.join(name), self.to.vault.join(name));
        for _ in 0..TRIES {
            let bytes = folder::read_whole(&**self.files, &from, vault::SESSION_FILE).map_err(ScanError::io(&from))?;
            let Some(bytes) = bytes else { return Ok(false) };
            if vault::is_key_file(&bytes) {
                durable::put(&**self.files, &to, &bytes).map_err(told(&to))?;
                return Ok(true);
            }
        }
        // Half erased, or damaged. What cannot be read is not put over what an older backup may have.
        Ok(true)
    }

    /// Destroys the keys of sessions that the copy has and the home no longer has.
    pub(crate) fn forget_sessions(&self, kept: &[PathBuf]) -> Result<(), ScanError> {
        for name in sessions(&self.to.vault, &["", "keys"], &**self.files)?.iter().filter(|name| !kept.contains(name)) {
            let path = self.to.vault.join(name);
            let destroyed = || {
                let file = self.files.open(&path, Open::Write)?;
                let length = usize::try_from(file.len()?).unwrap_or(0);
                durable::write_all(&*file, &vec![0; length], 0)?;
                file.sync_data()?;
                self.files.remove(&path)?;
                self.files.sync_folder(durable::parent(&path))
            };
            destroyed().map_err(told(&path))?;
        }
        Ok(())
    }

    /// Waits until the disk has everything that was copied.
    pub(crate) fn sync(&self) -> Result<(), ScanError> {
        let home = durable::parent(&self.to.folder);
        self.watch()?.sync().map_err(told(home))
    }

    /// The home that is copied to; from the first call on it hears of every error.
    fn watch(&self) -> Result<&Arc<dyn Tree>, ScanError> {
        let home = durable::parent(&self.to.folder);
        match self.tree.get() {
            Some(tree) => Ok(tree),
            None => {
                let tree = self.files.tree(home).map_err(told(home))?;
                Ok(self.tree.get_or_init(|| tree))
            }
        }
    }

    /// Puts the cut in the place of what the copy had before: journal, checkpoint and head. Until it is done the copy is
    /// not whole.
    pub(crate) fn switch(&self, cut: &Cut) -> Result<(), ScanError> {
        let (files, journal) = (&**self.files, segment::folder(&self.to.folder));
        self.tidy(cut)?;
        let switched = || {
            files.create_folder(&journal)?;
            for name in folder::list(files, &journal)? {
                files.remove(&journal.join(name))?;
            }
            for (first, _) in &cut.segments {
                let name = segment::name(*first);
                files.rename(&self.incoming().join(&name), &journal.join(&name))?;
            }
            if let Some((bytes, _)) = &cut.checkpoint {
                durable::replace(files, &checkpoint::path(&self.to.folder), bytes)?;
            }
            if let Some(minimum) = cut.minimum {
                durable::replace(files, &self.to.folder.join(Minimum::FILE), &minimum.to_bytes())?;
                // An older copy still had it.
                Below::find(&self.to.folder, &self.to.vault, files, minimum.index)?.remove(files)?;
            }
            HeadFile::open(&self.to.head, self.files, &cut.origin, cut.head, None)?;
            files.remove_folder(&self.incoming())
        };
        switched().map_err(told(&journal))?;
        self.sync()
    }

    /// Takes away partial tiles of other sizes, which an earlier copy left.
    fn tidy(&self, cut: &Cut) -> Result<(), ScanError> {
        let tidied = || {
            for kind in tile::kinds(cut.published) {
                for index in tile::count(kind, self.known) / WIDTH..=tile::count(kind, cut.published) / WIDTH {
                    let folder = self.to.folder.join(Tile::full(kind, index).partials());
                    let own = Tile::of(kind, index, cut.published).filter(|tile| !tile.is_full());
                    let own = own.map(|tile| PathBuf::from(tile.width.to_string()));
                    let names = folder::list(&**self.files, &folder)?;
                    for name in names.iter().filter(|name| Some(*name) != own.as_ref()) {
                        self.files.remove(&folder.join(name))?;
                    }
                    if own.is_none() && !names.is_empty() {
                        self.files.remove_folder(&folder)?;
                    }
                }
            }
            Ok(())
        };
        tidied().map_err(told(&self.to.folder))
    }

    pub(crate) fn copy_if_there(&self, from: &Path, to: &Path) -> Result<(), ScanError> {
        match self.copy(from, to, None) {
            Err(error) if error.is_gone() => Ok(()),
            other => other,
        }
    }

    /// Puts the first `length` bytes of `from`, or all, into a new file, without waiting for the disk; only a file that is there
    /// already, as in an older copy, is replaced whole.
    fn copy(&self, from: &Path, to: &Path, length: Option<u64>) -> Result<(), ScanError> {
        let source = self.files.open(from, Open::Read).map_err(ScanError::io(from))?;
        let length = match length {
            Some(length) => length,
            None => source.len().map_err(ScanError::io(from))?,
        };
        match durable::create(&**self.files, to) {
            Ok(target) => durable::copy_start(&*source, &*target, length).map_err(told(to)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                durable::replace_by(&**self.files, to, |target| durable::copy_start(&*source, target, length))
                    .map_err(told(to))
            }
            Err(error) => Err(told(to)(error)),
        }
    }
}

fn is_missing<T>(read: &Result<T, ScanError>) -> bool {
    matches!(read, Err(ScanError::Damaged(finding)) if finding.damage == Damage::Missing)
}

/// Up to where the segment that is being read belongs to the cut.
fn note(segments: &mut Vec<(u64, u64)>, scan: &Scan) {
    let Some((first, end)) = scan.reached() else { return };
    match segments.last_mut().filter(|(last, _)| *last == first) {
        Some(last) => last.1 = end,
        None => segments.push((first, end)),
    }
}

/// The files that are named by sessions in these folders, below the vault. Those of keys lie in the vault or in a folder of their own.
fn sessions(vault: &Path, folders: &[&str], files: &dyn Files) -> Result<Vec<PathBuf>, ScanError> {
    let mut found = Vec::new();
    for folder in folders {
        let path = if folder.is_empty() { vault.to_owned() } else { vault.join(folder) };
        let names = folder::list(files, &path).map_err(ScanError::io(&path))?;
        let named = |name: &PathBuf| name.to_str().is_some_and(|name| name.parse::<SessionId>().is_ok());
        found.extend(names.into_iter().filter(named).map(|name| Path::new(folder).join(name)));
    }
    Ok(found)
}

/// An error of the copy. That something is not there never means that the log went on.
pub(crate) fn told(path: &Path) -> impl FnOnce(io::Error) -> ScanError {
    let path = path.to_owned();
    move |source| {
        let gone = source.kind() == io::ErrorKind::NotFound;
        let source = if gone { io::Error::other(format!("{source}")) } else { source };
        ScanError::Io { path, source }
    }
}
