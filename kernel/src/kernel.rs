//! The kernel of a node: its tree, its door, its table.

use std::{
    collections::BTreeSet,
    future::Future,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use ephor_base::{
    Budget, Digest, Exhausted, ExitReason, MessageId, Part, Pid, Random, Seat, SessionId, ToolName, cbor,
};
use ephor_record::{Appointment, Fact, Pin, Record, Subject, Unanswered, Undelivered, standing::is_at_or_below};
use ephor_runtime as runtime;
use ephor_runtime::{
    Address, ChildSpec, NotSent, ProcessState, Promise, Resident, Runtime, SPIN, Supervision, SupervisorSpec, Watch,
    links::Related,
    supervisor::{Backoff, Flags, Intensity, Name, Refused, Restart, Shutdown, Target},
};
use serde::{Deserialize, Serialize};
use tokio::{runtime::Handle, sync::watch};

use crate::{
    branch::{Branch, Child, Work},
    chronicle::Chronicle,
    decrees,
    door::{
        Appointments, BadRuling, Door, DoorParts, FirstNumbers, NotAccepted, Sent, Session, SessionSpec, SignedRuling,
        Turn, within,
    },
    ledger::{Account, NotCarved},
    letters::Lost,
    process::{Body, Embodied},
    residences::{Residence, Residences},
    seen::{Seen, Subscription},
    taking_up::NotTakenUp,
    warrant::Warrant,
    whole::{claimed, whole},
};

/// The last name of the seat of a session's agent.
pub(crate) const AGENT: &str = "loop";

/// What serves one client each is called this and a number, below [`SERVICES`].
pub(crate) const CLIENT: &str = "client-";

/// The seat above services and tasks.
pub(crate) const SERVICES: &str = "node/services";

/// The name of the root of a node's tree.
pub(crate) const NODE_NAME: &str = "node";

/// What a node may use. Nothing is bounded here but how many seats there are and how deep they lie; what agents may use is
/// bounded where they begin.
const NODE: Budget = Budget { children: 1_000_000, depth: 16, ..Budget::MAX };

/// What is stopped, and what ends that.
fn stopped(seat: &Seat) -> String {
    if seat.as_str() == NODE_NAME {
        return "The node is stopped. Run `ephor resume --all`.".to_owned();
    }
    format!("The seat `{seat}` is stopped. Run `ephor resume {seat}`.")
}

/// How long an agent or service may take to stop before it is killed (OTP's default for workers).
const SHUTDOWN: Duration = Duration::from_secs(5);

/// How long `agents` and `services` may take to stop, with all that is below them.
const BRANCH_SHUTDOWN: Duration = Duration::from_secs(60);

/// How the supervisor of one session works.
const SESSION: Flags = Flags { backoff: Backoff::AGENT, ..Flags::one_for_one(Intensity::AGENT) };

/// A row of the process table, as it is shown. Exited processes have none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Its PID.
    pub pid: Pid,
    /// Its seat.
    pub seat: Seat,
    /// The process that supervises it.
    pub parent: Option<Pid>,
    /// Where it stands.
    pub state: ProcessState,
    /// How often its seat was restarted.
    pub restarts: u64,
    /// The session it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Messages that wait.
    pub waiting: usize,
    /// The process whose answer it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Pid>,
    /// What its agent is, if it is the agent of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Posted>,
    /// What its seat has used.
    pub used: Budget,
    /// Since its start, in milliseconds.
    pub uptime_ms: u64,
}

/// What the agent of a session is, as its operator's configuration has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Posted {
    /// Its name there.
    pub name: String,
    /// Its role, as the constitution names it.
    pub role: String,
    /// Its namespace, as the constitution names it.
    pub namespace: String,
}

/// An agent to be started: a session and the loop that serves it.
pub struct AgentSpec {
    /// What the session works with.
    pub session: SessionSpec,
    /// What its seat may use.
    pub budget: Budget,
    /// The loop.
    pub body: Arc<dyn Body>,
}

