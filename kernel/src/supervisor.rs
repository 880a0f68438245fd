//! The supervisor engine: OTP's one_for_one, as a pure function of events.
//!
//! It has no clock and starts nothing itself: [`Supervisor::step`] takes an event with the time it happened and gives
//! back commands. `tree` carries them out.

use std::{collections::VecDeque, time::Duration};

use ephor_base::ExitReason;

/// Names a child within its supervisor; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChildId(pub u64);

/// When a child that exits is started again (OTP `restart`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    /// Always.
    Permanent,
    /// After an abnormal exit.
    Transient,
    /// Never.
    Temporary,
}

/// How often children may be restarted before the supervisor itself gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Intensity {
    /// Restarts allowed within the period.
    pub restarts: usize,
    /// The period.
    pub period: Duration,
}

impl Intensity {
    /// OTP's default, for trees: 1 restart in 5 seconds.
    pub const TREE: Self = Self { restarts: 1, period: Duration::from_secs(5) };
    /// For agents, whose work is less sure: 5 restarts in 60 seconds.
    pub const AGENT: Self = Self { restarts: 5, period: Duration::from_secs(60) };
}

/// Something that happened to a supervisor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A child was added at the end.
    Added {
        /// The child.
        child: ChildId,
        /// When it is restarted.
        restart: Restart,
        /// How long it may take to stop before it is killed.
        shutdown: Duration,
    },
    /// A child exited.
    Exited {
        /// The child.
        child: ChildId,
        /// Why.
        reason: ExitReason,
    },
    /// The supervisor is to stop.
    Stop,
    /// A child's time to stop is over.
    ShutdownOver {
        /// The child.
        child: ChildId,
    },
}

/// What a supervisor wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Start the child; again if it ran before.
    Start(ChildId),
    /// Ask the child to stop; report `ShutdownOver` after this time.
    Stop(ChildId, Duration),
    /// Kill the child.
    Kill(ChildId),
    /// Forget the child; it will not run again.
    Forget(ChildId),
    /// The supervisor itself exits.
    Exit(ExitReason),
}

/// The engine of one supervisor.
#[derive(Debug)]
pub struct Supervisor {
    intensity: Intensity,
    children: Vec<Child>,
    restarts: VecDeque<Duration>,
    ending: Option<ExitReason>,
}

#[derive(Debug)]
struct Child {
    id: ChildId,
    restart: Restart,
    shutdown: Duration,
}

impl Supervisor {
    /// A supervisor without children.
    #[must_use]
    pub const fn new(intensity: Intensity) -> Self {
        Self { intensity, children: Vec::new(), restarts: VecDeque::new(), ending: None }
    }

    /// What follows from `event`, which happened at the monotonic time `now`.
    #[must_use]
    pub fn step(&mut self, now: Duration, event: Event) -> Vec<Command> {
        match event {
            Event::Added { child, .. } if self.ending.is_some() => vec![Command::Forget(child)],
            Event::Added { child, restart, shutdown } => {
                self.children.push(Child { id: child, restart, shutdown });
                vec![Command::Start(child)]
            }
            Event::Exited { child, reason } => self.exited(now, child, &reason),
            Event::Stop => self.end(ExitReason::Shutdown),
            Event::ShutdownOver { child } => self.overdue(child),
        }
    }

    fn exited(&mut self, now: Duration, child: ChildId, reason: &ExitReason) -> Vec<Command> {
        let Some(at) = self.children.iter().position(|known| known.id == child) else { return Vec::new() };
        if self.ending.is_some() {
            // Only after the one that was asked to stop is the next one asked.
            let was_asked = at + 1 == self.children.len();
            self.children.remove(at);
            let next = if was_asked { self.stop_next() } else { Vec::new() };
            return [vec![Command::Forget(child)], next].concat();
        }
        let again = match self.children.get(at).map(|known| known.restart) {
            Some(Restart::Permanent) => true,
            Some(Restart::Transient) => reason.is_abnormal(),
            Some(Restart::Temporary) | None => false,
        };
        if !again {
            self.children.remove(at);
            return vec![Command::Forget(child)];
        }
        if self.may_restart(now) {
            return vec![Command::Start(child)];
        }
        self.children.remove(at);
        [vec![Command::Forget(child)], self.end(ExitReason::Error("restart intensity exceeded".into()))].concat()
    }

    /// Counts a restart; false when it is one too many for the period.
    fn may_restart(&mut self, now: Duration) -> bool {
        self.restarts.push_back(now);
        while self.restarts.front().is_some_and(|then| now.saturating_sub(*then) > self.intensity.period) {
            self.restarts.pop_front();
        }
        self.restarts.len() <= self.intensity.restarts
    }

    fn end(&mut self, reason: ExitReason) -> Vec<Command> {
        if self.ending.is_some() {
            return Vec::new();
        }
        self.ending = Some(reason);
        self.stop_next()
    }

    /// Children stop one after another, the last started first.
    fn stop_next(&self) -> Vec<Command> {
        match (self.children.last(), &self.ending) {
            (Some(child), _) => vec![Command::Stop(child.id, child.shutdown)],
            (None, Some(reason)) => vec![Command::Exit(reason.clone())],
            (None, None) => Vec::new(),
        }
    }

    fn overdue(&self, child: ChildId) -> Vec<Command> {
        let is_stopping = self.ending.is_some() && self.children.last().is_some_and(|last| last.id == child);
        if is_stopping { vec![Command::Kill(child)] } else { Vec::new() }
    }
}
