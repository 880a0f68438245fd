//! Days and times, and the words that name them from a recorded turn time.

use ephor_base::{Offset, Timestamp};

use super::length::Length;

/// A day of the Gregorian calendar, as days since 1970-01-01.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Date(i64);

/// A time of day in seconds, 0 to 86,399.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Time(u32);

/// When a turn began, where the person was: what "tomorrow" is counted from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TurnTime {
    /// The day there.
    pub today: Date,
    /// The minute of that day, 0 to 1,439.
    pub minute: u32,
    /// How far the clock there is ahead of UTC, in minutes.
    pub offset: i32,
}

impl TurnTime {
    /// The day and the time here at a moment that is `time` of `day` where the clock is `offset` minutes ahead of UTC.
    pub(super) fn local(&self, day: Date, time: Time, offset: i32) -> Option<(Date, Time)> {
        let ahead = i64::from(self.offset).checked_sub(offset.into())?.checked_mul(60)?;
        let seconds = i64::from(time.0).checked_add(ahead)?;
        let clock = u32::try_from(seconds.rem_euclid(86_400)).ok()?;
        Some((day.plus(seconds.div_euclid(86_400)), Time(clock)))
    }

    /// The day and the time here at a moment in seconds since 1970-01-01 in UTC.
    pub(super) fn of_unix(&self, seconds: i64) -> Option<(Date, Time)> {
        let clock = u32::try_from(seconds.rem_euclid(86_400)).ok()?;
        self.local(Date(seconds.div_euclid(86_400)), Time(clock), 0)
    }

    /// The day and the time so many minutes later.
    pub(super) fn later(&self, minutes: u32) -> Option<(Date, Time)> {
        let all = self.minute.checked_add(minutes)?;
        let (days, minute) = (all / 1440, all % 1440);
        Some((self.today.plus(days.into()), Time::new(minute / 60, minute % 60, 0)?))
    }

    /// The day on which `time` comes next: today, or tomorrow if it is over.
    pub(super) const fn next(&self, time: Time) -> Date {
        self.today.plus(if time.0 / 60 < self.minute { 1 } else { 0 })
    }

    /// A moment where the clock is so far ahead of UTC.
    #[must_use]
    pub fn at(at: Timestamp, ahead: Offset) -> Self {
        let minutes = i64::try_from(at.0 / 60_000_000).unwrap_or(i64::MAX).saturating_add(ahead.minutes().into());
        let minute = u32::try_from(minutes.rem_euclid(1440)).unwrap_or(0);
        Self { today: Date(minutes.div_euclid(1440)), minute, offset: ahead.minutes() }
    }

    /// An RFC 3339 date and time, such as `2026-11-21T09:30:00+01:00`; none if it is anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (date, clock) = text.split_once(['T', 't', ' '])?;
        let (time, offset) = clock_and_offset(&clock.to_lowercase())?;
        Some(Self { today: Date::iso(date)?, minute: time.0 / 60, offset: offset? })
    }
}

impl Date {
    /// The day, if the calendar has it. Years 1 to 9999.
    #[must_use]
    pub fn new(year: i64, month: u32, day: u32) -> Option<Self> {
        if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || day == 0 || day > month_length(year, month) {
            return None;
        }
        // H. Hinnant, "chrono-compatible low-level date algorithms".
        let (month, day) = (i64::from(month), i64::from(day));
        let shifted = if month <= 2 { year - 1 } else { year };
        let era = shifted.div_euclid(400);
        let year_of_era = shifted.rem_euclid(400);
        let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        Some(Self(era * 146_097 + day_of_era - 719_468))
    }

    /// `YYYY-MM-DD` or `YYYY/MM/DD`.
    #[must_use]
    pub fn iso(text: &str) -> Option<Self> {
        let separator = if text.contains('-') { '-' } else { '/' };
        let mut parts = text.split(separator);
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || year.len() != 4 || month.len() != 2 || day.len() != 2 {
            return None;
        }
        Self::new(digits(year)?.into(), digits(month)?, digits(day)?)
    }

