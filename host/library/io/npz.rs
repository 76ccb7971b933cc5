//! NumPy archives: what `numpy.savez` writes and `numpy.load` reads.
//! ```text
//! time.npy      f64, one number
//! position.npy  f64 [N, 3]
//! velocity.npy  f64 [N, 3]
//! mass.npy      f64 [N]
//! id.npy        u64 [N]
//! kind.npy      u8  [N]    0 gas, 1 dark, 2 star
//! units.npy     f64 [3]    the units of length in m, mass in kg, time in s; where they are known
//! ```
//! Written uncompressed. Read are also compressed archives, other number types (f4, f8, and
//! integers, in either byte order), Fortran order, the names `pos`, `vel`, `masses`, `ids` and
//! some more, and `x`, `y`, `z`, `vx`, `vy`, `vz` in arrays of their own. Time (else 0), ids (else
//! numbers in the file's order) and kinds (else stars) may be missing; other arrays are left out,
//! and a note says so. Refused are archives whose members share bytes, or have one name in the
//! directory and another in front of their content. What is written ends with a seal, by
//! which every changed bit is noticed.
//! A single array (`.npy`) is read too: of shape `[N, 7]` as `m x y z vx vy vz`, or with named fields. Arrays
//! may be turned over, `[3, N]` and `[7, N]`.
//! Layout of an array: NumPy Enhancement Proposal 1.

mod named;
mod seal;
mod structured;
mod told;

use std::io::{self, Read, Seek, SeekFrom, Write};

use zip::result::ZipError;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::column::{
    Class, EXPANSION, ID, IDS, KIND, KINDS, MASS, Malformed, Numbers, POSITION, TIME, VELOCITY,
    left_out, read_integers, read_reals, room_for, write_all, write_triples,
};
use super::{Contents, ReadFault, Snapshot, WriteFault};
use crate::bodies::{Bodies, Body, BodyKind, COORDINATES};
use crate::units::Units;
use seal::{Seal, Sealing};

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The name of a single array in faults.
const PLACE: &str = "the array";

/// Shape and type of an array.
#[derive(Debug, PartialEq)]
struct Array {
    numbers: Numbers,
    column_after_column: bool,
    shape: Vec<u64>,
}

