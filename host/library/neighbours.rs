//! Nearest neighbours of bodies, by a k-d tree (Bentley 1975, CACM 18, 509).

use rayon::prelude::*;

/// Points of a leaf: fewer are compared one by one.
const LEAF: usize = 8;

/// Nearest neighbour of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Its index.
    pub index: usize,
    /// Its distance.
    pub distance: f64,
}

/// The nearest neighbour of each of some points; none if there is but one. Of neighbours at one distance the
/// one with the least index.
pub fn nearest(points: &[[f64; 3]]) -> Vec<Neighbour> {
    if points.len() < 2 {
        return vec![];
    }
    let mut tree = Tree {
        points,
        order: (0..points.len()).collect(),
        axes: vec![0; points.len()],
    };
    build(points, &mut tree.order, &mut tree.axes);
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

struct Tree<'a> {
    points: &'a [[f64; 3]],
    /// Points so that, of each part that is no leaf, those before the middle lie below it.
    order: Vec<usize>,
    /// At each middle, the axis along which its part is divided.
    axes: Vec<u8>,
}

/// Divides points at the median of their longest axis, again and again.
fn build(points: &[[f64; 3]], order: &mut [usize], axes: &mut [u8]) {
    if order.len() <= LEAF {
        return;
    }
    let length = |axis: usize| {
        let along = order.iter().map(|&i| points[i][axis]);
        let least = along.clone().fold(f64::INFINITY, f64::min);
        along.fold(f64::NEG_INFINITY, f64::max) - least
    };
    let lengths = [0, 1, 2].map(length);
    let axis = (1..3).fold(
        0,
        |best, k| if lengths[k] > lengths[best] { k } else { best },
    );
    let middle = order.len() / 2;
    order.select_nth_unstable_by(middle, |&a, &b| {
        points[a][axis].total_cmp(&points[b][axis]).then(a.cmp(&b))
    });
    axes[middle] = axis as u8;
    let (order_below, order_above) = order.split_at_mut(middle);
    let (axes_below, axes_above) = axes.split_at_mut(middle);
    // The middle itself is not divided again.
    build(points, order_below, axes_below);
    build(points, &mut order_above[1..], &mut axes_above[1..]);
}

impl Tree<'_> {
    fn search(&self, target: usize, first: usize, end: usize, best: &mut (f64, usize)) {
        if end - first <= LEAF {
            (first..end).for_each(|k| self.compare(target, self.order[k], best));
            return;
        }
        let middle = first + (end - first) / 2;
        let axis = usize::from(self.axes[middle]);
        let at = self.order[middle];
        self.compare(target, at, best);
        let offset = self.points[target][axis] - self.points[at][axis];
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
        let (a, b) = (self.points[target], self.points[other]);
        let square: f64 = (0..3).map(|k| (a[k] - b[k]) * (a[k] - b[k])).sum();
        if (square, other) < *best {
            *best = (square, other);
        }
    }
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
}
