//! The handshake between two that know each other, and its limits.

use std::time::Duration;

use ephor_mesh::{
    handshake::{
        CiphertextBytes, EncapsulationBytes, FIRST, Kem, KemError, PATIENCE, PREFACE, Refusal, SEALED_CREDENTIAL,
        SECOND, SharedSecret, THIRD,
    },
    party::Role,
    seal::{MOST_PLAIN, MOST_SEALED, Room, SealError},
};

use crate::{
    common::{Node, acquainted, establish, feed},
    other_kem::OtherKem,
};

#[test]
fn both_sides_know_who_the_other_is_and_have_the_same_keys() {
    let (mut alice, mut bob) = acquainted();
    let (mut ours, mut theirs) = establish(&mut alice, &mut bob);
    assert_eq!((ours.role, theirs.role), (Role::Initiator, Role::Responder));
    assert_eq!((ours.peer.node, theirs.peer.node), (bob.id, alice.id));
    assert_eq!(ours.hash, theirs.hash);
    assert_eq!((alice.admitted, bob.admitted), (1, 1));
    let (mut sealed, mut plain) = (Room::new(100), Room::new(100));
    for _ in 0..3 {
        ours.seal.seal(b"to bob", &mut sealed).unwrap();
        theirs.seal.open(&sealed.bytes()[2..], &mut plain).unwrap();
        assert_eq!(plain.bytes(), b"to bob");
        theirs.seal.seal(b"to alice", &mut sealed).unwrap();
        ours.seal.open(&sealed.bytes()[2..], &mut plain).unwrap();
        assert_eq!(plain.bytes(), b"to alice");
    }
}

#[test]
fn what_does_not_fit_is_not_sealed() {
    let (mut alice, mut bob) = acquainted();
    let (mut ours, _) = establish(&mut alice, &mut bob);
    let long = vec![0; MOST_PLAIN + 1];
    let error = ours.seal.seal(&long, &mut Room::new(MOST_SEALED)).unwrap_err();
    assert!(matches!(error, SealError::TooLong(65_520)), "{error}");
    let error = ours.seal.seal(&long[..10_000], &mut Room::new(100)).unwrap_err();
    assert!(matches!(error, SealError::TooLong(10_000)), "{error}");
    ours.seal.seal(&long[1..], &mut Room::new(MOST_SEALED)).unwrap();
}

#[test]
fn two_handshakes_of_the_same_nodes_have_nothing_in_common() {
    let (mut alice, mut bob) = acquainted();
    let (first, _) = establish(&mut alice, &mut bob);
    let (second, _) = establish(&mut alice, &mut bob);
    assert_ne!(first.hash, second.hash);
    assert_ne!(first.peer.signatures, second.peer.signatures);
}

#[test]
fn the_bytes_may_come_one_at_a_time() {
    let (mut alice, mut bob) = acquainted();
    let ((mut dialler, mut to_bob), mut answerer) = (alice.dial(), bob.answer());
    let (mut ours, mut theirs) = (None, None);
    while ours.is_none() || theirs.is_none() {
        let mut to_alice = Vec::new();
        for byte in std::mem::take(&mut to_bob) {
            let (out, link) = feed(&mut answerer, &mut bob, &[byte]).unwrap();
            to_alice.extend(out);
            theirs = theirs.or(link);
        }
        for byte in to_alice {
            let (out, link) = feed(&mut dialler, &mut alice, &[byte]).unwrap();
            to_bob.extend(out);
            ours = ours.or(link);
        }
    }
    assert_eq!(ours.unwrap().hash, theirs.unwrap().hash);
}

#[test]
fn what_follows_the_last_message_is_left_to_the_link() {
    let (mut alice, mut bob) = acquainted();
    let ((mut dialler, first), mut answerer) = (alice.dial(), bob.answer());
    let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
    let (mut third, _) = feed(&mut dialler, &mut alice, &second).unwrap();
    let whole = third.len();
    third.extend_from_slice(b"frames of the link");
    let mut out = Vec::new();
    let progress = answerer.receive(Duration::ZERO, &third, &mut bob, &mut out).unwrap();
    assert_eq!(progress.consumed, whole);
    assert!(progress.link.is_some());
}

#[test]
fn every_message_has_its_one_length() {
    let (mut alice, mut bob) = acquainted();
    let ((mut dialler, first), mut answerer) = (alice.dial(), bob.answer());
    assert_eq!(first.len(), 8 + 2 + FIRST);
    let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
    assert_eq!(second.len(), 8 + 2 + SECOND);
    let (third, _) = feed(&mut dialler, &mut alice, &second).unwrap();
    assert_eq!(third.len(), 2 + THIRD + 2 + SEALED_CREDENTIAL);
    let (fourth, _) = feed(&mut answerer, &mut bob, &third).unwrap();
    assert_eq!(fourth.len(), 2 + SEALED_CREDENTIAL);
    assert_eq!((FIRST, SECOND, THIRD, SEALED_CREDENTIAL), (1232, 1184, 64, 5455));
}

