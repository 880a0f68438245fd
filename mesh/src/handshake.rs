//! The handshake: from two strangers' bytes to a link between two chains.
//!
//! `Noise_XXpsk3_25519_AESGCM_SHA256` with an ML-KEM-768 exchange in its first two payloads, whose secret is the psk of the third
//! message. Then each side says in one sealed message which chain it is, with both signatures of that chain's keys over the final
//! handshake hash; the initiator first. There is one protocol, one version and one set of sizes: nothing is negotiated, so there
//! is nothing to downgrade, and nothing is resumed. [`Handshake`] is fed bytes and gives bytes; every message has one length,
//! which is refused before it is read if it is another.

mod credential;
mod kem;
mod noise;

use std::{sync::Arc, time::Duration};

use ephor_base::Random;
use snow::HandshakeState;

pub use self::{
    credential::CREDENTIAL,
    kem::{
        CIPHERTEXT, CiphertextBytes, ENCAPSULATION_KEY, EncapsulationBytes, Kem, KemError, MlKem768, SHARED_SECRET,
        SharedSecret,
    },
    noise::{PROTOCOL, StaticKey, libraries},
};
use crate::{
    party::{CannotSign, Claim, Distrust, HandshakeHash, Party, Role, Statement},
    seal::{LENGTH, Room, Seal, SealError, TAG},
    wire::WrongLayout,
};

/// What both sides send first: the name of the protocol in seven bytes, and the version.
pub const PREFACE: [u8; 8] = *b"ephmesh\x01";
/// Bytes of message 1: `e`, and the encapsulation key.
pub const FIRST: usize = 32 + ENCAPSULATION_KEY + TAG;
/// Bytes of message 2: `e`, `s`, and the ciphertext.
pub const SECOND: usize = 32 + (32 + TAG) + CIPHERTEXT + TAG;
/// Bytes of message 3: `s`, and an empty payload.
pub const THIRD: usize = (32 + TAG) + TAG;
/// Bytes of a sealed credential.
pub const SEALED_CREDENTIAL: usize = CREDENTIAL + TAG;
/// How long a handshake may take: a few round trips of a slow line, and the signatures.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The bytes of an encapsulation key that depend on its secret; the rest seeds a public matrix (FIPS 203, section 5.1).
const KEY_VECTOR: usize = 1152;

