//! Tests of the CSV reader and writer.

use super::super::read_from;
use super::*;
use crate::bodies::{Bodies, BodyKind};
use std::io::Cursor;
use std::path::Path;

fn parse(text: impl AsRef<[u8]>) -> Result<Snapshot, ReadFault> {
    read_from(Cursor::new(text.as_ref()), Path::new("test.csv"), None)
        .map(|(snapshot, _)| snapshot)
        .map_err(|error| error.fault)
}

fn fault(text: impl AsRef<[u8]>) -> (u64, CsvFault) {
    match parse(text) {
        Err(ReadFault::Csv { line, fault }) => (line, fault),
        other => panic!("{other:?}"),
    }
}

#[test]
fn columns_stand_in_any_order() {
    let snapshot = parse(
        "\u{feff}# made by hand\r\n\r\n#TIME= 2.5 \r\n Mass ,vz,vy,VX,z,y,x,colour\r\n\
         7,6,5,4,3,2,1,\"red, dark\"\r\n# comment\r\n\r\n0,-6,5e-1,4,3,2,1,blue",
    )
    .unwrap();
    assert_eq!(snapshot.time, 2.5);
    let first = snapshot.bodies.body(0);
    assert_eq!(first.position, [1.0, 2.0, 3.0]);
    assert_eq!(first.velocity, [4.0, 5.0, 6.0]);
    assert_eq!((first.mass, first.id, first.kind), (7.0, 0, BodyKind::Star));
    assert_eq!(snapshot.bodies.body(1).velocity, [4.0, 0.5, -6.0]);
    assert_eq!(snapshot.bodies.len(), 2);
}

#[test]
fn all_doubles_round_trip() {
    let values = [
        0.1,
        -0.0,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        1.0 / 3.0,
        1e16,
        123456789.0,
    ];
    let bodies: Bodies = values
        .iter()
        .zip(0..)
        .map(|(&value, k)| Body {
            position: [value, -value, 1.0],
            velocity: [0.0, value, 2.0],
            mass: value.abs(),
            id: u64::MAX - k,
            kind: BodyKind::Dark,
        })
        .collect();
    let snapshot = Snapshot {
        time: 1.0 / 3.0,
        bodies,
    };
    let mut text = Vec::new();
    write(&mut text, &snapshot, None).unwrap();
    let again = parse(&text).unwrap();
    assert_eq!(again, snapshot);
    // Equality does not see the sign of zero.
    for (old, new) in snapshot.bodies.x.iter().zip(&again.bodies.x) {
        assert_eq!(old.to_bits(), new.to_bits());
    }
    assert!(text.len() < 1_500, "no hundreds of zeros");
}

#[test]
fn faults_are_located() {
    // Lines 1 to 3; the first body stands on line 5, the second on line 8.
    let head = "# time = 1\n\nx,y,z,vx,vy,vz,mass\n# c\n1,2,3,4,5,6,7\n\n# c\n";
    for newline in ["\n", "\r\n"] {
        let fault = |tail: &str| fault((head.to_owned() + tail).replace('\n', newline));
        let field = |column, name, text: &str| {
            let (body, wanted, text) = (1, "a number", text.to_owned());
            (
                8,
                CsvFault::Field {
                    column,
                    name,
                    body,
                    text,
                    wanted,
                },
            )
        };
        assert_eq!(fault("1,2,3,4,5,oops,7\n"), field(6, "vz", "oops"));
        assert_eq!(fault("1,2,3,4,5,,7"), field(6, "vz", ""));
        assert_eq!(
            fault("1,2,3\n"),
            (
                8,
                CsvFault::FieldCount {
                    expected: 7,
                    found: 3
                }
            )
        );
        let (line, nan) = fault("1,nan,3,4,5,6,7\n");
        assert!(matches!(
            nan,
            CsvFault::Body {
                column: 2,
                fault: BodyFault::NotFinite {
                    body: 1,
                    field: "y",
                    ..
                }
            }
        ));
        assert_eq!(line, 8);
        assert_eq!(
            fault("1,2,3,4,5,6,-7\n"),
            (
                8,
                CsvFault::Body {
                    column: 7,
                    fault: BodyFault::NegativeMass {
                        body: 1,
                        mass: -7.0
                    }
                }
            )
        );
    }
    assert_eq!(
        fault("#\n# time = soon\nx\n"),
        (2, CsvFault::Time("soon".into()))
    );
    assert_eq!(
        fault("# time = inf\nx\n"),
        (1, CsvFault::Time("inf".into()))
    );
    assert_eq!(
        fault(b"x,y,z,vx,vy,vz,mass\n1,2,3,4,5,6,\xff\n"),
        (2, CsvFault::NotText)
    );
}

