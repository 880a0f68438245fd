//! Plays the steps of a simulation on the runtime, on one thread and a clock that jumps.

use std::{collections::BTreeSet, future::Future, pin::Pin, sync::Arc, time::Duration};

use ephor_base::{Digest, ExitReason, Pid, Seat};
use ephor_runtime::{
    Address, ChildSpec, Incoming, NotPlanted, NotSent, Process, Promise, Resident, Runtime, Supervision,
    SupervisorSpec,
    supervisor::{AutoShutdown, Backoff, Flags, Kind, Name, Restart, Shutdown, Strategy, Target},
};

use futures_util::FutureExt;

use crate::{
    books::{Bill, Books, Tally},
    plan::{Step, Which, Word},
    world::{Worker, World, depart, intensity_of, model},
};

/// Longer than anything a simulation waits for.
const QUIET: Duration = Duration::from_secs(300);

/// Longer than any simulation takes.
const AGES: Duration = Duration::from_secs(1_000_000);

/// How a simulation went.
pub(crate) struct Played {
    /// What was not as it must be.
    pub(crate) wrong: Option<String>,
    pub(crate) trace: Vec<String>,
    pub(crate) digest: Digest,
    pub(crate) tally: Tally,
}

/// Plays these steps; from the same seed and steps the same follows.
pub(crate) fn play(seed: u64, steps: &[Step]) -> Played {
    let (mut model, mut now) = (model(seed), Duration::ZERO);
    let mut boots = steps.split_inclusive(|step| matches!(step, Step::Crash)).peekable();
    let (mut first, mut tally) = (true, Tally::default());
    while first || boots.peek().is_some() {
        let boot = boots.next().unwrap_or_default();
        let threads = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let world = threads.block_on(async { World::new(std::mem::take(&mut model), now) });
        let lives = async { tokio::time::timeout(AGES, live(&world, seed, boot)).await };
        if threads.block_on(lives).is_err() {
            world.model().wrong("somebody waits for ever".to_owned());
        }
        now = threads.block_on(async { ephor_runtime::Host::now(&world) });
        world.model().died();
        drop(threads);
        world.books().end();
        tally.add(&world.books().tally());
        if let Some(wrong) = world.books().wrong() {
            world.model().wrong(wrong);
        }
        model = std::mem::take(&mut *world.model());
        model.is_dead = false;
        first = false;
        if model.wrong.is_some() {
            break;
        }
    }
    let digest = Digest::of(model.trace.join("\n").as_bytes());
    Played { wrong: model.wrong, trace: model.trace, digest, tally }
}

/// One boot, to its end in good order or in the middle of things.
async fn live(world: &World, seed: u64, steps: &[Step]) {
    let first = world.model().births.keys().next_back().map_or(1, |last| last.0 + 1);
    let runtime = world.boot(Pid(first));
    let Ok(root) = plant(world, &runtime, seed).await else {
        return world.model().wrong("the tree was not planted".to_owned());
    };
    world.is_up();
    let mut node = Node { world, runtime, root, promises: Vec::new() };
    for step in steps {
        if matches!(step, Step::Crash) {
            return world.model().note("the node dies".to_owned());
        }
        world.model().note(format!("-- {step:?}"));
        node.step(step).await;
        if let Some(wrong) = world.books().wrong() {
            return world.model().wrong(wrong);
        }
        for one in node.runtime.processes() {
            world.model().waiting(one.seat.as_str(), one.waiting);
        }
    }
    node.end().await;
}

async fn plant(world: &World, runtime: &Runtime<World>, seed: u64) -> Result<Supervision<World>, NotPlanted> {
    let backoff = if seed.is_multiple_of(2) { Backoff::NONE } else { Backoff::AGENT };
    let flags = |name: &str, strategy| {
        let intensity = intensity_of(&format!("r/{name}/x"));
        Flags { strategy, intensity, auto_shutdown: AutoShutdown::Never, backoff, independent: false }
    };
    let child = |name: &str| ChildSpec {
        keeps_messages: name.starts_with('a'),
        shutdown: if name.ends_with('2') { Shutdown::Brutal } else { Shutdown::Within(Duration::from_secs(5)) },
        ..ChildSpec::worker(name, Arc::new(Worker(world.clone())))
    };
    let branch = |name: &str, strategy, children: &[&str]| {
        let children = children.iter().map(|name| child(name)).collect();
        ChildSpec::supervisor(name, SupervisorSpec::new(flags(name, strategy), children))
    };
    let dynamic = ChildSpec { restart: Restart::Transient, ..child("c") };
    let branches = vec![
        branch("a", Strategy::OneForOne, &["a1", "a2", "a3"]),
        branch("b", Strategy::OneForAll, &["b1", "b2", "b3"]),
        ChildSpec::supervisor("c", SupervisorSpec::new(flags("c", Strategy::Dynamic), vec![dynamic])),
        branch("d", Strategy::RestForOne, &["d1", "d2", "d3"]),
    ];
    let root = Flags { backoff: Backoff::NONE, ..Flags::one_for_one(intensity_of("r/a")) };
    runtime.plant("r", &SupervisorSpec::new(root, branches)).await
}

