//! What was recorded of a session and it has not taken in yet, in the order of the record.
//!
//! A session changes only by what is recorded of it, in that order. So what a decision rests on can be made again from the
//! record alone. A decision that something else has overtaken is not recorded, and is made anew.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use ephor_base::{Receipt, Timestamp};
use ephor_chain::Order;
use ephor_record::{Content, Fact, Record, Subject};

use super::law::{Among, Under};

/// How the verdict on showing a model's words while they come is named on the record.
pub(crate) const PREVIEW: &str = "preview";

/// Something that was recorded of a session.
#[derive(Clone, Copy)]
pub(crate) struct Event<'a> {
    pub(crate) receipt: Receipt,
    pub(crate) time: Timestamp,
    pub(crate) subject: &'a Subject,
    pub(crate) fact: &'a Fact,
    pub(crate) content: Option<&'a Content>,
}

/// The same, kept until the session takes it in.
pub(crate) struct Recorded {
    receipt: Receipt,
    time: Timestamp,
    record: Record,
}

impl Recorded {
    pub(crate) const fn event(&self) -> Event<'_> {
        let Self { receipt, time, record: Record { subject, fact, content } } = self;
        Event { receipt: *receipt, time: *time, subject, fact, content: content.as_ref() }
    }
}

/// What waits for a session, and how much ever did.
#[derive(Default)]
pub(crate) struct Inbox(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    taken: u64,
    events: VecDeque<Recorded>,
}

impl Inbox {
    /// What comes next.
    pub(crate) fn next(&self) -> Option<Recorded> {
        self.waiting().events.pop_front()
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        ephor_runtime::lock::enter(&self.0)
    }
}

/// Puts what is recorded into the inbox of its session.
pub(crate) struct Following {
    pub(crate) inbox: Arc<Inbox>,
    /// After how many events that was made which is recorded, if it holds only then.
    pub(crate) at: Option<u64>,
    /// What it was decided under, if it was.
    pub(crate) under: Option<Under>,
    /// Among which operators it is sent, if its sender has to be in office.
    pub(crate) among: Option<Among>,
}

impl Order for Following {
    fn holds(&self, time: Timestamp) -> bool {
        let in_force = |under: &Under| under.holds(time);
        let is_next = self.at.is_none_or(|at| self.inbox.waiting().taken == at);
        is_next && self.under.as_ref().is_none_or(in_force) && self.among.as_ref().is_none_or(Among::holds)
    }

    fn taken(&self, record: &Record, receipt: Receipt, time: Timestamp) {
        if changes_a_session(&record.fact) {
            let mut waiting = self.inbox.waiting();
            waiting.taken = waiting.taken.saturating_add(1);
            waiting.events.push_back(Recorded { receipt, time, record: record.clone() });
        }
    }
}

/// Whether a session takes it in.
pub(crate) fn changes_a_session(fact: &Fact) -> bool {
    match fact {
        Fact::Verdict { target, .. } => target != PREVIEW,
        Fact::Message { .. } | Fact::Outcome { .. } | Fact::Ticket { .. } | Fact::Ruling { .. } => true,
        Fact::TurnEnd { .. } | Fact::Dead { .. } | Fact::Lifted { .. } | Fact::Appointed(_) => true,
        _ => false,
    }
}
