//! The command line: its commands, and which file carries each out.

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::Arc;

use allpairs::ranks::Team;
use allpairs::settings::Front;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::bench;
use crate::cite;
use crate::convert;
use crate::devices;
use crate::exit;
use crate::field;
use crate::ic;
use crate::info;
use crate::inspect;
use crate::list;
use crate::manual;
use crate::options;
use crate::plot;
use crate::ranks;
use crate::render;
use crate::resume;
use crate::run;
use crate::systems;
use crate::threads;
use crate::tune;
use crate::validate;
use crate::verify;
use crate::version::LONG_VERSION;
use crate::view;
use crate::while_read::WhileRead;

/// Direct-summation gravitational N-body simulation, with GPU kernels written in Rust.
#[derive(Debug, Parser)]
#[command(name = "allpairs", version, long_version = LONG_VERSION, about, max_term_width = 100)]
#[command(
    after_help = "Without a command: a demonstration, 100 steps of a galaxy of 20 000 bodies."
)]
pub(super) struct Arguments {
    /// Task; without one, a demonstration: 100 steps of a galaxy of 20 000 bodies.
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Simulate a snapshot file or generated initial conditions.
    Run(Box<options::Options>),
    /// Continue a run that was stopped or killed, from its last checkpoint.
    Resume(resume::Options),
    /// Make initial conditions and write them to a file; or list what can be made.
    Ic(Box<ic::Options>),
    /// Convert a snapshot to another format, and to other units.
    Convert(convert::Options),
    /// Describe a snapshot: its bodies, their nearest neighbours, and bound pairs.
    Info(info::Options),
    /// Compute the field of a snapshot at points: accelerations, potentials, tidal tensors.
    Field(field::Options),
    /// List the GPUs of this machine, or why there is none.
    Devices,
    /// List the kernels: what each is, and how it differs from its predecessor.
    List(list::Options),
    /// Compare kernels with the f64 reference.
    Verify(verify::Options),
    /// Simulate systems with known results — orbits, star clusters, the Solar System, a galaxy — and
    /// judge them.
    Validate(validate::Options),
    /// Time the forces of kernels that have just been verified.
    Bench(bench::Options),
    /// Find the fastest kernel for this machine, and keep it for later runs.
    Tune(tune::Options),
    /// Verify and time many independent systems, as the study `galaxies` does: copies in, steps,
    /// copies out; and show when each was under way.
    Systems(systems::Options),
    /// Draw snapshots: density maps as PNG files, or a movie.
    Render(render::Options),
    /// Write snapshots as one HTML page that turns, zooms and plays in a browser.
    View(view::Options),
    /// Draw charts, as PNG and SVG: of a run's log, of orbits, of a benchmark.
    Plot(plot::Options),
    /// Show what a kernel was compiled to: instructions per interaction, registers, PTX.
    Inspect(inspect::Options),
    /// Print how to cite this program, and a text about a run for a section on methods.
    Cite(cite::Options),
    /// Print completions for a shell, to be sourced by it.
    Completions(manual::CompletionOptions),
    /// Write man pages.
    Man(manual::ManOptions),
}

/// Runs the program with these arguments, of which the first is its name, and returns its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    Front::CommandLine.speak();
    fail_at_size_limits();
    let arguments = values_below_zero(arguments);
    let shared = ranks::take_part(&arguments, |team| carry_out(&arguments, Some(team)));
    shared.unwrap_or_else(|| match threads::asked_for().and_then(threads::start) {
        Ok(()) => carry_out(&arguments, None),
        Err(error) => exit::report(&error, None),
    })
}

