//! Sealed messages of an established link: AES-256-GCM under keys that only ever go forward.
//!
//! A message on the wire is two bytes of length, big-endian, and that many bytes of ciphertext. The nonce is a counter that does
//! not travel, so a message that is lost, doubled, reordered or changed does not open, and ends the link.

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

/// Both directions of an established link.
pub struct Seal {
    transport: TransportState,
}

impl Seal {
    pub(crate) const fn new(transport: TransportState) -> Self {
        Self { transport }
    }

    /// Seals `plain` into the beginning of `out`; gives the bytes written.
    ///
    /// # Errors
    /// [`SealError::TooLong`] if it does not fit; nothing was sealed then.
    pub fn seal(&mut self, plain: &[u8], out: &mut [u8]) -> Result<usize, SealError> {
        let length = plain.len().saturating_add(TAG);
        let header = u16::try_from(length).map_err(|_| SealError::TooLong(plain.len()))?;
        let whole = LENGTH.saturating_add(length);
        let room = out.get_mut(..whole).and_then(|room| room.split_first_chunk_mut::<LENGTH>());
        let (head, body) = room.ok_or(SealError::TooLong(plain.len()))?;
        *head = header.to_be_bytes();
        self.transport.write_message(plain, body).map_err(SealError::Cipher)?;
        Ok(whole)
    }

    /// Opens `sealed`, a message without its length, into the beginning of `into`; gives the bytes of plaintext.
    ///
    /// # Errors
    /// [`SealError`] if it is not the next message of the peer.
    pub fn open(&mut self, sealed: &[u8], into: &mut [u8]) -> Result<usize, SealError> {
        if sealed.len() < TAG {
            return Err(SealError::Truncated(sealed.len()));
        }
        if into.len() < sealed.len() {
            return Err(SealError::TooLong(sealed.len()));
        }
        self.transport.read_message(sealed, into).map_err(SealError::NotNext)
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