#[test]
fn headers_are_checked() {
    let (line, missing) = fault("#\n1,2,3,4,5,6,7\n");
    assert_eq!(line, 2);
    assert_eq!(
        missing,
        CsvFault::MissingColumn {
            missing: "x",
            header: "1,2,3,4,5,6,7".into()
        }
    );
    assert!(missing.to_string().contains("x,y,z,vx,vy,vz,mass"));
    let (column, text) = (2, "********".into());
    assert_eq!(
        fault("1 ******** 3 4 5 6 7\n"),
        (1, CsvFault::NoNumber { column, text })
    );
    assert_eq!(
        fault("x,y,z,vx,vy,vz,mass,X\n"),
        (
            1,
            CsvFault::DuplicateColumn {
                column: 8,
                name: "x"
            }
        )
    );
    let long = fault("a".repeat(10_000)).1;
    assert!(long.to_string().len() < 400);
    for empty in [
        "x,y,z,vx,vy,vz,mass\n",
        "x,y,z,vx,vy,vz,mass",
        "x,y,z,vx,vy,vz,mass\n#\n",
    ] {
        assert!(matches!(parse(empty), Err(ReadFault::NoBodies)));
    }
    assert!(matches!(parse("# only\n"), Err(ReadFault::Csv { .. })));
}

#[test]
fn optional_columns_are_checked() {
    let head = "x,y,z,vx,vy,vz,mass,id,kind\n";
    let body = |tail: &str| parse(format!("{head}1,2,3,4,5,6,7,{tail}")).map(|s| s.bodies.body(0));
    let good = body("42, DARK").unwrap();
    assert_eq!((good.id, good.kind), (42, BodyKind::Dark));
    for (tail, column) in [("-1,gas", 8), ("1.5,gas", 8), ("1,halo", 9), ("1,", 9)] {
        let Err(ReadFault::Csv { line: 2, fault }) = body(tail) else {
            panic!("{tail}")
        };
        assert!(matches!(fault, CsvFault::Field { column: found, .. } if found == column));
    }
}

#[test]
fn no_truncation_or_corruption_panics() {
    let mut text = Vec::new();
    let bodies = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
        .map(|position| Body {
            position,
            velocity: position,
            mass: 1.0,
            id: 1,
            kind: BodyKind::Gas,
        })
        .into_iter()
        .collect();
    write(&mut text, &Snapshot { time: 0.5, bodies }, None).unwrap();
    for at in 0..text.len() {
        if let Ok(snapshot) = parse(&text[..at]) {
            assert!(snapshot.bodies.len() <= 2 && snapshot.bodies.check().is_ok());
        }
        for value in 0..=255 {
            let mut bytes = text.clone();
            bytes[at] = value;
            if let Ok(snapshot) = parse(&bytes) {
                assert!(snapshot.bodies.len() <= 3 && snapshot.bodies.check().is_ok());
            }
        }
    }
}

#[test]
fn other_separators_and_names_are_read() {
    for text in [
        "x;y;z;vx;vy;vz;m\n1;2;3;4;5;6;7\n",
        "x\ty\tz\tvx\tvy\tvz\tMasses\n1\t2\t3\t4\t5\t6\t7\n",
        "  x   y  z vx vy vz mass  \n\n# c d\n 1 2 3   4\t5 6 7\n",
        "m x y z vx vy vz\r\n7 1 2 3 4 5 6\r\n",
    ] {
        let body = parse(text).unwrap().bodies.body(0);
        assert_eq!(body.position, [1.0, 2.0, 3.0], "{text}");
        assert_eq!((body.velocity, body.mass), ([4.0, 5.0, 6.0], 7.0));
    }
    // Places are those of the file.
    let (line, found) = fault("x y z vx vy vz mass\n\n1 2 3 4 5 6 7\n1 2 3 4 5 six 7\n");
    assert_eq!(line, 4);
    assert!(
        matches!(found, CsvFault::Field { column: 6, .. }),
        "{found}"
    );
}

#[test]
fn columns_that_are_passed_over_are_named() {
    let text = "x,y,z,vx,vy,vz,mass,eps,m\n1,2,3,4,5,6,7,8,9\n";
    let contents = read(&mut Cursor::new(text), None).unwrap();
    assert_eq!(contents.snapshot.bodies.mass, [7.0]);
    assert_eq!(contents.notes, ["columns that are not used here: eps, m"]);
}

/// A file that is cut at the end of a line, or of a number, is one of fewer bodies otherwise.
#[test]
fn every_cut_is_noticed() {
    let bodies: Bodies = (0..12)
        .map(|i| Body {
            position: [f64::from(i), 12.5, 0.1],
            velocity: [1e-300, 2.0, 3.0],
            mass: 1234.0,
            id: 10 + i as u64,
            kind: BodyKind::Gas,
        })
        .collect();
    let snapshot = Snapshot { time: 0.5, bodies };
    let mut text = Vec::new();
    write(&mut text, &snapshot, None).unwrap();
    for at in 0..text.len() {
        if let Ok(found) = parse(&text[..at]) {
            assert_eq!(found, snapshot, "cut at {at}");
        }
    }
    let (line, found) = fault("# time = 1\n# Bodies= 3\nx,y,z,vx,vy,vz,mass\n1,2,3,4,5,6,7\n");
    let (expected, counted) = (3, 1);
    let expected = CsvFault::BodyCount {
        expected,
        found: counted,
    };
    assert_eq!((line, found), (2, expected));
    let foreign = "# bodies = planets\nx,y,z,vx,vy,vz,mass\n1,2,3,4,5,6,7\n";
    assert!(parse(foreign).is_ok());
}

