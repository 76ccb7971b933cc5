//! Choices of a run where nothing is asked for, and what it says of them: softening, step,
//! integrator, units; on planets, rings, binaries and clusters.

use std::f64::consts::TAU;

use crate::support::program::code::USAGE;
use crate::support::program::{Ended, allpairs, galaxy, run};
use allpairs::bodies::{Bodies, Body, BodyKind};
use allpairs::initial_conditions::{J2000, plummer, solar_system, solar_system_with_moon};
use allpairs::io::{Format, Overwrite, Snapshot, read, read_units, write, write_in_units};
use allpairs::units::{SOLAR_MASS, Units};
use tempfile::{TempDir, tempdir};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempdir().expect("a temporary folder"))
    }

    /// Runs `allpairs` with these arguments, separated by spaces.
    fn run(&self, arguments: &str) -> Ended {
        run(allpairs(self.0.path()).args(arguments.split_whitespace()))
    }

    fn read(&self, name: &str) -> Snapshot {
        read(&self.0.path().join(name), None).expect("sound").0
    }

    fn write(&self, name: &str, bodies: Bodies, units: Option<Units>) {
        let (path, time) = (self.0.path().join(name), 0.0);
        let snapshot = Snapshot { time, bodies };
        match units {
            Some(_) => write_in_units(&path, Format::Npz, &snapshot, units, Overwrite::Refuse),
            None => write(&path, Format::Npz, &snapshot, Overwrite::Refuse),
        }
        .expect("written");
    }
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    let squares = [0, 1, 2].map(|k| (a[k] - b[k]).powi(2));
    squares.iter().sum::<f64>().sqrt()
}

/// Sun, planets and 200 massless asteroids, in units that the file tells: planets go where they go
/// without the asteroids.
#[test]
fn asteroids_do_not_soften_planets() {
    let folder = Folder::new();
    let planets = solar_system(J2000).expect("in range");
    let mut bodies = planets.clone();
    for k in 0..200 {
        let radius = 2.0 + f64::from(k) / 200.0;
        let (sin, cos) = f64::from(k).sin_cos();
        let speed = radius.sqrt().recip();
        bodies.push(Body {
            position: [radius * cos, radius * sin, 0.0],
            velocity: [-speed * sin, speed * cos, 0.0],
            mass: 0.0,
            id: 100 + k as u64,
            kind: BodyKind::Star,
        });
    }
    let au: Units = "au".parse().expect("units");
    folder.write("asteroids.npz", bodies, Some(au));
    let ended = folder.run("run asteroids.npz --until 6.2831853 --out many");
    ended.expect(
        0,
        &["softening 0: 10 bodies have mass, the others are test particles"],
    );
    let many = folder.read("many/final.npz").bodies;
    let alone = solar_system(J2000 + TAU * 58.132_440_9).expect("in range");
    for (id, name) in ["Sun", "Mercury", "Venus", "Earth"].iter().enumerate() {
        let off = distance(many.body(id).position, alone.body(id).position);
        assert!(off <= 2e-3, "{name} is off by {off} au");
    }
}

/// A file of planets in au is run as the generator's planets are, with the same bits; so is a softening
/// of 0 that was asked for.
#[test]
fn planets_of_a_file_are_run_as_planets() {
    let folder = Folder::new();
    folder
        .run("ic solar-system --out planets.npz")
        .expect(0, &[]);
    folder
        .run("run solar-system --steps 20 --out made")
        .expect(0, &["yoshida6"]);
    let ended = folder.run("run planets.npz --steps 20 --out read");
    ended.expect(
        0,
        &[
            "cpu-f64",
            "yoshida6: lengths are in au, as those of planets",
        ],
    );
    let asked = "run solar-system --steps 20 --softening 0 --out asked";
    folder.run(asked).expect(0, &["kernel cpu-f64"]);
    let made = folder.read("made/final.allpairs");
    assert_eq!(folder.read("read/final.npz"), made);
    assert_eq!(folder.read("asked/final.allpairs"), made);
}

