//! Where a row stands: one byte for the table, then what it is found by. Numbers are big-endian, so that rows stand in
//! the order of their numbers.

use ephor_base::{CallId, MessageId, Pid, Seat, Seq, SessionId, TicketId};

/// The tables. A number is never used for another table without a new layout version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Table {
    /// One row: what has been applied.
    Applied = 0,
    /// Sessions by their first entry, so that a new one is written behind the others.
    Sessions = 1,
    /// First entries of sessions by their ids.
    Names = 2,
    /// Tickets by number.
    Tickets = 3,
    /// Intents without an outcome, by place.
    Unsettled = 4,
    /// Seats by path.
    Seats = 5,
    /// Days by number.
    Days = 6,
    /// Chunks of postings by group and first place.
    Postings = 7,
    /// Dead letters by message.
    Dead = 8,
    /// Tickets that wait for a person, by session and number.
    Waiting = 9,
}

/// What entries are found by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum List {
    /// Those of a conversation.
    Session(SessionId),
    /// Those of a process.
    Pid(Pid),
    /// Those of a call.
    Call(CallId),
    /// Those of a kind, as [`ephor_record::Fact::kind`] says it.
    Kind(String),
    /// Those of a day, in days since 1970-01-01 in UTC.
    Day(u64),
}

/// How many neighbours share a group of lists, told apart by a byte: a list of its own for each process and call would be more key
/// than list.
const SPAN: u64 = 1 << 8;

/// Lists that are kept as one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Group {
    /// Those of sessions whose first entries are neighbours.
    Sessions(u64),
    /// Those of processes whose numbers are neighbours.
    Pids(u64),
    /// Those of calls whose numbers are neighbours.
    Calls(u64),
    /// That of a kind alone.
    Kind(String),
}

/// Marks the lists of kinds.
const KIND: u8 = 3;

impl Group {
    /// The group of a session that begins there, and what marks it in the group.
    pub(super) fn of_session(first: Seq) -> (Self, Option<u8>) {
        (Self::Sessions(first.0 / SPAN), mark(first.0))
    }

    pub(super) fn of_pid(pid: Pid) -> (Self, Option<u8>) {
        (Self::Pids(pid.0 / SPAN), mark(pid.0))
    }

    pub(super) fn of_call(call: CallId) -> (Self, Option<u8>) {
        (Self::Calls(call.0 / SPAN), mark(call.0))
    }

    pub(super) fn of_kind(kind: &str) -> (Self, Option<u8>) {
        (Self::Kind(kind.to_owned()), None)
    }

    /// Whether its places are marked.
    pub(super) const fn is_marked(&self) -> bool {
        !matches!(self, Self::Kind(_))
    }

    /// What the chunks of this group begin with. No group's bytes begin another's.
    pub(super) fn prefix(&self) -> Vec<u8> {
        let (kind, name): (u8, &[u8]) = match self {
            Self::Sessions(number) => (0, &number.to_be_bytes()),
            Self::Pids(number) => (1, &number.to_be_bytes()),
            Self::Calls(number) => (2, &number.to_be_bytes()),
            Self::Kind(kind) => (KIND, kind.as_bytes()),
        };
        // An entry has at most 65,535 bytes, so a name of one always fits.
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX).to_be_bytes();
        [&[Table::Postings as u8, kind], &length[..], name].concat()
    }
}

fn mark(number: u64) -> Option<u8> {
    Some(number.to_le_bytes()[0])
}

impl Table {
    pub(super) fn key(self, name: &[u8]) -> Vec<u8> {
        [&[self as u8], name].concat()
    }
}

pub(super) fn applied() -> Vec<u8> {
    Table::Applied.key(&[])
}

pub(super) fn session(first: Seq) -> Vec<u8> {
    Table::Sessions.key(&first.0.to_be_bytes())
}

pub(super) fn name(id: SessionId) -> Vec<u8> {
    Table::Names.key(&id.0)
}

/// What the tickets of a session that wait begin with.
pub(super) fn waiting_in(session: SessionId) -> Vec<u8> {
    Table::Waiting.key(&session.0)
}

pub(super) fn waiting(session: SessionId, ticket: TicketId) -> Vec<u8> {
    [&waiting_in(session)[..], &ticket.0.to_be_bytes()].concat()
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

/// The place in the row of a name.
pub(super) fn place(row: &[u8]) -> Option<Seq> {
    row.try_into().ok().map(u64::from_be_bytes).map(Seq)
}

/// The number a key ends with.
pub(super) fn number(key: &[u8]) -> Option<u64> {
    key.split_last_chunk::<8>().map(|(_, number)| u64::from_be_bytes(*number))
}
