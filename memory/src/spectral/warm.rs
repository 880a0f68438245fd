//! What one view leaves for the next: a factor and vectors, so that a graph that is much like the one before is not factored anew.
//!
//! D − W is nearly solved by the factor of a graph before: what is new is eliminated exactly, by a factor of its own, which is small; for
//! the rest the old factor stands. What they differ by has as few dimensions as there are old nodes that something was joined to or taken
//! from, so the iteration soon knows them.

use super::{SpectralError, Weighted, factor::Factor};

/// Up to what share of the nodes may be new, or gone, before a graph is factored anew: a twentieth.
const MOST_CHANGED: usize = 20;

/// What a view leaves for the next one.
#[derive(Debug, Default)]
pub struct Warm(Option<Before>);

#[derive(Debug)]
struct Before {
    /// The factor of the last graph that was factored.
    factor: Factor,
    /// The node of that graph which each node of the last one is.
    base: Vec<Option<usize>>,
    /// The second and the third vector of the last one.
    vectors: Vec<Vec<f64>>,
}

impl Warm {
    /// Nothing: the first view is as any other.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// What nearly solves a graph, and vectors to begin with, if there are any.
    pub(super) fn begin(
        &mut self,
        graph: &Weighted,
        before: impl Fn(usize) -> Option<usize>,
    ) -> Result<(Nearly, Vec<Vec<f64>>), SpectralError> {
        let last = self.0.take().filter(|last| last.base.len() > 2);
        let places: Vec<Option<usize>> = (0..graph.len()).map(before).collect();
        let base = |last: &Before| {
            let of = |place: &Option<usize>| place.and_then(|place| last.base.get(place).copied().flatten());
            places.iter().map(of).collect::<Vec<Option<usize>>>()
        };
        let kept = last.map(|last| (base(&last), last));
        let kept = kept.filter(|(base, last)| is_like(base, last.factor.nodes()));
        let Some((base, last)) = kept else {
            let all = (0..graph.len()).map(Some).collect();
            return Ok((Nearly { factor: Factor::grounded(graph)?, base: all, new: None, is_exact: true }, Vec::new()));
        };
        let is_new = |node: usize| base.get(node).copied().flatten().is_none();
        let new = (0..graph.len()).any(is_new).then(|| Factor::of(graph, is_new)).transpose()?;
        let mut nearly = Nearly { factor: last.factor, base, new, is_exact: false };
        let value = |vector: &Vec<f64>, place: &Option<usize>| place.and_then(|at| vector.get(at).copied());
        let starts = last.vectors.iter().map(|vector| {
            let known = places.iter().map(|place| value(vector, place).unwrap_or_default()).collect();
            nearly.extended(graph, known)
        });
        let starts = starts.collect();
        Ok((nearly, starts))
    }

    /// Keeps what a graph was solved with.
    pub(super) fn keep(&mut self, nearly: Nearly, vectors: Vec<Vec<f64>>) {
        self.0 = Some(Before { factor: nearly.factor, base: nearly.base, vectors });
    }
}

/// Whether a graph has few new nodes, and each of the others once, and few are gone.
fn is_like(base: &[Option<usize>], nodes: usize) -> bool {
    let mut known: Vec<usize> = base.iter().copied().flatten().filter(|node| *node < nodes).collect();
    let given = known.len();
    known.sort_unstable();
    known.dedup();
    let changed = (base.len() - known.len()).max(nodes - known.len());
    given == known.len() && changed.saturating_mul(MOST_CHANGED) <= nodes
}

/// What nearly solves (D − W) y = s, symmetric and positive; exactly, if nothing has changed since the graph was factored.
#[derive(Debug)]
pub(super) struct Nearly {
    factor: Factor,
    /// The node of the factored graph which each node is.
    base: Vec<Option<usize>>,
    /// The factor of the nodes that are none of it.
    new: Option<Factor>,
    is_exact: bool,
}

impl Nearly {
    /// Whether the graph is the one that was factored.
    pub(super) const fn is_exact(&self) -> bool {
        self.is_exact
    }

    pub(super) fn solve(&mut self, graph: &Weighted, sums: &[f64]) -> Vec<f64> {
        let first = self.new.as_mut().map(|new| new.solve(sums));
        let mut old = vec![0.0; self.factor.nodes()];
        for (node, (base, sum)) in self.base.iter().zip(sums).enumerate() {
            if let Some(place) = base.and_then(|base| old.get_mut(base)) {
                let joined = |first: &Vec<f64>| graph.of(node).iter().map(|(other, w)| w * at(first, *other)).sum();
                *place = sum + first.as_ref().map_or(0.0, joined);
            }
        }
        let old = self.factor.solve(&old);
        let known: Vec<f64> = self.base.iter().map(|base| base.map_or(0.0, |base| at(&old, base))).collect();
        let Some(first) = first else { return known };
        let mut solution = self.extended(graph, known);
        for ((base, value), first) in self.base.iter().zip(&mut solution).zip(first) {
            if base.is_none() {
                *value += first;
            }
        }
        solution
    }

    /// Gives each new node the mean of its neighbours, by weight.
    fn extended(&mut self, graph: &Weighted, mut known: Vec<f64>) -> Vec<f64> {
        let Some(new) = &mut self.new else { return known };
        let joined = |(node, base): (usize, &Option<usize>)| match base {
            Some(_) => 0.0,
            None => graph.of(node).iter().map(|(other, weight)| weight * at(&known, *other)).sum(),
        };
        let sums: Vec<f64> = self.base.iter().enumerate().map(joined).collect();
        let values = new.solve(&sums);
        for ((base, known), value) in self.base.iter().zip(&mut known).zip(values) {
            if base.is_none() {
                *known = value;
            }
        }
        known
    }
}

fn at(values: &[f64], node: usize) -> f64 {
    values.get(node).copied().unwrap_or_default()
}
