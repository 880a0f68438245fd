//! Noise as this protocol uses it: the pattern, the libraries below it, and what binds the ML-KEM secret to it.

use std::sync::Arc;

use ephor_base::{Digest, Random, Secret};
use snow::{
    Builder, HandshakeState,
    params::{CipherChoice, DHChoice, HashChoice},
    resolvers::{CryptoResolver, DefaultResolver, RingResolver},
    types::{Cipher, Dh, Hash},
};
use subtle::ConstantTimeEq;

use super::{Refusal, kem::SharedSecret};
use crate::{
    mac::hmac,
    party::{CONTEXT, HandshakeHash, Role},
};

/// The handshake pattern, as the Noise specification names it.
pub const PROTOCOL: &str = "Noise_XXpsk3_25519_AESGCM_SHA256";

/// Where the psk goes: at the end of the third message.
const PSK: usize = 3;

/// What the psk is derived under.
const PSK_INFO: &[u8] = b"ephor-mesh/1 psk\x01";

/// The secret half of a node's X25519 key. It has no meaning beyond its links: the chain's signatures say who a node is. Any
/// initiator is shown its public half, so a node draws a new one whenever it starts.
pub type StaticKey = Secret<[u8; 32]>;

/// AES-GCM and SHA-256 by ring, X25519 by curve25519-dalek, randomness as it is injected.
struct Libraries(Arc<dyn Random>);

impl CryptoResolver for Libraries {
    fn resolve_rng(&self) -> Option<Box<dyn snow::types::Random>> {
        Some(Box::new(Injected(Arc::clone(&self.0))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        RingResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        RingResolver.resolve_cipher(choice)
    }
}

struct Injected(Arc<dyn Random>);

impl snow::types::Random for Injected {
    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), snow::Error> {
        self.0.fill(into);
        Ok(())
    }
}

/// The cryptography of a link, for snow: what it draws comes from `random` alone.
#[must_use]
pub fn libraries(random: Arc<dyn Random>) -> Box<dyn CryptoResolver + Send> {
    Box::new(Libraries(random))
}

/// The Noise state of a new handshake.
pub(super) fn begin(role: Role, key: &StaticKey, random: &Arc<dyn Random>) -> Result<Box<HandshakeState>, snow::Error> {
    let resolver = libraries(Arc::clone(random));
    let builder = Builder::with_resolver(PROTOCOL.parse()?, resolver).prologue(CONTEXT)?;
    let builder = builder.local_private_key(key.expose())?;
    let state = match role {
        Role::Initiator => builder.build_initiator(),
        Role::Responder => builder.build_responder(),
    };
    state.map(Box::new)
}

/// The hash of the handshake so far.
pub(super) fn hash(noise: &HandshakeState) -> Result<HandshakeHash, Refusal> {
    let hash: [u8; 32] = noise.get_handshake_hash().try_into().map_err(|_| Refusal::Noise(snow::Error::Input))?;
    Ok(HandshakeHash(Digest(hash)))
}

/// Mixes the ML-KEM secret in, bound to both messages so far: HKDF-SHA256 (RFC 5869) with the handshake hash after message 2 as
/// its salt.
pub(super) fn mix(noise: &mut HandshakeState, shared: &SharedSecret) -> Result<(), Refusal> {
    let HandshakeHash(Digest(salt)) = hash(noise)?;
    refuse_zeros(shared)?;
    let extracted = Secret::new(hmac(&salt, shared.expose()));
    let psk = Secret::new(hmac(extracted.expose(), PSK_INFO));
    refuse_zeros(&psk)?;
    noise.set_psk(PSK, psk.expose()).map_err(Refusal::Noise)
}

/// snow takes 32 zeros as a psk. They are no secret.
fn refuse_zeros(secret: &Secret<[u8; 32]>) -> Result<(), Refusal> {
    let zero: bool = secret.expose().ct_eq(&[0; 32]).into();
    if zero { Err(Refusal::ZeroSecret) } else { Ok(()) }
}
