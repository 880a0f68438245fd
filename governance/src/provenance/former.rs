//! What a text says was so before: from where something is moved, what somebody used to be, what was paid.

use super::clauses::{Clause, Clauses};

/// Beginnings of words that say that something is to be elsewhere, or more or less.
const MOVES: [&str; 47] = [
    "move",
    "moving",
    "chang",
    "shift",
    "postpon",
    "reschedul",
    "push",
    "rais",
    "increas",
    "lower",
    "reduc",
    "rebook",
    "switch",
    "swap",
    "relocat",
    "verschieb",
    "verleg",
    "änder",
    "ändr",
    "umbuch",
    "erhöh",
    "senk",
    "umgezogen",
    "umzieh",
    "décal",
    "déplac",
    "reporte",
    "modifi",
    "augment",
    "déménag",
    "spost",
    "cambi",
    "aument",
    "muev",
    "mover",
    "mudado",
    "mudei",
    "mude",
    "aplaz",
    "pospon",
    "adie",
    "adia",
    "verzet",
    "verplaats",
    "wijzig",
    "przenie",
    "przesu",
];
/// Stand before what was, and before what will be instead.
const FROM_TO: [(&[&str], &[&str]); 7] = [
    (&["from"], &["to", "into", "onto"]),
    (&["von", "vom"], &["auf", "nach", "in"]),
    (&["de", "du", "des"], &["à", "au", "vers"]),
    (&["da", "dal", "dalla", "dalle"], &["a", "al", "alla", "alle"]),
    (&["de", "del", "desde"], &["a", "al", "hasta", "para"]),
    (&["van"], &["naar"]),
    (&["z", "ze"], &["na", "do"]),
];
/// With such a word before the first, they say how long something lasts.
const BE: [&str; 16] =
    ["is", "are", "be", "runs", "lasts", "that", "ist", "geht", "dass", "est", "soit", "è", "sia", "es", "sea", "jest"];
/// So many words may stand between the two.
const REACH: usize = 8;
/// So far from the word for moving they are looked for.
const FAR: usize = 32;
/// Say what somebody or something was.
const USED_TO: [&[&str]; 11] = [
    &["used", "to", "be"],
    &["used", "to", "live"],
    &["used", "to", "have"],
    &["formerly"],
    &["previously"],
    &["früher"],
    &["ehemals"],
    &["anciennement"],
    &["auparavant"],
    &["vroeger"],
    &["dawniej"],
];
/// Say until when something was so.
const UP_TO_NOW: [&[&str]; 24] = [
    &["up", "to", "now"],
    &["until", "now"],
    &["till", "now"],
    &["so", "far"],
    &["currently"],
    &["at", "present"],
    &["bisher"],
    &["bislang"],
    &["derzeit"],
    &["momentan"],
    &["zurzeit"],
    &["aktuell"],
    &["jusqu'ici"],
    &["jusqu'à", "présent"],
    &["actuellement"],
    &["finora"],
    &["attualmente"],
    &["hasta", "ahora"],
    &["actualmente"],
    &["até", "agora"],
    &["atualmente"],
    &["tot", "nu"],
    &["momenteel"],
    &["dotychczas"],
];
/// Of a plan: the old one.
const OLD: [&str; 20] = [
    "old",
    "previous",
    "former",
    "original",
    "alte",
    "bisherige",
    "ursprüngliche",
    "ancien",
    "ancienne",
    "vecchio",
    "vecchia",
    "precedente",
    "antiguo",
    "antigua",
    "antigo",
    "antiga",
    "oude",
    "vorige",
    "stary",
    "stara",
];
/// And say so of it.
const WAS: [&str; 18] = [
    "was", "were", "is", "war", "waren", "ist", "était", "etait", "est", "era", "è", "es", "é", "fue", "foi", "is",
    "był", "była",
];
/// Tell of a sum that went already.
const WENT: [&str; 35] = [
    "sent",
    "paid",
    "transferred",
    "wired",
    "gave",
    "spent",
    "überwiesen",
    "bezahlt",
    "gezahlt",
    "geschickt",
    "gegeben",
    "payé",
    "viré",
    "envoyé",
    "versé",
    "pagato",
    "inviato",
    "mandato",
    "versato",
    "pagué",
    "envié",
    "mandé",
    "transferí",
    "pagado",
    "enviado",
    "paguei",
    "enviei",
    "transferi",
    "betaald",
    "overgemaakt",
    "gestuurd",
    "zapłaciłem",
    "zapłaciłam",
    "wysłałem",
    "wysłałam",
];

/// Stand before such a word, and before the sum.
const HAVE: [&str; 16] = [
    "have", "has", "had", "i've", "habe", "hab", "haben", "hat", "ai", "j'ai", "ho", "ha", "he", "heb", "heeft",
    "hebben",
];

