//! Timers: one wheel for whatever waits in a runtime, on the clock it is given.
//!
//! [`Wheel`] is pure. [`Timers`] is the one that the processes, the supervisors and the door of a runtime share. What is due is woken
//! by the keeper, which brings the time, and by no thread that works: by a thread of its own, or in a simulation by the code that moves
//! the clock. So a process that does not yield holds up no timer of others, and no task that a timer woke waits in the slot of its thread.

mod wheel;

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use ephor_base::Pid;
use tokio::{sync::Notify, task::coop};

pub use wheel::{TimerId, Wheel};

use crate::{contained, supervisor::Timer};

/// How long the thread waits at most: not every system can wait for ever.
const LONGEST: Duration = Duration::from_secs(86_400);

/// The timers of one runtime. Cheap to clone: every clone is the same timers.
#[derive(Clone)]
pub struct Timers(Arc<Owned>);

/// What ends with the last clone.
struct Owned(Arc<Shared>);

struct Shared {
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    state: Mutex<State>,
    /// For the thread that brings the time: it is to come earlier than it meant to.
    sooner: Condvar,
    /// The same, for a task that does.
    notified: Notify,
}

struct State {
    wheel: Wheel<Ring>,
    /// When the keeper comes without being told; none, if it waits to be told.
    awaited: Option<Duration>,
    keeper: Keeper,
}

/// Who brings the time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeper {
    /// The owner of the timers.
    Owner,
    /// A thread, from the first timer on.
    Unborn,
    Thread,
    /// Nothing any more.
    Gone,
}

/// What a timer does.
enum Ring {
    Wake(Waker),
    Tell(Arc<dyn Desk>, Pid, Timer),
}

/// Where an incarnation of a supervisor hears of its timers.
pub(crate) trait Desk: Send + Sync {
    /// One of them fired. The incarnation may be over.
    fn fired(&self, pid: Pid, timer: Timer);
}

impl Timers {
    /// Timers on a clock that goes as the machine's does, though it may leap: a thread waits for them. Any thread may read the clock.
    #[must_use]
    pub fn of_machine(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self::new(clock, Keeper::Unborn)
    }

    /// Timers on a clock of the caller's own, who calls [`Timers::tick`] or polls [`Timers::kept`].
    #[must_use]
    pub fn by_hand(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self::new(clock, Keeper::Owner)
    }

    fn new(clock: impl Fn() -> Duration + Send + Sync + 'static, keeper: Keeper) -> Self {
        let state = Mutex::new(State { wheel: Wheel::at(clock()), awaited: None, keeper });
        let (sooner, notified) = (Condvar::new(), Notify::new());
        Self(Arc::new(Owned(Arc::new(Shared { clock: Box::new(clock), state, sooner, notified }))))
    }

    /// The time since some fixed moment.
    #[must_use]
    pub fn now(&self) -> Duration {
        (self.shared().clock)()
    }

