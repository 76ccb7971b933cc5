//! Variants that `auto` takes for a device.

use gpu_kernels::schedule::block_steps::DigitsName;

/// How much the forces may be off, relative to their root mean square: what `auto` chooses by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum ForceAccuracy {
    /// 10⁻⁵, where that is worth anything: tensor cores, for many bodies.
    Fast,
    /// 10⁻⁶, the rounding of single precision.
    #[default]
    Single,
    /// 10⁻¹³, double precision, or as many digits of two singles.
    Double,
}

impl ForceAccuracy {
    /// All of them, the roughest first.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Single, Self::Double];

    /// Name, as options have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Single => "single",
            Self::Double => "double",
        }
    }
}

/// On the CPU.
pub const fn cpu(accuracy: ForceAccuracy) -> &'static str {
    match accuracy {
        ForceAccuracy::Fast | ForceAccuracy::Single => "cpu-f32",
        ForceAccuracy::Double => "cpu-f64",
    }
}

/// Variant for laws that none of the others computes, as attract-repel: on the CPU or else on a
/// GPU.
pub const fn of_all_laws(on_cpu: bool) -> &'static str {
    if on_cpu { "reference" } else { "hybrid" }
}

/// On a GPU in single precision, with the number of bodies up to which each is taken: measured on an
/// H200, where the neighbours of each limit differ by less than 5 %.
const SINGLE: &[(usize, &str)] = &[
    (3_584, "symmetric-lane2-block32"),
    (14_336, "symmetric-lane4-block32"),
    (20_480, "symmetric-lane4"),
    (usize::MAX, "symmetric"),
];

/// Like [`SINGLE`], but in double precision.
const DOUBLE: &[(usize, &str)] = &[
    (32_768, "symmetric-f64-block32"),
    (usize::MAX, "symmetric-f64"),
];

/// The most bodies for which tensor cores are not worth their error: 49 152 of a Plummer sphere are
/// a tenth faster than in single precision on an H200, and as fast if their masses are equal.
const FEW_FOR_TENSOR_CORES: usize = 57_344;

/// Kernel for test particles on a GPU: for bodies of which at most one in so many has mass, fewer
/// interactions than each pair once, and than on tensor cores.
const fn of_test_particles(accuracy: ForceAccuracy, slow_doubles: bool) -> (usize, &'static str) {
    match accuracy {
        ForceAccuracy::Fast => (4, "test-particles"),
        ForceAccuracy::Single => (2, "test-particles"),
        ForceAccuracy::Double if slow_doubles => (8, "test-particles-f64"),
        ForceAccuracy::Double => (2, "test-particles-f64"),
    }
}

/// Candidates on a GPU for this many bodies, `sources` of which have mass, in order of preference; the
/// first that can run is used. `slow_doubles` where double precision has less than a sixth of the
/// speed of single precision.
pub fn gpu(
    bodies: usize,
    sources: usize,
    accuracy: ForceAccuracy,
    slow_doubles: bool,
) -> Vec<&'static str> {
    let mut names = of_pairs(bodies, accuracy, slow_doubles);
    let (each, name) = of_test_particles(accuracy, slow_doubles);
    if sources < bodies && sources.saturating_mul(each) <= bodies {
        names.insert(0, name);
    }
    names
}

/// Like [`gpu`], but for bodies that all have mass.
fn of_pairs(bodies: usize, accuracy: ForceAccuracy, slow_doubles: bool) -> Vec<&'static str> {
    let of = |kernels: &[(usize, &'static str)]| {
        let fits = |&&(most, _): &&(usize, _)| bodies <= most;
        kernels.iter().find(fits).expect("the last has no limit").1
    };
    let (single, double) = (of(SINGLE), of(DOUBLE));
    match accuracy {
        ForceAccuracy::Fast if bodies > FEW_FOR_TENSOR_CORES => vec!["tensor", single],
        ForceAccuracy::Fast | ForceAccuracy::Single => vec![single],
        ForceAccuracy::Double if slow_doubles => vec!["double-single", double],
        ForceAccuracy::Double => vec![double],
    }
}

/// Kernel for whole steps of one system, in place of the kernel that would be taken for its forces: for few
/// bodies, whose five launches a step take longer than all their pairs in one.
pub fn of_whole_steps(bodies: usize, of_forces: &str) -> Option<&'static str> {
    match of_forces {
        "symmetric-lane2-block32" if bodies <= FEW[0] => Some("few-bodies"),
        "symmetric-f64-block32" if bodies <= FEW[1] => Some("few-bodies-f64"),
        _ => None,
    }
}

/// Most bodies for which a step in one launch is the fastest on an H200, in single and double precision.
const FEW: [usize; 2] = [3072, 4096];

/// Most bodies of a system that a block keeps in its shared memory, in single and double precision.
const MOST_IN_BLOCK: [usize; 2] = [512, 256];

/// Candidates on a GPU for systems of `n` bodies each, in order of preference: the first is the fastest
/// under gravity on an H200, with as many systems as fill it.
pub fn of_systems(n: usize, accuracy: ForceAccuracy) -> Vec<&'static str> {
    let [single, double] = MOST_IN_BLOCK;
    // Lanes without bodies take time as well; with two bodies a lane the rate is 0.69 of that with eight.
    let places = |lane: usize| (n.next_multiple_of(32 * lane) as f64).powi(2);
    let fastest = match accuracy {
        ForceAccuracy::Double if n <= double => "many-systems-in-blocks-f64",
        ForceAccuracy::Double => "many-systems-f64",
        ForceAccuracy::Fast | ForceAccuracy::Single => match n {
            _ if n <= single && 0.69 * places(8) < places(2) => "many-systems-in-blocks",
            _ if n <= single => "many-systems-in-blocks-small",
            ..1024 => "many-systems-small",
            _ => "many-systems-symmetric",
        },
    };
    vec![fastest, "many-systems"]
}

