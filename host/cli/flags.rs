//! Settings that the library's texts name, as options of the command line.
//!
//! The library names a setting as its builder does, in backticks: "add `block_steps`, or choose the
//! `device` cpu". That reads "add --block-steps, or choose --device cpu" here.

use std::error::Error;

use allpairs::backend::{ForceError, NeighboursFault};
use allpairs::encounters::EncounterFault;
use allpairs::fields::{FieldFault, ParseFault};
use allpairs::plan::PlanError;
use allpairs::recording::RecordingError;
use allpairs::run::BuildError;
use allpairs::selection::{Ineligible, SelectionError};
use allpairs::units::MeasureError;
use allpairs::variants::{OutOfRange, UnknownVariant};

/// Settings of a run.
const RUN: &[&str] = &[
    "accuracy",
    "allow_inaccurate",
    "block_steps",
    "device",
    "eta",
    "field",
    "integrator",
    "kernel",
    "law",
    "neighbours",
    "orbit",
];
/// Settings of the bodies' units.
const UNITS: &[&str] = &["units", "mass", "radius"];
/// Settings of initial conditions.
const MADE: &[&str] = &["epoch", "masses", "moon", "of"];

/// An error and its causes, but for those that it tells itself, as the program prints them.
pub(super) fn message(error: &anyhow::Error) -> String {
    let mut causes = error.chain().map(cause);
    let first = causes.next().unwrap_or_default();
    causes.fold(first, |text, cause| match text.contains(&cause) {
        true => text,
        false => text + ": " + &cause,
    })
}

/// A text of the library about a run.
pub(super) fn of_run(text: &str) -> String {
    with_options(text, RUN)
}

/// A text of the library about initial conditions.
pub(super) fn of_initial_conditions(text: &str) -> String {
    with_options(text, MADE)
}

fn cause(error: &(dyn Error + 'static)) -> String {
    let is_unknown = matches!(error.downcast_ref(), Some(BuildError::Kernel(_)));
    if is_unknown || error.is::<UnknownVariant>() {
        return format!("{error}: `allpairs list` shows those there are");
    }
    with_options(&error.to_string(), settings(error))
}

/// The settings that an error may name. Others are left alone, which may repeat in backticks what a user
/// wrote, or name a parameter of a field.
fn settings(error: &(dyn Error + 'static)) -> &'static [&'static str] {
    let about_a_run = error.is::<ForceError>()
        || error.is::<BuildError>()
        || error.is::<SelectionError>()
        || error.is::<Ineligible>()
        || error.is::<NeighboursFault>()
        || error.is::<EncounterFault>()
        || error.is::<FieldFault>()
        || error.is::<PlanError>()
        || error.is::<OutOfRange>()
        || error.is::<RecordingError>();
    let about_units =
        error.is::<MeasureError>() || matches!(error.downcast_ref(), Some(ParseFault::NoUnits(_)));
    match (about_a_run, about_units) {
        (true, _) => RUN,
        (_, true) => UNITS,
        _ => &[],
    }
}

fn with_options(text: &str, settings: &[&str]) -> String {
    settings.iter().fold(text.to_owned(), |text, setting| {
        let option = format!("--{}", setting.replace('_', "-"));
        text.replace(&format!("the `{setting}` "), &format!("{option} "))
            .replace(&format!("`{setting}`"), &option)
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use clap::CommandFactory;

    use super::*;
    use crate::dispatch::Arguments;

    #[test]
    fn settings_are_options_of_a_run() {
        let command = Arguments::command();
        let run = command.find_subcommand("run").expect("there is one");
        let options: Vec<&str> = run.get_arguments().filter_map(|a| a.get_long()).collect();
        for setting in [RUN, UNITS, MADE].concat() {
            let option = setting.replace('_', "-");
            assert!(options.contains(&option.as_str()), "{option}");
        }
    }

    #[test]
    fn messages_name_options() {
        let told = |error: anyhow::Error| message(&error);
        assert_eq!(
            told(ForceError::NoSnaps.into()),
            "steps of sixth order for all bodies at once are not computed on a device: add --block-steps, \
             or choose --device cpu"
        );
        assert_eq!(
            told(NeighboursFault::Integrator("leapfrog").into()),
            "--neighbours needs --integrator hermite4, not leapfrog"
        );
        let measure: allpairs::units::Measure = "1pc".parse().expect("a length");
        let length = measure.length(None).context("in --softening");
        assert_eq!(
            told(length.expect_err("no units")),
            "in --softening: `1pc` has a unit, and the units of the bodies are unknown: give their --units, or a \
             model in N-body units its --mass and --radius; or leave out the unit of `1pc`"
        );
    }

    #[test]
    fn a_users_words_stay() {
        let unknown = allpairs::variants::find("eta").expect_err("not listed");
        assert_eq!(
            message(&unknown.into()),
            "there is no kernel `eta`: `allpairs list` shows those there are"
        );
    }

    #[test]
    fn causes_are_told_once() {
        let error = anyhow::anyhow!("no file")
            .context("cannot read a: no file")
            .context("in run.toml");
        assert_eq!(message(&error), "in run.toml: cannot read a: no file");
    }
}
