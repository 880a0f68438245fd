//! The one reader of the journal: streams it batch by batch and checks everything but the signatures.
//!
//! Opening, reading and verifying all go through here, so there is one opinion on what a whole journal is. It holds one
//! batch in memory.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::{
    Digest, Seq, cbor,
    files::{File, Files, Open},
};
use ephor_record::{Damage, Entry, Finding, Minimum, OtherFormat, Rules, ScanError};
use ephor_tlog::{Checkpoint, Head, Tree, VerifierKeys, checkpoint, tile};
use ephor_verify::Published;
use ephor_verify::folder;

use crate::{
    durable,
    frame::{self, FrameHeader, Sections},
    marks,
    segment::{self, BadHeader, SegmentHeader},
};

/// How much is read at once where only zeros are expected.
const STRIDE: usize = 64 << 10;

/// A batch that is whole.
pub(crate) struct Batch {
    /// The segment, below the folder of the chain.
    pub(crate) file: PathBuf,
    /// Where in it the frame begins.
    pub(crate) offset: u64,
    /// The entries, with their leaf hashes and sealed contents.
    pub(crate) entries: Vec<Item>,
    /// The checkpoint, as bytes and as read.
    pub(crate) note: Vec<u8>,
    pub(crate) checkpoint: Checkpoint,
    /// The keys in force when it was signed, as the record has them.
    pub(crate) signers: Arc<VerifierKeys>,
}

impl Batch {
    /// Something wrong with this batch as a whole.
    pub(crate) fn finding(&self, damage: Damage) -> Finding {
        let seq = self.entries.first().map(|item| item.entry.seq);
        Finding { file: self.file.clone(), offset: self.offset, seq, damage }
    }
}

/// An entry of a batch.
pub(crate) struct Item {
    pub(crate) entry: Entry,
    pub(crate) leaf: Digest,
    pub(crate) sealed: Option<Vec<u8>>,
}

/// How the last segment ends.
#[derive(Clone, Debug)]
pub(crate) enum Tail {
    /// Nothing but reserved disk follows the last batch.
    Whole,
    /// Something follows that is no batch. Torn or damaged: that depends on what was published.
    Broken(Finding),
}

/// The last segment, when all of it has been read.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// The sequence it begins at.
    pub(crate) first: u64,
    /// Where the next frame goes.
    pub(crate) offset: u64,
    /// The length of the file.
    pub(crate) length: u64,
    pub(crate) tail: Tail,
}

/// A journal being read.
pub(crate) struct Scan {
    files: Arc<dyn Files>,
    chain: PathBuf,
    segments: Vec<u64>,
    next_segment: usize,
    current: Option<Current>,
    origin: Option<Digest>,
    /// What lies before the oldest segment.
    published: Published,
    /// The log before the oldest segment.
    pub(crate) start: Head,
    pub(crate) tree: Tree,
    pub(crate) rules: Rules,
    /// Bytes in use in the segments that are read.
    pub(crate) used: u64,
    end: Option<End>,
}

struct Current {
    first: u64,
    name: PathBuf,
    file: Arc<dyn File>,
    length: u64,
    offset: u64,
}

/// What stands where a frame is expected.
enum Found {
    Frame(FrameHeader, Vec<u8>),
    Nothing,
    Broken,
}

impl Scan {
    /// Opens the journal of a chain and lists its segments. What lies before the oldest is published, and the tiles say what
    /// the root over it is.
    pub(crate) fn open(chain: &Path, files: &Arc<dyn Files>) -> Result<Self, ScanError> {
        let segments = list(chain, &**files)?;
        let first = segments.first().copied().unwrap_or(0);
        // The segments are listed first: of a log that is being written, more is published from one moment to the next.
        let published =
            Published::in_folder(chain, files, if first > 0 { published_size(chain, files, first)? } else { 0 });
        let tree = published.edge(first)?.tree();
        let start = Head { size: first, root: tree.root() };
        Ok(Self {
            files: Arc::clone(files),
            chain: chain.to_owned(),
            segments,
            next_segment: 0,
            current: None,
            origin: None,
            published,
            start,
            tree,
            rules: Rules::from_middle(first),
            used: 0,
            end: None,
        })
    }

