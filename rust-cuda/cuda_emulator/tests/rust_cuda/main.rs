//! Kernels in the ways of Rust-CUDA, unchanged, on the emulator: right results, and mistakes that are found.

extern crate cuda_emulator as cuda_std;

mod kernels;

use cuda_std::atomic::AtomicF32;
use cuda_std::emu::{Buffer, Failure, Fault, Launch};
use cuda_std::warp::{self, WarpReductionOp};
use cuda_std::{kernel, thread};
use kernels::{add, forms, matrix, sum, wrong};

/// Number of the line with this comment in a kernel's file.
fn line(file: &str, text: &str, comment: &str) -> String {
    let found: Vec<usize> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.ends_with(&format!("// {comment}")))
        .map(|(index, _)| index + 1)
        .collect();
    let [line] = found[..] else {
        panic!("{} lines are marked {comment:?}", found.len());
    };
    format!("{file}:{line}:")
}

/// The text of the fault of a launch, in which all of `words` are found, in this and every other order.
#[track_caller]
fn finds(launch: Launch, words: &[&str], kernel: impl Fn()) -> Fault {
    let mut faults: Vec<Fault> = (0..4)
        .map(|seed| {
            let launch = launch.clone().seed(seed);
            launch.run(&kernel).expect_err("the mistake is found").0
        })
        .collect();
    let text = faults[0].to_string();
    let again = launch.run(&kernel).unwrap_err();
    assert_eq!(format!("{again:?}"), text);
    for word in words {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
    faults.swap_remove(0)
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i % 17) as f32 - 3.5).collect()
}

#[test]
fn vectors_are_added() -> Result<(), Failure> {
    let (a, b) = (numbers(1000), numbers(1003));
    let (of_a, of_b) = (Buffer::new("a", &a), Buffer::new("b", &b[3..]));
    let c = Buffer::new("c", [0.0_f32; 1000]);
    for seed in 0..4 {
        Launch::new(8, 128)
            .seed(seed)
            // SAFETY: the buffers live longer than the launch, and have the sizes that the kernel asks for.
            .run(|| unsafe { add::add(of_a.slice(), of_b.slice(), c.pointer()) })?;
    }
    let sums: Vec<f32> = a.iter().zip(&b[3..]).map(|(a, b)| a + b).collect();
    assert_eq!(c.to_vec(), sums);

    // Without the guard the first access of the first thread that has no element is reported.
    let short = Buffer::new("short", &a);
    let words = [
        "global memory out of bounds",
        "`add_all`",
        "block [7, 0, 0], thread [104, 0, 0]",
        "add.rs:",
        "read of 4 bytes",
        "offset 4000 in region `short`, which has 4000 bytes",
    ];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(Launch::new(8, 128).name("add_all"), &words, || unsafe {
        add::add_all(short.pointer(), short.pointer(), c.pointer())
    });
    Ok(())
}

#[test]
fn matrices_are_multiplied_by_tiles() -> Result<(), Failure> {
    let (m, n, k) = (19, 10, 21);
    let (a, b, c) = (numbers(m * k), numbers(k * n), numbers(m * n));
    let (of_a, of_b, of_c) = (
        Buffer::new("a", &a),
        Buffer::new("b", &b),
        Buffer::new("c", &c),
    );
    let grid = (m.div_ceil(8) as u32, n.div_ceil(8) as u32);
    // SAFETY: the buffers live longer than the launch, and have the sizes that the kernel asks for.
    Launch::new(grid, (8, 8)).seed(3).run(|| unsafe {
        let (a, b) = (of_a.slice(), of_b.slice());
        matrix::product(a, b, of_c.pointer(), m, n, k, 2.0, -1.0);
    })?;
    for (index, found) in of_c.to_vec().into_iter().enumerate() {
        let (row, column) = (index / n, index % n);
        let sum: f32 = (0..k).map(|i| a[row * k + i] * b[i * n + column]).sum();
        assert_eq!(found, 2.0 * sum - c[index], "row {row}, column {column}");
    }
    Ok(())
}

