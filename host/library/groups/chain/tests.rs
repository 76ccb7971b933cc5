//! Problems of few bodies with known answers.

use super::super::ks::Pair;
use super::super::vector::{cross, scale};
use super::*;

/// Burrau's problem (1913): masses 3, 4, 5 at rest at the corners of a Pythagorean triangle.
fn pythagoras() -> Chain {
    let positions = [[1.0, 3.0, 0.0], [-2.0, -1.0, 0.0], [1.0, -1.0, 0.0]];
    Chain::new(0.0, &[3.0, 4.0, 5.0], &positions, &[[0.0; 3]; 3]).unwrap()
}

#[test]
fn the_pythagorean_problem_ends_as_known() {
    let mut chain = pythagoras();
    let energy = chain.energy();
    // Known from 128-bit numbers.
    let known = [
        (10.0, [0.778_480_410_138_085, 0.141_392_300_290_086]),
        (20.0, [3.004_292_636_696_399, 0.511_925_235_024_685_9]),
        (60.0, [0.743_807_500_118_082_8, 1.939_947_951_094_863]),
        (70.0, [6.933_463_599_011_885, 20.261_804_305_951_71]),
    ];
    let mut forces = 0;
    for (time, [x, y]) in known {
        forces += chain.advance(time, 1e-13, &mut Alone, |_, _| true).unwrap();
        let at = chain.positions()[0];
        let error = (at[0] - x).hypot(at[1] - y);
        assert!(error < 1e-3, "{time}: {at:?}");
    }
    assert!(forces < 40_000, "{forces}");
    assert!((chain.energy() / energy - 1.0).abs() < 1e-9);
    assert!((chain.binding / -energy - 1.0).abs() < 1e-14);
    let (x, v) = (chain.positions(), chain.velocities());
    let pair = Pair::new(9.0, 0.0, difference(x[2], x[1]), difference(v[2], v[1]));
    assert!((pair.semi_major_axis() - 0.552_496).abs() < 1e-4);
    assert!((pair.eccentricity() - 0.988_699).abs() < 1e-4);
}

/// Numbers between 0 and 1, always the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        // Knuth's multiplier; the high bits are good.
        self.0 = (self.0.wrapping_mul(6_364_136_223_846_793_005))
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn direction(&mut self) -> Vector {
        let (z, angle) = (
            2.0 * self.next() - 1.0,
            core::f64::consts::TAU * self.next(),
        );
        let s = (1.0 - z * z).sqrt();
        [s * angle.cos(), s * angle.sin(), z]
    }

    /// Two directions at right angles.
    fn plane(&mut self) -> [Vector; 2] {
        let first = self.direction();
        let second = cross(first, self.direction());
        [first, scale(1.0 / norm(second), second)]
    }
}

/// A single body that comes to a pair (a = 1) from 40 a, slower than what would part the pair. Returns
/// the bodies, and the pair's binding energy.
fn encounter(random: &mut Random) -> (Chain, f64) {
    let masses = [(); 3].map(|()| 0.5 * 4.0_f64.powf(random.next()));
    let [m1, m2, m3] = masses;
    let (pair, all, e) = (m1 + m2, m1 + m2 + m3, 0.99 * random.next().sqrt());
    let [p, q] = random.plane();
    let speed = (pair * (1.0 - e) / (1.0 + e)).sqrt();
    let orbit = Pair::new(pair, 0.0, scale(1.0 + e, p), scale(speed, q));
    let orbit = orbit.at(orbit.period() * random.next());
    let (r, v) = (orbit.position(), orbit.velocity());
    let critical = (m1 * m2 * all / (m3 * pair)).sqrt();
    let (infinity, q, far) = (
        critical * (0.1 + 0.4 * random.next()),
        4.0 * random.next(),
        40.0,
    );
    let impact = q * (1.0 + 2.0 * all / (q * infinity * infinity)).sqrt();
    let across = impact * infinity / far;
    let inward = (infinity * infinity + 2.0 * all / far - across * across)
        .max(0.0)
        .sqrt();
    let [x, y] = random.plane();
    let positions = [scale(-m2 / pair, r), scale(m1 / pair, r), scale(far, x)];
    let third = add_scaled(scale(-inward, x), across, y);
    let velocities = [scale(-m2 / pair, v), scale(m1 / pair, v), third];
    let chain = Chain::new(0.0, &masses, &positions, &velocities).unwrap();
    (chain, 0.5 * m1 * m2)
}

