//! Exact replacements: one text in the place of another.

use crate::{
    nearest::Nearest,
    text::{MOST_BYTES, Text, TooLarge, line_at},
};

/// The most replacements that are made at once.
pub const MOST_EDITS: usize = 100;

/// The most lines that are named where a text stands several times.
const NAMED: usize = 10;

/// One text in the place of another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replacement {
    old: String,
    new: String,
    all: bool,
}

/// A replacement that makes no sense, whatever the text. Nothing was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadEdit {
    /// There is none.
    #[error("there is no edit")]
    None,
    /// There are this many.
    #[error("there are {0} edits, and at most {MOST_EDITS} are made at once")]
    Many(usize),
    /// The text to be replaced is empty.
    #[error("`old` is empty; to add text, give a line beside the place as `old`, and that line and the text as `new`")]
    Empty,
    /// It would change nothing.
    #[error("`old` and `new` are the same")]
    Same,
    /// One of its texts is too large.
    #[error("a text of the edit is too large: {0}")]
    TooLarge(#[from] TooLarge),
}

impl Replacement {
    /// Puts `new` in the place of `old`, which has to stand in the text exactly once; with `all`, of each that stands there.
    ///
    /// # Errors
    /// Where `old` is empty, both are the same, or one is too large.
    pub fn new(old: String, new: String, all: bool) -> Result<Self, BadEdit> {
        Text::new(&old)?;
        Text::new(&new)?;
        match (old.is_empty(), old == new) {
            (true, _) => Err(BadEdit::Empty),
            (_, true) => Err(BadEdit::Same),
            _ => Ok(Self { old, new, all }),
        }
    }

    fn apply(&self, text: &str) -> Result<String, Unedited> {
        let Self { old, new, all } = self;
        let first = text.find(old).ok_or_else(|| Unedited::Missing(Nearest::of(text, old)))?;
        // Two may overlap, and then which is meant is not known either.
        let behind = first.saturating_add(old.chars().next().map_or(1, char::len_utf8));
        let is_unique = !text.get(behind..).is_some_and(|rest| rest.contains(old));
        let times = text.matches(old).count();
        if !all && !is_unique {
            let lines = text.match_indices(old).take(NAMED).map(|(at, _)| line_at(text, at)).collect();
            return Err(Unedited::Ambiguous { times: times.max(2), lines });
        }
        let grown = new.len().checked_mul(times).and_then(|added| added.checked_add(text.len()));
        let bytes = grown.unwrap_or(usize::MAX).saturating_sub(old.len().saturating_mul(times));
        if bytes > MOST_BYTES {
            return Err(Unedited::TooLarge(TooLarge::Bytes(bytes)));
        }
        Ok(text.replace(old, new))
    }
}

/// Replacements that are made one after another, each in what the one before left: 1 to [`MOST_EDITS`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replacements(Vec<Replacement>);

/// Why none of them was made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unedited {
    /// The text to be replaced does not stand there.
    #[error("`old` was not found. {0}")]
    Missing(Nearest),
    /// It did, before another edit of the same call.
    #[error("`old` is not there any more once the edits before this one are made; each sees what the one before left")]
    Gone,
    /// It stands there several times.
    #[error("`old` stands there {times} times, at {}; give more of what is around it, or set `all`", named(lines, *times))]
    Ambiguous {
        /// How many times.
        times: usize,
        /// The lines where the first of them begin, from 1.
        lines: Vec<usize>,
    },
    /// The text would become too large.
    #[error("the text would become too large: {0}")]
    TooLarge(TooLarge),
    /// This one of several, from 1, and why.
    #[error("edit {number} of {of}: {why}; none of them was made")]
    One {
        /// Which, from 1.
        number: usize,
        /// Of how many.
        of: usize,
        /// Why it was not made.
        why: Box<Unedited>,
    },
}

impl Replacements {
    /// Takes them in order.
    ///
    /// # Errors
    /// Where there is none, or more than [`MOST_EDITS`].
    pub fn new(edits: Vec<Replacement>) -> Result<Self, BadEdit> {
        match edits.len() {
            0 => Err(BadEdit::None),
            many if many > MOST_EDITS => Err(BadEdit::Many(many)),
            _ => Ok(Self(edits)),
        }
    }

    /// What `text` becomes.
    ///
    /// # Errors
    /// [`Unedited`] says why one of them cannot be made; then none is.
    pub fn apply(&self, text: Text<'_>) -> Result<String, Unedited> {
        let mut now = text.as_str().to_owned();
        for (number, edit) in (1..).zip(&self.0) {
            now = edit.apply(&now).map_err(|why| {
                let was_there = matches!(why, Unedited::Missing(_)) && text.as_str().contains(&edit.old);
                let why = if was_there { Unedited::Gone } else { why };
                match self.0.len() {
                    1 => why,
                    of => Unedited::One { number, of, why: Box::new(why) },
                }
            })?;
        }
        match Text::new(&now) {
            Ok(_) => Ok(now),
            Err(too_large) => Err(Unedited::TooLarge(too_large)),
        }
    }
}

/// "lines 1, 4 and 9", or "line 3".
pub(crate) fn named(lines: &[usize], times: usize) -> String {
    let mut named: Vec<String> = lines.iter().map(ToString::to_string).collect();
    named.dedup();
    let more = if times > lines.len() { ", …" } else { "" };
    let word = if named.len() == 1 && more.is_empty() { "line" } else { "lines" };
    format!("{word} {}{more}", named.join(", "))
}
