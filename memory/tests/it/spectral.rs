//! The spectral view, held against a dense solver.

use std::collections::BTreeSet;

use ephor_base::Seq;
use ephor_memory::{
    entry::Moment,
    graph::EdgeKind,
    spectral::{SpectralError, Spectrum, Warm, Weighted, Window, communities},
};
use faer::{Mat, Side};

use crate::common::{Dice, entry, graph, id, link, session};

type Edges = Vec<(usize, usize, f64)>;

/// The eigenvalues of the normalised Laplacian in ascending order, and the second eigenvector times D^−½.
struct Dense {
    values: Vec<f64>,
    second: Vec<f64>,
}

fn dense(nodes: usize, edges: &Edges) -> Dense {
    let mut weights = vec![vec![0.0; nodes]; nodes];
    for (a, b, weight) in edges.iter().filter(|(a, b, _)| a != b) {
        weights[*a][*b] += weight;
        weights[*b][*a] += weight;
    }
    let degrees: Vec<f64> = weights.iter().map(|row| row.iter().sum()).collect();
    let root = |node: usize| if degrees[node] > 0.0 { degrees[node].sqrt() } else { 1.0 };
    let laplacian = Mat::from_fn(nodes, nodes, |a, b| {
        let one = if a == b && degrees[a] > 0.0 { 1.0 } else { 0.0 };
        one - weights[a][b] / (root(a) * root(b))
    });
    let eigen = laplacian.self_adjoint_eigen(Side::Lower).unwrap();
    let values = (0..nodes).map(|at| eigen.S().column_vector()[at]).collect();
    let second = (0..nodes).map(|node| if nodes > 1 { eigen.U()[(node, 1)] / root(node) } else { 0.0 }).collect();
    Dense { values, second }
}

/// A graph of one of the shapes that windows have, or that are hard.
fn random(dice: &mut Dice, number: usize) -> (usize, Edges) {
    let nodes = 2 + dice.below(60);
    let weight = |dice: &mut Dice| 10.0_f64.powf(dice.unit() * 3.0 - 1.5);
    let edges = match number % 10 {
        0 => (1..nodes).map(|node| (0, node, weight(dice))).collect(),
        1 => (1..nodes).map(|node| (node - 1, node, 1.0)).collect(),
        2 => (1..nodes).map(|node| (node - 1, node, weight(dice))).chain([(nodes - 1, 0, 1.0)]).collect(),
        // A log: each entry follows one, is caused by one near, and now and then by one far back.
        3 | 4 => (1..nodes)
            .flat_map(|node| {
                let near = node - 1 - dice.below(node.min(4));
                let far = (dice.below(10) == 0).then(|| (dice.below(node), node, 0.75));
                [Some((node - 1, node, 0.25)), Some((near, node, 1.0)), far].into_iter().flatten()
            })
            .collect(),
        // Two heaps and a bridge.
        5 => (1..nodes)
            .flat_map(|node| {
                let half = nodes / 2;
                let first = if node >= half { half } else { 0 };
                (first..node).filter(|_| dice.below(2) == 0).map(|other| (other, node, 1.0)).collect::<Edges>()
            })
            .chain((1..nodes).map(|node| (node - 1, node, 0.2)))
            .collect(),
        // In several parts, most of the time.
        6 | 7 => (0..nodes).map(|_| (dice.below(nodes), dice.below(nodes), weight(dice))).collect(),
        // Everything to everything: one eigenvalue many times over.
        8 => (0..nodes).flat_map(|a| (0..a).map(move |b| (a, b, 1.0))).collect(),
        // Directed, both ways with different weights, with loops.
        _ => (0..nodes * 4).map(|_| (dice.below(nodes), dice.below(nodes), weight(dice))).collect(),
    };
    (nodes, edges)
}

#[test]
fn lambda_2_is_that_of_a_dense_solver_for_a_thousand_graphs() {
    let mut dice = Dice(2026);
    let (mut connected, mut cuts) = (0, 0);
    for number in 0..1_000 {
        let (nodes, edges) = random(&mut dice, number);
        let dense = dense(nodes, &edges);
        let graph = Weighted::new(nodes, edges.clone()).unwrap();
        let spectrum = Spectrum::of(&graph).unwrap();
        match &spectrum {
            Spectrum::Trivial => panic!("graph {number} has {nodes} nodes"),
            Spectrum::Parted(parts) => {
                let zeros = dense.values.iter().filter(|value| value.abs() < 1e-9).count();
                assert_eq!(parts.len(), zeros, "graph {number}");
                assert_eq!(spectrum.lambda2(), Some(0.0));
            }
            Spectrum::Connected(fiedler) => {
                connected += 1;
                let (ours, theirs) = (fiedler.lambda2, dense.values[1]);
                assert!((ours - theirs).abs() <= 1e-6 * theirs, "graph {number}: {ours} and {theirs}");
                // Also where the third is the second once more.
                let third = fiedler.lambda3.unwrap_or_default();
                let expected = dense.values.get(2).copied().unwrap_or_default();
                assert!((third - expected).abs() <= 1e-6 * expected, "graph {number}: λ₃ {third} and {expected}");
                if dense.values.get(2).is_some_and(|third| third - theirs > 1e-3) {
                    cuts += 1;
                    assert_cut(number, &fiedler.cut().0, &dense.second);
                }
            }
        }
    }
    assert!(connected > 600 && cuts > 300, "{connected} hang together, {cuts} have a clear cut");
}

