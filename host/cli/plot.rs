//! `allpairs plot`.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use allpairs::io::Overwrite;
use allpairs::output::{self, Chart, Projection, RunLog, orbit_chart, run_charts};
use allpairs_lab::bench_charts::bench_charts;
use allpairs_lab::bench_record::BenchRecord;
use anyhow::{Context, ensure};
use clap::{Subcommand, ValueEnum};

use super::series::Series;

/// Most bodies whose paths are drawn where none are chosen.
const MOST_PATHS: usize = 64;
/// Paths that have a colour of their own.
const NAMED_PATHS: usize = 8;

/// Chart to draw.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Energy drift, energies, virial ratio, Lagrangian radii and momentum over time.
    Log {
        /// A run's log (.csv or .jsonl), or the run's folder.
        log: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// The paths of a few bodies.
    Orbits {
        #[command(flatten)]
        series: Series,
        /// The plane.
        #[arg(long, default_value = "xy")]
        axes: Projection,
        /// Ids of the bodies [default: all of up to 64]
        #[arg(long, value_delimiter = ',')]
        ids: Vec<u64>,
        #[command(flatten)]
        target: Target,
    },
    /// A benchmark: times, speedups, rate against N, speed against error, errors by digit, sweeps.
    Bench {
        /// File written by `allpairs bench --json`.
        record: PathBuf,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, clap::Args)]
struct Target {
    /// The folder for the charts.
    #[arg(short, long, alias = "output", value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// The kinds of files.
    #[arg(long, value_delimiter = ',', default_value = "png,svg")]
    types: Vec<FileType>,
    /// Replace what is there.
    #[arg(long)]
    overwrite: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FileType {
    Png,
    Svg,
}

pub(super) fn plot(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    match &options.what {
        What::Log { log, target } => {
            let path = log_in(log);
            let read = RunLog::read(&path);
            let read = match log.is_dir() && !path.exists() {
                true => read.with_context(|| {
                    let folder = log.display();
                    format!(
                        "{folder} has no diagnostics: `allpairs run` logs them with --diagnostics"
                    )
                }),
                false => read.map_err(Into::into),
            };
            let charts = run_charts(&read?, &path.display().to_string())?;
            target.write(&charts, out)
        }
        What::Orbits {
            series,
            axes,
            ids,
            target,
        } => {
            let (paths, subtitle) = paths(series, ids)?;
            let chart = orbit_chart(&paths, *axes, &subtitle)?;
            target.write(&[("orbits".to_owned(), chart)], out)
        }
        What::Bench { record, target } => {
            let record = BenchRecord::read(record)?;
            target.write(&bench_charts(&record)?, out)
        }
    }
}

/// The log itself, or the one in a run's folder.
fn log_in(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join("diagnostics.csv")
    } else {
        path.to_owned()
    }
}

impl Target {
    fn write(&self, charts: &[(String, Chart)], out: &mut impl Write) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.out)
            .with_context(|| format!("cannot make the folder {}", self.out.display()))?;
        let overwrite = Overwrite::from(self.overwrite);
        super::remove_abandoned(&self.out.join("chart"));
        for (name, chart) in charts {
            for kind in &self.types {
                let extension = match kind {
                    FileType::Png => "png",
                    FileType::Svg => "svg",
                };
                let path = self.out.join(format!("{name}.{extension}"));
                chart.write(&path, overwrite)?;
                writeln!(out, "wrote {}", path.display())?;
            }
        }
        Ok(())
    }
}

/// Paths of the bodies through the snapshots, and a subtitle.
fn paths(series: &Series, ids: &[u64]) -> anyhow::Result<(Vec<output::Path>, String)> {
    let files = series.files()?;
    let mut asked = HashSet::new();
    let mut wanted: Vec<u64> = ids.to_vec();
    wanted.retain(|id| asked.insert(*id));
    let mut places: HashMap<u64, Vec<[f64; 3]>> = HashMap::new();
    let mut times = vec![];
    for file in &files {
        let snapshot = series.read(file)?;
        let bodies = &snapshot.bodies;
        let numbered = bodies.id.iter().enumerate();
        let found: HashMap<u64, usize> = numbered.map(|(i, id)| (*id, i)).collect();
        if wanted.is_empty() {
            ensure!(
                bodies.len() <= MOST_PATHS,
                "{} bodies are too many to draw the paths of all: choose some with --ids",
                bodies.len()
            );
            wanted = found.keys().copied().collect();
            wanted.sort_unstable();
        }
        for id in &wanted {
            let i = found
                .get(id)
                .with_context(|| format!("there is no body of id {id} in {}", file.display()))?;
            places
                .entry(*id)
                .or_default()
                .push(bodies.body(*i).position);
        }
        times.push(snapshot.time);
    }
    let named = wanted.len() <= NAMED_PATHS;
    let path = |id: &u64| output::Path {
        name: if named {
            format!("body {id}")
        } else {
            String::new()
        },
        places: places.remove(id).unwrap_or_default(),
    };
    let paths = wanted.iter().map(path).collect();
    let (first, last) = (times[0], times[times.len() - 1]);
    Ok((
        paths,
        format!("t = {first} to {last}, {} snapshots", times.len()),
    ))
}
