//! An integrator of your own, written against [`Backend`]: it runs wherever forces are computed,
//! and never sees a kernel. Here the second-order scheme of McLachlan (1995), which has two force
//! evaluations a step and an error some times smaller than two leapfrog steps of half the length.
//!
//! `cargo run --release --example 04_own_integrator`

use std::error::Error;

use allpairs::bodies::Bodies;
use allpairs::force::{Backend, ForceError, Law, Physics, cpu::Cpu};
use allpairs::initial_conditions::two_body;
use allpairs::integrator::Integrator;
use allpairs::validate::binary_after;

/// Drift–kick–drift–kick–drift with shares λ, 1 − 2λ, λ and two half kicks.
fn step(backend: &mut dyn Backend, dt: f64) -> Result<(), ForceError> {
    const LAMBDA: f64 = 0.193_183_327_503_783_6; // McLachlan (1995, SIAM J. Sci. Comput. 16, 151)
    backend.drift(LAMBDA * dt)?;
    backend.accelerate()?;
    backend.kick(dt / 2.0)?;
    backend.drift((1.0 - 2.0 * LAMBDA) * dt)?;
    backend.accelerate()?;
    backend.kick(dt / 2.0)?;
    backend.drift(LAMBDA * dt)
}

/// How far the second body is from where Kepler has it after 2 units of time.
fn error(
    bodies: &Bodies,
    steps: u32,
    step: impl Fn(&mut dyn Backend, f64) -> Result<(), ForceError>,
) -> Result<f64, ForceError> {
    let physics = Physics {
        law: Law::Gravity,
        g: 1.0,
        softening: 0.0,
    };
    let end = 2.0;
    let mut backend = Cpu::<f64>::new(bodies, physics);
    backend.accelerate()?; // leapfrog begins with a kick
    for _ in 0..steps {
        step(&mut backend, end / f64::from(steps))?;
    }
    let mut after = bodies.clone();
    backend.download(&mut after)?;
    let [x, y, _] = binary_after(0.3, end);
    Ok((after.x[1] - after.x[0] - x).hypot(after.y[1] - after.y[0] - y))
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let bodies = two_body(0.5, 0.3)?;
    let (coarse, fine) = (error(&bodies, 64, step)?, error(&bodies, 128, step)?);
    let order = (coarse / fine).log2();
    // As many forces.
    let leapfrog = error(&bodies, 128, |backend, dt| {
        Integrator::Leapfrog.step(backend, dt)
    })?;
    println!("order {order:.2}; error {coarse:.1e}, leapfrog with as many forces {leapfrog:.1e}");
    assert!((order - 2.0).abs() < 0.1, "it is of second order");
    assert!(
        coarse < leapfrog / 2.0,
        "and better than leapfrog for the same work"
    );
    Ok(())
}