    /// The head of the log at a size before that at which the journal begins.
    pub(crate) fn earlier(&self, size: u64) -> Result<Head, ScanError> {
        self.published.head(size)
    }

    /// The head over all batches read so far.
    pub(crate) fn head(&self) -> Head {
        Head { size: self.tree.size(), root: self.tree.root() }
    }

    /// What is broken at the end, and how many bytes from there.
    pub(crate) fn broken(&self) -> Option<(&Finding, u64)> {
        let end = self.end.as_ref()?;
        match &end.tail {
            Tail::Broken(broken) => Some((broken, end.length.saturating_sub(end.offset))),
            Tail::Whole => None,
        }
    }

    /// The bytes in use in what has been read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.used.saturating_add(self.current.as_ref().map_or(0, |current| current.offset))
    }

    /// The segment being read, by the sequence of its first entry, and where in it the next frame goes.
    pub(crate) fn reached(&self) -> Option<(u64, u64)> {
        self.current.as_ref().map(|current| (current.first, current.offset))
    }

    /// The end, once [`Scan::next`] has given nothing. None if there is no segment at all.
    pub(crate) const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The next batch; nothing at the end, torn or whole.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>, ScanError> {
        loop {
            if self.end.is_some() || !self.enter()? {
                return Ok(None);
            }
            let (mut found, mut follows) = (self.find()?, false);
            if matches!(found, Found::Broken) {
                follows = self.goes_on()?;
                // A node that runs may have finished it before it wrote what follows.
                if follows {
                    found = self.find()?;
                }
            }
            match found {
                Found::Frame(header, bytes) => return self.take(header, &bytes).map(Some),
                Found::Nothing => self.leave(Tail::Whole),
                Found::Broken if follows || !self.is_last() => return Err(self.finding(Damage::Batch).into()),
                Found::Broken => self.leave(Tail::Broken(self.finding(Damage::Batch))),
            }
        }
    }

    /// Sees to it that a segment is open; says whether there is one.
    fn enter(&mut self) -> Result<bool, ScanError> {
        if self.current.is_some() {
            return Ok(true);
        }
        let Some(first) = self.segments.get(self.next_segment).copied() else { return Ok(false) };
        self.next_segment = self.next_segment.saturating_add(1);
        let name = Path::new("journal").join(segment::name(first));
        let path = self.chain.join(&name);
        let file = self.files.open(&path, Open::Read).map_err(ScanError::io(&path))?;
        let length = file.len().map_err(ScanError::io(&path))?;
        self.check_header(first, &name, &*file)?;
        self.current = Some(Current { first, name, file, length, offset: segment::HEADER as u64 });
        Ok(true)
    }

    /// Checks that a segment follows here.
    fn check_header(&mut self, first: u64, name: &Path, file: &dyn File) -> Result<(), ScanError> {
        let damaged = |damage| Finding { file: name.to_owned(), offset: 0, seq: Some(Seq(self.tree.size())), damage };
        let mut bytes = [0; segment::HEADER];
        folder::read_full(file, &mut bytes, 0).map_err(ScanError::io(name))?;
        let header = SegmentHeader::parse(&bytes).map_err(|bad| match bad {
            BadHeader::Damaged => damaged(Damage::Header).into(),
            BadHeader::Other(found) => other_format(name, found),
        })?;
        let expected = self.tree.size();
        if header.before.size != expected || first != expected {
            let found = if header.before.size == expected { first } else { header.before.size };
            return Err(damaged(Damage::Gap { expected, found }).into());
        }
        if header.before.root != self.tree.root() && expected > 0 && expected == self.start.size {
            // The header is whole, so it is the tiles that are not.
            return Err(self.published.suspect(expected)?.into());
        }
        if header.before != self.head() || self.origin.is_some_and(|origin| origin != header.origin) {
            return Err(damaged(Damage::Foreign).into());
        }
        self.origin = Some(header.origin);
        Ok(())
    }

    /// Looks at what stands at the current offset.
    fn find(&self) -> Result<Found, ScanError> {
        let Some(current) = &self.current else { return Ok(Found::Nothing) };
        let io = || ScanError::io(&current.name);
        match read_frame(&*current.file, current.offset).map_err(io())? {
            Some((header, bytes)) => Ok(Found::Frame(header, bytes)),
            None if only_zeros(&*current.file, current.offset).map_err(io())? => Ok(Found::Nothing),
            None => Ok(Found::Broken),
        }
    }

    /// Whether a whole frame follows a broken one.
    fn goes_on(&self) -> Result<bool, ScanError> {
        let Some(current) = &self.current else { return Ok(false) };
        frame_follows(&*current.file, current.offset).map_err(ScanError::io(&current.name))
    }

    /// Whether no segment follows the one being read.
    const fn is_last(&self) -> bool {
        self.next_segment >= self.segments.len()
    }

    /// Finishes a segment. Only the last one may end in something broken.
    fn leave(&mut self, tail: Tail) {
        let last = self.is_last();
        let Some(Current { first, offset, length, .. }) = self.current.take() else { return };
        self.used = self.used.saturating_add(offset);
        if last {
            self.end = Some(End { first, offset, length, tail });
        }
    }

    /// Takes a frame with a right checksum in. Whatever is wrong from here on is no accident of a crash.
    fn take(&mut self, header: FrameHeader, bytes: &[u8]) -> Result<Batch, ScanError> {
        let expected = self.tree.size();
        if header.first != expected {
            return Err(self.finding(Damage::Order { expected, found: header.first }).into());
        }
        let sections = frame::sections(&header, bytes).ok_or_else(|| self.finding(Damage::Batch))?;
        let entries = self.take_entries(header.count, &sections)?;
        let beginning = Damage::Rule("a segment that is the oldest begins with an origin or a snapshot");
        let signers = self.rules.signers().cloned().ok_or_else(|| self.finding(beginning))?;
        let checkpoint = Checkpoint::parse(sections.checkpoint)
            .map_err(|_| self.finding(Damage::Layout("its checkpoint cannot be read")))?;
        if checkpoint.head != self.head() || Some(Digest::of(checkpoint.origin.as_bytes())) != self.origin {
            return Err(self.finding(Damage::Root).into());
        }
        let (file, offset) = self.place();
        if let Some(current) = &mut self.current {
            current.offset = current.offset.saturating_add(bytes.len() as u64);
        }
        Ok(Batch { file, offset, entries, note: sections.checkpoint.to_vec(), checkpoint, signers })
    }

    fn take_entries(&mut self, count: u32, sections: &Sections<'_>) -> Result<Vec<Item>, ScanError> {
        let (mut entries, mut contents) = (sections.entries, sections.contents);
        let mut items = Vec::new();
        self.rules.begin_batch();
        while !entries.is_empty() {
            let (bytes, rest) = frame::take_entry(entries)
                .ok_or_else(|| self.finding(Damage::Layout("its entries do not fill their section")))?;
            let (item, left) = self.take_entry(bytes, contents)?;
            items.push(item);
            (entries, contents) = (rest, left);
        }
        if items.is_empty() || items.len() != count as usize || !contents.is_empty() {
            return Err(self.finding(Damage::Layout("its numbers do not agree")).into());
        }
        Ok(items)
    }

    fn take_entry<'a>(&mut self, bytes: &[u8], contents: &'a [u8]) -> Result<(Item, &'a [u8]), ScanError> {
        let entry: Entry = cbor::from_slice(bytes).map_err(|error| self.finding(Damage::Entry(error.to_string())))?;
        let (sealed, left) = take_content(&entry, contents).ok_or_else(|| self.finding(Damage::Content))?;
        if let Err(rule) = self.rules.admit(&entry) {
            return Err(self.finding(Damage::Rule(rule)).into());
        }
        let leaf = ephor_tlog::tree::leaf_hash(bytes);
        self.tree.push(leaf);
        Ok((Item { entry, leaf, sealed }, left))
    }

    fn place(&self) -> (PathBuf, u64) {
        let place = self.current.as_ref().map(|current| (current.name.clone(), current.offset));
        place.unwrap_or_else(|| (PathBuf::from("journal"), 0))
    }

    /// Something wrong where the journal ends.
    pub(crate) fn end_finding(&self, damage: Damage) -> Finding {
        let place = self.end.as_ref().map(|end| (Path::new("journal").join(segment::name(end.first)), end.offset));
        let (file, offset) = place.unwrap_or_else(|| self.place());
        Finding { file, offset, seq: Some(Seq(self.tree.size())), damage }
    }

    /// Something wrong at the frame being read, in the entry that comes next.
    pub(crate) fn finding(&self, damage: Damage) -> Finding {
        let (file, offset) = self.place();
        Finding { file, offset, seq: Some(Seq(self.tree.size())), damage }
    }
}

