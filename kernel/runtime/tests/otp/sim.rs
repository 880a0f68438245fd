//! The engine at work in a simulated runtime: processes, links and a clock that jumps.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    time::Duration,
};

use ephor_base::ExitReason;
use ephor_runtime::supervisor::{
    Answer, Backoff, ChildId, Command, Event, Flags, Intensity, Kind as EngineKind, Name, Refused, Request, Shutdown,
    Spec, Standing, Strategy, Supervisor, Target, Timer,
};

use crate::{
    scenario::{Act, Ask, Child, Kind, OnStop, Plan, Reason, Scenario, Step, Stop, Sub, Sup},
    trace::{StepTrace, Trace},
};

/// What a wait of the judge takes.
const WAIT: Duration = Duration::from_millis(3300);
/// A chain of events longer than this within one step goes on for ever.
const MOST_EVENTS: usize = 200_000;

/// A process, alive or not.
struct Proc {
    plain: String,
    full: String,
    /// Who supervises it, and as whom.
    parent: Option<(usize, ChildId)>,
    is_alive: bool,
    role: Role,
}

enum Role {
    Worker(OnStop),
    Supervisor(Box<Duty>),
}

/// A supervisor at work.
struct Duty {
    engine: Supervisor,
    sup: Sup,
    /// The processes of its children, by place.
    children: HashMap<u32, (ChildId, usize)>,
    /// What stands at a place: its name and what it is.
    specs: HashMap<u32, Child>,
    /// It has not started yet; its parent waits.
    is_starting: bool,
    /// It was told to stop while it was busy; OTP comes to it when it has finished.
    stop: Option<ExitReason>,
    /// It stops because its parent wants it to.
    is_told: bool,
    asked: HashMap<u64, Child>,
}

/// The world of one scenario.
struct World {
    now: Duration,
    procs: Vec<Proc>,
    attempts: HashMap<String, u64>,
    /// The newest process of a path.
    newest: HashMap<String, usize>,
    inbox: VecDeque<(usize, Event)>,
    agenda: BTreeMap<(Duration, u64), (usize, Timer)>,
    next: u64,
    answers: BTreeMap<u64, String>,
    step: StepTrace,
    /// The dynamic supervisors, which stop their children in no order.
    dynamic: BTreeSet<String>,
    /// Supervisors that worked at the same time as others in this step.
    company: HashSet<usize>,
}

/// Runs a scenario on the engine.
pub(crate) fn run(scenario: &Scenario) -> Trace {
    let mut world = World {
        now: Duration::from_secs(1000),
        procs: Vec::new(),
        attempts: HashMap::new(),
        newest: HashMap::new(),
        inbox: VecDeque::new(),
        agenda: BTreeMap::new(),
        next: 0,
        answers: BTreeMap::new(),
        step: StepTrace::serial(),
        dynamic: BTreeSet::new(),
        company: HashSet::new(),
    };
    let mut steps = Vec::new();
    world.boot(&scenario.root);
    steps.push(world.settled());
    for step in &scenario.steps {
        world.perform(step);
        steps.push(world.settled());
    }
    Trace { steps, is_slow: false, dynamic: world.dynamic }
}

impl World {
    fn boot(&mut self, root: &Sup) {
        let (full, act) = self.attempt("root", "root", &Plan::OK);
        self.note_start(&full, &act);
        let at = self.found(root.clone(), "root", full, None);
        self.inbox.push_back((at, Event::Boot));
        self.drain();
        let is_starting = self.duty(at).is_some_and(|duty| duty.is_starting);
        let answer = if is_starting { "start_failed" } else { "started" };
        self.step.answers.push(answer.to_owned());
    }

