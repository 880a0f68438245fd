//! Kill before stop before exits before messages; requests, groups, suspension and what nobody takes.

use std::time::Duration;

use ephor_base::ExitReason;
use ephor_runtime::{
    CAPACITY, ChildSpec, Incoming, NotSent, Process, ProcessState, Published, Unanswered,
    supervisor::{Backoff, Flags, Name, Restart, Shutdown, Strategy, Target},
};
use futures_util::FutureExt;
use tokio::sync::mpsc;

use super::{Notes, Tree, does, flags, until, worker};

/// A tree with children whose handles the test holds, and one server.
async fn hands(many: usize) -> (Tree, Vec<Process<Notes>>) {
    let (sender, mut births) = mpsc::unbounded_channel();
    let hands = does(move |process| {
        sender.send(process).unwrap();
        std::future::pending()
    });
    let child = |name: &str| ChildSpec { keeps_messages: true, ..ChildSpec::worker(name, hands.clone()) };
    let names = ["a", "b", "c", "d"];
    let mut children: Vec<_> = names.iter().take(many).map(|name| child(name)).collect();
    children.push(worker("server"));
    let tree = Tree::one_for_one(children).await;
    let mut processes = Vec::new();
    for _ in 0..many {
        processes.push(births.recv().await.unwrap());
    }
    (tree, processes)
}

#[tokio::test]
async fn ports_come_in_their_order() {
    let (tree, all) = hands(2).await;
    let [a, b] = &all[..] else { panic!() };
    tree.runtime.send(a.pid(), "one".into()).unwrap();
    a.trap_exits(true);
    b.exit(a.pid(), ExitReason::Error("gone".into())).unwrap();
    assert!(matches!(a.receive().await, Incoming::Exit(_)), "exits before messages");
    assert!(matches!(a.receive().await, Incoming::Message(text) if text == "one"));
    tree.runtime.send(a.pid(), "two".into()).unwrap();
    b.exit(a.pid(), ExitReason::Error("gone".into())).unwrap();
    assert!(tree.runtime.stop(a.pid()));
    assert!(matches!(a.receive().await, Incoming::Stop), "a stop before both");
    assert!(matches!(a.receive().await, Incoming::Stop), "and from then on nothing else");
    a.stopping().await;
}

#[tokio::test]
async fn a_full_port_is_a_typed_refusal() {
    let (tree, all) = hands(1).await;
    for n in 0..CAPACITY {
        tree.runtime.send(all[0].pid(), n.to_string()).unwrap();
    }
    assert_eq!(tree.runtime.send(all[0].pid(), "more".into()), Err(NotSent::Full(CAPACITY)));
    let address = tree.runtime.address(all[0].pid()).unwrap();
    assert_eq!(address.promise().map(drop), Err(NotSent::Full(CAPACITY)));
    assert!(matches!(all[0].receive().await, Incoming::Message(text) if text == "0"));
    // A place that is promised is taken, and one that is given back is free.
    let promise = address.promise().unwrap();
    assert_eq!(tree.runtime.send(all[0].pid(), "more".into()), Err(NotSent::Full(CAPACITY)));
    drop(promise);
    tree.runtime.send(all[0].pid(), "more".into()).unwrap();
}

#[tokio::test]
async fn a_seat_that_keeps_its_messages_hands_them_to_the_next_incarnation() {
    let (tree, all) = hands(1).await;
    let (old, address) = (&all[0], tree.runtime.address(all[0].pid()).unwrap());
    let promise = address.promise().unwrap();
    tree.runtime.send(old.pid(), "one".into()).unwrap();
    assert!(tree.runtime.kill(old.pid()));
    assert!(matches!(old.receive().await, Incoming::Stop), "they are not for the one that is over");
    tree.after("r/a", old.pid()).await;
    promise.put("two".into());
    assert_eq!(address.waiting(), 2);
    tree.root.terminate(Target::Name(Name::from("a"))).await.unwrap();
    assert_eq!(address.promise().map(drop), Err(NotSent::Gone), "nobody comes by itself any more");
    let undelivered: Vec<_> = tree.notes.drain().into_iter().filter(|line| line.starts_with('?')).collect();
    assert_eq!(undelivered, ["?r/a one", "?r/a two"]);
}

#[tokio::test]
async fn what_nobody_takes_comes_back() {
    let busy = does(|process| async move {
        process.receive().await;
        std::future::pending::<()>().await;
        ExitReason::Normal
    });
    let tree = Tree::one_for_one(vec![ChildSpec::worker("a", busy)]).await;
    let pid = tree.pid("r/a");
    for text in ["taken", "left"] {
        tree.runtime.send(pid, text.into()).unwrap();
    }
    let taken = || tree.runtime.address(pid).is_some_and(|address| address.waiting() == 1);
    until(taken).await;
    assert!(tree.runtime.kill(pid));
    until(|| tree.notes.count("?r/a left") == 1).await;
    assert_eq!(tree.notes.count("?r/a taken"), 0, "no message is both delivered and dead");
    assert_eq!(tree.runtime.send(pid, "late".into()), Err(NotSent::Gone));
}

#[tokio::test]
async fn a_request_is_answered() {
    let (tree, all) = hands(1).await;
    let answer = all[0].request(tree.pid("r/server"), "hello".into(), Duration::from_secs(60)).await;
    assert_eq!(answer.unwrap(), "hello!");
}

