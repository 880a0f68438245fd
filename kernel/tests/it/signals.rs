//! Suspend, resume, stop and kill; budgets that are spent and raised.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ephor_base::{Action, Budget, EndReason, Pid, Resource, Seat, Seq, SpanId};
use ephor_chain::Stored;
use ephor_kernel::{
    Act, Acted, AgentSpec, CallState, Incoming, NotDone, NotStarted, Process, Seen, Target, TurnState, operator_id,
};
use ephor_record::{Cause, Fact, HoldKind, Signal, Undelivered};

use crate::world::{
    Does, End, PLENTY, Setup, World, ask, asked, chosen, code, direct, done, is_settled, model, reader, reply, running,
    said, text, until, uses,
};

fn act(world: &World, signal: Signal, target: Target) -> Act {
    let operator = operator_id(&world.operator.verifying_key());
    Act { operator, signal, target, tree: false, note: "because".into() }
}

/// The same, to be waited for elsewhere.
fn signalled(
    world: &World,
    signal: Signal,
    target: Target,
) -> impl Future<Output = Result<Acted, NotDone>> + Send + 'static {
    let (kernel, act) = (world.kernel.clone(), act(world, signal, target));
    async move { kernel.signal(act).await }
}

fn pid(process: &Process) -> Target {
    Target::Pid(process.pid())
}

/// The entries of signals, and of what the seat of `session` is about to do.
async fn places(world: &World, kind: &str) -> Vec<Seq> {
    let record = world.record().await;
    record.iter().filter(|one| one.entry.fact.kind() == kind).map(|one| one.entry.seq).collect()
}

fn signals(record: &[Stored]) -> Vec<(Signal, String, Cause)> {
    let told = |one: &Stored| match &one.entry.fact {
        Fact::Signal { signal, cause, .. } => {
            Some((*signal, one.entry.subject.seat.clone().unwrap().to_string(), *cause))
        }
        _ => None,
    };
    record.iter().filter_map(told).collect()
}

#[tokio::test]
async fn a_suspended_process_makes_no_call_and_takes_no_message_until_it_is_resumed() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    asked(&process).await;
    let suspended = world.kernel.signal(act(&world, Signal::Suspend, pid(&process))).await.unwrap();
    assert_eq!(world.kernel.held(process.seat()), Some(HoldKind::Suspended));
    let mut call = process.call(ask(vec![SpanId(1)])).unwrap();
    let held = tokio::time::timeout(Duration::from_millis(100), call.next()).await;
    assert!(held.is_err(), "{held:?}");
    let mut answer = process.call(reply(None)).unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(50), answer.next()).await.is_err(), "nor a reply");
    let resumed = world.kernel.signal(act(&world, Signal::Resume, pid(&process))).await.unwrap();
    assert!(call.ended().await.is_ok());
    assert!(answer.ended().await.is_ok());
    let (from, to) = (suspended.recorded.unwrap(), resumed.recorded.unwrap());
    for kind in ["verdict", "intent"] {
        let places = places(&world, kind).await;
        assert!(!places.iter().any(|place| *place > from && *place < to), "{kind}: {places:?} in {from}..{to}");
    }

    world.kernel.signal(act(&world, Signal::Suspend, pid(&process))).await.unwrap();
    puppet.say("again").await;
    let taken = tokio::time::timeout(Duration::from_millis(50), process.receive()).await;
    assert!(taken.is_err(), "{taken:?}");
    world.kernel.signal(act(&world, Signal::Resume, pid(&process))).await.unwrap();
    assert!(matches!(process.receive().await, Incoming::Message(_)));
}

