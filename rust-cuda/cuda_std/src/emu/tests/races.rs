//! Planted races, and their like that are none.

use super::*;

#[test]
fn races_in_shared_memory() {
    // After a barrier thread 0 does the one and thread 1 (of its warp) or 32 (not) the other.
    for other in [1, 32] {
        for (first, second) in [(Access::Write, Access::Read), (Access::Read, Access::Write)] {
            let kernel = || {
                write(4 * x(), 0);
                sync_threads();
                let access = if x() == 0 { first } else { second };
                if x() == 0 || x() == other {
                    match access {
                        Access::Read => drop(read(0)),
                        _ => write(0, 1),
                    }
                }
            };
            let words = ["byte 0 of shared memory", "look for a missing sync_threads"];
            let fault = block(64).fails(&words, kernel);
            let Fault::Race {
                place,
                access,
                earlier,
                other_thread,
                other_at,
                ..
            } = fault
            else {
                panic!("{fault}");
            };
            assert_eq!((place.thread, access), ([other, 0, 0], second));
            assert_eq!((other_thread, earlier), ([0, 0, 0], first));
            // These helpers have lines of their own: one that reads, one that writes.
            assert!(other_at.contains("tests/mod.rs") && other_at != place.at);
        }
    }
    // The classic: no barrier between a round's reads and the next round's writes.
    block(64).fails(&["race"], || {
        for round in 0..2 {
            write(4 * x(), round);
            sync_threads();
            read(4 * (63 - x()));
        }
    });
    // Two plain writes of one value.
    block(2).fails(&["not ordered after the write"], || write(0, 7));
}

#[test]
fn warp_barriers_order_one_warp() {
    let exchange_through_shared = |partner: u32| {
        write(4 * x(), 0);
        sync_threads();
        write(4 * x(), x());
        sync_warp();
        read(4 * (x() ^ partner))
    };
    block(64).passes(|| assert_eq!(exchange_through_shared(1), x() ^ 1));
    block(64).fails(&["race", "not ordered"], || {
        exchange_through_shared(32);
    });
    block(64).passes(|| {
        write(4 * x(), x());
        ballot(true);
        read(4 * (x() ^ 1));
        shuffle_idx(0, 0);
        write(4 * (x() ^ 3), x());
    });
}

#[test]
fn races_in_global_memory() {
    let mut out = [0_u32; 64];
    let memory = [Region::of_mut("out", &mut out)];
    let out = memory[0].pointer();
    // In a block, where a barrier helps.
    let neighbour = |barrier: bool| {
        put(out, x(), 0);
        if barrier {
            sync_threads();
        }
        get(out, (x() + 1) % 64);
    };
    block(64).over(&memory).passes(|| neighbour(true));
    block(64)
        .over(&memory)
        .fails(&["race", "region `out`", "missing sync_threads"], || {
            neighbour(false);
        });
    // Between blocks, where none does; each block has its own barriers.
    grid(2, 32)
        .over(&memory)
        .passes(|| put(out, x() + 32 * block_idx(0), 0));
    let words = [
        "race",
        "block [1, 0, 0]",
        "by block [0, 0, 0]",
        "second launch",
    ];
    grid(2, 32).over(&memory).fails(&words, || {
        sync_threads();
        put(out, x(), 0);
        sync_threads();
    });
    grid(2, 32).over(&memory).fails(&["write", "read by"], || {
        if block_idx(0) == 0 {
            get(out, x());
        } else {
            put(out, x(), 0);
        }
    });
    // Atomics against plain accesses.
    grid(2, 1).over(&memory).fails(&["by block [0, 0, 0]"], || {
        if block_idx(0) == 0 {
            add(out, 0, 1);
        } else {
            get(out, 0);
        }
    });
    block(2).over(&memory).fails(&["atomic at byte 0"], || {
        if x() == 0 {
            put(out, 0, 1);
        } else {
            add(out, 0, 1);
        }
    });
}

#[test]
fn neighbouring_small_elements_do_not_race() {
    block(64).passes(|| {
        // SAFETY: every pattern of bits is a `u16`.
        unsafe {
            shared_store(2 * x(), x() as u16);
            sync_threads();
            assert_eq!(shared_load::<u16>(126 - 2 * x()), 63 - x() as u16);
        }
    });
    block(2).fails(&["byte 3 of shared memory"], || {
        // SAFETY: every pattern of bits is a `u8`.
        unsafe { shared_store(3, x() as u8) };
    });
}
