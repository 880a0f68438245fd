//! The rules: what follows from an event.

use std::{collections::VecDeque, time::Duration};

use ephor_base::ExitReason;

use super::{
    Answer, AutoShutdown, BadSpec, Cause, ChildId, Command, Ending, Event, Flags, Refused, Request, Restart, Shutdown,
    Spec, Strategy, Timer,
    backoff::Chance,
    children::{Children, State},
    window::Window,
};

/// The engine of one supervisor.
#[derive(Debug)]
pub struct Supervisor {
    pub(super) flags: Flags,
    /// What every dynamic child is; `None` unless the strategy is [`Strategy::Dynamic`].
    pub(super) template: Option<Spec>,
    pub(super) children: Children,
    pub(super) now: Duration,
    window: Window,
    chance: Chance,
    mode: Mode,
    /// What happened while the engine was busy, oldest first.
    deferred: VecDeque<Deferred>,
    /// Set once it will exit.
    ending: Option<(ExitReason, Ending)>,
}

/// What the engine waits for.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// The first event.
    New,
    /// Nothing: whatever comes next.
    Idle,
    /// A child that is being started.
    Starting(u32, Task),
    /// A child that was asked to stop, or killed.
    Stopping(u32, Task),
    /// So many independent children that were asked to stop.
    StoppingAll(usize),
    /// It has exited.
    Over,
}

/// What a start or a stop is part of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// Starting the children that the supervisor begins with.
    Boot,
    /// Starting one child again.
    Once,
    /// Stopping and starting the children from one on: of the one whose exit led to it, or of all.
    Group { child: u32, wait: Duration },
    /// `start_child`.
    Add(u64),
    /// `restart_child`.
    Again(u64),
    /// `terminate_child`.
    Terminate(u64),
    /// Stopping all children, the last started first.
    End,
}

/// How the start of a child ended.
enum Begun {
    Runs,
    Ignored,
    Failed(String),
}

/// An event that waits its turn.
#[derive(Debug)]
enum Deferred {
    Exited(ChildId, ExitReason),
    Fired(Timer),
    Asked(u64, Request),
}

impl Supervisor {
    /// A supervisor that will start these children; for [`Strategy::Dynamic`] the one specification of those that are
    /// added later. `seed` is for the jitter of the backoff alone.
    ///
    /// # Errors
    /// [`BadSpec`]
    pub fn new(flags: Flags, specs: Vec<Spec>, seed: u64) -> Result<Self, BadSpec> {
        let is_dynamic = flags.strategy == Strategy::Dynamic;
        let (mut children, mut template) = (Children::new(), None);
        if is_dynamic && specs.len() != 1 {
            return Err(BadSpec::Template);
        }
        for spec in specs {
            if !flags.admits(&spec) {
                return Err(BadSpec::Significant(spec.name));
            }
            if is_dynamic {
                template = Some(spec);
            } else if children.named(&spec.name).is_some() {
                return Err(BadSpec::Duplicate(spec.name));
            } else {
                children.add(&spec, true);
            }
        }
        Ok(Self {
            flags,
            template,
            children,
            now: Duration::ZERO,
            window: Window::new(flags.intensity),
            chance: Chance(seed),
            mode: Mode::New,
            deferred: VecDeque::new(),
            ending: None,
        })
    }

    /// What follows from `event`, which happened at the monotonic time `now`.
    #[must_use]
    pub fn step(&mut self, now: Duration, event: Event) -> Vec<Command> {
        self.now = self.now.max(now);
        let mut out = Vec::new();
        self.take(event, &mut out);
        while self.is_idle()
            && let Some(next) = self.deferred.pop_front()
        {
            match next {
                Deferred::Exited(child, reason) if self.children.state_of(child) == State::Exited => {
                    self.child_exited(child.place, reason, &mut out);
                }
                // It was stopped or restarted with others, and its exit with it.
                Deferred::Exited(..) => {}
                Deferred::Fired(timer) => self.begin_anew(timer, &mut out),
                Deferred::Asked(ticket, request) => self.serve(ticket, request, &mut out),
            }
        }
        out
    }

