//! Literals: the closed list of forms in which a value may stand in a trusted text.
//!
//! A token after NFC; a number; an amount with its currency; a day, a time of day, a moment or a duration in ISO 8601 or in plain
//! figures; an address; the host of an address; an account whose check digits are right. A value is found as a whole or not at
//! all. No other language is read than these forms need.

mod moment;
mod money;
mod number;

use std::{borrow::Cow, collections::HashSet};

use ephor_base::arguments::Value;
use jiff::civil::{Date, DateTime, Time};
use unicode_normalization::{UnicodeNormalization, is_nfc_quick};

pub use money::Currency;
pub(crate) use money::size;
pub use number::Number;

/// How many words an account, a day or an amount has at most.
const MAX_WORDS: usize = 9;

/// A value in one of the forms that have a meaning beside their letters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Literal {
    /// A number.
    Number(Number),
    /// An amount of money.
    Amount(Currency, Number),
    /// A day.
    Day(Date),
    /// A time of day.
    Time(Time),
    /// A day with a time, where nothing says in which zone.
    Local(DateTime),
    /// A moment, in nanoseconds since 1970.
    Moment(i128),
    /// So many seconds.
    Duration(i64),
    /// An address of mail, or one with a scheme, its host in lower case.
    Address(String),
    /// An IBAN without spaces.
    Account(String),
}

/// The literals of one trusted text.
#[derive(Clone, Debug, Default)]
pub struct Literals {
    text: String,
    /// Where each run of letters and figures begins, by a hash of it. It is a way to find them: what stands there is compared.
    runs: Vec<(u64, usize)>,
    typed: HashSet<Literal>,
}

impl Literals {
    /// Those of `text`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let text = normal(text);
        let mut runs: Vec<(u64, usize)> = runs(&text).map(|(at, run)| (hash(run), at)).collect();
        runs.sort_unstable();
        let mut typed = HashSet::new();
        scan(&text, |literal| {
            typed.insert(literal);
        });
        Self { text, runs, typed }
    }

    /// Whether `value` stands in the text as a whole. Only texts and numbers do: a list or an object is more than its parts.
    #[must_use]
    pub fn have(&self, value: &Value) -> bool {
        let has = |number: Option<Number>| number.is_some_and(|number| self.has(&Literal::Number(number)));
        match value {
            Value::Integer(number) => has(Number::whole(*number)),
            Value::Float(number) => has(Number::of(*number)),
            Value::Text(text) => self.have_text(text),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => false,
        }
    }

    /// Whether `text` stands in the text, letter by letter after NFC or as the same literal.
    #[must_use]
    pub fn have_text(&self, text: &str) -> bool {
        let text = normal(text);
        self.stands(&text) || read(&text).is_some_and(|literal| self.has(&literal))
    }

    /// Whether the text has this literal.
    #[must_use]
    pub fn has(&self, literal: &Literal) -> bool {
        self.typed.contains(literal)
    }

    /// Whether it is the only address in the text.
    pub(crate) fn has_only(&self, address: &Literal) -> bool {
        let mut addresses = self.typed.iter().filter(|one| matches!(one, Literal::Address(_)));
        addresses.next() == Some(address) && addresses.next().is_none()
    }

    fn stands(&self, value: &str) -> bool {
        let Some((before, run)) = runs(value).next() else { return false };
        let wanted = hash(run);
        let from = self.runs.partition_point(|(hash, _)| *hash < wanted);
        let places = self.runs.iter().skip(from).take_while(|(hash, _)| *hash == wanted);
        places.filter_map(|(_, at)| at.checked_sub(before)).any(|at| is_whole(&self.text, at, value))
    }
}

/// What a value is beside its letters, if it is one of the forms as a whole.
#[must_use]
pub fn read(text: &str) -> Option<Literal> {
    let words: Vec<&str> = text.split(' ').take(MAX_WORDS + 1).collect();
    let (literal, used) = at(&words)?;
    (used == words.len()).then_some(literal)
}

/// A text as it is compared: NFC, every white space one space, none at the ends.
pub(crate) fn normal(text: &str) -> String {
    let spaced: Cow<'_, str> = nfc(text);
    let mut normal = String::with_capacity(spaced.len());
    for word in spaced.split_whitespace() {
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.push_str(word);
    }
    normal
}

