//! Processes that crash, are killed and are stopped.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ephor_base::{EndReason, ExitReason, Pid};
use ephor_kernel::{Body, Branch, Child, Life, Moment, NotAccepted, NotStarted, Process, Seen};
use ephor_record::{Fact, Undelivered};
use ephor_runtime::supervisor::{AutoShutdown, Backoff, Flags, Intensity, Name, Strategy, Target};

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
    assert!(over(&mut seen).await.is_some_and(|why| why.contains("crashed too often")));
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
async fn every_service_stops_with_the_tree_and_nothing_starts_any_more() {
    let world = Setup::new().boot().await;
    let log = Arc::new(Mutex::new(Vec::new()));
    for name in ["a", "b", "c"] {
        world.kernel.start_service(name, Arc::new(Stops(name, log.clone(), true))).await.unwrap();
    }
    let (mut paged, mut more) = (Vec::new(), true);
    while more {
        let page;
        (page, more) = world.kernel.processes_behind(paged.last().copied(), 2);
        assert!(page.len() <= 2);
        paged.extend(page.into_iter().map(|process| process.pid));
    }
    let all: Vec<_> = world.kernel.processes().into_iter().map(|process| process.pid).collect();
    assert!(all.len() >= 6);
    assert_eq!(paged, all, "page by page each is shown once");
    world.kernel.stop().await;
    // They have nothing to do with one another, and none waits for another.
    let mut stopped = log.lock().unwrap().clone();
    stopped.sort_unstable();
    assert_eq!(stopped, ["a", "b", "c"]);
    assert!(world.kernel.processes().is_empty());
    let late = world.kernel.start_task("late", Arc::new(Stops("late", log.clone(), true))).await;
    assert_eq!(late, Err(NotStarted::Stopping));
    let exits = world.record().await.into_iter().filter(|one| matches!(one.entry.fact, Fact::Exit { .. })).count();
    assert_eq!(exits, 6, "three services, two supervisors and the root");
}

#[tokio::test]
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

/// Why the session is over, as whoever watches hears it; nothing follows.
async fn over(seen: &mut ephor_kernel::Subscription) -> Option<String> {
    let mut why = None;
    while let Some(seen) = tokio::time::timeout(Duration::from_secs(20), seen.recv()).await.unwrap() {
        assert_eq!(why, None, "it was the last thing");
        why = if let Seen::Over { why } = seen { Some(why) } else { None };
    }
    why
}

