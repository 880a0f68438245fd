//! Processes that crash, are killed and are stopped.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ephor_base::{EndReason, ExitReason, Pid};
use ephor_chain::record::Fact;
use ephor_kernel::{Body, Life, Moment, NotAccepted, NotStarted, Process, Seen};

use crate::world::{
    Does, End, PLENTY, Setup, asked, chosen, code, direct, done, model, reader, reply, text, until, uses,
};

fn exits(facts: &[Fact]) -> Vec<&str> {
    facts
        .iter()
        .filter_map(|fact| if let Fact::Exit { reason } = fact { Some(reason.as_str()) } else { None })
        .collect()
}

#[tokio::test]
async fn an_agent_that_panics_goes_on_in_the_middle_of_its_turn() {
    let tool = Does::saying("once");
    let world = Setup::new()
        .tool(reader("t.read"), tool.clone())
        .model(model(vec![uses(&[("t.read", "{}"), ("t.read", r#"{"path":"b"}"#)]), text("done")]))
        .boot()
        .await;
    let mut puppet = world.puppet(PLENTY).await;
    let (first, end) = puppet.in_turn("go").await;
    let by = asked(&first).await;
    done(&first, chosen(by, 0)).await.unwrap();
    end.send(End::Panic).unwrap();
    let (second, _end) = puppet.born().await;
    assert!(second.pid() > first.pid() && second.seat() == first.seat() && second.is_in_turn());
    let transcript = second.transcript();
    assert!(matches!(
        transcript.as_slice(),
        [Moment::Said(_), Moment::Answered { .. }, Moment::Result { index: 0, ok: true, .. }]
    ));
    assert_eq!(code(&done(&second, chosen(by, 0)).await), "Repeated");
    done(&second, chosen(by, 1)).await.unwrap();
    let said = asked(&second).await;
    done(&second, reply(Some(said))).await.unwrap();
    assert_eq!(tool.runs(), 2);
    let facts = world.facts(puppet.session).await;
    assert_eq!(exits(&facts), ["panicked"]);
    assert!(facts.iter().any(|fact| matches!(fact, Fact::Spawn { incarnation: 2, .. })));
}

#[tokio::test]
async fn a_call_cut_off_by_a_crash_is_a_second_attempt_of_the_same_call() {
    let runs = Arc::new(Mutex::new(Vec::new()));
    let (log, slow) = (
        runs.clone(),
        Does::new({
            let runs = runs.clone();
            move |permit, context| {
                runs.lock().unwrap().push((permit.call(), permit.attempt(), permit.pid()));
                let first = permit.attempt() == 1;
                async move {
                    if first {
                        context.cancelled().await;
                        std::future::pending::<()>().await;
                    }
                    crate::world::said("at last")
                }
            }
        }),
    );
    let world = Setup::new().tool(reader("t.slow"), slow).model(model(vec![uses(&[("t.slow", "{}")])])).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (first, end) = puppet.in_turn("go").await;
    let by = asked(&first).await;
    let mut call = first.call(chosen(by, 0)).unwrap();
    crate::world::running(&mut call).await;
    end.send(End::Error).unwrap();
    let (second, _end) = puppet.born().await;
    // The first attempt has not ended: the second waits for it, and never runs beside it.
    assert_eq!(code(&done(&second, chosen(by, 0)).await), "done");
    assert_eq!(code(&call.ended().await), "cancelled");
    let log = log.lock().unwrap();
    assert_eq!(log.len(), 2);
    assert!(log[0].0 == log[1].0 && (log[0].1, log[1].1) == (1, 2) && log[1].2 == second.pid());
}

#[tokio::test]
async fn an_agent_that_crashes_too_often_ends_its_turn_and_nobody_else_notices() {
    let world = Setup::new().boot().await;
    let (mut bad, mut good) = (world.puppet(PLENTY).await, world.puppet(PLENTY).await);
    let mut seen = world.kernel.watch(bad.session, false);
    let (other, _kept) = good.in_turn("work").await;
    bad.say("crash").await;
    for n in 0..6 {
        let (process, end) = bad.born().await;
        if n == 0 {
            process.receive().await;
        }
        assert!(process.is_in_turn());
        end.send(End::Panic).unwrap();
    }
    let reply_of = loop {
        if let Seen::Ended { target, .. } = seen.recv().await.unwrap() {
            break target;
        }
    };
    assert_eq!(reply_of, "crashed");
    until(|| !world.kernel.processes().iter().any(|info| info.session == Some(bad.session))).await;
    let facts = world.facts(bad.session).await;
    assert_eq!(exits(&facts), ["panicked", "panicked", "panicked", "panicked", "panicked", "panicked", "shutdown"]);
    assert!(facts.iter().any(|fact| matches!(fact, Fact::TurnEnd { end: EndReason::Crashed, .. })));
    // Nobody would read it, so it is not taken.
    let part = ephor_base::Part { kind: ephor_base::PartKind::Typed, text: "hello?".into() };
    assert_eq!(world.kernel.send(bad.session, vec![part]).await, Err(NotAccepted::NoSession(bad.session)));
    assert_eq!(code(&done(&other, reply(None)).await), "done");
}

#[tokio::test]
async fn a_killed_process_is_replaced_and_pids_are_never_reused() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let mut pids = Vec::new();
    for _ in 0..3 {
        let (process, _end) = puppet.born().await;
        pids.push(process.pid());
        assert!(world.kernel.kill(process.pid()));
    }
    let (process, _end) = puppet.born().await;
    pids.push(process.pid());
    assert!(pids.windows(2).all(|pair| pair[0] < pair[1]), "{pids:?}");
    assert!(!world.kernel.kill(pids[0]) && !world.kernel.kill(Pid(u64::MAX)));
    assert_eq!(exits(&world.facts(puppet.session).await), ["killed", "killed", "killed"]);
}

/// Notes when it stops; or does not stop at all.
struct Stops(&'static str, Arc<Mutex<Vec<&'static str>>>, bool);

impl Body for Stops {
    fn run(&self, process: Process) -> Life {
        let (name, log, stops) = (self.0, self.1.clone(), self.2);
        Life::new(async move {
            process.stopping().await;
            log.lock().unwrap().push(name);
            if !stops {
                std::future::pending::<()>().await;
            }
            Ok(())
        })
    }
}

#[tokio::test]
async fn the_tree_stops_last_started_first() {
    let world = Setup::new().boot().await;
    let log = Arc::new(Mutex::new(Vec::new()));
    for name in ["a", "b", "c"] {
        world.kernel.start_service(name, Arc::new(Stops(name, log.clone(), true))).await.unwrap();
    }
    world.kernel.stop().await;
    assert_eq!(*log.lock().unwrap(), ["c", "b", "a"]);
    assert!(world.kernel.processes().is_empty());
    let late = world.kernel.start_task("late", Arc::new(Stops("late", log.clone(), true))).await;
    assert_eq!(late, Err(NotStarted::Stopping));
    let exits = world.record().await.into_iter().filter(|one| matches!(one.entry.fact, Fact::Exit { .. })).count();
    assert_eq!(exits, 6, "three services, two supervisors and the root");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_does_not_stop_is_killed() {
    let world = Setup::new().boot().await;
    let log = Arc::new(Mutex::new(Vec::new()));
    world.kernel.start_service("deaf", Arc::new(Stops("deaf", log.clone(), false))).await.unwrap();
    world.kernel.stop().await;
    assert_eq!(*log.lock().unwrap(), ["deaf"]);
    let killed = |one: &ephor_chain::Stored| matches!(&one.entry.fact, Fact::Exit { reason } if reason == "killed");
    assert_eq!(world.record().await.iter().filter(|one| killed(one)).count(), 1);
}

#[tokio::test]
async fn a_killed_supervisor_leaves_no_child_and_its_successor_takes_orders() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let find =
        |name: &str| world.kernel.processes().into_iter().find(|info| info.seat.as_str() == name).map(|info| info.pid);
    let agents = find("node/agents").unwrap();
    assert!(world.kernel.kill(agents));
    until(|| !world.kernel.processes().iter().any(|info| info.session == Some(puppet.session))).await;
    assert_eq!(code(&done(&process, direct("t.x", "{}")).await), "Fenced");
    until(|| find("node/agents").is_some_and(|pid| pid > agents)).await;
    let mut next = world.puppet(PLENTY).await;
    let (process, _end) = next.in_turn("go").await;
    assert_eq!(code(&done(&process, reply(None)).await), "done");
    assert_eq!(process.seat().name(), "loop");
}

#[tokio::test]
async fn a_closed_session_is_gone_and_its_turn_is_over() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let mut seen = world.kernel.watch(puppet.session, true);
    let (process, _end) = puppet.born().await;
    let (begins, begun) = tokio::sync::oneshot::channel();
    let mut begins = Some(begins);
    let serve = tokio::spawn(async move {
        while matches!(process.receive().await, ephor_kernel::Incoming::Message(_)) {
            begins.take().unwrap().send(()).unwrap();
            process.turn_cancelled().await;
            done(&process, reply(None)).await.unwrap();
        }
    });
    puppet.say("go").await;
    begun.await.unwrap();
    world.kernel.close_session(puppet.session).await;
    serve.await.unwrap();
    assert!(world.agent_of(puppet.session).is_none());
    let facts = world.facts(puppet.session).await;
    assert!(facts.iter().any(|fact| matches!(fact, Fact::TurnEnd { .. })));
    // Whoever watched gets to the end of it.
    while tokio::time::timeout(Duration::from_secs(20), seen.recv()).await.unwrap().is_some() {}
    assert_eq!(ExitReason::Killed.code(), "killed");
}
