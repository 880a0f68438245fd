//! Which record of the answers is meant.

use std::cmp::Ordering;

use super::{
    Pick, Source,
    answer::{Answer, Row},
    paging::list_of,
};
use crate::{
    datum::Datum,
    literals::{self, Literal, Literals},
};

/// A record that was picked.
#[derive(Clone, Copy)]
pub(super) struct Picked<'a> {
    pub(super) answer: &'a Answer,
    pub(super) row: &'a Row,
    pub(super) value: &'a Datum,
}

/// What was picked of the answers.
pub(super) enum Chosen<'a> {
    /// One record.
    One(Picked<'a>),
    /// Each of these.
    Each(Vec<Picked<'a>>),
}

/// The records that `source` means among the answers, if that can be told.
pub(super) fn pick<'a>(source: &Source, field: &str, answers: &[&'a Answer]) -> Option<Chosen<'a>> {
    if source.given.as_ref().is_some_and(std::collections::BTreeMap::is_empty) {
        return None;
    }
    let rows = answers.iter().flat_map(|answer| answer.rows().iter().map(move |row| (*answer, row)));
    let found: Vec<Picked<'a>> = rows
        .filter(|(_, row)| is_given(source, row))
        .filter_map(|(answer, row)| row.fields.value(field).map(|value| Picked { answer, row, value }))
        .collect();
    let (first, last) = (*found.first()?, *found.last()?);
    if found.iter().any(|one| one.row.depth != first.row.depth) {
        return None;
    }
    // Several lists are in the order in which they were asked for.
    let ordered = answers.iter().all(|one| one.tool() == first.answer.tool() && list_of(one) == list_of(first.answer));
    match &source.pick {
        Pick::Only if found.len() == 1 => Some(Chosen::One(first)),
        Pick::Only => None,
        Pick::First => ordered.then_some(Chosen::One(first)),
        Pick::Last => ordered.then_some(Chosen::One(last)),
        Pick::Least(key) => extreme(&found, key, Ordering::Less).map(Chosen::One),
        Pick::Most(key) => extreme(&found, key, Ordering::Greater).map(Chosen::One),
        Pick::All => Some(Chosen::Each(found)),
    }
}

impl Picked<'_> {
    /// Tells the record from every other one of a decision.
    pub(super) fn number(&self) -> usize {
        std::ptr::from_ref(self.row).addr()
    }
}

/// Whether a record has what is given of it: the same value, or a text with the given one in it.
fn is_given(source: &Source, row: &Row) -> bool {
    let fits = |own: &Datum, wanted: &Datum| {
        own.is(wanted) || own.as_text().zip(wanted.as_text()).is_some_and(|(own, wanted)| has_part(own, wanted))
    };
    let given = source.given.iter().flatten();
    given.into_iter().all(|(key, wanted)| row.fields.value(key).is_some_and(|own| fits(own, wanted)))
}

/// Whether `part` is a part of `text` that means the same there: one of a longer number, account or address does not, and an address
/// is meant where no other stands beside it.
fn has_part(text: &str, part: &str) -> bool {
    if part.trim().is_empty() {
        return false;
    }
    match literals::read(part) {
        Some(address @ Literal::Address(_)) => Literals::of(text).has_only(&address),
        Some(Literal::Number(_) | Literal::Amount(..) | Literal::Account(_)) => Literals::of(text).have_text(part),
        _ => text.contains(part),
    }
}

/// The one record that has the least or the most of a key that all have and that can be compared in all.
fn extreme<'a>(found: &[Picked<'a>], key: &str, wanted: Ordering) -> Option<Picked<'a>> {
    let ranked: Vec<(Literal, Picked<'a>)> =
        found.iter().map(|one| Some((rank(one.row.fields.value(key)?)?, *one))).collect::<Option<_>>()?;
    let (mut best, mut tied) = (ranked.first()?.clone(), false);
    for (rank, one) in ranked.iter().skip(1) {
        match compare(rank, &best.0)? {
            Ordering::Equal => tied = true,
            order if order == wanted => (best, tied) = ((rank.clone(), *one), false),
            _ => {}
        }
    }
    (!tied).then_some(best.1)
}

/// What a value is compared by.
fn rank(value: &Datum) -> Option<Literal> {
    match value {
        Datum::Number(number) => Some(Literal::Number(*number)),
        Datum::Text(text) | Datum::Cell(text) => literals::read(text),
        _ => None,
    }
}

/// Which is more; nothing of two kinds, or of two currencies.
fn compare(one: &Literal, other: &Literal) -> Option<Ordering> {
    match (one, other) {
        (Literal::Number(one), Literal::Number(other)) => Some(one.cmp(other)),
        (Literal::Amount(own, one), Literal::Amount(their, other)) if own == their => Some(one.cmp(other)),
        (Literal::Day(one), Literal::Day(other)) => Some(one.cmp(other)),
        (Literal::Time(one), Literal::Time(other)) => Some(one.cmp(other)),
        (Literal::Local(one), Literal::Local(other)) => Some(one.cmp(other)),
        (Literal::Moment(one), Literal::Moment(other)) => Some(one.cmp(other)),
        (Literal::Duration(one), Literal::Duration(other)) => Some(one.cmp(other)),
        _ => None,
    }
}
