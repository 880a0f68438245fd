//! The watchdog: processes that hang are fenced and replaced.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use ephor_base::{ExitReason, Pid};
use ephor_runtime::{ChildSpec, NotSent, Process, Runtime, SupervisorSpec, supervisor::Strategy};
use tokio::sync::mpsc;

use super::{Notes, Tree, does, flags, until, worker};

#[tokio::test]
async fn one_that_works_on_a_message_for_too_long_is_replaced() {
    let slow = does(|process| async move {
        process.receive().await;
        std::future::pending().await
    });
    let child = ChildSpec { limit: Some(Duration::from_secs(60)), ..ChildSpec::worker("a", slow) };
    let idle = ChildSpec { limit: Some(Duration::from_secs(60)), ..worker("b") };
    let tree = Tree::one_for_one(vec![child, idle]).await;
    let (a, b) = (tree.pid("r/a"), tree.pid("r/b"));
    tree.tell("r/a", "work");
    tree.tell("r/b", "work");
    until(|| tree.notes.count("r/b work") == 1 && tree.runtime.address(a).is_some_and(|a| a.waiting() == 0)).await;
    tree.notes.ahead.fetch_add(61_000, Ordering::SeqCst);
    tree.after("r/a", a).await;
    assert_eq!(tree.notes.count("-r/a hung"), 1);
    assert_eq!(tree.pid("r/b"), b, "one that has done its work may wait for ever");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn one_that_never_yields_is_fenced_and_replaced_while_it_still_runs() {
    let (notes, over) = (Notes::new(), Arc::new(AtomicBool::new(false)));
    let (lives, (acts, mut tried)) = (Arc::new(AtomicUsize::new(0)), mpsc::unbounded_channel());
    let spin = {
        let (over, lives) = (over.clone(), lives.clone());
        move |process: Process<Notes>| {
            let (over, first, acts) = (over.clone(), lives.fetch_add(1, Ordering::SeqCst) == 0, acts.clone());
            async move {
                if !first {
                    process.receive().await;
                    return ExitReason::Normal;
                }
                while !over.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
                // Back at last, it acts as if nothing had been.
                acts.send((process.is_live(), process.send(Pid(1), "me".into()), process.join("news"))).unwrap();
                std::future::pending().await
            }
        }
    };
    let runtime = Runtime::new(notes.clone(), Pid(1), Duration::from_millis(50));
    let children = vec![ChildSpec::worker("a", does(spin)), worker("b")];
    let spec = SupervisorSpec::new(flags(Strategy::OneForOne), children);
    let root = runtime.plant("r", &spec).await.unwrap();
    let mut lost = runtime.lost_threads();
    let tree = Tree { notes, runtime, root };
    until(|| tree.notes.count("+r/a") == 2).await;
    assert_eq!(tree.notes.count("-r/a hung"), 1);
    lost.wait_for(|lost| *lost == 1).await.unwrap();
    tree.tell("r/b", "still here");
    until(|| tree.notes.count("r/b still here") == 1).await;
    over.store(true, Ordering::SeqCst);
    assert_eq!(tried.recv().await.unwrap(), (false, Err(NotSent::Fenced), false));
    lost.wait_for(|lost| *lost == 0).await.unwrap();
    tree.root.stop().await;
    assert!(tree.is_empty() && tree.notes.count("-r/a hung") == 1);
}
