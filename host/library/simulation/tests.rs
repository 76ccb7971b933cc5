//! Is a simulation what was asked for, and refused what makes no sense?

use super::*;
use crate::backend::Neighbours;
use crate::bodies::Body;
use crate::initial_conditions::{plummer, two_body};
use crate::run::End;
use crate::selection::DeviceChoice;
use crate::settings::Setting;

fn binary() -> Bodies {
    two_body(0.5, 0.3).expect("in range")
}

/// Reason why a builder is refused.
fn refusal(of: SimulationBuilder) -> String {
    let built = of.device(DeviceChoice::Cpu).build();
    built.err().expect("refused").to_string()
}

#[test]
fn simulations_can_be_sent() {
    fn can_be_sent(_: &impl Send) {}
    let simulation = Simulation::builder(binary()).device(DeviceChoice::Cpu);
    can_be_sent(&simulation.build().expect("sound"));
}

#[test]
fn bad_settings_name_the_field_and_the_value() {
    let of = |bodies: Bodies| Simulation::builder(bodies);
    let mut nan = binary();
    nan.mass[1] = f64::NAN;
    assert_eq!(
        refusal(of(nan)),
        "body 1: mass = NaN is not a finite number"
    );
    let mut short = binary();
    short.vx.pop();
    assert_eq!(
        refusal(of(short)),
        "array `vx` has 1 elements where `x` has 2"
    );
    assert_eq!(
        refusal(of(Bodies::default())),
        "there are no bodies to simulate"
    );
    for (builder, said) in [
        (
            of(binary()).softening(-1.0),
            "`softening` must be ≥ 0 and finite, got -1",
        ),
        (
            of(binary()).dt(0.0),
            "`dt` must be finite and not 0 (negative to go back in time), got 0",
        ),
        (
            of(binary()).gravity(f64::NAN, 0.0),
            "`g` must be finite, got NaN",
        ),
        (
            of(binary()).start(f64::INFINITY),
            "`start` must be finite, got inf",
        ),
        (of(binary()).eta(0.0), "`eta` must be > 0 and finite, got 0"),
        (
            of(binary())
                .integrator(Integrator::Hermite4)
                .eta(0.1)
                .dt(-1.0),
            "`dt` must be > 0 and finite where steps vary, got -1",
        ),
        (
            of(binary()).eta(0.1),
            "an integrator with jerks, not yoshida6",
        ),
        (
            of(binary()).integrator(Integrator::Leapfrog).block_steps(),
            "an integrator with jerks, not leapfrog",
        ),
    ] {
        let refused = refusal(builder);
        assert!(refused.contains(said), "{refused}");
    }
    let still = Bodies {
        mass: vec![0.0; 2],
        ..binary()
    };
    assert!(refusal(of(still)).contains("give one with `dt`"));
}

#[test]
fn block_steps_choose_what_is_left_out() {
    let chosen = |builder: SimulationBuilder| {
        let run = builder.resolve().expect("sound");
        (run.integrator, run.spec.eta, run.spec.neighbours)
    };
    let builder = || Simulation::builder(binary()).block_steps();
    assert_eq!(chosen(builder()), (Integrator::Hermite6, Some(0.36), None));
    let auto = Some(Neighbours::Auto);
    let with_neighbours = builder().neighbours(Neighbours::Auto).eta(0.1);
    assert_eq!(
        chosen(with_neighbours),
        (Integrator::Hermite4, Some(0.1), auto)
    );
    let softened = || {
        let many = Simulation::builder(plummer(65_536, 1).expect("in range"));
        many.block_steps().softening(1e-3)
    };
    assert_eq!(chosen(softened()).2, auto);
    let shared = softened().device(DeviceChoice::Emulators(2));
    assert_eq!(chosen(shared).2, auto);
}

#[test]
fn times_are_met_exactly_by_every_pace() {
    let settings: [fn(SimulationBuilder) -> SimulationBuilder; 3] = [
        |b| b.dt(0.013),
        |b| b.integrator(Integrator::Hermite4).eta(0.02),
        |b| b.integrator(Integrator::Hermite4).eta(0.02).block_steps(),
    ];
    for with in settings {
        let builder = Simulation::builder(binary()).device(DeviceChoice::Cpu);
        let mut simulation = with(builder.softening(0.0)).build().expect("sound");
        for time in [0.1, 0.35, 1.0] {
            simulation.run_until(time).expect("runs");
            assert_eq!(simulation.time(), time);
        }
        let steps = simulation.clock().steps;
        simulation.run_until(0.5).expect("nothing to do");
        assert_eq!((simulation.time(), simulation.clock().steps), (1.0, steps));
    }
}

