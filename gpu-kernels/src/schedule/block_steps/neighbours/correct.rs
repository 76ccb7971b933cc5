//! The ends of steps, and what the next ones are.

use crate::abi::Params;
use crate::fields::{Header, OnDevice};
use crate::layout::{Layout, Source};
use crate::neighbour_scheme::{
    Force, Regular, difference, extrapolated, growth, next_step, norm, sum,
};
use cuda_std::global::AtomicAdd;
use cuda_std::vector::{Vec2, Vec4};
use cuda_std::warp::{Shuffle, WARP_SIZE, lane_id};
use cuda_std::{GpuFloat, global, opaque, thread};

use super::record::Record;
use super::sweep::Target;
use super::{
    Elapsed, IRREGULAR_SUMS, Phase, REGULAR_SUMS, REGULAR_TARGET, SUMS, Slice, clock, control,
    each_of_block, irregular_target, of_regular_step, regular_step, word,
};
use crate::schedule::block_steps::correct::smaller;
use crate::schedule::block_steps::posts::{Control, Post, Posts};
use crate::schedule::block_steps::{
    Begun, Bodies, Ended, Fourth, SPAN, Scheme, TOO_FINE, clock as plain, coarsest_active,
    level_of, number,
};

/// Registers of a thread: with fewer, what a step needs would not stay in them.
const REGISTERS: u32 = 255;

/// Most threads of a block of [`correct`], so that each has as many registers as there are.
pub const MOST_THREADS: u32 = 256;

/// Rounding errors of a regular force, in those of f32 of its sums.
const ROUNDING: f64 = 4.0 * f32::EPSILON as f64;

/// What [`correct`] reads and writes.
#[derive(Clone, Copy)]
pub struct Corrected {
    /// Positions with masses, and velocities: by bodies, as all that is not said to go by places.
    pub state: *mut Vec4<f64>,
    /// Accelerations.
    pub acceleration: *mut Vec4<f64>,
    /// Jerks.
    pub jerk: *mut Vec4<f64>,
    /// The regular force where the regular step began: two vectors a body.
    pub regular: *mut Vec4<f64>,
    /// Radius of the sphere in which neighbours are, and what regular step is allowed.
    pub spheres: *mut Vec2<f64>,
    /// When a regular step began, and its level; by places.
    pub regular_steps: *mut u64,
    /// How often the span is halved for an irregular step; by places.
    pub levels: *mut u32,
    /// What irregular step is allowed.
    pub steps: *mut f64,
    /// What bodies are predicted from; by places.
    pub records: *mut Vec4<u32>,
    /// Neighbours on each list; by places. Read.
    pub counts: *const u32,
    /// Those of `params.blocks.parity` are read, the others written.
    pub posts: *mut u64,
    /// As posts.
    pub time: *mut u64,
    /// Written, as many for each slice as the largest has bodies.
    pub irregular_targets: *mut u64,
    /// As these, two vectors each.
    pub regular_targets: *mut Vec4<f32>,
    /// Sums of [`force`](super::force), read.
    pub irregular_sums: *const f64,
    /// Sums of [`list`](super::list), read.
    pub regular_sums: *const f64,
}

