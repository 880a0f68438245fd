//! A command's output, kept within bounds.

use tokio::io::{AsyncRead, AsyncReadExt};

use super::Event;

/// Bytes that are read at a time: the capacity of a pipe.
const PIECE: usize = 64 << 10;

/// One of the two outputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
}

/// One output: its beginning, its end, and the number of bytes left out between them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Captured {
    /// The first bytes, at most half of what may be kept.
    pub head: Vec<u8>,
    /// Bytes between head and tail that were not kept.
    pub left_out: u64,
    /// The last bytes, at most half of what may be kept.
    pub tail: Vec<u8>,
}

impl Captured {
    /// The whole output; none if bytes were left out.
    #[must_use]
    pub fn whole(&self) -> Option<Vec<u8>> {
        (self.left_out == 0).then(|| [&*self.head, &*self.tail].concat())
    }
}

/// An output while it is written.
struct Keeping {
    head: Vec<u8>,
    /// Up to twice as long as what is kept, so that it is not cut with each piece.
    tail: Vec<u8>,
    left_out: u64,
    half: usize,
}

impl Keeping {
    fn take(&mut self, piece: &[u8]) {
        let room = self.half.saturating_sub(self.head.len()).min(piece.len());
        let (first, rest) = piece.split_at_checked(room).unwrap_or((piece, &[]));
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > self.half.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let beyond = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..beyond);
        // 2^64 bytes come through no pipe.
        self.left_out = self.left_out.saturating_add(u64::try_from(beyond).unwrap_or(u64::MAX));
    }

    fn done(mut self) -> Captured {
        self.cut();
        Captured { head: self.head, left_out: self.left_out, tail: self.tail }
    }
}

/// Reads to the end, and keeps at most `most` bytes. A read error ends the output.
pub(super) async fn drain(
    from: Option<impl AsyncRead + Unpin>,
    stream: Stream,
    most: usize,
    seen: &(dyn Fn(Event<'_>) + Sync),
) -> Captured {
    let mut keeping = Keeping { head: Vec::new(), tail: Vec::new(), left_out: 0, half: most.div_ceil(2) };
    let Some(mut from) = from else { return keeping.done() };
    let mut piece = vec![0; PIECE];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        let read = piece.get(..length).unwrap_or_default();
        seen(Event::Output(stream, read));
        keeping.take(read);
    }
    keeping.done()
}