#[test]
fn a_missing_barrier_between_tiles_is_found() {
    let (a, c) = (
        Buffer::new("a", numbers(256)),
        Buffer::new("c", numbers(256)),
    );
    let text = include_str!("kernels/matrix.rs");
    let lines = ["fills", "uses"].map(|comment| line("matrix.rs", text, comment));
    let words = [
        "race",
        "read at byte 0 of the shared array of",
        lines[1].as_str(),
        "is not ordered after the write",
        lines[0].as_str(),
        "missing sync_threads",
    ];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(Launch::new((2, 2), (8, 8)), &words, || unsafe {
        matrix::square_without_barrier(a.pointer(), c.pointer(), 16)
    });
    // With a single tile there is no next one.
    let one = Launch::new(1, (8, 8))
        // SAFETY: the buffers live longer than the launch, and have the sizes that the kernel asks for.
        .run(|| unsafe { matrix::square_without_barrier(a.pointer(), c.pointer(), 8) });
    assert!(one.is_ok());
}

#[test]
fn sums_are_right_and_the_planted_race_is_found() -> Result<(), Failure> {
    let values = numbers(200);
    let of_values = Buffer::new("values", &values);
    let sums = Buffer::new("sums", [0.0_f32; 4]);
    let launch = Launch::new(4, sum::THREADS as u32);
    for seed in 0..4 {
        let launch = launch.clone().seed(seed);
        // SAFETY: the buffers live longer than the launch, and have the sizes that the kernel asks for.
        launch.run(|| unsafe { sum::sum(of_values.slice(), sums.pointer()) })?;
        let expected: Vec<f32> = values.chunks(64).map(|chunk| chunk.iter().sum()).collect();
        assert_eq!(sums.to_vec(), expected);
    }

    let text = include_str!("kernels/sum.rs");
    let lines =
        ["reads the partner's", "writes its own"].map(|comment| line("sum.rs", text, comment));
    let words = ["race", lines[0].as_str(), lines[1].as_str()];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    let fault = finds(launch, &words, || unsafe {
        sum::sum_with_race(of_values.slice(), sums.pointer())
    });
    // The later of the two is the place of the fault, and the earlier one the other line.
    let Fault::Race {
        place, other_at, ..
    } = &fault
    else {
        panic!("{fault}");
    };
    assert!(
        place.at.contains(&lines[1]) && other_at.contains(&lines[0]),
        "{fault}"
    );
    Ok(())
}

#[test]
fn shuffles_and_atomics_add_up() -> Result<(), Failure> {
    let values: Vec<f32> = (0..500).map(|i| (i % 30) as f32).collect();
    let of_values = Buffer::new("values", &values);
    let total = Buffer::new("total", [0.0_f32]);
    let bins = Buffer::new("bins", [0_u32; 10]);
    Launch::new(4, 128)
        .shared_bytes(16)
        .seed(5)
        // SAFETY: the buffers live longer than the launch, and all accesses to the one of the sum are atomic.
        .run(|| unsafe {
            sum::total(of_values.slice(), &*total.pointer().cast::<AtomicF32>());
            sum::histogram(of_values.slice(), bins.pointer());
        })?;
    assert_eq!(total.to_vec(), [values.iter().sum::<f32>()]);
    let expected: Vec<u32> = (0..10)
        .map(|bin| {
            values
                .iter()
                .filter(|value| **value as u32 % 10 == bin)
                .count() as u32
        })
        .collect();
    assert_eq!(bins.to_vec(), expected);

    // Four warps need sixteen bytes.
    let words = [
        "shared memory out of bounds",
        "byte 12 of shared memory",
        "12 bytes",
    ];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(Launch::new(1, 128).shared_bytes(12), &words, || unsafe {
        sum::total(of_values.slice(), &*total.pointer().cast::<AtomicF32>())
    });
    Ok(())
}