#[test]
fn lines_are_bounded() {
    let head = "x,y,z,vx,vy,vz,mass";
    for text in [
        format!("{head}{}\n", ",".repeat(3_000_000)),
        format!("{head}\n{}\n", ",".repeat(3_000_000)),
        "x".repeat(3_000_000),
        " ".repeat(3_000_000),
    ] {
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.contains("longer than 1 MiB"), "{message}");
    }
}

#[test]
fn messages_show_no_control_characters() {
    let text = "x,y,z,vx,vy,vz,mass\n1,2,3,4,5,6,\x1b]0;PWNED\x07\n";
    let error = read_from(Cursor::new(text), Path::new("a\x1b[1m.csv"), None);
    let message = error.unwrap_err().to_string();
    assert!(!message.chars().any(char::is_control), "{message:?}");
    assert!(message.contains("\\u{1b}]0;PWNED"), "{message}");
}

/// A carriage return ends a record, also where no line ends.
#[test]
fn a_carriage_return_within_a_row_is_a_fault() {
    for (text, line, expected, found) in [
        ("1 0 0 0\r 0 0 0\n1 1 0 0 0 0 0\n", 1, 7, 4),
        ("1 0 0 0 0 0 0\n1 1 0\r 0 0 0 0\n", 2, 7, 3),
        ("0 1 0 0 0\r 0 0 0\n", 1, 8, 5),
        ("1\t0\t0\t0\r\t0\t0\t0\n", 1, 7, 4),
    ] {
        let (at, fault) = fault(text);
        let is_count = matches!(fault, CsvFault::FieldCount { expected: e, found: f } if (e, f) == (expected, found));
        assert!(is_count && at == line, "{text:?}: line {at}, {fault:?}");
    }
}

fn contents(text: &str) -> Contents {
    read(&mut Cursor::new(text), None).unwrap()
}

#[test]
fn numbers_of_fortran_are_read() {
    let snapshot = parse("  0.25D+00 1.D0 -2.D0 3.D0 0.4D+01 5.0D0 6d0\n").unwrap();
    let body = snapshot.bodies.body(0);
    assert_eq!((body.mass, body.position), (0.25, [1.0, -2.0, 3.0]));
    assert_eq!(body.velocity, [4.0, 5.0, 6.0]);
}

#[test]
fn names_in_comments_are_those_of_the_columns() {
    for text in [
        "# x y z vx vy vz mass\n1 2 3 4 5 6 7\n",
        "# made by a program\n# mass,vx,vy,vz,x,y,z\n7,4,5,6,1,2,3\n",
        "# columns: id x y z vx vy vz m\n#\n1.0e0 1 2 3 4 5 6 7\n",
        "# x y z vx vy vz m in units of nobody's\n1 2 3 4 5 6 7\n",
    ] {
        let body = contents(text).snapshot.bodies.body(0);
        assert_eq!(body.position, [1.0, 2.0, 3.0], "{text}");
        assert_eq!((body.velocity, body.mass), ([4.0, 5.0, 6.0], 7.0));
    }
    let gala = "m,x,y,z,v_x,v_y,v_z\n7,1,2,3,4,5,6\n";
    for text in [
        gala,
        &gala
            .replace("v_", "vel_")
            .replace(",x,y,z", ",pos_x,pos_y,pos_z"),
    ] {
        let body = contents(text).snapshot.bodies.body(0);
        assert_eq!(
            (body.position, body.velocity),
            ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
        );
    }
    // A header line has the last word.
    let text = "# x y z vx vy vz mass\nvx vy vz x y z m\n4 5 6 1 2 3 7\n";
    assert_eq!(parse(text).unwrap().bodies.x, [1.0]);
    let (line, found) = fault("# x y z vx vy vz\n1 2 3 4 5 6 7\n");
    assert_eq!(line, 2);
    let told = found.to_string();
    assert!(
        told.contains("names 6 columns (`x,y,z,vx,vy,vz`)"),
        "{told}"
    );
    let told = fault("# x y z vx vy vz eps\n1 2 3 4 5 6 7\n").1.to_string();
    assert!(told.contains("no column `mass`"), "{told}");
    let told = fault("0.5 -1 2 3 4 5 6\n-1 2 3 4 5 6 7\n").1.to_string();
    assert!(told.contains("put a line with their names"), "{told}");
}

