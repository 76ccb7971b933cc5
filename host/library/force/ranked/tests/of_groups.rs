//! Pairs and multiples that are followed apart on several ranks: the bits of one process.

use super::*;
use crate::force::groups::tests::cluster;
use crate::run::{End, RunSpec, Surroundings};
use crate::selection::DeviceChoice;
use crate::simulation::SimulationBuilder;

/// The bodies on the CPU of these ranks, or of one process.
fn builder(bodies: Bodies, team: Option<&Arc<Team>>) -> SimulationBuilder {
    let around = Surroundings {
        team: team.cloned(),
        ..Surroundings::general()
    };
    let builder = Simulation::builder(bodies).surroundings(around);
    let builder = builder.softening(0.0).block_steps().dt(0.0625);
    builder.device(DeviceChoice::Cpu)
}

/// State, energy and counts where a run has reached a time.
fn seen_at(time: f64, run: &mut Simulation) -> (SavedState, Energy, BlockCounts) {
    run.run_until(time).expect("steps are taken");
    let energy = run.energy().expect("computed");
    (run.save().expect("saved").1, energy, run.block_counts())
}

/// With the forces of all in each step, by both orders, and with neighbours; a run that goes on too.
#[test]
fn groups_are_those_of_one_process() {
    let fourth = Integrator::Hermite4;
    let neighbours = Some("16".parse().expect("a number"));
    for (integrator, neighbours) in [
        (fourth, None),
        (fourth, neighbours),
        (Integrator::Hermite6, None),
    ] {
        let of = |bodies: Bodies, team: Option<&Arc<Team>>| {
            let builder = builder(bodies, team).integrator(integrator);
            match neighbours {
                Some(neighbours) => builder.neighbours(neighbours),
                None => builder.groups(true),
            }
        };
        let mut alone = of(cluster(), None).build().expect("sound");
        let first = seen_at(0.25, &mut alone);
        let clock = alone.clock();
        let bodies = alone.bodies().expect("there").clone();
        let second = seen_at(0.5, &mut alone);
        let counts = second.2;
        assert!(counts.formed > 0 && counts.broken > 0, "{counts:?}");
        assert_eq!(counts.regular > 0, neighbours.is_some());
        for threads in [TEAMS[1], TEAMS[2]] {
            led(threads, |team| {
                let mut run = of(cluster(), Some(team)).build().expect("sound");
                assert!(seen_at(0.25, &mut run) == first, "{threads:?}");
                assert!(seen_at(0.5, &mut run) == second, "{threads:?}");
                drop(run);
                let resumed = of(bodies.clone(), Some(team)).resume(clock, &first.0);
                let (state, energy, _) = seen_at(0.5, &mut resumed.expect("sound"));
                assert!((state, energy) == (second.0.clone(), second.1));
            });
        }
    }
}

/// Where rank 0 breaks off, all do.
#[test]
fn spans_with_groups_are_left_together() {
    let place = || Machine::new(Place::Cpu).groups(true);
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

/// Stars have groups on the CPUs of ranks, and not on devices of theirs.
#[test]
fn groups_are_chosen_on_cpus_of_ranks() {
    led(&[1, 1], |team| {
        let run = builder(cluster(), Some(team)).resolve().expect("sound");
        assert_eq!(run.spec.groups, Some(true));
        let on_devices = || builder(cluster(), Some(team)).device(DeviceChoice::Emulator);
        let run = on_devices().resolve().expect("sound");
        assert_eq!(run.spec.groups, Some(false));
        let refused = on_devices().integrator(Integrator::Hermite4).groups(true);
        let refused = refused.resolve().err().expect("refused").to_string();
        let needed = "`groups` needs one process, or ranks on CPUs without collisions";
        assert_eq!(refused, needed);
        // Block time steps of ranks find no collisions, and pairs do not choose them.
        let mut spec = RunSpec {
            softening: Some(0.0),
            end: End::Time(1.0),
            device: DeviceChoice::Cpu,
            ..RunSpec::default()
        };
        let around = Surroundings {
            team: Some(Arc::clone(team)),
            ..Surroundings::general()
        };
        for (radius, steps) in [(0.0, TimeSteps::Blocks), (1e-6, TimeSteps::Shared)] {
            spec.encounters = Some(Encounters {
                radii: vec![radius; cluster().len()],
                on_collision: OnCollision::Merge,
                escape: Some((1e3, OnEscape::Log)),
            });
            let run = spec.resolve(&cluster(), &around).expect("sound");
            assert_eq!(run.spec.time_steps(), steps);
        }
    });
}
