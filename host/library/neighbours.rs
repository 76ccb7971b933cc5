//! Neighbours of bodies, by a k-d tree (Bentley 1975, CACM 18, 509): the nearest neighbour of each
//! body, all within a distance, and the radius that holds about a given number of neighbours.

use std::cmp::Ordering;
use std::ops::Range;

use rayon::prelude::*;

/// Points of a leaf: fewer are compared one by one.
const LEAF: usize = 8;

/// Points of a part of a tree that one thread builds.
const SERIAL: usize = 2048;

/// Nearest neighbour of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Index of the body.
    pub index: usize,
    /// Distance of the body.
    pub distance: f64,
}

/// The nearest neighbour of each of some points; none if there is but one. Of neighbours at one distance the
/// one with the least index.
pub fn nearest(points: &[[f64; 3]]) -> Vec<Neighbour> {
    if points.len() < 2 {
        return vec![];
    }
    let tree = Tree::of(points, (0..points.len()).collect());
    let neighbour = |i: usize| {
        let mut best = (f64::INFINITY, usize::MAX);
        tree.search(i, 0, points.len(), &mut best);
        let (square, index) = best;
        Neighbour {
            index,
            distance: square.sqrt(),
        }
    };
    (0..points.len()).into_par_iter().map(neighbour).collect()
}

/// Indices of points that are each other's nearest neighbours, the lower one first.
pub fn mutual(neighbours: &[Neighbour]) -> impl Iterator<Item = [usize; 2]> {
    let pairs = neighbours.iter().enumerate();
    let pairs = pairs.map(|(i, neighbour)| [i, neighbour.index]);
    pairs.filter(|&[i, j]| i < j && neighbours[j].index == i)
}

/// Points in boxes that are halved again and again.
#[derive(Debug)]
pub(crate) struct Tree<P> {
    points: P,
    /// Points so that, of each part that is no leaf, those before the middle lie below it.
    order: Vec<usize>,
    /// At each middle, the axis along which its part is divided.
    axes: Vec<u8>,
}

/// Radii about points in which about `wanted` of those that count are, to within the factors by which
/// density changes in the box that a point shares with so many of them; infinite where no more than
/// that count.
pub fn radii(points: &[[f64; 3]], counts: &[bool], wanted: usize) -> Vec<f64> {
    let mut radii = vec![f64::INFINITY; points.len()];
    if counts.iter().filter(|&&counts| counts).count() > wanted + 1 {
        let mut order: Vec<usize> = (0..points.len()).collect();
        let mut each = vec![0.0; points.len()];
        radii_of_box(points, counts, wanted, &mut order, &mut each);
        order
            .iter()
            .zip(each)
            .for_each(|(&i, radius)| radii[i] = radius);
    }
    radii
}

/// The radii about the points of a box, in their order, which is changed.
fn radii_of_box(
    points: &[[f64; 3]],
    counts: &[bool],
    wanted: usize,
    order: &mut [usize],
    radii: &mut [f64],
) {
    let counted = |part: &[usize]| part.iter().filter(|&&i| counts[i]).count();
    let sides = sides(points, order);
    if counted(order) > 2 * wanted.max(1) {
        let middle = order.len() / 2;
        divide(points, order, longest(sides));
        let (below, above) = order.split_at_mut(middle);
        if counted(below) > 0 && counted(above) > 0 {
            let (radii_below, radii_above) = radii.split_at_mut(middle);
            rayon::join(
                || radii_of_box(points, counts, wanted, below, radii_below),
                || radii_of_box(points, counts, wanted, above, radii_above),
            );
            return;
        }
    }
    // No side of no length: bodies in a plane fill a thin box.
    let least = 1e-3 * sides[longest(sides)];
    let volume: f64 = sides.iter().map(|side| side.max(least)).product();
    let share = wanted as f64 / counted(order).max(1) as f64;
    let cube = volume * share * 3.0 / (4.0 * std::f64::consts::PI);
    radii.fill(cube.cbrt().max(f64::MIN_POSITIVE));
}

/// Lengths of the sides of the box about some points.
fn sides(points: &[[f64; 3]], order: &[usize]) -> [f64; 3] {
    [0, 1, 2].map(|axis| {
        let along = order.iter().map(|&i| points[i][axis]);
        let least = along.clone().fold(f64::INFINITY, f64::min);
        along.fold(f64::NEG_INFINITY, f64::max) - least
    })
}

