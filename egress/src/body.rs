//! A response's bytes as they arrive.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, stream};

use crate::Error;

/// The bytes of a response, piece by piece. Dropping it closes the connection. After an error nothing more comes.
pub struct Body(Pin<Box<dyn Stream<Item = Result<Vec<u8>, Error>> + Send>>);

/// What is still to be read.
struct Rest {
    response: reqwest::Response,
    host: String,
    idle: Duration,
    limit: u64,
    read: u64,
}

impl Body {
    pub(crate) fn new(response: reqwest::Response, host: String, idle: Duration, limit: u64) -> Self {
        let rest = Rest { response, host, idle, limit, read: 0 };
        Self(Box::pin(stream::unfold(Some(rest), async |rest| {
            let mut rest = rest?;
            match rest.next().await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some(rest))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })))
    }
}

impl Rest {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let chunk = tokio::time::timeout(self.idle, self.response.chunk())
            .await
            .map_err(|_| Error::Idle { host: self.host.clone(), after: self.idle })?
            .map_err(|error| Error::Broken {
                host: self.host.clone(),
                why: Error::of(&self.host, &error).to_string(),
            })?;
        let Some(bytes) = chunk else { return Ok(None) };
        self.read = self.read.saturating_add(bytes.len() as u64);
        if self.read > self.limit {
            return Err(Error::TooLarge { host: self.host.clone(), limit: self.limit });
        }
        Ok(Some(bytes.into()))
    }
}

impl Stream for Body {
    type Item = Result<Vec<u8>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Body")
    }
}
