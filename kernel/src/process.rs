//! A process of a node, as its own code sees it.

use std::{sync::Arc, time::Duration};

use ephor_base::{Action, Envelope, Pid, Seat, SpanId};

use crate::{
    chronicle::Chronicle,
    door::{Call, Caller, Door, Moment, Session},
    seen::{Seen, TurnState},
};
use ephor_runtime as runtime;
use ephor_runtime::links::{MonitorId, NotNamed, Signal};

pub use ephor_runtime::Life;

/// The code of a process. One body serves every incarnation of its seat.
pub trait Body: Send + Sync + 'static {
    /// Runs one incarnation. `Ok` is a normal exit. It may panic, and it is dropped when it is killed.
    fn run(&self, process: Process) -> Life;
}

/// A body of a node, as the runtime runs it.
pub(crate) struct Embodied(pub(crate) Arc<dyn Body>);

impl runtime::Body<Chronicle> for Embodied {
    fn run(&self, process: runtime::Process<Chronicle>) -> Life {
        self.0.run(Process(process, tokio::sync::Mutex::default()))
    }
}

/// What a process is asked to attend to. A stop comes before exits, and those before messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incoming {
    /// Stop in good order.
    Stop,
    /// A process that it monitors is gone.
    Exit(Signal),
    /// A message.
    Message(Envelope),
}

/// The handle of one incarnation: its PID and everything it may do. Not `Clone`: it is the identity.
///
/// One at a time takes from its mailbox: a task that takes a message has begun its turn before another looks.
pub struct Process(runtime::Process<Chronicle>, tokio::sync::Mutex<()>);

impl Process {
    /// Its PID.
    #[must_use]
    pub const fn pid(&self) -> Pid {
        self.0.pid()
    }

    /// Its seat.
    #[must_use]
    pub fn seat(&self) -> &Seat {
        self.0.seat()
    }

    /// Waits for the next thing to attend to. Taking a message begins a turn, so while one is under way there is nothing
    /// to take but a stop and exits: a turn that was begun ends on the record.
    pub async fn receive(&self) -> Incoming {
        let _one = self.1.lock().await;
        let incoming = if self.is_in_turn() { self.0.attend().await } else { self.0.receive().await };
        match incoming {
            runtime::Incoming::Stop => Incoming::Stop,
            runtime::Incoming::Exit(signal) => Incoming::Exit(signal),
            // No process waits for an answer here: what a process says to another goes through the door.
            runtime::Incoming::Message(envelope) | runtime::Incoming::Request(envelope, _) => {
                self.door().begin_turn(&envelope);
                Incoming::Message(envelope)
            }
        }
    }

    /// Resolves when the process is asked to stop, or is over.
    pub async fn stopping(&self) {
        self.0.stopping().await;
    }

    /// The system call: the only way to do anything. A process without a session cannot make one.
    #[must_use]
    pub fn call(&self, action: Action) -> Option<Call> {
        let caller =
            Caller { pid: self.pid(), seat: self.seat().clone(), session: self.0.session()?, fence: self.0.fence() };
        Some(self.door().call(caller, action))
    }

    /// The span of the instructions every prompt begins with.
    #[must_use]
    pub const fn instructions(&self) -> SpanId {
        Session::INSTRUCTIONS
    }

    /// Everything that happened in the session so far, oldest first.
    #[must_use]
    pub fn transcript(&self) -> Vec<Moment> {
        self.look(|session| session.moments.clone()).unwrap_or_default()
    }

    /// Whether a turn is under way, perhaps begun by an incarnation before this one.
    #[must_use]
    pub fn is_in_turn(&self) -> bool {
        self.look(|session| session.turn.is_some()).unwrap_or(false)
    }

    /// Whether the turn under way is no request: an operator does something in it by tool calls of their own.
    #[must_use]
    pub fn is_errand(&self) -> bool {
        self.look(|session| session.turn.is_some() && session.is_errand()).unwrap_or(false)
    }

    /// How long the turn under way has worked; waiting for a person does not count.
    #[must_use]
    pub fn turn_time(&self) -> Duration {
        let now = self.door().clock().monotonic();
        let time = self.look(|session| session.turn.as_ref().map(|turn| turn.worked(now)));
        time.flatten().unwrap_or_default()
    }

    /// Resolves when the person cancels the turn under way; never, if there is none.
    pub async fn turn_cancelled(&self) {
        let cancel = self.look(|session| session.turn.as_ref().map(|turn| turn.cancel.clone())).flatten();
        match cancel {
            Some(cancel) => cancel.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until `time` has passed by the clock of the node.
    pub async fn sleep(&self, time: Duration) {
        self.0.sleep(time).await;
    }

    /// Tells the watcher that the turn entered `state`.
    pub fn enter(&self, state: TurnState) {
        if let Some(session) = self.0.session().filter(|_| self.0.is_live()) {
            let _is_watched: bool = self.door().watchers().show(session, Seen::State { state });
        }
    }

    // Relations to other processes. None lets a process end another or say anything to it: that takes an operator, through the door.

    /// Has this process told when another exits; at once, if it has already.
    pub fn monitor(&self, other: Pid) -> MonitorId {
        self.0.monitor(other)
    }

    /// Takes one of its monitors away; says whether it was still there.
    pub fn demonitor(&self, monitor: MonitorId) -> bool {
        self.0.demonitor(monitor)
    }

    /// Takes a name until it exits.
    ///
    /// # Errors
    /// [`NotNamed`]: a name has one process and a process one name.
    pub fn register(&self, name: &str) -> Result<(), NotNamed> {
        self.0.register(name)
    }

    /// Who has a name.
    #[must_use]
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.0.whereis(name)
    }

    /// Joins the group of a topic until it exits; false if it is over.
    pub fn join(&self, topic: &str) -> bool {
        self.0.join(topic)
    }

    /// Leaves the group of a topic; says whether it was in it.
    pub fn leave(&self, topic: &str) -> bool {
        self.0.leave(topic)
    }

    /// The members of the group of a topic, by PID.
    #[must_use]
    pub fn members(&self, topic: &str) -> Vec<Pid> {
        self.0.members(topic)
    }

    fn door(&self) -> &Arc<Door> {
        &self.0.host().door
    }

    fn look<T>(&self, f: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.0.session().filter(|_| self.0.is_live()).and_then(|session| self.door().with_session(session, f))
    }
}