/// The body that has left the others for ever, farther than 40.
fn escaped(chain: &Chain) -> Option<usize> {
    let (x, v) = (chain.positions(), chain.velocities());
    let mut masses = [0.0; 3];
    for (k, &body) in chain.order().iter().enumerate() {
        masses[body] = chain.masses[k];
    }
    (0..3).find(|&s| {
        let (i, j) = ((s + 1) % 3, (s + 2) % 3);
        let pair = masses[i] + masses[j];
        let r = Pair::new(pair, 0.0, difference(x[j], x[i]), difference(v[j], v[i]));
        // From the centre of mass of all: the other two are on the opposite side.
        let factor = (pair + masses[s]) / pair;
        let (d, u) = (scale(factor, x[s]), scale(factor, v[s]));
        let energy = 0.5 * dot(u, u) - (pair + masses[s]) / norm(d);
        r.beta > 0.0 && norm(d) > 40.0 && dot(d, u) > 0.0 && energy > 0.0
    })
}

#[test]
fn scatterings_keep_the_energy() {
    let mut random = Random(7);
    let (mut errors, mut exchanges) = (Vec::new(), 0);
    let count = 100;
    for run in 0..count {
        let (mut chain, binding) = encounter(&mut random);
        let energy = chain.energy();
        let single = loop {
            let end = chain.time + 5.0;
            chain
                .advance(end, TOLERANCE, &mut Alone, |_, _| true)
                .unwrap();
            assert!(chain.time < 1e5, "run {run} has no end");
            if let Some(single) = escaped(&chain) {
                break single;
            }
        };
        exchanges += u32::from(single != 2);
        errors.push((chain.energy() - energy).abs() / binding);
    }
    errors.sort_by(f64::total_cmp);
    assert!(errors[count - 2] < 1e-7, "{:e}", errors[count - 2]);
    assert!(errors[count - 1] < 1e-6, "{:e}", errors[count - 1]);
    // 24 ± 3 %, in a sample of 100.
    assert!((14..=34).contains(&exchanges), "{exchanges}");
}

/// Bodies in no special place, with a tight pair among them.
fn crowd(count: usize) -> ([f64; CAPACITY], Bodies, Bodies) {
    let mut random = Random(3);
    let mut masses = [0.0; CAPACITY];
    let (mut x, mut v) = ([[0.0; 3]; CAPACITY], [[0.0; 3]; CAPACITY]);
    for (k, mass) in masses.iter_mut().enumerate().take(count) {
        *mass = 0.5 + random.next();
        x[k] = scale(1.0 + 2.0 * random.next(), random.direction());
        v[k] = scale(0.7 * random.next(), random.direction());
    }
    // A near pair, apart in the order in which bodies are given.
    x[count - 1] = add(x[0], [1e-3, 2e-3, -1e-3]);
    v[count - 1] = add(v[0], [20.0, 5.0, 0.0]);
    (masses, x, v)
}

fn chain_of(count: usize) -> Chain {
    let (masses, x, v) = crowd(count);
    Chain::new(1.0, &masses[..count], &x[..count], &v[..count]).unwrap()
}

/// Positions or velocities minus their mean by mass.
fn centred(masses: &[f64], vectors: &[Vector]) -> Vec<Vector> {
    let (mut sum, mut mass) = ([0.0; 3], 0.0);
    for (&m, &vector) in masses.iter().zip(vectors) {
        sum = add_scaled(sum, m, vector);
        mass += m;
    }
    let centre = scale(1.0 / mass, sum);
    vectors.iter().map(|&x| difference(x, centre)).collect()
}

#[test]
fn bodies_come_back_in_their_order() {
    for count in 2..=CAPACITY {
        let (masses, x, v) = crowd(count);
        let mut chain = chain_of(count);
        let is_near = |chain: &Chain| {
            let x = centred(&masses[..count], &x[..count]);
            let v = centred(&masses[..count], &v[..count]);
            for k in 0..count {
                assert!(norm(difference(chain.positions()[k], x[k])) < 1e-14);
                assert!(norm(difference(chain.velocities()[k], v[k])) < 1e-13);
            }
        };
        is_near(&chain);
        assert_eq!(chain.order().len(), count);
        // Reordered from the worst chain, the bodies are where they were.
        chain.order = core::array::from_fn(|k| k);
        chain.masses = masses;
        for k in 0..count - 1 {
            chain.links[k] = difference(x[k + 1], x[k]);
            chain.rates[k] = difference(v[k + 1], v[k]);
        }
        is_near(&chain);
        chain.reorder();
        is_near(&chain);
        let along = chain.order();
        let at = |body: usize| along.iter().position(|&b| b == body).unwrap();
        assert_eq!(at(0).abs_diff(at(count - 1)), 1, "the near pair is a link");
        // Size and longest link against all distances.
        let mut size = 0.0_f64;
        for i in 0..count {
            for j in 0..i {
                size = size.max(norm(difference(x[i], x[j])));
            }
        }
        assert!((chain.size() - size).abs() < 1e-14);
        let link = |k: usize| norm(difference(x[along[k + 1]], x[along[k]]));
        let longest = link(chain.longest_link());
        assert!((0..count - 1).all(|k| link(k) <= longest + 1e-14));
    }
}