#[tokio::test]
async fn a_session_whose_supervisor_is_killed_is_over_and_whoever_waits_hears_of_it() {
    for of_all in [false, true] {
        let world = Setup::new().boot().await;
        let mut puppet = world.puppet(PLENTY).await;
        let mut seen = world.kernel.watch(puppet.session, true);
        let (process, _end) = puppet.in_turn("go").await;
        puppet.say("and then").await;
        let find =
            |name: &str| world.kernel.processes().into_iter().find(|one| one.seat.as_str() == name).map(|one| one.pid);
        let group = process.seat().as_str().strip_suffix("/loop").unwrap();
        let above = find(if of_all { "node/agents" } else { group }).unwrap();
        assert!(world.kernel.kill(above));
        let why = over(&mut seen).await.expect("nobody says why");
        assert!(why.contains("killed") && why.contains("ephor dead"), "{why}");
        let dead = || world.kernel.dead_letters();
        until(|| dead().len() == 2).await;
        assert!(dead().iter().all(|letter| letter.why == Undelivered::Stopped), "{:?}", dead());
        let rests = tokio::time::timeout(Duration::from_secs(20), world.kernel.at_rest()).await;
        assert!(rests.is_ok(), "nothing is owed an answer any more");
        // It can be taken up again, as any session that ended.
        until(|| find("node/agents").is_some()).await;
        let (_again, attached) = world.attach(puppet.session).await;
        assert!(!attached.works);
    }
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

/// A tree of one's own: dynamic children that wait.
async fn waiting(world: &crate::world::World, many: usize) -> (Branch, Vec<Pid>) {
    let flags = Flags {
        strategy: Strategy::Dynamic,
        intensity: Intensity { restarts: 1_000_000, period: Duration::from_secs(60) },
        auto_shutdown: AutoShutdown::Never,
        backoff: Backoff::NONE,
        independent: false,
    };
    let child = Child::worker("c", Arc::new(Stops("c", Arc::default(), true)));
    let branch = world.kernel.start_branch(Child::supervisor("b", flags, vec![child])).await.unwrap();
    let mut pids = Vec::new();
    for _ in 0..many {
        pids.push(branch.start_dynamic(None).await.unwrap().pid);
    }
    (branch, pids)
}

#[tokio::test]
async fn the_restarts_of_a_storm_stand_in_one_record_with_their_reasons() {
    let world = Setup::new().boot().await;
    let (branch, pids) = waiting(&world, 3000).await;
    assert!(pids.iter().all(|pid| world.kernel.kill(*pid)));
    let again = |seat: &str| seat.starts_with("node/services/b/");
    let running =
        || world.kernel.processes().iter().filter(|one| again(one.seat.as_str()) && one.restarts == 1).count();
    until(|| running() == 3000).await;
    let record = world.record().await;
    let lists: Vec<_> = record
        .iter()
        .filter_map(|one| match &one.entry.fact {
            Fact::Restarts { restarts } => Some((&one.entry.subject, restarts)),
            _ => None,
        })
        .collect();
    let (mut left, mut started): (Vec<_>, Vec<_>) =
        lists.iter().flat_map(|(_, list)| list.iter()).map(|one| (one.exited.unwrap(), one.started.unwrap())).unzip();
    left.sort();
    started.sort();
    let now: Vec<Pid> =
        world.kernel.processes().iter().filter(|one| again(one.seat.as_str())).map(|one| one.pid).collect();
    assert!(left == pids && started == now, "every restart stands on the record once");
    assert!(lists.len() <= 3000 / 200, "{} records", lists.len());
    assert!(lists.iter().flat_map(|(_, list)| list.iter()).all(|one| one.reason == "killed"));
    assert!(lists.iter().all(|(subject, _)| subject.seat.as_ref() == Some(branch.seat())));
    assert!(!record.iter().any(|one| matches!(&one.entry.fact, Fact::Exit { .. })), "and nowhere else");
}

#[tokio::test]
async fn a_few_restarts_stand_each_by_itself() {
    let world = Setup::new().boot().await;
    let (_branch, pids) = waiting(&world, 3).await;
    assert!(world.kernel.kill(pids[1]));
    until(|| world.kernel.processes().iter().any(|one| one.restarts == 1)).await;
    let facts: Vec<Fact> = world.record().await.into_iter().map(|one| one.entry.fact).collect();
    assert_eq!(exits(&facts), ["killed"]);
    assert!(facts.iter().any(|fact| matches!(fact, Fact::Spawn { incarnation: 2, .. })));
}

#[tokio::test]
async fn a_tree_of_ones_own_is_changed_while_it_runs() {
    let world = Setup::new().boot().await;
    let log: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let child = |name: &'static str| Child::worker(name, Arc::new(Stops(name, log.clone(), true)));
    let flags = Flags::one_for_one(Intensity::AGENT);
    let branch = world.kernel.start_branch(Child::supervisor("b", flags, vec![child("x"), child("y")])).await.unwrap();
    let z = branch.start(child("z")).await.unwrap();
    assert_eq!(z.seat.as_str(), "node/services/b/z");
    branch.terminate(Target::Name(Name::from("y"))).await.unwrap();
    world.kernel.stop().await;
    assert_eq!(*log.lock().unwrap(), ["y", "z", "x"]);
}

#[tokio::test]
async fn services_come_back_with_the_supervisor_that_was_killed_above_them() {
    let world = Setup::new().boot().await;
    let log = Arc::new(Mutex::new(Vec::new()));
    for name in ["a", "b"] {
        world.kernel.start_service(name, Arc::new(Stops(name, log.clone(), true))).await.unwrap();
    }
    world.kernel.start_task("passing", Arc::new(Stops("passing", log.clone(), true))).await.unwrap();
    let find =
        |name: &str| world.kernel.processes().into_iter().find(|info| info.seat.as_str() == name).map(|info| info.pid);
    let [services, a, b] = ["node/services", "node/services/a", "node/services/b"].map(|name| find(name).unwrap());
    assert!(world.kernel.kill(services));
    until(|| find("node/services/b").is_some_and(|pid| pid > b)).await;
    assert!(find("node/services/a").is_some_and(|pid| pid > a));
    assert_eq!(find("node/services/passing"), None, "a task is gone with it");
    world.kernel.start_task("next", Arc::new(Stops("next", log.clone(), true))).await.unwrap();
    world.kernel.stop().await;
    let mut stopped = log.lock().unwrap().clone();
    stopped.sort_unstable();
    assert_eq!(stopped, ["a", "b", "next"]);
}

#[tokio::test]
async fn a_conversation_that_waits_for_its_answer_delays_no_other() {
    // It would wait for as long as it is given, which is more than any test takes.
    let model = Does::new(|permit, _| {
        let ephor_base::Task::Model(task) = permit.task() else { panic!("not a model task") };
        let waits = task.ordinal == 1;
        async move {
            if waits {
                std::future::pending::<()>().await;
            }
            crate::world::answered(text("done"))
        }
    });
    let world = Setup::new().model(model).boot().await;
    let mut slow = world.puppet(PLENTY).await;
    let (waiting, _end) = slow.in_turn("go").await;
    asked(&waiting).await;
    let mut call = waiting.call(crate::world::ask(vec![ephor_base::SpanId(1)])).unwrap();
    crate::world::running(&mut call).await;
    for _ in 0..3 {
        let mut quick = world.puppet(PLENTY).await;
        let (process, _end) = quick.in_turn("go").await;
        asked(&process).await;
        assert_eq!(code(&done(&process, reply(None)).await), "done");
    }
    assert_eq!(world.kernel.flights().len(), 1, "it waits still");
    call.canceller().cancel();
    assert_eq!(code(&call.ended().await), "cancelled");
}
