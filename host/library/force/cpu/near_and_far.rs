//! Sums of a neighbour scheme: over the bodies of a list, and over all bodies outside of a sphere.

#![expect(
    clippy::needless_range_loop,
    reason = "vector loops count an index: see `simd::Kernel`"
)]

use gpu_kernels::interaction::{
    Nearness, add_with_jerk, add_with_snap, distance_squared, separation,
};
use gpu_kernels::neighbour_scheme::{Force, norm};
use gpu_kernels::numerics::Closest;

use super::derivatives::{Group, Source, Sums, keep_largest};
use super::kernel::{BLOCK, Distance, LANES, Loop, add, load, splat};
use crate::force::in_memory::Forces;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::simd::{InstructionSet, Kernel};
use crate::simd::{Lanes, Registers, Root, Vector};
use crate::variants::RootName;

/// Rounding errors of a regular force that is the difference of sums, in those of their terms.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// Units and constants of sums over the bodies of a list.
pub(in crate::force) struct ListSums<'a> {
    instructions: InstructionSet,
    physics: &'a Physics,
    pub(super) frame: &'a Frame,
    pub(super) coupling: f64,
    pub(super) distance: Distance<f64>,
}

impl<'a> ListSums<'a> {
    pub(in crate::force) fn new(
        physics: &'a Physics,
        root: RootName,
        instructions: InstructionSet,
        frame: &'a Frame,
    ) -> Self {
        let softening = frame.length_to_local(physics.softening);
        Self {
            instructions,
            physics,
            frame,
            coupling: frame.coupling_to_local(physics),
            distance: Distance {
                root,
                softening_squared: softening * softening,
            },
        }
    }

    /// A body of this mass with this position and velocity, in the units of the sums.
    #[inline]
    pub(in crate::force) fn source(&self, [x, v]: [[f64; 3]; 2], mass: f64) -> Source<f64, 2> {
        let mass = self.frame.mass_to_local(mass);
        let vectors = [
            self.frame.position_to_local(x),
            self.frame.velocity_to_local(v),
        ];
        (vectors, self.physics.weight(mass))
    }

    /// The force of neighbours on a target.
    pub(in crate::force) fn force<const K: usize>(
        &self,
        target: [[f64; 3]; K],
        neighbours: impl Iterator<Item = Source<f64, K>>,
    ) -> Forces {
        let mut gathered = vec![];
        gather(target, neighbours, &mut gathered);
        let mut sums = Sums::NONE;
        self.instructions.run(Near {
            target,
            neighbours: &gathered,
            distance: self.distance,
            sums: &mut sums,
        });
        sums.folded().force(0, self.frame, self.coupling)
    }
}

/// The most that rounding makes of a regular force: the force of all bodies minus the force of a list. The lists are
/// the ones at the beginning and the end of a step `dt`, and `total` is the mass of all times G. Infinite where no body is
/// outside of the sphere.
pub(in crate::force) fn noise(total: f64, radius: f64, dt: f64, lists: [Force; 2]) -> f64 {
    if radius == f64::INFINITY {
        return f64::INFINITY;
    }
    let of_list = |[a, j]: Force| norm(a) + dt.abs() * norm(j);
    ROUNDING * (total / (radius * radius) + lists.into_iter().map(of_list).sum::<f64>())
}

/// Position and velocity of [`LANES`] neighbours, for `K` = 3 their accelerations too; and weights.
pub(super) type Neighbours<const K: usize> = (Group<f64, K>, [f64; LANES]);

/// Sums over neighbours on one target, a part in each lane: the same in registers of any width.
pub(super) struct Near<'a, const K: usize> {
    pub(super) target: [[f64; 3]; K],
    pub(super) neighbours: &'a [Neighbours<K>],
    pub(super) distance: Distance<f64>,
    pub(super) sums: &'a mut Sums<K>,
}

