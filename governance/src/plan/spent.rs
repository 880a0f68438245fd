//! What a turn has done of its plan.
//!
//! A use stays used over plans that are asked for again: what was done under a step is taken from the step of a new plan that is the
//! same, and else from the first of its tool that has any left. A call keeps the step that it was given while it waits for a person,
//! and when it is made again.

use ephor_base::{CallId, Digest, ToolName};

use super::{Plan, Step, Times};

/// How many acts of a turn are kept. A turn with more asks.
pub(super) const MAX_ACTS: usize = 4096;

/// What a turn has done, or is about to do once a person has said so.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    acts: Vec<Act>,
}

/// A call that acts and was permitted, or that waits with a step in its hand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Act {
    /// The call. A rerun has the same.
    pub call: CallId,
    /// SHA-256 over its tool and arguments, as [`call_digest`](crate::gate::call_digest) has it.
    pub digest: Digest,
    /// The step it was given, if it was given one.
    pub step: Option<Use>,
    /// Whether it was permitted.
    pub permitted: bool,
}

/// A use of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Use {
    /// The tool.
    pub tool: ToolName,
    /// The digest of the step.
    pub step: Digest,
    /// The digest of the critical values.
    pub values: Digest,
}

/// How far the steps of a plan are used.
pub(super) struct Used(Vec<Vec<Digest>>);

impl Spent {
    /// Takes in an act. One of the same call is replaced: it is the same act, a step further.
    pub fn take(&mut self, act: Act) {
        if let Some(one) = self.acts.iter_mut().find(|one| one.call == act.call) {
            let step = act.step.or(one.step.take());
            *one = Act { permitted: act.permitted || one.permitted, step, ..act };
        } else if !self.is_full() {
            self.acts.push(act);
        }
    }

    /// Gives back the step of a call that waited and was refused.
    pub fn release(&mut self, call: CallId) {
        self.acts.retain(|act| act.call != call || act.permitted);
    }

    /// Whether no more acts are kept.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.acts.len() >= MAX_ACTS
    }

    /// Whether another call than this one, with this digest, was permitted.
    #[must_use]
    pub fn was_permitted(&self, digest: Digest, by_other_than: CallId) -> bool {
        self.acts.iter().any(|act| act.permitted && act.digest == digest && act.call != by_other_than)
    }

    /// The use that a call holds.
    pub(super) fn held(&self, call: CallId) -> Option<&Use> {
        self.acts.iter().find(|act| act.call == call)?.step.as_ref()
    }

    /// How far the steps of `plan` are used by other calls than this one.
    pub(super) fn of(&self, plan: &Plan, by_other_than: CallId) -> Used {
        self.used(plan, |act| act.call != by_other_than)
    }

    /// How often each step of `plan` is used.
    #[must_use]
    pub fn counts(&self, plan: &Plan) -> Vec<usize> {
        self.used(plan, |_| true).0.iter().map(Vec::len).collect()
    }

    fn used(&self, plan: &Plan, by: impl Fn(&Act) -> bool) -> Used {
        let mut used = Used(vec![Vec::new(); plan.steps().len()]);
        let others = self.acts.iter().filter(|act| by(act));
        for one in others.filter_map(|act| act.step.as_ref()) {
            let of_tool = || plan.steps().iter().enumerate().filter(|(_, step)| step.tool() == Some(&one.tool));
            let same = of_tool().find(|(at, _)| plan.step_digest(*at) == Some(one.step));
            let same = same.filter(|(at, step)| used.has_room(*at, step));
            let of_another_plan = || of_tool().find(|(at, step)| used.has_room(*at, step));
            if let Some((at, _)) = same.or_else(of_another_plan) {
                used.0.get_mut(at).into_iter().for_each(|values| values.push(one.values));
            }
            // Once for each: a plan that asks for it again in other words gets it no second time.
            for (at, _) in of_tool().filter(|(_, step)| matches!(step, Step::Call { times: Times::Each, .. })) {
                let values = used.0.get_mut(at).filter(|values| !values.contains(&one.values));
                values.into_iter().for_each(|values| values.push(one.values));
            }
        }
        used
    }
}

impl Used {
    fn has_room(&self, at: usize, step: &Step) -> bool {
        match step {
            Step::Call { times: Times::Number(times), .. } => self.count(at) < usize::from(*times),
            Step::Call { times: Times::Each, .. } => true,
            Step::Anything { .. } => false,
        }
    }

    /// How often the step was used.
    pub(super) fn count(&self, at: usize) -> usize {
        self.0.get(at).map_or(0, Vec::len)
    }

    /// Whether the step was used with these values.
    pub(super) fn has(&self, at: usize, values: Digest) -> bool {
        self.0.get(at).is_some_and(|used| used.contains(&values))
    }
}
