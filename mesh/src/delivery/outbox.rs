//! Messages on their way to one peer, until their fate is known.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use ephor_base::SessionId;

use super::letter::{Answer, MOST_BODY, Number, Reason};

/// How far the numbers of a session may be ahead of its oldest message without an answer. Both sides hold to it.
pub const WINDOW: u64 = 32;
/// The most sessions with one peer.
pub const MOST_SESSIONS: usize = 1024;
/// The most bytes of bodies that wait for one peer.
pub const MOST_WAITING: usize = 16 << 20;

/// Why a message was not taken for delivery. Nothing was changed; it has no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsendable {
    /// [`WINDOW`] messages of the session have no answer yet. There is room once the oldest has one.
    #[error("{WINDOW} messages of the session wait for an answer")]
    Window,
    /// The messages for the peer have [`MOST_WAITING`] bytes, or [`MOST_SESSIONS`] sessions have some.
    #[error("too much waits for the peer")]
    Backlog,
    /// The body is longer than [`MOST_BODY`].
    #[error("a body of {0} bytes is too long")]
    TooLong(usize),
}

/// Why nothing more will be heard of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeadReason {
    /// Its time was up before it was sent: the peer has not got it.
    Expired,
    /// Its time was up after it was sent: the peer may have accepted it.
    Unanswered,
    /// The peer has lost its memory since it was sent: it may have accepted it before.
    PeerForgot,
}

/// What became of a message. Each has one fate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fate {
    /// It is on the peer's record.
    Accepted,
    /// The peer did not take it and never will.
    Refused(Reason),
    /// It is a dead letter.
    Dead(DeadReason),
}

/// Whether a message has been on a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sent {
    Never,
    Once,
}

#[derive(Debug)]
struct Pending {
    body: Vec<u8>,
    deadline: Duration,
    sent: Sent,
}

#[derive(Debug)]
struct Session {
    next: u64,
    pending: BTreeMap<Number, Pending>,
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    sessions: BTreeMap<SessionId, Session>,
    /// Those that have not been on this line yet, in the order they go.
    unsent: VecDeque<(SessionId, Number)>,
    waiting: usize,
}

/// A message that had no fate when the node stopped, as its record has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsettled {
    /// Its session.
    pub session: SessionId,
    /// Its number there.
    pub number: Number,
    /// What it says.
    pub body: Vec<u8>,
    /// When it becomes a dead letter, by the monotonic clock.
    pub deadline: Duration,
}

impl Outbox {
    pub(super) fn send(&mut self, session: SessionId, body: Vec<u8>, deadline: Duration) -> Result<Number, Unsendable> {
        if body.len() > MOST_BODY {
            return Err(Unsendable::TooLong(body.len()));
        }
        let waiting = self.waiting.saturating_add(body.len());
        let known = self.sessions.contains_key(&session);
        if waiting > MOST_WAITING || (!known && self.sessions.len() >= MOST_SESSIONS) {
            return Err(Unsendable::Backlog);
        }
        let numbers = self.sessions.entry(session).or_insert_with(|| Session { next: 1, pending: BTreeMap::new() });
        let oldest = numbers.pending.keys().next().map_or(numbers.next, |number| number.0);
        let following = numbers.next.checked_add(1).ok_or(Unsendable::Window)?;
        if numbers.next.saturating_sub(oldest) >= WINDOW {
            return Err(Unsendable::Window);
        }
        let number = Number(numbers.next);
        numbers.next = following;
        numbers.pending.insert(number, Pending { body, deadline, sent: Sent::Never });
        self.waiting = waiting;
        self.unsent.push_back((session, number));
        Ok(number)
    }

    /// Takes up what the record says of a session: the next number, and what had no fate. It may have been on a line.
    pub(super) fn restore(&mut self, session: SessionId, next: Number, unsettled: Vec<Unsettled>) {
        let pending: BTreeMap<Number, Pending> = unsettled
            .into_iter()
            .map(|one| (one.number, Pending { body: one.body, deadline: one.deadline, sent: Sent::Once }))
            .collect();
        let bytes = pending.values().map(|pending| pending.body.len()).fold(0, usize::saturating_add);
        self.waiting = self.waiting.saturating_add(bytes);
        self.sessions.insert(session, Session { next: next.0.max(1), pending });
    }

    /// Everything without a fate goes again, oldest first: the peer knows what it has.
    pub(super) fn linked(&mut self) {
        let all = self.sessions.iter();
        self.unsent = all.flat_map(|(id, session)| session.pending.keys().map(|number| (*id, *number))).collect();
    }

    /// The next message for the line.
    pub(super) fn next(&mut self) -> Option<(SessionId, Number, &[u8])> {
        loop {
            let (session, number) = self.unsent.pop_front()?;
            // What got its fate meanwhile does not go.
            let waits = self.sessions.get(&session).is_some_and(|session| session.pending.contains_key(&number));
            if waits {
                let pending = self.sessions.get_mut(&session)?.pending.get_mut(&number)?;
                pending.sent = Sent::Once;
                return Some((session, number, &pending.body));
            }
        }
    }

    pub(super) fn has_next(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// The fate that an answer gives, if the message still had none.
    pub(super) fn answered(&mut self, session: SessionId, number: Number, answer: Answer) -> Option<Fate> {
        self.settle(session, number)?;
        Some(match answer {
            Answer::Accepted => Fate::Accepted,
            Answer::Refused(Reason::Forgotten) => Fate::Dead(DeadReason::PeerForgot),
            Answer::Refused(reason) => Fate::Refused(reason),
        })
    }

    /// A message whose time is up at `now`.
    pub(super) fn expire(&mut self, now: Duration) -> Option<(SessionId, Number, DeadReason)> {
        let (session, number, sent) = self.find(|pending| pending.deadline <= now)?;
        self.settle(session, number)?;
        let reason = match sent {
            Sent::Never => DeadReason::Expired,
            Sent::Once => DeadReason::Unanswered,
        };
        Some((session, number, reason))
    }

    /// A message that was on a line: the peer has forgotten whether it took it.
    pub(super) fn forgotten(&mut self) -> Option<(SessionId, Number)> {
        let (session, number, _) = self.find(|pending| pending.sent == Sent::Once)?;
        self.settle(session, number)?;
        Some((session, number))
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.sessions.values().flat_map(|session| session.pending.values()).map(|pending| pending.deadline).min()
    }

    fn find(&self, wanted: impl Fn(&Pending) -> bool) -> Option<(SessionId, Number, Sent)> {
        self.sessions.iter().find_map(|(id, session)| {
            let (number, pending) = session.pending.iter().find(|(_, pending)| wanted(pending))?;
            Some((*id, *number, pending.sent))
        })
    }

    fn settle(&mut self, session: SessionId, number: Number) -> Option<()> {
        let pending = self.sessions.get_mut(&session)?.pending.remove(&number)?;
        self.waiting = self.waiting.saturating_sub(pending.body.len());
        Some(())
    }

    /// Forgets a session that has nothing on its way.
    pub(super) fn forget(&mut self, session: SessionId) -> bool {
        let idle = self.sessions.get(&session).is_some_and(|session| session.pending.is_empty());
        idle && self.sessions.remove(&session).is_some()
    }
}
