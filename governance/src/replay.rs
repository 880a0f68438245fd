//! Decides a foreign trace without running anything.
//!
//! A trace is lines of JSON in the order in which they happened: tools, what the user said, what was pinned, calls and
//! results. [`Replay`] takes them one by one and answers each call as the gate of a node would. A key that it does not
//! know is an error; what a registration leaves out is taken at its strictest.

mod line;

use std::collections::{BTreeMap, BTreeSet};

use ephor_base::{
    Arguments, CallId, Capability, Confidentiality, Decision, EffectVector, Flow, Integrity, Label, Limits, Part,
    PartKind, Reach, Reason, Registration, Repeat, Source, ToolName, arguments::Value,
};
use serde::Serialize;

pub use line::BadLine;
use line::{Line, Part as Labelled, Registered};

use crate::{
    Ask, Carried, Case, Constitution, Decided, Evidence, Finding, Gate, OperatorPolicy, Plan, Planned, Principal,
    Registry, Rights, Scope, SpanTable, ToolAsk, TurnState, gate::call_digest, pasted,
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
    plan: Option<Plan>,
    /// Whether the trace has a plan anywhere, so that a turn without one asks.
    has_planner: bool,
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
            plan: None,
            has_planner: false,
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
                self.tool(&name, description.unwrap_or_default(), schema, *registration.unwrap_or_default())?;
            }
            Line::User { text, time } => {
                if let Some(time) = time.filter(|time| time.parse::<jiff::Timestamp>().is_err()) {
                    return Err(format!("`{time}` is not an RFC 3339 time"));
                }
                self.turn.begin();
                self.plan = None;
                self.spans.begin_turn();
                self.said(text);
            }
            Line::Plan => {
                let known = |name: &str| self.names.get(name).cloned();
                self.plan = Some(Plan::of_line(text, &known).map_err(|error| error.to_string())?);
                self.has_planner = true;
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

    /// What is pasted into a message is not typed.
    fn said(&mut self, text: String) {
        for part in pasted::divided(vec![Part { kind: PartKind::Typed, text }]) {
            let typed = part.kind == PartKind::Typed;
            let integrity = if typed { Integrity::Trusted } else { Integrity::Untrusted };
            if !typed {
                self.turn.taint();
            }
            self.spans.enter(Label::new(Source::User, integrity, Confidentiality::Public), &part.text);
        }
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
                let fit = fault.as_ref().map_or(Ok(()), Err);
                // A trace has no files. What is registered as reversible counts as kept.
                ToolAsk::Known { tool, arguments, reached: Some(arguments), workspace: "", keeps: Some(0), fit }
            }
        };
        let call = CallId(self.calls.len() as u64);
        let familiar = tool.is_some_and(|tool| self.familiar.contains(&tool.registration().name));
        let decided = gate.decide(&Case {
            ask: Ask::Tool(ask),
            who: &who,
            rights: &Rights::of(Capability::ALL),
            spans: &self.spans,
            turn: &self.turn,
            call,
            tainted: self.turn.is_tainted(),
            kept: 0,
            plan: match &self.plan {
                Some(plan) => Planned::Plan(plan),
                None if self.has_planner => Planned::Missing,
                None => Planned::NoPlanner,
            },
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
        self.took_place(call, &decided, called.clone());
        // What was denied did not run: whatever is said to have come of it is no tool's.
        let ran = decided.verdict.decision != Decision::Deny;
        self.calls.insert(id.clone(), Called { tool: called.filter(|_| ran).map(|(tool, _)| tool), carried });
        Ok(answer(id, decided))
    }

    fn took_place(&mut self, call: CallId, decided: &Decided, called: Option<(ToolName, ephor_base::Digest)>) {
        match decided.verdict.decision {
            Decision::Permit => {
                self.evidence = self.evidence.after(false);
                if let Some((tool, digest)) = called {
                    self.familiar.insert(tool);
                    self.turn.permitted(call, digest, decided.step.clone());
                }
            }
            Decision::Deny => self.evidence = self.evidence.after(true),
            Decision::Defer => {}
        }
    }

    /// The gate over the tools so far. The caller that takes it puts it back.
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

    fn result(
        &mut self,
        id: &str,
        content: Option<serde_json::Value>,
        parts: Option<Vec<Labelled>>,
    ) -> Result<(), String> {
        let called = self.calls.get(id).ok_or_else(|| format!("no call `{id}` came before its result"))?;
        let tool = called.tool.as_ref().and_then(|name| self.tools.iter().find(|(tool, _)| tool.name == *name));
        let text = content.as_ref().map(text_of).unwrap_or_default();
        let label = |integrity, confidentiality| Label::new(Source::Tool, integrity, confidentiality);
        let Some((tool, confidential)) = tool else {
            // What wrote this is not registered.
            self.turn.taint();
            self.spans.enter(label(Integrity::Untrusted, Confidentiality::Confidential), &text);
            return Ok(());
        };
        let level = if *confidential { Confidentiality::Confidential } else { Confidentiality::Internal };
        let whole = || vec![(label(tool.integrity, level), text.clone())];
        let part = |part: Labelled| {
            let integrity = part.integrity.unwrap_or(Integrity::Untrusted);
            (label(integrity, part.confidentiality.unwrap_or(Confidentiality::Confidential)), part.text)
        };
        let parts = parts.map_or_else(whole, |parts| parts.into_iter().map(part).collect());
        if parts.iter().any(|(label, text)| label.integrity == Integrity::Untrusted && !text.is_empty()) {
            self.turn.taint();
        }
        match parts.as_slice() {
            // One that has no label of its own has that of its tool.
            [(label, text)] if content.is_some() => {
                self.spans.enter_result(*label, text, tool, called.carried.clone());
            }
            parts => {
                let parts: Vec<(Label, &str)> = parts.iter().map(|(label, text)| (*label, text.as_str())).collect();
                self.spans.enter_parts(&parts, tool, called.carried.clone());
            }
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
                repeat: Repeat::Unsafe,
                identifies: self.identifies.unwrap_or_default(),
                destinations: self.destinations,
                format: self.format.unwrap_or_default(),
                paging: self.paging.unwrap_or_default(),
                reversible: self.reversible.unwrap_or(false),
                keys: self.keys.unwrap_or_default(),
            },
            reach: Reach::default(),
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

/// What a result says, as the text that its tool gave.
fn text_of(content: &serde_json::Value) -> String {
    match content {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
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
