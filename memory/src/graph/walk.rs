//! Questions to the graph: why, effects, path, common cause. Each has bounds, and says whether they cut it short.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use petgraph::{Direction, stable_graph::NodeIndex};

use super::{EdgeKinds, Graph, GraphError, Link};
use crate::entry::{Entry, EntryRef};

/// How many of an entry's edges [`Graph::near`] looks at: the latest.
const LOOKS_AT: usize = 64;

/// How far a walk goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The most edges from the start.
    pub depth: u32,
    /// The most entries that are looked at, the start not counted.
    pub entries: u32,
    /// The edges that are followed.
    pub edges: EdgeKinds,
}

impl Default for Bounds {
    /// 64 edges deep, 10,000 entries, and the edges by which one entry leads to another.
    fn default() -> Self {
        Self { depth: 64, entries: 10_000, edges: EdgeKinds::CAUSAL }
    }
}

/// Whether a walk saw everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WalkEnd {
    /// There is nothing more.
    Complete,
    /// The bounds ended it: there may be more.
    Cut,
}

/// An entry that a walk came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The entry.
    pub entry: EntryRef,
    /// The least number of edges from the start.
    pub depth: u32,
    /// The edge by which it was found first.
    pub via: Link,
}

/// What a walk found, nearest first; of the same distance in the order of the graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Walk {
    /// The entries, without the start.
    pub steps: Vec<Step>,
    /// Whether that is all.
    pub end: WalkEnd,
}

/// Whether one entry leads to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Route {
    /// By these edges, one after the other; no other way is shorter.
    Found(Vec<Link>),
    /// It does not.
    None,
    /// The bounds ended the search.
    Cut,
}

/// What two entries have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommonCause {
    /// The latest entry that led to both; neither of them counts.
    pub entry: Option<EntryRef>,
    /// Whether all that led to them was seen.
    pub end: WalkEnd,
}

#[derive(Clone, Copy)]
enum Way {
    Back,
    Forward,
}

impl Way {
    fn links(self, graph: &Graph, at: &EntryRef) -> Vec<Link> {
        match self {
            Self::Back => graph.into_entry(at),
            Self::Forward => graph.out_of_entry(at),
        }
    }

    const fn end(self, link: &Link) -> EntryRef {
        match self {
            Self::Back => link.from,
            Self::Forward => link.to,
        }
    }
}

impl Graph {
    /// All that led to an entry.
    ///
    /// # Errors
    /// [`GraphError::Unknown`] if there is no such entry.
    pub fn why(&self, entry: &EntryRef, bounds: &Bounds) -> Result<Walk, GraphError> {
        self.walk(entry, bounds, Way::Back)
    }

    /// All that an entry led to.
    ///
    /// # Errors
    /// [`GraphError::Unknown`] if there is no such entry.
    pub fn effects(&self, entry: &EntryRef, bounds: &Bounds) -> Result<Walk, GraphError> {
        self.walk(entry, bounds, Way::Forward)
    }

    /// A shortest way from one entry to a later one. From an entry to itself it has no edges.
    ///
    /// # Errors
    /// [`GraphError::Unknown`] if one of them is not in the graph.
    pub fn path(&self, from: &EntryRef, to: &EntryRef, bounds: &Bounds) -> Result<Route, GraphError> {
        let start = self.entry(from).ok_or(GraphError::Unknown(*from))?.moment;
        self.index(to)?;
        if from == to {
            return Ok(Route::Found(Vec::new()));
        }
        // Backwards from the end: what is earlier than the start cannot lie between.
        let walk = self
            .walk_while(to, bounds, Way::Back, |entry| self.entry(entry).is_some_and(|entry| entry.moment > start))?;
        let via: BTreeMap<EntryRef, &Link> = walk.steps.iter().map(|step| (step.entry, &step.via)).collect();
        let mut route = Vec::new();
        let mut at = *from;
        while let Some(link) = via.get(&at) {
            route.push((*link).clone());
            at = link.to;
        }
        Ok(match (route.is_empty(), walk.end) {
            (false, _) => Route::Found(route),
            (true, WalkEnd::Complete) => Route::None,
            (true, WalkEnd::Cut) => Route::Cut,
        })
    }

