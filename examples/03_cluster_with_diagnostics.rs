//! A star cluster in balance: initial conditions, an integrator, and diagnostics on the way, with
//! progress through a callback that may also break off.
//!
//! `cargo run --release --example 03_cluster_with_diagnostics`

use std::error::Error;
use std::ops::ControlFlow;

use allpairs::initial_conditions::{Options, Parameter, find};
use allpairs::integrator::Integrator;
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::selection::{Request, select};
use allpairs::simulation::Simulation;
use allpairs::suggest;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // By name, with options, as the command line makes them; `king(500, 1, 6.0)` is the same.
    let options = Options::new(1).with(Parameter::Bodies, 500.0);
    let bodies = find("king")?.generate(&options)?;
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: suggest::softening(&bodies),
    };

    // The first GPU, or the CPU where there is none; and the kernel that is preferred there.
    let selection = select(&Request::new(bodies.len()))?;
    println!("{} on {}", selection.variant.name, selection.place);
    let machine = Machine::new(selection.place);
    let backend = machine.backend(selection.variant, &bodies, physics)?;
    let (dt, start) = (1.0 / 128.0, 0.0);
    let mut cluster = Simulation::new(backend, bodies, physics, Integrator::Leapfrog, dt, start)?;

    // Conserved quantities, virial ratio and Lagrangian radii, every unit of time.
    let origin = cluster.conserved()?;
    let mut reported = 0;
    for _ in 0..3 {
        let outcome = cluster.run(128, |progress| {
            reported += 1;
            println!(
                "  step {}, {:.1e} interactions/s",
                progress.steps, progress.rate
            );
            ControlFlow::Continue(()) // or Break, and the steps so far are taken
        })?;
        assert!(outcome.is_continue());
        let sample = cluster.sample(&origin)?;
        let [inner, half, outer] = sample.lagrangian_radii;
        println!(
            "time {}: energy drift {:.1e}, virial ratio {:.3}, radii {inner:.3} {half:.3} {outer:.3}",
            sample.conserved.time,
            sample.energy_drift,
            sample.conserved.energy.virial_ratio(),
        );
        assert!(sample.energy_drift < 1e-3, "leapfrog keeps the energy");
        assert!(
            (sample.conserved.energy.virial_ratio() - 1.0).abs() < 0.2,
            "a King model is in balance, to the noise of 500 bodies"
        );
    }
    assert!(
        reported >= 3,
        "the callback is called several times a second, and at least once a run"
    );
    assert_eq!(cluster.time(), 3.0);
    Ok(())
}
