//! `allpairs run`, and the demonstration.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use allpairs::bodies::Bodies;
use allpairs::diagnostics::Conserved;
use allpairs::force::Physics;
use allpairs::initial_conditions::{self, GENERATORS};
use allpairs::integrator::Integrator;
use allpairs::io::{Format, Overwrite, Snapshot, TipsyDialect};
use allpairs::output::DensityPicture;
use allpairs::selection::{Machine, select};
use allpairs::simulation::Simulation;
use allpairs::suggest;
use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use indicatif::{ProgressBar, ProgressStyle};

use super::{Interrupted, LawName, Where};

/// The galaxy of the demonstration, in the program itself: it runs wherever the program is.
const GALAXY: &[u8] = include_bytes!("../../tests/data/galaxy_20K.bin");
const GALAXY_NAME: &str = "galaxy_20K.bin";

/// Where outputs go if nothing is said.
const OUT: &str = "allpairs-out";

/// What to simulate, and how.
#[derive(Debug, clap::Parser)]
pub(super) struct Options {
    /// A snapshot file (.csv, or Tipsy as .bin, .tipsy, .std), or the name of initial conditions:
    /// plummer, uniform-sphere, two-body.
    input: PathBuf,
    /// Format of the input file, where its name does not tell.
    #[arg(long)]
    format: Option<Format>,

    /// Steps to take.
    #[arg(long, default_value_t = 100)]
    steps: u64,
    /// Time step; chosen from the accelerations at the start where not given.
    #[arg(long)]
    dt: Option<f64>,
    /// Softening length ε; chosen from the mean distance of the bodies where not given.
    #[arg(long)]
    softening: Option<f64>,
    /// Gravitational constant, in the units of the bodies.
    #[arg(long = "gravity", default_value_t = 1.0)]
    g: f64,
    /// The law of the force.
    #[arg(long, default_value = "gravity")]
    law: LawName,
    /// How steps are made.
    #[arg(long, default_value = "leapfrog")]
    integrator: IntegratorName,

    #[command(flatten)]
    place: Where,
    /// The kernel, as `allpairs list` names it; the device's preferred one where not given.
    #[arg(long)]
    kernel: Option<String>,

    /// Folder for the final snapshot and its picture; a new one under allpairs-out where not given.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Replace outputs of an earlier run.
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    made: MadeOptions,
}

/// What to make, where the input is the name of initial conditions.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Initial conditions")]
struct MadeOptions {
    /// Number of bodies.
    #[arg(long)]
    bodies: Option<usize>,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// 2K/|U| of a uniform sphere: 0 at rest, 1 in balance.
    #[arg(long)]
    virial_ratio: Option<f64>,
    /// Mass of the second of two bodies over that of the first.
    #[arg(long)]
    mass_ratio: Option<f64>,
    /// Eccentricity of the orbit of two bodies.
    #[arg(long)]
    eccentricity: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct IntegratorName(Integrator);

impl ValueEnum for IntegratorName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [IntegratorName; Integrator::ALL.len()] = {
            let mut all = [IntegratorName(Integrator::ALL[0]); Integrator::ALL.len()];
            let mut i = 0;
            while i < all.len() {
                all[i] = IntegratorName(Integrator::ALL[i]);
                i += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.summary()))
    }
}

/// 100 steps of the galaxy that the program carries.
pub(super) fn demo(out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(
        out,
        "A demonstration; `allpairs --help` shows what else there is."
    )?;
    let options = <Options as clap::Parser>::parse_from(["run", GALAXY_NAME]);
    let cursor = io::Cursor::new(GALAXY);
    let (snapshot, format) = allpairs::io::read_from(cursor, Path::new(GALAXY_NAME), None)?;
    simulate(&options, snapshot, format, out)
}

/// Reads or makes the bodies, and simulates them.
pub(super) fn run(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let (snapshot, format) = input(options)?;
    simulate(options, snapshot, format, out)
}