/// What of a folded text was so before, in bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Former {
    /// Where something is moved from.
    pub(super) left: Vec<(usize, usize)>,
    /// What was so, whatever it is.
    pub(super) used: Vec<(usize, usize)>,
    /// What was so until now, of values of which there is another.
    pub(super) past: Vec<(usize, usize)>,
    /// The same of sums.
    pub(super) went: Vec<(usize, usize)>,
    /// Whether anything is moved.
    pub(super) moves: bool,
}

impl Former {
    /// Whether nothing was.
    pub(super) const fn is_empty(&self) -> bool {
        self.left.is_empty() && self.used.is_empty() && self.past.is_empty() && self.went.is_empty()
    }

    pub(super) fn of(text: &str) -> Self {
        let clauses = Clauses::of(text);
        let mut former = Self::default();
        for (number, clause) in clauses.all.iter().enumerate() {
            former.left.extend(left(&clauses, *clause));
            former.used.extend(used(&clauses, number, *clause));
            let words = clauses.plain(*clause);
            let words: Vec<&str> = words.iter().map(|word| &**word).collect();
            former.moves |= words.iter().any(|word| is_move(word));
            let all = clauses.bytes(clause.first, clause.behind);
            if UP_TO_NOW.iter().any(|phrase| place(&words, phrase).is_some()) || is_of_old(&words) {
                former.past.push(all);
            }
            if let Some(verb) = words.iter().position(|word| WENT.contains(word)) {
                let first = words.iter().take(verb).position(|word| HAVE.contains(word)).unwrap_or(verb);
                former.went.push(clauses.bytes(clause.first.saturating_add(first), clause.behind));
            }
        }
        former
    }
}

/// Whether a byte is in one of several stretches.
pub(super) fn within(stretches: &[(usize, usize)], at: usize) -> bool {
    stretches.iter().any(|(from, to)| (*from..*to).contains(&at))
}

/// Where in `words` a phrase begins.
fn place(words: &[&str], phrase: &[&str]) -> Option<usize> {
    words.windows(phrase.len()).position(|own| own == phrase)
}

/// The old plan was.
fn is_of_old(words: &[&str]) -> bool {
    let old = words.iter().position(|word| OLD.contains(word));
    old.is_some_and(|at| words.iter().skip(at).any(|word| WAS.contains(word)))
}

/// Whether a word says that something is moved. Of a transfer that is a noun, a sum may stand where its place would: una
/// transferencia de 50 a Ana.
fn is_move(word: &str) -> bool {
    MOVES.iter().any(|part| word.starts_with(part)) || word == "transfer"
}

/// What stands between `from` and `to` where something is moved.
fn left(clauses: &Clauses<'_>, clause: Clause) -> Vec<(usize, usize)> {
    let words = clauses.plain(clause);
    let word = |at: usize| words.get(at).map_or("", |word| word);
    let Some(verb) = words.iter().position(|word| is_move(word)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (from, to) in FROM_TO {
        let near = verb.saturating_sub(FAR)..words.len().min(verb.saturating_add(FAR));
        let firsts = near.filter(|at| from.contains(&word(*at)));
        for first in firsts {
            // To Tuesday, from ten to eleven: how long it lasts.
            let lasts = (verb..first).any(|at| to.contains(&word(at)) || BE.contains(&word(at)));
            let start = first.saturating_add(1);
            let end = (start..words.len().min(start.saturating_add(REACH))).find(|at| to.contains(&word(*at)));
            if let Some(end) = end.filter(|end| *end > start && !lasts) {
                let place = |at: usize| clause.first.saturating_add(at);
                found.push(clauses.bytes(place(start), place(end)));
            }
        }
    }
    found
}

/// What somebody used to be, with the short parts of it that follow: a street, and its city.
fn used(clauses: &Clauses<'_>, number: usize, clause: Clause) -> Option<(usize, usize)> {
    let words = clauses.plain(clause);
    let words: Vec<&str> = words.iter().map(|word| &**word).collect();
    // Alone, such a word may say when: antes, vorher.
    let phrase = USED_TO.iter().find_map(|phrase| Some((place(&words, phrase)?, phrase.len())));
    let (at, len) = phrase.filter(|(at, len)| *len > 1 || *at == 0)?;
    let first = clause.first.saturating_add(at).saturating_add(len);
    let rest = clauses.all.get(number.saturating_add(1)..).unwrap_or_default();
    let parts = rest.iter().take_while(|part| !part.opens && is_a_part(clauses, **part)).count();
    let last = clauses.all.get(number.saturating_add(parts)).map_or(clause.behind, |part| part.behind);
    (first < clause.behind).then(|| clauses.bytes(first, last))
}

/// Whether a clause is a part of an address: a comma, and one or two words.
fn is_a_part(clauses: &Clauses<'_>, part: Clause) -> bool {
    let before = part.first.checked_sub(1).map_or("", |last| clauses.between(last));
    before.trim() == "," && part.behind.saturating_sub(part.first) <= 2
}
