//! HDF5 snapshots in the layout of Gadget, Arepo and SWIFT, which pynbody and yt read.
//! ```text
//! /Header      attributes NumPart_ThisFile, MassTable, Time, …
//! /Units       attributes UnitLength_in_cm, UnitMass_in_g, UnitVelocity_in_cm_per_s, UnitTime_in_s
//! /PartTypeK   datasets Coordinates [N, 3], Velocities [N, 3], Masses [N], ParticleIDs [N]
//! ```
//! Kinds are groups: gas is type 0, dark matter 1, stars 4; so bodies of one kind come together,
//! and their ids tell who is who. Read are types 2 and 3 (disk and bulge of old galaxy models) and
//! 5 (black holes) as stars too, masses from `MassTable`, missing ids (numbers in the file's
//! order), any number type, chunked and compressed datasets. Numbers are taken as they are: factors
//! of cosmological files (h, scale factor) are not applied. Snapshots of several files are refused.
//!
//! Files of unknown units are written with units of 1 cm, 1 g and 1 cm/s. What readers make of
//! attributes decided their types: see the comments below. yt takes units from its caller:
//! `yt.load(path, unit_base={"UnitLength_in_cm": …, …})`.
//!
//! Reading holds one block of a dataset beside the bodies; writing holds the file as well, because
//! the library builds it in memory.
//! Layout: GADGET-4 documentation, "Snapshot file format"; SWIFT documentation, "Initial
//! Conditions".

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::Path;

use hdf5_pure::{AttrValue, Dataset, Error, File, FileBuilder, Group};

use super::column::{CHUNK, EXPANSION, Malformed, room_for};
use super::{ReadFault, Snapshot, WriteFault};
use crate::bodies::{Bodies, Kind};
use crate::units::Units;

/// The kind of each particle type.
const KINDS: [Kind; 6] = [
    Kind::Gas,
    Kind::Dark,
    Kind::Star,
    Kind::Star,
    Kind::Star,
    Kind::Star,
];

/// The particle type that a kind is written as.
fn type_of(kind: Kind) -> usize {
    match kind {
        Kind::Gas => 0,
        Kind::Dark => 1,
        Kind::Star => 4,
    }
}

fn fault(place: &str, error: Error) -> ReadFault {
    match error {
        Error::Io(fault) => fault.into(),
        other => Malformed::new(place, other.to_string()).into(),
    }
}

fn malformed(place: &str, problem: impl Into<String>) -> ReadFault {
    Malformed::new(place, problem).into()
}

/// Opens a file that is not read whole.
pub(super) fn open(path: &Path) -> Result<File, ReadFault> {
    File::open_streaming(path).map_err(|error| fault("the HDF5 file", error))
}

/// Opens what is no file: all of it has to be in memory.
pub(super) fn open_reader(reader: &mut impl Read) -> Result<File, ReadFault> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    File::from_bytes(bytes).map_err(|error| fault("the HDF5 file", error))
}

type Attributes = HashMap<String, AttrValue>;

fn attributes(file: &File, group: &str) -> Option<Attributes> {
    file.group(group).ok()?.attrs().ok()
}

fn numbers(attributes: &Attributes, name: &str) -> Option<Vec<f64>> {
    let value = attributes.get(name)?;
    value
        .to_f64s()
        .or_else(|| value.as_f64().map(|value| vec![value]))
}

fn number(attributes: &Attributes, name: &str) -> Option<f64> {
    numbers(attributes, name)?.first().copied()
}

/// The units that a file tells, in any of the places where programs put them.
pub(super) fn units(file: &File) -> Option<Units> {
    for group in ["Units", "Header", "Parameters"] {
        let Some(attributes) = attributes(file, group) else {
            continue;
        };
        let of = |name| number(&attributes, name).filter(|size| size.is_normal() && *size > 0.0);
        let gadget = || {
            let length = of("UnitLength_in_cm")? / 1e2;
            let speed = of("UnitVelocity_in_cm_per_s")? / 1e2;
            let mass = of("UnitMass_in_g")? / 1e3;
            let time = length / speed;
            Some(Units { length, mass, time })
        };
        let swift = || {
            let length = of("Unit length in cgs (U_L)")? / 1e2;
            let mass = of("Unit mass in cgs (U_M)")? / 1e3;
            let time = of("Unit time in cgs (U_t)")?;
            Some(Units { length, mass, time })
        };
        if let Some(units) = gadget().or_else(swift) {
            // How a file of unknown units is written.
            let unknown = Units {
                length: 1e-2,
                mass: 1e-3,
                time: 1.0,
            };
            return (units != unknown).then_some(units);
        }
    }
    None
}

