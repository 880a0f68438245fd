//! Which records of a list a request means.
//!
//! A source that is declared trusted for an argument gives several values, and only some of them were meant. A record is
//! meant if it has more of what the request says than any other that could be taken in its place. What they all have says
//! nothing. Of two of which one has all that the other has and more, the other is not meant; and the same of names and
//! figures alone. The request may also say a place in the list, that something has the most or the least of something, or
//! that all are meant. What it excludes is not meant.

use std::collections::{BTreeSet, HashMap};

use super::{
    date::{TurnTime, digits},
    denials::excluded,
    extremes::{Extreme, Measure},
    index::Place,
    number::Number,
    numerals,
    phrases::{ALL, CHEAPEST, EVERYONE, LAST, THE},
    rows::Row,
    signs::{Sign, Signs, What, picking},
    slots::{Sink, singular},
    text::weight,
    tongues::meaning,
    typed::{Near, Typed, digest, placed},
};

/// So far back `from` and `to` may stand.
const REACH_BACK: usize = 3;
/// Say wherefrom, and whereto.
const FROM: [&str; 8] = ["from", "von", "aus", "depuis", "desde", "dal", "van", "z"];
const TO: [&str; 9] = ["to", "into", "nach", "auf", "vers", "a", "al", "naar", "na"];
/// So many words may stand between what is done and the name of what it is done with.
const GAP: usize = 4;
/// So far behind `all` what is meant may stand.
const REACH: isize = 4;

/// A word of more letters may be one of several.
const SEVERAL: usize = 3;

/// What a message says that may mean records of a list.
#[derive(Clone, Debug, Default)]
pub(super) struct Picks {
    /// Which span it is.
    span: u32,
    signs: Signs,
    /// With the word that says of what, if one does.
    place: Option<(Which, Option<u64>)>,
    extreme: Option<Extreme>,
    /// Every word, and at which byte it begins.
    said: Vec<(u64, usize)>,
    /// Of the words, those that say wherefrom and, with `true`, whereto.
    ways: Vec<(usize, bool)>,
    /// The words near each `all`, and whether it speaks of everyone.
    all: Vec<u64>,
    everyone: bool,
    /// What it speaks of several of, each by the word for one.
    several: Vec<u64>,
    /// How many of them there are: the three mails.
    count: Option<usize>,
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

/// What other arguments of a call are, so that it means no record.
#[derive(Clone, Debug, Default)]
pub(super) struct Used {
    pub(super) typed: Vec<Typed>,
    /// Where people have said them.
    pub(super) places: Vec<(Place, usize)>,
    /// Where people have said what they are, of what the schema lists; and where the others of the list.
    pub(super) chosen: Vec<Place>,
    pub(super) unchosen: Vec<Place>,
    /// The spans that have it.
    pub(super) spans: Vec<u32>,
}

/// What is asked about the records of a list.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) sink: Sink<'a>,
    /// What the other arguments are.
    pub(super) others: &'a Used,
    /// Whether none of them is of the same list.
    pub(super) alone: bool,
}

/// Which signs each of some records has, as far as they tell one from another.
struct Matched<'a> {
    signs: &'a Signs,
    of: Vec<Vec<usize>>,
}

impl Picks {
    /// What the folded text of a message says, which is span number `span`. `names` are the words that it writes as names,
    /// and `now` is when its turn began.
    pub(super) fn of(span: u32, text: &str, names: &[Box<str>], now: Option<TurnTime>) -> Self {
        let excluded = excluded(text);
        let signs = Signs::of(text, names, &excluded, now);
        let mut picks = Self { span, signs, excluded, ..Self::default() };
        let list = placed(text);
        let near = Near::of(&list);
        for (at, word) in list.iter().enumerate() {
            picks.said.push((digest(word.core), word.at));
            picks.read(near, at);
        }
        picks
    }

    /// Takes in what the word at `at` says of a list as a whole.
    fn read(&mut self, near: Near<'_, '_>, at: usize) {
        let (before, word) = (near.get(at, -1), near.get(at, 0));
        self.place = self.place.or_else(|| Some((which(near, at)?, said_of(near, at))));
        self.extreme = self.extreme.take().or_else(|| Extreme::read(near, at));
        if THE.contains(&before) || before == "those" {
            let count = digits(word).or_else(|| numerals::worth(word));
            self.count = self.count.or_else(|| usize::try_from(count?).ok());
        }
        if singular(word) != word && weight(word) > SEVERAL {
            self.several.push(digest(singular(word)));
        }
        self.everyone |= EVERYONE.contains(&word);
        if ALL.contains(&word) {
            self.all.extend((1..=REACH).map(|step| digest(singular(near.get(at, step)))));
        }
        if FROM.contains(&word) || TO.contains(&word) {
            self.ways.push((at, TO.contains(&word)));
        }
    }

