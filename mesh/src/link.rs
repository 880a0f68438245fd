//! A link: frames over the keys of a handshake.
//!
//! The engine holds no socket and no clock. The caller gives it what came from the wire, one frame at a time, and asks it for what
//! goes onto the wire, one frame at a time and only when the wire has room; so nothing sealed ever waits, and what goes first is
//! decided as late as can be. What the peer sends is handed on at once and never kept: how far it may be ahead is its credit.
//! Everything that breaks a rule ends the link.

mod keys;
mod limits;
mod pulse;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    ops::Range,
    time::Duration,
};

pub(crate) use self::limits::QUEUE;
pub use self::limits::{BadLimits, Limits, MOST_KEY_AGE, MOST_KEY_BYTES, MOST_STREAMS};
use self::{keys::KeyUse, pulse::Pulse};
use crate::{
    frame::{Farewell, Frame, FrameError, Priority, Purpose, StreamId},
    handshake::Established,
    party::{Claim, HandshakeHash, Role},
    seal::{LENGTH, MOST_SEALED, Room, Seal, SealError, TAG},
    stream::{Message, Part, SendRefused, Stream, StreamError, charge},
    wire::Shown,
};

/// Pings of the peer that wait for a pong. An honest peer has one out.
const MOST_PONGS: usize = 4;

/// How long a farewell may wait for the wire.
pub const FAREWELL_PATIENCE: Duration = Duration::from_secs(1);

/// Why a link ended. It is to be closed; streams and what was queued on them are gone.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// A message does not open.
    #[error("a message cannot be opened or sealed")]
    Sealed(#[source] SealError),
    /// A message holds no frame.
    #[error("a message holds no frame")]
    Frame(#[source] FrameError),
    /// The peer broke a rule of a stream.
    #[error("the peer broke a rule of stream {}", .stream.0)]
    Stream {
        /// Which stream.
        stream: StreamId,
        /// Which rule.
        #[source]
        cause: StreamError,
    },
    /// The peer speaks of a stream that was not opened, or is over.
    #[error("there is no stream {}", .0.0)]
    NoSuchStream(StreamId),
    /// The peer opened a stream under an id that it may not use.
    #[error("the peer may not open stream {}", .0.0)]
    BadOpen(StreamId),
    /// The peer has too many streams open.
    #[error("the peer has more than {MOST_STREAMS} streams open")]
    TooManyStreams,
    /// The peer asks faster than the line takes answers.
    #[error("the peer floods the link with pings")]
    Flooded,
    /// The peer answered what was not asked.
    #[error("the peer answered a ping that was not sent")]
    Unasked,
    /// The peer changed its key out of turn.
    #[error("the peer changed to key {0} out of turn")]
    OutOfTurn(u32),
    /// The peer uses a key for longer than it may.
    #[error("the peer does not change its key")]
    StaleKey,
    /// The peer is silent.
    #[error("the peer has been silent for {} ms", .0.as_millis())]
    Silent(Duration),
    /// This side leaves, and the wire did not take its farewell.
    #[error("the line did not take the farewell within {} ms", FAREWELL_PATIENCE.as_millis())]
    Unheard,
    /// The link had ended before.
    #[error("the link has ended")]
    Ended,
}

/// Why a stream cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenRefused {
    /// This side has [`MOST_STREAMS`] open.
    #[error("{MOST_STREAMS} streams are open")]
    TooMany,
    /// Every id of this link was used.
    #[error("the link has no stream left")]
    UsedUp,
    /// The link has ended.
    #[error("the link has ended")]
    Ended,
}

/// The caller gave more credit back than what has come had taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("more credit was given back than what has come had taken")]
pub struct NotReceived;

/// What a frame of the peer amounts to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LinkEvent<'a> {
    /// It opened a stream.
    Opened {
        /// Which.
        stream: StreamId,
        /// How it ranks.
        priority: Priority,
        /// What its messages are.
        purpose: Purpose,
    },
    /// A piece of a message. It is to be given back its credit by [`Link::consume`] once the user has taken it, also before the message
    /// is whole: a message may be longer than the window.
    Chunk {
        /// On which stream.
        stream: StreamId,
        /// Whether the message ends with it.
        last: bool,
        /// The bytes.
        bytes: &'a [u8],
        /// What it has taken of the credit.
        credit: usize,
    },
    /// It sends nothing more on the stream.
    Closed {
        /// Which.
        stream: StreamId,
    },
    /// It closed the link in order. The link has ended.
    Farewell {
        /// Why.
        reason: Farewell,
    },
}

