//! `allpairs verify`.

use std::io::Write;

use allpairs::diagnostics::DigitHistogram;
use allpairs::machine::{KernelAtPoints, KernelOfPairs, Machine};
use allpairs::physics::ForceLaw;
use allpairs::plan::systems::most_bodies;
use allpairs::refusals::{Change, Refusal, Refusals, Remedy};
use allpairs::selection::{Ineligible, Place, Request, eligible, select};
use allpairs::settings::Setting;
use allpairs::variants::Variant;
use allpairs_lab::studies::catalogue;
use allpairs_lab::verify::{
    CaseAtPoints, CaseOfPairs, Verdict, edge_cases, judge, judge_at_points, judge_pairs,
    large_case, stated_at_points, stated_of_pairs,
};

use crate::bodies;
use crate::choices::DeviceOption;
use crate::exit;
use crate::say;
use crate::tables;

/// Bodies of the large case where nothing else is said.
const BODIES: usize = 16_384;
/// Bodies of the large case on the emulator, which is slow.
const BODIES_EMULATED: usize = 1_025;
/// Threads of a block, around which the small cases are chosen.
const BLOCK: usize = 256;

/// Kernels to verify.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    place: DeviceOption,
    /// Only these kernels, separated by commas; all that run there where none is given.
    #[arg(long, value_delimiter = ',')]
    kernel: Vec<String>,
    /// Bodies of the largest case [default: 16384; 1025 on the emulator]
    #[arg(long, value_parser = bodies::number_of_bodies)]
    bodies: Option<u32>,
}

pub(super) fn verify(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let (others, kernels) = no_variants(&options.kernel);
    let place = place(&options.place, &kernels)?;
    if let Some(kernel) = others.first()
        && place.is_cpu()
        && !options.kernel.is_empty()
    {
        let refusal = Refusal {
            sides: ["kernels of a GPU", "the CPU"],
            reason: format!("kernel `{}` is GPU code", kernel.name()),
            remedies: ["cuda", "emulator"]
                .map(|device| Remedy(vec![Change::Set(Setting::Device, device)]))
                .to_vec(),
        };
        return Err(Refusals(vec![refusal]).into());
    }
    let emulated = place.is_emulated();
    let n = match options.bodies {
        Some(n) => n as usize,
        None if emulated => BODIES_EMULATED,
        None => BODIES,
    };
    bodies::check_memory(n as u64)?;
    let mut cases = edge_cases(BLOCK);
    let mut two_steps = vec![];
    // Gravity last: its statistics are shown where a kernel computes it.
    for law in [ForceLaw::ATTRACT_REPEL, ForceLaw::Unit, ForceLaw::Gravity] {
        let (large, steps) = large_case(n, law);
        cases.push(large);
        two_steps.insert(0, steps);
    }

    writeln!(out, "On {place}, the largest case of {n} bodies:")?;
    let mut columns = vec!["kernel", "#rms error", "#stated", "#max error"];
    let decimals: Vec<String> = (1..=DigitHistogram::DECIMALS)
        .map(|d| format!("#{d}"))
        .collect();
    columns.extend(decimals.iter().map(String::as_str));
    columns.extend(["#later", "verdict"]);
    let mut table = tables::table(&columns);
    let (mut failures, mut wrong) = (vec![], vec![]);
    let machine = Machine::new(place);
    let variants = match kernels.is_empty() && !options.kernel.is_empty() {
        true => vec![],
        false => chosen(&kernels, machine.place())?,
    };
    for variant in variants {
        let verdict = judge(&machine, variant, &cases, &two_steps)?;
        table.add_row(row(variant, &verdict, n.min(most_bodies(variant))));
        match (variant.wrong, verdict.failures.is_empty()) {
            (None, _) => failures.extend(
                verdict
                    .failures
                    .into_iter()
                    .map(|(case, why)| format!("{}: {case}: {why}", variant.name)),
            ),
            (Some(_), true) => failures.push(format!(
                "{}: is known to be wrong, and passed",
                variant.name
            )),
            (Some(why), false) => wrong.push(format!("{} is wrong: {why}", variant.name)),
        }
    }
    // Without names, those that run there.
    let one_device = machine.place().devices() == 1 && !machine.place().is_cpu();
    if one_device || !options.kernel.is_empty() {
        let (at_points, of_pairs) = (CaseAtPoints::of_all(&cases), CaseOfPairs::all(n));
        for kernel in others {
            let judged = match &kernel {
                NoVariant::AtPoints(kernel) => {
                    let verdict = judge_at_points(&machine, kernel, &at_points)?;
                    let errors = [
                        verdict.rms_relative,
                        stated_at_points(kernel),
                        verdict.max_relative,
                    ];
                    (errors, verdict.failures, at_points.len())
                }
                NoVariant::OfPairs(kernel) => {
                    let verdict = judge_pairs(&machine, kernel, &of_pairs)?;
                    let errors = [
                        verdict.rms_relative,
                        stated_of_pairs(kernel),
                        verdict.max_relative,
                    ];
                    (errors, verdict.failures, of_pairs.len())
                }
            };
            let (errors, failed, all) = judged;
            let mut row = vec![kernel.name().to_owned()];
            row.extend(errors.map(say::scientific));
            row.resize(columns.len() - 1, "-".to_owned());
            row.push(match failed.len() {
                0 => format!("passed all {all}"),
                failed => format!("FAILED {failed} of {all}"),
            });
            table.add_row(row);
            let named = |(case, why)| format!("{}: {case}: {why}", kernel.name());
            failures.extend(failed.into_iter().map(named));
        }
    }
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "Errors of the force are relative to the f64 reference, on the largest case that a kernel takes; three \
         times the\nstated error are allowed in all cases. Digits count the coordinates with an error that first \
         reaches this decimal\nafter two steps."
    )?;
    for why in wrong {
        writeln!(out, "As expected, {why}")?;
    }
    for why in skipped(&options.kernel, machine.place()) {
        writeln!(out, "SKIPPED: {why}")?;
    }
    exit::report_failures(&failures, out)
}

