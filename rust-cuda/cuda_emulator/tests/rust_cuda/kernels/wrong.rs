//! Kernels with one mistake each.

use cuda_std::{checked, kernel, shared_array, thread, warp};

#[derive(Clone, Copy)]
pub struct Body {
    pub position: [f32; 3],
    pub mass: f32,
}

/// The last thread leaves before the barrier.
#[kernel]
pub unsafe fn diverges(out: *mut u32) {
    let t = thread::thread_idx_x();
    if t == 31 {
        return;
    }
    thread::sync_threads(); // waits
    *out.add(t as usize) = t;
}

/// The last element of the array is never written.
#[kernel]
pub unsafe fn reads_nothing(out: *mut u32) {
    let shared = shared_array![u32; 32];
    let t = thread::thread_idx_x() as usize;
    if t < 31 {
        *shared.add(t) = 1;
    }
    thread::sync_threads();
    *out.add(t) = *shared.add(31 - t); // reads
}

/// The array is one too short.
#[kernel]
pub unsafe fn shared_too_short() {
    let shared = shared_array![u32; 31];
    *shared.add(thread::thread_idx_x() as usize) = 1;
}

/// Takes a wild pointer by a reference.
#[kernel]
pub unsafe fn far_outside(out: *mut u32) {
    let element = &mut *out.wrapping_add(1 << 40); // refers
    *element = 1;
}

/// Takes an element without a check.
#[kernel]
pub unsafe fn unchecked(values: &[u32], out: *mut u32) {
    *out = *values.get_unchecked(values.len() + 1); // takes
}

/// All threads write to the field of one body, through a function.
#[kernel]
pub unsafe fn races_in_a_function(bodies: *mut Body) {
    let body = &mut *bodies;
    set_mass(body, thread::thread_idx_x() as f32 + body.position[0]);
}

#[checked]
fn set_mass(body: &mut Body, mass: f32) {
    body.mass = mass; // sets
}

#[checked]
impl Body {
    /// All threads push the same body.
    pub fn push(&mut self, by: f32) {
        self.position[1] += by; // pushes
    }
}

/// A method of a type, and elements of an array in it.
#[kernel]
pub unsafe fn races_in_a_method(bodies: *mut Body) {
    (*bodies).push(1.0);
}

#[checked]
mod helpers {
    pub fn first(values: &[u32], at: usize) -> u32 {
        values[at] // looks
    }
}

/// One thread writes what all read in a function of a module.
#[kernel]
pub unsafe fn races_in_a_module(values: *mut u32) {
    let t = thread::thread_idx_x();
    if t == 0 {
        *values = t;
    }
    let slice = core::slice::from_raw_parts(values, 2);
    *values.add(2 + t as usize) = helpers::first(slice, 0);
}

/// Half a warp votes.
#[kernel]
pub unsafe fn votes_by_halves() {
    warp::warp_vote_any(0xffff, true);
}

/// An index of a slice that is checked on a GPU, too.
#[kernel]
pub unsafe fn panics(values: &[u32], out: *mut u32) {
    *out = values[values.len()];
}
