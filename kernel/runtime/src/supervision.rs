//! Handles for those outside: a supervisor that can be asked, and a seat that takes messages.

use std::sync::Arc;

use ephor_base::{ExitReason, Pid, Seat, SessionId};
use tokio::sync::oneshot;

use super::{
    Body, ChildSpec, Host, Listing, NotSent, Shared, Started,
    ask::Letter,
    orders::{Ask, Asked, Order, Told},
    row::Row,
};
use crate::supervisor::{Counted, Kind, Name, Refused, Target};

/// A supervisor's seat, whichever incarnation fills it.
pub struct Supervision<H: Host>(Address<H>);

impl<H: Host> Clone for Supervision<H> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<H: Host> Supervision<H> {
    pub(super) const fn new(shared: Arc<Shared<H>>, row: Arc<Row<H>>) -> Self {
        Self(Address::new(shared, row))
    }

    /// The PID of the incarnation that supervises now.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        self.0.pid()
    }

    /// Its seat.
    #[must_use]
    pub fn seat(&self) -> &Seat {
        self.0.seat()
    }

    /// Adds a child at the end and starts it (OTP `start_child/2`). `None` if it did not want to run.
    ///
    /// # Errors
    /// [`Refused`]
    pub async fn start(&self, child: ChildSpec<H>) -> Result<Option<Started<H>>, Refused> {
        self.started(Asked::Start(Box::new(child))).await
    }

    /// Adds a dynamic child, with a body of its own if there is one. `None` if it did not want to run.
    ///
    /// # Errors
    /// [`Refused`]
    pub async fn start_dynamic(&self, body: Option<Arc<dyn Body<H>>>) -> Result<Option<Started<H>>, Refused> {
        self.started(Asked::StartDynamic(body)).await
    }

    /// Starts a child that does not run (OTP `restart_child/2`). `None` if it did not want to.
    ///
    /// # Errors
    /// [`Refused`]
    pub async fn restart(&self, name: Name) -> Result<Option<Started<H>>, Refused> {
        self.started(Asked::Restart(name)).await
    }

    /// Stops a child; its specification stays unless it is temporary (OTP `terminate_child/2`).
    ///
    /// # Errors
    /// [`Refused`]
    pub async fn terminate(&self, target: Target) -> Result<(), Refused> {
        self.ask(Asked::Terminate(target)).await.map(drop)
    }

    /// Removes the specification of a child that does not run (OTP `delete_child/2`).
    ///
    /// # Errors
    /// [`Refused`]
    pub async fn delete(&self, name: Name) -> Result<(), Refused> {
        self.ask(Asked::Delete(name)).await.map(drop)
    }

    /// Lists the children, the last started first; dynamic ones in no order (OTP `which_children/1`).
    ///
    /// # Errors
    /// [`Refused::Stopping`]
    pub async fn which(&self) -> Result<Vec<Listing>, Refused> {
        match self.ask(Asked::Which).await? {
            Told::Children(children) => Ok(children),
            _ => Err(Refused::Stopping),
        }
    }

    /// Counts the children (OTP `count_children/1`).
    ///
    /// # Errors
    /// [`Refused::Stopping`]
    pub async fn count(&self) -> Result<Counted, Refused> {
        match self.ask(Asked::Count).await? {
            Told::Counted(counted) => Ok(counted),
            _ => Err(Refused::Stopping),
        }
    }

    /// Asks the incarnation that supervises now to stop all of its children and then itself, and waits for its end. What
    /// follows is for its own supervisor to decide. `None` if no process fills the seat.
    pub async fn stop(&self) -> Option<ExitReason> {
        let pid = self.pid()?;
        let exit = self.0.shared.exit_of(&self.0.row, pid);
        self.0.row.stop(Some(pid));
        exit.await
    }

    /// The same supervisor, as something that has a seat.
    #[must_use]
    pub fn address(&self) -> Address<H> {
        self.0.clone()
    }

    async fn started(&self, what: Asked<H>) -> Result<Option<Started<H>>, Refused> {
        match self.ask(what).await? {
            Told::Started(started) => Ok(Some(started)),
            _ => Ok(None),
        }
    }

    async fn ask(&self, what: Asked<H>) -> Result<Told<H>, Refused> {
        let (reply, answer) = oneshot::channel();
        self.0.row.order(None, Order::Asked(Ask { what, reply })).map_err(|_| Refused::Stopping)?;
        answer.await.unwrap_or(Err(Refused::Stopping))
    }
}

/// A seat, whichever incarnation fills it.
pub struct Address<H: Host> {
    shared: Arc<Shared<H>>,
    row: Arc<Row<H>>,
}

impl<H: Host> Clone for Address<H> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), row: self.row.clone() }
    }
}

impl<H: Host> Address<H> {
    pub(super) const fn new(shared: Arc<Shared<H>>, row: Arc<Row<H>>) -> Self {
        Self { shared, row }
    }

    /// The PID of the incarnation that fills the seat now.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        self.row.pid()
    }

    /// The seat.
    #[must_use]
    pub fn seat(&self) -> &Seat {
        self.row.seat()
    }

    /// The session that is served there.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.row.session()
    }

    /// Whether a process fills the seat, or will without being told to.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.row.is_open()
    }

    /// How many messages wait there.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.row.shown().waiting
    }

    /// Parks its message port, or opens it again: kill, stop and exits still go through, and so they do for every
    /// incarnation to come.
    pub fn suspend(&self, is_suspended: bool) {
        self.row.suspend(is_suspended);
    }

    /// Whether its message port is parked.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.row.is_suspended()
    }

    /// Promises a place for one message, which may still be on its way to the disk.
    ///
    /// # Errors
    /// [`NotSent`]
    pub fn promise(&self) -> Result<Promise<H>, NotSent> {
        self.row.promise(None)?;
        Ok(Promise { address: self.clone(), is_kept: false })
    }

    /// The supervisor that fills the seat, if it is one's.
    #[must_use]
    pub fn supervision(&self) -> Option<Supervision<H>> {
        (self.row.kind() == Kind::Supervisor).then(|| Supervision(self.clone()))
    }
}

/// A place for one message. Dropping it gives the place back.
pub struct Promise<H: Host> {
    address: Address<H>,
    is_kept: bool,
}

impl<H: Host> Promise<H> {
    /// Puts the message in its place. If the seat was given up meanwhile, the host has it as undelivered.
    pub fn put(mut self, message: H::Message) {
        self.is_kept = true;
        let Address { shared, row } = &self.address;
        if let Some(message) = row.put(None, Some(Letter::Message(message))) {
            shared.host.undelivered(row.seat(), row.session(), vec![message]);
        }
    }
}

impl<H: Host> Drop for Promise<H> {
    fn drop(&mut self) {
        if !self.is_kept {
            drop(self.address.row.put(None, None));
        }
    }
}
