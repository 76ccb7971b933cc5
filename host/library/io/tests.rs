//! All formats alike: round trips, names, refusals.

use super::*;
use crate::bodies::{Body, BodyKind};

/// Bodies of all kinds, in mixed order, whose values are exact in f32.
fn snapshot(n: u64) -> Snapshot {
    let bodies = (0..n)
        .map(|i| {
            let t = i as f64;
            Body {
                position: [t / 8.0, -t, 1.0 + t / 1024.0],
                velocity: [0.25 * t, -0.0, -3.0],
                mass: t / 2.0,
                id: 3 * i + 1_000,
                kind: BodyKind::ALL[(i % 3) as usize],
            }
        })
        .collect();
    Snapshot { time: -2.5, bodies }
}

/// Snapshot as a format returns it: Tipsy and HDF5 group by kind, Tipsy without ids renumbers.
fn as_seen_by(format: Format, snapshot: &Snapshot) -> Snapshot {
    let of = |kind| snapshot.bodies.iter().filter(move |body| body.kind == kind);
    let mut bodies: Bodies = match format {
        Format::Tipsy(_) | Format::Hdf5 | Format::Hdf5Gzip => {
            BodyKind::ALL.into_iter().flat_map(of).collect()
        }
        _ => snapshot.bodies.clone(),
    };
    if let Format::Tipsy(TipsyDialect::Standard | TipsyDialect::Native) = format {
        bodies.number_ids();
    }
    Snapshot {
        time: snapshot.time,
        bodies,
    }
}

#[test]
fn every_format_round_trips_through_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for format in Format::ALL {
        for n in [1, 2, 3, 100] {
            let path = folder.path().join(format!("{n}.{}", format.name()));
            let written = snapshot(n);
            write(&path, format, &written, Overwrite::Refuse).unwrap();
            let expected = (as_seen_by(format, &written), format);
            assert_eq!(read(&path, Some(format)).unwrap(), expected, "{format} {n}");
            // From memory as well, which HDF5 reads in another way.
            let bytes = io::Cursor::new(fs::read(&path).unwrap());
            let name = Path::new("memory");
            assert_eq!(read_from(bytes, name, Some(format)).unwrap(), expected);
        }
    }
}

#[test]
fn every_format_becomes_every_other() {
    let folder = tempfile::tempdir().unwrap();
    let original = snapshot(50);
    for first in Format::ALL {
        for second in Format::ALL {
            let [a, b] = [("a", first), ("b", second)]
                .map(|(name, format)| folder.path().join(name).with_extension(format.extension()));
            write(&a, first, &original, Overwrite::Allow).unwrap();
            let (read_first, _) = read(&a, None).unwrap();
            write(&b, second, &read_first, Overwrite::Allow).unwrap();
            let (read_second, found) = read(&b, None).unwrap();
            let expected = as_seen_by(second, &as_seen_by(first, &original));
            assert_eq!(read_second, expected, "{first} to {second}");
            assert_eq!(found, as_found(second));
        }
    }
}

/// The format that a reader finds: compression is that of datasets.
fn as_found(format: Format) -> Format {
    match format {
        Format::Hdf5Gzip => Format::Hdf5,
        format => format,
    }
}

#[test]
fn double_precision_and_large_ids_survive() {
    let folder = tempfile::tempdir().unwrap();
    let body = Body {
        position: [0.1, -1.0 / 3.0, 1e300],
        velocity: [5e-324, -0.0, 2.0_f64.sqrt()],
        mass: 1e-200,
        id: u64::MAX,
        kind: BodyKind::Dark,
    };
    let written = Snapshot {
        time: 0.1,
        bodies: [body].into_iter().collect(),
    };
    for format in Format::ALL {
        let path = folder.path().join("a").with_extension(format.extension());
        if let Format::Tipsy(_) = format {
            assert!(write(&path, format, &written, Overwrite::Allow).is_err());
            continue;
        }
        write(&path, format, &written, Overwrite::Allow).unwrap();
        let (found, _) = read(&path, None).unwrap();
        assert_eq!(found, written, "{format}");
        assert!(found.bodies.vy[0].is_sign_negative());
    }
}

