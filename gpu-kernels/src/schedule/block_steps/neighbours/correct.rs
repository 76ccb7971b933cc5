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
    irregular_target, of_regular_step, own_body, progress, records_of, word,
};
use crate::schedule::block_steps::posts::{Control, Post, Posts};
use crate::schedule::block_steps::turn::Turn;
use crate::schedule::block_steps::{
    Bodies, SPAN, Slice, TOO_FINE, clock as plain, coarsest_active, number,
};

/// Registers of a thread: with fewer, what a step needs would not stay in them.
pub(super) const REGISTERS: u32 = 255;

/// Most threads of a block of [`correct`], so that each has as many registers as there are.
pub const MOST_THREADS: u32 = 256;

/// Buffers of what a block has of its own bodies, and of what it tells the others.
#[derive(Clone, Copy)]
pub struct OwnBuffers {
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
    /// Records that bodies are predicted from; by places. Of both parities where the clock says
    /// [`IN_ONE`](clock::IN_ONE).
    pub records: *mut Vec4<u32>,
    /// Posts: those of `params.blocks.parity` are read, the others written.
    pub posts: *mut u64,
    /// As posts.
    pub time: *mut u64,
}

/// Buffers that [`correct`] reads and writes.
#[derive(Clone, Copy)]
pub struct Corrected {
    /// Bodies, posts and clock.
    pub own: OwnBuffers,
    /// Where targets are handed out.
    pub targets: HandedOut,
    /// Sums of [`force`](super::force), read; where `params.blocks.devices` are several, for each block the
    /// address of those of the device that has its slice.
    pub irregular_sums: *const Vec4<f64>,
    /// As these, of the bodies whose regular steps end.
    pub regular_sums: *const Vec4<f64>,
}

