//! Making the changes of a patch: each hunk has to stand in the file as it was written, at whatever line.

use crate::{
    nearest::Nearest,
    patch::{Hunk, Name, Section},
    replacement::named,
    text::{MOST_BYTES, Numbers, Text, TooLarge},
};

/// The most lines that are named where a hunk fits at several.
const NAMED: usize = 10;

/// Why the changes of a patch to one file were not made. Nothing was done. Hunks and lines count from 1.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unpatched {
    /// What it takes does not stand there.
    #[error("hunk {number} of {of}: {why}; no hunk was applied")]
    Hunk {
        /// Which.
        number: usize,
        /// Of how many.
        of: usize,
        /// Why.
        why: Hunkless,
    },
    /// It makes a file that is there.
    #[error("the patch makes a new file (`--- /dev/null`), and there is one already")]
    Exists,
    /// It changes or removes a file that is not there.
    #[error("there is no such file; a patch that makes one has `--- /dev/null`, and adds all of its lines in one hunk")]
    Absent,
    /// It removes a file and leaves some of its lines.
    #[error("the patch removes the file (`+++ /dev/null`), and {0} bytes of it would be left")]
    Leftover(usize),
    /// The text would become too large.
    #[error("the text would become too large: {0}")]
    TooLarge(TooLarge),
    /// To look for all of its hunks in all of the file takes too long.
    #[error("{hunks} hunks are too many for a file of {lines} lines; give fewer at once, or use `edits`")]
    TooMuch {
        /// How many there are.
        hunks: usize,
        /// How many lines each is looked for in.
        lines: usize,
    },
}

/// The most hunks, times lines of the file, that are looked for.
const MOST_STEPS: usize = 1 << 26;

/// Why a hunk has no place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Hunkless {
    /// What it takes stands nowhere behind the hunk before.
    #[error("the lines that it takes were not found. {0}")]
    Missing(Nearest),
    /// They stand before the end of the hunk before.
    #[error(
        "the lines that it takes stand only before those of the hunk before it; hunks go from the top of a file to its end"
    )]
    Before,
    /// It fits several times, and its header says no line.
    #[error("it fits {times} times, at {}; give more lines around it, or line numbers", named(lines, *times))]
    Ambiguous {
        /// How many times.
        times: usize,
        /// The first of the lines at which it fits.
        lines: Vec<usize>,
    },
    /// It only adds, and nothing says where.
    #[error(
        "it only adds lines and has none around them; give a line before or behind the place, with a space before it"
    )]
    Placeless,
}

impl Section {
    /// What the file becomes that holds `text`, or is not there: none, if it is removed.
    ///
    /// # Errors
    /// [`Unpatched`] says which hunk has no place, and what is there instead.
    pub fn apply(&self, text: Option<Text<'_>>) -> Result<Option<String>, Unpatched> {
        let makes = self.old == Name::Nothing;
        let only_adds = self.hunks.iter().all(|hunk| hunk.before().is_empty()) && self.new != Name::Nothing;
        let text = match text {
            Some(_) if makes => return Err(Unpatched::Exists),
            Some(text) => text.as_str(),
            None if makes || (self.old == Name::Unsaid && only_adds) => "",
            None => return Err(Unpatched::Absent),
        };
        let made = self.made(text)?;
        if self.new == Name::Nothing {
            return if made.is_empty() { Ok(None) } else { Err(Unpatched::Leftover(made.len())) };
        }
        Text::new(&made).map_err(Unpatched::TooLarge)?;
        Ok(Some(made))
    }

