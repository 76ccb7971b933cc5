//! Are choices understood, and refused with their reasons?

use super::*;
use crate::ranks::Way;

/// A GPU, as the driver would describe it.
pub(super) fn gpu(ordinal: u32, name: &str) -> DeviceInfo {
    DeviceInfo {
        ordinal,
        name: name.into(),
        uuid: [ordinal as u8; 16],
        pci: (0, ordinal, 0),
        compute_capability: (9, 0),
        sm_count: 132,
        sm_clock_khz: 1_980_000,
        memory_clock_khz: 3_201_000,
        memory_bus_bits: 6144,
        memory_bytes: 1 << 37,
        l2_bytes: 1 << 26,
        warp_size: 32,
        max_threads_per_block: 1024,
        max_threads_per_sm: 2048,
        registers_per_sm: 65_536,
        shared_bytes_per_sm: 233_472,
        max_shared_bytes_per_block: 232_448,
        driver_version: (13, 0),
    }
}

/// Tensor cores came with compute capability 8.0.
#[test]
fn older_gpus_lack_newer_kernels() {
    use crate::plan::regular::RegularPlan;

    let with = |compute_capability| {
        Place::of_gpu(DeviceInfo {
            compute_capability,
            ..gpu(0, "a")
        })
    };
    let has = |place: Place| place.has(RegularPlan::tensor());
    assert!(has(with((8, 0))) && has(with((9, 0))) && has(Place::EMULATOR));
    assert!(!has(with((7, 5))));
    let newer_and_older = [(9, 0), (7, 5)].map(|compute_capability| DeviceInfo {
        compute_capability,
        ..gpu(0, "a")
    });
    assert!(!has(Place::of_gpus(newer_and_older.to_vec())));
}

#[test]
fn devices_are_named() {
    assert_eq!("auto".parse(), Ok(DeviceChoice::Auto));
    assert_eq!("cuda".parse(), Ok(DeviceChoice::Gpu));
    assert_eq!("cuda:3".parse(), Ok(DeviceChoice::Cuda(3)));
    for choice in [
        DeviceChoice::Auto,
        DeviceChoice::Emulator,
        DeviceChoice::Emulators(3),
        DeviceChoice::Cuda(2),
        DeviceChoice::Gpus(GpuNumbers::new(&[1, 0, 0]).expect("three")),
        DeviceChoice::AllGpus,
    ] {
        assert_eq!(choice.to_string().parse(), Ok(choice));
    }
    assert_eq!("emulator:1".parse(), Ok(DeviceChoice::Emulator));
    assert_eq!("cuda:2".parse(), Ok(DeviceChoice::Cuda(2)));
    for wrong in [
        "gpu",
        "cuda:",
        "cuda:-1",
        "CUDA",
        "",
        "cuda:0,",
        "cuda:0,x",
        "cuda:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
        "emulator:",
        "emulator:0",
        "emulator:17",
        "cpu:2",
    ] {
        let error = wrong.parse::<DeviceChoice>().expect_err(wrong).to_string();
        assert!(error.contains("emulator"), "{error}");
    }
}

#[test]
fn a_forced_variant_is_validated() {
    let refusal = |device, kernel| {
        let kernel = variants::find(kernel).expect("listed");
        let refused = select(&Request::new(1000).on(device).by(Some(kernel)));
        refused.expect_err("refused").to_string()
    };
    assert!(refusal(DeviceChoice::Cpu, "tiled").contains("`device` cuda"));
    assert!(refusal(DeviceChoice::Emulator, "cpu-f32").contains("`device` cpu"));
    for name in ["tiled", "naive-f64"] {
        let refused = refusal(DeviceChoice::Emulators(2), name);
        assert!(
            refused.contains("one device") && refused.contains("`device` emulator"),
            "{refused}"
        );
    }
    let kernel = variants::find("cpu-f64").expect("listed");
    let host = Request::new(1000).by(Some(kernel)).law(ForceLaw::Unit);
    let host = select(&host).expect("runs anywhere");
    assert_eq!((host.variant.name, host.place), ("cpu-f64", Place::CPU));
}

/// Several devices can share the kernels that are chosen for each accuracy and number of bodies.
#[test]
fn several_devices_share_what_is_preferred() {
    for bodies in [1, 5_000, 16_000, 50_000, 100_000] {
        for accuracy in ForceAccuracy::ALL {
            for (integrator, steps) in [
                (Integrator::Leapfrog, TimeSteps::Shared),
                (Integrator::Hermite4, TimeSteps::Shared),
                (Integrator::Hermite4, TimeSteps::Blocks),
                (Integrator::Hermite6, TimeSteps::Blocks),
            ] {
                let request = Request {
                    accuracy: Some(accuracy),
                    integrator,
                    steps,
                    ..Request::new(bodies).on(DeviceChoice::Emulators(3))
                };
                let found = select(&request).expect("runs there");
                assert_eq!(found.place, Place::of_emulators(3));
            }
        }
    }
}

/// The place that a run records leads there again.
#[test]
fn ranks_that_share_a_gpu_name_it() {
    let of_ranks = |gpus: &[(u32, u8)]| {
        let gpus = gpus.iter().map(|&(ordinal, uuid)| DeviceInfo {
            uuid: [uuid; 16],
            ..gpu(ordinal, "a")
        });
        Place::of_gpus(gpus.collect())
            .over_ranks(Way::Hosts)
            .choice()
            .to_string()
    };
    assert_eq!(of_ranks(&[(0, 1), (1, 2)]), "cuda");
    assert_eq!(of_ranks(&[(0, 1), (0, 2)]), "cuda");
    assert_eq!(of_ranks(&[(0, 1), (0, 1), (0, 2)]), "cuda:0");
    assert_eq!(of_ranks(&[(1, 1), (1, 2)]), "cuda:1");
}
