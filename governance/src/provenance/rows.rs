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
    phrases::{CHEAPEST, EXCEPT, EXCEPT_TWO, FROM_A_DAY, LAST, LEAVE, NO_DENIAL, THE},
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
    /// What stands before the colon of a line such as `city: Oslo`, as a digest.
    key: Option<u64>,
    /// Whether it is the heading of what follows.
    heads: bool,
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
        row.key = line.split_once(": ").filter(|(key, _)| !key.contains(' ')).map(|(key, _)| digest(key));
        row.heads = line.ends_with(':');
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
        match self.place {
            Some(place) => Self::at_its_place(rows, mine, &picked, place),
            None => picked.contains(&true).then(|| picked.get(mine) == Some(&true)),
        }
    }

    /// Whether row number `mine` is at the place that the message says. Where words pick rows too, both have to agree.
    fn at_its_place(rows: &[&Row], mine: usize, picked: &[bool], place: Which) -> Option<bool> {
        let any = picked.contains(&true);
        let by_words: Vec<usize> = (0..rows.len()).filter(|at| picked.get(*at) == Some(&true)).collect();
        let counted = counted(rows, mine);
        let fallback = || if any { Some(by_words.contains(&mine)) } else { (rows.len() > 1).then_some(false) };
        match place {
            Which::Nth(_) | Which::Last => {
                let at = |list: &[usize]| match place {
                    Which::Nth(place) => list.get(place).copied(),
                    _ => list.last().copied(),
                };
                match at(&counted) {
                    Some(row) if !any || by_words == [row] => Some(row == mine),
                    Some(row) => Some(row == mine && by_words.len() > 1 && at(&by_words) == Some(row)),
                    None => fallback(),
                }
            }
            Which::Cheapest => {
                let among = if any { &by_words } else { &counted };
                let least = |row: &&Row| row.amounts.iter().filter_map(Typed::number).min_by(Number::compare);
                let prices: Option<Vec<(usize, Number)>> =
                    among.iter().map(|at| Some((*at, least(rows.get(*at)?)?))).collect();
                let Some(prices) = prices else {
                    // Of what has no price nothing is the cheapest.
                    return if rows.iter().any(|row| !row.amounts.is_empty()) { fallback() } else { None };
                };
                let lowest = prices.iter().map(|(_, price)| price).min_by(|one, other| one.compare(other))?;
                Some(prices.iter().any(|(at, price)| *at == mine && price == lowest))
            }
        }
    }
}

/// The rows among which a place is counted: those of the same key, of a list of fields; or those that name a record.
fn counted(rows: &[&Row], mine: usize) -> Vec<usize> {
    let key = rows.get(mine).and_then(|row| row.key);
    let any = rows.iter().any(|row| row.has_code);
    let counts = |row: &Row| if key.is_some() { row.key == key } else { !row.heads && (row.has_code || !any) };
    rows.iter().enumerate().filter(|(_, row)| counts(row)).map(|(at, _)| at).collect()
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
    // Of the English words, a second is a while.
    let english = before == "a" && matches!(word, "first" | "second" | "third" | "fourth" | "fifth" | "last");
    if !THE.contains(&before) || elsewhere || english {
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
    // Backwards, so that a long text without a stop is read once.
    let mut lasts = vec![0; all.len()];
    let mut last = 0;
    for (at, own) in lasts.iter_mut().enumerate().rev() {
        last = if breaks(at) { at } else { last };
        *own = last;
    }
    let mut found: Vec<(usize, usize)> = Vec::new();
    for ((at, word), last) in all.iter().enumerate().zip(lasts) {
        if found.last().is_some_and(|(_, to)| word.at < *to) {
            continue;
        }
        let leaves = LEAVE.contains(&word.core)
            && all.get(at..=last).is_some_and(|clause| clause.iter().any(|word| word.core == "as"));
        let near = |at: Option<usize>| at.and_then(|at| all.get(at)).map_or("", |next| next.core);
        let (before, next) = (near(at.checked_sub(1)), near(at.checked_add(1)));
        let other = |word: &str| NO_DENIAL.iter().any(|part| word.contains(part));
        let denies = || EXCEPT.contains(&word.core) && !other(before) && !other(next);
        if leaves || EXCEPT_TWO.contains(&(word.core, next)) || denies() {
            found.push((word.at, end(last)));
        }
    }
    found
}
