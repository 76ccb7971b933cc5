//! 1/d³ without a root: polynomials for leaves whose squared distances from a block differ little.
//!
//! For a block and a leaf far from it, d² lies between the squares of the boxes' smallest and largest
//! distances; their ratio r is near 1. With α = 2 / (smallest + largest), u = αd² − 1 is within
//! ±(r − 1)/(r + 1), and
//!
//! ```text
//! 1/d³ = α^{3/2} (1 + u)^{−3/2} ≈ α^{3/2} F (xⁿ + b_{n−2} xⁿ⁻² + … + b_1 x + b_0),   x = αd² − β
//! ```
//!
//! The shift β makes the second coefficient vanish, and the factor F goes, with α^{3/2}, into the
//! weights: n − 1 multiply–adds of packed halves for two pairs. The product of the coordinates yields
//! x itself, in halves, since the sources' coordinates are packed times α, and their squares less β.
//!
//! The numbers are computed by `fit.rs`; `cargo test -p allpairs-kernels polynomials -- --nocapture` prints
//! them, and fails if [`POLYNOMIALS`] are others.

#[cfg(test)]
mod fit;

use cuda_std::matrix::fma_halves;

/// The most coefficients of a polynomial, the first two apart: those of degree 7.
const MOST_COEFFICIENTS: usize = 6;

/// How the pairs of a class of leaves get 1/d³.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Polynomial {
    /// Largest ratio of the squares of the largest and the smallest distance.
    pub(super) ratio: f32,
    /// Which of a leaf's four tiles of eight sources take the polynomial, a bit each; the others take
    /// a root. The special-function unit would idle otherwise, and of a high degree the polynomial
    /// costs more than the root.
    pub(super) tiles: u32,
    /// β.
    pub(super) shift: f32,
    /// F.
    pub(super) factor: f32,
    /// n.
    degree: usize,
    /// b_0 … b_{n−2} as halves.
    coefficients: [u16; MOST_COEFFICIENTS],
}

/// The polynomials of the classes, by rising ratio. What no class takes is computed by roots.
pub(super) const POLYNOMIALS: [Polynomial; 3] = [
    Polynomial {
        ratio: 1.75,
        tiles: 0b1111,
        shift: 1.233563,
        factor: 2.477582,
        degree: 4,
        coefficients: [0x34b7, 0xb5a7, 0x36e1, 0, 0, 0],
    },
    Polynomial {
        ratio: 2.25,
        tiles: 0b1111,
        shift: 1.1978129,
        factor: -2.9257596,
        degree: 5,
        coefficients: [0xb42c, 0x3535, 0xb593, 0x35b2, 0, 0],
    },
    Polynomial {
        ratio: 3.5,
        tiles: 0b1010,
        shift: 1.1475567,
        factor: -4.932811,
        degree: 7,
        coefficients: [0xb147, 0x32e6, 0xb370, 0x33d9, 0xb499, 0x2b68],
    },
];

/// Largest relative error of a polynomial, rounding of its steps included; only pairs in opposite corners
/// of the boxes come near it, and the root mean square is 2·10⁻⁴.
pub const LARGEST_ERROR: f64 = 8e-3;

/// α is between these, so that α/2048 is a half (the second parts of squares are multiplied by it),
/// and weights, at most [`WEIGHT_SCALE`](super::pack::WEIGHT_SCALE) · α^{3/2} F, are below 2¹⁵.
pub(in crate::schedule) const SMALLEST_ALPHA: f32 = 1.0 / 256.0;
pub(in crate::schedule) const LARGEST_ALPHA: f32 = 32.0;

/// α rounded to six bits, to be a half exactly.
#[inline(always)]
pub(in crate::schedule) fn rounded_alpha(alpha: f32) -> f32 {
    const DROPPED: u32 = f32::MANTISSA_DIGITS - 6;
    let nearest = alpha.to_bits() + (1 << (DROPPED - 1));
    f32::from_bits(nearest >> DROPPED << DROPPED)
}

impl Polynomial {
    /// True if the sources `8 · tile` and on take it.
    #[inline(always)]
    pub(super) const fn takes(&self, tile: u32) -> bool {
        self.tiles >> tile & 1 != 0
    }

    /// Values at a pair of halves, without the factor: Horner's scheme, whose first step needs
    /// no product with a coefficient.
    #[inline(always)]
    pub(super) fn of(&self, x: u32) -> u32 {
        let pair = |k: usize| u32::from(self.coefficients[k]) * 0x0001_0001;
        let mut value = fma_halves(x, x, pair(self.degree - 2));
        let mut k = self.degree - 2;
        while k > 0 {
            k -= 1;
            value = fma_halves(value, x, pair(k));
        }
        value
    }
}
