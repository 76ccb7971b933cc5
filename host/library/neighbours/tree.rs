//! A k-d tree (Bentley 1975, CACM 18, 509).

use std::cmp::Ordering;
use std::ops::Range;

use crate::vectors::axes;

/// Points of a leaf: fewer are compared one by one.
const LEAF: usize = 8;

/// Points of a part of a tree that one thread builds.
const SERIAL: usize = 2048;

/// A point, and its index among all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    at: [f64; 3],
    index: u32,
}

impl Point {
    /// The point with an index.
    pub(super) fn of(points: &[[f64; 3]], index: usize) -> Self {
        Self {
            at: points[index],
            index: index as u32,
        }
    }

    /// Index of the point among all.
    pub(super) const fn index(&self) -> usize {
        self.index as usize
    }

    fn square_to(&self, at: [f64; 3]) -> f64 {
        let [x, y, z] = axes(|k| self.at[k] - at[k]);
        x * x + y * y + z * z
    }
}

/// Lengths of the sides of the box about some points.
pub(super) fn sides(points: &[Point]) -> [f64; 3] {
    let (mut least, mut most) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for point in points {
        for axis in 0..3 {
            least[axis] = least[axis].min(point.at[axis]);
            most[axis] = most[axis].max(point.at[axis]);
        }
    }
    axes(|axis| most[axis] - least[axis])
}

/// The first axis with the longest side.
pub(super) fn longest(sides: [f64; 3]) -> usize {
    (1..3).fold(0, |best, k| if sides[k] > sides[best] { k } else { best })
}

/// Orders points so that those before the middle lie below it along an axis.
pub(super) fn divide(points: &mut [Point], axis: usize) {
    points.select_nth_unstable_by(points.len() / 2, |a, b| {
        a.at[axis]
            .total_cmp(&b.at[axis])
            .then(a.index.cmp(&b.index))
    });
}

/// Divides points at the median of their longest axis, again and again.
fn build(points: &mut [Point], axes: &mut [u8]) {
    let count = points.len();
    if count <= LEAF {
        return;
    }
    let axis = longest(sides(points));
    let middle = count / 2;
    divide(points, axis);
    axes[middle] = axis as u8;
    let (below, above) = points.split_at_mut(middle);
    let (axes_below, axes_above) = axes.split_at_mut(middle);
    // The middle itself is not divided again.
    let (above, axes_above) = (&mut above[1..], &mut axes_above[1..]);
    if count < SERIAL {
        build(below, axes_below);
        build(above, axes_above);
    } else {
        rayon::join(|| build(below, axes_below), || build(above, axes_above));
    }
}

/// The largest number of a part's points, and in `largest` the largest numbers of the parts of it.
fn largest_of(points: &[Point], numbers: &[f64], largest: &mut [f64]) -> f64 {
    let number = |point: &Point| numbers[point.index()];
    if points.len() <= LEAF {
        return points.iter().map(number).fold(0.0, f64::max);
    }
    let middle = points.len() / 2;
    let (below, above) = largest.split_at_mut(middle);
    let mut parts = (
        || largest_of(&points[..middle], numbers, below),
        || largest_of(&points[middle + 1..], numbers, &mut above[1..]),
    );
    let (one, other) = match points.len() < SERIAL {
        true => (parts.0(), parts.1()),
        false => rayon::join(parts.0, parts.1),
    };
    above[0] = number(&points[middle]).max(one).max(other);
    above[0]
}

/// Where a part is divided.
const fn middle(part: &Range<usize>) -> usize {
    part.start + (part.end - part.start) / 2
}

/// Points in boxes that are halved again and again.
#[derive(Debug)]
pub(crate) struct Tree {
    /// In an order so that, of each part that is no leaf, those before the middle lie below it.
    points: Vec<Point>,
    /// At each middle, the axis along which its part is divided.
    axes: Vec<u8>,
}

impl Tree {
    /// A tree of the points with these indices, each once.
    pub(crate) fn of(points: &[[f64; 3]], indices: impl Iterator<Item = usize>) -> Self {
        let mut points: Vec<Point> = indices.map(|i| Point::of(points, i)).collect();
        let mut axes = vec![0; points.len()];
        build(&mut points, &mut axes);
        Self { points, axes }
    }

    /// Indices of the points, in the order of their places in the tree.
    pub(crate) fn indices(&self) -> impl Iterator<Item = usize> {
        self.points.iter().map(Point::index)
    }

    /// Adds the indices of the points to a list that are no farther from a place than a distance. Returns the number of
    /// points that were looked at.
    pub(crate) fn near(&self, at: [f64; 3], distance: f64, found: &mut Vec<usize>) -> usize {
        let limits = (|_| distance, |_| distance);
        self.near_in((0..self.points.len(), distance), at, &limits, found)
    }

    /// Finds [near](Self::near) points that have `moved` so far from where they are in the tree, by their indices.
    /// `farthest` are the [largest](Self::largest) of these numbers.
    pub(crate) fn near_moved(
        &self,
        at: [f64; 3],
        distance: f64,
        (moved, farthest): (&[f64], &[f64]),
        found: &mut Vec<usize>,
    ) -> usize {
        let limits = (
            |index: usize| distance + moved[index],
            |middle: usize| distance + farthest[middle],
        );
        let all = 0..self.points.len();
        let limit = limit_of(&all, f64::INFINITY, &limits.1);
        self.near_in((all, limit), at, &limits, found)
    }

