//! However a call ends, it leaves an outcome, and its budget is settled.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ephor_base::{Arguments, Budget, EndReason, Failure, FailureKind, Outcome, Part, PartKind};
use ephor_kernel::{CallContext, DriverResult, Incoming, MAILBOX_CAPACITY, NotAccepted, Preview, PreviewItem, Refusal};
use ephor_record::Fact;

use crate::world::{
    CANCELLED, Does, End, PLENTY, Setup, World, asked, chosen, code, direct, done, is_settled, model, name, reader,
    reply, running, said, text, until, uses,
};

fn forever() -> Arc<Does> {
    Does::new(|_, _| std::future::pending())
}

async fn settled(world: &World, seat: &ephor_base::Seat) {
    until(|| world.kernel.account(seat).unwrap().reserved == Budget::ZERO).await;
    // The outcome follows at once.
    for _ in 0..500 {
        if is_settled(&world.record().await) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("an intent has no outcome");
}

#[tokio::test]
async fn a_driver_that_panics_is_a_failed_call_and_harms_nobody() {
    let panics = Does::costing(Budget { tokens: 5, ..Budget::ZERO }, |_, _| async { panic!("boom") });
    struct Mine;
    impl Drop for Mine {
        fn drop(&mut self) {
            panic!("also at the end");
        }
    }
    let drops = Does::new(|_, _| async {
        let _mine = Mine;
        std::future::pending().await
    });
    let short = ephor_base::Registration {
        limits: ephor_base::Limits { deadline_ms: 20, ..reader("t.x").limits },
        ..reader("t.drops")
    };
    let world = Setup::new().tool(reader("t.panics"), panics).tool(short, drops).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&process, direct("t.panics", "{}")).await), "crashed");
    assert_eq!(world.account(&process).used.tokens, 5, "a crashed call costs what was reserved");
    assert_eq!(code(&done(&process, direct("t.drops", "{}")).await), "crashed");
    settled(&world, process.seat()).await;
}

