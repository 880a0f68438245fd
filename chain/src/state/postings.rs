//! A list of places, cut into chunks, so that a long list is neither rewritten as it grows nor a row for each place.
//!
//! The key of a chunk ends with its first place. Its value is the distances to the places after that, as LEB128.

use ephor_base::Seq;

/// The most places in a chunk: some hundred bytes, of which a batch of entries rewrites the last one of a list.
const CHUNK: usize = 256;

/// A chunk of a list, in rising order and never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Chunk {
    first: u64,
    later: Vec<u64>,
}

impl Chunk {
    pub(super) const fn new(first: Seq) -> Self {
        Self { first: first.0, later: Vec::new() }
    }

    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Adds a place beyond the last. Says no if it is full.
    pub(super) fn push(&mut self, seq: Seq) -> bool {
        let room = self.later.len().saturating_add(1) < CHUNK;
        if room {
            self.later.push(seq.0);
        }
        room
    }

    /// How many places it has.
    pub(super) fn count(&self) -> u64 {
        (self.later.len() as u64).saturating_add(1)
    }

    pub(super) fn places(&self) -> impl DoubleEndedIterator<Item = Seq> + use<> {
        std::iter::once(self.first).chain(self.later.clone()).map(Seq)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.later.len().saturating_mul(2));
        let mut last = self.first;
        for place in &self.later {
            put(&mut bytes, place.saturating_sub(last));
            last = *place;
        }
        bytes
    }

    /// The chunk in these bytes. Nothing if the places do not rise.
    pub(super) fn parse(first: u64, mut bytes: &[u8]) -> Option<Self> {
        let mut chunk = Self { first, later: Vec::new() };
        let mut last = first;
        while !bytes.is_empty() {
            let (distance, rest) = take(bytes)?;
            last = last.checked_add(distance).filter(|_| distance > 0)?;
            chunk.later.push(last);
            bytes = rest;
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
            let mut chunk = Chunk::new(Seq(places[0]));
            places[1..].iter().for_each(|place| assert!(chunk.push(Seq(*place))));
            let read = Chunk::parse(places[0], &chunk.to_bytes()).unwrap();
            assert_eq!(read, chunk);
            assert_eq!(read.places().map(|seq| seq.0).collect::<Vec<_>>(), places);
        }
    }

    #[test]
    fn a_full_chunk_takes_no_more() {
        let mut chunk = Chunk::new(Seq(0));
        let taken = (1..1000).take_while(|place| chunk.push(Seq(*place))).count();
        assert_eq!(taken + 1, CHUNK);
    }

    #[test]
    fn places_that_do_not_rise_are_no_chunk() {
        assert_eq!(Chunk::parse(5, &[0]), None);
        assert_eq!(Chunk::parse(5, &[0x80]), None);
        assert_eq!(Chunk::parse(u64::MAX, &[1]), None);
        assert_eq!(Chunk::parse(5, &[0xff; 11]), None);
    }
}