#[test]
fn every_form_of_an_access_is_the_same_as_without_the_emulator() -> Result<(), Failure> {
    let pair = |first, x, y| forms::Pair {
        first,
        second: [x, y],
    };
    let pairs = Buffer::new("pairs", [pair(1.0, 2.0, 3.0), pair(4.0, 5.0, 6.0)]);
    let state = Buffer::new("state", [pair(0.5, 0.25, 0.125), pair(7.0, 8.0, 9.0)]);
    let out = Buffer::new("out", [0.0_f32; 11]);
    // SAFETY: the buffers live longer than the launch, and have the sizes that the kernel asks for.
    Launch::new(1, 2).run(|| unsafe {
        forms::forms(pairs.slice(), out.pointer(), state.pointer());
    })?;
    let sum = 5.0 + 0.25 + 1.125;
    let expected = [
        10.0,
        8.5,
        2.0 + f32::sqrt(2.0),
        0.875 + 15.0 + 15.0 + 0.875,
        2.0,
        1.0,
        3.0,
        sum,
        2.0 * sum,
        2.0 * sum,
        10.0 + 5.0 + 1.0,
    ];
    assert_eq!(out.to_vec(), expected);
    assert_eq!(state.to_vec()[0], pair(0.5, 0.25, 1.125));
    Ok(())
}

#[test]
fn mistakes_are_found_with_their_lines() {
    let out = Buffer::new("out", [0_u32; 32]);
    let bodies = Buffer::new(
        "bodies",
        [wrong::Body {
            position: [0.0; 3],
            mass: 1.0,
        }],
    );
    let text = include_str!("kernels/wrong.rs");
    let at = |comment| line("wrong.rs", text, comment);
    let warp = || Launch::new(1, 32);

    let words = [
        "divergent barrier",
        &at("waits"),
        "thread [31, 0, 0]",
        "has returned",
    ];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(warp(), &words, || unsafe { wrong::diverges(out.pointer()) });

    let words = ["read before it is written", &at("reads"), "byte 124"];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(warp(), &words, || unsafe {
        wrong::reads_nothing(out.pointer())
    });

    let words = [
        "shared memory out of bounds",
        "wrong.rs:",
        "byte 124",
        "124 bytes",
    ];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(warp(), &words, || unsafe { wrong::shared_too_short() });

    let words = ["global memory out of bounds", &at("refers"), "4 bytes"];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(warp(), &words, || unsafe {
        wrong::far_outside(out.pointer())
    });

    let words = [
        "kernel panic",
        &at("takes"),
        "the len is 32 but the index is 33",
    ];
    let few = Launch::new(1, 1);
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(few.clone(), &words, || unsafe {
        wrong::unchecked(out.slice(), out.pointer())
    });

    let words = [
        "race",
        &at("sets"),
        "byte 12 of global region `bodies`",
        "after the write",
    ];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(warp(), &words, || unsafe {
        wrong::races_in_a_function(bodies.pointer())
    });

    let words = ["race", &at("pushes"), "byte 4 of global region `bodies`"];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(warp(), &words, || unsafe {
        wrong::races_in_a_method(bodies.pointer())
    });

    let long = Buffer::new("long", [0_u32; 34]);
    let words = ["race", &at("looks"), "byte 0 of global region `long`"];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(warp(), &words, || unsafe {
        wrong::races_in_a_module(long.pointer())
    });

    let words = ["kernel panic", "0x0000ffff leaves out lanes", "wrong.rs:"];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(warp(), &words, || unsafe { wrong::votes_by_halves() });

    let words = [
        "kernel panic",
        "the len is 32 but the index is 32",
        "wrong.rs:",
    ];
    // SAFETY: the buffers live longer than the launch, which ends before the mistake is made.
    finds(few, &words, || unsafe {
        wrong::panics(out.slice(), out.pointer())
    });
}

