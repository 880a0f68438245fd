//! `NAME/MODEL`: a model of a provider, asked over HTTP.
//!
//! [`request`] makes the request of a task and [`reading`] the answer of a response, both by `ephor_wire`, which has the grammars. [`state`] keeps
//! what a provider wants back, [`learnt`] what a token is, [`failure`] says why there is no answer, [`fence`] shows untrusted text as data. This file alone holds them and the
//! network together.

mod failure;
mod fence;
mod kind;
mod learnt;
mod reading;
mod request;
mod state;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use ephor_base::{Failure, FailureKind, ModelAnswer, ModelTask, Secret, Timestamp};
use ephor_egress::{BaseUrl, Egress, Error, Key, Post, Response};
use ephor_kernel::{CallContext, Permit};
use ephor_wire::{Complaint, Dialect, Encoded, Recourse, encode};
use futures_util::StreamExt;

pub use self::kind::Kind;
use self::learnt::Learnt;
use crate::{Price, Prices, meter::Meter, scrub::Scrub, sink::Sink};

/// How often a server is asked in another dialect within one call.
const DIALECTS: u32 = 4;

/// How many models the dialect is remembered of.
const REMEMBERED: usize = 64;

/// How much of a refusal is read.
const REFUSAL_BYTES: usize = 64 * 1024;

/// What an operator says of a provider.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its name, which models are named by: `NAME/model`.
    pub name: String,
    /// The API that it has.
    pub kind: Kind,
    /// The base URL.
    pub base_url: BaseUrl,
    /// The secrets that are its keys. Of several the next is taken where a server has had enough of one.
    pub keys: Vec<String>,
    /// What to do where there is no key, such as "set `OPENAI_API_KEY`": the end of a sentence.
    pub key_hint: String,
    /// Headers that are sent with each request, by name.
    pub headers: Vec<(String, String)>,
    /// What tokens cost.
    pub prices: Prices,
    /// What stands before the keys of its configuration, where a failure names one: such as `providers.NAME`.
    pub configured_as: String,
}

/// A provider, and its own way out: its policy names no other origin.
#[derive(Debug)]
pub struct Provider {
    named: Named,
    egress: Egress,
    /// What the server has turned out to understand, by model.
    dialects: Mutex<BTreeMap<String, Dialect>>,
    learnt: Learnt,
    /// The key that is taken first.
    first: AtomicUsize,
}

/// One call, as far as its answer and its failures have to do with it.
#[derive(Clone, Copy, Debug)]
struct Asking<'a> {
    kind: Kind,
    /// As the configuration names it.
    name: &'a str,
    host: &'a str,
    key_hint: &'a str,
    scrub: &'a Scrub,
    is_local: bool,
}

/// What a server that gives no answer leaves to be done.
enum Refused {
    /// Nothing in this call.
    Failed(Failure),
    /// It does not understand the request: it may be asked in this dialect.
    Dialect(Dialect, Failure),
    /// It has had enough of this key.
    Key(Failure),
}

impl Provider {
    /// The provider `named`, reached through `egress`, whose policy names its base URL and no other.
    #[must_use]
    pub fn new(named: Named, egress: Egress) -> Self {
        Self { named, egress, dialects: Mutex::default(), learnt: Learnt::default(), first: AtomicUsize::new(0) }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.named.name
    }

    /// The host that is asked.
    pub(crate) fn host(&self) -> String {
        self.named.base_url.host()
    }

    /// The price of `model` here: the operator's; or the list's, of the provider whose list it is; or a high one. What Ollama serves on this machine
    /// is free.
    pub(crate) fn price(&self, model: &str) -> Price {
        let Named { kind, base_url, prices, .. } = &self.named;
        let listed = || match kind {
            Kind::Ollama if base_url.is_loopback() => Price::FREE,
            kind if kind.is_official(base_url) => Price::listed(model),
            _ => Price::highest(),
        };
        prices.of(model).unwrap_or_else(listed)
    }

    /// The tokens of so many bytes that `model` is shown.
    pub(crate) fn tokens(&self, model: &str, bytes: usize) -> u64 {
        self.learnt.tokens(model, bytes)
    }