/// The node cannot take it now. Nothing was started.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotStarted {
    /// The node is stopping.
    #[error("the node is stopping")]
    Stopping,
    /// The log could not take the record.
    #[error("the chain cannot be written: {0}")]
    Chain(String),
    /// Its supervisor does not take it; the caller's fault, such as a name that is in use.
    #[error("its supervisor refused: {0}")]
    Refused(Refused),
    /// The tree of the node does not stand.
    #[error("{0}")]
    Tree(String),
    /// There may be no more seats below the one above it, or none so deep.
    #[error("{0}")]
    BudgetSpent(Exhausted),
    /// The seat is filled, as by what is just being put away.
    #[error("the seat `{0}` is filled; try again when it is free")]
    Taken(Seat),
    /// An operator stopped it, and nothing begins there until it is resumed.
    #[error("{}", stopped(.0))]
    Stopped(Seat),
    /// The operator who answers for it was dismissed.
    #[error("the operator who answers for it was dismissed")]
    Dismissed,
    /// The constitution cannot take the seat in.
    #[error("the constitution cannot take the seat in: {0}")]
    Ungoverned(String),
}

impl From<Refused> for NotStarted {
    fn from(refused: Refused) -> Self {
        if refused == Refused::Stopping { Self::Stopping } else { Self::Refused(refused) }
    }
}

impl From<NotCarved> for NotStarted {
    fn from(error: NotCarved) -> Self {
        match error {
            NotCarved::Exhausted(exhausted) => Self::BudgetSpent(exhausted),
            NotCarved::Taken(seat) => Self::Taken(seat),
        }
    }
}

/// A running kernel. Cheap to clone; every clone is the same kernel.
#[derive(Clone)]
pub struct Kernel(Arc<Core>);

struct Core {
    runtime: Runtime<Chronicle>,
    random: Arc<dyn Random>,
    root: Supervision<Chronicle>,
    agents: Supervision<Chronicle>,
    services: Supervision<Chronicle>,
    standing: Arc<Mutex<Vec<ChildSpec<Chronicle>>>>,
    /// That of `node/agents`, which those of all sessions are carved from, below that of `node`.
    warrant: Warrant,
    _above: Warrant,
    sessions: Mutex<Residences>,
    acting: tokio::sync::Mutex<()>,
    /// Held while a session is attached to or put away.
    taking: tokio::sync::Mutex<()>,
    /// The sessions that were begun anew since this node started.
    anew: Mutex<BTreeSet<SessionId>>,
}

impl Kernel {
    /// Records under which law and with which tools this node runs, and starts its tree: `node`, with `agents` and
    /// `services` below it. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`NotStarted`]; then nothing runs.
    pub async fn boot(
        parts: DoorParts,
        first: FirstNumbers,
        first_pid: Pid,
        random: Arc<dyn Random>,
    ) -> Result<Self, NotStarted> {
        let watch = Arc::new(Watch::new(SPIN));
        let door = Arc::new(Door::new(parts, first, watch.clone()));
        record_law(&door).await?;
        let (_above, warrant) = warrants(&door)?;
        let runtime = Runtime::watched(Chronicle { door, handle: Handle::current() }, first_pid, watch);
        let flags = Flags::one_for_one(Intensity::TREE);
        let branch =
            |name, spec| ChildSpec { shutdown: Shutdown::Within(BRANCH_SHUTDOWN), ..ChildSpec::supervisor(name, spec) };
        let standing: Arc<Mutex<Vec<ChildSpec<Chronicle>>>> = Arc::default();
        // No session waits for another to stop, and no client for another.
        let independent = Flags { independent: true, ..flags };
        let agents = SupervisorSpec::new(independent, Vec::new());
        let services = SupervisorSpec::new(independent, Vec::new());
        let joined = standing.clone();
        let services = services.joined_by(move || ephor_runtime::lock::enter(&joined).clone());
        let spec = SupervisorSpec::new(flags, vec![branch("agents", agents), branch("services", services)]);
        let root = runtime.plant(NODE_NAME, &spec).await.map_err(|error| NotStarted::Tree(error.to_string()))?;
        let (agents, services) = (below(&runtime, &root, "agents")?, below(&runtime, &root, "services")?);
        let (sessions, anew) = (Mutex::default(), Mutex::default());
        let (acting, taking) = (tokio::sync::Mutex::default(), tokio::sync::Mutex::default());
        let core =
            Core { runtime, random, root, agents, services, standing, warrant, _above, sessions, acting, taking, anew };
        let kernel = Self(Arc::new(core));
        let weak = Arc::downgrade(&kernel.0);
        kernel.door().holds.on_change(move |seat, tree| {
            if let Some(core) = weak.upgrade() {
                Self(core).park(seat, tree);
            }
        });
        let weak = Arc::downgrade(&kernel.0);
        kernel.door().on_over(move |session| {
            if let Some(core) = weak.upgrade() {
                runtime::spawn(async move { Self(core).lost(session).await });
            }
        });
        let (weak, handle) = (Arc::downgrade(&kernel.0), Handle::current());
        kernel.door().on_broken(move |session| {
            if let Some(core) = weak.upgrade() {
                runtime::spawn_on(&handle, async move { Self(core).begin_anew(session).await });
            }
        });
        Ok(kernel)
    }

