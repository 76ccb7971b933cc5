//! Fields, ready to be computed: what backends have of them.

use std::sync::Arc;

use gpu_kernels::fields::{self as kernels, HEADER, Header, Jet, KNOT, Kind, PARAMETERS, RECORD};

use super::orbit::Track;
use super::potential::{OfField, Potential, gamma, of_formula};
use super::relativity::Relativity;
use super::{Centre, ExternalField, FieldFault, Fields, HostField, Path, Shape};
use crate::bodies::Bodies;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::vectors::{axes, difference};

/// External fields at one moment.
#[derive(Clone, Debug)]
pub struct External {
    fields: Fields,
    /// The buffer of [`gpu_kernels::fields`] in the units of the run; empty where there are no formulas.
    numbers: Arc<[f64]>,
    formulas: u32,
    own: Vec<Arc<dyn HostField>>,
    relativity: Option<Relativity>,
    orbit: Option<Orbiting>,
    time: f64,
}

/// The orbit of the origin.
#[derive(Clone, Debug)]
struct Orbiting {
    track: Arc<Track>,
    /// Index of its first number in the buffer.
    first: u32,
    /// Position, velocity and acceleration of the origin, at the time; not numbers where they are not known.
    origin: [Vector; 3],
    /// Acceleration, jerk and snap of the origin by all fields, at the time.
    forces: [Vector; 3],
}

type Vector = [f64; 3];

fn plus(a: Vector, b: Vector) -> Vector {
    axes(|k| a[k] + b[k])
}

/// Fewest bodies of a thread: fewer are done sooner than it is woken.
pub(crate) const BODIES_OF_A_TASK: usize = 512;

impl External {
    /// No fields.
    pub fn none() -> Self {
        Self::new(&Fields::NONE, 0.0)
    }

    /// Fields of a run with the gravitational constant `g`, at time 0 and with an origin that rests. For an
    /// origin on an orbit use [`of_bodies`](Self::of_bodies).
    pub fn new(fields: &Fields, g: f64) -> Self {
        let formulas = || fields.iter().filter(|field| field.is_formula());
        let count = formulas().count() as u32;
        let mut numbers = header(count, 0, &Frame::IDENTITY).to_vec();
        let mut paths: Vec<f64> = vec![];
        // Those that depend on velocities take the sum of all others.
        let ordered = formulas().filter(|field| !field.needs_velocity());
        let ordered = ordered.chain(formulas().filter(|field| field.needs_velocity()));
        for field in ordered {
            let before = HEADER as usize + count as usize * RECORD as usize + paths.len();
            numbers.extend(record(field, g, before));
            paths.extend(field.path().map_or(&[][..], |path| path.numbers()));
        }
        numbers.extend(paths);
        Self {
            fields: fields.clone().at_rest(),
            numbers: numbers.into(),
            formulas: count,
            own: fields
                .iter()
                .filter_map(ExternalField::own_field)
                .cloned()
                .collect(),
            relativity: None,
            orbit: None,
            time: 0.0,
        }
    }

    /// Lets the origin be on the orbit of these fields, if they have one.
    fn on_orbit(mut self, fields: &Fields) -> Result<Self, FieldFault> {
        let Some(orbit) = fields.orbit().copied() else {
            return Ok(self);
        };
        self.fields = fields.clone();
        self.fields.check()?;
        self.time = orbit.start;
        let centres = self.fields.iter().filter(|field| field.is_formula());
        for (field, record) in centres.zip(self.records()) {
            let centre = kernels::centre::<1>(&*self.numbers, record, self.time);
            if field.is_singular() && centre.map(|axis| axis.0[0]) == orbit.position {
                return Err(FieldFault::OrbitInCentre(field.name()));
            }
        }
        let paths = self.fields.iter().filter_map(ExternalField::path);
        let knots = |path: &Path| {
            let knots = path.numbers().chunks(KNOT as usize);
            knots.map(|knot| knot[0]).collect::<Vec<_>>()
        };
        let breaks = paths.flat_map(knots).collect();
        self.orbit = Some(Orbiting {
            track: Arc::new(Track::new(&orbit, breaks)),
            first: self.numbers.len() as u32,
            origin: [[f64::NAN; 3]; 3],
            forces: [[f64::NAN; 3]; 3],
        });
        self.extend(orbit.start, orbit.start)?;
        Ok(self)
    }

