//! The spectral view of a window of the graph: λ₂, the Fiedler cut, communities.
//!
//! λ₂ is the second smallest eigenvalue of the normalised Laplacian I − D^−½ W D^−½ (Chung 1997) of the graph without
//! directions, where W is the sum of the weights both ways. It is 0 exactly if the graph falls apart, and at most n/(n − 1):
//! the more of it, the harder the window is to cut in two. It is found by the Davidson iteration on a sparse Cholesky factor
//! (`solve`), one connected part at a time; a graph in several parts is never given to it. A graph that is much like the one before is
//! solved with what that one left ([`Warm`]), without a factor of its own.

mod factor;
mod solve;
mod warm;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use self::solve::Solved;
pub use self::warm::Warm;
use crate::{
    entry::{EntryRef, Moment},
    graph::Graph,
};

/// The most nodes of one view.
pub const MOST_NODES: usize = 1 << 20;
/// The most edges of one view.
pub const MOST_EDGES: usize = 1 << 22;
/// The most numbers of a factor: 1 GiB. A graph that fills in more is refused before it is factored.
pub const MOST_FILL: usize = 1 << 27;
/// The weights of edges: what lies outside would be lost beside others, or be infinite in a sum.
pub const WEIGHTS: RangeInclusive<f64> = 1e-9..=1e9;

/// Why there is no view.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SpectralError {
    /// More than [`MOST_NODES`].
    #[error("{0} nodes, at most {MOST_NODES}")]
    Nodes(usize),
    /// More than [`MOST_EDGES`].
    #[error("more than {MOST_EDGES} edges")]
    Edges,
    /// An edge names a node that there is not.
    #[error("an edge names node {0} of {1}")]
    Unknown(usize, usize),
    /// A weight outside of [`WEIGHTS`].
    #[error("an edge of weight {0}, from 1e-9 to 1e9")]
    Weight(f64),
    /// The factor would have more than [`MOST_FILL`] numbers.
    #[error("the factor would have {0} numbers, at most {MOST_FILL}")]
    Fill(usize),
    /// The factorisation failed: out of memory, or a pivot that is not positive.
    #[error("the factorisation failed: {0}")]
    Factor(String),
    /// The iteration did not come to an end.
    #[error("no convergence: the relative residual is still {0:e}")]
    Convergence(f64),
}

/// A graph without directions: weights by pair of nodes, both ways summed, nothing from a node to itself.
#[derive(Clone, Debug)]
pub struct Weighted {
    /// The neighbours of all nodes, one node after another, each with the weight of the edge.
    neighbours: Vec<(usize, f64)>,
    /// Where those of each node begin, and at last where all end.
    starts: Vec<usize>,
    degrees: Vec<f64>,
}

impl Weighted {
    /// A graph of so many nodes. An edge from a node to itself says nothing of how the graph hangs together and is left out.
    ///
    /// # Errors
    /// [`SpectralError::Nodes`], [`SpectralError::Edges`], [`SpectralError::Unknown`] or [`SpectralError::Weight`].
    pub fn new(nodes: usize, edges: impl IntoIterator<Item = (usize, usize, f64)>) -> Result<Self, SpectralError> {
        if nodes > MOST_NODES {
            return Err(SpectralError::Nodes(nodes));
        }
        let mut pairs: Vec<(usize, usize, f64)> = Vec::new();
        for (a, b, weight) in edges {
            if let Some(unknown) = [a, b].into_iter().find(|node| *node >= nodes) {
                return Err(SpectralError::Unknown(unknown, nodes));
            }
            if !WEIGHTS.contains(&weight) {
                return Err(SpectralError::Weight(weight));
            }
            if pairs.len() >= MOST_EDGES {
                return Err(SpectralError::Edges);
            }
            if a != b {
                pairs.push((a.min(b), a.max(b), weight));
            }
        }
        pairs.sort_by_key(|(a, b, _)| (*a, *b));
        let sums = pairs.chunk_by(|x, y| (x.0, x.1) == (y.0, y.1)).filter_map(|pair| {
            let (a, b, _) = pair.first()?;
            Some((*a, *b, pair.iter().map(|(_, _, weight)| weight).sum::<f64>()))
        });
        let mut both: Vec<(usize, usize, f64)> = sums.flat_map(|(a, b, w)| [(a, b, w), (b, a, w)]).collect();
        both.sort_unstable_by_key(|(from, to, _)| (*from, *to));
        Ok(Self::of_sorted(nodes, &both))
    }

