//! Makes a scenario smaller while it still shows a divergence.

use crate::{
    erl::Judge,
    scenario::{Kind, Plan, Scenario, Step, Sub, Sup},
    trace::Trace,
};

/// How often it is made smaller at most.
const ROUNDS: usize = 40;

/// The smallest scenario found that still diverges, and how.
pub(crate) fn shrink(
    judge: &Judge,
    run: fn(&Scenario) -> Trace,
    scenario: Scenario,
    how: String,
) -> (Scenario, String) {
    let (mut scenario, mut how) = (scenario, how);
    for _ in 0..ROUNDS {
        let candidates = smaller(&scenario);
        let judged = judge.traces(&candidates);
        let found = candidates.into_iter().zip(judged).find_map(|(candidate, judged)| {
            let divergence = run(&candidate).divergence(&judged)?;
            (!judged.is_slow).then_some((candidate, divergence))
        });
        match found {
            Some(found) => (scenario, how) = found,
            None => break,
        }
    }
    (scenario, how)
}

/// Scenarios with one thing less, the largest things first.
fn smaller(scenario: &Scenario) -> Vec<Scenario> {
    let mut candidates = Vec::new();
    for at in 0..scenario.steps.len() {
        let mut fewer = scenario.clone();
        fewer.steps.remove(at);
        candidates.push(fewer);
    }
    for at in 0..scenario.steps.len() {
        let Step::Batch(path, subs) = &scenario.steps[at] else { continue };
        for sub in 0..subs.len() {
            let mut fewer = scenario.clone();
            let mut subs: Vec<Sub> = subs.clone();
            subs.remove(sub);
            fewer.steps[at] = Step::Batch(path.clone(), subs);
            candidates.push(fewer);
        }
    }
    let mut roots = Vec::new();
    smaller_sups(&scenario.root, &mut roots);
    candidates.extend(roots.into_iter().map(|root| Scenario { root, ..scenario.clone() }));
    candidates
}

fn smaller_sups(sup: &Sup, into: &mut Vec<Sup>) {
    for at in 0..sup.children.len() {
        if sup.strategy != ephor_runtime::supervisor::Strategy::Dynamic {
            let mut fewer = sup.clone();
            fewer.children.remove(at);
            into.push(fewer);
        }
        let mut plainer = sup.clone();
        match &mut plainer.children[at].kind {
            Kind::Worker(plan, _) | Kind::Supervisor(plan, _) if *plan != Plan::OK => {
                *plan = Plan::OK;
                into.push(plainer);
            }
            _ => {}
        }
        if let Kind::Supervisor(plan, below) = &sup.children[at].kind {
            let mut inner = Vec::new();
            smaller_sups(below, &mut inner);
            into.extend(inner.into_iter().map(|below| {
                let mut changed = sup.clone();
                changed.children[at].kind = Kind::Supervisor(plan.clone(), Box::new(below));
                changed
            }));
        }
    }
}
