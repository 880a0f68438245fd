//! The transport over HTTP: each message is posted, and its answer comes with the response.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::{StreamExt, future::BoxFuture, stream::BoxStream};

use super::{
    error::{CallError, HttpFault},
    link::{Shared, Waiting, breathe},
};
use crate::{
    exchange::{Channel, Closed, Progress},
    limits::Limits,
    revision::Revision,
    untrusted::{Untrusted, beginning},
    wire::{Events, Returned},
};

/// Why a transport of the caller has failed.
pub type PostError = Box<dyn Error + Send + Sync>;

/// The way to the one address of a server. It makes the connection, and adds what the configuration says: the address, headers, secrets.
pub trait Post: Send + Sync {
    /// Posts `body` with `headers`, which are plain ASCII and have names in lower case. Redirects are not to be followed.
    ///
    /// If the future or the stream of the response is dropped, the connection of this request is to be closed.
    fn post(&self, headers: Vec<(String, String)>, body: Vec<u8>) -> BoxFuture<'_, Result<Response, PostError>>;
}

/// A response whose body is still to come.
pub struct Response {
    /// The status.
    pub status: u16,
    /// The headers; of those used here the first of a name counts, in any case of its letters.
    pub headers: Vec<(String, String)>,
    /// The body, in pieces of any size that the caller bounds.
    pub body: BoxStream<'static, Result<Bytes, PostError>>,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        let named = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// The type of the body, without parameters.
    fn kind(&self) -> String {
        let whole = self.header("content-type").unwrap_or_default();
        beginning(whole.split(';').next().unwrap_or_default().trim(), 128).to_ascii_lowercase()
    }
}

/// The most characters of a session's identifier.
const SESSION_BYTES: usize = 1024;

/// The most bytes of a refusal's body that are read.
const REFUSAL_BYTES: usize = 64 << 10;

/// What was agreed on, as headers say it.
#[derive(Clone, Default)]
struct Agreement {
    revision: Option<Revision>,
    session: Option<String>,
}

/// A server behind HTTP.
pub(super) struct HttpLink {
    pub(super) shared: Shared,
    post: Arc<dyn Post>,
    agreement: Mutex<Agreement>,
}

impl HttpLink {
    pub(super) fn new(post: Arc<dyn Post>, limits: Limits) -> Self {
        Self { shared: Shared::new(limits), post, agreement: Mutex::default() }
    }

    fn agreement(&self) -> Agreement {
        self.agreement.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn agree(&self, revision: Revision) {
        self.agreement.lock().unwrap_or_else(PoisonError::into_inner).revision = Some(revision);
    }

    /// Keeps the session that the answer to `initialize` names.
    fn begin(&self, response: &Response) -> Result<(), HttpFault> {
        let Some(session) = response.header("mcp-session-id") else { return Ok(()) };
        if !(1..=SESSION_BYTES).contains(&session.len()) || !session.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(HttpFault::BadSession { most: SESSION_BYTES });
        }
        self.agreement.lock().unwrap_or_else(PoisonError::into_inner).session = Some(session.to_owned());
        Ok(())
    }

    fn headers(&self) -> Vec<(String, String)> {
        let Agreement { revision, session } = self.agreement();
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut headers =
            vec![own("content-type", "application/json"), own("accept", "application/json, text/event-stream")];
        headers.extend(revision.map(|revision| own("mcp-protocol-version", revision.as_str())));
        headers.extend(session.map(|session| own("mcp-session-id", &session)));
        headers
    }

    async fn send(&self, headers: Vec<(String, String)>, body: Vec<u8>) -> Result<Response, HttpFault> {
        self.post.post(headers, body).await.map_err(|error| HttpFault::Unreachable(error.into()))
    }

    /// Posts what has no answer.
    pub(super) async fn tell(&self, body: Vec<u8>) -> Result<(), HttpFault> {
        let response = self.send(self.headers(), body).await?;
        if (200..300).contains(&response.status) { Ok(()) } else { Err(self.fault(response).await) }
    }

    /// Posts what waits to be written: cancellations, and answers to requests of the server. A server that does not take them is left
    /// alone with it.
    async fn flush(&self) {
        while let Some(body) = self.shared.with(|exchange| exchange.next_out()) {
            let _ = self.tell(body).await;
        }
    }

