//! The bytes of a checkpoint:
//! ```text
//! offset  bytes
//!      0     16  "ALLPAIRS-RESUME\n"
//!     16      4  u32 version: 2
//!     20      4  u32: 1 if there are jerks, 2 more if there are block time steps, 4 more if there are
//!                snaps, 8 more if there is an energy in external fields, 16 more if there are test particles, 32
//!                more if encounters are looked for, 64 more if there are neighbour spheres
//!     24      8  u64 number of bodies N
//!     32      8  u64 steps done
//!     40     24  three f64: time of the beginning, time reached, step to come
//!     64     16  f64 and u64: time and steps that steps of a fixed length are counted from
//!     80     48  six f64, the frame of the vectors: centre x, y, z; units of length, mass, time
//!    128     88  eleven f64, the run's beginning: time; kinetic and potential energy; momentum and
//!                angular momentum, three each; the scales of these two
//!    216      8  f64: the largest drift of the energy so far
//!    224      8  u64 number of bytes S of the settings
//!    232      S  settings of the run, in UTF-8: what decides its physics
//!                mass (N f64), id (N u64), kind (N u8: 0 gas, 1 dark, 2 star)
//!                positions, velocities, accelerations, jerks (if any): N times three f64 each
//!                snap and crackle (if any): N times six f64
//!                each body's next block time step (if any): N f64
//!                radius of the neighbour sphere, 0 where it is infinite, and regular step (if any): N
//!                times two f64
//!                energy in external fields at the beginning (if any): f64
//!                energy per mass, potential and Jacobi constant at the beginning (if there are test
//!                particles; not numbers for bodies with mass): N times three f64
//!                radii of the bodies, N f64; and energy, momentum and angular momentum that were lost,
//!                seven f64 (if encounters are looked for)
//!    end-4    4  u32 CRC-32, as of zlib, of all before
//! ```
//! All numbers are little-endian. Vectors are in local units, in which the f32 numbers of a GPU are
//! f64 numbers without loss.

use std::io::{self, Read, Write};

use crc32fast::Hasher;

use super::{Checkpoint, CheckpointFault, Kept, bodies_of};
use crate::backend::{SavedState, Sphere};
use crate::bodies::BodyKind;
use crate::diagnostics::{Conserved, Energy, Lost};
use crate::frame::Frame;
use crate::simulation::Clock;

const MAGIC: [u8; 16] = *b"ALLPAIRS-RESUME\n";
pub(super) const VERSION: u32 = 2;
const HEADER_BYTES: u64 = 232;
const CRC_BYTES: u64 = 4;
/// Flags of what only some integrators need.
const JERKS: u32 = 1;
const OWN_STEPS: u32 = 2;
const HIGHER: u32 = 4;
/// Flag of a run in external fields.
const EXTERNAL: u32 = 8;

/// Flag of a run with test particles.
const PARTICLES: u32 = 16;
/// Flag of a run that looks for encounters.
const ENCOUNTERS: u32 = 32;
/// Flag of a run with a neighbour scheme.
const SPHERES: u32 = 64;
/// All flags.
const FLAGS: u32 = JERKS | OWN_STEPS | HIGHER | EXTERNAL | PARTICLES | ENCOUNTERS | SPHERES;

/// A writer that takes the checksum of what goes through.
struct Summed<W> {
    file: W,
    hasher: Hasher,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(bytes)?;
        self.hasher.update(&bytes[..read]);
        Ok(read)
    }
}

impl Checkpoint {
    /// Writes the checkpoint, as the file of one has it.
    ///
    /// # Errors
    /// The writer's refusal.
    pub fn write_to(&self, file: &mut impl Write) -> io::Result<()> {
        let mut summed = Summed {
            file,
            hasher: Hasher::new(),
        };
        content(&mut summed, self)?;
        let crc = summed.hasher.finalize();
        summed.file.write_all(&crc.to_le_bytes())
    }

