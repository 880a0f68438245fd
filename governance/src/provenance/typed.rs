//! What a text says in numbers, amounts of money, days and times.

use super::{
    date::{self, Date, Time, TurnTime},
    number::{self, Currency, Number},
    text::{Word, is_wide, words},
    tongues::unspaced,
    when::{Reading, is_of_a_day},
};

/// A value that two texts may write differently and mean alike.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Typed {
    Number(Number),
    Amount(Currency, Number),
    Currency(Currency),
    Date(Date),
    Time(Time),
    /// The number of an account, a card or a telephone, without the spaces in it: a digest of its letters and figures.
    Identifier(u64),
}

/// A typed value in a text, with the words directly beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention<'a> {
    pub(super) typed: Typed,
    /// Whether it is written with a currency.
    pub(super) money: bool,
    /// Which sentence of the text it stands in.
    pub(super) sentence: u32,
    pub(super) before: &'a str,
    pub(super) after: &'a str,
}

/// Every typed value in a folded text. Days without a year, and such as "tomorrow", are counted from `now`; without it
/// they mean nothing.
pub(super) fn scan<'a>(text: &'a str, now: Option<TurnTime>, mut found: impl FnMut(Mention<'a>)) {
    let placed: Vec<Word<'_>> = words(text).flat_map(parts).collect();
    let list: Vec<&str> = placed.iter().map(|word| word.core).collect();
    let near = Near(&list);
    let mut reading = Reading { now, last: None, part: None };
    let (mut run_ends, mut sentence) = (0, 0_u32);
    for (at, word) in list.iter().enumerate() {
        if ends_a_sentence(text, at.checked_sub(1).and_then(|last| placed.get(last)), placed.get(at)) {
            sentence = sentence.saturating_add(1);
        }
        let (before, after) = (near.get(at, -1), near.get(at, 1));
        let mention = |typed, money| Mention { typed, money, sentence, before, after };
        if at >= run_ends {
            let run = groups(&placed, at);
            identifier(run.iter().map(|word| word.core)).into_iter().for_each(|typed| found(mention(typed, false)));
            run_ends = if run.len() >= GROUPS { at.saturating_add(run.len()) } else { 0 };
        }
        // A group of an account number is no number of its own, and neither is a part of a day.
        if at >= run_ends && reading.part != Some(at) && !is_of_a_day(near, at) {
            numbers(near, at, word, &mut |typed, money| found(mention(typed, money)));
        }
        if at >= run_ends {
            reading.word(near, at, &mut |typed| found(mention(typed, false)));
        }
    }
}

/// Whether a sentence ends between two words. A stop after a number or a short word may be no end.
fn ends_a_sentence(text: &str, one: Option<&Word<'_>>, next: Option<&Word<'_>>) -> bool {
    let (Some(one), Some(next)) = (one, next) else { return false };
    let end = one.at.saturating_add(one.core.len());
    let between = text.get(end..next.at).unwrap_or_default();
    let stop = between.contains('.') && one.core.chars().count() > 2 && !has_figure(one.core);
    stop || between.contains(['?', '!', '。', '？', '！', '؟'])
}

/// The words of a word: in a script without spaces, those that are known, and each character of the rest.
fn parts(word: Word<'_>) -> impl Iterator<Item = Word<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = word.core.get(at..).filter(|rest| !rest.is_empty())?;
        let wide = rest.starts_with(is_wide);
        let len = if wide { unspaced(rest) } else { rest.find(is_wide).unwrap_or(rest.len()) };
        let part = Word { at: word.at.saturating_add(at), core: rest.get(..len)? };
        at = at.saturating_add(len);
        Some(part)
    })
}

/// So many groups of figures in a row are one number with spaces in it.
const GROUPS: usize = 3;
/// A shorter run of letters and figures is no identifier.
const IDENTIFIER: usize = 10;

