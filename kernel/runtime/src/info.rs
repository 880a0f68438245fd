//! What is shown of a process.

use std::time::Duration;

use ephor_base::{Pid, Seat, SessionId};
use serde::{Deserialize, Serialize};

use crate::supervisor::Kind;

/// Where a process stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// It has a PID and has not run yet.
    Starting,
    /// It runs.
    Running,
    /// It waits for something to attend to.
    Waiting,
    /// Its message port is parked.
    Suspended,
    /// It was asked to stop, or killed.
    Stopping,
}

/// A live process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resident {
    /// Its PID.
    pub pid: Pid,
    /// The process that supervises it.
    pub parent: Option<Pid>,
    /// Its seat.
    pub seat: Seat,
    /// The session it serves.
    pub session: Option<SessionId>,
    /// A worker or a supervisor.
    pub kind: Kind,
    /// Where it stands.
    pub state: ProcessState,
    /// How often its seat has been filled, from 1.
    pub incarnation: u64,
    /// When it was started, on the host's clock.
    pub started: Duration,
    /// Messages that wait.
    pub waiting: usize,
    /// The process whose answer it waits for.
    pub waits_for: Option<Pid>,
}
