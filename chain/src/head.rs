//! The pinned head: the last head this node knows of, kept outside the folder of the chain.
//!
//! A log that is cut back to an older checkpoint looks whole. The pinned head is what finds it. It is rewritten after each
//! batch without waiting for the disk, so that a killed process loses nothing, and about once a second it is written
//! again and waited for, so that a power cut loses little.
//!
//! The file has three slots of 256 bytes, each a line of text at the beginning of a page of its own: a write that is torn, or a page
//! that cannot be read any more, takes one slot with it. Slot 0 takes the writes that no caller waits for; slots 1 and
//! 2 take turns at the others. Whatever a crash tears, one slot that was waited for is whole. The newest whole slot
//! counts. After a sync that failed the file is made anew. The line says `running` or `stopped`: after a clean stop nothing
//! may follow the end of the journal.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use ephor_base::{
    Digest,
    files::{File, Files, Open},
};
use ephor_tlog::{Checkpoint, Head};
use ephor_verify::folder;

use crate::durable;

const SLOT: usize = 256;
const SLOTS: usize = 3;
/// A page of memory and a block of a disk have at most this many bytes, as nearly all do.
const PAGE: usize = 4096;
/// The bytes of a head file, which end in a slot.
const LENGTH: usize = PAGE * (SLOTS - 1) + SLOT;
/// The bytes that one of an earlier version has: one slot right behind another.
const CLOSE: usize = SLOT * SLOTS;
/// A head file, or a checkpoint that was kept elsewhere, with the lines of witnesses that it has.
const MOST: usize = ephor_tlog::note::MAX_NOTE_BYTES;
const _: () = assert!(LENGTH <= MOST);
const MARK: &str = "ephor-head-1";

/// A head that was pinned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinnedHead {
    /// The name of the log.
    pub origin: String,
    /// The head.
    pub head: Head,
    /// Whether the node stopped cleanly there.
    pub stopped: bool,
    /// Counts the writes, to find the newest.
    generation: u64,
}

/// Bytes that are not a pinned head.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("neither a pinned head nor a checkpoint")]
pub struct NotAHead;

impl PinnedHead {
    /// The head of a checkpoint that was kept elsewhere.
    #[must_use]
    pub fn of(checkpoint: &Checkpoint) -> Self {
        let Checkpoint { origin, head, .. } = checkpoint;
        Self { origin: origin.clone(), head: *head, stopped: false, generation: 0 }
    }

    /// Reads the bytes of a head file, or of a checkpoint kept elsewhere.
    ///
    /// # Errors
    /// [`NotAHead`] if no slot is whole and it is no checkpoint.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotAHead> {
        if let Ok(checkpoint) = Checkpoint::parse(bytes) {
            return Ok(Self::of(&checkpoint));
        }
        Self::slots(bytes).max_by_key(|pinned| pinned.generation).ok_or(NotAHead)
    }

    /// Reads a head file, or a checkpoint kept elsewhere; nothing if there is no file.
    ///
    /// # Errors
    /// What the system says; `InvalidData` if the file is not a head.
    pub fn load(path: &Path, files: &dyn Files) -> io::Result<Option<Self>> {
        let Some(bytes) = folder::read_whole(files, path, MOST)? else { return Ok(None) };
        Self::parse(&bytes).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// The head file's largest head. The newest may be smaller: while a round pins what it has published, the writer notes
    /// what follows.
    pub(crate) fn load_farthest(path: &Path, files: &dyn Files) -> io::Result<Option<Self>> {
        let Some(newest) = Self::load(path, files)? else { return Ok(None) };
        let bytes = folder::read_whole(files, path, MOST)?.unwrap_or_default();
        let same = Self::slots(&bytes).filter(|slot| slot.origin == newest.origin);
        let farthest = same.max_by_key(|pinned| pinned.head.size);
        Ok(Some(farthest.filter(|farthest| farthest.head.size > newest.head.size).unwrap_or(newest)))
    }

    /// The whole slots of a head file.
    fn slots(bytes: &[u8]) -> impl Iterator<Item = Self> {
        let apart = if bytes.len() == CLOSE { SLOT } else { PAGE };
        bytes.chunks(apart).take(SLOTS).filter_map(|page| Self::parse_slot(page.get(..SLOT)?))
    }

    /// A head file with this in every slot.
    fn to_file(&self) -> Vec<u8> {
        let slot = self.to_slot();
        let mut bytes = vec![0; LENGTH];
        bytes.chunks_mut(PAGE).filter_map(|page| page.get_mut(..SLOT)).for_each(|at| at.copy_from_slice(&slot));
        bytes
    }

    fn parse_slot(slot: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(slot).ok()?.trim_end_matches(['\n', ' ']);
        let mut words = line.split(' ');
        let (mark, generation, origin) = (words.next()?, words.next()?.parse().ok()?, words.next()?.to_owned());
        let (size, root, state) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?);
        let pinned = Self { origin, head: Head { size, root }, stopped: state == "stopped", generation };
        (mark == MARK && pinned.to_slot().as_slice() == slot).then_some(pinned)
    }

    fn to_slot(&self) -> Vec<u8> {
        let Self { origin, head: Head { size, root }, stopped, generation } = self;
        let state = if *stopped { "stopped" } else { "running" };
        let line = format!("{MARK} {generation} {origin} {size} {root} {state}");
        let digest = Digest::of(line.as_bytes());
        format!("{:<width$}\n", format!("{line} {digest}"), width = SLOT.saturating_sub(1)).into_bytes()
    }
}

