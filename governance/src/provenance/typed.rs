//! What a text says in numbers, amounts of money, days and times.

use super::{
    date::{self, Date, Time, TurnTime},
    number::{self, Currency, Number},
    text::{Word, words},
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
    pub(super) before: &'a str,
    pub(super) after: &'a str,
}

/// Every typed value in a folded text. Days without a year, and such as "tomorrow", are counted from `now`; without it
/// they mean nothing.
pub(super) fn scan<'a>(text: &'a str, now: Option<TurnTime>, mut found: impl FnMut(Mention<'a>)) {
    let placed: Vec<Word<'_>> = words(text).collect();
    let list: Vec<&str> = placed.iter().map(|word| word.core).collect();
    let near = Near(&list);
    let (mut run_ends, mut year_of_a_day) = (0, usize::MAX);
    for (at, word) in list.iter().enumerate() {
        let mention = |typed, money| Mention { typed, money, before: near.get(at, -1), after: near.get(at, 1) };
        in_letters(near, at, word, now, &mut |typed, money| found(mention(typed, money)));
        if !has_figure(word) {
            continue;
        }
        if at >= run_ends {
            let run = figures_in_a_row(&placed, at);
            identifier(run.iter().map(|word| word.core)).into_iter().for_each(|typed| found(mention(typed, false)));
            run_ends = if run.len() >= GROUPS { at.saturating_add(run.len()) } else { 0 };
        }
        // A group of an account number is no number of its own, and neither is a part of a day.
        if at >= run_ends && at != year_of_a_day {
            figures(near, at, word, now, &mut |typed, money| found(mention(typed, money)));
        }
        day_of_month(near, at, word, now, &mut |date, year| {
            year_of_a_day = at.saturating_add(year);
            for date in date {
                found(mention(Typed::Date(date), false));
                stay(near, at, at.saturating_add(1).saturating_add(year), &mut |days| {
                    found(mention(Typed::Date(date.plus(days)), false));
                });
            }
        });
    }
}

/// Words that may stand between a day and how long something lasts from then on.
const FROM: [&str; 14] =
    ["for", "from", "starting", "beginning", "on", "the", "für", "ab", "vom", "am", "dem", "pour", "du", "à"];

/// `three nights from 12 December`, `12 December for 3 nights`: how many days later it ends. The day stands at `at`, and
/// what follows it at `behind`.
fn stay(near: Near<'_, '_>, at: usize, behind: usize, found: &mut impl FnMut(i64)) {
    let fills = |at: usize| FROM.contains(&near.get(at, 0)) || date::month(near.get(at, 0)).is_some();
    let before = (0..at).rev().find(|at| !fills(*at)).and_then(|unit| lasts(near, unit.checked_sub(1)?));
    let after = (behind..behind.saturating_add(5)).find(|at| !fills(*at)).and_then(|count| lasts(near, count));
    before.into_iter().chain(after).for_each(found);
}

/// How many days the number at `count` and the unit behind it are.
fn lasts(near: Near<'_, '_>, count: usize) -> Option<i64> {
    let days = match near.get(count, 1) {
        "night" | "nights" | "day" | "days" | "nächte" | "nacht" | "tage" | "nuits" | "nuit" | "jours" => 1,
        "week" | "weeks" | "woche" | "wochen" | "semaine" | "semaines" => 7,
        _ => return None,
    };
    let number = number_of(near.get(count, 0)).or_else(|| number::in_words(near.get(count, 0)))?;
    (1..=366_i64).find(|count| Number::whole((*count).into()) == number).map(|count| count.saturating_mul(days))
}

/// So many groups of figures in a row are one number with spaces in it.
const GROUPS: usize = 3;
/// A shorter run of letters and figures is no identifier.
const IDENTIFIER: usize = 10;

