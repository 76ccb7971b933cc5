//! First steps.

use crate::abi::Params;
use crate::hermite6::first_step;
use crate::interaction::{add_with_snap, distance_squared, separation};
use crate::layout::{Layout, Source};
use crate::neighbour_scheme::FIRST_REGULAR;
use crate::numerics::{Approximate, Fused, Numerics, Unsoftened};
use cuda_std::vector::{Vec2, Vec4};
use cuda_std::warp::{Shuffle, WARP_SIZE, lane_id, warp_id};
use cuda_std::{GpuFloat, global, thread};

use super::near::together;
use super::{Held, REGULAR_SUMS, Slice, body_at, clock, own_body, word};
use crate::schedule::block_steps::correct::smaller;
use crate::schedule::block_steps::{Bodies, MOST_REGISTERS, clock as plain, number};

type Pairs = Numerics<f64, Fused, Approximate, Unsoftened>;

/// Numbers of a body: an approach, accelerations, jerks and snaps, and the square of the fastest relative
/// velocity.
const NUMBERS: usize = 11;

/// Chooses the first irregular and regular steps of the bodies of the slices of `params.share`, where there are
/// lists.
///
/// # Formula
/// [`first_step`] of the irregular force and, ten times as long, of the regular one: the whole force
/// without that. The irregular one is bounded by the approaches of neighbours; the regular one, so that
/// nobody as fast as they are comes far into the sphere, and by the irregular one where not all
/// neighbours have room.
///
/// # Arguments
/// `state`, `acceleration`, `jerk`, `higher`: of all bodies where they are, snaps first in `higher`,
/// read. `lists`, `counts`, `list_sums` of [`force`](super::force), `time`: read. `spheres`: the second
/// numbers of these bodies written. `steps`: of these bodies written. `params.g`: in the unit of the bodies.
///
/// # Thread mapping
/// One-dimensional; a block for each slice of all. A warp a body, whose lanes have different neighbours.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Nitadori & Makino (2008), New Astron. 13, 498, for derivatives.
#[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
#[inline(always)]
pub unsafe fn first(
    state: *const Vec4<f64>,
    acceleration: *const Vec4<f64>,
    jerk: *const Vec4<f64>,
    higher: *const Vec4<f64>,
    lists: *const u32,
    counts: *const u32,
    list_sums: *const f64,
    time: *const u64,
    spheres: *mut Vec2<f64>,
    steps: *mut f64,
    params: Params,
) {
    thread::limit_registers::<MOST_REGISTERS>();
    let Params {
        n,
        stride,
        g,
        share,
        ..
    } = params;
    let held = Held::of(&params);
    if thread::block_idx_x() < share.first || thread::block_idx_x() >= share.end {
        return;
    }
    let slice = Slice::of(thread::block_idx_x(), n);
    let warps = thread::block_dim_x() / WARP_SIZE;
    // SAFETY: the launch's promise; a body is one warp's.
    unsafe {
        let entries = word(time, clock::LIST);
        let [eta, regular_eta, guard] =
            [plain::ETA, clock::REGULAR_ETA, plain::GUARD].map(|word| number(time, word));
        let moving = |body| {
            let Source { position, mass } = Bodies::source(state, stride, body);
            let v = Bodies::velocity(state, stride, body);
            (
                [position, v, Bodies::vector(acceleration, stride, body)],
                mass,
            )
        };
        let mut slot = warp_id();
        while slot < slice.count {
            let (place, body) = (slice.first + slot, own_body(slot));
            let list = lists.wrapping_add(held.list(place, entries));
            let (count, (own, _)) = (global::load(counts, place), moving(body));
            let mut sums = [[0.0; 3]; 3];
            let (mut approach, mut fastest) = (0.0_f64, 0.0_f64);
            let mut entry = lane_id();
            while entry < count {
                let (other, mass) = moving(body_at(global::load(list, entry), n));
                let of = |k: usize| separation::<Pairs>(own[k], other[k]);
                let (r, v) = (of(0), of(1));
                let d2 = distance_squared::<Pairs>(r, params.softening_squared);
                let near = add_with_snap::<Pairs>([r, v, of(2)], d2, mass, &mut sums);
                approach = approach.larger(near.rate.magnitude());
                fastest = fastest.larger(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
                entry += WARP_SIZE;
            }
            let [a, j, s] = sums;
            let mut all: [f64; NUMBERS] = [
                approach, a[0], a[1], a[2], j[0], j[1], j[2], s[0], s[1], s[2], fastest,
            ];
            let mut distance = WARP_SIZE / 2;
            while distance > 0 {
                let lane = lane_id() ^ distance;
                for (number, number_of) in all.iter_mut().enumerate() {
                    let is_largest = number == 0 || number == NUMBERS - 1;
                    let other = number_of.shuffle(lane);
                    *number_of = together(usize::from(!is_largest), *number_of, other);
                }
                distance /= 2;
            }
            if lane_id() == 0 {
                let near = [1, 4, 7].map(|k: usize| [g * all[k], g * all[k + 1], g * all[k + 2]]);
                let whole = [
                    own[2],
                    Bodies::vector(jerk, stride, body),
                    Bodies::vector(higher, 2 * stride, body),
                ];
                let rest = |d: usize, k: usize| whole[d][k] - near[d][k];
                let rest = |d: usize| [rest(d, 0), rest(d, 1), rest(d, 2)];
                let sphere = global::load(spheres, body);
                let regular = if sphere.x.is_finite() {
                    let step = FIRST_REGULAR * first_step(regular_eta, [rest(0), rest(1), rest(2)]);
                    let speed = all[NUMBERS - 1].sqrt_exact();
                    smaller(step, regular_eta.sqrt_exact() * (sphere.x / speed))
                } else {
                    f64::INFINITY
                };
                let allowed = smaller(first_step(eta, near), 3.0 * guard / all[0]);
                let sums = place as usize * REGULAR_SUMS as usize;
                let found = global::load(list_sums.wrapping_add(sums), REGULAR_SUMS - 2);
                let regular = if found > f64::from(count) {
                    smaller(regular, allowed)
                } else {
                    regular
                };
                global::store(steps, body, allowed);
                global::store(spheres, body, [sphere.x, regular].into());
            }
            slot += warps;
        }
    }
}
