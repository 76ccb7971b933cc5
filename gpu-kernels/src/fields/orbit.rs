//! The orbit of the origin of coordinates: polynomials in time, one after another.
//!
//! ```text
//! COUNT             how many pieces there are
//! PIECE per piece   when it begins; the time and the span that its argument is counted by; then x, y
//!                   and z, of each the coefficients of a polynomial, the constant one first
//! ```

use super::jet::Jet;
use super::{Numbers, last_before};

/// Coefficients of an axis of a piece.
pub const COEFFICIENTS: u32 = 10;
/// Numbers of a piece.
pub const PIECE: u32 = 3 + 3 * COEFFICIENTS;

/// Part of a piece's span by which a time may be beyond its ends: what rounding of times leaves.
const BEYOND: f64 = 1e-6;

/// Position of the origin at a time, by pieces whose count is the number with index `first`. It is not a
/// number where the pieces do not reach.
#[inline(always)]
pub fn origin<const K: usize>(
    numbers: &(impl Numbers + ?Sized),
    first: u32,
    time: f64,
) -> [Jet<K>; 3] {
    let count = numbers.number(first) as u32;
    let pieces = first + 1;
    let piece = pieces + last_before(numbers, (pieces, PIECE), count, time) * PIECE;
    let (base, span) = (numbers.number(piece + 1), numbers.number(piece + 2));
    let passed = (time - base) / span;
    let is_known = (-BEYOND..=1.0 + BEYOND).contains(&passed);
    let mut t = Jet::constant(if is_known { passed } else { f64::NAN });
    if K > 1 {
        t.0[1] = 1.0 / span;
    }
    let along = |axis: u32| {
        let coefficients = piece + 3 + axis * COEFFICIENTS;
        let mut sum = Jet::constant(numbers.number(coefficients + COEFFICIENTS - 1));
        let mut power = COEFFICIENTS - 1;
        while power > 0 {
            power -= 1;
            sum = sum * t + numbers.number(coefficients + power);
        }
        sum
    };
    [along(0), along(1), along(2)]
}
