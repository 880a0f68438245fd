//! What a person names only to be read, and who something comes from.

use super::{
    clauses::{Clause, Clauses},
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

/// The addresses of a folded text: where each begins, and whether it is one of whom something comes from.
pub(super) fn addresses(text: &str) -> Vec<(usize, bool)> {
    let all: Vec<_> = words(text).collect();
    let is_address =
        |word: &str| word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    let before = |at: usize| at.checked_sub(1).and_then(|at| all.get(at)).map_or("", |word| word.core);
    let found = all.iter().enumerate().filter(|(_, word)| is_address(word.core));
    found.map(|(at, word)| (word.at, FROM_WHOM.contains(&before(at)))).collect()
}

/// Whether a text asks for an answer.
pub(super) fn answers(text: &str) -> bool {
    words(text).any(|word| ANSWERS.iter().any(|part| word.core.starts_with(part)))
}

/// What a folded text calls by a word that `names` knows: the quotation behind it, or the last word of its clause.
pub(super) fn named<'a>(text: &'a str, names: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let clauses = Clauses::of(text);
    let mut found = Vec::new();
    for clause in &clauses.all {
        for at in clause.first..clause.behind {
            let core = |at: usize| clauses.words.get(at).map_or("", |word| word.core);
            let (name, behind) = (at.saturating_add(1), at.saturating_add(2));
            if name >= clause.behind || !names(core(at)) {
                continue;
            }
            let quoted = quotation(text, clauses.end(at));
            let last = behind == clause.behind && at > clause.first && THE.contains(&core(at.saturating_sub(1)));
            let plain = last && weight(core(name)) >= super::derive::MIN_CHARS;
            found.extend(quoted.or_else(|| plain.then(|| core(name))));
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
