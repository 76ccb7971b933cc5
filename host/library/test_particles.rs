//! An account of test particles: massless bodies, which are in no sum of energies or momenta.
//!
//! Of each the energy per mass `½ v² + φ` is compared with what it was at the beginning. It is conserved
//! where the bodies with mass rest; otherwise it is exchanged with them, and says how much the orbits
//! change. Velocities are relative to the centre of mass of the bodies with mass, unless there are external
//! fields. Where two of these dominate and go round each other on a circle, the Jacobi constant
//! `½ v² + φ − Ω·(x × v)` is conserved (Murray & Dermott 1999, *Solar System Dynamics*, eq. 3.36, there
//! twice its negative): its change is the error of the orbits. Where bodies with mass move otherwise, a change of the energy
//! by far more than they can give is an error, too.

use std::fmt;

use crate::bodies::Bodies;
use crate::diagnostics::CompensatedSum;
use crate::fields::External;
use crate::force::cpu::field_at;
use crate::physics::Physics;
use crate::units::Measured;
use crate::vectors::{axes, cross, difference, dot};

/// The largest eccentricity of a circle.
const CIRCLE: f64 = 1e-3;

/// The most that other bodies may have of the mass of the lighter one of two that dominate.
const LITTLE: f64 = 1e-3;

/// The most bodies with mass for which test particles are looked at on the way: a look costs about what a force on
/// test particles does, on the CPU.
const FEW: usize = 1000;

/// Most of the energy that bodies with mass give a test particle, in its own potential and in the square of their largest
/// speed v. A flyby turns its velocity relative to a body, which is at most some 2.4 v, and so gives less than 5 v².
const GIVEN: f64 = 30.0;

/// Numbers of a body at the beginning: energy per mass, potential and Jacobi constant. Not numbers where
/// the body has mass, or where there is no such constant.
pub type Origin = [f64; 3];

/// Test particles of a run, as they were at its beginning.
#[derive(Clone, Debug)]
pub struct Account {
    /// One for each body.
    origins: Vec<Origin>,
}

/// Numbers of bodies of both kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// Bodies that exert forces.
    pub massive: usize,
    /// Test particles.
    pub massless: usize,
}

impl Kinds {
    /// Counts the kinds of some bodies.
    pub fn of(bodies: &Bodies, physics: &Physics) -> Self {
        let has_mass = |mass: &&f64| physics.weight(**mass) != 0.0;
        let massive = bodies.mass.iter().filter(has_mass).count();
        let massless = bodies.len() - massive;
        Self { massive, massless }
    }
}

/// Quantity of a test particle that exact orbits keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrbitConstant {
    /// Energy per mass: one body has mass, or fields that do not change with time are all that pulls.
    Energy,
    /// Jacobi constant: two bodies on a circle dominate.
    Jacobi,
    /// Energy per mass, as far as other moving bodies cannot have changed it.
    Bounded,
}

impl fmt::Display for OrbitConstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Energy | Self::Bounded => "energy per mass",
            Self::Jacobi => "Jacobi constant",
        })
    }
}

/// A look at test particles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Mean of their energies per mass.
    pub mean: f64,
    /// Standard deviation of these.
    pub spread: f64,
    /// The largest change since the beginning, as a part of the body's potential there.
    pub largest_change: f64,
    /// The same of Jacobi constants; not a number where there are none.
    pub jacobi_change: f64,
    /// Quantity that exact orbits keep, if there is one.
    pub constant: Option<OrbitConstant>,
    /// The largest change of this quantity, as a part of the potential at the beginning. In fields, which may have
    /// potentials of 0, it is a part of the largest of the potentials and kinetic energies at both ends. Of an energy that
    /// moving bodies change it is 0 as long as they may have done so. Not a number where there is no such quantity.
    pub drift: f64,
}

impl Look {
    /// Names of what [`values`](Self::values) gives, as log files spell them.
    pub const COLUMNS: [&str; 4] = [
        "energy_mean",
        "energy_spread",
        "energy_change",
        "jacobi_change",
    ];
    /// Kinds of the numbers in [`COLUMNS`](Self::COLUMNS).
    pub(crate) const MEASURED: [Measured; 4] = [
        Measured::EnergyPerMass,
        Measured::EnergyPerMass,
        Measured::Bare,
        Measured::Bare,
    ];

    /// The numbers of a row of a log.
    pub fn values(&self) -> [f64; 4] {
        [
            self.mean,
            self.spread,
            self.largest_change,
            self.jacobi_change,
        ]
    }

