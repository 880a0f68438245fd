//! A kernel over a real chain on a real disk, with drivers and agents that do what a test wants.

use std::{
    collections::{BTreeMap, HashMap},
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ed25519_dalek::{Signer, SigningKey};
use ephor_base::{
    Action, Arguments, Budget, CallId, Capability, Clock, Confidentiality, Digest, EffectVector, EndReason, FileId,
    Integrity, Kept, Leads, Limits, Located, ModelAction, ModelAnswer, ModelRef, Offset, OperatorId, Outcome, Part,
    PartKind, Pid, Place, Product, Prompt, PromptMessage, Random, Registration, ReplyAction, Secret, Seq, SessionId,
    SpanId, Task, Timestamp, ToolAction, ToolAnswer, ToolName, ToolUse, Workspace,
    files::{File, Files, Open, Tree},
};
use ephor_chain::{Config, Log, SigningKeys, Stored, VaultKey, disk::Disk};
use ephor_governance::{Constitution, Gate, OperatorPolicy, Registry, Rights};
use ephor_kernel::{
    AgentSpec, Answered, Appointments, Body, Call, CallContext, DoorParts, Draft, Driver, DriverResult, Drivers,
    Estimate, FirstNumbers, Found, Incoming, Kernel, Life, Locating, NotDecreed, Patience, Permit, Process, Refusal,
    Roster, Running, Secrets, Seen, SessionSpec, SignedRuling, Sought, Statement, Subscription, TurnLimits, Watchers,
    found, operator_id,
};
use ephor_record::{Appointment, Decree, Fact, Role, RulingOn};
use tokio::sync::{mpsc, oneshot};

thread_local! {
    /// Whether the clock panics when it is read next on this thread.
    pub(crate) static PANICS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Time from a fixed start, so that nothing in a record depends on the day.
#[derive(Debug)]
pub(crate) struct TestClock(Instant, AtomicU64);

impl TestClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.1.fetch_add(u64::try_from(by.as_micros()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_800_000_000_000_000).plus(self.monotonic())
    }
    fn monotonic(&self) -> Duration {
        assert!(!PANICS.replace(false), "told to");
        self.0.elapsed() + Duration::from_micros(self.1.load(Ordering::Relaxed))
    }
    /// A zone of the tests is called by its minutes, such as `test/-660`.
    fn offset(&self, zone: &str, _: Timestamp) -> Option<Offset> {
        Offset::of_minutes(zone.strip_prefix("test/")?.parse().ok()?)
    }
}

/// Random enough for a test: it never repeats.
pub(crate) struct Seeded(AtomicU64);

impl Random for Seeded {
    fn fill(&self, into: &mut [u8]) {
        for chunk in into.chunks_mut(32) {
            let n = self.0.fetch_add(1, Ordering::Relaxed);
            let Digest(bytes) = Digest::of(&n.to_le_bytes());
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

/// The disk, until it is told to fail.
#[derive(Clone, Default)]
pub(crate) struct Breakable(Arc<AtomicBool>, Arc<Held>);

/// Whoever brings something to the disk waits here while it is held.
#[derive(Default)]
struct Held {
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Breakable {
    /// From here on nothing reaches the disk, until it is released.
    pub(crate) fn hold(&self) {
        self.1.state.lock().unwrap().0 = true;
    }
    pub(crate) fn release(&self) {
        self.1.state.lock().unwrap().0 = false;
        self.1.changed.notify_all();
    }
    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.1.state.lock().unwrap().1
    }
    fn wait(&self) {
        let mut state = self.1.state.lock().unwrap();
        state.1 += 1;
        while state.0 {
            state = self.1.changed.wait(state).unwrap();
        }
        state.1 -= 1;
    }
    pub(crate) fn break_now(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
    fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(io::Error::other("the disk is broken")) } else { Ok(()) }
    }
}

struct BreakableFile(Arc<dyn File>, Breakable);

impl File for BreakableFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(into, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.1.check()?;
        self.0.write_at(bytes, offset)
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn set_len(&self, length: u64) -> io::Result<()> {
        self.1.check()?;
        self.0.set_len(length)
    }
    fn allocate(&self, length: u64) -> io::Result<()> {
        self.1.check()?;
        self.0.allocate(length)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.1.wait();
        self.1.check()?;
        self.0.sync_data()
    }
}

struct BreakableTree(Arc<dyn Tree>, Breakable);

impl Tree for BreakableTree {
    fn sync(&self) -> io::Result<()> {
        self.1.check()?;
        self.0.sync()
    }
}

impl Files for Breakable {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(BreakableFile(Disk.open(path, how)?, self.clone())))
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        Disk.list(folder)
    }
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.check()?;
        Disk.create_folder(folder)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check()?;
        Disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        Disk.remove(path)
    }
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.check()?;
        Disk.sync_folder(folder)
    }
    fn tree(&self, folder: &Path) -> io::Result<Arc<dyn Tree>> {
        Ok(Arc::new(BreakableTree(Disk.tree(folder)?, self.clone())))
    }
    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        self.check()?;
        Disk.remove_folder(folder)
    }
}

