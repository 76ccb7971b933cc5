//! Computes the polynomials of the parent module, by weighted least squares in f64 with none but
//! correctly rounded operations, so that every machine finds the same numbers.
//!
//! Weights are how often each u occurs among the pairs of a class. They are counted in a model: bodies
//! spread evenly, leaves the cubes of a lattice, a block eight of them, far leaves up to [`REACH`] away
//! along each axis. The coefficients are rounded to halves one by one, from the highest on, and the
//! others fitted anew after each; the shift is the one of [`SHIFTS`] with the smallest error. At last
//! the factor takes away the mean error of the pairs, roundings of every step of Horner's scheme
//! included: rounding is of either sign, but an error common to all pairs of a class would not average.

use super::{LARGEST_ERROR, MOST_COEFFICIENTS, POLYNOMIALS, Polynomial, rounded_alpha};
use cuda_std::f16;
use cuda_std::matrix::{pack_halves, unpack_halves};

/// Leaves along each axis, on either side of the block's centre.
const REACH: u32 = 16;

/// Pairs drawn of each leaf.
const PAIRS: u32 = 512;

/// Intervals of u in which pairs are counted.
const BINS: usize = 1024;

/// Part of the weight that is spread over all u: no error is free where pairs are rare.
const SPREAD: f64 = 2e-3;

/// Shifts that are tried on either side of the one without rounding, and their distance.
const SHIFTS: i32 = 30;
const SHIFT: f64 = 1e-3;

/// Numbers evenly spread over [0, 1): Knuth's linear congruence, upper bits.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// u of pairs of a block and the leaves whose ratio is above `from` and at most `to`. The block is the
/// cube from −1 to 1; by symmetry, leaves in one octant are all there are.
fn pairs(from: f32, to: f32, seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    let mut found = vec![];
    for leaf in 0..REACH.pow(3) {
        let corner = [0, 1, 2].map(|axis| f64::from(leaf / REACH.pow(axis) % REACH));
        let sum = |of: fn(f64) -> f64| corner.iter().map(|&x| of(x) * of(x)).sum::<f64>();
        let [smallest, largest] = [sum(|x| (x - 1.0).max(0.0)), sum(|x| x + 2.0)];
        if largest <= f64::from(from) * smallest || largest > f64::from(to) * smallest {
            continue;
        }
        for _ in 0..PAIRS {
            // α is rounded, by another part wherever the leaf is in its system.
            let unit = 1.0 + random.next();
            let exact = 2.0 / (smallest + largest);
            let alpha = f64::from(rounded_alpha((unit * exact) as f32)) / unit;
            let square: f64 = corner
                .iter()
                .map(|x| {
                    let separation = x + random.next() - (2.0 * random.next() - 1.0);
                    separation * separation
                })
                .sum();
            found.push(alpha * square - 1.0);
        }
    }
    found
}

/// (1 + u)^{−3/2}.
fn exact(u: f64) -> f64 {
    1.0 / ((1.0 + u) * (1.0 + u).sqrt())
}

/// Largest |u| of a ratio, α rounded.
fn limit(ratio: f32) -> f64 {
    let r = f64::from(ratio);
    (r - 1.0) / (r + 1.0) + 2.0 * r / (r + 1.0) / 64.0
}

/// How often u is in each of the intervals between ± `limit`: their centres, and parts of 1.
fn weights(pairs: &[f64], limit: f64) -> Vec<[f64; 2]> {
    let mut counts = vec![0_u32; BINS];
    for u in pairs {
        let bin = ((u / limit + 1.0) / 2.0 * BINS as f64) as usize;
        counts[bin.min(BINS - 1)] += 1;
    }
    let centre = |bin: usize| ((bin as f64 + 0.5) / BINS as f64 * 2.0 - 1.0) * limit;
    let weight =
        |count: u32| f64::from(count) / pairs.len() as f64 * (1.0 - SPREAD) + SPREAD / BINS as f64;
    let bins = counts.into_iter().enumerate();
    bins.map(|(bin, count)| [centre(bin), weight(count)])
        .collect()
}

/// The c with the least weighted mean square of Σ c_k f_k(u) / exact(u) − 1.
fn least_squares<const N: usize>(
    weights: &[[f64; 2]],
    functions: impl Fn(f64) -> [f64; N],
    of: usize,
) -> [f64; N] {
    let mut matrix = [[0.0; N]; N];
    let mut right = [0.0; N];
    for &[u, weight] in weights {
        let values = functions(u).map(|f| f / exact(u));
        for row in 0..of {
            right[row] += weight * values[row];
            for column in 0..of {
                matrix[row][column] += weight * values[row] * values[column];
            }
        }
    }
    // Symmetric and positive definite: no pivots.
    for pivot in 0..of {
        let (above, below) = matrix.split_at_mut(pivot + 1);
        for (k, row) in below[..of - pivot - 1].iter_mut().enumerate() {
            let factor = row[pivot] / above[pivot][pivot];
            for (element, pivot) in row.iter_mut().zip(above[pivot]) {
                *element -= factor * pivot;
            }
            right[pivot + 1 + k] -= factor * right[pivot];
        }
    }
    let mut solution = [0.0; N];
    for row in (0..of).rev() {
        let known: f64 = (row + 1..of).map(|k| matrix[row][k] * solution[k]).sum();
        solution[row] = (right[row] - known) / matrix[row][row];
    }
    solution
}

fn power(x: f64, k: usize) -> f64 {
    (0..k).fold(1.0, |product, _| product * x)
}