/// Compares all that a lane gets from its warp with what it should get.
#[kernel]
unsafe fn collectives(out: *mut u64) {
    let lane = warp::lane_id();
    let all = u32::MAX;
    // SAFETY: all threads of the block reach each of these, with the mask of the whole warp.
    unsafe {
        let (down, up, by_index, xor) = (
            warp::warp_shuffle_down(all, u64::from(lane) << 40, 3, 8),
            warp::warp_shuffle_up(all, lane as i8, 1, 32),
            warp::warp_shuffle_idx(all, lane as f32, 9, 8),
            warp::warp_shuffle_xor(all, lane as i128 - 5, 31, 32),
        );
        let (start, place) = (lane & !7, lane & 7);
        let expected = if place + 3 < 8 { lane + 3 } else { lane };
        assert_eq!(down, (u64::from(expected) << 40, place + 3 < 8));
        assert_eq!(up, (lane.saturating_sub(1) as i8, lane > 0));
        assert_eq!(by_index, ((start + 1) as f32, true));
        assert_eq!(xor, (26 - i128::from(lane), true));

        let sum = warp::warp_reduce(all, lane as i32 - 16, WarpReductionOp::Add);
        let least = warp::warp_reduce(all, lane as i32 - 16, WarpReductionOp::Min);
        let bits = warp::warp_reduce(all, 1 << (lane % 3), WarpReductionOp::Or);
        assert_eq!((sum, least, bits), (-16, -16, 7_u32));
        let same = warp::warp_match_any(all, lane % 2);
        assert_eq!(same, 0x5555_5555 << (lane % 2));
        assert_eq!(warp::warp_match_all(all, 1.5_f32), Some(all));
        assert_eq!(warp::warp_match_all(all, lane), None);
        assert_eq!(warp::warp_vote_ballot(all, lane < 4), 15);
        assert!(warp::warp_vote_any(all, lane == 7) && !warp::warp_vote_all(all, lane == 7));
        warp::sync_warp(all);
    }
    let votes = thread::sync_threads_count(u32::from(lane < 3));
    assert_eq!(votes, 2 * 3);
    assert_eq!(thread::sync_threads_and(lane), 0);
    assert_eq!(thread::sync_threads_or(lane), 1);
    // SAFETY: the launch has as many threads as the buffer has elements, and each writes its own.
    unsafe { *out.add(thread::index() as usize) = u64::from(thread::index()) };
}

#[test]
fn warps_work_together() -> Result<(), Failure> {
    let out = Buffer::new("out", [0_u64; 128]);
    for seed in 0..3 {
        Launch::new((1, 2), (16, 4))
            .seed(seed)
            // SAFETY: the buffers live longer than the launch, and have the sizes that the kernel asks for.
            .run(|| unsafe { collectives(out.pointer()) })?;
        assert_eq!(out.to_vec(), (0..128).collect::<Vec<u64>>());
    }
    Ok(())
}

#[test]
fn a_launch_has_its_own_shared_memory_and_the_buffers_of_its_thread() {
    let launches: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(|| {
                let values = Buffer::new("values", numbers(256));
                let sums = Buffer::new("sums", [0.0_f32; 4]);
                for seed in 0..20 {
                    Launch::new(4, 64)
                        .seed(seed)
                        // SAFETY: the buffers live longer than the launch, and have the sizes that the kernel asks for.
                        .run(|| unsafe { sum::sum(values.slice(), sums.pointer()) })
                        .unwrap();
                }
                sums.to_vec()
            })
        })
        .collect();
    let results: Vec<Vec<f32>> = launches.into_iter().map(|l| l.join().unwrap()).collect();
    assert!(results.iter().all(|sums| *sums == results[0]));
}

#[test]
fn unchecked_launches_run_what_is_checked_otherwise() {
    let values = Buffer::new("values", numbers(64));
    let sums = Buffer::new("sums", [0.0_f32]);
    // SAFETY: the kernel stays within its two buffers, which live longer than the launch. Its race is between threads
    // of the emulator, which take turns on one thread.
    let launch = unsafe { Launch::new(1, 64).unchecked() };
    // SAFETY: the buffers live longer than the launch, and have the sizes that the kernel asks for.
    let run = launch.run(|| unsafe { sum::sum_with_race(values.slice(), sums.pointer()) });
    assert!(run.is_ok());
}
