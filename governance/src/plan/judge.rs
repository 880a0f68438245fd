//! Whether a call is a step of the plan, argument by argument.

use std::{borrow::Cow, collections::BTreeMap};

use ephor_base::{Arguments, CallId, Digest};

use super::{
    Origin, Pick, Plan, Source, Spent, Step, Times,
    sources::{Found, Sources},
    spent::Use,
};
use crate::{datum::Datum, registry::Tool};

/// A call that acts.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Its id, which a rerun keeps.
    pub id: CallId,
    /// Its tool.
    pub tool: &'a Tool,
    /// Its arguments.
    pub arguments: &'a Arguments,
}

impl Call<'_> {
    /// What it takes of a plan that did not decide on it, such as one made later: what a clean context did is done.
    #[must_use]
    pub fn taken(&self) -> Use {
        let given = Given::of(self);
        let tool = self.tool.registration().name.clone();
        Use { tool, step: Digest::of(&[]), values: given.critical_digest() }
    }
}

/// What a call is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'a> {
    /// The plan of the turn.
    pub plan: &'a Plan,
    /// What was done of it.
    pub spent: &'a Spent,
    /// What people typed, and what tools answered.
    pub sources: Sources<'a>,
}

/// What the plan makes of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matched {
    /// Which step the call takes, from 0, and what is used of it; none if it is asked about beside the plan.
    pub step: Option<(usize, Use)>,
    /// Whether the step permits the call as it is.
    pub permits: bool,
    /// The arguments that matter, each with its source. An answer to the question covers the values of this call and no others.
    pub arguments: Vec<Asked>,
}

/// Where the value of an argument comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The argument.
    pub argument: String,
    /// `user`, `plan`, `tool:NAME`, `picked:tool:NAME`; or why it asks: `untrusted:tool:NAME`, `unvouched`, `unplanned`, `missing`,
    /// `other`, `ask`.
    pub source: Cow<'static, str>,
    /// Whether it is permitted.
    pub permitted: bool,
}

/// The arguments of a call, read once.
struct Given<'c> {
    call: &'c Call<'c>,
    values: Vec<(&'c str, Datum)>,
}

/// The arguments of a step as a call has them, and how many records were picked for it.
type Compared<'s> = (Vec<(&'s str, Found)>, usize);

