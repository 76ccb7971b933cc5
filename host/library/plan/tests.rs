//! Do plans cover all pairs, and refuse what cannot be?

use super::*;
use crate::variants::Reducer;
use gpu_kernels::entries;
use gpu_kernels::schedule::Reduction;

const LIMITS: Limits = Limits {
    block_threads: 1024,
    shared_bytes: 48 * 1024,
};

fn entry(symbol: &str) -> &'static Entry {
    entries::all()
        .find(|entry| entry.symbol == symbol)
        .expect("a listed entry")
}

/// Every target has exactly one thread: blocks cover 0..n, and none lies beyond it whole.
#[test]
fn every_target_has_one_thread() {
    let limits = Limits {
        shared_bytes: u32::MAX,
        ..LIMITS
    };
    for entry in entries::all() {
        for n in (1..=300).chain([12_345, 262_144, 262_145, 100_000_007]) {
            for threads in [32, 64, 256, 512] {
                let plan = one_dimensional(entry, n, threads, &limits).expect("a plan");
                let covered = u64::from(plan.grid[0]) * u64::from(threads);
                assert!(covered >= u64::from(n) && covered < u64::from(n + threads));
                assert_eq!((plan.grid[1], plan.grid[2]), (1, 1));
                assert_eq!(plan.block, [threads, 1, 1]);
            }
        }
    }
}

/// The pairs that the launches of a two-dimensional plan cover: all, once.
#[test]
fn two_dimensional_blocks_cover_all_pairs() {
    let kernel = entry("force_grid2d_shared_float4_f32_approximate_u16_gravity");
    let by_kernel = [Reduction::Serial, Reduction::MatrixVector, Reduction::Tree];
    let reducers = by_kernel.map(Reducer::Kernel).into_iter();
    for reducer in reducers.chain([Reducer::Library]) {
        for (n, len, luf) in [(1, 1, 1), (33, 4, 8), (1000, 4, 256), (1025, 1, 1024)] {
            let split = Split { len, luf, reducer };
            let plan = force(kernel, n, 256, Some(split), &LIMITS).expect("a plan");
            let Step::Launch { launch, .. } = &plan.steps[0] else {
                panic!("a launch comes first")
            };
            let sources = launch.grid[1] * len * luf;
            let targets = launch.grid[0] * launch.block[1];
            assert!(sources >= n && sources - n < len * luf);
            assert!(targets >= n && targets - n < launch.block[1]);
            assert_eq!(plan.split.partials, launch.grid[1] * len);
            let stride = n.next_multiple_of(32) as usize;
            let vectors = stride * plan.split.partials as usize;
            assert_eq!(plan.scratch[0], (Buffer::partial, vectors * 16));
        }
    }
}

#[test]
fn impossible_splits_are_refused_with_the_numbers() {
    let kernel = entry("force_grid2d_shared_float4_f32_approximate_u16_gravity");
    let message = |n, len, luf| {
        let split = Split {
            len,
            luf,
            reducer: Reducer::Kernel(Reduction::Serial),
        };
        let plan = force(kernel, n, 256, Some(split), &LIMITS);
        plan.expect_err("a refusal").to_string()
    };
    let large = message(5, 4, 512);
    assert!(large.contains("len = 4 and luf = 512") && large.contains("2048"));
    assert!(message(5, 3, 8).contains("256 threads"));
    assert!(message(5, 0, 8).contains("len = 0"));
    assert!(message(5, 4, 0).contains("luf = 0"));
    assert!(message(1 << 20, 1, 1).contains("1048576 partial sums"));
}

/// Whole blocks and the rest, each launched only where it has bodies.
#[test]
fn a_hybrid_plan_covers_every_target_once() {
    let kernel = entry("force_hybrid_float4_f32_approximate_u32_attract_repel");
    for n in [1, 255, 256, 257, 512, 1000] {
        let plan = force(kernel, n, 256, None, &LIMITS).expect("a plan");
        let launches: Vec<_> = plan
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Launch { entry, launch, .. } | Step::Beside { entry, launch, .. } => {
                    Some((entry.symbol, launch.grid[0]))
                }
                Step::Join => None,
                other => panic!("{other:?}"),
            })
            .collect();
        let beside = |step: &&Step| matches!(step, Step::Beside { .. } | Step::Join);
        let both = if n > 256 && n % 256 > 0 { 2 } else { 0 };
        assert_eq!(plan.steps.iter().filter(beside).count(), both);
        let whole = launches.iter().find(|(symbol, _)| *symbol == kernel.symbol);
        let rest = launches.iter().find(|(symbol, _)| *symbol != kernel.symbol);
        assert_eq!(whole.map_or(0, |(_, grid)| *grid), n / 256);
        assert_eq!(rest.map(|(_, grid)| *grid), (n % 256 > 0).then_some(1));
    }
}

#[test]
fn refuses_with_the_numbers() {
    let tiled = entry("force_tiled_float4_f32_exact_gravity");
    let energy = entry("energy_float4_f32_gravity");
    let message = |entry, n, threads, limits: &Limits| {
        one_dimensional(entry, n, threads, limits)
            .expect_err("a refusal")
            .to_string()
    };
    assert!(message(tiled, 0, 256, &LIMITS).contains("no bodies"));
    assert!(message(tiled, 5, 100, &LIMITS).contains("multiple of 32 threads, not 100"));
    assert!(message(tiled, 5, 0, &LIMITS).contains("not 0"));
    assert!(message(tiled, 5, 2048, &LIMITS).contains("2048"));
    assert!(message(energy, 5, 96, &LIMITS).contains("power of two"));
    let tight = Limits {
        shared_bytes: 4096,
        ..LIMITS
    };
    assert!(message(tiled, 5, 512, &tight).contains("8192 bytes"));
    assert!(stride(tiled, usize::MAX).is_err());
    assert!(stride(tiled, 1 << 29).is_err());
    assert_eq!(stride(tiled, 33), Ok(64));
}

/// Of the kernels that `auto` takes for many systems, those that keep a system in a block have room for it on any device.
#[test]
fn systems_fit_into_the_blocks_that_are_chosen_for_them() {
    use crate::variants::preferred::{ForceAccuracy, of_systems};
    for accuracy in ForceAccuracy::ALL {
        let in_block = |&n: &usize| {
            let variant = crate::variants::find(of_systems(n, accuracy)[0]).expect("listed");
            assert!(
                n <= systems::most_bodies(variant),
                "{} of {n}",
                variant.name
            );
            variant.keeps_systems_in_blocks()
        };
        let most = if accuracy == ForceAccuracy::Double {
            256
        } else {
            512
        };
        assert_eq!((1..=2048).filter(in_block).max(), Some(most));
    }
}
