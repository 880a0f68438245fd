//! The runtime of processes: what carries out OTP's semantics.
//!
//! It knows of no door, no chain and no agents: it runs for a [`Host`], which it asks for the time and tells what happened,
//! so that it can be measured and simulated by itself. [`Runtime::plant`] starts a tree; a [`Supervision`] is asked to
//! change it; a [`Body`] gets a [`Process`].
//!
//! A process costs one task, one row and what its body holds. The task reports its own end. The row belongs to the seat, so
//! that a restart makes none; all that a process can be told comes through its row, kill before stop before exits before
//! messages. Queues are allocated when they are first used. `duty` carries out what the supervisor engine decides.

mod ask;
mod asking;
mod duty;
mod host;
mod info;
pub mod links;
mod living;
pub mod lock;
mod orders;
mod panics;
mod port;
mod priority;
mod process;
mod relations;
mod relay;
mod row;
mod spec;
mod supervision;
pub mod supervisor;
mod table;
pub mod timers;
mod watchdog;

use std::{
    future::Future,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ephor_base::{ExitReason, Pid, Seat};
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
};

pub use ask::{NotSent, Reply, Unanswered};
pub use duty::TOO_OFTEN;
pub use host::{Host, Later, News, SeatKey, Told, What};
pub use info::{ProcessState, Resident};
pub use orders::{Listing, Started};
pub use panics::install_panic_hook;
pub use panics::{contained, panic_message};
pub use port::CAPACITY;
pub use process::{Incoming, Process, Published};
pub use relay::{spawn, spawn_on, spawn_watched};
pub use spec::{Begin, Body, ChildSpec, Life, SupervisorSpec, Task};
pub use supervision::{Address, Promise, Supervision};
pub use watchdog::{LOST_THREADS, SPIN};

use crate::{
    links::Related,
    supervisor::{BadSpec, ChildId, Kind},
};
use ask::Letter;
use duty::Duty;
use living::{Living, Stage};
use relations::Relations;
use row::{Place, Row};
use table::Table;
pub use watchdog::Watch;

/// A runtime. Cheap to clone; every clone is the same runtime.
pub struct Runtime<H: Host>(Arc<Shared<H>>);

impl<H: Host> Clone for Runtime<H> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// What all processes of a runtime share.
struct Shared<H: Host> {
    host: H,
    table: Table<H>,
    relations: Mutex<Relations>,
    watch: Arc<Watch>,
    numbers: AtomicU64,
    handle: OnceLock<Handle>,
}

/// A tree does not stand. Nothing of it runs.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotPlanted {
    /// Its specification is not one; the caller's fault.
    #[error(transparent)]
    BadSpec(#[from] BadSpec),
    /// A child could not be started, or the record could not be told.
    #[error("the tree could not be started: {0:?}")]
    Failed(ExitReason),
}

impl<H: Host> Runtime<H> {
    /// A runtime whose first process has the PID `first`, at least 1. A poll that takes longer than `spin` is ended by the
    /// watchdog; [`SPIN`] suits a node. With [`Duration::MAX`] no process is watched, as a simulation wants it: the watchdog goes
    /// by the time of the machine.
    #[must_use]
    pub fn new(host: H, first: Pid, spin: Duration) -> Self {
        Self::watched(host, first, Arc::new(Watch::new(spin)))
    }

    /// The same, for a host that has others than processes watched as well.
    #[must_use]
    pub fn watched(host: H, first: Pid, watch: Arc<Watch>) -> Self {
        let is_watched = watch.is_on();
        let shared = Arc::new(Shared {
            host,
            table: Table::new(first.max(Pid(1))),
            relations: Mutex::default(),
            watch,
            numbers: AtomicU64::new(0),
            handle: OnceLock::new(),
        });
        if is_watched {
            watchdog::start(&shared);
        }
        Self(shared)
    }

    /// Starts a tree and waits until its root and all children in its specification run. Within a tokio runtime.
    ///
    /// # Errors
    /// [`NotPlanted`]
    pub async fn plant(&self, name: &str, spec: &SupervisorSpec<H>) -> Result<Supervision<H>, NotPlanted> {
        let shared = &self.0;
        let _known: Result<(), Handle> = shared.handle.set(Handle::current());
        let place = Place {
            supervisor: None,
            seat: Some(Seat::root(name)),
            number: 0,
            limit: None,
            session: None,
            keeps_messages: false,
            kind: Kind::Supervisor,
        };
        let (row, pid) = (Row::new(place), shared.table.fresh());
        let (ready, started) = oneshot::channel();
        let duty = Duty::new(shared.clone(), row.clone(), pid, spec, Some(ready))?;
        let incarnation = row.begin(pid, ChildId { place: 0, run: 1 }, shared.host.now());
        let news = &mut vec![News { row: row.clone(), pid, what: What::Born { incarnation } }];
        let told = match shared.host.tell(news) {
            Told::Taken => Ok(()),
            Told::Refused(why) => Err(why),
            Told::Later(later) => later.await,
        };
        told.map_err(|why| NotPlanted::Failed(ExitReason::Error(why)))?;
        shared.table.insert(pid, row.clone());
        let exit = shared.exit_of(&row, pid);
        drop(tokio::spawn(Living::new(shared.clone(), row.clone(), pid, Stage::Supervises(Box::new(duty)))));
        if started.await.is_err() {
            return Err(NotPlanted::Failed(exit.await.unwrap_or(ExitReason::Killed)));
        }
        Ok(Supervision::new(shared.clone(), row))
    }

