//! Delivery: a message to a peer is accepted, refused, or a dead letter with its reason; at most once, and never silently lost.
//!
//! All messages to a peer are numbered in one sequence. The sender keeps each until it has a fate, and sends what has none again on every
//! new link. Every message carries the sender's floor, below which all have their fate: the receiver remembers the numbers from the
//! floor on and nothing else, so a number that comes again is answered and not handed on, and a forgotten number never comes again.
//! The sender never goes further than [`WINDOW`] above its floor, which is also how a receiver that does not decide holds a sender up.
//! What a node forgets (its delivery memory was lost) has another [`MemoryId`] afterwards, and the peer then gives up what may have
//! arrived instead of sending it twice.
//!
//! The record comes first: what [`Delivery::send`] has returned and [`Delivery::poll`] has told is on the node's record, in that order,
//! before [`Delivery::transmit`] or [`Delivery::decide`] is called next. A node that stops in between is as if it had stopped before:
//! no letter says what its record does not know.
//!
//! One [`Delivery`] speaks with one peer, over one stream of the link that counts. Links are told apart by their [`LinkId`], so letters
//! and the end of one that was replaced change nothing. It is a pure engine.

mod inbox;
mod letter;
mod outbox;

use std::{collections::VecDeque, fmt, time::Duration};

use self::{
    inbox::{Flood, Inbox, Taken},
    letter::Letter,
    outbox::Outbox,
};
pub use self::{
    inbox::{Handed, MOST_UNDECIDED},
    letter::{Answer, MOST_BODY, MemoryId, Number, Reason, WINDOW},
    outbox::{DeadReason, Fate, MOST_WAITING, Unsendable, Unsettled},
};
use crate::{
    link::QUEUE,
    links::LinkId,
    wire::{Shown, WrongLayout},
};

/// The longest letter, in bytes: what a stream's user assembles at most. It is longer than a link's window, so a chunk is given its
/// credit back as soon as it was added to the letter.
pub const MOST_LETTER: usize = 1 + 8 + 8 + MOST_BODY;

// Every letter fits into an empty queue, and what an honest peer may have under way is taken.
const _: () = assert!(MOST_LETTER <= QUEUE && MOST_WAITING <= MOST_UNDECIDED && MOST_BODY <= MOST_WAITING);

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
    /// A letter came over a link that does not count: it has ended, or another one is used instead.
    #[error("the letter came over a link that is not used")]
    OtherLink,
}

/// What the node has to know, and to have on its record before it goes on.
#[derive(Clone, PartialEq, Eq)]
pub enum DeliveryEvent {
    /// The peer has another memory than before, or its first: the id goes on the record, and the answers to the one before off it, in one
    /// step. What the peer says next belongs to this memory.
    Met {
        /// The id of the peer's memory.
        memory: MemoryId,
    },
    /// A new message: the node owes an answer, by [`Delivery::decide`], once it is on its record.
    Deliver {
        /// What the answer is given under.
        handed: Handed,
        /// Its number.
        number: Number,
        /// What it says.
        body: Vec<u8>,
    },
    /// A message of this node has its fate.
    Settled {
        /// Its number.
        number: Number,
        /// What became of it.
        fate: Fate,
    },
}

impl fmt::Debug for DeliveryEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Met { memory } => write!(f, "Met({memory:?})"),
            Self::Deliver { handed, number, body } => {
                write!(f, "Deliver({handed:?}, {number:?}, {:?})", Shown(body.len()))
            }
            Self::Settled { number, fate } => write!(f, "Settled({number:?}, {fate:?})"),
        }
    }
}