    /// From the edges of each node, by node.
    fn of_sorted(nodes: usize, edges: &[(usize, usize, f64)]) -> Self {
        let starts: Vec<usize> = (0..=nodes).map(|node| edges.partition_point(|(from, _, _)| *from < node)).collect();
        let neighbours = edges.iter().map(|(_, to, weight)| (*to, *weight)).collect();
        let mut graph = Self { neighbours, starts, degrees: Vec::new() };
        let degree = |node| graph.of(node).iter().map(|(_, weight)| weight).sum();
        graph.degrees = (0..nodes).map(degree).collect();
        graph
    }

    /// How many nodes it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.degrees.len()
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.degrees.is_empty()
    }

    /// Its connected parts: the nodes of each ascending, the parts by their first node.
    #[must_use]
    pub fn parts(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.len()];
        let mut parts = Vec::new();
        for start in 0..self.len() {
            let mut part = Vec::new();
            let mut todo = vec![start];
            while let Some(node) = todo.pop() {
                if seen.get_mut(node).is_some_and(|seen| !std::mem::replace(seen, true)) {
                    part.push(node);
                    todo.extend(self.of(node).iter().map(|(other, _)| *other));
                }
            }
            if !part.is_empty() {
                part.sort_unstable();
                parts.push(part);
            }
        }
        parts
    }

    fn of(&self, node: usize) -> &[(usize, f64)] {
        match self.starts.get(node..).unwrap_or_default() {
            [start, end, ..] => self.neighbours.get(*start..*end).unwrap_or_default(),
            _ => &[],
        }
    }

    fn degree(&self, node: usize) -> f64 {
        self.degrees.get(node).copied().unwrap_or_default()
    }

    /// The graph between these nodes, which are numbered anew in their order.
    fn between(&self, nodes: &[usize]) -> Self {
        let numbers: BTreeMap<usize, usize> = nodes.iter().enumerate().map(|(new, old)| (*old, new)).collect();
        let edges = nodes.iter().enumerate().flat_map(|(new, old)| self.of(*old).iter().map(move |edge| (new, edge)));
        let inside = edges.filter_map(|(new, (other, weight))| Some((new, *numbers.get(other)?, *weight)));
        Self::of_sorted(nodes.len(), &inside.collect::<Vec<_>>())
    }
}

/// What a graph shows.
#[derive(Clone, Debug)]
pub enum Spectrum {
    /// Fewer than two nodes: there is no second eigenvalue.
    Trivial,
    /// It falls apart: λ₂ is 0, and these are the parts.
    Parted(Vec<Vec<usize>>),
    /// It hangs together.
    Connected(Fiedler),
}

/// The second eigenvector, and what it says.
#[derive(Clone, Debug)]
pub struct Fiedler {
    /// λ₂, above 0.
    pub lambda2: f64,
    /// λ₃, no less than λ₂. Near λ₂ the cut could as well be another. None with two nodes.
    pub lambda3: Option<f64>,
    /// The value of each node: D^−½ times the eigenvector, so that nodes that belong together have like values. The first
    /// that is not 0 is positive; the greatest is ±1.
    pub values: Vec<f64>,
}

impl Fiedler {
    /// The nodes on the side of the positive values, and the others.
    #[must_use]
    pub fn cut(&self) -> (Vec<usize>, Vec<usize>) {
        let (mut positive, mut other) = (Vec::new(), Vec::new());
        for (node, value) in self.values.iter().enumerate() {
            if *value > 0.0 { positive.push(node) } else { other.push(node) }
        }
        (positive, other)
    }
}

impl Spectrum {
    /// The spectrum of a graph.
    ///
    /// # Errors
    /// [`SpectralError::Fill`], [`SpectralError::Factor`] or [`SpectralError::Convergence`].
    pub fn of(graph: &Weighted) -> Result<Self, SpectralError> {
        Self::warm(graph, &mut Warm::new(), |_| None)
    }

