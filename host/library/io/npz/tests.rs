//! Tests of the reader and writer of NumPy's archives.

use super::*;
use crate::bodies::Body;

#[test]
fn array_headers_are_numpys() {
    let header = Array::header("<f8", "9, 3");
    assert_eq!(header.len() % 64, 0);
    assert_eq!(&header[..10], b"\x93NUMPY\x01\x00\x76\x00");
    let array = Array::read(&mut &header[..], "a").unwrap();
    assert_eq!(array.shape, [9, 3]);
    let scalar = Array::read(&mut &Array::header("|u1", "")[..], "a").unwrap();
    assert!(scalar.shape.is_empty());
    let text = "{'descr': '>i4', 'fortran_order': True, 'shape': (7,), }";
    let array = Array::parse(text).unwrap();
    assert!(array.column_after_column && array.numbers.big_endian);
    assert_eq!((array.numbers.bytes, &array.shape[..]), (4, &[7][..]));
    for bad in [
        "",
        "{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (7,), }",
        "{'descr': '<c16', 'fortran_order': False, 'shape': (7,), }",
        "{'descr': '<f2', 'fortran_order': False, 'shape': (7,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-7,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 7",
    ] {
        assert_eq!(Array::parse(bad), None, "{bad}");
    }
}

/// An archive of arrays given as type, shape and bytes, without a seal, as another program writes
/// it.
fn archive(arrays: &[(&str, &str, &str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = Writer::new(&mut bytes).unwrap();
    for (name, kind, shape, bytes) in arrays {
        let put = |file: &mut dyn Write| file.write_all(bytes);
        archive.array(name, kind, shape, put).unwrap();
    }
    archive.finish().unwrap();
    bytes.truncate(bytes.len() - seal::comment().len());
    // The length of the comment ends the archive now.
    let length = bytes.len() - 2;
    bytes[length..].fill(0);
    bytes
}

fn parse(bytes: &[u8]) -> Result<Snapshot, ReadFault> {
    read(io::Cursor::new(bytes), bytes.len() as u64).map(|contents| contents.snapshot)
}

fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect()
}

#[test]
fn other_names_and_types_are_read() {
    let mut arrays = vec![
        (
            "pos",
            ">f4",
            "2, 3",
            floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ),
        ("masses", "|u1", "2,", vec![7, 8]),
    ];
    for (i, name) in COORDINATES[3..].iter().enumerate() {
        arrays.push((name, ">f4", "2,", floats(&[i as f32, 10.0 + i as f32])));
    }
    let snapshot = parse(&archive(&arrays)).unwrap();
    assert_eq!(snapshot.bodies.body(1).position, [4.0, 5.0, 6.0]);
    assert_eq!(snapshot.bodies.body(1).velocity, [10.0, 11.0, 12.0]);
    assert_eq!(snapshot.bodies.mass, [7.0, 8.0]);
    assert_eq!(snapshot.bodies.id, [0, 1]);
    assert_eq!(snapshot.time, 0.0);
}

/// Letters, as papers have them, and one mass for all.
#[test]
fn letters_and_one_mass_are_read() {
    let places = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let speeds = floats(&[7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
    for (r, v, m) in [("r", "v", "m"), ("X", "V", "M"), ("R", "V", "mass")] {
        let arrays = [
            (r, ">f4", "2, 3", places.clone()),
            (v, ">f4", "2, 3", speeds.clone()),
            (m, "|u1", "", vec![7]),
        ];
        let bodies = parse(&archive(&arrays)).expect("a snapshot").bodies;
        assert_eq!(bodies.body(1).position, [4.0, 5.0, 6.0]);
        assert_eq!(bodies.body(1).velocity, [10.0, 11.0, 12.0]);
        assert_eq!(bodies.mass, [7.0, 7.0]);
    }
    // Next to components a letter is something else.
    let mut arrays = vec![
        ("r", ">f4", "2,", floats(&[100.0, 200.0])),
        ("v", ">f4", "2, 3", speeds),
        ("m", "|u1", "", vec![7]),
    ];
    for (i, name) in COORDINATES[..3].iter().enumerate() {
        arrays.push((name, ">f4", "2,", floats(&[i as f32, 10.0 + i as f32])));
    }
    let contents = parse(&archive(&arrays)).expect("a snapshot");
    assert_eq!(contents.bodies.body(1).position, [10.0, 11.0, 12.0]);
    assert_eq!(contents.bodies.mass, [7.0, 7.0]);
}

#[test]
fn damage_and_leftovers_are_found() {
    let zeros = |name, shape, bytes| (name, "|u1", shape, vec![0; bytes]);
    let whole = [
        ("mass", "|u1", "2,", vec![177, 178]),
        zeros("position", "2, 3", 6),
        zeros("velocity", "2, 3", 6),
        ("time", "<f8", "", 1.5_f64.to_le_bytes().to_vec()),
        ("id", "|u1", "2,", vec![200, 201]),
    ];
    let sound = archive(&whole);
    assert_eq!(parse(&sound).unwrap().bodies.id, [200, 201]);
    // One element changed, in an array of each of the three ways to read one.
    for (name, element) in [
        ("mass", &[177, 178][..]),
        ("time", &1.5_f64.to_le_bytes()),
        ("id", &[200, 201]),
    ] {
        let mut damaged = sound.clone();
        let at = damaged
            .windows(element.len())
            .position(|window| window == element)
            .unwrap();
        damaged[at] ^= 1;
        let message = parse(&damaged).unwrap_err().to_string();
        assert!(
            message.contains("checksum") && message.contains(name),
            "{message}"
        );
    }
    let mut longer = whole;
    longer[4].3.push(42);
    let message = parse(&archive(&longer)).unwrap_err().to_string();
    assert!(
        message.contains("id.npy") && message.contains("more of it"),
        "{message}"
    );
}

#[test]
fn what_is_missing_or_misshapen_is_named() {
    let message = |arrays: &[_]| parse(&archive(arrays)).unwrap_err().to_string();
    let mass = ("mass", "|u1", "2,", vec![7, 8]);
    let position = ("position", "|u1", "4, 2", vec![0; 8]);
    assert!(message(&[]).contains("mass.npy"));
    assert!(message(std::slice::from_ref(&mass)).contains("position.npy"));
    assert!(message(&[mass.clone(), position]).contains("[4, 2], not [2, 3]"));
    let position = ("position", "|u1", "2, 3", vec![0; 6]);
    assert!(message(&[mass, position.clone()]).contains("velocity.npy"));
    let huge = ("mass", "<f8", "9999999999999,", vec![7, 8]);
    assert!(message(&[huge]).contains("more than the file holds"));
    let velocity = ("velocity", "|u1", "2, 3", vec![0; 6]);
    let short = ("mass", "<f8", "2,", vec![7, 8]);
    assert!(matches!(
        parse(&archive(&[position, velocity, short])),
        Err(ReadFault::Io(_))
    ));
    assert!(matches!(parse(b"no archive"), Err(ReadFault::Malformed(_))));
}

/// Each bit of a file of ours, those of names and of the zip format's own fields included.
#[test]
fn every_flipped_bit_is_noticed() {
    let bodies = (0..3)
        .map(|i| Body {
            position: [f64::from(i), 0.1, -2.0],
            velocity: [0.5; 3],
            mass: 0.5,
            id: i as u64,
            kind: BodyKind::Dark,
        })
        .collect();
    let snapshot = Snapshot { time: 0.25, bodies };
    let mut bytes = Vec::new();
    write(&mut bytes, &snapshot, Some(Units::SI)).unwrap();
    assert_eq!(parse(&bytes).unwrap(), snapshot);
    for bit in 0..8 * bytes.len() {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(parse(&changed).is_err(), "bit {bit}");
    }
    for at in 0..bytes.len() {
        assert!(parse(&bytes[..at]).is_err(), "cut at {at}");
    }
}

fn of_tests(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    std::fs::read(format!("{folder}/{name}")).unwrap()
}

/// A file of NumPy has no seal: a name that is not that of the member itself is found.
#[test]
fn names_are_compared() {
    for name in ["2167", "2543", "2617"] {
        let bytes = of_tests(&format!("damaged/name-bit-{name}.npz"));
        let message = parse(&bytes).unwrap_err().to_string();
        assert!(message.contains("another name"), "{message}");
    }
    let sound = of_tests("numpy/compressed.npz");
    let written = parse(&sound).unwrap();
    for bit in 0..8 * sound.len() {
        let mut changed = sound.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        if let Ok(found) = parse(&changed) {
            assert_eq!(found, written, "bit {bit}");
        }
    }
}

#[test]
fn members_do_not_share_bytes() {
    let message = parse(&of_tests("damaged/overlapping-members.npz"))
        .unwrap_err()
        .to_string();
    assert!(message.contains("share bytes"), "{message}");
}

#[test]
fn other_arrays_are_named() {
    let bytes = of_tests("numpy/compressed.npz");
    let contents = read(io::Cursor::new(&bytes), bytes.len() as u64).unwrap();
    assert_eq!(contents.snapshot.time, 0.625);
    assert_eq!(
        contents.snapshot.bodies.body(8).position,
        [1.0, -8.0, 1.0078125]
    );
    assert_eq!(contents.notes.len(), 1);
    assert!(contents.notes[0].contains("softening.npy"));
}

#[test]
fn a_series_is_one_archive() {
    let snapshots: Vec<Snapshot> = [0.0, 0.5, 1.5]
        .map(|time| Snapshot {
            time,
            bodies: crate::initial_conditions::plummer(5, 1).unwrap(),
        })
        .to_vec();
    let mut bytes = vec![];
    let read = |index: usize| Ok::<_, io::Error>(snapshots[index].clone());
    write_series(&mut bytes, (3, 5), Some(Units::SI), read).unwrap();
    let size = bytes.len() as u64;
    let mut archive = Archive::open(io::Cursor::new(&bytes), size).unwrap();
    assert_eq!(archive.few("time", 3).unwrap(), [0.0, 0.5, 1.5]);
    let positions = archive.few("position", 45).unwrap();
    let last = &snapshots[2].bodies;
    assert_eq!(positions[42..], [last.x[4], last.y[4], last.z[4]]);
    assert_eq!(archive.told().unwrap().units, Some(Units::SI));
    // It is none of the files that readers of one snapshot take.
    assert!(super::read(io::Cursor::new(&bytes), size).is_err());
    let fault = |_| Err::<Snapshot, _>(io::Error::other("gone"));
    let fault = write_series(&mut vec![], (3, 5), None, fault).unwrap_err();
    assert_eq!(fault.to_string(), "gone");
}

/// An archive of two bodies, and these arrays.
fn with(more: &[(&str, &str, &str, Vec<u8>)]) -> Result<Contents, ReadFault> {
    let rows = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let mut arrays = vec![
        ("mass", "|u1", "2, 1", vec![7, 8]),
        ("POS", ">f4", "2, 3", rows.clone()),
        ("vel", ">f4", "2, 3", rows),
    ];
    arrays.extend(more.iter().cloned());
    let bytes = archive(&arrays);
    read(io::Cursor::new(&bytes), bytes.len() as u64)
}

fn letters(text: &str) -> Vec<u8> {
    text.chars()
        .flat_map(|c| u32::from(c).to_le_bytes())
        .collect()
}

#[test]
fn units_and_times_of_archives_are_read_or_told() {
    let pc: Units = "pc,Msun,Myr".parse().unwrap();
    let units = ("units", "<U11", "", letters("pc,Msun,Myr"));
    let found = with(&[units, ("time", "<U5", "", letters("5 Myr"))]).unwrap();
    assert!(found.units.unwrap().are_those_of(&pc));
    assert!((found.snapshot.time - 5.0).abs() < 1e-12);
    assert_eq!(found.notes, Vec::<String>::new());
    let list = ("units", "|S4", "3,", b"pc\0\0MsunMyr\0".to_vec());
    let found = with(&[list, ("Time", ">f4", "", floats(&[5.0]))]).unwrap();
    assert!(found.units.unwrap().are_those_of(&pc));
    assert_eq!((found.snapshot.time, found.notes.len()), (5.0, 0));
    let entries = [
        ("UnitLength_in_kpc", ">f4", "", floats(&[1.0])),
        ("UnitMass_in_Msun", ">f4", "1,", floats(&[1e10])),
        ("velocity_unit", "<U4", "", letters("km/s")),
    ];
    let found = with(&entries).unwrap();
    let kpc: Units = "kpc,1e10Msun,km/s".parse().unwrap();
    assert!(found.units.unwrap().are_those_of(&kpc));
    assert_eq!(found.notes, Vec::<String>::new());
    let found = with(&[("G", ">f4", "", floats(&[0.0043]))]).unwrap();
    assert!(
        found
            .units
            .unwrap()
            .are_those_of(&"pc,Msun,km/s".parse().unwrap())
    );
    for (array, part) in [
        (
            ("units", "<U7", "", letters("furlong")),
            "by units = furlong, which are not understood",
        ),
        (
            ("pos_unit", "<U3", "", letters("kpc")),
            "by pos_unit, which are not understood",
        ),
        (
            ("redshift", ">f4", "", floats(&[1.0])),
            "tells of a cosmology",
        ),
        (("time", "<U5", "", letters("5 Myr")), "the time is 5.0"),
        (("G", ">f4", "", floats(&[17.0])), "G.npy is 17"),
    ] {
        let found = with(&[array]).unwrap();
        assert!(
            found.notes.concat().contains(part),
            "{part}: {:?}",
            found.notes
        );
        assert_eq!(found.units, None);
    }
}

#[test]
fn times_in_fields_are_those_of_snapshots() {
    let fields =
        "('t', '>f4'), ('m', '>f4'), ('pos', '>f4', (3,)), ('vel', '>f4', (3,)), ('', '|V4')";
    let row = |time: f32| floats(&[time, 7.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0]);
    let found = |times: &[f32]| {
        let bytes: Vec<u8> = times.iter().flat_map(|time| row(*time)).collect();
        let file = structured(fields, times.len(), &bytes);
        read(io::Cursor::new(&file), file.len() as u64)
    };
    let one = found(&[5.0, 5.0]).unwrap();
    assert_eq!((one.snapshot.time, one.notes.len()), (5.0, 0));
    let ages = found(&[5.0, 6.0]).unwrap();
    assert_eq!(ages.snapshot.time, 0.0);
    assert_eq!(ages.notes, ["fields that are not used here: t"]);
    let several = found(&[0.0, 0.0, 1.0, 1.0]).unwrap_err().to_string();
    assert!(several.contains("several times"), "{several}");
}

#[test]
fn units_in_names_of_fields_and_members_are_read() {
    let row = floats(&[5.0, 7.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let fields = |names: [&str; 8]| names.map(|name| format!("('{name}', '>f4')")).join(", ");
    let found = |names| {
        let file = structured(&fields(names), 1, &row);
        read(io::Cursor::new(&file), file.len() as u64).expect("a snapshot")
    };
    let mixed = [
        "time [Myr]",
        "m_Msun",
        "x [pc]",
        "y [kpc]",
        "z (pc)",
        "vx_kms",
        "vy/(km/s)",
        "vz [km/s]",
    ];
    let contents = found(mixed);
    let units = contents.units.expect("units");
    assert_eq!(units.names(), "pc, Msun, km/s");
    let body = contents.snapshot.bodies.body(0);
    assert_eq!((body.position[0], body.mass), (1.0, 7.0));
    assert!((body.position[1] - 2000.0).abs() < 1e-9, "{body:?}");
    assert!((contents.snapshot.time * 0.977_792 - 5.0).abs() < 1e-5);
    assert_eq!(contents.notes, [""; 0]);
    let few = found(["t", "m", "x_pc", "y_pc", "z_pc", "vx", "vy", "vz"]);
    assert_eq!(few.units, None);
    assert!(
        few.notes[0].contains("(pc) make no system"),
        "{:?}",
        few.notes
    );

    let matrix = || floats(&[1.0, 2.0, 3.0]);
    let file = archive(&[
        ("mass_Msun", ">f4", "1,", floats(&[7.0])),
        ("pos [kpc]", ">f4", "1, 3", matrix()),
        ("vel_km_s", ">f4", "1, 3", matrix()),
        ("t [Myr]", ">f4", "1,", floats(&[5.0])),
    ]);
    let contents = read(io::Cursor::new(&file), file.len() as u64).expect("a snapshot");
    assert_eq!(contents.units.expect("units").names(), "kpc, Msun, km/s");
    assert_eq!(contents.notes, [""; 0]);
    assert!((contents.snapshot.time * 977.792 - 5.0).abs() < 1e-3);
}

/// Three matrices of two bodies: row by row, turned over, and turned over in Fortran's order.
#[test]
fn matrices_may_be_turned_over() {
    let rows = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let columns = floats(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let mass = ("mass", "|u1", "2,", vec![7, 8]);
    let found = parse(&archive(&[
        mass,
        ("pos", ">f4", "3, 2", columns),
        ("vel", ">f4", "2, 3", rows),
    ]));
    let bodies = found.unwrap().bodies;
    assert_eq!(bodies.body(1).position, [4.0, 5.0, 6.0]);
    assert_eq!(bodies.body(1).velocity, [4.0, 5.0, 6.0]);
}

/// A single array with fields of these names and types.
fn structured(fields: &str, rows: usize, bytes: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': [{fields}], 'fortran_order': False, 'shape': ({rows},), }}\n");
    let length = (text.len() as u16).to_le_bytes();
    [&MAGIC[..], &[1, 0], &length, text.as_bytes(), bytes].concat()
}

#[test]
fn arrays_with_fields_are_read() {
    let seven = "('m', '>f4'), ('x', '>f4'), ('y', '>f4'), ('z', '>f4'), ('vx', '>f4'), ('vy', '>f4'), ('vz', '>f4')";
    let row = [7.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let bytes = floats(&[row, row].concat());
    let bodies = parse(&structured(seven, 2, &bytes)).unwrap().bodies;
    assert_eq!(
        (bodies.mass.as_slice(), bodies.id.as_slice()),
        (&[7.0; 2][..], &[0, 1][..])
    );
    assert_eq!(bodies.body(1).velocity, [4.0, 5.0, 6.0]);
    assert_eq!(
        parse(&structured(
            &seven.to_uppercase().replace(">F4", ">f4"),
            2,
            &bytes
        ))
        .unwrap()
        .bodies,
        bodies
    );

    let nested = "('name', '<U2'), ('pos', '>f4', (3,)), ('vel', '>f4', (3,)), ('mass', '|u1'), ('id', '<u2')";
    let bytes = [&[0; 8][..], &floats(&row[1..]), &[9, 1, 2]].concat();
    let file = structured(nested, 1, &bytes);
    let contents = read(io::Cursor::new(&file), file.len() as u64).unwrap();
    let body = contents.snapshot.bodies.body(0);
    assert_eq!(
        (body.position, body.mass, body.id),
        ([1.0, 2.0, 3.0], 9.0, 513)
    );
    assert_eq!(contents.notes, ["fields that are not used here: name"]);
    let letters = nested.replace("'pos'", "'r'").replace("'mass'", "'m'");
    let lettered = parse(&structured(&letters, 1, &bytes)).expect("a snapshot");
    assert_eq!(lettered.bodies.body(0), body);

    let message = |fields: &str, rows| {
        parse(&structured(fields, rows, &bytes))
            .unwrap_err()
            .to_string()
    };
    assert!(message(nested, 99).contains("more than it holds"));
    assert!(message(&nested.replace("'vel'", "'speed'"), 1).contains("vx, vy, vz"));
    assert!(message(&nested.replace("'mass'", "'weight'"), 1).contains("mass"));
    assert!(message("('a', '<f8', (9999999999, 9999999999))", 1).contains("not read"));
}
