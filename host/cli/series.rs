//! Snapshots that belong together, as the commands that draw them take them.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use allpairs::initial_conditions::SOLAR_SYSTEM_NAMES;
use allpairs::io::{Format, Printable, Reading, Snapshot};
use allpairs::recording::tables;
use allpairs::units::Units;
use anyhow::{Context, bail, ensure};

use crate::choices::Cosmological;
use crate::config;
use crate::files;
use crate::outputs::{self, CONFIG};

/// Snapshot files.
#[derive(Debug, clap::Args)]
pub(super) struct Series {
    /// Snapshot files, in the order of time; or the folder of a run, for all snapshots in it.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The format of the files, if their contents are not to decide.
    #[arg(long, value_name = "NAME")]
    format: Option<Format>,
    /// Of many snapshots, take only each COUNT-th.
    #[arg(long, value_name = "COUNT", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Units of the bodies, where the files do not record them: kpc, or pc,Msun,km/s.
    #[arg(long, value_name = "SYSTEM")]
    units: Option<Units>,
    #[command(flatten)]
    cosmological: Cosmological,
    /// Notes that were told, of all files once.
    #[arg(skip)]
    told: RefCell<BTreeSet<String>>,
    /// The file that was read first, and its units, which all that are shown have.
    #[arg(skip)]
    first: RefCell<Option<(PathBuf, Option<Units>)>>,
}

impl Series {
    /// The files, one at least.
    pub(super) fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut files = vec![];
        for path in &self.files {
            if path.is_dir() {
                let snapshots = in_folder(path)?;
                let last = self.final_after(path, &snapshots)?;
                files.extend(snapshots.into_iter().chain(last));
            } else {
                files.push(path.clone());
            }
        }
        Ok(files.into_iter().step_by(self.every as usize).collect())
    }

    /// The final snapshot of a run in this folder, where it is later than all others: a run can stop
    /// between the times of two.
    fn final_after(&self, folder: &Path, snapshots: &[PathBuf]) -> anyhow::Result<Option<PathBuf>> {
        let is_other =
            |path: &PathBuf| Format::from_path(path).is_some() && !snapshots.contains(path);
        let path = outputs::finals(folder)?.into_iter().find(is_other);
        let (Some(path), Some(latest)) = (path, snapshots.last()) else {
            return Ok(None);
        };
        let time = |path| allpairs::io::load(path, self.format).map(|loaded| loaded.snapshot.time);
        let [first, latest, end] = [time(&snapshots[0])?, time(latest)?, time(&path)?];
        let is_beyond = match latest < first {
            true => end < latest, // a run that goes back in time
            false => end > latest,
        };
        Ok(is_beyond.then_some(path))
    }

    /// Reads a snapshot.
    pub(super) fn read(&self, file: &Path) -> anyhow::Result<Snapshot> {
        Ok(self.load(file)?.0)
    }

    /// Reads a snapshot in the units of the one that was read first, and these units where they are known.
    ///
    /// # Errors
    /// The file cannot be read, or has units where the first has none, or the other way round.
    pub(super) fn load(&self, file: &Path) -> anyhow::Result<(Snapshot, Option<Units>)> {
        let reading = Reading {
            format: self.format,
            physical: self.cosmological.physical,
            units: self.units,
        };
        let loaded = files::read(file, reading)?;
        for note in loaded.notes {
            if self.told.borrow_mut().insert(note.to_string()) {
                files::tell_note(file, &note);
            }
        }
        let units = files::units_of(file, loaded.units, self.units)?;
        let mut first = self.first.borrow_mut();
        let (before, wanted) = first.get_or_insert_with(|| (file.to_owned(), units));
        let mut snapshot = loaded.snapshot;
        match (units, *wanted) {
            (None, None) => {}
            (Some(units), Some(wanted)) if units.are_those_of(&wanted) => {}
            (Some(units), Some(wanted)) => {
                let factors = units.factors_to(&wanted);
                factors.apply(&mut snapshot.bodies);
                snapshot.time *= factors.time;
            }
            (None, Some(known)) => bail!(unlike(before, &known, file)),
            (Some(known), None) => bail!(unlike(file, &known, before)),
        }
        Ok((snapshot, *wanted))
    }

    /// The configuration of the run that left the snapshots, if they are in its folder.
    pub(super) fn run(&self) -> Option<(PathBuf, toml::Table)> {
        let first = self.files.first()?;
        let folder = if first.is_dir() {
            first
        } else {
            first.parent()?
        };
        let table = config::read(&folder.join(CONFIG)).ok()?;
        Some((folder.to_owned(), table))
    }

    /// Input of the run, and its folder.
    pub(super) fn title(&self) -> Option<String> {
        let (folder, table) = self.run()?;
        let input = Path::new(table.get("input")?.as_str()?)
            .file_stem()?
            .to_string_lossy()
            .into_owned();
        let folder = fs::canonicalize(folder.join(".")).ok()?;
        let folder = folder.file_name()?.to_string_lossy();
        Some(if folder == input {
            input
        } else {
            format!("{input} ({folder})")
        })
    }

    /// Names of the bodies by their ids, where the run says what they are.
    pub(super) fn names(&self) -> &'static [&'static str] {
        let run = self.run();
        let input = run
            .as_ref()
            .and_then(|(_, table)| table.get("input")?.as_str());
        match input {
            Some("solar-system") => &SOLAR_SYSTEM_NAMES,
            Some("sun-earth" | "sun-earth-moon") => &["Sun", "Earth", "Moon"],
            _ => &[],
        }
    }
}

