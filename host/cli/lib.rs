//! The program `allpairs`: one file per subcommand, and here what they share.

mod asked;
mod bench;
mod bench_rows;
mod bench_study;
mod choices;
mod code;
mod config;
mod convert;
#[cfg(test)]
#[path = "../../tests/damage.rs"]
mod damage;
mod devices;
mod drift;
mod drive;
mod encounters;
mod field;
mod flags;
mod ic;
mod info;
mod inspect;
mod kernel;
mod list;
mod made;
mod manual;
mod options;
mod outputs;
mod own_frame;
mod pace;
mod physics;
mod plot;
mod progress;
mod ranks;
mod render;
mod resume;
mod run;
mod series;
mod settings;
mod size;
mod systems;
mod test_particles;
mod tune;
mod validate;
mod verify;
mod view;
mod watch;

pub use resume::{KeptRun, kept_run};

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use allpairs::io::{Format, Loaded, Printable, ReadError};
use allpairs::memory;
use allpairs::selection::DeviceChoice;
use allpairs::units::Units;
use anyhow::{Context, ensure};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle,
};
use terminal_size::{Width, terminal_size_of};

/// Direct-summation gravitational N-body simulation, with GPU kernels written in Rust.
#[derive(Debug, Parser)]
#[command(name = "allpairs", version, long_version = LONG_VERSION, about, max_term_width = 100)]
#[command(
    after_help = "Without a command: a demonstration, 100 steps of a galaxy of 20 000 bodies."
)]
struct Arguments {
    /// Task; without one, a demonstration: 100 steps of a galaxy of 20 000 bodies.
    #[command(subcommand)]
    command: Option<Command>,
}

/// Text of `--version`.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit ",
    env!("ALLPAIRS_COMMIT")
);

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
    /// Print completions for a shell, to be sourced by it.
    Completions(manual::CompletionOptions),
    /// Write man pages.
    Man(manual::ManOptions),
}

/// The commit that this program was built from, in a release build within its repository or from
/// its package; "unknown" elsewhere.
const COMMIT: &str = env!("ALLPAIRS_COMMIT");

/// A failed check, which has been reported: only the exit code is left to give.
#[derive(Debug, thiserror::Error)]
#[error("the checks failed")]
struct ChecksFailed;

/// Reports failures; an error if there are any.
fn tell(failures: &[impl Display], out: &mut impl Write) -> anyhow::Result<()> {
    for failure in failures {
        writeln!(out, "FAILED {failure}")?;
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(ChecksFailed.into())
    }
}

/// Interrupted by Ctrl-C before the end; outputs have been written.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

/// Runs the program with these arguments, of which the first is its name, and returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    fail_at_size_limits();
    let arguments: Vec<OsString> = arguments.into_iter().map(without_exponent).collect();
    let shared = ranks::take_part(&arguments, || told(&arguments));
    shared.unwrap_or_else(|| match threads_asked_for().and_then(start_threads) {
        Ok(()) => told(&arguments),
        Err(error) => report(&error),
    })
}

/// Does what the arguments say.
fn told(arguments: &[OsString]) -> u8 {
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
        None => run::demo(&mut out),
        Some(Command::Run(_)) => {
            let (_, matches) = matches.subcommand().expect("there is one");
            run::run(matches, &mut out)
        }
        Some(Command::Resume(options)) => resume::resume(options, &mut out),
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
        Some(Command::Systems(options)) => systems::systems(options, &mut out),
        Some(Command::Render(options)) => render::render(options, &mut out),
        Some(Command::View(options)) => view::view(options, &mut out),
        Some(Command::Plot(options)) => plot::plot(options, &mut out),
        Some(Command::Inspect(options)) => inspect::inspect(options, &mut out),
        Some(Command::Completions(options)) => manual::completions(options, &mut out),
        Some(Command::Man(options)) => manual::man(options, &mut out),
    };
    match result.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => code::SUCCESS,
        Err(error) => report(&error),
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

/// Environment variable for the number of threads; rayon's.
const THREADS: &str = "RAYON_NUM_THREADS";

/// Threads that the environment asks for, if it does.
fn threads_asked_for() -> anyhow::Result<Option<usize>> {
    let Some(text) = std::env::var_os(THREADS).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let number = text.to_str().and_then(|text| text.trim().parse().ok());
    let number = number.with_context(|| {
        let text = Printable(text.to_string_lossy());
        format!("the variable `{THREADS}` must be a number of threads, got `{text}`")
    })?;
    Ok(Some(number))
}

