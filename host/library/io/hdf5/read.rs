//! The reading of snapshots in Gadget's layout.

use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hdf5_reader::error::Error as Fault;
use hdf5_reader::group::Group;
use hdf5_reader::messages::datatype::Datatype;
use hdf5_reader::storage::{DynStorage, FileStorage};
use hdf5_reader::{
    Attribute, Dataset, FilterRegistry, HDF5_MAX_CHUNK_BYTES, Hdf5File, OpenOptions,
};

use super::super::column::{left_out, room_for};
use super::super::gadget::KINDS;
use super::super::{Contents, ReadFault, Snapshot};
use super::dataset::{Table, values};
use super::{ALLPAIRS, CODE, fault, lzf, malformed};
use crate::bodies::{Bodies, BodyKind};
use crate::units::Units;

/// Datasets of a particle type that are read.
const READ: [&str; 4] = ["Coordinates", "Velocities", "Masses", "ParticleIDs"];

/// Reads a file of `size` bytes, block by block.
pub(in super::super) fn read_file(file: File, size: u64) -> Result<Contents, ReadFault> {
    guarded(|| read(&open(file)?, size))
}

/// Reads what is no file: all of it has to be in memory.
pub(in super::super) fn read_bytes(
    reader: &mut impl Read,
    size: u64,
) -> Result<Contents, ReadFault> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    guarded(|| {
        let file = Hdf5File::from_vec_with_options(bytes, options());
        read(&file.map_err(not_hdf5)?, size)
    })
}

/// The units recorded in a file.
pub(in super::super) fn read_units(file: File) -> Result<Option<Units>, ReadFault> {
    guarded(|| units(&root(&open(file)?)?, &mut Vec::new()))
}

/// Turns a panic of the library into a fault: it is a young parser of files from anywhere, and a
/// file should not end the program. Nothing is used after a panic that could be half changed: file
/// and bodies are dropped with `work`.
fn guarded<T>(work: impl FnOnce() -> Result<T, ReadFault>) -> Result<T, ReadFault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let problem = "the library for HDF5 failed at it: the file is damaged or of an unknown \
                       kind; copy or write it again";
        Err(malformed("the HDF5 file", problem))
    })
}

fn open(file: File) -> Result<Hdf5File, ReadFault> {
    let storage: DynStorage = Arc::new(FileStorage::from_file(file).map_err(not_hdf5)?);
    Hdf5File::from_storage_with_options(storage, options()).map_err(not_hdf5)
}

fn not_hdf5(error: Fault) -> ReadFault {
    fault("the HDF5 file", error)
}

/// Each chunk is read once, so none is cached; [`Table`] compares their sizes with the file's.
fn options() -> OpenOptions {
    let mut filters = FilterRegistry::new();
    let lzf = |_: &_, data: &[u8], _| lzf::decompress(data);
    filters.register(lzf::ID, Box::new(lzf));
    OpenOptions::default()
        .with_filter_registry(filters)
        .with_chunk_cache_bytes(0)
        .with_max_chunk_bytes(HDF5_MAX_CHUNK_BYTES)
}

fn root(file: &Hdf5File) -> Result<Group, ReadFault> {
    file.root_group().map_err(not_hdf5)
}

/// A group that may be absent; a faulty one is a fault.
fn group(parent: &Group, name: &str) -> Result<Option<Group>, ReadFault> {
    match parent.group(name) {
        Ok(group) => Ok(Some(group)),
        Err(Fault::GroupNotFound(absent)) if absent == name => Ok(None),
        Err(error) => Err(fault(&format!("/{name}"), error)),
    }
}

/// A dataset that may be absent; a faulty one is a fault.
fn dataset(group: &Group, name: &str, place: &str) -> Result<Option<Dataset>, ReadFault> {
    match group.dataset(name) {
        Ok(dataset) => Ok(Some(dataset)),
        Err(Fault::DatasetNotFound(absent)) if absent == name => Ok(None),
        Err(error) => Err(fault(place, error)),
    }
}

/// The attributes of a group.
struct Attributes {
    place: String,
    all: Vec<Attribute>,
}

impl Attributes {
    /// Reads the attributes of the group `/name`, if the group exists.
    fn of(root: &Group, name: &str) -> Result<Option<Self>, ReadFault> {
        let place = format!("/{name}");
        let Some(group) = group(root, name)? else {
            return Ok(None);
        };
        let all = group.attributes().map_err(|error| fault(&place, error))?;
        Ok(Some(Self { place, all }))
    }

