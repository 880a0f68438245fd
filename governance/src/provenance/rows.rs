//! Which row of a list a request picks.
//!
//! A source that is declared trusted for an argument gives several values, and only some of them were meant. A row is
//! picked by what it has in common with the request and not with every other row: a word, an amount of money, a day that
//! the request says something is from, its place in the list, or that it is the largest or newest. Where the request picks
//! rows, no other row vouches; where it excludes one, that one does not. Only the trusted part of a row counts, so that
//! nobody else can make it be picked. A row is a line, or a record that begins with a dash and takes several lines.

use super::{
    date::{Date, Time, TurnTime},
    denials::excluded,
    extremes::{Extreme, Measure, measured},
    number::Number,
    numerals,
    phrases::{CHEAPEST, FROM_A_DAY, LAST, THE},
    slots::{Sink, singular},
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
    times: Vec<Time>,
    amounts: Vec<Typed>,
    lines: Vec<Line>,
    part: Part,
    /// Whether its first line is of somebody whom nobody trusts.
    pub(super) is_doubtful: bool,
}

/// A line of a row that has a key before its value.
#[derive(Clone, Debug)]
struct Line {
    start: usize,
    key: Box<str>,
    measure: Option<Measure>,
}

/// How a line goes together with those around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Part {
    /// By itself.
    #[default]
    Alone,
    /// Lines that are set in behind it belong to it.
    Opens,
    /// It has the name of a record after its key: what comes with other keys belongs to it.
    Names,
    /// It has another key.
    Field,
    /// Set in: it belongs to what opened a record before it, if anything did.
    SetIn,
}

/// What a message says that may pick a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Picks {
    /// Each with whether it is excluded.
    words: Vec<(u64, bool)>,
    amounts: Vec<Typed>,
    days: Vec<Date>,
    times: Vec<Time>,
    weekdays: Vec<i64>,
    place: Option<Which>,
    extreme: Option<Extreme>,
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

/// The rows of a list: its lines, and those that are set in with the one that they belong to.
pub(super) fn rows(text: &str) -> Vec<Row> {
    let mut start = 0_usize;
    let mut rows: Vec<Row> = Vec::new();
    for raw in text.lines() {
        let line = folded(raw);
        let line = line.trim_end();
        if line.is_empty() {
            continue;
        }
        let mut row = Row::of(line, start);
        row.part = if raw.starts_with([' ', '\t']) {
            Part::SetIn
        } else if raw.starts_with("- ") {
            Part::Opens
        } else {
            row.part_by_key()
        };
        start = start.saturating_add(line.len()).saturating_add(1);
        match rows.last_mut() {
            Some(last) if row.joins(last) => last.take_in(&row),
            _ => rows.push(row),
        }
    }
    rows
}

/// The row that a text begins which nobody is trusted for, if it begins one.
pub(super) fn doubtful(text: &str) -> Vec<Row> {
    let opens = text.starts_with("- ");
    opens.then(|| Row { part: Part::Opens, is_doubtful: true, ..Row::default() }).into_iter().collect()
}

impl Row {
    /// The row that is the folded line, which begins at the byte `start`.
    fn of(line: &str, start: usize) -> Self {
        let mut row = Self { start, ..Self::default() };
        row.has_code = words(line).any(|word| is_code(word.core));
        row.has_sign = words(line).any(|word| word.core.starts_with('@'));
        row.key = line.split_once(": ").filter(|(key, _)| !key.contains(' ')).map(|(key, _)| digest(key));
        row.heads = line.ends_with(':');
        row.words = picking(line, 2).map(|(_, word)| digest(word)).collect();
        let bare = line.strip_prefix("- ").unwrap_or(line);
        let (key, value) = bare.split_once(": ").unwrap_or((bare.strip_suffix(':').unwrap_or_default(), ""));
        if !key.is_empty() && !key.contains(' ') {
            row.lines.push(Line { start, key: key.into(), measure: measured(value) });
        }
        scan(line, None, |mention| match mention.typed {
            Typed::Date(day) => row.days.push(day),
            Typed::Time(time) => row.times.push(time),
            _ => {}
        });
        // Of 41/day, the amount.
        scan(&line.replace('/', " "), None, |mention| {
            if matches!(mention.typed, Typed::Amount(..)) {
                row.amounts.push(mention.typed);
            }
        });
        row
    }

    /// Whether it is of the record that the row before it begins.
    pub(super) fn joins(&self, last: &Self) -> bool {
        match (self.part, last.part) {
            (Part::SetIn, Part::Opens | Part::Names) => true,
            (Part::Field, Part::Names) => {
                !self.lines.iter().any(|line| last.lines.iter().any(|own| own.key == line.key))
            }
            _ => false,
        }
    }

    fn part_by_key(&self) -> Part {
        match self.lines.first() {
            Some(line) if Sink::names_a_record(&line.key) => Part::Names,
            Some(_) => Part::Field,
            None => Part::Alone,
        }
    }