/// The sealed content of an entry, if it is the one the entry commits to, and what is left of the section.
fn take_content<'a>(entry: &Entry, contents: &'a [u8]) -> Option<(Option<Vec<u8>>, &'a [u8])> {
    let Some(commitment) = &entry.content else { return Some((None, contents)) };
    let (sealed, left) = contents.split_at_checked(commitment.length as usize)?;
    (Digest::of(sealed) == commitment.sealed).then(|| (Some(sealed.to_vec()), left))
}

/// The first sequences of the segments of a chain, in order. Anything else in its folders is a finding.
fn list(chain: &Path, files: &dyn Files) -> Result<Vec<u64>, ScanError> {
    for name in folder::list(files, chain).map_err(ScanError::io(chain))? {
        // What ends in `.tmp` a crash can leave behind.
        let known =
            ["journal", "checkpoint", "checkpoint.tmp", checkpoint::KEPT, tile::FOLDER, Minimum::FILE, "minimum.tmp"];
        if !known.iter().any(|known| name == Path::new(known)) {
            return Err(ScanError::unknown(name));
        }
    }
    let folder = segment::folder(chain);
    let names = folder::list(files, &folder).map_err(ScanError::io(&folder))?;
    let names = names.into_iter().filter(|name| name != Path::new(segment::DRAFT));
    let segments =
        names.map(|name| segment::first_of(&name).ok_or_else(|| ScanError::unknown(Path::new("journal").join(name))));
    let mut segments = segments.collect::<Result<Vec<_>, _>>()?;
    segments.sort_unstable();
    Ok(segments)
}