#[tokio::test]
async fn a_request_to_one_that_dies_ends_at_once() {
    let (tree, all) = hands(2).await;
    let [a, b] = &all[..] else { panic!() };
    let kill = async {
        let Incoming::Request(_, reply) = b.receive().await else { panic!() };
        let waits = tree.runtime.processes().into_iter().find(|one| one.pid == a.pid()).unwrap();
        assert_eq!(waits.waits_for, Some(b.pid()));
        assert!(tree.runtime.kill(b.pid()));
        until(|| tree.find("r/b") != Some(b.pid())).await;
        assert!(!reply.send("from the grave".into()), "a fenced incarnation answers nobody");
    };
    // No time limit is what ends this.
    let (answer, ()) = tokio::join!(a.request(b.pid(), "hello".into(), Duration::MAX / 4), kill);
    assert_eq!(answer, Err(Unanswered::Gone(b.pid())));
    assert_eq!(a.request(b.pid(), "x".into(), Duration::MAX / 4).await, Err(Unanswered::Gone(b.pid())));
}

#[tokio::test(start_paused = true)]
async fn a_request_ends_at_its_deadline_and_a_late_answer_is_heard_by_nobody() {
    let (_tree, all) = hands(2).await;
    let [a, b] = &all[..] else { panic!() };
    let answer = a.request(b.pid(), "hello".into(), Duration::from_secs(2)).await;
    assert_eq!(answer, Err(Unanswered::Late(b.pid())));
    let Incoming::Request(_, reply) = b.receive().await else { panic!() };
    assert!(!reply.send("too late".into()));
}

#[tokio::test]
async fn a_group_gets_what_is_published_and_forgets_who_is_over() {
    let (tree, all) = hands(4).await;
    let [a, b, c, d] = &all[..] else { panic!() };
    for one in [a, b, c] {
        assert!(one.join("news"));
    }
    assert!(d.join("news") && d.leave("news") && !d.leave("news"));
    assert!(tree.runtime.kill(c.pid()));
    until(|| a.members("news") == [a.pid(), b.pid()]).await;
    assert_eq!(a.publish("news", &"extra".to_owned()), Published { sent: 1, full: 0 });
    assert!(matches!(b.receive().await, Incoming::Message(text) if text == "extra"));
    assert!(a.receive().now_or_never().is_none() && d.receive().now_or_never().is_none());
    assert!(!c.join("news") && c.members("none").is_empty());
}

#[tokio::test]
async fn a_suspended_seat_takes_no_message_but_stops_exits_and_dies() {
    let (tree, all) = hands(1).await;
    let (a, address) = (&all[0], tree.runtime.address(all[0].pid()).unwrap());
    address.suspend(true);
    tree.runtime.send(a.pid(), "later".into()).unwrap();
    assert!(a.receive().now_or_never().is_none());
    assert_eq!(tree.runtime.processes().iter().find(|one| one.pid == a.pid()).unwrap().state, ProcessState::Suspended);
    a.trap_exits(true);
    a.exit(a.pid(), ExitReason::Error("x".into())).unwrap();
    assert!(matches!(a.receive().await, Incoming::Exit(_)));
    let waits = a.receive();
    address.suspend(false);
    assert!(matches!(waits.await, Incoming::Message(text) if text == "later"));
    address.suspend(true);
    assert!(tree.runtime.kill(a.pid()));
    tree.after("r/a", a.pid()).await;
    assert!(address.is_suspended(), "a crash does not lift it");
}

#[tokio::test]
async fn a_waiting_process_says_so() {
    let tree =
        Tree::of(flags(Strategy::OneForOne), vec![ChildSpec { restart: Restart::Temporary, ..worker("a") }]).await;
    let state = || tree.runtime.processes().into_iter().find(|one| one.seat.as_str() == "r/a").map(|one| one.state);
    until(|| state() == Some(ProcessState::Waiting)).await;
}

/// Found by the simulation (seed 1213): they waited until the supervisor itself ended.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_child_that_is_terminated_while_a_sibling_waits_for_its_restart_comes_back() {
    let wait = Duration::from_secs(60);
    let backoff = Backoff { free: 0, first: wait, most: wait, healthy: wait };
    let kept = ChildSpec { keeps_messages: true, ..worker("b") };
    let tree = Tree::of(Flags { backoff, ..flags(Strategy::OneForOne) }, vec![worker("a"), kept]).await;
    let (a, b) = (tree.pid("r/a"), tree.pid("r/b"));
    tree.runtime.address(b).unwrap().suspend(true);
    tree.tell("r/b", "hello");
    assert!(tree.runtime.kill(a));
    until(|| tree.notes.count("-r/a killed") == 1).await;
    tree.root.terminate(Target::Name(Name::from("b"))).await.unwrap();
    tree.after("r/a", a).await;
    tokio::time::sleep(wait).await;
    assert_eq!(tree.notes.count("?r/b hello"), 1);
}

/// Found by the simulation (seed 47): the way back woke the process under the lock that its waker takes.
#[tokio::test(start_paused = true)]
async fn a_process_that_asks_itself_and_is_given_up_ends() {
    let asks = does(|process| async move {
        let own = process.pid();
        let asked = process.request(own, "me".into(), Duration::from_secs(60)).await;
        process.host().note(format!("{asked:?}"));
        std::future::pending().await
    });
    let child = ChildSpec { shutdown: Shutdown::Brutal, ..ChildSpec::worker("a", asks) };
    let tree = Tree::one_for_one(vec![child]).await;
    until(|| tree.runtime.processes().iter().any(|one| one.waits_for.is_some())).await;
    assert!(tree.runtime.kill(tree.root.pid().unwrap()));
    until(|| tree.is_empty()).await;
}
