//! A supervision scenario: a tree, how its processes behave, and what is done to it. Printed as the term `judge.erl` reads.

use std::fmt::{self, Display, Formatter, Write as _};

use ephor_runtime::supervisor::{AutoShutdown, Restart, Strategy};

/// A tree and the steps done to it. The last thing that happens is always that the root is told to stop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Scenario {
    /// What it was made from; it names the scenario.
    pub(crate) seed: u64,
    pub(crate) root: Sup,
    pub(crate) steps: Vec<Step>,
}

/// A supervisor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sup {
    pub(crate) strategy: Strategy,
    pub(crate) intensity: usize,
    /// In seconds.
    pub(crate) period: u64,
    pub(crate) auto_shutdown: AutoShutdown,
    /// For a dynamic supervisor the one template.
    pub(crate) children: Vec<Child>,
}

/// A child of a supervisor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) restart: Restart,
    pub(crate) significant: bool,
    pub(crate) shutdown: Stop,
    pub(crate) kind: Kind,
}

/// How a child is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    Brutal,
    Infinity,
    Millis(u64),
}

/// What a child is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Worker(Plan, OnStop),
    Supervisor(Plan, Box<Sup>),
}

/// What its starts do: the first ones, and all later ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) first: Vec<Act>,
    pub(crate) rest: Act,
}

impl Plan {
    pub(crate) const OK: Self = Self { first: Vec::new(), rest: Act::Ok };

    /// What attempt `n`, from 1 on, does.
    pub(crate) fn act(&self, n: u64) -> &Act {
        usize::try_from(n - 1).ok().and_then(|at| self.first.get(at)).unwrap_or(&self.rest)
    }
}

/// One start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    Ok,
    Fail,
    Ignore,
    /// It starts, and has exited before the start returns.
    Die(Reason),
    /// A sibling is killed in the middle of the start.
    Kill(String),
}

/// What a worker does when it is asked to stop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum OnStop {
    Obey,
    /// It does not stop.
    Deaf,
    /// It exits with another reason.
    Die(Reason),
    /// It kills a sibling first.
    Kill(String),
}

/// Why a worker exits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    Normal,
    Shutdown,
    ShutdownFor,
    Crash,
    Killed,
}

/// Something that is done; the next step waits until the tree is quiet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A process exits: a worker by itself, or anyone killed.
    Exit(String, Reason),
    /// A supervisor gets an exit signal from a process it does not know.
    Stranger(String, Reason),
    /// A supervisor is asked something.
    Ask(String, Ask),
    /// All this waits for a supervisor when it wakes.
    Batch(String, Vec<Sub>),
    /// Longer than every short period.
    Wait,
    /// The root is told to stop.
    Stop,
}

/// A part of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sub {
    Exit(String, Reason),
    Ask(Ask),
    /// The root is told to stop; only in a batch for the root.
    Stop,
}

/// A request to a supervisor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    Start(Child),
    StartDynamic(String),
    Terminate(String),
    TerminateDynamic(String),
    Delete(String),
    Restart(String),
    Which,
    Count,
}

impl Scenario {
    /// Whether any supervisor has a period that a wait outlasts.
    pub(crate) fn has_waits(&self) -> bool {
        self.steps.contains(&Step::Wait)
    }

    /// The same, with one thing after another: nothing waits for a supervisor when it wakes.
    pub(crate) fn unrolled(mut self) -> Self {
        let unrolled = |step| match step {
            Step::Batch(path, subs) => subs
                .into_iter()
                .map(|sub| match sub {
                    Sub::Exit(child, reason) => Step::Exit(child, reason),
                    Sub::Ask(ask) => Step::Ask(path.clone(), ask),
                    Sub::Stop => Step::Stop,
                })
                .collect(),
            step => vec![step],
        };
        self.steps = self.steps.into_iter().flat_map(unrolled).collect();
        self
    }

