//! The bytes of a checkpoint:
//! ```text
//! offset  bytes
//!      0     16  "ALLPAIRS-RESUME\n"
//!     16      4  u32 version: 2
//!     20      4  u32: 1 if there are jerks, 2 more if there are block time steps, 4 more if there are
//!                snaps, 8 more if there is an energy in external fields, 16 more if there are test particles, 32
//!                more if encounters are looked for, 64 more if there are neighbour spheres, 128 more if pairs and
//!                multiples are followed apart, 256 more if the run was changed from outside, 512 more if the
//!                bodies moved as a whole, 1024 more if the step was chosen at the beginning and stays, 2048
//!                more if pairs came later and were followed apart
//!     24      8  u64 number of bodies N
//!     32      8  u64 steps done
//!     40     24  three f64: time of the beginning, time reached, step to come
//!     64     16  f64 and u64: time and steps that steps of a fixed length are counted from
//!     80     48  six f64, the frame of the vectors: centre x, y, z; units of length, mass, time
//!    128     88  eleven f64, the run's beginning: time; kinetic and potential energy; momentum and
//!                angular momentum, three each; the scales of these two
//!    216      8  f64: the largest drift of the energy so far
//!    224      8  u64 number of bytes S of the settings
//!                u64 count of the numbers of groups (if they are followed apart)
//!    232      S  settings of the run, in UTF-8: what decides its physics
//!                mass (N f64), id (N u64), kind (N u8: 0 gas, 1 dark, 2 star)
//!                positions, velocities, accelerations, jerks (if any): N times three f64 each
//!                snap and crackle (if any): N times six f64
//!                each body's next block time step (if any): N f64
//!                radius of the neighbour sphere, 0 where it is infinite, and regular step (if any): N
//!                times two f64
//!                numbers of the groups (if they are followed apart), f64 each
//!                energy in external fields at the beginning (if any): f64
//!                energy per mass, potential and Jacobi constant at the beginning (if there are test
//!                particles; not numbers for bodies with mass): N times three f64
//!                radii of the bodies, N f64; and energy, momentum and angular momentum that were lost,
//!                seven f64 (if encounters are looked for)
//!                energy, mass, momentum and angular momentum that changes brought, eight f64 (if the run was
//!                changed from outside)
//!                kinetic energy of the centre of mass at the beginning (if it moved): f64
//!                steps of a leapfrog that a step is worth (if it was chosen): f64
//!                times at which pairs were followed apart (if they came later): the first, f64; how often it
//!                began, u64; since when, f64, no number if they are not; time before that, f64
//!    end-4    4  u32 CRC-32, as of zlib, of all before
//! ```
//! All numbers are little-endian. Vectors are in local units, in which the f32 numbers of a GPU are
//! f64 numbers without loss.

use std::io::{self, Read, Write};

use crc32fast::Hasher;

use super::{Checkpoint, CheckpointFault, Kept, bodies_of};
use crate::backend::{COLUMNS, SavedState, Unit};
use crate::bodies::BodyKind;
use crate::diagnostics::{Brought, Conserved, Energy, Lost};
use crate::frame::Frame;
use crate::simulation::{Clock, Followed};

const MAGIC: [u8; 16] = *b"ALLPAIRS-RESUME\n";
pub(super) const VERSION: u32 = 2;
const HEADER_BYTES: u64 = 232;
const CRC_BYTES: u64 = 4;
/// Flag of a run in external fields.
const EXTERNAL: u32 = 8;
/// Flag of a run with test particles.
const PARTICLES: u32 = 16;
/// Flag of a run that looks for encounters.
const ENCOUNTERS: u32 = 32;

/// Flag of a run with regularised groups.
const GROUPS: u32 = 128;

/// Flag of a run that was changed from outside.
const CHANGED: u32 = 256;

/// Flag of a run with a centre of mass that moved.
const MOVING: u32 = 512;

/// Flag of a run with a step that was chosen and stays.
const CHOSEN: u32 = 1024;

/// Flag of a run that followed pairs apart that came later.
const CAME_LATER: u32 = 2048;

