//! Errors of a computed force: statistics, and the bound that rounding allows.

use super::{minus, norm, relative};

/// Acceleration of one body — of [`jerks_of`](crate::force::reference::jerks_of), its jerk — with the two sums that errors of a
/// computed one are measured by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferenceForce {
    /// `G Σ_j m_j r / d³`, or what else the law says.
    pub acceleration: [f64; 3],
    /// `Σ_j |a_ij|`: the rounding error of a sum is a multiple of this, not of the sum.
    pub scale: f64,
    /// `2 |G| Σ_j m_j / d³ ≥ Σ_j ‖∂a_ij/∂r‖`, and for repulsion `4 |H| Σ_j m_j / d⁵`: how much an error in the
    /// separations matters.
    pub gradient: f64,
    /// `√(Σ_j |a_ij|²)`: what the errors of the terms add up to where they are independent.
    pub scatter: f64,
    /// Like [`gradient`](Self::gradient), but for independent errors of the separations: the root of
    /// the sum of the squares of its terms.
    pub gradient_scatter: f64,
}

impl ReferenceForce {
    /// The largest `|a − a_ref|` that rounding explains: `tolerance` (see
    /// [`tolerance`]) of the terms, plus what separations that are
    /// off by `position_error` make of them. First order in `position_error`, hence meant for
    /// errors well below the distances (or below ε).
    pub fn bound(&self, tolerance: f64, position_error: f64) -> f64 {
        tolerance * self.scale + position_error * self.gradient
    }
}

/// Two results that do not belong to the same bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot compare {computed} bodies with a reference of {reference}: both must come from the same state"
)]
pub struct LengthMismatch {
    /// Number of bodies in the result under test.
    pub computed: usize,
    /// Number of bodies in the reference.
    pub reference: usize,
}

impl LengthMismatch {
    pub(super) fn check(computed: usize, reference: usize) -> Result<(), Self> {
        if computed == reference {
            Ok(())
        } else {
            Err(Self {
                computed,
                reference,
            })
        }
    }
}

/// Error of computed accelerations against the f64 reference.
///
/// NaN counts as an infinite error, so no finite tolerance lets it pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Root mean square over bodies of `|a − a_ref| / |a_ref|`.
    pub rms_relative: f64,
    /// Largest `|a − a_ref| / |a_ref|`. Large where the contributions to a body nearly cancel,
    /// however well each is computed.
    pub max_relative: f64,
}

impl Accuracy {
    /// Compares accelerations with the reference, body by body. No bodies: no error.
    ///
    /// # Errors
    /// The two do not hold the same number of bodies.
    pub fn of(computed: &[[f64; 3]], reference: &[ReferenceForce]) -> Result<Self, LengthMismatch> {
        LengthMismatch::check(computed.len(), reference.len())?;
        let no_nan = |error: f64| if error.is_nan() { f64::INFINITY } else { error };
        let mut accuracy = Self {
            rms_relative: 0.0,
            max_relative: 0.0,
        };
        let mut squares = 0.0;
        for (&a, field) in computed.iter().zip(reference) {
            let error = norm(minus(a, field.acceleration));
            let error = no_nan(relative(error, norm(field.acceleration)));
            squares += error * error;
            accuracy.max_relative = accuracy.max_relative.max(error);
        }
        accuracy.rms_relative = (squares / computed.len().max(1) as f64).sqrt();
        Ok(accuracy)
    }
}

/// Relative error, against `Σ_j |a_ij|`, that rounding allows a sum of pair accelerations.
///
/// Adding n terms one after another in arithmetic of unit roundoff u is off by at most
/// `(n − 1) u Σ|terms|` to first order (N. Higham, Accuracy and Stability of Numerical Algorithms, ch. 4),
/// which needs all roundings to point the same way. Where they are independent and zero in the mean, it is
/// off by more than `λ √n u Σ|terms|` with a probability below `2 exp(−λ²/2)` (N. Higham and T. Mary, A new
/// approach to probabilistic rounding error analysis, 2019). λ = 7 makes that 5·10⁻¹¹, for all the sums
/// that a verification checks less than one in a hundred; where 7 √n is the larger bound, n holds.
///
/// Each term arrives with an error of `pair_ulps`·u of its own, and this counts in full: bodies at
/// like distances have like errors. The bound holds per component, hence the √3 for the vector.
///
/// * `unit_roundoff`: 2⁻⁵³ for f64, 2⁻²⁴ for f32, 2⁻¹¹ for f16.
/// * `additions`: the longest chain of additions that a term goes through: N for a plain loop;
///   for blocks of B summed in a wider type, B.
/// * `pair_ulps`: error of one pair's acceleration in units of u, its separation taken as exact.
///
/// NaN where the arithmetic is too coarse for so long a chain to bound anything (ku ≥ 1): a
/// tolerance that would prove nothing must not let anything pass.
///
/// ```
/// // f32, 262 144 bodies in tiles of 256, pairs with an approximate root:
/// let tolerance = allpairs::diagnostics::tolerance(2f64.powi(-24), 256 + 1024, 43.5);
/// assert!((tolerance / 3.0e-5 - 1.0).abs() < 0.05);
/// ```
pub fn tolerance(unit_roundoff: f64, additions: usize, pair_ulps: f64) -> f64 {
    const LAMBDA: f64 = 7.0;
    let additions = additions as f64;
    let k = (additions.min(LAMBDA * additions.sqrt()) + pair_ulps) * unit_roundoff;
    if k < 1.0 {
        3f64.sqrt() * k / (1.0 - k)
    } else {
        f64::NAN
    }
}

