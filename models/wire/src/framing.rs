//! Cuts a response into JSON objects, by its first byte: servers give the wrong content type.

mod objects;
mod sse;

use self::{objects::Objects, sse::Sse};

/// What cannot be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Uncut {
    /// One object or event is longer than it may be.
    TooLong,
    /// HTML or XML.
    Page,
    /// Neither events nor JSON.
    Foreign,
}

/// A response as it comes. Nothing is kept of it beyond one object.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    most: usize,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// Nothing but blanks so far.
    Unknown,
    /// Objects one after the other: a body that does not stream, lines of JSON (NDJSON), or a list that grows.
    Objects(Objects),
    /// Server-sent events.
    Sse(Sse),
}

impl Frames {
    /// Objects of at most so many bytes.
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, form: Form::Unknown }
    }

    /// Takes bytes up to the end of the next object, and gives that; nothing once they are used up.
    ///
    /// # Errors
    /// [`Uncut`]; then nothing of the rest is of use.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<String>, Uncut> {
        if matches!(self.form, Form::Unknown) {
            // A byte order mark is as a blank, in whatever pieces it comes.
            let is_blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF);
            let blanks = bytes.iter().take_while(|byte| is_blank(byte)).count();
            *bytes = bytes.get(blanks..).unwrap_or_default();
            self.form = match bytes.first() {
                None => return Ok(None),
                Some(b'{' | b'[') => Form::Objects(Objects::new(self.most)),
                Some(b'<') => return Err(Uncut::Page),
                Some(_) => Form::Sse(Sse::new(self.most)),
            };
        }
        match &mut self.form {
            Form::Unknown => Ok(None),
            Form::Objects(objects) => objects.next(bytes),
            Form::Sse(sse) => sse.next(bytes),
        }
    }

    /// The response is over: what is left, which may be half an object.
    ///
    /// # Errors
    /// [`Uncut::Foreign`], if nothing of it was by any grammar.
    pub(crate) fn finish(self) -> Result<Option<String>, Uncut> {
        match self.form {
            Form::Unknown => Ok(None),
            Form::Objects(objects) => Ok(objects.finish()),
            Form::Sse(sse) => sse.finish(),
        }
    }
}
