//! A text that is small enough to be worked on.

use std::collections::HashMap;

/// The most bytes of a text, a patch among them.
pub const MOST_BYTES: usize = 4 << 20;

/// The most lines of a text.
pub const MOST_LINES: usize = 1 << 18;

/// A text of at most [`MOST_BYTES`] bytes and [`MOST_LINES`] lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text<'a>(&'a str);

/// A text that is too large. Nothing was done with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TooLarge {
    /// It has this many bytes.
    #[error("it has {0} bytes, and at most {MOST_BYTES} can be edited")]
    Bytes(usize),
    /// It has this many lines.
    #[error("it has {0} lines, and at most {MOST_LINES} can be edited")]
    Lines(usize),
}

impl<'a> Text<'a> {
    /// Takes a text.
    ///
    /// # Errors
    /// [`TooLarge`] says how much too large it is.
    pub fn new(text: &'a str) -> Result<Self, TooLarge> {
        if text.len() > MOST_BYTES {
            return Err(TooLarge::Bytes(text.len()));
        }
        match text.split_inclusive('\n').count() {
            lines if lines > MOST_LINES => Err(TooLarge::Lines(lines)),
            _ => Ok(Self(text)),
        }
    }

    /// The text.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// Its lines, each with its end.
    pub(crate) fn lines(self) -> Vec<&'a str> {
        self.0.split_inclusive('\n').collect()
    }
}

/// Numbers for lines, the same for equal lines.
#[derive(Default)]
pub(crate) struct Numbers<'a>(HashMap<&'a str, u32>);

impl<'a> Numbers<'a> {
    /// The numbers of `lines`, those that are new numbered on.
    pub(crate) fn of(&mut self, lines: &[&'a str]) -> Vec<u32> {
        let mut number = |line: &&'a str| {
            // Two texts have fewer lines than there are numbers.
            let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
            *self.0.entry(*line).or_insert(next)
        };
        lines.iter().map(&mut number).collect()
    }

    /// The numbers of `lines`; none if one of them is new.
    pub(crate) fn known(&self, lines: &[&str]) -> Option<Vec<u32>> {
        lines.iter().map(|line| self.0.get(line).copied()).collect()
    }
}

/// The number of the line at the byte `at`, from 1.
pub(crate) fn line_at(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count().saturating_add(1)
}

/// Bytes of a line that are told to a reader.
const TOLD: usize = 160;

/// A line as a sentence bears it: without its end, cut, and with control characters spelt out.
pub(crate) fn told(line: &str) -> String {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let mut told = String::new();
    for c in line.chars() {
        if told.len() >= TOLD {
            told.push('…');
            break;
        }
        if c.is_control() {
            told.extend(c.escape_default());
        } else {
            told.push(c);
        }
    }
    told
}
