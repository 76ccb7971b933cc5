//! How fast the emulator runs: threads a second of three kernels, with accesses checked and unchecked.
//!
//! `cargo run -p allpairs-cuda-emulator --example throughput`
#![allow(dead_code, missing_docs, unsafe_op_in_unsafe_fn, unreachable_pub)]
#![allow(
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    clippy::undocumented_unsafe_blocks
)]

extern crate cuda_emulator as cuda_std;

#[path = "../tests/rust_cuda/kernels/add.rs"]
mod add;
#[path = "../tests/rust_cuda/kernels/matrix.rs"]
mod matrix;
#[path = "../tests/rust_cuda/kernels/sum.rs"]
mod sum;

use cuda_std::emu::{Buffer, Failure, Launch};
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
    report("sum of two vectors", N / 256, 256, || unsafe {
        add::add(a.slice(), b.slice(), c.pointer())
    })?;
    report(
        "sum of a block, by a tree",
        N / sum::THREADS,
        sum::THREADS,
        || unsafe { sum::sum(a.slice(), sums.pointer()) },
    )?;
    const SIDE: usize = 128;
    let grid = (SIDE as u32 / 8, SIDE as u32 / 8);
    let launch = Launch::new(grid, (8, 8));
    report_launch(
        "product of 128 x 128 matrices",
        launch,
        SIDE * SIDE,
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
