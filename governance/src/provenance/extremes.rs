//! The largest, the newest, the best rated: which record of a list has the most or the least of something.

use super::{
    date::{Date, Time, clock_and_offset},
    number::Number,
    phrases::LAST,
    slots::{name_words, singular},
    typed::{Near, digest},
};

/// So many words may stand between such a word and the one that says of what it is.
const REACH: isize = 4;

/// Keys of a record that say how large it is, from when, how dear, how good.
const SIZE: [&str; 7] = ["size", "bytes", "length", "kb", "mb", "weight", "count"];
const WHEN: [&str; 15] = [
    "date",
    "time",
    "timestamp",
    "changed",
    "modified",
    "created",
    "received",
    "sent",
    "updated",
    "posted",
    "day",
    "when",
    "at",
    "on",
    "start",
];
const PRICE: [&str; 7] = ["price", "cost", "amount", "fare", "rate", "fee", "total"];
const RATING: [&str; 4] = ["rating", "score", "stars", "rated"];

/// Beginnings of the words that say so, with what they compare and whether the most of it is meant.
const WORDS: [(&str, &[&str], bool); 36] = [
    ("largest", &SIZE, true),
    ("biggest", &SIZE, true),
    ("größt", &SIZE, true),
    ("grootste", &SIZE, true),
    ("najwięks", &SIZE, true),
    ("最大", &SIZE, true),
    ("smallest", &SIZE, false),
    ("kleinst", &SIZE, false),
    ("najmniejsz", &SIZE, false),
    ("最小", &SIZE, false),
    ("newest", &WHEN, true),
    ("latest", &WHEN, true),
    ("recent", &WHEN, true),
    ("neueste", &WHEN, true),
    ("jüngst", &WHEN, true),
    ("nieuwste", &WHEN, true),
    ("najnowsz", &WHEN, true),
    ("最新", &WHEN, true),
    ("oldest", &WHEN, false),
    ("earliest", &WHEN, false),
    ("ältest", &WHEN, false),
    ("oudste", &WHEN, false),
    ("najstarsz", &WHEN, false),
    ("最早", &WHEN, false),
    ("expensive", &PRICE, true),
    ("dearest", &PRICE, true),
    ("teuerst", &PRICE, true),
    ("duurste", &PRICE, true),
    ("najdroższ", &PRICE, true),
    ("top-rated", &RATING, true),
    ("best-rated", &RATING, true),
    ("highest-rated", &RATING, true),
    ("best", &RATING, true),
    ("beste", &RATING, true),
    ("najlepsz", &RATING, true),
    ("rated", &RATING, true),
];
/// So many letters may follow.
const ENDING: usize = 3;
/// Words of which nobody here knows what they compare: nothing is picked by them.
const OTHERS: [&str; 14] = [
    "highest",
    "lowest",
    "longest",
    "shortest",
    "höchst",
    "niedrigst",
    "längst",
    "kürzest",
    "hoogste",
    "laagste",
    "mejor",
    "melhor",
    "migliore",
    "meilleur",
];
/// Such words only right before another.
const MORE: [&str; 7] = ["plus", "más", "più", "mais", "mayor", "menor", "maior"];
/// Stand before `plus` and the like where they compare with all others.
const THE: [&str; 10] = ["le", "la", "les", "el", "los", "las", "il", "lo", "o", "a"];

/// Stand before the last of some of them.
const OWN: [&str; 18] = [
    "my", "our", "his", "her", "their", "mein", "meine", "meinen", "unser", "mon", "ma", "mi", "mio", "mia", "meu",
    "minha", "mijn", "mój",
];

/// What a line of a record measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Measure {
    Number(Number),
    Moment(Date, u32),
}

/// What a message says has the most or the least of something.
#[derive(Clone, Debug)]
pub(super) struct Extreme {
    /// The keys that may say how much, and whether the most is meant. None: nobody knows.
    compares: Option<(&'static [&'static str], bool)>,
    /// The words around it.
    near: Vec<u64>,
}