fn has_figure(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The words from `at` on that have figures and follow each other with one space.
fn figures_in_a_row<'a, 'b>(placed: &'b [Word<'a>], at: usize) -> &'b [Word<'a>] {
    let rest = placed.get(at..).unwrap_or_default();
    let end = |word: &Word<'_>| word.at.saturating_add(word.core.len()).saturating_add(1);
    let joined = rest.windows(2).take_while(|pair| match pair {
        [one, next] => next.at == end(one) && has_figure(next.core) && plain(next.core) && plain(one.core),
        _ => false,
    });
    rest.get(..joined.count().saturating_add(1)).unwrap_or_default()
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
struct Near<'a, 'b>(&'b [&'a str]);

impl<'a> Near<'a, '_> {
    fn get(self, at: usize, step: isize) -> &'a str {
        at.checked_add_signed(step).and_then(|at| self.0.get(at)).copied().unwrap_or("")
    }
}

fn figures(near: Near<'_, '_>, at: usize, word: &str, now: Option<TurnTime>, found: &mut impl FnMut(Typed, bool)) {
    let plain = word.strip_prefix('#').unwrap_or(word);
    let beside = [near.get(at, 1), near.get(at, -1)];
    let day = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    let of_a_day = date::digits(day).is_some()
        && (beside.iter().any(|word| date::month(word).is_some())
            || (near.get(at, 1) == "of" && date::month(near.get(at, 2)).is_some()));
    if of_a_day {
        return;
    }
    if let Some((currency, number)) = number::amount(word) {
        found(Typed::Amount(currency, number), true);
        found(Typed::Number(number), true);
        found(Typed::Currency(currency), true);
    } else if let Some(number) = Number::parse(plain) {
        let beside = Currency::parse(near.get(at, 1)).or_else(|| Currency::parse(near.get(at, -1)));
        if let Some(currency) = beside {
            found(Typed::Amount(currency, number), true);
            found(Typed::Currency(currency), true);
        }
        found(Typed::Number(number), beside.is_some());
    }
    if let Some(date) = Date::figures(word) {
        found(Typed::Date(date), false);
        stay(near, at, at.saturating_add(1), &mut |days| found(Typed::Date(date.plus(days)), false));
    }
    if let Some((day, clock)) = word.split_once('t')
        && let (Some(day), Some((clock, _))) = (Date::iso(day), date::clock_and_offset(clock))
    {
        found(Typed::Date(day), false);
        found(Typed::Time(clock), false);
    }
    times(near, at, word, &mut |time| found(Typed::Time(time), false));
    counted(near, at, number_of(word), now, &mut |date| found(Typed::Date(date), false));
    soon(near, at, word, now, &mut |typed| found(typed, false));
}

fn times(near: Near<'_, '_>, at: usize, word: &str, found: &mut impl FnMut(Time)) {
    if let Some(time) = Time::parse(word) {
        return found(time);
    }
    // A range, such as 10:00-11:00.
    if let Some((from, to)) = word.split_once(['-', '–'])
        && let (Some(from), Some(to)) = (Time::parse(from), Time::parse(to))
    {
        found(from);
        return found(to);
    }
    let after = near.get(at, 1);
    if matches!(after, "am" | "pm") {
        found_time(&format!("{word}{after}"), found);
    } else if let Some(time) = Time::french(word) {
        found(time);
    } else if (near.get(at, -1) == "at" || matches!(after, "uhr" | "h" | "o'clock"))
        && let Some(hour) = Time::hour(word)
    {
        found(hour);
    }
}

fn found_time(word: &str, found: &mut impl FnMut(Time)) {
    if let Some(time) = Time::parse(word) {
        found(time);
    }
}

