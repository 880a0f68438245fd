//! `openai/NAME`: Chat Completions, streamed, from OpenAI or any server that speaks it.
//!
//! [`request`] writes the request, [`sse`] cuts the response into events, [`answer`] puts the answer together,
//! [`failure`] says what a refusal means, [`names`] and [`fence`] fit tools and untrusted text to the wire. All of that
//! is free of the network; this file alone holds the two together.

mod answer;
mod failure;
mod fence;
mod names;
mod request;
mod sse;

use ephor_base::{Failure, FailureKind, ModelAnswer, ModelTask, Secret};
use ephor_egress::{BaseUrl, Egress, Error, Post, Response};
use ephor_kernel::{CallContext, Permit};
use futures_util::{Stream, StreamExt};

use self::{
    answer::Assembly,
    failure::{Complaint, of_connection},
    names::Names,
    request::{Dialect, Limit},
    sse::Events,
};
use crate::{Price, meter::Meter, sink::Sink};

/// The host of the provider itself; its dialect and its prices are known.
const OPENAI: &str = "api.openai.com";

/// The secret that is leased.
const SECRET: &str = "openai";

/// How often a server is asked in another dialect: once for each thing that dialects differ in.
const DIALECTS: u32 = 2;

/// How much of a refusal is read.
const REFUSAL_BYTES: usize = 64 * 1024;

/// Bytes of an answer for each token it may have. No text comes near it; a server that passes over the limit does, and
/// would otherwise write until its context is full.
const BYTES_PER_TOKEN: u64 = 16;

/// How the provider `openai` is reached.
#[derive(Clone, Debug)]
pub struct OpenAi {
    /// The base URL; `https://api.openai.com/v1` unless configured.
    pub base_url: BaseUrl,
    /// Whether a key is leased and sent. A server on this machine usually needs none, and should not be given one.
    pub needs_key: bool,
    /// What to do where there is no key, such as "set `OPENAI_API_KEY`": the end of a sentence.
    pub key_hint: String,
    /// What tokens cost; the price list where nothing is configured.
    pub price: Option<Price>,
}

impl OpenAi {
    /// The server at `base_url`, with a key unless that is this machine.
    #[must_use]
    pub fn at(base_url: BaseUrl, key_hint: impl Into<String>) -> Self {
        Self { needs_key: !base_url.is_loopback(), base_url, key_hint: key_hint.into(), price: None }
    }

    /// The price of `model` here.
    pub(crate) fn price(&self, model: &str) -> Price {
        match self.price {
            Some(price) => price,
            None if self.base_url.is_loopback() => Price::FREE,
            None if self.base_url.host() == OPENAI => Price::listed(model),
            None => Price::highest(),
        }
    }

    fn dialect(&self) -> Dialect {
        let is_openai = self.base_url.host() == OPENAI;
        Dialect { limit: if is_openai { Limit::MaxCompletionTokens } else { Limit::MaxTokens }, usage_in_stream: true }
    }

    /// Asks for `task`, which is the permit's.
    pub(crate) async fn ask(
        &self,
        egress: &Egress,
        permit: &Permit,
        context: &CallContext,
        task: &ModelTask,
        meter: &mut Meter,
    ) -> Result<ModelAnswer, Failure> {
        let key = self.key(context).await?;
        let names = Names::new(&task.tools);
        let mut dialect = self.dialect();
        let mut tries = 1..=DIALECTS;
        loop {
            let post = Post {
                base: &self.base_url,
                path: "chat/completions",
                bearer: key.as_ref(),
                accept: "text/event-stream",
                json: request::body(task, &names, dialect),
            };
            meter.sent();
            let response = egress.post(permit, post).await.map_err(|error| self.unconnected(&error, meter))?;
            if response.status == 200 {
                return self.read(task, &names, response, &mut context.preview(), meter).await;
            }
            meter.refused();
            let (failure, complaint) = self.refused(response).await;
            // Nothing was done yet, so asking in another dialect is still the same call.
            let may_retry = tries.next().is_some() && failure.kind == FailureKind::Rejected;
            dialect = dialect.after(&complaint.message).filter(|_| may_retry).ok_or(failure)?;
        }
    }

