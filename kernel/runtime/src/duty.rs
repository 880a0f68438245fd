//! A supervisor at work: carries out what its engine decides.
//!
//! It takes what lies on its desk, lets the engine decide, and tells the host of everything in one go before anybody who was
//! born runs and anybody who asked is answered. So a storm of exits costs one record for many restarts.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use ephor_base::{ExitReason, Pid};
use tokio::sync::oneshot;

use super::{
    Address, Begin, ChildSpec, Host, Later, Process, Shared, SupervisorSpec, Task,
    asking::Asking,
    host::{News, Told, What},
    living::{Living, Observers, Stage},
    orders::{Order, Started},
    panics::contained,
    row::{Place, Row},
};
use crate::{
    supervisor::{BadSpec, ChildId, Command, Ending, Event, Strategy, Supervisor, Timer},
    timers::{Desk, TimerId},
};

/// How many events a supervisor attends to before it lets others go on. A storm of 30,000 exits is sixty such turns,
/// each well below a millisecond or two.
const EVENTS_A_TURN: usize = 1024;

/// What a supervisor says that gives up. OTP's says `shutdown` and no more.
pub const TOO_OFTEN: &str = "its children were restarted too often";

/// A supervisor at work.
pub(super) struct Duty<H: Host> {
    pub(super) shared: Arc<Shared<H>>,
    pub(super) row: Arc<Row<H>>,
    pub(super) pid: Pid,
    engine: Supervisor,
    pub(super) kids: Vec<Option<Kid<H>>>,
    pub(super) template: Option<ChildSpec<H>>,
    pub(super) asking: Asking<H>,
    /// Those that are set. Most supervisors have none, and pay a word for it.
    #[expect(clippy::box_collection, reason = "a map is six words, and there are a million supervisors")]
    timers: Option<Box<HashMap<Timer, TimerId>>>,
    events: VecDeque<Event>,
    orders: Vec<Order<H>>,
    news: Vec<News<H>>,
    births: Vec<Birth<H>>,
    /// Children that were over before they could be told of.
    stillborn: Vec<ChildId>,
    /// Children whose exits the engine has come to, until it is known whether they are started again.
    exited: Vec<ChildId>,
    telling: Option<Later<Result<(), String>>>,
    over: Option<(ExitReason, Ending)>,
    giving_up: Option<Later<()>>,
    /// Who waits for the root to have started.
    ready: Option<oneshot::Sender<()>>,
    now: Duration,
    is_stopping: bool,
    children: u32,
}

/// A child, over all of its incarnations.
pub(super) struct Kid<H: Host> {
    pub(super) row: Arc<Row<H>>,
    /// The incarnation that was started last.
    pub(super) pid: Pid,
    task: Task<H>,
}

/// One that has a PID and is about to run.
struct Birth<H: Host> {
    row: Arc<Row<H>>,
    id: ChildId,
    pid: Pid,
    stage: Stage<H>,
}

