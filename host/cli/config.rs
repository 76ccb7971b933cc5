//! A run's options as a TOML file.
//!
//! A key is the long name of an option, or `input`; nothing else is accepted. The file is turned
//! into arguments, so that the command line's definitions, checks and suggestions hold for it too,
//! and an option given beside the file overrides it.

use std::any::TypeId;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use allpairs::io::read_text;
use allpairs::units::{Measure, Units};
use anyhow::{Context, bail, ensure};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, CommandFactory};
use toml::{Table, Value};

use crate::made::HEADING;
use crate::options::Options;
use crate::say;
use crate::times::Times;
use crate::version;

/// Table about the program that wrote a file; not read.
pub(super) const MADE_BY: &str = "made-by";
/// Keys of that table.
const OF_MADE_BY: [&str; 4] = ["program", "commit", "kernel", "device"];

/// Options that say where a run is kept and seen, not what it is: not written, so that a file can be
/// run again.
const NOT_KEPT: [&str; 3] = ["out", "overwrite", "watch"];

/// Options that say where a run ends, one in place of another.
const ENDS: [&str; 2] = ["steps", "until"];

/// A configuration that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the configuration {}", path.display())]
pub(super) struct Unreadable {
    path: PathBuf,
    source: io::Error,
}

/// Reads a file.
pub(super) fn read(path: &Path) -> anyhow::Result<Table> {
    let text = read_text(path).map_err(|source| Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let table: Table = text
        .parse()
        .with_context(|| format!("{} is not valid TOML", path.display()))?;
    ensure!(
        table.contains_key("input"),
        "{} lacks `input`, the name of a snapshot file or of initial conditions",
        path.display()
    );
    Ok(table)
}

/// Units of the bodies of a run, if they are known.
pub(super) fn units(table: &Table) -> Option<Units> {
    table.get("units")?.as_str()?.parse().ok()
}

/// The options of `table`, overridden by those that were `given` on the command line.
pub(super) fn matches(table: &Table, given: Option<&ArgMatches>) -> anyhow::Result<ArgMatches> {
    let is_given =
        |id| given.is_some_and(|given| given.value_source(id) == Some(ValueSource::CommandLine));
    let end_is_given = ENDS.into_iter().any(is_given);
    let command = Options::command().args_override_self(true);
    // Other options are overridden by clap; of one that may be given several times, all would stay.
    let replaced: Vec<&str> = command
        .get_arguments()
        .filter(|arg| {
            matches!(arg.get_action(), ArgAction::Append) && is_given(arg.get_id().as_str())
        })
        .filter_map(Arg::get_long)
        .collect();
    let mut arguments = vec![OsString::from("run")];
    for (key, value) in table {
        if end_is_given && ENDS.contains(&key.as_str()) {
            continue;
        }
        if replaced.contains(&key.as_str()) {
            continue;
        }
        let values = arguments_of(key, value)?;
        let takes_one = |arg: &Arg| !matches!(arg.get_action(), ArgAction::Append);
        let is_of_key = |arg: &&Arg| arg.get_long().unwrap_or(arg.get_id().as_str()) == key;
        if value.is_array()
            && values.len() != 1
            && command
                .get_arguments()
                .find(is_of_key)
                .is_some_and(takes_one)
        {
            bail!(
                "`{key}` has {} values, and takes one: leave one of them in the configuration",
                values.len()
            );
        }
        arguments.extend(values);
    }
    for arg in command.get_arguments() {
        let Some((long, given)) = arg.get_long().zip(given) else {
            continue; // the input: it was the file's name
        };
        if is_given(arg.get_id().as_str()) {
            arguments.extend(raw(given, arg).iter().map(|value| argument(long, value)));
        }
    }
    Ok(command.try_get_matches_from(arguments)?)
}

fn arguments_of(key: &str, value: &Value) -> anyhow::Result<Vec<OsString>> {
    let value = match value {
        Value::Table(table) if key == MADE_BY => {
            if let Some(key) = table.keys().find(|key| !OF_MADE_BY.contains(&key.as_str())) {
                bail!(
                    "`{key}` stands below [{MADE_BY}], which no options belong to: put it above that line"
                );
            }
            return Ok(vec![]);
        }
        Value::Table(_) => bail!("there is no table `{key}` in a configuration"),
        _ if key == "help" || key == "version" => bail!("`{key}` is not an option of a run"),
        Value::Boolean(false) => return Ok(vec![]),
        Value::Boolean(true) => return Ok(vec![format!("--{key}").into()]),
        Value::Array(values) => {
            let each = values.iter().map(|value| arguments_of(key, value));
            return Ok(each.collect::<Result<Vec<_>, _>>()?.concat());
        }
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Datetime(_) => bail!("`{key}` is a date, which no option of a run is"),
    };
    Ok(match key {
        "input" => vec![value.into()],
        _ => vec![argument(key, &value)],
    })
}

/// `--key=value`, or `--key` for a flag.
fn argument(key: &str, value: &str) -> OsString {
    match value {
        "" => format!("--{key}").into(),
        _ => format!("--{key}={value}").into(),
    }
}

/// The values of an argument as text; one empty one for a flag that is set.
fn raw(matches: &ArgMatches, arg: &Arg) -> Vec<String> {
    let id = arg.get_id().as_str();
    if !arg.get_action().takes_values() {
        let set = matches.get_flag(id);
        return if set { vec![String::new()] } else { vec![] };
    }
    let values = matches.get_raw(id).into_iter().flatten();
    values
        .map(|value| value.to_string_lossy().into_owned())
        .collect()
}

/// All options of `matches` that have a value, also by default.
pub(super) fn table(matches: &ArgMatches) -> Table {
    let mut table = Table::new();
    for arg in Options::command().get_arguments() {
        let key = arg.get_long().unwrap_or(arg.get_id().as_str());
        if NOT_KEPT.contains(&key) || key == "help" || key == "version" {
            continue;
        }
        let mut values: Vec<Value> = raw(matches, arg)
            .into_iter()
            .map(|text| value(arg, text))
            .collect();
        match values.len() {
            0 => continue,
            1 => table.insert(key.into(), values.remove(0)),
            _ => table.insert(key.into(), Value::Array(values)),
        };
    }
    table
}

/// A value as TOML's type for the option's.
fn value(arg: &Arg, text: String) -> Value {
    let of = arg.get_value_parser().type_id();
    if !arg.get_action().takes_values() {
        Value::Boolean(true)
    } else if of == TypeId::of::<f64>() || of == TypeId::of::<Measure>() {
        number(text)
    } else if of == TypeId::of::<u64>() {
        text.parse().map_or(Value::String(text), Value::Integer)
    } else {
        Value::String(text)
    }
}

/// A number as TOML has it; other texts as they are. A whole number stays one, also where any number
/// would do: 50 bodies, not 50.0.
pub(super) fn number(text: String) -> Value {
    let whole = text.parse().ok().map(Value::Integer);
    let real = || text.parse().ok().map(Value::Float);
    whole.or_else(real).unwrap_or(Value::String(text))
}

/// Text of the file written beside the outputs: the options, and which program, kernel and device
/// carried them out.
pub(super) fn text(table: &Table, kernel: &str, place: &str) -> String {
    let mut made_by = Table::new();
    let program = concat!("allpairs ", env!("CARGO_PKG_VERSION"));
    let entries = [program, version::COMMIT, kernel, place];
    for (key, value) in OF_MADE_BY.into_iter().zip(entries) {
        made_by.insert(key.into(), value.into());
    }
    let units = units(table);
    let options: String = (table.iter())
        .map(|(key, value)| {
            let whole = value.as_integer().map(|number| number as f64);
            let number = value.as_float().or(whole);
            let measured = units.and_then(|units| in_units(key, number?, &units));
            let remark = measured.map(|text| format!(" # {text}"));
            format!("{key} = {value}{}\n", remark.unwrap_or_default())
        })
        .collect();
    let made_by = Table::from_iter([(MADE_BY.to_owned(), Value::Table(made_by))]);
    format!(
        "# What this run was asked for; `allpairs run run.toml` does it again.\n{options}\n{made_by}"
    )
}

/// A number of an option that takes times or lengths, with its unit.
fn in_units(key: &str, number: f64, units: &Units) -> Option<String> {
    let command = Options::command();
    // Lengths of models are numbers in a unit of their own.
    let mut arguments = command
        .get_arguments()
        .filter(|arg| arg.get_help_heading() != Some(HEADING));
    let arg = arguments.find(|arg| arg.get_long() == Some(key))?;
    match arg.get_value_names()?.first()?.split('|').next()? {
        "TIME" => Some(Times::of(Some(units), &[], number.abs()).text(number)),
        "LENGTH" => Some(say::length(number, Some(units))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::damage::{Random, change};
    use clap::FromArgMatches;

    fn given(arguments: &[&str]) -> ArgMatches {
        let arguments = ["run"].iter().chain(arguments);
        Options::command().try_get_matches_from(arguments).unwrap()
    }

    fn debug(matches: &ArgMatches) -> String {
        format!("{:?}", Options::from_arg_matches(matches).unwrap())
    }

    fn merged(text: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let merged = matches(&text.parse()?, Some(&given(arguments)))?;
        Ok(debug(&merged))
    }

    #[test]
    fn a_table_round_trips() {
        let seed = format!("--seed={}", u64::MAX);
        let leapfrog = "--integrator=leapfrog";
        let given = given(&["plummer", "--bodies=50", "--dt=1e-3", &seed, leapfrog]);
        let table = table(&given);
        assert_eq!(table["bodies"], Value::Integer(50));
        assert_eq!(table["dt"], Value::Float(1e-3));
        assert_eq!(table["seed"], Value::String(u64::MAX.to_string()));
        assert_eq!(table["integrator"], Value::String("leapfrog".into()));
        let text = text(&table, "cpu-f64", "CPU");
        assert!(
            text.contains("[made-by]") && text.contains("cpu-f64") && text.contains("commit = "),
            "{text}"
        );
        let read: Table = text.parse().unwrap();
        let again = matches(&read, None).unwrap();
        assert_eq!(debug(&again), debug(&given));
    }

    /// Times and lengths stand in the unit of the bodies, so that none loses a digit, next to what they are for people.
    #[test]
    fn numbers_have_their_units_beside_them() {
        let options = [
            "--dt=0.02",
            "--softening=0.5",
            "--eta=0.01",
            "--escape-radius=30",
        ];
        let of = |units: &[&str]| {
            let given = given(&[&["a.csv"], &options[..], units].concat());
            text(&table(&given), "cpu-f64", "CPU")
        };
        let told = of(&["--units=pc"]);
        for line in [
            "dt = 0.02 # 19555.8 yr\n",
            "escape-radius = 30 # 30.0000 pc\n",
            "eta = 0.01\n",
            "softening = 0.5 # 0.5000 pc\n",
        ] {
            assert!(told.contains(line), "{told}");
        }
        assert!(of(&[]).contains("dt = 0.02\n"), "{}", of(&[]));
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let text = "input = \"plummer\"\nsteps = 5\ngravity = 2.0\noverwrite = true";
        let found = merged(text, &["x.toml", "--steps=7"]).unwrap();
        assert!(
            found.contains("steps: Some(7)") && found.contains("g: Some(2.0)"),
            "{found}"
        );
        assert!(
            found.contains("overwrite: true") && found.contains("plummer"),
            "{found}"
        );
        // One end of the run replaces another.
        let found = merged(text, &["x.toml", "--until=3"]).unwrap();
        assert!(
            found.contains("steps: None") && found.contains("until: Some(Measure { text: \"3.0\""),
            "{found}"
        );
        let both = format!("{text}\nuntil = 3");
        let error = merged(&both, &["x.toml"]).unwrap_err().to_string();
        assert!(
            error.contains("--steps") && error.contains("--until"),
            "{error}"
        );
        // Fields of the file are several; those of the command line take the place of all.
        let fields = "field = [\"point:mass=1\", \"nfw:mass=1,scale=2\"]";
        let text_with_fields = format!("{text}\n{fields}");
        let found = merged(&text_with_fields, &["x.toml"]).unwrap();
        let both = "fields: [\"point:mass=1\", \"nfw:mass=1,scale=2\"]";
        assert!(found.contains(both), "{found}");
        let found = merged(&text_with_fields, &["x.toml", "--field=point:mass=3"]).unwrap();
        assert!(found.contains("fields: [\"point:mass=3\"]"), "{found}");
        // A default on the command line is not given.
        let found = merged(text, &["x.toml"]).unwrap();
        assert!(
            found.contains("steps: Some(5)") && found.contains("g: Some(2.0)"),
            "{found}"
        );
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for (text, part) in [
            ("stepz = 5", "--steps"),
            ("steps = \"many\"", "many"),
            ("steps = -1", "-1"),
            ("help = true", "help"),
            ("steps = 1979-05-27", "date"),
            ("[steps]\nx = 1", "steps"),
            (
                "[made-by]\nprogram = \"a\"\nuntil = 3",
                "`until` stands below [made-by]",
            ),
            ("integrator = \"rk4\"", "yoshida4"),
            ("dt = [1, 2]", "`dt` has 2 values"),
            ("bodies = [100, 20]", "`bodies` has 2 values"),
            ("overwrite = [true, true]", "`overwrite` has 2 values"),
            ("steps = []", "`steps` has 0 values"),
        ] {
            let text = format!("input = \"plummer\"\n{text}");
            let error = merged(&text, &["x.toml"]).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    /// As `tests/fuzz.rs` does it for other files, with the same variables: files changed at random are
    /// refused or read. What is read is written, and read again as the same.
    #[test]
    fn files_that_nobody_wrote_are_survived() {
        const INPUTS: u64 = 2000;
        let number = |variable: &str| std::env::var(variable).ok()?.parse::<u64>().ok();
        let seed = number("ALLPAIRS_FUZZ_SEED").unwrap_or(1);
        let end = number("ALLPAIRS_FUZZ_SECONDS").map(Duration::from_secs);
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        let seeds = [
            vec!["plummer", "--bodies=50", "--dt=1e-3", "--steps=5"],
            vec![
                "a.csv",
                "--until=3Myr",
                "--dt=0.5",
                "--integrator=hermite4",
                "--eta=0.01",
            ],
            vec!["disk-galaxy", "--accuracy=fast", "--snapshot-every=0.5"],
        ];
        let seeds = seeds.map(|options| text(&table(&given(&options)), "cpu-f64", "CPU"));
        let (start, mut inputs, mut read_ones) = (Instant::now(), 0, 0);
        while end.map_or(inputs < INPUTS, |end| start.elapsed() < end) {
            let [one, other] = [0; 2].map(|_| seeds[random.below(seeds.len())].as_bytes());
            let input = change(&mut random, one, other);
            fs::write(&path, &input).unwrap();
            if let Ok(found) = read(&path).and_then(|table| matches(&table, None)) {
                let again = matches(&table(&found), None);
                let [found, again] = [found, again.unwrap()].map(|matches| debug(&matches));
                assert_eq!(found, again, "{}", String::from_utf8_lossy(&input));
                read_ones += 1;
            }
            inputs += 1;
        }
        println!("run.toml: {inputs} inputs, {read_ones} of them read");
        assert!(read_ones > 0);
    }
}