/// Ends the irregular steps of active bodies and, where they end, the regular ones, and hands out those
/// that are active next; or what else [`Phase`] says.
///
/// # Formula
/// [`Ended`] of fourth order with the whole force, and
/// [`Regular`] where a regular step ends. The irregular step after it is what the
/// criterion allows for the irregular force and for that of external fields alike, and `c / max_j
/// |r·v|/d²` over neighbours, the regular one by the same over all others; both at most twice the last.
/// An irregular step is never longer than the regular one.
///
/// # Arguments
/// `on`: as [`Corrected`] says. `params.g`: in the unit of the bodies. `fields`: external ones, read, with
/// the units of the bodies; none are read where `EXTERNAL` is false.
///
/// # Thread mapping
/// One-dimensional; a block for each slice, of 2ᵏ warps, at least as many threads as there are blocks
/// and at most [`MOST_THREADS`]. A thread ends the step of a body.
///
/// # Shared memory
/// [`control_bytes`](super::control_bytes).
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Makino & Aarseth (1992), PASJ 44, 141. The bound of approaches is of this project.
#[inline(always)]
pub unsafe fn correct<const EXTERNAL: bool>(on: Corrected, fields: *const f64, params: Params) {
    thread::limit_registers::<REGISTERS>();
    let Params { n, blocks, .. } = params;
    let (block, slices) = (thread::block_idx_x(), thread::grid_dim_x());
    let phase = u32::from(blocks.phase);
    let is = |other: Phase| phase == other as u32;
    let before = u32::from(blocks.parity);
    let after = before ^ 1;
    let is_first = block == 0 && thread::thread_idx_x() == 0;
    let control = control();
    // SAFETY: words of the clock: read by all, those of the other parity and counts written by one
    // thread. All that branches are taken by is the same for all threads of the block.
    unsafe {
        let span = number(on.time, plain::SPAN);
        let own = Own {
            on,
            slice: Slice::of(block, n),
            stride: params.stride,
            control,
            span,
            elapsed: Elapsed::of(on.time),
            softening_squared: params.softening_squared as f32,
        };
        let external = || External {
            fields: OnDevice::new(fields),
            span,
            start: number(on.time, plain::START),
        };
        let (mut now, mut guess, mut agreed_on_time) = (0, 0, true);
        if is(Phase::Begin) || is(Phase::Radii) || is(Phase::Settled) {
            if !is(Phase::Begin) {
                own.fit_spheres(is(Phase::Settled));
            }
            own.begin();
            thread::sync_threads();
            let (_, regular) = own.hand_out(0, 0);
            own.post(after, (0, 0), (0, regular), 0);
            return;
        }
        if is(Phase::Ready) {
            own.take_rest::<EXTERNAL>(&external(), params.g);
        } else {
            now = global::load(on.time, plain::NOW + before);
            if now >= SPAN {
                if is_first {
                    global::store(on.time, plain::NOW + after, now);
                }
                return;
            }
            let posts = on.posts.wrapping_add((before * slices) as usize);
            let posts = control.read_posts::<true>(posts);
            if posts.finest == TOO_FINE {
                if is_first {
                    global::store(on.time, plain::NOW + after, plain::STOPPED);
                    global::store(on.time, plain::BODY, u64::from(posts.body));
                }
                return;
            }
            guess = posts.finest;
            agreed_on_time = posts.agreed;
            if agreed_on_time {
                now += SPAN >> posts.finest;
                let work = Work {
                    now,
                    span,
                    g: params.g,
                    eta: number(on.time, plain::ETA),
                    regular_eta: number(on.time, clock::REGULAR_ETA),
                    guard: number(on.time, plain::GUARD),
                    wanted: f64::from(word(on.time, clock::WANTED)),
                    external: external(),
                };
                own.end_steps::<EXTERNAL>(&work, &posts);
            }
            if is_first {
                let count = |word, more: u64| {
                    global::store(on.time, word, global::load(on.time, word) + more);
                };
                if agreed_on_time {
                    count(plain::BLOCKS, 1);
                    count(plain::EVALUATIONS, u64::from(posts.active));
                    count(clock::REGULAR, u64::from(posts.regular));
                    let finest = global::load(on.time, plain::FINEST);
                    global::store(on.time, plain::FINEST, finest.max(u64::from(posts.finest)));
                } else {
                    count(plain::REPEATED, 1);
                }
            }
        }
        let (finest, body) = own.finest();
        if agreed_on_time {
            guess = guess.max(finest);
        }
        let counts = if finest == TOO_FINE {
            (body, 0)
        } else {
            let next = now + (SPAN >> guess);
            own.hand_out(next, coarsest_active(next))
        };
        own.post(after, (finest, guess), counts, now);
    }
}

/// Work of a block on its own bodies.
struct Own {
    on: Corrected,
    slice: Slice,
    stride: u32,
    control: Control,
    span: f64,
    elapsed: Elapsed,
    softening_squared: f32,
}

/// Ends of steps.
struct Work {
    now: u64,
    span: f64,
    g: f64,
    eta: f64,
    regular_eta: f64,
    guard: f64,
    wanted: f64,
    external: External,
}

/// External fields on the clock of a span.
struct External {
    fields: OnDevice,
    span: f64,
    /// Time at which the span begins, in the units of the run.
    start: f64,
}

