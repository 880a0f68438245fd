//! The days and times that a text speaks of, from the words around each number.

use super::{
    date::{self, Date, Time, TurnTime},
    length::Length,
    number::{self, Number},
    numerals,
    phrases::{BEHIND, EVERY, FROM_HOUR, HERE, MOVED_TO, MOVES, NEXT, THE, THIS, TILL, WITHIN, ZONES},
    tongues::{AT, FROM, HALB, HALF, O_CLOCK, OF, OM, UNTIL, Unit, meaning},
    typed::{Near, Typed},
};

/// What is known while a text is read from its beginning.
pub(super) struct Reading {
    /// When the turn began, if it is known.
    pub(super) now: Option<TurnTime>,
    /// The last day that was spoken of.
    pub(super) last: Option<Date>,
    /// Whether something is moved away from it.
    pub(super) left: bool,
    /// The last time of day that was spoken of.
    pub(super) time: Option<Time>,
    /// The place of a number that is a part of a day, and so is none of its own.
    pub(super) part: Option<usize>,
}

impl Reading {
    /// The days and times that the word at `at` speaks of, with its neighbours. `lasts` is the length that begins there, and
    /// over how many words.
    pub(super) fn word(
        &mut self,
        near: Near<'_, '_>,
        at: usize,
        lasts: Option<(Length, usize)>,
        found: &mut impl FnMut(Typed),
    ) {
        let word = near.get(at, 0);
        clock(near, at, self.now, &mut |time| {
            self.time = Some(time);
            found(Typed::Time(time));
            if is_left_hour(near, at) {
                found(Typed::Left);
            }
        });
        if let Some((time, base)) = self.reckoned(near, at, lasts).zip(self.time) {
            found(Typed::Reckoned(time));
            found(Typed::Base(base));
        }
        for (date, days) in self.dates(near, at) {
            self.last = Some(date);
            self.left = is_left(near, at);
            found(Typed::Date(date));
            if self.left {
                found(Typed::Left);
            }
            days.into_iter().for_each(|days| found(Typed::Until(date.plus(days))));
        }
        if let Some((day, clock)) = word.split_once('t')
            && let (Some(day), Some((clock, offset))) = (Date::iso(day), date::clock_and_offset(clock))
        {
            // An hour elsewhere is another hour here.
            match (offset, self.now) {
                (Some(offset), Some(now)) => {
                    if let Some((day, clock)) = now.local(day, clock, offset) {
                        found(Typed::Date(day));
                        found(Typed::Time(clock));
                    }
                }
                (Some(_), None) => found(Typed::Date(day)),
                (None, _) => {
                    found(Typed::Date(day));
                    found(Typed::Time(clock));
                }
            }
        }
        self.soon(near, at, lasts, found);
    }

    /// `45 minutes after landing`, where the landing was spoken of with its time.
    fn reckoned(&self, near: Near<'_, '_>, at: usize, lasts: Option<(Length, usize)>) -> Option<Time> {
        let (Length { months: 0, days: 0, minutes }, words) = lasts? else { return None };
        let behind = near.get(at.saturating_add(words), 0);
        BEHIND.contains(&behind).then(|| self.time?.moved(minutes.into()))?
    }

    /// The days, each with how many days later something ends that begins on it.
    fn dates(&mut self, near: Near<'_, '_>, at: usize) -> Vec<(Date, Vec<i64>)> {
        let word = near.get(at, 0);
        let mut days: Vec<(Date, Vec<i64>)> = Vec::new();
        if let Some(date) = Date::figures(word) {
            days.push((date, stays(near, at, at.saturating_add(1)).collect()));
        }
        let (of_month, behind) = self.of_month(near, at);
        days.extend(of_month.iter().map(|date| (*date, stays(near, at, behind).collect())));
        let mut others = self.ideographic(near, at);
        others.extend(self.counted(near, at));
        others.extend(self.ordinal(near, at));
        others.extend(self.relative(near, at));
        days.extend(others.into_iter().map(|date| (date, Vec::new())));
        days
    }

