//! A scenario on the whole runtime: real tasks on a clock that stands still, and jumps when nobody has anything to do.
//!
//! What waits for a suspended supervisor cannot be laid out here, so the runtime gets the scenarios with one thing after
//! another. Where a supervisor is killed that has supervisors below it, the runtime goes its own way (see
//! `docs/runtime-semantics.md`), and the comparison ends; so it does where a child is to exit before its start returns and a
//! sibling's start fails right behind it, since a process cannot run here before its birth is on the record.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::Duration,
};

use ephor_base::{ExitReason, Pid, Seat, SessionId};
use ephor_runtime::{
    Begin, Body, ChildSpec, Host, Incoming, Life, Listing, News, Process, Runtime, Supervision, SupervisorSpec,
    TOO_OFTEN, Told, What,
    supervisor::{Backoff, ChildId, Flags, Intensity, Name, Refused, Strategy, Target},
    timers::Timers,
};
use tokio::time::Instant;

use crate::{
    scenario::{Act, Ask, Child, Kind, OnStop, Plan, Reason, Scenario, Step, Sup},
    sim::{self, exit_reason, note_of, shutdown, word},
    trace::{StepTrace, Trace},
};

/// What a wait of the judge takes.
const WAIT: Duration = Duration::from_millis(3300);
/// Longer than any child may take to stop. The clock jumps over it.
const QUIET: Duration = Duration::from_secs(60);

/// What is known of one scenario while it runs.
#[derive(Default)]
struct State {
    now: Duration,
    attempts: HashMap<String, u64>,
    /// The newest incarnation of a path, by its full name.
    fulls: HashMap<String, String>,
    /// Who has begun and not been born.
    begun: VecDeque<Begun>,
    pids: HashMap<String, Pid>,
    names: HashMap<Pid, String>,
    children: HashMap<String, (Pid, ChildId)>,
    order: Vec<String>,
    exits: Vec<String>,
    is_apart: bool,
    /// What the children of dynamic supervisors are, by path.
    templates: HashMap<String, Child>,
    /// Who is killed as soon as it is born.
    doomed: Vec<String>,
    /// The paths of supervisors.
    supervisors: HashSet<String>,
}

/// An incarnation that is about to be born.
struct Begun {
    plain: String,
    full: String,
    /// It is to have exited before its start returns. Here nobody runs before the go that starts it is on the record.
    dies: bool,
}

#[derive(Clone)]
struct World(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    runtime: OnceLock<Runtime<World>>,
    timers: Timers,
}

impl Host for World {
    type Message = ExitReason;
    /// They go on while the time by which restarts are counted stands still.
    fn timers(&self) -> &Timers {
        &self.0.timers
    }
    fn now(&self) -> Duration {
        self.state().now
    }
    fn tell(&self, news: &mut Vec<News<Self>>) -> Told {
        let mut state = self.state();
        for one in news.drain(..) {
            match one.what() {
                What::Born { .. } => {
                    let Begun { plain, full, .. } = state.begun.pop_front().expect("whoever is born has begun");
                    if state.doomed.contains(&full) {
                        assert!(self.runtime().kill(one.pid()));
                    }
                    state.pids.insert(plain, one.pid());
                    state.names.insert(one.pid(), full);
                }
                What::Exited(reason) => {
                    // It says why it gives up, where OTP's says nothing.
                    let gave_up = *reason == ExitReason::ShutdownFor(TOO_OFTEN.to_owned());
                    let reason = if gave_up { &ExitReason::Shutdown } else { reason };
                    let line = format!("x{} {}", state.names[&one.pid()], word(reason));
                    state.exits.push(line);
                }
                What::Restarting(_) => {}
            }
        }
        Told::Taken
    }
    fn undelivered(&self, _: &Seat, _: Option<SessionId>, _: Vec<ExitReason>) {}
}

impl World {
    fn new() -> Self {
        let booted = Instant::now();
        let timers = Timers::by_hand(move || booted.elapsed());
        drop(tokio::spawn(timers.kept(tokio::time::sleep)));
        Self(Arc::new(Inner { state: Mutex::default(), runtime: OnceLock::new(), timers }))
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }
    fn runtime(&self) -> &Runtime<Self> {
        self.0.runtime.get().unwrap()
    }
    fn living(&self, path: &str) -> Option<Pid> {
        let pid = self.state().pids.get(path).copied()?;
        self.runtime().address(pid).map(|_| pid)
    }
    fn supervision(&self, path: &str) -> Option<Supervision<Self>> {
        self.runtime().address(self.living(path)?)?.supervision()
    }

