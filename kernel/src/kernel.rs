//! The kernel of a node: its tree, its door, its table.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ephor_base::{Budget, Digest, MessageId, Part, Pid, Random, Seat, SessionId};
use ephor_chain::record::{Fact, Record, Subject};
use tokio::sync::mpsc;

use crate::{
    door::{BadRuling, Door, DoorParts, FirstNumbers, NotAccepted, Origin, SessionSpec, SignedRuling},
    ledger::Account,
    mailbox::Mailbox,
    process::{Body, Process},
    seen::Seen,
    supervisor::{Backoff, Flags, Intensity, Refused, Restart, Shutdown},
    table::{ProcessInfo, Table},
    tree::{Added, ChildKind, ChildSpec, Nursery, Orders},
};

/// How long an agent or service may take to stop before it is killed (OTP's default for workers).
const SHUTDOWN: Duration = Duration::from_secs(5);

/// How the supervisor of one session works.
const SESSION: Flags = Flags { backoff: Backoff::AGENT, ..Flags::one_for_one(Intensity::AGENT) };

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
    /// The constitution cannot take the seat in.
    #[error("the constitution cannot take the seat in: {0}")]
    Ungoverned(String),
}

impl From<Refused> for NotStarted {
    fn from(refused: Refused) -> Self {
        if refused == Refused::Stopping { Self::Stopping } else { Self::Refused(refused) }
    }
}

/// A running kernel. Cheap to clone; every clone is the same kernel.
#[derive(Clone)]
pub struct Kernel(Arc<Core>);

struct Core {
    nursery: Arc<Nursery>,
    random: Arc<dyn Random>,
    root: Pid,
    agents: Orders,
    services: Orders,
    sessions: Mutex<HashMap<SessionId, Residence>>,
}

