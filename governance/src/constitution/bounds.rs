//! How much of a constitution reaches Cedar's parser.
//!
//! The parser, the validator, the evaluator and the destructors of what they make call themselves once for each bracket and each
//! operator that stands within another. A stack that ends ends the program; so the text is measured before any of them sees it.

use super::BadConstitution;

/// The longest text, in bytes.
const MOST_BYTES: usize = 256 * 1024;
/// How many brackets may stand within one another.
const MOST_DEPTH: usize = 32;
/// How many operators and brackets one policy may have: each may make its expression deeper by one.
const MOST_OPERATORS: usize = 256;
/// The operators that are words.
const WORDS: [&str; 7] = ["if", "in", "has", "is", "like", "when", "unless"];

/// Holds `text` against the bounds.
pub(super) fn check(text: &str) -> Result<(), BadConstitution> {
    if text.len() > MOST_BYTES {
        return Err(BadConstitution::Bounds(format!("{} bytes, and {MOST_BYTES} at most", text.len())));
    }
    let (mut depth, mut operators) = (0_usize, 0_usize);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = token(rest, c);
        let (token, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        rest = behind;
        match c {
            '(' | '[' | '{' => {
                depth = depth.saturating_add(1);
                // What stands behind something, as in `a["b"]["c"]`, goes as deep.
                operators = operators.saturating_add(1);
            }
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => operators = 0,
            '&' | '|' | '!' | '=' | '<' | '>' | '+' | '-' | '*' | '.' => operators = operators.saturating_add(1),
            _ if WORDS.contains(&token) => operators = operators.saturating_add(1),
            _ => {}
        }
        if depth > MOST_DEPTH {
            let why = format!("brackets within brackets, and {MOST_DEPTH} deep at most");
            return Err(BadConstitution::Bounds(why));
        }
        if operators > MOST_OPERATORS {
            let why = format!("a policy with more than {MOST_OPERATORS} operators; make several policies of it");
            return Err(BadConstitution::Bounds(why));
        }
    }
    Ok(())
}

/// How many bytes the token has that begins `text` with `c`: a string, a comment or a word is one.
fn token(text: &str, c: char) -> usize {
    let until = |end: Option<usize>| end.unwrap_or(text.len());
    match c {
        '"' => string(text),
        '/' if text.starts_with("//") => until(text.find(['\n', '\r'])),
        _ if is_word(c) => until(text.find(|c| !is_word(c))),
        '&' | '|' | '=' | '<' | '>' | '!' => {
            let double = ["&&", "||", "==", "<=", ">=", "!="].iter().any(|double| text.starts_with(double));
            if double { 2 } else { 1 }
        }
        _ => c.len_utf8(),
    }
}

/// As Cedar has it: from one quotation mark to the next that no backslash stands before.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at.saturating_add(1),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
