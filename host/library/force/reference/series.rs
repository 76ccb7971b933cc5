//! Numbers with their derivatives: up to the second in time, and of each of these the gradient in space.

use std::ops::{Add, Mul, Sub};

/// A number that changes with the time t, and with a shift of the position: for k from 0 to 2 the coefficient of `tᵏ`,
/// then the coefficients of `tᵏ` times the shift along each axis.
///
/// In this algebra `t³` is zero, and so is the product of two shifts. The fourth power of a number without a constant
/// part is zero then. So Taylor's series of a function ends with its third derivative.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number([[f64; 4]; 3]);

impl Number {
    /// A number that does not change.
    pub(super) fn constant(value: f64) -> Self {
        Self::moving([value, 0.0, 0.0])
    }

    /// A number that has this value, and these first and second derivatives in time.
    pub(super) fn moving([value, first, second]: [f64; 3]) -> Self {
        Self([value, first, second / 2.0].map(|coefficient| [coefficient, 0.0, 0.0, 0.0]))
    }

    /// The same number as a coordinate of the position: it grows with the shift along its axis.
    pub(super) fn shifted(mut self, axis: usize) -> Self {
        self.0[0][1 + axis] += 1.0;
        self
    }

    /// The value.
    pub(super) fn value(self) -> f64 {
        self.0[0][0]
    }

    /// The derivative in time of this order.
    pub(super) fn derivative(self, order: usize) -> f64 {
        self.of_order(order)[0]
    }

    /// Gradient of the derivative in time of this order.
    pub(super) fn gradient(self, order: usize) -> [f64; 3] {
        let [_, x, y, z] = self.of_order(order);
        [x, y, z]
    }

    fn of_order(self, order: usize) -> [f64; 4] {
        let factorial = [1.0, 1.0, 2.0][order];
        self.0[order].map(|coefficient| factorial * coefficient)
    }

    /// Function of the number that has this value there, and these first three derivatives.
    pub(super) fn through(self, [value, first, second, third]: [f64; 4]) -> Self {
        let change = self - Self::constant(self.value());
        let square = change * change;
        let cube = square * change;
        Self::constant(value) + change * first + square * (second / 2.0) + cube * (third / 6.0)
    }

    /// Power of a number > 0.
    pub(super) fn power(self, exponent: f64) -> Self {
        let x = self.value();
        let value = x.powf(exponent);
        let first = exponent * value / x;
        let second = (exponent - 1.0) * first / x;
        self.through([value, first, second, (exponent - 2.0) * second / x])
    }

    /// Natural logarithm of a number > 0.
    pub(super) fn ln(self) -> Self {
        let x = self.value();
        self.through([x.ln(), 1.0 / x, -1.0 / (x * x), 2.0 / (x * x * x)])
    }

    /// `e` to the power of the number.
    pub(super) fn exp(self) -> Self {
        self.through([self.value().exp(); 4])
    }

    /// Function that has this value there, and this function as its derivative.
    pub(super) fn with_slope(self, value: f64, slope: impl Fn(Self) -> Self) -> Self {
        let along = slope(Self::moving([self.value(), 1.0, 0.0]));
        let [first, second, third] = [0, 1, 2].map(|order| along.derivative(order));
        self.through([value, first, second, third])
    }
}

impl Add for Number {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self([0, 1, 2].map(|k| [0, 1, 2, 3].map(|part| self.0[k][part] + other.0[k][part])))
    }
}

impl Sub for Number {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + other * -1.0
    }
}

impl Mul for Number {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let mut product = [[0.0; 4]; 3];
        for (k, [a, shifts @ ..]) in self.0.into_iter().enumerate() {
            for (l, [b, other_shifts @ ..]) in other.0.into_iter().enumerate().take(3 - k) {
                let [value, gradient @ ..] = &mut product[k + l];
                *value += a * b;
                for axis in 0..3 {
                    gradient[axis] += a * other_shifts[axis] + b * shifts[axis];
                }
            }
        }
        Self(product)
    }
}

impl Add<f64> for Number {
    type Output = Self;

    fn add(self, other: f64) -> Self {
        self + Self::constant(other)
    }
}

impl Mul<f64> for Number {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self(self.0.map(|parts| parts.map(|part| factor * part)))
    }
}

/// Scalar product of two vectors.
pub(super) fn dot(a: [Number; 3], b: [Number; 3]) -> Number {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `x³ y²` of x = 2 + 3t + t² and y = 5 − t, by hand.
    #[test]
    fn derivatives_of_a_product_by_hand() {
        let x = Number::moving([2.0, 3.0, 2.0]).shifted(0);
        let y = Number::moving([5.0, -1.0, 0.0]).shifted(1);
        for product in [
            x * x * x * y * y,
            x.power(3.0) * y.power(2.0),
            (x.ln() * 3.0 + y.ln() * 2.0).exp(),
            x.with_slope(8.0, |x| x * x * 3.0) * y.with_slope(25.0, |y| y * 2.0),
        ] {
            // x³ = 8 + 36t + 66t² + …, y² = 25 − 10t + t².
            let expected = [200.0, 820.0, 2.0 * (66.0 * 25.0 - 360.0 + 8.0)];
            // 3x² = 12 + 36t + 39t² + …, 2y = 10 − 2t.
            let of_x = [300.0, 780.0, 2.0 * (39.0 * 25.0 - 360.0 + 12.0)];
            let of_y = [80.0, 344.0, 2.0 * (660.0 - 72.0)];
            for order in 0..3 {
                let [x, y, z] = product.gradient(order);
                for (found, expected) in [
                    (product.derivative(order), expected[order]),
                    (x, of_x[order]),
                    (y, of_y[order]),
                ] {
                    assert!(
                        (found / expected - 1.0).abs() <= 1e-14,
                        "{order}: {found} {expected}"
                    );
                }
                assert_eq!(z, 0.0);
            }
        }
    }
}
