//! Options of a run, and what follows from them alone.

use std::path::PathBuf;
use std::sync::Arc;

use allpairs::backend::Neighbours;
use allpairs::bodies::Bodies;
use allpairs::fields::{FIRST_POST_NEWTONIAN, Fields, parse_orbit};
use allpairs::initial_conditions::{GENERATORS, Generator, Parameter};
use allpairs::integrator::{Integrator, TimeSteps};
use allpairs::io::Format;
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::ranks::Team;
use allpairs::recording::{Condition, Every, Plan};
use allpairs::selection::{Place, Selection};
use allpairs::suggest::{Advice, BlockSettings, Chosen};
use allpairs::units::Measure;
use allpairs::variants::Variant;
use allpairs_lab::studies::{self, Study, catalogue};
use anyhow::{Context, bail, ensure};
use clap::ArgAction;

use crate::choices::Named;
use crate::drift::DriftWatch;
use crate::encounters::EncounterOptions;
use crate::kernel::KernelOptions;
use crate::made::Made;
use crate::physics::ForceOptions;
use crate::say;
use crate::size::Size;

/// Bodies to simulate, and how.
#[derive(Debug, clap::Parser)]
pub(super) struct Options {
    /// A snapshot file (.allpairs, .hdf5, .npz, .vtp, .csv, or Tipsy as .bin, .tipsy, .std), the
    /// name of initial conditions, such as plummer (`allpairs ic` lists them), or a .toml file with
    /// these options.
    pub(super) input: PathBuf,
    /// Format of the input file, if it does not follow from the name.
    #[arg(long)]
    pub(super) format: Option<Format>,

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
    #[arg(long)]
    pub(super) block_steps: bool,
    /// Recompute only the force of the COUNT nearest neighbours in each step, and the force of the other
    /// bodies in longer steps (Ahmad & Cohen's scheme). With --block-steps and hermite4. auto: the root of
    /// the number of bodies, but at most a 256th of this number and at least 64.
    #[arg(long, value_name = "COUNT|auto")]
    pub(super) neighbours: Option<Neighbours>,
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
    /// Format of the snapshots; if not given, the format of the input file, or allpairs. hdf5-gzip is
    /// compressed HDF5.
    #[arg(long, value_name = "NAME")]
    pub(super) snapshot_format: Option<Format>,
    /// Draw the surface density in the terminal during the run.
    #[arg(long)]
    pub(super) watch: bool,
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

    /// The external fields, in the units of the run, with the orbit of the origin in them, of a run that
    /// begins at this time.
    pub(super) fn fields(
        &self,
        physics: &Physics,
        integrator: Integrator,
        start: f64,
    ) -> anyhow::Result<Fields> {
        let fields = self.force.fields(physics, integrator)?;
        let Some(text) = &self.orbit else {
            return Ok(fields);
        };
        let orbit = parse_orbit(text, self.force.units.as_ref());
        let orbit = orbit.with_context(|| format!("in --orbit {text}"))?;
        let fields = fields.on_orbit(orbit.starting(start));
        fields.check(integrator.name(), integrator.derivatives())?;
        Ok(fields)
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
    pub(super) fn study(&self) -> Option<&'static Study> {
        let kernel = self.kernel.name()?;
        studies::of(catalogue().find(kernel).ok()?)
    }

    /// As asked, or as the kernel's study has it, or as suits the initial conditions.
    pub(super) fn method(&self) -> Integrator {
        match (self.integrator, self.study()) {
            (Some(Named(integrator)), _) => integrator,
            (None, Some(study)) => study.integrator,
            (None, None) => self.advice().integrator,
        }
    }

    /// Returns whether the integrator was chosen for bodies of a file whose units are those of planets.
    pub(super) fn is_of_planets(&self) -> bool {
        let is_chosen =
            (self.integrator.is_none() && self.study().is_none()) && self.generator().is_none();
        is_chosen && self.advice() == Advice::PLANETS
    }

    /// The place, ready for a run with these options.
    pub(super) fn machine(
        &self,
        place: Place,
        integrator: Integrator,
        physics: &Physics,
        team: Option<&Arc<Team>>,
    ) -> Machine {
        let machine = Machine::new(place)
            .allow_inaccurate(self.kernel.allow_inaccurate)
            .block_steps(
                integrator,
                self.stepping(),
                self.eta,
                self.kernel.accuracy_under(physics),
            )
            .neighbours(self.neighbours);
        match team {
            Some(team) => machine.ranks(Arc::clone(team)),
            None => machine,
        }
    }