impl External {
    /// Their force on what moves so, at a time in ticks, where all others accelerate it by `others`.
    #[inline(always)]
    fn force(&self, now: u64, [x, v]: [[f64; 3]; 2], others: [f64; 3]) -> Force {
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
    /// Lets all bodies begin a span with the steps that they are allowed.
    ///
    /// # Safety
    /// All threads of the block call it, in a launch as [`correct`] says.
    #[inline(always)]
    unsafe fn begin(&self) {
        let on = &self.on;
        self.each_body(|place, body| {
            // SAFETY: own bodies, each by one thread.
            unsafe {
                let Vec2 { y: regular, .. } = global::load(on.spheres, body);
                let regular = level_of(regular, self.span);
                let level = level_of(global::load(on.steps, body), self.span);
                global::store(on.levels, place, level.max(regular));
                global::store(on.regular_steps, place, regular_step(0, regular));
                self.renew_record(place, body, 0);
            }
        });
    }

    /// Lets a body be predicted from its state, in a step that begins then.
    ///
    /// # Safety
    /// Only this thread accesses the body.
    #[inline(always)]
    unsafe fn renew_record(&self, place: u32, body: u32, begun: u64) {
        let Self { on, stride, .. } = self;
        let f32s = |v: [f64; 3]| [v[0] as f32, v[1] as f32, v[2] as f32];
        // SAFETY: the caller's promise.
        unsafe {
            let Source { position, mass } = Bodies::source(on.state, *stride, body);
            let [_, v] = self.moving(body);
            let [a, j] = self.whole(body);
            let record = Record {
                x: position,
                v: f32s(v),
                a: f32s(a),
                j: f32s(j),
                mass: mass as f32,
                begun,
            };
            record.store(on.records, place);
        }
    }

    /// Chooses the level of an irregular step that begins now: that of what it is allowed, but not longer
    /// than the regular one.
    ///
    /// # Safety
    /// As [`renew_record`](Self::renew_record).
    #[inline(always)]
    unsafe fn choose_level(&self, work: &Work, place: u32, body: u32, regular_level: u32) {
        let on = &self.on;
        // SAFETY: the caller's promise.
        unsafe {
            let allowed = global::load(on.steps, body);
            let wanted = level_of(allowed, work.span).max(regular_level);
            // A longer step must begin where steps of its length begin.
            if wanted > global::load(on.levels, place) || wanted >= coarsest_active(work.now) {
                global::store(on.levels, place, wanted);
            }
        }
    }

    /// Changes the radii of spheres by how many bodies were found there; if `settled`, not to those yet
    /// to be tried. The numbers beside radii are the largest so far in which not too many were found.
    ///
    /// # Safety
    /// As [`begin`](Self::begin), after [`list`](super::list) of all bodies.
    #[inline(always)]
    unsafe fn fit_spheres(&self, settled: bool) {
        let on = &self.on;
        self.each_body(|place, body| {
            // SAFETY: own bodies; bodies were handed out in the order of places.
            unsafe {
                let wanted = f64::from(word(on.time, clock::WANTED));
                let sums = on
                    .regular_sums
                    .wrapping_add(place as usize * REGULAR_SUMS as usize);
                let found = global::load(sums, REGULAR_SUMS - 2);
                let Vec2 { x: radius, y } = global::load(on.spheres, body);
                let are_few = found <= 1.5 * wanted;
                let small = if are_few & (radius > y) { radius } else { y };
                let next = if settled {
                    radius
                } else {
                    radius * growth(wanted, found, 8.0)
                };
                // About a body far out many may be found at once, where its sphere reaches the middle.
                let next = if are_few || small == 0.0 {
                    next
                } else if settled {
                    small
                } else {
                    (radius * small).sqrt_exact()
                };
                global::store(on.spheres, body, Vec2 { x: next, y: small });
            }
        });
    }

    /// Takes what the irregular forces leave of the whole ones as the regular ones.
    ///
    /// # Safety
    /// As [`fit_spheres`](Self::fit_spheres).
    #[inline(always)]
    unsafe fn take_rest<const EXTERNAL: bool>(&self, external: &External, g: f64) {
        let on = &self.on;
        self.each_body(|place, body| {
            // SAFETY: own bodies, handed out in the order of places.
            unsafe {
                let sums = place as usize * REGULAR_SUMS as usize + SUMS;
                let (_, irregular) = forces(on.regular_sums.wrapping_add(sums), g);
                let whole = self.whole(body);
                let field = if EXTERNAL {
                    external.force_of_whole(0, self.moving(body), whole[0])
                } else {
                    NONE
                };
                let regular = if global::load(on.spheres, body).x.is_finite() {
                    difference(whole, sum([irregular, field, NONE]))
                } else {
                    NONE
                };
                self.set_regular(body, regular);
            }
        });
    }

    /// Calls `with` for each own body's place and index.
    #[inline(always)]
    fn each_body(&self, mut with: impl FnMut(u32, u32)) {
        each_of_block(0, self.slice.count, |slot| {
            with(self.slice.first + slot, Slice::body(slot));
        });
    }

    /// The whole force on a body where its step began.
    ///
    /// # Safety
    /// The body is this thread's.
    #[inline(always)]
    unsafe fn whole(&self, body: u32) -> Force {
        let Self { on, stride, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            [
                Bodies::vector(on.acceleration, *stride, body),
                Bodies::vector(on.jerk, *stride, body),
            ]
        }
    }

    /// Position and velocity of a body where its step began.
    ///
    /// # Safety
    /// The body is this thread's.
    #[inline(always)]
    unsafe fn moving(&self, body: u32) -> [[f64; 3]; 2] {
        let Self { on, stride, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            [
                Bodies::source(on.state, *stride, body).position,
                Bodies::velocity(on.state, *stride, body),
            ]
        }
    }

    /// The regular force on a body where its regular step began.
    ///
    /// # Safety
    /// The body is this thread's.
    #[inline(always)]
    unsafe fn regular(&self, body: u32) -> Force {
        let Self { on, stride, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            [
                Bodies::vector(on.regular, 2 * stride, body),
                Bodies::vector(on.regular, 2 * stride, stride + body),
            ]
        }
    }

    /// Inverse of [`regular`](Self::regular).
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn set_regular(&self, body: u32, [a, j]: Force) {
        let Self { on, stride, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            Bodies::set_vector(on.regular, 2 * stride, body, a);
            Bodies::set_vector(on.regular, 2 * stride, stride + body, j);
        }
    }

    /// Ends the steps of the block's active bodies. Ends with a barrier.
    ///
    /// # Safety
    /// As [`begin`](Self::begin); `posts` are those by which these bodies were handed out.
    #[inline(always)]
    unsafe fn end_steps<const EXTERNAL: bool>(&self, work: &Work, posts: &Posts) {
        let on = &self.on;
        let block = thread::block_idx_x();
        let first = posts.begin_of(block);
        let count = posts.begin_of(block + 1) - first;
        let first_regular = posts.regular_begin_of(block);
        let targets = on.irregular_targets.wrapping_add(self.own_targets());
        let mut neighbours = 0.0;
        each_of_block(0, count, |k| {
            // SAFETY: the block's own targets, each of which is one thread's, and their sums.
            unsafe {
                let target = global::load(targets, k);
                let (place, regular) = (target as u32, (target >> 32) as u32);
                let irregular = (first + k) as usize * IRREGULAR_SUMS as usize;
                let irregular = on.irregular_sums.wrapping_add(irregular);
                self.end_step::<EXTERNAL>(work, place, irregular);
                if regular == 0 {
                    let body = Slice::body(place - self.slice.first);
                    let (_, regular_level) = of_regular_step(global::load(on.regular_steps, place));
                    self.choose_level(work, place, body, regular_level);
                    self.renew_record(place, body, work.now);
                    neighbours += f64::from(global::load(on.counts, place));
                } else {
                    let number = (first_regular + regular - 1) as usize * REGULAR_SUMS as usize;
                    let sums = on.regular_sums.wrapping_add(number);
                    self.end_regular_step(work, place, irregular, sums);
                    neighbours += global::load(sums, REGULAR_SUMS - 1);
                }
            }
        });
        // Whole numbers: their order does not matter.
        let mut distance = WARP_SIZE / 2;
        while distance > 0 {
            neighbours += neighbours.shuffle(lane_id() ^ distance);
            distance /= 2;
        }
        if lane_id() == 0 && neighbours > 0.0 {
            // SAFETY: a word of the clock that others only add to.
            unsafe { f64::atomic_add(on.time.cast(), clock::NEIGHBOURS, neighbours) };
        }
        thread::sync_threads();
    }

    /// Ends the irregular step of the body at a place, whose sums these are; its level and record stay as
    /// they are.
    ///
    /// # Safety
    /// Only this thread accesses the body.
    #[inline(always)]
    unsafe fn end_step<const EXTERNAL: bool>(
        &self,
        work: &Work,
        place: u32,
        irregular: *const f64,
    ) {
        let Self { on, stride, .. } = self;
        let stride = *stride;
        let body = Slice::body(place - self.slice.first);
        // SAFETY: the caller's promise.
        unsafe {
            let level = global::load(on.levels, place);
            let dt = work.span * ((SPAN >> level) as f64 / SPAN as f64);
            let (regular_begun, _) = of_regular_step(global::load(on.regular_steps, place));
            let since = work.span * ((work.now - regular_begun) as f64 / SPAN as f64);
            let [x, v] = self.moving(body);
            let [a, j] = self.whole(body);
            let [s, c] = [[0.0; 3]; 2];
            let begun = Begun { x, v, a, j, s, c };
            let (approach, irregular) = forces(irregular, work.g);
            let regular = self.regular(body);
            let outer = extrapolated(regular, since);
            let (mut field, mut field_before) = (NONE, NONE);
            if EXTERNAL {
                let begun_at = work.now - (SPAN >> level);
                field_before = work.external.force_of_whole(begun_at, [x, v], a);
                let [x, v, _] = Fourth::predicted(&begun, dt);
                let [others, _] = sum([irregular, outer, NONE]);
                field = work.external.force(work.now, [x, v], others);
            }
            let others = sum([extrapolated(regular, since - dt), field_before, NONE]);
            let before = difference([a, j], others);
            let mut allowed = next_step(work.eta, dt, before, irregular);
            if EXTERNAL {
                allowed = smaller(allowed, next_step(work.eta, dt, field_before, field));
            }
            // The sums have three times the approach. Infinite where nothing approaches anything.
            allowed = smaller(allowed, 3.0 * work.guard / approach);
            global::store(on.steps, body, smaller(allowed, 2.0 * dt));
            let [a1, j1] = sum([irregular, field, outer]);
            let Ended { x, v, .. } = Fourth::ended(&begun, dt, work.eta, [a1, j1, s]);
            self.set_moving(body, x, v);
            Bodies::set_vector(on.acceleration, stride, body, a1);
            Bodies::set_vector(on.jerk, stride, body, j1);
        }
    }

    /// Ends the regular step of a body whose irregular step, with these sums, was ended, by those of all
    /// others and of the new list.
    ///
    /// # Safety
    /// As [`end_step`](Self::end_step).
    #[inline(always)]
    unsafe fn end_regular_step(
        &self,
        work: &Work,
        place: u32,
        irregular: *const f64,
        sums: *const f64,
    ) {
        let Self { on, stride, .. } = self;
        let stride = *stride;
        let body = Slice::body(place - self.slice.first);
        // SAFETY: the caller's promise.
        unsafe {
            let (begun_at, level) = of_regular_step(global::load(on.regular_steps, place));
            let dt = work.span * ((work.now - begun_at) as f64 / SPAN as f64);
            let (_, irregular) = forces(irregular, work.g);
            let (approach, new) = forces(sums, work.g);
            let (_, inside) = forces(sums.wrapping_add(SUMS), work.g);
            let begun = self.regular(body);
            let field = difference(
                self.whole(body),
                sum([irregular, extrapolated(begun, dt), NONE]),
            );
            let step = Regular {
                begun,
                ended: sum([new, difference(inside, irregular), NONE]),
                dt,
            };
            let [dx, dv] = step.corrections();
            let [x, v] = self.moving(body);
            let plus = |a: [f64; 3], b: [f64; 3]| [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
            self.set_moving(body, plus(x, dx), plus(v, dv));
            let [a, j] = sum([inside, field, new]);
            Bodies::set_vector(on.acceleration, stride, body, a);
            Bodies::set_vector(on.jerk, stride, body, j);
            self.set_regular(body, new);
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
            let radius = global::load(on.spheres, body).x;
            let found = global::load(sums, REGULAR_SUMS - 2);
            let sphere = Vec2 {
                x: radius * growth(work.wanted, found, 2.0),
                y: allowed,
            };
            global::store(on.spheres, body, sphere);
            let wanted = level_of(allowed, work.span);
            let level = if wanted > level || wanted >= coarsest_active(work.now) {
                wanted
            } else {
                level
            };
            global::store(on.regular_steps, place, regular_step(work.now, level));
            self.choose_level(work, place, body, level);
            self.renew_record(place, body, work.now);
        }
    }

    /// Sets position and velocity of a body.
    ///
    /// # Safety
    /// As [`end_step`](Self::end_step).
    #[inline(always)]
    unsafe fn set_moving(&self, body: u32, position: [f64; 3], v: [f64; 3]) {
        let Self { on, stride, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            let Source { mass, .. } = Bodies::source(on.state, *stride, body);
            Bodies::set_source(on.state, *stride, body, Source { position, mass });
            Bodies::set_velocity(on.state, *stride, body, v);
        }
    }

    /// The finest level of the own bodies, and if that is [`TOO_FINE`] the first body of it. A barrier
    /// comes before and after.
    ///
    /// # Safety
    /// As [`begin`](Self::begin).
    #[inline(always)]
    unsafe fn finest(&self) -> (u32, u32) {
        thread::sync_threads();
        let (mut finest, mut body) = (0, u32::MAX);
        self.each_body(|place, own| {
            // SAFETY: own bodies, whose levels were written before the barrier.
            let level = unsafe { global::load(self.on.levels, place) };
            finest = finest.max(level);
            if level == TOO_FINE {
                body = body.min(own);
            }
        });
        // SAFETY: all threads are here, and take the branch together.
        unsafe {
            let finest = self.control.largest_of_block(finest);
            if finest == TOO_FINE {
                body = !self.control.largest_of_block(!body);
            }
            (finest, body)
        }
    }

    /// Where the targets of this block begin.
    #[inline(always)]
    fn own_targets(&self) -> usize {
        thread::block_idx_x() as usize * self.slice.most as usize
    }

    /// Hands out the own bodies whose levels are `coarsest` or finer, as they are predicted at `next`;
    /// where that is the time at which the span begins, all, and for regular steps alone. Returns how
    /// many irregular and how many regular steps end then. A barrier comes before.
    ///
    /// # Safety
    /// As [`begin`](Self::begin); levels were written before this launch or a barrier.
    #[inline(always)]
    unsafe fn hand_out(&self, next: u64, coarsest: u32) -> (u32, u32) {
        let on = &self.on;
        let irregular_targets = on.irregular_targets.wrapping_add(self.own_targets());
        let own = self.own_targets() * REGULAR_TARGET as usize;
        let regular_targets = on.regular_targets.wrapping_add(own);
        let (mut counts, mut first) = ([0, 0], 0);
        while first < self.slice.count {
            let slot = first + thread::thread_idx_x();
            let exists = slot < self.slice.count;
            let slot = slot.min(self.slice.count - 1);
            let place = self.slice.first + slot;
            thread::sync_threads();
            // SAFETY: own bodies; each target is one thread's.
            unsafe {
                let level = global::load(on.levels, place);
                let (_, regular) = of_regular_step(global::load(on.regular_steps, place));
                // Without branches: see `is_active` of plain block steps.
                let is = |level: u32| opaque(u32::from(exists & (level >= coarsest))) != 0;
                let listed = [is(level), is(regular)];
                let [numbers, more] = self.control.both_numbered(listed);
                let number = counts[1] + numbers[1];
                if listed[1] {
                    let record = Record::load(on.records, place);
                    let moved = record.predicted(next, self.elapsed);
                    let radius = global::load(on.spheres, Slice::body(slot)).x as f32;
                    let target = Target {
                        x: moved.x.map(|x| x as f32),
                        v: moved.v,
                        limit: GpuFloat::mul_add(radius, radius, self.softening_squared),
                        place,
                    };
                    target.put(regular_targets, number as usize);
                }
                if listed[0] {
                    let regular = if listed[1] { Some(number) } else { None };
                    let target = irregular_target(place, regular);
                    global::store(irregular_targets, counts[0] + numbers[0], target);
                }
                counts = [counts[0] + more[0], counts[1] + more[1]];
            }
            first += thread::block_dim_x();
        }
        (counts[0], counts[1])
    }

    /// Posts what others need to know.
    ///
    /// # Safety
    /// As [`begin`](Self::begin).
    #[inline(always)]
    unsafe fn post(
        &self,
        parity: u32,
        (finest, guess): (u32, u32),
        (count, regular): (u32, u32),
        now: u64,
    ) {
        if thread::thread_idx_x() > 0 {
            return;
        }
        let (block, slices) = (thread::block_idx_x(), thread::grid_dim_x());
        let post = Post {
            finest,
            guess,
            count,
            regular,
        };
        // SAFETY: this block's post, and words of the clock that block 0 alone writes.
        unsafe {
            global::store(self.on.posts, parity * slices + block, post.into());
            if block == 0 {
                global::store(self.on.time, plain::NOW + parity, now);
            }
        }
    }
}

const NONE: Force = [[0.0; 3]; 2];

/// The approach, and acceleration and jerk of sums.
///
/// # Safety
/// `sums` has them, written before this launch.
#[inline(always)]
unsafe fn forces(sums: *const f64, g: f64) -> (f64, Force) {
    // SAFETY: the caller's promise.
    unsafe {
        let at = |k| g * global::load(sums, k);
        (
            global::load(sums, 0),
            [[at(1), at(2), at(3)], [at(4), at(5), at(6)]],
        )
    }
}

#[inline(always)]
fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}
