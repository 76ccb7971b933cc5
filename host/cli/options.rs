//! Options of a run, as a specification of the library.

use std::path::PathBuf;

use allpairs::backend::Neighbours;
use allpairs::fields::{ExternalField, parse_orbit};
use allpairs::initial_conditions::{GENERATORS, Generator, Parameter};
use allpairs::integrator::{Integrator, TimeSteps};
use allpairs::io::Format;
use allpairs::recording::{Condition, Every, Plan};
use allpairs::run::{End, Run, RunSpec, Surroundings};
use allpairs::suggest;
use allpairs::units::Measure;
use anyhow::{Context, bail, ensure};
use clap::ArgAction;

use crate::choices::{Cosmological, Named};
use crate::drift::DriftWatch;
use crate::encounters::EncounterOptions;
use crate::kernel::KernelOptions;
use crate::made::Made;
use crate::physics::ForceOptions;
use crate::say;
use crate::size::Size;
use crate::times::Times;

/// Name of the standard input and output.
pub(super) const STANDARD: &str = "-";

/// Number of steps of a run that is given neither a number nor a time to reach.
const DEFAULT_STEPS: u64 = 100;

/// Bodies to simulate, and how.
#[derive(Debug, clap::Parser)]
pub(super) struct Options {
    /// A snapshot file, the name of initial conditions, or a .toml file with these options. Files have Allpairs's own
    /// format, HDF5, Gadget's binary, NEMO, REBOUND, NumPy, VTK, Tipsy or a table of text. `allpairs ic` lists initial
    /// conditions, such as plummer. `-` is a snapshot on the standard input.
    pub(super) input: PathBuf,
    /// Format of the input file, if its content is not to decide.
    #[arg(long)]
    pub(super) format: Option<Format>,
    #[command(flatten)]
    pub(super) cosmological: Cosmological,

    /// Number of steps; 100 if neither --steps nor --until is given.
    #[arg(long, value_name = "COUNT", conflicts_with = "until")]
    pub(super) steps: Option<u64>,
    /// End time, in the run's unit of time (length / speed), or with a unit, such as 10Myr, if the bodies
    /// have units (s, day, yr, Myr, Gyr). All other times are given in the same way.
    #[arg(long, value_name = "TIME")]
    pub(super) until: Option<Measure>,
    /// Time step; with --eta, the longest step. If not given, it is chosen from the accelerations at the
    /// start.
    #[arg(long, value_name = "TIME")]
    dt: Option<Measure>,
    /// Accuracy of steps that follow the motion, such as 0.01 (Aarseth's criterion). All bodies take the
    /// same step, unless --block-steps is given. For hermite4, with --until.
    #[arg(long)]
    pub(super) eta: Option<f64>,
    /// Give each body its own step: the longest step (--dt, or an eighth of the dynamical time), halved as
    /// often as the body needs it. Close pairs then do not slow down all others. Without --integrator and
    /// --eta: hermite6 with 0.36, or from 65536 bodies on hermite4 with --neighbours auto and 0.04.
    /// Without softening, pairs are followed apart (--groups). Runs that begin with pairs then take hermite4 with 0.01 below
    /// 512 bodies. From 8192 bodies on, a CPU takes hermite4 with --neighbours auto and 0.01.
    /// A run with --until takes block time steps by itself if its bodies have no softening, and hard pairs or
    /// unlike masses.
    #[arg(long)]
    pub(super) block_steps: bool,
    /// Recompute only the force of the COUNT nearest neighbours in each step, and the force of the other
    /// bodies in longer steps (Ahmad & Cohen's scheme). With --block-steps and hermite4. auto: the root of
    /// the number of bodies, but at most a 256th of this number and at least 64.
    #[arg(long, value_name = "COUNT|auto")]
    pub(super) neighbours: Option<Neighbours>,
    /// Follow close pairs and multiples apart, as one body each for the steps of all others (regularisation). With
    /// --block-steps and --softening 0, on CPUs or GPUs. If not given, on wherever that can be
    /// done and there are at least 16 bodies. A GPU takes all steps itself while there are neither pairs nor heavy
    /// bodies, until hard pairs have formed. A neighbour scheme of a GPU ends then: the run goes on with the forces of all
    /// bodies and hermite6.
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    groups: Option<bool>,
    #[command(flatten)]
    pub(super) force: ForceOptions,
    /// Keep the bodies in their own frame, which does not rotate. Its origin falls freely in the fields of
    /// --field, on the orbit that starts here: x=8kpc,vy=220km/s, and y, z, vx, vz. Far from a galaxy's
    /// centre a cluster then keeps all its digits; orbit.csv has the positions of the origin.
    #[arg(long, value_name = "ORBIT")]
    pub(super) orbit: Option<String>,
    /// Integrator. If not given, the integrator of the kernel's study, or one that suits the initial
    /// conditions (yoshida6 for the Solar System), otherwise leapfrog.
    #[arg(long)]
    integrator: Option<Named<Integrator>>,
    /// Drag of damped-euler: fraction of the velocity lost per unit time; 0.1 if not given.
    #[arg(long, value_name = "RATE")]
    pub(super) damping: Option<f64>,