struct Node<'a> {
    world: &'a World,
    runtime: Runtime<World>,
    root: Supervision<World>,
    promises: Vec<Promise<World>>,
}

impl Node<'_> {
    fn step<'s>(&'s mut self, step: &'s Step) -> Pin<Box<dyn Future<Output = ()> + 's>> {
        Box::pin(async move {
            match step {
                Step::Kill(which) => drop(self.one(*which).map(|pid| self.runtime.kill(pid))),
                Step::Stop(which) => drop(self.one(*which).map(|pid| self.runtime.stop(pid))),
                Step::Say(which, word) => self.say(*which, word),
                Step::Spree(words) => words.iter().for_each(|(which, word)| self.say(*which, word)),
                Step::Flood(which) => (0..100).for_each(|_| self.say(*which, &Word::Nothing)),
                Step::Promise(which) => {
                    let place = self.worker(*which).and_then(|pid| self.runtime.address(pid)?.promise().ok());
                    self.promises.extend(place);
                }
                Step::Put => {
                    if let Some(place) = self.promises.pop() {
                        place.put(self.world.fresh(Word::Nothing, Pid(1)));
                    }
                }
                Step::Suspend(which) => {
                    if let Some(address) = self.worker(*which).and_then(|pid| self.runtime.address(pid)) {
                        address.suspend(true);
                        self.world.suspended().insert(address.seat().to_string(), address);
                    }
                }
                Step::Resume(which) => self.resume(*which),
                Step::Add => self.add().await,
                Step::Remove(which) => self.remove(*which).await,
                Step::Grant(which, tokens) => self.with_purse(*which, |books, seat| books.grant(seat, *tokens)),
                Step::Close(which) => self.with_purse(*which, Books::close),
                Step::Haunt(which, whom) => self.haunt(*which, *whom),
                Step::Turns(turns) => {
                    for _ in 0..*turns {
                        tokio::task::yield_now().await;
                    }
                }
                Step::Wait(time) => tokio::time::sleep(*time).await,
                Step::Crash => {}
            }
        })
    }

    /// One of all processes but the root.
    fn one(&self, which: Which) -> Option<Pid> {
        let all: Vec<_> = self.runtime.processes().into_iter().filter(|one| one.parent.is_some()).collect();
        pick(&all, which).map(|one| one.pid)
    }

    /// One of the workers that have begun.
    fn worker(&self, which: Which) -> Option<Pid> {
        let has_run = |pid| self.world.model().births.get(&pid).is_some_and(|birth| birth.ran);
        let is_meant = |one: &Resident| one.kind == Kind::Worker && has_run(one.pid);
        let all: Vec<_> = self.runtime.processes().into_iter().filter(is_meant).collect();
        pick(&all, which).map(|one| one.pid)
    }

    fn say(&self, which: Which, word: &Word) {
        let whom = match word {
            Word::Link(whom) | Word::Unlink(whom) | Word::Monitor(whom) | Word::Kills(whom) => self.worker(*whom),
            Word::Sends(whom) | Word::Asks(whom) => self.worker(*whom),
            _ => Some(Pid(1)),
        };
        if let (Some(to), Some(whom)) = (self.worker(which), whom) {
            let _full: Result<(), NotSent> =
                self.world.send(word.clone(), whom, |message| self.runtime.send(to, message));
        }
    }

    fn resume(&self, which: Which) {
        let mut suspended = self.world.suspended();
        let seats: Vec<_> = suspended.keys().cloned().collect();
        if let Some(address) = pick(&seats, which).and_then(|seat| suspended.remove(seat)) {
            address.suspend(false);
        }
    }

    fn with_purse(&self, which: Which, act: impl FnOnce(&Books, &Seat)) {
        if let Some(seat) = pick(&self.world.books().seats(), which) {
            act(self.world.books(), seat);
        }
    }

    fn branch(&self, name: &str) -> Option<Supervision<World>> {
        let seat = self.root.seat().child(name);
        let resident = self.runtime.processes().into_iter().find(|one| one.seat == seat)?;
        self.runtime.address(resident.pid)?.supervision()
    }

    async fn add(&self) {
        if let Some(branch) = self.branch("c") {
            drop(tokio::time::timeout(Duration::from_secs(20), branch.start_dynamic(None)).await);
        }
        if let Some(branch) = self.branch("a") {
            drop(tokio::time::timeout(Duration::from_secs(20), branch.restart(Name::from("a2"))).await);
        }
    }

    async fn remove(&self, which: Which) {
        let (branch, child) = if which.is_multiple_of(2) { ("a", "a2") } else { ("d", "d1") };
        if let Some(branch) = self.branch(branch) {
            let name = Target::Name(Name::from(child));
            drop(tokio::time::timeout(Duration::from_secs(20), branch.terminate(name)).await);
        }
    }

    /// An incarnation that is over, or fenced, acts as if it were not.
    fn haunt(&self, which: Which, whom: Which) {
        let Some(ghost) = pick(&self.world.ghosts(), which).cloned() else { return };
        let pid = ghost.pid();
        // If it lives, it is fenced from here on, and has not even run since.
        let _was_there: bool = self.runtime.kill(pid);
        let Some(whom) = self.worker(whom) else { return };
        let sent = self.world.send(Word::Nothing, pid, |message| ghost.send(whom, message));
        let killed = ghost.exit(whom, ExitReason::Error("haunted".to_owned()));
        let took = match ghost.receive().now_or_never() {
            Some(Incoming::Stop) => None,
            Some(_) => Some("took something"),
            None => Some("waits"),
        };
        if sent.is_ok() || killed.is_ok() || took.is_some() {
            self.world.model().wrong(format!("{pid} is fenced, and sent {sent:?}, killed {killed:?}, {took:?}"));
        }
        self.relate(&ghost, whom);
        self.spend(&ghost);
    }

    /// One that is over, or fenced, uses nothing up: neither of its own seat, which another may fill, nor of those above.
    fn spend(&self, ghost: &Process<World>) {
        let (books, before) = (self.world.books(), self.world.books().accounts());
        let called = depart(self.world, ghost, Bill { estimate: 1, actual: 1 }).is_some();
        if called || before != books.accounts() {
            let pid = ghost.pid();
            self.world.model().wrong(format!("{pid} is fenced, and called: {called}, {before:?}"));
        }
    }

    /// One that is over, or fenced, can change nothing in whom anybody has to do with.
    fn relate(&self, ghost: &Process<World>, whom: Pid) {
        let all = |this: &Self| [ghost.pid(), whom].map(|pid| this.runtime.related(pid));
        let before = all(self);
        before[0].links.iter().for_each(|other| ghost.unlink(*other));
        ghost.link(whom);
        ghost.monitor(whom);
        ghost.trap_exits(!before[0].traps);
        let has_name = ghost.register("ghost").is_ok();
        let has_group = ghost.join("ghosts") || !ghost.members("ghosts").is_empty();
        if has_name || has_group || before != all(self) {
            let (pid, after) = (ghost.pid(), all(self));
            self.world
                .model()
                .wrong(format!("{pid} is fenced, and made {before:?} {after:?}, named {has_name}, {has_group}"));
        }
    }

    /// Lets everything come to rest, looks at it, and stops the tree.
    async fn end(mut self) {
        self.promises.clear();
        let held: Vec<Address<World>> = std::mem::take(&mut *self.world.suspended()).into_values().collect();
        held.iter().for_each(|address| address.suspend(false));
        tokio::time::sleep(QUIET).await;
        self.look();
        self.world.books().rest();
        self.root.stop().await;
        tokio::time::sleep(QUIET).await;
        self.look();
        if !self.runtime.processes().is_empty() {
            self.world.model().wrong("somebody outlives the tree".to_owned());
        }
    }

    fn look(&self) {
        let living: BTreeSet<Pid> = self.runtime.processes().into_iter().map(|one| one.pid).collect();
        self.world.model().rests(&living);
    }
}

fn pick<T>(of: &[T], which: Which) -> Option<&T> {
    let many = u64::try_from(of.len()).ok().filter(|many| *many > 0)?;
    of.get(usize::try_from(which % many).ok()?)
}

/// What a simulation that went wrong comes down to: fewer steps that still go wrong.
pub(crate) fn shrink(seed: u64, mut steps: Vec<Step>) -> Vec<Step> {
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < steps.len() {
            let end = (at + size).min(steps.len());
            let fewer: Vec<_> = [&steps[..at], &steps[end..]].concat();
            if play(seed, &fewer).wrong.is_some() {
                steps = fewer;
            } else {
                at = end;
            }
        }
        size /= 2;
    }
    steps
}
