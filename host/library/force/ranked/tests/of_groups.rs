//! Pairs and multiples that are followed apart on several ranks: the bits of one process.

use super::*;
use crate::force::groups::tests::cluster;
use crate::run::{End, RunSpec, Surroundings};
use crate::selection::DeviceChoice;
use crate::simulation::SimulationBuilder;
use crate::variants::preferred::ForceAccuracy;

/// The bodies on a device of these ranks, or of one process.
fn builder(bodies: Bodies, team: Option<&Arc<Team>>, device: DeviceChoice) -> SimulationBuilder {
    let around = Surroundings {
        team: team.cloned(),
        ..Surroundings::general()
    };
    let builder = Simulation::builder(bodies).surroundings(around);
    builder.softening(0.0).block_steps().device(device)
}

/// State, energy and counts where a run has reached a time.
fn seen_at(time: f64, run: &mut Simulation) -> (SavedState, Energy, BlockCounts) {
    run.run_until(time).expect("steps are taken");
    let energy = run.energy().expect("computed");
    (run.save().expect("saved").1, energy, run.block_counts())
}

/// A run of [`cluster`] has the same bits on ranks as in one process: halfway, at its end, and where it goes on from
/// halfway. `devices` are those of one process that stand for a number of ranks.
fn is_that_of_one_process(
    (integrator, neighbours): (Integrator, Option<Neighbours>),
    of_ranks: DeviceChoice,
    devices: impl Fn(usize) -> DeviceChoice,
    end: f64,
) {
    let of = |bodies: Bodies, team: Option<&Arc<Team>>, device: DeviceChoice| {
        let builder = builder(bodies, team, device).integrator(integrator);
        let builder = builder.dt(end / 8.0).accuracy(ForceAccuracy::Double);
        match neighbours {
            Some(neighbours) => builder.neighbours(neighbours),
            None => builder.groups(true),
        }
    };
    for threads in [TEAMS[1], TEAMS[2]] {
        let device = devices(threads.len());
        let mut alone = of(cluster(), None, device).build().expect("sound");
        let first = seen_at(end / 2.0, &mut alone);
        let clock = alone.clock();
        let bodies = alone.bodies().expect("there").clone();
        let second = seen_at(end, &mut alone);
        let counts = second.2;
        assert!(counts.formed + counts.broken > 0, "{counts:?}");
        assert_eq!(counts.regular > 0, neighbours.is_some());
        led(threads, |team| {
            let mut run = of(cluster(), Some(team), of_ranks).build().expect("sound");
            assert!(seen_at(end / 2.0, &mut run) == first, "{threads:?}");
            assert!(seen_at(end, &mut run) == second, "{threads:?}");
            drop(run);
            let resumed = of(bodies.clone(), Some(team), of_ranks).resume(clock, &first.0);
            let (state, energy, _) = seen_at(end, &mut resumed.expect("sound"));
            assert!((state, energy) == (second.0.clone(), second.1));
        });
    }
}

/// With the forces of all in each step, by both orders, and with neighbours.
#[test]
fn groups_are_those_of_one_process() {
    let fourth = Integrator::Hermite4;
    let neighbours = Some("16".parse().expect("a number"));
    let sixth = (Integrator::Hermite6, None);
    for steps in [(fourth, None), (fourth, neighbours), sixth] {
        is_that_of_one_process(steps, DeviceChoice::Cpu, |_| DeviceChoice::Cpu, 0.5);
    }
}

/// Devices share out the larger blocks, and each rank computes the smaller ones, as the first device of one process does.
#[test]
fn groups_on_devices_are_those_of_one_process() {
    let devices = |count| DeviceChoice::Emulators(count as u32);
    for integrator in [Integrator::Hermite4, Integrator::Hermite6] {
        let steps = (integrator, None);
        is_that_of_one_process(steps, DeviceChoice::Emulator, devices, 0.5);
    }
}

/// Where rank 0 breaks off, all do.
#[test]
fn spans_with_groups_are_left_together() {
    let place = || Machine::new(Place::CPU).groups(true);
    let physics = Physics {
        softening: 0.0,
        ..physics()
    };
    let kernel = variants::find("cpu-f64").expect("listed");
    let on_ranks = |team: &Arc<Team>| {
        let machine = place().ranks(Arc::clone(team));
        machine.backend(kernel, &cluster(), physics).expect("runs")
    };
    spans_are_left(on_ranks, (8.0, 0.01));
}

/// Stars have groups on ranks, whether they collide or not.
#[test]
fn groups_are_chosen_on_ranks() {
    led(&[1, 1], |team| {
        for device in [DeviceChoice::Cpu, DeviceChoice::Emulator] {
            for radius in [0.0, 1e-6] {
                let mut spec = RunSpec {
                    softening: Some(0.0),
                    end: End::Time(1.0),
                    device,
                    ..RunSpec::default()
                };
                let around = Surroundings {
                    team: Some(Arc::clone(team)),
                    ..Surroundings::general()
                };
                spec.encounters = Some(Encounters {
                    radii: vec![radius; cluster().len()],
                    on_collision: OnCollision::Merge,
                    escape: Some((1e3, OnEscape::Log)),
                });
                let run = spec.resolve(&cluster(), &around).expect("sound");
                assert_eq!(run.spec.time_steps(), TimeSteps::Blocks);
                assert_eq!(run.spec.groups, Some(true), "{device:?}, {radius}");
            }
        }
    });
}

/// Bodies merge on ranks as in one process, with groups and without.
#[test]
fn bodies_merge_as_in_one_process() {
    let of = |team: Option<&Arc<Team>>, device: DeviceChoice, groups: bool| {
        // Those of a pair touch each other at its pericentre.
        let mut radii = vec![0.0; cluster().len()];
        (radii[1], radii[49]) = (1.4e-4, 1.4e-4);
        let encounters = Encounters {
            radii,
            on_collision: OnCollision::Merge,
            escape: None,
        };
        let builder = builder(cluster(), team, device).encounters(encounters);
        let builder = builder
            .integrator(Integrator::Hermite4)
            .groups(groups)
            .dt(1.0 / 64.0);
        let mut run = builder.build().expect("sound");
        let seen = seen_at(1.0 / 32.0, &mut run);
        let events = format!("{:?}", run.take_events());
        (seen, events, run.bodies().expect("there").len())
    };
    let emulators = DeviceChoice::Emulators(2);
    for (of_ranks, device, groups) in [
        (DeviceChoice::Cpu, DeviceChoice::Cpu, true),
        (DeviceChoice::Cpu, DeviceChoice::Cpu, false),
        (DeviceChoice::Emulator, emulators, true),
    ] {
        let alone = of(None, device, groups);
        assert!(alone.2 < cluster().len(), "nobody merged");
        led(TEAMS[1], |team| {
            assert!(
                of(Some(team), of_ranks, groups) == alone,
                "{device:?}, {groups}"
            );
        });
    }
}
