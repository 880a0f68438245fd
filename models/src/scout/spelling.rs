//! Typing errors in the words that scout itself knows.

/// Whether `typed` is likely meant to be `word`: the same first letter, and one letter wrong, missing, added or swapped
/// with its neighbour; two in a long word.
pub(super) fn is_meant(typed: &str, word: &str) -> bool {
    if typed == word {
        return true;
    }
    let length = word.chars().count();
    if length < 4 || typed.chars().count() < 3 || typed.chars().next() != word.chars().next() {
        return false;
    }
    distance(typed, word) <= if length >= 7 { 2 } else { 1 }
}

/// The word of `words` that `typed` is or is likely meant to be: the nearest, and of those the first.
pub(super) fn meant<'a>(typed: &str, words: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    if let Some(word) = words.clone().find(|word| *word == typed) {
        return Some(word);
    }
    if !typed.chars().all(char::is_alphabetic) {
        return None;
    }
    words.filter(|word| is_meant(typed, word)).min_by_key(|word| distance(typed, word))
}

/// The edits between two words, a swap of neighbours being one (optimal string alignment).
fn distance(one: &str, two: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let two: Vec<char> = two.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=two.len()).collect();
    for (row, a) in one.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, b) in two.iter().enumerate() {
            let at = |line: &[usize], column: usize| line.get(column).copied().unwrap_or(usize::MAX / 2);
            let mut best =
                (at(&last, column) + usize::from(a != b)).min(at(&last, column + 1) + 1).min(at(&line, column) + 1);
            let swapped = row > 0 && column > 0 && one.get(row - 1) == Some(b) && two.get(column - 1) == Some(a);
            if swapped {
                best = best.min(at(&before, column - 1) + 1);
            }
            line.push(best);
        }
        before = std::mem::replace(&mut last, line);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{distance, is_meant};

    #[test]
    fn typing_errors_are_forgiven_and_other_words_are_not() {
        for (typed, word) in [
            ("serach", "search"),
            ("fnd", "find"),
            ("sumarize", "summarize"),
            ("raed", "read"),
            ("compre", "compare"),
            ("serrch", "search"),
        ] {
            assert!(is_meant(typed, word), "{typed}");
        }
        for (typed, word) in
            [("bind", "find"), ("fix", "find"), ("reed", "seed"), ("research", "search"), ("ls", "list")]
        {
            assert!(!is_meant(typed, word), "{typed}");
        }
    }

    #[test]
    fn a_swap_is_one_edit() {
        assert_eq!((distance("ab", "ba"), distance("", "abc"), distance("kitten", "sitting")), (1, 3, 3));
    }
}
