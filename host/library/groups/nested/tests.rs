//! Kozai–Lidov cycles and long stability with known answers.

use core::f64::consts::TAU;

use super::super::chain::{Alone, Chain};
use super::*;

/// A triple with an inner orbit of a = 1.
struct Case {
    masses: [f64; 3],
    inner_eccentricity: f64,
    /// Direction of the inner pericentre, in the inner plane.
    direction: f64,
    /// The inner pair begins at its apocentre.
    begins_far: bool,
    axis: f64,
    eccentricity: f64,
    inclination: f64,
    /// Direction of the third body at its apocentre, from the line of nodes.
    phase: f64,
}

impl Case {
    /// Positions and velocities.
    fn bodies(&self) -> ([Vector; 3], [Vector; 3]) {
        let [m1, m2, m3] = self.masses;
        let (mass, e) = (m1 + m2, self.inner_eccentricity);
        let side = if self.begins_far { 1.0 } else { -1.0 };
        let (s, c) = self.direction.sin_cos();
        let r = scale(1.0 + side * e, [c, s, 0.0]);
        let speed = (mass * (1.0 - side * e) / (1.0 + side * e)).sqrt();
        let v = scale(speed, [-s, c, 0.0]);
        let (s, c) = self.phase.sin_cos();
        let (si, ci) = self.inclination.sin_cos();
        let (a, e) = (self.axis, self.eccentricity);
        let far = scale(a * (1.0 + e), [c, s * ci, s * si]);
        let speed = ((mass + m3) / a * (1.0 - e) / (1.0 + e)).sqrt();
        let slow = scale(speed, [-s, c * ci, c * si]);
        let place = |r, far| [scale(-m2 / mass, r), scale(m1 / mass, r), far];
        (place(r, far), place(v, slow))
    }

    fn triple(&self) -> Triple {
        let (x, v) = self.bodies();
        Triple::new(0.0, self.masses, x, v).unwrap()
    }
}

/// Equal masses, 80°, a ratio of 30: P_out/P_in = 134.
const EQUAL: Case = Case {
    masses: [0.5; 3],
    inner_eccentricity: 0.01,
    direction: 0.7,
    begins_far: true,
    axis: 30.0,
    eccentricity: 0.3,
    inclination: 80.0 / 360.0 * TAU,
    phase: 0.0,
};

/// The first maximum of the inner eccentricity, sampled once in `interval`, and its time.
fn first_maximum(case: &Case, nesting: Nesting, interval: f64) -> (f64, f64, u32) {
    let mut triple = case.triple();
    let (mut best, mut time, mut kicks) = (0.0, 0.0, 0);
    while best < 0.5 || triple.inner.eccentricity() > 0.3 {
        kicks += triple.advance(triple.time + interval, nesting, &mut Alone);
        let e = triple.inner.eccentricity();
        if e > best {
            (best, time) = (e, triple.time);
        }
    }
    (best, time, kicks)
}

const fn nesting(scheme: Scheme, slowness: f64) -> Nesting {
    Nesting {
        scheme,
        slowness,
        slowdown: 1.0,
    }
}

#[test]
fn cycles_of_unequal_masses() {
    let case = Case {
        masses: [0.6, 0.4, 1.0],
        inner_eccentricity: 0.1,
        direction: 0.0,
        begins_far: false,
        axis: 15.0,
        eccentricity: 0.4,
        phase: 0.7,
        ..EQUAL
    };
    let (e, time, _) = first_maximum(&case, nesting(Scheme::Sixth, 0.0), TAU);
    // Known: 0.9662877 at 758.82 inner periods, here sampled once a period.
    assert!((e - 0.966_288).abs() < 2e-4, "{e}");
    assert!((time / TAU - 758.82).abs() < 1.5, "{}", time / TAU);
}

#[test]
fn cycles_of_a_slowed_pair() {
    let (e, time, kicks) = first_maximum(&EQUAL, nesting(Scheme::Fourth, 0.3), TAU * 4.0);
    // A chain's: 0.95684 at 136 956.
    assert!((e - 0.956_84).abs() < 2e-3, "{e}");
    assert!((time / 136_956.0 - 1.0).abs() < 5e-3, "{time}");
    // A fifth of the kicks without slow-down.
    assert!(f64::from(kicks) < 30.0 * time / TAU, "{kicks} kicks");
}

#[test]
fn a_triple_is_as_in_a_chain() {
    let case = Case {
        axis: 10.0,
        inner_eccentricity: 0.5,
        ..EQUAL
    };
    let (x, v) = case.bodies();
    let mut triple = case.triple();
    let mut chain = Chain::new(0.0, &case.masses, &x, &v).unwrap();
    assert!((triple.energy() / chain.energy() - 1.0).abs() < 1e-14);
    let bodies = |x: &[Vector], y: &[Vector]| {
        let errors = x.iter().zip(y).map(|(&x, &y)| norm(subtract(x, y)));
        errors.fold(0.0, f64::max)
    };
    assert!(bodies(&triple.positions(), &chain.positions()) < 1e-14);
    assert!(bodies(&triple.velocities(), &chain.velocities()) < 1e-14);
    // Both under the tide of a body far away.
    let mut tide = |_: f64, x: &[Vector], a: &mut [Vector]| {
        for (a, &x) in a.iter_mut().zip(x) {
            *a = add(*a, scale(1e-5, [2.0 * x[0], -x[1], -x[2]]));
        }
    };
    triple.advance(100.0, nesting(Scheme::Sixth, 0.0), &mut tide);
    chain.advance(100.0, 1e-13, &mut tide).unwrap();
    let error = bodies(&triple.positions(), &chain.positions());
    assert!(error < 1e-4, "{error:e}");
    assert!((triple.energy() / chain.energy() - 1.0).abs() < 1e-7);
}