#[tokio::test]
async fn a_suspension_on_the_record_has_no_intent_behind_it_however_calls_race() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let caller = async {
        for _ in 0..60 {
            let _: Result<_, _> = done(&process, ask(vec![SpanId(1)])).await;
        }
    };
    let operator = async {
        for _ in 0..10 {
            world.kernel.signal(act(&world, Signal::Suspend, pid(&process))).await.unwrap();
            tokio::time::sleep(Duration::from_millis(3)).await;
            world.kernel.signal(act(&world, Signal::Resume, pid(&process))).await.unwrap();
        }
    };
    tokio::join!(caller, operator);
    let mut suspended = false;
    for one in world.record().await {
        match one.entry.fact {
            Fact::Signal { signal, .. } => suspended = signal == Signal::Suspend,
            Fact::Intent { .. } => assert!(!suspended, "entry {}", one.entry.seq),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_suspended_tree_holds_what_is_below_and_nothing_beside_it() {
    let world = Setup::new().boot().await;
    let (mut one, mut other) = (world.puppet(PLENTY).await, world.puppet(PLENTY).await);
    let (process, _end) = one.in_turn("go").await;
    let (free, _other_end) = other.in_turn("go").await;
    let group = Seat::root("node").child("agents").child(process.seat().as_str().split('/').nth(2).unwrap());
    let suspend = Act { tree: true, ..act(&world, Signal::Suspend, Target::Seat(group.clone())) };
    world.kernel.signal(suspend).await.unwrap();
    assert!(world.kernel.held(process.seat()).is_some() && world.kernel.held(free.seat()).is_none());
    asked(&free).await;
    // Resuming the agent alone does not lift what holds the whole group.
    let narrow = world.kernel.signal(act(&world, Signal::Resume, pid(&process))).await;
    assert!(narrow.is_ok() && world.kernel.held(process.seat()).is_some());
    world.kernel.signal(act(&world, Signal::Resume, Target::Seat(group))).await.unwrap();
    asked(&process).await;
}

#[tokio::test]
async fn a_stop_cancels_what_runs_and_what_was_not_answered_is_dead() {
    let hangs = Does::new(|_, _| std::future::pending());
    let world = Setup::new().model(hangs).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let mut seen = world.kernel.watch(puppet.session, false);
    let (process, end) = puppet.in_turn("go").await;
    puppet.say("and then").await;
    let mut call = process.call(ask(vec![SpanId(1)])).unwrap();
    running(&mut call).await;
    assert_eq!(world.kernel.flights().len(), 1);
    let seat = process.seat().clone();
    let stop = tokio::spawn({
        let (kernel, act) = (world.kernel.clone(), act(&world, Signal::Stop, Target::Seat(seat.clone())));
        async move { kernel.signal(act).await.unwrap() }
    });
    assert_eq!(code(&call.ended().await), "cancelled");
    assert!(matches!(process.receive().await, Incoming::Stop) || process.is_in_turn());
    // It neither replies nor has a reason to stay.
    drop(end);
    let acted = stop.await.unwrap();
    assert_eq!(acted.sessions, [puppet.session]);
    assert_eq!(world.agent_of(puppet.session), None, "it was not started again");
    let letters = world.kernel.dead_letters();
    assert_eq!(letters.iter().map(|letter| letter.why).collect::<Vec<_>>(), [Undelivered::Stopped; 2]);
    let mut held = false;
    while let Some(seen) = seen.recv().await {
        held |= matches!(seen, Seen::Held { by: Some(HoldKind::Stopped) });
    }
    assert!(held, "whoever watched was told");
    assert!(world.kernel.holds().is_empty(), "the seat is gone, and nothing holds it");
    assert!(is_settled(&world.record().await));
}

#[tokio::test]
async fn a_stop_cancels_a_call_of_an_agent_that_does_not_listen() {
    let hangs = Does::new(|_, _| std::future::pending());
    let world = Setup::new().tool(reader("t.read"), hangs).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, end) = puppet.in_turn("go").await;
    let mut call = process.call(direct("t.read", "{}")).unwrap();
    running(&mut call).await;
    // It takes nothing out of its ports until its call has ended.
    let stop = tokio::spawn(signalled(&world, Signal::Stop, Target::All));
    assert_eq!(code(&call.ended().await), "cancelled");
    assert!(world.kernel.processes().iter().any(|one| one.pid == process.pid()), "and not because it was killed");
    assert_eq!(code(&done(&process, reply(None)).await), "done");
    drop(end);
    assert!(stop.await.unwrap().unwrap().recorded.is_ok());
    assert!(is_settled(&world.record().await));
}

#[tokio::test]
async fn what_is_stopped_as_a_whole_stays_stopped_after_a_crash_until_it_is_resumed() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (_process, end) = puppet.born().await;
    drop(end);
    let acted = world.kernel.signal(act(&world, Signal::Stop, Target::All)).await.unwrap();
    assert!(acted.recorded.is_ok());
    assert!(matches!(open(&world).await, Err(NotStarted::Stopped(_))));
    let world = Setup::new().boot_in(world.crashed(), 1 << 32).await;
    assert!(matches!(open(&world).await, Err(NotStarted::Stopped(_))));
    world.kernel.signal(act(&world, Signal::Resume, Target::All)).await.unwrap();
    assert!(open(&world).await.is_ok());
    let world = Setup::new().boot_in(world.crashed(), 2 << 32).await;
    assert!(open(&world).await.is_ok());
}