#[test]
fn units_are_kept_where_there_is_a_place_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let units: Units = "kpc,1e10Msun,km/s".parse().unwrap();
    for format in Format::ALL {
        let path = folder.path().join("a").with_extension(format.extension());
        for given in [None, Some(units)] {
            write_in_units(&path, format, &snapshot(3), given, Overwrite::Allow).unwrap();
            let found = read_units(&path, None).unwrap();
            match (found, format) {
                (Some(found), Format::Allpairs | Format::Npz | Format::Csv) => {
                    assert_eq!(found, units);
                }
                (Some(found), Format::Hdf5 | Format::Hdf5Gzip) => {
                    // Through centimetres and grams: some roundings.
                    let factors = found.factors_to(&units);
                    for factor in [factors.length, factors.mass, factors.time] {
                        assert!((factor - 1.0).abs() <= 8.0 * f64::EPSILON, "{factor}");
                    }
                }
                (Some(_), _) => panic!("{format}"),
                (None, format) if format.records_units() => assert_eq!(given, None),
                (None, _) => {}
            }
        }
    }
}

#[test]
fn dialects_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    for format in Format::ALL {
        // A single id 0 is the same file as a single potential 0: see `tipsy`.
        for n in [2, 3, 100] {
            let name = match format {
                Format::Tipsy(_) => "a.00001".to_owned(),
                _ => format!("a.{}", format.extension()),
            };
            let path = folder.path().join(name);
            write(&path, format, &snapshot(n), Overwrite::Allow).unwrap();
            assert_eq!(read(&path, None).unwrap().1, as_found(format));
        }
    }
}

#[cfg(feature = "hdf5")]
#[test]
fn compression_makes_hdf5_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hdf5");
    let even: Bodies = (0..5000_u32)
        .map(|i| Body {
            position: [f64::from(i), 0.0, 0.0],
            velocity: [0.0; 3],
            mass: 1.0,
            id: u64::from(i),
            kind: BodyKind::Star,
        })
        .collect();
    let written = Snapshot {
        time: 0.0,
        bodies: even,
    };
    let [plain, small] = [Format::Hdf5, Format::Hdf5Gzip].map(|format| {
        write(&path, format, &written, Overwrite::Allow).unwrap();
        assert_eq!(read(&path, None).unwrap().0, written);
        fs::metadata(&path).unwrap().len()
    });
    assert!(small < plain / 10, "{small} of {plain} bytes");
}

/// Numbers without names, as NBODY6, PeTar and others take them.
#[cfg(all(feature = "csv", feature = "npz"))]
#[test]
fn tables_without_names_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let read_as = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        load(&path, None)
    };
    let rows = "0.25 1 2 3 4 5 6\n0.75 -1 -2 -3 -4 -5 -6\n";
    let with_ids = "7 0.25 1 2 3 4 5 6\n8 0.75 -1 -2 -3 -4 -5 -6\n";
    let mut array = b"\x93NUMPY\x01\0\x76\0".to_vec();
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 7), }";
    array.extend(format!("{header:<117}\n").bytes());
    for word in rows.split_whitespace() {
        array.extend(word.parse::<f64>().unwrap().to_le_bytes());
    }
    for (name, bytes, ids) in [
        ("a.txt", rows.as_bytes(), [0, 1]),
        ("a.dat", rows.as_bytes(), [0, 1]),
        ("a.csv", rows.replace(' ', "\t").as_bytes(), [0, 1]),
        ("b.csv", with_ids.as_bytes(), [7, 8]),
        ("a.npy", &array, [0, 1]),
    ] {
        let loaded = read_as(name, bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let units = read_units(&folder.path().join(name), None);
        assert_eq!(units.unwrap(), loaded.units, "{name}");
        let bodies = &loaded.snapshot.bodies;
        assert_eq!(bodies.mass, [0.25, 0.75], "{name}");
        assert_eq!(bodies.body(1).position, [-1.0, -2.0, -3.0], "{name}");
        assert_eq!(bodies.body(0).velocity, [4.0, 5.0, 6.0], "{name}");
        assert_eq!(bodies.id, ids, "{name}");
        assert!(
            loaded.notes[0].contains("m x y z vx vy vz"),
            "{:?}",
            loaded.notes
        );
    }
    for (bytes, part) in [
        ("1 2 3 4 5 6\n", "no names of columns, and 6 numbers"),
        ("0.25 1 2 3 4 5 6\n0.25 1 2 3 4 5\n", "line 2"),
        ("0.25 1 2 3 4 5 nan\n", "line 1"),
        ("0.25,1,2,3,4,5,6\n", "no column `x`"),
        ("1.5 0.25 1 2 3 4 5 6\n", "line 1: column 1: id"),
    ] {
        let error = read_as("c.txt", bytes.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(part), "{bytes}: {error}");
    }
    array.truncate(array.len() - 8);
    assert!(read_as("c.npy", &array).is_err());
}