/// The digits of pairs in block time steps of accuracy `eta` on a GPU. Energies are as good with two f32
/// as with f64 (10⁻⁹), which takes twice the time; but in the shortest steps of fourth order, whose
/// criterion divides differences of forces by dt³, their rounding would ask for steps shorter still.
/// Single precision alone is not for sixth order, whose criterion would take its rounding for change.
pub fn block_digits(order: u32, eta: f64, accuracy: Option<ForceAccuracy>) -> DigitsName {
    /// Measured on an H200: at a quarter of this, f32 takes eight times as many steps as f64.
    const LEAST_ETA_OF_SINGLES: f64 = 0.01;
    match accuracy {
        _ if order < 6 && eta < LEAST_ETA_OF_SINGLES => DigitsName::Double,
        Some(ForceAccuracy::Fast) if order < 6 => DigitsName::Single,
        Some(ForceAccuracy::Fast | ForceAccuracy::Single) | None => DigitsName::Mixed,
        Some(ForceAccuracy::Double) => DigitsName::Double,
    }
}

/// The fewest bodies for which block time steps are faster on a GPU than on a CPU, where a block takes
/// no launches: an H200 beside 16 cores.
pub const BLOCKS_ON_GPU: usize = 256;

/// Accuracy for an integrator that needs jerks, unless another is asked for. Fourth order is chosen
/// for more than single precision keeps, and the criterion of its steps takes third differences.
pub const WITH_JERKS: ForceAccuracy = ForceAccuracy::Double;

/// On a GPU, for an integrator that needs jerks.
pub const fn with_jerks(accuracy: ForceAccuracy) -> &'static str {
    match accuracy {
        ForceAccuracy::Fast | ForceAccuracy::Single => "hermite",
        ForceAccuracy::Double => "hermite-f64",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::ForceLaw;
    use crate::selection::{Place, eligible};
    use crate::variants;

    #[test]
    fn all_are_listed_and_compute_gravity() {
        for accuracy in ForceAccuracy::ALL {
            let cpu = variants::find(cpu(accuracy)).expect("listed");
            assert_eq!(eligible(cpu, &Place::CPU, ForceLaw::Gravity), Ok(()));
            for bodies in [1, 5_000, 16_000, 50_000, 100_000] {
                for (slow_doubles, sources) in [(false, bodies), (true, bodies), (true, 0)] {
                    let names = gpu(bodies, sources, accuracy, slow_doubles);
                    for name in names.into_iter().chain([with_jerks(accuracy)]) {
                        let kernel = variants::find(name).expect("listed");
                        let runs = eligible(kernel, &Place::EMULATOR, ForceLaw::Gravity);
                        assert_eq!(runs, Ok(()), "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn few_bodies_take_steps_in_one_launch() {
        for (bodies, accuracy, slow, expected) in [
            (1, ForceAccuracy::Single, false, Some("few-bodies")),
            (3072, ForceAccuracy::Fast, true, Some("few-bodies")),
            (3073, ForceAccuracy::Single, false, None),
            (100, ForceAccuracy::Double, false, Some("few-bodies-f64")),
            (4096, ForceAccuracy::Double, false, Some("few-bodies-f64")),
            (4097, ForceAccuracy::Double, false, None),
            (100, ForceAccuracy::Double, true, None),
        ] {
            let of_forces = gpu(bodies, bodies, accuracy, slow)[0];
            let name = of_whole_steps(bodies, of_forces);
            assert_eq!(name, expected, "{bodies}");
            if let Some(name) = name {
                let kernel = variants::find(name).expect("listed");
                assert!(kernel.takes_steps_by_warps());
            }
        }
        assert_eq!(of_whole_steps(100, "test-particles"), None);
    }

    #[test]
    fn every_law_is_computed_somewhere() {
        for (on_cpu, place) in [(true, Place::CPU), (false, Place::EMULATOR)] {
            let kernel = variants::find(of_all_laws(on_cpu)).expect("listed");
            assert_eq!(eligible(kernel, &place, ForceLaw::ATTRACT_REPEL), Ok(()));
        }
    }

    #[test]
    fn tensor_cores_are_for_many_bodies_and_on_request() {
        let first = |bodies, accuracy| gpu(bodies, bodies, accuracy, false)[0];
        assert_eq!(first(1 << 20, ForceAccuracy::Fast), "tensor");
        assert_eq!(first(1 << 15, ForceAccuracy::Fast), "symmetric");
        assert_eq!(first(1 << 20, ForceAccuracy::Single), "symmetric");
        assert_eq!(first(1 << 20, ForceAccuracy::Double), "symmetric-f64");
        assert_eq!(
            gpu(1 << 20, 1 << 20, ForceAccuracy::Double, true)[0],
            "double-single"
        );
    }

    #[test]
    fn few_sources_are_taken_apart() {
        let first = |sources, accuracy, slow| gpu(100, sources, accuracy, slow)[0];
        for (sources, accuracy, slow, kernel) in [
            (50, ForceAccuracy::Single, false, "test-particles"),
            (51, ForceAccuracy::Single, false, "symmetric-lane2-block32"),
            (0, ForceAccuracy::Double, false, "test-particles-f64"),
            (12, ForceAccuracy::Double, true, "test-particles-f64"),
            (13, ForceAccuracy::Double, true, "double-single"),
            (25, ForceAccuracy::Fast, false, "test-particles"),
        ] {
            assert_eq!(first(sources, accuracy, slow), kernel, "{sources}");
        }
        assert_ne!(gpu(1, 1, ForceAccuracy::Single, false)[0], "test-particles");
    }
}
