//! A process, as its own code sees it.

use std::{any::Any, future::Future, pin::Pin, sync::Arc, time::Duration};

use ephor_base::{Action, Envelope, Pid, Seat, SessionId, SpanId};
use tokio_util::sync::CancellationToken;

use crate::{
    door::{Call, Caller, Door, Moment, Origin, Session},
    mailbox::Mailbox,
    seen::{Seen, TurnState},
};

/// The code of a process. One body serves every incarnation of its seat.
pub trait Body: Send + Sync + 'static {
    /// Runs one incarnation. `Ok` is a normal exit. It may panic, and it is dropped when it is killed.
    fn run(&self, process: Process) -> Life;
}

/// One incarnation at work.
pub struct Life(Pin<Box<dyn Future<Output = Result<(), String>> + Send>>);

impl Life {
    /// Boxes a body's future. An error is the reason of an abnormal exit.
    pub fn new(future: impl Future<Output = Result<(), String>> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }

    pub(crate) fn into_inner(self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        self.0
    }
}

/// What a process is asked to attend to. A stop comes before any message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incoming {
    /// Stop in good order.
    Stop,
    /// A message.
    Message(Envelope),
}

/// The handle of one incarnation: its PID and everything it may do. Not `Clone`: it is the identity.
pub struct Process {
    pub(crate) pid: Pid,
    pub(crate) seat: Seat,
    pub(crate) session: Option<SessionId>,
    pub(crate) door: Arc<Door>,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) stop: CancellationToken,
    pub(crate) fence: CancellationToken,
}

impl Process {
    /// Its PID.
    #[must_use]
    pub const fn pid(&self) -> Pid {
        self.pid
    }

    /// Its seat.
    #[must_use]
    pub const fn seat(&self) -> &Seat {
        &self.seat
    }

    /// What its messages to other sessions come out of; nothing if it has no session, or is over.
    pub(crate) fn origin(&self) -> Option<Origin> {
        let level = self.look(|session| session.highest())?;
        self.session.map(|session| Origin::Session(session, level))
    }

    /// Waits for the next thing to attend to. Taking a message begins a turn, so while one is under way there is nothing
    /// to take but a stop: a turn that was begun ends on the record.
    pub async fn receive(&self) -> Incoming {
        let is_free = !self.is_in_turn();
        tokio::select! {
            biased;
            // The messages of an incarnation that is over are the next one's.
            () = self.fence.cancelled() => Incoming::Stop,
            () = self.stop.cancelled() => Incoming::Stop,
            envelope = self.mailbox.take(), if is_free => {
                self.door.begin_turn(&envelope);
                Incoming::Message(envelope)
            }
        }
    }

    /// Resolves when the process is asked to stop.
    pub async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    /// The system call: the only way to do anything. A process without a session cannot make one.
    #[must_use]
    pub fn call(&self, action: Action) -> Option<Call> {
        let caller =
            Caller { pid: self.pid, seat: self.seat.clone(), session: self.session?, fence: self.fence.clone() };
        Some(self.door.call(caller, action))
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

    /// How long the turn under way has worked; waiting for a person does not count.
    #[must_use]
    pub fn turn_time(&self) -> Duration {
        let now = self.door.clock().monotonic();
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

    /// Waits for `time`.
    pub async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Tells whoever watches that the turn entered `state`.
    pub async fn enter(&self, state: TurnState) {
        if let Some(session) = self.session.filter(|_| !self.fence.is_cancelled()) {
            self.door.watchers().show(session, Seen::State { state }).await;
        }
    }

    fn look<T>(&self, f: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.session.filter(|_| !self.fence.is_cancelled()).and_then(|session| self.door.with_session(session, f))
    }
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}
