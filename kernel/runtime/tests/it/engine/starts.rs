//! Starting a supervisor, and what its children may be.

use ephor_base::ExitReason;
use ephor_runtime::supervisor::{AutoShutdown, BadSpec, Event, Flags, Request, Restart, Strategy, Supervisor};

use super::{Act, Rig, flags, permanent, spec};

#[test]
fn children_start_in_order_and_then_the_supervisor_has_started() {
    let mut rig = Rig::new(flags(Strategy::OneForOne, 1), permanent(&["a", "b", "c"]));
    assert_eq!(rig.happens(Event::Boot), ["start a", "start b", "start c", "ready"]);
    assert_eq!(rig.happens(Event::Boot), [""; 0], "once is enough");
}

#[test]
fn a_supervisor_without_children_starts_and_stops() {
    let mut rig = Rig::new(flags(Strategy::OneForAll, 1), Vec::new());
    assert_eq!(rig.happens(Event::Boot), ["ready"]);
    assert_eq!(rig.happens(Event::Stop(ExitReason::Shutdown)), ["exit shutdown: told to"]);
    assert_eq!(rig.happens(Event::Stop(ExitReason::Shutdown)), [""; 0]);
}

#[test]
fn a_child_that_does_not_start_takes_those_before_it_along_in_reverse() {
    let mut rig = Rig::new(flags(Strategy::OneForOne, 9), permanent(&["a", "b", "c", "d"]));
    let log = rig.will("c", &[Act::Fail]).happens(Event::Boot);
    assert_eq!(log, ["start a", "start b", "start c", "stop b", "stop a", "exit shutdown: a start failed"]);
}

#[test]
fn a_child_that_is_ignored_stays_stopped_unless_it_is_temporary() {
    let specs = vec![spec("a", Restart::Permanent), spec("b", Restart::Transient), spec("c", Restart::Temporary)];
    let mut rig = Rig::new(flags(Strategy::OneForOne, 1), specs);
    for name in ["a", "b", "c"] {
        rig.will(name, &[Act::Ignore]);
    }
    assert_eq!(rig.happens(Event::Boot), ["start a", "start b", "start c", "forget c", "ready"]);
    assert_eq!(rig.asks(Request::Which), ["children b:Stopped a:Stopped"]);
}

#[test]
fn a_child_that_exits_while_its_siblings_start_is_restarted_when_they_have() {
    let mut rig = Rig::new(flags(Strategy::OneForOne, 1), permanent(&["a", "b"]));
    let started = rig.engine.step(rig.now, Event::Boot);
    let ephor_runtime::supervisor::Command::Start(a) = started[0] else { panic!("{started:?}") };
    let log = rig.all_happen([Event::Started(a), Event::Exited(a, ExitReason::Killed)]);
    assert_eq!(log, ["start b", "ready", "start a"]);
}

#[test]
fn names_are_unique_and_significance_needs_a_supervisor_that_shuts_down() {
    let new = |flags, specs| Supervisor::new(flags, specs, 0).map(|_| ());
    let one = flags(Strategy::OneForOne, 1);
    assert!(matches!(new(one, permanent(&["a", "b", "a"])), Err(BadSpec::Duplicate(name)) if name.as_str() == "a"));
    let mut child = spec("a", Restart::Transient);
    child.significant = true;
    assert!(matches!(new(one, vec![child.clone()]), Err(BadSpec::Significant(_))));
    let shuts_down = Flags { auto_shutdown: AutoShutdown::AnySignificant, ..one };
    assert!(new(shuts_down, vec![child.clone()]).is_ok());
    child.restart = Restart::Permanent;
    assert!(matches!(new(shuts_down, vec![child]), Err(BadSpec::Significant(_))));
    assert!(matches!(new(flags(Strategy::Dynamic, 1), permanent(&["a", "b"])), Err(BadSpec::Template)));
}