impl<H: Host> Duty<H> {
    pub(super) fn new(
        shared: Arc<Shared<H>>,
        row: Arc<Row<H>>,
        pid: Pid,
        spec: &SupervisorSpec<H>,
        ready: Option<oneshot::Sender<()>>,
    ) -> Result<Self, BadSpec> {
        let children = spec.all_children();
        let specs = children.iter().map(ChildSpec::for_engine).collect();
        // A PID is as good a seed as any: it differs from supervisor to supervisor, and stands on the record.
        let engine = Supervisor::new(spec.flags, specs, pid.0)?;
        let mut duty = Self {
            shared,
            row,
            pid,
            engine,
            kids: Vec::new(),
            template: None,
            asking: Asking::default(),
            timers: None,
            events: VecDeque::from([Event::Boot]),
            orders: Vec::new(),
            news: Vec::new(),
            births: Vec::new(),
            stillborn: Vec::new(),
            exited: Vec::new(),
            telling: None,
            over: None,
            giving_up: None,
            ready,
            now: Duration::ZERO,
            is_stopping: false,
            children: 0,
        };
        match spec.flags.strategy {
            Strategy::Dynamic => duty.template = children.first().cloned(),
            _ => {
                for (place, child) in (0..).zip(children.into_owned()) {
                    duty.adopt(place, child, true);
                }
            }
        }
        Ok(duty)
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<ExitReason> {
        let mut turns = EVENTS_A_TURN;
        loop {
            if let Some(telling) = &mut self.telling {
                let told = ready!(Pin::new(telling).poll(context));
                self.telling = None;
                self.told(told);
            }
            if self.over.is_some() && self.events.is_empty() {
                return self.leave(context);
            }
            if turns == 0 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.now = self.shared.host.now();
            let most = turns;
            if self.events.is_empty() && !self.hear(most) {
                return Poll::Pending;
            }
            turns = self.decide(turns);
            self.flush();
        }
    }

    /// Takes what came: from its own latch and its desk. False if nothing did.
    fn hear(&mut self, most: usize) -> bool {
        let mut orders = std::mem::take(&mut self.orders);
        let is_told_to_stop = self.row.orders(self.pid, most, &mut orders);
        if is_told_to_stop && !self.is_stopping {
            self.is_stopping = true;
            self.events.push_back(Event::Stop(ExitReason::Shutdown));
        }
        for order in orders.drain(..) {
            self.take(order);
        }
        self.orders = orders;
        !self.events.is_empty()
    }

    fn take(&mut self, order: Order<H>) {
        match order {
            Order::Exited(id, _, reason) => self.events.push_back(Event::Exited(id, reason)),
            Order::Ready(id) => self.events.push_back(Event::Started(id)),
            Order::Fired(timer) => {
                let _id = self.unset(timer);
                self.events.push_back(Event::Fired(timer));
            }
            Order::Asked(ask) => {
                let event = self.asking.take(ask);
                self.events.push_back(event);
            }
        }
    }

    /// Lets the engine decide and does what it says, for at most so many events; says how many more there may be.
    fn decide(&mut self, mut turns: usize) -> usize {
        while turns > 0
            && let Some(event) = self.events.pop_front()
        {
            turns -= 1;
            if let Event::Exited(id, reason) = &event {
                self.note_exit(*id, reason);
            }
            for command in self.engine.step(self.now, event) {
                self.carry_out(command);
            }
        }
        if self.events.is_empty() {
            self.dismiss_down();
        }
        turns
    }

    /// A child that does not run, and that nothing will start again, gets no more messages. Of one that does not run while
    /// something else is under way this is not known yet.
    fn dismiss_down(&mut self) {
        for id in std::mem::take(&mut self.exited) {
            let Some(kid) = self.kid(id) else { continue };
            if self.engine.is_down(id) {
                self.shared.dismiss(&kid.row);
            } else if kid.row.is_waited_at() && self.engine.is_last(id) {
                self.exited.push(id);
            }
        }
    }

    /// Tells of an exit in the same go as of what follows from it.
    fn note_exit(&mut self, id: ChildId, reason: &ExitReason) {
        self.exited.push(id);
        if let Some(timer) = self.unset(Timer::Patience(id)) {
            self.shared.host.timers().cancel(timer);
        }
        if let Some(at) = self.stillborn.iter().position(|one| *one == id) {
            self.stillborn.swap_remove(at);
            return;
        }
        if let Some(kid) = self.kid(id) {
            let (row, pid) = (kid.row.clone(), kid.pid);
            self.news.push(News { row, pid, what: What::Exited(reason.clone()) });
        }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Adopt(ticket, id) => self.adopt_asked(ticket, id),
            Command::Start(id) => self.start(id),
            Command::Stop(id) => self.with_kid(id, |row| row.stop(None)),
            Command::Kill(id) => self.with_kid(id, |row| row.kill(None)),
            Command::Forget(id) => self.forget(id),
            Command::Set(timer, time) => self.set(timer, time),
            Command::Answer(ticket, answer) => self.asking.answer(ticket, answer),
            Command::Record(id, cause) => {
                if let Some(row) = self.row_of(id) {
                    // What it died of is in the news of its exit; what else led here has no other place.
                    let pid = self.pid;
                    self.news.push(News { row, pid, what: What::Restarting(cause) });
                }
            }
            Command::Ready => self.started(),
            Command::Exit(reason, ending) => self.over = Some((reason, ending)),
        }
    }

    // Children.

    fn adopt_asked(&mut self, ticket: u64, id: ChildId) {
        if let Some((spec, is_named)) = self.asking.adopted(ticket, self.template.as_ref()) {
            self.adopt(id.place, spec, is_named);
        }
    }

    fn adopt(&mut self, place: u32, spec: ChildSpec<H>, is_named: bool) {
        let Ok(at) = usize::try_from(place) else { return };
        self.children = self.children.wrapping_add(1);
        let row = Row::new(Place {
            supervisor: Some((self.row.clone(), self.pid)),
            seat: is_named.then(|| self.row.seat().child(spec.name.as_str())),
            number: self.children,
            limit: spec.limit,
            session: spec.session,
            keeps_messages: spec.keeps_messages,
            kind: spec.task.kind(),
        });
        if self.kids.len() <= at {
            self.kids.resize_with(at + 1, || None);
        }
        if let Some(kid) = self.kids.get_mut(at) {
            *kid = Some(Kid { row, pid: Pid(0), task: spec.task });
        }
    }

    pub(super) fn kid(&self, id: ChildId) -> Option<&Kid<H>> {
        self.kids.get(usize::try_from(id.place).ok()?)?.as_ref()
    }

