//! Server-sent events, by the grammar of the WHATWG HTML standard, section 9.2.6.

use super::Uncut;

/// The fields that the grammar knows.
const FIELDS: [&str; 4] = ["data", "event", "id", "retry"];

/// Turns bytes, cut anywhere, into the data of events.
///
/// Lines end in CR, LF or CRLF; comments and unknown fields are passed over; data of several lines is joined. Names, ids and retry
/// times do nothing here: whatever an event is, its data says so too.
#[derive(Clone, Debug)]
pub(super) struct Sse {
    /// The most bytes of a line, and of the data of an event.
    most: usize,
    line: Vec<u8>,
    data: Option<String>,
    /// The last byte ended a line as CR: an LF right after it belongs to the same end.
    after_cr: bool,
    /// A line has been one of the grammar: a comment, or a field that it knows.
    known: bool,
    /// A line has been none.
    foreign: bool,
}

impl Sse {
    pub(super) const fn new(most: usize) -> Self {
        Self { most, line: Vec::new(), data: None, after_cr: false, known: false, foreign: false }
    }

    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<String>, Uncut> {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                *bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.line.len() + line.len() + self.data.as_ref().map_or(0, String::len) > self.most {
                return Err(Uncut::TooLong);
            }
            self.line.extend_from_slice(line);
            *bytes = rest.get(1..).unwrap_or_default();
            if let Some(end) = rest.first() {
                self.after_cr = *end == b'\r';
                if let Some(data) = self.end_line() {
                    return Ok(Some(data));
                }
            }
        }
        Ok(None)
    }

    /// The stream is over. The standard drops an unfinished event; several servers leave out the last blank line, so what is there is given, and
    /// whether it is whole shows when it is read.
    pub(super) fn finish(mut self) -> Result<Option<String>, Uncut> {
        let is_beginning = !self.foreign && FIELDS.iter().any(|field| field.as_bytes().starts_with(&self.line));
        if !self.line.is_empty() {
            self.end_line();
        }
        if self.known || is_beginning { Ok(self.data) } else { Err(Uncut::Foreign) }
    }

    fn end_line(&mut self) -> Option<String> {
        // A line ends in an ASCII byte, so no character is split here, wherever the bytes were cut.
        let line = String::from_utf8_lossy(&self.line);
        if line.is_empty() {
            return self.data.take();
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let known = field.is_empty() || FIELDS.contains(&field);
        self.known |= known;
        self.foreign |= !known;
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
        }
        self.line.clear();
        None
    }
}