impl<const K: usize> Kernel for Near<'_, K> {
    type Output = ();
    #[inline(always)]
    fn run<S: Registers>(self) {
        self.distance.run::<S::F64>(self);
    }
}

impl<const K: usize> Loop<f64> for Near<'_, K> {
    #[inline(always)]
    fn run<V: Vector<Lane = f64>, S: Root, C: Closest>(self) {
        let softening_squared = V::splat(self.distance.softening_squared);
        let zero = V::splat(0.0);
        let mut target = [[zero; 3]; K];
        for k in 0..K {
            let [x, y, z] = self.target[k];
            target[k] = splat(x, y, z);
        }
        for lane in (0..LANES).step_by(V::LANES) {
            let (mut vectors, mut approach) = ([[zero; 3]; 3], zero);
            for (group, weights) in self.neighbours {
                let mut relative = [[zero; 3]; 3];
                for k in 0..K {
                    relative[k] = separation::<Lanes<V, S, C>>(target[k], load(&group[k], lane));
                }
                let [r, v, _] = relative;
                let square = distance_squared::<Lanes<V, S, C>>(r, softening_squared);
                let weight = V::load(&weights[lane..]);
                let Nearness { rate, .. } = if K == 3 {
                    add_with_snap::<Lanes<V, S, C>>(relative, square, weight, &mut vectors)
                } else {
                    let [a, j, _] = &mut vectors;
                    add_with_jerk::<Lanes<V, S, C>>([r, v], square, weight, a, j)
                };
                approach = (rate * rate).larger(approach);
            }
            for k in 0..K {
                for axis in 0..3 {
                    vectors[k][axis].store(&mut self.sums.vectors[k][axis][lane..]);
                }
            }
            approach.store(&mut self.sums.approach[lane..]);
        }
    }
}

impl<const K: usize> Sums<K> {
    /// All lanes added up, into the first.
    pub(super) fn folded(mut self) -> Self {
        let vectors = self.vectors.as_flattened_mut().iter_mut();
        vectors.for_each(|lanes| lanes[0] = lanes.iter().sum());
        self.approach[0] = self.approach.iter().copied().fold(0.0, f64::max);
        self
    }
}

/// Sums over all sources outside of a sphere about each target, and the sources inside.
pub(super) struct Far<'a> {
    pub(super) targets: &'a Group<f64, 2>,
    pub(super) count: usize,
    /// Squared radii, with the squared softening.
    pub(super) limits: [f64; LANES],
    pub(super) sources: &'a [Source<f64, 2>],
    pub(super) distance: Distance<f64>,
    pub(super) sums: &'a mut Sums<2>,
    /// Numbers of the sources inside, in order.
    pub(super) inside: &'a mut [Vec<u32>; LANES],
}

impl Kernel for Far<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Registers>(self) {
        self.distance.run::<S::F64>(self);
    }
}

impl Loop<f64> for Far<'_> {
    #[inline(always)]
    fn run<V: Vector<Lane = f64>, S: Root, C: Closest>(self) {
        let softening_squared = V::splat(self.distance.softening_squared);
        let zero = V::splat(0.0);
        let [positions, velocities] = self.targets;
        let count = self.sources.len();
        for block in (0..count).step_by(BLOCK) {
            for lane in (0..self.count).step_by(V::LANES) {
                let (position, velocity) = (load::<V>(positions, lane), load(velocities, lane));
                let limits = &self.limits[lane..lane + V::LANES];
                let limit = V::load(limits);
                let ([mut a, mut j], mut approach) = ([[zero; 3]; 2], zero);
                for number in block..count.min(block + BLOCK) {
                    let ([[x, y, z], [vx, vy, vz]], weight) = self.sources[number];
                    let r = separation::<Lanes<V, S, C>>(position, splat(x, y, z));
                    let v = separation::<Lanes<V, S, C>>(velocity, splat(vx, vy, vz));
                    let square = distance_squared::<Lanes<V, S, C>>(r, softening_squared);
                    let weight = V::splat(weight).zero_where_less(square, limit);
                    let near =
                        add_with_jerk::<Lanes<V, S, C>>([r, v], square, weight, &mut a, &mut j);
                    let rate = near.rate.zero_where_less(square, limit);
                    approach = (rate * rate).larger(approach);
                    let mut squares = [0.0; LANES];
                    square.store(&mut squares);
                    let mut any = false;
                    for k in 0..V::LANES {
                        any |= squares[k] < limits[k];
                    }
                    if any {
                        for k in 0..V::LANES {
                            if squares[k] < limits[k] {
                                self.inside[lane + k].push(number as u32);
                            }
                        }
                    }
                }
                add(a, &mut self.sums.vectors[0], lane);
                add(j, &mut self.sums.vectors[1], lane);
                keep_largest(approach, &mut self.sums.approach, lane);
            }
        }
    }
}

