//! The journal as its writer has it: the last segment, open at its end, with disk reserved ahead.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::{
    Digest,
    files::{File, Files, Open},
};
use ephor_tlog::Head;
use ephor_verify::folder;

use crate::{
    durable,
    frame::{self, FrameHeader},
    scan::End,
    segment::{self, SegmentHeader},
};

/// Disk is reserved in steps of this many bytes. Each step costs the file system an allocation; a clean stop gives back
/// what was not used.
pub(crate) const STEP: u64 = 1 << 20;

/// A segment of which everything is published is left for a new one when it has more than this. Less is not worth a file.
const IDLE_BYTES: u64 = 256 << 10;

/// A segment has at least so many times the bytes of entries with which it began: what a snapshot costs stays a part of what is
/// written between two of them, however much it repeats.
const AMORTISED: u64 = 2;

/// The last segment.
pub(crate) struct Journal {
    files: Arc<dyn Files>,
    chain: PathBuf,
    origin: Digest,
    segment_bytes: u64,
    file: Arc<dyn File>,
    /// The sequence it begins at.
    first: u64,
    /// Where the next frame goes.
    offset: u64,
    /// Up to where disk is reserved.
    reserved: u64,
    /// Up to where something was written, be it zeros.
    primed: u64,
    /// The bytes in use in earlier segments.
    earlier: u64,
    /// The bytes of entries in the frame with which the segment begins; 0 before that is written.
    opening: u64,
}

impl Journal {
    /// Begins a journal.
    pub(crate) fn begin(files: &Arc<dyn Files>, chain: &Path, origin: Digest, segment_bytes: u64) -> io::Result<Self> {
        let folder = segment::folder(chain);
        durable::make_folder(&**files, chain)?;
        durable::make_folder(&**files, &folder)?;
        let empty = SegmentHeader { origin, before: Head::empty() };
        let (file, reserved) = draft(&**files, &folder, &empty, STEP)?;
        enter(&**files, &folder, &empty)?;
        let (files, chain, offset) = (Arc::clone(files), chain.to_owned(), segment::HEADER as u64);
        let (first, earlier, opening, primed) = (0, 0, 0, offset);
        Ok(Self { files, chain, origin, segment_bytes, file, first, offset, reserved, primed, earlier, opening })
    }

    /// Goes on where a scan ended, after cutting off what is torn. `renew` puts the segment into a new file first: where the last node
    /// did not stop cleanly, what reads as written may have failed to reach the disk.
    pub(crate) fn resume(
        files: &Arc<dyn Files>,
        chain: &Path,
        origin: Digest,
        segment_bytes: u64,
        end: &End,
        used: u64,
        renew: bool,
    ) -> io::Result<Self> {
        let folder = segment::folder(chain);
        let path = folder.join(segment::name(end.first));
        if renew {
            let draft = folder.join(segment::DRAFT);
            durable::remove(&**files, &draft)?;
            let new = files.open(&draft, Open::Create)?;
            durable::copy_start(&*files.open(&path, Open::Read)?, &*new, end.offset)?;
            new.sync_data()?;
            files.rename(&draft, &path)?;
            files.sync_folder(&folder)?;
        }
        let file = files.open(&path, Open::Write)?;
        let (files, chain) = (Arc::clone(files), chain.to_owned());
        let (first, offset, earlier) = (end.first, end.offset, used.saturating_sub(end.offset));
        // What lies beyond the last frame was perhaps never reserved, so it does not count before `allocate` says so.
        let (reserved, primed) = (offset, offset);
        let mut begun = [0; frame::HEADER];
        folder::read_full(&*file, &mut begun, segment::HEADER as u64)?;
        let opening = FrameHeader::parse(&begun).map_or(0, |frame| u64::from(frame.entries));
        Ok(Self { files, chain, origin, segment_bytes, file, first, offset, reserved, primed, earlier, opening })
    }

    /// The bytes in use in all segments.
    pub(crate) const fn used(&self) -> u64 {
        self.earlier.saturating_add(self.offset)
    }

    /// The bytes reserved beyond those in use.
    pub(crate) const fn ahead(&self) -> u64 {
        self.reserved.saturating_sub(self.offset)
    }

    /// Reserves at least `more` bytes; says how many it were.
    pub(crate) fn grow(&mut self, more: u64) -> io::Result<u64> {
        let by = [more.max(STEP), more].into_iter();
        let mut last = io::ErrorKind::StorageFull.into();
        // A disk that is too full for a step may still have what is needed.
        for by in by {
            let target = self.reserved.saturating_add(by);
            match self.file.allocate(target) {
                Ok(()) => {
                    self.reserved = target;
                    return Ok(by);
                }
                Err(error) => last = error,
            }
            if !durable::is_full(&last) {
                break;
            }
        }
        Err(last)
    }