/// Two bodies that fall on each other need ever shorter steps, in which time would stand still.
#[test]
fn steps_of_all_bodies_that_become_too_short_are_refused() {
    let mut bodies = two_body(0.5, 0.0).expect("in range");
    for v in [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz] {
        v.fill(0.0);
    }
    let builder = Simulation::builder(bodies).device(DeviceChoice::Cpu);
    let builder = builder.softening(0.0).integrator(Integrator::Hermite4);
    let mut simulation = builder.eta(0.01).build().expect("sound");
    let refused = simulation.run_until(10.0).expect_err("they collide");
    let said = refused.to_string();
    assert!(
        said.starts_with("body ") && said.contains("soften the force"),
        "{said}"
    );
    let Clock { time, steps, .. } = simulation.clock();
    assert!(time > 0.1 && steps < 100_000, "{time} {steps}");
}

/// Stopping after any number of steps in between changes nothing.
#[test]
fn shortened_steps_do_not_depend_on_stops() {
    let run = |stops: &[u64]| {
        let builder = Simulation::builder(binary()).device(DeviceChoice::Cpu);
        let mut orbit = builder.softening(0.0).dt(0.0123).build().expect("sound");
        for time in [0.1, 0.25, 1.0] {
            for &steps in stops {
                let _ = orbit
                    .run_within(steps, time, |_| ControlFlow::Continue(()))
                    .expect("runs");
            }
            orbit.run_until(time).expect("runs");
        }
        (orbit.clock(), orbit.bodies().expect("on the CPU").clone())
    };
    let whole = run(&[]);
    assert_eq!(run(&[1, 3, 1]), whole);
    assert_eq!(run(&[8, 1, 1]), whole);
}

