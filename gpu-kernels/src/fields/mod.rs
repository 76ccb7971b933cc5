//! THE formulas of external fields: accelerations that do not come from the bodies, with their
//! derivatives in time. The CPU and the kernels compute them through this module, in f64 and in the
//! units of the run whatever pairs are computed in: it is one evaluation per body beside n pairs.
//!
//! Fields are numbers in a buffer, in this order:
//! ```text
//! HEADER             units and origin of the bodies in that buffer's launch; how many fields; first
//!                    number of the origin's orbit, or 0 where it rests
//! RECORD per field   kind; first number and knots of its path, if it moves; centre; parameters
//! KNOT per knot      time, position and velocity
//! ORBIT              that of the origin, as [`orbit`] says
//! ```
//! Those that depend on velocities follow those that do not.
//!
//! A [term of relativity](Relativity) is not among them: it depends on one of the bodies.
//!
//! Where the origin is on an orbit, it falls freely in the fields: a body at x from it feels `F(R + x) −
//! F(R)`, whose derivatives are taken along both motions.

pub mod elementary;
mod formulas;
mod jet;
pub mod orbit;
mod relativity;

pub use formulas::nfw_mass;
pub use jet::Jet;
pub use relativity::Relativity;

use cuda_std::{global, opaque};

/// Numbers before the records: see [`Header`].
pub const HEADER: u32 = 7;
/// Numbers per field.
pub const RECORD: u32 = 10;
/// Parameters per field.
pub const PARAMETERS: usize = 4;
/// Numbers per knot of a path.
pub const KNOT: u32 = 7;

/// A kind of field, by its formula. Parameters in the order in which records have them; `gm` is G
/// times a mass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// `φ = −GM/r`: gm.
    Point,
    /// `φ = −GM/√(r² + b²)`: gm, b.
    Plummer,
    /// `φ = −GM/(r + a)`: gm, a. Hernquist (1990), ApJ 356, 359.
    Hernquist,
    /// `φ = −GM ln(1 + r/a)/r`: gm, a. Navarro, Frenk & White (1997), ApJ 490, 493.
    Nfw,
    /// `φ = −GM/√(R² + (a + √(z² + b²))²)`: gm, a, b. Miyamoto & Nagai (1975), PASJ 27, 533.
    MiyamotoNagai,
    /// `φ = −GM/(b + √(b² + r²))`: gm, b. Hénon (1959).
    Isochrone,
    /// `φ = ½ v² ln(R² + z²/q² + c²)`: v², c, q.
    Logarithmic,
    /// `ρ ∝ r⁻ᵅ e^(−(r/c)²)`: gm of all of it, c, α, Γ(3/2 − α/2).
    PowerLaw,
    /// In a frame that turns with Ω about z, on a circular orbit of which x points outwards: `a = ((4Ω² −
    /// κ²) x + 2Ω v_y, −2Ω v_x, −ν² z)`: Ω, 4Ω² − κ², ν². Hill (1878); Fukushige & Heggie (2000).
    Tide,
}

impl Kind {
    /// True if it depends on velocities.
    pub const fn needs_velocity(self) -> bool {
        matches!(self, Self::Tide)
    }
}

/// First numbers of a buffer of fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// Fields.
    pub fields: u32,
    /// Origin of the bodies' coordinates, in the units of the run.
    pub centre: [f64; 3],
    /// Unit of length of the bodies.
    pub length: f64,
    /// Unit of time of the bodies.
    pub time: f64,
    /// Index of the first number of the [`orbit`] that the origin is on; 0 where it rests.
    pub orbit: u32,
}

/// A buffer of fields that a launch takes.
#[derive(Clone, Copy, Debug)]
pub struct OnDevice(*const f64);

impl OnDevice {
    /// The buffer at an address.
    ///
    /// # Safety
    /// It is one that this module describes, whole, and nobody writes it in this launch.
    #[inline(always)]
    pub unsafe fn new(buffer: *const f64) -> Self {
        Self(buffer)
    }
}

