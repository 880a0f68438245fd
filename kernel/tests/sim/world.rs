//! The host and the workers of a simulation.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::Duration,
};

use ephor_base::{ExitReason, Pid, Seat, SessionId};
use ephor_runtime::{
    Address, Body, Host, Incoming, Later, Life, News, NotSent, Process, Runtime, Told, What,
    supervisor::Intensity,
    timers::{Sleep, Timers},
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    books::{Bill, Books, Flight},
    model::{Fate, Model, Watched, traps},
    plan::{Dice, Waits, Word},
};

/// A message, with those it speaks of. Requests have no number: they are answered and never kept.
pub(crate) struct Message {
    pub(crate) id: Option<u64>,
    pub(crate) word: Word,
    pub(crate) whom: Pid,
}

#[derive(Clone)]
pub(crate) struct World(Arc<Inner>);

struct Inner {
    model: Mutex<Model>,
    runtime: OnceLock<Runtime<World>>,
    timers: Timers,
    books: Books,
    /// Every incarnation, also those that are over.
    ghosts: Mutex<Vec<Arc<Process<World>>>>,
    suspended: Mutex<BTreeMap<String, Address<World>>>,
    is_up: std::sync::atomic::AtomicBool,
}

impl World {
    /// A world in which `before` has passed when the node boots.
    pub(crate) fn new(model: Model, before: Duration) -> Self {
        let booted = Instant::now();
        let clock = move || before + booted.elapsed();
        Self(Arc::new(Inner {
            model: Mutex::new(model),
            runtime: OnceLock::new(),
            timers: Timers::by_hand(clock),
            books: Books::new(),
            ghosts: Mutex::default(),
            suspended: Mutex::default(),
            is_up: false.into(),
        }))
    }
    pub(crate) fn boot(&self, first: Pid) -> Runtime<Self> {
        // Nobody is watched: a simulated time does not pass while somebody works.
        let runtime = Runtime::new(self.clone(), first, Duration::MAX);
        drop(tokio::spawn(self.0.timers.kept(tokio::time::sleep)));
        self.0.runtime.get_or_init(|| runtime).clone()
    }
    /// From now on the record fails now and then.
    pub(crate) fn is_up(&self) {
        self.0.is_up.store(true, std::sync::atomic::Ordering::SeqCst);
    }
    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.0.model.lock().unwrap()
    }
    pub(crate) fn books(&self) -> &Books {
        &self.0.books
    }
    pub(crate) fn runtime(&self) -> &Runtime<Self> {
        self.0.runtime.get().unwrap()
    }
    pub(crate) fn ghosts(&self) -> MutexGuard<'_, Vec<Arc<Process<Self>>>> {
        self.0.ghosts.lock().unwrap()
    }
    pub(crate) fn suspended(&self) -> MutexGuard<'_, BTreeMap<String, Address<Self>>> {
        self.0.suspended.lock().unwrap()
    }
    fn is_living(&self, pid: Pid) -> bool {
        self.runtime().address(pid).is_some()
    }
    /// A message that is about to be sent.
    pub(crate) fn fresh(&self, word: Word, whom: Pid) -> Message {
        let mut model = self.model();
        model.next += 1;
        let id = model.next;
        model.fates.insert(id, Fate::Waits);
        Message { id: Some(id), word, whom }
    }
    /// Sends by `send`; what was refused was never a message.
    pub(crate) fn send(
        &self,
        word: Word,
        whom: Pid,
        send: impl FnOnce(Message) -> Result<(), NotSent>,
    ) -> Result<(), NotSent> {
        let message = self.fresh(word, whom);
        let id = message.id;
        let sent = send(message);
        if let (Err(_), Some(id)) = (sent, id) {
            self.model().fates.remove(&id);
        }
        sent
    }
    /// The record has these news, or refused them.
    fn record(&self, news: &[(Pid, Option<Pid>, String, What)], now: Duration, is_taken: bool) {
        let mut model = self.model();
        if model.is_dead {
            return;
        }
        for (pid, parent, seat, what) in news {
            model.note(format!("{now:?} {pid} {seat} {what:?} {is_taken}"));
            match what {
                What::Born { .. } if is_taken => model.born(*pid),
                What::Born { .. } => drop(model.stillborn.insert(*pid)),
                What::Exited(reason) => model.exited(*pid, reason),
                What::Restarting(_) => {
                    if let Some(supervisor) = parent {
                        let intensity = intensity_of(seat);
                        model.restarted(*supervisor, now, intensity);
                    }
                }
            }
        }
    }
}

