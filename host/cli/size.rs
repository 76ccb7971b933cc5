//! Size of generated initial conditions: from N-body units to physical units.

use allpairs::initial_conditions::{self, Generator, Options, SizeError};
use allpairs::io::Snapshot;
use allpairs::units::{Length, Mass, Units};
use anyhow::{anyhow, ensure};

use crate::made::HEADING;

/// The size of a model in N-body units.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Size {
    /// Mass of a model in N-body units, such as 1000Msun: what is 1 in the model, which is the total
    /// mass (of many-galaxies, each system's; of figure-eight, each body's). With --radius.
    #[arg(long, value_name = "MASS", requires = "radius", help_heading = HEADING)]
    mass: Option<Mass>,
    /// Size of a model in N-body units, such as 1pc: the length that is 1 in the model, which is the
    /// virial radius of plummer, king and hernquist, the radius of the other spheres, the scale
    /// length of disks. With --mass, or --masses. Bodies are then in pc, solar masses and km/s, or --units.
    #[arg(long, value_name = "LENGTH", help_heading = HEADING)]
    radius: Option<Length>,
}

impl Size {
    /// Makes bodies by `generator`, in the `wanted` units; and returns their units, if they have
    /// any.
    pub(super) fn make(
        &self,
        generator: &Generator,
        options: &Options,
        wanted: Option<Units>,
    ) -> anyhow::Result<(Snapshot, Option<Units>)> {
        // clap has seen to it that a mass comes with a radius.
        let mass = self.mass;
        let size = self
            .radius
            .map(|radius| initial_conditions::Size { mass, radius });
        generator
            .make(options, size, wanted)
            .map_err(|error| match error {
                SizeError::HasSize(name) => anyhow!(
                    "`{name}` has its size already: leave --mass and --radius out (--units gives it other \
                     units)"
                ),
                SizeError::NoSize(name) => anyhow!(
                    "`{name}` is in N-body units, and --units would give its numbers another meaning: \
                     add its size, as in --mass 1000Msun --radius 1pc, or leave --units out"
                ),
                SizeError::HasMass => {
                    anyhow!("the mass follows from --masses: leave out --mass or --masses")
                }
                SizeError::NoMass => anyhow!(
                    "--radius alone gives no size: add --mass, as in --mass 1000Msun, or --masses, as in \
                     --masses kroupa, from which it follows"
                ),
                error => error.into(),
            })
    }

    /// Refuses a size for what was not made here.
    pub(super) fn check_unused(&self, input: &std::path::Path) -> anyhow::Result<()> {
        ensure!(
            self.mass.is_none() && self.radius.is_none(),
            "--mass and --radius are for initial conditions made by name, and {} is a file: \
             `allpairs convert` changes its units",
            input.display()
        );
        Ok(())
    }
}
