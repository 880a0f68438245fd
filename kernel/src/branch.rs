//! A supervisor of a node's tree that can be asked and changed while it runs.

use std::{sync::Arc, time::Duration};

use ephor_base::{Pid, Seat};

use crate::{
    chronicle::Chronicle,
    process::{Body, Embodied},
};
use ephor_runtime::{
    ChildSpec, Started, Supervision, SupervisorSpec, Task,
    supervisor::{Flags, Name, Refused, Restart, Shutdown, Target},
};

/// A child of a branch (OTP `child_spec`).
#[derive(Clone)]
pub struct Child {
    /// Its name, unique among its siblings.
    pub name: String,
    /// When it is started again.
    pub restart: Restart,
    /// Whether its end counts for the supervisor's own.
    pub significant: bool,
    /// How it is stopped.
    pub shutdown: Shutdown,
    /// What it is.
    pub work: Work,
    /// How long it may work on one message before it counts as hung. For ever, if there is none.
    pub limit: Option<Duration>,
}

/// A worker or a supervisor.
#[derive(Clone)]
pub enum Work {
    /// It runs this body.
    Body(Arc<dyn Body>),
    /// It supervises these children, in the order of their start; if it is dynamic, one stands for all to come.
    Children(Flags, Vec<Child>),
}

/// How long a worker may take to stop before it is killed (OTP's default).
const SHUTDOWN: Duration = Duration::from_secs(5);

impl Child {
    /// A permanent worker that has five seconds to stop, as in OTP.
    #[must_use]
    pub fn worker(name: &str, body: Arc<dyn Body>) -> Self {
        Self::permanent(name, Shutdown::Within(SHUTDOWN), Work::Body(body))
    }

    /// A permanent supervisor that has all the time it needs to stop, as in OTP.
    #[must_use]
    pub fn supervisor(name: &str, flags: Flags, children: Vec<Self>) -> Self {
        Self::permanent(name, Shutdown::Infinite, Work::Children(flags, children))
    }

    fn permanent(name: &str, shutdown: Shutdown, work: Work) -> Self {
        let (restart, significant, limit) = (Restart::Permanent, false, None);
        Self { name: name.to_owned(), restart, significant, shutdown, work, limit }
    }

    pub(crate) fn into_spec(self) -> ChildSpec<Chronicle> {
        let task = match self.work {
            Work::Body(body) => Task::Worker(Arc::new(Embodied(body))),
            Work::Children(flags, children) => {
                let children = children.into_iter().map(Self::into_spec).collect();
                Task::Supervisor(Arc::new(SupervisorSpec::new(flags, children)))
            }
        };
        ChildSpec {
            name: Name::from(self.name.as_str()),
            restart: self.restart,
            significant: self.significant,
            shutdown: self.shutdown,
            task,
            session: None,
            keeps_messages: false,
            limit: self.limit,
        }
    }
}

/// A supervisor, whichever incarnation fills its seat. Nothing in it serves a session, so it reaches no effect.
#[derive(Clone)]
pub struct Branch(pub(crate) Supervision<Chronicle>);

/// A child that runs.
#[derive(Clone)]
pub struct Sprout {
    /// What a dynamic child is terminated by.
    pub target: Target,
    /// Its PID.
    pub pid: Pid,
    /// Its seat.
    pub seat: Seat,
    /// If it is a supervisor, itself.
    pub branch: Option<Branch>,
}

impl Branch {
    /// Its seat.
    #[must_use]
    pub fn seat(&self) -> &Seat {
        self.0.seat()
    }

    /// Adds a child at the end and starts it (OTP `start_child/2`).
    ///
    /// # Errors
    /// [`Refused`]
    pub async fn start(&self, child: Child) -> Result<Sprout, Refused> {
        self.0.start(child.into_spec()).await.and_then(sprout)
    }

    /// Adds a dynamic child, with a body of its own if there is one.
    ///
    /// # Errors
    /// [`Refused`]
    pub async fn start_dynamic(&self, body: Option<Arc<dyn Body>>) -> Result<Sprout, Refused> {
        let body = body.map(|body| -> Arc<dyn ephor_runtime::Body<Chronicle>> { Arc::new(Embodied(body)) });
        self.0.start_dynamic(body).await.and_then(sprout)
    }

    /// Stops a child; its specification stays unless it is temporary (OTP `terminate_child/2`).
    ///
    /// # Errors
    /// [`Refused`]
    pub async fn terminate(&self, target: Target) -> Result<(), Refused> {
        self.0.terminate(target).await
    }
}

/// Bodies of a node have no way to be ignored, so there is always one that runs.
fn sprout(started: Option<Started<Chronicle>>) -> Result<Sprout, Refused> {
    let Started { id, pid, address } = started.ok_or(Refused::NotFound)?;
    let branch = address.supervision().map(Branch);
    Ok(Sprout { target: Target::Child(id), pid, seat: address.seat().clone(), branch })
}
