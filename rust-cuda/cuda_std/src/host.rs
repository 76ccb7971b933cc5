//! The backend off the device: the emulator for what needs a launch, the CPU's own arithmetic for
//! the rest.
//!
//! Approximate instructions are stood in for by accurate ones: the emulator cannot vouch for their
//! rounding, only tests on a GPU can.

use crate::constant;
pub(crate) use crate::emu::{
    ballot, block_dim, block_idx, global_load, global_store, grid_dim, lane_id, shuffle_idx,
    sync_threads, sync_threads_count, sync_warp, thread_idx,
};
use crate::emu::{exchange, global_atomic, shared_atomic, shared_load, shared_store};
use crate::shared::SharedWord;
use crate::vector::Vec4;
use std::cell::Cell;

/// IEEE half precision: the native type on the device, `half::f16` here.
pub type Half = half::f16;

/// The emulator's threads have no registers.
pub(crate) fn limit_registers<const MOST: u32>() {}

#[track_caller]
pub(crate) fn check_one_dimensional() {
    let [x, y, z] = [0, 1, 2].map(block_dim);
    assert!(
        y == 1 && z == 1,
        "`warp_id` is for one-dimensional blocks, and this one is {x} × {y} × {z}"
    );
}

pub(crate) fn opaque(x: u32) -> u32 {
    x
}

pub(crate) fn shared_base() -> u32 {
    0
}

// SAFETY: the emulator moves `size_of::<T>()` bytes as one value.
unsafe impl<T: Copy> SharedWord for T {
    #[inline]
    #[track_caller]
    unsafe fn read(address: u32) -> Self {
        // SAFETY: the caller's promise; the emulator checks it.
        unsafe { shared_load(address) }
    }
    #[inline]
    #[track_caller]
    unsafe fn write(address: u32, value: Self) {
        // SAFETY: the caller's promise; the emulator checks it.
        unsafe { shared_store(address, value) }
    }
}

#[inline]
#[track_caller]
pub(crate) unsafe fn global_load_read_only(place: *const f32) -> f32 {
    // SAFETY: the caller's promise; the emulator checks it, but for writes ahead of a barrier.
    unsafe { global_load(place) }
}

#[inline]
#[track_caller]
pub(crate) unsafe fn global_load_by_address(address: u64) -> Vec4<f64> {
    let place = std::ptr::with_exposed_provenance(address as usize);
    // SAFETY: the caller's promise; who put the address into memory has exposed it.
    unsafe { global_load(place) }
}

thread_local! {
    static CONSTANT: Cell<[u8; constant::BYTES]> = const { Cell::new([0xff; constant::BYTES]) };
}

pub(crate) fn constant_store(image: [u8; constant::BYTES]) {
    CONSTANT.set(image);
}

pub(crate) unsafe fn constant_load<T: Copy>() -> T {
    let image = CONSTANT.get();
    // SAFETY: the caller's promise, who checked the size as well.
    unsafe { image.as_ptr().cast::<T>().read_unaligned() }
}

#[track_caller]
pub(crate) unsafe fn atomic_add_shared(address: u32, value: u32) -> u32 {
    // SAFETY: the caller's promise; the emulator checks it.
    unsafe { shared_atomic(address, |old: u32| old.wrapping_add(value)) }
}

#[track_caller]
pub(crate) unsafe fn atomic_add_u32(place: *mut u32, value: u32) {
    // SAFETY: the caller's promise; the emulator checks it.
    unsafe { global_atomic(place, |old| old.wrapping_add(value)) };
}

#[track_caller]
pub(crate) unsafe fn atomic_add_f32(place: *mut f32, value: f32) {
    // SAFETY: the caller's promise; the emulator checks it.
    unsafe { global_atomic(place, |old| old + value) };
}

#[track_caller]
pub(crate) unsafe fn atomic_add_f64(place: *mut f64, value: f64) {
    // SAFETY: the caller's promise; the emulator checks it.
    unsafe { global_atomic(place, |old| old + value) };
}

#[track_caller]
pub(crate) unsafe fn atomic_add_vec4(place: *mut Vec4<f32>, v: Vec4<f32>) {
    // SAFETY: the caller's promise; the emulator checks it.
    unsafe {
        global_atomic(place, |old: Vec4<f32>| Vec4 {
            x: old.x + v.x,
            y: old.y + v.y,
            z: old.z + v.z,
            w: old.w + v.w,
        })
    };
}

#[inline(always)]
pub(crate) fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

#[inline(always)]
pub(crate) fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

/// The product of two halves is exact in f64 and so, short of 2⁻⁵³ coincidences, is the sum.
pub(crate) fn fma_f16(a: Half, b: Half, c: Half) -> Half {
    Half::from_f64(f64::from(a).mul_add(f64::from(b), f64::from(c)))
}

