//! The gate: CapabilityGate first, then the three branches of TileZero; the strictest wins.

use std::sync::Arc;

use ephor_base::{
    Arguments, Branch, CallId, Capability, Confidentiality, Decision, Digest, EffectVector, Exhausted,
    MOST_KEPT_IN_SESSION, Reason, ToolName, Verdict,
};

use crate::{
    BadConstitution, Constitution, Evidence, OperatorPolicy, Precedent, Principal, Registry, Rights, SchemaFault,
    SpanTable, TurnState,
    constitution::{Article, Facts, Law},
    datum::Datum,
    effects::{self, Circumstances, Named},
    environment::LARGE,
    origin::{self, Finding, Harms, Origins, Planned, Rule},
    paths,
    plan::Use,
    registry::Tool,
};

/// Everything a decision depends on besides the law.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// What is asked.
    pub ask: Ask<'a>,
    /// Who asks, for the constitution.
    pub who: &'a Principal,
    /// What the seat is entitled to.
    pub rights: &'a Rights,
    /// The spans of the session.
    pub spans: &'a SpanTable,
    /// What has happened in the turn.
    pub turn: &'a TurnState,
    /// The call, whose id a rerun keeps.
    pub call: CallId,
    /// Whether the model call that chose it was shown anything untrusted.
    pub tainted: bool,
    /// The bytes that were kept for the session so far of what it replaced.
    pub kept: u64,
    /// The plan of the turn.
    pub plan: Planned<'a>,
    /// Whether the session has called this tool before.
    pub familiar: bool,
    /// The most confidential span the asker has been shown.
    pub context: Confidentiality,
    /// Whether the budget covers it.
    pub budget: Result<(), Exhausted>,
    /// The conduct of the seat so far.
    pub evidence: Evidence,
    /// Whether an operator has suspended the seat.
    pub suspended: bool,
    /// What an operator has ruled on exactly this.
    pub ruled: Option<Ruled>,
    /// How many different people in office have permitted exactly this. Counts only if it was ruled to permit.
    pub approvers: u32,
    /// What a person who is still in office has ruled before, for this seat and this time.
    pub precedent: Option<&'a Precedent>,
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

impl Ask<'_> {
    /// Whether it is a call that can be undone: its registration says so, and all that it replaces is kept, where the session has room
    /// beside what was `kept` for it before.
    #[must_use]
    pub fn is_reversible(&self, kept: u64) -> bool {
        let Self::Tool(ToolAsk::Known { tool, keeps: Some(keeps), .. }) = self else { return false };
        let room = kept.checked_add(*keeps).is_some_and(|kept| kept <= MOST_KEPT_IN_SESSION);
        tool.registration().flow.reversible && room
    }
}

impl Case<'_> {
    fn is_reversible(&self) -> bool {
        self.ask.is_reversible(self.kept)
    }
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
        /// The tool.
        tool: &'a Tool,
        /// The arguments.
        arguments: &'a Arguments,
        /// The same with each path as the file has it that the path leads to; none if one leads nowhere.
        reached: Option<&'a Arguments>,
        /// The folder that paths start from, absolute; empty where there is none.
        workspace: &'a str,
        /// The bytes that are kept of what it replaces, before it runs; none if not all of it can be kept.
        keeps: Option<u64>,
        /// How they fit.
        fit: Result<(), &'a SchemaFault>,
    },
}

/// An operator's answer, already checked against its signature and bound to exactly this call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ruled {
    /// It may run.
    Permit,
    /// It may not.
    Refuse,
    /// No person answered in time.
    Expired,
    /// No person is there who could be asked.
    NobodyToAsk,
    /// The turn was cancelled, or the caller let go, before anyone answered.
    Withdrawn,
}

/// A verdict, and where the critical arguments come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decided {
    /// The verdict.
    pub verdict: Verdict,
    /// Each critical argument of a tool call.
    pub findings: Vec<Finding>,
    /// Which rule decided where they come from, of a call that acts.
    pub rule: Option<Rule>,
    /// The step of the plan that the call takes if it runs, and keeps while it waits.
    pub step: Option<Use>,
    /// Whether it asks for want of a plan that it could be a step of.
    pub plan_helps: bool,
}

impl Decided {
    /// A verdict on what has no arguments.
    #[must_use]
    pub const fn plain(verdict: Verdict) -> Self {
        Self { verdict, findings: Vec::new(), rule: None, step: None, plan_helps: false }
    }
}

