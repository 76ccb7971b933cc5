//! `allpairs ic`.

use std::io::Write;
use std::path::PathBuf;

use allpairs::initial_conditions::{self, GENERATORS, SOLAR_SYSTEM_NOTES};
use allpairs::io::{Format, Overwrite};
use allpairs::units::Units;

use crate::files;
use crate::made::Made;
use crate::say;
use crate::size::Size;
use crate::tables;
use crate::times::Times;

/// Initial conditions to make, and the file to write.
#[derive(Debug, clap::Args)]
#[command(after_help = SOLAR_SYSTEM_NOTES)]
pub(super) struct Options {
    /// Name of the initial conditions; without one, the list of them.
    #[arg(requires = "out")]
    name: Option<String>,
    /// File to write: .allpairs, .hdf5, .npz, .vtp, .csv, or Tipsy as .tipsy or .bin; or `-`
    /// for a table on the standard output.
    #[arg(short, long, alias = "output", value_name = "FILE", requires = "name")]
    out: Option<PathBuf>,
    /// Format of the file, if it does not follow from the name.
    #[arg(long)]
    format: Option<Format>,
    /// Replace the file if it exists.
    #[arg(long)]
    overwrite: bool,
    /// Units to write the bodies in, as for `allpairs convert`: kpc, or pc,Msun,km/s. If not given, the
    /// units of the initial conditions. Initial conditions in N-body units need --mass and --radius.
    #[arg(long, value_name = "SYSTEM")]
    units: Option<Units>,
    #[command(flatten)]
    made: Made,
    #[command(flatten)]
    size: Size,
}

pub(super) fn ic(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let (Some(name), Some(path)) = (&options.name, &options.out) else {
        return list(out);
    };
    let generator = initial_conditions::find(name)?;
    let format = files::format_of(path, options.format)?;
    let overwrite = Overwrite::from(options.overwrite);
    let (snapshot, units) = options
        .size
        .make(generator, &options.made.options, options.units)?;
    let n = snapshot.bodies.len();
    if !files::write(path, format, (&snapshot, units), overwrite, out)? {
        return Ok(());
    }
    let at = match snapshot.time {
        0.0 => String::new(),
        time => format!(
            " at time {}",
            Times::of(units.as_ref(), &[], time.abs()).text(time)
        ),
    };
    writeln!(
        out,
        "wrote {}: {}{at}, {}",
        path.display(),
        say::counted(n, "body", "bodies"),
        format.summary()
    )?;
    if let Some(units) = units.filter(|_| format.records_units()) {
        writeln!(out, "in units of {units}")?; // others are remarked on where the file is written
    }
    Ok(())
}

fn list(out: &mut impl Write) -> anyhow::Result<()> {
    let mut table = tables::table(&["initial conditions", "options", "what it is"]);
    for generator in GENERATORS {
        let options = generator.parameters.iter();
        let options: Vec<_> = options
            .map(|(parameter, default)| format!("--{} {default}", parameter.name()))
            .collect();
        table.add_row([generator.name, &options.join("\n"), generator.summary]);
    }
    tables::wrap_sentences(&mut table);
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "\n`allpairs ic NAME --out FILE` writes them, `allpairs run NAME` simulates them."
    )?;
    Ok(())
}
