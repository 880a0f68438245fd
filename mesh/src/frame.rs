//! Frames: what the sealed messages of an established link hold, one each.
//!
//! A frame is a byte of kind and the fields of that kind; numbers are big-endian. There is one way to write a frame.

use std::fmt;

use crate::{
    seal::MOST_PLAIN,
    wire::{Reader, Shown, WrongLayout},
};

/// Bytes of a data frame before its chunk.
pub const DATA_HEADER: usize = 1 + 4 + 8 + 1;
/// The longest chunk of a data frame, in bytes.
pub const MOST_CHUNK: usize = MOST_PLAIN - DATA_HEADER;

const OPEN: u8 = 0x10;
const DATA: u8 = 0x11;
const CREDIT: u8 = 0x12;
const CLOSE: u8 = 0x13;
const PING: u8 = 0x20;
const PONG: u8 = 0x21;
const REKEY: u8 = 0x22;
const BYE: u8 = 0x23;

/// A stream of a link. Those that the initiator opened are odd, those of the responder even; both count up and never reuse one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(pub u32);

/// What goes first when there is more to send than the line takes. Strict: a lower one waits for a higher one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Priority {
    /// Revocations, refusals: what must not wait.
    Control,
    /// Membership.
    Heartbeat,
    /// Messages between processes.
    Data,
    /// Tiles, and whatever else can be fetched again.
    Bulk,
}

impl Priority {
    /// All four, the first first.
    pub const ALL: [Self; 4] = [Self::Control, Self::Heartbeat, Self::Data, Self::Bulk];

    const fn byte(self) -> u8 {
        match self {
            Self::Control => 0,
            Self::Heartbeat => 1,
            Self::Data => 2,
            Self::Bulk => 3,
        }
    }
}

/// What the messages of a stream are. The link carries the byte and gives it no meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Purpose(pub u8);

impl Purpose {
    /// Packets of [`crate::membership`].
    pub const MEMBERSHIP: Self = Self(1);
    /// Letters of [`crate::delivery`].
    pub const DELIVERY: Self = Self(2);
}

/// Why an end closes a link in order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Farewell {
    /// The node stops.
    Stopping,
    /// Another link to the same peer is used instead.
    Replaced,
    /// The peer was revoked.
    Revoked,
}

impl Farewell {
    const fn byte(self) -> u8 {
        match self {
            Self::Stopping => 0,
            Self::Replaced => 1,
            Self::Revoked => 2,
        }
    }
}

/// One frame. Its chunk is borrowed from the plaintext.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Opens a stream in both directions.
    Open {
        /// A new id of the sender's parity, higher than all before.
        stream: StreamId,
        /// How both ends rank it.
        priority: Priority,
        /// What its messages are.
        purpose: Purpose,
    },
    /// A piece of a message.
    Data {
        /// Where it belongs.
        stream: StreamId,
        /// What this side has sent on the stream before has taken of the credit.
        offset: u64,
        /// Whether the message ends with it.
        last: bool,
        /// At most [`MOST_CHUNK`] bytes; none only in an empty message.
        chunk: &'a [u8],
    },
    /// Raises how far the peer may send on a stream.
    Credit {
        /// Which stream.
        stream: StreamId,
        /// The offset that it may reach, higher than any before.
        limit: u64,
    },
    /// This side sends nothing more on the stream.
    Close {
        /// Which stream.
        stream: StreamId,
    },
    /// Asks for a pong.
    Ping {
        /// Comes back in it.
        token: u64,
    },
    /// Answers a ping.
    Pong {
        /// That of the ping.
        token: u64,
    },
    /// The last frame of this side under its key; the next is under the next key.
    Rekey {
        /// Counts this side's keys: the first of these is 1.
        generation: u32,
    },
    /// This side closes the link.
    Bye {
        /// Why.
        reason: Farewell,
    },
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { stream, priority, purpose } => write!(f, "Open({stream:?}, {priority:?}, {purpose:?})"),
            Self::Data { stream, offset, last, chunk } => {
                write!(f, "Data({stream:?}, at {offset}, last: {last}, {:?})", Shown(chunk.len()))
            }
            Self::Credit { stream, limit } => write!(f, "Credit({stream:?}, to {limit})"),
            Self::Close { stream } => write!(f, "Close({stream:?})"),
            Self::Ping { token } => write!(f, "Ping({token})"),
            Self::Pong { token } => write!(f, "Pong({token})"),
            Self::Rekey { generation } => write!(f, "Rekey({generation})"),
            Self::Bye { reason } => write!(f, "Bye({reason:?})"),
        }
    }
}

