//! HDF5 snapshots in the layout of Gadget, Arepo and SWIFT, which pynbody and yt read.
//! ```text
//! /Header      attributes NumPart_ThisFile, MassTable, Time, …
//! /Units       attributes UnitLength_in_cm, UnitMass_in_g, UnitVelocity_in_cm_per_s, UnitTime_in_s
//! /PartTypeK   datasets Coordinates [N, 3], Velocities [N, 3], Masses [N], ParticleIDs [N]
//! ```
//! Kinds are groups: gas is type 0, dark matter 1, stars 4; so bodies of one kind come together,
//! and their ids tell who is who. Read are types 2 and 3 (disk and bulge of old galaxy models) and
//! 5 (black holes) as stars too, masses from `MassTable`, missing ids (numbers in the file's
//! order), any number type, chunked and compressed datasets.
//!
//! A snapshot of several files is read whole, whichever is named. Units may have the names of Gadget, GIZMO or
//! SWIFT; in SWIFT's, `Masses` count where `MassTable` says otherwise.
//!
//! Refused are counts that disagree with `NumPart_ThisFile`. Cosmological snapshots (`Redshift`, `HubbleParam`,
//! `ComovingIntegrationOn`) are refused too, because Newton's law needs other numbers. On request
//! they are made [physical](super::Velocities) at their time.
//!
//! Files with particles of AMUSE, which have no `/Header`, are read too.
//!
//! If the units of bodies are unknown, the file records none, because units of 1 cm, 1 g and 1 cm/s mean cgs.
//! What readers make of attributes decided their types: see the comments below. yt takes units
//! from its caller: `yt.load(path, unit_base={"UnitLength_in_cm": …, …})`.
//!
//! Datasets are written in chunks with Fletcher-32 checksums, on request shuffled and deflated.
//! Reading needs memory for the bodies and one chunk of a dataset. Writing also needs memory for the
//! file, because the library builds it in memory.
//! Layout: GADGET-4 documentation, "Snapshot file format"; SWIFT documentation, "Initial
//! Conditions".
//!
//! Two libraries of one project: `hdf5-writer` writes, and `hdf5-reader` reads. The latter bounds its memory by the
//! file's size and checks every checksum. Tests have files of a third one, `hdf5-pure`.

mod amuse;
mod dataset;
mod lzf;
mod read;
mod units;

use std::io::Write;

use hdf5_reader::error::Error as Fault;
use hdf5_writer::{
    AttributeBuilder, DatasetBuilder, Error, FILTER_DEFLATE, FILTER_FLETCHER32, FILTER_SHUFFLE,
    FilterDescription, Hdf5Builder, WriteOptions,
};

use super::column::Malformed;
use super::{ReadFault, Snapshot, WriteFault};
use crate::bodies::BodyKind;
use crate::units::Units;

pub(super) use read::{read_bytes, read_file, read_units};

/// The particle type that a kind is written as.
fn type_of(kind: BodyKind) -> usize {
    match kind {
        BodyKind::Gas => 0,
        BodyKind::Dark => 1,
        BodyKind::Star => 4,
    }
}

/// Rows of a chunk as written: chunks of 1.5 MiB for positions, each with a checksum.
const CHUNK_ROWS: u64 = 1 << 16;

/// The attribute of `/Header` by which a reader knows who wrote a file, and its value here.
const CODE: &str = "Code";
const ALLPAIRS: &str = "Allpairs";

fn fault(place: &str, error: Fault) -> ReadFault {
    let advice = match error {
        Fault::Io(fault) => return fault.into(),
        Fault::Context { source, .. } => return fault(place, *source),
        Fault::UnsupportedSuperblockVersion(_)
        | Fault::UnsupportedObjectHeaderVersion(_)
        | Fault::UnsupportedLayoutVersion(_)
        | Fault::UnsupportedFilterPipelineVersion(_)
        | Fault::UnsupportedFillValueVersion(_)
        | Fault::UnsupportedChunkIndexType(_) => {
            "; if the file is sound, a newer HDF5 wrote it: write it with libver=('earliest', \
             'v114')"
        }
        Fault::UnsupportedFilter(_) => {
            "; write the file without this filter, as h5repack -f GZIP=6 does"
        }
        _ => "",
    };
    malformed(place, format!("{error}{advice}"))
}

fn malformed(place: &str, problem: impl Into<String>) -> ReadFault {
    Malformed::new(place, problem).into()
}

/// Writes `snapshot`, which has passed [`Bodies::check`](crate::bodies::Bodies::check), compressed with
/// the level `gzip` if one is given.
pub(super) fn write(
    file: &mut impl Write,
    snapshot: &Snapshot,
    units: Option<Units>,
    gzip: Option<u32>,
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
    let plan = layout(snapshot, counts, units, gzip)?.into_plan()?;
    Ok(file.write_all(&plan.encode(WriteOptions::default())?)?)
}

impl From<Error> for WriteFault {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(fault) => fault.into(),
            other => Self::Hdf5(other.to_string()),
        }
    }
}

