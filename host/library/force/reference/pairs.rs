//! Forces between pairs, in f64.
//!
//! The pair formula is the inverse square law times a unit vector, spelled with divisions. For each body the terms are
//! added in index order with compensation, so the result does not depend on the number of threads. Its error comes from
//! the single terms: with u = 2⁻⁵³ at most 15u of each (separation 1, distance² 6, their
//! quotients 7 and 6, product 1), in practice near 2u, of `Σ_j |a_ij|`.

use crate::bodies::Bodies;
use crate::diagnostics::{CompensatedSum, ReferenceForce};
use crate::parallel;
use crate::physics::Physics;
use crate::vectors::{axes, dot};

/// Accelerations of all bodies.
pub fn accelerations(bodies: &Bodies, physics: &Physics) -> Vec<[f64; 3]> {
    parallel::each(bodies.len(), 1, |i| {
        field_at(bodies, physics, i).acceleration
    })
}

/// Accelerations of the bodies with the indices `targets`, each pulled by all bodies.
///
/// # Panics
/// If an index is not below the number of bodies.
pub fn accelerations_of(
    bodies: &Bodies,
    physics: &Physics,
    targets: &[usize],
) -> Vec<ReferenceForce> {
    parallel::each(targets.len(), 1, |k| field_at(bodies, physics, targets[k]))
}

/// Potential energy `−Σ_{i<j} m_i m_j (G/d − H/(3d³))`; pairs at distance zero with ε = 0 are left out.
pub fn potential_energy(bodies: &Bodies, physics: &Physics) -> f64 {
    let of_body = |i: usize| {
        let terms = (0..i).filter_map(|j| {
            let distance = distance(separation(bodies, i, j), physics.softening)?;
            let depth =
                physics.coupling() / distance - physics.repulsion() / (3.0 * distance.powi(3));
            Some(physics.weight(bodies.mass[j]) * depth)
        });
        physics.weight(bodies.mass[i]) * terms.collect::<CompensatedSum>().value()
    };
    let terms = parallel::each(bodies.len(), 1, of_body);
    -terms.into_iter().collect::<CompensatedSum>().value()
}

pub(super) fn field_at(bodies: &Bodies, physics: &Physics, i: usize) -> ReferenceForce {
    let mut sums = [CompensatedSum::default(); 3];
    let (mut scale, mut gradient) = (0.0, 0.0);
    let (mut squares, mut gradient_squares) = (0.0, 0.0);
    for (j, r, distance) in pairs_of(bodies, physics, i) {
        let weight = physics.weight(bodies.mass[j]);
        let (near, far) = (
            weight * physics.repulsion() / distance.powi(4),
            weight * physics.coupling() / (distance * distance),
        );
        let pull = r.map(|component| (far - near) * (component / distance));
        sums.iter_mut()
            .zip(pull)
            .for_each(|(sum, component)| sum.add(component));
        let length = r
            .iter()
            .map(|component| component * component)
            .sum::<f64>()
            .sqrt();
        let size = (far.abs() + near.abs()) * (length / distance);
        scale += size;
        squares += size * size;
        let size = (2.0 * far.abs() + 4.0 * near.abs()) / distance;
        gradient += size;
        gradient_squares += size * size;
    }
    let drag = drag(bodies, physics, i);
    sums.iter_mut().zip(drag).for_each(|(sum, d)| sum.add(-d));
    let size_squared = drag.iter().map(|d| d * d).sum::<f64>();
    ReferenceForce {
        acceleration: sums.map(|sum| sum.value()),
        scale: scale + size_squared.sqrt(),
        gradient,
        scatter: (squares + size_squared).sqrt(),
        gradient_scatter: gradient_squares.sqrt(),
    }
}

/// Drag on body i: `γ v/m`.
fn drag(bodies: &Bodies, physics: &Physics, i: usize) -> [f64; 3] {
    let rate = match bodies.mass[i] {
        mass if mass > 0.0 => physics.damping() / mass,
        _ => 0.0,
    };
    [bodies.vx[i], bodies.vy[i], bodies.vz[i]].map(|v| rate * v)
}

/// Pairs of body i with those that it interacts with, in order: the other's index, the separation and
/// the softened distance.
fn pairs_of(
    bodies: &Bodies,
    physics: &Physics,
    i: usize,
) -> impl Iterator<Item = (usize, [f64; 3], f64)> {
    let others = (0..bodies.len()).filter(move |&j| j != i);
    others.filter_map(move |j| {
        let r = separation(bodies, i, j);
        Some((j, r, distance(r, physics.softening)?))
    })
}

/// From body i to body j.
fn separation(bodies: &Bodies, i: usize, j: usize) -> [f64; 3] {
    [
        bodies.x[j] - bodies.x[i],
        bodies.y[j] - bodies.y[i],
        bodies.z[j] - bodies.z[i],
    ]
}

/// Softened distance, or nothing for a pair that does not interact.
fn distance(r: [f64; 3], softening: f64) -> Option<f64> {
    let squared = r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + softening * softening;
    (squared != 0.0).then(|| squared.sqrt())
}

