//! Archives of REBOUND.
//! ```text
//! head     64 bytes: "REBOUND Binary File. Version: 4.4.3", a zero, and more text
//! field    versions 3.18 to 4: u32 number, u32 padding, u64 bytes; version 5: u64 bytes of the name, u64 bytes,
//!          the name with a zero; then the value
//! value    f64, i32 or (version 5) i64; of the particles 128 bytes for each, 112 in version 5: f64 x y z vx vy vz,
//!          ax ay az, m, r and more
//! ```
//! Little-endian. A snapshot is a list of fields that ends with number 9999 or the name `end`, and 12 bytes more: its
//! number, and how far the snapshots before and after it are. All but the first have only fields that changed since the first.
//! The last is read.
//! Layout: REBOUND's documentation, "Simulationarchive" and "Binary format"; numbers of fields by archives that were
//! written by 3.19, 3.28, 4.4 and 5.2.

use std::io::{self, Read, Seek, SeekFrom};

use super::column::{Malformed, left_out, room_for};
use super::{Contents, ReadFault, Snapshot};
use crate::bodies::{Body, BodyKind};
use crate::units::{ASTRONOMICAL_UNIT, DAY, G, PARSEC, Units, YEAR, usual_units};

const MAGIC: &[u8] = b"REBOUND Binary File. Version: ";

/// Bytes of the head.
const HEAD: u64 = 64;

/// Bytes after the last field of a snapshot.
const AFTER: u64 = 12;

/// Returns whether a file begins as one of these.
pub(super) fn is_header(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

fn malformed(place: impl Into<String>, problem: impl Into<String>) -> ReadFault {
    Malformed::new(place, problem).into()
}

/// A field that is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Time,
    Gravity,
    Softening,
    Bodies,
    /// Bodies at the end of the particles that follow derivatives of others' orbits.
    Variational,
    /// Bodies that are no test particles; negative: all.
    Active,
    /// 1 if test particles act on the others.
    TestsAct,
    Boundary,
    /// 0 if an integrator's positions are not at the time; which integrator's.
    Synchronised(usize),
    /// The hash of the name of a unit; of which.
    Unit(usize),
    Particles,
    End,
    Other,
}

impl Field {
    /// By its number, in versions up to 4.
    fn numbered(number: u32) -> Self {
        match number {
            0 => Self::Time,
            1 => Self::Gravity,
            2 => Self::Softening,
            4 => Self::Bodies,
            5 => Self::Variational,
            7 => Self::Active,
            8 => Self::TestsAct,
            52 => Self::Boundary,
            // WHFast.
            63 => Self::Synchronised(0),
            85 => Self::Particles,
            // MERCURIUS.
            119 => Self::Synchronised(1),
            130..=132 => Self::Unit(number as usize - 130),
            // SABA.
            140 => Self::Synchronised(2),
            // EOS.
            151 => Self::Synchronised(3),
            9999 => Self::End,
            _ => Self::Other,
        }
    }

    /// By its name, from version 5 on.
    fn named(name: &[u8]) -> Self {
        match name {
            b"t" => Self::Time,
            b"G" => Self::Gravity,
            b"softening" => Self::Softening,
            b"N" => Self::Bodies,
            b"N_active" => Self::Active,
            b"testparticle_type" => Self::TestsAct,
            b"boundary" => Self::Boundary,
            b"is_synchronized" => Self::Synchronised(0),
            b"particles" => Self::Particles,
            b"python_unit_l" => Self::Unit(0),
            b"python_unit_m" => Self::Unit(1),
            b"python_unit_t" => Self::Unit(2),
            b"end" => Self::End,
            _ => Self::Other,
        }
    }
}

/// A snapshot, as far as it is read.
#[derive(Clone)]
struct Found {
    time: f64,
    gravity: f64,
    softening: f64,
    bodies: i64,
    variational: i64,
    active: i64,
    tests_act: bool,
    has_boundary: bool,
    /// For each integrator that may leave its step open.
    is_synchronised: [bool; 4],
    /// Hashes of names of units. They are not in the order of the fields' names.
    units: [u32; 3],
    /// Offset and bytes of the particles.
    particles: (u64, u64),
}

