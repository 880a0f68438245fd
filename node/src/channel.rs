//! The channel between a client and a node, over the socket of the home.
//!
//! Every byte after the first two messages is inside a Noise session whose handshake hash both credentials have signed: the node
//! signs it with the key that signs its log, the client with an operator's, and the client with each request again, together with its
//! number, its bytes and when it was signed. A process between the two has another hash on each side. It can cut the connection, and
//! keep a request back for as long as one counts, and nothing else.

mod admission;
mod sealed;

use std::{path::Path, sync::Arc, time::Duration};

use ed25519_dalek::Signer;
use ephor_base::Digest;
use serde::{Deserialize, Serialize};
use snow::{Builder, HandshakeState};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

pub(crate) use admission::{Admitted, Heard, admit};
pub(crate) use sealed::{Lost, Room};

use self::sealed::Sealed;
use crate::{
    files,
    home::Home,
    operator::Operator,
    protocol::{Answer, PROTOCOL, Request},
};
use ephor_signatures::Signatures;

/// Neither side has a static key: signatures over the handshake hash say who they are.
const PATTERN: &str = "Noise_NN_25519_ChaChaPoly_SHA256";
/// What a node signs, beside checkpoints.
const NODE_DOMAIN: &str = "socket";
/// Signed before a request, so that the signature can be taken for nothing else.
const REQUEST_DOMAIN: &[u8] = b"ephor request v2\n";
/// Bytes of an Ed25519 signature.
const SIGNATURE: usize = 64;
/// For how long after it was signed a request counts: longer than the longest may take to come.
const COUNTS: Duration = Duration::from_secs(60);
/// The longest message of either side until both are known, in bytes, and the longest greeting.
const MOST_OF_STRANGERS: usize = 1024;
/// The longest message afterwards, in bytes: room for piped input and scripts.
pub(crate) const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// The first message, from the node, as one line of JSON that every version can read.
#[derive(Serialize, Deserialize, Debug)]
#[serde(tag = "say", rename = "challenge")]
struct Greeting {
    /// [`PROTOCOL`].
    protocol: u32,
    /// The node's half of the key exchange.
    challenge: Digest,
}

/// Stands for one exchange of keys, and for each byte of it: the handshake hash, and the greeting that began it.
#[derive(Clone, Copy)]
struct Exchange(Digest);

impl Exchange {
    fn of(handshake: &HandshakeState, greeting: &[u8]) -> Self {
        Self(Digest::of(&[handshake.get_handshake_hash(), greeting].concat()))
    }

    /// What is signed with the request of this number at this moment.
    fn statement(&self, number: u64, signed: Moment, request: &[u8]) -> Vec<u8> {
        let (Self(Digest(hash)), Digest(request)) = (self, Digest::of(request));
        [REQUEST_DOMAIN, hash.as_slice(), &number.to_be_bytes(), &signed.bytes(), &request].concat()
    }
}

/// Milliseconds since the machine was started, asleep or awake. Client and node share the clock, and nobody can set it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment(u64);

/// Bytes of a moment.
const MOMENT: usize = 8;

impl Moment {
    fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let (seconds, rest) = (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
        Self(seconds.saturating_mul(1000).saturating_add(rest / 1_000_000))
    }

    const fn bytes(self) -> [u8; MOMENT] {
        self.0.to_be_bytes()
    }

    const fn of(bytes: [u8; MOMENT]) -> Self {
        Self(u64::from_be_bytes(bytes))
    }

    /// Whether what was signed at this moment counts `now`.
    fn counts(self, now: Self) -> bool {
        now.0.checked_sub(self.0).is_some_and(|age| Duration::from_millis(age) <= COUNTS)
    }
}

fn builder() -> Option<Builder<'static>> {
    Builder::new(PATTERN.parse().ok()?).prologue(b"ephor socket").ok()
}

/// The client's end of a channel to the node of its home.
pub(crate) struct Channel {
    sealed: Sealed,
    exchange: Exchange,
    /// How many requests were signed.
    number: u64,
    operator: Arc<Operator>,
}

/// A client could not come to terms with what answers on the socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unwelcome {
    /// It went away, as a node that stops does.
    #[error("the node went away")]
    Gone,
    /// It is no node.
    #[error("what answers on the socket `{0}` is not a node")]
    Foreign(String),
    /// It is a node of another version.
    #[error("the node that runs{} is another version of Ephor; end it with `{}`, and try again", process(*.0), kill(*.0))]
    Version(Option<i32>),
    /// It is not the node of this home, or the keys were changed at this moment.
    #[error(
        "what answers on the socket of the home{} does not have the keys of this home, `{}`; nothing was said to it. Find out what it is, \
         end it, and try again",
        process(*.pid), .keys
    )]
    Impostor { pid: Option<i32>, keys: String },
    /// The credential cannot be had.
    #[error(transparent)]
    Credential(anyhow::Error),
    /// It does not take this operator.
    #[error("{0}")]
    Refused(String),
}