    /// The term, with this id.
    pub(crate) fn term(&self, id: usize) -> String {
        let mut text = String::new();
        let _written = write!(text, "{{{id},{},{}}}.", self.root, list(&self.steps));
        text
    }
}

fn list<T: Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    format!("[{}]", items.join(","))
}

impl Display for Sup {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let strategy = match self.strategy {
            Strategy::OneForOne => "one_for_one",
            Strategy::OneForAll => "one_for_all",
            Strategy::RestForOne => "rest_for_one",
            Strategy::Dynamic => "simple_one_for_one",
        };
        let auto = match self.auto_shutdown {
            AutoShutdown::Never => "never",
            AutoShutdown::AnySignificant => "any_significant",
            AutoShutdown::AllSignificant => "all_significant",
        };
        write!(f, "{{sup,{strategy},{},{},{auto},{}}}", self.intensity, self.period, list(&self.children))
    }
}

impl Display for Child {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let restart = match self.restart {
            Restart::Permanent => "permanent",
            Restart::Transient => "transient",
            Restart::Temporary => "temporary",
        };
        let stop = match self.shutdown {
            Stop::Brutal => "brutal_kill".to_owned(),
            Stop::Infinity => "infinity".to_owned(),
            Stop::Millis(millis) => millis.to_string(),
        };
        write!(f, "{{\"{}\",{restart},{},{stop},{}}}", self.name, self.significant, self.kind)
    }
}

impl Display for Kind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker(plan, on_stop) => write!(f, "{{worker,{plan},{on_stop}}}"),
            Self::Supervisor(plan, sup) => write!(f, "{{supervisor,{plan},{sup}}}"),
        }
    }
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{{},{}}}", list(&self.first), self.rest)
    }
}

impl Display for Act {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Fail => f.write_str("fail"),
            Self::Ignore => f.write_str("ignore"),
            Self::Die(reason) => write!(f, "{{die,{reason}}}"),
            Self::Kill(sibling) => write!(f, "{{kill,\"{sibling}\"}}"),
        }
    }
}

impl Display for OnStop {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Obey => f.write_str("obey"),
            Self::Deaf => f.write_str("deaf"),
            Self::Die(reason) => write!(f, "{{die,{reason}}}"),
            Self::Kill(sibling) => write!(f, "{{kill,\"{sibling}\"}}"),
        }
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::Shutdown => "shutdown",
            Self::ShutdownFor => "{shutdown,x}",
            Self::Crash => "boom",
            Self::Killed => "kill",
        })
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(path, reason) => write!(f, "{{exit,\"{path}\",{reason}}}"),
            Self::Stranger(path, reason) => write!(f, "{{stranger,\"{path}\",{reason}}}"),
            Self::Ask(path, ask) => write!(f, "{{ask,\"{path}\",{ask}}}"),
            Self::Batch(path, subs) => write!(f, "{{batch,\"{path}\",{}}}", list(subs)),
            Self::Wait => f.write_str("wait"),
            Self::Stop => f.write_str("stop"),
        }
    }
}

impl Display for Sub {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(path, reason) => write!(f, "{{exit,\"{path}\",{reason}}}"),
            Self::Ask(ask) => write!(f, "{{ask,{ask}}}"),
            Self::Stop => f.write_str("stop"),
        }
    }
}

impl Display for Ask {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(child) => write!(f, "{{start,{child}}}"),
            Self::StartDynamic(name) => write!(f, "{{start_dynamic,\"{name}\"}}"),
            Self::Terminate(name) => write!(f, "{{terminate,\"{name}\"}}"),
            Self::TerminateDynamic(name) => write!(f, "{{terminate_dynamic,\"{name}\"}}"),
            Self::Delete(name) => write!(f, "{{delete,\"{name}\"}}"),
            Self::Restart(name) => write!(f, "{{restart,\"{name}\"}}"),
            Self::Which => f.write_str("which"),
            Self::Count => f.write_str("count"),
        }
    }
}
