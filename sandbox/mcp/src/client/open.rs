//! From a transport to a client: which revision is spoken.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    Client, Post,
    call::{ask, nothing},
    error::{CallError, HttpFault, OpenError},
    http::HttpLink,
    link::{Link, Shared},
    stream::Driver,
};
use crate::{
    exchange::Wait,
    limits::Limits,
    revision::{Agreed, Disagreement, Revision, discovered, initialize, initialized, unsupported},
    wire::notification,
};

/// A transport over which nothing was said yet.
pub struct Connection {
    link: Arc<Link>,
}

/// How a server is greeted first. If it refuses that, the other is tried; which servers speak what is said in `docs/mcp.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Opening {
    /// With the handshake of the revisions up to 2025-11-25. Every server answers it, if only with a refusal, so that no clock is needed.
    #[default]
    Handshake,
    /// With a question of revision 2026-07-28. A server of before may leave it without an answer, or end.
    Discovery,
}

/// The code with which a server refuses a revision.
const UNSUPPORTED_REVISION: i64 = -32022;

impl Connection {
    /// Over the output and the input of a server. The driver is to be run for as long as the client is used.
    pub fn over_stream<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        output: R,
        input: W,
        limits: Limits,
    ) -> (Self, Driver<R, W>) {
        let shared = Arc::new(Shared::new(limits));
        let driver = Driver::new(output, input, Arc::clone(&shared));
        (Self { link: Arc::new(Link::Stream(shared)) }, driver)
    }

    /// Over HTTP: each message is posted.
    #[must_use]
    pub fn over_http(post: Arc<dyn Post>, limits: Limits) -> Self {
        Self { link: Arc::new(Link::Http(Box::new(HttpLink::new(post, limits)))) }
    }

    /// Agrees with the server on a revision. A server that says nothing is waited for: the deadline is the caller's.
    ///
    /// # Errors
    /// [`OpenError`]: what came of the first greeting, if the second did no better.
    pub async fn open(self, opening: Opening) -> Result<Client, OpenError> {
        let second = match opening {
            Opening::Handshake => Opening::Discovery,
            Opening::Discovery => Opening::Handshake,
        };
        let agreed = match self.greet(opening).await {
            Err(first) if is_refusal(&first) => self.greet(second).await.map_err(|_| first)?,
            other => other?,
        };
        Ok(Client::new(self.link, Arc::new(agreed)))
    }

    async fn greet(&self, opening: Opening) -> Result<Agreed, OpenError> {
        match opening {
            Opening::Handshake => self.shake_hands().await,
            Opening::Discovery => self.discover().await,
        }
    }

    async fn shake_hands(&self) -> Result<Agreed, OpenError> {
        let revision = Revision::LATEST_WITH_HANDSHAKE;
        let answered =
            ask(&self.link, revision, "initialize", initialize(), Vec::new(), Wait::Silent, &mut |_| ()).await?;
        let agreed = initialized(answered, self.link.limits())?;
        let said = notification("notifications/initialized", None);
        match &*self.link {
            Link::Stream(shared) => shared.with(|exchange| exchange.tell(said)),
            Link::Http(http) => {
                http.agree(agreed.revision);
                http.tell(said).await.map_err(CallError::Http)?;
            }
        }
        Ok(agreed)
    }

    async fn discover(&self) -> Result<Agreed, OpenError> {
        let revision = Revision::V2026_07_28;
        let wait = Wait::Cancellable;
        let answered = ask(&self.link, revision, "server/discover", nothing(), Vec::new(), wait, &mut |_| ()).await;
        match answered {
            Ok(result) => {
                let agreed = discovered(result, self.link.limits())?;
                if let Link::Http(http) = &*self.link {
                    http.agree(agreed.revision);
                }
                Ok(agreed)
            }
            Err(CallError::Refused(refusal)) if refusal.code == UNSUPPORTED_REVISION => {
                Err(unsupported(refusal.supported).into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a server that greets otherwise could have said this.
const fn is_refusal(error: &OpenError) -> bool {
    matches!(
        error,
        OpenError::Disagreement(Disagreement::Unsupported { .. })
            | OpenError::Call(CallError::Refused(_) | CallError::Http(HttpFault::Status { status: 400..=499, .. }))
    )
}
