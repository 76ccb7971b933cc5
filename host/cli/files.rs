//! Snapshot files that commands read and write.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Cursor, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use allpairs::io::{
    Format, Loaded, Overwrite, Printable, ReadError, ReadFault, Reading, Snapshot, WriteError,
    read_stream,
};
use allpairs::units::Units;
use anyhow::{Context, ensure};

use crate::options::STANDARD;
use crate::outputs;
use crate::say;

/// Returns whether a path names the standard input or output.
pub(super) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == STANDARD || path.as_os_str() == "/dev/stdout"
}

/// Reads a snapshot with its units and notes.
pub(super) fn read(path: &Path, reading: Reading) -> Result<Loaded, ReadError> {
    let is_input = path.as_os_str() == STANDARD;
    if !is_input && !allpairs::io::is_pipe(path) {
        return allpairs::io::load(path, reading);
    }
    let name = match is_input {
        true => Path::new("standard input"),
        false => path,
    };
    let bytes = stream(path, is_input).map_err(|fault| ReadError {
        path: name.to_owned(),
        fault,
    })?;
    allpairs::io::load_from(Cursor::new(&bytes[..]), name, reading)
}

/// All bytes of the standard input, or of a pipe. Some commands read a snapshot twice, and there it is once.
fn stream(path: &Path, is_input: bool) -> Result<Arc<Vec<u8>>, ReadFault> {
    static READ: Mutex<BTreeMap<PathBuf, Arc<Vec<u8>>>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bytes) = read.get(path) {
        return Ok(Arc::clone(bytes));
    }
    let waiting = Waiting::on(path);
    let bytes = match is_input {
        true => {
            let mut input = io::stdin().lock();
            if input.is_terminal() {
                let problem = "it is a terminal: pipe a snapshot into it";
                return Err(io::Error::other(problem).into());
            }
            read_stream(&mut input)?
        }
        // Opening waits for a writer.
        false => read_stream(&mut File::open(path)?)?,
    };
    drop(waiting);
    let bytes = Arc::new(bytes);
    read.insert(path.to_owned(), Arc::clone(&bytes));
    Ok(bytes)
}

/// Tells that a pipe is waited for, if it is for some time.
struct Waiting {
    /// Ends the wait when it is dropped.
    _reading: mpsc::Sender<()>,
}

impl Waiting {
    fn on(path: &Path) -> Self {
        /// Programs before this one in a pipe begin sooner.
        const PATIENCE: Duration = Duration::from_secs(2);
        let (sender, receiver) = mpsc::channel::<()>();
        let path = path.to_owned();
        thread::spawn(move || {
            if receiver.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                tell_note(
                    &path,
                    &"waiting for the end of what is written into this pipe",
                );
            }
        });
        Self { _reading: sender }
    }
}

/// Reads a snapshot with its units, and says on the standard error what its file holds that is not
/// used.
pub(super) fn load(path: &Path, reading: Reading) -> Result<Loaded, ReadError> {
    load_but(path, reading, |_| false)
}

/// Like [`load`], without notes on what is used all the same.
pub(super) fn load_but(
    path: &Path,
    reading: Reading,
    is_used: impl Fn(&str) -> bool,
) -> Result<Loaded, ReadError> {
    let loaded = read(path, reading)?;
    for note in loaded.notes.iter().filter(|note| !is_used(note)) {
        tell_note(path, note);
    }
    Ok(loaded)
}

/// Units of the bodies of a file: those that it records, or those `asked` for where it records none, or
/// those of the run that wrote it, which is said once.
///
/// # Errors
/// If both are known and differ: numbers would get another meaning.
pub(super) fn units_of(
    path: &Path,
    recorded: Option<Units>,
    asked: Option<Units>,
) -> anyhow::Result<Option<Units>> {
    if let (Some(recorded), Some(asked)) = (recorded, asked) {
        ensure!(
            recorded.are_those_of(&asked),
            "{file} records its units, {recorded}, and --units says {asked}: leave --units out, or convert \
             the file (`allpairs convert {file} NEW --units TO`). If what it records is wrong, convert it to \
             .vtp first, which records none",
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

/// Prints a note about a file on the standard error.
pub(super) fn tell_note(path: &Path, note: &impl Display) {
    say::tell(format_args!("note: {}: {note}", Printable(path.display())));
}

/// The format of a file that is to be written: the one `asked` for, or the one that its name tells. A table
/// goes to the standard output.
pub(super) fn format_of(path: &Path, asked: Option<Format>) -> anyhow::Result<Format> {
    let standard = is_standard(path).then_some(Format::Csv);
    let format = asked.or(standard).or_else(|| Format::from_path(path));
    format.with_context(|| {
        format!(
            "the name {} does not tell a format: use .allpairs, .hdf5, .npz, .vtp, .csv, .tipsy, .bin, .petar or \
             .nbody6, or give the format",
            path.display()
        )
    })
}

/// Writes a snapshot to a file, or to `out`, and returns whether it was a file.
pub(super) fn write(
    path: &Path,
    format: Format,
    (snapshot, units): (&Snapshot, Option<Units>),
    overwrite: Overwrite,
    out: &mut impl Write,
) -> anyhow::Result<bool> {
    for remark in allpairs::io::remarks(format, snapshot, units) {
        tell_note(path, &remark);
    }
    if is_standard(path) {
        let mut out = BufWriter::new(out);
        let written = allpairs::io::write_to(&mut out, format, snapshot, units);
        let written = written.and_then(|()| Ok(out.flush()?));
        written.map_err(|fault| WriteError {
            path: "standard output".into(),
            fault,
        })?;
        return Ok(false);
    }
    remove_abandoned(path);
    allpairs::io::write_in_units(path, format, snapshot, units, overwrite)?;
    Ok(true)
}

/// Removes what killed processes left half-written in the folder of `file`, which is to be written.
pub(super) fn remove_abandoned(file: &Path) {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Where that fails, writing fails or the rest does no harm.
    for path in allpairs::io::remove_abandoned(folder).unwrap_or_default() {
        let path = Printable(path.display());
        say::tell(format_args!(
            "note: removed {path}, which a killed process left half-written"
        ));
    }
}