/// Reads the snapshot of an open file of `size` bytes.
pub(super) fn read(file: &File, size: u64) -> Result<Snapshot, ReadFault> {
    let header = attributes(file, "Header").ok_or_else(|| {
        let problem = "there is no such group; this is not a snapshot in the layout of Gadget";
        malformed("/Header", problem)
    })?;
    if number(&header, "NumFilesPerSnapshot").is_some_and(|files| files > 1.0) {
        let problem = "the snapshot is spread over several files, which is not read here";
        return Err(malformed("/Header/NumFilesPerSnapshot", problem));
    }
    let time = number(&header, "Time").unwrap_or(0.0);
    if !time.is_finite() {
        return Err(malformed("/Header/Time", format!("the time is {time}")));
    }
    let table = numbers(&header, "MassTable").unwrap_or_default();
    let mut parts = Vec::new();
    let mut total = 0_u64;
    for (number, kind) in KINDS.into_iter().enumerate() {
        let Ok(group) = file.group(&format!("PartType{number}")) else {
            continue;
        };
        let part = Part {
            name: format!("/PartType{number}"),
            group,
            kind,
            mass: table.get(number).copied().filter(|mass| *mass != 0.0),
        };
        let n = part.count()?;
        total = total.saturating_add(n);
        parts.push((part, n));
    }
    if total.saturating_mul(24) > size.saturating_mul(EXPANSION) {
        let problem = format!("{total} bodies are more than the file holds");
        return Err(malformed("the datasets", problem));
    }
    let total =
        usize::try_from(total).map_err(|_| ReadFault::OutOfMemory { bodies: usize::MAX })?;
    let mut bodies = room_for(total)?;
    for (part, n) in parts {
        part.read(n, &mut bodies)?;
    }
    bodies.check()?;
    Ok(Snapshot { time, bodies })
}

/// The bodies of one particle type.
struct Part {
    name: String,
    group: Group,
    kind: Kind,
    /// The mass of all of them, if it is the same.
    mass: Option<f64>,
}

impl Part {
    fn count(&self) -> Result<u64, ReadFault> {
        let name = "Coordinates";
        let place = format!("{}/{name}", self.name);
        let dataset = self
            .group
            .dataset(name)
            .map_err(|error| fault(&place, error))?;
        let shape = dataset.shape().map_err(|error| fault(&place, error))?;
        match shape[..] {
            [n, 3] => Ok(n),
            _ => Err(malformed(
                &place,
                format!("its shape is {shape:?}, not [N, 3]"),
            )),
        }
    }

    /// Hands the rows of a dataset on, block after block.
    fn rows<T>(
        &self,
        name: &str,
        shape: &[u64],
        read: impl Fn(&Dataset, u64, u64) -> Result<Vec<T>, Error>,
        mut take: impl FnMut(Vec<T>),
    ) -> Result<(), ReadFault> {
        let place = format!("{}/{name}", self.name);
        let dataset = self
            .group
            .dataset(name)
            .map_err(|error| fault(&place, error))?;
        let found = dataset.shape().map_err(|error| fault(&place, error))?;
        if found != shape {
            let problem = format!("its shape is {found:?}, not {shape:?}");
            return Err(malformed(&place, problem));
        }
        let elements: u64 = shape[1..].iter().product();
        let mut start = 0;
        while start < shape[0] {
            let rows = (shape[0] - start).min(CHUNK as u64);
            let block = read(&dataset, start, rows).map_err(|error| fault(&place, error))?;
            if block.len() as u64 != rows * elements {
                return Err(malformed(
                    &place,
                    format!("row {start} and those after it are missing"),
                ));
            }
            take(block);
            start += rows;
        }
        Ok(())
    }

