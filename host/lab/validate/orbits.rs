//! Experiments with few bodies on known orbits.

use std::f64::consts::{PI, TAU};

use super::{Rig, take};
use allpairs::backend::ForceError;
use allpairs::bodies::Bodies;
use allpairs::diagnostics::largest;
use allpairs::initial_conditions::{
    FIGURE_EIGHT_PERIOD, J2000, ephemeris_after_a_century, figure_eight, solar_system, two_body,
};
use allpairs::units::{DAY, Units};

/// Eccentricity of the binary.
const ECCENTRICITY: f64 = 0.5;

/// Position of the second body of [`two_body`] at time `t`, seen from the first: it starts at
/// apocentre, in the direction of +x, on an orbit of semi-major axis 1 and period 2π.
pub fn binary_after(eccentricity: f64, t: f64) -> [f64; 3] {
    // Kepler's equation from apocentre: M = E − e sin E with M = π + t.
    let mean = PI + t;
    let mut anomaly = mean;
    for _ in 0..50 {
        let excess = anomaly - eccentricity * anomaly.sin() - mean;
        anomaly -= excess / (1.0 - eccentricity * anomaly.cos());
    }
    let minor = (1.0 - eccentricity * eccentricity).sqrt();
    [eccentricity - anomaly.cos(), -minor * anomaly.sin(), 0.0]
}

/// 1000 periods: the energy's error, and the angle by which the apocentre is missed.
pub(super) fn kepler(rig: &Rig<'_>, steps_a_period: u32) -> Result<Vec<f64>, ForceError> {
    const PERIODS: u64 = 1000;
    let bodies = two_body(0.5, ECCENTRICITY).expect("in range");
    let dt = TAU / f64::from(steps_a_period);
    let mut orbit = rig.simulate(&bodies, 0.0, dt)?;
    let before = orbit.conserved()?;
    take(&mut orbit, PERIODS * u64::from(steps_a_period))?;
    let energy = orbit.conserved()?.drift_since(&before).energy;
    let end = orbit.bodies()?;
    let angle = (end.y[1] - end.y[0]).atan2(end.x[1] - end.x[0]);
    Ok(vec![energy, angle.abs()])
}

/// One period of the eight: how far the bodies are from where they began.
pub(super) fn eight(rig: &Rig<'_>) -> Result<Vec<f64>, ForceError> {
    const STEPS: u32 = 2000;
    let bodies = figure_eight().expect("it has no options");
    let dt = FIGURE_EIGHT_PERIOD / f64::from(STEPS);
    let mut dance = rig.simulate(&bodies, 0.0, dt)?;
    let before = dance.conserved()?;
    take(&mut dance, STEPS.into())?;
    let energy = dance.conserved()?.drift_since(&before).energy;
    let distances = dance.bodies()?.iter().zip(bodies.iter());
    let off = distances.map(|(end, start)| norm(minus(end.position, start.position)));
    Ok(vec![largest(off), energy])
}

/// Days that the planets move on.
const CENTURY: f64 = 36_525.0;

