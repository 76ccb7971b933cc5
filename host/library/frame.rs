//! Units and origin in which single precision is enough.
//!
//! f32 holds seven digits and 76 decades. SI positions of a galaxy (10²¹ m) have squares near
//! the end of that range and cubes beyond it, and a cluster far from the origin spends its digits
//! on the offset. A [`Frame`] moves the origin to the bulk of the bodies and scales length, mass
//! and time by powers of two, so that
//!
//! * coordinates lie in [−1, 1] and ε is at most 1;
//! * masses lie in [0, 1], the largest in (½, 1];
//! * speeds are at most 1 and G′ is at most 1, the larger of the two near it.
//!
//! Scaling by a power of two never rounds (short of the ends of the f64 range). Only moving the
//! origin does, by half an ulp of the f64 coordinate.

use gpu_kernels::numerics::Precision;

use crate::bodies::Bodies;
use crate::physics::{ForceLaw, Physics};
use crate::vectors::axes;

/// Origin and units of local coordinates; see the [module](self).
///
/// `length`, `mass` and `time` are powers of two, in the units of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Frame {
    /// Origin of the local coordinates.
    pub centre: [f64; 3],
    /// Unit of length.
    pub length: f64,
    /// Unit of mass.
    pub mass: f64,
    /// Unit of time.
    pub time: f64,
}

/// Units stay within 2^±340, so that their cubes are finite.
const LARGEST_EXPONENT: i32 = 340;

/// Bodies looked at to find the centre: enough to land in the bulk, few enough to cost nothing.
const SAMPLE: usize = 128;

impl Frame {
    /// Changes nothing.
    pub const IDENTITY: Self = Self {
        centre: [0.0; 3],
        length: 1.0,
        mass: 1.0,
        time: 1.0,
    };

