//! A row of the process table: one seat and the incarnation that fills it.
//!
//! A row belongs to a seat, so that a restart makes none. What speaks for an incarnation names its PID, and is refused once another
//! fills the seat or none does: that is the fence. Every change is made under the row's one lock, and no task is woken before it is
//! free again, nor is anything dropped that wakes one: a task that is woken may take a row's lock.

mod ports;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    task::Waker,
    time::Duration,
};

use ephor_base::{ExitReason, Pid, Seat, SessionId};
use futures_util::task::ArcWake;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    Host, ProcessState,
    ask::Letter,
    orders::Order,
    port::{Port, Wakes},
    watchdog,
};
use crate::{
    links::Signal,
    supervisor::{ChildId, Kind},
};

/// No process has this PID.
const NOBODY: u64 = 0;

/// A row.
pub(super) struct Row<H: Host> {
    supervisor: Option<Arc<Self>>,
    /// The incarnation of the supervisor that it belongs to.
    parent: u64,
    seat: OnceLock<Seat>,
    /// What a child without a name is called.
    number: u32,
    limit_ms: u32,
    session: Option<SessionId>,
    keeps_messages: bool,
    kind: Kind,
    inner: Mutex<Inner<H>>,
}

/// What changes.
struct Inner<H: Host> {
    pid: u64,
    started_ms: u64,
    waker: Option<Waker>,
    port: Option<Box<Port<H>>>,
    child: ChildId,
    incarnation: u32,
    flags: u16,
}

/// It has no task yet.
const STARTING: u16 = 1;
/// The kill latch.
const KILLED: u16 = 1 << 1;
/// The stop latch.
const STOPPING: u16 = 1 << 2;
/// It is to exit with the reason in its port.
const DOOMED: u16 = 1 << 3;
/// It is to be replaced because it hangs.
const HUNG: u16 = 1 << 4;
/// The message port is parked. Of the seat: a restart does not undo it.
const SUSPENDED: u16 = 1 << 5;
/// It has links, monitors, a name or a group.
const RELATED: u16 = 1 << 6;
/// It works on a message.
const BUSY: u16 = 1 << 7;
/// It waits at its ports.
const WAITS: u16 = 1 << 8;
/// The seat is given up.
const CLOSED: u16 = 1 << 9;
/// No process is going to fill the seat again by itself.
const DISMISSED: u16 = 1 << 10;
/// What an incarnation cannot do anything under.
const FENCED: u16 = KILLED | DOOMED | HUNG;
/// What a seat keeps over its incarnations.
const OF_SEAT: u16 = SUSPENDED;

/// What a task is to do.
pub(super) enum Look {
    Work,
    End(ExitReason),
    /// The incarnation was ended from elsewhere.
    Over,
}

/// What comes out of the ports.
pub(super) enum Taken<H: Host> {
    Stop,
    Exit(Signal),
    Letter(Letter<H>),
}

/// What an incarnation leaves behind.
pub(super) struct Left<H: Host> {
    pub(super) child: ChildId,
    pub(super) is_related: bool,
    pub(super) was_busy: bool,
    pub(super) messages: Vec<H::Message>,
    /// A process that made a request hears at once that none answers, when this is dropped, and may ask the next one.
    pub(super) asked: Vec<(u64, oneshot::Sender<H::Message>)>,
    pub(super) requests: Vec<Letter<H>>,
    pub(super) orders: Vec<Order<H>>,
    pub(super) observers: Vec<oneshot::Sender<ExitReason>>,
    pub(super) wakes: Wakes,
}

/// What waited at a seat that is given up. A caller that asked for something is woken when it is dropped: never under the row's lock.
pub(super) struct Cleared<H: Host> {
    letters: VecDeque<Letter<H>>,
    asked: Vec<(u64, oneshot::Sender<H::Message>)>,
    refused: Vec<Order<H>>,
}

impl<H: Host> Default for Cleared<H> {
    fn default() -> Self {
        Self { letters: VecDeque::new(), asked: Vec::new(), refused: Vec::new() }
    }
}

impl<H: Host> Cleared<H> {
    fn messages(self) -> Vec<H::Message> {
        self.letters.into_iter().filter_map(Letter::unasked).collect()
    }
}

