//! Samples of a run: conserved quantities and the distribution of mass at one moment.

use super::{CompensatedSum, Conserved, EnergyLook, centre_of_mass, core_centre, minus, norm};
use crate::bodies::Bodies;
use crate::physics::Physics;
use crate::units::Measured;

/// Shares of the mass for the [`lagrangian_radii`] of a [`Sample`].
pub const MASS_SHARES: [f64; 3] = [0.1, 0.5, 0.9];

/// One look at a run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sample {
    /// Steps done since the simulation began.
    pub steps: u64,
    /// Energy, momentum and angular momentum, and the time.
    pub conserved: Conserved,
    /// Drift of the energy since the beginning, as in [`Drift::energy`](super::Drift::energy).
    pub energy_drift: f64,
    /// Centre of mass; not a number where there is no mass.
    pub centre_of_mass: [f64; 3],
    /// Radii about the [centre of the core](core_centre) that hold [`MASS_SHARES`] of the mass.
    pub lagrangian_radii: [f64; 3],
    /// Block time steps that bodies take next, if they take such.
    pub own_steps: Option<OwnSteps>,
}

/// Distribution of the steps of single bodies at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OwnSteps {
    /// The shortest.
    pub shortest: f64,
    /// Index of a body that takes it.
    pub body: usize,
    /// Steps that a tenth, a half and nine tenths of the bodies do not exceed.
    pub deciles: [f64; 3],
}

impl OwnSteps {
    /// The distribution of these steps, one for each body; none if there are no steps.
    pub fn of(steps: &[f64]) -> Option<Self> {
        let mut sorted: Vec<usize> = (0..steps.len()).collect();
        sorted.sort_unstable_by(|&a, &b| steps[a].total_cmp(&steps[b]));
        let body = *sorted.first()?;
        let at = |tenths: usize| steps[sorted[(sorted.len() * tenths).div_ceil(10) - 1]];
        Some(Self {
            shortest: steps[body],
            body,
            deciles: [1, 5, 9].map(at),
        })
    }
}

impl Sample {
    /// Names of what [`values`](Self::values) gives, as log files spell them.
    pub const COLUMNS: [&str; 23] = [
        "time",
        "kinetic",
        "potential",
        "energy",
        "energy_drift",
        "virial_ratio",
        "px",
        "py",
        "pz",
        "lx",
        "ly",
        "lz",
        "cx",
        "cy",
        "cz",
        "r10",
        "r50",
        "r90",
        "step_shortest",
        "step_body",
        "step10",
        "step50",
        "step90",
    ];
    /// Kinds of the numbers in [`COLUMNS`](Self::COLUMNS).
    pub const MEASURED: [Measured; 23] = [
        Measured::Time,
        Measured::Energy,
        Measured::Energy,
        Measured::Energy,
        Measured::Bare,
        Measured::Bare,
        Measured::Momentum,
        Measured::Momentum,
        Measured::Momentum,
        Measured::AngularMomentum,
        Measured::AngularMomentum,
        Measured::AngularMomentum,
        Measured::Length,
        Measured::Length,
        Measured::Length,
        Measured::Length,
        Measured::Length,
        Measured::Length,
        Measured::Time,
        Measured::Bare,
        Measured::Time,
        Measured::Time,
        Measured::Time,
    ];

    /// Takes the measure of `bodies`, for which `conserved` was found after `steps` steps of a run
    /// that began with `origin`.
    pub fn measure(
        steps: u64,
        conserved: Conserved,
        origin: &Conserved,
        bodies: &Bodies,
        physics: &Physics,
    ) -> Self {
        let centre = centre_of_mass(bodies, physics).unwrap_or([f64::NAN; 3]);
        let core = core_centre(bodies, physics).unwrap_or([f64::NAN; 3]);
        Self {
            steps,
            conserved,
            energy_drift: conserved.drift_since(origin).energy,
            centre_of_mass: centre,
            lagrangian_radii: lagrangian_radii(bodies, physics, core, &MASS_SHARES),
            own_steps: None,
        }
    }

    /// With the block time steps that bodies take next, if there are any.
    pub fn with_own_steps(self, steps: &[f64]) -> Self {
        let own_steps = OwnSteps::of(steps);
        Self { own_steps, ..self }
    }

    /// Returns whether the energy has drifted by more than `bound`: one that is not a number has
    /// passed every bound, unless there is no energy to judge by.
    pub fn has_drifted(&self, bound: f64) -> bool {
        EnergyLook::from(self).has_drifted(bound)
    }

    /// The numbers of a row of a log, after the steps; NaN for missing numbers.
    pub fn values(&self) -> [f64; Self::COLUMNS.len()] {
        let c = &self.conserved;
        let mut values = [f64::NAN; Self::COLUMNS.len()];
        let energies = [
            c.time,
            c.energy.kinetic,
            c.energy.potential,
            c.energy.total(),
        ];
        let ratios = [self.energy_drift, c.virial_ratio()];
        let vectors = [
            c.momentum,
            c.angular_momentum,
            self.centre_of_mass,
            self.lagrangian_radii,
        ];
        let all = energies
            .into_iter()
            .chain(ratios)
            .chain(vectors.into_iter().flatten())
            .chain(self.own_steps.into_iter().flat_map(|own| {
                let [step10, step50, step90] = own.deciles;
                [own.shortest, own.body as f64, step10, step50, step90]
            }));
        values.iter_mut().zip(all).for_each(|(value, v)| *value = v);
        values
    }
}

