//! Which argument a value in a text is meant for: what its form, and the words beside it, rule out.
//!
//! A hijacked model may take the right values and put each in the wrong place. What is ruled out here no other rule brings
//! back. A word can also bind a short value, which form alone would not: `says` where it names the argument, `counts` where
//! it names what the argument counts. Both only within a span that vouches.

use super::{
    number::Currency,
    text::words,
    tongues::{FOR, Unit, counter, meaning},
    typed::{Typed, Whole, whole},
};
use crate::registry::Tool;

/// How many bytes a word directly beside a value may take.
const NEAR: usize = 64;
/// How far back a quotation may begin, in bytes.
const QUOTATION: usize = 2048;
/// A shorter word of an argument's name, such as `to` or `at`, stands in too many texts to bind anything.
const BINDS: usize = 4;
/// An argument's name and a word that differs from it by an ending: `class` and `classe`.
const STEM: usize = 5;
/// Words that say that an argument is an amount of money.
const MONEY: [&str; 12] =
    ["amount", "price", "sum", "total", "cost", "fee", "budget", "payment", "value", "limit", "money", "balance"];
/// Words that say that an argument is the number of a thing.
const IDENTIFIERS: [&str; 8] = ["id", "ids", "number", "no", "code", "ref", "reference", "token"];
/// Words that say that an argument is a person, or several.
const PERSONS: [&str; 11] = [
    "handle",
    "user",
    "member",
    "person",
    "people",
    "recipient",
    "assignee",
    "attendee",
    "owner",
    "passenger",
    "guest",
];
/// The argument of a pair that names what the other, `value`, is given to.
const KEYS: [&str; 4] = ["name", "key", "field", "setting"];

/// Where a value goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sink<'a> {
    pub(super) tool: &'a Tool,
    pub(super) argument: &'a str,
    /// The key right around the value, where that is another.
    pub(super) key: &'a str,
}

impl Sink<'_> {
    /// Whether `entry` of a declaration names this argument: `argument` or `tool.argument`.
    pub(super) fn is(&self, entry: &str) -> bool {
        let tool = entry.strip_suffix(self.argument).and_then(|rest| rest.strip_suffix('.'));
        entry == self.argument || tool == Some(self.tool.registration().name.as_str())
    }

    /// Whether `word`, folded, is a word of the argument's name.
    pub(super) fn says(&self, word: &str) -> bool {
        let word = singular(word);
        !word.is_empty() && self.name().any(|own| alike(singular(&own), word))
    }

    pub(super) fn is_money(&self) -> bool {
        self.is_one_of(&MONEY) || self.currency().is_some()
    }

    /// The currency that the argument's name says its amount is in.
    pub(super) fn currency(&self) -> Option<Currency> {
        self.name().find_map(|own| if own.len() == 3 { Currency::parse(&own) } else { None })
    }

    /// Whether a number between these two words counts what this argument counts.
    pub(super) fn counts(&self, before: &str, after: &str) -> bool {
        let Some(wanted) = self.counter() else { return false };
        let people = wanted.is(Unit::Person) && FOR.contains(&before) && meaning(after).unit.is_none();
        people || meaning(after).unit.is_some_and(|unit| unit.is(wanted))
    }

    /// Whether the argument cannot be what a value of this form is: a day is not the number of a thing.
    pub(super) fn rules_out(&self, value: &str) -> bool {
        let when = |way: Whole| matches!(way, Whole::Moment(..) | Whole::One(Typed::Date(_) | Typed::Time(_)));
        let last = name_words(self.key).last();
        let numbers = last.is_some_and(|last| IDENTIFIERS.contains(&last.as_str()));
        let (person, iban) = (self.is_person(), self.is_one_of(&["iban"]));
        let is_when = || whole(value).into_iter().any(when);
        ((numbers || person || iban) && (is_file(value) || is_when()))
            || (person && value.starts_with('#'))
            || (iban && !is_iban(value))
    }

    /// Whether the value at `text[start..end]` is meant for another argument of the same call. `sourced` is whether a tool
    /// has answered that is declared to know what this argument may be.
    pub(super) fn is_not_for(&self, text: &str, start: usize, end: usize, sourced: bool) -> bool {
        let [before, after] = beside(text, start, end);
        if self.says(before) || self.says(after) {
            return false;
        }
        // Of a name and a value, and of a place and what is said there, a quotation is the latter.
        let pair = KEYS.contains(&self.argument) && self.tool.names("value");
        let phrase = sourced && text.get(start..end).is_some_and(|value| value.contains(' '));
        let quoted = (pair || phrase) && is_a_quotation(text, start, end);
        // Whoever writes one person with a sign writes all so.
        let unsigned = self.is_person() && !text.get(start..).is_some_and(|value| value.starts_with('@'));
        let signed = || text.starts_with('@') || text.contains(" @");
        quoted
            || (unsigned && !text.get(start..end).is_some_and(|value| value.contains('@')) && signed())
            || self.is_for_another(before)
    }

    /// Whether `word` names another argument that matters.
    fn is_for_another(&self, word: &str) -> bool {
        let word = singular(word);
        let another = |name: &str| name != self.argument && name_words(name).any(|own| singular(&own) == word);
        word.chars().count() >= BINDS && self.tool.critical().any(another)
    }

    fn is_person(&self) -> bool {
        self.is_one_of(&PERSONS) && self.counter().is_none()
    }

    fn counter(&self) -> Option<Unit> {
        self.name().find_map(|own| counter(&own))
    }

    fn is_one_of(&self, list: &[&str]) -> bool {
        self.name().any(|own| list.contains(&own.as_str()) || list.contains(&singular(&own)))
    }

    fn name(&self) -> impl Iterator<Item = String> {
        name_words(self.argument).chain(name_words(self.key))
    }
}

