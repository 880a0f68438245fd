//! Supervisors whose children are all of one kind and come and go (OTP `simple_one_for_one`).

use ephor_base::ExitReason;
use ephor_runtime::supervisor::{ChildId, Event, Request, Restart, Shutdown, Strategy, Target};

use super::{Act, PATIENCE, Rig, crash, flags, spec};

fn up(restarts: usize, restart: Restart) -> Rig {
    let mut rig = Rig::up(flags(Strategy::Dynamic, restarts), vec![spec("kind", restart)]);
    for name in ["a", "b", "c"] {
        assert_eq!(rig.grows(name), [format!("start {name}"), format!("started {name}")]);
    }
    rig
}

fn terminate(rig: &mut Rig, name: &str) -> Vec<String> {
    let id = rig.ids[name];
    rig.asks(Request::Terminate(Target::Child(id)))
}

#[test]
fn it_begins_without_children_and_each_is_restarted_by_itself() {
    let mut rig = up(1, Restart::Permanent);
    assert_eq!(rig.exits("b", ExitReason::Normal), ["start b"]);
    assert_eq!(rig.asks(Request::Count), ["1 specs, 3 active, 0 supervisors, 3 workers"]);
}

#[test]
fn a_child_that_is_not_restarted_is_forgotten() {
    let mut rig = up(1, Restart::Transient);
    assert_eq!(rig.exits("b", ExitReason::Shutdown), ["forget b"]);
    assert_eq!(rig.asks(Request::Count), ["1 specs, 2 active, 0 supervisors, 2 workers"]);
}

#[test]
fn a_child_that_is_ignored_or_fails_is_forgotten() {
    let mut rig = up(9, Restart::Permanent);
    assert_eq!(rig.will("d", &[Act::Ignore, Act::Fail]).grows("d"), ["start d", "forget d", "ignored"]);
    assert_eq!(rig.grows("d")[2], "refused: it could not be started: refused");
    // OTP keeps such a child as `undefined`, and crashes over it when it stops.
    assert_eq!(rig.will("a", &[Act::Ignore]).exits("a", crash()), ["start a", "forget a"]);
    assert_eq!(rig.asks(Request::Count), ["1 specs, 2 active, 0 supervisors, 2 workers"]);
}

#[test]
fn a_child_is_terminated_by_its_id_also_between_two_tries() {
    let mut rig = up(9, Restart::Permanent);
    assert_eq!(terminate(&mut rig, "a"), ["stop a", "forget a", "done"]);
    assert_eq!(terminate(&mut rig, "a"), ["done"], "what is over needs no end");
    let nobody = Target::Child(ChildId { place: 77, run: 1 });
    assert_eq!(rig.asks(Request::Terminate(nobody)), ["done"]);
    let b = rig.ids["b"];
    let commands = rig.engine.step(rig.now, Event::Exited(b, crash()));
    let ephor_runtime::supervisor::Command::Start(again) = commands[1] else { panic!("{commands:?}") };
    let _timer = rig.engine.step(rig.now, Event::StartFailed(again, "refused".to_owned()));
    assert_eq!(rig.asks(Request::Count), ["1 specs, 1 active, 0 supervisors, 2 workers"]);
    assert_eq!(terminate(&mut rig, "b"), ["forget b", "done"]);
    assert_eq!(rig.asks(Request::Count), ["1 specs, 1 active, 0 supervisors, 1 workers"]);
}

#[test]
fn all_children_are_stopped_together_and_killed_together_when_time_is_over() {
    let mut rig = up(0, Restart::Permanent);
    rig.deaf = vec!["a".to_owned(), "c".to_owned()];
    assert_eq!(rig.happens(Event::Stop(ExitReason::Shutdown)), ["stop a", "stop b", "stop c"]);
    assert_eq!(rig.exits("a", crash()), [""; 0]);
    assert_eq!(rig.waits(PATIENCE), ["kill c", "exit shutdown: told to"]);
}

#[test]
fn children_that_are_to_be_killed_are_killed_at_once() {
    let mut kind = spec("kind", Restart::Permanent);
    kind.shutdown = Shutdown::Brutal;
    let mut rig = Rig::up(flags(Strategy::Dynamic, 0), vec![kind]);
    rig.grows("a");
    rig.grows("b");
    assert_eq!(rig.exits("a", crash()), ["forget a", "kill b", "exit shutdown: too many restarts"]);
}

#[test]
fn a_restart_that_always_fails_ends_the_supervisor() {
    let mut rig = up(2, Restart::Permanent);
    let log = rig.will("a", &[Act::Fail; 9]).exits("a", crash());
    assert_eq!(log, ["start a", "start a", "forget a", "stop b", "stop c", "exit shutdown: too many restarts"]);
}