    /// Checks that no body is exactly in the singular centre of a field.
    ///
    /// # Errors
    /// The first body that is.
    pub(crate) fn check_centres(&self, bodies: &Bodies) -> Result<(), FieldFault> {
        let [origin, ..] = self.origin().unwrap_or_default();
        let fields = self.fields.iter().filter(|field| field.is_formula());
        // In the order of the records; fields that depend on velocities are behind them, and have no such centre.
        let fields = fields.filter(|field| !field.needs_velocity());
        for (field, record) in fields.zip(self.records()) {
            let centre = kernels::centre::<1>(&*self.numbers, record, self.time);
            let centre = centre.map(|axis| axis.0[0]);
            let is_there = |i: &usize| {
                let position = [bodies.x[*i], bodies.y[*i], bodies.z[*i]];
                plus(position, origin) == centre
            };
            if let Some(body) = (0..bodies.len()).find(|i| field.is_singular() && is_there(i)) {
                return Err(FieldFault::BodyInCentre {
                    field: field.name(),
                    body,
                });
            }
        }
        Ok(())
    }

    /// Centres of fields by formulas, if what bodies feel depends on their positions alone; else none.
    pub(crate) fn resting_centres(&self) -> Vec<[f64; 3]> {
        let mut fields = self.fields.iter();
        if self.changes_with_time()
            || !fields.all(|field| field.is_formula() && !field.needs_velocity())
        {
            return vec![];
        }
        let centre = |record| kernels::centre::<1>(&*self.numbers, record, self.time);
        let centres = self.records().map(centre);
        centres.map(|centre| centre.map(|axis| axis.0[0])).collect()
    }

    /// Indices of the records of formulas.
    fn records(&self) -> impl Iterator<Item = u32> + use<> {
        (0..self.formulas).map(|index| HEADER + index * RECORD)
    }

    /// Returns whether the orbit of the origin, if there is one, is known from one time to another.
    pub fn reaches(&self, from: f64, to: f64) -> bool {
        self.orbit.as_ref().is_none_or(|orbit| {
            let [first, last] = orbit.track.span();
            first < from.min(to) && from.max(to) < last
        })
    }

    /// Lets the orbit of the origin be known from one time to another.
    ///
    /// # Errors
    /// If it cannot be followed there.
    pub fn extend(&mut self, from: f64, to: f64) -> Result<(), FieldFault> {
        let Some(orbit) = self.orbit.clone().filter(|_| !self.reaches(from, to)) else {
            return Ok(());
        };
        let mut track = Arc::unwrap_or_clone(orbit.track);
        let mut at = Self {
            orbit: None,
            ..self.clone()
        };
        let mut force = |time: f64, position: Vector| {
            at.time = time;
            at.acceleration(position)
        };
        track.extend(from.min(to), from.max(to), &mut force)?;
        let fields = self.numbers[..orbit.first as usize].iter().copied();
        self.numbers = fields.chain(track.numbers()).collect();
        self.orbit = Some(Orbiting {
            track: Arc::new(track),
            ..orbit
        });
        self.follow();
        Ok(())
    }

    /// Position and velocity of the origin in the frame of the fields, if it is on an orbit.
    pub fn origin(&self) -> Option<[[f64; 3]; 2]> {
        let [position, velocity, _] = self.orbit.as_ref()?.origin;
        Some([position, velocity])
    }

    /// Computes where the origin is and what the fields do to it, at the time: once, for all bodies.
    fn follow(&mut self) {
        let Some(first) = self.orbit.as_ref().map(|orbit| orbit.first) else {
            return;
        };
        let at = kernels::orbit::origin::<3>(&*self.numbers, first, self.time);
        let part = |k: usize| at.map(|Jet(parts)| parts[k]);
        let origin = [part(0), part(1), part(2).map(|half| 2.0 * half)];
        let forces = match origin[0].iter().all(|x| x.is_finite()) {
            true => self.add_about_rest::<3>(origin, [[0.0; 3]; 3]),
            false => [[f64::NAN; 3]; 3],
        };
        if let Some(orbit) = &mut self.orbit {
            (orbit.origin, orbit.forces) = (origin, forces);
        }
    }

    /// Fields that these bodies are in, under this force.
    ///
    /// # Errors
    /// If a field is of a body that it cannot be of.
    pub fn of_bodies(
        fields: &Fields,
        bodies: &Bodies,
        physics: &Physics,
    ) -> Result<Self, FieldFault> {
        let mut external = Self::new(fields, physics.g).on_orbit(fields)?;
        let terms = fields.iter().filter_map(|field| match field.shape {
            Shape::Relativity(body, light) => Some((body, light)),
            Shape::Formula(..) | Shape::Own(_) => None,
        });
        let terms: Vec<(usize, f64)> = terms.collect();
        external.relativity = match terms[..] {
            [] => None,
            [(body, light)] => Some(Relativity::new(body, light, bodies, physics)?),
            _ => return Err(FieldFault::TwoDominant(terms.len())),
        };
        Ok(external)
    }

    /// The first post-Newtonian term, if it is one of the fields.
    pub(crate) fn relativity(&self) -> Option<&Relativity> {
        self.relativity.as_ref()
    }