/// Refuses a journal of another format, by name. Headers that are damaged are named where they are read.
pub(crate) fn check_format(chain: &Path, files: &dyn Files) -> Result<(), ScanError> {
    for first in list(chain, files)? {
        let name = Path::new("journal").join(segment::name(first));
        let path = chain.join(&name);
        let bytes = durable::read_start(files, &path, segment::HEADER).map_err(ScanError::io(&path))?;
        if let Err(BadHeader::Other(found)) = SegmentHeader::parse(&bytes) {
            return Err(other_format(&name, found));
        }
    }
    Ok(())
}

fn other_format(name: &Path, found: u32) -> ScanError {
    OtherFormat { path: name.to_owned(), found, known: segment::FORMAT_VERSION }.into()
}

/// How many entries are published. It must be as many as lie before the journal, or more.
fn published_size(chain: &Path, files: &Arc<dyn Files>, first: u64) -> Result<u64, ScanError> {
    let published = marks::read_published(chain, files)?;
    let missing = || ScanError::found("checkpoint", 0, None, Damage::PublishedMissing);
    let (_, Checkpoint { head, .. }) = published.ok_or_else(missing)?;
    if head.size < first {
        let file = Path::new("journal").join(segment::name(first));
        let damage = Damage::Gap { expected: head.size, found: first };
        return Err(Finding { file, offset: 0, seq: Some(Seq(head.size)), damage }.into());
    }
    Ok(head.size)
}

/// The frame at `offset`, if there is one with a right checksum.
pub(crate) fn read_frame(file: &dyn File, offset: u64) -> std::io::Result<Option<(FrameHeader, Vec<u8>)>> {
    let mut start = [0; frame::HEADER];
    folder::read_full(file, &mut start, offset)?;
    let Some(header) = FrameHeader::parse(&start) else { return Ok(None) };
    let end = offset.saturating_add(u64::from(header.length));
    if end > file.len()? {
        return Ok(None);
    }
    let mut bytes = vec![0; header.length as usize];
    let filled = folder::read_full(file, &mut bytes, offset)?;
    let whole = filled == bytes.len() && frame::is_whole(&bytes);
    Ok(whole.then_some((header, bytes)))
}