/// What is shown of a row.
pub(super) struct Shown {
    pub(super) state: ProcessState,
    pub(super) incarnation: u64,
    pub(super) started: Duration,
    pub(super) waiting: usize,
    pub(super) waits_for: Option<Pid>,
}

/// What makes a row.
pub(super) struct Place<H: Host> {
    pub(super) supervisor: Option<(Arc<Row<H>>, Pid)>,
    /// Or else it is called by its number.
    pub(super) seat: Option<Seat>,
    pub(super) number: u32,
    pub(super) limit: Option<Duration>,
    pub(super) session: Option<SessionId>,
    pub(super) keeps_messages: bool,
    pub(super) kind: Kind,
}

impl<H: Host> Row<H> {
    pub(super) fn new(place: Place<H>) -> Arc<Self> {
        let (supervisor, parent) = match place.supervisor {
            Some((row, pid)) => (Some(row), pid.0),
            None => (None, NOBODY),
        };
        let limit_ms = place.limit.map_or(0, |limit| u32::try_from(limit.as_millis()).unwrap_or(u32::MAX).max(1));
        let inner = Inner {
            pid: NOBODY,
            started_ms: 0,
            waker: None,
            port: None,
            child: ChildId { place: 0, run: 0 },
            incarnation: 0,
            flags: 0,
        };
        Arc::new(Self {
            supervisor,
            parent,
            seat: place.seat.map_or_else(OnceLock::new, OnceLock::from),
            number: place.number,
            limit_ms,
            session: place.session,
            keeps_messages: place.keeps_messages,
            kind: place.kind,
            inner: Mutex::new(inner),
        })
    }

    // What never changes.

    pub(super) fn seat(&self) -> &Seat {
        self.seat.get_or_init(|| {
            let name = self.number.to_string();
            self.supervisor.as_ref().map_or_else(|| Seat::root(&name), |row| row.seat().child(&name))
        })
    }

    pub(super) const fn session(&self) -> Option<SessionId> {
        self.session
    }

    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether a caller may wait for the process that fills the seat next.
    pub(super) fn is_waited_at(&self) -> bool {
        self.keeps_messages || self.kind == Kind::Supervisor
    }

    pub(super) fn parent(&self) -> Option<Pid> {
        (self.parent != NOBODY).then_some(Pid(self.parent))
    }

    /// The row of its supervisor, and the incarnation of it.
    pub(super) fn supervisor(&self) -> Option<(&Arc<Self>, Pid)> {
        self.supervisor.as_ref().map(|row| (row, Pid(self.parent)))
    }

    pub(super) fn limit(&self) -> Option<Duration> {
        (self.limit_ms > 0).then(|| Duration::from_millis(u64::from(self.limit_ms)))
    }

    // The life of an incarnation.

    /// Fills the seat; gives the number of the incarnation.
    pub(super) fn begin(&self, pid: Pid, child: ChildId, now: Duration) -> u64 {
        let mut inner = self.inner();
        (inner.pid, inner.child, inner.waker) = (pid.0, child, None);
        inner.started_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        inner.incarnation = inner.incarnation.saturating_add(1);
        inner.flags = (inner.flags & OF_SEAT) | STARTING;
        u64::from(inner.incarnation)
    }

    /// What its task is to do next; from now on it is woken by `waker`.
    pub(super) fn look(&self, pid: Pid, waker: &Waker) -> Look {
        let mut inner = self.inner();
        if inner.pid != pid.0 {
            return Look::Over;
        }
        if inner.flags & FENCED != 0 {
            return Look::End(inner.fate());
        }
        inner.flags &= !STARTING;
        match &mut inner.waker {
            Some(known) if known.will_wake(waker) => {}
            known => *known = Some(waker.clone()),
        }
        Look::Work
    }

