//! The effect vector of a call: from its registration, its arguments, their provenance and its novelty.
//!
//! Rules are data. A registration declares them for its own arguments; [`SensitivePath`]s hold for every path. How each
//! dimension is meant, with worked examples, stands in `docs/effects.md`.

use ephor_base::{ArgumentRule, Arguments, EffectVector, Match, arguments::Value};
use minicbor::{Decode, Encode};

use crate::{provenance::Number, registry::Tool};

/// Novelty of a tool that this session has not used yet.
const NEW_TOOL: u16 = 100;
/// Novelty that untrusted content in the turn adds: what is done after it may not be what was asked for.
const TAINTED: u16 = 100;
/// Security of a call with a critical argument that nobody trusted has said.
const UNTRUSTED: u16 = 500;

/// A file name that raises the effects of whatever touches it.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct SensitivePath {
    /// A component of the path, compared without case: `.git`, or `*.pem` for an ending.
    #[n(0)]
    pub component: String,
    /// What is joined to the effect vector.
    #[n(1)]
    pub effects: EffectVector,
}

impl SensitivePath {
    /// Those that every node has: what holds secrets, or runs by being there.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        let names =
            [".git", ".ssh", ".gnupg", ".aws", ".env", ".npmrc", ".netrc", "*.pem", "*.key", "id_rsa", "id_ed25519"];
        let sensitive = |name: &str| Self { component: name.into(), effects: EffectVector::new(0, 0, 700, 0, 700) };
        names.into_iter().map(sensitive).collect()
    }
}

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

/// The vector of a call of `tool`: all its parts, joined.
#[must_use]
pub fn vector(tool: &Tool, arguments: &Arguments, sensitive: &[SensitivePath], now: Circumstances) -> EffectVector {
    let mut sum = EffectVector::NONE;
    parts(tool, arguments, sensitive, now, |_, effects| sum = sum.join(&effects));
    sum
}

/// Shows `each` part of the vector of a call, and what it adds.
pub fn parts<'a>(
    tool: &'a Tool,
    arguments: &Arguments,
    sensitive: &'a [SensitivePath],
    now: Circumstances,
    mut each: impl FnMut(Part<'a>, EffectVector),
) {
    let registration = tool.registration();
    each(Part::Registration, registration.effects);
    for name in &registration.paths {
        let Some(path) = arguments.text(name) else { continue };
        let touched = sensitive.iter().filter(|rule| touches(path, &rule.component));
        touched.for_each(|rule| each(Part::Path(name, rule), rule.effects));
    }
    let ruled = registration.flow.rules.iter().filter(|rule| holds(rule, arguments));
    ruled.for_each(|rule| each(Part::Rule(rule), rule.effects));
    let (new, tainted) = (if now.familiar { 0 } else { NEW_TOOL }, if now.tainted { TAINTED } else { 0 });
    each(Part::Novelty, EffectVector::new(0, 0, 0, new + tainted, 0));
    if now.untrusted {
        each(Part::Untrusted, EffectVector::new(0, 0, 0, 0, UNTRUSTED));
    }
}

/// What touching `path` adds.
#[must_use]
pub fn of_path(path: &str, sensitive: &[SensitivePath]) -> EffectVector {
    let touched = sensitive.iter().filter(|rule| touches(path, &rule.component));
    touched.fold(EffectVector::NONE, |sum, rule| sum.join(&rule.effects))
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
        (Match::AmountOver(units), Value::Text(text)) => Number::read(text).is_none_or(|number| number.exceeds(*units)),
        (Match::AmountOver(units), Value::Integer(number)) => Number::whole(*number).exceeds(*units),
        (Match::AmountOver(units), Value::Float(number)) => Number::of(*number).is_none_or(|it| it.exceeds(*units)),
        _ => true,
    }
}

fn touches(path: &str, rule: &str) -> bool {
    let rule = plain(rule);
    let fits = |component: &str| {
        let component = plain(component);
        rule.strip_prefix('*').map_or_else(|| component == rule, |ending| component.ends_with(ending))
    };
    path.split(['/', '\\']).any(fits)
}

/// A name as the most forgiving file system compares it: without case, without characters that do not show, and without
/// the dots and spaces that some cut off at the end.
fn plain(name: &str) -> String {
    let shows = |c: &char| !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let name: String = name.chars().filter(shows).collect();
    // Upper case first: a long s folds to an s only that way.
    name.trim_end_matches(['.', ' ']).to_uppercase().to_lowercase()
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
