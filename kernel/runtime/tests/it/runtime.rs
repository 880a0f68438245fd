//! The runtime of processes by itself, through its public face: what OTP's supervisor suite asks, and attacks on it.

mod attacks;
mod exits;
mod fairness;
mod hangs;
mod live;
mod ports;
mod starts;
mod stops;
mod strategies;
mod timers;

use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use ephor_base::{ExitReason, Pid, Seat, SessionId};
use ephor_runtime::{
    Begin, Body, ChildSpec, Host, Incoming, Later, Life, News, NotPlanted, Process, Runtime, SPIN, Supervision,
    SupervisorSpec, Told, What,
    supervisor::{AutoShutdown, Backoff, Flags, Intensity, Restart, Shutdown, Strategy},
    timers::Timers,
};
use tokio::runtime::{Handle, RuntimeFlavor};

/// A host that writes down what it is told: `+seat`, `-seat reason`, `?seat message`.
#[derive(Clone)]
struct Notes {
    timers: Timers,
    ahead: Arc<AtomicU64>,
    lines: Arc<Mutex<Vec<String>>>,
    is_broken: Arc<AtomicBool>,
    is_slow: Arc<AtomicBool>,
}

impl Notes {
    /// On one thread the clock is tokio's, and may be one that jumps.
    fn new() -> Self {
        let (began, ahead) = (tokio::time::Instant::now(), Arc::<AtomicU64>::default());
        let clock = {
            let ahead = ahead.clone();
            move || began.elapsed() + Duration::from_millis(ahead.load(Ordering::SeqCst))
        };
        let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
        let timers = if matches!(flavor, Ok(RuntimeFlavor::CurrentThread)) {
            let timers = Timers::by_hand(clock);
            drop(tokio::spawn(timers.kept(tokio::time::sleep)));
            timers
        } else {
            Timers::of_machine(clock)
        };
        Self { ahead, ..Self::on(timers) }
    }
    fn on(timers: Timers) -> Self {
        let (ahead, lines, is_broken, is_slow) = (Arc::default(), Arc::default(), Arc::default(), Arc::default());
        Self { timers, ahead, lines, is_broken, is_slow }
    }
    fn note(&self, line: impl Into<String>) {
        self.lines.lock().unwrap().push(line.into());
    }
    /// What was noted since the last time.
    fn drain(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }
    fn count(&self, line: &str) -> usize {
        self.lines.lock().unwrap().iter().filter(|one| *one == line).count()
    }
}

impl Host for Notes {
    type Message = String;
    fn timers(&self) -> &Timers {
        &self.timers
    }
    fn tell(&self, news: &mut Vec<News<Self>>) -> Told {
        if self.is_broken.load(Ordering::SeqCst) {
            return Told::Refused("the record is broken".to_owned());
        }
        for one in news.drain(..) {
            match one.what() {
                What::Born { .. } => self.note(format!("+{}", one.seat())),
                What::Exited(reason) => self.note(format!("-{} {}", one.seat(), reason.code())),
                What::Restarting(_) => {}
            }
        }
        match self.is_slow.load(Ordering::SeqCst) {
            true => Told::Later(Later::new(async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                Ok(())
            })),
            false => Told::Taken,
        }
    }
    fn undelivered(&self, seat: &Seat, _: Option<SessionId>, messages: Vec<String>) {
        messages.into_iter().for_each(|message| self.note(format!("?{seat} {message}")));
    }
}

type Doing = std::pin::Pin<Box<dyn Future<Output = ExitReason> + Send>>;

/// A body that does what closures say.
struct Does {
    begin: Box<dyn Fn() -> Begin + Send + Sync>,
    run: Box<dyn Fn(Process<Notes>) -> Doing + Send + Sync>,
}

impl Body<Notes> for Does {
    fn begin(&self) -> Begin {
        (self.begin)()
    }
    fn run(&self, process: Process<Notes>) -> Life {
        Life::exiting((self.run)(process))
    }
}

fn does<F, D>(run: F) -> Arc<dyn Body<Notes>>
where
    F: Fn(Process<Notes>) -> D + Send + Sync + 'static,
    D: Future<Output = ExitReason> + Send + 'static,
{
    begins(|| Begin::Runs, run)
}

fn begins<B, F, D>(begin: B, run: F) -> Arc<dyn Body<Notes>>
where
    B: Fn() -> Begin + Send + Sync + 'static,
    F: Fn(Process<Notes>) -> D + Send + Sync + 'static,
    D: Future<Output = ExitReason> + Send + 'static,
{
    Arc::new(Does { begin: Box::new(begin), run: Box::new(move |process| Box::pin(run(process))) })
}