    /// Reads a checkpoint from what has its bytes, `found` of them.
    ///
    /// # Errors
    /// The reason why it is not one to continue from.
    pub fn read_from(file: impl Read, found: u64) -> Result<Self, CheckpointFault> {
        let mut file = Summed {
            file,
            hasher: Hasher::new(),
        };
        if found < HEADER_BYTES || array::<16>(&mut file)? != MAGIC {
            return Err(CheckpointFault::Foreign);
        }
        match u32::from_le_bytes(array(&mut file)?) {
            VERSION => {}
            earlier @ 1..VERSION => return Err(CheckpointFault::Earlier(earlier)),
            _ => return Err(CheckpointFault::Foreign),
        }
        let flags = u32::from_le_bytes(array(&mut file)?);
        if flags & !FLAGS != 0 {
            return Err(CheckpointFault::Foreign);
        }
        let has = |flag: u32| flags & flag != 0;
        let (jerks, own_steps, higher) = (has(JERKS), has(OWN_STEPS), has(HIGHER));
        let n = u64::from_le_bytes(array(&mut file)?);
        let steps = u64::from_le_bytes(array(&mut file)?);
        let mut number = || Ok::<_, io::Error>(f64::from_le_bytes(array(&mut file)?));
        let (start, time, dt, counted_from) = (number()?, number()?, number()?, number()?);
        let clock = Clock {
            start,
            time,
            steps,
            dt,
            counted_from: (counted_from, u64::from_le_bytes(array(&mut file)?)),
        };
        let mut number = || Ok::<_, io::Error>(f64::from_le_bytes(array(&mut file)?));
        let frame = Frame {
            centre: [number()?, number()?, number()?],
            length: number()?,
            mass: number()?,
            time: number()?,
        };
        let mut origin = Conserved {
            time: number()?,
            energy: Energy {
                kinetic: number()?,
                potential: number()?,
                external: 0.0,
                lost: 0.0,
            },
            momentum: [number()?, number()?, number()?],
            angular_momentum: [number()?, number()?, number()?],
            momentum_scale: number()?,
            angular_momentum_scale: number()?,
        };
        let largest_drift = number()?;
        let settings = u64::from_le_bytes(array(&mut file)?);
        // Nothing is allocated before the file's size has confirmed the numbers.
        let particles = has(PARTICLES);
        let vectors = 3 + u64::from(jerks) + 2 * u64::from(higher) + u64::from(particles);
        let encounters = has(ENCOUNTERS);
        let spheres = has(SPHERES);
        let numbers = u64::from(own_steps) + u64::from(encounters) + 2 * u64::from(spheres);
        let each = 8 + 8 + 1 + 24 * vectors + 8 * numbers;
        let external = has(EXTERNAL);
        let expected = n
            .saturating_mul(each)
            .saturating_add(if external { 8 } else { 0 })
            .saturating_add(if encounters { 7 * 8 } else { 0 })
            .saturating_add(settings)
            .saturating_add(HEADER_BYTES + CRC_BYTES);
        if found != expected {
            return Err(CheckpointFault::Size { expected, found });
        }
        let n = n as usize;
        let mut text = vec![0; settings as usize];
        file.read_exact(&mut text)?;
        let mut number = || Ok::<_, io::Error>(f64::from_le_bytes(array(&mut file)?));
        let mut mass = Vec::with_capacity(n);
        for _ in 0..n {
            mass.push(number()?);
        }
        let mut id = Vec::with_capacity(n);
        for _ in 0..n {
            id.push(u64::from_le_bytes(array(&mut file)?));
        }
        let mut kind = Vec::with_capacity(n);
        for _ in 0..n {
            let [number] = array(&mut file)?;
            kind.push(BodyKind::of_number(number.into()));
        }
        let mut vectors = |n: usize| read_vectors(&mut file, n);
        let state = SavedState {
            frame,
            positions: vectors(n)?,
            velocities: vectors(n)?,
            accelerations: vectors(n)?,
            jerks: vectors(if jerks { n } else { 0 })?,
            higher: {
                let pairs = vectors(if higher { 2 * n } else { 0 })?;
                pairs
                    .chunks_exact(2)
                    .map(|pair| [pair[0], pair[1]])
                    .collect()
            },
            own_steps: (0..if own_steps { n } else { 0 })
                .map(|_| Ok(f64::from_le_bytes(array(&mut file)?)))
                .collect::<io::Result<_>>()?,
            spheres: (0..if spheres { n } else { 0 })
                .map(|_| {
                    let mut number = || Ok::<_, io::Error>(f64::from_le_bytes(array(&mut file)?));
                    let radius = match number()? {
                        0.0 => f64::INFINITY,
                        radius => radius,
                    };
                    Ok(Sphere {
                        radius,
                        regular_step: number()?,
                    })
                })
                .collect::<io::Result<_>>()?,
        };
        if external {
            origin.energy.external = f64::from_le_bytes(array(&mut file)?);
        }
        let particles = read_vectors(&mut file, if particles { n } else { 0 })?;
        let mut number = || Ok::<_, io::Error>(f64::from_le_bytes(array(&mut file)?));
        let mut kept = Kept {
            particles,
            ..Kept::default()
        };
        if encounters {
            for _ in 0..n {
                kept.radii.push(number()?);
            }
            kept.lost = Lost {
                energy: number()?,
                momentum: [number()?, number()?, number()?],
                angular_momentum: [number()?, number()?, number()?],
            };
        }
        let crc = file.hasher.finalize();
        if u32::from_le_bytes(array(&mut file.file)?) != crc {
            return Err(CheckpointFault::Checksum);
        }
        possible(&clock, &state.frame)?;
        let is_radius = |radius: &f64| radius.is_finite() && *radius >= 0.0;
        if !kept.radii.iter().all(is_radius) {
            return Err(CheckpointFault::Impossible("a radius"));
        }
        let settings = String::from_utf8(text).map_err(|_| CheckpointFault::Foreign)?;
        let kind: Option<Vec<BodyKind>> = kind.into_iter().collect();
        let kind = kind.ok_or(CheckpointFault::Foreign)?;
        let bodies = bodies_of(&state, &mass, &id, &kind);
        bodies.check()?;
        Ok(Checkpoint {
            clock,
            origin,
            largest_drift,
            settings,
            bodies,
            state,
            kept,
        })
    }
}

