//! Commands that rank 0 gives to the others.

use gpu_kernels::entries::Row;

#[cfg(feature = "ranks")]
use super::forms;
use crate::backend::{Operation, SavedState};
use crate::bodies::Bodies;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::plan::block_steps::BlockScheme;
use crate::ranks::Way;
use crate::variants::{self, Build, CpuPath, Method, Positions, SystemsPath, Variant};

/// Something that all ranks are to do together.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "ranks", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Command {
    /// Nothing: rank 0 is there, and busy with other things.
    Wait,
    /// Part.
    Part,
    /// Take a system over.
    Begin(Box<Begin>),
    /// [`Backend::set_time`](crate::backend::Backend::set_time).
    SetTime(f64),
    /// [`Backend::reach`](crate::backend::Backend::reach).
    Reach(f64, f64),
    /// [`Backend::repeat`](crate::backend::Backend::repeat).
    Repeat(u64, Vec<Operation>),
    /// [`Backend::first_step`](crate::backend::Backend::first_step) with η and the longest step.
    FirstStep(f64, f64),
    /// [`BlockSteps::advance`](crate::backend::BlockSteps::advance) by a span with η.
    Advance(f64, f64),
    /// [`BlockSteps::choose_steps`](crate::backend::BlockSteps::choose_steps) of a span with η, for these bodies.
    ChooseSteps(f64, f64, Vec<usize>),
    /// [`BlockSteps::keep_paths`](crate::backend::BlockSteps::keep_paths) of bodies with these radii.
    KeepPaths(Vec<f64>),
    /// [`BlockSteps::take_paths`](crate::backend::BlockSteps::take_paths): each has all of them.
    TakePaths,
    /// [`Backend::energy`](crate::backend::Backend::energy).
    Energy,
    /// [`Backend::restore`](crate::backend::Backend::restore).
    Restore(#[cfg_attr(feature = "ranks", serde(with = "forms::state"))] Box<SavedState>),
    /// Say what GPUs there are.
    Gpus,
    /// Say this of independent systems, of which each rank has its own.
    Gathered(Asked),
}

/// Something that all ranks have a part of.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "ranks", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Asked {
    /// [`Backend::save`](crate::backend::Backend::save).
    State,
    /// [`Backend::download`](crate::backend::Backend::download), of this number of bodies.
    Bodies(u64),
    /// [`Backend::accelerations`](crate::backend::Backend::accelerations).
    Accelerations,
    /// [`Backend::synchronize`](crate::backend::Backend::synchronize).
    End,
    /// [`Pipeline::seconds`](crate::backend::Pipeline::seconds) of steps of this length, and their number.
    Seconds(f64, u32),
}

/// A system, or several independent ones, and how they are computed. What the forces do not depend on is left out
/// of the bodies.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "ranks", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Begin {
    pub(super) physics: Physics,
    pub(super) means: Means,
    #[cfg_attr(feature = "ranks", serde(with = "forms::bodies"))]
    pub(super) bodies: Bodies,
    /// Independent systems of equal size that these are, one after another.
    pub(super) systems: u32,
    /// None of them is a function of one process.
    pub(super) fields: Fields,
}

/// Means to compute forces.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "ranks", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Means {
    /// The CPU of each rank.
    Cpu(OnCpu),
    /// A device of each rank, which compute one system together.
    Devices(Kernel, Frame, Devices),
    /// A device of each rank, which computes systems of its own.
    Systems(
        #[cfg_attr(feature = "ranks", serde(with = "forms::PathForm"))] SystemsPath,
        Frame,
        Devices,
    ),
}

/// Path on the CPU of each rank, and what its block time steps are.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "ranks", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct OnCpu {
    pub(crate) path: CpuPath,
    /// Number of neighbours, in a scheme with these.
    pub(crate) neighbours: Option<u32>,
    /// True if pairs and multiples are followed apart.
    pub(crate) groups: bool,
}

impl OnCpu {
    /// The path, with block time steps in which all bodies are single and give each force.
    #[cfg(test)]
    pub(crate) const fn plain(path: CpuPath) -> Self {
        Self {
            path,
            neighbours: None,
            groups: false,
        }
    }
}

/// A variant of kernels that can be shared, without its name.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "ranks", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Kernel {
    #[cfg_attr(feature = "ranks", serde(with = "forms::row"))]
    row: Row,
    build: Build,
    block: u32,
    by_masses: bool,
    /// Block time steps, if they are taken.
    pub(super) blocks: Option<BlockScheme>,
    /// True if pairs and multiples are followed apart in them.
    pub(super) groups: bool,
}

