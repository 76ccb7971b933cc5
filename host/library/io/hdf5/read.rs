//! The reading of snapshots in Gadget's layout.

use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use hdf5_reader::error::Error as Fault;
use hdf5_reader::group::Group;
use hdf5_reader::messages::datatype::Datatype;
use hdf5_reader::storage::{DynStorage, FileStorage};
use hdf5_reader::{
    Attribute, Dataset, FilterRegistry, HDF5_MAX_CHUNK_BYTES, Hdf5File, OpenOptions,
};

use super::super::column::{left_out, room_for};
use super::super::cosmology::{Cosmology, Powers, Scaling, Told};
use super::super::gadget::KINDS;
use super::super::pieces::{Piece, join};
use super::super::{Contents, ReadFault, Snapshot};
use super::dataset::{Table, values};
use super::units::units;
use super::{ALLPAIRS, CODE, amuse, fault, lzf, malformed};
use crate::bodies::{Bodies, BodyKind};
use crate::units::Units;

/// Names of the datasets of a particle type that are read; EAGLE has the second.
pub(super) const POSITION: &[&str] = &["Coordinates"];
pub(super) const VELOCITY: &[&str] = &["Velocities", "Velocity"];
pub(super) const MASS: &[&str] = &["Masses", "Mass"];
const ID: &[&str] = &["ParticleIDs"];

/// Reads the snapshot that the file at `path` belongs to, block by block.
pub(in super::super) fn read_file(
    path: &Path,
    file: File,
    size: u64,
) -> Result<Contents, ReadFault> {
    let piece = |file: File, size: u64| guarded(|| read(&open(file)?, size));
    join(piece(file, size)?, Some(path), piece)
}

/// Reads what is no file: all of it has to be in memory.
pub(in super::super) fn read_bytes(
    reader: &mut impl Read,
    size: u64,
) -> Result<Contents, ReadFault> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    let piece = guarded(|| {
        let file = Hdf5File::from_vec_with_options(bytes, options());
        read(&file.map_err(not_hdf5)?, size)
    })?;
    join(piece, None, |file, size| {
        guarded(|| read(&open(file)?, size))
    })
}

