//! The ends of irregular and regular steps, and what the next ones are.

use crate::abi::Params;
use crate::fields::{Header, OnDevice};
use crate::neighbour_scheme::{
    Force, Regular, difference, extrapolated, growth, next_step, norm, sum,
};
use cuda_std::global::{AtomicAdd, load_by_address};
use cuda_std::vector::Vec4;
use cuda_std::warp::{lane_id, over_lanes};
use cuda_std::{GpuFloat, global, opaque, thread};

use super::correct::{Corrected, HandedOut, Own};
use super::{
    IRREGULAR_SUMS, REGULAR_SUMS, clock, each_of_block, of_regular_step, own_body, regular_step,
};
use crate::layout::{Layout, Source};
use crate::schedule::block_steps::correct::smaller;
use crate::schedule::block_steps::posts::Posts;
use crate::schedule::block_steps::{
    Begun, Bodies, Ended, Fourth, SPAN, Scheme, StepAccuracy, coarsest_active, level_of,
};

/// Rounding errors of a regular force, in those of f32 of its sums.
const ROUNDING: f64 = 4.0 * f32::EPSILON as f64;

/// No force.
pub(super) const NONE: Force = [[0.0; 3]; 2];

/// Ends of steps.
pub(super) struct Work {
    pub(super) now: u64,
    pub(super) span: f64,
    pub(super) g: f64,
    pub(super) eta: f64,
    pub(super) regular_eta: f64,
    pub(super) guard: f64,
    pub(super) wanted: f64,
    pub(super) external: External,
}

/// External fields on the clock of a span.
pub(super) struct External {
    pub(super) fields: OnDevice,
    pub(super) span: f64,
    /// Time at which the span begins, in the units of the run.
    pub(super) start: f64,
}

impl External {
    /// Force of the fields on a body that moves so, at a time in ticks, where all others accelerate it by
    /// `others`.
    #[inline(always)]
    pub(super) fn force(&self, now: u64, [x, v]: [[f64; 3]; 2], others: [f64; 3]) -> Force {
        let header = Header::of(&self.fields);
        let time = self.start + self.span * header.time * (now as f64 / SPAN as f64);
        let zero = [0.0; 3];
        let [a, j, _] =
            header.add_local::<2>(&self.fields, time, [x, v, zero], [others, zero, zero]);
        [minus(a, others), j]
    }

    /// As [`force`](Self::force), where the whole acceleration is known, theirs included.
    #[inline(always)]
    fn force_of_whole(&self, now: u64, moving: [[f64; 3]; 2], whole: [f64; 3]) -> Force {
        // Their accelerations do not depend on that of others, their jerks do.
        let (mut own, mut others, mut pass) = (NONE, [0.0; 3], 0);
        while pass < opaque(2) {
            own = self.force(now, moving, others);
            others = minus(whole, own[0]);
            pass += 1;
        }
        own
    }
}

impl Own {
    /// Ends the steps of the block's active bodies. Ends with a barrier.
    ///
    /// # Safety
    /// As [`begin`](Self::begin); `posts` are those by which these bodies were handed out.
    #[inline(always)]
    pub(super) unsafe fn end_steps<const EXTERNAL: bool>(
        &self,
        work: &Work,
        posts: &Posts,
        sums: &AllSums,
        targets: &HandedOut,
    ) {
        let block = thread::block_idx_x();
        let first = posts.begin_of(block);
        let count = posts.begin_of(block + 1) - first;
        let first_regular = posts.regular_begin_of(block);
        let targets = targets.irregular.wrapping_add(self.own_targets());
        let mut neighbours = 0.0;
        each_of_block(0, count, |k| {
            // SAFETY: the block's own targets, each of which is one thread's, and their sums.
            unsafe {
                let target = global::load(targets, k);
                let (place, regular) = (target as u32, (target >> 32) as u32);
                let body = self.body(place);
                let irregular = sums.irregular(first + k);
                let mut moved = self.end_step::<EXTERNAL>(work, &body, &irregular);
                let (_, mut level) = body.regular_step;
                if regular == 0 {
                    neighbours += irregular.neighbours;
                } else {
                    let sums = sums.regular(first_regular + regular - 1);
                    (moved, level) = self.end_regular_step(
                        work,
                        &body,
                        moved,
                        [&irregular, &sums.others, &sums.listed],
                        sums.found,
                    );
                    neighbours += sums.before;
                }
                self.begin_step(work, &body, moved, level);
            }
        });
        // SAFETY: all lanes are here.
        unsafe { self.count_neighbours(neighbours) };
        thread::sync_threads();
    }