/// The text in Unicode's normal form C.
pub(crate) fn nfc(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    match is_nfc_quick(text.chars()) {
        unicode_normalization::IsNormalized::Yes => Cow::Borrowed(text),
        _ => Cow::Owned(text.nfc().collect()),
    }
}

/// An address with what does not distinguish it in lower case: of mail all of it, of a link its scheme and its host.
pub(crate) fn address(text: &str) -> Option<String> {
    if let Some((scheme, rest)) = text.split_once("://") {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end)?;
        let host = authority.split_once(':').map_or(authority, |(host, _)| host);
        let fits = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
        return (fits && is_host(host))
            .then(|| format!("{}://{}{path}", scheme.to_ascii_lowercase(), authority.to_ascii_lowercase()));
    }
    let (local, host) = text.split_once('@')?;
    let fits = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
    let whole = !local.is_empty() && local.chars().all(fits) && is_host(host) && host.contains('.');
    whole.then(|| text.to_ascii_lowercase())
}

/// A moment with an offset, if it is one as a whole.
pub(crate) fn moment(text: &str) -> Option<Literal> {
    moment::moment(text)
}

fn is_host(host: &str) -> bool {
    let label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-');
    host.split('.').all(label)
}

/// Every literal of a normal text.
fn scan(text: &str, mut found: impl FnMut(Literal)) {
    let (wholes, bares): (Vec<&str>, Vec<&str>) = text.split(' ').map(|word| (word, bare(word))).unzip();
    let mut from = 0_usize;
    while let (Some([whole, wholes @ ..]), Some([word, next @ ..])) = (wholes.get(from..), bares.get(from..)) {
        if !has_sign(word) && !next.first().is_some_and(|next| has_sign(next)) {
            from = from.saturating_add(1);
            continue;
        }
        // A word that a sign ends is the last of its literal, but for the one sign that stands within a day: November 30, 2026.
        let day = match (wholes, next) {
            ([second, _, ..], [_, year, ..]) => moment::words(&[whole, second, year]),
            _ => None,
        };
        let words = bares.get(from..).unwrap_or_default().iter().zip(std::iter::once(whole).chain(wholes));
        let joined = words.take(MAX_WORDS).position(|(bare, whole)| !whole.ends_with(bare));
        let end = from.saturating_add(joined.map_or(MAX_WORDS, |last| last.saturating_add(1))).min(bares.len());
        let used = match day.or_else(|| at(bares.get(from..end).unwrap_or_default())) {
            Some((literal, used)) => {
                if let Literal::Amount(_, number) = literal {
                    found(Literal::Number(number));
                }
                found(literal);
                used
            }
            None => {
                parts(word).filter_map(read).for_each(&mut found);
                1
            }
        };
        from = from.saturating_add(used.max(1));
    }
}

/// Whether a word has a figure, or a sign of an address. Most words of a text have none, and are no literal.
fn has_sign(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit() || matches!(byte, b'@' | b':'))
}

/// The parts of a word that commas and the like divide, where it is divided and is no number that cannot be read.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let divides = |c: char| matches!(c, ',' | ';' | '"' | '[' | ']' | '{' | '}' | '(' | ')' | '<' | '>');
    let is_figures = word.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '.' | '-'));
    let parts = word.split(divides).map(|part| bare(part.trim_start_matches(':')));
    parts.filter(move |part| !is_figures && !part.is_empty() && part.len() < word.len())
}

/// The literal that begins with the first of these words, and how many it takes; the longest form first.
fn at(words: &[&str]) -> Option<(Literal, usize)> {
    let (first, second) = (*words.first()?, words.get(1).copied());
    // Only a day has a time behind it.
    let second_of_day = second.filter(|_| first.len() == 10);
    let spaced =
        || second_of_day.and_then(|second| moment::moment(&format!("{first} {second}"))).map(|literal| (literal, 2));
    let one = || {
        let figures = || Number::written(first).map(Literal::Number);
        let link = || address(first).map(Literal::Address);
        moment::word(first).or_else(|| moment::moment(first)).or_else(figures).or_else(link).map(|literal| (literal, 1))
    };
    let amount =
        || money::amount(first, second).map(|(currency, number, words)| (Literal::Amount(currency, number), words));
    account(words).or_else(spaced).or_else(|| moment::words(words)).or_else(amount).or_else(one)
}