/// The open head file of a running node.
pub(crate) struct HeadFile {
    path: PathBuf,
    files: Arc<dyn Files>,
    origin: String,
    open: Mutex<Pinning>,
}

/// What the last write left.
struct Pinning {
    /// None after a sync that failed: what it was to bring to the disk is written anew, into a new file.
    file: Option<Arc<dyn File>>,
    head: Head,
    generation: u64,
    pins: u64,
}

impl HeadFile {
    /// Opens the file, or makes it with this head in it. `last` is what was read from it.
    pub(crate) fn open(
        path: &Path,
        files: &Arc<dyn Files>,
        origin: &str,
        head: Head,
        last: Option<&PinnedHead>,
    ) -> io::Result<Self> {
        let generation = last.map_or(0, |last| last.generation);
        let open = Mutex::new(Pinning { file: None, head, generation, pins: 0 });
        let this = Self { path: path.to_owned(), files: Arc::clone(files), origin: origin.to_owned(), open };
        let there = folder::open_existing(&**files, path, Open::Write)?;
        if last.is_none() || there.map_or(Ok(0), |file| file.len())? != LENGTH as u64 {
            durable::make_folder(&**files, durable::parent(path))?;
            this.pin(head, false)?;
        } else {
            this.lock()?.file = Some(files.open(path, Open::Write)?);
        }
        Ok(this)
    }

    /// Writes the head and does not wait.
    pub(crate) fn note(&self, head: Head) -> io::Result<()> {
        let mut open = self.lock()?;
        let pinned = self.next(&mut open, head, false);
        match open.file.clone() {
            Some(file) => durable::write_all(&*file, &pinned.to_slot(), 0),
            None => self.renew(&mut open, &pinned),
        }
    }

    /// Writes the head and waits for the disk.
    pub(crate) fn pin(&self, head: Head, stopped: bool) -> io::Result<()> {
        let file = {
            let mut open = self.lock()?;
            let pinned = self.next(&mut open, head, stopped);
            open.pins = open.pins.wrapping_add(1);
            let place = (open.pins % 2).saturating_add(1).saturating_mul(PAGE as u64);
            let Some(file) = open.file.clone() else { return self.renew(&mut open, &pinned) };
            durable::write_all(&*file, &pinned.to_slot(), place)?;
            file
        };
        let synced = file.sync_data();
        if synced.is_err() {
            self.lock()?.file = None;
        }
        synced
    }

    /// The newest slot never has a smaller head than an older one: the publisher may come with a head that the writer
    /// has left behind.
    fn next(&self, open: &mut Pinning, head: Head, stopped: bool) -> PinnedHead {
        if head.size >= open.head.size {
            open.head = head;
        }
        open.generation = open.generation.saturating_add(1);
        let (origin, head, generation) = (self.origin.clone(), open.head, open.generation);
        PinnedHead { origin, head, stopped, generation }
    }

    /// Puts a new file with this in each slot in the place of the one that failed, and waits for the disk.
    fn renew(&self, open: &mut Pinning, pinned: &PinnedHead) -> io::Result<()> {
        durable::replace(&*self.files, &self.path, &pinned.to_file())?;
        open.file = Some(self.files.open(&self.path, Open::Write)?);
        Ok(())
    }

    fn lock(&self) -> io::Result<MutexGuard<'_, Pinning>> {
        let poisoned = |_| io::Error::other("a bug: a thread panicked over the pinned head; start the node again");
        self.open.lock().map_err(poisoned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;

    fn disk() -> Arc<dyn Files> {
        Arc::new(Disk)
    }

    #[test]
    fn each_slot_lies_in_a_page_of_its_own_and_one_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head");
        let at = |size| Head { size, root: Digest::of(&[size as u8]) };
        let file = HeadFile::open(&path, &disk(), "ephor/x", at(1), None).unwrap();
        file.note(at(9)).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for page in 0..SLOTS {
            let mut torn = bytes.clone();
            let others = (0..SLOTS).filter(|other| *other != page);
            others.for_each(|other| torn.chunks_mut(PAGE).nth(other).unwrap().fill(0xff));
            assert_eq!(PinnedHead::parse(&torn).unwrap().head.size, if page == 0 { 9 } else { 1 });
        }
    }

    #[test]
    fn a_head_of_an_earlier_version_is_read_and_then_laid_out_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head");
        let head = Head { size: 7, root: Digest::of(b"7") };
        let old = PinnedHead { origin: "ephor/x".to_owned(), head, stopped: true, generation: 5 };
        std::fs::write(&path, old.to_slot().repeat(SLOTS)).unwrap();
        let last = PinnedHead::load(&path, &Disk).unwrap().unwrap();
        assert_eq!(last, old);
        HeadFile::open(&path, &disk(), "ephor/x", head, Some(&last)).unwrap().pin(head, false).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), LENGTH as u64);
        assert_eq!(PinnedHead::load(&path, &Disk).unwrap().unwrap().head, head);
    }

    #[test]
    fn a_pin_that_comes_late_does_not_take_the_head_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head");
        let at = |size| Head { size, root: Digest::of(&[size as u8]) };
        let files: Arc<dyn Files> = Arc::new(Disk);
        let file = HeadFile::open(&path, &files, "ephor/x", at(1), None).unwrap();
        file.note(at(9)).unwrap();
        file.pin(at(5), false).unwrap();
        assert_eq!(PinnedHead::load(&path, &Disk).unwrap().unwrap().head, at(9));
        file.pin(at(12), true).unwrap();
        assert_eq!(PinnedHead::load(&path, &Disk).unwrap().unwrap().head, at(12));
    }
}
