//! `allpairs run`, and the demonstration.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use allpairs::backend::ForceError;
use allpairs::bodies::Bodies;
use allpairs::initial_conditions::{GENERATORS, Parameter};
use allpairs::integrator::{Pace, TimeSteps};
use allpairs::io::{Format, ReadFault, Snapshot};
use allpairs::machine::Machine;
use allpairs::memory::{self, ByteCount};
use allpairs::names::nearest;
use allpairs::physics::Physics;
use allpairs::ranks::Team;
use allpairs::recording::Recording;
use allpairs::selection::{Place, Selection, fits};
use allpairs::simulation::Simulation;
use allpairs::suggest::{self, Chosen};
use allpairs::test_particles::Kinds;
use allpairs::units::Units;
use allpairs::variants::Variant;
use anyhow::ensure;
use clap::ArgMatches;
use gpu_kernels::schedule::block_steps::DigitsName;

use crate::asked::Asked;
use crate::bodies;
use crate::drive::drive;
use crate::encounters;
use crate::files;
use crate::flags;
use crate::many;
use crate::options::{Options, plan};
use crate::outputs::Outputs;
use crate::own_frame;
use crate::pace::{check_pace, pace, steps};
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
pub(super) fn tell_memory(
    machine: &Machine,
    variant: &Variant,
    bodies: &Bodies,
    physics: Physics,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let lines = [
        shared_memory(machine, variant, bodies, physics)?,
        needs_memory(bodies.len(), memory::available()),
    ];
    for line in lines.into_iter().flatten() {
        writeln!(out, "{line}")?;
    }
    out.flush()?; // before the first forces, which take long where this is much
    Ok(())
}

