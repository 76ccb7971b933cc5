//! Conserved quantities of an isolated system, and their drift in a run.

use super::{CompensatedSum, Energy, minus, norm, relative};
use crate::bodies::Bodies;
use crate::physics::Physics;

/// Total momentum `Σ m v`.
pub fn momentum(bodies: &Bodies, physics: &Physics) -> [f64; 3] {
    [&bodies.vx, &bodies.vy, &bodies.vz].map(|v| weighted_sum(bodies, physics, v))
}

/// Total angular momentum about the origin of coordinates, `Σ m x × v`.
pub fn angular_momentum(bodies: &Bodies, physics: &Physics) -> [f64; 3] {
    let Bodies {
        x,
        y,
        z,
        vx,
        vy,
        vz,
        mass,
        ..
    } = bodies;
    let moment = |a: &[f64], vb: &[f64], b: &[f64], va: &[f64]| {
        let mut sum = CompensatedSum::default();
        for i in 0..mass.len() {
            // The two products enter apart: their difference may cancel, their sum need not.
            let weight = physics.weight(mass[i]);
            sum.add(weight * (a[i] * vb[i]));
            sum.add(-weight * (b[i] * va[i]));
        }
        sum.value()
    };
    [
        moment(y, vz, z, vy),
        moment(z, vx, x, vz),
        moment(x, vy, y, vx),
    ]
}

/// Centre of mass `Σ m x / Σ m`; `None` where there is no mass.
pub fn centre_of_mass(bodies: &Bodies, physics: &Physics) -> Option<[f64; 3]> {
    weighted_mean(
        bodies
            .iter()
            .map(|body| (body.position, physics.weight(body.mass))),
    )
}

/// Mean of positions by their weights; `None` where they have none.
pub(super) fn weighted_mean(weighed: impl Iterator<Item = ([f64; 3], f64)>) -> Option<[f64; 3]> {
    let (mut sums, mut total) = ([CompensatedSum::default(); 3], CompensatedSum::default());
    for (position, weight) in weighed {
        total.add(weight);
        for (sum, x) in sums.iter_mut().zip(position) {
            sum.add(weight * x);
        }
    }
    let total = total.value();
    (total > 0.0).then(|| sums.map(|sum| sum.value() / total))
}

fn weighted_sum(bodies: &Bodies, physics: &Physics, values: &[f64]) -> f64 {
    let terms = bodies
        .mass
        .iter()
        .zip(values)
        .map(|(&m, value)| physics.weight(m) * value);
    terms.collect::<CompensatedSum>().value()
}

/// The conserved quantities of one moment, with the sizes that their errors are measured by.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Conserved {
    /// Time of the state.
    pub time: f64,
    /// Energy of the state.
    pub energy: Energy,
    /// `Σ m v`.
    pub momentum: [f64; 3],
    /// `Σ m x × v`, about the origin of coordinates.
    pub angular_momentum: [f64; 3],
    /// `Σ m |v|`: momentum itself is often zero, so this is what its drift is relative to.
    pub momentum_scale: f64,
    /// `Σ m |x| |v|`, likewise for angular momentum.
    pub angular_momentum_scale: f64,
    /// Kinetic energy of the motion of the centre of mass, `|P|² / 2M`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub kinetic_of_whole: f64,
}

impl Conserved {
    /// Takes the measure of `bodies` at `time`. The energy comes from the backend, which has the
    /// O(N²) potential.
    pub fn measure(time: f64, bodies: &Bodies, physics: &Physics, energy: Energy) -> Self {
        let mut mass = CompensatedSum::default();
        let mut momentum_scale = CompensatedSum::default();
        let mut angular_momentum_scale = CompensatedSum::default();
        for i in 0..bodies.len() {
            let speed = norm([bodies.vx[i], bodies.vy[i], bodies.vz[i]]);
            let radius = norm([bodies.x[i], bodies.y[i], bodies.z[i]]);
            let weight = physics.weight(bodies.mass[i]);
            mass.add(weight);
            momentum_scale.add(weight * speed);
            angular_momentum_scale.add(weight * radius * speed);
        }
        let momentum = momentum(bodies, physics);
        let square: f64 = momentum.iter().map(|p| p * p).sum();
        let mass = mass.value();
        Self {
            time,
            energy,
            momentum,
            angular_momentum: angular_momentum(bodies, physics),
            momentum_scale: momentum_scale.value(),
            angular_momentum_scale: angular_momentum_scale.value(),
            kinetic_of_whole: if mass > 0.0 {
                square / (2.0 * mass)
            } else {
                0.0
            },
        }
    }

