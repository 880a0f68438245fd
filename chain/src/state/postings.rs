//! A list of places, cut into chunks, so that a long list is neither rewritten as it grows nor a row for each place.
//!
//! The key of a chunk ends with its first place. Its value is the distances to the places after that, as LEB128; where several lists
//! share it, each place is followed by the byte that says whose it is.

use ephor_base::Seq;

/// The most places in a chunk: some hundred bytes, of which a batch of entries rewrites the last one of a list.
const CHUNK: usize = 256;

/// A chunk of a list, in rising order and never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Chunk {
    first: u64,
    mark: Option<u8>,
    later: Vec<(u64, Option<u8>)>,
}

impl Chunk {
    /// The mark says whether all its places have one.
    pub(super) const fn new(first: Seq, mark: Option<u8>) -> Self {
        Self { first: first.0, mark, later: Vec::new() }
    }

    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Adds a place beyond the last. Says no if it is full.
    pub(super) fn push(&mut self, seq: Seq, mark: Option<u8>) -> bool {
        let room = self.later.len().saturating_add(1) < CHUNK;
        if room {
            self.later.push((seq.0, mark));
        }
        room
    }

    /// How many places it has.
    pub(super) fn count(&self) -> u64 {
        (self.later.len() as u64).saturating_add(1)
    }

    /// The places with this mark.
    pub(super) fn places(self, mark: Option<u8>) -> impl DoubleEndedIterator<Item = Seq> + use<> {
        let all = std::iter::once((self.first, self.mark)).chain(self.later);
        all.filter(move |(_, own)| *own == mark).map(|(place, _)| Seq(place))
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.later.len().saturating_mul(2));
        bytes.extend(self.mark);
        let mut last = self.first;
        for (place, mark) in &self.later {
            put(&mut bytes, place.saturating_sub(last));
            bytes.extend(*mark);
            last = *place;
        }
        bytes
    }

    /// The chunk in these bytes. Nothing if the places do not rise.
    pub(super) fn parse(first: u64, is_marked: bool, mut bytes: &[u8]) -> Option<Self> {
        let next_mark = |bytes: &mut &[u8]| -> Option<Option<u8>> {
            if !is_marked {
                return Some(None);
            }
            let (mark, rest) = bytes.split_first()?;
            *bytes = rest;
            Some(Some(*mark))
        };
        let mut chunk = Self { first, mark: next_mark(&mut bytes)?, later: Vec::new() };
        let mut last = first;
        while !bytes.is_empty() {
            let (distance, rest) = take(bytes)?;
            last = last.checked_add(distance).filter(|_| distance > 0)?;
            bytes = rest;
            chunk.later.push((last, next_mark(&mut bytes)?));
        }
        Some(chunk)
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

fn take(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0u64;
    for (place, byte) in bytes.iter().enumerate().take(10) {
        let shift = u32::try_from(place).ok()?.checked_mul(7)?;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some((number, bytes.get(place.saturating_add(1)..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_comes_back_as_it_was() {
        for places in [vec![0], vec![7, 8], vec![0, 127, 254, 255, 16_383, 1 << 40, u64::MAX]] {
            for is_marked in [false, true] {
                let mark = |place: u64| is_marked.then_some(place.to_le_bytes()[0] % 3);
                let mut chunk = Chunk::new(Seq(places[0]), mark(places[0]));
                places[1..].iter().for_each(|place| assert!(chunk.push(Seq(*place), mark(*place))));
                let read = Chunk::parse(places[0], is_marked, &chunk.to_bytes()).unwrap();
                assert_eq!(read, chunk);
                let marks = if is_marked { vec![Some(0), Some(1), Some(2)] } else { vec![None] };
                let mut all: Vec<u64> =
                    marks.iter().flat_map(|one| read.clone().places(*one)).map(|seq| seq.0).collect();
                all.sort_unstable();
                assert_eq!(all, places);
            }
        }
    }

    #[test]
    fn a_full_chunk_takes_no_more() {
        let mut chunk = Chunk::new(Seq(0), None);
        let taken = (1..1000).take_while(|place| chunk.push(Seq(*place), None)).count();
        assert_eq!(taken + 1, CHUNK);
    }

    #[test]
    fn places_that_do_not_rise_are_no_chunk() {
        assert_eq!(Chunk::parse(5, false, &[0]), None);
        assert_eq!(Chunk::parse(5, false, &[0x80]), None);
        assert_eq!(Chunk::parse(u64::MAX, false, &[1]), None);
        assert_eq!(Chunk::parse(5, false, &[0xff; 11]), None);
        assert_eq!(Chunk::parse(5, true, &[]), None);
        assert_eq!(Chunk::parse(5, true, &[1, 1]), None);
        assert_eq!(Chunk::parse(5, true, &[1, 0, 1]), None);
    }
}