impl From<&Sample> for EnergyLook {
    fn from(sample: &Sample) -> Self {
        Self {
            steps: sample.steps,
            time: sample.conserved.time,
            drift: sample.energy_drift,
            energy: sample.conserved.energy,
        }
    }
}

/// Radii about `centre` that hold these shares of the mass: the distance of the body with which the
/// share is reached. Not a number where there is no mass.
pub fn lagrangian_radii<const N: usize>(
    bodies: &Bodies,
    physics: &Physics,
    centre: [f64; 3],
    shares: &[f64; N],
) -> [f64; N] {
    let mut shells: Vec<(f64, f64)> = bodies
        .iter()
        .map(|body| {
            (
                norm(minus(body.position, centre)),
                physics.weight(body.mass),
            )
        })
        .collect();
    shells.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let total: CompensatedSum = shells.iter().map(|&(_, mass)| mass).collect();
    let total = total.value();
    shares.map(|share| {
        let mut within = CompensatedSum::default();
        // Rounding of the sums shall not ask for one body more than exact shares do.
        let reached = shells.iter().find(|&&(_, mass)| {
            within.add(mass);
            within.value() >= share * total * (1.0 - 1e-12)
        });
        match reached {
            Some(&(radius, _)) if total > 0.0 => radius,
            _ => f64::NAN,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{Body, BodyKind};
    use crate::diagnostics::Energy;
    use crate::diagnostics::tests::GRAVITY;

    /// Masses 1 at distances 1 … n from (5, 0, 0), the outermost first.
    fn row(n: u32) -> Bodies {
        let bodies = (1..=n).rev().map(|i| Body {
            position: [5.0, f64::from(i), 0.0],
            velocity: [0.0; 3],
            mass: 1.0,
            id: 0,
            kind: BodyKind::Star,
        });
        bodies.collect()
    }

    #[test]
    fn radii_hold_their_shares() {
        let centre = [5.0, 0.0, 0.0];
        let radii = |bodies: &Bodies| lagrangian_radii(bodies, &GRAVITY, centre, &MASS_SHARES);
        assert_eq!(radii(&row(10)), [1.0, 5.0, 9.0]);
        assert_eq!(radii(&row(1)), [1.0; 3]);
        let mut heavy = row(10);
        heavy.mass[0] = 100.0; // at distance 10
        assert_eq!(radii(&heavy), [10.0; 3]);
        let mut massless = row(3);
        massless.mass.fill(0.0);
        assert!(radii(&massless).iter().all(|r| r.is_nan()));
    }

    #[test]
    fn columns_are_in_order() {
        let energy = Energy {
            kinetic: 1.0,
            potential: -4.0,
            external: 0.0,
            lost: 0.0,
            brought: 0.0,
        };
        let bodies = row(10);
        let origin = Conserved::measure(2.5, &bodies, &GRAVITY, energy);
        let sample = Sample::measure(7, origin, &origin, &bodies, &GRAVITY);
        let values = sample.values();
        let column = |name| {
            let index = Sample::COLUMNS.iter().position(|&c| c == name);
            values[index.expect("a column")]
        };
        assert_eq!((column("time"), column("energy")), (2.5, -3.0));
        assert_eq!((column("virial_ratio"), column("energy_drift")), (0.5, 0.0));
        assert_eq!((column("cx"), column("cy"), column("r90")), (5.0, 5.5, 4.5));
        assert!(column("step_shortest").is_nan());
        let values = sample.with_own_steps(&[0.5, 0.25, 1.0]).values();
        assert!(values.iter().all(|value| value.is_finite()));
        assert_eq!(values[18..], [0.25, 1.0, 0.25, 0.5, 1.0]);
    }

    #[test]
    fn drift_passes_its_bound_or_is_none() {
        let bodies = row(10);
        let sample = |potential: f64, kinetic: f64| {
            let at = |kinetic| {
                let energy = Energy {
                    kinetic,
                    potential,
                    external: 0.0,
                    lost: 0.0,
                    brought: 0.0,
                };
                Conserved::measure(0.0, &bodies, &GRAVITY, energy)
            };
            Sample::measure(1, at(kinetic), &at(1.0), &bodies, &GRAVITY)
        };
        assert!(!sample(-3.0, 1.01).has_drifted(0.01));
        assert!(sample(-3.0, 1.03).has_drifted(0.01));
        assert!(sample(-3.0, f64::NAN).has_drifted(0.01));
        assert!(sample(f64::NAN, 1.0).has_drifted(0.01));
        assert!(
            !sample(0.0, 1.0).has_drifted(0.01),
            "no two bodies with mass"
        );
    }
}