    /// Whether the byte `at` is in what is not meant.
    pub(super) fn excludes(&self, at: usize) -> bool {
        self.excluded.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    /// Whether the message names what the folded `value` names, and nowhere but where it says that it is not meant.
    pub(super) fn denies(&self, value: &str) -> bool {
        picking(value, 2).any(|(_, word)| self.signs.denies(word))
    }

    /// Which of the records are meant; none if the message says nothing of this list.
    pub(super) fn picks(&self, rows: &[&Row], asked: &Asked<'_>) -> Option<Vec<bool>> {
        if self.signs.is_too_long {
            return Some(vec![rows.len() == 1; rows.len()]);
        }
        let kind = &*asked.sink.kind();
        let all: Vec<BTreeSet<usize>> = rows.iter().map(|row| self.signs.of_row(row)).collect();
        // Where another argument is said, no sign is free, whatever else it may be read as.
        let used: BTreeSet<usize> = self.signs.places(|what| asked.others.has(&what));
        let free = |sign: &Sign| !used.contains(&sign.at) && !asked.others.is_said_at(self.span, sign.at);
        // What is not meant of a thing is no reason against the only one, and what is meant elsewhere is not excluded.
        let excluded = |sign: &Sign| rows.len() > 1 && sign.is_excluded && free(sign) && !self.signs.says(sign.what);
        let left_out = Matched::of(&self.signs, &all, kind, excluded).meant();
        let own = |fits: &dyn Fn(&Sign) -> bool| {
            let mut own = Matched::of(&self.signs, &all, kind, |sign| !sign.is_excluded && fits(sign));
            own.clear(&left_out);
            own
        };
        let mut matched = own(&free);
        if !matched.any() {
            matched = own(&|_| true);
        }
        let mut meant = matched.meant();
        if meant.iter().filter(|meant| **meant).count() > 1 {
            let near = self.near_what_is_done(&matched, &meant, asked);
            meant.iter_mut().zip(near).for_each(|(meant, near)| *meant &= near);
        }
        let found = self.as_a_whole(rows, meant, kind, asked.sink)?;
        Some(found.into_iter().zip(left_out).map(|(found, out)| found && !out).collect())
    }

    /// What the message says of a list as a whole, where words mean these of it.
    fn as_a_whole(&self, rows: &[&Row], meant: Vec<bool>, kind: &[u64], sink: Sink<'_>) -> Option<Vec<bool>> {
        let any = meant.contains(&true);
        let every = |yes: bool| Some(vec![yes; rows.len()]);
        let single = rows.iter().all(|row| row.count == 1);
        if (single || !any) && self.means_all(kind, sink) {
            return every(true);
        }
        let tells = |extreme: &Extreme| !any && rows.iter().all(|row| row.measure(extreme).is_some());
        if let Some(extreme) = self.extreme.as_ref().filter(|extreme| extreme.is_of(kind) || tells(extreme)) {
            return Some(have_the_most(rows, &meant, extreme));
        }
        match self.place {
            Some(_) if rows.iter().any(|row| row.is_doubtful) => every(false),
            Some((place, of)) if of.is_none_or(|of| kind.contains(&of)) || !any => at_a_place(rows, &meant, place),
            _ if !any && (self.count == Some(rows.len()) || self.means_such(rows)) => every(true),
            _ => any.then_some(meant),
        }
    }

    /// Of several records that are meant, those of which the message says what is done here: accept the one, and decline the
    /// other.
    fn near_what_is_done(&self, matched: &Matched<'_>, meant: &[bool], asked: &Asked<'_>) -> Vec<bool> {
        let at = |places: &[Place]| -> Vec<usize> {
            let here = places.iter().filter(|place| place.span == self.span);
            here.filter_map(|place| usize::try_from(place.at).ok()).collect()
        };
        let (chosen, unchosen) = (at(&asked.others.chosen), at(&asked.others.unchosen));
        let goes = |sign: usize| {
            let last = |places: &[usize]| places.iter().filter(|place| **place < sign).max().copied();
            last(&unchosen).is_none() || last(&chosen) > last(&unchosen)
        };
        let reached = self.reached(matched, meant, &asked.sink.does());
        let any = asked.alone && reached.contains(&true);
        let crossed = |row: usize| {
            let goes = asked.sink.goes();
            goes.is_some_and(|to| matched.at(row).all(|sign| self.goes(sign) == Some(!to)))
        };
        let near = |(row, reached): (usize, bool)| {
            (chosen.is_empty() || matched.at(row).any(goes)) && (reached || !any) && !crossed(row)
        };
        reached.iter().copied().enumerate().map(near).collect()
    }

    /// Whether what is said at a byte is whereto something goes, or wherefrom, if the message says so.
    fn goes(&self, byte: usize) -> Option<bool> {
        let at = self.said.partition_point(|(_, own)| *own < byte);
        let near = |(way, _): &&(usize, bool)| (at.saturating_sub(REACH_BACK)..at).contains(way);
        self.ways.iter().rev().find(near).map(|(_, to)| *to)
    }

    /// The records that the message speaks of right behind one of these words, or behind another that it does so of.
    fn reached(&self, matched: &Matched<'_>, meant: &[bool], verbs: &[u64]) -> Vec<bool> {
        let mut reached = vec![false; meant.len()];
        for (at, _) in self.said.iter().enumerate().filter(|(_, (word, _))| verbs.contains(word)) {
            let mut gap = 0_usize;
            for (_, byte) in self.said.iter().skip(at.saturating_add(1)) {
                gap = gap.saturating_add(1);
                let here = |row: &usize| meant.get(*row) == Some(&true) && matched.at(*row).any(|sign| sign == *byte);
                for row in (0..meant.len()).filter(here) {
                    gap = 0;
                    reached.get_mut(row).into_iter().for_each(|reached| *reached = true);
                }
                if gap > GAP {
                    break;
                }
            }
        }
        reached
    }

    /// Whether the message speaks of several of what the records are called by a key: my flights.
    fn means_such(&self, rows: &[&Row]) -> bool {
        !rows.is_empty() && rows.iter().all(|row| row.key_words().any(|word| self.several.contains(&word)))
    }

    /// Whether the message means all of a kind, and everyone of people.
    fn means_all(&self, kind: &[u64], sink: Sink<'_>) -> bool {
        let short = ["to", "in", "by", "of", "id"].map(digest);
        self.all.iter().any(|word| kind.contains(word) && !short.contains(word))
            || (self.everyone && (sink.is_someone() || sink.is_for_persons()))
    }
}

/// Which records have the most or the least of something, of those that words mean. Where that cannot be told, none has.
fn have_the_most(rows: &[&Row], meant: &[bool], extreme: &Extreme) -> Vec<bool> {
    let any = meant.contains(&true);
    let among = || rows.iter().enumerate().filter(|(at, _)| !any || meant.get(*at) == Some(&true));
    if any && among().count() == 1 {
        return meant.to_vec();
    }
    let measures: Option<Vec<(usize, Measure)>> = among().map(|(at, row)| Some((at, row.measure(extreme)?))).collect();
    let found = extreme.of(&measures.unwrap_or_default());
    (0..rows.len()).map(|row| found == Some(row)).collect()
}

/// Which records are at the place that the message says. Where words mean records too, both have to agree.
fn at_a_place(rows: &[&Row], meant: &[bool], place: Which) -> Option<Vec<bool>> {
    let any = meant.contains(&true);
    let by_words: Vec<usize> = (0..rows.len()).filter(|at| meant.get(*at) == Some(&true)).collect();
    let counted = counted(rows);
    let one = |found: Option<usize>| Some((0..rows.len()).map(|row| found == Some(row)).collect());
    let fallback = || if any { Some(meant.to_vec()) } else { (rows.len() > 1).then(|| vec![false; rows.len()]) };
    let at = |list: &[usize]| match place {
        Which::Nth(place) => list.get(place).copied(),
        Which::Last | Which::Cheapest => list.last().copied(),
    };
    match (place, at(&counted)) {
        (Which::Cheapest, _) => {
            let among = if any { &by_words } else { &counted };
            let prices: Option<Vec<(usize, Number)>> =
                among.iter().map(|at| Some((*at, rows.get(*at)?.price()?))).collect();
            let Some(prices) = prices else {
                // Of what has no price nothing is the cheapest.
                return if rows.iter().any(|row| row.price().is_some()) { fallback() } else { None };
            };
            let lowest = prices.iter().map(|(_, price)| price).min_by(|one, other| one.compare(other))?;
            let low = |row: usize| prices.iter().any(|(at, price)| *at == row && price == lowest);
            Some((0..rows.len()).map(low).collect())
        }
        (_, Some(row)) if !any || by_words == [row] => one(Some(row)),
        (_, Some(row)) => one(Some(row).filter(|_| by_words.len() > 1 && at(&by_words) == Some(row))),
        (_, None) => fallback(),
    }
}

impl<'a> Matched<'a> {
    /// Of the signs that `all` says each record has, those that fit. What all have means none of them; of a list of one, it
    /// is what was asked for.
    fn of(signs: &'a Signs, all: &[BTreeSet<usize>], kind: &[u64], fits: impl Fn(&Sign) -> bool) -> Self {
        let mut count: HashMap<usize, usize> = HashMap::new();
        all.iter().flatten().for_each(|number| {
            let count = count.entry(*number).or_default();
            *count = count.saturating_add(1);
        });
        let tells = |number: &&usize| {
            let sign = signs.get(**number);
            let common = all.len() > 1 && count.get(*number) == Some(&all.len());
            let is_kind =
                |sign: &Sign| matches!(sign.what, What::Word(word) | What::Value(word) if kind.contains(&word));
            !common && sign.is_some_and(|sign| !is_kind(sign) && fits(sign))
        };
        Self { signs, of: all.iter().map(|row| row.iter().filter(tells).copied().collect()).collect() }
    }