    fn read(&self, n: u64, bodies: &mut Bodies) -> Result<(), ReadFault> {
        if n == 0 {
            return Ok(());
        }
        let before = bodies.len();
        for (name, columns) in [
            ("Coordinates", [&mut bodies.x, &mut bodies.y, &mut bodies.z]),
            (
                "Velocities",
                [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz],
            ),
        ] {
            let [x, y, z] = columns;
            self.rows(name, &[n, 3], Dataset::read_f64_rows, |block| {
                for row in block.as_chunks::<3>().0 {
                    x.push(row[0]);
                    y.push(row[1]);
                    z.push(row[2]);
                }
            })?;
        }
        match self.mass {
            Some(mass) => bodies.mass.resize(before + n as usize, mass),
            None => self.rows("Masses", &[n], Dataset::read_f64_rows, |block| {
                bodies.mass.extend(block);
            })?,
        }
        if self.group.dataset("ParticleIDs").is_ok() {
            self.rows("ParticleIDs", &[n], Dataset::read_u64_rows, |block| {
                bodies.id.extend(block);
            })?;
        } else {
            bodies.id.extend(before as u64..before as u64 + n);
        }
        bodies.kind.resize(before + n as usize, self.kind);
        Ok(())
    }
}

/// Writes `snapshot`, which has passed [`Bodies::check`](crate::bodies::Bodies::check).
pub(super) fn write(
    file: &mut impl Write,
    snapshot: &Snapshot,
    units: Option<Units>,
) -> Result<(), WriteFault> {
    let bodies = &snapshot.bodies;
    if u32::try_from(bodies.len()).is_err() {
        return Err(WriteFault::TooManyForHdf5 {
            bodies: bodies.len(),
        });
    }
    let mut counts = [0_u32; 6];
    for kind in &bodies.kind {
        counts[type_of(*kind)] += 1;
    }
    let (length, mass, speed) = units.map_or((1.0, 1.0, 1.0), |units| {
        (1e2 * units.length, 1e3 * units.mass, 1e2 * units.speed())
    });

    let mut builder = FileBuilder::new();
    let mut header = builder.create_group("Header");
    let counts_of_type = || AttrValue::U32Array(counts.to_vec());
    header.set_attr("NumPart_ThisFile", counts_of_type());
    header.set_attr("NumPart_Total", counts_of_type());
    header.set_attr("NumPart_Total_HighWord", AttrValue::U32Array(vec![0; 6]));
    header.set_attr("MassTable", AttrValue::F64Array(vec![0.0; 6]));
    header.set_attr("Time", AttrValue::F64(snapshot.time));
    header.set_attr("Redshift", AttrValue::F64(0.0));
    // 0 stands for an isolated system: with a box, yt drops what is outside of it.
    header.set_attr("BoxSize", AttrValue::F64(0.0));
    header.set_attr("NumFilesPerSnapshot", AttrValue::I32(1));
    for flag in [
        "Sfr",
        "Cooling",
        "StellarAge",
        "Metals",
        "Feedback",
        "IC_Info",
    ] {
        header.set_attr(&format!("Flag_{flag}"), AttrValue::I32(0));
    }
    header.set_attr("Flag_DoublePrecision", AttrValue::I32(1));
    // Without it pynbody takes the age of the universe for the time.
    let gigayear = 1e9 * crate::units::YEAR;
    let in_gigayears = units.map_or(0.0, |units| snapshot.time * units.time / gigayear);
    header.set_attr("Time_GYR", AttrValue::F64(in_gigayears));
    // A string of variable length makes yt fail; HubbleParam makes pynbody see cosmological units.
    header.set_attr("Code", AttrValue::AsciiString("Allpairs".into()));
    let mut system = builder.create_group("Units");
    for group in [&mut header, &mut system] {
        group.set_attr("UnitLength_in_cm", AttrValue::F64(length));
        group.set_attr("UnitMass_in_g", AttrValue::F64(mass));
        group.set_attr("UnitVelocity_in_cm_per_s", AttrValue::F64(speed));
    }
    system.set_attr("UnitTime_in_s", AttrValue::F64(length / speed));
    builder.add_group(header.finish());
    builder.add_group(system.finish());

    for kind in Kind::ALL {
        let number = type_of(kind);
        let n = u64::from(counts[number]);
        if n == 0 {
            continue;
        }
        let members = || (0..bodies.len()).filter(move |i| bodies.kind[*i] == kind);
        let triples = |x: &[f64], y: &[f64], z: &[f64]| -> Vec<f64> {
            members().flat_map(|i| [x[i], y[i], z[i]]).collect()
        };
        let mut part = builder.create_group(&format!("PartType{number}"));
        part.create_dataset("Coordinates")
            .with_f64_data(&triples(&bodies.x, &bodies.y, &bodies.z))
            .with_shape(&[n, 3]);
        part.create_dataset("Velocities")
            .with_f64_data(&triples(&bodies.vx, &bodies.vy, &bodies.vz))
            .with_shape(&[n, 3]);
        let masses: Vec<f64> = members().map(|i| bodies.mass[i]).collect();
        part.create_dataset("Masses").with_f64_data(&masses);
        let ids: Vec<u64> = members().map(|i| bodies.id[i]).collect();
        part.create_dataset("ParticleIDs").with_u64_data(&ids);
        builder.add_group(part.finish());
    }
    builder.finish_to(file).map_err(|error| match error {
        Error::Io(fault) => fault.into(),
        other => WriteFault::Hdf5(other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::Body;

    fn bytes_of(build: impl FnOnce(&mut FileBuilder)) -> Vec<u8> {
        let mut builder = FileBuilder::new();
        build(&mut builder);
        builder.finish().unwrap()
    }

    fn parse(bytes: &[u8]) -> Result<Snapshot, ReadFault> {
        let file = open_reader(&mut &bytes[..])?;
        read(&file, bytes.len() as u64)
    }

    /// What another program might write: f32, a mass table, disk stars, no ids.
    fn foreign(builder: &mut FileBuilder) {
        let mut header = builder.create_group("Header");
        header.set_attr("Time", AttrValue::F64Array(vec![2.5]));
        let table = vec![0.0, 0.0, 3.0, 0.0, 0.0, 0.0];
        header.set_attr("MassTable", AttrValue::F64Array(table));
        builder.add_group(header.finish());
        let mut system = builder.create_group("Units");
        for (name, size) in [
            ("Unit length in cgs (U_L)", 100.0),
            ("Unit mass in cgs (U_M)", 5000.0),
            ("Unit time in cgs (U_t)", 7.0),
        ] {
            system.set_attr(name, AttrValue::F64Array(vec![size]));
        }
        builder.add_group(system.finish());
        let mut part = builder.create_group("PartType2");
        for name in ["Coordinates", "Velocities"] {
            part.create_dataset(name)
                .with_f32_data(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
                .with_shape(&[2, 3]);
        }
        builder.add_group(part.finish());
    }

    #[test]
    fn other_programs_files_are_read() {
        let bytes = bytes_of(foreign);
        let snapshot = parse(&bytes).unwrap();
        assert_eq!(snapshot.time, 2.5);
        assert_eq!(snapshot.bodies.body(1).position, [4.0, 5.0, 6.0]);
        assert_eq!(snapshot.bodies.mass, [3.0; 2]);
        assert_eq!(snapshot.bodies.id, [0, 1]);
        assert_eq!(snapshot.bodies.kind, [Kind::Star; 2]);
        let file = open_reader(&mut &bytes[..]).unwrap();
        let (length, mass, time) = (1.0, 5.0, 7.0);
        assert_eq!(units(&file), Some(Units { length, mass, time }));
    }

    #[test]
    fn what_is_no_snapshot_is_explained() {
        let message = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
        assert!(message(b"not HDF5 at all, but long enough to look").contains("HDF5"));
        assert!(message(&bytes_of(|_| ())).contains("/Header"));
        let part = |shape: [u64; 2]| {
            bytes_of(|builder| {
                let header = builder.create_group("Header");
                builder.add_group(header.finish());
                let mut part = builder.create_group("PartType4");
                part.create_dataset("Coordinates")
                    .with_f64_data(&[1.0; 6])
                    .with_shape(&shape);
                builder.add_group(part.finish());
            })
        };
        assert!(message(&part([3, 2])).contains("[3, 2], not [N, 3]"));
        assert!(message(&part([2, 3])).contains("/PartType4/Velocities"));
    }

    #[test]
    fn no_cut_or_change_of_the_file_panics() {
        let bodies = [Kind::Star, Kind::Gas]
            .map(|kind| Body {
                position: [1.0, 2.0, 3.0],
                velocity: [4.0, 5.0, 6.0],
                mass: 7.0,
                id: 8,
                kind,
            })
            .into_iter()
            .collect();
        let mut bytes = Vec::new();
        write(&mut bytes, &Snapshot { time: 0.5, bodies }, None).unwrap();
        for at in 0..bytes.len() {
            let _ = parse(&bytes[..at]);
            for value in [0, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Ok(snapshot) = parse(&changed) {
                    assert_eq!(snapshot.bodies.check(), Ok(()));
                }
            }
        }
    }
}