/// Why a handshake ended without a link. Nothing of the peer is believed then, and the connection is to be closed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The peer's first bytes are not [`PREFACE`]'s name.
    #[error("the peer speaks another protocol")]
    OtherProtocol,
    /// The peer speaks another version.
    #[error("the peer speaks version {theirs} of the protocol, this node version {ours}")]
    OtherVersion {
        /// The byte the peer sent.
        theirs: u8,
        /// The byte of [`PREFACE`].
        ours: u8,
    },
    /// A message announces another length than it has in this protocol.
    #[error("message {message} has {got} bytes, not {wanted}")]
    WrongLength {
        /// 1 to 3, then 4 for the credential.
        message: u8,
        /// The one length it has.
        wanted: usize,
        /// What was announced.
        got: usize,
    },
    /// A message does not open: it was changed, replayed from another handshake, or made with other secrets.
    #[error("message {message} does not open")]
    NotAuthentic {
        /// 1 to 3.
        message: u8,
        /// What Noise says.
        #[source]
        cause: snow::Error,
    },
    /// The peer's ML-KEM-768 key is all zeros: every listener could open the ciphertext.
    #[error("the peer's ML-KEM-768 key is all zeros")]
    ZeroKey,
    /// The ML-KEM-768 secret, or the psk made of it, is all zeros.
    #[error("the shared secret is all zeros")]
    ZeroSecret,
    /// The key encapsulation failed.
    #[error("the key encapsulation failed")]
    Kem(#[source] KemError),
    /// The credential does not open.
    #[error("the credential does not open")]
    Sealed(#[source] SealError),
    /// The credential does not have its layout.
    #[error("the credential is malformed")]
    Malformed(#[source] WrongLayout),
    /// The peer is this node: a message was sent back, or the node dialled itself.
    #[error("the peer is this node itself")]
    Reflected,
    /// The peer is not let in.
    #[error("the peer was not admitted")]
    Distrusted(#[source] Distrust),
    /// This node's chain could not sign.
    #[error("this node could not sign")]
    Signing(#[source] CannotSign),
    /// The handshake took longer than [`PATIENCE`].
    #[error("the handshake took longer than {} s", PATIENCE.as_secs())]
    TooSlow,
    /// The Noise library refused to go on; nothing of the peer caused that.
    #[error("the Noise library refused")]
    Noise(#[source] snow::Error),
    /// The handshake had ended before, with a link or with a refusal.
    #[error("the handshake is over")]
    Over,
}

/// A link that has been proven by both chains.
#[derive(Debug)]
pub struct Established {
    /// What this node is in it.
    pub role: Role,
    /// Who the peer is.
    pub peer: Claim,
    /// The final handshake hash.
    pub hash: HandshakeHash,
    /// The keys of the link.
    pub seal: Seal,
}

/// What came of some bytes.
#[derive(Debug)]
pub struct Progress {
    /// How many of the bytes were used. What is left belongs to the link.
    pub consumed: usize,
    /// The link, once there is one.
    pub link: Option<Box<Established>>,
}

/// One handshake of one connection.
pub struct Handshake {
    role: Role,
    deadline: Duration,
    kem: Box<dyn Kem>,
    state: State,
    /// What is read next, as far as it has come.
    next: Next,
    input: Vec<u8>,
}

/// What the machine waits for.
enum State {
    First(StaticKeyAndRandom),
    Second(Box<HandshakeState>),
    Third(Box<HandshakeState>),
    Credential { seal: Box<Seal>, hash: HandshakeHash },
    Over,
}

/// What a responder needs to begin, kept until a first message has come.
struct StaticKeyAndRandom {
    key: Arc<StaticKey>,
    random: Arc<dyn Random>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Preface,
    Length,
    Message,
}

impl Handshake {
    /// Dials: gives the machine, and the bytes to send first. `now` is of the monotonic clock.
    ///
    /// # Errors
    /// [`Refusal::Noise`] or [`Refusal::Kem`] if a library fails.
    pub fn initiator(
        key: &StaticKey,
        random: &Arc<dyn Random>,
        mut kem: Box<dyn Kem>,
        now: Duration,
    ) -> Result<(Self, Vec<u8>), Refusal> {
        let mut noise = noise::begin(Role::Initiator, key, random).map_err(Refusal::Noise)?;
        let public = kem.generate().map_err(Refusal::Kem)?;
        let mut out = PREFACE.to_vec();
        write(&mut noise, public.as_slice(), FIRST, &mut out)?;
        Ok((Self::new(Role::Initiator, kem, State::Second(noise), now), out))
    }

    /// Answers a connection.
    #[must_use]
    pub fn responder(key: Arc<StaticKey>, random: Arc<dyn Random>, kem: Box<dyn Kem>, now: Duration) -> Self {
        Self::new(Role::Responder, kem, State::First(StaticKeyAndRandom { key, random }), now)
    }

    fn new(role: Role, kem: Box<dyn Kem>, state: State, now: Duration) -> Self {
        let deadline = now.saturating_add(PATIENCE);
        Self { role, deadline, kem, state, next: Next::Preface, input: Vec::new() }
    }

    /// When the handshake is too slow: the caller then calls [`Handshake::receive`] with no bytes.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Takes `bytes` of the peer in. What is to be sent is appended to `out`: at most 8 kB in one call.
    ///
    /// # Errors
    /// A [`Refusal`]; the handshake is over then, and what `out` has got is not to be sent.
    pub fn receive(
        &mut self,
        now: Duration,
        bytes: &[u8],
        party: &mut dyn Party,
        out: &mut Vec<u8>,
    ) -> Result<Progress, Refusal> {
        let outcome = if now >= self.deadline { Err(Refusal::TooSlow) } else { self.take_in(bytes, party, out) };
        if !matches!(&outcome, Ok(Progress { link: None, .. })) {
            self.end();
        }
        outcome
    }

    fn end(&mut self) {
        self.state = State::Over;
        self.input = Vec::new();
    }

    fn take_in(&mut self, bytes: &[u8], party: &mut dyn Party, out: &mut Vec<u8>) -> Result<Progress, Refusal> {
        let mut rest = bytes;
        loop {
            let (message, wanted) = self.state.wanted().ok_or(Refusal::Over)?;
            let until = match self.next {
                Next::Preface => PREFACE.len(),
                Next::Length => LENGTH,
                Next::Message => wanted,
            };
            let missing = until.saturating_sub(self.input.len());
            let (taken, left) = rest.split_at_checked(missing).unwrap_or((rest, &[]));
            self.input.reserve_exact(missing);
            self.input.extend_from_slice(taken);
            rest = left;
            if self.input.len() < until {
                return Ok(Progress { consumed: bytes.len(), link: None });
            }
            let input = std::mem::take(&mut self.input);
            self.next = match self.next {
                Next::Preface => check_preface(&input).map(|()| Next::Length)?,
                Next::Length => check_length(message, wanted, &input).map(|()| Next::Message)?,
                Next::Message => {
                    if let Some(link) = self.message(&input, party, out)? {
                        let consumed = bytes.len().saturating_sub(rest.len());
                        return Ok(Progress { consumed, link: Some(Box::new(link)) });
                    }
                    Next::Length
                }
            };
        }
    }

    /// Takes one whole message in.
    fn message(
        &mut self,
        message: &[u8],
        party: &mut dyn Party,
        out: &mut Vec<u8>,
    ) -> Result<Option<Established>, Refusal> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::First(setup) => {
                let noise = self.first(&setup, message, out)?;
                self.state = State::Third(noise);
            }
            State::Second(noise) => {
                let (seal, hash) = self.second(noise, message, party, out)?;
                self.state = State::Credential { seal, hash };
            }
            State::Third(noise) => {
                let (seal, hash) = third(noise, message)?;
                self.state = State::Credential { seal, hash };
            }
            State::Credential { seal, hash } => {
                return self.credential(*seal, hash, message, party, out).map(Some);
            }
            State::Over => return Err(Refusal::Over),
        }
        Ok(None)
    }

    /// The responder takes message 1 and answers with message 2.
    fn first(
        &mut self,
        setup: &StaticKeyAndRandom,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Box<HandshakeState>, Refusal> {
        let mut noise = noise::begin(Role::Responder, &setup.key, &setup.random).map_err(Refusal::Noise)?;
        let mut key: Box<EncapsulationBytes> = Box::new([0; ENCAPSULATION_KEY]);
        read(&mut noise, 1, message, key.as_mut_slice())?;
        if key.iter().take(KEY_VECTOR).all(|byte| *byte == 0) {
            return Err(Refusal::ZeroKey);
        }
        let (ciphertext, shared) = self.kem.encapsulate(&key).map_err(Refusal::Kem)?;
        out.extend_from_slice(&PREFACE);
        write(&mut noise, ciphertext.as_slice(), SECOND, out)?;
        noise::mix(&mut noise, &shared)?;
        Ok(noise)
    }

    /// The initiator takes message 2, answers with message 3, and says who it is.
    fn second(
        &mut self,
        mut noise: Box<HandshakeState>,
        message: &[u8],
        party: &mut dyn Party,
        out: &mut Vec<u8>,
    ) -> Result<(Box<Seal>, HandshakeHash), Refusal> {
        let mut ciphertext: Box<CiphertextBytes> = Box::new([0; CIPHERTEXT]);
        read(&mut noise, 2, message, ciphertext.as_mut_slice())?;
        let shared = self.kem.decapsulate(&ciphertext).map_err(Refusal::Kem)?;
        noise::mix(&mut noise, &shared)?;
        write(&mut noise, &[], THIRD, out)?;
        let hash = noise::hash(&noise)?;
        let mut seal = Box::new(Seal::new(noise.into_transport_mode().map_err(Refusal::Noise)?));
        present(Role::Initiator, &mut seal, &hash, party, out)?;
        Ok((seal, hash))
    }

    /// Either side takes the peer's credential; the responder then says who it is.
    fn credential(
        &self,
        mut seal: Seal,
        hash: HandshakeHash,
        sealed: &[u8],
        party: &mut dyn Party,
        out: &mut Vec<u8>,
    ) -> Result<Established, Refusal> {
        let mut room = Room::new(SEALED_CREDENTIAL);
        seal.open(sealed, &mut room).map_err(Refusal::Sealed)?;
        let peer = Claim::parse(room.bytes()).map_err(Refusal::Malformed)?;
        if peer.node == party.node() {
            return Err(Refusal::Reflected);
        }
        if !party.verify(&peer, &Statement::of(self.role.other(), &hash)) {
            return Err(Refusal::Distrusted(Distrust::BadSignature));
        }
        party.admit(self.role, &peer, &hash).map_err(Refusal::Distrusted)?;
        if self.role == Role::Responder {
            present(Role::Responder, &mut seal, &hash, party, out)?;
        }
        Ok(Established { role: self.role, peer, hash, seal })
    }
}

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake").field("role", &self.role).finish_non_exhaustive()
    }
}

impl State {
    /// The number and the length of the message that is read in this state.
    const fn wanted(&self) -> Option<(u8, usize)> {
        match self {
            Self::First(_) => Some((1, FIRST)),
            Self::Second(_) => Some((2, SECOND)),
            Self::Third(_) => Some((3, THIRD)),
            Self::Credential { .. } => Some((4, SEALED_CREDENTIAL)),
            Self::Over => None,
        }
    }
}

/// The responder takes message 3.
fn third(mut noise: Box<HandshakeState>, message: &[u8]) -> Result<(Box<Seal>, HandshakeHash), Refusal> {
    read(&mut noise, 3, message, &mut [])?;
    let hash = noise::hash(&noise)?;
    Ok((Box::new(Seal::new(noise.into_transport_mode().map_err(Refusal::Noise)?)), hash))
}

/// Seals this node's own credential.
fn present(
    role: Role,
    seal: &mut Seal,
    hash: &HandshakeHash,
    party: &mut dyn Party,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let signatures = party.sign(&Statement::of(role, hash)).map_err(Refusal::Signing)?;
    let introduction = party.introduce(role, hash);
    let claim = Claim { node: party.node(), keys: party.keys(), signatures, introduction };
    let mut room = Room::new(LENGTH + SEALED_CREDENTIAL);
    seal.seal(&claim.to_bytes(), &mut room).map_err(Refusal::Sealed)?;
    out.extend_from_slice(room.bytes());
    Ok(())
}

fn check_preface(input: &[u8]) -> Result<(), Refusal> {
    let (ours, theirs) = (PREFACE.split_last(), input.split_last());
    let (Some((ours, name)), Some((theirs, other))) = (ours, theirs) else { return Err(Refusal::OtherProtocol) };
    if name != other {
        return Err(Refusal::OtherProtocol);
    }
    if ours == theirs { Ok(()) } else { Err(Refusal::OtherVersion { theirs: *theirs, ours: *ours }) }
}

fn check_length(message: u8, wanted: usize, input: &[u8]) -> Result<(), Refusal> {
    let got = input.first_chunk::<LENGTH>().map_or(0, |bytes| usize::from(u16::from_be_bytes(*bytes)));
    if got == wanted { Ok(()) } else { Err(Refusal::WrongLength { message, wanted, got }) }
}

/// Appends the next Noise message, of `length` bytes, with its length before it.
fn write(noise: &mut HandshakeState, payload: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let mut message = vec![0; length];
    let written = noise.write_message(payload, &mut message).map_err(Refusal::Noise)?;
    let header = u16::try_from(written).ok().filter(|_| written == length);
    out.extend_from_slice(&header.ok_or(Refusal::Noise(snow::Error::Input))?.to_be_bytes());
    out.append(&mut message);
    Ok(())
}

/// Reads a Noise message whose payload has the length of `payload`.
fn read(noise: &mut HandshakeState, number: u8, message: &[u8], payload: &mut [u8]) -> Result<(), Refusal> {
    let not_authentic = |cause| Refusal::NotAuthentic { message: number, cause };
    let wanted = payload.len();
    let length = noise.read_message(message, payload).map_err(not_authentic)?;
    if length == wanted { Ok(()) } else { Err(not_authentic(snow::Error::Input)) }
}
