//! `allpairs run`, and the demonstration.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use allpairs::backend::ForceError;
use allpairs::bodies::Bodies;
use allpairs::fields::{self, Fields};
use allpairs::initial_conditions::{GENERATORS, Generator, Parameter};
use allpairs::integrator::{Integrator, Pace, Stepping};
use allpairs::io::{Format, ReadFault, Snapshot};
use allpairs::machine::Machine;
use allpairs::memory::{self, Bytes};
use allpairs::names::nearest;
use allpairs::physics::{Law, Physics};
use allpairs::recording::{Every, Plan, Recording};
use allpairs::selection::{Place, Selection, fits};
use allpairs::simulation::Simulation;
use allpairs::suggest::{self, Advice, Chosen};
use allpairs::units::Units;
use allpairs::variants::preferred::ForceAccuracy;
use allpairs::variants::{Shape, Variant};
use allpairs_lab::studies::{self, Study, catalogue};
use anyhow::{Context, bail, ensure};
use clap::builder::PossibleValue;
use clap::{ArgMatches, CommandFactory, FromArgMatches, ValueEnum};
use gpu_kernels::schedule::block_steps::DigitsName;

use super::config;
use super::drive::{DriftWatch, drive};
use super::kernel::KernelOptions;
use super::made::Made;
use super::outputs::Outputs;
use super::pace::{pace, steps};
use super::physics::ForceOptions;
use super::settings;
use super::size::Size;
use super::systems;
use super::watch::Watch;

/// The galaxy of the demonstration, in the program itself: it runs wherever the program is.
const GALAXY: &[u8] = include_bytes!("demo/galaxy_20K.bin");
const GALAXY_NAME: &str = "galaxy_20K.bin";

/// Bodies to simulate, and how.
#[derive(Debug, clap::Parser)]
pub(super) struct Options {
    /// A snapshot file (.allpairs, .hdf5, .npz, .vtp, .csv, or Tipsy as .bin, .tipsy, .std), the
    /// name of initial conditions, such as plummer (`allpairs ic` lists them), or a .toml file with
    /// these options.
    pub(super) input: PathBuf,
    /// Format of the input file, where it does not follow from the name.
    #[arg(long)]
    pub(super) format: Option<Format>,

    /// Steps to take; 100 where neither steps nor a time to reach are given.
    #[arg(long, value_name = "COUNT", conflicts_with = "until")]
    pub(super) steps: Option<u64>,
    /// Time to reach, in the unit of time: that of length over that of speed.
    #[arg(long, value_name = "TIME")]
    pub(super) until: Option<f64>,
    /// Time step, in the same unit; chosen from the accelerations at the start where not given.
    /// With --eta, the longest step.
    #[arg(long)]
    pub(super) dt: Option<f64>,
    /// Let steps follow the motion with this accuracy, such as 0.01: Aarseth's criterion, the
    /// same step for all bodies unless --block-steps. For hermite4, with --until.
    #[arg(long)]
    pub(super) eta: Option<f64>,
    /// With --eta, a step for each body: the longest step (--dt, or an eighth of the dynamical time)
    /// halved as often as the body needs it. Close pairs then do not slow down all others.
    #[arg(long)]
    pub(super) block_steps: bool,
    #[command(flatten)]
    pub(super) force: ForceOptions,
    /// Integrator; where not given, that of the kernel's study or one that suits the initial
    /// conditions (yoshida6 for the Solar System), else leapfrog.
    #[arg(long)]
    integrator: Option<IntegratorName>,
    /// Drag of damped-euler: fraction of the velocity lost per unit time; 0.1 where not given.
    #[arg(long, value_name = "RATE")]
    damping: Option<f64>,

    #[command(flatten)]
    pub(super) kernel: KernelOptions,

    /// Folder for the final snapshot and its picture; a new one under allpairs-out where not given.
    #[arg(short, long, alias = "output")]
    out: Option<PathBuf>,
    /// Replace outputs of an earlier run.
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    pub(super) kept: KeptOptions,

    #[command(flatten)]
    made: Made,
    #[command(flatten)]
    size: Size,
}

