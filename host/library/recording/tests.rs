//! Stopped and resumed runs against runs that were not.

use super::*;
use crate::bodies::Bodies;
use crate::initial_conditions::plummer;
use crate::integrator::Integrator;
use crate::integrator::Stepping;
use crate::io::TipsyDialect;
use crate::machine::Machine;
use crate::physics::{Law, Physics};
use crate::selection::Place;
use crate::variants;

const PHYSICS: Physics = Physics {
    law: Law::Gravity,
    g: 1.0,
    softening: 0.01,
};

const PLAN: Plan = Plan {
    steps: 12,
    diagnostics_every: Some(3),
    snapshot_every: Some(0.025),
    checkpoint_every: Some(Every::Steps(5)),
    format: Format::Csv,
    units: None,
};

/// A run of a sphere far from the origin, where shifting the frame rounds.
struct Run {
    place: Place,
    kernel: &'static str,
    integrator: Integrator,
    pace: Pace,
}

impl Run {
    fn bodies() -> Bodies {
        let mut bodies = plummer(40, 5).unwrap();
        bodies.x.iter_mut().for_each(|x| *x += 1.0 / 3.0);
        bodies
    }

    fn start(&self) -> Simulation {
        let machine = Machine::new(self.place.clone());
        let variant = variants::find(self.kernel).unwrap();
        let bodies = Self::bodies();
        let backend = machine.backend(variant, &bodies, PHYSICS).unwrap();
        Simulation::new(backend, bodies, PHYSICS, self.integrator, self.pace, 1.0).unwrap()
    }

    fn resume(&self, from: &Checkpoint) -> Simulation {
        let machine = Machine::new(self.place.clone());
        let variant = variants::find(self.kernel).unwrap();
        let bodies = from.bodies.clone();
        let frame = from.state.frame;
        let backend = machine.backend_in_frame(variant, &bodies, PHYSICS, frame);
        let at = (from.clock, &from.state);
        Simulation::resume(
            backend.unwrap(),
            bodies,
            PHYSICS,
            self.integrator,
            self.pace,
            at,
        )
        .unwrap()
    }
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("checkpoint.previous"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Broken off at every step in turn, and killed without a word after every step: what is left in
/// the end is the same, byte for byte.
#[test]
fn a_resumed_run_leaves_the_same_bytes() {
    let fixed = Pace::Fixed(0.01);
    let adaptive = Pace::Adaptive {
        eta: 0.02,
        longest: 0.02,
        end: 1.07,
        steps: Stepping::Shared,
    };
    let blocks = Pace::Adaptive {
        eta: 0.02,
        longest: 0.005,
        end: 1.07,
        steps: Stepping::Blocks,
    };
    let run = |place, kernel, integrator, pace| Run {
        place,
        kernel,
        integrator,
        pace,
    };
    for run in [
        run(Place::Cpu, "cpu-f64", Integrator::Leapfrog, fixed),
        run(Place::Cpu, "cpu-f32", Integrator::Yoshida4, fixed),
        run(Place::Cpu, "cpu-f64", Integrator::Hermite4, fixed),
        run(Place::Cpu, "cpu-f32", Integrator::Hermite4, adaptive),
        run(Place::Cpu, "cpu-f64", Integrator::Hermite4, blocks),
        run(Place::Emulator, "hermite", Integrator::Hermite4, fixed),
        run(
            Place::Emulator,
            "hermite-f64",
            Integrator::Hermite4,
            adaptive,
        ),
        run(Place::Emulator, "tiled", Integrator::Leapfrog, fixed),
        run(Place::Emulator, "naive-soa", Integrator::LeapfrogDkd, fixed),
        run(
            Place::Emulator,
            "tiled-f64",
            Integrator::SemiImplicitEuler,
            fixed,
        ),
    ] {
        let whole = tempfile::tempdir().unwrap();
        let mut simulation = run.start();
        let mut recording = Recording::begin(whole.path(), PLAN, &mut simulation, |_| {}).unwrap();
        let outcome = recording.run(&mut simulation, |_| ControlFlow::Continue(()));
        assert!(outcome.unwrap().is_continue());
        let expected = files(whole.path());
        assert!(
            expected.len() >= 6,
            "{:?}",
            expected.iter().map(|f| &f.0).collect::<Vec<_>>()
        );

        for (stop, killed) in [(1, false), (5, false), (7, false), (8, true), (11, true)] {
            let folder = tempfile::tempdir().unwrap();
            let mut simulation = run.start();
            let mut recording =
                Recording::begin(folder.path(), PLAN, &mut simulation, |_| {}).unwrap();
            if killed {
                // As a killed process leaves it: steps and rows after the last checkpoint at 5.
                let plan = Plan {
                    steps: stop,
                    ..PLAN
                };
                recording.plan = plan;
                while simulation.clock().steps < stop {
                    recording.plan.steps = simulation.clock().steps + 1;
                    recording.plan.checkpoint_every = None;
                    if simulation.clock().steps == 4 {
                        recording.plan.checkpoint_every = PLAN.checkpoint_every;
                    }
                    step_alone(&mut recording, &mut simulation);
                }
            } else {
                let outcome = recording.run(&mut simulation, |event| match event {
                    Event::Progress(progress) if progress.steps >= stop => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                });
                assert!(outcome.unwrap().is_break());
            }
            drop((simulation, recording));

            let (from, _) = checkpoint::find(folder.path()).checkpoint.unwrap();
            assert!(!killed || from.clock.steps == 5);
            let mut simulation = run.resume(&from);
            let mut recording = Recording::resume(folder.path(), PLAN, &from).unwrap();
            let outcome = recording.run(&mut simulation, |_| ControlFlow::Continue(()));
            assert!(outcome.unwrap().is_continue());
            let found = files(folder.path());
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.0, expected.0);
                assert!(found.1 == expected.1, "{} {stop} {}", run.kernel, found.0);
            }
            assert_eq!(found.len(), expected.len());
        }
    }
}

