//! Messages of any length up to a limit, in the frames of a Noise session.
//!
//! A frame is its length in two bytes, and so many bytes of the session. What is sealed in it ends with one byte: whether more of
//! the same message follows.

use std::{sync::Arc, time::Duration};

use snow::TransportState;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use super::MAX_MESSAGE;

/// Bytes of a message in one frame: what Noise takes, without its tag and the last byte.
const PART: usize = 65_535 - TAG - 1;
const TAG: usize = 16;
/// Bytes of a frame's length.
const HEADER: usize = 2;
/// The last byte of what is sealed, where a message ends and where it goes on.
const END: u8 = 0;
const MORE: u8 = 1;

/// How many messages of more than a frame a node takes at the same time, from all clients together: two of them fill 32 MiB.
const LARGE: usize = 2;
/// How long such a message may take to come whole. A client that stops in the middle keeps the room from others no longer.
const ARRIVAL: Duration = Duration::from_secs(20);

/// Why a channel is of no more use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Lost {
    /// The other side is gone, or its system does not say.
    #[error("the other side is gone")]
    Gone,
    /// A message was longer than this side takes, or may send.
    #[error("a message has at most {MAX_MESSAGE} bytes")]
    TooLong,
    /// A long message did not come whole.
    #[error("a message of more than 64 KiB comes whole within {} s", ARRIVAL.as_secs())]
    Slow,
    /// Something was not what the other side sent.
    #[error("what came is not what the other side said")]
    Changed,
    /// It is what the other side sent, and this side does not know it.
    #[error("the node says something that this version does not know")]
    Unknown,
}

/// The room for long messages, which all connections of a node share. A short one needs none.
#[derive(Clone)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LARGE)))
    }
}

/// A connection on which keys were exchanged.
pub(super) struct Sealed {
    stream: UnixStream,
    noise: TransportState,
    /// The longest message that is taken.
    most: usize,
    /// Where room for a long message is had; nothing on the side of a client.
    room: Option<Room>,
    /// The room that the last message has, or the one that is coming, and until when it may come.
    taken: Option<(OwnedSemaphorePermit, Instant)>,
    /// What came and was not opened yet: less than one frame, and what was read with it.
    came: Vec<u8>,
    /// What was opened of a message.
    opened: Vec<u8>,
    /// The message that is leaving, and how much of it was sealed.
    leaving: (Vec<u8>, usize),
    is_leaving: bool,
    /// The frame that is leaving, and how much of it has left.
    frame: (Vec<u8>, usize),
}

impl Sealed {
    pub(super) fn new(stream: UnixStream, noise: TransportState, most: usize) -> Self {
        let (came, opened, leaving, frame) = <_>::default();
        Self { stream, noise, most, room: None, taken: None, came, opened, leaving, is_leaving: false, frame }
    }

    /// Takes messages of so many bytes from here on, the long ones only where there is room.
    pub(super) fn allow(&mut self, most: usize, room: Option<Room>) {
        (self.most, self.room) = (most, room);
    }

    /// The next message; nothing at the end. The one before has been dealt with. Safe to drop while it waits.
    pub(super) async fn receive(&mut self) -> Result<Option<Vec<u8>>, Lost> {
        self.dealt_with();
        loop {
            if let Some(message) = self.open()? {
                return Ok(Some(message));
            }
            self.make_room().await?;
            // Reading takes no more than there is room for, so strangers fill no more than this.
            self.came.reserve(self.most.min(HEADER + PART + 1 + TAG));
            let read = self.stream.read_buf(&mut self.came);
            let read = match &self.taken {
                Some((_, until)) => timeout_at(*until, read).await.map_err(|_| Lost::Slow)?,
                None => read.await,
            };
            match read {
                Ok(0) if self.came.is_empty() && self.opened.is_empty() => return Ok(None),
                Ok(0) | Err(_) => return Err(Lost::Gone),
                Ok(_) => {}
            }
        }
    }

    /// The last message is dealt with, unless another is coming already: it is answered, or the next is asked for.
    fn dealt_with(&mut self) {
        if self.opened.is_empty() {
            self.taken = None;
        }
    }

    /// Waits until there is room for the rest of a message of which one frame has come.
    async fn make_room(&mut self) -> Result<(), Lost> {
        if let Some(Room(room)) = &self.room
            && self.taken.is_none()
            && !self.opened.is_empty()
        {
            let permit = room.clone().acquire_owned().await.map_err(|_| Lost::Gone)?;
            self.taken = Some((permit, Instant::now() + ARRIVAL));
        }
        Ok(())
    }

    /// Opens frames until a message is whole; nothing if more has to come.
    fn open(&mut self) -> Result<Option<Vec<u8>>, Lost> {
        loop {
            let Some((length, rest)) = self.came.split_first_chunk::<HEADER>() else { return Ok(None) };
            let length = usize::from(u16::from_be_bytes(*length));
            if length > self.most.saturating_add(1 + TAG) {
                return Err(Lost::TooLong);
            }
            if length < 1 + TAG {
                return Err(Lost::Changed);
            }
            let Some(frame) = rest.get(..length) else { return Ok(None) };
            let before = self.opened.len();
            self.opened.resize(before + length, 0);
            let into = self.opened.get_mut(before..).unwrap_or_default();
            let opened = self.noise.read_message(frame, into).map_err(|_| Lost::Changed)?;
            self.opened.truncate(before + opened);
            self.came.drain(..HEADER + length);
            let more = self.opened.pop();
            if self.opened.len() > self.most {
                return Err(Lost::TooLong);
            }
            match more {
                Some(END) => return Ok(Some(std::mem::take(&mut self.opened))),
                Some(MORE) => {}
                Some(_) | None => return Err(Lost::Changed),
            }
        }
    }

    /// Sends a message. One that was dropped while it left is finished before the next.
    pub(super) async fn send(&mut self, message: Vec<u8>) -> Result<(), Lost> {
        if message.len() > MAX_MESSAGE {
            return Err(Lost::TooLong);
        }
        self.dealt_with();
        self.flush().await?;
        (self.leaving, self.is_leaving) = ((message, 0), true);
        self.flush().await
    }

    async fn flush(&mut self) -> Result<(), Lost> {
        loop {
            let (frame, left) = &mut self.frame;
            match frame.get(*left..).filter(|rest| !rest.is_empty()) {
                Some(rest) => match self.stream.write(rest).await {
                    Ok(0) | Err(_) => return Err(Lost::Gone),
                    Ok(more) => *left += more,
                },
                None if self.is_leaving => self.seal()?,
                None => {
                    self.frame = <_>::default();
                    return Ok(());
                }
            }
        }
    }

    /// Seals the next part of the message that is leaving.
    fn seal(&mut self) -> Result<(), Lost> {
        let (message, sealed) = &mut self.leaving;
        let rest = message.get(*sealed..).unwrap_or_default();
        let part = rest.get(..PART).unwrap_or(rest);
        let (is_last, length) = (part.len() == rest.len(), part.len() + 1 + TAG);
        let plain = [part, &[if is_last { END } else { MORE }]].concat();
        *sealed += part.len();
        let (frame, left) = &mut self.frame;
        *left = 0;
        frame.clear();
        frame.extend(u16::try_from(length).map_err(|_| Lost::TooLong)?.to_be_bytes());
        frame.resize(HEADER + length, 0);
        let into = frame.get_mut(HEADER..).unwrap_or_default();
        self.noise.write_message(&plain, into).map_err(|_| Lost::Changed)?;
        if is_last {
            (self.leaving, self.is_leaving) = (<_>::default(), false);
        }
        Ok(())
    }
}