/// Records of a run to keep on the way.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Record")]
pub(super) struct KeptOptions {
    /// Log energies, momenta and Lagrangian radii every so many steps, in diagnostics.csv and
    /// diagnostics.jsonl; never where not given.
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..))]
    diagnostics: Option<u64>,
    /// Warn when the energy has drifted by more than this fraction: 0.01 is 1 %.
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub(super) max_drift: f64,
    /// Write a snapshot every so much time, beside the final one.
    #[arg(long, value_name = "TIME")]
    pub(super) snapshot_every: Option<f64>,
    /// Write a checkpoint every so many steps (500) or so often (90s, 10m, 2h); one is always
    /// written on Ctrl-C. `allpairs resume` continues from it.
    #[arg(long, value_name = "STEPS|TIME")]
    checkpoint_every: Option<Every>,
    /// Draw the surface density in the terminal, again and again, while it runs.
    #[arg(long)]
    watch: bool,
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
    let asked = Asked::parse(["run", GALAXY_NAME])?;
    let cursor = io::Cursor::new(GALAXY);
    let (snapshot, format) = allpairs::io::read_from(cursor, Path::new(GALAXY_NAME), None)?;
    let input = Input {
        snapshot,
        format,
        units: None,
    };
    begin(asked, input, out)
}

/// Reads or makes the bodies, and simulates them.
pub(super) fn run(matches: &ArgMatches, out: &mut impl Write) -> anyhow::Result<()> {
    let asked = Asked::of(matches)?;
    let input = input(&asked.options)?;
    begin(asked, input, out)
}

/// The options of a run, as the program takes them and as a file would have them.
pub(super) struct Asked {
    pub(super) options: Options,
    pub(super) table: toml::Table,
}

impl Asked {
    fn parse<const N: usize>(arguments: [&str; N]) -> anyhow::Result<Self> {
        Self::of(&Options::command().try_get_matches_from(arguments)?)
    }

    fn of(matches: &ArgMatches) -> anyhow::Result<Self> {
        let options = Options::from_arg_matches(matches)?;
        let file = &options.input;
        if file.extension().is_none_or(|extension| extension != "toml") {
            let table = config::table(matches);
            return Ok(Self { options, table });
        }
        let table = config::read(file)?;
        Self::of_table(&table, Some(matches))
            .with_context(|| format!("in the configuration {}", file.display()))
    }

    /// Options of a file, overridden by those that were `given`.
    pub(super) fn of_table(
        table: &toml::Table,
        given: Option<&ArgMatches>,
    ) -> anyhow::Result<Self> {
        let matches = config::matches(table, given)?;
        let (options, table) = (
            Options::from_arg_matches(&matches)?,
            config::table(&matches),
        );
        Ok(Self { options, table })
    }

    /// The table, with what was chosen: it holds for runs and resumptions of this table.
    fn with_choices(
        &self,
        selection: &Selection,
        physics: &Physics,
        format: Format,
        pace: Pace,
        steps: u64,
    ) -> toml::Table {
        let mut table = self.table.clone();
        if self.options.stepping() != Stepping::Blocks {
            table.remove("accuracy"); // the kernel has it
        }
        let mut set = |key: &str, value: toml::Value| drop(table.insert(key.into(), value));
        set("softening", physics.softening.into());
        set("gravity", physics.g.into());
        if let Some(units) = self.options.force.units {
            set("units", units.list().into());
        }
        set("format", format.name().into());
        set("integrator", self.options.method().name().into());
        set("kernel", selection.variant.name.into());
        set("device", selection.place.choice().to_string().into());
        let Shape { block, len, luf } = selection.shape;
        for (key, tuned) in [("block", block), ("len", len), ("luf", luf)] {
            if let Some(tuned) = tuned.filter(|_| !self.table.contains_key(key)) {
                set(key, i64::from(tuned).into());
            }
        }
        match pace {
            Pace::Fixed(dt) => set("dt", dt.into()),
            Pace::Adaptive { longest, .. } if longest.is_finite() => set("dt", longest.into()),
            Pace::Adaptive { .. } => {}
        }
        if let (None, Ok(steps)) = (self.options.until, i64::try_from(steps)) {
            set("steps", steps.into());
        }
        let fields = self.options.force.fields.iter();
        let fields: Vec<toml::Value> = fields.map(|text| whole_path(text).into()).collect();
        if !fields.is_empty() {
            set("field", fields.into());
        }
        if let Ok(path) = fs::canonicalize(&self.options.input) {
            set("input", path.to_string_lossy().into_owned().into());
        }
        table
    }
}

