//! The supervision tree at work: carries out what the supervisor engines decide.

use std::{
    collections::{HashMap, VecDeque},
    panic::AssertUnwindSafe,
    sync::Arc,
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
    process::{Body, Process, panic_message},
    seen::Seen,
    supervisor::{
        Answer, ChildId, Command, Ending, Event, Flags, Kind, Name, Refused, Request, Restart, Shutdown, Spec,
        Supervisor, Timer,
    },
    table::{ProcessState, Row, Table},
};

/// A child of a supervisor (OTP `child_spec`).
#[derive(Clone)]
pub(crate) struct ChildSpec {
    /// Its name, unique among its siblings.
    pub(crate) name: String,
    /// When it is started again.
    pub(crate) restart: Restart,
    /// How it is stopped.
    pub(crate) shutdown: Shutdown,
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
    Supervisor(Flags),
}

impl ChildSpec {
    /// What the engine needs to know of it.
    fn for_engine(&self) -> Spec {
        Spec {
            name: Name::from(self.name.as_str()),
            restart: self.restart,
            significant: false,
            shutdown: self.shutdown,
            kind: match self.kind {
                ChildKind::Worker(_) => Kind::Worker,
                ChildKind::Supervisor(_) => Kind::Supervisor,
            },
        }
    }
}

/// Where a supervisor takes its orders.
#[derive(Clone, Debug)]
pub(crate) struct Orders(mpsc::UnboundedSender<Order>);

enum Order {
    Add(Box<ChildSpec>, oneshot::Sender<Result<Added, Refused>>),
    /// For the incarnation with this PID: what it was told by a child or a clock means nothing to the next.
    Event(Pid, Event),
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
    /// Adds a child.
    ///
    /// # Errors
    /// [`Refused`]: nothing was started; the supervisor stops, or has a child of that name.
    pub(crate) async fn add(&self, spec: ChildSpec) -> Result<Added, Refused> {
        let (sender, receiver) = oneshot::channel();
        self.0.send(Order::Add(Box::new(spec), sender)).map_err(|_| Refused::Stopping)?;
        receiver.await.unwrap_or(Err(Refused::Stopping))
    }

    /// Tells the incarnation with this PID. One that is gone needs no report.
    fn report(&self, supervisor: Pid, event: Event) {
        let _gone: Result<(), _> = self.0.send(Order::Event(supervisor, event));
    }
}

/// What every process is started with.
pub(crate) struct Nursery {
    pub(crate) door: Arc<Door>,
    pub(crate) table: Table,
    /// Told whenever a process has exited.
    pub(crate) exits: tokio::sync::Notify,
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

impl Child {
    fn added(&self) -> Added {
        let orders = self.orders.as_ref().map(|(orders, _)| orders.clone());
        Added { seat: self.seat.clone(), mailbox: self.mailbox.clone(), orders }
    }
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
    pub(crate) fn plant(self: &Arc<Self>, name: &str, flags: Flags) -> (Pid, Orders) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (orders, taken) = (Orders(sender), Arc::new(tokio::sync::Mutex::new(receiver)));
        let spec = ChildSpec {
            name: name.to_owned(),
            restart: Restart::Temporary,
            shutdown: Shutdown::Infinite,
            kind: ChildKind::Supervisor(flags),
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
            (ExitReason::Panicked(text) | ExitReason::Error(text) | ExitReason::ShutdownFor(text), Some(_)) => {
                Some(Content::Text(text.clone()))
            }
            _ => None,
        };
        if let Err(error) = self.door.log().note(Record { subject, fact, content }).await {
            tracing::error!(%pid, %error, "an exit could not be recorded");
        }
        self.exits.notify_waiters();
        reason
    }

