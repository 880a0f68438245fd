//! Short words that a text writes as names.

use super::text::folded;

/// A longer word needs no such sign to be found.
const SHORT: std::ops::RangeInclusive<usize> = 2..=3;

/// The short words of a text that begin with a capital letter and go on with small ones, and do so where no sentence
/// begins: Bob, Eve.
pub(super) fn short_names(text: &str) -> Vec<Box<str>> {
    let mut names = Vec::new();
    let mut begins = true;
    for part in text.split_whitespace() {
        let word = part.trim_matches(|c: char| !c.is_alphanumeric());
        let mut letters = word.chars();
        let capital = letters.next().is_some_and(char::is_uppercase);
        let name = capital && letters.all(char::is_lowercase) && SHORT.contains(&word.chars().count());
        if name && !begins {
            names.push(folded(word).into());
        }
        begins = part.ends_with(['.', '!', '?', ':', '…']) || part.starts_with(['-', '•', '*']);
    }
    names
}
