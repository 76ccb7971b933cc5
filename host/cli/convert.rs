//! `allpairs convert`.

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use allpairs::io::{Format, Overwrite, Reading, Snapshot, write_series};
use allpairs::suggest;
use allpairs::units::{Units, UnknownUnits};
use anyhow::{Context, ensure};

use crate::choices::Cosmological;
use crate::files;
use crate::say;
use crate::series;
use crate::times::Times;

/// Files to read and to write.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Snapshot to read, `-` from the standard input; or the folder of a run, to put all of its snapshots into
    /// one .npz: arrays whose first dimension is time.
    input: PathBuf,
    /// File to write; `-` is the standard output.
    output: PathBuf,
    /// Format of the input, if its content is not to decide.
    #[arg(long)]
    from: Option<Format>,
    /// Format of the output, where its name does not tell; csv to the standard output.
    #[arg(long)]
    to: Option<Format>,
    /// Change units, FROM:TO, or TO alone where the input tells its own.
    ///
    /// A system of units is a list: pc,Msun,km/s, or m,kg,s. Two units make a system in which
    /// G = 1: pc,km/s leaves lengths and speeds and makes the masses fit. Short names are si, pc
    /// (pc,Msun,km/s), kpc (kpc,1e10Msun,km/s) and au (au,Msun; G = 1). TO may be nbody: total mass
    /// 1, potential energy -1/2 and G = 1.
    #[arg(long, value_name = "[FROM:]TO")]
    units: Option<Change>,
    #[command(flatten)]
    cosmological: Cosmological,
    /// Replace the output if it is there.
    #[arg(long)]
    overwrite: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Change {
    from: Option<Units>,
    to: Target,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    System(Units),
    /// Hénon's: the state's own mass and virial radius.
    Standard,
}

impl FromStr for Change {
    type Err = UnknownUnits;

    fn from_str(text: &str) -> Result<Self, UnknownUnits> {
        let (from, to) = match text.split_once(':') {
            Some((from, to)) => (Some(from.parse()?), to),
            None => (None, text),
        };
        let to = if to.eq_ignore_ascii_case("nbody") {
            Target::Standard
        } else {
            Target::System(to.parse()?)
        };
        Ok(Self { from, to })
    }
}

pub(super) fn convert(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let to = files::format_of(&options.output, options.to)?;
    // Before the work, not after it; writing refuses as well.
    ensure!(
        options.overwrite || files::is_standard(&options.output) || !options.output.exists(),
        "{} is there already: choose another name, or --overwrite",
        options.output.display()
    );
    if options.input.is_dir() {
        return gather(options, to, out);
    }
    let reading = Reading {
        format: options.from,
        physical: options.cosmological.physical,
        units: None,
    };
    let input = files::load(&options.input, reading)?;
    let (mut snapshot, from, mut units) = (input.snapshot, input.format, input.units);
    let mut told = String::new();
    if let Some(change) = options.units {
        let source = files::units_of(&options.input, units, change.from)?.with_context(|| {
            format!(
                "{} records no units: give them as --units FROM:TO",
                options.input.display()
            )
        })?;
        let target = match change.to {
            Target::System(target) => target,
            Target::Standard => suggest::standard_units(&snapshot.bodies, source)?,
        };
        let factors = source.factors_to(&target);
        factors.apply(&mut snapshot.bodies);
        snapshot.time *= factors.time;
        units = Some(target);
        told = format!("; units are now {target}");
    }
    let overwrite = Overwrite::from(options.overwrite);
    if !files::write(&options.output, to, (&snapshot, units), overwrite, out)? {
        return Ok(());
    }
    writeln!(
        out,
        "{} ({from}) -> {} ({to}): {} at time {}{told}",
        options.input.display(),
        options.output.display(),
        say::counted(snapshot.bodies.len(), "body", "bodies"),
        Times::of(units.as_ref(), &[], snapshot.time.abs()).text(snapshot.time),
    )?;
    Ok(())
}

/// Puts the snapshots in a folder into one file.
fn gather(options: &Options, to: Format, out: &mut impl Write) -> anyhow::Result<()> {
    let folder = options.input.display();
    ensure!(
        to == Format::Npz && options.units.is_none() && options.cosmological.physical.is_none(),
        "{folder} is a folder: all snapshots in it go into one .npz, in the units and with the numbers that they have"
    );
    let files = series::in_folder(&options.input)?;
    let first = files::load(&files[0], options.from.into())?;
    let n = first.snapshot.bodies.len();
    let read = |index: usize| -> anyhow::Result<Snapshot> {
        let snapshot = allpairs::io::load(&files[index], options.from)?.snapshot;
        ensure!(
            snapshot.bodies.len() == n,
            "{} has {} bodies, and {} has {n}: one array cannot hold both",
            files[index].display(),
            snapshot.bodies.len(),
            files[0].display()
        );
        Ok(snapshot)
    };
    let overwrite = Overwrite::from(options.overwrite);
    files::remove_abandoned(&options.output);
    write_series(
        &options.output,
        (files.len(), n),
        first.units,
        overwrite,
        read,
    )?;
    writeln!(
        out,
        "{folder} -> {}: {} of {}",
        options.output.display(),
        say::counted(files.len(), "snapshot", "snapshots"),
        say::counted(n, "body", "bodies"),
    )?;
    Ok(())
}
