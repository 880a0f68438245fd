//! The supervision tree at work: carries out what the supervisor engines decide.

use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ephor_base::{Action, EndReason, ExitReason, Pid, ReplyAction, Seat, SessionId};
use ephor_chain::record::{Content, Fact, Record, Subject};
use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    door::{Caller, Door},
    mailbox::Mailbox,
    process::{Body, Life, Process, panic_message},
    seen::Seen,
    supervisor::{ChildId, Command, Event, Intensity, Restart, Supervisor},
    table::{ProcessState, Row, Table},
};

/// A child of a supervisor (OTP `child_spec`).
#[derive(Clone)]
pub(crate) struct ChildSpec {
    /// Its name, unique among its siblings.
    pub(crate) name: String,
    /// When it is started again.
    pub(crate) restart: Restart,
    /// How long it may take to stop before it is killed.
    pub(crate) shutdown: Duration,
    /// What it is.
    pub(crate) kind: ChildKind,
    /// The session it serves.
    pub(crate) session: Option<SessionId>,
}

/// A worker or a supervisor.
#[derive(Clone)]
pub(crate) enum ChildKind {
    /// It runs this body.
    Worker(Arc<dyn Body>),
    /// It supervises children that are added later.
    Supervisor(Intensity),
}

/// Where a supervisor takes its orders.
#[derive(Clone, Debug)]
pub(crate) struct Orders(mpsc::UnboundedSender<Order>);

enum Order {
    Add(Box<ChildSpec>, oneshot::Sender<Added>),
    Exited { child: ChildId, reason: ExitReason },
    ShutdownOver { child: ChildId },
}

/// A child that was added and started.
#[derive(Clone)]
pub(crate) struct Added {
    pub(crate) seat: Seat,
    pub(crate) mailbox: Arc<Mailbox>,
    /// The orders of a child that is itself a supervisor.
    pub(crate) orders: Option<Orders>,
}

impl Orders {
    /// Adds a child; `None` if the supervisor is gone or going.
    pub(crate) async fn add(&self, spec: ChildSpec) -> Option<Added> {
        let (sender, receiver) = oneshot::channel();
        self.0.send(Order::Add(Box::new(spec), sender)).ok()?;
        receiver.await.ok()
    }
}

/// What every process is started with.
pub(crate) struct Nursery {
    pub(crate) door: Arc<Door>,
    pub(crate) table: Table,
    /// Told whenever a process has exited.
    pub(crate) exits: tokio::sync::Notify,
    /// Numbers children over all supervisors, so that a report to one that crashed means nobody to the next.
    pub(crate) next_child: AtomicU64,
}

/// A child as its supervisor keeps it, over all its incarnations.
struct Child {
    spec: ChildSpec,
    seat: Seat,
    mailbox: Arc<Mailbox>,
    incarnations: u64,
    running: Option<Incarnation>,
    /// The orders of a supervisor belong to its seat: whoever holds them reaches each incarnation in turn.
    orders: Option<(Orders, Taken)>,
}

/// Where orders arrive; an incarnation holds it while it lives.
type Taken = Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Order>>>;

/// The incarnation that runs. Dropping it kills the process, so that no child outlives its supervisor.
struct Incarnation {
    stop: CancellationToken,
    kill: DropGuard,
}

/// One incarnation, before it runs.
struct Birth {
    pid: Pid,
    parent: Option<Pid>,
    incarnation: u64,
    spec: ChildSpec,
    seat: Seat,
    mailbox: Arc<Mailbox>,
    stop: CancellationToken,
    kill: CancellationToken,
    orders: Option<(Orders, Taken)>,
}

