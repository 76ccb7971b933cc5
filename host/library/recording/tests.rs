//! Stopped and resumed runs against runs that were not.

use std::fs;

use super::*;
use crate::bodies::Bodies;
use crate::initial_conditions::plummer;
use crate::integrator::Integrator;
use crate::integrator::TimeSteps;
use crate::io::{Format, TipsyDialect};
use crate::machine::Machine;
use crate::physics::{ForceLaw, Physics};
use crate::selection::Place;
use crate::simulation::tests::with_long_steps;
use crate::variants;

const PHYSICS: Physics = Physics {
    law: ForceLaw::Gravity,
    g: 1.0,
    softening: 0.01,
};

pub(super) const PLAN: Plan = Plan {
    steps: 12,
    until: None,
    diagnostics_every: Some(3),
    snapshot_every: Some(0.025),
    checkpoint_every: Some(Every::Steps(5)),
    format: Format::Csv,
    units: None,
    time_unit: None,
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
        steps: TimeSteps::Shared,
    };
    let blocks = Pace::Adaptive {
        eta: 0.02,
        longest: 0.005,
        end: 1.07,
        steps: TimeSteps::Blocks,
    };
    let run = |place, kernel, integrator, pace| Run {
        place,
        kernel,
        integrator,
        pace,
    };
    for run in [
        run(Place::CPU, "cpu-f64", Integrator::Leapfrog, fixed),
        run(Place::CPU, "cpu-f32", Integrator::Yoshida4, fixed),
        run(Place::CPU, "cpu-f64", Integrator::Hermite4, fixed),
        run(Place::CPU, "cpu-f32", Integrator::Hermite4, adaptive),
        run(Place::CPU, "cpu-f64", Integrator::Hermite4, blocks),
        run(Place::EMULATOR, "hermite", Integrator::Hermite4, fixed),
        run(
            Place::EMULATOR,
            "hermite-f64",
            Integrator::Hermite4,
            adaptive,
        ),
        run(Place::EMULATOR, "tiled", Integrator::Leapfrog, fixed),
        run(Place::EMULATOR, "naive-soa", Integrator::LeapfrogDkd, fixed),
        run(
            Place::EMULATOR,
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
        let (last, _) = checkpoint::find(whole.path()).checkpoint.unwrap();
        assert!(last.largest_drift > 0.0 && last.largest_drift <= recording.largest_drift());
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
            let mut at_5 = None;
            let outcome = recording.run(&mut simulation, |event| match event {
                RunEvent::Progress(progress) if progress.steps >= stop => ControlFlow::Break(()),
                RunEvent::Wrote(path) if path.ends_with("checkpoint") => {
                    at_5.get_or_insert_with(|| fs::read(path).unwrap());
                    ControlFlow::Continue(())
                }
                _ => ControlFlow::Continue(()),
            });
            assert!(outcome.unwrap().is_break());
            if killed {
                // As a killed process leaves it: rows and snapshots after the last checkpoint.
                fs::write(folder.path().join("checkpoint"), at_5.unwrap()).unwrap();
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

#[test]
fn stops_are_where_something_is_due() {
    let clock = |time: f64, steps: u64| Clock {
        start: 2.0,
        time,
        steps,
        dt: 0.01,
        counted_from: (2.0, 0),
        followed: None,
    };
    let plan = Plan {
        steps: 1000,
        until: None,
        diagnostics_every: None,
        snapshot_every: Some(0.1),
        checkpoint_every: None,
        format: Format::Tipsy(TipsyDialect::Standard),
        units: None,
        time_unit: None,
    };
    for dt in [0.01_f64, -0.01, 0.003, 0.7] {
        let direction = dt.signum();
        let mut time = 2.0;
        for k in 1..=1000 {
            let stop = plan.next_stop(&clock(time, 5), Pace::Fixed(dt));
            assert_eq!(stop.steps, 1000);
            time = stop.time.unwrap();
            assert_eq!(time, 2.0 + direction * (f64::from(k) * 0.1));
        }
        let never = Plan {
            snapshot_every: Some(1e300),
            ..plan
        };
        let stop = never.next_stop(&clock(2.0, 0), Pace::Fixed(dt));
        assert!(stop.steps == 1000 && stop.time.unwrap().abs() >= 1e300);
        // The end comes first, also where the last snapshot is before it by rounding.
        let end = 2.0 + direction * 0.3;
        let ending = Plan {
            until: Some(end),
            ..plan
        };
        let stop = ending.next_stop(&clock(2.0 + direction * 0.2, 0), Pace::Fixed(dt));
        assert_eq!(stop.time, Some(end));
    }
    // Far from time 0, times are rounded by more than 1e-12 of the time between two snapshots.
    for (start, every) in [(18.3389, 0.0004), (1e3, 1e-10), (-1e3, 1e-10)] {
        let plan = Plan {
            snapshot_every: Some(every),
            ..plan
        };
        let mut now = Clock {
            start,
            ..clock(start, 0)
        };
        for k in 1..=1000 {
            let stop = plan.next_stop(&now, Pace::Fixed(0.01));
            let time = stop.time.expect("a snapshot");
            assert!(time > now.time, "{start} {every} {k}");
            now.time = time;
            assert_eq!(plan.snapshots_due(&now), k, "{start} {every}");
        }
    }
    let logged = Plan {
        diagnostics_every: Some(7),
        checkpoint_every: Some(Every::Steps(5)),
        ..plan
    };
    for (steps, next) in [(0, 5), (5, 7), (7, 10), (999, 1000)] {
        let stop = logged.next_stop(&clock(2.0, steps), Pace::Fixed(0.01));
        assert_eq!(stop.steps, next);
    }
}

/// Snapshots and the end are at their times, with every pace, and the record of a run says what
/// happened: the largest drift too.
#[test]
fn snapshots_and_the_end_are_at_their_times() {
    let adaptive = |steps| Pace::Adaptive {
        eta: 0.02,
        longest: 0.02,
        end: 1.07,
        steps,
    };
    for (integrator, pace) in [
        (Integrator::Leapfrog, Pace::Fixed(0.007)),
        (Integrator::Hermite4, adaptive(TimeSteps::Shared)),
        (Integrator::Hermite4, adaptive(TimeSteps::Blocks)),
    ] {
        let run = Run {
            place: Place::CPU,
            kernel: "cpu-f64",
            integrator,
            pace,
        };
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan {
            steps: u64::MAX,
            until: Some(1.07),
            diagnostics_every: None,
            snapshot_every: Some(0.025),
            ..PLAN
        };
        let mut simulation = run.start();
        let mut recording = Recording::begin(folder.path(), plan, &mut simulation, |_| {}).unwrap();
        let _ = recording
            .run(&mut simulation, |_| ControlFlow::Continue(()))
            .unwrap();
        assert_eq!(simulation.time(), 1.07);
        let last = recording.last_sample(&mut simulation).unwrap();
        assert!(recording.largest_drift() >= last.energy_drift);
        let mut times: Vec<f64> = files(folder.path())
            .into_iter()
            .filter(|(name, _)| name.starts_with("snapshot"))
            .map(|(name, _)| {
                crate::io::read(&folder.path().join(name), None)
                    .unwrap()
                    .0
                    .time
            })
            .collect();
        times.sort_by(f64::total_cmp);
        assert_eq!(times, [1.0, 1.025, 1.05], "{pace:?}");
    }
}

/// A run whose state is not finite any more, or whose steps become too short, leaves its last good
/// state.
#[test]
fn a_run_that_cannot_go_on_leaves_its_last_good_state() {
    let mut bodies = Run::bodies();
    bodies.vx[3] = 1e305;
    bodies.mass[4] = 1e200;
    let physics = Physics {
        softening: 0.0,
        ..PHYSICS
    };
    let machine = Machine::new(Place::CPU);
    let variant = variants::find("cpu-f64").unwrap();
    let backend = machine.backend(variant, &bodies, physics).unwrap();
    let pace = Pace::Fixed(1e4);
    let mut simulation =
        Simulation::new(backend, bodies, physics, Integrator::Leapfrog, pace, 0.0).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan {
        diagnostics_every: None,
        snapshot_every: None,
        ..PLAN
    };
    let mut recording = Recording::begin(folder.path(), plan, &mut simulation, |_| {})
        .unwrap()
        .of_settings("dt = 1".into());
    let outcome = recording.run(&mut simulation, |_| ControlFlow::Continue(()));
    let Err(RecordingError::Stopped(stopped)) = outcome else {
        panic!("{outcome:?}");
    };
    let Stopped { why, good, .. } = *stopped;
    assert!(matches!(why, ForceError::NotFinite { .. }), "{why}");
    let (checkpoint, _) = checkpoint::find(folder.path()).checkpoint.unwrap();
    assert_eq!(checkpoint.bodies, good.bodies);
    assert_eq!(checkpoint.settings, "dt = 1");
    good.bodies.check().unwrap();
}

#[test]
fn distances_are_spelled() {
    assert_eq!("500".parse(), Ok(Every::Steps(500)));
    assert_eq!("90s".parse(), Ok(Every::Wall(Duration::from_secs(90))));
    assert_eq!("10m".parse(), Ok(Every::Wall(Duration::from_secs(600))));
    assert_eq!("2h".parse(), Ok(Every::Wall(Duration::from_secs(7200))));
    assert_eq!("1.5h".parse(), Ok(Every::Wall(Duration::from_secs(5400))));
    for wrong in [
        "",
        "0",
        "0m",
        "-1",
        "1.5",
        "nanm",
        "1e-10s",
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
    let held = lock(folder.path()).unwrap();
    let refused = lock(folder.path()).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    drop(held);
    lock(folder.path()).unwrap();
}

#[test]
fn what_cannot_be_written_stops_the_run() {
    let run = Run {
        place: Place::CPU,
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

/// A request to stop may come while a look is told of as well as between steps.
#[test]
fn a_run_that_a_look_breaks_off_leaves_a_checkpoint() {
    let run = Run {
        place: Place::CPU,
        kernel: "cpu-f64",
        integrator: Integrator::Leapfrog,
        pace: Pace::Fixed(1e-6),
    };
    let plan = Plan {
        steps: 1_000_000,
        diagnostics_every: Some(1),
        snapshot_every: None,
        checkpoint_every: None,
        ..PLAN
    };
    let folder = tempfile::tempdir().unwrap();
    let mut simulation = run.start();
    let mut recording = Recording::begin(folder.path(), plan, &mut simulation, |_| {}).unwrap();
    let mut looked = false;
    let outcome = recording.run(&mut simulation, |event| {
        // Once, as a caller may who counts on being heard.
        match matches!(event, RunEvent::Sample(_)) && !std::mem::replace(&mut looked, true) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    assert!(outcome.unwrap().is_break());
    let found = checkpoint::find(folder.path()).checkpoint;
    let (checkpoint, _) = found.expect("one of the step at which it stopped");
    assert_eq!(checkpoint.clock.steps, simulation.clock().steps);
}

/// A run that is broken off within a step stands where that step began: its row is there already.
#[test]
fn a_run_broken_off_within_a_step_writes_no_row_twice() {
    let mut simulation = with_long_steps().build().unwrap();
    let plan = Plan {
        steps: u64::MAX,
        until: Some(1.0),
        diagnostics_every: Some(1),
        snapshot_every: None,
        ..PLAN
    };
    let folder = tempfile::tempdir().unwrap();
    let mut recording = Recording::begin(folder.path(), plan, &mut simulation, |_| {}).unwrap();
    let outcome = recording.run(&mut simulation, |event| match event {
        RunEvent::Progress(progress) if progress.is_within_step => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert!(outcome.unwrap().is_break());
    assert_eq!(simulation.clock().steps, 0);
    let rows = fs::read_to_string(folder.path().join("diagnostics.csv")).unwrap();
    assert_eq!(rows.lines().count(), 2, "{rows}");
}

/// A lost table costs no snapshot that is there.
#[test]
fn snapshots_go_on_with_the_next_number() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(
        folder.join(INDEX),
        "step,number,time\n0,0,0.0\n4,1,0.5\n8,x",
    )
    .unwrap();
    fs::write(folder.join("snapshot-00007.csv"), "").unwrap();
    assert_eq!(next_number(folder).unwrap(), 2);
    fs::write(folder.join(INDEX), "step,number,time\n").unwrap();
    assert_eq!(next_number(folder).unwrap(), 8);
}

#[test]
fn nothing_is_larger_than_a_drift_that_is_not_a_number() {
    use crate::diagnostics::Energy;
    let look = |drift: f64, potential: f64| EnergyLook {
        steps: 1,
        time: 0.0,
        drift,
        energy: Energy {
            potential,
            ..Energy::default()
        },
    };
    let mut largest = LargestDrift::default();
    largest.count(&look(0.25, -1.0), true);
    largest.count(&look(f64::NAN, 0.0), true);
    assert_eq!(
        (largest.seen, largest.recorded),
        (0.25, 0.25),
        "no energy to judge by"
    );
    largest.count(&look(f64::NAN, -1.0), false);
    largest.count(&look(0.5, -1.0), true);
    assert!(largest.seen.is_nan() && largest.recorded == 0.5);
}
