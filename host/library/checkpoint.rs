//! Checkpoints: all that a run needs to continue as if it had never stopped.
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
//!                radius of the neighbour sphere and regular step (if any): N times two f64
//!                energy in external fields at the beginning (if any): f64
//!                energy per mass, potential and Jacobi constant at the beginning (if there are test
//!                particles; not numbers for bodies with mass): N times three f64
//!                radii of the bodies, N f64; and energy, momentum and angular momentum that were lost,
//!                seven f64 (if encounters are looked for)
//!    end-4    4  u32 CRC-32, as of zlib, of all before
//! ```
//! All numbers are little-endian. Vectors are in local units, in which the f32 numbers of a GPU are
//! f64 numbers without loss.
//!
//! A new checkpoint is complete and on disk before it replaces the last one, which is kept as
//! `checkpoint.previous`: whenever a run is killed, one of them is whole.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use crc32fast::Hasher;
use thiserror::Error;

use crate::backend::SavedState;
use crate::bodies::{Bodies, Body, BodyFault, BodyKind};
use crate::diagnostics::{Conserved, Energy, Lost};
use crate::frame::Frame;
use crate::io::{Overwrite, write_atomically};
use crate::simulation::Clock;
use crate::test_particles::Origin;

const MAGIC: [u8; 16] = *b"ALLPAIRS-RESUME\n";
const VERSION: u32 = 2;
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

/// The names under which checkpoints lie in a run's folder, in the order in which to look.
const NAMES: [&str; 3] = ["checkpoint.new", "checkpoint", "checkpoint.previous"];

/// A run, stopped between two steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Time and steps reached.
    pub clock: Clock,
    /// The conserved quantities of its beginning, for the drift.
    pub origin: Conserved,
    /// The largest [drift of the energy](crate::diagnostics::Sample::energy_drift) so far.
    pub largest_drift: f64,
    /// Settings of the run that decide its physics, as [the recording was told](crate::recording::Recording::of_settings).
    pub settings: String,
    /// The bodies, as they are now.
    pub bodies: Bodies,
    /// The backend's state.
    pub state: SavedState,
    /// State that the run keeps beside its bodies.
    pub kept: Kept,
}

/// State that a run keeps beside its bodies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Numbers of [test particles](crate::test_particles) at the beginning, one for each body; empty where
    /// there are none.
    pub particles: Vec<Origin>,
    /// Radii of the bodies; empty where no [encounters](crate::encounters) are looked for.
    pub radii: Vec<f64>,
    /// Quantities that mergers and removed bodies took with them.
    pub lost: Lost,
}

