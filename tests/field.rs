//! Fields of snapshots at points.

use std::fs;

use crate::support::program::{code, try_in};

/// A point mass of 2 at the origin: accelerations, potentials and tides as Newton has them, also in the
/// field of another.
#[test]
fn the_field_of_a_point_mass() {
    let at = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(at.path().join(name), text).expect("written");
    write(
        "mass.csv",
        "x,y,z,vx,vy,vz,mass\n0,0,0,0,0,0,2\n5,5,5,0,0,0,0\n",
    );
    write("points.txt", "# x y z\n2 0 0\n0 -4 0\n");
    let field = "field mass.csv --at points.txt --device cpu";
    try_in(at.path(), &format!("{field} --out a.csv")).expect(
        0,
        &[
            "wrote a.csv: the field of 2 bodies at 2 points, softening 0",
            "on CPU",
            "field: cpu-f64, 2.000e0 interactions",
        ],
    );
    let text = fs::read_to_string(at.path().join("a.csv")).expect("a table");
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("x,y,z,ax,ay,az,potential,Txx,Tyy,Tzz,Txy,Txz,Tyz")
    );
    let expected = [
        [
            2.0, 0.0, 0.0, -0.5, 0.0, 0.0, -1.0, 0.5, -0.25, -0.25, 0.0, 0.0, 0.0,
        ],
        [
            0.0, -4.0, 0.0, 0.0, 0.125, 0.0, -0.5, -0.03125, 0.0625, -0.03125, 0.0, 0.0, 0.0,
        ],
    ];
    for (line, expected) in lines.zip(expected) {
        let found: Vec<f64> = line
            .split(',')
            .map(|x| x.parse().expect("a number"))
            .collect();
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() <= 1e-15, "{line}");
        }
    }
    // The other mass as an external field instead doubles everything.
    let more = "--field point:mass=2 --out b.npy";
    try_in(at.path(), &format!("{field} {more}")).expect(0, &["wrote b.npy"]);
    let array = fs::read(at.path().join("b.npy")).expect("an array");
    let numbers: Vec<f64> = array[128..]
        .chunks(8)
        .map(|bytes| f64::from_le_bytes(bytes.try_into().expect("eight")))
        .collect();
    assert_eq!(numbers.len(), 26);
    for (k, (a, b)) in numbers.iter().zip(expected.as_flattened()).enumerate() {
        let b = if k % 13 < 3 { *b } else { 2.0 * b };
        assert!((a - b).abs() <= 1e-14, "{k}: {a} {b}");
    }
    // Where it is no number, this is said.
    fs::write(at.path().join("centre.csv"), "x,y,z\n0,0,0\n").expect("writable");
    let centre = "field mass.csv --at centre.csv --device cpu --field point:mass=2 --out d.npy";
    let ended = try_in(at.path(), centre);
    assert!(
        ended.complained.contains("not finite at 1 point"),
        "{ended}"
    );
    // The bodies of a snapshot are points too.
    try_in(at.path(), "field mass.csv --at mass.csv --out c.csv").expect(0, &["2 points"]);

    // And those of kernels, in the precision that is asked for.
    for (accuracy, kernel, most) in [
        ("single", "field: field-at-points, 2.000e0 inter", 1e-6),
        ("double", "field: field-at-points-f64, 2.000e0 inter", 1e-14),
    ] {
        let file = format!("{accuracy}.npy");
        let emulated = "field mass.csv --at points.txt --device emulator";
        let asked = format!("{emulated} --accuracy {accuracy} --out {file}");
        try_in(at.path(), &asked).expect(0, &["on CPU emulator of a GPU", kernel]);
        let array = fs::read(at.path().join(file)).expect("an array");
        let numbers = array[128..].chunks(8);
        for (bytes, b) in numbers.zip(expected.as_flattened()) {
            let a = f64::from_le_bytes(bytes.try_into().expect("eight"));
            assert!((a - b).abs() <= most, "{a} {b}");
        }
    }

    write("bad.txt", "1 2\n");
    for (arguments, code, part) in [
        (
            "--at bad.txt --out d.csv",
            code::DATA,
            "line 1: a row should be x y z",
        ),
        ("--at none.txt --out d.csv", code::DATA, "no such file"),
        (
            "--at points.txt --out d.png",
            code::USAGE,
            "should end with .csv or .npy",
        ),
        ("--at points.txt --out a.csv", code::IO, "a.csv"),
        (
            "--at points.txt --out d.csv --softening -1",
            code::USAGE,
            "`--softening` must be ≥ 0 and finite, got -1",
        ),
        (
            "--at points.txt --out d.csv --field tide:omega=1",
            code::USAGE,
            "depends on velocities",
        ),
        (
            "--at points.txt --out d.csv --device emulator:2",
            code::UNAVAILABLE,
            "fields at points are computed on one device alone",
        ),
        (
            "--at points.txt --out d.csv --law attract-repel",
            code::USAGE,
            "attract-repel",
        ),
    ] {
        try_in(at.path(), &format!("field mass.csv {arguments}")).expect(code, &[part]);
        assert!(!at.path().join("d.csv").exists() && !at.path().join("d.png").exists());
    }
}
