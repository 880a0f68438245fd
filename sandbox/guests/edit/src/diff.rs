//! The difference of two texts: Myers' greedy algorithm (An O(ND) Difference Algorithm and Its Variations, 1986), line by line.

use std::{fmt::Write, ops::Range};

use crate::text::{Numbers, Text};

/// How many lines apart two texts are at most for the shortest difference to be looked for, and how many steps that may take. Beyond,
/// all between the first line that differs and the last is one change: a difference as true, and longer. A clock has no say, so that two
/// machines find the same.
const MOST_DISTANCE: usize = 2048;
const MOST_STEPS: usize = 1 << 24;

/// The lines around a change in a patch.
const CONTEXT: usize = 3;

/// What changes between two texts; either may be none, where there is no file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diff<'a> {
    pub(crate) old: Option<Vec<&'a str>>,
    pub(crate) new: Option<Vec<&'a str>>,
    pub(crate) changes: Vec<Change>,
}

/// Lines in the place of lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

impl<'a> Diff<'a> {
    /// What changes from `old` to `new`.
    #[must_use]
    pub fn between(old: Option<Text<'a>>, new: Option<Text<'a>>) -> Self {
        let lines = |text: Option<Text<'a>>| text.map(Text::lines);
        let (old, new) = (lines(old), lines(new));
        let mut numbers = Numbers::default();
        let mut numbered = |lines: &Option<Vec<&'a str>>| numbers.of(lines.as_deref().unwrap_or_default());
        let changes = changes(&numbered(&old), &numbered(&new));
        Self { old, new, changes }
    }

    /// Whether nothing changes, not even whether there is a file.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.old.is_some() == self.new.is_some()
    }

    /// How many lines are added.
    #[must_use]
    pub fn added(&self) -> usize {
        self.changes.iter().map(|change| change.new.len()).sum()
    }

    /// How many lines are removed.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.changes.iter().map(|change| change.old.len()).sum()
    }

    /// The changes as a unified patch of the file `name`, as git and patch take it; empty if there are none. A file that comes or goes
    /// has the permission bits `mode`, of which git keeps whether it is executable.
    #[must_use]
    pub fn to_patch(&self, name: &str, mode: u32) -> String {
        let mut patch = String::new();
        if self.is_empty() {
            return patch;
        }
        // Without this line git takes what follows for a part of the file before.
        let _infallible = writeln!(patch, "diff --git {} {}", quoted("a/", name), quoted("b/", name));
        let executable = if mode & 0o111 == 0 { "100644" } else { "100755" };
        if let Some(word) = match (&self.old, &self.new) {
            (None, _) => Some("new"),
            (_, None) => Some("deleted"),
            _ => None,
        } {
            let _infallible = writeln!(patch, "{word} file mode {executable}");
        }
        if self.changes.is_empty() {
            return patch;
        }
        // A tab ends a name with a space in it.
        let end = if name.contains(' ') && is_plain(name) { "\t" } else { "" };
        let named = |prefix: &str, is_there: bool| {
            if is_there { format!("{}{end}", quoted(prefix, name)) } else { "/dev/null".to_owned() }
        };
        let (old, new) = (named("a/", self.old.is_some()), named("b/", self.new.is_some()));
        let _infallible = writeln!(patch, "--- {old}\n+++ {new}");
        for hunk in self.hunks(CONTEXT) {
            let _infallible = writeln!(patch, "{}", hunk.header());
            for (sign, line) in self.lines(&hunk) {
                patch.push(sign);
                patch.push_str(line);
                if !line.ends_with('\n') {
                    patch.push_str("\n\\ No newline at end of file\n");
                }
            }
        }
        patch
    }

    /// The changes with `context` lines around each; those that touch are one.
    pub(crate) fn hunks(&self, context: usize) -> Vec<Grouped<'_>> {
        let mut hunks: Vec<Grouped<'_>> = Vec::new();
        let old_lines = self.old.as_ref().map_or(0, Vec::len);
        for (index, change) in self.changes.iter().enumerate() {
            let reach = context.saturating_mul(2);
            match hunks.last_mut() {
                Some(last) if change.old.start.saturating_sub(last.changed) <= reach => {
                    last.changes = self.changes.get(last.first..=index).unwrap_or_default();
                    last.changed = change.old.end;
                }
                _ => hunks.push(Grouped {
                    changes: self.changes.get(index..=index).unwrap_or_default(),
                    first: index,
                    changed: change.old.end,
                    before: context.min(change.old.start),
                    behind: 0,
                }),
            }
            if let Some(last) = hunks.last_mut() {
                last.behind = context.min(old_lines.saturating_sub(change.old.end));
            }
        }
        hunks
    }

    /// The lines of a hunk, each with its sign.
    pub(crate) fn lines(&self, hunk: &Grouped<'_>) -> Vec<(char, &'a str)> {
        let of = |lines: &Option<Vec<&'a str>>, range: Range<usize>, sign: char| {
            let lines = lines.as_deref().unwrap_or_default().get(range).unwrap_or_default();
            lines.iter().map(|line| (sign, *line)).collect::<Vec<_>>()
        };
        let (mut lines, mut at) = (Vec::new(), hunk.in_old().start);
        for change in hunk.changes {
            lines.extend(of(&self.old, at..change.old.start, ' '));
            lines.extend(of(&self.old, change.old.clone(), '-'));
            lines.extend(of(&self.new, change.new.clone(), '+'));
            at = change.old.end;
        }
        lines.extend(of(&self.old, at..hunk.in_old().end, ' '));
        lines
    }
}

