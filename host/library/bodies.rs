//! State of the simulated bodies.
//!
//! The library carries no units of its own: with `G = 1` (the generators' choice) lengths, masses
//! and times are N-body units; any other consistent set works as long as `G` is given in it.

use std::cmp::Ordering;
use std::collections::TryReserveError;
use std::ops::Range;

use thiserror::Error;

/// State of N bodies as a structure of arrays in double precision.
///
/// All nine arrays have the same length; element `i` of each belongs to body `i`. The fields are
/// public because force loops and integrators work on whole columns; code that fills them by hand
/// should call [`Bodies::check`] before handing them on.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bodies {
    /// Position along x, in units of length.
    pub x: Vec<f64>,
    /// Position along y, in units of length.
    pub y: Vec<f64>,
    /// Position along z, in units of length.
    pub z: Vec<f64>,
    /// Velocity along x, in units of length per time.
    pub vx: Vec<f64>,
    /// Velocity along y, in units of length per time.
    pub vy: Vec<f64>,
    /// Velocity along z, in units of length per time.
    pub vz: Vec<f64>,
    /// Mass, at least zero; a massless body is a test particle.
    pub mass: Vec<f64>,
    /// Name of the body, which stays with it when bodies are reordered.
    pub id: Vec<u64>,
    /// Kind of matter that the body stands for. Gravity treats all kinds alike.
    pub kind: Vec<BodyKind>,
}

/// Kind of matter that a body stands for: the three kinds that Tipsy snapshots distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum BodyKind {
    /// Gas; moved by gravity only, there are no hydrodynamics here.
    Gas,
    /// Dark matter.
    Dark,
    /// Star; also what the generators make.
    Star,
}

impl BodyKind {
    /// All kinds, in the order in which Tipsy files hold them.
    pub const ALL: [BodyKind; 3] = [BodyKind::Gas, BodyKind::Dark, BodyKind::Star];

    /// The kind's name in lower case, as CSV files spell it.
    pub fn name(self) -> &'static str {
        match self {
            BodyKind::Gas => "gas",
            BodyKind::Dark => "dark",
            BodyKind::Star => "star",
        }
    }

    /// The kind's number in binary files: its place in [`ALL`](Self::ALL).
    pub(crate) fn number(self) -> u8 {
        match self {
            BodyKind::Gas => 0,
            BodyKind::Dark => 1,
            BodyKind::Star => 2,
        }
    }

    /// The kind of a number, where there is one.
    pub(crate) fn of_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// One body, gathered from (or to be pushed to) the arrays of [`Bodies`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Body {
    /// Position, in units of length.
    pub position: [f64; 3],
    /// Velocity, in units of length per time.
    pub velocity: [f64; 3],
    /// Mass.
    pub mass: f64,
    /// Name of the body.
    pub id: u64,
    /// Kind of matter that the body stands for.
    pub kind: BodyKind,
}

impl Body {
    /// The fault of this body, were it number `index` of its set: see [`Bodies::check`].
    pub(crate) fn check(&self, index: usize) -> Result<(), BodyFault> {
        let columns = COORDINATES
            .into_iter()
            .zip(self.position.into_iter().chain(self.velocity));
        for (field, value) in columns.chain([("mass", self.mass)]) {
            if !value.is_finite() {
                return Err(BodyFault::NotFinite {
                    body: index,
                    field,
                    value,
                });
            }
        }
        if self.mass < 0.0 {
            return Err(BodyFault::NegativeMass {
                body: index,
                mass: self.mass,
            });
        }
        Ok(())
    }
}

/// Names of the six coordinates in the order position, velocity.
pub(crate) const COORDINATES: [&str; 6] = ["x", "y", "z", "vx", "vy", "vz"];

/// Fault found by [`Bodies::check`]. Bodies are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BodyFault {
    /// One of the arrays is longer or shorter than `x`.
    #[error("array `{field}` has {found} elements where `x` has {expected}")]
    Length {
        /// The array.
        field: &'static str,
        /// Length of `x`.
        expected: usize,
        /// Length of the array.
        found: usize,
    },
    /// A coordinate or mass is infinite or not a number.
    #[error("body {body}: {field} = {value} is not a finite number")]
    NotFinite {
        /// Index of the body.
        body: usize,
        /// Name of the field.
        field: &'static str,
        /// The value found.
        value: f64,
    },
    /// A mass is below zero.
    #[error("body {body}: mass = {mass:?} is negative")]
    NegativeMass {
        /// Index of the body.
        body: usize,
        /// The mass found.
        mass: f64,
    },
}