    fn life(self: &Arc<Self>, birth: Birth, fence: CancellationToken) -> Ends {
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
            (ChildKind::Supervisor(flags), Some((orders, taken))) => self.duty(process, flags, orders, taken),
            (ChildKind::Worker(body), _) => {
                let life = body.run(process).into_inner();
                Box::pin(async move { life.await.map_or_else(ExitReason::Error, |()| ExitReason::Normal) })
            }
            (ChildKind::Supervisor(_), None) => Box::pin(async { ExitReason::Error("it has no orders".to_owned()) }),
        }
    }

    fn duty(self: &Arc<Self>, process: Process, flags: Flags, orders: Orders, taken: Taken) -> Ends {
        // A PID is as good a seed as any: it differs from supervisor to supervisor, and stands on the record.
        let engine = Supervisor::new(flags, Vec::new(), process.pid.0);
        let nursery = self.clone();
        Box::pin(async move {
            let engine = match engine {
                Ok(engine) => engine,
                Err(error) => return ExitReason::Error(error.to_string()),
            };
            let (children, asked) = (HashMap::new(), HashMap::new());
            let duty = Duty { nursery, process, engine, children, asked, next_ticket: 0, orders };
            let mut receiver = taken.lock().await;
            duty.supervise(&mut receiver).await
        })
    }

    /// The reason a life ends for. A panic, also while what it held is dropped, ends only this process.
    async fn until_killed(&self, life: Ends, kill: CancellationToken) -> ExitReason {
        let lived = AssertUnwindSafe(async move {
            tokio::select! {
                biased;
                () = kill.cancelled() => ExitReason::Killed,
                reason = life => reason,
            }
        });
        lived.catch_unwind().await.unwrap_or_else(|panic| ExitReason::Panicked(panic_message(&*panic)))
    }
}

/// A life, up to the reason it ended for.
type Ends = std::pin::Pin<Box<dyn Future<Output = ExitReason> + Send>>;

/// A supervisor on duty.
struct Duty {
    nursery: Arc<Nursery>,
    process: Process,
    engine: Supervisor,
    /// By their place.
    children: HashMap<u32, Child>,
    /// Who waits for the engine's answer, by ticket.
    asked: HashMap<u64, Asker>,
    next_ticket: u64,
    orders: Orders,
}

/// Somebody who adds a child.
struct Asker {
    /// Until the engine gives it a place.
    spec: Option<Box<ChildSpec>>,
    reply: oneshot::Sender<Result<Added, Refused>>,
}

impl Duty {
    async fn supervise(mut self, receiver: &mut mpsc::UnboundedReceiver<Order>) -> ExitReason {
        let mut stopping = false;
        let mut event = Some(Event::Boot);
        loop {
            if let Some(event) = event.take()
                && let Some((reason, ending)) = self.handle(event).await
            {
                return self.exit_reason(reason, ending).await;
            }
            event = tokio::select! {
                biased;
                () = self.process.stop.cancelled(), if !stopping => {
                    stopping = true;
                    self.nursery.table.enter(self.process.pid, ProcessState::Stopping);
                    Some(Event::Stop(ExitReason::Shutdown))
                }
                order = receiver.recv() => match order {
                    Some(order) => self.take(order),
                    None => return ExitReason::Error("nobody can give it orders".to_owned()),
                },
            };
        }
    }

    /// Turns an order into an event.
    fn take(&mut self, order: Order) -> Option<Event> {
        match order {
            Order::Event(pid, event) => {
                if pid != self.process.pid {
                    return None;
                }
                if let Event::Exited(id, _) = &event {
                    self.children.get_mut(&id.place)?.running = None;
                }
                Some(event)
            }
            Order::Add(spec, reply) => {
                let request = Request::Start(spec.for_engine());
                let ticket = self.next_ticket;
                self.next_ticket += 1;
                self.asked.insert(ticket, Asker { spec: Some(spec), reply });
                Some(Event::Asked(ticket, request))
            }
        }
    }