/// The first axis with the longest side.
fn longest(sides: [f64; 3]) -> usize {
    (1..3).fold(0, |best, k| if sides[k] > sides[best] { k } else { best })
}

/// Orders points so that those before the middle lie below it along an axis.
fn divide(points: &[[f64; 3]], order: &mut [usize], axis: usize) {
    order.select_nth_unstable_by(order.len() / 2, |&a, &b| {
        points[a][axis].total_cmp(&points[b][axis]).then(a.cmp(&b))
    });
}

/// Divides points at the median of their longest axis, again and again.
fn build(points: &[[f64; 3]], order: &mut [usize], axes: &mut [u8]) {
    let count = order.len();
    if count <= LEAF {
        return;
    }
    let axis = longest(sides(points, order));
    let middle = order.len() / 2;
    divide(points, order, axis);
    axes[middle] = axis as u8;
    let (order_below, order_above) = order.split_at_mut(middle);
    let (axes_below, axes_above) = axes.split_at_mut(middle);
    // The middle itself is not divided again.
    let (order_above, axes_above) = (&mut order_above[1..], &mut axes_above[1..]);
    if count < SERIAL {
        build(points, order_below, axes_below);
        build(points, order_above, axes_above);
    } else {
        rayon::join(
            || build(points, order_below, axes_below),
            || build(points, order_above, axes_above),
        );
    }
}

/// The largest number of the points of a part, and in `largest` of the parts of it.
fn largest_of(of: &[f64], order: &[usize], largest: &mut [f64]) -> f64 {
    if order.len() <= LEAF {
        return order.iter().map(|&i| of[i]).fold(0.0, f64::max);
    }
    let middle = order.len() / 2;
    let (below, above) = largest.split_at_mut(middle);
    let mut parts = (
        || largest_of(of, &order[..middle], below),
        // The middle itself is not divided again.
        || largest_of(of, &order[middle + 1..], &mut above[1..]),
    );
    let (one, other) = match order.len() < SERIAL {
        true => (parts.0(), parts.1()),
        false => rayon::join(parts.0, parts.1),
    };
    above[0] = of[order[middle]].max(one).max(other);
    above[0]
}

/// Where a part is divided.
const fn middle(part: &Range<usize>) -> usize {
    part.start + (part.end - part.start) / 2
}

impl<P: AsRef<[[f64; 3]]>> Tree<P> {
    /// A tree of the points with these indices, each once.
    pub(crate) fn of(points: P, mut order: Vec<usize>) -> Self {
        let mut axes = vec![0; order.len()];
        build(points.as_ref(), &mut order, &mut axes);
        Self {
            points,
            order,
            axes,
        }
    }

    /// The points that may be chosen for the tree, in it or not.
    fn points(&self) -> &[[f64; 3]] {
        self.points.as_ref()
    }

    /// Adds the indices of points to a list: of all that are nearer to a place than a distance, and of others that
    /// are near. Returns the number of points that were looked at.
    pub(crate) fn near(&self, at: [f64; 3], distance: f64, found: &mut Vec<usize>) -> usize {
        let limits = (|_| distance, |_| distance);
        self.near_in((0..self.order.len(), distance), at, &limits, found)
    }

    /// As [`near`](Self::near), of points that have `moved` so far, by their indices, from where they are in the tree.
    /// `farthest` are the [largest](Self::largest) of these numbers.
    pub(crate) fn near_moved(
        &self,
        at: [f64; 3],
        distance: f64,
        (moved, farthest): (&[f64], &[f64]),
        found: &mut Vec<usize>,
    ) -> usize {
        let limits = (
            |point: usize| distance + moved[point],
            |middle: usize| distance + farthest[middle],
        );
        let all = 0..self.order.len();
        let limit = self.limit(&all, f64::INFINITY, &limits.1);
        self.near_in((all, limit), at, &limits, found)
    }

    /// The limit of a part: a leaf has none of its own, but the limit of what it is a part of.
    fn limit(&self, part: &Range<usize>, of_whole: f64, limits: &impl Fn(usize) -> f64) -> f64 {
        match part.len() <= LEAF {
            true => of_whole,
            false => limits(middle(part)),
        }
    }

