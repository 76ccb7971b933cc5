//! `allpairs systems`, and the options of many systems that it shares with `allpairs run`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use allpairs::backend::Backend;
use allpairs::bodies::Bodies;
use allpairs::diagnostics::largest;
use allpairs::initial_conditions::{self, Generator, Parameter};
use allpairs::integrator::Integrator;
use allpairs::io::{Overwrite, write_atomically};
use allpairs::machine::Machine;
use allpairs::output::timeline_chart;
use allpairs::physics::ForceLaw;
use allpairs::plan::systems::bodies_each;
use allpairs::selection::{Place, Request, eligible, select, select_on_ranks};
use allpairs::timeline::{self, Span, kernel_seconds};
use allpairs::variants::{Method, Queues, Variant};
use allpairs_lab::studies::{self, catalogue};
use allpairs_lab::verify::{Case, many_systems, steps_by_reference};
use anyhow::{Context, bail, ensure};

use super::choices::Named;
use super::kernel::KernelOptions;
use super::{Where, ranks};

pub(super) const HEADING: &str = "Many systems";

/// Options of many systems.
#[derive(Debug, clap::Args)]
pub(super) struct Many {
    /// Sources of a tile, for kernels of many systems that have tiles; the kernel's own where not
    /// given.
    #[arg(long, help_heading = HEADING)]
    tile: Option<u32>,
    /// Number of streams, for kernels of many systems that use several; the kernel's own, or one a
    /// system, where not given.
    #[arg(long, help_heading = HEADING)]
    streams: Option<u32>,
}

impl Many {
    /// The kernel, of as many systems and with what was asked for.
    pub(super) fn of(&self, selected: &Variant, systems: u32) -> anyhow::Result<Variant> {
        let mut variant = selected.of_systems(systems);
        if self.tile.is_none() && self.streams.is_none() {
            return Ok(variant);
        }
        let Method::Systems(path) = &mut variant.method else {
            bail!(
                "--tile and --streams are for kernels of independent systems, such as galaxies/streams"
            );
        };
        if let Some(tile) = self.tile {
            ensure!(
                path.tile.is_some(),
                "kernel `{}` has no tiles: --tile is for kernels that do, such as galaxies/tiled-512",
                variant.name
            );
            *path = path.tile(tile);
        }
        if let Some(streams) = self.streams {
            ensure!(
                path.queues != Queues::Together,
                "kernel `{}` computes all systems in one stream: --streams is for kernels that use \
                 several, such as galaxies/streams",
                variant.name
            );
            *path = path.queued(Queues::Exactly(streams));
        }
        Ok(variant)
    }
}

/// Returns whether a kernel computes independent systems.
pub(super) fn are_kept_apart(kernel: Option<&str>) -> anyhow::Result<bool> {
    let kernel = kernel.map(|name| catalogue().find(name)).transpose()?;
    Ok(kernel.is_some_and(studies::is_of_many))
}

/// Number of independent systems that a kernel computes: those asked for, or of the initial
/// conditions; 1 for other kernels. Where no kernel is named, initial conditions of many systems are computed
/// as such.
pub(super) fn asked(
    kernel: &KernelOptions,
    given: &initial_conditions::Options,
    generator: Option<&Generator>,
) -> anyhow::Result<u32> {
    let made_as_many = kernel.name().is_none() && generator.is_some_and(Generator::has_systems);
    if !made_as_many && !kernel.keeps_apart()? {
        return Ok(1);
    }
    let default = generator.and_then(|generator| {
        let mut parameters = generator.parameters.iter();
        let default = parameters.find(|(p, _)| *p == Parameter::Systems)?;
        Some(default.1)
    });
    let asked = given.get(Parameter::Systems).or(default).unwrap_or(1.0);
    let whole = asked.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&asked);
    ensure!(whole, "`--systems` must be a whole number ≥ 1, got {asked}");
    Ok(asked as u32)
}

/// `, 32 independent systems of 8192`, or nothing.
pub(super) fn of_how_many(systems: u32, bodies: usize) -> anyhow::Result<String> {
    let each = bodies_each(bodies, systems)?;
    Ok(match systems {
        1 => String::new(),
        systems => format!(", {systems} independent systems of {each}"),
    })
}

