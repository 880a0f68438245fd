//! What the parts of one call have to be to each other, and what follows from one for another.

use ephor_base::arguments::Value;

use super::{
    date::{Moment, Time, between},
    derive::Walk,
    forms::{DEPTH, starts_of},
    index::Place,
    moments::When,
    number::Number,
    slots::Sink,
    table::Record,
    text::folded,
    typed::{Typed, Whole, whole},
};

impl<'a> Walk<'a, '_> {
    /// Whether the value ends what begins no sooner in the same call: at the same moment, or on the same day where a person
    /// has said another one too.
    pub(super) fn ends_too_soon(&self, sink: Sink<'a>, value: &str) -> bool {
        let Some(end) = moment(value).filter(|_| sink.is_end()) else { return false };
        self.starts(sink).into_iter().any(|start| {
            let day = end.clock.is_none() && start.clock.is_none() && start.day == end.day;
            let several = || self.table.asked().any(|(span, _)| self.table.has_days(span));
            match (start.clock, end.clock) {
                (Some((_, one)), Some((_, other))) if one != other => false,
                _ if day => several(),
                _ if start.clock.is_some() != end.clock.is_some() => end.day < start.day,
                _ => {
                    between(start, end).is_none()
                        && (end.day, end.clock.map(time)) <= (start.day, start.clock.map(time))
                }
            }
        })
    }

    /// Whether the value ends what begins at another moment than the request says of it, in the same call: of 10 to 11, and 12
    /// to 13, nothing lasts from 10 to 13.
    pub(super) fn ends_another(&self, sink: Sink<'a>, value: &str) -> bool {
        let Some(end) = self.when(value).filter(|_| sink.is_end()) else { return false };
        let starts = self.said_starts(sink).into_iter().filter_map(|start| self.when(&folded(start)));
        starts.into_iter().any(|start| self.table.are_ends_of_two(start, end))
    }

    /// Whether a name is only a part of what the same call has elsewhere with a number: the name of a street.
    pub(super) fn is_of_an_address(&self, sink: Sink<'_>, value: &str) -> bool {
        let numbered = |text: &str| text.contains(|c: char| c.is_ascii_digit()) && !text.contains('@');
        let others = self.given.iter().filter(|(name, _)| *name != sink.argument).flat_map(|(_, value)| texts(value));
        let whole: Vec<String> = others.map(folded).filter(|text| numbered(text) && text.contains(value)).collect();
        let within = |place: Place| {
            whole.iter().filter(|text| text.len() > value.len()).any(|text| {
                let mut places = self.table.asked_at(text).filter(|own| own.span == place.span);
                let end = |own: Place| usize::try_from(own.at).unwrap_or(usize::MAX).saturating_add(text.len());
                places.any(|own| own.at <= place.at && usize::try_from(place.at).is_ok_and(|at| at < end(own)))
            })
        };
        sink.is_for_someone()
            && !numbered(value)
            && !whole.is_empty()
            && self.table.asked_at(value).next().is_some()
            && self.table.asked_at(value).all(within)
    }

    /// The time of day of a value, here, or its day if it has none.
    fn when(&self, value: &str) -> Option<When> {
        whole(value).into_iter().find_map(|way| match way {
            Whole::One(Typed::Date(day)) => Some(When::Day(day)),
            Whole::One(Typed::Time(time)) | Whole::Moment(_, time, None) => Some(When::Time(time)),
            Whole::Moment(day, time, Some(offset)) => Some(When::Time(self.table.local(day, time, offset)?.1)),
            Whole::One(_) => None,
        })
    }

    /// What says in the same call when something begins.
    fn said_starts(&self, sink: Sink<'a>) -> Vec<&'a str> {
        let mut starts = Vec::new();
        for (name, given) in self.given {
            starts_of(Sink { argument: name, key: name, ..sink }, given, DEPTH, &mut starts);
        }
        starts.into_iter().map(|(_, start)| start).collect()
    }

    /// The moments at which something begins in the same call.
    fn starts(&self, sink: Sink<'a>) -> Vec<Moment> {
        self.said_starts(sink).into_iter().filter_map(|start| moment(&folded(start))).collect()
    }

    /// A midnight, or a minute before the next: of a day that was said without any hour, where the call has both.
    pub(super) fn whole_day(&self, sink: Sink<'a>, value: &str) -> Option<String> {
        let own = moment(value)?;
        let other = |start: bool| {
            let fits = |sink: Sink<'_>| if start { sink.is_start() } else { sink.is_end() };
            let named = self
                .given
                .iter()
                .filter(|(name, _)| *name != sink.argument && fits(Sink { argument: name, key: name, ..sink }));
            named.filter_map(|(_, value)| moment(&folded(text(value)?))).next()
        };
        let (start, end) = if sink.is_start() {
            (own, other(false)?)
        } else if sink.is_end() {
            (other(true)?, own)
        } else {
            return None;
        };
        let (from, to) = (start.clock?.0.minute(), end.clock?.0.minute());
        let last = (end.day == start.day && to == LAST_MINUTE) || (end.day == start.day.plus(1) && to == 0);
        if from != 0 || !last {
            return None;
        }
        let places = self.table.vouching_typed(Typed::Date(start.day), value, sink);
        let mut places = places.filter(|(place, _)| !self.table.is_excluded(place.place()));
        let (place, _) = places.find(|(place, _)| !self.table.has_time(place.span, place.sentence))?;
        self.asked.set(true);
        Some(self.table.origin(place.span).to_owned())
    }

    /// The day of the turn, for a sum that is to be paid where nobody speaks of any day.
    pub(super) fn today(&self, sink: Sink<'_>, value: &str) -> Option<String> {
        let pays = |(name, value): &&(&str, &Value)| {
            Sink { argument: name, key: name, ..sink }.is_money() && !matches!(value, Value::Bool(_))
        };
        if !sink.is_day_of_payment() || !self.given.iter().any(|given| pays(&given)) {
            return None;
        }
        let today = self.table.today_unless_said()?;
        let is_today = whole(value).iter().any(|way| matches!(way, Whole::One(Typed::Date(day)) if *day == today));
        is_today.then(|| "turn".to_owned())
    }

    /// Whether nothing is given for an argument that takes people, though a person has named some, or picked some of a list,
    /// and the call has none of them.
    pub(super) fn leaves_out(&self, sink: Sink<'_>) -> bool {
        if !sink.is_for_persons() {
            return false;
        }
        let others: Vec<String> = self.given.iter().flat_map(|(_, value)| texts(value)).map(folded).collect();
        let is_address = |word: &str| word.split_once('@').is_some_and(|(_, host)| !host.is_empty());
        let named = self.table.asked().any(|(span, said)| {
            super::text::words(said).filter(|word| is_address(word.core)).any(|word| {
                let place = Place { span, at: u32::try_from(word.at).unwrap_or(u32::MAX) };
                !self.table.is_excluded(place) && !others.iter().any(|other| other == word.core)
            })
        });
        let called = || {
            self.table.asked().any(|(span, said)| {
                super::text::words(said).any(|word| {
                    let place = Place { span, at: u32::try_from(word.at).unwrap_or(u32::MAX) };
                    sink.says(word.core) && !self.table.is_excluded(place)
                })
            })
        };
        named || (sink.is_someone() && called()) || (others.is_empty() && self.table.has_picked(sink))
    }

    /// Whether a value of a list with keys has the key that is meant, and whether the other values of the call that the list
    /// has too are of the same record. Those with the same key, such as two accounts, may be of two.
    pub(super) fn is_of_the_record(&self, sink: Sink<'_>, place: Place) -> bool {
        let Some(own) = self.table.record(place) else { return true };
        if !own.row.fits(own.key, sink) {
            return false;
        }
        let others = self.given.iter().filter(|(name, _)| *name != sink.argument);
        others.into_iter().all(|(name, value)| {
            let records = self.records(Sink { argument: name, key: name, ..sink }, value);
            let mut here = records.iter().filter(|record| record.number.0 == own.number.0).peekable();
            let one = |record: &Record<'_>| self.table.are_one(own.number.0, record.number.1, own.number.1);
            here.peek().is_none() || here.any(|record| one(record) || record.key == own.key)
        })
    }

    /// Whether the call names the record that the place is in, by another value that is no sum: the price of what is booked.
    pub(super) fn names_its_record(&self, sink: Sink<'_>, place: Place) -> bool {
        let Some(own) = self.table.number_of(place) else { return false };
        let others = self.given.iter().filter(|(name, _)| *name != sink.argument);
        others.into_iter().any(|(name, value)| {
            let sink = Sink { argument: name, key: name, ..sink };
            let mut bound = self.bound(sink, value).into_iter();
            !sink.is_money() && bound.any(|place| self.table.number_of(place) == Some(own))
        })
    }

    /// The places that a value, or the only one of a list, has in lists that are declared for its argument.
    fn bound(&self, sink: Sink<'_>, value: &Value) -> Vec<Place> {
        match value {
            Value::List(values) => match values.as_slice() {
                [only] => self.bound(sink, only),
                _ => Vec::new(),
            },
            Value::Text(text) => {
                let text = folded(text);
                self.table.vouching(&text, sink).filter(|(_, bound)| *bound).map(|(place, _)| place).collect()
            }
            Value::Integer(number) => self.bound_number(sink, Number::whole(*number), &number.to_string()),
            Value::Float(number) => {
                Number::of(*number).map(|exact| self.bound_number(sink, exact, &number.to_string())).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn bound_number(&self, sink: Sink<'_>, number: Number, value: &str) -> Vec<Place> {
        let places = self.table.vouching_typed(Typed::Number(number), value, sink);
        places.filter(|(_, bound)| *bound).map(|(place, _)| place.place()).collect()
    }

    /// The records that a value may be of.
    fn records(&self, sink: Sink<'a>, value: &'a Value) -> Vec<Record<'a>> {
        let records = self.bound(sink, value).into_iter().filter_map(|place| self.table.record(place));
        records.filter(|record| record.row.fits(record.key, sink)).collect()
    }
}

/// The last minute of a day.
const LAST_MINUTE: u32 = 1439;

const fn time((time, _): (Time, Option<i32>)) -> Time {
    time
}

/// A day, or a day and a time.
fn moment(value: &str) -> Option<Moment> {
    whole(value).into_iter().find_map(|way| match way {
        Whole::Moment(day, time, offset) => Some(Moment { day, clock: Some((time, offset)) }),
        Whole::One(Typed::Date(day)) => Some(Moment { day, clock: None }),
        Whole::One(_) => None,
    })
}

const fn text(value: &Value) -> Option<&String> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// The texts of a value, and of the lists in it.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Text(text) => vec![text],
        Value::List(values) => values.iter().filter_map(text).map(String::as_str).collect(),
        _ => Vec::new(),
    }
}