    /// The fastest body for the first post-Newtonian term, and its `(v/c)²` at pericentre; none without the term. The
    /// term leaves out parts of the energy of the order of the square of this.
    fn fastest(&self, bodies: &Bodies) -> Option<(usize, f64)> {
        self.relativity.as_ref()?.fastest(bodies)
    }

    /// Warning of a body that is too fast for the first post-Newtonian term, if one is.
    pub(crate) fn beyond_first_order(&self, bodies: &Bodies) -> Option<String> {
        /// Share of the energy that is left out.
        const MUCH: f64 = 0.01;
        let (body, square) = self.fastest(bodies)?;
        let left_out = square * square;
        (left_out > MUCH || left_out.is_nan()).then(|| {
            format!(
                "body {body} reaches (v/c)² = {square:.2}, too fast for the field 1pn: it keeps the energy to (v/c)⁴ = \
                 {left_out:.2}, and shorter steps do not help"
            )
        })
    }

    /// The fields.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Returns whether there are none.
    pub fn is_none(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns whether what bodies feel changes with time.
    pub fn changes_with_time(&self) -> bool {
        self.orbit.is_some() || self.fields.iter().any(ExternalField::changes_with_time)
    }

    /// Returns whether a field that does not depend on a body takes velocities, as in a frame that turns.
    pub(crate) fn turns(&self) -> bool {
        let mut formulas = self.fields.iter().filter(|field| field.is_formula());
        self.relativity.is_none() && formulas.any(ExternalField::needs_velocity)
    }

    /// The first that is computed by the CPU alone.
    pub(crate) fn of_host(&self) -> Option<&ExternalField> {
        let mut fields = self.fields.iter();
        fields.find(|field| field.own_field().is_some())
    }

    /// Time that they are computed at.
    pub fn time(&self) -> f64 {
        self.time
    }

    /// Sets the [`time`](Self::time).
    pub fn set_time(&mut self, time: f64) {
        self.time = time;
        self.follow();
    }

    /// Checks that the fields are known at this time.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check_time(&self, time: f64) -> Result<(), FieldFault> {
        self.fields.check_times(time, time)
    }

    /// The buffer of [`gpu_kernels::fields`], for bodies of a frame.
    pub(crate) fn numbers(&self, frame: &Frame) -> Vec<f64> {
        let mut numbers = self.numbers.to_vec();
        let header = header(self.formulas, self.first_of_orbit(), frame);
        numbers[..HEADER as usize].copy_from_slice(&header);
        numbers
    }

    /// Index of the orbit's first number; 0 where the origin rests.
    fn first_of_orbit(&self) -> u32 {
        self.orbit.as_ref().map_or(0, |orbit| orbit.first)
    }

    /// Acceleration of a body at rest.
    pub fn acceleration(&self, position: [f64; 3]) -> [f64; 3] {
        let at_rest = [position, [0.0; 3], [0.0; 3]];
        let [acceleration, ..] = self.add::<1>(at_rest, [[0.0; 3]; 3]);
        acceleration
    }

    /// Tidal tensor `∂a_i/∂x_j` at a position, `tensor[i][j]`, of fields that do not depend on velocities;
    /// those of the user's own have none without jerks.
    pub fn tides(&self, position: [f64; 3]) -> [[f64; 3]; 3] {
        // What moves sees the tensor's column as jerk, beside that of fields that move themselves.
        let jerk = |velocity: [f64; 3]| {
            let [_, jerk, _] = self.add::<2>([position, velocity, [0.0; 3]], [[0.0; 3]; 3]);
            jerk
        };
        let at_rest = jerk([0.0; 3]);
        let columns = axes(|axis| {
            let mut velocity = [0.0; 3];
            velocity[axis] = 1.0;
            jerk(velocity)
        });
        axes(|i| axes(|j| columns[j][i] - at_rest[i]))
    }

    /// Adds the accelerations of the fields, and K − 1 derivatives of them, to the `forces` on a body.
    /// `moving` is its position, its velocity and the acceleration of its motion.
    fn add<const K: usize>(
        &self,
        moving: [[f64; 3]; 3],
        mut forces: [[f64; 3]; 3],
    ) -> [[f64; 3]; 3] {
        let Some(orbit) = &self.orbit else {
            return self.add_about_rest::<K>(moving, forces);
        };
        let of_origin = orbit.forces;
        let moved = axes(|k| plus(moving[k], orbit.origin[k]));
        if !moved[0].iter().all(|x| x.is_finite()) {
            return [[f64::NAN; 3]; 3];
        }
        let of_body = self.add_about_rest::<K>(moved, [[0.0; 3]; 3]);
        for k in 0..K {
            forces[k] = plus(forces[k], difference(of_body[k], of_origin[k]));
        }
        forces
    }

