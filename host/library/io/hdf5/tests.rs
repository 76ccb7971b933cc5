//! Tests of the HDF5 reader and writer.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use hdf5_pure::{AttrValue, FileBuilder, GroupBuilder};

use super::super::{Contents, Format, Reading, Velocities, load, load_from, read_from};
use super::*;
use crate::bodies::{Bodies, Body};

fn bytes_of(build: impl FnOnce(&mut FileBuilder)) -> Vec<u8> {
    let mut builder = FileBuilder::new();
    build(&mut builder);
    builder.finish().unwrap()
}

fn contents(bytes: &[u8]) -> Result<Contents, ReadFault> {
    read_bytes(&mut &bytes[..], bytes.len() as u64)
}

fn parse(bytes: &[u8]) -> Result<Snapshot, ReadFault> {
    let read = read_from(Cursor::new(bytes), Path::new("a.hdf5"), Some(Format::Hdf5));
    read.map(|(snapshot, _)| snapshot)
        .map_err(|error| error.fault)
}

/// Reads the bytes as a file, and compares with what comes of them in memory.
fn parse_file(bytes: &[u8]) -> Result<Snapshot, ReadFault> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hdf5");
    fs::write(&path, bytes).unwrap();
    let of_file = load(&path, None).map(|loaded| loaded.snapshot);
    let of_memory = parse(bytes);
    assert_eq!(of_file.as_ref().ok(), of_memory.as_ref().ok());
    of_memory
}

fn message(bytes: &[u8]) -> String {
    parse_file(bytes).unwrap_err().to_string()
}

/// A snapshot of four stars, in whose header, group of stars and root a test may put more.
fn stars(
    header: impl FnOnce(&mut GroupBuilder),
    part: impl FnOnce(&mut GroupBuilder),
    more: impl FnOnce(&mut FileBuilder),
) -> Vec<u8> {
    bytes_of(|builder| {
        let mut group = builder.create_group("Header");
        header(&mut group);
        builder.add_group(group.finish());
        let mut group = builder.create_group("PartType4");
        for (name, first) in [("Coordinates", 0.0), ("Velocities", 100.0)] {
            let values: Vec<f64> = (0..12).map(|i| first + f64::from(i)).collect();
            group
                .create_dataset(name)
                .with_f64_data(&values)
                .with_shape(&[4, 3]);
        }
        group.create_dataset("Masses").with_f64_data(&[1.0; 4]);
        part(&mut group);
        builder.add_group(group.finish());
        more(builder);
    })
}

fn with_header(attributes: &[(&str, AttrValue)]) -> Vec<u8> {
    let header = |group: &mut GroupBuilder| {
        for (name, value) in attributes {
            group.set_attr(name, value.clone());
        }
    };
    stars(header, |_| (), |_| ())
}

/// Contents that another program might write: f32, a mass table, disk stars, no ids.
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

/// A mass table and masses of single bodies, which agree or not, and numbers that should be one.
#[test]
fn what_is_said_twice_must_agree() {
    let with_table = |mass: f64| {
        let table = vec![0.0, 0.0, 0.0, 0.0, mass, 0.0];
        with_header(&[("MassTable", AttrValue::F64Array(table))])
    };
    assert_eq!(parse_file(&with_table(1.0)).unwrap().bodies.mass, [1.0; 4]);
    assert_eq!(
        parse_file(&with_table(1.0 + 1e-7)).unwrap().bodies.mass,
        [1.0 + 1e-7; 4]
    );
    let told = message(&with_table(3.0));
    assert!(
        told.contains("/PartType4/Masses: row 0 is 1, and /Header/MassTable says 3"),
        "{told}"
    );
    for name in ["Time", "Redshift", "NumFilesPerSnapshot", "UnitMass_in_g"] {
        let several = with_header(&[(name, AttrValue::F64Array(vec![0.0, 1.0]))]);
        let told = message(&several);
        let expected = format!("/Header/{name}: it has 2 numbers, and should be one");
        assert!(told.contains(&expected), "{told}");
    }
    let box_of_axes = with_header(&[("BoxSize", AttrValue::F64Array(vec![4.0; 3]))]);
    let notes = contents(&box_of_axes).unwrap().notes;
    assert!(notes[0].contains("BoxSize = 4"), "{notes:?}");
}

#[test]
fn other_programs_files_are_read() {
    let bytes = bytes_of(foreign);
    let contents = contents(&bytes).unwrap();
    let snapshot = contents.snapshot;
    assert_eq!(snapshot.time, 2.5);
    assert_eq!(snapshot.bodies.body(1).position, [4.0, 5.0, 6.0]);
    assert_eq!(snapshot.bodies.mass, [3.0; 2]);
    assert_eq!(snapshot.bodies.id, [0, 1]);
    assert_eq!(snapshot.bodies.kind, [BodyKind::Star; 2]);
    let (length, mass, time) = (1.0, 5.0, 7.0);
    assert_eq!(contents.units, Some(Units { length, mass, time }));
    assert_eq!(contents.notes.len(), 1, "{:?}", contents.notes);
    assert!(contents.notes[0].contains("no ParticleIDs"));
}

