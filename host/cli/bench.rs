//! `allpairs bench`.

use std::io::Write;

use allpairs::force::{Backend, Law};
use allpairs::limits;
use allpairs::selection::{Machine, Place, select};
use allpairs::verify::{Case, large_case};
use gpu_kernels::interaction::FLOPS_PER_INTERACTION;
use gpu_kernels::numerics::Precision;

use super::{ChecksFailed, Where};

/// What to time.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    place: Where,
    /// Only this kernel.
    #[arg(long)]
    kernel: Option<String>,
    /// Numbers of bodies, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "16384,65536",
        value_parser = clap::value_parser!(u32).range(1..))]
    bodies: Vec<u32>,
    /// Timed repetitions; their median and spread are reported.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
}

/// Verifies and times each kernel: what is wrong is shown as failed, and has no time.
pub(super) fn bench(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let place = select(
        options.place.device,
        options.kernel.as_deref(),
        Law::Gravity,
    )?
    .place;
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
    let mut all_right = true;
    let machine = Machine::new(place);
    for &n in &options.bodies {
        let (case, _) = large_case(n as usize);
        for variant in super::verify::chosen(options.kernel.as_deref(), machine.place())? {
            let mut backend = machine.backend(variant, &case.bodies, case.physics)?;
            backend.accelerate()?; // warms up as well
            let computed = backend.accelerations()?;
            let mut row = vec![variant.name.to_owned(), n.to_string()];
            match case.check(variant, &computed) {
                Ok(()) => {
                    let seconds = time(&mut *backend, options.repetitions)?;
                    row.extend(figures(
                        &seconds,
                        n,
                        limit(machine.place(), variant.precision()),
                    ));
                    row.push(super::scientific(rms_error(&case, &computed)));
                }
                Err(why) => {
                    all_right = false;
                    row.push(format!("FAILED: {why}"));
                }
            }
            table.add_row(row);
        }
    }
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "GFLOP/s count {FLOPS_PER_INTERACTION} operations an interaction. The limit is that of a \
         kernel that computes each\npair for one body; `allpairs devices` explains it."
    )?;
    if all_right {
        Ok(())
    } else {
        Err(ChecksFailed.into())
    }
}

fn rms_error(case: &Case, computed: &[[f64; 3]]) -> f64 {
    case.accuracy(computed).rms_relative
}

/// Sorted times of the repetitions.
fn time(backend: &mut dyn Backend, repetitions: u32) -> anyhow::Result<Vec<f64>> {
    let mut seconds = vec![];
    for _ in 0..repetitions {
        seconds.push(backend.time_acceleration()?);
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds)
}

fn figures(seconds: &[f64], n: u32, limit: Option<f64>) -> Vec<String> {
    let median = seconds[seconds.len() / 2];
    let spread = (seconds[seconds.len() - 1] - seconds[0]) / median;
    let rate = f64::from(n) * f64::from(n) / median;
    vec![
        format!("{:.4}", 1e3 * median),
        format!("{:.1} %", 100.0 * spread),
        super::scientific(rate),
        format!("{:.0}", 1e-9 * rate * f64::from(FLOPS_PER_INTERACTION)),
        limit.map_or_else(String::new, |limit| {
            format!("{:.1} %", 100.0 * rate / limit)
        }),
    ]
}

fn limit(place: &Place, precision: Precision) -> Option<f64> {
    match (place, precision) {
        (Place::Gpu(info), Precision::F64) => limits::one_sided_f64(info),
        (Place::Gpu(info), _) => limits::one_sided_f32(info),
        (Place::Cpu | Place::Emulator, _) => None,
    }
}
