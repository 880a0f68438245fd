//! Which of several days a time of day goes with.

use super::{
    date::{Date, Time},
    phrases::FROM_HOUR,
    text::Word,
    tongues::UNTIL,
    typed::Near,
};

/// Between two days or hours these say that something lasts from the one to the other.
const LASTS: [&str; 10] = ["until", "till", "til", "bis", "hasta", "até", "tot", "t/m", "–", "-"];
/// Between the two days or hours these stand, where such a word is before the first.
const BETWEEN: [&str; 4] = ["between", "zwischen", "entre", "tussen"];
/// Stand before the first of two days.
const FROM_DAY: [&str; 5] = ["vom", "du", "dal", "del", "desde"];
/// So many words a day is written over, and an hour, before or behind the word between two.
const DAY: usize = 4;
const HOUR: usize = 2;

/// A day is written over up to three words, of which the first counts.
const DAY_WORDS: usize = 2;

/// So many words further on the next of several days begins.
const TOGETHER: usize = 4;

/// So many words the second of two ends stands behind the first at most: 10 am to 11 am.
const RANGE: usize = 3;

/// A day or a time that a text speaks of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub(super) sentence: u32,
    /// At which word it begins.
    pub(super) at: usize,
    pub(super) when: When,
    /// Whether it is a time that ends what another begins: the second of `10:30 to 11:00`.
    pub(super) ends: bool,
}

/// A day, or a time of day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum When {
    Day(Date),
    Time(Time),
    /// Something is moved away from what stands at the same word.
    Left,
}

/// The days and the times of a text, or of one sentence of it, in order. A day may be one of two.
pub(super) struct Moments {
    days: Vec<(usize, Vec<Date>)>,
    /// Those that are the two ends of one are together.
    times: Vec<(usize, Vec<Time>)>,
    /// The words at which there is a day or a time that something is moved away from.
    left: Vec<usize>,
}

impl Moments {
    /// Those of one sentence, or of all.
    pub(super) fn of(all: &[Said], sentence: Option<u32>) -> Self {
        let mut moments = Self { days: Vec::new(), times: Vec::new(), left: Vec::new() };
        for said in all.iter().filter(|said| sentence.is_none_or(|own| said.sentence == own)) {
            match said.when {
                When::Time(time) => match moments.times.last_mut() {
                    Some((at, times)) if said.ends && said.at.saturating_sub(*at) <= RANGE => times.push(time),
                    _ => moments.times.push((said.at, vec![time])),
                },
                When::Left => moments.left.push(said.at),
                When::Day(day) => {
                    let known = sentence.is_none() && moments.days.iter().any(|(_, days)| days.contains(&day));
                    match moments.days.last_mut() {
                        Some((at, days)) if *at == said.at => days.push(day),
                        _ if known => {}
                        _ => moments.days.push((said.at, vec![day])),
                    }
                }
            }
        }
        moments
    }

    /// Whether there are several days.
    pub(super) fn has_days(&self) -> bool {
        self.days.len() > 1
    }

    /// Whether the time that stands at a word goes with this day. A day that is not of the text may.
    pub(super) fn goes_with(&self, day: Date, time: Time, at: usize) -> bool {
        let of_day = |days: &Vec<Date>| days.contains(&day);
        // What is moved away from a day has no hour on it any more.
        let mut own = self.days.iter().filter(|(_, days)| of_day(days)).peekable();
        if self.left.contains(&at) || (own.peek().is_some() && own.all(|(at, _)| self.left.contains(at))) {
            return false;
        }
        let several = self.days.iter().any(|(_, days)| !of_day(days));
        if !several || !self.days.iter().any(|(_, days)| of_day(days)) {
            return true;
        }
        let gap = |(own, _): &&(usize, Vec<Date>)| {
            if *own > at { own.saturating_sub(at) } else { at.saturating_sub(*own).saturating_sub(DAY_WORDS) }
        };
        let mut times: Vec<&Vec<Time>> = Vec::new();
        self.times.iter().for_each(|(_, own)| {
            if !times.contains(&own) {
                times.push(own);
            }
        });
        if self.days.len() == times.len() {
            let mut pairs = times.iter().zip(&self.days).filter(|(own, _)| own.contains(&time));
            return pairs.any(|(_, (_, days))| of_day(days));
        }
        let Some((nearest, _)) = self.days.iter().min_by_key(gap) else { return true };
        self.days.iter().any(|(own, days)| of_day(days) && self.is_together(*own, *nearest))
    }

    /// Whether two days are said together, as the first and the last of several are: no time and few words are between.
    fn is_together(&self, one: usize, other: usize) -> bool {
        let (from, to) = (one.min(other), one.max(other));
        let within: Vec<usize> = self.days.iter().map(|(at, _)| *at).filter(|at| (from..=to).contains(at)).collect();
        let close = within.windows(2).all(|pair| matches!(pair, [a, b] if b.saturating_sub(*a) <= TOGETHER));
        close && !self.times.iter().any(|(at, _)| (from..to).contains(at))
    }
}

/// How often a day or an hour is said. A day may be said over several words: Friday the 13th.
pub(super) fn mentions(all: &[Said], when: When) -> usize {
    let places: Vec<usize> = all.iter().filter(|said| said.when == when).map(|said| said.at).collect();
    let again = places.windows(2).filter(|pair| matches!(pair, [one, next] if next.saturating_sub(*one) <= DAY_WORDS));
    places.len().saturating_sub(again.count())
}

/// The two ends of what lasts, of the words of a text: from ten to eleven. `left` is whether something is moved from a byte,
/// and `moves` whether the text moves anything: then it is from here to there.
pub(super) fn stretches(
    words: &[Word<'_>],
    all: &[Said],
    left: impl Fn(usize) -> bool,
    moves: bool,
) -> Vec<(When, When)> {
    let near = Near::of(words);
    let mut found = Vec::new();
    let byte = |at: usize| words.get(at).map_or(usize::MAX, |word| word.at);
    for pair in all.windows(2) {
        if let [Said { at, when: from @ When::Time(_), .. }, Said { at: other, when: to @ When::Time(_), .. }] = pair
            && at == other
        {
            found.push((*from, *to));
        }
    }
    for at in (0..words.len()).filter(|at| UNTIL.contains(&near.get(*at, 0)) || LASTS.contains(&near.get(*at, 0))) {
        let word = near.get(at, 0);
        let close = |said: &Said, gap: usize| gap <= if matches!(said.when, When::Day(_)) { DAY } else { HOUR };
        let Some(last) = all.iter().rev().find(|said| said.at < at && close(said, at.saturating_sub(said.at))) else {
            continue;
        };
        let Some(next) = all.iter().find(|said| said.at > at && close(said, said.at.saturating_sub(at))) else {
            continue;
        };
        let before = |list: &[&str]| {
            (1..=2).any(|back| last.at.checked_sub(back).is_some_and(|at| list.contains(&near.get(at, 0))))
        };
        let lasts = match word {
            word if LASTS.contains(&word) => true,
            "and" | "und" => before(&BETWEEN),
            "to" if !moves => true,
            _ => before(&FROM_HOUR) || before(&FROM_DAY),
        };
        if !lasts || last.sentence != next.sentence || left(byte(last.at)) {
            continue;
        }
        for from in all.iter().filter(|said| said.at == last.at) {
            for to in all.iter().filter(|said| said.at == next.at) {
                if matches!((from.when, to.when), (When::Day(_), When::Day(_)) | (When::Time(_), When::Time(_))) {
                    found.push((from.when, to.when));
                }
            }
        }
    }
    found
}