    /// What the start of one incarnation does.
    fn begin(&self, parent: &str, name: &str, plan: &Plan) -> Begin {
        let plain = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
        let act = {
            let mut state = self.state();
            let attempt = state.attempts.entry(plain.clone()).or_default();
            *attempt += 1;
            let attempt = *attempt;
            let above = state.fulls.get(parent).map(|full| format!("{full}/")).unwrap_or_default();
            let full = format!("{above}{name}#{attempt}");
            let act = plan.act(attempt).clone();
            state.order.push(note_of(&full, &act));
            if !matches!(act, Act::Fail | Act::Ignore) {
                state.fulls.insert(plain.clone(), full.clone());
                state.begun.push_back(Begun { plain, full, dies: matches!(act, Act::Die(_)) });
            }
            state.is_apart |= act == Act::Fail && state.begun.iter().any(|one| one.dies);
            act
        };
        match act {
            Act::Fail => return Begin::Failed("refused".to_owned()),
            Act::Ignore => return Begin::Ignored,
            Act::Kill(sibling) => drop(self.kill_sibling(parent, &sibling)),
            Act::Ok | Act::Die(_) => {}
        }
        Begin::Runs
    }

    /// The sibling is a child of the same incarnation of the supervisor.
    fn kill_sibling(&self, parent: &str, sibling: &str) -> Option<Pid> {
        let path = format!("{parent}/{sibling}");
        {
            // One that has begun in the same go and has no PID yet dies before it runs.
            let mut state = self.state();
            let unborn = state.begun.iter().find(|one| one.plain == path).map(|one| (one.full.clone(), one.dies));
            if let Some((full, dies)) = unborn {
                state.is_apart |= dies;
                state.doomed.push(full);
                return None;
            }
        }
        let pid = self.living(&path)?;
        let above = self.state().fulls.get(parent).cloned()?;
        let is_child = self.state().names[&pid].starts_with(&format!("{above}/"));
        (is_child && self.runtime().kill(pid)).then_some(pid)
    }
}

/// A worker as the scenario has it.
struct Worker {
    world: World,
    parent: String,
    name: String,
    plan: Plan,
    on_stop: OnStop,
}

impl Body<World> for Worker {
    fn begin(&self) -> Begin {
        self.world.begin(&self.parent, &self.name, &self.plan)
    }
    fn run(&self, process: Process<World>) -> Life {
        let attempt = self.world.state().attempts[&format!("{}/{}", self.parent, self.name)];
        let act = self.plan.act(attempt).clone();
        let (world, parent, on_stop) = (self.world.clone(), self.parent.clone(), self.on_stop.clone());
        Life::exiting(async move {
            if let Act::Die(reason) = act {
                return exit_reason(reason);
            }
            match process.receive().await {
                Incoming::Message(reason) => return reason,
                Incoming::Stop if on_stop == OnStop::Deaf => std::future::pending().await,
                _ => {}
            }
            let full = world.state().names[&process.pid()].clone();
            world.state().order.push(format!("-{full}"));
            match on_stop {
                OnStop::Die(reason) => return exit_reason(reason),
                OnStop::Kill(sibling) => {
                    if let Some(pid) = world.kill_sibling(&parent, &sibling) {
                        while world.runtime().address(pid).is_some() {
                            tokio::task::yield_now().await;
                        }
                    }
                }
                OnStop::Obey | OnStop::Deaf => {}
            }
            ExitReason::Shutdown
        })
    }
}

fn child(world: &World, parent: &str, child: &Child) -> ChildSpec<World> {
    let own = match &child.kind {
        Kind::Worker(plan, on_stop) => {
            let (world, parent, name) = (world.clone(), parent.to_owned(), child.name.clone());
            let (plan, on_stop) = (plan.clone(), on_stop.clone());
            ChildSpec::worker(&child.name, Arc::new(Worker { world, parent, name, plan, on_stop }))
        }
        Kind::Supervisor(plan, sup) => {
            let (begins, above, name, plan) = (world.clone(), parent.to_owned(), child.name.clone(), plan.clone());
            let spec = supervisor(world, &format!("{parent}/{}", child.name), sup);
            ChildSpec::supervisor(&child.name, spec.that_begins(move || begins.begin(&above, &name, &plan)))
        }
    };
    ChildSpec { restart: child.restart, significant: child.significant, shutdown: shutdown(child), ..own }
}