    /// Posts a request and reads its response up to the answer.
    pub(super) async fn ask(
        &self,
        waiting: &Waiting<'_>,
        revision: Revision,
        method: &str,
        own: Vec<(String, String)>,
        body: Vec<u8>,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Returned, CallError> {
        self.flush().await;
        let mut headers = self.headers();
        if revision.is_stateless() {
            headers.retain(|(name, _)| name != "mcp-protocol-version");
            headers.push(("mcp-protocol-version".to_owned(), revision.as_str().to_owned()));
            headers.push(("mcp-method".to_owned(), method.to_owned()));
            headers.extend(own);
        }
        let response = self.send(headers, body).await?;
        if !(200..300).contains(&response.status) {
            return self.refused(waiting, response, progress).await;
        }
        if method == "initialize" {
            self.begin(&response)?;
        }
        match response.kind().as_str() {
            "application/json" => self.whole(waiting, response, progress).await,
            "text/event-stream" => self.events(waiting, response, progress).await,
            "" => Err(HttpFault::NoAnswer.into()),
            _ => Err(HttpFault::Kind { kind: Untrusted::new(response.kind()) }.into()),
        }
    }

    /// The answer in a body that is one message.
    async fn whole(
        &self,
        waiting: &Waiting<'_>,
        response: Response,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Returned, CallError> {
        let body = body(response, self.shared.limits.message_bytes).await?;
        let mut channel = Channel::of(waiting.id);
        let malformed = self.shared.with(|exchange| exchange.take(&mut channel, &body))?;
        match (waiting.look(None, progress), malformed) {
            (Some(end), _) => Ok(end?),
            (None, Some(malformed)) => Err(malformed.into()),
            (None, None) => Err(HttpFault::NoAnswer.into()),
        }
    }

    /// The answer in a stream of events.
    async fn events(
        &self,
        waiting: &Waiting<'_>,
        mut response: Response,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Returned, CallError> {
        let mut events = Events::new(self.shared.limits.message_bytes);
        let mut channel = Channel::of(waiting.id);
        while let Some(piece) = response.body.next().await {
            let piece = piece.map_err(|error| HttpFault::Broken(error.into()))?;
            let taken =
                events.push(&piece, |data| self.shared.with(|exchange| exchange.take(&mut channel, data)).map(drop));
            if let Some(end) = waiting.look(None, progress) {
                return Ok(end?);
            }
            taken?;
            self.flush().await;
            breathe().await;
        }
        match events.unfinished() {
            0 => Err(HttpFault::NoAnswer.into()),
            bytes => Err(Closed::MidMessage { bytes }.into()),
        }
    }

    /// A response that is no success: JSON-RPC's refusal if there is one in it.
    async fn refused(
        &self,
        waiting: &Waiting<'_>,
        response: Response,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Returned, CallError> {
        let over = response.status == 404 && self.agreement().session.is_some();
        if over || response.kind() != "application/json" || matches!(response.status, 300..=399 | 401 | 403) {
            return Err(self.fault(response).await.into());
        }
        let status = response.status;
        let body = start(response, REFUSAL_BYTES).await;
        let mut channel = Channel::of(waiting.id);
        self.shared.with(|exchange| exchange.take(&mut channel, &body))?;
        match waiting.look(None, progress) {
            Some(end) => Ok(end?),
            None => Err(HttpFault::Status { status, says: self.says(&body) }.into()),
        }
    }

    async fn fault(&self, response: Response) -> HttpFault {
        let status = response.status;
        match status {
            300..=399 => HttpFault::Redirect { status },
            401 | 403 => HttpFault::Unauthorized { status },
            404 if self.agreement().session.is_some() => HttpFault::SessionOver,
            _ => HttpFault::Status { status, says: self.says(&start(response, self.shared.limits.text_bytes).await) },
        }
    }

    fn says(&self, body: &[u8]) -> Untrusted<String> {
        Untrusted::new(beginning(&String::from_utf8_lossy(body), self.shared.limits.text_bytes))
    }
}

/// A whole body.
async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, CallError> {
    let mut body = Vec::new();
    while let Some(piece) = response.body.next().await {
        let piece = piece.map_err(|error| HttpFault::Broken(error.into()))?;
        if piece.len() > most.saturating_sub(body.len()) {
            return Err(Closed::TooLong { most }.into());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The beginning of a body, as far as it comes.
async fn start(mut response: Response, most: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(Ok(piece)) = response.body.next().await {
        let room = most.saturating_sub(body.len()).min(piece.len());
        body.extend_from_slice(piece.get(..room).unwrap_or_default());
        if body.len() >= most {
            break;
        }
    }
    body
}