/// How many restarts the supervisor of a seat bears.
pub(crate) fn intensity_of(child: &str) -> Intensity {
    let branch = child.strip_prefix("r/").and_then(|rest| rest.split_once('/')).map(|(branch, _)| branch);
    match branch {
        Some("a") => Intensity { restarts: 3, period: Duration::from_secs(5) },
        Some("b") => Intensity { restarts: 5, period: Duration::from_secs(10) },
        Some("c") => Intensity { restarts: 1, period: Duration::from_secs(5) },
        Some(_) => Intensity { restarts: 2, period: Duration::from_secs(3) },
        None => Intensity { restarts: 100_000, period: Duration::from_secs(3600) },
    }
}

impl Host for World {
    type Message = Message;
    fn timers(&self) -> &Timers {
        &self.0.timers
    }
    fn tell(&self, news: &mut Vec<News<Self>>) -> Told {
        let told: Vec<_> =
            news.drain(..).map(|one| (one.pid(), one.parent(), one.seat().to_string(), one.what().clone())).collect();
        let (now, world) = (self.now(), self.clone());
        let is_up = self.0.is_up.load(std::sync::atomic::Ordering::SeqCst);
        let (how, turns, pause) = {
            let mut model = self.model();
            (model.roll(if is_up { 100 } else { 99 }), model.roll(4), model.roll(30))
        };
        match how {
            0..=49 => {
                self.record(&told, now, true);
                Told::Taken
            }
            50..=98 => Told::Later(Later::new(async move {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                if pause > 15 {
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                world.record(&told, now, true);
                Ok(())
            })),
            _ => {
                self.record(&told, now, false);
                Told::Refused("the record is full".to_owned())
            }
        }
    }
    fn undelivered(&self, seat: &Seat, _: Option<SessionId>, messages: Vec<Message>) {
        let mut model = self.model();
        if model.is_dead {
            return;
        }
        for id in messages.into_iter().filter_map(|message| message.id) {
            model.note(format!("message {id} for {seat} is dead"));
            model.moved(id, Fate::Dead);
        }
    }
}

/// Every worker does what it is told.
pub(crate) struct Worker(pub(crate) World);

impl Body<World> for Worker {
    fn run(&self, process: Process<World>) -> Life {
        let (world, process) = (self.0.clone(), Arc::new(process));
        Life::exiting(async move {
            world.model().runs(process.pid());
            world.ghosts().push(process.clone());
            world.books().enter(process.seat());
            process.trap_exits(traps(process.pid()));
            work(&world, &process).await
        })
    }
}

async fn work(world: &World, process: &Process<World>) -> ExitReason {
    let pid = process.pid();
    loop {
        match process.receive().await {
            Incoming::Stop => {
                pause(world).await;
                return ExitReason::Shutdown;
            }
            Incoming::Exit(signal) => {
                let mut model = world.model();
                model.note(format!("{pid} hears {signal:?}"));
                model.heard(pid, &signal);
            }
            Incoming::Message(message) => {
                take(world, process, &message);
                if let Some(reason) = act(world, process, message).await {
                    return reason;
                }
            }
            Incoming::Request(_, reply) => {
                pause(world).await;
                let answer = Message { id: None, word: Word::Nothing, whom: pid };
                let _is_heard: bool = reply.send(answer);
            }
        }
        pause(world).await;
    }
}

fn take(world: &World, process: &Process<World>, message: &Message) {
    let (pid, seat) = (process.pid(), process.seat().to_string());
    let is_held = world.suspended().get(&seat).is_some_and(Address::is_open);
    let is_living = world.is_living(pid);
    let mut model = world.model();
    model.note(format!("{pid} takes {:?} {:?}", message.id, message.word));
    if is_held {
        model.wrong(format!("{pid} takes a message, and {seat} is suspended"));
    }
    if !is_living {
        model.wrong(format!("{pid} is over and takes a message"));
    }
    if let Some(id) = message.id {
        model.moved(id, Fate::Taken);
    }
}

async fn pause(world: &World) {
    let turns = world.model().roll(4);
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

/// Does what a message says; the reason, if it is to exit.
async fn act(world: &World, process: &Process<World>, message: Message) -> Option<ExitReason> {
    let (pid, whom) = (process.pid(), message.whom);
    match message.word {
        Word::Nothing => {}
        Word::Normal => return Some(ExitReason::Normal),
        Word::Error => return Some(ExitReason::Error("told to".to_owned())),
        Word::Panic => panic!("told to"),
        Word::Works(time) => process.sleep(time).await,
        Word::Link(_) => {
            let pair = (pid.min(whom), pid.max(whom));
            if whom != pid && world.model().pairs.insert(pair) {
                world.model().links.insert(pair);
                process.link(whom);
            }
        }
        Word::Unlink(_) => {
            if world.is_living(whom) {
                process.unlink(whom);
                world.model().links.remove(&(pid.min(whom), pid.max(whom)));
            }
        }
        Word::Monitor(_) => {
            let monitor = process.monitor(whom);
            let watched = Watched { monitor, by: pid, whom, told: 0, is_over: false };
            world.model().monitors.push(watched);
        }
        Word::Demonitor => {
            let mut model = world.model();
            let own = model.monitors.iter_mut().find(|one| one.by == pid && one.told == 0 && !one.is_over);
            if let Some(one) = own {
                one.is_over = process.demonitor(one.monitor);
            }
        }
        Word::Kills(_) => drop(process.exit(whom, ExitReason::Killed)),
        Word::Sends(_) => {
            let _full: Result<(), NotSent> = world.send(Word::Nothing, pid, |message| process.send(whom, message));
        }
        Word::Calls(bill, time, waits) => {
            let flight = depart(world, process, bill);
            world.model().note(format!("{pid} calls {bill:?}: {}", flight.is_some()));
            if let Some(flight) = flight {
                let flies = fly(process.sleep(time), process.fence(), bill, world.model().roll(3), flight);
                match waits {
                    Waits::Yes => flies.await,
                    Waits::No => drop(tokio::spawn(flies)),
                }
            }
        }
        Word::Asks(_) => {
            let message = Message { id: None, word: Word::Nothing, whom: pid };
            let _unanswered: Result<_, _> = process.request(whom, message, Duration::from_secs(2)).await;
        }
    }
    None
}

/// Begins a call, as the door does: one that is fenced begins none.
pub(crate) fn depart(world: &World, process: &Process<World>, bill: Bill) -> Option<Flight> {
    if process.is_live() { world.books().depart(process.seat(), bill) } else { None }
}

/// A call on its way, to its end or until its caller is fenced: then it says what it used, or is lost.
async fn fly(takes: Sleep, fence: CancellationToken, bill: Bill, how: u64, flight: Flight) {
    tokio::select! {
        biased;
        () = fence.cancelled() => match how {
            0 => flight.land(0),
            1 => flight.land(bill.actual),
            _ => drop(flight),
        },
        () = takes => flight.land(bill.actual),
    }
}

/// Rolls of their own for one simulation.
pub(crate) fn model(seed: u64) -> Model {
    Model { dice: Some(Dice(seed ^ 0x5151)), ..Model::default() }
}