    /// Starts a service: a permanent child of `node/services`. It is also there when that is started again.
    ///
    /// # Errors
    /// [`NotStarted`]
    pub async fn start_service(&self, name: &str, body: Arc<dyn Body>) -> Result<Seat, NotStarted> {
        let spec = ChildSpec::worker(name, Arc::new(Embodied(body)));
        let seat = started(self.0.services.start(spec.clone()).await)?.seat().clone();
        ephor_runtime::lock::enter(&self.0.standing).push(spec);
        Ok(seat)
    }

    /// Starts what serves one client's connection, as a task. Neither its start nor its end is recorded, since to look changes nothing;
    /// what its operator does is. So its PID may be that of another behind a boot.
    ///
    /// # Errors
    /// [`NotStarted`]
    pub async fn start_client(&self, number: u64, body: Arc<dyn Body>) -> Result<Seat, NotStarted> {
        self.start_task(&format!("{CLIENT}{number}"), body).await
    }

    /// Starts a task: a temporary child of `node/services`.
    ///
    /// # Errors
    /// [`NotStarted`]
    pub async fn start_task(&self, name: &str, body: Arc<dyn Body>) -> Result<Seat, NotStarted> {
        let restart = Restart::Temporary;
        let spec = ChildSpec { restart, ..ChildSpec::worker(name, Arc::new(Embodied(body))) };
        Ok(started(self.0.services.start(spec).await)?.seat().clone())
    }

    /// Starts a supervisor of one's own below `node/services`. It can be changed while it runs.
    ///
    /// # Errors
    /// [`NotStarted`], also for a child that is no supervisor.
    pub async fn start_branch(&self, child: Child) -> Result<Branch, NotStarted> {
        if matches!(child.work, Work::Body(_)) {
            return Err(NotStarted::Refused(Refused::NotFound));
        }
        let address = started(self.0.services.start(child.into_spec()).await)?;
        address.supervision().map(Branch).ok_or(NotStarted::Stopping)
    }

    /// Opens a session and starts its agent under a supervisor of its own, so that one agent that crashes too often
    /// takes no other with it. A session that no caller waits for any more when it is open is closed again.
    ///
    /// # Errors
    /// [`NotStarted`]
    pub async fn open_session(&self, agent: AgentSpec) -> Result<SessionId, NotStarted> {
        let (opening, closing) = (self.clone(), self.clone());
        let opened = claimed(async move { opening.open(agent).await }, async move |nobodys| {
            closing.close_session(nobodys).await
        });
        opened.await.unwrap_or(Err(NotStarted::Stopping))
    }

