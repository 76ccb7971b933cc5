//! `allpairs systems`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use allpairs::backend::Backend;
use allpairs::bodies::Bodies;
use allpairs::diagnostics::largest;
use allpairs::integrator::Integrator;
use allpairs::io::{Overwrite, write_atomically};
use allpairs::machine::Machine;
use allpairs::output::timeline_chart;
use allpairs::physics::ForceLaw;
use allpairs::ranks::Team;
use allpairs::selection::{Place, Request, eligible, select, select_on_ranks};
use allpairs::timeline::{self, Span, kernel_seconds};
use allpairs::variants::Variant;
use allpairs_lab::studies::{self, catalogue};
use allpairs_lab::verify::{Case, many_systems, steps_by_reference};
use anyhow::{Context, ensure};

use crate::bodies;
use crate::choices::{DeviceOption, Named};
use crate::exit;
use crate::many::Many;
use crate::say;
use crate::tables;

/// Kernels to time, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    place: DeviceOption,
    /// Only these kernels, separated by commas. If not given, the kernels of the study `galaxies`, and
    /// many-systems.
    #[arg(long, value_delimiter = ',')]
    kernel: Vec<String>,
    /// Number of systems.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    systems: u32,
    /// Number of bodies of each system.
    #[arg(long, default_value_t = 8192, value_parser = bodies::number_of_bodies)]
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
    /// Sources per tile, for kernels with tiles; if not given, each kernel's default.
    #[arg(long)]
    tile: Option<u32>,
    /// Number of streams, for kernels that use several; if not given, each kernel's default.
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
        let systems = say::counted(self.systems, "system", "systems");
        let bodies = say::counted(self.bodies, "body", "bodies");
        format!("{systems} of {bodies}")
    }
}

pub(super) fn systems(
    options: &Options,
    team: Option<&Arc<Team>>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
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
    let selection = match team {
        Some(team) => select_on_ranks(&request, team)?,
        None => select(&request)?,
    };
    let place = selection.place;
    let many = Many {
        tile: options.tile,
        streams: options.streams,
    };
    let variants = chosen(options, &place, law)?;
    bodies::check_memory(u64::from(options.systems) * u64::from(options.bodies))?;
    let (case, dt) = many_systems(options.systems, options.bodies as usize, law);
    let steps = options.steps;
    let reference = steps_by_reference(&case, dt, steps.into())?;
    writeln!(
        out,
        "On {place}; {}, {} of {dt:.3e}:",
        options.described(),
        say::counted(steps, "step", "steps")
    )?;
    let mut machine = Machine::new(place);
    if let Some(team) = team {
        machine = machine.ranks(Arc::clone(team));
    }
    let pairs = f64::from(options.systems) * f64::from(options.bodies).powi(2) * f64::from(steps);
    let mut table = tables::table(&[
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
        let mut shaped = many.of_if_it_has(variant, options.systems);
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
        // DeviceOption copies and kernels share their time, the kernels' is not known apart.
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
            say::scientific(error),
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
         last. Errors are\nerrors of positions after the steps, at most {STUDY_TOLERANCE} for the \
         study."
    )?;
    for line in overlaps {
        writeln!(out, "{line}")?;
    }
    exit::report_failures(&failures, out)
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
    if backend.facts().times_copies {
        for _ in 0..options.repetitions {
            seconds.push(backend.time_steps(dt, options.steps)?);
        }
        spans = backend.timeline(dt, options.steps)?;
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
        say::counted(options.steps, "step", "steps")
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
