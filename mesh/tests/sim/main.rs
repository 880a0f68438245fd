//! One seed, one world: nodes with real handshakes, links, memberships and deliveries, over a network that cuts, delays, tampers and
//! parts, while nodes crash and some lose their memory. Afterwards the world is quiet for a while, and then everything must hold.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at the first surprise")]

#[path = "../common/mod.rs"]
mod common;

mod ledger;
mod node;
mod world;

use std::{num::NonZeroU32, time::Duration};

use common::cluster::{Cluster, Weather};
use ephor_mesh::{membership::settings, planted};
use ledger::Violation;
use world::{Plant, World};

const SEEDS: u64 = 100;

#[test]
fn every_seed_keeps_every_promise() {
    let (mut totals, mut links) = ([0_usize; 5], 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Plant::Nothing);
        world.run();
        assert_eq!(world.violations(), [], "seed {seed}");
        totals.iter_mut().zip(world.ledger.totals()).for_each(|(total, count)| *total += count);
        links += world.links;
    }
    let [accepted, refused, expired, unanswered, forgot] = totals;
    println!(
        "{SEEDS} seeds, {links} links: {accepted} accepted, {refused} refused, {expired} expired, {unanswered} unanswered, {forgot} forgotten"
    );
    assert!(totals.iter().all(|total| *total > 0), "the worlds show every fate: {totals:?}");
}

/// As many seeds as `EPHOR_MESH_SEEDS` says: `just sim-mesh`.
#[test]
#[ignore = "takes as long as it is told to"]
fn many_seeds_keep_every_promise() {
    let seeds = std::env::var("EPHOR_MESH_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1000_u64);
    for seed in SEEDS..SEEDS + seeds {
        let mut world = World::new(seed, Plant::Nothing);
        world.run();
        assert_eq!(world.violations(), [], "seed {seed}");
    }
}

/// What the first seeds that show anything say.
fn found(plant: Plant) -> Vec<Violation> {
    let worlds = (0..20).map(|seed| {
        let mut world = World::new(seed, plant);
        world.run();
        world.violations()
    });
    worlds.into_iter().find(|violations| !violations.is_empty()).unwrap_or_default()
}

#[test]
fn a_doubled_frame_is_found() {
    let violations = found(Plant::DoubledFrame);
    assert!(
        violations.iter().any(|one| matches!(one, Violation::LinkBroke(why) if why.contains("Doubled"))),
        "{violations:?}"
    );
}

#[test]
fn a_lost_credit_is_found() {
    let violations = found(Plant::LostCredit);
    assert!(violations.contains(&Violation::Stalled), "{violations:?}");
}

#[test]
fn a_stale_incarnation_is_found() {
    planted::plant_stale_renewal(true);
    let violations = found(Plant::Nothing);
    planted::plant_stale_renewal(false);
    assert!(violations.contains(&Violation::Disagree), "{violations:?}");
}

#[test]
fn the_same_seed_is_the_same_world() {
    let [one, other] = [7, 7].map(|seed| {
        let mut world = World::new(seed, Plant::Nothing);
        world.run();
        (world.ledger.totals(), world.links, world.story)
    });
    assert_eq!(one, other);
}

/// Packets a node a second, and false deaths, in a cluster of this size in rough weather.
fn load(size: usize) -> (f64, usize) {
    let mut cluster = Cluster::new(size, 5);
    let (least, most) = (Duration::from_millis(1), Duration::from_millis(60));
    cluster.meet();
    cluster.run_until(Duration::from_secs(30));
    cluster.weather = Weather { lost: 20, doubled: 10, least, most };
    let (before, given_up) = (cluster.sent, cluster.given_up.len());
    cluster.run_until(Duration::from_secs(50));
    let packets = (cluster.sent - before) as f64 / 20.0 / size as f64;
    (packets, cluster.given_up.len() - given_up)
}

#[test]
fn what_a_node_sends_does_not_grow_with_the_cluster() {
    let (small, large) = (load(10), load(200));
    println!(
        "packets a node a second: {:.1} of 10, {:.1} of 200; false deaths {} and {}",
        small.0, large.0, small.1, large.1
    );
    assert!(large.0 < small.0 * 1.5);
    let size = NonZeroU32::new(200).unwrap();
    println!("a death takes at most {:?} to be told", settings(size).suspect_to_down_after);
    assert_eq!(large.1, 0);
}