    fn perform(&mut self, step: &Step) {
        match step {
            Step::Exit(path, reason) => {
                if let Some(at) = self.living(path) {
                    self.leave(at, *reason);
                }
            }
            // The judge's supervisors trap exits: only a parent's counts.
            Step::Stranger(..) => {}
            Step::Ask(path, ask) => self.ask_all(path, &[Sub::Ask(ask.clone())]),
            Step::Batch(path, subs) => self.ask_all(path, subs),
            Step::Wait => self.now += WAIT,
            Step::Stop => {
                if let Some(root) = self.living("root") {
                    self.inbox.push_back((root, Event::Stop(ExitReason::Shutdown)));
                }
            }
        }
    }

    /// Puts everything into the mailbox of a supervisor before it sees the first of it.
    fn ask_all(&mut self, path: &str, subs: &[Sub]) {
        let sup = self.living(path).filter(|at| matches!(self.procs[*at].role, Role::Supervisor(_)));
        for sub in subs {
            match (sub, sup) {
                (Sub::Exit(child, reason), Some(_)) => {
                    if let Some(at) = self.living(child) {
                        self.leave(at, *reason);
                    }
                }
                (Sub::Stop, Some(sup)) => self.inbox.push_back((sup, Event::Stop(ExitReason::Shutdown))),
                (Sub::Ask(ask), Some(sup)) => {
                    let ticket = self.ticket();
                    self.answers.insert(ticket, "gone".to_owned());
                    let request = self.request(path, sup, ticket, ask).expect("only supervisors are asked");
                    self.inbox.push_back((sup, Event::Asked(ticket, request)));
                }
                (Sub::Ask(_), None) => {
                    let ticket = self.ticket();
                    self.answers.insert(ticket, "gone".to_owned());
                }
                (Sub::Exit(..) | Sub::Stop, None) => {}
            }
        }
    }

    fn request(&mut self, path: &str, sup: usize, ticket: u64, ask: &Ask) -> Option<Request> {
        let name = |name: &str| Name::from(name);
        Some(match ask {
            Ask::Start(child) => {
                self.duty(sup)?.asked.insert(ticket, child.clone());
                Request::Start(spec(child))
            }
            Ask::StartDynamic(index) => {
                let duty = self.duty(sup)?;
                let mut child = duty.sup.children[0].clone();
                index.clone_into(&mut child.name);
                duty.asked.insert(ticket, child);
                Request::StartDynamic
            }
            Ask::Terminate(child) => Request::Terminate(Target::Name(name(child))),
            Ask::TerminateDynamic(index) => {
                // An id of a supervisor before this one means nobody here.
                let nobody = ChildId { place: u32::MAX, run: 0 };
                let newest = self.newest.get(&format!("{path}/{index}"));
                let known = newest.and_then(|at| self.procs[*at].parent).filter(|(parent, _)| *parent == sup);
                Request::Terminate(Target::Child(known.map_or(nobody, |(_, id)| id)))
            }
            Ask::Delete(child) => Request::Delete(name(child)),
            Ask::Restart(child) => Request::Restart(name(child)),
            Ask::Which => Request::Which,
            Ask::Count => Request::Count,
        })
    }

    /// Lets everything happen that follows, and gives back what did.
    fn settled(&mut self) -> StepTrace {
        self.drain();
        self.step.answers.extend(std::mem::take(&mut self.answers).into_values());
        self.step.shape = self.shape();
        self.company.clear();
        let mut step = std::mem::replace(&mut self.step, StepTrace::serial());
        step.sort();
        step
    }

