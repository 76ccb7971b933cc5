//! Messages of errors, as the program prints them.

use std::error::Error;

use allpairs::run::BuildError;
use allpairs::variants::UnknownVariant;

/// An error and its causes, but for those that it tells itself, as the program prints them.
pub(super) fn message(error: &anyhow::Error) -> String {
    let mut causes = error.chain().map(cause);
    let first = causes.next().unwrap_or_default();
    causes.fold(first, |text, cause| match text.contains(&cause) {
        true => text,
        false => text + ": " + &cause,
    })
}

fn cause(error: &(dyn Error + 'static)) -> String {
    let is_unknown = matches!(error.downcast_ref(), Some(BuildError::Kernel(_)));
    match is_unknown || error.is::<UnknownVariant>() {
        true => format!("{error}: `allpairs list` shows those there are"),
        false => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use allpairs::physics::ForceLaw;
    use allpairs::rules::{self, Needs, Offer, Processor};
    use allpairs::settings::{Front, Setting};
    use allpairs::{Integrator, TimeSteps};
    use anyhow::Context;
    use clap::CommandFactory;

    use super::*;
    use crate::dispatch::Arguments;

    #[test]
    fn settings_are_options_of_a_run() {
        let command = Arguments::command();
        let run = command.find_subcommand("run").expect("there is one");
        let options: Vec<&str> = run.get_arguments().filter_map(|a| a.get_long()).collect();
        for setting in Setting::ALL {
            let option = setting.option();
            // The file says when a run of the program begins.
            let is_one = options.contains(&option.as_str());
            assert!(is_one || setting == Setting::Start, "{option}");
        }
    }

    #[test]
    fn messages_name_options() {
        Front::CommandLine.speak();
        let told = |error: anyhow::Error| message(&error);
        let device = Offer {
            processor: Processor::Gpu,
            ..Offer::ANY
        };
        let needs = Needs::new(ForceLaw::Gravity);
        let hermite6 = needs.steps(Integrator::Hermite6, TimeSteps::Shared, None, None);
        assert_eq!(
            told(
                rules::check(&hermite6, &device)
                    .expect_err("no snaps")
                    .into()
            ),
            "hermite6 on a GPU takes block time steps alone, not one step for all bodies: add --block-steps, \
             or choose --device cpu, or choose --integrator hermite4"
        );
        let neighbours = hermite6.neighbours(true);
        assert_eq!(
            told(
                rules::check(&neighbours, &Offer::ANY)
                    .expect_err("two")
                    .into()
            ),
            "--neighbours needs --block-steps, because each force is the force of all bodies where all take \
             one step: add --block-steps, or leave out --neighbours\n\
             and --neighbours needs --integrator hermite4, not hermite6: choose --integrator hermite4, or \
             leave out --neighbours"
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
