//! The gate: CapabilityGate first, then the three branches of TileZero; the strictest wins.

use ephor_base::{
    Arguments, Branch, Capability, Confidentiality, Decision, Digest, EffectVector, Exhausted, Reason, Registration,
    Verdict, arguments::Value,
};

use crate::{Constitution, Evidence, OperatorPolicy, Registry, Rights, SchemaFault, paths, provenance};

/// Novelty of a seat's very first call, per mille; a first call is unlike all before it, and still small.
const FIRST_CALL_NOVELTY: u16 = 100;

/// Everything a decision depends on besides the law.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// What is asked.
    pub ask: Ask<'a>,
    /// What the seat is entitled to.
    pub rights: &'a Rights,
    /// The most confidential span the asker has been shown.
    pub context: Confidentiality,
    /// Whether the budget covers it.
    pub budget: Result<(), Exhausted>,
    /// The conduct of the seat so far.
    pub evidence: Evidence,
    /// What an operator has ruled on exactly this.
    pub ruled: Option<Ruled>,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub enum Ask<'a> {
    /// To ask a model.
    Model,
    /// To send a reply.
    Reply,
    /// To run a tool.
    Tool(ToolAsk<'a>),
}

/// A tool call, as far as it makes sense.
#[derive(Clone, Copy, Debug)]
pub enum ToolAsk<'a> {
    /// No tool of this name is registered.
    Unregistered,
    /// The arguments are not a JSON object.
    Malformed,
    /// A registered tool with arguments that fit its schema, or not.
    Known {
        /// The registration.
        registration: &'a Registration,
        /// The arguments.
        arguments: &'a Arguments,
        /// How they fit.
        fit: Result<(), &'a SchemaFault>,
        /// The trusted texts of the session.
        trusted: &'a [&'a str],
    },
}

/// An operator's answer, already checked against its signature and bound to exactly this call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ruled {
    /// It may run.
    Permit,
    /// It may not.
    Refuse,
    /// Nobody answered in time.
    Expired,
    /// Nobody is there who could be asked.
    NobodyToAsk,
    /// The turn was cancelled, or the caller let go, before anyone answered.
    Withdrawn,
}

/// The law and the tools of a node.
#[derive(Debug)]
pub struct Gate {
    constitution: Constitution,
    policy: OperatorPolicy,
    registry: Registry,
    digest: Digest,
}

impl Gate {
    /// A gate under `constitution` and `policy` over the tools in `registry`.
    #[must_use]
    pub fn new(constitution: Constitution, policy: OperatorPolicy, registry: Registry) -> Self {
        let digest = policy.digest(&constitution);
        Self { constitution, policy, registry, digest }
    }

    /// The tools.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The operator's policy.
    #[must_use]
    pub const fn policy(&self) -> &OperatorPolicy {
        &self.policy
    }

    /// SHA-256 over constitution and policy.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Decides. Total and pure: every case gets a verdict with at least one reason.
    #[must_use]
    pub fn decide(&self, case: &Case<'_>) -> Verdict {
        let effects = self.effects(case);
        let mut reasons = Vec::new();
        self.capability(case, &mut reasons);
        self.legislative(case, &mut reasons);
        self.executive(case, &effects, &mut reasons);
        Self::judicial(case, &mut reasons);
        let strictest = reasons.iter().map(|reason| reason.decision).max().unwrap_or(Decision::Deny);
        // A ruling answers every "defer"; nothing answers a "deny".
        let answered = strictest == Decision::Defer && case.ruled == Some(Ruled::Permit);
        let decision = if answered { Decision::Permit } else { strictest };
        Verdict { decision, reasons, effects, policy: self.digest }
    }

    /// Is the seat entitled to ask this at all, and does it make sense?
    fn capability(&self, case: &Case<'_>, reasons: &mut Vec<Reason>) {
        let mut deny = |code: &str| reasons.push(reason(Branch::Capability, Decision::Deny, code));
        if let Ask::Tool(tool) = &case.ask {
            match tool {
                ToolAsk::Unregistered => return deny("tool-is-not-registered"),
                ToolAsk::Malformed => return deny("arguments-are-not-a-json-object"),
                ToolAsk::Known { registration, arguments, fit, .. } => {
                    if fit.is_err() {
                        deny("arguments-do-not-fit-the-schema");
                    }
                    if self.policy.never.contains(&registration.name) {
                        deny("operator-forbids-the-tool");
                    }
                    let strays = |name: &String| arguments.text(name).is_some_and(|path| !paths::stays_inside(path));
                    if registration.paths.iter().any(strays) {
                        deny("path-leaves-the-workspace");
                    }
                    // A list of paths, or an object that holds one, would be looked at by nobody.
                    let opaque =
                        |name: &String| !matches!(arguments.value(name), None | Some(Value::Null | Value::Text(_)));
                    if registration.paths.iter().any(opaque) {
                        deny("path-is-not-a-text");
                    }
                }
            }
        }
        let entitled = capability_of(&case.ask)
            .is_some_and(|needed| case.rights.allow(needed) && self.policy.rights().allow(needed));
        if entitled {
            reasons.push(reason(Branch::Capability, Decision::Permit, "seat-is-entitled"));
        } else {
            deny("seat-is-not-entitled");
        }
    }

