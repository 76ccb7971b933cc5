//! Kernels without a fault do what CUDA says.

use std::cell::RefCell;

use super::*;

#[test]
fn every_thread_runs_once_in_the_seed_s_order() {
    let case = Case {
        grid: [2, 3, 2],
        block: [5, 4, 3],
        shared_bytes: 0,
        memory: &[],
    };
    let trace = |seed| {
        let seen = RefCell::new(Vec::new());
        case.run(seed, || {
            assert_eq!([0, 1, 2].map(grid_dim), case.grid);
            assert_eq!([0, 1, 2].map(block_dim), case.block);
            seen.borrow_mut()
                .push(([2, 1, 0].map(block_idx), [2, 1, 0].map(thread_idx)));
        })
        .unwrap();
        seen.into_inner()
    };
    let natural = trace(0);
    assert!(natural.is_sorted() && natural.len() == 12 * 60);
    let permuted = trace(7);
    assert_eq!(permuted, trace(7));
    assert_ne!(permuted, trace(8));
    assert_ne!(permuted, natural);
    let mut sorted = permuted;
    sorted.sort_unstable();
    assert_eq!(sorted, natural);
}

#[test]
fn the_order_changes_at_every_barrier() {
    let rounds = RefCell::new(vec![Vec::new(); 3]);
    let kernel = || {
        for round in 0..3 {
            rounds.borrow_mut()[round].push(x());
            sync_threads();
        }
    };
    block(64).run(5, kernel).unwrap();
    let rounds = rounds.into_inner();
    assert!(rounds[0] != rounds[1] && rounds[1] != rounds[2] && rounds[0] != rounds[2]);
}

#[test]
fn block_barriers_carry_data_through_shared_memory() {
    let mut out = vec![0_u32; 2 * 40];
    for seed in 0..4 {
        out.fill(0);
        let memory = [Region::of_mut("out", &mut out)];
        let pointer = memory[0].pointer();
        let kernel = || {
            for round in 0..3 {
                write(4 * x(), 100 * round + x());
                sync_threads();
                let mirrored = read(4 * (39 - x()));
                assert_eq!(sync_threads_count(mirrored & 1 == 0), 20);
                put(pointer, 40 * block_idx(0) + x(), mirrored);
            }
        };
        grid(2, 40).over(&memory).run(seed, kernel).unwrap();
        drop(memory);
        assert!(
            out.iter()
                .zip((0..40).rev().cycle())
                .all(|(&out, x)| out == 200 + x)
        );
    }
}

#[test]
fn warp_collectives_see_the_warp_and_no_more() {
    block(40).passes(|| {
        let (lane, warp) = (x() % 32, x() / 32);
        let width = if warp == 0 { 32 } else { 8 };
        for round in 0..3 {
            let from = (lane + 1) % width;
            assert_eq!(
                shuffle_idx(x() + round, from + 32),
                warp * 32 + from + round
            );
            let wide = u64::from(x()) << 40 | 7;
            assert_eq!(
                shuffle_idx_u64(wide, from),
                u64::from(warp * 32 + from) << 40 | 7
            );
            assert_eq!(
                ballot(lane % 2 == 1),
                if warp == 0 { 0xaaaa_aaaa } else { 0xaa }
            );
            let all = exchange([x(), round, 9]);
            for (lane, found) in (0..32).zip(all) {
                let there = [warp * 32 + lane, round, 9];
                assert_eq!(found, if lane < width { there } else { [0; 3] });
            }
        }
    });
}

#[test]
fn lanes_are_counted_along_the_first_axis_first() {
    let case = Case {
        block: [8, 5, 2],
        ..block(1)
    };
    case.passes(|| {
        let [x, y, z] = [0, 1, 2].map(thread_idx);
        let thread = x + 8 * (y + 5 * z);
        assert_eq!(crate::warp::lane_id(), thread % 32);
        // And collectives agree: 80 threads are two warps and a half.
        let lane_of_vote = ballot(x == 0).count_ones();
        assert_eq!(lane_of_vote, if thread < 64 { 4 } else { 2 });
    });
}

#[test]
fn atomics_of_all_blocks_add_up() {
    let mut out = vec![0_u32; 2];
    let memory = [Region::of_mut("sum", &mut out)];
    let pointer = memory[0].pointer();
    grid(5, 33).over(&memory).passes(|| {
        assert!(add(pointer, 1, 3).is_multiple_of(3));
    });
    drop(memory);
    assert_eq!(out, [0, 8 * 5 * 33 * 3]);
}

#[test]
fn buffers_of_bytes_hold_every_type_at_device_alignment() {
    let mut bytes = [0_u8; 49];
    let memory = [Region::of_mut("bytes", &mut bytes[1..])];
    let pointer = memory[0].pointer::<[u64; 2]>();
    block(3).over(&memory).passes(|| {
        // SAFETY: the buffer's bytes may be anything.
        unsafe { global_store(pointer.wrapping_add(x() as usize), [u64::from(x()); 2]) };
    });
    drop(memory);
    assert_eq!((bytes[1], bytes[17], bytes[33], bytes[41]), (0, 1, 2, 2));
}

/// Addresses are memory of the launch; what they lead to is checked as what pointers lead to.
#[test]
fn buffers_are_read_by_the_addresses_in_another() {
    let mut numbers = [0.0_f64; 8];
    numbers[5] = 7.0;
    let addresses = [numbers.as_ptr().expose_provenance() as u64];
    let memory = [
        Region::of("addresses", &addresses),
        Region::of("numbers", &numbers),
    ];
    let pointer = memory[0].pointer::<u64>();
    let vector = |index| {
        // SAFETY: a region of `u64`, which is the address of a region of `f64`.
        unsafe { crate::global::load_by_address(global_load(pointer), index) }
    };
    let case = block(2).over(&memory);
    case.passes(|| assert_eq!(vector(x()).y, [0.0, 7.0][x() as usize]));
    case.fails(&["`numbers`", "64 bytes"], || assert!(vector(2).x.is_nan()));
}

#[test]
fn launches_run_side_by_side_and_inside_each_other() {
    let sum = |seed| {
        let mut out = [0_u32];
        let memory = [Region::of_mut("sum", &mut out)];
        let pointer = memory[0].pointer();
        let kernel = || {
            sync_threads();
            add(pointer, 0, x());
        };
        grid(3, 64).over(&memory).run(seed, kernel).unwrap();
        drop(memory);
        out[0]
    };
    std::thread::scope(|scope| {
        for seed in 0..8 {
            scope.spawn(move || (0..20).for_each(|_| assert_eq!(sum(seed), 3 * 63 * 32)));
        }
    });
    block(2).passes(|| {
        sync_threads();
        assert_eq!(sum(3), 3 * 63 * 32);
        assert!(matches!(
            block(1).run(0, || panic!("inner")),
            Err(Fault::Panic { .. })
        ));
        assert_eq!(ballot(x() == 1), 2);
    });
}