impl fmt::Debug for LinkEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { stream, priority, purpose } => write!(f, "Opened({stream:?}, {priority:?}, {purpose:?})"),
            Self::Chunk { stream, last, bytes, .. } => {
                write!(f, "Chunk({stream:?}, last: {last}, {:?})", Shown(bytes.len()))
            }
            Self::Closed { stream } => write!(f, "Closed({stream:?})"),
            Self::Farewell { reason } => write!(f, "Farewell({reason:?})"),
        }
    }
}

/// What became of some bytes of the wire.
#[derive(Debug)]
pub struct Received<'a> {
    /// How many were used. The caller comes again with the rest.
    pub consumed: usize,
    /// What came of the frame that they complete, if it concerns the caller.
    pub event: Option<LinkEvent<'a>>,
}

/// What was written for the wire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Transmitted<'a> {
    /// The bytes; none if nothing is to be sent now.
    pub bytes: &'a [u8],
    /// A stream whose queue has room again, after a sender was refused.
    pub writable: Option<StreamId>,
}

impl fmt::Debug for Transmitted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, writable } = self;
        write!(f, "Transmitted({:?}, writable: {writable:?})", Shown(bytes.len()))
    }
}

/// What a frame amounts to, before its bytes are lent out.
enum Took {
    Nothing,
    Opened(StreamId, Priority, Purpose),
    Chunk(StreamId, bool, Range<usize>),
    Closed(StreamId),
    Farewell(Farewell),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Running,
    /// This side says goodbye with its next frame, takes nothing in any more, and ends at a set time in any case.
    Leaving {
        reason: Farewell,
        until: Duration,
    },
    Ended,
}

/// One link between two chains.
pub struct Link {
    role: Role,
    peer: Claim,
    hash: HandshakeHash,
    seal: Seal,
    limits: Limits,
    life: Life,
    streams: BTreeMap<StreamId, Stream>,
    /// The id of the next stream of this side, and the last of the peer's.
    next_ours: u32,
    last_theirs: u32,
    /// Who had its turn last, for each priority.
    served: BTreeMap<Priority, StreamId>,
    pulse: Pulse,
    pongs: VecDeque<u64>,
    outgoing: KeyUse,
    incoming: KeyUse,
    /// A message that has come in part.
    partial: Vec<u8>,
    /// The plaintext of the last message that was opened.
    plain: Room,
    /// The message that was sealed last.
    wire: Room,
    /// The frame that is being sent.
    scratch: Vec<u8>,
    #[cfg(feature = "planted")]
    planted: crate::planted::LinkDefects,
}

impl Link {
    /// The link that a handshake has made.
    #[must_use]
    pub fn new(established: Established, limits: Limits, now: Duration) -> Self {
        let Established { role, peer, hash, seal } = established;
        let (next_ours, last_theirs) = match role {
            Role::Initiator => (1, 0),
            Role::Responder => (2, 0),
        };
        Self {
            role,
            peer,
            hash,
            seal,
            limits,
            life: Life::Running,
            streams: BTreeMap::new(),
            next_ours,
            last_theirs,
            served: BTreeMap::new(),
            pulse: Pulse::new(now),
            pongs: VecDeque::new(),
            outgoing: KeyUse::new(now),
            incoming: KeyUse::new(now),
            partial: Vec::new(),
            plain: Room::new(MOST_SEALED),
            wire: Room::new(MOST_SEALED),
            scratch: Vec::new(),
            #[cfg(feature = "planted")]
            planted: crate::planted::LinkDefects::default(),
        }
    }

    /// Who the peer is.
    #[must_use]
    pub const fn peer(&self) -> &Claim {
        &self.peer
    }

    /// The hash of the handshake that made the link.
    #[must_use]
    pub const fn hash(&self) -> HandshakeHash {
        self.hash
    }

