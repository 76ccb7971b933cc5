//! The commands that make snapshots and convert them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::support::program::code::{DATA, IO, USAGE};
use crate::support::program::{Ended, allpairs, galaxy, try_in};
use allpairs::bodies::Bodies;
use allpairs::initial_conditions::{GENERATORS, king, plummer};
use allpairs::units::Units;
use tempfile::tempdir;

/// Runs `allpairs` with these arguments, separated by spaces, in `folder`.
fn read(folder: &Path, name: &str) -> Bodies {
    let (snapshot, _) = allpairs::io::read(&folder.join(name), None).expect("a sound file");
    snapshot.bodies
}

fn near(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() <= 1e-12
}

#[test]
fn ic_writes_what_the_library_makes() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let arguments = "ic king --bodies 50 --w0 7 --seed 3 --out a.allpairs";
    try_in(folder, arguments).expect(0, &["50 bodies"]);
    assert_eq!(read(folder, "a.allpairs"), king(50, 3, 7.0).unwrap());
    try_in(folder, arguments).expect(IO, &["already exists"]);
    try_in(folder, &format!("{arguments} --overwrite")).expect(0, &[]);

    try_in(folder, "ic solar-system --out s.hdf5").expect(0, &["10 bodies"]);
    let units = allpairs::io::read_units(&folder.join("s.hdf5"), None).unwrap();
    assert!(near(units.expect("it tells them").g(), 1.0));

    let names: Vec<_> = GENERATORS.iter().map(|generator| generator.name).collect();
    try_in(folder, "ic").expect(0, &names);
}

#[test]
fn what_cannot_be_made_is_explained() {
    let folder = tempdir().unwrap();
    for (arguments, said) in [
        ("ic torus --out a.csv", "plummer"),
        ("ic plummer --w0 7 --out a.csv", "W0"),
        ("ic king --w0 -7 --out a.csv", "from 0.1 to 16"),
        ("ic plummer --bodies 2.5 --out a.csv", "a whole number"),
        ("ic plummer --out a.fits", "does not tell a format"),
        ("ic plummer", "--out"),
    ] {
        try_in(folder.path(), arguments).expect(USAGE, &[said]);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn every_format_holds_the_galaxy() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let original = fs::read(galaxy()).expect("it comes with the sources");
    fs::write(folder.join("a.bin"), &original).unwrap();
    let mut last = "a.bin".to_owned();
    for next in ["b.allpairs", "c.npz", "d.hdf5", "e.vtp", "f.csv", "g.bin"] {
        try_in(folder, &format!("convert {last} {next}")).expect(0, &["20000 bodies"]);
        last = next.to_owned();
    }
    let (first, end) = (read(folder, "a.bin"), read(folder, "g.bin"));
    assert_eq!(first, end, "single precision comes back from all of them");
}

#[test]
fn convert_changes_units() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let original = plummer(40, 1).unwrap();
    try_in(folder, "ic plummer --bodies 40 --seed 1 --out a.allpairs").expect(0, &[]);
    // Into G = 1: lengths and speeds stay, masses become G m.
    try_in(folder, "convert a.allpairs b.npz --units pc:pc,km/s").expect(0, &["G = 1.0"]);
    let scaled = read(folder, "b.npz");
    let g = "pc".parse::<Units>().unwrap().g();
    assert!(near(scaled.mass[9], g * original.mass[9]));
    assert!(near(scaled.x[9], original.x[9]) && near(scaled.vx[9], original.vx[9]));
    assert_eq!(scaled.id, original.id);
    // The file now tells its units, so one side is enough.
    try_in(folder, "convert b.npz c.csv --units si").expect(0, &[]);
    let parsec = 3.085_677_581_491_367e16;
    assert!(near(read(folder, "c.csv").x[9], original.x[9] * parsec));
    // A Plummer sphere of mass 1 has the potential energy −1/2 but for noise.
    try_in(folder, "convert b.npz d.csv --units nbody").expect(0, &["G = 1.0"]);
    let standard = read(folder, "d.csv");
    assert!(near(standard.total_mass(), 1.0));
    let stretch = standard.x[9] / original.x[9];
    assert!((0.7..1.4).contains(&stretch), "{stretch}");

    for (units, said) in [("si", "records no units"), ("pc:furlong", "not a unit")] {
        let arguments = format!("convert a.allpairs f.csv --units {units}");
        try_in(folder, &arguments).expect(USAGE, &[said]);
        assert!(!folder.join("f.csv").exists());
    }
}

