//! A difference as people read it: bounded in lines and columns.

use crate::diff::Diff;

/// How a difference is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// How wide a line is at most, its sign with it. A character outside of ASCII counts as two columns.
    pub columns: usize,
    /// How many lines there are at most. Where there are more, the middle is left out, and a line says how much.
    pub lines: usize,
    /// How many lines around a change are shown.
    pub context: usize,
    /// Spells out what a reader would not see, or a terminal would obey, of one line without its end.
    pub spell: fn(&str) -> String,
}

impl Diff<'_> {
    /// The changes, a line each: `@@ -12,3 +12,4 @@`, then the lines with ` `, `-` or `+` before them.
    #[must_use]
    pub fn shown(&self, look: &Look) -> Vec<String> {
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
        let row = |(sign, line): &(char, &str)| match sign {
            '@' => cut((*line).to_owned(), look.columns),
            sign => cut(format!("{sign}{}", (look.spell)(line)), look.columns),
        };
        if rows.len() <= look.lines {
            return rows.iter().map(row).collect();
        }
        // Both ends are shown: what is meant to be overlooked may stand at either.
        let kept = look.lines.saturating_sub(1);
        let tail = kept / 3;
        let head = kept.saturating_sub(tail);
        let left = rows.len().saturating_sub(kept);
        let mut shown: Vec<String> = rows.iter().take(head).map(row).collect();
        shown.push(cut(format!("… {left} more lines of the difference"), look.columns));
        shown.extend(rows.iter().skip(rows.len().saturating_sub(tail)).map(row));
        shown
    }
}

/// A line in at most `columns`; one that was cut says so.
fn cut(line: String, columns: usize) -> String {
    let width = |c: char| if c.is_ascii() { 1_usize } else { 2 };
    if line.chars().map(width).sum::<usize>() <= columns {
        return line;
    }
    let mut used = 2_usize;
    let fits = |c: &char| {
        used = used.saturating_add(width(*c));
        used <= columns
    };
    let mut cut: String = line.chars().take_while(fits).collect();
    cut.push('…');
    cut
}
