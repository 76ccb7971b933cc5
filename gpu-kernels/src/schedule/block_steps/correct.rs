//! The ends of steps, and what the next ones are.

use crate::abi::Params;
use crate::fields::{Header, OnDevice};
use crate::hermite6::first_step;
use crate::layout::{Layout, Source};
use cuda_std::shared::Shared;
use cuda_std::vector::Vec4;
use cuda_std::warp::{WARP_SIZE, lane_id, warp_id};
use cuda_std::{GpuFloat, global, opaque, thread};

use super::gather::{over_devices, over_slices};
use super::posts::{Control, Post};
use super::records::{self, Digits, Sums};
use super::scheme::{Begun, Ended, MOST_SUMS, Scheme, StepAccuracy, sums};
use super::turn::Turn;
use super::{
    Bodies, BodyBuffers, DEEPEST, HIGHER_VECTORS, MOST_REGISTERS, Phase, SPAN, Slice, TOO_FINE,
    clock, coarsest_active, level_of, number,
};

/// Ends the steps of active bodies and hands out those that are active next, or what else
/// [`Phase`] says.
///
/// # Formula
/// [`Scheme::ended`]. The step after it is what the scheme's criterion allows, at most twice as long
/// as the last one, and at most `c / max_j |r·v|/d²`: in `c` of its distance a pair that approaches
/// must be noticed, where criteria look back. Of the halvings of the span it is the longest that is
/// no longer, and that begins where steps of its length begin.
///
/// Bodies above the mass [`HEAVY`](clock::HEAVY) of the clock take [a part](Scheme::OF_HEAVY) of η.
///
/// # Arguments
/// `bodies`: read, and written where steps end. `levels`: how often the span is halved for each
/// body's step, and `steps`, what it is allowed: read and written. `partials`: what
/// [`force`](super::force) left, read; where `params.blocks.devices` are several, the addresses of what
/// [`gather`](super::gather) left on each. `posts`, `time`: those of `params.blocks.parity` read, the
/// others written. `targets`: as many for each slice as the largest has bodies, written. `params.g`:
/// in the unit of the bodies. `fields`: external ones, read, with the units of the bodies; none are
/// read where `EXTERNAL` is false.
///
/// # Thread mapping
/// One-dimensional; a block for each slice, of 2ᵏ warps and at least as many threads as there are
/// blocks. A warp adds up the sums of a body, its lanes those of different slices, or a thread those of
/// different devices; a thread then ends its step.
///
/// # Shared memory
/// [`correct_bytes`](super::correct_bytes).
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Makino & Aarseth (1992), PASJ 44, 141; Nitadori & Makino (2008), New Astron. 13, 498. The bound of
/// approaches is of this project.
#[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
#[inline(always)]
pub unsafe fn correct<S: Scheme, D: Digits, const EXTERNAL: bool>(
    bodies: BodyBuffers,
    levels: *mut u32,
    steps: *mut f64,
    partials: *const Vec4<D::Real>,
    posts: *mut u64,
    time: *mut u64,
    targets: *mut Vec4<D::Real>,
    fields: *const f64,
    params: Params,
) {
    thread::limit_registers::<MOST_REGISTERS>();
    let Params { n, blocks, .. } = params;
    let block = thread::block_idx_x();
    let phase = u32::from(blocks.phase);
    let is = |other: Phase| phase == other as u32;
    let control = Control::of_block();
    let turn = Turn {
        posts,
        time,
        parity: u32::from(blocks.parity),
    };
    let own = Own {
        bodies,
        levels,
        steps,
        slice: Slice::of(block, n),
        stride: params.stride,
        control,
        list: control.after(),
    };
    // SAFETY: words of the clock: read by all, those of the other parity and counts written by one
    // thread. All that branches are taken by is the same for all threads of the block.
    unsafe {
        let span = number(time, clock::SPAN);
        let mut now = 0;
        let mut guess = 0;
        let mut agreed_on_time = true;
        if is(Phase::Step) || is(Phase::First) {
            let Some((before, posts)) = turn.read::<false>(control) else {
                return;
            };
            now = before;
            guess = posts.finest;
            agreed_on_time = posts.agreed;
            if agreed_on_time {
                now += SPAN >> posts.finest;
                let work = Work {
                    now,
                    span,
                    g: params.g,
                    accuracy: StepAccuracy {
                        eta: number(time, clock::ETA),
                        rounding: D::ROUNDING,
                    },
                    heavy: number(time, clock::HEAVY),
                    guard: number(time, clock::GUARD),
                    is_first: is(Phase::First),
                    fields: OnDevice::new(fields),
                    start: number(time, clock::START),
                };
                let count = own.list_active(now);
                let sums = Parts {
                    partials,
                    n,
                    devices: blocks.devices.into(),
                    begin: posts.begin_of(block),
                };
                own.end_steps::<S, D, EXTERNAL>(&work, &sums, count);
            }
            if is(Phase::First) {
                return;
            }
            turn.count(&posts, None);
        } else {
            own.begin(is(Phase::All), span);
        }
        let (finest, body) = own.finest();
        if agreed_on_time {
            guess = guess.max(finest);
        }
        let count = if finest == TOO_FINE {
            body
        } else {
            let next = now + (SPAN >> guess);
            let dt = span / SPAN as f64;
            let targets = targets.wrapping_add(
                (block * own.slice.most) as usize
                    * const { records::target_vectors(D::NAME, S::ORDER) } as usize,
            );
            own.hand_out::<S, D>(targets, next, dt)
        };
        let post = Post {
            finest,
            guess,
            count,
            regular: 0,
        };
        turn.post(post, now);
    }
}

