//! The node's end of a channel.

use ephor_base::{Digest, OperatorId};
use ephor_chain::SigningKeys;
use snow::HandshakeState;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

use super::{
    COUNTS, Exchange, Greeting, Lost, MAX_MESSAGE, MOST_OF_STRANGERS, Moment, NODE_DOMAIN, Room, SIGNATURE, builder,
    sealed::Sealed,
};
use crate::protocol::{Answer, PROTOCOL, Request};

/// Bytes of the client's half of the key exchange: its key, and the tag of nothing. The node's has no tag.
const HALF: usize = 32 + 16;

/// The node's end of a channel to a client whose operator is known.
pub(crate) struct Admitted {
    sealed: Sealed,
    exchange: Exchange,
    /// How many requests were heard.
    number: u64,
    operator: OperatorId,
}

/// What comes from a client.
pub(crate) enum Heard {
    /// A request, with the signature of the operator over it and its place.
    Request(Box<Request>),
    /// Something signed that is no request.
    Garbled(String),
    /// Nothing more, or nothing that could be trusted; and what the client is told of that.
    Over(Option<String>),
}

/// Says who this node is, and hears who the client is; nothing where they do not come to terms. Who is admitted is not told so yet. Whoever it is takes a few kilobytes
/// until then. `is_signed` says whether a statement has the signature of an operator in office.
pub(crate) async fn admit(
    mut stream: UnixStream,
    keys: &SigningKeys,
    room: Room,
    is_signed: impl Fn(OperatorId, &[u8], &[u8]) -> bool,
) -> Option<Admitted> {
    let (mut noise, challenge) = begin()?;
    let mut greeting = serde_json::to_vec(&Greeting { protocol: PROTOCOL, challenge }).ok()?;
    greeting.push(b'\n');
    stream.write_all(&greeting).await.ok()?;
    let mut theirs = [0; HALF];
    stream.read_exact(&mut theirs).await.ok()?;
    noise.read_message(&theirs, &mut []).ok()?;
    let exchange = Exchange::of(&noise, &greeting);
    let mut sealed = Sealed::new(stream, noise.into_transport_mode().ok()?, MOST_OF_STRANGERS);
    sealed.send(keys.vouch(NODE_DOMAIN, &exchange.0).to_vec()).await.ok()?;
    let message = sealed.receive().await.ok()??;
    let (signature, signed, said) = parts(&message)?;
    let Ok(Request::Authenticate { operator }) = serde_json::from_slice(said) else { return None };
    let mut admitted = Admitted { sealed, exchange, number: 1, operator };
    if !signed.counts(Moment::now()) || !is_signed(operator, &exchange.statement(0, signed, said), signature) {
        admitted.say(&Answer::Refused { why: "not an operator of this node".to_owned() }).await.ok()?;
        return None;
    }
    admitted.sealed.allow(MAX_MESSAGE, Some(room));
    Some(admitted)
}

/// The signature of a message, when it was made, and what it is over.
fn parts(message: &[u8]) -> Option<(&[u8; SIGNATURE], Moment, &[u8])> {
    let (signature, rest) = message.split_first_chunk()?;
    let (signed, said) = rest.split_first_chunk()?;
    Some((signature, Moment::of(*signed), said))
}

/// The node's half of the key exchange.
fn begin() -> Option<(HandshakeState, Digest)> {
    let mut noise = builder()?.build_initiator().ok()?;
    let mut half = [0; HALF];
    let length = noise.write_message(&[], &mut half).ok()?;
    let half = half.get(..length)?.try_into().ok()?;
    Some((noise, Digest(half)))
}

impl Admitted {
    /// Who the client is.
    pub(crate) const fn operator(&self) -> OperatorId {
        self.operator
    }

    /// Hears the next request. Safe to drop while it waits.
    pub(crate) async fn hear(&mut self, is_signed: impl Fn(OperatorId, &[u8], &[u8]) -> bool) -> Heard {
        let message = match self.sealed.receive().await {
            Ok(Some(message)) => message,
            Err(error @ (Lost::TooLong | Lost::Slow)) => return Heard::Over(Some(error.to_string())),
            Ok(None) | Err(_) => return Heard::Over(None),
        };
        let Some((signature, signed, said)) = parts(&message) else { return Heard::Over(None) };
        let statement = self.exchange.statement(self.number, signed, said);
        let Some(next) = self.number.checked_add(1) else { return Heard::Over(None) };
        self.number = next;
        if !is_signed(self.operator, &statement, signature) {
            // The session holds, so this was said by the client that came in: its credential counts no more.
            return Heard::Over(Some("not an operator of this node any more".to_owned()));
        }
        if !signed.counts(Moment::now()) {
            let why = format!("the request took more than {} s to come; try again", COUNTS.as_secs());
            return Heard::Over(Some(why));
        }
        match serde_json::from_slice(said) {
            Ok(request) => Heard::Request(Box::new(request)),
            Err(error) => Heard::Garbled(format!("not a request: {error}")),
        }
    }

    /// Says something; an error if the client is gone.
    pub(crate) async fn say(&mut self, answer: &Answer) -> Result<(), Lost> {
        let answer = serde_json::to_vec(answer).map_err(|error| {
            tracing::error!(%error, "an answer could not be written");
            Lost::Gone
        })?;
        match self.sealed.send(answer).await {
            Err(error @ Lost::TooLong) => {
                let why = format!("the answer is too long to be said: {error}");
                let refused = serde_json::to_vec(&Answer::Refused { why }).map_err(|_| Lost::Gone)?;
                self.sealed.send(refused).await
            }
            sent => sent,
        }
    }
}