/// `3 December 2026`, `December 3rd, 2026`, `the 3rd of December`: the days it may be, and how many words further its
/// year stands; 0 where none does.
fn day_of_month(
    near: Near<'_, '_>,
    at: usize,
    word: &str,
    now: Option<TurnTime>,
    found: &mut impl FnMut(Vec<Date>, usize),
) {
    let bare = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    let Some(day) = date::digits(bare).filter(|day| (1..=31).contains(day)) else { return };
    let of = usize::from(matches!(near.get(at, 1), "of" | "de"));
    let behind = |step: usize| near.get(at, isize::try_from(step).unwrap_or(isize::MAX));
    // From 4 to 7 March.
    let range = matches!(behind(1), "to" | "until" | "till" | "and" | "bis" | "und" | "au" | "–" | "-")
        && date::digits(behind(2)).is_some();
    let of = if range { 2 } else { of };
    let (month, step) = match (date::month(behind(1 + of)), date::month(near.get(at, -1))) {
        (Some(month), _) => (month, 2 + of),
        (None, Some(month)) => (month, 1),
        (None, None) => return,
    };
    let year = date::digits(behind(step)).filter(|_| behind(step).len() == 4);
    match year {
        Some(year) => found(Date::new(year.into(), month, day).into_iter().collect(), step),
        None => found(date::without_year(month, day, now), 0),
    }
}

fn in_letters(near: Near<'_, '_>, at: usize, word: &str, now: Option<TurnTime>, found: &mut impl FnMut(Typed, bool)) {
    if let Some(number) = number::in_words(word) {
        let currency = Currency::parse(near.get(at, 1));
        found(Typed::Number(number), currency.is_some());
        if let Some(currency) = currency {
            found(Typed::Amount(currency, number), true);
            found(Typed::Currency(currency), true);
        }
        counted(near, at, Some(number), now, &mut |date| found(Typed::Date(date), false));
    }
    if matches!(word, "noon" | "midnight") {
        Time::parse(word).into_iter().for_each(|time| found(Typed::Time(time), false));
    }
    let Some(TurnTime { today, .. }) = now else { return };
    let (before, over) = (near.get(at, -1), near.get(at, -2) == "day");
    let days = match (word, before) {
        ("tomorrow", "after") if over => Some(2),
        ("yesterday", "before") if over => Some(-2),
        // In German "am Morgen" is a time of day.
        ("morgen", "am" | "guten" | "jeden") => None,
        _ => date::relative(word),
    };
    days.into_iter().for_each(|days| found(Typed::Date(today.plus(days)), false));
    if let Some(day) = date::weekday(word) {
        let after = [near.get(at, 1), near.get(at, 2)];
        date::weekday_near(today, day, before, after).into_iter().for_each(|date| found(Typed::Date(date), false));
    }
}

/// `in 45 minutes`, `in 2 hours`: the day and the time.
fn soon(near: Near<'_, '_>, at: usize, word: &str, now: Option<TurnTime>, found: &mut impl FnMut(Typed)) {
    let unit = match near.get(at, 1) {
        "minute" | "minutes" | "minuten" | "min" => 1,
        "hour" | "hours" | "stunde" | "stunden" | "heures" => 60,
        _ => return,
    };
    let minutes = date::digits(word).and_then(|count| count.checked_mul(unit));
    let moment = now.zip(minutes).and_then(|(now, minutes)| now.later(minutes));
    if let (Some((day, time)), "in" | "dans") = (moment, near.get(at, -1)) {
        found(Typed::Date(day));
        found(Typed::Time(time));
    }
}

fn number_of(word: &str) -> Option<Number> {
    date::digits(word).map(|number| Number::whole(number.into()))
}

/// `in 3 days`, `two weeks ago`.
fn counted(near: Near<'_, '_>, at: usize, number: Option<Number>, now: Option<TurnTime>, found: &mut impl FnMut(Date)) {
    let unit = match near.get(at, 1) {
        "day" | "days" | "tagen" | "jours" => 1,
        "week" | "weeks" | "wochen" | "semaines" => 7,
        _ => return,
    };
    let (Some(number), Some(now)) = (number, now) else { return };
    let Some(count) = (0..=1000_i64).find(|count| Number::whole((*count).into()) == number) else { return };
    if near.get(at, -1) == "in" || (near.get(at, 2) == "from" && matches!(near.get(at, 3), "now" | "today")) {
        found(now.today.plus(count * unit));
    }
    if near.get(at, 2) == "ago" {
        found(now.today.plus(-count * unit));
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