    /// `3 December 2026`, `December 3rd, 2026`, `the 3rd of December`: the days it may be, and the place behind it.
    fn of_month(&mut self, near: Near<'_, '_>, at: usize) -> (Vec<Date>, usize) {
        let nothing = (Vec::new(), at);
        let Some(day) = day_of_month(near.get(at, 0)) else { return nothing };
        let behind = |step: usize| near.get(at, isize::try_from(step).unwrap_or(isize::MAX));
        let of = usize::from(OF.contains(&behind(1)));
        // From 4 to 7 March.
        let of = if UNTIL.contains(&behind(1)) && day_of_month(behind(2)).is_some() {
            2_usize.saturating_add(usize::from(OF.contains(&behind(3))))
        } else {
            of
        };
        let (month, step) = match (meaning(behind(of.saturating_add(1))).month, meaning(near.get(at, -1)).month) {
            (Some(month), _) => (month, of.saturating_add(2)),
            (None, Some(month)) => (month, 1),
            (None, None) => return nothing,
        };
        let step = step.saturating_add(usize::from(OF.contains(&behind(step))));
        match date::digits(behind(step)).filter(|_| behind(step).len() == 4) {
            Some(year) => {
                let behind = at.saturating_add(step);
                self.part = Some(behind);
                (Date::new(year.into(), month, day).into_iter().collect(), behind.saturating_add(1))
            }
            None => (date::without_year(month, day, self.now), at.saturating_add(1)),
        }
    }

    /// `12月4日`, with or without its year.
    fn ideographic(&self, near: Near<'_, '_>, at: usize) -> Vec<Date> {
        let (month, day) = (date::digits(near.get(at, 0)), date::digits(near.get(at, 2)));
        let (Some(month), Some(day), "月", "日" | "号" | "號") = (month, day, near.get(at, 1), near.get(at, 3))
        else {
            return Vec::new();
        };
        match (date::digits(near.get(at, -2)), near.get(at, -1)) {
            (Some(year), "年") => Date::new(year.into(), month, day).into_iter().collect(),
            _ => date::without_year(month, day, self.now),
        }
    }

    /// `the 7th` with no month: the next one after the last day that was spoken of, or after the turn began.
    fn ordinal(&self, near: Near<'_, '_>, at: usize) -> Vec<Date> {
        let word = near.get(at, 0);
        let ends = ["st", "nd", "rd", "th"];
        let Some(bare) = ends.iter().find_map(|end| word.strip_suffix(end)) else { return Vec::new() };
        let alone = meaning(near.get(at, 1)).month.is_none()
            && meaning(near.get(at, -1)).month.is_none()
            && !OF.contains(&near.get(at, 1))
            && matches!(near.get(at, -1), "the" | "on");
        let Some(day) = date::digits(bare).filter(|_| alone) else { return Vec::new() };
        let today = self.now.map(|now| now.today);
        let next = |first: Date| (0..62).map(|days| first.plus(days)).find(|date| date.day() == day);
        // What is brought forward goes to a day before the one it is moved from.
        let sooner = today.filter(|_| self.left && self.last.is_some());
        let mut days: Vec<Date> = self.last.or(today).into_iter().chain(sooner).filter_map(next).collect();
        days.dedup();
        days
    }

    /// `tomorrow`, `Friday`, `the day after tomorrow`.
    fn relative(&self, near: Near<'_, '_>, at: usize) -> Vec<Date> {
        let Some(TurnTime { today, .. }) = self.now else { return Vec::new() };
        let (word, before) = (near.get(at, 0), near.get(at, -1));
        let over = near.get(at, -2) == "day";
        let days = match (word, before) {
            ("tomorrow", "after") if over => Some(2),
            ("yesterday", "before") if over => Some(-2),
            ("mañana", "pasado") => Some(2),
            (_, "this") if meaning(word).half.is_some() => Some(0),
            // A time of day.
            ("morgen", "am" | "guten" | "jeden") | ("mañana", "la") => None,
            _ => meaning(word).days,
        };
        // A week from tomorrow is another day.
        let counted = before == "from" && matches!(meaning(near.get(at, -2)).unit, Some(Unit::Week | Unit::Month));
        if let Some(days) = days {
            return if counted { Vec::new() } else { vec![today.plus(days)] };
        }
        let after = [near.get(at, 1), near.get(at, 2)];
        let weekday = meaning(word).weekday.filter(|_| !is_dated(near, at) && !is_a_rhythm(near, at));
        // Two days after Monday, and a week from tomorrow, are other days.
        let counted = meaning(near.get(at, -2)).unit.is_some_and(|unit| match before {
            "after" | "before" => matches!(unit, Unit::Day | Unit::Night | Unit::Week | Unit::Month),
            "from" => matches!(unit, Unit::Week | Unit::Month),
            _ => false,
        });
        if weekday.is_some() && counted {
            return Vec::new();
        }
        let after_next = after == ["after", "next"] || after[0] == "week";
        if weekday.is_some() && (after_next || in_weeks(near, at)) {
            return Vec::new();
        }
        // Next week on Friday, and a week on Friday.
        let week = |step: isize| meaning(near.get(at, step)).unit == Some(Unit::Week);
        let step = if week(-1) { -2 } else { -3 };
        if let (Some(day), true) = (weekday, week(-1) || (week(-2) && WITHIN.contains(&before))) {
            return match near.get(at, step) {
                said if NEXT.contains(&said) => vec![today.monday().plus(7_i64.saturating_add(day))],
                said if THIS.contains(&said) => vec![today.monday().plus(day)],
                _ => Vec::new(),
            };
        }
        weekday.map(|day| date::weekday_near(today, day, before, after)).unwrap_or_default()
    }