    fn find(&self, name: &str) -> Option<&Attribute> {
        self.all.iter().find(|attribute| attribute.name == name)
    }

    /// The numbers of an attribute, whatever their type; `None` where there is no such attribute.
    fn numbers(&self, name: &str) -> Result<Option<Vec<f64>>, ReadFault> {
        let Some(attribute) = self.find(name) else {
            return Ok(None);
        };
        match values(&attribute.datatype, &attribute.raw_data) {
            Some(numbers) => Ok(Some(numbers)),
            None => Err(malformed(
                &format!("{}/{name}", self.place),
                "this attribute is not a number of a type that is known here",
            )),
        }
    }

    /// The number of an attribute, also as an array of one.
    fn number(&self, name: &str) -> Result<Option<f64>, ReadFault> {
        match self.numbers(name)?.as_deref() {
            None | Some([]) => Ok(None),
            Some([number]) => Ok(Some(*number)),
            Some(several) => {
                let problem = format!("it has {} numbers, and should be one", several.len());
                Err(malformed(&format!("{}/{name}", self.place), problem))
            }
        }
    }

    /// Returns whether the file says that Allpairs wrote it.
    fn is_ours(&self) -> bool {
        self.find(CODE).is_some_and(|attribute| {
            matches!(attribute.datatype, Datatype::String { .. })
                && attribute.raw_data.starts_with(ALLPAIRS.as_bytes())
        })
    }
}

/// The units recorded in a file, in any of the places where programs put them.
fn units(root: &Group, notes: &mut Vec<String>) -> Result<Option<Units>, ReadFault> {
    const GADGET: [&str; 3] = [
        "UnitLength_in_cm",
        "UnitMass_in_g",
        "UnitVelocity_in_cm_per_s",
    ];
    const SWIFT: [&str; 3] = [
        "Unit length in cgs (U_L)",
        "Unit mass in cgs (U_M)",
        "Unit time in cgs (U_t)",
    ];
    for name in ["Units", "Header", "Parameters"] {
        let Some(attributes) = Attributes::of(root, name)? else {
            continue;
        };
        for names in [GADGET, SWIFT] {
            if names.iter().all(|name| attributes.find(name).is_none()) {
                continue;
            }
            let mut sizes = [f64::NAN; 3];
            for (size, name) in sizes.iter_mut().zip(names) {
                *size = attributes.number(name)?.unwrap_or(f64::NAN);
            }
            let [length, mass, third] = sizes;
            let (length, mass) = (length / 1e2, mass / 1e3);
            let time = if names == GADGET {
                length / (third / 1e2)
            } else {
                third
            };
            let units = Units { length, mass, time };
            let all = [length, mass, time, units.g()];
            if all.iter().all(|size| size.is_normal() && *size > 0.0) {
                return Ok(Some(units));
            }
            notes.push(format!(
                "/{name} tells units of {sizes:?} for {}, which make no system: they are taken for \
                 unknown",
                names.join(", ")
            ));
        }
    }
    Ok(None)
}

/// Refuses snapshots with numbers that Newtonian mechanics cannot use.
fn check_not_cosmological(root: &Group) -> Result<(), ReadFault> {
    for (group, name, plain) in [
        ("Header", "Redshift", &[0.0][..]),
        // Zero is what programs leave there that know of no cosmology.
        ("Header", "HubbleParam", &[0.0, 1.0]),
        ("Header", "ComovingIntegrationOn", &[0.0]),
        ("Parameters", "ComovingIntegrationOn", &[0.0]),
        ("Parameters", "HubbleParam", &[0.0, 1.0]),
        ("Cosmology", "Cosmological run", &[0.0]),
    ] {
        let Some(attributes) = Attributes::of(root, group)? else {
            continue;
        };
        if let Some(value) = attributes.number(name)?
            && !plain.contains(&value)
        {
            let problem = format!(
                "it is {value}: the snapshot is cosmological, and here space does not expand and \
                 numbers are taken as they are, without factors of h and a; convert it to physical \
                 units first, and set Redshift = 0, HubbleParam = 1, ComovingIntegrationOn = 0"
            );
            return Err(malformed(&format!("/{group}/{name}"), problem));
        }
    }
    Ok(())
}

