//! A binary on an eccentric orbit: after one period both bodies are back where they started.
//!
//! `cargo run --release --example 01_two_body`

use std::error::Error;
use std::f64::consts::TAU;
use std::ops::ControlFlow;

use allpairs::diagnostics::largest;
use allpairs::force::cpu::Cpu;
use allpairs::initial_conditions::two_body;
use allpairs::integrator::Integrator;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::simulation::Simulation;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let (mass_ratio, eccentricity) = (0.5, 0.3);
    let start = two_body(mass_ratio, eccentricity)?;
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.0,
    };
    let steps = 10_000; // of a period, which is 2π

    let backend = Box::new(Cpu::<f64>::new(&start, physics));
    let dt = TAU / steps as f64;
    let mut simulation = Simulation::new(
        backend,
        start.clone(),
        physics,
        Integrator::Leapfrog,
        dt,
        0.0,
    )?;
    let before = simulation.conserved()?;
    let _ = simulation.run(steps, |_| ControlFlow::Continue(()))?;
    let drift = simulation.conserved()?.drift_since(&before);

    let end = simulation.bodies()?;
    let miss = largest((0..2).map(|i| (end.x[i] - start.x[i]).hypot(end.y[i] - start.y[i])));
    println!(
        "after one period: {miss:.1e} from the start, energy drift {:.1e}",
        drift.energy
    );
    assert!(
        miss < 1e-5,
        "leapfrog with 10 000 steps a period comes back to within 1e-5"
    );
    assert!(drift.energy < 1e-10 && drift.angular_momentum < 1e-12);
    Ok(())
}