    /// Empties the seat. `None` if that incarnation does not fill it any more.
    pub(super) fn finish(&self, pid: Pid) -> Option<Left<H>> {
        let mut inner = self.inner();
        if inner.pid != pid.0 {
            return None;
        }
        let (child, is_related, was_busy) = (inner.child, inner.flags & RELATED != 0, inner.flags & BUSY != 0);
        inner.pid = NOBODY;
        inner.flags &= OF_SEAT | CLOSED;
        inner.waker = None;
        let mut left = Left {
            child,
            is_related,
            was_busy,
            messages: Vec::new(),
            asked: Vec::new(),
            requests: Vec::new(),
            orders: Vec::new(),
            observers: Vec::new(),
            wakes: Wakes::default(),
        };
        let keeps = self.keeps_messages && inner.flags & CLOSED == 0;
        if let Some(mut port) = inner.port.take() {
            left.clear_out(&mut port, keeps);
            inner.port = Some(port).filter(|port| !port.is_empty());
        }
        Some(left)
    }

    /// Gives the seat up; what waits for it comes back. The incarnation that fills it, if any, lives on.
    pub(super) fn close(&self) -> Vec<H::Message> {
        let mut inner = self.inner();
        inner.flags |= CLOSED;
        let cleared = inner.clear();
        drop(inner);
        cleared.messages()
    }

    /// No process fills the seat until its supervisor is told to start one: what waits for it comes back.
    pub(super) fn dismiss(&self) -> Vec<H::Message> {
        let mut inner = self.inner();
        if inner.pid != NOBODY {
            return Vec::new();
        }
        inner.flags |= DISMISSED;
        let cleared = inner.clear();
        drop(inner);
        cleared.messages()
    }

    // Latches.

    /// Kills the incarnation, or whichever there is.
    pub(super) fn kill(&self, pid: Option<Pid>) -> bool {
        self.fence(pid, KILLED, None)
    }

    /// Has it replaced because it hangs.
    pub(super) fn hang(&self, pid: Pid) -> bool {
        self.fence(Some(pid), HUNG, None)
    }

    /// Has it exit with `reason` at once.
    pub(super) fn doom(&self, pid: Pid, reason: ExitReason) -> bool {
        self.fence(Some(pid), DOOMED, Some(reason))
    }

    fn fence(&self, pid: Option<Pid>, latch: u16, reason: Option<ExitReason>) -> bool {
        let mut inner = self.inner();
        if !inner.is(pid) {
            return false;
        }
        if inner.flags & FENCED == 0
            && let Some(reason) = reason
        {
            inner.port().doom = Some(reason);
        }
        inner.flags |= latch;
        let wakes = inner.wakes(true);
        drop(inner);
        wakes.fire();
        true
    }

    /// Asks it to stop.
    pub(super) fn stop(&self, pid: Option<Pid>) -> bool {
        let mut inner = self.inner();
        if !inner.is(pid) {
            return false;
        }
        inner.flags |= STOPPING;
        let mut wakes = inner.wakes(false);
        wakes.stopping = inner.port.as_mut().and_then(|port| port.stopping.take());
        drop(inner);
        wakes.fire();
        true
    }

    /// Parks the message port, or opens it again.
    pub(super) fn suspend(&self, is_suspended: bool) {
        let mut inner = self.inner();
        if is_suspended {
            inner.flags |= SUSPENDED;
            return;
        }
        inner.flags &= !SUSPENDED;
        let wakes = inner.wakes(false);
        drop(inner);
        wakes.fire();
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.inner().flags & SUSPENDED != 0
    }

    /// Whether the incarnation may act.
    pub(super) fn is_live(&self, pid: Pid) -> bool {
        let inner = self.inner();
        inner.pid == pid.0 && inner.flags & FENCED == 0
    }

    /// What is cancelled when the incarnation is fenced; it is already if that has happened.
    pub(super) fn fence_token(&self, pid: Pid) -> CancellationToken {
        let mut inner = self.inner();
        if inner.pid != pid.0 || inner.flags & FENCED != 0 {
            return cancelled();
        }
        inner.port().fence.get_or_insert_default().clone()
    }

    /// What is cancelled when it is asked to stop, or fenced.
    pub(super) fn stop_token(&self, pid: Pid) -> CancellationToken {
        let mut inner = self.inner();
        if inner.pid != pid.0 || inner.flags & (FENCED | STOPPING) != 0 {
            return cancelled();
        }
        inner.port().stopping.get_or_insert_default().clone()
    }

    // What is shown.

