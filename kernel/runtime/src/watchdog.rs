//! The watchdog: processes that hang are fenced and replaced.
//!
//! It is a thread of its own, since what it watches may hold every thread of the runtime. It knows for each of those which
//! poll it is in, of a process or of a driver; a poll that lasts too long is one that spins. That incarnation is ended from here, while its code still
//! runs and can do nothing any more, and the thread counts as lost until it comes back. A process that works on one message
//! for longer than its specification says yields, and is ended like any other.
//!
//! A thread that works in one poll for long runs behind all others until that ends ([`priority`](super::priority)).
//!
//! What a process wakes is woken when its poll ends, and from here if that takes long: tokio keeps the last task that was woken on
//! a thread for that thread, and no other thread would take it from there.

use std::{
    cell::Cell,
    collections::HashMap,
    marker::PhantomData,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, Weak,
        atomic::{
            AtomicU64,
            Ordering::{Relaxed, Release, SeqCst},
        },
    },
    task::Waker,
    time::Duration,
};

use ephor_base::{ExitReason, Pid};
use tokio::sync::watch;

use super::{
    Host, Shared,
    orders::Order,
    priority::{self, Effort},
    row::Row,
};

/// How long a poll may take: well over anything that yields, and less than a person would wait.
pub const SPIN: Duration = Duration::from_secs(5);
/// With so many lost threads there may be none left to work on.
pub const LOST_THREADS: usize = 2;
/// The longest time between two looks while processes work, and while none does. In between, a task that was woken by a
/// process that does not yield waits no longer than two looks.
const LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));
/// The shortest.
const OFTEN: Duration = Duration::from_millis(2);
/// A poll that has had so much of a core goes on behind everybody else.
const LONG: Duration = Duration::from_millis(100);
/// How many times [`SPIN`] a poll may take that has to wait for a core: others may have them all.
const STARVED: u32 = 12;

/// One thread of a runtime, as it works. Only that thread writes `runtime`, `pid` and `turn`.
#[derive(Default)]
struct Station {
    runtime: AtomicU64,
    pid: AtomicU64,
    /// Grows by one when a poll begins and when it ends; so it is odd within one.
    turn: AtomicU64,
    /// The turn whose process was ended from outside.
    relieved: AtomicU64,
    /// The turn in which the thread was put behind others.
    behind: AtomicU64,
    thread: OnceLock<libc::pid_t>,
    /// What is owed to others when the poll ends.
    owed: Mutex<Vec<Owed>>,
}

/// What a process owes to others when its poll ends, or takes long.
enum Owed {
    Wake(Waker),
    /// What answers a caller when it is dropped.
    Answer(Box<dyn Send>),
}

impl Station {
    fn is_within(turn: u64) -> bool {
        turn % 2 == 1
    }

    /// A poll begins.
    fn begin(&self, pid: Pid) {
        self.pid.store(pid.0, Relaxed);
        // A thread that sees the turn sees the process.
        self.turn.store(self.turn.load(Relaxed).wrapping_add(1), Release);
    }

    /// It ends. The watchdog relieves a turn and then looks whether it still is: one of the two sees the other.
    fn end(&self) {
        let turn = self.turn.load(Relaxed);
        self.turn.store(turn.wrapping_add(1), SeqCst);
        if self.behind.load(SeqCst) == turn {
            self.come_back();
        }
    }

    /// Puts the thread behind others while it is in this turn.
    fn put_behind(&self, turn: u64) {
        if self.behind.load(SeqCst) == turn || !priority::can_yield() {
            return;
        }
        let Some(thread) = self.thread.get() else { return };
        self.behind.store(turn, SeqCst);
        if let Err(error) = priority::last(*thread) {
            tracing::warn!(%error, "a thread whose process does not yield keeps its share of the cores");
        }
        if self.turn.load(SeqCst) != turn {
            self.come_back();
        }
    }

    fn come_back(&self) {
        if let Some(thread) = self.thread.get()
            && let Err(error) = priority::as_others(*thread)
        {
            tracing::error!(%error, "a thread that was put behind others stays there");
        }
    }

    fn pay_all(&self) {
        let mut owed = std::mem::take(&mut *self.owed());
        if owed.is_empty() {
            return;
        }
        for one in owed.drain(..) {
            match one {
                Owed::Wake(task) => task.wake(),
                Owed::Answer(answer) => drop(answer),
            }
        }
        let mut now = self.owed();
        if now.capacity() == 0 {
            *now = owed;
        }
    }

    fn owed(&self) -> MutexGuard<'_, Vec<Owed>> {
        crate::lock::enter(&self.owed)
    }
}

/// A station as its own thread sees it.
#[derive(Default)]
struct Own {
    station: Arc<Station>,
    /// The runtime that the station is known to.
    runtime: Cell<u64>,
    /// Whether anything is owed at the end of the poll. The watchdog may have done it.
    owes: Cell<bool>,
}

