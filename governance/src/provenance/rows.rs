//! The records of a list, as far as a request can mean one of them.
//!
//! Only the trusted part of a record counts, so that nobody else can have it meant. A record says what stands in it, what
//! lies in it, and what those say that it lies in.

use std::collections::BTreeSet;

use super::{
    date::{Date, Time},
    extremes::{Extreme, Measure, measured},
    index::Place,
    number::Number,
    records::{MASK, Record, Records},
    signs::{MOST_WORDS, bare, numbered, picking, stem},
    slots::{Sink, name_words},
    text::{folded, words},
    typed::{Typed, digest, scan},
};

/// A longer list is not looked through.
const MOST_ROWS: usize = 512;

/// A record of a list, as far as it can be meant.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// Whether a word of it has letters and figures, as the name of a record has.
    pub(super) has_code: bool,
    /// Whether a word of it is a person by the sign before it.
    pub(super) has_sign: bool,
    /// Whether nobody whom anyone trusts says anything of it.
    pub(super) is_doubtful: bool,
    /// Whether anybody may have written some of it.
    is_mixed: bool,
    /// The record that it lies in, and the name of the list there.
    within: Option<usize>,
    list: Box<str>,
    pub(super) says: Says,
    /// How many values it has.
    pub(super) count: usize,
    lines: Vec<Line>,
}

/// What a record says.
#[derive(Clone, Debug, Default)]
pub(super) struct Says {
    pub(super) words: BTreeSet<u64>,
    /// The beginnings of its longer words.
    pub(super) stems: BTreeSet<u64>,
    /// Its values, each as a whole.
    pub(super) values: BTreeSet<u64>,
    pub(super) days: Vec<Date>,
    pub(super) months: BTreeSet<u32>,
    pub(super) times: Vec<Time>,
    pub(super) sums: Vec<Number>,
    pub(super) amounts: Vec<Typed>,
}

/// A value of a record.
#[derive(Clone, Debug)]
struct Line {
    key: Box<str>,
    measure: Option<Measure>,
}

/// A value of a list, and where it stands.
#[derive(Clone, Debug)]
struct Spot {
    place: (u32, u32),
    row: usize,
    key: Box<str>,
    is_code: bool,
}

/// The records of a list.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    spots: Vec<Spot>,
}

/// Where a value of a list stands: of which record it is, and what stands before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spotted<'a> {
    pub(super) row: usize,
    pub(super) key: &'a str,
    /// Whether it has no key, and begins with a word of letters and figures, or is a number.
    pub(super) is_code: bool,
}

impl Rows {
    /// The records of a text that is put together from spans. `cuts` says at which byte each of them begins.
    pub(super) fn of(text: &str, cuts: &[(usize, u32)]) -> Self {
        let Records { records, fields } = Records::read(text);
        let row = |record: &Record| {
            let list = record.list.as_str().into();
            Row { within: record.within, list, is_doubtful: true, ..Row::default() }
        };
        let mut rows: Vec<Row> = records.iter().map(row).collect();
        let mut own: Vec<Says> = vec![Says::default(); rows.len()];
        let starts: Vec<usize> = fields.iter().map(|field| field.start).collect();
        let places = places(text, cuts, &starts);
        // What stands before the first value of a record is of it too.
        let mut begins: Vec<(usize, usize)> = records.iter().map(|record| record.start).zip(0..).collect();
        begins.sort_unstable();
        let starts: Vec<usize> = begins.iter().map(|(start, _)| *start).collect();
        let begins = begins.iter().zip(self::places(text, cuts, &starts));
        let mut spots: Vec<Spot> =
            begins.map(|((_, row), place)| Spot { place, row: *row, key: "".into(), is_code: false }).collect();
        for (field, place) in fields.iter().zip(places) {
            let value = folded(&field.text);
            if let (Some(row), Some(says)) = (rows.get_mut(field.record), own.get_mut(field.record)) {
                row.take_in(&field.key, &value);
                says.take_in(&value);
            }
            let is_sign = |word: &str| is_code(word) || super::date::digits(word).is_some();
            let is_code = field.key.is_empty() && words(&value).take(2).any(|word| is_sign(word.core));
            spots.push(Spot { place, row: field.record, key: field.key.as_str().into(), is_code });
        }
        for (record, says) in records.iter().zip(&mut own) {
            says.take_in_words(&folded(&record.name));
        }
        spots.sort_by_key(|spot| spot.place);
        let around = |row: usize| {
            std::iter::successors(rows.get(row).and_then(|row| row.within), |row| {
                rows.get(*row).and_then(|row| row.within)
            })
        };
        // A record says what it has in it, and what those say that it lies in.
        let mut all = own.clone();
        for (at, says) in own.iter().enumerate() {
            for outer in around(at) {
                all.get_mut(outer).into_iter().for_each(|outer| outer.join(says));
            }
        }
        for at in 0..rows.len() {
            let outer: Vec<&Says> = around(at).filter_map(|outer| own.get(outer)).collect();
            all.get_mut(at).into_iter().for_each(|says| outer.iter().for_each(|outer| says.join(outer)));
        }
        rows.iter_mut().zip(all).for_each(|(row, says)| row.says = says);
        Self { rows, spots }
    }

