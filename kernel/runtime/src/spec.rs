//! What a child is: a body or a supervisor, and how it is kept.

use std::{borrow::Cow, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use ephor_base::{ExitReason, SessionId};

use super::{Host, Process, panics::contained};
use crate::supervisor::{Flags, Kind, Name, Restart, Shutdown, Spec};

/// The code of a process. One body serves every incarnation of its seat.
pub trait Body<H: Host>: Send + Sync + 'static {
    /// Whether an incarnation can begin (OTP's `init`). It runs within its supervisor, which waits for it, and has no
    /// handle: it can look and refuse, and nothing else. A panic is a start that failed.
    fn begin(&self) -> Begin {
        Begin::Runs
    }

    /// Runs one incarnation, in a task of its own. It may panic, and it is dropped when it is killed.
    fn run(&self, process: Process<H>) -> Life;
}

/// How a start goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Begin {
    /// It will run.
    Runs,
    /// It does not want to (OTP `ignore`).
    Ignored,
    /// It cannot, for this reason.
    Failed(String),
}

/// One incarnation at work.
pub struct Life(pub(super) Pin<Box<dyn Future<Output = ExitReason> + Send>>);

impl Life {
    /// Boxes a body's future. An error is the reason of an abnormal exit.
    pub fn new(future: impl Future<Output = Result<(), String>> + Send + 'static) -> Self {
        Self(Box::pin(async move { future.await.map_or_else(ExitReason::Error, |()| ExitReason::Normal) }))
    }

    /// Boxes a future that says itself what it exits with (OTP `exit/1`).
    pub fn exiting(future: impl Future<Output = ExitReason> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }
}

/// A worker or a supervisor.
pub enum Task<H: Host> {
    /// It runs this body.
    Worker(Arc<dyn Body<H>>),
    /// It supervises.
    Supervisor(Arc<SupervisorSpec<H>>),
}

impl<H: Host> Clone for Task<H> {
    fn clone(&self) -> Self {
        match self {
            Self::Worker(body) => Self::Worker(body.clone()),
            Self::Supervisor(spec) => Self::Supervisor(spec.clone()),
        }
    }
}

impl<H: Host> Task<H> {
    /// Whether an incarnation can begin.
    pub(super) fn begin(&self) -> Begin {
        let begun = contained(|| match self {
            Self::Worker(body) => body.begin(),
            Self::Supervisor(spec) => spec.begin(),
        });
        begun.unwrap_or_else(|panicked| Begin::Failed(format!("its start panicked: {panicked:?}")))
    }

    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::Worker(_) => Kind::Worker,
            Self::Supervisor(_) => Kind::Supervisor,
        }
    }
}

/// How a supervisor works, and the children it begins with; of a dynamic one, what every child is.
pub struct SupervisorSpec<H: Host> {
    /// How it works.
    pub flags: Flags,
    /// The children, in the order of their start.
    pub children: Vec<ChildSpec<H>>,
    begin: Option<Box<dyn Fn() -> Begin + Send + Sync>>,
    joined: Option<Joined<H>>,
}

/// Who has joined the children of a supervisor, asked at each of its starts.
type Joined<H> = Box<dyn Fn() -> Vec<ChildSpec<H>> + Send + Sync>;

impl<H: Host> SupervisorSpec<H> {
    /// A supervisor that starts these children, or of a dynamic one, children like this.
    #[must_use]
    pub const fn new(flags: Flags, children: Vec<ChildSpec<H>>) -> Self {
        Self { flags, children, begin: None, joined: None }
    }

    /// The same; before each incarnation it is asked whether it can begin, as a [`Body`] is.
    #[must_use]
    pub fn that_begins(self, begin: impl Fn() -> Begin + Send + Sync + 'static) -> Self {
        Self { begin: Some(Box::new(begin)), ..self }
    }

    /// The same; at each start those that `joined` gives come behind its own children (OTP `init/1`).
    #[must_use]
    pub fn joined_by(self, joined: impl Fn() -> Vec<ChildSpec<H>> + Send + Sync + 'static) -> Self {
        Self { joined: Some(Box::new(joined)), ..self }
    }

    pub(super) fn begin(&self) -> Begin {
        self.begin.as_ref().map_or(Begin::Runs, |begin| begin())
    }

    /// The children of a supervisor that starts now.
    pub(super) fn all_children(&self) -> Cow<'_, [ChildSpec<H>]> {
        match &self.joined {
            None => Cow::Borrowed(&self.children),
            Some(joined) => self.children.iter().cloned().chain(joined()).collect(),
        }
    }
}

/// A child of a supervisor (OTP `child_spec`).
pub struct ChildSpec<H: Host> {
    /// Its name, unique among its siblings.
    pub name: Name,
    /// When it is started again.
    pub restart: Restart,
    /// Whether its end counts for the supervisor's own.
    pub significant: bool,
    /// How it is stopped.
    pub shutdown: Shutdown,
    /// What it is.
    pub task: Task<H>,
    /// The session it serves. The runtime carries it and never looks at it.
    pub session: Option<SessionId>,
    /// Whether messages that wait when it exits are for the next incarnation.
    pub keeps_messages: bool,
    /// How long it may work on one message before it counts as hung. For ever, if there is none.
    pub limit: Option<Duration>,
}

impl<H: Host> Clone for ChildSpec<H> {
    fn clone(&self) -> Self {
        let Self { restart, significant, shutdown, session, keeps_messages, limit, .. } = *self;
        let (name, task) = (self.name.clone(), self.task.clone());
        Self { name, restart, significant, shutdown, task, session, keeps_messages, limit }
    }
}

/// How long a child may take to stop before it is killed (OTP's default for workers).
const PATIENCE: Duration = Duration::from_secs(5);

impl<H: Host> ChildSpec<H> {
    /// A permanent worker that has five seconds to stop, as in OTP.
    #[must_use]
    pub fn worker(name: &str, body: Arc<dyn Body<H>>) -> Self {
        Self::permanent(name, Shutdown::Within(PATIENCE), Task::Worker(body))
    }

    /// A permanent supervisor that has all the time it needs to stop, as in OTP.
    #[must_use]
    pub fn supervisor(name: &str, spec: SupervisorSpec<H>) -> Self {
        Self::permanent(name, Shutdown::Infinite, Task::Supervisor(Arc::new(spec)))
    }

    fn permanent(name: &str, shutdown: Shutdown, task: Task<H>) -> Self {
        Self {
            name: Name::from(name),
            restart: Restart::Permanent,
            significant: false,
            shutdown,
            task,
            session: None,
            keeps_messages: false,
            limit: None,
        }
    }

    /// What the engine needs to know of it.
    pub(super) fn for_engine(&self) -> Spec {
        Spec {
            name: self.name.clone(),
            restart: self.restart,
            significant: self.significant,
            shutdown: self.shutdown,
            kind: self.task.kind(),
        }
    }
}

impl<H: Host> fmt::Debug for ChildSpec<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec").field("name", &self.name).field("restart", &self.restart).finish_non_exhaustive()
    }
}