/// Binaries in a file are not parted by a softening that was chosen.
#[test]
fn binaries_of_a_file_are_not_softened() {
    let folder = Folder::new();
    let made = "ic plummer --bodies 200 --binaries 0.5 --seed 2 --out binaries.npz";
    folder.run(made).expect(0, &[]);
    let ended = folder.run("run binaries.npz --steps 1 --out o");
    ended.expect(0, &["softening 0: ", "bound, and close: binaries"]);
    ended.expect(
        0,
        &["closer than fixed steps follow: --integrator hermite6 with --eta 0.02"],
    );
}

/// Pairs that are followed apart leave no other pair so close that f32 would not do for it.
#[test]
fn a_device_has_mixed_digits_next_to_groups() {
    let folder = Folder::new();
    let run = "run plummer --bodies 32 --binaries 0.1 --softening 0 --block-steps --until 0.001 --device emulator \
               --overwrite --out o";
    let [mixed, double] = ["pairs in f32, positions in two", "pairs in f64"];
    let alone = run.replace("--binaries 0.1", "--seed 1");
    let ended = folder.run(&format!("{alone} --integrator hermite6"));
    ended.expect(0, &["groups later: no pairs yet", mixed]);
    for (settings, expected) in [
        ("--integrator hermite6", mixed),
        ("--integrator hermite6 --accuracy double", double),
        ("--integrator hermite6 --groups off", double),
        ("--integrator hermite4", double),
    ] {
        let ended = folder.run(&format!("{run} {settings}"));
        ended.expect(0, &[expected]);
    }
}

/// Stars are not softened, and a run of them follows pairs, also where there are none at its beginning.
#[test]
fn stars_are_run_as_stars() {
    let folder = Folder::new();
    let ended =
        folder.run("run plummer --bodies 200 --masses kroupa --seed 3 --until 0.01 --out made");
    ended.expect(
        0,
        &[
            "softening 0: as `plummer` is made",
            "block time steps by hermite6 with --eta 0.36 (chosen: ",
        ],
    );
    let mut stars = plummer(200, 1).expect("in range");
    stars.mass.fill(0.5);
    folder.write(
        "stars.npz",
        stars,
        Some("pc,Msun,km/s".parse().expect("units")),
    );
    let ended = folder.run("run stars.npz --until 0.001Myr --out read");
    ended.expect(
        0,
        &[
            "softening 0: masses are those of single stars",
            "block time steps by hermite6 with --eta 0.36 (chosen: bodies without softening form pairs)",
        ],
    );
    folder
        .run("run read/run.toml --out again")
        .expect(0, &["hermite6"]);
    assert_eq!(
        folder.read("again/final.npz"),
        folder.read("read/final.npz")
    );
}

/// Bodies at one place do not pull each other without softening, which is said.
#[test]
fn coincident_bodies_are_named() {
    let folder = Folder::new();
    let mut bodies = plummer(5, 1).expect("in range");
    let first = bodies.body(0).position;
    [bodies.x[3], bodies.y[3], bodies.z[3]] = first;
    folder.write("two.npz", bodies, None);
    let said = "bodies 0 and 3 have the same position";
    folder
        .run("run two.npz --steps 1 --out o")
        .expect(0, &[said]);
    let softened = folder.run("run two.npz --softening 0.1 --steps 1 --out p");
    assert!(!softened.said.contains(said), "{}", softened.said);
    // The square of a distance may be 0 where the distance is not.
    let mut near = plummer(2, 1).expect("in range");
    (near.x, near.y, near.z) = (vec![0.0, 1e-300], vec![0.0; 2], vec![0.0; 2]);
    near.mass.fill(1e300);
    folder.write("near.npz", near, None);
    folder
        .run("run near.npz --softening 0 --dt 0.1 --steps 1 --out q")
        .expect(0, &["bodies 0 and 1 have positions so near each other"]);
}