type Doing = Pin<Box<dyn Future<Output = DriverResult> + Send>>;

/// A driver that does what a closure says, and counts how often it ran.
pub(crate) struct Does {
    runs: AtomicUsize,
    estimate: Budget,
    run: Box<dyn Fn(Permit, CallContext) -> Doing + Send + Sync>,
}

impl Does {
    pub(crate) fn new<F, D>(run: F) -> Arc<Self>
    where
        F: Fn(Permit, CallContext) -> D + Send + Sync + 'static,
        D: Future<Output = DriverResult> + Send + 'static,
    {
        Self::costing(Budget::ZERO, run)
    }
    pub(crate) fn costing<F, D>(estimate: Budget, run: F) -> Arc<Self>
    where
        F: Fn(Permit, CallContext) -> D + Send + Sync + 'static,
        D: Future<Output = DriverResult> + Send + 'static,
    {
        let run = Box::new(move |permit, context| -> Doing { Box::pin(run(permit, context)) });
        Arc::new(Self { runs: AtomicUsize::new(0), estimate, run })
    }
    /// A tool that says `text`.
    pub(crate) fn saying(text: &'static str) -> Arc<Self> {
        Self::new(move |_, _| async move { said(text) })
    }
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Driver for Does {
    fn estimate(&self, _: &Estimate<'_>) -> Budget {
        self.estimate
    }
    /// There is no disk here: each path is the file it says.
    fn locate(&self, sought: Sought) -> Locating {
        let found = |located| Found { kept: kept(&located), located };
        let files = located(&sought, Digest::of(b"content")).into_iter().map(found).collect();
        Locating::new(std::future::ready(files))
    }
    fn run(&self, permit: Permit, context: CallContext) -> Running {
        self.runs.fetch_add(1, Ordering::SeqCst);
        Running::new((self.run)(permit, context))
    }
}

/// What a call replaces there.
fn kept(located: &Located) -> Option<Kept> {
    let Leads::To(place) = &located.leads else { return None };
    place.content.map(|_| Kept { path: place.path.clone(), held: Some(b"content".to_vec()), mode: 0o644 })
}

/// Every path of a call as a file of its own that holds this.
pub(crate) fn located(sought: &Sought, content: Digest) -> Vec<Located> {
    let place = |path: &str| Place {
        path: ephor_governance::paths::resolved(path),
        exists: true,
        node: FileId { device: 1, inode: path.len() as u64 },
        names: 1,
        content: sought.replaces.then_some(content),
        keeps: sought.replaces.then_some(7),
        makes: None,
    };
    let one =
        |(argument, path): &(String, String)| Located { argument: argument.clone(), leads: Leads::To(place(path)) };
    sought.paths.iter().map(one).collect()
}

pub(crate) fn said(text: &str) -> DriverResult {
    DriverResult::done(Product::Tool(ToolAnswer { text: text.into(), failed: false }), Budget::ZERO)
}

pub(crate) fn answered(answer: ModelAnswer) -> DriverResult {
    DriverResult::done(Product::Model(answer), Budget::ZERO)
}

/// A model that gives these answers one after another, and the last one for ever.
pub(crate) fn model(answers: Vec<ModelAnswer>) -> Arc<Does> {
    Does::new(move |permit, _| {
        let Task::Model(task) = permit.task() else { panic!("not a model task") };
        let at = usize::try_from(task.ordinal).unwrap().min(answers.len() - 1);
        let answer = answers[at].clone();
        async move { answered(answer) }
    })
}

pub(crate) fn text(text: &str) -> ModelAnswer {
    ModelAnswer { text: text.into(), ..ModelAnswer::default() }
}

pub(crate) fn uses(tools: &[(&str, &str)]) -> ModelAnswer {
    let tool_uses = tools
        .iter()
        .zip(0..)
        .map(|((name, arguments), n): (_, u32)| ToolUse {
            id: format!("use-{n}"),
            name: (*name).into(),
            arguments: (*arguments).into(),
        })
        .collect();
    ModelAnswer { tool_uses, ..ModelAnswer::default() }
}

/// A read-only tool with one optional argument, `path`.
pub(crate) fn reader(name: &str) -> Registration {
    Registration {
        name: name.parse().unwrap(),
        description: "for a test".into(),
        schema: r#"{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}"#.into(),
        code: Digest::of(name.as_bytes()),
        capability: Capability::FsRead,
        effects: EffectVector::new(10, 0, 10, 0, 0),
        paths: vec!["path".into()],
        consequential: Vec::new(),
        integrity: Integrity::Untrusted,
        confidentiality: Confidentiality::Internal,
        limits: Limits { fuel: 1, deadline_ms: 60_000, memory_bytes: 1, output_bytes: 1 },
        nested: Vec::new(),
        flow: ephor_base::Flow::looks(),
        reach: ephor_base::Reach::default(),
    }
}

/// A tool that writes, and so is asked about.
pub(crate) fn writer(name: &str) -> Registration {
    let flow = ephor_base::Flow::acts();
    Registration { capability: Capability::FsWrite, consequential: vec!["path".into()], flow, ..reader(name) }
}

struct Keyring(Mutex<HashMap<String, String>>);

impl Secrets for Keyring {
    fn secret(&self, name: &str) -> Option<Secret<String>> {
        self.0.lock().unwrap().get(name).cloned().map(Secret::new)
    }
}

/// A kernel to be booted.
pub(crate) struct Setup {
    pub(crate) tools: Vec<(Registration, Arc<dyn Driver>)>,
    pub(crate) model: Arc<dyn Driver>,
    pub(crate) reply: Arc<dyn Driver>,
    pub(crate) patience: Patience,
    pub(crate) turn: TurnLimits,
    pub(crate) policy: OperatorPolicy,
    pub(crate) secrets: HashMap<String, String>,
    pub(crate) disk: Breakable,
    pub(crate) law: Option<&'static str>,
    /// Time that has passed before the boot, by the wall clock.
    pub(crate) later: Duration,
    pub(crate) takes_up: bool,
    /// The agents of its configuration.
    pub(crate) agents: Vec<Appointment>,
}

impl Setup {
    pub(crate) fn new() -> Self {
        Self {
            tools: Vec::new(),
            model: model(vec![text("hello")]),
            reply: Does::new(|_, _| async { DriverResult::done(Product::Delivered, Budget::ZERO) }),
            patience: Patience::default(),
            turn: TurnLimits::default(),
            policy: OperatorPolicy::default(),
            secrets: HashMap::new(),
            disk: Breakable::default(),
            law: None,
            later: Duration::ZERO,
            takes_up: false,
            agents: Vec::new(),
        }
    }
    pub(crate) fn tool(mut self, registration: Registration, driver: Arc<Does>) -> Self {
        self.tools.push((registration, driver));
        self
    }
    pub(crate) fn model(mut self, driver: Arc<Does>) -> Self {
        self.model = driver;
        self
    }
    pub(crate) async fn boot(self) -> World {
        self.boot_in(Arc::new(tempfile::tempdir().unwrap()), 1000).await
    }
    /// As [`Setup::boot_in`], and every unfinished session goes on, with an agent in the hands of the test.
    pub(crate) async fn take_up_in(self, folder: Arc<tempfile::TempDir>, seed: u64) -> World {
        Self { takes_up: true, ..self }.boot_in(folder, seed).await
    }
    /// Boots on the folder of an earlier boot, with the same keys; `seed` is another one each time.
    pub(crate) async fn boot_in(self, folder: Arc<tempfile::TempDir>, seed: u64) -> World {
        let (disk, random) = (self.disk, Seeded(AtomicU64::new(1)));
        let clock = Arc::new(TestClock(Instant::now(), AtomicU64::new(0)));
        clock.advance(self.later);
        let (keys, vault) = (SigningKeys::generate(&random), Arc::new(VaultKey::generate(&random)));
        let random = Arc::new(Seeded(AtomicU64::new(seed)));
        let config = Config::in_home(folder.path());
        let (log, recovered) =
            Log::open(config, keys, vault, Arc::new(disk.clone()), clock.clone(), random.clone(), "test").unwrap();
        let operator = SigningKey::from_bytes(&[7; 32]);
        found(&log, &operator, "ada").await.unwrap();
        let (registrations, tools): (Vec<_>, BTreeMap<_, _>) =
            self.tools.into_iter().map(|(tool, driver)| (tool.clone(), (tool.name, driver))).unzip();
        let watchers = Arc::new(Watchers::default());
        let text = self.law.unwrap_or_else(|| Constitution::default_text(self.policy.environment));
        let constitution = Constitution::parse(text).unwrap();
        let parts = DoorParts {
            log: log.clone(),
            gate: Gate::new(constitution, self.policy, Registry::new(registrations).unwrap()).unwrap(),
            drivers: Drivers { model: self.model, reply: self.reply, tools },
            secrets: Arc::new(Keyring(Mutex::new(self.secrets))),
            clock: clock.clone(),
            watchers: watchers.clone(),
            patience: self.patience,
            turn: self.turn,
            appointments: Appointments::new(self.agents),
        };
        let first =
            FirstNumbers { call: recovered.next_call, message: recovered.next_message, ticket: recovered.next_ticket };
        let kernel = Kernel::boot(parts, first, recovered.next_pid, random).await.unwrap();
        let births = Births::default();
        let body = |session| self.takes_up.then(|| births.body(session));
        let gone_on = kernel.take_up(body).await.unwrap();
        World { folder, kernel, log, operator, disk, clock, births, gone_on }
    }
}

/// A kernel at work.
pub(crate) struct World {
    folder: Arc<tempfile::TempDir>,
    pub(crate) kernel: Kernel,
    pub(crate) log: Log,
    pub(crate) operator: SigningKey,
    pub(crate) disk: Breakable,
    pub(crate) clock: Arc<TestClock>,
    births: Births,
    /// The sessions that went on at the boot.
    pub(crate) gone_on: Vec<SessionId>,
}

/// What the agents are born through that were taken up at a boot.
#[derive(Clone, Default)]
struct Births(Arc<Mutex<HashMap<SessionId, Born>>>);

/// What one of them is born through, with each incarnation.
struct Born(mpsc::UnboundedReceiver<(Process, oneshot::Sender<End>)>);

impl Births {
    fn body(&self, session: SessionId) -> Arc<dyn Body> {
        let (sender, births) = mpsc::unbounded_channel();
        self.0.lock().unwrap().insert(session, Born(births));
        Arc::new(Strings(sender))
    }
}

impl World {
    /// The first owner.
    pub(crate) fn who(&self) -> OperatorId {
        operator_id(&self.operator.verifying_key())
    }
    /// The time by the clock of the kernel.
    pub(crate) fn kernel_now(&self) -> Timestamp {
        self.clock.now()
    }
    /// The owner decrees something.
    pub(crate) async fn decree(&self, decree: Decree) -> Result<Seq, NotDecreed> {
        let Roster { origin, latest, .. } = self.kernel.roster();
        self.kernel.decree(self.who(), decree.sign(&origin, latest, &self.operator)).await
    }
    /// The owner puts a constitution in force.
    pub(crate) async fn enact(&self, text: &str) -> Result<Seq, NotDecreed> {
        let constitution = Constitution::parse(text).unwrap();
        let Draft { origin, latest, decree } = self.kernel.draft(constitution.clone())?;
        let signature = self.operator.sign(&decree.signed_bytes(&origin, latest)).to_bytes().to_vec();
        self.kernel.enact(self.who(), constitution, signature).await
    }
    /// Enrols an operator, whose key is made from a seed.
    pub(crate) async fn enrol(&self, seed: u8, role: Role) -> SigningKey {
        let key = SigningKey::from_bytes(&[seed; 32]);
        let decree = Decree::Enrol { key: key.verifying_key().to_bytes(), name: format!("n-{seed}"), role };
        self.decree(decree).await.unwrap();
        key
    }
}

pub(crate) const PLENTY: Budget =
    Budget { tokens: 1_000_000, micro_usd: 1_000_000, wall_ms: 1_000_000_000, tool_calls: 1_000_000, ..Budget::ZERO };

impl World {
    pub(crate) fn spec(&self) -> SessionSpec {
        SessionSpec {
            operator: operator_id(&self.operator.verifying_key()),
            model: ModelRef { provider: "script".into(), name: "test".into(), script: "".into() },
            workspace: Workspace::new("/tmp".into()).unwrap(),
            agent: Appointments::plain(Appointments::DEFAULT),
            rights: Rights::of([Capability::Model, Capability::Reply, Capability::FsRead, Capability::FsWrite]),
            instructions: "Be good.".into(),
        }
    }
    /// Opens a session whose agent is in the hands of the test.
    pub(crate) async fn puppet(&self, budget: Budget) -> Puppet {
        self.puppet_with(budget, self.spec()).await
    }
    pub(crate) async fn puppet_with(&self, budget: Budget, session: SessionSpec) -> Puppet {
        let (sender, births) = mpsc::unbounded_channel();
        let budget = Budget { messages: 1000, ..budget };
        let spec = AgentSpec { session, budget, body: Arc::new(Strings(sender)) };
        let session = self.kernel.open_session(spec).await.unwrap();
        Puppet { session, births, kernel: self.kernel.clone() }
    }
    /// A session that went on at the boot, its agent in the hands of the test.
    pub(crate) fn taken_up(&self, session: SessionId) -> Puppet {
        let Born(births) = self.births.0.lock().unwrap().remove(&session).unwrap();
        Puppet { session, births, kernel: self.kernel.clone() }
    }
    /// Comes back to a session that rests.
    pub(crate) async fn attach(&self, session: SessionId) -> (Puppet, ephor_kernel::Attached) {
        let attached = self.kernel.attach(session, self.births.body(session)).await.unwrap();
        (self.taken_up(session), attached)
    }
    /// A body for what does not come to life.
    pub(crate) fn no_body(&self) -> Arc<dyn Body> {
        self.births.body(SessionId([0; 16]))
    }
    /// The home as a crash at this moment would leave it.
    pub(crate) fn crashed(&self) -> Arc<tempfile::TempDir> {
        let copy = Arc::new(tempfile::tempdir().unwrap());
        copy_folder(self.folder.path(), copy.path());
        copy
    }
    /// Everything on the record.
    pub(crate) async fn record(&self) -> Vec<Stored> {
        self.log.flush().await.unwrap();
        self.log.entries().map(|entry| entry.unwrap()).collect()
    }
    /// The facts of a session, in order.
    pub(crate) async fn facts(&self, session: SessionId) -> Vec<Fact> {
        let record = self.record().await;
        record.into_iter().filter(|one| one.entry.subject.session == Some(session)).map(|one| one.entry.fact).collect()
    }
    pub(crate) fn ruling(&self, session: SessionId, on: RulingOn, arguments: Digest) -> Statement {
        let policy = self.kernel.policy();
        let asked = self.kernel.questions().into_iter().map(|(question, _)| question);
        let asked = asked.filter(|asked| on == RulingOn::Ticket(asked.ticket)).last();
        let shown = asked.as_ref().map(|asked| asked.text.digest());
        let (call, registration) = asked.map_or((None, None), |asked| (Some(asked.call), Some(asked.registration)));
        let (decision, always, note) = (ephor_base::Decision::Permit, None, None);
        Statement { session, on, decision, arguments, policy, call, registration, always, note, shown }
    }
    /// Lets these tools run in a session without asking.
    pub(crate) fn allow(&self, session: SessionId, tools: &[&str]) -> SignedRuling {
        let tools = tools.iter().map(|tool| tool.parse().unwrap()).collect();
        self.ruling(session, RulingOn::Tools(tools), Digest::of(&[])).sign(&self.operator)
    }
    /// The live process in the seat of a session's agent.
    pub(crate) fn agent_of(&self, session: SessionId) -> Option<Pid> {
        let live = |info: &ephor_kernel::ProcessInfo| info.session == Some(session) && info.seat.name() == "loop";
        self.kernel.processes().into_iter().find(live).map(|info| info.pid)
    }
    /// What the session's seat holds and has used.
    pub(crate) fn account(&self, process: &Process) -> ephor_kernel::Account {
        self.kernel.account(process.seat()).unwrap()
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else if std::fs::copy(entry.path(), target).is_err() {
            // A file that was replaced meanwhile.
            assert!(entry.path().extension().is_some_and(|extension| extension == "tmp"));
        }
    }
}

/// The body of a puppet: it hands its process to the test and ends as it is told.
struct Strings(mpsc::UnboundedSender<(Process, oneshot::Sender<End>)>);

/// How a puppet ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Normal,
    Error,
    Panic,
}

