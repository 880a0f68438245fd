//! The timer wheel, against a sorted map. What waits on it in a runtime is in `runtime::timers`.

use std::{collections::BTreeMap, time::Duration};

use ephor_runtime::timers::{TimerId, Wheel};
use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};

const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

#[test]
fn timers_fire_in_the_order_of_their_deadlines_and_never_early() {
    let mut wheel = Wheel::at(ms(1000));
    for (deadline, name) in [(5000, "c"), (1001, "a"), (5000, "d"), (1_000_000_000, "e"), (1002, "b"), (900, "now")] {
        wheel.set(ms(deadline), name);
    }
    assert_eq!(wheel.step(ms(1000)), ["now"]);
    assert_eq!(wheel.step(ms(1001)), ["a"]);
    assert_eq!(wheel.step(ms(4999)), ["b"]);
    assert_eq!(wheel.step(ms(5000)), ["c", "d"]);
    assert_eq!(wheel.step(ms(999_999_999)), Vec::<&str>::new());
    assert_eq!(wheel.step(ms(1_000_000_000)), ["e"]);
    assert!(wheel.is_empty() && wheel.next().is_none());
}

#[test]
fn a_part_of_a_tick_is_waited_for_whole() {
    let mut wheel = Wheel::default();
    wheel.set(Duration::from_micros(1001), ());
    assert_eq!(wheel.step(Duration::from_micros(1999)).len(), 0);
    assert_eq!(wheel.step(ms(2)).len(), 1);
}

#[test]
fn a_clock_that_goes_back_fires_nothing_twice_and_one_that_leaps_fires_everything() {
    let mut wheel = Wheel::default();
    for n in 0..100u64 {
        wheel.set(ms(n * 7919), n);
    }
    assert_eq!(wheel.step(ms(7919)), [0, 1]);
    assert_eq!(wheel.step(ms(0)), Vec::<u64>::new());
    wheel.set(ms(5), 1000);
    assert_eq!(wheel.step(ms(3)), [1000], "its time had come before the clock went back");
    assert_eq!(wheel.step(Duration::MAX).len(), 98);
}

#[test]
fn a_cancelled_timer_does_not_fire_and_its_name_is_not_used_again() {
    let mut wheel = Wheel::default();
    let first = wheel.set(ms(10), "first");
    assert_eq!(wheel.cancel(first), Some("first"));
    let second = wheel.set(ms(10), "second");
    assert_eq!(wheel.cancel(first), None);
    assert_eq!(wheel.step(ms(10)), ["second"]);
    assert_eq!(wheel.cancel(second), None);
    // The room of many is given back, and the names of those who had it are gone all the same.
    let many: Vec<TimerId> = (0..5000).map(|_| wheel.set(ms(20), "many")).collect();
    assert_eq!(wheel.step(ms(20)).len(), 5000);
    let last = wheel.set(ms(30), "last");
    assert!(many.iter().all(|one| wheel.cancel(*one).is_none() && wheel.at_mut(*one).is_none()));
    assert_eq!(wheel.at_mut(last), Some(&mut "last"));
    assert_eq!(wheel.step(ms(30)), ["last"]);
}

#[test]
fn a_million_timers_are_set_cancelled_and_fired() {
    let mut wheel = Wheel::default();
    let ids: Vec<TimerId> =
        (0..1_000_000u64).map(|n| wheel.set(ms(n.wrapping_mul(2_654_435_761) % 100_000_000), n)).collect();
    assert_eq!(wheel.len(), 1_000_000);
    let cancelled = ids.iter().step_by(2).filter(|id| wheel.cancel(**id).is_some()).count();
    let mut fired = 0;
    for time in (0..=100_000_000).step_by(1_000_000) {
        fired += wheel.step(ms(time)).len();
    }
    assert_eq!((cancelled, fired, wheel.len()), (500_000, 500_000, 0));
}

/// A step of a random life of a wheel.
#[derive(Clone, Debug)]
enum Do {
    Set(u64),
    Cancel(prop::sample::Index),
    Step(u64),
    Sleep,
}

fn act() -> impl Strategy<Value = Do> {
    // Short, around the edges of levels, and beyond the last one.
    let time =
        prop_oneof![0..200u64, 4000..4200u64, 262_000..263_000u64, 0..70_000_000_000u64, (1u64 << 36)..(1u64 << 40)];
    prop_oneof![
        4 => time.clone().prop_map(Do::Set),
        1 => any::<prop::sample::Index>().prop_map(Do::Cancel),
        2 => time.prop_map(Do::Step),
        2 => prop::strategy::Just(Do::Sleep),
    ]
}

proptest! {
    #[test]
    fn a_wheel_does_what_a_sorted_map_does(acts in prop::collection::vec(act(), 0..200)) {
        let mut wheel = Wheel::default();
        let (mut map, mut now, mut ids) = (BTreeMap::new(), 0, Vec::new());
        for (n, act) in acts.into_iter().enumerate() {
            match act {
                Do::Set(after) => {
                    let id = wheel.set(ms(now + after), n);
                    map.insert((now + after, n), id);
                    ids.push((now + after, n));
                }
                Do::Cancel(which) if !ids.is_empty() => {
                    let key = ids[which.index(ids.len())];
                    if let Some(id) = map.remove(&key) {
                        assert_eq!(wheel.cancel(id), Some(key.1));
                    }
                }
                Do::Cancel(_) => {}
                Do::Step(after) => now += after,
                // As a runtime does: to when the wheel says.
                Do::Sleep => {
                    if let Some(next) = wheel.next() {
                        let first = map.keys().next().unwrap().0;
                        let next = u64::try_from(next.as_millis()).unwrap();
                        assert!(next <= first.max(now), "it would sleep past {first}: until {next}");
                        now = now.max(next);
                    }
                }
            }
            let due: Vec<usize> = map.keys().take_while(|(deadline, _)| *deadline <= now).map(|(_, n)| *n).collect();
            map = map.split_off(&(now + 1, 0));
            assert_eq!(wheel.step(ms(now)), due);
            assert_eq!(wheel.len(), map.len());
            assert_eq!(wheel.next().is_some(), !map.is_empty());
        }
    }
}