    /// `in 45 minutes`, `in ten minutes`, `in an hour`: the day and the time.
    fn soon(&self, near: Near<'_, '_>, at: usize, lasts: Option<(Length, usize)>, found: &mut impl FnMut(Typed)) {
        let minutes = lasts.and_then(|(length, _)| match length {
            Length { months: 0, days: 0, minutes } => Some(minutes),
            Length { .. } => None,
        });
        let moment = self.now.zip(minutes).and_then(|(now, minutes)| now.later(minutes));
        let in_that = matches!(near.get(at, -1), "in" | "dans" | "tra" | "fra" | "en" | "em" | "over" | "za");
        if let (Some((day, time)), true) = (moment, in_that) {
            found(Typed::Date(day));
            found(Typed::Time(time));
        }
    }

    /// `in 3 days`, `two weeks ago`.
    fn counted(&self, near: Near<'_, '_>, at: usize) -> Option<Date> {
        let (today, days) = (self.now?.today, lasts(near, at)?);
        let later = matches!(near.get(at, -1), "in" | "dans" | "tra" | "fra" | "en" | "em" | "over" | "za")
            || (near.get(at, 2) == "from" && matches!(near.get(at, 3), "now" | "today"));
        let ago = near.get(at, 2) == "ago" || matches!(near.get(at, -1), "vor" | "hace");
        match (later, ago) {
            (true, _) => Some(today.plus(days)),
            (false, true) => Some(today.plus(-days)),
            (false, false) => None,
        }
    }
}

/// Whether the weekday at `at` is one of a rhythm that begins on a day of its own: on Thursdays, starting 12 March.
fn is_a_rhythm(near: Near<'_, '_>, at: usize) -> bool {
    const STARTING: [&str; 6] = ["starting", "beginning", "from", "ab", "desde", "vanaf"];
    let again = EVERY.contains(&near.get(at, -1)) || near.get(at, 0).ends_with('s');
    let begins = |step: &usize| {
        let at = at.saturating_add(*step);
        let day = (1..3)
            .map(|step| at.saturating_add(step))
            .any(|at| dates_a_month(near, at) || Date::figures(near.get(at, 0)).is_some());
        STARTING.contains(&near.get(at, 0)) && day
    };
    again && (1..=MOVED).any(|step| begins(&step))
}

/// So many words before a day its verb may stand, and so many behind it the day that it is moved to.
const MOVED: usize = 14;
const GOES: usize = 8;

/// Whether something is moved away from the day at `at`: move the call on Wednesday to Friday.
fn is_left(near: Near<'_, '_>, at: usize) -> bool {
    let word = |at: usize| near.get(at, 0);
    let moves = |at: usize| MOVES.iter().any(|verb| word(at).starts_with(verb));
    let goes_to = |step: &usize| goes_to_a_day(near, at.saturating_add(*step));
    let mut steps = (1..=GOES).take_while(|step| *step < 3 || !is_day(near, at.saturating_add(*step)));
    let arrives = at.checked_sub(1).is_some_and(|before| MOVED_TO.contains(&word(before)));
    let Some(goes) = steps.find(goes_to).filter(|_| !arrives) else { return false };
    (at.saturating_sub(MOVED)..at.saturating_add(goes)).any(moves)
}

