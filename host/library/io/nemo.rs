//! Snapshots of NEMO, in its structured binary files.
//! ```text
//! item        u16 0x0992, or 0x0b92 with dimensions; either byte order, which is then all numbers'
//!             type, letters that end with a zero: a b c (a byte), s h (i16), i (i32), l (i64), f (f32),
//!             d (f64), ( begins a set, ) ends it
//!             name, letters that end with a zero; none where a set ends
//!             i32 dimensions that end with a zero, with 0x0b92 only
//!             elements
//! SnapShot    set of Parameters (Nobj, Time) and Particles
//! Particles   set of Mass [N], PhaseSpace [N, 2, 3] or Position [N, 3] and Velocity [N, 3], Key [N]
//! ```
//! Of several snapshots the last is read. Masses that do not change may be in the first alone, as programs of
//! NEMO write them.
//! Layout: NEMO's user's guide, "Filestructure" and "Snapshots".

use std::io::{Read, Seek, SeekFrom};

use super::column::{
    Class, IDS, Malformed, Numbers, left_out, read_integers, read_reals, room_for,
};
use super::{Contents, ReadFault, Snapshot};
use crate::bodies::{Bodies, BodyKind};

const ONE: u16 = 0x0992;
const SEVERAL: u16 = 0x0b92;

fn malformed(place: impl Into<String>, problem: impl Into<String>) -> ReadFault {
    Malformed::new(place, problem).into()
}

/// Returns whether a file begins as one of these.
pub(super) fn is_header(start: &[u8]) -> bool {
    let [first, second, letter, 0, ..] = *start else {
        return false;
    };
    let is_item = |magic: u16| [ONE, SEVERAL].contains(&magic);
    let magic = [first, second];
    (is_item(u16::from_le_bytes(magic)) || is_item(u16::from_be_bytes(magic)))
        && b"abcshilfd(".contains(&letter)
}

/// An item, of which the elements are not read yet.
#[derive(Clone, Debug)]
struct Item {
    /// Letter of the type.
    letter: u8,
    name: String,
    dimensions: Vec<u64>,
    offset: u64,
}

/// A snapshot, as far as it is read.
#[derive(Clone, Default)]
struct Found {
    time: f64,
    mass: Option<Item>,
    phase_space: Option<Item>,
    position: Option<Item>,
    velocity: Option<Item>,
    key: Option<Item>,
    others: Vec<String>,
}

/// Reads the last snapshot of a file of `size` bytes.
pub(super) fn read(reader: &mut (impl Read + Seek), size: u64) -> Result<Contents, ReadFault> {
    /// Sets within sets; a snapshot has two.
    const DEEPEST: usize = 16;
    let mut items = Items {
        reader,
        size,
        at: 0,
        big_endian: false,
    };
    let mut sets: Vec<String> = vec![];
    let (mut now, mut last, mut snapshots) = (Found::default(), None, 0);
    while let Some(item) = items.next()? {
        let place = format!("byte offset {}: the item {}", item.offset, item.name);
        match item.letter {
            b'(' if sets.len() == DEEPEST => {
                return Err(malformed(place, "there are too many sets within sets"));
            }
            b'(' => {
                if sets.is_empty() {
                    now = Found {
                        mass: now.mass,
                        ..Found::default()
                    };
                }
                sets.push(item.name);
            }
            b')' => {
                let ended = sets.pop();
                let ended = ended.ok_or_else(|| {
                    malformed(
                        place,
                        "a set ends here that did not begin: the file is damaged",
                    )
                })?;
                let has_bodies = now.phase_space.is_some() || now.position.is_some();
                if ended == "SnapShot" && sets.is_empty() && has_bodies {
                    last = Some(now.clone());
                    snapshots += 1;
                }
            }
            _ => {
                let path: Vec<&str> = sets.iter().map(String::as_str).collect();
                match (&path[..], item.name.as_str()) {
                    (["SnapShot", "Parameters"], "Time") => now.time = items.number(&item)?,
                    (["SnapShot", "Particles"], _) => now.take(item),
                    _ => {}
                }
            }
        }
    }
    if let Some(set) = sets.last() {
        let problem =
            format!("the set {set} has no end: the file was cut short, copy or write it again");
        return Err(malformed("the end of the file", problem));
    }
    let found = last.ok_or_else(|| {
        let problem = "there is no set SnapShot with Particles that have PhaseSpace, or Position and Velocity; \
                       this is not a snapshot of NEMO";
        malformed("the items of the file", problem)
    })?;
    let mut contents = items.bodies(found)?;
    if snapshots > 1 {
        contents.notes.push(format!(
            "the file holds {snapshots} snapshots: the last is read; snaptrim takes another out"
        ));
    }
    Ok(contents)
}