    /// Advice on how to simulate the initial conditions, or the bodies of a file with its units.
    pub(super) fn advice(&self) -> Advice {
        let made_by = self.generator();
        let made_by = made_by.map(|generator| generator.advice_of(&self.made.options));
        Advice::of(made_by, self.force.units)
    }

    /// Choice between varying steps shared by all bodies and block time steps.
    pub(super) fn stepping(&self) -> TimeSteps {
        match self.block_steps {
            true => TimeSteps::Blocks,
            false => TimeSteps::Shared,
        }
    }

    /// Chooses what was left out of block time steps of so many bodies; returns what was chosen, to be told.
    pub(super) fn choose_block_steps(
        &mut self,
        bodies: usize,
        physics: &Physics,
    ) -> anyhow::Result<Option<String>> {
        if !self.block_steps || (self.integrator.is_none() && self.study().is_some()) {
            return Ok(None);
        }
        let asked = BlockSettings {
            integrator: self.integrator.map(|Named(integrator)| integrator),
            eta: self.eta,
            neighbours: self.neighbours,
        };
        let mut fields = self.force.fields.iter();
        let allowed = self.kernel.name().is_none()
            && self.systems()? == 1
            && !fields.any(|field| field.split(':').next() == Some(FIRST_POST_NEWTONIAN));
        let settings = asked.or_chosen(bodies, allowed, || self.kernel.accuracy_under(physics));
        if settings == asked {
            return Ok(None);
        }
        self.integrator = settings.integrator.map(Named);
        (self.eta, self.neighbours) = (settings.eta, settings.neighbours);
        // Such as were given by their number the run tells anyway.
        let was_left = !matches!(asked.neighbours, Some(Neighbours::Number(_)));
        let neighbours = settings.neighbours.filter(|_| was_left);
        let neighbours = neighbours
            .map(|neighbours| format!(" and about {} neighbours", neighbours.number(bodies)));
        let eta = settings.eta.map(say::plain);
        Ok(Some(format!(
            "block time steps by {} with --eta {}{} (chosen)",
            self.method().name(),
            eta.unwrap_or_default(),
            neighbours.unwrap_or_default()
        )))
    }

    /// Refuses neighbours where there is no scheme with them.
    pub(super) fn check_neighbours(&self) -> anyhow::Result<()> {
        match self.neighbours {
            Some(_) => Ok(self.method().check_neighbours(self.stepping())?),
            None => Ok(()),
        }
    }

    /// The force between `bodies`.
    pub(super) fn physics(&self, bodies: &Bodies) -> anyhow::Result<Physics> {
        Ok(self.physics_and_why(bodies)?.0)
    }

    /// The force between `bodies`, and how its softening was chosen, if it was.
    pub(super) fn physics_and_why(
        &self,
        bodies: &Bodies,
    ) -> anyhow::Result<(Physics, Option<Chosen>)> {
        let preferred = self.study().map_or(ForceLaw::Gravity, |study| study.law);
        let made_by = self
            .generator()
            .map(|generator| (generator, &self.made.options));
        let systems = self.systems()?;
        self.force.physics(preferred, bodies, systems, made_by)
    }

    pub(super) fn integrator(&self) -> anyhow::Result<Integrator> {
        match (self.method(), self.damping) {
            (Integrator::DampedEuler { .. }, Some(rate)) => {
                ensure!(
                    rate.is_finite() && rate >= 0.0,
                    "`--damping` must be ≥ 0 and finite, got {}",
                    say::plain(rate)
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
        physics: &Physics,
        bodies: &Bodies,
        team: Option<&Arc<Team>>,
    ) -> anyhow::Result<(Selection, Option<String>)> {
        let alone = self.force.fields.is_empty() && !self.encounters.are_looked_for();
        let integration = (self.method(), self.stepping(), alone);
        self.kernel
            .select(physics, (bodies, self.systems()?), integration, team)
    }

    /// The selected kernel, in the shape that was asked for, or selected.
    pub(super) fn shaped(&self, selected: &Selection) -> anyhow::Result<Variant> {
        self.kernel.shaped(selected, self.systems()?)
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
        if let Some(name) = given.filter(|_| self.input.exists()) {
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

pub(super) fn plan(options: &Options, steps: u64, format: Format) -> anyhow::Result<Plan> {
    let until = options.until()?;
    Ok(Plan {
        steps: until.map_or(steps, |_| u64::MAX),
        until,
        diagnostics_every: options.kept.diagnostics,
        snapshot_every: options.snapshot_every()?,
        checkpoint_every: options.kept.checkpoint_every,
        format,
        units: options.force.units,
    })
}
