//! `allpairs resume`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use allpairs::backend::Neighbours;
use allpairs::checkpoint::{self, Checkpoint, Found};
use allpairs::encounters::Encounters;
use allpairs::integrator::{Integrator, Pace};
use allpairs::io::is_partial;
use allpairs::physics::Physics;
use allpairs::ranks::Team;
use allpairs::recording::{self, Recording};
use allpairs::selection::{DeviceChoice, Selection};
use allpairs::simulation::Simulation;
use allpairs::units::{Measure, Units};
use allpairs::variants::preferred::ForceAccuracy;
use anyhow::{Context, bail, ensure};

use crate::asked::Asked;
use crate::bodies;
use crate::config;
use crate::drive::drive;
use crate::options::plan;
use crate::outputs::{CONFIG, Outputs};
use crate::pace::{pace, steps};
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
    /// The force.
    pub physics: Physics,
    /// The integrator.
    pub integrator: Integrator,
    /// The steps.
    pub pace: Pace,
    /// The number of neighbours, if they are of a neighbour scheme.
    pub neighbours: Option<Neighbours>,
    /// Kernel and place.
    pub selection: Selection,
    /// Number of independent systems.
    pub systems: u32,
    /// Accuracy that was asked for.
    pub accuracy: Option<ForceAccuracy>,
    /// True if errors without a bound are allowed.
    pub allow_inaccurate: bool,
    /// Units of the bodies.
    pub units: Option<Units>,
    /// External fields, as [`parse`](allpairs::fields::parse) reads them.
    pub fields: Vec<String>,
    /// The orbit of the origin in them, as [`parse_orbit`](allpairs::fields::parse_orbit) reads it, if it is on
    /// one.
    pub orbit: Option<String>,
    /// Encounters that are looked for, if any.
    pub encounters: Option<Encounters>,
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
    let physics = asked.physics(&checkpoint.bodies)?;
    let (mut selection, _) = asked.select(&physics, &checkpoint.bodies, None)?;
    let systems = asked.systems()?;
    selection.shape = asked.kernel.shape(&selection);
    let units = asked.force.units.as_ref();
    let encounters = asked.encounters.resume(units, checkpoint.kept.radii)?;
    Ok(KeptRun {
        encounters,
        checkpoint: path,
        physics,
        integrator: asked.integrator()?,
        pace: pace(&asked, checkpoint.clock.start, || Ok(checkpoint.clock.dt))?,
        neighbours: asked.neighbours,
        selection,
        systems,
        accuracy: asked.kernel.accuracy(),
        allow_inaccurate: asked.kernel.allow_inaccurate,
        units: asked.force.units,
        fields: asked.force.fields,
        orbit: asked.orbit,
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
            config.display(),
            folder.display()
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
    let physics = asked.physics(&checkpoint.bodies)?;
    let (selection, _) = asked.select(&physics, &checkpoint.bodies, team)?;
    run::selection_line(&selection, out)?;
    let integrator = asked.integrator()?;
    let fields = asked.fields(&physics, integrator, clock.start)?;
    let pace = pace(&asked, clock.start, || Ok(clock.dt))?;
    let steps = steps(&asked, clock.start, pace)?;
    let (at_end, beyond) = match pace {
        Pace::Fixed(dt) => match asked.until()? {
            Some(end) => {
                let ahead = (end - clock.time) * dt.signum();
                (ahead <= 0.0, ahead < 0.0)
            }
            None => (clock.steps >= steps, clock.steps > steps),
        },
        Pace::Adaptive { end, .. } => (clock.time >= end, clock.time > end),
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

    let end = match (pace, asked.until()?) {
        (Pace::Fixed(_) | Pace::Adaptive { .. }, Some(end)) => end,
        (Pace::Fixed(dt), None) => clock.start + steps as f64 * dt,
        (Pace::Adaptive { end, .. }, None) => end,
    };
    if !at_end {
        fields.check_times(clock.time, end)?;
    }
    let machine = asked.machine(selection.place.clone(), integrator, &physics, team);
    let machine = machine.fields(fields.clone());
    let bodies = checkpoint.bodies.clone();
    let frame = checkpoint.state.frame;
    let variant = asked.shaped(&selection)?;
    bodies::check_memory(bodies.len() as u64)?;
    run::tell_memory(&machine, &variant, &bodies, physics, out)?;
    let backend = machine.backend_in_frame(&variant, &bodies, physics, frame)?;
    let state = (clock, &checkpoint.state);
    let simulation = Simulation::resume(backend, bodies, physics, integrator, pace, state)?;
    let mut simulation =
        simulation.remade_by(move |bodies| machine.backend(&variant, bodies, physics));
    if !at_end {
        simulation.reach(end)?;
    }
    let (units, kept) = (asked.force.units, &checkpoint.kept);
    if let Some(encounters) = asked
        .encounters
        .resume(units.as_ref(), kept.radii.clone())?
    {
        simulation.go_on_looking_for(encounters, kept.lost)?;
    }
    let Some(format) = asked.kept.snapshot_format else {
        bail!("{} names no `snapshot-format`", config.display());
    };
    let outputs = Outputs::of_run(folder, format, asked.force.units);
    if options.device.is_some() {
        let device = selection.place.choice().to_string();
        table.insert("device".into(), device.into());
    }
    if options.steps.is_some() || options.until.is_some() || options.device.is_some() {
        outputs.write_config(&table, &selection)?;
    }
    let recording = Recording::resume(folder, plan(&asked, steps, format)?, &checkpoint)?;
    let recording = recording.stop_if(asked.kept.stop_if.clone());
    drop(checkpoint);
    for remark in recording.remarks() {
        eprintln!("allpairs: warning: {}/{remark}", folder.display());
    }
    let drift = asked.drift(physics.softening, &fields);
    drive(drift, watch, simulation, recording, &outputs, out)
}