    /// The frame for these bodies under this force; a function of its arguments alone, so that a
    /// restarted run finds the same one.
    ///
    /// The centre is the median body along each axis. A mean or the middle of the bounding box
    /// would follow a single escaper and leave the bulk with fewer digits.
    ///
    /// A unit with nothing to be measured by (no bodies, all at one point and at rest, no mass) is 1.
    /// Coordinates that are not finite are ignored.
    pub fn of(bodies: &Bodies, physics: &Physics) -> Self {
        let centre = [&bodies.x, &bodies.y, &bodies.z].map(|x| median(x));
        let extent = extent(bodies, centre).max(physics.softening.abs());
        let speed = [&bodies.vx, &bodies.vy, &bodies.vz]
            .map(|v| largest(v, 0.0))
            .into_iter()
            .fold(0.0, f64::max);

        let length = exponent_above(extent).unwrap_or(0);
        let mass = exponent_above(largest(&bodies.mass, 0.0)).unwrap_or(0);
        let weight = match physics.law {
            ForceLaw::Gravity | ForceLaw::AttractRepel { .. } => mass,
            ForceLaw::Unit => 0,
        };
        // G′ = G·weight·time²/length³ ≤ 1 and speed·time/length ≤ 1, whichever is stricter.
        let repulsion = physics.repulsion().abs() / power_of_two(length).powi(2);
        let dynamical = exponent_above(physics.coupling().abs().max(repulsion))
            .map(|g| (3 * length - weight - g).div_euclid(2));
        let crossing = exponent_above(speed).map(|v| length - v);
        let time = match (dynamical, crossing) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b).unwrap_or(0),
        };
        Self {
            centre,
            length: power_of_two(length),
            mass: power_of_two(mass),
            time: power_of_two(time.clamp(-1022, 1022)),
        }
    }

    /// Distance, in the units of the run, below which bodies without softening do not attract each other: its square is
    /// too small a number of f64.
    pub fn least_distance(&self) -> f64 {
        self.length * power_of_two(-LARGEST_EXPONENT)
    }

    /// The largest finite coordinate of the bodies from the centre, in the units of the run.
    pub fn extent(&self, bodies: &Bodies) -> f64 {
        extent(bodies, self.centre)
    }

    /// Position in local units.
    pub fn position_to_local(&self, x: [f64; 3]) -> [f64; 3] {
        let scale = inverse(self.length);
        axes(|axis| (x[axis] - self.centre[axis]) * scale)
    }

    /// Inverse of [`position_to_local`](Self::position_to_local), up to rounding of the origin's
    /// shift.
    pub fn position_from_local(&self, x: [f64; 3]) -> [f64; 3] {
        axes(|axis| x[axis] * self.length + self.centre[axis])
    }

    /// Velocity in local units.
    pub fn velocity_to_local(&self, v: [f64; 3]) -> [f64; 3] {
        let scale = inverse(self.length);
        v.map(|v| v * scale * self.time)
    }

    /// Inverse of [`velocity_to_local`](Self::velocity_to_local).
    pub fn velocity_from_local(&self, v: [f64; 3]) -> [f64; 3] {
        let rate = inverse(self.time);
        v.map(|v| v * rate * self.length)
    }

    /// Acceleration from local units.
    pub fn acceleration_from_local(&self, a: [f64; 3]) -> [f64; 3] {
        let rate = inverse(self.time);
        a.map(|a| a * rate * rate * self.length)
    }

    /// Mass in local units. Under [`ForceLaw::Unit`] masses play no part, and bodies weigh 1 here too.
    pub fn mass_to_local(&self, mass: f64) -> f64 {
        mass * inverse(self.mass)
    }

    /// Length, such as ε, in local units.
    pub fn length_to_local(&self, length: f64) -> f64 {
        length / self.length
    }

    /// ε² in local units.
    pub fn softening_squared(&self, softening: f64) -> f64 {
        self.length_to_local(softening).powi(2)
    }

    /// Returns whether kernels of a precision take ε as zero. It may be so small next to the system that
    /// its square vanishes there.
    pub fn is_unsoftened(&self, softening: f64, precision: Precision) -> bool {
        self.softening_squared(softening) < precision.smallest_square()
    }

    /// Time, such as a step, in local units.
    pub fn time_to_local(&self, time: f64) -> f64 {
        time / self.time
    }

    /// Energy under this force, in the units of the run.
    pub fn energy_from_local(&self, physics: &Physics, energy: f64) -> f64 {
        let mass = match physics.law {
            ForceLaw::Gravity | ForceLaw::AttractRepel { .. } => self.mass,
            ForceLaw::Unit => 1.0,
        };
        let speed = self.length / self.time;
        energy * mass * speed * speed
    }

    /// G′, the constant before the sum over local masses (or over ones, under [`ForceLaw::Unit`]) that
    /// gives local accelerations: `G · mass · time² / length³`.
    pub fn coupling_to_local(&self, physics: &Physics) -> f64 {
        self.pull_to_local(physics.coupling(), physics)
    }

    /// H′ of `attract-repel`: `H · mass · time² / length⁵`.
    pub fn repulsion_to_local(&self, physics: &Physics) -> f64 {
        self.pull_to_local(physics.repulsion() / self.length / self.length, physics)
    }

    /// γ′ of `attract-repel`: `γ · time / mass`.
    pub fn damping_to_local(&self, physics: &Physics) -> f64 {
        physics.damping() / self.mass * self.time
    }

    fn pull_to_local(&self, constant: f64, physics: &Physics) -> f64 {
        let mass = match physics.law {
            ForceLaw::Gravity | ForceLaw::AttractRepel { .. } => self.mass,
            ForceLaw::Unit => 1.0,
        };
        // time²/length² first: near 1/(G·mass/length), whereas each alone may leave the range.
        let rate = self.time / self.length;
        constant * rate * mass * rate / self.length
    }
}

fn extent(bodies: &Bodies, centre: [f64; 3]) -> f64 {
    let axes = [&bodies.x, &bodies.y, &bodies.z].into_iter().zip(centre);
    axes.map(|(x, centre)| largest(x, centre))
        .fold(0.0, f64::max)
}

/// Median of a regular sample; 0 if there is none or it is not finite.
fn median(x: &[f64]) -> f64 {
    let stride = x.len().div_ceil(SAMPLE).max(1);
    let mut sample: Vec<f64> = x.iter().step_by(stride).copied().collect();
    if sample.is_empty() {
        return 0.0;
    }
    let middle = sample.len() / 2;
    let (_, &mut median, _) = sample.select_nth_unstable_by(middle, f64::total_cmp);
    if median.is_finite() { median } else { 0.0 }
}

/// Largest finite distance of numbers from an origin, 0 if there is none.
fn largest(values: &[f64], origin: f64) -> f64 {
    // Maxima side by side, which take vector instructions: one of floating point is in an order otherwise.
    const LANES: usize = 16;
    let longer = |largest: f64, value: f64| {
        let distance = (value - origin).abs();
        let finite = if distance < f64::INFINITY {
            distance
        } else {
            0.0
        };
        if finite > largest { finite } else { largest }
    };
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = longer(*lane, value);
        }
    }
    let of_rest = rest
        .iter()
        .fold(0.0, |largest, &value| longer(largest, value));
    lanes.into_iter().fold(of_rest, f64::max)
}

/// Power of two next above the largest of finite numbers, without their signs; 1 if all are 0.
pub(crate) fn unit_of(numbers: impl Iterator<Item = f64>) -> f64 {
    let finite = numbers.map(f64::abs).filter(|x| x.is_finite());
    power_of_two(exponent_above(finite.fold(0.0, f64::max)).unwrap_or(0))
}