/// Bodies that come near each other, or fall into a field, have steps of their own, and the energy is kept. So it is with
/// any softening.
#[test]
fn no_chosen_step_loses_the_energy() {
    let folder = Folder::new();
    let table = "x,y,z,vx,vy,vz,m\n1,0,0,0,0.3,0,1e-9\n5,5,0,0,0,0,1e-9\n";
    std::fs::write(folder.0.path().join("fall.csv"), table).expect("written");
    let table = "x,y,z,vx,vy,vz,m\n1,0,0,0,0.001,0,1e-6\n";
    std::fs::write(folder.0.path().join("one.csv"), table).expect("written");
    // A test particle that falls to 5e-7 of a star with a planet.
    let table = "x,y,z,vx,vy,vz,m\n0,0,0,0,0,0,1\n5,0,0,0,0.447,0,1e-3\n1,0,0,0,0.001,0,0\n";
    std::fs::write(folder.0.path().join("particle.csv"), table).expect("written");
    let field = "bodies fall far into a field";
    for (run, why) in [
        (
            "kepler-ring --bodies 30 --mass-ratio 0.1 --until 10",
            "bodies on orbits come near each other",
        ),
        (
            "kepler-ring --bodies 100 --mass-ratio 0.1 --until 1",
            "fall onto each other: a tenth of the Hill radius",
        ),
        (
            "kepler-ring --bodies 12 --mass-ratio 1 --until 4",
            "bodies on orbits come near each other",
        ),
        (
            "plummer --bodies 300 --until 1 --softening 1e-4",
            "nearer than softening keeps them apart",
        ),
        (
            "fall.csv --until 5 --softening 0 --field point:mass=10",
            field,
        ),
        ("one.csv --until 20 --field point:mass=1", field),
        (
            "plummer --bodies 100 --until 2 --field point:mass=10,x=2",
            field,
        ),
        (
            "plummer --bodies 100 --until 1 --field hernquist:mass=10,scale=0.01",
            field,
        ),
        (
            "plummer --bodies 30 --seed 2 --until 1 --field miyamoto-nagai:mass=100,a=1,b=0.001",
            "hermite6 with --eta 0.02",
        ),
        (
            "particle.csv --until 20",
            "bodies pass each other, or fall onto one",
        ),
        (
            "plummer --bodies 300 --until 5 --softening 3",
            "a twelfth of √(d³/GM)",
        ),
        (
            "hernquist --bodies 300 --until 4 --softening 1",
            "a twelfth of √(d³/GM)",
        ),
    ] {
        let ended = folder.run(&format!("run {run} --overwrite --no-picture --out o"));
        ended.expect(0, &[why]);
        let has_drifted = ["drifted", "of a test particle has changed"]
            .iter()
            .any(|told| ended.complained.contains(told));
        assert!(!has_drifted, "{run}: {ended}");
    }
    // Others keep the steps that they had.
    for run in [
        "kepler-ring --bodies 30 --until 1",
        "solar-system --until 0.1",
        "plummer --bodies 300 --until 0.1 --softening 0.01",
        "plummer --bodies 100 --until 0.1 --field nfw:mass=100,scale=20",
        "plummer --bodies 100 --until 0.1 --field point:mass=1000,x=50",
    ] {
        let ended = folder.run(&format!("run {run} --overwrite --no-picture --out o"));
        ended.expect(0, &[]);
        assert!(!ended.said.contains("block time steps"), "{run}: {ended}");
    }
    // A given integrator has fixed steps, which look at the pericentre too.
    let given = "run fall.csv --until 5 --softening 0 --field point:mass=10 --integrator leapfrog --out o --overwrite";
    let ended = folder.run(given);
    ended.expect(0, &["deeper than fixed steps follow"]);
    assert!(!ended.complained.contains("drifted"), "{ended}");
}

