//! The forms a value may have beside those of its atoms: how a call writes what a request said in other words.
//!
//! Each is a composition of atoms, and each atom has to be said. What a request kept together has to stay together: an
//! amount goes with the currency it was said in and with the account it stands next to, an end is the start of the same
//! call and a length, and a name is that of the address beside it.

use ephor_base::arguments::Value;

use super::{
    access, bare,
    date::{Moment, Time, between},
    derive::{MIN_CHARS, Walk},
    index::{Place, TypedPlace},
    length::Length,
    measures::{adjective, dimension, glued, measure},
    number::{Currency, Number},
    phrases::{EACH, JOINS, OFF},
    slots::{PathPart, Sink, beside, cuts_a_quotation, is_when, name_words},
    text::{Word, folded, weight, words},
    tongues::{FOR, Unit, meaning},
    typed::{Near, SIGNS, Typed, Whole, as_segment, path_of, placed, scan, whole},
};

/// Schemes that stand before an address or a number and say no more than its form does.
const SCHEMES: [&str; 2] = ["mailto:", "tel:"];
/// A shorter word is no name of what is to be done.
const VERB: usize = 3;
/// How many words may stand between two things that are said of each other.
const REACH: usize = 3;
/// How many between a number and the name it is said of: fifteen percent of all of my salary.
const FAR: usize = 5;
/// So many words the end of a clause is worth, and so many a word that joins two of a kind.
const A_CLAUSE: usize = 20;
const A_JOIN: usize = 5;
/// With a number before, these say of what sort something is and not how many there are: 5 star rooms.
const SORTS: [&str; 6] = ["star", "stars", "bed", "seater", "man", "door"];
/// A quotation begins with one of these.
const QUOTES: [char; 7] = ['"', '“', '„', '«', '「', '\'', '‘'];
/// Words of the name of a yes or no that only say that it is one.
const FLAGS: [&str; 14] = [
    "is", "has", "make", "include", "includes", "with", "send", "enable", "enabled", "allow", "allows", "add", "show",
    "use",
];
/// How deep the start of a call is looked for.
pub(super) const DEPTH: usize = 4;

/// Whether one of the values that a schema lists was said.
pub(super) enum Said {
    /// By whom.
    Yes(String),
    /// Only as what is not meant.
    Not,
}

/// A level of access that a request speaks of.
struct SaidLevel {
    span: u32,
    /// At which word.
    at: usize,
    level: usize,
}

/// The address without its scheme. One with headers in it is left as it is.
pub(super) fn bare_address(value: &str) -> &str {
    let rest = SCHEMES.iter().find_map(|scheme| value.strip_prefix(scheme));
    rest.filter(|rest| !rest.contains(['?', '&', '%', ',', ';'])).unwrap_or(value)
}

/// Whether an amount was said to be one for each.
pub(super) fn is_each(place: &TypedPlace) -> bool {
    EACH.contains(&&*place.before) || EACH.contains(&&*place.after)
}