/// The same two sides, but for nodes that lie on the cut.
fn assert_cut(number: usize, positive: &[usize], second: &[f64]) {
    let greatest = second.iter().fold(0.0_f64, |greatest, value| greatest.max(value.abs()));
    let ours: BTreeSet<usize> = positive.iter().copied().collect();
    let clear = second.iter().enumerate().filter(|(_, value)| value.abs() > 1e-5 * greatest);
    let same: BTreeSet<bool> = clear.map(|(node, value)| ours.contains(&node) == (*value > 0.0)).collect();
    assert_eq!(same.len(), 1, "graph {number}");
}

#[test]
fn small_and_parted_graphs_have_the_spectrum_they_have() {
    for nodes in [0, 1] {
        let spectrum = Spectrum::of(&Weighted::new(nodes, []).unwrap()).unwrap();
        assert!(matches!(spectrum, Spectrum::Trivial) && spectrum.lambda2().is_none());
    }
    let two = Spectrum::of(&Weighted::new(2, [(1, 0, 3.0)]).unwrap()).unwrap();
    assert!((two.lambda2().unwrap() - 2.0).abs() < 1e-12);
    let parted = Weighted::new(6, [(4, 1, 1.0), (5, 3, 1.0), (2, 2, 1.0), (3, 0, 1.0)]).unwrap();
    let Spectrum::Parted(parts) = Spectrum::of(&parted).unwrap() else { panic!("it falls apart") };
    assert_eq!(parts, [vec![0, 3, 5], vec![1, 4], vec![2]]);
}

#[test]
fn known_graphs_have_known_values() {
    // A path: 1 − cos(π / (n − 1)). A star: 1. Everything to everything: n / (n − 1).
    for nodes in [3, 10, 1_000] {
        let path = Weighted::new(nodes, (1..nodes).map(|node| (node - 1, node, 1.0))).unwrap();
        let Spectrum::Connected(fiedler) = Spectrum::of(&path).unwrap() else { panic!("it hangs together") };
        let half = std::f64::consts::PI / (nodes - 1) as f64 / 2.0;
        let expected = 2.0 * half.sin().powi(2);
        assert!((fiedler.lambda2 - expected).abs() <= 1e-8 * expected, "{nodes}: {} {expected}", fiedler.lambda2);
        assert!(fiedler.values[0] > 0.0 && fiedler.values[nodes - 1] < 0.0);
        let star = Weighted::new(nodes, (1..nodes).map(|node| (0, node, 2.0))).unwrap();
        assert!((Spectrum::of(&star).unwrap().lambda2().unwrap() - 1.0).abs() < 1e-9);
    }
    let all = Weighted::new(20, (0..20).flat_map(|a| (0..a).map(move |b| (a, b, 1.0)))).unwrap();
    assert!((Spectrum::of(&all).unwrap().lambda2().unwrap() - 20.0 / 19.0).abs() < 1e-9);
}

/// A log of `nodes` entries, without the first `gone`.
fn log_shaped(nodes: usize, gone: usize) -> Weighted {
    let mut dice = Dice(77);
    let edges: Edges = (1..nodes)
        .flat_map(|node| {
            let near = (node - 1 - dice.below(node.min(4)), node, 1.0);
            let far = (dice.below(node), node, if dice.below(50) == 0 { 0.75 } else { 0.0 });
            [(node - 1, node, 0.25), near, far]
        })
        .filter(|(from, _, weight)| *weight > 0.0 && *from >= gone)
        .map(|(from, to, weight)| (from - gone, to - gone, weight))
        .collect();
    Weighted::new(nodes - gone, edges).unwrap()
}

