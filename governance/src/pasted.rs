//! Where what a person typed ends, and pasting begins.
//!
//! What was typed steers an agent, and what was pasted into it was written by others. No word of a text says which is which, so its form
//! does: brackets that a terminal puts around a paste, fences, and a length that no person types. Where that cuts off more than was
//! pasted, a person is asked once more than needed; it never cuts off less than the rules say.

use std::ops::Range;

use ephor_base::{Part, PartKind};

/// The most lines of a message that count as typed.
pub const MAX_LINES: usize = 20;
/// The most characters of a message that count as typed.
pub const MAX_CHARACTERS: usize = 2000;

/// The bracket that a terminal puts before a paste, and the one behind it (xterm, "Bracketed Paste Mode"), each also with the one
/// character that stands for ESC [ (ECMA-48, 8.3.16).
const OPENS: [&str; 2] = ["\u{1b}[200~", "\u{9b}200~"];
const CLOSES: [&str; 2] = ["\u{1b}[201~", "\u{9b}201~"];

/// The shortest fence (CommonMark, 4.5). One counts wherever it stands in its line.
const FENCE: usize = 3;

/// The parts of a message, with what of its typed parts is pasted in parts of their own. In order they say the same as before, and
/// what is divided once more is divided no further.
#[must_use]
pub fn divided(parts: Vec<Part>) -> Vec<Part> {
    let cut: Vec<Part> = parts.iter().flat_map(pieces).collect();
    let typed = || cut.iter().filter(|part| part.kind == PartKind::Typed).map(|part| part.text.as_str());
    let lines: usize = typed().map(lines_of).sum();
    let characters: usize = typed().map(|text| text.chars().count()).sum();
    if lines <= MAX_LINES && characters <= MAX_CHARACTERS {
        return cut;
    }
    let kind = |kind| if kind == PartKind::Typed { PartKind::Pasted } else { kind };
    parts.into_iter().map(|part| Part { kind: kind(part.kind), text: part.text }).collect()
}

/// What stands for a pasted text where the words of a person alone are shown.
#[must_use]
pub fn in_its_place(text: &str) -> String {
    format!("[pasted text, {} characters, not shown]", grouped(text.chars().count()))
}

/// A number as people read it: `3,120`.
#[must_use]
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len().saturating_sub(at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn pieces(part: &Part) -> Vec<Part> {
    if part.kind != PartKind::Typed {
        return vec![part.clone()];
    }
    let (text, mut found, mut done) = (part.text.as_str(), Vec::new(), 0);
    let mut take = |range: Range<usize>, kind| {
        if let Some(text) = text.get(range).filter(|text| !text.is_empty()) {
            found.push(Part { kind, text: text.to_owned() });
        }
    };
    for pasted in ranges(text) {
        take(done..pasted.start, PartKind::Typed);
        done = pasted.end;
        take(pasted, PartKind::Pasted);
    }
    take(done..text.len(), PartKind::Typed);
    if found.is_empty() { vec![part.clone()] } else { found }
}

/// What of a text is pasted: at most two pieces, in order, with something between them.
fn ranges(text: &str) -> Vec<Range<usize>> {
    let bracketed = bracketed(text);
    let fenced = fenced(text, bracketed.as_ref());
    match (bracketed, fenced) {
        (Some(one), Some(other)) if one.end < other.start => vec![one, other],
        (Some(one), Some(other)) if other.end < one.start => vec![other, one],
        (Some(one), Some(other)) => {
            let both = one.start.min(other.start)..one.end.max(other.end);
            vec![both]
        }
        (one, other) => one.or(other).into_iter().collect(),
    }
}

/// From the first bracket of a paste to the last. What was pasted may hold brackets too, so those between count for nothing. Where the
/// first closes, the paste began before this text; where the last opens, it ends behind it.
fn bracketed(text: &str) -> Option<Range<usize>> {
    let all = |marks: [&'static str; 2]| {
        marks.into_iter().flat_map(|mark| text.match_indices(mark)).map(|(at, mark)| at..at.saturating_add(mark.len()))
    };
    let at = |found: &Range<usize>| found.start;
    let (opens, closes) = (all(OPENS).map(|found| at(&found)).min(), all(CLOSES).min_by_key(at));
    let (last_opens, last_closes) = (all(OPENS).max_by_key(at), all(CLOSES).max_by_key(at));
    let from = match (opens, &closes) {
        (Some(opens), Some(closes)) if closes.start < opens => 0,
        (Some(opens), _) => opens,
        (None, Some(_)) => 0,
        (None, None) => return None,
    };
    let to = match (last_opens, last_closes) {
        (Some(opens), Some(closes)) if closes.start > opens.start => closes.end,
        (None, Some(closes)) => closes.end,
        _ => text.len(),
    };
    Some(from..to)
}

/// From the first fence to the end of the line of the last; to the end of the text, if their number is odd. Those in a paste that
/// is known for one are of it.
fn fenced(text: &str, paste: Option<&Range<usize>>) -> Option<Range<usize>> {
    let around = paste.map_or(text.len()..text.len(), Range::clone);
    let behind = fences(text.get(around.end..).unwrap_or_default()).into_iter();
    let moved = behind.map(|at| at.start.saturating_add(around.end)..at.end.saturating_add(around.end));
    let fences: Vec<_> = fences(text.get(..around.start).unwrap_or_default()).into_iter().chain(moved).collect();
    let (first, last) = (fences.first()?, fences.last()?);
    let rest = || text.get(last.end..).unwrap_or_default();
    let line = || rest().find(ends_line).unwrap_or(rest().len());
    let to = if fences.len().is_multiple_of(2) { last.end.saturating_add(line()) } else { text.len() };
    Some(first.start..to)
}

/// The runs of three or more of one of the characters that fences are made of.
fn fences(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut run: Option<(char, Range<usize>)> = None;
    for (at, next) in text.char_indices() {
        let end = at.saturating_add(next.len_utf8());
        match &mut run {
            Some((of, range)) if *of == next => range.end = end,
            _ => {
                found.extend(run.take().map(|(_, range)| range).filter(|range| range.len() >= FENCE));
                run = matches!(next, '`' | '~').then_some((next, at..end));
            }
        }
    }
    found.extend(run.map(|(_, range)| range).filter(|range| range.len() >= FENCE));
    found
}

/// Whether a line ends with this (UAX #14, mandatory breaks).
const fn ends_line(character: char) -> bool {
    matches!(character, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// How many lines a text has; CR LF ends one.
fn lines_of(text: &str) -> usize {
    let pairs = text.matches("\r\n").count();
    let ends = text.chars().filter(|character| ends_line(*character)).count().saturating_sub(pairs);
    ends.saturating_add(usize::from(!text.is_empty() && !text.ends_with(ends_line)))
}