/// Work of a block on its own bodies.
pub(super) struct Own {
    pub(super) bodies: BodyBuffers,
    pub(super) levels: *mut u32,
    pub(super) steps: *mut f64,
    pub(super) slice: Slice,
    pub(super) stride: u32,
    pub(super) control: Control,
    /// Active bodies, and after that, of as many as there are threads, the sums.
    pub(super) list: Shared<u32>,
}

/// The sums of the targets, in parts.
pub(super) struct Parts<R> {
    /// As many rows as there are slices, or the addresses of those of devices.
    pub(super) partials: *const Vec4<R>,
    /// Length of a row, targets.
    pub(super) n: u32,
    /// Number of rows that are of devices.
    pub(super) devices: u32,
    /// The first target of this block.
    pub(super) begin: u32,
}

/// Ends of steps.
pub(super) struct Work {
    pub(super) now: u64,
    pub(super) span: f64,
    pub(super) g: f64,
    pub(super) accuracy: StepAccuracy,
    pub(super) heavy: f64,
    pub(super) guard: f64,
    pub(super) is_first: bool,
    pub(super) fields: OnDevice,
    /// Time at which the span begins, in the units of the run.
    pub(super) start: f64,
}

impl Work {
    /// Adds the forces of external fields on what moves so, at the time that the forces are of.
    #[inline(always)]
    pub(super) fn with_fields<const K: usize>(
        &self,
        moving: [[f64; 3]; 3],
        forces: [[f64; 3]; 3],
    ) -> [[f64; 3]; 3] {
        let header = Header::of(&self.fields);
        let span = self.span * header.time;
        // First steps are chosen where the span begins, on a clock that is at its end.
        let now = if self.is_first { 0 } else { self.now };
        let time = self.start + span * (now as f64 / SPAN as f64);
        header.add_local::<K>(&self.fields, time, moving, forces)
    }
}

impl Own {
    /// Lists the bodies whose steps end at `now`, in order; returns how many there are. Ends with
    /// a barrier.
    ///
    /// # Safety
    /// All threads call it, with shared memory as the kernel is said to have.
    #[inline(always)]
    pub(super) unsafe fn list_active(&self, now: u64) -> u32 {
        let coarsest = coarsest_active(now);
        let (mut count, mut first) = (0, 0);
        while first < self.slice.count {
            let slot = first + thread::thread_idx_x();
            // SAFETY: levels of own bodies; each number of the list is one thread's.
            unsafe {
                let is_active = self.is_active(slot, coarsest);
                let (number, listed) = self.control.numbered(is_active);
                if is_active {
                    self.list.store(count + number, slot);
                }
                count += listed;
            }
            first += thread::block_dim_x();
            thread::sync_threads();
        }
        count
    }

    /// True if a body is active, without a branch: the compiler would take it for one that the
    /// whole of what follows may be written twice for, collectives of the warp among it, which then
    /// wait for each other for ever.
    ///
    /// # Safety
    /// Levels were written before this launch, or a barrier.
    #[inline(always)]
    unsafe fn is_active(&self, slot: u32, coarsest: u32) -> bool {
        let exists = slot < self.slice.count;
        let body = self.slice.first + slot.min(self.slice.count - 1);
        // SAFETY: the caller's promise; a body of the slice.
        let level = unsafe { global::load(self.levels, body) };
        opaque(u32::from(exists & (level >= coarsest))) != 0
    }

    /// Ends the steps of the `count` listed bodies. Ends with a barrier.
    ///
    /// # Safety
    /// As [`list_active`](Self::list_active), which made the list.
    #[inline(always)]
    unsafe fn end_steps<S: Scheme, D: Digits, const EXTERNAL: bool>(
        &self,
        work: &Work,
        parts: &Parts<D::Real>,
        count: u32,
    ) {
        let end = |body, _, sums: &Sums<f64>| {
            // SAFETY: only this thread accesses the body.
            unsafe { self.end_step::<S, EXTERNAL>(work, body, sums) }
        };
        // SAFETY: the caller's promise.
        unsafe { self.with_sums::<S, D>(parts, count, end) }
    }

