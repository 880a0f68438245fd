//! The effect vector of a call: from its registration, its arguments, their provenance and its novelty.
//!
//! Rules are data. A registration declares them for its own arguments; [`SensitivePath`]s hold for every path, by the name that was
//! written and by that of the file it leads to. How each
//! dimension is meant, with worked examples, stands in `docs/effects.md`.

use std::collections::BTreeSet;

use ephor_base::{ArgumentRule, Arguments, Capability, EffectVector, Match, arguments::Value};

use crate::{
    literals::{self, Number},
    registry::Tool,
    sensitive::{PlainPath, SensitivePath, plain, touches},
};

/// Novelty of a tool that this session has not used yet.
const NEW_TOOL: u16 = 100;
/// Novelty that untrusted content in the turn adds: what is done after it may not be what was asked for.
const TAINTED: u16 = 100;
/// Security of a call with a critical argument that no trusted source has said.
const UNTRUSTED: u16 = 500;

/// What is known of a call besides its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Circumstances {
    /// The session has called this tool before.
    pub familiar: bool,
    /// Untrusted content has entered the turn.
    pub tainted: bool,
    /// A critical argument does not come from anyone trusted.
    pub untrusted: bool,
}

/// What adds to the effect vector of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part<'a> {
    /// What the tool does at least.
    Registration,
    /// A path in this argument has a sensitive component.
    Path(&'a str, &'a SensitivePath),
    /// A declared rule on this argument holds.
    Rule(&'a ArgumentRule),
    /// The session has not called the tool before, or untrusted content has entered the turn.
    Novelty,
    /// A critical argument does not come from anyone trusted.
    Untrusted,
}

/// What a call names.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The folder that its paths start from, absolute; empty where there is none.
    pub workspace: &'a str,
    /// Its arguments as they were written.
    pub written: &'a Arguments,
    /// The same with each path as the file has it that the path leads to.
    pub reached: &'a Arguments,
}

impl Named<'_> {
    /// The whole paths among the arguments, by both names, each with the name of its argument.
    fn paths<'t>(&self, tool: &'t Tool) -> impl Iterator<Item = (&'t str, String)> {
        tool.registration().paths.iter().flat_map(move |name| {
            let both = [self.written, self.reached].into_iter().flat_map(|arguments| arguments.texts(name)).flatten();
            both.map(|(_, path)| (name.as_str(), format!("{}/{path}", self.workspace)))
        })
    }
}

/// The vector of a call of `tool`: all its parts, joined.
#[must_use]
pub fn vector(tool: &Tool, named: Named<'_>, sensitive: &[SensitivePath], now: Circumstances) -> EffectVector {
    let mut sum = EffectVector::NONE;
    parts(tool, named, sensitive, now, |_, effects| sum = sum.join(&effects));
    sum
}

/// The names of files that are more than files, as far as a call touches them by either of its names.
pub fn touched<'a>(
    tool: &Tool,
    named: Named<'_>,
    sensitive: &'a [SensitivePath],
) -> impl Iterator<Item = &'a SensitivePath> {
    let mut codes = BTreeSet::new();
    let paths: Vec<PlainPath> = named.paths(tool).map(|(_, path)| PlainPath::new(&path)).collect();
    let changes = changes(tool);
    let is_touched = move |one: &&SensitivePath| paths.iter().any(|path| one.is_touched(path, changes));
    sensitive.iter().filter(is_touched).filter(move |one| codes.insert(one.code()))
}

fn changes(tool: &Tool) -> bool {
    tool.registration().flow.consequential || tool.registration().capability == Capability::FsWrite
}

/// Shows `each` part of the vector of a call, and what it adds.
pub fn parts<'a>(
    tool: &'a Tool,
    named: Named<'_>,
    sensitive: &'a [SensitivePath],
    now: Circumstances,
    mut each: impl FnMut(Part<'a>, EffectVector),
) {
    let registration = tool.registration();
    each(Part::Registration, registration.effects);
    for (name, path) in named.paths(tool) {
        let path = PlainPath::new(&path);
        let touched = sensitive.iter().filter(|rule| rule.is_touched(&path, changes(tool)));
        touched.for_each(|rule| each(Part::Path(name, rule), rule.effects()));
    }
    let ruled = registration.flow.rules.iter().filter(|rule| holds(rule, named.written) || holds(rule, named.reached));
    ruled.for_each(|rule| each(Part::Rule(rule), rule.effects));
    let (new, tainted) = (if now.familiar { 0 } else { NEW_TOOL }, if now.tainted { TAINTED } else { 0 });
    each(Part::Novelty, EffectVector::new(0, 0, 0, new + tainted, 0));
    if now.untrusted {
        each(Part::Untrusted, EffectVector::new(0, 0, 0, 0, UNTRUSTED));
    }
}

fn holds(rule: &ArgumentRule, arguments: &Arguments) -> bool {
    arguments.value(&rule.argument).is_some_and(|value| any_leaf(value, &|leaf| matches(&rule.when, leaf)))
}

fn any_leaf(value: &Value, holds: &impl Fn(&Value) -> bool) -> bool {
    match value {
        Value::Null => false,
        Value::List(values) => values.iter().any(|value| any_leaf(value, holds)),
        Value::Object(map) => map.values().any(|value| any_leaf(value, holds)),
        Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => holds(value),
    }
}

/// A value of another kind than the rule expects could be anything, and matches.
fn matches(when: &Match, leaf: &Value) -> bool {
    match (when, leaf) {
        (Match::Path(component), Value::Text(path)) => touches(path, component),
        (Match::HostOutside(hosts), Value::Text(address)) => !host(address).is_some_and(|host| is_among(&host, hosts)),
        (Match::Command(program), Value::Text(line)) => runs(line, program),
        (Match::AmountOver(units), Value::Text(text)) => literals::size(text).is_none_or(|size| size.exceeds(*units)),
        (Match::AmountOver(units), Value::Integer(number)) => {
            Number::whole(*number).is_none_or(|it| it.exceeds(*units))
        }
        (Match::AmountOver(units), Value::Float(number)) => Number::of(*number).is_none_or(|it| it.exceeds(*units)),
        _ => true,
    }
}

/// The host of a URL or the domain of an address, in lower case; none if it cannot be told.
fn host(address: &str) -> Option<String> {
    let after_scheme = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = host.split(':').next()?.trim_end_matches('.');
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    (!host.is_empty() && host.chars().all(fits)).then(|| host.to_ascii_lowercase())
}

fn is_among(host: &str, hosts: &[String]) -> bool {
    hosts.iter().map(|known| known.to_ascii_lowercase()).any(|known| match known.strip_prefix('.') {
        Some(domain) => host == domain || host.ends_with(&known),
        None => host == known,
    })
}

/// Whether any word of a command line is `program`, by whatever path.
fn runs(line: &str, program: &str) -> bool {
    let words =
        line.split(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '`' | '$' | '<' | '>'));
    let name = |word: &str| plain(word.trim_matches(['"', '\'']).rsplit(['/', '\\']).next().unwrap_or_default());
    words.map(name).any(|word| word == plain(program))
}