    /// Writes zeros over the next step of what is reserved, once less than half a step of zeros is left.
    ///
    /// The first write into reserved disk changes the file system's records of it, so to wait for that write is to wait for
    /// the file system's own journal, together with everyone else on the machine. So that is done once a step, and not
    /// once a batch.
    pub(crate) fn prime(&mut self) -> io::Result<()> {
        let from = self.primed.max(self.offset);
        let to = self.reserved.min(from.saturating_add(STEP));
        if to <= from || from.saturating_sub(self.offset) >= STEP / 2 {
            return Ok(());
        }
        match self.file.prime(from, to.saturating_sub(from)) {
            // What is reserved stays reserved; the batches there only take longer.
            Err(error) if !durable::is_full(&error) => return Err(error),
            _ => self.primed = to,
        }
        Ok(())
    }

    /// Writes a frame, with so many bytes of entries, and waits for the disk.
    pub(crate) fn write(&mut self, frame: &[u8], entries: u64) -> io::Result<()> {
        durable::write_all(&*self.file, frame, self.offset)?;
        self.file.sync_data()?;
        if self.is_empty() {
            self.opening = entries;
        }
        self.offset = self.offset.saturating_add(frame.len() as u64);
        Ok(())
    }

    /// Whether the next batch should begin a segment: this one is full, or nothing in it is needed for long and there is
    /// enough to be worth it.
    pub(crate) const fn is_due(&self, published: bool) -> bool {
        let worth = self.offset >= self.opening.saturating_mul(AMORTISED);
        worth && (self.offset >= self.segment_bytes || (published && self.offset > IDLE_BYTES))
    }

    /// There is no snapshot to begin another with: this segment has to grow to twice its size before that is tried again.
    pub(crate) const fn put_off(&mut self) {
        self.opening = self.offset;
    }

    /// Whether the segment has no batch yet.
    pub(crate) const fn is_empty(&self) -> bool {
        self.offset <= segment::HEADER as u64
    }

    /// The sequence the segment begins at.
    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    /// Goes on in a new segment. What was reserved here is reserved there; says how much more. If the disk is too full
    /// for that, this segment goes on beyond its size, on what it has reserved.
    pub(crate) fn rotate(&mut self, before: Head) -> io::Result<u64> {
        let folder = segment::folder(&self.chain);
        let ahead = self.ahead();
        let header = SegmentHeader { origin: self.origin, before };
        let (file, reserved) = match draft(&*self.files, &folder, &header, ahead) {
            Ok(drafted) => drafted,
            Err(error) if durable::is_full(&error) => return Ok(0),
            Err(error) => return Err(error),
        };
        // From here on the segment may be seen, so there is no way back.
        enter(&*self.files, &folder, &header)?;
        self.trim()?;
        self.earlier = self.used();
        (self.file, self.first, self.reserved) = (file, before.size, reserved);
        (self.offset, self.opening) = (segment::HEADER as u64, 0);
        self.primed = self.offset;
        Ok(self.ahead().saturating_sub(ahead))
    }

    /// Gives back what is reserved and not used.
    pub(crate) fn trim(&self) -> io::Result<()> {
        self.file.set_len(self.offset)?;
        self.file.sync_data()
    }
}

/// Makes a segment with its header and room for `ahead` bytes, under a name that does not count.
fn draft(files: &dyn Files, folder: &Path, header: &SegmentHeader, ahead: u64) -> io::Result<(Arc<dyn File>, u64)> {
    let path = folder.join(segment::DRAFT);
    match files.remove(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let filled = fill(files, &path, header, ahead);
    if filled.is_err() {
        // Half a draft on a full disk only takes room. It never counts, so it may also stay.
        let _ = files.remove(&path);
    }
    filled
}

fn fill(files: &dyn Files, path: &Path, header: &SegmentHeader, ahead: u64) -> io::Result<(Arc<dyn File>, u64)> {
    let file = files.open(path, Open::Create)?;
    let reserved = ahead.max(STEP).saturating_add(segment::HEADER as u64);
    file.allocate(reserved)?;
    durable::write_all(&*file, &header.to_bytes(), 0)?;
    file.sync_data()?;
    Ok((file, reserved))
}

/// Gives the draft its name.
fn enter(files: &dyn Files, folder: &Path, header: &SegmentHeader) -> io::Result<()> {
    files.rename(&folder.join(segment::DRAFT), &folder.join(segment::name(header.before.size)))?;
    files.sync_folder(folder)
}
