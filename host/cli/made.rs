//! Options of generated initial conditions: read from the library's list.

use allpairs::initial_conditions::{GENERATORS, MassFunction, Options, Parameter};
use allpairs::units::{Length, Measure};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

use crate::flags::message;

/// Initial conditions to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) options: Options,
    /// True if their seed was given.
    pub(super) is_seeded: bool,
}

/// Heading of options of initial conditions.
pub(super) const HEADING: &str = "Initial conditions";

impl Args for Made {
    fn augment_args(command: Command) -> Command {
        let seed = Arg::new("seed")
            .long("seed")
            .value_name("SEED")
            .value_parser(value_parser!(u64))
            .help_heading(HEADING)
            .help("Seed of the random numbers [default: 0]");
        let of = Arg::new("of")
            .long("of")
            .value_name("NAME")
            .value_parser(GENERATORS.iter().map(|g| g.name).collect::<Vec<_>>())
            .hide_possible_values(true)
            .help_heading(HEADING)
            .help("Initial conditions of each system [many-galaxies: plummer]");
        let masses = Arg::new("masses")
            .long("masses")
            .value_name("FUNCTION")
            .value_parser(MassFunction::ALL.map(MassFunction::name))
            .help_heading(HEADING)
            .help(
                "Masses of the stars of a sphere, from --least-mass to --greatest-mass: Kroupa (2001), \
                 Salpeter (1955) or flat; equal if not given",
            );
        let command = command.arg(seed).arg(of).arg(masses);
        Parameter::ALL
            .into_iter()
            .fold(command, |command, parameter| {
                command.arg(argument(parameter))
            })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The option for a parameter. Lengths may have a unit.
fn argument(parameter: Parameter) -> Arg {
    let argument = Arg::new(parameter.name())
        .long(parameter.name())
        .help_heading(HEADING);
    let (summary, defaults) = (parameter.summary(), defaults(parameter));
    if parameter.is_length() {
        return argument
            .value_name("LENGTH")
            .value_parser(value_parser!(Measure))
            .help(format!(
                "{summary}; or with a unit, as 5pc, where --radius is given [{defaults}]"
            ));
    }
    let name = match parameter {
        Parameter::Bodies | Parameter::Systems | Parameter::Each => "N",
        _ => "X",
    };
    argument
        .value_name(name)
        .value_parser(value_parser!(f64))
        .help(format!("{summary} [{defaults}]"))
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
        let seed = matches.get_one("seed").copied();
        let mut options = Options::new(seed.unwrap_or_default());
        if let Some(of) = matches.get_one::<String>("of") {
            options = options.of(of).expect("a possible value");
        }
        let masses = matches.get_one::<String>("masses");
        options.masses = masses.map(|name| name.parse().expect("a possible value"));
        let radius = matches.get_one::<Length>("radius").copied();
        for parameter in Parameter::ALL {
            let name = parameter.name();
            if !parameter.is_length() {
                let value = matches.get_one(name);
                options = value.map_or(options, |value| options.with(parameter, *value));
            } else if let Some(length) = matches.get_one(name) {
                let with = options.with_length(parameter, length, radius);
                options = with.map_err(|error| {
                    let text = message(&anyhow::Error::from(error).context(format!("--{name}")));
                    clap::Error::raw(ErrorKind::ValueValidation, text)
                })?;
            }
        }
        let is_seeded = seed.is_some();
        Ok(Self { options, is_seeded })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
