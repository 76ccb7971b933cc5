//! Are choices understood, and refused with their reasons?

use super::*;

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
            refused.contains("one device") && refused.contains("cuda:0"),
            "{refused}"
        );
    }
    let kernel = variants::find("cpu-f64").expect("listed");
    let host = Request::new(1000).by(Some(kernel)).law(ForceLaw::Unit);
    let host = select(&host).expect("runs anywhere");
    assert_eq!((host.variant.name, host.place), ("cpu-f64", Place::Cpu));
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
                assert_eq!(found.place, Place::Emulators(3));
            }
        }
    }
}
