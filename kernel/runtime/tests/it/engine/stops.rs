//! Stopping children and the supervisor itself.

use std::time::Duration;

use ephor_base::ExitReason;
use ephor_runtime::supervisor::{Command, Event, Flags, Shutdown, Strategy, Timer};

use super::{PATIENCE, Rig, crash, flags, permanent};

fn up(names: &[&str]) -> Rig {
    Rig::up(flags(Strategy::OneForOne, 9), permanent(names))
}

fn stop() -> Event {
    Event::Stop(ExitReason::Shutdown)
}

#[test]
fn children_stop_one_after_another_last_started_first() {
    let mut rig = up(&["a", "b", "c"]);
    rig.deaf = vec!["c".to_owned()];
    assert_eq!(rig.happens(stop()), ["stop c"]);
    assert_eq!(rig.happens(stop()), [""; 0], "once is enough");
    assert_eq!(rig.exits("c", ExitReason::Shutdown), ["stop b", "stop a", "exit shutdown: told to"]);
}

#[test]
fn independent_children_stop_together_each_in_its_own_time() {
    let mut specs = permanent(&["a", "b", "c"]);
    specs[1].shutdown = Shutdown::Within(PATIENCE * 2);
    let mut rig = Rig::up(Flags { independent: true, ..flags(Strategy::OneForOne, 9) }, specs);
    rig.deaf = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(rig.happens(stop()), ["stop a", "stop b", "stop c"]);
    assert_eq!(rig.exits("c", ExitReason::Shutdown), [""; 0]);
    assert_eq!(rig.waits(PATIENCE), ["kill a"]);
    assert_eq!(rig.waits(PATIENCE), ["kill b", "exit shutdown: told to"]);
}

#[test]
fn a_child_that_does_not_stop_in_time_is_killed() {
    let mut rig = up(&["a", "b"]);
    rig.deaf = vec!["b".to_owned()];
    assert_eq!(rig.happens(stop()), ["stop b"]);
    assert_eq!(rig.waits(PATIENCE - Duration::from_millis(1)), [""; 0]);
    assert_eq!(rig.waits(Duration::from_millis(1)), ["kill b", "stop a", "exit shutdown: told to"]);
}

#[test]
fn a_child_is_killed_at_once_or_waited_for_as_its_specification_says() {
    let mut specs = permanent(&["a", "b"]);
    (specs[0].shutdown, specs[1].shutdown) = (Shutdown::Infinite, Shutdown::Brutal);
    let mut rig = Rig::up(flags(Strategy::OneForOne, 1), specs);
    rig.deaf = vec!["a".to_owned()];
    assert_eq!(rig.happens(stop()), ["kill b", "stop a"]);
    assert_eq!(rig.waits(PATIENCE * 1000), [""; 0]);
    assert_eq!(rig.exits("a", ExitReason::Normal), ["exit shutdown: told to"]);
}

#[test]
fn the_timer_of_a_child_that_stopped_in_time_harms_nobody() {
    let mut rig = up(&["a", "b"]);
    rig.deaf = vec!["a".to_owned(), "b".to_owned()];
    let b = rig.ids["b"];
    assert_eq!(rig.happens(stop()), ["stop b"]);
    assert_eq!(rig.exits("b", ExitReason::Shutdown), ["stop a"]);
    assert_eq!(rig.happens(Event::Fired(Timer::Patience(b))), [""; 0]);
}

#[test]
fn children_that_exit_during_the_stop_are_neither_stopped_nor_restarted() {
    let mut rig = up(&["a", "b", "c"]);
    rig.deaf = vec!["c".to_owned()];
    assert_eq!(rig.happens(stop()), ["stop c"]);
    assert_eq!(rig.exits("a", crash()), [""; 0]);
    assert_eq!(rig.exits("c", crash()), ["stop b", "exit shutdown: told to"]);
}

#[test]
fn a_supervisor_exits_with_the_reason_it_was_given() {
    let mut rig = up(&["a"]);
    assert_eq!(rig.happens(Event::Stop(ExitReason::Killed)), ["stop a", "exit killed: told to"]);
}

#[test]
fn a_stop_does_not_wait_for_the_restarts_that_wait() {
    let mut rig = Rig::up(flags(Strategy::OneForAll, 9), permanent(&["a", "b", "c"]));
    rig.deaf = vec!["c".to_owned()];
    assert_eq!(rig.exits("b", crash()), ["stop c"]);
    assert_eq!(rig.happens(stop()), [""; 0]);
    // Nothing is started any more, and the child that was being stopped is not asked again.
    assert_eq!(rig.exits("c", ExitReason::Shutdown), ["stop a", "exit shutdown: told to"]);
}

#[test]
fn a_stop_in_the_middle_of_a_start_waits_for_that_start_alone() {
    let mut rig = Rig::new(flags(Strategy::OneForOne, 9), permanent(&["a", "b", "c"]));
    let commands = rig.engine.step(rig.now, Event::Boot);
    let Command::Start(a) = commands[0] else { panic!("{commands:?}") };
    rig.ids.insert("a".to_owned(), a);
    assert_eq!(rig.happens(stop()), [""; 0]);
    assert_eq!(rig.happens(Event::Started(a)), ["stop a", "exit shutdown: told to"]);
}
