//! Accelerations of slices, in one call.

use crate::backend::Backend;
use crate::bodies::{Bodies, BodyFault};
use crate::force::cpu::Cpu;
use crate::physics::{ForceLaw, Physics};
use crate::settings::Setting;
use crate::simulation::BuildError;

/// Accelerations of bodies by all others under Newton's gravity with G = 1, in double precision on all
/// cores of the CPU: `positions` and `masses` of each, softened by ε = `softening`.
///
/// ```
/// let forces = allpairs::accelerations(&[[0.0; 3], [2.0, 0.0, 0.0]], &[1.0, 3.0], 0.0)?;
/// assert_eq!(forces, [[0.75, 0.0, 0.0], [-0.25, 0.0, 0.0]]);
/// # Ok::<(), allpairs::BuildError>(())
/// ```
///
/// # Errors
/// Slices of unequal lengths, numbers that are not finite, a negative mass or softening.
pub fn accelerations(
    positions: &[[f64; 3]],
    masses: &[f64],
    softening: f64,
) -> Result<Vec<[f64; 3]>, BuildError> {
    if masses.len() != positions.len() {
        return Err(BuildError::Bodies(BodyFault::Length {
            field: "mass",
            expected: positions.len(),
            found: masses.len(),
        }));
    }
    let bodies = Bodies::at_rest(positions, masses);
    bodies.check()?;
    if !(softening.is_finite() && softening >= 0.0) {
        return Err(BuildError::Value {
            name: Setting::Softening,
            allowed: "≥ 0 and finite",
            value: softening,
        });
    }
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening,
    };
    let mut cpu = Cpu::<f64>::new(&bodies, physics);
    cpu.accelerate()?;
    Ok(cpu.accelerations()?)
}