/// Carries out the command that the arguments name, by all ranks of `team` where there are several, and
/// returns the exit code.
fn carry_out(arguments: &[OsString], team: Option<&Arc<Team>>) -> u8 {
    let matches = below_zero_too(Arguments::command()).try_get_matches_from(arguments);
    let parsed = matches.and_then(|matches| {
        let arguments = Arguments::from_arg_matches(&matches)
            .map_err(|error| error.format(&mut Arguments::command()))?;
        Ok((matches, arguments))
    });
    let (matches, arguments) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let _ = error.print(); // help and the version are errors too
            return error.exit_code() as u8;
        }
    };
    let mut out = WhileRead(Some(io::stdout().lock()));
    let result = match &arguments.command {
        None => run::demo(team, &mut out),
        Some(Command::Run(_)) => {
            let (_, matches) = matches.subcommand().expect("there is one");
            run::run(matches, team, &mut out)
        }
        Some(Command::Resume(options)) => resume::resume(options, team, &mut out),
        Some(Command::Ic(options)) => ic::ic(options, &mut out),
        Some(Command::Convert(options)) => convert::convert(options, &mut out),
        Some(Command::Info(options)) => info::info(options, &mut out),
        Some(Command::Field(options)) => field::field(options, &mut out),
        Some(Command::Devices) => devices::devices(&mut out),
        Some(Command::List(options)) => list::list(options, &mut out),
        Some(Command::Verify(options)) => verify::verify(options, &mut out),
        Some(Command::Validate(options)) => validate::validate(options, &mut out),
        Some(Command::Bench(options)) => bench::bench(options, &mut out),
        Some(Command::Tune(options)) => tune::tune(options, &mut out),
        Some(Command::Systems(options)) => systems::systems(options, team, &mut out),
        Some(Command::Render(options)) => render::render(options, &mut out),
        Some(Command::View(options)) => view::view(options, &mut out),
        Some(Command::Plot(options)) => plot::plot(options, &mut out),
        Some(Command::Inspect(options)) => inspect::inspect(options, &mut out),
        Some(Command::Cite(options)) => cite::cite(options, &mut out),
        Some(Command::Completions(options)) => {
            manual::completions(options, Arguments::command(), &mut out)
        }
        Some(Command::Man(options)) => manual::man(options, Arguments::command(), &mut out),
    };
    match result.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => exit::SUCCESS,
        Err(error) => exit::report(&error, team.map(|team| ranks::name_of(team)).as_deref()),
    }
}

/// Lets writing fail at a limit on the size of files (`ulimit -f`) as on a full disk, instead of ending
/// the process.
fn fail_at_size_limits() {
    #[cfg(unix)]
    // SAFETY: an ignored signal has no handler, whose code could be at fault.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Takes `-1` after an option for its value, so that the check of that option can refuse it.
fn below_zero_too(command: clap::Command) -> clap::Command {
    command
        .mut_args(
            |arg| match arg.is_positional() || !arg.get_action().takes_values() {
                true => arg,
                false => arg.allow_negative_numbers(true),
            },
        )
        .mut_subcommands(below_zero_too)
}

/// Writes `-1e-3` as `-0.001`: the parser takes the former for an option.
fn without_exponent(argument: OsString) -> OsString {
    let number = argument.to_str().filter(|text| text.starts_with('-'));
    match number.and_then(|text| text.parse::<f64>().ok()) {
        Some(number) if number.is_finite() => number.to_string().into(),
        _ => argument,
    }
}

/// Writes `--until -10yr` as `--until=-10yr`, and [numbers](without_exponent) too. The parser takes for an option
/// whatever begins with a dash and is no plain number.
fn values_below_zero(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = vec![];
    for argument in arguments.into_iter().map(without_exponent) {
        let text = argument.to_str().unwrap_or_default();
        let begins = text.strip_prefix('-').and_then(|rest| rest.chars().next());
        let is_quantity = begins.is_some_and(|c| c.is_ascii_digit() || c == '.');
        let is_option = |last: &OsString| {
            let text = last.to_str().unwrap_or_default();
            text.starts_with("--") && text.len() > 2 && !text.contains('=')
        };
        match all.last_mut() {
            Some(option) if is_quantity && text.parse::<f64>().is_err() && is_option(option) => {
                option.push("=");
                option.push(&argument);
            }
            _ => all.push(argument),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_below_zero_may_have_units() {
        let of = |text: &str| {
            let taken = values_below_zero(text.split(' ').map(OsString::from));
            taken.join(std::ffi::OsStr::new(" "))
        };
        for (given, taken) in [
            ("run x --until -10yr", "run x --until=-10yr"),
            ("run x --dt -.5day --steps 3", "run x --dt=-.5day --steps 3"),
            ("run x --until -1e-3", "run x --until -0.001"),
            ("run -10yr", "run -10yr"),
            ("run x --dt=1 -10yr", "run x --dt=1 -10yr"),
            ("run x --out -o", "run x --out -o"),
            ("run x -- -1yr", "run x -- -1yr"),
        ] {
            assert_eq!(of(given), taken);
        }
    }

    #[test]
    fn numbers_below_zero_need_no_exponent() {
        for (given, taken) in [
            ("-1e-3", "-0.001"),
            ("-2.5E-1", "-0.25"),
            ("-7", "-7"),
            ("1e-3", "1e-3"),
            ("-inf", "-inf"),
            ("-o", "-o"),
            ("--dt", "--dt"),
        ] {
            assert_eq!(without_exponent(given.into()), taken);
        }
    }

    #[test]
    fn every_option_takes_numbers_below_zero() {
        fn check(command: &clap::Command) {
            for arg in command.get_arguments() {
                let is_value = !arg.is_positional() && arg.get_action().takes_values();
                assert!(!is_value || arg.is_allow_negative_numbers_set(), "{arg}");
            }
            command.get_subcommands().for_each(check);
        }
        check(&below_zero_too(Arguments::command()));
    }
}