/// Whether something is moved away from the hour at `at`: move my 4 pm to Friday.
fn is_left_hour(near: Near<'_, '_>, at: usize) -> bool {
    let word = |at: usize| near.get(at, 0);
    let goes = (1..=2).any(|step| goes_to_a_day(near, at.saturating_add(step)));
    let mut back = (at.saturating_sub(MOVED)..at).rev().take_while(|at| !MOVED_TO.contains(&word(*at)));
    goes && back.any(|at| MOVES.iter().any(|verb| word(at).starts_with(verb)))
}

/// Whether the word at `at` and the one or two behind it say to which day: to Friday, to the 5th.
fn goes_to_a_day(near: Near<'_, '_>, at: usize) -> bool {
    let the = THE.contains(&near.get(at, 1));
    MOVED_TO.contains(&near.get(at, 0))
        && (is_day(near, at.saturating_add(1)) || (the && is_day(near, at.saturating_add(2))))
}

/// Whether a day begins with the word at `at`.
fn is_day(near: Near<'_, '_>, at: usize) -> bool {
    let own = meaning(near.get(at, 0));
    let figures = || Date::figures(near.get(at, 0)).is_some();
    own.weekday.is_some() || own.days.is_some() || figures() || dates_a_month(near, at)
}

/// Whether the number at `at` is the day of a month that is named, or one by its ending.
fn dates_a_month(near: Near<'_, '_>, at: usize) -> bool {
    let ordinal = ["st", "nd", "rd", "th"].iter().any(|end| near.get(at, 0).strip_suffix(end).is_some_and(is_figures));
    is_of_a_day(near, at) || ordinal
}

/// Whether the weekday at `at` has its date behind it, which then says which one it is.
fn is_dated(near: Near<'_, '_>, at: usize) -> bool {
    let word = |step: isize| near.get(at, step);
    let ordinal =
        |word: &str| ["st", "nd", "rd", "th"].iter().any(|end| word.strip_suffix(end).is_some_and(is_figures));
    let steps = (1..=3).take_while(|step| !UNTIL.contains(&word(*step)));
    let mut dated = steps.map(|step: isize| {
        let (before, after) = (word(step.saturating_sub(1)), word(step.saturating_add(1)));
        let day = |word: &str| day_of_month(word).is_some();
        let month = meaning(word(step)).month.is_some() && ((step > 1 && day(before)) || day(after));
        month || ordinal(word(step)) || Date::figures(word(step)).is_some()
    });
    dated.any(|dated| dated)
}

fn is_figures(word: &str) -> bool {
    date::digits(word).is_some()
}

/// Friday in two weeks.
fn in_weeks(near: Near<'_, '_>, at: usize) -> bool {
    near.get(at, 1) == "in" && meaning(near.get(at, 3)).unit == Some(Unit::Week)
}

/// Whether the hour at `at` is one of another place: 3pm UTC, 15:00 London time.
fn is_elsewhere(near: Near<'_, '_>, at: usize) -> bool {
    let word = near.get(at, 0);
    let step = if meaning(near.get(at, 1)).half.is_some() || O_CLOCK.contains(&near.get(at, 1)) { 2 } else { 1 };
    let (zone, next) = (near.get(at, step), near.get(at, step.saturating_add(1)));
    // In French est is a word.
    let known = ZONES.contains(&zone) && (zone != "est" || !word.contains('h'));
    known || (next == "time" && word.contains(|c: char| c.is_ascii_digit()) && !HERE.contains(&zone))
}

/// Whether the number at `at` is of minutes before or after an hour: at 10 past 3.
fn is_of_an_hour(near: Near<'_, '_>, at: usize) -> bool {
    let (after, hour) = (near.get(at, 1), near.get(at, 2));
    let of = ["past", "to", "nach", "vor", "before", "after"].contains(&after);
    meaning(after).unit == Some(Unit::Minute)
        || (of && (Time::hour(hour).is_some() || meaning(hour).number.is_some() || number::in_words(hour).is_some()))
}

/// The day of a month that a word may be: `3`, `3rd`.
fn day_of_month(word: &str) -> Option<u32> {
    let bare = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    date::digits(bare).filter(|day| (1..=31).contains(day))
}