/// The law and the tools of a node.
#[derive(Debug)]
pub struct Gate {
    constitution: Constitution,
    policy: OperatorPolicy,
    registry: Arc<Registry>,
    law: Law,
    digest: Digest,
}

impl Gate {
    /// A gate under `constitution` and `policy` over the tools in `registry`.
    ///
    /// # Errors
    /// [`BadConstitution`] if the constitution and the tools do not fit together.
    pub fn new(
        constitution: Constitution,
        policy: OperatorPolicy,
        registry: Registry,
    ) -> Result<Self, BadConstitution> {
        Self::over(constitution, policy, Arc::new(registry))
    }

    /// The same policy and tools under another constitution.
    ///
    /// # Errors
    /// [`BadConstitution`] if the constitution and the tools do not fit together.
    pub fn under(&self, constitution: Constitution) -> Result<Self, BadConstitution> {
        Self::over(constitution, self.policy.clone(), self.registry.clone())
    }

    fn over(
        constitution: Constitution,
        policy: OperatorPolicy,
        registry: Arc<Registry>,
    ) -> Result<Self, BadConstitution> {
        let digest = policy.digest(&constitution);
        let law = Law::new(&constitution, &registry)?;
        Ok(Self { constitution, policy, registry, law, digest })
    }

    /// The tools.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The constitution.
    #[must_use]
    pub const fn constitution(&self) -> &Constitution {
        &self.constitution
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

    /// Who asks from `seat`, in a role and a namespace. Made once for a session.
    ///
    /// # Errors
    /// [`BadConstitution`] if the three cannot stand beside the tools.
    pub fn principal(&self, seat: &str, role: &str, namespace: &str) -> Result<Principal, BadConstitution> {
        self.law.principal(seat, role, namespace)
    }

    /// Decides. Total and pure: every case gets a verdict with at least one reason.
    #[must_use]
    pub fn decide(&self, case: &Case<'_>) -> Decided {
        let origins = match &case.ask {
            Ask::Tool(ToolAsk::Known { tool, arguments, .. }) if tool.acts() => {
                let call = (case.call, *tool, *arguments);
                let harms = Harms { tainted: case.tainted, reversible: case.is_reversible() };
                Some(origin::of(call, harms, case.plan, case.turn.spent(), case.spans))
            }
            _ => None,
        };
        let verdict = self.weigh(case, origins.as_ref());
        let Some(origins) = origins else { return Decided::plain(verdict) };
        // A plan is made only where it could spare the question, or is to be looked at.
        let could = verdict.decision == Decision::Defer && case.plan == Planned::Missing;
        let looked_at = || verdict.reasons.iter().any(|reason| reason.code == PLAN_IS_LOOKED_AT);
        let plan_helps =
            could && (looked_at() || self.weigh(case, Some(&origins.supposed())).decision == Decision::Permit);
        let Origins { rule, findings, step, .. } = origins;
        Decided { verdict, findings, rule: Some(rule), step, plan_helps }
    }

    /// What the branches say of a call whose arguments come from there.
    fn weigh(&self, case: &Case<'_>, origins: Option<&Origins>) -> Verdict {
        let findings = origins.map_or(&[][..], |origins| &origins.findings);
        let facts = self.facts(case, origins);
        let effects = facts.effects;
        let mut reasons = Vec::with_capacity(8);
        self.capability(case, &mut reasons);
        self.legislative(case, &facts, &mut reasons);
        self.executive(case, &effects, origins, &mut reasons);
        judicial(case, &mut reasons);
        self.quorate(case, &mut reasons);
        let precedent = self.precedent(case, &effects, findings, &reasons);
        reasons.extend(precedent.map(by_precedent));
        let strictest = reasons.iter().map(|reason| reason.decision).max().unwrap_or(Decision::Deny);
        // A ruling answers every "defer"; nothing answers a "deny".
        let permitted = case.ruled == Some(Ruled::Permit) || precedent == Some(Decision::Permit);
        let answered = strictest == Decision::Defer && permitted;
        let decision = if answered { Decision::Permit } else { strictest };
        Verdict { decision, reasons, effects, policy: self.digest }
    }

    /// How many different people must permit what was deferred for these reasons.
    #[must_use]
    pub fn quorum(&self, reasons: &[Reason]) -> u32 {
        let defers = |reason: &&Reason| reason.branch == Branch::Legislative && reason.decision == Decision::Defer;
        let articles = reasons.iter().filter(defers).map(|reason| self.constitution.quorum(&reason.code));
        articles.max().unwrap_or(1).max(1)
    }

    /// A ruling that permits is as good as the people behind it.
    fn quorate(&self, case: &Case<'_>, reasons: &mut Vec<Reason>) {
        if case.ruled == Some(Ruled::Permit) && case.approvers < self.quorum(reasons) {
            reasons.push(reason(Branch::Executive, Decision::Deny, "too-few-approvers"));
        }
    }

    /// What was ruled before on the question that this call asks, if it asks one.
    fn precedent(
        &self,
        case: &Case<'_>,
        effects: &EffectVector,
        findings: &[Finding],
        reasons: &[Reason],
    ) -> Option<Decision> {
        let precedent = case.precedent.filter(|one| one.policy == self.digest)?;
        let Ask::Tool(ToolAsk::Known { tool, reached: Some(reached), workspace, .. }) = &case.ask else { return None };
        let (name, registration) = (&tool.registration().name, tool.registration().digest());
        let strictest = reasons.iter().map(|reason| reason.decision).max();
        if strictest != Some(Decision::Defer) || !precedent.speaks_of(name, registration, workspace, reached) {
            return None;
        }
        // An argument that was left free is trusted for itself, or asked about.
        let seen = |finding: &Finding| finding.trusted || precedent.arguments.contains_key(&finding.argument);
        let permits = self.quorum(reasons) == 1 && precedent.was_shown(reasons, effects) && findings.iter().all(seen);
        match precedent.decision {
            Decision::Permit => permits.then_some(Decision::Permit),
            Decision::Deny => Some(Decision::Deny),
            Decision::Defer => None,
        }
    }

    /// What is said to a process whose session is over.
    #[must_use]
    pub fn gone(&self) -> Verdict {
        let reasons = vec![reason(Branch::Capability, Decision::Deny, "session-is-over")];
        Verdict { decision: Decision::Deny, reasons, effects: EffectVector::MAX, policy: self.digest }
    }

    /// Is the seat entitled to ask this at all, and does it make sense?
    fn capability(&self, case: &Case<'_>, reasons: &mut Vec<Reason>) {
        let mut deny = |code: &str| reasons.push(reason(Branch::Capability, Decision::Deny, code));
        if let Ask::Tool(ask) = &case.ask {
            match ask {
                ToolAsk::Unregistered => return deny("tool-is-not-registered"),
                ToolAsk::Malformed => return deny("arguments-are-not-a-json-object"),
                ToolAsk::Known { tool, arguments, reached, fit, .. } => {
                    self.sense(tool, arguments, *fit, &mut deny);
                    match reached {
                        Some(reached) => self.sense(tool, reached, Ok(()), &mut deny),
                        None => deny("path-leads-nowhere"),
                    }
                }
            }
        }
        let entitled = capability_of(&case.ask)
            .is_some_and(|needed| case.rights.allow(needed) && self.policy.capabilities.contains(&needed));
        if tool_of(&case.ask).is_some_and(|tool| !case.rights.are_for(&tool.registration().name)) {
            deny("seat-does-not-have-the-tool");
        } else if entitled {
            reasons.push(reason(Branch::Capability, Decision::Permit, "seat-is-entitled"));
        } else {
            deny("seat-is-not-entitled");
        }
    }

    fn sense(&self, tool: &Tool, arguments: &Arguments, fit: Result<(), &SchemaFault>, deny: &mut impl FnMut(&str)) {
        let registration = tool.registration();
        if fit.is_err() {
            deny("arguments-do-not-fit-the-schema");
        }
        if self.policy.never.contains(&registration.name) {
            deny("operator-forbids-the-tool");
        }
        let paths: Vec<_> = registration.paths.iter().map(|name| arguments.texts(name)).collect();
        if !paths.iter().flatten().flatten().all(|(_, path)| paths::stays_inside(path)) {
            deny("path-leaves-the-workspace");
        }
        // An object that holds a path would not be looked at.
        if paths.iter().any(Option::is_none) {
            deny("path-is-not-a-text");
        }
    }

    /// What of the case the constitution can speak of.
    fn facts(&self, case: &Case<'_>, origins: Option<&Origins>) -> Facts {
        let untrusted = origins.is_some_and(|origins| origins.findings.iter().any(|finding| !finding.trusted));
        Facts {
            environment: self.policy.environment.name(),
            effects: self.effects(case, untrusted),
            confidentiality: case.context,
            untrusted,
            tainted: case.tainted,
            reversible: case.is_reversible(),
            planned: origins.is_some_and(|origins| origins.planned),
            pinned: tool_of(&case.ask).is_some_and(|tool| case.turn.has_pinned(&tool.registration().name)),
        }
    }

    /// What does the constitution say?
    fn legislative(&self, case: &Case<'_>, facts: &Facts, reasons: &mut Vec<Reason>) {
        let name = tool_of(&case.ask).map(|tool| &tool.registration().name);
        let articles = match (&case.ask, name) {
            (Ask::Model, _) => self.law.on_model(case.who, facts),
            (Ask::Reply, _) => self.law.on_person(case.who, facts),
            (Ask::Tool(_), Some(name)) => self.law.on_tool(name, case.who, facts),
            (Ask::Tool(_), None) => vec![Article { decision: Decision::Deny, code: "no-article-allows-it".into() }],
        };
        let say =
            |article: Article| Reason { branch: Branch::Legislative, decision: article.decision, code: article.code };
        reasons.extend(articles.into_iter().map(say));
    }

    /// Effects, trust in the arguments, confidentiality, scope, budget, and what an operator has ruled.
    fn executive(&self, case: &Case<'_>, effects: &EffectVector, origins: Option<&Origins>, reasons: &mut Vec<Reason>) {
        let mut give = |decision, code: &str| reasons.push(reason(Branch::Executive, decision, code));
        let (threshold, relief) = (self.policy.environment.threshold(), self.policy.environment.relief());
        let is_planned = origins.is_some_and(|origins| origins.planned);
        for (name, value) in effects.components() {
            let less = is_planned && value < LARGE && matches!(name, "risk" | "novelty");
            let counts = if less { value.less(relief) } else { value };
            if counts >= threshold {
                give(Decision::Defer, &format!("{name}-at-or-over-{}", threshold.value()));
            }
        }
        if let Ask::Tool(ToolAsk::Known { tool, arguments, reached, workspace, .. }) = &case.ask {
            let reached = reached.unwrap_or(arguments);
            let named = Named { workspace, written: arguments, reached };
            for sensitive in effects::touched(tool, named, self.constitution.sensitive()) {
                give(Decision::Defer, sensitive.code());
            }
            origins.into_iter().for_each(|origins| origin_reasons(case.turn, tool, origins, &mut give));
            if case.context > tool.registration().flow.clearance {
                give(Decision::Defer, "tool-is-not-cleared-for-the-context");
            }
            scope(case, tool, [arguments, reached], &mut give);
        }
        if case.budget.is_err() {
            give(Decision::Deny, "budget-is-spent");
        }
        match case.ruled {
            Some(Ruled::Permit) => give(Decision::Permit, "operator-permits"),
            Some(Ruled::Refuse) => give(Decision::Deny, "operator-does-not-permit"),
            Some(Ruled::Expired) => give(Decision::Deny, "nobody-answered-in-time"),
            Some(Ruled::NobodyToAsk) => give(Decision::Deny, "no-approver-is-here"),
            Some(Ruled::Withdrawn) => give(Decision::Deny, "question-was-withdrawn"),
            None => {}
        }
    }

    /// The effect vector. Without a registration: the maximum.
    fn effects(&self, case: &Case<'_>, untrusted: bool) -> EffectVector {
        match &case.ask {
            Ask::Model | Ask::Reply => EffectVector::NONE,
            Ask::Tool(ToolAsk::Known { tool, arguments, reached, workspace, .. }) => {
                let named = Named { workspace, written: arguments, reached: reached.unwrap_or(arguments) };
                let now = Circumstances { familiar: case.familiar, tainted: case.tainted, untrusted };
                effects::vector(tool, named, self.constitution.sensitive(), now)
            }
            Ask::Tool(ToolAsk::Unregistered | ToolAsk::Malformed) => EffectVector::MAX,
        }
    }
}

/// Does a trusted source say what the call does?
fn origin_reasons(turn: &TurnState, tool: &Tool, origins: &Origins, give: &mut impl FnMut(Decision, &str)) {
    let before = [Rule::NoPlan, Rule::Plan].contains(&origins.rule) && origins.step.is_none();
    for finding in origins.findings.iter().filter(|finding| !finding.trusted && !before) {
        // An argument that the schema does not name has a name that anyone may have written.
        let name = if tool.names(&finding.argument) { &finding.argument } else { "undeclared" };
        give(Decision::Defer, &format!("argument-{name}-is-untrusted"));
    }
    let name = &tool.registration().name;
    match origins.rule {
        rule if origins.permits => give(Decision::Permit, rule.code()),
        Rule::NoPlan => give(Decision::Defer, Rule::NoPlan.code()),
        Rule::Plan if origins.step.is_none() => give(Decision::Defer, "plan-does-not-have-the-call"),
        Rule::Plan if origins.findings.iter().all(|finding| finding.trusted) => {
            give(Decision::Defer, "turn-has-too-many-acts");
        }
        // Without an argument that anybody has said, only what was pinned says that anybody asked for it.
        Rule::Literals if origins.findings.is_empty() && !turn.has_pinned(name) => {
            give(Decision::Defer, "nothing-ties-it-to-the-request");
        }
        Rule::Clean | Rule::Reversible | Rule::Plan | Rule::Literals => {}
    }
}

/// The code of the reason that asks about the first act of a turn whose plan a person wants to see before anything acts.
pub const PLAN_IS_LOOKED_AT: &str = "plan-is-to-be-looked-at";

/// Does the call belong to what was asked for? Only what acts has to.
fn scope(case: &Case<'_>, tool: &Tool, [arguments, reached]: [&Arguments; 2], give: &mut impl FnMut(Decision, &str)) {
    let flow = &tool.registration().flow;
    if case.turn.is_looked_at() && tool.acts() {
        give(Decision::Defer, PLAN_IS_LOOKED_AT);
    }
    if !flow.consequential {
        return;
    }
    let name = &tool.registration().name;
    if let Some(scope) = case.turn.scope() {
        if !scope.tools.contains(name) {
            give(Decision::Defer, "tool-is-outside-the-scope");
        }
        if !scope.reaches(tool, arguments) || !scope.reaches(tool, reached) {
            give(Decision::Defer, "target-is-outside-the-scope");
        }
    }
    if !flow.reversible && case.turn.spent().was_permitted(call_digest(name, arguments), case.call) {
        give(Decision::Defer, "same-call-again");
    }
}

/// SHA-256 over a tool's name and arguments, the same for values that are the same: what a call that acts is known by within its turn.
#[must_use]
pub fn call_digest(tool: &ToolName, arguments: &Arguments) -> Digest {
    let mut bytes = Vec::with_capacity(256);
    for (name, value) in arguments.iter() {
        Datum::text(name).canonical(&mut bytes);
        Datum::of(value).canonical(&mut bytes);
    }
    Digest::of_parts(&[tool.as_str().as_bytes(), &[0], &bytes])
}

/// Does the seat's conduct allow more tool calls?
fn judicial(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    if matches!(case.ask, Ask::Tool(_)) {
        let mut deny = |code: &str| reasons.push(reason(Branch::Judicial, Decision::Deny, code));
        if case.evidence.alarms() {
            deny("seat-is-suspended-for-its-conduct");
        }
        if case.suspended {
            deny("seat-is-suspended-by-an-operator");
        }
    }
}

const fn tool_of<'a>(ask: &Ask<'a>) -> Option<&'a Tool> {
    match ask {
        Ask::Tool(ToolAsk::Known { tool, .. }) => Some(tool),
        Ask::Model | Ask::Reply | Ask::Tool(_) => None,
    }
}

fn capability_of(ask: &Ask<'_>) -> Option<Capability> {
    match ask {
        Ask::Model => Some(Capability::Model),
        Ask::Reply => Some(Capability::Reply),
        Ask::Tool(_) => tool_of(ask).map(|tool| tool.registration().capability),
    }
}

fn by_precedent(decision: Decision) -> Reason {
    let code = if decision == Decision::Permit { "precedent-permits" } else { "precedent-refuses" };
    reason(Branch::Judicial, decision, code)
}

fn reason(branch: Branch, decision: Decision, code: &str) -> Reason {
    Reason { branch, decision, code: code.to_owned() }
}
