//! Results of a benchmark as files: JSON that can be read again and compared, CSV for tables.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use allpairs::io::{Overwrite, write_atomically};

/// The version of the JSON form: readers refuse others.
pub const VERSION: u32 = 1;

/// A benchmark on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRecord {
    /// [`VERSION`].
    pub version: u32,
    /// Version of Allpairs.
    pub allpairs: String,
    /// When it was measured, in seconds since 1970.
    pub unix_time: u64,
    /// Device it ran on.
    pub device: String,
    /// Version of the driver, where there is one.
    pub driver: Option<String>,
    /// The CPU of the same machine.
    #[serde(default)]
    pub host: Option<String>,
    /// The bodies of all rows, where no study says it.
    #[serde(default)]
    pub start: Option<String>,
    /// The measurements.
    pub rows: Vec<BenchRow>,
    /// Variants that were wrong, and therefore not timed.
    #[serde(default)]
    pub failures: Vec<BenchFailure>,
}

/// One kernel at one number of bodies, verified and timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRow {
    /// Name.
    pub kernel: String,
    /// The study with the ladder that it is a rung of.
    pub study: Option<String>,
    /// The kernel that it differs from in one choice.
    pub predecessor: Option<String>,
    /// All choices that it makes, by axis: `unroll`: `16`.
    #[serde(default)]
    pub choices: BTreeMap<String, String>,
    /// Number of bodies.
    pub bodies: u64,
    /// Number of bodies that was asked for, where that would have taken too long.
    #[serde(default)]
    pub asked: Option<u64>,
    /// Timed repetitions.
    pub repetitions: u32,
    /// Steps of a repetition, whose mean time is its time; none where the force alone was timed.
    #[serde(default)]
    pub steps: Option<u32>,
    /// Median of the times, or the mean where the study takes that, in seconds.
    pub seconds: f64,
    /// The fastest, in seconds.
    pub fastest: f64,
    /// The slowest, in seconds.
    pub slowest: f64,
    /// Seconds of them in which bodies crossed the bus; none where they stay.
    #[serde(default)]
    pub transfers: Option<f64>,
    /// Interactions/s: ordered pairs by the time.
    pub rate: f64,
    /// Interactions/s that the device cannot exceed in this precision, where that is known.
    pub limit: Option<f64>,
    /// Root mean square of the relative force errors.
    pub error: f64,
    /// Errors of the positions after two steps, by decimal digit.
    pub digits: Option<Digits>,
    /// Bodies whose acceleration has 0, 1, 2, … right digits: a relative error below 10⁻¹, 10⁻², …
    /// for one more each.
    #[serde(default)]
    pub force_digits: Vec<u64>,
}

/// Numbers of coordinates by the decimal that is first off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digits {
    /// Off by one or more.
    pub whole: u64,
    /// First off in decimal 1, 2, ….
    pub decimals: Vec<u64>,
    /// Off after the last of those, or not at all.
    pub beyond: u64,
    /// Not finite.
    pub not_finite: u64,
}

/// A kernel that was not timed because its forces are wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchFailure {
    /// Name.
    pub kernel: String,
    /// Number of bodies.
    pub bodies: u64,
    /// Reason of the failure.
    pub why: String,
    /// True if the kernel is known to be wrong, and listed for that.
    #[serde(default)]
    pub expected: bool,
}

impl BenchRow {
    /// The number of bodies that was asked for.
    pub fn asked(&self) -> u64 {
        self.asked.unwrap_or(self.bodies)
    }

    /// Slowest less fastest time, as a share of the time.
    pub fn spread(&self) -> f64 {
        (self.slowest - self.fastest) / self.seconds
    }
}

/// Reason why a record cannot be read or written.
#[derive(Debug, Error)]
#[error("cannot {verb} benchmark record `{}`: {fault}", path.display())]
pub struct RecordError {
    /// The file.
    pub path: PathBuf,
    /// Verb for the attempt.
    verb: &'static str,
    /// The reason.
    pub fault: RecordFault,
}

/// Fault of a record.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// The file system failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Not JSON, or not of this form.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// CSV could not be written.
    #[error("{0}")]
    Csv(#[from] csv::Error),
    /// Another version of the form.
    #[error("it is of version {0}, and this program knows {VERSION}")]
    Version(u32),
}

