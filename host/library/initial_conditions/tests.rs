//! Tests of what all generators have in common, and helpers of their tests.

pub(super) mod ephemeris;

use super::*;

/// Kinetic and potential energy by direct summation, G = 1, no softening.
pub(super) fn energies(bodies: &Bodies) -> (f64, f64) {
    let list: Vec<_> = bodies.iter().collect();
    let (mut kinetic, mut potential) = (0.0, 0.0);
    for (i, a) in list.iter().enumerate() {
        kinetic += 0.5 * a.mass * norm_squared(a.velocity);
        for b in &list[..i] {
            let separation = [0, 1, 2].map(|k| a.position[k] - b.position[k]);
            potential -= a.mass * b.mass / norm_squared(separation).sqrt();
        }
    }
    (kinetic, potential)
}

/// Centre of mass at rest at the origin, up to rounding: coordinates of up to `largest` are
/// added n times and shifted once.
pub(super) fn assert_centred(bodies: &Bodies, largest: f64) {
    let tolerance = bodies.len() as f64 * largest * f64::EPSILON;
    let centre = bodies.centre_of_mass().unwrap();
    let drift = bodies.centre_of_mass_velocity().unwrap();
    for value in centre.into_iter().chain(drift) {
        assert!(value.abs() <= tolerance, "{value:e}");
    }
}

/// Distances from the origin, in ascending order.
pub(super) fn sorted_radii(bodies: &Bodies) -> Vec<f64> {
    let mut radii: Vec<_> = bodies
        .iter()
        .map(|body| norm_squared(body.position).sqrt())
        .collect();
    radii.sort_by(f64::total_cmp);
    radii
}

/// Leapfrog in f64 by direct summation, apart from everything that is simulated with.
pub(super) fn leapfrog(bodies: &mut Bodies, dt: f64, steps: usize, softening: f64) {
    let n = bodies.len();
    let accelerations = |bodies: &Bodies| {
        let mut sums = vec![[0.0; 3]; n];
        for i in 0..n {
            for j in 0..i {
                let d = [
                    bodies.x[j] - bodies.x[i],
                    bodies.y[j] - bodies.y[i],
                    bodies.z[j] - bodies.z[i],
                ];
                let square = norm_squared(d) + softening * softening;
                let cube = square * square.sqrt();
                for k in 0..3 {
                    sums[i][k] += bodies.mass[j] * d[k] / cube;
                    sums[j][k] -= bodies.mass[i] * d[k] / cube;
                }
            }
        }
        sums
    };
    let mut a = accelerations(bodies);
    for _ in 0..steps {
        for half in 0..2 {
            for (i, a) in a.iter().enumerate() {
                bodies.vx[i] += 0.5 * dt * a[0];
                bodies.vy[i] += 0.5 * dt * a[1];
                bodies.vz[i] += 0.5 * dt * a[2];
            }
            if half == 0 {
                for i in 0..n {
                    bodies.x[i] += dt * bodies.vx[i];
                    bodies.y[i] += dt * bodies.vy[i];
                    bodies.z[i] += dt * bodies.vz[i];
                }
                a = accelerations(bodies);
            }
        }
    }
}

#[test]
fn the_list_is_sound() {
    for (i, generator) in GENERATORS.iter().enumerate() {
        assert!(
            GENERATORS[..i]
                .iter()
                .all(|other| other.name != generator.name)
        );
        assert_eq!(find(generator.name).unwrap().name, generator.name);
        assert!(!generator.summary.is_empty());
        if let Some(units) = generator.units {
            let g = units.parse::<crate::units::Units>().unwrap().g();
            assert!((g - 1.0).abs() <= 1e-14, "{g}");
        }

        let made = generator.generate(&Options::default()).unwrap();
        assert_eq!(made.check(), Ok(()));
        assert!(made.id.iter().copied().eq(0..made.len() as u64));
        let listens = |parameter| generator.parameters.iter().any(|(p, _)| *p == parameter);
        if listens(Parameter::Bodies) {
            assert_eq!(made.len(), DEFAULT_BODIES);
            assert!((made.total_mass() - 1.0).abs() <= made.len() as f64 * f64::EPSILON);
            for n in [1, 2, 3, 100] {
                let options = Options::new(1).with(Parameter::Bodies, n as f64);
                let made = generator.generate(&options).unwrap();
                assert_eq!(
                    (made.len(), made.check()),
                    (n, Ok(())),
                    "{}",
                    generator.name
                );
            }
        }
        assert_centred(&made, 400.0);
    }
    let message = find("torus").unwrap_err().to_string();
    assert!(
        message.contains("`torus`") && message.contains("plummer"),
        "{message}"
    );
}

#[test]
fn seeds_decide() {
    for generator in GENERATORS {
        let make = |seed| {
            let mut options = Options::new(seed);
            if generator.parameters.contains(&BODIES) {
                options = options.with(Parameter::Bodies, 200.0);
            }
            generator.generate(&options).unwrap()
        };
        assert_eq!(make(7), make(7));
        let draws = generator.parameters.contains(&BODIES) || generator.has_systems();
        assert_eq!(make(7) != make(8), draws, "{}", generator.name);
    }
}

/// A change of any bit here changes everybody's reproduced runs: it belongs in the changelog.
#[test]
fn bits_are_pinned() {
    let mut found = Vec::new();
    for generator in GENERATORS {
        let mut options = Options::new(42);
        if generator.parameters.contains(&BODIES) {
            options = options.with(Parameter::Bodies, 50.0);
        }
        let bodies = generator.generate(&options).unwrap();
        let mut bits = crc32fast::Hasher::new();
        for body in bodies.iter() {
            for value in body
                .position
                .iter()
                .chain(&body.velocity)
                .chain([&body.mass])
            {
                bits.update(&value.to_le_bytes());
            }
        }
        found.push((generator.name, bits.finalize()));
    }
    assert_eq!(found, PINNED);
}

const PINNED: [(&str, u32); 14] = [
    ("plummer", 782_527_394),
    ("king", 3_433_459_832),
    ("hernquist", 2_295_649_014),
    ("uniform-sphere", 3_242_280_763),
    ("cold-collapse", 1_630_390_021),
    ("disk-galaxy", 2_359_485_883),
    ("galaxy-collision", 3_520_665_518),
    ("kepler-ring", 2_266_047_201),
    ("two-body", 1_570_198_621),
    ("figure-eight", 163_802_338),
    ("sun-earth", 1_502_430_705),
    ("sun-earth-moon", 747_154_421),
    ("solar-system", 1_551_962_304),
    ("many-galaxies", 3_332_219_085),
];

#[test]
fn normal_numbers_are_normal() {
    let mut random = Random::new(3);
    let n = 100_000;
    let sums = (0..n).fold([0.0; 4], |sums: [f64; 4], _| {
        let x = random.normal();
        [
            sums[0] + x,
            sums[1] + x * x,
            sums[2] + x.powi(3),
            sums[3] + x.powi(4),
        ]
    });
    // Moments 0, 1, 0, 3 with the deviations √1, √2, √15, √96 of a single draw.
    for (sum, (moment, variance)) in
        sums.iter()
            .zip([(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0_f64)])
    {
        let tolerance = 5.0 * (variance / f64::from(n)).sqrt();
        assert!((sum / f64::from(n) - moment).abs() <= tolerance, "{sum}");
    }
}