/// What is up between the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    Down,
    Up { link: LinkId, said: Greeting, heard: Greeting },
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

    /// The id of the peer's memory, as [`DeliveryEvent::Met`] has told it.
    #[must_use]
    pub const fn theirs(&self) -> Option<MemoryId> {
        self.theirs
    }

    /// Takes up what the record says of the messages to the peer: the next number, and all that have no fate.
    pub fn restore_sent(&mut self, next: Number, unsettled: Vec<Unsettled>) {
        self.outbox.restore(next, unsettled);
    }

    /// Takes up the answers that the record has to messages from the peer. What is below the peer's floor may be left out.
    pub fn restore_answers(&mut self, answers: impl IntoIterator<Item = (Number, Answer)>) {
        self.inbox.restore(answers);
    }

    /// Takes a message for delivery, until `deadline` of the monotonic clock. It is to be on the record before the next letter is sent, so
    /// that its number is never used again.
    ///
    /// # Errors
    /// [`Unsendable`]: back-pressure reaches the sender. Nothing was changed.
    pub fn send(&mut self, body: Vec<u8>, deadline: Duration) -> Result<Number, Unsendable> {
        self.outbox.send(body, deadline)
    }

    /// From now on this link to the peer is used, and no other.
    pub fn linked(&mut self, link: LinkId) {
        self.line = Line::Up { link, said: Greeting::Missing, heard: Greeting::Missing };
        self.outbox.linked();
        self.inbox.linked();
    }

    /// A link is down. If another one is used already, that changes nothing.
    pub fn unlinked(&mut self, ended: LinkId) {
        if self.uses(ended) {
            self.line = Line::Down;
        }
    }

    fn uses(&self, asked: LinkId) -> bool {
        matches!(self.line, Line::Up { link, .. } if link == asked)
    }

    /// The next letter for the stream of a link. The caller asks when the stream has room, so nothing waits in between.
    pub fn transmit(&mut self, over: LinkId) -> Option<Vec<u8>> {
        match self.line {
            Line::Down => None,
            Line::Up { link, .. } if link != over => None,
            Line::Up { link, said: Greeting::Missing, heard } => {
                self.line = Line::Up { link, said: Greeting::Done, heard };
                Some(Letter::Hello(self.memory).encode())
            }
            // Until the peer has said what it remembers, nothing can be sent again.
            Line::Up { heard: Greeting::Missing, .. } => None,
            Line::Up { .. } => {
                if let Some((number, answer)) = self.inbox.next() {
                    return Some(Letter::Answer { number, answer }.encode());
                }
                let (number, floor, body) = self.outbox.next()?;
                Some(Letter::Message { number, floor, body }.encode())
            }
        }
    }

    /// Whether [`Delivery::transmit`] may give a letter for the link that is used.
    #[must_use]
    pub fn has_letters(&self) -> bool {
        match self.line {
            Line::Down => false,
            Line::Up { said: Greeting::Missing, .. } => true,
            Line::Up { heard: Greeting::Missing, .. } => false,
            Line::Up { .. } => self.inbox.has_next() || self.outbox.has_next(),
        }
    }

    /// Takes a letter of the peer in. What comes of it is told by [`Delivery::poll`], which is to be asked before the next letter.
    ///
    /// # Errors
    /// [`DeliveryError`]: the link is to be ended.
    pub fn receive(&mut self, over: LinkId, letter: &[u8]) -> Result<(), DeliveryError> {
        let Line::Up { link, said, heard } = self.line else { return Err(DeliveryError::OtherLink) };
        if link != over {
            return Err(DeliveryError::OtherLink);
        }
        match (Letter::decode(letter).map_err(DeliveryError::Malformed)?, heard) {
            (Letter::Hello(theirs), Greeting::Missing) => {
                self.line = Line::Up { link, said, heard: Greeting::Done };
                self.greeted(theirs);
            }
            (Letter::Message { number, floor, body }, Greeting::Done) => {
                let taken = self.inbox.take(number, floor, body.len()).map_err(|Flood| DeliveryError::Flooded)?;
                if let Taken::New(handed) = taken {
                    self.events.push_back(DeliveryEvent::Deliver { handed, number, body: body.to_vec() });
                }
            }
            (Letter::Answer { number, answer }, Greeting::Done) => {
                if let Some(fate) = self.outbox.answered(number, answer) {
                    self.events.push_back(DeliveryEvent::Settled { number, fate });
                }
            }
            _ => return Err(DeliveryError::OutOfTurn),
        }
        Ok(())
    }

    fn greeted(&mut self, theirs: MemoryId) {
        if self.theirs.replace(theirs) != Some(theirs) {
            self.inbox.reset();
            self.events.push_back(DeliveryEvent::Met { memory: theirs });
            while let Some(number) = self.outbox.forgotten() {
                let fate = Fate::Dead(DeadReason::PeerForgot);
                self.events.push_back(DeliveryEvent::Settled { number, fate });
            }
        }
    }

    /// The node's answer to a message it was handed, once that answer is on its record together with what the message has done: which
    /// message it was, if an answer is still owed.
    pub fn decide(&mut self, handed: Handed, answer: Answer) -> Option<Number> {
        self.inbox.decide(handed, answer)
    }

    /// The next thing the node has to know. Messages whose time is up at `now` are among them.
    pub fn poll(&mut self, now: Duration) -> Option<DeliveryEvent> {
        self.events.pop_front().or_else(|| {
            let (number, reason) = self.outbox.expire(now)?;
            Some(DeliveryEvent::Settled { number, fate: Fate::Dead(reason) })
        })
    }

    /// When the next message becomes a dead letter.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.outbox.deadline()
    }
}
