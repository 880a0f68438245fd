//! `one_for_one`, `one_for_all`, `rest_for_one`, `simple_one_for_one`, escalation and significant children.

use std::time::Duration;

use ephor_base::ExitReason;
use ephor_runtime::{
    ChildSpec,
    supervisor::{AutoShutdown, Backoff, Flags, Intensity, Restart, Strategy},
};

use super::{Tree, flags, supervisor, until, worker};

async fn three(strategy: Strategy) -> Tree {
    let tree = Tree::of(flags(strategy), vec![worker("a"), worker("b"), worker("c")]).await;
    tree.notes.drain();
    tree
}

#[tokio::test]
async fn one_for_one_starts_only_the_one_again() {
    let tree = three(Strategy::OneForOne).await;
    tree.renew("r/b", "error").await;
    assert_eq!(tree.notes.drain(), ["-r/b error", "+r/b"]);
}

#[tokio::test]
async fn one_for_all_stops_all_in_reverse_and_starts_all_in_order() {
    let tree = three(Strategy::OneForAll).await;
    let last = tree.pid("r/c");
    tree.renew("r/b", "error").await;
    tree.after("r/c", last).await;
    let expected = ["-r/b error", "-r/c shutdown", "-r/a shutdown", "+r/a", "+r/b", "+r/c"];
    assert_eq!(tree.notes.drain(), expected);
}

#[tokio::test]
async fn rest_for_one_takes_those_after_it_along() {
    let tree = three(Strategy::RestForOne).await;
    let last = tree.pid("r/c");
    tree.renew("r/b", "error").await;
    tree.after("r/c", last).await;
    assert_eq!(tree.notes.drain(), ["-r/b error", "-r/c shutdown", "+r/b", "+r/c"]);
}

#[tokio::test]
async fn dynamic_children_are_added_and_started_again_one_by_one() {
    let tree = Tree::of(flags(Strategy::Dynamic), vec![worker("c")]).await;
    for _ in 0..3 {
        tree.root.start_dynamic(None).await.unwrap().unwrap();
    }
    tree.renew("r/2", "panic").await;
    assert_eq!(tree.notes.drain(), ["+r", "+r/1", "+r/2", "+r/3", "-r/2 panicked", "+r/2"]);
    let counted = tree.root.count().await.unwrap();
    assert_eq!((counted.specs, counted.active, counted.workers), (1, 3, 3));
}

#[tokio::test]
async fn too_many_restarts_end_the_supervisor_and_its_own_answers() {
    let intensity = Intensity { restarts: 2, period: Duration::from_secs(3600) };
    let weak = Flags { intensity, ..flags(Strategy::OneForOne) };
    let tree = Tree::one_for_one(vec![supervisor("s", weak, vec![worker("x"), worker("y")])]).await;
    let before = tree.pid("r/s");
    for _ in 0..2 {
        tree.renew("r/s/x", "error").await;
    }
    tree.tell("r/s/x", "error");
    tree.after("r/s", before).await;
    until(|| tree.notes.count("+r/s/y") == 2).await;
    assert_eq!((tree.notes.count("-r/s shutdown"), tree.notes.count("-r/s/y shutdown")), (1, 1));
    assert_eq!(tree.notes.count("-r/s/x error"), 3);
}

#[tokio::test]
async fn a_root_that_gives_up_says_why_and_leaves_nobody() {
    let intensity = Intensity { restarts: 0, period: Duration::from_secs(5) };
    let tree = Tree::of(Flags { intensity, ..flags(Strategy::OneForOne) }, vec![worker("a"), worker("b")]).await;
    let over = tree.runtime.exit_of(tree.root.pid().unwrap());
    tree.tell("r/b", "panic");
    assert!(matches!(over.await, Some(ExitReason::ShutdownFor(_))));
    assert!(tree.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_child_that_keeps_crashing_waits_before_it_is_started_again() {
    let tree = Tree::of(Flags { backoff: Backoff::AGENT, ..flags(Strategy::OneForOne) }, vec![worker("a")]).await;
    let began = tokio::time::Instant::now();
    tree.renew("r/a", "error").await;
    let at_once = began.elapsed();
    tree.renew("r/a", "error").await;
    // On the paused clock: the second wait is between 10 and 20 ms, less the grain of looking.
    assert!(began.elapsed() - at_once >= Duration::from_millis(10));
}

fn significant(name: &str) -> ChildSpec<super::Notes> {
    ChildSpec { restart: Restart::Transient, significant: true, ..worker(name) }
}

#[tokio::test]
async fn a_significant_child_that_ends_takes_its_supervisor_along() {
    let any = Flags { auto_shutdown: AutoShutdown::AnySignificant, ..flags(Strategy::OneForOne) };
    let tree = Tree::of(any, vec![significant("a"), worker("b"), significant("c")]).await;
    let over = tree.runtime.exit_of(tree.root.pid().unwrap());
    tree.renew("r/a", "error").await;
    tree.tell("r/a", "normal");
    assert_eq!(over.await, Some(ExitReason::Shutdown));
    assert!(tree.is_empty());
}

#[tokio::test]
async fn the_last_significant_child_takes_its_supervisor_along() {
    let all = Flags { auto_shutdown: AutoShutdown::AllSignificant, ..flags(Strategy::OneForOne) };
    let tree = Tree::of(all, vec![significant("a"), significant("b")]).await;
    let over = tree.runtime.exit_of(tree.root.pid().unwrap());
    tree.tell("r/a", "normal");
    until(|| tree.find("r/a").is_none()).await;
    assert_eq!(tree.root.count().await.unwrap().active, 1);
    tree.tell("r/b", "normal");
    assert_eq!(over.await, Some(ExitReason::Shutdown));
}