/// Whether the number at `at` is the day of a month, and so is no number of its own.
pub(super) fn is_of_a_day(near: Near<'_, '_>, at: usize) -> bool {
    let named = |step| meaning(near.get(at, step)).month.is_some();
    day_of_month(near.get(at, 0)).is_some()
        && (named(1) || named(-1) || (OF.contains(&near.get(at, 1)) && named(2)) || near.get(at, 1) == "月")
}

/// Times of day.
fn clock(near: Near<'_, '_>, at: usize, now: Option<TurnTime>, found: &mut impl FnMut(Time)) {
    let (word, before, after) = (near.get(at, 0), near.get(at, -1), near.get(at, 1));
    if is_elsewhere(near, at) {
        return;
    }
    if let Some(time) = Time::parse(word) {
        return found(afternoon(near, at, time));
    }
    // 2-4pm, which has its half of the day once.
    if let Some((from, to)) = word.split_once(['-', '–'])
        && let Some(from) = Time::hour(from)
        && let Some(end) = Time::parse(to).or_else(|| Time::hour(to).filter(|_| meaning(after).half.is_some()))
        && (meaning(after).half.is_some() || to.ends_with('m'))
    {
        let end = afternoon(near, at, end);
        found(if from.later() < end { from.later() } else { from });
        return found(end);
    }
    // A range, such as 10:00-11:00.
    if let Some((from, to)) = word.split_once(['-', '–'])
        && let (Some(from), Some(to)) = (Time::parse(from), Time::parse(to))
    {
        found(from);
        return found(to);
    }
    if let Some(hour) = half_past(near, at) {
        // Nobody means the night by it.
        let hour = if hour < 7 { hour.saturating_add(12) } else { hour };
        return Time::new(hour, 30, 0).map(|time| afternoon(near, at, time)).into_iter().for_each(found);
    }
    if let Some(time) = past_or_to(near, at) {
        return found(afternoon(near, at, time));
    }
    if let Some(time) = open_hour(near, at, now) {
        return found(time);
    }
    let said = AT.contains(&before) || O_CLOCK.contains(&after) || meaning(after).half.is_some();
    let dotted = || word.split_once('.').filter(|_| said).and_then(|(hour, minute)| Time::of(hour, minute));
    let bare =
        || Time::hour(word).filter(|_| said && !is_of_an_hour(near, at)).map(|time| minutes_after(near, at, time));
    let time = Time::french(word).or_else(dotted).or_else(bare);
    time.map(|time| afternoon(near, at, time)).into_iter().for_each(found);
}

/// A bare hour that only the words around it make one: `til 5`, which is the next five o'clock, and the 2 of `from 2 to 3:30`.
fn open_hour(near: Near<'_, '_>, at: usize, now: Option<TurnTime>) -> Option<Time> {
    let hour = Time::hour(near.get(at, 0))?;
    if UNTIL.contains(&near.get(at, 1)) {
        let after_a_day = is_a_day_word(near, at.checked_sub(1)?);
        let opens = FROM_HOUR.contains(&near.get(at, -1)) || after_a_day;
        let half = || Time::hour(near.get(at, 2)).filter(|_| meaning(near.get(at, 3)).half.is_some());
        let end = Time::parse(near.get(at, 2)).or_else(half).filter(|_| opens)?;
        let end = afternoon(near, at.saturating_add(2), end);
        return Some(if hour.later() < end { hour.later() } else { hour });
    }
    let after = meaning(near.get(at, 1));
    let other = after.unit.is_some() || after.month.is_some() || after.half.is_some();
    if other || !TILL.contains(&near.get(at, -1)) || O_CLOCK.contains(&near.get(at, 1)) {
        return None;
    }
    // Until 7 tomorrow morning.
    if let Some(half) = meaning(near.get(at, 2)).half.filter(|_| is_day(near, at.saturating_add(1))) {
        return Some(if half { hour.later() } else { hour });
    }
    Some(if hour.minute() <= now?.minute && hour.later().minute() > now?.minute { hour.later() } else { hour })
}

/// Whether the word at `at` ends a day: 10 March, Friday, tomorrow.
fn is_a_day_word(near: Near<'_, '_>, at: usize) -> bool {
    let own = meaning(near.get(at, 0));
    own.weekday.is_some() || own.days.is_some() || (own.month.is_some() && day_of_month(near.get(at, -1)).is_some())
}

