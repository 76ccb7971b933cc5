//! `allpairs bench`.

use std::io::Write;
use std::path::PathBuf;

use allpairs::bench::{self, Outcome};
use allpairs::bench_record::BenchRow;
use allpairs::io::Overwrite;
use allpairs::selection::Machine;
use allpairs::verify::{Case, TwoSteps, large_case, large_case_of_equal_masses};
use gpu_kernels::interaction::FLOPS_PER_INTERACTION;

use super::{ChecksFailed, Where};

/// What to time.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    place: Where,
    /// Only these kernels, separated by commas.
    #[arg(long, value_delimiter = ',')]
    kernel: Vec<String>,
    /// Numbers of bodies, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "16384,65536",
        value_parser = clap::value_parser!(u32).range(1..))]
    bodies: Vec<u32>,
    /// Bodies of one mass, for which some kernels need fewer instructions; otherwise their masses
    /// differ.
    #[arg(long)]
    equal_masses: bool,
    /// Timed repetitions; their median and spread are reported.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Write the figures as JSON, which `allpairs plot bench` draws.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the figures as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Replace what is there.
    #[arg(long)]
    overwrite: bool,
}

/// Verifies and times each kernel: what is wrong is shown as failed, and has no time.
pub(super) fn bench(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let files = [&options.json, &options.csv];
    for path in files.into_iter().flatten() {
        // Said before minutes of work rather than after them.
        anyhow::ensure!(
            options.overwrite || !path.exists(),
            "{} is there already: give another name, or --overwrite",
            path.display()
        );
    }
    let place = super::verify::place(&options.place, &options.kernel)?;
    writeln!(out, "On {place}; force only, bodies already there:")?;
    let mut table = super::table(&[
        "kernel",
        "#bodies",
        "#ms",
        "#spread",
        "#interactions/s",
        "#GFLOP/s",
        "#of limit",
        "#rms error",
    ]);
    let machine = Machine::new(place);
    let variants = super::verify::chosen(&options.kernel, machine.place())?;
    let mut outcomes = vec![];
    for &n in &options.bodies {
        let mut cases: Vec<(Case, TwoSteps)> = vec![];
        for &variant in &variants {
            let fits = |(case, _): &(Case, _)| variant.computes(case.physics.law);
            let known = cases.iter().position(fits).unwrap_or_else(|| {
                let law = variant.laws().next().expect("every kernel has a law");
                cases.push(if options.equal_masses {
                    large_case_of_equal_masses(n as usize, law)
                } else {
                    large_case(n as usize, law)
                });
                cases.len() - 1
            });
            let (case, steps) = &cases[known];
            let outcome = bench::measure(&machine, variant, case, steps, options.repetitions)?;
            match &outcome {
                Outcome::Timed(row) => table.add_row(figures(row)),
                Outcome::Wrong(failure) => table.add_row([
                    failure.kernel.clone(),
                    failure.bodies.to_string(),
                    format!("FAILED: {}", failure.why),
                ]),
            };
            outcomes.push(outcome);
        }
    }
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "GFLOP/s count {FLOPS_PER_INTERACTION} operations an interaction. The limit is that of a \
         kernel that computes each\npair for one body; `allpairs devices` explains it."
    )?;
    let record = bench::record(machine.place(), outcomes);
    let overwrite = if options.overwrite {
        Overwrite::Allow
    } else {
        Overwrite::Refuse
    };
    if let Some(path) = &options.json {
        record.write_json(path, overwrite)?;
        writeln!(out, "wrote {}", path.display())?;
    }
    if let Some(path) = &options.csv {
        record.write_csv(path, overwrite)?;
        writeln!(out, "wrote {}", path.display())?;
    }
    if record.failures.is_empty() {
        Ok(())
    } else {
        Err(ChecksFailed.into())
    }
}

fn figures(row: &BenchRow) -> [String; 8] {
    let spread = (row.slowest - row.fastest) / row.seconds;
    let of_limit = |limit: f64| format!("{:.1} %", 100.0 * row.rate / limit);
    [
        row.kernel.clone(),
        row.bodies.to_string(),
        format!("{:.4}", 1e3 * row.seconds),
        format!("{:.1} %", 100.0 * spread),
        super::scientific(row.rate),
        format!("{:.0}", 1e-9 * row.rate * f64::from(FLOPS_PER_INTERACTION)),
        row.limit.map_or_else(String::new, of_limit),
        super::scientific(row.error),
    ]
}