/// A century of the Solar System from J2000: how far Mercury, Venus to Mars, and Jupiter to Pluto are
/// from where JPL's ephemeris has them, as the Sun sees them (arc seconds); the turn of Mercury's
/// perihelion against the published one (arc seconds); and the energy.
pub(super) fn planets(rig: &Rig<'_>) -> Result<Vec<f64>, ForceError> {
    /// Of Mercury's perihelion: J2000 elements of Standish, 0.16047689° a century.
    const PUBLISHED: f64 = 577.72;
    /// Of which general relativity's, which is not simulated.
    const RELATIVITY: f64 = 42.98;
    const LOOKS: u32 = 487;
    const STEPS_A_LOOK: u32 = 150; // 75 days
    let bodies = solar_system(J2000).expect("in range");
    let day = DAY / "au".parse::<Units>().expect("a unit").time;
    let dt = CENTURY * day / f64::from(LOOKS * STEPS_A_LOOK);
    let mut system = rig.simulate(&bodies, 0.0, dt)?;
    let before = system.conserved()?;
    let mut longitudes = vec![];
    for _ in 0..LOOKS {
        take(&mut system, STEPS_A_LOOK.into())?;
        longitudes.push(perihelion(system.bodies()?, 1));
    }
    let energy = system.conserved()?.drift_since(&before).energy;
    let end = system.bodies()?;
    let expected = ephemeris_after_a_century();
    let angle = |planet: usize| {
        let a = heliocentric(end, planet)[0];
        let b = minus(expected[planet], expected[0]);
        norm(cross(a, b)).atan2(dot(a, b)).to_degrees() * 3600.0
    };
    let turned = slope(&longitudes).to_degrees() * 3600.0 * f64::from(LOOKS);
    Ok(vec![
        angle(1),
        largest((2..=4).map(angle)),
        largest((5..=9).map(angle)),
        (turned - (PUBLISHED - RELATIVITY)).abs(),
        energy,
    ])
}

/// Of the straight line through numbers that are taken one after another: what comes and goes on the
/// way, as planets pass each other, is not in it.
fn slope(values: &[f64]) -> f64 {
    let middle = (values.len() - 1) as f64 / 2.0;
    let places = (0..values.len()).map(|i| i as f64 - middle);
    let (mut with_values, mut squares) = (0.0, 0.0);
    for (place, value) in places.zip(values) {
        with_values += place * value;
        squares += place * place;
    }
    with_values / squares
}

/// Position and velocity of a body as the Sun, body 0, sees it.
fn heliocentric(bodies: &Bodies, planet: usize) -> [[f64; 3]; 2] {
    let (sun, planet) = (bodies.body(0), bodies.body(planet));
    [
        minus(planet.position, sun.position),
        minus(planet.velocity, sun.velocity),
    ]
}

/// Longitude of the perihelion of the osculating orbit: of the node, and from there along the orbit.
fn perihelion(bodies: &Bodies, planet: usize) -> f64 {
    let [r, v] = heliocentric(bodies, planet);
    let mu = bodies.mass[0] + bodies.mass[planet];
    let spin = cross(r, v);
    let turning = cross(v, spin);
    let eccentricity = [0, 1, 2].map(|k| turning[k] / mu - r[k] / norm(r));
    let node = [-spin[1], spin[0], 0.0];
    let sideways = cross(spin, node);
    let argument =
        (dot(eccentricity, sideways) / norm(sideways)).atan2(dot(eccentricity, node) / norm(node));
    node[1].atan2(node[0]) + argument
}

fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

fn norm(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_analytic_orbit_is_the_initial_conditions() {
        for eccentricity in [0.0, 0.5] {
            let bodies = two_body(0.3, eccentricity).expect("in range");
            let start = binary_after(eccentricity, 0.0);
            assert!((bodies.x[1] - bodies.x[0] - start[0]).abs() <= 1e-15);
            let h = 1e-6;
            let ends = [h, -h].map(|t| binary_after(eccentricity, t)[1]);
            let speed = (ends[0] - ends[1]) / (2.0 * h);
            assert!((speed - (bodies.vy[1] - bodies.vy[0])).abs() <= 1e-9);
        }
    }

    #[test]
    fn perihelia_are_those_of_the_elements() {
        // Mean longitudes of Standish's elements at J2000, in degrees; osculating ones of orbits that
        // are as eccentric as these differ by what planets do to each other: hundredths of a degree
        // inside, a degree for Jupiter.
        let bodies = solar_system(J2000).expect("in range");
        for (planet, longitude, bound) in [
            (1, 77.457_796_28, 0.01),
            (4, -23.943_629_59, 0.1),
            (5, 14.728_479_83, 1.0),
        ] {
            let off = perihelion(&bodies, planet).to_degrees() - longitude;
            let off = off - 360.0 * (off / 360.0).round();
            assert!(off.abs() <= bound, "{planet}: {off}");
        }
    }
}
