//! The spans of a session as governance sees them: each indexed once, when it enters.

use std::sync::{Arc, OnceLock};

use ephor_base::{Arguments, Confidentiality, Integrity, Label, Registration, Source, arguments::Value};

use super::{
    carried::{self, Carried},
    date::{Date, Time, TurnTime},
    derive::{self, Finding},
    former::{Former, within},
    index::{Holds, Index, Place, TypedPlace},
    moments::{self, Moments, Said, When, stretches},
    names::{long_names, short_names},
    picks::{Asked, Picks, Used},
    records::MASK,
    roles::Roles,
    rows::{Row, Rows},
    slots::{Sink, names_persons},
    sums,
    text::folded,
    typed::{Typed, placed},
};
use crate::registry::Tool;

/// What ends a clause, within a folded text.
const CLAUSE_ENDS: [&str; 8] = [", ", "; ", ". ", "? ", "! ", " and ", " und ", " y "];
/// So many words the end of a clause is worth.
const A_CLAUSE: usize = 20;

/// All spans of a session. It only grows; what a person's message said before it was recorded is withdrawn.
#[derive(Clone, Debug, Default)]
pub struct SpanTable {
    spans: Vec<Entered>,
    lists: Vec<List>,
    /// Whether the next part is the first of a result.
    begins: bool,
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
    /// Its amounts with their currencies.
    amounts: Vec<(usize, usize, usize, Typed)>,
    /// What a message picks of lists.
    picks: Option<Picks>,
    /// The list that it is a part of, if a tool gave it.
    list: Option<usize>,
    /// The sentences of it that speak of a day.
    days: Vec<u32>,
    /// The days and the times that it speaks of, in order.
    moments: Vec<Said>,
    /// The short words that it writes as names.
    names: Vec<Box<str>>,
    /// The days, the times, the sums and the other numbers of a message, each with its first byte.
    values: Vec<(Typed, usize)>,
    /// Whether it has a word that may say so of a sum.
    may_be_old: bool,
    /// What a message says was so before.
    former: Former,
    /// What it says of who and where.
    roles: Roles,
    /// The two ends of what it says lasts.
    stretches: Vec<(When, When)>,
}

/// What one tool has given without another between.
#[derive(Clone, Debug, Default)]
struct List {
    /// All of it, with a sign in place of each part that nobody is trusted for.
    text: String,
    /// At which byte of it each span begins that is trusted for something.
    cuts: Vec<(usize, u32)>,
    /// Whether the last part is one that nobody is trusted for, and ends a line.
    ends_a_line: bool,
    /// Its records, read when somebody first asks.
    rows: OnceLock<Rows>,
}

/// Records of a list of which one could be taken in place of another.
#[derive(Clone)]
struct Beside<'a> {
    rows: Vec<&'a Row>,
    /// Which of them a place is in.
    mine: usize,
    /// Whether what stands there is the name of a record by letters and figures, or by its key.
    is_named: bool,
    /// Whether all the others lie in that one: whose companions they are.
    is_outer: bool,
}

/// A record of a list.
pub(super) struct Record<'a> {
    pub(super) row: &'a Row,
    /// What stands before the value that was asked for.
    pub(super) key: &'a str,
    /// Which list, and which record of it.
    pub(super) number: (usize, usize),
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

impl List {
    /// Takes in a part. `begins` is whether it is the first of a result.
    fn take_in(&mut self, text: &str, span: u32, is_trusted: bool, begins: bool) {
        self.rows = OnceLock::new();
        // What another call gave begins a line.
        if begins && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        let ends_a_line = std::mem::take(&mut self.ends_a_line);
        if is_trusted {
            // Only what is trusted says that it begins a line: it does not go on behind a sign or a space.
            if ends_a_line && begins_a_line(text) && !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.cuts.push((self.text.len(), span));
            // The sign itself is nothing that a text may have.
            self.text.extend(text.chars().map(|c| if c == MASK { char::REPLACEMENT_CHARACTER } else { c }));
            return;
        }
        let at_a_line = self.text.is_empty() || self.text.ends_with('\n');
        self.ends_a_line = text.ends_with('\n');
        // Whole lines that are set in belong to the record before them, and say nothing of it.
        if !(at_a_line && self.ends_a_line && text.starts_with([' ', '\t'])) {
            self.text.push(MASK);
        }
    }
}