    /// The spectrum of a graph that is much like the last one that `warm` has seen: `before` says which node of that each node is, if it
    /// is one. It is the same spectrum, found in less time. Where too much has changed, or it is led astray, the graph is solved as any
    /// other.
    ///
    /// # Errors
    /// As for [`of`](Self::of).
    pub fn warm(
        graph: &Weighted,
        warm: &mut Warm,
        before: impl Fn(usize) -> Option<usize>,
    ) -> Result<Self, SpectralError> {
        let parts = graph.parts();
        if graph.len() < 2 || parts.len() > 1 {
            *warm = Warm::new();
            return Ok(if graph.len() < 2 { Self::Trivial } else { Self::Parted(parts) });
        }
        let (mut nearly, starts) = warm.begin(graph, before)?;
        let solved = solve::solve(graph, &mut nearly, starts);
        let solved = match solved {
            Err(SpectralError::Convergence(_)) if !nearly.is_exact() => {
                (nearly, _) = warm.begin(graph, |_| None)?;
                solve::solve(graph, &mut nearly, Vec::new())
            }
            solved => solved,
        };
        let Solved { lambda2, lambda3, values, vectors } = solved?;
        warm.keep(nearly, vectors);
        Ok(Self::Connected(Fiedler { lambda2, lambda3, values }))
    }

    /// λ₂, if there is one.
    #[must_use]
    pub const fn lambda2(&self) -> Option<f64> {
        match self {
            Self::Trivial => None,
            Self::Parted(_) => Some(0.0),
            Self::Connected(fiedler) => Some(fiedler.lambda2),
        }
    }
}

/// The communities of a graph: its parts, each cut along its Fiedler vector as long as that raises the modularity of the
/// whole (Newman 2006), until there are `most`. The nodes of each are ascending, the communities by their first node.
///
/// # Errors
/// As for [`Spectrum::of`].
pub fn communities(graph: &Weighted, most: usize) -> Result<Vec<Vec<usize>>, SpectralError> {
    let mut todo = graph.parts();
    let mut done: Vec<Vec<usize>> = Vec::new();
    let total: f64 = graph.degrees.iter().sum::<f64>() / 2.0;
    while let Some(nodes) = todo.pop() {
        let has_room = done.len() + todo.len() + 1 < most;
        match if has_room { halves(graph, &nodes, total)? } else { None } {
            Some(halves) => todo.extend(halves),
            None => done.push(nodes),
        }
    }
    done.sort_unstable();
    Ok(done)
}

/// The two sides of the cut through some nodes, or its parts where it falls apart, if modularity is higher for it.
fn halves(graph: &Weighted, nodes: &[usize], total: f64) -> Result<Option<Vec<Vec<usize>>>, SpectralError> {
    let inside = graph.between(nodes);
    let outside = |places: &[usize]| places.iter().filter_map(|at| nodes.get(*at).copied()).collect::<Vec<usize>>();
    match Spectrum::of(&inside)? {
        Spectrum::Trivial => Ok(None),
        Spectrum::Parted(parts) => Ok(Some(parts.iter().map(|part| outside(part)).collect())),
        Spectrum::Connected(fiedler) => {
            let (a, b) = fiedler.cut();
            let sides: BTreeSet<usize> = b.iter().copied().collect();
            let crossing = a.iter().flat_map(|node| inside.of(*node)).filter(|(other, _)| sides.contains(other));
            let between: f64 = crossing.map(|(_, weight)| weight).sum();
            let (a, b) = (outside(&a), outside(&b));
            let volume = |nodes: &[usize]| nodes.iter().map(|node| graph.degree(*node)).sum::<f64>();
            let gain = volume(&a) * volume(&b) / (2.0 * total * total) - between / total;
            Ok((gain > 0.0).then(|| vec![a, b]))
        }
    }
}

/// A window of the causal graph, without directions, each edge with the weight of its kind.
#[derive(Clone, Debug)]
pub struct Window {
    /// The entries, in order: node `n` of `graph` is entry `n` of these.
    pub entries: Vec<EntryRef>,
    /// How they hang together.
    pub graph: Weighted,
}

impl Window {
    /// The entries between two moments, both included, and the edges between them.
    ///
    /// # Errors
    /// [`SpectralError::Nodes`] or [`SpectralError::Edges`].
    pub fn of(graph: &Graph, moments: RangeInclusive<Moment>) -> Result<Self, SpectralError> {
        let entries: Vec<EntryRef> = graph.window(moments).take(MOST_NODES + 1).map(|entry| entry.id).collect();
        let numbers: BTreeMap<EntryRef, usize> = entries.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let edges = entries.iter().enumerate().flat_map(|(to, id)| {
            let numbers = &numbers;
            let links = graph.into_entry(id).into_iter();
            links.filter_map(move |link| Some((*numbers.get(&link.from)?, to, link.kind.weight())))
        });
        let graph = Weighted::new(entries.len(), edges)?;
        Ok(Self { entries, graph })
    }
}
