//! `allpairs bench --study`.

use std::io::Write;

use allpairs::selection::{DeviceChoice, Request, select};
use allpairs_lab::bench::study::{PARALLEL, SERIAL, Speedups, StudyRun};
use allpairs_lab::bench::{self, Outcome};
use allpairs_lab::bench_record::{BenchRecord, BenchRow};
use allpairs_lab::studies::{self, Study};
use anyhow::ensure;

use crate::bench_rows::{bodies, explain, failed, gflops, of_limit};
use crate::say;
use crate::tables;

/// The ladder to time, and what differs from how the study did.
pub(super) struct Ladder<'a> {
    /// Name of the study.
    pub(super) study: &'a str,
    pub(super) device: DeviceChoice,
    /// Numbers of bodies; the study's if there are none.
    pub(super) bodies: &'a [u32],
    /// As many as the study's if there is none.
    pub(super) repetitions: Option<u32>,
    /// Seconds that a rung may take at one number of bodies.
    pub(super) budget: f64,
}

/// Runs a study's ladder at each of its numbers of bodies.
pub(super) fn bench(ladder: &Ladder, out: &mut impl Write) -> anyhow::Result<BenchRecord> {
    let name = ladder.study;
    let study = studies::find(name)?;
    let place = select(&Request::new(0).on(ladder.device))?.place;
    let mut run = StudyRun::new(study, place.clone(), ladder.budget);
    if let Some(repetitions) = ladder.repetitions {
        run.repeat(repetitions);
    }
    let (runners, refused) = run.runners();
    ensure!(!runners.is_empty(), "no rung of {name} can run on {place}");
    let measured = &study.measured;
    writeln!(
        out,
        "{name}: {}; on {place}, law {}, {}, {} of {} times {} steps ({}):",
        study.summary,
        study.law,
        study.integrator.name(),
        measured.statistic.name(),
        ladder.repetitions.unwrap_or(measured.repetitions),
        measured.steps,
        measured.note,
    )?;
    let sizes: &[u32] = match ladder.bodies {
        [] => measured.bodies,
        asked => asked,
    };
    let mut outcomes = vec![];
    for &n in sizes {
        let of_n = run.measure(&runners, n as usize, |_| {})?;
        writeln!(out, "\nN = {n}, a step:\n{}", table(study, &of_n))?;
        out.flush()?;
        outcomes.extend(of_n);
    }
    let record = bench::record(&place, outcomes);
    writeln!(
        out,
        "Speedups are ratios of interactions/s: over the rung before, the first rung, one thread \
         of the CPU\n({SERIAL}) and all of them ({PARALLEL}), with vector instructions. \"Bus\" is \
         the part of the time in which\nbodies crossed it; warming up and the first copy are in \
         no time."
    )?;
    explain(&record, out)?;
    for why in refused {
        writeln!(out, "not run: {why}")?;
    }
    Ok(record)
}

fn table(study: &Study, outcomes: &[Outcome]) -> comfy_table::Table {
    let rows: Vec<BenchRow> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Timed(row) => Some(row.clone()),
            Outcome::Wrong(_) => None,
        })
        .collect();
    let mut table = tables::table(&[
        "rung",
        "#bodies",
        "#ms",
        "#bus",
        "#spread",
        "#interactions/s",
        "#GFLOP/s",
        "#of limit",
        "#× before",
        "#× first",
        "#× serial",
        "#× CPU",
        "#rms error",
        "reported",
    ]);
    let reported = |kernel: &str| {
        let rung = study.rungs.iter().find(|rung| rung.variant.name == kernel);
        rung.map_or("", |rung| rung.reported)
    };
    let name = |kernel: &str| kernel.rsplit('/').next().unwrap_or_default().to_owned();
    for outcome in outcomes {
        match outcome {
            Outcome::Timed(row) => {
                let speedups = Speedups::of(row, study, &rows);
                let ratio = |ratio: Option<f64>| {
                    ratio.map_or_else(String::new, |ratio| match ratio {
                        100.0.. => format!("{ratio:.0}"),
                        10.0.. => format!("{ratio:.1}"),
                        0.1.. => format!("{ratio:.2}"),
                        _ => say::scientific(ratio),
                    })
                };
                let bus = |seconds: f64| format!("{:.0} %", 100.0 * seconds / row.seconds);
                table.add_row([
                    name(&row.kernel),
                    bodies(row),
                    format!("{:.4}", 1e3 * row.seconds),
                    row.transfers.map_or_else(String::new, bus),
                    format!("{:.1} %", 100.0 * row.spread()),
                    say::scientific(row.rate),
                    gflops(row),
                    of_limit(row),
                    ratio(speedups.predecessor),
                    ratio(speedups.first),
                    ratio(speedups.serial),
                    ratio(speedups.parallel),
                    say::scientific(row.error),
                    reported(&row.kernel).to_owned(),
                ]);
            }
            Outcome::Wrong(failure) => {
                let mut cells = vec![String::new(); 14];
                cells[0] = name(&failure.kernel);
                cells[1] = failure.bodies.to_string();
                cells[13] = format!(
                    "{}; {}",
                    failed(failure.expected, &failure.why),
                    reported(&failure.kernel)
                );
                table.add_row(cells);
            }
        }
    }
    table
}
