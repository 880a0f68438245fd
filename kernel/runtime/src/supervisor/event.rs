//! What a supervisor hears and says.

use std::time::Duration;

use ephor_base::ExitReason;

use super::{Kind, Name, Spec};

/// One incarnation of one child within its supervisor. A place is used again once its child is forgotten; an id is not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChildId {
    /// The child's place: the same over all of its incarnations, below the largest number of children there ever were.
    pub place: u32,
    /// Which incarnation of this place; it only grows.
    pub run: u32,
}

/// Something that happened to a supervisor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// It is to start its children. The first event; their places are 0, 1, 2 … in the order of the specifications.
    Boot,
    /// The child that was to be started runs.
    Started(ChildId),
    /// The child that was to be started does not want to run (OTP `ignore`).
    Ignored(ChildId),
    /// The child that was to be started could not be, for this reason. It does not run.
    StartFailed(ChildId, String),
    /// A child that ran exited.
    Exited(ChildId, ExitReason),
    /// A timer fired.
    Fired(Timer),
    /// A caller asks for something; the answer carries the same ticket.
    Asked(u64, Request),
    /// The supervisor is to stop, and to exit with this reason.
    Stop(ExitReason),
}

/// What a supervisor wants done, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// The child that was asked for under this ticket is this one; it is about to be started.
    Adopt(u64, ChildId),
    /// Start the child, and report `Started`, `Ignored` or `StartFailed`.
    Start(ChildId),
    /// Ask the child to stop; it reports `Exited`.
    Stop(ChildId),
    /// Kill the child; it reports `Exited`.
    Kill(ChildId),
    /// Forget the child; its place may be given to another.
    Forget(ChildId),
    /// Report `Fired` after this time: after zero, behind everything that waits already.
    Set(Timer, Duration),
    /// Tell the caller that asked.
    Answer(u64, Answer),
    /// For the record: this child, and those its strategy takes along, are about to be started again.
    Record(ChildId, Cause),
    /// Every child was started: the supervisor itself has started.
    Ready,
    /// The supervisor exits with this reason. All children are gone.
    Exit(ExitReason, Ending),
}

/// What a supervisor can set a clock for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The time of this child to stop is over.
    Patience(ChildId),
    /// The time of all dynamic children to stop is over.
    PatienceWithAll,
    /// A start that failed is to be tried again, which counts as a restart.
    Retry(ChildId),
    /// The wait before a restart that was counted already is over.
    Backoff(ChildId),
}

/// Why a child is started again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// It exited.
    Exited(ExitReason),
    /// It could not be started.
    StartFailed,
}

/// Why a supervisor exits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It was told to.
    Ordered,
    /// There were more restarts than it bears.
    Intensity,
    /// Its significant children ended.
    AutoShutdown,
    /// A child could not be started with it.
    StartFailed,
}

/// What can be asked of a supervisor that runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Add a child at the end and start it (OTP `start_child/2`).
    Start(Spec),
    /// Add a child of the one kind and start it (OTP `start_child/2` on `simple_one_for_one`).
    StartDynamic,
    /// Stop a child; its specification stays unless it is temporary (OTP `terminate_child/2`).
    Terminate(Target),
    /// Start a child that does not run (OTP `restart_child/2`).
    Restart(Name),
    /// Remove the specification of a child that does not run (OTP `delete_child/2`).
    Delete(Name),
    /// List the children (OTP `which_children/1`).
    Which,
    /// Count the children (OTP `count_children/1`).
    Count,
}

/// Who is to be terminated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A child by its name.
    Name(Name),
    /// A dynamic child.
    Child(ChildId),
}

/// What a supervisor answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The child runs.
    Started(ChildId),
    /// The child did not want to run (OTP `{ok, undefined}`).
    Ignored,
    /// It is done.
    Done,
    /// The children, the last started first; dynamic ones in no order.
    Children(Vec<Listed>),
    /// The numbers.
    Counted(Counted),
    /// It was not done.
    Refused(Refused),
}

/// A child as it is listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Its name; dynamic children have none.
    pub name: Option<Name>,
    /// Where it stands.
    pub standing: Standing,
    /// What it is.
    pub kind: Kind,
}

/// Where a child stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It runs, as far as the supervisor knows.
    Running(ChildId),
    /// It does not run and will not be started by itself (OTP `undefined`).
    Stopped,
    /// It is to be started again.
    Restarting,
}

/// How many children there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// Specifications.
    pub specs: usize,
    /// Children that run.
    pub active: usize,
    /// Supervisors, running or not.
    pub supervisors: usize,
    /// Workers, running or not.
    pub workers: usize,
}

/// Why a request was not granted. Nothing changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// A child of this name runs.
    #[error("it runs already")]
    AlreadyStarted(ChildId),
    /// A child of this name is there, and does not run.
    #[error("it is there already, and does not run")]
    AlreadyPresent,
    /// There is no such child.
    #[error("there is no such child")]
    NotFound,
    /// The child runs.
    #[error("it runs")]
    Running,
    /// The child is about to be started again.
    #[error("it is about to be started again")]
    Restarting,
    /// A supervisor of dynamic children cannot do that (OTP `simple_one_for_one`), or only one can.
    #[error("dynamic children and others are asked for differently")]
    Dynamic,
    /// The child would be significant where it cannot be.
    #[error("it cannot be significant there")]
    Significant,
    /// The child could not be started.
    #[error("it could not be started: {0}")]
    StartFailed(String),
    /// The supervisor stops.
    #[error("the supervisor stops")]
    Stopping,
}
