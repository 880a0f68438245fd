//! Invitations: twelve words let one stranger in, once, for a while.

use std::time::Duration;

use ephor_base::Timestamp;
use ephor_mesh::{
    handshake::Refusal,
    invite::{BadWords, Grant, Introduction, Invitations, InviteError, MOST_OPEN, Words},
    party::{ChainKeys, Claim, Distrust, HandshakeHash, Role},
    peers::{Peers, Policy},
};
use proptest::prelude::*;

use crate::common::{Keys, Node, Seeded, Ticket, acquainted, establish, feed, node_id};

/// The first vector of BIP-39's own list: sixteen bytes of 0x7f.
const WORDS: &str = "legal winner thank year wave sausage worth useful legal winner thank yellow";

fn hash(seed: &[u8]) -> HandshakeHash {
    HandshakeHash(ephor_base::Digest::of(seed))
}

fn words() -> Words {
    Words::parse(WORDS).unwrap()
}

/// A node with an invitation open, and a stranger who was told its words.
fn invited() -> (Node, Node) {
    let (mut bob, mut carol) = (Node::new(2), Node::new(3));
    bob.invitations.open(bob.now, words(), bob.now.plus(Duration::from_secs(60)), Policy::Spawn).unwrap();
    carol.ticket = Ticket::Invited(words());
    (carol, bob)
}

fn refused(carol: &mut Node, bob: &mut Node) -> Refusal {
    let ((mut dialler, first), mut answerer) = (carol.dial(), bob.answer());
    let (second, _) = feed(&mut answerer, bob, &first).unwrap();
    let (third, _) = feed(&mut dialler, carol, &second).unwrap();
    feed(&mut answerer, bob, &third).unwrap_err()
}

/// What node `node` with the keys of `keys` says of itself.
fn claim(node: u64, keys: u64, introduction: Introduction) -> Claim {
    let keys = Keys::new(keys);
    let (public, signatures) = (keys.public(), keys.sign(b""));
    Claim { node: node_id(node), keys: public, signatures, introduction: Some(introduction) }
}

fn is_bad(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Distrusted(Distrust::BadInvitation))
}

#[test]
fn an_invitation_lets_a_stranger_in_with_its_policy() {
    let (mut carol, mut bob) = invited();
    let (ours, theirs) = establish(&mut carol, &mut bob);
    assert_eq!((ours.peer.node, theirs.peer.node), (bob.id, carol.id));
    assert!(ours.peer.introduction.is_some(), "the inviter proves the words as well");
    assert_eq!(bob.peers.policy(carol.id), Ok(Policy::Spawn));
    assert!(bob.invitations.is_empty());
}

#[test]
fn an_invitation_counts_once() {
    let (mut carol, mut bob) = invited();
    establish(&mut carol, &mut bob);
    let mut dave = Node::new(4);
    dave.ticket = Ticket::Invited(words());
    assert!(is_bad(&refused(&mut dave, &mut bob)));
}

#[test]
fn a_used_invitation_answers_its_node_and_keys_again_until_it_expires() {
    let (mut carol, mut bob) = invited();
    let ((mut dialler, first), mut answerer) = (carol.dial(), bob.answer());
    let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
    let (third, _) = feed(&mut dialler, &mut carol, &second).unwrap();
    let (_lost, link) = feed(&mut answerer, &mut bob, &third).unwrap();
    assert!(link.is_some());
    assert!(bob.invitations.is_empty());
    // Carol has not got the answer and tries once more. What was decided about her meanwhile stays.
    bob.peers.allow(carol.id, carol.keys.public().commitment(), Policy::Messages).unwrap();
    establish(&mut carol, &mut bob);
    assert_eq!(bob.peers.policy(carol.id), Ok(Policy::Messages));
    // Other keys, another node, or a wrong proof get no answer, and take none away.
    let right = words().introduce(Role::Initiator, &hash(b"one"));
    let wrong = Introduction { proof: [7; 32], ..right };
    for other in [claim(3, 4, right), claim(4, 3, right), claim(3, 3, wrong)] {
        assert_eq!(bob.invitations.redeem(bob.now, &other, &hash(b"one")), Err(Distrust::BadInvitation));
    }
    let again = bob.invitations.redeem(bob.now, &claim(3, 3, right), &hash(b"one")).unwrap();
    assert_eq!(again.grant, Grant::Before);
    assert!(words().prove(Role::Responder, &hash(b"one"), &again.answer));
    bob.now = bob.now.plus(Duration::from_secs(60));
    assert!(is_bad(&refused(&mut carol, &mut bob)));
}

