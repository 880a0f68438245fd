//! Server-sent events, by the grammar of the WHATWG HTML standard, section 9.2.6.

use super::wire::TooLong;

/// Turns bytes, cut anywhere, into the data of events.
///
/// Lines end in CR, LF or CRLF; comments and unknown fields are passed over; data of several lines is joined. Names, ids
/// and retry times do nothing here, because Chat Completions uses none.
#[derive(Debug)]
pub(crate) struct Events {
    /// The most bytes of a line, and of the data of an event.
    most: usize,
    line: Vec<u8>,
    data: Option<String>,
    /// The last byte ended a line as CR: an LF right after it belongs to the same end.
    after_cr: bool,
    /// The first line has been seen, before which a byte order mark may stand.
    begun: bool,
    /// A line has been one of the grammar: a comment, or a field that it knows.
    known: bool,
}

impl Events {
    /// Events of at most so many bytes.
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, line: Vec::new(), data: None, after_cr: false, begun: false, known: false }
    }

    /// Whether anything so far was by the grammar.
    pub(crate) const fn is_known(&self) -> bool {
        self.known
    }

    /// Takes more bytes; returns the data of each event that they complete.
    ///
    /// # Errors
    /// [`TooLong`], if an event is longer than it may be; what came before it is lost with it.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' if self.after_cr => self.after_cr = false,
                b'\n' | b'\r' => {
                    self.after_cr = *byte == b'\r';
                    events.extend(self.end_line());
                }
                byte => {
                    self.after_cr = false;
                    if self.line.len() + self.data.as_ref().map_or(0, String::len) >= self.most {
                        return Err(TooLong);
                    }
                    self.line.push(*byte);
                }
            }
        }
        Ok(events)
    }

    /// The stream is over. The standard drops an unfinished event; several servers leave out the last blank line, so
    /// what is there is given, and whether it is whole shows when it is parsed.
    pub(crate) fn finish(mut self) -> Option<String> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.data
    }

    fn end_line(&mut self) -> Option<String> {
        // A line ends in an ASCII byte, so no character is split here, wherever the bytes were cut.
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = if self.begun { &line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.begun = true;
        if line.is_empty() {
            return self.data.take();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        self.known |= matches!(field, "" | "data" | "event" | "id" | "retry");
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
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Events;

    fn events(bytes: &[u8]) -> Vec<String> {
        let mut parser = Events::new(1000);
        let mut events = parser.push(bytes).unwrap();
        events.extend(parser.finish());
        events
    }

    #[test]
    fn every_line_ending_and_spelling_of_data_is_read() {
        for text in [
            "data: a\n\ndata: b\n\n",
            "data: a\r\n\r\ndata: b\r\n\r\n",
            "data: a\r\rdata: b\r\r",
            "data:a\n\rdata:b\r\n\n",
        ] {
            assert_eq!(events(text.as_bytes()), ["a", "b"], "{text:?}");
        }
    }

    #[test]
    fn comments_pings_and_other_fields_are_passed_over() {
        let text = ": hello\n\nevent: ping\n\n:\nid: 7\nretry: 10\nevent: message\ndata: a\nx\n\n: bye\n\n";
        assert_eq!(events(text.as_bytes()), ["a"]);
    }

    #[test]
    fn data_of_several_lines_is_joined_and_only_one_space_is_taken() {
        assert_eq!(events(b"data:  a\ndata\ndata: b\n\n"), [" a\n\nb"]);
    }

    #[test]
    fn an_event_has_a_greatest_length_however_it_is_made_up() {
        let long = "x".repeat(1001);
        for text in [long.clone(), format!("data: {long}"), format!(": {long}"), "data: xyz\n".repeat(300)] {
            let mut parser = Events::new(1000);
            assert!(text.as_bytes().chunks(7).any(|piece| parser.push(piece).is_err()), "{text}");
        }
        assert_eq!(Events::new(1000).push("data: xyz\n\n".repeat(1000).as_bytes()).unwrap().len(), 1000);
    }

    #[test]
    fn what_is_no_event_at_all_is_told_from_silence() {
        for (text, known) in
            [("", false), ("It works!\n", false), (": ping\n", true), ("data: x\n", true), ("event: ping\n", true)]
        {
            let mut parser = Events::new(1000);
            parser.push(text.as_bytes()).unwrap();
            assert_eq!(parser.is_known(), known, "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        assert_eq!(events("\u{feff}data: a\n\n".as_bytes()), ["a"]);
    }

    #[test]
    fn a_last_event_without_its_blank_line_is_given() {
        for text in ["data: [DONE]", "data: [DONE]\n", "data: [DONE]\r\n"] {
            assert_eq!(events(text.as_bytes()), ["[DONE]"]);
        }
        assert!(events(b"").is_empty());
    }

    #[test]
    fn cutting_the_bytes_anywhere_changes_nothing() {
        let text = "\u{feff}data: zwölf 日本 🦀\r\ndata: two\r\n\r\n: c\n\rdata:b\n\n".as_bytes();
        let whole = events(text);
        assert_eq!(whole, ["zwölf 日本 🦀\ntwo", "b"]);
        for cut in 0..=text.len() {
            for second in cut..=text.len() {
                let mut parser = Events::new(1000);
                let mut got = Vec::new();
                for piece in [text.get(..cut), text.get(cut..second), text.get(second..)].into_iter().flatten() {
                    got.extend(parser.push(piece).unwrap());
                }
                got.extend(parser.finish());
                assert_eq!(got, whole, "cut at {cut} and {second}");
            }
        }
    }
}