    /// `2K / |U|` with the kinetic energy in the frame of the centre of mass.
    pub fn virial_ratio(&self) -> f64 {
        let kinetic = (self.energy.kinetic - self.kinetic_of_whole).max(0.0);
        let of_inner = Energy {
            kinetic,
            ..self.energy
        };
        of_inner.virial_ratio()
    }

    /// With what was lost and without what was brought, so that it can be compared with a state before.
    #[must_use]
    pub fn including(mut self, lost: &Lost, brought: &Brought) -> Self {
        (self.energy.lost, self.energy.brought) = (lost.energy, brought.energy);
        for k in 0..3 {
            self.momentum[k] += lost.momentum[k] - brought.momentum[k];
            self.angular_momentum[k] += lost.angular_momentum[k] - brought.angular_momentum[k];
        }
        self
    }

    /// Drift of `self` from an earlier state of the same run.
    pub fn drift_since(&self, start: &Self) -> Drift {
        // A collapse starts at rest; the larger scale of the two is the one that means something.
        let momentum_scale = self.momentum_scale.max(start.momentum_scale);
        let angular_scale = self
            .angular_momentum_scale
            .max(start.angular_momentum_scale);
        Drift {
            energy: self.energy.drift_by(start.energy, start.kinetic_of_whole),
            momentum: relative(norm(minus(self.momentum, start.momentum)), momentum_scale),
            angular_momentum: relative(
                norm(minus(self.angular_momentum, start.angular_momentum)),
                angular_scale,
            ),
        }
    }
}

/// Conserved quantities that mergers and removed bodies took with them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lost {
    /// Energy.
    pub energy: f64,
    /// Momentum.
    pub momentum: [f64; 3],
    /// Angular momentum about the origin; also what spins in merged bodies.
    pub angular_momentum: [f64; 3],
}

impl Lost {
    /// Adds what is missing after a change.
    pub(crate) fn add(&mut self, before: &Conserved, after: &Conserved) {
        self.energy += before.energy.total() - after.energy.total();
        for k in 0..3 {
            self.momentum[k] += before.momentum[k] - after.momentum[k];
            self.angular_momentum[k] += before.angular_momentum[k] - after.angular_momentum[k];
        }
    }
}

/// Quantities that [changes from outside](crate::simulation::Simulation::kick) brought, summed over all changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Brought {
    /// Energy.
    pub energy: f64,
    /// Mass.
    pub mass: f64,
    /// Momentum.
    pub momentum: [f64; 3],
    /// Angular momentum about the origin.
    pub angular_momentum: [f64; 3],
}

impl Brought {
    /// Adds what a change brought, by the states before and after it and their masses.
    pub(crate) fn add(&mut self, [before, after]: [&Conserved; 2], masses: [f64; 2]) {
        self.energy += after.energy.total() - before.energy.total();
        self.mass += masses[1] - masses[0];
        for k in 0..3 {
            self.momentum[k] += after.momentum[k] - before.momentum[k];
            self.angular_momentum[k] += after.angular_momentum[k] - before.angular_momentum[k];
        }
    }
}

