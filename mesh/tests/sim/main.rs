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
use foca::Config;
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

/// How a cluster found itself, what it did in rough weather, and when one of its nodes stopped.
struct Figures {
    /// Within how long all knew all, to ten seconds.
    found: Option<Duration>,
    /// Packets a node sent in a second.
    packets: f64,
    /// How often a node that was there was given up.
    false_deaths: usize,
    /// From a crash until the first node, and until the last, gave the node up.
    known: [Duration; 2],
    /// Whether all agreed again a minute after it.
    agreed: bool,
}

fn figures(size: usize, settings: fn(NonZeroU32) -> Config) -> Figures {
    let mut cluster = Cluster::with(size, 5, settings);
    let (least, most) = (Duration::from_millis(1), Duration::from_millis(60));
    cluster.meet();
    let steps = (1..=20).map(|step| Duration::from_secs(10 * step));
    let found = steps.into_iter().find(|at| {
        cluster.run_until(*at);
        cluster.agrees()
    });
    cluster.weather = Weather { lost: 20, doubled: 10, least, most };
    let (before, given_up) = (cluster.sent, cluster.given_up.len());
    cluster.run_until(cluster.now + Duration::from_secs(20));
    let packets = (cluster.sent - before) as f64 / 20.0 / size as f64;
    let false_deaths = cluster.given_up.len() - given_up;
    cluster.given_up.clear();
    cluster.crash(size / 2);
    let crashed = cluster.now;
    cluster.run_until(crashed + Duration::from_secs(60));
    let told = cluster.given_up.iter().map(|(_, _, at)| *at - crashed);
    let known = [told.clone().min().unwrap(), told.max().unwrap()];
    Figures { found, packets, false_deaths, known, agreed: cluster.agrees() }
}

fn show(size: usize, whose: &str, settings: fn(NonZeroU32) -> Config) -> Figures {
    let figures = figures(size, settings);
    let Figures { found, packets, false_deaths, known: [first, last], agreed } = &figures;
    println!(
        "{size} nodes, {whose}: all found within {found:?}, {packets:.2} packets a node a second, {false_deaths} false deaths, a crash known after {first:.1?} to {last:.1?}, by all within a minute: {agreed}"
    );
    figures
}

#[test]
fn what_a_node_sends_does_not_grow_with_the_cluster() {
    let (small, large) = (show(10, "ours", settings), show(200, "ours", settings));
    show(200, "foca's own", Config::new_lan);
    hold(&small, &large, Duration::from_secs(60));
}

#[test]
#[ignore = "takes a while"]
fn a_thousand_nodes_find_each_other() {
    let (small, large) = (show(10, "ours", settings), show(1000, "ours", settings));
    show(1000, "foca's own", Config::new_lan);
    hold(&small, &large, Duration::from_secs(180));
}

fn hold(small: &Figures, large: &Figures, within: Duration) {
    for one in [small, large] {
        assert!(one.found.is_some_and(|found| found <= within));
        assert!(one.agreed);
        assert_eq!(one.false_deaths, 0);
    }
    assert!(large.packets < small.packets * 1.5);
}
