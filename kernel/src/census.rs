//! What is shown of a process beyond its row: what it waits for, what it may do, what it has to do with.

use std::time::Duration;

use ephor_base::{Pid, Seat, SessionId};
use ephor_governance::Rights;
use ephor_record::HoldKind;
use ephor_runtime::links::Related;

use crate::{
    door::{Flight, Landed},
    kernel::{Kernel, ProcessInfo},
};

/// What a process waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// An operator, who suspended or stopped it, or has to raise its budget.
    Operator(HoldKind),
    /// A person, who has been asked.
    Person,
    /// The end of this call of its own.
    Call(String),
    /// The answer of another process.
    Process(Pid),
    /// A message.
    Message,
}

/// All that the kernel knows of a process.
#[derive(Clone, Debug)]
pub struct Inspected {
    /// Its row.
    pub process: ProcessInfo,
    /// What it waits for, if for anything.
    pub waits_for: Option<WaitsFor>,
    /// What it may ask of the door; nothing where it has no session.
    pub rights: Option<Rights>,
    /// What it has to do with.
    pub related: Related,
    /// Whether a turn is under way.
    pub is_in_turn: bool,
    /// Its calls in flight.
    pub flights: Vec<Flight>,
    /// The last calls of its seat that ended, the newest last.
    pub landed: Vec<Landed>,
}

impl Kernel {
    /// What a process waits for, given the calls in flight.
    #[must_use]
    pub fn waits_for(&self, process: &ProcessInfo, flights: &[Flight]) -> Option<WaitsFor> {
        if let Some(hold) = self.held(&process.seat).filter(|_| self.is_agent(&process.seat)) {
            return Some(WaitsFor::Operator(hold));
        }
        if let Some(pid) = process.waits_for {
            return Some(WaitsFor::Process(pid));
        }
        let session = process.session.filter(|_| self.is_agent(&process.seat))?;
        let flight = flights.iter().find(|flight| flight.pid == process.pid);
        match (self.is_asked(session), flight, self.is_in_turn(session)) {
            (true, _, _) => Some(WaitsFor::Person),
            (false, Some(flight), _) => Some(WaitsFor::Call(flight.target.clone())),
            (false, None, false) => Some(WaitsFor::Message),
            (false, None, true) => None,
        }
    }

    /// Everything about one process; none if it is not there.
    #[must_use]
    pub fn inspect(&self, pid: Pid) -> Option<Inspected> {
        let process = self.processes().into_iter().find(|process| process.pid == pid)?;
        let mut flights = self.flights();
        flights.retain(|flight| flight.pid == pid);
        let of_session = process.session.filter(|_| self.is_agent(&process.seat));
        let rights =
            of_session.and_then(|session| self.door().with_session(session, |session| session.spec.rights.clone()));
        Some(Inspected {
            waits_for: self.waits_for(&process, &flights),
            rights,
            related: self.related(pid),
            is_in_turn: of_session.is_some_and(|session| self.is_in_turn(session)),
            landed: self.landed(&process.seat),
            flights,
            process,
        })
    }

    /// How long a call has been in flight.
    #[must_use]
    pub fn running(&self, flight: &Flight) -> Duration {
        self.door().clock().monotonic().saturating_sub(flight.since)
    }

    /// Whether the seat is that of a session's agent, and not of its supervisor.
    fn is_agent(&self, seat: &Seat) -> bool {
        self.door().ledger.account(seat).is_some()
    }

    fn is_asked(&self, session: SessionId) -> bool {
        let waits =
            self.door().with_session(session, |session| session.turn.as_ref().is_some_and(|turn| turn.waits > 0));
        waits.unwrap_or(false)
    }

    fn is_in_turn(&self, session: SessionId) -> bool {
        self.door().with_session(session, |session| session.turn.is_some()).unwrap_or(false)
    }
}