impl BenchRecord {
    /// Reads a record's JSON file.
    ///
    /// # Errors
    /// [`RecordError`] names the file and the place in it.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        /// The version decides whether the rest can be understood.
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let read = || -> Result<Self, RecordFault> {
            let text = allpairs::io::read_text(path)?;
            match serde_json::from_str::<Versioned>(&text)?.version {
                VERSION => Ok(serde_json::from_str(&text)?),
                other => Err(RecordFault::Version(other)),
            }
        };
        read().map_err(|fault| RecordError::new(path, "read", fault))
    }

    /// Writes the record as JSON, whole or not at all.
    ///
    /// # Errors
    /// Failures of the file system.
    pub fn write_json(&self, path: &Path, overwrite: Overwrite) -> Result<(), RecordError> {
        write_atomically(path, overwrite, |file| -> Result<(), RecordFault> {
            serde_json::to_writer_pretty(&mut *file, self)?;
            Ok(file.write_all(b"\n")?)
        })
        .map_err(|fault| RecordError::new(path, "write", fault))
    }

    /// Writes the rows as CSV, whole or not at all: one column a field, and one a choice.
    ///
    /// # Errors
    /// Failures of the file system.
    pub fn write_csv(&self, path: &Path, overwrite: Overwrite) -> Result<(), RecordError> {
        write_atomically(path, overwrite, |file| -> Result<(), RecordFault> {
            let mut table = csv::Writer::from_writer(file);
            let mut axes: Vec<&str> = self
                .rows
                .iter()
                .flat_map(|row| row.choices.keys().map(String::as_str))
                .collect();
            axes.sort_unstable();
            axes.dedup();
            let mut header: Vec<String> = [
                "kernel",
                "study",
                "predecessor",
                "bodies",
                "asked",
                "repetitions",
                "steps",
                "seconds",
                "fastest",
                "slowest",
                "transfers",
                "rate",
                "limit",
                "error",
            ]
            .map(str::to_owned)
            .to_vec();
            header.extend(axes.iter().map(|axis| format!("choice: {axis}")));
            table.write_record(header)?;
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            let number = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:e}"));
            for row in &self.rows {
                let mut fields = vec![
                    row.kernel.clone(),
                    text(&row.study),
                    text(&row.predecessor),
                    row.bodies.to_string(),
                    row.asked().to_string(),
                    row.repetitions.to_string(),
                    row.steps
                        .map_or_else(String::new, |steps| steps.to_string()),
                ];
                fields.extend([row.seconds, row.fastest, row.slowest].map(|v| format!("{v:e}")));
                let rest = [row.transfers, Some(row.rate), row.limit, Some(row.error)];
                fields.extend(rest.map(number));
                fields.extend(
                    axes.iter()
                        .map(|axis| row.choices.get(*axis).cloned().unwrap_or_default()),
                );
                table.write_record(fields)?;
            }
            Ok(table.flush()?)
        })
        .map_err(|fault| RecordError::new(path, "write", fault))
    }

    /// The row of a kernel for a number of bodies that was asked for.
    pub fn row(&self, kernel: &str, asked: u64) -> Option<&BenchRow> {
        self.rows
            .iter()
            .find(|row| row.kernel == kernel && row.asked() == asked)
    }
}

impl RecordError {
    fn new(path: &Path, verb: &'static str, fault: RecordFault) -> Self {
        Self {
            path: path.to_owned(),
            verb,
            fault,
        }
    }
}

/// Records to test with.
#[cfg(test)]
pub(crate) mod samples {
    use super::*;

    /// A kernel timed at a number of bodies, all times the same.
    pub(crate) fn row(kernel: &str, bodies: u64, seconds: f64) -> BenchRow {
        BenchRow {
            kernel: kernel.into(),
            study: None,
            predecessor: None,
            choices: BTreeMap::new(),
            bodies,
            asked: None,
            repetitions: 1,
            steps: None,
            seconds,
            fastest: seconds,
            slowest: seconds,
            transfers: None,
            rate: (bodies * bodies) as f64 / seconds,
            limit: None,
            error: 1e-7,
            digits: None,
            force_digits: vec![],
        }
    }

    /// A record of these rows.
    pub(crate) fn record(rows: Vec<BenchRow>) -> BenchRecord {
        BenchRecord {
            version: VERSION,
            allpairs: "0.1.0".into(),
            unix_time: 1,
            device: "a GPU, quick".into(),
            driver: None,
            host: None,
            start: None,
            rows,
            failures: vec![],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> BenchRecord {
        samples::record(vec![BenchRow {
            predecessor: Some("naive".into()),
            choices: [("unroll".to_owned(), "16".to_owned())].into(),
            repetitions: 3,
            fastest: 0.09,
            slowest: 0.2,
            limit: Some(1e9),
            error: 1.0 / 3.0 * 1e-7,
            digits: Some(Digits {
                whole: 0,
                decimals: vec![0, 1],
                beyond: 5,
                not_finite: 0,
            }),
            force_digits: vec![0, 7, 3],
            ..samples::row("tiled", 1024, 0.1)
        }])
    }

    #[test]
    fn json_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        record().write_json(&path, Overwrite::Refuse).unwrap();
        assert_eq!(BenchRecord::read(&path).unwrap(), record());
        assert!(record().write_json(&path, Overwrite::Refuse).is_err());
    }

    #[test]
    fn csv_has_the_choices() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        record().write_csv(&path, Overwrite::Refuse).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(
            text.lines()
                .next()
                .unwrap()
                .ends_with("error,choice: unroll"),
            "{text}"
        );
        assert!(
            text.contains("tiled,,naive,1024,1024,3,,1e-1,9e-2,2e-1,,1.048576e7,1e9,"),
            "{text}"
        );
    }

    #[test]
    fn other_versions_and_other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let says = |text: &str| {
            std::fs::write(&path, text).unwrap();
            BenchRecord::read(&path).unwrap_err().to_string()
        };
        assert!(says("{\"version\":7}").contains("of version 7"));
        assert!(says("{\"version\":1}").contains("missing field"));
        assert!(says("kernel,bodies").contains("a.json"));
    }
}