/// Starts so many threads; without a number, rayon will.
fn start_threads(threads: Option<usize>) -> anyhow::Result<()> {
    let Some(threads) = threads else {
        return Ok(());
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let most = 16 * processors.max(16);
    ensure!(
        threads <= most,
        "`{THREADS}` must be ≤ {most} on this machine of {}, got {threads}",
        counted(processors, "processor", "processors")
    );
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .with_context(|| format!("cannot start {threads} threads"))
}

/// Refuses bodies of a run or a test for which there is no memory.
fn check_memory(bodies: u64) -> Result<(), memory::NoRoom> {
    memory::check(bodies, memory::BYTES_PER_BODY_OF_A_RUN)
}

/// Removes what killed processes left half-written in the folder of `file`, which is to be written.
fn remove_abandoned(file: &Path) {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Where that fails, writing fails or the rest does no harm.
    for path in allpairs::io::remove_abandoned(folder).unwrap_or_default() {
        let path = Printable(path.display());
        eprintln!("allpairs: note: removed {path}, which a killed process left half-written");
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

fn report(error: &anyhow::Error) -> u8 {
    let code = code::of(error);
    if let (code::USAGE, Some(clap)) = (code, error.downcast_ref::<clap::Error>()) {
        let place = error.to_string();
        if place != clap.to_string() {
            eprintln!("allpairs: {place}:"); // such as a file that has the option
        }
        let _ = clap.print(); // in colour, with suggestions
        return code;
    }
    // Which machine's disk is full, or has no such file.
    let of_files = matches!(code, code::IO | code::DATA);
    let message = flags::message(error);
    match ranks::this_rank().filter(|_| of_files) {
        Some(rank) => eprintln!("allpairs: {rank}: {message}"),
        None => eprintln!("allpairs: {message}"),
    }
    code
}

/// Reads a number of bodies: 16384, or 1e6, as `--bodies` of `run` takes it.
fn number_of_bodies(text: &str) -> Result<u32, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| *number >= 1.0 && number.fract() == 0.0);
    match number {
        Some(number) if number <= f64::from(u32::MAX) => Ok(number as u32),
        Some(_) => Err(format!("there are at most {} bodies here", u32::MAX)),
        None => Err("a number of bodies is a whole number ≥ 1, such as 16384 or 1e6".to_owned()),
    }
}

/// Reads a snapshot with its units, and says on the standard error what its file holds that is not
/// used.
fn load(path: &Path, format: Option<Format>) -> Result<Loaded, ReadError> {
    let loaded = allpairs::io::load(path, format)?;
    for note in &loaded.notes {
        tell_note(path, note);
    }
    Ok(loaded)
}

/// Units of the bodies of a file: those that it records, or those `asked` for where it records none, or
/// those of the run that wrote it, which is said once.
///
/// # Errors
/// If both are known and differ: numbers would get another meaning.
fn units_of(
    path: &Path,
    recorded: Option<Units>,
    asked: Option<Units>,
) -> anyhow::Result<Option<Units>> {
    if let (Some(recorded), Some(asked)) = (recorded, asked) {
        ensure!(
            recorded.are_those_of(&asked),
            "{file} records its units, {recorded}, and --units says {asked}: leave --units out, or convert \
             the file (`allpairs convert {file} NEW --units TO`). If what it records is wrong, convert it to \
             .csv first, which records none",
            file = Printable(path.display())
        );
    }
    if let Some(known) = asked.or(recorded) {
        return Ok(Some(known));
    }
    if !outputs::is_of_run(path) {
        return Ok(None);
    }
    // Of many snapshots, one asks and says it.
    static OF_RUNS: Mutex<BTreeMap<PathBuf, Option<Units>>> = Mutex::new(BTreeMap::new());
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut of_runs = OF_RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    let units = of_runs.entry(folder.to_owned()).or_insert_with(|| {
        let units = outputs::units_of_run(folder)?;
        let note = format!("in units of {units}, by the run.toml beside it");
        tell_note(path, &note);
        Some(units)
    });
    Ok(*units)
}

fn tell_note(path: &Path, note: &impl Display) {
    eprintln!("allpairs: note: {}: {note}", Printable(path.display()));
}

/// An output that may lose its reader (`allpairs … | head`): from then on what is written to it goes
/// nowhere, and the work is done all the same.
struct WhileRead<W>(Option<W>);

impl<W: Write> WhileRead<W> {
    fn unless_closed<T>(
        &mut self,
        closed: T,
        action: impl FnOnce(&mut W) -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(out) = &mut self.0 else {
            return Ok(closed);
        };
        match action(out) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.0 = None;
                Ok(closed)
            }
            other => other,
        }
    }
}

impl<W: Write> Write for WhileRead<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_closed(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_closed((), Write::flush)
    }
}

/// Names a number of things: `1 body`, `2 bodies`.
fn counted<N: Copy + Display + PartialEq + From<u8>>(n: N, one: &str, many: &str) -> String {
    let things = if n == N::from(1) { one } else { many };
    format!("{n} {things}")
}

