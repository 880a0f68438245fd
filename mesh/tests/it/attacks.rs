//! What strangers and hostile peers try: each is refused by name.

use std::time::Duration;

use ephor_base::Secret;
use ephor_mesh::{
    handshake::{CiphertextBytes, EncapsulationBytes, Kem, KemError, Refusal, SEALED_CREDENTIAL, SharedSecret, THIRD},
    party::Distrust,
};
use proptest::prelude::*;

use crate::common::{Keys, Node, acquainted, feed};

/// What the responder says to an initiator that has got as far as its credential; nothing is sent to it.
fn refused_by_responder(alice: &mut Node, bob: &mut Node) -> Refusal {
    let ((mut dialler, first), mut answerer) = (alice.dial(), bob.answer());
    let (second, _) = feed(&mut answerer, bob, &first).unwrap();
    let (third, _) = feed(&mut dialler, alice, &second).unwrap();
    let mut out = Vec::new();
    let refusal = answerer.receive(Duration::ZERO, &third, bob, &mut out).unwrap_err();
    assert!(out.is_empty(), "a stranger learns nothing");
    refusal
}

#[test]
fn an_unknown_chain_is_refused_and_told_nothing() {
    let (mut alice, mut bob) = (Node::new(1), Node::new(2));
    alice.knows(&bob);
    let refusal = refused_by_responder(&mut alice, &mut bob);
    assert!(matches!(refusal, Refusal::Distrusted(Distrust::UnknownChain)), "{refusal}");
}

#[test]
fn a_revoked_chain_is_refused() {
    let (mut alice, mut bob) = acquainted();
    bob.peers.revoke(alice.id).unwrap();
    let refusal = refused_by_responder(&mut alice, &mut bob);
    assert!(matches!(refusal, Refusal::Distrusted(Distrust::Revoked)), "{refusal}");
}

#[test]
fn another_chains_name_over_ones_own_keys_is_refused() {
    let (alice, mut bob) = acquainted();
    let mut mallory = Node::new(3);
    mallory.knows(&bob);
    mallory.id = alice.id;
    let refusal = refused_by_responder(&mut mallory, &mut bob);
    assert!(matches!(refusal, Refusal::Distrusted(Distrust::WrongKeys)), "{refusal}");
    // Nor does she get further by showing the right keys, which are public, and signing with hers.
    mallory.shown = Some(alice.keys.public());
    let refusal = refused_by_responder(&mut mallory, &mut bob);
    assert!(matches!(refusal, Refusal::Distrusted(Distrust::BadSignature)), "{refusal}");
}

#[test]
fn the_responder_is_checked_as_the_initiator_is() {
    let (mut alice, mut bob) = acquainted();
    bob.keys = Keys::new(3);
    let ((mut dialler, first), mut answerer) = (alice.dial(), bob.answer());
    let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
    let (third, _) = feed(&mut dialler, &mut alice, &second).unwrap();
    let (fourth, _) = feed(&mut answerer, &mut bob, &third).unwrap();
    let refusal = feed(&mut dialler, &mut alice, &fourth).unwrap_err();
    assert!(matches!(refusal, Refusal::Distrusted(Distrust::WrongKeys)), "{refusal}");
}

#[test]
fn a_replayed_handshake_ends_at_its_third_message() {
    let (mut alice, mut bob) = acquainted();
    let ((mut dialler, first), mut answerer) = (alice.dial(), bob.answer());
    let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
    let (third, _) = feed(&mut dialler, &mut alice, &second).unwrap();
    feed(&mut answerer, &mut bob, &third).unwrap();
    let mut again = bob.answer();
    feed(&mut again, &mut bob, &first).unwrap();
    let refusal = feed(&mut again, &mut bob, &third).unwrap_err();
    assert!(matches!(refusal, Refusal::NotAuthentic { message: 3, .. }), "{refusal}");
    assert_eq!(bob.admitted, 1);
}

#[test]
fn ones_own_messages_sent_back_are_refused() {
    let (mut alice, mut bob) = acquainted();
    let (mut dialler, first) = alice.dial();
    let refusal = feed(&mut dialler, &mut alice, &first).unwrap_err();
    assert!(matches!(refusal, Refusal::WrongLength { message: 2, .. }), "{refusal}");
    // The credential of the initiator, sent back to it, was sealed under the other direction's key.
    let ((mut dialler, first), mut answerer) = (alice.dial(), bob.answer());
    let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
    let (third, _) = feed(&mut dialler, &mut alice, &second).unwrap();
    let refusal = feed(&mut dialler, &mut alice, &third[2 + THIRD..]).unwrap_err();
    assert!(matches!(refusal, Refusal::Sealed(_)), "{refusal}");
}

#[test]
fn a_node_does_not_link_to_itself() {
    let (mut alice, mut twin) = (Node::new(1), Node::new(1));
    alice.knows(&Node::new(1));
    twin.knows(&Node::new(1));
    let refusal = refused_by_responder(&mut alice, &mut twin);
    assert!(matches!(refusal, Refusal::Reflected), "{refusal}");
}

/// A key encapsulation that gives what an attack needs.
struct Broken {
    key: u8,
    secret: u8,
}

impl Kem for Broken {
    fn generate(&mut self) -> Result<Box<EncapsulationBytes>, KemError> {
        Ok(Box::new([self.key; 1184]))
    }