#[test]
fn an_initiator_redeems_nothing() {
    let (mut alice, mut bob) = acquainted();
    alice.invitations.open(alice.now, words(), alice.now.plus(Duration::from_secs(60)), Policy::Spawn).unwrap();
    // The node that she dials knows the words, or only the id.
    bob.ticket = Ticket::Invited(words());
    let ((mut dialler, first), mut answerer) = (alice.dial(), bob.answer());
    let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
    let (third, _) = feed(&mut dialler, &mut alice, &second).unwrap();
    let (fourth, _) = feed(&mut answerer, &mut bob, &third).unwrap();
    let refusal = feed(&mut dialler, &mut alice, &fourth).unwrap_err();
    assert!(is_bad(&refusal), "{refusal}");
    assert_eq!(alice.invitations.len(), 1);
}

#[test]
fn an_entry_of_the_list_binds_the_keys() {
    let (mut peers, [ours, others]) = (Peers::default(), [1, 2].map(|seed| Keys::new(seed).public()));
    assert_eq!(peers.admit(node_id(1), &ours), Err(Distrust::UnknownChain));
    peers.allow(node_id(1), ours.commitment(), Policy::Messages).unwrap();
    assert_eq!(peers.admit(node_id(1), &ours), Ok(Policy::Messages));
    assert_eq!(peers.admit(node_id(1), &others), Err(Distrust::WrongKeys));
    let mixed = ChainKeys { ed25519: others.ed25519, ..ours.clone() };
    assert_eq!(peers.admit(node_id(1), &mixed), Err(Distrust::WrongKeys));
    // Keys change when the operator says so.
    peers.allow(node_id(1), others.commitment(), Policy::Messages).unwrap();
    assert_eq!(peers.admit(node_id(1), &ours), Err(Distrust::WrongKeys));
    assert_eq!(peers.admit(node_id(1), &others), Ok(Policy::Messages));
    peers.revoke(node_id(1)).unwrap();
    assert_eq!(peers.admit(node_id(1), &others), Err(Distrust::Revoked));
}

#[test]
fn an_invitation_expires() {
    let (mut carol, mut bob) = invited();
    bob.now = bob.now.plus(Duration::from_secs(60));
    assert!(is_bad(&refused(&mut carol, &mut bob)));
    let late = bob.invitations.open(bob.now, words(), bob.now, Policy::Messages);
    assert_eq!(late, Err(InviteError::Expired));
}

#[test]
fn a_withdrawn_invitation_lets_nobody_in() {
    let (mut carol, mut bob) = invited();
    assert!(bob.invitations.withdraw(words().id()));
    assert!(is_bad(&refused(&mut carol, &mut bob)));
}

#[test]
fn a_revoked_chain_is_not_let_in_by_an_invitation() {
    let (mut carol, mut bob) = invited();
    bob.peers.revoke(carol.id).unwrap();
    assert!(matches!(refused(&mut carol, &mut bob), Refusal::Distrusted(Distrust::Revoked)));
    assert_eq!(bob.invitations.len(), 1);
}

#[test]
fn a_guesser_has_one_try() {
    let (mut carol, mut bob) = invited();
    let now = bob.now;
    let right = words().introduce(Role::Initiator, &hash(b"one"));
    let wrong = Introduction { proof: [7; 32], ..right };
    assert_eq!(bob.invitations.redeem(now, &claim(3, 3, wrong), &hash(b"one")), Err(Distrust::BadInvitation));
    assert_eq!(bob.invitations.redeem(now, &claim(3, 3, right), &hash(b"one")), Err(Distrust::BadInvitation));
    assert!(is_bad(&refused(&mut carol, &mut bob)));
}

