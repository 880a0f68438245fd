//! Whoever sets the clock does not make young entries old.

use std::path::Path;

use ephor_chain::{OpenError, PruneError};

use super::{DAY, aged, live, plan, prune};
use crate::common::{World, block_on, memory::Memory, plain};

fn young() -> World {
    let world = World::new(Memory::default().files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    live(&log, &world, 0..100);
    block_on(log.publish()).unwrap();
    block_on(log.close()).unwrap();
    world
}

#[test]
fn a_clock_set_ahead_by_years_prunes_nothing() {
    for years in [1, 10, 500_000] {
        let world = young();
        world.later(years * 365 * DAY);
        let (log, _) = match world.open() {
            // What no clock says is not believed at all.
            Err(OpenError::Clock { .. }) if years > 10 => continue,
            opened => opened.unwrap(),
        };
        assert!(matches!(prune(&log), Err(PruneError::Nothing)), "{years}");
        // Nor when it stays there for a while, or is set ahead once more.
        live(&log, &world, 100..160);
        assert!(matches!(prune(&log), Err(PruneError::Nothing)), "{years}");
        world.later(365 * DAY);
        block_on(log.append(plain(1))).unwrap();
        assert!(matches!(prune(&log), Err(PruneError::Nothing)), "{years}");
    }
}

#[test]
fn a_step_that_was_taken_back_counts_as_nothing_before_that_time_comes() {
    let world = young();
    let (log, _) = world.open().unwrap();
    let right = log.entries().last().unwrap().unwrap().entry.time.0;
    // Many steps of a week, each with an entry, as somebody would take them who knows how age is counted.
    for _ in 0..40 {
        world.later(7 * DAY);
        block_on(log.append(plain(1))).unwrap();
    }
    block_on(log.publish()).unwrap();
    assert!(plan(&log).minimum > 0, "the attack is none");
    world.still.set(right + DAY);
    assert_eq!(plan(&log).minimum, 0);
    // Time that is recorded again only when it is really there.
    world.still.set(right + 400 * DAY);
    assert!(plan(&log).minimum > 0);
}

#[test]
fn a_clock_set_back_prunes_nothing_more() {
    let (_, world) = aged(400);
    let (log, _) = world.open().unwrap();
    let ordinary = plan(&log).minimum;
    assert!(ordinary > 0);
    world.still.set(1_795_226_899_000_000 + 200 * DAY);
    let back = plan(&log).minimum;
    assert!(back < ordinary, "{back} {ordinary}");
    world.still.set(0);
    assert_eq!(plan(&log).minimum, 0);
}

#[test]
fn a_log_that_rested_keeps_more_and_not_less() {
    let world = young();
    world.later(179 * DAY);
    let (log, _) = world.open().unwrap();
    live(&log, &world, 100..110);
    assert_eq!(plan(&log).minimum, 0);
    live(&log, &world, 110..300);
    block_on(log.publish()).unwrap();
    assert!(plan(&log).minimum > 0);
}
