//! Options of kernels that compute many independent systems.

use allpairs::plan::systems::bodies_each;
use allpairs::variants::{Method, Queues, Variant};
use allpairs_lab::studies::{self, catalogue};
use anyhow::{bail, ensure};

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
    /// The selected kernel, for this number of systems, with these tiles and streams.
    pub(super) fn of(&self, selected: &Variant, systems: u32) -> anyhow::Result<Variant> {
        let mut variant = selected.of_systems(systems);
        if self.tile.is_none() && self.streams.is_none() {
            return Ok(variant);
        }
        let Method::Systems(path) = &mut variant.method else {
            bail!(
                "--tile and --streams are for kernels of independent systems, such as galaxies/streams"
            );
        };
        if let Some(tile) = self.tile {
            ensure!(
                path.tile.is_some(),
                "kernel `{}` has no tiles: --tile is for kernels that do, such as galaxies/tiled-512",
                variant.name
            );
            *path = path.tile(tile);
        }
        if let Some(streams) = self.streams {
            ensure!(
                path.queues != Queues::Together,
                "kernel `{}` computes all systems in one stream: --streams is for kernels that use \
                 several, such as galaxies/streams",
                variant.name
            );
            *path = path.queued(Queues::Exactly(streams));
        }
        Ok(variant)
    }

    /// Like [`of`](Self::of), but ignores options that the kernel does not have.
    pub(super) fn of_if_it_has(&self, selected: &Variant, systems: u32) -> anyhow::Result<Variant> {
        let (mut tile, mut streams) = (None, None);
        if let Method::Systems(path) = selected.method {
            tile = self.tile.filter(|_| path.tile.is_some());
            streams = self.streams.filter(|_| path.queues != Queues::Together);
        }
        Self { tile, streams }.of(selected, systems)
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
