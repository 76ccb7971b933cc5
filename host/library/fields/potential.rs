//! Potentials of external fields, and energies of bodies in them.

use std::fmt;

use gpu_kernels::fields::elementary::{lower_gamma, power_series, upper_fraction};
use gpu_kernels::fields::{Kind, PARAMETERS};

use super::BODIES_OF_A_TASK;
use super::relativity::Relativity;
use crate::bodies::Bodies;
use crate::diagnostics::CompensatedSum;
use crate::parallel;
use crate::physics::Physics;
use crate::vectors::axes;

type Vector = [f64; 3];

/// Potential of a field at a position.
pub(super) type OfField<'a> = Box<dyn Fn(Vector) -> f64 + Send + Sync + 'a>;

/// Potential of external fields at one moment.
pub struct Potential<'a> {
    /// Each field, with its potential at the origin where that is on an orbit, else 0.
    fields: Vec<(OfField<'a>, f64)>,
    relativity: Option<&'a Relativity>,
    velocity_of_origin: Option<Vector>,
}

impl fmt::Debug for Potential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Potential")
            .field("fields", &self.fields.len())
            .field("relativity", &self.relativity)
            .field("velocity_of_origin", &self.velocity_of_origin)
            .finish()
    }
}

impl<'a> Potential<'a> {
    /// That of these fields; of an origin on an orbit, its position and velocity.
    pub(super) fn new(
        fields: impl Iterator<Item = OfField<'a>>,
        relativity: Option<&'a Relativity>,
        origin: Option<[Vector; 2]>,
    ) -> Self {
        let fields = fields.map(|field| -> (OfField<'a>, f64) {
            match origin {
                Some([origin, _]) => {
                    let there = field(origin);
                    let about = move |x: Vector| field(axes(|k| origin[k] + x[k]));
                    (Box::new(about), there)
                }
                None => (field, 0.0),
            }
        });
        Self {
            fields: fields.collect(),
            relativity,
            velocity_of_origin: origin.map(|[_, velocity]| velocity),
        }
    }

    /// Potential at a position; of fields of the user's own that have one. Where the origin is on an orbit,
    /// beyond the potential there.
    pub fn at(&self, position: Vector) -> f64 {
        // Differences of each field, whose sum may be much larger.
        let fields = self.fields.iter();
        fields.map(|(of, at_origin)| of(position) - at_origin).sum()
    }

    /// Energy of a body in the fields, per mass, but for that [with the
    /// origin](Self::energy_with_origin).
    pub(crate) fn energy_per_mass(&self, bodies: &Bodies, i: usize) -> f64 {
        let relativity = self.relativity.map_or(0.0, |term| term.energy(bodies, i));
        self.at([bodies.x[i], bodies.y[i], bodies.z[i]]) + relativity
    }

    /// Energy `V·v` of a body per mass, by the velocity V of the origin.
    pub(crate) fn energy_with_origin(&self, bodies: &Bodies, i: usize) -> f64 {
        self.velocity_of_origin.map_or(0.0, |[x, y, z]| {
            x * bodies.vx[i] + y * bodies.vy[i] + z * bodies.vz[i]
        })
    }

    /// Energy of bodies in the fields: `Σ m φ`. Where the origin is on an orbit, at R with velocity V:
    /// `Σ m (φ(R + x) − φ(R) + V·v)`, which with the kinetic energy of velocities v is what the bodies
    /// have beyond as much mass on the orbit, and as well conserved: `Σ ½ m (v + V)²` and `Σ m φ(R + x)`
    /// less `M (½ V² + φ(R))`, a constant. Its bits do not depend on the number of threads.
    pub fn energy(&self, bodies: &Bodies, physics: &Physics) -> f64 {
        let of_body = |i: usize| match physics.weight(bodies.mass[i]) {
            0.0 => [0.0; 2],
            weight => [
                weight * self.energy_per_mass(bodies, i),
                weight * self.energy_with_origin(bodies, i),
            ],
        };
        let parts = bodies.len().div_ceil(BODIES_OF_A_TASK);
        let sums = parallel::each(parts, 1, |part| {
            let first = part * BODIES_OF_A_TASK;
            let of_part = first..bodies.len().min(first + BODIES_OF_A_TASK);
            let sum: CompensatedSum = of_part.flat_map(of_body).collect();
            sum.value()
        });
        let sum: CompensatedSum = sums.into_iter().collect();
        sum.value()
    }
}

/// Potential of a formula at a position from its centre, with the parameters of its record.
pub(super) fn of_formula(kind: Kind, p: [f64; PARAMETERS]) -> OfField<'static> {
    let [gm, scale, third, fourth, ..] = p;
    if kind == Kind::PowerLaw {
        let power_law = PowerLaw::new(gm, scale, third, fourth);
        return Box::new(move |[x, y, z]| power_law.at((x * x + y * y + z * z).sqrt()));
    }
    Box::new(move |[x, y, z]: Vector| {
        let plane = x * x + y * y;
        let square = plane + z * z;
        let r = square.sqrt();
        match kind {
            Kind::Point => -gm / r,
            Kind::Plummer => -gm / (square + scale * scale).sqrt(),
            Kind::Hernquist => -gm / (r + scale),
            Kind::Nfw if r == 0.0 => -gm / scale,
            Kind::Nfw => -gm * (r / scale).ln_1p() / r,
            Kind::MiyamotoNagai => -gm / plane.sqrt().hypot(scale + z.hypot(third)),
            Kind::Isochrone => -gm / (scale + r.hypot(scale)),
            Kind::Logarithmic => {
                let [speed_squared, core, flattening, ..] = p;
                let height = z / flattening;
                0.5 * speed_squared * (plane + height * height + core * core).ln()
            }
            Kind::Tide => {
                let [_, radial, vertical, ..] = p;
                0.5 * (vertical * z * z - radial * x * x)
            }
            Kind::PowerLaw => unreachable!("has its own above"),
        }
    })
}

/// A [`Kind::PowerLaw`], `−GM (γ(s, x²)/r + Γ(s − ½, x²)/c)/Γ(s)` with s = 3/2 − α/2 and x = r/c: mass
/// within acts as a point; shells beyond have the potential of their own radius.
#[derive(Clone, Copy, Debug)]
struct PowerLaw {
    gm: f64,
    cutoff: f64,
    s: f64,
    /// Γ(s)
    complete: f64,
    /// Γ(s − ½)
    complete_beyond: f64,
}

impl PowerLaw {
    fn new(gm: f64, cutoff: f64, exponent: f64, complete: f64) -> Self {
        let s = 1.5 - 0.5 * exponent;
        Self {
            gm,
            cutoff,
            s,
            complete,
            complete_beyond: gamma(s - 0.5),
        }
    }

    fn at(&self, r: f64) -> f64 {
        let (s, below) = (self.s, self.s - 0.5);
        let square = (r / self.cutoff) * (r / self.cutoff);
        let beyond = match square {
            0.0 => self.complete_beyond,
            x if x < below + 1.0 => self.complete_beyond - power_series(below, x),
            x => upper_fraction(below, x),
        };
        let within = match square {
            0.0 => 0.0,
            x => lower_gamma(s, x, self.complete) / r,
        };
        -self.gm * (within + beyond / self.cutoff) / self.complete
    }
}

/// Γ(s) for s in 0 … 2, by an argument from which on the lower incomplete function is the complete one to
/// rounding.
pub(super) fn gamma(s: f64) -> f64 {
    power_series(s, 60.0)
}