    /// The latest entry that led to both.
    ///
    /// # Errors
    /// [`GraphError::Unknown`] if one of them is not in the graph.
    pub fn common_cause(&self, a: &EntryRef, b: &EntryRef, bounds: &Bounds) -> Result<CommonCause, GraphError> {
        let (of_a, of_b) = (self.why(a, bounds)?, self.why(b, bounds)?);
        let causes: BTreeSet<EntryRef> = of_a.steps.iter().map(|step| step.entry).collect();
        let common = of_b.steps.iter().map(|step| step.entry).filter(|entry| causes.contains(entry));
        let latest = common.max_by_key(|id| self.entry(id).map(|entry| entry.moment));
        let complete = of_a.end == WalkEnd::Complete && of_b.end == WalkEnd::Complete;
        Ok(CommonCause { entry: latest, end: if complete { WalkEnd::Complete } else { WalkEnd::Cut } })
    }

    /// The entries near one, by at most `depth` edges back, or as many forward: each with the greatest product of what the edges to it
    /// leave, which is `decay` times the weight of the kind for each edge. The nearest first, `most` of them at most. It goes through
    /// entries that `allows` holds for and no others, and looks at the latest edges of each.
    #[must_use]
    pub fn near(
        &self,
        start: &EntryRef,
        depth: u32,
        most: usize,
        decay: f64,
        allows: impl Fn(&Entry) -> bool,
    ) -> Vec<(EntryRef, f64)> {
        let Ok(start) = self.index(start) else { return Vec::new() };
        let mut best: BTreeMap<NodeIndex, f64> = BTreeMap::new();
        for direction in [Direction::Incoming, Direction::Outgoing] {
            let mut ring = BTreeMap::from([(start, 1.0_f64)]);
            for _ in 0..depth {
                let mut next: BTreeMap<NodeIndex, f64> = BTreeMap::new();
                for (at, weight) in ring {
                    let latest = self.latest(at, direction, LOOKS_AT).filter(|(_, _, entry)| allows(entry));
                    for (kind, other, _) in latest {
                        let before = next.entry(other).or_default();
                        *before = before.max(weight * decay * kind.weight());
                    }
                }
                for (at, weight) in &next {
                    let before = best.entry(*at).or_default();
                    *before = before.max(*weight);
                }
                ring = next;
            }
        }
        let found = best.into_iter().filter_map(|(at, weight)| Some((self.graph.node_weight(at)?, weight)));
        let mut found: Vec<(&Entry, f64)> = found.collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.moment.cmp(&b.0.moment)));
        found.into_iter().take(most).map(|(entry, weight)| (entry.id, weight)).collect()
    }

    fn walk(&self, start: &EntryRef, bounds: &Bounds, way: Way) -> Result<Walk, GraphError> {
        self.walk_while(start, bounds, way, |_| true)
    }

    /// Breadth first, going on only from entries that `goes_on` holds for.
    fn walk_while(
        &self,
        start: &EntryRef,
        bounds: &Bounds,
        way: Way,
        goes_on: impl Fn(&EntryRef) -> bool,
    ) -> Result<Walk, GraphError> {
        self.index(start)?;
        let mut seen = BTreeSet::from([*start]);
        let mut todo = VecDeque::from([(*start, 0_u32)]);
        let mut walk = Walk { steps: Vec::new(), end: WalkEnd::Complete };
        while let Some((at, depth)) = todo.pop_front() {
            for via in way.links(self, &at).into_iter().filter(|link| bounds.edges.contains(link.kind)) {
                let entry = way.end(&via);
                if seen.contains(&entry) {
                    continue;
                }
                if depth >= bounds.depth {
                    walk.end = WalkEnd::Cut;
                    break;
                }
                if !usize::try_from(bounds.entries).is_ok_and(|most| walk.steps.len() < most) {
                    return Ok(Walk { end: WalkEnd::Cut, ..walk });
                }
                seen.insert(entry);
                if goes_on(&entry) {
                    todo.push_back((entry, depth + 1));
                }
                walk.steps.push(Step { entry, depth: depth + 1, via });
            }
        }
        Ok(walk)
    }
}
