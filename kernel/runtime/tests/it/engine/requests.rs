//! Starting, terminating, restarting, deleting, listing and counting the children of a supervisor that runs.

use ephor_base::ExitReason;
use ephor_runtime::supervisor::{AutoShutdown, Event, Flags, Kind, Request, Restart, Strategy, Target};

use super::{Act, Rig, crash, flags, permanent, spec};

fn up() -> Rig {
    Rig::up(flags(Strategy::OneForOne, 9), permanent(&["a", "b"]))
}

fn terminate(name: &str) -> Request {
    Request::Terminate(Target::Name(name.into()))
}

#[test]
fn a_child_that_is_added_comes_last() {
    let mut rig = up();
    assert_eq!(rig.asks(Request::Start(spec("c", Restart::Permanent))), ["start c", "started c"]);
    assert_eq!(rig.asks(Request::Which), ["children c:Running b:Running a:Running"]);
    assert_eq!(rig.happens(Event::Stop(ExitReason::Shutdown))[..2], ["stop c", "stop b"]);
}

#[test]
fn a_child_is_not_added_twice() {
    let mut rig = up();
    let again = || Request::Start(spec("a", Restart::Permanent));
    assert_eq!(rig.asks(again()), ["refused: it runs already"]);
    assert_eq!(rig.asks(terminate("a")), ["stop a", "done"]);
    assert_eq!(rig.asks(again()), ["refused: it is there already, and does not run"]);
    assert_eq!(rig.asks(Request::Delete("a".into())), ["forget a", "done"]);
    assert_eq!(rig.asks(again()), ["start a", "started a"]);
}

#[test]
fn a_child_that_does_not_start_is_not_added() {
    let mut rig = up();
    let new = |restart| Request::Start(spec("c", restart));
    let log = rig.will("c", &[Act::Fail]).asks(new(Restart::Permanent));
    assert_eq!(log, ["start c", "forget c", "refused: it could not be started: refused"]);
    assert_eq!(rig.will("c", &[Act::Ignore]).asks(new(Restart::Temporary)), ["start c", "forget c", "ignored"]);
    assert_eq!(rig.will("c", &[Act::Ignore]).asks(new(Restart::Permanent)), ["start c", "ignored"]);
    assert_eq!(rig.asks(Request::Which), ["children c:Stopped b:Running a:Running"]);
}

#[test]
fn a_child_cannot_be_significant_where_it_has_no_say() {
    let mut child = spec("c", Restart::Transient);
    child.significant = true;
    assert_eq!(up().asks(Request::Start(child.clone())), ["refused: it cannot be significant there"]);
    child.restart = Restart::Permanent;
    let flags = Flags { auto_shutdown: AutoShutdown::AllSignificant, ..flags(Strategy::OneForOne, 1) };
    let mut rig = Rig::up(flags, Vec::new());
    assert_eq!(rig.asks(Request::Start(child)), ["refused: it cannot be significant there"]);
}

#[test]
fn a_terminated_child_stays_unless_it_is_temporary_and_is_not_restarted() {
    let mut rig = Rig::up(
        flags(Strategy::OneForOne, 0),
        vec![spec("a", Restart::Permanent), spec("b", Restart::Transient), spec("c", Restart::Temporary)],
    );
    assert_eq!(rig.asks(terminate("a")), ["stop a", "done"]);
    assert_eq!(rig.asks(terminate("a")), ["done"], "twice is no harm");
    assert_eq!(rig.asks(terminate("b")), ["stop b", "done"]);
    assert_eq!(rig.asks(terminate("c")), ["stop c", "forget c", "done"]);
    assert_eq!(rig.asks(terminate("c")), ["refused: there is no such child"]);
    assert_eq!(rig.asks(Request::Which), ["children b:Stopped a:Stopped"]);
}