    async fn open(&self, agent: AgentSpec) -> Result<SessionId, NotStarted> {
        self.door().log().can_begin().map_err(|error| NotStarted::Chain(error.to_string()))?;
        let (id, name) = self.fresh_session();
        let seat = self.0.agents.seat().child(&name).child(AGENT);
        if let Some(held) = self.stopped_at(&seat) {
            return Err(NotStarted::Stopped(held));
        }
        let rights = within(agent.session.rights.clone(), &agent.session.agent);
        let warrant = self.0.warrant.carve(seat.clone(), &rights, agent.budget)?;
        let veil = self.door().log().veil(id).await.map_err(|error| NotStarted::Chain(error.to_string()))?;
        let AgentSpec { session, budget, body } = agent;
        self.settle_in(id, &name, &seat, body, async || {
            self.door().open_session(id, veil, seat.clone(), warrant, (session, budget)).await
        })
        .await?;
        Ok(id)
    }

    /// Starts the group of a session, has `open` open it at the door, and starts its agent.
    pub(crate) async fn settle_in(
        &self,
        id: SessionId,
        name: &str,
        seat: &Seat,
        body: Arc<dyn Body>,
        open: impl AsyncFnOnce() -> Result<(), NotStarted>,
    ) -> Result<(), NotStarted> {
        let group = ChildSpec {
            restart: Restart::Temporary,
            shutdown: Shutdown::Within(SHUTDOWN),
            session: Some(id),
            ..ChildSpec::supervisor(name, SupervisorSpec::new(SESSION, Vec::new()))
        };
        let group = started(self.0.agents.start(group).await)?;
        if let Err(error) = open().await {
            self.abandon(id, &group, seat).await;
            return Err(error);
        }
        let child = ChildSpec {
            restart: Restart::Transient,
            session: Some(id),
            keeps_messages: true,
            ..ChildSpec::worker(AGENT, Arc::new(Embodied(body.clone())))
        };
        let added = match group.supervision() {
            Some(group) => started(group.start(child).await),
            None => Err(NotStarted::Stopping),
        };
        match added {
            Ok(agent) => {
                self.sessions().insert(id, Residence { group: group.clone(), agent, body });
                // One whose group was killed before anybody knew where it lives.
                if group.pid().is_none() {
                    self.lost(id).await;
                    return Err(NotStarted::Stopping);
                }
                // One that was opened while its operator was being dismissed is ended as well.
                if self.operator_of(id).is_some_and(|operator| self.is_dismissed(operator)) {
                    self.close_session(id).await;
                    return Err(NotStarted::Dismissed);
                }
                // One that was opened while everything was being stopped is stopped as well.
                if let Some(held) = self.stopped_at(seat) {
                    self.close_session(id).await;
                    return Err(NotStarted::Stopped(held));
                }
                self.park(seat, false);
                Ok(())
            }
            Err(error) => {
                self.abandon(id, &group, seat).await;
                Err(error)
            }
        }
    }

    /// Puts a message into a session's mailbox, once it is durable.
    ///
    /// # Errors
    /// [`NotAccepted`]: nothing was recorded, and the message is still the caller's.
    pub async fn send(&self, session: SessionId, parts: Vec<Part>) -> Result<MessageId, NotAccepted> {
        self.deliver(session, Sent::default(), parts).await
    }

    /// As [`Kernel::send`], with the tools that what it asks needs: in its turn nothing else may act unasked. They are pinned before
    /// anything in the message is read.
    ///
    /// # Errors
    /// [`NotAccepted`]: nothing was recorded, and the message is still the caller's.
    pub async fn send_within(
        &self,
        session: SessionId,
        parts: Vec<Part>,
        scope: Vec<ToolName>,
    ) -> Result<MessageId, NotAccepted> {
        self.send_pinned(session, parts, scope.into_iter().map(Pin::from).collect()).await
    }

    /// As [`Kernel::send_within`], and some of the tools may act only where it is said.
    ///
    /// # Errors
    /// [`NotAccepted`]: nothing was recorded, and the message is still the caller's.
    pub async fn send_pinned(
        &self,
        session: SessionId,
        parts: Vec<Part>,
        scope: Vec<Pin>,
    ) -> Result<MessageId, NotAccepted> {
        self.deliver(session, Sent { scope: Some(scope), ..Sent::default() }, parts).await
    }

