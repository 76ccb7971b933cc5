//! Snapshot files that commands read and write.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use allpairs::io::{Format, Loaded, Printable, ReadError};
use allpairs::units::Units;
use anyhow::ensure;

use crate::outputs;

/// Reads a snapshot with its units, and says on the standard error what its file holds that is not
/// used.
pub(super) fn load(path: &Path, format: Option<Format>) -> Result<Loaded, ReadError> {
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

/// Prints a note about a file on the standard error.
pub(super) fn tell_note(path: &Path, note: &impl Display) {
    eprintln!("allpairs: note: {}: {note}", Printable(path.display()));
}

/// Message that no format is known for a file that is to be written.
pub(super) fn no_format(path: &Path) -> String {
    format!(
        "the name {} does not tell a format: use .allpairs, .hdf5, .npz, .vtp, .csv, .tipsy or \
         .bin, or give the format",
        path.display()
    )
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
        eprintln!("allpairs: note: removed {path}, which a killed process left half-written");
    }
}