#[test]
fn names_are_found_however_they_are_decorated() {
    for names in [
        "X1 X2 X3 V1 V2 V3 M",
        "x1 y1 z1 vx1 vy1 vz1 m1",
        "1:x 2:y 3:z 4:vx 5:vy 6:vz 7:mass",
        "x:1, y:2, z:3, vx:4, vy:5, vz:6, m:7",
        "col1=x col2=y col3=z col4=vx col5=vy col6=vz col7=mass",
        "(1) x (2) y (3) z (4) vx (5) vy (6) vz (7) mass",
        "[1] x [2] y [3] z [4] vx [5] vy [6] vz [7] mass",
        "column 1: x\n# column 2: y\n# column 3: z\n# column 4: vx\n# column 5: vy\n# column 6: vz\n# column 7: m",
        "1 x  place\n# 2 y  place\n# 3 z  place\n# 4 vx\n# 5 vy\n# 6 vz\n# 7 m",
        "x|y|z|vx|vy|vz|mass",
        "| x | y | z | vx | vy | vz | mass |",
        "x-y-z-vx-vy-vz-mass",
        "{x} {y} {z} {vx} {vy} {vz} {m}",
        "['x', 'y', 'z', 'vx', 'vy', 'vz', 'm']",
        "pos(3) vel(3) mass",
        "pos vel mass",
        "Columns are x y z vx vy vz m",
    ] {
        let text = format!("# {names}\n1 2 3 4 5 6 7\n");
        let body = contents(&text).snapshot.bodies.body(0);
        assert_eq!(body.position, [1.0, 2.0, 3.0], "{text}");
        assert_eq!((body.velocity, body.mass), ([4.0, 5.0, 6.0], 7.0), "{text}");
    }
    let pc: Units = "pc,Msun,km/s".parse().unwrap();
    for names in [
        "x/pc y/pc z/pc vx/(km/s) vy/(km/s) vz/(km/s) m/Msun",
        "x y z vx vy vz m\n# [pc] [pc] [pc] [km/s] [km/s] [km/s] [Msun]",
        "1 x [pc]\n# 2 y [pc]\n# 3 z [pc]\n# 4 vx [km/s]\n# 5 vy [km/s]\n# 6 vz [km/s]\n# 7 m [Msun]",
    ] {
        let found = contents(&format!("# {names}\n1 2 3 4 5 6 7\n"));
        assert!(found.units.unwrap().are_those_of(&pc), "{names}");
        assert_eq!(found.snapshot.bodies.mass, [7.0], "{names}");
    }
    // What seems to name columns and is not understood is not passed over.
    let (line, found) = fault("# <x> <y> <z> -> <vx> <vy> <vz>; <mu>\n1 2 3 4 5 6 7\n");
    assert_eq!(line, 2);
    assert!(
        found.to_string().contains("seem to name the columns"),
        "{found}"
    );
    let plain = contents("# made on Monday by x and y\n1 2 3 4 5 6 7\n");
    assert_eq!(plain.snapshot.bodies.mass, [1.0]);
}

#[test]
fn a_constant_of_gravity_tells_units() {
    let table = "1 2 3 4 5 6 7\n";
    for (comment, units) in [
        ("G = 43007.1", "kpc,1e10Msun,km/s"),
        ("G: 4.30091D-3 pc/Msun (km/s)^2", "pc,Msun,km/s"),
        ("gravitational constant = 39.4769", "au,Msun,yr"),
    ] {
        let found = contents(&format!("# {comment}\n{table}"));
        assert!(
            found.units.unwrap().are_those_of(&units.parse().unwrap()),
            "{comment}"
        );
        assert!(
            found.notes.iter().any(|note| note.starts_with("by G = ")),
            "{:?}",
            found.notes
        );
    }
    let found = contents(&format!("# G = 17\n{table}"));
    assert_eq!(found.units, None);
    assert!(
        found.notes.concat().contains("tells G = 17, and no units"),
        "{:?}",
        found.notes
    );
    let found = contents(&format!("# G = 1\n{table}"));
    assert!(!found.notes.concat().contains("G ="), "{:?}", found.notes);
    let found = contents(&format!("# units: pc, Msun, km/s\n# G = 43007.1\n{table}"));
    assert!(
        found
            .notes
            .concat()
            .contains("and it is 4.300917e-3 in units"),
        "{:?}",
        found.notes
    );
}

#[test]
fn ids_are_found_before_and_behind() {
    let first = contents("7 10 1 3 5 .1 .3 1\n8 20 2 4 6 .2 .4 0\n")
        .snapshot
        .bodies;
    assert_eq!((first.id, first.mass), (vec![7, 8], vec![10.0, 20.0]));
    let last = contents("1.5 1 3 5 .1 .3 .5 1\n2.5 2 4 6 .2 .4 .6 2\n");
    assert!(
        last.notes[0].ends_with("m x y z vx vy vz id"),
        "{:?}",
        last.notes
    );
    let last = last.snapshot.bodies;
    assert_eq!((last.id, last.mass), (vec![1, 2], vec![1.5, 2.5]));
    let (line, found) = fault("10 1 3 5 .1 .3 .5 1\n20 2 4 6 .2 .4 .6 2\n");
    assert_eq!((line, found), (1, CsvFault::TwoIds));
}