    /// How many timers are set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared().state().wheel.len()
    }

    /// Whether no timer is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Resolves when `time` has passed from now, and never earlier. A timer is set when it is polled first, and taken back when it is
    /// dropped.
    pub fn sleep(&self, time: Duration) -> Sleep {
        Sleep { timers: self.clone(), deadline: self.now().saturating_add(time), timer: None }
    }

    /// What `work` comes to; none, if that takes longer than `time`.
    pub async fn within<F: Future>(&self, time: Duration, work: F) -> Option<F::Output> {
        let late = self.sleep(time);
        tokio::select! {
            biased;
            done = work => Some(done),
            () = late => None,
        }
    }

    /// Fires what is due, in the order of deadlines; says when to come again, unless an earlier timer is set meanwhile. None, if there
    /// is nothing to come for.
    #[expect(clippy::must_use_candidate, reason = "who moves the clock by himself knows when he comes again")]
    pub fn tick(&self) -> Option<Duration> {
        self.shared().tick()
    }

    /// Fires whatever is due when it is: `rest` waits for so much time of the clock. It ends with the last clone, and is none.
    pub fn kept<R, W>(&self, rest: R) -> impl Future<Output = ()> + use<R, W>
    where
        R: Fn(Duration) -> W,
        W: Future<Output = ()>,
    {
        let shared = self.shared().clone();
        async move {
            loop {
                let next = shared.tick();
                if shared.state().keeper == Keeper::Gone {
                    return;
                }
                let comes = async {
                    match next {
                        Some(next) => rest(next.saturating_sub((shared.clock)())).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    () = shared.notified.notified() => {}
                    () = comes => {}
                }
            }
        }
    }

    /// Tells an incarnation of a supervisor when `time` has passed.
    pub(crate) fn tell(&self, time: Duration, desk: Arc<dyn Desk>, pid: Pid, timer: Timer) -> TimerId {
        self.shared().set(self.now().saturating_add(time), Ring::Tell(desk, pid, timer))
    }

    /// Takes a timer back, if it has not fired.
    pub(crate) fn cancel(&self, timer: TimerId) {
        self.shared().cancel(timer);
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.state().keeper = Keeper::Gone;
        self.0.call();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        crate::lock::enter(&self.state)
    }

    /// The keeper is to look again.
    fn call(&self) {
        self.sooner.notify_one();
        self.notified.notify_one();
    }

    fn set(self: &Arc<Self>, deadline: Duration, ring: Ring) -> TimerId {
        let mut state = self.state();
        let timer = state.wheel.set(deadline, ring);
        let is_sooner = state.awaited.is_none_or(|awaited| deadline < awaited);
        if is_sooner {
            state.awaited = Some(deadline);
        }
        let is_unborn = state.keeper == Keeper::Unborn;
        if is_unborn {
            state.keeper = Keeper::Thread;
        }
        drop(state);
        if is_unborn {
            self.start();
        } else if is_sooner {
            self.call();
        }
        timer
    }

    /// What it was for is dropped behind the lock.
    fn cancel(&self, timer: TimerId) {
        let ring = self.state().wheel.cancel(timer);
        drop(ring);
    }

    fn tick(&self) -> Option<Duration> {
        loop {
            // The clock is foreign code, and runs under no lock.
            let now = (self.clock)();
            let mut state = self.state();
            let due = state.wheel.step(now);
            if due.is_empty() {
                state.awaited = state.wheel.next();
                return state.awaited;
            }
            // What is set while these ring is seen afterwards.
            state.awaited = Some(Duration::ZERO);
            drop(state);
            for ring in due {
                // What is woken may bring code of its own along, and nothing else is to wait for ever for that.
                if let Err(reason) = contained(|| ring.ring()) {
                    tracing::error!(?reason, "whom a timer woke panicked there");
                }
            }
        }
    }

    /// Starts the thread that waits. If there cannot be one, the next timer tries again.
    fn start(self: &Arc<Self>) {
        let shared = self.clone();
        let waits = move || shared.wait();
        if let Err(error) = std::thread::Builder::new().name("ephor-timers".to_owned()).spawn(waits) {
            tracing::error!(%error, "there is no thread for timers, and none fires before there is");
            let mut state = self.state();
            if state.keeper == Keeper::Thread {
                state.keeper = Keeper::Unborn;
            }
        }
    }

    fn wait(&self) {
        loop {
            let _next = self.tick();
            let now = (self.clock)();
            let state = self.state();
            if state.keeper == Keeper::Gone {
                return;
            }
            // A thread that has set an earlier one since the tick has left it there, and calls from here on.
            let time = state.awaited.map_or(LONGEST, |next| next.saturating_sub(now).min(LONGEST));
            drop(self.sooner.wait_timeout(state, time));
        }
    }
}

impl Ring {
    fn ring(self) {
        match self {
            Self::Wake(task) => task.wake(),
            Self::Tell(desk, pid, timer) => desk.fired(pid, timer),
        }
    }
}

/// A wait for a time.
#[must_use = "nobody waits before it is polled"]
pub struct Sleep {
    /// Time goes on as long as anybody waits.
    timers: Timers,
    deadline: Duration,
    timer: Option<TimerId>,
}

impl Sleep {
    /// Whether the time has come. If not, `task` is woken then.
    fn is_over(&mut self, task: &Waker) -> bool {
        let Some(timer) = self.timer else {
            let is_over = self.timers.now() >= self.deadline;
            if !is_over {
                self.timer = Some(self.timers.shared().set(self.deadline, Ring::Wake(task.clone())));
            }
            return is_over;
        };
        let mut state = self.timers.shared().state();
        let before = match state.wheel.at_mut(timer) {
            Some(Ring::Wake(known)) if !known.will_wake(task) => std::mem::replace(known, task.clone()),
            Some(_) => return false,
            None => return true,
        };
        drop(state);
        drop(before);
        false
    }
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // As tokio's own: one that never has to wait lets others go on now and then all the same.
        let turn = ready!(coop::poll_proceed(context));
        if !self.is_over(context.waker()) {
            return Poll::Pending;
        }
        turn.made_progress();
        Poll::Ready(())
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.timers.cancel(timer);
        }
    }
}
