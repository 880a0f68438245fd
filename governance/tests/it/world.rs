//! One case in full, and the gate that decides it.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use ephor_base::{
    Arguments, CallId, Capability, Confidentiality, Decision, Digest, EffectVector, Exhausted, Flow, Integrity, Label,
    Limits, Registration, Resource, Source,
};
use ephor_governance::{
    Ask, Case, Constitution, Decided, Environment, Evidence, Gate, OperatorPolicy, Planned, Precedent, Registry,
    Rights, Ruled, SchemaFault, Scope, SpanTable, Tool, ToolAsk, TurnState,
};

pub(crate) const SPENT: Exhausted = Exhausted { resource: Resource::Tokens, needed: 1, left: 0 };
pub(crate) const LEVELS: [Confidentiality; 3] =
    [Confidentiality::Public, Confidentiality::Internal, Confidentiality::Confidential];
pub(crate) const DECISIONS: [Decision; 3] = [Decision::Permit, Decision::Defer, Decision::Deny];
pub(crate) const RULINGS: [Option<Ruled>; 6] = [
    None,
    Some(Ruled::Permit),
    Some(Ruled::Refuse),
    Some(Ruled::Expired),
    Some(Ruled::NobodyToAsk),
    Some(Ruled::Withdrawn),
];

/// A tool that acts, and whose argument `to` is critical.
pub(crate) fn tool() -> Registration {
    Registration {
        name: "t.tool".parse().unwrap(),
        description: String::new(),
        schema:
            r#"{"type":"object","properties":{"path":{},"to":{},"n":{},"when":{},"amount":{},"currency":{},"body":{}}}"#
                .into(),
        code: Digest::of(b"code"),
        capability: Capability::OutsideAct,
        effects: EffectVector::NONE,
        paths: vec!["path".into()],
        consequential: ["to", "n", "when", "amount", "currency"].map(str::to_owned).to_vec(),
        integrity: Integrity::Untrusted,
        confidentiality: Confidentiality::Internal,
        limits: Limits { fuel: 1, deadline_ms: 1, memory_bytes: 1, output_bytes: 1 },
        nested: Vec::new(),
        flow: Flow::acts(),
        reach: ephor_base::Reach::default(),
    }
}

/// A constitution that says `decision` of everything.
pub(crate) fn law(decision: Decision) -> String {
    let everything = "(principal, action, resource);";
    let permit = format!("@id(\"all\") permit {everything}");
    match decision {
        Decision::Permit => permit,
        Decision::Defer => format!("{permit} @id(\"ask\") @decision(\"defer\") forbid {everything}"),
        Decision::Deny => format!("{permit} @id(\"no\") forbid {everything}"),
    }
}

pub(crate) fn gate(law: &str, policy: OperatorPolicy, tool: Registration) -> Gate {
    Gate::new(Constitution::parse(law).unwrap(), policy, Registry::new([tool]).unwrap()).unwrap()
}

/// A table in which the person said `text`.
pub(crate) fn said(text: &str) -> SpanTable {
    let mut spans = SpanTable::default();
    spans.begin_turn();
    spans.enter(Label::new(Source::User, Integrity::Trusted, Confidentiality::Public), text);
    spans
}

thread_local! {
    /// Gates by law, environment and whether the tool is forbidden.
    static GATES: RefCell<HashMap<String, Rc<Gate>>> = RefCell::default();
}