/// A device for each rank.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "ranks", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Devices {
    /// An emulator, which runs threads in the order of this seed.
    Emulators(u64),
    /// The GPU of this number, and the way between them.
    Gpus(Vec<u32>, Way),
}

impl Kernel {
    /// That of a variant, if ranks can compute by it together.
    pub(super) fn of(variant: &Variant) -> Option<Self> {
        match variant.method {
            Method::Kernel {
                row,
                build,
                block,
                positions: Positions::Device,
                split: None,
                fitted: _, // which says how to split
                by_masses,
            } if variant.can_be_shared() && variant.systems == 1 => Some(Self {
                row,
                build,
                block,
                by_masses,
                blocks: None,
                groups: false,
            }),
            _ => None,
        }
    }

    /// With block time steps, if there is a scheme, and with groups or without.
    #[must_use]
    pub(super) fn with_blocks(self, blocks: Option<BlockScheme>, groups: bool) -> Self {
        Self {
            blocks,
            groups,
            ..self
        }
    }

    /// The build that its steps take.
    pub(super) fn build(&self) -> Build {
        match self.blocks {
            Some(scheme) => self.build.of_blocks(scheme.digits),
            None => self.build,
        }
    }

    /// The variant.
    pub(super) fn variant(self) -> Variant {
        let method = Method::Kernel {
            row: self.row,
            build: self.build,
            block: self.block,
            positions: Positions::Device,
            split: None,
            fitted: &[],
            by_masses: self.by_masses,
        };
        variants::first("", method, "")
    }
}

#[cfg(test)]
mod tests {
    use gpu_kernels::numerics::Precision;
    use gpu_kernels::schedule::block_steps::DigitsName;

    use super::super::tests::IN_F64;
    use super::*;
    use crate::backend::{Column, HighestDerivative};
    use crate::fields::{ExternalField, Orbit, Path};
    use crate::force::cpu::samples::cloud;
    use crate::integrator::Integrator;
    use crate::physics::ForceLaw;
    use crate::ranks::Team;
    use crate::ranks::threads::together_with;
    use crate::variants::{PairsName, Queues, RootName, Threads, Transfers};

    fn begin(law: ForceLaw, n: usize, means: Means) -> Command {
        let physics = Physics {
            law,
            g: 2.0,
            softening: 0.25,
        };
        Command::Begin(Box::new(Begin {
            physics,
            means,
            bodies: Bodies {
                id: (0..n as u64).collect(),
                ..cloud(n, 1)
            },
            systems: 1 + n as u32,
            fields: match n {
                0 => Fields::NONE,
                _ => fields(),
            },
        }))
    }

    fn fields() -> Fields {
        let path = Path::through(&[(0.0, [1.0, 2.0, 3.0]), (1.5, [4.0, 5.0, 6.0])]);
        let fields: Fields = [
            ExternalField::point(2.0).at([1.0, -1.0, 0.5]),
            ExternalField::first_post_newtonian(3, 299.0),
            ExternalField::logarithmic(1.0, 0.1, 0.9).along(path.expect("two knots")),
            ExternalField::tide(0.5, 0.6, 0.7),
        ]
        .into_iter()
        .collect();
        fields.on_orbit(Orbit::new([8.0, 0.0, 1.0], [0.0, 2.0, 3.0]).starting(-4.0))
    }

