//! What a person names only to be read, and who something comes from.

use super::{
    clauses::{Clause, Clauses},
    derive::MIN_CHARS,
    text::{weight, words},
};

/// Begin what is only to be read.
const READS: [&[&str]; 40] = [
    &["read"],
    &["check"],
    &["summarise"],
    &["summarize"],
    &["skim"],
    &["scan"],
    &["review"],
    &["see"],
    &["look", "at"],
    &["look", "into"],
    &["look", "through"],
    &["look", "in"],
    &["have", "a", "look", "at"],
    &["have", "a", "look", "in"],
    &["have", "a", "look", "into"],
    &["go", "through"],
    &["catch", "up", "on"],
    &["catch", "up", "with"],
    &["catch", "me", "up", "on"],
    &["lies"],
    &["lese"],
    &["schau", "in"],
    &["sieh", "in"],
    &["fass"],
    &["lis"],
    &["lisez"],
    &["regarde"],
    &["résume"],
    &["leggi"],
    &["guarda"],
    &["riassumi"],
    &["lee"],
    &["mira"],
    &["revisa"],
    &["resume"],
    &["leia"],
    &["lees"],
    &["bekijk"],
    &["przeczytaj"],
    &["sprawdź"],
];
/// Stand before that.
const HEADS: [&str; 40] = [
    "please",
    "pls",
    "can",
    "could",
    "would",
    "will",
    "u",
    "you",
    "first",
    "then",
    "to",
    "also",
    "and",
    "just",
    "quickly",
    "hi",
    "hey",
    "bitte",
    "kannst",
    "könntest",
    "du",
    "mal",
    "kurz",
    "zuerst",
    "dann",
    "peux-tu",
    "d'abord",
    "puis",
    "puoi",
    "prima",
    "poi",
    "puedes",
    "primero",
    "luego",
    "podes",
    "kun",
    "je",
    "eerst",
    "dan",
    "najpierw",
];
/// Join two things that are to be done.
const JOINS: [&str; 11] = ["and", "then", "und", "dann", "et", "puis", "e", "poi", "y", "en", "i"];
/// Stand before whom something comes from.
const FROM_WHOM: [&str; 14] =
    ["from", "of", "by", "von", "vom", "de", "da", "dal", "del", "do", "van", "od", "z", "from:"];
/// Beginnings of words that ask for an answer, which goes to whom something comes from.
const ANSWERS: [&str; 14] = [
    "repl",
    "answer",
    "respon",
    "write",
    "antwort",
    "schreib",
    "répon",
    "écri",
    "rispo",
    "contest",
    "antwoord",
    "odpow",
    "odpis",
    "acknowledge",
];
/// Stand before a name that somebody gives to a place.
const THE: [&str; 20] = [
    "the", "to", "in", "into", "folder", "der", "den", "dem", "im", "le", "la", "il", "lo", "el", "o", "a", "de",
    "het", "do", "w",
];

/// The bytes of a folded text that name a place that is only to be read, where it names another to write in.
pub(super) fn read(text: &str) -> Vec<(usize, usize)> {
    if !text.contains('#') {
        return Vec::new();
    }
    let clauses = Clauses::of(text);
    let (mut read, mut other) = (Vec::new(), false);
    for part in parts(&clauses) {
        let mut places =
            (part.first..part.behind).filter(|at| clauses.words.get(*at).is_some_and(|word| is_place(word.core)));
        let reads = is_reading(&clauses, part);
        let first = places.next();
        if reads {
            read.extend(first.map(|at| clauses.bytes(at, at.saturating_add(1))));
        }
        other |= if reads { places.next().is_some() } else { first.is_some() };
    }
    if other { read } else { Vec::new() }
}

fn is_place(word: &str) -> bool {
    word.strip_prefix('#').is_some_and(|name| name.starts_with(char::is_alphabetic))
}

/// The clauses, each in as many parts as things are to be done.
fn parts(clauses: &Clauses<'_>) -> Vec<Clause> {
    let mut found = Vec::new();
    for clause in &clauses.all {
        let mut first = clause.first;
        for at in clause.first..clause.behind {
            let joins = clauses.words.get(at).is_some_and(|word| JOINS.contains(&word.core));
            let next = clauses.words.get(at.saturating_add(1)).is_none_or(|word| is_place(word.core));
            if joins && !next {
                found.push(Clause { first, behind: at, ..*clause });
                first = at.saturating_add(1);
            }
        }
        found.push(Clause { first, ..*clause });
    }
    found
}

/// Whether a part of a clause asks to read something.
fn is_reading(clauses: &Clauses<'_>, part: Clause) -> bool {
    let words = clauses.plain(part);
    let heads = words.iter().take_while(|word| HEADS.contains(&&***word)).count();
    let rest = words.get(heads..).unwrap_or_default();
    READS.iter().any(|phrase| rest.len() >= phrase.len() && rest.iter().zip(*phrase).all(|(own, word)| own == word))
}

/// What a message says of who and where.
#[derive(Clone, Debug, Default)]
pub(super) struct Roles {
    /// Its addresses: where each begins, and whether it is one of whom something comes from.
    pub(super) addresses: Vec<(usize, bool)>,
    /// Whether it asks for an answer.
    pub(super) answers: bool,
    /// The words that something is called by, each with what is called so.
    named: Vec<(Box<str>, Box<str>)>,
}

impl Roles {
    pub(super) fn of(text: &str) -> Self {
        let answers = words(text).any(|word| ANSWERS.iter().any(|part| word.core.starts_with(part)));
        Self { addresses: addresses(text), answers, named: named(text) }
    }

    /// What it calls by a word that `names` knows.
    pub(super) fn named(&self, names: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
        self.named.iter().filter(move |(word, _)| names(word)).map(|(_, value)| &**value)
    }
}

fn addresses(text: &str) -> Vec<(usize, bool)> {
    let all: Vec<_> = words(text).collect();
    let is_address =
        |word: &str| word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    let before = |at: usize| at.checked_sub(1).and_then(|at| all.get(at)).map_or("", |word| word.core);
    let found = all.iter().enumerate().filter(|(_, word)| is_address(word.core));
    found.map(|(at, word)| (word.at, FROM_WHOM.contains(&before(at)))).collect()
}

/// Each word with the quotation behind it, and with the last word of its clause, if that is behind it.
fn named(text: &str) -> Vec<(Box<str>, Box<str>)> {
    let clauses = Clauses::of(text);
    let core = |at: usize| clauses.words.get(at).map_or("", |word| word.core);
    let mut found = Vec::new();
    for clause in &clauses.all {
        for name in clause.first.saturating_add(1)..clause.behind {
            let word = name.saturating_sub(1);
            let called = quotation(text, clauses.end(word)).or_else(|| {
                let last = name.saturating_add(1) == clause.behind && word > clause.first;
                let fits = last && THE.contains(&core(word.saturating_sub(1))) && weight(core(name)) >= MIN_CHARS;
                fits.then(|| core(name))
            });
            found.extend(called.map(|called| (core(word).into(), called.into())));
        }
    }
    found
}

/// The quotation that begins right at a byte.
fn quotation(text: &str, at: usize) -> Option<&str> {
    let rest = text.get(at..)?.trim_start();
    let closes = match rest.chars().next()? {
        '\'' | '’' | '‘' => ['\'', '’'],
        '"' | '“' | '„' => ['"', '”'],
        '«' => ['»', '«'],
        _ => return None,
    };
    let inner = rest.get(rest.chars().next()?.len_utf8()..)?;
    inner.get(..inner.find(closes)?)
}
