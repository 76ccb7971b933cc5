//! Lines that a run prints before its first step: what it is, and what was chosen, with the reasons.

use std::io::{self, Write};

use allpairs::backend::Neighbours;
use allpairs::bodies::Bodies;
use allpairs::fields::ExternalField;
use allpairs::integrator::{Integrator, Pace, TimeSteps};
use allpairs::io::Format;
use allpairs::plan::neighbours::RegularForces;
use allpairs::plan::regular::RegularPlan;
use allpairs::run::Run;
use allpairs::selection::Selection;
use allpairs::settings::Setting;
use allpairs::simulation::Simulation;
use allpairs::suggest;
use gpu_kernels::schedule::block_steps::DigitsName;

use crate::encounters;
use crate::many;
use crate::options::Options;
use crate::own_frame;
use crate::say;
use crate::times::Times;

/// Bodies, units, kernel, block time steps, fields and digits of a run, before its device is opened.
pub(super) fn of_run(
    run: &Run,
    options: &Options,
    bodies: &Bodies,
    format: Format,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let (spec, n) = (&run.spec, bodies.len());
    writeln!(
        out,
        "{}: {} of total mass {}, at time {}{}",
        options.input.display(),
        say::counted(n, "body", "bodies"),
        say::fixed(bodies.total_mass(), 6),
        options.times(spec).text(spec.start),
        many::of_how_many(spec.systems, n)?
    )?;
    let is_made = options.generator().is_some();
    let lines = [
        options.force.units_line(&run.physics, is_made),
        (spec.units.is_some() && !format.records_units()).then(|| {
            let format = format.summary();
            format!("snapshots do not record these units: {format} cannot")
        }),
        run.remark
            .as_ref()
            .map(|why| format!("{why}; `allpairs tune` finds new ones, --no-cache does not look")),
    ];
    lines
        .into_iter()
        .flatten()
        .try_for_each(|line| writeln!(out, "{line}"))?;
    selection(&run.selection, out)?;
    let fields = &spec.fields;
    let lines = [
        block_steps(run, options.neighbours, n),
        fields
            .orbit()
            .map(|orbit| format!("orbit {orbit}: bodies are in the frame that falls with it")),
        own_frame::remark(&options.input, spec.start, fields),
        (!fields.is_empty() && !fields.conserve_energy()).then(|| {
            "a field changes with time: the energy is not conserved, and its drift not watched"
                .into()
        }),
        of_predicted_velocities(run),
        digits(run),
        neighbours(run, n),
        (run.choice(Setting::Groups))
            .map(|groups| format!("groups {}: {}", groups.value, groups.why)),
    ];
    let [of_blocks, others @ ..] = lines;
    let of_fields = fields.iter().map(|field| format!("field {field}"));
    let lines = of_blocks.into_iter().chain(of_fields);
    for line in lines.chain(others.into_iter().flatten()) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Kernel and place of a run, with the reason.
pub(super) fn selection(selection: &Selection, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "kernel {} on {} ({})",
        selection.variant.name, selection.place, selection.why
    )
}

/// Line about the settings of block time steps that were chosen, if any were. A given number of neighbours is printed anyway.
fn block_steps(run: &Run, given: Option<Neighbours>, bodies: usize) -> Option<String> {
    let chosen =
        [Setting::Integrator, Setting::Eta, Setting::Neighbours].map(|setting| run.choice(setting));
    if run.spec.time_steps() != TimeSteps::Blocks || chosen.iter().all(Option::is_none) {
        return None;
    }
    let neighbours = (run.spec.neighbours)
        .filter(|_| !matches!(given, Some(Neighbours::Number(_))))
        .map(|neighbours| format!(" and about {} neighbours", neighbours.number(bodies)));
    let why = [Setting::BlockSteps, Setting::Integrator].map(|setting| run.choice(setting));
    let why = why.into_iter().flatten().next();
    let why = why.map(|choice| format!(": {}", choice.why));
    Some(format!(
        "block time steps by {} with --eta {}{} (chosen{})",
        run.integrator.name(),
        run.spec.eta.map(say::plain).unwrap_or_default(),
        neighbours.unwrap_or_default(),
        why.unwrap_or_default()
    ))
}

/// Order of block time steps in fields that depend on velocities, where these are velocities that were predicted.
fn of_predicted_velocities(run: &Run) -> Option<String> {
    let fields = &run.spec.fields;
    let depends = fields.iter().any(ExternalField::needs_velocity);
    let is_predicted = !run.selection.place.is_cpu() || fields.have_relativity();
    let is_fourth = run.integrator == Integrator::Hermite4;
    (depends && is_predicted && is_fourth && run.spec.time_steps() == TimeSteps::Blocks).then(|| {
        "in fields that depend on velocities, block time steps of hermite4 take predicted ones, and are of third order; \
         hermite6 predicts better"
            .to_owned()
    })
}