/// What several devices need of their memory, where they compute together.
fn shared_memory(
    machine: &Machine,
    variant: &Variant,
    bodies: &Bodies,
    physics: Physics,
) -> anyhow::Result<Option<String>> {
    let Some(bytes) = machine.shared_bytes(variant, bodies, physics)? else {
        return Ok(None);
    };
    let place = machine.place();
    let smallest = place.gpus().iter().map(|gpu| gpu.memory_bytes as u64).min();
    let of = smallest.map(|bytes| format!(", of {}", Bytes(bytes)));
    Ok(Some(format!(
        "memory: {} on each of {} devices{}",
        Bytes(bytes),
        place.devices(),
        of.unwrap_or_default()
    )))
}

/// A field with the whole path of its file, if it has one.
fn whole_path(field: &str) -> String {
    let file = fields::file_of(field);
    let whole = file.and_then(|file| Some((file, fs::canonicalize(file).ok()?)));
    match whole {
        Some((file, whole)) => field.replacen(file, &whole.to_string_lossy(), 1),
        None => field.to_owned(),
    }
}

/// Bodies to simulate, the format of their snapshots, and their units where these are known.
struct Input {
    snapshot: Snapshot,
    format: Format,
    units: Option<Units>,
}

fn input(options: &Options) -> anyhow::Result<Input> {
    if let Some(generator) = options.generator() {
        let mut made = options.made.0;
        if systems::are_kept_apart(options.kernel.name())? && !generator.has_systems() {
            // The kernel's business: the bodies are made as one, and computed as many.
            made = made.without(Parameter::Systems);
        }
        if let Some(bodies) = made.get(Parameter::Bodies) {
            super::check_memory(bodies as u64)?; // before they are made
        }
        let (snapshot, units) = options.size.make(generator, &made, options.force.units)?;
        return Ok(Input {
            snapshot,
            format: Format::Allpairs,
            units,
        });
    }
    let path = &options.input;
    options.size.check_unused(path)?;
    options.check_not_made()?;
    let loaded = super::load(path, options.format).map_err(|error| {
        let is_a_name = matches!(error.fault, ReadFault::NotFound) && path.extension().is_none();
        let error = anyhow::Error::from(error);
        match is_a_name {
            true => error.context(unknown(&path.to_string_lossy())),
            false => error,
        }
    })?;
    Ok(Input {
        snapshot: loaded.snapshot,
        format: loaded.format,
        units: loaded.units,
    })
}

/// Message about a name that is neither that of a file nor of initial conditions.
fn unknown(name: &str) -> String {
    let names = GENERATORS.iter().map(|generator| generator.name);
    match nearest(name, names) {
        Some(near) => format!("no file and no initial conditions: did you mean `{near}`?"),
        None => "no file and no initial conditions, which `allpairs ic` lists".into(),
    }
}