thread_local! {
    static OWN: Own = Own::default();
}

/// What the watchdog knows.
pub struct Watch {
    /// Differs from runtime to runtime: a thread may work for one after another.
    id: u64,
    spin: Duration,
    stations: Mutex<Vec<Arc<Station>>>,
    /// Who works on a message within a limit, and since when.
    busy: Mutex<HashMap<Pid, Duration>>,
    lost: watch::Sender<usize>,
}

static RUNTIMES: AtomicU64 = AtomicU64::new(1);

impl Watch {
    /// A watch over polls that take longer than `spin`; over none with [`Duration::MAX`].
    #[must_use]
    pub fn new(spin: Duration) -> Self {
        let (stations, busy, lost) = (Mutex::default(), Mutex::default(), watch::Sender::new(0));
        Self { id: RUNTIMES.fetch_add(1, SeqCst), spin, stations, busy, lost }
    }

    /// Whether anybody is watched.
    pub(super) fn is_on(&self) -> bool {
        self.spin < Duration::MAX
    }

    /// A process with a limit begins to work on a message.
    pub(super) fn busy(&self, pid: Pid, since: Duration) {
        crate::lock::enter(&self.busy).insert(pid, since);
    }

    /// It has done so.
    pub(super) fn idle(&self, pid: Pid) {
        crate::lock::enter(&self.busy).remove(&pid);
    }

    /// How many threads are lost.
    pub(super) fn lost(&self) -> watch::Receiver<usize> {
        self.lost.subscribe()
    }

    /// From now on this thread works for this runtime.
    fn know(&self, station: &Arc<Station>) {
        station.thread.get_or_init(priority::own_thread);
        station.runtime.store(self.id, SeqCst);
        let mut stations = crate::lock::enter(&self.stations);
        if !stations.iter().any(|known| Arc::ptr_eq(known, station)) {
            stations.push(station.clone());
        }
    }

    fn stations(&self) -> Vec<Arc<Station>> {
        crate::lock::enter(&self.stations).clone()
    }
}

/// A poll that lasts until this is dropped, on the thread where it was made.
pub(super) struct AtWork(PhantomData<*const ()>);

impl Drop for AtWork {
    fn drop(&mut self) {
        OWN.with(|own| {
            own.station.end();
            if own.owes.take() {
                own.station.pay_all();
            }
        });
    }
}

/// A poll of this process begins on this thread; or of a task that is none, whose PID is 0.
pub(super) fn enter(watch: &Watch, pid: Pid) -> AtWork {
    OWN.with(|own| {
        if own.runtime.replace(watch.id) != watch.id {
            watch.know(&own.station);
        }
        own.station.begin(pid);
    });
    AtWork(PhantomData)
}

/// Wakes a task: now, or if this thread polls a process, when that yields.
pub(super) fn wake(task: Waker) {
    if let Some(Owed::Wake(task)) = owe(Owed::Wake(task)) {
        task.wake();
    }
}

/// Drops what answers a caller: now, or if this thread polls a process, when that yields.
pub(super) fn answer(answer: Box<dyn Send>) {
    drop(owe(Owed::Answer(answer)));
}

/// It comes back if this thread polls no process.
fn owe(what: Owed) -> Option<Owed> {
    let mut what = Some(what);
    // A thread that ends has no station any more.
    let _gone = OWN.try_with(|own| {
        if Station::is_within(own.station.turn.load(Relaxed)) {
            own.station.owed().extend(what.take());
            own.owes.set(true);
        }
    });
    what
}

/// Whether the process of the last poll on this thread was ended from outside while it lasted.
pub(super) fn was_relieved() -> bool {
    OWN.with(|own| {
        let last = own.station.turn.load(Relaxed).wrapping_sub(1);
        own.station.relieved.load(SeqCst) == last
    })
}

/// Watches until the runtime is gone.
pub(super) fn start<H: Host>(shared: &Arc<Shared<H>>) {
    let (weak, spin) = (Arc::downgrade(shared), shared.watch.spin);
    let looks = move || look_now_and_then(&weak, spin);
    if let Err(error) = std::thread::Builder::new().name("ephor-watchdog".to_owned()).spawn(looks) {
        tracing::error!(%error, "there is no watchdog: processes that hang are not replaced");
    }
}

/// What was seen of a station: the turn it was in, how long it has been, and what its thread had had when it was first seen in it.
#[derive(Clone, Copy, Default)]
struct Sight {
    turn: u64,
    lasted: Duration,
    effort: Option<Effort>,
}

impl Sight {
    /// A turn that was not seen before.
    fn first(station: &Station, turn: u64) -> Self {
        let thread = station.thread.get().filter(|_| Station::is_within(turn));
        Self { turn, lasted: Duration::ZERO, effort: thread.and_then(|thread| Effort::of(*thread)) }
    }