    /// Counts neighbours whose forces were computed.
    ///
    /// # Safety
    /// All lanes of a warp call it, in a launch that only adds to this word of the clock.
    #[inline(always)]
    pub(super) unsafe fn count_neighbours(&self, neighbours: f64) {
        // Whole numbers: their order does not matter.
        let neighbours = over_lanes(neighbours, |a, b| a + b);
        if lane_id() == 0 && neighbours > 0.0 {
            // SAFETY: the caller's promise.
            unsafe { f64::atomic_add(self.on.time.cast(), clock::NEIGHBOURS, neighbours) };
        }
    }

    /// The body at a place, as its step began.
    ///
    /// # Safety
    /// Only this thread accesses the body.
    #[inline(always)]
    pub(super) unsafe fn body(&self, place: u32) -> Body {
        let Self { on, stride, .. } = self;
        let index = own_body(place - self.slice.first);
        // SAFETY: the caller's promise.
        unsafe {
            let Source { position, mass } = Bodies::source(on.state, *stride, index);
            Body {
                place,
                index,
                mass,
                x: position,
                v: Bodies::velocity(on.state, *stride, index),
                whole: self.whole(index),
                level: global::load(on.levels, place),
                regular: self.regular(index),
                regular_step: of_regular_step(global::load(on.regular_steps, place)),
            }
        }
    }

    /// Ends the irregular step of a body, by its sums.
    ///
    /// # Safety
    /// The fields of `work` are there.
    #[inline(always)]
    pub(super) unsafe fn end_step<const EXTERNAL: bool>(
        &self,
        work: &Work,
        body: &Body,
        irregular: &SumsOf,
    ) -> Moved {
        let dt = work.span * ((SPAN >> body.level) as f64 / SPAN as f64);
        let (regular_begun, _) = body.regular_step;
        let since = work.span * ((work.now - regular_begun) as f64 / SPAN as f64);
        let (x, v, [a, j]) = (body.x, body.v, body.whole);
        let [s, c] = [[0.0; 3]; 2];
        let begun = Begun { x, v, a, j, s, c };
        let (approach, irregular) = (irregular.approach, irregular.force(work.g));
        let outer = extrapolated(body.regular, since);
        let (mut field, mut field_before) = (NONE, NONE);
        if EXTERNAL {
            let begun_at = work.now - (SPAN >> body.level);
            field_before = work.external.force_of_whole(begun_at, [x, v], a);
            let [x, v, _] = Fourth::predicted(&begun, dt);
            let [others, _] = sum([irregular, outer, NONE]);
            field = work.external.force(work.now, [x, v], others);
        }
        let others = sum([extrapolated(body.regular, since - dt), field_before, NONE]);
        let before = difference([a, j], others);
        let mut allowed = next_step(work.eta, dt, before, irregular);
        if EXTERNAL {
            allowed = smaller(allowed, next_step(work.eta, dt, field_before, field));
        }
        // The sums have three times the approach. Infinite where nothing approaches anything.
        allowed = smaller(allowed, 3.0 * work.guard / approach);
        let [a1, j1] = sum([irregular, field, outer]);
        let Ended { x, v, .. } =
            Fourth::ended(&begun, dt, StepAccuracy::of_exact(work.eta), [a1, j1, s]);
        Moved {
            x,
            v,
            whole: [a1, j1],
            allowed: smaller(allowed, 2.0 * dt),
        }
    }