    /// Points of a part within limits of their own, which are at most the limit of their part.
    fn near_in(
        &self,
        (part, limit): (Range<usize>, f64),
        at: [f64; 3],
        limits: &(impl Fn(usize) -> f64, impl Fn(usize) -> f64),
        found: &mut Vec<usize>,
    ) -> usize {
        let mut add = |k: usize| {
            let i = self.order[k];
            let (point, limit) = (self.points()[i], limits.0(i));
            if (0..3).all(|axis| (point[axis] - at[axis]).abs() <= limit) {
                found.push(i);
            }
        };
        if part.len() <= LEAF {
            part.clone().for_each(add);
            return part.len();
        }
        let middle = middle(&part);
        add(middle);
        let axis = usize::from(self.axes[middle]);
        let offset = at[axis] - self.points()[self.order[middle]][axis];
        let mut looked = 1;
        for (part, away) in [
            (part.start..middle, offset),
            (middle + 1..part.end, -offset),
        ] {
            let limit = self.limit(&part, limit, &limits.1);
            if away <= limit {
                looked += self.near_in((part, limit), at, limits, found);
            }
        }
        looked
    }

    /// The largest of the points' numbers in each part of the tree that is no leaf, at the part's middle; 0 elsewhere.
    pub(crate) fn largest(&self, of: &[f64]) -> Vec<f64> {
        let mut largest = vec![0.0; self.order.len()];
        largest_of(of, &self.order, &mut largest);
        largest
    }

    /// Renews the [largest](Self::largest) numbers for a point whose number became larger, by its place in the tree.
    pub(crate) fn raise(&self, place: usize, number: f64, largest: &mut [f64]) {
        let mut part = 0..self.order.len();
        while part.len() > LEAF {
            let middle = middle(&part);
            largest[middle] = largest[middle].max(number);
            part = match place.cmp(&middle) {
                Ordering::Less => part.start..middle,
                Ordering::Equal => return,
                Ordering::Greater => middle + 1..part.end,
            };
        }
    }

    /// Indices of the points, in the order of their places in the tree.
    pub(crate) fn order(&self) -> &[usize] {
        &self.order
    }

    fn search(&self, target: usize, first: usize, end: usize, best: &mut (f64, usize)) {
        if end - first <= LEAF {
            (first..end).for_each(|k| self.compare(target, self.order[k], best));
            return;
        }
        let middle = first + (end - first) / 2;
        let axis = usize::from(self.axes[middle]);
        let at = self.order[middle];
        self.compare(target, at, best);
        let offset = self.points()[target][axis] - self.points()[at][axis];
        let (near, far) = match offset < 0.0 {
            true => ((first, middle), (middle + 1, end)),
            false => ((middle + 1, end), (first, middle)),
        };
        self.search(target, near.0, near.1, best);
        if offset * offset <= best.0 {
            self.search(target, far.0, far.1, best);
        }
    }

