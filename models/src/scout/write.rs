//! "Write …": which file, and what goes into it.

use super::{
    clause::{Clause, has},
    intent::{Content, File, Intent, Search, View},
    needle,
    place::{self, is_word, take_scope},
    token::{Kind, Stop, Token},
    understand::content_of,
};

/// Words between a file and the text that goes into it.
const MARKERS: [&str; 26] = [
    "with",
    "the",
    "a",
    "content",
    "contents",
    "text",
    "containing",
    "that",
    "says",
    "say",
    "saying",
    "reading",
    "reads",
    "which",
    "contains",
    "of",
    "in",
    "it",
    "line",
    "following",
    "body",
    "and",
    "as",
    "word",
    "words",
    "its",
];

const INTO: [&str; 7] = ["to", "into", "in", "as", "inside", "called", "named"];

/// What is to be written, and where. `earlier` is what "them" may mean.
pub(super) fn intent(clause: &Clause, request: &str, earlier: &[Intent]) -> Option<Intent> {
    let words = clause.object();
    let Some(at) = target(words) else {
        let says_file = has(words, &["file"]) || words.iter().any(|token| token.kind == Kind::Quoted);
        return says_file.then_some(Intent::Missing("Into which file, and with what content?"));
    };
    let target = words.get(at)?;
    let path = place::clean(&target.text);
    let before = words.get(..at).unwrap_or_default();
    let after = words.get(at + 1..).unwrap_or_default();
    let content = quoted(before, after)
        .map(Content::Text)
        .or_else(|| following(target, after, request).map(Content::Text))
        .or_else(|| preceding(before, request, earlier));
    Some(match content {
        Some(content) => Intent::Write { path, content },
        None if has(words, &["empty", "blank"]) => Intent::Write { path, content: Content::Text(String::new()) },
        None => Intent::Missing("What shall I write into it? Say, for instance: write \"hello\" to notes.txt."),
    })
}

/// "copy a.txt to b.txt".
pub(super) fn copy(words: &[Token]) -> Option<Intent> {
    match place::paths(words).as_slice() {
        [from, to] => Some(Intent::Write { path: to.clone(), content: Content::Copy(from.clone()) }),
        _ => Some(Intent::Missing("Which file shall I copy, and to where?")),
    }
}

/// Which of `words` names the file: the last path after "to" or "called", else any path, else a name after "to".
fn target(words: &[Token]) -> Option<usize> {
    let introduced = |at: usize| {
        let before = words.get(..at).unwrap_or_default();
        let last = before.iter().rev().find(|token| !is_word(token, &["a", "the", "file", "new", "my", "our", "this"]));
        last.is_some_and(|last| is_word(last, &INTO)) || before.last().is_some_and(|last| is_word(last, &["file"]))
    };
    let path = |at: &usize| words.get(*at).is_some_and(|token| place::path(token).is_some());
    let name = |at: &usize| {
        let plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
        let to = at
            .checked_sub(1)
            .and_then(|at| words.get(at))
            .is_some_and(|before| is_word(before, &["to", "into", "called", "named"]));
        to && words
            .get(*at)
            .is_some_and(|token| token.kind == Kind::Word && token.text.chars().all(plain) && !needle::is_filler(token))
    };
    let all = 0..words.len();
    all.clone()
        .rev()
        .find(|at| path(at) && introduced(*at))
        .or_else(|| all.clone().find(|at| path(at)))
        .or_else(|| all.rev().find(name))
}

fn quoted(before: &[Token], after: &[Token]) -> Option<String> {
    after.iter().chain(before).find(|token| token.kind == Kind::Quoted).map(|token| token.text.clone())
}

/// The text after the file: after a colon, or after "with the content".
fn following(target: &Token, after: &[Token], request: &str) -> Option<String> {
    if target.stop == Stop::Colon {
        return raw(request, target.end, after.last()?.end);
    }
    let markers = after.iter().take_while(|token| token.kind == Kind::Word && MARKERS.contains(&token.lower.as_str()));
    let mut count = 0;
    for marker in markers {
        count += 1;
        if marker.stop == Stop::Colon {
            break;
        }
    }
    let first = after.get(count).filter(|_| count > 0)?;
    raw(request, first.start, after.last()?.end)
}

/// What stands between the verb and "to FILE": a search, a file, or the very text.
fn preceding(before: &[Token], request: &str, earlier: &[Intent]) -> Option<Content> {
    let end = before.iter().rposition(|token| is_word(token, &INTO)).unwrap_or(0);
    let words = before.get(..end).unwrap_or_default();
    let (first, last) = (words.first()?, words.last()?);
    let points = [
        "them",
        "it",
        "those",
        "these",
        "that",
        "this",
        "results",
        "result",
        "findings",
        "list",
        "summary",
        "output",
        "report",
        "all",
        "everything",
        "the",
        "of",
        "matches",
        "lines",
        "down",
    ];
    if words.iter().all(|token| is_word(token, &points)) {
        return earlier.iter().rev().find_map(content_of);
    }
    let is_searched = has(
        words,
        &[
            "list",
            "lines",
            "mentions",
            "results",
            "occurrences",
            "matches",
            "usages",
            "all",
            "every",
            "summary",
            "report",
            "my",
        ],
    );
    let marks = needle::marks(words).filter(|_| words.len() > 1 || first.lower.ends_with('s'));
    if marks.is_some() || is_searched {
        let (scope, rest) = take_scope(words);
        let needle = marks.or_else(|| needle::needles(&rest).into_iter().next())?;
        return Some(Content::Found(Search { needle, scope, view: View::Lines }));
    }
    if has(words, &["file", "new"]) || words.iter().all(needle::is_filler) {
        return None;
    }
    if let Some(File::Path(path)) =
        place::file(words).filter(|_| has(words, &["contents", "content", "copy"]) || words.len() == 1)
    {
        return Some(Content::Copy(path));
    }
    // "put the text done into x": what is said of the text is no part of it.
    let skipped = words
        .iter()
        .take_while(|token| is_word(token, &["the", "a", "text", "word", "words", "line", "down", "me"]))
        .count();
    let first = words.get(skipped).unwrap_or(first);
    raw(request, first.start, last.end).map(Content::Text)
}

/// The request from `start` to `end`, as it was typed.
fn raw(request: &str, start: usize, end: usize) -> Option<String> {
    request.get(start..end).map(|text| text.trim_start_matches(':').trim().to_owned()).filter(|text| !text.is_empty())
}
