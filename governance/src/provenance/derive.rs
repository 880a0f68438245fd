//! The closed list of derivations: how an argument may come from a trusted span. Whatever is not here is untrusted.
//!
//! 1. It stands in the span as whole tokens, after NFC and case folding.
//! 2. It is the same number, day, time or amount of money as one the span speaks of; a day also relative to the turn.
//!    A time of day alone means the next one to come, where the span speaks of no day; where its sentence speaks of one,
//!    it goes with that day and no other. A day and a length of stay also say the day it ends.
//! 3. It is a list, or a text with commas, of which each part is derivable by itself.
//! 4. It is what the registration itself declares for the argument.
//!
//! A span vouches if it is trusted, or if its source is declared trusted for this argument. Shorter than four
//! characters, a value comes only from a place bound to the argument: the source is declared for it, a word of the
//! argument's name stands directly beside the value, or, of a number, the word for what the argument counts (people,
//! nights). An argument that is called by a currency takes amounts in it. What is plainly meant for another argument does
//! not count (`slots`).

use ephor_base::arguments::Value;

use super::{
    date::{Date, Time},
    index::TypedPlace,
    number::Number,
    slots::{Sink, beside, cuts_a_quotation},
    table::SpanTable,
    text::{folded, weight},
    typed::{Typed, Whole, whole},
};
use crate::registry::Tool;

/// An argument shorter than this is found in too many texts to mean anything.
const MIN_CHARS: usize = 4;
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
}

