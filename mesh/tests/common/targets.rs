//! One function for each parser of the mesh. Each takes any bytes, and panics if something does not hold that must hold for all:
//! above all that whatever is read has one form only, the one that is written.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use ephor_base::{Digest, Random, Secret};
use ephor_mesh::{
    delivery::{Delivery, DeliveryEvent, MemoryId},
    frame::Frame,
    handshake::{Handshake, MlKem768},
    invite::{Introduction, Words},
    links::LinkId,
    membership::{Member, Membership, Roster, settings},
    party::{
        CannotSign, ChainKeys, Claim, Distrust, HandshakeHash, ML_DSA_65_KEY, NodeId, Party, Role, Signatures,
        Statement,
    },
};

/// One parser, and what must hold for all bytes.
pub(crate) struct Target {
    /// As the folder in the corpus.
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]),
}

/// All of them.
pub(crate) const TARGETS: [Target; 6] = [
    Target { name: "mesh_frame", run: frame },
    Target { name: "mesh_handshake", run: handshake },
    Target { name: "mesh_claim", run: claim },
    Target { name: "mesh_letter", run: letter },
    Target { name: "mesh_packet", run: packet },
    Target { name: "mesh_words", run: words },
];

fn frame(bytes: &[u8]) {
    let Ok(frame) = Frame::decode(bytes) else { return };
    let mut again = Vec::new();
    frame.encode(&mut again);
    assert_eq!(again, bytes);
}

/// Draws the same byte again and again.
struct Same;

impl Random for Same {
    fn fill(&self, into: &mut [u8]) {
        into.fill(7);
    }
}

/// A node that no stranger gets to speak with.
struct Closed;

impl Party for Closed {
    fn node(&self) -> NodeId {
        node(0)
    }

    fn keys(&self) -> ChainKeys {
        ChainKeys { ed25519: [0; 32], ml_dsa_65: Box::new([0; ML_DSA_65_KEY]) }
    }

    fn sign(&self, _: &Statement) -> Result<Signatures, CannotSign> {
        panic!("signed for a stranger");
    }

    fn verify(&self, _: &Claim, _: &Statement) -> bool {
        panic!("a stranger got as far as its claim");
    }

    fn admit(&mut self, _: Role, _: &Claim, _: &HandshakeHash) -> Result<(), Distrust> {
        panic!("a stranger was let in");
    }

    fn introduce(&mut self, _: Role, _: &HandshakeHash) -> Option<Introduction> {
        None
    }
}

/// A stranger that does not see the answers gets no further than message 2, however its bytes are cut.
fn handshake(bytes: &[u8]) {
    let run = |pieces: &[&[u8]]| {
        let key = Arc::new(Secret::new([9; 32]));
        let mut machine = Handshake::responder(key, Arc::new(Same), Box::new(MlKem768::default()), Duration::ZERO);
        let mut out = Vec::new();
        for piece in pieces {
            match machine.receive(Duration::ZERO, piece, &mut Closed, &mut out) {
                Ok(progress) => assert!(progress.link.is_none()),
                Err(refusal) => return (out.len(), Some(refusal.to_string())),
            }
        }
        (out.len(), None)
    };
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    assert_eq!(run(&[bytes]), run(&[first, rest]));
}

fn claim(bytes: &[u8]) {
    if let Ok(claim) = Claim::parse(bytes) {
        assert_eq!(claim.to_bytes(), bytes);
    }
}

const LINK: LinkId = LinkId(1);

/// What is handed on is what was sent, and the same letter again hands nothing on.
fn letter(bytes: &[u8]) {
    let (mut ours, mut theirs) = (Delivery::new(MemoryId([1; 16])), Delivery::new(MemoryId([2; 16])));
    ours.linked(LINK);
    theirs.linked(LINK);
    let hello = theirs.transmit(LINK);
    assert!(hello.is_some_and(|hello| ours.receive(LINK, &hello).is_ok()));
    assert!(matches!(ours.poll(Duration::ZERO), Some(DeliveryEvent::Met { .. })));
    if ours.receive(LINK, bytes).is_err() {
        return;
    }
    match ours.poll(Duration::ZERO) {
        Some(DeliveryEvent::Deliver { body, .. }) => assert!(bytes.ends_with(&body)),
        Some(DeliveryEvent::Met { .. }) => panic!("a memory is met once"),
        Some(DeliveryEvent::Settled { .. }) => panic!("nothing was sent that could have a fate"),
        None => {}
    }
    assert!(ours.receive(LINK, bytes).is_ok());
    assert_eq!(ours.poll(Duration::ZERO), None);
}

fn node(number: u8) -> NodeId {
    NodeId(Digest([number; 32]))
}

struct Three;

impl Roster for Three {
    fn may_be_member(&self, member: NodeId) -> bool {
        (0..3).any(|number| node(number) == member)
    }
}

/// A member that says anything at all brings no stranger in.
fn packet(bytes: &[u8]) {
    let own = Member { node: node(0), incarnation: 1 };
    let mut membership = Membership::new(own, settings(NonZeroU32::MIN), Box::new(Three), Arc::new(Same));
    let _refused = membership.receive(Duration::ZERO, node(1), bytes);
    assert!(membership.members().all(|member| Three.may_be_member(member.node)));
    let _refused = membership.tick(Duration::from_secs(60));
    assert!(membership.own().incarnation >= 1);
}

fn words(bytes: &[u8]) {
    let Ok(words) = std::str::from_utf8(bytes).map(Words::parse) else { return };
    if let Ok(words) = words {
        let text = words.text().map(|text| text.expose().clone());
        assert!(text.is_ok_and(|text| Words::parse(&text).is_ok_and(|again| again.id() == words.id())));
    }
}
