//! Irregular forces: of the bodies on a list, gathered by the lanes of warps.

use core::array;

use crate::interaction::{add_with_jerk, distance_squared};
use crate::numerics::{Approximate, Fused, Numerics, Unsoftened};
use crate::tile::for_each;
use cuda_std::vector::Vec4;
use cuda_std::warp::{self, WARP_SIZE, lane_id};
use cuda_std::{GpuFloat, global};

use super::record::{Predicted, Record};
use super::{Elapsed, SUMS};

/// The arithmetic of pairs. Distances are tested for zero also where ε > 0: it costs nothing beside the
/// gathering.
pub(super) type Pairs = Numerics<f32, Fused, Approximate, Unsoftened>;

/// Neighbours of a lane in flight.
const AHEAD: usize = 4;

/// Sources and time of the forces.
#[derive(Clone, Copy)]
pub(super) struct Near {
    pub(super) records: *const Vec4<u32>,
    /// The time of the forces, in ticks.
    pub(super) now: u64,
    pub(super) elapsed: Elapsed,
    pub(super) softening_squared: f32,
}

impl Near {
    /// The sums over neighbours of a list of `count`, added up over the lanes: the approach, and
    /// accelerations and jerks per G. The lanes have a neighbour each in turn.
    ///
    /// # Safety
    /// All lanes call it for the same list, of places with records, which nobody writes in this launch
    /// but this warp ahead of a synchronisation; the target's place has a record too.
    #[inline(always)]
    pub(super) unsafe fn sums(&self, place: u32, list: *const u32, count: u32) -> [f64; SUMS] {
        // SAFETY: the caller's promise.
        let own = unsafe { Record::load(self.records, place) };
        let own = own.predicted(self.now, self.elapsed);
        let (mut accelerations, mut jerks) = ([0.0_f32; 3], [0.0_f32; 3]);
        let mut approach = 0.0_f32;
        let mut begin = 0;
        while begin < count {
            let mut sources = [Record::NOTHING; AHEAD];
            for_each::<AHEAD>(|k| {
                let entry = begin + k as u32 * WARP_SIZE + lane_id();
                // SAFETY: the caller's promise; a lane without one takes the last again, without mass.
                unsafe {
                    let neighbour = global::load(list, entry.min(count - 1));
                    sources[k] = Record::load(self.records, neighbour);
                }
                if entry >= count {
                    sources[k].mass = 0.0;
                }
            });
            for_each::<AHEAD>(|k| {
                let [r, v] = self.relative(&own, &sources[k]);
                let d2 = distance_squared::<Pairs>(r, self.softening_squared);
                let mass = sources[k].mass;
                let near = add_with_jerk::<Pairs>([r, v], d2, mass, &mut accelerations, &mut jerks);
                approach = approach.larger(near.rate.magnitude());
            });
            begin += AHEAD as u32 * WARP_SIZE;
        }
        let [a, j] = [accelerations.map(f64::from), jerks.map(f64::from)];
        over_lanes([f64::from(approach), a[0], a[1], a[2], j[0], j[1], j[2]])
    }

    /// Position and velocity of a source relative to the target: positions are subtracted in f64.
    #[inline(always)]
    fn relative(&self, own: &Predicted, source: &Record) -> [[f32; 3]; 2] {
        let (dx, v) = source.moved(self.elapsed.between(source.begun, self.now));
        let r = |k: usize| (source.x[k] - own.x[k]) as f32 + dx[k];
        let u = |k: usize| v[k] - own.v[k];
        [[r(0), r(1), r(2)], [u(0), u(1), u(2)]]
    }
}

/// Sums over the lanes, the largest approach first.
#[inline(always)]
pub(super) fn over_lanes(sums: [f64; SUMS]) -> [f64; SUMS] {
    warp::over_lanes(sums, |a, b| {
        array::from_fn(|number| together(number, a[number], b[number]))
    })
}

/// Number `number` of the sums over two sets of sources: the larger approach, or both.
#[inline(always)]
pub(super) fn together<R: GpuFloat>(number: usize, a: R, b: R) -> R {
    if number == 0 { a.larger(b) } else { a + b }
}