/// A step that is chosen at the start stays, which a run tells of once bodies are much nearer to each other.
#[test]
fn bodies_that_outrun_their_step_are_told_of() {
    let folder = Folder::new();
    let said = "would be chosen now (√(0.05 ε / a) of the largest acceleration)";
    let falling = "run uniform-sphere --bodies 200 --virial-ratio 0.6 --softening 1e-4 --integrator leapfrog --until 0.5 --out o --no-picture --checkpoint-every 10";
    let ended = folder.run(falling);
    assert_eq!(ended.complained.matches(said).count(), 1, "{ended}");
    let given = format!("{falling} --dt 0.01 --overwrite");
    assert!(!folder.run(&given).complained.contains(said));
    // A resumed run does not know who chose the step but by its checkpoint.
    let resumed = |seed: u32, more: &str| {
        let short = falling.replace("--until 0.5", "--until 0.1");
        let all = format!("{short} --seed {seed} --accuracy double --overwrite {more}");
        folder.run(&all).expect(0, &[]);
        let resumed = folder.run("resume o --until 0.5");
        resumed.expect(0, &[]);
        resumed.complained.contains(said)
    };
    let seeds = [1, 3, 11, 12, 14, 17, 18, 22];
    assert!(seeds.iter().any(|&seed| resumed(seed, "")));
    assert!(!seeds.iter().any(|&seed| resumed(seed, "--dt 6e-4")));
    for quiet in [
        "plummer --bodies 300",
        "cold-collapse --bodies 300",
        "two-body --eccentricity 0.9",
    ] {
        let ended = folder.run(&format!(
            "run {quiet} --until 3 --overwrite --out o --no-picture"
        ));
        ended.expect(0, &[]);
        assert!(!ended.complained.contains("would be chosen now"), "{ended}");
    }
}

/// Binaries that a given softening would part are told of; bodies that are pairs by chance are not.
#[test]
fn a_softening_that_parts_binaries_is_told_of() {
    let folder = Folder::new();
    let run = |arguments: &str| {
        let all = format!("run {arguments} --steps 1 --out o --overwrite --no-picture");
        let ended = folder.run(&all);
        ended.expect(0, &[]);
        ended.complained
    };
    let said = "it changes the orbits";
    for told in [
        "plummer --bodies 300 --binaries 0.3 --softening 0.001",
        "two-body --softening 0.3",
    ] {
        assert!(run(told).contains(said), "{told}");
    }
    for quiet in [
        "plummer --bodies 300 --binaries 0.3",
        "plummer --bodies 300 --softening 0.05",
        "two-body --softening 0.01",
    ] {
        assert!(!run(quiet).contains(said), "{quiet}");
    }
}

/// Where hermite4 takes velocities that it predicts, a run says which order is left.
#[test]
fn predicted_velocities_in_fields_are_told_of() {
    let folder = Folder::new();
    let blocks = "--block-steps --integrator hermite4 --eta 0.02 --softening 0.05 --until 0.01 --overwrite --no-picture";
    let run = |options: &str| {
        let all =
            format!("run plummer --bodies 20 --field tide:omega=1 {blocks} --out o {options}");
        let ended = folder.run(&all);
        ended.expect(0, &[]);
        ended.said.contains("are of third order")
    };
    assert!(run("--device emulator"));
    assert!(!run("--device cpu"));
}

/// A step that is chosen does not know what fields that move will do, and says so.
#[test]
fn fields_that_move_are_told_of() {
    let folder = Folder::new();
    let path = "0 1 0 0\n10 2 0 0\n";
    std::fs::write(folder.0.path().join("path.txt"), path).expect("written");
    let field = "run plummer --bodies 100 --steps 1 --field point:mass=1,path=path.txt --out o --no-picture";
    let said = "how near bodies will come to fields that change with time is not known";
    folder.run(field).expect(0, &[said]);
}

/// A run to where the bodies are already, or to no time, is refused in words that say so.
#[test]
fn ends_that_are_none_are_refused() {
    let folder = Folder::new();
    for (until, said) in [
        (
            "0",
            "bodies are at time 0 already, so --until 0 leaves nothing to do",
        ),
        ("nan", "`--until` must be finite, got NaN"),
        ("inf", "`--until` must be finite, got inf"),
    ] {
        let run = format!("run plummer --bodies 20 --until {until} --out o");
        folder.run(&run).expect(USAGE, &[said]);
    }
}