    fn drain(&mut self) {
        for _ in 0..MOST_EVENTS {
            if let Some((at, event)) = self.inbox.pop_front() {
                self.deliver(at, event);
            } else if let Some((at, timer)) = self.next_timer() {
                self.deliver(at, Event::Fired(timer));
            } else {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    /// The next timer that still means something.
    fn next_timer(&mut self) -> Option<(usize, Timer)> {
        while let Some(((time, _), (at, timer))) = self.agenda.pop_first() {
            let waits = match timer {
                Timer::Patience(child) => self.proc_of(at, child).is_some_and(|child| self.procs[child].is_alive),
                _ => true,
            };
            if self.procs[at].is_alive && waits {
                self.now = self.now.max(time);
                return Some((at, timer));
            }
        }
        None
    }

    fn deliver(&mut self, at: usize, event: Event) {
        if !self.procs[at].is_alive {
            return;
        }
        let now = self.now;
        let Some(duty) = self.duty(at) else { return };
        if let Event::Stop(reason) = &event
            && !duty.engine.is_idle()
        {
            duty.stop = Some(reason.clone());
            self.step.is_racy = true;
            return;
        }
        if matches!(event, Event::Stop(_)) {
            duty.is_told = true;
            self.note_race(at);
        }
        let Some(duty) = self.duty(at) else { return };
        let commands = duty.engine.step(now, event);
        for command in commands {
            self.carry_out(at, command);
        }
        if let Some(duty) = self.duty(at).filter(|duty| duty.engine.is_idle())
            && let Some(reason) = duty.stop.take()
        {
            self.inbox.push_front((at, Event::Stop(reason)));
        }
    }

    fn carry_out(&mut self, at: usize, command: Command) {
        match command {
            Command::Adopt(ticket, id) => {
                if let Some(duty) = self.duty(at)
                    && let Some(child) = duty.asked.remove(&ticket)
                {
                    duty.specs.insert(id.place, child);
                }
            }
            Command::Start(id) => self.start(at, id),
            Command::Stop(id) => self.ask_to_stop(at, id),
            Command::Kill(id) => {
                if let Some(child) = self.proc_of(at, id) {
                    self.die(child, &ExitReason::Killed);
                }
            }
            Command::Forget(id) => {
                if let Some(duty) = self.duty(at) {
                    duty.specs.remove(&id.place);
                    duty.children.remove(&id.place);
                }
            }
            Command::Set(timer, time) if time.is_zero() => self.inbox.push_back((at, Event::Fired(timer))),
            Command::Set(timer, time) => {
                let key = (self.now + time, self.ticket());
                self.agenda.insert(key, (at, timer));
            }
            Command::Answer(ticket, answer) => {
                let text = self.words(at, &answer);
                self.answers.insert(ticket, text);
            }
            Command::Record(..) => {}
            Command::Ready => self.ready(at),
            Command::Exit(reason, _) => self.die(at, &reason),
        }
    }

    fn ready(&mut self, at: usize) {
        if let Some(duty) = self.duty(at) {
            duty.is_starting = false;
        }
        if let Some((parent, id)) = self.procs[at].parent {
            self.inbox.push_back((parent, Event::Started(id)));
        }
    }

    fn start(&mut self, at: usize, id: ChildId) {
        let path = self.procs[at].plain.clone();
        let full_parent = self.procs[at].full.clone();
        let Some(child) = self.duty(at).and_then(|duty| duty.specs.get(&id.place).cloned()) else {
            panic!("a child nobody described is started");
        };
        let plain = format!("{path}/{}", child.name);
        let (Kind::Worker(plan, _) | Kind::Supervisor(plan, _)) = &child.kind;
        let (full, act) = self.attempt(&plain, &format!("{full_parent}/{}", child.name), plan);
        self.note_company(at);
        self.note_start(&full, &act);
        match act {
            Act::Fail => return self.inbox.push_back((at, Event::StartFailed(id, "refused".to_owned()))),
            Act::Ignore => return self.inbox.push_back((at, Event::Ignored(id))),
            Act::Kill(ref sibling) => self.kill_sibling(at, sibling, None),
            Act::Ok | Act::Die(_) => {}
        }
        let born = match child.kind {
            Kind::Worker(_, on_stop) => {
                let born = self.enter(plain, full, Some((at, id)), Role::Worker(on_stop));
                self.inbox.push_back((at, Event::Started(id)));
                born
            }
            Kind::Supervisor(_, sup) => {
                let born = self.found(*sup, &plain, full, Some((at, id)));
                self.inbox.push_back((born, Event::Boot));
                born
            }
        };
        if let Some(duty) = self.duty(at) {
            duty.children.insert(id.place, (id, born));
        }
        if let Act::Die(reason) = act {
            self.leave(born, reason);
        }
    }

    fn found(&mut self, sup: Sup, plain: &str, full: String, parent: Option<(usize, ChildId)>) -> usize {
        let flags = Flags {
            strategy: sup.strategy,
            intensity: Intensity { restarts: sup.intensity, period: Duration::from_secs(sup.period) },
            auto_shutdown: sup.auto_shutdown,
            backoff: Backoff::NONE,
            independent: false,
        };
        let specs = sup.children.iter().map(spec).collect();
        let places: HashMap<u32, Child> = match sup.strategy {
            Strategy::Dynamic => HashMap::new(),
            _ => (0..).zip(sup.children.iter().cloned()).collect(),
        };
        if sup.strategy == Strategy::Dynamic {
            self.dynamic.insert(full.clone());
        }
        let engine = Supervisor::new(flags, specs, 0).unwrap();
        let duty = Duty {
            engine,
            sup,
            children: HashMap::new(),
            specs: places,
            is_starting: true,
            stop: None,
            is_told: false,
            asked: HashMap::new(),
        };
        self.enter(plain.to_owned(), full, parent, Role::Supervisor(Box::new(duty)))
    }

    fn enter(&mut self, plain: String, full: String, parent: Option<(usize, ChildId)>, role: Role) -> usize {
        let at = self.procs.len();
        self.newest.insert(plain.clone(), at);
        self.procs.push(Proc { plain, full, parent, is_alive: true, role });
        at
    }

    fn attempt(&mut self, plain: &str, named: &str, plan: &Plan) -> (String, Act) {
        let attempt = self.attempts.entry(plain.to_owned()).or_default();
        *attempt += 1;
        (format!("{named}#{attempt}"), plan.act(*attempt).clone())
    }

    fn note_start(&mut self, full: &str, act: &Act) {
        self.step.order.push(note_of(full, act));
    }

    /// Notes when two supervisors work at the same time: then nobody promises whose deed comes first.
    fn note_company(&mut self, at: usize) {
        let (mut line, mut child) = (vec![at], at);
        let mut company = Vec::new();
        while let Some((parent, _)) = self.procs[child].parent {
            if self.is_busy(parent) && !self.is_waited_for(child) {
                company.push(parent);
            }
            line.push(parent);
            child = parent;
        }
        company.extend((0..self.procs.len()).filter(|other| !line.contains(other) && self.is_busy(*other)));
        if !company.is_empty() {
            self.step.is_serial = false;
            self.company.extend(company);
            self.company.insert(at);
        }
    }

    /// Notes when one is stopped, or exits, that worked in company: how far it had come is nobody's promise.
    fn note_race(&mut self, at: usize) {
        let is_below = |mut one: usize| {
            while one != at {
                let Some((parent, _)) = self.procs[one].parent else { return false };
                one = parent;
            }
            true
        };
        self.step.is_racy |= self.company.iter().any(|one| is_below(*one));
    }

    fn is_busy(&self, at: usize) -> bool {
        let Proc { is_alive: true, role: Role::Supervisor(duty), .. } = &self.procs[at] else { return false };
        !duty.engine.is_idle()
    }

    fn is_waited_for(&self, at: usize) -> bool {
        matches!(&self.procs[at].role, Role::Supervisor(duty) if duty.is_starting || duty.is_told)
    }

    fn ask_to_stop(&mut self, at: usize, id: ChildId) {
        let Some(child) = self.proc_of(at, id).filter(|child| self.procs[*child].is_alive) else { return };
        let on_stop = match &self.procs[child].role {
            Role::Supervisor(_) => return self.inbox.push_back((child, Event::Stop(ExitReason::Shutdown))),
            Role::Worker(on_stop) => on_stop.clone(),
        };
        if on_stop != OnStop::Deaf {
            self.note_company(at);
            self.step.order.push(format!("-{}", self.procs[child].full));
        }
        match on_stop {
            OnStop::Obey => self.die(child, &ExitReason::Shutdown),
            OnStop::Deaf => {}
            OnStop::Die(reason) => self.die(child, &exit_reason(reason)),
            OnStop::Kill(sibling) => {
                self.kill_sibling(at, &sibling, Some(child));
                self.die(child, &ExitReason::Shutdown);
            }
        }
    }

    /// The sibling is a child of the same incarnation of the supervisor.
    fn kill_sibling(&mut self, sup: usize, sibling: &str, me: Option<usize>) {
        let plain = format!("{}/{sibling}", self.procs[sup].plain);
        let is_child = |one: &Proc| one.plain == plain && one.parent.is_some_and(|(parent, _)| parent == sup);
        if let Some(at) = self.procs.iter().rposition(is_child).filter(|at| Some(*at) != me) {
            self.die(at, &ExitReason::Killed);
        }
    }

    fn leave(&mut self, at: usize, reason: Reason) {
        if reason == Reason::Killed || matches!(self.procs[at].role, Role::Worker(_)) {
            self.die(at, &exit_reason(reason));
        }
    }

    /// A process is gone: its parent hears of it, and whoever it leaves behind.
    fn die(&mut self, at: usize, reason: &ExitReason) {
        if !std::mem::replace(&mut self.procs[at].is_alive, false) {
            return;
        }
        self.step.exits.push(format!("x{} {}", self.procs[at].full, word(reason)));
        self.note_race(at);
        let mut is_starting = false;
        if let Role::Supervisor(duty) = &self.procs[at].role {
            is_starting = duty.is_starting;
            let orphans: Vec<usize> = duty.children.values().map(|(_, child)| *child).collect();
            if *reason == ExitReason::Killed {
                self.step.is_serial = false;
            }
            for orphan in orphans {
                self.orphan(orphan, reason);
            }
        }
        if let Some((parent, id)) = self.procs[at].parent {
            let event = if is_starting {
                Event::StartFailed(id, "its children".to_owned())
            } else {
                Event::Exited(id, reason.clone())
            };
            self.inbox.push_back((parent, event));
        }
    }

    /// The parent of a process is gone: a link tells it so. A supervisor stops in good order; a worker does not.
    fn orphan(&mut self, at: usize, reason: &ExitReason) {
        if !self.procs[at].is_alive {
            return;
        }
        self.procs[at].parent = None;
        match self.procs[at].role {
            Role::Worker(_) => self.die(at, reason),
            Role::Supervisor(_) => self.inbox.push_back((at, Event::Stop(reason.clone()))),
        }
    }

    fn words(&self, at: usize, answer: &Answer) -> String {
        match answer {
            Answer::Started(_) => "started".to_owned(),
            Answer::Ignored => "ignored".to_owned(),
            Answer::Done => "ok".to_owned(),
            Answer::Children(children) => {
                let mut shown: Vec<String> = children
                    .iter()
                    .map(|child| {
                        let name = child.name.as_ref().map(|name| format!("{name}=")).unwrap_or_default();
                        match child.standing {
                            Standing::Running(id) => {
                                let at = self.proc_of(at, id).expect("it lists children that ran");
                                format!(" {name}{}", self.procs[at].full)
                            }
                            Standing::Stopped => format!(" {name}undefined"),
                            Standing::Restarting => format!(" {name}restarting"),
                        }
                    })
                    .collect();
                if children.iter().any(|child| child.name.is_none()) {
                    shown.sort();
                }
                format!("which{}", shown.concat())
            }
            Answer::Counted(counted) => {
                format!("count {} {} {} {}", counted.specs, counted.active, counted.supervisors, counted.workers)
            }
            Answer::Refused(refused) => refusal(refused).to_owned(),
        }
    }

    /// Who lives, as the supervisors themselves tell it.
    fn shape(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut todo: Vec<usize> = self.living("root").into_iter().collect();
        while let Some(at) = todo.pop() {
            for (mark, ask) in [("W", Request::Which), ("C", Request::Count)] {
                let now = self.now;
                let Some(duty) = self.duty(at) else { continue };
                for command in duty.engine.step(now, Event::Asked(0, ask)) {
                    if let Command::Answer(_, answer) = command {
                        let words = self.words(at, &answer);
                        let words = words.trim_start_matches("which").trim_start_matches("count");
                        lines.push(format!("{mark}{}{words}", self.procs[at].full));
                    }
                }
            }
            if let Some(duty) = self.duty(at) {
                let below: Vec<usize> = duty.children.values().map(|(_, child)| *child).collect();
                let sups = below
                    .into_iter()
                    .filter(|at| self.procs[*at].is_alive && matches!(self.procs[*at].role, Role::Supervisor(_)));
                todo.extend(sups);
            }
        }
        lines
    }

    fn duty(&mut self, at: usize) -> Option<&mut Duty> {
        match &mut self.procs[at].role {
            Role::Supervisor(duty) => Some(duty),
            Role::Worker(_) => None,
        }
    }

    fn proc_of(&self, at: usize, id: ChildId) -> Option<usize> {
        let Role::Supervisor(duty) = &self.procs[at].role else { return None };
        duty.children.get(&id.place).filter(|(known, _)| *known == id).map(|(_, at)| *at)
    }

    fn living(&self, path: &str) -> Option<usize> {
        self.newest.get(path).copied().filter(|at| self.procs[*at].is_alive)
    }

    fn ticket(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

fn spec(child: &Child) -> Spec {
    Spec {
        name: Name::from(child.name.as_str()),
        restart: child.restart,
        significant: child.significant,
        shutdown: shutdown(child),
        kind: match child.kind {
            Kind::Worker(..) => EngineKind::Worker,
            Kind::Supervisor(..) => EngineKind::Supervisor,
        },
    }
}

pub(crate) fn shutdown(child: &Child) -> Shutdown {
    match child.shutdown {
        Stop::Brutal => Shutdown::Brutal,
        Stop::Infinity => Shutdown::Infinite,
        Stop::Millis(millis) => Shutdown::Within(Duration::from_millis(millis)),
    }
}

/// How a start is noted.
pub(crate) fn note_of(full: &str, act: &Act) -> String {
    let act = match act {
        Act::Ok => "ok",
        Act::Fail => "fail",
        Act::Ignore => "ignore",
        Act::Die(_) => "die",
        Act::Kill(_) => "kill",
    };
    format!("+{full} {act}")
}

pub(crate) fn refusal(refused: &Refused) -> &'static str {
    match refused {
        Refused::AlreadyStarted(_) => "already_started",
        Refused::AlreadyPresent => "already_present",
        Refused::NotFound => "not_found",
        Refused::Running => "running",
        Refused::Restarting => "restarting",
        Refused::Dynamic => "simple_one_for_one",
        Refused::Significant => "bad_combination",
        Refused::StartFailed(_) => "start_failed",
        Refused::Stopping => "gone",
    }
}

pub(crate) fn exit_reason(reason: Reason) -> ExitReason {
    match reason {
        Reason::Normal => ExitReason::Normal,
        Reason::Shutdown => ExitReason::Shutdown,
        Reason::ShutdownFor => ExitReason::ShutdownFor("x".to_owned()),
        Reason::Crash => ExitReason::Error("boom".to_owned()),
        Reason::Killed => ExitReason::Killed,
    }
}

pub(crate) fn word(reason: &ExitReason) -> &'static str {
    match reason {
        ExitReason::Normal => "normal",
        ExitReason::Shutdown => "shutdown",
        ExitReason::ShutdownFor(_) => "shutdown_for",
        ExitReason::Killed => "killed",
        ExitReason::Panicked(_) | ExitReason::Error(_) | ExitReason::Hung => "crash",
    }
}
