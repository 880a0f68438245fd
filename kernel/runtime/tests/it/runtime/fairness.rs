//! A process that does not yield holds up nobody else.

use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ephor_base::{ExitReason, Pid};
use ephor_runtime::{ChildSpec, Incoming, Process, Runtime, SupervisorSpec, supervisor::Strategy};

use super::{Notes, Tree, brutal, does, flags, worker};

/// The watchdog replaces nobody in these tests.
const NEVER: Duration = Duration::from_secs(3600);

/// Whatever does not happen by then never does: these tests fail by it instead of hanging.
fn soon(done: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !done() {
        if began.elapsed() > Duration::from_secs(20) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// A tree on threads of its own, with a process that does something first and then never yields until the end.
struct Spun {
    tree: Tree,
    over: Over,
    threads: tokio::runtime::Runtime,
}

/// Ends what spins, also where a test fails: threads end after their work.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Spun {
    fn begin<F, D>(threads: usize, others: Vec<ChildSpec<Notes>>, first: F) -> Self
    where
        F: Fn(Process<Notes>) -> D + Send + Sync + 'static,
        D: Future<Output = Process<Notes>> + Send + 'static,
    {
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap();
        let over = Over(Arc::default());
        let spins = {
            let (over, first) = (over.0.clone(), Arc::new(first));
            does(move |process| {
                let (over, first) = (over.clone(), first.clone());
                async move {
                    let process = first(process).await;
                    process.host().note("spins");
                    while !over.load(Ordering::SeqCst) {
                        std::hint::spin_loop();
                    }
                    process.receive().await;
                    ExitReason::Normal
                }
            })
        };
        let tree = threads.block_on(async {
            let notes = Notes::new();
            let runtime = Runtime::new(notes.clone(), Pid(1), NEVER);
            let children = others.into_iter().chain([ChildSpec::worker("spins", spins)]).collect();
            let root = runtime.plant("r", &SupervisorSpec::new(flags(Strategy::OneForOne), children)).await.unwrap();
            Tree { notes, runtime, root }
        });
        Self { tree, over, threads }
    }

    /// Tells the process that spins whom it is to have to do with.
    fn tell_of(&self, seat: &str) -> Pid {
        let pid = self.tree.pid(seat);
        self.tree.tell("r/spins", &pid.0.to_string());
        assert!(soon(|| self.tree.notes.count("spins") == 1));
        pid
    }

    fn said(&self, line: &str, times: usize) -> bool {
        soon(|| self.tree.notes.count(line) == times)
    }

    fn end(self) {
        self.over.0.store(true, Ordering::SeqCst);
        self.threads.block_on(self.tree.root.stop());
        assert!(self.tree.is_empty() && self.tree.notes.count("-r/spins hung") == 0);
    }
}

/// Whom the process that spins is told of.
async fn told_of(process: &Process<Notes>) -> Pid {
    let Incoming::Message(text) = process.receive().await else { panic!("no message") };
    Pid(text.parse().unwrap())
}

#[test]
fn whom_a_process_woke_last_goes_on_although_it_never_yields() {
    let spun = Spun::begin(2, vec![worker("b")], |process| async move {
        process.send(told_of(&process).await, "hello".into()).unwrap();
        process
    });
    spun.tell_of("r/b");
    assert!(spun.said("r/b hello", 1), "it waits behind the one that spins");
    spun.end();
}

#[test]
fn whom_a_process_killed_is_started_again_although_it_never_yields() {
    let spun = Spun::begin(2, vec![worker("b")], |process| async move {
        process.exit(told_of(&process).await, ExitReason::Killed).unwrap();
        process
    });
    spun.tell_of("r/b");
    assert!(spun.said("-r/b killed", 1) && spun.said("+r/b", 2));
    spun.end();
}

#[test]
fn whoever_waits_for_something_else_of_a_process_goes_on_although_it_never_yields() {
    let (sender, waits) = tokio::sync::oneshot::channel::<()>();
    let (sender, waits) = (Mutex::new(Some(sender)), Arc::new(tokio::sync::Mutex::new(Some(waits))));
    let waits = does(move |process| {
        let waits = waits.clone();
        async move {
            let one = waits.lock().await.take().unwrap();
            one.await.unwrap();
            process.host().note("told");
            std::future::pending().await
        }
    });
    let sender = Arc::new(sender);
    let spun = Spun::begin(2, vec![brutal(ChildSpec::worker("b", waits))], move |process| {
        let sender = sender.clone();
        async move {
            told_of(&process).await;
            sender.lock().unwrap().take().unwrap().send(()).unwrap();
            process
        }
    });
    spun.tell_of("r/b");
    assert!(spun.said("told", 1));
    spun.end();
}

#[test]
fn timers_of_others_go_on_although_the_thread_that_waited_for_them_never_comes_back() {
    let sleeps = does(|process| async move {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            process.host().note("slept");
        }
        std::future::pending().await
    });
    // The one that spins is woken by a timer, and by nothing else: so the thread that waits for timers works on it.
    let spun = Spun::begin(2, vec![brutal(ChildSpec::worker("b", sleeps))], |process| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        process
    });
    assert!(spun.said("spins", 1) && spun.said("slept", 3));
    spun.end();
}