/// Bodies that stand for many are softened.
#[test]
fn a_galaxy_is_softened() {
    let folder = Folder::new();
    let run = format!("run {} --steps 1 --out o", galaxy().display());
    let ended = folder.run(&run);
    ended.expect(0, &["kernel cpu-f32", "half the mean distance of bodies"]);
}

/// Few bodies that fall onto each other, or pass each other, are followed as pairs.
#[test]
fn few_bodies_are_followed_as_pairs() {
    let folder = Folder::new();
    let table = "x,y,z,vx,vy,vz,m\n-10,.001,0,1,0,0,1\n10,-.001,0,-1,0,0,1\n";
    std::fs::write(folder.0.path().join("pass.csv"), table).expect("written");
    for (run, why) in [
        ("uniform-sphere --bodies 7 --seed 3 --until 2", "hard pairs"),
        (
            "uniform-sphere --bodies 10 --seed 10 --until 2",
            "hard pair",
        ),
        ("plummer --bodies 10 --until 50", ""),
        ("plummer --bodies 8 --binaries 0.5 --until 5", "hard pairs"),
        ("plummer --bodies 3 --seed 2 --until 100", ""),
        (
            "two-body --eccentricity 0.9999 --mass-ratio 0.1 --until 7",
            "1 hard pair",
        ),
        (
            "pass.csv --until 20",
            "(chosen: bodies pass each other, or fall onto one)",
        ),
    ] {
        let settings = "--device cpu --max-drift 1e-3 --overwrite --no-picture --out o";
        let ended = folder.run(&format!("run {run} {settings}"));
        ended.expect(0, &[why, "block time steps by hermite4 with --eta 0.01"]);
        assert!(!ended.complained.contains("drifted"), "{run}: {ended}");
    }
    // Who asks for a step gets it.
    let settings = "--until 0.1 --overwrite --no-picture --device cpu --out o";
    let ended = folder.run(&format!("run plummer --bodies 10 --dt 0.01 {settings}"));
    ended.expect(0, &["leapfrog, step 0.0100"]);
}

/// Block time steps follow encounters and pairs where nothing keeps them from it, and then bodies are not softened.
#[test]
fn bodies_in_block_time_steps_are_not_softened() {
    let folder = Folder::new();
    let blocks =
        "run plummer --bodies 300 --block-steps --until 0.02 --device cpu --no-picture --out";
    let why = "softening 0: block time steps follow pairs and encounters";
    for settings in [
        "o",
        "o6 --integrator hermite6",
        "on --neighbours 20 --integrator hermite4",
        "od --accuracy double",
    ] {
        let ended = folder.run(&format!("{blocks} {settings}"));
        ended.expect(0, &["softening 0 (chosen)", why]);
    }
    for settings in [
        "sg --groups off",
        "ss --accuracy single",
        "sk --kernel cpu-f64",
        "sf --field tide:omega=1,kappa=1,nu=1",
    ] {
        let ended = folder.run(&format!("{blocks} {settings}"));
        ended.expect(0, &["softening 0.", "half the mean distance of bodies"]);
    }
}

/// `solar-system` without any option but the end, against another epoch.
#[test]
fn the_solar_system_is_run_as_it_should_be() {
    let folder = Folder::new();
    let year = 2.0 * 365.25 / 58.132_440_873_8;
    let ended = folder.run(&format!("run solar-system --until {year} --out s"));
    ended.expect(
        0,
        &[
            "10 bodies",
            "yoshida6",
            "kernel cpu-f64",
            "softening 0: as `solar-system` is made to be simulated",
        ],
    );
    let found = folder.read("s/final.allpairs").bodies;
    let expected = solar_system(J2000 + 730.5).expect("in range");
    for id in 0..10 {
        let (a, b) = (found.body(id).position, expected.body(id).position);
        assert!(distance(a, b) <= 2e-7, "{id}: {}", distance(a, b));
    }
}