/// Groups, attributes and datasets of a file with these numbers of bodies of each type.
fn layout(
    snapshot: &Snapshot,
    counts: [u32; 6],
    units: Option<Units>,
    gzip: Option<u32>,
) -> Result<Hdf5Builder, Error> {
    let bodies = &snapshot.bodies;
    let mut builder = Hdf5Builder::new();
    for attribute in header(snapshot, counts, units)? {
        builder = builder.group_attribute("Header", attribute);
    }
    if let Some(units) = units {
        let time = AttributeBuilder::scalar(
            "UnitTime_in_s",
            (1e2 * units.length) / (1e2 * units.speed()),
        )?;
        for attribute in in_cgs(units)?.into_iter().chain([time]) {
            builder = builder.group_attribute("Units", attribute);
        }
    }
    let filter = |id, client_data| FilterDescription {
        id,
        name: None,
        client_data,
    };
    for kind in BodyKind::ALL {
        let number = type_of(kind);
        let n = u64::from(counts[number]);
        if n == 0 {
            continue;
        }
        let members = || (0..bodies.len()).filter(move |i| bodies.kind[*i] == kind);
        let triples = |x: &[f64], y: &[f64], z: &[f64]| -> Vec<f64> {
            members().flat_map(|i| [x[i], y[i], z[i]]).collect()
        };
        let [vectors, scalars] = [vec![n, 3], vec![n]];
        let positions = triples(&bodies.x, &bodies.y, &bodies.z);
        let velocities = triples(&bodies.vx, &bodies.vy, &bodies.vz);
        let masses: Vec<f64> = members().map(|i| bodies.mass[i]).collect();
        let ids: Vec<u64> = members().map(|i| bodies.id[i]).collect();
        let name = |name: &str| format!("PartType{number}/{name}");
        for dataset in [
            DatasetBuilder::typed_data(name("Coordinates"), &vectors[..], &positions)?,
            DatasetBuilder::typed_data(name("Velocities"), &vectors[..], &velocities)?,
            DatasetBuilder::typed_data(name("Masses"), &scalars[..], &masses)?,
            DatasetBuilder::typed_data(name("ParticleIDs"), &scalars[..], &ids)?,
        ] {
            let mut chunk = dataset.shape().to_vec();
            chunk[0] = n.min(CHUNK_ROWS);
            let mut dataset = dataset.chunked(chunk);
            if let Some(level) = gzip {
                dataset = dataset.filter(filter(FILTER_SHUFFLE, vec![]));
                dataset = dataset.filter(filter(FILTER_DEFLATE, vec![level]));
            }
            builder = builder.dataset(dataset.filter(filter(FILTER_FLETCHER32, vec![])));
        }
    }
    Ok(builder)
}

/// Attributes of `/Header`.
fn header(
    snapshot: &Snapshot,
    counts: [u32; 6],
    units: Option<Units>,
) -> Result<Vec<AttributeBuilder>, Error> {
    let scalar = AttributeBuilder::scalar::<f64>;
    // Without it pynbody takes the age of the universe for the time.
    let gigayear = 1e9 * crate::units::YEAR;
    let in_gigayears = units.map_or(0.0, |units| snapshot.time * units.time / gigayear);
    let mut header = vec![
        AttributeBuilder::vector("NumPart_ThisFile", &counts)?,
        AttributeBuilder::vector("NumPart_Total", &counts)?,
        AttributeBuilder::vector("NumPart_Total_HighWord", &[0_u32; 6])?,
        AttributeBuilder::vector("MassTable", &[0.0; 6])?,
        scalar("Time", snapshot.time)?,
        scalar("Redshift", 0.0)?,
        // 0 stands for an isolated system: with a box, yt drops what is outside of it.
        scalar("BoxSize", 0.0)?,
        AttributeBuilder::scalar("NumFilesPerSnapshot", 1_i32)?,
        AttributeBuilder::scalar("Flag_DoublePrecision", 1_i32)?,
        scalar("Time_GYR", in_gigayears)?,
        // A string of variable length makes yt fail; HubbleParam makes pynbody see cosmological units.
        AttributeBuilder::fixed_string(CODE, ALLPAIRS),
    ];
    for flag in [
        "Sfr",
        "Cooling",
        "StellarAge",
        "Metals",
        "Feedback",
        "IC_Info",
    ] {
        header.push(AttributeBuilder::scalar(format!("Flag_{flag}"), 0_i32)?);
    }
    if let Some(units) = units {
        header.extend(in_cgs(units)?);
    }
    Ok(header)
}

/// Attributes with units of length, mass and velocity.
fn in_cgs(units: Units) -> Result<[AttributeBuilder; 3], Error> {
    let scalar = AttributeBuilder::scalar::<f64>;
    Ok([
        scalar("UnitLength_in_cm", 1e2 * units.length)?,
        scalar("UnitMass_in_g", 1e3 * units.mass)?,
        scalar("UnitVelocity_in_cm_per_s", 1e2 * units.speed())?,
    ])
}

#[cfg(test)]
mod tests;
