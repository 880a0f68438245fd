//! λ₂ of large windows: log-shaped graphs and chains, cold, and warm after a change of 1 %.
//!
//! `cargo bench -p ephor-memory --bench spectral -- [NODES]`, 100,000 by default. Beside it stands a dense solver, for as many
//! nodes as one can wait for.
#![expect(clippy::expect_used, reason = "a bench stops at the first surprise")]

use std::time::Instant;

use ephor_memory::spectral::{Spectrum, Weighted};
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

fn timed(graph: &Weighted, before: Option<&[f64]>) -> (f64, f64, Vec<f64>) {
    let start = Instant::now();
    let spectrum = match before {
        None => Spectrum::of(graph),
        Some(values) => Spectrum::warm(graph, |node| values.get(node).copied()),
    };
    let Spectrum::Connected(fiedler) = spectrum.expect("it converges") else { return (0.0, 0.0, Vec::new()) };
    (start.elapsed().as_secs_f64() * 1e3, fiedler.lambda2, fiedler.values)
}

fn main() {
    let nodes = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(100_000_usize);
    let mut dice = Dice(9);
    for (name, edges) in [("log-shaped", log_shaped(nodes, &mut dice)), ("chain", chain(nodes))] {
        let graph = Weighted::new(nodes, edges.iter().copied()).expect("a graph");
        let (cold, lambda2, values) = timed(&graph, None);
        println!("{name:<12} {nodes:>7} nodes   cold {cold:>8.1} ms   λ₂ {lambda2:e}");
        // 1 % of the entries are new.
        let more = nodes / 100;
        let mut changed = edges;
        for node in nodes..nodes + more {
            changed.push((node - 1, node, 0.25));
            changed.push((node - 1 - dice.below(4), node, 1.0));
        }
        let graph = Weighted::new(nodes + more, changed).expect("a graph");
        let (cold, _, _) = timed(&graph, None);
        let (warm, lambda2, _) = timed(&graph, Some(&values));
        println!("{name:<12} {:>7} nodes   cold {cold:>8.1} ms   warm {warm:>8.1} ms   λ₂ {lambda2:e}", nodes + more);
    }
    let small = nodes.min(1_000);
    let edges = log_shaped(small, &mut dice);
    let graph = Weighted::new(small, edges.iter().copied()).expect("a graph");
    let (ours, lambda2, _) = timed(&graph, None);
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