    /// As [`Kernel::send`], also for what no person sent just now. What is accepted is put into the mailbox, also if its sender
    /// does not wait for that.
    pub(crate) async fn deliver(
        &self,
        session: SessionId,
        sent: Sent,
        parts: Vec<Part>,
    ) -> Result<MessageId, NotAccepted> {
        let (place, door) = (self.promise(session)?, self.door().clone());
        let delivered = whole(async move {
            let _sending = door.sending(session).await?;
            let envelope = door.accept(session, sent, parts).await?;
            let id = envelope.id;
            place.put(envelope);
            Ok(id)
        });
        delivered.await.unwrap_or_else(|| Err(NotAccepted::Chain("the node is going".to_owned())))
    }

    /// A place in the mailbox of a session. A message to a group that gave up would be recorded and never read.
    pub(crate) fn promise(&self, session: SessionId) -> Result<Promise<Chronicle>, NotAccepted> {
        let home = self.sessions().get(session).cloned().ok_or(NotAccepted::NoSession(session))?;
        home.agent.promise().map_err(|error| match error {
            NotSent::Full(waiting) => NotAccepted::Full(waiting),
            NotSent::Gone | NotSent::Fenced => NotAccepted::NoSession(session),
        })
    }

    /// Watches a session; `answers` says whether a person is there who can be asked.
    pub fn watch(&self, session: SessionId, answers: bool) -> Subscription {
        self.door().watchers().watch(session, answers)
    }

    /// Cancels the turn under way in a session; says whether there was one.
    #[must_use]
    pub fn cancel_turn(&self, session: SessionId) -> bool {
        self.door().cancel_turn(session)
    }

    /// Takes an operator's ruling; says how many more people have to permit what it answers.
    ///
    /// # Errors
    /// [`BadRuling`]: it counts for nothing.
    pub async fn rule(&self, ruling: SignedRuling) -> Result<u32, BadRuling> {
        self.door().rule(ruling).await
    }

    /// The digest of the constitution and operator policy: what a ruling is bound to.
    #[must_use]
    pub fn policy(&self) -> Digest {
        self.door().gate().digest()
    }

    /// Stops a session's agent and forgets the session. A turn under way is cancelled first. What was begun is finished, also if
    /// the caller does not wait for it.
    pub async fn close_session(&self, session: SessionId) {
        let kernel = self.clone();
        let _cut_off: Option<()> = whole(async move { kernel.put_away(session).await }).await;
    }

    /// The same, for a caller that waits for it.
    pub(crate) async fn put_away(&self, session: SessionId) {
        let Some(home) = self.sessions().remove(session) else { return };
        self.door().with_session(session, |session| session.left = Some(Vec::new()));
        let over = self.door().with_session(session, |session| session.turn.as_ref().map(Turn::over)).flatten();
        if let Some(over) = over.filter(|_| self.cancel_turn(session)) {
            let _late: Option<()> = self.door().timers().within(SHUTDOWN, over.cancelled()).await;
        }
        self.abandon(session, &home.group, home.agent.seat()).await;
    }

    /// The group of a session has ended. If the session was not closed, as when the group or a supervisor above it was killed, it
    /// is over: what is owed an answer is dead, and its watcher hears that nothing comes any more.
    async fn lost(&self, session: SessionId) {
        // What a node leaves that stops in good order is for the next boot.
        if self.door().stopping.load(Ordering::SeqCst) {
            return;
        }
        let home = {
            let mut sessions = self.sessions();
            // Another group may have taken the session up since.
            match sessions.get(session).map(|home| home.group.pid()) {
                Some(None) => sessions.remove(session),
                Some(Some(_)) | None => None,
            }
        };
        let Some(home) = home else { return };
        let seat = home.agent.seat();
        let gave_up = self.door().with_session(session, |session| session.gave_up).unwrap_or(false);
        self.bury_rest(session, seat).await;
        self.door().release(home.group.seat()).await;
        let why = if gave_up { "its agent crashed too often" } else { "the supervisor of its agent was killed" };
        let why = format!("session {session} is over: {why}; `ephor dead` has what was not answered");
        // A watcher that is told looks at once.
        if let Err(error) = self.door().log().flush().await {
            tracing::error!(%session, %error, "what a session left that is over is not settled on the disk");
        }
        self.door().watchers().part(session, Seen::Over { why });
        self.forget(session);
    }