#[test]
fn a_second_snapshot_is_refused() {
    let rows = "10 1 2 3 4 5 6\n20 2 3 4 5 6 7\n";
    let commas = rows.replace(' ', ",");
    for (text, second) in [
        (format!("# time = 0\n{rows}\n\n# time = 1\n{rows}"), 6),
        (format!("{rows}\n\n{rows}"), 5),
        (
            format!("# time = 0\nm,x,y,z,vx,vy,vz\n{commas}# t = 1\n{commas}"),
            5,
        ),
    ] {
        let (line, found) = fault(&text);
        assert_eq!((line, found), (second, CsvFault::SecondSnapshot), "{text}");
    }
    let series = "time,id,x,y,z,vx,vy,vz,m\n0,1,1,2,3,.1,.2,.3,10\n0,2,1,2,4,.1,.2,.3,10\n";
    let next = "1,1,1,2,3,.1,.2,.3,10\n1,2,1,2,4,.1,.2,.3,10\n";
    assert_eq!(
        fault(format!("{series}{next}")),
        (4, CsvFault::SecondSnapshot)
    );
    assert_eq!(parse(series.replace("\n0,", "\n5,")).unwrap().time, 5.0);
    let with_units = "t [Myr],x [pc],y [pc],z [pc],vx [pc/Myr],vy [pc/Myr],vz [pc/Myr],m [Msun]\n5,1,2,3,4,5,6,7\n";
    assert!((parse(with_units).unwrap().time - 5.0).abs() < 1e-12);
    // Of each body by itself, as ages are.
    let ages = contents(&series.replace("\n0,2", "\n3,2"));
    assert_eq!(ages.snapshot.time, 0.0);
    assert!(
        ages.notes[0].contains("time of each body"),
        "{:?}",
        ages.notes
    );

    // Comments between bodies, one empty line, and empty lines at the end are no second snapshot.
    for text in [
        format!("{rows}# the other galaxy\n\n{rows}\n\n\n"),
        format!("m x y z vx vy vz\n# t = 1\n{rows}{rows}# t = 2"),
    ] {
        assert_eq!(parse(&text).unwrap().bodies.len(), 4, "{text}");
    }
}

#[test]
fn units_of_columns_are_read() {
    let pc: Units = "pc,Msun,km/s".parse().unwrap();
    for text in [
        "#Mass_[Msun]\tx_[pc]\ty_[pc]\tz_[pc]\tvx_[km/s]\tvy_[km/s]\tvz_[km/s]\n7\t1\t2\t3\t4\t5\t6\n",
        "#mass,x,y,z,vx,vy,vz\n#MSun,parsec,parsec,parsec,kms,kms,kms\n7,1,2,3,4,5,6\n",
        "# %ECSV 1.0\n# ---\n# datatype:\n# - {name: mass, unit: Msun, datatype: float64}\n\
         # - {name: x, unit: pc, datatype: float64}\n# - {name: y, unit: pc, datatype: float64}\n\
         # - {name: z, unit: pc, datatype: float64}\n# - {name: vx, unit: km / s, datatype: float64}\n\
         # - {name: vy, unit: km / s, datatype: float64}\n# - {name: vz, unit: km / s, datatype: float64}\n\
         # schema: astropy-2.0\nmass x y z vx vy vz\n7 1 2 3 4 5 6\n",
        "mass [Msun],x [pc],y [pc],z [pc],vx [km/s],vy [km/s],vz [km/s]\n7,1,2,3,4,5,6\n",
    ] {
        let contents = contents(text);
        assert!(contents.units.unwrap().are_those_of(&pc), "{text}");
        assert!(contents.notes.is_empty(), "{:?}", contents.notes);
        let units = read_units(&mut Cursor::new(text)).unwrap();
        assert_eq!(units, contents.units);
        assert_eq!(contents.snapshot.bodies.body(0).position, [1.0, 2.0, 3.0]);
    }
    let none = contents(
        "#mass,x,y,z,vx,vy,vz\n#mass,length,length,length,length / time,a,b\n7,1,2,3,4,5,6\n",
    );
    assert_eq!(none.units, None);
    assert!(none.notes[0].contains("make no system"), "{:?}", none.notes);
}