    /// Calls `work` for each of the `count` listed bodies, by one thread, with the body, its number among all
    /// targets, and its sums. Ends with a barrier.
    ///
    /// # Safety
    /// As [`list_active`](Self::list_active), which made the list.
    #[inline(always)]
    pub(super) unsafe fn with_sums<S: Scheme, D: Digits>(
        &self,
        parts: &Parts<D::Real>,
        count: u32,
        mut work: impl FnMut(u32, u32, &Sums<f64>),
    ) {
        let (threads, thread) = (thread::block_dim_x(), thread::thread_idx_x());
        let warps = threads / WARP_SIZE;
        let numbers = const { sums(S::ORDER) };
        let exchange: Shared<f64> = self.list.after(self.slice.most.next_multiple_of(4));
        let mut first = 0;
        while first < count {
            let batch = (count - first).min(threads);
            let begin = parts.begin + first;
            if parts.devices == 0 {
                let (slices, mut k) = (thread::grid_dim_x(), warp_id());
                while k < batch {
                    // SAFETY: sums of this block's targets, which come from this body alone; its place
                    // in shared memory is its own.
                    unsafe {
                        let sums = over_slices::<S, D>(parts.partials, slices, parts.n, begin + k);
                        for number in 0..MOST_SUMS as u32 {
                            if number < numbers && lane_id() == 0 {
                                exchange.store(number * threads + k, sums[number as usize]);
                            }
                        }
                    }
                    k += warps;
                }
                thread::sync_threads();
            }
            if thread < batch {
                let mut sums = [0.0; MOST_SUMS];
                // SAFETY: sums of this block's targets, of each device, or written before the barrier; a
                // body of the list is this thread's alone.
                unsafe {
                    if parts.devices == 0 {
                        for number in 0..MOST_SUMS as u32 {
                            if number < numbers {
                                sums[number as usize] = exchange.load(number * threads + thread);
                            }
                        }
                    } else {
                        let rows = parts.partials.cast();
                        sums = over_devices::<S>(rows, parts.devices, begin + thread);
                    }
                    let body = self.slice.first + self.list.load(first + thread);
                    work(body, begin + thread, &Sums::of(sums));
                }
            }
            thread::sync_threads();
            first += threads;
        }
    }

    /// Ends the step of a body.
    ///
    /// # Safety
    /// Only this thread accesses the body.
    #[inline(always)]
    unsafe fn end_step<S: Scheme, const EXTERNAL: bool>(
        &self,
        work: &Work,
        body: u32,
        sums: &Sums<f64>,
    ) {
        let Self { bodies, stride, .. } = self;
        let stride = *stride;
        let mut forces = sums.vectors.map(|sum| sum.map(|sum| work.g * sum));
        // SAFETY: the caller's promise.
        unsafe {
            let Source { mass, .. } = Bodies::source(bodies.state, stride, body);
            let (part, accuracy) = if mass > work.heavy {
                (S::OF_HEAVY, work.accuracy.of_heavy(S::OF_HEAVY))
            } else {
                (1.0, work.accuracy)
            };
            // The sums have three times the approach. Infinite where nothing approaches anything.
            let bound = 3.0 * work.guard * part.sqrt_exact() / sums.approach;
            let level = global::load(self.levels, body);
            let dt = work.span * ((SPAN >> level) as f64 / SPAN as f64);
            let begun = begun::<S>(bodies, stride, body);
            if EXTERNAL {
                let moving = S::predicted(&begun, if work.is_first { 0.0 } else { dt });
                forces = if S::SNAP {
                    work.with_fields::<3>(moving, forces)
                } else {
                    work.with_fields::<2>(moving, forces)
                };
            }
            if work.is_first {
                let allowed = first_step(accuracy.eta, forces);
                global::store(self.steps, body, smaller(allowed, bound));
                set_ends::<S>(bodies, stride, body, forces, [0.0; 3]);
                return;
            }
            let Ended {
                x,
                v,
                crackle,
                allowed,
            } = S::ended(&begun, dt, accuracy, forces);
            let moved = Source { position: x, mass };
            Bodies::set_source(bodies.state, stride, body, moved);
            Bodies::set_velocity(bodies.state, stride, body, v);
            set_ends::<S>(bodies, stride, body, forces, crackle);
            let allowed = smaller(smaller(allowed, bound), 2.0 * dt);
            global::store(self.steps, body, allowed);
            global::store(bodies.begun, body, work.now);
            let wanted = level_of(allowed, work.span);
            // A longer step must begin where steps of its length begin.
            if wanted > level || wanted >= coarsest_active(work.now) {
                global::store(self.levels, body, wanted);
            }
        }
    }

