//! `allpairs ic`.

use std::io::Write;
use std::path::PathBuf;

use allpairs::initial_conditions::{self, GENERATORS, Generator};
use allpairs::io::{Format, Overwrite, Snapshot};
use allpairs::units::Units;
use anyhow::Context;

use super::made::Made;

/// What to make, and where to.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Name of the initial conditions; without one, the list of them.
    #[arg(requires = "out")]
    name: Option<String>,
    /// File to write: .allpairs, .hdf5, .npz, .vtp, .csv, or Tipsy as .tipsy or .bin.
    #[arg(short, long, alias = "output", value_name = "FILE", requires = "name")]
    out: Option<PathBuf>,
    /// Format of the file, where its name does not tell.
    #[arg(long)]
    format: Option<Format>,
    /// Replace the file if it is there.
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    made: Made,
}

pub(super) fn ic(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let (Some(name), Some(path)) = (&options.name, &options.out) else {
        return list(out);
    };
    let generator = initial_conditions::find(name)?;
    let format = options
        .format
        .or_else(|| Format::from_path(path))
        .with_context(|| super::no_format(path))?;
    let overwrite = Overwrite::from(options.overwrite);
    let bodies = generator.generate(&options.made.0)?;
    let n = bodies.len();
    let snapshot = Snapshot { time: 0.0, bodies };
    allpairs::io::write_in_units(
        path,
        format,
        &snapshot,
        units(generator, &options.made.0),
        overwrite,
    )?;
    writeln!(
        out,
        "wrote {}: {n} bodies, {}",
        path.display(),
        format.summary()
    )?;
    Ok(())
}

/// The units of what a generator makes.
pub(super) fn units(generator: &Generator, options: &initial_conditions::Options) -> Option<Units> {
    let parse = |text: &str| {
        text.parse()
            .expect("a test parses the units of all generators")
    };
    generator.units_of(options).map(parse)
}

fn list(out: &mut impl Write) -> anyhow::Result<()> {
    let mut table = super::table(&["initial conditions", "options", "what it is"]);
    for generator in GENERATORS {
        let options = generator.parameters.iter();
        let options: Vec<_> = options
            .map(|(parameter, default)| format!("--{} {default}", parameter.name()))
            .collect();
        table.add_row([generator.name, &options.join("\n"), generator.summary]);
    }
    super::wrap_sentences(&mut table);
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "\n`allpairs ic NAME --out FILE` writes them, `allpairs run NAME` simulates them."
    )?;
    Ok(())
}
