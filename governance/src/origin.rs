//! Where the arguments of an acting call come from: the first rule that applies decides.
//!
//! 1. *Clean*: the model call that chose it was shown nothing untrusted. Nothing is asked of its origin. Nor is it where the call can be
//!    undone: it is judged by its effects alone.
//! 2. *Plan*: it has to be an unspent step of the turn's plan ([`plan`](crate::plan)). Without a valid plan it asks.
//! 3. *Literals*, where the operator configured no planner: each critical argument stands in trusted text as a whole
//!    ([`literals`](crate::literals)).

use ephor_base::{Arguments, CallId};

use crate::{
    plan::{Asked, Call, Judge, Plan, Spent, Use},
    registry::Tool,
    spans::SpanTable,
};

/// The plan of a turn, as far as there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planned<'a> {
    /// The operator configured no planner.
    NoPlanner,
    /// There is none, or none that is valid.
    Missing,
    /// This one.
    Plan(&'a Plan),
}

/// Which rule decided on an acting call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The context is clean.
    Clean,
    /// The call can be undone.
    Reversible,
    /// The plan.
    Plan,
    /// There should be a plan.
    NoPlan,
    /// The literals of trusted texts.
    Literals,
}

/// Where a critical argument comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The argument.
    pub argument: String,
    /// Whether nothing is asked of it.
    pub trusted: bool,
    /// Where it comes from: `clean`, `reversible`, `user`, `plan`, `tool:NAME`, `picked:tool:NAME`; or why it asks: `untrusted`, `untrusted:tool:NAME`,
    /// `unvouched`, `unplanned`, `missing`, `other`, `ask`.
    pub labels: Vec<String>,
}

/// What could go wrong with an acting call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Harms {
    /// The model call that chose it was shown something untrusted.
    pub tainted: bool,
    /// It can be undone.
    pub reversible: bool,
}

/// What the rules make of an acting call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origins {
    /// The rule that decided.
    pub rule: Rule,
    /// The arguments that matter.
    pub findings: Vec<Finding>,
    /// The step of the plan that the call takes, of this plan or of one made later.
    pub step: Option<Use>,
    /// Whether nothing is asked of its origin.
    pub permits: bool,
    /// Whether it is a step of the plan, whichever rule decided.
    pub planned: bool,
}

impl Origins {
    /// The same, were it a step of a plan.
    #[must_use]
    pub(crate) fn supposed(&self) -> Self {
        let trusted = |finding: &Finding| Finding { trusted: true, ..finding.clone() };
        let findings = self.findings.iter().map(trusted).collect();
        Self { rule: Rule::Plan, findings, step: self.step.clone(), permits: true, planned: true }
    }
}

impl Rule {
    /// The code of the reason that is given where it permits.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Clean => "context-is-clean",
            Self::Reversible => "what-it-replaces-is-kept",
            Self::Plan => "plan-has-the-call",
            Self::NoPlan => "plan-is-missing",
            Self::Literals => "arguments-are-said",
        }
    }
}

/// What the rules make of call `id` of `tool`.
#[must_use]
pub fn of(
    (id, tool, arguments): (CallId, &Tool, &Arguments),
    Harms { tainted, reversible }: Harms,
    planned: Planned<'_>,
    spent: &Spent,
    spans: &SpanTable,
) -> Origins {
    let call = Call { id, tool, arguments };
    let matched = match planned {
        Planned::Plan(plan) => Some(Judge { plan, spent, sources: spans.sources() }.call(&call)),
        Planned::NoPlanner | Planned::Missing => None,
    };
    let is_step = matched.as_ref().is_some_and(|matched| matched.permits && !spent.is_full());
    let critical = || arguments.iter().filter(|(name, _)| tool.is_critical(name));
    let all = |rule, permits, label: &str| {
        let finding = |(name, _): (&str, _)| Finding::new(name, permits, label);
        let step = matched.as_ref().filter(|_| is_step).and_then(|matched| Some(matched.step.as_ref()?.1.clone()));
        let step = step.or_else(|| permits.then(|| call.taken()));
        Origins { rule, findings: critical().map(finding).collect(), step, permits, planned: is_step }
    };
    match (planned, &matched) {
        _ if !tainted => all(Rule::Clean, true, "clean"),
        _ if reversible => all(Rule::Reversible, true, "reversible"),
        (Planned::Missing, _) => all(Rule::NoPlan, false, "unplanned"),
        (_, Some(matched)) => {
            let findings = matched.arguments.iter().cloned().map(Finding::from).collect();
            let step = matched.step.as_ref().map(|(_, used)| used.clone());
            Origins { rule: Rule::Plan, findings, step, permits: is_step, planned: is_step }
        }
        (Planned::NoPlanner | Planned::Plan(_), None) => {
            let sources = spans.sources();
            let finding = |(name, value)| match sources.vouched(&tool.registration().name, name, value) {
                Some(source) => Finding::new(name, true, &source),
                None => Finding::new(name, false, "untrusted"),
            };
            let findings: Vec<Finding> = critical().map(finding).collect();
            // A call of which nothing is said ties nothing to what anybody wants.
            let permits = !findings.is_empty() && findings.iter().all(|finding| finding.trusted);
            let step = permits.then(|| call.taken());
            Origins { rule: Rule::Literals, findings, step, permits, planned: false }
        }
    }
}

impl Finding {
    fn new(argument: &str, trusted: bool, label: &str) -> Self {
        Self { argument: argument.to_owned(), trusted, labels: vec![label.to_owned()] }
    }
}

impl From<Asked> for Finding {
    fn from(asked: Asked) -> Self {
        Self { argument: asked.argument, trusted: asked.permitted, labels: vec![asked.source.into_owned()] }
    }
}
