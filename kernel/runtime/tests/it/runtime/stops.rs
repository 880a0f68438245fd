//! `sup_stop_*`: how a tree goes.

use std::time::Duration;

use ephor_base::ExitReason;
use ephor_runtime::{
    ChildSpec, Incoming,
    supervisor::{Name, Refused, Shutdown, Strategy, Target},
};

use super::{Tree, brutal, deaf, does, flags, supervisor, worker};

#[tokio::test]
async fn the_last_started_stops_first_and_nothing_is_left_behind() {
    let inner = supervisor("s", flags(Strategy::OneForAll), vec![worker("x"), worker("y")]);
    let tree = Tree::one_for_one(vec![worker("a"), inner, worker("b")]).await;
    tree.notes.drain();
    assert_eq!(tree.root.stop().await, Some(ExitReason::Shutdown));
    let expected =
        ["-r/b shutdown", "-r/s/y shutdown", "-r/s/x shutdown", "-r/s shutdown", "-r/a shutdown", "-r shutdown"];
    assert_eq!(tree.notes.drain(), expected);
    assert!(tree.is_empty());
    assert_eq!(tree.root.count().await.unwrap_err(), Refused::Stopping);
    assert_eq!(tree.root.stop().await, None);
}

#[tokio::test(start_paused = true)]
async fn one_that_ignores_its_stop_is_killed_when_its_time_is_over() {
    let slow = ChildSpec { shutdown: Shutdown::Within(Duration::from_secs(5)), ..ChildSpec::worker("a", deaf()) };
    let tree = Tree::one_for_one(vec![slow]).await;
    tree.notes.drain();
    tree.root.stop().await;
    assert_eq!(tree.notes.drain(), ["-r/a killed", "-r shutdown"]);
}

#[tokio::test(start_paused = true)]
async fn a_brutal_end_does_not_ask_and_an_infinite_one_waits() {
    let asked = does(|process| async move {
        process.stopping().await;
        process.host().note("asked");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        ExitReason::Normal
    });
    let child = |name, shutdown| ChildSpec { shutdown, ..ChildSpec::worker(name, asked.clone()) };
    let tree = Tree::one_for_one(vec![child("a", Shutdown::Infinite), child("b", Shutdown::Brutal)]).await;
    tree.notes.drain();
    tree.root.stop().await;
    assert_eq!(tree.notes.drain(), ["-r/b killed", "asked", "-r/a normal", "-r shutdown"]);
}

#[tokio::test(start_paused = true)]
async fn dynamic_children_stop_together_within_one_time() {
    let tree = Tree::of(flags(Strategy::Dynamic), vec![ChildSpec::worker("c", deaf())]).await;
    for _ in 0..100 {
        tree.root.start_dynamic(None).await.unwrap();
    }
    let began = tokio::time::Instant::now();
    tree.root.stop().await;
    // On the paused clock: five seconds for all, not for each.
    assert_eq!(began.elapsed().as_secs(), 5);
    assert!(tree.is_empty());
}

#[tokio::test]
async fn a_killed_supervisor_takes_its_whole_tree_and_its_successor_builds_it_anew() {
    let deep = supervisor("t", flags(Strategy::OneForOne), vec![ChildSpec::worker("x", deaf())]);
    let tree = Tree::one_for_one(vec![supervisor("s", flags(Strategy::OneForOne), vec![deep, worker("y")])]).await;
    let (old, before) = (tree.runtime.processes(), tree.pid("r/s"));
    assert!(tree.runtime.kill(before));
    tree.after("r/s", before).await;
    super::until(|| {
        tree.runtime.processes().iter().filter(|new| old.iter().any(|old| old.pid == new.pid)).count() == 1
    })
    .await;
    let count = |line| tree.notes.count(line);
    super::until(|| count("-r/s/t/x killed") == 1 && count("-r/s/y killed") == 1 && count("-r/s/t killed") == 1).await;
    assert_eq!(count("+r/s/t/x"), 2);
}

#[tokio::test]
async fn a_child_that_starts_others_while_it_is_stopped_is_refused() {
    let tree = Tree::one_for_one(vec![]).await;
    let (root, (asked, mut answers)) = (tree.root.clone(), tokio::sync::mpsc::unbounded_channel());
    let breeder = does(move |process| {
        let (root, asked) = (root.clone(), asked.clone());
        async move {
            while !matches!(process.receive().await, Incoming::Stop) {}
            let refused = root.start(worker("late")).await.map(drop);
            asked.send(refused).unwrap();
            ExitReason::Normal
        }
    });
    tree.root.start(ChildSpec::worker("a", breeder)).await.unwrap();
    tree.root.stop().await;
    assert_eq!(answers.recv().await.unwrap(), Err(Refused::Stopping));
    assert!(tree.is_empty() && tree.notes.count("+r/late") == 0);
}

#[tokio::test]
async fn a_child_that_dies_while_it_is_stopped_counts_as_stopped() {
    let dies = does(|process| async move {
        process.stopping().await;
        panic!("instead of stopping")
    });
    let tree = Tree::one_for_one(vec![ChildSpec::worker("a", dies), brutal(worker("b"))]).await;
    tree.root.terminate(Target::Name(Name::from("a"))).await.unwrap();
    assert_eq!(tree.notes.count("-r/a panicked"), 1);
    assert_eq!(tree.notes.count("+r/a"), 1, "it is not started again");
}
