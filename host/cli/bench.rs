//! `allpairs bench`.

use std::io::Write;
use std::path::PathBuf;

use allpairs::io::Overwrite;
use allpairs::machine::Machine;
use allpairs_lab::bench::{self, Cases, Outcome, Protocol, Timed, compare::compare};
use allpairs_lab::bench_record::{BenchRecord, BenchRow};
use allpairs_lab::studies::{Start, Statistic};
use anyhow::ensure;

use crate::bench_rows::{bodies, explain, failed, gflops, of_limit};
use crate::bench_study::{self, Ladder};
use crate::bodies;
use crate::choices::DeviceOption;
use crate::exit::ChecksFailed;
use crate::say;
use crate::tables;
use crate::verify;

/// Numbers of bodies where nothing else is said.
const BODIES: [u32; 2] = [16_384, 65_536];
/// Timed repetitions where nothing else is said.
const REPETITIONS: u32 = 7;

/// Kernels to time, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    place: DeviceOption,
    /// Only these kernels, separated by commas; all that run there where none is given.
    #[arg(long, value_delimiter = ',', conflicts_with = "study")]
    kernel: Vec<String>,
    /// The ladder of a study (venus, gtx1060, galaxies, gtx980 or ecl) as the study ran it: its
    /// bodies, steps, repetitions and statistic, beside the CPU.
    #[arg(long)]
    study: Option<String>,
    /// Numbers of bodies, separated by commas [default: 16384,65536, or the study's]
    #[arg(long, value_delimiter = ',', value_parser = bodies::number_of_bodies)]
    bodies: Vec<u32>,
    /// Bodies of one mass, for which some kernels need fewer instructions; otherwise their masses
    /// differ.
    #[arg(long, conflicts_with = "study")]
    equal_masses: bool,
    /// Bodies of Plummer's model of a star cluster, of radius 1, instead of a cube of side 2.
    #[arg(long, conflicts_with_all = ["study", "equal_masses"])]
    plummer: bool,
    /// Softening length ε, in the unit of the positions.
    #[arg(long, value_name = "LENGTH", conflicts_with = "study", default_value_t = bench::SOFTENING)]
    softening: f64,
    /// Timed repetitions; their median, or the study's statistic, and spread are reported
    /// [default: 7, or the study's]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: Option<u32>,
    /// Seconds that a kernel may take at one number of bodies. DeviceOption it would take longer, there
    /// are fewer repetitions, then fewer steps, then fewer bodies, and its row says so.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    budget: f64,
    /// Write the figures as JSON, which `allpairs plot bench` draws.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the figures as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Compare with an earlier --json, and say what became slower by more than the spread.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Exit with 1 where something became slower, or wrong, since the baseline.
    #[arg(long, requires = "baseline")]
    fail_on_regression: bool,
    /// Replace what is there.
    #[arg(long)]
    overwrite: bool,
}

/// Verifies and times each kernel: what is wrong is shown as failed, and has no time.
pub(super) fn bench(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let files = [&options.json, &options.csv];
    for path in files.into_iter().flatten() {
        // Said before minutes of work rather than after them.
        ensure!(
            options.overwrite || !path.exists(),
            "{} is there already: give another name, or --overwrite",
            path.display()
        );
    }
    ensure!(
        options.budget > 0.0 && options.budget.is_finite(),
        "`--budget` must be > 0 seconds, got {}",
        options.budget
    );
    bodies::check_memory(options.bodies.iter().copied().max().unwrap_or(0).into())?;
    let baseline = options.baseline.as_deref().map(BenchRecord::read);
    let baseline = baseline.transpose()?;
    let record = match &options.study {
        Some(study) => bench_study::bench(
            &Ladder {
                study,
                device: options.place.device,
                bodies: &options.bodies,
                repetitions: options.repetitions,
                budget: options.budget,
            },
            out,
        )?,
        None => kernels(options, out)?,
    };
    let overwrite = Overwrite::from(options.overwrite);
    if let Some(path) = &options.json {
        record.write_json(path, overwrite)?;
        writeln!(out, "wrote {}", path.display())?;
    }
    if let Some(path) = &options.csv {
        record.write_csv(path, overwrite)?;
        writeln!(out, "wrote {}", path.display())?;
    }
    let slower = match &baseline {
        Some(baseline) => !against(baseline, &record, out)?,
        None => false,
    };
    let unexpected = record.failures.iter().any(|failure| !failure.expected);
    if unexpected || (slower && options.fail_on_regression) {
        return Err(ChecksFailed.into());
    }
    Ok(())
}

