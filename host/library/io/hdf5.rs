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
//! Two libraries: `hdf5-pure` writes, `hdf5-reader` reads. The former reads too, but takes a
//! chunk's size on trust (a file of 16 kB asks it for 4 GB, and ends the process where there is no
//! such memory), decompresses a large chunk once for every block of it, and clamps what does not
//! fit the type asked for. The latter bounds its memory by the file's size and checks every
//! checksum.

mod amuse;
mod dataset;
mod lzf;
mod read;
mod units;

use std::io::Write;

use hdf5_pure::{AttrValue, Error, FileBuilder};
use hdf5_reader::error::Error as Fault;

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

/// Numbers of a dataset that is written.
enum Numbers {
    Real(Vec<f64>),
    Id(Vec<u64>),
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
    header.set_attr(CODE, AttrValue::AsciiString(ALLPAIRS.into()));
    if let Some(units) = units {
        let (length, mass) = (1e2 * units.length, 1e3 * units.mass);
        let speed = 1e2 * units.speed();
        let mut system = builder.create_group("Units");
        for group in [&mut header, &mut system] {
            group.set_attr("UnitLength_in_cm", AttrValue::F64(length));
            group.set_attr("UnitMass_in_g", AttrValue::F64(mass));
            group.set_attr("UnitVelocity_in_cm_per_s", AttrValue::F64(speed));
        }
        system.set_attr("UnitTime_in_s", AttrValue::F64(length / speed));
        builder.add_group(system.finish());
    }
    builder.add_group(header.finish());

    for kind in BodyKind::ALL {
        let number = type_of(kind);
        let n = u64::from(counts[number]);
        if n == 0 {
            continue;
        }
        let rows = n.min(CHUNK_ROWS);
        let members = || (0..bodies.len()).filter(move |i| bodies.kind[*i] == kind);
        let triples = |x: &[f64], y: &[f64], z: &[f64]| -> Vec<f64> {
            members().flat_map(|i| [x[i], y[i], z[i]]).collect()
        };
        let mut part = builder.create_group(&format!("PartType{number}"));
        let mut store = |name: &str, width: u64, data: Numbers| {
            let dataset = part.create_dataset(name);
            match data {
                Numbers::Real(data) => dataset.with_f64_data(&data),
                Numbers::Id(data) => dataset.with_u64_data(&data),
            };
            match width {
                1 => dataset.with_chunks(&[rows]),
                _ => dataset.with_shape(&[n, width]).with_chunks(&[rows, width]),
            };
            if let Some(level) = gzip {
                dataset.with_shuffle().with_deflate(level);
            }
            dataset.with_fletcher32();
        };
        let positions = triples(&bodies.x, &bodies.y, &bodies.z);
        store("Coordinates", 3, Numbers::Real(positions));
        let velocities = triples(&bodies.vx, &bodies.vy, &bodies.vz);
        store("Velocities", 3, Numbers::Real(velocities));
        let masses = members().map(|i| bodies.mass[i]).collect();
        store("Masses", 1, Numbers::Real(masses));
        let ids = members().map(|i| bodies.id[i]).collect();
        store("ParticleIDs", 1, Numbers::Id(ids));
        builder.add_group(part.finish());
    }
    builder.finish_to(file).map_err(|error| match error {
        Error::Io(fault) => fault.into(),
        other => WriteFault::Hdf5(other.to_string()),
    })
}

#[cfg(test)]
mod tests;