/// Changes that stand together.
pub(crate) struct Grouped<'d> {
    changes: &'d [Change],
    /// Which is the first of them.
    first: usize,
    /// Where the last one ends in the old text.
    changed: usize,
    /// The lines of context before and behind.
    before: usize,
    behind: usize,
}

impl Grouped<'_> {
    fn in_old(&self) -> Range<usize> {
        self.range(|change| &change.old)
    }

    fn in_new(&self) -> Range<usize> {
        self.range(|change| &change.new)
    }

    fn range(&self, of: impl Fn(&Change) -> &Range<usize>) -> Range<usize> {
        let start = self.changes.first().map_or(0, |change| of(change).start);
        let end = self.changes.last().map_or(0, |change| of(change).end);
        start.saturating_sub(self.before)..end.saturating_add(self.behind)
    }

    pub(crate) fn header(&self) -> String {
        let range = |range: Range<usize>| match range.len() {
            // What is before it, as diff has it.
            0 => format!("{},0", range.start),
            1 => range.start.saturating_add(1).to_string(),
            count => format!("{},{count}", range.start.saturating_add(1)),
        };
        format!("@@ -{} +{} @@", range(self.in_old()), range(self.in_new()))
    }
}

/// Whether git writes a name as it is.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| !c.is_control() && !matches!(c, '"' | '\\'))
}

