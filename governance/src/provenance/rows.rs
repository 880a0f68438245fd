//! Which row of a list a request picks.
//!
//! A source that is declared trusted for an argument gives several values, and only some of them were meant. A row is
//! picked by what it has in common with the request and not with every other row: a word, an amount of money, a day that
//! the request says something is from, or its place in the list. Where the request picks rows, no other row vouches; where
//! it excludes one, that one does not. Only the trusted part of a row counts, so that nobody else can make it be picked.

use super::{
    date::{Date, TurnTime},
    number::Number,
    numerals,
    phrases::{CHEAPEST, EXCEPT, EXCEPT_TWO, FROM_A_DAY, LAST, LEAVE, THE},
    slots::singular,
    text::{folded, weight, words},
    tongues::meaning,
    typed::{Near, Typed, digest, placed, scan},
};

/// A shorter word stands in too many rows to pick one.
const PICKS: usize = 4;
/// A longer list is not looked through.
pub(super) const MOST_ROWS: usize = 512;

/// A row of a list, as far as it can be picked.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// At which byte of the folded text it begins.
    pub(super) start: usize,
    /// Whether a word of it has letters and figures, as the name of a record has.
    pub(super) has_code: bool,
    /// Whether a word of it is a person by the sign before it.
    pub(super) has_sign: bool,
    words: Vec<u64>,
    days: Vec<Date>,
    amounts: Vec<Typed>,
}

/// What a message says that may pick a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Picks {
    /// Each with whether it is excluded.
    words: Vec<(u64, bool)>,
    amounts: Vec<Typed>,
    days: Vec<Date>,
    weekdays: Vec<i64>,
    place: Option<Which>,
    /// The bytes of the folded text that say what is not meant.
    excluded: Vec<(usize, usize)>,
}

/// A place in a list, from its beginning or its end.
#[derive(Clone, Copy, Debug)]
enum Which {
    Nth(usize),
    Last,
    Cheapest,
}

/// The rows of a list: its lines.
pub(super) fn rows(text: &str) -> Vec<Row> {
    let mut start = 0_usize;
    let mut rows = Vec::new();
    for line in text.lines().map(folded).map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()) {
        let mut row = Row { start, ..Row::default() };
        row.has_code = words(&line).any(|word| is_code(word.core));
        row.has_sign = words(&line).any(|word| word.core.starts_with('@'));
        row.words = picking(&line).map(|(_, word)| digest(word)).collect();
        scan(&line, None, |mention| {
            if let Typed::Date(day) = mention.typed {
                row.days.push(day);
            }
        });
        // Of 41/day, the amount.
        scan(&line.replace('/', " "), None, |mention| {
            if matches!(mention.typed, Typed::Amount(..)) {
                row.amounts.push(mention.typed);
            }
        });
        rows.push(row);
        start = start.saturating_add(line.len()).saturating_add(1);
    }
    rows
}

/// Whether a word has letters and figures and is no day, time or sum.
pub(super) fn is_code(word: &str) -> bool {
    let letter = |c: char| c.is_alphabetic();
    word.contains(letter) && word.contains(|c: char| c.is_ascii_digit()) && !word.contains([':', '@', ','])
}

impl Picks {
    /// What the folded text of a message picks. `now` is when its turn began.
    pub(super) fn of(text: &str, now: Option<TurnTime>) -> Self {
        let excluded = excluded(text);
        let out = |at: usize| excluded.iter().any(|(from, to)| (*from..*to).contains(&at));
        let words = picking(text).map(|(at, word)| (digest(word), out(at))).collect();
        let mut picks = Self { words, ..Self::default() };
        let list = placed(text);
        let near = Near::of(&list);
        for at in 0..list.len() {
            picks.place = picks.place.or_else(|| which(near, at));
            if FROM_A_DAY.contains(&near.get(at, -1)) {
                picks.weekdays.extend(meaning(near.get(at, 0)).weekday);
            }
        }
        scan(text, now, |mention| match mention.typed {
            Typed::Date(day) if FROM_A_DAY.contains(&mention.before) => picks.days.push(day),
            Typed::Amount(..) => picks.amounts.push(mention.typed),
            _ => {}
        });
        picks.excluded = excluded;
        picks
    }

