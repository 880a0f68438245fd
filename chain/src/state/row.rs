//! The rows of the projections, and how two accounts of the same thing become one.
//!
//! Rows hold what the public part of entries says and nothing else, so an erasure has nothing to erase here.

use std::collections::BTreeSet;

use ephor_base::{
    ActionKind, Budget, CallId, Decision, MessageId, OperatorId, Pid, Seat, Seq, SessionId, TicketId, Timestamp, cbor,
};
use ephor_record::Undelivered;
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// A place in the chain and its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Moment {
    /// The entry.
    #[n(0)]
    pub seq: Seq,
    /// Its time.
    #[n(1)]
    pub time: Timestamp,
}

/// What the record says of a conversation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(map)]
pub struct Session {
    /// Which.
    #[n(0)]
    pub id: SessionId,
    /// Its first entry.
    #[n(1)]
    pub first: Moment,
    /// Its latest entry.
    #[n(2)]
    pub last: Moment,
    /// The operator who answers for it; the first that is named.
    #[n(3)]
    pub operator: Option<OperatorId>,
    /// The seat of its agent; the first that is named.
    #[n(4)]
    pub seat: Option<Seat>,
    /// How many entries concern it.
    #[n(5)]
    pub entries: u64,
    /// Messages accepted.
    #[n(6)]
    pub messages: u64,
    /// Turns that ended.
    #[n(7)]
    pub turns: u64,
    /// Tool calls that were about to run, each attempt once.
    #[n(8)]
    pub tool_calls: u64,
    /// Verdicts.
    #[n(9)]
    pub verdicts: Verdicts,
    /// What its outcomes used.
    #[n(10)]
    pub used: Budget,
    /// When it was erased: its contents can no longer be read.
    #[n(11)]
    #[serde(default)]
    pub erased: Option<Moment>,
}

/// Verdicts by their decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Encode, Decode)]
pub struct Verdicts {
    /// Permitted.
    #[n(0)]
    pub permit: u64,
    /// Deferred to a person.
    #[n(1)]
    pub defer: u64,
    /// Refused.
    #[n(2)]
    pub deny: u64,
}

/// A deferred action, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(map)]
pub struct Ticket {
    /// Its number.
    #[n(0)]
    pub id: TicketId,
    /// When it was asked.
    #[n(1)]
    pub asked: Moment,
    /// The conversation.
    #[n(2)]
    pub session: Option<SessionId>,
    /// The seat that asked.
    #[n(3)]
    pub seat: Option<Seat>,
    /// The incarnation in it.
    #[n(4)]
    pub pid: Option<Pid>,
    /// The call.
    #[n(5)]
    pub call: Option<CallId>,
    /// The tool, the model, or the end of the turn.
    #[n(6)]
    pub target: String,
    /// After this it is denied.
    #[n(7)]
    pub expires: Timestamp,
    /// The ruling; nothing while it is open. A ticket whose node died stays without one.
    #[n(8)]
    pub answer: Option<TicketAnswer>,
}

/// What a ticket was answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct TicketAnswer {
    /// When.
    #[n(0)]
    pub ruled: Moment,
    /// Whether it lets the action run.
    #[n(1)]
    pub decision: Decision,
    /// `answered`, `expired`, `withdrawn`, `lapsed` or `nobody-to-ask`.
    #[n(2)]
    pub how: String,
    /// The operator, where a person answered.
    #[n(3)]
    pub by: Option<OperatorId>,
}

/// A message that could not be delivered, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(map)]
pub struct Dead {
    /// The message.
    #[n(0)]
    pub message: MessageId,
    /// The conversation it was for.
    #[n(1)]
    pub session: Option<SessionId>,
    /// The seat it was for.
    #[n(2)]
    pub seat: Option<Seat>,
    /// Where its acceptance stands.
    #[n(3)]
    pub accepted: Seq,
    /// When it died.
    #[n(4)]
    pub died: Moment,
    /// Why.
    #[n(5)]
    pub why: Undelivered,
    /// What became of it; nothing while it is dead.
    #[n(6)]
    pub became: Option<Became>,
}

/// What became of a dead letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Became {
    /// When.
    #[n(0)]
    pub when: Moment,
    /// The message it was accepted as again; nothing if it was dropped.
    #[n(1)]
    pub replayed: Option<MessageId>,
}

/// An intent that has no outcome yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(map)]
pub struct Unsettled {
    /// The intent.
    #[n(0)]
    pub intent: Moment,
    /// The conversation.
    #[n(1)]
    pub session: Option<SessionId>,
    /// The seat that acts.
    #[n(2)]
    pub seat: Option<Seat>,
    /// The incarnation in it.
    #[n(3)]
    pub pid: Option<Pid>,
    /// The call.
    #[n(4)]
    pub call: Option<CallId>,
    /// What is being done.
    #[n(5)]
    pub action: ActionKind,
    /// Which attempt of the call, from 1.
    #[n(6)]
    pub attempt: u32,
    /// What was reserved for it.
    #[n(7)]
    pub reserved: Budget,
}

