//! Matrix products by a whole warp, and the pairs of halves they take: tensor cores, from compute
//! capability 8.0 on (kernels that use them say so, see [`kernel`](crate::kernel)).
//!
//! A matrix is spread over the lanes in *fragments* (PTX ISA, "Matrix Fragments for
//! mma.m16n8k16"). With `r = lane / 4` and `q = lane % 4`, a register of two halves, the first in
//! its low bits, holds
//!
//! | fragment | register | elements (row, column) |
//! |---|---|---|
//! | A, 16 × 16 | 0, 1, 2, 3 | (r, 2q), (r + 8, 2q), (r, 2q + 8), (r + 8, 2q + 8), and the next column |
//! | B, 16 × 8 | 0, 1 | (2q, r), (2q + 8, r), and the next row |
//! | 8 × 8 | | (r, 2q), and the next column |
//! | D in halves, 16 × 8 | 0, 1 | (r, 2q), (r + 8, 2q), and the next column |
//!
//! and an accumulator of four `f32`, C or D, 16 × 8, the elements (r, 2q), (r, 2q + 1), (r + 8, 2q)
//! and (r + 8, 2q + 1). So D of one product, rounded to halves, is half of A of another.

use crate::backend;
use crate::shared::Shared;
use crate::vector::Vec4;

/// `A · B + C` of fragments: `mma.m16n8k16`, halves to single precision.
///
/// The products are exact. The device aligns the terms of a sum to their largest and truncates
/// there; the emulator adds them in f64 and rounds once, so it cannot vouch for the last bits.
/// All lanes of the warp have to call it.
#[inline(always)]
#[track_caller]
pub fn multiply_add(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
    backend::mma_f16(a, b, c)
}

/// `A · B` of fragments, rounded to halves: registers 0 and 1 of the table's last row.
///
/// On compute capability 9.0 the tensor cores accumulate in halves: they round the whole sum once.
/// Older ones add the 16 terms in two parts, with a half between, so there the sum is taken in
/// single precision and then rounded. All lanes of the warp have to call it.
#[inline(always)]
#[track_caller]
pub fn multiply_halves(a: [u32; 4], b: [u32; 2]) -> [u32; 2] {
    if cfg!(any(target_feature = "sm_90", not(target_arch = "nvptx64"))) {
        accumulate_halves(a, b)
    } else {
        accumulate_then_round(a, b)
    }
}

/// [`multiply_halves`] where accumulators may be halves.
#[inline(always)]
#[track_caller]
fn accumulate_halves(a: [u32; 4], b: [u32; 2]) -> [u32; 2] {
    backend::mma_to_f16(a, b)
}

/// [`multiply_halves`] where they may not.
#[inline(always)]
#[track_caller]
fn accumulate_then_round(a: [u32; 4], b: [u32; 2]) -> [u32; 2] {
    let [w, x, y, z] = multiply_add(a, b, [0.0; 4]);
    [pack_halves(w, x), pack_halves(y, z)]
}

/// Four 8 × 8 fragments from rows in shared memory, of eight halves each: row i of fragment k is
/// word `row` of `rows` as lane 8k + i has it. `ldmatrix`; all lanes have to call it.
///
/// # Safety
/// As of [`Shared::load`], for the rows of all lanes.
#[inline(always)]
#[track_caller]
pub unsafe fn load_rows(rows: Shared<Vec4<u32>>, row: u32) -> [u32; 4] {
    // SAFETY: the caller's promise.
    unsafe { backend::load_rows(rows.address_of(row)) }
}

/// As [`load_rows`], of the transposed fragments.
///
/// # Safety
/// As of [`load_rows`].
#[inline(always)]
#[track_caller]
pub unsafe fn load_columns(columns: Shared<Vec4<u32>>, column: u32) -> [u32; 4] {
    // SAFETY: the caller's promise.
    unsafe { backend::load_columns(columns.address_of(column)) }
}

/// The transpose of an 8 × 8 fragment of halves: `movmatrix`. All lanes have to call it.
#[inline(always)]
#[track_caller]
pub fn transpose(fragment: u32) -> u32 {
    backend::transpose_f16(fragment)
}

/// Two numbers rounded to halves, the first in the low bits.
#[inline(always)]
pub fn pack_halves(low: f32, high: f32) -> u32 {
    backend::pack_f16(low, high)
}

/// The halves of a pair.
#[inline(always)]
pub fn unpack_halves(pair: u32) -> [f32; 2] {
    backend::unpack_f16(pair)
}

/// `a · b + c` of each two halves, rounded once.
#[inline(always)]
pub fn fma_halves(a: u32, b: u32, c: u32) -> u32 {
    backend::fma_f16_pair(a, b, c)
}