/// Reads the last snapshot of a file of `size` bytes.
pub(super) fn read(reader: &mut (impl Read + Seek), size: u64) -> Result<Contents, ReadFault> {
    let mut fields = Fields::begin(reader, size)?;
    let mut found = Found {
        time: 0.0,
        gravity: 1.0,
        softening: 0.0,
        bodies: 0,
        variational: 0,
        active: -1,
        tests_act: false,
        has_boundary: false,
        is_synchronised: [true; 4],
        units: [0; 3],
        particles: (0, 0),
    };
    let (mut last, mut snapshots, mut notes) = (None, 0_u32, vec![]);
    while fields.at < size {
        match fields.snapshot(found.clone(), snapshots)? {
            Some(whole) => {
                // What a later snapshot does not tell is as in the first.
                if snapshots == 0 {
                    found = whole.clone();
                }
                last = Some(whole);
                snapshots += 1;
            }
            None => {
                notes.push(format!(
                    "snapshot {snapshots} of the archive was cut short and is left out"
                ));
                break;
            }
        }
    }
    let cut = || {
        malformed(
            "the first snapshot",
            "it was cut short: copy or write the file again",
        )
    };
    let found = last.ok_or_else(cut)?;
    if snapshots > 1 {
        notes.push(format!(
            "the archive holds {snapshots} snapshots: the last is read, of time {}",
            found.time
        ));
    }
    fields.contents(&found, notes)
}

/// The fields of a file.
struct Fields<'a, R> {
    reader: &'a mut R,
    size: u64,
    /// Offset of the next field.
    at: u64,
    /// From version 5 on, fields have names.
    has_names: bool,
}

impl<'a, R: Read + Seek> Fields<'a, R> {
    fn begin(reader: &'a mut R, size: u64) -> Result<Self, ReadFault> {
        let mut head = vec![];
        reader.by_ref().take(HEAD).read_to_end(&mut head)?;
        let version = head
            .strip_prefix(MAGIC)
            .filter(|_| head.len() as u64 == HEAD);
        let version = version.and_then(|text| text.split(|byte| *byte == 0).next());
        let version = version.map(String::from_utf8_lossy).unwrap_or_default();
        let numbers: Vec<u32> = version
            .split('.')
            .map_while(|part| part.parse().ok())
            .collect();
        let has_names = match numbers[..] {
            [3, minor, ..] if minor >= 18 => false,
            [4, ..] => false,
            [5, ..] => true,
            [] => {
                return Err(malformed(
                    "byte offset 0",
                    "this is not the head of an archive of REBOUND",
                ));
            }
            _ => {
                let problem = format!(
                    "it was written by REBOUND {version}, and archives of 3.18 to 5 are read; in Python: sim = \
                     rebound.Simulation(file); numpy.savetxt('bodies.txt', [[p.m, *p.xyz, *p.vxyz] for p in \
                     sim.particles])"
                );
                return Err(malformed("the head", problem));
            }
        };
        Ok(Self {
            reader,
            size,
            at: HEAD,
            has_names,
        })
    }

