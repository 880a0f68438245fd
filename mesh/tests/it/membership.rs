//! Membership: who is there, across crashes, partitions and lies.

use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use ephor_mesh::{
    membership::{
        Command, MOST_AHEAD, MOST_FIRST_INCARNATION, MOST_INCARNATION, MOST_PACKET, Member, Membership,
        MembershipError, settings,
    },
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
    among(at, (0..3).map(node_id).collect())
}

/// Node `at` in its first incarnation, which lets `names` be members.
fn among(at: u64, names: BTreeSet<NodeId>) -> Membership {
    let own = Member { node: node_id(at), incarnation: 1 };
    Membership::new(own, settings(NonZeroU32::new(3).unwrap()), Box::new(Names(names)), Seeded::new(at))
}

fn member(bytes: &mut Vec<u8>, node: u64, incarnation: u64) {
    bytes.extend_from_slice(&node_id(node).0.0);
    bytes.extend_from_slice(&incarnation.to_be_bytes());
}

const ALIVE: u8 = 0;
const DOWN: u8 = 2;
const GOSSIP: u8 = 8;
const TURN_UNDEAD: u8 = 10;

/// What a packet says of a node: which, in what incarnation, in what state.
type Saying = (u64, u64, u8);

/// A packet of node 1 to node `to` in an incarnation, of a kind without further fields.
fn packet(to: (u64, u64), kind: u8, updates: &[Saying]) -> Vec<u8> {
    let mut packet = Vec::new();
    member(&mut packet, 1, 1);
    packet.extend_from_slice(&[0, 0]);
    member(&mut packet, to.0, to.1);
    packet.push(kind);
    packet.extend_from_slice(&u16::try_from(updates.len()).unwrap().to_be_bytes());
    for (about, incarnation, state) in updates {
        member(&mut packet, *about, *incarnation);
        packet.extend_from_slice(&[0, 0, *state]);
    }
    packet
}

/// A gossip packet of node 1 to node 0 in its first incarnation.
fn gossip(updates: &[Saying]) -> Vec<u8> {
    packet((0, 1), GOSSIP, updates)
}

fn hear(of: &mut Membership, packet: &[u8]) -> Result<(), MembershipError> {
    of.receive(Duration::ZERO, node_id(1), packet)
}

fn commands(of: &mut Membership) -> Vec<Command> {
    std::iter::from_fn(|| of.poll()).collect()
}

fn renewals(of: &mut Membership) -> usize {
    commands(of).iter().filter(|told| matches!(told, Command::Renewed(_))).count()
}

fn known(of: &Membership) -> BTreeSet<Member> {
    of.members().collect()
}

fn at(node: u64, incarnation: u64) -> Member {
    Member { node: node_id(node), incarnation }
}

/// The highest incarnation that others may make up of a node in one of its first.
const REACH: u64 = MOST_FIRST_INCARNATION + MOST_AHEAD;

#[test]
fn a_member_cannot_bring_strangers_in() {
    let mut zero = alone(0);
    hear(&mut zero, &gossip(&[(99, 1, ALIVE)])).unwrap();
    assert_eq!(known(&zero), [at(1, 1)].into());
    hear(&mut zero, &gossip(&[(2, 1, ALIVE)])).unwrap();
    assert_eq!(known(&zero), [at(1, 1), at(2, 1)].into());
}

#[test]
fn a_packet_with_another_sender_than_its_link_is_refused() {
    let mut zero = alone(0);
    let error = zero.receive(Duration::ZERO, node_id(2), &gossip(&[(2, 1, ALIVE)])).unwrap_err();
    assert!(matches!(error, MembershipError::Forged { .. }), "{error}");
    assert_eq!(zero.members().count(), 0);
}