/// Sources that [`Inside`] looks at together.
const PART: usize = 16;

/// Squared distances of sources, given by coordinate, from a point.
pub(super) struct Squares<'a> {
    pub(super) columns: [&'a [f64]; 3],
    pub(super) at: [f64; 3],
    pub(super) squares: &'a mut [f64],
}

impl Kernel for Squares<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Registers>(self) {
        let [x, y, z] = self.columns;
        let count = self.squares.len();
        let (x, y, z) = (&x[..count], &y[..count], &z[..count]);
        for k in 0..count {
            self.squares[k] = square_of([x[k], y[k], z[k]], self.at);
        }
    }
}

/// Square of the distance between two points.
#[inline(always)]
fn square_of([x, y, z]: [f64; 3], at: [f64; 3]) -> f64 {
    let (x, y, z) = (x - at[0], y - at[1], z - at[2]);
    x * x + y * y + z * z
}

/// Numbers of the sources that are nearer than the root of `limit` to a point, in order.
pub(in crate::force) struct Inside<'a> {
    pub(in crate::force) columns: [&'a [f64]; 3],
    pub(in crate::force) at: [f64; 3],
    pub(in crate::force) limit: f64,
}

impl Kernel for Inside<'_> {
    type Output = Vec<u32>;
    #[inline(always)]
    fn run<S: Registers>(self) -> Vec<u32> {
        let [x, y, z] = self.columns;
        let mut inside = vec![];
        let whole = x.len() - x.len() % PART;
        for first in (0..whole).step_by(PART) {
            let part = first..first + PART;
            let (x, y, z) = (&x[part.clone()], &y[part.clone()], &z[part]);
            let mut squares = [0.0; PART];
            let mut any = false;
            for k in 0..PART {
                squares[k] = square_of([x[k], y[k], z[k]], self.at);
                any |= squares[k] < self.limit;
            }
            if any {
                for k in 0..PART {
                    if squares[k] < self.limit {
                        inside.push((first + k) as u32);
                    }
                }
            }
        }
        for k in whole..x.len() {
            if square_of([x[k], y[k], z[k]], self.at) < self.limit {
                inside.push(k as u32);
            }
        }
        inside
    }
}

/// Neighbours in groups of lanes; lanes past the last have no weight, and stand off the target.
pub(super) fn gather<const K: usize>(
    target: [[f64; 3]; K],
    neighbours: impl Iterator<Item = Source<f64, K>>,
    into: &mut Vec<Neighbours<K>>,
) {
    let mut off = target;
    off[0][0] += 1.0;
    let padding = off.map(|vector| vector.map(|x| [x; LANES]));
    into.clear();
    for (k, (source, weight)) in neighbours.enumerate() {
        if k % LANES == 0 {
            into.push((padding, [0.0; LANES]));
        }
        if let Some((group, weights)) = into.last_mut() {
            for (group, vector) in group.iter_mut().zip(source) {
                super::put(group, k % LANES, vector);
            }
            weights[k % LANES] = weight;
        }
    }
}
