//! How long something lasts, and how often it comes again: as ISO 8601 and RFC 5545 write it, and as people do.

use std::{collections::HashSet, sync::LazyLock};

use super::{
    date,
    number::Number,
    numerals,
    phrases::{AND_A_HALF, EVERY, FRACTIONS, HOW_OFTEN, LEADS, ONE, TILL, WORKING_DAYS},
    tongues::{FOR, Unit, meaning},
    typed::{Near, Typed},
};

/// How long. Months, days and minutes do not turn into each other: a day may have 23 hours.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Length {
    pub(super) months: u32,
    pub(super) days: u32,
    pub(super) minutes: u32,
}

/// How often: every so many of a unit, and on which days of the week, Monday being the lowest bit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Recurrence {
    every: u32,
    unit: Unit,
    days: u8,
}

/// So many words the days of a rhythm take at most.
const MOST_STEPS: usize = 16;
const MONDAY_TO_FRIDAY: u8 = 0b1_1111;

impl Length {
    /// So many of a unit, if that is one of time.
    pub(super) fn of(unit: Unit, count: Number) -> Option<Self> {
        let nothing = Self::default();
        Some(match unit {
            Unit::Minute => Self { minutes: count.times(1)?, ..nothing },
            Unit::Hour => Self { minutes: count.times(60)?, ..nothing },
            Unit::Day | Unit::Night => Self { days: count.times(1)?, ..nothing },
            Unit::Week => Self { days: count.times(7)?, ..nothing },
            Unit::Month => Self { months: count.times(1)?, ..nothing },
            _ => return None,
        })
    }

    /// `pt1h30m`, `p3d`, `p2w`, folded. With a sign before it: how long before.
    pub(super) fn iso(text: &str) -> Option<Typed> {
        let (text, lead) = text.strip_prefix('-').map_or((text, false), |text| (text, true));
        let (day, clock) = text.strip_prefix('p')?.split_once('t').unwrap_or((text.strip_prefix('p')?, ""));
        let mut length = Self::default();
        for (part, units) in [(day, "ymwd"), (clock, "hms")] {
            let mut rest = part;
            while let Some(end) = rest.find(|c: char| c.is_ascii_alphabetic()) {
                let (count, unit) = (date::digits(rest.get(..end)?)?, rest.get(end..end.saturating_add(1))?);
                rest = rest.get(end.saturating_add(1)..)?;
                let more = match unit {
                    _ if !units.contains(unit) => return None,
                    "y" => Self { months: count.checked_mul(12)?, ..Self::default() },
                    "m" if units == "ymwd" => Self { months: count, ..Self::default() },
                    "w" => Self { days: count.checked_mul(7)?, ..Self::default() },
                    "d" => Self { days: count, ..Self::default() },
                    "h" => Self { minutes: count.checked_mul(60)?, ..Self::default() },
                    "m" => Self { minutes: count, ..Self::default() },
                    _ if count == 0 => Self::default(),
                    _ => return None,
                };
                length = length.with(more)?;
            }
            if !rest.is_empty() {
                return None;
            }
        }
        let said = length != Self::default();
        said.then_some(if lead { Typed::Lead(length) } else { Typed::Length(length) })
    }

    fn with(self, more: Self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_add(more.months)?,
            days: self.days.checked_add(more.days)?,
            minutes: self.minutes.checked_add(more.minutes)?,
        })
    }
}

impl Recurrence {
    /// An RRULE of RFC 5545, folded, or a word such as `weekly`. A part that is not read here makes it none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if !text.contains('=') {
            return often(text);
        }
        let (mut every, mut unit, mut days) = (1, None, 0);
        for part in text.strip_prefix("rrule:").unwrap_or(text).split(';') {
            match part.split_once('=')? {
                ("freq", "daily") => unit = Some(Unit::Day),
                ("freq", "weekly") => unit = Some(Unit::Week),
                ("freq", "monthly") => unit = Some(Unit::Month),
                ("interval", count) => every = date::digits(count)?,
                ("byday", list) => {
                    for day in list.split(',') {
                        days |= 1 << ["mo", "tu", "we", "th", "fr", "sa", "su"].iter().position(|own| *own == day)?;
                    }
                }
                ("wkst", "mo") => {}
                _ => return None,
            }
        }
        // Daily on some days of the week is weekly on those.
        let unit = if days != 0 && every == 1 && unit == Some(Unit::Day) { Unit::Week } else { unit? };
        (days == 0 || unit == Unit::Week).then_some(Self { every, unit, days })
    }
}

/// The words that a rhythm, and a length without a number, begin with.
static OPENS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let often = HOW_OFTEN.iter().flat_map(|(_, words)| words.iter());
    often.chain(&EVERY).chain(&ONE).chain(FRACTIONS.keys()).copied().collect()
});

fn often(word: &str) -> Option<Recurrence> {
    let (unit, _) = HOW_OFTEN.iter().find(|(_, words)| words.contains(&word))?;
    Some(Recurrence { every: 1, unit: *unit, days: 0 })
}

/// The length and the rhythm that begin with the word at `at`. Answers the length, and how many words it takes.
pub(super) fn said(near: Near<'_, '_>, at: usize, found: &mut impl FnMut(Typed)) -> Option<(Length, usize)> {
    if OPENS.contains(near.get(at, 0)) {
        recurrence(near, at, found);
    }
    let (length, words) = length(near, at)?;
    let behind = near.get(at.saturating_add(words), 0);
    // Five minutes before: how long before, and not how long.
    found(if LEADS.contains(&behind) { Typed::Lead(length) } else { Typed::Length(length) });
    Some((length, words))
}