impl<'a> Walk<'a, '_> {
    /// Any form that is put together from others.
    pub(super) fn form(&self, sink: Sink<'a>, value: &str) -> Option<String> {
        // An amount in an object with its currency, written as a text.
        if let Some(number) = Number::parse(value).filter(|_| self.is_an_amount(sink)) {
            return self.amount(sink, number, value);
        }
        let interval = || self.interval(sink, value);
        let end = || if sink.is_end() { self.end(sink, value) } else { None };
        let name = || self.name_of_the_address(sink, value);
        interval()
            .or_else(end)
            .or_else(name)
            .or_else(|| self.next_to(sink, value))
            .or_else(|| self.whole_day(sink, value))
            .or_else(|| self.today(sink, value))
            .or_else(|| self.part_of_a_path(sink, value))
            .or_else(|| value.split_once('/').and_then(|(one, other)| self.typed(sink, path_of(one, other), value)))
            .or_else(|| self.without_its_sign(sink, value))
            .or_else(|| if sink.is_of_a_link() { self.typed(sink, as_segment(value)?, value) } else { None })
    }

    /// The currency that stands beside an amount.
    pub(super) fn currency_beside(&self, sink: Sink<'_>) -> Option<Currency> {
        let code = |value: &Value| text(value).and_then(|text| Currency::parse(&folded(text)));
        let of = |entries: &[(&'a str, &'a Value)]| -> Vec<(&str, Currency)> {
            entries.iter().filter_map(|(key, value)| Some((*key, code(value)?))).collect()
        };
        let own = of(&self.beside);
        // Of an amount in an object of its own, the currency may stand beside that.
        let all = if own.is_empty() { of(self.given) } else { own };
        let own = match all.as_slice() {
            [(_, one)] => Some(*one),
            // Of two, the one that is called as the amount is: what is sold, beside the amount that is.
            several => several.iter().find(|(key, _)| sink.is_called(key)).map(|(_, currency)| *currency),
        };
        own.filter(|_| sink.is_money() || sink.is_minor() || self.is_an_amount(sink))
    }

    /// Whether a number is an amount in a currency that the call or the argument's name gives, or in hundredths of one.
    pub(super) fn is_of_a_currency(&self, sink: Sink<'_>) -> bool {
        sink.is_minor() || sink.currency().is_some() || self.currency_beside(sink).is_some()
    }

    /// Whether the value is the one number in an object that has a currency beside it and nothing else.
    fn is_an_amount(&self, sink: Sink<'_>) -> bool {
        let code =
            |value: &Value| text(value).is_some_and(|text| text.len() == 3 && Currency::parse(&folded(text)).is_some());
        sink.key != sink.argument && self.beside.len() == 2 && self.beside.iter().any(|(_, value)| code(value))
    }

    /// An amount in hundredths. Without a currency beside it, in whatever currency it was said.
    pub(super) fn minor(
        &self,
        sink: Sink<'_>,
        currency: Option<Currency>,
        number: Number,
        value: &str,
    ) -> Option<String> {
        let in_that =
            |currency: Currency| self.typed(sink, Typed::Amount(currency, number.shifted(currency.places())?), value);
        match currency {
            Some(currency) => in_that(currency),
            None => Currency::all().find_map(in_that),
        }
    }

    /// Whether a time of day was said for this argument, where others were reckoned from it: of 45 minutes after landing,
    /// the landing is one moment and what comes after it another. The sentence that reckons says whose it is.
    pub(super) fn is_that_time(&self, sink: Sink<'_>, said: &TypedPlace, time: Time) -> bool {
        let mut bases = self.table.said(Typed::Base(time)).iter().filter(|base| base.span == said.span);
        !bases.any(|base| sink.is_named_in(self.table.sentence(base.place())))
    }

    /// A moment in seconds since 1970.
    pub(super) fn unix(&self, sink: Sink<'_>, number: i128) -> Option<String> {
        let (day, time) = self.table.of_unix(sink.unix(number)?)?;
        self.moment(sink, day, time, &number.to_string())
    }

    /// A yes, where somebody said the name of the argument.
    pub(super) fn flag(&self, sink: Sink<'_>) -> Option<String> {
        let name = flag_name(sink.key, &["is", "has", "make"]);
        // Of a short one, only what is to be done with something: pin it.
        let short = weight(&name) <= MIN_CHARS;
        let word = weight(&name) >= VERB && name.chars().all(|c| c.is_alphabetic() || c == ' ');
        let mut places = self.table.vouching(&name, sink).filter(|_| word);
        let (place, _) = places.find(|(place, _)| {
            let at = usize::try_from(place.at).unwrap_or(usize::MAX);
            let text = self.table.text(place.span);
            let around = [clause(text, at, true), clause(text, at.saturating_add(name.len()), false)];
            let ends = around.iter().flatten().any(|word| OFF.iter().any(|off| word.starts_with(off)));
            let done = around[1].first().is_some_and(|word| matches!(*word, "it" | "this" | "that" | "them"));
            !ends && (done || !short) && !self.table.is_excluded(*place)
        })?;
        Some(self.table.origin(place.span).to_owned())
    }

    /// A no, where somebody said the name of the argument as what is not meant or is off.
    pub(super) fn flag_off(&self, sink: Sink<'_>) -> Option<String> {
        let name = flag_name(sink.key, &FLAGS);
        let word = weight(&name) > MIN_CHARS && name.chars().all(|c| c.is_alphabetic() || c == ' ');
        let said: Vec<Place> = self.table.vouching(&name, sink).filter(|_| word).map(|(place, _)| place).collect();
        let off = |place: &Place| {
            let at = usize::try_from(place.at).unwrap_or(usize::MAX);
            let text = self.table.text(place.span);
            let around = [clause(text, at, true), clause(text, at.saturating_add(name.len()), false)];
            // The office is not off, and now is not no.
            let is_off = |word: &str| {
                OFF.iter().any(|off| word == *off || (off.chars().count() > MIN_CHARS && word.starts_with(off)))
            };
            around.iter().flatten().any(|word| is_off(word)) || self.table.is_excluded(*place)
        };
        // Off here and on there is neither.
        let first = said.first().filter(|_| said.iter().all(off))?;
        Some(self.table.origin(first.span).to_owned())
    }

    /// Whether a word of the argument's name stands one further behind a number: one double room.
    pub(super) fn names_further_on(&self, sink: Sink<'_>, place: &TypedPlace) -> bool {
        let all = placed(self.table.text(place.span));
        let near = Near::of(&all);
        let next = place.end.saturating_add(1);
        !near.ends_a_phrase(place.end)
            && !near.ends_a_phrase(next)
            && meaning(&place.after).unit.is_none()
            && !SORTS.contains(&&*place.after)
            && sink.says(near.get(next, 0))
    }

    /// One of the values that the schema lists: said as a word, or as the beginning of one, and not as what is not meant.
    pub(super) fn option(&self, sink: Sink<'a>, value: &str) -> Option<Said> {
        let options = sink.options();
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        if options.len() < 2 || !value.chars().all(plain) || !options.iter().any(|own| own == value) {
            return None;
        }
        if access::are_levels(options) {
            return self.access(sink, options, value);
        }
        let phrases = self.phrases(options);
        let own = options.iter().position(|option| option == value)?;
        let (mut said, mut not, mut another) = (None, false, false);
        let mut all: Vec<SaidLevel> = Vec::new();
        for (place, option) in phrases.iter().map(|(place, _, option)| (*place, *option)) {
            // What is called so is not what is not meant: not planned.
            let denies = options.get(option).is_some_and(|option| option.starts_with("no"));
            let excluded = !denies && self.table.is_excluded(place);
            not |= excluded && option == own;
            said = said.or_else(|| (option == own && !excluded).then_some(place.span));
            another |= !excluded && option != own;
        }
        for (span, text) in self.table.asked() {
            for (at, word) in placed(text).into_iter().enumerate() {
                let place = Place { span, at: u32::try_from(word.at).unwrap_or(u32::MAX) };
                // A word of premium economy is no economy.
                let part =
                    |(first, end, _): &(Place, u32, usize)| first.span == span && (first.at..*end).contains(&place.at);
                if phrases.iter().any(part) {
                    not |= word.core == value;
                    continue;
                }
                let says = |option: &str| {
                    // P1 is nothing else.
                    if option.contains(|c: char| c.is_ascii_digit()) {
                        return word.core == option;
                    }
                    let long = weight(option) >= MIN_CHARS;
                    // Into is in; allow is not all, and ready not read.
                    let fits = |rest: &str| if long { rest != "y" && rest.chars().count() <= 2 } else { rest == "to" };
                    word.core.strip_prefix(option).is_some_and(fits)
                };
                let excluded = self.table.is_excluded(place);
                not |= says(value) && excluded;
                said = said.or_else(|| (says(value) && !excluded).then_some(span));
                another |= !excluded && options.iter().any(|option| option != value && says(option));
                let level = options.iter().position(|option| says(option)).filter(|_| !excluded);
                all.extend(level.map(|level| SaidLevel { span, at, level }));
            }
        }
        // Of an admin and a moderator, each has their own.
        if said.is_some()
            && another
            && sink.key == sink.argument
            && let Some(meant) = self.level_beside(sink, &all, false)
        {
            let span = said.filter(|_| meant == Some(own));
            return Some(span.map_or(Said::Not, |span| Said::Yes(self.table.origin(span).to_owned())));
        }
        match said {
            // Of several rows, each has its own.
            Some(span) if !another || (sink.key != sink.argument && weight(value) >= MIN_CHARS) => {
                Some(Said::Yes(self.table.origin(span).to_owned()))
            }
            None if not => Some(Said::Not),
            _ => None,
        }
    }

    /// Where people say one of the values of a schema that has several words: its place, its end and which it is.
    fn phrases(&self, options: &[String]) -> Vec<(Place, u32, usize)> {
        let several = options.iter().enumerate().filter(|(_, option)| option.contains(['_', '-']));
        let mut phrases = Vec::new();
        for (number, option) in several {
            for form in [option.clone(), option.replace(['_', '-'], " "), option.replace('_', "-")] {
                let len = u32::try_from(form.len()).unwrap_or(u32::MAX);
                phrases.extend(self.table.asked_at(&form).map(|place| (place, place.at.saturating_add(len), number)));
            }
        }
        phrases
    }

    /// A level of access that somebody said, by whatever name, and no higher one that they did not. Of several, the one that
    /// is said of whom the call has.
    fn access(&self, sink: Sink<'a>, options: &[String], value: &str) -> Option<Said> {
        let own = access::level(value)?;
        let (mut said, mut not): (Vec<SaidLevel>, _) = (Vec::new(), false);
        for (span, text) in self.table.asked() {
            for (at, word) in placed(text).iter().enumerate() {
                let Some(level) = access::said(word.core) else { continue };
                let place = Place { span, at: u32::try_from(word.at).unwrap_or(u32::MAX) };
                let excluded = self.table.is_excluded(place);
                not |= excluded && level == own;
                if !excluded && options.iter().any(|option| access::level(option) == Some(level)) {
                    said.push(SaidLevel { span, at, level });
                }
            }
        }
        let highest = said.iter().map(|said| said.level).max();
        // To read and write is to write.
        let meant = if said.iter().all(|said| Some(said.level) == highest) {
            highest
        } else {
            self.level_beside(sink, &said, true).unwrap_or(highest)
        };
        match said.iter().find(|said| said.level == own) {
            Some(said) if meant == Some(own) => Some(Said::Yes(self.table.origin(said.span).to_owned())),
            Some(_) => Some(Said::Not),
            None => not.then_some(Said::Not),
        }
    }

    /// The level that stands nearest to whom the call has; none in it if two are as near, and none at all if the request has
    /// nobody of the call.
    fn level_beside(&self, sink: Sink<'a>, said: &[SaidLevel], joins: bool) -> Option<Option<usize>> {
        let persons = self.given.iter().filter(|(key, _)| Sink { key, argument: key, ..sink }.is_for_someone());
        let names: Vec<String> = persons.filter_map(|(_, value)| text(value)).map(|text| folded(text)).collect();
        let short = |name: &String| -> Vec<String> {
            let local = name.split('@').next().unwrap_or_default();
            let parts = local.split(|c: char| !c.is_alphanumeric()).filter(|part| weight(part) >= REACH);
            parts.map(str::to_owned).collect()
        };
        let all_names = names.iter().cloned().chain(names.iter().flat_map(short));
        let named: Vec<Place> = all_names.flat_map(|name| self.table.asked_at(&name).collect::<Vec<_>>()).collect();
        let span =
            named.iter().rev().map(|place| place.span).find(|span| said.iter().any(|said| said.span == *span))?;
        let text = self.table.text(span);
        let all = placed(text);
        let mut gaps: Vec<(usize, usize)> = Vec::new();
        for said in said.iter().filter(|said| said.span == span) {
            let word = all.get(said.at)?;
            let places =
                named.iter().filter(|place| place.span == span).filter_map(|place| usize::try_from(place.at).ok());
            let gap = places.map(|at| gap(text, at, word.at)).min()?;
            let joined = said.at.checked_sub(2).is_some_and(|first| {
                let and = all.get(first.saturating_add(1)).is_some_and(|word| JOINS.contains(&word.core));
                and && all.get(first).is_some_and(|word| access::said(word.core).is_some())
            });
            match gaps.last_mut().filter(|_| joined && joins) {
                Some((least, level)) => (*least, *level) = ((*least).min(gap), (*level).max(said.level)),
                None => gaps.push((gap, said.level)),
            }
        }
        let (least, level) = *gaps.iter().min()?;
        let alone = gaps.iter().all(|(gap, other)| *gap > least || *other == level);
        Some(alone.then_some(level))
    }

    /// `START/END` or `START/LENGTH`, as ISO 8601 has it.
    fn interval(&self, sink: Sink<'_>, value: &str) -> Option<String> {
        if let Some((from, to)) = value.split_once(['-', '–'])
            && let (Some(from), Some(to)) = (Time::parse(from.trim()), Time::parse(to.trim()))
        {
            return self
                .typed(sink, Typed::Time(from), value)
                .filter(|_| self.typed(sink, Typed::Time(to), value).is_some());
        }
        let (start, end) = value.split_once('/')?;
        let is_when =
            |text: &str| whole(text).iter().any(|way| matches!(way, Whole::Moment(..) | Whole::One(Typed::Date(_))));
        let length = whole(end).into_iter().find_map(|way| match way {
            Whole::One(typed @ Typed::Length(_)) => Some(typed),
            _ => None,
        });
        let origin = self.meaning(Sink { key: "start", ..sink }, start).filter(|_| is_when(start))?;
        match length {
            Some(length) => self.typed(sink, length, end)?,
            None => self.meaning(sink, end).filter(|_| is_when(end)).or_else(|| self.lasts(sink, start, end))?,
        };
        Some(origin)
    }

    /// The end of what begins at the start of the same call and lasts as long as somebody said.
    fn end(&self, sink: Sink<'a>, value: &str) -> Option<String> {
        let mut starts = Vec::new();
        for (name, given) in self.given {
            starts_of(Sink { argument: name, key: name, ..sink }, given, DEPTH, &mut starts);
        }
        starts.into_iter().find_map(|(of, start)| {
            let start = folded(start);
            self.meaning(of, &start).and_then(|_| self.lasts(sink, &start, value))
        })
    }

    /// Whether somebody said how long it is from `start` to `end`.
    fn lasts(&self, sink: Sink<'_>, start: &str, end: &str) -> Option<String> {
        let moment = |text: &str| {
            whole(text).into_iter().find_map(|way| match way {
                Whole::Moment(day, time, offset) => Some(Moment { day, clock: Some((time, offset)) }),
                Whole::One(Typed::Date(day)) => Some(Moment { day, clock: None }),
                Whole::One(_) => None,
            })
        };
        let length = between(moment(start)?, moment(end)?)?;
        self.typed(sink, Typed::Length(length), end)
    }

    /// A name that the address beside it is made of: Jan Nowak, of jan.nowak at some host.
    fn name_of_the_address(&self, sink: Sink<'a>, value: &str) -> Option<String> {
        if !sink.key.to_lowercase().ends_with("name") {
            return None;
        }
        self.beside.iter().find_map(|(key, other)| {
            let address = folded(text(other)?);
            let (local, host) = address.split_once('@').filter(|(_, host)| !host.contains('@'))?;
            let mut parts = local.split(['.', '_', '-']);
            let named: Vec<&str> = value.split(' ').collect();
            let whole = !host.is_empty() && named.len() > 1 && parts.by_ref().eq(named);
            if whole { self.token(Sink { key, ..sink }, &address) } else { None }
        })
    }

    /// The name of a place or a person that the request has with the sign of one: `#random`, `@jo.park`.
    fn without_its_sign(&self, sink: Sink<'_>, value: &str) -> Option<String> {
        let sign = if sink.is_place() {
            '#'
        } else if sink.is_someone() {
            '@'
        } else {
            return None;
        };
        let plain = !value.contains(['#', '@', ' ']) && weight(value) >= REACH;
        if plain { self.token(sink, &format!("{sign}{value}")) } else { None }
    }

    /// One of two names that the request has with a stroke between, where the call has the other one as the other of them.
    fn part_of_a_path(&self, sink: Sink<'a>, value: &str) -> Option<String> {
        let own = Sink::part_of_a_path(sink.key).filter(|_| !value.contains('/'))?;
        let around = self.beside.iter().chain(self.given).filter(|(key, _)| *key != sink.key);
        around.into_iter().find_map(|(key, other)| {
            let part = Sink::part_of_a_path(key).filter(|part| *part != own)?;
            let other = folded(text(other)?);
            let (one, other) = if part == PathPart::Holder { (&*other, value) } else { (value, &*other) };
            let path = format!("{one}/{other}");
            self.token(sink, &path).or_else(|| self.typed(sink, path_of(one, other), &path))
        })
    }

    /// A value too short to mean anything, which somebody said of what stands beside it: Nadia in 14C.
    fn next_to(&self, sink: Sink<'_>, value: &str) -> Option<String> {
        let short = (2..MIN_CHARS).contains(&weight(value)) && value.contains(|c: char| c.is_ascii_digit());
        if !short || self.beside.len() < 2 || sink.is_unfit(value) {
            return None;
        }
        let mut places = self.table.vouching(value, sink);
        let (place, _) = places.find(|(place, bound)| {
            if *bound || self.is_another_in_its_row(sink, value) {
                return false;
            }
            let text = self.table.text(place.span);
            let at = usize::try_from(place.at).unwrap_or(usize::MAX);
            let (before, after) = (clause(text, at, true), clause(text, at.saturating_add(value.len()), false));
            // 14C for Nadia.
            let whose =
                if let [join, whose, ..] = &*after { Some(*whose).filter(|_| FOR.contains(join)) } else { None };
            let names = self.names_beside(sink);
            match whose {
                Some(whose) => names.iter().any(|name| name == whose),
                None => names.iter().any(|name| before.contains(&name.as_str())),
            }
        })?;
        Some(self.table.origin(place.span).to_owned())
    }

    /// Whether somebody said another value of the same shape of what stands beside this one.
    pub(super) fn is_another_in_its_row(&self, sink: Sink<'_>, value: &str) -> bool {
        if sink.key == sink.argument || !value.contains(|c: char| c.is_ascii_digit()) || value.contains(' ') {
            return false;
        }
        let wanted = shape(value);
        let names = self.names_beside(sink);
        let mut said = names.iter().flat_map(|name| self.table.asked_at(name).map(move |place| (name, place)));
        said.any(|(name, place)| {
            let end = usize::try_from(place.at).unwrap_or(usize::MAX).saturating_add(name.len());
            let near = clause(self.table.text(place.span), end, false);
            near.into_iter().find(|near| shape(near) == wanted).is_some_and(|near| near != value)
        })
    }

    /// The words of the texts beside the value.
    fn names_beside(&self, sink: Sink<'_>) -> Vec<String> {
        let others = self.beside.iter().filter(|(key, _)| *key != sink.key).filter_map(|(_, value)| text(value));
        let named = |text: &String| words(&folded(text)).map(|word| word.core.to_owned()).collect::<Vec<_>>();
        others.flat_map(named).filter(|word| weight(word) >= REACH).collect()
    }

    /// Whether an amount stands in its text nearer than any other to the account that it is to go with.
    pub(super) fn goes_with(&self, sink: Sink<'_>, typed: Typed, place: &TypedPlace) -> bool {
        // The number of an amount goes where the amount does.
        let amount = if place.money { self.table.amount_at(place.span, place.at) } else { None };
        let typed = match typed {
            Typed::Number(_) if sink.key != sink.argument && !self.stands_by_its_name(sink, place) => return false,
            Typed::Number(_) => match amount {
                Some(amount) => amount,
                None => return true,
            },
            Typed::Amount(..) => typed,
            _ => return true,
        };
        let mut around = Vec::new();
        self.beside.iter().for_each(|(key, value)| texts_of(key, value, DEPTH, &mut around));
        if sink.key != sink.argument {
            self.given.iter().for_each(|(key, value)| texts_of(key, value, DEPTH, &mut around));
        }
        if self.table.has_other_amounts(place.span, typed)
            && !around
                .iter()
                .filter(|(key, _)| Sink { key, ..sink }.is_for_someone())
                .all(|(_, name)| self.is_for(typed, place, &folded(name)))
        {
            return false;
        }
        let accounts =
            around.iter().map(|(_, text)| text).flat_map(|text| whole(&folded(text))).filter_map(|way| match way {
                Whole::One(account @ Typed::Identifier(_)) => Some(account),
                _ => None,
            });
        accounts.into_iter().all(|account| {
            let mut said = self.table.said(account).iter().filter(|said| said.span == place.span).peekable();
            said.peek().is_none() || said.any(|said| self.table.is_nearest(place.span, typed, said))
        })
    }

    /// Whether of all amounts this one stands nearest to the name that it is for, where its text has that.
    fn is_for(&self, typed: Typed, place: &TypedPlace, name: &str) -> bool {
        let here = |name: &str| -> Vec<(u32, usize)> {
            let said = self.table.asked_at(name).filter(|said| said.span == place.span);
            said.map(|said| (said.at, words(name).count())).collect()
        };
        let mut said = here(name);
        if said.is_empty() {
            said = words(name).filter(|word| weight(word.core) >= MIN_CHARS).flat_map(|word| here(word.core)).collect();
        }
        let all = placed(self.table.text(place.span));
        let first = |at: u32| all.iter().take_while(|word| u32::try_from(word.at).is_ok_and(|own| own < at)).count();
        said.is_empty()
            || said.iter().any(|(at, words)| {
                let first = first(*at);
                self.table.is_nearest_to(place.span, typed, (first, first.saturating_add(*words), *at))
            })
    }

    /// Whether a number counts what a text beside it names: two adults, of `{kind: adult, count: 2}`.
    pub(super) fn counts_beside(&self, sink: Sink<'_>, place: &TypedPlace) -> bool {
        let unit = meaning(&place.after).unit;
        let named = |text: &String| meaning(&folded(text)).unit;
        let mut texts = self.beside.iter().filter_map(|(_, value)| text(value));
        sink.key != sink.argument && unit.is_some() && texts.any(|text| named(text) == unit)
    }

    /// Whether a number is written as that of a thing, such as `#12`, and the argument is one. Where the words beside some
    /// say which argument they are for, the others are for none.
    pub(super) fn is_numbered(&self, sink: Sink<'_>, place: &TypedPlace) -> bool {
        let text = self.table.text(place.span);
        let at = usize::try_from(place.byte).unwrap_or(usize::MAX);
        let signed = |word: &Word<'_>| word.core.starts_with(SIGNS);
        let named = || words(text).filter(signed).any(|word| sink.says(beside(text, word.at, word.at)[0]));
        let bare = text.get(at..).is_some_and(|rest| rest.starts_with(SIGNS));
        bare && sink.is_identifier() && (sink.says(&place.before) || !named())
    }

    /// Whether a number without a currency is the sum that is meant: the only one that is said as a sum is, where nobody
    /// speaks of any currency. None where no number is said so.
    pub(super) fn is_a_bare_sum(&self, sink: Sink<'_>, place: &TypedPlace) -> Option<bool> {
        let currency = || self.table.asked().any(|(span, _)| self.table.has_money(span));
        let money = sink.is_money() || sink.is_described_in_money();
        if !money || sink.key != sink.argument || currency() {
            return None;
        }
        let texts = self.given.iter().filter_map(|(_, value)| text(value));
        let given: Vec<String> = texts.map(|text| folded(text)).collect();
        let named = |word: &str| given.iter().any(|own| words(own).any(|own| own.core == word));
        let (sums, others) = bare::sums(self.table.text(place.span), named);
        let (sums, others) = (self.meant(place.span, sums), self.meant(place.span, others));
        (!sums.is_empty()).then(|| sums == [place.at] && others.is_empty())
    }

    /// Whether a number is the only one of its message that counts things, and the argument asks how many.
    pub(super) fn is_a_bare_count(&self, sink: Sink<'_>, place: &TypedPlace) -> bool {
        let pieces = sink.key == sink.argument && sink.counts_in() == Some(Unit::Piece);
        pieces && self.meant(place.span, bare::counts(self.table.text(place.span))) == [place.at]
    }

    /// The words of those that the request does not exclude.
    fn meant(&self, span: u32, said: Vec<(usize, usize)>) -> Vec<usize> {
        let place = |byte: usize| Place { span, at: u32::try_from(byte).unwrap_or(u32::MAX) };
        said.into_iter().filter(|(_, byte)| !self.table.is_excluded(place(*byte))).map(|(at, _)| at).collect()
    }

    /// Whether a number says how long before something it is, and the argument does not ask for that.
    pub(super) fn is_a_lead(&self, sink: Sink<'_>, number: Number, place: &TypedPlace) -> bool {
        let length = sink.counts_in().and_then(|unit| Length::of(unit, number));
        let leads = |length| self.table.said(Typed::Lead(length));
        let here = |lead: &TypedPlace| (lead.span, lead.at) == (place.span, place.at);
        !sink.is_lead() && length.is_some_and(|length| leads(length).iter().any(here))
    }

    /// Whether an hour stands in a quotation, where another one does not.
    pub(super) fn is_only_quoted(&self, sink: Sink<'_>, place: &TypedPlace) -> bool {
        let text = self.table.text(place.span);
        let inside = |byte: usize| cuts_a_quotation(text, byte, byte.saturating_add(1));
        let at = usize::try_from(place.byte).unwrap_or(usize::MAX);
        if sink.is_wording() || !text.contains(QUOTES) || !inside(at) {
            return false;
        }
        let mut outside = false;
        scan(text, None, |mention| outside |= matches!(mention.typed, Typed::Time(_)) && !inside(mention.byte));
        outside
    }

    /// Whether what is measured by a number, and in what, is what the argument asks for; none if nothing says so.
    pub(super) fn is_measured(&self, sink: Sink<'_>, place: &TypedPlace) -> Option<bool> {
        let (wanted, unit) = (sink.dimension(), sink.measure());
        if wanted.is_none() && unit.is_none() {
            return None;
        }
        let said = placed(self.table.text(place.span));
        let word = |at: usize| said.get(at).map_or("", |word| word.core);
        let own = measure(word(place.end)).or_else(|| glued(word(place.at)).and_then(|(_, unit)| measure(unit)));
        let apart = measure(word(place.end)).is_some();
        let behind = adjective(word(place.end.saturating_add(usize::from(apart))));
        let before = (1..=2).filter_map(|back| place.at.checked_sub(back)).find_map(|at| dimension(word(at)));
        let what = behind.or(before);
        let differs = |one: Option<usize>, other: Option<usize>| one.is_some() && other.is_some() && one != other;
        if differs(unit, own) || differs(wanted, what) {
            return Some(false);
        }
        let same = (wanted.is_some() && wanted == what) || (wanted.is_none() && unit.is_some() && unit == own);
        same.then_some(true)
    }

    /// Whether the call has several objects for the argument.
    fn has_several(&self, sink: Sink<'_>) -> bool {
        let several = |value: &Value| match value {
            Value::List(values) => values.iter().filter(|value| matches!(value, Value::Object(_))).count() > 1,
            _ => false,
        };
        self.given.iter().any(|(name, value)| *name == sink.argument && several(value))
    }

    /// Whether a number stands within reach of the name beside it, where its text has that.
    fn stands_by_its_name(&self, sink: Sink<'_>, place: &TypedPlace) -> bool {
        let names = self.names_beside(sink);
        let measured = || !self.has_several(sink) && self.is_measured(sink, place) == Some(true);
        if names.is_empty() || measured() {
            return true;
        }
        let said = placed(self.table.text(place.span));
        let is_named = |word: &Word<'_>| names.iter().any(|name| name == word.core);
        let around = place.at.saturating_sub(FAR)..place.end.saturating_add(FAR).min(said.len());
        !said.iter().any(is_named) || said.get(around).is_some_and(|words| words.iter().any(is_named))
    }

    /// Whether a value of a result that is trusted for everything may be meant: of several records, one that is. What a
    /// person said is no record.
    pub(super) fn is_of_the_result(&self, sink: Sink<'_>, place: Place) -> bool {
        !self.table.is_of_a_list(place) || self.table.picked(place, sink, self.used()) != Some(false)
    }

    /// Whether a value of a declared list may be meant: its row is picked, and where a record has a name with figures in
    /// it, no other word of the row is that name.
    pub(super) fn is_of_the_row(&self, sink: Sink<'_>, value: &str, place: Place) -> bool {
        let figures = value.contains(|c: char| c.is_ascii_digit());
        let person = sink.is_someone() && !value.contains('@') && !figures && self.table.has_sign(place);
        let picked = self.table.picked(place, sink, self.used());
        let day = is_when(value) && !sink.may_be_when() && self.table.has_code(place);
        // How much is paid is never one of several.
        let fits = picked != Some(false)
            && !self.table.is_denied(value)
            && (!sink.is_money()
                || self.table.is_the_only_one(place, sink, self.used())
                || self.names_its_record(sink, place))
            && self.is_of_the_record(sink, place)
            && !person
            && !day
            && (figures || !sink.is_identifier() || !self.table.has_code(place));
        self.asked.set(self.asked.get() || (fits && picked == Some(true)));
        fits
    }
}