/// A kernel of devices that is no variant of the force.
enum NoVariant {
    AtPoints(KernelAtPoints),
    OfPairs(KernelOfPairs),
}

impl NoVariant {
    fn all() -> impl Iterator<Item = Self> {
        let at_points = KernelAtPoints::OF_DEVICES.map(Self::AtPoints);
        at_points
            .into_iter()
            .chain(KernelOfPairs::OF_DEVICES.map(Self::OfPairs))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::AtPoints(kernel) => kernel.name,
            Self::OfPairs(kernel) => kernel.name,
        }
    }
}

/// The kernels that are no variants and are asked for, and the names of the others: all and none where nothing is
/// asked for.
fn no_variants(kernels: &[String]) -> (Vec<NoVariant>, Vec<String>) {
    let is_named = |kernel: &NoVariant| kernels.iter().any(|name| name == kernel.name());
    let wanted = NoVariant::all().filter(|kernel| kernels.is_empty() || is_named(kernel));
    let wanted: Vec<_> = wanted.collect();
    let is_other = |name: &&String| wanted.iter().all(|kernel| kernel.name() != **name);
    let others = kernels.iter().filter(is_other).cloned().collect();
    (wanted, others)
}

/// Device on which to verify or time these kernels, or all.
pub(super) fn place(options: &DeviceOption, kernels: &[String]) -> anyhow::Result<Place> {
    let first = kernels.first().map(|name| catalogue().find(name));
    let first = first.transpose()?;
    let law = first.and_then(|variant| variant.laws().next());
    let request = Request::new(0).on(options.device).by(first);
    Ok(select(&request.law(law.unwrap_or(ForceLaw::Gravity)))?.place)
}

/// The kernels asked for, or all that can run there.
pub(super) fn chosen(kernels: &[String], place: &Place) -> anyhow::Result<Vec<&'static Variant>> {
    let runs = |variant: &Variant| {
        let mut laws = variant.laws().map(|law| eligible(variant, place, law));
        let first = laws.next().expect("every kernel has a law");
        if laws.any(|runs| runs.is_ok()) {
            Ok(())
        } else {
            first
        }
    };
    if !kernels.is_empty() {
        let asked = kernels.iter().map(|name| {
            let variant = catalogue().find(name)?;
            runs(variant)?;
            Ok(variant)
        });
        return asked.collect();
    }
    let mut chosen: Vec<&'static Variant> = vec![];
    for variant in catalogue().all() {
        // A rung that is another variant under another name was looked at already.
        let known = chosen.iter().any(|v| v.method == variant.method);
        if !known && runs(variant).is_ok() {
            chosen.push(variant);
        }
    }
    Ok(chosen)
}

/// Reasons why kernels that were not asked for are left out though others of their place are not:
/// what they need may be installed.
pub(super) fn skipped(kernels: &[String], place: &Place) -> Vec<Ineligible> {
    let whys = catalogue().all().filter_map(|variant| {
        let law = variant.laws().next()?;
        eligible(variant, place, law).err()
    });
    let needed = |why: &Ineligible| matches!(why, Ineligible::NoLibrary { .. });
    whys.filter(|why| kernels.is_empty() && needed(why))
        .collect()
}

fn row(variant: &Variant, verdict: &Verdict, n: usize) -> Vec<String> {
    let digits = &verdict.digits;
    let percent = |count: u64| match count {
        0 => String::from("-"),
        _ => format!("{:.1} %", 100.0 * count as f64 / digits.total() as f64),
    };
    let mut row = vec![
        variant.name.to_owned(),
        say::scientific(verdict.accuracy.rms_relative),
        say::scientific(variant.stated_error(n)),
        say::scientific(verdict.accuracy.max_relative),
    ];
    row.push(percent(digits.whole + digits.decimals[0]));
    row.extend(digits.decimals[1..].iter().map(|&count| percent(count)));
    row.push(percent(digits.beyond));
    row.push(match verdict.failures.len() {
        0 => format!("passed all {}", verdict.cases),
        failed if variant.wrong.is_some() => {
            format!("fails {failed} of {}, as expected", verdict.cases)
        }
        failed => format!("FAILED {failed} of {}", verdict.cases),
    });
    row
}