/// Accelerations that cannot be explained by rounding.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Disagreement {
    /// Not the same bodies.
    #[error(transparent)]
    Lengths(#[from] LengthMismatch),
    /// A body with an error beyond its bound, or NaN.
    #[error(
        "the acceleration of body {body} is off by {error:e}; rounding explains no more than {bound:e}"
    )]
    Bound {
        /// Index of the first such body.
        body: usize,
        /// `|a − a_ref|`.
        error: f64,
        /// Error that [`ReferenceForce::bound`] allows.
        bound: f64,
    },
}

/// Checks every acceleration against [`ReferenceForce::bound`].
///
/// `tolerance` comes from [`tolerance`]; `position_error` is the absolute error, as a vector, of
/// a separation x_j − x_i as the kernel sees it (rounding of both stored positions).
///
/// # Errors
/// The first body beyond its bound (NaN always is), or different numbers of bodies.
pub fn check(
    computed: &[[f64; 3]],
    reference: &[ReferenceForce],
    tolerance: f64,
    position_error: f64,
) -> Result<(), Disagreement> {
    LengthMismatch::check(computed.len(), reference.len())?;
    for (body, (&a, field)) in computed.iter().zip(reference).enumerate() {
        let error = norm(minus(a, field.acceleration));
        let bound = field.bound(tolerance, position_error);
        // Not `error > bound`: a NaN on either side has to fail.
        let explained = error <= bound;
        if !explained {
            return Err(Disagreement::Bound { body, error, bound });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(x: f64, scale: f64) -> ReferenceForce {
        ReferenceForce {
            acceleration: [x, 0.0, 0.0],
            scale,
            gradient: 10.0,
            scatter: scale,
            gradient_scatter: 10.0,
        }
    }

    #[test]
    fn statistics_of_known_errors() {
        let reference = [field(1.0, 1.0), field(2.0, 100.0), field(0.0, 0.0)];
        let computed = [[1.0, 0.003, 0.004], [2.0, 0.0, 0.2], [0.0; 3]];
        let accuracy = Accuracy::of(&computed, &reference).unwrap();
        assert!((accuracy.max_relative - 0.1).abs() <= 1e-15);
        let rms = ((0.005f64.powi(2) + 0.1f64.powi(2)) / 3.0).sqrt();
        assert!((accuracy.rms_relative - rms).abs() <= 1e-15);
    }

    #[test]
    fn nan_never_passes() {
        let reference = [field(1.0, 1.0), field(1.0, 1.0)];
        for bad in [f64::NAN, f64::INFINITY] {
            let computed = [[1.0, bad, 0.0], [1.0, 0.0, 0.0]];
            let accuracy = Accuracy::of(&computed, &reference).unwrap();
            for statistic in [accuracy.rms_relative, accuracy.max_relative] {
                assert_eq!(statistic, f64::INFINITY);
            }
            let fault = check(&computed, &reference, 1e300, 0.0).unwrap_err();
            assert!(matches!(fault, Disagreement::Bound { body: 0, .. }));
        }
        let exact = [[1.0, 0.0, 0.0]; 2];
        assert!(check(&exact, &reference, f64::NAN, 0.0).is_err());
        assert!(check(&exact, &reference, 0.0, 0.0).is_ok());
    }

    #[test]
    fn nothing_pulls_so_any_acceleration_is_wrong() {
        let accuracy = Accuracy::of(&[[1e-30, 0.0, 0.0]], &[field(0.0, 0.0)]).unwrap();
        assert_eq!(accuracy.max_relative, f64::INFINITY);
    }

    #[test]
    fn bound_adds_rounding_and_position_error() {
        let reference = [field(1.0, 1.0)];
        let off_by = |error| [[1.0 + error, 0.0, 0.0]];
        assert!(check(&off_by(0.019), &reference, 0.01, 0.001).is_ok());
        assert!(check(&off_by(0.021), &reference, 0.01, 0.001).is_err());
        assert_eq!(check(&[], &[], f64::NAN, f64::NAN), Ok(()));
        assert!(check(&[], &reference, 1.0, 1.0).is_err());
    }

    #[test]
    fn tolerance_grows_with_the_chain_until_it_means_nothing() {
        let u = 2f64.powi(-24);
        for (additions, k) in [(12, 20.0), (49, 57.0), (100, 78.0), (10_000, 708.0)] {
            let expected = 3f64.sqrt() * k * u;
            assert!((tolerance(u, additions, 8.0) / expected - 1.0).abs() <= 1e-4);
        }
        assert!(tolerance(2f64.powi(-11), 1 << 17, 8.0).is_nan());
        assert!(tolerance(u, 256, 8.0) < tolerance(u, 512, 8.0));
    }
}