/// Jerks of the bodies with the indices `targets`, in place of accelerations, and what errors of
/// computed ones are measured by. With `w = |v_i| + |v_j|`, which relative errors of the velocities
/// are multiples of, a term is at most `4 w m/d³`, and its derivative `24 w m/d⁴`: 3 of `v/d³`, 6
/// and 15 of `3 (r·v) r/d⁵`.
///
/// # Panics
/// If an index is not below the number of bodies.
pub fn jerks_of(bodies: &Bodies, physics: &Physics, targets: &[usize]) -> Vec<ReferenceForce> {
    let speed = |i: usize| {
        let (x, y, z) = (bodies.vx[i], bodies.vy[i], bodies.vz[i]);
        (x * x + y * y + z * z).sqrt()
    };
    let field = |&i: &usize| {
        let (mut scale, mut gradient) = (0.0, 0.0);
        let (mut squares, mut gradient_squares) = (0.0, 0.0);
        for (j, _, distance) in pairs_of(bodies, physics, i) {
            let pull = physics.coupling().abs() * physics.weight(bodies.mass[j]);
            let term = (speed(i) + speed(j)) * pull / distance.powi(3);
            scale += 4.0 * term;
            squares += (4.0 * term).powi(2);
            gradient += 24.0 * term / distance;
            gradient_squares += (24.0 * term / distance).powi(2);
        }
        ReferenceForce {
            acceleration: jerk_at(bodies, physics, i),
            scale,
            gradient,
            scatter: squares.sqrt(),
            gradient_scatter: gradient_squares.sqrt(),
        }
    };
    parallel::each_of(targets, 1, field)
}

/// Jerks of all bodies: the derivative of [`accelerations`] in time, term by term. The formula is
/// spelled apart from the kernels', too: a contribution turns with v and weakens with the
/// distance.
pub fn jerks(bodies: &Bodies, physics: &Physics) -> Vec<[f64; 3]> {
    parallel::each(bodies.len(), 1, |i| jerk_at(bodies, physics, i))
}

pub(super) fn jerk_at(bodies: &Bodies, physics: &Physics, i: usize) -> [f64; 3] {
    let mut sums = [CompensatedSum::default(); 3];
    for (j, r, distance) in pairs_of(bodies, physics, i) {
        let v = relative_velocity(bodies, i, j);
        let strength = physics.weight(bodies.mass[j]) / (distance * distance) / distance;
        let approach = (r[0] * v[0] + r[1] * v[1] + r[2] * v[2]) / distance;
        for (axis, sum) in sums.iter_mut().enumerate() {
            sum.add(strength * v[axis]);
            sum.add(-3.0 * strength * approach * (r[axis] / distance));
        }
    }
    sums.map(|sum| physics.coupling() * sum.value())
}

/// Second derivative of body i's acceleration in time, where bodies have these accelerations: of
/// `m r/d³`, term by term, with `(d⁻³)′ = −3 (r·v) d⁻⁵` and
/// `(d⁻³)″ = −3 (v·v + r·a) d⁻⁵ + 15 (r·v)² d⁻⁷`.
pub(super) fn snap_at(
    bodies: &Bodies,
    accelerations: &[[f64; 3]],
    physics: &Physics,
    i: usize,
) -> [f64; 3] {
    let mut sums = [CompensatedSum::default(); 3];
    for (j, r, distance) in pairs_of(bodies, physics, i) {
        let v = relative_velocity(bodies, i, j);
        let a = axes(|axis| accelerations[j][axis] - accelerations[i][axis]);
        let mass = physics.weight(bodies.mass[j]);
        let first = -3.0 * dot(r, v) / distance.powi(5);
        let second = -3.0 * (dot(v, v) + dot(r, a)) / distance.powi(5)
            + 15.0 * dot(r, v).powi(2) / distance.powi(7);
        for (axis, sum) in sums.iter_mut().enumerate() {
            sum.add(mass * a[axis] / distance.powi(3));
            sum.add(2.0 * mass * first * v[axis]);
            sum.add(mass * second * r[axis]);
        }
    }
    sums.map(|sum| physics.coupling() * sum.value())
}

/// `max_j |r·v| / d²` of body i.
pub(super) fn fastest_approach(bodies: &Bodies, physics: &Physics, i: usize) -> f64 {
    let rates = pairs_of(bodies, physics, i).map(|(j, r, distance)| {
        let v = relative_velocity(bodies, i, j);
        let along = r[0] * v[0] + r[1] * v[1] + r[2] * v[2];
        along.abs() / (distance * distance)
    });
    rates.fold(0.0, f64::max)
}

