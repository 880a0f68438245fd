//! Delivery: a message to a peer is accepted, refused, or a dead letter with its reason; at most once, and never silently lost.
//!
//! Messages are numbered within their session. The sender keeps each until it has a fate, and sends what has none again on every new
//! link; the receiver remembers the answers of a window of numbers, so a number that comes again is answered and not handed on. The
//! sender never goes further ahead than that window, which is also how a receiver that does not decide holds a sender up. What a node
//! forgets (its delivery memory was lost) has another [`MemoryId`] afterwards, and the peer then gives up what may have arrived
//! instead of sending it twice.
//!
//! One [`Delivery`] speaks with one peer, over one stream of whatever link there is. It is a pure engine.

mod inbox;
mod letter;
mod outbox;

use std::{collections::VecDeque, time::Duration};

use ephor_base::SessionId;

pub use self::{
    inbox::Handed,
    letter::{Answer, MOST_BODY, MemoryId, Number, Reason},
    outbox::{DeadReason, Fate, MOST_SESSIONS, MOST_WAITING, Unsendable, Unsettled, WINDOW},
};
use self::{
    inbox::{Flood, Inbox, Taken},
    letter::Letter,
    outbox::Outbox,
};
use crate::wire::WrongLayout;

/// The longest letter, in bytes: what a stream's user assembles at most.
pub const MOST_LETTER: usize = 1 + 16 + 8 + MOST_BODY;

/// The peer broke a rule of delivery. The link ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The bytes are no letter.
    #[error("a letter is malformed")]
    Malformed(#[source] WrongLayout),
    /// It said something before hello, or hello twice.
    #[error("a letter is out of turn")]
    OutOfTurn,
    /// It sends what has to be turned away faster than it takes the answers.
    #[error("the peer floods the link with messages that are turned away")]
    Flooded,
    /// A letter came though no link is up.
    #[error("there is no link")]
    NoLink,
}

/// What the node has to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeliveryEvent {
    /// A new message: the node owes an answer, by [`Delivery::decide`], once it is on its record.
    Deliver {
        /// What the answer is given under.
        handed: Handed,
        /// Its session.
        session: SessionId,
        /// Its number there.
        number: Number,
        /// What it says.
        body: Vec<u8>,
    },
    /// A message of this node has its fate.
    Settled {
        /// Its session.
        session: SessionId,
        /// Its number there.
        number: Number,
        /// What became of it.
        fate: Fate,
    },
}

/// What is up between the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    Down,
    Up { said: Greeting, heard: Greeting },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Greeting {
    Missing,
    Done,
}

/// The deliveries of a node to and from one peer.
#[derive(Debug)]
pub struct Delivery {
    memory: MemoryId,
    theirs: Option<MemoryId>,
    line: Line,
    outbox: Outbox,
    inbox: Inbox,
    events: VecDeque<DeliveryEvent>,
}

impl Delivery {
    /// Deliveries that remember nothing yet, under a new id.
    #[must_use]
    pub fn new(memory: MemoryId) -> Self {
        let (outbox, inbox) = (Outbox::default(), Inbox::default());
        Self { memory, theirs: None, line: Line::Down, outbox, inbox, events: VecDeque::new() }
    }

    /// Deliveries that remember the peer's id of before the node stopped.
    #[must_use]
    pub fn resumed(memory: MemoryId, theirs: Option<MemoryId>) -> Self {
        Self { theirs, ..Self::new(memory) }
    }

    /// The peer's id, to be on the record before the next letter is sent: without it, what was sent counts as forgotten.
    #[must_use]
    pub const fn theirs(&self) -> Option<MemoryId> {
        self.theirs
    }

    /// Takes up what the record says of the messages to the peer in a session.
    pub fn restore_sent(&mut self, session: SessionId, next: Number, unsettled: Vec<Unsettled>) {
        self.outbox.restore(session, next, unsettled);
    }

    /// Takes up the answers that the record has to messages from the peer in a session.
    pub fn restore_answers(&mut self, session: SessionId, answers: impl IntoIterator<Item = (Number, Answer)>) {
        self.inbox.restore(session, answers);
    }

    /// Takes a message for delivery, until `deadline` of the monotonic clock.
    ///
    /// # Errors
    /// [`Unsendable`]: back-pressure reaches the sender. Nothing was changed.
    pub fn send(&mut self, session: SessionId, body: Vec<u8>, deadline: Duration) -> Result<Number, Unsendable> {
        self.outbox.send(session, body, deadline)
    }

