//! Signed notes (C2SP signed-note): a text, and lines that sign it.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use sha2::{Digest as _, Sha256};

/// A text with its signature lines. The text ends with a line feed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// What is signed, byte for byte.
    pub text: String,
    /// Who signed it.
    pub signatures: Vec<SignatureLine>,
}

/// One signature line: `— name base64(key id ‖ signature)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignatureLine {
    /// The name of the key.
    pub name: String,
    /// The first four bytes of the key's hash.
    pub id: [u8; 4],
    /// The signature itself.
    pub signature: Vec<u8>,
}

/// Bytes that are not a signed note.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a signed note: {0}")]
pub struct NotANote(&'static str);

impl Note {
    /// Reads a note. Only the one form that [`Note::to_bytes`] writes is accepted.
    ///
    /// # Errors
    /// [`NotANote`] if the bytes are anything else.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotANote> {
        let whole = std::str::from_utf8(bytes).map_err(|_| NotANote("not UTF-8"))?;
        let split = whole.rfind("\n\n").ok_or(NotANote("no empty line before the signatures"))?;
        let (text, lines) = whole.split_at(split.saturating_add(1));
        let lines = lines.strip_prefix('\n').and_then(|lines| lines.strip_suffix('\n'));
        let lines = lines.ok_or(NotANote("the last line does not end"))?;
        let signatures = lines.split('\n').map(SignatureLine::parse).collect::<Option<Vec<_>>>();
        let signatures = signatures.ok_or(NotANote("a signature line is malformed"))?;
        let note = Self { text: text.to_owned(), signatures };
        if note.to_bytes() == bytes { Ok(note) } else { Err(NotANote("not in the one form we write")) }
    }

    /// The bytes of the note.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut whole = format!("{}\n", self.text);
        self.signatures.iter().for_each(|line| line.write(&mut whole));
        whole.into_bytes()
    }
}

impl SignatureLine {
    fn parse(line: &str) -> Option<Self> {
        let (name, encoded) = line.strip_prefix("— ")?.split_once(' ')?;
        let bytes = BASE64.decode(encoded).ok()?;
        let (id, signature) = bytes.split_first_chunk::<4>()?;
        Some(Self { name: name.to_owned(), id: *id, signature: signature.to_vec() })
    }

    fn write(&self, into: &mut String) {
        let mut bytes = self.id.to_vec();
        bytes.extend_from_slice(&self.signature);
        into.push_str("— ");
        into.push_str(&self.name);
        into.push(' ');
        BASE64.encode_string(bytes, into);
        into.push('\n');
    }
}

/// The hash of a key as signed-note has it: the first four bytes of SHA-256 of name, line feed, and the typed key.
#[must_use]
pub(crate) fn key_id(name: &str, typed_key: &[u8]) -> [u8; 4] {
    let hash = Sha256::new().chain_update(name).chain_update(b"\n").chain_update(typed_key).finalize();
    let [a, b, c, d, ..] = <[u8; 32]>::from(hash);
    [a, b, c, d]
}

/// A note verifier key: `name+keyid+base64(typed key)`.
#[must_use]
pub(crate) fn verifier_key(name: &str, typed_key: &[u8]) -> String {
    let id: String = key_id(name, typed_key).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name}+{id}+{}", BASE64.encode(typed_key))
}

/// The name and the typed key of a note verifier key, if it is one and its key id is right.
pub(crate) fn parse_verifier_key(text: &str) -> Option<(&str, Vec<u8>)> {
    let (name, rest) = text.split_once('+')?;
    let (_, encoded) = rest.split_once('+')?;
    let typed_key = BASE64.decode(encoded).ok()?;
    (verifier_key(name, &typed_key) == text).then_some((name, typed_key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_and_no_other_form_is_accepted() {
        let line = SignatureLine { name: "a/b".into(), id: [1, 2, 3, 4], signature: vec![5; 64] };
        let note = Note { text: "first\n\nsecond\n".into(), signatures: vec![line] };
        let bytes = note.to_bytes();
        assert_eq!(Note::parse(&bytes).unwrap(), note);
        for cut in 0..bytes.len() {
            assert!(Note::parse(bytes.get(..cut).unwrap()).is_err(), "a note cut at {cut} was accepted");
        }
    }

    #[test]
    fn a_verifier_key_of_the_specification_is_understood() {
        // The example key of the Go implementation of signed notes.
        let text = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
        let (name, typed_key) = parse_verifier_key(text).unwrap();
        assert_eq!((name, typed_key.len(), typed_key.first()), ("PeterNeumann", 33, Some(&1)));
        assert!(parse_verifier_key(&text.replace("c74f", "c74e")).is_none());
    }
}