/// A run's snapshots are in its units, whether or not their format records any.
#[test]
fn units_of_a_run_are_those_of_its_snapshots() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let run = "run plummer --bodies 20 --mass 100Msun --radius 1pc --steps 1 --snapshot-format vtp";
    try_in(folder, &format!("{run} --device cpu --out R")).expect(0, &[]);
    for of_run in ["info R/final.vtp", "convert R/final.vtp a.csv --units si"] {
        let ended = try_in(folder, of_run);
        assert!(ended.complained.contains("run.toml beside it"), "{ended}");
        ended.expect(0, &["units"]);
    }
    // Its name alone says that it is the run's.
    fs::copy(folder.join("R/final.vtp"), folder.join("R/other.vtp")).unwrap();
    let other = "convert R/other.vtp b.csv --units si";
    try_in(folder, other).expect(USAGE, &["records no units"]);
}

/// Large and small numbers keep their digits, and are not drowned in zeros.
#[test]
fn numbers_of_any_size_are_shown() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    try_in(folder, "ic sun-earth --out a.allpairs").expect(0, &[]);
    try_in(folder, "convert a.allpairs b.csv --units si").expect(0, &["G = 6.674300e-11"]);
    let run = "run b.csv --gravity 6.6743e-11 --steps 2 --dt 1e-5 --kernel cpu-f64 --out c";
    let shown = [
        "total mass 1.9884",
        "e30",
        "step 1.0000e-5",
        "softening 0 (chosen)",
    ];
    try_in(folder, run).expect(0, &shown);
}

#[test]
fn convert_takes_formats_and_keeps_what_is_there() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    try_in(folder, "ic kepler-ring --bodies 9 --out a.allpairs").expect(0, &[]);
    try_in(folder, "convert a.allpairs raw --to npz").expect(0, &[]);
    try_in(folder, "convert raw b.csv --from npz").expect(0, &["npz"]);
    assert_eq!(read(folder, "b.csv"), read(folder, "a.allpairs"));
    fs::write(folder.join("b.csv"), "precious").unwrap();
    try_in(folder, "convert raw b.csv --from npz").expect(USAGE, &["--overwrite"]);
    assert_eq!(fs::read(folder.join("b.csv")).unwrap(), b"precious");
    try_in(folder, "convert raw b.csv --from npz --overwrite").expect(0, &[]);
    assert_eq!(read(folder, "b.csv"), read(folder, "a.allpairs"));
}

#[test]
fn runs_keep_the_format_of_their_input() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    try_in(folder, "run figure-eight --steps 10 --out o").expect(0, &["final.allpairs"]);
    assert_eq!(read(folder, "o/final.allpairs").mass, [1.0; 3]);
    try_in(folder, "ic figure-eight --out a.npz").expect(0, &[]);
    try_in(folder, "run a.npz --steps 10 --out p").expect(0, &["final.npz"]);
    assert_eq!(
        read(folder, "p/final.npz"),
        read(folder, "o/final.allpairs")
    );
}

/// Contents of a file that a simulation does not use are reported, on the stream of complaints.
#[test]
fn what_is_left_out_is_said() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    fs::copy(galaxy(), folder.join("a.bin")).unwrap();
    for command in [
        "convert a.bin b.npz",
        "run a.bin --steps 1 --kernel cpu-f32",
    ] {
        let ended = try_in(folder, command);
        ended.expect(0, &[]);
        let complained = &ended.complained;
        assert!(
            complained.contains("note: a.bin: bodies have softening lengths"),
            "{command}: {ended}"
        );
    }
    let text = "x;y;z;vx;vy;vz;m;eps\n0;0;0;0;0;0;1;0.1\n1;0;0;0;1;0;1;0.1\n";
    fs::write(folder.join("c.csv"), text).unwrap();
    let ended = try_in(folder, "convert c.csv d.csv");
    ended.expect(0, &["2 bodies"]);
    assert!(ended.complained.contains("eps"), "{ended}");
    let written = fs::read_to_string(folder.join("d.csv")).unwrap();
    assert!(written.contains("# bodies = 2\n"), "{written}");
}