impl Numbers for OnDevice {
    #[inline(always)]
    fn number(&self, index: u32) -> f64 {
        // SAFETY: the promise of `new`; indices are those that the buffer itself gives.
        unsafe { global::load(self.0, index) }
    }
}

/// A buffer of fields.
pub trait Numbers {
    /// The number at an index.
    fn number(&self, index: u32) -> f64;
}

impl Numbers for [f64] {
    #[inline(always)]
    fn number(&self, index: u32) -> f64 {
        self[index as usize]
    }
}

impl Header {
    /// As numbers.
    pub fn numbers(&self) -> [f64; HEADER as usize] {
        let [x, y, z] = self.centre;
        let orbit = f64::from(self.orbit);
        [
            f64::from(self.fields),
            x,
            y,
            z,
            self.length,
            self.time,
            orbit,
        ]
    }

    /// Reads it.
    #[inline(always)]
    pub fn of(numbers: &(impl Numbers + ?Sized)) -> Self {
        Self {
            fields: numbers.number(0) as u32,
            centre: [numbers.number(1), numbers.number(2), numbers.number(3)],
            length: numbers.number(4),
            time: numbers.number(5),
            orbit: numbers.number(6) as u32,
        }
    }

    /// Adds accelerations of the fields, and K − 1 of their derivatives, to those of a body in its
    /// units: of its position, velocity and acceleration, at a time of the run. Where K is 3, the
    /// acceleration is the one that positions change with; else it is not used.
    #[inline(always)]
    pub fn add_local<const K: usize>(
        &self,
        numbers: &(impl Numbers + ?Sized),
        time: f64,
        [x, v, a]: [[f64; 3]; 3],
        forces: [[f64; 3]; 3],
    ) -> [[f64; 3]; 3] {
        // Powers of two: nothing is rounded but the position's shift.
        let unit = self.length / self.time;
        let units = [
            unit / self.time,
            unit / self.time / self.time,
            unit / self.time / self.time / self.time,
        ];
        let moving = [
            each(|k| x[k] * self.length + self.centre[k]),
            each(|k| v[k] * unit),
            each(|k| a[k] * units[0]),
        ];
        let [a, j, s] = forces;
        let scaled = [
            each(|k| a[k] * units[0]),
            each(|k| j[k] * units[1]),
            each(|k| s[k] * units[2]),
        ];
        let of = (self.fields, self.orbit);
        let [a, j, s] = add::<K>(of, numbers, time, moving, scaled);
        [
            each(|k| a[k] / units[0]),
            each(|k| j[k] / units[1]),
            each(|k| s[k] / units[2]),
        ]
    }
}

/// Adds accelerations of so many fields, and K − 1 of their derivatives, to those of a body at a
/// position, with a velocity and the acceleration that positions change with: all in the units of the
/// run. The origin is on the orbit that begins at this index, or rests where it is 0.
#[inline(always)]
pub fn add<const K: usize>(
    (fields, orbit): (u32, u32),
    numbers: &(impl Numbers + ?Sized),
    time: f64,
    moving: [[f64; 3]; 3],
    mut forces: [[f64; 3]; 3],
) -> [[f64; 3]; 3] {
    let is_on_orbit = orbit != 0;
    let origin = if is_on_orbit {
        orbit::origin::<K>(numbers, orbit, time)
    } else {
        [Jet::constant(0.0); 3]
    };
    let places = if is_on_orbit { 2 } else { 1 };
    let mut field = 0;
    while field < fields {
        let record = HEADER + field * RECORD;
        let parameter = |i: u32| numbers.number(record + 6 + i);
        let parameters = [parameter(0), parameter(1), parameter(2), parameter(3)];
        let kind = numbers.number(record) as u32;
        if kind == Kind::Tide as u32 {
            forces = tide::<K>(parameters, moving, forces);
        } else {
            let centre = centre::<K>(numbers, record, time);
            let mut of_field = [Jet::constant(0.0); 3];
            // A loop, so that the code has the formulas once.
            let mut place = 0;
            while place < opaque(places) {
                let x = |axis: usize| {
                    let mut jet = Jet::constant(moving[0][axis]);
                    if K > 1 {
                        jet.0[1] = moving[1][axis];
                    }
                    if K > 2 {
                        jet.0[2] = 0.5 * moving[2][axis];
                    }
                    if place == 1 {
                        jet = origin[axis];
                    } else if is_on_orbit {
                        jet = jet + origin[axis];
                    }
                    jet - centre[axis]
                };
                let a = formulas::acceleration::<K>(kind, parameters, [x(0), x(1), x(2)]);
                let of = |axis: usize| match place {
                    1 => of_field[axis] - a[axis],
                    _ => a[axis],
                };
                of_field = [of(0), of(1), of(2)];
                place += 1;
            }
            forces[0] = each(|axis| forces[0][axis] + of_field[axis].0[0]);
            if K > 1 {
                forces[1] = each(|axis| forces[1][axis] + of_field[axis].0[1]);
            }
            if K > 2 {
                forces[2] = each(|axis| forces[2][axis] + 2.0 * of_field[axis].0[2]);
            }
        }
        field += 1;
    }
    forces
}