    #[command(flatten)]
    pub(super) kernel: KernelOptions,

    /// Folder for the final snapshot and its picture; a new one under allpairs-out if not given.
    #[arg(short, long, alias = "output")]
    pub(super) out: Option<PathBuf>,
    /// Replace outputs of an earlier run.
    #[arg(long)]
    pub(super) overwrite: bool,

    #[command(flatten)]
    pub(super) kept: KeptOptions,

    #[command(flatten)]
    pub(super) encounters: EncounterOptions,
    /// Table of changes that bodies make on the way, each exactly at its time, as stars that lose mass do: a CSV file
    /// with the columns time, id, and any of mass, kick_x, kick_y, kick_z, radius and remove. Changes that were made
    /// are listed in changes.csv.
    #[arg(long, value_name = "FILE", alias = "events")]
    pub(super) changes: Option<PathBuf>,

    #[command(flatten)]
    pub(super) made: Made,
    #[command(flatten)]
    pub(super) size: Size,
}

/// Records of a run to keep on the way.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Record")]
pub(super) struct KeptOptions {
    /// Number of steps between rows of diagnostics.csv and diagnostics.jsonl: energies, momenta and
    /// Lagrangian radii. If not given, there are none.
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) diagnostics: Option<u64>,
    /// Warn when the energy has drifted by more than this fraction: 0.01 is 1 %.
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub(super) max_drift: f64,
    /// Time between snapshots. The final snapshot is always written.
    #[arg(long, value_name = "TIME")]
    snapshot_every: Option<Measure>,
    /// Steps (500) or wall-clock time (90s, 10m, 2h) between checkpoints, from which `allpairs resume`
    /// continues. Ctrl-C always writes one.
    #[arg(long, value_name = "STEPS|TIME")]
    pub(super) checkpoint_every: Option<Every>,
    /// End the run, with a checkpoint, after the first row of --diagnostics that fulfils this condition:
    /// "r10 < 0.05", "energy_drift > 1e-3", or another column. "wall > 2h" ends it after this wall-clock
    /// time. May be given several times.
    #[arg(long = "stop-if", value_name = "CONDITION", action = ArgAction::Append)]
    pub(super) stop_if: Vec<Condition>,
    /// Format of the snapshots; if not given, the format of the input file (hdf5 for those that are read only), or
    /// allpairs. hdf5-gzip is compressed HDF5.
    #[arg(long, value_name = "NAME")]
    pub(super) snapshot_format: Option<Format>,
    /// Leave out the picture of the final snapshot, which may take longer than a small run. `allpairs render`
    /// draws it later.
    #[arg(long)]
    pub(super) no_picture: bool,
    /// Draw the surface density in the terminal during the run.
    #[arg(long)]
    pub(super) watch: bool,
}