    /// Ends the regular step of a body that has moved to the end of its irregular step. The sums are over the old list, over
    /// all but the new list, and over the new list, in which `found` were found. Returns the level of the next one, too.
    ///
    /// # Safety
    /// Only this thread accesses the body.
    #[inline(always)]
    unsafe fn end_regular_step(
        &self,
        work: &Work,
        body: &Body,
        moved: Moved,
        [irregular, others, listed]: [&SumsOf; 3],
        found: f64,
    ) -> (Moved, u32) {
        let on = &self.on;
        let (begun_at, level) = body.regular_step;
        let dt = work.span * ((work.now - begun_at) as f64 / SPAN as f64);
        let irregular = irregular.force(work.g);
        let (approach, new) = (others.approach, others.force(work.g));
        let inside = listed.force(work.g);
        let begun = body.regular;
        let field = difference(moved.whole, sum([irregular, extrapolated(begun, dt), NONE]));
        let step = Regular {
            begun,
            ended: sum([new, difference(inside, irregular), NONE]),
            dt,
        };
        let [dx, dv] = step.corrections();
        let plus = |a: [f64; 3], b: [f64; 3]| [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
        let terms = norm(new[0])
            + norm(irregular[0])
            + norm(inside[0])
            + dt.magnitude() * (norm(irregular[1]) + norm(inside[1]));
        let nobody_is_outside = norm(new[0]) == 0.0;
        let noise = if nobody_is_outside {
            f64::INFINITY
        } else {
            ROUNDING * terms
        };
        let bound = 3.0 * work.regular_eta.sqrt_exact() / approach;
        let allowed = smaller(step.next_step(work.regular_eta, noise), bound);
        let allowed = smaller(allowed, 2.0 * dt);
        let wanted = level_of(allowed, work.span);
        let level = if wanted > level || wanted >= coarsest_active(work.now) {
            wanted
        } else {
            level
        };
        // SAFETY: the caller's promise.
        unsafe {
            self.set_regular(body.index, new);
            let radius = global::load(on.spheres, body.index).x;
            let radius = radius * growth(work.wanted, found, 2.0);
            global::store(on.spheres, body.index, [radius, allowed].into());
            let step = regular_step(work.now, level);
            global::store(on.regular_steps, body.place, step);
        }
        let moved = Moved {
            x: plus(moved.x, dx),
            v: plus(moved.v, dv),
            whole: sum([inside, field, new]),
            allowed: moved.allowed,
        };
        (moved, level)
    }

    /// Begins the next step of a body that has moved, not a longer one than its regular one of this level. Returns
    /// its level.
    ///
    /// # Safety
    /// Only this thread accesses the body.
    #[inline(always)]
    pub(super) unsafe fn begin_step(
        &self,
        work: &Work,
        body: &Body,
        moved: Moved,
        regular_level: u32,
    ) -> u32 {
        let Self { on, stride, .. } = self;
        let (place, index) = (body.place, body.index);
        let Moved {
            x,
            v,
            whole,
            allowed,
        } = moved;
        let wanted = level_of(allowed, work.span).max(regular_level);
        // A longer step must begin where steps of its length begin.
        let level = if wanted > body.level || wanted >= coarsest_active(work.now) {
            wanted
        } else {
            body.level
        };
        // SAFETY: the caller's promise.
        unsafe {
            let source = Source {
                position: x,
                mass: body.mass,
            };
            Bodies::set_source(on.state, *stride, index, source);
            Bodies::set_velocity(on.state, *stride, index, v);
            self.set_whole(index, whole);
            global::store(on.steps, index, allowed);
            global::store(on.levels, place, level);
            self.set_record(place, &source, v, whole, work.now);
        }
        level
    }
}

/// Where a step has led, and the next step that is allowed.
#[derive(Clone, Copy)]
pub(super) struct Moved {
    x: [f64; 3],
    v: [f64; 3],
    /// The whole force.
    whole: Force,
    allowed: f64,
}

/// A body at the beginning of the step that ends.
#[derive(Clone, Copy)]
pub(super) struct Body {
    pub(super) place: u32,
    index: u32,
    mass: f64,
    x: [f64; 3],
    v: [f64; 3],
    whole: Force,
    /// Level of its irregular step.
    level: u32,
    /// The regular force where the regular step began.
    regular: Force,
    /// Beginning of its regular step, and its level.
    pub(super) regular_step: (u64, u32),
}

/// Sums of all targets of a block: addresses in this device's memory or in another's.
#[derive(Clone, Copy)]
pub(super) struct AllSums {
    irregular: u64,
    regular: u64,
}

/// Sums over neighbours.
#[derive(Clone, Copy)]
pub(super) struct SumsOf {
    approach: f64,
    /// Acceleration and jerk per G.
    per_g: Force,
    /// How many neighbours there are.
    neighbours: f64,
}

/// Sums of a body whose regular step ends.
#[derive(Clone, Copy)]
pub(super) struct RegularSums {
    /// Over all but the new list.
    pub(super) others: SumsOf,
    /// Over the new list.
    pub(super) listed: SumsOf,
    /// How many neighbours were found.
    pub(super) found: f64,
    /// How many were on the old list.
    before: f64,
}

impl AllSums {
    /// Addresses of the sums of this block's targets.
    ///
    /// # Safety
    /// The launch's promise.
    #[inline(always)]
    pub(super) unsafe fn of(on: &Corrected, params: &Params) -> Self {
        let address = |sums: *const Vec4<f64>| {
            if params.blocks.devices == 0 {
                sums.expose_provenance() as u64
            } else {
                // SAFETY: where there are several devices, the launch promises an array of addresses here, one
                // for each block of the grid, which nothing writes during the launch. A block's index is
                // below the number of blocks.
                unsafe { global::load(sums.cast(), thread::block_idx_x()) }
            }
        };
        Self {
            irregular: address(on.irregular_sums),
            regular: address(on.regular_sums),
        }
    }

