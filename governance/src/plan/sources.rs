//! What a value may be taken from: what people typed, and what tools answered in the turn.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use ephor_base::{Format, Registration, ToolName, arguments::Value};

use super::{
    Origin, Pick, Source,
    answer::Answer,
    paging::{are_complete, list_of},
    pick::{Chosen, Picked, pick},
};
use crate::{datum::Datum, literals::Literals};

/// A shorter text of an argument is found in too many values to mean that they repeat it.
const MIN_ECHO: usize = 3;

/// The last number of a page, or of its records, that anybody may ask for: a longer one could be an account that the tool repeats.
const LAST_PAGE: i128 = 9_999;

/// The sources of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// What people typed.
    pub typed: &'a [Arc<Literals>],
    /// What tools answered in this turn, in order.
    pub answers: &'a [Answer],
}

/// What is found of one argument.
pub(super) struct Found {
    pub(super) permitted: bool,
    pub(super) source: Cow<'static, str>,
    /// The records that the value may be of, and how many were picked.
    pub(super) rows: Option<(Vec<usize>, usize)>,
}

impl Found {
    pub(super) fn permit(source: impl Into<Cow<'static, str>>) -> Self {
        Self { permitted: true, source: source.into(), rows: None }
    }

    pub(super) fn ask(source: impl Into<Cow<'static, str>>) -> Self {
        Self { permitted: false, source: source.into(), rows: None }
    }
}

impl<'a> Sources<'a> {
    /// Who says the value as a whole, so that it may be an argument of this name: `user`, `tool:NAME`; of a list the last of those
    /// that say its values. None if one of them is said by none; an object is said by none.
    #[must_use]
    pub fn vouched(&self, tool: &ToolName, name: &str, value: &Value) -> Option<String> {
        let part = |_, part| self.vouched(tool, name, part).map(Some);
        match value {
            Value::List(values) => values.iter().try_fold(None, part).flatten(),
            Value::Object(_) => None,
            _ if self.is_typed(value) => Some("user".to_owned()),
            _ => {
                let (none, datum) = (BTreeMap::new(), Datum::of(value));
                let says = |answer: &&Answer| {
                    answer.says(tool, name, value)
                        && self.counts(answer, &none)
                        && !self.repeats_its_call(answer, &datum, &none)
                };
                self.answers.iter().find(says).map(|answer| format!("tool:{}", answer.tool()))
            }
        }
    }

    /// Whether a person typed the value, as a whole.
    fn is_typed(&self, value: &Value) -> bool {
        self.typed.iter().any(|literals| literals.have(value))
    }

    /// Whether the arguments of the call behind an answer are those that were planned, or typed, under names that stand in the schema. A page
    /// or its size may be any number, or what another answer of the tool gave as the next page.
    fn counts(&self, answer: &Answer, with: &BTreeMap<Box<str>, Origin>) -> bool {
        let registration = answer.registration();
        let paging = &registration.flow.paging;
        let pages = |name: &str| [&paging.page, &paging.size].into_iter().flatten().any(|own| own == name);
        let given = |(name, value): (&str, &Value)| match with.get(name) {
            Some(Origin::From(source)) => self.found(registration, name, &Datum::of(value), source).permitted,
            Some(origin) => origin.equals(&Datum::of(value)),
            None if pages(name) => {
                matches!(value, Value::Integer(0..=LAST_PAGE)) || self.is_next(answer, value) || self.is_typed(value)
            }
            // An object has keys of the caller's own.
            None => self.is_typed(value) && !has_object(value),
        };
        !answer.is_named_freely()
            && answer.arguments().iter().all(given)
            && with.keys().all(|name| answer.arguments().value(name).is_some())
    }

    fn is_next(&self, answer: &Answer, value: &Value) -> bool {
        let Some(key) = &answer.registration().flow.paging.next else { return false };
        let of_tool = self.answers.iter().filter(|other| other.tool() == answer.tool());
        of_tool.filter_map(|other| other.top(key)).any(|next| next.is(&Datum::of(value)))
    }

    /// Whether an answer may say no more of `value` than its own call put into it. What was typed is no echo; of what was planned `with`
    /// it, only the value itself or a part of it is.
    fn repeats_its_call(&self, answer: &Answer, value: &Datum, with: &BTreeMap<Box<str>, Origin>) -> bool {
        let mut told: Vec<(bool, String)> = Vec::new();
        for (name, argument) in answer.arguments().iter().filter(|(_, argument)| !self.is_typed(argument)) {
            let is_planned = with.contains_key(name);
            Datum::of(argument).leaves(&mut |leaf| told.push((is_planned, leaf.to_lowercase())));
        }
        let mut repeats = false;
        value.leaves(&mut |leaf| {
            let leaf = leaf.to_lowercase();
            let holds = |one: &str, other: &str| one == other || (other.len() >= MIN_ECHO && one.contains(other));
            repeats |= told.iter().any(|(is_planned, told)| holds(told, &leaf) || (!is_planned && holds(&leaf, told)));
        });
        repeats
    }

