//! `allpairs resume`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use allpairs::checkpoint::{self, Checkpoint, Found};
use allpairs::integrator::Pace;
use allpairs::io::is_partial;
use allpairs::ranks::Team;
use allpairs::recording::{self, Recording};
use allpairs::run::{End, RunSpec, Surroundings};
use allpairs::selection::DeviceChoice;
use allpairs::units::Measure;
use allpairs_lab::studies;
use anyhow::{Context, bail, ensure};

use crate::asked::Asked;
use crate::bodies;
use crate::changes;
use crate::config;
use crate::drive::drive;
use crate::header;
use crate::options::{self, plan};
use crate::outputs::{CONFIG, Outputs};
use crate::run;
use crate::say;
use crate::settings;
use crate::watch::Watch;

/// Run to continue, and its new end.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A run keeps its physics and its step: `allpairs run` with its last snapshot \
                        begins another. What it records (diagnostics, snapshot-every, \
                        checkpoint-every) may be changed in its run.toml."
)]
pub(super) struct Options {
    /// The folder of the run.
    folder: PathBuf,
    /// Steps from the run's beginning to its new end.
    #[arg(long, value_name = "COUNT", conflicts_with = "until")]
    steps: Option<u64>,
    /// The run's new end, as a time.
    #[arg(long, value_name = "TIME")]
    until: Option<Measure>,
    /// Device to go on with, where not the one that it ran on: cpu kernels on cpu, others on cuda,
    /// cuda:1, cuda:0,1, cuda:all or emulator; of several ranks each has a GPU of its own with cuda.
    #[arg(long)]
    device: Option<DeviceChoice>,
    /// Draw the surface density in the terminal, again and again, while it runs.
    #[arg(long)]
    watch: bool,
}

/// The file of a run's options.
fn configuration(folder: &Path) -> anyhow::Result<PathBuf> {
    let config = folder.join(CONFIG);
    ensure!(
        config.is_file(),
        "{} is not the folder of a run: there is no {CONFIG} in it",
        folder.display()
    );
    Ok(config)
}

/// The options of a run, which must be those with which it was made.
fn asked_for(config: &Path, checkpoint: &Checkpoint) -> anyhow::Result<Asked> {
    let asked = config::read(config).and_then(|table| Asked::of_table(&table, None));
    let asked = asked.with_context(|| format!("in {}", config.display()))?;
    let name = config.display().to_string();
    settings::check(&name, &settings::of(&asked.table)?, &checkpoint.settings)?;
    Ok(asked)
}

/// A run that lies in a folder, for programs that continue it by themselves: its checkpoint and the settings
/// by which it was made.
#[derive(Debug)]
pub struct KeptRun {
    /// File of the latest sound checkpoint.
    pub checkpoint: PathBuf,
    /// Everything that the run was asked for, and what was chosen.
    pub spec: RunSpec,
    /// External fields, as [`parse`](allpairs::fields::parse) reads them.
    pub fields: Vec<String>,
    /// The orbit of the origin in them, as [`parse_orbit`](allpairs::fields::parse_orbit) reads it, if it is on
    /// one.
    pub orbit: Option<String>,
}

/// Finds the run in a folder. Nothing there is changed.
///
/// # Errors
/// If there is none, or no sound checkpoint, or its options are not those with which it was made.
pub fn kept_run(folder: &Path) -> anyhow::Result<KeptRun> {
    let config = configuration(folder)?;
    let Some((checkpoint, path)) = checkpoint::find(folder).checkpoint else {
        bail!("{} has no checkpoint to continue from", folder.display());
    };
    let asked = asked_for(&config, &checkpoint)?.options;
    let around = studies::surroundings(None);
    let mut run =
        specified(&asked, &checkpoint, &around)?.resolve_resumed(&checkpoint.bodies, &around)?;
    run.spec.dt = run.spec.dt.or(Some(checkpoint.clock.dt));
    Ok(KeptRun {
        checkpoint: path,
        spec: run.spec,
        fields: asked.force.fields,
        orbit: asked.orbit,
    })
}

/// Specification of a run that goes on from a checkpoint.
fn specified(
    asked: &options::Options,
    checkpoint: &Checkpoint,
    around: &Surroundings,
) -> anyhow::Result<RunSpec> {
    let (units, radii) = (asked.force.units.as_ref(), checkpoint.kept.radii.clone());
    Ok(RunSpec {
        encounters: asked.encounters.resume(units, radii)?,
        ..asked.spec(checkpoint.clock.start, around)?
    })
}

