//! Messages on their way to one peer, until their fate is known.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    time::Duration,
};

use super::letter::{Answer, MOST_BODY, Number, Reason, WINDOW};
use crate::wire::Shown;

/// The most bytes of bodies that wait for one peer.
pub const MOST_WAITING: usize = 16 << 20;

/// Why a message was not taken for delivery. Nothing was changed; it has no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsendable {
    /// The next number is [`WINDOW`] above the oldest message without a fate. There is room once that has one.
    #[error("the peer is {WINDOW} messages behind")]
    Window,
    /// The messages for the peer would have more than [`MOST_WAITING`] bytes.
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

struct Pending {
    body: Vec<u8>,
    deadline: Duration,
    sent: Sent,
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// The highest number that was used.
    last: u64,
    pending: BTreeMap<Number, Pending>,
    /// Those that have not been on this line yet, in the order they go.
    unsent: VecDeque<Number>,
    waiting: usize,
}

/// A message that had no fate when the node stopped, as its record has it.
#[derive(Clone, PartialEq, Eq)]
pub struct Unsettled {
    /// Its number.
    pub number: Number,
    /// What it says.
    pub body: Vec<u8>,
    /// When it becomes a dead letter, by the monotonic clock.
    pub deadline: Duration,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { body, deadline, sent } = self;
        write!(f, "Pending({:?}, until {deadline:?}, sent: {sent:?})", Shown(body.len()))
    }
}

impl fmt::Debug for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, body, deadline } = self;
        write!(f, "Unsettled({number:?}, {:?}, until {deadline:?})", Shown(body.len()))
    }
}

impl Outbox {
    pub(super) fn send(&mut self, body: Vec<u8>, deadline: Duration) -> Result<Number, Unsendable> {
        if body.len() > MOST_BODY {
            return Err(Unsendable::TooLong(body.len()));
        }
        let waiting = self.waiting.saturating_add(body.len());
        if waiting > MOST_WAITING {
            return Err(Unsendable::Backlog);
        }
        let next = self.last.checked_add(1).ok_or(Unsendable::Window)?;
        if next.saturating_sub(self.floor()) >= WINDOW {
            return Err(Unsendable::Window);
        }
        self.last = next;
        self.pending.insert(Number(next), Pending { body, deadline, sent: Sent::Never });
        self.waiting = waiting;
        self.unsent.push_back(Number(next));
        Ok(Number(next))
    }

    /// Every number below it has a fate.
    fn floor(&self) -> u64 {
        self.pending.keys().next().map_or(self.last.saturating_add(1), |number| number.0)
    }

    /// Takes up what the record says: the next number, and what had no fate. It may have been on a line.
    pub(super) fn restore(&mut self, next: Number, unsettled: Vec<Unsettled>) {
        self.last = next.0.saturating_sub(1);
        for one in unsettled {
            self.waiting = self.waiting.saturating_add(one.body.len());
            self.pending.insert(one.number, Pending { body: one.body, deadline: one.deadline, sent: Sent::Once });
        }
    }

    /// Everything without a fate goes again, oldest first: the peer knows what it has.
    pub(super) fn linked(&mut self) {
        self.unsent = self.pending.keys().copied().collect();
    }

    /// The next message for the line: its number, the floor, its body.
    pub(super) fn next(&mut self) -> Option<(Number, Number, &[u8])> {
        let floor = Number(self.floor());
        loop {
            let number = self.unsent.pop_front()?;
            // What got its fate meanwhile does not go.
            if self.pending.contains_key(&number) {
                let pending = self.pending.get_mut(&number)?;
                pending.sent = Sent::Once;
                return Some((number, floor, &pending.body));
            }
        }
    }

    pub(super) fn has_next(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// The fate that an answer gives, if the message still had none.
    pub(super) fn answered(&mut self, number: Number, answer: Answer) -> Option<Fate> {
        self.settle(number)?;
        Some(match answer {
            Answer::Accepted => Fate::Accepted,
            Answer::Refused(Reason::Forgotten) => Fate::Dead(DeadReason::PeerForgot),
            Answer::Refused(reason) => Fate::Refused(reason),
        })
    }

    /// A message whose time is up at `now`.
    pub(super) fn expire(&mut self, now: Duration) -> Option<(Number, DeadReason)> {
        let (number, sent) = self.find(|pending| pending.deadline <= now)?;
        self.settle(number)?;
        let reason = match sent {
            Sent::Never => DeadReason::Expired,
            Sent::Once => DeadReason::Unanswered,
        };
        Some((number, reason))
    }

    /// A message that was on a line: the peer has forgotten whether it took it.
    pub(super) fn forgotten(&mut self) -> Option<Number> {
        let (number, _) = self.find(|pending| pending.sent == Sent::Once)?;
        self.settle(number)?;
        Some(number)
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.pending.values().map(|pending| pending.deadline).min()
    }

    fn find(&self, wanted: impl Fn(&Pending) -> bool) -> Option<(Number, Sent)> {
        self.pending.iter().find(|(_, pending)| wanted(pending)).map(|(number, pending)| (*number, pending.sent))
    }

    fn settle(&mut self, number: Number) -> Option<()> {
        let pending = self.pending.remove(&number)?;
        self.waiting = self.waiting.saturating_sub(pending.body.len());
        Some(())
    }
}
