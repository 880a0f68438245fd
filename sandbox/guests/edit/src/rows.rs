//! A difference as people read it: bounded in lines and columns.

use crate::diff::Diff;

/// How a difference is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// How wide a line is at most, its sign with it: 40 or more. A character outside of ASCII counts as two columns.
    pub columns: usize,
    /// How many lines there are at most. Where there are more, the middle is left out, and one line less is shown.
    pub lines: usize,
    /// How many lines around a change are shown.
    pub context: usize,
    /// Spells out what a reader would not see, or a terminal would obey, of one line without its end.
    pub spell: fn(&str) -> String,
}

/// Lines from both ends of a difference: what is meant to be overlooked may stand at either.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rows {
    /// From the beginning.
    pub head: Vec<String>,
    /// How many were left out behind these.
    pub left: usize,
    /// From the end.
    pub tail: Vec<String>,
}

impl Rows {
    /// Both ends of a text as that which is added, or removed, by its sign. For a text that is too large to be compared.
    #[must_use]
    pub fn of_all(sign: char, text: &str, look: &Look) -> Self {
        let lines = || text.split_inclusive('\n').map(|line| (sign, line.strip_suffix('\n').unwrap_or(line)));
        Self::of(lines, look)
    }

    fn of<'a, I: DoubleEndedIterator<Item = (char, &'a str)>>(rows: impl Fn() -> I, look: &Look) -> Self {
        let row = |(sign, line): (char, &str)| match sign {
            '@' => line.to_owned(),
            sign => look.row(sign, line),
        };
        let count = rows().count();
        if count <= look.lines {
            return Self { head: rows().map(row).collect(), left: 0, tail: Vec::new() };
        }
        let kept = look.lines.saturating_sub(1);
        let tail: Vec<String> = rows().rev().take(kept / 3).map(row).collect();
        let head: Vec<String> = rows().take(kept.saturating_sub(tail.len())).map(row).collect();
        let left = count.saturating_sub(head.len()).saturating_sub(tail.len());
        Self { head, left, tail: tail.into_iter().rev().collect() }
    }

    /// All of them, with a line that says how many were left out.
    #[must_use]
    pub fn lines(self) -> Vec<String> {
        let said = (self.left > 0).then(|| format!("… {} more lines of the difference", self.left));
        self.head.into_iter().chain(said).chain(self.tail).collect()
    }
}

impl Diff<'_> {
    /// The changes, a line each: `@@ -12,3 +12,4 @@`, then the lines with ` `, `-` or `+` before them.
    #[must_use]
    pub fn shown(&self, look: &Look) -> Rows {
        let mut rows: Vec<(char, &str)> = Vec::new();
        let hunks = self.hunks(look.context);
        let headers: Vec<String> = hunks.iter().map(|hunk| hunk.header()).collect();
        for (hunk, header) in hunks.iter().zip(&headers) {
            rows.push(('@', header));
            for (sign, line) in self.lines(hunk) {
                rows.push((sign, line.strip_suffix('\n').unwrap_or(line)));
                if !line.ends_with('\n') {
                    rows.push(('\\', " No newline at end of file"));
                }
            }
        }
        Rows::of(|| rows.iter().copied(), look)
    }
}

impl Look {
    /// A line in at most `columns`; of a longer line both ends, with its length between them.
    fn row(&self, sign: char, line: &str) -> String {
        let whole = format!("{sign}{}", (self.spell)(line));
        if whole.chars().map(width).sum::<usize>() <= self.columns {
            return whole;
        }
        let said = format!(" … {} bytes … ", line.len());
        let room = self.columns.saturating_sub(said.chars().map(width).sum());
        let back = room / 3;
        let tail: Vec<char> = fitting(whole.chars().rev(), back).collect();
        let head = fitting(whole.chars(), room.saturating_sub(back));
        head.chain(said.chars()).chain(tail.into_iter().rev()).collect()
    }
}

const fn width(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

/// As many of `chars` as there is room for.
fn fitting(chars: impl Iterator<Item = char>, columns: usize) -> impl Iterator<Item = char> {
    let mut used = 0_usize;
    chars.take_while(move |c| {
        used = used.saturating_add(width(*c));
        used <= columns
    })
}
