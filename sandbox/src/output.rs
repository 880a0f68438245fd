//! What a guest prints: counted, kept for the log up to a little, and ended when it is too much.

use crate::limits::LimitReached;
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

/// Bytes a guest may hand over in one write.
const WRITE_BYTES: usize = 64 * 1024;

/// Standard output and error of one call, as one stream with one limit.
#[derive(Clone)]
pub(crate) struct Printed(Arc<Mutex<Text>>);

struct Text {
    bytes: Vec<u8>,
    limit: u64,
}

impl Printed {
    pub(crate) fn new(output_bytes: u64) -> Self {
        Self(Arc::new(Mutex::new(Text { bytes: Vec::new(), limit: output_bytes })))
    }

    /// What was printed so far. Not UTF-8 where the guest was not.
    pub(crate) fn text(&self) -> String {
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&text.bytes).into_owned()
    }

    fn add(&self, more: &[u8]) -> Result<(), LimitReached> {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if (text.bytes.len() as u64).saturating_add(more.len() as u64) > text.limit {
            return Err(LimitReached::Output { output_bytes: text.limit });
        }
        text.bytes.extend_from_slice(more);
        Ok(())
    }
}

impl OutputStream for Printed {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.add(&bytes).map_err(|reached| StreamError::Trap(wasmtime::Error::new(reached)))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Printed {
    async fn ready(&mut self) {}
}

impl IsTerminal for Printed {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Printed {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for Printed {
    fn poll_write(self: Pin<&mut Self>, _context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.add(bytes).map(|()| bytes.len()).map_err(io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
