//! Size of generated initial conditions: from N-body units to those of the sky.

use allpairs::initial_conditions::{Generator, Options};
use allpairs::io::Snapshot;
use allpairs::units::{Length, Mass, Units};
use anyhow::{bail, ensure};

const HEADING: &str = "Initial conditions";

/// Units of bodies that were given a size, where no others are asked for.
const UNITS: &str = "pc";

/// The size of a model in N-body units.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Size {
    /// Mass of a model in N-body units, such as 1000Msun: what is 1 in the model, which is the total
    /// mass (of many-galaxies, each system's; of figure-eight, each body's). With --radius.
    #[arg(long, value_name = "MASS", requires = "radius", help_heading = HEADING)]
    mass: Option<Mass>,
    /// Size of a model in N-body units, such as 1pc: the length that is 1 in the model, which is the
    /// virial radius of plummer, king and hernquist, the radius of the other spheres, the scale
    /// length of disks. With --mass. Bodies are then in pc, solar masses and km/s, or --units.
    #[arg(long, value_name = "LENGTH", requires = "mass", help_heading = HEADING)]
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
        let name = generator.name;
        let parse = |text: &str| -> Units {
            text.parse()
                .expect("a test parses the units of all generators")
        };
        let own = generator.units_of(options).map(parse);
        let (own, wanted) = match (own, self.mass, self.radius) {
            (Some(own), None, None) => (own, wanted.unwrap_or(own)),
            (Some(_), ..) => bail!(
                "`{name}` has its size already: leave --mass and --radius out (--units gives it \
                 other units)"
            ),
            (None, Some(Mass(mass)), Some(Length(length))) => {
                let own = Units::with_unit_g(length, mass);
                ensure!(
                    own.time.is_normal(),
                    "no unit of time follows from this --mass and --radius: give them nearer to 1"
                );
                (own, wanted.unwrap_or_else(|| parse(UNITS)))
            }
            (None, ..) => {
                ensure!(
                    wanted.is_none(),
                    "`{name}` is in N-body units, and --units would give its numbers another \
                     meaning: add its size, as in --mass 1000Msun --radius 1pc, or leave --units out"
                );
                let bodies = generator.generate(options)?;
                let time = generator.time_of(options);
                return Ok((Snapshot { time, bodies }, None));
            }
        };
        let mut bodies = generator.generate(options)?;
        let mut time = generator.time_of(options);
        if own != wanted {
            let factors = own.factors_to(&wanted);
            factors.apply(&mut bodies);
            time *= factors.time;
            ensure!(
                bodies.check().is_ok() && time.is_finite(),
                "numbers in {wanted} are beyond the range of f64: give other --units"
            );
        }
        Ok((Snapshot { time, bodies }, Some(wanted)))
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
