//! The Davidson iteration, for two vectors at a time, so that an eigenvalue that repeats is found twice: the best vectors of a space
//! (Rayleigh and Ritz), which grows by what nearly solves their residuals (Morgan, Scott 1986), restarted with the few best (Wu, Simon
//! 2000, "thick restart"). Where the factor is that of the graph itself, this is inverse iteration, sped up.
//!
//! Vectors have a number for each node; the inner product is that of D, in which the constant vectors are what is left out.

use faer::{Mat, Side};

use super::{SpectralError, Weighted, warm::Nearly};

/// The most vectors of the space, and how many stay at a restart.
const MOST_BASIS: usize = 32;
const KEPT: usize = 6;
/// The most steps.
const MOST_STEPS: usize = 400;
/// The residuals of the two vectors, relative to their eigenvalues, that end the iteration, and the one of the first that is good enough if it
/// stays: the error of an eigenvalue is near the square of it.
const TOLERANCES: [f64; 2] = [1e-8, 1e-7];
const GOOD_ENOUGH: f64 = 1e-5;
/// How many steps without halving what is left count as staying.
const PATIENCE: usize = 30;
/// What is shorter than this after a projection, of what was 1 long, is rounding.
const NOTHING: f64 = 1e-12;
/// What is left of a projection if it needs no second.
const ENOUGH: f64 = 0.5;

pub(super) struct Solved {
    pub(super) lambda2: f64,
    pub(super) lambda3: Option<f64>,
    pub(super) values: Vec<f64>,
    /// The vectors of both, to begin with the next time.
    pub(super) vectors: Vec<Vec<f64>>,
}

/// Solves for a connected graph of two nodes or more, beginning with some vectors if there are any.
pub(super) fn solve(graph: &Weighted, nearly: &mut Nearly, starts: Vec<Vec<f64>>) -> Result<Solved, SpectralError> {
    let mut space = Space::new(graph);
    // Noise has a part in every direction, so that nothing is missing.
    let noise = [0, graph.len()].map(|from| (from..).take(graph.len()).map(noise).collect::<Vec<f64>>());
    for noise in noise {
        let sums = space.weighted(&noise);
        space.grow(nearly.solve(graph, &sums));
    }
    starts.into_iter().for_each(|start| space.grow(start));
    let (mut best, mut idle, mut residuals) = (f64::INFINITY, 0, [f64::INFINITY; 2]);
    for _ in 0..MOST_STEPS {
        let ritz = space.ritz()?;
        let mut grown = Vec::new();
        residuals = [0.0; 2];
        for ((pair, tolerance), relative) in ritz.iter().take(2).zip(TOLERANCES).zip(&mut residuals) {
            let residual = space.residual(pair);
            let direction = nearly.solve(graph, &residual);
            *relative = (dot(&residual, &direction).max(0.0) / pair.0).sqrt();
            if *relative > tolerance {
                grown.push(direction);
            }
        }
        let left =
            residuals.iter().zip(TOLERANCES).map(|(relative, tolerance)| relative / tolerance).fold(0.0, f64::max);
        idle = if left < best / 2.0 { 0 } else { idle + 1 };
        best = best.min(left);
        if grown.is_empty() || (idle > PATIENCE && residuals[0] <= GOOD_ENOUGH) {
            return Ok(space.solved(&ritz));
        }
        if space.basis.len() + grown.len() > MOST_BASIS {
            space.restart(&ritz);
        }
        let before = space.basis.len();
        grown.into_iter().for_each(|direction| space.grow(direction));
        if space.basis.len() == before {
            // What is missing would have to come from a vector that there is not: the space is invariant.
            return Ok(space.solved(&ritz));
        }
    }
    Err(SpectralError::Convergence(residuals[0]))
}

/// An eigenvalue and its vector in the basis.
type Pair = (f64, Vec<f64>);

/// A basis, orthonormal by D and to the constants, what D − W makes of it, and the products of the two.
struct Space<'a> {
    graph: &'a Weighted,
    total: f64,
    basis: Vec<Vec<f64>>,
    images: Vec<Vec<f64>>,
    /// Row by row, the lower half.
    products: Vec<Vec<f64>>,
}

impl<'a> Space<'a> {
    fn new(graph: &'a Weighted) -> Self {
        let total = graph.degrees.iter().sum();
        Self { graph, total, basis: Vec::new(), images: Vec::new(), products: Vec::new() }
    }

    /// D times a vector.
    fn weighted(&self, vector: &[f64]) -> Vec<f64> {
        vector.iter().zip(&self.graph.degrees).map(|(x, degree)| x * degree).collect()
    }

    /// Takes in what is new of a vector, if anything is.
    fn grow(&mut self, mut vector: Vec<f64>) {
        if !vector.iter().all(|x| x.is_finite()) {
            return;
        }
        self.centre(&mut vector);
        let mut before = self.norm(&vector);
        if before <= 0.0 {
            return;
        }
        scale(&mut vector, 1.0 / before);
        let mut left = 1.0;
        // Twice is enough (Parlett 1998, "Kahan's twice").
        for _ in 0..2 {
            let weighted = self.weighted(&vector);
            let parts: Vec<f64> = self.basis.iter().map(|other| dot(&weighted, other)).collect();
            self.basis.iter().zip(parts).for_each(|(other, part)| subtract(&mut vector, other, part));
            self.centre(&mut vector);
            before = self.norm(&vector);
            left *= before;
            if left <= NOTHING || before <= 0.0 {
                return;
            }
            scale(&mut vector, 1.0 / before);
            if before > ENOUGH {
                break;
            }
        }
        let image = self.image(&vector);
        self.basis.push(vector);
        self.products.push(self.basis.iter().map(|other| dot(other, &image)).collect());
        self.images.push(image);
    }