/// A choice that is on or off.
fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(format!("must be on or off, got {other}")),
    }
}

impl Options {
    /// The time to reach, in the units of the bodies.
    pub(super) fn until(&self) -> anyhow::Result<Option<f64>> {
        self.time("until", self.until.as_ref())
    }

    /// The step that was asked for, in the units of the bodies.
    pub(super) fn dt(&self) -> anyhow::Result<Option<f64>> {
        self.time("dt", self.dt.as_ref())
    }

    /// The time from one snapshot to the next, in the units of the bodies.
    pub(super) fn snapshot_every(&self) -> anyhow::Result<Option<f64>> {
        self.time("snapshot-every", self.kept.snapshot_every.as_ref())
    }

    fn time(&self, option: &str, given: Option<&Measure>) -> anyhow::Result<Option<f64>> {
        let time = given.map(|given| given.time(self.force.units.as_ref()));
        time.transpose().with_context(|| format!("in --{option}"))
    }

    /// Specification of a run that begins at this time, in the units of the bodies, without the encounters.
    pub(super) fn spec(&self, start: f64, around: &Surroundings) -> anyhow::Result<RunSpec> {
        let force = &self.force;
        ensure!(
            self.kernel.name().is_none() || self.kernel.accuracy().is_none() || self.block_steps,
            "--accuracy chooses the kernel: leave out either --accuracy or --kernel"
        );
        let (tile, streams) = self.kernel.many();
        let mut spec = RunSpec {
            systems: self.systems()?,
            made_by: (self.generator())
                .map(|generator| (generator.name, generator.advice_of(&self.made.options))),
            integrator: self.integrator.map(|Named(integrator)| integrator),
            damping: self.damping,
            dt: self.dt()?,
            eta: self.eta,
            stepping: self.block_steps.then_some(TimeSteps::Blocks),
            neighbours: self.neighbours,
            groups: self.groups,
            start,
            end: match self.until()? {
                Some(end) => End::Time(end),
                None => End::Steps(self.steps.unwrap_or(DEFAULT_STEPS)),
            },
            snapshot_every: self.snapshot_every()?,
            device: self.kernel.device(),
            kernel: self.kernel.name().map(str::to_owned),
            shape: self.kernel.shape(),
            tile,
            streams,
            accuracy: self.kernel.accuracy(),
            allow_inaccurate: self.kernel.allow_inaccurate,
            tuned: self.kernel.is_tuned(),
            ..force.spec()?
        };
        let g = spec.gravity(spec.force_law(around)?);
        spec.fields = force.fields(g)?;
        if let Some(text) = &self.orbit {
            let orbit = parse_orbit(text, force.units.as_ref());
            let orbit = orbit.with_context(|| format!("in --orbit {text}"))?;
            spec.fields = spec.fields.on_orbit(orbit);
        }
        Ok(spec)
    }

    /// Unit of the times of a run that is specified.
    pub(super) fn times(&self, spec: &RunSpec) -> Times {
        let end = match spec.end {
            End::Time(end) => end,
            End::Steps(steps) => spec.start + steps as f64 * spec.dt.unwrap_or(1.0),
            End::Open => spec.start,
        };
        let kept = self.kept.snapshot_every.as_ref();
        let asked = [self.until.as_ref(), kept, self.dt.as_ref()];
        Times::of(self.force.units.as_ref(), &asked, end - spec.start)
    }

    /// The unit in which the length of a step is printed.
    pub(super) fn times_of_steps(&self, step: f64) -> Times {
        Times::of(self.force.units.as_ref(), &[self.dt.as_ref()], step.abs())
    }