#[test]
fn whoever_asked_for_a_child_is_told_although_it_never_yields() {
    let (over, notes) = (Over(Arc::default()), Notes::new());
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let spins = {
        let over = over.0.clone();
        does(move |_| {
            let over = over.clone();
            async move {
                while !over.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
                ExitReason::Normal
            }
        })
    };
    let told = Arc::new(AtomicBool::new(false));
    let asks = {
        let (told, notes) = (told.clone(), notes.clone());
        async move {
            let runtime = Runtime::new(notes, Pid(1), NEVER);
            let children = vec![ChildSpec::worker("spins", spins)];
            let root = runtime.plant("r", &SupervisorSpec::new(flags(Strategy::Dynamic), children)).await.unwrap();
            root.start_dynamic(None).await.unwrap();
            told.store(true, Ordering::SeqCst);
            root
        }
    };
    // On a thread of the runtime, as any process: whoever is told there waits behind the child.
    let root = threads.spawn(asks);
    assert!(soon(|| told.load(Ordering::SeqCst)));
    drop(over);
    threads.block_on(async { root.await.unwrap().stop().await });
    assert_eq!(notes.count("-r/1 hung"), 0);
}

/// `CAP_SYS_NICE`, as capabilities(7) numbers it.
const SYS_NICE: u64 = 1 << 23;
/// `SCHED_IDLE`, as sched(7) numbers it.
const IDLE: &str = "5";

/// How the system schedules a thread of this process: a field of proc_pid_stat(5).
fn policy(thread: &str) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(38).unwrap().to_owned()
}

#[test]
fn a_thread_that_does_not_come_back_runs_behind_others_until_it_does() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let capable = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
    if u64::from_str_radix(capable, 16).unwrap() & SYS_NICE == 0 {
        return println!("skipped: without CAP_SYS_NICE no thread comes back from behind others");
    }
    let thread = Arc::new(Mutex::new(None));
    let spun = {
        let thread = thread.clone();
        Spun::begin(2, Vec::new(), move |process| {
            let own = std::fs::read_link("/proc/thread-self").unwrap();
            *thread.lock().unwrap() = Some(own.to_str().unwrap().to_owned());
            std::future::ready(process)
        })
    };
    assert!(spun.said("spins", 1));
    let thread = thread.lock().unwrap().clone().unwrap();
    assert!(soon(|| policy(&thread) == IDLE), "it keeps its share");
    spun.over.0.store(true, Ordering::SeqCst);
    assert!(soon(|| policy(&thread) == "0"), "it stays behind others");
    spun.end();
}