/// Where the argument `name` of a call of `tool` comes from. `given` are the arguments that matter in that call.
pub(super) fn finding(table: &SpanTable, tool: &Tool, name: &str, value: &Value, given: &[(&str, &Value)]) -> Finding {
    let sink = Sink { tool, argument: name, key: name };
    let mut finding = Finding { argument: name.to_owned(), trusted: true, labels: Vec::new() };
    if tool.declares(name, value) {
        finding.labels.push("registration".to_owned());
    } else {
        Walk { table, given, finding: &mut finding }.value(sink, value, 0);
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

struct Walk<'a, 'f> {
    table: &'a SpanTable,
    given: &'a [(&'a str, &'a Value)],
    finding: &'f mut Finding,
}

impl Walk<'_, '_> {
    fn value(&mut self, sink: Sink<'_>, value: &Value, depth: usize) {
        match value {
            Value::Null => {}
            // Yes or no has no words of its own to be found.
            Value::Bool(_) => self.doubt(None),
            Value::Integer(number) => self.number(sink, Number::whole(*number), &number.to_string()),
            Value::Float(number) => match Number::of(*number) {
                Some(exact) => self.number(sink, exact, &number.to_string()),
                None => self.doubt(None),
            },
            Value::Text(text) => self.text(sink, &folded(text)),
            Value::List(_) | Value::Object(_) if depth >= MAX_DEPTH => self.doubt(None),
            Value::List(values) => values.iter().for_each(|value| self.value(sink, value, depth.saturating_add(1))),
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                // A key that the schema does not have says what nobody has declared.
                if !sink.tool.has_property(key) {
                    self.doubt(None);
                }
                self.value(Sink { key, ..sink }, value, depth.saturating_add(1));
            }),
        }
    }

    fn number(&mut self, sink: Sink<'_>, number: Number, value: &str) {
        // An argument that is called by a currency takes an amount in that and no other.
        let typed = sink.currency().map_or(Typed::Number(number), |currency| Typed::Amount(currency, number));
        match self.typed(sink, typed, value).or_else(|| self.plain(sink, number, value)) {
            Some(origin) => self.trust(&origin),
            None => self.doubt(self.table.doubted(value, Some(Typed::Number(number))).map(str::to_owned)),
        }
    }

    /// A bare number for an argument that is called by a currency, from a source declared for it.
    fn plain(&self, sink: Sink<'_>, number: Number, value: &str) -> Option<String> {
        sink.currency()?;
        let mut places = self.table.vouching_typed(Typed::Number(number), value, sink);
        let (place, _) = places.find(|(place, bound)| *bound && !place.money)?;
        Some(self.table.origin(place.span).to_owned())
    }

    fn text(&mut self, sink: Sink<'_>, value: &str) {
        if self.is_taken(sink, value) {
            return self.doubt(self.table.doubted(value, None).map(str::to_owned));
        }
        if let Some(origin) = self.token(sink, value).or_else(|| self.meaning(sink, value)) {
            return self.trust(&origin);
        }
        if value.contains([',', ';']) && self.parts(sink, value) {
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
        let others = self.given.iter().filter(|(name, _)| *name != sink.argument);
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
    fn token(&self, sink: Sink<'_>, value: &str) -> Option<String> {
        // What an amount of money may be, `typed` says.
        let money = sink.is_money() && Number::read(value).is_some();
        let long = weight(value) >= MIN_CHARS && !money;
        let (sourced, wrong) = (value.contains(' ') && self.table.is_sourced(sink), sink.rules_out(value));
        let (place, _) = self.table.vouching(value, sink).find(|(place, bound)| {
            let text = self.table.text(place.span);
            let start = usize::try_from(place.at).unwrap_or(usize::MAX);
            let end = start.saturating_add(value.len());
            let meant = || !wrong && !cuts_a_quotation(text, start, end) && !sink.is_not_for(text, start, end, sourced);
            *bound || (meant() && (long || beside(text, start, end).iter().any(|word| sink.says(word))))
        })?;
        Some(self.table.origin(place.span).to_owned())
    }

    /// The same number, day, time or amount as in a span that vouches.
    fn meaning(&self, sink: Sink<'_>, value: &str) -> Option<String> {
        whole(value).into_iter().find_map(|way| match way {
            Whole::One(typed) => self.typed(sink, typed, value),
            Whole::Moment(day, time, offset) => {
                // An hour elsewhere is another hour.
                if offset.is_some() && offset != self.table.offset() {
                    return None;
                }
                self.moment(sink, day, time, value)
            }
        })
    }

    /// A day with a time of it. A time goes with a day of its own sentence, if that speaks of any: two appointments in one
    /// message are not to be mixed.
    fn moment(&self, sink: Sink<'_>, day: Date, time: Time, value: &str) -> Option<String> {
        let origin = self.typed(sink, Typed::Time(time), value)?;
        let days: Vec<(&TypedPlace, bool)> = self.table.vouching_typed(Typed::Date(day), value, sink).collect();
        let mut times = self.table.vouching_typed(Typed::Time(time), value, sink);
        times.find(|(said, _)| {
            if self.table.has_day(said.span, Some(said.sentence)) {
                return days.iter().any(|(day, _)| (day.span, day.sentence) == (said.span, said.sentence));
            }
            !days.is_empty() || (self.table.next(time) == Some(day) && !self.table.has_day(said.span, None))
        })?;
        Some(origin)
    }

    fn typed(&self, sink: Sink<'_>, typed: Typed, value: &str) -> Option<String> {
        let fits = |place: &TypedPlace| match typed {
            // Money fills what is money and nothing else; a bare number is no money beside an amount.
            Typed::Number(_) if place.money || sink.is_money() && self.table.has_money(place.span) => {
                place.money && sink.is_money()
            }
            Typed::Number(number) => number.length() >= MIN_CHARS,
            _ => true,
        };
        let wrong = sink.rules_out(value);
        let named = |place: &TypedPlace| sink.says(&place.before) || sink.says(&place.after);
        let counted = |place: &TypedPlace| {
            matches!(typed, Typed::Number(_)) && !place.money && sink.counts(&place.before, &place.after)
        };
        let (place, _) = self
            .table
            .vouching_typed(typed, value, sink)
            .find(|(place, bound)| *bound || (!wrong && (named(place) || counted(place) || fits(place))))?;
        Some(self.table.origin(place.span).to_owned())
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