/// The epoch is the time of the file, and the Moon is a body where asked for.
#[test]
fn an_epoch_is_kept() {
    let folder = Folder::new();
    let ic = "ic solar-system --moon 1 --epoch 2451910.25 --out m.allpairs";
    folder.run(ic).expect(0, &["11 bodies at time 1 yr"]);
    let made = folder.read("m.allpairs");
    assert!((made.time / (365.25 / 58.132_440_873_8) - 1.0).abs() <= 1e-9);
    let expected = solar_system_with_moon(2_451_910.25).expect("in range");
    assert_eq!(made.bodies, expected);
    folder
        .run("run m.allpairs --steps 1 --out r")
        .expect(0, &["at time 1 yr", "yoshida6, step 0.1874 day"]);
    for (arguments, said) in [
        ("--epoch 2378494", "the year 1800"),
        ("--epoch 2600000", "the year 2200"),
        ("--moon 2", "Earth and Moon are two bodies"),
    ] {
        let ended = folder.run(&format!("ic solar-system {arguments} --out n.allpairs"));
        ended.expect(USAGE, &[said]);
    }
    folder
        .run("ic --help")
        .expect(0, &["DE423", "barycentre", "TDB", "ecliptic"]);
}

/// A ring of test particles has the period that its generator promises, and no energy to judge by.
#[test]
fn a_ring_keeps_its_period_and_reports_no_drift() {
    let folder = Folder::new();
    let ring = "kepler-ring --bodies 300 --width 0";
    folder
        .run(&format!("ic {ring} --out ring.npz"))
        .expect(0, &[]);
    let start = folder.read("ring.npz").bodies;
    for input in [ring, "ring.npz"] {
        let run = format!("run {input} --until {TAU} --diagnostics 100 --overwrite --out o");
        let ended = folder.run(&run);
        ended.expect(0, &["softening 0: ", "no massive pair"]);
        assert!(!ended.complained.contains("drifted"), "{ended}");
        let name = ["o/final.npz", "o/final.allpairs"];
        let end = folder.read(name[usize::from(input == ring)]).bodies;
        for id in 1..300 {
            let off = distance(end.body(id).position, start.body(id).position);
            assert!(off <= 2e-3, "{input}: body {id} is off by {off}");
        }
        let log = std::fs::read_to_string(folder.0.path().join("o/diagnostics.csv"));
        let log = log.expect("a log");
        let mut rows = log.lines().map(|row| row.split(',').collect::<Vec<_>>());
        let header = rows.next().expect("a header");
        let drift = header.iter().position(|name| *name == "energy_drift");
        let drift = drift.expect("a column");
        assert!(rows.all(|row| row[drift].is_empty()), "{log}");
    }
}

/// The accelerations at apocentre say nothing of the pericentre.
#[test]
fn an_eccentric_binary_keeps_its_energy() {
    let folder = Folder::new();
    folder
        .run("ic two-body --eccentricity 0.9 --out k.npz")
        .expect(0, &[]);
    let ended = folder.run("run k.npz --until 20 --max-drift 1e-3 --diagnostics 100 --out o");
    ended.expect(
        0,
        &[
            "softening 0: fewer than 100 bodies",
            "bodies 0 and 1 turn by a radian at pericentre, 0.1000 apart",
        ],
    );
    assert!(!ended.complained.contains("drifted"), "{ended}");
}

/// Steps and softening of models suit what their bodies will do. `watches` has the models that collapse.
#[test]
fn models_keep_their_energy() {
    let folder = Folder::new();
    for (model, until, drift) in [
        ("plummer", 3, 1e-3),
        ("king", 3, 1e-3),
        ("hernquist", 3, 1e-3),
        ("disk-galaxy", 30, 1e-3),
        ("galaxy-collision", 150, 4e-3),
    ] {
        let run = format!(
            "run {model} --bodies 1000 --seed 0 --until {until} --max-drift {drift} --device cpu --no-picture \
             --out {model}"
        );
        let ended = folder.run(&run);
        ended.expect(
            0,
            &["(chosen), softening 0.", "half the mean distance of bodies"],
        );
        assert!(!ended.complained.contains("drifted"), "{ended}");
    }
}

