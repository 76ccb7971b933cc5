//! Tests of the reader of REBOUND's archives.

use std::io::Cursor;
use std::path::Path;

use super::super::{Format, Loaded, ReadError, load_from};
use super::*;
use crate::units::SOLAR_MASS;

/// Values by which an archive is written.
#[derive(Clone, Copy)]
enum Value<'a> {
    Real(f64),
    Integer(i32),
    Bytes(&'a [u8]),
}

/// A field by its number and its name.
type Written<'a> = (u32, &'a str, Value<'a>);

fn head(version: &str) -> Vec<u8> {
    let mut head = [MAGIC, version.as_bytes(), b"\0", &[b'f'; 64]].concat();
    head.truncate(HEAD as usize);
    head
}

/// The fields of a snapshot, and what comes after them.
fn snapshot(has_names: bool, index: u32, fields: &[Written<'_>]) -> Vec<u8> {
    let mut bytes = vec![];
    for (number, name, value) in fields.iter().chain(&[(9999, "end", Value::Bytes(&[]))]) {
        let value = match value {
            Value::Real(value) => value.to_le_bytes().to_vec(),
            Value::Integer(value) if has_names && name.starts_with('N') => {
                i64::from(*value).to_le_bytes().to_vec()
            }
            Value::Integer(value) => value.to_le_bytes().to_vec(),
            Value::Bytes(value) => value.to_vec(),
        };
        let length = value.len() as u64;
        match has_names {
            true => {
                bytes.extend((name.len() as u64 + 1).to_le_bytes());
                bytes.extend(length.to_le_bytes());
                bytes.extend(name.bytes().chain([0]));
            }
            false => {
                bytes.extend(u64::from(*number).to_le_bytes());
                bytes.extend(length.to_le_bytes());
            }
        }
        bytes.extend(value);
    }
    bytes.extend([index, 0, 0].map(u32::to_le_bytes).concat());
    bytes
}

/// Particles of these masses. Number k of body i is `at + i + k / 16`.
fn particles(has_names: bool, masses: &[f64], at: f64) -> Vec<u8> {
    let row = if has_names { 14 } else { 16 };
    let number = |body: usize, mass: f64, k: usize| match k {
        0..6 => at + body as f64 + k as f64 / 16.0,
        9 => mass,
        _ => 0.0,
    };
    let rows = masses.iter().enumerate();
    rows.flat_map(|(body, mass)| (0..row).flat_map(move |k| number(body, *mass, k).to_le_bytes()))
        .collect()
}

/// An archive of version 4 or 5 with a snapshot of time 0 and, of `later` fields, another.
fn archive(
    has_names: bool,
    masses: &[f64],
    first: &[Written<'_>],
    later: &[Written<'_>],
) -> Vec<u8> {
    let bodies = particles(has_names, masses, 0.0);
    let start = [
        (0, "t", Value::Real(0.0)),
        (4, "N", Value::Integer(masses.len() as i32)),
        (85, "particles", Value::Bytes(&bodies)),
        (20, "collision", Value::Integer(0)),
    ];
    let mut bytes = head(if has_names { "5.2.2" } else { "4.4.3" });
    bytes.extend(snapshot(has_names, 0, &[&start, first].concat()));
    if !later.is_empty() {
        bytes.extend(snapshot(has_names, 1, later));
    }
    bytes
}

fn load(bytes: &[u8]) -> Result<Loaded, ReadError> {
    load_from(Cursor::new(bytes), Path::new("archive.bin"), None)
}

fn refusal(bytes: &[u8]) -> String {
    load(bytes).unwrap_err().to_string()
}

#[test]
fn archives_that_rebound_wrote_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/others");
    for name in ["4.4.rebound", "5.2.rebound"] {
        let loaded = super::super::load(&folder.join(name), None).unwrap();
        assert_eq!(loaded.format, Format::Rebound);
        let Snapshot { time, bodies } = &loaded.snapshot;
        // As REBOUND prints them.
        assert_eq!(*time, 1.000_000_000_000_000_4);
        assert_eq!(bodies.mass, [1.0, 1e-3, 1e-6, 0.0, 0.0]);
        assert_eq!(bodies.x[1], 0.899_998_518_456_776_7);
        assert_eq!(bodies.y[4], 2.874_168_920_848_59);
        assert_eq!(bodies.vx[2], -3.533_350_761_828_966_6);
        let units = loaded.units.unwrap();
        assert_eq!((units.length, units.time), (ASTRONOMICAL_UNIT, YEAR));
        assert!((units.mass / SOLAR_MASS - 1.0).abs() < 1e-9, "{units:?}");
        assert_eq!(loaded.notes, Vec::<String>::new());
    }
}

#[test]
fn the_last_snapshot_is_read_with_what_the_first_tells() {
    for has_names in [false, true] {
        let moved = particles(has_names, &[1.0, 2.0], 10.0);
        let later = [
            (0, "t", Value::Real(0.5)),
            (85, "particles", Value::Bytes(&moved)),
        ];
        let bytes = archive(has_names, &[1.0, 2.0], &[], &later);
        let loaded = load(&bytes).unwrap();
        let Snapshot { time, bodies } = &loaded.snapshot;
        assert_eq!(*time, 0.5);
        assert_eq!(bodies.body(1).position, [11.0, 11.0625, 11.125]);
        assert_eq!(bodies.body(1).velocity, [11.1875, 11.25, 11.3125]);
        assert_eq!(bodies.id, [0, 1]);
        assert_eq!(loaded.units, None);
        let [note] = &loaded.notes[..] else {
            panic!("{:?}", loaded.notes)
        };
        assert!(
            note.contains("2 snapshots: the last is read, of time 0.5"),
            "{note}"
        );

        // A run that was killed while it wrote.
        let second = bytes.len() - snapshot(has_names, 1, &later).len();
        for cut in [second + 1, second + 20, bytes.len() - 1] {
            let loaded = load(&bytes[..cut]).unwrap();
            assert_eq!(loaded.snapshot.time, 0.0);
            assert!(
                loaded.notes[0].contains("snapshot 1 of the archive was cut short"),
                "{:?}",
                loaded.notes
            );
        }
        for cut in [HEAD as usize + 1, second - 1] {
            assert!(refusal(&bytes[..cut]).contains("cut short"), "{cut}");
        }
        let number_of_second = bytes.len() - AFTER as usize;
        let mut damaged = bytes;
        damaged[number_of_second] = 7;
        assert!(refusal(&damaged).contains("not number 1"));
    }
}

#[test]
fn test_particles_and_variational_ones_are_told_apart() {
    for has_names in [false, true] {
        let active = (7, "N_active", Value::Integer(1));
        let loaded = load(&archive(has_names, &[1.0, 2.0, 0.0], &[active], &[])).unwrap();
        assert_eq!(loaded.snapshot.bodies.mass, [1.0, 0.0, 0.0]);
        assert!(
            loaded.notes[0].starts_with("1 test particles have masses"),
            "{:?}",
            loaded.notes
        );

        let acting = (8, "testparticle_type", Value::Integer(1));
        let loaded = load(&archive(
            has_names,
            &[1.0, 2.0, 0.0],
            &[active, acting],
            &[],
        ))
        .unwrap();
        assert_eq!(loaded.snapshot.bodies.mass, [1.0, 2.0, 0.0]);
        assert!(
            loaded.notes[0].contains("do not act on each other"),
            "{:?}",
            loaded.notes
        );
    }
    // From version 5 on they are not among the particles.
    let variational = (5, "N_var", Value::Integer(1));
    let loaded = load(&archive(false, &[1.0, 2.0, 0.0], &[variational], &[])).unwrap();
    assert_eq!(loaded.snapshot.bodies.mass, [1.0, 2.0]);
    assert!(
        loaded.notes[0].contains("variational"),
        "{:?}",
        loaded.notes
    );
    let loaded = load(&archive(true, &[1.0, 2.0, 0.0], &[variational], &[])).unwrap();
    assert_eq!(loaded.snapshot.bodies.len(), 3);
}

#[test]
fn the_constant_of_gravity_tells_units_or_is_refused() {
    for has_names in [false, true] {
        let with = |g: f64| archive(has_names, &[1.0, 2.0], &[(1, "G", Value::Real(g))], &[]);
        let year = 4.0 * std::f64::consts::PI.powi(2);
        let loaded = load(&with(year)).unwrap();
        let units = loaded.units.unwrap();
        assert!((units.g() / year - 1.0).abs() < 1e-15, "{units:?}");
        assert_eq!(units.length, ASTRONOMICAL_UNIT);
        assert!(
            loaded.notes[0].contains("au, Msun, yr"),
            "{:?}",
            loaded.notes
        );
        assert_eq!(load(&with(6.674e-11)).unwrap().units.unwrap().length, 1.0);
        assert!(refusal(&with(17.0)).contains("it is 17, and there are no names of units"));
        assert!(refusal(&with(f64::NAN)).contains("not a finite number"));

        let hash = |name: &str| {
            let hash = if has_names { djb2 } else { murmur3 };
            Value::Integer(hash(name.as_bytes()).cast_signed())
        };
        let fields = [
            (1, "G", Value::Real(1.0)),
            (130, "python_unit_l", hash("yr2pi")),
            (131, "python_unit_m", hash("au")),
            (132, "python_unit_t", hash("msun")),
        ];
        let units = load(&archive(has_names, &[1.0], &fields, &[]))
            .unwrap()
            .units
            .unwrap();
        assert_eq!(units.length, ASTRONOMICAL_UNIT);
        assert!((units.mass / SOLAR_MASS - 1.0).abs() < 1e-9, "{units:?}");
    }
}

#[test]
fn what_is_left_out_is_said_and_what_is_wrong_refused() {
    let fields = [
        (2, "softening", Value::Real(0.1)),
        (52, "boundary", Value::Integer(2)),
    ];
    let loaded = load(&archive(false, &[1.0], &fields, &[])).unwrap();
    assert!(
        loaded.notes[0].contains("the softening, boundary conditions"),
        "{:?}",
        loaded.notes
    );

    // It is open in the first, and ended in the second.
    let open = [(63, "is_synchronized", Value::Integer(0))];
    let ended = [(63, "is_synchronized", Value::Integer(1))];
    for has_names in [false, true] {
        assert!(refusal(&archive(has_names, &[1.0], &open, &[])).contains("sim.synchronize()"));
        assert!(load(&archive(has_names, &[1.0], &open, &ended)).is_ok());
    }

    let more = [(4, "N", Value::Integer(3))];
    assert!(refusal(&archive(false, &[1.0], &more, &[])).contains("3 particles have 128 bytes"));
    let negative = [(4, "N", Value::Integer(-1))];
    assert!(refusal(&archive(true, &[1.0], &negative, &[])).contains("0 particles have 112 bytes"));
    let long = [(1, "G", Value::Bytes(&[0; 12]))];
    assert!(refusal(&archive(false, &[1.0], &long, &[])).contains("has 12 bytes"));
    assert!(refusal(&archive(false, &[f64::INFINITY], &[], &[])).contains("mass"));

    let old = [head("3.6.2"), snapshot(false, 0, &[])].concat();
    assert!(refusal(&old).contains("REBOUND 3.6.2, and archives of 3.18 to 5 are read"));
    assert!(refusal(MAGIC).contains("not the head"));
}

#[test]
fn names_of_units_have_rebounds_hashes() {
    // By rebound.hash of 4.4.3, and by an archive of 5.2.2.
    for (name, hash) in [
        ("m", 1_920_155_205),
        ("au", 2_145_773_914),
        ("parsec", 3_140_669_553),
    ] {
        assert_eq!(murmur3(name.as_bytes()), hash, "{name}");
    }
    for (name, hash) in [
        ("sidereal_yr", 2_188_499_802),
        ("years", 1_392_532_186),
        ("myr", 592_305_560),
    ] {
        assert_eq!(murmur3(name.as_bytes()), hash, "{name}");
    }
    assert_eq!(
        [djb2(b"yr"), djb2(b"au"), djb2(b"msun")],
        [5_864_016, 5_863_227, 2_090_519_944]
    );
}
