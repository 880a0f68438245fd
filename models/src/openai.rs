//! `openai/NAME`: Chat Completions, streamed, from OpenAI or any server that speaks it.
//!
//! [`request`] writes the request, [`wire`] and [`sse`] cut the response into chunks, [`chunk`] reads one, [`answer`] puts the answer
//! together, [`failure`] says what a refusal means, [`names`] and [`fence`] fit tools and untrusted text to the wire. All of that
//! is free of the network; this file alone holds the two together.

mod answer;
mod chunk;
mod failure;
mod fence;
mod names;
mod request;
mod sse;
mod wire;

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use ephor_base::{Failure, FailureKind, ModelAnswer, ModelTask, Secret};
use ephor_egress::{BaseUrl, Egress, Error, Post, Response};
use ephor_kernel::{CallContext, Permit};
use futures_util::{Stream, StreamExt, future::OptionFuture};

use self::{
    answer::Assembly,
    failure::{Complaint, Plaintiff, of_connection},
    names::Names,
    request::{Dialect, Limit},
    wire::Wire,
};
use crate::{Price, Prices, meter::Meter, scrub::Scrub, sink::Sink};

/// The host of the provider itself; its dialect and its prices are known.
const OPENAI: &str = "api.openai.com";

/// The secret that is leased.
const SECRET: &str = "openai";

/// How often a server is asked in another dialect: once for each thing that dialects differ in.
const DIALECTS: u32 = 3;

/// How many models the dialect is remembered of.
const REMEMBERED: usize = 64;

/// How much of a refusal is read.
const REFUSAL_BYTES: usize = 64 * 1024;

/// Bytes of an answer for each token it may have: more than text has on average in any language, and no more than the door believes
/// of what was set aside (twice of three). A server that passes over the limit would otherwise write until its context is full.
const BYTES_PER_TOKEN: u64 = 5;

/// Room in an event or a body for what is around the answer.
const AROUND: u64 = 64 * 1024;

/// How long a server may take, once an answer is complete, to say what it has used and that nothing more comes.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How the provider `openai` is reached.
#[derive(Clone, Debug)]
pub struct OpenAi {
    /// The base URL; `https://api.openai.com/v1` unless configured.
    pub base_url: BaseUrl,
    /// Whether a key is leased and sent, to whichever server the base URL names.
    pub needs_key: bool,
    /// What to do where there is no key, such as "set `OPENAI_API_KEY`": the end of a sentence.
    pub key_hint: String,
    /// What tokens cost, as the operator has it.
    pub prices: Prices,
    /// What the server has turned out to understand, by model.
    dialects: Arc<Mutex<BTreeMap<String, Dialect>>>,
}

/// One request, as far as an answer has to do with it.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    names: Names,
    host: String,
    key_hint: &'a str,
    scrub: &'a Scrub,
    is_local: bool,
}

impl Asking<'_> {
    fn plaintiff(&self) -> Plaintiff<'_> {
        Plaintiff { host: &self.host, key_hint: self.key_hint }
    }
}

impl OpenAi {
    /// The server at `base_url`.
    #[must_use]
    pub fn at(base_url: BaseUrl, needs_key: bool, key_hint: impl Into<String>, prices: Prices) -> Self {
        Self { base_url, needs_key, key_hint: key_hint.into(), prices, dialects: Arc::default() }
    }

    /// The price of `model` here: the operator's; or the list's, of the provider whose list it is; or a high one.
    pub(crate) fn price(&self, model: &str) -> Price {
        let listed = || if self.base_url.host() == OPENAI { Price::listed(model) } else { Price::highest() };
        self.prices.of(model).unwrap_or_else(listed)
    }

    /// What the server understands, as far as is known.
    fn dialect(&self, model: &str) -> Dialect {
        let is_openai = self.base_url.host() == OPENAI;
        let first = Dialect {
            json_mode: true,
            limit: if is_openai { Limit::MaxCompletionTokens } else { Limit::MaxTokens },
            usage_in_stream: true,
        };
        // Without the memory it is only asked once more.
        self.dialects.lock().ok().and_then(|known| known.get(model).copied()).unwrap_or(first)
    }

    fn remember(&self, model: &str, dialect: Dialect) {
        if let Ok(mut known) = self.dialects.lock()
            && (known.len() < REMEMBERED || known.contains_key(model))
        {
            known.insert(model.to_owned(), dialect);
        }
    }

