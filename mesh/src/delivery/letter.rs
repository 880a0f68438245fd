//! What two deliveries say to each other: one letter is one message of a stream.

use crate::wire::{Reader, WrongLayout};

/// The longest body of a message, in bytes.
pub const MOST_BODY: usize = 1 << 20;

/// How many numbers a sender may use from its floor on. Both sides hold to it.
pub const WINDOW: u64 = 1024;

const HELLO: u8 = 0x01;
const MESSAGE: u8 = 0x02;
const ANSWER: u8 = 0x03;

/// The id of what one node remembers of its deliveries with one peer. It is drawn anew when that memory is lost, and only then.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemoryId(pub [u8; 16]);

/// The place of a message among all that its sender has sent to the peer, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Number(pub u64);

/// Why the peer did not take a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// No such process runs there.
    NoSuchProcess,
    /// The peer's policy for this node does not allow it.
    NotAllowed,
    /// The receiver has no room.
    Full,
    /// The number is below the sender's own floor, so its answer is no longer remembered.
    Forgotten,
}

impl Reason {
    const ALL: [Self; 4] = [Self::NoSuchProcess, Self::NotAllowed, Self::Full, Self::Forgotten];

    const fn byte(self) -> u8 {
        match self {
            Self::NoSuchProcess => 1,
            Self::NotAllowed => 2,
            Self::Full => 3,
            Self::Forgotten => 4,
        }
    }
}

/// What the receiver said of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// It is on the receiver's record.
    Accepted,
    /// It was not taken and never will be.
    Refused(Reason),
}

/// One letter.
pub(super) enum Letter<'a> {
    /// The first on a link, from either side.
    Hello(MemoryId),
    Message {
        number: Number,
        /// The sender has a fate for every number below this one.
        floor: Number,
        body: &'a [u8],
    },
    Answer {
        number: Number,
        answer: Answer,
    },
}

impl<'a> Letter<'a> {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello(MemoryId(id)) => [&[HELLO], id.as_slice()].concat(),
            Self::Message { number, floor, body } => {
                [&[MESSAGE], number.0.to_be_bytes().as_slice(), &floor.0.to_be_bytes(), body].concat()
            }
            Self::Answer { number, answer } => {
                let code = match answer {
                    Answer::Accepted => 0,
                    Answer::Refused(reason) => reason.byte(),
                };
                [&[ANSWER], number.0.to_be_bytes().as_slice(), &[code]].concat()
            }
        }
    }

    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, WrongLayout> {
        let mut reader = Reader::new(bytes);
        let letter = match reader.u8()? {
            HELLO => Self::Hello(MemoryId(reader.array()?)),
            MESSAGE => {
                let (number, floor) = (number(&mut reader)?, number(&mut reader)?);
                let body = reader.rest();
                let ahead = number.0.checked_sub(floor.0).filter(|ahead| *ahead < WINDOW);
                return if body.len() <= MOST_BODY && ahead.is_some() {
                    Ok(Self::Message { number, floor, body })
                } else {
                    Err(WrongLayout)
                };
            }
            ANSWER => {
                let number = number(&mut reader)?;
                Self::Answer { number, answer: answer(reader.u8()?)? }
            }
            _ => return Err(WrongLayout),
        };
        reader.end()?;
        Ok(letter)
    }
}

fn number(reader: &mut Reader<'_>) -> Result<Number, WrongLayout> {
    let number = reader.u64()?;
    if number == 0 { Err(WrongLayout) } else { Ok(Number(number)) }
}

fn answer(code: u8) -> Result<Answer, WrongLayout> {
    if code == 0 {
        return Ok(Answer::Accepted);
    }
    Reason::ALL.into_iter().find(|reason| reason.byte() == code).map(Answer::Refused).ok_or(WrongLayout)
}
