//! `allpairs verify`.

use std::io::Write;

use allpairs::diagnostics::DigitHistogram;
use allpairs::force::Law;
use allpairs::selection::{Machine, Place, eligible, select};
use allpairs::variants::{self, VARIANTS, Variant};
use allpairs::verify::{Verdict, edge_cases, judge, large_case};

use super::{ChecksFailed, Where};

/// Bodies of the large case where nothing else is said.
const BODIES: usize = 16_384;
/// The same on the emulator, which takes its time.
const BODIES_EMULATED: usize = 1_025;
/// Threads of a block, around which the small cases are chosen.
const BLOCK: usize = 256;

/// What to verify.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    place: Where,
    /// Only this kernel.
    #[arg(long)]
    kernel: Option<String>,
    /// Bodies of the largest case.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    bodies: Option<u32>,
}

pub(super) fn verify(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let place = select(
        options.place.device,
        options.kernel.as_deref(),
        Law::Gravity,
    )?
    .place;
    let emulated = place == Place::Emulator;
    let n = match options.bodies {
        Some(n) => n as usize,
        None if emulated => BODIES_EMULATED,
        None => BODIES,
    };
    let mut cases = edge_cases(BLOCK);
    let (large, two_steps) = large_case(n);
    cases.push(large);

    writeln!(
        out,
        "On {place}, {} cases a kernel, the largest of {n} bodies:",
        cases.len()
    )?;
    let mut columns = vec!["kernel", "#rms error", "#max error"];
    let decimals: Vec<String> = (1..=DigitHistogram::DECIMALS)
        .map(|d| format!("#{d}"))
        .collect();
    columns.extend(decimals.iter().map(String::as_str));
    columns.extend(["#later", "verdict"]);
    let mut table = super::table(&columns);
    let mut failures = vec![];
    let machine = Machine::new(place);
    for variant in chosen(options.kernel.as_deref(), machine.place())? {
        let verdict = judge(&machine, variant, &cases, &two_steps)?;
        table.add_row(row(variant, &verdict));
        failures.extend(
            verdict
                .failures
                .into_iter()
                .map(|(case, why)| (variant.name, case, why)),
        );
    }
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "Errors of the force are relative to the f64 reference, on the largest case; digits count \
         the\ncoordinates whose error after two steps first reaches that decimal."
    )?;
    for (kernel, case, why) in &failures {
        writeln!(out, "FAILED {kernel}: {case}: {why}")?;
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(ChecksFailed.into())
    }
}

/// The kernels to verify: the one asked for, or all that can run there.
pub(super) fn chosen(kernel: Option<&str>, place: &Place) -> anyhow::Result<Vec<&'static Variant>> {
    Ok(match kernel {
        Some(name) => vec![variants::find(name)?],
        None => VARIANTS
            .iter()
            .filter(|v| eligible(v, place, Law::Gravity).is_ok())
            .collect(),
    })
}

fn row(variant: &Variant, verdict: &Verdict) -> Vec<String> {
    let digits = &verdict.digits;
    let percent = |count: u64| match count {
        0 => String::from("-"),
        _ => format!("{:.1} %", 100.0 * count as f64 / digits.total() as f64),
    };
    let mut row = vec![
        variant.name.to_owned(),
        super::scientific(verdict.accuracy.rms_relative),
        super::scientific(verdict.accuracy.max_relative),
    ];
    row.push(percent(digits.whole + digits.decimals[0]));
    row.extend(digits.decimals[1..].iter().map(|&count| percent(count)));
    row.push(percent(digits.beyond));
    row.push(match verdict.failures.len() {
        0 => "passed".to_owned(),
        failed => format!("FAILED {failed} of {}", verdict.cases),
    });
    row
}