/// Device to run on.
#[derive(Debug, clap::Args)]
struct Where {
    /// Device to run on: auto (the first GPU, or the CPU where there is none; for a run of many bodies
    /// all GPUs of its kind), cpu, emulator, cuda, or cuda:1 for the second GPU; or GPUs that compute
    /// one system together: cuda:0,1, cuda:all, emulator:3. Where an MPI launcher starts several
    /// ranks, cuda is a GPU of its own for each
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
}

/// Message that no format is known for a file that is to be written.
fn no_format(path: &Path) -> String {
    format!(
        "the name {} does not tell a format: use .allpairs, .hdf5, .npz, .vtp, .csv, .tipsy or \
         .bin, or give the format",
        path.display()
    )
}

/// A line under the header, and nothing else that would come along when a table is copied.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// An empty table with these columns; those whose name starts with `#` hold numbers.
fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(columns.iter().map(|name| name.trim_start_matches('#')));
    for (index, name) in columns.iter().enumerate() {
        if name.starts_with('#')
            && let Some(column) = table.column_mut(index)
        {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Fewer columns than this leave single letters of a sentence beside the names.
const LEAST_COLUMNS: u16 = 72;

/// Lets the sentences of a table wrap within their columns on a terminal too narrow for them; names,
/// in the first column, stay whole.
fn wrap_sentences(table: &mut Table) {
    match terminal_size_of(io::stdout()) {
        Some((Width(columns), _)) if columns >= LEAST_COLUMNS => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(columns);
        }
        _ => return,
    }
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
}

/// With so many digits after the point, where these show enough and not too much: numbers in units
/// of a user's choice, such as SI's, may have any size.
fn fixed(x: f64, digits: usize) -> String {
    if is_plain(x, digits) {
        format!("{x:.digits$}")
    } else {
        format!("{x:.digits$e}")
    }
}

/// Returns whether so many digits after the point show the first three of a number, and not too
/// many stand before it.
fn is_plain(x: f64, digits: usize) -> bool {
    let least = 10.0_f64.powi(2 - i32::try_from(digits).unwrap_or(i32::MAX));
    x == 0.0 || (least..1e9).contains(&x.abs())
}

/// A length or a time for people: `0.0479`, but `1.0000e-17`.
fn figure(x: f64) -> String {
    match x.abs() {
        0.001..1e6 => format!("{x:.4}"),
        0.0 => "0".to_owned(),
        _ => format!("{x:.4e}"),
    }
}

/// A number as it was given, in a message: all its digits, but no row of zeros.
fn plain(x: f64) -> String {
    match x.abs() {
        0.0 | 1e-5..1e16 => x.to_string(),
        _ => format!("{x:e}"),
    }
}

/// A duration for people: `42 s`, `12 min`, `3.5 h`, `25 days`.
fn duration(seconds: f64) -> String {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        ..5_400.0 => format!("{:.0} min", seconds / MINUTE),
        ..172_800.0 => format!("{:.1} h", seconds / HOUR),
        _ => format!("{:.0} days", seconds / DAY),
    }
}

/// A rate for people: `1.92e12`.
fn scientific(value: f64) -> String {
    format!("{value:.2e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_their_digits() {
        for (value, text) in [
            (0.0, "0.0000"),
            (0.05, "0.0500"),
            (-0.01, "-0.0100"),
            (0.0025, "2.5000e-3"),
            (-1e-9, "-1.0000e-9"),
            (86_400.0, "86400.0000"),
            (1.989e30, "1.9890e30"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(fixed(value, 4), text);
        }
        assert!(is_plain(1e-6, 8) && !is_plain(9e-7, 8) && !is_plain(f64::INFINITY, 8));
    }

    #[test]
    fn messages_have_no_rows_of_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-1.0, "-1"),
            (0.01, "0.01"),
            (1e-300, "1e-300"),
            (-5e-324, "-5e-324"),
            (1e300, "1e300"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(plain(value), text);
        }
        for (seconds, text) in [
            (61.0, "61 s"),
            (600.0, "10 min"),
            (9000.0, "2.5 h"),
            (2_160_000.0, "25 days"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn numbers_of_bodies_are_read() {
        for (text, number) in [("1", 1), ("16384", 16384), ("1e9", 1_000_000_000)] {
            assert_eq!(number_of_bodies(text), Ok(number));
        }
        for (text, part) in [
            ("0", "≥ 1"),
            ("-5", "≥ 1"),
            ("1.5", "whole"),
            ("many", "1e6"),
            ("nan", "whole"),
            ("1e10", "at most 4294967295"),
        ] {
            let refused = number_of_bodies(text).expect_err(text);
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }

    #[test]
    fn causes_are_told_once() {
        let error = anyhow::anyhow!("no file")
            .context("cannot read a: no file")
            .context("in run.toml");
        assert_eq!(
            flags::message(&error),
            "in run.toml: cannot read a: no file"
        );
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
