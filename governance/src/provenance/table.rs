//! The spans of a session as governance sees them: each indexed once, when it enters.

use std::sync::Arc;

use ephor_base::{Arguments, Confidentiality, Integrity, Label, Registration, Source, arguments::Value};

use super::{
    carried::{self, Carried},
    date::{Date, Time, TurnTime},
    derive::{self, Finding},
    index::{Holds, Index, Place, TypedPlace},
    slots::Sink,
    text::folded,
    typed::Typed,
};
use crate::registry::Tool;

/// All spans of a session. It only grows; what a person's message said before it was recorded is withdrawn.
#[derive(Clone, Debug, Default)]
pub struct SpanTable {
    spans: Vec<Entered>,
    vouched: Index,
    doubtful: Index,
    now: Option<TurnTime>,
}

/// A span, folded.
#[derive(Clone, Debug)]
struct Entered {
    text: String,
    origin: Arc<str>,
    standing: Standing,
    carried: Carried,
    confidentiality: Confidentiality,
    /// Whether it has an amount with its currency.
    has_money: bool,
    /// The sentences of it that speak of a day.
    days: Vec<u32>,
}

/// What a span may vouch for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Standing {
    /// Everything.
    Trusted,
    /// What its source is declared trusted for.
    For(Arc<[String]>),
    /// Nothing.
    Untrusted,
}

impl SpanTable {
    /// A turn begins: from here on relative days count from `now`.
    pub fn begin_turn(&mut self, now: Option<TurnTime>) {
        self.now = now;
    }

    /// Takes in a span that no tool wrote. Its number is how many entered before it.
    pub fn enter(&mut self, label: Label, text: &str) -> usize {
        let asked = label.integrity == Integrity::Trusted && label.source == Source::User;
        let standing = if asked { Standing::Trusted } else { Standing::Untrusted };
        self.push(text, source_name(label.source).into(), standing, Carried::default(), label.confidentiality)
    }

    /// Takes in what the tool of `registration` gave, as `label` has it, for a call that carried `carried` in.
    pub fn enter_result(&mut self, label: Label, text: &str, registration: &Registration, carried: Carried) -> usize {
        let standing = match label.integrity {
            Integrity::Trusted if registration.flow.trusted_for.is_empty() => Standing::Trusted,
            Integrity::Untrusted if registration.flow.trusted_for.is_empty() => Standing::Untrusted,
            // Declared for some arguments, it is trusted for no others.
            Integrity::Trusted | Integrity::Untrusted => Standing::For(registration.flow.trusted_for.clone().into()),
        };
        self.push(text, format!("tool:{}", registration.name).into(), standing, carried, label.confidentiality)
    }

    /// Takes in a part of a result that has a label of its own, and so is not what the tool is declared trusted for.
    pub fn enter_part(&mut self, label: Label, text: &str, registration: &Registration, carried: Carried) -> usize {
        if label.integrity == Integrity::Trusted {
            return self.enter_result(label, text, registration, carried);
        }
        let standing = Standing::Untrusted;
        self.push(text, format!("tool:{}", registration.name).into(), standing, carried, label.confidentiality)
    }

    fn push(
        &mut self,
        text: &str,
        origin: Arc<str>,
        standing: Standing,
        carried: Carried,
        confidentiality: Confidentiality,
    ) -> usize {
        let (text, at) = (folded(text), self.spans.len());
        let index = if standing == Standing::Untrusted { &mut self.doubtful } else { &mut self.vouched };
        let holds = u32::try_from(at).map(|number| index.take_in(number, &text, self.now)).unwrap_or_default();
        let Holds { money: has_money, days } = holds;
        self.spans.push(Entered { text, origin, standing, carried, confidentiality, has_money, days });
        at
    }

    /// Takes back what a span says: it was not recorded, and is trusted for nothing. Its number stays used.
    pub fn withdraw(&mut self, number: usize) {
        if let Some(span) = self.spans.get_mut(number) {
            span.text = String::new();
            span.standing = Standing::Untrusted;
        }
    }

    /// The most confidential span.
    #[must_use]
    pub fn highest(&self) -> Confidentiality {
        self.spans.iter().map(|span| span.confidentiality).max().unwrap_or(Confidentiality::Public)
    }

    /// The untrusted arguments of a call of `tool`: what its result may repeat.
    #[must_use]
    pub fn carried(&self, tool: &Tool, arguments: &Arguments) -> Carried {
        carried::of(arguments, |name, value| derive::finding(self, tool, name, value, &[]).trusted)
    }

