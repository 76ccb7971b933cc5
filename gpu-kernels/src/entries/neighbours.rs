//! The kernels of block time steps with a neighbour scheme.

use super::{Entry, LayoutDescription, OLDEST, Scalars, Work};
use crate::abi::Params;
use crate::schedule::block_steps::Bodies;
use crate::schedule::block_steps::neighbours::{self, Corrected, Read};
use cuda_std::vector::{Vec2, Vec4};
use cuda_std::{emulated, kernel};

const fn entry(
    symbol: &'static str,
    work: Work,
    writes: &'static [bool],
    emulate: Option<unsafe fn(&crate::abi::Arguments<'_>)>,
) -> Entry {
    Entry {
        symbol,
        work,
        layout: LayoutDescription::of::<Bodies>(),
        scalars: Scalars::Argument,
        since: OLDEST,
        writes,
        emulate,
    }
}

macro_rules! force {
    ($symbol:literal, $search:literal) => {{
        #[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
        #[kernel(name = $symbol)]
        unsafe fn force(
            records: *const Vec4<u32>,
            lists: *const u32,
            counts: *const u32,
            irregular_targets: *const u64,
            regular_targets: *const Vec4<f32>,
            posts: *const u64,
            time: *const u64,
            irregular_sums: *mut f64,
            segments: *mut u32,
            params: Params,
        ) {
            let read = Read {
                records,
                lists,
                counts,
                irregular_targets,
                regular_targets,
                posts,
                time,
            };
            // SAFETY: the launch's promise.
            unsafe { neighbours::force::<$search>(read, irregular_sums, segments, params) }
        }
        entry(
            $symbol,
            Work::NeighbourForce { search: $search },
            &[false, false, false, false, false, false, false, true, true],
            // SAFETY: the launch's promise.
            emulated!(|a| unsafe {
                force(
                    a.pointer(0),
                    a.pointer(1),
                    a.pointer(2),
                    a.pointer(3),
                    a.pointer(4),
                    a.pointer(5),
                    a.pointer(6),
                    a.pointer(7),
                    a.pointer(8),
                    a.params,
                )
            }),
        )
    }};
}

macro_rules! list {
    ($symbol:literal) => {{
        #[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
        #[kernel(name = $symbol)]
        unsafe fn list(
            records: *const Vec4<u32>,
            lists: *mut u32,
            counts: *mut u32,
            targets: *const Vec4<f32>,
            posts: *const u64,
            time: *const u64,
            segments: *const u32,
            sums: *mut f64,
            params: Params,
        ) {
            // SAFETY: the launch's promise.
            unsafe {
                neighbours::list(
                    records, lists, counts, targets, posts, time, segments, sums, params,
                )
            }
        }
        entry(
            $symbol,
            Work::NeighbourList,
            &[false, true, true, false, false, false, false, true],
            // SAFETY: the launch's promise.
            emulated!(|a| unsafe {
                list(
                    a.pointer(0),
                    a.pointer(1),
                    a.pointer(2),
                    a.pointer(3),
                    a.pointer(4),
                    a.pointer(5),
                    a.pointer(6),
                    a.pointer(7),
                    a.params,
                )
            }),
        )
    }};
}

/// The last pointer of an entry that takes fields.
macro_rules! pointer_of {
    ($fields:ident, $arguments:ident) => {
        $arguments.pointer(16)
    };
}

macro_rules! correct {
    ($symbol:literal, $external:literal, [$($fields:ident)?], $writes:expr) => {{
        #[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
        #[kernel(name = $symbol)]
        unsafe fn correct(
            state: *mut Vec4<f64>,
            acceleration: *mut Vec4<f64>,
            jerk: *mut Vec4<f64>,
            regular: *mut Vec4<f64>,
            spheres: *mut Vec2<f64>,
            regular_steps: *mut u64,
            levels: *mut u32,
            steps: *mut f64,
            records: *mut Vec4<u32>,
            counts: *const u32,
            posts: *mut u64,
            time: *mut u64,
            irregular_targets: *mut u64,
            regular_targets: *mut Vec4<f32>,
            irregular_sums: *const f64,
            regular_sums: *const f64,
            $($fields: *const f64,)?
            params: Params,
        ) {
            let fields = [$($fields,)? core::ptr::null()][0];
            let on = Corrected {
                state,
                acceleration,
                jerk,
                regular,
                spheres,
                regular_steps,
                levels,
                steps,
                records,
                counts,
                posts,
                time,
                irregular_targets,
                regular_targets,
                irregular_sums,
                regular_sums,
            };
            // SAFETY: the launch's promise.
            unsafe { neighbours::correct::<$external>(on, fields, params) }
        }
        entry(
            $symbol,
            Work::NeighbourCorrect {
                external: $external,
            },
            $writes,
            // SAFETY: the launch's promise.
            emulated!(|a| unsafe {
                correct(
                    a.pointer(0),
                    a.pointer(1),
                    a.pointer(2),
                    a.pointer(3),
                    a.pointer(4),
                    a.pointer(5),
                    a.pointer(6),
                    a.pointer(7),
                    a.pointer(8),
                    a.pointer(9),
                    a.pointer(10),
                    a.pointer(11),
                    a.pointer(12),
                    a.pointer(13),
                    a.pointer(14),
                    a.pointer(15),
                    $(pointer_of!($fields, a),)?
                    a.params,
                )
            }),
        )
    }};
}

macro_rules! first {
    ($symbol:literal) => {{
        #[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
        #[kernel(name = $symbol)]
        unsafe fn first(
            state: *const Vec4<f64>,
            acceleration: *const Vec4<f64>,
            jerk: *const Vec4<f64>,
            higher: *const Vec4<f64>,
            lists: *const u32,
            counts: *const u32,
            sums: *const f64,
            time: *const u64,
            spheres: *mut Vec2<f64>,
            steps: *mut f64,
            params: Params,
        ) {
            // SAFETY: the launch's promise.
            unsafe {
                neighbours::first(
                    state,
                    acceleration,
                    jerk,
                    higher,
                    lists,
                    counts,
                    sums,
                    time,
                    spheres,
                    steps,
                    params,
                )
            }
        }
        entry(
            $symbol,
            Work::NeighbourFirst,
            &[
                false, false, false, false, false, false, false, false, true, true,
            ],
            // SAFETY: the launch's promise.
            emulated!(|a| unsafe {
                first(
                    a.pointer(0),
                    a.pointer(1),
                    a.pointer(2),
                    a.pointer(3),
                    a.pointer(4),
                    a.pointer(5),
                    a.pointer(6),
                    a.pointer(7),
                    a.pointer(8),
                    a.pointer(9),
                    a.params,
                )
            }),
        )
    }};
}

/// Pointer parameters of an end of steps that it writes.
const WRITES: [bool; 16] = [
    true, true, true, true, true, true, true, true, true, false, true, true, true, true, false,
    false,
];

/// As [`WRITES`], and the fields.
const WRITES_WITH_FIELDS: [bool; 17] = [
    true, true, true, true, true, true, true, true, true, false, true, true, true, true, false,
    false, false,
];

/// Kernels of block time steps with a neighbour scheme.
pub const NEIGHBOURS: &[Entry] = &[
    force!("neighbour_force", false),
    force!("neighbour_search", true),
    list!("neighbour_list"),
    correct!("neighbour_correct", false, [], &WRITES),
    correct!(
        "neighbour_correct_external",
        true,
        [fields],
        &WRITES_WITH_FIELDS
    ),
    first!("neighbour_first"),
];