    /// What the thread has had in this turn; nothing, where the system does not say.
    fn effort(&self, station: &Station) -> Effort {
        let now = station.thread.get().and_then(|thread| Effort::of(*thread));
        now.zip(self.effort).map_or_else(Effort::default, |(now, before)| now.since(before))
    }
}

fn look_now_and_then<H: Host>(weak: &Weak<Shared<H>>, spin: Duration) {
    let [often, seldom] = [LOOKS.0, LOOKS.1].map(|most| (spin / 4).clamp(OFTEN, most));
    let (mut seen, mut pause, mut since) = (HashMap::<*const Station, Sight>::new(), often, Duration::ZERO);
    loop {
        std::thread::sleep(pause);
        let Some(shared) = weak.upgrade() else { return };
        let (mut lost, mut is_idle) = (0, true);
        for station in shared.watch.stations() {
            let turn = station.turn.load(SeqCst);
            let sight = seen.entry(Arc::as_ptr(&station)).or_default();
            is_idle &= sight.turn == turn && !Station::is_within(turn);
            if sight.turn != turn {
                *sight = Sight::first(&station, turn);
                continue;
            }
            let is_first = sight.lasted.is_zero();
            sight.lasted += pause;
            if Station::is_within(turn) && station.runtime.load(SeqCst) == shared.watch.id {
                lost += usize::from(shared.look(&station, sight, is_first));
            }
        }
        shared.watch.lost.send_if_modified(|known| std::mem::replace(known, lost) != lost);
        since += pause;
        if since >= seldom {
            since = Duration::ZERO;
            shared.end_overdue();
        }
        pause = if is_idle { seldom } else { often };
    }
}

impl<H: Host> Shared<H> {
    /// Looks at a thread that has been in one poll for more than a look; says whether it is lost.
    fn look(&self, station: &Station, sight: &Sight, is_first: bool) -> bool {
        self.stand_in(station, is_first);
        let (spin, effort) = (self.watch.spin, sight.effort(station));
        if effort.worked >= LONG.min(spin / 2) {
            station.put_behind(sight.turn);
        }
        // Others may have all the cores, and one that has been put behind them has then none: that is no hanging.
        let own = sight.lasted.saturating_sub(effort.waited);
        let is_over = own >= spin || sight.lasted >= spin.saturating_mul(STARVED);
        is_over && (station.relieved.load(SeqCst) == sight.turn || self.relieve(station, sight.turn))
    }

    /// Does what a thread would do between two polls, in whose place it is in a long one.
    fn stand_in(&self, station: &Station, is_first: bool) {
        station.pay_all();
        if !is_first {
            return;
        }
        // That thread may be the one that waited for timers and sockets. A thread that is woken from here sees to them when it has
        // nothing else to do; a supervisor that is woken for nothing looks at its desk and goes back to sleep.
        let row = self.table.row(Pid(station.pid.load(SeqCst)));
        if let Some((supervisor, _)) = row.as_ref().and_then(|row| row.supervisor()) {
            supervisor.rouse();
        }
    }

    /// Ends the process that spins in this turn, and reports it as hung.
    fn relieve(&self, station: &Station, turn: u64) -> bool {
        let pid = Pid(station.pid.load(SeqCst));
        station.relieved.store(turn, SeqCst);
        if station.turn.load(SeqCst) != turn {
            return false;
        }
        let Some(row) = self.table.row(pid) else {
            tracing::error!("a driver does not yield; its call ends without it, and its thread is lost until it does");
            return true;
        };
        tracing::error!(%pid, seat = %row.seat(), "a process does not yield; it is fenced and replaced");
        self.replace(&row, pid);
        true
    }

    fn replace(&self, row: &Arc<Row<H>>, pid: Pid) {
        let Some((child, mut observers)) = self.bury(row, pid, &ExitReason::Hung) else { return };
        // Its children have no supervisor any more.
        for (_, orphan) in self.table.all().into_iter().filter(|(_, other)| other.parent() == Some(pid)) {
            orphan.kill(None);
        }
        let order = Order::Exited(child, pid, ExitReason::Hung);
        let is_orphan =
            row.supervisor().is_none_or(|(supervisor, parent)| supervisor.order(Some(parent), order).is_err());
        if is_orphan
            && let Some(telling) = self.tell_exit(row, pid, ExitReason::Hung)
            && let Some(handle) = self.handle.get()
        {
            drop(handle.spawn(telling));
        }
        observers.tell();
    }

    /// Ends those that have worked on one message for too long.
    fn end_overdue(&self) {
        let busy = crate::lock::enter(&self.watch.busy).clone();
        if busy.is_empty() {
            return;
        }
        let now = self.host.now();
        for (pid, since) in busy {
            let row = self.table.row(pid);
            let is_overdue = |row: &Arc<Row<H>>| row.limit().is_some_and(|limit| now.saturating_sub(since) > limit);
            if let Some(row) = row.filter(is_overdue) {
                tracing::error!(%pid, seat = %row.seat(), "a process works on one message for too long");
                row.hang(pid);
            }
        }
    }
}