/// `half past seven`, `a quarter to 4`, `ten past 3`.
fn past_or_to(near: Near<'_, '_>, at: usize) -> Option<Time> {
    let (word, join, part) = (near.get(at, 0), near.get(at, -1), near.get(at, -2));
    let minutes = match part {
        "half" => 30,
        "quarter" => 15,
        "five" => 5,
        "ten" => 10,
        "twenty" => 20,
        "twenty-five" => 25,
        _ => return None,
    };
    let hour = date::digits(word).or_else(|| numerals::worth(word)).or(meaning(word).number)?;
    // From ten to four has two hours.
    let range = FROM_HOUR.contains(&near.get(at, -3));
    let (hour, minutes) = match join {
        "past" => (hour, minutes),
        "to" if minutes < 30 && !range => (hour.checked_sub(1)?, 60_u32.saturating_sub(minutes)),
        _ => return None,
    };
    if !(1..=12).contains(&hour) {
        return None;
    }
    // Nobody means the night by it.
    Time::new(if hour < 7 { hour.saturating_add(12) } else { hour }, minutes, 0)
}

/// The hour that half is past: 3 for `halb 4`, `half vier` and `om half 4`.
fn half_past(near: Near<'_, '_>, at: usize) -> Option<u32> {
    let (word, named) = (near.get(at, 0), meaning(near.get(at, 0)).number);
    let hour = date::digits(word).or(named)?;
    match near.get(at, -1) {
        HALB => hour.checked_sub(1),
        HALF if named.is_some() || near.get(at, -2) == OM => hour.checked_sub(1),
        // In English some mean the hour before by it and some the hour itself.
        _ => None,
    }
}

/// `3点半`, `3点20分`.
fn minutes_after(near: Near<'_, '_>, at: usize, time: Time) -> Time {
    match (near.get(at, 1), near.get(at, 2), near.get(at, 3)) {
        ("点" | "點" | "時" | "时", "半", _) => time.plus(30),
        ("点" | "點" | "時" | "时", minute, "分") => date::digits(minute).map_or(time, |minute| time.plus(minute)),
        _ => time,
    }
}

/// The later of two readings, where a word beside it says so: 4 this afternoon.
fn afternoon(near: Near<'_, '_>, at: usize, time: Time) -> Time {
    let half = |step| meaning(near.get(at, step)).half;
    let small =
        matches!(near.get(at, 1), "this" | "in" | "de" | "del" | "da" | "di" | "po" | "'s" | "o'clock" | "uhr" | "uur");
    let clock = O_CLOCK.contains(&near.get(at, 1));
    let far = if small { half(2).or_else(|| half(3)).or_else(|| half(4).filter(|_| clock)) } else { None };
    if (near.get(at, 1), near.get(at, 2)) == ("at", "night") {
        // Five at night is said of no hour, and twelve is the end of the day.
        return if time.minute() < 720 && time.minute() >= 360 { time.later() } else { time };
    }
    // Tonight, further back: a day and a part of it in one word.
    let tonight = || (-10..-1).rev().find(|step| half(*step).is_some() && meaning(near.get(at, *step)).days.is_some());
    match half(1).or(far).or_else(|| half(-1)).or_else(|| half(tonight()?)) {
        Some(true) => time.later(),
        Some(false) | None => time,
    }
}

/// `three nights from 12 December`, `12 December for 3 nights`: how many days later it ends. The day stands at `at`, and
/// what follows it at `behind`.
fn stays(near: Near<'_, '_>, at: usize, behind: usize) -> impl Iterator<Item = i64> {
    let fills = |at: usize| FROM.contains(&near.get(at, 0)) || meaning(near.get(at, 0)).month.is_some();
    let before = (0..at).rev().find(|at| !fills(*at)).and_then(|unit| lasts(near, unit.checked_sub(1)?));
    let after = (behind..behind.saturating_add(5)).find(|at| !fills(*at)).and_then(|count| lasts(near, count));
    before.into_iter().chain(after)
}

/// How many days the number at `count` and the unit behind it are.
fn lasts(near: Near<'_, '_>, count: usize) -> Option<i64> {
    let days = meaning(near.get(count, 1)).unit?.days()?;
    let word = near.get(count, 0);
    let number = date::digits(word).map(|number| Number::whole(number.into())).or_else(|| number::in_words(word))?;
    (0..=1000_i64).find(|count| Number::whole((*count).into()) == number).map(|count| count.saturating_mul(days))
}