/// Adds [`Kind::Tide`], by the sums of all other forces: derivative by derivative, for each takes the
/// one before.
#[inline(always)]
fn tide<const K: usize>(
    [omega, radial, vertical, ..]: [f64; PARAMETERS],
    [x, v, _]: [[f64; 3]; 3],
    mut forces: [[f64; 3]; 3],
) -> [[f64; 3]; 3] {
    let of = |x: [f64; 3], v: [f64; 3]| {
        [
            radial * x[0] + 2.0 * omega * v[1],
            -2.0 * omega * v[0],
            -vertical * x[2],
        ]
    };
    let plus = |a: [f64; 3], b: [f64; 3]| each(|k| a[k] + b[k]);
    forces[0] = plus(forces[0], of(x, v));
    if K > 1 {
        forces[1] = plus(forces[1], of(v, forces[0]));
    }
    if K > 2 {
        forces[2] = plus(forces[2], of(forces[0], forces[1]));
    }
    forces
}

/// Centre of a field at a time: fixed, or on a path through knots, cubic between two of them (Hermite's
/// interpolation), the first and the last cubic going on beyond the ends.
#[inline(always)]
pub fn centre<const K: usize>(
    numbers: &(impl Numbers + ?Sized),
    record: u32,
    time: f64,
) -> [Jet<K>; 3] {
    let knots = numbers.number(record + 2) as u32;
    if knots == 0 {
        let fixed = |axis: u32| Jet::constant(numbers.number(record + 3 + axis));
        return [fixed(0), fixed(1), fixed(2)];
    }
    let first = numbers.number(record + 1) as u32;
    let from = first + last_before(numbers, (first, KNOT), knots - 1, time) * KNOT;
    let to = from + KNOT;
    let (begin, end) = (numbers.number(from), numbers.number(to));
    let span = end - begin;
    let mut t = Jet::constant((time - begin) / span);
    if K > 1 {
        t.0[1] = 1.0 / span;
    }
    let along = |axis: u32| {
        let position = |knot: u32| numbers.number(knot + 1 + axis);
        let change = |knot: u32| span * numbers.number(knot + 4 + axis);
        let (x0, v0) = (position(from), change(from));
        let way = position(to) - x0;
        let bend = v0 + change(to) - 2.0 * way;
        let curve = (t * bend + (way - v0 - bend)) * t + v0;
        curve * t + x0
    };
    [along(0), along(1), along(2)]
}

/// Number of the last of `count` groups of numbers that begins before a time, which is the first of each;
/// the first group where none does. Groups are of that many numbers, from an index on.
#[inline(always)]
fn last_before(
    numbers: &(impl Numbers + ?Sized),
    (first, width): (u32, u32),
    count: u32,
    time: f64,
) -> u32 {
    let (mut low, mut high) = (0, count);
    while low + 1 < high {
        let middle = (low + high) / 2;
        if numbers.number(first + middle * width) <= time {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// A vector by its components.
#[inline(always)]
fn each(component: impl Fn(usize) -> f64) -> [f64; 3] {
    [component(0), component(1), component(2)]
}
