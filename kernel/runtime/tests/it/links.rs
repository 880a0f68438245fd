//! Links, monitors, exit trapping and names, as OTP has them.

use std::collections::{BTreeMap, VecDeque};

use ephor_base::{ExitReason, Pid};
use ephor_runtime::links::{Gone, Links, NotNamed, Signal};

fn world(pids: u64) -> Links {
    let mut links = Links::default();
    (1..=pids).for_each(|pid| links.begin(Pid(pid)));
    links
}

fn crash() -> ExitReason {
    ExitReason::Error("boom".to_owned())
}

#[test]
fn a_crash_takes_along_whoever_is_linked_and_nobody_else() {
    let mut links = world(3);
    assert_eq!(links.link(Pid(1), Pid(2)), None);
    assert_eq!(links.link(Pid(2), Pid(1)), None, "twice is once");
    assert_eq!(links.end(Pid(1), &crash()), [Signal::Die(Pid(2), crash())]);
    assert_eq!(links.end(Pid(1), &crash()), [], "an exit is told once");
    assert_eq!(links.end(Pid(2), &crash()), []);
}

#[test]
fn a_shutdown_takes_along_too_and_a_normal_exit_does_not() {
    for (reason, spares) in [(ExitReason::Normal, true), (ExitReason::Shutdown, false), (ExitReason::Killed, false)] {
        let mut links = world(2);
        assert_eq!(links.link(Pid(1), Pid(2)), None);
        assert_eq!(links.end(Pid(1), &reason).is_empty(), spares, "{reason:?}");
    }
}

#[test]
fn who_traps_exits_is_told_of_every_one_and_lives() {
    for reason in [ExitReason::Normal, crash(), ExitReason::Killed] {
        let mut links = world(2);
        links.trap(Pid(2), true);
        assert_eq!(links.link(Pid(1), Pid(2)), None);
        let told = Signal::Exit { to: Pid(2), from: Pid(1), gone: Gone::Exited(reason.clone()) };
        assert_eq!(links.end(Pid(1), &reason), [told]);
    }
}

#[test]
fn a_link_to_nobody_is_an_exit_at_once() {
    let mut links = world(2);
    links.trap(Pid(2), true);
    assert!(matches!(links.link(Pid(1), Pid(9)), Some(Signal::Die(Pid(1), ExitReason::Error(_)))));
    let told = Signal::Exit { to: Pid(2), from: Pid(9), gone: Gone::NoProcess };
    assert_eq!(links.link(Pid(2), Pid(9)), Some(told));
    assert_eq!(links.link(Pid(1), Pid(1)), None, "a link to itself is none");
}

#[test]
fn a_link_is_taken_away_from_either_side() {
    let mut links = world(2);
    assert_eq!(links.link(Pid(1), Pid(2)), None);
    links.unlink(Pid(2), Pid(1));
    assert_eq!(links.end(Pid(1), &crash()), []);
}

#[test]
fn each_monitor_is_told_once_and_harms_nobody() {
    let mut links = world(2);
    let ((one, _), (two, _)) = (links.monitor(Pid(1), Pid(2)), links.monitor(Pid(1), Pid(2)));
    let down = |monitor| Signal::Down { to: Pid(1), monitor, from: Pid(2), gone: Gone::Exited(crash()) };
    assert_eq!(links.end(Pid(2), &crash()), [down(one), down(two)]);
    assert!(!links.demonitor(one), "it is spent");
    let (late, told) = links.monitor(Pid(1), Pid(2));
    assert_eq!(told, Some(Signal::Down { to: Pid(1), monitor: late, from: Pid(2), gone: Gone::NoProcess }));
}

#[test]
fn a_monitor_that_was_taken_away_tells_nothing_and_works_one_way() {
    let mut links = world(2);
    let (monitor, _) = links.monitor(Pid(1), Pid(2));
    assert!(links.demonitor(monitor) && !links.demonitor(monitor));
    assert_eq!(links.end(Pid(2), &crash()), []);
    let mut links = world(2);
    let _monitor = links.monitor(Pid(1), Pid(2));
    assert_eq!(links.end(Pid(1), &crash()), []);
    assert_eq!(links.end(Pid(2), &crash()), [], "who watched is gone");
}

