//! Choices of the library as values of options: their names are the library's, the help is the program's.

use allpairs::encounters::{OnCollision, OnEscape};
use allpairs::integrator::Integrator;
use allpairs::io::Velocities;
use allpairs::physics::ForceLaw;
use allpairs::selection::DeviceChoice;
use allpairs::variants::preferred::ForceAccuracy;
use clap::ValueEnum;
use clap::builder::PossibleValue;

/// Device to run on.
#[derive(Debug, clap::Args)]
pub(super) struct DeviceOption {
    /// Device to run on: auto (the first GPU, or the CPU where there is none; for a run of many bodies
    /// all GPUs of its kind), cpu, emulator, cuda, or cuda:1 for the second GPU; or GPUs that compute
    /// one system together: cuda:0,1, cuda:all, emulator:3. Where an MPI launcher starts several
    /// ranks, cuda is a GPU of its own for each
    #[arg(long, default_value = "auto")]
    pub(super) device: DeviceChoice,
}

/// Choice of numbers of a cosmological snapshot.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Cosmological {
    /// Make a cosmological snapshot physical at its time, without factors of a and h. Velocities are then
    /// proper, with the expansion of space about the centre of mass, as Newton's law needs them; or
    /// peculiar, without it.
    #[arg(long, value_name = "VELOCITIES")]
    pub(super) physical: Option<Velocities>,
}

/// A choice of the library as the value of an option.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<T>(pub(super) T);

/// A choice that has names.
pub(super) trait Choice: Copy + Send + Sync + 'static {
    /// All there are, in the order of the help.
    const ALL: &'static [Named<Self>];

    /// Name on the command line.
    fn name(self) -> &'static str;

    /// Line of the help.
    fn help(self) -> &'static str;
}

impl<T: Choice> ValueEnum for Named<T> {
    fn value_variants<'a>() -> &'a [Self] {
        T::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.help()))
    }
}

const fn named<T: Copy, const N: usize>(choices: [T; N]) -> [Named<T>; N] {
    let mut all = [Named(choices[0]); N];
    let mut i = 0;
    while i < N {
        all[i] = Named(choices[i]);
        i += 1;
    }
    all
}

impl Choice for Integrator {
    const ALL: &'static [Named<Self>] = &named(Self::ALL);

    fn name(self) -> &'static str {
        self.name()
    }

    fn help(self) -> &'static str {
        self.summary()
    }
}

impl Choice for ForceAccuracy {
    const ALL: &'static [Named<Self>] = &named(Self::ALL);

    fn name(self) -> &'static str {
        self.name()
    }

    fn help(self) -> &'static str {
        match self {
            Self::Fast => {
                "1e-5 of the typical force: tensor cores, on a GPU and for many bodies; else as single"
            }
            Self::Single => "1e-6: single precision",
            Self::Double => "1e-13: double precision",
        }
    }
}

impl Choice for ForceLaw {
    const ALL: &'static [Named<Self>] = &named(Self::ALL);

    fn name(self) -> &'static str {
        self.name()
    }

    fn help(self) -> &'static str {
        match self {
            Self::Gravity => "Newton's gravity",
            Self::Unit => "Gravity of bodies that all have mass 1, with G = 1",
            Self::AttractRepel { .. } => {
                "Gravity that turns into repulsion at short range, and drag"
            }
        }
    }
}

impl Choice for OnCollision {
    const ALL: &'static [Named<Self>] = &named(Self::ALL);

    fn name(self) -> &'static str {
        self.name()
    }

    fn help(self) -> &'static str {
        match self {
            Self::Log => "Nothing: bodies pass through each other",
            Self::Stop => "The run stops after the step",
            Self::Merge => {
                "Both become one, which keeps mass, momentum and volume; the heavier one's id stays"
            }
            Self::Bounce => "Both rebound as elastic spheres",
        }
    }
}

impl Choice for OnEscape {
    const ALL: &'static [Named<Self>] = &named(Self::ALL);

    fn name(self) -> &'static str {
        self.name()
    }

    fn help(self) -> &'static str {
        match self {
            Self::Log => "Nothing",
            Self::Stop => "The run stops after the step",
            Self::Remove => "The body is taken away",
        }
    }
}