/// Memory that several devices need, where they compute together.
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
    let loaded = files::load(path, options.format).map_err(|error| {
        let is_a_name = matches!(error.fault, ReadFault::NotFound) && path.extension().is_none();
        let error = anyhow::Error::from(error);
        match is_a_name {
            true => error.context(unknown(&path.to_string_lossy())),
            false => error,
        }
    })?;
    Ok(Input {
        snapshot: loaded.snapshot,
        format: options.kept.snapshot_format.unwrap_or(loaded.format),
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
    let (physics, softening) = asked.options.physics_and_why(&bodies)?;
    let block_steps = asked.options.choose_block_steps(bodies.len(), &physics)?;
    let options = &asked.options;
    let integrator = options.integrator()?;
    let fields = options.fields(&physics, integrator, start)?;
    if let Some(end) = options.until()? {
        fields.check_times(start, end)?; // with a number of steps, when their length is known
    }
    options.check_record()?;
    options.check_neighbours()?;
    check_pace(options, start)?;
    let encounters = options
        .encounters
        .begin(options.force.units.as_ref(), bodies.len())?;
    if let Some(encounters) = &encounters {
        encounters.check(&bodies)?;
    }
    bodies::check_memory(bodies.len() as u64)?;
    let (selection, remark) = options.select(&physics, &bodies, team)?;
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
        say::counted(n, "body", "bodies"),
        say::fixed(bodies.total_mass(), 6),
        say::plain(start),
        many::of_how_many(options.systems()?, n)?
    )?;
    let is_made = options.generator().is_some();
    if let Some(line) = options.force.units_line(&physics, is_made) {
        writeln!(out, "{line}")?;
    }
    if options.force.units.is_some() && !format.records_units() {
        let format = format.summary();
        writeln!(out, "snapshots do not record these units: {format} cannot")?;
    }
    if let Some(remark) = remark {
        writeln!(out, "{remark}")?;
    }
    selection_line(&selection, out)?;
    if let Some(line) = block_steps {
        writeln!(out, "{line}")?;
    }
    for field in fields.iter() {
        writeln!(out, "field {field}")?;
    }
    if let Some(orbit) = fields.orbit() {
        writeln!(
            out,
            "orbit {orbit}: bodies are in the frame that falls with it"
        )?;
    }
    if let Some(line) = own_frame::remark(&options.input, start, &fields) {
        writeln!(out, "{line}")?;
    }
    if !fields.is_empty() && !fields.conserve_energy() {
        writeln!(
            out,
            "a field changes with time: the energy is not conserved, and its drift not watched"
        )?;
    }
    let machine = options.machine(selection.place.clone(), integrator, &physics, team);
    let machine = machine.fields(fields.clone());
    if let (Some(digits), true) = (machine.block_digits(), *machine.place() != Place::Cpu) {
        let pairs = match digits {
            _ if options.neighbours.is_some() => "f32, differences of neighbours' positions in f64",
            DigitsName::Single => "f32",
            DigitsName::Mixed => "f32, positions in two",
            DigitsName::Double => "f64",
        };
        writeln!(out, "pairs in {pairs}; state, steps and sums in f64")?;
    }

    let in_f64 = machine.block_digits() == Some(DigitsName::Double);
    let has_scheme = match machine.place() {
        Place::Cpu => true,
        _ => !in_f64,
    };
    let pays = has_scheme && suggest::neighbours_pay(n);
    match options.neighbours {
        Some(neighbours) => {
            let number = say::counted(neighbours.number(n), "neighbour", "neighbours");
            writeln!(
                out,
                "about {number} of each body in each of its block time steps, all others in longer ones"
            )?;
        }
        None if options.stepping() == TimeSteps::Blocks && pays => {
            writeln!(
                out,
                "so many bodies take less time with --integrator hermite4 --neighbours auto"
            )?;
        }
        None => {}
    }
    tell_memory(&machine, &variant, &bodies, physics, out)?;
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
            return Ok(suggest::longest_step(
                &bodies,
                &accelerations,
                backend.external(),
            ));
        }
        let times = options.advice().leapfrogs_a_step(options.method());
        let external = backend.external();
        let chosen = suggest::choose_step(&bodies, &physics, &accelerations, external, times);
        step_why = Some(chosen.why);
        Ok(chosen.value)
    })?;
    let steps = steps(options, start, pace)?;
    if let (Pace::Fixed(dt), None) = (pace, options.until()?) {
        fields.check_times(start, start + steps as f64 * dt)?;
    }
    let chosen = |is_given: bool| if is_given { "" } else { " (chosen)" };
    let kinds = Kinds::of(&bodies, &physics);
    let coincident = match (physics.softening == 0.0, options.systems()?) {
        (true, 1) => bodies.coincident(|body| physics.weight(body.mass) != 0.0),
        _ => None,
    };
    let simulation = Simulation::new(backend, bodies, physics, integrator, pace, start)?;
    let mut simulation =
        simulation.remade_by(move |bodies| machine.backend(&variant, bodies, physics));
    simulation.reach(match (pace, options.until()?) {
        (Pace::Fixed(_), Some(end)) | (Pace::Adaptive { end, .. }, _) => end,
        (Pace::Fixed(dt), None) => start + steps as f64 * dt,
    })?;
    if let Some(encounters) = encounters {
        writeln!(out, "{}", encounters::header(&encounters))?;
        simulation.look_for(encounters)?;
    }
    if let Some(line) = test_particles::header(kinds, simulation.number_of_sources()) {
        writeln!(out, "{line}")?;
    }
    let dt = simulation.clock().dt;
    let (step, whose, until) = match pace {
        Pace::Fixed(_) => (
            "step",
            chosen(options.dt()?.is_some()),
            say::counted(steps, "step", "steps"),
        ),
        Pace::Adaptive { steps, end, .. } => {
            let (step, whose) = match steps {
                TimeSteps::Shared => ("first step", ""),
                TimeSteps::Blocks => ("longest step", chosen(options.dt()?.is_some())),
            };
            (step, whose, format!("to time {}", say::plain(end)))
        }
    };
    writeln!(
        out,
        "{}, {step} {}{whose}, softening {}{}, {until}",
        integrator.name(),
        say::figure(dt),
        say::figure(physics.softening),
        chosen(options.force.softening.is_some())
    )?;
    if let Some(why) = step_why {
        let why = flags::of_run(&why);
        writeln!(out, "{step} {}: {why}", say::figure(dt))?;
    }
    if let Some([i, j]) = coincident {
        writeln!(
            out,
            "bodies {i} and {j} are at one place: without softening, such bodies do not pull each other"
        )?;
    }
    if options.is_of_planets() {
        let name = integrator.name();
        writeln!(out, "{name}: lengths are in au, as those of planets")?;
    }
    if let Some(Chosen { value, why }) = softening {
        writeln!(out, "softening {}: {why}", say::figure(value))?;
    }
    let evaluations = f64::from(integrator.evaluations());
    let number = match pace {
        Pace::Fixed(_) => Some(steps as f64),
        Pace::Adaptive {
            steps: TimeSteps::Shared,
            end,
            ..
        } => Some((end - start) / dt),
        // Told when the first longest step has shown how many bodies take short ones.
        Pace::Adaptive { .. } => None,
    };
    // Many steps of test particles at a time take less than one force after another.
    let number = number.filter(|_| simulation.number_of_sources() == n);
    let seconds = number.map(|steps| steps * evaluations * evaluation);
    if let Some(line) = seconds.and_then(needs_time) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;

    let table = asked.with_choices(&selection, &physics, format, pace, steps);
    let settings = settings::of(&table)?;
    outputs.make_folder()?;
    let _claim = outputs.claim()?;
    outputs.clear(out)?;
    outputs.write_config(&table, &selection)?;

    let plan = plan(options, steps, format)?;
    let recording = Recording::begin(&outputs.folder, plan, &mut simulation, |_| {})?;
    let recording = recording.of_settings(settings);
    let recording = recording.stop_if(options.kept.stop_if.clone());
    drive(
        options.drift(physics.softening, &fields),
        watch,
        simulation,
        recording,
        &outputs,
        out,
    )
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

/// The time that a run takes at the rate of the first forces, where it is long.
fn needs_time(seconds: f64) -> Option<String> {
    const LONG: f64 = 60.0;
    (seconds >= LONG).then(|| {
        let time = say::duration(seconds);
        format!("needs about {time} at the rate of the first step")
    })
}

pub(super) fn selection_line(selection: &Selection, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "kernel {} on {} ({})",
        selection.variant.name, selection.place, selection.why
    )
}

#[cfg(test)]
mod tests {
    use super::{needs_memory, needs_time, unknown};

    #[test]
    fn needs_are_told_where_they_are_large() {
        assert_eq!(needs_time(59.0), None);
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
