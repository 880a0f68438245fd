//! Cuts a response into the texts that are one chunk each, by its first byte: servers give the wrong content type.

use super::sse::Events;

/// One event, or a whole body, is longer than the answer may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLong;

/// A response as it comes. Nothing of it is kept beyond the most that one chunk may have.
#[derive(Debug)]
pub(crate) struct Wire {
    most: usize,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// Nothing but blanks so far.
    Unknown,
    /// One JSON text: the server does not stream.
    Whole(Vec<u8>),
    /// Server-sent events.
    Events(Events),
    /// HTML or XML.
    Page,
}

/// What is left where a response ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    /// Nothing.
    Nothing,
    /// Perhaps one chunk more.
    Chunk(String),
    /// All of it, from a server that does not stream.
    Whole(String),
    /// It was a page for people.
    Page,
    /// It was nothing that is known here.
    Foreign,
}

impl Wire {
    /// Chunks of at most so many bytes.
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, form: Form::Unknown }
    }

    /// Takes more bytes; returns the chunks that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        if matches!(self.form, Form::Unknown) {
            // A byte order mark is as a blank, in whatever pieces it comes.
            let blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF);
            self.form = match bytes.iter().find(|byte| !blank(byte)) {
                None => return Ok(Vec::new()),
                Some(b'{' | b'[') => Form::Whole(Vec::new()),
                Some(b'<') => Form::Page,
                Some(_) => Form::Events(Events::new(self.most)),
            };
        }
        match &mut self.form {
            Form::Events(events) => events.push(bytes),
            Form::Whole(body) if body.len() + bytes.len() > self.most => Err(TooLong),
            Form::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(Vec::new())
            }
            Form::Unknown | Form::Page => Ok(Vec::new()),
        }
    }

    /// The response is over.
    pub(crate) fn finish(self) -> Rest {
        match self.form {
            Form::Unknown => Rest::Nothing,
            Form::Page => Rest::Page,
            Form::Whole(body) => {
                let text = String::from_utf8_lossy(&body);
                Rest::Whole(text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).to_owned())
            }
            Form::Events(events) if !events.is_known() => {
                // The last line may be the first that says something.
                events.finish().map_or(Rest::Foreign, Rest::Chunk)
            }
            Form::Events(events) => events.finish().map_or(Rest::Nothing, Rest::Chunk),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rest, TooLong, Wire};

    #[test]
    fn the_first_byte_tells_what_it_is() {
        for (text, rest) in [
            ("", Rest::Nothing),
            (" \r\n", Rest::Nothing),
            (" {\"a\": 1}", Rest::Whole("{\"a\": 1}".to_owned())),
            ("\u{feff}{}", Rest::Whole("{}".to_owned())),
            ("\n<html>", Rest::Page),
            ("It works!", Rest::Foreign),
            (": ping\n\n", Rest::Nothing),
            ("data: x", Rest::Chunk("x".to_owned())),
        ] {
            let mut wire = Wire::new(100);
            for piece in text.as_bytes().chunks(1) {
                assert_eq!(wire.push(piece), Ok(Vec::new()));
            }
            assert_eq!(wire.finish(), rest, "{text:?}");
        }
    }

    #[test]
    fn a_body_has_a_greatest_length() {
        let mut wire = Wire::new(10);
        assert_eq!(wire.push(b"{\"a\": "), Ok(Vec::new()));
        assert_eq!(wire.push(b"12345"), Err(TooLong));
    }
}