async fn open(world: &World) -> Result<ephor_base::SessionId, NotStarted> {
    let body = Arc::new(Idle);
    world.kernel.open_session(AgentSpec { session: world.spec(), budget: PLENTY, body }).await
}

/// An agent that waits for its stop.
struct Idle;

impl ephor_kernel::Body for Idle {
    fn run(&self, process: Process) -> ephor_kernel::Life {
        ephor_kernel::Life::new(async move {
            process.stopping().await;
            Ok(())
        })
    }
}

#[tokio::test]
async fn a_stop_takes_effect_also_where_the_chain_cannot_be_written_and_says_so() {
    let hangs = Does::new(|_, _| std::future::pending());
    let setup = Setup::new().model(hangs);
    let disk = setup.disk.clone();
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, end) = puppet.in_turn("go").await;
    let mut call = process.call(ask(vec![SpanId(1)])).unwrap();
    running(&mut call).await;
    disk.break_now();
    let suspended = world.kernel.signal(act(&world, Signal::Suspend, pid(&process))).await;
    assert!(matches!(suspended, Err(NotDone::Chain(_))), "{suspended:?}");
    assert_eq!(world.kernel.held(process.seat()), None, "what is not on the record did not happen");
    drop(end);
    let acted = world.kernel.signal(act(&world, Signal::Stop, Target::All)).await.unwrap();
    assert!(acted.recorded.is_err());
    assert!(call.ended().await.is_err());
    assert!(matches!(open(&world).await, Err(NotStarted::Stopped(_) | NotStarted::Chain(_))));
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_disk_that_stalls() {
    let cancelled = Arc::new(AtomicBool::new(false));
    let told = cancelled.clone();
    let world = Setup::new().model(Does::new(move |_, context| {
        let told = told.clone();
        async move {
            context.cancelled().await;
            told.store(true, Ordering::SeqCst);
            std::future::pending().await
        }
    }));
    let world = world.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, end) = puppet.in_turn("go").await;
    let mut call = process.call(ask(vec![SpanId(1)])).unwrap();
    running(&mut call).await;
    world.disk.hold();
    let stop = tokio::spawn(signalled(&world, Signal::Stop, Target::All));
    until(|| cancelled.load(Ordering::SeqCst)).await;
    assert_eq!(world.kernel.held(process.seat()), Some(HoldKind::Stopped));
    assert!(!stop.is_finished(), "it says whether it is on the record");
    world.disk.release();
    drop(end);
    assert_eq!(code(&call.ended().await), "cancelled");
    assert!(stop.await.unwrap().unwrap().recorded.is_ok());
}