/// How many bytes a frame at `offset` would have, if one can begin there.
fn claim(file: &dyn File, offset: u64) -> std::io::Result<u64> {
    let mut start = [0; frame::HEADER];
    folder::read_full(file, &mut start, offset)?;
    Ok(FrameHeader::parse(&start).map_or(0, |header| u64::from(header.length)))
}

/// Whether nothing but zeros follows `offset`.
fn only_zeros(file: &dyn File, mut offset: u64) -> std::io::Result<bool> {
    let mut bytes = vec![0; STRIDE];
    loop {
        let filled = folder::read_full(file, &mut bytes, offset)?;
        if bytes.iter().take(filled).any(|byte| *byte != 0) {
            return Ok(false);
        }
        if filled < bytes.len() {
            return Ok(true);
        }
        offset = offset.saturating_add(filled as u64);
    }
}

/// Whether a whole frame begins anywhere after `offset`.
///
/// What looks like frames and claims more bytes together than there are cannot have been written by a node that was cut off: it
/// lies over itself. It counts as a frame, so that this reads each byte about twice however the file was made.
fn frame_follows(file: &dyn File, offset: u64) -> std::io::Result<bool> {
    let mut bytes = vec![0; STRIDE];
    let mut start = offset.saturating_add(1);
    let mut left = file.len()?.saturating_sub(offset);
    loop {
        let filled = folder::read_full(file, &mut bytes, start)?;
        for (position, window) in bytes.get(..filled).unwrap_or_default().windows(frame::MAGIC.len()).enumerate() {
            if window != frame::MAGIC {
                continue;
            }
            let at = start.saturating_add(position as u64);
            let claimed = claim(file, at)?;
            left = match left.checked_sub(claimed) {
                Some(left) if claimed == 0 || read_frame(file, at)?.is_none() => left,
                _ => return Ok(true),
            };
        }
        if filled < bytes.len() {
            return Ok(false);
        }
        // A magic may lie across the border of two strides.
        start = start.saturating_add(filled.saturating_sub(frame::MAGIC.len().saturating_sub(1)) as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::atomic::{AtomicU64, Ordering},
    };

    use super::*;

    /// Bytes, and how many of them were read.
    struct Metered(Vec<u8>, AtomicU64);

    impl File for Metered {
        fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
            let from = usize::try_from(offset).unwrap().min(self.0.len());
            let count = into.len().min(self.0.len() - from);
            into[..count].copy_from_slice(&self.0[from..from + count]);
            self.1.fetch_add(count as u64, Ordering::Relaxed);
            Ok(count)
        }
        fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.len() as u64)
        }
        fn set_len(&self, _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn allocate(&self, _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn sync_data(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A frame of so many bytes of contents, with no checkpoint.
    fn framed(length: usize) -> Vec<u8> {
        frame::build(0, 1, &[], &vec![7; length], &[]).unwrap()
    }

    #[test]
    fn what_follows_a_broken_frame_is_found_behind_something_that_looks_like_one() {
        let header = framed(5000)[..frame::HEADER].to_vec();
        let torn = [vec![1; 100], header.clone(), vec![2; 10_000]].concat();
        let search = |bytes: Vec<u8>| frame_follows(&Metered(bytes, AtomicU64::new(0)), 0).unwrap();
        assert!(!search(torn.clone()));
        assert!(search([torn, framed(300)].concat()));
    }

    #[test]
    fn a_hostile_journal_is_read_about_twice_and_no_more() {
        let header = framed(1 << 20)[..frame::HEADER].to_vec();
        let bytes = [header.repeat(40_000), vec![3; 1 << 21]].concat();
        let length = bytes.len() as u64;
        let file = Metered(bytes, AtomicU64::new(0));
        assert!(frame_follows(&file, 0).unwrap());
        let read = file.1.load(Ordering::Relaxed);
        assert!(read < 4 * length, "{read} bytes of {length}");
    }

    #[test]
    fn no_frame_is_written_that_would_not_be_read() {
        let most = usize::try_from(frame::MAX_FRAME).unwrap();
        let fixed = framed(0).len();
        assert!(frame::build(0, 1, &[], &vec![0; most - fixed + 1], &[]).is_none());
        let largest = framed(most - fixed);
        assert!(FrameHeader::parse(&largest).is_some());
    }
}