    fn encapsulate(&mut self, _: &EncapsulationBytes) -> Result<(Box<CiphertextBytes>, SharedSecret), KemError> {
        Ok((Box::new([1; 1088]), Secret::new([self.secret; 32])))
    }

    fn decapsulate(&mut self, _: &CiphertextBytes) -> Result<SharedSecret, KemError> {
        Ok(Secret::new([self.secret; 32]))
    }
}

#[test]
fn a_zeroed_ml_kem_key_is_refused() {
    let (alice, mut bob) = acquainted();
    let (_, first) = alice.dial_with(Box::new(Broken { key: 0, secret: 1 }));
    let refusal = feed(&mut bob.answer(), &mut bob, &first).unwrap_err();
    assert!(matches!(refusal, Refusal::ZeroKey), "{refusal}");
}

#[test]
fn what_is_no_ml_kem_key_is_refused() {
    let (alice, mut bob) = acquainted();
    // Coefficients of 4095 are beyond the modulus 3329.
    let (_, first) = alice.dial_with(Box::new(Broken { key: 0xff, secret: 1 }));
    let refusal = feed(&mut bob.answer(), &mut bob, &first).unwrap_err();
    assert!(matches!(refusal, Refusal::Kem(KemError::Encapsulate)), "{refusal}");
}

#[test]
fn an_all_zero_secret_is_refused_on_either_side() {
    let (mut alice, mut bob) = acquainted();
    let (mut dialler, first) = alice.dial_with(Box::new(Broken { key: 1, secret: 0 }));
    let refusal = feed(&mut bob.answer_with(Box::new(Broken { key: 1, secret: 0 })), &mut bob, &first).unwrap_err();
    assert!(matches!(refusal, Refusal::ZeroSecret), "{refusal}");
    let (second, _) = feed(&mut bob.answer_with(Box::new(Broken { key: 1, secret: 7 })), &mut bob, &first).unwrap();
    let refusal = feed(&mut dialler, &mut alice, &second).unwrap_err();
    assert!(matches!(refusal, Refusal::ZeroSecret), "{refusal}");
}

#[test]
fn a_stripped_ml_kem_key_has_the_wrong_length() {
    let mut bob = Node::new(2);
    // Message 1 of plain XXpsk3: an ephemeral key and an empty payload.
    let bare = [b"ephmesh\x01".as_slice(), &48_u16.to_be_bytes(), &[9; 48]].concat();
    let refusal = feed(&mut bob.answer(), &mut bob, &bare).unwrap_err();
    assert!(matches!(refusal, Refusal::WrongLength { message: 1, wanted: 1232, got: 48 }), "{refusal}");
}

#[test]
fn a_huge_message_is_refused_before_it_is_read() {
    let mut bob = Node::new(2);
    let huge = [b"ephmesh\x01".as_slice(), &u16::MAX.to_be_bytes()].concat();
    let refusal = feed(&mut bob.answer(), &mut bob, &huge).unwrap_err();
    assert!(matches!(refusal, Refusal::WrongLength { message: 1, got: 65_535, .. }), "{refusal}");
}

#[test]
fn a_link_frame_in_the_place_of_the_credential_is_refused() {
    let (mut alice, mut bob) = acquainted();
    let ((mut dialler, first), mut answerer) = (alice.dial(), bob.answer());
    let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
    let (third, _) = feed(&mut dialler, &mut alice, &second).unwrap();
    let frame = [&third[..2 + THIRD], &25_u16.to_be_bytes(), &[0; 25]].concat();
    let refusal = feed(&mut answerer, &mut bob, &frame).unwrap_err();
    assert!(matches!(refusal, Refusal::WrongLength { message: 4, wanted: SEALED_CREDENTIAL, got: 25 }), "{refusal}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever byte is changed on the way, in either direction, no link comes of it.
    #[test]
    fn a_changed_byte_ends_the_handshake(message in 0..4_usize, at: prop::sample::Index, bit in 0..8_u8) {
        let (mut alice, mut bob) = acquainted();
        let ((mut dialler, mut bytes), mut answerer) = (alice.dial(), bob.answer());
        let mut refused = false;
        for number in 0..4 {
            if number == message {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
            let (machine, party) = if number % 2 == 0 { (&mut answerer, &mut bob) } else { (&mut dialler, &mut alice) };
            match feed(machine, party, &bytes) {
                Ok((out, _)) => bytes = out,
                Err(_) => {
                    refused = true;
                    break;
                }
            }
        }
        prop_assert!(refused);
        // The side that took the changed message in has no link; the initiator never has one.
        prop_assert_eq!(alice.admitted, 0);
    }

    /// Bytes of any kind never end in anything but a refusal, or wait for more.
    #[test]
    fn arbitrary_bytes_make_no_link(bytes in prop::collection::vec(any::<u8>(), 0..4000), good_preface: bool) {
        let mut bob = Node::new(2);
        let preface: &[u8] = if good_preface { b"ephmesh\x01\x04\xd0" } else { b"" };
        let mut answerer = bob.answer();
        match feed(&mut answerer, &mut bob, &[preface, &bytes].concat()) {
            Ok((out, link)) => prop_assert!(out.is_empty() && link.is_none()),
            Err(_) => prop_assert_eq!(bob.admitted, 0),
        }
    }
}
