//! The closed list of derivations: how an argument may come from a trusted span. Whatever is not here is untrusted.
//!
//! 1. It stands in the span as whole tokens, after NFC and case folding.
//! 2. It is the same number, day, time or amount of money as one the span speaks of; a day also relative to the turn.
//! 3. It is a list, or a text with commas, of which each part is derivable by itself.
//! 4. It is what the registration itself declares for the argument.
//!
//! A span vouches if it is trusted, or if its source is declared trusted for this argument. Shorter than four
//! characters, a value comes only from a place bound to the argument: the source is declared for it, or a word of the
//! argument's name stands directly beside the value.

use ephor_base::arguments::Value;

use super::{
    index::TypedPlace,
    number::Number,
    table::SpanTable,
    text::{folded, words},
    typed::{Typed, Whole, whole},
};
use crate::registry::Tool;

/// An argument shorter than this is found in too many texts to mean anything.
const MIN_CHARS: usize = 4;
/// How many bytes a word directly beside a value may take.
const NEAR: usize = 64;
/// How far back a quotation may begin, in bytes.
const QUOTATION: usize = 2048;
/// How deep lists and objects are followed.
const MAX_DEPTH: usize = 16;
/// Words that say that an argument is an amount of money.
const MONEY: [&str; 12] =
    ["amount", "price", "sum", "total", "cost", "fee", "budget", "payment", "value", "limit", "money", "balance"];

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

/// Where a value goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sink<'a> {
    tool: &'a str,
    argument: &'a str,
    /// The key right around the value, where that is another.
    key: &'a str,
}

impl Sink<'_> {
    /// Whether `entry` of a declaration names this argument: `argument` or `tool.argument`.
    pub(super) fn is(&self, entry: &str) -> bool {
        let tool = entry.strip_suffix(self.argument).and_then(|rest| rest.strip_suffix('.'));
        entry == self.argument || tool == Some(self.tool)
    }

    /// Whether `word`, folded, is a word of the argument's name.
    fn says(&self, word: &str) -> bool {
        let singular = |word: &str| word.strip_suffix('s').unwrap_or(word).to_owned();
        let word = singular(word);
        !word.is_empty() && name_words(self.argument).chain(name_words(self.key)).any(|own| singular(&own) == word)
    }

    fn is_money(&self) -> bool {
        name_words(self.argument).chain(name_words(self.key)).any(|own| MONEY.contains(&own.as_str()))
    }
}

/// The words directly before and after `text[start..end]`; empty where there is none nearby.
fn beside(text: &str, start: usize, end: usize) -> [&str; 2] {
    let from = text.floor_char_boundary(start.saturating_sub(NEAR));
    let to = text.floor_char_boundary(end.saturating_add(NEAR));
    let before = text.get(from..start).and_then(|text| words(text).last());
    let after = text.get(end..to).and_then(|text| words(text).next());
    [before, after].map(|word| word.map_or("", |word| word.core))
}

/// Whether `text[start..end]` is a piece of a quotation and not all of it: its sense may be another.
fn cuts_a_quotation(text: &str, start: usize, end: usize) -> bool {
    let from = text.floor_char_boundary(start.saturating_sub(QUOTATION));
    let (Some(before), Some(after)) = (text.get(from..start), text.get(end..)) else { return true };
    let straight = before.matches('"').count() % 2 == 1;
    let curly = before.rfind(['“', '„']) > before.rfind('”');
    let whole = before.ends_with(['"', '“', '„'])
        && after.trim_start_matches(['.', ',', '!', '?', ';']).starts_with(['"', '”', '“']);
    (straight || curly) && !whole
}

/// The words of a name such as `event_id` or `eventId`.
fn name_words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        lower = c.is_lowercase();
    }
    words.into_iter().filter(|word| !word.is_empty())
}

/// Where the argument `name` of a call of `tool` comes from.
pub(super) fn finding(table: &SpanTable, tool: &Tool, name: &str, value: &Value) -> Finding {
    let sink = Sink { tool: tool.registration().name.as_str(), argument: name, key: name };
    let mut finding = Finding { argument: name.to_owned(), trusted: true, labels: Vec::new() };
    if tool.declares(name, value) {
        finding.labels.push("registration".to_owned());
    } else {
        Walk { table, tool, finding: &mut finding }.value(sink, value, 0);
    }
    finding
}

struct Walk<'a, 'f> {
    table: &'a SpanTable,
    tool: &'a Tool,
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
                if !self.tool.has_property(key) {
                    self.doubt(None);
                }
                self.value(Sink { key, ..sink }, value, depth.saturating_add(1));
            }),
        }
    }

    fn number(&mut self, sink: Sink<'_>, number: Number, value: &str) {
        match self.typed(sink, Typed::Number(number), value) {
            Some(origin) => self.trust(&origin),
            None => self.doubt(self.table.doubted(value, Some(Typed::Number(number))).map(str::to_owned)),
        }
    }

    fn text(&mut self, sink: Sink<'_>, value: &str) {
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
        let long = value.chars().count() >= MIN_CHARS && !money;
        let (place, _) = self.table.vouching(value, sink).find(|(place, bound)| {
            let text = self.table.text(place.span);
            let start = usize::try_from(place.at).unwrap_or(usize::MAX);
            let end = start.saturating_add(value.len());
            *bound
                || !cuts_a_quotation(text, start, end)
                    && (long || { beside(text, start, end).iter().any(|word| sink.says(word)) })
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
                self.typed(sink, Typed::Time(time), value)?;
                self.typed(sink, Typed::Date(day), value)
            }
        })
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
        let (place, _) = self
            .table
            .vouching_typed(typed, value, sink)
            .find(|(place, bound)| *bound || sink.says(&place.before) || sink.says(&place.after) || fits(place))?;
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
