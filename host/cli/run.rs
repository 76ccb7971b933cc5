//! `allpairs run`, and the demonstration.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use allpairs::bodies::Bodies;
use allpairs::diagnostics::{Conserved, odd_motion};
use allpairs::frame::Frame;
use allpairs::initial_conditions::{GENERATORS, Parameter};
use allpairs::io::{Format, ReadFault, Reading, Snapshot};
use allpairs::memory::{self, ByteCount};
use allpairs::names::nearest;
use allpairs::ranks::Team;
use allpairs::recording::Recording;
use allpairs::run::{Run, RunSpec};
use allpairs::test_particles::Kinds;
use allpairs::units::Units;
use allpairs_lab::studies;
use anyhow::ensure;
use clap::ArgMatches;

use crate::asked::Asked;
use crate::bodies;
use crate::changes;
use crate::drive::drive;
use crate::files;
use crate::header;
use crate::options::{Options, plan};
use crate::outputs::Outputs;
use crate::progress::heard_of;
use crate::say;
use crate::settings;
use crate::test_particles;
use crate::watch::Watch;

/// The galaxy of the demonstration, in the program itself: it runs wherever the program is.
const GALAXY: &[u8] = include_bytes!("demo/galaxy_20K.bin");
const GALAXY_NAME: &str = "galaxy_20K.bin";

/// 100 steps of the galaxy that the program carries.
pub(super) fn demo(team: Option<&Arc<Team>>, out: &mut impl Write) -> anyhow::Result<()> {
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
    begin(asked, input, team, out)
}

/// Reads or makes the bodies, and simulates them.
pub(super) fn run(
    matches: &ArgMatches,
    team: Option<&Arc<Team>>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let asked = Asked::of(matches)?;
    let input = input(&asked.options)?;
    begin(asked, input, team, out)
}

/// Says how much memory a run needs, where it is much or on several devices.
pub(super) fn tell_memory(run: &Run, bodies: &Bodies, out: &mut impl Write) -> anyhow::Result<()> {
    let lines = [
        shared_memory(run, bodies)?,
        needs_memory(bodies.len(), memory::available()),
    ];
    for line in lines.into_iter().flatten() {
        writeln!(out, "{line}")?;
    }
    out.flush()?; // before the first forces, which take long where this is much
    Ok(())
}

/// Memory that several devices need, where they compute together.
fn shared_memory(run: &Run, bodies: &Bodies) -> anyhow::Result<Option<String>> {
    let bytes = run
        .machine()
        .shared_bytes(&run.variant, bodies, run.physics)?;
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let place = &run.selection.place;
    let smallest = place.gpus().iter().map(|gpu| gpu.memory_bytes as u64).min();
    let of = smallest.map(|bytes| format!(", of {}", ByteCount(bytes)));
    Ok(Some(format!(
        "memory: {} on each of {} devices{}",
        ByteCount(bytes),
        place.devices(),
        of.unwrap_or_default()
    )))
}

/// Bodies to simulate, the format of their snapshots, and their units where these are known.
struct Input {
    snapshot: Snapshot,
    format: Format,
    units: Option<Units>,
}