#[test]
fn names_tell_formats() {
    let standard = Some(Format::Tipsy(TipsyDialect::Standard));
    for (name, format) in [
        ("a.csv", Some(Format::Csv)),
        ("a.CSV", Some(Format::Csv)),
        ("b/run.00128", standard),
        ("a.std", standard),
        ("galaxy_20K.bin", Some(Format::Tipsy(TipsyDialect::WithIds))),
        ("a.h5", Some(Format::Hdf5)),
        ("snap_000.0.hdf5", Some(Format::Hdf5)),
        ("dat.10", Some(Format::Nbody6)),
        ("b/fort.10", Some(Format::Nbody6)),
        ("run.10", standard),
        ("cluster.petar", Some(Format::Petar)),
        ("cluster.input", Some(Format::Petar)),
        ("a.fits", None),
        ("csv", None),
        ("", None),
    ] {
        assert_eq!(Format::from_path(Path::new(name)), format, "{name}");
    }
    for format in Format::ALL.into_iter().chain(Format::FOR_PEERS) {
        assert_eq!(format.name().parse(), Ok(format));
        let name = Path::new("a").with_extension(format.extension());
        assert!(Format::from_path(&name).is_some(), "{format}");
    }
    let message = "fits".parse::<Format>().unwrap_err().to_string();
    assert!(
        message.contains("`fits`") && message.contains("tipsy-ids"),
        "{message}"
    );
}

/// Names say nothing about what is read: content does.
#[test]
fn content_tells_formats_whatever_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let original = snapshot(20);
    for format in Format::ALL {
        for name in [
            "dat.10",
            "snapshot_000",
            "x.bin",
            "y.hdf5",
            "z.npz",
            "w.csv",
            "v.tipsy",
        ] {
            let path = folder.path().join(name);
            write(&path, format, &original, Overwrite::Allow).unwrap();
            let expected = (as_seen_by(format, &original), as_found(format));
            assert_eq!(read(&path, None).unwrap(), expected, "{format} as {name}");
            let bytes = io::Cursor::new(fs::read(&path).unwrap());
            assert_eq!(read_from(bytes, &path, None).unwrap(), expected);
            read_units(&path, None).unwrap();
            assert_eq!(read_points(&path).unwrap().positions.len(), 20);
        }
    }
}

/// Content that is known and not read is called by its own name, whatever the file's.
#[test]
fn foreign_content_is_called_by_its_name() {
    let record = |body: &[u8]| {
        let length = (body.len() as u32).to_be_bytes();
        [&length, body, &length, &[0; 8]].concat()
    };
    let petar = [
        &1_i64.to_le_bytes()[..],
        &2_i64.to_le_bytes(),
        &0.5_f64.to_le_bytes(),
        // Eleven numbers of a body, as no PeTar that is known writes them.
        &[1; 176],
    ]
    .concat();
    let long_record = [&40_u64.to_le_bytes()[..], &[7; 40], &40_u64.to_le_bytes()].concat();
    let mut user_block = vec![0; 2048];
    user_block[1024..1032].copy_from_slice(b"\x89HDF\r\n\x1a\n");
    let numbers = || (0..700).map(|k| 0.5 - f64::from(k) / 3.0);
    let floats: Vec<u8> = numbers().flat_map(|x| (x as f32).to_le_bytes()).collect();
    let doubles: Vec<u8> = numbers().flat_map(f64::to_le_bytes).collect();
    let mut tar = vec![b'a'; 512];
    tar[100..257].fill(0);
    tar[257..262].copy_from_slice(b"ustar");
    for (bytes, name) in [
        (&b"SIMPLE  =                    T"[..], "FITS"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "gzip"),
        (
            b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0aaaabbbbcccc\x13\0\0\0[Content_Types].xml",
            "spreadsheet",
        ),
        (b"\x80\x04\x95\x10\0\0", "pickle"),
        (b"<!DOCTYPE html>\n<html></html>\n", "web page"),
        (
            b"<?xml version=\"1.0\"?>\n<VOTABLE version=\"1.4\">\n",
            "VOTable",
        ),
        (b"{\"mass\": [1.0]}", "JSON"),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            "git lfs pull",
        ),
        (b"\xff\xfex\0,\0y\0", "UTF-16"),
        (b"ALLPAIRS-RESUME\n\0\0\0\0", "allpairs resume"),
        (b"# vtk DataFile Version 3.0\n", ".vtp"),
        (b"(Particle\n  N = 1\n", "Starlab"),
        (&record(&[7; 40]), "Fortran"),
        (&petar, "PeTar"),
        (&tar, "tar"),
        (&long_record, "Fortran"),
        (&user_block, "user's"),
        (&vec![0; 4096], "zeros"),
        (&floats, "without a header"),
        (&doubles, "without a header"),
        (b"x\0,\0y\0\n\0", "UTF-16"),
        (b"\0x\0,\0y\0\n", "UTF-16"),
        (b"}q\0(X\x01\0\0\0mq\x01K\x01u.", "pickle"),
        (b"cnumpy.core.multiarray\n_reconstruct\n", "pickle"),
    ] {
        for path in ["x.bin", "x.csv", "x.hdf5", "snapshot_000", "dat.10"] {
            let reader = io::Cursor::new(bytes);
            let error = read_from(reader, Path::new(path), None).unwrap_err();
            assert!(
                matches!(error.fault, ReadFault::Foreign { .. }),
                "{name}: {error}"
            );
            assert!(error.to_string().contains(name), "{name}: {error}");
        }
    }
}

