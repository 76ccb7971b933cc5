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
        let kernel = variants::find(kernel).expect("listed");
        let refused = select(&Request::new(1000).on(device).by(Some(kernel)));
        refused.expect_err("refused").to_string()
    };
    assert!(refusal(DeviceChoice::Cpu, "tiled").contains("--device cuda"));
    assert!(refusal(DeviceChoice::Emulator, "cpu-f32").contains("--device cpu"));
    let unknown = variants::find("tilde").expect_err("not listed");
    assert!(unknown.to_string().contains("allpairs list"));
    let kernel = variants::find("cpu-f64").expect("listed");
    let host = Request::new(1000).by(Some(kernel)).law(Law::Unit);
    let host = select(&host).expect("runs anywhere");
    assert_eq!((host.variant.name, host.place), ("cpu-f64", Place::Cpu));
}
