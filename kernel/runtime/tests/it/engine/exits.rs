//! Which exits lead to a restart.

use ephor_base::ExitReason;
use ephor_runtime::supervisor::{ChildId, Event, Request, Restart, Strategy};

use super::{Rig, crash, flags, permanent, spec};

fn after(restart: Restart, reason: ExitReason) -> Vec<String> {
    Rig::up(flags(Strategy::OneForOne, 1), vec![spec("a", restart)]).exits("a", reason)
}

fn mild() -> [ExitReason; 3] {
    [ExitReason::Normal, ExitReason::Shutdown, ExitReason::ShutdownFor("x".to_owned())]
}

fn abnormal() -> [ExitReason; 3] {
    [crash(), ExitReason::Killed, ExitReason::Panicked("boom".to_owned())]
}

#[test]
fn a_permanent_child_is_restarted_after_a_normal_exit_a_shutdown_and_a_crash() {
    for reason in mild().into_iter().chain(abnormal()) {
        assert_eq!(after(Restart::Permanent, reason.clone()), ["start a"], "{reason:?}");
    }
}

#[test]
fn a_transient_child_is_restarted_after_a_crash_alone() {
    for reason in abnormal() {
        assert_eq!(after(Restart::Transient, reason.clone()), ["start a"], "{reason:?}");
    }
    for reason in mild() {
        let mut rig = Rig::up(flags(Strategy::OneForOne, 1), vec![spec("a", Restart::Transient)]);
        assert_eq!(rig.exits("a", reason.clone()), [""; 0], "{reason:?}");
        assert_eq!(rig.asks(Request::Which), ["children a:Stopped"], "its specification stays");
    }
}

#[test]
fn a_temporary_child_is_never_restarted_and_forgotten() {
    for reason in mild().into_iter().chain(abnormal()) {
        assert_eq!(after(Restart::Temporary, reason.clone()), ["forget a"], "{reason:?}");
    }
}

#[test]
fn exits_of_strangers_and_of_incarnations_before_this_one_mean_nothing() {
    let mut rig = Rig::up(flags(Strategy::OneForOne, 1), permanent(&["a", "b"]));
    let first = rig.ids["a"];
    assert_eq!(rig.happens(Event::Exited(ChildId { place: 9, run: 1 }, crash())), [""; 0]);
    assert_eq!(rig.exits("a", crash()), ["start a"]);
    assert_eq!(rig.happens(Event::Exited(first, crash())), [""; 0]);
    // The place of a child that is gone is used again; its id is not.
    let mut rig = Rig::up(flags(Strategy::OneForOne, 1), vec![spec("a", Restart::Temporary)]);
    let first = rig.ids["a"];
    assert_eq!(rig.exits("a", crash()), ["forget a"]);
    assert_eq!(rig.asks(Request::Start(spec("b", Restart::Permanent))), ["start b", "started b"]);
    assert!(rig.ids["b"].place == first.place && rig.ids["b"] != first);
    assert_eq!(rig.happens(Event::Exited(first, crash())), [""; 0]);
}