impl Nursery {
    /// Starts the root of a tree.
    pub(crate) fn plant(self: &Arc<Self>, name: &str, intensity: Intensity) -> (Pid, Orders) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (orders, taken) = (Orders(sender), Arc::new(tokio::sync::Mutex::new(receiver)));
        let spec = ChildSpec {
            name: name.to_owned(),
            restart: Restart::Temporary,
            shutdown: Duration::MAX,
            kind: ChildKind::Supervisor(intensity),
            session: None,
        };
        let birth = self.conceive(None, 1, spec, Seat::root(name), Arc::default(), Some((orders.clone(), taken)));
        let pid = birth.pid;
        let nursery = self.clone();
        tokio::spawn(async move { nursery.live(birth).await });
        (pid, orders)
    }

    fn conceive(
        &self,
        parent: Option<Pid>,
        incarnation: u64,
        spec: ChildSpec,
        seat: Seat,
        mailbox: Arc<Mailbox>,
        orders: Option<(Orders, Taken)>,
    ) -> Birth {
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        let pid = self.table.insert(Row {
            seat: seat.clone(),
            parent,
            state: ProcessState::Starting,
            incarnation,
            session: spec.session,
            waiting: mailbox.clone(),
            started: self.door.clock().monotonic(),
            stop: stop.clone(),
            kill: kill.clone(),
        });
        Birth { pid, parent, incarnation, spec, seat, mailbox, stop, kill, orders }
    }

    /// Lives one incarnation from its record of birth to its record of death.
    async fn live(self: Arc<Self>, birth: Birth) -> ExitReason {
        let (pid, kill) = (birth.pid, birth.kill.clone());
        let subject = Subject {
            session: birth.spec.session,
            seat: Some(birth.seat.clone()),
            pid: Some(pid),
            ..Subject::default()
        };
        let fact = Fact::Spawn { parent: birth.parent, incarnation: birth.incarnation };
        // A kill fences at once, also one that is never given the time to end.
        let fence = kill.child_token();
        let reason = match self.door.log().note(Record { subject: subject.clone(), fact, content: None }).await {
            Ok(_) => {
                self.table.enter(pid, ProcessState::Running);
                self.until_killed(self.life(birth, fence.clone()), kill).await
            }
            Err(error) => ExitReason::Error(error.to_string()),
        };
        fence.cancel();
        self.table.remove(pid);
        let fact = Fact::Exit { reason: reason.code().to_owned() };
        let content = match (&reason, subject.session) {
            (ExitReason::Panicked(text) | ExitReason::Error(text), Some(_)) => Some(Content::Text(text.clone())),
            _ => None,
        };
        if let Err(error) = self.door.log().note(Record { subject, fact, content }).await {
            tracing::error!(%pid, %error, "an exit could not be recorded");
        }
        self.exits.notify_waiters();
        reason
    }

    fn life(self: &Arc<Self>, birth: Birth, fence: CancellationToken) -> Life {
        let (stop, orders, kind) = (birth.stop.clone(), birth.orders, birth.spec.kind);
        let process = Process {
            pid: birth.pid,
            seat: birth.seat,
            session: birth.spec.session,
            door: self.door.clone(),
            mailbox: birth.mailbox,
            stop,
            fence,
        };
        match (kind, orders) {
            (ChildKind::Supervisor(intensity), Some((orders, taken))) => {
                let duty = Duty {
                    nursery: self.clone(),
                    process,
                    engine: Supervisor::new(intensity),
                    children: BTreeMap::new(),
                    orders,
                };
                Life::new(async move {
                    let mut receiver = taken.lock().await;
                    duty.supervise(&mut receiver).await
                })
            }
            (ChildKind::Worker(body), _) => body.run(process),
            (ChildKind::Supervisor(_), None) => Life::new(async { Err("a supervisor without orders".to_owned()) }),
        }
    }

    /// The reason a life ends for. A panic, also while what it held is dropped, ends only this process.
    async fn until_killed(&self, life: Life, kill: CancellationToken) -> ExitReason {
        let lived = AssertUnwindSafe(async move {
            tokio::select! {
                biased;
                () = kill.cancelled() => ExitReason::Killed,
                end = life.into_inner() => match end {
                    Ok(()) => ExitReason::Normal,
                    Err(reason) => ExitReason::Error(reason),
                },
            }
        });
        lived.catch_unwind().await.unwrap_or_else(|panic| ExitReason::Panicked(panic_message(&*panic)))
    }
}

/// A supervisor on duty.
struct Duty {
    nursery: Arc<Nursery>,
    process: Process,
    engine: Supervisor,
    children: BTreeMap<ChildId, Child>,
    orders: Orders,
}

impl Duty {
    async fn supervise(mut self, receiver: &mut mpsc::UnboundedReceiver<Order>) -> Result<(), String> {
        let mut stopping = false;
        loop {
            let event = tokio::select! {
                biased;
                () = self.process.stop.cancelled(), if !stopping => {
                    stopping = true;
                    self.nursery.table.enter(self.process.pid, ProcessState::Stopping);
                    Some(Event::Stop)
                }
                order = receiver.recv() => match order {
                    Some(order) => self.take(order),
                    None => return Err("nobody can give it orders".to_owned()),
                },
            };
            let Some(event) = event else { continue };
            let now = self.process.door.clock().monotonic();
            for command in self.engine.step(now, event) {
                if let Some(reason) = self.carry_out(command).await {
                    return match reason {
                        ExitReason::Normal | ExitReason::Shutdown => Ok(()),
                        other => Err(self.give_up(&other).await),
                    };
                }
            }
        }
    }

