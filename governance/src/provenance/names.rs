//! Short words that a text writes as names.

use super::text::folded;

/// A longer word needs no such sign to be found.
const SHORT: std::ops::RangeInclusive<usize> = 2..=3;

/// The short words of a text that begin with a capital letter and go on with small ones, and do so where no sentence
/// begins: Bob, Eve.
pub(super) fn short_names(text: &str) -> Vec<Box<str>> {
    let is_short = |word: &str| SHORT.contains(&word.chars().count()) && word.chars().skip(1).all(char::is_lowercase);
    capital(text).filter(|word| is_short(word)).map(|word| folded(word).into()).collect()
}

/// The longer ones, also the parts of those with a sign in them.
pub(super) fn long_names(text: &str) -> Vec<Box<str>> {
    let parts = capital(text).flat_map(|word| word.split(|c: char| !c.is_alphanumeric()));
    parts.filter(|word| word.chars().count() > *SHORT.end()).map(|word| folded(word).into()).collect()
}

/// The words with a capital letter where no sentence begins.
fn capital(text: &str) -> impl Iterator<Item = &str> {
    let mut begins = true;
    text.split_whitespace().filter_map(move |part| {
        let word = part.trim_matches(|c: char| !c.is_alphanumeric());
        let is_name = !begins && word.starts_with(char::is_uppercase);
        begins = part.ends_with(['.', '!', '?', ':', '…']) || part.starts_with(['-', '•', '*']);
        is_name.then_some(word)
    })
}