    #[test]
    fn others_hear_what_was_told() {
        let operations = [
            Operation::Damp(0.5),
            Operation::Evaluate(HighestDerivative::None),
            Operation::Evaluate(HighestDerivative::Snap),
            Operation::Kick(-0.5),
            Operation::Drift(f64::INFINITY),
            Operation::Predict(0.1),
            Operation::Correct(0.1),
        ];
        let repulsion = ForceLaw::AttractRepel {
            repulsion: 0.1,
            damping: 0.2,
        };
        let saved = |n: usize, jerks: usize| {
            SavedState::of(Frame::IDENTITY, |column| {
                let bodies = match column {
                    Column::Positions | Column::Velocities | Column::Accelerations => n,
                    _ => jerks,
                };
                let each = column.units().len();
                (0..each * bodies).map(|k| 1.0 / k as f64).collect()
            })
        };
        let path = CpuPath {
            precision: Precision::F32,
            root: RootName::Exact,
            pairs: PairsName::Once,
            threads: Threads::One,
        };
        let on_cpu = Means::Cpu(OnCpu {
            path,
            neighbours: Some(64),
            groups: true,
        });
        let on = |kernel: &str, blocks: Option<BlockScheme>, devices| {
            let kernel = Kernel::of(variants::find(kernel).expect("listed")).expect("shared");
            let frame = Frame {
                time: 0.5,
                ..Frame::IDENTITY
            };
            let groups = blocks.is_some_and(|scheme| scheme.neighbours.is_none());
            Means::Devices(kernel.with_blocks(blocks, groups), frame, devices)
        };
        let blocks = |digits| {
            let (order, slices) = (6, 132);
            Some(BlockScheme {
                order,
                digits,
                slices,
                neighbours: (digits == DigitsName::Mixed).then_some(64),
                heavy_are_finer: digits == DigitsName::Double,
            })
        };
        let mut commands = vec![
            Command::Wait,
            Command::Part,
            Command::Gpus,
            begin(ForceLaw::Gravity, 0, on_cpu),
            begin(
                ForceLaw::Unit,
                1,
                on("symmetric", None, Devices::Emulators(7)),
            ),
            begin(
                repulsion,
                100,
                on("hermite-f64", None, Devices::Gpus(vec![2, 0, 1], Way::Nccl)),
            ),
            Command::SetTime(-1.5),
            Command::FirstStep(0.02, f64::INFINITY),
            Command::Reach(-0.5, 2.0),
            Command::Advance(0.25, 0.01),
            Command::ChooseSteps(0.25, 0.01, vec![3, 70_000]),
            Command::KeepPaths(vec![0.0, 1e-6]),
            Command::TakePaths,
            Command::Energy,
            Command::Restore(Box::new(saved(3, 0))),
            Command::Restore(Box::new(saved(40, 40))),
            Command::Gathered(Asked::State),
            Command::Gathered(Asked::Bodies(u64::MAX)),
            Command::Gathered(Asked::Accelerations),
            Command::Gathered(Asked::End),
            Command::Gathered(Asked::Seconds(0.25, 7)),
        ];
        for digits in [DigitsName::Single, DigitsName::Mixed, DigitsName::Double] {
            let means = on("hermite-f64", blocks(digits), Devices::Emulators(0));
            commands.push(begin(ForceLaw::Gravity, 3, means));
        }
        let of_systems = variants::VARIANTS.iter().filter_map(|v| match v.method {
            Method::Systems(path) => Some(path),
            _ => None,
        });
        let mut paths: Vec<_> = of_systems.collect();
        let of_tiles = *paths.first().expect("there are some");
        paths.push(of_tiles.tile(0).on_all_gpus());
        for queues in [Queues::UpTo(3), Queues::Exactly(5)] {
            paths.push(of_tiles.queued(queues).copied(Transfers::DepthFirst));
        }
        for path in paths {
            let means =
                Means::Systems(path, Frame::IDENTITY, Devices::Gpus(vec![0, 3], Way::Hosts));
            commands.push(begin(ForceLaw::Gravity, 2, means));
        }
        // Lengths on both sides of what is told at once.
        for count in 0..=operations.len() {
            commands.push(Command::Repeat(u64::MAX, operations[..count].to_vec()));
        }
        // Numbers are shown to the last digit, with the signs of zeros.
        let shown = |command: &Command| format!("{command:?}");
        let told: Vec<String> = commands.iter().map(shown).collect();
        let heard = together_with(&[1, 1, 1], |team| match team.rank() {
            0 => {
                commands.iter().for_each(|command| team.tell(command));
                told.clone()
            }
            _ => commands.iter().map(|_| shown(&team.hear())).collect(),
        });
        assert!(heard.iter().all(|heard| *heard == told));
    }

    /// Steps of all integrators, and spans of block time steps.
    #[test]
    fn frequent_commands_take_one_broadcast() {
        for integrator in Integrator::ALL {
            let step = Command::Repeat(u64::MAX, integrator.operations(0.1));
            assert!(Team::is_told_at_once(&step), "{step:?}");
        }
        let advance = Command::Advance(0.25, 0.01);
        let begin = begin(ForceLaw::Gravity, 3, Means::Cpu(OnCpu::plain(IN_F64)));
        assert!(Team::is_told_at_once(&advance) && !Team::is_told_at_once(&begin));
    }

    /// All variants that devices of one process share, ranks share too.
    #[test]
    fn variants_are_told() {
        for variant in variants::VARIANTS {
            let kernel = Kernel::of(variant);
            assert_eq!(
                kernel.is_some(),
                variant.can_be_shared(),
                "{}",
                variant.name
            );
            if let Some(kernel) = kernel {
                assert_eq!(kernel.variant().method, variant.method, "{}", variant.name);
            }
        }
    }
}
