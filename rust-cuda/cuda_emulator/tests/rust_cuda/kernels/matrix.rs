//! Products of matrices by tiles in shared memory, declared in both of Rust-CUDA's ways.

use cuda_std::{address_space, kernel, shared_array, thread};

const TILE: usize = 8;

/// C = α A B + β C of an m × k and a k × n matrix, by rows.
#[kernel]
#[allow(improper_ctypes_definitions, clippy::missing_safety_doc)]
pub unsafe fn product(
    a: &[f32],
    b: &[f32],
    c: *mut f32,
    m: usize,
    n: usize,
    k: usize,
    alpha: f32,
    beta: f32,
) {
    #[address_space(shared)]
    static mut TILE_A: [f32; TILE * TILE] = [0.; TILE * TILE];
    #[address_space(shared)]
    static mut TILE_B: [[f32; TILE]; TILE] = [[0.; TILE]; TILE];

    let tx = thread::thread_idx_x() as usize;
    let ty = thread::thread_idx_y() as usize;
    let row = thread::block_idx_x() as usize * TILE + ty;
    let column = thread::block_idx_y() as usize * TILE + tx;

    let mut sum = 0.0f32;
    for first in (0..k).step_by(TILE) {
        let (of_a, of_b) = (first + tx, first + ty);
        unsafe {
            TILE_A[ty * TILE + tx] = if row < m && of_a < k {
                a[row * k + of_a]
            } else {
                0.0
            };
            TILE_B[ty][tx] = if column < n && of_b < k {
                b[of_b * n + column]
            } else {
                0.0
            };
        }
        thread::sync_threads();
        for i in 0..TILE {
            sum += unsafe { TILE_A[ty * TILE + i] * TILE_B[i][tx] };
        }
        thread::sync_threads();
    }
    if row < m && column < n {
        let c = unsafe { c.add(row * n + column) };
        unsafe { *c = alpha * sum + beta * *c };
    }
}

/// The square of an n × n matrix, n a multiple of the tile's side; the barrier behind the loop is forgotten.
#[kernel]
#[allow(clippy::missing_safety_doc)]
pub unsafe fn square_without_barrier(a: *const f32, c: *mut f32, n: usize) {
    let tile_a = shared_array![f32; TILE * TILE];
    let tile_b = shared_array![f32; TILE * TILE];
    let tx = thread::thread_idx_x() as usize;
    let ty = thread::thread_idx_y() as usize;
    let i = thread::index_2d();
    let (row, column) = (i.y as usize, i.x as usize);
    let mut sum = 0.0;
    for first in (0..n).step_by(TILE) {
        *tile_a.add(ty * TILE + tx) = *a.add(row * n + first + tx); // fills
        *tile_b.add(ty * TILE + tx) = *a.add((first + ty) * n + column);
        thread::sync_threads();
        for i in 0..TILE {
            sum += *tile_a.add(ty * TILE + i) * *tile_b.add(i * TILE + tx); // uses
        }
    }
    *c.add(row * n + column) = sum;
}