fn input(options: &Options) -> anyhow::Result<(Snapshot, Format)> {
    let name = options.input.to_str().unwrap_or_default();
    if GENERATORS.iter().any(|generator| generator.name == name) && !options.input.exists() {
        let made = &options.made;
        let bodies = initial_conditions::find(name)?.generate(&initial_conditions::Options {
            seed: made.seed,
            bodies: made.bodies,
            virial_ratio: made.virial_ratio,
            mass_ratio: made.mass_ratio,
            eccentricity: made.eccentricity,
        })?;
        return Ok((
            Snapshot { time: 0.0, bodies },
            Format::Tipsy(TipsyDialect::WithIds),
        ));
    }
    Ok(allpairs::io::read(&options.input, options.format)?)
}

fn simulate(
    options: &Options,
    snapshot: Snapshot,
    format: Format,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let Snapshot {
        time: start,
        bodies,
    } = snapshot;
    let physics = physics(options, &bodies)?;
    let selection = select(options.place.device, options.kernel.as_deref(), physics.law)?;
    let outputs = Outputs::prepare(options, format)?;
    let (input, n) = (options.input.display(), bodies.len());
    writeln!(
        out,
        "{input}: {n} bodies of mass {:.6}, at time {start}",
        bodies.total_mass()
    )?;
    writeln!(
        out,
        "kernel {} on {} ({})",
        selection.variant.name, selection.place, selection.why
    )?;

    let machine = Machine::new(selection.place);
    let mut backend = machine.backend(selection.variant, &bodies, physics)?;
    backend.accelerate()?;
    let dt = time_step(options, &bodies, &physics, &backend.accelerations()?)?;
    let chosen = |given: Option<f64>| if given.is_some() { "" } else { " (chosen)" };
    let integrator = options.integrator.0;
    writeln!(
        out,
        "{}, step {dt:.4}{}, softening {:.4}{}, {} steps",
        integrator.name(),
        chosen(options.dt),
        physics.softening,
        chosen(options.softening),
        options.steps,
    )?;
    out.flush()?;

    let mut simulation = Simulation::new(backend, bodies, physics, integrator, dt, start)?;
    let before = simulation.conserved()?;
    let (outcome, report) = advance(&mut simulation, options.steps)?;
    writeln!(out, "{report}")?;
    let after = simulation.conserved()?;
    writeln!(out, "{}", conservation(&before, &after))?;
    outputs.write(simulation.time(), simulation.bodies()?, out)?;
    match outcome {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Interrupted.into()),
    }
}

fn physics(options: &Options, bodies: &Bodies) -> anyhow::Result<Physics> {
    let softening = options
        .softening
        .unwrap_or_else(|| suggest::softening(bodies));
    ensure!(
        softening >= 0.0 && softening.is_finite(),
        "--softening {softening} is no length"
    );
    ensure!(
        options.g.is_finite(),
        "--gravity {} is no number to multiply by",
        options.g
    );
    Ok(Physics {
        law: options.law.into(),
        g: options.g,
        softening,
    })
}

fn time_step(
    options: &Options,
    bodies: &Bodies,
    physics: &Physics,
    accelerations: &[[f64; 3]],
) -> anyhow::Result<f64> {
    match options.dt {
        Some(dt) if dt.is_finite() && dt != 0.0 => Ok(dt),
        Some(dt) => bail!("--dt {dt} does not advance time: give another, negative for backwards"),
        None => match suggest::time_step(bodies, physics, accelerations) {
            0.0 => bail!("nothing is accelerated, so no time step follows: give one with --dt"),
            dt => Ok(dt),
        },
    }
}

