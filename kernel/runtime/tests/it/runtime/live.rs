//! `child_adm`, `child_adm_simple`, `count_children`, `which_children`, `delete_child`: changing a tree that runs.

use ephor_runtime::{
    ChildSpec,
    supervisor::{Kind, Name, Refused, Restart, Strategy, Target},
};

use super::{Tree, flags, supervisor, until, worker};

fn named(name: &str) -> Target {
    Target::Name(Name::from(name))
}

#[tokio::test]
async fn a_child_is_terminated_restarted_and_deleted() {
    let tree = Tree::one_for_one(vec![worker("a")]).await;
    assert_eq!(tree.root.delete(Name::from("a")).await, Err(Refused::Running));
    assert!(matches!(tree.root.restart(Name::from("a")).await.map(drop), Err(Refused::Running)));
    tree.root.terminate(named("a")).await.unwrap();
    assert!(tree.find("r/a").is_none());
    assert!(matches!(tree.root.start(worker("a")).await.map(drop), Err(Refused::AlreadyPresent)));
    let again = tree.root.restart(Name::from("a")).await.unwrap().unwrap();
    assert_eq!(tree.pid("r/a"), again.pid);
    assert!(matches!(tree.root.start(worker("a")).await.map(drop), Err(Refused::AlreadyStarted(_))));
    tree.root.terminate(named("a")).await.unwrap();
    tree.root.delete(Name::from("a")).await.unwrap();
    assert_eq!(tree.root.terminate(named("a")).await, Err(Refused::NotFound));
    assert_eq!(tree.root.count().await.unwrap().specs, 0);
    // The same name is a new seat for a new child.
    tree.root.start(worker("a")).await.unwrap();
}

#[tokio::test]
async fn a_child_that_is_added_comes_last_and_stays_there() {
    let tree = Tree::of(flags(Strategy::RestForOne), vec![worker("a"), worker("b")]).await;
    tree.root.start(worker("c")).await.unwrap();
    tree.notes.drain();
    let last = tree.pid("r/c");
    tree.renew("r/b", "panic").await;
    tree.after("r/c", last).await;
    assert_eq!(tree.notes.drain(), ["-r/b panicked", "-r/c shutdown", "+r/b", "+r/c"]);
    let names: Vec<_> = tree.root.which().await.unwrap().into_iter().map(|one| one.name.unwrap().to_string()).collect();
    assert_eq!(names, ["c", "b", "a"], "the last started first");
}

#[tokio::test]
async fn children_are_counted_and_listed_as_they_are() {
    let tree = Tree::one_for_one(vec![worker("a"), supervisor("s", flags(Strategy::OneForOne), vec![])]).await;
    tree.root.terminate(named("a")).await.unwrap();
    let counted = tree.root.count().await.unwrap();
    assert_eq!((counted.specs, counted.active, counted.supervisors, counted.workers), (2, 1, 1, 1));
    let listed = tree.root.which().await.unwrap();
    assert_eq!(listed.iter().map(|one| one.kind).collect::<Vec<_>>(), [Kind::Supervisor, Kind::Worker]);
    assert_eq!(listed[0].running.unwrap().1, tree.pid("r/s"));
    assert!(listed[1].running.is_none() && !listed[1].is_restarting);
}

#[tokio::test]
async fn a_dynamic_child_is_terminated_by_its_id_and_forgotten() {
    let tree = Tree::of(flags(Strategy::Dynamic), vec![worker("c")]).await;
    let one = tree.root.start_dynamic(None).await.unwrap().unwrap();
    let two = tree.root.start_dynamic(None).await.unwrap().unwrap();
    tree.root.terminate(Target::Child(one.id)).await.unwrap();
    assert_eq!(tree.root.terminate(Target::Child(one.id)).await, Ok(()), "it is over already");
    assert_eq!(tree.root.terminate(named("c")).await, Err(Refused::Dynamic));
    assert_eq!(tree.root.delete(Name::from("c")).await, Err(Refused::Dynamic));
    assert!(matches!(tree.root.start(worker("d")).await.map(drop), Err(Refused::Dynamic)));
    assert!(!one.address.is_open() && two.address.is_open());
}

#[tokio::test]
async fn a_temporary_child_is_forgotten_when_it_ends() {
    let tree = Tree::one_for_one(vec![ChildSpec { restart: Restart::Temporary, ..worker("a") }]).await;
    tree.tell("r/a", "panic");
    until(|| tree.notes.count("-r/a panicked") == 1).await;
    assert_eq!(tree.root.count().await.unwrap().specs, 0);
    assert_eq!(tree.notes.count("+r/a"), 1);
}

#[tokio::test]
async fn a_request_that_comes_while_a_supervisor_is_replaced_is_answered_by_the_next() {
    let tree = Tree::one_for_one(vec![supervisor("s", flags(Strategy::OneForOne), vec![])]).await;
    let listed = tree.root.which().await.unwrap();
    let before = listed[0].running.unwrap().1;
    let inner = tree.runtime.address(before).unwrap().supervision().unwrap();
    assert!(tree.runtime.kill(before));
    tree.after("r/s", before).await;
    inner.start(worker("x")).await.unwrap();
    assert!(tree.find("r/s/x").is_some() && inner.pid() == tree.find("r/s"));
}
