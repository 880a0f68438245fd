//! The difference of two texts, line by line.

/// A line of the one text, of the other, or of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line<'a> {
    Both(&'a str),
    First(&'a str),
    Second(&'a str),
}

/// The most cells of the table: two texts of 2,000 lines that share nothing at either end.
const MOST_CELLS: usize = 4_000_000;

/// A shortest list of lines to take out and put in; nothing if the texts are too long to tell.
pub(super) fn difference<'a>(first: &'a str, second: &'a str) -> Option<Vec<Line<'a>>> {
    let (first, second): (Vec<&str>, Vec<&str>) = (first.lines().collect(), second.lines().collect());
    let head = first.iter().zip(&second).take_while(|(one, two)| one == two).count();
    let rest = (first.get(head..)?, second.get(head..)?);
    let tail = rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(|(one, two)| one == two).count();
    let (one, same) = rest.0.split_at_checked(rest.0.len() - tail)?;
    let (two, _) = rest.1.split_at_checked(rest.1.len() - tail)?;
    let mut lines: Vec<Line<'a>> = first.iter().take(head).copied().map(Line::Both).collect();
    lines.extend(middle(one, two)?);
    lines.extend(same.iter().copied().map(Line::Both));
    Some(lines)
}

/// By the longest common subsequence.
fn middle<'a>(one: &[&'a str], two: &[&'a str]) -> Option<Vec<Line<'a>>> {
    let width = two.len() + 1;
    if one.len().checked_mul(width)? > MOST_CELLS {
        return None;
    }
    let mut table = vec![0_u32; (one.len() + 1) * width];
    let at = |table: &[u32], row: usize, column: usize| table.get(row * width + column).copied().unwrap_or(0);
    for (row, a) in one.iter().enumerate().rev() {
        for (column, b) in two.iter().enumerate().rev() {
            let best = if a == b {
                at(&table, row + 1, column + 1) + 1
            } else {
                at(&table, row + 1, column).max(at(&table, row, column + 1))
            };
            if let Some(cell) = table.get_mut(row * width + column) {
                *cell = best;
            }
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut lines = Vec::new();
    loop {
        match (one.get(row), two.get(column)) {
            (None, None) => return Some(lines),
            (Some(a), Some(b)) if a == b => {
                lines.push(Line::Both(a));
                row += 1;
                column += 1;
            }
            (Some(a), b) if b.is_none() || at(&table, row + 1, column) >= at(&table, row, column + 1) => {
                lines.push(Line::First(a));
                row += 1;
            }
            (_, Some(b)) => {
                lines.push(Line::Second(b));
                column += 1;
            }
            (Some(a), None) => {
                lines.push(Line::First(a));
                row += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, difference};

    #[test]
    fn lines_are_taken_out_and_put_in() {
        assert_eq!(
            difference("a\nb\nc\nd", "a\nx\nc\nd\ne").unwrap(),
            [Line::Both("a"), Line::First("b"), Line::Second("x"), Line::Both("c"), Line::Both("d"), Line::Second("e")]
        );
        assert!(difference("", "").unwrap().is_empty());
        assert_eq!(difference("a", "").unwrap(), [Line::First("a")]);
        assert_eq!(difference("", "a").unwrap(), [Line::Second("a")]);
    }

    #[test]
    fn texts_too_long_to_tell_say_so() {
        let long = |word: &str| (0..3000).map(|at| format!("{word}{at}\n")).collect::<String>();
        assert_eq!(difference(&long("a"), &long("b")), None);
        assert!(difference(&long("a"), &long("a")).is_some());
    }
}
