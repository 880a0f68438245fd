//! Decides a foreign trace without running anything.
//!
//! A trace is lines of JSON in the order in which they happened: tools, what the user said, what was pinned, calls and
//! results. [`Replay`] takes them one by one and answers each call as the gate of a node would. A key that it does not
//! know is an error; what a registration leaves out is taken at its strictest.

mod line;

use std::collections::{BTreeMap, BTreeSet};

use ephor_base::{
    Arguments, Capability, Confidentiality, Decision, EffectVector, Flow, Integrity, Label, Limits, Reason,
    Registration, Source, ToolName, arguments::Value,
};
use serde::Serialize;

pub use line::BadLine;
use line::{Line, Part, Registered};

use crate::{
    Ask, Carried, Case, Constitution, Decided, Evidence, Finding, Gate, OperatorPolicy, Principal, Registry, Rights,
    Scope, SpanTable, ToolAsk, TurnState, TurnTime, gate::call_digest,
};

/// What the gate says of one call of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Answer {
    /// The call's id in the trace.
    pub id: String,
    /// Permit, defer or deny.
    pub decision: Decision,
    /// Every branch's reasons.
    pub reasons: Vec<Reason>,
    /// The effect vector.
    pub effect: EffectVector,
    /// Where each critical argument comes from.
    pub provenance: BTreeMap<String, Vec<String>>,
}

/// A trace as far as it has been read.
#[derive(Debug)]
pub struct Replay {
    constitution: Constitution,
    policy: OperatorPolicy,
    tools: Vec<(Registration, bool)>,
    names: BTreeMap<String, ToolName>,
    /// Made anew when a tool was added.
    court: Option<(Gate, Principal)>,
    spans: SpanTable,
    turn: TurnState,
    familiar: BTreeSet<ToolName>,
    evidence: Evidence,
    calls: BTreeMap<String, Called>,
    lines: usize,
}

/// A call that waits for its result.
#[derive(Debug)]
struct Called {
    tool: Option<ToolName>,
    carried: Carried,
}

