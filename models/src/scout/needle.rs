//! What a search looks for, from the words that say it.

use super::{
    intent::Needle,
    place::is_word,
    token::{Kind, Token},
};

/// Words around what is searched for that are no part of it.
const FILLERS: &[&str] = &[
    "how",
    "many",
    "the",
    "a",
    "an",
    "all",
    "every",
    "each",
    "any",
    "some",
    "my",
    "our",
    "your",
    "this",
    "these",
    "those",
    "of",
    "for",
    "to",
    "me",
    "us",
    "it",
    "them",
    "that",
    "there",
    "here",
    "occurrence",
    "occurrences",
    "mention",
    "mentions",
    "instance",
    "instances",
    "usage",
    "usages",
    "use",
    "uses",
    "used",
    "reference",
    "references",
    "place",
    "places",
    "line",
    "lines",
    "match",
    "matches",
    "example",
    "examples",
    "with",
    "containing",
    "matching",
    "contain",
    "contains",
    "about",
    "word",
    "words",
    "phrase",
    "string",
    "text",
    "term",
    "pattern",
    "regex",
    "regexp",
    "expression",
    "keyword",
    "is",
    "are",
    "was",
    "were",
    "where",
    "which",
    "what",
    "who",
    "do",
    "does",
    "did",
    "we",
    "you",
    "i",
    "have",
    "has",
    "anywhere",
    "everywhere",
    "somewhere",
    "mentioned",
    "mentioning",
    "appear",
    "appears",
    "appearing",
    "occur",
    "occurs",
    "occurring",
    "called",
    "referenced",
    "left",
    "still",
    "please",
    "up",
    "down",
    "out",
    "everything",
    "anything",
    "something",
    "exact",
    "literal",
    "file",
    "files",
    "found",
    "calls",
    "call",
    "calling",
    "callers",
    "caller",
    "using",
    "say",
    "says",
    "saying",
    "times",
    "time",
    "number",
    "often",
    "be",
    "can",
    "named",
    "entries",
    "entry",
    "items",
    "item",
    "comment",
    "comments",
    "markers",
    "marker",
    "variable",
    "function",
    "method",
    "constant",
    "type",
    "symbol",
    "identifier",
    "macro",
    "struct",
    "class",
    "report",
    "list",
    "summary",
    "overview",
    "in",
    "at",
    "on",
    "across",
    "hits",
    "hit",
    "results",
    "result",
    "included",
    "present",
    "first",
    "also",
    "so",
    "name",
    "overall",
    "currently",
    "remaining",
    "open",
    "outstanding",
    "related",
];

/// Marks that people leave in code, and how they are called.
const MARKS: &[(&str, &str)] = &[
    ("todo", "TODO"),
    ("todos", "TODO"),
    ("todo's", "TODO"),
    ("to-do", "TODO"),
    ("to-dos", "TODO"),
    ("fixme", "FIXME"),
    ("fixmes", "FIXME"),
    ("fix-me", "FIXME"),
    ("fix-mes", "FIXME"),
    ("xxx", "XXX"),
    ("hacks", "HACK"),
];

/// The mark that `token` means: the word TODO, not a list of things to do.
pub(super) fn mark(token: &Token) -> Option<&'static str> {
    if token.kind != Kind::Word {
        return None;
    }
    if token.text == "HACK" {
        return Some("HACK");
    }
    let known = MARKS.iter().find(|(word, _)| *word == token.lower).map(|(_, mark)| *mark);
    // A swap of letters, as in "toods": no other word is that near.
    known.or_else(|| {
        let mut letters: Vec<char> = token.lower.chars().collect();
        letters.sort_unstable();
        let sorted: String = letters.into_iter().collect();
        (token.lower.starts_with('t') && (sorted == "doost")).then_some("TODO")
    })
}

/// The needle for the marks among `tokens`, if there are any: one search for all of them.
pub(super) fn marks(tokens: &[Token]) -> Option<Needle> {
    let mut found: Vec<&str> = Vec::new();
    for mark in tokens.iter().filter_map(mark) {
        if !found.contains(&mark) {
            found.push(mark);
        }
    }
    let to_do =
        tokens.windows(2).any(|pair| matches!(pair, [to, two] if is_word(to, &["to"]) && is_word(two, &["do", "dos"])));
    if to_do && !found.contains(&"TODO") {
        found.push("TODO");
    }
    let pattern = match found.as_slice() {
        [] => return None,
        [one] => format!(r"\b{one}\b"),
        many => format!(r"\b(?:{})\b", many.join("|")),
    };
    Some(Needle { pattern, words: found.iter().map(|mark| format!("`{mark}`")).collect::<Vec<_>>().join(" or ") })
}