#[test]
fn a_packet_for_another_node_is_refused() {
    let mut zero = alone(0);
    let error = hear(&mut zero, &packet((2, 1), GOSSIP, &[(0, 9, DOWN)])).unwrap_err();
    assert!(matches!(error, MembershipError::Misdirected(node) if node == node_id(2)), "{error}");
    assert_eq!((zero.own(), zero.members().count()), (at(0, 1), 0));
}

#[test]
fn a_link_alone_makes_no_member() {
    // Node 1 is a witness, or was revoked: it is not on the roster.
    let mut zero = among(0, [node_id(0), node_id(2)].into());
    let error = hear(&mut zero, &gossip(&[(2, 1, ALIVE), (0, 7, ALIVE)])).unwrap_err();
    assert!(matches!(error, MembershipError::NotAMember(node) if node == node_id(1)), "{error}");
    assert_eq!((zero.own(), zero.members().count()), (at(0, 1), 0));
    zero.meet(Duration::ZERO, node_id(1)).unwrap();
    assert_eq!(commands(&mut zero), []);
    zero.meet(Duration::ZERO, node_id(2)).unwrap();
    assert_eq!(commands(&mut zero).len(), 1);
}

#[test]
fn a_member_that_says_this_node_is_down_is_outlived() {
    let mut zero = alone(0);
    hear(&mut zero, &gossip(&[(0, 1, DOWN)])).unwrap();
    assert_eq!(zero.own().incarnation, 2);
    let renewed: Vec<_> = commands(&mut zero).into_iter().filter(|told| matches!(told, Command::Renewed(_))).collect();
    assert_eq!(renewed, [Command::Renewed(zero.own())]);
}

#[test]
fn a_later_incarnation_of_this_node_that_a_member_made_up_is_stepped_over() {
    let mut zero = alone(0);
    hear(&mut zero, &gossip(&[(0, 500, ALIVE)])).unwrap();
    assert_eq!(zero.own().incarnation, 501);
    // A member that believes it speaks to it.
    hear(&mut zero, &packet((0, 600), GOSSIP, &[])).unwrap();
    assert_eq!(zero.own().incarnation, 601);
    // Beyond what a node can have reached it is nonsense.
    hear(&mut zero, &packet((0, 601), GOSSIP, &[(0, REACH + 1, ALIVE)])).unwrap();
    hear(&mut zero, &packet((0, REACH + 1), GOSSIP, &[])).unwrap();
    assert_eq!(zero.own().incarnation, 601);
    hear(&mut zero, &packet((0, 601), GOSSIP, &[(0, REACH, DOWN)])).unwrap();
    assert_eq!(zero.own().incarnation, REACH + 1);
}

#[test]
fn what_others_say_of_a_node_does_not_raise_what_they_may_say() {
    let mut zero = alone(0);
    hear(&mut zero, &gossip(&[(2, REACH, ALIVE)])).unwrap();
    assert_eq!(known(&zero), [at(1, 1), at(2, REACH)].into());
    for incarnation in [REACH + 1, REACH + MOST_AHEAD, MOST_INCARNATION] {
        for state in [ALIVE, DOWN] {
            hear(&mut zero, &gossip(&[(2, incarnation, state)])).unwrap();
            assert_eq!(known(&zero), [at(1, 1), at(2, REACH)].into());
        }
    }
    // So the node that was lied about can step over the lie, and is back as soon as it speaks itself.
    let mut two = alone(2);
    hear(&mut two, &packet((2, REACH), GOSSIP, &[])).unwrap();
    assert_eq!(two.own(), at(2, REACH + 1));
    two.meet(Duration::ZERO, node_id(0)).unwrap();
    for told in commands(&mut two) {
        if let Command::Send { to, packet } = told
            && to.node == node_id(0)
        {
            zero.receive(Duration::ZERO, node_id(2), &packet).unwrap();
        }
    }
    assert_eq!(known(&zero), [at(1, 1), at(2, REACH + 1)].into());
    // What it has said itself moves the bound.
    hear(&mut zero, &gossip(&[(2, REACH + 1 + MOST_AHEAD, ALIVE)])).unwrap();
    assert_eq!(known(&zero), [at(1, 1), at(2, REACH + 1 + MOST_AHEAD)].into());
}