#[test]
fn what_is_no_snapshot_is_explained() {
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
    let found = message(&part([3, 2]));
    assert!(found.contains("[3, 2], not [3, 3]"), "{found}");
    assert!(message(&part([2, 3])).contains("/PartType4/Velocities"));
}

/// Integers of any width, alone or in a list, are numbers; most of a header is integers.
#[test]
fn integer_attributes_are_read() {
    for time in [
        AttrValue::I8(3),
        AttrValue::I32(3),
        AttrValue::I64(3),
        AttrValue::U16(3),
        AttrValue::U64(3),
        AttrValue::I32Array(vec![3]),
        AttrValue::F32(3.0),
        AttrValue::F64Array(vec![3.0]),
    ] {
        let bytes = with_header(&[("Time", time.clone())]);
        assert_eq!(parse_file(&bytes).unwrap().time, 3.0, "{time:?}");
    }
    let sizes = [
        ("UnitLength_in_cm", AttrValue::I32(100)),
        ("UnitMass_in_g", AttrValue::I64(1000)),
        ("UnitVelocity_in_cm_per_s", AttrValue::U32(100)),
    ];
    let contents = contents(&with_header(&sizes)).unwrap();
    assert_eq!(contents.units, Some(Units::SI));
    let text = AttrValue::AsciiString("soon".into());
    assert!(message(&with_header(&[("Time", text)])).contains("/Header/Time"));
}

#[test]
fn several_files_are_told_by_the_header() {
    for files in [
        AttrValue::I32(2),
        AttrValue::U32(2),
        AttrValue::I64(2),
        AttrValue::I32Array(vec![2]),
        AttrValue::F64(2.0),
    ] {
        let found = message(&with_header(&[("NumFilesPerSnapshot", files)]));
        assert!(found.contains("spread over 2 files"), "{found}");
    }
    let found = message(&with_header(&[("NumFilesPerSnapshot", AttrValue::I32(-1))]));
    assert!(found.contains("no number of files"), "{found}");
    let four = || vec![0, 0, 0, 0, 4, 0];
    let counted = |here: Vec<u32>, total: Vec<u32>, high: Vec<u32>| {
        with_header(&[
            ("NumFilesPerSnapshot", AttrValue::I32(1)),
            ("NumPart_ThisFile", AttrValue::U32Array(here)),
            ("NumPart_Total", AttrValue::U32Array(total)),
            ("NumPart_Total_HighWord", AttrValue::U32Array(high)),
        ])
    };
    assert!(parse_file(&counted(four(), four(), vec![0; 6])).is_ok());
    // Programs that write one file may leave the totals out.
    assert!(parse_file(&counted(four(), vec![0; 6], vec![0; 6])).is_ok());
    for (total, high) in [
        (vec![0, 0, 0, 0, 8, 0], vec![0; 6]),
        (four(), vec![0, 0, 0, 0, 1, 0]),
        (vec![0, 300, 0, 0, 4, 0], vec![0; 6]),
    ] {
        let found = message(&counted(four(), total, high));
        assert!(found.contains("files are missing"), "{found}");
    }
}

#[test]
fn several_files_are_one_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let path = |k: u32| folder.path().join(format!("snap_003.{k}.hdf5"));
    let piece = |time: f64| {
        with_header(&[
            ("Time", AttrValue::F64(time)),
            ("NumFilesPerSnapshot", AttrValue::I32(2)),
            (
                "NumPart_ThisFile",
                AttrValue::U32Array(vec![0, 0, 0, 0, 4, 0]),
            ),
            ("NumPart_Total", AttrValue::U32Array(vec![0, 0, 0, 0, 8, 0])),
        ])
    };
    fs::write(path(0), piece(0.5)).unwrap();
    let told = load(&path(0), None).unwrap_err().to_string();
    assert!(
        told.contains("snap_003.1.hdf5") && told.contains("no such file"),
        "{told}"
    );
    fs::write(path(1), piece(0.5)).unwrap();
    for k in [0, 1] {
        let snapshot = load(&path(k), None).unwrap().snapshot;
        assert_eq!((snapshot.time, snapshot.bodies.len()), (0.5, 8));
    }
    fs::write(path(1), piece(1.5)).unwrap();
    let told = load(&path(1), None).unwrap_err().to_string();
    assert!(told.contains("another snapshot"), "{told}");
}