/// What to search for, from what is left of a clause once verb and place are taken out. Several for "a and b".
pub(super) fn needles(tokens: &[Token]) -> Vec<Needle> {
    if let Some(needle) = marks(tokens) {
        return vec![needle];
    }
    let exact: Vec<Needle> = tokens.iter().filter_map(exact).collect();
    if !exact.is_empty() {
        return exact;
    }
    let groups = tokens.split(|token| is_word(token, &["and", "or", "nor", "plus"]));
    let needles: Vec<Needle> =
        groups.filter_map(|group| words(&group.iter().filter(|token| !is_filler(token)).collect::<Vec<_>>())).collect();
    // "do we use regex": a word that usually says what kind of thing is meant is the thing, if there is no other.
    let kinds: Vec<&Token> = tokens.iter().filter(|token| is_word(token, KINDS)).collect();
    if needles.is_empty() && kinds.len() == 1 { words(&kinds).into_iter().collect() } else { needles }
}

/// Fillers that can be searched for too.
const KINDS: &[&str] = &[
    "regex",
    "regexp",
    "expression",
    "pattern",
    "string",
    "keyword",
    "comment",
    "comments",
    "variable",
    "function",
    "method",
    "constant",
    "symbol",
    "identifier",
    "macro",
    "struct",
    "class",
];

pub(super) fn is_filler(token: &Token) -> bool {
    is_word(token, FILLERS) && (token.text == token.lower || token.text.chars().skip(1).all(char::is_lowercase))
}

fn exact(token: &Token) -> Option<Needle> {
    match token.kind {
        Kind::Word => None,
        Kind::Quoted => Some(Needle { pattern: escape(&token.text), words: format!("“{}”", token.text) }),
        Kind::Regex => Some(Needle { pattern: token.text.clone(), words: format!("/{}/", token.text) }),
    }
}

/// A word or several, as whole words; case does not matter unless the person typed capitals or code.
fn words(tokens: &[&Token]) -> Option<Needle> {
    let text = tokens.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return None;
    }
    let is_plain = text.chars().all(|c| c.is_lowercase() || c == ' ' || c == '-');
    let is_plain = is_plain || (tokens.len() > 1 && tokens.iter().all(|token| is_plain_word(&token.text)));
    let is_word_char = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let before = if is_word_char(text.chars().next()) { r"\b" } else { "" };
    let after = if is_word_char(text.chars().next_back()) { r"\b" } else { "" };
    let pattern = match singular(&text).filter(|_| is_plain) {
        Some(stem) => format!("(?i){before}{}s?{after}", escape(stem)),
        None if is_plain => format!("(?i){before}{}{after}", escape(&text)),
        None => format!("{before}{}{after}", escape(&text)),
    };
    Some(Needle { pattern, words: format!("`{text}`") })
}

fn is_plain_word(text: &str) -> bool {
    text.chars().all(|c| c.is_lowercase() || c == '-')
}

/// The word without the `s` of its plural.
fn singular(text: &str) -> Option<&str> {
    let stem = text.strip_suffix('s')?;
    let is_plural = stem.len() > 2 && !["s", "u", "i"].iter().any(|ending| stem.ends_with(ending));
    is_plural.then_some(stem)
}

/// One name as a needle, exactly as it is written.
pub(super) fn name(text: &str) -> Needle {
    let is_word_char = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let before = if is_word_char(text.chars().next()) { r"\b" } else { "" };
    let after = if is_word_char(text.chars().next_back()) { r"\b" } else { "" };
    Needle { pattern: format!("{before}{}{after}", escape(text)), words: format!("`{text}`") }
}

/// Where `name` is defined, in the languages whose definitions begin with a keyword.
pub(super) fn definition(name: &str) -> String {
    format!(
        r"\b(?:fn|func|fun|function|def|class|struct|enum|union|trait|interface|type|const|static|let|var|val|mod|module|namespace|macro_rules!)\s+(?:mut\s+)?{}\b",
        escape(name)
    )
}

/// `text` as a regular expression that matches it and nothing else.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
