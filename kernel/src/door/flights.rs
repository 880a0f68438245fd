//! The calls in flight, and those that landed last.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use ephor_base::{ActionKind, CallId, Outcome, Pid, Receipt, Seat, Seq, SessionId};

use super::{asked::Asked, session::Session};

/// How many calls that landed are kept for each session.
const KEPT: usize = 16;

/// A call that has its permit and runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flight {
    /// Which.
    pub call: CallId,
    /// What kind.
    pub action: ActionKind,
    /// The tool, the model, or the end of the turn.
    pub target: String,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Who called.
    pub pid: Pid,
    /// Their seat.
    pub seat: Seat,
    /// Their conversation.
    pub session: SessionId,
    /// The entry of its intent.
    pub intent: Seq,
    /// Since when it runs, on the monotonic clock.
    pub since: Duration,
}

/// A call that ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Landed {
    /// Which.
    pub call: CallId,
    /// What kind.
    pub action: ActionKind,
    /// The tool, the model, or the end of the turn.
    pub target: String,
    /// `done`, `tool_error`, `cancelled`, or a kind of failure.
    pub end: String,
    /// Where its outcome stands.
    pub receipt: Receipt,
}

/// All of them. A view for people: nothing depends on it.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    flying: BTreeMap<u64, Flight>,
    next: u64,
}

impl Session {
    /// A call landed. Of a session that is gone it is not looked at.
    pub(crate) fn has_landed(&mut self, asked: &Asked, outcome: &Outcome, receipt: Receipt) {
        let (call, action, target) = (asked.call, asked.kind, asked.target.clone());
        if self.landed.len() >= KEPT {
            self.landed.pop_front();
        }
        self.landed.push_back(Landed { call, action, target, end: outcome.code().to_owned(), receipt });
    }
}

/// A call in flight; over when this is dropped.
#[derive(Debug)]
pub(crate) struct InFlight<'a> {
    flights: &'a Flights,
    number: u64,
}

impl Flights {
    pub(crate) fn take_off(&self, flight: Flight) -> InFlight<'_> {
        let mut state = self.state();
        let number = state.next;
        state.next = number.wrapping_add(1);
        state.flying.insert(number, flight);
        InFlight { flights: self, number }
    }

    /// Those in flight, the oldest first.
    pub(crate) fn flying(&self) -> Vec<Flight> {
        self.state().flying.values().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        ephor_runtime::lock::enter(&self.0)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.flights.state().flying.remove(&self.number);
    }
}
