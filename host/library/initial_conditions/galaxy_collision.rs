//! Two disk galaxies that meet.

use super::{GenerateError, Parameter, disk_galaxy, room_for};
use crate::bodies::{Bodies, Body};
use crate::vectors::axes;

/// Toomre parameter of both disks: calm by themselves, so that what is seen is the encounter.
const TOOMRE_Q: f64 = 1.5;

/// The orbit on which the centres of two galaxies approach each other, as if each were a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encounter {
    /// Mass of the second galaxy over the mass of the first.
    pub mass_ratio: f64,
    /// Eccentricity of the orbit: below 1 bound, 1 parabolic, above 1 a fly-by.
    pub eccentricity: f64,
    /// Least distance of the orbit, in scale lengths of the first disk.
    pub pericentre: f64,
    /// Distance at the beginning.
    pub separation: f64,
    /// Angle between the second disk and the plane of the orbit, in degrees: 0 turns in the sense
    /// of the orbit, 180 against it. The first disk lies in the plane of the orbit and turns in
    /// its sense.
    pub inclination: f64,
}

impl Default for Encounter {
    fn default() -> Self {
        Self {
            mass_ratio: 1.0,
            eccentricity: 1.0,
            pericentre: 4.0,
            separation: 30.0,
            inclination: 60.0,
        }
    }
}

/// Two [disk galaxies](disk_galaxy), `n` bodies together, on their way to an encounter.
///
/// Units: G = 1, total mass 1, scale length of the first disk 1; the second galaxy is scaled to
/// the same surface density, in length by the root of its mass. Bodies of the first galaxy come
/// first, in proportion to the masses. The orbit lies in the xy plane and is run through
/// counter-clockwise, with the second galaxy at first on the x axis; from 30 scale lengths it takes
/// some 70 units of time to pericentre on a parabola. Halos overlap long before, so the galaxies
/// brake each other and merge even on a parabola. The centre of mass rests at the origin.
///
/// # Errors
/// An [`Encounter`] with a ratio, distance or eccentricity out of range, or whose orbit does not
/// reach the separation; no bodies, or too little memory for them.
pub fn galaxy_collision(
    n: usize,
    seed: u64,
    encounter: Encounter,
) -> Result<Bodies, GenerateError> {
    let [place, pace] = encounter.state()?;
    let ratio = encounter.mass_ratio;
    let parts = [1.0 / (1.0 + ratio), ratio / (1.0 + ratio)];
    let mut bodies = room_for(n)?;
    let second = ((parts[1] * n as f64) as usize).min(n - 1);
    let (sin, cos) = libm::sincos(encounter.inclination.to_radians());
    for (index, count) in [n - second, second].into_iter().enumerate() {
        if count == 0 {
            continue;
        }
        let mass = if second == 0 { 1.0 } else { parts[index] };
        // Of a galaxy of mass and scale length 1: v² scales as mass over length.
        let length = if index == 0 { 1.0 } else { ratio.sqrt() };
        let speed = (mass / length).sqrt();
        // Each galaxy's share of the separation is the other's of the mass.
        let share = match (second, index) {
            (0, _) => 0.0,
            (_, 0) => -parts[1],
            _ => parts[0],
        };
        let turn = |[x, y, z]: [f64; 3]| match index {
            0 => [x, y, z],
            _ => [x, cos * y - sin * z, sin * y + cos * z],
        };
        let galaxy = disk_galaxy(count, seed.wrapping_add(index as u64), TOOMRE_Q)?;
        for body in galaxy.iter() {
            let (position, velocity) = (turn(body.position), turn(body.velocity));
            bodies.push(Body {
                position: axes(|k| length * position[k] + share * place[k]),
                velocity: axes(|k| speed * velocity[k] + share * pace[k]),
                mass: mass * body.mass,
                id: bodies.len() as u64,
                kind: body.kind,
            });
        }
    }
    bodies.to_centre_of_mass_frame();
    Ok(bodies)
}

impl Encounter {
    /// Position and velocity of the second galaxy relative to the first, G M = 1.
    fn state(&self) -> Result<[[f64; 3]; 2], GenerateError> {
        let refuse = |parameter, value, range| {
            Err(GenerateError::OutOfRange {
                parameter,
                value,
                range,
            })
        };
        let (e, q, r) = (self.eccentricity, self.pericentre, self.separation);
        if !(0.001..=1000.0).contains(&self.mass_ratio) {
            return refuse(Parameter::MassRatio, self.mass_ratio, "from 0.001 to 1000");
        }
        if !(0.0..=100.0).contains(&e) {
            return refuse(Parameter::Eccentricity, e, "from 0 to 100");
        }
        if !(q > 0.0 && q.is_finite()) {
            return refuse(Parameter::Pericentre, q, "above 0 and finite");
        }
        if !self.inclination.is_finite() {
            return refuse(Parameter::Inclination, self.inclination, "finite");
        }
        let farthest = if e < 1.0 {
            q * (1.0 + e) / (1.0 - e)
        } else {
            f64::MAX
        };
        if !(q..=farthest).contains(&r) {
            let range = "a distance that the orbit reaches: at least the pericentre, at most the \
                         apocentre if the eccentricity is below 1";
            return refuse(Parameter::Separation, r, range);
        }
        // The conic r = p/(1 + e cos ν), on the way in.
        let p = q * (1.0 + e);
        let e_cos = p / r - 1.0;
        let e_sin = -(e * e - e_cos * e_cos).max(0.0).sqrt();
        let radial = e_sin / p.sqrt();
        let across = (1.0 + e_cos) / p.sqrt();
        Ok([[r, 0.0, 0.0], [radial, across, 0.0]])
    }
}