/// All flags, with the flags of the state's [`COLUMNS`].
const FLAGS: u32 = {
    let mut flags =
        EXTERNAL | PARTICLES | ENCOUNTERS | GROUPS | CHANGED | MOVING | CHOSEN | CAME_LATER;
    let mut column = 0;
    while column < COLUMNS.len() {
        assert!(flags & COLUMNS[column].flag == 0, "each has its own");
        flags |= COLUMNS[column].flag;
        column += 1;
    }
    flags
};

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
        let has = |flag: u32| flag == 0 || flags & flag != 0;
        let n = u64::from_le_bytes(array(&mut file)?);
        let steps = u64::from_le_bytes(array(&mut file)?);
        let [start, time, dt, counted_from] = numbers(&mut file)?;
        let mut clock = Clock {
            start,
            time,
            steps,
            dt,
            counted_from: (counted_from, u64::from_le_bytes(array(&mut file)?)),
            followed: None,
        };
        let centre = numbers(&mut file)?;
        let [length, mass, time] = numbers(&mut file)?;
        let frame = Frame {
            centre,
            length,
            mass,
            time,
        };
        let [time, kinetic, potential] = numbers(&mut file)?;
        let [momentum, angular_momentum] = [numbers(&mut file)?, numbers(&mut file)?];
        let [momentum_scale, angular_momentum_scale, largest_drift] = numbers(&mut file)?;
        let mut origin = Conserved {
            time,
            energy: Energy {
                kinetic,
                potential,
                external: 0.0,
                lost: 0.0,
                brought: 0.0,
            },
            momentum,
            angular_momentum,
            momentum_scale,
            angular_momentum_scale,
            kinetic_of_whole: 0.0,
        };
        let settings = u64::from_le_bytes(array(&mut file)?);
        let groups = match has(GROUPS) {
            true => u64::from_le_bytes(array(&mut file)?),
            false => 0,
        };
        // Nothing is allocated before the file's size has confirmed the numbers.
        let columns = COLUMNS.iter().filter(|row| has(row.flag));
        let numbers_of_each = columns.map(|row| row.units.len()).sum::<usize>()
            + if has(PARTICLES) { 3 } else { 0 }
            + if has(ENCOUNTERS) { 1 } else { 0 };
        let expected = n
            .saturating_mul(8 + 8 + 1 + 8 * numbers_of_each as u64)
            .saturating_add(if has(EXTERNAL) { 8 } else { 0 })
            .saturating_add(if has(ENCOUNTERS) { 7 * 8 } else { 0 })
            .saturating_add(if has(CHANGED) { 8 * 8 } else { 0 })
            .saturating_add(if has(MOVING) { 8 } else { 0 })
            .saturating_add(if has(CHOSEN) { 8 } else { 0 })
            .saturating_add(if has(CAME_LATER) { 4 * 8 } else { 0 })
            .saturating_add(if has(GROUPS) { 8 } else { 0 })
            .saturating_add(groups.saturating_mul(8))
            .saturating_add(settings)
            .saturating_add(HEADER_BYTES + CRC_BYTES);
        if found != expected {
            return Err(CheckpointFault::Size { expected, found });
        }
        let n = n as usize;
        let mut text = vec![0; settings as usize];
        file.read_exact(&mut text)?;
        let mass = read_numbers(&mut file, n)?;
        let mut id = Vec::with_capacity(n);
        for _ in 0..n {
            id.push(u64::from_le_bytes(array(&mut file)?));
        }
        let mut kind = Vec::with_capacity(n);
        for _ in 0..n {
            let [number] = array(&mut file)?;
            kind.push(BodyKind::of_number(number.into()));
        }
        let mut state = SavedState::try_of(frame, |column| {
            let units = column.units();
            let count = if has(column.flag()) {
                n * units.len()
            } else {
                0
            };
            let mut numbers = read_numbers(&mut file, count)?;
            for (number, unit) in numbers.iter_mut().zip(units.iter().cycle()) {
                if (*unit, *number) == (Unit::Radius, 0.0) {
                    *number = f64::INFINITY;
                }
            }
            Ok::<_, io::Error>(numbers)
        })?;
        state.groups = read_numbers(&mut file, groups as usize)?;
        if has(EXTERNAL) {
            [origin.energy.external] = numbers(&mut file)?;
        }
        let mut kept = Kept::default();
        if has(PARTICLES) {
            let particles = read_numbers(&mut file, 3 * n)?;
            kept.particles = particles.as_chunks().0.to_vec();
        }
        if has(ENCOUNTERS) {
            kept.radii = read_numbers(&mut file, n)?;
            let [energy] = numbers(&mut file)?;
            kept.lost = Lost {
                energy,
                momentum: numbers(&mut file)?,
                angular_momentum: numbers(&mut file)?,
            };
        }
        if has(CHANGED) {
            let [energy, mass] = numbers(&mut file)?;
            kept.brought = Brought {
                energy,
                mass,
                momentum: numbers(&mut file)?,
                angular_momentum: numbers(&mut file)?,
            };
        }
        if has(MOVING) {
            [origin.kinetic_of_whole] = numbers(&mut file)?;
        }
        if has(CHOSEN) {
            let [leapfrogs] = numbers(&mut file)?;
            kept.chosen_step = Some(leapfrogs);
        }
        if has(CAME_LATER) {
            let [first] = numbers(&mut file)?;
            let times = u64::from_le_bytes(array(&mut file)?);
            let [since, before] = numbers(&mut file)?;
            clock.followed = Some(Followed {
                first,
                times,
                since: Some(since).filter(|since| !since.is_nan()),
                before,
            });
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
    let flags = flag(EXTERNAL, origin.energy.external != 0.0)
        | flag(PARTICLES, !kept.particles.is_empty())
        | flag(ENCOUNTERS, !kept.radii.is_empty())
        | flag(GROUPS, !state.groups.is_empty())
        | flag(CHANGED, kept.brought != Brought::default())
        | flag(MOVING, origin.kinetic_of_whole != 0.0)
        | flag(CHOSEN, kept.chosen_step.is_some())
        | flag(CAME_LATER, clock.followed.is_some());
    let columns = COLUMNS.iter().filter(|row| state.has(row.column));
    let flags = columns.fold(flags, |flags, row| flags | row.flag);
    file.write_all(&flags.to_le_bytes())?;
    file.write_all(&(bodies.len() as u64).to_le_bytes())?;
    file.write_all(&clock.steps.to_le_bytes())?;
    let frame = &state.frame;
    let [px, py, pz] = origin.momentum;
    let [lx, ly, lz] = origin.angular_momentum;
    write_numbers(file, &[clock.start, clock.time, clock.dt])?;
    let (time, steps) = clock.counted_from;
    write_numbers(file, &[time])?;
    file.write_all(&steps.to_le_bytes())?;
    write_numbers(file, &frame.centre)?;
    write_numbers(file, &[frame.length, frame.mass, frame.time])?;
    let energy = origin.energy;
    write_numbers(file, &[origin.time, energy.kinetic, energy.potential])?;
    write_numbers(file, &[px, py, pz, lx, ly, lz])?;
    write_numbers(
        file,
        &[origin.momentum_scale, origin.angular_momentum_scale],
    )?;
    write_numbers(file, &[*largest_drift])?;
    file.write_all(&(settings.len() as u64).to_le_bytes())?;
    if !state.groups.is_empty() {
        file.write_all(&(state.groups.len() as u64).to_le_bytes())?;
    }
    file.write_all(settings.as_bytes())?;
    write_numbers(file, &bodies.mass)?;
    for id in &bodies.id {
        file.write_all(&id.to_le_bytes())?;
    }
    for &kind in &bodies.kind {
        file.write_all(&[kind.number()])?;
    }
    for row in &COLUMNS {
        let numbers = state.column(row.column).iter();
        for (&number, unit) in numbers.zip(row.units.iter().cycle()) {
            let is_infinite = (*unit, number) == (Unit::Radius, f64::INFINITY);
            write_numbers(file, &[if is_infinite { 0.0 } else { number }])?;
        }
    }
    write_numbers(file, &state.groups)?;
    if energy.external != 0.0 {
        write_numbers(file, &[energy.external])?;
    }
    write_numbers(file, kept.particles.as_flattened())?;
    if !kept.radii.is_empty() {
        write_numbers(file, &kept.radii)?;
        let lost = &kept.lost;
        write_numbers(file, &[lost.energy])?;
        write_numbers(file, &lost.momentum)?;
        write_numbers(file, &lost.angular_momentum)?;
    }
    let brought = &kept.brought;
    if *brought != Brought::default() {
        write_numbers(file, &[brought.energy, brought.mass])?;
        write_numbers(file, &brought.momentum)?;
        write_numbers(file, &brought.angular_momentum)?;
    }
    if origin.kinetic_of_whole != 0.0 {
        write_numbers(file, &[origin.kinetic_of_whole])?;
    }
    write_numbers(file, kept.chosen_step.as_slice())?;
    if let Some(followed) = clock.followed {
        write_numbers(file, &[followed.first])?;
        file.write_all(&followed.times.to_le_bytes())?;
        let since = followed.since.unwrap_or(f64::NAN);
        write_numbers(file, &[since, followed.before])?;
    }
    Ok(())
}

fn write_numbers(file: &mut impl Write, numbers: &[f64]) -> io::Result<()> {
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
    let mut times = vec![clock.start, clock.time, counted_from];
    times.extend(clock.followed.map(|followed| followed.first));
    times.extend(clock.followed.map(|followed| followed.until(clock.time)));
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

/// Reads numbers into a list.
fn read_numbers(file: &mut impl Read, count: usize) -> io::Result<Vec<f64>> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(f64::from_le_bytes(array(file)?));
    }
    Ok(all)
}

/// Reads as many numbers as the caller takes.
fn numbers<const N: usize>(file: &mut impl Read) -> io::Result<[f64; N]> {
    let mut all = [0.0; N];
    for number in &mut all {
        *number = f64::from_le_bytes(array(file)?);
    }
    Ok(all)
}

fn array<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