    /// A panic has left what the door knows of a session half changed. The session is stopped, which its exits on the record
    /// say, and goes on from there; once. If it breaks again, it is given up.
    async fn begin_anew(&self, session: SessionId) {
        let Some(home) = self.sessions().remove(session) else { return };
        tracing::error!(%session, "the door panicked over a session, which is begun anew from the record");
        let is_first = ephor_runtime::lock::enter(&self.0.anew).insert(session);
        self.end_group(session, &home.group).await;
        self.door().release(home.group.seat()).await;
        self.door().close_session(session);
        self.door().tickets.forget(session);
        let why = "the door panicked over it more than once".to_owned();
        let again = if is_first {
            self.attach(session, home.body).await.map(drop)
        } else {
            Err(NotTakenUp::NotFollowed { session, why })
        };
        if let Err(why) = again {
            let owed = |one: &&Unanswered| one.session == session;
            let owed = self.door().log().standing(|standing| standing.unanswered().filter(owed).copied().collect());
            self.give_up(session, owed, &why).await;
            let why = format!("session {session} is over: {why}; `ephor dead` has what was not answered");
            self.door().watchers().part(session, Seen::Over { why });
        }
    }

    async fn end_group(&self, session: SessionId, group: &Address<Chronicle>) {
        let name = Name::from(group.seat().name());
        if let Err(refused) = self.0.agents.terminate(Target::Name(name)).await {
            // It gave up before, or everything stops: either way it is gone, or will be.
            tracing::debug!(%session, %refused, "a session was not there to be stopped");
        }
    }

    /// Stops what there is of a session and forgets it.
    async fn abandon(&self, session: SessionId, group: &Address<Chronicle>, seat: &Seat) {
        self.end_group(session, group).await;
        self.bury_rest(session, seat).await;
        self.door().release(group.seat()).await;
        self.forget(session);
    }

    /// What a session did not answer are dead letters.
    async fn bury_rest(&self, session: SessionId, seat: &Seat) {
        // The task that takes the turn ends it: from here on no reply does.
        let rest = self.door().with_session(session, |session| (session.turn.take(), session.left.take()));
        let (turn, left) = rest.unwrap_or_default();
        let turn = turn.map(|turn| Lost { message: turn.message, accepted: turn.accepted, session });
        let lost = turn.into_iter().chain(left.iter().flatten().map(Lost::from)).collect();
        self.door().bury(Some(seat), lost, Undelivered::Stopped).await;
    }

    /// The sessions whose agent is in `seat` or, with `tree`, below it. The group of a session stands for its agent.
    pub(crate) fn sessions_at(&self, seat: &Seat, tree: bool) -> Vec<SessionId> {
        self.sessions().at(seat, tree)
    }

    /// Whether `seat` is that of the supervisor of one session.
    pub(crate) fn is_group(&self, seat: &Seat) -> bool {
        self.sessions().is_group(seat)
    }

    /// The seat of a live process.
    pub(crate) fn seat_of(&self, pid: Pid) -> Option<Seat> {
        self.0.runtime.address(pid).map(|address| address.seat().clone())
    }

    /// Whether a process is in `seat`.
    pub(crate) fn is_live(&self, seat: &Seat) -> bool {
        self.0.runtime.processes().iter().any(|resident| resident.seat == *seat)
    }