#[test]
fn a_kill_cannot_be_trapped_and_a_polite_exit_can() {
    let mut links = world(2);
    assert_eq!(links.exit(Pid(1), Pid(2), ExitReason::Normal), None, "normal from another is nothing");
    assert_eq!(links.exit(Pid(2), Pid(2), ExitReason::Normal), Some(Signal::Die(Pid(2), ExitReason::Normal)));
    assert_eq!(links.exit(Pid(1), Pid(2), crash()), Some(Signal::Die(Pid(2), crash())));
    links.trap(Pid(2), true);
    let told = Signal::Exit { to: Pid(2), from: Pid(1), gone: Gone::Exited(crash()) };
    assert_eq!(links.exit(Pid(1), Pid(2), crash()), Some(told));
    assert_eq!(links.exit(Pid(1), Pid(2), ExitReason::Killed), Some(Signal::Die(Pid(2), ExitReason::Killed)));
    assert_eq!(links.exit(Pid(1), Pid(9), ExitReason::Killed), None);
}

#[test]
fn a_name_has_one_process_and_goes_with_it() {
    let mut links = world(2);
    assert_eq!(links.register("clock", Pid(1)), Ok(()));
    assert_eq!(links.register("clock", Pid(2)), Err(NotNamed::Taken("clock".into(), Pid(1))));
    assert_eq!(links.register("watch", Pid(1)), Err(NotNamed::Named("clock".into())));
    assert_eq!(links.register("watch", Pid(9)), Err(NotNamed::NoProcess(Pid(9))));
    assert_eq!(links.whereis("clock"), Some(Pid(1)));
    assert_eq!(links.end(Pid(1), &ExitReason::Normal), []);
    assert_eq!(links.whereis("clock"), None);
    assert_eq!(links.register("clock", Pid(2)), Ok(()));
    assert_eq!(links.unregister("clock"), Some(Pid(2)));
    assert_eq!((links.unregister("clock"), links.register("watch", Pid(2))), (None, Ok(())));
}

/// A crash spreads over whatever is linked: on a random web every exit is told exactly once to each who asked.
#[test]
fn every_exit_is_observed_exactly_once_by_each_link_and_monitor_and_nothing_is_kept() {
    for seed in 0..200_u64 {
        let mut dice = seed;
        let mut roll = move |bound: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % bound
        };
        let mut links = world(20);
        let mut expected: BTreeMap<u64, u32> = BTreeMap::new();
        for pid in 1..=20 {
            links.trap(Pid(pid), roll(3) == 0);
        }
        for _ in 0..30 {
            let (one, other) = (1 + roll(20), 1 + roll(20));
            match roll(3) {
                0 | 1 => assert_eq!(links.link(Pid(one), Pid(other)), None),
                // Nobody else ends process 21, which watches.
                _ => {
                    links.begin(Pid(21));
                    let _monitor = links.monitor(Pid(21), Pid(other));
                    *expected.entry(other).or_default() += 1;
                }
            }
        }
        let mut exits = VecDeque::from([(Pid(1 + roll(20)), crash())]);
        let (mut downs, mut dead): (BTreeMap<u64, u32>, Vec<Pid>) = (BTreeMap::new(), Vec::new());
        let mut survivors = (1..=20).map(Pid);
        while let Some((pid, reason)) = exits.pop_front().or_else(|| Some((survivors.next()?, ExitReason::Normal))) {
            for signal in links.end(pid, &reason) {
                match signal {
                    Signal::Die(pid, reason) => {
                        assert!(!dead.contains(&pid), "seed {seed}: {pid} dies twice");
                        exits.push_back((pid, reason));
                    }
                    Signal::Down { from, .. } => *downs.entry(from.0).or_default() += 1,
                    Signal::Exit { to, .. } => assert!(!dead.contains(&to), "seed {seed}: {to} is told after its end"),
                }
            }
            dead.push(pid);
        }
        assert_eq!(downs, expected, "seed {seed}");
        assert_eq!(links.end(Pid(21), &ExitReason::Normal), []);
        assert!(links.is_empty(), "seed {seed}");
    }
}