const fn text(value: &Value) -> Option<&String> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// The texts of a value and of the objects in it, each with its key.
fn texts_of<'a>(key: &'a str, value: &'a Value, depth: usize, into: &mut Vec<(&'a str, &'a str)>) {
    match value {
        Value::Text(text) => into.push((key, text)),
        Value::Object(map) if depth > 0 => {
            map.iter().for_each(|(key, value)| texts_of(key, value, depth.saturating_sub(1), into));
        }
        _ => {}
    }
}

/// The texts of a value that say when something begins.
pub(super) fn starts_of<'a>(sink: Sink<'a>, value: &'a Value, depth: usize, into: &mut Vec<(Sink<'a>, &'a str)>) {
    match value {
        Value::Text(text) if sink.is_start() => into.push((sink, text)),
        Value::Object(map) if depth > 0 => map.iter().for_each(|(key, value)| {
            starts_of(Sink { key, ..sink }, value, depth.saturating_sub(1), into);
        }),
        _ => {}
    }
}

/// The figures and letters of a word, each run as one: 14c is 9a.
fn shape(word: &str) -> String {
    let mut shape = String::new();
    for c in word.chars() {
        let kind = if c.is_ascii_digit() {
            '9'
        } else if c.is_alphabetic() {
            'a'
        } else {
            c
        };
        if !shape.ends_with(kind) {
            shape.push(kind);
        }
    }
    shape
}

