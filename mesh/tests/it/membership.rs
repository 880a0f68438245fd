//! Membership: who is there, across crashes, partitions and lies.

use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use ephor_mesh::{
    membership::{Command, MOST_FIRST_INCARNATION, MOST_PACKET, Member, Membership, MembershipError, settings},
    party::NodeId,
};
use proptest::prelude::*;

use crate::common::{
    Seeded,
    cluster::{Cluster, Names},
    node_id,
};

const SECOND: Duration = Duration::from_secs(1);

fn gathered(size: usize, seed: u64) -> Cluster {
    let mut cluster = Cluster::new(size, seed);
    cluster.meet();
    cluster.run_until(30 * SECOND);
    assert!(cluster.agrees());
    cluster
}

#[test]
fn nodes_that_meet_one_find_all() {
    let cluster = gathered(12, 1);
    assert!(cluster.given_up.is_empty());
}

#[test]
fn a_node_that_crashes_is_given_up_and_back_in_a_new_incarnation() {
    let mut cluster = gathered(8, 2);
    cluster.crash(3);
    cluster.run_until(60 * SECOND);
    assert!(cluster.agrees());
    assert!(cluster.given_up.iter().all(|(_, node, _)| *node == node_id(3)));
    cluster.restart(3);
    cluster.run_until(100 * SECOND);
    assert!(cluster.agrees());
    assert!(cluster.nodes[3].own().incarnation >= 2);
}

#[test]
fn a_partition_heals_by_itself() {
    let mut cluster = gathered(9, 3);
    (0..4).for_each(|at| cluster.side[at] = 1);
    cluster.run_until(90 * SECOND);
    assert!(cluster.nodes[0].members().all(|member| (0..4).any(|at| node_id(at) == member.node)));
    cluster.side.fill(0);
    cluster.run_until(210 * SECOND);
    assert!(cluster.agrees());
}

#[test]
fn a_node_that_leaves_is_missed_at_once() {
    let mut cluster = gathered(5, 4);
    let now = cluster.now;
    cluster.nodes[2].leave(now).unwrap();
    let mut told = Vec::new();
    while let Some(command) = cluster.nodes[2].poll() {
        if let Command::Send { to, packet } = command {
            told.push((to, packet));
        }
    }
    let (to, packet) = told.first().unwrap();
    let other = (0..5).find(|at| node_id(*at) == to.node).unwrap() as usize;
    cluster.nodes[other].receive(now, node_id(2), packet).unwrap();
    assert!(cluster.nodes[other].members().all(|member| member.node != node_id(2)));
}

fn alone(at: u64) -> Membership {
    let names: BTreeSet<NodeId> = (0..3).map(node_id).collect();
    let own = Member { node: node_id(at), incarnation: 1 };
    Membership::new(own, settings(NonZeroU32::new(3).unwrap()), Box::new(Names(names)), Seeded::new(at))
}

fn member(bytes: &mut Vec<u8>, node: u64, incarnation: u64) {
    bytes.extend_from_slice(&node_id(node).0.0);
    bytes.extend_from_slice(&incarnation.to_be_bytes());
}

/// A gossip packet of node 1 to node 0, with one update of state `state`.
fn gossip(about: u64, incarnation: u64, state: u8) -> Vec<u8> {
    gossip_to(1, about, incarnation, state)
}

/// The same to a later incarnation of node 0.
fn gossip_to(own: u64, about: u64, incarnation: u64, state: u8) -> Vec<u8> {
    let mut packet = Vec::new();
    member(&mut packet, 1, 1);
    packet.extend_from_slice(&[0, 0]);
    member(&mut packet, 0, own);
    packet.extend_from_slice(&[8, 0, 1]);
    member(&mut packet, about, incarnation);
    packet.extend_from_slice(&[0, 0, state]);
    packet
}

#[test]
fn a_member_cannot_bring_strangers_in() {
    let mut zero = alone(0);
    zero.receive(Duration::ZERO, node_id(1), &gossip(99, 1, 0)).unwrap();
    assert_eq!(zero.members().map(|member| member.node).collect::<Vec<_>>(), [node_id(1)]);
    zero.receive(Duration::ZERO, node_id(1), &gossip(2, 1, 0)).unwrap();
    assert_eq!(zero.members().count(), 2);
}

#[test]
fn a_packet_with_another_sender_than_its_link_is_refused() {
    let mut zero = alone(0);
    let error = zero.receive(Duration::ZERO, node_id(2), &gossip(2, 1, 0)).unwrap_err();
    assert!(matches!(error, MembershipError::Forged { .. }), "{error}");
    assert_eq!(zero.members().count(), 0);
}

#[test]
fn a_member_that_says_this_node_is_down_is_outlived() {
    let mut zero = alone(0);
    zero.receive(Duration::ZERO, node_id(1), &gossip(0, 1, 2)).unwrap();
    assert_eq!(zero.own().incarnation, 2);
    let renewed: Vec<_> =
        std::iter::from_fn(|| zero.poll()).filter(|told| matches!(told, Command::Renewed(_))).collect();
    assert_eq!(renewed, [Command::Renewed(zero.own())]);
}

#[test]
fn a_later_incarnation_of_this_node_that_somebody_made_up_is_stepped_over() {
    let mut zero = alone(0);
    zero.receive(Duration::ZERO, node_id(1), &gossip(0, 500, 0)).unwrap();
    assert_eq!(zero.own().incarnation, 501);
    // Beyond what a node can have reached it is nonsense, and not believed.
    for packet in [
        gossip_to(501, 0, u64::MAX, 0),
        gossip_to(501, 2, u64::MAX, 0),
        gossip_to(501, 2, MOST_FIRST_INCARNATION * 2, 0),
    ] {
        zero.receive(Duration::ZERO, node_id(1), &packet).unwrap();
    }
    assert_eq!(zero.own().incarnation, 501);
    assert_eq!(zero.members().map(|member| member.node).collect::<Vec<_>>(), [node_id(1)]);
    zero.receive(Duration::ZERO, node_id(1), &gossip_to(501, 2, MOST_FIRST_INCARNATION, 0)).unwrap();
    assert_eq!(zero.members().count(), 2);
}

#[test]
fn malformed_packets_change_nothing() {
    let mut zero = alone(0);
    let good = gossip(2, 1, 0);
    for cut in 0..good.len() {
        // A header alone is a packet.
        let is_packet = cut == 40 + 2 + 40 + 1;
        assert_eq!(zero.receive(Duration::ZERO, node_id(1), &good[..cut]).is_ok(), is_packet, "{cut}");
    }
    let error = zero.receive(Duration::ZERO, node_id(1), &[&*good, &[0]].concat()).unwrap_err();
    assert!(matches!(error, MembershipError::Malformed(_)), "{error}");
    let error = zero.receive(Duration::ZERO, node_id(1), &vec![0; MOST_PACKET + 1]).unwrap_err();
    assert!(matches!(error, MembershipError::TooLong(16_385)), "{error}");
}

proptest! {
    #[test]
    fn arbitrary_packets_bring_nobody_in(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut zero = alone(0);
        let mut packet = Vec::new();
        member(&mut packet, 1, 1);
        packet.extend(bytes);
        let _refused = zero.receive(Duration::ZERO, node_id(1), &packet);
        let strangers = zero.members().any(|member| ![node_id(1), node_id(2)].contains(&member.node));
        prop_assert!(!strangers);
    }
}