    /// Like [`add`](Self::add), but for an origin that rests.
    fn add_about_rest<const K: usize>(
        &self,
        moving: [Vector; 3],
        mut forces: [Vector; 3],
    ) -> [Vector; 3] {
        let [x, v, _] = moving;
        for own in &self.own {
            let a = own.acceleration(self.time, x);
            let jerk = (K > 1).then(|| own.jerk(self.time, x, v)).flatten();
            for (sum, more) in forces.iter_mut().zip([Some(a), jerk]) {
                *sum = plus(*sum, more.unwrap_or_default());
            }
        }
        kernels::add::<K>(
            (self.formulas, 0),
            &*self.numbers,
            self.time,
            moving,
            forces,
        )
    }

    /// Adds the accelerations of the fields, and at most 2 derivatives of them, to the forces on a body.
    /// `moving` is its position, its velocity and the acceleration of its motion.
    pub(crate) fn add_up_to(
        &self,
        derivatives: usize,
        moving: [[f64; 3]; 3],
        forces: [[f64; 3]; 3],
    ) -> [[f64; 3]; 3] {
        match derivatives {
            0 => self.add::<1>(moving, forces),
            1 => self.add::<2>(moving, forces),
            _ => self.add::<3>(moving, forces),
        }
    }

    /// Energy of bodies in the fields, as [`Potential::energy`].
    pub fn energy(&self, bodies: &Bodies, physics: &Physics) -> f64 {
        if self.is_none() {
            return 0.0;
        }
        self.potential().energy(bodies, physics)
    }

    /// Potential of the fields at the time, for many positions.
    pub fn potential(&self) -> Potential<'_> {
        let origin = self.origin();
        let own = self.own.iter().map(|own| -> OfField<'_> {
            Box::new(|x| own.potential(self.time, x).unwrap_or_default())
        });
        let formulas = self.records().map(|first| -> OfField<'_> {
            let record = &self.numbers[first as usize..(first + RECORD) as usize];
            let centre = kernels::centre::<1>(&*self.numbers, first, self.time);
            let centre = centre.map(|axis| axis.0[0]);
            let mut parameters = [0.0; PARAMETERS];
            parameters.copy_from_slice(&record[6..]);
            let of_formula = of_formula(self.kind(record[0]), parameters);
            Box::new(move |x| of_formula(difference(x, centre)))
        });
        Potential::new(own.chain(formulas), self.relativity.as_ref(), origin)
    }

    fn kind(&self, number: f64) -> Kind {
        let of = |field: &ExternalField| match &field.shape {
            Shape::Formula(formula, _) => Some(formula.kind),
            Shape::Own(_) | Shape::Relativity(..) => None,
        };
        let kinds = self.fields.iter().filter_map(of);
        kinds
            .into_iter()
            .find(|&kind| f64::from(kind as u32) == number)
            .expect("the kind of one of the fields")
    }
}

fn header(fields: u32, orbit: u32, frame: &Frame) -> [f64; HEADER as usize] {
    let header = Header {
        fields,
        orbit,
        centre: frame.centre,
        length: frame.length,
        time: frame.time,
    };
    header.numbers()
}

/// The record of a field; its path, if it has one, begins at number `first`.
fn record(field: &ExternalField, g: f64, first: usize) -> [f64; RECORD as usize] {
    let Shape::Formula(formula, values) = &field.shape else {
        panic!("only formulas have records");
    };
    let mut record = [0.0; RECORD as usize];
    record[0] = f64::from(formula.kind as u32);
    match &field.centre {
        Centre::Fixed(centre) => record[3..6].copy_from_slice(centre),
        Centre::Moving(path) => {
            record[1] = first as f64;
            record[2] = path.knots() as f64;
        }
    }
    let value = |k: usize| values[k];
    let parameters = match formula.kind {
        Kind::Logarithmic => [value(0) * value(0), value(1), value(2), 0.0],
        Kind::PowerLaw => {
            let complete = gamma(1.5 - 0.5 * value(2));
            [g * value(0), value(1), value(2), complete]
        }
        Kind::Tide => {
            let [omega, kappa, nu] = [value(0), value(1), value(2)];
            [omega, 4.0 * omega * omega - kappa * kappa, nu * nu, 0.0]
        }
        Kind::MiyamotoNagai => [g * value(0), value(1), value(2), 0.0],
        Kind::Point => [g * value(0), 0.0, 0.0, 0.0],
        Kind::Plummer | Kind::Hernquist | Kind::Nfw | Kind::Isochrone => {
            [g * value(0), value(1), 0.0, 0.0]
        }
    };
    record[6..].copy_from_slice(&parameters);
    record
}