    /// Where each critical argument of a call of `tool` comes from.
    #[must_use]
    pub fn findings(&self, tool: &Tool, arguments: &Arguments) -> Vec<Finding> {
        let critical = |name: &str| tool.is_critical(name);
        let given = arguments.iter().filter(|(name, value)| critical(name) && !matches!(value, Value::Null));
        let given: Vec<(&str, &Value)> = given.collect();
        given.iter().map(|(name, value)| derive::finding(self, tool, name, value, &given)).collect()
    }

    /// The spans that vouch for the folded `value` as an argument for `sink`, as tokens.
    pub(super) fn vouching<'a>(&'a self, value: &'a str, sink: Sink<'a>) -> impl Iterator<Item = (Place, bool)> + 'a {
        let places = self.vouched.places(value, |span| self.text(span));
        places.filter_map(move |place| Some((place, self.vouches(place.span, value, None, sink)?)))
    }

    /// The places that vouch for a typed value as an argument for `sink`.
    pub(super) fn vouching_typed<'a>(
        &'a self,
        typed: Typed,
        value: &'a str,
        sink: Sink<'a>,
    ) -> impl Iterator<Item = (&'a TypedPlace, bool)> + 'a {
        let places = self.vouched.typed(typed).iter();
        places.filter_map(move |place| Some((place, self.vouches(place.span, value, Some(typed), sink)?)))
    }

    /// Whether span number `span` vouches for the value; then also whether it is bound to that very argument.
    fn vouches(&self, span: u32, value: &str, typed: Option<Typed>, sink: Sink<'_>) -> Option<bool> {
        let span = self.entered(span)?;
        match &span.standing {
            Standing::Trusted => span.carried.leaves_out(value, typed, true).then_some(false),
            Standing::For(entries) => {
                let declared = entries.iter().any(|entry| sink.is(entry));
                (declared && span.carried.leaves_out(value, typed, false)).then_some(true)
            }
            Standing::Untrusted => None,
        }
    }

    /// Whose untrusted text holds the value, if any does.
    pub(super) fn doubted(&self, value: &str, typed: Option<Typed>) -> Option<&str> {
        let place = self.doubtful.places(value, |span| self.text(span)).map(|place| place.span).next();
        let typed = || typed.and_then(|typed| self.doubtful.typed(typed).first()).map(|place| place.span);
        // A source may be trusted, and not for this argument.
        let other = || self.vouched.places(value, |span| self.text(span)).map(|place| place.span).next();
        place.or_else(typed).or_else(other).map(|span| self.origin(span))
    }

    pub(super) fn origin(&self, span: u32) -> &str {
        self.entered(span).map_or("", |span| &span.origin)
    }

    /// Whether the span has an amount with its currency; then a bare number in it is none.
    pub(super) fn has_money(&self, span: u32) -> bool {
        self.entered(span).is_some_and(|span| span.has_money)
    }

    /// Whether the span speaks of a day, in that sentence or at all. One that is not there might.
    pub(super) fn has_day(&self, span: u32, sentence: Option<u32>) -> bool {
        self.entered(span).is_none_or(|span| match sentence {
            Some(sentence) => span.days.contains(&sentence),
            None => !span.days.is_empty(),
        })
    }

    /// The day on which `time` comes next.
    pub(super) fn next(&self, time: Time) -> Option<Date> {
        self.now.map(|now| now.next(time))
    }

    /// Whether a tool has answered that is declared to know what `sink` may be.
    pub(super) fn is_sourced(&self, sink: Sink<'_>) -> bool {
        let knows = |span: &Entered| match &span.standing {
            Standing::For(entries) => entries.iter().any(|entry| sink.is(entry)),
            Standing::Trusted | Standing::Untrusted => false,
        };
        self.spans.iter().any(knows)
    }

    pub(super) fn text(&self, span: u32) -> &str {
        self.entered(span).map_or("", |span| &span.text)
    }

    /// How far the clock of the turn is ahead of UTC, in minutes, if it is known.
    pub(super) fn offset(&self) -> Option<i32> {
        self.now.map(|now| now.offset)
    }

    fn entered(&self, span: u32) -> Option<&Entered> {
        usize::try_from(span).ok().and_then(|at| self.spans.get(at))
    }
}

const fn source_name(source: Source) -> &'static str {
    match source {
        Source::Operator => "operator",
        Source::User => "user",
        Source::Tool => "tool",
        Source::Memory => "memory",
        Source::Peer => "peer",
        Source::Model => "model",
        Source::Kernel => "kernel",
    }
}
