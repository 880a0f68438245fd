//! Parts of a file: "the first ten lines", "lines 3 to 7", "line 12".

use super::{
    clause::has,
    intent::Part,
    place::is_word,
    token::{Kind, Token},
};

const NUMBERS: [&str; 21] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];

const TENS: [(&str, u64); 9] = [
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("hundred", 100),
    ("dozen", 12),
];

/// How many lines are shown where a person says "a few".
const FEW: u64 = 5;

/// The part that `tokens` ask for.
pub(super) fn part(tokens: &[Token]) -> Option<Part> {
    let has_lines = has(tokens, &["line", "lines", "rows", "row"]);
    let at = |word: &[&str]| tokens.iter().position(|token| is_word(token, word));
    if let Some(at) = at(&["lines", "line", "rows", "row"]) {
        let after = tokens.get(at + 1..).unwrap_or_default();
        if let Some(part) = range(after) {
            return Some(part);
        }
    }
    let after = |at: usize| tokens.get(at + 1..).unwrap_or_default();
    let counted = |tokens: &[Token]| {
        if has(tokens, &["few", "couple"]) { Some(FEW) } else { tokens.iter().take(2).find_map(value) }
    };
    if let Some(at) = at(&["first", "top"]) {
        return match counted(after(at)) {
            Some(count) if has_lines => Some(Part::First(count)),
            None if has_lines => Some(Part::First(1)),
            _ => None,
        };
    }
    if let Some(at) = at(&["last", "bottom", "final"]) {
        return match counted(after(at)) {
            Some(count) if has_lines => Some(Part::Last(count)),
            None if has_lines => Some(Part::Last(1)),
            _ => None,
        };
    }
    if has(tokens, &["beginning", "start"]) {
        return Some(Part::First(10));
    }
    if has(tokens, &["end"]) && has(tokens, &["of"]) {
        return Some(Part::Last(10));
    }
    None
}

/// `10 to 20`, `10-20`, `7`.
fn range(tokens: &[Token]) -> Option<Part> {
    let first = tokens.first()?;
    if let Some((from, to)) = first.text.split_once(['-', '–']) {
        let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
        return Some(Part::Lines(from.max(1), to.max(from).max(1)));
    }
    let from = value(first)?.max(1);
    let joined =
        tokens.get(1).is_some_and(|token| is_word(token, &["to", "through", "until", "till", "and", "-", "–"]));
    let to = tokens.get(2).filter(|_| joined).and_then(value).unwrap_or(from);
    Some(Part::Lines(from, to.max(from)))
}

/// The first number among `tokens`, `-n 5` and `-5` included.
pub(super) fn number(tokens: &[Token]) -> Option<u64> {
    tokens.iter().find_map(|token| {
        token.text.trim_start_matches("-n").trim_start_matches('-').parse().ok().or_else(|| value(token))
    })
}

fn value(token: &Token) -> Option<u64> {
    if token.kind != Kind::Word {
        return None;
    }
    if let Ok(value) = token.text.parse() {
        return Some(value);
    }
    let small = NUMBERS.iter().position(|word| *word == token.lower);
    small.map(|at| at as u64).or_else(|| TENS.iter().find(|(word, _)| *word == token.lower).map(|(_, value)| *value))
}
