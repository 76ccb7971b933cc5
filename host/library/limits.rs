//! Upper limit of a GPU: the interaction rate at which a kernel that computes each pair for one
//! of its bodies has an instruction in every issue slot.

use cuda_driver::DeviceInfo;

/// Issue slots of one f32 interaction with mass: 3 subtractions, 3 fused multiply–adds for d², one
/// 1/√, 3 products, 3 fused multiply–adds for the sum. The special-function unit has a fraction of
/// the lanes, but its instruction takes one slot like the others.
const SLOTS_F32: f64 = 13.0;

/// f64 instructions of one interaction: the 12 above, and 5 that refine 1/√ from the
/// special-function unit's guess of 20 bits: y (1 + e/2 + 3e²/8) with e = 1 − x y².
const INSTRUCTIONS_F64: f64 = 17.0;

/// f32 and f64 lanes of a multiprocessor, by compute capability (CUDA C++ Programming Guide, table
/// of arithmetic throughput); `None` for those not in the table.
fn lanes(info: &DeviceInfo) -> Option<(u32, u32)> {
    match info.compute_capability {
        (7, 5) => Some((64, 2)),
        (8, 0) => Some((64, 32)),
        (8, 6 | 7 | 9) => Some((128, 2)),
        (9, 0) => Some((128, 64)),
        (10, 0) => Some((128, 64)),
        (10, 3) | (12, _) => Some((128, 2)),
        _ => None,
    }
}

fn rate(info: &DeviceInfo, lanes: u32, instructions: f64) -> f64 {
    let clock = f64::from(info.sm_clock_khz) * 1e3;
    f64::from(info.sm_count) * f64::from(lanes) * clock / instructions
}

/// Interactions/s that a one-sided f32 kernel cannot exceed, at the highest clock.
pub fn one_sided_f32(info: &DeviceInfo) -> Option<f64> {
    lanes(info).map(|(f32_lanes, _)| rate(info, f32_lanes, SLOTS_F32))
}

/// Interactions/s that a one-sided f64 kernel cannot exceed, at the highest clock.
pub fn one_sided_f64(info: &DeviceInfo) -> Option<f64> {
    lanes(info).map(|(_, f64_lanes)| rate(info, f64_lanes, INSTRUCTIONS_F64))
}

/// Returns whether f64 is so slow compared with f32 that numbers of two f32 are faster. On an H200, f64
/// has half the speed, and symmetric kernels compute 3.4 times as many interactions in f64.
pub(crate) fn doubles_are_slow(info: &DeviceInfo) -> bool {
    lanes(info).is_some_and(|(f32_lanes, f64_lanes)| 6 * f64_lanes < f32_lanes)
}

/// Bytes/s between the GPU and its memory, at the highest clock: two transfers a clock.
pub fn memory_bandwidth(info: &DeviceInfo) -> f64 {
    2.0 * f64::from(info.memory_clock_khz) * 1e3 * f64::from(info.memory_bus_bits) / 8.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_an_h200() {
        let h200 = DeviceInfo {
            ordinal: 0,
            name: "NVIDIA H200".into(),
            uuid: [0; 16],
            pci: (0, 0, 0),
            compute_capability: (9, 0),
            sm_count: 132,
            sm_clock_khz: 1_980_000,
            memory_clock_khz: 3_201_000,
            memory_bus_bits: 6144,
            memory_bytes: 0,
            l2_bytes: 0,
            warp_size: 32,
            max_threads_per_block: 1024,
            max_threads_per_sm: 2048,
            registers_per_sm: 65536,
            shared_bytes_per_sm: 0,
            max_shared_bytes_per_block: 0,
            driver_version: (13, 0),
        };
        let f32_limit = one_sided_f32(&h200).expect("in the table");
        assert!((f32_limit - 2.573e12).abs() < 1e9, "{f32_limit:e}");
        let f64_limit = one_sided_f64(&h200).expect("in the table");
        assert!((f64_limit - 0.984e12).abs() < 1e9, "{f64_limit:e}");
        assert!((memory_bandwidth(&h200) - 4.917e12).abs() < 1e10);
        assert_eq!(
            one_sided_f32(&DeviceInfo {
                compute_capability: (3, 5),
                ..h200
            }),
            None
        );
    }
}
