//! GPUs that `auto` takes together, where several are faster than one.

use cuda_driver::{DeviceInfo, devices, link};

use super::{MOST_DEVICES, Place, Request};
use crate::integrator::TimeSteps;
use crate::variants::{Method, Variant};

/// The fewest bodies for which two GPUs are known to be faster than one: two H200s are 1.7 to 1.9 times as
/// fast with as many (benchmarks/record/nvidia-h200/several-gpus.md).
const FEWEST: usize = 65_536;

/// As [`FEWEST`], where a step needs jerks: two H200s are as fast as one at 65 536 bodies in shared steps, and 1.98 times as
/// fast at as many as here; in block time steps 1.6 to 1.9 times.
const FEWEST_WITH_JERKS: usize = 262_144;

/// All GPUs like this one, if the request leaves it open how many to take and they are faster.
pub(super) fn faster(request: &Request, variant: &Variant, one: &DeviceInfo) -> Option<Place> {
    if !is_worth(request, variant) {
        return None;
    }
    let direct = |from, to| link(from, to).is_ok_and(|link| link.direct);
    let gpus = alike(one, devices().ok()?, direct);
    (gpus.len() > 1).then_some(Place::of_gpus(gpus))
}

/// Returns whether two GPUs would be faster than one.
fn is_worth(request: &Request, variant: &Variant) -> bool {
    let fewest = match variant.method {
        Method::Systems(_) => FEWEST,
        _ if !variant.can_be_shared() => return false,
        // Encounters in block time steps are looked for on one GPU, and fields in them were not timed.
        _ if request.steps == TimeSteps::Blocks && !request.steps_alone => return false,
        _ if request.integrator.needs_jerks() => FEWEST_WITH_JERKS,
        _ => FEWEST,
    };
    request.bodies >= fewest
}

/// The GPUs of the same kind that all reach each other's memory directly.
fn alike(
    one: &DeviceInfo,
    there: Vec<DeviceInfo>,
    direct: impl Fn(u32, u32) -> bool,
) -> Vec<DeviceInfo> {
    let kind = |gpu: &DeviceInfo| (gpu.name.clone(), gpu.compute_capability, gpu.sm_count);
    let mut taken = vec![one.clone()];
    for gpu in there {
        let reaches = |other: &DeviceInfo| {
            let [a, b] = [gpu.ordinal, other.ordinal];
            a != b && direct(a, b) && direct(b, a)
        };
        if taken.len() < MOST_DEVICES && kind(&gpu) == kind(one) && taken.iter().all(reaches) {
            taken.push(gpu);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::super::tests::gpu;
    use super::*;
    use crate::integrator::Integrator;
    use crate::variants::find;

    #[test]
    fn gpus_of_a_kind_that_reach_each_other_are_taken() {
        let taken = |names: &[&str], direct: &dyn Fn(u32, u32) -> bool| {
            let there: Vec<_> = (0..).zip(names).map(|(i, name)| gpu(i, name)).collect();
            let gpus = alike(&there[0].clone(), there, direct);
            gpus.iter().map(|gpu| gpu.ordinal).collect::<Vec<_>>()
        };
        assert_eq!(taken(&["a"], &|_, _| true), [0]);
        assert_eq!(taken(&["a", "b", "a"], &|_, _| true), [0, 2]);
        assert_eq!(
            taken(&["a", "a", "a"], &|from, to| from < 2 && to < 2),
            [0, 1]
        );
        assert_eq!(taken(&["a", "a"], &|from, _| from == 0), [0]);
        assert_eq!(taken(&["a"; 20], &|_, _| true).len(), MOST_DEVICES);
    }

    #[test]
    fn many_bodies_are_worth_several_gpus() {
        let is_worth = |bodies, kernel, integrator, (steps, steps_alone)| {
            let request = Request {
                integrator,
                steps,
                steps_alone,
                ..Request::new(bodies)
            };
            is_worth(&request, find(kernel).expect("listed"))
        };
        let (shared, blocks) = ((TimeSteps::Shared, false), (TimeSteps::Blocks, true));
        for (kernel, integrator, steps, fewest) in [
            ("symmetric", Integrator::Leapfrog, shared, 65_536),
            ("tensor", Integrator::Leapfrog, shared, 65_536),
            (
                "many-systems-symmetric",
                Integrator::Leapfrog,
                shared,
                65_536,
            ),
            ("hermite-f64", Integrator::Hermite4, shared, 262_144),
            ("hermite-f64", Integrator::Hermite4, blocks, 262_144),
        ] {
            assert!(is_worth(fewest, kernel, integrator, steps), "{kernel}");
            assert!(!is_worth(fewest - 1, kernel, integrator, steps), "{kernel}");
        }
        let many = 1 << 20;
        assert!(!is_worth(many, "tiled", Integrator::Leapfrog, shared));
        assert!(!is_worth(
            many,
            "hermite-f64",
            Integrator::Hermite4,
            (TimeSteps::Blocks, false)
        ));
    }
}