#[test]
fn only_a_child_that_does_not_run_is_restarted_or_deleted() {
    let mut rig = up();
    assert_eq!(rig.asks(Request::Restart("a".into())), ["refused: it runs"]);
    assert_eq!(rig.asks(Request::Delete("a".into())), ["refused: it runs"]);
    assert_eq!(rig.asks(Request::Restart("x".into())), ["refused: there is no such child"]);
    assert_eq!(rig.asks(Request::Delete("x".into())), ["refused: there is no such child"]);
    assert_eq!(rig.asks(terminate("a")), ["stop a", "done"]);
    let log = rig.will("a", &[Act::Fail, Act::Ignore]).asks(Request::Restart("a".into()));
    assert_eq!(log, ["start a", "refused: it could not be started: refused"]);
    assert_eq!(rig.asks(Request::Restart("a".into())), ["start a", "ignored"]);
    assert_eq!(rig.asks(Request::Restart("a".into())), ["start a", "started a"]);
}

#[test]
fn a_request_waits_for_the_restart_under_way() {
    let mut rig = Rig::up(flags(Strategy::OneForAll, 1), permanent(&["a", "b"]));
    rig.deaf = vec!["b".to_owned()];
    assert_eq!(rig.exits("a", crash()), ["stop b"]);
    assert_eq!(rig.asks(Request::Count), [""; 0]);
    let log = rig.exits("b", ExitReason::Killed);
    assert_eq!(log, ["start a", "start b", "2 specs, 2 active, 0 supervisors, 2 workers"]);
}

#[test]
fn a_child_that_exits_while_it_is_terminated_is_not_restarted() {
    let mut rig = Rig::up(flags(Strategy::OneForOne, 0), permanent(&["a", "b"]));
    rig.deaf = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(rig.asks(terminate("a")), ["stop a"]);
    assert_eq!(rig.asks(terminate("b")), [""; 0]);
    // It is gone before anybody comes to it.
    assert_eq!(rig.exits("b", crash()), [""; 0]);
    assert_eq!(rig.exits("a", crash()), ["done", "done"]);
}

#[test]
fn specifications_processes_supervisors_and_workers_are_counted() {
    let mut specs = permanent(&["a", "b"]);
    specs[1].kind = Kind::Supervisor;
    specs.push(spec("c", Restart::Temporary));
    let mut rig = Rig::up(flags(Strategy::OneForOne, 9), specs);
    assert_eq!(rig.asks(Request::Count), ["3 specs, 3 active, 1 supervisors, 2 workers"]);
    assert_eq!(rig.asks(terminate("b")), ["stop b", "done"]);
    assert_eq!(rig.asks(Request::Count), ["3 specs, 2 active, 1 supervisors, 2 workers"]);
    assert_eq!(rig.exits("c", crash()), ["forget c"]);
    assert_eq!(rig.asks(Request::Count), ["2 specs, 1 active, 1 supervisors, 1 workers"]);
}

#[test]
fn dynamic_children_and_others_are_asked_for_differently() {
    const REFUSED: [&str; 1] = ["refused: dynamic children and others are asked for differently"];
    assert_eq!(up().asks(Request::StartDynamic), REFUSED);
    let mut rig = Rig::up(flags(Strategy::Dynamic, 1), permanent(&["kind"]));
    for request in [
        Request::Start(spec("a", Restart::Permanent)),
        terminate("a"),
        Request::Restart("a".into()),
        Request::Delete("a".into()),
    ] {
        assert_eq!(rig.asks(request), REFUSED);
    }
}

#[test]
fn a_supervisor_that_stops_grants_nothing() {
    let mut rig = up();
    rig.deaf = vec!["b".to_owned()];
    assert_eq!(rig.asks(terminate("b")), ["stop b"]);
    assert_eq!(rig.asks(Request::Which), [""; 0]);
    assert_eq!(rig.happens(Event::Stop(ExitReason::Shutdown)), ["refused: the supervisor stops"]);
    assert_eq!(rig.asks(Request::Count), ["refused: the supervisor stops"]);
    assert_eq!(rig.exits("b", ExitReason::Shutdown), ["done", "stop a", "exit shutdown: told to"]);
}
