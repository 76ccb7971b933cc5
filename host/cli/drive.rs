//! A run under way: the progress bar, Ctrl-C, warnings, and the table at the end.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use allpairs::diagnostics::{Conserved, MASS_SHARES, Sample};
use allpairs::recording::{Event, Recording};
use allpairs::simulation::Simulation;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};

use super::Interrupted;
use super::outputs::Outputs;
use super::watch::{self, Watch};

/// Takes the steps that are left, tells of it, and writes the snapshot and the picture of
/// the last step. With a `watch`, draws the bodies meanwhile.
pub(super) fn drive(
    max_drift: f64,
    watch: Option<Watch>,
    mut simulation: Simulation,
    mut recording: Recording,
    outputs: &Outputs,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let (began, first) = (Instant::now(), simulation.clock().steps);
    let (outcome, warned) = advance(max_drift, watch, &mut simulation, &mut recording)?;
    let (seconds, done) = (
        began.elapsed().as_secs_f64(),
        simulation.clock().steps - first,
    );
    let rate = super::scientific(simulation.interactions() / seconds);
    writeln!(
        out,
        "{} in {seconds:.2} s, {rate} interactions/s",
        super::counted(done, "step", "steps")
    )?;
    let end = simulation.sample(recording.origin())?;
    if !warned && end.has_drifted(max_drift) {
        warn_of_drift(&end, max_drift);
    }
    writeln!(out, "{}", conservation(recording.origin(), &end))?;
    if !end.conserved.energy.has_pairs() && end.energy_drift.is_nan() {
        writeln!(
            out,
            "no pair with mass: the energy does not show how well the orbits are computed"
        )?;
    }
    outputs.write(simulation.time(), simulation.bodies()?, out)?;
    if outcome.is_break() {
        let folder = outputs.folder.display();
        let steps = simulation.clock().steps;
        writeln!(
            out,
            "stopped after step {steps}: `allpairs resume {folder}` continues"
        )?;
        return Err(Interrupted.into());
    }
    Ok(())
}

/// Takes the steps, with a progress bar or a picture on a terminal, until done or interrupted by
/// Ctrl-C. Also says whether drift was warned of.
fn advance(
    max_drift: f64,
    mut preview: Option<Watch>,
    simulation: &mut Simulation,
    recording: &mut Recording,
) -> anyhow::Result<(ControlFlow<()>, bool)> {
    let stop = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if handler.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(super::code::INTERRUPTED)); // asked for twice
        }
    })
    .context("cannot listen for Ctrl-C")?;

    let bar = if preview.is_none() && io::stderr().is_terminal() {
        ProgressBar::new(1000)
    } else {
        ProgressBar::hidden()
    };
    let template = "{bar:40} {percent} %, {msg}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template).expect("a valid template"));
    let share = recording.share_of(simulation);
    if preview.is_some() {
        recording.preview_every(watch::EVERY);
    }
    let mut warned = false;
    let mut undrawn: Option<anyhow::Error> = None;
    let outcome = recording.run(simulation, |event| {
        match event {
            Event::Progress(progress) => {
                bar.set_position((1000.0 * share(&progress)) as u64);
                let rate = super::scientific(progress.rate);
                bar.set_message(format!("step {}, {rate} interactions/s", progress.steps));
            }
            Event::Sample(sample) if !warned && sample.has_drifted(max_drift) => {
                warned = true;
                if let Some(preview) = &mut preview {
                    undrawn = undrawn
                        .take()
                        .or_else(|| Some(preview.clear().err()?.into()));
                }
                bar.suspend(|| warn_of_drift(sample, max_drift));
            }
            Event::Preview(progress, bodies) => {
                let percent = 100.0 * share(&progress);
                let rate = super::scientific(progress.rate);
                let status = format!(
                    "{percent:.0} %, step {}, time {:.4}, {rate} interactions/s",
                    progress.steps, progress.time
                );
                if let (Some(preview), None) = (&mut preview, &undrawn) {
                    undrawn = preview.draw(bodies, &status).err();
                }
            }
            Event::Sample(_) | Event::Wrote(_) => {}
        }
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    bar.finish_and_clear();
    if let (Some(preview), None) = (&mut preview, &undrawn) {
        let clock = simulation.clock();
        let status = format!("step {}, time {:.4}", clock.steps, clock.time);
        undrawn = preview.draw(simulation.bodies()?, &status).err();
    }
    if let Some(why) = undrawn {
        eprintln!("allpairs: warning: the picture could not be drawn: {why:#}");
    }
    Ok((outcome, warned))
}

fn warn_of_drift(sample: &Sample, bound: f64) {
    eprintln!(
        "allpairs: warning: at step {} the energy has drifted by {}, more than --max-drift {bound}: \
         a smaller --dt or a larger --softening would help",
        sample.steps,
        super::scientific(sample.energy_drift)
    );
}

/// Decimals of the quantities in the table.
const DECIMALS: usize = 8;

fn conservation(before: &Conserved, end: &Sample) -> comfy_table::Table {
    let after = &end.conserved;
    let drift = after.drift_since(before);
    let mut table = super::table(&["", "#start", "#end", "#drift"]);
    // One notation for all, so that they can be compared at a glance. Momenta and the centre of mass
    // do not decide on it: what they should be is often nothing.
    let scales = [before, after].map(|c| [c.time, c.energy.kinetic, c.energy.potential]);
    let plain = (scales.iter().flatten().chain(&end.lagrangian_radii))
        .all(|scale| super::is_plain(*scale, DECIMALS));
    let number = |x: f64| match plain {
        true => format!("{x:.DECIMALS$}"),
        false => format!("{x:.DECIMALS$e}"),
    };
    let mut row = |name: &str, quantity: &dyn Fn(&Conserved) -> f64, drift: Option<f64>| {
        let drift = match drift {
            Some(drift) if drift.is_nan() && !after.energy.has_pairs() => "no massive pair".into(),
            drift => drift.map_or_else(String::new, super::scientific),
        };
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
    let mut at_end = |name: String, value: f64| {
        table.add_row([name, String::new(), number(value), String::new()]);
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
