//! The list of experiments and their checks.

use gpu_kernels::numerics::Precision::{F32, F64};

use super::{Check, Experiment, galaxy, orbits, spheres};
use allpairs::integrator::Integrator::{Hermite4, Leapfrog, Yoshida4, Yoshida6};

/// A check with the same bound whatever the effort.
const fn check(measured: &'static str, bound: f64, reason: &'static str) -> Check {
    by_effort(measured, [bound; 2], reason)
}

/// A check with a bound that depends on the number of bodies.
const fn by_effort(measured: &'static str, bounds: [f64; 2], reason: &'static str) -> Check {
    Check {
        measured,
        bounds,
        reason,
    }
}

/// A radius that holds the share p of N masses is known to `√((1 − p)/(p N)) / (dln M/dln r)`, with
/// dln M/dln r = 2.37, 1.14 and 0.20 at these radii of a Plummer sphere.
const RADII: [Check; 3] = [
    by_effort(
        "change of the radius of 10 % of the mass",
        [0.17, 0.06],
        "three times the noise of two counts of N bodies: 0.057 for 1024, 0.020 for 8192",
    ),
    by_effort(
        "change of the radius of 50 % of the mass",
        [0.12, 0.045],
        "likewise: 0.039, and 0.014",
    ),
    by_effort(
        "change of the radius of 90 % of the mass",
        [0.22, 0.08],
        "likewise: 0.073, and 0.026",
    ),
];

const LEAPFROG_IN_A_SPHERE: Check = check(
    "energy error, largest",
    2e-4,
    "second order: (ω dt)²/12 = 3e-3 for two of 1024 bodies at the softening length (ω = 16, \
     dt = 0.011), in the few pairs this close; f32 adds some 1e-6",
);

const COLLAPSED: [Check; 2] = [
    by_effort(
        "virial ratio at the end, off 1",
        [0.2, 0.1],
        "4/√N, the noise of N bodies; and 0.06 by softening, which takes more from the virial of \
         close pairs than from their potential",
    ),
    check(
        "radius of half the mass at the bounce, of the first",
        0.5,
        "it does collapse: cold spheres fall to a third and less",
    ),
];