#[test]
fn a_name_that_is_not_known_uses_nothing_up() {
    let (mut carol, mut bob) = invited();
    let other = Words::draw(&*Seeded::new(5)).introduce(Role::Initiator, &hash(b"one"));
    assert_eq!(bob.invitations.redeem(bob.now, &claim(3, 3, other), &hash(b"one")), Err(Distrust::BadInvitation));
    establish(&mut carol, &mut bob);
}

#[test]
fn a_proof_counts_for_its_role_and_its_handshake_alone() {
    let words = words();
    let given = words.introduce(Role::Initiator, &hash(b"one"));
    assert!(words.prove(Role::Initiator, &hash(b"one"), &given));
    assert!(!words.prove(Role::Responder, &hash(b"one"), &given), "it cannot be sent back");
    assert!(!words.prove(Role::Initiator, &hash(b"two"), &given), "nor taken to another handshake");
    assert!(!Words::draw(&*Seeded::new(1)).prove(Role::Initiator, &hash(b"one"), &given));
}

#[test]
fn an_inviter_that_does_not_know_the_words_is_refused() {
    // Mallory answers in the inviter's place and lets every node in.
    for (ticket, distrust) in [
        (Ticket::Known, Distrust::UnknownChain),
        (Ticket::Invited(Words::draw(&*Seeded::new(6))), Distrust::BadInvitation),
    ] {
        let ((mut carol, _), mut mallory) = (invited(), Node::new(9));
        mallory.gullible = true;
        mallory.ticket = ticket;
        let ((mut dialler, first), mut answerer) = (carol.dial(), mallory.answer());
        let (second, _) = feed(&mut answerer, &mut mallory, &first).unwrap();
        let (third, _) = feed(&mut dialler, &mut carol, &second).unwrap();
        let (fourth, _) = feed(&mut answerer, &mut mallory, &third).unwrap();
        let refusal = feed(&mut dialler, &mut carol, &fourth).unwrap_err();
        assert!(matches!(refusal, Refusal::Distrusted(why) if why == distrust), "{refusal}");
    }
}

#[test]
fn words_are_read_as_people_type_them() {
    let typed = format!("  {}\n", WORDS.to_uppercase().replace(' ', "   "));
    assert_eq!(Words::parse(&typed).unwrap().id(), words().id());
    assert_eq!(words().text().unwrap().expose(), WORDS);
    assert_eq!(Words::parse("legal winner").unwrap_err(), BadWords::Count(2));
    assert_eq!(Words::parse(&"legal ".repeat(100_000)).unwrap_err(), BadWords::Count(13));
    assert_eq!(Words::parse(&WORDS.replace("yellow", "year")).unwrap_err(), BadWords::Mistyped);
    assert_eq!(Words::parse(&WORDS.replace("yellow", "gelb")).unwrap_err(), BadWords::Mistyped);
    assert!(!format!("{:?}", words()).contains("legal"));
}

#[test]
fn no_more_are_open_than_may_be() {
    let (mut open, random) = (Invitations::default(), Seeded::new(1));
    for _ in 0..MOST_OPEN {
        open.open(Timestamp(1), Words::draw(&*random), Timestamp(9), Policy::WitnessOnly).unwrap();
    }
    let more = open.open(Timestamp(1), Words::draw(&*random), Timestamp(9), Policy::WitnessOnly);
    assert_eq!(more, Err(InviteError::TooMany));
    open.open(Timestamp(9), Words::draw(&*random), Timestamp(10), Policy::WitnessOnly).unwrap();
}

#[test]
fn each_policy_includes_those_before_it() {
    let all = [Policy::WitnessOnly, Policy::Messages, Policy::Spawn, Policy::Successor];
    for (at, policy) in all.into_iter().enumerate() {
        assert_eq!(all.map(|needed| policy.allows(needed)), [0, 1, 2, 3].map(|needed| needed <= at));
    }
}

proptest! {
    #[test]
    fn drawn_words_are_read_back(seed: u64) {
        let drawn = Words::draw(&*Seeded::new(seed));
        let text = drawn.text().unwrap();
        prop_assert_eq!(text.expose().split(' ').count(), 12);
        prop_assert_eq!(Words::parse(text.expose()).unwrap().id(), drawn.id());
    }

    #[test]
    fn arbitrary_text_is_words_or_refused(text in ".{0,200}") {
        let _ = Words::parse(&text);
    }
}
