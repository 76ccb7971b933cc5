//! `allpairs plot`.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use allpairs::io::Overwrite;
use allpairs::output::chart::axis::Scale;
use allpairs::output::{self, Chart, Projection, RunLog, orbit_chart, run_charts};
use allpairs::units::Units;
use allpairs_lab::bench_charts::bench_charts;
use allpairs_lab::bench_record::BenchRecord;
use allpairs_lab::table_chart::TableChart;
use anyhow::{Context, ensure};
use clap::{Subcommand, ValueEnum};

use crate::config;
use crate::files;
use crate::outputs;
use crate::say;
use crate::series::Series;

/// Most bodies with paths that are drawn if none are chosen.
const MOST_PATHS: usize = 64;
/// Most bodies that are named.
const NAMED_PATHS: usize = 20;

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
        /// Names of the bodies, in the order of --ids, or of all ids [default: those of the Solar System
        /// for a run of it, else their ids]
        #[arg(long, value_delimiter = ',')]
        names: Vec<String>,
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
    /// A table of measurements: a column over another, with a line for each value of a third.
    Table {
        /// A .csv file with the names of its columns in the first line.
        table: PathBuf,
        /// The column across.
        #[arg(long, value_name = "COLUMN")]
        x: String,
        /// The column up.
        #[arg(long, value_name = "COLUMN")]
        y: String,
        /// The column that names the lines [default: all rows are one line]
        #[arg(long, value_name = "COLUMN")]
        by: Option<String>,
        /// Axes on which equal distances are equal ratios.
        #[arg(long, value_name = "AXES", value_delimiter = ',')]
        log: Vec<Axis>,
        /// The title [default: the name of the file]
        #[arg(long, value_name = "TEXT")]
        title: Option<String>,
        /// A line below it.
        #[arg(long, value_name = "TEXT", default_value = "")]
        subtitle: String,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Axis {
    X,
    Y,
}

#[derive(Debug, clap::Args)]
struct Target {
    /// The folder for the charts.
    #[arg(short, long, alias = "output", value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// The kinds of files: png, svg, pdf.
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
    Pdf,
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
            let units = path.parent().and_then(outputs::units_of_run);
            let charts = run_charts(&read?, &path.display().to_string(), units)?;
            target.write(&charts, out)
        }
        What::Orbits {
            series,
            axes,
            ids,
            names,
            target,
        } => {
            let (paths, subtitle, units) = paths(series, ids, names)?;
            let chart = orbit_chart(&paths, *axes, &subtitle, units)?;
            target.write(&[("orbits".to_owned(), chart)], out)
        }
        What::Bench { record, target } => {
            let record = BenchRecord::read(record)?;
            target.write(&bench_charts(&record)?, out)
        }
        What::Table {
            table,
            x,
            y,
            by,
            log,
            title,
            subtitle,
            target,
        } => {
            let stem = table.file_stem().unwrap_or_default().to_string_lossy();
            let chart = TableChart {
                columns: [x.clone(), y.clone()],
                scales: [Axis::X, Axis::Y].map(|axis| match log.contains(&axis) {
                    true => Scale::Log,
                    false => Scale::Linear,
                }),
                by: by.clone(),
                title: title.clone().unwrap_or_else(|| stem.to_string()),
                subtitle: subtitle.clone(),
            };
            target.write(&[(stem.into_owned(), chart.of_file(table)?)], out)
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
        files::remove_abandoned(&self.out.join("chart"));
        for (name, chart) in charts {
            for kind in &self.types {
                let extension = match kind {
                    FileType::Png => "png",
                    FileType::Svg => "svg",
                    FileType::Pdf => "pdf",
                };
                let path = self.out.join(format!("{name}.{extension}"));
                chart.write(&path, overwrite)?;
                writeln!(out, "wrote {}", path.display())?;
            }
        }
        Ok(())
    }
}

