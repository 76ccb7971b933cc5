//! Are choices understood, and refused with their reasons?

use super::*;

#[test]
fn devices_are_named() {
    assert_eq!("auto".parse(), Ok(DeviceChoice::Auto));
    assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
    assert_eq!("cuda:3".parse(), Ok(DeviceChoice::Cuda(3)));
    for choice in [
        DeviceChoice::Auto,
        DeviceChoice::Emulator,
        DeviceChoice::Cuda(2),
    ] {
        assert_eq!(choice.to_string().parse(), Ok(choice));
    }
    for wrong in ["gpu", "cuda:", "cuda:-1", "CUDA", ""] {
        let error = wrong.parse::<DeviceChoice>().expect_err(wrong).to_string();
        assert!(error.contains("emulator"), "{error}");
    }
}

#[test]
fn a_forced_variant_is_validated() {
    let refusal = |device, kernel| {
        select(device, Some(kernel), Law::Gravity, 1000)
            .expect_err("refused")
            .to_string()
    };
    assert!(refusal(DeviceChoice::Cpu, "tiled").contains("--device cuda"));
    assert!(refusal(DeviceChoice::Emulator, "cpu-f32").contains("--device cpu"));
    assert!(refusal(DeviceChoice::Auto, "tilde").contains("allpairs list"));
    let host = select(DeviceChoice::Auto, Some("cpu-f64"), Law::Unit, 1000).expect("runs anywhere");
    assert_eq!((host.variant.name, host.place), ("cpu-f64", Place::Cpu));
}
