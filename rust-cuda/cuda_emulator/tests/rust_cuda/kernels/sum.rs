//! Sums by a tree in shared memory, by shuffles, and by atomics.

use core::sync::atomic::Ordering;
use cuda_std::atomic::{AtomicF32, mid};
use cuda_std::shared::dynamic_shared_mem;
use cuda_std::{gpu_only, kernel, shared_array, thread, warp};

pub const THREADS: usize = 64;

/// A sum of each block's values.
#[kernel]
#[allow(improper_ctypes_definitions, clippy::missing_safety_doc)]
pub unsafe fn sum(values: &[f32], sums: *mut f32) {
    let partial = shared_array![f32; THREADS];
    let t = thread::thread_idx_x() as usize;
    let i = thread::index_1d() as usize;
    *partial.add(t) = if i < values.len() { values[i] } else { 0.0 };
    thread::sync_threads();
    let mut half = THREADS / 2;
    while half > 0 {
        if t < half {
            *partial.add(t) += *partial.add(t + half);
        }
        thread::sync_threads();
        half /= 2;
    }
    if t == 0 {
        *sums.add(thread::block_idx_x() as usize) = *partial;
    }
}

/// The same, without the barrier in the loop.
#[kernel]
#[allow(improper_ctypes_definitions, clippy::missing_safety_doc)]
pub unsafe fn sum_with_race(values: &[f32], sums: *mut f32) {
    let partial = shared_array![f32; THREADS];
    let t = thread::thread_idx_x() as usize;
    let i = thread::index_1d() as usize;
    *partial.add(t) = if i < values.len() { values[i] } else { 0.0 };
    thread::sync_threads();
    let mut half = THREADS / 2;
    while half > 0 {
        if t < half {
            let other = *partial.add(t + half); // reads the partner's
            *partial.add(t) += other; // writes its own
        }
        half /= 2;
    }
    if t == 0 {
        *sums.add(thread::block_idx_x() as usize) = *partial;
    }
}

/// The value of the whole warp, in its first lane.
#[gpu_only]
pub fn over_warp(mut value: f32) -> f32 {
    let mut delta = warp_size() / 2;
    while delta > 0 {
        value += unsafe { warp::warp_shuffle_down(u32::MAX, value, delta, 32) }.0;
        delta /= 2;
    }
    value
}

fn warp_size() -> u32 {
    thread::warp_size()
}

/// One sum of all values, by shuffles, dynamic shared memory and an atomic.
#[kernel]
#[allow(improper_ctypes_definitions, clippy::missing_safety_doc)]
pub unsafe fn total(values: &[f32], total: &AtomicF32) {
    let of_warps = dynamic_shared_mem::<f32>();
    let t = thread::thread_idx_x();
    let i = thread::index_1d() as usize;
    let value = over_warp(values.get(i).copied().unwrap_or_default());
    if warp::lane_id() == 0 {
        of_warps.add((t / 32) as usize).write(value);
    }
    thread::sync_threads();
    if t == 0 {
        let mut sum = 0.0;
        for warp in 0..thread::block_dim_x() / 32 {
            sum += of_warps.add(warp as usize).read();
        }
        total.fetch_add(sum, Ordering::Relaxed);
    }
}

/// How many values fall into each of ten bins of width one.
#[kernel]
#[allow(improper_ctypes_definitions, clippy::missing_safety_doc)]
pub unsafe fn histogram(values: &[f32], bins: *mut u32) {
    let i = thread::index() as usize;
    if i < values.len() {
        let bin = bins.add(values[i] as usize % 10);
        mid::atomic_fetch_add_u32_device(bin, Ordering::Relaxed, 1);
    }
}