/// Velocity of body j relative to body i.
fn relative_velocity(bodies: &Bodies, i: usize, j: usize) -> [f64; 3] {
    [
        bodies.vx[j] - bodies.vx[i],
        bodies.vy[j] - bodies.vy[i],
        bodies.vz[j] - bodies.vz[i],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::force::cpu::samples::{body, cloud};
    use crate::physics::ForceLaw;

    const GRAVITY: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 2.0,
        softening: 0.0,
    };

    fn pair() -> Bodies {
        let mut bodies = Bodies::with_capacity(2);
        bodies.push(body([1.0, 1.0, 1.0], 10.0));
        bodies.push(body([1.0, 4.0, 5.0], 250.0));
        bodies
    }

    #[test]
    fn two_bodies_by_hand() {
        // r = (0, 3, 4), d = 5, every step of the formula but the last digits of 0.6 exact.
        let near = |a: f64, b: f64| (a - b).abs() <= 4.0 * f64::EPSILON * b.abs();
        let field = accelerations_of(&pair(), &GRAVITY, &[0, 1]);
        let a = field[0].acceleration;
        assert!(a[0] == 0.0 && near(a[1], 12.0) && near(a[2], 16.0), "{a:?}");
        assert!(near(field[0].scale, 20.0) && near(field[0].gradient, 8.0));
        // Of one term, the root of the square.
        assert!(near(field[0].scatter, 20.0) && near(field[0].gradient_scatter, 8.0));
        let a = field[1].acceleration;
        assert!(
            a[0] == 0.0 && near(a[1], -0.48) && near(a[2], -0.64),
            "{a:?}"
        );
        assert!(near(potential_energy(&pair(), &GRAVITY), -1000.0));
    }

    #[test]
    fn softening_and_unit_law() {
        // |r| = 5 and ε = 12 make d = 13.
        let physics = Physics {
            law: ForceLaw::Unit,
            g: f64::NAN,
            softening: 12.0,
        };
        let a = accelerations(&pair(), &physics);
        let expected = 3.0 / 2197.0;
        assert!((a[0][1] - expected).abs() <= 4.0 * f64::EPSILON * expected);
        assert_eq!(a[0], a[1].map(|component| -component));
        assert_eq!(potential_energy(&pair(), &physics), -1.0 / 13.0);
        // Only the other body counts, not the body's own softened self.
        let field = accelerations_of(&pair(), &physics, &[0])[0];
        assert!((field.scale / (5.0 / 2197.0) - 1.0).abs() <= 4.0 * f64::EPSILON);
        assert!((field.gradient / (2.0 / 2197.0) - 1.0).abs() <= 4.0 * f64::EPSILON);
    }

    #[test]
    fn coincident_bodies_do_not_pull_each_other() {
        let mut bodies = pair();
        bodies.push(body([1.0, 1.0, 1.0], 1000.0));
        let a = accelerations(&bodies, &GRAVITY);
        assert_eq!(a[0], accelerations(&pair(), &GRAVITY)[0]);
        assert!(potential_energy(&bodies, &GRAVITY).is_finite());
        assert_eq!(
            accelerations(&Bodies::with_capacity(0), &GRAVITY),
            Vec::<[f64; 3]>::new()
        );
    }

    #[test]
    fn forces_sum_to_zero() {
        let bodies = cloud(150, 1);
        let physics = Physics {
            softening: 0.01,
            ..GRAVITY
        };
        let fields = accelerations_of(&bodies, &physics, &Vec::from_iter(0..bodies.len()));
        for axis in 0..3 {
            let forces = fields
                .iter()
                .zip(&bodies.mass)
                .map(|(f, m)| m * f.acceleration[axis]);
            let sum = forces.collect::<CompensatedSum>().value();
            let scale: f64 = fields
                .iter()
                .zip(&bodies.mass)
                .map(|(f, m)| m * f.scale)
                .sum();
            assert!(
                sum.abs() <= 2e-15 * scale,
                "axis {axis}: {sum:e} of {scale:e}"
            );
        }
    }

    #[test]
    fn order_of_the_bodies_does_not_matter() {
        let bodies = cloud(200, 2);
        let mut reversed = Bodies::with_capacity(bodies.len());
        (0..bodies.len())
            .rev()
            .for_each(|i| reversed.push(bodies.body(i)));
        let forward = accelerations_of(&bodies, &GRAVITY, &Vec::from_iter(0..200));
        let backward = accelerations(&reversed, &GRAVITY);
        for (field, a) in forward.iter().zip(backward.iter().rev()) {
            for (forward, backward) in field.acceleration.iter().zip(a) {
                // The terms are the same numbers; only the compensated sum may differ.
                let error = (forward - backward).abs();
                assert!(
                    error <= f64::EPSILON * field.scale,
                    "{error:e} of {:e}",
                    field.scale
                );
            }
        }
    }

    #[test]
    fn acceleration_is_the_gradient_of_the_potential() {
        let bodies = cloud(20, 3);
        let physics = Physics {
            softening: 0.1,
            ..GRAVITY
        };
        let a = accelerations(&bodies, &physics);
        let h = 1e-4;
        let moved = |by: f64| {
            let mut bodies = bodies.clone();
            bodies.y[7] += by;
            potential_energy(&bodies, &physics)
        };
        let force = -(moved(h) - moved(-h)) / (2.0 * h);
        let expected = bodies.mass[7] * a[7][1];
        // Central difference: O(h²) with third derivatives of order W/ε³.
        assert!(
            (force - expected).abs() <= 1e-4 * expected.abs(),
            "{force} {expected}"
        );
    }
}