#[test]
fn what_is_made_up_about_this_node_is_not_passed_on() {
    let mut zero = alone(0);
    hear(&mut zero, &gossip(&[(2, 1, ALIVE)])).unwrap();
    commands(&mut zero);
    hear(&mut zero, &gossip(&[(0, REACH + 1, ALIVE)])).unwrap();
    hear(&mut zero, &gossip(&[(0, 0, ALIVE)])).unwrap();
    for _ in 0..50 {
        let Some(due) = zero.deadline() else { break };
        let _refused = zero.tick(due);
    }
    let mut claimed = [Vec::new(), Vec::new()];
    member(&mut claimed[0], 0, REACH + 1);
    member(&mut claimed[1], 0, 0);
    let mut sent = 0;
    for told in commands(&mut zero) {
        if let Command::Send { packet, .. } = told {
            sent += 1;
            assert!(!claimed.iter().any(|claimed| packet.windows(claimed.len()).any(|part| part == claimed)));
        }
    }
    assert!(sent > 0);
}

#[test]
fn a_packet_makes_one_renewal_at_most() {
    for state in [ALIVE, DOWN] {
        let mut zero = alone(0);
        let ascending: Vec<Saying> = (1..=370).map(|incarnation| (0, incarnation, state)).collect();
        let error = hear(&mut zero, &gossip(&ascending)).unwrap_err();
        assert!(matches!(error, MembershipError::Malformed(_)), "{error}");
        assert_eq!((renewals(&mut zero), zero.own()), (0, at(0, 1)));
        hear(&mut zero, &gossip(&[(0, 370, state), (2, 1, ALIVE)])).unwrap();
        assert_eq!((renewals(&mut zero), zero.own()), (1, at(0, 371)));
        assert_eq!(known(&zero), [at(1, 1), at(2, 1)].into(), "the rest of the packet counts");
    }
    let mut zero = alone(0);
    let mut undead = packet((0, 1), TURN_UNDEAD, &[]);
    undead.truncate(undead.len() - 2);
    hear(&mut zero, &undead).unwrap();
    assert_eq!((renewals(&mut zero), zero.own()), (1, at(0, 2)));
}

#[test]
fn deaths_that_are_made_up_leave_one_timer_a_node() {
    let mut zero = alone(0);
    for second in 1..=300 {
        let now = Duration::from_secs(second);
        zero.receive(now, node_id(1), &gossip(&[(2, second, DOWN)])).unwrap();
    }
    // Node 1 leaves, so nothing is done any more but to forget both.
    zero.receive(300 * SECOND, node_id(1), &gossip(&[(1, 1, DOWN)])).unwrap();
    let mut ticks = 0;
    while let Some(due) = zero.deadline() {
        let _refused = zero.tick(due);
        ticks += 1;
    }
    assert!(ticks < 20, "{ticks}");
}