/// The force alone, of these kernels or of all.
fn kernels(options: &Options, out: &mut impl Write) -> anyhow::Result<BenchRecord> {
    let place = verify::place(&options.place, &options.kernel)?;
    ensure!(
        options.softening >= 0.0 && options.softening.is_finite(),
        "`--softening` must be ≥ 0 and finite, got {}",
        options.softening
    );
    let mut table = tables::table(&[
        "kernel",
        "#bodies",
        "#ms",
        "#spread",
        "#interactions/s",
        "#GFLOP/s",
        "#of limit",
        "#rms error",
    ]);
    let protocol = Protocol {
        timed: Timed::Force,
        repetitions: options.repetitions.unwrap_or(REPETITIONS),
        statistic: Statistic::Median,
        budget: options.budget,
    };
    let machine = Machine::new(place);
    let variants = verify::chosen(&options.kernel, machine.place())?;
    let start = match (options.plummer, options.equal_masses) {
        (true, _) => Start::Plummer,
        (false, true) => Start::CubeOfEqualMasses,
        (false, false) => Start::Cube,
    };
    let mut cases = Cases::new(start).softened_by(options.softening);
    writeln!(
        out,
        "On {}; force only, bodies already there ({}):",
        machine.place(),
        cases.description()
    )?;
    let mut outcomes = vec![];
    let sizes: &[u32] = match options.bodies.as_slice() {
        [] => &BODIES,
        asked => asked,
    };
    for &n in sizes {
        for &variant in &variants {
            let law = variant.laws().next().expect("every kernel has a law");
            let asked = (n as usize, law);
            let outcome = bench::measure(&machine, variant, &mut cases, asked, &protocol)?;
            match &outcome {
                Outcome::Timed(row) => table.add_row(figures(row)),
                Outcome::Wrong(failure) => table.add_row([
                    failure.kernel.clone(),
                    failure.bodies.to_string(),
                    failed(failure.expected, &failure.why),
                ]),
            };
            outcomes.push(outcome);
        }
    }
    writeln!(out, "{table}")?;
    let mut record = bench::record(machine.place(), outcomes);
    record.start = Some(cases.description());
    explain(&record, out)?;
    for why in verify::skipped(&options.kernel, machine.place()) {
        writeln!(out, "not run: {why}")?;
    }
    Ok(record)
}

/// Says what became of a record's kernels since an earlier one; whether nothing got worse.
fn against(before: &BenchRecord, now: &BenchRecord, out: &mut impl Write) -> anyhow::Result<bool> {
    let found = compare(before, now);
    if before.device != now.device {
        writeln!(
            out,
            "note: the baseline was made on another device, {}",
            before.device
        )?;
    }
    if before.start != now.start && before.start.is_some() {
        writeln!(
            out,
            "note: the baseline was made with other bodies, {}",
            before.start.as_deref().unwrap_or_default()
        )?;
    }
    let mut table = tables::table(&["kernel", "#bodies", "#ms before", "#ms now", "#change", ""]);
    for change in &found.changes {
        let verdict = match (change.is_slower(), change.is_faster()) {
            (true, _) => "SLOWER",
            (_, true) => "faster",
            _ => continue,
        };
        table.add_row([
            change.kernel.clone(),
            change.bodies.to_string(),
            format!("{:.4}", 1e3 * change.before),
            format!("{:.4}", 1e3 * change.now),
            format!("{:+.1} %", 100.0 * (change.now / change.before - 1.0)),
            verdict.to_owned(),
        ]);
    }
    let differ = table.row_count();
    let within = found.changes.len() - differ;
    writeln!(
        out,
        "Beside the baseline: {differ} times differ by more than the spread, {within} do not."
    )?;
    if differ > 0 {
        writeln!(out, "{table}")?;
    }
    for (kernel, bodies) in &found.broken {
        writeln!(out, "{kernel} at {bodies} bodies was right, and is WRONG")?;
    }
    for (kernel, bodies) in &found.only_now {
        writeln!(out, "{kernel} at {bodies} bodies is not in the baseline")?;
    }
    Ok(found.is_sound())
}

fn figures(row: &BenchRow) -> [String; 8] {
    [
        row.kernel.clone(),
        bodies(row),
        format!("{:.4}", 1e3 * row.seconds),
        format!("{:.1} %", 100.0 * row.spread()),
        say::scientific(row.rate),
        gflops(row),
        of_limit(row),
        say::scientific(row.error),
    ]
}