    /// The smoothed round trip, once it was measured.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.pulse.round_trip()
    }

    /// Whether the link has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.life == Life::Ended
    }

    /// The streams that are open.
    pub fn streams(&self) -> impl Iterator<Item = StreamId> {
        self.streams.keys().copied()
    }

    /// Opens a stream in both directions.
    ///
    /// # Errors
    /// [`OpenRefused`]; nothing was opened.
    pub fn open(&mut self, priority: Priority, purpose: Purpose) -> Result<StreamId, OpenRefused> {
        if self.life != Life::Running {
            return Err(OpenRefused::Ended);
        }
        if self.streams.keys().filter(|id| self.is_ours(**id)).count() >= MOST_STREAMS {
            return Err(OpenRefused::TooMany);
        }
        let id = StreamId(self.next_ours);
        self.next_ours = self.next_ours.checked_add(2).ok_or(OpenRefused::UsedUp)?;
        self.streams.insert(id, Stream::ours(id, priority, purpose));
        Ok(id)
    }

    /// Whether a message of `length` bytes would be queued on a stream.
    ///
    /// # Errors
    /// What [`Link::send`] would say.
    pub fn may_send(&mut self, stream: StreamId, length: usize) -> Result<(), SendRefused> {
        let room = self.limits.queue;
        self.sendable(stream)?.may_send(length, room)
    }

    /// Queues a message on a stream.
    ///
    /// # Errors
    /// [`SendRefused`]; nothing was queued, and the message is gone. [`Link::may_send`] says so before.
    pub fn send(&mut self, stream: StreamId, message: Message) -> Result<(), SendRefused> {
        let room = self.limits.queue;
        self.sendable(stream)?.send(message, room)
    }

    fn sendable(&mut self, stream: StreamId) -> Result<&mut Stream, SendRefused> {
        if self.life != Life::Running {
            return Err(SendRefused::Ended);
        }
        self.streams.get_mut(&stream).ok_or(SendRefused::Closed)
    }

    /// Gives credit back for chunks of a stream that the caller has taken, as much as they had taken. A stream that is over needs none.
    ///
    /// # Errors
    /// [`NotReceived`] if less has come; nothing was changed.
    pub fn consume(&mut self, stream: StreamId, credit: usize) -> Result<(), NotReceived> {
        let Some(stream) = self.streams.get_mut(&stream) else { return Ok(()) };
        if stream.consume(credit) { Ok(()) } else { Err(NotReceived) }
    }

    /// Closes this side's half of a stream, once what is queued has gone.
    pub fn close(&mut self, stream: StreamId) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.close();
        }
    }

    /// Ends the link with the next frame. What is queued is not sent, and what still comes of the peer is not taken in. If the wire
    /// does not take the frame, the link ends without it after [`FAREWELL_PATIENCE`].
    pub fn leave(&mut self, now: Duration, reason: Farewell) {
        if self.life == Life::Running {
            self.life = Life::Leaving { reason, until: now.saturating_add(FAREWELL_PATIENCE) };
        }
    }

    /// When [`Link::transmit`] is to be called at the latest, though nothing was sent or received. While the wire takes nothing,
    /// [`Link::stuck`] says when.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        match self.life {
            Life::Leaving { until, .. } => until,
            Life::Running | Life::Ended => self.pulse.due().min(self.outgoing.ages(&self.limits)),
        }
    }

    /// To be called instead of [`Link::transmit`] while the wire takes nothing: how long it may stay so, though nothing comes either.
    ///
    /// # Errors
    /// [`LinkError::Silent`] if the peer neither reads nor says anything, [`LinkError::Unheard`] if this side leaves; the link has ended.
    pub fn stuck(&mut self, now: Duration) -> Result<Duration, LinkError> {
        if let Some(until) = self.leaves(now)? {
            return Ok(until);
        }
        let ends = self.pulse.ends_unasked();
        if now >= ends {
            self.end();
            return Err(LinkError::Silent(now.saturating_sub(ends).saturating_add(self.pulse.patience())));
        }
        Ok(ends)
    }

    /// Until when this side leaves, if it does.
    fn leaves(&mut self, now: Duration) -> Result<Option<Duration>, LinkError> {
        match self.life {
            Life::Running => Ok(None),
            Life::Leaving { until, .. } if now < until => Ok(Some(until)),
            Life::Leaving { .. } => {
                self.end();
                Err(LinkError::Unheard)
            }
            Life::Ended => Err(LinkError::Ended),
        }
    }

    /// Takes `bytes` of the wire in, up to the end of one frame. Once this side leaves, all of them are dropped unread.
    ///
    /// # Errors
    /// [`LinkError`]; the link has ended.
    pub fn receive(&mut self, now: Duration, bytes: &[u8]) -> Result<Received<'_>, LinkError> {
        if self.leaves(now)?.is_some() {
            return Ok(Received { consumed: bytes.len(), event: None });
        }
        let outcome = self.take_in(now, bytes);
        if !matches!(&outcome, Ok((_, took)) if !matches!(took, Took::Farewell(_))) {
            self.end();
        }
        let (consumed, took) = outcome?;
        let event = match took {
            Took::Nothing => None,
            Took::Opened(stream, priority, purpose) => Some(LinkEvent::Opened { stream, priority, purpose }),
            Took::Chunk(stream, last, range) => {
                let bytes = self.plain.bytes().get(range).unwrap_or_default();
                Some(LinkEvent::Chunk { stream, last, bytes, credit: charge(bytes.len()) })
            }
            Took::Closed(stream) => Some(LinkEvent::Closed { stream }),
            Took::Farewell(reason) => Some(LinkEvent::Farewell { reason }),
        };
        Ok(Received { consumed, event })
    }

    fn end(&mut self) {
        self.life = Life::Ended;
        self.streams.clear();
        self.pongs.clear();
    }

    fn take_in(&mut self, now: Duration, bytes: &[u8]) -> Result<(usize, Took), LinkError> {
        let consumed = match self.open_next(bytes)? {
            Opened::Part(consumed) => return Ok((consumed, Took::Nothing)),
            Opened::Whole { consumed, wire } => {
                self.incoming.count(wire);
                consumed
            }
        };
        if self.incoming.is_stale(now) {
            return Err(LinkError::StaleKey);
        }
        self.pulse.hear(now);
        Ok((consumed, self.frame(now)?))
    }

    /// Opens the next message of the wire, straight from `bytes` where it is whole in them.
    fn open_next(&mut self, bytes: &[u8]) -> Result<Opened, LinkError> {
        if self.partial.is_empty()
            && let Some((head, rest)) = bytes.split_first_chunk::<LENGTH>()
            && let Some(sealed) = rest.get(..usize::from(u16::from_be_bytes(*head)))
        {
            self.seal.open(sealed, &mut self.plain).map_err(LinkError::Sealed)?;
            let wire = sealed.len().saturating_add(LENGTH);
            return Ok(Opened::Whole { consumed: wire, wire });
        }
        let mut consumed = 0;
        let whole = self.fill(LENGTH, bytes, &mut consumed).and_then(|head| {
            let head = head.first_chunk::<LENGTH>()?;
            Some(usize::from(u16::from_be_bytes(*head)))
        });
        let Some(length) = whole else { return Ok(Opened::Part(consumed)) };
        if length < TAG {
            return Err(LinkError::Sealed(SealError::Truncated(length)));
        }
        let wire = length.saturating_add(LENGTH);
        let rest = bytes.get(consumed..).unwrap_or_default();
        if self.fill(wire, rest, &mut consumed).is_none() {
            return Ok(Opened::Part(consumed));
        }
        let sealed = self.partial.get(LENGTH..).unwrap_or_default();
        self.seal.open(sealed, &mut self.plain).map_err(LinkError::Sealed)?;
        self.partial.clear();
        Ok(Opened::Whole { consumed, wire })
    }

    /// Fills the partial message up to `until` bytes; gives it once it has them.
    fn fill(&mut self, until: usize, bytes: &[u8], consumed: &mut usize) -> Option<&[u8]> {
        let missing = until.saturating_sub(self.partial.len());
        let taken = bytes.get(..missing).unwrap_or(bytes);
        self.partial.extend_from_slice(taken);
        *consumed = consumed.saturating_add(taken.len());
        (self.partial.len() >= until).then_some(&*self.partial)
    }

    /// Takes the frame in that was opened last.
    fn frame(&mut self, now: Duration) -> Result<Took, LinkError> {
        let plain = self.plain.bytes();
        match Frame::decode(plain).map_err(LinkError::Frame)? {
            Frame::Open { stream, priority, purpose } => self.peer_opens(stream, priority, purpose),
            Frame::Data { stream, offset, last, chunk } => {
                let half = self.streams.get_mut(&stream).ok_or(LinkError::NoSuchStream(stream))?;
                half.take(offset, last, chunk).map_err(|cause| LinkError::Stream { stream, cause })?;
                Ok(Took::Chunk(stream, last, plain.len().saturating_sub(chunk.len())..plain.len()))
            }
            Frame::Credit { stream, limit } => self.raise(stream, limit),
            Frame::Close { stream } => {
                let half = self.streams.get_mut(&stream).ok_or(LinkError::NoSuchStream(stream))?;
                half.peer_closes().map_err(|cause| LinkError::Stream { stream, cause })?;
                self.streams.retain(|_, stream| !stream.is_over());
                Ok(Took::Closed(stream))
            }
            Frame::Ping { token } => {
                if self.pongs.len() >= MOST_PONGS {
                    return Err(LinkError::Flooded);
                }
                self.pongs.push_back(token);
                Ok(Took::Nothing)
            }
            Frame::Pong { token } => {
                if self.pulse.pong(now, token) {
                    Ok(Took::Nothing)
                } else {
                    Err(LinkError::Unasked)
                }
            }
            Frame::Rekey { generation } => {
                if !self.incoming.turn(now, generation) {
                    return Err(LinkError::OutOfTurn(generation));
                }
                self.seal.rekey_incoming();
                Ok(Took::Nothing)
            }
            Frame::Bye { reason } => Ok(Took::Farewell(reason)),
        }
    }

    fn raise(&mut self, stream: StreamId, limit: u64) -> Result<Took, LinkError> {
        let was_open = self.was_open(stream);
        match self.streams.get_mut(&stream) {
            Some(half) => half.raise(limit).map_err(|cause| LinkError::Stream { stream, cause })?,
            // The stream was over here before the peer knew.
            None if was_open => {}
            None => return Err(LinkError::NoSuchStream(stream)),
        }
        Ok(Took::Nothing)
    }

    fn peer_opens(&mut self, id: StreamId, priority: Priority, purpose: Purpose) -> Result<Took, LinkError> {
        if self.is_ours(id) || id.0 == 0 || id.0 <= self.last_theirs {
            return Err(LinkError::BadOpen(id));
        }
        if self.streams.keys().filter(|id| !self.is_ours(**id)).count() >= MOST_STREAMS {
            return Err(LinkError::TooManyStreams);
        }
        self.last_theirs = id.0;
        self.streams.insert(id, Stream::theirs(id, priority, purpose));
        Ok(Took::Opened(id, priority, purpose))
    }

    /// Whether this side opens streams with such an id.
    const fn is_ours(&self, StreamId(id): StreamId) -> bool {
        let odd = !id.is_multiple_of(2);
        matches!((self.role, odd), (Role::Initiator, true) | (Role::Responder, false))
    }

    const fn was_open(&self, id: StreamId) -> bool {
        if self.is_ours(id) { id.0 < self.next_ours } else { id.0 <= self.last_theirs }
    }

    /// The next frame for the wire, sealed.
    ///
    /// # Errors
    /// [`LinkError`]: the link has ended. [`LinkError::Silent`] is found here.
    pub fn transmit(&mut self, now: Duration) -> Result<Transmitted<'_>, LinkError> {
        self.leaves(now)?;
        let outcome = self.write(now);
        if outcome.is_err() {
            self.end();
        }
        let (sealed, writable) = outcome?;
        Ok(Transmitted { bytes: if sealed { self.wire.bytes() } else { &[] }, writable })
    }

    /// Seals the next frame, if there is one; and the stream whose queue has room again.
    fn write(&mut self, now: Duration) -> Result<(bool, Option<StreamId>), LinkError> {
        if let Some(ends) = self.pulse.ends().filter(|ends| now >= *ends) {
            return Err(LinkError::Silent(now.saturating_sub(ends).saturating_add(self.pulse.patience())));
        }
        self.scratch.clear();
        let choice = self.choose(now);
        let mut writable = None;
        match choice {
            Choice::Nothing => return Ok((false, None)),
            Choice::Stream(id) => writable = self.seal_next_of(id)?.then_some(id),
            Choice::Frame | Choice::Rekey(_) | Choice::Bye => {
                self.seal.seal(&self.scratch, &mut self.wire).map_err(LinkError::Sealed)?;
            }
        }
        self.outgoing.count(self.wire.bytes().len());
        match choice {
            Choice::Rekey(generation) => {
                self.outgoing.turn(now, generation);
                self.seal.rekey_outgoing();
            }
            Choice::Bye => self.end(),
            Choice::Nothing | Choice::Frame | Choice::Stream(_) => {}
        }
        Ok((true, writable))
    }

    /// Seals what a stream has next, where it lies; whether a sender that was refused may try again.
    fn seal_next_of(&mut self, id: StreamId) -> Result<bool, LinkError> {
        let stream = self.streams.get_mut(&id).ok_or(LinkError::NoSuchStream(id))?;
        let plain = match stream.next().ok_or(LinkError::NoSuchStream(id))? {
            Part::Chunk(plain) => plain,
            Part::Close(frame) => {
                frame.encode(&mut self.scratch);
                &self.scratch
            }
        };
        #[cfg(feature = "planted")]
        self.planted.remember(plain);
        self.seal.seal(plain, &mut self.wire).map_err(LinkError::Sealed)?;
        let freed = stream.sent();
        self.streams.retain(|_, stream| !stream.is_over());
        Ok(freed)
    }

    /// Chooses what goes first, and writes it into the scratch space unless it is a stream's.
    fn choose(&mut self, now: Duration) -> Choice {
        #[cfg(feature = "planted")]
        if self.planted.repeat(&mut self.scratch) {
            return Choice::Frame;
        }
        if let Life::Leaving { reason, .. } = self.life {
            Frame::Bye { reason }.encode(&mut self.scratch);
            return Choice::Bye;
        }
        if let Some(generation) = self.outgoing.due(now, &self.limits) {
            Frame::Rekey { generation }.encode(&mut self.scratch);
            return Choice::Rekey(generation);
        }
        if let Some(frame) = self.notice() {
            frame.encode(&mut self.scratch);
            return Choice::Frame;
        }
        for priority in Priority::ALL {
            if priority == Priority::Heartbeat
                && let Some(frame) = self.beat(now)
            {
                frame.encode(&mut self.scratch);
                return Choice::Frame;
            }
            if let Some(id) = self.turn(priority) {
                return Choice::Stream(id);
            }
        }
        Choice::Nothing
    }

    /// What the peer has to know of the streams themselves.
    fn notice(&mut self) -> Option<Frame<'static>> {
        if let Some(open) = self.streams.values_mut().find_map(Stream::announce) {
            return Some(open);
        }
        let window = self.limits.window;
        let credit = self.streams.values_mut().find_map(|stream| stream.grant(window));
        #[cfg(feature = "planted")]
        if credit.is_some() && self.planted.loses_credit() {
            return None;
        }
        credit
    }

    fn beat(&mut self, now: Duration) -> Option<Frame<'static>> {
        let pong = self.pongs.pop_front().map(|token| Frame::Pong { token });
        pong.or_else(|| self.pulse.ping(now).map(|token| Frame::Ping { token }))
    }

    /// The stream of `priority` whose turn it is: the next after the one that had it last.
    fn turn(&mut self, priority: Priority) -> Option<StreamId> {
        let last = self.served.get(&priority).copied().unwrap_or(StreamId(0));
        let ready =
            |(id, stream): (&StreamId, &Stream)| (stream.priority() == priority && stream.is_ready()).then_some(*id);
        let after = self.streams.iter().filter(|(id, _)| **id > last).find_map(ready);
        let id = after.or_else(|| self.streams.iter().find_map(ready))?;
        self.served.insert(priority, id);
        Some(id)
    }

    /// Streams that have something to send and no credit for it.
    pub fn stopped(&self) -> impl Iterator<Item = StreamId> {
        self.streams.iter().filter(|(_, stream)| stream.is_stopped()).map(|(id, _)| *id)
    }

    /// Plants a defect, for the simulation to find.
    #[cfg(feature = "planted")]
    pub fn plant(&mut self, defect: crate::planted::LinkDefect) {
        self.planted.plant(defect);
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Link");
        shown.field("role", &self.role).field("peer", &self.peer.node).field("life", &self.life);
        shown.field("streams", &self.streams).finish_non_exhaustive()
    }
}

/// What opening the next message came to.
enum Opened {
    /// The bytes end within a message.
    Part(usize),
    /// A message was opened: bytes used now, bytes it had on the wire.
    Whole { consumed: usize, wire: usize },
}

/// What goes next.
#[derive(Clone, Copy)]
enum Choice {
    Nothing,
    /// A frame in the scratch space, and what follows once it is sealed.
    Frame,
    Rekey(u32),
    Bye,
    /// What the stream has next.
    Stream(StreamId),
}