/// Reason why a file is not a checkpoint to continue from.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckpointFault {
    /// It is something else, or of a later version.
    #[error("it is not a checkpoint of this version of the program")]
    Foreign,
    /// It is of an earlier version.
    #[error(
        "it is of format {0}, of an earlier version of the program, and this one reads format \
         {VERSION}: finish the run with that version, or begin another from its last snapshot"
    )]
    Earlier(u32),
    /// It is a folder, a device or a pipe.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is shorter or longer than its number of bodies asks for.
    #[error("it has {found} bytes and should have {expected}: it was cut off or is damaged")]
    Size {
        /// Bytes by its header.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// The checksum is not that of the content.
    #[error("its checksum is wrong: it is damaged")]
    Checksum,
    /// Times, steps or a frame that no run has.
    #[error("its header has {0} that no run has: it is damaged")]
    Impossible(&'static str),
    /// A number that no run has.
    #[error("{0}; the run went wrong before this checkpoint")]
    Body(#[from] BodyFault),
    /// The file system failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The checkpoint of a folder, and what had to be passed over to find it.
#[derive(Debug)]
pub struct Found {
    /// The latest sound checkpoint, and its file.
    pub checkpoint: Option<(Checkpoint, PathBuf)>,
    /// Files that are no sound checkpoints.
    pub unsound: Vec<(PathBuf, CheckpointFault)>,
}

/// Looks for the latest sound checkpoint in `folder`.
pub fn find(folder: &Path) -> Found {
    let mut unsound = vec![];
    for path in NAMES.map(|name| folder.join(name)) {
        match read(&path) {
            Ok(checkpoint) => {
                return Found {
                    checkpoint: Some((checkpoint, path)),
                    unsound,
                };
            }
            Err(CheckpointFault::Io(fault)) if fault.kind() == io::ErrorKind::NotFound => {}
            Err(fault) => unsound.push((path, fault)),
        }
    }
    Found {
        checkpoint: None,
        unsound,
    }
}

/// Returns whether a folder has files that may be checkpoints.
pub fn exists(folder: &Path) -> bool {
    NAMES.iter().any(|name| folder.join(name).exists())
}

/// Writes a checkpoint into `folder`; the one before stays as `checkpoint.previous`.
///
/// # Errors
/// The file system's refusal; the checkpoint before is still there then.
pub fn write(folder: &Path, checkpoint: &Checkpoint) -> io::Result<()> {
    let [new, ..] = NAMES.map(|name| folder.join(name));
    write_atomically(&new, Overwrite::Allow, |file| {
        let mut summed = Summed {
            file,
            hasher: Hasher::new(),
        };
        content(&mut summed, checkpoint)?;
        let crc = summed.hasher.finalize();
        summed.file.write_all(&crc.to_le_bytes())
    })?;
    take_place(folder)
}

/// Gives the latest checkpoint of `folder` its name, which a process that was killed may not have come
/// to do.
///
/// # Errors
/// The file system's refusal.
pub(crate) fn tidy(folder: &Path) -> io::Result<()> {
    let [new, ..] = NAMES.map(|name| folder.join(name));
    match new.exists() && read(&new).is_ok() {
        true => take_place(folder),
        false => Ok(()),
    }
}

/// Puts the new checkpoint in the place of the last one.
fn take_place(folder: &Path) -> io::Result<()> {
    let [new, current, previous] = NAMES.map(|name| folder.join(name));
    match fs::rename(&current, &previous) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
        _ => {}
    }
    fs::rename(&new, &current)
}

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
    numbers(file, state.spheres.as_flattened())?;
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

/// Reads a checkpoint.
///
/// # Errors
/// The reason why it is not one to continue from.
pub fn read(path: &Path) -> Result<Checkpoint, CheckpointFault> {
    // Before it is opened: a pipe would be waited for.
    if !fs::metadata(path)?.is_file() {
        return Err(CheckpointFault::NotAFile);
    }
    let file = File::open(path)?;
    let found = file.metadata()?.len();
    let mut file = Summed {
        file: BufReader::with_capacity(1 << 16, file),
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
                Ok([number()?, number()?])
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

/// The bodies of a backend's state.
fn bodies_of(state: &SavedState, mass: &[f64], id: &[u64], kind: &[BodyKind]) -> Bodies {
    let mut bodies = Bodies::with_capacity(mass.len());
    for i in 0..mass.len() {
        bodies.push(Body {
            position: state.frame.position_from_local(state.positions[i]),
            velocity: state.frame.velocity_from_local(state.velocities[i]),
            mass: mass[i],
            id: id[i],
            kind: kind[i],
        });
    }
    bodies
}

impl SavedState {
    /// The bodies at this state, which are `bodies` otherwise.
    pub(crate) fn bodies_like(&self, bodies: &Bodies) -> Bodies {
        bodies_of(self, &bodies.mass, &bodies.id, &bodies.kind)
    }

    /// The first body of which a coordinate is not finite.
    pub(crate) fn first_not_finite(&self) -> Option<usize> {
        let is_finite = |vector: &[f64; 3]| vector.iter().all(|x| x.is_finite());
        let phase = self.positions.iter().zip(&self.velocities);
        let mut finite = phase.map(|(x, v)| is_finite(x) && is_finite(v));
        finite.position(|finite| !finite)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::force::cpu::samples::cloud;

    fn checkpoint(n: usize, steps: u64) -> Checkpoint {
        let mut bodies = cloud(n, steps);
        (0..n).for_each(|i| bodies.kind[i] = BodyKind::ALL[i % 3]);
        let vectors = |seed| {
            let c = cloud(n, seed);
            (0..n).map(|i| [c.x[i], c.y[i], c.z[i]]).collect::<Vec<_>>()
        };
        let frame = Frame {
            centre: [0.0; 3],
            length: 4.0,
            mass: 0.5,
            time: 2.0,
        };
        let state = SavedState {
            frame,
            positions: vectors(1),
            velocities: vectors(2),
            accelerations: vectors(3),
            jerks: if steps.is_multiple_of(2) {
                vectors(4)
            } else {
                vec![]
            },
            higher: if steps.is_multiple_of(4) {
                vectors(5)
                    .into_iter()
                    .zip(vectors(6))
                    .map(|(s, c)| [s, c])
                    .collect()
            } else {
                vec![]
            },
            own_steps: if steps.is_multiple_of(4) {
                bodies.x.clone()
            } else {
                vec![]
            },
            spheres: if steps.is_multiple_of(4) {
                bodies.x.iter().map(|x| [*x, 2.0 * x]).collect()
            } else {
                vec![]
            },
        };
        for i in 0..n {
            [bodies.x[i], bodies.y[i], bodies.z[i]] = frame.position_from_local(state.positions[i]);
            [bodies.vx[i], bodies.vy[i], bodies.vz[i]] =
                frame.velocity_from_local(state.velocities[i]);
        }
        let energy = Energy {
            kinetic: 0.25,
            potential: -1.0 / 3.0,
            external: 0.0,
            lost: 0.0,
        };
        let physics = crate::physics::Physics {
            law: crate::physics::ForceLaw::Gravity,
            g: 1.0,
            softening: 0.0,
        };
        Checkpoint {
            clock: Clock {
                start: 1.0,
                time: 1.0 + 0.1 * steps as f64,
                steps,
                dt: 0.1,
                counted_from: (1.25, steps / 2),
            },
            origin: Conserved::measure(1.0, &bodies, &physics, energy),
            largest_drift: 1e-9 * steps as f64,
            settings: "softening = 0.1\n".repeat(steps as usize % 3),
            kept: Kept {
                particles: if steps.is_multiple_of(3) {
                    vectors(7)
                } else {
                    vec![]
                },
                radii: if steps.is_multiple_of(5) {
                    vec![0.5; n]
                } else {
                    vec![]
                },
                lost: if steps.is_multiple_of(5) {
                    Lost {
                        energy: 0.5,
                        momentum: [1.0, 2.0, 3.0],
                        angular_momentum: [4.0, 5.0, 6.0],
                    }
                } else {
                    Lost::default()
                },
            },
            bodies,
            state,
        }
    }

    fn found(folder: &Path) -> (u64, usize) {
        let found = find(folder);
        let steps = found.checkpoint.map_or(0, |(c, _)| c.clock.steps);
        (steps, found.unsound.len())
    }

    #[test]
    fn nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!exists(folder.path()) && find(folder.path()).checkpoint.is_none());
        for (n, steps) in [(7, 4), (1, 5), (100, 6)] {
            let written = checkpoint(n, steps);
            write(folder.path(), &written).unwrap();
            let (read, path) = find(folder.path()).checkpoint.unwrap();
            assert_eq!(read, written);
            assert!(path.ends_with("checkpoint"));
        }
        assert_eq!(
            read(&folder.path().join("checkpoint.previous")).unwrap(),
            checkpoint(1, 5)
        );
        assert!(exists(folder.path()));
    }

    /// Every byte counts: one that is changed or missing is noticed, and the checkpoint before is
    /// taken instead.
    #[test]
    fn damage_is_noticed_and_the_one_before_taken() {
        let folder = tempfile::tempdir().unwrap();
        let current = folder.path().join("checkpoint");
        write(folder.path(), &checkpoint(3, 1)).unwrap();
        write(folder.path(), &checkpoint(3, 2)).unwrap();
        let whole = fs::read(&current).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            fs::write(&current, &damaged).unwrap();
            assert_eq!(found(folder.path()), (1, 1), "byte {at} changed");
            fs::write(&current, &whole[..at]).unwrap();
            assert_eq!(found(folder.path()), (1, 1), "cut off at {at}");
        }
        fs::write(&current, &whole).unwrap();
        assert_eq!(found(folder.path()), (2, 0));
    }

    /// Killed between the steps of writing: after the new one is complete, and after the old one is
    /// renamed.
    #[test]
    fn killed_while_writing() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &checkpoint(3, 1)).unwrap();
        let other = tempfile::tempdir().unwrap();
        write(other.path(), &checkpoint(3, 2)).unwrap();
        let new = folder.path().join("checkpoint.new");
        fs::copy(other.path().join("checkpoint"), new).unwrap();
        assert_eq!(found(folder.path()), (2, 0));
        let [current, previous] =
            ["checkpoint", "checkpoint.previous"].map(|n| folder.path().join(n));
        fs::rename(current, previous).unwrap();
        assert_eq!(found(folder.path()), (2, 0));
        write(folder.path(), &checkpoint(3, 3)).unwrap();
        assert_eq!(found(folder.path()), (3, 0));
    }
    #[test]
    fn of_another_format_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &checkpoint(3, 1)).unwrap();
        let path = folder.path().join("checkpoint");
        let mut bytes = fs::read(&path).unwrap();
        for (version, part) in [
            (1_u32, "of format 1"),
            (3, "not a checkpoint of this version"),
        ] {
            bytes[16..20].copy_from_slice(&version.to_le_bytes());
            fs::write(&path, &bytes).unwrap();
            let fault = read(&path).unwrap_err().to_string();
            assert!(fault.contains(part), "{fault}");
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(read(&path), Err(CheckpointFault::NotAFile)));
    }
}
