//! `sup_start`, `sup_start_ignore_*`, `sup_start_fail`: how a tree comes to stand.

use std::sync::atomic::{AtomicUsize, Ordering};

use ephor_runtime::{
    Begin, ChildSpec, NotPlanted,
    supervisor::{BadSpec, Refused, Restart, Strategy},
};

use super::{Notes, Tree, begins, flags, serve, supervisor, worker};

fn beginning(name: &str, begin: impl Fn() -> Begin + Send + Sync + 'static) -> ChildSpec<Notes> {
    ChildSpec::worker(name, begins(begin, serve))
}

#[tokio::test]
async fn a_tree_stands_in_order_before_its_start_is_answered() {
    let inner = supervisor("s", flags(Strategy::OneForOne), vec![worker("x"), worker("y")]);
    let tree = Tree::one_for_one(vec![worker("a"), inner, worker("b")]).await;
    assert_eq!(tree.notes.drain(), ["+r", "+r/a", "+r/s", "+r/s/x", "+r/s/y", "+r/b"]);
    let added = supervisor("t", flags(Strategy::OneForOne), vec![worker("z")]);
    let added = tree.root.start(added).await.unwrap().unwrap();
    // The answer comes once the new supervisor's own children run.
    assert_eq!(added.address.supervision().unwrap().count().await.unwrap().active, 1);
    assert!(tree.find("r/t/z").is_some());
}

#[tokio::test]
async fn a_start_that_fails_takes_those_before_it_back() {
    let children = vec![worker("a"), worker("b"), beginning("c", || Begin::Failed("no".to_owned())), worker("d")];
    let (notes, planted) = Tree::try_of(flags(Strategy::OneForOne), children).await;
    let Err(NotPlanted::Failed(reason)) = planted.map(drop) else { panic!("it stands") };
    assert_eq!(reason.code(), "shutdown");
    assert_eq!(notes.drain(), ["+r", "+r/a", "+r/b", "-r/b shutdown", "-r/a shutdown", "-r shutdown"]);
}

#[tokio::test]
async fn a_start_that_panics_has_failed() {
    let (notes, planted) = Tree::try_of(flags(Strategy::OneForOne), vec![beginning("c", || panic!("at once"))]).await;
    assert!(matches!(planted.map(drop), Err(NotPlanted::Failed(_))));
    assert_eq!(notes.drain(), ["+r", "-r shutdown"]);
}

#[tokio::test]
async fn a_supervisor_whose_child_fails_is_a_start_that_failed() {
    let inner = supervisor("s", flags(Strategy::OneForOne), vec![beginning("x", || Begin::Failed("no".to_owned()))]);
    let tree = Tree::one_for_one(vec![worker("a")]).await;
    let refused = tree.root.start(inner).await.map(drop);
    assert!(matches!(refused, Err(Refused::StartFailed(_))), "{refused:?}");
    assert!(tree.find("r/s").is_none() && tree.find("r/a").is_some());
    assert_eq!(tree.root.count().await.unwrap().specs, 1);
}

#[tokio::test]
async fn a_child_that_is_ignored_keeps_its_specification_unless_it_is_temporary() {
    let (first, second) = (beginning("a", || Begin::Ignored), beginning("b", || Begin::Ignored));
    let tree = Tree::one_for_one(vec![first, ChildSpec { restart: Restart::Temporary, ..second }]).await;
    let counted = tree.root.count().await.unwrap();
    assert_eq!((counted.specs, counted.active), (1, 0));
    let listed = tree.root.which().await.unwrap();
    assert!(listed[0].name.as_ref().unwrap().as_str() == "a" && listed[0].running.is_none());
}

#[tokio::test]
async fn a_specification_that_is_none_starts_nothing() {
    let (notes, planted) = Tree::try_of(flags(Strategy::OneForOne), vec![worker("a"), worker("a")]).await;
    assert!(matches!(planted.map(drop), Err(NotPlanted::BadSpec(BadSpec::Duplicate(_)))));
    let (_, planted) = Tree::try_of(flags(Strategy::Dynamic), vec![]).await;
    assert!(matches!(planted.map(drop), Err(NotPlanted::BadSpec(BadSpec::Template))));
    assert!(notes.drain().is_empty());
}

#[tokio::test]
async fn a_restart_that_fails_is_tried_again_until_it_is_too_often() {
    static TRIES: AtomicUsize = AtomicUsize::new(0);
    let flaky = beginning("a", || match TRIES.fetch_add(1, Ordering::SeqCst) {
        1..=3 => Begin::Failed("not yet".to_owned()),
        _ => Begin::Runs,
    });
    let tree = Tree::one_for_one(vec![flaky]).await;
    tree.renew("r/a", "error").await;
    assert_eq!(TRIES.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn nobody_runs_who_is_not_on_the_record() {
    let tree = Tree::one_for_one(vec![]).await;
    tree.notes.is_broken.store(true, Ordering::SeqCst);
    let refused = tree.root.start(worker("a")).await.map(drop);
    assert!(matches!(refused, Err(Refused::StartFailed(_))), "{refused:?}");
    assert!(tree.find("r/a").is_none());
}
