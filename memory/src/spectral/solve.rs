//! Inverse iteration, sped up: the best vector of the space that the iterates span (Rayleigh and Ritz), restarted with the
//! few best (Wu, Simon 2000, "thick restart"). One step is one solve with the factor.

use faer::{Mat, Side};

use super::{SpectralError, Weighted, factor::Factor};

/// The most vectors of the space, and how many stay at a restart.
const MOST_BASIS: usize = 32;
const KEPT: usize = 6;
/// The most solves.
const MOST_STEPS: usize = 600;
/// The residual, relative to the eigenvalue, that ends the iteration, and the one that is good enough if it stays: the
/// error of the eigenvalue is below it in any case, and near its square where the gap is wide.
const TOLERANCE: f64 = 1e-10;
const GOOD_ENOUGH: f64 = 1e-7;
/// How many steps without halving the residual count as staying.
const PATIENCE: usize = 12;
/// What is shorter than this after a projection, of what was 1 long, is rounding.
const NOTHING: f64 = 1e-12;
/// How much noise a warm start gets, so that nothing is missing from it.
const NOISE: f64 = 1e-3;

pub(super) struct Solved {
    pub(super) lambda2: f64,
    pub(super) lambda3: Option<f64>,
    pub(super) values: Vec<f64>,
}

/// Solves for a connected graph of two nodes or more.
pub(super) fn solve(graph: &Weighted, before: impl Fn(usize) -> Option<f64>) -> Result<Solved, SpectralError> {
    let mut inverse = Inverse::of(graph)?;
    let start = inverse.start(before);
    let mut space = Space::default();
    space.grow(start, &mut inverse);
    let (mut best, mut idle) = (f64::INFINITY, 0);
    for _ in 0..MOST_STEPS {
        let ritz = space.ritz()?;
        let (vector, image) = (combined(&space.basis, &ritz.first), combined(&space.images, &ritz.first));
        let mut residual: Vec<f64> = image.iter().zip(&vector).map(|(image, x)| image - ritz.theta * x).collect();
        let relative = norm(&residual) / ritz.theta;
        idle = if relative < best / 2.0 { 0 } else { idle + 1 };
        best = best.min(relative);
        let is_stuck = idle > PATIENCE && relative <= GOOD_ENOUGH;
        if relative <= TOLERANCE || is_stuck {
            return Ok(inverse.solved(&vector, &ritz));
        }
        if space.basis.len() >= MOST_BASIS {
            space.restart(&ritz);
        }
        scale(&mut residual, 1.0 / (relative * ritz.theta));
        if inverse.orthogonal(&mut residual, &space.basis) <= NOTHING {
            // What is missing would have to come from a vector that there is not: the space is invariant.
            return Ok(inverse.solved(&vector, &ritz));
        }
        space.grow(residual, &mut inverse);
    }
    Err(SpectralError::Convergence(best))
}

/// The inverse of the normalised Laplacian, on what is orthogonal to its kernel.
struct Inverse<'a> {
    graph: &'a Weighted,
    factor: Factor,
    /// The roots of the degrees.
    roots: Vec<f64>,
    /// The kernel: the roots, of length 1.
    kernel: Vec<f64>,
}

impl<'a> Inverse<'a> {
    fn of(graph: &'a Weighted) -> Result<Self, SpectralError> {
        let roots: Vec<f64> = graph.degrees.iter().map(|degree| degree.sqrt()).collect();
        let mut kernel = roots.clone();
        let length = norm(&kernel);
        scale(&mut kernel, 1.0 / length);
        Ok(Self { graph, factor: Factor::of(graph)?, roots, kernel })
    }

    fn apply(&mut self, vector: &[f64]) -> Vec<f64> {
        let sums = vector.iter().zip(&self.roots).map(|(x, root)| x * root).collect();
        let mut image = self.factor.solve(sums);
        image.iter_mut().zip(&self.roots).for_each(|(y, root)| *y *= root);
        subtract(&mut image, &self.kernel);
        image
    }

    /// Noise, which has a part in every direction, and mostly what was before, if anything was.
    fn start(&self, before: impl Fn(usize) -> Option<f64>) -> Vec<f64> {
        let mut noise: Vec<f64> = (0..self.graph.len()).map(noise).collect();
        self.orthogonal(&mut noise, &[]);
        let warm = self.roots.iter().enumerate();
        let mut warm: Vec<f64> = warm.map(|(node, root)| root * before(node).unwrap_or_default()).collect();
        if warm.iter().all(|x| x.is_finite()) && norm(&warm) > 0.0 && self.orthogonal(&mut warm, &[]) > NOTHING {
            warm.iter_mut().zip(&noise).for_each(|(x, noise)| *x += NOISE * noise);
            self.orthogonal(&mut warm, &[]);
            return warm;
        }
        noise
    }

    /// Makes a vector orthogonal to the kernel and a basis, and 1 long. Returns what part of its length was left.
    fn orthogonal(&self, vector: &mut [f64], basis: &[Vec<f64>]) -> f64 {
        let before = norm(vector);
        // Twice is enough (Parlett 1998, "Kahan's twice").
        for _ in 0..2 {
            subtract(vector, &self.kernel);
            basis.iter().for_each(|other| subtract(vector, other));
        }
        let after = norm(vector);
        if after > 0.0 {
            scale(vector, 1.0 / after);
        }
        if before > 0.0 { after / before } else { 0.0 }
    }