/// Breaking off at any moment, as looks do that are due by wall time, changes nothing: neither the times.
#[test]
fn times_do_not_depend_on_when_a_run_is_broken_off() {
    let run = |breaks_off: bool| {
        let builder = Simulation::builder(binary()).device(DeviceChoice::Cpu);
        let mut orbit = builder.softening(0.0).dt(0.005).build().expect("sound");
        let mut times = vec![];
        for snapshot in 1..=10 {
            let time = f64::from(snapshot) * 0.1;
            while orbit.time() < time {
                let told = match breaks_off {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                let _ = orbit.run_within(7, time, |_| told).expect("runs");
            }
            times.push(orbit.clock());
        }
        times
    };
    assert_eq!(run(true), run(false));
}

/// Steps that end between two of the given length follow the orbit as the others do.
#[test]
fn shortened_steps_keep_to_the_orbit() {
    let at = |dt: f64| {
        let builder = Simulation::builder(binary()).device(DeviceChoice::Cpu);
        let mut orbit = builder.softening(0.0).dt(dt).build().expect("sound");
        orbit.run_until(1.0).expect("runs");
        orbit.bodies().expect("on the CPU").x[0]
    };
    let exact = at(1e-5);
    let (coarse, fine) = ((at(0.0123) - exact).abs(), (at(0.00123) - exact).abs());
    assert!(fine < coarse / 50.0, "second order: {coarse:e} {fine:e}");
}

#[test]
fn an_integrator_of_ones_own_takes_every_step() {
    let bodies = plummer(20, 1).expect("in range");
    let run = |own: bool| {
        let builder = Simulation::builder(bodies.clone()).device(DeviceChoice::Cpu);
        let builder = builder.softening(0.1).dt(0.01);
        let builder = match own {
            true => builder.scheme(|backend: &mut dyn Backend, dt: f64| {
                Integrator::Leapfrog.step(backend, dt)
            }),
            false => builder,
        };
        let mut simulation = builder.build().expect("sound");
        simulation.run_until(0.25).expect("runs");
        simulation.snapshot().expect("on the CPU").bodies
    };
    assert_eq!(run(true), run(false));
}

/// Resumed after a step that `run_until` shortened, a simulation stands where it stood.
#[test]
fn a_resumed_simulation_goes_on_from_a_shortened_step() {
    let with = |bodies| {
        Simulation::builder(bodies)
            .device(DeviceChoice::Cpu)
            .dt(0.3)
    };
    let mut whole = with(binary()).build().expect("sound");
    for time in [1.0, 0.9 + 0.1 + 0.3] {
        whole.run_until(time).expect("runs");
    }
    let mut first = with(binary()).build().expect("sound");
    first.run_until(1.0).expect("runs");
    let (clock, state) = first.save().expect("saved");
    let bodies = first.bodies().expect("on the CPU").clone();
    let mut second = with(bodies).resume(clock, &state).expect("sound");
    second.step().expect("runs");
    assert_eq!(second.time(), 1.3);
    assert_eq!(
        second.snapshot().expect("here"),
        whole.snapshot().expect("here")
    );
}

/// A simulation of what a generator made is as the generator advises, and in the units it has.
/// Bodies without softening, and without pairs at their beginning.
#[test]
fn block_steps_of_stars_follow_pairs_where_it_pays() {
    use DeviceChoice::{Cpu, Emulator};
    let chosen = |bodies: usize, end: End, device: DeviceChoice| {
        let builder = Simulation::builder(plummer(bodies, 1).expect("in range"));
        let builder = builder.softening(0.0).block_steps();
        let run = builder.device(device).end(end).resolve().expect("sound");
        let why = run.choice(Setting::Integrator).map(|choice| &choice.why);
        let why = why.expect("it is chosen").clone();
        let is_followed = run.spec.groups == Some(true);
        let has_neighbours = run.spec.neighbours.is_some();
        ((run.integrator, is_followed, has_neighbours), why)
    };
    let sixth = |groups| (Integrator::Hermite6, groups, false);
    let fourth = (Integrator::Hermite4, true, true);
    for (bodies, end, device, expected, words) in [
        (200, End::Time(1.0), Cpu, sixth(true), "as suits pairs"),
        (200, End::Open, Cpu, sixth(true), "as suits pairs"),
        (200, End::Open, Emulator, sixth(false), "as suits block"),
        (8191, End::Time(0.1), Cpu, sixth(true), "as suits pairs"),
        (8192, End::Time(0.1), Cpu, fourth, "as suits pairs"),
        (15, End::Open, Cpu, sixth(false), "as suits block"),
    ] {
        let (found, why) = chosen(bodies, end, device);
        assert_eq!(found, expected, "{bodies} {end:?} {device:?}: {why}");
        assert!(why.contains(words), "{why}");
    }
}

/// Sixth order too follows pairs, with its own η, if it is named.
#[test]
fn sixth_order_that_is_named_follows_pairs() {
    let pairs = |builder: SimulationBuilder, groups: bool, eta: &str| {
        let run = builder.resolve().expect("sound");
        assert_eq!(run.spec.groups, Some(groups));
        let chosen = run.choice(Setting::Eta).map(|choice| &choice.value[..]);
        assert_eq!((run.integrator, chosen), (Integrator::Hermite6, Some(eta)));
    };
    let stars = |n| {
        let stars = Simulation::builder(plummer(n, 1).expect("in range"));
        let stars = stars.softening(0.0).block_steps();
        stars.device(DeviceChoice::Cpu)
    };
    let sixth = |bodies: SimulationBuilder| bodies.integrator(Integrator::Hermite6);
    pairs(sixth(stars(100)), true, "0.36");
    pairs(sixth(stars(100)).groups(true), true, "0.36");
    pairs(sixth(stars(100)).groups(false), false, "0.36");
    pairs(sixth(stars(100)).softening(1e-3), false, "0.36");
    pairs(sixth(stars(15)), false, "0.36");
    pairs(stars(15).groups(true), true, "0.36");
}

#[test]
fn choices_follow_the_generator_and_the_units() {
    let generator = crate::initial_conditions::find("solar-system").expect("there");
    let options = crate::initial_conditions::Options::new(0);
    let units = "m,kg,s".parse().expect("units");
    let (planets, units) = generator.make(&options, None, Some(units)).expect("made");
    let builder = Simulation::builder(planets.bodies)
        .units(units.expect("they have units"))
        .made_by(generator.name, generator.advice_of(&options))
        .device(DeviceChoice::Cpu);
    let run = builder.resolve().expect("sound");
    let (g, softening) = (run.physics.g, run.physics.softening);
    assert_eq!((g, softening), (crate::units::G, 0.0));
    assert_eq!(run.variant.name, "cpu-f64");
    let simulation = builder.build().expect("sound");
    assert_eq!(simulation.integrator, Integrator::Yoshida6);
}

#[test]
fn systems_do_not_attract_each_other() {
    let binaries: Bodies = binary().iter().chain(binary().iter()).collect();
    let alone = Simulation::builder(binary())
        .device(DeviceChoice::Cpu)
        .dt(0.1);
    let both = Simulation::builder(binaries.clone())
        .device(DeviceChoice::Cpu)
        .dt(0.1);
    let [mut alone, mut both] = [alone.build(), both.systems(2).build()].map(|s| s.expect("sound"));
    for simulation in [&mut alone, &mut both] {
        simulation.run_until(1.0).expect("runs");
    }
    let (alone, both) = (alone.bodies().expect("here"), both.bodies().expect("here"));
    for part in [0..2, 2..4] {
        assert_eq!(both.part(part).x, alone.x);
    }
    let odd = Simulation::builder(binaries).systems(3);
    assert!(refusal(odd).contains('3'));
}

/// Twenty bodies, two of which go round each other in steps of some 10⁻⁷.
fn with_a_binary() -> Bodies {
    let mut bodies = plummer(19, 3).expect("in range");
    let one = bodies.body(0);
    let axis: f64 = 3e-4;
    bodies.push(Body {
        position: [one.position[0] + axis, one.position[1], one.position[2]],
        velocity: [
            one.velocity[0],
            one.velocity[1] + (2.0 * one.mass / axis).sqrt(),
            one.velocity[2],
        ],
        id: 19,
        ..one
    });
    bodies
}

/// Bodies that take long for a longest step: two of them have far shorter steps, and are not followed apart.
pub(crate) fn with_long_steps() -> SimulationBuilder {
    Simulation::builder(with_a_binary())
        .device(DeviceChoice::Cpu)
        .softening(0.0)
        .integrator(Integrator::Hermite4)
        .eta(0.005)
        .block_steps()
        .groups(false)
        .dt(0.25)
}

/// A run is broken off within a longest step that takes long: the bodies are as they were at its
/// beginning, and go on as if nothing had happened.
#[test]
fn long_block_steps_can_be_left() {
    for neighbours in [None, Some(Neighbours::Auto)] {
        let build = || {
            let builder = match neighbours {
                None => with_long_steps(),
                Some(neighbours) => with_long_steps().neighbours(neighbours),
            };
            builder.build().expect("it runs")
        };
        let mut whole = build();
        whole.run_until(0.5).expect("it runs");
        let mut left = build();
        let before = left.bodies().expect("they are").clone();
        let mut within = 0;
        let ended = left.run_until_with(0.5, |progress| {
            within += u32::from(progress.is_within_step);
            match progress.is_within_step {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        assert!(ended.expect("it runs").is_break() && within >= 1);
        assert_eq!(left.time(), 0.0);
        assert_eq!(left.bodies().expect("they are"), &before);
        left.run_until(0.5).expect("it runs");
        assert_eq!(
            left.bodies().expect("they are"),
            whole.bodies().expect("they are")
        );
    }
}

#[test]
fn a_simulation_goes_back_to_a_good_state() {
    for block_steps in [false, true] {
        let start = || {
            let builder = Simulation::builder(plummer(40, 1).expect("in range"));
            let builder = builder.device(DeviceChoice::Cpu).softening(0.1).dt(0.125);
            match block_steps {
                true => builder
                    .integrator(Integrator::Hermite4)
                    .eta(0.02)
                    .block_steps(),
                false => builder,
            }
        };
        let mut simulation = start().build().expect("sound");
        simulation.run_until(0.5).expect("a run");
        let good = simulation.good_state().expect("finite");
        let mut bits = || {
            simulation.go_back_to(&good).expect("its own state");
            assert_eq!(simulation.time(), 0.5);
            simulation.run_until(1.0).expect("a run");
            simulation.bodies().expect("bodies").clone()
        };
        assert_eq!(bits(), bits());
    }
    let mut bodies = binary();
    bodies.vx[1] = 1e305;
    bodies.mass[0] = 1e200;
    let fast = Simulation::builder(bodies)
        .device(DeviceChoice::Cpu)
        .softening(0.0);
    let mut fast = fast
        .dt(1e4)
        .integrator(Integrator::Leapfrog)
        .build()
        .expect("sound");
    fast.step().expect("a step");
    assert!(matches!(
        fast.good_state(),
        Err(ForceError::NotFinite { .. })
    ));
}

/// Two bodies that fall onto each other are one group, and no end says how long a step may be.
#[test]
fn a_group_of_all_bodies_has_a_longest_step() {
    let bodies = crate::bodies::Bodies::at_rest(&[[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], &[1.0, 1.0]);
    let mut simulation = Simulation::builder(bodies).build().expect("a run");
    let expected = (1.0_f64 / 2.0).sqrt() / 8.0;
    let Pace::Adaptive { longest, .. } = simulation.pace() else {
        panic!("steps follow the motion")
    };
    assert!((longest - expected).abs() < 1e-12, "{longest}");
    simulation.run_until(1.0).expect("it goes on");
    let distance = 2.0 * simulation.bodies().expect("two").x[1];
    // x = cos²θ and t = (θ + sin θ cos θ), in units of √(d³/(2GM)), d = 2 and M = 2.
    let (mut low, mut high) = (0.0_f64, 1.5);
    for _ in 0..60 {
        let angle: f64 = 0.5 * (low + high);
        let time = 2.0_f64.sqrt() * (angle + angle.sin() * angle.cos());
        (low, high) = if time < 1.0 {
            (angle, high)
        } else {
            (low, angle)
        };
    }
    assert!(
        (distance - 2.0 * low.cos().powi(2)).abs() < 1e-6,
        "{distance}"
    );
}