fn content(file: &mut impl Write, checkpoint: &Checkpoint) -> io::Result<()> {
    let Checkpoint {
        clock,
        origin,
        largest_drift,
        settings,
        bodies,
        state,
        kept,
    } = checkpoint;
    file.write_all(&MAGIC)?;
    file.write_all(&VERSION.to_le_bytes())?;
    let flag = |flag: u32, is_set: bool| if is_set { flag } else { 0 };
    let flags = flag(JERKS, !state.jerks.is_empty())
        | flag(OWN_STEPS, !state.own_steps.is_empty())
        | flag(HIGHER, !state.higher.is_empty())
        | flag(EXTERNAL, origin.energy.external != 0.0)
        | flag(PARTICLES, !kept.particles.is_empty())
        | flag(ENCOUNTERS, !kept.radii.is_empty())
        | flag(SPHERES, !state.spheres.is_empty());
    file.write_all(&flags.to_le_bytes())?;
    file.write_all(&(bodies.len() as u64).to_le_bytes())?;
    file.write_all(&clock.steps.to_le_bytes())?;
    let frame = &state.frame;
    let [px, py, pz] = origin.momentum;
    let [lx, ly, lz] = origin.angular_momentum;
    numbers(file, &[clock.start, clock.time, clock.dt])?;
    let (time, steps) = clock.counted_from;
    numbers(file, &[time])?;
    file.write_all(&steps.to_le_bytes())?;
    numbers(file, &frame.centre)?;
    numbers(file, &[frame.length, frame.mass, frame.time])?;
    let energy = origin.energy;
    numbers(file, &[origin.time, energy.kinetic, energy.potential])?;
    numbers(file, &[px, py, pz, lx, ly, lz])?;
    numbers(
        file,
        &[origin.momentum_scale, origin.angular_momentum_scale],
    )?;
    numbers(file, &[*largest_drift])?;
    file.write_all(&(settings.len() as u64).to_le_bytes())?;
    file.write_all(settings.as_bytes())?;
    numbers(file, &bodies.mass)?;
    for id in &bodies.id {
        file.write_all(&id.to_le_bytes())?;
    }
    for &kind in &bodies.kind {
        file.write_all(&[kind.number()])?;
    }
    let vectors = [
        &state.positions,
        &state.velocities,
        &state.accelerations,
        &state.jerks,
    ];
    for vectors in vectors {
        numbers(file, vectors.as_flattened())?;
    }
    numbers(file, state.higher.as_flattened().as_flattened())?;
    numbers(file, &state.own_steps)?;
    for sphere in &state.spheres {
        let radius = match sphere.radius {
            f64::INFINITY => 0.0,
            radius => radius,
        };
        numbers(file, &[radius, sphere.regular_step])?;
    }
    if energy.external != 0.0 {
        numbers(file, &[energy.external])?;
    }
    numbers(file, kept.particles.as_flattened())?;
    if kept.radii.is_empty() {
        return Ok(());
    }
    numbers(file, &kept.radii)?;
    let lost = &kept.lost;
    numbers(file, &[lost.energy])?;
    numbers(file, &lost.momentum)?;
    numbers(file, &lost.angular_momentum)
}

fn numbers(file: &mut impl Write, numbers: &[f64]) -> io::Result<()> {
    for number in numbers {
        file.write_all(&number.to_le_bytes())?;
    }
    Ok(())
}

/// Refuses times, steps and units that a run cannot go on from.
fn possible(clock: &Clock, frame: &Frame) -> Result<(), CheckpointFault> {
    /// More than any run takes, and few enough to be counted on.
    const MOST_STEPS: u64 = 1 << 62;
    let (counted_from, counted_steps) = clock.counted_from;
    let times = [clock.start, clock.time, counted_from];
    if !times.iter().all(|time| time.is_finite()) {
        return Err(CheckpointFault::Impossible("a time"));
    }
    if clock.dt.is_nan() || clock.dt == 0.0 {
        return Err(CheckpointFault::Impossible("a step"));
    }
    if counted_steps > clock.steps || clock.steps > MOST_STEPS {
        return Err(CheckpointFault::Impossible("a number of steps"));
    }
    let units = [frame.length, frame.mass, frame.time];
    let has_units = units.iter().all(|unit| unit.is_finite() && *unit > 0.0);
    if !has_units || !frame.centre.iter().all(|x| x.is_finite()) {
        return Err(CheckpointFault::Impossible("a frame"));
    }
    Ok(())
}

/// Reads so many vectors.
fn read_vectors(file: &mut impl Read, count: usize) -> io::Result<Vec<[f64; 3]>> {
    let mut vectors = Vec::with_capacity(count);
    for _ in 0..count {
        let mut number = || Ok::<_, io::Error>(f64::from_le_bytes(array(file)?));
        vectors.push([number()?, number()?, number()?]);
    }
    Ok(vectors)
}

fn array<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