    /// The value that stands at a place.
    pub(super) fn at(&self, place: Place) -> Option<Spotted<'_>> {
        let behind = self.spots.partition_point(|spot| spot.place <= (place.span, place.at));
        let spot = self.spots.get(behind.checked_sub(1)?)?;
        Some(Spotted { row: spot.row, key: &spot.key, is_code: spot.is_code })
    }

    /// Whether there are more than are looked through.
    pub(super) const fn are_too_many(&self) -> bool {
        self.rows.len() > MOST_ROWS
    }

    pub(super) fn row(&self, at: usize) -> Option<&Row> {
        self.rows.get(at)
    }

    /// A place in each record.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        self.spots.iter().map(|spot| Place { span: spot.place.0, at: spot.place.1 })
    }

    /// The records that could be taken in place of another: those that have a value with the same key, and those that lie
    /// beside it.
    pub(super) fn beside(&self, spotted: Spotted<'_>) -> Vec<usize> {
        let list = |row: usize| self.rows.get(row).map(|row| &row.list);
        let near = |row: usize| list(row) == list(spotted.row) || self.are_one(row, spotted.row);
        let same = |spot: &&Spot| *spot.key == *spotted.key && near(spot.row);
        let mut rows: BTreeSet<usize> = self.spots.iter().filter(same).map(|spot| spot.row).collect();
        let Some(own) = self.rows.get(spotted.row) else { return Vec::new() };
        // A record is no line, and one of another kind is none of its own.
        let alike = |row: &Row| {
            !own.is_record() || row.lines.iter().any(|line| own.lines.iter().any(|mine| mine.key == line.key))
        };
        let lies = |(_, row): &(usize, &Row)| row.within == own.within && row.list == own.list && alike(row);
        rows.extend(self.rows.iter().enumerate().filter(lies).map(|(at, _)| at));
        rows.into_iter().collect()
    }

    /// Whether one of two records is, or lies in, the other.
    pub(super) fn are_one(&self, one: usize, other: usize) -> bool {
        self.lies_in(one, other) || self.lies_in(other, one)
    }

    /// Whether a record is, or lies in, another.
    pub(super) fn lies_in(&self, inner: usize, outer: usize) -> bool {
        let within = |row: &usize| self.rows.get(*row).and_then(|row| row.within);
        std::iter::successors(Some(inner), within).any(|row| row == outer)
    }
}

/// Where bytes of a text stand in the folded texts of the spans that it is put together from. `starts` is in order.
fn places(text: &str, cuts: &[(usize, u32)], starts: &[usize]) -> Vec<(u32, u32)> {
    let mut found = Vec::with_capacity(starts.len());
    let mut cuts = cuts.iter().copied().peekable();
    let (mut span, mut at, mut len) = (0, 0, 0_usize);
    for start in starts {
        while let Some((begin, number)) = cuts.next_if(|(begin, _)| begin <= start) {
            (span, at, len) = (number, begin, 0);
        }
        len = len.saturating_add(folded(text.get(at..*start).unwrap_or_default()).len());
        // A space at the beginning of a piece is one of the text, unless the text begins there or has one before it.
        let piece = text.get(at..*start).unwrap_or_default();
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        if len > folded(piece).len()
            && piece.starts_with(char::is_whitespace)
            && !before.is_some_and(char::is_whitespace)
        {
            len = len.saturating_add(1);
        }
        at = *start;
        found.push((span, u32::try_from(len).unwrap_or(u32::MAX)));
    }
    found
}

impl Row {
    /// Takes in a value, folded, and what stands before it.
    fn take_in(&mut self, key: &str, value: &str) {
        self.count = self.count.saturating_add(1);
        self.is_mixed |= value.contains(MASK);
        if value.chars().all(|c| c == MASK) && !value.is_empty() {
            return;
        }
        self.is_doubtful = false;
        self.has_code |= words(value).any(|word| is_code(word.core));
        self.has_sign |= words(value).any(|word| word.core.starts_with('@'));
        if !key.is_empty() {
            self.lines.push(Line { key: key.into(), measure: measured(value) });
        }
    }