fn begin(mut asked: Asked, input: Input, out: &mut impl Write) -> anyhow::Result<()> {
    let Input {
        snapshot: Snapshot {
            time: start,
            bodies,
        },
        format,
        units,
    } = input;
    asked.options.force.units = asked.options.force.units.or(units);
    let (physics, softening) = asked.options.physics_and_why(&bodies)?;
    if let Some(Chosen { value: 0.0, .. }) = softening {
        asked.options.kernel.suggested = Some(ForceAccuracy::Double);
    }
    let options = &asked.options;
    let integrator = options.integrator()?;
    let fields = options.force.fields(&physics, integrator)?;
    if let Some(end) = options.until {
        fields.check_times(start, end)?; // with a number of steps, when their length is known
    }
    options.check_record()?;
    super::check_memory(bodies.len() as u64)?;
    let (selection, remark) = options.select(physics.law, bodies.len())?;
    let variant = options.shaped(&selection)?;
    fits(&variant, &selection.place, physics.law, bodies.len()).map_err(ForceError::from)?;
    let watch = options.kept.watch.then(Watch::new).transpose()?;
    let outputs = Outputs::prepare(
        &options.input,
        options.out.as_deref(),
        options.overwrite,
        format,
        options.force.units,
    )?;
    let (input, n) = (options.input.display(), bodies.len());
    writeln!(
        out,
        "{input}: {} of total mass {}, at time {}{}",
        super::counted(n, "body", "bodies"),
        super::fixed(bodies.total_mass(), 6),
        super::plain(start),
        systems::of_how_many(options.systems()?, n)?
    )?;
    if let Some(units) = options.force.units_of_g(physics.law) {
        writeln!(out, "in units of {units}")?;
    } else if options.is_without_units(physics.law) {
        writeln!(out, "units unknown, G = 1")?;
    }
    if let Some(remark) = remark {
        writeln!(out, "{remark}")?;
    }
    selection_line(&selection, out)?;
    for field in fields.iter() {
        writeln!(out, "field {field}")?;
    }
    if !fields.is_empty() && !fields.conserve_energy() {
        writeln!(
            out,
            "a field changes with time: the energy is not conserved, and its drift not watched"
        )?;
    }
    let machine = options.machine(selection.place.clone(), integrator);
    let machine = machine.fields(fields.clone());
    if let (Some(digits), Place::Gpu(_) | Place::Emulator) =
        (machine.block_digits(), machine.place())
    {
        let pairs = match digits {
            DigitsName::Single => "f32",
            DigitsName::Mixed => "f32, positions in two",
            DigitsName::Double => "f64",
        };
        writeln!(out, "pairs in {pairs}; state, steps and sums in f64")?;
    }

    if let Some(line) = shared_memory(&machine, &variant, &bodies, physics)? {
        writeln!(out, "{line}")?;
        out.flush()?;
    }
    let mut backend = machine.backend(&variant, &bodies, physics)?;
    backend.set_time(start);
    let mut timed = || -> Result<f64, ForceError> {
        let began = Instant::now();
        integrator.prepare(&mut *backend)?;
        backend.synchronize()?;
        Ok(began.elapsed().as_secs_f64())
    };
    let evaluation = match timed()? {
        seconds if seconds > 0.5 => seconds,
        _ => timed()?, // warmed up
    };
    let mut step_why = None;
    let pace = pace(options, start, || {
        let accelerations = backend.accelerations()?;
        if options.eta.is_some() {
            return Ok(suggest::longest_step(&bodies, &accelerations));
        }
        let times = options.advice().leapfrogs_a_step(options.method());
        let chosen = suggest::choose_step(&bodies, &physics, &accelerations, times);
        step_why = Some(chosen.why);
        Ok(chosen.value)
    })?;
    let steps = steps(options, start, pace)?;
    if let (Pace::Fixed(dt), None) = (pace, options.until) {
        fields.check_times(start, start + steps as f64 * dt)?;
    }
    let chosen = |given: Option<f64>| if given.is_some() { "" } else { " (chosen)" };
    let mut simulation = Simulation::new(backend, bodies, physics, integrator, pace, start)?;
    let dt = simulation.clock().dt;
    let (step, whose, until) = match pace {
        Pace::Fixed(_) => (
            "step",
            chosen(options.dt),
            super::counted(steps, "step", "steps"),
        ),
        Pace::Adaptive { steps, end, .. } => {
            let (step, whose) = match steps {
                Stepping::Shared => ("first step", ""),
                Stepping::Blocks => ("longest step", chosen(options.dt)),
            };
            (step, whose, format!("to time {}", super::plain(end)))
        }
    };
    writeln!(
        out,
        "{}, {step} {}{whose}, softening {}{}, {until}",
        integrator.name(),
        super::figure(dt),
        super::figure(physics.softening),
        chosen(options.force.softening)
    )?;
    if let Some(why) = step_why {
        writeln!(out, "{step} {}: {why}", super::figure(dt))?;
    }
    if let Some(Chosen { value, why }) = softening {
        writeln!(out, "softening {}: {why}", super::figure(value))?;
    }
    let evaluations = f64::from(integrator.evaluations());
    let number = match pace {
        Pace::Fixed(_) => Some(steps as f64),
        Pace::Adaptive {
            steps: Stepping::Shared,
            end,
            ..
        } => Some((end - start) / dt),
        Pace::Adaptive { .. } => None, // how many bodies take short steps shows on the way
    };
    let seconds = number.map(|steps| steps * evaluations * evaluation);
    if let Some(line) = needs(n, seconds) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;

    let table = asked.with_choices(&selection, &physics, format, pace, steps);
    let settings = settings::of(&table)?;
    outputs.make_folder()?;
    let _claim = outputs.claim()?;
    outputs.clear(out)?;
    outputs.write_config(&table, &selection)?;

    let plan = plan(options, steps, format);
    let recording = Recording::begin(&outputs.folder, plan, &mut simulation, |_| {})?;
    let recording = recording.of_settings(settings);
    drive(
        options.drift(physics.softening, &fields),
        watch,
        simulation,
        recording,
        &outputs,
        out,
    )
}