/// Kernels to time, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    place: Where,
    /// Only these kernels, separated by commas; else those of the study `galaxies`, and many-systems.
    #[arg(long, value_delimiter = ',')]
    kernel: Vec<String>,
    /// Number of systems.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    systems: u32,
    /// Number of bodies of each system.
    #[arg(long, default_value_t = 8192, value_parser = super::number_of_bodies)]
    bodies: u32,
    /// Force law.
    #[arg(long, default_value = "unit")]
    law: Named<ForceLaw>,
    /// Time steps from copy to copy.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Timed repetitions; their median and spread are reported.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Sources of a tile, for kernels with tiles; each kernel's own where not given.
    #[arg(long)]
    tile: Option<u32>,
    /// Number of streams, for kernels that use several; each kernel's own where not given.
    #[arg(long)]
    streams: Option<u32>,
    /// Threads per block; each kernel's own where not given.
    #[arg(long)]
    block: Option<u32>,
    /// Folder for tables and charts (CSV, PNG and SVG) of when the copies and launches of each kernel
    /// were under way.
    #[arg(long, value_name = "FOLDER")]
    timeline: Option<PathBuf>,
    /// Replace what is there.
    #[arg(long)]
    overwrite: bool,
}

/// Error that the study allows for positions after the steps.
const STUDY_TOLERANCE: f64 = 1e-3;

impl Options {
    /// `32 systems of 8192 bodies`.
    fn described(&self) -> String {
        let systems = super::counted(self.systems, "system", "systems");
        let bodies = super::counted(self.bodies, "body", "bodies");
        format!("{systems} of {bodies}")
    }
}

pub(super) fn systems(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let team = ranks::team();
    ensure!(
        team.is_none() || options.timeline.is_none(),
        "--timeline needs a clock that all GPUs share: leave it out, or start one process without the MPI \
         launcher"
    );
    let law = options.law.0;
    let first = options.kernel.first();
    let first = first.map(|name| catalogue().find(name)).transpose()?;
    let request = Request {
        systems: options.systems,
        bodies: options.systems as usize * options.bodies as usize,
        ..Request::new(0).on(options.place.device).by(first).law(law)
    };
    let selection = match &team {
        Some(team) => select_on_ranks(&request, team)?,
        None => select(&request)?,
    };
    let place = selection.place;
    let many = Many {
        tile: options.tile,
        streams: options.streams,
    };
    let variants = chosen(options, &place, law)?;
    super::check_memory(u64::from(options.systems) * u64::from(options.bodies))?;
    let (case, dt) = many_systems(options.systems, options.bodies as usize, law);
    let steps = options.steps;
    let reference = steps_by_reference(&case, dt, steps.into())?;
    writeln!(
        out,
        "On {place}; {}, {} of {dt:.3e}:",
        options.described(),
        super::counted(steps, "step", "steps")
    )?;
    let mut machine = Machine::new(place);
    if let Some(team) = team {
        machine = machine.ranks(team);
    }
    let pairs = f64::from(options.systems) * f64::from(options.bodies).powi(2) * f64::from(steps);
    let mut table = super::table(&[
        "kernel",
        "#ms",
        "#spread",
        "#Ginteractions/s",
        "#without copies",
        "#error of x",
        "verdict",
    ]);
    let mut failures = vec![];
    let mut overlaps = vec![];
    for variant in variants {
        let mut shaped = many.of_if_it_has(variant, options.systems)?;
        if let Some(block) = options.block {
            shaped = shaped.in_blocks_of(block);
        }
        let mut backend = machine.backend(&shaped, &case.bodies, case.physics)?;
        backend.accelerate()?;
        let verdict = match case.check(&shaped, &backend.accelerations()?) {
            Ok(()) => steps_verdict(&mut *backend, &case, (dt, steps), &reference)?,
            Err(why) => Err(why.to_string()),
        };
        let (error, seconds, spans) = match verdict {
            Ok(error) => {
                let (seconds, spans) = timed(&mut *backend, dt, options)?;
                (error, seconds, spans)
            }
            Err(why) => {
                table.add_row([variant.name, "", "", "", "", "", "FAILED"]);
                failures.push(format!("{}: {why}", variant.name));
                continue;
            }
        };
        let median = seconds[seconds.len() / 2];
        let spread = (seconds[seconds.len() - 1] - seconds[0]) / median;
        // Where copies and kernels share their time, the kernels' is not known apart.
        let without = match kernel_seconds(&spans) {
            seconds if seconds > 0.0 && timeline::overlap(&spans) == 0.0 => {
                format!("{:.1}", 1e-9 * pairs / seconds)
            }
            _ => String::new(),
        };
        table.add_row([
            variant.name.to_owned(),
            format!("{:.3}", 1e3 * median),
            format!("{:.1} %", 100.0 * spread),
            format!("{:.1}", 1e-9 * pairs / median),
            without,
            super::scientific(error),
            "passed".to_owned(),
        ]);
        if let Some(folder) = options.timeline.as_ref().filter(|_| !spans.is_empty()) {
            overlaps.push(write_timeline(folder, variant, options, &spans)?);
        }
    }
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "Times are from the first copy to the last; without copies, from the first kernel to the \
         last. Errors are\nthose of positions after the steps, at most {STUDY_TOLERANCE} for the \
         study."
    )?;
    for line in overlaps {
        writeln!(out, "{line}")?;
    }
    super::tell(&failures, out)
}

