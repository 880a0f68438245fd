//! Reading and writing fixed layouts: big-endian numbers and byte strings of known length.

use std::fmt;

/// The bytes end before the field does, or go on after the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the bytes do not have the length of the layout")]
pub struct WrongLayout;

/// Bytes as they may be shown: how many there are. What they say is the business of the processes at both ends.
pub(crate) struct Shown(pub(crate) usize);

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}

/// What is left to read of some bytes.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], WrongLayout> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(WrongLayout)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next `N` bytes, as an array.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WrongLayout> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(WrongLayout)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WrongLayout> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WrongLayout> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WrongLayout> {
        self.array().map(u64::from_be_bytes)
    }

    /// Everything that is left.
    pub(crate) const fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Refuses what follows the last field.
    pub(crate) const fn end(self) -> Result<(), WrongLayout> {
        if self.0.is_empty() { Ok(()) } else { Err(WrongLayout) }
    }
}
