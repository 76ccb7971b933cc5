//! The same cluster wherever this machine can compute it: each kernel that can run here gives the
//! forces of the f64 reference, to what its precision explains.
//!
//! `cargo run --release --example 02_where_it_runs`

use std::error::Error;

use allpairs::backend::ForceError;
use allpairs::diagnostics::Accuracy;
use allpairs::force::reference;
use allpairs::initial_conditions::plummer;
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::selection::{DeviceChoice, Request, eligible, select};
use allpairs::variants::VARIANTS;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.01,
    };
    let bodies = plummer(1000, 1)?;
    let all: Vec<usize> = (0..bodies.len()).collect();
    let exact = reference::accelerations_of(&bodies, &physics, &all);
    let request = Request::new(bodies.len());
    let best = select(&request)?;
    println!(
        "here, `auto` takes kernel {} on {}",
        best.variant.name, best.place
    );

    let emulator = select(&request.on(DeviceChoice::Emulator))?.place;
    let cpu = select(&request.on(DeviceChoice::Cpu))?.place;
    for place in [best.place, cpu, emulator] {
        let machine = Machine::new(place);
        let can_run = |v| eligible(v, machine.place(), physics.law).is_ok();
        for variant in VARIANTS.iter().filter(|&v| can_run(v)) {
            let mut backend = match machine.backend(variant, &bodies, physics) {
                // Some trade range or size for speed, and refuse what they cannot compute.
                Err(why @ (ForceError::OutOfRange(_) | ForceError::Plan(_))) => {
                    println!("{why}");
                    continue;
                }
                backend => backend?,
            };
            backend.accelerate()?;
            let accelerations = backend.accelerations()?;
            let error = Accuracy::of(&accelerations, &exact)?.rms_relative;
            // The coarsest takes 1/√ from a processor's estimate: three to four digits.
            assert!(error < 1e-3, "{}: {error:e}", variant.name);
            println!(
                "{:28} on {}: rms error {error:.1e}",
                variant.name,
                machine.place()
            );
        }
    }
    Ok(())
}
