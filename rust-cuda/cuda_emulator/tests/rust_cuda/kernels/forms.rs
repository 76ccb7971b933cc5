//! The ways in which Rust's expressions reach memory.

use core::ptr;
use cuda_std::{kernel, shared_array, thread};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pair {
    pub first: f32,
    pub second: [f32; 2],
}

impl Pair {
    pub fn sum(&self) -> f32 {
        self.first + self.second[0] + self.second[1]
    }
}

const TABLE: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
static STEPS: [usize; 2] = [2, 3];

/// Gives element 0 + 1 + … of `out` by many forms of reads and writes.
#[kernel]
pub unsafe fn forms(pairs: &[Pair], out: *mut f32, state: *mut Pair) {
    let shared = shared_array![[f32; 2]; 2];
    let t = thread::thread_idx_x() as usize;
    (*shared.add(t))[0] = 1.0;
    (*shared.add(t))[1] = TABLE[t];
    thread::sync_threads();
    if t != 0 {
        return;
    }
    // Parts of what a reference, a pointer or a local variable has.
    let pair = &pairs[1];
    *out.add(0) = pair.first + pair.second[1];
    *out.add(1) = (*state).first + (*state.add(1)).second[0];
    let mut local = [0.0_f32; 4];
    local[STEPS[0]] += 2.0;
    local[3] = local[2].sqrt().max(pairs[0].first);
    *out.add(2) = local[2] + local[3];
    // Values as a whole, by copies and patterns.
    let Pair {
        first,
        second: [x, y],
    } = *state;
    let copy = pairs[1];
    *out.add(3) = first + x + y + copy.sum() + pairs[1].sum() + (*state).sum();
    // Compound assignments, tuples, closures, loops, functions of pointers.
    (*state).second[1] += 1.0;
    (*out.add(4), *out.add(5)) = ((*shared.add(1))[1], (*shared)[0]);
    let read = |i: usize| *out.add(i);
    *out.add(6) = read(4) - -read(5);
    let mut sum = 0.0;
    for pair in pairs.iter() {
        sum += pair.first;
    }
    for x in &(*state).second {
        sum += *x;
    }
    ptr::write(out.add(7), sum);
    out.add(8).write(ptr::read(out.add(7)) * 2.0);
    *out.add(9) = match *out.add(8) {
        x if x > 0.0 => x,
        _ => 0.0,
    };
    let Some(last) = pairs.last() else { return };
    assert_eq!(last.first, pairs[1].first, "the last is {}", pairs[1].first);
    let boxed = Box::new(*out);
    *out.add(10) = *boxed + TABLE[1..3].iter().sum::<f32>() + f32::from(u8::from(TABLE[0] < *out));
}
