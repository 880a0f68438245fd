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

/// The most bytes a note has. C2SP asks for room for 16 signatures, of which a post-quantum one has up to 5 kB.
pub const MAX_NOTE_BYTES: usize = 256 << 10;

/// The most signature lines a note has.
pub const MAX_SIGNATURE_LINES: usize = 32;

/// Bytes that are not a signed note.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a signed note: {0}")]
pub struct NotANote(&'static str);

impl Note {
    /// Reads a note, of whatever log and with whatever signatures. Only the one form that [`Note::to_bytes`] writes is
    /// accepted. What a signature line says is not known until a key has checked it.
    ///
    /// # Errors
    /// [`NotANote`] if the bytes are anything else, more than [`MAX_NOTE_BYTES`], or more than [`MAX_SIGNATURE_LINES`] lines.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotANote> {
        if bytes.len() > MAX_NOTE_BYTES {
            return Err(NotANote("too many bytes"));
        }
        let whole = std::str::from_utf8(bytes).map_err(|_| NotANote("not UTF-8"))?;
        if whole.bytes().any(|byte| byte < b' ' && byte != b'\n') {
            return Err(NotANote("a control character"));
        }
        let split = whole.rfind("\n\n").ok_or(NotANote("no empty line before the signatures"))?;
        let (text, lines) = whole.split_at(split.saturating_add(1));
        let lines = lines.strip_prefix('\n').ok_or(NotANote("no signatures"))?;
        let signatures = SignatureLine::parse_all(lines)?;
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
    /// Reads one or more signature lines, each with its line feed.
    ///
    /// # Errors
    /// [`NotANote`] if it is anything else, or more than [`MAX_SIGNATURE_LINES`].
    pub fn parse_all(lines: &str) -> Result<Vec<Self>, NotANote> {
        let lines = lines.strip_suffix('\n').ok_or(NotANote("the last line does not end"))?;
        if lines.split('\n').count() > MAX_SIGNATURE_LINES {
            return Err(NotANote("too many signature lines"));
        }
        let all = lines.split('\n').map(Self::parse).collect::<Option<Vec<_>>>();
        all.ok_or(NotANote("a signature line is malformed"))
    }

    fn parse(line: &str) -> Option<Self> {
        let (name, encoded) = line.strip_prefix("— ")?.split_once(' ')?;
        let bytes = BASE64.decode(encoded).ok()?;
        let (id, signature) = bytes.split_first_chunk::<4>().filter(|(_, signature)| !signature.is_empty())?;
        is_key_name(name).then(|| Self { name: name.to_owned(), id: *id, signature: signature.to_vec() })
    }

    /// Writes the line, with its line feed.
    pub fn write(&self, into: &mut String) {
        let mut bytes = self.id.to_vec();
        bytes.extend_from_slice(&self.signature);
        into.push_str("— ");
        into.push_str(&self.name);
        into.push(' ');
        BASE64.encode_string(bytes, into);
        into.push('\n');
    }
}

/// Whether it can be the name of a key: something without spaces and without `+`.
pub fn is_key_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '+' || c.is_ascii_control())
}

/// The hash of a key as signed-note has it: the first four bytes of SHA-256 of name, line feed, and the typed key.
#[must_use]
pub fn key_id(name: &str, typed_key: &[u8]) -> [u8; 4] {
    let hash = Sha256::new().chain_update(name).chain_update(b"\n").chain_update(typed_key).finalize();
    let [a, b, c, d, ..] = <[u8; 32]>::from(hash);
    [a, b, c, d]
}

/// A note verifier key: `name+keyid+base64(typed key)`.
#[must_use]
pub fn verifier_key(name: &str, typed_key: &[u8]) -> String {
    let id: String = key_id(name, typed_key).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name}+{id}+{}", BASE64.encode(typed_key))
}

/// The name and the typed key of a note verifier key, if it is one and its key id is right.
pub fn parse_verifier_key(text: &str) -> Option<(&str, Vec<u8>)> {
    let (name, rest) = text.split_once('+')?;
    let (_, encoded) = rest.split_once('+')?;
    let typed_key = BASE64.decode(encoded).ok()?;
    (is_key_name(name) && verifier_key(name, &typed_key) == text).then_some((name, typed_key))
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

    fn line(name: &str, length: usize) -> SignatureLine {
        SignatureLine { name: name.into(), id: [1, 2, 3, 4], signature: vec![5; length] }
    }

    #[test]
    fn a_note_of_another_log_with_sixteen_large_signatures_is_read() {
        let names = (0..16).map(|n| format!("witness.example/w{n}"));
        let signatures = names.map(|name| line(&name, 5000)).collect();
        let note = Note { text: "behind.example/the-sofa\n1\nroot\nan extension\n".into(), signatures };
        assert_eq!(Note::parse(&note.to_bytes()).unwrap(), note);
        let mut more = note.clone();
        more.signatures = vec![line("w", 64); MAX_SIGNATURE_LINES];
        assert_eq!(Note::parse(&more.to_bytes()).unwrap(), more);
        more.signatures.push(line("w", 64));
        assert_eq!(Note::parse(&more.to_bytes()), Err(NotANote("too many signature lines")));
        let long = Note { text: format!("{}\n", "a".repeat(MAX_NOTE_BYTES)), ..note };
        assert_eq!(Note::parse(&long.to_bytes()), Err(NotANote("too many bytes")));
    }

    #[test]
    fn what_signed_note_forbids_is_refused() {
        let good = "text\n\n— name AQIDBAU=\n";
        assert!(Note::parse(good.as_bytes()).is_ok());
        for bad in [
            "text\n\n",
            "text\n",
            "\n— name AQIDBAU=\n",
            "text\n\n— name AQIDBAU=",
            "text\n\n— name AQIDBAU=\n\n",
            "text\n\n- name AQIDBAU=\n",
            "text\n\n—name AQIDBAU=\n",
            "text\n\n— name AQIDBAU\n",
            "text\n\n— name AQIDBAV=\n",
            "text\n\n— name AQIDBA==\n",
            "text\n\n— name AQID\n",
            "text\n\n— name  AQIDBAU=\n",
            "text\n\n— AQIDBAU=\n",
            "text\n\n—  AQIDBAU=\n",
            "text\n\n— a+b AQIDBAU=\n",
            "text\n\n— a\u{a0}b AQIDBAU=\n",
            "text\n\n— a\u{2003}b AQIDBAU=\n",
            "text\r\n\n— name AQIDBAU=\n",
            "te\txt\n\n— name AQIDBAU=\n",
            "te\0xt\n\n— name AQIDBAU=\n",
            "text\n\n— name AQIDBAU=\nmore\n",
        ] {
            assert!(Note::parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(Note::parse(b"te\xffxt\n\n").is_err());
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