    /// The look where nothing is kept, for example after a change of the bodies with mass.
    #[must_use]
    pub fn without_constant(self) -> Self {
        Self {
            constant: None,
            drift: f64::NAN,
            ..self
        }
    }

    /// The quantity that exact orbits keep, if a test particle has changed it by more than `bound`. Jacobi constants are
    /// judged to 0.1 %, as circles are.
    pub fn has_drifted(&self, bound: f64) -> Option<OrbitConstant> {
        let floor = match self.constant? {
            OrbitConstant::Energy | OrbitConstant::Bounded => 0.0,
            OrbitConstant::Jacobi => CIRCLE.max(LITTLE),
        };
        self.constant.filter(|_| self.drift > bound.max(floor))
    }
}

/// Reason why there is no Jacobi constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoJacobi {
    /// External fields.
    Fields,
    /// One body with mass, or none.
    OneBody,
    /// Another body is too heavy; its mass over the mass of the lighter of the two heaviest.
    Others(f64),
    /// The two are on no circle, but an orbit of this eccentricity.
    Eccentric(f64),
}

impl fmt::Display for NoJacobi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields => write!(f, "there are external fields"),
            Self::OneBody => write!(f, "it is of two bodies with mass"),
            Self::Others(share) => write!(
                f,
                "no two bodies dominate: others have {share:.2e} of the second's mass"
            ),
            Self::Eccentric(e) => write!(
                f,
                "the two heaviest bodies are on no circle: their eccentricity is {e:.3}"
            ),
        }
    }
}

/// Frame in which test particles are looked at, and the angular velocity of two dominant bodies.
struct Observer {
    massive: Bodies,
    centre: [f64; 3],
    velocity: [f64; 3],
    omega: Result<[f64; 3], NoJacobi>,
}

impl Observer {
    fn of(bodies: &Bodies, physics: &Physics, external: &External) -> Self {
        let has_mass = |i: &usize| physics.weight(bodies.mass[*i]) != 0.0;
        let massive: Bodies = (0..bodies.len())
            .filter(has_mass)
            .map(|i| bodies.body(i))
            .collect();
        let alone = external.is_none();
        Self {
            centre: massive
                .centre_of_mass()
                .filter(|_| alone)
                .unwrap_or_default(),
            velocity: (massive.centre_of_mass_velocity().filter(|_| alone)).unwrap_or_default(),
            omega: match alone {
                true => rotation(&massive, physics),
                false => Err(NoJacobi::Fields),
            },
            massive,
        }
    }

    /// Quantity of test particles that exact orbits keep, if there is one.
    fn constant(&self, external: &External) -> Option<OrbitConstant> {
        match (external.is_none(), self.massive.len()) {
            (true, 0) => None,
            (true, 1) => Some(OrbitConstant::Energy),
            (true, _) if self.omega.is_ok() => Some(OrbitConstant::Jacobi),
            (true, _) => Some(OrbitConstant::Bounded),
            (false, 0) => {
                let is_kept = external.fields().conserve_energy() && external.origin().is_none();
                is_kept.then_some(OrbitConstant::Energy)
            }
            (false, _) => None,
        }
    }
}

/// Angular velocity of two bodies that dominate and go round each other on a circle.
fn rotation(massive: &Bodies, physics: &Physics) -> Result<[f64; 3], NoJacobi> {
    let mut order: Vec<usize> = (0..massive.len()).collect();
    order.sort_by(|&a, &b| massive.mass[b].total_cmp(&massive.mass[a]));
    let [first, second, ref others @ ..] = order[..] else {
        return Err(NoJacobi::OneBody);
    };
    let of_others: f64 = others.iter().map(|&i| massive.mass[i]).sum();
    let share = of_others / massive.mass[second];
    if share > LITTLE {
        return Err(NoJacobi::Others(share));
    }
    let (a, b) = (massive.body(first), massive.body(second));
    let r = difference(b.position, a.position);
    let v = difference(b.velocity, a.velocity);
    let gm = physics.coupling() * (a.mass + b.mass);
    let distance = dot(r, r).sqrt();
    // The vector (v × (r × v))/GM − r/|r|, whose length is the eccentricity.
    let (speed, along) = (dot(v, v), dot(r, v));
    let vector = axes(|k| (speed * r[k] - along * v[k]) / gm - r[k] / distance);
    let eccentricity = dot(vector, vector).sqrt();
    match eccentricity <= CIRCLE {
        true => Ok(cross(r, v).map(|l| l / dot(r, r))),
        false => Err(NoJacobi::Eccentric(eccentricity)),
    }
}