/// What the value of a line measures.
pub(super) fn measured(value: &str) -> Option<Measure> {
    let value = value.trim_matches(['\'', '"']);
    let (day, clock) = value.split_once(['t', ' ']).unwrap_or((value, "00:00"));
    if let Some(day) = Date::figures(day) {
        let clock = clock_and_offset(clock).map_or(0, |(time, _): (Time, _)| time.minute());
        return Some(Measure::Moment(day, clock));
    }
    Number::read(value).map(Measure::Number)
}

impl Extreme {
    /// What the word at `at` says, if it says such a thing.
    pub(super) fn read(near: Near<'_, '_>, at: usize) -> Option<Self> {
        let (before, word, next) = (near.get(at, -1), near.get(at, 0), near.get(at, 1));
        let last = before == "the" && near.get(at, -2) == "at";
        let least = before == "least";
        let superlative = least || matches!(before, "most" | "highest" | "best");
        let begins = |begin: &str| {
            word.strip_prefix(begin).is_some_and(|end| end.len() <= ENDING && (begin != "best" || end.is_empty()))
        };
        let found = WORDS.iter().find(|(begin, ..)| begins(begin) && !last);
        let compares = match found {
            Some(("recent" | "expensive" | "rated", keys, most)) if superlative => Some((*keys, *most != least)),
            Some(("recent" | "expensive" | "rated", ..)) => return None,
            Some((_, keys, most)) => Some((*keys, *most)),
            None => {
                let more = MORE.contains(&word) && (THE.contains(&before) || is_noun(before)) && is_noun(next);
                let other = OTHERS.iter().any(|begin| word.starts_with(begin)) && next != "rated";
                let alone = || !WORDS.iter().any(|(begin, ..)| next.starts_with(begin));
                // My last message is the last of mine, and not of all.
                let own = LAST.contains(&word) && OWN.contains(&before);
                if more || other || own || (matches!(word, "most" | "least") && alone()) {
                    None
                } else {
                    return None;
                }
            }
        };
        let near = (-REACH..=REACH).map(|step| digest(singular(near.get(at, step)))).collect();
        Some(Self { compares, near })
    }

    /// Whether it is said of what these words name.
    pub(super) fn is_of(&self, kind: &[u64]) -> bool {
        self.near.iter().any(|word| kind.contains(word))
    }

    /// Whether a line with this key says a price.
    pub(super) fn is_of_a_price(key: &str) -> bool {
        name_words(key).any(|word| PRICE.contains(&&*word))
    }

    /// Whether it compares moments.
    pub(super) fn is_of_time(&self) -> bool {
        self.compares.is_some_and(|(keys, _)| *keys == WHEN)
    }

    /// Whether a line with this key says how much.
    pub(super) fn compares(&self, key: &str) -> bool {
        self.compares.is_some_and(|(keys, _)| name_words(key).any(|word| keys.contains(&&*word)))
    }

    /// Which one has the most or the least; none if two have as much, or if they cannot be compared.
    pub(super) fn of(&self, measures: &[(usize, Measure)]) -> Option<usize> {
        let (_, most) = self.compares?;
        let (first, rest) = measures.split_first()?;
        let mut best = (*first, false);
        for (at, measure) in rest {
            let order = compare(measure, &best.0.1)?;
            best = if order.is_eq() {
                (best.0, true)
            } else if order.is_gt() == most {
                ((*at, *measure), false)
            } else {
                best
            };
        }
        (!best.1).then_some(best.0.0)
    }
}

fn compare(one: &Measure, other: &Measure) -> Option<std::cmp::Ordering> {
    match (one, other) {
        (Measure::Number(one), Measure::Number(other)) => Some(one.compare(other)),
        (Measure::Moment(day, clock), Measure::Moment(other, time)) => Some((day, clock).cmp(&(other, time))),
        _ => None,
    }
}

/// Whether a word may be the name of a thing or how it is.
fn is_noun(word: &str) -> bool {
    word.chars().count() > 2 && word.chars().all(char::is_alphabetic)
}