    /// The answers that count for a source, if all of its tools were read to the end.
    fn read_to_the_end(&self, source: &Source) -> Option<Vec<&'a Answer>> {
        let mut all: Vec<&Answer> = Vec::new();
        for tool in &source.tools {
            let mut own: Vec<&Answer> = Vec::new();
            let of_tool = self.answers.iter().filter(|answer| answer.tool() == tool);
            for answer in of_tool.filter(|answer| self.counts(answer, &source.with)) {
                if !own.iter().any(|other| answer.repeats(other)) {
                    own.push(answer);
                }
            }
            let mut rest = own.clone();
            while let Some(first) = rest.first().copied() {
                let (pages, others) =
                    rest.into_iter().partition::<Vec<_>, _>(|answer| list_of(answer) == list_of(first));
                if !are_complete(&pages) {
                    return None;
                }
                rest = others;
            }
            let is_read = !own.is_empty() && own.iter().all(|answer| answer.is_read());
            all.extend(is_read.then_some(own)?);
        }
        Some(all)
    }

    /// Whether a critical argument of the tool of `registration` has the value that a source means, and may have it.
    pub(super) fn found(&self, registration: &Registration, name: &str, value: &Datum, source: &Source) -> Found {
        let found = self.read_to_the_end(source).and_then(|answers| match source.field.as_deref() {
            None => self.in_text(registration, name, value, source, &answers),
            Some(field) => self.in_records(registration, name, value, pick(source, field, &answers)?, source),
        });
        found.unwrap_or_else(|| {
            let from = source.tools.first().map_or_else(String::new, ToString::to_string);
            Found::ask(format!("untrusted:tool:{from}"))
        })
    }

    fn in_records(
        &self,
        registration: &Registration,
        name: &str,
        value: &Datum,
        chosen: Chosen<'_>,
        source: &Source,
    ) -> Option<Found> {
        let may = |one: &Picked<'_>| {
            one.answer.covers(&registration.name, name) && !self.repeats_its_call(one.answer, one.value, &source.with)
        };
        let one = match chosen {
            Chosen::One(one) if is_one(value, one.value) => one,
            Chosen::One(_) => return None,
            Chosen::Each(all) => return each(value, &all, may),
        };
        let singled_out = match source.pick {
            Pick::Least(_) | Pick::Most(_) => true,
            Pick::Only => source.given.is_some(),
            Pick::First | Pick::Last | Pick::All => false,
        };
        let flow = &registration.flow;
        let identifies = flow.identifies.iter().any(|own| own == name) && !flow.destinations.have(name);
        let identifies = identifies && is_scalar(one.value);
        let from = one.answer.tool();
        let found = if may(&one) {
            Found::permit(format!("tool:{from}"))
        } else if identifies && singled_out {
            Found::permit(format!("picked:tool:{from}"))
        } else {
            Found::ask(format!("untrusted:tool:{from}"))
        };
        Some(Found { rows: Some((vec![one.number()], 1)), ..found })
    }

    /// A value that stands in a plain text as a whole.
    fn in_text(
        &self,
        registration: &Registration,
        name: &str,
        value: &Datum,
        source: &Source,
        answers: &[&Answer],
    ) -> Option<Found> {
        let is_plain = answers.iter().all(|answer| answer.registration().flow.format == Format::Text);
        let picks = source.given.is_some() || source.pick != Pick::Only;
        let text = value.as_text().filter(|_| is_plain && !picks)?;
        let value = Value::Text(text.to_owned());
        let says = |answer: &&&Answer| {
            answer.says(&registration.name, name, &value)
                && !self.repeats_its_call(answer, &Datum::of(&value), &source.with)
        };
        answers.iter().find(says).map(|answer| Found::permit(format!("tool:{}", answer.tool())))
    }
}

fn has_object(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::List(values) => values.iter().any(has_object),
        _ => false,
    }
}

/// Whether the value is the one record's, alone or as the only one of a list.
fn is_one(value: &Datum, own: &Datum) -> bool {
    value.is(own) || matches!(value, Datum::List(values) if matches!(values.as_slice(), [value] if value.is(own)))
}

const fn is_scalar(value: &Datum) -> bool {
    matches!(value, Datum::Text(_) | Datum::Cell(_) | Datum::Number(_))
}

/// A list that has all that was picked, or one of it.
fn each(value: &Datum, all: &[Picked<'_>], may: impl Fn(&Picked<'_>) -> bool) -> Option<Found> {
    let found = |one: &Picked<'_>, is_allowed: bool| {
        let from = one.answer.tool();
        if is_allowed { Found::permit(format!("tool:{from}")) } else { Found::ask(format!("untrusted:tool:{from}")) }
    };
    if let Datum::List(_) = value {
        let values = Datum::List(all.iter().map(|one| one.value.clone()).collect());
        return all.first().filter(|_| value.is(&values)).map(|one| found(one, all.iter().all(&may)));
    }
    let same: Vec<&Picked<'_>> = all.iter().filter(|one| value.is(one.value)).collect();
    let first = same.first()?;
    let rows = Some((same.iter().map(|one| one.number()).collect(), all.len()));
    Some(Found { rows, ..found(first, same.iter().all(|one| may(one))) })
}
