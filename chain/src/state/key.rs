//! Where a row stands: one byte for the table, then what it is found by. Numbers are big-endian, so that rows stand in
//! the order of their numbers.

use ephor_base::{CallId, MessageId, Pid, Seat, Seq, SessionId, TicketId};

/// The tables. A number is never used for another table without a new layout version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Table {
    /// One row: what has been applied.
    Applied = 0,
    /// Sessions by id.
    Sessions = 1,
    /// Ids of sessions by their first entry.
    Begun = 2,
    /// Tickets by number.
    Tickets = 3,
    /// Intents without an outcome, by place.
    Unsettled = 4,
    /// Seats by path.
    Seats = 5,
    /// Days by number.
    Days = 6,
    /// Chunks of postings by list and first place.
    Postings = 7,
    /// Dead letters by message.
    Dead = 8,
}

/// What entries are found by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum List {
    /// Those of a conversation.
    Session(SessionId),
    /// Those of a seat.
    Seat(Seat),
    /// Those of a process.
    Pid(Pid),
    /// Those of a call.
    Call(CallId),
    /// Those of a kind, as [`crate::Fact::kind`] says it.
    Kind(String),
    /// Those of a day, in days since 1970-01-01 in UTC.
    Day(u64),
}

/// Marks the lists of kinds.
const KIND: u8 = 4;

impl List {
    /// What the chunks of this list begin with. No list's bytes begin another's.
    pub(super) fn prefix(&self) -> Vec<u8> {
        let (kind, name): (u8, &[u8]) = match self {
            Self::Session(id) => (0, &id.0),
            Self::Seat(seat) => (1, seat.as_str().as_bytes()),
            Self::Pid(pid) => (2, &pid.0.to_be_bytes()),
            Self::Call(call) => (3, &call.0.to_be_bytes()),
            Self::Kind(kind) => (KIND, kind.as_bytes()),
            Self::Day(day) => (5, &day.to_be_bytes()),
        };
        // An entry has at most 65,535 bytes, so a name of one always fits.
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX).to_be_bytes();
        [&[Table::Postings as u8, kind], &length[..], name].concat()
    }
}

impl Table {
    pub(super) fn key(self, name: &[u8]) -> Vec<u8> {
        [&[self as u8], name].concat()
    }
}

pub(super) fn applied() -> Vec<u8> {
    Table::Applied.key(&[])
}

pub(super) fn session(id: SessionId) -> Vec<u8> {
    Table::Sessions.key(&id.0)
}

pub(super) fn begun(first: Seq) -> Vec<u8> {
    Table::Begun.key(&first.0.to_be_bytes())
}

pub(super) fn ticket(id: TicketId) -> Vec<u8> {
    Table::Tickets.key(&id.0.to_be_bytes())
}

pub(super) fn dead(message: MessageId) -> Vec<u8> {
    Table::Dead.key(&message.0.to_be_bytes())
}

pub(super) fn unsettled(intent: Seq) -> Vec<u8> {
    Table::Unsettled.key(&intent.0.to_be_bytes())
}

pub(super) fn seat(seat: &Seat) -> Vec<u8> {
    Table::Seats.key(seat.as_str().as_bytes())
}

pub(super) fn day(day: u64) -> Vec<u8> {
    Table::Days.key(&day.to_be_bytes())
}

/// What the chunks of the lists of all kinds begin with.
pub(super) fn kinds() -> Vec<u8> {
    Table::Postings.key(&[KIND])
}

/// The kind whose list a chunk belongs to.
pub(super) fn kind_of(key: &[u8]) -> Option<&str> {
    let (_length, name) = key.strip_prefix(kinds().as_slice())?.split_first_chunk::<2>()?;
    let (name, _first) = name.split_last_chunk::<8>()?;
    std::str::from_utf8(name).ok()
}

/// The number a key ends with.
pub(super) fn number(key: &[u8]) -> Option<u64> {
    key.split_last_chunk::<8>().map(|(_, number)| u64::from_be_bytes(*number))
}
