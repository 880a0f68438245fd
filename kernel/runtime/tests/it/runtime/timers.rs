//! What waits for a time in a runtime.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::Context,
    time::Duration,
};

use ephor_base::{ExitReason, Pid};
use ephor_runtime::{
    ChildSpec, Incoming, Process, Runtime, SPIN, SupervisorSpec,
    supervisor::{Backoff, Flags, Name, Shutdown, Strategy, Target},
    timers::{Sleep, Timers},
};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered, task::ArcWake};

use super::{Notes, Tree, brutal, deaf, does, flags, until, worker};

/// A clock that a test moves, in microseconds.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicU64>);

impl Hand {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
    fn timers(&self) -> Timers {
        let clock = self.clone();
        Timers::by_hand(move || Duration::from_micros(clock.now()))
    }
}

/// Times that follow from a number, spread over ten thousand seconds.
const fn time(seed: u64) -> u64 {
    1 + (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10_000_000_000
}

const PROCESSES: u64 = 1000;
const EACH: u64 = 1000;

/// Of a process: waits for its times, of which every fourth is given up when it is told to.
async fn waits(process: Process<Notes>, clock: Hand, fired: Arc<Mutex<Vec<(u64, u64)>>>) -> ExitReason {
    let sleep = |number: u64| {
        let (time, clock) = (time(process.pid().0 * EACH + number), clock.clone());
        let sleep = process.sleep(Duration::from_micros(time));
        async move {
            sleep.await;
            (time, clock.now())
        }
    };
    let mut stay: FuturesUnordered<_> = (0..EACH).filter(|number| number % 4 != 0).map(sleep).collect();
    let mut go: FuturesUnordered<_> = (0..EACH).filter(|number| number % 4 == 0).map(sleep).collect();
    loop {
        tokio::select! {
            Some(one) = stay.next() => fired.lock().unwrap().push(one),
            Some(one) = go.next() => process.host().note(format!("given up, and fired: {one:?}")),
            incoming = process.receive() => match incoming {
                Incoming::Message(_) => go.clear(),
                _ => return ExitReason::Shutdown,
            },
        }
    }
}

/// The times of those that stay, in their order.
fn staying(tree: &Tree) -> Vec<u64> {
    let workers = tree.runtime.processes().into_iter().filter(|one| one.parent.is_some());
    let times = workers.flat_map(|one| (0..EACH).filter(|n| n % 4 != 0).map(move |n| time(one.pid.0 * EACH + n)));
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    times
}

#[tokio::test]
async fn a_million_timers_of_processes_fire_in_their_order_and_none_early_and_none_that_was_given_up() {
    let (clock, fired) = (Hand::default(), Arc::new(Mutex::new(Vec::new())));
    let body = {
        let (clock, fired) = (clock.clone(), fired.clone());
        does(move |process| waits(process, clock.clone(), fired.clone()))
    };
    let timers = clock.timers();
    let notes = Notes::on(timers.clone());
    let runtime = Runtime::new(notes.clone(), Pid(1), SPIN);
    let spec = SupervisorSpec::new(flags(Strategy::Dynamic), vec![ChildSpec::worker("w", body)]);
    let root = runtime.plant("r", &spec).await.unwrap();
    let tree = Tree { notes, runtime, root };
    for _ in 0..PROCESSES {
        tree.root.start_dynamic(None).await.unwrap();
    }
    until(|| timers.len() == 1_000_000).await;
    for one in tree.runtime.processes().into_iter().filter(|one| one.parent.is_some()) {
        tree.runtime.send(one.pid, "give up".into()).unwrap();
    }
    until(|| timers.len() == 750_000).await;
    let times = staying(&tree);
    let (mut known, mut before) = (0, 0);
    // Steps of every length, also within a tick.
    let steps = (0..200).map(|n| n * n * 250_000).chain([10_000_000_000 + 1000]);
    for now in steps {
        clock.0.store(now, Ordering::SeqCst);
        let next = timers.tick();
        assert!(next.is_none_or(|next| next > Duration::from_micros(now)));
        // A tick is a millisecond, and one that has not passed whole is waited for.
        let due = times.partition_point(|time| time.div_ceil(1000) <= now / 1000);
        until(|| fired.lock().unwrap().len() >= due).await;
        let all = fired.lock().unwrap().clone();
        assert_eq!(all.len(), due, "more than were due at {now}");
        for (time, at) in &all[known..] {
            assert!(*time <= *at && *at == now, "due at {time}, and fired at {at}");
            assert!(time.div_ceil(1000) > before / 1000, "due at {time}, which was before {before}");
        }
        (known, before) = (due, now);
    }
    assert!(known == 750_000 && timers.is_empty());
    assert_eq!(tree.notes.drain().iter().find(|line| line.contains("given up")), None);
}

/// Says which one was woken.
struct Says(usize, Arc<Mutex<Vec<usize>>>);

impl ArcWake for Says {
    fn wake_by_ref(this: &Arc<Self>) {
        this.1.lock().unwrap().push(this.0);
    }
}

#[test]
fn those_who_are_due_together_are_woken_in_the_order_of_their_deadlines() {
    let (clock, woken) = (Hand::default(), Arc::default());
    let timers = clock.timers();
    let mut sleeps: Vec<Sleep> = (0..10_000).map(|number| timers.sleep(Duration::from_micros(time(number)))).collect();
    for (number, sleep) in sleeps.iter_mut().enumerate() {
        let waker = futures_util::task::waker(Arc::new(Says(number, Arc::clone(&woken))));
        assert!(sleep.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
    }
    // The one that polled it last is woken, and it alone.
    let late = futures_util::task::waker(Arc::new(Says(10_000, Arc::clone(&woken))));
    assert!(sleeps[0].poll_unpin(&mut Context::from_waker(&late)).is_pending());
    clock.0.store(20_000_000_000, Ordering::SeqCst);
    assert_eq!(timers.tick(), None);
    let mut order: Vec<usize> = (0..10_000).collect();
    order.sort_by_key(|number| time(u64::try_from(*number).unwrap()).div_ceil(1000));
    order.iter_mut().filter(|number| **number == 0).for_each(|first| *first = 10_000);
    assert_eq!(*woken.lock().unwrap(), order);
    assert!(sleeps.into_iter().all(|sleep| sleep.now_or_never().is_some()));
}

/// Whatever does not happen by then never does.
fn soon(done: impl Fn() -> bool) -> bool {
    (0..5000).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        done()
    })
}