impl Many {
    /// As [`of`](Self::of), of one kernel of several: options that it does not know are for others.
    fn of_if_it_has(&self, selected: &Variant, systems: u32) -> anyhow::Result<Variant> {
        let (mut tile, mut streams) = (None, None);
        if let Method::Systems(path) = selected.method {
            tile = self.tile.filter(|_| path.tile.is_some());
            streams = self.streams.filter(|_| path.queues != Queues::Together);
        }
        Self { tile, streams }.of(selected, systems)
    }
}

/// The kernels asked for, or those of the study that run there.
fn chosen(
    options: &Options,
    place: &Place,
    law: ForceLaw,
) -> anyhow::Result<Vec<&'static Variant>> {
    if !options.kernel.is_empty() {
        let named = options.kernel.iter().map(|name| {
            let variant = catalogue().find(name)?;
            eligible(variant, place, law)?;
            Ok(variant)
        });
        return named.collect();
    }
    let study = studies::find("galaxies").expect("a study");
    let rungs = study.rungs.iter().map(|rung| &rung.variant);
    let all = rungs.chain([catalogue().find("many-systems")?]);
    Ok(all
        .filter(|variant| eligible(variant, place, law).is_ok())
        .collect())
}

/// The largest error of a coordinate after the steps, if it is not too large.
fn steps_verdict(
    backend: &mut dyn Backend,
    case: &Case,
    (dt, steps): (f64, u32),
    reference: &Bodies,
) -> anyhow::Result<Result<f64, String>> {
    let integrator = Integrator::SemiImplicitEuler;
    backend.repeat(steps.into(), &integrator.operations(dt))?;
    let mut bodies = case.bodies.clone();
    backend.download(&mut bodies)?;
    let axes = [
        (&bodies.x, &reference.x),
        (&bodies.y, &reference.y),
        (&bodies.z, &reference.z),
    ];
    let pairs = axes.into_iter().flat_map(|(a, b)| a.iter().zip(b));
    let worst = largest(pairs.map(|(a, b)| (a - b).abs()));
    Ok(if worst < STUDY_TOLERANCE {
        Ok(worst)
    } else {
        Err(format!(
            "a coordinate is off by {worst:e} after {steps} steps, more than {STUDY_TOLERANCE:e}"
        ))
    })
}

/// Seconds of the steps, sorted, and when copies and kernels were under way, if anybody knows.
fn timed(
    backend: &mut dyn Backend,
    dt: f64,
    options: &Options,
) -> anyhow::Result<(Vec<f64>, Vec<Span>)> {
    let mut seconds = vec![];
    let mut spans = vec![];
    if let Some(pipeline) = backend.pipeline() {
        for _ in 0..options.repetitions {
            seconds.push(pipeline.seconds(dt, options.steps)?);
        }
        spans = pipeline.timeline(dt, options.steps)?;
    } else {
        let integrator = Integrator::SemiImplicitEuler;
        for _ in 0..options.repetitions {
            let start = Instant::now();
            backend.repeat(options.steps.into(), &integrator.operations(dt))?;
            backend.synchronize()?;
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    seconds.sort_by(f64::total_cmp);
    Ok((seconds, spans))
}

/// Writes the timeline of a kernel, and says how much of it was at the same time.
fn write_timeline(
    folder: &Path,
    variant: &Variant,
    options: &Options,
    spans: &[Span],
) -> anyhow::Result<String> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let overwrite = Overwrite::from(options.overwrite);
    let path = folder.join(variant.name.replace('/', "-"));
    let csv = path.with_extension("csv");
    write_atomically(&csv, overwrite, |file| timeline::write_csv(spans, file))
        .with_context(|| format!("cannot write {}", csv.display()))?;
    let title = format!("{}: copies and kernels", variant.name);
    let subtitle = format!(
        "{}, {}",
        options.described(),
        super::counted(options.steps, "step", "steps")
    );
    let chart = timeline_chart(&title, &subtitle, spans)?;
    for extension in ["png", "svg"] {
        chart.write(&path.with_extension(extension), overwrite)?;
    }
    let copies = spans.iter().filter(|span| span.what.is_copy());
    let copies: f64 = copies.map(|span| span.end - span.start).sum();
    Ok(format!(
        "{}: of {:.1} µs in which a stream was at a copy, {:.1} µs while another was at a kernel; \
         wrote {} and its charts",
        variant.name,
        1e6 * copies,
        1e6 * timeline::overlap(spans),
        csv.display()
    ))
}