impl Body for Strings {
    fn run(&self, process: Process) -> Life {
        let (sender, end) = oneshot::channel();
        let _gone: Result<(), _> = self.0.send((process, sender));
        Life::new(async move {
            match end.await {
                Ok(End::Error) => Err("told to".to_owned()),
                Ok(End::Panic) => panic!("told to"),
                Ok(End::Normal) | Err(_) => Ok(()),
            }
        })
    }
}

/// A session whose agent the test plays.
pub(crate) struct Puppet {
    pub(crate) session: SessionId,
    births: mpsc::UnboundedReceiver<(Process, oneshot::Sender<End>)>,
    kernel: Kernel,
}

impl Puppet {
    /// The next incarnation. The body ends when the sender is used or dropped.
    pub(crate) async fn born(&mut self) -> (Process, oneshot::Sender<End>) {
        self.births.recv().await.unwrap()
    }
    pub(crate) async fn say(&self, words: &str) {
        let part = Part { kind: PartKind::Typed, text: words.into() };
        self.kernel.send(self.session, vec![part]).await.unwrap();
    }
    /// The next incarnation, which has begun the turn that answers `words`.
    pub(crate) async fn in_turn(&mut self, words: &str) -> (Process, oneshot::Sender<End>) {
        self.say(words).await;
        let (process, end) = self.born().await;
        assert!(matches!(process.receive().await, Incoming::Message(_)));
        (process, end)
    }
}