/// One step with its records, but without the checkpoint that the end of a run writes.
fn step_alone(recording: &mut Recording, simulation: &mut Simulation) {
    let _ = simulation.run(1, |_| ControlFlow::Continue(())).unwrap();
    let mut writer = recording.writer(simulation);
    recording.record_due(simulation, &mut writer).unwrap();
    writer.finish(&mut |_| {}).unwrap();
    if recording.plan.checkpoint_every.is_some() {
        recording.checkpoint(simulation, &mut |_| {}).unwrap();
    }
}

#[test]
fn stops_are_where_something_is_due() {
    let clock = |steps: u64, dt: f64| Clock {
        start: 2.0,
        time: 2.0 + steps as f64 * dt,
        steps,
        dt,
    };
    for dt in [0.01, -0.01, 0.003, 0.7] {
        let plan = Plan {
            steps: 1000,
            diagnostics_every: None,
            snapshot_every: Some(0.1),
            checkpoint_every: None,
            format: Format::Tipsy(TipsyDialect::Standard),
            units: None,
        };
        let mut expected = vec![];
        for steps in 1..=1000 {
            if plan.snapshots_due(&clock(steps, dt)) > plan.snapshots_due(&clock(steps - 1, dt)) {
                expected.push(steps);
            }
        }
        let (mut stops, mut steps) = (vec![], 0);
        while steps < 1000 {
            steps = plan.next_stop(&clock(steps, dt), Pace::Fixed(dt));
            stops.push(steps);
        }
        if stops.last() != expected.last() {
            stops.pop(); // the end
        }
        assert_eq!(stops, expected, "{dt}");
        if dt == 0.01 {
            assert_eq!(stops[..3], [10, 20, 30]);
        }
        let never = Plan {
            snapshot_every: Some(1e300),
            ..plan
        };
        assert_eq!(never.next_stop(&clock(0, dt), Pace::Fixed(dt)), 1000);
    }
}

#[test]
fn distances_are_spelled() {
    assert_eq!("500".parse(), Ok(Every::Steps(500)));
    assert_eq!("90s".parse(), Ok(Every::Wall(Duration::from_secs(90))));
    assert_eq!("10m".parse(), Ok(Every::Wall(Duration::from_secs(600))));
    assert_eq!("2h".parse(), Ok(Every::Wall(Duration::from_secs(7200))));
    for wrong in [
        "",
        "0",
        "0m",
        "-1",
        "1.5h",
        "m",
        "10 m",
        "10d",
        "999999999999999999h",
    ] {
        assert!(wrong.parse::<Every>().is_err(), "{wrong}");
    }
}

#[test]
fn a_folder_is_locked_and_its_leftovers_known() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "run.toml",
        "notes.txt",
        "snapshot-00000010.csv",
        "snapshot-mine.csv",
        "checkpoint",
        "diagnostics.csv",
        ".allpairs-x1.partial",
    ] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let names: Vec<_> = leftovers(folder.path())
        .unwrap()
        .into_iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        names,
        [
            ".allpairs-x1.partial",
            "checkpoint",
            "diagnostics.csv",
            "snapshot-00000010.csv"
        ]
    );
    let held = lock(folder.path(), "run.toml").unwrap();
    let refused = lock(folder.path(), "run.toml").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    drop(held);
    lock(folder.path(), "run.toml").unwrap();
}

#[test]
fn what_cannot_be_written_stops_the_run() {
    let run = Run {
        place: Place::Cpu,
        kernel: "cpu-f64",
        integrator: Integrator::Leapfrog,
        pace: Pace::Fixed(0.01),
    };
    let folder = tempfile::tempdir().unwrap();
    let mut simulation = run.start();
    let mut recording = Recording::begin(folder.path(), PLAN, &mut simulation, |_| {}).unwrap();
    folder.close().unwrap();
    let outcome = recording.run(&mut simulation, |_| ControlFlow::Continue(()));
    let refusal = outcome.expect_err("there is no folder").to_string();
    assert!(
        refusal.contains("snapshot-") || refusal.contains("cannot write"),
        "{refusal}"
    );
    assert!(simulation.clock().steps < PLAN.steps);
}