    /// Lets the engine decide and does what it says. A child that is started runs at once, which is an event again.
    async fn handle(&mut self, event: Event) -> Option<(ExitReason, Ending)> {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let now = self.process.door.clock().monotonic();
            for command in self.engine.step(now, event) {
                match command {
                    Command::Adopt(ticket, id) => self.adopt(ticket, id),
                    Command::Start(id) => events.push_back(self.start(id)),
                    Command::Stop(id) => self.stop(id),
                    Command::Kill(id) => self.kill(id),
                    Command::Forget(id) => drop(self.children.remove(&id.place)),
                    Command::Set(timer, time) => self.set(timer, time),
                    Command::Answer(ticket, answer) => self.answer(ticket, answer),
                    Command::Record(id, _) => self.tell_of_restart(id).await,
                    Command::Ready => {}
                    Command::Exit(reason, ending) => return Some((reason, ending)),
                }
            }
        }
        None
    }

    fn adopt(&mut self, ticket: u64, id: ChildId) {
        let Some(spec) = self.asked.get_mut(&ticket).and_then(|asker| asker.spec.take()) else { return };
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
        self.children.insert(id.place, child);
    }

    fn answer(&mut self, ticket: u64, answer: Answer) {
        let Some(asker) = self.asked.remove(&ticket) else { return };
        let added = match answer {
            Answer::Started(id) => self.children.get(&id.place).map(Child::added).ok_or(Refused::NotFound),
            Answer::Refused(refused) => Err(refused),
            // The answers to what is not asked here.
            _ => Err(Refused::NotFound),
        };
        // Whoever asked may have left.
        let _left: Result<(), _> = asker.reply.send(added);
    }

    fn start(&mut self, id: ChildId) -> Event {
        let Some(child) = self.children.get_mut(&id.place) else {
            return Event::StartFailed(id, "nobody knows what it is".to_owned());
        };
        child.incarnations += 1;
        let orders = child.orders.clone();
        let (spec, seat, mailbox) = (child.spec.clone(), child.seat.clone(), child.mailbox.clone());
        let birth = self.nursery.conceive(Some(self.process.pid), child.incarnations, spec, seat, mailbox, orders);
        child.running = Some(Incarnation { stop: birth.stop.clone(), kill: birth.kill.clone().drop_guard() });
        let (nursery, supervisor, mine) = (self.nursery.clone(), self.process.pid, self.orders.clone());
        tokio::spawn(async move {
            let reason = nursery.live(birth).await;
            mine.report(supervisor, Event::Exited(id, reason));
        });
        Event::Started(id)
    }

    fn stop(&self, id: ChildId) {
        if let Some(running) = self.children.get(&id.place).and_then(|child| child.running.as_ref()) {
            running.stop.cancel();
        }
    }

    fn kill(&mut self, id: ChildId) {
        if let Some(running) = self.children.get_mut(&id.place).and_then(|child| child.running.take()) {
            drop(running.kill);
        }
    }

    /// Behind everything that waits already, if the time is zero.
    fn set(&self, timer: Timer, time: Duration) {
        let (supervisor, orders) = (self.process.pid, self.orders.clone());
        if time.is_zero() {
            return orders.report(supervisor, Event::Fired(timer));
        }
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            orders.report(supervisor, Event::Fired(timer));
        });
    }

    async fn tell_of_restart(&self, id: ChildId) {
        let session = self.children.get(&id.place).and_then(|child| child.spec.session);
        if let Some(session) = session {
            let seen = Seen::Restarted { reason: "the agent crashed".to_owned() };
            self.process.door.watchers().show(session, seen).await;
        }
    }

    async fn exit_reason(&self, reason: ExitReason, ending: Ending) -> ExitReason {
        match ending {
            Ending::Ordered | Ending::AutoShutdown | Ending::StartFailed => reason,
            Ending::Intensity => {
                self.give_up().await;
                ExitReason::ShutdownFor("its children were restarted too often".to_owned())
            }
        }
    }

    /// The supervisor of a session ends its turn before it goes, so that nobody waits in vain.
    async fn give_up(&self) {
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
    }
}