/// The numbers of bodies that a header counts, by particle type; `None` where it does not.
fn counts(header: &Attributes) -> Result<Option<Vec<f64>>, ReadFault> {
    let files = header.number("NumFilesPerSnapshot")?;
    let several = |place: &str, problem: String| {
        let advice = "the snapshot is spread over several files, which is not read here; join \
                      them first";
        malformed(
            &format!("{}/{place}", header.place),
            format!("{problem}: {advice}"),
        )
    };
    if let Some(files) = files.filter(|files| !(0.0..=1.0).contains(files)) {
        return Err(several("NumFilesPerSnapshot", format!("it is {files}")));
    }
    let Some(here) = header.numbers("NumPart_ThisFile")? else {
        return Ok(None);
    };
    let Some(mut total) = header.numbers("NumPart_Total")? else {
        return Ok(Some(here));
    };
    let high = header
        .numbers("NumPart_Total_HighWord")?
        .unwrap_or_default();
    for (total, high) in total.iter_mut().zip(high) {
        *total += high * 4_294_967_296.0;
    }
    // All zero is what programs leave there that write one file.
    if total.iter().any(|total| *total != 0.0) && total != here {
        let problem = format!("it is {total:?}, and NumPart_ThisFile is {here:?}");
        return Err(several("NumPart_Total", problem));
    }
    Ok(Some(here))
}

fn read(file: &Hdf5File, size: u64) -> Result<Contents, ReadFault> {
    let root = root(file)?;
    let header = Attributes::of(&root, "Header")?.ok_or_else(|| {
        let problem = "there is no such group; this is not a snapshot in the layout of Gadget";
        malformed("/Header", problem)
    })?;
    check_not_cosmological(&root)?;
    let counts = counts(&header)?;
    let time = header.number("Time")?.unwrap_or(0.0);
    if !time.is_finite() {
        return Err(malformed("/Header/Time", format!("the time is {time}")));
    }
    let table = header.numbers("MassTable")?.unwrap_or_default();
    let mut notes = Vec::new();
    let units = units(&root, &mut notes)?;
    // One size, or one along each axis.
    let sizes = header.numbers("BoxSize")?.unwrap_or_default();
    if let Some(size) = sizes.into_iter().find(|size| *size != 0.0) {
        notes.push(format!(
            "the file has a box (BoxSize = {size}): it is not periodic here, nothing happens at \
             its walls"
        ));
    }

    let types = counts.as_ref().map_or(0, Vec::len).max(KINDS.len());
    let (mut parts, mut total) = (Vec::new(), 0_u64);
    for number in 0..types {
        let name = format!("PartType{number}");
        let place = format!("/{name}");
        let counted = counts
            .as_ref()
            .map(|counts| counts.get(number).copied().unwrap_or(0.0));
        let group = group(&root, &name)?;
        let part = match (group, KINDS.get(number)) {
            (None, _) if counted.unwrap_or(0.0) == 0.0 => continue,
            (None, _) => {
                let problem = format!(
                    "there is no such group, and NumPart_ThisFile counts {} bodies in it",
                    counted.unwrap_or(0.0)
                );
                return Err(malformed(&place, problem));
            }
            (Some(_), None) if counted == Some(0.0) => continue,
            (Some(_), None) => {
                let problem = "only particle types 0 to 5 are known here; leave this one out";
                return Err(malformed(&place, problem));
            }
            (Some(group), Some(kind)) => Part {
                place,
                group,
                kind: *kind,
                mass: table.get(number).copied().filter(|mass| *mass != 0.0),
                has_ids: header.is_ours(),
            },
        };
        let n = match part.table(file, READ[0], size)? {
            Some(table) => {
                table.expect(table.rows(), 3)?;
                table.rows()
            }
            // Programs leave groups of types without bodies empty.
            None if counted == Some(0.0) => 0,
            None => return Err(part.missing(READ[0])),
        };
        if let Some(counted) = counted.filter(|counted| *counted != n as f64) {
            let problem = format!("it has {n} rows, and NumPart_ThisFile says {counted}");
            return Err(malformed(&format!("{}/Coordinates", part.place), problem));
        }
        total = total.saturating_add(n);
        parts.push((part, n));
    }
    let total =
        usize::try_from(total).map_err(|_| ReadFault::OutOfMemory { bodies: usize::MAX })?;
    let mut bodies = room_for(total)?;
    for (part, n) in parts {
        part.read(file, size, n, &mut bodies, &mut notes)?;
    }
    bodies.check()?;
    Ok(Contents {
        snapshot: Snapshot { time, bodies },
        units,
        notes,
    })
}