#[test]
fn times_in_comments_are_read_or_told() {
    let table = "x,y,z,vx,vy,vz,m\n1,2,3,4,5,6,7\n";
    for comment in ["# Time: 5", "# t = 5", "#TIME=5.0D0", "# time = 5"] {
        assert_eq!(contents(&format!("{comment}\n{table}")).snapshot.time, 5.0);
    }
    let given = "pc,Msun,Myr".parse().unwrap();
    let text = format!("# TIME[Myr] = 5\n{table}");
    let known = read(&mut Cursor::new(&text), Some(given)).unwrap();
    assert_eq!(
        (known.snapshot.time, known.units, known.notes.len()),
        (5.0, None, 0)
    );
    for comment in ["# time = 5Myr", "# t/Myr = 5", "# time=5.0e6yr"] {
        let text = format!("{comment}\n{table}");
        let known = read(&mut Cursor::new(&text), Some(given)).unwrap();
        assert!((known.snapshot.time - 5.0).abs() < 1e-12, "{comment}");
    }
    let late = table.replace('\n', "\n# t = 5\n");
    assert_eq!(parse(late.trim_end_matches("# t = 5\n")).unwrap().time, 5.0);
    let late = table.replacen('\n', "\n\n# made at noon\n# time 5\n", 1);
    assert_eq!(parse(format!("# time = 3\n{late}")).unwrap().time, 3.0);
    assert_eq!(parse(late).unwrap().time, 5.0);
    let told = contents(&text);
    assert_eq!(told.snapshot.time, 5.0);
    assert!(told.notes[0].contains("5.0 Myr"), "{:?}", told.notes);
    let told = contents(&format!("# time: at noon\n{table}"));
    assert_eq!(told.snapshot.time, 0.0);
    assert!(told.notes[0].contains("not understood"), "{:?}", told.notes);
    let known =
        "# Time: 5 Myr\n# m[Msun] x[pc] y[pc] z[pc] vx[km/s] vy[km/s] vz[km/s]\n7 1 2 3 4 5 6\n";
    let time = contents(known).snapshot.time;
    assert!((time - 5.0 * 1.022_712_165).abs() < 1e-6, "{time}");
}

