//! Energy of a state.

use std::iter::Sum;

use super::{CompensatedSum, relative};
use crate::bodies::Bodies;
use crate::physics::Physics;

/// Share of `K + |U|` that a drift of the energy is relative to at least.
const LEAST_SCALE: f64 = 0.1;

/// Energy of a state, in mass · length² / time² of the run's units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Energy {
    /// `½ Σ m v²`.
    pub kinetic: f64,
    /// `−G Σ_{i<j} m_i m_j / d_ij` with the softened distance `d² = |r|² + ε²`.
    pub potential: f64,
    /// Energy in [external fields](crate::fields), `Σ m φ`; 0 where there are none. Of bodies in their own
    /// frame on an orbit, what they have [beyond the orbit](crate::fields::External::energy).
    pub external: f64,
    /// Energy that mergers and removed bodies took with them ([encounters](crate::encounters)).
    pub lost: f64,
    /// Energy that [changes from outside](crate::simulation::Simulation::kick) brought.
    #[cfg_attr(feature = "serde", serde(default))]
    pub brought: f64,
}

impl Energy {
    /// Kinetic plus potential energy, that in external fields and that which was lost too, less what changes from
    /// outside brought.
    pub fn total(self) -> f64 {
        self.kinetic + self.potential + self.external + self.lost - self.brought
    }

    /// Returns whether two bodies with mass attract each other, or one is in an external field. If not,
    /// only test particles move on orbits. The energy does not include them, so its drift says nothing
    /// about the run.
    pub fn has_pairs(self) -> bool {
        self.potential != 0.0 || self.external != 0.0
    }

    /// `|E − E₀|` since `start`, relative to `|E₀|`, or to a tenth of `K₀ + |U₀|` if that is more, but at most to `|U₀|`.
    /// Infinite where this is zero and the change is not. Not a number where no [two bodies with mass](Self::has_pairs) attract each other.
    ///
    /// The centre of mass is taken to rest. [`Conserved::drift_since`](super::Conserved::drift_since) knows whether it
    /// moves.
    pub fn drift_since(self, start: Self) -> f64 {
        self.drift_by(start, 0.0)
    }

    /// Like [`drift_since`](Self::drift_since), where the bodies as a whole began with the kinetic energy `whole`.
    pub fn drift_by(self, start: Self, whole: f64) -> f64 {
        match self.has_pairs() || start.has_pairs() {
            true => relative((self.total() - start.total()).abs(), start.scale(whole)),
            false => f64::NAN,
        }
    }

    /// Energy that a drift is relative to, where the bodies as a whole move with the kinetic energy `whole`:
    /// `|E|`, or a [share](LEAST_SCALE) of `K + |U|` if that is more, but at most `|U|`. Of bound
    /// bodies it is `|E|` unless `2K/|U|` is from 1.64 to 2.44. It is never 0 where bodies attract each other.
    /// Errors of forces and steps are errors of `U`, however fast unbound bodies part.
    ///
    /// Bound bodies are judged without their motion as a whole, in external fields too. Bodies that fields hold are
    /// judged by their whole energy, and by the same share of `K + |U|` and their energy in the fields.
    fn scale(self, whole: f64) -> f64 {
        let inner = (self.kinetic - whole).max(0.0);
        let (bound, energy) = (self.potential.abs(), self.potential + self.external);
        match self.external == 0.0 || inner < bound {
            true => (inner + self.potential)
                .abs()
                .max(LEAST_SCALE * (inner + bound))
                .min(if bound > 0.0 { bound } else { f64::INFINITY }),
            false => {
                let sizes = self.kinetic + bound + self.external.abs();
                (self.kinetic + energy).abs().max(LEAST_SCALE * sizes)
            }
        }
    }

    /// `2K / |W|`: 1 for a system in virial equilibrium, 0 for one at rest, 2 for one that is
    /// just unbound. NaN where there is neither kinetic nor potential energy.
    pub fn virial_ratio(self) -> f64 {
        2.0 * self.kinetic / self.potential.abs()
    }
}

/// That of independent systems, added in their order.
impl Sum for Energy {
    fn sum<I: Iterator<Item = Self>>(energies: I) -> Self {
        energies.fold(Self::default(), |sum, energy| Self {
            kinetic: sum.kinetic + energy.kinetic,
            potential: sum.potential + energy.potential,
            external: sum.external + energy.external,
            lost: sum.lost + energy.lost,
            brought: sum.brought + energy.brought,
        })
    }
}

/// A look at the energy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyLook {
    /// Steps done.
    pub steps: u64,
    /// Time reached.
    pub time: f64,
    /// Drift of the energy, as in [`Sample::energy_drift`](super::Sample::energy_drift).
    pub drift: f64,
    /// Energy measured.
    pub energy: Energy,
}

impl EnergyLook {
    /// The drift, which may be not a number; none if there is no energy to judge by.
    pub fn judged(&self) -> Option<f64> {
        (!self.drift.is_nan() || self.energy.has_pairs()).then_some(self.drift)
    }

    /// Returns whether the energy has drifted by more than `bound`: a drift that is not a number has
    /// passed every bound, unless there is no energy to judge by.
    pub fn has_drifted(&self, bound: f64) -> bool {
        self.judged()
            .is_some_and(|drift| drift.is_nan() || drift > bound)
    }
}

/// Kinetic energy `½ Σ m v²`, compensated.
pub fn kinetic(bodies: &Bodies, physics: &Physics) -> f64 {
    let sum: CompensatedSum = (0..bodies.len())
        .map(|i| {
            let [x, y, z] = [bodies.vx[i], bodies.vy[i], bodies.vz[i]];
            physics.weight(bodies.mass[i]) * (x * x + y * y + z * z)
        })
        .collect();
    0.5 * sum.value()
}

/// Motion that tells of a wrong G, by the `2K / |U|` of the start; none where G may be right.
pub fn odd_motion(virial_ratio: f64) -> Option<&'static str> {
    const MUCH: f64 = 100.0;
    const LITTLE: f64 = 1e-5;
    match virial_ratio {
        ratio if ratio.is_finite() && ratio > MUCH => Some("fly apart"),
        ratio if 0.0 < ratio && ratio < LITTLE => Some("fall onto each other"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{Body, BodyKind};
    use crate::physics::ForceLaw;

    #[test]
    fn kinetic_energy_follows_the_law() {
        let mut bodies = Bodies::with_capacity(2);
        for (mass, velocity) in [(2.0, [1.0, 2.0, 2.0]), (0.0, [3.0, 0.0, 4.0])] {
            bodies.push(Body {
                position: [0.0; 3],
                velocity,
                mass,
                id: 0,
                kind: BodyKind::Star,
            });
        }
        let mut physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: 0.0,
        };
        assert_eq!(kinetic(&bodies, &physics), 9.0);
        physics.law = ForceLaw::Unit;
        assert_eq!(kinetic(&bodies, &physics), 17.0);
    }

    #[test]
    fn virial_ratio_of_a_circular_orbit() {
        // Two unit masses at distance 2, G = 1: v² = 1/4 each, W = −1/2.
        let energy = Energy {
            kinetic: 0.25,
            potential: -0.5,
            external: 0.0,
            lost: 0.0,
            brought: 0.0,
        };
        assert_eq!(energy.virial_ratio(), 1.0);
        assert_eq!(energy.total(), -0.25);
        assert!(Energy::default().virial_ratio().is_nan());
        assert!(energy.has_pairs() && !Energy::default().has_pairs());
    }
}
