//! What keeps seats from acting, while the kernel runs.
//!
//! A call passes here right before its intent is recorded, and what it was let through with is kept until that is on the
//! disk. A suspension of a seat waits for those, so that on the record no intent of the seat stands behind its suspension.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
};

use ephor_base::Seat;
use ephor_record::{
    Cause, Hold, HoldKind, Signal,
    standing::{self, is_at_or_below},
};
use tokio::sync::watch;

/// Who is told that something changed: at which seat, and whether below it as well.
trait Told: Fn(&Seat, bool) + Send + Sync {}

impl<F: Fn(&Seat, bool) + Send + Sync> Told for F {}

/// The holds of a running kernel.
pub(crate) struct Holds {
    state: Mutex<State>,
    told: OnceLock<Box<dyn Told>>,
    /// Counts what changed, for the tasks that wait.
    changes: watch::Sender<u64>,
    /// Counts the calls that have passed, for the tasks that wait for them: no other task is woken by each call.
    passed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    held: standing::Holds,
    /// What is about to be suspended, while that is recorded: the seat, and whether with everything below.
    pending: Vec<(Seat, bool)>,
    /// The calls that were let through and whose intent is not on the disk yet, by a number that counts up.
    passing: BTreeSet<u64>,
    next: u64,
    /// The stops since a resume began to be recorded.
    stops: Vec<(Seat, bool)>,
}

impl std::fmt::Debug for Holds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holds").field("state", &self.state).finish_non_exhaustive()
    }
}

/// A call that was let through. Keep it until its intent is on the disk.
#[derive(Debug)]
pub(crate) struct Passage {
    holds: Arc<Holds>,
    number: u64,
}

/// A suspension that is being recorded. When it is dropped, it was applied, or could not be recorded.
#[derive(Debug)]
pub(crate) struct Suspending {
    holds: Arc<Holds>,
    seat: Seat,
    tree: bool,
}

impl Holds {
    pub(crate) fn new(held: standing::Holds) -> Self {
        Self {
            state: Mutex::new(State { held, ..State::default() }),
            told: OnceLock::new(),
            changes: watch::Sender::new(0),
            passed: watch::Sender::new(0),
        }
    }

    /// Has `told` called whenever something changed; once and for all.
    pub(crate) fn on_change(&self, told: impl Fn(&Seat, bool) + Send + Sync + 'static) {
        let _kept: Result<(), _> = self.told.set(Box::new(told));
    }

    /// What holds `seat`.
    pub(crate) fn on(&self, seat: &Seat) -> Option<HoldKind> {
        self.state().on(seat)
    }

    /// Lets a call of `seat` through, or says what holds it.
    pub(crate) fn pass(self: &Arc<Self>, seat: &Seat, may: impl Fn(HoldKind) -> bool) -> Result<Passage, HoldKind> {
        let mut state = self.state();
        if let Some(kind) = state.on(seat).filter(|kind| !may(*kind)) {
            return Err(kind);
        }
        let number = state.next;
        state.next = number.wrapping_add(1);
        state.passing.insert(number);
        Ok(Passage { holds: self.clone(), number })
    }

    /// Takes a signal in. What has no such cause changes nothing.
    pub(crate) fn apply(&self, signal: Signal, seat: &Seat, tree: bool, cause: Cause) {
        let mut state = self.state();
        let _no_such_cause: Result<(), _> = state.held.apply(signal, seat, tree, cause);
        if signal == Signal::Stop {
            state.stops.push((seat.clone(), tree));
        }
        drop(state);
        self.tell(seat, tree || cause == Cause::Gone);
    }

    /// A resume is recorded from here on. One at a time.
    pub(crate) fn about_to_resume(&self) {
        self.state().stops.clear();
    }

    /// The resume is recorded. What was stopped meanwhile stays so: it stands behind the resume.
    pub(crate) fn resume(&self, seat: &Seat, tree: bool) {
        let mut state = self.state();
        let _no_such_cause: Result<(), _> = state.held.apply(Signal::Resume, seat, tree, Cause::Operator);
        let stops = std::mem::take(&mut state.stops);
        for (seat, tree) in &stops {
            let _no_such_cause: Result<(), _> = state.held.apply(Signal::Stop, seat, *tree, Cause::Operator);
        }
        drop(state);
        self.tell(seat, tree);
        stops.iter().for_each(|(seat, tree)| self.tell(seat, *tree));
    }

    /// The seat was given another limit.
    pub(crate) fn raised(&self, seat: &Seat) {
        self.state().held.raised(seat);
        self.tell(seat, false);
    }

    /// Lets nothing of `seat` through while its suspension is recorded, for as long as what is given is kept.
    pub(crate) fn about_to_suspend(self: &Arc<Self>, seat: &Seat, tree: bool) -> Suspending {
        self.state().pending.push((seat.clone(), tree));
        self.tell(seat, tree);
        Suspending { holds: self.clone(), seat: seat.clone(), tree }
    }

    /// Whether `seat` or a seat below it is held by itself.
    pub(crate) fn any_at_or_below(&self, seat: &Seat) -> bool {
        self.state().held.any_at_or_below(seat)
    }

    /// Everything that is held.
    pub(crate) fn all(&self) -> Vec<Hold> {
        self.state().held.iter().collect()
    }

    /// Waits until every call that was let through by now has its intent on the disk.
    pub(crate) async fn quiet(&self) {
        let mark = self.state().next;
        let mut passed = Changes(self.passed.subscribe());
        while self.state().passing.first().is_some_and(|first| *first < mark) {
            passed.changed().await;
        }
    }

    /// Tells of changes from here on.
    pub(crate) fn changes(&self) -> Changes {
        Changes(self.changes.subscribe())
    }

    fn tell(&self, seat: &Seat, tree: bool) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
        if let Some(told) = self.told.get() {
            told(seat, tree);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        ephor_runtime::lock::enter(&self.state)
    }
}

impl State {
    fn on(&self, seat: &Seat) -> Option<HoldKind> {
        let about = |(held, tree): &(Seat, bool)| held == seat || (*tree && is_at_or_below(seat, held));
        let pending = self.pending.iter().any(about).then_some(HoldKind::Suspended);
        match self.held.on(seat) {
            // A reply may pass what is spent, and not what is suspended.
            None | Some(HoldKind::Spent) => pending.or(self.held.on(seat)),
            held => held,
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.holds.state().passing.remove(&self.number);
        self.holds.passed.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl Drop for Suspending {
    fn drop(&mut self) {
        let mut state = self.holds.state();
        if let Some(at) = state.pending.iter().position(|one| one.0 == self.seat && one.1 == self.tree) {
            state.pending.swap_remove(at);
        }
        drop(state);
        self.holds.tell(&self.seat, self.tree);
    }
}

/// What is told when something changed.
#[derive(Debug)]
pub(crate) struct Changes(watch::Receiver<u64>);

impl Changes {
    /// Resolves at the next change; never once there can be none.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