/// What the record says of a seat.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(map)]
pub struct SeatLife {
    /// Which.
    #[n(0)]
    pub seat: Seat,
    /// Its first start or end.
    #[n(1)]
    pub first: Moment,
    /// Its latest start or end.
    #[n(2)]
    pub last: Moment,
    /// The incarnation that started last.
    #[n(3)]
    pub pid: Option<Pid>,
    /// How often an incarnation started.
    #[n(4)]
    pub starts: u64,
    /// How many of those followed another in the same seat.
    #[n(5)]
    pub restarts: u64,
    /// How many ended by a panic or an error.
    #[n(6)]
    pub failures: u64,
    /// Why the latest that ended did.
    #[n(7)]
    pub exit: Option<String>,
    /// Where the latest ends stand, at most [`EXITS`], oldest first.
    #[n(8)]
    #[serde(skip)]
    pub exits: Vec<Seq>,
}

/// How many ends of a seat are kept.
pub const EXITS: usize = 5;

/// A ticket that waits for a person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
#[cbor(map)]
pub struct Waiting {
    /// Its number.
    #[n(0)]
    pub ticket: TicketId,
    /// The conversation that asked.
    #[n(1)]
    pub session: SessionId,
    /// The seat that asked.
    #[n(2)]
    pub seat: Option<Seat>,
    /// The call.
    #[n(3)]
    pub call: Option<CallId>,
    /// The tool, the model, or the end of the turn.
    #[n(4)]
    pub tool: String,
    /// After this it is denied.
    #[n(5)]
    pub expires: Timestamp,
    /// How many different people have to permit it.
    #[n(6)]
    pub quorum: u32,
    /// Those who have.
    #[n(7)]
    pub permitted: BTreeSet<OperatorId>,
}

impl Waiting {
    /// The same behind a ruling; nothing if that settled it.
    pub(super) fn ruled(mut self, answer: &TicketAnswer) -> Option<Self> {
        self.permitted.extend(answer.by);
        let people = u32::try_from(self.permitted.len()).unwrap_or(u32::MAX);
        let goes_on = answer.how == "answered" && answer.decision == Decision::Permit && people < self.quorum;
        goes_on.then_some(self)
    }
}

/// The entries of a day, which stand one after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Day {
    /// Days since 1970-01-01, in UTC.
    #[n(0)]
    pub day: u64,
    /// The first.
    #[n(1)]
    pub first: Seq,
    /// The last.
    #[n(2)]
    pub last: Seq,
}

/// A kind of row. The bytes are canonical CBOR.
pub(super) trait Row: Sized + Encode<()> + for<'b> Decode<'b, ()> {
    /// The row for both this account and one of later entries.
    #[must_use]
    fn and_then(self, later: Self) -> Self;

    fn to_bytes(&self) -> Vec<u8> {
        cbor::to_vec(self)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        cbor::from_slice(bytes).ok()
    }
}

impl Row for Session {
    fn and_then(self, later: Self) -> Self {
        Self {
            id: self.id,
            first: self.first,
            last: later.last,
            operator: self.operator.or(later.operator),
            seat: self.seat.or(later.seat),
            entries: self.entries.saturating_add(later.entries),
            messages: self.messages.saturating_add(later.messages),
            turns: self.turns.saturating_add(later.turns),
            tool_calls: self.tool_calls.saturating_add(later.tool_calls),
            verdicts: self.verdicts.plus(later.verdicts),
            // A view: of what a log of an earlier version has, more may be told than can be counted.
            used: self.used.plus(&later.used).unwrap_or(Budget::MAX),
            erased: self.erased.or(later.erased),
        }
    }
}

impl Verdicts {
    const fn plus(self, other: Self) -> Self {
        Self {
            permit: self.permit.saturating_add(other.permit),
            defer: self.defer.saturating_add(other.defer),
            deny: self.deny.saturating_add(other.deny),
        }
    }

    pub(super) fn one(decision: Decision) -> Self {
        let is = |wanted| u64::from(decision == wanted);
        Self { permit: is(Decision::Permit), defer: is(Decision::Defer), deny: is(Decision::Deny) }
    }
}

impl Row for Ticket {
    /// A number is used once, so a later account is of the same question.
    fn and_then(self, later: Self) -> Self {
        Self { answer: self.answer.or(later.answer), ..self }
    }
}

impl Row for Dead {
    /// A message dies once.
    fn and_then(self, later: Self) -> Self {
        Self { became: self.became.or(later.became), ..self }
    }
}

impl Row for Unsettled {
    /// An intent stands in one entry.
    fn and_then(self, _later: Self) -> Self {
        self
    }
}

impl Row for SeatLife {
    fn and_then(self, later: Self) -> Self {
        Self {
            seat: self.seat,
            first: self.first,
            last: later.last,
            pid: later.pid.or(self.pid),
            starts: self.starts.saturating_add(later.starts),
            restarts: self.restarts.saturating_add(later.restarts),
            failures: self.failures.saturating_add(later.failures),
            exit: later.exit.or(self.exit),
            exits: newest(self.exits, later.exits),
        }
    }
}

impl Row for Waiting {
    /// A number is used once.
    fn and_then(self, _later: Self) -> Self {
        self
    }
}

/// The latest of both.
fn newest(mut all: Vec<Seq>, later: Vec<Seq>) -> Vec<Seq> {
    all.extend(later);
    all.split_off(all.len().saturating_sub(EXITS))
}

impl Row for Day {
    fn and_then(self, later: Self) -> Self {
        Self { last: later.last, ..self }
    }
}