/// Whole numbers below it are all exact in f64.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Bodies {
    /// No bodies, with room for `capacity`.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            x: Vec::with_capacity(capacity),
            y: Vec::with_capacity(capacity),
            z: Vec::with_capacity(capacity),
            vx: Vec::with_capacity(capacity),
            vy: Vec::with_capacity(capacity),
            vz: Vec::with_capacity(capacity),
            mass: Vec::with_capacity(capacity),
            id: Vec::with_capacity(capacity),
            kind: Vec::with_capacity(capacity),
        }
    }

    /// Makes room for `additional` more bodies.
    ///
    /// # Errors
    /// The allocator's refusal, where `Vec::reserve` would end the process.
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), TryReserveError> {
        for column in [
            &mut self.x,
            &mut self.y,
            &mut self.z,
            &mut self.vx,
            &mut self.vy,
            &mut self.vz,
            &mut self.mass,
        ] {
            column.try_reserve(additional)?;
        }
        self.id.try_reserve(additional)?;
        self.kind.try_reserve(additional)
    }

    /// The number of bodies N.
    pub fn len(&self) -> usize {
        self.x.len()
    }

    /// Returns whether there are no bodies.
    pub fn is_empty(&self) -> bool {
        self.x.is_empty()
    }

    /// Appends a body.
    pub fn push(&mut self, body: Body) {
        self.x.push(body.position[0]);
        self.y.push(body.position[1]);
        self.z.push(body.position[2]);
        self.vx.push(body.velocity[0]);
        self.vy.push(body.velocity[1]);
        self.vz.push(body.velocity[2]);
        self.mass.push(body.mass);
        self.id.push(body.id);
        self.kind.push(body.kind);
    }

    /// Body `i`.
    ///
    /// # Panics
    /// If `i` is not below [`Bodies::len`].
    pub fn body(&self, i: usize) -> Body {
        Body {
            position: [self.x[i], self.y[i], self.z[i]],
            velocity: [self.vx[i], self.vy[i], self.vz[i]],
            mass: self.mass[i],
            id: self.id[i],
            kind: self.kind[i],
        }
    }

    /// Copies the bodies with indices in this range.
    ///
    /// # Panics
    /// If it ends beyond [`Bodies::len`].
    pub fn part(&self, range: Range<usize>) -> Self {
        let column = |column: &[f64]| column[range.clone()].to_vec();
        Self {
            x: column(&self.x),
            y: column(&self.y),
            z: column(&self.z),
            vx: column(&self.vx),
            vy: column(&self.vy),
            vz: column(&self.vz),
            mass: column(&self.mass),
            id: self.id[range.clone()].to_vec(),
            kind: self.kind[range.clone()].to_vec(),
        }
    }

    /// Replaces the bodies from `first` on by the bodies of `part`.
    ///
    /// # Panics
    /// If they end beyond [`Bodies::len`].
    pub fn set_part(&mut self, first: usize, part: &Self) {
        for (i, body) in (first..).zip(part.iter()) {
            [self.x[i], self.y[i], self.z[i]] = body.position;
            [self.vx[i], self.vy[i], self.vz[i]] = body.velocity;
            self.mass[i] = body.mass;
            self.id[i] = body.id;
            self.kind[i] = body.kind;
        }
    }

    /// Positions and velocities of some bodies, in parts of `length` bodies: six columns of each part.
    pub(crate) fn phase_parts(&mut self, of: Range<usize>, length: usize) -> Vec<[&mut [f64]; 6]> {
        let Self {
            x,
            y,
            z,
            vx,
            vy,
            vz,
            ..
        } = self;
        let count = of.len().div_ceil(length);
        let columns = [x, y, z, vx, vy, vz];
        let mut columns = columns.map(|column| column[of.clone()].chunks_mut(length));
        let mut part = || {
            columns
                .each_mut()
                .map(|parts| parts.next().unwrap_or_default())
        };
        (0..count).map(|_| part()).collect()
    }

    /// Stars at rest, numbered from 0: `masses` at `positions`, as far as there are both.
    pub fn at_rest(positions: &[[f64; 3]], masses: &[f64]) -> Self {
        let n = positions.len().min(masses.len());
        let column = |axis: usize| positions[..n].iter().map(|x| x[axis]).collect();
        Self {
            x: column(0),
            y: column(1),
            z: column(2),
            vx: vec![0.0; n],
            vy: vec![0.0; n],
            vz: vec![0.0; n],
            mass: masses[..n].to_vec(),
            id: (0..n as u64).collect(),
            kind: vec![BodyKind::Star; n],
        }
    }

    /// The bodies one after the other.
    pub fn iter(&self) -> impl Iterator<Item = Body> + '_ {
        (0..self.len()).map(|i| self.body(i))
    }

    /// Checks what every force and integrator relies on: arrays of equal length, finite
    /// coordinates, masses finite and not negative.
    ///
    /// # Errors
    /// The first fault, by array and then by body.
    pub fn check(&self) -> Result<(), BodyFault> {
        let expected = self.len();
        for (field, found) in [
            ("y", self.y.len()),
            ("z", self.z.len()),
            ("vx", self.vx.len()),
            ("vy", self.vy.len()),
            ("vz", self.vz.len()),
            ("mass", self.mass.len()),
            ("id", self.id.len()),
            ("kind", self.kind.len()),
        ] {
            if found != expected {
                return Err(BodyFault::Length {
                    field,
                    expected,
                    found,
                });
            }
        }
        // Column by column, which takes vector instructions; whose fault it is matters only if there is one.
        fn all(column: &[f64], is: impl Fn(f64) -> bool) -> bool {
            column.iter().fold(true, |all, &x| all & is(x))
        }
        let Self {
            x,
            y,
            z,
            vx,
            vy,
            vz,
            mass,
            ..
        } = self;
        let coordinates = [x, y, z, vx, vy, vz];
        if coordinates.iter().all(|column| all(column, f64::is_finite))
            && all(mass, |m| m.is_finite() & (m >= 0.0))
        {
            return Ok(());
        }
        self.iter()
            .enumerate()
            .try_for_each(|(index, body)| body.check(index))
    }

    /// Names the bodies `0..N` in their present order.
    pub fn number_ids(&mut self) {
        self.id = (0..self.len() as u64).collect();
    }

    /// Two bodies at one place, of those for which `counts` holds; of several such pairs, one of those with
    /// the least x. Places are rounded to whole multiples of `within`, as far as these are numbers; of 0, they are not.
    pub fn coincident(&self, within: f64, counts: impl Fn(&Body) -> bool) -> Option<[usize; 2]> {
        let rounded = |x: f64| match (x / within).abs() {
            ..EXACT => (x / within).round() * within,
            _ => x,
        };
        let place = |i: usize| [self.x[i], self.y[i], self.z[i]].map(|x| rounded(x) + 0.0); // −0 is 0
        let mut order: Vec<usize> = (0..self.len()).filter(|&i| counts(&self.body(i))).collect();
        order.sort_unstable_by(|&a, &b| {
            let axes = place(a).into_iter().zip(place(b));
            let compared = axes.map(|(a, b)| a.total_cmp(&b));
            compared
                .fold(Ordering::Equal, Ordering::then)
                .then(a.cmp(&b))
        });
        let mut pairs = order.windows(2);
        let pair = pairs.find(|pair| place(pair[0]) == place(pair[1]))?;
        Some([pair[0], pair[1]])
    }

    /// Sum of all masses.
    pub fn total_mass(&self) -> f64 {
        self.mass.iter().sum()
    }

    /// Centre of mass; `None` if the total mass is zero.
    pub fn centre_of_mass(&self) -> Option<[f64; 3]> {
        self.mass_weighted_mean([&self.x, &self.y, &self.z])
    }

    /// Velocity of the centre of mass; `None` if the total mass is zero.
    pub fn centre_of_mass_velocity(&self) -> Option<[f64; 3]> {
        self.mass_weighted_mean([&self.vx, &self.vy, &self.vz])
    }

    /// Moves to the frame in which the centre of mass rests at the origin. Massless sets are left
    /// as they are: they have no such frame.
    pub fn to_centre_of_mass_frame(&mut self) {
        let (Some(position), Some(velocity)) =
            (self.centre_of_mass(), self.centre_of_mass_velocity())
        else {
            return;
        };
        for (column, offset) in [
            (&mut self.x, position[0]),
            (&mut self.y, position[1]),
            (&mut self.z, position[2]),
            (&mut self.vx, velocity[0]),
            (&mut self.vy, velocity[1]),
            (&mut self.vz, velocity[2]),
        ] {
            column.iter_mut().for_each(|value| *value -= offset);
        }
    }

    fn mass_weighted_mean(&self, columns: [&[f64]; 3]) -> Option<[f64; 3]> {
        let total = self.total_mass();
        (total > 0.0).then(|| {
            columns.map(|column| {
                column
                    .iter()
                    .zip(&self.mass)
                    .map(|(value, mass)| value * mass)
                    .sum::<f64>()
                    / total
            })
        })
    }
}