/// Bytes that are no frame. The peer is broken or hostile: the link ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// The first byte is no kind of frame.
    #[error("there is no frame of kind {0:#04x}")]
    UnknownKind(u8),
    /// The fields end too early, or bytes follow the last.
    #[error("the frame does not have the length of its kind")]
    WrongLength,
    /// A field has a value that it cannot have.
    #[error("a field of the frame has the value {0}, which means nothing")]
    BadValue(u8),
}

impl From<WrongLayout> for FrameError {
    fn from(WrongLayout: WrongLayout) -> Self {
        Self::WrongLength
    }
}

impl<'a> Frame<'a> {
    /// Appends the frame to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Open { stream, priority, purpose: Purpose(purpose) } => {
                head(out, OPEN, stream);
                out.extend_from_slice(&[priority.byte(), purpose]);
            }
            Self::Data { stream, offset, last, chunk } => {
                out.extend_from_slice(&data_header(stream, offset, last));
                out.extend_from_slice(chunk);
            }
            Self::Credit { stream, limit } => {
                head(out, CREDIT, stream);
                out.extend_from_slice(&limit.to_be_bytes());
            }
            Self::Close { stream } => head(out, CLOSE, stream),
            Self::Ping { token } => number(out, PING, token),
            Self::Pong { token } => number(out, PONG, token),
            Self::Rekey { generation } => {
                out.push(REKEY);
                out.extend_from_slice(&generation.to_be_bytes());
            }
            Self::Bye { reason } => out.extend_from_slice(&[BYE, reason.byte()]),
        }
    }

    /// The frame that `bytes` are.
    ///
    /// # Errors
    /// [`FrameError`] if they are none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(bytes);
        let frame = match reader.u8()? {
            OPEN => {
                let (stream, priority) = (stream(&mut reader)?, priority(reader.u8()?)?);
                Self::Open { stream, priority, purpose: Purpose(reader.u8()?) }
            }
            DATA => {
                let (stream, offset, last) = (stream(&mut reader)?, reader.u64()?, boolean(reader.u8()?)?);
                return Ok(Self::Data { stream, offset, last, chunk: reader.rest() });
            }
            CREDIT => Self::Credit { stream: stream(&mut reader)?, limit: reader.u64()? },
            CLOSE => Self::Close { stream: stream(&mut reader)? },
            PING => Self::Ping { token: reader.u64()? },
            PONG => Self::Pong { token: reader.u64()? },
            REKEY => Self::Rekey { generation: reader.u32()? },
            BYE => Self::Bye { reason: farewell(reader.u8()?)? },
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        reader.end()?;
        Ok(frame)
    }
}

/// A data frame up to its chunk.
pub(crate) const fn data_header(StreamId(stream): StreamId, offset: u64, last: bool) -> [u8; DATA_HEADER] {
    let ([a, b, c, d], [e, f, g, h, i, j, k, l]) = (stream.to_be_bytes(), offset.to_be_bytes());
    [DATA, a, b, c, d, e, f, g, h, i, j, k, l, if last { 1 } else { 0 }]
}

fn head(out: &mut Vec<u8>, kind: u8, StreamId(stream): StreamId) {
    out.push(kind);
    out.extend_from_slice(&stream.to_be_bytes());
}

fn number(out: &mut Vec<u8>, kind: u8, number: u64) {
    out.push(kind);
    out.extend_from_slice(&number.to_be_bytes());
}

fn stream(reader: &mut Reader<'_>) -> Result<StreamId, FrameError> {
    Ok(StreamId(reader.u32()?))
}

fn boolean(byte: u8) -> Result<bool, FrameError> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(FrameError::BadValue(other)),
    }
}

fn priority(byte: u8) -> Result<Priority, FrameError> {
    Priority::ALL.into_iter().find(|priority| priority.byte() == byte).ok_or(FrameError::BadValue(byte))
}

fn farewell(byte: u8) -> Result<Farewell, FrameError> {
    let all = [Farewell::Stopping, Farewell::Replaced, Farewell::Revoked];
    all.into_iter().find(|reason| reason.byte() == byte).ok_or(FrameError::BadValue(byte))
}