/// PeTar and NBODY6 begin with tables that do not keep all, which is said.
#[test]
fn other_codes_go_on_with_the_bodies() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let original = plummer(12, 1).unwrap();
    try_in(folder, "ic plummer --bodies 12 --seed 1 --out a.allpairs").expect(0, &[]);
    let ended = try_in(folder, "convert a.allpairs a.petar");
    ended.expect(0, &["(petar)"]);
    assert!(ended.complained.contains("ids are larger by 1"), "{ended}");
    let found = read(folder, "a.petar");
    assert_eq!((&found.x, &found.mass), (&original.x, &original.mass));
    assert_eq!(found.id, (1..13).collect::<Vec<_>>());
    try_in(folder, "convert a.allpairs dat.10").expect(0, &["(nbody6)"]);
    let table = fs::read_to_string(folder.join("dat.10")).unwrap();
    assert_eq!(table.split_whitespace().count(), 12 * 7);
    assert_eq!(read(folder, "dat.10"), original);

    // 1 km/s is 1.022712165045695 pc/Myr.
    try_in(folder, "convert a.allpairs b.npz --units pc:pc").expect(0, &[]);
    let ended = try_in(folder, "convert b.npz b.table --to petar");
    ended.expect(0, &[]);
    assert!(
        ended.complained.contains("petar its option -u 1"),
        "{ended}"
    );
    assert!(near(
        read(folder, "b.table").vx[3],
        1.022_712_165_045_695 * original.vx[3]
    ));
}

/// Units in names of columns or in comments are the units of the run. Others are told.
#[test]
fn units_of_tables_are_used_or_named() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let rows = "0,0,0,0,0,0,1\n1,0,0,0,0.065,0,1\n";
    for (name, head, units) in [
        (
            "a.csv",
            "x [pc],y [pc],z [pc],vx [km/s],vy [km/s],vz [km/s],m [Msun]",
            "pc, Msun, km/s",
        ),
        (
            "b.csv",
            "# units: pc, Msun, km/s\nx,y,z,vx,vy,vz,m",
            "pc, Msun, km/s",
        ),
        (
            "c.csv",
            "x_au,y_au,z_au,vx_kms,vy_kms,vz_kms,m_msun",
            "au, Msun",
        ),
    ] {
        fs::write(folder.join(name), format!("{head}\n{rows}")).unwrap();
        let said = format!("in units of {units}");
        try_in(folder, &format!("info {name}")).expect(0, &[&said]);
        let run = format!("run {name} --steps 1 --device cpu --out R-{name}");
        try_in(folder, &run).expect(0, &[&said]);
    }
    fs::write(
        folder.join("d.csv"),
        format!("# units: furlong, stone\nx,y,z,vx,vy,vz,m\n{rows}"),
    )
    .unwrap();
    let ended = try_in(folder, "info d.csv");
    ended.expect(0, &["units unknown"]);
    let said = "`units: furlong, stone` tells of units and was not understood";
    assert!(ended.complained.contains(said), "{ended}");
}

/// Programs pass snapshots on by pipes.
#[test]
fn the_standard_input_and_output_hold_snapshots() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let piped = |arguments: &str, input: &[u8]| {
        let mut command = allpairs(folder);
        let command = command.args(arguments.split(' '));
        let pipes = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = pipes.spawn().expect("the program starts");
        let mut to = child.stdin.take().expect("a pipe");
        to.write_all(input).expect("it reads");
        drop(to);
        child.wait_with_output().expect("it ends")
    };
    let table = piped("ic plummer --bodies 20 --seed 3 --out -", b"").stdout;
    fs::write(folder.join("a.csv"), &table).unwrap();
    assert_eq!(read(folder, "a.csv"), plummer(20, 3).unwrap());
    let archive = piped("convert - - --to npz", &table).stdout;
    fs::write(folder.join("b.npz"), archive).unwrap();
    assert_eq!(read(folder, "b.npz"), plummer(20, 3).unwrap());
    Ended::of(piped("info -", &table)).expect(0, &["20 bodies", "a table of text"]);
    Ended::of(piped("run - --steps 1 --out o", &table)).expect(0, &["20 bodies"]);
    Ended::of(piped("render - --output r.png --size 600x300", &table)).expect(0, &["r.png"]);
    Ended::of(piped("run - --bodies 5 --out p", &table)).expect(USAGE, &["--bodies"]);
    Ended::of(piped("info -", b"")).expect(DATA, &["standard input", "empty"]);
    if cfg!(target_os = "linux") {
        Ended::of(piped("info /dev/stdin", &table)).expect(0, &["20 bodies"]);
        Ended::of(piped("run /dev/stdin --steps 1 --out q", &table)).expect(0, &["20 bodies"]);
        let again = piped("convert /dev/stdin /dev/stdout", &table);
        assert_eq!(again.stdout, table);
        try_in(folder, "info /dev/zero").expect(DATA, &["a device"]);
    }
}