/// All experiments, in the order in which they are carried out.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "kepler-yoshida6",
        about: "eccentric binary (e = 0.5), 1000 periods of 400 steps",
        bodies: [2; 2],
        precision: F64,
        integrator: Yoshida6,
        checks: &[
            check(
                "energy error",
                2e-12,
                "symplectic: no drift but rounding, a random walk of 2.8 million kicks: 2e-13 \
                 where each rounds like 1",
            ),
            check(
                "phase error (rad)",
                4e-6,
                "sixth order, growing with time: 2e-6, as 200 steps a period are off by 64 times \
                 as much",
            ),
        ],
        run: |rig| orbits::kepler(rig, 400),
    },
    Experiment {
        name: "kepler-hermite4",
        about: "eccentric binary (e = 0.5), 1000 periods of 2000 steps",
        bodies: [2; 2],
        precision: F64,
        integrator: Hermite4,
        checks: &[
            check(
                "energy error",
                1e-7,
                "not symplectic: 5e-11 are lost each period, by the fifth power of the step (1000 \
                 steps lose 32 times as much)",
            ),
            check(
                "phase error (rad)",
                2e-4,
                "what energy lost evenly makes of the mean motion: (3/2) · 1e-7/2 · 6283 rad = \
                 4.7e-4 of mean anomaly, of which 0.385 show in the angle at apocentre",
            ),
        ],
        run: |rig| orbits::kepler(rig, 2000),
    },
    Experiment {
        name: "figure-eight",
        about: "three bodies on one eight, one period of 2000 steps",
        bodies: [3; 2],
        precision: F64,
        integrator: Yoshida6,
        checks: &[
            check(
                "distance from the start",
                1e-7,
                "the published period has 12 digits, and the error of sixth order is some 1e-9; an \
                 order of magnitude for the three-body problem's amplification",
            ),
            check(
                "energy error",
                1e-12,
                "rounding: 14 000 kicks, a random walk of 1e-14",
            ),
        ],
        run: orbits::eight,
    },
    Experiment {
        name: "solar-system",
        about: "Sun, planets and Pluto, 2000 to 2100, against the ephemeris DE423 of JPL",
        bodies: [10; 2],
        precision: F64,
        integrator: Yoshida6,
        checks: &[
            check(
                "Mercury, from the Sun (arc seconds)",
                30.0,
                "relativity, which is not simulated, changes its orbit's longitude by 82, of which \
                 the advance of the perihelion by 43 and the place on the orbit leave 20 that day",
            ),
            check(
                "Venus to Mars (arc seconds)",
                18.5,
                "likewise: 6 GM/(c² a) of the longitude run through, 17.4 for Venus",
            ),
            check(
                "Jupiter to Pluto (arc seconds)",
                0.3,
                "likewise, 0.13 for Jupiter; and asteroids",
            ),
            check(
                "Mercury's perihelion, turn (arc seconds)",
                10.0,
                "published 577.7 a century less relativity's 43.0; the published mean elements' own \
                 accuracy in longitude is 10 to 15 (Standish)",
            ),
            check(
                "energy error",
                1e-12,
                "symplectic, steps of half a day: rounding, a random walk of 5e5 kicks is 1e-13",
            ),
        ],
        run: orbits::planets,
    },
    Experiment {
        name: "plummer-f32",
        about: "Plummer sphere, 10 crossing times of 256 steps, softening 0.02",
        bodies: [1024, 8192],
        precision: F32,
        integrator: Leapfrog,
        checks: &[LEAPFROG_IN_A_SPHERE, RADII[0], RADII[1], RADII[2]],
        run: spheres::balance,
    },
    Experiment {
        name: "plummer-f64",
        about: "the same in double precision",
        bodies: [1024, 8192],
        precision: F64,
        integrator: Leapfrog,
        checks: &[LEAPFROG_IN_A_SPHERE, RADII[0], RADII[1], RADII[2]],
        run: spheres::balance,
    },
    Experiment {
        name: "plummer-yoshida4",
        about: "Plummer sphere of fewer bodies, 128 steps, softening 0.05",
        bodies: [512, 2048],
        precision: F64,
        integrator: Yoshida4,
        checks: &[check(
            "energy error, largest",
            2e-4,
            "no better than leapfrog's in close encounters, where its inner steps, 1.7 times dt, \
             are near the limit of convergence",
        )],
        run: spheres::balance_of_energy,
    },
    Experiment {
        name: "plummer-yoshida6",
        about: "the same of fewer bodies",
        bodies: [512, 2048],
        precision: F64,
        integrator: Yoshida6,
        checks: &[check(
            "energy error, largest",
            2e-5,
            "a tenth of leapfrog's at the same step, for seven times the work",
        )],
        run: spheres::balance_of_energy,
    },
    Experiment {
        name: "plummer-hermite4",
        about: "the same of fewer bodies",
        bodies: [512, 2048],
        precision: F64,
        integrator: Hermite4,
        checks: &[check(
            "energy error, largest",
            5e-4,
            "not symplectic: the errors of encounters, (ω dt)⁴ = 6e-5 of a close pair's energy, \
             add up",
        )],
        run: spheres::balance_of_energy,
    },
    Experiment {
        name: "collapse-f32",
        about: "cold sphere, falls together and bounces, softening 0.05, 4000 steps",
        bodies: [512, 8192],
        precision: F32,
        integrator: Leapfrog,
        checks: &[
            check(
                "energy error after the bounce",
                1e-4,
                "second order at the bounce: half the mass within 0.13 has ω = 15, and (ω dt)²/12 \
                 = 2e-5 with dt = 0.001; five times as much for its centre",
            ),
            COLLAPSED[0],
            COLLAPSED[1],
        ],
        run: spheres::collapse,
    },
    Experiment {
        name: "collapse-blocks",
        about: "the same with block time steps, η = 0.01",
        bodies: [512, 8192],
        precision: F64,
        integrator: Hermite4,
        checks: &[
            check(
                "energy error after the bounce",
                1e-5,
                "η = 0.01 gives some 1e-7 a dynamical time; some tens of them in the core",
            ),
            COLLAPSED[0],
            COLLAPSED[1],
        ],
        run: spheres::collapse,
    },
    Experiment {
        name: "disk-galaxy",
        about: "disk galaxy over rotations of 43 units of time, softening 0.1",
        bodies: [4096, 16_384],
        precision: F32,
        integrator: Leapfrog,
        checks: &[
            check(
                "rotation curve, R = 1 to 4, largest change",
                0.15,
                "noise of two means of 100 stars with σ = v/4, thrice: 0.1; and 0.05 by which \
                 a disk that warms lags more. A bar or clumps change it by a third",
            ),
            check(
                "energy error",
                5e-4,
                "second order: (ω dt)²/12 = 4e-3 with ω = 2.1 in the bulge's core, a tenth of the \
                 bulge, which is 0.1 of the energy",
            ),
        ],
        run: galaxy::rotation,
    },
];
