//! A run under way: its progress, Ctrl-C, warnings, and the table at the end.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use allpairs::backend::BlockCounts;
use allpairs::binaries::Census;
use allpairs::diagnostics::{self, Conserved, EnergyLook, MASS_SHARES, Sample};
use allpairs::physics::Physics;
use allpairs::recording::{Recording, RecordingError, RunEvent};
use allpairs::simulation::{Followed, Progress, Simulation};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};

use crate::changes;
use crate::drift::{DriftWatch, warn_of_step};
use crate::encounters;
use crate::exit;
use crate::exit::Interrupted;
use crate::info;
use crate::outputs::Outputs;
use crate::progress::{Heart, Lines};
use crate::ranks;
use crate::say;
use crate::signals;
use crate::tables;
use crate::test_particles;
use crate::times::Times;
use crate::watch::{self, Watch};

/// Takes the steps that are left, tells of it, and writes the snapshot and the picture of
/// the last step. With a `watch`, draws the bodies meanwhile.
pub(super) fn drive(
    (drift, times): (DriftWatch, Times),
    watch: Option<Watch>,
    mut simulation: Simulation,
    mut recording: Recording,
    outputs: &Outputs,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let (began, first) = (Instant::now(), simulation.clock().steps);
    let advanced = advance((&drift, &times), watch, &mut simulation, &mut recording);
    let (seconds, done) = (
        began.elapsed().as_secs_f64(),
        simulation.clock().steps - first,
    );
    let rate = say::scientific(simulation.interactions() / seconds);
    writeln!(
        out,
        "{} in {seconds:.2} s, {rate} interactions/s",
        say::counted(done, "step", "steps")
    )?;
    let counts = simulation.block_counts();
    if counts.blocks > 0 {
        writeln!(out, "{}", blocks(&counts, seconds))?;
    }
    if let Some(followed) = simulation.clock().followed {
        writeln!(out, "{}", of_pairs(&followed, simulation.time(), &times))?;
    }
    let (outcome, [warned, warned_of_particles]) = match advanced {
        Ok(advanced) => advanced,
        Err(error) => {
            return Err(stopped(error, simulation.physics(), &times, outputs, out));
        }
    };
    recording.record_orbit(&simulation)?;
    let end = recording.last_sample(&mut simulation)?;
    if !warned && end.has_drifted(drift.bound) {
        drift.warn(&EnergyLook::from(&end), &times);
    }
    let energies = [recording.origin().energy.total(), end.conserved.energy.lost];
    let warning = simulation
        .encounters()
        .and_then(|encounters| encounters::lost_in_bounces(encounters, energies, drift.bound));
    if let Some(warning) = warning {
        say::tell(format_args!("warning: {warning}"));
    }
    let largest = recording.largest_drift();
    writeln!(
        out,
        "{}",
        conservation((&drift, &times), recording.origin(), &end, largest)
    )?;
    if !end.conserved.energy.has_pairs() && end.energy_drift.is_nan() {
        writeln!(
            out,
            "no pair with mass: the energy does not show how well the orbits are computed"
        )?;
    }
    let physics = *simulation.physics();
    if physics.softening == 0.0 {
        let census = Census::of(simulation.bodies()?, &physics);
        if census.hard() > 0 {
            info::pairs_at_end(&census, outputs.units.as_ref(), out)?;
        }
    }
    if let Some(line) = encounters::count(recording.encounters()) {
        writeln!(out, "{line}")?;
    }
    if let Some(line) = changes::count(&recording, simulation.brought().energy) {
        writeln!(out, "{line}")?;
    }
    let clock = simulation.clock();
    if let Some((_, look)) = recording.test_particles(&mut simulation)?
        && !warned_of_particles
    {
        drift.warn_of_particles((clock.steps, clock.time), &look, &times);
    }
    for line in test_particles::lines(&recording, &mut simulation)? {
        writeln!(out, "{line}")?;
    }
    outputs.write(simulation.time(), simulation.bodies()?, out)?;
    if let Some(event) = simulation.stopped_by() {
        writeln!(
            out,
            "stopped after step {}: {event}",
            simulation.clock().steps
        )?;
        return Ok(());
    }
    if let Some(condition) = recording.stopped_by() {
        let (folder, steps) = (say::as_argument(&outputs.folder), simulation.clock().steps);
        // The bodies still meet it when they are looked at next; the time is counted anew.
        let but = match condition.needs_looks() {
            true => format!(", once `stop-if` is taken out of {folder}/run.toml"),
            false => String::new(),
        };
        writeln!(
            out,
            "stopped after step {steps} by \"{condition}\": `allpairs resume {folder}` continues{but}"
        )?;
        return Ok(());
    }
    if outcome.is_break() {
        let folder = say::as_argument(&outputs.folder);
        let steps = simulation.clock().steps;
        writeln!(
            out,
            "stopped after step {steps}: `allpairs resume {folder}` continues"
        )?;
        return Err(Interrupted.into());
    }
    Ok(())
}

