//! The options that choose a kernel.

use allpairs::initial_conditions::{self, Generator, Parameter};
use allpairs::selection::DeviceChoice;
use allpairs::variants::Shape;
use allpairs::variants::preferred::ForceAccuracy;
use anyhow::ensure;

use crate::choices::{DeviceOption, Named};
use crate::many::{self, HEADING, Many};

/// Options that choose kernel, device and launch geometry.
#[derive(Debug, clap::Args)]
pub(super) struct KernelOptions {
    #[command(flatten)]
    place: DeviceOption,
    /// Name of the kernel (see `allpairs list`). If not given, the fastest that `allpairs tune` found here,
    /// or the preferred kernel of the device.
    #[arg(long)]
    kernel: Option<String>,
    /// Accepted error of forces, which chooses the kernel. If not given, single; double if the softening
    /// is chosen to be 0, and for hermite4 and hermite6. With --block-steps on a GPU it chooses the
    /// precision of pairs: mixed if not given
    #[arg(long)]
    accuracy: Option<Named<ForceAccuracy>>,
    /// Ignore the kernels that `allpairs tune` found.
    #[arg(long)]
    no_cache: bool,
    /// Run the kernel even if the error of its forces has no bound.
    #[arg(long)]
    pub(super) allow_inaccurate: bool,
    /// Threads per block; if not given, the kernel's default.
    #[arg(long)]
    block: Option<u32>,
    /// Threads of a two-dimensional block along the sources; if not given, the kernel's default.
    #[arg(long)]
    len: Option<u32>,
    /// Sources per thread of a two-dimensional block; if not given, the kernel's default.
    #[arg(long)]
    luf: Option<u32>,
    /// Run every system separately with a CPU kernel made for one system. Applies to --systems, and to
    /// initial conditions that make several systems.
    #[arg(long, help_heading = HEADING)]
    independent: bool,
    #[command(flatten)]
    many: Many,
}

impl KernelOptions {
    /// The kernel's name, if one was asked for.
    pub(super) fn name(&self) -> Option<&str> {
        self.kernel.as_deref()
    }

    /// Returns whether systems are computed as independent, by a kernel that was asked for or whatever the kernel.
    pub(super) fn keeps_apart(&self) -> anyhow::Result<bool> {
        Ok(self.independent || many::are_kept_apart(self.name())?)
    }

    /// Number of independent systems that the kernel computes: `given`, or those of the initial
    /// conditions; 1 for kernels of one system. If no kernel is named, initial conditions of many
    /// systems are computed as independent.
    pub(super) fn systems(
        &self,
        given: &initial_conditions::Options,
        generator: Option<&Generator>,
    ) -> anyhow::Result<u32> {
        let made_as_many = self.name().is_none() && generator.is_some_and(Generator::has_systems);
        if !made_as_many && !self.keeps_apart()? {
            return Ok(1);
        }
        let default = generator.and_then(|generator| {
            let mut parameters = generator.parameters.iter();
            let default = parameters.find(|(p, _)| *p == Parameter::Systems)?;
            Some(default.1)
        });
        let asked = given.get(Parameter::Systems).or(default).unwrap_or(1.0);
        let whole = asked.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&asked);
        ensure!(whole, "`--systems` must be a whole number ≥ 1, got {asked}");
        Ok(asked as u32)
    }

    /// Takes another device than was asked for.
    pub(super) fn go_on_with(&mut self, device: DeviceChoice) {
        self.place.device = device;
    }

    /// The accuracy that was asked for.
    pub(super) fn accuracy(&self) -> Option<ForceAccuracy> {
        self.accuracy.map(|named| named.0)
    }

    /// The device.
    pub(super) fn device(&self) -> DeviceChoice {
        self.place.device
    }

    /// Returns whether the kernels are to be used that `allpairs tune` found.
    pub(super) fn is_tuned(&self) -> bool {
        !self.no_cache
    }

    /// The shape that was asked for.
    pub(super) fn shape(&self) -> Shape {
        let Self {
            block, len, luf, ..
        } = *self;
        Shape { block, len, luf }
    }

    /// Sources of a tile, and number of streams.
    pub(super) fn many(&self) -> (Option<u32>, Option<u32>) {
        (self.many.tile, self.many.streams)
    }
}
