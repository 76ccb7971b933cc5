//! Options of generated initial conditions: read from the library's list.

use allpairs::initial_conditions::{GENERATORS, MassFunction, Options, Parameter};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::flags::of_initial_conditions;

/// Initial conditions to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made(pub(super) Options);

const HEADING: &str = "Initial conditions";

impl Args for Made {
    fn augment_args(command: Command) -> Command {
        let seed = Arg::new("seed")
            .long("seed")
            .value_name("SEED")
            .value_parser(value_parser!(u64))
            .default_value("0")
            .help_heading(HEADING)
            .help("Seed of the random numbers");
        let of = Arg::new("of")
            .long("of")
            .value_name("NAME")
            .value_parser(GENERATORS.iter().map(|g| g.name).collect::<Vec<_>>())
            .hide_possible_values(true)
            .help_heading(HEADING)
            .help("What each of many systems is: the name of other initial conditions [many-galaxies: plummer]");
        let masses = Arg::new("masses")
            .long("masses")
            .value_name("FUNCTION")
            .value_parser(MassFunction::ALL.map(MassFunction::name))
            .help_heading(HEADING)
            .help(
                "Masses of the stars of a sphere, from --least-mass to --greatest-mass: Kroupa (2001), \
                 Salpeter (1955) or flat; equal where not given",
            );
        let command = command.arg(seed).arg(of).arg(masses);
        Parameter::ALL
            .into_iter()
            .fold(command, |command, parameter| {
                command.arg(
                    Arg::new(parameter.name())
                        .long(parameter.name())
                        .value_name(
                            if matches!(
                                parameter,
                                Parameter::Bodies | Parameter::Systems | Parameter::Each
                            ) {
                                "N"
                            } else {
                                "X"
                            },
                        )
                        .value_parser(value_parser!(f64))
                        .help_heading(HEADING)
                        .help(format!(
                            "{} [{}]",
                            of_initial_conditions(parameter.summary()),
                            defaults(parameter)
                        )),
                )
            })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// `king: 6; …`, or nothing but the value where all generators have the same.
fn defaults(parameter: Parameter) -> String {
    let users = || {
        GENERATORS.iter().filter_map(move |generator| {
            let default = generator.parameters.iter().find(|(p, _)| *p == parameter)?;
            Some((generator.name, default.1))
        })
    };
    let first = users().next().map(|(_, default)| default);
    if parameter == Parameter::Bodies && users().all(|(_, default)| Some(default) == first) {
        return format!("default: {}", first.unwrap_or_default());
    }
    let each = users().map(|(name, default)| format!("{name}: {default}"));
    each.collect::<Vec<_>>().join(", ")
}

impl FromArgMatches for Made {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let seed = matches.get_one("seed").copied().unwrap_or_default();
        let mut start = match matches.get_one::<String>("of") {
            Some(of) => Options::new(seed).of(of).expect("a possible value"),
            None => Options::new(seed),
        };
        let masses = matches.get_one::<String>("masses");
        start.masses = masses.map(|name| name.parse().expect("a possible value"));
        let options = Parameter::ALL
            .into_iter()
            .fold(start, |options, parameter| {
                match matches.get_one(parameter.name()) {
                    Some(value) => options.with(parameter, *value),
                    None => options,
                }
            });
        Ok(Self(options))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