    /// Limit to the drift of the energy.
    pub(super) fn drift(&self, run: &Run) -> DriftWatch {
        let fields = &run.spec.fields;
        DriftWatch {
            bound: match fields.conserve_energy() {
                true => self.kept.max_drift,
                false => f64::INFINITY,
            },
            is_conserved: fields.conserve_energy(),
            in_fields: !fields.is_empty(),
            advice: match (run.spec.eta, run.physics.softening) {
                _ if fields.have_relativity() => {
                    "shorter steps would help, unless bodies are too fast for the field 1pn".to_owned()
                }
                (Some(_), _)
                    if fields.iter().any(ExternalField::needs_velocity)
                        && run.integrator == Integrator::Hermite4 =>
                {
                    "a smaller --eta would help, or --integrator hermite6: fields that depend on velocities ask much of \
                     steps of fourth order"
                        .to_owned()
                }
                (Some(_), _) => "a smaller --eta would help".to_owned(),
                (None, 0.0) => format!(
                    "a smaller --dt would help, or steps that follow the motion: {} and --until TIME",
                    suggest::near_settings()
                ),
                (None, _) => "a smaller --dt or a larger --softening would help".to_owned(),
            },
        }
    }

    /// Number of independent systems that the kernel computes.
    pub(super) fn systems(&self) -> anyhow::Result<u32> {
        self.kernel.systems(&self.made.options, self.generator())
    }

    /// The initial conditions that the input names, if it is not a file.
    pub(super) fn generator(&self) -> Option<&'static Generator> {
        let name = self.input.to_str().unwrap_or_default();
        let named = GENERATORS.iter().find(|generator| generator.name == name);
        named.filter(|_| !self.input.exists())
    }

    /// Refuses options of initial conditions for a file. (A kernel for independent systems needs to
    /// know how many there are.)
    pub(super) fn check_not_made(&self) -> anyhow::Result<()> {
        let apart = self.kernel.keeps_apart()?;
        let given = Parameter::ALL.into_iter().find(|&parameter| {
            self.made.options.get(parameter).is_some()
                && !(apart && parameter == Parameter::Systems)
        });
        let given = given.map(Parameter::name);
        let given = given.or(self.made.options.of.map(|_| "of"));
        let given = given.or(self.made.options.masses.map(|_| "masses"));
        let given = given.or(self.made.is_seeded.then_some("seed"));
        let is_file = self.input.exists() || self.input.as_os_str() == STANDARD;
        if let Some(name) = given.filter(|_| is_file) {
            if name == Parameter::Systems.name() {
                bail!(
                    "--systems without --independent is for initial conditions made by name, and {} is a file: if the file has the bodies of \
                     several systems, one after another, add --independent; otherwise leave --systems out",
                    self.input.display()
                );
            }
            bail!(
                "--{name} is for initial conditions made by name, and {} is a file: leave it out",
                self.input.display()
            );
        }
        Ok(())
    }

    pub(super) fn check_record(&self) -> anyhow::Result<()> {
        let drift = self.kept.max_drift;
        let given = say::plain(drift);
        let needs_looks = |condition: &&Condition| condition.needs_looks();
        if let (Some(condition), None) = (
            self.kept.stop_if.iter().find(needs_looks),
            self.kept.diagnostics,
        ) {
            bail!(
                "--stop-if \"{condition}\" is about what looks find: add --diagnostics STEPS, the steps between \
                 two of them"
            );
        }
        ensure!(drift >= 0.0, "`--max-drift` must be ≥ 0, got {given}");
        if let Some(every) = self.snapshot_every()? {
            ensure!(
                every.is_finite() && every > 0.0,
                "`--snapshot-every` must be > 0 and finite, got {}",
                say::plain(every)
            );
        }
        Ok(())
    }
}

/// Times at which a run records something.
pub(super) fn plan(options: &Options, spec: &RunSpec, format: Format) -> Plan {
    let (steps, until) = match spec.end {
        End::Steps(steps) => (steps, None),
        End::Time(end) => (u64::MAX, Some(end)),
        End::Open => (u64::MAX, None),
    };
    Plan {
        steps,
        until,
        diagnostics_every: options.kept.diagnostics,
        snapshot_every: spec.snapshot_every,
        checkpoint_every: options.kept.checkpoint_every,
        format,
        units: options.force.units,
        time_unit: options.times(spec).unit(),
    }
}
