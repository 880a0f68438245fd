//! A node of the simulation: what it remembers across crashes, and its engines.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use ephor_base::{Digest, Secret};
use ephor_mesh::{
    delivery::{Answer, Delivery, Handed, MemoryId, Number, Unsettled},
    handshake::StaticKey,
    invite::Introduction,
    membership::{Member, Membership, settings},
    party::{
        CannotSign, ChainKeys, Claim, Distrust, HandshakeHash, ML_DSA_65_KEY, ML_DSA_65_SIGNATURE, NodeId, Party, Role,
        Signatures, Statement,
    },
};

use crate::common::{Seeded, cluster::Names, node_id};

pub(crate) const NODES: usize = 5;

/// A chain whose signatures are digests: the simulation is about what comes after them.
pub(crate) struct Chain(pub(crate) usize);

impl Chain {
    fn signature(&self, statement: &Statement) -> Signatures {
        let Digest(half) = Digest::of_parts(&[&self.0.to_be_bytes(), statement.bytes()]);
        let mut ed25519 = [0; 64];
        ed25519[..32].copy_from_slice(&half);
        Signatures { ed25519, ml_dsa_65: Box::new([half[0]; ML_DSA_65_SIGNATURE]) }
    }
}

impl Party for Chain {
    fn node(&self) -> NodeId {
        node_id(self.0 as u64)
    }

    fn keys(&self) -> ChainKeys {
        ChainKeys { ed25519: [0; 32], ml_dsa_65: Box::new([0; ML_DSA_65_KEY]) }
    }

    fn sign(&self, statement: &Statement) -> Result<Signatures, CannotSign> {
        Ok(self.signature(statement))
    }

    fn verify(&self, claim: &Claim, statement: &Statement) -> bool {
        let signer = (0..NODES).find(|at| node_id(*at as u64) == claim.node);
        signer.is_some_and(|at| Self(at).signature(statement) == claim.signatures)
    }

    fn admit(&mut self, _: Role, _: &Claim, _: &HandshakeHash) -> Result<(), Distrust> {
        Ok(())
    }

    fn introduce(&mut self, _: Role, _: &HandshakeHash) -> Option<Introduction> {
        None
    }
}

/// A message as the sender's record has it.
struct Sent {
    id: u64,
    unsettled: Unsettled,
}

/// What a node has on its record of one peer.
struct Record {
    memory: MemoryId,
    theirs: Option<MemoryId>,
    next: u64,
    sent: BTreeMap<Number, Sent>,
    answers: BTreeMap<Number, Answer>,
}

impl Record {
    fn new(memory: u64) -> Self {
        let id = Digest::of(&memory.to_be_bytes()).0;
        Self {
            memory: MemoryId(*id.first_chunk().unwrap()),
            theirs: None,
            next: 1,
            sent: BTreeMap::new(),
            answers: BTreeMap::new(),
        }
    }
}

/// One peer, as a node sees it.
pub(crate) struct Peer {
    record: Record,
    pub(crate) delivery: Delivery,
    /// A letter that the stream had no room for.
    pub(crate) held: Option<Vec<u8>>,
    /// Messages that wait for a decision.
    pub(crate) undecided: VecDeque<(Handed, u64)>,
}

impl Peer {
    fn new(memory: u64) -> Self {
        let record = Record::new(memory);
        let delivery = Delivery::new(record.memory);
        Self { record, delivery, held: None, undecided: VecDeque::new() }
    }

    /// Begins anew from the record.
    fn resume(&mut self) {
        let mut delivery = Delivery::resumed(self.record.memory, self.record.theirs);
        let unsettled = self.record.sent.values().map(|sent| sent.unsettled.clone()).collect();
        delivery.restore_sent(Number(self.record.next), unsettled);
        delivery.restore_answers(self.record.answers.iter().map(|(number, answer)| (*number, *answer)));
        self.delivery = delivery;
        self.held = None;
        self.undecided.clear();
    }

    /// Sends a message, and puts it on the record; whether there was room.
    pub(crate) fn send(&mut self, id: u64, length: usize, deadline: Duration) -> bool {
        let mut body = id.to_be_bytes().to_vec();
        body.resize(8 + length, 0);
        let Ok(number) = self.delivery.send(body.clone(), deadline) else { return false };
        let unsettled = Unsettled { number, body, deadline };
        self.record.sent.insert(number, Sent { id, unsettled });
        self.record.next = number.0 + 1;
        true
    }

    /// Takes a fate off the record; whose it is.
    pub(crate) fn settled(&mut self, number: Number) -> u64 {
        self.record.sent.remove(&number).unwrap().id
    }

    /// Decides on a message, on the record first; whether an answer was owed still.
    pub(crate) fn decide(&mut self, handed: Handed, answer: Answer) -> bool {
        let decided = self.delivery.decide(handed, answer);
        decided.is_some_and(|of| self.record.answers.insert(of, answer).is_none())
    }

    /// Notes the peer's memory. It makes the answers to the one before worthless.
    pub(crate) fn note_memory(&mut self, memory: MemoryId) {
        self.record.answers.clear();
        self.record.theirs = Some(memory);
    }
}

pub(crate) struct SimNode {
    pub(crate) at: usize,
    pub(crate) running: bool,
    pub(crate) incarnation: u64,
    pub(crate) membership: Membership,
    pub(crate) peers: BTreeMap<usize, Peer>,
    pub(crate) key: Arc<StaticKey>,
    pub(crate) random: Arc<Seeded>,
    seed: u64,
}

impl SimNode {
    pub(crate) fn new(at: usize, seed: u64) -> Self {
        let memory = |peer: usize| seed * 1_000_000 + (at * NODES + peer) as u64;
        let peers = (0..NODES).filter(|peer| *peer != at).map(|peer| (peer, Peer::new(memory(peer))));
        Self {
            at,
            running: true,
            incarnation: 1,
            membership: membership(at, 1, seed),
            peers: peers.collect(),
            key: Arc::new(Secret::new([u8::try_from(at + 1).unwrap(); 32])),
            random: Seeded::new(seed ^ (at as u64) << 32),
            seed,
        }
    }

    /// Starts again; what is only in memory is gone. `memory` is the seed of a new memory if the old one is lost as well.
    pub(crate) fn restart(&mut self, memory: Option<u64>) -> Vec<u64> {
        self.running = true;
        self.incarnation = self.incarnation.max(self.membership.own().incarnation) + 1;
        self.membership = membership(self.at, self.incarnation, self.seed);
        let mut lost = Vec::new();
        for (peer, state) in &mut self.peers {
            if let Some(memory) = memory {
                let old = std::mem::replace(state, Peer::new(memory * 1000 + *peer as u64 + 1_000_000_000));
                lost.extend(old.record.sent.values().map(|sent| sent.id));
            } else {
                state.resume();
            }
        }
        lost
    }
}

fn membership(at: usize, incarnation: u64, seed: u64) -> Membership {
    let names: BTreeSet<NodeId> = (0..NODES).map(|at| node_id(at as u64)).collect();
    let own = Member { node: node_id(at as u64), incarnation };
    let size = NonZeroU32::new(u32::try_from(NODES).unwrap()).unwrap();
    let random = Seeded::new(seed ^ (at as u64) << 40 ^ incarnation << 20);
    Membership::new(own, settings(size), Box::new(Names(names)), random)
}