#[test]
fn a_warm_start_comes_to_the_same() {
    let mut warm = Warm::new();
    // The window goes on, ten entries at a time; after some of it, too much has changed and it is factored anew.
    for at in 0..12 {
        let (gone, nodes) = (at * 10, 1_000 + at * 10);
        let graph = log_shaped(nodes, gone);
        let before = |node: usize| Some(node + 10).filter(|node| *node < 1_000);
        let Spectrum::Connected(warm) = Spectrum::warm(&graph, &mut warm, before).unwrap() else { panic!("parted") };
        let Spectrum::Connected(cold) = Spectrum::of(&graph).unwrap() else { panic!("parted") };
        assert!((cold.lambda2 - warm.lambda2).abs() <= 1e-9 * cold.lambda2, "{at}");
        let (third, expected) = (warm.lambda3.unwrap(), cold.lambda3.unwrap());
        assert!((third - expected).abs() <= 1e-6 * expected, "{at}");
        let differ = cold.values.iter().zip(&warm.values).map(|(a, b)| (a - b).abs());
        assert!(differ.fold(0.0, f64::max) < 1e-6, "{at}");
    }
    // What misleads does no harm.
    let graph = log_shaped(1_010, 0);
    let cold = Spectrum::of(&graph).unwrap().lambda2().unwrap();
    let maps: [&dyn Fn(usize) -> Option<usize>; 4] =
        [&|_| Some(0), &|node| Some(1_009 - node), &|node| Some(node * 7 % 1_010), &|_| None];
    for before in maps {
        let mut warm = Warm::new();
        Spectrum::warm(&log_shaped(1_000, 0), &mut warm, |_| None).unwrap();
        let misled = Spectrum::warm(&graph, &mut warm, before).unwrap().lambda2().unwrap();
        assert!((cold - misled).abs() <= 1e-8 * cold);
    }
}

#[test]
fn what_is_no_graph_is_refused() {
    assert!(matches!(Weighted::new(2, [(0, 2, 1.0)]), Err(SpectralError::Unknown(2, 2))));
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e10, 1e-10] {
        assert!(matches!(Weighted::new(2, [(0, 1, weight)]), Err(SpectralError::Weight(_))), "{weight}");
    }
    assert!(matches!(Weighted::new(1 << 21, []), Err(SpectralError::Nodes(_))));
}

#[test]
fn communities_are_the_heaps_that_were_made() {
    let mut dice = Dice(3);
    let mut edges = Edges::new();
    // Four heaps of twelve, a ring of bridges, and two nodes by themselves.
    for heap in 0..4 {
        for a in 0..12 {
            edges.extend((0..a).filter(|_| dice.below(4) > 0).map(|b| (heap * 12 + a, heap * 12 + b, 1.0)));
            edges.push((heap * 12 + a, heap * 12 + (a + 1) % 12, 1.0));
        }
        edges.push((heap * 12, (heap + 1) % 4 * 12 + 5, 1.0));
    }
    edges.push((48, 49, 1.0));
    let graph = Weighted::new(50, edges).unwrap();
    let heap = |heap: usize| (heap * 12..heap * 12 + 12).collect::<Vec<_>>();
    let expected = vec![heap(0), heap(1), heap(2), heap(3), vec![48, 49]];
    assert_eq!(communities(&graph, 64).unwrap(), expected);
    assert_eq!(communities(&graph, 3).unwrap().len(), 3);
    assert!(communities(&Weighted::new(0, []).unwrap(), 8).unwrap().is_empty());
}

#[test]
fn a_window_of_the_causal_graph_has_the_weights_of_its_edges() {
    let mut graph = graph();
    (0..40).for_each(|seq| graph.add(entry(seq, u8::try_from(seq / 20).unwrap())).unwrap());
    for seq in 1..40 {
        graph.link(&link(id(seq - 1), id(seq), EdgeKind::Follows)).unwrap();
        if seq % 20 != 0 {
            graph.link(&link(id(seq / 20 * 20), id(seq), EdgeKind::Causes)).unwrap();
        }
    }
    let window = Window::of(&graph, Moment::own(Seq(5))..=Moment::own(Seq(34))).unwrap();
    assert_eq!(window.entries, (5..35).map(id).collect::<Vec<_>>());
    let whole = Window::of(&graph, Moment::own(Seq(0))..=Moment::own(Seq(39))).unwrap();
    let Spectrum::Connected(fiedler) = Spectrum::of(&whole.graph).unwrap() else { panic!("it hangs together") };
    // The weak link between the two stars is where it is cut.
    let (one, other) = fiedler.cut();
    let mut sides = [one, other];
    sides.sort_unstable();
    assert_eq!(sides, [(0..20).collect::<Vec<_>>(), (20..40).collect()]);
    graph.erase(&session(0));
    let empty = Window::of(&graph, Moment::own(Seq(0))..=Moment::own(Seq(19))).unwrap();
    assert!(empty.entries.is_empty() && empty.graph.is_empty());
    // A window that ends before it begins holds nothing.
    assert!(Window::of(&graph, Moment::own(Seq(9))..=Moment::own(Seq(2))).unwrap().entries.is_empty());
}