    /// What does the constitution say?
    fn legislative(&self, case: &Case<'_>, reasons: &mut Vec<Reason>) {
        let Some(article) = capability_of(&case.ask).and_then(|needed| self.constitution.article(needed)) else {
            return reasons.push(reason(Branch::Legislative, Decision::Deny, "no-article-allows-it"));
        };
        reasons.push(reason(Branch::Legislative, article.decision, &article.code));
        if self.constitution.clearance(article.capability).is_none_or(|clearance| case.context > clearance) {
            reasons.push(reason(Branch::Legislative, Decision::Deny, "sink-is-not-cleared"));
        }
    }

    /// Effects, trust in the arguments, budget, and what an operator has ruled.
    fn executive(&self, case: &Case<'_>, effects: &EffectVector, reasons: &mut Vec<Reason>) {
        let mut give = |decision, code: &str| reasons.push(reason(Branch::Executive, decision, code));
        let threshold = self.policy.environment.threshold();
        for (name, value) in effects.components() {
            if value >= threshold {
                give(Decision::Defer, &format!("{name}-at-or-over-{}", threshold.value()));
            }
        }
        if let Ask::Tool(ToolAsk::Known { registration, arguments, trusted, .. }) = &case.ask {
            for name in provenance::untrusted(arguments, &registration.consequential, trusted) {
                give(Decision::Defer, &format!("argument-{name}-is-untrusted"));
            }
        }
        if case.budget.is_err() {
            give(Decision::Deny, "budget-is-spent");
        }
        match case.ruled {
            Some(Ruled::Permit) => give(Decision::Permit, "operator-permits"),
            Some(Ruled::Refuse) => give(Decision::Deny, "operator-does-not-permit"),
            Some(Ruled::Expired) => give(Decision::Deny, "nobody-answered-in-time"),
            Some(Ruled::NobodyToAsk) => give(Decision::Deny, "nobody-is-there-to-ask"),
            Some(Ruled::Withdrawn) => give(Decision::Deny, "question-was-withdrawn"),
            None => {}
        }
    }

    /// Does the seat's conduct allow more tool calls?
    fn judicial(case: &Case<'_>, reasons: &mut Vec<Reason>) {
        if case.evidence.alarms() && matches!(case.ask, Ask::Tool(_)) {
            reasons.push(reason(Branch::Judicial, Decision::Deny, "seat-is-suspended-for-its-conduct"));
        }
    }

    /// The effect vector, from registration and arguments alone. Without a registration: the maximum.
    fn effects(&self, case: &Case<'_>) -> EffectVector {
        match &case.ask {
            Ask::Model | Ask::Reply => EffectVector::NONE,
            Ask::Tool(ToolAsk::Known { registration, arguments, .. }) => {
                let novelty = if case.evidence.calls() == 0 { FIRST_CALL_NOVELTY } else { 0 };
                let touched = registration.paths.iter().filter_map(|name| arguments.text(name));
                touched
                    .fold(registration.effects, |sum, path| sum.join(&self.constitution.effects_of_path(path)))
                    .join(&EffectVector::new(0, 0, 0, novelty, 0))
            }
            Ask::Tool(ToolAsk::Unregistered | ToolAsk::Malformed) => EffectVector::MAX,
        }
    }
}

fn capability_of(ask: &Ask<'_>) -> Option<Capability> {
    match ask {
        Ask::Model => Some(Capability::Model),
        Ask::Reply => Some(Capability::Reply),
        Ask::Tool(ToolAsk::Known { registration, .. }) => Some(registration.capability),
        Ask::Tool(ToolAsk::Unregistered | ToolAsk::Malformed) => None,
    }
}

fn reason(branch: Branch, decision: Decision, code: &str) -> Reason {
    Reason { branch, decision, code: code.to_owned() }
}
