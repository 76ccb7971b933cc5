//! `allpairs validate`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;

use allpairs::io::Overwrite;
use allpairs::machine::Machine;
use allpairs::selection::{Request, select};
use allpairs_lab::validate::{EXPERIMENTS, Effort, Experiment, Outcome};
use anyhow::{Context, ensure};
use comfy_table::ContentArrangement;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::choices::DeviceOption;
use crate::exit::ChecksFailed;
use crate::say;
use crate::tables;
use crate::version;

/// Experiments to check, and the device.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    place: DeviceOption,
    /// Fewer bodies and shorter runs: some seconds on a CPU.
    #[arg(long)]
    quick: bool,
    /// Only experiments with names that contain this.
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Also write the report as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace the file if it is there.
    #[arg(long)]
    overwrite: bool,
    /// Say why each bound is what it is.
    #[arg(long)]
    reasons: bool,
}

/// A run experiment and how long it took.
struct Run {
    experiment: &'static Experiment,
    outcome: Outcome,
    seconds: f64,
}

pub(super) fn validate(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let effort = if options.quick {
        Effort::Quick
    } else {
        Effort::Full
    };
    let part = options.only.as_deref().unwrap_or_default();
    let chosen: Vec<&Experiment> = EXPERIMENTS
        .iter()
        .filter(|experiment| experiment.name.contains(part))
        .collect();
    ensure!(
        !chosen.is_empty(),
        "no experiment's name contains `{part}`; there are {}",
        EXPERIMENTS
            .iter()
            .map(|e| e.name)
            .collect::<Vec<_>>()
            .join(", ")
    );
    if let Some(path) = &options.json {
        ensure!(
            options.overwrite || !path.exists(),
            "{} is there already: give another file, or --overwrite",
            path.display()
        );
    }
    let place = select(&Request::new(0).on(options.place.device))?.place;
    writeln!(out, "On {place}:")?;
    out.flush()?;
    let machine = Machine::new(place);
    let bar = progress(chosen.len());
    let mut runs = vec![];
    for experiment in chosen {
        bar.set_message(format!("{}: {}", experiment.name, experiment.about));
        let began = Instant::now();
        let outcome = experiment.run(&machine, effort)?;
        let seconds = began.elapsed().as_secs_f64();
        runs.push(Run {
            experiment,
            outcome,
            seconds,
        });
        bar.inc(1);
    }
    bar.finish_and_clear();
    table(&runs, effort, options.reasons, out)?;
    if let Some(path) = &options.json {
        let overwrite = Overwrite::from(options.overwrite);
        let report = report(&runs, effort, &machine);
        allpairs::io::write_atomically(path, overwrite, |file: &mut _| {
            serde_json::to_writer_pretty(&mut *file, &report)?;
            writeln!(file)
        })
        .with_context(|| format!("cannot write {}", path.display()))?;
        writeln!(out, "wrote {}", path.display())?;
    }
    if runs.iter().all(|run| run.failures(effort) == 0) {
        Ok(())
    } else {
        Err(ChecksFailed.into())
    }
}

impl Run {
    fn failures(&self, effort: Effort) -> usize {
        let Outcome::Measured { values, .. } = &self.outcome else {
            return 0;
        };
        let checks = self.experiment.checks.iter().zip(values);
        checks
            .filter(|(check, value)| !check.passes(**value, effort))
            .count()
    }
}

fn progress(experiments: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(experiments as u64);
    bar.set_style(ProgressStyle::with_template("{pos} of {len}, {msg}").expect("a valid template"));
    bar
}

fn table(runs: &[Run], effort: Effort, reasons: bool, out: &mut impl Write) -> anyhow::Result<()> {
    let mut columns = vec![
        "experiment",
        "integrator",
        "kernel",
        "measured",
        "#value",
        "#bound",
        "verdict",
    ];
    if reasons {
        columns.push("why this bound");
    }
    let mut table = tables::table(&columns);
    if reasons {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    let (mut failed, mut checks, mut not_run) = (0, 0, vec![]);
    for run in runs {
        let experiment = run.experiment;
        let (kernel, values) = match &run.outcome {
            Outcome::Measured { kernel, values } => (*kernel, values),
            Outcome::NotRun(why) => {
                not_run.push(format!("{} was not run: {why}", experiment.name));
                continue;
            }
        };
        for (index, (check, &value)) in experiment.checks.iter().zip(values).enumerate() {
            let passes = check.passes(value, effort);
            (checks, failed) = (checks + 1, failed + usize::from(!passes));
            let first = |text: &'static str| if index == 0 { text } else { "" };
            let mut row = vec![
                first(experiment.name).to_owned(),
                first(experiment.integrator.name()).to_owned(),
                first(kernel).to_owned(),
                check.measured.to_owned(),
                say::scientific(value),
                say::scientific(check.bound(effort)),
                if passes { "passed" } else { "FAILED" }.to_owned(),
            ];
            if reasons {
                row.push(check.reason.to_owned());
            }
            table.add_row(row);
        }
    }
    writeln!(out, "{table}")?;
    for line in not_run {
        writeln!(out, "{line}")?;
    }
    let seconds: f64 = runs.iter().map(|run| run.seconds).sum();
    let passed = checks - failed;
    writeln!(out, "{passed} of {checks} checks passed, in {seconds:.1} s")?;
    Ok(())
}

fn report(runs: &[Run], effort: Effort, machine: &Machine) -> Value {
    let experiments = runs.iter().map(|run| {
        let Experiment {
            name,
            about,
            integrator,
            ..
        } = run.experiment;
        let mut object = json!({
            "name": name,
            "about": about,
            "integrator": integrator.name(),
            "seconds": run.seconds,
        });
        match &run.outcome {
            Outcome::NotRun(why) => object["not_run"] = why.as_str().into(),
            Outcome::Measured { kernel, values } => {
                object["kernel"] = (*kernel).into();
                let checks = run.experiment.checks.iter().zip(values);
                object["checks"] = checks
                    .map(|(check, &value)| {
                        json!({
                            "measured": check.measured,
                            // Not a number becomes null.
                            "value": value,
                            "bound": check.bound(effort),
                            "reason": check.reason,
                            "passed": check.passes(value, effort),
                        })
                    })
                    .collect();
            }
        }
        object
    });
    json!({
        "program": concat!("allpairs ", env!("CARGO_PKG_VERSION")),
        "commit": version::COMMIT,
        "device": machine.place().to_string(),
        "effort": match effort { Effort::Quick => "quick", Effort::Full => "full" },
        "experiments": experiments.collect::<Vec<Value>>(),
    })
}