pub(crate) fn ask(spans: Vec<SpanId>) -> Action {
    let messages = vec![PromptMessage::System(vec![SpanId(0)]), PromptMessage::User(spans)];
    Action::Model(ModelAction { prompt: Prompt { messages }, offer_tools: true, max_output_tokens: 100 })
}

pub(crate) fn chosen(by: CallId, index: u32) -> Action {
    Action::Tool(ToolAction::Chosen { by, index })
}

pub(crate) fn direct(name: &str, arguments: &str) -> Action {
    Action::Tool(ToolAction::Direct { name: name.parse().unwrap(), arguments: Arguments::parse(arguments).unwrap() })
}

pub(crate) fn reply(answer: Option<CallId>) -> Action {
    Action::Reply(ReplyAction { answer, end: EndReason::Replied })
}

pub(crate) async fn done(process: &Process, action: Action) -> Result<Answered, Refusal> {
    process.call(action).unwrap().ended().await
}

/// Asks the model and gives the call.
pub(crate) async fn asked(process: &Process) -> CallId {
    done(process, ask(vec![SpanId(1)])).await.unwrap().call
}

/// The kinds of facts that tell of calls, in order.
pub(crate) fn kinds(facts: &[Fact]) -> Vec<&'static str> {
    facts.iter().map(Fact::kind).collect()
}