/// Serves until it is stopped, and does what messages say.
async fn serve(process: Process<Notes>) -> ExitReason {
    loop {
        match process.receive().await {
            Incoming::Stop => return ExitReason::Shutdown,
            Incoming::Exit(signal) => process.host().note(format!("!{} {signal:?}", process.seat())),
            Incoming::Message(text) => match text.as_str() {
                "normal" => return ExitReason::Normal,
                "shutdown" => return ExitReason::Shutdown,
                "error" => return ExitReason::Error("told to".to_owned()),
                "panic" => panic!("told to"),
                text => process.host().note(format!("{} {text}", process.seat())),
            },
            Incoming::Request(text, reply) => {
                reply.send(format!("{text}!"));
            }
        }
    }
}

fn server() -> Arc<dyn Body<Notes>> {
    does(serve)
}

/// Never stops.
fn deaf() -> Arc<dyn Body<Notes>> {
    does(|process| async move {
        let _kept = process;
        std::future::pending().await
    })
}

fn worker(name: &str) -> ChildSpec<Notes> {
    ChildSpec::worker(name, server())
}

const PLENTY: Intensity = Intensity { restarts: 1_000_000, period: Duration::from_secs(3600) };

fn flags(strategy: Strategy) -> Flags {
    Flags {
        strategy,
        intensity: PLENTY,
        auto_shutdown: AutoShutdown::Never,
        backoff: Backoff::NONE,
        independent: false,
    }
}

fn supervisor(name: &str, flags: Flags, children: Vec<ChildSpec<Notes>>) -> ChildSpec<Notes> {
    ChildSpec::supervisor(name, SupervisorSpec::new(flags, children))
}

/// A tree below `r`.
struct Tree {
    notes: Notes,
    runtime: Runtime<Notes>,
    root: Supervision<Notes>,
}

impl Tree {
    async fn try_of(flags: Flags, children: Vec<ChildSpec<Notes>>) -> (Notes, Result<Self, NotPlanted>) {
        let notes = Notes::new();
        let runtime = Runtime::new(notes.clone(), Pid(1), SPIN);
        let planted = runtime.plant("r", &SupervisorSpec::new(flags, children)).await;
        (notes.clone(), planted.map(|root| Self { notes, runtime, root }))
    }
    async fn of(flags: Flags, children: Vec<ChildSpec<Notes>>) -> Self {
        Self::try_of(flags, children).await.1.unwrap()
    }
    async fn one_for_one(children: Vec<ChildSpec<Notes>>) -> Self {
        Self::of(flags(Strategy::OneForOne), children).await
    }
    fn find(&self, seat: &str) -> Option<Pid> {
        self.runtime.processes().into_iter().find(|one| one.seat.as_str() == seat).map(|one| one.pid)
    }
    fn pid(&self, seat: &str) -> Pid {
        self.find(seat).unwrap_or_else(|| panic!("nobody is at `{seat}`"))
    }
    fn tell(&self, seat: &str, words: &str) {
        self.runtime.send(self.pid(seat), words.to_owned()).unwrap();
    }
    /// Has the one at `seat` exit, and waits for the next one there.
    async fn renew(&self, seat: &str, words: &str) -> Pid {
        let before = self.pid(seat);
        self.tell(seat, words);
        self.after(seat, before).await
    }
    async fn after(&self, seat: &str, before: Pid) -> Pid {
        until(|| self.find(seat).is_some_and(|pid| pid > before)).await;
        self.pid(seat)
    }
    fn is_empty(&self) -> bool {
        self.runtime.processes().is_empty()
    }
}

/// Handles of dynamic children, which stay where they are.
async fn handles(many: usize) -> (Tree, Vec<Process<Notes>>) {
    let (sender, mut births) = tokio::sync::mpsc::unbounded_channel();
    let hands = does(move |process| {
        sender.send(process).unwrap();
        std::future::pending()
    });
    let child = ChildSpec { restart: Restart::Temporary, ..ChildSpec::worker("c", hands) };
    let tree = Tree::of(flags(Strategy::Dynamic), vec![child]).await;
    let mut processes = Vec::new();
    for _ in 0..many {
        tree.root.start_dynamic(None).await.unwrap();
        processes.push(births.recv().await.unwrap());
    }
    (tree, processes)
}

/// Lets others go on until `done`.
async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A brutal end.
fn brutal(child: ChildSpec<Notes>) -> ChildSpec<Notes> {
    ChildSpec { shutdown: Shutdown::Brutal, ..child }
}