fn supervisor(world: &World, path: &str, sup: &Sup) -> SupervisorSpec<World> {
    world.state().supervisors.insert(path.to_owned());
    if sup.strategy == Strategy::Dynamic {
        world.state().templates.insert(path.to_owned(), sup.children[0].clone());
    }
    let flags = Flags {
        strategy: sup.strategy,
        intensity: Intensity { restarts: sup.intensity, period: Duration::from_secs(sup.period) },
        auto_shutdown: sup.auto_shutdown,
        backoff: Backoff::NONE,
        independent: false,
    };
    SupervisorSpec::new(flags, sup.children.iter().map(|one| child(world, path, one)).collect())
}

/// Runs a scenario on the runtime.
pub(crate) fn run(scenario: &Scenario) -> Trace {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let mut trace = sim::run(scenario);
    let steps = threads.block_on(async {
        let scenario = scenario.clone();
        tokio::spawn(async move { play(&scenario).await }).await.unwrap()
    });
    // Which orders are fixed is what the other account says; what happened is this one's.
    let mut is_apart = false;
    trace.steps = trace
        .steps
        .iter()
        .zip(steps)
        .map(|(theirs, (mut own, apart))| {
            is_apart |= apart;
            (own.is_serial, own.is_racy) = (theirs.is_serial, theirs.is_racy || is_apart);
            own
        })
        .collect();
    trace
}

async fn play(scenario: &Scenario) -> Vec<(StepTrace, bool)> {
    let world = World::new();
    // The watchdog wakes from a thread of its own whom a long poll owes a wake, and this clock jumps over what such a thread has begun.
    let _set = world.0.runtime.set(Runtime::new(world.clone(), Pid(1), Duration::MAX));
    world.state().now = Duration::from_secs(1000);
    let spec = supervisor(&world, "root", &scenario.root);
    assert_eq!(world.begin("", "root", &Plan::OK), Begin::Runs);
    let planted = world.runtime().plant("root", &spec).await;
    let answer = if planted.is_ok() { "started" } else { "start_failed" };
    let mut steps = vec![settled(&world, vec![answer.to_owned()]).await];
    for step in &scenario.steps {
        let answers = perform(&world, step).await;
        steps.push(settled(&world, answers).await);
    }
    assert_eq!(foreign_threads(), [""; 0], "nobody may wake a process while the clock of a scenario jumps");
    world.runtime().processes().into_iter().for_each(|one| assert!(world.runtime().kill(one.pid)));
    steps
}

/// The threads of this process that belong to a runtime of processes, and wake whom they like.
fn foreign_threads() -> Vec<String> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm")).ok();
    threads.flatten().filter_map(name).filter(|name| name.starts_with("ephor-")).collect()
}

async fn perform(world: &World, step: &Step) -> Vec<String> {
    match step {
        Step::Exit(path, reason) => leave(world, path, *reason),
        Step::Stranger(..) => {}
        Step::Ask(path, ask) => return vec![answer(world, path, ask).await],
        Step::Batch(..) => panic!("scenarios come unrolled"),
        Step::Wait => world.state().now += WAIT,
        Step::Stop => {
            if let Some(pid) = world.living("root") {
                assert!(world.runtime().stop(pid));
            }
        }
    }
    Vec::new()
}

fn leave(world: &World, path: &str, reason: Reason) {
    let Some(pid) = world.living(path) else { return };
    if reason == Reason::Killed {
        let _was_there: bool = world.runtime().kill(pid);
    } else if world.supervision(path).is_none() {
        world.runtime().send(pid, exit_reason(reason)).unwrap();
    }
}

