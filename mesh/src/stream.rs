//! One stream of a link: two halves, each with an offset, a limit, and a bounded queue.
//!
//! Credit is absolute: a limit says how far the bytes of a stream may reach, so a credit that is repeated changes nothing.
//! The receiver raises it only as its own user takes bytes off its hands, so a slow reader stops the sender and nothing else. No data
//! frame is free: each takes credit for its chunk, and one without bytes for its header.

use std::{collections::VecDeque, fmt};

use crate::{
    frame::{DATA_HEADER, Frame, MOST_CHUNK, Priority, Purpose, StreamId, data_header},
    wire::Shown,
};

/// How far each side may send on a new stream, in bytes, before it has been given any credit.
pub const FIRST_CREDIT: u64 = 65_536;

/// What a data frame with a chunk of `length` bytes takes of the credit, and of a queue.
#[must_use]
pub const fn charge(length: usize) -> usize {
    if length == 0 { DATA_HEADER } else { length }
}

/// The peer broke a rule of a stream. The link ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamError {
    /// Bytes that have come before.
    #[error("bytes from offset {offset} were sent twice: {expected} have come")]
    Doubled {
        /// Where the frame begins.
        offset: u64,
        /// Where the next one has to.
        expected: u64,
    },
    /// Bytes are missing before these.
    #[error("bytes from offset {expected} to {offset} are missing")]
    Missing {
        /// Where the frame begins.
        offset: u64,
        /// Where the next one has to.
        expected: u64,
    },
    /// More bytes than the credit allows.
    #[error("bytes up to {reach} were sent, with credit up to {limit}")]
    Overdrawn {
        /// Where the frame ends.
        reach: u64,
        /// Where it had to.
        limit: u64,
    },
    /// A chunk that goes on a message but holds nothing.
    #[error("a chunk holds nothing and ends nothing")]
    Empty,
    /// A credit that is no higher than the one before.
    #[error("credit up to {limit} does not raise {before}")]
    NoRaise {
        /// What was sent.
        limit: u64,
        /// What stood.
        before: u64,
    },
    /// Something on a half that the peer has closed.
    #[error("the peer sends on a stream that it has closed")]
    AfterClose,
    /// The peer closed its half within a message.
    #[error("the peer closed a stream within a message")]
    CutOff,
}

/// Why a message cannot be queued. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendRefused {
    /// The queue has no room now. It has once the peer reads: [`crate::link::Transmitted::writable`] says when.
    #[error("the stream's queue is full: the peer reads too slowly")]
    Full,
    /// The message is longer than the queue ever takes.
    #[error("a message of {0} bytes is longer than a stream takes")]
    TooLong(usize),
    /// There is no such stream, or this side has closed it.
    #[error("the stream is closed")]
    Closed,
    /// The link has ended.
    #[error("the link has ended")]
    Ended,
}

/// A message for a stream. It keeps room for a header before its bytes, so that they are sealed where they lie.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// An empty message with room for `length` bytes.
    #[must_use]
    pub fn with_capacity(length: usize) -> Self {
        let mut bytes = Vec::with_capacity(length.saturating_add(DATA_HEADER));
        bytes.resize(DATA_HEADER, 0);
        Self { bytes }
    }

    /// Appends `bytes`.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len().saturating_sub(DATA_HEADER)
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frame of the `length` bytes from `from` on: the header goes over what is before them, which has gone already.
    fn frame(&mut self, from: usize, length: usize, header: [u8; DATA_HEADER]) -> &[u8] {
        let end = from.saturating_add(DATA_HEADER).saturating_add(length);
        let frame = self.bytes.get_mut(from..end).unwrap_or_default();
        frame.iter_mut().zip(header).for_each(|(to, byte)| *to = byte);
        frame
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Message").field(&Shown(self.len())).finish()
    }
}

impl From<&[u8]> for Message {
    fn from(bytes: &[u8]) -> Self {
        let mut message = Self::with_capacity(bytes.len());
        message.extend_from_slice(bytes);
        message
    }
}

