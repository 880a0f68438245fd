//! `permanent_*`, `transient_*`, `temporary_*`, and links, monitors and names between processes.

use ephor_base::{ExitReason, Pid};
use ephor_runtime::{
    ChildSpec, Incoming, NotSent, Process,
    links::{Gone, NotNamed, Signal},
    supervisor::{Restart, Strategy},
};

use super::{Notes, Tree, flags, handles, supervisor, until, worker};

#[tokio::test]
async fn who_is_started_again_after_which_exit() {
    for (restart, word, is_again) in [
        (Restart::Permanent, "normal", true),
        (Restart::Permanent, "panic", true),
        (Restart::Transient, "normal", false),
        (Restart::Transient, "shutdown", false),
        (Restart::Transient, "error", true),
        (Restart::Transient, "panic", true),
        (Restart::Temporary, "panic", false),
    ] {
        let tree = Tree::one_for_one(vec![ChildSpec { restart, ..worker("a") }]).await;
        let exit = tree.runtime.exit_of(tree.pid("r/a"));
        tree.tell("r/a", word);
        exit.await.unwrap();
        // Its supervisor answers after it has dealt with the exit.
        let active = tree.root.count().await.unwrap().active;
        until(|| !is_again || tree.find("r/a").is_some()).await;
        assert_eq!(active == 1, is_again, "{restart:?} after {word}");
    }
}

async fn exit(process: &Process<Notes>) -> Signal {
    match process.receive().await {
        Incoming::Exit(signal) => signal,
        _ => panic!("something else came"),
    }
}

#[tokio::test]
async fn a_link_takes_along_and_a_trap_tells_instead() {
    let (tree, all) = handles(4).await;
    let [a, b, c, d] = &all[..] else { panic!() };
    a.link(b.pid());
    b.link(c.pid());
    c.link(d.pid());
    d.trap_exits(true);
    assert!(tree.runtime.kill(a.pid()));
    let signal = exit(d).await;
    assert_eq!(signal, Signal::Exit { to: d.pid(), from: c.pid(), gone: Gone::Exited(ExitReason::Killed) });
    until(|| tree.runtime.processes().len() == 2).await;
    assert!(d.is_live() && !c.is_live());
    assert_eq!(tree.root.count().await.unwrap().active, 1);
}

#[tokio::test]
async fn a_child_that_unlinks_itself_is_its_supervisors_child_still() {
    let (tree, all) = handles(2).await;
    let [a, b] = &all[..] else { panic!() };
    let root = tree.root.pid().unwrap();
    a.unlink(root);
    b.unlink(root);
    assert!(tree.runtime.kill(a.pid()));
    until(|| tree.runtime.processes().len() == 2).await;
    assert_eq!(tree.root.count().await.unwrap().active, 1, "its exit was heard of");
    tree.root.stop().await.unwrap();
    assert!(!b.is_live(), "and nobody outlives the supervisor");
}

#[tokio::test]
async fn a_normal_exit_takes_nobody_along() {
    let (tree, all) = handles(1).await;
    let other = tree.root.start_dynamic(Some(super::server())).await.unwrap().unwrap().pid;
    all[0].link(other);
    tree.runtime.send(other, "normal".to_owned()).unwrap();
    until(|| tree.runtime.address(other).is_none()).await;
    assert!(all[0].is_live());
}

#[tokio::test]
async fn every_monitor_is_told_exactly_once_and_at_once_of_one_that_is_gone() {
    let (tree, all) = handles(3).await;
    let [a, b, c] = &all[..] else { panic!() };
    let (first, second) = (a.monitor(b.pid()), a.monitor(b.pid()));
    let third = c.monitor(b.pid());
    assert!(c.demonitor(third) && !c.demonitor(third) && !c.demonitor(first));
    assert!(tree.runtime.kill(b.pid()));
    let mut told = Vec::new();
    for _ in 0..2 {
        let Signal::Down { monitor, from, gone, .. } = exit(a).await else { panic!() };
        assert_eq!((from, gone), (b.pid(), Gone::Exited(ExitReason::Killed)));
        told.push(monitor);
    }
    told.sort();
    assert_eq!(told, [first, second]);
    let late = a.monitor(b.pid());
    let Signal::Down { monitor, gone: Gone::NoProcess, .. } = exit(a).await else { panic!() };
    assert_eq!(monitor, late);
    // Nothing else came for anybody.
    assert!(futures_util::future::FutureExt::now_or_never(a.receive()).is_none());
    assert!(futures_util::future::FutureExt::now_or_never(c.receive()).is_none());
}

#[tokio::test]
async fn a_name_has_one_process_and_goes_with_it() {
    let (tree, all) = handles(2).await;
    let [a, b] = &all[..] else { panic!() };
    a.register("clerk").unwrap();
    assert_eq!(b.register("clerk"), Err(NotNamed::Taken("clerk".into(), a.pid())));
    assert_eq!(b.whereis("clerk"), Some(a.pid()));
    assert!(!b.unregister("clerk"));
    assert!(tree.runtime.kill(a.pid()));
    until(|| b.whereis("clerk").is_none()).await;
    b.register("clerk").unwrap();
    assert_eq!(a.register("else"), Err(NotNamed::NoProcess(a.pid())), "one that is over has no name");
}

#[tokio::test]
async fn one_process_wants_another_gone() {
    let (tree, all) = handles(3).await;
    let [a, b, c] = &all[..] else { panic!() };
    b.trap_exits(true);
    a.exit(b.pid(), ExitReason::Error("go".into())).unwrap();
    assert!(matches!(exit(b).await, Signal::Exit { .. }));
    a.exit(c.pid(), ExitReason::Normal).unwrap();
    assert!(c.is_live(), "`normal` from another means nothing");
    a.exit(c.pid(), ExitReason::Error("go".into())).unwrap();
    a.exit(b.pid(), ExitReason::Killed).unwrap();
    until(|| tree.runtime.processes().len() == 2).await;
    assert!(!b.is_live() && !c.is_live());
    assert_eq!(a.exit(Pid(999), ExitReason::Killed), Err(NotSent::Gone));
}

#[tokio::test]
async fn exits_of_strangers_mean_nothing_to_a_supervisor() {
    let (tree, all) = handles(2).await;
    let [a, b] = &all[..] else { panic!() };
    let root = tree.root.pid().unwrap();
    a.link(root);
    b.exit(root, ExitReason::Shutdown).unwrap();
    assert!(tree.runtime.kill(a.pid()));
    until(|| tree.runtime.address(a.pid()).is_none()).await;
    assert_eq!(tree.root.count().await.unwrap().active, 1);
    assert_eq!(tree.root.pid(), Some(root));
}

#[tokio::test]
async fn a_restart_keeps_the_seat_and_never_the_pid() {
    let tree = Tree::one_for_one(vec![supervisor("s", flags(Strategy::OneForOne), vec![worker("x")])]).await;
    let mut pids = vec![tree.pid("r/s/x")];
    for word in ["panic", "error", "normal", "shutdown"] {
        pids.push(tree.renew("r/s/x", word).await);
    }
    assert!(pids.windows(2).all(|pair| pair[0] < pair[1]), "{pids:?}");
    let shown = tree.runtime.processes().into_iter().find(|one| one.seat.as_str() == "r/s/x").unwrap();
    assert_eq!(shown.incarnation, 5);
    assert!(pids[..4].iter().all(|old| !tree.runtime.kill(*old)));
}
