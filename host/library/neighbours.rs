//! Neighbours of bodies, by a k-d tree: the nearest neighbour of each body, all within a distance, and the radius that holds
//! about a given number of neighbours.

mod tree;

use self::tree::{Point, divide, longest, sides};
use crate::parallel;

pub(crate) use self::tree::Tree;

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
    let tree = Tree::of(points, 0..points.len());
    let neighbour = |i: usize| {
        let (square, index) = tree.nearest(i, points[i]);
        Neighbour {
            index,
            distance: square.sqrt(),
        }
    };
    parallel::each(points.len(), 1, neighbour)
}

/// Indices of points that are each other's nearest neighbours, the lower one first.
pub fn mutual(neighbours: &[Neighbour]) -> impl Iterator<Item = [usize; 2]> {
    let pairs = neighbours.iter().enumerate();
    let pairs = pairs.map(|(i, neighbour)| [i, neighbour.index]);
    pairs.filter(|&[i, j]| i < j && neighbours[j].index == i)
}

/// Radii about points in which about `wanted` of those that count are, to within the factors by which
/// density changes in the box that a point shares with so many of them; infinite where no more than
/// that count.
pub fn radii(points: &[[f64; 3]], counts: &[bool], wanted: usize) -> Vec<f64> {
    let mut radii = vec![f64::INFINITY; points.len()];
    if counts.iter().filter(|&&counts| counts).count() > wanted + 1 {
        let mut all: Vec<Point> = (0..points.len()).map(|i| Point::of(points, i)).collect();
        let mut each = vec![0.0; points.len()];
        radii_of_box(counts, wanted, &mut all, &mut each);
        all.iter()
            .zip(each)
            .for_each(|(point, radius)| radii[point.index()] = radius);
    }
    radii
}

/// The radii about the points of a box, in their order, which is changed.
fn radii_of_box(counts: &[bool], wanted: usize, points: &mut [Point], radii: &mut [f64]) {
    let counted = |part: &[Point]| part.iter().filter(|point| counts[point.index()]).count();
    let sides = sides(points);
    if counted(points) > 2 * wanted.max(1) {
        let middle = points.len() / 2;
        divide(points, longest(sides));
        let (below, above) = points.split_at_mut(middle);
        if counted(below) > 0 && counted(above) > 0 {
            let (radii_below, radii_above) = radii.split_at_mut(middle);
            rayon::join(
                || radii_of_box(counts, wanted, below, radii_below),
                || radii_of_box(counts, wanted, above, radii_above),
            );
            return;
        }
    }
    // No side of no length: bodies in a plane fill a thin box.
    let least = 1e-3 * sides[longest(sides)];
    let volume: f64 = sides.iter().map(|side| side.max(least)).product();
    let share = wanted as f64 / counted(points).max(1) as f64;
    let cube = volume * share * 3.0 / (4.0 * std::f64::consts::PI);
    radii.fill(cube.cbrt().max(f64::MIN_POSITIVE));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::force::cpu::samples::cloud;

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