fn has_figure(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The words from `at` on that are one number with spaces in it: groups with figures, or those of an IBAN, which may be
/// letters alone.
fn groups<'a, 'b>(placed: &'b [Word<'a>], at: usize) -> &'b [Word<'a>] {
    let rest = placed.get(at..).unwrap_or_default();
    let Some(first) = rest.first().filter(|first| has_figure(first.core)) else { return &[] };
    let end = |word: &Word<'_>| word.at.saturating_add(word.core.len()).saturating_add(1);
    let iban = is_iban_head(first.core);
    let fits = |word: &str| plain(word) && if iban { word.len() <= 4 } else { has_figure(word) };
    let joined = rest.windows(2).take_while(|pair| match pair {
        [one, next] => next.at == end(one) && fits(next.core) && plain(one.core) && (!iban || one.core.len() == 4),
        _ => false,
    });
    rest.get(..joined.count().saturating_add(1)).unwrap_or_default()
}

/// The country and the check digits of ISO 13616, in a group of four.
fn is_iban_head(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() == 4
        && bytes.iter().take(2).all(u8::is_ascii_alphabetic)
        && bytes.iter().skip(2).all(u8::is_ascii_digit)
}

/// Only letters and figures, and perhaps a sign before.
fn plain(word: &str) -> bool {
    word.trim_start_matches('+').chars().all(char::is_alphanumeric)
}

/// What the parts are together, if they are an identifier.
fn identifier<'a>(parts: impl Iterator<Item = &'a str>) -> Option<Typed> {
    let whole: String = parts.collect();
    let fits = whole.len() >= IDENTIFIER && has_figure(&whole) && plain(&whole);
    fits.then(|| {
        let mut hasher = std::hash::DefaultHasher::new();
        std::hash::Hash::hash(&whole, &mut hasher);
        Typed::Identifier(std::hash::Hasher::finish(&hasher))
    })
}

/// The words around a word; empty where there is none.
#[derive(Clone, Copy)]
pub(super) struct Near<'a, 'b>(&'b [&'a str]);

impl<'a> Near<'a, '_> {
    pub(super) fn get(self, at: usize, step: isize) -> &'a str {
        at.checked_add_signed(step).and_then(|at| self.0.get(at)).copied().unwrap_or("")
    }
}

/// Numbers and amounts of money.
fn numbers(near: Near<'_, '_>, at: usize, word: &str, found: &mut impl FnMut(Typed, bool)) {
    let beside = || Currency::parse(near.get(at, 1)).or_else(|| Currency::parse(near.get(at, -1)));
    if let Some((currency, number)) = number::amount(word) {
        found(Typed::Amount(currency, number), true);
        found(Typed::Number(number), true);
        found(Typed::Currency(currency), true);
    } else if let Some(number) =
        Number::parse(word.strip_prefix('#').unwrap_or(word)).or_else(|| number::in_words(word))
    {
        let beside = beside();
        if let Some(currency) = beside {
            found(Typed::Amount(currency, number), true);
            found(Typed::Currency(currency), true);
        }
        found(Typed::Number(number), beside.is_some());
    } else if word.len() == 3
        && let Some(currency) = Currency::parse(word)
    {
        found(Typed::Currency(currency), true);
    }
}

/// What the whole of a folded value is, and no part of it more than that.
pub(super) enum Whole {
    One(Typed),
    /// A day and a time of it, with the offset from UTC that is written.
    Moment(Date, Time, Option<i32>),
}

/// Reads the whole of a folded value in every way it can be read.
pub(super) fn whole(value: &str) -> Vec<Whole> {
    let mut ways = Vec::new();
    ways.extend(identifier(value.split(' ')).map(Whole::One));
    let one = |typed: Option<Typed>| typed.map(Whole::One);
    ways.extend(one(Number::parse(value).map(Typed::Number)));
    ways.extend(one(Date::figures(value).map(Typed::Date)));
    ways.extend(one(Time::parse(value).map(Typed::Time)));
    let code = if value.len() == 3 { Currency::parse(value) } else { None };
    ways.extend(one(code.map(Typed::Currency)));
    let amount = number::amount(value).or_else(|| {
        let (first, second) = value.split_once(' ')?;
        let (currency, number) = match Currency::parse(first) {
            Some(currency) => (currency, second),
            None => (Currency::parse(second)?, first),
        };
        Some((currency, Number::parse(number)?))
    });
    ways.extend(one(amount.map(|(currency, number)| Typed::Amount(currency, number))));
    if let Some((day, clock)) = value.split_once(['t', ' '])
        && let (Some(day), Some((clock, offset))) = (Date::figures(day), date::clock_and_offset(clock))
    {
        ways.push(Whole::Moment(day, clock, offset));
    }
    ways
}
