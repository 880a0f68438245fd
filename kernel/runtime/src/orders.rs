//! What a supervisor is told and asked.

use std::sync::Arc;

use ephor_base::{ExitReason, Pid};
use tokio::sync::oneshot;

use super::{Address, Body, ChildSpec, Host};
use crate::supervisor::{ChildId, Counted, Kind, Name, Refused, Target, Timer};

/// One entry of a supervisor's desk.
pub(super) enum Order<H: Host> {
    /// A child exited.
    Exited(ChildId, Pid, ExitReason),
    /// A child that is a supervisor has started its own children.
    Ready(ChildId),
    /// A timer that goes behind everything that waits.
    Fired(Timer),
    /// A caller asks for something.
    Asked(Ask<H>),
}

/// A request with its way back.
pub(super) struct Ask<H: Host> {
    pub(super) what: Asked<H>,
    pub(super) reply: oneshot::Sender<Result<Told<H>, Refused>>,
}

/// What can be asked.
pub(super) enum Asked<H: Host> {
    Start(Box<ChildSpec<H>>),
    StartDynamic(Option<Arc<dyn Body<H>>>),
    Terminate(Target),
    Restart(Name),
    Delete(Name),
    Which,
    Count,
}

/// What is answered.
pub(super) enum Told<H: Host> {
    Started(Started<H>),
    Ignored,
    Done,
    Children(Vec<Listing>),
    Counted(Counted),
}

/// A child that was started.
pub struct Started<H: Host> {
    /// Which child of its supervisor it is.
    pub id: ChildId,
    /// Its PID.
    pub pid: Pid,
    /// Its seat, over all of its incarnations.
    pub address: Address<H>,
}

/// A child as its supervisor lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing {
    /// Its name; dynamic children have none.
    pub name: Option<Name>,
    /// Which child it is and its PID, if it runs.
    pub running: Option<(ChildId, Pid)>,
    /// Whether it is to be started again.
    pub is_restarting: bool,
    /// What it is.
    pub kind: Kind,
}