/// The bodies of one particle type.
struct Part {
    place: String,
    group: Group,
    kind: BodyKind,
    /// The mass of all of them, if it is the same.
    mass: Option<f64>,
    /// True if a file without ids is damaged.
    has_ids: bool,
}

impl Part {
    fn table<'a>(
        &self,
        file: &'a Hdf5File,
        name: &str,
        size: u64,
    ) -> Result<Option<Table<'a>>, ReadFault> {
        let place = format!("{}/{name}", self.place);
        match dataset(&self.group, name, &place)? {
            Some(dataset) => Ok(Some(Table::of(file, dataset, place, size)?)),
            None => Ok(None),
        }
    }

    fn missing(&self, name: &str) -> ReadFault {
        malformed(
            &format!("{}/{name}", self.place),
            "there is no such dataset",
        )
    }

    /// Refuses masses of single bodies that are not that of the header's table, but for rounding to f32.
    fn check_masses(&self, same: f64, masses: &[f64]) -> Result<(), ReadFault> {
        let differs = |mass: &f64| (mass - same).abs() > 1e-6 * same.abs();
        match masses
            .iter()
            .position(|mass| differs(mass) || mass.is_nan())
        {
            None => Ok(()),
            Some(row) => Err(malformed(
                &format!("{}/Masses", self.place),
                format!(
                    "row {row} is {}, and /Header/MassTable says {same} for all bodies of this type: \
                     remove the one that is wrong",
                    masses[row]
                ),
            )),
        }
    }

    fn read(
        &self,
        file: &Hdf5File,
        size: u64,
        n: u64,
        bodies: &mut Bodies,
        notes: &mut Vec<String>,
    ) -> Result<(), ReadFault> {
        if n == 0 {
            return Ok(());
        }
        let first = bodies.len();
        let end = first + n as usize;
        let need = |name: &str, width: u64| -> Result<Table, ReadFault> {
            let table = self.table(file, name, size)?;
            let table = table.ok_or_else(|| self.missing(name))?;
            table.expect(n, width)?;
            Ok(table)
        };
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
        } = bodies;
        for column in [&mut *x, y, z, vx, vy, vz, mass] {
            column.resize(end, 0.0);
        }
        id.resize(end, 0);
        need(READ[0], 3)?.reals(first, &mut [x, y, z])?;
        need(READ[1], 3)?.reals(first, &mut [vx, vy, vz])?;
        match self.mass {
            Some(same) => {
                if let Some(masses) = self.table(file, READ[2], size)? {
                    masses.expect(n, 1)?;
                    masses.reals(first, &mut [&mut *mass])?;
                    self.check_masses(same, &mass[first..])?;
                }
                mass[first..].fill(same);
            }
            None => need(READ[2], 1)?.reals(first, &mut [mass])?,
        }
        match self.table(file, READ[3], size)? {
            Some(ids) => {
                ids.expect(n, 1)?;
                ids.ids(first, id)?;
            }
            None if self.has_ids => return Err(self.missing(READ[3])),
            None => {
                for (id, number) in id[first..].iter_mut().zip(first as u64..) {
                    *id = number;
                }
                notes.push(format!(
                    "{} has no ParticleIDs: its bodies are numbered from {first} on",
                    self.place
                ));
            }
        }
        kind.resize(end, self.kind);
        self.note_others(n, notes)
    }

    /// Says what is not read of these bodies.
    fn note_others(&self, n: u64, notes: &mut Vec<String>) -> Result<(), ReadFault> {
        let (_, mut others) = self
            .group
            .member_names()
            .map_err(|error| fault(&self.place, error))?;
        others.retain(|name| !READ.contains(&name.as_str()));
        if self.kind == BodyKind::Gas {
            notes.push(format!(
                "{n} bodies of {} are gas, which is moved by gravity alone here",
                self.place
            ));
        }
        if !others.is_empty() {
            let what = format!("datasets of {}", self.place);
            notes.push(left_out(&what, &others));
        }
        Ok(())
    }
}
