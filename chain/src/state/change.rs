//! What an entry changes: pure, one entry at a time, without a look at what is there.

use ephor_base::{Budget, Timestamp};

use super::{
    key::List,
    row::{Became, Day, Dead, Moment, SeatLife, Session, Ticket, TicketAnswer, Unsettled, Verdicts},
};
use crate::{
    entry::Entry,
    record::{Fact, RulingOn, Subject},
    standing::Because,
};

const MICROS_A_DAY: u64 = 86_400_000_000;

/// One change of one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// The entry belongs to this list.
    Post(List),
    /// A conversation went on.
    Session(Session),
    /// A question was asked.
    Asked(Ticket),
    /// A ticket was answered.
    Ruled(ephor_base::TicketId, TicketAnswer),
    /// A message could not be delivered.
    Died(Dead),
    /// A dead letter was replayed or dropped.
    Rose(ephor_base::MessageId, Became),
    /// Something is about to be done.
    Began(Unsettled),
    /// It was done, or not.
    Settled(ephor_base::Seq),
    /// An incarnation started or ended.
    Seat(SeatLife),
    /// A day went on.
    Day(Day),
}

/// The day of a time, in days since 1970-01-01 in UTC.
#[must_use]
pub const fn day_of(time: Timestamp) -> u64 {
    time.0 / MICROS_A_DAY
}

/// What this entry changes.
pub(super) fn changes(entry: &Entry) -> Vec<Change> {
    let mut changes = posts(entry);
    let (seq, day) = (entry.seq, day_of(entry.time));
    changes.push(Change::Day(Day { day, first: seq, last: seq }));
    changes.extend(session(entry).map(Change::Session));
    changes.extend(fact(entry));
    changes
}

/// The lists it belongs to. Those by day follow from the days.
fn posts(entry: &Entry) -> Vec<Change> {
    let Subject { session, seat, pid, call, .. } = &entry.subject;
    let lists = [
        Some(List::Kind(entry.fact.kind().to_owned())),
        session.map(List::Session),
        seat.clone().map(List::Seat),
        pid.map(List::Pid),
        call.map(List::Call),
    ];
    lists.into_iter().flatten().map(Change::Post).collect()
}

/// What one entry says of its conversation.
fn session(entry: &Entry) -> Option<Session> {
    let Subject { session, operator, seat, .. } = &entry.subject;
    let moment = moment(entry);
    let mut row = Session {
        id: (*session)?,
        first: moment,
        last: moment,
        operator: *operator,
        seat: seat.clone(),
        entries: 1,
        messages: 0,
        turns: 0,
        tool_calls: 0,
        verdicts: Verdicts::default(),
        used: Budget::ZERO,
        erased: None,
    };
    match &entry.fact {
        Fact::Message { .. } => row.messages = 1,
        Fact::TurnEnd { .. } => row.turns = 1,
        Fact::Intent { action: ephor_base::ActionKind::Tool, .. } => row.tool_calls = 1,
        Fact::Verdict { verdict, .. } => row.verdicts = Verdicts::one(verdict.decision),
        Fact::Outcome { used, .. } => row.used = *used,
        Fact::Erase { .. } => row.erased = Some(moment),
        _ => {}
    }
    Some(row)
}

/// What its fact changes beyond its conversation.
fn fact(entry: &Entry) -> Option<Change> {
    let Subject { session, operator, seat, pid, call } = entry.subject.clone();
    let at = moment(entry);
    match &entry.fact {
        Fact::Ticket { id, target, expires, .. } => {
            let (target, expires) = (target.clone(), *expires);
            Some(Change::Asked(Ticket { id: *id, asked: at, session, seat, pid, call, target, expires, answer: None }))
        }
        Fact::Ruling { on: RulingOn::Ticket(id), decision, how, .. } => {
            let by = operator.filter(|_| how == "answered");
            Some(Change::Ruled(*id, TicketAnswer { ruled: at, decision: *decision, how: how.clone(), by }))
        }
        Fact::Dead { message, accepted, why } => {
            let (message, accepted, why) = (*message, *accepted, *why);
            Some(Change::Died(Dead { message, session, seat, accepted, died: at, why, became: None }))
        }
        Fact::Message { id, because: Some(Because::Replay(dead)), .. } => {
            Some(Change::Rose(*dead, Became { when: at, replayed: Some(*id) }))
        }
        Fact::Buried { message, .. } => Some(Change::Rose(*message, Became { when: at, replayed: None })),
        Fact::Intent { action, attempt, reserved, .. } => {
            let (action, attempt, reserved) = (*action, *attempt, *reserved);
            Some(Change::Began(Unsettled { intent: at, session, seat, pid, call, action, attempt, reserved }))
        }
        Fact::Outcome { intent, .. } => Some(Change::Settled(*intent)),
        Fact::Spawn { incarnation, .. } => {
            let restarts = u64::from(*incarnation > 1);
            Some(Change::Seat(SeatLife { pid, starts: 1, restarts, ..still(seat?, at) }))
        }
        Fact::Exit { reason } => {
            let failures = u64::from(reason == "panicked" || reason == "error");
            Some(Change::Seat(SeatLife { failures, exit: Some(reason.clone()), ..still(seat?, at) }))
        }
        _ => None,
    }
}

/// A seat in which nothing happened yet.
const fn still(seat: ephor_base::Seat, at: Moment) -> SeatLife {
    SeatLife { seat, first: at, last: at, pid: None, starts: 0, restarts: 0, failures: 0, exit: None }
}

const fn moment(entry: &Entry) -> Moment {
    Moment { seq: entry.seq, time: entry.time }
}
