//! Whom a restart takes along, and trees of supervisors.

use ephor_base::ExitReason;
use ephor_runtime::supervisor::{Event, Request, Restart, Strategy, Target};

use super::{Act, Rig, crash, flags, permanent, spec};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[test]
fn one_for_one_restarts_only_the_child_that_exited() {
    assert_eq!(Rig::up(flags(Strategy::OneForOne, 1), permanent(&NAMES)).exits("b", crash()), ["start b"]);
}

#[test]
fn one_for_all_stops_the_others_in_reverse_and_starts_all_in_order() {
    let log = Rig::up(flags(Strategy::OneForAll, 1), permanent(&NAMES)).exits("b", crash());
    assert_eq!(log, ["stop d", "stop c", "stop a", "start a", "start b", "start c", "start d"]);
}

#[test]
fn rest_for_one_takes_those_along_that_were_started_after() {
    let log = Rig::up(flags(Strategy::RestForOne, 1), permanent(&NAMES)).exits("b", crash());
    assert_eq!(log, ["stop d", "stop c", "start b", "start c", "start d"]);
}

#[test]
fn a_temporary_sibling_that_is_stopped_along_is_not_started_again() {
    let specs = vec![spec("a", Restart::Permanent), spec("b", Restart::Temporary), spec("c", Restart::Transient)];
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let log = Rig::up(flags(strategy, 1), specs.clone()).exits("a", crash());
        assert_eq!(log, ["stop c", "stop b", "forget b", "start a", "start c"], "{strategy:?}");
    }
}

#[test]
fn an_exit_that_restarts_nobody_takes_nobody_along() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let specs = vec![spec("a", Restart::Transient), spec("b", Restart::Permanent)];
        assert_eq!(Rig::up(flags(strategy, 0), specs).exits("a", ExitReason::Normal), [""; 0], "{strategy:?}");
    }
}

#[test]
fn a_restart_starts_siblings_too_that_were_stopped_before() {
    let mut rig = Rig::up(flags(Strategy::OneForAll, 1), permanent(&["a", "b"]));
    assert_eq!(rig.asks(Request::Terminate(Target::Name("b".into()))), ["stop b", "done"]);
    assert_eq!(rig.exits("a", crash()), ["start a", "start b"]);
}

#[test]
fn too_many_restarts_stop_the_others_and_the_supervisor_exits_with_shutdown() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        let mut rig = Rig::up(flags(strategy, 0), permanent(&["a", "b", "c"]));
        let log = rig.exits("b", crash());
        assert_eq!(log, ["stop c", "stop a", "exit shutdown: too many restarts"], "{strategy:?}");
    }
}

#[test]
fn children_that_exit_while_they_are_to_be_stopped_are_not_stopped_and_count_once() {
    let mut rig = Rig::up(flags(Strategy::OneForAll, 1), permanent(&["a", "b", "c"]));
    let exits = ["a", "b", "c"].map(|name| Event::Exited(rig.ids[name], crash()));
    rig.deaf = vec!["b".to_owned(), "c".to_owned()];
    assert_eq!(rig.all_happen(exits), ["stop c", "start a", "start b", "start c"]);
}

#[test]
fn a_sibling_outside_of_the_restart_that_exits_meanwhile_waits_its_turn() {
    let mut rig = Rig::up(flags(Strategy::RestForOne, 2), permanent(&["a", "b", "c"]));
    rig.deaf = vec!["c".to_owned()];
    assert_eq!(rig.exits("b", crash()), ["stop c"]);
    assert_eq!(rig.exits("a", crash()), [""; 0]);
    let log = rig.exits("c", ExitReason::Killed);
    assert_eq!(log[..2], ["start b", "start c"], "first what was begun");
    assert_eq!(log[2..], ["stop c"]);
    let log = rig.exits("c", ExitReason::Shutdown);
    assert_eq!(log, ["stop b", "start a", "start b", "start c"]);
}

#[test]
fn one_for_all_tries_again_from_the_beginning_when_a_start_fails() {
    let mut rig = Rig::up(flags(Strategy::OneForAll, 3), permanent(&["a", "b", "c"]));
    let log = rig.will("b", &[Act::Fail]).exits("c", crash());
    assert_eq!(log, ["stop b", "stop a", "start a", "start b", "stop a", "start a", "start b", "start c"]);
}

#[test]
fn rest_for_one_tries_again_from_the_child_whose_start_failed() {
    let mut rig = Rig::up(flags(Strategy::RestForOne, 3), permanent(&["a", "b", "c"]));
    let log = rig.will("b", &[Act::Fail]).exits("a", crash());
    assert_eq!(log, ["stop c", "stop b", "start a", "start b", "start b", "start c"]);
}