    /// Reads as many bytes; `None` if the file ends before.
    fn take<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        if self.size - self.at < N as u64 {
            return Ok(None);
        }
        self.reader.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(Some(bytes))
    }

    /// The next field and the bytes of its value, at which the reader then stands.
    fn next(&mut self) -> Result<Option<(Field, u64)>, ReadFault> {
        /// No names are longer.
        const LONGEST: u64 = 1 << 10;
        let place = format!("byte offset {}", self.at);
        let (Some(first), Some(bytes)) = (self.take()?, self.take()?) else {
            return Ok(None);
        };
        let bytes = u64::from_le_bytes(bytes);
        if !self.has_names {
            let [number, _] = [&first[..4], &first[4..]]
                .map(|half| half.try_into().map_or(0, u32::from_le_bytes));
            return Ok(Some((Field::numbered(number), bytes)));
        }
        let length = u64::from_le_bytes(first);
        if !(1..=LONGEST).contains(&length) {
            return Err(malformed(
                place,
                "no field begins here: the file is damaged",
            ));
        }
        if self.size - self.at < length {
            return Ok(None);
        }
        let mut name = vec![0; length as usize];
        self.reader.read_exact(&mut name)?;
        self.at += length;
        match name.split_last() {
            Some((0, name)) => Ok(Some((Field::named(name), bytes))),
            _ => Err(malformed(
                place,
                "the name of a field has no end: the file is damaged",
            )),
        }
    }

    /// Reads snapshot `number`. Fields that it does not tell are as in `found`. `None` if the file ends before it.
    fn snapshot(&mut self, mut found: Found, number: u32) -> Result<Option<Found>, ReadFault> {
        loop {
            let place = format!("byte offset {}", self.at);
            let Some((field, bytes)) = self.next()? else {
                return Ok(None);
            };
            if field == Field::End {
                let Some(after) = self.take::<{ AFTER as usize }>()? else {
                    return Ok(None);
                };
                return match after.first_chunk() {
                    Some(index) if u32::from_le_bytes(*index) == number => Ok(Some(found)),
                    _ => {
                        let problem = format!(
                            "a snapshot ends here that is not number {number}: the file is damaged"
                        );
                        Err(malformed(place, problem))
                    }
                };
            }
            let Some(end) = self.at.checked_add(bytes).filter(|end| *end <= self.size) else {
                return Ok(None);
            };
            match (field, bytes) {
                (Field::Other, _) => {}
                (Field::Particles, _) => found.particles = (self.at, bytes),
                (_, 4) => {
                    let value = self.take()?.map_or(0, u32::from_le_bytes);
                    found.integer(field, value.cast_signed().into());
                }
                (Field::Time | Field::Gravity | Field::Softening, 8) => {
                    let value = self.take()?.map_or(0.0, f64::from_le_bytes);
                    match field {
                        Field::Time => found.time = value,
                        Field::Gravity => found.gravity = value,
                        _ => found.softening = value,
                    }
                }
                (_, 8) => {
                    let value = self.take()?.map_or(0, i64::from_le_bytes);
                    found.integer(field, value);
                }
                _ => {
                    let problem =
                        format!("a field of one number has {bytes} bytes: the file is damaged");
                    return Err(malformed(place, problem));
                }
            }
            self.reader.seek(SeekFrom::Start(end))?;
            self.at = end;
        }
    }

    /// The bodies of a snapshot.
    fn contents(&mut self, found: &Found, mut notes: Vec<String>) -> Result<Contents, ReadFault> {
        let numbers = [
            ("t", found.time),
            ("G", found.gravity),
            ("softening", found.softening),
        ];
        if let Some((name, value)) = numbers.into_iter().find(|(_, value)| !value.is_finite()) {
            return Err(malformed(
                name,
                format!("it is {value}, not a finite number"),
            ));
        }
        if found.is_synchronised.contains(&false) {
            let problem = "the particles are not at the time of the snapshot, because the integrator had not ended its \
                           step (safe_mode = 0): in Python call sim.synchronize(), then sim.save_to_file(file)";
            return Err(malformed("the last snapshot", problem));
        }
        let row = if self.has_names { 112 } else { 128 };
        let (offset, bytes) = found.particles;
        let n = u64::try_from(found.bodies).unwrap_or(0);
        if n.checked_mul(row) != Some(bytes) {
            let problem = format!(
                "{n} particles have {bytes} bytes, and should have {row} each: the file is damaged"
            );
            return Err(malformed(format!("byte offset {offset}"), problem));
        }
        let n = n.saturating_sub(u64::try_from(found.variational).unwrap_or(0));
        let count =
            usize::try_from(n).map_err(|_| ReadFault::OutOfMemory { bodies: usize::MAX })?;
        let active = usize::try_from(found.active).unwrap_or(count);
        let mut bodies = room_for(count)?;
        let (mut has_radii, mut made_massless) = (false, 0);
        let mut numbers = vec![[0; 8]; row as usize / 8];
        self.reader.seek(SeekFrom::Start(offset))?;
        for (id, body) in (0..n).zip(0..count) {
            self.reader.read_exact(numbers.as_flattened_mut())?;
            let real = |k: usize| f64::from_le_bytes(numbers[k]);
            has_radii |= real(10) != 0.0;
            let acts = body < active || found.tests_act;
            made_massless += usize::from(!acts && real(9) != 0.0);
            bodies.push(Body {
                position: [real(0), real(1), real(2)],
                velocity: [real(3), real(4), real(5)],
                mass: if acts { real(9) } else { 0.0 },
                id,
                kind: BodyKind::Star,
            });
        }
        bodies.check()?;
        let units = self.units(found, &mut notes)?;
        let others = [
            (found.softening != 0.0, "the softening"),
            (has_radii, "radii"),
            (found.has_boundary, "boundary conditions"),
            (found.variational > 0, "variational particles"),
        ];
        let others: Vec<&str> = others
            .iter()
            .filter(|(is_there, _)| *is_there)
            .map(|(_, name)| *name)
            .collect();
        if !others.is_empty() {
            notes.push(left_out("fields", &others));
        }
        if made_massless > 0 {
            notes.push(format!(
                "{made_massless} test particles have masses that act on nothing in REBOUND: they are massless here"
            ));
        }
        if found.tests_act && active < count {
            notes.push(
                "test particles do not act on each other in REBOUND: here all bodies act on all"
                    .to_owned(),
            );
        }
        Ok(Contents {
            snapshot: Snapshot {
                time: found.time,
                bodies,
            },
            units,
            notes,
            ..Contents::default()
        })
    }

    /// Units in which the constant of gravity is the archive's: of the names in it, or else of a usual constant.
    fn units(&self, found: &Found, notes: &mut Vec<String>) -> Result<Option<Units>, ReadFault> {
        let hash = if self.has_names { djb2 } else { murmur3 };
        let named = |units: &[(&str, f64)]| {
            let of_name = |(name, _): &&(&str, f64)| found.units.contains(&hash(name.as_bytes()));
            units.iter().find(of_name).map(|(_, unit)| *unit)
        };
        if let (Some(length), Some(time)) = (named(&LENGTHS), named(&TIMES)) {
            return Ok(Some(found.in_units(length, time)));
        }
        if found.gravity == 1.0 {
            return Ok(None);
        }
        match usual_units(found.gravity) {
            Some(units) => {
                notes.push(format!(
                    "the archive names no units: by its constant of gravity, {}, they are {}",
                    found.gravity,
                    units.names()
                ));
                Ok(Some(found.in_units(units.length, units.time)))
            }
            None => {
                let problem = format!(
                    "it is {}, and there are no names of units: set them before saving, in Python sim.units = \
                     ('au', 'yr', 'msun'), or scale the masses so that G is 1",
                    found.gravity
                );
                Err(malformed("the constant of gravity G", problem))
            }
        }
    }
}