/// What a stream sends next.
pub(crate) enum Part<'a> {
    /// The plaintext of a data frame.
    Chunk(&'a [u8]),
    /// A frame that says that nothing more comes.
    Close(Frame<'static>),
}

/// How far a half has come towards its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Half {
    Open,
    /// The user has closed it; what is queued still goes.
    Closing,
    Closed,
}

/// Whether the peer knows of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    No,
    Yes,
}

#[derive(Debug)]
pub(crate) struct Stream {
    id: StreamId,
    priority: Priority,
    purpose: Purpose,
    known: Known,
    queue: VecDeque<Message>,
    /// Bytes of the first message of the queue that have gone, and of the frame that goes now.
    gone: usize,
    going: usize,
    queued: usize,
    /// Whether a sender was refused since the queue last had room.
    waiting: bool,
    sent: u64,
    limit: u64,
    sending: Half,
    received: u64,
    consumed: u64,
    granted: u64,
    receiving: Half,
    within_message: bool,
}

impl Stream {
    /// A stream this side opens.
    pub(crate) const fn ours(id: StreamId, priority: Priority, purpose: Purpose) -> Self {
        Self::new(id, priority, purpose, Known::No)
    }

    /// A stream the peer has opened.
    pub(crate) const fn theirs(id: StreamId, priority: Priority, purpose: Purpose) -> Self {
        Self::new(id, priority, purpose, Known::Yes)
    }

    const fn new(id: StreamId, priority: Priority, purpose: Purpose, known: Known) -> Self {
        Self {
            id,
            priority,
            purpose,
            known,
            queue: VecDeque::new(),
            gone: 0,
            going: 0,
            queued: 0,
            waiting: false,
            sent: 0,
            limit: FIRST_CREDIT,
            sending: Half::Open,
            received: 0,
            consumed: 0,
            granted: FIRST_CREDIT,
            receiving: Half::Open,
            within_message: false,
        }
    }

    pub(crate) const fn priority(&self) -> Priority {
        self.priority
    }

