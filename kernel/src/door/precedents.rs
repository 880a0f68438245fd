//! Precedents: answers that are used again.
//!
//! Which stand, the record says; here is what they speak of, and which calls run on one, so that an operator who revokes it, or
//! dismisses its author, ends those.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use ephor_base::{Arguments, Decision, Seat, Seq, Timestamp};
use ephor_chain::{Log, Private};
use ephor_governance::{Precedent, Tool};
use ephor_record::{Always, Content, Fact, Reused, judgment::LONGEST, standing::is_at_or_below};
use tokio_util::sync::CancellationToken;

use super::{BadRuling, ruling::Approvers};
use crate::question::{MAX_WHOLE, Question};

/// The answers that are used again, as far as they can be read.
#[derive(Default)]
pub(crate) struct Precedents {
    known: Mutex<BTreeMap<Seq, Known>>,
    live: Mutex<BTreeMap<u64, (Seq, CancellationToken)>>,
}

/// One of them, and what the person said to it.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) precedent: Arc<Precedent>,
    /// What has to be the same.
    pub(crate) same: Called,
    pub(crate) note: Option<String>,
}

/// What a tool is called with: the folder that it works in, and arguments. Where an answer is used again: those that have to be the same.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    pub(crate) workspace: String,
    pub(crate) arguments: Arguments,
}

impl Called {
    /// As it is recorded.
    pub(crate) fn content(self) -> Content {
        let Self { workspace, arguments } = self;
        Content::Same { workspace, arguments }
    }

    /// As it was recorded; nothing if it cannot be read.
    pub(crate) fn recorded(content: Option<&Content>) -> Option<Self> {
        let Some(Content::Same { workspace, arguments }) = content else { return None };
        Some(Self { workspace: workspace.clone(), arguments: arguments.clone() })
    }
}

/// A call that runs on a precedent, until it is dropped.
pub(crate) struct Live<'a>(&'a Precedents, u64);

impl Precedents {
    /// Reads those that stand on the record. What cannot be read covers nothing.
    pub(crate) fn load(log: &Log) -> Self {
        let standing: Vec<Reused> = log.standing(|standing| standing.reused().cloned().collect());
        let read = |reused: Reused| Some((reused.ruling, recorded(&reused, log)?));
        let known = standing.into_iter().filter_map(read).collect();
        Self { known: Mutex::new(known), live: Mutex::default() }
    }

    pub(crate) fn add(&self, reused: &Reused, same: Called, note: Option<String>) {
        let known = Known { precedent: Arc::new(precedent(reused, &same)), same, note };
        self.known().insert(reused.ruling, known);
    }

    /// The one of this name, also if it stands no more; nothing if there never was one since this node started.
    pub(crate) fn named(&self, ruling: Seq) -> Option<Known> {
        self.known().get(&ruling).cloned()
    }

    /// A call runs on the precedent `ruling`; `cancel` ends it.
    pub(crate) fn rest(&self, ruling: Seq, cancel: CancellationToken) -> Live<'_> {
        let mut live = self.live();
        let number = live.last_key_value().map_or(0, |(number, _)| number.saturating_add(1));
        live.insert(number, (ruling, cancel));
        Live(self, number)
    }

    /// Nothing runs on it any more.
    pub(crate) fn revoked(&self, ruling: Seq) {
        self.live().values().filter(|(of, _)| *of == ruling).for_each(|(_, cancel)| cancel.cancel());
    }

    /// Nothing runs any more on those whose authors do not count any more.
    pub(crate) fn count_only(&self, approvers: &Approvers) {
        let known = self.known();
        let over = |ruling: &Seq| known.get(ruling).is_none_or(|one| !approvers.count(one.precedent.by));
        self.live().values().filter(|(of, _)| over(of)).for_each(|(_, cancel)| cancel.cancel());
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Seq, Known>> {
        ephor_runtime::lock::enter(&self.known)
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<u64, (Seq, CancellationToken)>> {
        ephor_runtime::lock::enter(&self.live)
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.0.live().remove(&self.1);
    }
}

fn recorded(reused: &Reused, log: &Log) -> Option<Known> {
    let stored = log.entry(reused.ruling).ok()??;
    let (Fact::Ruling { note, .. }, Private::Open(content)) = (stored.entry.fact, stored.content) else { return None };
    let same = Called::recorded(Some(&content))?;
    Some(Known { precedent: Arc::new(precedent(reused, &same)), same, note })
}

/// What is used again.
pub(crate) fn precedent(reused: &Reused, same: &Called) -> Precedent {
    let Reused { ruling, operator, decision, policy, always, .. } = reused;
    let Always { seat, tool, registration, free, reasons, effects, until } = always;
    Precedent {
        ruling: *ruling,
        by: *operator,
        seat: seat.clone(),
        tool: tool.clone(),
        registration: *registration,
        workspace: same.workspace.as_str().into(),
        arguments: same.arguments.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
        free: free.iter().cloned().collect(),
        reasons: reasons.iter().cloned().collect(),
        effects: *effects,
        decision: *decision,
        policy: *policy,
        until: *until,
    }
}

/// Whether it counts for this seat at this time, as far as that does not depend on the call.
pub(crate) fn counts(one: &Precedent, seat: &Seat, now: Timestamp, approvers: &Approvers) -> bool {
    one.is_for(seat, now) && approvers.count(one.by)
}

/// What has to be the same, if an answer to `question` may be used again like this.
///
/// # Errors
/// [`BadRuling`]: it speaks of something else than what was asked, or of more.
pub(crate) fn pattern(
    (question, called): (&Question, &Called),
    tool: &Tool,
    (decision, always): (Decision, &Always),
    now: Timestamp,
) -> Result<Called, BadRuling> {
    let asked = question.always(always.seat.clone(), always.free.clone(), always.until);
    if *always != asked || !is_at_or_below(&question.seat, &always.seat) {
        return Err(BadRuling::OtherCall);
    }
    if always.until <= now || always.until.since(now) > LONGEST {
        return Err(BadRuling::TooWide("an answer is used again for some time, and for 90 days at most".to_owned()));
    }
    if decision == Decision::Permit && question.quorum > 1 {
        let why = "it takes several people, and one person's word for many calls is never that";
        return Err(BadRuling::TooWide(why.to_owned()));
    }
    if decision == Decision::Permit && !question.repeatable {
        let why = "what becomes of a file does not follow from its arguments alone";
        return Err(BadRuling::TooWide(why.to_owned()));
    }
    for name in &always.free {
        if called.arguments.value(name).is_none() {
            return Err(BadRuling::TooWide(format!("`{name}` is no argument of this call")));
        }
        if !tool.names(name) || (decision == Decision::Permit && tool.decides(name)) {
            return Err(BadRuling::TooWide(format!("`{name}` decides what the call does, and has to stay the same")));
        }
    }
    let arguments = called.arguments.without(&always.free);
    if arguments.to_json().len() > MAX_WHOLE {
        return Err(BadRuling::TooWide(format!(
            "the arguments that have to stay the same have more than {MAX_WHOLE} bytes"
        )));
    }
    Ok(Called { workspace: called.workspace.clone(), arguments })
}