pub(super) fn resume(
    options: &Options,
    team: Option<&Arc<Team>>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let folder = &options.folder;
    let watch = options.watch.then(Watch::new).transpose()?;
    let config = configuration(folder)?;
    let _claim = recording::lock(folder)
        .with_context(|| format!("cannot continue in {}", folder.display()))?;
    for path in recording::leftovers(folder)?
        .iter()
        .filter(|path| is_partial(path))
    {
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
        writeln!(out, "found half a file, {}: removed", path.display())?;
    }
    let Found {
        checkpoint,
        unsound,
    } = checkpoint::find(folder);
    for (path, fault) in unsound {
        writeln!(out, "found {}, but {fault}", path.display())?;
    }
    let Some((checkpoint, path)) = checkpoint else {
        bail!(
            "{} has no checkpoint to continue from: `allpairs run {} --out {} --overwrite` starts \
             again",
            folder.display(),
            say::as_argument(&config),
            say::as_argument(folder)
        );
    };
    let clock = checkpoint.clock;
    writeln!(
        out,
        "found {}: step {}, time {}",
        path.display(),
        clock.steps,
        say::plain(clock.time)
    )?;

    let Asked {
        options: mut asked,
        mut table,
    } = asked_for(&config, &checkpoint)?;
    if let Some(steps) = options.steps {
        (asked.steps, asked.until) = (Some(steps), None);
        table.remove("until");
        table.insert("steps".into(), i64::try_from(steps)?.into());
    } else if let Some(until) = &options.until {
        (asked.steps, asked.until) = (None, Some(until.clone()));
        table.remove("steps");
        table.insert("until".into(), config::number(until.to_string()));
    }

    if let Some(device) = options.device {
        asked.kernel.go_on_with(device);
    }
    bodies::check_memory(checkpoint.bodies.len() as u64)?;
    let around = studies::surroundings(team);
    let run =
        specified(&asked, &checkpoint, &around)?.resolve_resumed(&checkpoint.bodies, &around)?;
    header::selection(&run.selection, out)?;
    let pace = run.spec.pace(|| Ok(clock.dt))?;
    let steps = run.spec.steps(pace)?;
    let (at_end, beyond) = match (pace, run.spec.end) {
        (Pace::Fixed(dt), End::Time(end)) => {
            let ahead = (end - clock.time) * dt.signum();
            (ahead <= 0.0, ahead < 0.0)
        }
        (Pace::Fixed(_), _) => (clock.steps >= steps, clock.steps > steps),
        (Pace::Adaptive { end, .. }, _) => (clock.time >= end, clock.time > end),
    };
    ensure!(
        !beyond || (options.steps.is_none() && options.until.is_none()),
        "the run is beyond that already: --steps and --until count from its beginning, at time {}",
        clock.start
    );
    if at_end {
        writeln!(out, "it is at its end; --steps or --until would move that")?;
    }
    out.flush()?;

    if let Some(end) = run.end_of(pace).filter(|_| !at_end) {
        run.spec.fields.check_times(clock.time, end)?;
    }
    run::tell_memory(&run, &checkpoint.bodies, out)?;
    let (bodies, saved) = (checkpoint.bodies.clone(), (clock, &checkpoint.state));
    let simulation = run.clone().resume(bodies, saved, checkpoint.kept.lost)?;
    let simulation = simulation
        .having_brought(checkpoint.kept.brought)
        .having_chosen_step(checkpoint.kept.chosen_step);
    let Some(format) = asked.kept.snapshot_format else {
        bail!("{} names no `snapshot-format`", config.display());
    };
    let outputs = Outputs::of_run(folder, &asked, format);
    if options.device.is_some() {
        let device = run.spec.device.to_string();
        table.insert("device".into(), device.into());
    }
    if options.steps.is_some() || options.until.is_some() || options.device.is_some() {
        outputs.write_config(&table, &run.selection)?;
    }
    let recording = Recording::resume(folder, plan(&asked, &run.spec, format), &checkpoint)?;
    let recording = recording.stop_if(asked.kept.stop_if.clone());
    let changes = asked.changes.as_ref();
    let changes = changes.map(|file| changes::read(file, asked.force.units.as_ref()));
    let recording = changes::follow(recording, changes.transpose()?)?;
    drop(checkpoint);
    for remark in recording.remarks() {
        say::tell(format_args!("warning: {}/{remark}", folder.display()));
    }
    let drift = asked.drift(&run);
    let times = asked.times(&run.spec);
    drive((drift, times), watch, simulation, recording, &outputs, out)
}
