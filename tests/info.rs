//! Descriptions of snapshots: neighbours and bound pairs.

use std::fs;

use crate::support::program::{code, try_in};

#[test]
fn bound_pairs_are_listed() {
    let at = tempfile::tempdir().expect("a folder");
    // A pair on a circle of radius 0.02 (a = 0.02, G = 1, masses 1 and 1), and two that are apart.
    let rows = [
        "x,y,z,vx,vy,vz,mass,id",
        "-0.01,0,0,0,-5,0,1,7",
        "0.01,0,0,0,5,0,1,8",
        "9,0,0,0,1,0,1,9",
        "-8,0,0,0,-1,0,1,10",
        "0,3,0,0,0,0,0,11",
    ];
    let path = at.path().join("few.csv");
    fs::write(&path, rows.join("\n") + "\n").expect("written");
    try_in(at.path(), "info few.csv").expect(
        0,
        &[
            "few.csv: 5 bodies of total mass 4",
            "4 massive bodies, 1 test particle\n",
            "nearest neighbours: 0.0200 apart at least, ",
            "1 bound pair, 1 of them hard\n",
            "   25.0000   hard",
        ],
    );
    try_in(at.path(), "info few.csv").expect(
        0,
        &["at time 0, a table of text (CSV)\nunits unknown, G = 1\nids 7 to 11; 5 stars\n"],
    );
    try_in(at.path(), "info few.csv --gravity -1").expect(
        0,
        &[
            "units unknown, G = -1 as given: bodies repel each other",
            "0 bound pairs, 0 of them hard",
        ],
    );
    let run = "run few.csv --integrator hermite4 --eta 0.01 --until 0.02 --diagnostics 10 --out o";
    try_in(at.path(), run).expect(
        0,
        &[
            "1 hard pair at the end:\n",
            " 7 8   1.0000 1.0000            0.0200         0.0",
        ],
    );
    let log = fs::read_to_string(at.path().join("o/pairs.csv")).expect("a log");
    let header = "step,time,least_distance,median_distance,pairs,hard_pairs,id_a,id_b,\
                  semi_major_axis,eccentricity,period,binding_energy\n0,0.0,0.02,";
    assert!(log.starts_with(header), "{log}");
    let last = log.lines().last().expect("rows");
    assert_eq!(
        last.split(',').skip(4).take(4).collect::<Vec<_>>(),
        ["1", "1", "7", "8"]
    );
    try_in(at.path(), "info none.csv").expect(code::DATA, &["no such file"]);
}