#[test]
fn units_of_gizmo_are_read_and_compared_with_its_gravity() {
    let gizmo = |g: f64| {
        contents(&with_header(&[
            ("UnitLength_In_CGS", AttrValue::F64(3.085678e21)),
            ("UnitMass_In_CGS", AttrValue::F64(1.989e43)),
            ("UnitVelocity_In_CGS", AttrValue::F64(1e5)),
            ("Gravitational_Constant_In_Code_Inits", AttrValue::F64(g)),
        ]))
        .unwrap()
    };
    let found = gizmo(43007.1);
    assert!((found.units.unwrap().g() / 43007.1 - 1.0).abs() < 1e-3);
    let others = found.notes.len();
    let other = gizmo(1.0).notes;
    assert_eq!(other.len(), others + 1);
    assert!(
        other.iter().any(|note| note.contains("the gravity 1e0")),
        "{other:?}"
    );
}

#[test]
fn tracers_of_arepo_are_left_out() {
    let bytes = stars(
        |_| (),
        |_| (),
        |builder| {
            let mut part = builder.create_group("PartType3");
            for name in ["TracerID", "ParentID"] {
                part.create_dataset(name).with_u64_data(&[1, 2]);
            }
            builder.add_group(part.finish());
        },
    );
    let found = contents(&bytes).unwrap();
    assert_eq!(found.snapshot.bodies.len(), 4);
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("/PartType3 has tracers"))
    );
}

/// `swiftsimio` fills the table with the mass of the first body.
#[test]
fn masses_of_single_bodies_are_taken_in_swifts_units() {
    let bytes = stars(
        |header| {
            let table = vec![0.0, 0.0, 0.0, 0.0, 3.0, 0.0];
            header.set_attr("MassTable", AttrValue::F64Array(table));
        },
        |_| (),
        |builder| {
            let mut system = builder.create_group("Units");
            for name in [
                "Unit length in cgs (U_L)",
                "Unit mass in cgs (U_M)",
                "Unit time in cgs (U_t)",
            ] {
                system.set_attr(name, AttrValue::F64(1.0));
            }
            builder.add_group(system.finish());
        },
    );
    let found = contents(&bytes).unwrap();
    assert_eq!(found.snapshot.bodies.mass, [1.0; 4]);
    assert!(found.program.is_some_and(|name| name.contains("SWIFT")));
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("MassTable says 3"))
    );
}

#[test]
fn counts_are_compared() {
    let counted = |here: Vec<i32>| with_header(&[("NumPart_ThisFile", AttrValue::I32Array(here))]);
    assert_eq!(
        parse_file(&counted(vec![0, 0, 0, 0, 4, 0]))
            .unwrap()
            .bodies
            .len(),
        4
    );
    for (here, said) in [
        (vec![0, 0, 0, 0, 99, 0], "99"),
        (vec![0, 0, 0, 0, 0, 0], "4 rows"),
        (vec![0, 7, 0, 0, 4, 0], "/PartType1"),
        (vec![0, 0, 0, 0, 4, 0, 2], "/PartType6"),
        (vec![], "4 rows"),
    ] {
        let found = message(&counted(here));
        assert!(found.contains(said), "{found}");
    }
}

#[test]
fn cosmological_snapshots_are_refused() {
    for (name, value) in [
        ("Redshift", AttrValue::F64(1.0)),
        ("Redshift", AttrValue::F64(f64::NAN)),
        ("HubbleParam", AttrValue::F64(0.7)),
        ("ComovingIntegrationOn", AttrValue::I32(1)),
    ] {
        let found = message(&with_header(&[(name, value)]));
        assert!(
            found.contains(name) && found.contains("cosmological"),
            "{found}"
        );
    }
    for (group, name) in [
        ("Parameters", "ComovingIntegrationOn"),
        ("Cosmology", "Cosmological run"),
    ] {
        let more = |builder: &mut FileBuilder| {
            let mut parameters = builder.create_group(group);
            parameters.set_attr(name, AttrValue::I32Array(vec![1]));
            builder.add_group(parameters.finish());
        };
        let found = message(&stars(|_| (), |_| (), more));
        assert!(found.contains(name), "{found}");
    }
    let plain = [
        ("Redshift", AttrValue::I32(0)),
        ("HubbleParam", AttrValue::F64(1.0)),
        ("ComovingIntegrationOn", AttrValue::I32(0)),
    ];
    assert!(parse_file(&with_header(&plain)).is_ok());
}