    /// Whether anybody may have written some of it.
    pub(super) const fn is_mixed(&self) -> bool {
        self.is_mixed
    }

    /// Whether its values have keys before them.
    pub(super) fn is_record(&self) -> bool {
        self.lines.len() > 1
    }

    /// Whether a value with this key may be what `sink` is called: no other key of the record is called so more.
    pub(super) fn fits(&self, key: &str, sink: Sink<'_>) -> bool {
        let goes = |key: &str| {
            let shares = sink.shares(key);
            // The passport of now, and not the old passport.
            let more = name_words(key).count().saturating_sub(shares);
            (shares, std::cmp::Reverse(if shares > 0 { more } else { 0 }))
        };
        // The name of a record is looked for among such names.
        let named = sink.is_identifier() && Sink::names_a_record(key);
        let lines = self.lines.iter().filter(|line| !named || Sink::names_a_record(&line.key));
        let most = lines.map(|line| goes(&line.key)).max();
        // The sign of a record alone fits whatever names one; of a person, where no other is of persons.
        let persons =
            || self.lines.iter().any(|line| Sink::is_of_persons(&line.key) && Sink::names_a_record(&line.key));
        let alone = Sink::is_a_sign(key) && !sink.is_money() && !(sink.is_someone() && persons());
        key.is_empty() || alone || (Some(goes(key)) >= most && !sink.is_of_another_kind(key))
    }

    /// The least sum of money that it says, or its price by the key before that.
    pub(super) fn price(&self) -> Option<Number> {
        let sums = self.says.amounts.iter().filter_map(Typed::number);
        let by_key = || self.lines.iter().filter(|line| Extreme::is_of_a_price(&line.key));
        sums.min_by(Number::compare).or_else(|| {
            by_key().find_map(|line| match line.measure {
                Some(Measure::Number(number)) => Some(number),
                _ => None,
            })
        })
    }

    /// The words of the keys of its values.
    pub(super) fn key_words(&self) -> impl Iterator<Item = u64> {
        self.lines.iter().flat_map(|line| name_words(&line.key).map(|word| digest(&word)).collect::<Vec<_>>())
    }

    /// How much the record has of what `extreme` compares.
    pub(super) fn measure(&self, extreme: &Extreme) -> Option<Measure> {
        let by_key = self.lines.iter().filter(|line| extreme.compares(&line.key)).find_map(|line| line.measure);
        by_key.or_else(|| match (extreme.is_of_time(), self.says.days.as_slice()) {
            (true, [day]) => Some(Measure::Moment(*day, self.says.times.first().map_or(0, |time| time.minute()))),
            _ => None,
        })
    }
}

impl Says {
    fn take_in(&mut self, value: &str) {
        self.take_in_words(value);
        let all: Vec<&str> = words(value).map(|word| bare(word.core)).collect();
        self.values.extend(all.iter().map(|word| digest(word)));
        if !all.is_empty() && all.len() <= MOST_WORDS {
            self.values.insert(digest(&all.join(" ")));
        }
        scan(value, None, |mention| match mention.typed {
            Typed::Date(day) => {
                self.months.insert(day.month());
                self.days.push(day);
            }
            Typed::Time(time) => self.times.push(time),
            Typed::Number(number) => self.sums.push(number),
            _ => {}
        });
        // Of 41/day, the amount.
        scan(&value.replace('/', " "), None, |mention| {
            if matches!(mention.typed, Typed::Amount(..)) {
                self.amounts.push(mention.typed);
                self.sums.extend(mention.typed.number());
            }
        });
    }

    fn take_in_words(&mut self, text: &str) {
        self.words.extend(picking(text, 2).map(|(_, word)| digest(word)));
        self.words.extend(numbered(text).map(|(_, pair)| pair));
        self.stems.extend(picking(text, 2).filter_map(|(_, word)| stem(word)));
    }

    fn join(&mut self, other: &Self) {
        self.words.extend(&other.words);
        self.stems.extend(&other.stems);
        self.values.extend(&other.values);
        self.days.extend(&other.days);
        self.months.extend(&other.months);
        self.times.extend(&other.times);
        self.sums.extend(&other.sums);
        self.amounts.extend(&other.amounts);
    }
}

/// Whether a word has letters and figures and is no day, time or sum.
pub(super) fn is_code(word: &str) -> bool {
    let letter = |c: char| c.is_alphabetic();
    word.contains(letter) && word.contains(|c: char| c.is_ascii_digit()) && !word.contains([':', '@', ','])
}
