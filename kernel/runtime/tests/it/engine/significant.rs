//! Significant children, and supervisors that end with them.

use ephor_base::ExitReason;
use ephor_runtime::supervisor::{AutoShutdown, Flags, Request, Restart, Spec, Strategy, Target};

use super::{Act, Rig, crash, flags, spec};

const END: &str = "exit shutdown: nothing significant left";

fn significant(name: &str, restart: Restart) -> Spec {
    Spec { significant: true, ..spec(name, restart) }
}

fn up(auto_shutdown: AutoShutdown, specs: Vec<Spec>) -> Rig {
    Rig::up(Flags { auto_shutdown, ..flags(Strategy::OneForOne, 9) }, specs)
}

fn three() -> Vec<Spec> {
    let plain = spec("plain", Restart::Transient);
    vec![significant("a", Restart::Transient), plain, significant("b", Restart::Temporary)]
}

#[test]
fn any_significant_child_that_is_not_restarted_ends_the_supervisor() {
    assert_eq!(up(AutoShutdown::AnySignificant, three()).exits("a", ExitReason::Normal), ["stop b", "stop plain", END]);
    let log = up(AutoShutdown::AnySignificant, three()).exits("b", crash());
    assert_eq!(log, ["forget b", "stop plain", "stop a", END]);
}

#[test]
fn a_significant_child_that_is_restarted_ends_nothing() {
    for auto_shutdown in [AutoShutdown::AnySignificant, AutoShutdown::AllSignificant] {
        assert_eq!(up(auto_shutdown, three()).exits("a", crash()), ["start a"]);
    }
}

#[test]
fn the_last_significant_child_ends_the_supervisor() {
    let mut rig = up(AutoShutdown::AllSignificant, three());
    assert_eq!(rig.exits("b", crash()), ["forget b"]);
    assert_eq!(rig.exits("plain", ExitReason::Normal), [""; 0]);
    assert_eq!(rig.exits("a", ExitReason::Shutdown), [END]);
}

#[test]
fn children_that_are_not_significant_end_nothing() {
    for auto_shutdown in [AutoShutdown::AnySignificant, AutoShutdown::AllSignificant] {
        assert_eq!(up(auto_shutdown, three()).exits("plain", ExitReason::Normal), [""; 0]);
    }
}

#[test]
fn a_termination_on_request_ends_nothing() {
    let mut rig = up(AutoShutdown::AnySignificant, three());
    for name in ["a", "b"] {
        let log = rig.asks(Request::Terminate(Target::Name(name.into())));
        assert_eq!(log.last().map(String::as_str), Some("done"));
    }
    // Nor does a sibling's restart that a temporary child does not survive.
    let flags = Flags { auto_shutdown: AutoShutdown::AnySignificant, ..flags(Strategy::OneForAll, 9) };
    let mut rig = Rig::up(flags, three());
    assert_eq!(rig.exits("a", crash()), ["stop b", "forget b", "stop plain", "start a", "start plain"]);
}

#[test]
fn a_significant_child_that_waits_for_its_restart_still_counts() {
    let mut rig = up(AutoShutdown::AllSignificant, three());
    let a = rig.ids["a"];
    let commands = rig.engine.step(rig.now, ephor_runtime::supervisor::Event::Exited(a, crash()));
    let ephor_runtime::supervisor::Command::Start(again) = commands[1] else { panic!("{commands:?}") };
    let failed = ephor_runtime::supervisor::Event::StartFailed(again, "refused".to_owned());
    let _timer = rig.engine.step(rig.now, failed);
    assert_eq!(rig.exits("b", ExitReason::Normal), ["forget b"]);
    assert_eq!(rig.asks(Request::Count), ["2 specs, 1 active, 0 supervisors, 2 workers"]);
}

#[test]
fn dynamic_children_are_all_significant_or_none() {
    let flags = |auto_shutdown| Flags { auto_shutdown, ..flags(Strategy::Dynamic, 9) };
    let mut rig = Rig::up(flags(AutoShutdown::AllSignificant), vec![significant("kind", Restart::Temporary)]);
    assert_eq!(rig.will("x", &[Act::Ignore]).grows("x"), ["start x", "forget x", "ignored"]);
    rig.grows("a");
    rig.grows("b");
    assert_eq!(rig.exits("a", crash()), ["forget a"]);
    assert_eq!(rig.exits("b", crash()), ["forget b", END]);
    let mut rig = Rig::up(flags(AutoShutdown::AnySignificant), vec![significant("kind", Restart::Temporary)]);
    rig.grows("a");
    rig.grows("b");
    assert_eq!(rig.exits("a", ExitReason::Normal), ["forget a", "stop b", END]);
}
