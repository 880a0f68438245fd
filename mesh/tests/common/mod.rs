//! Two nodes with real keys, and what brings their bytes across.
#![allow(dead_code, unreachable_pub, clippy::allow_attributes, reason = "each test binary uses a part of it")]

pub mod cluster;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ed25519_dalek::{Signer, Verifier};
use ephor_base::{Digest, Random, Secret, Timestamp};
use ephor_mesh::{
    handshake::{Established, Handshake, Kem, MlKem768, Refusal, StaticKey},
    invite::{Grant, Introduction, Invitations, Words},
    party::{CannotSign, ChainKeys, Claim, Distrust, HandshakeHash, NodeId, Party, Role, Signatures, Statement},
    peers::{Peers, Policy},
};
use ml_dsa::{ExpandedSigningKey, MlDsa65};

/// Reproducible bytes: SHA-256 of a seed and a counter.
pub struct Seeded {
    seed: u64,
    drawn: AtomicU64,
}

impl Seeded {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self { seed, drawn: AtomicU64::new(0) })
    }
}

impl Random for Seeded {
    fn fill(&self, into: &mut [u8]) {
        for chunk in into.chunks_mut(32) {
            let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
            let block = Digest::of_parts(&[&self.seed.to_be_bytes(), &drawn.to_be_bytes()]);
            chunk.copy_from_slice(&block.0[..chunk.len()]);
        }
    }
}

pub fn node_id(seed: u64) -> NodeId {
    NodeId(Digest::of_parts(&[b"node", &seed.to_be_bytes()]))
}

/// Both keys of a chain, from a seed.
pub struct Keys {
    ed25519: ed25519_dalek::SigningKey,
    ml_dsa_65: ExpandedSigningKey<MlDsa65>,
}

impl Keys {
    pub fn new(seed: u64) -> Self {
        let Digest(bytes) = Digest::of_parts(&[b"keys", &seed.to_be_bytes()]);
        Self {
            ed25519: ed25519_dalek::SigningKey::from_bytes(&bytes),
            ml_dsa_65: ExpandedSigningKey::<MlDsa65>::from_seed(&bytes.into()),
        }
    }

    pub fn public(&self) -> ChainKeys {
        let encoded = self.ml_dsa_65.verifying_key().encode();
        let ml_dsa_65 = Box::new(encoded.as_slice().try_into().unwrap());
        ChainKeys { ed25519: self.ed25519.verifying_key().to_bytes(), ml_dsa_65 }
    }

    pub fn sign(&self, statement: &[u8]) -> Signatures {
        let ml_dsa_65 = self.ml_dsa_65.sign_deterministic(statement, &[]).unwrap().encode();
        Signatures {
            ed25519: self.ed25519.sign(statement).to_bytes(),
            ml_dsa_65: Box::new(ml_dsa_65.as_slice().try_into().unwrap()),
        }
    }
}

pub fn verify(keys: &ChainKeys, statement: &[u8], signatures: &Signatures) -> bool {
    let ed25519 = ed25519_dalek::VerifyingKey::from_bytes(&keys.ed25519)
        .is_ok_and(|key| key.verify(statement, &ed25519_dalek::Signature::from_bytes(&signatures.ed25519)).is_ok());
    let key = ml_dsa::VerifyingKey::<MlDsa65>::decode(&keys.ml_dsa_65.as_slice().try_into().unwrap());
    let signature = ml_dsa::Signature::<MlDsa65>::decode(&signatures.ml_dsa_65.as_slice().try_into().unwrap());
    ed25519 && signature.is_some_and(|signature| key.verify_with_context(statement, &[], &signature))
}

/// What a node goes by when it dials.
pub enum Ticket {
    Known,
    Invited(Words),
}

/// A node as the handshake sees it.
pub struct Node {
    pub id: NodeId,
    pub keys: Keys,
    pub key: Arc<StaticKey>,
    pub random: Arc<Seeded>,
    pub peers: Peers,
    pub invitations: Invitations,
    pub ticket: Ticket,
    pub now: Timestamp,
    answer: Option<Introduction>,
    pub admitted: usize,
    /// The keys it shows, if they are not its own.
    pub shown: Option<ChainKeys>,
    /// Whether it lets every node in.
    pub gullible: bool,
}

impl Node {
    pub fn new(seed: u64) -> Self {
        let Digest(key) = Digest::of_parts(&[b"static", &seed.to_be_bytes()]);
        Self {
            id: node_id(seed),
            keys: Keys::new(seed),
            key: Arc::new(Secret::new(key)),
            random: Seeded::new(seed),
            peers: Peers::default(),
            invitations: Invitations::default(),
            ticket: Ticket::Known,
            now: Timestamp(1_000_000),
            answer: None,
            admitted: 0,
            shown: None,
            gullible: false,
        }
    }