/// Times in which pairs were followed apart.
fn of_pairs(followed: &Followed, time: f64, times: &Times) -> String {
    let first = times.text(followed.first);
    if followed.times == 1 && followed.since.is_some() {
        return format!("pairs followed apart from time {first} on, when hard ones had formed");
    }
    let count = say::counted(followed.times, "time", "times");
    let total = times.figure(followed.until(time));
    format!(
        "pairs followed apart while there were hard ones: {count} from time {first} on, for {total} in all"
    )
}

/// Block time steps of a run.
fn blocks(counts: &BlockCounts, seconds: f64) -> String {
    let BlockCounts {
        blocks,
        steps,
        shortest,
        regular,
        neighbours,
        formed,
        broken,
    } = *counts;
    let of_regular = match regular {
        0 => String::new(),
        _ => format!(
            ", with {:.1} neighbours on average; {} regular steps",
            neighbours as f64 / steps as f64,
            say::scientific(regular as f64)
        ),
    };
    let of_groups = match formed + broken {
        0 => String::new(),
        _ => {
            let formed = say::counted(formed, "group", "groups");
            format!("\n{formed} formed, {broken} broken")
        }
    };
    format!(
        "{blocks} blocks of {:.1} bodies on average, {:.1} µs each; {} steps of single bodies, the shortest {}{of_regular}{of_groups}",
        steps as f64 / blocks as f64,
        1e6 * seconds / blocks as f64,
        say::scientific(steps as f64),
        say::scientific(shortest),
    )
}

/// Writes the last good state of a run that could not go on, if that is the error, as its final
/// snapshot.
fn stopped(
    error: anyhow::Error,
    physics: &Physics,
    times: &Times,
    outputs: &Outputs,
    out: &mut impl Write,
) -> anyhow::Error {
    let Some(RecordingError::Stopped(stopped)) = error.downcast_ref() else {
        return error;
    };
    let good = &stopped.good;
    // The picture may fail; the error that the run stopped for is the one to report.
    if let Err(why) = outputs.write(good.time, &good.bodies, out) {
        say::tell(format_args!("warning: {why:#}"));
    }
    let census = Census::of(&good.bodies, physics);
    if let (0.0, Some(pair)) = (physics.softening, census.pairs.first()) {
        let _ = writeln!(
            out,
            "the most bound pair there: {}",
            info::described(pair, outputs.units.as_ref())
        );
    }
    let folder = outputs.folder.display();
    let (time, steps) = (times.text(good.time), stopped.good_steps);
    let _ = writeln!(
        out,
        "{folder} has the last good state, of step {steps}, time {time}: final snapshot and checkpoint"
    );
    error
}

