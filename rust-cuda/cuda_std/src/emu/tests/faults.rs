//! One planted fault for everything else that the emulator must catch.

use std::cell::RefCell;

use super::*;

#[test]
fn warps_are_numbered_in_one_dimensional_blocks_alone() {
    block(64).passes(|| assert_eq!(crate::warp::warp_id(), x() / 32));
    let flat = Case {
        block: [8, 8, 1],
        ..block(1)
    };
    flat.fails(&["one-dimensional", "8 × 8 × 1", "faults.rs"], || {
        crate::warp::warp_id();
    });
}

#[test]
fn barriers_that_some_thread_misses() {
    let early = block(40).fails(&["thread [0, 0, 0]", "[3, 0, 0]", "has returned"], || {
        if x() != 3 {
            sync_threads();
        }
    });
    let here = file!();
    assert!(matches!(early, Fault::Divergence { place, .. } if place.at.starts_with(here)));

    block(40).fails(&["sync_threads,", "waits at sync_threads_count"], || {
        if x() < 8 {
            sync_threads();
        } else {
            sync_threads_count(true);
        }
    });
    block(64).fails(
        &["sync_warp,", "waits at sync_threads", "same warp"],
        || {
            if x() & 1 == 0 {
                sync_warp();
            }
            sync_threads();
        },
    );
    block(64).fails(&["ballot,", "has returned"], || {
        if x() != 63 {
            ballot(true);
        }
    });
    block(64).fails(&["exchange of 2 words", "exchange of 3 words"], || {
        if x() & 1 == 0 {
            exchange([0; 2]);
        } else {
            exchange([0; 3]);
        }
    });
    block(64).fails(&["shuffle of 32 bits", "shuffle of 64 bits"], || {
        if x() == 0 {
            shuffle_idx(0, 0);
        } else {
            shuffle_idx_u64(0, 0);
        }
    });
    // A whole warp may stay away from another's warp barrier, and only from that.
    block(64).passes(|| {
        if x() < 32 {
            sync_warp();
        }
    });
}

#[test]
fn shared_memory_starts_empty_in_every_block() {
    let fault = block(1).fails(&["byte 12 is not yet written"], || {
        write(8, 1);
        // SAFETY: every pattern of bits is a `u64`.
        unsafe { shared_load::<u64>(8) };
    });
    assert!(matches!(
        fault,
        Fault::Uninitialised {
            spot: Spot::Shared { address: 8 },
            bytes: 8,
            ..
        }
    ));
    grid(2, 1).fails(&["before it is written", "block [1, 0, 0]"], || {
        if block_idx(0) == 0 {
            write(0, 1);
        } else {
            read(0);
        }
    });
}

#[test]
fn shared_memory_has_an_end_and_an_alignment() {
    block(1).passes(|| write(252, 1));
    block(1).fails(&["byte 256", "which has 256 bytes"], || write(256, 1));
    block(1).fails(&["out of bounds"], || write(254, 1));
    block(1).fails(&["out of bounds"], || write(u32::MAX, 1));
    block(1).fails(
        &["misaligned", "byte 2 of shared memory", "multiple of 4"],
        || write(2, 1),
    );
}

#[test]
fn global_memory_is_the_launch_s_regions() {
    let input = [1_u32; 4];
    let mut output = [0_u32; 4];
    let memory = [
        Region::of("input", &input),
        Region::of_mut("output", &mut output),
    ];
    let (input, output) = (memory[0].pointer(), memory[1].pointer());
    let case = block(1).over(&memory);
    case.passes(|| put(output, 3, get(input, 3)));

    let fault = case.fails(&["offset 16 in region `output`", "16 bytes"], || {
        put(output, 4, 0)
    });
    assert!(matches!(
        fault,
        Fault::GlobalBounds {
            access: Access::Write,
            bytes: 4,
            ..
        }
    ));
    case.fails(&["4 bytes before the start of region"], || {
        get(
            memory
                .iter()
                .map(Region::pointer::<u32>)
                .min()
                .unwrap()
                .wrapping_sub(1),
            0,
        );
    });
    case.fails(&["read of 4 bytes at 0x0"], || {
        get(std::ptr::null(), 0);
    });
    case.fails(
        &[
            "misaligned",
            "byte 4 of global region `input`",
            "multiple of 8",
        ],
        || {
            // SAFETY: every pattern of bits is a `u64`.
            unsafe { global_load(input.wrapping_add(1).cast::<u64>()) };
        },
    );
    case.fails(
        &["read-only", "write", "byte 8 of global region `input`"],
        || put(input, 2, 0),
    );
    case.fails(&["read-only", "atomic"], || {
        add(input, 0, 1);
    });
    block(1).fails(&["no global memory"], || put(output, 0, 0));
}

#[test]
fn shuffles_from_lanes_that_do_not_exist() {
    block(40).fails(&["reads lane 8", "has 8 threads"], || {
        shuffle_idx(0, 8);
    });
}

#[test]
fn panics_of_kernels_are_faults() {
    let line = line!() + 2;
    let kernel = || {
        assert!(x() != 5, "five is right out");
        sync_threads();
    };
    let fault = block(40).fails(&["five is right out", "thread [5, 0, 0]"], kernel);
    let at = format!("{}:{line}:", file!());
    assert!(matches!(fault, Fault::Panic { place, .. } if place.at.starts_with(&at)));
    block(1).fails(&["index out of bounds"], || {
        let table = [0; 4];
        std::hint::black_box(table[4 + x() as usize]);
    });
}

#[test]
fn suspended_threads_are_unwound_after_a_fault() {
    struct Owned<'a>(&'a RefCell<Vec<u32>>, u32);
    impl Drop for Owned<'_> {
        fn drop(&mut self) {
            self.0.borrow_mut().push(self.1);
        }
    }
    for round in 0..50 {
        let dropped = RefCell::new(Vec::new());
        let kernel = || {
            let _owned = Owned(&dropped, x());
            sync_threads();
            assert!(x() != 7, "after {} threads", dropped.borrow().len());
            sync_threads();
        };
        let fault = block(100).run(round, kernel).unwrap_err();
        assert!(matches!(fault, Fault::Panic { message, .. } if message == "after 0 threads"));
        let mut dropped = dropped.into_inner();
        dropped.sort_unstable();
        assert!(dropped.into_iter().eq(0..100));
    }
    // The stacks have survived.
    block(100).passes(sync_threads);
}

#[test]
fn impossible_launches_are_refused() {
    let refused = |grid, block, shared_bytes, word: &str| {
        Case {
            grid,
            block,
            shared_bytes,
            memory: &[],
        }
        .fails(&[word], || {});
    };
    refused([0, 1, 1], [1, 1, 1], 0, "grid size 0 on axis 0");
    refused([1, 70_000, 1], [1, 1, 1], 0, "grid size 70000 on axis 1");
    refused([1, 1, 1], [1, 1, 65], 0, "block size 65 on axis 2");
    refused([1, 1, 1], [64, 17, 1], 0, "1088 threads");
    refused([1, 1, 1], [1, 1, 1], 1 << 18, "shared memory");
}

#[test]
#[should_panic(expected = "outside of a kernel")]
fn device_functions_need_a_launch() {
    thread_idx(0);
}