    /// The eigenvalue from differences along the edges, which loses nothing where it is small.
    fn solved(&self, vector: &[f64], ritz: &Ritz) -> Solved {
        let mut values: Vec<f64> = vector.iter().zip(&self.roots).map(|(x, root)| x / root).collect();
        let degrees = &self.graph.degrees;
        let total: f64 = degrees.iter().sum();
        let mean = degrees.iter().zip(&values).map(|(degree, y)| degree * y).sum::<f64>() / total;
        values.iter_mut().for_each(|y| *y -= mean);
        let square: f64 = degrees.iter().zip(&values).map(|(degree, y)| degree * y * y).sum();
        let value = |node: usize| values.get(node).copied().unwrap_or_default();
        let across = self.graph.neighbours.iter().zip(&values).map(|(list, y)| {
            list.iter().map(|(other, weight)| weight * (value(*other) - y) * (value(*other) - y)).sum::<f64>()
        });
        // Each edge was met from both ends.
        let lambda2 = across.sum::<f64>() / 2.0 / square;
        let greatest = values.iter().fold(0.0_f64, |greatest, y| greatest.max(y.abs()));
        let first = values.iter().find(|y| y.abs() > greatest * 1e-6).copied().unwrap_or(1.0);
        scale(&mut values, first.signum() / greatest);
        Solved { lambda2, lambda3: ritz.next.filter(|theta| *theta > 0.0).map(|theta| 1.0 / theta), values }
    }
}

/// An orthonormal basis, what the inverse makes of it, and the products of the two.
#[derive(Default)]
struct Space {
    basis: Vec<Vec<f64>>,
    images: Vec<Vec<f64>>,
    /// Row by row, the lower half.
    products: Vec<Vec<f64>>,
}

/// What is best in a space.
struct Ritz {
    /// The greatest value.
    theta: f64,
    /// The next.
    next: Option<f64>,
    /// The vector of the greatest, in the basis.
    first: Vec<f64>,
    /// The few greatest with their vectors, for a restart.
    kept: Vec<(f64, Vec<f64>)>,
}

impl Space {
    fn grow(&mut self, vector: Vec<f64>, inverse: &mut Inverse<'_>) {
        let image = inverse.apply(&vector);
        self.basis.push(vector);
        self.products.push(self.basis.iter().map(|other| dot(other, &image)).collect());
        self.images.push(image);
    }

    fn ritz(&self) -> Result<Ritz, SpectralError> {
        let size = self.basis.len();
        let product = |row: usize, column: usize| {
            let (row, column) = (row.max(column), row.min(column));
            self.products.get(row).and_then(|products| products.get(column)).copied().unwrap_or_default()
        };
        let small = Mat::from_fn(size, size, product);
        let failed = |error| SpectralError::Factor(format!("{error:?}"));
        let eigen = small.self_adjoint_eigen(Side::Lower).map_err(failed)?;
        let (values, vectors) = (eigen.S().column_vector(), eigen.U());
        // Ascending, and the greatest is wanted first.
        let pair = |at: usize| (values[at], (0..size).map(|row| vectors[(row, at)]).collect::<Vec<f64>>());
        let kept: Vec<(f64, Vec<f64>)> = (0..size).rev().take(KEPT).map(pair).collect();
        let (theta, first) = kept.first().cloned().ok_or(SpectralError::Convergence(f64::INFINITY))?;
        if theta.is_nan() || theta <= 0.0 {
            return Err(SpectralError::Factor(format!("an eigenvalue of the inverse is {theta}")));
        }
        Ok(Ritz { theta, next: kept.get(1).map(|(theta, _)| *theta), first, kept })
    }

    /// Only the few best stay.
    fn restart(&mut self, ritz: &Ritz) {
        let combine = |vectors: &[Vec<f64>]| ritz.kept.iter().map(|(_, by)| combined(vectors, by)).collect();
        (self.basis, self.images) = (combine(&self.basis), combine(&self.images));
        let row = |(at, (theta, _)): (usize, &(f64, Vec<f64>))| {
            let mut row = vec![0.0; at];
            row.push(*theta);
            row
        };
        self.products = ritz.kept.iter().enumerate().map(row).collect();
    }
}

fn combined(vectors: &[Vec<f64>], by: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; vectors.first().map_or(0, Vec::len)];
    for (vector, factor) in vectors.iter().zip(by) {
        sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += factor * x);
    }
    sum
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

fn scale(vector: &mut [f64], by: f64) {
    vector.iter_mut().for_each(|x| *x *= by);
}

/// Takes the part along `unit`, which is 1 long, away.
fn subtract(vector: &mut [f64], unit: &[f64]) {
    let part = dot(vector, unit);
    vector.iter_mut().zip(unit).for_each(|(x, unit)| *x -= part * unit);
}

/// A number from −1 to 1 that has nothing to do with the graph (`SplitMix64`).
fn noise(node: usize) -> f64 {
    let mut bits = (node as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}