/// The call waits for a person: what is asked.
pub(crate) async fn question(seen: &mut Subscription) -> ephor_kernel::Question {
    loop {
        if let Some(Seen::Deferred(question)) = seen.recv().await {
            return *question;
        }
    }
}

/// Waits until the driver runs.
pub(crate) async fn running(call: &mut Call) {
    while !matches!(call.next().await, Some(ephor_kernel::CallState::Started)) {}
}

pub(crate) fn name(tool: &str) -> ToolName {
    tool.parse().unwrap()
}

/// Lets other tasks go on until `done`.
pub(crate) async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) fn code(result: &Result<Answered, Refusal>) -> String {
    match result {
        Ok(answered) => answered.outcome.code().to_owned(),
        Err(refusal) => format!("{refusal:?}").split([' ', '(', '{']).next().unwrap().to_owned(),
    }
}

/// Every intent of a record has exactly one outcome, behind it.
pub(crate) fn is_settled(record: &[Stored]) -> bool {
    let intents = record.iter().filter(|one| matches!(one.entry.fact, Fact::Intent { .. }));
    intents.into_iter().all(|intent| {
        let ends = |one: &&Stored| matches!(one.entry.fact, Fact::Outcome { intent: of, .. } if of == intent.entry.seq);
        record.iter().filter(ends).count() == 1
    })
}

pub(crate) const CANCELLED: Outcome = Outcome::Cancelled;