/// A file's name as git writes it: quoted where it holds what would end it.
fn quoted(prefix: &str, name: &str) -> String {
    if is_plain(name) {
        return format!("{prefix}{name}");
    }
    let mut quoted = format!("\"{prefix}");
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => {
                let _infallible = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}

/// The shortest list of changes from `old` to `new`, or nearly.
fn changes(old: &[u32], new: &[u32]) -> Vec<Change> {
    let front = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let (old, new) = (old.get(front..).unwrap_or_default(), new.get(front..).unwrap_or_default());
    let back = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let inner = |lines: &[u32]| lines.len().saturating_sub(back);
    let (ends, empty) = ((inner(old), inner(new)), (0, 0));
    let (old, new) = (old.get(..ends.0).unwrap_or_default(), new.get(..ends.1).unwrap_or_default());
    // Pairs of lines that stay, and behind them the ends.
    let has_both = !old.is_empty() && !new.is_empty();
    let mut stays = if has_both { snakes(old, new).unwrap_or_default() } else { Vec::new() };
    stays.push((ends.0, ends.1, 0));
    let mut changes: Vec<Change> = Vec::new();
    let mut at = empty;
    for (in_old, in_new, count) in stays {
        if (in_old, in_new) != at {
            let shifted = |from: usize, to: usize| front.saturating_add(from)..front.saturating_add(to);
            changes.push(Change { old: shifted(at.0, in_old), new: shifted(at.1, in_new) });
        }
        at = (in_old.saturating_add(count), in_new.saturating_add(count));
    }
    changes
}

/// The runs of equal lines of a shortest difference: where each begins in both, and how long it is; none if that took too long to find.
///
/// A row holds, for an edit distance, how far each diagonal gets in `old`. The diagonal at index `i` of row `d` is `2i − d`.
fn snakes(old: &[u32], new: &[u32]) -> Option<Vec<(usize, usize, usize)>> {
    let mut rows: Vec<Vec<u32>> = Vec::new();
    let mut steps = 0_usize;
    for distance in 0..=MOST_DISTANCE {
        let mut row = Vec::with_capacity(distance.saturating_add(1));
        for index in 0..=distance {
            let (begin, _) = begins(rows.last(), distance, index)?;
            let run = run(old, new, begin, distance, index)?;
            steps = steps.checked_add(run)?.checked_add(1)?;
            if steps > MOST_STEPS {
                return None;
            }
            let end = begin.checked_add(run)?;
            row.push(u32::try_from(end).ok()?);
            if (end, other(end, distance, index)?) == (old.len(), new.len()) {
                rows.push(row);
                return traced(&rows, index);
            }
        }
        rows.push(row);
    }
    None
}

/// Where the diagonal at `index` begins to be gone along at `distance`, and from which index of the row before that is reached. A line of
/// `new` is added where that gets further, else one of `old` removed.
fn begins(before: Option<&Vec<u32>>, distance: usize, index: usize) -> Option<(usize, usize)> {
    let Some(before) = before else { return Some((0, 0)) };
    let at = |index: usize| before.get(index).copied().and_then(|at| usize::try_from(at).ok());
    let (left, right) = (index.checked_sub(1).and_then(at), at(index).filter(|_| index < distance));
    match (left, right) {
        (Some(left), Some(right)) if left < right => Some((right, index)),
        (Some(left), _) => Some((left.checked_add(1)?, index.checked_sub(1)?)),
        (None, Some(right)) => Some((right, index)),
        (None, None) => None,
    }
}

/// The place in `new` that goes with `at` in `old` on this diagonal.
fn other(at: usize, distance: usize, index: usize) -> Option<usize> {
    at.checked_add(distance)?.checked_sub(index.checked_mul(2)?)
}

/// How many lines are equal from `at` in `old` on.
fn run(old: &[u32], new: &[u32], at: usize, distance: usize, index: usize) -> Option<usize> {
    let (old, new) = (old.get(at..).unwrap_or_default(), new.get(other(at, distance, index)?..).unwrap_or_default());
    Some(old.iter().zip(new).take_while(|(one, other)| one == other).count())
}

/// The runs on the way to the end, which the last row reaches at `index`.
fn traced(rows: &[Vec<u32>], mut index: usize) -> Option<Vec<(usize, usize, usize)>> {
    let mut runs = Vec::new();
    for distance in (0..rows.len()).rev() {
        let before = distance.checked_sub(1).and_then(|before| rows.get(before));
        let end = usize::try_from(*rows.get(distance)?.get(index)?).ok()?;
        let (begin, from) = begins(before, distance, index)?;
        if end > begin {
            runs.push((begin, other(begin, distance, index)?, end.checked_sub(begin)?));
        }
        index = from;
    }
    runs.reverse();
    Some(runs)
}