    /// What the server understands, as far as is known.
    fn dialect(&self, model: &str) -> Dialect {
        let known = self.dialects.lock().ok().and_then(|known| known.get(model).copied());
        // Without the memory it is only asked once more.
        known.unwrap_or_else(|| self.named.kind.dialect(&self.named.base_url))
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
        permit: &Permit,
        context: &CallContext,
        (task, sink): (&ModelTask, &mut impl Sink),
        meter: &mut Meter,
    ) -> Result<ModelAnswer, Failure> {
        let unwritable = |bad: ephor_wire::request::BadRequest| Failure::new(FailureKind::Rejected, bad.to_string());
        let (request, host) = (request::of_task(task).map_err(unwritable)?, self.host());
        let mut keys = self.keys();
        let mut leased = Vec::new();
        leased.extend(self.lease(context, keys.next()).await?);
        let (mut dialect, mut dialects) = (self.dialect(&task.model.name), 1..=DIALECTS);
        loop {
            let scrub = Scrub::new(&leased);
            let asking = self.asking(&host, &scrub);
            let encoded = encode(self.named.kind.grammar(), dialect, &request);
            let bytes = encoded.body.len();
            let post = self.post(permit, encoded, leased.last());
            meter.sent();
            let response = post.await.map_err(|error| unconnected(&error, &asking, meter))?;
            if response.status == 200 {
                self.remember(&task.model.name, dialect);
                let answer = reading::read((task, bytes), &asking, response.body, sink, meter).await?;
                if let Some((bytes, tokens)) = meter.learnt() {
                    self.learnt.learn(&task.model.name, bytes, tokens);
                }
                return Ok(answer);
            }
            meter.refused();
            match refused(response, &asking, dialect).await {
                // Nothing was done yet, so this is still the same call.
                Refused::Dialect(other, failure) => {
                    dialects.next().ok_or(failure)?;
                    dialect = other;
                }
                Refused::Key(failure) => {
                    let next = keys.next().ok_or(failure)?;
                    leased.extend(self.lease(context, Some(next)).await?);
                    self.first.store(next, Ordering::Relaxed);
                }
                Refused::Failed(failure) => return Err(failure),
            }
        }
    }

    /// The keys by their places, that which is taken first before the others.
    fn keys(&self) -> impl Iterator<Item = usize> + Send + use<> {
        let (count, first) = (self.named.keys.len(), self.first.load(Ordering::Relaxed));
        (0..count).map(move |at| (first + at) % count)
    }

    async fn lease(&self, context: &CallContext, at: Option<usize>) -> Result<Option<Secret<String>>, Failure> {
        let Some(name) = at.and_then(|at| self.named.keys.get(at)) else { return Ok(None) };
        context.lease(name).await.map(Some).map_err(|_| {
            let (host, hint) = (self.host(), &self.named.key_hint);
            let text = format!(
                "`{host}` needs a key and none is set; {hint}, or choose `--model builtin/scout`, which needs none"
            );
            Failure::new(FailureKind::Unauthorized, text)
        })
    }

    fn asking<'a>(&'a self, host: &'a str, scrub: &'a Scrub) -> Asking<'a> {
        let Named { kind, configured_as, key_hint, base_url, .. } = &self.named;
        Asking { kind: *kind, name: configured_as, host, key_hint, scrub, is_local: base_url.is_loopback() }
    }

    async fn post(&self, permit: &Permit, request: Encoded, key: Option<&Secret<String>>) -> Result<Response, Error> {
        let Encoded { path, query, headers, body } = request;
        let auth = self.named.kind.grammar().auth();
        let own = self.named.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let post = Post {
            base: &self.named.base_url,
            path: &path,
            query,
            key: key.map(|secret| Key { header: auth.header, before: auth.before, secret }),
            headers: headers.into_iter().chain(own).collect(),
            json: body,
        };
        self.egress.post(permit, post).await
    }
}

fn unconnected(error: &Error, asking: &Asking<'_>, meter: &mut Meter) -> Failure {
    match error {
        Error::Silent { .. } | Error::Idle { .. } | Error::Broken { .. } | Error::TooLarge { .. } => {}
        Error::Forbidden(_) | Error::Over | Error::Address { .. } | Error::Setup(_) | Error::Connect { .. } => {
            meter.refused();
        }
    }
    asking.unconnected(error)
}

async fn refused(mut response: Response, asking: &Asking<'_>, dialect: Dialect) -> Refused {
    let mut bytes = Vec::new();
    while let Some(Ok(piece)) = response.body.next().await {
        bytes.extend(piece);
        if bytes.len() > REFUSAL_BYTES {
            break;
        }
    }
    let said = ["retry-after-ms", "x-should-retry"].map(|name| (name, response.header(name).unwrap_or_default()));
    // A date was counted from that of the response already, so no clock is needed.
    let complaint = Complaint::of_response(response.status, &said, &bytes, Timestamp(0));
    let failure = asking.complained(&complaint, response.retry_after);
    match (complaint.kind(), complaint.recourse()) {
        (_, Recourse::OtherKey(_)) => Refused::Key(failure),
        (FailureKind::Rejected, _) => match dialect.after(complaint.message()) {
            Some(other) => Refused::Dialect(other, failure),
            None => Refused::Failed(failure),
        },
        _ => Refused::Failed(failure),
    }
}

#[cfg(test)]
impl<'a> Asking<'a> {
    const fn of_test(kind: Kind, scrub: &'a Scrub) -> Self {
        Asking { kind, name: "providers.x", host: "h", key_hint: "set KEY", scrub, is_local: false }
    }
}

#[cfg(test)]
mod tests;