/// Bodies that end their steps next.
#[derive(Clone, Copy)]
pub struct HandedOut {
    /// Written, as many for each slice as the largest has bodies.
    pub irregular: *mut u64,
    /// As these, two vectors each, of those whose regular steps end.
    pub regular: *mut Vec4<f32>,
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
        posts: on.own.posts,
        time: on.own.time,
        parity: u32::from(blocks.parity),
    };
    // SAFETY: words of the clock: read by all, those of the other parity and counts written by one
    // thread. All that branches are taken by is the same for all threads of the block.
    unsafe {
        let time = on.own.time;
        let span = number(time, plain::SPAN);
        let is_in_one = word(time, clock::IN_ONE) != 0;
        let sums = AllSums::of(&on, &params);
        let own = Own {
            on: on.own,
            slice: Slice::of(thread::block_idx_x(), n),
            stride: params.stride,
            control,
            span,
            elapsed: Elapsed::of(time),
            softening_squared: params.softening_squared as f32,
            written: Written {
                first: on.own.records,
                second: is_in_one.then(|| records_of(on.own.records, 1, n)),
            },
        };
        let external = || External {
            fields: OnDevice::new(fields),
            span,
            start: number(time, plain::START),
        };
        let (mut now, mut guess, mut agreed_on_time) = (0, 0, true);
        if is(Phase::Begin) || is(Phase::Radii) || is(Phase::Settled) {
            if !is(Phase::Begin) {
                own.fit_spheres(&sums, is(Phase::Settled));
            }
            own.begin();
            thread::sync_threads();
            let (_, regular) = own.hand_out(&on.targets, 0, 0);
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
            own.take_forces::<EXTERNAL>(&sums, &external(), params.g);
        } else {
            let Some((before, posts)) = turn.read::<true>(control) else {
                return;
            };
            let next = progress_after(&turn, &posts);
            turn.note(clock::PROGRESS, next.into());
            if next != RegularProgress::Nothing {
                turn.hand_on(before);
                return;
            }
            now = before;
            guess = posts.finest;
            agreed_on_time = posts.agreed;
            if let Some(finest) = posts.finest_regular {
                own.copy_records(records_of(on.own.records, turn.parity, n), now);
                turn.count_ended(posts.active, posts.finest);
                if finest < coarsest_active(now + (SPAN >> guess)) {
                    turn.hand_on_counted(now, false);
                    return;
                }
            } else if agreed_on_time {
                now += SPAN >> posts.finest;
                let work = Work {
                    now,
                    span,
                    g: params.g,
                    eta: number(time, plain::ETA),
                    regular_eta: number(time, clock::REGULAR_ETA),
                    guard: number(time, plain::GUARD),
                    wanted: f64::from(word(time, clock::WANTED)),
                    external: external(),
                };
                own.end_steps::<EXTERNAL>(&work, &posts, &sums, &on.targets);
                turn.count(&posts, Some(clock::REGULAR));
            } else {
                turn.count(&posts, Some(clock::REGULAR));
            }
        }
        let (finest, body) = own.finest();
        if is_in_one && agreed_on_time {
            turn.post(Post::of_steps((finest, body), own.finest_regular(), 0), now);
            return;
        }
        if agreed_on_time {
            guess = guess.max(finest);
        }
        let (count, regular) = if finest == TOO_FINE {
            (body, 0)
        } else {
            let next = now + (SPAN >> guess);
            own.hand_out(&on.targets, next, coarsest_active(next))
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

/// How far the forces of regular steps are after a launch of [`correct`] that reads these posts.
///
/// # Safety
/// The promise of [`Turn::read`].
#[inline(always)]
unsafe fn progress_after(turn: &Turn, posts: &Posts) -> RegularProgress {
    // SAFETY: the caller's promise.
    let (done, is_by_host) = unsafe {
        (
            progress(turn.time, turn.parity),
            global::load(turn.time, clock::BY_HOST),
        )
    };
    match done {
        _ if posts.finest_regular.is_some() => RegularProgress::Nothing,
        RegularProgress::Nothing if posts.agreed && posts.regular > 0 => {
            if is_by_host == 0 {
                RegularProgress::Swept
            } else {
                RegularProgress::Awaited {
                    targets: posts.regular,
                    parity: turn.parity,
                }
            }
        }
        done @ RegularProgress::Awaited { .. } => done,
        RegularProgress::Nothing | RegularProgress::Swept | RegularProgress::Done { .. } => {
            RegularProgress::Nothing
        }
    }
}

/// Where the records of bodies are written.
#[derive(Clone, Copy)]
pub(super) struct Written {
    pub(super) first: *mut Vec4<u32>,
    pub(super) second: Option<*mut Vec4<u32>>,
}

/// Work of a block on its own bodies.
pub(super) struct Own {
    pub(super) on: OwnBuffers,
    pub(super) slice: Slice,
    pub(super) stride: u32,
    pub(super) control: Control,
    pub(super) span: f64,
    pub(super) elapsed: Elapsed,
    pub(super) softening_squared: f32,
    pub(super) written: Written,
}

impl Own {
    /// Lets a body be predicted from its state, in a step that begins then.
    ///
    /// # Safety
    /// Only this thread accesses the body.
    #[inline(always)]
    pub(super) unsafe fn renew_record(&self, place: u32, body: u32, begun: u64) {
        let Self { on, stride, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            let source = Bodies::source(on.state, *stride, body);
            let v = Bodies::velocity(on.state, *stride, body);
            self.set_record(place, &source, v, self.whole(body), begun);
        }
    }

    /// Lets a body be predicted from here.
    ///
    /// # Safety
    /// Only this thread accesses the body.
    #[inline(always)]
    pub(super) unsafe fn set_record(
        &self,
        place: u32,
        source: &Source<f64>,
        v: [f64; 3],
        [a, j]: Force,
        begun: u64,
    ) {
        let f32s = |v: [f64; 3]| [v[0] as f32, v[1] as f32, v[2] as f32];
        let record = Record {
            x: source.position,
            v: f32s(v),
            a: f32s(a),
            j: f32s(j),
            mass: source.mass as f32,
            begun,
        };
        // SAFETY: the caller's promise.
        unsafe { self.put_record(place, &record) };
    }

    /// Copies the record of the body at a place.
    ///
    /// # Safety
    /// Only this thread accesses the body's records.
    #[inline(always)]
    pub(super) unsafe fn copy_record(&self, from: *const Vec4<u32>, place: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.put_record(place, &Record::load(from, place)) };
    }

    /// Puts the record of the body at a place.
    ///
    /// # Safety
    /// The promise of [`copy_record`](Self::copy_record).
    #[inline(always)]
    unsafe fn put_record(&self, place: u32, record: &Record) {
        // SAFETY: the caller's promise.
        unsafe {
            record.store(self.written.first, place);
            if let Some(records) = self.written.second {
                record.store(records, place);
            }
        }
    }

    /// Copies the records that the last launch wrote: of the own bodies with steps that began at `now`.
    ///
    /// # Safety
    /// All threads of the block call it, in a launch that has the bodies' records to itself.
    #[inline(always)]
    pub(super) unsafe fn copy_records(&self, from: *const Vec4<u32>, now: u64) {
        let coarsest = coarsest_active(now);
        self.each_body(|place, _| {
            // SAFETY: own bodies, each by one thread.
            unsafe {
                if global::load(self.on.levels, place) >= coarsest {
                    self.copy_record(from, place);
                }
            }
        });
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

    /// The finest level of the own bodies, and if that is [`TOO_FINE`] the first body of it. A barrier
    /// comes before and after.
    ///
    /// # Safety
    /// The promise of [`begin`](Self::begin).
    #[inline(always)]
    pub(super) unsafe fn finest(&self) -> (u32, u32) {
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

    /// The finest level of the own bodies' regular steps. A barrier comes before and after.
    ///
    /// # Safety
    /// The promise of [`begin`](Self::begin).
    #[inline(always)]
    unsafe fn finest_regular(&self) -> u32 {
        let mut finest = 0;
        self.each_body(|place, _| {
            // SAFETY: own bodies, whose regular steps were written before a barrier.
            let step = unsafe { global::load(self.on.regular_steps, place) };
            finest = finest.max(of_regular_step(step).1);
        });
        // SAFETY: all threads are here.
        unsafe { self.control.largest_of_block(finest) }
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
    unsafe fn hand_out(&self, targets: &HandedOut, next: u64, coarsest: u32) -> (u32, u32) {
        let on = &self.on;
        let irregular_targets = targets.irregular.wrapping_add(self.own_targets());
        let own = self.own_targets() * REGULAR_TARGET as usize;
        let regular_targets = targets.regular.wrapping_add(own);
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