    /// Asks for `task`, which is the permit's.
    pub(crate) async fn ask(
        &self,
        egress: &Egress,
        permit: &Permit,
        context: &CallContext,
        (task, sink): (&ModelTask, &mut impl Sink),
        meter: &mut Meter,
    ) -> Result<ModelAnswer, Failure> {
        let key = self.key(context).await?;
        let scrub = Scrub::new(key.as_ref());
        let asking = Asking {
            names: Names::new(&task.tools),
            host: self.base_url.host(),
            key_hint: &self.key_hint,
            scrub: &scrub,
            is_local: self.base_url.is_loopback(),
        };
        let mut dialect = self.dialect(&task.model.name);
        let mut tries = 1..=DIALECTS;
        loop {
            let post = Post {
                base: &self.base_url,
                path: "chat/completions",
                bearer: key.as_ref(),
                accept: "text/event-stream",
                json: request::body(task, &asking.names, dialect),
            };
            meter.sent();
            let response = egress.post(permit, post).await.map_err(|error| unconnected(&error, &asking, meter))?;
            if response.status == 200 {
                self.remember(&task.model.name, dialect);
                return read(task, &asking, response.body, sink, meter).await;
            }
            meter.refused();
            let (failure, complaint) = refused(response, &asking).await;
            // Nothing was done yet, so asking in another dialect is still the same call.
            let may_retry = tries.next().is_some() && failure.kind == FailureKind::Rejected;
            dialect = dialect.after(complaint.message()).filter(|_| may_retry).ok_or(failure)?;
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
}

fn unconnected(error: &Error, asking: &Asking<'_>, meter: &mut Meter) -> Failure {
    match error {
        Error::Silent { .. } | Error::Idle { .. } | Error::Broken { .. } | Error::TooLarge { .. } => {}
        Error::Forbidden(_) | Error::Over | Error::Address { .. } | Error::Setup(_) | Error::Connect { .. } => {
            meter.refused();
        }
    }
    of_connection(error, asking.is_local)
}

async fn refused(response: Response, asking: &Asking<'_>) -> (Failure, Complaint) {
    let Response { status, retry_after, mut body, .. } = response;
    let mut bytes = Vec::new();
    while let Some(Ok(piece)) = body.next().await {
        bytes.extend(piece);
        if bytes.len() > REFUSAL_BYTES {
            break;
        }
    }
    let complaint = Complaint::parse(&bytes, asking.scrub);
    (complaint.refusal(status, asking.plaintiff(), retry_after), complaint)
}

/// Reads an answer to its end, streamed or not. Once it is complete, nothing that becomes of its connection takes it back.
async fn read(
    task: &ModelTask,
    asking: &Asking<'_>,
    body: impl Stream<Item = Result<Vec<u8>, Error>> + Send,
    sink: &mut impl Sink,
    meter: &mut Meter,
) -> Result<ModelAnswer, Failure> {
    let most = task.max_output_tokens.saturating_mul(BYTES_PER_TOKEN);
    // In JSON a character may take several times its bytes.
    let most_of_chunk = most.saturating_mul(2).saturating_add(AROUND);
    let mut wire = Wire::new(usize::try_from(most_of_chunk).unwrap_or(usize::MAX));
    let mut assembly = Assembly::new(asking);
    let mut body = pin!(body);
    let mut last_words = pin!(OptionFuture::default());
    let mut hurries = false;
    while !assembly.is_done() {
        let piece = tokio::select! {
            biased;
            piece = body.next() => piece,
            Some(()) = last_words.as_mut() => break,
        };
        let chunks = match piece {
            None => break,
            Some(Err(_)) if assembly.has_finished() => break,
            Some(Err(error)) => return Err(of_connection(&error, asking.is_local)),
            Some(Ok(bytes)) => wire.push(&bytes),
        };
        for chunk in chunks.iter().flatten() {
            assembly.push(chunk, sink, meter).await?;
            if assembly.is_done() {
                break;
            }
        }
        if !assembly.has_finished() && (chunks.is_err() || meter.written() > most) {
            assembly.cut();
        }
        if assembly.has_finished() && !hurries {
            hurries = true;
            last_words.set(Some(tokio::time::sleep(LAST_WORDS)).into());
        }
    }
    if !assembly.is_done() {
        assembly.rest(wire.finish(), sink, meter).await?;
    }
    assembly.finish(task.ordinal, sink, meter).await
}