/// Needs of a run that are worth knowing before it starts: memory, and time at the rate of the first
/// forces.
fn needs(bodies: usize, seconds: Option<f64>) -> Option<String> {
    const MUCH: u64 = 1_000_000_000;
    const LONG: f64 = 60.0;
    let memory = bodies as u64 * memory::BYTES_PER_BODY_OF_A_RUN;
    let memory = (memory >= MUCH).then(|| format!("up to {} of memory", Bytes(memory)));
    let time = seconds.filter(|&seconds| seconds >= LONG);
    let time = time.map(|seconds| {
        let time = super::duration(seconds);
        format!("about {time} at the rate of the first step")
    });
    let parts: Vec<String> = memory.into_iter().chain(time).collect();
    (!parts.is_empty()).then(|| format!("needs {}", parts.join(", ")))
}

pub(super) fn selection_line(selection: &Selection, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "kernel {} on {} ({})",
        selection.variant.name, selection.place, selection.why
    )
}

impl Options {
    /// Returns whether G is 1 because nothing says otherwise: the bodies of a file without units.
    fn is_without_units(&self, law: Law) -> bool {
        self.generator().is_none() && law == Law::Gravity && self.force.has_no_units()
    }

    /// Limit to the drift of the energy.
    pub(super) fn drift(&self, softening: f64, fields: &Fields) -> DriftWatch {
        DriftWatch {
            bound: match fields.conserve_energy() {
                true => self.kept.max_drift,
                false => f64::INFINITY,
            },
            is_conserved: fields.conserve_energy(),
            in_fields: !fields.is_empty(),
            advice: match (self.eta, softening) {
                (Some(_), _) => "a smaller --eta would help",
                (None, 0.0) => {
                    "a smaller --dt would help, or steps that follow the motion: --integrator \
                     hermite4 --eta 0.01 --until TIME"
                }
                (None, _) => "a smaller --dt or a larger --softening would help",
            },
        }
    }

