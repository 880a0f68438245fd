//! The pinned head: the last head this node knows of, kept outside the folder of the chain.
//!
//! A log that is cut back to an older checkpoint looks whole. The pinned head is what finds it. It is rewritten after each
//! batch without waiting for the disk, so that a killed process loses nothing, and about once a second it is written
//! again and waited for, so that a power cut loses little.
//!
//! The file has three slots of 256 bytes, each a line of text. Slot 0 takes the writes that nobody waits for; slots 1 and
//! 2 take turns at the others. Whatever a crash tears, one slot that was waited for is whole. The newest whole slot
//! counts. The line says `running` or `stopped`: after a clean stop nothing may follow the end of the journal.

use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use ephor_base::{
    Digest,
    files::{File, Files, Open},
};

use crate::{
    checkpoint::{Checkpoint, Head},
    durable,
};

const SLOT: usize = 256;
const SLOTS: usize = 3;
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
        let slots = bytes.chunks_exact(SLOT).take(SLOTS).filter_map(Self::parse_slot);
        slots.max_by_key(|pinned| pinned.generation).ok_or(NotAHead)
    }

    /// Reads a head file, or a checkpoint kept elsewhere; nothing if there is no file.
    ///
    /// # Errors
    /// What the system says; `InvalidData` if the file is not a head.
    pub fn load(path: &Path, files: &dyn Files) -> io::Result<Option<Self>> {
        let most = crate::checkpoint::MAX_CHECKPOINT_BYTES;
        let Some(bytes) = durable::read_whole(files, path, most)? else { return Ok(None) };
        Self::parse(&bytes).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// The head file's largest head. The newest may be smaller: while a round pins what it has published, the writer notes
    /// what follows.
    pub(crate) fn load_farthest(path: &Path, files: &dyn Files) -> io::Result<Option<Self>> {
        let Some(newest) = Self::load(path, files)? else { return Ok(None) };
        let most = crate::checkpoint::MAX_CHECKPOINT_BYTES;
        let bytes = durable::read_whole(files, path, most)?.unwrap_or_default();
        let slots = bytes.chunks_exact(SLOT).take(SLOTS).filter_map(Self::parse_slot);
        let same = slots.filter(|slot| slot.origin == newest.origin);
        let farthest = same.max_by_key(|pinned| pinned.head.size);
        Ok(Some(farthest.filter(|farthest| farthest.head.size > newest.head.size).unwrap_or(newest)))
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
    file: Arc<dyn File>,
    origin: String,
    /// The head of the last write, and its generation.
    last: Mutex<(Head, u64)>,
    pins: AtomicU64,
}

impl HeadFile {
    /// Opens the file, or makes it with this head in it. `last` is what was read from it.
    pub(crate) fn open(
        path: &Path,
        files: &dyn Files,
        origin: &str,
        head: Head,
        last: Option<&PinnedHead>,
    ) -> io::Result<Self> {
        if last.is_none() {
            let first = PinnedHead { origin: origin.to_owned(), head, stopped: false, generation: 1 };
            durable::make_folder(files, durable::parent(path))?;
            durable::replace(files, path, &first.to_slot().repeat(SLOTS))?;
        }
        let file = files.open(path, Open::Write)?;
        let generation = last.map_or(1, |last| last.generation);
        Ok(Self { file, origin: origin.to_owned(), last: Mutex::new((head, generation)), pins: AtomicU64::new(0) })
    }

    /// Writes the head and does not wait.
    pub(crate) fn note(&self, head: Head) -> io::Result<()> {
        self.write(head, false, 0)
    }

    /// Writes the head and waits for the disk.
    pub(crate) fn pin(&self, head: Head, stopped: bool) -> io::Result<()> {
        let turn = self.pins.fetch_add(1, Ordering::Relaxed) % 2;
        self.write(head, stopped, turn.saturating_add(1))?;
        self.file.sync_data()
    }

    /// The newest slot never has a smaller head than an older one: whoever publishes may come with a head that the writer
    /// has left behind.
    fn write(&self, head: Head, stopped: bool, slot: u64) -> io::Result<()> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (newest, generation) = *last;
        let head = if head.size < newest.size { newest } else { head };
        *last = (head, generation.saturating_add(1));
        let pinned =
            PinnedHead { origin: self.origin.clone(), head, stopped, generation: generation.saturating_add(1) };
        durable::write_all(&*self.file, &pinned.to_slot(), slot.saturating_mul(SLOT as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;

    #[test]
    fn a_pin_that_comes_late_does_not_take_the_head_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head");
        let at = |size| Head { size, root: Digest::of(&[size as u8]) };
        let file = HeadFile::open(&path, &Disk, "ephor/x", at(1), None).unwrap();
        file.note(at(9)).unwrap();
        file.pin(at(5), false).unwrap();
        assert_eq!(PinnedHead::load(&path, &Disk).unwrap().unwrap().head, at(9));
        file.pin(at(12), true).unwrap();
        assert_eq!(PinnedHead::load(&path, &Disk).unwrap().unwrap().head, at(12));
    }
}
