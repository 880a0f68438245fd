//! The process table.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ephor_base::{Budget, Pid, Seat, SessionId};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::mailbox::Mailbox;

/// Where a process stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// It has a PID and no record of its start yet.
    Starting,
    /// It runs.
    Running,
    /// It was asked to stop.
    Stopping,
}

/// A row of the table, as it is shown. Exited processes have none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Its PID.
    pub pid: Pid,
    /// Its seat.
    pub seat: Seat,
    /// The process that supervises it.
    pub parent: Option<Pid>,
    /// Where it stands.
    pub state: ProcessState,
    /// How often its seat was restarted.
    pub restarts: u64,
    /// The session it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Messages that wait.
    pub waiting: usize,
    /// What its seat has used.
    pub used: Budget,
    /// Since its start, in milliseconds.
    pub uptime_ms: u64,
}

/// One process.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) seat: Seat,
    pub(crate) parent: Option<Pid>,
    pub(crate) state: ProcessState,
    pub(crate) incarnation: u64,
    pub(crate) session: Option<SessionId>,
    pub(crate) waiting: Arc<Mailbox>,
    pub(crate) started: Duration,
    /// Fires the stop latch.
    pub(crate) stop: CancellationToken,
    /// Fires the kill latch.
    pub(crate) kill: CancellationToken,
}

/// Every live process by PID.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Mutex<BTreeMap<Pid, Row>>,
    next: AtomicU64,
}

impl Table {
    pub(crate) fn new(first: Pid) -> Self {
        Self { rows: Mutex::default(), next: AtomicU64::new(first.0) }
    }

    /// Gives `row` the next PID.
    pub(crate) fn insert(&self, row: Row) -> Pid {
        let pid = Pid(self.next.fetch_add(1, Ordering::Relaxed));
        self.rows().insert(pid, row);
        pid
    }

    pub(crate) fn enter(&self, pid: Pid, state: ProcessState) {
        if let Some(row) = self.rows().get_mut(&pid) {
            row.state = state;
        }
    }

    pub(crate) fn remove(&self, pid: Pid) {
        self.rows().remove(&pid);
    }

    pub(crate) fn row(&self, pid: Pid) -> Option<Row> {
        self.rows().get(&pid).cloned()
    }

    pub(crate) fn all(&self) -> Vec<(Pid, Row)> {
        self.rows().iter().map(|(pid, row)| (*pid, row.clone())).collect()
    }

    fn rows(&self) -> std::sync::MutexGuard<'_, BTreeMap<Pid, Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