/// x^n and the terms from `lowest` on.
fn polynomial(x: f64, degree: usize, coefficients: &[f64], lowest: usize) -> f64 {
    let term = |k: usize| coefficients[k] * power(x, k);
    power(x, degree) + (lowest..=degree - 2).map(term).sum::<f64>()
}

/// Powers of x up to 7.
const POWERS: usize = MOST_COEFFICIENTS + 2;

/// Coefficients in halves for a shift of x = u + `shift`, and their factor and mean square error.
fn rounded_one_by_one(
    weights: &[[f64; 2]],
    degree: usize,
    shift: f64,
) -> ([f64; MOST_COEFFICIENTS], f64, f64) {
    let mut coefficients = [0.0; MOST_COEFFICIENTS];
    for k in (0..=degree - 2).rev() {
        // What is rounded already, with the highest power; and the powers 0 … k.
        let functions = |u: f64| {
            let x = u + shift;
            let mut all = [0.0; POWERS];
            all[0] = polynomial(x, degree, &coefficients, k + 1);
            for (power, value) in (0..=k).zip(&mut all[1..]) {
                *value = self::power(x, power);
            }
            all
        };
        let fitted = least_squares::<POWERS>(weights, functions, k + 2);
        coefficients[k] = f16::from_f64(fitted[k + 1] / fitted[0]).to_f64();
    }
    let value = |u: f64| polynomial(u + shift, degree, &coefficients, 0) / exact(u);
    let mean = |of: &dyn Fn(f64) -> f64| -> f64 {
        weights.iter().map(|&[u, weight]| weight * of(u)).sum()
    };
    let factor = mean(&value) / mean(&|u| value(u) * value(u));
    let square = mean(&|u| (factor * value(u) - 1.0) * (factor * value(u) - 1.0));
    (coefficients, factor, square)
}

/// The polynomial of a degree for ratios between two.
fn fit(degree: usize, [from, to]: [f32; 2], tiles: u32) -> Polynomial {
    let pairs = pairs(from, to, 1);
    let weights = weights(&pairs, limit(to));
    let powers = |u: f64| {
        let mut all = [0.0; POWERS];
        for (k, value) in all.iter_mut().enumerate() {
            *value = power(u, k);
        }
        all
    };
    let free = least_squares::<POWERS>(&weights, powers, degree + 1);
    // Where the second coefficient vanishes.
    let middle = free[degree - 1] / (degree as f64 * free[degree]);
    let (shift, (coefficients, factor, _)) = (-SHIFTS..=SHIFTS)
        .map(|step| middle + f64::from(step) * SHIFT)
        .map(|shift| (shift, rounded_one_by_one(&weights, degree, shift)))
        .min_by(|(_, a), (_, b)| a.2.total_cmp(&b.2))
        .expect("some shift");
    let mut fitted = Polynomial {
        ratio: to,
        tiles,
        shift: (1.0 - shift) as f32,
        factor: factor as f32,
        degree,
        coefficients: coefficients.map(|b| f16::from_f64(b).to_bits()),
    };
    let [mean, _, _] = errors(&fitted, &pairs);
    fitted.factor = (f64::from(fitted.factor) / (1.0 + mean)) as f32;
    fitted
}

/// The polynomial's relative errors as the kernel computes it: mean, root mean square and largest.
fn errors(of: &Polynomial, pairs: &[f64]) -> [f64; 3] {
    let shift = 1.0 - f64::from(of.shift);
    let (mut sum, mut squares, mut largest) = (0.0, 0.0, 0.0_f64);
    for &u in pairs {
        let x = f16::from_f64(u + shift).to_f64() as f32;
        let [value, _] = unpack_halves(of.of(pack_halves(x, x)));
        let error = f64::from(of.factor) * f64::from(value) / exact(u) - 1.0;
        sum += error;
        squares += error * error;
        largest = largest.max(error.abs());
    }
    let count = pairs.len() as f64;
    [sum / count, (squares / count).sqrt(), largest]
}

/// The ratios of each class: above that of the class before, and at most its own.
fn ranges() -> impl Iterator<Item = [f32; 2]> {
    let ratios = POLYNOMIALS.map(|class| class.ratio);
    std::iter::once(1.0)
        .chain(ratios)
        .zip(ratios)
        .map(<[f32; 2]>::from)
}

#[test]
fn polynomials_are_what_the_fit_gives() {
    let fitted: Vec<Polynomial> = ranges()
        .zip(&POLYNOMIALS)
        .map(|(range, class)| fit(class.degree, range, class.tiles))
        .collect();
    println!("{fitted:#x?}");
    assert_eq!(fitted, POLYNOMIALS, "computed, and in the source");
}

/// On other pairs than those of the fit: no bias, and no more than rounding in halves, some 2·10⁻⁴. At the
/// largest |u|, of pairs in opposite corners, no more than is stated.
#[test]
fn polynomials_are_as_exact_as_halves() {
    for ([from, to], class) in ranges().zip(&POLYNOMIALS) {
        let [mean, rms, _] = errors(class, &pairs(from, to, 2));
        let limit = limit(to);
        let steps = (-1000..=1000).map(|k| f64::from(k) * limit / 1000.0);
        let [_, _, largest] = errors(class, &steps.collect::<Vec<_>>());
        println!("r ≤ {to}: mean {mean:.1e}, rms {rms:.1e}, largest {largest:.1e}");
        assert!(mean.abs() <= 2e-6, "{class:?}: {mean:e}");
        assert!(rms <= 2.5e-4, "{class:?}: {rms:e}");
        assert!(largest <= LARGEST_ERROR, "{class:?}: {largest:e}");
    }
}