fn input(options: &Options) -> anyhow::Result<Input> {
    if let Some(generator) = options.generator() {
        let mut made = options.made.options;
        if options.kernel.keeps_apart()? && !generator.has_systems() {
            // The kernel's business: the bodies are made as one, and computed as many.
            made = made.without(Parameter::Systems);
        }
        ensure!(
            options.format.is_none(),
            "--format is that of an input file, and `{}` is made: --snapshot-format chooses that of snapshots",
            generator.name
        );
        ensure!(
            options.cosmological.physical.is_none(),
            "--physical is for a cosmological snapshot in a file, and `{}` is made: leave it out",
            generator.name
        );
        if let Some(bodies) = made.get(Parameter::Bodies) {
            bodies::check_memory(bodies as u64)?; // before they are made
        }
        let (snapshot, units) = options.size.make(generator, &made, options.force.units)?;
        return Ok(Input {
            snapshot,
            format: options.kept.snapshot_format.unwrap_or(Format::Allpairs),
            units,
        });
    }
    let path = &options.input;
    options.size.check_unused(path)?;
    options.check_not_made()?;
    let reading = Reading {
        format: options.format,
        physical: options.cosmological.physical,
        units: options.force.units,
    };
    let is_heeded = |note: &str| {
        let is_file = options.encounters.file().map(Path::new) == Some(path);
        is_file && note == "columns that are not used here: radius"
    };
    let loaded = files::load_but(path, reading, is_heeded).map_err(|error| {
        let is_a_name = matches!(error.fault, ReadFault::NotFound) && path.extension().is_none();
        let error = anyhow::Error::from(error);
        match is_a_name {
            true => error.context(unknown(&path.to_string_lossy())),
            false => error,
        }
    })?;
    Ok(Input {
        snapshot: loaded.snapshot,
        format: options
            .kept
            .snapshot_format
            .unwrap_or(loaded.format.to_write()),
        units: files::units_of(path, loaded.units, options.force.units)?,
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

/// Resolves the run, says what it is, begins, and takes its steps.
fn begin(
    mut asked: Asked,
    input: Input,
    team: Option<&Arc<Team>>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let Input {
        snapshot: Snapshot {
            time: start,
            bodies,
        },
        format,
        units,
    } = input;
    asked.options.force.units = asked.options.force.units.or(units);
    let options = &asked.options;
    options.check_record()?;
    let around = studies::surroundings(team);
    let spec = RunSpec {
        encounters: options
            .encounters
            .begin(options.force.units.as_ref(), &bodies.id)?,
        ..options.spec(start, &around)?
    };
    bodies::check_memory(bodies.len() as u64)?;
    let changes = options.changes.as_ref();
    let changes = changes.map(|file| changes::read(file, options.force.units.as_ref()));
    let changes = changes.transpose()?;
    let run = spec.resolve(&bodies, &around)?;
    if let Some(changes) = &changes {
        changes.check(&bodies, &run.spec)?;
    }
    let watch = options.kept.watch.then(Watch::new).transpose()?;
    let outputs = Outputs::prepare(options, format)?;
    header::of_run(&run, options, &bodies, format, out)?;
    tell_memory(&run, &bodies, out)?;
    let (n, kinds) = (bodies.len(), Kinds::of(&bodies, &run.physics));
    let coincident = match (run.physics.softening == 0.0, run.spec.systems) {
        (true, 1) => {
            let within = Frame::of(&bodies, &run.physics).least_distance();
            let pair = bodies.coincident(within, |body| run.physics.weight(body.mass) != 0.0);
            pair.map(|pair| (pair, bodies.coincident(0.0, |_| true).is_some()))
        }
        _ => None,
    };

    for warning in &run.warnings {
        say::tell(format_args!("warning: {warning}"));
    }
    outputs.check_folder()?;

    if let Some(line) = run
        .expected_seconds_of_forces(&bodies)
        .and_then(first_takes_time)
    {
        writeln!(out, "{line}")?;
        out.flush()?;
    }
    let (opened, seconds) = heard_of("the first forces", || {
        let mut opened = run.open(&bodies)?;
        let seconds = opened.seconds_of_forces()?;
        anyhow::Ok((opened, seconds))
    })?;
    let (mut simulation, run) = opened.begin(bodies)?;
    let steps = run.spec.steps(simulation.pace())?;
    let times = options.times(&run.spec);
    if let Some(changes) = &changes {
        writeln!(out, "{}", changes.header(&times))?;
    }
    header::of_steps(&run, &simulation, (steps, &times, options), out)?;
    let sources = simulation.number_of_sources();
    if let Some(line) = test_particles::header(kinds, sources) {
        writeln!(out, "{line}")?;
    }
    if let Some(([i, j], is_exact)) = coincident {
        let position = match is_exact {
            true => "the same position",
            false => "positions so near each other that the square of their distance is no number",
        };
        writeln!(
            out,
            "bodies {i} and {j} have {position}: without softening, the force between them is left out"
        )?;
    }
    // Many steps of test particles at a time take less than one force after another.
    let number = header::number_of_steps(&run, &simulation, steps).filter(|_| sources == n);
    let evaluations = f64::from(run.integrator.evaluations());
    if let Some(line) = number.and_then(|steps| needs_time(steps * evaluations * seconds)) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;

    let table = asked.with_choices(&run, format);
    let settings = settings::of(&table)?;
    outputs.make_folder()?;
    let _claim = outputs.claim()?;
    outputs.clear(out)?;
    outputs.write_config(&table, &run.selection)?;

    let plan = plan(options, &run.spec, format);
    let recording = heard_of("the energy at the start", || {
        Recording::begin(&outputs.folder, plan, &mut simulation, |_| {})
    })?;
    let is_unknown = options.force.units.is_none() && options.generator().is_none();
    if is_unknown && run.spec.fields.is_empty() {
        let hint = hint_of_units(recording.origin());
        hint.inspect(|hint| say::tell(format_args!("hint: {hint}")));
    }
    let recording = recording.of_settings(settings);
    let recording = recording.stop_if(options.kept.stop_if.clone());
    let recording = changes::follow(recording, changes)?;
    drive(
        (options.drift(&run), times),
        watch,
        simulation,
        recording,
        &outputs,
        out,
    )
}

/// Hint that units are unknown, where the bodies move as they do with a wrong G.
fn hint_of_units(origin: &Conserved) -> Option<String> {
    let ratio = origin.virial_ratio();
    let what = odd_motion(ratio)?;
    Some(format!(
        "2K/|U| = {} at the start: bodies {what}. Units are unknown, and G = 1: give --units, such as \
             pc,Msun,km/s, or --gravity",
        say::scientific(ratio)
    ))
}

/// The memory that a run needs, where it is much: a gigabyte, or a tenth of what there is.
fn needs_memory(bodies: usize, available: Option<(u64, &str)>) -> Option<String> {
    const MUCH: u64 = 1_000_000_000;
    let needed = bodies as u64 * memory::BYTES_PER_BODY_OF_A_RUN;
    let is_much = needed >= MUCH || available.is_some_and(|(bytes, _)| needed >= bytes / 10);
    let of = available.map(|(bytes, limit)| format!(", of {} {limit}", ByteCount(bytes)));
    is_much.then(|| {
        let of = of.unwrap_or_default();
        format!("needs up to {} of memory{of}", ByteCount(needed))
    })
}

/// The time that the first forces take, where it is long.
fn first_takes_time(seconds: f64) -> Option<String> {
    const LONG: f64 = 5.0;
    (seconds >= LONG).then(|| {
        let time = say::duration(seconds);
        format!("a force on all bodies takes about {time}, as a share of them tells")
    })
}

/// The time that a run takes at the rate of the first forces, where it is long.
fn needs_time(seconds: f64) -> Option<String> {
    const LONG: f64 = 60.0;
    (seconds >= LONG).then(|| {
        let time = say::duration(seconds);
        format!("needs about {time} at the rate of the first step")
    })
}

#[cfg(test)]
mod tests {
    use super::{first_takes_time, needs_memory, needs_time, unknown};

    #[test]
    fn needs_are_told_where_they_are_large() {
        assert_eq!(needs_time(59.0), None);
        assert_eq!(first_takes_time(4.0), None);
        let long = first_takes_time(180.0).expect("minutes");
        assert!(long.contains("takes about 3 min"), "{long}");
        let long = needs_time(2.16e6).expect("25 days");
        assert_eq!(long, "needs about 25 days at the rate of the first step");
        let free = |bytes: u64| Some((bytes, "free on this machine"));
        assert_eq!(needs_memory(1000, free(8_000_000_000)), None);
        assert_eq!(needs_memory(1000, None), None);
        assert_eq!(
            needs_memory(2_000_000, free(64_000_000_000)).expect("more than a gigabyte"),
            "needs up to 1.3 GB of memory, of 64.0 GB free on this machine"
        );
        assert_eq!(
            needs_memory(1_000_000, free(6_000_000_000)).expect("more than a tenth"),
            "needs up to 650 MB of memory, of 6.0 GB free on this machine"
        );
        assert_eq!(
            needs_memory(2_000_000, None).expect("more than a gigabyte"),
            "needs up to 1.3 GB of memory"
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