#[test]
fn energy_is_kept_by_any_number_of_bodies() {
    for count in 2..=CAPACITY {
        let mut chain = chain_of(count);
        let energy = chain.energy();
        chain
            .advance(1.7, TOLERANCE, &mut Alone, |_, _| true)
            .unwrap();
        assert_eq!(chain.time, 1.7);
        assert!(
            (chain.energy() - energy).abs() < 1e-8 * energy.abs(),
            "{count}"
        );
    }
}

#[test]
fn times_at_which_it_stops_do_not_matter() {
    let mut once = chain_of(5);
    let mut often = once;
    once.advance(2.0, TOLERANCE, &mut Alone, |_, _| true)
        .unwrap();
    for k in 1..=40 {
        often
            .advance(1.0 + f64::from(k) / 40.0, TOLERANCE, &mut Alone, |_, _| {
                true
            })
            .unwrap();
    }
    for (a, b) in once.positions().into_iter().zip(often.positions()) {
        assert!(norm(difference(a, b)) < 1e-7, "{a:?}, {b:?}");
    }
    // And back.
    once.advance(1.0, TOLERANCE, &mut Alone, |_, _| true)
        .unwrap();
    for (a, b) in once.positions().into_iter().zip(chain_of(5).positions()) {
        assert!(norm(difference(a, b)) < 1e-6, "{a:?}, {b:?}");
    }
    // No time needs no force.
    assert_eq!(
        often.advance(2.0, TOLERANCE, &mut Alone, |_, _| true),
        Ok(0)
    );
}

/// A pair of the masses 0.3 and 0.7 as such and as a chain, which a third body passes. The pair is
/// advanced to a time in pieces. Returns the errors of position and energy, and the change of the energy.
fn passage(mut pair: Pair, end: f64, pieces: u32) -> [f64; 3] {
    let pull = |time: f64, x: Vector| {
        let d = difference([3.0, time - 5.0, 1.0], x);
        scale(0.3 / norm(d).powi(3), d)
    };
    let place = |r: Vector| [scale(-0.7, r), scale(0.3, r)];
    let (x, v) = (place(pair.position()), place(pair.velocity()));
    let mut chain = Chain::new(0.0, &[0.3, 0.7], &x, &v).unwrap();
    for k in 1..=pieces {
        let until = end * f64::from(k) / f64::from(pieces);
        pair.advance(until, Scheme::Sixth, 1.0, &mut |time: f64, r: Vector| {
            let [a, b] = place(r).map(|x| pull(time, x));
            difference(b, a)
        });
    }
    let mut outside = |time: f64, x: &[Vector], a: &mut [Vector]| {
        for (a, &x) in a.iter_mut().zip(x) {
            *a = add(*a, pull(time, x));
        }
    };
    let energy = chain.energy() / 0.21;
    chain
        .advance(end, 1e-13, &mut outside, |_, _| true)
        .unwrap();
    // The work of what is outside is in the binding energy.
    assert!((chain.binding + chain.energy()).abs() < 1e-11);
    let [a, b, ..] = chain.positions();
    [
        norm(difference(difference(b, a), pair.position())),
        (chain.energy() / 0.21 - pair.energy()).abs(),
        (chain.energy() / 0.21 - energy).abs(),
    ]
}

#[test]
fn two_bodies_are_a_perturbed_pair() {
    let ellipse = Pair::new(1.0, 0.0, [1.0, 0.0, 0.0], [0.0, 0.4, 0.1]);
    let parabola = Pair::new(1.0, 0.0, [-2.0, 0.0, 0.0], [0.8, 0.6, 0.0]);
    let hyperbola = Pair::new(1.0, 0.0, [-4.0, 0.3, 0.0], [1.5, 0.0, 0.0]);
    for (pair, end) in [(ellipse, 5.0), (parabola, 4.0), (hyperbola, 5.0)] {
        for (pieces, bound) in [(1, 1e-3), (16, 1e-6)] {
            let [position, energy, change] = passage(pair, end, pieces);
            assert!(position < bound, "{position:e}");
            assert!(energy < 10.0 * bound * change, "{energy:e}, {change:e}");
        }
    }
}