#[test]
fn energy_does_not_drift() {
    let case = Case {
        axis: 30.0,
        eccentricity: 0.5,
        inner_eccentricity: 0.3,
        inclination: TAU / 6.0,
        ..EQUAL
    };
    let mut triple = case.triple();
    assert!(triple.is_stable(1.2));
    let energy = triple.energy();
    let mut worst = 0.0_f64;
    for _ in 0..50 {
        let end = triple.time + 5.0 * TAU * 40.0;
        triple.advance(end, nesting(Scheme::Sixth, 0.0), &mut Alone);
        worst = worst.max((triple.energy() / energy - 1.0).abs());
    }
    assert!(worst < 1e-5);
}

/// A tide that sums the momentum that it gives.
struct Sums {
    last: [Vector; 3],
    momenta: [Vector; 3],
}

impl External for Sums {
    fn accelerations(&mut self, _: f64, x: &[Vector], a: &mut [Vector]) {
        for ((a, last), x) in a.iter_mut().zip(&mut self.last).zip(x) {
            *last = [0.1 + x[0], -x[1], 0.0];
            *a = *last;
        }
    }

    fn kicked(&mut self, weight: f64) {
        for (sum, last) in self.momenta.iter_mut().zip(self.last) {
            *sum = add_scaled(*sum, weight, last);
        }
    }
}

#[test]
fn kicks_are_reported_with_weights_of_time() {
    // Masses so small that the bodies move straight on but for the tide.
    let masses = [3e-12, 2e-12, 4e-12];
    let x = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 20.0, 0.0]];
    let v = [[0.0; 3], [0.0, 1e-6, 0.0], [2e-7, 0.0, 0.0]];
    for slowdown in [1.0, 3.0] {
        let mut triple = Triple::new(0.0, masses, x, v).unwrap();
        let before = triple.velocities();
        let mut sums = Sums {
            last: [[0.0; 3]; 3],
            momenta: [[0.0; 3]; 3],
        };
        let nesting = Nesting {
            slowdown,
            ..nesting(Scheme::Fourth, 0.0)
        };
        for k in 1..=5 {
            triple.advance(0.1 * f64::from(k), nesting, &mut sums);
        }
        assert_eq!(triple.time, 0.5);
        // Relative to the first body: what all have in common is left out.
        for k in 1..3 {
            let gained = subtract(triple.velocities()[k], triple.velocities()[0]);
            let gained = subtract(gained, subtract(before[k], before[0]));
            let given = subtract(sums.momenta[k], sums.momenta[0]);
            assert!(
                norm(subtract(gained, given)) < 1e-9 * norm(given),
                "{gained:?}, {given:?}"
            );
        }
    }
}

#[test]
fn whole_steps_do_not_know_where_they_were_stopped() {
    let case = Case {
        axis: 40.0,
        ..EQUAL
    };
    let nesting = nesting(Scheme::Fourth, 0.3);
    let energy = case.triple().energy();
    let moved = |stops: u32| {
        let mut triple = case.triple();
        for k in 1..=stops {
            let end = 400.0 * TAU * f64::from(k) / f64::from(stops);
            triple.advance_whole_steps(end, nesting, &mut Alone);
            assert!(triple.time <= end && triple.time > end - TAU);
        }
        triple
    };
    let once = moved(1);
    assert_eq!(once, moved(4000));
    assert!(once.slowdown > 1.0);
    // The rest by a Kepler copy, and by a last step.
    let mut last = once;
    last.advance(400.0 * TAU, nesting, &mut Alone);
    let copy = once.at(400.0 * TAU, nesting);
    assert_eq!(copy.time, last.time);
    for (a, b) in copy.positions().into_iter().zip(last.positions()) {
        assert!(norm(subtract(a, b)) < 1e-2);
    }
    assert!((last.energy() / energy - 1.0).abs() < 1e-4);
}

#[test]
fn unbound_triples_are_refused() {
    let (x, mut v) = EQUAL.bodies();
    assert!(Triple::new(0.0, EQUAL.masses, x, v).is_some());
    v[2] = scale(10.0, v[2]);
    assert_eq!(Triple::new(0.0, EQUAL.masses, x, v), None);
    let (mut x, v) = EQUAL.bodies();
    x[1] = x[0];
    assert_eq!(Triple::new(0.0, EQUAL.masses, x, v), None);
}
