//! Addition of vectors, as Rust-CUDA's guide begins.

use cuda_std::prelude::*;

#[kernel]
#[allow(improper_ctypes_definitions, clippy::missing_safety_doc)]
pub unsafe fn add(a: &[f32], b: &[f32], c: *mut f32) {
    let idx = thread::index_1d() as usize;
    if idx < a.len() {
        let elem = &mut *c.add(idx);
        *elem = a[idx] + b[idx];
    }
}

/// Forgets the guard.
#[kernel]
#[allow(improper_ctypes_definitions, clippy::missing_safety_doc)]
pub unsafe fn add_all(a: *const f32, b: *const f32, c: *mut f32) {
    let idx = thread::index_1d() as usize;
    *c.add(idx) = *a.add(idx) + *b.add(idx);
}