    fn made(&self, text: &str) -> Result<String, Unpatched> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        if self.hunks.len().checked_mul(lines.len()).is_none_or(|steps| steps > MOST_STEPS) {
            return Err(Unpatched::TooMuch { hunks: self.hunks.len(), lines: lines.len() });
        }
        let mut numbers = Numbers::default();
        let place = Places { text, numbered: numbers.of(&lines), numbers };
        let (mut made, mut from, mut last) = (String::new(), 0_usize, Shift::default());
        for (number, hunk) in (1..).zip(&self.hunks) {
            let at = place.of(hunk, from, last);
            let at = at.map_err(|why| Unpatched::Hunk { number, of: self.hunks.len(), why })?;
            let between = lines.get(from..at).unwrap_or_default();
            between.iter().copied().chain(hunk.after()).for_each(|line| made.push_str(line));
            if made.len() > MOST_BYTES {
                return Err(Unpatched::TooLarge(TooLarge::Bytes(made.len())));
            }
            from = at.saturating_add(hunk.before().len());
            last = hint(hunk).map_or(last, |said| Shift { said, at });
        }
        lines.get(from..).unwrap_or_default().iter().for_each(|line| made.push_str(line));
        Ok(made)
    }
}

/// The line at which a hunk says it begins, from 0.
fn hint(hunk: &Hunk) -> Option<usize> {
    hunk.at.map(|at| at.saturating_sub(1))
}

/// Where a hunk was said to stand, and where it did.
#[derive(Clone, Copy, Default)]
struct Shift {
    said: usize,
    at: usize,
}

/// Where hunks can stand in a text.
struct Places<'a> {
    text: &'a str,
    numbers: Numbers<'a>,
    numbered: Vec<u32>,
}

impl Places<'_> {
    /// The line at which a hunk stands, from 0: not before `from`; of several the nearest to where it says it is, shifted as
    /// the one before, and of two the later, as git and patch have it.
    fn of(&self, hunk: &Hunk, from: usize, last: Shift) -> Result<usize, Hunkless> {
        let before = hunk.before();
        if before.is_empty() {
            return if self.numbered.is_empty() { Ok(0) } else { Err(Hunkless::Placeless) };
        }
        let found = self.numbers.known(&before).map(|sought| places(&self.numbered, &sought)).unwrap_or_default();
        let behind: Vec<usize> = found.iter().copied().filter(|at| *at >= from).collect();
        match (behind.as_slice(), hint(hunk)) {
            ([], _) if found.is_empty() => Err(Hunkless::Missing(Nearest::of(self.text, &before.concat()))),
            ([], _) => Err(Hunkless::Before),
            ([only], _) => Ok(*only),
            (several, None) => {
                let lines = several.iter().take(NAMED).map(|at| at.saturating_add(1)).collect();
                Err(Hunkless::Ambiguous { times: several.len(), lines })
            }
            (several, Some(hint)) => {
                let hint = hint.saturating_add(last.at).saturating_sub(last.said);
                let nearest = several.iter().min_by_key(|at| (at.abs_diff(hint), **at < hint));
                Ok(nearest.copied().unwrap_or(hint))
            }
        }
    }
}

/// Where `sought`, which is not empty, stands in `lines`: the algorithm of Knuth, Morris and Pratt.
fn places(lines: &[u32], sought: &[u32]) -> Vec<usize> {
    let longest = |borders: &[usize], mut length: usize, next: u32| {
        while length > 0 && sought.get(length) != Some(&next) {
            length = length.checked_sub(1).and_then(|at| borders.get(at)).copied().unwrap_or_default();
        }
        if sought.get(length) == Some(&next) { length.saturating_add(1) } else { 0 }
    };
    // For each beginning of `sought` the longest shorter one that it ends in.
    let mut borders = vec![0_usize];
    for next in sought.iter().skip(1) {
        let length = borders.last().copied().unwrap_or_default();
        let longer = longest(&borders, length, *next);
        borders.push(longer);
    }
    let (mut found, mut length) = (Vec::new(), 0);
    for (at, line) in lines.iter().enumerate() {
        length = longest(&borders, length, *line);
        if length == sought.len() {
            found.extend(at.checked_add(1).and_then(|end| end.checked_sub(length)));
            length = borders.last().copied().unwrap_or_default();
        }
    }
    found
}
