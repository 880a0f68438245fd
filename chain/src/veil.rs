//! Digests of private things in the public part of the record.
//!
//! A plain digest of a short text gives it away to a reader who tries all short texts. So what is private is digested under a
//! key that comes from the session's: HMAC-SHA256 (RFC 2104). A reader who may open the session's content can make the digest
//! again; once the session is erased no reader can, and guessing tells nothing.

use ephor_base::{Digest, Secret};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::in_use::InUse;

/// Tells the key of digests from every other use of a session's key.
const PURPOSE: &[u8] = b"ephor veiled digests 1";

/// Makes the digests of one session, which is in use as long as this is there.
pub struct Veil {
    key: Secret<[u8; 32]>,
    _used: Option<InUse>,
}

impl Veil {
    pub(crate) fn new(session_key: &[u8; 32], used: Option<InUse>) -> Self {
        Self { key: Secret::new(mac(session_key, &[PURPOSE])), _used: used }
    }

    /// The digest of several pieces. Each is counted in with its length, so that no two lists of pieces look alike.
    #[must_use]
    pub fn digest(&self, pieces: &[&[u8]]) -> Digest {
        let lengths: Vec<[u8; 8]> = pieces.iter().map(|piece| (piece.len() as u64).to_be_bytes()).collect();
        let parts: Vec<&[u8]> =
            lengths.iter().zip(pieces).flat_map(|(length, piece)| [length.as_slice(), piece]).collect();
        Digest(mac(self.key.expose(), &parts))
    }
}

impl std::fmt::Debug for Veil {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Veil")
    }
}

fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes keys of every length, so this error cannot come; no digest at all is then the safe answer.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_pieces_look_alike_only_under_the_same_key() {
        let (one, other) = (Veil::new(&[1; 32], None), Veil::new(&[2; 32], None));
        assert_eq!(one.digest(&[b"a", b"bc"]), one.digest(&[b"a", b"bc"]));
        assert_ne!(one.digest(&[b"a", b"bc"]), other.digest(&[b"a", b"bc"]));
        assert_ne!(one.digest(&[b"a", b"bc"]), one.digest(&[b"ab", b"c"]));
        assert_ne!(one.digest(&[b"a"]), Digest::of(b"a"));
    }
}