impl Account {
    /// Opens it for the bodies at the beginning of a run, if there are test particles.
    pub fn begin(bodies: &Bodies, physics: &Physics, external: &External) -> Option<Self> {
        let Kinds { massless, .. } = Kinds::of(bodies, physics);
        (massless > 0).then(|| Self {
            origins: numbers(
                &Observer::of(bodies, physics, external),
                bodies,
                physics,
                external,
            ),
        })
    }

    /// Continues the account of a run that was stopped; `None` if there are no origins.
    pub fn resume(origins: Vec<Origin>) -> Option<Self> {
        (!origins.is_empty()).then_some(Self { origins })
    }

    /// Numbers of the beginning, for [`resume`](Self::resume).
    pub fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// Takes bodies out that are gone, by their indices, ascending.
    pub(crate) fn remove(&mut self, removed: &[usize]) {
        let mut index = 0;
        self.origins.retain(|_| {
            index += 1;
            removed.binary_search(&(index - 1)).is_err()
        });
    }

    /// Adds bodies that were not there at the beginning, behind all others: they are not followed.
    pub(crate) fn add(&mut self, count: usize) {
        let count = self.origins.len() + count;
        self.origins.resize(count, [f64::NAN; 3]);
    }

    /// Mean and spread at the beginning.
    pub fn at_start(&self) -> (f64, f64) {
        mean_and_spread(self.origins.iter().map(|[energy, ..]| *energy))
    }

    /// Looks at the bodies as they are now.
    pub fn look(&self, bodies: &Bodies, physics: &Physics, external: &External) -> Look {
        let observer = Observer::of(bodies, physics, external);
        self.look_of(&observer, bodies, physics, external)
    }

    /// Takes a [`look`](Self::look), if there is a quantity to judge orbits by, and the look costs little.
    pub fn judge(&self, bodies: &Bodies, physics: &Physics, external: &External) -> Option<Look> {
        let observer = Observer::of(bodies, physics, external);
        let is_few = observer.massive.len() <= FEW;
        let has_constant = observer.constant(external).is_some();
        (is_few && has_constant).then(|| self.look_of(&observer, bodies, physics, external))
    }

    fn look_of(
        &self,
        observer: &Observer,
        bodies: &Bodies,
        physics: &Physics,
        external: &External,
    ) -> Look {
        let now = numbers(observer, bodies, physics, external);
        let (mean, spread) = mean_and_spread(now.iter().map(|[energy, ..]| *energy));
        let change = |k: usize| {
            let changes = now.iter().zip(&self.origins).map(|(now, then)| {
                let [_, depth, _] = then;
                (now[k] - then[k]).abs() / depth.abs()
            });
            // Bodies with mass have no such numbers.
            let known = changes.filter(|change| !change.is_nan());
            known.fold(f64::NAN, f64::max)
        };
        let speeds = observer.massive.iter().map(|body| {
            let v = difference(body.velocity, observer.velocity);
            dot(v, v)
        });
        let fastest = speeds.fold(0.0, f64::max);
        let beyond_gifts = || {
            let changes = now.iter().zip(&self.origins).map(|(now, then)| {
                let (change, depth) = ((now[0] - then[0]).abs(), then[1].abs());
                match depth > 0.0 && change > GIVEN * depth.max(fastest) {
                    true => change / depth,
                    false => 0.0,
                }
            });
            changes.fold(0.0, f64::max)
        };
        let in_fields = || {
            let changes = now.iter().zip(&self.origins).map(|(now, then)| {
                let sizes = [then, now].map(|&[energy, depth, _]| depth.abs().max(energy - depth));
                (now[0] - then[0]).abs() / sizes[0].max(sizes[1])
            });
            changes
                .filter(|change| !change.is_nan())
                .fold(f64::NAN, f64::max)
        };
        let constant = observer.constant(external);
        Look {
            mean,
            spread,
            largest_change: change(0),
            jacobi_change: change(2),
            constant,
            drift: match constant {
                Some(OrbitConstant::Energy) if external.is_none() => change(0),
                Some(OrbitConstant::Energy) => in_fields(),
                Some(OrbitConstant::Jacobi) => change(2),
                Some(OrbitConstant::Bounded) => beyond_gifts(),
                None => f64::NAN,
            },
        }
    }

