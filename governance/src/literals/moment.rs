//! Days, times of day, moments and durations, in ISO 8601 and as English writes them in figures.

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
};

use super::Literal;

/// English names of months, as far as three letters tell them apart.
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The units of a plain duration, with their length in seconds.
const UNITS: [(&str, i64); 12] = [
    ("second", 1),
    ("seconds", 1),
    ("minute", 60),
    ("minutes", 60),
    ("min", 60),
    ("mins", 60),
    ("hour", 3600),
    ("hours", 3600),
    ("day", 86_400),
    ("days", 86_400),
    ("week", 604_800),
    ("weeks", 604_800),
];

/// A moment with its offset, or a day with a time, as RFC 3339 or ISO 8601 write them.
pub(super) fn moment(text: &str) -> Option<Literal> {
    let (day, rest) = text.split_at_checked(10)?;
    iso_day(day)?;
    let time = rest.strip_prefix(['T', 't', ' '])?;
    if !time.starts_with(|c: char| c.is_ascii_digit()) || time.contains('[') {
        return None;
    }
    if time.ends_with(['Z', 'z']) || time.contains(['+', '-']) {
        return text.parse::<Timestamp>().ok().map(|moment| Literal::Moment(moment.as_nanosecond()));
    }
    clock(time)?;
    text.parse::<DateTime>().ok().map(Literal::Local)
}

/// A day in figures, or a time of day, or a duration of ISO 8601, in one word.
pub(super) fn word(text: &str) -> Option<Literal> {
    iso_day(text)
        .or_else(|| figures(text))
        .map(Literal::Day)
        .or_else(|| clock(text).or_else(|| half_day(text, "")).map(Literal::Time))
        .or_else(|| duration(text).map(Literal::Duration))
}

/// A day, a time or a duration in several words from the first on, with the number of the words.
pub(super) fn words(words: &[&str]) -> Option<(Literal, usize)> {
    if let [one, two, three, ..] = words
        && let Some(day) = plain_day(one, two, three).or_else(|| plain_day(two, one, three))
    {
        return Some((Literal::Day(day), 3));
    }
    let [one, two, ..] = words else { return None };
    if let Some(time) = half_day(one, two).filter(|_| !two.is_empty()) {
        return Some((Literal::Time(time), 2));
    }
    let (_, seconds) = UNITS.iter().find(|(unit, _)| two.eq_ignore_ascii_case(unit))?;
    let count = figure(one, 6)?;
    Some((Literal::Duration(count.checked_mul(*seconds)?), 2))
}

/// `2026-11-30`.
fn iso_day(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if year.len() != 4 || month.len() != 2 || day.len() != 2 || parts.next().is_some() {
        return None;
    }
    date(year, figure(month, 2)?, day)
}

/// `30.11.2026`, and `30/11/2026` or `11/30/2026` where only one of them is a day.
fn figures(text: &str) -> Option<Date> {
    let separator = if text.contains('.') { '.' } else { '/' };
    let mut parts = text.split(separator);
    let (one, two, year) = (parts.next()?, parts.next()?, parts.next()?);
    if year.len() != 4 || one.len() > 2 || two.len() > 2 || parts.next().is_some() {
        return None;
    }
    let (first, second) = (figure(one, 2)?, figure(two, 2)?);
    if separator == '.' || first == second {
        return date(year, second, one);
    }
    match (date(year, second, one), date(year, first, two)) {
        (Some(day), None) | (None, Some(day)) => Some(day),
        _ => None,
    }
}

/// `30 November 2026`, `30th Nov 2026`.
fn plain_day(day: &str, month: &str, year: &str) -> Option<Date> {
    if !day.starts_with(|c: char| c.is_ascii_digit()) || year.len() != 4 {
        return None;
    }
    let day = day.trim_end_matches(',');
    let day = ["st", "nd", "rd", "th"].iter().find_map(|end| day.strip_suffix(end)).unwrap_or(day);
    let month = month.trim_end_matches(['.', ',']).to_ascii_lowercase();
    let fits = |name: &str| month.len() >= 3 && name.starts_with(&month);
    let at = MONTHS.iter().position(|name| fits(name))?;
    if day.len() > 2 {
        return None;
    }
    date(year, i64::try_from(at).ok()?.checked_add(1)?, day)
}

fn date(year: &str, month: i64, day: &str) -> Option<Date> {
    Date::new(figure(year, 4)?.try_into().ok()?, month.try_into().ok()?, figure(day, 2)?.try_into().ok()?).ok()
}

/// `14:30`, `14:30:05`.
fn clock(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let (hour, minute) = (parts.next()?, parts.next()?);
    let second = parts.next();
    if hour.len() > 2 || minute.len() != 2 || second.is_some_and(|second| second.len() != 2) || parts.next().is_some() {
        return None;
    }
    time(figure(hour, 2)?, figure(minute, 2)?, second.map_or(Some(0), |second| figure(second, 2))?)
}

/// `8am`, `2:30 pm`: the half of the day at the end of the word, or in the next one.
fn half_day(text: &str, next: &str) -> Option<Time> {
    let last = if next.is_empty() { text } else { next };
    if !last.ends_with(['m', 'M', '.']) || last.len() > 7 || text.len() > 7 {
        return None;
    }
    let whole = format!("{text}{next}").to_ascii_lowercase().replace('.', "");
    let (bare, later) = match whole.strip_suffix("am") {
        Some(bare) => (bare, 0),
        None => (whole.strip_suffix("pm")?, 12),
    };
    let (hour, minute) = bare.split_once(':').unwrap_or((bare, "00"));
    let hour = figure(hour, 2).filter(|hour| (1..=12).contains(hour))?;
    let minute = figure(minute, 2).filter(|_| minute.len() == 2)?;
    time((hour % 12) + later, minute, 0)
}

fn time(hour: i64, minute: i64, second: i64) -> Option<Time> {
    Time::new(hour.try_into().ok()?, minute.try_into().ok()?, second.try_into().ok()?, 0).ok()
}

/// `PT30M`, `P2D`: those of ISO 8601 whose length does not depend on the day they begin.
fn duration(text: &str) -> Option<i64> {
    if !text.starts_with('P') {
        return None;
    }
    let span: jiff::Span = text.parse().ok()?;
    let fixed = span.get_years() == 0 && span.get_months() == 0 && is_whole(&span);
    let days = i64::from(span.get_weeks()).checked_mul(7)?.checked_add(span.get_days().into())?;
    let hours = days.checked_mul(24)?.checked_add(span.get_hours().into())?;
    let minutes = hours.checked_mul(60)?.checked_add(span.get_minutes())?;
    let seconds = minutes.checked_mul(60)?.checked_add(span.get_seconds())?;
    fixed.then_some(seconds)
}

fn is_whole(span: &jiff::Span) -> bool {
    span.get_milliseconds() == 0 && span.get_microseconds() == 0 && span.get_nanoseconds() == 0
}

/// A number of at most so many figures.
fn figure(text: &str, most: usize) -> Option<i64> {
    let fits = (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}
