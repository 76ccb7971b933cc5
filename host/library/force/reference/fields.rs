//! External fields, each by one formula: a potential, or a density. All else are derivatives of it.

use std::f64::consts::PI;
use std::ops::Add;
use std::sync::LazyLock;

use gpu_kernels::fields::Kind;

use super::series::Number;
use crate::fields::{Centre, External, Path, Shape};
use crate::vectors::{axes, difference};

/// Acceleration, jerk and snap at the time of the fields, of a body with this position, velocity and acceleration.
/// The field of a [turning] frame is not among them. Where the origin falls on an orbit, its own are taken off.
pub(super) fn forces(external: &External, g: f64, motion: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let Some([position, velocity]) = external.origin() else {
        return about_rest(external, g, motion);
    };
    let [falls, ..] = about_rest(external, g, [position, velocity, [0.0; 3]]);
    let origin = [position, velocity, falls];
    let together = each(|k, axis| motion[k][axis] + origin[k][axis]);
    let of_origin = about_rest(external, g, origin);
    let of_body = about_rest(external, g, together);
    each(|k, axis| of_body[k][axis] - of_origin[k][axis])
}

/// Forces like [`forces`], in the frame that the fields are in.
fn about_rest(external: &External, g: f64, motion: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let (time, [x, v, _]) = (external.time(), motion);
    let mut sum = [[0.0; 3]; 3];
    for field in external.fields().iter() {
        let of_field = match &field.shape {
            Shape::Formula(formula, _) if formula.kind.needs_velocity() => continue,
            Shape::Formula(formula, values) => {
                let centre = centre(&field.centre, time);
                let from_centre = axes(|axis| {
                    let moving = motion.map(|vector| vector[axis]);
                    Number::moving(moving).shifted(axis) - centre[axis]
                });
                let is_centre = from_centre.iter().all(|x| x.value() == 0.0);
                let potential = potential(formula.kind, values, g, from_centre);
                let forces = axes(|k| potential.gradient(k).map(|slope| -slope));
                match forces[0].iter().all(|a| a.is_finite()) {
                    false if is_centre => [[0.0; 3]; 3], // no direction
                    _ => forces,
                }
            }
            Shape::Own(own) => {
                let jerk = own.jerk(time, x, v).unwrap_or_default();
                [own.acceleration(time, x), jerk, [0.0; 3]]
            }
            Shape::Relativity(..) => continue,
        };
        sum = each(|k, axis| sum[k][axis] + of_field[k][axis]);
    }
    sum
}

/// Energy per mass at the time of the fields, of a body with this position and velocity. Where the origin falls on an
/// orbit, the energy is the body's beyond what it would have in the origin.
pub(super) fn energy(external: &External, g: f64, [x, v]: [[f64; 3]; 2]) -> f64 {
    let [position, velocity] = external.origin().unwrap_or_default();
    let at = axes(|axis| position[axis] + x[axis]);
    let mut sum = (0..3).map(|axis| velocity[axis] * v[axis]).sum::<f64>();
    for field in external.fields().iter() {
        let potential = |x: [f64; 3]| match &field.shape {
            Shape::Formula(formula, values) => {
                let centre = centre(&field.centre, external.time()).map(Number::value);
                let from_centre = difference(x, centre).map(Number::constant);
                potential(formula.kind, values, g, from_centre).value()
            }
            Shape::Own(own) => own.potential(external.time(), x).unwrap_or_default(),
            Shape::Relativity(..) => 0.0,
        };
        sum += match external.origin() {
            Some(_) => potential(at) - potential(position),
            None => potential(at),
        };
    }
    sum
}

/// Acceleration at a position and velocity in a frame that turns: of its potential, and Coriolis' `−2Ω × v`. It is linear, so
/// its derivatives are the same of derivatives of positions and velocities.
pub(super) fn turning(external: &External, x: [f64; 3], [vx, vy, _]: [f64; 3]) -> [f64; 3] {
    let mut sum = [0.0; 3];
    for field in external.fields().iter() {
        if let Shape::Formula(formula, values) = &field.shape
            && formula.kind.needs_velocity()
        {
            let at = axes(|axis| Number::constant(x[axis]).shifted(axis));
            // G plays no part in it.
            let slope = potential(formula.kind, values, 0.0, at).gradient(0);
            let coriolis = [2.0 * values[0] * vy, -2.0 * values[0] * vx, 0.0];
            sum = axes(|axis| sum[axis] + coriolis[axis] - slope[axis]);
        }
    }
    sum
}