    /// Kills the process in `seat`, or only the process `pid` of it; with `tree` every process at the seat and below it. Of the whole
    /// node, the agents.
    pub(crate) fn kill_at(&self, seat: &Seat, pid: Option<Pid>, tree: bool) {
        let all = *seat == Seat::root(NODE_NAME);
        for resident in self.0.runtime.processes() {
            let meant = match pid {
                Some(pid) if !tree => resident.pid == pid,
                _ if all => resident.session.is_some() && resident.seat.name() == AGENT,
                _ => resident.seat == *seat || (tree && is_at_or_below(&resident.seat, seat)),
            };
            if meant {
                let _was_there: bool = self.kill(resident.pid);
            }
        }
    }

    /// Parks the messages of the agents at `seat`, or below it as well, that are held, and lets those of the others through.
    fn park(&self, seat: &Seat, tree: bool) {
        let sessions = self.sessions();
        for home in sessions.at(seat, tree).into_iter().filter_map(|session| sessions.get(session)) {
            home.agent.suspend(self.door().holds.on(home.agent.seat()).is_some());
        }
    }

    /// What a process has to do with.
    pub(crate) fn related(&self, pid: Pid) -> Related {
        self.0.runtime.related(pid)
    }

    /// The sessions that are open, each with the seat of its agent.
    pub(crate) fn open_sessions(&self) -> Vec<(SessionId, Seat)> {
        self.sessions().iter().map(|(session, home)| (session, home.agent.seat().clone())).collect()
    }

    /// The seat of the agent of an open session.
    pub(crate) fn seat_of_session(&self, session: SessionId) -> Option<Seat> {
        self.sessions().get(session).map(|home| home.agent.seat().clone())
    }

    pub(crate) fn warrant(&self) -> &Warrant {
        &self.0.warrant
    }

    /// What makes attaching and leaving take turns.
    pub(crate) fn taking(&self) -> &tokio::sync::Mutex<()> {
        &self.0.taking
    }

    pub(crate) fn random(&self) -> &dyn Random {
        &*self.0.random
    }

    /// What makes acts take turns.
    pub(crate) fn acting(&self) -> &tokio::sync::Mutex<()> {
        &self.0.acting
    }

    /// Every live process, by PID.
    #[must_use]
    pub fn processes(&self) -> Vec<ProcessInfo> {
        self.runtime_info(self.0.runtime.processes())
    }

    /// At most so many of them, in the order of their PIDs, behind one of these; and whether there are more.
    #[must_use]
    pub fn processes_behind(&self, behind: Option<Pid>, most: usize) -> (Vec<ProcessInfo>, bool) {
        let (page, more) = self.0.runtime.processes_behind(behind, most);
        (self.runtime_info(page), more)
    }

    fn runtime_info(&self, residents: Vec<Resident>) -> Vec<ProcessInfo> {
        let now = self.door().clock().monotonic();
        let info = |resident: Resident| ProcessInfo {
            pid: resident.pid,
            parent: resident.parent,
            state: resident.state,
            restarts: resident.incarnation.saturating_sub(1),
            session: resident.session,
            waiting: resident.waiting,
            waits_for: resident.waits_for,
            agent: self.posted(&resident.seat, resident.session),
            used: self.account(&resident.seat).map(|account| account.used).unwrap_or_default(),
            uptime_ms: u64::try_from(now.saturating_sub(resident.started).as_millis()).unwrap_or(u64::MAX),
            seat: resident.seat,
        };
        residents.into_iter().map(info).collect()
    }

    /// What agent is in `seat`, if it is that of the agent of a session.
    fn posted(&self, seat: &Seat, session: Option<SessionId>) -> Option<Posted> {
        let posted = |session: &mut Session| {
            let Appointment { agent, role, namespace, .. } = &session.spec.agent;
            (session.seat == *seat).then(|| Posted {
                name: agent.clone(),
                role: role.clone(),
                namespace: namespace.clone(),
            })
        };
        session.and_then(|session| self.door().with_session(session, posted)).flatten()
    }

    /// What agents there are.
    #[must_use]
    pub fn appointments(&self) -> &Appointments {
        self.door().appointments()
    }

    /// The budget of a seat.
    #[must_use]
    pub fn account(&self, seat: &Seat) -> Option<Account> {
        self.door().ledger.account(seat)
    }

