//! The supervisor engine against OTP's one_for_one.

use std::time::Duration;

use ephor_base::ExitReason;
use ephor_kernel::supervisor::{ChildId, Command, Event, Intensity, Restart, Supervisor};

const SHUTDOWN: Duration = Duration::from_secs(5);
const NOW: Duration = Duration::from_secs(100);

fn with(restarts: usize, children: &[Restart]) -> Supervisor {
    let mut engine = Supervisor::new(Intensity { restarts, period: Duration::from_secs(5) });
    for (id, restart) in (0..).zip(children) {
        assert_eq!(added(&mut engine, id, *restart), [Command::Start(ChildId(id))]);
    }
    engine
}

fn added(engine: &mut Supervisor, id: u64, restart: Restart) -> Vec<Command> {
    engine.step(NOW, Event::Added { child: ChildId(id), restart, shutdown: SHUTDOWN })
}

fn exited(engine: &mut Supervisor, now: Duration, id: u64, reason: ExitReason) -> Vec<Command> {
    engine.step(now, Event::Exited { child: ChildId(id), reason })
}

#[test]
fn who_is_restarted_after_what() {
    use Restart::{Permanent, Temporary, Transient};
    let abnormal = [ExitReason::Killed, ExitReason::Panicked("x".into()), ExitReason::Error("x".into())];
    let (start, forget) = ([Command::Start(ChildId(0))], [Command::Forget(ChildId(0))]);
    for (restart, normal, crash) in
        [(Permanent, &start, &start), (Transient, &forget, &start), (Temporary, &forget, &forget)]
    {
        for reason in [ExitReason::Normal, ExitReason::Shutdown] {
            assert_eq!(exited(&mut with(1, &[restart]), NOW, 0, reason.clone()), normal, "{restart:?} {reason:?}");
        }
        for reason in &abnormal {
            assert_eq!(exited(&mut with(1, &[restart]), NOW, 0, reason.clone()), crash, "{restart:?} {reason:?}");
        }
    }
}

#[test]
fn only_the_child_that_exited_is_restarted() {
    let mut engine = with(1, &[Restart::Permanent; 3]);
    assert_eq!(exited(&mut engine, NOW, 1, ExitReason::Killed), [Command::Start(ChildId(1))]);
    assert_eq!(exited(&mut engine, NOW, 9, ExitReason::Killed), [], "a stranger is nobody's business");
}

#[test]
fn the_window_ends_as_otps_does() {
    // OTP's supervisor:add_restart/3 keeps a restart whose age is the period exactly.
    let crash = || ExitReason::Killed;
    for (age, gives_up) in [(4_999, true), (5_000, true), (5_001, false)] {
        let mut engine = with(1, &[Restart::Permanent]);
        assert_eq!(exited(&mut engine, NOW, 0, crash()), [Command::Start(ChildId(0))]);
        let next = exited(&mut engine, NOW + Duration::from_millis(age), 0, crash());
        assert_eq!(next.contains(&Command::Start(ChildId(0))), !gives_up, "{age} ms");
    }
    // None at all are allowed: the first is one too many.
    let gave_up = exited(&mut with(0, &[Restart::Permanent]), NOW, 0, crash());
    assert_eq!(gave_up[0], Command::Forget(ChildId(0)));
    assert!(matches!(&gave_up[1..], [Command::Exit(ExitReason::Error(_))]));
    // Exits that restart nobody do not count.
    let mut engine = with(0, &[Restart::Temporary, Restart::Transient]);
    assert_eq!(exited(&mut engine, NOW, 0, crash()), [Command::Forget(ChildId(0))]);
    assert_eq!(exited(&mut engine, NOW, 1, ExitReason::Normal), [Command::Forget(ChildId(1))]);
}

#[test]
fn children_stop_one_after_another_last_started_first() {
    let mut engine = with(1, &[Restart::Permanent; 3]);
    let stop = |id| Command::Stop(ChildId(id), SHUTDOWN);
    assert_eq!(engine.step(NOW, Event::Stop), [stop(2)]);
    assert_eq!(engine.step(NOW, Event::Stop), [], "once is enough");
    assert_eq!(exited(&mut engine, NOW, 2, ExitReason::Normal), [Command::Forget(ChildId(2)), stop(1)]);
    assert_eq!(engine.step(NOW, Event::ShutdownOver { child: ChildId(2) }), [], "it is gone");
    assert_eq!(engine.step(NOW, Event::ShutdownOver { child: ChildId(0) }), [], "it was not asked yet");
    assert_eq!(engine.step(NOW, Event::ShutdownOver { child: ChildId(1) }), [Command::Kill(ChildId(1))]);
    assert_eq!(exited(&mut engine, NOW, 1, ExitReason::Killed), [Command::Forget(ChildId(1)), stop(0)]);
    let last = [Command::Forget(ChildId(0)), Command::Exit(ExitReason::Shutdown)];
    assert_eq!(exited(&mut engine, NOW, 0, ExitReason::Normal), last);
}

#[test]
fn a_child_that_exits_during_the_stop_is_not_restarted_and_nobody_is_asked_twice() {
    let mut engine = with(1, &[Restart::Permanent; 3]);
    let _asked = engine.step(NOW, Event::Stop);
    assert_eq!(exited(&mut engine, NOW, 0, ExitReason::Killed), [Command::Forget(ChildId(0))]);
    let stop = Command::Stop(ChildId(1), SHUTDOWN);
    assert_eq!(exited(&mut engine, NOW, 2, ExitReason::Killed), [Command::Forget(ChildId(2)), stop]);
    assert_eq!(added(&mut engine, 7, Restart::Permanent), [Command::Forget(ChildId(7))], "nothing starts any more");
    let end = [Command::Forget(ChildId(1)), Command::Exit(ExitReason::Shutdown)];
    assert_eq!(exited(&mut engine, NOW, 1, ExitReason::Normal), end);
}

#[test]
fn giving_up_stops_the_others_first() {
    let mut engine = with(0, &[Restart::Permanent; 2]);
    let commands = exited(&mut engine, NOW, 0, ExitReason::Killed);
    assert_eq!(commands, [Command::Forget(ChildId(0)), Command::Stop(ChildId(1), SHUTDOWN)]);
    let end = exited(&mut engine, NOW, 1, ExitReason::Normal);
    assert!(matches!(&end[..], [Command::Forget(_), Command::Exit(ExitReason::Error(_))]));
    assert_eq!(with(1, &[]).step(NOW, Event::Stop), [Command::Exit(ExitReason::Shutdown)]);
}
