//! Multiples with a hard pair: with it as one body, and as two.

use super::super::{Alone, Group, Groups, Inner, Scales};
use super::*;

/// Masses times G.
const GM: [f64; 4] = [1.0, 0.4, 0.3, 0.02];

/// Two members of a hard pair of this axis, and a third body on an orbit about it with this pericentre. A light one is
/// farther away.
fn quadruple(axis: f64, pericentre: f64) -> [Vec<Vector>; 2] {
    let total: f64 = GM[0] + GM[1];
    let speed = (total / axis * (1.0 + 0.3) / (1.0 - 0.3)).sqrt();
    let share = [-GM[1] / total, GM[0] / total];
    let near = |k: usize| {
        let (r, w) = (share[k] * axis * (1.0 - 0.3), share[k] * speed);
        ([0.6 * r, 0.0, 0.8 * r], [0.0, w, 0.0])
    };
    // From its apocentre at 1.
    let e = (1.0 - pericentre) / (1.0 + pericentre);
    let slow = ((total + GM[2]) * (1.0 - e)).sqrt();
    let third = ([1.0, 0.0, 0.0], [0.0, 0.5 * slow, 0.75_f64.sqrt() * slow]);
    let fourth = ([0.2, -3.0, 0.4], [0.5, 0.0, 0.1]);
    let all = [near(0), near(1), third, fourth];
    let mass: f64 = GM.iter().sum();
    let [x, v] = [0, 1].map(|which| {
        let of = |body: &(Vector, Vector)| if which == 0 { body.0 } else { body.1 };
        let weighted = |sum, (body, gm): (&(Vector, Vector), f64)| add_scaled(sum, gm, of(body));
        let centre = all.iter().zip(GM).fold([0.0; 3], weighted);
        let about = |body| add_scaled(of(body), -1.0 / mass, centre);
        all.iter().map(about).collect()
    });
    [x, v]
}

/// The motion to a time, with hard pairs and as a chain of four. Also the largest relative change of the energy.
fn both(axis: f64, pericentre: f64, end: f64, looks: usize) -> (Multiple, Chain, f64, bool) {
    let [x, v] = quadruple(axis, pericentre);
    let mut chain = Chain::new(0.0, &GM, &x, &v).unwrap();
    let mut multiple = Multiple::new(0.0, &GM, &x, &v).unwrap();
    let energy = chain.energy();
    let (mut worst, mut was_resolved) = (0.0_f64, false);
    for look in 1..=looks {
        let time = end * look as f64 / looks as f64;
        chain
            .advance(time, TOLERANCE, &mut Alone, |_, _| true)
            .unwrap();
        multiple.advance(time, &GM, &mut Alone).unwrap();
        worst = worst.max((multiple.energy(&GM) / energy - 1.0).abs());
        was_resolved |= multiple.hard_pairs().next().is_none();
    }
    (multiple, chain, worst, was_resolved)
}

#[test]
fn a_hard_pair_far_from_the_others_is_one_body() {
    let (multiple, chain, worst, was_resolved) = both(3e-3, 0.9, 2.0, 3);
    assert!(!was_resolved && worst < 1e-13, "{worst:e}");
    assert_eq!(multiple.hard_pairs().count(), 1);
    let (few, x) = (multiple.few(&GM), chain.positions());
    // The quadrupole of the pair, which the others do not feel.
    for k in [2, 3] {
        let off = norm(difference(few.x[k], x[k]));
        assert!(off < 2e-5, "{k}: {off:e}");
    }
    let [pair, of_chain] = [&few.x, &x].map(|x| norm(difference(x[1], x[0])));
    assert!(pair < 4e-3 && of_chain < 4e-3);
}

#[test]
fn it_is_two_bodies_while_another_is_near() {
    // The third passes at 3 axes: at 1.1 its orbit is at the pericentre.
    let (axis, pericentre) = (1e-2, 0.03);
    let (multiple, chain, worst, was_resolved) = both(axis, pericentre, 1.2, 600);
    assert!(was_resolved && worst < 1e-9, "{worst:e}");
    let (few, x) = (multiple.few(&GM), chain.positions());
    let off = norm(difference(few.x[2], x[2]));
    assert!(off < 5e-3, "{off:e}");
    // Without a look on the way it notices the passage as well.
    let (unlooked, ..) = both(axis, pericentre, 1.2, 1);
    let few = unlooked.few(&GM);
    let off = norm(difference(few.x[2], x[2]));
    assert!(off < 5e-3, "{off:e}");
}

