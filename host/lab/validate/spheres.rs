//! Experiments with star clusters.

use super::{Rig, take};
use allpairs::backend::ForceError;
use allpairs::diagnostics::{Sample, largest};
use allpairs::initial_conditions::{cold_collapse, plummer};
use allpairs::integrator::{Pace, TimeSteps};
use allpairs::simulation::Simulation;

/// `M^(5/2) / (2|E|)^(3/2)`, in standard units.
const CROSSING_TIME: f64 = 2.828_427_124_746_19;

/// The energy's largest error on the way, and the samples taken.
fn watched(
    mut simulation: Simulation,
    looks: u32,
    between: u64,
) -> Result<(f64, Vec<Sample>), ForceError> {
    let origin = simulation.conserved()?;
    let mut samples = vec![simulation.sample(&origin)?];
    for _ in 0..looks {
        take(&mut simulation, between)?;
        samples.push(simulation.sample(&origin)?);
    }
    let drift = largest(samples.iter().map(|sample| sample.energy_drift));
    Ok((drift, samples))
}

const LOOKS: u32 = 10;

/// Ten crossing times of a Plummer sphere: the energy's largest error, and its states on the way.
fn sphere(rig: &Rig<'_>, softening: f64, steps: u64) -> Result<(f64, Vec<Sample>), ForceError> {
    let bodies = plummer(rig.bodies, 5).expect("in range");
    let dt = CROSSING_TIME / steps as f64;
    watched(rig.simulate(&bodies, softening, dt)?, LOOKS, steps)
}

/// Energy's largest error, and the largest relative change of the radii of 10, 50 and 90 % of the
/// mass. Softening is a thirtieth of the scale radius: a twelfth swells the sphere by 3 to 4 %.
pub(super) fn balance(rig: &Rig<'_>) -> Result<Vec<f64>, ForceError> {
    let (drift, samples) = sphere(rig, 0.02, 256)?;
    let start = samples[0].lagrangian_radii;
    let change = |which: usize| {
        let changes = samples
            .iter()
            .map(|sample| (sample.lagrangian_radii[which] / start[which] - 1.0).abs());
        largest(changes)
    };
    Ok(vec![drift, change(0), change(1), change(2)])
}

/// Energy's largest error alone.
pub(super) fn balance_of_energy(rig: &Rig<'_>) -> Result<Vec<f64>, ForceError> {
    Ok(vec![sphere(rig, 0.05, 128)?.0])
}

/// A sphere falls together, bounces and settles: the energy's error at the end, how far the virial
/// ratio is from balance then, and the share of the first radius of half the mass that it fell to.
pub(super) fn collapse(rig: &Rig<'_>) -> Result<Vec<f64>, ForceError> {
    /// Of free fall from rest at radius 1: `π/(2√2)`, 1.11; all is over by thrice that.
    const END: f64 = 4.0;
    const LOOKS: u32 = 40;
    const SOFTENING: f64 = 0.05;
    let bodies = cold_collapse(rig.bodies, 3, 0.05).expect("in range");
    let (between, pace) = if rig.integrator.needs_jerks() {
        let pace = Pace::Adaptive {
            eta: 0.01,
            longest: END / f64::from(LOOKS),
            end: END,
            steps: TimeSteps::Blocks,
        };
        (1, pace)
    } else {
        let between = 100;
        let dt = END / f64::from(LOOKS) / between as f64;
        (between, Pace::Fixed(dt))
    };
    let cluster = rig.simulate(&bodies, SOFTENING, pace)?;
    let (_, samples) = watched(cluster, LOOKS, between)?;
    let end = &samples[LOOKS as usize];
    let half = |sample: &Sample| sample.lagrangian_radii[1];
    let smallest = samples.iter().map(half).fold(f64::INFINITY, f64::min);
    Ok(vec![
        end.energy_drift,
        (end.conserved.energy.virial_ratio() - 1.0).abs(),
        smallest / half(&samples[0]),
    ])
}