/// An IBAN in one word or in groups of four.
fn account(words: &[&str]) -> Option<(Literal, usize)> {
    let head = words.first().filter(|word| word.len() >= 4 && word.is_ascii())?;
    let checked = |text: &str| text.parse::<iban::BaseIban>().is_ok();
    let begins = head.bytes().take(2).all(|byte| byte.is_ascii_alphabetic())
        && head.bytes().skip(2).take(2).all(|byte| byte.is_ascii_digit());
    if !begins {
        return None;
    }
    let groups = words.iter().take_while(|word| word.len() <= 4).count();
    // The longest that is right, so that a group more is not left over.
    (1..=groups.max(1)).rev().find_map(|count| {
        let whole = words.get(..count)?.concat().to_ascii_uppercase();
        checked(&whole).then_some((Literal::Account(whole), count))
    })
}

/// A word without what stands around it in a sentence.
fn bare(word: &str) -> &str {
    word.trim_start_matches(is_opening).trim_end_matches(is_closing)
}

const fn is_opening(c: char) -> bool {
    matches!(c, '"' | '\'' | '“' | '„' | '‘' | '«' | '‹' | '(' | '[' | '{' | '<' | '「' | '『' | '¿' | '¡' | '`')
}

const fn is_closing(c: char) -> bool {
    matches!(
        c,
        '"' | '\''
            | '”'
            | '“'
            | '’'
            | '»'
            | '›'
            | ')'
            | ']'
            | '}'
            | '>'
            | '」'
            | '』'
            | '`'
            | '.'
            | ','
            | ';'
            | ':'
            | '!'
            | '?'
            | '。'
            | '，'
            | '、'
            | '！'
            | '？'
            | '；'
            | '：'
    )
}

/// Stand between two tokens without any space.
const fn is_between(c: char) -> bool {
    matches!(c, ' ' | ',' | ';' | '—' | '–' | '，' | '、' | '；')
}

/// A letter of a script that is written without spaces.
const fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Whether `value` stands in `text` at byte `at`, and no token goes on before it or behind it.
fn is_whole(text: &str, at: usize, value: &str) -> bool {
    let Some((before, rest)) = text.split_at_checked(at) else { return false };
    let Some(after) = rest.strip_prefix(value) else { return false };
    let (first, last) = (value.chars().next(), value.chars().next_back());
    let meets = |neighbour: Option<char>, edge: Option<char>| match neighbour {
        None => true,
        Some(c) => is_between(c) || (is_unspaced(c) && edge.is_some_and(|edge| edge.is_ascii_alphanumeric())),
    };
    if splits_a_number(before, value, after) {
        return false;
    }
    let before = before.trim_end_matches(is_opening);
    let begins = meets(before.chars().next_back(), first);
    // A colon in JSON stands between a key and its value.
    let keyed = before.len() < at && before.ends_with(':');
    let behind = after.trim_start_matches(is_closing);
    (begins || keyed) && (meets(behind.chars().next(), last) || parted(after))
}

/// Whether a comma between figures is all that parts the value from what is before it or behind it.
fn splits_a_number(before: &str, value: &str, after: &str) -> bool {
    let is_figure = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let left = before.strip_suffix(',').is_some_and(|before| is_figure(before.chars().next_back()));
    let right = after.strip_prefix(',').is_some_and(|after| is_figure(after.chars().next()));
    (left && is_figure(value.chars().next())) || (right && is_figure(value.chars().next_back()))
}

/// Whether what follows parts from the value at once, by a comma or the like, whatever comes then.
fn parted(after: &str) -> bool {
    after.trim_start_matches(['"', '\'', '”', '’', ')', ']', '}', '»']).starts_with(is_between)
}

/// Each run of letters and figures with the byte that it begins at.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = text.get(from..)?;
        let begins = rest.find(char::is_alphanumeric)?;
        let run = rest.get(begins..)?;
        let wide = run.starts_with(is_unspaced);
        let ends = |c: char| !c.is_alphanumeric() || is_unspaced(c) != wide || wide;
        let end = run.char_indices().skip(1).find(|(_, c)| ends(*c)).map_or(run.len(), |(at, _)| at);
        let at = from.checked_add(begins)?;
        from = at.checked_add(end)?;
        Some((at, run.get(..end)?))
    })
}

/// FNV-1a.
fn hash(run: &str) -> u64 {
    run.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
