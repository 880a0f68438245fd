//! Sealed messages of an established link: AES-256-GCM under keys that only ever go forward.
//!
//! A message on the wire is two bytes of length, big-endian, and that many bytes of ciphertext. The nonce is a counter that does
//! not travel, so a message that is lost, doubled, reordered or changed does not open, and ends the link.

use std::ops::Range;

use snow::TransportState;

/// Bytes of a tag.
pub const TAG: usize = 16;
/// Bytes of the length before a message.
pub const LENGTH: usize = 2;
/// The longest plaintext of a message, in bytes (Noise specification, section 3).
pub const MOST_PLAIN: usize = 65_535 - TAG;
/// The longest message on the wire, in bytes, its length included.
pub const MOST_SEALED: usize = LENGTH + MOST_PLAIN + TAG;

/// A message could not be sealed or opened. The link is over.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The caller's plaintext is longer than [`MOST_PLAIN`], or the room for the message is too short.
    #[error("a message of {0} bytes does not fit")]
    TooLong(usize),
    /// The peer's message is too short to hold a tag.
    #[error("a message of {0} bytes holds no tag")]
    Truncated(usize),
    /// The message is not the next one of this link, or was changed.
    #[error("a message does not open: it was changed, lost, doubled or reordered")]
    NotNext(#[source] snow::Error),
    /// The cipher refused to seal.
    #[error("a message could not be sealed")]
    Cipher(#[source] snow::Error),
}

/// Room for one message at a time.
///
/// A copy runs at a third of its speed where it reads right behind what it writes, by the lowest twelve bits of the addresses (4 KiB
/// aliasing). So a message is put where those bits are the same as at its source; a page more than a message needs is held for that.
pub struct Room {
    bytes: Vec<u8>,
    filled: Range<usize>,
}

/// What the lowest bits of an address repeat after.
const PAGE: usize = 4096;

impl Room {
    /// Room for messages of `length` bytes.
    #[must_use]
    pub fn new(length: usize) -> Self {
        Self { bytes: vec![0; length.saturating_add(PAGE)], filled: 0..0 }
    }

    /// The message it holds.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(self.filled.clone()).unwrap_or_default()
    }

    /// `length` bytes, of which those after the first `head` lie as `source` does.
    fn beside(&mut self, source: &[u8], head: usize, length: usize) -> Option<&mut [u8]> {
        let (here, there) = (self.bytes.as_ptr().addr().wrapping_add(head), source.as_ptr().addr());
        let from = there.wrapping_sub(here) % PAGE;
        self.filled = from..from.checked_add(length)?;
        self.bytes.get_mut(self.filled.clone())
    }

    /// Keeps the first `length` bytes of what it holds.
    fn keep(&mut self, length: usize) {
        let end = self.filled.start.saturating_add(length).min(self.filled.end);
        self.filled.end = end;
    }
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Room({} bytes)", self.filled.len())
    }
}

/// Both directions of an established link.
pub struct Seal {
    transport: TransportState,
}

impl Seal {
    pub(crate) const fn new(transport: TransportState) -> Self {
        Self { transport }
    }

    /// Seals `plain` into `room`, with its length before it.
    ///
    /// # Errors
    /// [`SealError::TooLong`] if it does not fit; nothing was sealed then.
    pub fn seal(&mut self, plain: &[u8], room: &mut Room) -> Result<(), SealError> {
        let too_long = SealError::TooLong(plain.len());
        let length = plain.len().saturating_add(TAG);
        let Ok(header) = u16::try_from(length) else { return Err(too_long) };
        let message = room.beside(plain, LENGTH, length.saturating_add(LENGTH));
        let Some((head, body)) = message.and_then(|message| message.split_first_chunk_mut::<LENGTH>()) else {
            return Err(too_long);
        };
        *head = header.to_be_bytes();
        self.transport.write_message(plain, body).map_err(SealError::Cipher)?;
        Ok(())
    }

    /// Opens `sealed`, a message without its length, into `room`.
    ///
    /// # Errors
    /// [`SealError`] if it is not the next message of the peer.
    pub fn open(&mut self, sealed: &[u8], room: &mut Room) -> Result<(), SealError> {
        let Some(length) = sealed.len().checked_sub(TAG) else { return Err(SealError::Truncated(sealed.len())) };
        // The cipher works in place, on the tag as well.
        let plain = room.beside(sealed, 0, sealed.len()).ok_or(SealError::TooLong(sealed.len()))?;
        self.transport.read_message(sealed, plain).map_err(SealError::NotNext)?;
        room.keep(length);
        Ok(())
    }

    /// Replaces the key of what this side sends, by Noise's REKEY.
    pub fn rekey_outgoing(&mut self) {
        self.transport.rekey_outgoing();
    }

    /// Replaces the key of what the peer sends.
    pub fn rekey_incoming(&mut self) {
        self.transport.rekey_incoming();
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}
