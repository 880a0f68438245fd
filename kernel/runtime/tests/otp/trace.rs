//! What happened in a scenario, and how two accounts of it are compared.

use std::collections::{BTreeMap, BTreeSet};

/// What happened, step by step; the first is the start of the tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) steps: Vec<StepTrace>,
    /// It took so long that a short period may have passed.
    pub(crate) is_slow: bool,
    /// The supervisors that stop their children in no order. Only our own account knows.
    pub(crate) dynamic: BTreeSet<String>,
}

/// What one step led to.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepTrace {
    /// `+ID ACT`: a child is started; `-ID`: a child is asked to stop.
    pub(crate) order: Vec<String>,
    /// `xID REASON`: a process exited. Sorted: when the news arrives is nobody's promise.
    pub(crate) exits: Vec<String>,
    pub(crate) answers: Vec<String>,
    /// What every living supervisor says of its children. Sorted.
    pub(crate) shape: Vec<String>,
    /// Whether one thing led to the next all along. When a supervisor is killed, its orphans end beside all else.
    pub(crate) is_serial: bool,
    /// Whether a supervisor was stopped in the middle of work of its own. From here on Erlang itself may do either.
    pub(crate) is_racy: bool,
}

impl StepTrace {
    /// A step in which nothing has happened yet.
    pub(crate) fn serial() -> Self {
        Self { is_serial: true, ..Self::default() }
    }

    pub(crate) fn sort(&mut self) {
        self.exits.sort();
        self.shape.sort();
    }

    /// The survivors. OTP 25 does not count a dynamic child any more that was terminated while it waited for a restart, but
    /// goes on to take it off the active ones, so that those are counted here instead.
    fn shape_mended(&self, dynamic: &BTreeSet<String>) -> Vec<String> {
        let listed = |id: &str| {
            let line = self.shape.iter().find_map(|line| line.strip_prefix('W')?.strip_prefix(id)?.strip_prefix(' '));
            line.map_or(0, |line| line.split(' ').filter(|child| *child != "restarting").count())
        };
        let mend = |line: &String| {
            let words: Vec<&str> = line.split(' ').collect();
            match (words[0].strip_prefix('C'), &words[1..]) {
                (Some(id), [specs, _, rest @ ..]) if dynamic.contains(id) => {
                    format!("{} {specs} {} {}", words[0], listed(id), rest.join(" "))
                }
                _ => line.clone(),
            }
        };
        self.shape.iter().map(mend).collect()
    }

    /// What was done, in order; what a dynamic supervisor tells all of its children in one go is sorted.
    fn ordered(&self, dynamic: &BTreeSet<String>) -> Vec<&str> {
        let mut order: Vec<&str> = self.order.iter().map(String::as_str).collect();
        let in_one_go = |a: &&str, b: &&str| {
            a.starts_with('-') && b.starts_with('-') && parent(a) == parent(b) && dynamic.contains(parent(a))
        };
        order.chunk_by_mut(in_one_go).for_each(<[&str]>::sort_unstable);
        order
    }

    /// The order of events within each incarnation of each supervisor, which OTP fixes always.
    fn by_supervisor(&self, dynamic: &BTreeSet<String>) -> BTreeMap<&str, Vec<&str>> {
        let mut by: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for event in &self.order {
            by.entry(parent(event)).or_default().push(event);
        }
        for (supervisor, events) in &mut by {
            if dynamic.contains(*supervisor) {
                let both_stop = |a: &&str, b: &&str| a.starts_with('-') && b.starts_with('-');
                events.chunk_by_mut(both_stop).for_each(<[&str]>::sort_unstable);
            }
        }
        by
    }
}

/// The supervisor of whom an event speaks.
fn parent(event: &str) -> &str {
    let id = event.trim_start_matches(['+', '-']).split(' ').next().unwrap_or_default();
    id.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl Trace {
    /// Reads what the judge wrote about one scenario.
    pub(crate) fn parse(lines: &[&str]) -> Self {
        let mut trace = Self::default();
        for line in lines {
            if *line == "=" {
                trace.steps.push(StepTrace::default());
                continue;
            }
            if *line == "!slow" {
                trace.is_slow = true;
            }
            let Some(step) = trace.steps.last_mut() else { continue };
            match line.chars().next() {
                Some('+' | '-') => step.order.push((*line).to_owned()),
                Some('x') => step.exits.push((*line).to_owned()),
                Some('?') => step.answers.push(line[1..].to_owned()),
                Some('W' | 'C') => step.shape.push((*line).to_owned()),
                _ => {}
            }
        }
        trace.steps.iter_mut().for_each(StepTrace::sort);
        trace
    }

    /// The first difference between our account and the judge's, in words.
    pub(crate) fn divergence(&self, judge: &Self) -> Option<String> {
        for (at, (our, their)) in self.steps.iter().zip(&judge.steps).enumerate() {
            if our.is_racy {
                return None;
            }
            let what = if our.answers != their.answers {
                "the answers"
            } else if our.is_serial && our.ordered(&self.dynamic) != their.ordered(&self.dynamic) {
                "the order"
            } else if our.by_supervisor(&self.dynamic) != their.by_supervisor(&self.dynamic) {
                "the order below one supervisor"
            } else if our.exits != their.exits {
                "the exits"
            } else if our.shape != their.shape_mended(&self.dynamic) {
                "the survivors"
            } else {
                continue;
            };
            let step = if at == 0 { "the start".to_owned() } else { format!("step {at}") };
            return Some(format!("{what} in {step}\n  ours:   {our:?}\n  judge:  {their:?}"));
        }
        (self.steps.len() != judge.steps.len()).then(|| "the number of steps".to_owned())
    }
}