#[cfg(test)]
mod tests {
    use super::super::norm_squared;
    use super::super::tests::assert_centred;
    use super::*;
    use crate::bodies::BodyKind;

    /// Pericentre and eccentricity of a state, from its energy and angular momentum.
    fn elements([position, velocity]: [[f64; 3]; 2]) -> [f64; 2] {
        let energy = 0.5 * norm_squared(velocity) - 1.0 / norm_squared(position).sqrt();
        let spin = position[0] * velocity[1];
        let e = (1.0 + 2.0 * energy * spin * spin).max(0.0).sqrt();
        [spin * spin / (1.0 + e), e]
    }

    #[test]
    fn the_orbit_is_the_one_asked_for() {
        for (eccentricity, separation) in [(0.0, 4.0), (0.5, 11.0), (1.0, 30.0), (2.5, 50.0)] {
            let encounter = Encounter {
                eccentricity,
                separation,
                ..Encounter::default()
            };
            let state = encounter.state().unwrap();
            let [q, e] = elements(state);
            // Near e = 0 the root loses half the digits.
            assert!(
                (q - 4.0).abs() <= 1e-6 && (e - eccentricity).abs() <= 1e-6,
                "{q} {e}"
            );
            assert!(state[1][0] <= 0.0, "they approach");
        }
    }

    #[test]
    fn two_galaxies_stand_where_they_should() {
        let n = 20_000;
        let encounter = Encounter {
            mass_ratio: 0.25,
            ..Encounter::default()
        };
        let bodies = galaxy_collision(n, 1, encounter).unwrap();
        assert_eq!(bodies.len(), n);
        assert_centred(&bodies, 100.0);
        assert!((bodies.total_mass() - 1.0).abs() <= 1e-12);
        let centre = |range: std::ops::Range<usize>| {
            let part: Bodies = range.map(|i| bodies.body(i)).collect();
            (part.total_mass(), part.centre_of_mass().unwrap())
        };
        let ((m1, c1), (m2, c2)) = (centre(0..16_000), centre(16_000..n));
        assert!((m2 / m1 - 0.25).abs() <= 1e-12);
        let separation = axes(|k| c2[k] - c1[k]);
        assert!((separation[0] - 30.0).abs() <= 1e-9, "{separation:?}");
        assert!(separation[1].abs().max(separation[2].abs()) <= 1e-9);
        assert!(bodies.id.iter().copied().eq(0..n as u64));
        assert!(bodies.kind.contains(&BodyKind::Dark));
    }

    #[test]
    fn the_second_disk_is_tilted() {
        let encounter = Encounter {
            inclination: 90.0,
            ..Encounter::default()
        };
        let n = 4_000;
        let bodies = galaxy_collision(n, 1, encounter).unwrap();
        // The disks are the first 0.4 of each galaxy's bodies: the first turns about z, the second
        // about −y.
        let spin = |range: std::ops::Range<usize>| {
            let part: Bodies = range.map(|i| bodies.body(i)).collect();
            let (c, v) = (
                part.centre_of_mass().unwrap(),
                part.centre_of_mass_velocity().unwrap(),
            );
            part.iter().fold([0.0; 3], |sum, b| {
                let r = axes(|k| b.position[k] - c[k]);
                let u = axes(|k| b.velocity[k] - v[k]);
                let spin = [1, 2, 0].map(|k| r[k] * u[(k + 1) % 3] - r[(k + 1) % 3] * u[k]);
                axes(|k| sum[k] + b.mass * spin[k])
            })
        };
        let direction = |[x, y, z]: [f64; 3]| {
            let size = norm_squared([x, y, z]).sqrt();
            [x / size, y / size, z / size]
        };
        assert!(direction(spin(0..800))[2] > 0.99);
        assert!(direction(spin(2_000..2_800))[1] < -0.99);
    }

    #[test]
    fn impossible_encounters_are_refused() {
        let good = Encounter::default();
        for bad in [
            Encounter {
                mass_ratio: 0.0,
                ..good
            },
            Encounter {
                eccentricity: -0.1,
                ..good
            },
            Encounter {
                eccentricity: 0.5,
                ..good
            },
            Encounter {
                pericentre: 0.0,
                ..good
            },
            Encounter {
                separation: 3.0,
                ..good
            },
            Encounter {
                inclination: f64::NAN,
                ..good
            },
        ] {
            assert!(galaxy_collision(10, 0, bad).is_err(), "{bad:?}");
        }
        for n in 1..8 {
            let bodies = galaxy_collision(n, 0, good).unwrap();
            assert_eq!((bodies.len(), bodies.check()), (n, Ok(())));
        }
    }
}