#[tokio::test]
async fn a_resume_that_waits_for_the_disk_does_not_undo_a_stop_behind_it() {
    let world = Setup::new().boot().await;
    world.kernel.signal(act(&world, Signal::Stop, Target::All)).await.unwrap();
    world.disk.hold();
    let resume = tokio::spawn(signalled(&world, Signal::Resume, Target::All));
    // It has the turn before the stop asks for it.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let stop = tokio::spawn(signalled(&world, Signal::Stop, Target::All));
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.disk.release();
    let (resumed, stopped) = (resume.await.unwrap().unwrap(), stop.await.unwrap().unwrap());
    assert!(resumed.recorded.unwrap() < stopped.recorded.unwrap());
    assert!(matches!(open(&world).await, Err(NotStarted::Stopped(_))), "the record says stopped");
}

#[tokio::test]
async fn whoever_names_the_supervisor_of_a_session_means_its_agent() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let agents = Seat::root("node").child("agents");
    let group = agents.child(process.seat().as_str().split('/').nth(2).unwrap());
    for (signal, held) in [(Signal::Suspend, Some(HoldKind::Suspended)), (Signal::Resume, None)] {
        let acted = world.kernel.signal(act(&world, signal, Target::Seat(group.clone()))).await.unwrap();
        assert_eq!((acted.sessions, world.kernel.held(process.seat())), (vec![puppet.session], held));
    }
    for signal in [Signal::Suspend, Signal::Stop] {
        let all = world.kernel.signal(act(&world, signal, Target::Seat(agents.clone()))).await;
        assert_eq!(all.map(|_| ()), Err(NotDone::Supervises(agents.clone())));
    }
    assert_eq!(world.kernel.held(process.seat()), None);
}

#[tokio::test]
async fn a_killed_agent_is_started_again_by_its_supervisor() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.born().await;
    let killed = world.kernel.signal(act(&world, Signal::Kill, pid(&process))).await.unwrap();
    assert!(killed.recorded.is_ok());
    let (again, _end) = puppet.born().await;
    assert!(again.pid() > process.pid() && again.seat() == process.seat());
    assert!(world.kernel.signal(Act { tree: true, ..act(&world, Signal::Kill, Target::All) }).await.is_ok());
    let (third, _end) = puppet.born().await;
    assert!(third.pid() > again.pid());
}

#[tokio::test]
async fn acts_say_who_and_why_and_are_refused_for_nobody_and_for_the_node_itself() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.born().await;
    world.kernel.signal(act(&world, Signal::Suspend, pid(&process))).await.unwrap();
    let record = world.record().await;
    assert_eq!(signals(&record), [(Signal::Suspend, process.seat().to_string(), Cause::Operator)]);
    let said = record.iter().find(|one| one.entry.fact.kind() == "signal").unwrap();
    assert_eq!(said.entry.subject.operator, Some(operator_id(&world.operator.verifying_key())));
    assert!(matches!(&said.entry.fact, Fact::Signal { note, .. } if note == "because"));
    let services = Seat::root("node").child("services");
    let nobody = Seat::root("node").child("agents").child("nobody");
    for (target, signal) in [
        (Target::Pid(Pid(9999)), Signal::Kill),
        (Target::Seat(nobody), Signal::Stop),
        (Target::Seat(services.clone()), Signal::Stop),
        (Target::Seat(services), Signal::Suspend),
        (Target::Seat(Seat::root("node")), Signal::Kill),
    ] {
        let refused = world.kernel.signal(act(&world, signal, target.clone())).await;
        assert!(matches!(refused, Err(NotDone::NoProcess(_) | NotDone::NoSeat(_) | NotDone::Node(_))), "{target:?}");
    }
    let long = Act { note: "x".repeat(2000), ..act(&world, Signal::Kill, Target::All) };
    assert_eq!(world.kernel.signal(long).await, Err(NotDone::LongNote));
    assert_eq!(signals(&world.record().await).len(), 1, "what was refused is not on the record");
}