/// The length that begins at `at`, and over how many words.
fn length(near: Near<'_, '_>, at: usize) -> Option<(Length, usize)> {
    let word = near.get(at, 0);
    // Most words are neither.
    if !word.starts_with(|c: char| c.is_ascii_digit()) && !OPENS.contains(word) && numerals::worth(word).is_none() {
        return None;
    }
    let (length, words) = whole_length(near, at)?;
    let is_half = |more: &&&[&str]| {
        let word = |step: usize| near.get(at.saturating_add(words).saturating_add(step), 0);
        more.iter().enumerate().all(|(step, own)| word(step) == *own)
    };
    match AND_A_HALF.iter().find(is_half) {
        Some(more) if length.minutes >= 60 => {
            Some((length.with(Length { minutes: 30, ..Length::default() })?, words.saturating_add(more.len())))
        }
        _ => Some((length, words)),
    }
}

fn whole_length(near: Near<'_, '_>, at: usize) -> Option<(Length, usize)> {
    let word = near.get(at, 0);
    if let Some(fractions) = FRACTIONS.get(word) {
        let says = |(step, word): (usize, &&str)| near.get(at.saturating_add(step), 0) == *word;
        if let Some(part) = fractions.iter().find(|part| part.words.iter().enumerate().all(says)) {
            return Some((Length { minutes: part.minutes, ..Length::default() }, part.words.len()));
        }
    }
    let unit = |step: usize| meaning(near.get(at.saturating_add(step), 0)).unit;
    if let Some((count, words)) = numerals::phrase(near, at) {
        return Some((Length::of(unit(words)?, Number::whole(count.into()))?, words.saturating_add(1)));
    }
    if ONE.contains(&word) {
        return Some((Length::of(unit(1)?, Number::whole(1))?, 2));
    }
    if let Some(count) = Number::parse(word).or_else(|| Some(Number::whole(numerals::worth(word)?.into()))) {
        return Some((Length::of(unit(1)?, count)?, 2));
    }
    // 45min, 30-minute.
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|end| *end > 0)?;
    let (count, unit) = word.split_at_checked(end)?;
    Some((Length::of(meaning(unit.trim_start_matches('-')).unit?, Number::parse(count)?)?, 1))
}

/// `daily`, `every Monday and Friday`, `every two weeks`, `every weekday`.
fn recurrence(near: Near<'_, '_>, at: usize, found: &mut impl FnMut(Typed)) {
    let word = near.get(at, 0);
    let at_step = |step: usize| near.get(at.saturating_add(step), 0);
    if let Some(often) = often(word) {
        found(Typed::Recurrence(often));
        // Weekly, a word or two further on, on Thursdays.
        let on = (1..6).find(|step| at_step(*step) == "on").map(|step| at_step(step.saturating_add(1)));
        let day = on.and_then(|word| meaning(word).weekday.or_else(|| meaning(word.strip_suffix('s')?).weekday));
        if let (Unit::Week, Some(day)) = (often.unit, day.and_then(|day| u8::try_from(day).ok())) {
            found(Typed::Recurrence(Recurrence { days: 1 << day, ..often }));
        }
    }
    if !EVERY.contains(&word) {
        return;
    }
    let weekday = |word: &str| meaning(word).weekday.and_then(|day| u8::try_from(day).ok()).map(|day| 1_u8 << day);
    let next = at_step(1);
    // What ends is another rhythm than what does not.
    let ends = (1..9).any(|step| {
        let (word, first, second) =
            (at_step(step), at_step(step.saturating_add(1)), meaning(at_step(step.saturating_add(2))));
        let day = matches!(second.unit, Some(Unit::Day | Unit::Week | Unit::Month | Unit::Year));
        (TILL.contains(&word) && !first.starts_with(|c: char| c.is_ascii_digit())) || (FOR.contains(&word) && day)
    });
    if ends {
        return;
    }
    if WORKING_DAYS.contains(&next) {
        return found(Typed::Recurrence(Recurrence { every: 1, unit: Unit::Week, days: MONDAY_TO_FRIDAY }));
    }
    let (mut days, mut step) = (0_u8, 1_usize);
    // Nobody lists more days than a week has, with a word between each two.
    while step < MOST_STEPS
        && let Some(day) = weekday(at_step(step))
    {
        days |= day;
        step = step.saturating_add(if weekday(at_step(step.saturating_add(1))).is_some() { 1 } else { 2 });
    }
    if days != 0 {
        found(Typed::Recurrence(Recurrence { every: 1, unit: Unit::Week, days }));
        if days.is_power_of_two() {
            found(Typed::Recurrence(Recurrence { every: 1, unit: Unit::Week, days: 0 }));
        }
        return;
    }
    let (every, unit) = match date::digits(next).or_else(|| numerals::worth(next)) {
        Some(count) => (count, meaning(at_step(2)).unit),
        None => (1, meaning(next).unit),
    };
    if let Some(unit @ (Unit::Day | Unit::Week | Unit::Month)) = unit {
        found(Typed::Recurrence(Recurrence { every, unit, days: 0 }));
    }
}
