//! Random scenarios, each from its seed.

use ephor_runtime::supervisor::{AutoShutdown, Restart, Strategy};

use crate::scenario::{Act, Ask, Child, Kind, OnStop, Plan, Reason, Scenario, Step, Stop, Sub, Sup};

/// A period that no scenario outlasts, in seconds.
const LONG: u64 = 1000;
/// A period that a wait outlasts, in seconds.
const SHORT: u64 = 2;
/// How deep a tree is at most.
const DEPTH: usize = 3;

/// What can be named in a step.
#[derive(Default)]
struct Known {
    /// Supervisors: path, whether it is dynamic, the names of its children.
    sups: Vec<(String, bool, Vec<String>)>,
    /// Workers, by path.
    workers: Vec<String>,
}

struct Generator {
    dice: Dice,
    known: Known,
    fresh: usize,
    /// Whether its periods are short.
    is_short: bool,
}

/// The scenario of a seed.
pub(crate) fn scenario(seed: u64) -> Scenario {
    let mut generator = Generator { dice: Dice(seed), known: Known::default(), fresh: 0, is_short: false };
    if generator.dice.percent(4) {
        return generator.last_significant(seed);
    }
    generator.is_short = generator.dice.percent(30);
    let root = generator.sup("root", 1);
    let mut steps = generator.arrivals();
    for _ in 0..2 + generator.dice.below(6) {
        let step = generator.step();
        steps.push(step);
        if generator.is_short
            && generator.dice.percent(12)
            && steps.iter().filter(|step| **step == Step::Wait).count() < 2
        {
            steps.push(Step::Wait);
        }
    }
    steps.push(Step::Stop);
    Scenario { seed, root, steps }
}

impl Generator {
    /// Two significant children: one waits for a restart that failed when the other ends. Chance alone hardly comes here.
    fn last_significant(&mut self, seed: u64) -> Scenario {
        let strategy = *self.dice.of(&[Strategy::OneForOne, Strategy::RestForOne]);
        let plan =
            Plan { first: vec![Act::Ok, Act::Fail], rest: if self.dice.percent(50) { Act::Ok } else { Act::Fail } };
        let child = |name: &str, restart, plan| Child {
            name: name.to_owned(),
            restart,
            significant: true,
            shutdown: Stop::Infinity,
            kind: Kind::Worker(plan, OnStop::Obey),
        };
        let children = vec![child("b", Restart::Temporary, Plan::OK), child("a", Restart::Transient, plan)];
        let intensity = 1 + self.dice.below(4);
        let auto_shutdown = AutoShutdown::AllSignificant;
        let root = Sup { strategy, intensity, period: LONG, auto_shutdown, children };
        let exits =
            vec![Sub::Exit("root/a".to_owned(), Reason::Crash), Sub::Exit("root/b".to_owned(), self.any_reason())];
        let again = Step::Exit("root/a".to_owned(), self.any_reason());
        Scenario { seed, root, steps: vec![Step::Batch("root".to_owned(), exits), again, Step::Stop] }
    }

    fn sup(&mut self, path: &str, depth: usize) -> Sup {
        use AutoShutdown::{AllSignificant, AnySignificant, Never};
        let strategy = *self.dice.of(&[
            Strategy::OneForOne,
            Strategy::OneForAll,
            Strategy::RestForOne,
            Strategy::OneForOne,
            Strategy::OneForAll,
            Strategy::RestForOne,
            Strategy::Dynamic,
        ]);
        let is_dynamic = strategy == Strategy::Dynamic;
        let auto_shutdown = *self.dice.of(&[Never, Never, Never, AnySignificant, AllSignificant]);
        let (intensity, period) = (self.dice.below(5), if self.is_short { SHORT } else { LONG });
        let number = if is_dynamic { 1 } else { self.dice.below(5) };
        let names: Vec<String> = ["a", "b", "c", "d"].iter().take(number).map(ToString::to_string).collect();
        self.known.sups.push((path.to_owned(), is_dynamic, if is_dynamic { Vec::new() } else { names.clone() }));
        let mut children = Vec::new();
        for name in &names {
            let below = if is_dynamic { None } else { Some(format!("{path}/{name}")) };
            let child = self.child(name, &names, below.as_deref(), depth, auto_shutdown != Never);
            children.push(child);
        }
        Sup { strategy, intensity, period, auto_shutdown, children }
    }

