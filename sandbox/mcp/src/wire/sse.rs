//! Server-sent events, as far as MCP uses them (WHATWG HTML, section 9.2.6).

use super::lines::{Lines, TooLong};

/// The bytes that a line of an event may have beside its data: `data: ` and a byte order mark take nine.
const FRAME: usize = 64;

/// Cuts a body into the data of its events, wherever its bytes are cut. It holds one event at most.
///
/// Lines may end in LF, CR LF or CR. Names, ids and times of events are read over: MCP's messages stand in unnamed events, or in those
/// named `message`; of any other name the data is not given out.
#[derive(Debug)]
pub struct Events {
    lines: Lines,
    data: Vec<u8>,
    most: usize,
    has_data: bool,
    foreign: bool,
    after_cr: bool,
    begun: bool,
}

impl Events {
    /// No bytes yet; events of at most `most` bytes.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self {
            lines: Lines::framed(most, FRAME),
            data: Vec::new(),
            most,
            has_data: false,
            foreign: false,
            after_cr: false,
            begun: false,
        }
    }

    /// Takes the next bytes and gives the data of each whole event to `each`.
    ///
    /// # Errors
    /// [`TooLong`], and whatever `each` refuses with; then the body is of no more use.
    pub fn push<E: From<TooLong>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let plain = self.with_line_feeds(bytes);
        let mut lines = std::mem::replace(&mut self.lines, Lines::new(0));
        let taken = lines.push(&plain, |line| self.line(line, &mut each));
        self.lines = lines;
        taken
    }

    /// Every end of a line as one LF.
    fn with_line_feeds(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::with_capacity(bytes.len());
        for byte in bytes {
            match byte {
                b'\n' if self.after_cr => {}
                b'\r' => plain.push(b'\n'),
                byte => plain.push(*byte),
            }
            self.after_cr = *byte == b'\r';
        }
        plain
    }

    fn line<E: From<TooLong>>(&mut self, line: &[u8], each: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let line = if self.begun { line } else { line.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(line) };
        self.begun = true;
        if line.is_empty() {
            let (data, is_whole) = (std::mem::take(&mut self.data), self.has_data && !self.foreign);
            (self.has_data, self.foreign) = (false, false);
            return if is_whole && !data.is_empty() { each(&data) } else { Ok(()) };
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => self.keep(value)?,
            b"event" => self.foreign = !matches!(value, b"" | b"message"),
            _ => {}
        }
        Ok(())
    }

    fn keep(&mut self, value: &[u8]) -> Result<(), TooLong> {
        let feed = usize::from(self.has_data);
        if value.len().saturating_add(feed) > self.most.saturating_sub(self.data.len()) {
            return Err(TooLong { most: self.most });
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }

    /// The bytes of an event that has not ended.
    #[must_use]
    pub const fn unfinished(&self) -> usize {
        self.data.len().saturating_add(self.lines.unfinished())
    }
}