impl Found {
    fn integer(&mut self, field: Field, value: i64) {
        match field {
            Field::Bodies => self.bodies = value,
            Field::Variational => self.variational = value,
            Field::Active => self.active = value,
            Field::TestsAct => self.tests_act = value == 1,
            Field::Boundary => self.has_boundary = value > 0,
            Field::Synchronised(which) => self.is_synchronised[which] = value != 0,
            Field::Unit(which) => self.units[which] = value as u32,
            _ => {}
        }
    }

    /// Units of this length and time. The unit of mass follows from the constant of gravity, so that motions are
    /// the archive's to the last digit.
    fn in_units(&self, length: f64, time: f64) -> Units {
        let speed = length / time;
        let mass = self.gravity * length * speed * speed / G;
        Units { length, mass, time }
    }
}

/// Names of REBOUND's units of length, in m.
const LENGTHS: [(&str, f64); 7] = [
    ("m", 1.0),
    ("cm", 0.01),
    ("km", 1e3),
    ("au", ASTRONOMICAL_UNIT),
    ("aus", ASTRONOMICAL_UNIT),
    ("pc", PARSEC),
    ("parsec", PARSEC),
];

/// Names of REBOUND's units of time, in s.
const TIMES: [(&str, f64); 15] = [
    ("s", 1.0),
    ("hr", 3600.0),
    ("d", DAY),
    ("day", DAY),
    ("days", DAY),
    ("yr", YEAR),
    ("year", YEAR),
    ("years", YEAR),
    ("yrs", YEAR),
    ("jyr", YEAR),
    ("sidereal_yr", 31_558_149.763_5),
    ("yr2pi", 5_022_642.890_913_03),
    ("kyr", 1e3 * YEAR),
    ("myr", 1e6 * YEAR),
    ("gyr", 1e9 * YEAR),
];

/// The hash of a name in version 5.
fn djb2(name: &[u8]) -> u32 {
    let add = |hash: u32, letter: &u8| hash.wrapping_mul(33).wrapping_add((*letter).into());
    name.iter().fold(5381, add)
}

/// The hash of a name in versions up to 4: MurmurHash3 of 32 bits, by Austin Appleby.
fn murmur3(name: &[u8]) -> u32 {
    const SEED: u32 = 1983;
    let mix = |word: u32| {
        word.wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593)
    };
    let (words, rest) = name.as_chunks::<4>();
    let mut hash = words.iter().fold(SEED, |hash, word| {
        let hash = (hash ^ mix(u32::from_le_bytes(*word))).rotate_left(13);
        hash.wrapping_mul(5).wrapping_add(0xe654_6b64)
    });
    hash ^= mix(rest
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u32::from(*byte)));
    hash ^= name.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests;