/// Message about snapshots of which one has units and another has none.
fn unlike(with: &Path, units: &Units, without: &Path) -> String {
    format!(
        "{} is in units of {units}, and the units of {} are not known: give --units, which are for files that record none",
        Printable(with.display()),
        Printable(without.display())
    )
}

/// The snapshots in a folder, by name: files called `snapshot…` where there are any, else all but the tables of a run. They
/// are in the folder itself or in `snapshots`.
pub(super) fn in_folder(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let inner = folder.join("snapshots");
    let folder = if inner.is_dir() { &inner } else { folder };
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files = vec![];
    for entry in entries {
        let path = entry?.path();
        let is_table = tables().any(|table| table == name(&path));
        if path.is_file() && !is_table && Format::from_path(&path).is_some() {
            files.push(path);
        }
    }
    let is_snapshot = |path: &PathBuf| name(path).starts_with("snapshot");
    if files.iter().any(is_snapshot) {
        files.retain(is_snapshot);
    }
    ensure!(
        !files.is_empty(),
        "there are no snapshots in {}",
        folder.display()
    );
    files.sort_by(|a, b| natural(&name(a), &name(b)));
    Ok(files)
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The order in which people count: `a9` before `a10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let number = |text: &str| {
            let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            (digits > 0).then_some(digits)
        };
        match (number(a), number(b)) {
            (Some(m), Some(n)) => {
                let (x, y) = (
                    a[..m].trim_start_matches('0'),
                    b[..n].trim_start_matches('0'),
                );
                let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
                if order.is_ne() {
                    return order;
                }
                (a, b) = (&a[m..], &b[n..]);
            }
            _ => {
                let (mut rest_a, mut rest_b) = (a.chars(), b.chars());
                match (rest_a.next(), rest_b.next()) {
                    (None, None) => return Ordering::Equal,
                    (x, y) if x != y => return x.cmp(&y),
                    _ => (a, b) = (rest_a.as_str(), rest_b.as_str()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use allpairs::io::Overwrite;

    use super::*;

    #[test]
    fn numbers_count() {
        let mut names = ["s10.bin", "s9.bin", "s.bin", "r1", "s9-a", "s010.bin", "é2"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            ["r1", "s.bin", "s9-a", "s9.bin", "s10.bin", "s010.bin", "é2"]
        );
    }

    #[test]
    fn a_final_snapshot_belongs_to_the_series_if_it_is_later() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, time| {
            let bodies = allpairs::initial_conditions::plummer(3, 1).unwrap();
            let snapshot = Snapshot { time, bodies };
            let path = folder.path().join(name);
            allpairs::io::write(&path, Format::Csv, &snapshot, Overwrite::Allow).unwrap();
        };
        let series = Series {
            files: vec![folder.path().to_owned()],
            format: None,
            every: 1,
            units: None,
            cosmological: Cosmological { physical: None },
            told: RefCell::default(),
            first: RefCell::default(),
        };
        write("snapshot-1.csv", 1.0);
        for (time, files) in [(1.0, 1), (1.5, 2)] {
            write("final.csv", time);
            assert_eq!(series.files().unwrap().len(), files, "{time}");
        }
    }

    #[test]
    fn tables_of_a_run_are_no_snapshots() {
        let folder = tempfile::tempdir().unwrap();
        for name in tables() {
            fs::write(folder.path().join(name), "time\n0\n").unwrap();
        }
        let found = in_folder(folder.path());
        assert!(found.is_err_and(|error| error.to_string().starts_with("there are no snapshots")));
        fs::write(folder.path().join("final.csv"), "x,y,z,vx,vy,vz,mass\n").unwrap();
        assert_eq!(in_folder(folder.path()).unwrap().len(), 1);
    }

    #[test]
    fn snapshots_are_shown_in_the_units_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let row = "x,y,z,vx,vy,vz,mass\n1,2,3,4,5,6,7\n";
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let pc = write("pc.csv", format!("# units = pc,Msun,km/s\n{row}"));
        let kpc = write(
            "kpc.csv",
            format!("# units = kpc,Msun,km/s\n# time = 2\n{row}"),
        );
        let none = write("none.csv", row.to_owned());
        let series = |units: Option<&str>| Series {
            files: vec![],
            format: None,
            every: 1,
            units: units.map(|text| text.parse().unwrap()),
            cosmological: Cosmological { physical: None },
            told: RefCell::default(),
            first: RefCell::default(),
        };
        let all = series(None);
        assert_eq!(all.read(&pc).unwrap().bodies.x, [1.0]);
        let (converted, units) = all.load(&kpc).unwrap();
        assert!((converted.bodies.x[0] - 1e3).abs() < 1e-9, "{converted:?}");
        assert!((converted.bodies.vx[0] - 4.0).abs() < 1e-9, "{converted:?}");
        assert!((converted.time - 2e3).abs() < 1e-9, "{converted:?}");
        assert_eq!(units, Some("pc,Msun,km/s".parse().unwrap()));
        for [before, after] in [[&pc, &none], [&none, &pc]] {
            let several = series(None);
            several.read(before).unwrap();
            let refused = several.read(after).unwrap_err().to_string();
            assert!(
                refused.contains("pc.csv") && refused.contains("none.csv"),
                "{refused}"
            );
        }
        let given = series(Some("pc,Msun,km/s"));
        assert_eq!(given.read(&none).unwrap().bodies.x, [1.0]);
        assert_eq!(given.read(&pc).unwrap().bodies.x, [1.0]);
    }

    #[test]
    fn a_folder_stands_for_its_snapshots() {
        let folder = tempfile::tempdir().unwrap();
        assert!(in_folder(folder.path()).is_err());
        let write = |name: &str| fs::write(folder.path().join(name), "x").unwrap();
        let names = || {
            let files = in_folder(folder.path()).unwrap();
            files.iter().map(|file| name(file)).collect::<Vec<_>>()
        };
        ["b.bin", "a.tipsy", "a.png"].into_iter().for_each(write);
        assert_eq!(names(), ["a.tipsy", "b.bin"]);
        ["snapshot-10.bin", "snapshot-9.bin", "log.csv"]
            .into_iter()
            .for_each(write);
        assert_eq!(names(), ["snapshot-9.bin", "snapshot-10.bin"]);
        fs::create_dir(folder.path().join("snapshots")).unwrap();
        write("snapshots/0.csv");
        assert_eq!(names(), ["0.csv"]);
    }
}
