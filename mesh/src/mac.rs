//! HMAC-SHA256 (RFC 2104) under keys of 32 bytes.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Bytes of a block of SHA-256.
const BLOCK: usize = 64;

/// The code of `message` under `key`.
pub(crate) fn hmac(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    use hmac::digest::{FixedOutput, KeyInit};
    // HMAC itself pads a short key with zeros to the length of a block.
    let mut block = Zeroizing::new([0; BLOCK]);
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    let mut mac = <Hmac<Sha256> as KeyInit>::new((&*block).into());
    mac.update(message);
    mac.finalize_fixed().into()
}