impl Found {
    fn take(&mut self, item: Item) {
        let place = match item.name.as_str() {
            "Mass" => &mut self.mass,
            "PhaseSpace" => &mut self.phase_space,
            "Position" => &mut self.position,
            "Velocity" => &mut self.velocity,
            "Key" => &mut self.key,
            "CoordSystem" => return,
            _ => return self.others.push(item.name),
        };
        *place = Some(item);
    }
}

/// Class and bytes of the numbers of a type; `None` for a type that is not known.
fn type_of(letter: u8) -> Option<(Class, usize)> {
    match letter {
        b'a' | b'b' | b'c' => Some((Class::Unsigned, 1)),
        b's' | b'h' => Some((Class::Signed, 2)),
        b'i' => Some((Class::Signed, 4)),
        b'l' => Some((Class::Signed, 8)),
        b'f' => Some((Class::Real, 4)),
        b'd' => Some((Class::Real, 8)),
        _ => None,
    }
}

/// The items of a file.
struct Items<'a, R> {
    reader: &'a mut R,
    size: u64,
    /// Offset of the next item.
    at: u64,
    big_endian: bool,
}

impl<R: Read + Seek> Items<'_, R> {
    /// The next item, or `None` at the end of the file.
    fn next(&mut self) -> Result<Option<Item>, ReadFault> {
        /// No names and no types are longer.
        const LONGEST: usize = 128;
        /// No more dimensions are written.
        const MOST: usize = 16;
        if self.at == self.size {
            return Ok(None);
        }
        let place = format!("byte offset {}", self.at);
        let cut = || malformed(&place, "an item is cut short: copy or write the file again");
        let damaged = |what: &str| malformed(&place, format!("{what}: the file is damaged"));
        self.reader.seek(SeekFrom::Start(self.at))?;
        let mut left = self.size - self.at;
        let mut take = |bytes: &mut [u8]| {
            left = left.checked_sub(bytes.len() as u64).ok_or_else(cut)?;
            self.reader.read_exact(bytes)?;
            Ok::<_, ReadFault>(())
        };
        let mut magic = [0; 2];
        take(&mut magic)?;
        if self.at == 0 {
            self.big_endian = magic[1] == 0x92;
        }
        let has_dimensions = match self.big_endian {
            true => u16::from_be_bytes(magic),
            false => u16::from_le_bytes(magic),
        };
        let has_dimensions = match has_dimensions {
            ONE => false,
            SEVERAL => true,
            _ => return Err(damaged("no item begins here")),
        };
        let mut word = || {
            let mut letters = vec![];
            while letters.len() < LONGEST {
                let mut letter = [0];
                take(&mut letter)?;
                if letter == [0] {
                    return Ok(String::from_utf8_lossy(&letters).into_owned());
                }
                letters.extend(letter);
            }
            Err(damaged("the name of an item is too long"))
        };
        let kind = word()?;
        let name = match kind.as_str() {
            ")" => String::new(),
            _ => word()?,
        };
        let mut dimensions = vec![];
        // A zero ends them.
        let mut dimension = u32::from(has_dimensions);
        while dimension > 0 {
            let mut bytes = [0; 4];
            take(&mut bytes)?;
            dimension = match self.big_endian {
                true => u32::from_be_bytes(bytes),
                false => u32::from_le_bytes(bytes),
            };
            match dimensions.len() {
                _ if dimension == 0 => {}
                MOST => return Err(damaged("it has too many dimensions")),
                _ => dimensions.push(u64::from(dimension)),
            }
        }
        let offset = self.size - left;
        let unknown = || damaged("an item has an unknown type");
        let &[letter] = kind.as_bytes() else {
            return Err(unknown());
        };
        self.at = match letter {
            b'(' | b')' => offset,
            _ => {
                let (_, bytes) = type_of(letter).ok_or_else(unknown)?;
                let mut sizes = dimensions.iter();
                let all = sizes.try_fold(bytes as u64, |all, size| all.checked_mul(*size));
                let end = all.and_then(|bytes| offset.checked_add(bytes));
                end.filter(|end| *end <= self.size).ok_or_else(cut)?
            }
        };
        Ok(Some(Item {
            letter,
            name,
            dimensions,
            offset,
        }))
    }

    /// Goes to the elements of an item of such a class and shape.
    fn seek(&mut self, item: &Item, class: Class, shape: &[u64]) -> Result<Numbers, ReadFault> {
        match type_of(item.letter) {
            Some((found, bytes)) if found == class && item.dimensions == shape => {
                self.reader.seek(SeekFrom::Start(item.offset))?;
                Ok(Numbers {
                    class,
                    bytes,
                    big_endian: self.big_endian,
                })
            }
            _ => {
                let problem = format!(
                    "its type is {} and its shape {:?}, and should be {} and {shape:?}",
                    char::from(item.letter),
                    item.dimensions,
                    match class {
                        Class::Real => "f or d",
                        _ => "i or l",
                    }
                );
                Err(malformed(format!("the item {}", item.name), problem))
            }
        }
    }

    fn number(&mut self, item: &Item) -> Result<f64, ReadFault> {
        let numbers = self.seek(item, Class::Real, &[])?;
        let mut number = vec![];
        read_reals(self.reader, numbers, 1, &mut [&mut number], false)?;
        match number[..] {
            [number] if number.is_finite() => Ok(number),
            _ => Err(malformed(
                format!("the item {}", item.name),
                format!("it is {number:?}, not a finite number"),
            )),
        }
    }

    /// Reads the bodies of a snapshot.
    fn bodies(&mut self, found: Found) -> Result<Contents, ReadFault> {
        let missing = |name: &str| malformed(format!("the item {name}"), "it is missing");
        let first = found.phase_space.as_ref().or(found.position.as_ref());
        let first = first.ok_or_else(|| missing("PhaseSpace"))?;
        let n = first.dimensions.first().copied().unwrap_or(0);
        let bodies_in_all =
            usize::try_from(n).map_err(|_| ReadFault::OutOfMemory { bodies: usize::MAX })?;
        let mut bodies = room_for(bodies_in_all)?;
        let Bodies {
            x,
            y,
            z,
            vx,
            vy,
            vz,
            mass,
            id,
            kind,
        } = &mut bodies;
        let place = found.position.ok_or_else(|| missing("Position"));
        match found.phase_space {
            Some(item) => {
                let numbers = self.seek(&item, Class::Real, &[n, 2, 3])?;
                read_reals(
                    self.reader,
                    numbers,
                    bodies_in_all,
                    &mut [x, y, z, vx, vy, vz],
                    false,
                )?;
            }
            None => {
                let velocity = found.velocity.ok_or_else(|| missing("Velocity"))?;
                for (item, columns) in [(place?, [x, y, z]), (velocity, [vx, vy, vz])] {
                    let numbers = self.seek(&item, Class::Real, &[n, 3])?;
                    read_reals(
                        self.reader,
                        numbers,
                        bodies_in_all,
                        &mut columns.map(|c| c),
                        false,
                    )?;
                }
            }
        }
        let masses = found.mass.ok_or_else(|| missing("Mass"))?;
        let numbers = self.seek(&masses, Class::Real, &[n])?;
        read_reals(self.reader, numbers, bodies_in_all, &mut [mass], false)?;
        match found.key {
            Some(key) => {
                let numbers = self.seek(&key, Class::Signed, &[n])?;
                read_integers(
                    self.reader,
                    numbers,
                    bodies_in_all,
                    id,
                    "the item Key",
                    (Some, IDS),
                )?;
            }
            None => id.extend(0..n),
        }
        kind.resize(bodies_in_all, BodyKind::Star);
        bodies.check()?;
        let notes = match found.others.is_empty() {
            true => vec![],
            false => vec![left_out("items", &found.others)],
        };
        Ok(Contents {
            snapshot: Snapshot {
                time: found.time,
                bodies,
            },
            units: None,
            notes,
            ..Contents::default()
        })
    }
}

#[cfg(test)]
mod tests;
