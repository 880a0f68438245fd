//! What a process might try against the others.

use ephor_base::{ExitReason, Pid};
use ephor_runtime::{CAPACITY, ChildSpec, Incoming, NotSent, Unanswered, links::Signal, supervisor::Strategy};

use super::{Notes, Tree, does, flags, handles, until, worker};

/// Panics when it is dropped.
struct Grenade(&'static str);

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("{}", self.0);
    }
}

#[tokio::test]
async fn a_panic_while_it_is_dropped_ends_only_the_one() {
    let body = does(|process| async move {
        let _grenade = Grenade("at the end");
        let _stopped: Incoming<Notes> = process.receive().await;
        std::future::pending().await
    });
    let tree = Tree::one_for_one(vec![ChildSpec::worker("a", body), worker("b")]).await;
    let (a, b) = (tree.pid("r/a"), tree.pid("r/b"));
    assert!(tree.runtime.kill(a));
    tree.after("r/a", a).await;
    assert_eq!(tree.notes.count("-r/a killed"), 1);
    assert_eq!(tree.pid("r/b"), b);
}

#[tokio::test]
async fn a_panic_that_throws_something_that_panics_again_is_one_exit() {
    let body = does(|process| async move {
        process.receive().await;
        std::panic::panic_any(Grenade("in the wreck"))
    });
    let tree = Tree::one_for_one(vec![ChildSpec::worker("a", body)]).await;
    tree.renew("r/a", "go").await;
    assert_eq!(tree.notes.count("-r/a panicked"), 1);
}

#[tokio::test]
async fn a_fenced_incarnation_can_do_nothing() {
    let (tree, all) = handles(2).await;
    let [a, b] = &all[..] else { panic!() };
    let fence = a.fence();
    assert!(!fence.is_cancelled());
    assert!(tree.runtime.kill(a.pid()));
    // At once: its task has not even run since.
    assert!(fence.is_cancelled() && a.fence().is_cancelled() && !a.is_live());
    assert!(matches!(a.receive().await, Incoming::Stop));
    assert_eq!(a.send(b.pid(), "x".into()), Err(NotSent::Fenced));
    assert_eq!(a.exit(b.pid(), ExitReason::Killed), Err(NotSent::Fenced));
    let asked = a.request(b.pid(), "x".into(), std::time::Duration::from_secs(1)).await;
    assert_eq!(asked, Err(Unanswered::Fenced));
    until(|| tree.runtime.address(a.pid()).is_none()).await;
    assert!(!a.join("news") && a.register("a").is_err());
    a.link(b.pid());
    assert!(b.is_live());
    a.stopping().await;
}

#[tokio::test]
async fn messages_cannot_crowd_out_exits_nor_strangers_those_it_waits_for() {
    let (tree, all) = handles(3).await;
    let [victim, friend, stranger] = &all[..] else { panic!() };
    victim.trap_exits(true);
    victim.link(friend.pid());
    let monitor = victim.monitor(friend.pid());
    while stranger.send(victim.pid(), "flood".into()).is_ok() {}
    let mut signals = 0;
    while stranger.exit(victim.pid(), ExitReason::Error("flood".into())).is_ok() {
        signals += 1;
        assert!(signals <= CAPACITY, "exit signals of strangers are bounded");
    }
    assert_eq!(signals, CAPACITY);
    assert!(tree.runtime.kill(friend.pid()));
    until(|| tree.runtime.address(friend.pid()).is_none()).await;
    let (mut exits, mut downs) = (0, 0);
    for _ in 0..CAPACITY + 2 {
        match victim.receive().await {
            Incoming::Exit(Signal::Exit { from, .. }) if from == friend.pid() => exits += 1,
            Incoming::Exit(Signal::Down { monitor: of, .. }) if of == monitor => downs += 1,
            Incoming::Exit(_) => {}
            _ => panic!("a message before an exit"),
        }
    }
    assert_eq!((exits, downs), (1, 1));
}

#[tokio::test]
async fn a_storm_over_links_takes_all_and_no_more() {
    let (tree, all) = handles(2000).await;
    for pair in all[..1999].windows(2) {
        pair[0].link(pair[1].pid());
    }
    let spared = &all[1999];
    assert!(tree.runtime.kill(all[0].pid()));
    until(|| tree.runtime.processes().len() == 2).await;
    assert!(spared.is_live());
    let exits = tree.notes.drain().into_iter().filter(|line| line.starts_with('-')).count();
    assert_eq!(exits, 1999, "each exit is told once");
    assert_eq!(tree.root.count().await.unwrap().active, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_kills_loses_nobody_and_reuses_no_pid() {
    let tree = Tree::of(flags(Strategy::Dynamic), vec![worker("c")]).await;
    let mut pids: Vec<Pid> = Vec::new();
    for _ in 0..3000 {
        pids.push(tree.root.start_dynamic(None).await.unwrap().unwrap().pid);
    }
    for _ in 0..3 {
        assert!(pids.iter().all(|pid| tree.runtime.kill(*pid)));
        let last = *pids.iter().max().unwrap();
        let fresh = || -> Vec<Pid> {
            let own = |one: &ephor_runtime::Resident| one.parent.is_some() && one.pid > last;
            tree.runtime.processes().into_iter().filter(own).map(|one| one.pid).collect()
        };
        until(|| fresh().len() == 3000).await;
        pids = fresh();
    }
    assert_eq!(tree.root.count().await.unwrap().active, 3000);
    tree.root.stop().await;
    assert!(tree.is_empty());
    let lines = tree.notes.drain();
    let (births, exits) = lines.iter().partition::<Vec<_>, _>(|line| line.starts_with('+'));
    assert_eq!((births.len(), exits.len()), (12_001, 12_001));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_record_delays_starts_and_loses_none() {
    let tree = Tree::of(flags(Strategy::Dynamic), vec![worker("c")]).await;
    tree.notes.is_slow.store(true, std::sync::atomic::Ordering::SeqCst);
    let starts = (0..50).map(|_| tree.root.start_dynamic(None));
    let started = futures_util::future::join_all(starts).await;
    for one in &started {
        assert!(tree.runtime.kill(one.as_ref().unwrap().as_ref().unwrap().pid));
    }
    // It is killed in the middle of telling, and what it began is told to its end.
    let root = tree.root.pid().unwrap();
    assert!(tree.runtime.kill(root));
    until(|| tree.is_empty()).await;
    let balance = || {
        let lines = tree.notes.lines.lock().unwrap();
        let births = lines.iter().filter(|line| line.starts_with('+')).count();
        births == lines.len() - births
    };
    until(balance).await;
}
