//! The sparse Cholesky factor of a grounded Laplacian, by `faer`, on the calling thread alone.
//!
//! D − W of a connected graph has the constant vectors for its kernel. Without the row and the column of one node it is
//! positive definite, and a solution of the whole is one of the rest with 0 at that node. There is no shift to choose.

use faer::{
    Conj, MatMut, Par, Side,
    dyn_stack::{MemBuffer, MemStack},
    sparse::{
        SparseColMat, Triplet,
        linalg::cholesky::{LltRef, SymbolicCholesky, SymmetricOrdering, factorize_symbolic_cholesky},
    },
};

use super::{MOST_FILL, SpectralError, Weighted};

pub(super) struct Factor {
    /// The node without a row: the one of the highest degree, whose row would fill in most.
    ground: usize,
    symbolic: SymbolicCholesky<usize>,
    numbers: Vec<f64>,
    scratch: MemBuffer,
}

impl Factor {
    /// The factor of a connected graph of two nodes or more.
    pub(super) fn of(graph: &Weighted) -> Result<Self, SpectralError> {
        let ground = (0..graph.len()).max_by_key(|node| graph.of(*node).len()).unwrap_or_default();
        let rows = graph.len() - 1;
        let matrix = SparseColMat::<usize, f64>::try_new_from_triplets(rows, rows, &triplets(graph, ground))
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
        Ok(Self { ground, symbolic, numbers, scratch })
    }

    /// A solution `y` of (D − W) y = `sums`, whose numbers add up to 0, with 0 at one node.
    pub(super) fn solve(&mut self, mut sums: Vec<f64>) -> Vec<f64> {
        sums.remove(self.ground);
        let rows = sums.len();
        LltRef::new(&self.symbolic, &self.numbers).solve_in_place_with_conj(
            Conj::No,
            MatMut::from_column_major_slice_mut(&mut sums, rows, 1),
            Par::Seq,
            MemStack::new(&mut self.scratch),
        );
        sums.insert(self.ground, 0.0);
        sums
    }
}

fn failed(error: impl std::fmt::Debug) -> SpectralError {
    SpectralError::Factor(format!("{error:?}"))
}

/// The lower half of D − W without the row and the column of `ground`.
fn triplets(graph: &Weighted, ground: usize) -> Vec<Triplet<usize, usize, f64>> {
    let row = |node: usize| if node > ground { node - 1 } else { node };
    let mut triplets = Vec::new();
    for node in (0..graph.len()).filter(|node| *node != ground) {
        triplets.push(Triplet::new(row(node), row(node), graph.degree(node)));
        let below = graph.of(node).iter().filter(|(other, _)| *other > node && *other != ground);
        triplets.extend(below.map(|(other, weight)| Triplet::new(row(*other), row(node), -weight)));
    }
    triplets
}
