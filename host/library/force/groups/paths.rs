//! Bodies that perturb a group, on their ways: where they are from its centre, and how they attract its members.

use crate::force::hermite_order::Order;
use crate::groups::Vector;
use crate::simd::{InstructionSet, Kernel, Registers, Vector as Register};
use crate::vectors::axes;

/// Bodies that are computed together: as many as the widest register has lanes, or a multiple.
const LANES: usize = 8;

type Lanes = [f64; LANES];

/// Way of a body, from the centre of a group: factors of the powers of time from 0 to 5. At fourth order the last two
/// are zero.
pub(super) type Polynomial = [Vector; SIXTH];

/// Number of the powers at fourth order.
const FOURTH: usize = 4;

/// Number of the powers at sixth order.
const SIXTH: usize = 6;

/// The place after a time.
pub(super) fn place(way: &Polynomial, since: f64) -> Vector {
    let [factors @ .., highest] = way;
    let next = |sum: Vector, factor: &Vector| axes(|k| factor[k] + since * sum[k]);
    factors.iter().rev().fold(*highest, next)
}

/// The most by which a body moves in a time.
pub(super) fn farthest([_, way @ ..]: &Polynomial, since: f64) -> f64 {
    let length = |v: &Vector| crate::vectors::dot(*v, *v).sqrt();
    let next = |sum: f64, factor: &Vector| since * (length(factor) + sum);
    way.iter().rev().fold(0.0, next)
}

/// A few bodies.
#[derive(Clone)]
struct Several {
    /// Masses times G; 0 in lanes without a body.
    gm: Lanes,
    /// Ways of the bodies, by powers of time and axes.
    ways: [[Lanes; 3]; SIXTH],
}

/// Bodies on their ways.
#[derive(Clone)]
pub(super) struct Paths {
    order: Order,
    all: Vec<Several>,
    count: usize,
}

impl Paths {
    /// No bodies, and room for as many.
    pub(super) fn with_room(order: Order, bodies: usize) -> Self {
        Self {
            order,
            all: Vec::with_capacity(bodies.div_ceil(LANES)),
            count: 0,
        }
    }

    /// Adds a body of this mass times G.
    pub(super) fn push(&mut self, gm: f64, way: &Polynomial) {
        let lane = self.count % LANES;
        if lane == 0 {
            // Lanes without a body go the way of the first, where no distance is 0.
            self.all.push(Several {
                gm: [0.0; LANES],
                ways: way.map(|vector| vector.map(|x| [x; LANES])),
            });
        }
        if let Some(several) = self.all.last_mut() {
            several.gm[lane] = gm;
            for (lanes, vector) in several.ways.iter_mut().zip(way) {
                for axis in 0..3 {
                    lanes[axis][lane] = vector[axis];
                }
            }
        }
        self.count += 1;
    }

    /// Accelerations of points about the centre, a time after the beginning.
    pub(super) fn attraction<const POINTS: usize>(
        &self,
        instructions: InstructionSet,
        since: f64,
        points: &[Vector; POINTS],
    ) -> [Vector; POINTS] {
        let all = &self.all[..];
        match self.order {
            Order::Fourth => instructions.run(Attraction::<POINTS, FOURTH> { all, since, points }),
            Order::Sixth => instructions.run(Attraction::<POINTS, SIXTH> { all, since, points }),
        }
    }
}

/// The loop of [`Paths::attraction`], with this number of powers of time.
struct Attraction<'a, const POINTS: usize, const POWERS: usize> {
    all: &'a [Several],
    since: f64,
    points: &'a [Vector; POINTS],
}

impl<const POINTS: usize, const POWERS: usize> Kernel for Attraction<'_, POINTS, POWERS> {
    type Output = [Vector; POINTS];

    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "vector loops count an index: see `simd::Kernel`"
    )]
    fn run<S: Registers>(self) -> [Vector; POINTS] {
        let zero = S::F64::splat(0.0);
        let since = S::F64::splat(self.since);
        let mut at = [[zero; 3]; POINTS];
        for point in 0..POINTS {
            for axis in 0..3 {
                at[point][axis] = S::F64::splat(self.points[point][axis]);
            }
        }
        let mut sums = [[zero; 3]; POINTS];
        for k in 0..self.all.len() {
            let several = &self.all[k];
            for lane in (0..LANES).step_by(S::F64::LANES) {
                let mut centre = [zero; 3];
                for axis in 0..3 {
                    let mut place = S::F64::load(&several.ways[POWERS - 1][axis][lane..]);
                    for power in (0..POWERS - 1).rev() {
                        let factor = S::F64::load(&several.ways[power][axis][lane..]);
                        place = place.mul_add(since, factor);
                    }
                    centre[axis] = place;
                }
                let gm = S::F64::load(&several.gm[lane..]);
                for point in 0..POINTS {
                    let mut d = [zero; 3];
                    for axis in 0..3 {
                        d[axis] = centre[axis] - at[point][axis];
                    }
                    let square = d[0].mul_add(d[0], d[1].mul_add(d[1], d[2] * d[2]));
                    let inverse = square.exact_inverse_sqrt();
                    let weight = (gm * inverse) * (inverse * inverse);
                    for axis in 0..3 {
                        sums[point][axis] = weight.mul_add(d[axis], sums[point][axis]);
                    }
                }
            }
        }
        let mut total = [[0.0; 3]; POINTS];
        for point in 0..POINTS {
            for axis in 0..3 {
                total[point][axis] = sums[point][axis].sum();
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_on_their_ways_attract_as_one_after_another() {
        for (order, powers) in [(Order::Fourth, FOURTH), (Order::Sixth, SIXTH)] {
            attract_as_one_after_another(order, powers);
        }
    }

    fn attract_as_one_after_another(order: Order, powers: usize) {
        let number = |k: usize| ((k * 37 % 101) as f64 - 50.3) / 17.0;
        let points = [[0.01, -0.02, 0.03], [-0.3, 0.1, 0.2]];
        for instructions in InstructionSet::available() {
            for count in [0, 1, 2, 7, 8, 9, 40] {
                let mut paths = Paths::with_room(order, count);
                let (since, mut wanted) = (0.125, [[0.0; 3]; 2]);
                for i in 0..count {
                    let mut way = [[0.0; 3]; SIXTH];
                    for (p, vector) in way[..powers].iter_mut().enumerate() {
                        *vector = axes(|k| number(i * 3 * powers + p * 3 + k));
                    }
                    way[0][0] += 5.0;
                    let gm = 1.0 + i as f64;
                    paths.push(gm, &way);
                    let centre = place(&way, since);
                    for (sum, point) in wanted.iter_mut().zip(points) {
                        let d = crate::vectors::difference(centre, point);
                        let cube = crate::vectors::dot(d, d).powf(1.5);
                        for k in 0..3 {
                            sum[k] += gm * d[k] / cube;
                        }
                    }
                    assert!(farthest(&way, since) >= crate::vectors::distance(centre, way[0]));
                }
                let found = paths.attraction(instructions, since, &points);
                for (found, wanted) in found.iter().zip(&wanted) {
                    let off = crate::vectors::distance(*found, *wanted);
                    let size = crate::vectors::distance(*wanted, [0.0; 3]);
                    assert!(off <= 1e-13 * size, "{instructions}, {count}: {off:e}");
                }
            }
        }
    }
}
