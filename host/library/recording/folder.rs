//! The folder of a run: the claim on it, the files that runs leave in it, and the number of the next snapshot.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::heading::Column;
use super::{binaries, changes, events, log, orbit, pairs, particles};
use crate::io::is_partial;
use crate::units::Measured;

/// Table of the snapshots: their numbers and times.
pub(super) const INDEX: &str = "index.csv";

pub(super) const OF_INDEX: [Column; 2] = [("number", Measured::Bare), ("time", Measured::Time)];

/// File of a run's folder that the claim on it is made through: never replaced and never removed.
const LOCK: &str = ".lock";

/// A claim on a run's folder, which ends with the process however that ends.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not used")] File);

/// Claims a folder, which must be there.
///
/// # Errors
/// `WouldBlock` if another process has it.
pub fn lock(folder: &Path) -> io::Result<Lock> {
    let mut options = OpenOptions::new();
    let file = options.create(true).write(true).truncate(false);
    let file = file.open(folder.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            "another process is running there",
        )),
        // Some file systems know no locks; a run there is better than none.
        Err(TryLockError::Error(fault)) if fault.kind() == io::ErrorKind::Unsupported => {
            Ok(Lock(file))
        }
        Err(TryLockError::Error(fault)) => Err(fault),
    }
}

/// Names of the tables in the folder of a run.
pub fn tables() -> impl Iterator<Item = &'static str> {
    let single = [
        particles::NAME,
        pairs::NAME,
        binaries::NAME,
        changes::NAME,
        INDEX,
        orbit::ORBIT,
    ];
    log::NAMES.into_iter().chain(events::NAMES).chain(single)
}

/// The files that a run leaves in its folder, as far as this module writes them, and what a killed
/// process left half-written.
///
/// # Errors
/// The file system's refusal.
pub fn leftovers(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = vec![];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let recorded = tables().any(|table| table == name)
            || name.starts_with("checkpoint")
            || name
                .strip_prefix("snapshot-")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if recorded || is_partial(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Step of the last snapshot in the table of a run, if there is one.
pub(super) fn last_snapshot(folder: &Path) -> Option<u64> {
    let table = fs::read_to_string(folder.join(INDEX)).unwrap_or_default();
    let of_row = |row: &str| row.split(',').next()?.parse().ok();
    table.lines().filter_map(of_row).next_back()
}

/// Number of the next snapshot of a run: after the rows of the table, or after the files if the table is lost.
pub(super) fn next_number(folder: &Path) -> io::Result<u64> {
    let table = fs::read_to_string(folder.join(INDEX))?;
    let of_row = |row: &str| row.split(',').nth(1)?.parse::<u64>().ok();
    if let Some(last) = table.lines().filter_map(of_row).max() {
        return Ok(last + 1);
    }
    let mut next = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let number = name
            .strip_prefix("snapshot-")
            .and_then(|digits| digits.parse().ok());
        next = number.map_or(next, |number: u64| next.max(number + 1));
    }
    Ok(next)
}