    /// Kills a process, which is fenced at once; its supervisor decides what follows. Says whether there was one.
    #[must_use]
    pub fn kill(&self, pid: Pid) -> bool {
        self.0.runtime.kill(pid)
    }

    /// Stops the whole tree, services before agents, and waits until it is down. The log stays open. A turn under way is left for
    /// the next boot, with what it asks and the messages that wait.
    pub async fn stop(&self) {
        self.door().stopping.store(true, Ordering::SeqCst);
        let _reason: Option<ExitReason> = self.0.root.stop().await;
    }

    /// Resolves when the tree is over: it was stopped, or its root gave up. Then nothing runs any more.
    pub fn over(&self) -> impl Future<Output = Option<ExitReason>> + Send + 'static + use<> {
        let exit = self.0.root.pid().map(|pid| self.0.runtime.exit_of(pid));
        async move { exit?.await }
    }

    /// How many threads are lost to processes that do not yield. With [`ephor_runtime::LOST_THREADS`] a node starts anew.
    #[must_use]
    pub fn lost_threads(&self) -> watch::Receiver<usize> {
        self.0.runtime.lost_threads()
    }

    fn forget(&self, session: SessionId) {
        self.door().close_session(session);
        self.door().tickets.forget(session);
        self.door().watchers().forget(session);
    }

    /// A session and the name of its group, which is the whole id: it is a seat, and a seat has one account for ever.
    fn fresh_session(&self) -> (SessionId, String) {
        let mut id = [0; 16];
        self.0.random.fill(&mut id);
        (SessionId(id), SessionId(id).to_string())
    }

    pub(crate) fn door(&self) -> &Arc<Door> {
        &self.0.runtime.host().door
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, Residences> {
        ephor_runtime::lock::enter(&self.0.sessions)
    }
}

/// The seat of a child that was started.
fn started(answer: Result<Option<runtime::Started<Chronicle>>, Refused>) -> Result<Address<Chronicle>, NotStarted> {
    Ok(answer?.ok_or(NotStarted::Stopping)?.address)
}

/// A branch of the tree that has just been planted.
fn below(
    runtime: &Runtime<Chronicle>,
    root: &Supervision<Chronicle>,
    name: &str,
) -> Result<Supervision<Chronicle>, NotStarted> {
    let seat = root.seat().child(name);
    let resident = runtime.processes().into_iter().find(|resident| resident.seat == seat);
    let supervision = resident.and_then(|resident| runtime.address(resident.pid)?.supervision());
    supervision.ok_or(NotStarted::Stopping)
}

/// What the node, and all agents together, may do and use: what the operator's policy allows.
fn warrants(door: &Door) -> Result<(Warrant, Warrant), NotCarved> {
    let (node, rights) = (Seat::root(NODE_NAME), door.gate().policy().rights());
    let above = Warrant::of_node(&door.ledger, node.clone(), rights.clone(), NODE)?;
    let agents = above.carve(node.child("agents"), &rights, Budget::MAX)?;
    Ok((above, agents))
}

/// Records the law and the tools of this boot.
async fn record_law(door: &Door) -> Result<(), NotStarted> {
    let note = async |subject: Subject, fact: Fact| {
        let record = Record { subject, fact, content: None };
        door.log().note(record).await.map_err(|error| NotStarted::Chain(error.to_string()))
    };
    let gate = door.gate();
    for part in Fact::document(gate.constitution().text().as_bytes()) {
        note(Subject::default(), part).await?;
    }
    let environment = gate.policy().environment.name().to_owned();
    let terms = Some(decrees::terms(&gate));
    note(Subject::default(), Fact::Policy { digest: gate.digest(), environment, terms }).await?;
    for tool in gate.registry().iter() {
        for part in Fact::document(&cbor::to_vec(tool)) {
            note(Subject::default(), part).await?;
        }
        let fact = Fact::Tool { name: tool.name.clone(), registration: tool.digest(), code: tool.code };
        note(Subject::default(), fact).await?;
    }
    Ok(())
}
