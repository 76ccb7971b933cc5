//! Tables of changes that bodies make on the way, through the program.

use std::fs;
use std::path::Path;

use allpairs::io::read;

use crate::support::program::{new_folder, try_in};

const TABLE: &str = "\
# stars that lose mass
time, id, mass, kick_x, kick_y, kick_z, radius, remove
0.0123, 3, 0.001, , , , ,
0.0301, 5, , 0.2, , -0.1, ,
0.0123, 9, 0.002, 0.5, 0, 0, ,
0.0301, 11, , , , , , true
";

const RUN: &str = "run plummer --bodies 40 --seed 2 --device cpu --changes table.csv";

fn write(folder: &Path, table: &str) {
    fs::write(folder.join("table.csv"), table).expect("written");
}

#[test]
fn bodies_change_at_the_times_of_a_table() {
    let folder = new_folder();
    write(folder.path(), TABLE);
    for (out, steps) in [
        (
            "leapfrog",
            "--softening 0.05 --dt 0.0078125 --until 0.0546875",
        ),
        (
            "groups",
            "--softening 0 --block-steps --groups on --dt 0.0078125 --until 0.0546875",
        ),
    ] {
        let run = format!("{RUN} {steps} --diagnostics 1");
        try_in(&folder, &format!("{run} --out {out}")).expect(
            0,
            &[
                "4 changes of bodies by table.csv, at times from 0.0123 to 0.0301",
                "4 changes of bodies brought an energy of ",
            ],
        );
        let at = |name: &str| folder.path().join(out).join(name);
        let (end, _) = read(&at("final.allpairs"), None).expect("a sound file");
        assert_eq!((end.bodies.len(), end.time), (39, 0.0546875), "{out}");
        let mass = |id: u64| {
            let i = end.bodies.id.iter().position(|&other| other == id);
            end.bodies.mass[i.expect("it is there")]
        };
        assert_eq!((mass(3), mass(9), mass(5)), (0.001, 0.002, 0.025), "{out}");
        let changes = fs::read_to_string(at("changes.csv")).expect("a log");
        let rows: Vec<Vec<&str>> = changes
            .lines()
            .map(|row| row.split(',').collect())
            .collect();
        assert_eq!(rows[0], ["step", "time", "id", "mass", "outcome", "energy"]);
        let told: Vec<_> = rows[1..]
            .iter()
            .map(|row| (row[1], row[2], row[4]))
            .collect();
        assert_eq!(
            told,
            [
                ("0.0123", "3", "changed"),
                ("0.0123", "9", "changed"),
                ("0.0301", "5", "changed"),
                ("0.0301", "11", "removed")
            ],
            "{out}"
        );
        // What changes brought is no drift.
        let log = fs::read_to_string(at("diagnostics.csv")).expect("a log");
        let names: Vec<&str> = log.lines().next().unwrap_or_default().split(',').collect();
        let drift = names.iter().position(|&name| name == "energy_drift");
        let drift = drift.expect("a column");
        let last = log.lines().last().expect("a row").split(',').nth(drift);
        let last: f64 = last.unwrap_or_default().parse().expect("a number");
        assert!(last.abs() < 1e-4, "{out}: {last}");

        // Stopped and resumed again and again, also before and after changes, from another folder: the same bits, and
        // the same log.
        let stopped = "stopped after step";
        let begun = format!("{run} --stop-if time>0 --out parts");
        try_in(&folder, &begun).expect(0, &[stopped]);
        let elsewhere = new_folder();
        let parts = folder.path().join("parts");
        let resume = format!("resume {}", parts.display());
        let resumed = (0..20).map(|_| try_in(&elsewhere, &resume).expect(0, &[]).said.clone());
        let resumed = resumed.take_while(|said| said.contains(stopped)).count();
        assert!((2..20).contains(&resumed), "{out}: {resumed}");
        for name in ["final.allpairs", "changes.csv"] {
            let both = [&at(name), &parts.join(name)].map(|path| fs::read(path).expect("written"));
            assert!(both[0] == both[1], "{out}: {name}");
        }
        write(folder.path(), &TABLE.replace("0.001", "0.003"));
        let resume = format!("{resume} --until 0.0625");
        try_in(&elsewhere, &resume).expect(2, &["contents of", "put that back"]);
        write(folder.path(), TABLE);
        fs::remove_dir_all(parts).expect("removed");
    }
}