    /// A link to the peer is up.
    pub fn linked(&mut self) {
        self.line = Line::Up { said: Greeting::Missing, heard: Greeting::Missing };
        self.outbox.linked();
        self.inbox.linked();
    }

    /// The link is down.
    pub const fn unlinked(&mut self) {
        self.line = Line::Down;
    }

    /// The next letter for the stream. The caller asks when the stream has room, so nothing waits in between.
    pub fn transmit(&mut self) -> Option<Vec<u8>> {
        match self.line {
            Line::Down => None,
            Line::Up { said: Greeting::Missing, heard } => {
                self.line = Line::Up { said: Greeting::Done, heard };
                Some(Letter::Hello(self.memory).encode())
            }
            // Until the peer has said what it remembers, nothing can be sent again.
            Line::Up { heard: Greeting::Missing, .. } => None,
            Line::Up { .. } => {
                if let Some((session, number, answer)) = self.inbox.next() {
                    return Some(Letter::Answer { session, number, answer }.encode());
                }
                let (session, number, body) = self.outbox.next()?;
                Some(Letter::Message { session, number, body }.encode())
            }
        }
    }

    /// Whether [`Delivery::transmit`] may give a letter.
    #[must_use]
    pub fn has_letters(&self) -> bool {
        match self.line {
            Line::Down => false,
            Line::Up { said: Greeting::Missing, .. } => true,
            Line::Up { heard: Greeting::Missing, .. } => false,
            Line::Up { .. } => self.inbox.has_next() || self.outbox.has_next(),
        }
    }

    /// Takes a letter of the peer in. What comes of it is told by [`Delivery::poll`], which is to be asked before the stream is given
    /// credit for the letter.
    ///
    /// # Errors
    /// [`DeliveryError`]: the link is to be ended.
    pub fn receive(&mut self, letter: &[u8]) -> Result<(), DeliveryError> {
        let Line::Up { said, heard } = self.line else { return Err(DeliveryError::NoLink) };
        match (Letter::decode(letter).map_err(DeliveryError::Malformed)?, heard) {
            (Letter::Hello(theirs), Greeting::Missing) => {
                self.line = Line::Up { said, heard: Greeting::Done };
                self.greeted(theirs);
            }
            (Letter::Message { session, number, body }, Greeting::Done) => {
                let taken = self.inbox.take(session, number).map_err(|Flood| DeliveryError::Flooded)?;
                if let Taken::New(handed) = taken {
                    self.events.push_back(DeliveryEvent::Deliver { handed, session, number, body: body.to_vec() });
                }
            }
            (Letter::Answer { session, number, answer }, Greeting::Done) => {
                if let Some(fate) = self.outbox.answered(session, number, answer) {
                    self.events.push_back(DeliveryEvent::Settled { session, number, fate });
                }
            }
            _ => return Err(DeliveryError::OutOfTurn),
        }
        Ok(())
    }

    fn greeted(&mut self, theirs: MemoryId) {
        if self.theirs.replace(theirs) != Some(theirs) {
            self.inbox.reset();
            while let Some((session, number)) = self.outbox.forgotten() {
                let fate = Fate::Dead(DeadReason::PeerForgot);
                self.events.push_back(DeliveryEvent::Settled { session, number, fate });
            }
        }
    }

    /// The node's answer to a message it was handed, once that answer is on its record: which message it was, if an answer is still
    /// owed.
    pub fn decide(&mut self, handed: Handed, answer: Answer) -> Option<(SessionId, Number)> {
        self.inbox.decide(handed, answer)
    }

    /// The next thing the node has to know. Messages whose time is up at `now` are among them.
    pub fn poll(&mut self, now: Duration) -> Option<DeliveryEvent> {
        self.events.pop_front().or_else(|| {
            let (session, number, reason) = self.outbox.expire(now)?;
            Some(DeliveryEvent::Settled { session, number, fate: Fate::Dead(reason) })
        })
    }

    /// When the next message becomes a dead letter.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.outbox.deadline()
    }

    /// Forgets a session that has ended on both sides and has nothing on its way; whether there was one to forget.
    pub fn forget(&mut self, session: SessionId) -> bool {
        let (sent, received) = (self.outbox.forget(session), self.inbox.forget(session));
        sent || received
    }
}
