//! Rows of the tables of `allpairs bench`, with a study and without.

use std::io::Write;

use allpairs_lab::bench_record::{BenchRecord, BenchRow};
use gpu_kernels::interaction::FLOPS_PER_INTERACTION;

/// GFLOP/s of a row, by the count that is used everywhere.
pub(super) fn gflops(row: &BenchRow) -> String {
    format!("{:.0}", 1e-9 * row.rate * f64::from(FLOPS_PER_INTERACTION))
}

pub(super) fn of_limit(row: &BenchRow) -> String {
    let share = |limit: f64| format!("{:.1} %", 100.0 * row.rate / limit);
    row.limit.map_or_else(String::new, share)
}

/// The number of bodies, marked where it is not the one that was asked for.
pub(super) fn bodies(row: &BenchRow) -> String {
    match row.asked {
        Some(_) => format!("only {}", row.bodies),
        None => row.bodies.to_string(),
    }
}

/// Text in place of figures that are not right.
pub(super) fn failed(expected: bool, why: &str) -> String {
    let word = if expected { "fails" } else { "FAILED" };
    format!("{word}: {}", why)
}

/// Explains the figures, and names rows that are not as asked for.
pub(super) fn explain(record: &BenchRecord, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(
        out,
        "GFLOP/s count {FLOPS_PER_INTERACTION} operations per interaction. The limit holds for a \
         kernel that computes each\npair for one body; `allpairs devices` explains it."
    )?;
    for row in record.rows.iter().filter(|row| row.asked.is_some()) {
        let growth = (row.asked() as f64 / row.bodies as f64).powi(2);
        writeln!(
            out,
            "{}: timed at {} bodies; at {} one evaluation would take about {:.2} s, or less (--budget)",
            row.kernel,
            row.bodies,
            row.asked(),
            row.seconds * growth
        )?;
    }
    Ok(())
}