    /// Reason why there is no Jacobi constant, if there is none.
    pub fn no_jacobi(bodies: &Bodies, physics: &Physics, external: &External) -> Option<NoJacobi> {
        Observer::of(bodies, physics, external).omega.err()
    }
}

/// Energy per mass, potential and Jacobi constant of each massless body.
fn numbers(
    observer: &Observer,
    bodies: &Bodies,
    physics: &Physics,
    external: &External,
) -> Vec<Origin> {
    let &Observer {
        ref massive,
        centre,
        velocity,
        omega,
    } = observer;
    let massless: Vec<usize> = (0..bodies.len())
        .filter(|&i| physics.weight(bodies.mass[i]) == 0.0)
        .collect();
    let points: Vec<[f64; 3]> = (massless.iter())
        .map(|&i| [bodies.x[i], bodies.y[i], bodies.z[i]])
        .collect();
    let (_, potentials) = field_at(massive, physics, &points);
    let in_fields = external.potential();
    let mut numbers = vec![[f64::NAN; 3]; bodies.len()];
    for (&i, potential) in massless.iter().zip(potentials) {
        let body = bodies.body(i);
        let v = difference(body.velocity, velocity);
        let depth = potential + in_fields.energy_per_mass(bodies, i);
        let energy = 0.5 * dot(v, v) + depth + in_fields.energy_with_origin(bodies, i);
        let jacobi = match omega {
            Ok(omega) => energy - dot(omega, cross(difference(body.position, centre), v)),
            Err(_) => f64::NAN,
        };
        numbers[i] = [energy, depth, jacobi];
    }
    numbers
}