    async fn key(&self, context: &CallContext) -> Result<Option<Secret<String>>, Failure> {
        if !self.needs_key {
            return Ok(None);
        }
        context.lease(SECRET).await.map(Some).map_err(|_| {
            let host = self.base_url.host();
            Failure::new(
                FailureKind::Unauthorized,
                format!(
                    "`{host}` needs a key and none is set; {}, or choose `--model builtin/scout`, which needs none",
                    self.key_hint
                ),
            )
        })
    }

    fn unconnected(&self, error: &Error, meter: &mut Meter) -> Failure {
        match error {
            Error::Idle { .. } | Error::Broken { .. } | Error::TooLarge { .. } => {}
            Error::Forbidden(_) | Error::Address { .. } | Error::Setup(_) | Error::Connect { .. } => meter.refused(),
        }
        let mut failure = of_connection(error);
        if matches!(error, Error::Connect { .. }) && self.base_url.is_loopback() {
            failure.message.push_str("; is the server running, and is this its port?");
        }
        failure
    }

    async fn refused(&self, response: Response) -> (Failure, Complaint) {
        let Response { status, retry_after, mut body, .. } = response;
        let mut bytes = Vec::new();
        while let Some(Ok(piece)) = body.next().await {
            bytes.extend(piece);
            if bytes.len() > REFUSAL_BYTES {
                break;
            }
        }
        let complaint = Complaint::parse(&bytes);
        let failure = complaint.refusal(status, &self.base_url.host(), retry_after.as_deref(), &self.key_hint);
        (failure, complaint)
    }

    async fn read(
        &self,
        task: &ModelTask,
        names: &Names,
        response: Response,
        sink: &mut impl Sink,
        meter: &mut Meter,
    ) -> Result<ModelAnswer, Failure> {
        let host = self.base_url.host();
        if response.content_type.starts_with("application/json") {
            read_whole(task, Assembly::new(names, &host), response.body, sink, meter).await
        } else {
            read_events(task, Assembly::new(names, &host), response.body, sink, meter).await
        }
    }
}

/// Reads an event stream to its end.
async fn read_events(
    task: &ModelTask,
    mut assembly: Assembly<'_>,
    mut body: impl Stream<Item = Result<Vec<u8>, Error>> + Unpin + Send,
    sink: &mut impl Sink,
    meter: &mut Meter,
) -> Result<ModelAnswer, Failure> {
    let most = task.max_output_tokens.saturating_mul(BYTES_PER_TOKEN);
    let mut events = Events::default();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| of_connection(&error))?;
        for data in events.push(&piece) {
            assembly.push(&data, sink, meter).await?;
            if assembly.is_done() {
                break;
            }
        }
        if meter.output_bytes() as u64 > most {
            assembly.cut();
        }
        if assembly.is_done() {
            return assembly.finish(task.ordinal, sink, meter).await;
        }
    }
    if let Some(data) = events.finish() {
        // Half an event at the end of a stream is a broken stream and not a broken protocol.
        let broken = assembly.push(&data, sink, meter).await;
        if let Err(failure) = broken
            && failure.kind != FailureKind::Rejected
        {
            return Err(failure);
        }
    }
    assembly.finish(task.ordinal, sink, meter).await
}

/// Reads a response that comes at once, because the server does not stream.
async fn read_whole(
    task: &ModelTask,
    mut assembly: Assembly<'_>,
    mut body: impl Stream<Item = Result<Vec<u8>, Error>> + Unpin + Send,
    sink: &mut impl Sink,
    meter: &mut Meter,
) -> Result<ModelAnswer, Failure> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        bytes.extend(piece.map_err(|error| of_connection(&error))?);
    }
    assembly.push(&String::from_utf8_lossy(&bytes), sink, meter).await?;
    assembly.finish(task.ordinal, sink, meter).await
}