/// Takes the steps, with a progress bar on a terminal, until done or interrupted by Ctrl-C; and
/// says how long they took.
fn advance(simulation: &mut Simulation, steps: u64) -> anyhow::Result<(ControlFlow<()>, String)> {
    let stop = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if handler.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(super::code::INTERRUPTED)); // asked for twice
        }
    })
    .context("cannot listen for Ctrl-C")?;

    let bar = if io::stderr().is_terminal() {
        ProgressBar::new(steps)
    } else {
        ProgressBar::hidden()
    };
    let template = "{bar:40} {pos}/{len} steps, {msg}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template).expect("a valid template"));
    let began = Instant::now();
    let mut last = None;
    let outcome = simulation.run(steps, |progress| {
        bar.set_position(progress.steps);
        bar.set_message(format!(
            "{} interactions/s",
            super::scientific(progress.rate)
        ));
        last = Some(progress);
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    bar.finish_and_clear();
    let (done, rate) = last.map_or((0, 0.0), |progress| (progress.steps, progress.rate));
    let seconds = began.elapsed().as_secs_f64();
    let rate = super::scientific(rate);
    Ok((
        outcome,
        format!("{done} steps in {seconds:.2} s, {rate} interactions/s"),
    ))
}

fn conservation(before: &Conserved, after: &Conserved) -> comfy_table::Table {
    let drift = after.drift_since(before);
    let mut table = super::table(&["", "#start", "#end", "#drift"]);
    let mut row = |name: &str, quantity: &dyn Fn(&Conserved) -> f64, drift: Option<f64>| {
        let number = |x: f64| format!("{x:.8}");
        let drift = drift.map_or_else(String::new, super::scientific);
        table.add_row([
            name.into(),
            number(quantity(before)),
            number(quantity(after)),
            drift,
        ]);
    };
    let norm = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    row("time", &|c| c.time, None);
    row("energy", &|c| c.energy.total(), Some(drift.energy));
    row("kinetic energy", &|c| c.energy.kinetic, None);
    row("potential energy", &|c| c.energy.potential, None);
    row("virial ratio 2K/|U|", &|c| c.energy.virial_ratio(), None);
    row("momentum", &|c| norm(c.momentum), Some(drift.momentum));
    row(
        "angular momentum",
        &|c| norm(c.angular_momentum),
        Some(drift.angular_momentum),
    );
    table
}

/// The files that a run will write; known before it starts, so that it does not end in a refusal.
struct Outputs {
    snapshot: PathBuf,
    picture: PathBuf,
    format: Format,
    overwrite: Overwrite,
}

impl Outputs {
    fn prepare(options: &Options, format: Format) -> anyhow::Result<Self> {
        let folder = match &options.out {
            Some(folder) => folder.clone(),
            None => unused_folder(&options.input),
        };
        let extension = match format {
            Format::Csv => "csv",
            Format::Tipsy(TipsyDialect::WithIds) => "bin",
            Format::Tipsy(_) => "tipsy",
        };
        let snapshot = folder.join("final").with_extension(extension);
        let picture = folder.join("final.png");
        let overwrite = if options.overwrite {
            Overwrite::Allow
        } else {
            Overwrite::Refuse
        };
        for path in [&snapshot, &picture] {
            ensure!(
                options.overwrite || !path.exists(),
                "{} is there already: give another folder with --out, or --overwrite",
                path.display()
            );
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        Ok(Self {
            snapshot,
            picture,
            format,
            overwrite,
        })
    }

    fn write(&self, time: f64, bodies: &Bodies, out: &mut impl Write) -> anyhow::Result<()> {
        let snapshot = Snapshot {
            time,
            bodies: bodies.clone(),
        };
        allpairs::io::write(&self.snapshot, self.format, &snapshot, self.overwrite)?;
        writeln!(out, "wrote {}", self.snapshot.display())?;
        DensityPicture::default().write(&self.picture, bodies, self.overwrite)?;
        writeln!(out, "wrote {}", self.picture.display())?;
        Ok(())
    }
}

/// `allpairs-out/galaxy`, or `galaxy-2`, … if that is there.
fn unused_folder(input: &Path) -> PathBuf {
    let stem = input
        .file_stem()
        .unwrap_or(input.as_os_str())
        .to_string_lossy();
    let numbered = (2..).map(|k| Path::new(OUT).join(format!("{stem}-{k}")));
    std::iter::once(Path::new(OUT).join(&*stem))
        .chain(numbered)
        .find(|folder| !folder.exists())
        .expect("some number is free")
}
