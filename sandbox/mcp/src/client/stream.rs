//! The transport over a pair of byte streams: one message a line.

use std::{io, pin::pin, sync::Arc};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::link::{Shared, breathe};
use crate::{
    exchange::{Channel, Closed},
    wire::Lines,
};

/// The bytes that are read at a time.
const CHUNK: usize = 16 << 10;

/// The answers that may lie unread before nothing more is read from the server: each may be as large as a message.
const UNCLAIMED: usize = 4;

/// What reads and writes a server's streams: a future, to be run by the process that owns the server. Without it nothing happens; once it
/// is dropped, every request has ended.
pub struct Driver<R, W> {
    reader: R,
    writer: W,
    shared: Stopping,
}

/// Ends all requests, however the driver ends.
struct Stopping(Arc<Shared>);

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.with(|exchange| exchange.close(&Closed::Stopped));
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Driver<R, W> {
    pub(super) const fn new(reader: R, writer: W, shared: Arc<Shared>) -> Self {
        Self { reader, writer, shared: Stopping(shared) }
    }

    /// Reads and writes until the server ends, breaks the bounds, or the last client is dropped; says why.
    pub async fn run(self) -> Closed {
        let Self { mut reader, mut writer, shared } = self;
        let why = {
            let (read, write) = (pin!(read(&shared.0, &mut reader)), pin!(write(&shared.0, &mut writer)));
            tokio::select! {
                biased;
                why = read => why,
                why = write => why,
            }
        };
        shared.0.with(|exchange| exchange.close(&why));
        why
    }
}

async fn read(shared: &Shared, reader: &mut (impl AsyncRead + Unpin)) -> Closed {
    let mut chunk = vec![0; CHUNK];
    let mut lines = Lines::new(shared.limits.message_bytes);
    let mut channel = Channel::default();
    loop {
        while shared.with(|exchange| exchange.unclaimed()) >= UNCLAIMED {
            shared.claimed.notified().await;
        }
        let bytes = match reader.read(&mut chunk).await {
            Ok(0) if lines.unfinished() == 0 => return Closed::Ended,
            Ok(0) => return Closed::MidMessage { bytes: lines.unfinished() },
            Ok(count) => chunk.get(..count).unwrap_or_default(),
            Err(error) => return Closed::Read(Arc::new(error)),
        };
        let taken = lines.push(bytes, |line| shared.with(|exchange| exchange.take(&mut channel, line)).map(drop));
        if let Err(why) = taken {
            return why;
        }
        breathe().await;
    }
}

async fn write(shared: &Shared, writer: &mut (impl AsyncWrite + Unpin)) -> Closed {
    loop {
        let (next, released) = shared.with(|exchange| (exchange.next_out(), exchange.is_released()));
        let written = match next {
            Some(message) => line(writer, message).await,
            None if released => return writer.shutdown().await.map_or_else(failed, |()| Closed::Released),
            None => {
                shared.outgoing.notified().await;
                continue;
            }
        };
        if let Err(error) = written {
            return failed(error);
        }
    }
}

fn failed(error: io::Error) -> Closed {
    Closed::Write(Arc::new(error))
}

async fn line(writer: &mut (impl AsyncWrite + Unpin), mut message: Vec<u8>) -> io::Result<()> {
    message.push(b'\n');
    writer.write_all(&message).await?;
    writer.flush().await
}