/// The units recorded in a file.
pub(in super::super) fn read_units(file: File, size: u64) -> Result<Option<Units>, ReadFault> {
    guarded(|| {
        let file = open(file)?;
        let root = root(&file)?;
        match Attributes::of(&root, "Header")? {
            Some(_) => units(&root, &mut Vec::new()),
            // Each dataset of AMUSE's tells its own.
            None => Ok(read(&file, size)?.contents.units),
        }
    })
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
pub(super) fn group(parent: &Group, name: &str) -> Result<Option<Group>, ReadFault> {
    match parent.group(name) {
        Ok(group) => Ok(Some(group)),
        Err(Fault::GroupNotFound(absent)) if absent == name => Ok(None),
        Err(error) => Err(fault(&format!("/{name}"), error)),
    }
}

/// A dataset that may be absent; a faulty one is a fault.
pub(super) fn dataset(
    group: &Group,
    name: &str,
    place: &str,
) -> Result<Option<Dataset>, ReadFault> {
    match group.dataset(name) {
        Ok(dataset) => Ok(Some(dataset)),
        Err(Fault::DatasetNotFound(absent)) if absent == name => Ok(None),
        Err(error) => Err(fault(place, error)),
    }
}

/// The attributes of a group.
pub(super) struct Attributes {
    pub(super) place: String,
    pub(super) all: Vec<Attribute>,
}

impl Attributes {
    /// Reads the attributes of the group `/name`, if the group exists.
    pub(super) fn of(root: &Group, name: &str) -> Result<Option<Self>, ReadFault> {
        let place = format!("/{name}");
        let Some(group) = group(root, name)? else {
            return Ok(None);
        };
        let all = group.attributes().map_err(|error| fault(&place, error))?;
        Ok(Some(Self { place, all }))
    }

    pub(super) fn find(&self, name: &str) -> Option<&Attribute> {
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
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, ReadFault> {
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

/// The program that wrote a file in Gadget's layout, if it is another than those that this layout is named after.
fn program(header: &Attributes, has_swifts_units: bool) -> Option<&'static str> {
    match header.find("GIZMO_version") {
        _ if has_swifts_units => Some("SWIFT, in Gadget's layout"),
        Some(_) => Some("GIZMO, in Gadget's layout"),
        None => None,
    }
}

/// The name of SWIFT's unit of length.
const SWIFT: &str = "Unit length in cgs (U_L)";

/// The cosmology that a file tells, if its numbers are not what Newtonian mechanics can use.
fn cosmology(root: &Group, time: f64) -> Result<Option<Cosmology>, ReadFault> {
    let groups = ["Header", "Parameters", "Cosmology"];
    let mut all = vec![];
    for group in groups {
        all.extend(Attributes::of(root, group)?);
    }
    let find = |names: &[&str]| -> Result<Option<f64>, ReadFault> {
        for (attributes, name) in all
            .iter()
            .flat_map(|of| names.iter().map(move |name| (of, name)))
        {
            if let Some(number) = attributes.number(name)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    };
    let mut because = None;
    let mut is_comoving = None;
    for (group, name, plain) in [
        ("Header", "Redshift", &[0.0][..]),
        ("Header", "Scale-factor", &[0.0, 1.0]),
        ("Header", "ExpansionFactor", &[0.0, 1.0]),
        // Zero is what programs leave there that know of no cosmology.
        ("Header", "HubbleParam", &[0.0, 1.0]),
        ("Header", "ComovingIntegrationOn", &[0.0]),
        ("Parameters", "ComovingIntegrationOn", &[0.0]),
        ("Parameters", "HubbleParam", &[0.0, 1.0]),
        ("Cosmology", "Cosmological run", &[0.0]),
    ] {
        let place = format!("/{group}");
        let Some(attributes) = all.iter().find(|attributes| attributes.place == place) else {
            continue;
        };
        let Some(value) = attributes.number(name)? else {
            continue;
        };
        if !plain.contains(&value) && because.is_none() {
            because = Some((format!("{place}/{name}"), value));
        }
        if ["ComovingIntegrationOn", "Cosmological run"].contains(&name) {
            is_comoving = Some(value != 0.0);
        }
    }
    let Some(because) = because else {
        return Ok(None);
    };
    let scale_factor = find(&["Scale-factor", "ExpansionFactor"])?;
    let told = Told {
        time,
        scale_factor,
        redshift: find(&["Redshift"])?,
        h: find(&["HubbleParam", "h"])?,
        is_comoving,
        matter: find(&["Omega0", "Omega_Matter", "Omega_m"])?,
        lambda: find(&["OmegaLambda", "Omega_Lambda", "Omega_lambda"])?,
    };
    let scaling = match scale_factor {
        Some(_) => Scaling::SWIFT,
        None => Scaling::GADGET,
    };
    Ok(Some(Cosmology {
        because,
        told,
        scaling,
    }))
}

/// The powers of a and h in the numbers of a dataset, if it tells them.
fn powers(group: &Group, names: &[&str], place: &str) -> Result<Option<Powers>, ReadFault> {
    /// Names in files of Gadget-4 and Arepo, SWIFT, and EAGLE.
    const NAMES: [[&str; 2]; 3] = [
        ["a_scaling", "h_scaling"],
        ["a-scale exponent", "h-scale exponent"],
        ["aexp-scale-exponent", "h-scale-exponent"],
    ];
    for name in names {
        let place = format!("{place}/{name}");
        let Some(dataset) = dataset(group, name, &place)? else {
            continue;
        };
        let attributes = dataset.attributes();
        let number = |name: &str| {
            let attribute = attributes.iter().find(|attribute| attribute.name == name)?;
            match values(&attribute.datatype, &attribute.raw_data)?[..] {
                [number] if number.is_finite() => Some(number),
                _ => None,
            }
        };
        return Ok(NAMES
            .into_iter()
            .find_map(|[a, h]| Some([number(a)?, number(h)?])));
    }
    Ok(None)
}

/// Numbers of bodies in an attribute, by particle type.
fn counts(header: &Attributes, name: &str) -> Result<Option<Vec<u64>>, ReadFault> {
    let Some(numbers) = header.numbers(name)? else {
        return Ok(None);
    };
    let whole = |number: f64| {
        let is_count = number >= 0.0 && number.fract() == 0.0;
        is_count.then_some(number as u64)
    };
    let all: Option<Vec<u64>> = numbers.iter().copied().map(whole).collect();
    all.map(Some).ok_or_else(|| {
        let problem = format!("it is {numbers:?}, which are no numbers of bodies");
        malformed(&format!("{}/{name}", header.place), problem)
    })
}

/// The numbers of bodies in all files of a snapshot; none where they are not told.
fn totals(header: &Attributes) -> Result<Vec<u64>, ReadFault> {
    let mut totals = counts(header, "NumPart_Total")?.unwrap_or_default();
    let high = counts(header, "NumPart_Total_HighWord")?.unwrap_or_default();
    for (total, high) in totals.iter_mut().zip(high) {
        *total = total.saturating_add(high.saturating_mul(1 << 32));
    }
    Ok(totals)
}

/// Reads one file.
fn read(file: &Hdf5File, size: u64) -> Result<Piece, ReadFault> {
    let root = root(file)?;
    let Some(header) = Attributes::of(&root, "Header")? else {
        return amuse::read(file, &root, size)?.ok_or_else(|| {
            let problem = "there is no such group; this is a snapshot neither in the layout of Gadget nor of AMUSE";
            malformed("/Header", problem)
        });
    };
    let counts = counts(&header, "NumPart_ThisFile")?;
    let files = header.number("NumFilesPerSnapshot")?.unwrap_or(1.0);
    if !(0.0..=f64::from(u32::MAX)).contains(&files) || files.fract() != 0.0 {
        let problem = format!("it is {files}, which is no number of files");
        return Err(malformed("/Header/NumFilesPerSnapshot", problem));
    }
    let time = header.number("Time")?.unwrap_or(0.0);
    if !time.is_finite() {
        return Err(malformed("/Header/Time", format!("the time is {time}")));
    }
    let mut cosmology = cosmology(&root, time)?;
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

    let has_swifts_units =
        Attributes::of(&root, "Units")?.is_some_and(|attributes| attributes.find(SWIFT).is_some());
    let types = counts.as_ref().map_or(0, Vec::len).max(KINDS.len());
    let (mut parts, mut total, mut rows) = (Vec::new(), 0_u64, vec![0; types]);
    for (number, in_part) in rows.iter_mut().enumerate() {
        let name = format!("PartType{number}");
        let place = format!("/{name}");
        let counted = counts
            .as_ref()
            .map(|counts| counts.get(number).copied().unwrap_or(0));
        let group = group(&root, &name)?;
        let part = match (group, KINDS.get(number)) {
            (None, _) if counted.unwrap_or(0) == 0 => continue,
            (None, _) => {
                let problem = format!(
                    "there is no such group, and NumPart_ThisFile counts {} bodies in it",
                    counted.unwrap_or(0)
                );
                return Err(malformed(&place, problem));
            }
            (Some(_), None) if counted == Some(0) => continue,
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
                has_swifts_units,
            },
        };
        let n = match part.table(file, POSITION, size)? {
            Some(table) => {
                table.expect(table.rows(), 3)?;
                table.rows()
            }
            // Programs leave groups of types without bodies empty.
            None if counted == Some(0) => 0,
            None if part.are_tracers()? => {
                notes.push(format!(
                    "{} has tracers without places of their own, which are not used here",
                    part.place
                ));
                continue;
            }
            None => return Err(part.missing(POSITION)),
        };
        if let Some(counted) = counted.filter(|counted| *counted != n) {
            let problem = format!("it has {n} rows, and NumPart_ThisFile says {counted}");
            return Err(malformed(&format!("{}/Coordinates", part.place), problem));
        }
        total = total.saturating_add(n);
        *in_part = n;
        parts.push((part, n));
    }
    let total =
        usize::try_from(total).map_err(|_| ReadFault::OutOfMemory { bodies: usize::MAX })?;
    // One of several files may have none.
    let mut bodies = match total {
        0 => Bodies::default(),
        total => room_for(total)?,
    };
    if let (Some(Cosmology { scaling, .. }), Some((part, _))) =
        (&mut cosmology, parts.iter().find(|(_, n)| *n > 0))
    {
        for (powers_of, names) in [
            (&mut scaling.length, POSITION),
            (&mut scaling.speed, VELOCITY),
            (&mut scaling.mass, MASS),
        ] {
            *powers_of = powers(&part.group, names, &part.place)?.unwrap_or(*powers_of);
        }
    }
    for (part, n) in parts {
        part.read(file, size, n, &mut bodies, &mut notes)?;
    }
    let contents = Contents {
        snapshot: Snapshot { time, bodies },
        program: program(&header, has_swifts_units),
        units,
        notes,
        cosmology,
    };
    Ok(Piece {
        files: files as u32,
        totals: totals(&header)?,
        counts: counts.unwrap_or(rows),
        contents,
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
    /// True if SWIFT reads the file: masses of single bodies, whatever the header says.
    has_swifts_units: bool,
}

impl Part {
    fn table<'a>(
        &self,
        file: &'a Hdf5File,
        names: &[&str],
        size: u64,
    ) -> Result<Option<Table<'a>>, ReadFault> {
        for name in names {
            let place = format!("{}/{name}", self.place);
            if let Some(dataset) = dataset(&self.group, name, &place)? {
                return Ok(Some(Table::of(file, dataset, place, size)?));
            }
        }
        Ok(None)
    }

    /// Returns whether they are Arepo's Monte Carlo tracers, which belong to cells of gas.
    fn are_tracers(&self) -> Result<bool, ReadFault> {
        let place = format!("{}/TracerID", self.place);
        Ok(dataset(&self.group, "TracerID", &place)?.is_some())
    }

    fn missing(&self, names: &[&str]) -> ReadFault {
        malformed(
            &format!("{}/{}", self.place, names[0]),
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
        let need = |names: &[&str], width: u64| -> Result<Table, ReadFault> {
            let table = self.table(file, names, size)?;
            let table = table.ok_or_else(|| self.missing(names))?;
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
        need(POSITION, 3)?.reals(first, &mut [x, y, z])?;
        need(VELOCITY, 3)?.reals(first, &mut [vx, vy, vz])?;
        match (self.mass, self.table(file, MASS, size)?) {
            (Some(same), Some(masses)) => {
                masses.expect(n, 1)?;
                masses.reals(first, &mut [&mut *mass])?;
                match (self.check_masses(same, &mass[first..]), self.has_swifts_units) {
                    (Ok(()), _) => mass[first..].fill(same),
                    (Err(_), true) => notes.push(format!(
                        "/Header/MassTable says {same} for all bodies of {}: masses of single bodies are taken, as \
                         SWIFT takes them",
                        self.place
                    )),
                    (Err(fault), false) => return Err(fault),
                }
            }
            (Some(same), None) => mass[first..].fill(same),
            (None, _) => need(MASS, 1)?.reals(first, &mut [mass])?,
        }
        match self.table(file, ID, size)? {
            Some(ids) => {
                ids.expect(n, 1)?;
                ids.ids(first, id)?;
            }
            None if self.has_ids => return Err(self.missing(ID)),
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
        self.note_others(notes)
    }

    /// Says what is not read of these bodies.
    fn note_others(&self, notes: &mut Vec<String>) -> Result<(), ReadFault> {
        let (_, mut others) = self
            .group
            .member_names()
            .map_err(|error| fault(&self.place, error))?;
        others.retain(|name| {
            ![POSITION, VELOCITY, MASS, ID]
                .concat()
                .contains(&name.as_str())
        });
        if !others.is_empty() {
            let what = format!("datasets of {}", self.place);
            notes.push(left_out(&what, &others));
        }
        Ok(())
    }
}
