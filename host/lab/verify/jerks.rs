//! Jerks of the kernels that compute them, held against the reference like accelerations.

use super::Case;
use super::bounds::{additions, pair_ulps};
use allpairs::backend::ForceError;
use allpairs::diagnostics::{self, Disagreement};
use allpairs::force::reference;
use allpairs::machine::Machine;
use allpairs::variants::{Method, Variant};

/// Vectors of all bodies.
type Vectors = Vec<[f64; 3]>;

impl Case {
    /// Like [`check`](Self::check), but for the jerks of a variant.
    ///
    /// # Errors
    /// The first body with a jerk that rounding does not explain.
    ///
    /// # Panics
    /// If the jerks are not of the case's bodies.
    pub(crate) fn check_jerks(
        &self,
        variant: &Variant,
        jerks: &[[f64; 3]],
    ) -> Result<(), Disagreement> {
        let computed = variant.precision().unit_roundoff();
        let additions = additions(variant, self.bodies.len());
        // A pair's jerk has 1/√ five times where its acceleration has it three times, and 12 of its
        // own: velocities 2, their difference and r·v 4, the factor and two products 3, two sums 3.
        let ulps = 2.0 * pair_ulps(variant, self.physics.law);
        let tolerance = diagnostics::tolerance(computed, additions, ulps);
        let (_, position_error) = self.allowance(variant);
        let expected = reference::jerks_of(&self.bodies, &self.physics, &self.targets);
        diagnostics::check(&self.pick(jerks), &expected, tolerance, position_error)
    }
}

/// Accelerations, and jerks too of a kernel that is made for them.
pub(super) fn with_accelerations(
    machine: &Machine,
    variant: &Variant,
    case: &Case,
) -> Result<(Vectors, Option<Vectors>), ForceError> {
    let variant = variant.of_systems(case.systems);
    let mut backend = machine.backend(&variant, &case.bodies, case.physics)?;
    backend.accelerate()?;
    let accelerations = backend.accelerations()?;
    let is_kernel = matches!(variant.method, Method::Kernel { .. });
    if !(is_kernel && variant.gives_jerks()) {
        return Ok((accelerations, None));
    }
    let saved = backend.save()?;
    let unit = saved.frame.time;
    let jerks = saved.jerks().iter().map(|&jerk| {
        let jerk = saved.frame.acceleration_from_local(jerk);
        jerk.map(|component| component / unit)
    });
    Ok((accelerations, Some(jerks.collect())))
}