/// Digits of pairs in block time steps on a device.
fn digits(run: &Run) -> Option<String> {
    let digits = run.machine().block_digits()?;
    if run.selection.place.is_cpu() {
        return None;
    }
    let pairs = match digits {
        _ if run.spec.neighbours.is_some() && run.spec.groups != Some(true) => {
            "f32, differences of neighbours' positions in f64"
        }
        DigitsName::Single => "f32",
        DigitsName::Mixed => "f32, positions in two",
        DigitsName::Double => "f64",
    };
    Some(format!("pairs in {pairs}; state, steps and sums in f64"))
}

/// Number of neighbours of a neighbour scheme, or the advice to use one.
fn neighbours(run: &Run, bodies: usize) -> Option<String> {
    if let Some(neighbours) = run.spec.neighbours {
        let number = say::counted(neighbours.number(bodies), "neighbour", "neighbours");
        let far = match run.machine().regular_forces(bodies) {
            Some(RegularForces::ByHost) => {
                let numbers = match run.selection.place.has(RegularPlan::tensor()) {
                    true => "halves on tensor cores",
                    false => "f32",
                };
                format!(", far pairs in {numbers} and with jerks of 8 or 32 bodies together")
            }
            Some(RegularForces::Swept) | None => String::new(),
        };
        return Some(format!(
            "about {number} of each body in each of its block time steps, all others in longer ones{far}"
        ));
    }
    let in_f64 = run.machine().block_digits() == Some(DigitsName::Double);
    let has_scheme = run.selection.place.is_cpu() || (!in_f64 && run.spec.groups != Some(true));
    let pays = has_scheme && suggest::neighbours_pay(bodies);
    (run.spec.time_steps() == TimeSteps::Blocks && pays).then(|| {
        "so many bodies take less time with --integrator hermite4 --neighbours auto".to_owned()
    })
}

/// Integrator, step, softening and end of a run that is about to take its first step, with the reasons.
pub(super) fn of_steps(
    run: &Run,
    simulation: &Simulation,
    (steps, times, options): (u64, &Times, &Options),
    out: &mut impl Write,
) -> anyhow::Result<()> {
    if let Some(encounters) = simulation.encounters() {
        writeln!(
            out,
            "{}",
            encounters::header(encounters, run.spec.units.as_ref())
        )?;
    }
    let chosen = |setting| run.choice(setting).map_or("", |_| " (chosen)");
    let of_dt = chosen(Setting::Dt);
    let (step, of_step, until) = match simulation.pace() {
        Pace::Fixed(_) => ("step", of_dt, say::counted(steps, "step", "steps")),
        Pace::Adaptive { steps, end, .. } => {
            let (step, of_step) = match steps {
                TimeSteps::Shared => ("first step", ""),
                TimeSteps::Blocks => ("longest step", of_dt),
            };
            (step, of_step, format!("to time {}", times.text(end)))
        }
    };
    let (integrator, softening) = (run.integrator.name(), run.physics.softening);
    let dt = simulation.clock().dt;
    let dt = options.times_of_steps(dt).figure(dt);
    writeln!(
        out,
        "{integrator}, {step} {dt}{of_step}, softening {}{}, {until}",
        say::length(softening, run.spec.units.as_ref()),
        chosen(Setting::Softening)
    )?;
    let why = |setting| Some(&run.choice(setting)?.why).filter(|why| !why.is_empty());
    if let Some(why) = why(Setting::Dt) {
        writeln!(out, "{step} {dt}: {}", why)?;
    }
    if let Some(why) =
        why(Setting::Integrator).filter(|_| run.spec.time_steps() == TimeSteps::Shared)
    {
        writeln!(out, "{integrator}: {why}")?;
    }
    if let Some(why) = why(Setting::Softening) {
        let softening = say::length(softening, run.spec.units.as_ref());
        writeln!(out, "softening {softening}: {why}")?;
    }
    Ok(())
}

/// Number of steps of a run, if it can be told before the run: of block time steps it cannot.
pub(super) fn number_of_steps(run: &Run, simulation: &Simulation, steps: u64) -> Option<f64> {
    match simulation.pace() {
        Pace::Fixed(_) => Some(steps as f64),
        Pace::Adaptive {
            steps: TimeSteps::Shared,
            end,
            ..
        } => Some((end - run.spec.start) / simulation.clock().dt),
        Pace::Adaptive { .. } => None,
    }
}
