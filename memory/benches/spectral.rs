//! λ₂ of large windows: log-shaped graphs and chains, cold, and warm after a change of 1 %.
//!
//! `cargo bench -p ephor-memory --bench spectral -- [NODES]`, 100,000 by default. Beside it stands a dense solver, for as many
//! nodes as one can wait for.
#![expect(clippy::expect_used, reason = "a bench stops at the first surprise")]

use std::time::Instant;

use ephor_memory::spectral::{Spectrum, Warm, Weighted};
use faer::{Mat, Side};

type Edges = Vec<(usize, usize, f64)>;

struct Dice(u64);

impl Dice {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % below
    }
}

/// Each entry follows the one before, is caused by one of the last four, and one in a hundred by any before.
fn log_shaped(nodes: usize, dice: &mut Dice) -> Edges {
    let mut edges = Vec::new();
    for node in 1..nodes {
        edges.push((node - 1, node, 0.25));
        edges.push((node - 1 - dice.below(node.min(4)), node, 1.0));
        if dice.below(100) == 0 {
            edges.push((dice.below(node), node, 0.75));
        }
    }
    edges
}

fn chain(nodes: usize) -> Edges {
    (1..nodes).map(|node| (node - 1, node, 1.0)).collect()
}

fn timed(graph: &Weighted, warm: &mut Warm, before: impl Fn(usize) -> Option<usize>) -> (f64, f64) {
    let start = Instant::now();
    let spectrum = Spectrum::warm(graph, warm, before).expect("it converges");
    (start.elapsed().as_secs_f64() * 1e3, spectrum.lambda2().unwrap_or_default())
}

/// The graph between the nodes from `first` on.
fn without(first: usize, nodes: usize, edges: &Edges) -> Weighted {
    let left = edges.iter().filter(|(from, to, _)| *from.min(to) >= first);
    Weighted::new(nodes - first, left.map(|(from, to, weight)| (from - first, to - first, *weight))).expect("a graph")
}

fn main() {
    let nodes = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(100_000_usize);
    let mut dice = Dice(9);
    for (name, edges) in [("log-shaped", log_shaped(nodes, &mut dice)), ("chain", chain(nodes))] {
        let mut warm = Warm::new();
        let (cold, lambda2) = timed(&without(0, nodes, &edges), &mut warm, |_| None);
        println!("{name:<12} {nodes:>7} nodes   cold {cold:>8.1} ms   λ₂ {lambda2:e}");
        // The window goes on: 1 % of the entries are new, and as many are gone. Three times.
        let (more, mut changed) = (nodes / 100, edges);
        for round in 1..=3 {
            let (first, end) = (more * round, nodes + more * round);
            for node in end - more..end {
                changed.push((node - 1, node, if name == "chain" { 1.0 } else { 0.25 }));
                if name != "chain" {
                    changed.push((node - 1 - dice.below(4), node, 1.0));
                }
                if name != "chain" && dice.below(100) == 0 {
                    changed.push((dice.below(node), node, 0.75));
                }
            }
            let graph = without(first, end, &changed);
            let (cold, expected) = timed(&graph, &mut Warm::new(), |_| None);
            let (time, lambda2) = timed(&graph, &mut warm, |node| Some(node + more).filter(|node| *node < nodes));
            let off = (lambda2 - expected).abs() / expected;
            println!("{name:<12} round {round}          cold {cold:>8.1} ms   warm {time:>8.1} ms   off by {off:e}");
        }
    }
    let small = nodes.min(1_000);
    let edges = log_shaped(small, &mut dice);
    let graph = Weighted::new(small, edges.iter().copied()).expect("a graph");
    let (ours, lambda2) = timed(&graph, &mut Warm::new(), |_| None);
    let start = Instant::now();
    let mut weights = Mat::<f64>::zeros(small, small);
    for (a, b, weight) in edges {
        weights[(a, b)] += weight;
        weights[(b, a)] += weight;
    }
    let degree = |node: usize| (0..small).map(|other| weights[(node, other)]).sum::<f64>();
    let degrees: Vec<f64> = (0..small).map(degree).collect();
    let root = |node: usize| degrees.get(node).copied().unwrap_or(1.0).sqrt();
    let laplacian =
        Mat::from_fn(small, small, |a, b| f64::from(u8::from(a == b)) - weights[(a, b)] / (root(a) * root(b)));
    let values = laplacian.self_adjoint_eigenvalues(Side::Lower).expect("it converges");
    let dense = start.elapsed().as_secs_f64() * 1e3;
    let theirs = values.get(1).copied().unwrap_or_default();
    println!(
        "dense        {small:>7} nodes   {dense:>13.1} ms   ours {ours:>8.1} ms   relative difference {:e}",
        (theirs - lambda2).abs() / theirs
    );
}
