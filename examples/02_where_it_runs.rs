//! The same cluster wherever this machine can compute it: each kernel that can run here gives the
//! forces of the f64 reference, to what its precision explains.
//!
//! `cargo run --release --example 02_where_it_runs`

use std::error::Error;

use allpairs::force::{ForceError, Law, Physics};
use allpairs::initial_conditions::plummer;
use allpairs::selection::{DeviceChoice, Machine, eligible, select};
use allpairs::variants::VARIANTS;
use allpairs::verify::Case;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let physics = Physics {
        law: Law::Gravity,
        g: 1.0,
        softening: 0.01,
    };
    let case = Case::new("a Plummer sphere", plummer(1000, 1)?, physics);
    let n = case.bodies.len();
    let best = select(DeviceChoice::Auto, None, physics.law, n)?;
    println!(
        "here, `auto` takes kernel {} on {}",
        best.variant.name, best.place
    );

    let emulator = select(DeviceChoice::Emulator, None, physics.law, n)?.place;
    let cpu = select(DeviceChoice::Cpu, None, physics.law, n)?.place;
    for place in [best.place, cpu, emulator] {
        let machine = Machine::new(place);
        let can_run = |v| eligible(v, machine.place(), physics.law).is_ok();
        for variant in VARIANTS.iter().filter(|&v| can_run(v)) {
            let mut backend = match machine.backend(variant, &case.bodies, physics) {
                // Some trade range for speed, and refuse what they cannot compute exactly enough.
                Err(ForceError::OutOfRange(why)) => {
                    println!("{why}");
                    continue;
                }
                backend => backend?,
            };
            backend.accelerate()?;
            let accelerations = backend.accelerations()?;
            case.check(variant, &accelerations)?;
            let error = case.accuracy(&accelerations).rms_relative;
            println!(
                "{:24} on {}: rms error {error:.1e}",
                variant.name,
                machine.place()
            );
        }
    }
    Ok(())
}