    /// Whether the byte `at` is in what is not meant.
    pub(super) fn excludes(&self, at: usize) -> bool {
        self.excluded.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    /// Whether row number `mine` is picked; none if the message picks nothing of this list.
    pub(super) fn picks(&self, rows: &[&Row], mine: usize, kind: &[u64]) -> Option<bool> {
        match self.place {
            Some(Which::Nth(place)) if place < rows.len() => return Some(place == mine),
            Some(Which::Last) => return Some(mine.saturating_add(1) == rows.len()),
            Some(Which::Cheapest) => {
                let least = |row: &&Row| row.amounts.iter().filter_map(Typed::number).min_by(Number::compare);
                let prices: Vec<Option<Number>> = rows.iter().map(least).collect();
                let least = prices.iter().flatten().min_by(|one, other| one.compare(other));
                if !prices.contains(&None) && least.is_some() {
                    return Some(prices.get(mine).is_some_and(|own| own.as_ref() == least));
                }
            }
            _ => {}
        }
        let mut picked = vec![false; rows.len()];
        let mut left_out = vec![false; rows.len()];
        let common = |marks: &mut Vec<bool>, out: bool, has: &dyn Fn(&Row) -> bool| {
            let with: Vec<bool> = rows.iter().map(|row| has(row)).collect();
            // What all rows have picks none of them; of a list of one, it is what was asked for.
            if with.contains(&false) || (rows.len() == 1 && !out) {
                marks.iter_mut().zip(with).for_each(|(mark, with)| *mark |= with);
            }
        };
        for (word, excluded) in self.words.iter().filter(|(word, _)| !kind.contains(word)) {
            common(if *excluded { &mut left_out } else { &mut picked }, *excluded, &|row| row.words.contains(word));
        }
        for amount in &self.amounts {
            common(&mut picked, false, &|row| row.amounts.contains(amount));
        }
        for day in &self.days {
            common(&mut picked, false, &|row| row.days.contains(day));
        }
        for weekday in &self.weekdays {
            common(&mut picked, false, &|row| row.days.iter().any(|day| day.weekday() == *weekday));
        }
        picked.iter_mut().zip(&left_out).for_each(|(picked, out)| *picked &= !out);
        if left_out.get(mine) == Some(&true) {
            return Some(false);
        }
        picked.contains(&true).then(|| picked.get(mine) == Some(&true))
    }
}

/// The words of a text that can pick a row, each with where it begins.
fn picking(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0_usize;
    text.split_inclusive(|c: char| !c.is_alphanumeric()).filter_map(move |part| {
        let begin = at;
        at = at.saturating_add(part.len());
        let word = part.trim_end_matches(|c: char| !c.is_alphanumeric());
        let year = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
        (weight(word) >= PICKS && !year).then(|| (begin, singular(word)))
    })
}

/// `the second one`, `2番目`, `the last`.
fn which(near: Near<'_, '_>, at: usize) -> Option<Which> {
    let (before, word, after) = (near.get(at, -1), near.get(at, 0), near.get(at, 1));
    if after == "番"
        && let Some(place) = super::date::digits(word)
    {
        return usize::try_from(place).ok()?.checked_sub(1).map(Which::Nth);
    }
    if CHEAPEST.contains(&word) && super::date::digits(before).or_else(|| numerals::worth(before)).is_none() {
        return Some(Which::Cheapest);
    }
    // The first time, the third of May, the second floor: no place in a list.
    let other = meaning(after);
    let elsewhere = other.unit.is_some() || other.month.is_some() || matches!(after, "of" | "time" | "floor" | "name");
    if !THE.contains(&before) || elsewhere {
        return None;
    }
    let place = meaning(word).ordinal.and_then(|place| usize::try_from(place).ok()?.checked_sub(1));
    place.map(Which::Nth).or_else(|| LAST.contains(&word).then_some(Which::Last))
}

/// What a text says is not meant: from a word such as `not` or `except` to the end of the clause.
fn excluded(text: &str) -> Vec<(usize, usize)> {
    let all: Vec<_> = words(text).collect();
    let end = |at: usize| all.get(at).map_or(text.len(), |word| word.at.saturating_add(word.core.len()));
    let breaks = |at: usize| {
        let next = all.get(at.saturating_add(1));
        next.is_none_or(|next| {
            let between = text.get(end(at)..next.at).unwrap_or_default();
            between.contains([',', ';', '.', '!', '?', ':', '(', '—', '。', '、', '，'])
                || matches!(next.core, "but" | "aber" | "sondern" | "mais" | "ma" | "pero" | "maar" | "ale")
        })
    };
    let mut found = Vec::new();
    for (at, word) in all.iter().enumerate() {
        let last = (at..all.len()).find(|at| breaks(*at)).unwrap_or(at);
        let leaves = LEAVE.contains(&word.core)
            && all.get(at..=last).is_some_and(|clause| clause.iter().any(|word| word.core == "as"));
        let next = all.get(at.saturating_add(1)).map_or("", |next| next.core);
        if leaves || EXCEPT_TWO.contains(&(word.core, next)) || EXCEPT.contains(&word.core) {
            found.push((word.at, end(last)));
        }
    }
    found
}
