//! Support of the emulator's tests: small launches, and device functions without `unsafe`.

use super::*;

mod behaviour;
mod faults;
mod races;

/// The launch of a test: everything but the kernel.
struct Case<'a> {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    memory: &'a [Region<'a>],
}

/// One block of `threads`, with 256 bytes of shared memory.
fn block(threads: u32) -> Case<'static> {
    grid(1, threads)
}

fn grid(blocks: u32, threads: u32) -> Case<'static> {
    Case {
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        shared_bytes: 256,
        memory: &[],
    }
}

impl<'a> Case<'a> {
    fn over(self, memory: &'a [Region<'a>]) -> Self {
        Self { memory, ..self }
    }

    fn run(&self, seed: u64, kernel: impl Fn()) -> Result<(), Fault> {
        let Self {
            grid,
            block,
            shared_bytes,
            memory,
        } = *self;
        launch(
            &Launch {
                kernel: "planted",
                grid,
                block,
                shared_bytes,
                memory,
                seed,
            },
            &kernel,
        )
    }

    /// Passes in every order.
    fn passes(&self, kernel: impl Fn()) {
        for seed in 0..8 {
            self.run(seed, &kernel).unwrap();
        }
    }

    /// Fails in every order; the fault in natural order, whose text must contain all of `words`.
    fn fails(&self, words: &[&str], kernel: impl Fn()) -> Fault {
        for seed in 1..8 {
            self.run(seed, &kernel).unwrap_err();
        }
        let fault = self.run(0, &kernel).unwrap_err();
        let text = fault.to_string();
        for word in words.iter().chain(&["`planted`"]) {
            assert!(text.contains(word), "no {word:?} in: {text}");
        }
        fault
    }
}

fn x() -> u32 {
    thread_idx(0)
}

fn read(address: u32) -> u32 {
    // SAFETY: every pattern of bits is a `u32`.
    unsafe { shared_load(address) }
}

fn write(address: u32, value: u32) {
    // SAFETY: `u32` has no padding.
    unsafe { shared_store(address, value) }
}

fn get(pointer: *const u32, index: u32) -> u32 {
    // SAFETY: every test's pointers come from a region of `u32`.
    unsafe { global_load(pointer.wrapping_add(index as usize)) }
}

fn put(pointer: *mut u32, index: u32, value: u32) {
    // SAFETY: as in `get`.
    unsafe { global_store(pointer.wrapping_add(index as usize), value) }
}

fn add(pointer: *mut u32, index: u32, value: u32) -> u32 {
    // SAFETY: as in `get`.
    unsafe { global_atomic(pointer.wrapping_add(index as usize), |old: u32| old + value) }
}
