//! Sparse Cholesky factors by `faer`, on the calling thread alone: of a grounded Laplacian, and of what is new in a graph.
//!
//! D − W of a connected graph has the constant vectors for its kernel. Without the rows and the columns of some nodes it is
//! positive definite. There is no shift to choose.

use std::fmt;

use faer::{
    Conj, MatMut, Par, Side,
    dyn_stack::{MemBuffer, MemStack},
    sparse::{
        SparseColMat, Triplet,
        linalg::cholesky::{LltRef, SymbolicCholesky, SymmetricOrdering, factorize_symbolic_cholesky},
    },
};

use super::{MOST_FILL, SpectralError, Weighted};

/// The factor of D − W without some of its rows and columns.
pub(super) struct Factor {
    /// The row of each node; none for those without.
    rows: Vec<Option<usize>>,
    symbolic: SymbolicCholesky<usize>,
    numbers: Vec<f64>,
    /// What a solution is made in.
    sums: Vec<f64>,
    scratch: MemBuffer,
}

impl Factor {
    /// The factor of a connected graph of two nodes or more without one of them: that of the highest degree, whose row would fill in most.
    pub(super) fn grounded(graph: &Weighted) -> Result<Self, SpectralError> {
        let ground = (0..graph.len()).max_by_key(|node| graph.of(*node).len()).unwrap_or_default();
        Self::of(graph, |node| node != ground)
    }

    /// The factor of some nodes of a connected graph, of which at least one is not among them.
    pub(super) fn of(graph: &Weighted, has_row: impl Fn(usize) -> bool) -> Result<Self, SpectralError> {
        let mut count = 0..;
        let rows: Vec<Option<usize>> =
            (0..graph.len()).map(|node| has_row(node).then(|| count.next()).flatten()).collect();
        let count = count.start;
        let matrix = SparseColMat::<usize, f64>::try_new_from_triplets(count, count, &triplets(graph, &rows))
            .map_err(|error| SpectralError::Factor(format!("{error:?}")))?;
        let symbolic =
            factorize_symbolic_cholesky(matrix.symbolic(), Side::Lower, SymmetricOrdering::Amd, Default::default())
                .map_err(failed)?;
        if symbolic.len_val() > MOST_FILL {
            return Err(SpectralError::Fill(symbolic.len_val()));
        }
        let mut numbers = vec![0.0; symbolic.len_val()];
        let need = symbolic.factorize_numeric_llt_scratch::<f64>(Par::Seq, Default::default());
        let mut scratch = MemBuffer::try_new(need).map_err(failed)?;
        symbolic
            .factorize_numeric_llt(
                &mut numbers,
                matrix.as_ref(),
                Side::Lower,
                Default::default(),
                Par::Seq,
                MemStack::new(&mut scratch),
                Default::default(),
            )
            .map_err(failed)?;
        let need = symbolic.solve_in_place_scratch::<f64>(1, Par::Seq);
        let scratch = MemBuffer::try_new(need).map_err(failed)?;
        Ok(Self { rows, symbolic, numbers, sums: vec![0.0; count], scratch })
    }

    /// The solution for `sums` of each node, with 0 at the nodes without a row.
    pub(super) fn solve(&mut self, sums: &[f64]) -> Vec<f64> {
        for (row, sum) in self.rows.iter().zip(sums) {
            if let Some(place) = row.and_then(|row| self.sums.get_mut(row)) {
                *place = *sum;
            }
        }
        let rows = self.sums.len();
        LltRef::new(&self.symbolic, &self.numbers).solve_in_place_with_conj(
            Conj::No,
            MatMut::from_column_major_slice_mut(&mut self.sums, rows, 1),
            Par::Seq,
            MemStack::new(&mut self.scratch),
        );
        let solution = |row: &Option<usize>| row.and_then(|row| self.sums.get(row).copied()).unwrap_or_default();
        self.rows.iter().map(solution).collect()
    }

    /// How many nodes the graph had.
    pub(super) const fn nodes(&self) -> usize {
        self.rows.len()
    }
}

impl fmt::Debug for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Factor").field("nodes", &self.rows.len()).field("numbers", &self.numbers.len()).finish()
    }
}

fn failed(error: impl fmt::Debug) -> SpectralError {
    SpectralError::Factor(format!("{error:?}"))
}

/// The lower half of the rows.
fn triplets(graph: &Weighted, rows: &[Option<usize>]) -> Vec<Triplet<usize, usize, f64>> {
    let row = |node: usize| rows.get(node).copied().flatten();
    let mut triplets = Vec::new();
    for (node, column) in (0..graph.len()).filter_map(|node| Some((node, row(node)?))) {
        triplets.push(Triplet::new(column, column, graph.degree(node)));
        let below = graph.of(node).iter().filter(|(other, _)| *other > node);
        triplets.extend(below.filter_map(|(other, weight)| Some(Triplet::new(row(*other)?, column, -weight))));
    }
    triplets
}