    /// The irregular sums of active body `k` of all.
    ///
    /// # Safety
    /// It is one of this block, whose sums were written before this launch.
    #[inline(always)]
    unsafe fn irregular(self, k: u32) -> SumsOf {
        const VECTORS: u32 = IRREGULAR_SUMS / 4;
        // SAFETY: the caller's promise.
        let [a, b] = [0, 1].map(|v| unsafe { load_by_address(self.irregular, k * VECTORS + v) });
        SumsOf::of([a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w])
    }

    /// The regular sums of body `k` of all whose regular steps end.
    ///
    /// # Safety
    /// As [`irregular`](Self::irregular).
    #[inline(always)]
    pub(super) unsafe fn regular(self, k: u32) -> RegularSums {
        const VECTORS: u32 = REGULAR_SUMS / 4;
        // SAFETY: the caller's promise.
        let [a, b, c, d] =
            [0, 1, 2, 3].map(|v| unsafe { load_by_address(self.regular, k * VECTORS + v) });
        RegularSums {
            others: SumsOf {
                approach: a.x,
                per_g: [[a.y, a.z, a.w], [b.x, b.y, b.z]],
                neighbours: 0.0,
            },
            listed: SumsOf {
                approach: b.w,
                per_g: [[c.x, c.y, c.z], [c.w, d.x, d.y]],
                neighbours: 0.0,
            },
            found: d.z,
            before: d.w,
        }
    }
}

impl SumsOf {
    /// [`IRREGULAR_SUMS`].
    #[inline(always)]
    pub(super) fn of(
        [approach, ax, ay, az, jx, jy, jz, neighbours]: [f64; IRREGULAR_SUMS as usize],
    ) -> Self {
        Self {
            approach,
            per_g: [[ax, ay, az], [jx, jy, jz]],
            neighbours,
        }
    }

    /// How many neighbours there are.
    #[inline(always)]
    pub(super) fn neighbours(&self) -> f64 {
        self.neighbours
    }

    /// Acceleration and jerk.
    #[inline(always)]
    pub(super) fn force(&self, g: f64) -> Force {
        self.per_g.map(|vector| vector.map(|number| g * number))
    }
}

#[inline(always)]
fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}