/// Against numbers by hand: a = 0.5, h = 0.7.
#[test]
fn cosmological_snapshots_are_made_physical() {
    let physical = |bytes: &[u8], physical| {
        let reading = Reading {
            physical,
            ..Reading::default()
        };
        load_from(Cursor::new(bytes), Path::new("a.hdf5"), reading)
    };
    let header = [
        ("Time", AttrValue::F64(0.5)),
        ("Redshift", AttrValue::F64(1.0)),
        ("HubbleParam", AttrValue::F64(0.7)),
        ("Omega0", AttrValue::F64(0.3)),
        ("OmegaLambda", AttrValue::F64(0.7)),
    ];
    let bytes = with_header(&header);
    let told = physical(&bytes, None).unwrap_err().to_string();
    assert!(
        told.contains("/Header/Redshift") && told.contains("physical"),
        "{told}"
    );
    let plain = with_header(&header.map(|(name, _)| (name, AttrValue::F64(0.0))));
    let plain = physical(&plain, None).unwrap().snapshot.bodies;
    let found = physical(&bytes, Some(Velocities::Peculiar)).unwrap();
    let bodies = found.snapshot.bodies;
    let near =
        |found: f64, expected: f64| assert!((found - expected).abs() <= 1e-14 * expected.abs());
    for i in 0..plain.len() {
        near(bodies.x[i], plain.x[i] * 0.5 / 0.7);
        near(bodies.vz[i], plain.vz[i] * 0.5_f64.sqrt());
        near(bodies.mass[i], plain.mass[i] / 0.7);
    }
    assert!(
        found.notes.iter().any(|note| note.contains("redshift 1.0")),
        "{:?}",
        found.notes
    );
}

/// Stars in datasets with these attributes, for positions, velocities and masses.
fn with_attributes(header: &[(&str, AttrValue)], attributes: [(&str, AttrValue); 3]) -> Vec<u8> {
    bytes_of(|builder| {
        let mut group = builder.create_group("Header");
        for (name, value) in header {
            group.set_attr(name, value.clone());
        }
        builder.add_group(group.finish());
        let mut group = builder.create_group("PartType4");
        let shapes = [("Coordinates", 3), ("Velocities", 3), ("Masses", 1)];
        for ((name, width), (attribute, value)) in shapes.into_iter().zip(attributes) {
            let dataset = group
                .create_dataset(name)
                .with_f64_data(&vec![1.0; 4 * width as usize]);
            if width > 1 {
                dataset.with_shape(&[4, width]);
            }
            dataset.set_attr(attribute, value);
        }
        builder.add_group(group.finish());
    })
}

#[test]
fn units_of_datasets_are_read() {
    let kpc: Units = "kpc,1e10Msun,km/s".parse().unwrap();
    let cgs = |name: &'static str| {
        [3.085_678e21, 1e5, 1.988_41e43].map(|factor| (name, AttrValue::F64(factor)))
    };
    let texts = ["kpc", "km s**-1", "1.00e+10 Msol"];
    let texts = texts.map(|text| ("units", AttrValue::AsciiString(text.into())));
    for attributes in [
        cgs("to_cgs"),
        cgs("CGSConversionFactor"),
        cgs("Conversion factor to CGS (not including cosmological corrections)"),
        texts.clone(),
    ] {
        let found = contents(&with_attributes(&[], attributes.clone())).unwrap();
        let units = found.units.unwrap_or_else(|| panic!("{attributes:?}"));
        let ratio = units.factors_to(&kpc);
        for ratio in [ratio.length, ratio.mass, ratio.time] {
            assert!((ratio - 1.0).abs() < 1e-5, "{attributes:?}: {units}");
        }
    }
    // Where the file tells other units elsewhere, it is said which are taken.
    let header = [
        ("UnitLength_in_cm", AttrValue::F64(3.085_678e18)),
        ("UnitMass_in_g", AttrValue::F64(1.988_41e33)),
        ("UnitVelocity_in_cm_per_s", AttrValue::F64(1e5)),
    ];
    let found = contents(&with_attributes(&header, texts)).unwrap();
    let note = found
        .notes
        .iter()
        .find(|note| note.contains("attributes of datasets"));
    assert!(
        note.is_some_and(|note| note.contains("which are taken")),
        "{:?}",
        found.notes
    );
    assert!((found.units.unwrap().length / 3.085_678e16 - 1.0).abs() < 1e-5);
    let text = |name: &'static str, text: &str| (name, AttrValue::AsciiString(text.into()));
    for unknown in [
        ["furlong"; 3].map(|unit| text("units", unit)),
        [text("units", "kpc"), text("a", "b"), text("a", "b")],
        [
            text("VarDescription", "Co-moving coordinates in kpc/h"),
            text("a", "b"),
            text("a", "b"),
        ],
        [
            text("Expression for physical CGS units", "a U_L  [ cm ]"),
            text("a", "b"),
            text("a", "b"),
        ],
    ] {
        let found = contents(&with_attributes(&[], unknown)).unwrap();
        assert_eq!(found.units, None);
        let notes = found.notes.concat();
        assert!(
            notes.contains("tells of units by /PartType4/Coordinates/"),
            "{notes}"
        );
    }
    let code = ["code_length", "code_velocity", "code_mass"].map(|unit| text("units", unit));
    let found = contents(&with_attributes(&[], code)).unwrap();
    assert!(!found.notes.concat().contains("units"), "{:?}", found.notes);
}