#[tokio::test]
async fn what_a_model_writes_names_no_authority() {
    let operator = operator_id(&ed25519_dalek::SigningKey::from_bytes(&[7; 32]).verifying_key());
    let words = format!("{{\"operator\":\"{operator}\",\"seat\":\"node\",\"tree\":true,\"tokens\":99999999}}");
    let tools = ["signal", "stop", "resume", "budget", "kernel.signal", "ephor"].map(|name| (name, words.as_str()));
    let world = Setup::new().model(model(vec![uses(&tools), text("x")])).tool(reader("fs.read"), Does::saying("x"));
    let world = world.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn(&words).await;
    let by = asked(&process).await;
    for index in 0..6 {
        assert_eq!(code(&done(&process, chosen(by, index)).await), "Denied");
    }
    assert!(world.kernel.holds().is_empty());
    let facts = world.facts(puppet.session).await;
    assert!(!facts.iter().any(|fact| matches!(fact, Fact::Signal { .. } | Fact::Limit { .. })));
    assert_eq!(world.account(&process).limit.tokens, PLENTY.tokens);
}

#[tokio::test]
async fn a_limit_that_is_raised_before_the_turn_ends_leaves_the_seat_free_if_it_is_enough() {
    for (tokens, held) in [(200, None), (105, Some(HoldKind::Spent))] {
        let cost = Budget { tokens: 60, ..Budget::ZERO };
        let used = Budget { tokens: 50, ..Budget::ZERO };
        let costly = Does::costing(cost, move |_, _| async move {
            ephor_kernel::DriverResult::done(ephor_base::Product::Model(text("a")), used)
        });
        let world = Setup::new().model(costly).boot().await;
        let mut puppet = world.puppet(Budget { tokens: 100, wall_ms: 10_000_000, ..Budget::ZERO }).await;
        let (process, _end) = puppet.in_turn("go").await;
        asked(&process).await;
        assert_eq!(code(&done(&process, ask(vec![SpanId(1)])).await), "BudgetSpent");
        let limit = Budget { tokens, ..world.account(&process).limit };
        world.kernel.limit(world.who(), process.seat(), move |_| limit, "go on".into()).await.unwrap();
        let spent = EndReason::BudgetSpent(Resource::Tokens);
        let spent = Action::Reply(ephor_base::ReplyAction { answer: None, end: spent });
        assert_eq!(code(&done(&process, spent).await), "done");
        assert_eq!(world.kernel.held(process.seat()), held, "{tokens}");
        let record = world.record().await;
        assert_eq!(signals(&record).iter().any(|signal| signal.2 == Cause::Budget), held.is_some());
        if held.is_none() {
            puppet.say("more").await;
            assert!(matches!(process.receive().await, Incoming::Message(_)));
            assert_eq!(code(&done(&process, ask(vec![SpanId(1)])).await), "done");
        }
    }
}

/// What is waited for, and not for ever.
async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(15), what).await.unwrap()
}

#[tokio::test]
async fn a_suspension_that_nobody_waits_for_any_more_is_whole_and_can_be_resumed() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    world.log.flush().await.unwrap();
    world.disk.hold();
    let suspending = tokio::spawn(signalled(&world, Signal::Suspend, pid(&process)));
    in_time(until(|| world.kernel.held(process.seat()) == Some(HoldKind::Suspended))).await;
    suspending.abort();
    assert!(suspending.await.is_err(), "whoever wanted it is gone before it is on the disk");
    world.disk.release();
    in_time(until(|| !world.kernel.holds().is_empty())).await;
    assert_eq!(signals(&world.record().await).iter().map(|signal| signal.0).collect::<Vec<_>>(), [Signal::Suspend]);
    in_time(world.kernel.signal(act(&world, Signal::Resume, pid(&process)))).await.unwrap();
    assert_eq!(world.kernel.held(process.seat()), None, "nothing is left of what was begun");
    assert_eq!(code(&done(&process, ask(vec![SpanId(1)])).await), "done");
}