#[tokio::test]
async fn a_driver_that_overruns_or_ignores_its_cancellation_is_ended() {
    let short = ephor_base::Registration {
        limits: ephor_base::Limits { deadline_ms: 20, ..reader("t.x").limits },
        ..reader("t.over")
    };
    let world = Setup::new().tool(short, forever()).tool(reader("t.deaf"), forever()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&process, direct("t.over", "{}")).await), "deadline");
    let mut call = process.call(direct("t.deaf", "{}")).unwrap();
    running(&mut call).await;
    call.canceller().cancel();
    assert_eq!(call.ended().await.unwrap().outcome, CANCELLED);
    settled(&world, process.seat()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_driver_that_does_not_yield_is_cut_off_at_its_deadline_and_its_thread_counts_as_lost() {
    let over = Arc::new(AtomicBool::new(false));
    let spins = {
        let over = over.clone();
        Does::new(move |_, context| {
            let over = over.clone();
            async move {
                while !over.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
                // Back at last, it acts as if nothing had been.
                let _: Result<Outcome, Refusal> = context.nested(name("t.read"), Arguments::default()).await;
                said("never")
            }
        })
    };
    let read = Does::saying("x");
    let short = ephor_base::Registration {
        limits: ephor_base::Limits { deadline_ms: 20, ..reader("t.x").limits },
        nested: vec![ephor_base::Capability::FsRead],
        ..reader("t.spins")
    };
    let world = Setup::new().tool(short, spins).tool(reader("t.read"), read.clone()).boot().await;
    let (mut puppet, mut other) = (world.puppet(PLENTY).await, world.puppet(PLENTY).await);
    let (process, _end) = puppet.in_turn("go").await;
    let (of_other, _of_other) = other.in_turn("go").await;
    assert_eq!(code(&done(&process, direct("t.spins", "{}")).await), "deadline");
    settled(&world, process.seat()).await;
    // It goes on, and so does everybody else.
    assert_eq!(code(&done(&process, direct("t.read", "{}")).await), "done");
    assert_eq!(code(&done(&of_other, direct("t.read", "{}")).await), "done");
    let mut lost = world.kernel.lost_threads();
    lost.wait_for(|lost| *lost == 1).await.unwrap();
    over.store(true, Ordering::SeqCst);
    lost.wait_for(|lost| *lost == 0).await.unwrap();
    assert_eq!(read.runs(), 2, "what comes back too late does nothing");
}

#[tokio::test]
async fn a_driver_that_keeps_its_context_can_do_nothing_with_it_afterwards() {
    let kept: Arc<Mutex<Vec<(CallContext, Preview)>>> = Arc::default();
    let hoard = kept.clone();
    let keeps = Does::new(move |_, context| {
        let preview = context.preview().clone();
        hoard.lock().unwrap().push((context, preview));
        async { said("done") }
    });
    let inner = Does::saying("x");
    let nests = ephor_base::Registration { nested: vec![ephor_base::Capability::FsRead], ..reader("t.keeps") };
    let mut setup = Setup::new().tool(nests, keeps).tool(reader("t.inner"), inner.clone());
    setup.secrets.insert("key".into(), "hunter2".into());
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    // A preview that is still open does not hold the call.
    assert_eq!(code(&done(&process, direct("t.keeps", "{}")).await), "done");
    let (context, preview) = kept.lock().unwrap().pop().unwrap();
    preview.show(PreviewItem::Progress("too late".into())).await;
    assert!(matches!(context.nested(name("t.inner"), Arguments::default()).await, Err(Refusal::Fenced)));
    assert!(context.lease("key").await.is_err());
    assert_eq!(inner.runs(), 0);
    assert!(!world.facts(puppet.session).await.iter().any(|fact| matches!(fact, Fact::Lease { .. })));
}

#[tokio::test]
async fn a_nested_call_whose_outer_call_is_cut_off_has_an_outcome_before_it() {
    let outer = Does::new(|_, context| async move {
        let _: Result<Outcome, Refusal> = context.nested(name("t.inner"), Arguments::default()).await;
        said("never")
    });
    let nests = ephor_base::Registration {
        nested: vec![ephor_base::Capability::FsRead],
        limits: ephor_base::Limits { deadline_ms: 60, ..reader("t.x").limits },
        ..reader("t.outer")
    };
    let world = Setup::new().tool(nests, outer).tool(reader("t.inner"), forever()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&process, direct("t.outer", "{}")).await), "deadline");
    settled(&world, process.seat()).await;
    let facts = world.facts(puppet.session).await;
    let ends: Vec<_> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Outcome { end, .. } => Some(end.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ends, ["cancelled", "deadline"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_is_killed_in_mid_stream_leaves_an_outcome_and_a_settled_budget() {
    let stream = Does::new(|_, context| async move {
        loop {
            context.preview().show(PreviewItem::Text("more".into())).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let world = Setup::new().model(stream).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let mut call = process.call(crate::world::ask(vec![ephor_base::SpanId(1)])).unwrap();
    while !matches!(call.next().await, Some(ephor_kernel::CallState::Streaming)) {}
    assert!(world.kernel.kill(process.pid()));
    // The handle of the call is still held: it is the death of the caller that ends it.
    settled(&world, process.seat()).await;
    assert_eq!(call.ended().await.unwrap().outcome, CANCELLED);
}

#[tokio::test]
async fn a_fenced_incarnation_can_do_nothing() {
    let tool = Does::saying("x");
    let world = Setup::new().tool(reader("t.read"), tool.clone()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (old, end) = puppet.in_turn("go").await;
    end.send(End::Panic).unwrap();
    let (new, _end) = puppet.born().await;
    assert!(new.pid() > old.pid() && new.seat() == old.seat() && new.is_in_turn());
    for action in [direct("t.read", "{}"), crate::world::ask(vec![ephor_base::SpanId(1)]), reply(None)] {
        assert_eq!(code(&done(&old, action).await), "Fenced");
    }
    assert_eq!(tool.runs(), 0);
    // Nor may it take the messages of the one that followed it, or look at the session.
    puppet.say("for the new one").await;
    assert_eq!(old.receive().await, Incoming::Stop);
    assert!(old.transcript().is_empty());
    assert_eq!(code(&done(&new, reply(None)).await), "done");
    assert!(matches!(new.receive().await, Incoming::Message(_)));
}

#[tokio::test]
async fn a_session_that_is_closed_over_a_running_call_leaves_its_outcome() {
    let stubborn = Does::new(|_, context| async move {
        context.cancelled().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        said("late")
    });
    let world = Setup::new().tool(reader("t.slow"), stubborn).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, end) = puppet.in_turn("go").await;
    let mut call = process.call(direct("t.slow", "{}")).unwrap();
    running(&mut call).await;
    end.send(End::Normal).unwrap();
    until(|| world.agent_of(puppet.session).is_none()).await;
    world.kernel.close_session(puppet.session).await;
    call.ended().await.unwrap();
    assert!(is_settled(&world.record().await));
}

#[tokio::test]
async fn nothing_leaks_over_a_thousand_ends() {
    let dice = Does::costing(Budget { tokens: 7, micro_usd: 3, ..Budget::ZERO }, |permit, context| async move {
        let used = Budget { tokens: 2, micro_usd: 1, ..Budget::ZERO };
        match permit.call().0 % 5 {
            0 => DriverResult { used, ..said("well") },
            1 => DriverResult::failed(Failure::new(FailureKind::Trap, "trap"), used),
            2 => panic!("panic"),
            3 => {
                context.cancelled().await;
                DriverResult { used, ..said("late") }
            }
            _ => std::future::pending().await,
        }
    });
    let short = ephor_base::Registration {
        limits: ephor_base::Limits { deadline_ms: 5, ..reader("t.x").limits },
        ..reader("t.dice")
    };
    let world = Setup::new().tool(short, dice.clone()).boot().await;
    let mut ran = 0;
    for _ in 0..50 {
        let mut puppet = world.puppet(PLENTY).await;
        let (process, _end) = puppet.in_turn("go").await;
        let calls: Vec<_> = (0..20).map(|_| process.call(direct("t.dice", "{}")).unwrap()).collect();
        for (n, call) in calls.into_iter().enumerate() {
            match n % 4 {
                0 => call.canceller().cancel(),
                1 => drop(call),
                _ => ran += usize::from(call.ended().await.is_ok()),
            }
        }
        if world.clock_is_odd() {
            assert!(world.kernel.kill(process.pid()));
        }
        settled(&world, process.seat()).await;
    }
    assert!(ran > 0 && dice.runs() > 0);
    let watched = world.record().await;
    let used: u64 = watched
        .iter()
        .filter_map(|one| match one.entry.fact {
            Fact::Outcome { used, .. } => Some(used.tokens),
            _ => None,
        })
        .sum();
    let booked: u64 =
        world.kernel.processes().iter().filter(|info| info.seat.name() == "loop").map(|info| info.used.tokens).sum();
    assert!(used >= booked && is_settled(&watched));
}

trait Odd {
    fn clock_is_odd(&self) -> bool;
}
impl Odd for World {
    fn clock_is_odd(&self) -> bool {
        use ephor_base::Clock;
        self.clock.now().0 % 2 == 1
    }
}

#[tokio::test]
async fn a_turn_can_be_cancelled_at_every_stage_and_the_reply_is_still_sent() {
    // Before any call, while the model answers, between, while a tool runs, and after the last answer.
    for stage in 0..5 {
        let model = if stage == 1 { forever() } else { model(vec![uses(&[("t.slow", "{}")]), text("done")]) };
        let tool = if stage == 3 { forever() } else { Does::saying("x") };
        let delivered = Does::new(|_, _| async { DriverResult::done(ephor_base::Product::Delivered, Budget::ZERO) });
        let mut setup = Setup::new().tool(reader("t.slow"), tool.clone()).model(model);
        setup.reply = delivered.clone();
        let world = setup.boot().await;
        let mut puppet = world.puppet(PLENTY).await;
        let (process, _end) = puppet.in_turn("go").await;
        let ask = crate::world::ask(vec![ephor_base::SpanId(1)]);
        if stage == 1 {
            let mut call = process.call(ask.clone()).unwrap();
            running(&mut call).await;
            assert!(world.kernel.cancel_turn(puppet.session));
            assert_eq!(call.ended().await.unwrap().outcome, CANCELLED);
        } else if stage > 1 {
            let by = asked(&process).await;
            if stage == 3 {
                let mut call = process.call(chosen(by, 0)).unwrap();
                running(&mut call).await;
                assert!(world.kernel.cancel_turn(puppet.session));
                assert_eq!(call.ended().await.unwrap().outcome, CANCELLED);
            } else if stage == 4 {
                done(&process, chosen(by, 0)).await.unwrap();
            }
        }
        assert!(world.kernel.cancel_turn(puppet.session), "stage {stage}");
        process.turn_cancelled().await;
        let before = tool.runs();
        assert_eq!(code(&done(&process, ask).await), "Fenced", "stage {stage}");
        assert_eq!(code(&done(&process, direct("t.slow", "{}")).await), "Fenced", "stage {stage}");
        assert_eq!(tool.runs(), before);
        done(&process, ephor_base::Action::Reply(ephor_base::ReplyAction { answer: None, end: EndReason::Cancelled }))
            .await
            .unwrap();
        assert_eq!(delivered.runs(), 1);
        assert!(!world.kernel.cancel_turn(puppet.session), "there is no turn any more");
        let facts = world.facts(puppet.session).await;
        assert!(facts.iter().any(|fact| matches!(fact, Fact::TurnEnd { end: EndReason::Cancelled, .. })));
        assert!(is_settled(&world.record().await));
    }
}

#[tokio::test]
async fn what_a_turn_left_running_ends_with_it() {
    let world = Setup::new().tool(reader("t.slow"), forever()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let mut call = process.call(direct("t.slow", "{}")).unwrap();
    running(&mut call).await;
    done(&process, reply(None)).await.unwrap();
    assert_eq!(call.ended().await.unwrap().outcome, CANCELLED);
}

#[tokio::test]
async fn a_full_mailbox_is_a_typed_refusal_and_loses_nothing() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.born().await;
    for n in 0..MAILBOX_CAPACITY {
        puppet.say(&n.to_string()).await;
    }
    let part = || vec![Part { kind: PartKind::Typed, text: "one more".into() }];
    let refused = world.kernel.send(puppet.session, part()).await;
    assert_eq!(refused, Err(NotAccepted::Full(MAILBOX_CAPACITY)));
    assert!(matches!(process.receive().await, Incoming::Message(_)));
    world.kernel.send(puppet.session, part()).await.unwrap();
    let facts = world.facts(puppet.session).await;
    let accepted = facts.iter().filter(|fact| matches!(fact, Fact::Message { .. })).count();
    assert_eq!(accepted, MAILBOX_CAPACITY + 1);
}

#[tokio::test]
async fn a_log_that_fails_lets_nothing_run() {
    let tool = Does::saying("x");
    let world = Setup::new().tool(reader("t.read"), tool.clone()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    world.disk.break_now();
    assert_eq!(code(&done(&process, direct("t.read", "{}")).await), "Chain");
    assert_eq!(tool.runs(), 0);
    assert_eq!(world.account(&process).reserved, Budget::ZERO);
    assert_eq!(world.account(&process).used, Budget { messages: 1, ..Budget::ZERO });
    let part = Part { kind: PartKind::Typed, text: "x".into() };
    assert!(matches!(world.kernel.send(puppet.session, vec![part]).await, Err(NotAccepted::Chain(_))));
}

#[tokio::test]
async fn a_secret_is_on_the_record_before_it_is_handed_out() {
    let got: Arc<Mutex<Vec<bool>>> = Arc::default();
    let results = got.clone();
    let leases = Does::new(move |_, context| {
        let results = results.clone();
        async move {
            for name in ["key", "none"] {
                let secret = context.lease(name).await;
                results.lock().unwrap().push(secret.is_ok_and(|secret| secret.expose() == "hunter2"));
            }
            said("done")
        }
    });
    let reach = ephor_base::Reach { secrets: vec!["key".into(), "none".into()], ..ephor_base::Reach::default() };
    let mut setup = Setup::new().tool(ephor_base::Registration { reach, ..reader("t.lease") }, leases);
    setup.secrets.insert("key".into(), "hunter2".into());
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    done(&process, direct("t.lease", "{}")).await.unwrap();
    assert_eq!(*got.lock().unwrap(), [true, false]);
    let facts = world.facts(puppet.session).await;
    let leased: Vec<_> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Lease { secret } => Some(secret.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(leased, ["key"]);

    // If it cannot be recorded, it is not handed out.
    let mut setup = Setup::new();
    setup.secrets.insert("key".into(), "hunter2".into());
    let (disk, results) = (setup.disk.clone(), got.clone());
    let breaks = Does::new(move |_, context| {
        let (disk, results) = (disk.clone(), results.clone());
        async move {
            disk.break_now();
            let leaked = context.lease("key").await.is_ok();
            results.lock().unwrap().push(leaked);
            said("done")
        }
    });
    let world = setup.tool(reader("t.breaks"), breaks).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let _lost: Result<_, _> = done(&process, direct("t.breaks", "{}")).await;
    assert_eq!(got.lock().unwrap().last(), Some(&false));
}

/// A driver that panics before it has begun.
struct Broken;

impl ephor_kernel::Driver for Broken {
    fn estimate(&self, _: &ephor_kernel::Estimate<'_>) -> Budget {
        panic!("boom")
    }
    fn run(&self, _: ephor_kernel::Permit, _: CallContext) -> ephor_kernel::Running {
        unreachable!()
    }
}

#[tokio::test]
async fn a_panic_at_the_door_itself_ends_the_call_and_is_told() {
    let mut setup = Setup::new().tool(reader("t.fine"), Does::saying("fine"));
    setup.tools.push((reader("t.broken"), Arc::new(Broken)));
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&process, direct("t.broken", "{}")).await), "Broken");
    assert_eq!(code(&done(&process, direct("t.fine", "{}")).await), "done");
    assert_eq!(code(&done(&process, reply(None)).await), "done");
    settled(&world, process.seat()).await;
}

#[tokio::test]
async fn a_panic_at_the_door_behind_an_intent_is_an_outcome_on_the_record() {
    let late = || {
        Does::new(|permit, _| async move {
            let is_reply = matches!(permit.task(), ephor_base::Task::Reply(_));
            crate::world::PANICS.set(true);
            if is_reply { DriverResult::done(ephor_base::Product::Delivered, Budget::ZERO) } else { said("x") }
        })
    };
    let mut setup = Setup::new().tool(reader("t.late"), late());
    setup.reply = late();
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&process, direct("t.late", "{}")).await), "crashed");
    assert_eq!(code(&done(&process, reply(None)).await), "crashed");
    assert!(!process.is_in_turn(), "nobody waits for it");
    settled(&world, process.seat()).await;
}

#[tokio::test]
async fn whoever_receives_twice_at_once_gets_one_message_for_each_turn() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    puppet.say("one").await;
    puppet.say("two").await;
    let (process, _end) = puppet.born().await;
    let mut second = Box::pin(process.receive());
    let first = Box::pin(process.receive());
    let Incoming::Message(first) = first.await else { panic!() };
    let waits = std::future::poll_fn(|context| std::task::Poll::Ready(second.as_mut().poll(context).is_pending()));
    assert!(waits.await, "the turn of the first is under way");
    drop(second);
    assert_eq!(code(&done(&process, reply(None)).await), "done");
    let Incoming::Message(second) = process.receive().await else { panic!() };
    assert_ne!(first.id, second.id);
    assert_eq!(code(&done(&process, reply(None)).await), "done");
}
