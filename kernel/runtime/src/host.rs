//! What the runtime asks of the host it runs for, and what it tells.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use ephor_base::{ExitReason, Pid, Seat, SessionId};

use super::{Process, row::Row};
use crate::{supervisor::Cause, timers::Timers};

/// What the runtime runs for: its clock, its record and its dead letters.
pub trait Host: Send + Sync + Sized + 'static {
    /// What processes send one another.
    type Message: Send + 'static;

    /// What everybody who waits for a time waits on.
    fn timers(&self) -> &Timers;

    /// The time since some fixed moment. It never goes back.
    fn now(&self) -> Duration {
        self.timers().now()
    }

    /// Takes what happened below one supervisor, oldest first, and leaves `news` empty. No process that was born runs before this
    /// is done; if it fails, each that was born is over before it began, with the error as the reason.
    fn tell(&self, news: &mut Vec<News<Self>>) -> Told;

    /// No process will ever take these messages, which were sent to `seat`.
    fn undelivered(&self, seat: &Seat, session: Option<SessionId>, messages: Vec<Self::Message>);

    /// A supervisor has had more restarts than it bears, and all of its children are gone. It exits when this is done.
    fn gives_up(&self, _supervisor: &Process<Self>) -> Option<Later<()>> {
        None
    }
}

/// How far the host has taken what it was told.
pub enum Told {
    /// It has.
    Taken,
    /// It could not, for this reason.
    Refused(String),
    /// It has when this resolves. The caller always waits for it.
    Later(Later<Result<(), String>>),
}

/// A future that may be sent to another thread.
pub struct Later<T>(Pin<Box<dyn Future<Output = T> + Send>>);

impl<T> Later<T> {
    /// Boxes a future.
    pub fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }
}

impl<T> Future for Later<T> {
    type Output = T;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.0.as_mut().poll(context)
    }
}

/// Something that happened to one process.
pub struct News<H: Host> {
    pub(super) row: Arc<Row<H>>,
    pub(super) pid: Pid,
    pub(super) what: What,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// It was given a PID and is about to run.
    Born {
        /// How often its seat has been filled, this time included.
        incarnation: u64,
    },
    /// It exited.
    Exited(ExitReason),
    /// Its seat is about to be filled again; the PID is the one before. A restart that is tried again comes here once a try.
    Restarting(Cause),
}

impl<H: Host> News<H> {
    /// Whose news it is.
    #[must_use]
    pub const fn pid(&self) -> Pid {
        self.pid
    }

    /// What happened.
    #[must_use]
    pub const fn what(&self) -> &What {
        &self.what
    }

    /// The seat of the process.
    #[must_use]
    pub fn seat(&self) -> &Seat {
        self.row.seat()
    }

    /// The session it serves.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.row.session()
    }

    /// The process that supervises it.
    #[must_use]
    pub fn parent(&self) -> Option<Pid> {
        self.row.parent()
    }

    /// The seat of its supervisor.
    #[must_use]
    pub fn supervisor(&self) -> Option<&Seat> {
        self.row.supervisor().map(|(row, _)| row.seat())
    }

    /// Tells its seat from others as long as the news is there.
    #[must_use]
    pub fn key(&self) -> SeatKey {
        SeatKey(Arc::as_ptr(&self.row).addr())
    }
}

/// Tells seats apart that are spoken of in the same news.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SeatKey(usize);