    /// Where the signs of a record are said.
    fn at(&self, row: usize) -> impl Iterator<Item = usize> {
        let signs = self.of.get(row).into_iter().flatten();
        signs.filter_map(|number| self.signs.get(*number).map(|sign| sign.at))
    }

    fn any(&self) -> bool {
        self.of.iter().any(|signs| !signs.is_empty())
    }

    fn clear(&mut self, which: &[bool]) {
        self.of.iter_mut().zip(which).filter(|(_, out)| **out).for_each(|(signs, _)| signs.clear());
    }

    /// Which records have some signs while no other has them all and more; and of names and figures, if it has any, no other
    /// has them all and more.
    fn meant(&self) -> Vec<bool> {
        let strong = |number: &&usize| self.signs.get(**number).is_some_and(|sign| sign.is_strong);
        let names: Vec<Vec<usize>> =
            self.of.iter().map(|signs| signs.iter().filter(strong).copied().collect()).collect();
        let more = |one: &[usize], other: &[usize]| other.len() > one.len() && is_within(one, other);
        let meant = |(own, named): (&Vec<usize>, &Vec<usize>)| {
            let mut others = self.of.iter().zip(&names);
            !own.is_empty()
                && !others.any(|(other, theirs)| more(own, other) || (!named.is_empty() && more(named, theirs)))
        };
        self.of.iter().zip(&names).map(meant).collect()
    }
}

/// Whether all of one list are in the other. Both are in order.
fn is_within(one: &[usize], other: &[usize]) -> bool {
    let mut rest = other.iter();
    one.iter().all(|own| rest.any(|number| number == own))
}

impl Used {
    /// Whether a byte of a span is in what another argument is.
    fn is_said_at(&self, span: u32, at: usize) -> bool {
        self.places.iter().any(|(place, len)| {
            let from = usize::try_from(place.at).unwrap_or(usize::MAX);
            place.span == span && (from..from.saturating_add(*len)).contains(&at)
        })
    }