#[test]
fn changes_of_bodies_that_are_gone_are_told() {
    let folder = new_folder();
    write(
        folder.path(),
        "time,id,mass,remove\n0.01,3,,true\n0.02,3,0.5,\n",
    );
    let run = format!("{RUN} --softening 0.05 --dt 0.01 --steps 5 --out O");
    try_in(&folder, &run).expect(
        0,
        &[
            "1 change of bodies",
            "1 change was of bodies that had merged or gone before",
        ],
    );
    let changes = fs::read_to_string(folder.path().join("O/changes.csv")).expect("a log");
    assert!(changes.ends_with("2,0.02,3,0.0,missed,0.0\n"), "{changes}");
}

#[test]
fn tables_that_make_no_sense_are_refused_before_the_run() {
    let folder = new_folder();
    for (table, options, told) in [
        (
            "time,id,mass\n0.1,99,1\n",
            "",
            "no body has the id 99, which is to change at time 0.1",
        ),
        ("time,id,mass\n0,3,1\n", "", "the run begins at 0"),
        (
            "time,id,mass\n0.1,3,-1\n",
            "",
            "row 1, of the body 3 at 0.1: the mass -1 is negative",
        ),
        ("time,id,mass\n0.1,3,inf\n", "", "not a finite number"),
        ("time,id,mass\nsoon,3,1\n", "", "soon"),
        (
            "time,id,mass\n0.1,3,1\n0.1,3,2\n",
            "",
            "changes twice at the time 0.1",
        ),
        ("time,id,mass\n0.1,3,\n", "", "the row changes nothing"),
        (
            "# units: Myr, kg\ntime,id,mass\n0.1,3,1\n",
            "",
            "units, and names in a comment, are not read here (`units: Myr, kg`)",
        ),
        ("# masses in kg\ntime,id,mass\n0.1,3,1\n", "", "line 1"),
        ("time [Myr],id,mass\n0.1,3,1\n", "", "`time [Myr],id,mass`"),
        ("0.1,3,1\n", "", "`0.1,3,1`, does not name the columns"),
        (
            "time,id,mass\n0.1,3.5,1\n",
            "",
            "the id `3.5` is no whole number",
        ),
        (
            "time,id,mass\n0.1,3,x\n",
            "",
            "the mass `x` is not a finite number",
        ),
        ("time,id,weight\n0.1,3,1\n", "", "weight"),
        ("id,mass\n3,1\n", "", "time"),
        ("time,id,radius\n0.1,3,0.01\n", "", "add --radius-of-bodies"),
        (
            "time,id,mass\n0.1,3,1\n",
            "--softening 0.05 --steps 5 --dt -0.01",
            "--dt is negative",
        ),
        (
            "time,id,mass\n0.1,3,0\n",
            "--softening 0 --block-steps --integrator hermite4 --groups on --until 1",
            "groups need bodies with mass",
        ),
    ] {
        write(folder.path(), table);
        let options = match options {
            "" => "--softening 0.05 --steps 5",
            options => options,
        };
        try_in(&folder, &format!("{RUN} {options} --out O")).expect(2, &["--changes", told]);
        assert!(!folder.path().join("O").exists(), "{told}");
    }
    fs::remove_file(folder.path().join("table.csv")).expect("removed");
    try_in(&folder, &format!("{RUN} --steps 5 --out O")).expect(2, &["in --changes table.csv"]);
}

/// Columns may have semicolons or blanks between them, and numbers the exponents that Fortran writes.
#[test]
fn tables_of_changes_are_read_as_others_write_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let ends = [
        "time,id,mass\n0.015,3,0.125\n",
        "# mass lost by winds, by id\ntime;id;mass\n0.015;3;0.125\n",
        "  time   id  mass\n\n 1.5D-02  3  1.25d-1\n",
    ]
    .map(|table| {
        write(folder.path(), table);
        let run = format!("{RUN} --softening 0.05 --dt 0.01 --steps 5 --overwrite --out O");
        try_in(&folder, &run).expect(0, &["1 change of a body by table.csv, at time"]);
        fs::read(folder.path().join("O/final.allpairs")).expect("bytes")
    });
    assert!(ends[0] == ends[1] && ends[0] == ends[2]);
}