#[test]
fn an_unstable_triple_with_eccentric_orbits_keeps_its_energy() {
    // Wang's (2024) test: both orbits have e = 0.9, the outer one is retrograde.
    let apocentre = |mass: f64, a: f64| (1.9 * a, (mass / a * 0.1 / 1.9).sqrt());
    let ((r, v), (far, slow)) = (apocentre(1.0, 1e-3), apocentre(2.0, 1e-2));
    let positions = [[-0.9 * r, 0.0, 0.0], [0.1 * r, 0.0, 0.0], [far, 0.0, 0.0]];
    let velocities = [[0.0, -0.9 * v, 0.0], [0.0, 0.1 * v, 0.0], [0.0, -slow, 0.0]];
    let mut chain = Chain::new(0.0, &[0.1, 0.9, 1.0], &positions, &velocities).unwrap();
    let energy = chain.energy();
    chain
        .advance(0.088_857_658_76, TOLERANCE, &mut Alone, |_, _| true)
        .unwrap();
    assert!((chain.energy() / energy - 1.0).abs() < 1e-8);
}

#[test]
fn what_is_no_chain_is_refused() {
    let (x, v) = ([[0.0; 3], [1.0, 0.0, 0.0]], [[0.0; 3]; 2]);
    let new = |masses: &[f64], x: &[Vector], v: &[Vector]| Chain::new(0.0, masses, x, v);
    assert!(new(&[1.0, 1.0], &x, &v).is_some());
    assert!(new(&[], &[], &[]).is_none());
    assert!(new(&[1.0], &x[..1], &v[..1]).is_none());
    assert!(new(&[1.0; 9], &[[0.0; 3]; 9], &[[0.0; 3]; 9]).is_none());
    assert!(new(&[1.0, 1.0], &x[..1], &v).is_none());
    assert!(new(&[1.0, 0.0], &x, &v).is_none());
    assert!(new(&[1.0, 1.0], &[x[0]; 2], &v).is_none());
    assert!(new(&[1.0, 1.0], &[x[0], [f64::NAN; 3]], &v).is_none());
    assert!(new(&[1.0, 1.0], &x, &[v[0], [f64::INFINITY; 3]]).is_none());
}

#[test]
fn a_collision_of_three_is_an_error() {
    // Three bodies at rest on an equilateral triangle meet at one point: no motion goes on from there.
    let h = 0.75_f64.sqrt();
    let x = [[1.0, 0.0, 0.0], [-0.5, h, 0.0], [-0.5, -h, 0.0]];
    let mut chain = Chain::new(0.0, &[1.0; 3], &x, &[[0.0; 3]; 3]).unwrap();
    let result = chain.advance(10.0, TOLERANCE, &mut Alone, |_, _| true);
    let Err(Stuck { time }) = result else {
        panic!("{result:?}")
    };
    assert!(time < 10.0);
    assert_eq!(chain.time, time);
    // NaN from outside.
    let mut broken = |_: f64, _: &[Vector], a: &mut [Vector]| a[0] = [f64::NAN; 3];
    let mut chain = chain_of(3);
    assert_eq!(
        chain.advance(2.0, TOLERANCE, &mut broken, |_, _| true),
        Err(Stuck { time: 1.0 })
    );
}

#[test]
fn bits_are_the_same_on_any_machine() {
    let x = [
        [1.0, 3.0, 0.5],
        [-2.0, -1.0, 0.25],
        [1.0, -1.0, 0.0],
        [1.25, -1.5, 0.0],
    ];
    let v = [[0.0; 3], [0.25, 0.0, 0.0], [0.0, 0.0, 0.5], [1.0, 1.0, 0.0]];
    let mut chain = Chain::new(0.0, &[3.0, 4.0, 5.0, 0.5], &x, &v).unwrap();
    let mut tide = |time: f64, x: &[Vector], a: &mut [Vector]| {
        for (a, x) in a.iter_mut().zip(x) {
            *a = add_scaled(*a, 1e-3 * time, *x);
        }
    };
    chain
        .advance(1.0, TOLERANCE, &mut tide, |_, _| true)
        .unwrap();
    // A fused or reordered operation changes these.
    let bits = [chain.positions()[3][0], chain.binding].map(f64::to_bits);
    let known = [0x3fee_cde1_54e9_a64e, 0x4031_46c3_ce62_2b0a];
    assert_eq!(bits, known, "{bits:#x?}");
}
