//! The closed list of derivations: how an argument may come from a trusted span. Whatever is not here is untrusted.
//!
//! 1. It stands in the span as whole tokens, after NFC and case folding.
//! 2. It is the same number, day, time, length, recurrence or amount of money as one the span speaks of; a day also relative
//!    to the turn. A time of day alone means the next one to come, where the span speaks of no day; where its sentence
//!    speaks of one, it goes with that day and no other. A day and a length of stay also say the day it ends.
//! 3. It is a list, or a text with commas, of which each part is derivable by itself.
//! 4. It is what the registration itself declares for the argument.
//! 5. It is a form that is put together from these (`forms`), whose parts the request had together.
//!
//! `docs/provenance.md` has the atoms, the relations between them, and what has to stay together.
//!
//! A span vouches if it is trusted, or if its source is declared trusted for this argument. Shorter than four
//! characters, a value comes only from a place bound to the argument: the source is declared for it, a word of the
//! argument's name stands directly beside the value, or, of a number, the word for what the argument counts (people,
//! nights). An argument that is called by a currency takes amounts in it. What is plainly meant for another argument does
//! not count (`slots`).

use std::cell::{Cell, OnceCell};

use ephor_base::arguments::Value;

use super::{
    date::{Date, Time},
    forms::{Said, bare_address, is_each},
    index::{Place, TypedPlace},
    length::Length,
    number::Number,
    picks::Used,
    slots::{Sink, beside, cuts_a_link, cuts_a_quotation, is_the_rest},
    table::SpanTable,
    text::{folded, weight},
    tongues::meaning,
    typed::{Typed, Whole, whole},
};
use crate::registry::Tool;

/// An argument shorter than this is found in too many texts to mean anything.
pub(super) const MIN_CHARS: usize = 4;
/// Stand between a thing and the town or the country that it is in.
const IN: [&str; 8] = ["in", "near", "im", "à", "en", "em", "te", "w"];
/// How deep lists and objects are followed.
const MAX_DEPTH: usize = 16;
/// Where a critical argument comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The argument.
    pub argument: String,
    /// Whether all of it is derivable from trusted spans.
    pub trusted: bool,
    /// Where its parts come from, each once, in order: `user`, `tool:NAME`, `registration`, and with `untrusted:` before
    /// it for those that do not count. `untrusted` alone: nobody said it.
    pub labels: Vec<String>,
    /// Whether a span that is trusted for everything has some of it, as a person's words are, or a person's words pick the
    /// row of a list that it comes from.
    pub asked: bool,
}

/// Where the argument `name` of a call of `tool` comes from. `given` are the arguments that matter in that call.
pub(super) fn finding<'a>(
    table: &'a SpanTable,
    tool: &'a Tool,
    name: &'a str,
    value: &'a Value,
    given: &'a [(&'a str, &'a Value)],
) -> Finding {
    let sink = Sink { tool, argument: name, key: name };
    let mut finding = Finding { argument: name.to_owned(), trusted: true, labels: Vec::new(), asked: false };
    if tool.declares(name, value) {
        finding.labels.push("registration".to_owned());
    } else {
        let mut walk = Walk {
            table,
            tool,
            given,
            beside: given.to_vec(),
            asked: Cell::new(false),
            used: OnceCell::new(),
            finding: &mut finding,
        };
        walk.value(sink, value, 0);
        finding.asked = walk.asked.get();
    }
    finding
}

/// Whether a value is, or has in it, the folded `text`.
fn holds(value: &Value, text: &str, depth: usize) -> bool {
    match value {
        Value::Text(own) => own.len() <= text.len().saturating_mul(4) && folded(own) == text,
        Value::List(values) if depth < MAX_DEPTH => {
            values.iter().any(|value| holds(value, text, depth.saturating_add(1)))
        }
        Value::Object(map) if depth < MAX_DEPTH => {
            map.iter().any(|(_, value)| holds(value, text, depth.saturating_add(1)))
        }
        _ => false,
    }
}