#[test]
fn malformed_packets_change_nothing() {
    let good = gossip(&[(2, 1, ALIVE), (0, 9, DOWN)]);
    let mut bad: Vec<Vec<u8>> = (0..good.len()).map(|cut| good[..cut].to_vec()).collect();
    // A header alone is a packet.
    let header = bad.remove(40 + 2 + 40 + 1);
    bad.push([&*good, &[0]].concat());
    let mut no_state = good.clone();
    *no_state.last_mut().unwrap() = 3;
    bad.push(no_state);
    bad.push(gossip(&[(2, 1, ALIVE), (2, 1, ALIVE)]));
    bad.push(gossip(&[(0, 9, DOWN), (2, MOST_INCARNATION + 1, ALIVE)]));
    bad.extend([6, 9, 10, 11].map(|kind| packet((0, 1), kind, &[(0, 9, DOWN)])));
    let mut zero = alone(0);
    for mut packet in bad {
        // Nor does it count as a word of its sender.
        packet.get_mut(39).into_iter().for_each(|byte| *byte = 77);
        let error = hear(&mut zero, &packet).unwrap_err();
        assert!(matches!(error, MembershipError::Malformed(_)), "{error}: {packet:?}");
        assert_eq!((zero.own(), zero.members().count(), commands(&mut zero)), (at(0, 1), 0, Vec::new()));
        assert_eq!(zero.deadline(), None);
    }
    let error = hear(&mut zero, &vec![0; MOST_PACKET + 1]).unwrap_err();
    assert!(matches!(error, MembershipError::TooLong(16_385)), "{error}");
    zero.meet(Duration::ZERO, node_id(1)).unwrap();
    assert!(matches!(commands(&mut zero)[..], [Command::Send { to, .. }] if to == at(1, 0)));
    hear(&mut zero, &header).unwrap();
    hear(&mut zero, &good).unwrap();
    assert_eq!((zero.own(), known(&zero)), (at(0, 10), [at(1, 1), at(2, 1)].into()));
}

proptest! {
    #[test]
    fn arbitrary_packets_bring_no_stranger_in(
        kind in 0..12_u8,
        about in prop::collection::vec(any::<u8>(), 0..42),
        names in prop::collection::btree_map(any::<u64>(), (0..9_u64, 0..4_u8), 0..6),
        rest in prop::collection::vec(any::<u8>(), 0..2),
    ) {
        let length = match kind {
            0 | 1 => 1,
            2..=5 => 41,
            _ => 0,
        };
        let updates: Vec<Saying> = names.iter().map(|(node, (incarnation, state))| (*node, *incarnation, *state)).collect();
        let mut packet = gossip(&updates);
        packet[40 + 2 + 40] = kind;
        let about = about.into_iter().chain(std::iter::repeat(0)).take(length);
        packet.splice(40 + 2 + 40 + 1..40 + 2 + 40 + 1, about);
        packet.extend(rest);
        let mut zero = alone(0);
        let _refused = hear(&mut zero, &packet);
        let strangers = zero.members().any(|member| ![node_id(1), node_id(2)].contains(&member.node));
        prop_assert!(!strangers);
    }

    /// However members lie, and whatever foca makes of it: no stranger comes in, no node is put beyond its own reach, and a packet makes
    /// one renewal at most.
    #[test]
    fn lies_stay_within_reach(
        packets in prop::collection::vec(
            (any::<bool>(), any::<bool>(), prop::collection::vec((0..5_u64, 0..4_usize, -2..3_i64, 0..3_u8), 0..5)),
            1..12,
        ),
    ) {
        let mut zero = alone(0);
        for (current, undead, claims) in packets {
            let own = zero.own().incarnation;
            let bases = [2, own, REACH, own.max(MOST_FIRST_INCARNATION) + MOST_AHEAD];
            let claims: Vec<Saying> =
                claims.iter().map(|(node, base, off, state)| (*node, bases[*base].saturating_add_signed(*off), *state)).collect();
            let kind = if undead && claims.is_empty() { TURN_UNDEAD } else { GOSSIP };
            let mut packet = packet((0, if current { own } else { own + 3 }), kind, &claims);
            if kind == TURN_UNDEAD {
                packet.truncate(packet.len() - 2);
            }
            let _refused = hear(&mut zero, &packet);
            prop_assert!(renewals(&mut zero) <= 1);
            prop_assert!(zero.own().incarnation <= own.max(MOST_FIRST_INCARNATION) + MOST_AHEAD + 1);
            for member in known(&zero) {
                prop_assert!([node_id(1), node_id(2)].contains(&member.node));
                prop_assert!(member.incarnation <= REACH);
            }
        }
    }
}