    /// Takes in one more line of the same record.
    pub(super) fn take_in(&mut self, row: &Self) {
        self.has_code |= row.has_code;
        self.has_sign |= row.has_sign;
        (self.key, self.heads) = (None, false);
        self.words.extend(&row.words);
        self.days.extend(&row.days);
        self.times.extend(&row.times);
        self.amounts.extend(&row.amounts);
        self.lines.extend(row.lines.iter().cloned());
    }

    /// Whether nothing is known of it.
    pub(super) const fn is_blank(&self) -> bool {
        self.is_doubtful && self.words.is_empty() && self.lines.is_empty()
    }

    /// Whether its values have keys before them, and it is no single line.
    pub(super) fn is_record(&self) -> bool {
        self.lines.len() > 1
    }

    /// The key of the line that the byte `at` is in, of a row of one span.
    pub(super) fn key_at(&self, at: usize) -> Option<&str> {
        self.lines.iter().rev().find(|line| line.start <= at).map(|line| &*line.key)
    }

    /// Whether a value with this key may be what `sink` is called: no other key of the record is called so more.
    pub(super) fn fits(&self, key: Option<&str>, sink: Sink<'_>) -> bool {
        let own = key.map_or(0, |key| sink.shares(key));
        own >= self.lines.iter().map(|line| sink.shares(&line.key)).max().unwrap_or(0)
            && key.is_none_or(|key| !sink.is_of_another_kind(key))
    }

    /// How much the record has of what `extreme` compares.
    fn measure(&self, extreme: &Extreme) -> Option<Measure> {
        self.lines.iter().filter(|line| extreme.compares(&line.key)).find_map(|line| line.measure)
    }
}

/// Whether a word has letters and figures and is no day, time or sum.
pub(super) fn is_code(word: &str) -> bool {
    let letter = |c: char| c.is_alphabetic();
    word.contains(letter) && word.contains(|c: char| c.is_ascii_digit()) && !word.contains([':', '@', ','])
}

impl Picks {
    /// What the folded text of a message picks. `names` are the short words that it writes as names, and `now` is when its turn began.
    pub(super) fn of(text: &str, names: &[Box<str>], now: Option<TurnTime>) -> Self {
        let excluded = excluded(text);
        let out = |at: usize| excluded.iter().any(|(from, to)| (*from..*to).contains(&at));
        let fits = |word: &str| weight(word) >= PICKS || names.iter().any(|name| **name == *word);
        let words = picking(text, 2).filter(|(_, word)| fits(word)).map(|(at, word)| (digest(word), out(at))).collect();
        let mut picks = Self { words, ..Self::default() };
        let list = placed(text);
        let near = Near::of(&list);
        for at in 0..list.len() {
            picks.place = picks.place.or_else(|| which(near, at));
            picks.extreme = picks.extreme.take().or_else(|| Extreme::read(near, at));
            if FROM_A_DAY.contains(&near.get(at, -1)) {
                picks.weekdays.extend(meaning(near.get(at, 0)).weekday);
            }
        }
        scan(text, now, |mention| match mention.typed {
            Typed::Date(day) if FROM_A_DAY.contains(&mention.before) => picks.days.push(day),
            Typed::Amount(..) => picks.amounts.push(mention.typed),
            Typed::Time(time) if !excluded.iter().any(|(from, to)| (*from..*to).contains(&mention.byte)) => {
                picks.times.push(time);
            }
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
        for time in &self.times {
            common(&mut picked, false, &|row| row.times.contains(time));
        }
        for weekday in &self.weekdays {
            common(&mut picked, false, &|row| row.days.iter().any(|day| day.weekday() == *weekday));
        }
        picked.iter_mut().zip(&left_out).for_each(|(picked, out)| *picked &= !out);
        if left_out.get(mine) == Some(&true) {
            return Some(false);
        }
        if let Some(extreme) = self.extreme.as_ref().filter(|extreme| extreme.is_of(kind)) {
            return Some(Self::is_extreme(rows, mine, &picked, extreme));
        }
        match self.place {
            Some(_) if rows.iter().any(|row| row.is_doubtful) => Some(false),
            Some(place) => Self::at_its_place(rows, mine, &picked, place),
            None => picked.contains(&true).then(|| picked.get(mine) == Some(&true)),
        }
    }

    /// Whether row number `mine` has the most or the least of something, of those that words pick. Where that cannot be
    /// told, none has.
    fn is_extreme(rows: &[&Row], mine: usize, picked: &[bool], extreme: &Extreme) -> bool {
        let any = picked.contains(&true);
        let among = || rows.iter().enumerate().filter(|(at, _)| !any || picked.get(*at) == Some(&true));
        if any && among().count() == 1 {
            return picked.get(mine) == Some(&true);
        }
        let measures: Option<Vec<(usize, Measure)>> =
            among().map(|(at, row)| Some((at, row.measure(extreme)?))).collect();
        extreme.of(&measures.unwrap_or_default()) == Some(mine)
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
fn picking(text: &str, least: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0_usize;
    text.split_inclusive(|c: char| !c.is_alphanumeric()).filter_map(move |part| {
        let begin = at;
        at = at.saturating_add(part.len());
        let word = part.trim_end_matches(|c: char| !c.is_alphanumeric());
        let year = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
        (weight(word) >= least && !year).then(|| (begin, singular(word)))
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
