//! The clauses of a text.

use std::borrow::Cow;

use super::text::{Word, words};

/// Begin a clause that is set against the one before.
const BUT: [&str; 7] = ["but", "aber", "sondern", "mais", "pero", "maar", "ale"];
/// Stand behind the Italian one; in French it is another word: my table.
const BEHIND_MA: [&str; 26] = [
    "a", "ad", "al", "allo", "alla", "ai", "il", "lo", "la", "i", "gli", "le", "un", "una", "non", "solo", "per", "di",
    "da", "in", "con", "anche", "nel", "entro", "dal", "è",
];

/// Begin a clause that says what is meant instead.
const INSTEAD: [&str; 13] =
    ["just", "only", "but", "nur", "sondern", "mais", "solo", "soltanto", "sólo", "só", "maar", "alleen", "tylko"];

/// A clause, by its words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Clause {
    /// Its first word.
    pub(super) first: usize,
    /// The word behind its last.
    pub(super) behind: usize,
    /// Whether a sentence begins with it.
    pub(super) opens: bool,
}

/// The words of a folded text and its clauses, in order. No clause is empty.
pub(super) struct Clauses<'a> {
    text: &'a str,
    pub(super) words: Vec<Word<'a>>,
    pub(super) all: Vec<Clause>,
}

impl<'a> Clauses<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let mut clauses = Self { text, words: words(text).collect(), all: Vec::new() };
        let (mut first, mut opens) = (0, true);
        for at in 0..clauses.words.len() {
            if clauses.ends(at) {
                let behind = at.saturating_add(1);
                clauses.all.push(Clause { first, behind, opens });
                (first, opens) = (behind, clauses.between(at).contains(['.', '!', '?', '。', '！', '？']));
            }
        }
        clauses
    }

    /// Whether a clause ends with the word `at`.
    fn ends(&self, at: usize) -> bool {
        let next = self.words.get(at.saturating_add(1));
        next.is_none_or(|next| {
            self.between(at).contains([',', ';', '.', '!', '?', ':', '(', '—', '。', '、', '，', '،', '؛'])
                || BUT.contains(&next.core)
                || (next.core == "ma" && self.word(at.saturating_add(2)).is_none_or(|word| BEHIND_MA.contains(&word)))
        })
    }

    /// Whether a clause goes on with what is meant instead.
    pub(super) fn says_instead(&self, next: Clause) -> bool {
        !next.opens && self.word(next.first).is_some_and(|word| INSTEAD.contains(&word))
    }

    fn word(&self, at: usize) -> Option<&'a str> {
        self.words.get(at).map(|word| word.core)
    }

    /// What stands between the word `at` and the next.
    pub(super) fn between(&self, at: usize) -> &'a str {
        let next = self.words.get(at.saturating_add(1)).map_or(self.text.len(), |next| next.at);
        self.text.get(self.end(at)..next).unwrap_or_default()
    }

    /// The byte behind the word `at`.
    pub(super) fn end(&self, at: usize) -> usize {
        self.words.get(at).map_or(self.text.len(), |word| word.at.saturating_add(word.core.len()))
    }

    /// The bytes from the word `first` to the one before `behind`.
    pub(super) fn bytes(&self, first: usize, behind: usize) -> (usize, usize) {
        let start = self.words.get(first).map_or(self.text.len(), |word| word.at);
        (start, behind.checked_sub(1).map_or(start, |last| self.end(last)).max(start))
    }

    /// The bytes of a clause but for some words.
    pub(super) fn without(&self, clause: Clause, words: &[&str]) -> Vec<(usize, usize)> {
        let all = self.words.get(clause.first..clause.behind).unwrap_or_default();
        let mut at = clause.first;
        let runs = all.split(|word| words.contains(&word.core)).map(|run| {
            let first = at;
            at = at.saturating_add(run.len()).saturating_add(1);
            self.bytes(first, first.saturating_add(run.len()))
        });
        runs.filter(|(from, to)| from < to).collect()
    }

    /// The words of a clause, with plain apostrophes.
    pub(super) fn plain(&self, clause: Clause) -> Vec<Cow<'a, str>> {
        let words = self.words.get(clause.first..clause.behind).unwrap_or_default();
        words.iter().map(|word| plain(word.core)).collect()
    }
}

/// A word with a plain apostrophe.
pub(super) fn plain(word: &str) -> Cow<'_, str> {
    if word.contains('’') { Cow::Owned(word.replace('’', "'")) } else { Cow::Borrowed(word) }
}
