//! The restart intensity, starts that fail again and again, and the wait between restarts.

use std::time::Duration;

use ephor_base::ExitReason;
use ephor_runtime::supervisor::{
    Backoff, Cause, Command, Event, Flags, Intensity, Request, Restart, Strategy, Target, Timer,
};

use super::{Act, Rig, crash, flags, permanent, spec};

const TREE: Flags = Flags::one_for_one(Intensity::TREE);
const GONE: &str = "exit shutdown: too many restarts";

#[test]
fn the_window_ends_as_otps_does() {
    // OTP's supervisor:add_restart/3 keeps a restart whose age is the period exactly.
    for (age, gives_up) in [(4_999, true), (5_000, true), (5_001, false)] {
        let mut rig = Rig::up(TREE, permanent(&["a"]));
        assert_eq!(rig.exits("a", crash()), ["start a"]);
        rig.waits(Duration::from_millis(age));
        assert_eq!(rig.exits("a", crash()), [if gives_up { GONE } else { "start a" }], "{age} ms");
    }
}

#[test]
fn as_many_restarts_as_allowed_within_any_period_and_not_one_more() {
    let mut rig =
        Rig::up(Flags::one_for_one(Intensity { restarts: 3, period: Duration::from_secs(10) }), permanent(&["a"]));
    for _ in 0..30 {
        assert_eq!(rig.exits("a", crash()), ["start a"]);
        rig.waits(Duration::from_secs(4));
    }
    assert_eq!(rig.exits("a", crash()), ["start a"]);
    assert_eq!(rig.exits("a", crash()), [GONE]);
}

#[test]
fn where_none_are_allowed_the_first_is_one_too_many() {
    assert_eq!(Rig::up(flags(Strategy::OneForOne, 0), permanent(&["a"])).exits("a", crash()), [GONE]);
}

#[test]
fn exits_that_restart_nobody_do_not_count() {
    let specs = vec![spec("a", Restart::Temporary), spec("b", Restart::Transient)];
    let mut rig = Rig::up(flags(Strategy::OneForOne, 0), specs);
    assert_eq!(rig.exits("a", crash()), ["forget a"]);
    assert_eq!(rig.exits("b", ExitReason::Normal), [""; 0]);
}

#[test]
fn a_start_that_fails_is_tried_again_and_every_try_counts() {
    let mut rig = Rig::up(flags(Strategy::OneForOne, 3), permanent(&["a", "b"]));
    assert_eq!(rig.will("a", &[Act::Fail; 2]).exits("a", crash()), ["start a"; 3]);
    assert_eq!(rig.exits("b", crash()), ["stop a", GONE]);
    let mut rig = Rig::up(flags(Strategy::OneForOne, 3), permanent(&["a", "b"]));
    let log = rig.will("a", &[Act::Fail; 9]).exits("a", crash());
    assert_eq!(log, ["start a", "start a", "start a", "stop b", GONE]);
}

#[test]
fn a_child_that_is_ignored_at_its_restart_stays_stopped() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        let mut rig = Rig::up(flags(strategy, 1), permanent(&["a"]));
        assert_eq!(rig.will("a", &[Act::Ignore]).exits("a", crash()), ["start a"]);
        assert_eq!(rig.asks(Request::Which), ["children a:Stopped"]);
    }
}

/// A child whose restart failed once; the next try has not come yet.
fn restarting() -> (Rig, Timer) {
    let mut rig = Rig::up(flags(Strategy::OneForOne, 9), permanent(&["a", "b"]));
    let Command::Start(again) = rig.engine.step(rig.now, Event::Exited(rig.ids["a"], crash()))[1] else { panic!() };
    let failed = rig.engine.step(rig.now, Event::StartFailed(again, "refused".to_owned()));
    let Command::Set(timer, Duration::ZERO) = failed[0] else { panic!("{failed:?}") };
    (rig, timer)
}

#[test]
fn between_two_tries_requests_and_exits_are_served() {
    let (mut rig, timer) = restarting();
    assert_eq!(rig.asks(Request::Which), ["children b:Running a:Restarting"]);
    assert_eq!(rig.asks(Request::Count), ["2 specs, 1 active, 0 supervisors, 2 workers"]);
    assert_eq!(rig.asks(Request::Restart("a".into())), ["refused: it is about to be started again"]);
    assert_eq!(rig.asks(Request::Delete("a".into())), ["refused: it is about to be started again"]);
    assert_eq!(
        rig.asks(Request::Start(spec("a", Restart::Permanent))),
        ["refused: it is there already, and does not run"]
    );
    assert_eq!(rig.exits("b", crash()), ["start b"]);
    assert_eq!(rig.happens(Event::Fired(timer)), ["start a"]);
}

