//! What an entry changes: pure, one entry at a time, without a look at what is there.

use ephor_base::{Budget, Timestamp};
use ephor_record::{Because, Entry, Fact, RulingOn, Subject};

use super::{
    key::Group,
    row::{Became, Day, Dead, Moment, SeatLife, Session, Ticket, TicketAnswer, Unsettled, Verdicts, Waiting},
};

const MICROS_A_DAY: u64 = 86_400_000_000;

/// One change of one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// The entry belongs to this list: a group, and its mark in that.
    Post(Group, Option<u8>),
    /// A conversation went on.
    Session(Session),
    /// A question was asked; how many people have to permit it.
    Asked(Ticket, u32),
    /// A ticket was answered.
    Ruled(ephor_base::TicketId, TicketAnswer),
    /// Nothing waits in this conversation any more.
    Over(ephor_base::SessionId),
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
    changes.extend(over(entry));
    changes
}

/// The lists it belongs to. Those by day follow from the days, and that of its conversation from where that began.
fn posts(entry: &Entry) -> Vec<Change> {
    let Subject { pid, call, .. } = &entry.subject;
    let lists = [Some(Group::of_kind(entry.fact.kind())), pid.map(Group::of_pid), call.map(Group::of_call)];
    lists.into_iter().flatten().map(|(group, mark)| Change::Post(group, mark)).collect()
}

/// What one entry says of its conversation. What a schedule sends is sealed as that of a session is, and is none.
fn session(entry: &Entry) -> Option<Session> {
    if matches!(entry.fact, Fact::Schedule { .. }) {
        return None;
    }
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
        Fact::Ticket { id, target, expires, quorum, .. } => {
            let (target, expires) = (target.clone(), *expires);
            let ticket = Ticket { id: *id, asked: at, session, seat, pid, call, target, expires, answer: None };
            Some(Change::Asked(ticket, quorum.unwrap_or(1)))
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
            let (exit, exits) = (Some(reason.clone()), vec![at.seq]);
            Some(Change::Seat(SeatLife { failures, exit, exits, ..still(seat?, at) }))
        }
        _ => None,
    }
}

/// What was asked in this conversation gets no answer any more.
fn over(entry: &Entry) -> Option<Change> {
    let is_over = matches!(entry.fact, Fact::TurnEnd { .. } | Fact::Dead { .. } | Fact::Erase { .. });
    entry.subject.session.filter(|_| is_over).map(Change::Over)
}

/// The ticket as one that waits, in its conversation.
pub(super) fn waits(ticket: &Ticket, quorum: u32) -> Option<Waiting> {
    let Ticket { id, session, seat, call, target, expires, .. } = ticket.clone();
    let session = session?;
    Some(Waiting { ticket: id, session, seat, call, tool: target, expires, quorum, permitted: Default::default() })
}

/// A seat in which nothing happened yet.
const fn still(seat: ephor_base::Seat, at: Moment) -> SeatLife {
    SeatLife {
        seat,
        first: at,
        last: at,
        pid: None,
        starts: 0,
        restarts: 0,
        failures: 0,
        exit: None,
        exits: Vec::new(),
    }
}

const fn moment(entry: &Entry) -> Moment {
    Moment { seq: entry.seq, time: entry.time }
}