fn mean_and_spread(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let known = values.filter(|value| !value.is_nan());
    let n = known.clone().count() as f64;
    let mean = known.clone().collect::<CompensatedSum>().value() / n;
    let squares: CompensatedSum = known.map(|value| (value - mean) * (value - mean)).collect();
    (mean, (squares.value() / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{Body, BodyKind};
    use crate::fields::{ExternalField, Fields};
    use crate::physics::ForceLaw;
    use crate::selection::DeviceChoice;
    use crate::simulation::Simulation;
    use crate::{ForceAccuracy, Integrator};

    const G: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.0,
    };

    /// Two bodies of mass 0.9 and 0.1 on an orbit of this eccentricity, moving as a whole; and massless
    /// ones about the heavier.
    fn restricted(eccentricity: f64) -> Bodies {
        let speed = (1.0 + eccentricity).sqrt(); // at pericentre, at distance 1 − e
        let distance = 1.0 - eccentricity;
        let speed = speed / distance.sqrt();
        let body = |mass: f64, x: f64, v: f64, id: u64| Body {
            position: [3.0 + x, 0.0, 0.0],
            velocity: [0.5, v, -2.0],
            mass,
            id,
            kind: BodyKind::Star,
        };
        let mut bodies: Bodies = (2..12)
            .map(|id| {
                let r = 0.1 + 0.02 * id as f64;
                let v = (0.9 / r).sqrt();
                body(0.0, r - 0.1 * distance, v - 0.1 * speed, id)
            })
            .collect();
        bodies.push(body(0.9, -0.1 * distance, -0.1 * speed, 0));
        bodies.push(body(0.1, 0.9 * distance, 0.9 * speed, 1));
        bodies
    }

    fn looks(bodies: Bodies, dt: f64) -> (Account, Look) {
        let external = External::none();
        let account = Account::begin(&bodies, &G, &external).unwrap();
        let mut simulation = Simulation::builder(bodies)
            .physics(G)
            .integrator(Integrator::Yoshida6)
            .accuracy(ForceAccuracy::Double)
            .device(DeviceChoice::Cpu)
            .dt(dt)
            .build()
            .unwrap();
        simulation.run_until(2.0).unwrap();
        let look = account.look(simulation.bodies().unwrap(), &G, &external);
        (account, look)
    }

    /// The Jacobi constant stays where energies do not, as well as the orbits are computed, in any frame.
    #[test]
    fn the_jacobi_constant_is_conserved() {
        let (account, coarse) = looks(restricted(0.0), 0.01);
        let (_, fine) = looks(restricted(0.0), 0.005);
        assert!(coarse.largest_change > 1e-3, "{coarse:?}");
        assert!(coarse.jacobi_change < 1e-4, "{coarse:?}");
        assert!(
            fine.jacobi_change < coarse.jacobi_change / 30.0,
            "{coarse:?} {fine:?}"
        );
        let (mean, spread) = account.at_start();
        assert!(mean < 0.0 && spread > 0.0);
        assert_eq!(account.origins().len(), 12);
    }

    /// Exact orbits about one body, and in fields that rest, keep their energies. About two bodies they do not, within bounds.
    #[test]
    fn orbits_are_judged_by_what_they_keep() {
        let mut bodies = Bodies::at_rest(&[[2.0, 0.0, 0.0], [0.0; 3]], &[0.0, 3.0]);
        bodies.vy[0] = 1.5_f64.sqrt();
        let mut faster = bodies.clone();
        faster.vy[0] *= 1.1; // K = 0.75 becomes 0.9075, and U is −1.5
        let none = External::none();
        let look = |then: &Bodies, now: &Bodies, external: &External| {
            let account = Account::begin(then, &G, external).unwrap();
            let look = account.look(now, &G, external);
            assert_eq!(
                account.judge(now, &G, external).is_some(),
                look.constant.is_some()
            );
            look
        };
        let found = look(&bodies, &faster, &none);
        assert!((found.drift - 0.105).abs() <= 1e-12, "{found:?}");
        assert_eq!(found.has_drifted(0.1), Some(OrbitConstant::Energy));
        assert_eq!(found.has_drifted(0.11), None);

        let [circle, ellipse] = [0.0, 0.3].map(restricted);
        let mut moved = circle.clone();
        moved.vy[0] += 0.5;
        let found = look(&circle, &moved, &none);
        assert_eq!(found.has_drifted(0.01), Some(OrbitConstant::Jacobi));
        assert_eq!(look(&circle, &circle, &none).has_drifted(0.0), None);
        assert_eq!(
            look(&ellipse, &moved, &none).has_drifted(0.0),
            None,
            "not at the start"
        );
        // Two bodies on an ellipse throw a particle, but not with any speed.
        for (gained, is_error) in [(0.0, false), (2.0, false), (100.0, true)] {
            let mut thrown = ellipse.clone();
            thrown.vy[0] += gained;
            let found = look(&ellipse, &thrown, &none).has_drifted(0.01);
            assert_eq!(found, is_error.then_some(OrbitConstant::Bounded));
        }

        // About the point of a field at rest, the particle of above is alone.
        let alone = |bodies: &Bodies| bodies.part(0..1);
        let field = ExternalField::point(3.0);
        let fields = Fields::from_iter([field.clone()]);
        let external = External::of_bodies(&fields, &alone(&bodies), &G).unwrap();
        let found = look(&alone(&bodies), &alone(&faster), &external);
        assert!((found.drift - 0.105).abs() <= 1e-12, "{found:?}");
        assert_eq!(
            look(&bodies, &faster, &external).constant,
            None,
            "the other falls"
        );
    }

    #[test]
    fn there_is_a_constant_of_two_bodies_on_a_circle_alone() {
        let none = External::none();
        let why = |bodies: &Bodies| Account::no_jacobi(bodies, &G, &none);
        assert_eq!(why(&restricted(0.0)), None);
        let Some(NoJacobi::Eccentric(e)) = why(&restricted(0.3)) else {
            panic!("an ellipse");
        };
        assert!((e - 0.3).abs() <= 1e-12, "{e}");
        assert!(
            Account::begin(&restricted(0.3), &G, &none)
                .unwrap()
                .origins()[0][2]
                .is_nan()
        );
        let mut others = restricted(0.0);
        others.mass[0] = 0.01;
        let Some(NoJacobi::Others(share)) = why(&others) else {
            panic!("three bodies");
        };
        assert!((share - 0.1).abs() <= 1e-12, "{share}");
        others.mass.fill(0.0);
        assert_eq!(why(&others), Some(NoJacobi::OneBody));
        let unit = Physics {
            law: ForceLaw::Unit,
            ..G
        };
        assert!(Account::begin(&others, &unit, &none).is_none());
    }

    /// A body at rest holds test particles at their energies: −GM/2a.
    #[test]
    fn energies_are_those_of_orbits() {
        let mut bodies = Bodies::at_rest(&[[2.0, 0.0, 0.0], [0.0; 3]], &[0.0, 3.0]);
        bodies.vy[0] = 1.5_f64.sqrt();
        let account = Account::begin(&bodies, &G, &External::none()).unwrap();
        let (mean, spread) = account.at_start();
        assert!((mean + 0.75).abs() <= 1e-15 && spread == 0.0);
    }
}