/// Relative drift of the conserved quantities between two states; all zero for an exact run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// `|E − E₀|`, relative to `|E₀|` in the frame of the centre of mass, or to a tenth of `K₀ + |U₀|` there.
    /// The larger of the two counts. Not a number where no [two bodies with mass](Energy::has_pairs) attract each
    /// other.
    pub energy: f64,
    /// `|P − P₀| / Σ m |v|`.
    pub momentum: f64,
    /// `|L − L₀| / Σ m |x| |v|`.
    pub angular_momentum: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{Body, BodyKind};
    use crate::diagnostics::tests::GRAVITY;
    use crate::physics::ForceLaw;

    fn pair() -> Bodies {
        let mut bodies = Bodies::with_capacity(2);
        for (mass, position, velocity) in [
            (3.0, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
            (1.0, [-3.0, 0.0, 2.0], [0.0, -3.0, 0.5]),
        ] {
            bodies.push(Body {
                position,
                velocity,
                mass,
                id: 0,
                kind: BodyKind::Star,
            });
        }
        bodies
    }

    #[test]
    fn moments_of_two_bodies() {
        let bodies = pair();
        assert_eq!(momentum(&bodies, &GRAVITY), [0.0, 0.0, 0.5]);
        // 3·(1,0,0)×(0,1,0) + (−3,0,2)×(0,−3,½) = (0,0,3) + (6, 1.5, 9)
        assert_eq!(angular_momentum(&bodies, &GRAVITY), [6.0, 1.5, 12.0]);
        assert_eq!(centre_of_mass(&bodies, &GRAVITY), Some([0.0, 0.0, 0.5]));
        let unit = Physics {
            law: ForceLaw::Unit,
            ..GRAVITY
        };
        assert_eq!(momentum(&bodies, &unit), [0.0, -2.0, 0.5]);
        assert_eq!(centre_of_mass(&bodies, &unit), Some([-1.0, 0.0, 1.0]));
    }

    #[test]
    fn no_mass_has_no_centre() {
        let mut bodies = pair();
        bodies.mass.fill(0.0);
        assert_eq!(centre_of_mass(&bodies, &GRAVITY), None);
        assert_eq!(centre_of_mass(&Bodies::with_capacity(0), &GRAVITY), None);
    }

    /// A tenth of K + |U| where E is nearly 0; what bodies have together counts for nothing.
    #[test]
    fn drifts_are_relative_to_what_bodies_have_among_themselves() {
        let of = |kinetic, potential, external, velocity: f64| {
            let energy = Energy {
                kinetic,
                potential,
                external,
                ..Energy::default()
            };
            let mut bodies = pair();
            (bodies.vx, bodies.vy) = (vec![0.0; 2], vec![0.0; 2]);
            bodies.vz = vec![velocity; 2];
            Conserved::measure(0.0, &bodies, &GRAVITY, energy)
        };
        let drift = |start: Conserved| {
            let mut later = start;
            later.energy.kinetic += 0.25;
            later.drift_since(&start).energy
        };
        assert_eq!(drift(of(1.0, -2.0, 0.0, 0.0)), 0.25);
        assert_eq!(drift(of(201.0, -2.0, 0.0, 10.0)), 0.25);
        assert_eq!(of(201.0, -2.0, 0.0, 10.0).virial_ratio(), 1.0);
        // Above virial equilibrium too; only what is nearly unbound has another scale.
        assert_eq!(drift(of(1.25, -2.0, 0.0, 0.0)), 0.25 / 0.75);
        assert_eq!(drift(of(1.875, -2.5, 0.0, 0.0)), 0.25 / 0.625);
        assert_eq!(drift(of(2.5, -2.5, 0.0, 0.0)), 0.5);
        // Bound bodies in a field, and bodies that only the field holds.
        assert_eq!(drift(of(201.0, -2.0, -300.0, 10.0)), 0.25);
        assert_eq!(drift(of(3.0, -1.0, -6.0, 0.0)), 0.0625);
    }

    /// A drift of 0 would be a comfort that nothing was measured for.
    #[test]
    fn test_particles_have_no_drift() {
        let of = |kinetic, potential| {
            let energy = Energy {
                kinetic,
                potential,
                external: 0.0,
                lost: 0.0,
                brought: 0.0,
            };
            Conserved::measure(0.0, &pair(), &GRAVITY, energy)
        };
        for start in [of(0.0, 0.0), of(3.0, 0.0)] {
            assert!(start.drift_since(&start).energy.is_nan());
        }
        assert_eq!(of(2.0, -1.0).drift_since(&of(1.0, 0.0)).energy, 0.0);
        assert_eq!(of(0.0, 0.0).drift_since(&of(0.0, -1.0)).energy, 1.0);
    }

    #[test]
    fn drift_is_relative_and_nan_shows() {
        let energy = Energy {
            kinetic: 1.0,
            potential: -3.0,
            external: 0.0,
            lost: 0.0,
            brought: 0.0,
        };
        let start = Conserved::measure(0.0, &pair(), &GRAVITY, energy);
        let still = start.drift_since(&start);
        assert_eq!(
            still,
            Drift {
                energy: 0.0,
                momentum: 0.0,
                angular_momentum: 0.0
            }
        );

        let mut later = start;
        later.energy.kinetic = 1.5;
        later.momentum[0] += start.momentum_scale / 8.0;
        later.angular_momentum[1] -= start.angular_momentum_scale / 4.0;
        let drift = later.drift_since(&start);
        // The pair moves as a whole with ½ · 0.5² / 4.
        assert_eq!(drift.energy, 0.5 / (2.0 + 0.03125));
        assert!((drift.momentum - 0.125).abs() <= 1e-15);
        assert!((drift.angular_momentum - 0.25).abs() <= 1e-15);

        later.energy.potential = f64::NAN;
        later.momentum[2] = f64::NAN;
        let drift = later.drift_since(&start);
        assert!(drift.energy.is_nan() && drift.momentum.is_nan());
    }
}
