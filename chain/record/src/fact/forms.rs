//! How some fields are written, in CBOR and in JSON.

/// Most documents are text; the others are shown as hexadecimal digits.
pub(super) fn text_or_hex<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => serializer.serialize_str(text),
        Err(_) => hex(bytes, serializer),
    }
}

/// A truth that is absent where it is not one.
pub(crate) mod flag {
    use minicbor::{
        Decoder, Encoder,
        decode::Error as Malformed,
        encode::{Error as Unwritten, Write},
    };

    pub(crate) fn encode<C, W: Write>(is: &bool, to: &mut Encoder<W>, _: &mut C) -> Result<(), Unwritten<W::Error>> {
        to.bool(*is)?.ok()
    }

    pub(crate) fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Result<bool, Malformed> {
        from.bool()
    }

    #[expect(clippy::unnecessary_wraps, reason = "the encoding asks for it")]
    pub(crate) const fn nil() -> Option<bool> {
        Some(false)
    }

    pub(crate) const fn is_nil(is: &bool) -> bool {
        !*is
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
pub(crate) const fn is_false(is: &bool) -> bool {
    !*is
}

pub(crate) fn hex<S: serde::Serializer, B: AsRef<[u8]>>(bytes: B, serializer: S) -> Result<S::Ok, S::Error> {
    let digits: String = bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    serializer.serialize_str(&digits)
}
