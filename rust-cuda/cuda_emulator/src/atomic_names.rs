// Rust-CUDA's names, by type: an operation for the threads of a GPU, of a block, of the system.
operations! {
    u32 |old, value| {
        [atomic_fetch_add_u32_device, atomic_fetch_add_u32_block, atomic_fetch_add_u32_system] old.wrapping_add(value);
        [atomic_fetch_sub_u32_device, atomic_fetch_sub_u32_block, atomic_fetch_sub_u32_system] old.wrapping_sub(value);
        [atomic_fetch_and_u32_device, atomic_fetch_and_u32_block, atomic_fetch_and_u32_system] old & value;
        [atomic_fetch_or_u32_device, atomic_fetch_or_u32_block, atomic_fetch_or_u32_system] old | value;
        [atomic_fetch_xor_u32_device, atomic_fetch_xor_u32_block, atomic_fetch_xor_u32_system] old ^ value;
        [atomic_fetch_min_u32_device, atomic_fetch_min_u32_block, atomic_fetch_min_u32_system] old.min(value);
        [atomic_fetch_max_u32_device, atomic_fetch_max_u32_block, atomic_fetch_max_u32_system] old.max(value);
        [atomic_fetch_exch_u32_device, atomic_fetch_exch_u32_block, atomic_fetch_exch_u32_system] { let _: u32 = old; value };
    }
    u64 |old, value| {
        [atomic_fetch_add_u64_device, atomic_fetch_add_u64_block, atomic_fetch_add_u64_system] old.wrapping_add(value);
        [atomic_fetch_sub_u64_device, atomic_fetch_sub_u64_block, atomic_fetch_sub_u64_system] old.wrapping_sub(value);
        [atomic_fetch_and_u64_device, atomic_fetch_and_u64_block, atomic_fetch_and_u64_system] old & value;
        [atomic_fetch_or_u64_device, atomic_fetch_or_u64_block, atomic_fetch_or_u64_system] old | value;
        [atomic_fetch_xor_u64_device, atomic_fetch_xor_u64_block, atomic_fetch_xor_u64_system] old ^ value;
        [atomic_fetch_min_u64_device, atomic_fetch_min_u64_block, atomic_fetch_min_u64_system] old.min(value);
        [atomic_fetch_max_u64_device, atomic_fetch_max_u64_block, atomic_fetch_max_u64_system] old.max(value);
        [atomic_fetch_exch_u64_device, atomic_fetch_exch_u64_block, atomic_fetch_exch_u64_system] { let _: u64 = old; value };
    }
    i32 |old, value| {
        [atomic_fetch_add_i32_device, atomic_fetch_add_i32_block, atomic_fetch_add_i32_system] old.wrapping_add(value);
        [atomic_fetch_sub_i32_device, atomic_fetch_sub_i32_block, atomic_fetch_sub_i32_system] old.wrapping_sub(value);
        [atomic_fetch_and_i32_device, atomic_fetch_and_i32_block, atomic_fetch_and_i32_system] old & value;
        [atomic_fetch_or_i32_device, atomic_fetch_or_i32_block, atomic_fetch_or_i32_system] old | value;
        [atomic_fetch_xor_i32_device, atomic_fetch_xor_i32_block, atomic_fetch_xor_i32_system] old ^ value;
        [atomic_fetch_min_i32_device, atomic_fetch_min_i32_block, atomic_fetch_min_i32_system] old.min(value);
        [atomic_fetch_max_i32_device, atomic_fetch_max_i32_block, atomic_fetch_max_i32_system] old.max(value);
        [atomic_fetch_exch_i32_device, atomic_fetch_exch_i32_block, atomic_fetch_exch_i32_system] { let _: i32 = old; value };
    }
    i64 |old, value| {
        [atomic_fetch_add_i64_device, atomic_fetch_add_i64_block, atomic_fetch_add_i64_system] old.wrapping_add(value);
        [atomic_fetch_sub_i64_device, atomic_fetch_sub_i64_block, atomic_fetch_sub_i64_system] old.wrapping_sub(value);
        [atomic_fetch_and_i64_device, atomic_fetch_and_i64_block, atomic_fetch_and_i64_system] old & value;
        [atomic_fetch_or_i64_device, atomic_fetch_or_i64_block, atomic_fetch_or_i64_system] old | value;
        [atomic_fetch_xor_i64_device, atomic_fetch_xor_i64_block, atomic_fetch_xor_i64_system] old ^ value;
        [atomic_fetch_min_i64_device, atomic_fetch_min_i64_block, atomic_fetch_min_i64_system] old.min(value);
        [atomic_fetch_max_i64_device, atomic_fetch_max_i64_block, atomic_fetch_max_i64_system] old.max(value);
        [atomic_fetch_exch_i64_device, atomic_fetch_exch_i64_block, atomic_fetch_exch_i64_system] { let _: i64 = old; value };
    }
    f32 |old, value| {
        [atomic_fetch_add_f32_device, atomic_fetch_add_f32_block, atomic_fetch_add_f32_system] old + value;
        [atomic_fetch_sub_f32_device, atomic_fetch_sub_f32_block, atomic_fetch_sub_f32_system] old - value;
        [atomic_fetch_and_f32_device, atomic_fetch_and_f32_block, atomic_fetch_and_f32_system] f32::from_bits(old.to_bits() & value.to_bits());
        [atomic_fetch_or_f32_device, atomic_fetch_or_f32_block, atomic_fetch_or_f32_system] f32::from_bits(old.to_bits() | value.to_bits());
        [atomic_fetch_xor_f32_device, atomic_fetch_xor_f32_block, atomic_fetch_xor_f32_system] f32::from_bits(old.to_bits() ^ value.to_bits());
        [atomic_fetch_exch_f32_device, atomic_fetch_exch_f32_block, atomic_fetch_exch_f32_system] { let _: f32 = old; value };
    }
    f64 |old, value| {
        [atomic_fetch_add_f64_device, atomic_fetch_add_f64_block, atomic_fetch_add_f64_system] old + value;
        [atomic_fetch_sub_f64_device, atomic_fetch_sub_f64_block, atomic_fetch_sub_f64_system] old - value;
        [atomic_fetch_and_f64_device, atomic_fetch_and_f64_block, atomic_fetch_and_f64_system] f64::from_bits(old.to_bits() & value.to_bits());
        [atomic_fetch_or_f64_device, atomic_fetch_or_f64_block, atomic_fetch_or_f64_system] f64::from_bits(old.to_bits() | value.to_bits());
        [atomic_fetch_xor_f64_device, atomic_fetch_xor_f64_block, atomic_fetch_xor_f64_system] f64::from_bits(old.to_bits() ^ value.to_bits());
        [atomic_fetch_exch_f64_device, atomic_fetch_exch_f64_block, atomic_fetch_exch_f64_system] { let _: f64 = old; value };
    }
}

swaps! {
    u32: atomic_compare_and_swap_u32_device, atomic_compare_and_swap_u32_block, atomic_compare_and_swap_u32_system;
    u64: atomic_compare_and_swap_u64_device, atomic_compare_and_swap_u64_block, atomic_compare_and_swap_u64_system;
    i32: atomic_compare_and_swap_i32_device, atomic_compare_and_swap_i32_block, atomic_compare_and_swap_i32_system;
    i64: atomic_compare_and_swap_i64_device, atomic_compare_and_swap_i64_block, atomic_compare_and_swap_i64_system;
    f32: atomic_compare_and_swap_f32_device, atomic_compare_and_swap_f32_block, atomic_compare_and_swap_f32_system;
    f64: atomic_compare_and_swap_f64_device, atomic_compare_and_swap_f64_block, atomic_compare_and_swap_f64_system;
}