/// Potential of a field with these parameters, at a position from its centre. [`Kind`] names the sources.
fn potential(kind: Kind, parameters: &[f64], g: f64, [x, y, z]: [Number; 3]) -> Number {
    let plane = x * x + y * y;
    let square = plane + z * z;
    let r = square.power(0.5);
    match (kind, parameters) {
        (Kind::Point, &[mass]) => r.power(-1.0) * (-g * mass),
        (Kind::Plummer, &[mass, b]) => (square + b * b).power(-0.5) * (-g * mass),
        (Kind::Hernquist, &[mass, a]) => (r + a).power(-1.0) * (-g * mass),
        (Kind::Isochrone, &[mass, b]) => {
            ((square + b * b).power(0.5) + b).power(-1.0) * (-g * mass)
        }
        (Kind::MiyamotoNagai, &[mass, a, b]) => {
            let height = (z * z + b * b).power(0.5) + a;
            (plane + height * height).power(-0.5) * (-g * mass)
        }
        (Kind::Logarithmic, &[speed, core, flattening]) => {
            let height = z * (1.0 / flattening);
            (plane + height * height + core * core).ln() * (0.5 * speed * speed)
        }
        (Kind::Nfw, &[mass, a]) => of_shells(r, |r| {
            let in_scales = r * (1.0 / a);
            let density = in_scales.power(-1.0) * (in_scales + 1.0).power(-2.0);
            density * (g * mass / (4.0 * PI * a.powi(3)))
        }),
        (Kind::PowerLaw, &[mass, cutoff, exponent]) => of_shells(r, |r| {
            let in_cutoffs = r * (1.0 / cutoff);
            let density = in_cutoffs.power(-exponent) * (in_cutoffs * in_cutoffs * -1.0).exp();
            // The integral of the density is the mass.
            let whole = 2.0 * PI * cutoff.powi(3) * libm::tgamma(1.5 - exponent / 2.0);
            density * (g * mass / whole)
        }),
        (Kind::Tide, &[omega, kappa, nu]) => {
            let outward = kappa.powi(2) - 4.0 * omega.powi(2);
            (x * x * outward + z * z * nu.powi(2)) * 0.5
        }
        _ => unreachable!("{kind:?} has other parameters"),
    }
}

/// Potential of spherical shells, by their density times G at a radius. By Newton's theorem, the mass within r acts as a
/// point mass. Shells beyond have the potential of their own radius.
fn of_shells(r: Number, density: impl Fn(Number) -> Number) -> Number {
    let within = |r: Number| {
        let shells = NODES
            .iter()
            .map(|&(part, weight)| density(r * part) * (weight * part * part));
        shells.fold(Number::constant(0.0), Number::add) * r.power(3.0) * (4.0 * PI)
    };
    let at = r.value();
    let beyond = NODES.iter().map(|&(part, weight)| {
        let radius = at / part;
        weight * density(Number::constant(radius)).value() * radius.powi(3) / at
    });
    let beyond = 4.0 * PI * beyond.sum::<f64>();
    let value = -within(Number::constant(at)).value() / at - beyond;
    r.with_slope(value, |r| within(r) * r.power(-2.0))
}

/// Places from 0 to 1, and their weights in an integral: the double exponential rule (Takahasi & Mori 1974, Publ. RIMS
/// 9, 721). At these steps the integrals of [`of_shells`] are exact to rounding, for radii from 10⁻⁵ to 10⁴ cutoffs.
static NODES: LazyLock<Vec<(f64, f64)>> = LazyLock::new(|| {
    const STEP: f64 = 1.0 / 128.0;
    let node = |k: i32| {
        let t = STEP * f64::from(k);
        let part = |t: f64| 1.0 / (1.0 + (-PI * t.sinh()).exp());
        (part(t), STEP * PI * t.cosh() * part(t) * part(-t))
    };
    (-448..=448).map(node).collect()
});

/// Centre of a field at this time, by the basis of Hermite's cubics between the knots of its path. The first and the last
/// cubic go on beyond the ends.
fn centre(centre: &Centre, time: f64) -> [Number; 3] {
    let path = match centre {
        Centre::Fixed(centre) => return centre.map(Number::constant),
        Centre::Moving(path) => path,
    };
    let [(from, x0, v0), (to, x1, v1)] = piece(path, time);
    let span = to - from;
    let s = Number::moving([(time - from) / span, 1.0 / span, 0.0]);
    let (square, cube) = (s * s, s * s * s);
    let (begins, ends) = (cube * 2.0 - square * 3.0 + 1.0, square * 3.0 - cube * 2.0);
    let (leaves, arrives) = (cube - square * 2.0 + s, cube - square);
    axes(|axis| {
        begins * x0[axis]
            + ends * x1[axis]
            + leaves * (span * v0[axis])
            + arrives * (span * v1[axis])
    })
}

/// Time, position and velocity.
type Knot = (f64, [f64; 3], [f64; 3]);

/// The two neighbouring knots of a path that a time is between.
fn piece(path: &Path, time: f64) -> [Knot; 2] {
    let knots: Vec<Knot> = path.clone().into();
    let after = knots.partition_point(|&(begins, ..)| begins <= time);
    let last = after.clamp(1, knots.len() - 1);
    [knots[last - 1], knots[last]]
}

/// Three vectors by their components.
fn each(component: impl Fn(usize, usize) -> f64) -> [[f64; 3]; 3] {
    axes(|k| axes(|axis| component(k, axis)))
}