pub(super) struct Walk<'a, 'f> {
    pub(super) table: &'a SpanTable,
    tool: &'a Tool,
    pub(super) given: &'a [(&'a str, &'a Value)],
    /// What stands right beside the value: the entries of its object, or the arguments that matter.
    pub(super) beside: Vec<(&'a str, &'a Value)>,
    /// Whether any of it is of a span that is trusted for everything, or of a row that a person's words pick.
    pub(super) asked: Cell<bool>,
    /// What the other arguments of the call are.
    used: OnceCell<Used>,
    finding: &'f mut Finding,
}

impl<'a> Walk<'a, '_> {
    fn value(&mut self, sink: Sink<'a>, value: &'a Value, depth: usize) {
        match value {
            Value::Null => {
                if self.leaves_out(sink) {
                    self.doubt(None);
                }
            }
            // No is what is said of the words of its name as not meant, or off.
            Value::Bool(yes) => match if *yes { self.flag(sink) } else { self.flag_off(sink) } {
                Some(origin) => self.trust(&origin),
                None => self.doubt(None),
            },
            Value::Integer(number) => match self.unix(sink, *number) {
                Some(origin) => self.trust(&origin),
                None => self.number(sink, Number::whole(*number), &number.to_string()),
            },
            Value::Float(number) => match Number::of(*number) {
                Some(exact) => self.number(sink, exact, &number.to_string()),
                None => self.doubt(None),
            },
            Value::Text(text) => self.text(sink, &folded(text)),
            Value::List(_) | Value::Object(_) if depth >= MAX_DEPTH => self.doubt(None),
            Value::List(values) if values.is_empty() && self.leaves_out(sink) => self.doubt(None),
            Value::List(values) => values.iter().for_each(|value| {
                // What is said once is meant once.
                let is_row = matches!(value, Value::Object(_) | Value::Text(_));
                let alike = values.iter().filter(|other| is_row && *other == value).count();
                let count = Number::whole(i128::try_from(alike).unwrap_or(i128::MAX));
                if alike > 1 && self.typed(sink, Typed::Number(count), "").is_none() {
                    self.doubt(None);
                }
                self.value(sink, value, depth.saturating_add(1));
            }),
            Value::Object(map) => {
                let entries = map.iter().map(|(key, value)| (key.as_str(), value)).collect();
                let around = std::mem::replace(&mut self.beside, entries);
                map.iter().for_each(|(key, value)| {
                    // A key that the schema does not have says what nobody has declared.
                    if !sink.tool.has_property(key) {
                        self.doubt(None);
                    }
                    self.value(Sink { key, ..sink }, value, depth.saturating_add(1));
                });
                self.beside = around;
            }
        }
    }

    /// What the other arguments are, and where people have said it.
    pub(super) fn used(&self) -> &Used {
        self.used.get_or_init(|| {
            let mut used = Used::default();
            let others = self.given.iter().filter(|(name, _)| *name != self.finding.argument);
            for (name, value) in others {
                self.take_in_used(value, &mut used, 0);
                self.take_in_choice(name, value, &mut used);
            }
            used
        })
    }

    /// Takes in what was chosen of what the schema lists.
    fn take_in_choice(&self, name: &str, value: &Value, used: &mut Used) {
        let options = self.tool.property(name).map_or(&[][..], |property| &property.options);
        let Value::Text(own) = value else { return };
        for option in options {
            let places = if option == own { &mut used.chosen } else { &mut used.unchosen };
            let option = folded(option);
            places.extend(self.table.asked_at(&option));
        }
    }

    fn take_in_used(&self, value: &Value, used: &mut Used, depth: usize) {
        match value {
            Value::Integer(number) => {
                used.typed.push(Typed::Number(Number::whole(*number)));
                used.spans.extend(self.table.spans_with(&number.to_string()));
            }
            Value::Float(number) => used.typed.extend(Number::of(*number).map(Typed::Number)),
            Value::Text(text) => {
                let text = folded(text);
                for way in whole(&text) {
                    match way {
                        Whole::One(typed) => used.typed.push(typed),
                        Whole::Moment(day, time, _) => used.typed.extend([Typed::Date(day), Typed::Time(time)]),
                    }
                }
                used.places.extend(self.table.asked_at(&text).map(|place| (place, text.len())));
                used.spans.extend(self.table.spans_with(&text));
            }
            Value::List(values) if depth < MAX_DEPTH => {
                values.iter().for_each(|value| self.take_in_used(value, used, depth.saturating_add(1)));
            }
            Value::Object(map) if depth < MAX_DEPTH => {
                map.iter().for_each(|(_, value)| self.take_in_used(value, used, depth.saturating_add(1)));
            }
            _ => {}
        }
    }

    fn number(&mut self, sink: Sink<'_>, number: Number, value: &str) {
        match self.amount(sink, number, value) {
            Some(origin) => self.trust(&origin),
            None => self.doubt(self.table.doubted(value, Some(Typed::Number(number))).map(str::to_owned)),
        }
    }

    pub(super) fn amount(&self, sink: Sink<'_>, number: Number, value: &str) -> Option<String> {
        if sink.is_money() && self.is_old_sum(sink, number) {
            return None;
        }
        // An argument that is called by a currency takes an amount in that and no other; so does one beside a currency.
        let named = sink.currency();
        let currency = named.or_else(|| self.currency_beside(sink));
        if sink.is_minor() {
            return self.minor(sink, currency, number, value);
        }
        let amount = currency.and_then(|currency| self.typed(sink, Typed::Amount(currency, number), value));
        amount.or_else(|| match (named, currency) {
            (Some(_), _) | (None, Some(_)) => self.plain(sink, number, value),
            (None, None) => {
                let length = || {
                    let length = Length::of(sink.counts_in()?, number)?;
                    let lead = || self.typed(sink, Typed::Lead(length), value).filter(|_| sink.is_lead());
                    self.typed(sink, Typed::Length(length), value).or_else(lead)
                };
                self.typed(sink, Typed::Number(number), value).or_else(length)
            }
        })
    }

    /// A bare number for an amount whose currency is known otherwise: from a source declared for it, or beside no amount.
    fn plain(&self, sink: Sink<'_>, number: Number, value: &str) -> Option<String> {
        let named = sink.currency().is_some();
        let fits = |place: &TypedPlace| !named && !self.table.has_money(place.span) && number.length() >= MIN_CHARS;
        let places = self.table.vouching_typed(Typed::Number(number), value, sink);
        let mut places = places.filter(|(place, _)| !place.money && !self.table.is_excluded(place.place()));
        let (place, _) = places
            .find(|(place, bound)| if *bound { self.is_of_the_row(sink, value, place.place()) } else { fits(place) })?;
        Some(self.table.origin(place.span).to_owned())
    }

    fn text(&mut self, sink: Sink<'a>, value: &str) {
        let value = bare_address(value);
        // As a number, so as a text: an amount is one in its currency.
        if let Some(number) = Number::parse(value).filter(|_| self.is_of_a_currency(sink)) {
            return self.number(sink, number, value);
        }
        let excluded = match self.option(sink, value) {
            Some(Said::Yes(origin)) => return self.trust(&origin),
            said => said.is_some(),
        };
        if excluded
            || self.is_taken(sink, value)
            || self.ends_too_soon(sink, value)
            || self.ends_another(sink, value)
            || self.is_only_of_before(sink, value)
        {
            return self.doubt(self.table.doubted(value, None).map(str::to_owned));
        }
        let found = self.token(sink, value).or_else(|| self.meaning(sink, value)).or_else(|| self.form(sink, value));
        if let Some(origin) = found {
            return self.trust(&origin);
        }
        // The name of one record is not a list of several.
        let one = sink.is_identifier() && !sink.key.ends_with('s');
        if !one && value.contains([',', ';']) && self.parts(sink, value) {
            return;
        }
        let typed = whole(value).into_iter().find_map(|way| match way {
            Whole::One(typed) => Some(typed),
            Whole::Moment(..) => None,
        });
        self.doubt(self.table.doubted(value, typed).map(str::to_owned));
    }

    /// Whether another argument of the same call has the same text, and nobody has said it once for each. What a source
    /// is declared for is never taken, and days, times and numbers may be alike.
    fn is_taken(&self, sink: Sink<'_>, value: &str) -> bool {
        // The same place, to go from and to come back to, is one place.
        let alike = sink.key != sink.argument && !value.contains(|c: char| c == '@' || c.is_ascii_digit());
        let others = self.given.iter().filter(|(name, _)| *name != sink.argument && !alike);
        let uses = others.filter(|(_, other)| holds(other, value, 0)).count();
        if uses == 0 || !whole(value).is_empty() {
            return false;
        }
        let said: Vec<bool> =
            self.table.vouching(value, sink).map(|(_, bound)| bound).take(uses.saturating_add(1)).collect();
        said.len() <= uses && !said.contains(&true)
    }

    /// A text with commas whose parts are each derivable.
    fn parts(&mut self, sink: Sink<'_>, value: &str) -> bool {
        let parts: Vec<&str> = value.split([',', ';']).map(str::trim).collect();
        let found = |part: &&str| self.token(sink, part).or_else(|| self.meaning(sink, part));
        let origins: Option<Vec<String>> = parts.iter().map(found).collect();
        let Some(origins) = origins else { return false };
        origins.iter().for_each(|origin| self.trust(origin));
        true
    }

    /// Whole tokens of a span that vouches.
    pub(super) fn token(&self, sink: Sink<'_>, value: &str) -> Option<String> {
        // What an amount of money may be, `typed` says.
        let figures = || value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','));
        let money = sink.is_money() && (Number::read(value).is_some() || figures());
        let long = weight(value) >= MIN_CHARS && !money;
        let (sourced, wrong) = (value.contains(' ') && self.table.is_sourced(sink), sink.rules_out(value));
        let (unfit, telephone) = (sink.is_unfit(value), sink.is_telephone(value));
        let (place, _) = self.table.vouching(value, sink).find(|(place, bound)| {
            let text = self.table.text(place.span);
            let start = usize::try_from(place.at).unwrap_or(usize::MAX);
            let end = start.saturating_add(value.len());
            let meant = || {
                !wrong
                    && !self.table.is_excluded(*place)
                    && (!self.is_of_before_as_written(value, *place) || sink.is_of_before())
                    && !cuts_a_quotation(text, start, end)
                    && !sink.is_not_for(text, start, end, sourced)
            };
            if unfit
                || (telephone && !self.table.is_of_a_name(*place))
                || sink.is_crossed(text, start, end)
                || cuts_a_link(text, value, end)
                || is_the_rest(&sink, text, start)
                || self.is_another_in_its_row(sink, value)
            {
                return false;
            }
            if *bound {
                return self.is_of_the_row(sink, value, *place);
            }
            // Where the names of records come from a list, a word of the request only picks one.
            let listed = sink.is_identifier() && self.table.is_sourced(sink);
            let person = sink.is_place() && self.table.names_a_person(value, sink);
            let name = || sink.is_for_someone() && self.table.is_written_as_a_name(place.span, value);
            let near = || beside(text, start, end).iter().any(|word| sink.says(word)) || name();
            let said = !listed
                && !person
                && meant()
                && (long || near())
                && !self.has_another_role(sink, value, *place)
                && self.is_of_the_result(sink, *place);
            self.asked.set(self.asked.get() || said);
            said
        })?;
        Some(self.table.origin(place.span).to_owned())
    }

    /// Whether a value has another part at a place that vouches than this argument: the year of a day, a place where another
    /// is named, an address that something comes from, or that was one.
    fn has_another_role(&self, sink: Sink<'_>, value: &str, place: Place) -> bool {
        let text = self.table.text(place.span);
        let start = usize::try_from(place.at).unwrap_or(usize::MAX);
        if self.is_of_an_address(sink, value) {
            return true;
        }
        let around = beside(text, start, start.saturating_add(value.len()));
        let [before, _] = around;
        let year = value.len() == 4 && value.bytes().all(|byte| byte.is_ascii_digit());
        let named = around.iter().any(|word| sink.says(word));
        // A hotel in London: where it is, and not which.
        let before_that = start.saturating_sub(before.len()).saturating_sub(1);
        let where_it_is = || IN.contains(&before) && sink.says(beside(text, before_that, before_that)[0]);
        where_it_is()
            || (year && meaning(before).month.is_some() && !sink.says("year"))
            || (sink.is_place() && !sink.is_wording() && !named && self.table.names_another_place(value, sink))
            || (value.contains('@') && sink.is_for_persons() && self.table.is_from_whom(place))
            || (value.contains('@') && self.table.is_old_address(place) && !sink.is_of_before())
    }

    /// Whether a value is what something is moved from, or the day or the time of before.
    fn is_of_before_as_written(&self, value: &str, place: Place) -> bool {
        let former = |way: &Whole| match way {
            Whole::One(typed @ (Typed::Date(_) | Typed::Time(_))) => self.table.is_former(*typed, place, false),
            Whole::One(_) | Whole::Moment(..) => false,
        };
        self.table.speaks_of_before(place.span) && (self.table.is_left(place) || whole(value).iter().any(former))
    }

    /// The same number, day, time or amount as in a span that vouches.
    pub(super) fn meaning(&self, sink: Sink<'_>, value: &str) -> Option<String> {
        whole(value).into_iter().find_map(|way| match way {
            Whole::One(Typed::Date(day)) => {
                let ends = || self.typed(sink, Typed::Until(day), value).filter(|_| !sink.opens());
                self.typed(sink, Typed::Date(day), value).or_else(ends)
            }
            Whole::One(typed) => self.typed(sink, typed, value),
            Whole::Moment(day, time, offset) => {
                // An hour elsewhere is another hour here.
                let (day, time) = match offset {
                    Some(offset) => self.table.local(day, time, offset)?,
                    None => (day, time),
                };
                self.moment(sink, day, time, value)
            }
        })
    }

    /// A day with a time of it. A time goes with a day of its own sentence, if that speaks of any: two appointments in one
    /// message are not to be mixed.
    pub(super) fn moment(&self, sink: Sink<'_>, day: Date, time: Time, value: &str) -> Option<String> {
        let reckoned = self.table.vouching_typed(Typed::Reckoned(time), value, sink);
        let reckoned = reckoned.filter(|(place, _)| sink.is_named_in(self.table.sentence(place.place())));
        let ends = self.table.vouching_typed(Typed::Until(day), value, sink).filter(|_| !sink.opens());
        let days = self.table.vouching_typed(Typed::Date(day), value, sink).chain(ends);
        let days: Vec<(&TypedPlace, bool)> =
            days.filter(|(said, bound)| *bound || self.is_day_said(sink, day, said)).collect();
        let times = self.table.vouching_typed(Typed::Time(time), value, sink);
        let times = times.filter(|(said, bound)| self.is_said(sink, Typed::Time(time), value, said, *bound));
        let times = times.filter(|(said, _)| self.is_that_time(sink, said, time));
        let (place, _) = times.chain(reckoned).find(|(said, _)| {
            if !self.table.in_order(said, day, time) {
                return false;
            }
            if self.table.has_day(said.span, Some(said.sentence)) {
                return days.iter().any(|(day, _)| (day.span, day.sentence) == (said.span, said.sentence));
            }
            !days.is_empty() || (self.table.next(time) == Some(day) && !self.table.has_day(said.span, None))
        })?;
        Some(self.table.origin(place.span).to_owned())
    }

    /// Whether people name a value, and only as what was before: then no list brings it back.
    fn is_only_of_before(&self, sink: Sink<'_>, value: &str) -> bool {
        let asked = self.table.asked_at(value).filter(|place| self.table.speaks_of_before(place.span));
        if asked.count() == 0 {
            return false;
        }
        let mut said = self.table.asked_at(value).filter(|_| weight(value) >= MIN_CHARS && !sink.is_of_before());
        let former = |place: Place| self.table.has_been(place) || self.is_of_before_as_written(value, place);
        said.next().is_some_and(former) && said.all(former)
    }

    /// The same of a sum.
    fn is_old_sum(&self, sink: Sink<'_>, number: Number) -> bool {
        let asked = |place: &&TypedPlace| self.table.asked().any(|(span, _)| span == place.span);
        let mut said = self.table.said(Typed::Number(number)).iter().filter(asked);
        let former = |place: &TypedPlace| {
            self.table.is_old(place) || self.table.is_former(Typed::Number(number), place.place(), true)
        };
        !sink.is_of_before() && said.next().is_some_and(former) && said.all(former)
    }

    /// Whether a day at a place is meant, and not one of before.
    fn is_day_said(&self, sink: Sink<'_>, day: Date, said: &TypedPlace) -> bool {
        let former = || self.table.is_former(Typed::Date(day), said.place(), false);
        !self.table.is_excluded(said.place()) && (sink.is_of_before() || !former())
    }

    pub(super) fn typed(&self, sink: Sink<'_>, typed: Typed, value: &str) -> Option<String> {
        let mut places = self.table.vouching_typed(typed, value, sink);
        let (place, _) = places.find(|(place, bound)| self.is_said(sink, typed, value, place, *bound))?;
        Some(self.table.origin(place.span).to_owned())
    }

    /// Whether a typed value at a place that vouches is meant for this argument. `bound` is whether the place is of a source
    /// declared for it.
    fn is_said(&self, sink: Sink<'_>, typed: Typed, value: &str, place: &TypedPlace, bound: bool) -> bool {
        if bound {
            let telephone = sink.is_telephone(value) && !self.table.is_of_a_name(place.place());
            return !sink.is_unfit(value) && !telephone && self.is_of_the_row(sink, value, place.place());
        }
        let sum = place.money || (sink.is_money() && matches!(typed, Typed::Number(_)));
        if self.table.is_excluded(place.place())
            || (sum && self.table.is_old(place))
            || (self.table.is_former(typed, place.place(), sum) && !sink.is_of_before())
        {
            return false;
        }
        let measured = match typed {
            Typed::Number(_) if !place.money => self.is_measured(sink, place),
            _ => None,
        };
        let bare = match typed {
            Typed::Number(_) if !place.money => self.is_a_bare_sum(sink, place),
            _ => None,
        };
        // Of a card that ends in 4417, no number is a sum beside one that is.
        let rest = || {
            let start = usize::try_from(place.byte).unwrap_or(usize::MAX);
            is_the_rest(&sink, self.table.text(place.span), start)
        };
        let lead = match typed {
            Typed::Number(number) if !place.money => self.is_a_lead(sink, number, place),
            _ => false,
        };
        let quoted = matches!(typed, Typed::Time(_)) && self.is_only_quoted(sink, place);
        if measured == Some(false) || bare == Some(false) || lead || quoted || rest() {
            return false;
        }
        let fits = || match typed {
            // Money fills what is money and nothing else; a bare number is no money beside an amount.
            Typed::Number(_) if place.money || sink.is_money() && self.table.has_money(place.span) => {
                place.money && sink.is_money()
            }
            Typed::Number(number) => number.length() >= MIN_CHARS,
            _ => true,
        };
        let named = || sink.says(&place.before) || sink.says(&place.after) || self.names_further_on(sink, place);
        let counted = || match typed {
            Typed::Number(number) if !place.money && sink.counts(&place.before, &place.after) => {
                !self.is_a_lead(sink, number, place)
            }
            Typed::Number(_) if !place.money => {
                self.counts_beside(sink, place)
                    || self.is_numbered(sink, place)
                    || bare == Some(true)
                    || self.is_a_bare_count(sink, place)
            }
            _ => false,
        };
        let listed = sink.is_identifier() && self.table.is_sourced(sink);
        let meant = !listed && !sink.rules_out(value) && (measured == Some(true) || fits() || named() || counted());
        let said = meant
            && self.goes_with(sink, typed, place)
            && (!sink.is_each() || is_each(place))
            && self.is_of_the_result(sink, place.place());
        self.asked.set(self.asked.get() || said);
        said
    }

    fn trust(&mut self, origin: &str) {
        self.label(origin.to_owned());
    }

    fn doubt(&mut self, origin: Option<String>) {
        self.finding.trusted = false;
        self.label(origin.map_or_else(|| "untrusted".to_owned(), |origin| format!("untrusted:{origin}")));
    }

    fn label(&mut self, label: String) {
        if !self.finding.labels.contains(&label) {
            self.finding.labels.push(label);
        }
    }
}