/// One case in full.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// The seat, its role and its namespace.
    pub(crate) who: [&'static str; 3],
    pub(crate) law: Decision,
    pub(crate) environment: Environment,
    pub(crate) never: bool,
    pub(crate) entitled: bool,
    pub(crate) known: Known,
    pub(crate) arguments: String,
    pub(crate) effects: [u16; 5],
    pub(crate) workspace: &'static str,
    /// Whether its registration says that it can be undone.
    pub(crate) reversible: bool,
    /// How much is kept of what it replaces.
    pub(crate) keeps: Option<u64>,
    pub(crate) clearance: Confidentiality,
    pub(crate) context: Confidentiality,
    pub(crate) scope: Pinned,
    pub(crate) tainted: bool,
    pub(crate) familiar: bool,
    pub(crate) spent: bool,
    pub(crate) bad_calls: u32,
    pub(crate) suspended: bool,
    pub(crate) approvers: u32,
    pub(crate) precedent: Option<Precedent>,
    pub(crate) ruled: Option<Ruled>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    Unregistered,
    Malformed,
    Unfit,
    Fits,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pinned {
    Nothing,
    This,
    Other,
}

impl Given {
    /// A case that nothing speaks against.
    pub(crate) fn good() -> Self {
        Self {
            who: ["node/a", "agent", "default"],
            law: Decision::Permit,
            environment: Environment::Dev,
            never: false,
            entitled: true,
            known: Known::Fits,
            arguments: r#"{"to":"notes.txt"}"#.into(),
            effects: [0; 5],
            workspace: "/home/a",
            reversible: false,
            keeps: Some(7),
            clearance: Confidentiality::Confidential,
            context: Confidentiality::Public,
            scope: Pinned::This,
            tainted: true,
            familiar: true,
            spent: false,
            bad_calls: 0,
            suspended: false,
            approvers: 1,
            precedent: None,
            ruled: None,
        }
    }

    pub(crate) fn decide(&self) -> Decided {
        self.decide_under(&law(self.law))
    }

    /// The gate of the case. The tool itself comes with the case, so that one gate serves many.
    pub(crate) fn gate(&self, law: &str) -> Rc<Gate> {
        let key = format!("{} {} {law}", self.environment.name(), self.never);
        GATES.with_borrow_mut(|gates| gates.entry(key).or_insert_with(|| Rc::new(self.new_gate(law))).clone())
    }

    fn new_gate(&self, law: &str) -> Gate {
        let never = if self.never { vec!["t.tool".parse().unwrap()] } else { Vec::new() };
        gate(law, OperatorPolicy { never, environment: self.environment, ..OperatorPolicy::default() }, tool())
    }

    pub(crate) fn tool(&self) -> Tool {
        let [risk, fairness, privacy, novelty, security] = self.effects;
        Tool::new(Registration {
            effects: EffectVector::new(risk, fairness, privacy, novelty, security),
            flow: Flow { clearance: self.clearance, reversible: self.reversible, ..Flow::acts() },
            ..tool()
        })
        .unwrap()
    }

    pub(crate) fn decide_under(&self, law: &str) -> Decided {
        self.decide_at(&self.gate(law), &said("write to notes.txt"))
    }

    pub(crate) fn decide_at(&self, gate: &Gate, spans: &SpanTable) -> Decided {
        let arguments = Arguments::parse(&self.arguments).unwrap();
        let tool = &self.tool();
        let fault = SchemaFault { at: "/".into(), message: "bad".into() };
        let ask = match self.known {
            Known::Unregistered => ToolAsk::Unregistered,
            Known::Malformed => ToolAsk::Malformed,
            Known::Unfit => ToolAsk::Known {
                tool,
                arguments: &arguments,
                reached: Some(&arguments),
                workspace: self.workspace,
                keeps: self.keeps,
                fit: Err(&fault),
            },
            Known::Fits => ToolAsk::Known {
                tool,
                arguments: &arguments,
                reached: Some(&arguments),
                workspace: self.workspace,
                keeps: self.keeps,
                fit: Ok(()),
            },
        };
        let mut turn = TurnState::default();
        let tools = |name: &str| Scope { tools: [name.parse().unwrap()].into(), ..Scope::default() };
        match self.scope {
            Pinned::Nothing => {}
            Pinned::This => turn.pin(tools("t.tool")),
            Pinned::Other => turn.pin(tools("t.other")),
        }
        if self.tainted {
            turn.taint();
        }
        let [seat, role, namespace] = self.who;
        gate.decide(&Case {
            ask: Ask::Tool(ask),
            who: &gate.principal(seat, role, namespace).unwrap(),
            rights: &if self.entitled { Rights::of(Capability::ALL) } else { Rights::default() },
            spans,
            turn: &turn,
            call: CallId(0),
            tainted: turn.is_tainted(),
            kept: 0,
            plan: Planned::NoPlanner,
            familiar: self.familiar,
            context: self.context,
            budget: if self.spent { Err(SPENT) } else { Ok(()) },
            evidence: (0..self.bad_calls).fold(Evidence::default(), |sum, _| sum.after(true)),
            suspended: self.suspended,
            approvers: self.approvers,
            precedent: self.precedent.as_ref(),
            ruled: self.ruled,
        })
    }
}