/// The smaller of each two halves; where one is not a number, the other.
#[inline(always)]
pub fn min_halves(a: u32, b: u32) -> u32 {
    backend::min_f16(a, b)
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;
    use crate::emu::{Launch, launch};
    use crate::shared::dynamic_shared_mem;
    use crate::warp::{lane_id, sync_warp};

    fn on_a_warp(kernel: impl Fn()) {
        let config = Launch {
            kernel: "fragments",
            grid: [1; 3],
            block: [32, 1, 1],
            shared_bytes: 512,
            memory: &[],
            seed: 3,
        };
        launch(&config, &kernel).unwrap();
    }

    /// Small integers: every product and sum of them is exact, in any order.
    fn a(row: u32, column: u32) -> f32 {
        ((row * 7 + column * 3) % 17) as f32 - 8.0
    }

    fn b(row: u32, column: u32) -> f32 {
        ((row * 5 + column * 11) % 13) as f32 - 6.0
    }

    fn c(row: u32, column: u32) -> f32 {
        (100 * row + column) as f32
    }

    #[test]
    fn fragments_multiply_as_matrices_do() {
        on_a_warp(|| {
            let (r, q) = (lane_id() / 4, lane_id() % 4);
            let of_a = |row, column| pack_halves(a(row, column), a(row, column + 1));
            let of_b = |row, column| pack_halves(b(row, column), b(row + 1, column));
            let columns = [2 * q, 2 * q + 8];
            let a_fragment = [
                of_a(r, columns[0]),
                of_a(r + 8, columns[0]),
                of_a(r, columns[1]),
                of_a(r + 8, columns[1]),
            ];
            let b_fragment = columns.map(|row| of_b(row, r));
            let places = [
                (r, 2 * q),
                (r, 2 * q + 1),
                (r + 8, 2 * q),
                (r + 8, 2 * q + 1),
            ];
            let d = multiply_add(a_fragment, b_fragment, places.map(|(i, j)| c(i, j)));
            for (d, (i, j)) in d.into_iter().zip(places) {
                let product: f32 = (0..16).map(|k| a(i, k) * b(k, j)).sum();
                assert_eq!(d, product + c(i, j), "row {i}, column {j}");
            }
        });
    }

    /// Equality of sums rounded by tensor cores and by a conversion: their values are the same where single
    /// precision has them exactly, and they are those of [`multiply_add`].
    #[test]
    fn sums_are_rounded_to_halves() {
        on_a_warp(|| {
            let lane = lane_id();
            // 2¹² at most, in steps of 2⁻⁴: more bits than a half has.
            let of = |k: u32| pack_halves(a(lane, k) + 0.25, a(k, lane) / 4.0);
            let (left, right) = ([of(0), of(1), of(2), of(3)], [of(4), of(5)]);
            let [w, x, y, z] = multiply_add(left, right, [0.0; 4]);
            let rounded = [pack_halves(w, x), pack_halves(y, z)];
            assert!(rounded.map(unpack_halves) != [[w, x], [y, z]] || lane > 0);
            assert_eq!(accumulate_halves(left, right), rounded);
            assert_eq!(accumulate_then_round(left, right), rounded);
            assert_eq!(multiply_halves(left, right), rounded);
        });
    }

    #[test]
    fn rows_in_shared_memory_become_fragments() {
        on_a_warp(|| {
            let lane = lane_id();
            let rows = dynamic_shared_mem::<Vec4<u32>>();
            let pair = |row: u32, column: u32| pack_halves(a(row, column), a(row, column + 1));
            let [x, y, z, w] = [0, 2, 4, 6].map(|column| pair(lane, column));
            let (r, q) = (lane / 4, lane % 4);
            // Fragments in reverse, to see that each lane's row counts.
            let row = 8 * (3 - lane / 8) + lane % 8;
            // SAFETY: each lane fills its own row before the barrier.
            let (loaded, transposed) = unsafe {
                rows.store(lane, Vec4 { x, y, z, w });
                sync_warp();
                (load_rows(rows, row), load_columns(rows, row))
            };
            for k in 0..4 {
                let first = 8 * (3 - k);
                let fragment = pair(first + r, 2 * q);
                assert_eq!(loaded[k as usize], fragment);
                assert_eq!(transposed[k as usize], transpose(fragment));
            }
        });
    }

    #[test]
    fn a_fragment_is_transposed() {
        on_a_warp(|| {
            let (r, q) = (lane_id() / 4, lane_id() % 4);
            let fragment = pack_halves(a(r, 2 * q), a(r, 2 * q + 1));
            let expected = pack_halves(a(2 * q, r), a(2 * q + 1, r));
            assert_eq!(transpose(fragment), expected);
            assert_eq!(transpose(expected), fragment);
        });
    }

    #[test]
    fn halves_are_packed_rounded_and_compared() {
        let third = 1.0_f32 / 3.0;
        let [low, high] = unpack_halves(pack_halves(third, -2.0));
        assert!((low - third).abs() <= third / 2048.0 && low != third && high == -2.0);
        assert_eq!(pack_halves(1.0, 0.0), 0x3c00);
        assert_eq!(unpack_halves(pack_halves(1e6, 1e-9)), [f32::INFINITY, 0.0]);
        let clamped = min_halves(pack_halves(1e6, 3.0), pack_halves(7.0, 7.0));
        assert_eq!(unpack_halves(clamped), [7.0, 3.0]);
        // (1 + 2⁻¹⁰)² less all but its last bit: the product is not rounded.
        let (x, bit) = (1.0 + 1.0 / 1024.0, 1.0 / 1_048_576.0);
        let rest = fma_halves(
            pack_halves(x, 3.0),
            pack_halves(x, 5.0),
            pack_halves(-1.0 - 2.0 / 1024.0, 1.0),
        );
        assert_eq!(unpack_halves(rest), [bit, 16.0]);
        let clamped = min_halves(pack_halves(f32::NAN, -3.0), pack_halves(7.0, 7.0));
        assert_eq!(unpack_halves(clamped), [7.0, -3.0]);
    }
}