    /// Any form of a whole date in figures that can be read one way only.
    pub(super) fn figures(text: &str) -> Option<Self> {
        if let Some(date) = Self::iso(text) {
            return Some(date);
        }
        let dotted = text.contains('.');
        let mut parts = text.split(if dotted { '.' } else { '/' });
        let (first, second, year) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || year.len() != 4 || first.len() > 2 || second.len() > 2 {
            return None;
        }
        let (first, second, year) = (digits(first)?, digits(second)?, i64::from(digits(year)?));
        if dotted || first == second {
            return Self::new(year, second, first);
        }
        // With strokes, some write the month first and some the day.
        match (Self::new(year, second, first), Self::new(year, first, second)) {
            (Some(_), Some(_)) => None,
            (one, other) => one.or(other),
        }
    }

    /// `days` later, or earlier if negative.
    #[must_use]
    pub const fn plus(self, days: i64) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// How many days later it is than `other`.
    pub(super) const fn since(self, other: Self) -> i64 {
        self.0.saturating_sub(other.0)
    }

    /// 0 for Monday to 6 for Sunday.
    #[must_use]
    pub const fn weekday(self) -> i64 {
        self.0.saturating_add(3).rem_euclid(7)
    }

    /// The Monday of its week.
    pub(super) const fn monday(self) -> Self {
        self.plus(-self.weekday())
    }

    /// The day of its month, 1 to 31.
    pub(super) fn day(self) -> u32 {
        let days = self.begun().map_or(0, |(_, first)| self.0.saturating_sub(first.0));
        u32::try_from(days).map_or(0, |days| days.saturating_add(1))
    }

    /// Its month, 1 to 12.
    pub(super) fn month(self) -> u32 {
        self.begun().map_or(0, |(month, _)| month)
    }

    /// Its month, and the first day of that.
    fn begun(self) -> Option<(u32, Self)> {
        let year = self.year();
        (1..=12).rev().find_map(|month| Some((month, Self::new(year, month, 1).filter(|first| *first <= self)?)))
    }

    fn year(self) -> i64 {
        // The year whose first day is the last one not after this.
        let guess = 1970 + self.0.div_euclid(365);
        let begins = |year: i64| Self::new(year, 1, 1).is_some_and(|first| first <= self);
        (0..40).map(|back| guess - back).find(|year| begins(*year)).unwrap_or(guess)
    }
}

impl Time {
    /// The time, if the clock has it.
    #[must_use]
    pub(super) const fn new(hour: u32, minute: u32, second: u32) -> Option<Self> {
        if hour < 24 && minute < 60 && second < 60 { Some(Self(hour * 3600 + minute * 60 + second)) } else { None }
    }

    /// `14:00`, `14:00:00`, `2pm`, `2:30pm`, `noon`, `midnight`.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "noon" => return Self::new(12, 0, 0),
            "midnight" => return Self::new(0, 0, 0),
            _ => {}
        }
        let half =
            word.strip_suffix("am").map(|rest| (rest, 0)).or_else(|| word.strip_suffix("pm").map(|rest| (rest, 12)));
        match half {
            Some((rest, half)) => {
                let (hour, minute) = rest.split_once(':').unwrap_or((rest, "00"));
                let (hour, minute) = (short(hour)?, two(minute)?);
                if !(1..=12).contains(&hour) { None } else { Self::new(hour % 12 + half, minute, 0) }
            }
            None => {
                let (hour, rest) = word.split_once(':')?;
                let (minute, second) = rest.split_once(':').unwrap_or((rest, "00"));
                Self::new(short(hour)?, two(minute)?, two(second)?)
            }
        }
    }

    /// `17h` or `17h30`.
    pub(super) fn french(word: &str) -> Option<Self> {
        let (hour, minute) = word.split_once('h')?;
        Self::new(short(hour)?, if minute.is_empty() { 0 } else { two(minute)? }, 0)
    }

    /// An hour and a minute, each in figures.
    pub(super) fn of(hour: &str, minute: &str) -> Option<Self> {
        Self::new(short(hour)?, two(minute)?, 0)
    }

    /// `minutes` later, on the same day.
    pub(super) const fn plus(self, minutes: u32) -> Self {
        let seconds = self.0.saturating_add(minutes.saturating_mul(60));
        if seconds < 86_400 { Self(seconds) } else { self }
    }

    /// So many minutes later or earlier, if that is on the same day.
    pub(super) fn moved(self, minutes: i64) -> Option<Self> {
        let seconds = i64::from(self.0).checked_add(minutes.checked_mul(60)?)?;
        u32::try_from(seconds).ok().filter(|seconds| *seconds < 86_400).map(Self)
    }

    /// The minute of the day, 0 to 1,439.
    pub(super) const fn minute(self) -> u32 {
        self.0 / 60
    }

    /// Its reading in the afternoon, if it has one.
    pub(super) const fn later(self) -> Self {
        if self.0 < 43_200 { Self(self.0.saturating_add(43_200)) } else { self }
    }

    /// A bare hour, as in "at 10".
    pub(super) fn hour(word: &str) -> Option<Self> {
        Self::new(short(word)?, 0, 0)
    }
}