#[tokio::test]
async fn a_client_that_takes_nothing_holds_up_neither_an_act_nor_another_client() {
    let world = Setup::new().boot().await;
    let (mut one, other) = (world.puppet(PLENTY).await, world.puppet(PLENTY).await);
    let _stuck = world.kernel.watch(one.session, false);
    let mut seen = world.kernel.watch(other.session, false);
    let (process, _end) = one.in_turn("go").await;
    (0..10_000).for_each(|_| process.enter(TurnState::Idle));
    in_time(world.kernel.signal(act(&world, Signal::Suspend, Target::All))).await.unwrap();
    assert_eq!(in_time(seen.recv()).await, Some(Seen::Held { by: Some(HoldKind::Suspended) }));
    in_time(world.kernel.signal(act(&world, Signal::Resume, Target::All))).await.unwrap();
    assert_eq!(in_time(seen.recv()).await, Some(Seen::Held { by: None }));
}

#[tokio::test]
async fn a_spent_budget_suspends_the_seat_after_its_reply_until_an_operator_raises_it() {
    let cost = Budget { tokens: 60, ..Budget::ZERO };
    let costly = Does::costing(cost, |_, _| async {
        ephor_kernel::DriverResult::done(ephor_base::Product::Model(text("a")), Budget { tokens: 50, ..Budget::ZERO })
    });
    let world = Setup::new().model(costly).boot().await;
    let mut puppet = world.puppet(Budget { tokens: 100, wall_ms: 10_000_000, ..Budget::ZERO }).await;
    let (process, end) = puppet.in_turn("go").await;
    asked(&process).await;
    assert_eq!(code(&done(&process, ask(vec![SpanId(1)])).await), "BudgetSpent");
    assert_eq!(world.kernel.held(process.seat()), None, "it still has to say so");
    let spent = Action::Reply(ephor_base::ReplyAction { answer: None, end: EndReason::BudgetSpent(Resource::Tokens) });
    assert_eq!(code(&done(&process, spent).await), "done");
    until(|| world.kernel.held(process.seat()) == Some(HoldKind::Spent)).await;
    puppet.say("more").await;

    // Crashing does not help, and neither does an operator who only resumes.
    end.send(End::Panic).unwrap();
    let (process, _end) = puppet.born().await;
    assert_eq!(world.account(&process).used.tokens, 50);
    world.kernel.signal(act(&world, Signal::Resume, pid(&process))).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(50), process.receive()).await.is_err());

    let operator = operator_id(&world.operator.verifying_key());
    let limit = Budget { tokens: 200, ..world.account(&process).limit };
    let (account, _) = world.kernel.limit(operator, process.seat(), move |_| limit, "go on".into()).await.unwrap();
    assert_eq!((account.limit.tokens, account.used.tokens), (200, 50));
    assert!(matches!(process.receive().await, Incoming::Message(_)));
    asked(&process).await;
    let facts = world.record().await;
    assert_eq!(signals(&facts).first().map(|signal| signal.2), Some(Cause::Budget));
    let nobody = world.kernel.limit(operator, &Seat::root("node").child("x"), move |_| limit, String::new()).await;
    assert!(matches!(nobody, Err(NotDone::NoBudget(_))));
}

#[tokio::test]
async fn calls_in_flight_and_the_last_that_landed_are_shown_with_their_receipts() {
    let world = Setup::new().model(model(vec![uses(&[("fs.read", "{}")]), text("x")])).tool(
        reader("fs.read"),
        Does::new(|_, context| async move {
            context.cancelled().await;
            said("late")
        }),
    );
    let world = world.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let by = asked(&process).await;
    let mut call = process.call(chosen(by, 0)).unwrap();
    running(&mut call).await;
    let flights = world.kernel.flights();
    assert_eq!((flights.len(), flights[0].target.as_str(), flights[0].pid), (1, "fs.read", process.pid()));
    call.canceller().cancel();
    while !matches!(call.next().await, Some(CallState::Ended(_)) | None) {}
    until(|| world.kernel.flights().is_empty()).await;
    let landed = world.kernel.landed(process.seat());
    assert_eq!(landed.iter().map(|one| one.target.as_str()).collect::<Vec<_>>(), ["script:test", "fs.read"]);
    let record = world.record().await;
    for one in landed {
        let seq = usize::try_from(one.receipt.seq.0).unwrap();
        assert!(matches!(&record[seq].entry.fact, Fact::Outcome { end, .. } if *end == one.end));
    }
}
