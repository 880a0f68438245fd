//! The kernel of a node, with its real chain in a temporary folder.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ephor_base::{
    Action, Arguments, Budget, Capability, Clock, Confidentiality, Digest, EffectVector, Flow, Integrity, Limits,
    ModelRef, Pid, Product, Random, Registration, Secret, SessionId, Timestamp, ToolAction, ToolAnswer, Workspace,
};
use ephor_chain::{Config, Log, SigningKeys, VaultKey, disk::Disk};
use ephor_governance::{Constitution, Gate, OperatorPolicy, Registry, Rights};
use ephor_kernel::{
    Act, AgentSpec, Appointments, Body, Branch, CallContext, Child, DoorParts, Driver, DriverResult, Drivers,
    FirstNumbers, Incoming, Kernel, Life, Patience, Permit, Process, Running, Secrets, SessionSpec, Target, Watchers,
    operator_id,
};
use ephor_record::Signal;
use ephor_runtime::supervisor::{AutoShutdown, Backoff, Flags, Intensity, Shutdown, Strategy};
use tokio::sync::mpsc;

use crate::percentile;

struct Now(Instant);

impl Clock for Now {
    fn now(&self) -> Timestamp {
        Timestamp(1_800_000_000_000_000).plus(self.monotonic())
    }
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

struct Seeded(AtomicU64);

impl Random for Seeded {
    fn fill(&self, into: &mut [u8]) {
        for chunk in into.chunks_mut(32) {
            let Digest(bytes) = Digest::of(&self.0.fetch_add(1, Ordering::Relaxed).to_le_bytes());
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

struct NoSecrets;

impl Secrets for NoSecrets {
    fn secret(&self, _: &str) -> Option<Secret<String>> {
        None
    }
}

/// A tool that answers at once, or never.
struct Tool {
    answers: bool,
    at_work: Arc<AtomicUsize>,
}

/// A call that is at work until it is dropped.
struct AtWork(Arc<AtomicUsize>);

impl AtWork {
    fn begin(at_work: &Arc<AtomicUsize>) -> Self {
        at_work.fetch_add(1, Ordering::SeqCst);
        Self(at_work.clone())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Driver for Tool {
    fn estimate(&self, _: &ephor_kernel::Estimate<'_>) -> Budget {
        Budget::ZERO
    }
    fn run(&self, _: Permit, _: CallContext) -> Running {
        let (answers, at_work) = (self.answers, AtWork::begin(&self.at_work));
        Running::new(async move {
            let _at_work = at_work;
            if !answers {
                std::future::pending::<()>().await;
            }
            DriverResult::done(Product::Tool(ToolAnswer { text: "done".into(), failed: false }), Budget::ZERO)
        })
    }
}

fn registration(name: &str) -> Registration {
    Registration {
        name: name.parse().unwrap(),
        description: "for a bench".into(),
        schema: r#"{"type":"object","properties":{},"additionalProperties":false}"#.into(),
        code: Digest::of(name.as_bytes()),
        capability: Capability::FsRead,
        effects: EffectVector::new(10, 0, 10, 0, 0),
        paths: Vec::new(),
        consequential: Vec::new(),
        integrity: Integrity::Untrusted,
        confidentiality: Confidentiality::Internal,
        limits: Limits { fuel: 1, deadline_ms: 60_000, memory_bytes: 1, output_bytes: 1 },
        nested: Vec::new(),
        flow: Flow::looks(),
        reach: ephor_base::Reach::default(),
    }
}

pub(crate) struct Node {
    #[expect(dead_code, reason = "it is removed when it is dropped")]
    folder: tempfile::TempDir,
    kernel: Kernel,
    operator: ed25519_dalek::VerifyingKey,
    /// How many calls are at work.
    at_work: Arc<AtomicUsize>,
}

impl Node {
    pub(crate) async fn boot() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (random, clock) = (Arc::new(Seeded(AtomicU64::new(1))), Arc::new(Now(Instant::now())));
        let (keys, vault) = (SigningKeys::generate(&*random), Arc::new(VaultKey::generate(&*random)));
        let config = Config::in_home(folder.path());
        let (log, _) = Log::open(config, keys, vault, Arc::new(Disk), clock.clone(), random.clone(), "bench").unwrap();
        let operator = ed25519_dalek::SigningKey::from_bytes(&[7; 32]).verifying_key();
        let policy = OperatorPolicy::default();
        let constitution = Constitution::parse(Constitution::default_text(policy.environment)).unwrap();
        let (tools, answers) = (["t.done", "t.never"], [true, false]);
        let registry = Registry::new(tools.map(registration).to_vec()).unwrap();
        let at_work = Arc::new(AtomicUsize::new(0));
        let driver = |answers| -> Arc<dyn Driver> { Arc::new(Tool { answers, at_work: at_work.clone() }) };
        let tools: BTreeMap<_, _> =
            tools.iter().zip(answers).map(|(name, answers)| (name.parse().unwrap(), driver(answers))).collect();
        let parts = DoorParts {
            log,
            gate: Gate::new(constitution, policy, registry).unwrap(),
            drivers: Drivers { model: driver(true), reply: driver(true), tools },
            secrets: Arc::new(NoSecrets),
            clock,
            watchers: Arc::new(Watchers::default()),
            patience: Patience::default(),
            turn: ephor_kernel::TurnLimits::default(),
            appointments: Appointments::default(),
        };
        let first = FirstNumbers {
            call: ephor_base::CallId(1),
            message: ephor_base::MessageId(1),
            ticket: ephor_base::TicketId(1),
        };
        let kernel = Kernel::boot(parts, first, Pid(1), random).await.unwrap();
        Self { folder, kernel, operator, at_work }
    }

    async fn branch(&self, name: &str, body: Arc<dyn Body>) -> Branch {
        let intensity = Intensity { restarts: 100_000_000, period: Duration::from_secs(3600) };
        let (strategy, auto_shutdown) = (Strategy::Dynamic, AutoShutdown::Never);
        let flags = Flags { strategy, intensity, auto_shutdown, backoff: Backoff::NONE, independent: false };
        let child = Child { shutdown: Shutdown::Brutal, ..Child::worker("child", body) };
        self.kernel.start_branch(Child::supervisor(name, flags, vec![child])).await.unwrap()
    }

    /// Opens a session whose agent is `body`.
    async fn agent(&self, body: Arc<dyn Body>) -> SessionId {
        let session = SessionSpec {
            operator: operator_id(&self.operator),
            model: ModelRef { provider: "script".into(), name: "bench".into(), script: "".into() },
            workspace: Workspace::new("/tmp".into()).unwrap(),
            agent: Appointments::plain(Appointments::DEFAULT),
            rights: Rights::of([Capability::FsRead]),
            instructions: "Be good.".into(),
        };
        let budget = Budget { tool_calls: u64::MAX / 4, wall_ms: u64::MAX / 4, ..Budget::ZERO };
        self.kernel.open_session(AgentSpec { session, budget, body }).await.unwrap()
    }

    /// Opens so many sessions with the same agent, all at once.
    async fn agents(&self, many: usize, body: &Arc<dyn Body>) {
        futures_util::future::join_all((0..many).map(|_| self.agent(body.clone()))).await;
    }

    /// Kills the agent of a session, if it runs.
    fn kill_agent(&self, session: SessionId) {
        let is_its = |one: &ephor_kernel::ProcessInfo| one.session == Some(session) && one.seat.name() == "loop";
        let agent = self.kernel.processes().into_iter().find(is_its);
        let _was_there = agent.is_some_and(|agent| self.kernel.kill(agent.pid));
    }
}

struct Says(mpsc::UnboundedSender<Pid>);

impl Body for Says {
    fn run(&self, process: Process) -> Life {
        let up = self.0.clone();
        Life::new(async move {
            let _gone = up.send(process.pid());
            process.receive().await;
            Ok(())
        })
    }
}

/// Milliseconds until all children of one supervisor run again that were killed at once, with every restart on the chain.
pub(crate) async fn storm(many: usize) -> f64 {
    let node = Node::boot().await;
    let (up, mut ups) = mpsc::unbounded_channel();
    let branch = node.branch("bench", Arc::new(Says(up))).await;
    let mut pids = Vec::with_capacity(many);
    for _ in 0..many {
        branch.start_dynamic(None).await.unwrap();
    }
    for _ in 0..many {
        pids.push(ups.recv().await.unwrap());
    }
    let began = Instant::now();
    assert!(pids.into_iter().all(|pid| node.kernel.kill(pid)));
    for _ in 0..many {
        ups.recv().await.unwrap();
    }
    let took = began.elapsed();
    node.kernel.stop().await;
    took.as_secs_f64() * 1e3
}

/// Milliseconds until no call of so many agents is at work any more after all are stopped, with that on the chain.
pub(crate) async fn stop_all(agents: usize) -> f64 {
    let node = Node::boot().await;
    let (body, over) = (Evil::Dies, Arc::new(AtomicBool::new(false)));
    let body: Arc<dyn Body> = Arc::new(Disturbs { evil: body, over, has_spun: AtomicBool::new(false) });
    node.agents(agents, &body).await;
    let pause = || tokio::time::sleep(Duration::from_micros(200));
    while node.at_work.load(Ordering::SeqCst) < agents {
        pause().await;
    }
    let (operator, note) = (operator_id(&node.operator), String::new());
    let act = Act { operator, signal: Signal::Stop, target: Target::All, tree: true, note };
    let (kernel, began) = (node.kernel.clone(), Instant::now());
    let stopping = tokio::spawn(async move { kernel.signal(act).await.unwrap() });
    while node.at_work.load(Ordering::SeqCst) > 0 {
        pause().await;
    }
    let took = began.elapsed();
    assert!(stopping.await.unwrap().recorded.is_ok());
    node.kernel.stop().await;
    took.as_secs_f64() * 1e3
}

/// An agent that calls a tool now and then, and says how long that took.
struct Calls {
    times: mpsc::UnboundedSender<Duration>,
    every: Duration,
}

impl Body for Calls {
    fn run(&self, process: Process) -> Life {
        let (times, every) = (self.times.clone(), self.every);
        Life::new(async move {
            loop {
                // One that is deaf to a stop is killed after five seconds, and a thousand one after another.
                tokio::select! {
                    () = process.sleep(every) => {}
                    () = process.stopping() => return Ok(()),
                }
                let began = Instant::now();
                call(&process, "t.done").await;
                let _gone = times.send(began.elapsed());
            }
        })
    }
}

async fn call(process: &Process, tool: &str) {
    let arguments = Arguments::parse("{}").unwrap();
    let action = Action::Tool(ToolAction::Direct { name: tool.parse().unwrap(), arguments });
    if let Some(call) = process.call(action) {
        let _refused: Result<_, _> = call.ended().await;
    }
}

/// What an agent does to disturb others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Evil {
    /// Panics whenever it is started.
    Panics,
    /// Does not yield until the time is over. The one that replaces it does, or the node would have to begin anew.
    Spins,
    /// Calls a tool again and again without a pause.
    Floods,
    /// Calls a tool that never answers, and is killed in the middle of it.
    Dies,
}

impl Evil {
    pub(crate) const ALL: [Self; 4] = [Self::Panics, Self::Spins, Self::Floods, Self::Dies];
}

struct Disturbs {
    evil: Evil,
    over: Arc<AtomicBool>,
    has_spun: AtomicBool,
}

impl Body for Disturbs {
    fn run(&self, process: Process) -> Life {
        let (evil, over) = (self.evil, self.over.clone());
        let has_spun = self.has_spun.swap(true, Ordering::Relaxed);
        Life::new(async move {
            match evil {
                Evil::Panics => {
                    process.sleep(Duration::from_millis(1)).await;
                    panic!("as it does");
                }
                Evil::Spins => {
                    while !has_spun && !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                }
                Evil::Floods => {
                    while !over.load(Ordering::Relaxed) {
                        call(&process, "t.done").await;
                    }
                }
                Evil::Dies => call(&process, "t.never").await,
            }
            let _stopped: Incoming = process.receive().await;
            Ok(())
        })
    }
}

/// How often the one is killed that is in the middle of a call: as often as its supervisor bears.
const KILLS: usize = 5;

/// The 99th percentile of a tool call, in milliseconds, over so many agents, beside these that misbehave.
pub(crate) async fn p99(agents: usize, calls: usize, evils: Vec<Evil>) -> f64 {
    let node = Node::boot().await;
    let (times, mut taken) = mpsc::unbounded_channel();
    let body: Arc<dyn Body> = Arc::new(Calls { times, every: Duration::from_millis(2000) });
    node.agents(agents, &body).await;
    let over = Arc::new(AtomicBool::new(false));
    let mut victim = None;
    for evil in evils {
        let disturbs = Disturbs { evil, over: over.clone(), has_spun: AtomicBool::new(false) };
        victim = Some(node.agent(Arc::new(disturbs)).await);
    }
    while taken.try_recv().is_ok() {}
    let mut all = Vec::with_capacity(calls);
    for n in 1..=calls {
        all.push(taken.recv().await.unwrap().as_secs_f64() * 1e3);
        if n % (calls / KILLS) == 0
            && let Some(victim) = victim
        {
            node.kill_agent(victim);
        }
    }
    over.store(true, Ordering::Relaxed);
    node.kernel.stop().await;
    percentile(all, 99)
}