impl Extend<Body> for Bodies {
    fn extend<I: IntoIterator<Item = Body>>(&mut self, bodies: I) {
        bodies.into_iter().for_each(|body| self.push(body));
    }
}

impl FromIterator<Body> for Bodies {
    fn from_iter<I: IntoIterator<Item = Body>>(bodies: I) -> Self {
        let mut collected = Self::default();
        collected.extend(bodies);
        collected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(i: u64) -> Body {
        let t = i as f64;
        Body {
            position: [t, 2.0 * t, -t],
            velocity: [1.0, t, 0.5],
            mass: 1.0 + t,
            id: 10 + i,
            kind: BodyKind::ALL[i as usize % 3],
        }
    }

    #[test]
    fn what_is_pushed_comes_back() {
        let bodies: Bodies = (0..7).map(body).collect();
        assert_eq!(bodies.len(), 7);
        assert!(!bodies.is_empty() && Bodies::default().is_empty());
        assert!(bodies.iter().eq((0..7).map(body)));
        assert_eq!(bodies.check(), Ok(()));
    }

    #[test]
    fn coincident_bodies_are_found() {
        let mut bodies: Bodies = (0..50).map(body).collect();
        let any = |_: &Body| true;
        assert_eq!(bodies.coincident(0.0, any), None);
        (bodies.x[7], bodies.y[7], bodies.z[7]) = (-0.0, 0.0, 0.0);
        assert_eq!(bodies.coincident(0.0, any), Some([0, 7]));
        assert_eq!(bodies.coincident(0.0, |body| body.id != 10), None);
        bodies.x[7] = 1e-300;
        assert_eq!(bodies.coincident(0.0, any), None);
        assert_eq!(bodies.coincident(1e-301, any), None);
        assert_eq!(bodies.coincident(1e-100, any), Some([0, 7]));
    }

    #[test]
    fn check_names_body_and_field() {
        let good: Bodies = (0..5).map(body).collect();

        let mut bad = good.clone();
        bad.vy[3] = f64::INFINITY;
        assert_eq!(
            bad.check(),
            Err(BodyFault::NotFinite {
                body: 3,
                field: "vy",
                value: f64::INFINITY
            })
        );

        let mut bad = good.clone();
        bad.mass[2] = f64::NAN;
        assert!(matches!(
            bad.check(),
            Err(BodyFault::NotFinite {
                body: 2,
                field: "mass",
                ..
            })
        ));

        let mut bad = good.clone();
        bad.mass[4] = -1.0;
        assert_eq!(
            bad.check(),
            Err(BodyFault::NegativeMass {
                body: 4,
                mass: -1.0
            })
        );

        let mut bad = good;
        bad.kind.pop();
        assert_eq!(
            bad.check(),
            Err(BodyFault::Length {
                field: "kind",
                expected: 5,
                found: 4
            })
        );
    }

    #[test]
    fn centre_of_mass_frame_rests_at_the_origin() {
        let mut bodies: Bodies = (0..5).map(body).collect();
        // Weights 1..=5 on 0..=4: the mean is 40 / 15, exact up to one rounding.
        assert_eq!(bodies.centre_of_mass().unwrap()[0], 40.0 / 15.0);
        assert_eq!(bodies.centre_of_mass_velocity().unwrap()[0], 1.0);

        bodies.to_centre_of_mass_frame();
        let centre = bodies.centre_of_mass().unwrap();
        let drift = bodies.centre_of_mass_velocity().unwrap();
        // Each of the five terms is rounded once at a magnitude below 32 and divided by 15.
        let tolerance = 5.0 * 32.0 * f64::EPSILON / 15.0;
        for value in centre.into_iter().chain(drift) {
            assert!(value.abs() <= tolerance, "{value}");
        }
    }

    #[test]
    fn massless_bodies_have_no_centre_of_mass() {
        let mut bodies: Bodies = (0..3)
            .map(|i| Body {
                mass: 0.0,
                ..body(i)
            })
            .collect();
        let before = bodies.clone();
        assert_eq!(bodies.centre_of_mass(), None);
        bodies.to_centre_of_mass_frame();
        assert_eq!(bodies, before);
    }
}
