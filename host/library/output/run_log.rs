//! The log of a run, as charts read it: a table of numbers with named columns.
//!
//! CSV with a header, or one JSON object a line; told apart by the first character. A last line
//! that was not finished (the run was killed while writing it) is left out.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::io::{Printable, read_text};
use crate::units::parts_of_heading;

/// A log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunLog {
    columns: BTreeMap<String, Vec<f64>>,
    /// Units of columns that have such in their headings.
    units: BTreeMap<String, String>,
}

/// Reason why a log cannot be read.
#[derive(Debug, Error)]
#[error("cannot read log `{}`: {}", Printable(path.display()), Printable(fault))]
pub struct LogError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub fault: LogFault,
}

/// Fault of a log. Lines are counted from 1.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogFault {
    /// The file system failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// No rows.
    #[error("it has no rows")]
    Empty,
    /// A row of another number of fields than the header.
    #[error("line {line} has {found} fields where the header has {expected}")]
    Fields {
        /// The line.
        line: usize,
        /// Fields of the header.
        expected: usize,
        /// Fields of the line.
        found: usize,
    },
    /// A field that is no number.
    #[error("line {line}, column `{column}`: `{text}` is not a number")]
    Number {
        /// The line.
        line: usize,
        /// The column.
        column: String,
        /// Text found there.
        text: String,
    },
    /// Not a JSON object.
    #[error("line {line} is not a JSON object: {fault}")]
    Json {
        /// The line.
        line: usize,
        /// The reason.
        fault: serde_json::Error,
    },
}

impl RunLog {
    /// Reads a log file.
    ///
    /// # Errors
    /// [`LogError`] names the file and the line.
    pub fn read(path: &Path) -> Result<Self, LogError> {
        let read = || Self::parse(&read_text(path)?);
        read().map_err(|fault| LogError {
            path: path.to_owned(),
            fault,
        })
    }

    /// Reads the content of a log file.
    ///
    /// # Errors
    /// The fault in it, and its line.
    pub fn parse(text: &str) -> Result<Self, LogFault> {
        let finished = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let log = if finished.trim_start().starts_with('{') {
            Self::parse_json(finished)?
        } else {
            Self::parse_csv(finished)?
        };
        if log.columns.values().all(Vec::is_empty) {
            return Err(LogFault::Empty);
        }
        Ok(log.with_units())
    }

    /// With the units of headings apart from the names.
    fn with_units(self) -> Self {
        let mut log = Self::default();
        for (heading, numbers) in self.columns {
            let (name, unit) = parts_of_heading(&heading);
            let unit = unit.map(|unit| (name.to_owned(), unit.to_owned()));
            log.units.extend(unit);
            log.columns.insert(name.to_owned(), numbers);
        }
        log
    }

    fn parse_csv(text: &str) -> Result<Self, LogFault> {
        let mut rows = text
            .lines()
            .enumerate()
            .filter(|(_, row)| !row.trim().is_empty());
        let (_, header) = rows.next().ok_or(LogFault::Empty)?;
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        let mut columns = vec![vec![]; names.len()];
        for (index, row) in rows {
            let line = index + 1;
            let fields: Vec<&str> = row.split(',').map(str::trim).collect();
            if fields.len() != names.len() {
                return Err(LogFault::Fields {
                    line,
                    expected: names.len(),
                    found: fields.len(),
                });
            }
            for ((column, name), field) in columns.iter_mut().zip(&names).zip(fields) {
                let value = match field {
                    "" => f64::NAN,
                    _ => field.parse().map_err(|_| LogFault::Number {
                        line,
                        column: (*name).to_owned(),
                        text: field.to_owned(),
                    })?,
                };
                column.push(value);
            }
        }
        let names = names.into_iter().map(str::to_owned);
        Ok(Self {
            columns: names.zip(columns).collect(),
            ..Self::default()
        })
    }

    fn parse_json(text: &str) -> Result<Self, LogFault> {
        let mut log = Self::default();
        let mut count = 0;
        for (index, row) in text.lines().enumerate() {
            if row.trim().is_empty() {
                continue;
            }
            let line = index + 1;
            let row: BTreeMap<String, serde_json::Value> =
                serde_json::from_str(row).map_err(|fault| LogFault::Json { line, fault })?;
            for (name, value) in row {
                let number = match &value {
                    serde_json::Value::Null => f64::NAN,
                    _ => value.as_f64().ok_or_else(|| LogFault::Number {
                        line,
                        column: name.clone(),
                        text: value.to_string(),
                    })?,
                };
                let column = log.columns.entry(name).or_default();
                column.resize(count, f64::NAN); // where earlier rows had no such field
                column.push(number);
            }
            count += 1;
        }
        for column in log.columns.values_mut() {
            column.resize(count, f64::NAN);
        }
        Ok(log)
    }

    /// A column, if it is there. What is not a number is NaN.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.get(name).map(Vec::as_slice)
    }

    /// The unit that a column has in its heading, such as `Myr` in `time [Myr]`.
    pub fn unit(&self, name: &str) -> Option<&str> {
        self.units.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let csv = RunLog::parse("time, energy\n0,-0.25\n1,\n2,1e-3\n3,0.").unwrap();
        let json = RunLog::parse(
            "{\"time\":0,\"energy\":-0.25}\n{\"time\":1,\"energy\":null}\n{\"time\":2,\"energy\":1e-3}\n{\"ti",
        )
        .unwrap();
        for log in [csv, json] {
            assert_eq!(log.column("time").unwrap(), [0.0, 1.0, 2.0]);
            let energy = log.column("energy").unwrap();
            assert!(energy[0] == -0.25 && energy[1].is_nan() && energy[2] == 1e-3);
            assert_eq!(log.column("none"), None);
        }
        let csv = RunLog::parse("time [Myr],energy [Msun km2/s2],r50\n0,-1,2\n").unwrap();
        let json = RunLog::parse("{\"time [Myr]\":0,\"energy [Msun km2/s2]\":-1,\"r50\":2}\n");
        assert_eq!(csv, json.unwrap());
        assert_eq!(csv.column("energy").unwrap(), [-1.0]);
        let units = ["time", "energy", "r50"].map(|name| csv.unit(name));
        assert_eq!(units, [Some("Myr"), Some("Msun km2/s2"), None]);
        let late = RunLog::parse("{\"a\":1}\n{\"a\":2,\"b\":3}\n").unwrap();
        assert!(late.column("b").unwrap()[0].is_nan());
    }

    #[test]
    fn faults_say_where() {
        for (text, expected) in [
            ("", "it has no rows"),
            ("time,energy\n", "it has no rows"),
            (
                "a,b\n1,2\n1\n",
                "line 3 has 1 fields where the header has 2",
            ),
            ("a,b\n1,x\n", "line 2, column `b`: `x` is not a number"),
            (
                "{\"a\":\"x\"}\n",
                "line 1, column `a`: `\"x\"` is not a number",
            ),
        ] {
            assert_eq!(RunLog::parse(text).unwrap_err().to_string(), expected);
        }
        let fault = RunLog::parse("{\"a\":1}\n[]\n").unwrap_err();
        assert!(matches!(fault, LogFault::Json { line: 2, .. }));
        let fault = RunLog::read(Path::new("nowhere.csv")).unwrap_err();
        assert!(fault.to_string().contains("nowhere.csv"));
    }
}
