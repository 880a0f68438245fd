//! The supervisor engine, in the groups of behaviour that OTP's own test suite has.

mod dynamic;
mod exits;
mod intensity;
mod requests;
mod significant;
mod size;
mod starts;
mod stops;
mod strategies;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

use ephor_base::ExitReason;
use ephor_runtime::supervisor::{
    Answer, ChildId, Command, Ending, Event, Flags, Intensity, Kind, Name, Request, Restart, Shutdown, Spec, Strategy,
    Supervisor, Timer,
};

/// Time enough for any number of restarts to count together.
const LONG: Duration = Duration::from_secs(1000);
const PATIENCE: Duration = Duration::from_secs(5);

fn flags(strategy: Strategy, restarts: usize) -> Flags {
    Flags { strategy, ..Flags::one_for_one(Intensity { restarts, period: LONG }) }
}

fn spec(name: &str, restart: Restart) -> Spec {
    Spec {
        name: Name::from(name),
        restart,
        significant: false,
        shutdown: Shutdown::Within(PATIENCE),
        kind: Kind::Worker,
    }
}

fn permanent(names: &[&str]) -> Vec<Spec> {
    names.iter().map(|name| spec(name, Restart::Permanent)).collect()
}

fn crash() -> ExitReason {
    ExitReason::Error("boom".to_owned())
}

/// How the next starts of a child end.
#[derive(Clone, Copy)]
enum Act {
    Fail,
    Ignore,
}

/// A runtime in a few lines: children start when they are told to and, unless they are deaf, stop so.
struct Rig {
    engine: Supervisor,
    now: Duration,
    names: HashMap<u32, String>,
    ids: HashMap<String, ChildId>,
    acts: HashMap<String, VecDeque<Act>>,
    deaf: Vec<String>,
    clock: BTreeMap<(Duration, usize), Timer>,
    asked: u64,
    specs: HashMap<u64, String>,
    timers: usize,
}

impl Rig {
    /// A supervisor that has not started yet.
    fn new(flags: Flags, specs: Vec<Spec>) -> Self {
        let is_dynamic = flags.strategy == Strategy::Dynamic;
        let names = if is_dynamic {
            HashMap::new()
        } else {
            (0..).zip(specs.iter().map(|spec| spec.name.to_string())).collect()
        };
        Self {
            engine: Supervisor::new(flags, specs, 7).unwrap(),
            now: Duration::from_secs(100),
            names,
            ids: HashMap::new(),
            acts: HashMap::new(),
            deaf: Vec::new(),
            clock: BTreeMap::new(),
            asked: 0,
            specs: HashMap::new(),
            timers: 0,
        }
    }

    /// One that runs.
    fn up(flags: Flags, specs: Vec<Spec>) -> Self {
        let mut rig = Self::new(flags, specs);
        assert_eq!(rig.happens(Event::Boot).last().map(String::as_str), Some("ready"));
        rig
    }

    /// The next starts of a child end so.
    fn will(&mut self, name: &str, acts: &[Act]) -> &mut Self {
        self.acts.insert(name.to_owned(), acts.iter().copied().collect());
        self
    }

    fn exits(&mut self, name: &str, reason: ExitReason) -> Vec<String> {
        let id = self.ids[name];
        self.happens(Event::Exited(id, reason))
    }

    fn asks(&mut self, request: Request) -> Vec<String> {
        self.asked += 1;
        if let Request::Start(spec) = &request {
            self.specs.insert(self.asked, spec.name.to_string());
        }
        self.happens(Event::Asked(self.asked, request))
    }

    /// Adds a dynamic child and calls it so.
    fn grows(&mut self, name: &str) -> Vec<String> {
        self.specs.insert(self.asked + 1, name.to_owned());
        self.asks(Request::StartDynamic)
    }

    /// Time passes, and timers fire.
    fn waits(&mut self, time: Duration) -> Vec<String> {
        let until = self.now + time;
        let mut log = Vec::new();
        while let Some(entry) = self.clock.first_entry().filter(|entry| entry.key().0 <= until) {
            self.now = entry.key().0;
            let timer = entry.remove();
            log.extend(self.happens(Event::Fired(timer)));
        }
        self.now = until;
        log
    }

    /// What follows from an event, in words, until all is quiet.
    fn happens(&mut self, event: Event) -> Vec<String> {
        self.all_happen([event])
    }

    fn all_happen(&mut self, events: impl IntoIterator<Item = Event>) -> Vec<String> {
        let (mut events, mut log): (VecDeque<Event>, _) = (events.into_iter().collect(), Vec::new());
        while let Some(event) = events.pop_front() {
            for command in self.engine.step(self.now, event) {
                if let Some(words) = self.carry_out(command, &mut events) {
                    log.push(words);
                }
            }
        }
        log
    }

    fn carry_out(&mut self, command: Command, events: &mut VecDeque<Event>) -> Option<String> {
        match command {
            Command::Adopt(ticket, id) => {
                self.names.insert(id.place, self.specs[&ticket].clone());
                None
            }
            Command::Start(id) => {
                let name = self.names[&id.place].clone();
                let words = format!("start {name}");
                events.push_back(match self.acts.get_mut(&name).and_then(VecDeque::pop_front) {
                    Some(Act::Fail) => Event::StartFailed(id, "refused".to_owned()),
                    Some(Act::Ignore) => Event::Ignored(id),
                    None => {
                        self.ids.insert(name, id);
                        Event::Started(id)
                    }
                });
                Some(words)
            }
            Command::Stop(id) => {
                let name = self.names[&id.place].clone();
                if !self.deaf.contains(&name) {
                    events.push_back(Event::Exited(id, ExitReason::Shutdown));
                }
                Some(format!("stop {name}"))
            }
            Command::Kill(id) => {
                events.push_back(Event::Exited(id, ExitReason::Killed));
                Some(format!("kill {}", self.names[&id.place]))
            }
            Command::Forget(id) => Some(format!("forget {}", self.names[&id.place])),
            Command::Set(timer, time) if time.is_zero() => {
                events.push_back(Event::Fired(timer));
                None
            }
            Command::Set(timer, time) => {
                self.timers += 1;
                self.clock.insert((self.now + time, self.timers), timer);
                None
            }
            Command::Answer(_, answer) => Some(match answer {
                Answer::Refused(refused) => format!("refused: {refused}"),
                Answer::Started(id) => format!("started {}", self.names[&id.place]),
                Answer::Ignored => "ignored".to_owned(),
                Answer::Done => "done".to_owned(),
                Answer::Children(children) => children.iter().fold("children".to_owned(), |text, child| {
                    let name = child.name.as_ref().map_or("-", Name::as_str);
                    let standing = format!("{:?}", child.standing);
                    format!("{text} {name}:{}", standing.split('(').next().unwrap())
                }),
                Answer::Counted(counted) => format!(
                    "{} specs, {} active, {} supervisors, {} workers",
                    counted.specs, counted.active, counted.supervisors, counted.workers
                ),
            }),
            Command::Record(..) => None,
            Command::Ready => Some("ready".to_owned()),
            Command::Exit(reason, ending) => {
                let why = match ending {
                    Ending::Ordered => "told to",
                    Ending::Intensity => "too many restarts",
                    Ending::AutoShutdown => "nothing significant left",
                    Ending::StartFailed => "a start failed",
                };
                Some(format!("exit {}: {why}", reason.code()))
            }
        }
    }
}
