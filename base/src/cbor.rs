//! The canonical encoding: deterministic CBOR (RFC 8949, section 4.2), through `minicbor`.
//!
//! Digests are taken over these bytes and never over JSON. Decoding is strict: bytes that are not exactly what encoding
//! the decoded value gives back are refused, so that one value has one digest.

use minicbor::{Decode, Encode};

/// Bytes that are not the canonical encoding of the wanted type.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotCanonical {
    /// Not CBOR, or not of this type.
    #[error("not the expected CBOR: {0}")]
    Malformed(String),
    /// Of this type, but encoded another way, or followed by more bytes.
    #[error("not in canonical form")]
    OtherForm,
}

/// The canonical bytes of `value`.
#[must_use]
pub fn to_vec<T: Encode<()>>(value: &T) -> Vec<u8> {
    // Most entries of the log fit, so that most of the time there is no growing.
    let mut bytes = Vec::with_capacity(512);
    // Writing to a vector cannot fail, and no type of ours refuses to be encoded.
    let _: Result<(), _> = minicbor::encode(value, &mut bytes);
    bytes
}

/// The value whose canonical encoding is exactly `bytes`.
///
/// # Errors
/// [`NotCanonical`] if it is anything else.
pub fn from_slice<T: for<'b> Decode<'b, ()> + Encode<()>>(bytes: &[u8]) -> Result<T, NotCanonical> {
    let value: T = minicbor::decode(bytes).map_err(|error| NotCanonical::Malformed(error.to_string()))?;
    let mut rest = Rest(bytes);
    let same = minicbor::encode(&value, &mut rest).is_ok() && rest.0.is_empty();
    if same { Ok(value) } else { Err(NotCanonical::OtherForm) }
}

/// What an encoding still has to match. It is compared as it is made, so that nothing has to be kept of it.
struct Rest<'a>(&'a [u8]);

impl minicbor::encode::Write for Rest<'_> {
    type Error = NotCanonical;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), NotCanonical> {
        self.0 = self.0.strip_prefix(bytes).ok_or(NotCanonical::OtherForm)?;
        Ok(())
    }
}
