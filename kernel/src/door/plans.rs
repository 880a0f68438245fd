//! The plans of a session, for people: what each turn's said, and how far it was used.

use std::sync::Arc;

use ephor_base::{MessageId, Seq};
use ephor_governance::Plan;

use super::{
    planning::Planning,
    retrial::Retrial,
    session::{Moment, Session},
};

/// What stands on the record of the plan of the turn under way.
#[derive(Clone, Debug)]
pub struct TurnPlan {
    /// The message that the turn answers.
    pub message: MessageId,
    /// Where that stands.
    pub accepted: Seq,
    /// The plan; nothing, if none was asked for, or what came is none.
    pub plan: Option<TheirPlan>,
    /// Whether a plan was asked for or given.
    pub asked: bool,
}

/// A plan that is in force.
#[derive(Clone, Debug)]
pub struct TheirPlan {
    /// The plan.
    pub plan: Arc<Plan>,
    /// How it was written, as JSON.
    pub json: String,
    /// Whether the operator gave it.
    pub given: bool,
    /// How often each step was used, or is held by a call that waits.
    pub used: Vec<usize>,
}

impl Session {
    /// The plan of the turn under way.
    pub(crate) fn turn_plan(&self) -> Option<TurnPlan> {
        let turn = self.turn.as_ref()?;
        let plan = match &self.planning {
            Planning::Made(plan) => Some(self.told_plan(plan)),
            Planning::Unasked | Planning::Failed => None,
        };
        let asked = !matches!(self.planning, Planning::Unasked);
        Some(TurnPlan { message: turn.message, accepted: turn.accepted, plan, asked })
    }

    fn told_plan(&self, plan: &Arc<Plan>) -> TheirPlan {
        let words = |spans: &[ephor_base::SpanId]| {
            let at = spans.iter().find(|span| !matches!(self.given(&[**span]), Planning::Unasked))?;
            self.spans().get(usize::try_from(at.0).ok()?).map(|span| span.text.clone())
        };
        let last = |moment: &Moment| match moment {
            Moment::Said(spans) => Some(words(spans).map(|json| (json, true)).unwrap_or_default()),
            Moment::Planned(spans) => {
                let at = spans.first().and_then(|span| usize::try_from(span.0).ok());
                let told = at.and_then(|at| self.spans().get(at))?;
                told.text.split_once('\n').map(|(_, json)| (json.to_owned(), false))
            }
            _ => None,
        };
        let (json, given) = self.moments.iter().rev().find_map(last).unwrap_or_default();
        TheirPlan { plan: plan.clone(), json, given, used: self.conduct.spent().counts(plan) }
    }
}

impl Retrial {
    /// The plan of the turn of `session` that is under way behind the entries taken in so far.
    #[must_use]
    pub fn turn_plan(&self, session: ephor_base::SessionId) -> Option<TurnPlan> {
        self.followed(session)?.turn_plan()
    }
}