    pub(super) fn pid(&self) -> Option<Pid> {
        let pid = self.inner().pid;
        (pid != NOBODY).then_some(Pid(pid))
    }

    /// Which child of its supervisor the incarnation is.
    pub(super) fn child(&self) -> ChildId {
        self.inner().child
    }

    /// Whether a process fills the seat, or will.
    pub(super) fn is_open(&self) -> bool {
        self.inner().flags & (CLOSED | DISMISSED) == 0
    }

    pub(super) fn shown(&self) -> Shown {
        let inner = self.inner();
        let is = |flag| inner.flags & flag != 0;
        let state = match () {
            () if is(STOPPING | FENCED) => ProcessState::Stopping,
            () if is(SUSPENDED) => ProcessState::Suspended,
            () if is(STARTING) => ProcessState::Starting,
            () if is(WAITS) => ProcessState::Waiting,
            () => ProcessState::Running,
        };
        let port = inner.port.as_deref();
        Shown {
            state,
            incarnation: u64::from(inner.incarnation),
            started: Duration::from_millis(inner.started_ms),
            waiting: port.map_or(0, |port| port.messages.len()),
            waits_for: port.and_then(|port| port.waits_for),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<H>> {
        crate::lock::enter(&self.inner)
    }
}

impl<H: Host> Row<H> {
    /// Wakes its task.
    pub(super) fn rouse(&self) {
        let task = self.inner().waker.take();
        if let Some(task) = task {
            watchdog::wake(task);
        }
    }
}

/// What a process waits for wakes its row, and that its task. A row that has been told once tells nothing more until its task has
/// looked.
impl<H: Host> ArcWake for Row<H> {
    fn wake_by_ref(row: &Arc<Self>) {
        row.rouse();
    }
}

fn cancelled() -> CancellationToken {
    let token = CancellationToken::new();
    token.cancel();
    token
}

impl<H: Host> Inner<H> {
    fn port(&mut self) -> &mut Port<H> {
        self.port.get_or_insert_default()
    }

    /// Whether this incarnation fills the seat; of `None`, whether any does.
    fn is(&self, pid: Option<Pid>) -> bool {
        self.pid != NOBODY && pid.is_none_or(|pid| pid.0 == self.pid)
    }

    /// Whether messages are taken: by this incarnation, or by the seat.
    fn is_open(&self, pid: Option<Pid>, keeps_messages: bool) -> bool {
        let is_waited_for = pid.is_none() && keeps_messages && self.flags & DISMISSED == 0;
        self.flags & CLOSED == 0 && (self.is(pid) || is_waited_for)
    }

    /// The wakers come out: who has been woken once looks at everything, and leaves its waker again.
    fn wakes(&mut self, is_fenced: bool) -> Wakes {
        let mut wakes = Wakes { task: self.waker.take(), ..Wakes::default() };
        if let Some(port) = &mut self.port {
            wakes.reader = port.reader.take();
            if is_fenced {
                (wakes.fence, wakes.stopping) = (port.fence.take(), port.stopping.take());
            }
        }
        wakes
    }

    /// What waits at the ports is woken by `reader`, or else as the process itself is.
    fn wait(&mut self, reader: Option<&Waker>) {
        match (reader, &mut self.port) {
            (None, None) => {}
            (None, Some(port)) => port.reader = None,
            (Some(reader), _) => self.port().reader = Some(reader.clone()),
        }
    }

    /// Takes out what waits.
    fn clear(&mut self) -> Cleared<H> {
        let mut cleared = Cleared::default();
        if let Some(port) = &mut self.port {
            cleared.asked = std::mem::take(&mut port.asked);
            cleared.letters = std::mem::take(&mut port.messages);
            for order in std::mem::take(&mut port.desk) {
                match order {
                    Order::Asked(_) => cleared.refused.push(order),
                    _ => port.desk.push_back(order),
                }
            }
        }
        cleared
    }

    fn fate(&mut self) -> ExitReason {
        if self.flags & KILLED != 0 {
            return ExitReason::Killed;
        }
        let doom = self.port.as_mut().and_then(|port| port.doom.take());
        doom.unwrap_or(if self.flags & HUNG != 0 { ExitReason::Hung } else { ExitReason::Killed })
    }
}