#[test]
fn units_of_the_header_are_read_or_told() {
    let kpc: Units = "kpc,1e10Msun,km/s".parse().unwrap();
    let text = |name: &'static str, text: &str| (name, AttrValue::AsciiString(text.into()));
    let number = |name: &'static str, number: f64| (name, AttrValue::F64(number));
    for header in [
        vec![text("Units", "kpc, 1e10 Msun, km/s")],
        vec![
            text("length_unit", "kpc"),
            text("mass_unit", "1e10 Msun"),
            text("velocity_unit", "km/s"),
        ],
        vec![
            number("UnitLength_in_kpc", 1.0),
            number("UnitMass_in_Msun", 1e10),
            number("UnitVelocity_in_km_per_s", 1.0),
        ],
    ] {
        let found = contents(&with_header(&header)).unwrap();
        assert!(
            found.units.is_some_and(|units| units.are_those_of(&kpc)),
            "{header:?}"
        );
    }
    for header in [
        vec![
            number("UnitLength", 1.0),
            number("UnitMass", 1.0),
            number("UnitVelocity", 1.0),
        ],
        vec![text("Units", "furlong")],
    ] {
        let found = contents(&with_header(&header)).unwrap();
        assert_eq!(found.units, None);
        let notes = found.notes.concat();
        assert!(notes.contains("tells of units by /Header/Unit"), "{notes}");
    }
}

#[test]
fn units_are_found_however_they_are_named() {
    for names in [
        [
            "unitlength_in_cm",
            "unitmass_in_g",
            "unitvelocity_in_cm_per_s",
        ],
        [
            "Unit_Length_In_CGS",
            "Unit_Mass_In_CGS",
            "Unit_Velocity_In_CGS",
        ],
    ] {
        let sizes = [100.0, 1000.0, 100.0];
        let header: Vec<_> = names.into_iter().zip(sizes.map(AttrValue::F64)).collect();
        assert_eq!(
            contents(&with_header(&header)).unwrap().units,
            Some(Units::SI),
            "{names:?}"
        );
    }
    let by_time = [
        ("UnitLength_in_cm", AttrValue::AsciiString("100.0".into())),
        ("UnitMass_in_g", AttrValue::F64(1000.0)),
        ("UnitTime_in_s", AttrValue::F64(1.0)),
    ];
    assert_eq!(
        contents(&with_header(&by_time)).unwrap().units,
        Some(Units::SI)
    );
}

#[test]
fn the_constant_of_gravity_of_a_file_is_not_passed_over() {
    let with = |name: &str, g: f64| contents(&with_header(&[(name, AttrValue::F64(g))])).unwrap();
    let about_gravity = |found: &Contents| found.notes.iter().any(|note| note.contains("/Header/"));
    let found = with("Gravitational_Constant_In_Code_Inits", 43007.1);
    let kpc: Units = "kpc,1e10Msun,km/s".parse().unwrap();
    assert!(
        found.units.unwrap().are_those_of(&kpc) && about_gravity(&found),
        "{:?}",
        found.notes
    );
    let found = with("G", 17.0);
    assert!(
        found.units.is_none() && about_gravity(&found),
        "{:?}",
        found.notes
    );
    for (name, g) in [("G", 1.0), ("GravityConstantInternal", 0.0)] {
        let found = with(name, g);
        assert!(
            found.units.is_none() && !about_gravity(&found),
            "{:?}",
            found.notes
        );
    }
}