    /// Lets all bodies begin a span with the steps that they are allowed; or, if `all`, be as far as
    /// a span leads, so that they are active at once and where they are.
    ///
    /// # Safety
    /// As [`list_active`](Self::list_active).
    #[inline(always)]
    unsafe fn begin(&self, all: bool, span: f64) {
        let mut slot = thread::thread_idx_x();
        while slot < self.slice.count {
            let body = self.slice.first + slot;
            // SAFETY: own bodies, each by one thread.
            unsafe {
                let level = if all {
                    0
                } else {
                    level_of(global::load(self.steps, body), span)
                };
                global::store(self.levels, body, level);
                global::store(self.bodies.begun, body, if all { SPAN } else { 0 });
            }
            slot += thread::block_dim_x();
        }
    }

    /// The finest level of the own bodies, and if that is [`TOO_FINE`] the first body of it. A
    /// barrier comes before and after.
    ///
    /// # Safety
    /// As [`list_active`](Self::list_active).
    #[inline(always)]
    unsafe fn finest(&self) -> (u32, u32) {
        thread::sync_threads();
        let (mut finest, mut body) = (0, u32::MAX);
        let mut slot = thread::thread_idx_x();
        while slot < self.slice.count {
            // SAFETY: own bodies, whose levels were written before the barrier.
            let level = unsafe { global::load(self.levels, self.slice.first + slot) };
            finest = finest.max(level);
            if level == TOO_FINE {
                body = body.min(self.slice.first + slot);
            }
            slot += thread::block_dim_x();
        }
        // SAFETY: all threads are here.
        unsafe { self.control.finest(finest, body) }
    }

    /// Makes targets of the own bodies that are active at `next`; returns how many there are.
    ///
    /// # Safety
    /// As [`list_active`](Self::list_active); the targets are those of this block.
    #[inline(always)]
    unsafe fn hand_out<S: Scheme, D: Digits>(
        &self,
        targets: *mut Vec4<D::Real>,
        next: u64,
        tick: f64,
    ) -> u32 {
        let coarsest = coarsest_active(next);
        let (mut count, mut first) = (0, 0);
        while first < self.slice.count {
            let slot = first + thread::thread_idx_x();
            let body = self.slice.first + slot;
            thread::sync_threads();
            // SAFETY: own bodies; each target is one thread's.
            unsafe {
                let is_active = self.is_active(slot, coarsest);
                let (number, listed) = self.control.numbered(is_active);
                if is_active {
                    let dt = (next - global::load(self.bodies.begun, body)) as f64 * tick;
                    let moving = S::predicted(&begun::<S>(&self.bodies, self.stride, body), dt);
                    records::rounded::<D>(moving).put::<S, D>(targets, count + number);
                }
                count += listed;
            }
            first += thread::block_dim_x();
        }
        count
    }
}

/// Beginning of a body's step.
///
/// # Safety
/// The buffers are those of the kernels, `body` is one of theirs, and nobody else writes it in this
/// launch.
#[inline(always)]
pub(super) unsafe fn begun<S: Scheme>(bodies: &BodyBuffers, stride: u32, body: u32) -> Begun {
    // SAFETY: the caller's promise.
    unsafe {
        let mut begun = Begun {
            x: Bodies::source(bodies.state, stride, body).position,
            v: Bodies::velocity(bodies.state, stride, body),
            a: Bodies::vector(bodies.acceleration, stride, body),
            j: Bodies::vector(bodies.jerk, stride, body),
            s: [0.0; 3],
            c: [0.0; 3],
        };
        if S::SNAP {
            let higher = |which| Bodies::vector(bodies.higher, HIGHER_VECTORS * stride, which);
            begun.s = higher(body);
            begun.c = higher(stride + body);
        }
        begun
    }
}

/// Sets what the next step of a body begins from, beside position and velocity.
///
/// # Safety
/// As [`begun`], and only this thread accesses the body.
#[inline(always)]
pub(super) unsafe fn set_ends<S: Scheme>(
    bodies: &BodyBuffers,
    stride: u32,
    body: u32,
    [a, j, s]: [[f64; 3]; 3],
    crackle: [f64; 3],
) {
    // SAFETY: the caller's promise.
    unsafe {
        Bodies::set_vector(bodies.acceleration, stride, body, a);
        Bodies::set_vector(bodies.jerk, stride, body, j);
        if S::SNAP {
            let set = |which, v| {
                Bodies::set_vector(bodies.higher, HIGHER_VECTORS * stride, which, v);
            };
            set(body, s);
            set(stride + body, crackle);
        }
    }
}

/// The smaller one; a NaN, if the first one is.
#[inline(always)]
pub(super) fn smaller(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

const _: () = assert!(DEEPEST < TOO_FINE);
