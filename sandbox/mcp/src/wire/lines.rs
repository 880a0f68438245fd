//! Bytes, cut into lines.

/// A line, or an event of several lines, that is longer than a message may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a message is longer than {most} bytes")]
pub struct TooLong {
    /// The most bytes of one.
    pub most: usize,
}

/// Cuts a stream at its line feeds, wherever its bytes are cut. It holds one line at most.
#[derive(Debug)]
pub struct Lines {
    line: Vec<u8>,
    most: usize,
    /// What a line may have beside the message in it.
    frame: usize,
}

impl Lines {
    /// No bytes yet; lines of at most `most` bytes.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { line: Vec::new(), most, frame: 0 }
    }

    /// Lines that have up to `frame` bytes beside a message.
    pub(super) const fn framed(most: usize, frame: usize) -> Self {
        Self { line: Vec::new(), most, frame }
    }

    /// Takes the next bytes and gives each whole line, without its end, to `each`.
    ///
    /// # Errors
    /// [`TooLong`], and whatever `each` refuses with; then the stream is of no more use.
    pub fn push<E: From<TooLong>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            let (piece, after) = rest.split_at(at);
            self.keep(piece)?;
            let line = std::mem::take(&mut self.line);
            each(line.strip_suffix(b"\r").unwrap_or(&line))?;
            rest = after.get(1..).unwrap_or_default();
        }
        Ok(self.keep(rest)?)
    }

    fn keep(&mut self, piece: &[u8]) -> Result<(), TooLong> {
        if piece.len() > self.most.saturating_add(self.frame).saturating_sub(self.line.len()) {
            return Err(TooLong { most: self.most });
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    /// The bytes of a line that has not ended.
    #[must_use]
    pub const fn unfinished(&self) -> usize {
        self.line.len()
    }
}
