//! `allpairs view`.

use std::io::Write;
use std::path::{Path, PathBuf};

use allpairs::io::Overwrite;
use allpairs::output::Viewer;

use crate::files;
use crate::series::Series;

/// Snapshots to show.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    series: Series,
    /// The page to write [default: the first snapshot's name with .html]
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// The heading [default: what was run, and its folder; or the first snapshot's name]
    #[arg(long)]
    title: Option<String>,
    /// Bodies to show of each snapshot, at most; each takes 11 bytes of the page.
    #[arg(long, value_name = "COUNT", default_value_t = 100_000,
        value_parser = clap::value_parser!(u32).range(1..))]
    most_bodies: u32,
    /// Replace what is there.
    #[arg(long)]
    overwrite: bool,
}

pub(super) fn view(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let files = options.series.files()?;
    let name = Path::new(files[0].file_name().unwrap_or_default());
    let title = match &options.title {
        Some(title) => title.clone(),
        None => options.series.title().unwrap_or(name.display().to_string()),
    };
    let mut viewer = Viewer::new(title, options.most_bodies as usize).named(options.series.names());
    let mut units = None;
    for file in &files {
        let (snapshot, known) = options.series.load(file)?;
        units = units.or(known);
        viewer.add(&snapshot)?;
    }
    let viewer = viewer.in_units(units);
    let path = match &options.output {
        Some(path) => path.clone(),
        None => name.with_extension("html"),
    };
    let overwrite = Overwrite::from(options.overwrite);
    files::remove_abandoned(&path);
    viewer.write(&path, overwrite)?;
    let bytes = std::fs::metadata(&path)?.len();
    let size = match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", 1e-6 * bytes as f64),
    };
    writeln!(out, "wrote {} ({size})", path.display())?;
    Ok(())
}