#[test]
fn cgs_is_not_unknown() {
    let cgs = [
        ("UnitLength_in_cm", AttrValue::F64(1.0)),
        ("UnitMass_in_g", AttrValue::F64(1.0)),
        ("UnitVelocity_in_cm_per_s", AttrValue::F64(1.0)),
    ];
    let found = contents(&with_header(&cgs)).unwrap().units.unwrap();
    assert!((found.g() / 6.6743e-8 - 1.0).abs() < 1e-12, "{found}");
    // What makes no system is said to be none.
    let half = contents(&with_header(&cgs[..2])).unwrap();
    assert_eq!(half.units, None);
    assert!(half.notes[0].contains("unknown"), "{:?}", half.notes);

    let bodies: Bodies = [star(1)].into_iter().collect();
    let snapshot = Snapshot { time: 0.5, bodies };
    for units in [None, Some("cm,g,s".parse::<Units>().unwrap())] {
        let mut bytes = Vec::new();
        write(&mut bytes, &snapshot, units, None).unwrap();
        let found = contents(&bytes).unwrap();
        assert_eq!(found.units.map(|units| units.length), units.map(|_| 0.01));
        assert!(found.notes.is_empty(), "{:?}", found.notes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert_eq!(text.contains("UnitLength_in_cm"), units.is_some());
    }
}

/// Nothing that the file has and the simulation has not is dropped without a word.
#[test]
fn notes_tell_what_is_left_out() {
    let bytes = stars(
        |header| {
            header.set_attr("BoxSize", AttrValue::F64(100.0));
        },
        |part| {
            part.create_dataset("Softenings").with_f64_data(&[0.1; 4]);
            part.create_dataset("Metals\u{1b}[31m")
                .with_f64_data(&[0.1; 4]);
        },
        |builder| {
            let mut part = builder.create_group("PartType0");
            for name in ["Coordinates", "Velocities"] {
                part.create_dataset(name)
                    .with_f64_data(&[1.0; 3])
                    .with_shape(&[1, 3]);
            }
            for name in ["Masses", "InternalEnergy"] {
                part.create_dataset(name).with_f64_data(&[1.0]);
            }
            part.create_dataset("ParticleIDs").with_u64_data(&[7]);
            builder.add_group(part.finish());
        },
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hdf5");
    fs::write(&path, bytes).unwrap();
    let notes = load(&path, None).unwrap().notes.join("\n");
    for said in [
        "BoxSize = 100",
        "1 bodies are gas",
        "InternalEnergy",
        "/PartType4",
        "Softenings",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    assert!(!notes.contains('\u{1b}') && notes.contains("Metals\\u{1b}"));
}

#[test]
fn ids_are_integers_or_refused() {
    let with = |build: &dyn Fn(&mut GroupBuilder)| stars(|_| (), build, |_| ());
    let signed = with(&|part| {
        part.create_dataset("ParticleIDs")
            .with_i64_data(&[1, 2, 5, i64::MAX]);
    });
    assert_eq!(
        parse_file(&signed).unwrap().bodies.id,
        [1, 2, 5, i64::MAX as u64]
    );
    let large = with(&|part| {
        part.create_dataset("ParticleIDs")
            .with_u64_data(&[1, 2, 5, u64::MAX]);
    });
    assert_eq!(parse_file(&large).unwrap().bodies.id[3], u64::MAX);
    let negative = with(&|part| {
        part.create_dataset("ParticleIDs")
            .with_i64_data(&[5, -1, -2, 7]);
    });
    let found = message(&negative);
    assert!(
        found.contains("/PartType4/ParticleIDs") && found.contains("row 1 is -1"),
        "{found}"
    );
    for value in [1.5, -3.0, f64::NAN, 1e30] {
        let real = with(&|part| {
            let ids = [1.0, 2.0, value, 4.0];
            part.create_dataset("ParticleIDs").with_f64_data(&ids);
        });
        let found = message(&real);
        assert!(found.contains("row 2"), "{found}");
    }
}

fn star(id: u64) -> Body {
    Body {
        position: [1.0, 2.0, 3.0],
        velocity: [4.0, 5.0, 6.0],
        mass: 7.0,
        id,
        kind: BodyKind::Star,
    }
}

/// Half a million bodies, gzip, in chunks of so many rows.
fn compressed(chunk: u64) -> Vec<u8> {
    let n = 500_000_u64;
    let values: Vec<f64> = (0..3 * n).map(|i| i as f64).collect();
    bytes_of(|builder| {
        let header = builder.create_group("Header");
        builder.add_group(header.finish());
        let mut part = builder.create_group("PartType1");
        for name in ["Coordinates", "Velocities"] {
            part.create_dataset(name)
                .with_f64_data(&values)
                .with_shape(&[n, 3])
                .with_chunks(&[chunk, 3])
                .with_deflate(1);
        }
        part.create_dataset("Masses")
            .with_f64_data(&values[..n as usize])
            .with_chunks(&[chunk])
            .with_deflate(1);
        builder.add_group(part.finish());
    })
}

/// A reader that decompresses a large chunk anew for each block of it takes 60 times as long here
/// (and took 44 s for a million bodies).
#[test]
fn large_chunks_are_read_in_linear_time() {
    let [many, one] = [8192, 500_000].map(|chunk| {
        let bytes = compressed(chunk);
        // The best of three: this machine may have other things to do.
        let times = [(); 3].map(|()| {
            let start = std::time::Instant::now();
            let bodies = parse(&bytes).unwrap().bodies;
            assert_eq!((bodies.z[499_999], bodies.mass[7]), (1_499_999.0, 7.0));
            start.elapsed()
        });
        times.into_iter().min().unwrap()
    });
    println!("many chunks {many:?}, one {one:?}");
    assert!(one < 6 * many, "many chunks {many:?}, one {one:?}");
}

#[test]
fn chunks_and_filters_are_undone() {
    let n = 1000_u64;
    let values: Vec<f64> = (0..3 * n).map(|i| (i as f64).sqrt()).collect();
    type Change = fn(&mut hdf5_pure::DatasetBuilder);
    let filters: [Change; 5] = [
        |data| {
            data.with_shuffle().with_deflate(6);
        },
        |data| {
            data.with_fletcher32();
        },
        |data| {
            data.with_lzf();
        },
        |data| {
            data.with_shuffle().with_lzf().with_fletcher32();
        },
        |_| (),
    ];
    // Chunks that do not divide the dataset, and chunks of single columns.
    for chunk in [[7, 3], [1000, 3], [64, 1], [300, 2]] {
        for filter in filters {
            let bytes = bytes_of(|builder| {
                let header = builder.create_group("Header");
                builder.add_group(header.finish());
                let mut part = builder.create_group("PartType1");
                for name in ["Coordinates", "Velocities"] {
                    let data = part.create_dataset(name);
                    data.with_f64_data(&values)
                        .with_shape(&[n, 3])
                        .with_chunks(&chunk);
                    filter(data);
                }
                part.create_dataset("Masses").with_f64_data(&values[..1000]);
                builder.add_group(part.finish());
            });
            let bodies = parse_file(&bytes).unwrap().bodies;
            for i in [0, 6, 7, 511, 999] {
                let expected = [0, 1, 2].map(|axis| values[3 * i + axis]);
                assert_eq!(bodies.body(i).position, expected, "{chunk:?}");
                assert_eq!(bodies.body(i).velocity, expected, "{chunk:?}");
            }
        }
    }
}

/// A file of 64 kB said to hold 4 million bodies.
#[test]
fn nothing_is_allocated_on_the_word_of_a_header() {
    let unwritten = bytes_of(|builder| {
        let header = builder.create_group("Header");
        builder.add_group(header.finish());
        let mut part = builder.create_group("PartType1");
        part.create_dataset("Coordinates")
            .with_f64_data(&[0.0; 3])
            .with_shape(&[1, 3]);
        builder.add_group(part.finish());
    });
    // The first dimension of the dataspace is the only u64 of this value.
    let mut claims = unwritten.clone();
    let at = claims
        .windows(16)
        .position(|window| window[..8] == 1_u64.to_le_bytes() && window[8..] == 3_u64.to_le_bytes())
        .unwrap();
    claims[at..at + 8].copy_from_slice(&4_000_000_u64.to_le_bytes());
    assert!(parse_file(&claims).is_err());
}

const DAMAGED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/damaged");

/// Files that took gigabytes, lost bodies or changed ids with an earlier reader.
#[test]
fn damaged_files_are_refused() {
    for (name, said) in [
        // A chunk of 4 GB in a file of 16 kB.
        ("chunk-size.hdf5", "/PartType4/Coordinates"),
        // Inflated dimensions of chunks.
        ("chunk-dims.hdf5", "/PartType4/Velocities"),
        // A bit of a group's header: its bodies were left out.
        ("group-bit.hdf5", "/PartType4"),
        ("negative-ids.hdf5", "NumPart_ThisFile says 99"),
    ] {
        let path = Path::new(DAMAGED).join(name);
        let error = load(&path, None).unwrap_err().to_string();
        assert!(error.contains(said), "{name}: {error}");
        let bytes = Cursor::new(fs::read(&path).unwrap());
        let error = read_from(bytes, Path::new("memory"), Some(Format::Hdf5));
        assert!(error.unwrap_err().to_string().contains(said), "{name}");
    }
}

/// f16, and floats whose bits are where no processor has them.
#[test]
fn odd_numbers_are_named() {
    let sound = stars(|_| (), |_| (), |_| ());
    assert!(parse_file(&sound).is_ok());
    // Bit offset 0, precision 64, exponent at 52 of 11 bits, mantissa at 0 of 52, bias 1023.
    let layout = [0, 0, 64, 0, 52, 11, 0, 52, 255, 3, 0, 0];
    let at = sound
        .windows(layout.len())
        .position(|window| window == layout)
        .unwrap();
    let mut odd = sound.clone();
    odd[at + 2] = 32;
    assert!(parse_file(&odd).is_err());
    let h5py = Path::new(DAMAGED).join("half-precision.hdf5");
    let found = load(&h5py, None).unwrap_err().to_string();
    assert!(found.contains("f16"), "{found}");
}

/// A bit of each byte of a file of ours: refused, or what was written.
#[test]
fn flipped_bits_are_noticed() {
    let bodies = [BodyKind::Star, BodyKind::Gas, BodyKind::Star]
        .into_iter()
        .zip(1..)
        .map(|(kind, id)| Body { kind, ..star(id) })
        .collect();
    let mut bytes = Vec::new();
    let snapshot = Snapshot { time: 0.5, bodies };
    write(&mut bytes, &snapshot, Some(Units::SI), None).unwrap();
    let written = contents(&bytes).unwrap();
    let (mut refused, mut other) = (0, Vec::new());
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        match contents(&changed) {
            Err(_) => refused += 1,
            Ok(found) if found.snapshot == written.snapshot && found.units == written.units => {}
            Ok(_) => other.push(at),
        }
    }
    // Indices of chunks have room for more of them. Nobody reads the zeros there.
    let used = bytes.iter().filter(|byte| **byte != 0).count();
    assert!(refused > used / 2, "{refused} of {used}");
    assert!(other.is_empty(), "{other:?}");
    for at in 0..bytes.len() {
        if let Ok(found) = parse(&bytes[..at]) {
            assert_eq!(found, written.snapshot, "cut at {at}");
        }
    }
}

/// Chunk indices, filters and versions of the format that this program does not write.
#[test]
fn h5pys_files_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/h5py");
    for (name, is_lossy) in [
        ("earliest", false),
        ("latest-gzip", false),
        ("two-unlimited", false),
        ("lzf", false),
        ("szip", false),
        ("scale-offset", true),
    ] {
        let bytes = fs::read(Path::new(folder).join(name).with_extension("hdf5")).unwrap();
        let Snapshot { time, bodies } = parse_file(&bytes).unwrap();
        assert_eq!((time, bodies.len()), (3.0, 12), "{name}");
        assert!(bodies.id.iter().copied().eq(0..12), "{name}");
        let tolerance = if is_lossy { 1e-4 } else { 1e-9 };
        assert!(
            (bodies.mass[7] - 1.0 / 12.0).abs() < tolerance,
            "{name}: {}",
            bodies.mass[7]
        );
        let square = |column: &[f64]| column.iter().map(|x| x * x).sum::<f64>() / 12.0;
        for column in [&bodies.x, &bodies.y, &bodies.z, &bodies.vx, &bodies.vz] {
            // Normal deviates.
            assert!((0.1..4.0).contains(&square(column)), "{name}: {column:?}");
        }
    }
}

#[test]
fn particles_of_amuse_are_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/h5py/amuse.hdf5");
    let found = load(&path, None).unwrap();
    assert_eq!(found.summary(), "HDF5 of AMUSE");
    let units = found.units.unwrap();
    assert_eq!(super::super::read_units(&path, None).unwrap(), Some(units));
    assert_eq!((units.mass, units.length), (1.5e30, 3e16));
    assert!((units.speed() / 1e3 - 1.0).abs() < 1e-12);
    let years = found.snapshot.time * units.time / 31_557_600.0;
    assert!((years - 2.0).abs() < 1e-12, "{years}");
    let bodies = &found.snapshot.bodies;
    assert_eq!(bodies.mass, [1.0, 2.0, 3.0]);
    assert_eq!(bodies.x, [10.0, 11.0, 12.0]);
    assert_eq!(bodies.vz, [14.0, 16.0, 18.0]);
    assert!((bodies.z[0] * 3e16 / 2.0 - 1.0).abs() < 1e-12);
    assert_eq!(bodies.id, [11, 12, 1 << 63]);
    for said in ["radius", "2 states"] {
        assert!(
            found.notes.iter().any(|note| note.contains(said)),
            "{:?}",
            found.notes
        );
    }
}