#[test]
fn a_child_that_is_terminated_between_two_tries_is_not_tried_again() {
    let (mut rig, timer) = restarting();
    assert_eq!(rig.asks(Request::Terminate(Target::Name("a".into()))), ["done"]);
    assert_eq!(rig.happens(Event::Fired(timer)), [""; 0]);
    assert_eq!(rig.asks(Request::Restart("a".into())), ["start a", "started a"]);
    assert_eq!(rig.happens(Event::Fired(timer)), [""; 0]);
}

#[test]
fn a_stop_between_two_tries_is_obeyed() {
    let (mut rig, timer) = restarting();
    assert_eq!(rig.happens(Event::Stop(ExitReason::Shutdown)), ["stop b", "exit shutdown: told to"]);
    assert_eq!(rig.happens(Event::Fired(timer)), [""; 0]);
}

#[test]
fn every_restart_is_on_the_record_with_its_cause() {
    let mut rig = Rig::up(flags(Strategy::OneForOne, 9), permanent(&["a"]));
    let a = rig.ids["a"];
    let commands = rig.engine.step(rig.now, Event::Exited(a, crash()));
    assert_eq!(commands[0], Command::Record(a, Cause::Exited(crash())));
    let (mut rig, timer) = restarting();
    assert!(matches!(rig.engine.step(rig.now, Event::Fired(timer))[0], Command::Record(_, Cause::StartFailed)));
}

const SLOWER: Backoff = Backoff {
    free: 1,
    first: Duration::from_millis(100),
    most: Duration::from_secs(1),
    healthy: Duration::from_secs(30),
};

fn waits_of(rig: &mut Rig, crashes: usize) -> Vec<Duration> {
    let wait = |rig: &mut Rig| {
        let began = rig.now;
        let log = rig.exits("a", crash());
        if log.is_empty() {
            let due = rig.clock.first_key_value().unwrap().0.0;
            assert_eq!(rig.waits(due - began), ["start a"]);
        }
        rig.now - began
    };
    (0..crashes).map(|_| wait(rig)).collect()
}

#[test]
fn crashes_in_a_row_wait_longer_and_longer_and_never_the_same() {
    let slower = Flags { backoff: SLOWER, ..flags(Strategy::OneForOne, 99) };
    let mut rig = Rig::up(slower, permanent(&["a"]));
    let waits = waits_of(&mut rig, 8);
    assert_eq!(waits[0], Duration::ZERO, "the first restart comes at once");
    for (wait, full) in waits[1..].iter().zip([100, 200, 400, 800, 1000, 1000, 1000]) {
        let full = Duration::from_millis(full);
        assert!(*wait >= full / 2 && *wait <= full, "{waits:?}");
    }
    assert!(waits[5] != waits[6], "{waits:?}");
    // A healthy spell ends the row.
    rig.waits(SLOWER.healthy);
    assert_eq!(waits_of(&mut rig, 1), [Duration::ZERO]);
}

#[test]
fn a_wait_can_be_cut_short_by_a_stop_or_a_termination() {
    let slower = Flags { backoff: Backoff { free: 0, ..SLOWER }, ..flags(Strategy::OneForAll, 99) };
    let mut rig = Rig::up(slower, permanent(&["a", "b"]));
    assert_eq!(rig.exits("a", crash()), ["stop b"], "the others stop at once");
    assert_eq!(rig.asks(Request::Which), ["children b:Stopped a:Restarting"]);
    assert_eq!(rig.waits(SLOWER.first), ["start a", "start b"]);
    assert_eq!(rig.exits("b", crash()), ["stop a"]);
    assert_eq!(rig.asks(Request::Terminate(Target::Name("b".into()))), ["done"]);
    assert_eq!(rig.waits(SLOWER.most), [""; 0]);
    assert_eq!(rig.happens(Event::Stop(ExitReason::Shutdown)), ["exit shutdown: told to"]);
}