#[test]
fn one_that_is_due_earlier_than_all_that_wait_is_not_kept_waiting() {
    let began = std::time::Instant::now();
    let timers = Timers::of_machine(move || began.elapsed());
    let woken = Arc::new(Mutex::new(Vec::new()));
    let polled = |number, time| {
        let mut sleep = timers.sleep(Duration::from_millis(time));
        let waker = futures_util::task::waker(Arc::new(Says(number, Arc::clone(&woken))));
        assert!(sleep.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
        sleep
    };
    // Each is due before those that the thread waits for already, but for the last.
    let sleeps = [(0, 3_600_000), (1, 1000), (2, 300), (3, 20), (4, 600)].map(|(number, time)| polled(number, time));
    assert!(soon(|| woken.lock().unwrap().len() == 4), "{woken:?}");
    assert_eq!(*woken.lock().unwrap(), [3, 2, 4, 1]);
    assert_eq!(timers.len(), 1);
    drop(sleeps);
    assert!(timers.is_empty());
}

#[test]
fn one_that_waits_on_one_thread_of_a_clock_and_never_yields_holds_no_timer_of_others() {
    let (over, slept) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // All are due in the same moments, and one of them does not come back.
    let sleeps = {
        let slept = slept.clone();
        does(move |process| {
            let slept = slept.clone();
            async move {
                for _ in 0..20 {
                    process.sleep(Duration::from_millis(10)).await;
                    slept.fetch_add(1, Ordering::SeqCst);
                }
                std::future::pending().await
            }
        })
    };
    let spins = {
        let over = over.clone();
        does(move |process| {
            let over = over.clone();
            async move {
                process.sleep(Duration::from_millis(50)).await;
                while !over.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
                std::future::pending().await
            }
        })
    };
    let names = (0..50).map(|number| number.to_string());
    let children = names.map(|name| brutal(ChildSpec::worker(&name, sleeps.clone())));
    let children = children.chain([brutal(ChildSpec::worker("spins", spins))]).collect();
    let root = threads.block_on(async {
        let runtime = Runtime::new(Notes::new(), Pid(1), Duration::from_secs(3600));
        runtime.plant("r", &SupervisorSpec::new(flags(Strategy::OneForOne), children)).await.unwrap()
    });
    let all_slept = soon(|| slept.load(Ordering::SeqCst) == 50 * 20);
    over.store(true, Ordering::SeqCst);
    threads.block_on(root.stop());
    assert!(all_slept, "{slept:?}");
}

#[tokio::test]
async fn what_a_supervisor_waits_for_no_more_is_taken_back() {
    let patient = |name, body| {
        let shutdown = Shutdown::Within(Duration::from_secs(3600));
        ChildSpec { shutdown, ..ChildSpec::worker(name, body) }
    };
    let wait = Duration::from_secs(3600);
    let backoff = Backoff { free: 0, first: wait, most: wait, healthy: wait };
    let below = super::supervisor(
        "s",
        Flags { backoff, ..flags(Strategy::OneForOne) },
        vec![brutal(worker("x")), patient("y", deaf())],
    );
    let tree = Tree::one_for_one(vec![patient("a", super::server()), below]).await;
    let timers = tree.notes.timers.clone();
    assert!(timers.is_empty(), "nobody waits for anything");
    tree.root.terminate(Target::Name(Name::from("a"))).await.unwrap();
    assert!(timers.is_empty(), "it stopped in time");
    assert!(tree.runtime.kill(tree.pid("r/s/x")));
    until(|| timers.len() == 1).await;
    let (s, y) = (tree.pid("r/s"), tree.pid("r/s/y"));
    let stops = tree.runtime.address(s).unwrap().supervision().unwrap();
    let terminates = tokio::spawn(async move { stops.terminate(Target::Name(Name::from("y"))).await });
    until(|| timers.len() == 2).await;
    assert!(tree.runtime.kill(s));
    tree.after("r/s/y", y).await;
    until(|| timers.is_empty()).await;
    assert!(terminates.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_never_has_to_wait_lets_others_go_on() {
    let naps = does(|process| async move {
        loop {
            process.sleep(Duration::ZERO).await;
        }
    });
    let tree = Tree::one_for_one(vec![brutal(ChildSpec::worker("naps", naps)), worker("b")]).await;
    tree.tell("r/b", "hello");
    while tree.notes.count("r/b hello") == 0 {
        tokio::task::yield_now().await;
    }
    tree.root.stop().await;
}

/// Somebody who panics when he is woken.
struct Startled;

impl ArcWake for Startled {
    fn wake_by_ref(_: &Arc<Self>) {
        panic!("startled");
    }
}

#[test]
fn whoever_panics_when_a_timer_wakes_him_keeps_nobody_else_waiting() {
    let (clock, woken) = (Hand::default(), Arc::default());
    let timers = clock.timers();
    let mut sleeps: Vec<Sleep> = (1..=3).map(|second| timers.sleep(Duration::from_secs(second))).collect();
    let says = |number| futures_util::task::waker(Arc::new(Says(number, Arc::clone(&woken))));
    let wakers = [says(0), futures_util::task::waker(Arc::new(Startled)), says(2)];
    for (sleep, waker) in sleeps.iter_mut().zip(&wakers) {
        assert!(sleep.poll_unpin(&mut Context::from_waker(waker)).is_pending());
    }
    clock.0.store(4_000_000, Ordering::SeqCst);
    assert_eq!(timers.tick(), None);
    assert_eq!(*woken.lock().unwrap(), [0, 2]);
}