    /// Points of a part within limits by their indices, which are at most the limit of their part. Parts have limits by their
    /// middles.
    fn near_in(
        &self,
        (part, limit): (Range<usize>, f64),
        at: [f64; 3],
        limits: &(impl Fn(usize) -> f64, impl Fn(usize) -> f64),
        found: &mut Vec<usize>,
    ) -> usize {
        let mut add = |place: usize| {
            let point = &self.points[place];
            let limit = limits.0(point.index());
            if point.square_to(at) <= limit * limit {
                found.push(point.index());
            }
        };
        if part.len() <= LEAF {
            part.clone().for_each(add);
            return part.len();
        }
        let middle = middle(&part);
        add(middle);
        let axis = usize::from(self.axes[middle]);
        let offset = at[axis] - self.points[middle].at[axis];
        let mut looked = 1;
        for (part, away) in [
            (part.start..middle, offset),
            (middle + 1..part.end, -offset),
        ] {
            let limit = limit_of(&part, limit, &limits.1);
            if away <= limit {
                looked += self.near_in((part, limit), at, limits, found);
            }
        }
        looked
    }

    /// The largest number in each part of the tree that is no leaf, at the part's middle, of numbers by the points' indices.
    pub(crate) fn largest(&self, numbers: &[f64]) -> Vec<f64> {
        let mut largest = vec![0.0; self.points.len()];
        largest_of(&self.points, numbers, &mut largest);
        largest
    }

    /// Renews the [largest](Self::largest) numbers after the number of a place became larger.
    pub(crate) fn raise(place: usize, number: f64, largest: &mut [f64]) {
        let mut part = 0..largest.len();
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

    /// Squared distance and index of the nearest point to a place, without the point of an index. Of several the one
    /// with the least index.
    pub(super) fn nearest(&self, without: usize, at: [f64; 3]) -> (f64, usize) {
        let mut best = (f64::INFINITY, usize::MAX);
        self.nearest_in(0..self.points.len(), (without, at), &mut best);
        best
    }

    fn nearest_in(
        &self,
        part: Range<usize>,
        (without, at): (usize, [f64; 3]),
        best: &mut (f64, usize),
    ) {
        let mut compare = |point: &Point| {
            let (square, index) = (point.square_to(at), point.index());
            if index != without && (square, index) < *best {
                *best = (square, index);
            }
        };
        if part.len() <= LEAF {
            return self.points[part].iter().for_each(compare);
        }
        let middle = middle(&part);
        compare(&self.points[middle]);
        let axis = usize::from(self.axes[middle]);
        let offset = at[axis] - self.points[middle].at[axis];
        let (below, above) = (part.start..middle, middle + 1..part.end);
        let (near, far) = match offset < 0.0 {
            true => (below, above),
            false => (above, below),
        };
        self.nearest_in(near, (without, at), best);
        if offset * offset <= best.0 {
            self.nearest_in(far, (without, at), best);
        }
    }
}

/// The limit of a part. A leaf has the limit of the whole that it belongs to.
fn limit_of(part: &Range<usize>, of_whole: f64, limits: &impl Fn(usize) -> f64) -> f64 {
    match part.len() <= LEAF {
        true => of_whole,
        false => limits(middle(part)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::force::cpu::samples::{Random, cloud};

    #[test]
    fn a_tree_finds_all_that_are_near() {
        let bodies = cloud(9000, 5);
        let points: Vec<[f64; 3]> = bodies.iter().map(|body| body.position).collect();
        let chosen: Vec<usize> = (0..9000).filter(|i| i % 3 > 0).collect();
        let tree = Tree::of(&points, chosen.iter().copied());
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
        assert_eq!(
            Tree::of(&points, [].into_iter()).near([0.0; 3], 1.0, &mut found),
            0
        );
        assert!(found.is_empty());
    }

    /// Points that moved are found from where they were, after numbers of all or of some became larger.
    #[test]
    fn a_tree_finds_points_that_moved() {
        let bodies = cloud(3000, 7);
        let points: Vec<[f64; 3]> = bodies.iter().map(|body| body.position).collect();
        let mut random = Random(3);
        let tree = Tree::of(&points, (0..3000).filter(|i| i % 5 > 0));
        let indices: Vec<usize> = tree.indices().collect();
        // A few go far, most do not.
        let mut moved: Vec<f64> = points
            .iter()
            .map(|_| 0.4 * random.unit().powi(20))
            .collect();
        let mut farthest = tree.largest(&moved);
        for round in 0..3 {
            for at in points.iter().step_by(11) {
                let distance = 0.1 * random.unit();
                let is_near = |&i: &usize| {
                    let square: f64 = (0..3).map(|k| (points[i][k] - at[k]).powi(2)).sum();
                    square <= (distance + moved[i]).powi(2)
                };
                let mut expected: Vec<usize> = indices.iter().copied().filter(is_near).collect();
                expected.sort_unstable();
                let mut found = vec![];
                let looked = tree.near_moved(*at, distance, (&moved, &farthest), &mut found);
                found.sort_unstable();
                assert_eq!(found, expected, "{round}, {at:?}, {distance}");
                assert!(looked >= found.len() && looked < 2000, "{looked}");
            }
            for (place, &i) in indices.iter().enumerate().skip(round).step_by(7) {
                moved[i] += 0.05;
                Tree::raise(place, moved[i], &mut farthest);
            }
            assert_eq!(farthest, tree.largest(&moved), "{round}");
        }
    }
}
