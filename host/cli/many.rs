//! Options of kernels that compute many independent systems.

use allpairs::plan::systems::bodies_each;
use allpairs::variants::{Method, Queues, Variant};
use allpairs_lab::studies::{self, catalogue};

/// Heading of these options in the help.
pub(super) const HEADING: &str = "Many systems";

/// Options of many systems.
#[derive(Debug, clap::Args)]
pub(super) struct Many {
    /// Sources per tile, for kernels of many systems that have tiles; if not given, the kernel's default.
    #[arg(long, help_heading = HEADING)]
    pub(super) tile: Option<u32>,
    /// Number of streams, for kernels of many systems that use several; if not given, the kernel's
    /// default, or one per system.
    #[arg(long, help_heading = HEADING)]
    pub(super) streams: Option<u32>,
}

impl Many {
    /// Returns the kernel for this number of systems, with the tile and the streams if the kernel has some:
    /// options that it does not know are for other kernels.
    pub(super) fn of_if_it_has(&self, selected: &Variant, systems: u32) -> Variant {
        let mut variant = selected.of_systems(systems);
        if let Method::Systems(path) = &mut variant.method {
            if let Some(tile) = self.tile.filter(|_| path.tile.is_some()) {
                *path = path.tile(tile);
            }
            if let Some(streams) = self.streams.filter(|_| path.queues != Queues::Together) {
                *path = path.queued(Queues::Exactly(streams));
            }
        }
        variant
    }
}

/// Returns whether a kernel computes independent systems.
pub(super) fn are_kept_apart(kernel: Option<&str>) -> anyhow::Result<bool> {
    let kernel = kernel.map(|name| catalogue().find(name)).transpose()?;
    Ok(kernel.is_some_and(studies::is_of_many))
}

/// Returns `, 32 independent systems of 8192`, or nothing for one system.
pub(super) fn of_how_many(systems: u32, bodies: usize) -> anyhow::Result<String> {
    let each = bodies_each(bodies, systems)?;
    Ok(match systems {
        1 => String::new(),
        systems => format!(", {systems} independent systems of {each}"),
    })
}