    /// Turns an order into an event; an added child is started at once.
    fn take(&mut self, order: Order) -> Option<Event> {
        match order {
            Order::Exited { child, reason } => {
                self.children.get_mut(&child)?.running = None;
                Some(Event::Exited { child, reason })
            }
            Order::ShutdownOver { child } => Some(Event::ShutdownOver { child }),
            Order::Add(spec, reply) => {
                let id = ChildId(self.nursery.next_child.fetch_add(1, Ordering::Relaxed));
                let (restart, shutdown) = (spec.restart, spec.shutdown);
                let orders = match spec.kind {
                    ChildKind::Supervisor(_) => {
                        let (sender, receiver) = mpsc::unbounded_channel();
                        Some((Orders(sender), Arc::new(tokio::sync::Mutex::new(receiver))))
                    }
                    ChildKind::Worker(_) => None,
                };
                let child = Child {
                    seat: self.process.seat.child(&spec.name),
                    spec: *spec,
                    mailbox: Arc::default(),
                    incarnations: 0,
                    running: None,
                    orders,
                };
                self.children.insert(id, child);
                let now = self.process.door.clock().monotonic();
                for command in self.engine.step(now, Event::Added { child: id, restart, shutdown }) {
                    self.start_or_forget(&command);
                }
                if let Some(child) = self.children.get(&id) {
                    let orders = child.orders.as_ref().map(|(orders, _)| orders.clone());
                    let added = Added { seat: child.seat.clone(), mailbox: child.mailbox.clone(), orders };
                    // Whoever asked may have left.
                    let _left: Result<(), _> = reply.send(added);
                }
                None
            }
        }
    }

    fn start_or_forget(&mut self, command: &Command) {
        match command {
            Command::Start(id) => self.start(*id),
            Command::Forget(id) => {
                self.children.remove(id);
            }
            Command::Stop(..) | Command::Kill(_) | Command::Exit(_) => {}
        }
    }

    async fn carry_out(&mut self, command: Command) -> Option<ExitReason> {
        match command {
            Command::Start(id) => {
                self.tell_of_restart(id).await;
                self.start(id);
            }
            Command::Forget(id) => {
                self.children.remove(&id);
            }
            Command::Stop(id, time) => self.stop(id, time),
            Command::Kill(id) => {
                if let Some(running) = self.children.get_mut(&id).and_then(|child| child.running.take()) {
                    drop(running.kill);
                }
            }
            Command::Exit(reason) => return Some(reason),
        }
        None
    }

    fn start(&mut self, id: ChildId) {
        let Some(child) = self.children.get_mut(&id) else { return };
        child.incarnations += 1;
        let orders = child.orders.clone();
        let (spec, seat, mailbox) = (child.spec.clone(), child.seat.clone(), child.mailbox.clone());
        let birth = self.nursery.conceive(Some(self.process.pid), child.incarnations, spec, seat, mailbox, orders);
        child.running = Some(Incarnation { stop: birth.stop.clone(), kill: birth.kill.clone().drop_guard() });
        let (nursery, mine) = (self.nursery.clone(), self.orders.clone());
        tokio::spawn(async move {
            let reason = nursery.live(birth).await;
            // A supervisor that is gone needs no report.
            let _gone: Result<(), _> = mine.0.send(Order::Exited { child: id, reason });
        });
    }

    fn stop(&self, id: ChildId, time: Duration) {
        let Some(running) = self.children.get(&id).and_then(|child| child.running.as_ref()) else { return };
        running.stop.cancel();
        let orders = self.orders.clone();
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            let _gone: Result<(), _> = orders.0.send(Order::ShutdownOver { child: id });
        });
    }

    async fn tell_of_restart(&self, id: ChildId) {
        let session = self.children.get(&id).and_then(|child| child.spec.session);
        if let Some(session) = session {
            let seen = Seen::Restarted { reason: "the agent crashed".to_owned() };
            self.process.door.watchers().show(session, seen).await;
        }
    }

    /// The supervisor of a session ends its turn before it goes, so that nobody waits in vain.
    async fn give_up(&self, reason: &ExitReason) -> String {
        let session = self.process.session;
        if let Some(session) = session.filter(|_| self.process.is_in_turn()) {
            let caller = Caller {
                pid: self.process.pid,
                seat: self.process.seat.clone(),
                session,
                fence: self.process.fence.clone(),
            };
            let reply = ReplyAction { answer: None, end: EndReason::Crashed };
            if let Err(refusal) = self.process.door.call(caller, Action::Reply(reply)).ended().await {
                tracing::error!(%refusal, "a crashed agent could not be reported");
            }
        }
        match reason {
            ExitReason::Error(text) => text.clone(),
            other => other.code().to_owned(),
        }
    }
}