    /// D − W times a vector, by differences along the edges, which loses nothing where they are small.
    fn image(&self, vector: &[f64]) -> Vec<f64> {
        let value = |node: usize| vector.get(node).copied().unwrap_or_default();
        let across = |(node, x): (usize, &f64)| {
            self.graph.of(node).iter().map(|(other, weight)| weight * (x - value(*other))).sum()
        };
        vector.iter().enumerate().map(across).collect()
    }

    /// Takes the constant part away.
    fn centre(&self, vector: &mut [f64]) {
        let mean = dot(vector, &self.graph.degrees) / self.total;
        vector.iter_mut().for_each(|x| *x -= mean);
    }

    fn norm(&self, vector: &[f64]) -> f64 {
        vector.iter().zip(&self.graph.degrees).map(|(x, degree)| degree * x * x).sum::<f64>().sqrt()
    }

    /// The few least eigenvalues in this space, the least first.
    fn ritz(&self) -> Result<Vec<Pair>, SpectralError> {
        let size = self.basis.len();
        if size == 0 {
            return Err(SpectralError::Convergence(f64::INFINITY));
        }
        let product = |row: usize, column: usize| {
            let (row, column) = (row.max(column), row.min(column));
            self.products.get(row).and_then(|products| products.get(column)).copied().unwrap_or_default()
        };
        let small = Mat::from_fn(size, size, product);
        let failed = |error| SpectralError::Factor(format!("{error:?}"));
        let eigen = small.self_adjoint_eigen(Side::Lower).map_err(failed)?;
        let (values, vectors) = (eigen.S().column_vector(), eigen.U());
        let pair = |at: usize| (values[at], (0..size).map(|row| vectors[(row, at)]).collect::<Vec<f64>>());
        let pairs: Vec<Pair> = (0..size).take(KEPT).map(pair).collect();
        match pairs.first() {
            Some((least, _)) if *least > 0.0 => Ok(pairs),
            least => Err(SpectralError::Factor(format!("the least eigenvalue is {least:?}"))),
        }
    }

    fn residual(&self, (theta, by): &Pair) -> Vec<f64> {
        let mut residual = combined(&self.images, by);
        let vector = combined(&self.basis, by);
        let weighted = vector.iter().zip(&self.graph.degrees).map(|(x, degree)| theta * degree * x);
        residual.iter_mut().zip(weighted).for_each(|(image, x)| *image -= x);
        residual
    }

    /// Only the few best stay.
    fn restart(&mut self, ritz: &[Pair]) {
        let combine = |vectors: &[Vec<f64>]| ritz.iter().map(|(_, by)| combined(vectors, by)).collect();
        (self.basis, self.images) = (combine(&self.basis), combine(&self.images));
        let row = |(at, (theta, _)): (usize, &Pair)| {
            let mut row = vec![0.0; at];
            row.push(*theta);
            row
        };
        self.products = ritz.iter().enumerate().map(row).collect();
    }

    /// The eigenvalues once more, from differences along the edges.
    fn solved(&self, ritz: &[Pair]) -> Solved {
        let vectors: Vec<Vec<f64>> = ritz.iter().take(2).map(|(_, by)| combined(&self.basis, by)).collect();
        let exact = |vector: &Vec<f64>| {
            let value = |node: usize| vector.get(node).copied().unwrap_or_default();
            let across = vector.iter().enumerate().map(|(node, x)| {
                let edges = self.graph.of(node).iter();
                edges.map(|(other, weight)| weight * (value(*other) - x) * (value(*other) - x)).sum::<f64>()
            });
            // Each edge was met from both ends.
            across.sum::<f64>() / 2.0 / self.norm(vector).powi(2)
        };
        let mut lambdas = vectors.iter().map(exact);
        let lambda2 = lambdas.next().unwrap_or_default();
        // Where it is the second once more, rounding may put it below.
        let lambda3 = lambdas.next().map(|lambda3| lambda3.max(lambda2));
        let mut values = vectors.first().cloned().unwrap_or_default();
        let greatest = values.iter().fold(0.0_f64, |greatest, y| greatest.max(y.abs()));
        let first = values.iter().find(|y| y.abs() > greatest * 1e-6).copied().unwrap_or(1.0);
        scale(&mut values, first.signum() / greatest);
        Solved { lambda2, lambda3, values, vectors }
    }
}

fn combined(vectors: &[Vec<f64>], by: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; vectors.first().map_or(0, Vec::len)];
    for (vector, factor) in vectors.iter().zip(by) {
        subtract(&mut sum, vector, -factor);
    }
    sum
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Four sums, which the processor adds at once; always the same four.
    let mut sums = [0.0; 4];
    let (a, b) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + rest
}

fn scale(vector: &mut [f64], by: f64) {
    vector.iter_mut().for_each(|x| *x *= by);
}

/// Takes so much of another vector away.
fn subtract(vector: &mut [f64], other: &[f64], part: f64) {
    vector.iter_mut().zip(other).for_each(|(x, other)| *x -= part * other);
}

/// A number from −1 to 1 that has nothing to do with the graph (`SplitMix64`).
fn noise(node: usize) -> f64 {
    let mut bits = (node as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}