    fn compare(&self, target: usize, other: usize, best: &mut (f64, usize)) {
        if target == other {
            return;
        }
        let (a, b) = (self.points()[target], self.points()[other]);
        let square: f64 = (0..3).map(|k| (a[k] - b[k]) * (a[k] - b[k])).sum();
        if (square, other) < *best {
            *best = (square, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::force::cpu::samples::{Random, cloud};

    #[test]
    fn neighbours_are_those_of_all_pairs() {
        for n in [2, 3, 9, 17, 100, 1000] {
            let bodies = cloud(n, n as u64);
            let mut points: Vec<[f64; 3]> = bodies.iter().map(|body| body.position).collect();
            if n > 50 {
                // Coincident ones, and a plane.
                points[7] = points[40];
                points[9] = points[40];
                points.iter_mut().skip(60).for_each(|x| x[2] = 0.0);
            }
            let found = nearest(&points);
            for i in 0..n {
                let square = |j: usize| -> f64 {
                    (0..3).map(|k| (points[i][k] - points[j][k]).powi(2)).sum()
                };
                let others = (0..n).filter(|&j| j != i);
                let expected = others.min_by(|&a, &b| square(a).total_cmp(&square(b)));
                assert_eq!(
                    found[i].distance,
                    square(expected.unwrap()).sqrt(),
                    "{n} {i}"
                );
                assert_eq!(square(found[i].index).sqrt(), found[i].distance);
                assert_ne!(found[i].index, i);
            }
        }
        assert!(nearest(&[[0.0; 3]]).is_empty() && nearest(&[]).is_empty());
    }

    #[test]
    fn a_tree_finds_all_that_are_near() {
        let bodies = cloud(9000, 5);
        let points: Vec<[f64; 3]> = bodies.iter().map(|body| body.position).collect();
        let chosen: Vec<usize> = (0..9000).filter(|i| i % 3 > 0).collect();
        let tree = Tree::of(&points, chosen.clone());
        for (i, distance) in [
            (0, 0.0),
            (1, 0.05),
            (2, 0.3),
            (500, 1.0),
            (7, f64::INFINITY),
        ] {
            let mut found = vec![];
            let looked = tree.near(points[i], distance, &mut found);
            let square =
                |j: usize| -> f64 { (0..3).map(|k| (points[i][k] - points[j][k]).powi(2)).sum() };
            let is_near = |j: &usize| square(*j) < distance * distance;
            let expected: Vec<usize> = chosen.iter().copied().filter(is_near).collect();
            found.sort_unstable();
            let exactly: Vec<usize> = found.iter().copied().filter(is_near).collect();
            assert_eq!(exactly, expected, "{i}, {distance}");
            assert!(
                looked >= found.len() && (distance > 0.3 || looked < 3000),
                "{looked}"
            );
        }
        let mut found = vec![];
        assert_eq!(Tree::of(&points, vec![]).near([0.0; 3], 1.0, &mut found), 0);
        assert!(found.is_empty());
    }

    /// Points that moved are found from where they were, after numbers of all or of some became larger.
    #[test]
    fn a_tree_finds_points_that_moved() {
        let bodies = cloud(3000, 7);
        let points: Vec<[f64; 3]> = bodies.iter().map(|body| body.position).collect();
        let mut random = Random(3);
        let tree = Tree::of(&points, (0..3000).filter(|i| i % 5 > 0).collect());
        // A few go far, most do not.
        let mut moved: Vec<f64> = (0..3000).map(|_| 0.4 * random.unit().powi(20)).collect();
        let mut farthest = tree.largest(&moved);
        for round in 0..3 {
            for i in (0..3000).step_by(11) {
                let distance = 0.1 * random.unit();
                let is_near = |j: &usize| {
                    (0..3).all(|k| (points[i][k] - points[*j][k]).abs() <= distance + moved[*j])
                };
                let expected: Vec<usize> =
                    (0..3000).filter(|j| j % 5 > 0).filter(is_near).collect();
                let mut found = vec![];
                let looked = tree.near_moved(points[i], distance, (&moved, &farthest), &mut found);
                found.sort_unstable();
                assert_eq!(found, expected, "{round}, {i}, {distance}");
                assert!(looked >= found.len() && looked < 2000, "{looked}");
            }
            for (place, &i) in tree
                .order()
                .iter()
                .enumerate()
                .filter(|(_, i)| *i % 7 == round)
            {
                moved[i] += 0.05;
                tree.raise(place, moved[i], &mut farthest);
            }
            assert_eq!(farthest, tree.largest(&moved), "{round}");
        }
    }

    #[test]
    fn radii_hold_about_as_many_as_are_wanted() {
        let bodies = cloud(4000, 3);
        let points: Vec<[f64; 3]> = bodies.iter().map(|body| body.position).collect();
        let counts: Vec<bool> = (0..4000).map(|i| i % 3 > 0).collect();
        let radii = radii(&points, &counts, 50);
        let mut factors: Vec<f64> = (0..4000)
            .map(|i| {
                let near = |j: &usize| {
                    let square = |k: usize| (points[i][k] - points[*j][k]).powi(2);
                    counts[*j] && (0..3).map(square).sum::<f64>() < radii[i] * radii[i]
                };
                (0..4000).filter(near).count() as f64 / 50.0
            })
            .collect();
        factors.sort_by(f64::total_cmp);
        assert!((0.5..2.0).contains(&factors[2000]), "{}", factors[2000]);
        assert!(factors[40] > 0.05 && factors[3960] < 8.0, "{factors:?}");
        // Few, in one place, in a plane.
        let here = |wanted| super::radii(&points[..20], &[true; 20], wanted);
        assert!(here(19).iter().all(|radius| *radius == f64::INFINITY));
        assert!(here(5).iter().all(|radius| radius.is_finite()));
        let same = super::radii(&[[1.0; 3]; 9], &[true; 9], 2);
        assert!(
            same.iter()
                .all(|&radius| radius > 0.0 && radius.is_finite())
        );
    }
}
