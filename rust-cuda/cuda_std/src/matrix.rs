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
//!
//! and an accumulator of four `f32`, C or D, 16 × 8, the elements (r, 2q), (r, 2q + 1), (r + 8, 2q)
//! and (r + 8, 2q + 1). So D of one product, rounded to halves, is half of A of another.

use crate::backend;

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

/// The smaller of each two halves; where one is not a number, the other.
#[inline(always)]
pub fn min_halves(a: u32, b: u32) -> u32 {
    backend::min_f16(a, b)
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;
    use crate::emu::{Launch, launch};
    use crate::warp::lane_id;

    fn on_a_warp(kernel: impl Fn()) {
        let config = Launch {
            kernel: "fragments",
            grid: [1; 3],
            block: [32, 1, 1],
            shared_bytes: 0,
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
        let clamped = min_halves(pack_halves(f32::NAN, -3.0), pack_halves(7.0, 7.0));
        assert_eq!(unpack_halves(clamped), [7.0, -3.0]);
    }
}