    /// The frame that tells the peer of the stream, once.
    pub(crate) fn announce(&mut self) -> Option<Frame<'static>> {
        let unknown = self.known == Known::No;
        self.known = Known::Yes;
        unknown.then_some(Frame::Open { stream: self.id, priority: self.priority, purpose: self.purpose })
    }

    /// Whether a message of `length` bytes would be queued, in a queue of `room` bytes.
    pub(crate) fn may_send(&mut self, length: usize, room: usize) -> Result<(), SendRefused> {
        if self.sending != Half::Open {
            return Err(SendRefused::Closed);
        }
        if charge(length) > room {
            return Err(SendRefused::TooLong(length));
        }
        if self.queued.saturating_add(charge(length)) > room {
            self.waiting = true;
            return Err(SendRefused::Full);
        }
        Ok(())
    }

    /// Queues a message, in a queue of `room` bytes.
    pub(crate) fn send(&mut self, message: Message, room: usize) -> Result<(), SendRefused> {
        self.may_send(message.len(), room)?;
        self.queued = self.queued.saturating_add(charge(message.len()));
        self.queue.push_back(message);
        Ok(())
    }

    /// Closes this side's half, once what is queued has gone.
    pub(crate) const fn close(&mut self) {
        if matches!(self.sending, Half::Open) {
            self.sending = Half::Closing;
        }
    }

    /// Whether [`Stream::next`] would give a frame.
    pub(crate) fn is_ready(&self) -> bool {
        match self.queue.front() {
            Some(message) => self.known == Known::Yes && self.has_credit(message),
            None => self.known == Known::Yes && self.sending == Half::Closing,
        }
    }

    /// Whether there is credit for the next frame of `message`: for all of an empty one, for a byte of others.
    fn has_credit(&self, message: &Message) -> bool {
        self.credit() >= if message.is_empty() { charge(0) } else { 1 }
    }

    fn credit(&self) -> usize {
        usize::try_from(self.limit.saturating_sub(self.sent)).unwrap_or(usize::MAX)
    }

    /// What goes next of this half, if it is ready. [`Stream::sent`] follows.
    pub(crate) fn next(&mut self) -> Option<Part<'_>> {
        let credit = self.credit();
        let Some(message) = self.queue.front_mut() else {
            let closes = self.sending == Half::Closing;
            return closes.then_some(Part::Close(Frame::Close { stream: self.id }));
        };
        let rest = message.len().saturating_sub(self.gone);
        self.going = rest.min(credit).min(MOST_CHUNK);
        let header = data_header(self.id, self.sent, self.going == rest);
        Some(Part::Chunk(message.frame(self.gone, self.going, header)))
    }

    /// What [`Stream::next`] gave has gone; whether a sender that was refused may try again.
    pub(crate) fn sent(&mut self) -> bool {
        let Some(message) = self.queue.front() else {
            self.sending = Half::Closed;
            return false;
        };
        self.sent = self.sent.saturating_add(u64::try_from(charge(self.going)).unwrap_or(u64::MAX));
        self.gone = self.gone.saturating_add(self.going);
        self.going = 0;
        if self.gone < message.len() {
            return false;
        }
        self.queued = self.queued.saturating_sub(charge(message.len()));
        self.queue.pop_front();
        self.gone = 0;
        std::mem::take(&mut self.waiting)
    }

    /// Takes a raise of the peer's credit in.
    pub(crate) const fn raise(&mut self, limit: u64) -> Result<(), StreamError> {
        if limit <= self.limit {
            return Err(StreamError::NoRaise { limit, before: self.limit });
        }
        self.limit = limit;
        Ok(())
    }

    /// Takes a chunk of the peer in: whether it keeps to the stream's rules.
    pub(crate) fn take(&mut self, offset: u64, last: bool, chunk: &[u8]) -> Result<(), StreamError> {
        if self.receiving != Half::Open {
            return Err(StreamError::AfterClose);
        }
        let expected = self.received;
        if offset < expected {
            return Err(StreamError::Doubled { offset, expected });
        }
        if offset > expected {
            return Err(StreamError::Missing { offset, expected });
        }
        if chunk.is_empty() && (!last || self.within_message) {
            return Err(StreamError::Empty);
        }
        let length = u64::try_from(charge(chunk.len())).unwrap_or(u64::MAX);
        let reach = expected.checked_add(length).filter(|reach| *reach <= self.granted);
        let limit = self.granted;
        self.received = reach.ok_or(StreamError::Overdrawn { reach: expected.saturating_add(length), limit })?;
        self.within_message = !last;
        Ok(())
    }

    /// Takes the peer's close in.
    pub(crate) fn peer_closes(&mut self) -> Result<(), StreamError> {
        if self.receiving != Half::Open {
            return Err(StreamError::AfterClose);
        }
        if self.within_message {
            return Err(StreamError::CutOff);
        }
        self.receiving = Half::Closed;
        Ok(())
    }

    /// The user has taken what is worth `bytes` of credit off the link's hands: of what has come, no more.
    pub(crate) fn consume(&mut self, bytes: usize) -> bool {
        let consumed = u64::try_from(bytes).ok().and_then(|bytes| self.consumed.checked_add(bytes));
        let consumed = consumed.filter(|consumed| *consumed <= self.received);
        consumed.map(|consumed| self.consumed = consumed).is_some()
    }

    /// The raise of credit that is due, with a window of `window` bytes. It waits until it is worth a frame.
    pub(crate) fn grant(&mut self, window: u64) -> Option<Frame<'static>> {
        let limit = self.consumed.checked_add(window)?;
        let due = self.known == Known::Yes
            && self.receiving == Half::Open
            && limit.saturating_sub(self.granted) >= window.div_ceil(2).max(1)
            && limit > self.granted;
        due.then(|| {
            self.granted = limit;
            Frame::Credit { stream: self.id, limit }
        })
    }

    /// Whether both halves are closed.
    pub(crate) fn is_over(&self) -> bool {
        self.sending == Half::Closed && self.receiving == Half::Closed
    }

    /// Whether it waits for credit.
    pub(crate) fn is_stopped(&self) -> bool {
        self.queue.front().is_some_and(|message| !self.has_credit(message))
    }
}
