//! The order of a chain: neighbours on it are near each other in space.

use super::super::vector::{Vector, add, difference, dot, scale};
use super::{Bodies, CAPACITY, Chain};

impl Chain {
    /// Makes a new chain where bodies far apart on it have come nearer than its links between them.
    pub(super) fn reorder(&mut self) {
        let x = self.place(&self.links);
        if !self.is_crossed(&x) {
            return;
        }
        let new = order(&x[..self.count]);
        let old = *self;
        for (k, &place) in new[..self.count].iter().enumerate() {
            self.order[k] = old.order[place];
            self.masses[k] = old.masses[place];
        }
        for k in 0..self.count - 1 {
            let (i, j) = (new[k], new[k + 1]);
            self.links[k] = along(&old.links, i, j);
            self.rates[k] = along(&old.rates, i, j);
        }
    }

    /// True if two bodies are nearer to each other than a link between them is long.
    fn is_crossed(&self, positions: &Bodies) -> bool {
        let squares = self.links.map(|link| dot(link, link));
        for i in 0..self.count {
            let mut longest = 0.0_f64;
            for j in i + 1..self.count {
                longest = longest.max(squares[j - 1]);
                let d = self.between(positions, i, j);
                if dot(d, d) < longest {
                    return true;
                }
            }
        }
        false
    }
}

/// The sum of a chain's vectors from one of its places to another.
fn along(vectors: &Bodies, from: usize, to: usize) -> Vector {
    let (first, last) = (from.min(to), from.max(to));
    let mut sum = [0.0; 3];
    for vector in &vectors[first..last] {
        sum = add(sum, *vector);
    }
    if from < to { sum } else { scale(-1.0, sum) }
}

/// An order of bodies in which neighbours are near: the nearest two, then at either end the body
/// nearest to it, the nearer of both first (Mikkola & Aarseth 1993).
pub(super) fn order(positions: &[Vector]) -> [usize; CAPACITY] {
    let count = positions.len();
    let square = |i: usize, j: usize| {
        let d = difference(positions[j], positions[i]);
        dot(d, d)
    };
    let (mut best, mut ends) = (f64::INFINITY, [0, 1]);
    for i in 0..count {
        for j in i + 1..count {
            if square(i, j) < best {
                (best, ends) = (square(i, j), [i, j]);
            }
        }
    }
    let mut order = [0; CAPACITY];
    order[..2].copy_from_slice(&ends);
    for length in 2..count {
        let (mut best, mut next, mut is_first) = (f64::INFINITY, usize::MAX, false);
        for body in (0..count).filter(|body| !order[..length].contains(body)) {
            for (end, at_front) in [(order[0], true), (order[length - 1], false)] {
                // Numbers that are not finite have an order too.
                if square(body, end) < best || next == usize::MAX {
                    (best, next, is_first) = (square(body, end), body, at_front);
                }
            }
        }
        if is_first {
            order.copy_within(..length, 1);
            order[0] = next;
        } else {
            order[length] = next;
        }
    }
    order
}