    /// The host it runs for.
    #[must_use]
    pub fn host(&self) -> &H {
        &self.0.host
    }

    /// Kills a process, which is fenced at once; its supervisor decides what follows. Says whether there was one.
    #[must_use]
    pub fn kill(&self, pid: Pid) -> bool {
        self.0.table.row(pid).is_some_and(|row| row.kill(Some(pid)))
    }

    /// Asks a process to stop; its supervisor decides what follows. Says whether there was one.
    #[must_use]
    pub fn stop(&self, pid: Pid) -> bool {
        self.0.table.row(pid).is_some_and(|row| row.stop(Some(pid)))
    }

    /// Sends a message to a process.
    ///
    /// # Errors
    /// [`NotSent`]; the message is dropped.
    pub fn send(&self, to: Pid, message: H::Message) -> Result<(), NotSent> {
        self.0.send(to, message)
    }

    /// The seat that a process fills.
    #[must_use]
    pub fn address(&self, pid: Pid) -> Option<Address<H>> {
        self.0.table.row(pid).map(|row| Address::new(self.0.clone(), row))
    }

    /// Resolves when a process is over, to what it exited with; `None` if it is not there.
    pub fn exit_of(&self, pid: Pid) -> impl Future<Output = Option<ExitReason>> + Send + 'static + use<H> {
        let exit = self.0.table.row(pid).map(|row| self.0.exit_of(&row, pid));
        async move { exit?.await }
    }

    /// What a process has to do with.
    #[must_use]
    pub fn related(&self, pid: Pid) -> Related {
        self.0.related(pid)
    }

    /// Who has a name.
    #[must_use]
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.0.whereis(name)
    }

    /// Every live process, by PID.
    #[must_use]
    pub fn processes(&self) -> Vec<Resident> {
        self.0.table.all().into_iter().map(|(pid, row)| row.resident(pid)).collect()
    }

    /// At most so many of them, in the order of their PIDs, behind one of these; and whether there are more.
    pub fn processes_behind(&self, behind: Option<Pid>, most: usize) -> (Vec<Resident>, bool) {
        let all = self.0.table.all();
        let from = behind.map_or(0, |behind| all.partition_point(|(pid, _)| *pid <= behind));
        let page = all.iter().skip(from).take(most).map(|(pid, row)| row.resident(*pid)).collect();
        (page, all.len().saturating_sub(from) > most)
    }

    /// How many threads are lost to processes that do not yield; it changes as they come and go. With [`LOST_THREADS`] the
    /// owner had better start anew.
    #[must_use]
    pub fn lost_threads(&self) -> watch::Receiver<usize> {
        self.0.watch.lost()
    }
}

impl<H: Host> Shared<H> {
    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn send(&self, to: Pid, message: H::Message) -> Result<(), NotSent> {
        let row = self.table.row(to).ok_or(NotSent::Gone)?;
        row.promise(Some(to))?;
        match row.put(Some(to), Some(Letter::Message(message))) {
            None => Ok(()),
            Some(_) => Err(NotSent::Gone),
        }
    }

    fn exit_of(&self, row: &Row<H>, pid: Pid) -> impl Future<Output = Option<ExitReason>> + Send + 'static + use<H> {
        let (observer, exit) = oneshot::channel();
        let is_there = row.observe(pid, observer);
        async move { if is_there { exit.await.ok() } else { None } }
    }

    /// No process will fill a seat again.
    fn close(&self, row: &Row<H>) {
        self.return_messages(row, row.close());
    }

    /// No process fills a seat until its supervisor is told to start one.
    fn dismiss(&self, row: &Row<H>) {
        self.return_messages(row, row.dismiss());
    }

    fn return_messages(&self, row: &Row<H>, messages: Vec<H::Message>) {
        if !messages.is_empty() {
            self.host.undelivered(row.seat(), row.session(), messages);
        }
    }
}

impl<H: Host> Row<H> {
    fn resident(&self, pid: Pid) -> Resident {
        let shown = self.shown();
        Resident {
            pid,
            parent: self.parent(),
            seat: self.seat().clone(),
            session: self.session(),
            kind: self.kind(),
            state: shown.state,
            incarnation: shown.incarnation,
            started: shown.started,
            waiting: shown.waiting,
            waits_for: shown.waits_for,
        }
    }
}