    /// Whether it waits for nothing that it began itself.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.mode, Mode::Idle)
    }

    /// Whether a child does not run and nothing that has begun will start it.
    #[must_use]
    pub(crate) fn is_down(&self, child: ChildId) -> bool {
        let is_stopped = matches!(self.children.state(child.place), State::Stopped | State::Free);
        is_stopped && matches!(self.mode, Mode::Idle | Mode::Over) && self.children.restarting() == 0
    }

    /// Whether no other incarnation has begun since this one.
    #[must_use]
    pub(crate) fn is_last(&self, child: ChildId) -> bool {
        self.children.state_of(child) != State::Free
    }

    /// How many children it has, running or not.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.children.counted().specs
    }

    /// Whether it has no children.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn take(&mut self, event: Event, out: &mut Vec<Command>) {
        match event {
            Event::Boot if matches!(self.mode, Mode::New) => self.start_from(self.children.first(), Task::Boot, out),
            Event::Boot => {}
            Event::Started(child) => self.begun(child, Begun::Runs, out),
            Event::Ignored(child) => self.begun(child, Begun::Ignored, out),
            Event::StartFailed(child, why) => self.begun(child, Begun::Failed(why), out),
            Event::Exited(child, reason) => self.exited(child, reason, out),
            Event::Fired(Timer::Patience(child)) => self.lose_patience(child, out),
            Event::Fired(Timer::PatienceWithAll) => self.lose_patience_with_all(out),
            Event::Fired(timer) => self.deferred.push_back(Deferred::Fired(timer)),
            Event::Asked(ticket, _) if self.ending.is_some() => {
                out.push(Command::Answer(ticket, Answer::Refused(Refused::Stopping)));
            }
            Event::Asked(ticket, request) => self.deferred.push_back(Deferred::Asked(ticket, request)),
            Event::Stop(reason) => self.told_to_stop(reason, out),
        }
    }

    /// A stop goes before everything that waits, but not into the middle of a start.
    fn told_to_stop(&mut self, reason: ExitReason, out: &mut Vec<Command>) {
        if self.ending.is_some() {
            return;
        }
        match self.mode {
            Mode::New | Mode::Idle => self.end(reason, Ending::Ordered, out),
            Mode::Starting(..) | Mode::Stopping(..) => self.doom(reason, Ending::Ordered, out),
            Mode::StoppingAll(_) | Mode::Over => {}
        }
    }

    // Starts.

    /// Starts the first child from `place` on that does not run; with the last, the task is done.
    fn start_from(&mut self, place: Option<u32>, task: Task, out: &mut Vec<Command>) {
        match place {
            Some(place) => self.start(place, task, out),
            None => {
                self.mode = Mode::Idle;
                if matches!(task, Task::Boot) {
                    out.push(Command::Ready);
                }
            }
        }
    }

    pub(super) fn start(&mut self, place: u32, task: Task, out: &mut Vec<Command>) {
        let child = self.children.begin(place, self.now);
        self.mode = Mode::Starting(place, task);
        if let Task::Add(ticket) = task {
            out.push(Command::Adopt(ticket, child));
        }
        out.push(Command::Start(child));
    }

    fn begun(&mut self, child: ChildId, begun: Begun, out: &mut Vec<Command>) {
        let Mode::Starting(place, task) = self.mode else { return };
        if self.children.id(place) != child {
            return;
        }
        // For good, unless what follows says otherwise.
        self.mode = Mode::Idle;
        match &begun {
            Begun::Runs => self.children.enter(place, State::Running),
            Begun::Ignored => self.children.enter(place, State::Stopped),
            Begun::Failed(_) => {
                self.children.unbegin(place);
                self.children.enter(place, State::Stopped);
            }
        }
        match task {
            Task::Boot | Task::Group { .. } => self.one_of_many_begun(place, task, begun, out),
            Task::Once => self.restart_begun(place, &begun, out),
            Task::Add(ticket) => self.request_begun(child, ticket, true, begun, out),
            Task::Again(ticket) => self.request_begun(child, ticket, false, begun, out),
            Task::Terminate(_) | Task::End => {}
        }
        self.go_on_ending(out);
    }

    fn one_of_many_begun(&mut self, place: u32, task: Task, begun: Begun, out: &mut Vec<Command>) {
        let next = self.children.after(place);
        match begun {
            Begun::Failed(why) if matches!(task, Task::Boot) => {
                let name = self.children.entry(place).and_then(|entry| entry.name.as_ref());
                let why = format!("`{}` could not be started: {why}", name.map_or("", |name| name.as_str()));
                return self.end(ExitReason::ShutdownFor(why), Ending::StartFailed, out);
            }
            Begun::Failed(_) => return self.retry(place, out),
            Begun::Ignored if self.is_kept_only_while_it_runs(place) => self.forget(place, out),
            Begun::Ignored | Begun::Runs => {}
        }
        if self.ending.is_none() {
            self.start_from(next, task, out);
        }
    }

    /// A child was started on request.
    fn request_begun(&mut self, child: ChildId, ticket: u64, is_new: bool, begun: Begun, out: &mut Vec<Command>) {
        let (answer, stays) = match begun {
            Begun::Runs => (Answer::Started(child), true),
            Begun::Ignored => (Answer::Ignored, !self.is_kept_only_while_it_runs(child.place)),
            Begun::Failed(why) => (Answer::Refused(Refused::StartFailed(why)), !is_new),
        };
        if !stays {
            self.forget(child.place, out);
        }
        out.push(Command::Answer(ticket, answer));
    }

    fn restart_begun(&mut self, place: u32, begun: &Begun, out: &mut Vec<Command>) {
        match begun {
            Begun::Runs => {}
            // No caller could ever name a dynamic child that does not run.
            Begun::Ignored if self.template.is_some() => self.forget(place, out),
            Begun::Ignored => {}
            Begun::Failed(_) => self.retry(place, out),
        }
    }

    /// Tries a start again later, behind everything that waits already.
    fn retry(&mut self, place: u32, out: &mut Vec<Command>) {
        self.children.enter(place, State::Restarting);
        let wait = self.crashed(place);
        out.push(Command::Set(Timer::Retry(self.children.id(place)), wait));
    }

    // Exits.

    fn exited(&mut self, child: ChildId, reason: ExitReason, out: &mut Vec<Command>) {
        match self.children.state_of(child) {
            State::Running => {}
            // A start that ends in an exit has failed.
            State::Starting => return self.begun(child, Begun::Failed(reason.code().to_owned()), out),
            _ => return,
        }
        match self.mode {
            Mode::Stopping(place, task) if place == child.place => self.stopped(place, task, out),
            Mode::StoppingAll(left) => {
                self.children.remove(child.place);
                self.mode = Mode::StoppingAll(left.saturating_sub(1));
                self.exit_if_alone(out);
            }
            Mode::Idle => self.child_exited(child.place, reason, out),
            Mode::Stopping(at, task) if self.is_still_to_stop(child.place, at, task) => {
                self.children.enter(child.place, State::Exited);
            }
            _ if self.ending.is_some() => self.children.enter(child.place, State::Exited),
            _ => {
                self.children.enter(child.place, State::Exited);
                self.deferred.push_back(Deferred::Exited(child, reason));
            }
        }
    }

    /// Whether a child is among those that the task stops after the one at `at`.
    fn is_still_to_stop(&self, place: u32, at: u32, task: Task) -> bool {
        let rank = self.children.rank(place);
        let comes = rank < self.children.rank(at);
        match task {
            Task::Group { child, .. } => comes && rank >= self.floor(child),
            Task::End => comes,
            _ => false,
        }
    }

    /// The lowest rank that a restart of `child` takes along.
    fn floor(&self, child: u32) -> u64 {
        if self.flags.strategy == Strategy::RestForOne { self.children.rank(child) } else { 0 }
    }

    fn child_exited(&mut self, place: u32, reason: ExitReason, out: &mut Vec<Command>) {
        let Some(entry) = self.children.entry(place) else { return };
        let (restart, is_significant) = (entry.restart, entry.significant);
        if restart.is_due(&reason) {
            return self.restart(place, Cause::Exited(reason), out);
        }
        self.settle(place, out);
        let is_over = match self.flags.auto_shutdown {
            AutoShutdown::Never => false,
            AutoShutdown::AnySignificant => is_significant,
            AutoShutdown::AllSignificant if self.template.is_some() => is_significant && self.is_empty(),
            AutoShutdown::AllSignificant => is_significant && self.children.significant() == 0,
        };
        if is_over {
            self.end(ExitReason::Shutdown, Ending::AutoShutdown, out);
        }
    }

    /// Counts a restart, and begins it now or after its backoff; or gives up.
    fn restart(&mut self, place: u32, cause: Cause, out: &mut Vec<Command>) {
        if !self.window.admits(self.now) {
            self.settle(place, out);
            return self.end(ExitReason::Shutdown, Ending::Intensity, out);
        }
        let is_retry = cause == Cause::StartFailed;
        out.push(Command::Record(self.children.id(place), cause));
        // A start that is tried again has waited already.
        let wait = if is_retry { Duration::ZERO } else { self.crashed(place) };
        self.begin(place, wait, out);
    }

    /// Notes a crash of a child; how long it waits for its next start.
    fn crashed(&mut self, place: u32) -> Duration {
        let is_healthy = self.children.age(place, self.now) >= self.flags.backoff.healthy;
        let Some(entry) = self.children.entry_mut(place) else { return Duration::ZERO };
        entry.crashes = if is_healthy { 1 } else { entry.crashes.saturating_add(1) };
        self.flags.backoff.wait(entry.crashes, &mut self.chance)
    }

    fn begin(&mut self, place: u32, wait: Duration, out: &mut Vec<Command>) {
        match self.flags.strategy {
            Strategy::OneForOne | Strategy::Dynamic if wait.is_zero() => self.start(place, Task::Once, out),
            Strategy::OneForOne | Strategy::Dynamic => self.wait(place, wait, out),
            Strategy::OneForAll | Strategy::RestForOne => {
                self.children.enter(place, State::Stopped);
                self.stop_from(self.children.last(), Task::Group { child: place, wait }, out);
            }
        }
    }

    fn wait(&mut self, place: u32, wait: Duration, out: &mut Vec<Command>) {
        self.mode = Mode::Idle;
        self.children.enter(place, State::Restarting);
        out.push(Command::Set(Timer::Backoff(self.children.id(place)), wait));
    }

    /// A timer fired whose child is to be started again.
    fn begin_anew(&mut self, timer: Timer, out: &mut Vec<Command>) {
        let (Timer::Retry(child) | Timer::Backoff(child)) = timer else { return };
        if self.children.state(child.place) != State::Restarting || !self.children.is_of_tenant(child) {
            return;
        }
        // Without backoff an earlier retry that is still on its way counts, as in OTP; with it, it came too early.
        let is_current = self.children.id(child.place) == child;
        if !is_current && !self.flags.backoff.first.is_zero() {
            return;
        }
        match timer {
            Timer::Backoff(_) => self.begin(child.place, Duration::ZERO, out),
            _ => self.restart(child.place, Cause::StartFailed, out),
        }
    }

    // Stops.

    /// Stops the last child at or before `place` that runs and belongs to the task; with the first, all are stopped.
    fn stop_from(&mut self, mut place: Option<u32>, task: Task, out: &mut Vec<Command>) {
        let floor = if let Task::Group { child, .. } = task { self.floor(child) } else { 0 };
        while let Some(at) = place.filter(|at| self.children.rank(*at) >= floor) {
            if self.children.state(at) == State::Running {
                return self.stop(at, task, out);
            }
            place = self.children.before(at);
            if matches!(task, Task::Group { .. }) {
                self.settle(at, out);
            }
        }
        match task {
            Task::Group { child, wait } if !wait.is_zero() => self.wait(child, wait, out),
            Task::Group { child, .. } if self.flags.strategy == Strategy::RestForOne => {
                self.start_from(Some(child), task, out);
            }
            Task::Group { .. } => self.start_from(self.children.first(), task, out),
            _ => self.exit(out),
        }
    }

    pub(super) fn stop(&mut self, place: u32, task: Task, out: &mut Vec<Command>) {
        self.mode = Mode::Stopping(place, task);
        self.tell_to_stop(self.children.id(place), out);
    }

    fn tell_to_stop(&self, child: ChildId, out: &mut Vec<Command>) {
        match self.children.entry(child.place).map(|entry| entry.shutdown) {
            Some(Shutdown::Brutal) | None => out.push(Command::Kill(child)),
            Some(Shutdown::Infinite) => out.push(Command::Stop(child)),
            Some(Shutdown::Within(time)) => {
                out.extend([Command::Stop(child), Command::Set(Timer::Patience(child), time)]);
            }
        }
    }

    /// The child that was asked to stop is gone.
    fn stopped(&mut self, place: u32, task: Task, out: &mut Vec<Command>) {
        let before = self.children.before(place);
        self.mode = Mode::Idle;
        match task {
            Task::End => self.children.enter(place, State::Stopped),
            _ => self.settle(place, out),
        }
        match task {
            // From here on, not from the last again: there may be very many.
            Task::End => self.stop_from(before, task, out),
            Task::Group { .. } if self.ending.is_none() => self.stop_from(before, task, out),
            Task::Terminate(ticket) => {
                out.push(Command::Answer(ticket, Answer::Done));
                self.go_on_ending(out);
            }
            _ => self.go_on_ending(out),
        }
    }

    /// What becomes of a child that does not run and is not started again (OTP `del_child`).
    pub(super) fn settle(&mut self, place: u32, out: &mut Vec<Command>) {
        if self.is_kept_only_while_it_runs(place) {
            self.forget(place, out);
        } else {
            self.children.enter(place, State::Stopped);
        }
    }

    fn forget(&mut self, place: u32, out: &mut Vec<Command>) {
        out.push(Command::Forget(self.children.id(place)));
        self.children.remove(place);
    }

    pub(super) fn is_kept_only_while_it_runs(&self, place: u32) -> bool {
        let restart = self.children.entry(place).map(|entry| entry.restart);
        self.template.is_some() || restart == Some(Restart::Temporary)
    }

    fn lose_patience(&self, child: ChildId, out: &mut Vec<Command>) {
        let is_awaited = match self.mode {
            Mode::Stopping(place, _) => self.children.id(place) == child,
            Mode::StoppingAll(_) => self.children.state_of(child) == State::Running,
            _ => false,
        };
        if is_awaited {
            out.push(Command::Kill(child));
        }
    }

    fn lose_patience_with_all(&self, out: &mut Vec<Command>) {
        if matches!(self.mode, Mode::StoppingAll(_)) {
            out.extend(self.running().map(Command::Kill));
        }
    }

    fn running(&self) -> impl Iterator<Item = ChildId> {
        let places = std::iter::successors(self.children.first(), |place| self.children.after(*place));
        places.filter(|place| self.children.state(*place) == State::Running).map(|place| self.children.id(place))
    }

    // The end.

    /// It will exit, and hears nothing else any more.
    fn doom(&mut self, reason: ExitReason, ending: Ending, out: &mut Vec<Command>) {
        self.ending = Some((reason, ending));
        for waiting in std::mem::take(&mut self.deferred) {
            if let Deferred::Asked(ticket, _) = waiting {
                out.push(Command::Answer(ticket, Answer::Refused(Refused::Stopping)));
            }
        }
    }

    fn end(&mut self, reason: ExitReason, ending: Ending, out: &mut Vec<Command>) {
        self.doom(reason, ending, out);
        self.mode = Mode::Idle;
        self.go_on_ending(out);
    }

    /// If it is to exit and waits for nothing: stops what still runs.
    fn go_on_ending(&mut self, out: &mut Vec<Command>) {
        if self.ending.is_none() || !self.is_idle() {
            return;
        }
        match self.template.as_ref().map(|template| template.shutdown) {
            None if self.flags.independent => self.stop_each(out),
            None => self.stop_from(self.children.last(), Task::End, out),
            Some(shutdown) => self.stop_all(shutdown, out),
        }
    }

    /// Independent children stop together, each in its own time.
    fn stop_each(&mut self, out: &mut Vec<Command>) {
        let running: Vec<ChildId> = self.running().collect();
        running.iter().for_each(|child| self.tell_to_stop(*child, out));
        self.mode = Mode::StoppingAll(running.len());
        self.exit_if_alone(out);
    }

    /// Dynamic children stop together: there is no order among them, and there may be very many.
    fn stop_all(&mut self, shutdown: Shutdown, out: &mut Vec<Command>) {
        let told = out.len();
        match shutdown {
            Shutdown::Brutal => out.extend(self.running().map(Command::Kill)),
            _ => out.extend(self.running().map(Command::Stop)),
        }
        let left = out.len() - told;
        if let Shutdown::Within(time) = shutdown
            && left > 0
        {
            out.push(Command::Set(Timer::PatienceWithAll, time));
        }
        self.mode = Mode::StoppingAll(left);
        self.exit_if_alone(out);
    }

    fn exit_if_alone(&mut self, out: &mut Vec<Command>) {
        if matches!(self.mode, Mode::StoppingAll(0)) {
            self.exit(out);
        }
    }

    fn exit(&mut self, out: &mut Vec<Command>) {
        self.mode = Mode::Over;
        if let Some((reason, ending)) = self.ending.clone() {
            out.push(Command::Exit(reason, ending));
        }
    }
}