pub(crate) fn fma_f16_pair(a: u32, b: u32, c: u32) -> u32 {
    let [a, b, c] = [a, b, c].map(|pair| halves(pair).map(Half::from_f64));
    pair([0, 1].map(|k| fma_f16(a[k], b[k], c[k])))
}

pub(crate) fn f16_from_f64(x: f64) -> Half {
    Half::from_f64(x)
}

#[inline(always)]
pub(crate) fn sqrt_f32(x: f32) -> f32 {
    x.sqrt()
}

#[inline(always)]
pub(crate) fn sqrt_f64(x: f64) -> f64 {
    x.sqrt()
}

pub(crate) fn sqrt_f16(x: Half) -> Half {
    Half::from_f32(f32::from(x).sqrt())
}

#[inline(always)]
pub(crate) fn rsqrt_approx_f32(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// As wide as the device's guess, so that the step that follows it is tested.
#[inline(always)]
pub(crate) fn rsqrt_seed_f64(x: f64) -> f64 {
    f64::from_bits((1.0 / x.sqrt()).to_bits() & !0xffff_ffff)
}

fn halves(pair: u32) -> [f64; 2] {
    [pair as u16, (pair >> 16) as u16].map(|bits| Half::from_bits(bits).to_f64())
}

fn pair(halves: [Half; 2]) -> u32 {
    u32::from(halves[0].to_bits()) | u32::from(halves[1].to_bits()) << 16
}

#[track_caller]
pub(crate) fn mma_f16(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
    let sums = product(a, b);
    [0, 1, 2, 3].map(|k| (f64::from(c[k]) + sums[k]) as f32)
}

#[track_caller]
pub(crate) fn mma_to_f16(a: [u32; 4], b: [u32; 2]) -> [u32; 2] {
    let [w, x, y, z] = product(a, b).map(Half::from_f64);
    [pair([w, x]), pair([y, z])]
}

/// The lane's elements of a product of fragments.
#[track_caller]
fn product(a: [u32; 4], b: [u32; 2]) -> [f64; 4] {
    let lanes = exchange([a[0], a[1], a[2], a[3], b[0], b[1]]);
    let lane = lane_id() as usize;
    // Element (row, k) of A and (k, column) of B, by the fragments' layout; k is even, and the
    // pair holds k + 1 as well.
    let of_a = |row: usize, k: usize| halves(lanes[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2]);
    let of_b = |k: usize, column: usize| halves(lanes[column * 4 + k % 8 / 2][4 + k / 8]);
    [0, 1, 2, 3].map(|index| {
        let (row, column) = (lane / 4 + index / 2 * 8, lane % 4 * 2 + index % 2);
        let products = (0..16).step_by(2).map(|k| {
            let (a, b) = (of_a(row, k), of_b(k, column));
            a[0] * b[0] + a[1] * b[1]
        });
        products.sum()
    })
}

#[track_caller]
pub(crate) unsafe fn load_rows(address: u32) -> [u32; 4] {
    // SAFETY: the caller's promise; the emulator checks it.
    let row = unsafe { shared_load::<Vec4<u32>>(address) };
    let rows = exchange([row.x, row.y, row.z, row.w]);
    let lane = thread_idx(0) as usize % 32;
    [0, 1, 2, 3].map(|fragment| rows[8 * fragment + lane / 4][lane % 4])
}

#[track_caller]
pub(crate) unsafe fn load_columns(address: u32) -> [u32; 4] {
    // SAFETY: the caller's promise.
    unsafe { load_rows(address) }.map(|fragment| transpose_f16(fragment))
}

#[track_caller]
pub(crate) fn transpose_f16(fragment: u32) -> u32 {
    let lanes = exchange([fragment]);
    let lane = lane_id() as usize;
    // Element (row, column) is in lane 4 row + column / 2, half column % 2.
    let (row, column) = (lane / 4, lane % 4 * 2);
    let element = |r: usize, c: usize| lanes[r * 4 + c / 2][0] >> (c % 2 * 16) & 0xffff;
    element(column, row) | element(column + 1, row) << 16
}

pub(crate) fn pack_f16(low: f32, high: f32) -> u32 {
    pair([low, high].map(Half::from_f32))
}

pub(crate) fn unpack_f16(pair: u32) -> [f32; 2] {
    halves(pair).map(|half| half as f32)
}

pub(crate) fn min_f16(a: u32, b: u32) -> u32 {
    let (a, b) = (halves(a), halves(b));
    pair([0, 1].map(|k| Half::from_f64(a[k].min(b[k]))))
}