/// A pair ten thousand times smaller than the orbit of the third is two bodies for the passage alone: not since the step
/// that leads there begins, and not until the end, which are a hundred thousand of its orbits.
#[test]
fn it_is_one_body_before_and_after() {
    let [x, v] = quadruple(1e-4, 3e-4);
    let mut multiple = Multiple::new(0.0, &GM, &x, &v).unwrap();
    let energy = multiple.energy(&GM);
    let mut forces = 0_u32;
    let mut count = |_: f64, _: &[Vector], _: &mut [Vector]| forces += 1;
    multiple.advance(1.6, &GM, &mut count).unwrap();
    assert!((1_000..500_000).contains(&forces), "{forces}");
    let change = (multiple.energy(&GM) / energy - 1.0).abs();
    assert!(change < 1e-9, "{change:e}");
}

#[test]
fn all_bodies_again_keep_energy_and_places() {
    let [x, v] = quadruple(5e-3, 0.8);
    let mut multiple = Multiple::new(0.0, &GM, &x, &v).unwrap();
    assert_eq!(multiple.hard_pairs().count(), 1);
    let (energy, few) = (multiple.energy(&GM), multiple.few(&GM));
    multiple.resolve_all(&GM);
    assert_eq!(multiple.hard_pairs().count(), 0);
    assert!((multiple.energy(&GM) / energy - 1.0).abs() < 1e-14);
    let again = multiple.few(&GM);
    for (k, x) in x.iter().enumerate() {
        assert!(norm(difference(again.x[k], few.x[k])) < 1e-14, "{k}");
        // The pair has what the tides of the others are.
        assert!(norm(difference(again.v[k], few.v[k])) < 1e-5, "{k}");
        assert!(norm(difference(again.x[k], *x)) < 1e-14, "{k}");
    }
}

/// A third body near a tight pair keeps its velocity: the velocities of the pair are far larger, and the sum would change.
#[test]
fn tight_pairs_keep_the_sum_of_all() {
    let [x, v] = quadruple(5e-3, 0.8);
    let scales = Scales::new(0.5, 1.0, 4, GM.iter().sum());
    let group = Group::new(vec![0, 1, 2, 3], GM.to_vec(), &x, &v, 0.0, &scales).unwrap();
    let mut few = group.few();
    (few.x[0], few.x[1]) = ([0.0; 3], [1e-4, 0.0, 0.0]);
    (few.x[2], few.x[3]) = ([1e-2, 1e-3, 0.0], [3.0, 0.0, 0.0]);
    (few.v[0], few.v[1]) = ([1.0, 40.0, 0.0], [1.0, -90.0, 0.0]);
    let means = group.of_tight_pairs(&few, &few.v);
    assert!(norm(difference(means[0], means[1])) < 1e-14);
    assert_eq!([means[2], means[3]], [few.v[2], few.v[3]]);
    let sum = |v: &[Vector]| (0..4).fold([0.0; 3], |sum, k| add_scaled(sum, GM[k], v[k]));
    assert!(norm(difference(sum(&means), sum(&few.v))) < 1e-13);
}

/// A run that is resumed in the midst of an encounter has the same bits.
#[test]
fn a_multiple_with_a_hard_pair_comes_back_from_its_numbers() {
    let [x, v] = quadruple(5e-3, 0.8);
    // A body that belongs to no group comes first.
    let masses = vec![0.25, GM[0], GM[1], GM[2], GM[3]];
    let scales = Scales::new(0.5, 1.0, masses.len(), masses.iter().sum());
    let members = vec![1, 2, 3, 4];
    let group = Group::new(members, GM.to_vec(), &x, &v, 0.0, &scales).unwrap();
    let Inner::Multiple(multiple) = &group.inner else {
        panic!("four members");
    };
    assert_eq!(multiple.hard_pairs().count(), 1);
    let groups = Groups::new(scales, vec![group.clone()], 1.0, masses.clone());
    let phase = ([1.0, 2.0, 3.0], [-2.0, 0.5, 0.0]);
    let numbers = groups.numbers(|_| phase);
    let (read, phases) = Groups::of_numbers(&numbers, masses.clone(), 1.0).unwrap();
    assert_eq!(phases, [[phase.0, phase.1]]);
    assert_eq!(read.all[0].inner, group.inner);
    assert_eq!(read.scales, scales);
    // Nothing may be missing, and no member may be in two bodies.
    for end in 0..numbers.len() {
        assert!(Groups::of_numbers(&numbers[..end], masses.clone(), 1.0).is_none());
    }
    let place = numbers.iter().position(|&number| number == -1.0).unwrap();
    let mut twice = numbers.clone();
    twice[place + 2] = twice[place + 1];
    assert!(Groups::of_numbers(&twice, masses, 1.0).is_none());
}