    /// A child; `path` is `None` where many will be made of it.
    fn child(
        &mut self,
        name: &str,
        siblings: &[String],
        path: Option<&str>,
        depth: usize,
        significance: bool,
    ) -> Child {
        use Restart::{Permanent, Temporary, Transient};
        let restart = if significance && self.dice.percent(60) {
            *self.dice.of(&[Transient, Transient, Temporary])
        } else {
            *self.dice.of(&[Permanent, Permanent, Permanent, Transient, Transient, Temporary, Temporary])
        };
        let significant = significance && restart != Permanent && self.dice.percent(75);
        let is_sup = depth < DEPTH && path.is_some() && self.dice.percent(30);
        let plan = self.plan(name, siblings, path.is_some(), is_sup);
        if is_sup {
            let sup = self.sup(path.unwrap_or_default(), depth + 1);
            let shutdown = if self.dice.percent(85) { Stop::Infinity } else { Stop::Brutal };
            return Child {
                name: name.to_owned(),
                restart,
                significant,
                shutdown,
                kind: Kind::Supervisor(plan, Box::new(sup)),
            };
        }
        if let Some(path) = path {
            self.known.workers.push(path.to_owned());
        }
        let on_stop = self.on_stop(name, siblings, path.is_some());
        let shutdown = match (&on_stop, self.dice.below(10)) {
            (_, 0 | 1) => Stop::Brutal,
            (OnStop::Deaf, _) => Stop::Millis(20),
            (_, 2..=4) => Stop::Infinity,
            _ => Stop::Millis(20_000),
        };
        Child { name: name.to_owned(), restart, significant, shutdown, kind: Kind::Worker(plan, on_stop) }
    }

    fn on_stop(&mut self, name: &str, siblings: &[String], is_static: bool) -> OnStop {
        match self.dice.below(10) {
            0 => OnStop::Deaf,
            1 => OnStop::Die(self.reason(false)),
            2 if is_static => self.sibling(name, siblings).map_or(OnStop::Obey, OnStop::Kill),
            _ => OnStop::Obey,
        }
    }

    fn plan(&mut self, name: &str, siblings: &[String], is_static: bool, is_sup: bool) -> Plan {
        if self.dice.percent(60) {
            return Plan::OK;
        }
        let mut first = Vec::new();
        if self.dice.percent(80) {
            // Else most trees would never stand.
            first.push(Act::Ok);
        }
        for _ in 0..self.dice.below(4) {
            let act = self.act(name, siblings, is_static, is_sup);
            // OTP's dynamic supervisor crashes when it stops after a restarted child chose to be ignored.
            let act = if act == Act::Ignore && !is_static && !first.is_empty() { Act::Fail } else { act };
            first.push(act);
        }
        let rest = match self.dice.below(20) {
            0 | 1 => Act::Fail,
            2 if is_static => Act::Ignore,
            3 if !is_sup => Act::Die(self.reason(false)),
            _ => Act::Ok,
        };
        Plan { first, rest }
    }

    fn act(&mut self, name: &str, siblings: &[String], is_static: bool, is_sup: bool) -> Act {
        match self.dice.below(8) {
            0 => Act::Ok,
            1..=3 => Act::Fail,
            4 => Act::Ignore,
            5 | 6 if !is_sup => Act::Die(self.reason(true)),
            7 if is_static => self.sibling(name, siblings).map_or(Act::Fail, Act::Kill),
            _ => Act::Fail,
        }
    }

    fn sibling(&mut self, name: &str, siblings: &[String]) -> Option<String> {
        let others: Vec<&String> = siblings.iter().filter(|other| *other != name).collect();
        if others.is_empty() { None } else { Some((*self.dice.of(&others)).clone()) }
    }

    /// A reason a worker can give for itself.
    fn reason(&mut self, is_mild: bool) -> Reason {
        match self.dice.below(6) {
            0 => Reason::Normal,
            1 => Reason::Shutdown,
            2 => Reason::ShutdownFor,
            3 if is_mild => Reason::Normal,
            _ => Reason::Crash,
        }
    }

    /// Dynamic supervisors get children first.
    fn arrivals(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for at in 0..self.known.sups.len() {
            let (path, is_dynamic, _) = self.known.sups[at].clone();
            if !is_dynamic {
                continue;
            }
            let asks: Vec<Ask> = (0..1 + self.dice.below(3)).map(|_| Ask::StartDynamic(self.arrival(at))).collect();
            if self.dice.percent(30) {
                steps.push(Step::Batch(path, asks.into_iter().map(Sub::Ask).collect()));
            } else {
                steps.extend(asks.into_iter().map(|ask| Step::Ask(path.clone(), ask)));
            }
        }
        steps
    }