    /// The study that the kernel is a rung of, if it is one.
    fn study(&self) -> Option<&'static Study> {
        let kernel = self.kernel.name()?;
        studies::of(catalogue().find(kernel).ok()?)
    }

    /// As asked, or as the kernel's study has it, or as suits the initial conditions.
    pub(super) fn method(&self) -> Integrator {
        match (self.integrator, self.study()) {
            (Some(IntegratorName(integrator)), _) => integrator,
            (None, Some(study)) => study.integrator,
            (None, None) => self.advice().integrator,
        }
    }

    /// The place, ready for a run with these options.
    pub(super) fn machine(&self, place: Place, integrator: Integrator) -> Machine {
        Machine::new(place)
            .allow_inaccurate(self.kernel.allow_inaccurate)
            .block_steps(
                integrator,
                self.stepping(),
                self.eta,
                self.kernel.accuracy(),
            )
    }

    /// Advice on how to simulate the initial conditions; files are taken for many bodies.
    fn advice(&self) -> Advice {
        self.generator()
            .map_or(Advice::MANY, |generator| generator.advice_of(&self.made.0))
    }

    /// Choice between varying steps shared by all bodies and block time steps.
    pub(super) fn stepping(&self) -> Stepping {
        match self.block_steps {
            true => Stepping::Blocks,
            false => Stepping::Shared,
        }
    }

    /// The force between `bodies`.
    pub(super) fn physics(&self, bodies: &Bodies) -> anyhow::Result<Physics> {
        Ok(self.physics_and_why(bodies)?.0)
    }

    /// The force between `bodies`, and how its softening was chosen, if it was.
    fn physics_and_why(&self, bodies: &Bodies) -> anyhow::Result<(Physics, Option<Chosen>)> {
        let preferred = self.study().map_or(Law::Gravity, |study| study.law);
        let made_by = self.generator().map(|generator| (generator, &self.made.0));
        let systems = self.systems()?;
        self.force.physics(preferred, bodies, systems, made_by)
    }

    pub(super) fn integrator(&self) -> anyhow::Result<Integrator> {
        match (self.method(), self.damping) {
            (Integrator::DampedEuler { .. }, Some(rate)) => {
                ensure!(
                    rate.is_finite() && rate >= 0.0,
                    "`--damping` must be ≥ 0 and finite, got {}",
                    super::plain(rate)
                );
                Ok(Integrator::DampedEuler { rate })
            }
            (integrator, None) => Ok(integrator),
            (integrator, Some(_)) => bail!(
                "--damping is for --integrator damped-euler, not {}",
                integrator.name()
            ),
        }
    }

    /// Kernel and device to run, and a remark to print about them.
    pub(super) fn select(
        &self,
        law: Law,
        bodies: usize,
    ) -> anyhow::Result<(Selection, Option<String>)> {
        let integration = (self.method(), self.stepping());
        self.kernel.select(law, bodies, integration)
    }

    /// The selected kernel, in the shape that was asked for, or selected.
    pub(super) fn shaped(&self, selected: &Selection) -> anyhow::Result<Variant> {
        self.kernel.shaped(selected, self.systems()?)
    }

    /// Number of independent systems that the kernel computes.
    pub(super) fn systems(&self) -> anyhow::Result<u32> {
        systems::asked(self.kernel.name(), &self.made.0, self.generator())
    }

    /// The initial conditions that the input names, if it is not a file.
    fn generator(&self) -> Option<&'static Generator> {
        let name = self.input.to_str().unwrap_or_default();
        let named = GENERATORS.iter().find(|generator| generator.name == name);
        named.filter(|_| !self.input.exists())
    }

    /// Refuses options of initial conditions for a file. (A kernel for independent systems needs to
    /// know how many there are.)
    fn check_not_made(&self) -> anyhow::Result<()> {
        let apart = systems::are_kept_apart(self.kernel.name())?;
        let given = Parameter::ALL.into_iter().find(|&parameter| {
            self.made.0.get(parameter).is_some() && !(apart && parameter == Parameter::Systems)
        });
        let given = given.map(Parameter::name);
        let given = given.or(self.made.0.of.map(|_| "of"));
        if let Some(name) = given.filter(|_| self.input.exists()) {
            bail!(
                "--{name} is for initial conditions made by name, and {} is a file: leave it out",
                self.input.display()
            );
        }
        Ok(())
    }

    fn check_record(&self) -> anyhow::Result<()> {
        let drift = self.kept.max_drift;
        let given = super::plain(drift);
        ensure!(drift >= 0.0, "`--max-drift` must be ≥ 0, got {given}");
        if let Some(every) = self.kept.snapshot_every {
            ensure!(
                every.is_finite() && every > 0.0,
                "`--snapshot-every` must be > 0 and finite, got {}",
                super::plain(every)
            );
        }
        Ok(())
    }
}

pub(super) fn plan(options: &Options, steps: u64, format: Format) -> Plan {
    Plan {
        steps: options.until.map_or(steps, |_| u64::MAX),
        until: options.until,
        diagnostics_every: options.kept.diagnostics,
        snapshot_every: options.kept.snapshot_every,
        checkpoint_every: options.kept.checkpoint_every,
        format,
        units: options.force.units,
    }
}

#[cfg(test)]
mod tests {
    use super::{needs, unknown};

    #[test]
    fn needs_are_told_where_they_are_large() {
        assert_eq!(needs(1000, Some(59.0)), None);
        assert_eq!(needs(1000, None), None);
        let long = needs(1000, Some(2.16e6)).expect("25 days");
        assert_eq!(long, "needs about 25 days at the rate of the first step");
        let large = needs(100_000_000, Some(1.0)).expect("much memory");
        assert!(
            large.starts_with("needs up to ") && large.ends_with(" GB of memory"),
            "{large}"
        );
    }

    #[test]
    fn near_names_are_offered() {
        for (typed, meant) in [
            ("plumer", "`plummer`"),
            ("solar_system", "`solar-system`"),
            ("knig", "`king`"),
        ] {
            assert!(
                unknown(typed).contains(meant),
                "{typed}: {}",
                unknown(typed)
            );
        }
        assert!(unknown("abc").contains("`allpairs ic` lists"));
    }
}