/// How far two places of a text are apart, in words. The end of a clause counts for many.
fn gap(text: &str, one: usize, other: usize) -> usize {
    const ENDS: [&str; 8] = [", ", "; ", ". ", "? ", "! ", " (", ") ", ": "];
    let between = text.get(one.min(other)..one.max(other)).unwrap_or_default();
    let ends = ENDS.iter().map(|end| between.matches(end).count()).sum::<usize>();
    let joins = words(between).filter(|word| JOINS.contains(&word.core)).count();
    words(between).count().saturating_add(ends.saturating_mul(A_CLAUSE)).saturating_add(joins.saturating_mul(A_JOIN))
}

/// The name of a yes or no as a request may have it, without the words that only say that it is one.
fn flag_name(key: &str, skipped: &[&str]) -> String {
    let name: Vec<_> = name_words(key).skip_while(|word| skipped.contains(&&**word)).collect();
    name.join(" ")
}

/// The few words of the same clause right before the byte `at`, or from it on.
fn clause(text: &str, at: usize, before: bool) -> Vec<&str> {
    let (head, tail) = text.split_at_checked(at).unwrap_or((text, ""));
    let ends = [',', ';', '.', '!', '?', ':', '(', ')'];
    let part = if before { head.rsplit(ends).next() } else { tail.split(ends).next() };
    let all: Vec<&str> = words(part.unwrap_or_default()).map(|word| word.core).collect();
    let joins = |word: &&&str| !JOINS.contains(word);
    if before {
        all.iter().rev().take_while(joins).take(REACH).copied().collect()
    } else {
        all.iter().take_while(joins).take(REACH).copied().collect()
    }
}
