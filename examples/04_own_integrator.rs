//! An integrator of your own, written against [`Backend`]: it runs wherever forces are computed,
//! and never sees a kernel. Here the fourth-order scheme of Omelyan, Mryglod & Folk, with four
//! force evaluations a step.
//!
//! `cargo run --release --example 04_own_integrator`

use std::error::Error;
use std::f64::consts::TAU;

use allpairs::backend::{Backend, ForceError};
use allpairs::bodies::Bodies;
use allpairs::force::cpu::Cpu;
use allpairs::initial_conditions::two_body;
use allpairs::integrator::Integrator;
use allpairs::physics::{ForceLaw, Physics};

/// "Position extended Forest–Ruth like": I. P. Omelyan, I. M. Mryglod & R. Folk (2002, Comput.
/// Phys. Commun. 146, 188), eqs. 20 to 22.
fn step(backend: &mut dyn Backend, dt: f64) -> Result<(), ForceError> {
    const XI: f64 = 0.178_617_895_844_809_1;
    const LAMBDA: f64 = -0.212_341_831_062_605_4;
    const CHI: f64 = -0.066_264_582_669_818_5;
    let outer = (1.0 - 2.0 * LAMBDA) / 2.0;
    let middle = 1.0 - 2.0 * (CHI + XI);
    for (drift, kick) in [(XI, outer), (CHI, LAMBDA), (middle, LAMBDA), (CHI, outer)] {
        backend.drift(drift * dt)?;
        backend.accelerate()?;
        backend.kick(kick * dt)?;
    }
    backend.drift(XI * dt)
}

/// How far the second body is, after a period, from where it began.
fn error(
    bodies: &Bodies,
    steps: u32,
    step: impl Fn(&mut dyn Backend, f64) -> Result<(), ForceError>,
) -> Result<f64, ForceError> {
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.0,
    };
    let mut backend = Cpu::<f64>::new(bodies, physics);
    backend.accelerate()?; // some integrators begin with a kick
    for _ in 0..steps {
        step(&mut backend, TAU / f64::from(steps))?;
    }
    let mut after = bodies.clone();
    backend.download(&mut after)?;
    Ok((after.x[1] - bodies.x[1]).hypot(after.y[1] - bodies.y[1]))
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let bodies = two_body(0.5, 0.3)?;
    let (coarse, fine) = (error(&bodies, 48, step)?, error(&bodies, 96, step)?);
    let order = (coarse / fine).log2();
    // As many forces: three a step, and 64 steps.
    let yoshida = error(&bodies, 64, |backend, dt| {
        Integrator::Yoshida4.step(backend, dt)
    })?;
    println!("order {order:.2}; error {coarse:.1e}, Yoshida's with as many forces {yoshida:.1e}");
    assert!((order - 4.0).abs() < 0.1, "it is of fourth order");
    assert!(
        coarse < yoshida / 10.0,
        "and far better for the same work than three leapfrogs"
    );
    Ok(())
}