/// Takes the steps, with a progress bar or a picture on a terminal and lines elsewhere, until done or
/// interrupted by Ctrl-C. Also says whether drift was warned of: of the energy, and of test particles.
fn advance(
    (drift, times): (&DriftWatch, &Times),
    mut preview: Option<Watch>,
    simulation: &mut Simulation,
    recording: &mut Recording,
) -> anyhow::Result<(ControlFlow<()>, [bool; 2])> {
    let stop = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&stop);
    let mut asked: Option<Instant> = None;
    signals::on_stop(move || {
        ranks::asked_to_stop();
        handler.store(true, Ordering::Relaxed);
        let first = *asked.get_or_insert_with(Instant::now);
        if first.elapsed() > AGAIN {
            std::process::exit(i32::from(exit::INTERRUPTED)); // asked for twice
        }
    })
    .context("cannot listen for Ctrl-C")?;

    let is_terminal = io::stderr().is_terminal();
    let bar = if preview.is_none() && is_terminal {
        ProgressBar::new(1000)
    } else {
        ProgressBar::hidden()
    };
    let template = "{bar:40} {percent} %, {msg}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template).expect("a valid template"));
    let share_of = recording.share_of(simulation);
    let share = |progress: &Progress| share_of(progress.steps, progress.time);
    let clock = simulation.clock();
    let mut lines = Lines::new(share_of(clock.steps, clock.time));
    if preview.is_some() {
        recording.preview_every(watch::EVERY);
    }
    let (mut warned, mut warned_of_particles) = (false, false);
    let (mut last, mut largest) = (None, recording.largest_drift());
    let mut undrawn: Option<anyhow::Error> = None;
    let under_way = |steps: u64| format!("step {}", steps + 1);
    let mut heart = (!is_terminal).then(|| Heart::beating(under_way(clock.steps)));
    let outcome = recording.run(simulation, |event| {
        if let (Some(heart), RunEvent::Progress(progress)) = (&mut heart, &event) {
            heart.beat(|| under_way(progress.steps));
        }
        let look = match &event {
            RunEvent::Sample(sample) => Some(EnergyLook::from(*sample)),
            RunEvent::Energy(look) => Some(*look),
            _ => None,
        };
        if let Some(look) = look {
            last = Some(look.drift);
            if let Some(drift) = look.judged() {
                largest = diagnostics::largest([largest, drift]);
            }
            if !warned && look.has_drifted(drift.bound) {
                warned = true;
                clear(&mut preview, &mut undrawn);
                bar.suspend(|| drift.warn(&look, times));
            }
        }
        if let RunEvent::TestParticles(steps, time, look) = &event
            && !warned_of_particles
            && look.has_drifted(drift.bound).is_some()
        {
            clear(&mut preview, &mut undrawn);
            let warn = || drift.warn_of_particles((*steps, *time), look, times);
            warned_of_particles = bar.suspend(warn);
        }
        let status = |progress: &Progress| {
            // Within a step nothing is counted yet.
            let rate = match progress.is_within_step {
                true => String::new(),
                false => format!(", {} interactions/s", say::scientific(progress.rate)),
            };
            let drift = last.filter(|drift| !drift.is_nan()).map(|drift| {
                let [now, most] = [drift, largest].map(say::scientific);
                format!(", energy drift {now} (largest {most})")
            });
            let drift = drift.unwrap_or_default();
            format!("step {}{rate}{drift}", progress.steps)
        };
        match event {
            RunEvent::Progress(progress) => {
                bar.set_position((1000.0 * share(&progress)) as u64);
                bar.set_message(status(&progress));
                let share = share(&progress);
                let left = match progress.is_within_step {
                    true if lines.is_due_within_step(share) => {
                        Some(", within the longest step".into())
                    }
                    true => None,
                    false => lines.due(share),
                };
                if !is_terminal && let Some(left) = left {
                    let percent = 100.0 * share;
                    let (status, time) = (status(&progress), times.passing(progress.time));
                    say::tell(format_args!("{percent:.0} %, time {time}, {status}{left}"));
                }
            }
            RunEvent::Preview(progress, bodies) => {
                let percent = 100.0 * share(&progress);
                let status = format!(
                    "{percent:.0} %, time {}, {}",
                    times.passing(progress.time),
                    status(&progress)
                );
                if let (Some(preview), None) = (&mut preview, &undrawn) {
                    undrawn = preview.draw(bodies, &status).err();
                }
            }
            RunEvent::Outrun(outrun) => {
                clear(&mut preview, &mut undrawn);
                bar.suspend(|| warn_of_step(&outrun, times));
            }
            RunEvent::Sample(_)
            | RunEvent::Energy(_)
            | RunEvent::TestParticles(..)
            | RunEvent::Wrote(_) => {}
        }
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    bar.finish_and_clear();
    let outcome = outcome?;
    if let (Some(preview), None) = (&mut preview, &undrawn) {
        let clock = simulation.clock();
        let status = format!("step {}, time {}", clock.steps, times.passing(clock.time));
        undrawn = preview.draw(simulation.bodies()?, &status).err();
    }
    if let Some(why) = undrawn {
        say::tell(format_args!(
            "warning: the picture could not be drawn: {why:#}"
        ));
    }
    Ok((outcome, [warned, warned_of_particles]))
}

/// Takes the picture away before a warning, if there is one, or keeps the reason why it could not be drawn.
fn clear(preview: &mut Option<Watch>, undrawn: &mut Option<anyhow::Error>) {
    if let (Some(preview), None) = (preview, &undrawn) {
        *undrawn = preview.clear().err().map(anyhow::Error::from);
    }
}

/// Time after a request to stop from which on another one ends the program at once. Some send two together, as `timeout` does.
const AGAIN: Duration = Duration::from_secs(1);

/// Decimals of the quantities in the table.
const DECIMALS: usize = 8;
/// Share of the kinetic energy from which on the motion as a whole has a row.
const SEEN: f64 = 1e-3;
/// Row of the energy.
const ENERGY: &str = "energy";

/// The conserved quantities at both ends, and their drift; of the energy also the `largest` on the way.
fn conservation(
    (watch, times): (&DriftWatch, &Times),
    before: &Conserved,
    end: &Sample,
    largest: f64,
) -> comfy_table::Table {
    let after = &end.conserved;
    let drift = after.drift_since(before);
    let mut table = tables::table(&["", "#start", "#end", "#drift", "#largest drift"]);
    // One notation for all, so that they can be compared at a glance. Momenta and the centre of mass
    // do not decide on it: what they should be is often nothing.
    let scales = [before, after].map(|c| [c.time, c.energy.kinetic, c.energy.potential]);
    let plain = (scales.iter().flatten().chain(&end.lagrangian_radii))
        .all(|scale| say::is_plain(*scale, DECIMALS));
    let number = |x: f64| match plain {
        true => format!("{x:.DECIMALS$}"),
        false => format!("{x:.DECIMALS$e}"),
    };
    let mut row = |name: &str, quantity: &dyn Fn(&Conserved) -> f64, drift: Option<f64>| {
        let is_energy = name == ENERGY;
        let drift = match drift {
            Some(_) if is_energy && !watch.is_conserved => "not conserved".into(),
            Some(_) if !is_energy && watch.in_fields => "not conserved".into(),
            Some(drift) if drift.is_nan() && !after.energy.has_pairs() => "no massive pair".into(),
            drift => drift.map_or_else(String::new, say::scientific),
        };
        let largest = match is_energy && watch.is_conserved && after.energy.has_pairs() {
            true => say::scientific(largest),
            false => String::new(),
        };
        table.add_row([
            name.into(),
            number(quantity(before)),
            number(quantity(after)),
            drift,
            largest,
        ]);
    };
    let norm = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    row(&times.label(), &|c| times.in_table(c.time), None);
    row(ENERGY, &|c| c.energy.total(), Some(drift.energy));
    row("kinetic energy", &|c| c.energy.kinetic, None);
    let moves = |c: &Conserved| c.kinetic_of_whole > SEEN * c.energy.kinetic;
    if moves(before) || moves(after) {
        row("  of the centre of mass", &|c| c.kinetic_of_whole, None);
    }
    row("potential energy", &|c| c.energy.potential, None);
    if watch.in_fields {
        row("energy in fields", &|c| c.energy.external, None);
    }
    if after.energy.lost != 0.0 {
        row("energy lost in encounters", &|c| c.energy.lost, None);
    }
    if after.energy.brought != 0.0 {
        row("energy brought by changes", &|c| c.energy.brought, None);
    }
    row("virial ratio 2K/|U|", &|c| c.virial_ratio(), None);
    row("momentum", &|c| norm(c.momentum), Some(drift.momentum));
    row(
        "angular momentum",
        &|c| norm(c.angular_momentum),
        Some(drift.angular_momentum),
    );
    let mut at_end = |name: String, value: f64| {
        table.add_row([name, String::new(), number(value)]);
    };
    at_end("centre of mass, distance".into(), norm(end.centre_of_mass));
    for (share, radius) in MASS_SHARES.into_iter().zip(end.lagrangian_radii) {
        at_end(
            format!("radius of {:.0} % of the mass", 100.0 * share),
            radius,
        );
    }
    table
}