/// Where a session lives.
#[derive(Clone)]
struct Residence {
    group: Seat,
    seat: Seat,
    mailbox: Arc<Mailbox>,
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
        let door = Arc::new(Door::new(parts, first));
        record_law(&door).await?;
        let nursery = Arc::new(Nursery { door, table: Table::new(first_pid), exits: tokio::sync::Notify::new() });
        let (root, orders) = nursery.plant("node", Flags::one_for_one(Intensity::TREE));
        let agents = supervisor(&orders, "agents").await?;
        let services = supervisor(&orders, "services").await?;
        Ok(Self(Arc::new(Core { nursery, random, root, agents, services, sessions: Mutex::default() })))
    }

    /// Starts a service: a permanent child of `node/services`.
    ///
    /// # Errors
    /// [`NotStarted`]
    pub async fn start_service(&self, name: &str, body: Arc<dyn Body>) -> Result<Seat, NotStarted> {
        self.start_under(&self.0.services, name, Restart::Permanent, body).await
    }

    /// Starts a task: a temporary child of `node/services`, such as one client's connection.
    ///
    /// # Errors
    /// [`NotStarted`]
    pub async fn start_task(&self, name: &str, body: Arc<dyn Body>) -> Result<Seat, NotStarted> {
        self.start_under(&self.0.services, name, Restart::Temporary, body).await
    }

    async fn start_under(
        &self,
        orders: &Orders,
        name: &str,
        restart: Restart,
        body: Arc<dyn Body>,
    ) -> Result<Seat, NotStarted> {
        let kind = ChildKind::Worker(body);
        let shutdown = Shutdown::Within(SHUTDOWN);
        let spec = ChildSpec { name: name.to_owned(), restart, shutdown, kind, session: None };
        Ok(orders.add(spec).await?.seat)
    }

    /// Opens a session and starts its agent under a supervisor of its own, so that one agent that crashes too often
    /// takes nobody with it.
    ///
    /// # Errors
    /// [`NotStarted`]
    pub async fn open_session(&self, agent: AgentSpec) -> Result<SessionId, NotStarted> {
        self.door().log().can_begin().map_err(|error| NotStarted::Chain(error.to_string()))?;
        let (id, name) = self.fresh_session();
        let veil = self.door().log().veil(id).await.map_err(|error| NotStarted::Chain(error.to_string()))?;
        let child = |name: &str, restart, kind| ChildSpec {
            name: name.to_owned(),
            restart,
            shutdown: Shutdown::Within(SHUTDOWN),
            kind,
            session: Some(id),
        };
        let group = child(&name, Restart::Temporary, ChildKind::Supervisor(SESSION));
        let Added { seat: group, orders, .. } = self.0.agents.add(group).await?;
        let seat = group.child("loop");
        self.door().ledger.open(seat.clone(), agent.budget);
        if let Err(error) = self.door().open_session(id, veil, seat.clone(), agent.session) {
            self.forget(id, &seat);
            return Err(NotStarted::Ungoverned(error.to_string()));
        }
        let worker = child("loop", Restart::Transient, ChildKind::Worker(agent.body));
        let added = match orders {
            Some(orders) => orders.add(worker).await,
            None => Err(Refused::Stopping),
        };
        let mailbox = match added {
            Ok(added) => added.mailbox,
            Err(refused) => {
                self.forget(id, &seat);
                return Err(refused.into());
            }
        };
        self.sessions().insert(id, Residence { group, seat, mailbox });
        Ok(id)
    }

    /// Puts a message into a session's mailbox, once it is durable.
    ///
    /// # Errors
    /// [`NotAccepted`]: nothing was recorded, and the message is still the caller's.
    pub async fn send(&self, session: SessionId, parts: Vec<Part>) -> Result<MessageId, NotAccepted> {
        self.deliver(session, Origin::Client, parts).await
    }

    /// Puts a message of a process into the mailbox of another session, once it is durable. The record names the session it
    /// comes out of, which the handle says and nobody else, so that whoever erases that session is told of this one. What it
    /// says vouches for nothing, and is as confidential as anything that the sender's session holds.
    ///
    /// # Errors
    /// [`NotAccepted`]: nothing was recorded, and the message is still the caller's.
    pub async fn delegate(&self, from: &Process, to: SessionId, parts: Vec<Part>) -> Result<MessageId, NotAccepted> {
        let origin = from.origin().ok_or(NotAccepted::NoOrigin(from.pid()))?;
        self.deliver(to, origin, parts).await
    }

    async fn deliver(&self, session: SessionId, from: Origin, parts: Vec<Part>) -> Result<MessageId, NotAccepted> {
        let home = self.sessions().get(&session).cloned().ok_or(NotAccepted::NoSession(session))?;
        // A message to a group that gave up would be recorded and never read.
        if !self.is_live(&home.group) {
            return Err(NotAccepted::NoSession(session));
        }
        let place = home.mailbox.promise().map_err(NotAccepted::Full)?;
        let envelope = self.door().accept(session, from, parts).await?;
        let id = envelope.id;
        place.put(envelope);
        Ok(id)
    }

    /// Watches a session; `answers` says whether a person is there who can be asked.
    pub fn watch(&self, session: SessionId, answers: bool) -> mpsc::Receiver<Seen> {
        self.door().watchers().watch(session, answers)
    }

    /// Cancels the turn under way in a session; says whether there was one.
    #[must_use]
    pub fn cancel_turn(&self, session: SessionId) -> bool {
        self.door().cancel_turn(session)
    }

    /// Takes an operator's ruling.
    ///
    /// # Errors
    /// [`BadRuling`]: it counts for nothing.
    pub async fn rule(&self, ruling: SignedRuling) -> Result<(), BadRuling> {
        self.door().rule(ruling).await
    }

    /// The digest of the constitution and operator policy: what a ruling is bound to.
    #[must_use]
    pub fn policy(&self) -> Digest {
        self.door().gate().digest()
    }

    /// Stops a session's agent and forgets the session. A turn under way is cancelled first.
    pub async fn close_session(&self, session: SessionId) {
        let Some(home) = self.sessions().remove(&session) else { return };
        if self.cancel_turn(session) {
            self.settled(SHUTDOWN, || !self.is_in_turn(session)).await;
        }
        self.stop_seat(&home.group).await;
        self.forget(session, &home.seat);
    }

    /// Every live process, by PID.
    #[must_use]
    pub fn processes(&self) -> Vec<ProcessInfo> {
        let now = self.door().clock().monotonic();
        let info = |(pid, row): (Pid, crate::table::Row)| ProcessInfo {
            pid,
            parent: row.parent,
            state: row.state,
            restarts: row.incarnation.saturating_sub(1),
            session: row.session,
            waiting: row.waiting.len(),
            used: self.account(&row.seat).map(|account| account.used).unwrap_or_default(),
            uptime_ms: u64::try_from(now.saturating_sub(row.started).as_millis()).unwrap_or(u64::MAX),
            seat: row.seat,
        };
        self.0.nursery.table.all().into_iter().map(info).collect()
    }

    /// The budget of a seat.
    #[must_use]
    pub fn account(&self, seat: &Seat) -> Option<Account> {
        self.door().ledger.account(seat)
    }

    /// Kills a process; its supervisor decides what follows. Says whether there was one.
    #[must_use]
    pub fn kill(&self, pid: Pid) -> bool {
        self.0.nursery.table.row(pid).map(|row| row.kill.cancel()).is_some()
    }

    /// Stops the whole tree, last started first, and waits until it is down. The log stays open.
    pub async fn stop(&self) {
        if let Some(root) = self.0.nursery.table.row(self.0.root) {
            root.stop.cancel();
        }
        self.settled(Duration::MAX, || self.0.nursery.table.row(self.0.root).is_none()).await;
    }

    async fn stop_seat(&self, seat: &Seat) {
        let live = |kernel: &Self| kernel.0.nursery.table.all().into_iter().find(|(_, row)| row.seat == *seat);
        if let Some((_, row)) = live(self) {
            row.stop.cancel();
        }
        self.settled(SHUTDOWN * 2, || live(self).is_none()).await;
    }

    /// Waits until `done`, looking whenever a process exits, and no longer than `time`.
    async fn settled(&self, time: Duration, done: impl Fn() -> bool) {
        let wait = async {
            loop {
                let exit = self.0.nursery.exits.notified();
                if done() {
                    return;
                }
                // A turn may end without an exit, so look now and then.
                let _looked: Result<(), _> = tokio::time::timeout(Duration::from_millis(20), exit).await;
            }
        };
        let _late: Result<(), _> = tokio::time::timeout(time, wait).await;
    }

    fn is_in_turn(&self, session: SessionId) -> bool {
        self.door().with_session(session, |session| session.turn.is_some()).unwrap_or(false)
    }

    fn forget(&self, session: SessionId, seat: &Seat) {
        self.door().close_session(session);
        self.door().watchers().forget(session);
        self.door().ledger.close(seat);
    }

    fn is_live(&self, seat: &Seat) -> bool {
        self.0.nursery.table.all().iter().any(|(_, row)| row.seat == *seat)
    }

    /// A session and the name of its group. No two that are open share a name: it is a seat, and a seat has one budget.
    fn fresh_session(&self) -> (SessionId, String) {
        loop {
            let mut id = [0; 16];
            self.0.random.fill(&mut id);
            let name = SessionId(id).to_string().chars().take(8).collect::<String>();
            if !self.sessions().values().any(|home| home.group.name() == name) {
                return (SessionId(id), name);
            }
        }
    }

    fn door(&self) -> &Arc<Door> {
        &self.0.nursery.door
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Residence>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn supervisor(parent: &Orders, name: &str) -> Result<Orders, NotStarted> {
    let spec = ChildSpec {
        name: name.to_owned(),
        restart: Restart::Permanent,
        shutdown: Shutdown::Within(Duration::from_secs(60)),
        kind: ChildKind::Supervisor(Flags::one_for_one(Intensity::TREE)),
        session: None,
    };
    parent.add(spec).await?.orders.ok_or(NotStarted::Stopping)
}

/// Records the operators, the law and the tools of this boot.
async fn record_law(door: &Door) -> Result<(), NotStarted> {
    let note = async |subject: Subject, fact: Fact| {
        let record = Record { subject, fact, content: None };
        door.log().note(record).await.map_err(|error| NotStarted::Chain(error.to_string()))
    };
    for (id, key) in door.operators().keys() {
        let subject = Subject { operator: Some(*id), ..Subject::default() };
        note(subject, Fact::Operator { key: key.to_bytes() }).await?;
    }
    let policy = door.gate().policy();
    let fact = Fact::Policy { digest: door.gate().digest(), environment: policy.environment.name().to_owned() };
    note(Subject::default(), fact).await?;
    for tool in door.gate().registry().iter() {
        let fact = Fact::Tool { name: tool.name.clone(), registration: tool.digest(), code: tool.code };
        note(Subject::default(), fact).await?;
    }
    Ok(())
}
