//! What a text says is not meant.

use super::{
    behind,
    clauses::{Clause, Clauses},
    phrases::{EXCEPT, EXCEPT_TWO, LEAVE, LEFT, NO_DENIAL},
    roles,
};

/// What stands before what is not meant, in scripts that set no spaces between words.
const BEFORE: [&str; 19] = [
    "不要", "别", "別", "勿", "不用", "不必", "不发", "不能", "不可", "不得", "不是", "除了", "除去", "而非", "禁止",
    "不想", "不许", "不給", "不给",
];
/// And what stands behind it.
const BEHIND: [&str; 17] = [
    "ないで",
    "なくて",
    "ません",
    "ではなく",
    "じゃなく",
    "以外",
    "を除",
    "抜きで",
    "のほかに",
    "せずに",
    "送らず",
    "しないこと",
    "ないように",
    "送るな",
    "るな",
    "禁止",
    "の代わりに",
];
/// With such a sign beside it, it is no denial: do not forget, no later than, must.
const NONE: [&str; 12] = [
    "别忘",
    "別忘",
    "不要忘",
    "勿忘",
    "忘れない",
    "忘れずに",
    "不用担心",
    "不要迟于",
    "别的",
    "特别",
    "なければなりません",
    "分别",
];
/// End a clause in such a script.
const ENDS: [char; 13] = ['，', '。', '、', '；', '！', '？', '：', ',', '.', '!', '?', ';', '\n'];

/// What a text says is not meant: from a word such as `not` or `except` to the end of the clause, and what stands before a
/// word that says so.
pub(super) fn excluded(text: &str) -> Vec<(usize, usize)> {
    let mut found = spaced(text);
    found.extend(behind::denied(text));
    found.extend(roles::read(text));
    if !text.is_ascii() {
        found.extend(unspaced(text));
    }
    found
}

/// The same in scripts without spaces, which say it before what is not meant or behind it.
fn unspaced(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut from = 0_usize;
    while let Some(rest) = text.get(from..).filter(|rest| !rest.is_empty()) {
        let end = clause_end(rest);
        let clause = rest.get(..end).unwrap_or_default();
        let plain = NONE.iter().fold(clause.to_owned(), |text, none| text.replace(none, &" ".repeat(none.len())));
        let before = BEFORE.iter().filter_map(|sign| plain.find(sign)).min();
        if BEHIND.iter().any(|sign| plain.contains(sign)) {
            found.push((from, from.saturating_add(end)));
        } else if let Some(at) = before {
            // What is meant instead follows in the same clause.
            let instead = plain.get(at..).and_then(|rest| rest.find("而是")).map_or(end, |len| at.saturating_add(len));
            found.push((from.saturating_add(at), from.saturating_add(instead)));
        }
        let next = rest.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        from = from.saturating_add(end).saturating_add(next);
    }
    found
}

/// Where a clause ends. A point within an address or a number ends none.
fn clause_end(text: &str) -> usize {
    let ends = |(at, c): &(usize, char)| {
        let inner = c.is_ascii()
            && text.get(at.saturating_add(1)..).is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
        ENDS.contains(c) && !inner
    };
    text.char_indices().find(ends).map_or(text.len(), |(at, _)| at)
}

/// From a word such as `not` or `except` to the end of the clause.
fn spaced(text: &str) -> Vec<(usize, usize)> {
    let clauses = Clauses::of(text);
    let mut found: Vec<(usize, usize)> = Vec::new();
    for clause in &clauses.all {
        for at in clause.first..clause.behind {
            if begins(&clauses, *clause, at) {
                found.push(clauses.bytes(at, clause.behind));
                break;
            }
        }
    }
    found
}

/// Whether what is not meant begins at a word of a clause.
fn begins(clauses: &Clauses<'_>, clause: Clause, at: usize) -> bool {
    let near = |at: Option<usize>| at.and_then(|at| clauses.words.get(at)).map_or("", |word| word.core);
    let (word, last) = (near(Some(at)), near(clause.behind.checked_sub(1)));
    let (before, next) = (near(at.checked_sub(1)), near(at.checked_add(1)));
    let rest = || clauses.words.get(at..clause.behind).unwrap_or_default().iter();
    let leaves = LEAVE.contains(&word)
        && (rest().any(|word| word.core == "as") || (LEFT.contains(&last) && before != "check" && next != last));
    let other = |word: &str| NO_DENIAL.iter().any(|part| word.contains(part));
    let denies = || EXCEPT.contains(&word) && !other(before) && !other(next);
    leaves || EXCEPT_TWO.contains(&(word, next)) || denies()
}