async fn answer(world: &World, path: &str, ask: &Ask) -> String {
    let Some(sup) = world.supervision(path) else { return "gone".to_owned() };
    let started = |answer: Result<Option<_>, Refused>| match answer {
        Ok(Some(_)) => "started".to_owned(),
        Ok(None) => "ignored".to_owned(),
        Err(refused) => sim::refusal(&refused).to_owned(),
    };
    let done = |answer: Result<(), Refused>| {
        answer.map_or_else(|refused| sim::refusal(&refused).to_owned(), |()| "ok".to_owned())
    };
    match ask {
        Ask::Start(one) => started(sup.start(child(world, path, one)).await),
        Ask::StartDynamic(name) => {
            let template = world.state().templates[path].clone();
            let Kind::Worker(plan, on_stop) = template.kind.clone() else { panic!("dynamic children are workers") };
            let (world_of, parent) = (world.clone(), path.to_owned());
            let body = Worker { world: world_of, parent, name: name.clone(), plan, on_stop };
            started(sup.start_dynamic(Some(Arc::new(body))).await)
        }
        Ask::Terminate(name) => done(sup.terminate(Target::Name(Name::from(name.as_str()))).await),
        Ask::TerminateDynamic(name) => done(sup.terminate(Target::Child(target(world, path, name, &sup))).await),
        Ask::Delete(name) => done(sup.delete(Name::from(name.as_str())).await),
        Ask::Restart(name) => started(sup.restart(Name::from(name.as_str())).await),
        Ask::Which => sup.which().await.map_or("gone".to_owned(), |all| format!("which{}", listed(world, &all))),
        Ask::Count => sup.count().await.map_or("gone".to_owned(), |of| {
            format!("count {} {} {} {}", of.specs, of.active, of.supervisors, of.workers)
        }),
    }
}

/// The id that a dynamic child has now. One of a supervisor before this one means nobody here.
fn target(world: &World, path: &str, name: &str, sup: &Supervision<World>) -> ChildId {
    let known = world.state().children.get(&format!("{path}/{name}")).copied();
    let Some((_, id)) = known.filter(|(pid, _)| Some(*pid) == sup.pid()) else {
        return ChildId { place: u32::MAX, run: 0 };
    };
    id
}

/// The path that a full name belongs to.
fn plain(full: &str) -> String {
    full.split('/').map(|part| part.split('#').next().unwrap_or_default()).collect::<Vec<_>>().join("/")
}

fn listed(world: &World, all: &[Listing]) -> String {
    let state = world.state();
    let mut shown: Vec<String> = all
        .iter()
        .map(|one| {
            let name = one.name.as_ref().map(|name| format!("{name}=")).unwrap_or_default();
            match one.running {
                Some((_, pid)) => format!(" {name}{}", state.names[&pid]),
                None if one.is_restarting => format!(" {name}restarting"),
                None => format!(" {name}undefined"),
            }
        })
        .collect();
    if all.iter().any(|one| one.name.is_none()) {
        shown.sort();
    }
    shown.concat()
}

/// Lets everything happen that follows, and gives back what did; and whether the runtime goes its own way from here.
async fn settled(world: &World, answers: Vec<String>) -> (StepTrace, bool) {
    tokio::time::sleep(QUIET).await;
    let mut shape = Vec::new();
    let sups = world.runtime().processes().into_iter().filter_map(|one| {
        let sup = world.runtime().address(one.pid)?.supervision()?;
        Some((world.state().names[&one.pid].clone(), sup))
    });
    for (full, sup) in sups.collect::<Vec<_>>() {
        if let Ok(all) = sup.which().await {
            for (id, pid) in all.iter().filter_map(|one| one.running).filter(|_| sup.pid().is_some()) {
                let mut state = world.state();
                let path = plain(&state.names[&pid]);
                state.children.insert(path, (sup.pid().unwrap(), id));
            }
            shape.push(format!("W{full}{}", listed(world, &all)));
        }
        if let Ok(of) = sup.count().await {
            shape.push(format!("C{full} {} {} {} {}", of.specs, of.active, of.supervisors, of.workers));
        }
    }
    let mut state = world.state();
    let (order, exits) = (std::mem::take(&mut state.order), std::mem::take(&mut state.exits));
    let mut step = StepTrace { order, exits: exits.clone(), answers, shape, ..StepTrace::serial() };
    step.sort();
    (step, state.is_apart || state.took_supervisors_along(&exits))
}

impl State {
    /// Whether a supervisor was killed, by whomever, and another one below it with it.
    fn took_supervisors_along(&self, exits: &[String]) -> bool {
        let plain = |full: &str| -> String {
            let names = full.split('/').map(|name| name.split('#').next().unwrap_or_default());
            names.collect::<Vec<_>>().join("/")
        };
        let killed = exits.iter().filter_map(|exit| exit.strip_prefix('x')?.strip_suffix(" killed"));
        let killed: HashSet<&str> = killed.filter(|full| self.supervisors.contains(&plain(full))).collect();
        killed.iter().any(|full| full.rsplit_once('/').is_some_and(|(above, _)| killed.contains(above)))
    }
}