/// A unit of another dimension, a timestamp in another system, and particles of another set.
#[test]
fn particles_of_amuse_that_make_no_sense_are_told_of() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/h5py/amuse.hdf5");
    let whole = fs::read(path).unwrap();
    let at = |text: &[u8], from: usize| {
        let found = whole[from..]
            .windows(text.len())
            .position(|bytes| bytes == text);
        from + found.expect("the text")
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hdf5");
    let changed = |place: usize, text: &[u8]| {
        let mut bytes = whole.clone();
        bytes[place..place + text.len()].copy_from_slice(text);
        fs::write(&path, bytes).unwrap();
        load(&path, None)
    };
    // Of the last state, which comes behind the first.
    let time = at(b"(31557600.0 * system", at(b"(31557600.0 * system", 0) + 1);
    let length = at(b"(3e+16 * system.get('S.I.').base('length'))", time);
    let told = changed(length, b"(3e+16 * system.get('S.I.').base('mass')  )");
    let told = told.unwrap_err().to_string();
    assert!(told.contains("is not of a length"), "{told}");
    let told = changed(time, b"(31557600.0 * system.get('S.I.').base('mass'))").unwrap_err();
    assert!(told.to_string().contains("is not of a time"), "{told}");
    let told = changed(time, b"(31557600.0 * system.get('body').base('time'))").unwrap();
    assert_eq!(told.snapshot.time, 0.0);
    assert!(
        told.notes
            .iter()
            .any(|note| note.contains("in units of N bodies")),
        "{:?}",
        told.notes
    );
    let keys: Vec<u8> = [11_u64, 12]
        .iter()
        .flat_map(|key| key.to_le_bytes())
        .collect();
    let others: Vec<u8> = [1_u64, 2, 3]
        .iter()
        .flat_map(|key| key.to_le_bytes())
        .collect();
    let told = changed(at(&keys, 0), &others).unwrap_err().to_string();
    assert!(told.contains("several sets of particles"), "{told}");
    assert!(
        changed(at(&keys, 0), &others[..16]).is_ok(),
        "one key is in both"
    );
}