    pub fn knows(&mut self, other: &Self) {
        self.peers.allow(other.id, other.keys.public().commitment(), Policy::Messages).unwrap();
    }

    pub fn random(&self) -> Arc<dyn Random> {
        Arc::clone(&self.random) as Arc<dyn Random>
    }

    pub fn dial(&self) -> (Handshake, Vec<u8>) {
        self.dial_with(Box::new(MlKem768::default()))
    }

    pub fn dial_with(&self, kem: Box<dyn Kem>) -> (Handshake, Vec<u8>) {
        Handshake::initiator(&self.key, &self.random(), kem, Duration::ZERO).unwrap()
    }

    pub fn answer(&self) -> Handshake {
        self.answer_with(Box::new(MlKem768::default()))
    }

    pub fn answer_with(&self, kem: Box<dyn Kem>) -> Handshake {
        Handshake::responder(Arc::clone(&self.key), self.random(), kem, Duration::ZERO)
    }
}

impl Party for Node {
    fn node(&self) -> NodeId {
        self.id
    }

    fn keys(&self) -> ChainKeys {
        self.shown.clone().unwrap_or_else(|| self.keys.public())
    }

    fn sign(&self, statement: &Statement) -> Result<Signatures, CannotSign> {
        Ok(self.keys.sign(statement.bytes()))
    }

    fn verify(&self, claim: &Claim, statement: &Statement) -> bool {
        verify(&claim.keys, statement.bytes(), &claim.signatures)
    }

    fn admit(&mut self, role: Role, claim: &Claim, hash: &HandshakeHash) -> Result<(), Distrust> {
        if self.gullible {
            return Ok(());
        }
        let listed = self.peers.admit(claim.node, &claim.keys);
        let outcome = match (listed, &claim.introduction, role, &self.ticket) {
            (Err(distrust @ (Distrust::Revoked | Distrust::WrongKeys)), ..) => Err(distrust),
            (listed, None, ..) => listed.map(|_| ()),
            (_, Some(_), Role::Responder, _) => self.invitations.redeem(self.now, claim, hash).map(|redeemed| {
                if let Grant::New(policy) = redeemed.grant {
                    self.peers.allow(claim.node, claim.keys.commitment(), policy).unwrap();
                }
                self.answer = Some(redeemed.answer);
            }),
            (_, Some(given), Role::Initiator, Ticket::Invited(words)) => {
                words.prove(Role::Responder, hash, given).then_some(()).ok_or(Distrust::BadInvitation)
            }
            (_, Some(_), Role::Initiator, Ticket::Known) => Err(Distrust::BadInvitation),
        };
        self.admitted += usize::from(outcome.is_ok());
        outcome
    }

    fn introduce(&mut self, role: Role, hash: &HandshakeHash) -> Option<Introduction> {
        match &self.ticket {
            Ticket::Invited(words) => Some(words.introduce(role, hash)),
            Ticket::Known => self.answer.take(),
        }
    }
}

/// Two nodes that know each other.
pub fn acquainted() -> (Node, Node) {
    let (mut alice, mut bob) = (Node::new(1), Node::new(2));
    alice.knows(&bob);
    bob.knows(&alice);
    (alice, bob)
}

/// Gives `bytes` to a machine; what it sends, and the link.
pub fn feed(
    machine: &mut Handshake,
    party: &mut Node,
    bytes: &[u8],
) -> Result<(Vec<u8>, Option<Box<Established>>), Refusal> {
    let mut out = Vec::new();
    let progress = machine.receive(Duration::ZERO, bytes, party, &mut out)?;
    assert_eq!(progress.consumed, bytes.len());
    Ok((out, progress.link))
}

/// A whole handshake.
pub fn establish(alice: &mut Node, bob: &mut Node) -> (Established, Established) {
    let ((mut dialler, first), mut answerer) = (alice.dial(), bob.answer());
    let (second, none) = feed(&mut answerer, bob, &first).unwrap();
    assert!(none.is_none());
    let (third, none) = feed(&mut dialler, alice, &second).unwrap();
    assert!(none.is_none());
    let (fourth, ours) = feed(&mut answerer, bob, &third).unwrap();
    let (nothing, theirs) = feed(&mut dialler, alice, &fourth).unwrap();
    assert!(nothing.is_empty());
    (*theirs.unwrap(), *ours.unwrap())
}