    fn has(&self, what: &What) -> bool {
        self.typed.iter().any(|typed| match (typed, what) {
            (Typed::Date(day), What::Day(said)) => day == said,
            (Typed::Date(day), What::Weekday(said)) => day.weekday() == *said,
            (Typed::Time(time), What::Time(said)) => time == said,
            (Typed::Number(sum) | Typed::Amount(_, sum), What::Sum(said)) => sum == said,
            _ => false,
        })
    }
}

/// The rows among which a place is counted: those that name a record.
fn counted(rows: &[&Row]) -> Vec<usize> {
    let any = rows.iter().any(|row| row.has_code);
    let counts = |row: &Row| row.has_code || !any;
    rows.iter().enumerate().filter(|(_, row)| counts(row)).map(|(at, _)| at).collect()
}

/// Of what a place in a list is said: of the second offer, the offer.
fn said_of(near: Near<'_, '_>, at: usize) -> Option<u64> {
    let next = singular(near.get(at, 1));
    let none = next.is_empty() || matches!(next, "one" | "of" | "in" | "on" | "from" | "you" | "please");
    (!none && next.is_ascii()).then(|| digest(next))
}

/// `the second one`, `2番目`, `the last`.
fn which(near: Near<'_, '_>, at: usize) -> Option<Which> {
    let (before, word, after) = (near.get(at, -1), near.get(at, 0), near.get(at, 1));
    if after == "番"
        && let Some(place) = digits(word)
    {
        return usize::try_from(place).ok()?.checked_sub(1).map(Which::Nth);
    }
    if CHEAPEST.contains(&word) && digits(before).or_else(|| numerals::worth(before)).is_none() {
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