    fn kid_mut(&mut self, id: ChildId) -> Option<&mut Kid<H>> {
        self.kids.get_mut(usize::try_from(id.place).ok()?)?.as_mut()
    }

    fn row_of(&self, id: ChildId) -> Option<Arc<Row<H>>> {
        self.kid(id).map(|kid| kid.row.clone())
    }

    fn with_kid(&self, id: ChildId, act: impl FnOnce(&Row<H>) -> bool) {
        // A child that is gone already reports its exit, or has.
        let _was_there = self.kid(id).is_some_and(|kid| act(&kid.row));
    }

    fn start(&mut self, id: ChildId) {
        let Some(kid) = self.kid(id) else {
            return self.events.push_front(Event::StartFailed(id, "nobody knows what it is".to_owned()));
        };
        let (row, task) = (kid.row.clone(), kid.task.clone());
        match task.begin() {
            Begin::Runs => {}
            Begin::Ignored => return self.events.push_front(Event::Ignored(id)),
            Begin::Failed(why) => return self.events.push_front(Event::StartFailed(id, why)),
        }
        let pid = self.shared.table.fresh();
        let stage = match task {
            Task::Worker(body) => Stage::New(body),
            Task::Supervisor(spec) => match Self::new(self.shared.clone(), row.clone(), pid, &spec, None) {
                Ok(duty) => Stage::Supervises(Box::new(duty)),
                Err(bad) => return self.events.push_front(Event::StartFailed(id, bad.to_string())),
            },
        };
        if matches!(stage, Stage::New(_)) {
            // At once: what happened meanwhile waits behind it. A supervisor says itself when it has started.
            self.events.push_front(Event::Started(id));
        }
        if let Some(kid) = self.kid_mut(id) {
            kid.pid = pid;
        }
        let incarnation = row.begin(pid, id, self.now);
        self.shared.table.insert(pid, row.clone());
        self.news.push(News { row: row.clone(), pid, what: What::Born { incarnation } });
        self.births.push(Birth { row, id, pid, stage });
    }

    fn forget(&mut self, id: ChildId) {
        let kid = usize::try_from(id.place).ok().and_then(|at| self.kids.get_mut(at)).and_then(Option::take);
        if let Some(kid) = kid {
            self.shared.close(&kid.row);
        }
    }

    /// Every child has started: so has the supervisor.
    fn started(&mut self) {
        if let Some(ready) = self.ready.take() {
            // Who does not wait any more needs no answer.
            let _left: Result<(), ()> = ready.send(());
        }
        if let Some((supervisor, parent)) = self.row.supervisor() {
            // If the incarnation that waits is gone, this one is to go as well and has been told.
            let _gone: Result<(), Order<H>> = supervisor.order(Some(parent), Order::Ready(self.row.child()));
        }
    }

    /// Behind everything that waits already, if the time is zero.
    fn set(&mut self, timer: Timer, time: Duration) {
        if time.is_zero() {
            // Its own desk takes it as long as it lives.
            let _over: Result<(), Order<H>> = self.row.order(Some(self.pid), Order::Fired(timer));
            return;
        }
        let set = self.shared.host.timers().tell(time, self.row.clone(), self.pid, timer);
        if let Some(before) = self.timers.get_or_insert_default().insert(timer, set) {
            self.shared.host.timers().cancel(before);
        }
    }

    /// Forgets a timer that has fired, or is to be taken back.
    fn unset(&mut self, timer: Timer) -> Option<TimerId> {
        let timers = self.timers.as_mut()?;
        let set = timers.remove(&timer);
        if timers.is_empty() {
            self.timers = None;
        }
        set
    }

    // The record.

    /// Tells what happened; what waits for that happens when it is done.
    fn flush(&mut self) {
        if self.news.is_empty() {
            return self.told(Ok(()));
        }
        match self.shared.host.tell(&mut self.news) {
            Told::Taken => self.told(Ok(())),
            Told::Refused(why) => self.told(Err(why)),
            Told::Later(later) => self.telling = Some(later),
        }
        self.news.clear();
    }

    fn told(&mut self, told: Result<(), String>) {
        match told {
            Ok(()) => {
                for Birth { row, id, pid, mut stage } in self.births.drain(..) {
                    if let Some(asker) = self.asking.started(id)
                        && let Some(kid) =
                            self.kids.get(usize::try_from(id.place).unwrap_or(usize::MAX)).and_then(Option::as_ref)
                    {
                        stage = stage.asked_for(asker, kid.started(&self.shared, id));
                    }
                    drop(tokio::spawn(Living::new(self.shared.clone(), row, pid, stage)));
                }
                let kids = &self.kids;
                self.asking.send(&self.shared, |id| kids.get(usize::try_from(id.place).ok()?)?.as_ref());
            }
            Err(why) => self.untold(&why),
        }
    }

