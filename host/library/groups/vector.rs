//! Vectors in space, as plain arrays: products of the library, and sums.

pub(crate) use crate::vectors::{cross, difference, dot};

/// A vector in space.
pub(crate) type Vector = [f64; 3];

/// `a + b`.
#[inline]
pub(crate) fn add(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// `s a`.
#[inline]
pub(crate) fn scale(s: f64, a: Vector) -> Vector {
    [s * a[0], s * a[1], s * a[2]]
}

/// `a + s b`.
#[inline]
pub(crate) fn add_scaled(a: Vector, s: f64, b: Vector) -> Vector {
    [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]]
}

/// Length of a vector. Its square must be within the range of numbers.
#[inline]
pub(crate) fn norm(a: Vector) -> f64 {
    dot(a, a).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_vectors() {
        let (a, b) = ([1.0, 2.0, 3.0], [-2.0, 0.5, 4.0]);
        assert_eq!(add(a, b), [-1.0, 2.5, 7.0]);
        assert_eq!(difference(a, b), [3.0, 1.5, -1.0]);
        assert_eq!(scale(2.0, a), [2.0, 4.0, 6.0]);
        assert_eq!(add_scaled(a, 2.0, b), [-3.0, 3.0, 11.0]);
        assert_eq!(dot(a, b), 11.0);
        assert_eq!(cross(a, b), [6.5, -10.0, 4.5]);
        assert_eq!(norm([2.0, 3.0, 6.0]), 7.0);
    }
}
