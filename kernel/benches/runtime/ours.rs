//! What is measured of our own runtime.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ephor_base::{Pid, Seat, SessionId};
use ephor_runtime::{
    Body, ChildSpec, Host, Incoming, Life, News, Process, Runtime, SPIN, Supervision, SupervisorSpec, Told, What,
    supervisor::{AutoShutdown, Backoff, Flags, Intensity, Shutdown, Strategy},
    timers::Timers,
};

use tokio::sync::mpsc;

use crate::{Figures, median, memory};

/// A host that counts what it is told.
pub(crate) struct Counts {
    timers: Timers,
    pub(crate) births: AtomicU64,
    pub(crate) exits: AtomicU64,
}

impl Host for Counts {
    type Message = ();
    fn timers(&self) -> &Timers {
        &self.timers
    }
    fn tell(&self, news: &mut Vec<News<Self>>) -> Told {
        for one in news.drain(..) {
            let counter = match one.what() {
                What::Born { .. } => &self.births,
                What::Exited(_) => &self.exits,
                What::Restarting(_) => continue,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        Told::Taken
    }
    fn undelivered(&self, _: &Seat, _: Option<SessionId>, _: Vec<()>) {}
}

/// Says when it runs; a message makes it panic.
struct Child(mpsc::UnboundedSender<Pid>);

impl Body<Counts> for Child {
    fn run(&self, process: Process<Counts>) -> Life {
        let up = self.0.clone();
        Life::new(async move {
            let _gone = up.send(process.pid());
            match process.receive().await {
                Incoming::Message(()) => panic!("boom"),
                _ => Ok(()),
            }
        })
    }
}

/// Counts itself, and waits.
struct Waits(Arc<AtomicUsize>);

impl Body<Counts> for Waits {
    fn run(&self, process: Process<Counts>) -> Life {
        let up = self.0.clone();
        Life::new(async move {
            up.fetch_add(1, Ordering::Relaxed);
            drop(up);
            process.receive().await;
            Ok(())
        })
    }
}

fn runtime() -> Runtime<Counts> {
    let began = Instant::now();
    let host = Counts {
        timers: Timers::of_machine(move || began.elapsed()),
        births: AtomicU64::new(0),
        exits: AtomicU64::new(0),
    };
    Runtime::new(host, Pid(1), SPIN)
}

async fn supervisor(runtime: &Runtime<Counts>, body: Arc<dyn Body<Counts>>) -> Supervision<Counts> {
    let intensity = Intensity { restarts: 100_000_000, period: Duration::from_secs(3600) };
    let (strategy, auto_shutdown) = (Strategy::Dynamic, AutoShutdown::Never);
    let flags = Flags { strategy, intensity, auto_shutdown, backoff: Backoff::NONE, independent: false };
    let child = ChildSpec { shutdown: Shutdown::Brutal, ..ChildSpec::worker("child", body) };
    runtime.plant("bench", &SupervisorSpec::new(flags, vec![child])).await.expect("a tree")
}

/// Children a second.
async fn starts(many: usize) -> f64 {
    let (runtime, (up, mut ups)) = (runtime(), mpsc::unbounded_channel());
    let supervisor = supervisor(&runtime, Arc::new(Child(up))).await;
    let began = Instant::now();
    for _ in 0..many {
        supervisor.start_dynamic(None).await.expect("it starts");
    }
    for _ in 0..many {
        ups.recv().await.expect("it runs");
    }
    let took = began.elapsed();
    supervisor.stop().await;
    many as f64 / took.as_secs_f64()
}

/// The median of kill to running again, in microseconds.
async fn restarts(many: usize, pause: Duration, panics: bool) -> f64 {
    let (runtime, (up, mut ups)) = (runtime(), mpsc::unbounded_channel());
    let supervisor = supervisor(&runtime, Arc::new(Child(up))).await;
    supervisor.start_dynamic(None).await.expect("it starts");
    let mut pid = ups.recv().await.expect("it runs");
    let mut times = Vec::with_capacity(many);
    for _ in 0..many {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let began = Instant::now();
        match panics {
            true => runtime.send(pid, ()).expect("it takes it"),
            false => assert!(runtime.kill(pid)),
        }
        pid = ups.recv().await.expect("it runs again");
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    supervisor.stop().await;
    median(times)
}

/// Milliseconds until all run again.
pub(crate) async fn storm(many: usize, panics: bool) -> f64 {
    let (runtime, (up, mut ups)) = (runtime(), mpsc::unbounded_channel());
    let supervisor = supervisor(&runtime, Arc::new(Child(up))).await;
    let mut pids = Vec::with_capacity(many);
    for _ in 0..many {
        supervisor.start_dynamic(None).await.expect("it starts");
    }
    for _ in 0..many {
        pids.push(ups.recv().await.expect("it runs"));
    }
    let began = Instant::now();
    for pid in pids {
        match panics {
            true => runtime.send(pid, ()).expect("it takes it"),
            false => assert!(runtime.kill(pid)),
        }
    }
    for _ in 0..many {
        ups.recv().await.expect("it runs again");
    }
    let took = began.elapsed();
    let host = runtime.host();
    assert_eq!(host.exits.load(Ordering::Relaxed), many as u64);
    assert_eq!(host.births.load(Ordering::Relaxed), 2 * many as u64 + 1);
    supervisor.stop().await;
    took.as_secs_f64() * 1e3
}

/// The bytes of one idle child.
pub(crate) async fn bytes(many: usize) -> f64 {
    let (runtime, up) = (runtime(), Arc::new(AtomicUsize::new(0)));
    let supervisor = supervisor(&runtime, Arc::new(Waits(up.clone()))).await;
    let before = memory();
    for _ in 0..many {
        supervisor.start_dynamic(None).await.expect("it starts");
    }
    while up.load(Ordering::Relaxed) < many {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    (memory() - before) / many as f64
}

pub(crate) async fn figures(sizes: crate::Sizes) -> Figures {
    Figures {
        start: starts(sizes.starts).await,
        kill: restarts(sizes.kills, Duration::ZERO, false).await,
        panic: restarts(sizes.kills, Duration::ZERO, true).await,
        kill_idle: restarts(sizes.idle, Duration::from_millis(2), false).await,
        panic_idle: restarts(sizes.idle, Duration::from_millis(2), true).await,
        storm: storm(sizes.storm, false).await,
    }
}