/// `1/unit`, which is exact for units of a frame: loops multiply by it, sooner than they would divide.
fn inverse(unit: f64) -> f64 {
    1.0 / unit
}

/// Smallest e with `2^e ≥ value`, kept within ±[`LARGEST_EXPONENT`]; `None` for 0, NaN and ∞.
fn exponent_above(value: f64) -> Option<i32> {
    if !(value.is_finite() && value > 0.0) {
        return None;
    }
    let bits = value.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let above = if bits << 12 == 0 {
        exponent
    } else {
        exponent + 1
    };
    Some(above.clamp(-LARGEST_EXPONENT, LARGEST_EXPONENT))
}

/// `2^exponent` for the exponents of normal f64 numbers.
fn power_of_two(exponent: i32) -> f64 {
    debug_assert!((-1022..=1023).contains(&exponent));
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{Body, BodyKind};
    use crate::force::cpu::samples::cloud;
    use crate::force::reference;

    const G: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.0,
    };

    /// A sphere of the given size, offset and total mass, moving at about circular speed.
    fn system(size: f64, offset: f64, mass: f64, speed: f64) -> Bodies {
        let mut bodies = cloud(100, 5);
        for x in [&mut bodies.x, &mut bodies.y, &mut bodies.z] {
            x.iter_mut().for_each(|x| *x = *x * size + offset);
        }
        for v in [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz] {
            v.iter_mut().for_each(|v| *v *= speed);
        }
        bodies.mass.iter_mut().for_each(|m| *m *= mass);
        bodies
    }

    /// (bodies, physics) in unit systems far from N-body units.
    fn unit_systems() -> Vec<(Bodies, Physics)> {
        vec![
            (
                system(1e21, 0.0, 1e42, 2e5),
                Physics {
                    g: 6.674e-11,
                    softening: 1e18,
                    ..G
                },
            ),
            (
                system(1.5e11, 3e20, 2e30, 3e4),
                Physics { g: 6.674e-11, ..G },
            ),
            (
                system(10.0, 1e9, 1e5, 1.0),
                Physics {
                    g: 4.3e-3,
                    softening: 0.1,
                    ..G
                },
            ),
            (
                system(1e-15, 0.0, 1e-30, 1e-3),
                Physics {
                    g: 1.0,
                    softening: 1e-18,
                    ..G
                },
            ),
            (
                system(1e-15, 0.0, 1.0, 0.0),
                Physics {
                    law: ForceLaw::Unit,
                    g: 0.0,
                    softening: 1.0,
                },
            ),
            (system(1e100, 0.0, 1e100, 1e80), G),
            (system(1.0, 0.0, 1.0, 1.0), Physics { g: 0.0, ..G }),
            (system(1.0, 0.0, 1.0, 1.0), G),
        ]
    }

    #[test]
    fn local_quantities_are_of_order_one() {
        for (bodies, physics) in unit_systems() {
            let frame = Frame::of(&bodies, &physics);
            let mut extent = frame.length_to_local(physics.softening);
            let (mut speed, mut mass) = (0f64, 0f64);
            for i in 0..bodies.len() {
                let body = bodies.body(i);
                for x in frame.position_to_local(body.position) {
                    extent = extent.max(x.abs());
                }
                for v in frame.velocity_to_local(body.velocity) {
                    speed = speed.max(v.abs());
                }
                mass = mass.max(frame.mass_to_local(body.mass));
            }
            let g = frame.coupling_to_local(&physics);
            assert!(extent > 0.5 && extent <= 1.0, "{extent} {frame:?}");
            assert!(mass > 0.5 && mass <= 1.0, "{mass} {frame:?}");
            assert!(speed <= 1.0 && g <= 1.0, "{speed} {g} {frame:?}");
            assert!(speed > 0.5 || g > 0.125, "{speed} {g} {frame:?}");
        }
    }

    #[test]
    fn there_and_back() {
        for (bodies, physics) in unit_systems() {
            let frame = Frame::of(&bodies, &physics);
            for i in 0..bodies.len() {
                let Body {
                    position,
                    velocity,
                    mass,
                    ..
                } = bodies.body(i);
                // Powers of two: nothing may change but the position's offset by half an ulp.
                let back = frame.velocity_from_local(frame.velocity_to_local(velocity));
                assert_eq!(back, velocity);
                let local = velocity.map(|a| a / frame.length * frame.time * frame.time);
                assert_eq!(frame.acceleration_from_local(local), velocity);
                assert_eq!(frame.mass_to_local(mass) * frame.mass, mass);
                let back = frame.position_from_local(frame.position_to_local(position));
                for axis in 0..3 {
                    let size = position[axis].abs() + frame.centre[axis].abs();
                    let error = (back[axis] - position[axis]).abs();
                    assert!(error <= f64::EPSILON * size, "{error:e} of {size:e}");
                }
            }
        }
    }

    #[test]
    fn local_force_is_the_force() {
        for (bodies, physics) in unit_systems() {
            let frame = Frame::of(&bodies, &physics);
            let mut local = bodies.clone();
            for i in 0..bodies.len() {
                let body = bodies.body(i);
                let [x, y, z] = frame.position_to_local(body.position);
                (local.x[i], local.y[i], local.z[i]) = (x, y, z);
                local.mass[i] = frame.mass_to_local(body.mass);
            }
            let local_physics = Physics {
                g: 1.0,
                softening: frame.length_to_local(physics.softening),
                ..physics
            };
            let g = frame.coupling_to_local(&physics);
            let all = Vec::from_iter(0..bodies.len());
            let expected = reference::accelerations_of(&bodies, &physics, &all);
            let sums = reference::accelerations(&local, &local_physics);
            let coordinates = [&bodies.x[..], &bodies.y, &bodies.z].concat();
            let largest = largest(&coordinates, 0.0);
            // Each local coordinate is off by half an ulp of x; a separation by √3·2 of those.
            let position_error = 2.0 * f64::EPSILON * largest;
            for (field, sum) in expected.iter().zip(sums) {
                let a = frame.acceleration_from_local(sum.map(|sum| g * sum));
                for (a, expected) in a.iter().zip(field.acceleration) {
                    let error = (a - expected).abs();
                    let bound = field.bound(32.0 * f64::EPSILON, position_error);
                    assert!(error <= bound, "{error:e} > {bound:e} in {frame:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_to_measure() {
        let still = Physics { g: 0.0, ..G };
        assert_eq!(
            Frame::of(&Bodies::with_capacity(0), &still),
            Frame::IDENTITY
        );
        let mut one = Bodies::with_capacity(1);
        let mut body = cloud(1, 1).body(0);
        (body.position, body.velocity, body.mass) = ([3.0, -4.0, 1e9], [0.0; 3], 0.0);
        one.push(body);
        one.push(Body {
            kind: BodyKind::Dark,
            ..body
        });
        let frame = Frame::of(&one, &still);
        assert_eq!(
            frame,
            Frame {
                centre: [3.0, -4.0, 1e9],
                ..Frame::IDENTITY
            }
        );
        assert_eq!(frame.position_to_local(body.position), [0.0; 3]);
    }

    #[test]
    fn the_largest_is_found_wherever_it_is() {
        let values: Vec<f64> = (0..53).map(|i| 0.5 + f64::from(i % 7)).collect();
        for at in 0..values.len() {
            let mut values = values.clone();
            values[at] = -100.0;
            values[(at + 1) % 53] = f64::NAN;
            values[(at + 17) % 53] = f64::NEG_INFINITY;
            assert_eq!(largest(&values, 0.0), 100.0, "{at}");
            assert_eq!(largest(&values, 1.0), 101.0, "{at}");
        }
        assert_eq!(largest(&[f64::NAN], 0.0), 0.0);
    }

    #[test]
    fn an_escaper_does_not_move_the_centre() {
        let mut bodies = cloud(1000, 9);
        bodies.x[0] = 1e6; // the first body is always in the sample
        assert!(Frame::of(&bodies, &G).centre[0].abs() <= 1.0);
    }

    #[test]
    fn bodies_that_are_not_finite_do_not_spoil_the_frame() {
        let mut bodies = cloud(9, 1);
        let clean = Frame::of(&bodies, &G);
        (bodies.x[3], bodies.vy[4], bodies.mass[5]) = (f64::NAN, f64::INFINITY, f64::NAN);
        let frame = Frame::of(&bodies, &G);
        assert!(frame.centre.iter().all(|x| x.is_finite()));
        assert!(frame.length <= 2.0 * clean.length && frame.time.is_normal());
    }

    #[test]
    fn exponents() {
        assert_eq!(
            [1.0, 1.5, 2.0, 0.75, 0.5].map(exponent_above),
            [0, 1, 1, 0, -1].map(Some)
        );
        assert_eq!(
            [0.0, f64::NAN, f64::INFINITY].map(exponent_above),
            [None; 3]
        );
        assert_eq!(
            exponent_above(f64::MIN_POSITIVE / 4.0),
            Some(-LARGEST_EXPONENT)
        );
        assert_eq!(power_of_two(-3), 0.125);
    }
}