/// A time of day with its offset from UTC in minutes, if one is written.
pub(super) fn clock_and_offset(text: &str) -> Option<(Time, Option<i32>)> {
    let (clock, offset) = match text.strip_suffix('z') {
        Some(clock) => (clock, Some(0)),
        None => match text.rfind(['+', '-']) {
            Some(at) => {
                let (hours, minutes) = text.get(at.saturating_add(1)..)?.split_once(':')?;
                let minutes = i32::try_from(two(hours)? * 60 + two(minutes)?).ok()?;
                let sign = if text.get(at..)?.starts_with('-') { -1 } else { 1 };
                (text.get(..at)?, Some(sign * minutes))
            }
            None => (text, None),
        },
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    if !fraction.bytes().all(|byte| byte == b'0') && offset.is_none() {
        return None;
    }
    Some((Time::parse(clock)?, offset))
}

/// The days that a month and a day without a year may mean: this year's, or the next to come.
pub(super) fn without_year(month: u32, day: u32, now: Option<TurnTime>) -> Vec<Date> {
    let Some(now) = now else { return Vec::new() };
    let year = now.today.year();
    let mut days: Vec<Date> = Date::new(year, month, day).into_iter().collect();
    if days.first().is_none_or(|date| *date < now.today) {
        days.extend(Date::new(year + 1, month, day));
    }
    days
}

/// The days that the weekday `day` may mean on `today`, with the words before and after it.
pub(super) fn weekday_near(today: Date, day: i64, before: &str, after: [&str; 2]) -> Vec<Date> {
    // The first one after today.
    let coming = today.plus(1).plus((day - today.plus(1).weekday()).rem_euclid(7));
    let following = today.monday().plus(7 + day);
    if after == ["next", "week"] {
        return vec![following];
    }
    match before {
        "last" => vec![coming.plus(if coming.plus(-7) < today { -7 } else { -14 })],
        // People differ: the first one to come, or the one of next week.
        "next" if coming != following => vec![coming, following],
        _ => vec![coming],
    }
}

fn month_length(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A number of figures only, at most nine.
pub(super) fn digits(text: &str) -> Option<u32> {
    let fits = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

fn short(text: &str) -> Option<u32> {
    if text.len() <= 2 { digits(text) } else { None }
}

fn two(text: &str) -> Option<u32> {
    if text.len() == 2 { digits(text) } else { None }
}

/// A day, or a time of it with its offset from UTC, if one is written.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) day: Date,
    pub(super) clock: Option<(Time, Option<i32>)>,
}

/// How long it is from one moment to a later one, or from one day to a later one; none if they are not alike.
pub(super) fn between(start: Moment, end: Moment) -> Option<Length> {
    let days = end.day.since(start.day);
    match (start.clock, end.clock) {
        (Some((from, one)), Some((to, other))) if one == other => {
            let seconds = days.checked_mul(86_400)?.checked_add(i64::from(to.0))?.checked_sub(i64::from(from.0))?;
            let minutes = u32::try_from(seconds / 60).ok().filter(|_| seconds > 0 && seconds % 60 == 0)?;
            Some(Length { minutes, ..Length::default() })
        }
        (None, None) if days > 0 => Some(Length { days: u32::try_from(days).ok()?, ..Length::default() }),
        _ => None,
    }
}
