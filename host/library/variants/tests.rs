use super::*;

#[test]
fn every_kernel_is_compiled_for_both_laws_and_any_softening() {
    for v in VARIANTS
        .iter()
        .filter(|v| matches!(v.method, Method::Kernel { .. }))
    {
        assert!(v.laws().next().is_some(), "{}", v.name);
        for law in v.laws() {
            for unsoftened in [false, true]
                .into_iter()
                .take(if v.is_tensor() { 1 } else { 2 })
            {
                let kernels = v
                    .kernels(law, unsoftened, Masses::Any)
                    .unwrap_or_else(|| panic!("{}", v.name));
                let Work::Force {
                    law: compiled,
                    numerics,
                    ..
                } = kernels.force.work
                else {
                    panic!("{} is not a force", kernels.force.symbol)
                };
                assert_eq!(
                    (compiled, numerics.unsoftened),
                    (law.of_kernels(), unsoftened)
                );
            }
        }
    }
}
