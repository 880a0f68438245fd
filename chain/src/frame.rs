//! A frame: one batch as it stands in a segment.
//!
//! All numbers are big-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `EphFrame` |
//! | 4 | length of the whole frame |
//! | 8 | sequence of its first entry |
//! | 4 | number of entries |
//! | 4 | length of the section of entries |
//! | 4 | length of the section of sealed contents |
//! | 4 | length of the checkpoint |
//! | … | entries: each a 2-byte length and its canonical CBOR, as in an entry bundle of C2SP tlog-tiles |
//! | … | sealed contents, in the order of their entries; each entry says how long its content is |
//! | … | the signed checkpoint of the log with this batch |
//! | 4 | CRC-32 (IEEE 802.3) of all bytes before it |
//!
//! Entries and contents are in sections of their own so that the public part can be copied out as it is.
//!
//! The checksum tells a torn frame from a whole one, and nothing more. What protects from people is the signed root and the
//! commitments under it, and that there is one form only of everything else: those cover every byte.

/// Begins each frame.
pub(crate) const MAGIC: [u8; 8] = *b"EphFrame";
/// Bytes before the sections.
pub(crate) const HEADER: usize = 36;
/// The most that header, checkpoint and checksum take together.
pub(crate) const OVERHEAD: u64 = (HEADER + CHECKSUM + ephor_tlog::checkpoint::MAX_CHECKPOINT_BYTES) as u64;
/// The largest frame that is written and read: what a batch may hold, one record of the largest size on top, and overhead. The
/// queue takes nothing into a batch that would make it larger.
pub(crate) const MAX_FRAME: u64 = 32 << 20;

/// The numbers at the beginning of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameHeader {
    pub(crate) length: u32,
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) entries: u32,
    pub(crate) contents: u32,
    pub(crate) checkpoint: u32,
}

impl FrameHeader {
    /// The header in these bytes, if it could be one.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (length, rest) = take_u32(rest)?;
        let (first, rest) = rest.split_first_chunk::<8>()?;
        let (count, rest) = take_u32(rest)?;
        let (entries, rest) = take_u32(rest)?;
        let (contents, rest) = take_u32(rest)?;
        let (checkpoint, _) = take_u32(rest)?;
        let header = Self { length, first: u64::from_be_bytes(*first), count, entries, contents, checkpoint };
        (u64::from(length) <= MAX_FRAME && header.sum() == Some(u64::from(length))).then_some(header)
    }

    fn sum(&self) -> Option<u64> {
        let sections = [self.entries, self.contents, self.checkpoint].map(u64::from);
        let fixed = (HEADER + CHECKSUM) as u64;
        sections.iter().try_fold(fixed, |sum, length| sum.checked_add(*length))
    }
}

fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number), rest))
}

/// The three sections of a frame.
pub(crate) struct Sections<'a> {
    pub(crate) entries: &'a [u8],
    pub(crate) contents: &'a [u8],
    pub(crate) checkpoint: &'a [u8],
}

/// The bytes of the checksum at the end.
const CHECKSUM: usize = 4;

/// Whether these bytes end with the checksum of all before it.
pub(crate) fn is_whole(bytes: &[u8]) -> bool {
    split(bytes).is_some_and(|(body, checksum)| crc32fast::hash(body).to_be_bytes() == checksum)
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM)?)
}

/// Takes a frame apart.
pub(crate) fn sections<'a>(header: &FrameHeader, bytes: &'a [u8]) -> Option<Sections<'a>> {
    let (body, _) = split(bytes)?;
    let (entries, rest) = body.get(HEADER..)?.split_at_checked(header.entries as usize)?;
    let (contents, checkpoint) = rest.split_at_checked(header.contents as usize)?;
    Some(Sections { entries, contents, checkpoint })
}

/// Builds the frame of a batch, as it is written. Nothing if it would be larger than a frame may be.
pub(crate) fn build(first: u64, count: usize, entries: &[u8], contents: &[u8], checkpoint: &[u8]) -> Option<Vec<u8>> {
    let sections = [entries, contents, checkpoint];
    let fixed = HEADER + CHECKSUM;
    let length = sections.iter().try_fold(fixed, |sum, section| sum.checked_add(section.len()))?;
    if length as u64 > MAX_FRAME {
        return None;
    }
    let mut frame = Vec::with_capacity(length);
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&u32::try_from(length).ok()?.to_be_bytes());
    frame.extend_from_slice(&first.to_be_bytes());
    frame.extend_from_slice(&u32::try_from(count).ok()?.to_be_bytes());
    for section in sections {
        frame.extend_from_slice(&u32::try_from(section.len()).ok()?.to_be_bytes());
    }
    sections.iter().for_each(|section| frame.extend_from_slice(section));
    let checksum = crc32fast::hash(&frame);
    frame.extend_from_slice(&checksum.to_be_bytes());
    Some(frame)
}

/// Takes the next entry off a section of entries.
pub(crate) fn take_entry(section: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = section.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}