/// Twice the kinetic over the potential energy.
fn virial_ratio(bodies: &Bodies, g: f64) -> f64 {
    let list: Vec<_> = bodies.iter().collect();
    let (mut kinetic, mut potential) = (0.0, 0.0);
    for (i, a) in list.iter().enumerate() {
        let [x, y, z] = a.velocity;
        kinetic += 0.5 * a.mass * (x * x + y * y + z * z);
        let pulls = list[..i]
            .iter()
            .map(|b| b.mass / distance(a.position, b.position));
        potential += g * a.mass * pulls.sum::<f64>();
    }
    2.0 * kinetic / potential
}

/// Units are no new name for old numbers.
#[test]
fn models_are_scaled_and_not_relabelled() {
    let folder = Folder::new();
    for command in [
        "run plummer --units pc --bodies 50",
        "ic plummer --units pc --out x.npz",
    ] {
        let ended = folder.run(command);
        ended.expect(USAGE, &["--mass 1000Msun --radius 1pc", "another meaning"]);
    }
    let size = "--mass 1000Msun --radius 2pc";
    let model = plummer(200, 1).expect("bodies");
    for (units, list) in [("", "pc"), ("--units kpc", "kpc"), ("--units si", "si")] {
        let ic = "ic plummer --bodies 200 --seed 1 --overwrite --out p.npz";
        let told: Units = list.parse().expect("units");
        folder
            .run(&format!("{ic} {size} {units}"))
            .expect(0, &["in units of"]);
        let found = read_units(&folder.0.path().join("p.npz"), None).expect("sound");
        assert_eq!(found, Some(told));
        let made = folder.read("p.npz").bodies;
        let ratio = virial_ratio(&made, told.g()) / virial_ratio(&model, 1.0);
        assert!((ratio - 1.0).abs() <= 1e-12, "{list}: {ratio}");
        let mass = made.total_mass() * told.mass / SOLAR_MASS;
        assert!((mass / 1000.0 - 1.0).abs() <= 1e-12, "{mass}");
        let parsec: Units = "pc".parse().expect("units");
        let length = made.x[3] * told.length / parsec.length;
        assert!(
            (length / (2.0 * model.x[3]) - 1.0).abs() <= 1e-12,
            "{length}"
        );
    }
    let run = "run plummer --bodies 200 --seed 1 --steps 3 --overwrite --out o";
    let ended = folder.run(&format!("{run} {size}"));
    ended.expect(0, &["of total mass 1000.0", "G = 0.004301"]);
    // The file of its options does it again.
    folder
        .run("run o/run.toml --out again")
        .expect(0, &["of total mass 1000.0"]);
    let [a, b] = ["o", "again"].map(|name| folder.read(&format!("{name}/final.allpairs")));
    assert_eq!(a, b);

    // What has units is converted.
    folder
        .run("ic solar-system --units si --out si.npz")
        .expect(0, &["in units of m, kg, s"]);
    let si = folder.read("si.npz").bodies;
    assert!((si.mass[0] / SOLAR_MASS - 1.0).abs() <= 1e-8);
    folder.write("file.npz", model, None);
    for (arguments, said) in [
        ("ic plummer --mass 1Msun --out x.npz", "--radius"),
        (
            "ic plummer --mass 1pc --radius 1pc --out x.npz",
            "is not a mass",
        ),
        (
            "ic plummer --mass 1kg --radius 1kg --out x.npz",
            "is not a length",
        ),
        (
            "ic solar-system --mass 1Msun --radius 1au --out x.npz",
            "has its size already",
        ),
        ("run file.npz --mass 1Msun --radius 1pc", "is a file"),
    ] {
        folder.run(arguments).expect(USAGE, &[said]);
    }
}