fn process(pid: Option<i32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

fn kill(pid: Option<i32>) -> String {
    pid.map_or_else(|| "Ctrl-C where it was started".to_owned(), |pid| format!("kill {pid}"))
}

impl Channel {
    /// Comes to terms with the node of `home` on a connection. `operator` is asked for once the version fits.
    pub(crate) async fn open(
        mut stream: UnixStream,
        home: &Home,
        operator: impl FnOnce() -> anyhow::Result<Arc<Operator>>,
    ) -> Result<Self, Unwelcome> {
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let foreign = || Unwelcome::Foreign(home.socket().display().to_string());
        let greeting = greeting(&mut stream).await?;
        let Ok(Greeting { protocol, challenge: Digest(theirs) }) = serde_json::from_slice(&greeting) else {
            return Err(foreign());
        };
        if protocol != PROTOCOL {
            return Err(Unwelcome::Version(pid));
        }
        let operator = operator().map_err(Unwelcome::Credential)?;
        let (noise, mine) = respond(&theirs).ok_or_else(foreign)?;
        stream.write_all(&mine).await.map_err(|_| Unwelcome::Gone)?;
        let exchange = Exchange::of(&noise, &greeting);
        let noise = noise.into_transport_mode().map_err(|_| foreign())?;
        let mut sealed = Sealed::new(stream, noise, MOST_OF_STRANGERS);
        let signature = sealed.receive().await.map_err(|_| Unwelcome::Gone)?.ok_or(Unwelcome::Gone)?;
        if !is_of(&home.public_keys(), &exchange, &signature) {
            return Err(Unwelcome::Impostor { pid, keys: home.public_keys().display().to_string() });
        }
        sealed.allow(MAX_MESSAGE, None);
        let mut channel = Self { sealed, exchange, number: 0, operator };
        let request = Request::Authenticate { operator: channel.operator.id() };
        channel.say(&request).await.map_err(|_| Unwelcome::Gone)?;
        match channel.hear().await {
            Ok(Answer::Welcome { .. }) => Ok(channel),
            Ok(Answer::Refused { why }) => Err(Unwelcome::Refused(why)),
            Ok(_) | Err(_) => Err(Unwelcome::Gone),
        }
    }

    /// The credential that signs here.
    pub(crate) fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Says something, signed.
    pub(crate) async fn say(&mut self, request: &Request) -> Result<(), Lost> {
        let request = serde_json::to_vec(request).map_err(|_| Lost::Gone)?;
        let signed = Moment::now();
        let statement = self.exchange.statement(self.number, signed, &request);
        self.number = self.number.checked_add(1).ok_or(Lost::Gone)?;
        let signature = self.operator.key().sign(&statement).to_bytes();
        self.sealed.send([signature.as_slice(), &signed.bytes(), &request].concat()).await
    }

    /// Hears the next answer. Safe to drop while it waits.
    pub(crate) async fn hear(&mut self) -> Result<Answer, Lost> {
        let message = self.sealed.receive().await?.ok_or(Lost::Gone)?;
        serde_json::from_slice(&message).map_err(|_| Lost::Unknown)
    }
}

/// The first message of a node, without its end.
async fn greeting(stream: &mut UnixStream) -> Result<Vec<u8>, Unwelcome> {
    let mut line = Vec::with_capacity(MOST_OF_STRANGERS);
    while line.len() < MOST_OF_STRANGERS && line.last() != Some(&b'\n') {
        let mut rest = (&mut *stream).take(u64::try_from(MOST_OF_STRANGERS - line.len()).unwrap_or(0));
        // A node that is stopping may close the connection before it says anything.
        if rest.read_buf(&mut line).await.map_err(|_| Unwelcome::Gone)? == 0 {
            return Err(Unwelcome::Gone);
        }
    }
    Ok(line)
}

/// The client's half of the key exchange.
fn respond(theirs: &[u8]) -> Option<(HandshakeState, Vec<u8>)> {
    let mut noise = builder()?.build_responder().ok()?;
    noise.read_message(theirs, &mut []).ok()?;
    let mut mine = vec![0; MOST_OF_STRANGERS];
    let length = noise.write_message(&[], &mut mine).ok()?;
    mine.truncate(length);
    Some((noise, mine))
}

/// Whether the keys of the home have signed this exchange.
fn is_of(public: &Path, exchange: &Exchange, signature: &[u8]) -> bool {
    files::public_keys(public).is_ok_and(|keys| keys.vouches(NODE_DOMAIN, &exchange.0, signature, &Signatures))
}
