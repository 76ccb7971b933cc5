//! Launches in which every block takes the turn from one block step to the next with its own bodies.

use crate::abi::Params;
use crate::fields::OnDevice;
use crate::layout::{Layout, Source};
use crate::neighbour_scheme::Force;
use cuda_std::vector::{Vec2, Vec4};
use cuda_std::{GpuFloat, global, opaque, thread};

use super::ends::{AllSums, External, Work};
use super::record::Record;
use super::sweep::Target;
use super::{
    Elapsed, Phase, REGULAR_TARGET, RegularProgress, clock, control, each_of_block,
    irregular_target, of_regular_step, own_body, progress, word,
};
use crate::schedule::block_steps::posts::{Control, Post};
use crate::schedule::block_steps::turn::Turn;
use crate::schedule::block_steps::{
    Bodies, SPAN, Slice, TOO_FINE, clock as plain, coarsest_active, number,
};

/// Registers of a thread: with fewer, what a step needs would not stay in them.
const REGISTERS: u32 = 255;

/// Most threads of a block of [`correct`], so that each has as many registers as there are.
pub const MOST_THREADS: u32 = 256;

/// Buffers that [`correct`] reads and writes.
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
    /// Radius of the sphere in which neighbours are, and the regular step that is allowed.
    pub spheres: *mut Vec2<f64>,
    /// Beginning of a regular step, and its level; by places.
    pub regular_steps: *mut u64,
    /// Level of an irregular step: how often the span is halved for it; by places.
    pub levels: *mut u32,
    /// Irregular step that is allowed.
    pub steps: *mut f64,
    /// Records that bodies are predicted from; by places.
    pub records: *mut Vec4<u32>,
    /// Posts: those of `params.blocks.parity` are read, the others written.
    pub posts: *mut u64,
    /// As posts.
    pub time: *mut u64,
    /// Written, as many for each slice as the largest has bodies.
    pub irregular_targets: *mut u64,
    /// As these, two vectors each.
    pub regular_targets: *mut Vec4<f32>,
    /// Sums of [`force`](super::force), read; where `params.blocks.devices` are several, for each block the
    /// address of those of the device that has its slice.
    pub irregular_sums: *const Vec4<f64>,
    /// As these, of the bodies whose regular steps end.
    pub regular_sums: *const Vec4<f64>,
}

/// Ends the irregular steps of active bodies and, where they end, the regular ones, and hands out those
/// that are active next; or what else [`Phase`] says. Where regular steps end and sums and lists were
/// not [joined](RegularProgress) yet, nothing is done but to let the next launches do that.
///
/// # Formula
/// [`Ended`](crate::schedule::block_steps::Ended) of fourth order with the whole force, and
/// [`Regular`](crate::neighbour_scheme::Regular) where a regular step ends. The irregular step after it is what the
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
    let phase = u32::from(blocks.phase);
    let is = |other: Phase| phase == other as u32;
    let control = control();
    let turn = Turn {
        posts: on.posts,
        time: on.time,
        parity: u32::from(blocks.parity),
    };
    // SAFETY: words of the clock: read by all, those of the other parity and counts written by one
    // thread. All that branches are taken by is the same for all threads of the block.
    unsafe {
        let span = number(on.time, plain::SPAN);
        let own = Own {
            on,
            sums: AllSums::of(&on, &params),
            slice: Slice::of(thread::block_idx_x(), n),
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
            let post = Post {
                finest: 0,
                guess: 0,
                count: 0,
                regular,
            };
            turn.post(post, 0);
            return;
        }
        if is(Phase::Ready) {
            own.take_forces::<EXTERNAL>(&external(), params.g);
        } else {
            let Some((before, posts)) = turn.read::<true>(control) else {
                return;
            };
            let done = progress(on.time, turn.parity);
            let next = match done {
                RegularProgress::Nothing if posts.agreed && posts.regular > 0 => {
                    if word(on.time, clock::BY_HOST) == 0 {
                        RegularProgress::Swept
                    } else {
                        RegularProgress::Awaited {
                            targets: posts.regular,
                            parity: turn.parity,
                        }
                    }
                }
                RegularProgress::Awaited { .. } => done,
                RegularProgress::Nothing
                | RegularProgress::Swept
                | RegularProgress::Done { .. } => RegularProgress::Nothing,
            };
            turn.note(clock::PROGRESS, next.into());
            if next != RegularProgress::Nothing {
                turn.hand_on(before);
                return;
            }
            now = before;
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
            turn.count(&posts, Some(clock::REGULAR));
        }
        let (finest, body) = own.finest();
        if agreed_on_time {
            guess = guess.max(finest);
        }
        let (count, regular) = if finest == TOO_FINE {
            (body, 0)
        } else {
            let next = now + (SPAN >> guess);
            own.hand_out(next, coarsest_active(next))
        };
        let post = Post {
            finest,
            guess,
            count,
            regular,
        };
        turn.post(post, now);
    }
}

/// Work of a block on its own bodies.
pub(super) struct Own {
    pub(super) on: Corrected,
    pub(super) sums: AllSums,
    pub(super) slice: Slice,
    pub(super) stride: u32,
    control: Control,
    pub(super) span: f64,
    elapsed: Elapsed,
    softening_squared: f32,
}

impl Own {
    /// Lets a body be predicted from its state, in a step that begins then.
    ///
    /// # Safety
    /// Only this thread accesses the body.
    #[inline(always)]
    pub(super) unsafe fn renew_record(&self, place: u32, body: u32, begun: u64) {
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

    /// Calls `with` for each own body's place and index.
    #[inline(always)]
    pub(super) fn each_body(&self, mut with: impl FnMut(u32, u32)) {
        each_of_block(0, self.slice.count, |slot| {
            with(self.slice.first + slot, own_body(slot));
        });
    }

    /// The whole force on a body where its step began.
    ///
    /// # Safety
    /// The body is this thread's.
    #[inline(always)]
    pub(super) unsafe fn whole(&self, body: u32) -> Force {
        let Self { on, stride, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            [
                Bodies::vector(on.acceleration, *stride, body),
                Bodies::vector(on.jerk, *stride, body),
            ]
        }
    }

    /// Inverse of [`whole`](Self::whole).
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn set_whole(&self, body: u32, [a, j]: Force) {
        let Self { on, stride, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            Bodies::set_vector(on.acceleration, *stride, body, a);
            Bodies::set_vector(on.jerk, *stride, body, j);
        }
    }

    /// Position and velocity of a body where its step began.
    ///
    /// # Safety
    /// The body is this thread's.
    #[inline(always)]
    pub(super) unsafe fn moving(&self, body: u32) -> [[f64; 3]; 2] {
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
    pub(super) unsafe fn regular(&self, body: u32) -> Force {
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
    pub(super) unsafe fn set_regular(&self, body: u32, [a, j]: Force) {
        let Self { on, stride, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            Bodies::set_vector(on.regular, 2 * stride, body, a);
            Bodies::set_vector(on.regular, 2 * stride, stride + body, j);
        }
    }

    /// Sets position and velocity of a body.
    ///
    /// # Safety
    /// As [`end_step`](Self::end_step).
    #[inline(always)]
    pub(super) unsafe fn set_moving(&self, body: u32, position: [f64; 3], v: [f64; 3]) {
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
        // SAFETY: all threads are here.
        unsafe { self.control.finest(finest, body) }
    }

    /// Number of the first target of this block.
    #[inline(always)]
    pub(super) fn own_targets(&self) -> usize {
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
                    let radius = global::load(on.spheres, own_body(slot)).x as f32;
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
}