/// Reads the header of an array; `place` names it in faults.
fn header(reader: &mut impl Read, place: &str) -> Result<String, ReadFault> {
    let malformed = |problem: &str| ReadFault::from(Malformed::new(place, problem));
    let mut start = [0; 8];
    reader.read_exact(&mut start)?;
    if start[..6] != *MAGIC {
        return Err(malformed("this is not a NumPy array"));
    }
    let mut length = [0; 4];
    let bytes = if start[6] == 1 { 2 } else { 4 };
    reader.read_exact(&mut length[..bytes])?;
    let length = u32::from_le_bytes(length);
    // NumPy itself refuses longer ones.
    if !(1..=3).contains(&start[6]) || length > 10_000 {
        return Err(malformed(
            "the header is of a version that is not known here",
        ));
    }
    let mut text = vec![0; length as usize];
    reader.read_exact(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The type of numbers that NumPy calls `kind`, such as `<f8`.
fn numbers(kind: &str) -> Option<Numbers> {
    let (order, kind) = kind.split_at_checked(1)?;
    let (class, bytes) = kind.split_at_checked(1)?;
    let numbers = Numbers {
        class: match class {
            "f" => Class::Real,
            "i" => Class::Signed,
            "u" => Class::Unsigned,
            _ => return None,
        },
        bytes: bytes.parse().ok()?,
        big_endian: match order {
            "<" | "|" => false,
            ">" => true,
            _ => return None,
        },
    };
    numbers.is_known().then_some(numbers)
}

impl Array {
    /// Reads the header of an array; `place` names it in faults.
    fn read(reader: &mut impl Read, place: &str) -> Result<Self, ReadFault> {
        let text = header(reader, place)?;
        Self::parse(&text).ok_or_else(|| {
            let problem = format!(
                "arrays of {} are not read, only plain numbers of 4 or 8 bytes",
                text.trim()
            );
            Malformed::new(place, problem).into()
        })
    }

    /// Takes apart `{'descr': '<f8', 'fortran_order': False, 'shape': (9, 3), }`.
    fn parse(text: &str) -> Option<Self> {
        let value = |key: &str| {
            let (_, rest) = text.split_once(&format!("'{key}':"))?;
            Some(rest.trim_start())
        };
        let (kind, _) = value("descr")?.strip_prefix('\'')?.split_once('\'')?;
        let (shape, _) = value("shape")?.strip_prefix('(')?.split_once(')')?;
        let shape = shape
            .split(',')
            .map(str::trim)
            .filter(|size| !size.is_empty())
            .map(|size| size.parse().ok())
            .collect::<Option<_>>()?;
        Some(Self {
            numbers: numbers(kind)?,
            column_after_column: value("fortran_order")?.starts_with("True"),
            shape,
        })
    }

    /// The number of rows of an array with so many columns, and whether these stand one after the other: a
    /// matrix may be turned over.
    fn rows(&self, columns: u64) -> Option<(u64, bool)> {
        match self.shape[..] {
            [rows] if columns == 1 => Some((rows, false)),
            [rows, found] if found == columns => Some((rows, self.column_after_column)),
            [found, rows] if found == columns => Some((rows, !self.column_after_column)),
            _ => None,
        }
    }

    /// The header of an array of `kind` (`<f8`, `<u8`, `|u1`), padded as NumPy does it.
    fn header(kind: &str, shape: &str) -> Vec<u8> {
        let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
        let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
        let mut header = [&MAGIC[..], &[1, 0], &(length as u16).to_le_bytes()].concat();
        header.extend(format!("{text:<width$}\n", width = length - 1).bytes());
        header
    }
}

/// Reads points from an array of shape `[M, 3]`, in a file of `size` bytes.
pub(super) fn read_points(file: impl Read, size: u64) -> Result<Vec<[f64; 3]>, ReadFault> {
    read_rows(file, size, "points, [M, 3]")
}

/// Reads an array of `N` columns by its rows, in a file of so many bytes. `what` should be there, and
/// of what shape.
fn read_rows<const N: usize>(
    mut file: impl Read,
    size: u64,
    what: &str,
) -> Result<Vec<[f64; N]>, ReadFault> {
    let malformed = |problem: String| ReadFault::from(Malformed::new(PLACE, problem));
    let array = Array::read(&mut file, PLACE)?;
    let (rows, column_after_column) = array.rows(N as u64).ok_or_else(|| {
        let problem = format!("its shape is {:?}, not the shape of {what}", array.shape);
        malformed(problem)
    })?;
    let width = array.numbers.bytes;
    // Nothing is allocated that the file does not have.
    if rows.saturating_mul((N * width) as u64) > size {
        return Err(malformed(format!("{rows} rows are more than it holds")));
    }
    let mut bytes = vec![];
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 != rows * (N * width) as u64 {
        return Err(malformed(format!("{rows} rows are not what it holds")));
    }
    let numbers: Vec<f64> = bytes.chunks(width).map(|x| array.numbers.real(x)).collect();
    if let Some(number) = numbers.iter().find(|number| !number.is_finite()) {
        return Err(malformed(format!("{number} is not a finite number")));
    }
    let rows = rows as usize;
    let row = |k: usize| match column_after_column {
        true => std::array::from_fn(|column| numbers[column * rows + k]),
        false => std::array::from_fn(|column| numbers[N * k + column]),
    };
    Ok((0..rows).map(row).collect())
}

/// Reads bodies from an array of shape `[N, 7]`: m x y z vx vy vz, as tables of other programs have it.
fn read_table(file: impl Read, size: u64) -> Result<Contents, ReadFault> {
    let rows = read_rows(file, size, "bodies, [N, 7]: m x y z vx vy vz")?;
    let body = |(id, [mass, x, y, z, vx, vy, vz]): (u64, [f64; 7])| Body {
        position: [x, y, z],
        velocity: [vx, vy, vz],
        mass,
        id,
        kind: BodyKind::Star,
    };
    let bodies: Bodies = (0..).zip(rows).map(body).collect();
    if bodies.is_empty() {
        return Err(ReadFault::NoBodies);
    }
    bodies.check()?;
    let mut contents = Contents::from(Snapshot { time: 0.0, bodies });
    contents
        .notes
        .push("an array alone; read as m x y z vx vy vz".into());
    Ok(contents)
}

/// Writes numbers as an array with this number of columns.
pub(super) fn write_array(
    file: &mut impl Write,
    columns: usize,
    numbers: &[f64],
) -> io::Result<()> {
    let rows = numbers.len() / columns;
    file.write_all(&Array::header("<f8", &format!("{rows}, {columns}")))?;
    write_all(file, numbers.iter().copied(), f64::to_le_bytes)
}

/// An archive that is being read.
struct Archive<R> {
    zip: ZipArchive<R>,
    size: u64,
    /// Quantities with a unit in the name of their array: name, unit, and name of the array.
    with_units: Vec<[String; 3]>,
}

impl<R: Read + Seek> Archive<R> {
    fn open(mut reader: R, size: u64) -> Result<Self, ReadFault> {
        const PLACE: &str = "the archive";
        let damaged = |problem: &str| {
            let advice = "the file is damaged, copy or write it again";
            ReadFault::from(Malformed::new(PLACE, format!("{problem}: {advice}")))
        };
        let seal = seal::check(&mut reader, size)?;
        if seal == Seal::Broken {
            return Err(damaged("its checksum is wrong"));
        }
        let mut zip = ZipArchive::new(reader).map_err(|fault| zip_fault(PLACE, fault))?;
        if seal == Seal::Absent && !zip.comment().is_empty() {
            let problem = "it has a comment, which is neither NumPy's way nor the checksum that \
                           Allpairs writes";
            return Err(damaged(problem));
        }
        if zip
            .has_overlapping_entries()
            .map_err(|fault| zip_fault(PLACE, fault))?
        {
            return Err(damaged("some of its members share bytes"));
        }
        let mut members = Vec::with_capacity(zip.len());
        let mut total = 0_u64;
        for index in 0..zip.len() {
            let member = zip
                .by_index_raw(index)
                .map_err(|fault| zip_fault(PLACE, fault))?;
            members.push((member.header_start(), member.name_raw().to_vec()));
            total = total.saturating_add(member.size());
        }
        if total > size.saturating_mul(EXPANSION) {
            return Err(damaged("its members claim more bytes than it can hold"));
        }
        let mut reader = zip.into_inner();
        for (start, name) in members {
            if local_name(&mut reader, start)? != name {
                let name = String::from_utf8_lossy(&name).into_owned();
                let problem =
                    format!("its directory calls a member `{name}` that has another name itself");
                return Err(damaged(&problem));
            }
        }
        reader.rewind()?;
        let zip = ZipArchive::new(reader).map_err(|fault| zip_fault(PLACE, fault))?;
        let members = zip.file_names_raw();
        let names: Vec<String> = members
            .filter_map(|name| {
                Some(
                    std::str::from_utf8(name)
                        .ok()?
                        .strip_suffix(".npy")?
                        .to_owned(),
                )
            })
            .collect();
        let with_unit = |name: &String| {
            let (quantity, unit) = named::parts(name)?;
            let is_told = !names.iter().any(|other| other == quantity);
            is_told.then(|| [quantity, unit, name].map(str::to_owned))
        };
        let with_units = names.iter().filter_map(with_unit).collect();
        Ok(Self {
            zip,
            size,
            with_units,
        })
    }

    /// The arrays that are there and not among those `used`.
    fn others(&self, used: &[&str]) -> Vec<String> {
        let names = self.zip.file_names_raw();
        let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
        let is_used = |name: &str| {
            name.strip_suffix(".npy")
                .is_some_and(|name| used.iter().any(|used| self.array_of(used) == name))
        };
        names.filter(|name| !is_used(name)).collect()
    }

    fn has(&self, name: &str) -> bool {
        let array = self.array_of(name);
        self.zip.index_for_name(&format!("{array}.npy")).is_some()
    }

    /// The name of the array that has a quantity.
    fn array_of<'a>(&'a self, name: &'a str) -> &'a str {
        self.with_unit(name).map_or(name, |[.., array]| array)
    }

    /// The unit in the name of the array that has a quantity.
    fn unit_of(&self, name: &str) -> Option<&str> {
        self.with_unit(name).map(|[_, unit, _]| unit.as_str())
    }

    /// A quantity that has a unit in the name of its array.
    fn with_unit(&self, name: &str) -> Option<&[String; 3]> {
        let mut all = self.with_units.iter();
        all.find(|[quantity, ..]| quantity == name)
    }

    fn one_of(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// Reads an array through `take`, which gets its shape and the elements' bytes.
    fn array<T>(
        &mut self,
        name: &str,
        take: impl FnOnce(&Array, &mut dyn Read) -> Result<T, ReadFault>,
    ) -> Result<T, ReadFault> {
        let member = format!("{}.npy", self.array_of(name));
        let mut file = self
            .zip
            .by_name(&member)
            .map_err(|fault| zip_fault(&member, fault))?;
        let array = Array::read(&mut file, &member)?;
        let claim = array
            .shape
            .iter()
            .try_fold(array.numbers.bytes as u64, |bytes, size| {
                bytes.checked_mul(*size)
            });
        if claim.is_none_or(|bytes| bytes > self.size.saturating_mul(EXPANSION)) {
            let problem = format!("the shape {:?} is of more than the file holds", array.shape);
            return Err(Malformed::new(member, problem).into());
        }
        take(&array, &mut file)
    }

    /// Reads an array of shape `[n]`, or `[n, columns]`, into columns.
    fn reals(
        &mut self,
        name: &str,
        n: usize,
        columns: &mut [&mut Vec<f64>],
    ) -> Result<(), ReadFault> {
        let width = columns.len() as u64;
        self.array(name, |array, file| {
            let rows = array.rows(width).filter(|(rows, _)| *rows == n as u64);
            let (_, order) = rows.ok_or_else(|| wrong_shape(name, &array.shape, n, width))?;
            read_reals(&mut &mut *file, array.numbers, n, columns, order)?;
            ended(file, name)
        })
    }

    fn integers<T>(
        &mut self,
        name: &str,
        n: usize,
        column: &mut Vec<T>,
        allowed: (impl Fn(u64) -> Option<T>, &str),
    ) -> Result<(), ReadFault> {
        self.array(name, |array, file| {
            if array.shape != [n as u64] {
                return Err(wrong_shape(name, &array.shape, n, 1));
            }
            read_integers(&mut &mut *file, array.numbers, n, column, name, allowed)?;
            ended(file, name)
        })
    }
}

/// The name in front of the member whose header begins at `start`.
fn local_name(reader: &mut (impl Read + Seek), start: u64) -> io::Result<Vec<u8>> {
    const LENGTH_OF_NAME: usize = 26;
    const NAME: usize = 30;
    reader.seek(SeekFrom::Start(start))?;
    let mut header = [0; NAME];
    reader.read_exact(&mut header)?;
    let length = u16::from_le_bytes([header[LENGTH_OF_NAME], header[LENGTH_OF_NAME + 1]]);
    let mut name = vec![0; usize::from(length)];
    reader.read_exact(&mut name)?;
    Ok(name)
}

/// An array whose elements have all been read is at its end: only there does the archive compare
/// the checksum.
fn ended(file: &mut dyn Read, name: &str) -> Result<(), ReadFault> {
    let problem = match file.read(&mut [0]) {
        Ok(0) => return Ok(()),
        Ok(_) => "there is more of it than its shape says",
        Err(fault) if fault.raw_os_error().is_some() => return Err(fault.into()),
        Err(_) => "its checksum is wrong: the file is damaged, copy or write it again",
    };
    Err(Malformed::new(format!("{name}.npy"), problem).into())
}

fn wrong_shape(name: &str, shape: &[u64], n: usize, width: u64) -> ReadFault {
    let wanted = if width == 1 {
        format!("[{n}]")
    } else {
        format!("[{n}, {width}]")
    };
    Malformed::new(
        format!("{name}.npy"),
        format!("its shape is {shape:?}, not {wanted}"),
    )
    .into()
}

fn zip_fault(place: &str, fault: ZipError) -> ReadFault {
    match fault {
        ZipError::Io(fault) => fault.into(),
        other => Malformed::new(place, other.to_string()).into(),
    }
}

/// Returns whether it is a single array; the reader is at its beginning again.
fn is_array(reader: &mut (impl Read + Seek)) -> std::io::Result<bool> {
    let mut start = vec![];
    reader
        .by_ref()
        .take(MAGIC.len() as u64)
        .read_to_end(&mut start)?;
    reader.rewind()?;
    Ok(start == MAGIC)
}

/// Reads an archive of `size` bytes.
pub(super) fn read(mut reader: impl Read + Seek, size: u64) -> Result<Contents, ReadFault> {
    if is_array(&mut reader)? {
        let header = header(&mut reader, PLACE)?;
        if let Some(rows) = structured::Rows::parse(&header) {
            return rows.read(reader, size);
        }
        reader.rewind()?;
        return read_table(reader, size);
    }
    let mut archive = Archive::open(reader, size)?;
    let missing = |what: &str| {
        let problem = "there is no such array; a snapshot needs position, velocity and mass";
        ReadFault::from(Malformed::new(format!("{what}.npy"), problem))
    };
    // A letter is a vector where there are no components: `r` next to them is a distance.
    let whole = |names: &[&'static str], letters: &[&'static str], parts: &[&str]| {
        let by_letter = !parts.iter().all(|part| archive.has(part));
        let letter = by_letter.then(|| archive.one_of(letters));
        archive.one_of(names).or_else(|| letter.flatten())
    };
    let position = whole(&POSITION, &["r", "R", "X"], &COORDINATES[..3]);
    let velocity = whole(&VELOCITY, &["V"], &COORDINATES[3..]);
    let mass = archive.one_of(&MASS).or_else(|| archive.one_of(&["M"]));
    let mass = mass.ok_or_else(|| missing("mass"))?;
    let length = |rows: u64| {
        usize::try_from(rows).map_err(|_| ReadFault::OutOfMemory { bodies: usize::MAX })
    };
    let of_masses = archive.array(mass, |array, _| match array.shape[..] {
        [] => Ok(None),
        [n] | [n, 1] => length(n).map(Some),
        _ => Err(Malformed::new(
            format!("{mass}.npy"),
            format!("its shape is {:?}, not the shape of a list", array.shape),
        )
        .into()),
    })?;
    let n = match of_masses {
        Some(n) => n,
        None => {
            // One mass for all.
            let (name, columns) = position.map_or((COORDINATES[0], 1), |whole| (whole, 3));
            if !archive.has(name) {
                return Err(missing("position"));
            }
            archive.array(name, |array, _| {
                let rows = array.rows(columns);
                let (rows, _) = rows.ok_or_else(|| wrong_shape(name, &array.shape, 1, columns))?;
                length(rows)
            })?
        }
    };
    let mut bodies = room_for(n)?;
    let mut used = vec![mass];

    for (whole, name, parts, columns) in [
        (
            position,
            "position",
            &COORDINATES[..3],
            [&mut bodies.x, &mut bodies.y, &mut bodies.z],
        ),
        (
            velocity,
            "velocity",
            &COORDINATES[3..],
            [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz],
        ),
    ] {
        let mut columns = columns;
        match whole {
            Some(whole) => {
                used.push(whole);
                archive.reals(whole, n, &mut columns)?;
            }
            None if parts.iter().all(|part| archive.has(part)) => {
                used.extend(parts);
                for (part, column) in parts.iter().zip(columns) {
                    archive.reals(part, n, &mut [column])?;
                }
            }
            None => return Err(missing(name)),
        }
    }
    match of_masses {
        Some(_) => archive.reals(mass, n, &mut [&mut bodies.mass])?,
        None => {
            let mut one = vec![];
            archive.array(mass, |array, file| {
                read_reals(&mut &mut *file, array.numbers, 1, &mut [&mut one], false)?;
                ended(file, mass)
            })?;
            bodies.mass.resize(n, one[0]);
        }
    }
    match archive.one_of(&ID) {
        Some(name) => {
            used.push(name);
            archive.integers(name, n, &mut bodies.id, (Some, IDS))?;
        }
        None => bodies.id.extend(0..n as u64),
    }
    match archive.one_of(&KIND) {
        Some(name) => {
            used.push(name);
            archive.integers(name, n, &mut bodies.kind, (BodyKind::of_number, KINDS))?;
        }
        None => bodies.kind.resize(n, BodyKind::Star),
    }
    let mut told = archive.told()?;
    let units_of = |whole: Option<&'static str>, parts: &[&'static str]| {
        [0, 1, 2].map(|k| archive.unit_of(whole.unwrap_or(parts[k])))
    };
    let [x, y, z] = units_of(position, &COORDINATES[..3]);
    let [vx, vy, vz] = units_of(velocity, &COORDINATES[3..]);
    match named::system(archive.unit_of(mass), [x, y, z, vx, vy, vz]) {
        Ok(None) => {}
        Ok(Some((units, factors))) => {
            named::scale(&mut bodies, factors);
            told.units = Some(units);
        }
        Err(note) => told.notes.push(note),
    }
    let mut notes = told.notes;
    let time = archive.time(told.units, &mut notes)?;
    bodies.check()?;
    used.extend(TIME);
    used.extend(told.used.iter().map(String::as_str));
    let others = archive.others(&used);
    if !others.is_empty() {
        notes.push(left_out("members", &others));
    }
    Ok(Contents {
        snapshot: Snapshot { time, bodies },
        units: told.units,
        notes,
        ..Contents::default()
    })
}

impl<R: Read + Seek> Archive<R> {
    /// Reads an array of a few numbers, whatever its shape.
    fn few(&mut self, name: &str, count: usize) -> Result<Vec<f64>, ReadFault> {
        self.array(name, |array, file| {
            if array.shape.iter().product::<u64>() != count as u64 {
                return Err(wrong_shape(name, &array.shape, count, 1));
            }
            let mut values = Vec::with_capacity(count);
            read_reals(
                &mut &mut *file,
                array.numbers,
                count,
                &mut [&mut values],
                false,
            )?;
            ended(file, name)?;
            Ok(values)
        })
    }
}

/// The units that an archive tells.
pub(super) fn read_units(
    mut reader: impl Read + Seek,
    size: u64,
) -> Result<Option<Units>, ReadFault> {
    if is_array(&mut reader)? {
        return Ok(None);
    }
    Ok(Archive::open(reader, size)?.told()?.units)
}

/// Writes `snapshot`, which has passed [`Bodies::check`](crate::bodies::Bodies::check).
pub(super) fn write(
    file: &mut impl Write,
    snapshot: &Snapshot,
    units: Option<Units>,
) -> Result<(), WriteFault> {
    let bodies = &snapshot.bodies;
    let n = bodies.len();
    let (list, triples) = (format!("{n},"), format!("{n}, 3"));
    let mut archive = Writer::new(file)?;
    archive.array("time", "<f8", "", |file| {
        file.write_all(&snapshot.time.to_le_bytes())
    })?;
    archive.array("position", "<f8", &triples, |mut file| {
        write_triples(&mut file, [&bodies.x, &bodies.y, &bodies.z])
    })?;
    archive.array("velocity", "<f8", &triples, |mut file| {
        write_triples(&mut file, [&bodies.vx, &bodies.vy, &bodies.vz])
    })?;
    archive.array("mass", "<f8", &list, |mut file| {
        write_all(&mut file, bodies.mass.iter().copied(), f64::to_le_bytes)
    })?;
    archive.array("id", "<u8", &list, |mut file| {
        write_all(&mut file, bodies.id.iter().copied(), u64::to_le_bytes)
    })?;
    archive.array("kind", "|u1", &list, |mut file| {
        let codes = bodies.kind.iter().map(|kind| kind.number());
        write_all(&mut file, codes, |code| [code])
    })?;
    if let Some(units) = units {
        archive.units(units)?;
    }
    archive.finish()?;
    Ok(())
}

/// Writes snapshots, `read` one after the other and more than once, into one archive. Time is the first
/// dimension of its arrays: time [S], position [S, N, 3], and so on.
pub(super) fn write_series<E: From<io::Error>>(
    file: &mut impl Write,
    (snapshots, n): (usize, usize),
    units: Option<Units>,
    mut read: impl FnMut(usize) -> Result<Snapshot, E>,
) -> Result<(), E> {
    let (list, triples) = (format!("{snapshots}, {n}"), format!("{snapshots}, {n}, 3"));
    let mut archive = Writer::new(file)?;
    let mut array = |name: &str, kind: &str, shape: &str, put: Put| -> Result<(), E> {
        let mut unread = None;
        let written = archive.array(name, kind, shape, |file| {
            for index in 0..snapshots {
                match read(index) {
                    Ok(snapshot) => put(file, &snapshot)?,
                    Err(why) => {
                        unread = Some(why);
                        return Err(io::Error::other("a snapshot that cannot be read"));
                    }
                }
            }
            Ok(())
        });
        match unread {
            Some(why) => Err(why),
            None => Ok(written?),
        }
    };
    array("time", "<f8", &format!("{snapshots},"), |file, snapshot| {
        file.write_all(&snapshot.time.to_le_bytes())
    })?;
    array(
        "position",
        "<f8",
        &triples,
        |mut file, Snapshot { bodies, .. }| {
            write_triples(&mut file, [&bodies.x, &bodies.y, &bodies.z])
        },
    )?;
    array(
        "velocity",
        "<f8",
        &triples,
        |mut file, Snapshot { bodies, .. }| {
            write_triples(&mut file, [&bodies.vx, &bodies.vy, &bodies.vz])
        },
    )?;
    array("mass", "<f8", &list, |mut file, Snapshot { bodies, .. }| {
        write_all(&mut file, bodies.mass.iter().copied(), f64::to_le_bytes)
    })?;
    array("id", "<u8", &list, |mut file, Snapshot { bodies, .. }| {
        write_all(&mut file, bodies.id.iter().copied(), u64::to_le_bytes)
    })?;
    array("kind", "|u1", &list, |mut file, Snapshot { bodies, .. }| {
        let codes = bodies.kind.iter().map(|kind| kind.number());
        write_all(&mut file, codes, |code| [code])
    })?;
    if let Some(units) = units {
        archive.units(units)?;
    }
    Ok(archive.finish()?)
}

/// Writes a part of a snapshot.
type Put = fn(&mut dyn Write, &Snapshot) -> io::Result<()>;

struct Writer<W: Write>(ZipWriter<StreamWriter<Sealing<W>>>);

impl<W: Write> Writer<W> {
    fn new(file: W) -> io::Result<Self> {
        let mut zip = ZipWriter::new_stream(Sealing::new(file));
        zip.set_comment(seal::comment())?;
        Ok(Self(zip))
    }

    fn units(&mut self, units: Units) -> io::Result<()> {
        self.array("units", "<f8", "3,", |mut file| {
            let sizes = [units.length, units.mass, units.time];
            write_all(&mut file, sizes, f64::to_le_bytes)
        })
    }

    fn finish(self) -> io::Result<()> {
        self.0.finish()?.into_inner().finish()
    }

    fn array(
        &mut self,
        name: &str,
        kind: &str,
        shape: &str,
        elements: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        // No time of day in it: the same bodies make the same file.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default())
            .large_file(true);
        self.0.start_file(format!("{name}.npy"), options)?;
        let mut buffered = io::BufWriter::with_capacity(1 << 16, &mut self.0);
        buffered.write_all(&Array::header(kind, shape))?;
        elements(&mut buffered)?;
        buffered.flush()
    }
}

#[cfg(test)]
mod tests;