#[test]
fn a_slow_handshake_ends() {
    let (alice, mut bob) = acquainted();
    let (_, first) = alice.dial();
    let mut answerer = bob.answer();
    assert_eq!(answerer.deadline(), PATIENCE);
    let mut out = Vec::new();
    let just = PATIENCE - Duration::from_nanos(1);
    answerer.receive(just, &first[..100], &mut bob, &mut out).unwrap();
    let refusal = answerer.receive(PATIENCE, &[], &mut bob, &mut out).unwrap_err();
    assert!(matches!(refusal, Refusal::TooSlow), "{refusal}");
    let refusal = answerer.receive(just, &first[100..], &mut bob, &mut out).unwrap_err();
    assert!(matches!(refusal, Refusal::Over), "{refusal}");
}

#[test]
fn another_protocol_and_another_version_are_told_apart() {
    let mut bob = Node::new(2);
    let other = bob.answer().receive(Duration::ZERO, b"GET / HTTP/1.1", &mut bob, &mut Vec::new()).unwrap_err();
    assert!(matches!(other, Refusal::OtherProtocol), "{other}");
    let mut newer = PREFACE;
    newer[7] = 2;
    let other = bob.answer().receive(Duration::ZERO, &newer, &mut bob, &mut Vec::new()).unwrap_err();
    assert!(matches!(other, Refusal::OtherVersion { theirs: 2, ours: 1 }), "{other}");
}

#[test]
fn a_link_or_a_refusal_is_the_end_of_a_handshake() {
    let (mut alice, mut bob) = acquainted();
    let ((mut dialler, first), mut answerer) = (alice.dial(), bob.answer());
    let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
    let (third, _) = feed(&mut dialler, &mut alice, &second).unwrap();
    let (fourth, link) = feed(&mut answerer, &mut bob, &third).unwrap();
    assert!(link.is_some());
    let again = answerer.receive(Duration::ZERO, &third, &mut bob, &mut Vec::new()).unwrap_err();
    assert!(matches!(again, Refusal::Over), "{again}");
    let mut changed = fourth;
    changed[50] ^= 1;
    feed(&mut dialler, &mut alice, &changed).unwrap_err();
    let again = feed(&mut dialler, &mut alice, &changed).unwrap_err();
    assert!(matches!(again, Refusal::Over), "{again}");
}

#[test]
fn either_side_may_use_another_implementation_of_ml_kem() {
    for dials in [true, false] {
        let (mut alice, mut bob) = acquainted();
        let ((mut dialler, first), mut answerer) = match dials {
            true => (alice.dial_with(Box::new(OtherKem::new(9))), bob.answer()),
            false => (alice.dial(), bob.answer_with(Box::new(OtherKem::new(9)))),
        };
        let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
        let (third, _) = feed(&mut dialler, &mut alice, &second).unwrap();
        let (fourth, ours) = feed(&mut answerer, &mut bob, &third).unwrap();
        let (_, theirs) = feed(&mut dialler, &mut alice, &fourth).unwrap();
        assert_eq!(ours.unwrap().hash, theirs.unwrap().hash);
    }
}

/// Opens the ciphertext with another key than the one it sent.
struct Forgetful(OtherKem);

impl Kem for Forgetful {
    fn generate(&mut self) -> Result<Box<EncapsulationBytes>, KemError> {
        self.0.generate()?;
        OtherKem::new(77).generate()
    }

    fn encapsulate(&mut self, key: &EncapsulationBytes) -> Result<(Box<CiphertextBytes>, SharedSecret), KemError> {
        self.0.encapsulate(key)
    }

    fn decapsulate(&mut self, ciphertext: &CiphertextBytes) -> Result<SharedSecret, KemError> {
        self.0.decapsulate(ciphertext)
    }
}

#[test]
fn a_ciphertext_for_another_key_is_found_by_the_next_message() {
    let (mut alice, mut bob) = acquainted();
    let mut answerer = bob.answer();
    let (mut dialler, first) = alice.dial_with(Box::new(Forgetful(OtherKem::new(78))));
    let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
    let (third, _) = feed(&mut dialler, &mut alice, &second).unwrap();
    let refusal = feed(&mut answerer, &mut bob, &third).unwrap_err();
    assert!(matches!(refusal, Refusal::NotAuthentic { message: 3, .. }), "{refusal}");
}