/// The answers to the calls of a trace, in order. After an error nothing follows.
pub fn replay<'a>(
    lines: impl IntoIterator<Item = &'a str>,
    constitution: Constitution,
    policy: OperatorPolicy,
) -> impl Iterator<Item = Result<Answer, BadLine>> {
    let (mut replay, mut failed, mut lines) = (Replay::new(constitution, policy), false, lines.into_iter());
    std::iter::from_fn(move || {
        while !failed {
            match replay.take(lines.next()?) {
                Ok(None) => {}
                Ok(Some(answer)) => return Some(Ok(answer)),
                Err(error) => {
                    failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    })
}

impl Replay {
    /// Nothing read yet.
    #[must_use]
    pub fn new(constitution: Constitution, policy: OperatorPolicy) -> Self {
        Self {
            constitution,
            policy,
            tools: Vec::new(),
            names: BTreeMap::new(),
            court: None,
            spans: SpanTable::default(),
            turn: TurnState::default(),
            familiar: BTreeSet::new(),
            evidence: Evidence::default(),
            calls: BTreeMap::new(),
            lines: 0,
        }
    }

    /// Takes the next line; a call is answered. Empty lines mean nothing.
    ///
    /// # Errors
    /// [`BadLine`]: the line is not of a trace. The trace ends there.
    pub fn take(&mut self, line: &str) -> Result<Option<Answer>, BadLine> {
        self.lines = self.lines.saturating_add(1);
        if line.trim().is_empty() {
            return Ok(None);
        }
        let number = self.lines;
        self.line(line).map_err(|reason| BadLine { line: number, reason })
    }

    fn line(&mut self, text: &str) -> Result<Option<Answer>, String> {
        match Line::parse(text)? {
            Line::Tool { name, description, input_schema, registration } => {
                let schema = input_schema.map_or_else(|| "{}".to_owned(), |schema| schema.to_string());
                self.tool(&name, description.unwrap_or_default(), schema, registration.unwrap_or_default())?;
            }
            Line::User { text, time } => {
                let now = match time {
                    Some(time) => {
                        Some(TurnTime::parse(&time).ok_or_else(|| format!("`{time}` is not an RFC 3339 time"))?)
                    }
                    None => None,
                };
                self.turn.begin();
                self.spans.begin_turn(now);
                self.spans.enter(Label::new(Source::User, Integrity::Trusted, Confidentiality::Public), &text);
            }
            Line::Scope { tools, targets } => {
                let known = |name: &String| self.names.get(name).cloned().or_else(|| name.parse().ok());
                let targets = targets.into_iter().filter_map(|(name, targets)| Some((known(&name)?, targets)));
                let scope = Scope { tools: tools.iter().filter_map(known).collect(), targets: targets.collect() };
                self.turn.pin(scope);
            }
            Line::Call { id, tool, arguments } => return self.call(id, &tool, arguments).map(Some),
            Line::Result { id, content, parts } => self.result(&id, content, parts)?,
        }
        Ok(None)
    }

    fn tool(&mut self, name: &str, description: String, schema: String, given: Registered) -> Result<(), String> {
        let known = known_as(name);
        if self.names.contains_key(name) || self.tools.iter().any(|(tool, _)| tool.name == known) {
            return Err(format!("the tool `{name}` stands in the trace twice"));
        }
        let confidential = given.confidential.unwrap_or(true);
        self.names.insert(name.to_owned(), known.clone());
        self.tools.push((given.registration(known, description, schema), confidential));
        self.court = None;
        Ok(())
    }

    fn call(&mut self, id: String, name: &str, arguments: Option<Value>) -> Result<Answer, String> {
        if self.calls.contains_key(&id) {
            return Err(format!("the call `{id}` stands in the trace twice"));
        }
        let (gate, who) = self.court()?;
        let tool = self.names.get(name).and_then(|name| gate.registry().tool(name));
        let arguments = arguments.as_ref().and_then(object);
        let fault = tool.zip(arguments.as_ref()).and_then(|(tool, arguments)| tool.validate(arguments).err());
        let ask = match (tool, &arguments) {
            (None, _) => ToolAsk::Unregistered,
            (Some(_), None) => ToolAsk::Malformed,
            (Some(tool), Some(arguments)) => {
                ToolAsk::Known { tool, arguments, fit: fault.as_ref().map_or(Ok(()), Err) }
            }
        };
        let familiar = tool.is_some_and(|tool| self.familiar.contains(&tool.registration().name));
        let decided = gate.decide(&Case {
            ask: Ask::Tool(ask),
            who: &who,
            rights: &Rights::of(Capability::ALL),
            spans: &self.spans,
            turn: &self.turn,
            familiar,
            context: self.spans.highest(),
            budget: Ok(()),
            evidence: self.evidence,
            suspended: false,
            approvers: 1,
            precedent: None,
            ruled: None,
        });
        let known = tool.zip(arguments.as_ref());
        let carried = known.map(|(tool, arguments)| self.spans.carried(tool, arguments)).unwrap_or_default();
        let called = known.map(|(tool, arguments)| {
            (tool.registration().name.clone(), call_digest(&tool.registration().name, arguments))
        });
        self.court = Some((gate, who));
        self.took_place(&decided, called.clone());
        self.calls.insert(id.clone(), Called { tool: called.map(|(tool, _)| tool), carried });
        Ok(answer(id, decided))
    }

    fn took_place(&mut self, decided: &Decided, called: Option<(ToolName, ephor_base::Digest)>) {
        match decided.verdict.decision {
            Decision::Permit => {
                self.evidence = self.evidence.after(false);
                if let Some((tool, digest)) = called {
                    self.familiar.insert(tool);
                    self.turn.permitted(digest);
                }
            }
            Decision::Deny => self.evidence = self.evidence.after(true),
            Decision::Defer => {}
        }
    }

    /// The gate over the tools so far. Whoever takes it puts it back.
    fn court(&mut self) -> Result<(Gate, Principal), String> {
        if let Some(court) = self.court.take() {
            return Ok(court);
        }
        let mut registry = Registry::default();
        for (tool, _) in &self.tools {
            registry.add_foreign(tool.clone()).map_err(|error| error.to_string())?;
        }
        let gate = Gate::new(self.constitution.clone(), self.policy.clone(), registry);
        let gate = gate.map_err(|error| error.to_string())?;
        let who = gate.principal("trace", "agent", "default").map_err(|error| error.to_string())?;
        Ok((gate, who))
    }

    fn result(&mut self, id: &str, content: Option<serde_json::Value>, parts: Option<Vec<Part>>) -> Result<(), String> {
        let called = self.calls.get(id).ok_or_else(|| format!("no call `{id}` came before its result"))?;
        let tool = called.tool.as_ref().and_then(|name| self.tools.iter().find(|(tool, _)| tool.name == *name));
        let text = content.as_ref().map(text_of).unwrap_or_default();
        let label = |integrity, confidentiality| Label::new(Source::Tool, integrity, confidentiality);
        let Some((tool, confidential)) = tool else {
            // Nobody registered what wrote this.
            self.turn.taint();
            self.spans.enter(label(Integrity::Untrusted, Confidentiality::Confidential), &text);
            return Ok(());
        };
        let level = if *confidential { Confidentiality::Confidential } else { Confidentiality::Internal };
        let Some(parts) = parts else {
            if tool.integrity == Integrity::Untrusted && !text.is_empty() {
                self.turn.taint();
            }
            self.spans.enter_result(label(tool.integrity, level), &text, tool, called.carried.clone());
            return Ok(());
        };
        self.spans.begin_result();
        for Part { text, integrity, confidentiality } in parts {
            let integrity = integrity.unwrap_or(Integrity::Untrusted);
            let level = confidentiality.unwrap_or(Confidentiality::Confidential);
            if integrity == Integrity::Untrusted && !text.is_empty() {
                self.turn.taint();
            }
            self.spans.enter_part(label(integrity, level), &text, tool, called.carried.clone());
        }
        Ok(())
    }
}

impl Registered {
    fn registration(self, name: ToolName, description: String, schema: String) -> Registration {
        let consequential = self.consequential.unwrap_or(true);
        let critical = if consequential { self.critical.unwrap_or_else(|| vec!["*".to_owned()]) } else { Vec::new() };
        let known = |entry: String| match entry.rsplit_once('.') {
            Some((tool, argument)) => format!("{}.{argument}", known_as(tool)),
            None => entry,
        };
        let confidential = self.confidential.unwrap_or(true);
        Registration {
            name,
            description,
            schema,
            code: ephor_base::Digest::of(&[]),
            capability: if consequential { Capability::OutsideAct } else { Capability::OutsideRead },
            effects: self.effects.unwrap_or_default().vector(),
            paths: Vec::new(),
            consequential: critical,
            integrity: self.result.unwrap_or(Integrity::Untrusted),
            confidentiality: if confidential { Confidentiality::Confidential } else { Confidentiality::Internal },
            limits: Limits { fuel: 0, deadline_ms: 0, memory_bytes: 0, output_bytes: 0 },
            nested: Vec::new(),
            flow: Flow {
                consequential,
                clearance: self.clearance.unwrap_or(Confidentiality::Public),
                trusted_for: self.trusted_for.unwrap_or_default().into_iter().map(known).collect(),
                rules: Vec::new(),
            },
        }
    }
}

/// The name of a foreign tool here. Whatever cannot be a name of ours is named by its digest.
fn known_as(name: &str) -> ToolName {
    let digest = || format!("foreign-{}", ephor_base::Digest::of(name.as_bytes()));
    name.parse().or_else(|_| digest().get(..40).unwrap_or("foreign").parse()).unwrap_or_else(|_| known_as("foreign"))
}

fn object(value: &Value) -> Option<Arguments> {
    let text = match value {
        Value::Text(text) => text.clone(),
        other => serde_json::to_string(other).ok()?,
    };
    Arguments::parse(&text).ok()
}

/// What a result says, as text in which each word stands as it was meant: JSON without its escapes.
fn text_of(content: &serde_json::Value) -> String {
    match content {
        serde_json::Value::String(text) => match serde_json::from_str(text) {
            Ok(inner @ (serde_json::Value::Object(_) | serde_json::Value::Array(_))) => text_of(&inner),
            _ => text.clone(),
        },
        other => spaced(other).to_string(),
    }
}

/// JSON in whose texts words stand apart as they are read: without signs that JSON writes as others.
fn spaced(value: &serde_json::Value) -> serde_json::Value {
    let plain = |c: char| match c {
        '"' => '”',
        c if c.is_control() => ' ',
        c => c,
    };
    match value {
        serde_json::Value::String(text) => text.chars().map(plain).collect::<String>().into(),
        serde_json::Value::Array(values) => values.iter().map(spaced).collect(),
        serde_json::Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), spaced(value))).collect(),
        other => other.clone(),
    }
}

fn answer(id: String, decided: Decided) -> Answer {
    let labels = |finding: Finding| (finding.argument, finding.labels);
    let verdict = decided.verdict;
    Answer {
        id,
        decision: verdict.decision,
        reasons: verdict.reasons,
        effect: verdict.effects,
        provenance: decided.findings.into_iter().map(labels).collect(),
    }
}