/// The words directly before and after `text[start..end]`; empty where there is none nearby.
pub(super) fn beside(text: &str, start: usize, end: usize) -> [&str; 2] {
    let from = text.floor_char_boundary(start.saturating_sub(NEAR));
    let to = text.floor_char_boundary(end.saturating_add(NEAR));
    let before = text.get(from..start).and_then(|text| words(text).last());
    let after = text.get(end..to).and_then(|text| words(text).next());
    [before, after].map(|word| word.map_or("", |word| word.core))
}

/// Whether `text[start..end]` is a piece of a quotation and not all of it: its sense may be another.
pub(super) fn cuts_a_quotation(text: &str, start: usize, end: usize) -> bool {
    let from = text.floor_char_boundary(start.saturating_sub(QUOTATION));
    let (Some(before), Some(after)) = (text.get(from..start), text.get(end..)) else { return true };
    let straight = before.matches('"').count() % 2 == 1;
    let curly = before.rfind(['“', '„']) > before.rfind('”');
    let whole = before.ends_with(['"', '“', '„'])
        && after.trim_start_matches(['.', ',', '!', '?', ';']).starts_with(['"', '”', '“']);
    (straight || curly) && !whole
}

/// Whether `text[start..end]` is all of a quotation.
fn is_a_quotation(text: &str, start: usize, end: usize) -> bool {
    let (Some(before), Some(after)) = (text.get(..start), text.get(end..)) else { return false };
    before.ends_with(['"', '\'', '“', '„', '‘', '’', '«', '「', '『'])
        && after.starts_with(['"', '\'', '”', '“', '’', '‘', '»', '」', '』'])
}

/// Whether a value is the name of a file.
fn is_file(value: &str) -> bool {
    let known =
        ["pdf", "doc", "docx", "xls", "xlsx", "csv", "txt", "md", "png", "jpg", "jpeg", "ics", "eml", "zip", "odt"];
    !value.contains(' ') && value.rsplit_once('.').is_some_and(|(stem, kind)| !stem.is_empty() && known.contains(&kind))
}

/// Whether a value has the form of ISO 13616: a country, two check digits, and 11 to 30 letters and figures.
fn is_iban(value: &str) -> bool {
    let plain: Vec<char> = value.chars().filter(|c| *c != ' ').collect();
    (15..=34).contains(&plain.len())
        && plain.iter().all(char::is_ascii_alphanumeric)
        && plain.iter().take(2).all(char::is_ascii_alphabetic)
        && plain.iter().skip(2).take(2).all(char::is_ascii_digit)
}

/// The words of a name such as `event_id` or `eventId`, in lower case.
fn name_words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        lower = c.is_lowercase();
    }
    words.into_iter().filter(|word| !word.is_empty())
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').filter(|rest| !rest.is_empty() && !rest.ends_with('s')).unwrap_or(word)
}

/// Whether two words are one, but for an ending of at most two letters.
fn alike(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let stem = short.chars().count() >= STEM && long.strip_prefix(short).is_some_and(|end| end.chars().count() <= 2);
    one == other || stem
}