    /// What is not on the record does not happen: a child that was born is over before it began.
    fn untold(&mut self, why: &str) {
        tracing::error!(%why, supervisor = %self.pid, "what happened below a supervisor could not be recorded");
        self.asking.fail(why);
        for Birth { row, id, pid, .. } in std::mem::take(&mut self.births) {
            let reason = ExitReason::Error(why.to_owned());
            if let Some((_, mut observers)) = self.shared.bury(&row, pid, &reason) {
                observers.tell();
                self.stillborn.push(id);
                self.events.push_back(Event::Exited(id, reason));
            }
        }
    }

    // The end.

    fn leave(&mut self, context: &mut Context<'_>) -> Poll<ExitReason> {
        let Some((reason, ending)) = self.over.clone() else { return Poll::Pending };
        if ending != Ending::Intensity {
            return Poll::Ready(reason);
        }
        if self.giving_up.is_none() {
            let process = Process::new(self.shared.clone(), self.row.clone(), self.pid);
            self.giving_up = self.shared.host.gives_up(&process);
        }
        if let Some(giving_up) = &mut self.giving_up {
            ready!(Pin::new(giving_up).poll(context));
        }
        Poll::Ready(ExitReason::ShutdownFor(TOO_OFTEN.to_owned()))
    }

    /// The supervisor is over: no child outlives it. Gives what is still to be told.
    pub(super) fn abandon(&mut self) -> Vec<Later<Result<(), String>>> {
        // From here on children report to no supervisor, and tell of their exits themselves.
        let _was_there = self.row.kill(Some(self.pid));
        let mut orders = Vec::new();
        let _is_stopping = self.row.orders(self.pid, usize::MAX, &mut orders);
        for order in orders {
            match order {
                Order::Asked(ask) => drop(self.row.order(None, Order::Asked(ask))),
                order => self.take(order),
            }
        }
        for event in std::mem::take(&mut self.events) {
            if let Event::Exited(id, reason) = event {
                self.note_exit(id, &reason);
            }
        }
        for kid in self.kids.iter().flatten() {
            kid.row.kill(None);
        }
        let unborn = self.unborn();
        let mut telling = Vec::new();
        match self.telling.take() {
            Some(births) => telling.push(self.shared.tell_after(births, unborn)),
            None => {
                for (news, mut observers) in unborn {
                    self.news.push(news);
                    observers.tell();
                }
            }
        }
        telling.extend(self.shared.tell_all(&mut self.news));
        for kid in std::mem::take(&mut self.kids).into_iter().flatten() {
            self.shared.close(&kid.row);
        }
        telling
    }
}

impl<H: Host> Duty<H> {
    /// Those who were about to run end before they have.
    fn unborn(&mut self) -> Vec<(News<H>, Observers)> {
        let births: Vec<_> = self.births.drain(..).collect();
        let end = |Birth { row, pid, stage, .. }| {
            if let Err(panicked) = contained(|| drop(stage)) {
                tracing::error!(%pid, ?panicked, "a process that had not begun panicked at its end");
            }
            let (_, observers) = self.shared.bury(&row, pid, &ExitReason::Killed)?;
            Some((News { row, pid, what: What::Exited(ExitReason::Killed) }, observers))
        };
        births.into_iter().filter_map(end).collect()
    }
}

impl<H: Host> Drop for Duty<H> {
    /// Nothing rings for it any more, and its row is held by no timer.
    fn drop(&mut self) {
        for timer in self.timers.take().into_iter().flat_map(|timers| timers.into_values()) {
            self.shared.host.timers().cancel(timer);
        }
    }
}

impl<H: Host> Desk for Row<H> {
    fn fired(&self, pid: Pid, timer: Timer) {
        // Of an incarnation that is over it means nothing.
        let _over: Result<(), Order<H>> = self.order(Some(pid), Order::Fired(timer));
    }
}

impl<H: Host> Shared<H> {
    /// Tells of exits once the births are on the record; if they are not, no child was there.
    fn tell_after(
        self: &Arc<Self>,
        births: Later<Result<(), String>>,
        unborn: Vec<(News<H>, Observers)>,
    ) -> Later<Result<(), String>> {
        let shared = self.clone();
        Later::new(async move {
            let born = births.await;
            let (mut exits, observers): (Vec<_>, Vec<_>) = unborn.into_iter().unzip();
            if born.is_ok()
                && let Some(telling) = shared.tell_all(&mut exits)
            {
                telling.await?;
            }
            observers.into_iter().for_each(|mut one| one.tell());
            born
        })
    }
}

impl<H: Host> Kid<H> {
    /// What the caller that asked for it is told.
    pub(super) fn started(&self, shared: &Arc<Shared<H>>, id: ChildId) -> Started<H> {
        Started { id, pid: self.pid, address: Address::new(shared.clone(), self.row.clone()) }
    }
}