#[test]
fn paths_that_hold_no_snapshot_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let fault = |path: &Path| read(path, None).unwrap_err().fault;
    assert!(matches!(
        fault(&folder.path().join("none.bin")),
        ReadFault::NotFound
    ));
    assert!(matches!(fault(folder.path()), ReadFault::NotAFile));
    #[cfg(unix)]
    assert!(matches!(fault(Path::new("/dev/zero")), ReadFault::NotAFile));

    let path = folder.path().join("a.bin");
    File::create(&path).unwrap();
    assert!(matches!(fault(&path), ReadFault::Empty));

    let path = folder.path().join("a.fits");
    fs::write(&path, [1, 0, 255]).unwrap();
    let error = read(&path, None).unwrap_err();
    assert!(matches!(error.fault, ReadFault::UnknownFormat));
    assert!(error.to_string().contains("a.fits"));
}

/// A stream without an end that is no snapshot is refused by its beginning.
#[test]
fn streams_are_read_as_far_as_they_can_be_a_snapshot() {
    let table = b"x,y,z,vx,vy,vz,mass\n1,2,3,4,5,6,7\n";
    assert_eq!(read_stream(&mut &table[..]).unwrap(), table);
    let rows = b"1,2,3,4,5,6,7\n".repeat(20_000);
    let long = [&b"x,y,z,vx,vy,vz,mass\n"[..], &rows].concat();
    assert_eq!(read_stream(&mut &long[..]).unwrap(), long);
    for byte in [0, b'y', b'\n', b'#'] {
        let fault = read_stream(&mut io::repeat(byte));
        assert!(fault.is_err(), "{byte}");
    }
    let words = "y\n".repeat(1 << 20);
    assert!(read_stream(&mut words.as_bytes()).is_err());
    assert!(read_stream(&mut io::empty()).unwrap().is_empty());
}

#[cfg(unix)]
#[test]
fn pipes_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for format in [Format::Csv, Format::Npz, Format::Allpairs] {
        let mut bytes = vec![];
        write_to(&mut bytes, format, &snapshot(5), None).unwrap();
        let loaded = std::thread::scope(|scope| {
            scope.spawn(|| fs::write(&pipe, &bytes).unwrap());
            load(&pipe, None).unwrap()
        });
        assert_eq!((loaded.snapshot, loaded.format), (snapshot(5), format));
    }
}

#[test]
fn what_cannot_be_written_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let fault = |format, snapshot: &Snapshot| {
        let fault = write(&path, format, snapshot, Overwrite::Allow)
            .unwrap_err()
            .fault;
        assert!(!path.exists());
        fault
    };
    let mut broken = snapshot(5);
    broken.bodies.z[4] = f64::NAN;
    let mut timeless = snapshot(5);
    timeless.time = f64::NAN;
    for format in Format::ALL {
        assert!(matches!(
            fault(format, &Snapshot::default()),
            WriteFault::NoBodies
        ));
        assert!(matches!(fault(format, &timeless), WriteFault::Time(_)));
        let found = fault(format, &broken);
        assert!(matches!(
            found,
            WriteFault::Bodies(BodyFault::NotFinite {
                body: 4,
                field: "z",
                ..
            })
        ));
    }
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "precious").unwrap();
    let error = write(&path, Format::Csv, &snapshot(2), Overwrite::Refuse).unwrap_err();
    assert!(matches!(&error.fault, WriteFault::Io(fault)
        if fault.kind() == io::ErrorKind::AlreadyExists));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}