    fn arrival(&mut self, at: usize) -> String {
        self.fresh += 1;
        let name = format!("n{}", self.fresh);
        let (path, _, names) = &mut self.known.sups[at];
        names.push(name.clone());
        self.known.workers.push(format!("{path}/{name}"));
        name
    }

    fn step(&mut self) -> Step {
        let at = self.dice.below(self.known.sups.len());
        let path = self.known.sups[at].0.clone();
        match self.dice.below(20) {
            0..=8 if !self.known.workers.is_empty() => {
                let worker = self.dice.of(&self.known.workers).clone();
                Step::Exit(worker, self.any_reason())
            }
            9 if path != "root" || self.dice.percent(20) => Step::Exit(path, Reason::Killed),
            10 => Step::Stranger(path, self.reason(true)),
            11..=15 => Step::Batch(path.clone(), self.batch(at, &path)),
            _ => Step::Ask(path, self.ask(at, true, None)),
        }
    }

    fn any_reason(&mut self) -> Reason {
        if self.dice.percent(35) { Reason::Killed } else { self.reason(false) }
    }

    fn batch(&mut self, at: usize, path: &str) -> Vec<Sub> {
        let names = self.known.sups[at].2.clone();
        // Things that concern the same child are what a supervisor can get wrong.
        let favourite = if names.is_empty() { None } else { Some(self.dice.of(&names).clone()) };
        let mut subs = Vec::new();
        for _ in 0..2 + self.dice.below(3) {
            let name = if self.dice.percent(60) { favourite.clone() } else { None };
            let name = name.or_else(|| if names.is_empty() { None } else { Some(self.dice.of(&names).clone()) });
            let sub = match name {
                Some(name) if self.dice.percent(60) => self.exit_in_batch(at, path, &name),
                name => Sub::Ask(self.ask(at, false, name)),
            };
            subs.push(sub);
        }
        if path == "root" && self.dice.percent(10) {
            subs.push(Sub::Stop);
        }
        subs
    }

    fn exit_in_batch(&mut self, at: usize, path: &str, name: &str) -> Sub {
        let child = format!("{path}/{name}");
        if self.known.workers.contains(&child) {
            let reason = self.any_reason();
            Sub::Exit(child, reason)
        } else if self.dice.percent(20) {
            Sub::Exit(child, Reason::Killed)
        } else {
            Sub::Ask(self.ask(at, false, Some(name.to_owned())))
        }
    }

    fn ask(&mut self, at: usize, may_count: bool, about: Option<String>) -> Ask {
        let (path, is_dynamic, names) = self.known.sups[at].clone();
        let name = match about {
            Some(name) => name,
            None if names.is_empty() || self.dice.percent(5) => "nobody".to_owned(),
            None => self.dice.of(&names).clone(),
        };
        match self.dice.below(10) {
            0 => Ask::Which,
            // What a dynamic supervisor counts is seen after each step anyway.
            1 if may_count && !is_dynamic => Ask::Count,
            2 | 3 if is_dynamic => Ask::StartDynamic(self.arrival(at)),
            4..=7 if is_dynamic => Ask::TerminateDynamic(name),
            4 => Ask::Terminate(name),
            2 | 3 => Ask::Terminate(name),
            5 | 6 => Ask::Restart(name),
            7 => Ask::Delete(name),
            8 if is_dynamic => Ask::Terminate(name),
            _ if is_dynamic => {
                *self.dice.of(&[Box::new(Ask::Restart(name.clone())), Box::new(Ask::Delete(name))]).clone()
            }
            _ => Ask::Start(self.newcomer(at, &path)),
        }
    }

    /// A child that is added later: under a new name, or one that may be taken.
    fn newcomer(&mut self, at: usize, path: &str) -> Child {
        let names = self.known.sups[at].2.clone();
        let is_new = names.is_empty() || self.dice.percent(60);
        let name = if is_new {
            self.fresh += 1;
            format!("n{}", self.fresh)
        } else {
            self.dice.of(&names).clone()
        };
        if is_new {
            self.known.sups[at].2.push(name.clone());
        }
        let below = format!("{path}/{name}");
        // Deep enough for a worker; a name that was a supervisor's stays one in the list of what can be killed.
        let depth = if is_new && path.matches('/').count() + 2 < DEPTH { DEPTH - 1 } else { DEPTH };
        let significance = self.dice.percent(30);
        let was = self.known.workers.len();
        let child = self.child(&name, &names, Some(&below), depth, significance);
        if !is_new {
            self.known.workers.truncate(was);
        }
        child
    }
}

/// SplitMix64.
pub(crate) struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % bound).unwrap_or_default()
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
