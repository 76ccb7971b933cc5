//! How fast the emulator runs: threads a second of three kernels, with accesses checked and unchecked.
//!
//! `cargo run -p allpairs-cuda-emulator --example throughput`

extern crate cuda_emulator as cuda_std;

// Kernels that are not timed are dead.
#[allow(dead_code)]
#[path = "../tests/rust_cuda/kernels/mod.rs"]
mod kernels;

use cuda_std::emu::{Buffer, Failure, Launch};
use kernels::{add, matrix, sum};
use std::time::{Duration, Instant};

/// The best of this number of runs counts.
const RUNS: u32 = 7;

fn main() -> Result<(), Failure> {
    println!(
        "kernel                             threads   checked   threads/s   unchecked   overhead"
    );
    const N: usize = 1 << 18;
    let values = vec![1.0_f32; N];
    let (a, b) = (Buffer::new("a", &values), Buffer::new("b", &values));
    let c = Buffer::new("c", &values);
    let sums = Buffer::new("sums", vec![0.0_f32; N / sum::THREADS]);
    // SAFETY: the buffers live longer than the launch, and have the sizes that the kernel asks for.
    report("sum of two vectors", N / 256, 256, || unsafe {
        add::add(a.slice(), b.slice(), c.pointer())
    })?;
    report(
        "sum of a block, by a tree",
        N / sum::THREADS,
        sum::THREADS,
        // SAFETY: the buffers live longer than the launch, and have the sizes that the kernel asks for.
        || unsafe { sum::sum(a.slice(), sums.pointer()) },
    )?;
    const SIDE: usize = 128;
    let grid = (SIDE as u32 / 8, SIDE as u32 / 8);
    let launch = Launch::new(grid, (8, 8));
    report_launch(
        "product of 128 x 128 matrices",
        launch,
        SIDE * SIDE,
        // SAFETY: the buffers live longer than the launch, and have the sizes that the kernel asks for.
        || unsafe {
            matrix::product(
                a.slice(),
                b.slice(),
                c.pointer(),
                SIDE,
                SIDE,
                SIDE,
                1.0,
                0.0,
            )
        },
    )
}

fn report(what: &str, blocks: usize, threads: usize, kernel: impl Fn()) -> Result<(), Failure> {
    let launch = Launch::new(blocks as u32, threads as u32);
    report_launch(what, launch, blocks * threads, kernel)
}

fn report_launch(
    what: &str,
    launch: Launch,
    threads: usize,
    kernel: impl Fn(),
) -> Result<(), Failure> {
    let best = |launch: &Launch| -> Result<Duration, Failure> {
        let mut best = Duration::MAX;
        for _ in 0..RUNS {
            let start = Instant::now();
            launch.run(&kernel)?;
            best = best.min(start.elapsed());
        }
        Ok(best)
    };
    let checked = best(&launch)?;
    // SAFETY: the launch before ran the same kernels, and found no fault.
    let unchecked = best(&unsafe { launch.unchecked() })?;
    println!(
        "{what:<33} {threads:>8} {:>6.1} ms {:>11.2e} {:>8.1} ms {:>9.2}",
        checked.as_secs_f64() * 1e3,
        threads as f64 / checked.as_secs_f64(),
        unchecked.as_secs_f64() * 1e3,
        checked.as_secs_f64() / unchecked.as_secs_f64(),
    );
    Ok(())
}