/// Whether a text behind a part that ends a line begins the next one.
fn begins_a_line(text: &str) -> bool {
    let bare = text.trim_start_matches([' ', '\t']);
    let key = bare.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.')).unwrap_or(bare.len());
    let keyed = key > 0 && bare.get(key..).is_some_and(|rest| rest.starts_with([':', '=']));
    !text.starts_with(char::is_whitespace) || keyed || bare.starts_with("- ")
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
        self.begin_result();
        self.take_in_result(label, text, registration, carried)
    }

    /// The parts that enter from here on are of another result.
    pub const fn begin_result(&mut self) {
        self.begins = true;
    }

    fn take_in_result(&mut self, label: Label, text: &str, registration: &Registration, carried: Carried) -> usize {
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
            return self.take_in_result(label, text, registration, carried);
        }
        let origin = format!("tool:{}", registration.name).into();
        self.push(text, origin, Standing::Untrusted, carried, label.confidentiality)
    }

    fn push(
        &mut self,
        text: &str,
        origin: Arc<str>,
        standing: Standing,
        carried: Carried,
        confidentiality: Confidentiality,
    ) -> usize {
        let list = self.listed(text, &origin, &standing);
        let names = if &*origin == "user" { short_names(text) } else { Vec::new() };
        let long = if &*origin == "user" { long_names(text) } else { Vec::new() };
        let (text, at) = (folded(text), self.spans.len());
        let picks = (standing == Standing::Trusted && carried == Carried::default() && &*origin == "user").then(|| {
            Picks::of(u32::try_from(at).unwrap_or(u32::MAX), &text, &[names.clone(), long].concat(), self.now)
        });
        let index = if standing == Standing::Untrusted { &mut self.doubtful } else { &mut self.vouched };
        let holds = u32::try_from(at).map(|number| index.take_in(number, &text, self.now)).unwrap_or_default();
        let Holds { amounts, days, moments, values } = holds;
        let may_be_old = !(values.is_empty() && amounts.is_empty()) && sums::may_be_old(&placed(&text));
        let (values, former) = if picks.is_some() { (values, Former::of(&text)) } else { Default::default() };
        let roles = if picks.is_some() { Roles::of(&text) } else { Roles::default() };
        let stretches = if picks.is_some() {
            stretches(&placed(&text), &moments, |at| within(&former.left, at), former.moves)
        } else {
            Vec::new()
        };
        let amounts = if standing == Standing::Untrusted { Vec::new() } else { amounts };
        self.spans.push(Entered {
            text,
            origin,
            standing,
            carried,
            confidentiality,
            amounts,
            picks,
            list,
            days,
            moments,
            names,
            values,
            may_be_old,
            former,
            roles,
            stretches,
        });
        at
    }

    /// The list that a text of `origin` goes on with, if a tool gave it.
    fn listed(&mut self, text: &str, origin: &Arc<str>, standing: &Standing) -> Option<usize> {
        let number = u32::try_from(self.spans.len()).ok().filter(|_| origin.starts_with("tool:"))?;
        let last = self.spans.last().filter(|span| span.origin == *origin).and_then(|span| span.list);
        let at = last.unwrap_or_else(|| {
            self.lists.push(List::default());
            self.lists.len().saturating_sub(1)
        });
        let begins = std::mem::take(&mut self.begins);
        self.lists.get_mut(at)?.take_in(text, number, *standing != Standing::Untrusted, begins);
        Some(at)
    }

    /// Takes back what a span says: it was not recorded, and is trusted for nothing. Its number stays used.
    pub fn withdraw(&mut self, number: usize) {
        if let Some(span) = self.spans.get_mut(number) {
            span.text = String::new();
            span.standing = Standing::Untrusted;
            span.picks = None;
            (span.values, span.former, span.stretches, span.roles) = Default::default();
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
        let is_trusted = |name: &str, value: &Value| derive::finding(self, tool, name, value, &[]).trusted;
        carried::of(arguments, is_trusted, |word| self.asked_at(word).next().is_some())
    }

    /// Where each critical argument of a call of `tool` comes from.
    #[must_use]
    pub fn findings(&self, tool: &Tool, arguments: &Arguments) -> Vec<Finding> {
        let critical = |name: &str| tool.is_critical(name);
        let (nothing, given): (Vec<_>, Vec<_>) =
            arguments.iter().filter(|(name, _)| critical(name)).partition(|(_, value)| matches!(value, Value::Null));
        let finding = |(name, value): &(&str, &_)| derive::finding(self, tool, name, value, &given);
        // Nothing at all is only worth a word where somebody is left out by it.
        let left_out = nothing.iter().map(finding).filter(|finding| !finding.trusted);
        given.iter().map(finding).chain(left_out).collect()
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
        self.entered(span).is_some_and(|span| !span.amounts.is_empty())
    }

    /// Whether of all amounts in its span this one is the nearest to `other`: by the words between, and sooner in the same
    /// clause than beyond its end. Of two that are as near, none is.
    pub(super) fn is_nearest(&self, span: u32, amount: Typed, other: &TypedPlace) -> bool {
        self.is_nearest_to(span, amount, (other.at, other.end, other.byte))
    }

    /// The amount that begins at a word of a span.
    pub(super) fn amount_at(&self, span: u32, word: usize) -> Option<Typed> {
        let said = self.entered(span)?.amounts.iter().find(|(at, ..)| *at == word);
        said.map(|(.., typed)| *typed)
    }

    /// Whether a value is one of before, and there is another of its kind. `sum` is whether it is how much money.
    pub(super) fn is_former(&self, typed: Typed, place: Place, sum: bool) -> bool {
        let Some(span) = self.entered(place.span) else { return false };
        let at = usize::try_from(place.at).unwrap_or(usize::MAX);
        let past = |span: &Entered, at: usize| {
            within(&span.former.past, at) || within(&span.former.left, at) || (sum && within(&span.former.went, at))
        };
        let other = |(own, at): &(Typed, usize), span: &Entered| {
            is_a_kind(*own, typed, sum) && *own != typed && !past(span, *at) && !within(&span.former.used, *at)
        };
        past(span, at) && self.spans.iter().any(|span| span.values.iter().any(|value| other(value, span)))
    }

    /// Whether a span says of anything that it was so before.
    pub(super) fn speaks_of_before(&self, span: u32) -> bool {
        self.entered(span).is_some_and(|span| !span.former.is_empty())
    }

    /// Whether a sum at a place is one of before, by the words beside it.
    pub(super) fn is_old(&self, place: &TypedPlace) -> bool {
        let Some(span) = self.entered(place.span).filter(|span| span.may_be_old) else { return false };
        let words = placed(&span.text);
        let word = |byte: usize| words.partition_point(|word| word.at < byte);
        let sums = span.values.iter().filter(|(typed, _)| place.money == matches!(typed, Typed::Amount(..)));
        let sums = sums.filter(|(typed, _)| matches!(typed, Typed::Amount(..) | Typed::Number(_)));
        let mut others: Vec<usize> = sums.map(|(_, byte)| word(*byte)).collect();
        others.extend(span.amounts.iter().map(|(at, ..)| *at));
        others.retain(|at| *at != place.at);
        sums::is_old(&words, place.at, &others)
    }

    /// Whether people say of one of two ends that it goes with another one, and not with this; or of the first that something
    /// ends with it, and nothing else.
    pub(super) fn are_ends_of_two(&self, start: When, end: When) -> bool {
        let said = || self.spans.iter().flat_map(|span| &span.stretches);
        let ends = said().filter(|(_, to)| *to == start).count();
        let others = self.spans.iter().filter(|span| span.picks.is_some());
        let mentions: usize = others.map(|span| moments::mentions(&span.moments, start)).sum();
        let only_ends = ends > 0 && mentions <= ends && !said().any(|(from, _)| *from == start);
        let another = said().any(|(from, to)| (*from == start) != (*to == end));
        (only_ends || another) && !said().any(|said| *said == (start, end))
    }

    /// Whether a person says at this place what was so before.
    pub(super) fn has_been(&self, place: Place) -> bool {
        let at = usize::try_from(place.at).unwrap_or(usize::MAX);
        self.entered(place.span).is_some_and(|span| within(&span.former.used, at))
    }

    /// Whether a person says at this place from where something is moved.
    pub(super) fn is_left(&self, place: Place) -> bool {
        let at = usize::try_from(place.at).unwrap_or(usize::MAX);
        self.entered(place.span).is_some_and(|span| within(&span.former.left, at))
    }

    /// Whether a person calls another place by the argument's name, in quotation marks or at the end of its clause: the
    /// channel 'general', to the folder Letters.
    pub(super) fn names_another_place(&self, value: &str, sink: Sink<'_>) -> bool {
        let mut named = self.spans.iter().flat_map(|span| span.roles.named(|word| sink.says(word))).peekable();
        named.peek().is_some() && !named.any(|name| name == value)
    }

    /// Whether an address stands at a place only as whom something comes from, and a person names another to whom it may go.
    pub(super) fn is_from_whom(&self, place: Place) -> bool {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let all = || {
            let spans = self.spans.iter().zip(0..);
            spans.flat_map(move |(span, own)| {
                span.roles.addresses.iter().map(move |(at, from)| (own, number(*at), *from))
            })
        };
        let goes = |(span, at, from): (u32, u32, bool)| !from && !self.is_excluded(Place { span, at });
        all().any(|own| own == (place.span, place.at, true))
            && !self.spans.iter().any(|span| span.roles.answers)
            && all().any(goes)
    }

    /// Whether an address was somebody's until now, and there is another one.
    pub(super) fn is_old_address(&self, place: Place) -> bool {
        let old = |span: &Entered, at: usize| within(&span.former.past, at);
        let at = usize::try_from(place.at).unwrap_or(usize::MAX);
        let other = |span: &Entered| span.roles.addresses.iter().any(|(at, _)| !old(span, *at));
        self.entered(place.span).is_some_and(|span| old(span, at)) && self.spans.iter().any(other)
    }

    /// Whether a span has more amounts than this one.
    pub(super) fn has_other_amounts(&self, span: u32, amount: Typed) -> bool {
        self.entered(span).is_some_and(|span| span.amounts.iter().any(|(.., typed)| *typed != amount))
    }

    /// Whether of all amounts in its span this one is the nearest to what begins at a word, ends before another, and begins
    /// at a byte.
    pub(super) fn is_nearest_to(&self, span: u32, amount: Typed, other: (usize, usize, u32)) -> bool {
        let Some(said) = self.entered(span) else { return false };
        let (first, behind, start) = other;
        let gap = |(at, end, byte, _): &(usize, usize, usize, Typed)| {
            let own = usize::try_from(start).unwrap_or(usize::MAX);
            let between = said.text.get(own.min(*byte)..own.max(*byte)).unwrap_or_default();
            let breaks = CLAUSE_ENDS.iter().map(|end| between.matches(end).count()).sum::<usize>();
            let words = at.saturating_sub(behind).max(first.saturating_sub(*end));
            words.saturating_add(breaks.saturating_mul(A_CLAUSE))
        };
        let least = |own: bool| said.amounts.iter().filter(|(.., typed)| (*typed == amount) == own).map(gap).min();
        match (least(true), least(false)) {
            (Some(own), Some(others)) => own < others,
            _ => true,
        }
    }

    /// Whether the record of a list that the place is in is one that the person's messages mean, the last of them first; none
    /// if they say nothing of it and it is the only one.
    pub(super) fn picked(&self, place: Place, sink: Sink<'_>, others: &Used) -> Option<bool> {
        let Some(beside) = self.beside(place) else {
            // What is of a list and of no record of it, as its heading, is not meant.
            return self.is_of_a_list(place).then_some(false);
        };
        self.meant(&beside, place, sink, others)?.get(beside.mine).copied()
    }

    /// Whether a person's words mean the record that the place is in and no other of its list.
    pub(super) fn is_the_only_one(&self, place: Place, sink: Sink<'_>, others: &Used) -> bool {
        let Some(beside) = self.beside(place) else { return false };
        let meant = self.meant(&beside, place, sink, others).unwrap_or_default();
        meant.get(beside.mine) == Some(&true) && meant.iter().filter(|meant| **meant).count() == 1
    }

    /// Whether the last message that names what the folded `value` names says that it is not meant.
    pub(super) fn is_denied(&self, value: &str) -> bool {
        self.spans.iter().rev().filter_map(|span| span.picks.as_ref()).any(|picks| picks.denies(value))
    }

    /// Which of the records are meant; none if nothing is said of them and any may be.
    fn meant(&self, beside: &Beside<'_>, place: Place, sink: Sink<'_>, others: &Used) -> Option<Vec<bool>> {
        let list = &beside.rows;
        let asked = Asked { sink, others, alone: self.is_alone(place, others) };
        let messages = self.spans.iter().rev().filter_map(|span| span.picks.as_ref());
        let said = messages.into_iter().find_map(|picks| picks.picks(list, &asked));
        if said.is_none() && beside.is_outer {
            return Some((0..list.len()).map(|row| row == beside.mine).collect());
        }
        // Of several of which nothing is said, none is meant; unless they are named by signs alone, and it is what anybody
        // wrote that tells them apart.
        let told = list.len() > 1 && !(beside.is_named && list.iter().all(|row| row.is_mixed()));
        said.or_else(|| told.then(|| vec![false; list.len()]))
    }

    /// Whether no other argument of the call is of the same list.
    fn is_alone(&self, place: Place, others: &Used) -> bool {
        let list = |span: u32| self.entered(span).and_then(|span| span.list);
        !others.spans.iter().any(|span| list(*span) == list(place.span))
    }

    /// The spans that have the folded `value` and are trusted for something.
    pub(super) fn spans_with(&self, value: &str) -> Vec<u32> {
        self.vouched.places(value, |span| self.text(span)).map(|place| place.span).collect()
    }

    /// The records of the list that the place is in which could be taken in its place, and which of them it is in.
    fn beside(&self, place: Place) -> Option<Beside<'_>> {
        let rows = self.rows(self.entered(place.span)?.list?)?;
        let spotted = rows.at(place).filter(|_| !rows.are_too_many())?;
        let beside = rows.beside(spotted);
        let mine = beside.iter().position(|row| *row == spotted.row)?;
        let is_outer = beside.len() > 1 && beside.iter().all(|row| rows.lies_in(*row, spotted.row));
        let rows = beside.iter().filter_map(|row| rows.row(*row)).collect();
        Some(Beside { rows, mine, is_outer, is_named: Sink::names_a_record(spotted.key) || spotted.is_code })
    }

    fn rows(&self, list: usize) -> Option<&Rows> {
        let list = self.lists.get(list)?;
        Some(list.rows.get_or_init(|| Rows::of(&list.text, &list.cuts)))
    }

    /// The record that the place is in and the key of its value, if its values have keys.
    pub(super) fn record(&self, place: Place) -> Option<Record<'_>> {
        let list = self.entered(place.span)?.list?;
        let rows = self.rows(list)?;
        let spotted = rows.at(place)?;
        let row = rows.row(spotted.row).filter(|row| row.is_record())?;
        Some(Record { row, key: spotted.key, number: (list, spotted.row) })
    }

    /// Whether a tool gave what stands at the place.
    pub(super) fn is_of_a_list(&self, place: Place) -> bool {
        self.entered(place.span).is_some_and(|span| span.list.is_some())
    }

    /// The number of the list that the place is in, and of its record.
    pub(super) fn number_of(&self, place: Place) -> Option<(usize, usize)> {
        let list = self.entered(place.span)?.list?;
        Some((list, self.rows(list)?.at(place)?.row))
    }

    /// Whether two records of a list are one, or one is in the other.
    pub(super) fn are_one(&self, list: usize, one: usize, other: usize) -> bool {
        self.rows(list).is_some_and(|rows| rows.are_one(one, other))
    }

    /// Whether a person's words mean a record of a list that is declared for `sink`.
    pub(super) fn has_picked(&self, sink: Sink<'_>) -> bool {
        let declared = |span: &&Entered| match &span.standing {
            Standing::For(entries) => entries.iter().any(|entry| sink.is(entry)),
            Standing::Trusted | Standing::Untrusted => false,
        };
        let lists: std::collections::BTreeSet<usize> =
            self.spans.iter().filter(declared).filter_map(|span| span.list).collect();
        lists
            .into_iter()
            .filter_map(|list| self.rows(list))
            .any(|rows| rows.places().any(|place| self.picked(place, sink, &Used::default()) == Some(true)))
    }

    /// Whether what stands at the place has a key that is one of the name of a record.
    pub(super) fn is_of_a_name(&self, place: Place) -> bool {
        self.record(place).is_some_and(|record| Sink::names_a_record(record.key))
    }

    /// Whether the row that the place is in has a word with letters and figures.
    pub(super) fn has_code(&self, place: Place) -> bool {
        self.row(place).is_some_and(|row| row.has_code)
    }

    /// The sentence that the place is in, of a folded text.
    pub(super) fn sentence(&self, place: Place) -> &str {
        let (text, ends) = (self.text(place.span), ['.', '!', '?', '。']);
        let (before, after) =
            text.split_at_checked(usize::try_from(place.at).unwrap_or(usize::MAX)).unwrap_or((text, ""));
        let from = before.rfind(ends).unwrap_or(0);
        let to = before.len().saturating_add(after.find(ends).unwrap_or(after.len()));
        text.get(from..to).unwrap_or_default()
    }

    /// Whether the row that the place is in has the sign of a person, as `@ana`.
    pub(super) fn has_sign(&self, place: Place) -> bool {
        self.row(place).is_some_and(|row| row.has_sign)
    }

    fn row(&self, place: Place) -> Option<&Row> {
        let rows = self.rows(self.entered(place.span)?.list?)?;
        rows.row(rows.at(place)?.row)
    }

    /// Every place of a typed value in spans that vouch for anything.
    pub(super) fn said(&self, typed: Typed) -> &[TypedPlace] {
        self.vouched.typed(typed)
    }

    /// Whether a person says at this place what is not meant.
    pub(super) fn is_excluded(&self, place: Place) -> bool {
        let at = usize::try_from(place.at).unwrap_or(usize::MAX);
        self.entered(place.span).is_some_and(|span| {
            within(&span.former.used, at) || span.picks.as_ref().is_some_and(|picks| picks.excludes(at))
        })
    }

    /// What people have said, with the number of the span.
    pub(super) fn asked(&self) -> impl Iterator<Item = (u32, &str)> {
        let spans = self.spans.iter().zip(0..);
        spans.filter(|(span, _)| span.picks.is_some()).map(|(span, number)| (number, span.text.as_str()))
    }

    /// Where people have said the folded `value`.
    pub(super) fn asked_at<'a>(&'a self, value: &'a str) -> impl Iterator<Item = Place> + 'a {
        let asked = |place: &Place| self.entered(place.span).is_some_and(|span| span.picks.is_some());
        self.vouched.places(value, |span| self.text(span)).filter(asked)
    }

    /// Whether a list that is declared for people, and not for `sink`, has the folded `value` in it.
    pub(super) fn names_a_person(&self, value: &str, sink: Sink<'_>) -> bool {
        let mut places = self.vouched.places(value, |span| self.text(span));
        places.any(|place| match self.entered(place.span).map(|span| &span.standing) {
            Some(Standing::For(entries)) => {
                entries.iter().all(|entry| !sink.is(entry)) && entries.iter().all(|entry| names_persons(entry))
            }
            _ => false,
        })
    }

    /// The day and the time here of a moment elsewhere.
    pub(super) fn local(&self, day: Date, time: Time, offset: i32) -> Option<(Date, Time)> {
        self.now?.local(day, time, offset)
    }

    /// The day and the time here of a moment in unix time.
    pub(super) fn of_unix(&self, seconds: i64) -> Option<(Date, Time)> {
        self.now?.of_unix(seconds)
    }

    /// Whether the span speaks of a day, in that sentence or at all. One that is not there might.
    pub(super) fn has_day(&self, span: u32, sentence: Option<u32>) -> bool {
        self.entered(span).is_none_or(|span| match sentence {
            Some(sentence) => span.days.contains(&sentence),
            None => !span.days.is_empty(),
        })
    }

    /// Whether a time goes with that day where the text, or the sentence of the time, speaks of several days: of as many
    /// days as times, each with the one in its place, and else with the day it stands nearest to.
    pub(super) fn in_order(&self, said: &TypedPlace, day: Date, time: Time) -> bool {
        let Some(all) = self.entered(said.span).map(|span| &span.moments) else { return false };
        let own = self.has_day(said.span, Some(said.sentence)).then_some(said.sentence);
        Moments::of(all, own).goes_with(day, time, said.at)
    }

    /// Whether a person has written a short word as a name is written.
    pub(super) fn is_written_as_a_name(&self, span: u32, word: &str) -> bool {
        self.entered(span).is_some_and(|span| span.names.iter().any(|name| **name == *word))
    }

    /// The day of the turn, where no person speaks of any day.
    pub(super) fn today_unless_said(&self) -> Option<Date> {
        let mut asked = self.spans.iter().filter(|span| span.picks.is_some());
        asked.all(|span| span.days.is_empty()).then_some(self.now?.today)
    }

    /// Whether a person's words speak of a time in the sentence of a place.
    pub(super) fn has_time(&self, span: u32, sentence: u32) -> bool {
        let time = |said: &Said| said.sentence == sentence && matches!(said.when, When::Time(_));
        self.entered(span).is_some_and(|span| span.moments.iter().any(time))
    }

    /// Whether a span speaks of more than one day.
    pub(super) fn has_days(&self, span: u32) -> bool {
        self.entered(span).is_some_and(|span| Moments::of(&span.moments, None).has_days())
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

    fn entered(&self, span: u32) -> Option<&Entered> {
        usize::try_from(span).ok().and_then(|at| self.spans.get(at))
    }
}

/// Whether two values are of a kind: days, times of day, or how much.
const fn is_a_kind(one: Typed, other: Typed, sum: bool) -> bool {
    match (one, other) {
        (Typed::Date(_), Typed::Date(_)) | (Typed::Time(_), Typed::Time(_)) => true,
        (Typed::Amount(..) | Typed::Number(_), Typed::Amount(..) | Typed::Number(_)) => sum,
        _ => false,
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