#[test]
fn heads_of_other_codes_are_read() {
    let tail = "0 0 0 0 0 0 0 0 0";
    let petar = format!(
        "0 2 1.5 0 0 0 0 0 0\n7 1 2 3 4 5 6 0 0.1 11 0 {tail}\n8 2 3 4 5 6 7 0 0.1 12 0 {tail}\n"
    );
    let found = contents(&petar);
    assert_eq!(found.snapshot.time, 1.5);
    assert_eq!(found.snapshot.bodies.id, [11, 12]);
    assert_eq!(found.snapshot.bodies.body(0).position, [1.0, 2.0, 3.0]);
    assert!(found.notes[0].contains("PeTar"), "{:?}", found.notes);
    let small = contents("1 1 0.5\n7 1 2 3 4 5 6\n");
    assert_eq!(
        (small.snapshot.time, small.snapshot.bodies.mass),
        (0.5, vec![7.0])
    );
    let moved = contents("1 1 0.5 8000 0 0 0 220 0\n7 1 2 3 4 5 6 0\n");
    assert!(
        moved.notes[0].contains("8000 0 0 0 220 0"),
        "{:?}",
        moved.notes
    );

    let grape = "0012\n 2\n 0.25E+01\n000000 7 1 2 3 4 5 6\n000001 8 2 3 4 5 6 7\n";
    let found = contents(grape);
    assert_eq!(found.snapshot.time, 2.5);
    assert_eq!(found.snapshot.bodies.id, [0, 1]);
    assert_eq!(found.snapshot.bodies.mass, [7.0, 8.0]);
    assert_eq!(found.snapshot.bodies.body(1).velocity, [5.0, 6.0, 7.0]);

    for (text, line) in [(petar.as_str(), 1), (grape, 1)] {
        let cut = text.trim_end().rsplit_once('\n').unwrap().0;
        let (at, found) = fault(format!("{cut}\n"));
        assert_eq!(at, line);
        assert_eq!(
            found,
            CsvFault::BodyCount {
                expected: 2,
                found: 1
            }
        );
    }
    let broken = grape.replace("8 2 3", "8 two 3");
    assert!(matches!(
        fault(broken),
        (5, CsvFault::Field { column: 3, .. })
    ));
    // Never taken on trust.
    let many = "0 18446744073709551615 1.5\n7 1 2 3 4 5 6\n";
    assert!(matches!(fault(many).1, CsvFault::BodyCount { .. }));
    for text in ["1\n2\n3\n4\n", "1 2 3\n1 2 3\n", "1\n", "1 2 3\n"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn units_of_names_in_a_comment_are_those_of_the_line_of_names() {
    let pc: Units = "pc,Msun,km/s".parse().unwrap();
    let table = "x,y,z,vx,vy,vz,m\n1,3,5,.1,.3,.5,10\n";
    for comment in [
        "x [pc] y [pc] z [pc] vx [km/s] vy [km/s] vz [km/s] m [Msun]",
        "columns: x [pc], y [pc], z [pc], vx [km/s], vy [km/s], vz [km/s], mass [Msun]",
        "positions [pc] velocities [km/s] masses [Msun]",
        "pos [pc], vel [km/s], mass [Msun]",
        "Position (pc), Velocity (km/s), Mass (Msun)",
        "positions and velocities of stars, in pc, Msun, km/s",
        "x y z vx vy vz m\n# pc pc pc km/s km/s km/s Msun",
        "pc,Msun,km/s",
    ] {
        let found = contents(&format!("# {comment}\n{table}"));
        assert!(
            found.units.is_some_and(|units| units.are_those_of(&pc)),
            "{comment}"
        );
        assert_eq!(found.notes, Vec::<String>::new(), "{comment}");
        assert_eq!(found.snapshot.bodies.mass, [10.0]);
    }
    let named = table.replace("x,y,z", "x [kpc],y [kpc],z [kpc]");
    let found = contents(&format!(
        "# x [pc] y [pc] z [pc] vx [km/s] vy [km/s] vz [km/s] m [Msun]\n{named}"
    ));
    assert!(
        found.notes[0].contains("does not take: pc, pc, pc"),
        "{:?}",
        found.notes
    );
    assert!(
        found
            .units
            .unwrap()
            .are_those_of(&"kpc,Msun,km/s".parse().unwrap())
    );
    let names = "# x y z vx vy vz m in pc km/s Msun\n1 2 3 4 5 6 7\n";
    assert!(contents(names).units.unwrap().are_those_of(&pc));
}

#[test]
fn sentences_about_bodies_are_no_names() {
    for comment in [
        "position and velocity of stars",
        "positions and velocities in N-body units",
        "a model with mass and velocity anisotropy",
        "velocity and position are in the frame of the centre of mass",
        "mass and velocity of stars",
    ] {
        let found = contents(&format!("# {comment}\n10 1 3 5 .1 .3 .5\n"));
        assert_eq!(found.snapshot.bodies.mass, [10.0], "{comment}");
        assert_eq!(found.notes.len(), 1, "{comment}: {:?}", found.notes);
    }
    let (_, found) = fault("# the mass is in column 7\n1 2 3 4 5 6 10\n");
    assert!(matches!(found, CsvFault::StrangeNames(_)), "{found}");
}

#[test]
fn what_comments_tell_of_gravity_and_cosmology_is_said() {
    let table = "x,y,z,vx,vy,vz,m\n1,3,5,.1,.3,.5,10\n";
    for (comment, units) in [
        ("Using G = 43007.1", "kpc,1e10Msun,km/s"),
        ("gravity = 43007.1", "kpc,1e10Msun,km/s"),
        ("Msun=1, pc=1, G=0.0043", "pc,Msun,km/s"),
    ] {
        let found = contents(&format!("# {comment}\n{table}"));
        assert!(
            found.units.unwrap().are_those_of(&units.parse().unwrap()),
            "{comment}"
        );
    }
    for (comment, part) in [
        ("redshift = 1", "tells of a cosmology"),
        ("h = 0.7, a = 0.5", "tells of a cosmology"),
        (
            "comoving kpc, Msun, km/s",
            "tells of units and was not understood",
        ),
        ("kpc", "tells of units and was not understood"),
    ] {
        let found = contents(&format!("# {comment}\n{table}"));
        assert!(
            found.notes.concat().contains(part),
            "{comment}: {:?}",
            found.notes
        );
        assert_eq!(found.units, None, "{comment}");
    }
}

#[test]
fn times_in_sentences_are_read_or_told() {
    let table = "x,y,z,vx,vy,vz,m\n1,2,3,4,5,6,7\n";
    let time = |comment: &str| {
        let text = format!("# units: pc,Msun,Myr\n# {comment}\n{table}");
        let found = contents(&text);
        (found.snapshot.time, found.notes)
    };
    for comment in [
        "snapshot time (Myr) = 5",
        "snapshot time: 5",
        "snapshot at t=5Myr",
        "t_now = 5",
        "Time [Myr]\n# 5.0",
        "Time since start: 5 Myr",
        "t 5",
        "time_in_Myr 5",
        "N = 12, t = 5 Myr",
        "the time is 5000 kyr",
    ] {
        let (found, notes) = time(comment);
        assert!((found - 5.0).abs() < 1e-9, "{comment}: {found}");
        assert_eq!(notes, Vec::<String>::new(), "{comment}");
    }
    for (comment, notes) in [
        ("age = 5 Myr", 1),
        ("evolved time = 5 Myr", 1),
        ("written at time 14:05", 0),
        ("crossing time 2.8 Myr", 0),
        ("CPU time = 35 s", 0),
        ("time step 5", 0),
    ] {
        let (found, told) = time(comment);
        assert_eq!((found, told.len()), (0.0, notes), "{comment}: {told:?}");
    }
}

/// Astropy describes columns with units in ECSV twice, and a time as an object.
#[test]
fn headers_of_astropy_are_read_without_false_notes() {
    let columns = ["x", "y", "z"].map(|name| (name, "kpc"));
    let speeds = ["vx", "vy", "vz"].map(|name| (name, "km / s"));
    let all: Vec<_> = columns
        .into_iter()
        .chain(speeds)
        .chain([("mass", "solMass")])
        .collect();
    let mut text = "# %ECSV 1.0\n# ---\n# datatype:\n".to_owned();
    for (name, unit) in &all {
        text += &format!("# - {{name: {name}, unit: {unit}, datatype: float64}}\n");
    }
    text += "# meta: !!omap\n# - time: !astropy.units.Quantity\n#     unit: &id002 !astropy.units.Unit {unit: Myr}\n\
             #     value: 5.0\n# - __serialized_columns__:\n";
    for (name, unit) in &all {
        text += &format!(
            "#     {name}:\n#       __class__: astropy.units.quantity.Quantity\n#       unit: !astropy.units.Unit \
             {{unit: {unit}}}\n#       value: !astropy.table.SerializedColumn {{name: {name}}}\n#       unit: *id001\n"
        );
    }
    text += "# schema: astropy-2.0\nx y z vx vy vz mass\n1 2 3 4 5 6 7\n";
    let found = contents(&text);
    assert_eq!(found.notes, Vec::<String>::new());
    let units = found.units.unwrap();
    let megayears = found.snapshot.time * units.time / 3.155_76e13;
    assert!((megayears - 5.0).abs() < 1e-4, "{megayears}");
    assert_eq!(found.snapshot.bodies.mass, [7.0]);
}

/// Astropy writes a column of the shape (N, 3) as one of texts.
#[test]
fn vectors_in_ecsv_are_read() {
    let head = |separator: &str| {
        format!(
            "# %ECSV 1.0\n# ---\n# delimiter: '{separator}'\n# datatype:\n# - {{name: mass, unit: Msun, datatype: float64}}\n\
             # - {{name: pos, unit: kpc, datatype: string, subtype: 'float64[3]'}}\n\
             # - {{name: vel, unit: km / s, datatype: string, subtype: 'float64[3]'}}\n# schema: astropy-2.0\n"
        )
    };
    let blanks =
        "mass pos vel\n7.0 [1.0,2.0,3.0] [4.0,5.0,6.0]\n8.0 [-1.0,2e1,3.0] [4.0,5.0,7.0]\n";
    let commas = "mass,pos,vel\n7.0,\"[1.0,2.0,3.0]\",\"[4.0,5.0,6.0]\"\n8.0,\"[-1.0, 2e1, 3.0]\",\"[4.0,5.0,7.0]\"\n";
    for text in [head(" ") + blanks, head(",") + commas] {
        let found = contents(&text);
        assert_eq!(found.notes, Vec::<String>::new());
        assert_eq!(found.units, Some("kpc,Msun,km/s".parse().unwrap()));
        let bodies = &found.snapshot.bodies;
        assert_eq!(bodies.mass, [7.0, 8.0]);
        assert_eq!(bodies.body(0).position, [1.0, 2.0, 3.0]);
        assert_eq!(bodies.body(1).position, [-1.0, 20.0, 3.0]);
        assert_eq!(bodies.body(1).velocity, [4.0, 5.0, 7.0]);
        let (line, found) = fault(text.replace("7.0]", "q]"));
        assert!(
            matches!(found, CsvFault::Field { name: "vz", .. }),
            "{found}"
        );
        assert_eq!(line, 11);
    }
    for (before, after) in [
        ("'float64[3]'}}\n#", "'float64[2,3]'}}\n#"),
        ("'float64[3]'", "json"),
    ] {
        let (before, after) = (before.replace("}}", "}"), after.replace("}}", "}"));
        let (line, found) = fault((head(" ") + blanks).replacen(&before, &after, 1));
        assert_eq!(line, 6);
        assert!(found.to_string().contains("`pos`"), "{found}");
    }
}

#[test]
fn tables_between_bars_are_read() {
    let rows = "  1   2   3   4   5   6   7  \n  8   9  10  11  12  13  14  \n";
    let names = "|  x|  y|  z| vx| vy| vz|mass|\n";
    let types = "|double|double|double|d|real|float|double|\n";
    let units = "|kpc|kpc|kpc|km / s|km / s|km / s|Msun|\n|null|null|null|null|null|null|null|\n";
    let found = contents(&format!("{names}{types}{units}{rows}"));
    assert_eq!(found.snapshot.bodies.mass, [7.0, 14.0]);
    assert_eq!(found.units, Some("kpc,Msun,km/s".parse().unwrap()));
    assert_eq!(
        contents(&format!("{names}{types}{rows}")).snapshot.bodies.x,
        [1.0, 8.0]
    );
    // A line that cannot be read has its own number.
    let broken = format!("{names}{types}{units}{}", rows.replace("12", "q"));
    assert_eq!(fault(broken).0, 6);
    let fixed = "| x | y | z | vx | vy | vz | mass |\n| 1 | 2 | 3 | 4 | 5 | 6 | 7 |\n";
    let found = contents(fixed);
    assert_eq!(found.snapshot.bodies.mass, [7.0]);
    assert_eq!(found.notes, Vec::<String>::new());
}