/// Paths of the bodies through the snapshots, a subtitle, and the units of the bodies where they are known.
fn paths(
    series: &Series,
    ids: &[u64],
    names: &[String],
) -> anyhow::Result<(Vec<output::PathOfBody>, String, Option<Units>)> {
    let files = series.files()?;
    let mut units = None;
    let mut asked = HashSet::new();
    let mut wanted: Vec<u64> = ids.to_vec();
    wanted.retain(|id| asked.insert(*id));
    let mut states: HashMap<u64, Vec<State>> = HashMap::new();
    let mut times = vec![];
    for file in &files {
        let (snapshot, known) = series.load(file)?;
        units = units.or(known);
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
            let body = bodies.body(*i);
            let state = (snapshot.time, body.position, body.velocity);
            states.entry(*id).or_default().push(state);
        }
        times.push(snapshot.time);
    }
    let units = units.or_else(|| config::units(&series.run()?.1));
    ensure!(
        names.is_empty() || names.len() == wanted.len(),
        "there are {} names for {} bodies",
        names.len(),
        wanted.len()
    );
    let known = series.names();
    let is_named = wanted.len() <= NAMED_PATHS || !names.is_empty();
    let path = |(i, id): (usize, &u64)| output::PathOfBody {
        name: match (names.get(i), known.get(*id as usize)) {
            (Some(name), _) => name.clone(),
            (None, Some(name)) => (*name).to_owned(),
            (None, None) if is_named => format!("body {id}"),
            (None, None) => String::new(),
        },
        places: smooth(&states.remove(id).unwrap_or_default()),
    };
    let paths = wanted.iter().enumerate().map(path).collect();
    let span = [times[0], times[times.len() - 1]];
    let unit = units.map(|units| units.shown_time(span[0].abs().max(span[1].abs())));
    let factor = unit.map_or(1.0, |unit| unit.factor);
    let [first, last] = span.map(|time| say::converted(factor * time));
    let unit = unit.map_or(String::new(), |unit| format!(" {}", unit.name));
    let count = times.len();
    let subtitle = format!("t = {first} to {last}{unit}, {count} snapshots");
    Ok((paths, subtitle, units))
}

/// Time, position and velocity of a body.
type State = (f64, [f64; 3], [f64; 3]);

/// The path through snapshots: between two of them the cubic with the velocities at both, where these are
/// close enough to tell it; else a straight line.
fn smooth(states: &[State]) -> Vec<[f64; 3]> {
    const PARTS: u32 = 12;
    // An arc that turns by two radians is so much longer than its chord.
    const LONGEST: f64 = 1.2;
    let norm = |v: [f64; 3]| v[0].hypot(v[1]).hypot(v[2]);
    let mut path = vec![];
    for pair in states.windows(2) {
        let [(t0, x0, v0), (t1, x1, v1)] = [pair[0], pair[1]];
        path.push(x0);
        let (dt, chord) = (t1 - t0, norm([0, 1, 2].map(|k| x1[k] - x0[k])));
        if dt.abs() * norm(v0).max(norm(v1)) > LONGEST * chord {
            continue;
        }
        path.extend((1..PARTS).map(|i| {
            let s = f64::from(i) / f64::from(PARTS);
            let (rest, both) = (1.0 - s, s * (1.0 - s));
            [0, 1, 2].map(|k| {
                let step = x1[k] - x0[k];
                let bends = rest * (dt * v0[k] - step) - s * (dt * v1[k] - step);
                rest * x0[k] + s * x1[k] + both * bends
            })
        }));
    }
    path.extend(states.last().map(|(_, place, _)| *place));
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_between_snapshots_are_curves() {
        let circle = |angle: f64| {
            let (s, c) = angle.sin_cos();
            (angle, [c, s, 0.0], [-s, c, 0.0])
        };
        let radius = |place: &[f64; 3]| place[0].hypot(place[1]);
        let close = smooth(&[0.0, 0.6, 1.2].map(circle));
        assert_eq!(close.len(), 25);
        assert!(
            close.iter().all(|place| (radius(place) - 1.0).abs() < 1e-3),
            "{close:?}"
        );
        // Of snapshots half an orbit apart it is not known what is between.
        assert_eq!(smooth(&[0.0, 3.0].map(circle)).len(), 2);
    }
}