impl Judge<'_> {
    /// Compares a call with the plan: the first unspent step of its tool that permits it decides, else the first that asks.
    #[must_use]
    pub fn call(&self, call: &Call<'_>) -> Matched {
        let given = Given::of(call);
        let (name, values) = (&call.tool.registration().name, given.critical_digest());
        let held = self.spent.held(call.id);
        let used = self.spent.of(self.plan, call.id);
        let mut asks = None;
        for (at, step) in self.plan.steps().iter().enumerate() {
            let Step::Call { tool, times, arguments } = step else { continue };
            let digest = self.plan.step_digest(at).filter(|_| tool == name);
            let Some(digest) = digest.filter(|digest| held.is_none_or(|held| held.step == *digest)) else { continue };
            let (found, picked) = self.step(&given, arguments, *times, asks.is_some());
            let has_room = match times {
                Times::Number(times) => used.count(at) < usize::from(*times),
                Times::Each => !used.has(at, values) && used.count(at) < picked,
            };
            let permits = found.iter().all(|(_, one)| one.permitted);
            if !has_room || (asks.is_some() && !permits) {
                continue;
            }
            let step = Some((at, Use { tool: name.clone(), step: digest, values }));
            let matched = Matched { step, permits, arguments: found.into_iter().map(Asked::of).collect() };
            if permits {
                return matched;
            }
            asks = Some(matched);
        }
        asks.unwrap_or_else(|| self.beside(call))
    }

    /// A call that no step is for.
    fn beside(&self, call: &Call<'_>) -> Matched {
        let written = self.plan.steps().iter().find_map(|step| match step {
            Step::Anything { from } => from.first().map(|tool| format!("untrusted:tool:{tool}")),
            Step::Call { .. } => None,
        });
        let source: Cow<'static, str> = written.map_or(Cow::Borrowed("unplanned"), Cow::Owned);
        let critical = call.arguments.iter().filter(|(name, _)| call.tool.is_critical(name));
        let asked = |(name, _)| Asked::of((name, Found::ask(source.clone())));
        Matched { step: None, permits: false, arguments: critical.map(asked).collect() }
    }

    /// Compares the arguments with those of a step; where `brief`, to the first that asks.
    fn step<'s>(
        &self,
        given: &Given<'s>,
        planned: &'s BTreeMap<Box<str>, Origin>,
        times: Times,
        brief: bool,
    ) -> Compared<'s> {
        let (mut found, mut picked) = (Vec::with_capacity(planned.len()), 1);
        let mut rows: Vec<(&Source, Vec<usize>)> = Vec::new();
        for (name, origin) in planned {
            let mut one = match given.value(name) {
                Some(value) => self.argument(given.call, name, value, origin),
                None if *origin == Origin::Text => continue,
                None => Found::ask("missing"),
            };
            if let (Origin::From(source), Some((own, count))) = (origin, &one.rows) {
                picked = picked.max(*count);
                // One of all is taken once for each, and what is said of one record is of one record.
                let is_one_of_all = source.pick == Pick::All && times != Times::Each;
                if is_one_of_all || !is_of_one_record(&mut rows, source, own) {
                    one = Found::ask("other");
                }
            }
            // Once for each is a call for each: a list would do all of them as one.
            if let (Origin::From(_), Times::Each, Some(Datum::List(_))) = (origin, times, given.value(name)) {
                one = Found::ask("other");
            }
            if let Origin::In(values) = origin {
                picked = picked.max(values.len());
            }
            let ends = brief && !one.permitted;
            found.push((&**name, one));
            if ends {
                return (found, picked);
            }
        }
        let unplanned = given.values.iter().map(|(name, _)| *name);
        let unplanned = unplanned.filter(|name| given.call.tool.is_critical(name) && !planned.contains_key(*name));
        found.extend(unplanned.map(|name| (name, Found::ask("unplanned"))));
        (found, picked)
    }

    fn argument(&self, call: &Call<'_>, name: &str, value: &Datum, origin: &Origin) -> Found {
        let (tool, is_critical) = (call.tool, call.tool.is_critical(name));
        let registration = tool.registration();
        match origin {
            Origin::Text if is_critical => Found::ask("unplanned"),
            // An argument that is not critical may say what the agent makes of what it read.
            Origin::From(_) if !is_critical => Found::permit("plan"),
            Origin::Text => Found::permit("plan"),
            Origin::Ask => Found::ask("ask"),
            Origin::Is(_) | Origin::In(_) if !origin.equals(value) => Found::ask("other"),
            Origin::Is(_) | Origin::In(_) if !tool.is_destination(name) => Found::permit("plan"),
            Origin::Is(_) | Origin::In(_) => {
                let value = call.arguments.value(name);
                let vouched = value.and_then(|value| self.sources.vouched(&registration.name, name, value));
                vouched.map_or_else(|| Found::ask("unvouched"), Found::permit)
            }
            Origin::From(source) => self.sources.found(registration, name, value, source),
        }
    }
}

impl Asked {
    fn of((name, found): (&str, Found)) -> Self {
        Self { argument: name.to_owned(), source: found.source, permitted: found.permitted }
    }
}

impl<'c> Given<'c> {
    fn of(call: &'c Call<'c>) -> Self {
        Self { call, values: call.arguments.iter().map(|(name, value)| (name, Datum::of(value))).collect() }
    }

    fn value(&self, name: &str) -> Option<&Datum> {
        self.values.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// SHA-256 over the critical values.
    fn critical_digest(&self) -> Digest {
        let mut bytes = Vec::with_capacity(256);
        for (name, value) in self.values.iter().filter(|(name, _)| self.call.tool.is_critical(name)) {
            Datum::text(name).canonical(&mut bytes);
            value.canonical(&mut bytes);
        }
        Digest::of_parts(&[self.call.tool.registration().name.as_str().as_bytes(), &[0], &bytes])
    }
}

impl Origin {
    /// Whether it is this value, or one of these.
    pub(super) fn equals(&self, value: &Datum) -> bool {
        match self {
            Self::Is(wanted) => value.is(wanted),
            Self::In(all) => all.iter().any(|wanted| value.is(wanted)),
            Self::From(_) | Self::Text | Self::Ask => false,
        }
    }
}

/// Whether some record is left that all arguments with the same source are of.
fn is_of_one_record<'s>(rows: &mut Vec<(&'s Source, Vec<usize>)>, source: &'s Source, own: &[usize]) -> bool {
    let same = |other: &Source| {
        source.tools == other.tools
            && source.given == other.given
            && source.pick == other.pick
            && source.with == other.with
    };
    match rows.iter_mut().find(|(other, _)| same(other)) {
        Some((_, others)) => {
            others.retain(|row| own.contains(row));
            !others.is_empty()
        }
        None => {
            rows.push((source, own.to_vec()));
            true
        }
    }
}
