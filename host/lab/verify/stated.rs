//! Statistics of the errors of all forces, held against the error that a variant states.
//!
//! The bound of each body has to hold in the worst case, so it is far above typical errors. Root mean
//! square and total force have narrow distributions, which show errors that no single body does: a factor
//! on all forces, and a source that is missing among very many.

use std::collections::HashSet;

use super::Case;
use allpairs::bodies::Bodies;
use allpairs::diagnostics::{CompensatedSum, Disagreement, ReferenceForce};
use allpairs::frame::Frame;
use allpairs::variants::{CpuPath, Method, RootName, Variant};

/// Reason why forces are wrong.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Wrong {
    /// One body's.
    #[error(transparent)]
    Body(#[from] Disagreement),
    /// Forces on many bodies.
    #[error(
        "the errors of the forces are {times:.1} times as large as stated, {stated:.1e} (root mean square); no \
         more than {TIMES} times are allowed"
    )]
    Rms {
        /// Error in units of the stated one.
        times: f64,
        /// Stated error.
        stated: f64,
    },
    /// Sum of all forces, which is zero.
    #[error(
        "the sum of all forces is {sum:.1e} of their sizes; their errors explain no more than {bound:.1e}"
    )]
    Total {
        /// Size of the sum, in units of the sum of the sizes.
        sum: f64,
        /// Largest such sum that the errors explain.
        bound: f64,
    },
}

/// Number of times the stated error that is allowed: bodies lie otherwise than those of which it is stated,
/// and devices round otherwise.
const TIMES: f64 = 3.0;

/// Number of standard deviations that the sum of all forces may be from zero.
const DEVIATIONS: f64 = 3.0;

/// Part of the stated error that bodies may have in common: neighbours see like partial sums where
/// places follow each other regularly, as they do in our cube (0.08 was measured there for the
/// longest sums), and tensor cores always round towards zero.
const IN_COMMON: f64 = 0.125;

/// Returns whether forces on most bodies have errors of their own: they do not where several stand at one
/// place and feel the same terms, or are summed from such terms.
pub(super) fn are_independent(bodies: &Bodies) -> bool {
    let place = |i| [bodies.x[i], bodies.y[i], bodies.z[i]].map(f64::to_bits);
    let places: HashSet<_> = (0..bodies.len()).map(place).collect();
    2 * places.len() >= bodies.len()
}

impl Case {
    /// Checks the root mean square of the errors, each in units of what is stated of that body.
    ///
    /// The stated error is relative to the force; or where contributions cancel, to the root of the sum
    /// of their squares, for their own roundings remain. To it comes what rounding of the stored
    /// coordinates costs that body: a few close pairs would hide all others.
    pub(super) fn check_rms(
        &self,
        variant: &Variant,
        accelerations: &[[f64; 3]],
    ) -> Result<(), Wrong> {
        let stated = variant.stated_error(self.bodies_each());
        let frame = Frame::of(&self.bodies, &self.physics);
        let stored = match variant.method {
            Method::Reference => 0.0,
            _ => variant.stored().unit_roundoff(),
        };
        let square = |(&i, field): (&usize, &ReferenceForce)| {
            let error = [0, 1, 2].map(|axis| accelerations[i][axis] - field.acceleration[axis]);
            if error == [0.0; 3] {
                return 0.0;
            }
            let at = [self.bodies.x[i], self.bodies.y[i], self.bodies.z[i]];
            let distance = [0, 1, 2].map(|axis| (at[axis] - frame.centre[axis]).abs());
            let moved = stored * distance.into_iter().fold(0.0, f64::max);
            let size = norm(field.acceleration).max(field.scatter);
            let expected = (stated * size).hypot(moved * field.gradient_scatter);
            (norm(error) / expected).powi(2)
        };
        let sum: f64 = self.targets.iter().zip(&self.expected).map(square).sum();
        let times = (sum / self.targets.len().max(1) as f64).sqrt();
        // Not `times > TIMES`: NaN has to fail.
        if times <= TIMES {
            Ok(())
        } else {
            Err(Wrong::Rms { times, stated })
        }
    }

    /// Checks that the forces on all bodies add up to zero.
    ///
    /// Two bodies' forces on each other are opposite, with all errors of their separation and of an
    /// estimated root; what is left to each body are roundings of its own. They are independent but for a
    /// small part, so their sum is smaller than that of the forces by the root of the number of bodies.
    pub(super) fn check_total(
        &self,
        variant: &Variant,
        accelerations: &[[f64; 3]],
    ) -> Result<(), Wrong> {
        let mut own = *variant;
        if let Method::Cpu(CpuPath { root, .. }) = &mut own.method {
            *root = RootName::Exact;
        }
        let mut sizes: Vec<f64> = accelerations.iter().copied().map(norm).collect();
        for (&i, field) in self.targets.iter().zip(&self.expected) {
            sizes[i] = sizes[i].max(field.scatter);
        }
        let mut total = [CompensatedSum::default(); 3];
        let (mut sum_of_sizes, mut squares) = (0.0, 0.0);
        for (i, body) in self.bodies.iter().enumerate() {
            let weight = self.physics.weight(body.mass);
            // Drag is no force between bodies. Those without mass do not feel it.
            let drag = match body.mass {
                mass if mass > 0.0 => self.physics.damping(),
                _ => 0.0,
            };
            for (axis, total) in total.iter_mut().enumerate() {
                total.add(weight * accelerations[i][axis]);
                total.add(drag * body.velocity[axis]);
            }
            sum_of_sizes += weight * sizes[i];
            squares += (weight * sizes[i]).powi(2);
        }
        let total = norm(total.map(CompensatedSum::value));
        let stated = own.stated_error(self.bodies_each());
        let independent = DEVIATIONS * TIMES * squares.sqrt();
        let bound = stated * (independent + IN_COMMON * sum_of_sizes);
        // Not `total > bound`: NaN has to fail.
        if total <= bound {
            Ok(())
        } else {
            let [sum, bound] = [total, bound].map(|force| force / sum_of_sizes);
            Err(Wrong::Total { sum, bound })
        }
    }

    /// Bodies of a system.
    fn bodies_each(&self) -> usize {
        self.bodies.len() / self.systems as usize
    }
}

fn norm(vector: [f64; 3]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}
